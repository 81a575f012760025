# SPDX-License-Identifier: Apache-2.0
"""Ray Serve: a translator, asked over HTTP until each of its replicas has answered; then it is shut down."""

import contextlib
import http.client
import json
import os
import pathlib
import socket
import time

import ray
from ray import serve

WORDS = {"good": "gut", "morning": "Morgen", "world": "Welt"}


@serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 1, "num_gpus": 0.5})
class Translator:
    """Stands for a model: made once in each replica."""

    def __init__(self):
        self.where = {
            "replica": serve.get_replica_context().replica_id.unique_id,
            "node": ray.util.get_node_ip_address(),
            "gpus": ray.get_runtime_context().get_accelerator_ids().get("GPU", []),
        }

    async def __call__(self, request):
        text = (await request.json())["text"]
        return {"text": " ".join(WORDS.get(w, w) for w in text.split()), **self.where}


def ask(port, text):
    """The answer; none while nobody serves yet."""
    with contextlib.suppress(OSError), contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("POST", "/", json.dumps({"text": text}))
        reply = connection.getresponse()
        return json.loads(reply.read()) if reply.status == 200 else None


def main():
    ray.init()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serve.start(http_options={"port": port})  # a proxy on each node with replicas; the driver's node is one
    serve.run(Translator.bind())
    answers = {}
    while len(answers) < 2:
        time.sleep(0.1)
        if answer := ask(port, "good morning world"):
            answers[answer["replica"]] = answer
    serve.shutdown()
    text = json.dumps({"answers": list(answers.values())})
    print(text)
    pathlib.Path(os.environ["ARGUS_ATTEMPT_DIR"], "result.json").write_text(text)


if __name__ == "__main__":
    main()
