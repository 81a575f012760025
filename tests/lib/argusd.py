# SPDX-License-Identifier: Apache-2.0
"""A whole Argus for a test: the real argusd with its own root, port and tokens, beside a fake Ray.

    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        job = argusd.submit("echo hello")
        argusd.wait_over(job)
"""

import base64
import contextlib
import functools
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from contract import contract_of
from fakeray import wait_for
from ports import free_port
from programs import PROGRAMS

needs_argusd = pytest.mark.skipif(PROGRAMS is None, reason="argusd, argus and argus-shepherd are not built")

PATIENCE = int(os.environ.get("ARGUS_PATIENCE", "150"))  # seconds for whatever is waited for: far more than it needs
OVER = ("SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT")
ROLES = ("admin", "user", "viewer")
MADE = {}  # {who is there: (tokens, {file of a state_dir: content})}


def until(condition, what):
    return wait_for(condition, what, PATIENCE)


class Reply:
    def __init__(self, raw):
        self.status, self.headers, self.body = raw.status, raw.headers, raw.read()

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:2000]!r}>"


class Stream:
    """An event stream: iterate over (id, event, data); close() cuts it."""

    def __init__(self, connection, raw, judge):
        self.connection, self.raw, self.judge = connection, raw, judge
        self.status, self.headers = raw.status, raw.headers

    def __iter__(self):
        event = {}
        while line := self.raw.readline():
            line = line.rstrip(b"\n").rstrip(b"\r").decode()
            if line.startswith(":"):
                continue
            if line:
                key, _, value = line.partition(":")
                event[key] = value.removeprefix(" ")
            elif "data" in event:
                data = json.loads(event["data"])
                self.judge(data)
                yield event.get("id"), event.get("event", "message"), data
                event = {}

    def close(self):
        self.raw.close()
        self.connection.close()


