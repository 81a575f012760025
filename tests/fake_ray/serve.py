# SPDX-License-Identifier: Apache-2.0
"""Ray Serve's REST API as the dashboard of 2.60.0 has it, and HTTP proxies with the gate: one server on all of the
nodes' loopback addresses. A replica answers as an OpenAI-compatible engine would, with its application and its node.

What is kept of a PUT is what the real one keeps: keys that it knows. Applications are DEPLOYING for `serve_delay`; one
of `serve_failing` is DEPLOY_FAILED. `serve_programs` are applications that jobs made (no list removes them).
"""

import asyncio
import base64
import json
import pathlib
import struct
import time

from aiohttp import web

APP_KEYS = "name route_prefix import_path args runtime_env deployments external_scaler_enabled logging_config".split()
DEPLOYMENT_KEYS = (
    "name num_replicas max_ongoing_requests max_queued_requests user_config graceful_shutdown_timeout_s "
    "max_surge_percent health_check_period_s health_check_timeout_s ray_actor_options "
    "placement_group_bundle_label_selector"
).split()
OPTION_KEYS = "num_cpus num_gpus memory resources label_selector".split()
EMPTY = {"controller_info": {}, "proxies": {}, "applications": {}, "target_capacity": None}


def known(keys, given):
    return {k: v for k, v in given.items() if k in keys}


def as_kept(app):
    """deployed_app_config: unknown keys are gone, numbers of options are floats."""
    kept = known(APP_KEYS, app)
    kept["deployments"] = [known(DEPLOYMENT_KEYS, d) for d in app.get("deployments", [])]
    for d in kept["deployments"]:
        options = known(OPTION_KEYS, d.get("ray_actor_options", {}))
        d["ray_actor_options"] = {k: float(v) if k.startswith("num_") else v for k, v in options.items()}
    return kept


def refusal(body):
    """The text of a 400, or None."""
    apps = body.get("applications")
    if not isinstance(apps, list):
        return "applications\n  Field required"
    for key in ("name", "route_prefix"):
        values = [a.get(key) for a in apps]
        if len(values) != len(set(values)):
            return f"Found multiple applications with the same {key}"
    if any("import_path" not in a for a in apps):
        return "applications.0.import_path\n  Field required"
    return None


