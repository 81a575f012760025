#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A fake Ray dashboard that really runs entrypoints, as local processes.

    fake_ray.py [--port 0] [--control-port 0] [--version 2.51.1|2.60.0] [--spec nodes.json] [--state DIR] [--token T]

Prints one line of JSON when it answers: {"url", "control", "pid", "state"}. SIGTERM ends it and every process that
it started; SIGKILL leaves them, and the same --state takes them up again. nodes.json is a list of {"name", "ip",
"head", "resources", "labels"}. What the real one answers is in recorded/, and test_fake_ray.py holds this to it.

Control, all JSON, on a port of its own:
  GET  /_fake/state       nodes, jobs with their records, settings, session
  GET  /_fake/starts      {id: [{pid, node, ip, time}]}: what really started; two entries = started twice
  GET  /_fake/requests    what came in (method, path, headers), newest last; DELETE forgets them
  POST /_fake/settings    see SETTINGS in cluster.py: start_delay, hold_pending, driver_on_head, orphans, ...
  POST /_fake/faults      one rule of faults.py, or a list; DELETE takes all away
  POST /_fake/listen      {"up": false}: connections are refused until {"up": true}
  POST /_fake/nodes/NAME  {"state": "dead"|"alive", "processes": "kill"|"keep"}, or {"ip": ADDRESS}: it says it is there
  POST /_fake/nodes       a node of nodes.json more
  POST /_fake/memory      {"kill_after": seconds or null}: another session, no jobs
  POST /_fake/jobs        a job record that nobody submitted here (foreign), as /api/jobs/ would list it
  GET  /_fake/serve       Ray Serve: the applications as they were put, how many PUTs there were, at which addresses its
                          proxies were asked
  POST /_fake/world       {"actors": [...], "groups": [...]}: rows of the state API beside the supervisors
