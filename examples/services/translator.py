# SPDX-License-Identifier: Apache-2.0
"""Any application of Ray Serve can be a service: a translator in front of a counter, three replicas in all.

argus serve --config examples/services/translator.yaml --code examples-services@1
"""

from ray.serve.handle import DeploymentHandle

from ray import serve

WORDS = {"good": "gut", "morning": "Morgen", "world": "Welt"}


@serve.deployment
class Counter:
    """Stands for a second model, which the first one asks."""

    def count(self, text: str) -> int:
        return len(text.split())


@serve.deployment
class Translator:
    def __init__(self, counter: DeploymentHandle):
        self.counter = counter
        self.replica = serve.get_replica_context().replica_id.unique_id

    async def __call__(self, request):
        text = (await request.json())["text"]
        words = await self.counter.count.remote(text)
        translated = " ".join(WORDS.get(w, w) for w in text.split())
        return {"text": translated, "words": words, "replica": self.replica}


app = Translator.bind(Counter.bind())