class Serve:
    def __init__(self, cluster):
        self.cluster = cluster
        self.options = None  # of the first PUT: Serve runs
        self.apps = {}  # name -> {"config", "since"}
        self.site = None
        self.puts, self.answered, self.told = 0, [], {}
        self.asked_at = set()  # addresses of proxies
        self.session = cluster.session

    def forget_if_lost(self):
        if self.session != self.cluster.session:
            self.options, self.apps, self.session = None, {}, self.cluster.session

    # -- the list --------------------------------------------------------------

    async def put(self, request):
        self.forget_if_lost()
        body = await request.json()
        said = refusal(body)
        if said:
            return web.Response(status=400, text=f"1 validation error for ServeDeploySchema\n{said}")
        self.puts += 1
        if self.options is None:
            self.options = body.get("http_options", {})
            await self.listen()
        new = {a["name"]: as_kept(a) for a in body["applications"]}
        for name in [n for n in self.apps if n not in new]:
            del self.apps[name]
        for name, config in new.items():
            if name not in self.apps or self.apps[name]["config"] != config:
                self.apps[name] = {"config": config, "since": time.monotonic(), "id": f"r{self.puts}"}
        return web.Response(text="")

    async def get(self, request):
        self.forget_if_lost()
        if self.options is None:
            return web.json_response(EMPTY)
        apps = {name: self.shown(name, a) for name, a in self.apps.items()}
        apps |= {name: self.shown_program(name, r) for name, r in self.cluster.settings["serve_programs"].items()}
        proxies = {n["node_id"]: self.proxy(n) for n in self.cluster.nodes if n["alive"] and self.has_proxy(n)}
        options = {"host": "0.0.0.0", "port": 8000, "request_timeout_s": None, **self.options}
        return web.json_response(
            {
                "controller_info": {"node_ip": self.cluster.nodes[0]["ip"], "actor_name": "SERVE_CONTROLLER_ACTOR"},
                "proxy_location": "EveryNode",
                "http_options": options,
                "proxies": proxies,
                "applications": apps,
                "target_capacity": None,
            }
        )

    def proxy(self, n):
        return {"node_id": n["node_id"], "node_ip": n["ip"], "status": "HEALTHY"}

    def has_proxy(self, n):
        return n["head"] or any(self.node_of(a) is n for a in self.apps.values())

    def node_of(self, app):
        selector = app["config"]["deployments"][0]["ray_actor_options"].get("label_selector", {})
        for n in self.cluster.nodes:
            if n["alive"] and all(n["labels"].get(k) == v for k, v in selector.items()):
                return n
        return None

    def status(self, name, app):
        if name in self.cluster.settings["serve_failing"]:
            return "DEPLOY_FAILED"
        ready = time.monotonic() - app["since"] >= self.cluster.settings["serve_delay"]
        return "RUNNING" if ready and self.node_of(app) else "DEPLOYING"

    def shown(self, name, app):
        status = self.status(name, app)
        return {
            "name": name,
            "route_prefix": app["config"]["route_prefix"],
            "status": status,
            "message": "the constructor raised ValueError" if status == "DEPLOY_FAILED" else "",
            "deployed_app_config": app["config"],
            "source": "declarative",
            "deployments": {d["name"]: self.deployment(name, app, d, status) for d in app["config"]["deployments"]},
        }

    def deployment(self, name, app, d, status):
        n, wanted = self.node_of(app), d.get("num_replicas", 1)
        one = {"replica_id": app["id"], "state": "RUNNING" if status == "RUNNING" else "STARTING"}
        if status == "RUNNING":
            one |= {"node_id": n["node_id"], "node_ip": n["ip"], "pid": 4242, "log_file_path": "/serve/x.log"}
        replicas = [one] * wanted if status in ("RUNNING", "DEPLOYING") else []
        return {"name": d["name"], "status": "HEALTHY", "target_num_replicas": wanted, "replicas": replicas}

    def shown_program(self, name, route):
        return {
            "name": name,
            "route_prefix": route,
            "status": "RUNNING",
            "message": "",
            "deployed_app_config": None,
            "source": "imperative",
            "deployments": {},
        }

    # -- the proxies -------------------------------------------------------------

    async def listen(self):
        if self.site:
            return
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.request)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self.runner.setup()
        self.site = web.TCPSite(self.runner, "0.0.0.0", self.options["port"])
        await self.site.start()

    def key(self):
        path = self.cluster.settings["serve_key_file"]
        return pathlib.Path(path).read_text() if path and pathlib.Path(path).exists() else None

    async def request(self, request):
        self.asked_at.add(request.transport.get_extra_info("sockname")[0])
        if request.path == "/-/routes":
            return web.json_response({a["config"]["route_prefix"]: name for name, a in self.apps.items()})
        guarded = request.path.startswith("/s/") and not self.cluster.settings["serve_open"]
        if guarded and (not self.key() or request.headers.get("x-argus-key") != self.key()):
            return web.Response(status=401, text="only argusd is answered here\n", headers={"x-argus-gate": "1"})
        for name, app in self.apps.items():
            route = app["config"]["route_prefix"]
            if request.path.startswith(route + "/") and self.status(name, app) == "RUNNING":
                return await self.replica(request, name, app)
        return web.Response(status=404, text=f"Path '{request.path}' not found.")

    async def replica(self, request, name, app):
        if name in self.cluster.settings["serve_sick"]:
            return web.Response(status=500, text="Internal Server Error")
        if "upgrade" in request.headers.get("Connection", "").lower():
            return await self.socket(request)
        n = self.node_of(app)
        self.answered.append(name)
        await asyncio.sleep(0)
        body = json.loads(await request.text() or "{}")
        self.told = {k.lower(): v for k, v in request.headers.items()}
        called = app["config"].get("args", {}).get("name")
        if request.path.endswith("/v1/models"):
            one = {"id": called, "object": "model", "created": 1_764_000_000, "owned_by": "argus"}
            return web.json_response({"object": "list", "data": [one]})
        if called and body.get("model") == "nosuch":
            said = {"message": "The model `nosuch` does not exist.", "type": "invalid_request_error", "param": "model"}
            return web.json_response({"error": {**said, "code": "model_not_found"}}, status=404)
        if request.path.endswith("/v1/embeddings"):
            return self.embeddings(body, called)
        if name in self.cluster.settings["serve_encoders"]:
            said = {"message": "this model makes no text: it answers /v1/embeddings", "param": "model"}
            said |= {"type": "invalid_request_error", "code": "no_completions"}
            return web.json_response({"error": said}, status=400)
        is_chat = not request.path.endswith("/v1/completions")
        if body.get("stream"):
            return await self.stream(request, body, is_chat)
        says = {"message": {"role": "assistant", "content": "42"}} if is_chat else {"text": "42"}
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        choices = [{"index": 0, **says, "finish_reason": "stop"}]
        head = {"id": "x-1", "object": "chat.completion" if is_chat else "text_completion", "created": 1_764_000_000}
        told = {"app": name, "node": n["name"], "model": body.get("model")}
        return web.json_response({**head, **told, "choices": choices, "usage": usage})

    def embeddings(self, body, called):
        """Of each text one of two numbers, whatever it says; a text costs three tokens."""
        given = body["input"] if isinstance(body["input"], list) else [body["input"]]
        vector = [0.6, 0.8]
        packed = base64.b64encode(struct.pack("<2f", *vector)).decode()
        said = packed if body.get("encoding_format") == "base64" else vector
        data = [{"object": "embedding", "index": i, "embedding": said} for i in range(len(given))]
        usage = {"prompt_tokens": 3 * len(given), "total_tokens": 3 * len(given)}
        return web.json_response({"object": "list", "model": called, "data": data, "usage": usage})

    async def stream(self, request, body, is_chat):
        """Four events, then the usage where it is asked for, and the end."""
        reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await reply.prepare(request)
        name = "chat.completion.chunk" if is_chat else "text_completion"
        head = {"id": "x-1", "object": name, "created": 1_764_000_000, "model": body.get("model")}

        async def event(**more):
            await reply.write(f"data: {json.dumps({**head, **more})}\n\n".encode())

        for i in range(4):
            says = {"delta": {"content": str(i)}} if is_chat else {"text": str(i)}
            await event(choices=[{"index": 0, **says, "finish_reason": "stop" if i == 3 else None}])
            while self.cluster.settings["serve_hold"]:
                await self.cluster.changed.wait()
        if body.get("stream_options", {}).get("include_usage"):
            usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
            await event(choices=[], usage=usage)
        await reply.write(b"data: [DONE]\n\n")
        return reply

    async def socket(self, request):
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        async for message in ws:
            await ws.send_str(message.data)
        return ws
