# SPDX-License-Identifier: Apache-2.0
"""Trackers for tests: a real MLflow server, a way to it that can be spoilt, the answers of a W&B and of a SwanLab
server, and what is read back from W&B's, TensorBoard's and SwanLab's files by their own libraries.

    with MLflow(tmp) as mlflow, Way(mlflow.port) as way:
        way.how = "refuse"        pass, refuse, hang, error
"""

import contextlib
import gzip
import http.server
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import threading
import urllib.request

import pytest
from fakeray import wait_for
from ports import free_port
from raybed import env_path

import argusd

LIB = pathlib.Path(__file__).resolve().parents[2] / "lib"
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def packages(env="trackers"):
    """(its Python, its packages' directory)"""
    path = env_path(env)
    if path is None:
        pytest.skip(f"the environment {env} is not built: run ./dev setup")
    (site,) = path.glob("lib/python3*/site-packages")
    return path / "bin/python", site


def link_packages(common, env="trackers"):
    """The trackers' packages below a shared root. The directory itself may be no link that leads off the root."""
    place = common / f"packages-{env}"
    if not place.exists():
        place.mkdir(parents=True)
        for thing in packages(env)[1].iterdir():
            (place / thing.name).symlink_to(thing)
    return place


class MLflow:
    def __init__(self, place):
        self.place, self.port = place, free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        python, _ = packages()
        argv = [python, "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{self.place}/mlflow.db"]
        argv += ["--artifacts-destination", self.place / "artifacts", "--host", "127.0.0.1"]
        argv += ["--port", str(self.port), "--workers", "1"]
        with open(self.place / "mlflow.log", "wb") as log:
            self.process = subprocess.Popen(
                argv, stdout=log, stderr=log, cwd=self.place, start_new_session=True,
                env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            )  # fmt: skip
        wait_for(self.is_up, "MLflow answers", argusd.PATIENCE)
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def is_up(self):
        assert self.process.poll() is None, (self.place / "mlflow.log").read_text()[-3000:]
        try:
            return DIRECT.open(self.url + "/health", timeout=60).read() == b"OK"
        except OSError:
            return False

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        head = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/2.0/mlflow/{path}", data, head)
        return json.load(DIRECT.open(request, timeout=240))

    def runs(self, project, job):
        found = self.ask(f"experiments/get-by-name?experiment_name={project}")["experiment"]["experiment_id"]
        query = {"experiment_ids": [found], "filter": f"tags.`argus.job` = '{job}'"}
        return self.ask("runs/search", query).get("runs", [])

    def history(self, run, key):
        found = self.ask(f"metrics/get-history?run_id={run}&metric_key={key}").get("metrics", [])
        return [(m["step"], m["value"]) for m in found]


