# SPDX-License-Identifier: Apache-2.0
"""The gate in Ray Serve's HTTP proxies: argusd's routes (/s/...) answer only to who shows the key that argusd has.

Ray Serve has no authentication of its own, also where Ray asks for a token. Each `ray start` of a cluster that serves
has in its environment

    RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH=argus_gate:middlewares
    PYTHONPATH=<shared root>/argus/lib

and argusd lays the key beside this directory, readable by Ray's user alone. Other routes are none of its business.
Without a key file nobody gets through.
"""

import hmac
import os
import pathlib

ROUTES = "/s/"
HEADER = b"x-argus-key"
KEY = pathlib.Path(
    os.environ.get("ARGUS_SERVE_KEY_FILE") or pathlib.Path(__file__).resolve().parents[1] / "serve" / "key"
)


class Gate:
    def __init__(self, app):
        self.app, self.key, self.stamp = app, b"", None

    def key_now(self):
        """The key, read again when the file has changed: argusd may lay it down after the proxy began."""
        try:
            s = KEY.stat()
            stamp = (s.st_mtime_ns, s.st_ino, s.st_size)
            if stamp != self.stamp:
                self.key, self.stamp = KEY.read_bytes().strip(), stamp
        except FileNotFoundError:
            self.key, self.stamp = b"", None
        except OSError:
            pass  # the root is away: the key that was read last holds
        return self.key

    async def __call__(self, scope, receive, send):
        if scope["type"] not in ("http", "websocket") or not scope["path"].startswith(ROUTES):
            await self.app(scope, receive, send)
            return
        key = self.key_now()
        got = [value for name, value in scope["headers"] if name == HEADER]
        if not key or len(got) != 1 or not hmac.compare_digest(got[0], key):
            await refuse(scope, send)
            return
        headers = [h for h in scope["headers"] if h[0] != HEADER]
        await self.app({**scope, "headers": headers}, receive, send)


async def refuse(scope, send):
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    head = [(b"content-type", b"text/plain"), (b"x-argus-gate", b"1")]
    await send({"type": "http.response.start", "status": 401, "headers": head})
    await send({"type": "http.response.body", "body": b"only argusd is answered here\n"})


def middlewares():
    from starlette.middleware import Middleware

    return [Middleware(Gate)]