class Argusd:
    """Configuration keys are given as lines of YAML: more="limits: {live_jobs: 200}"."""

    others = {"user": "alice", "viewer": "victor"}  # who is there besides the admin
    networks = "127.0.0.0/8, 10.99.0.0/16"  # where nodes of the fake Ray may be, which nobody registered

    def __init__(self, home, ray_url, more="", shared_root=None, state_dir=None):
        self.home = pathlib.Path(home)
        self.root = pathlib.Path(shared_root or self.home / "shared")
        self.state_dir = pathlib.Path(state_dir or self.home / "state")
        self.config = self.home / "argus.yaml"
        self.log = self.home / "argusd.log"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.ray_url, self.more = ray_url, more
        self.process, self.tokens = None, {}
        self.env = {}  # of argusd, beside ours

    def __enter__(self):
        self.root.mkdir(parents=True, exist_ok=True)
        self.write_config()
        self.init_all()
        return self.start()

    def __exit__(self, kind, *_):
        if self.process is not None:
            self.process.terminate()
            try:
                code = self.process.wait(PATIENCE)
            finally:
                self.process.kill()
                self.process.wait()
                self.process = None
            if kind is None:
                assert code == 0, f"argusd ended with {code}:\n{self.said()[-4000:]}"
        if kind is None:
            assert "Sanitizer" not in self.said(), self.said()[-8000:]
            assert "runtime error" not in self.said(), self.said()[-8000:]

    def write_config(self):
        self.config.write_text(
            f"shared_root: {self.root}\nlisten: 127.0.0.1:{self.port}\nstate_dir: {self.state_dir}\n"
            f'ray: {{address: "{self.ray_url}", networks: [{self.networks}]}}\n'
            f"shepherd: {PROGRAMS['argus-shepherd']}\n{self.more}\n"
        )

    def init_all(self):
        """argusd itself makes the first store and its tokens; later ones begin with a copy of it."""
        who = str(self.others)
        if self.state_dir.exists():
            self.init_each()
        elif who in MADE:
            self.tokens.update(MADE[who][0])
            self.state_dir.mkdir(0o700, parents=True)
            for name, content in MADE[who][1].items():
                (self.state_dir / name).touch(0o600)
                (self.state_dir / name).write_bytes(content)
        else:
            self.init_each()
            MADE[who] = dict(self.tokens), {file.name: file.read_bytes() for file in self.state_dir.iterdir()}

    def init_each(self):
        self.tokens["admin"] = self.init()
        for role, user in self.others.items():
            self.tokens[role] = self.init("--user", user, "--role", role)

    def init(self, *args):
        """A token."""
        argv = [PROGRAMS["argusd"], "init", "--config", self.config, *args]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    # -- the process -----------------------------------------------------------------

    def spawn(self):
        """Start it and do not wait for it."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [PROGRAMS["argusd"], "--config", self.config],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **self.env},
            )  # fmt: skip
        return self

    def start(self):
        return self.spawn().wait_up()

    def wait_up(self):
        def answers():
            assert self.process.poll() is None, f"argusd ended with {self.process.returncode}:\n{self.said()[-4000:]}"
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self.ask("GET", "/healthz", None, None, {}).status == 200

        until(answers, "argusd answers")
        return self

    def stop(self):
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.said()[-4000:]
        self.process = None

    def kill9(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def restart(self):
        self.stop()
        return self.start()

    def said(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    # -- the API ---------------------------------------------------------------------

    def open(self, timeout=PATIENCE):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    @staticmethod
    def head(token, headers):
        head = {k.replace("_", "-"): v for k, v in headers.items()}
        return head | ({"Authorization": f"Bearer {token}"} if token else {})

    def call(self, method, path, body=None, token="admin", **headers):
        """token: a role, a token's text, or None. A body that is no text is sent as JSON. Asked again
        while argusd has just started, as every client does."""

        def ready():
            reply = self.ask(method, path, body, token, dict(headers))
            return None if reply.status == 503 and b'"urn:argus:problem:not_yet"' in reply.body else reply

        reply = until(ready, "argusd has looked at the shared root")
        self.contract.judge(method, path, body if isinstance(body, dict) else None, reply)
        return reply

    @functools.cached_property
    def contract(self):
        """What argusd itself says that its replies are."""
        return contract_of(self.ask("GET", "/v1/openapi.json", None, None, {}).body)

    def ask(self, method, path, body, token, headers):
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            headers.setdefault("Content_Type", "application/json")
        elif body is not None:
            headers.setdefault("Content_Type", "application/yaml")
        with contextlib.closing(self.open()) as c:
            c.request(method, path, body, self.head(self.tokens.get(token, token), headers))
            return Reply(c.getresponse())

    def get(self, path, **headers):
        reply = self.call("GET", path, **headers)
        assert reply.status == 200, reply
        return reply.json()

    def stream(self, path, token="admin", **headers):
        c = self.open()
        c.request("GET", path, None, self.head(self.tokens.get(token, token), headers))
        raw = c.getresponse()
        assert raw.status == 200, raw.read()
        return Stream(c, raw, lambda data: self.contract.judge_message(path, data))

    # -- jobs ------------------------------------------------------------------------

    @staticmethod
    def spec(entrypoint, **keys):
        if isinstance(entrypoint, str):
            entrypoint = ["/bin/sh", "-c", entrypoint]
        return {"workload": "ray", "entrypoint": entrypoint, "nnodes": 1, "n_gpus_per_node": 0, **keys}

    @staticmethod
    def python(script, *args, **keys):
        return Argusd.spec([sys.executable, "-c", script, *map(str, args)], **keys)

    def post(self, spec, query="", **more):
        return self.call("POST", "/v1/jobs" + query, spec, **more)

    def submit(self, spec, token="user", **keys):
        """The id of a new job. A text is a shell line. Refused for as long as a busy machine keeps argusd's own look at
        the root from its end."""
        body = spec if isinstance(spec, dict) else self.spec(spec)

        def answered():
            reply = self.post({**body, **keys}, token=token)
            return None if reply.status == 503 and b"shared_root_hangs" in reply.body else reply

        reply = until(answered, "the shared root answers")
        assert reply.status == 201, reply
        return reply.json()["id"]

    def job(self, job):
        return self.get(f"/v1/jobs/{job}")

    def stop_job(self, job, token="admin"):
        reply = self.call("POST", f"/v1/jobs/{job}:stop", token=token)
        assert reply.status in (200, 202), reply
        return reply.json()

    def wait_job(self, job, condition, what):
        """The first view of the job for which condition(view) is true."""
        seen = {}

        def look():
            seen["last"] = self.job(job)
            return condition(seen["last"]) and seen["last"]

        try:
            return until(look, f"{job} {what}")
        except AssertionError as e:
            raise AssertionError(f"{e}; last: {seen.get('last')}; {self.said()[-3000:]}") from None

    def wait_state(self, job, *states):
        return self.wait_job(job, lambda j: j["state"] in states, f"is {states}")

    def wait_over(self, job):
        return self.wait_state(job, *OVER)

    def all_jobs(self, query=""):
        """Every row of the list, page by page."""
        rows, cursor = [], ""
        while cursor is not None:
            page = self.get(f"/v1/jobs?limit=100{query}" + (f"&cursor={cursor}" if cursor else ""))
            rows += page["jobs"]
            cursor = page["next_cursor"]
        return rows

    def events(self, job=None):
        path, since, rows = f"/v1/jobs/{job}/events" if job else "/v1/events", 0, []
        while True:
            page = self.get(f"{path}?since={since}&limit=1000")
            rows += page["events"]
            if not page["events"]:
                return rows
            since = page["next"]

    def kinds(self, job):
        return [e["kind"] for e in self.events(job)]

    def job_dir(self, job):
        return self.root / "jobs" / job

    def log_file(self, job, attempt=1):
        return self.job_dir(job) / "attempts" / str(attempt) / "logs" / "driver.log"

    def follow(self, job, query="", **headers):
        """Read a log stream to its end: (bytes, data of the end event)."""
        data = bytearray()
        stream = self.stream(f"/v1/jobs/{job}/logs?follow=1{query}", **headers)
        try:
            for _, kind, event in stream:
                if kind == "end":
                    return bytes(data), event
                assert event["offset"] == len(data), "a gap in the stream"
                data += base64.b64decode(event["b64"])
        finally:
            stream.close()
        raise AssertionError("the stream broke")


def pause(seconds):
    """Give the others a moment; nothing depends on how long it is."""
    end = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() >= end, "time goes on")
