# SPDX-License-Identifier: Apache-2.0
"""tinyapp - an application of Ray Serve that does nothing but answer: bench/serve_deaths serves it, and for
bench/serve_switch it makes 10,000 requests cheap, because the cost of an answer is that of the way to it.

argus serve --app tinyapp:app --code DIR --name tiny --keep warm"""

from ray import serve


@serve.deployment
class Tiny:
    async def __call__(self, request):
        return f"{len(await request.body())} bytes\n"


app = Tiny.bind()
