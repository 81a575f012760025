# SPDX-License-Identifier: Apache-2.0
"""A small argusd for tests of the command line alone: the API's shapes, held in memory, with faults on demand.

Not a model of argusd: jobs change only when the test says so. Every change wakes the long-polls and streams. Faults:
`cut_logs` (each log stream is dropped after so many events), `drop_posts` (so many POSTs are taken and not answered),
`busy` (so many changes of a job are refused, since there is no place), `drop_jobs` (so many questions about a job are
not answered once all its logs were told as one).
"""

import base64
import functools
import json
import re
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "argus_test_token"
TERMINAL = ("SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT")


def job(job_id, **members):
    return {
        "id": job_id,
        "name": "",
        "user": "alice",
        "project": "rlhf",
        "workload": "grpo",
        "cluster": "default",
        "state": "QUEUED",
        "flags": [],
        "reason": {"code": "", "text": ""},
        "pool": "h20",
        "nnodes": 2,
        "n_gpus_per_node": 4,
        "gpus": 8,
        "queued_at": "2026-11-21T10:00:00.000Z",
        "started_at": None,
        "ended_at": None,
        "attempt": 1,
        "restarts": 0,
        "step": None,
        "gpu_util": None,
        "gpu_hours": 0,
        **members,
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def stub(self):
        return self.server.stub

    def log_message(self, *args):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    # ---- answers ----

    def answer(self, status, body, kind="application/json", **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def problem(self, status, code, detail, **more):
        body = {"type": "about:blank", "title": detail, "status": status, "code": code, "detail": detail}
        self.answer(status, {**body, **more}, "application/problem+json")

    def begin_stream(self):
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()

    def send_event(self, name, number, data):
        text = f"event: {name}\nid: {number}\ndata: {json.dumps(data)}\n\n"
        self.wfile.write(text.encode())
        self.wfile.flush()

    def wait(self, condition):
        """False once the self.stub closes."""
        with self.stub.changed:
            self.stub.changed.wait_for(lambda: self.stub.closed or condition())
            return not self.stub.closed

    # ---- requests ----

    def begin(self):
        if self.stub.closed:  # connections that were kept alive end with the server
            raise ConnectionAbortedError
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.stub.requests.append((self.command, self.path, dict(self.headers), body))
        parts = urllib.parse.urlsplit(self.path)
        self.query = {k: v[0] for k, v in urllib.parse.parse_qs(parts.query).items()}
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.problem(401, "unauthorised", "a valid token is needed")
            return None, None
        return urllib.parse.unquote(parts.path), body

    def one_job(self, name):
        found = self.stub.find(name)
        if len(found) == 1:
            return found[0]
        if found:
            self.problem(409, "conflict", f"'{name}' names {len(found)} jobs: {', '.join(found)}")
        else:
            self.problem(404, "not_found", f"there is no job '{name}'")
        return None

    def do_GET(self):
        path, _ = self.begin()
        if path is None:
            return
        m = re.fullmatch(r"/v1/jobs/([^/]+)(/logs|/logs/merged|/events|/why)?", path)
        fixed = {
            "/v1/jobs": self.list_jobs,
            "/v1/nodes": lambda: self.answer(200, {"nodes": self.stub.nodes}),
            "/v1/events": lambda: self.list_events(None),
            "/v1/version": lambda: self.answer(200, {"version": "9.9.9", "ray": {"version": "2.51.1"}}),
            "/v1/whoami": lambda: self.answer(
                200, {"user": "alice", "role": "admin", "token": {"name": "laptop", "expires_at": None}}
            ),
        }
        if path in fixed:
            fixed[path]()
            return
        job_id = self.one_job(m.group(1)) if m else None
        if not m:
            self.problem(404, "not_found", f"there is no '{path}'")
        elif job_id is None:
            return
        elif m.group(2) == "/logs":
            (self.follow_log if self.query.get("follow") else self.read_log)(job_id)
        elif m.group(2) == "/logs/merged":
            self.tell_merged(job_id)
        elif m.group(2) == "/events":
            self.list_events(job_id)
        elif m.group(2) == "/why":
            self.tell_why(job_id)
        else:
            self.get_job(job_id)

    def tell_why(self, job_id):
        known = self.stub.jobs[job_id]
        more = {k: known.get(k) for k in ("position", "eta", "hint", "also")}
        self.answer(200, {"id": job_id, "state": known["state"], "hint_text": known.get("hint_text", ""), **more,
                          "code": known["reason"]["code"], "text": known["reason"]["text"]})  # fmt: skip

    def list_jobs(self):
        states = self.query["state"].split(",") if "state" in self.query else None
        found = [
            j
            for j in reversed(list(self.stub.jobs.values()))
            if (not states or j["state"] in states)
            and (self.query.get("all") != "0" or j["user"] == "alice")
            and all(j.get(k) == self.query[k] for k in ("user", "project", "workload", "pool") if k in self.query)
        ]
        start, limit = int(self.query.get("cursor", 0)), int(self.query.get("limit", 50))
        more = str(start + limit) if start + limit < len(found) else None
        self.answer(200, {"jobs": found[start : start + limit], "next_cursor": more})

    def get_job(self, job_id):
        if self.stub.told_merged and self.stub.drop_jobs:
            self.stub.drop_jobs -= 1
            self.close_connection = True
            return
        tag = self.headers.get("If-None-Match")
        if "wait" in self.query and tag == f'"{self.stub.version}"':
            with self.stub.changed:
                self.stub.changed.wait_for(lambda: self.stub.closed or tag != f'"{self.stub.version}"', timeout=30)
        if tag == f'"{self.stub.version}"':
            self.answer(304, b"", ETag=tag)
        else:
            self.answer(200, self.stub.jobs[job_id], ETag=f'"{self.stub.version}"')

    def search_log(self, job_id):
        log, hits = self.stub.logs[job_id], []
        for m in re.finditer(rb"[^\n]+", log):
            if re.search(self.query["grep"].encode(), m.group()):
                b64 = base64.b64encode(m.group()).decode()
                hits.append({"job": job_id, "attempt": 1, "offset": m.start(), "b64": b64})
        whole = log.rfind(b"\n") + 1
        self.answer(200, {"hits": hits, "attempt": 1, "offset": whole, "next_cursor": None})

    def read_log(self, job_id):
        log = self.stub.logs[job_id]
        if "grep" in self.query:
            self.search_log(job_id)
            return
        offset = int(self.query.get("offset", 0))
        if "tail" in self.query:
            lines = log.splitlines(keepends=True)
            offset = len(log) - sum(map(len, lines[-int(self.query["tail"]) :]))
        piece = log[offset : offset + self.stub.piece]
        self.answer(200, piece, "application/octet-stream", Argus_Log_Size=str(len(log)))

    def tell_merged(self, job_id):
        """All there is, in one look."""
        at, lines = 0, []
        for line in self.stub.logs[job_id].splitlines(keepends=True):
            lines.append({"source": 0, "offset": at, "cut": False, "text": line.decode().rstrip("\n")})
            at += len(line)
        driver = {"source": "driver", "file": None, "node": None, "rank": None, "actor": None, "skipped_bytes": 0}
        self.stub.told_merged = True
        self.answer(200, {"id": job_id, "attempt": 1, "sources": [driver], "lines": lines, "left_out": 0, "more": False,
                          "ended": True, "cursor": f"1~d{at:x}"})  # fmt: skip

    def follow_log(self, job_id):
        last = self.headers.get("Last-Event-ID") or self.query.get("offset", "0")
        offset = int(last.rpartition(":")[2])
        self.begin_stream()
        sent = 0

        def has_more(at):
            return len(self.stub.logs[job_id]) > at or self.stub.jobs[job_id]["state"] in TERMINAL

        while self.wait(functools.partial(has_more, offset)):
            piece = self.stub.logs[job_id][offset : offset + self.stub.piece]
            if not piece:
                self.send_event("end", offset, {"state": self.stub.jobs[job_id]["state"]})
                return
            if self.stub.cut_logs and sent == self.stub.cut_logs:
                self.wfile.write(b"event: log\ndata: {\"offset\": 0, \"b64")  # and nothing more of it
                return
            data = {"offset": offset, "b64": base64.b64encode(piece).decode()}
            offset += len(piece)
            sent += 1
            self.send_event("log", offset, data)

    def list_events(self, job_id):
        def after(seq):
            return [e for e in self.stub.events if e["seq"] > seq and job_id in (None, e.get("job"))]

        since = int(self.headers.get("Last-Event-ID") or self.query.get("since", 0))
        if not self.query.get("follow"):
            found = list(reversed(after(since))) if self.query.get("newest_first") else after(since)
            found = found[: int(self.query.get("limit", 200))]
            self.answer(200, {"events": found, "next": found[-1]["seq"] if found else since})
            return
        self.begin_stream()
        while self.wait(functools.partial(after, since)):
            for event in after(since):
                since = event["seq"]
                self.send_event(event["kind"], since, event)

    def do_POST(self):
        path, body = self.begin()
        if path is None:
            return
        m = re.fullmatch(r"/v1/jobs/([^/:]+):(stop|hold|release|priority|archive)", path)
        if path == "/v1/jobs":
            self.submit(body)
        elif path == "/v1/jobs:stop":
            ids = [i for i in json.loads(body)["ids"] if self.stub.jobs[i]["state"] not in TERMINAL]
            self.stop(ids)
            self.answer(202, {"jobs": [{"id": i, "state": self.stub.jobs[i]["state"]} for i in ids], "more": False})
        elif path == "/v1/services/talks:ask":
            self.answer(200, {"service": "talks", "version": 1, "status": 200, "took_ms": 1, "answer": self.stub.says})
        elif m and self.stub.busy:
            self.stub.busy -= 1
            self.problem(429, "too_many_requests", "1000 jobs wait")
        elif m and m.group(1) in self.stub.jobs:
            self.change(m.group(1), m.group(2), body)
            self.answer(202, self.stub.jobs[m.group(1)])
        else:
            self.problem(404, "not_found", f"there is no '{path}'")

    def stop(self, ids):
        for i in ids:
            self.stub.change(i, state="STOPPED", ended_at="2026-11-21T10:09:00Z")

    def change(self, job_id, verb, body):
        if verb == "stop" and self.stub.jobs[job_id]["state"] not in TERMINAL:
            self.stop([job_id])
        if verb in ("hold", "release"):
            self.stub.change(job_id, flags=["HELD"] if verb == "hold" else [])
        if verb == "priority":
            self.stub.change(job_id, priority=json.loads(body)["priority"])

    def submit(self, body):
        key = self.headers["Idempotency-Key"]
        if self.stub.refuse:
            status, problem = self.stub.refuse
            self.answer(status, problem, "application/problem+json")
            return
        if self.query.get("dry_run"):
            self.answer(200, {"argv": ["python3", "-m", "verl.trainer.main_ppo", "a=b c"]})
            return
        if key not in self.stub.answers:
            self.stub.answers[key] = self.stub.add(f"grpo-20261121-{len(self.stub.jobs):06d}")
        if self.stub.drop_posts:
            self.stub.drop_posts -= 1
            self.close_connection = True
            return
        self.answer(201, self.stub.jobs[self.stub.answers[key]])


class Stub:
    def __init__(self, port=0):
        self.jobs, self.logs, self.events, self.nodes = {}, {}, [], []
        self.requests = []  # (method, path with query, headers, body)
        self.answers = {}  # idempotency key -> job id
        self.refuse = None  # (status, problem) for the next POST of a job
        self.cut_logs = self.drop_posts = self.busy = self.drop_jobs = 0
        self.told_merged = False
        self.says = ""  # the answer of a service
        self.piece = 1 << 16  # of the log, in one answer or event
        self.changed = threading.Condition()
        self.version = 0
        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.stub = self
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.closed = False
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def add(self, job_id, **members):
        self.change(job_id, **job(job_id, **members))
        return job_id

    def change(self, job_id, **members):
        with self.changed:
            self.jobs.setdefault(job_id, {}).update(members)
            self.logs.setdefault(job_id, b"")
            self.version += 1
            self.changed.notify_all()

    def log(self, job_id, data):
        with self.changed:
            self.logs[job_id] += data
            self.changed.notify_all()

    def event(self, **members):
        with self.changed:
            event = {"seq": len(self.events) + 1, "at": "2026-11-21T10:00:00.000Z", "actor": "argusd"}
            self.events.append({**event, **members})
            self.changed.notify_all()

    def find(self, name):
        if name in self.jobs:
            return [name]
        named = [j["id"] for j in self.jobs.values() if j["name"] == name]
        return named or [i for i in self.jobs if i.startswith(name)]

    def seen(self, method, pattern):
        return [r for r in self.requests if r[0] == method and re.search(pattern, r[1])]
