# SPDX-License-Identifier: Apache-2.0
"""A fake Ray for a test: start it, spoil it, kill it, start it again; see fake_ray/fake_ray.py for what it does."""

import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

from nursery import nursery_of
from ports import free_port

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "fake_ray" / "fake_ray.py"
DEADLINE = 150  # of whatever is waited for: far more than a loaded machine needs


def wait_for(condition, what, seconds=DEADLINE):
    """The first true value of condition(). A file that is not there yet is a condition that is not true yet."""
    end = time.monotonic() + seconds
    missing = ""
    while time.monotonic() < end:
        try:
            value = condition()
            missing = ""
        except FileNotFoundError as e:
            value, missing = None, f"; there is no {e.filename}"
        if value:
            return value
        select.select([], [], [], 0.02)
    raise AssertionError(f"{what}: not seen within {seconds} s{missing}")


class FakeRay:
    """`state` (a directory) lets it be killed and started again on the same port. `wrap` is a command that runs it."""

    def __init__(self, version="2.51.1", nodes=None, state=None, token=None, wrap=()):
        self.version, self.nodes, self.state, self.token = version, nodes, state, token
        self.port, self.control_port = (free_port(), free_port()) if state else (0, 0)
        self.wrap = wrap
        self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def start(self):
        args = ["--version", self.version, "--port", str(self.port), "--control-port", str(self.control_port)]
        if self.nodes is not None:
            spec = pathlib.Path(self.state) / "spec.json"
            spec.parent.mkdir(parents=True, exist_ok=True)
            spec.write_text(json.dumps(self.nodes))
            args += ["--spec", str(spec)]
        if self.state is not None:
            args += ["--state", str(self.state)]
        if self.token is not None:
            args += ["--token", self.token]
        # Not to a pipe: entrypoints inherit nothing of it, and nobody has to read it.
        if self.wrap:
            argv = [*self.wrap, sys.executable, str(PROGRAM), *args]
            self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        else:
            self.process = nursery_of(PROGRAM).start(args)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the fake Ray did not start: {self.process.wait()}")
        ready = json.loads(line)
        self.url, self.control = ready["url"], ready["control"]
        self.port = int(self.url.rsplit(":", 1)[1])
        self.control_port = int(self.control.rsplit(":", 1)[1])
        return self

    def stop(self):
        """It and every process that it started."""
        if self.process is None:
            return
        self.process.terminate()
        self.process.wait(DEADLINE)
        self.process.stdout.close()
        self.process = None

    def kill(self):
        """kill -9: what it started goes on. Needs `state`; start() takes it up again."""
        assert self.state is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.process = None

    # -- control -------------------------------------------------------------------

    def ask(self, method, path, body=None):
        request = urllib.request.Request(
            self.control + "/_fake/" + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            raise AssertionError(f"{path}: {e.read().decode()}") from e

    def settings(self, **wanted):
        return self.ask("POST", "settings", wanted)

    def fault(self, kind, **rule):
        """fault("hang", method="POST", path="/api/jobs/", count=1)"""
        return self.ask("POST", "faults", {"kind": kind, **rule})

    def heal(self):
        self.ask("DELETE", "faults")

    def listen(self, up):
        self.ask("POST", "listen", {"up": up})

    def node(self, name, state, processes="kill"):
        return self.ask("POST", f"nodes/{name}", {"state": state, "processes": processes})

    def lose_memory(self, kill_after=None):
        return self.ask("POST", "memory", {"kill_after": kill_after})["session"]

    def add_job(self, **record):
        blank = {"job_id": None, "driver_info": None, "message": None, "error_type": None, "metadata": None}
        times = {"start_time": 1, "end_time": None, "runtime_env": None, "driver_exit_code": None}
        node = {"driver_agent_http_address": None, "driver_node_id": None, "entrypoint": "x"}
        self.ask("POST", "jobs", {"type": "SUBMISSION", "status": "RUNNING", **blank, **times, **node, **record})

    def world(self, **wanted):
        return self.ask("POST", "world", wanted)

    def jobs(self):
        """{id: record} as Ray would tell them."""
        return {name: job["record"] for name, job in self.ask("GET", "state")["jobs"].items()}

    def starts(self):
        """{id: [{pid, node, ip, time}]}: what really ran, over all restarts of this state."""
        return self.ask("GET", "starts")

    def requests(self):
        return self.ask("GET", "requests")

    def wait_status(self, name, *statuses):
        return wait_for(
            lambda: (r := self.jobs().get(name)) and r["status"] in statuses and r, f"{name} is one of {statuses}"
        )
