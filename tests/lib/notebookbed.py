# SPDX-License-Identifier: Apache-2.0
"""Notebooks of an argusd: asked for by its API, opened at its door, and cells run in them by a kernel's own protocol.

class Bed(Door): ...                             has argusd, python and door
bed.ready("main")                                alice's, once it is READY
cookie, to = bed.enter("main")
with bed.kernel("main", "a.ipynb") as kernel:    in the environment that lab_environment() finds
    kernel.run("print(6 * 7)")
"""

import contextlib
import http.client
import json
import subprocess

import pytest
from fakeray import wait_for
from raybed import env_path

from argusd import PATIENCE

# A page's connection to the kernel of a notebook, in the environment of JupyterLab: a line that asks, a line that
# answers. A kernel that was told to be restarting is met again by a connection of another session, as a new page's is.
TALK = """
import json, sys, urllib.request
import websocket
from jupyter_client.session import Session

base, mine, path = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
of = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
lines = {**mine, "Content-Type": "application/json"}
request = urllib.request.Request(f"http://{base}/api/sessions", json.dumps(of).encode(), lines, method="POST")
with urllib.request.urlopen(request, timeout=120) as reply:
    kernel = json.loads(reply.read())["kernel"]["id"]

def connect():
    session = Session()
    at = f"ws://{base}/api/kernels/{kernel}/channels?session_id={session.session}"
    return session, websocket.create_connection(at, header=mine, timeout=120)

def run(code):
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False,
               "stop_on_error": True}
    message, text = session.msg("execute_request", content, metadata={"cellId": "one"}), ""
    ws.send(json.dumps({**message, "channel": "shell"}, default=str))
    while True:
        got = json.loads(ws.recv())
        if got["parent_header"].get("msg_id") != message["header"]["msg_id"]:
            continue
        if got["msg_type"] == "stream":
            text += got["content"]["text"]
        if got["msg_type"] == "error":
            text += got["content"]["ename"] + ": " + got["content"]["evalue"]
        if got["msg_type"] == "status" and got["content"]["execution_state"] == "idle":
            return text

def told(state):
    while True:
        got = json.loads(ws.recv())
        if got["msg_type"] == "status" and got["content"]["execution_state"] == state:
            return state

session, ws = connect()
for line in sys.stdin:
    asked = json.loads(line)
    if "run" in asked:
        answer = run(asked["run"])
    else:
        answer = told(asked["told"])
        ws.close()
        session, ws = connect()
    print(json.dumps(answer), flush=True)
ws.close()
"""


def lab_environment():
    """The environment that has JupyterLab; without one the test is skipped."""
    path = env_path("jupyter")
    if path is None:
        pytest.skip("no environment with JupyterLab: tools/setup/setup jupyter makes it")
    return path


class Kernel:
    def __init__(self, python, base, cookie, path):
        argv = [python, "-c", TALK, base, json.dumps({"Cookie": cookie}), path]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process.stderr.close()

    def ask(self, **what):
        """Ends at last: whatever the program waits for has a time limit there."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(what) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"{what}: {self.process.stderr.read()[-4000:]}"
        return json.loads(line)

    def run(self, code):
        """What a cell prints; the error that ends it, too."""
        return self.ask(run=code)

    def told(self, state):
        """Waits until the page is told this state of the kernel, and connects anew."""
        return self.ask(told=state)


class Door:
    """A subclass sets argusd, python (which runs the program of the lease) and door, the port that it listens at.
    Without a token it is alice who asks."""

    patience = PATIENCE

    @staticmethod
    def lines(port, keys=""):
        """The door as argus.yaml has it."""
        return f"notebooks: {{listen: '127.0.0.1:{port}', url: 'http://localhost:{port}'{keys}}}\n"

    @property
    def host(self):
        """By which people know the door."""
        return f"localhost:{self.door}"

    def call(self, method, path, body=None, token="user"):
        return self.argusd.call(method, path, body, token=token)

    def start(self, name="main", status=201, token="user", **more):
        reply = self.call("POST", "/v1/notebooks", {"name": name, "python": self.python, **more}, token=token)
        assert reply.status == status, reply
        return reply.json()

    def page(self, name="main", token="user"):
        reply = self.call("GET", f"/v1/notebooks/{name}", token=token)
        return reply.json() if reply.status == 200 else None

    def wait(self, state, name="main", token="user"):
        try:
            wait_for(lambda: self.page(name, token)["state"] == state, f"{name} is {state}", self.patience)
        except AssertionError as e:
            raise AssertionError(f"{e}: {self.page(name, token)}") from None
        return self.page(name, token)

    def ready(self, name="main", token="user", **more):
        self.start(name, token=token, **more)
        return self.wait("READY", name, token)

    def gone(self, name="main", token="user"):
        self.call("POST", f"/v1/notebooks/{name}:stop", token=token)
        self.wait("STOPPED", name, token)
        assert self.call("DELETE", f"/v1/notebooks/{name}", token=token).status == 200

    def url(self, name="main", token="user"):
        reply = self.call("POST", f"/v1/notebooks/{name}:open", token=token)
        assert reply.status == 200, reply
        return reply.json()["url"]

    def ask(self, path, cookie=None, method="GET", host=None, **headers):
        """At the door. -> (status, headers, body)"""
        c = http.client.HTTPConnection("127.0.0.1", self.door, timeout=60)
        lines = {"Host": host or self.host, **{k.replace("_", "-"): v for k, v in headers.items()}}
        if cookie:
            lines["Cookie"] = cookie
        c.request(method, path, headers=lines)
        r = c.getresponse()
        body = r.read()
        c.close()
        return r.status, r.headers, body

    def enter(self, name="main", token="user", cookie=None):
        """A cookie of the door."""
        url = self.url(name, token)
        assert url.startswith(f"http://{self.host}/open?ticket=")
        path = url.removeprefix(f"http://{self.host}")
        status, headers, body = self.ask(path, cookie)
        if status == 200:  # it is asked whether that is you
            assert b"<h1>" in body and "form-action 'self'" in headers["Content-Security-Policy"]
            assert headers["Set-Cookie"] is None and path.encode() in body
            status, headers, body = self.ask(path, cookie, "POST", Origin=f"http://{self.host}")
        assert status == 303, (status, body)
        line = headers["Set-Cookie"]
        assert "HttpOnly" in line and "SameSite=Lax" in line and "Path=/" in line
        return line.partition(";")[0], headers["Location"]

    def kernel(self, name, path, user="alice"):
        """That of the notebook's file at this path: a running one is met again."""
        return Kernel(self.python, f"{self.host}/n/{user}/{name}", self.enter(name)[0], path)