class Way:
    """A port of `host` that leads to another one, or does not: connections that are open follow a change at once."""

    def __init__(self, port, how="pass", host="127.0.0.1"):
        self.port, self.how, self.host, self.seen = port, how, host, 0

    def __enter__(self):
        self.listener = socket.create_server((self.host, 0))
        self.url = f"http://{self.host}:{self.listener.getsockname()[1]}"
        self.open = True
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.open = False
        self.listener.close()

    def _accept(self):
        while self.open:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.seen += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, contextlib.suppress(OSError):  # either side may cut it
            if self.how == "refuse":
                return
            if self.how == "pass":
                with socket.create_connection(("127.0.0.1", self.port)) as server:
                    self._carry(client, server)
                return
            client.settimeout(30)
            client.recv(65536)
            if self.how == "error":
                client.sendall(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            while self.how == "hang" and self.open and not select.select([client], [], [], 0.2)[0]:
                pass

    def _carry(self, client, server):
        both = {client: server, server: client}
        while self.how == "pass" and self.open:
            for ready in select.select(list(both), [], [], 0.05)[0]:
                if self.how != "pass":
                    return
                data = ready.recv(65536)
                if not data:
                    return
                both[ready].sendall(data)


class _Stand:
    """A server in the place of a tracker's, answering by a class of _Answers; runs by their id."""

    def __init__(self, handler):
        self.handler, self.runs, self.lock = handler, {}, threading.Lock()

    def __enter__(self):
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
        self.http.daemon_threads = True
        self.http.bed = self
        self.port = self.http.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


class WandbStand(_Stand):
    """What `wandb sync` asks of a W&B server (seen with wandb 0.31.0), and what it sent."""

    KEY = "k" * 40

    def __init__(self):
        super().__init__(_Wandb)
        self.is_away = False
        self.takes_runs = threading.Event()  # while it is clear, whoever sends a run waits
        self.takes_runs.set()

    def argusd(self, home, ray_url):
        """An argusd that sends to it."""
        return argusd.Argusd(home, ray_url, f"trackers: {{wandb: {self.url}}}")

    def answer(self, op, v):
        entity = {"id": "E", "name": v.get("entity") or "team"}
        project = {"id": "P", "name": v.get("project"), "entity": entity}
        viewer = {"id": "V", "entity": "team", "username": "u", "flags": "{}", "teams": {"edges": []}}
        if op == "UpsertBucket":
            self.takes_runs.wait()
            with self.lock:
                run = self.runs.setdefault(v.get("name"), {"lines": {}, "exit": None})
                run.update({k: v[k] for k in ("project", "displayName", "groupName", "config") if v.get(k)})
            bucket = {"id": "R", "name": v.get("name"), "displayName": v.get("displayName"), "description": ""}
            bucket |= {"config": v.get("config") or "{}", "sweepName": None, "historyLineCount": 0}
            return {"upsertBucket": {"inserted": True, "bucket": bucket | {"project": project}}}
        if op == "RunResumeStatus":
            return {"model": {**project, "bucket": None}}
        if op == "Viewer":
            return {"viewer": viewer | {"apiKeys": {"edges": []}}}
        if op == "CreateRunFiles":
            files = [{"name": f, "uploadUrl": f"{self.url}/up/{f}"} for f in v.get("files", [])]
            return {"createRunFiles": {"runID": "R", "uploadHeaders": [], "files": files}}
        return {"serverInfo": {"features": []}} if op == "ServerFeaturesQuery" else {}

    def stream(self, run, body):
        with self.lock:
            kept = self.runs.setdefault(run, {"lines": {}, "exit": None})
            if body.get("complete"):
                kept["exit"] = body.get("exitcode")
            history = body.get("files", {}).get("wandb-history.jsonl")
            for i, line in enumerate(history["content"] if history else []):
                kept["lines"][history.get("offset", 0) + i] = json.loads(line)


class _Answers(http.server.BaseHTTPRequestHandler):
    """JSON, to the server's `bed`."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        data = b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

    def reply(self, what, status=200):
        data = json.dumps(what).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Wandb(_Answers):
    def do_PUT(self):
        self.body()
        self.reply({})

    do_GET = do_PUT

    def do_POST(self):
        data, bed = self.body(), self.server.bed
        if bed.is_away:
            return self.reply({}, 503)
        if self.path.endswith("/graphql"):
            q = json.loads(data)
            op = q.get("operationName") or ("Viewer" if "viewer" in q["query"] else "")
            return self.reply({"data": bed.answer(op, q.get("variables") or {})})
        if self.path.endswith("/file_stream"):
            bed.stream(self.path.split("/")[-2], json.loads(data))
            return self.reply({"limits": {}})
        return self.reply({})


class SwanlabStand(_Stand):
    """What SwanLab's client asks of a server (seen with swanlab 0.10.3), and what it sent."""

    KEY = "s" * 20

    def __init__(self):
        super().__init__(_Swanlab)

    def begin(self, told):
        run = {"steps": {}, "state": None, "name": told["name"], "group": told.get("cluster")}
        with self.lock:
            is_new = told["cuid"] not in self.runs
            self.runs.setdefault(told["cuid"], run)
        made = {"cuid": told["cuid"], "slug": told["cuid"], "name": told["name"], "createdAt": told["createdAt"]}
        return made, 201 if is_new else 200

    def take(self, told):
        with self.lock:
            for row in told["metrics"] if told["type"] == "scalar" else ():
                self.runs[told["experimentId"]]["steps"].setdefault(row["index"], {})[row["key"]] = row["data"]

    def tell(self, run, **what):
        with self.lock:
            self.runs[run] |= what


class _Swanlab(_Answers):
    def do_GET(self):
        project = {"cuid": "P", "name": self.path.rpartition("/")[2], "path": self.path.removeprefix("/api/project")}
        more = {"visibility": "PRIVATE", "group": {"username": "u"}, "_count": {"experiments": 0}}
        self.reply({**project, **more} if self.path.startswith("/api/project/") else {})

    def do_PUT(self):
        told = json.loads(self.body() or b"{}")
        run, what = self.path.split("/")[-2:]
        if what in ("state", "profile"):  # the client begins with the latter once it knows its run
            self.server.bed.tell(run, state=told.get("state", "RUNNING"))
        self.reply({})

    def do_POST(self):
        told, bed = json.loads(self.body() or b"{}"), self.server.bed
        if self.path.endswith("/login/api_key"):
            self.reply({"sid": "s", "expiredAt": "2100-01-01T00:00:00.000Z", "userInfo": {"username": "u"}})
        elif self.path.endswith("/experiment"):
            self.reply(*bed.begin(told))
        else:
            if self.path.endswith("/house/metrics"):
                bed.take(told)
            self.reply({})


READ_WANDB = r"""
import collections, json, sys
sys.path.insert(0, sys.argv[2])
import argus_track
from wandb.proto import wandb_internal_pb2 as pb
out = {"steps": {}, "exit": None}
for raw in argus_track.raw_records(sys.argv[1]):
    r = pb.Record(); r.ParseFromString(raw)
    kind = r.WhichOneof("record_type")
    if kind == "run":
        out |= {"id": r.run.run_id, "project": r.run.project, "name": r.run.display_name, "group": r.run.run_group}
    elif kind == "history":
        out["steps"][r.history.step.num] = {i.key or ".".join(i.nested_key): json.loads(i.value_json)
                                           for i in r.history.item}
    elif kind == "exit":
        out["exit"] = r.exit.exit_code
print(json.dumps(out))
"""
READ_BOARD = r"""
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
board = EventAccumulator(sys.argv[1]); board.Reload()
print(json.dumps({k: [(e.step, e.value) for e in board.Scalars(k)] for k in board.Tags()["scalars"]}))
"""
READ_SWANLAB = r"""
import json, sys
from swanlab.proto.swanlab.record.v1 import record_pb2
from swanlab.proto.swanlab.run.v1 import run_pb2
from swanlab.sdk.internal.core_python.store import DataStoreReader
out, reader = {"steps": {}, "lines": 0, "state": None}, DataStoreReader()
reader.open(sys.argv[1])
for raw in reader:
    r = record_pb2.Record(); r.ParseFromString(raw)
    if r.HasField("start"):
        out |= {"id": r.start.id, "project": r.start.project, "name": r.start.name, "group": r.start.group}
    elif r.HasField("scalar"):
        out["steps"].setdefault(r.scalar.step, {})[r.scalar.key] = r.scalar.value.number
    elif r.HasField("log"):
        out["lines"] += 1
    elif r.HasField("finish"):
        out["state"] = run_pb2.RunState.Name(r.finish.state)
print(json.dumps(out))
"""


def read_back(script, path, env="trackers"):
    python, _ = packages(env)
    done = subprocess.run([python, "-c", script, path, LIB], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