"""

import argparse
import asyncio
import collections
import json
import logging
import os
import signal
import sys
import tempfile

import api
import cluster
import faults
import serve
from aiohttp import web


class Control:
    def __init__(self, fake):
        self.fake = fake

    def routes(self):
        return [
            web.get("/_fake/state", self.state),
            web.get("/_fake/starts", self.starts),
            web.get("/_fake/requests", self.requests),
            web.delete("/_fake/requests", self.forget),
            web.post("/_fake/settings", self.settings),
            web.post("/_fake/faults", self.faults),
            web.delete("/_fake/faults", self.heal),
            web.post("/_fake/listen", self.listen),
            web.post("/_fake/nodes/{name}", self.node),
            web.post("/_fake/nodes", self.add_node),
            web.post("/_fake/memory", self.memory),
            web.post("/_fake/jobs", self.job),
            web.post("/_fake/world", self.world),
            web.get("/_fake/serve", self.serve),
        ]

    async def state(self, request):
        c = self.fake.cluster
        return web.json_response({"nodes": c.nodes, "jobs": c.jobs, "settings": c.settings, "session": c.session})

    async def starts(self, request):
        by_id = collections.defaultdict(list)
        for line in self.fake.cluster.read_starts():
            by_id[line.pop("id")].append(line)
        return web.json_response(by_id)

    async def requests(self, request):
        return web.json_response(self.fake.faults.requests)

    async def forget(self, request):
        self.fake.faults.requests.clear()
        return web.json_response({})

    async def settings(self, request):
        wanted = await request.json()
        for key in wanted:
            if key not in self.fake.cluster.settings:
                return web.json_response({"error": f"unknown setting '{key}'"}, status=400)
        self.fake.cluster.change(wanted)
        return web.json_response(self.fake.cluster.settings)

    async def faults(self, request):
        wanted = await request.json()
        try:
            for rule in wanted if isinstance(wanted, list) else [wanted]:
                self.fake.faults.add(rule)
        except ValueError as e:
            return web.json_response({"error": str(e)}, status=400)
        return web.json_response(self.fake.faults.rules)

    async def heal(self, request):
        self.fake.faults.rules.clear()
        return web.json_response({})

    async def listen(self, request):
        await self.fake.listen((await request.json())["up"])
        return web.json_response({})

    async def node(self, request):
        wanted, name, c = await request.json(), request.match_info["name"], self.fake.cluster
        if "ip" in wanted:
            c.move_node(name, wanted["ip"])
        elif wanted["state"] == "dead":
            c.node_down(name, wanted.get("processes", "kill"), wanted.get("message"))
        else:
            c.node_up(name)
        return web.json_response(c.nodes)

    async def add_node(self, request):
        self.fake.cluster.add_node(await request.json())
        return web.json_response(self.fake.cluster.nodes)

    async def memory(self, request):
        self.fake.cluster.spawn(self.fake.cluster.lose_memory((await request.json()).get("kill_after")))
        await asyncio.sleep(0)
        return web.json_response({"session": self.fake.cluster.session})

    async def job(self, request):
        record = await request.json()
        name = record.get("submission_id") or record["job_id"]
        self.fake.cluster.jobs[name] = {
            "id": name,
            "record": record,
            "session": self.fake.cluster.session,
            "demand": {},
            "labels": {},
            "node": None,
            "actor": "0" * 32,
            "stop_asked": False,
            "runs": False,
            "ended": None,
        }
        return web.json_response({})

    async def serve(self, request):
        s = self.fake.serve
        apps = {n: a["config"] for n, a in s.apps.items()}
        return web.json_response({"apps": apps, "puts": s.puts, "told": s.told, "asked_at": sorted(s.asked_at)})

    async def world(self, request):
        self.fake.cluster.world.update(await request.json())
        return web.json_response(self.fake.cluster.world)


class Fake:
    def __init__(self, args):
        with open(args.spec) if args.spec else open(os.devnull) as f:
            nodes = json.load(f) if args.spec else None
        self.keep = args.state is not None
        root = args.state or tempfile.mkdtemp(prefix="fake-ray-")
        self.cluster = cluster.Cluster(args.version, root, nodes)
        self.api = api.Api(self.cluster, args.token)
        self.faults = faults.Faults()
        self.host, self.port = args.host, args.port
        self.site = None

    async def listen(self, up):
        if up and self.site is None:
            self.site = web.TCPSite(self.runner, self.host, self.port, reuse_address=True)
            await self.site.start()
            self.port = self.site._server.sockets[0].getsockname()[1]
        elif not up and self.site is not None:
            await self.site.stop()
            self.site = None
            for connection in list(self.runner.server.connections):
                if connection.transport:
                    connection.transport.abort()

    async def start(self, control_port):
        app = web.Application(middlewares=[self.faults.middleware, self.api.doors], client_max_size=100 << 20)
        app.add_routes(self.api.routes())
        self.serve = serve.Serve(self.cluster)
        app.add_routes(
            [
                web.get("/api/serve/applications/", self.serve.get),
                web.put("/api/serve/applications/", self.serve.put),
            ]
        )
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2, keepalive_timeout=75)
        await self.runner.setup()
        await self.listen(True)
        control = web.Application()
        control.add_routes(Control(self).routes())
        self.control = web.AppRunner(control, access_log=None, shutdown_timeout=0.2)
        await self.control.setup()
        site = web.TCPSite(self.control, self.host, control_port)
        await site.start()
        self.cluster.resume()
        return site._server.sockets[0].getsockname()[1]


async def main(args):
    fake = Fake(args)
    control_port = await fake.start(args.control_port)
    ready = {
        "url": f"http://{args.host}:{fake.port}",
        "control": f"http://{args.host}:{control_port}",
        "pid": os.getpid(),
        "state": fake.cluster.root,
    }
    print(json.dumps(ready), flush=True)
    done = asyncio.Event()
    for sig in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sig, done.set)
    await done.wait()
    for task in list(fake.cluster.tasks):
        task.cancel()
    await fake.runner.cleanup()
    await fake.control.cleanup()
    fake.cluster.close(fake.keep)


def parse_args(argv):
    ap = argparse.ArgumentParser(description="a fake Ray dashboard that really runs entrypoints")
    ap.add_argument("--host", default="127.0.0.1")
    ap.add_argument("--port", type=int, default=0)
    ap.add_argument("--control-port", type=int, default=0)
    ap.add_argument("--version", default="2.51.1")
    ap.add_argument("--spec", help="JSON list of nodes")
    ap.add_argument("--state", help="directory to keep state in, so that it can be killed and restarted")
    ap.add_argument("--token", help="demand this token, as Ray from 2.52 can")
    return ap.parse_args(argv)


def run(argv):
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # what it answers 500 to is meant
    asyncio.run(main(parse_args(argv)))


if __name__ == "__main__":
    run(sys.argv[1:])
