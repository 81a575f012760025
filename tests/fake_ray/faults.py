# SPDX-License-Identifier: Apache-2.0
"""Spoiled answers: what a sick dashboard, a full disk or a cut network make of a request."""

import asyncio
import json
import random
import time

from aiohttp import web

TROUBLE = "500 Internal Server Error\n\nServer got itself in trouble"


def text(status, body):
    return web.Response(status=status, text=body)


class Faults:
    """Rules that spoil answers: {"kind", "method", "path" (prefix), "skip", "count", ...}; first match acts."""

    KINDS = ("hang", "status", "garbage", "replace", "raw", "huge", "slow", "drop_answer", "reset")

    def __init__(self):
        self.rules = []
        self.requests = []

    def add(self, rule):
        if rule.get("kind") not in self.KINDS:
            raise ValueError(f"unknown kind, one of {' '.join(self.KINDS)}")
        self.rules.append(dict(rule))

    def take(self, request):
        for rule in self.rules:
            if rule.get("method", request.method) != request.method:
                continue
            if not request.path.startswith(rule.get("path", "/")):
                continue
            if rule.get("skip", 0) > 0:
                rule["skip"] -= 1
                continue
            if "count" in rule:
                if rule["count"] <= 0:
                    continue
                rule["count"] -= 1
            return rule
        return None

    @web.middleware
    async def middleware(self, request, handler):
        self.requests.append(
            {"method": request.method, "path": request.path_qs, "headers": dict(request.headers), "time": time.time()}
        )
        del self.requests[:-5000]
        rule = self.take(request)
        if rule is None:
            return await handler(request)
        return await getattr(self, "do_" + rule["kind"])(request, handler, rule)

    async def do_hang(self, request, handler, rule):
        await asyncio.sleep(rule.get("seconds", 86400))
        return text(500, "hung")

    async def do_status(self, request, handler, rule):
        return text(rule.get("status", 500), rule.get("text", TROUBLE))

    async def do_garbage(self, request, handler, rule):
        body = rule["body"].encode("latin-1") if "body" in rule else random.randbytes(4096)
        return web.Response(body=body, content_type=rule.get("type", "application/json"))

    async def do_replace(self, request, handler, rule):
        return web.Response(text=json.dumps(rule["json"]), content_type="application/json")

    async def do_raw(self, request, handler, rule):
        transport = request.transport
        transport.write(rule.get("bytes", "SSH-2.0-nothing\r\n").encode("latin-1"))
        transport.close()
        return text(500, "never seen")

    async def do_huge(self, request, handler, rule):
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b'["')
        try:
            for _ in range(rule.get("bytes", 64 << 20) // 65536):
                await answer.write(b"x" * 65536)
        except ConnectionError:
            pass
        return answer

    async def do_slow(self, request, handler, rule):
        await asyncio.sleep(rule.get("seconds", 1))
        return await handler(request)

    async def do_drop_answer(self, request, handler, rule):
        await request.read()
        await handler(request)
        request.transport.abort()
        return text(500, "never seen")

    async def do_reset(self, request, handler, rule):
        request.transport.abort()
        return text(500, "never seen")
