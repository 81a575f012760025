# SPDX-License-Identifier: Apache-2.0
"""A node for scouts: a program in the place of Ray's raylet, its session, and an attempt whose shepherd it starts."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

from fakedriver import give_gpus, set_gpus
from hookfile import place_hook
from shepherding import SHEPHERD, Attempt, is_running, wait_for

RAYLET = """
import json, subprocess, sys
open("/proc/self/comm", "w").write("raylet")
for line in sys.stdin:
    argv, env = json.loads(line)
    print(subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=2).pid, flush=True)
"""
# As a worker of Ray: its log is a file of the session, and it lives until it is killed.
WORKER = """
import contextlib, os, select, sys
name = f"{sys.argv[1]}/worker-{sys.argv[2] * 56}-{os.environ['RAY_JOB_ID']}-{os.getpid()}"
out = open(name + ".out", "w", buffering=1)
print(":job_id:" + os.environ["RAY_JOB_ID"] + "\\n:actor_name:Actor\\nsecret " + sys.argv[3], file=out)
def wait_for_nobody():
    while True:
        select.select([], [], [], 0.05)
        if os.path.exists(sys.argv[1] + "/more"):
            print("more", file=out)
            with contextlib.suppress(FileNotFoundError):  # another worker saw it as well, and was quicker
                os.unlink(sys.argv[1] + "/more")
        if os.path.exists(sys.argv[1] + "/grow"):
            much = bytearray(300 << 20)
wait_for_nobody()
"""
CANARY = "canary-0123456789"


class Node:
    """A raylet, its session, and an attempt whose shepherd it starts."""

    def __init__(self, tmp_path, command, name="w1"):
        self.root, self.name = tmp_path, name
        self.attempt = Attempt(tmp_path)
        self.dir = self.attempt.dir
        self.logs = tmp_path / "session" / "logs"
        self.logs.mkdir(parents=True)
        binary = tmp_path / "argus" / "bin" / os.uname().machine
        binary.mkdir(parents=True)
        (binary / "argus-shepherd").symlink_to(SHEPHERD)
        self.bin = binary
        hook = tmp_path / "argus" / "hook"
        hook.mkdir()
        place_hook(hook)
        secrets = tmp_path / "secrets"
        secrets.write_text(json.dumps({"MY_TOKEN": CANARY}))
        self.job = f"j{os.getpid()}"  # the scout's place is in /tmp, which all tests share
        self.attempt.shell(
            command, worker_secrets=str(secrets), job=self.job, env={"ARGUS_DRIVER_NODE": name, **self.marks()}
        )
        script = tmp_path / "raylet.py"
        script.write_text(RAYLET)
        (tmp_path / "default_worker.py").write_text(WORKER)
        self.raylet = subprocess.Popen(
            [sys.executable, script, f"--log_dir={self.logs}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.pids = []

    def marks(self):
        return {"ARGUS_ATTEMPT_DIR": str(self.dir), "ARGUS_JOB_ID": self.job, "ARGUS_ATTEMPT": "1"}

    def start(self, argv, env):
        self.raylet.stdin.write(json.dumps([[str(a) for a in argv], env]) + "\n")
        self.raylet.stdin.flush()
        self.pids.append(int(self.raylet.stdout.readline()))
        return self.pids[-1]

    def shepherd(self):
        return self.start([SHEPHERD, self.dir], dict(os.environ))

    def worker(self, letter="a", job="02000000", prefix=()):
        env = {
            **os.environ, **self.marks(), "RAY_RAYLET_PID": str(self.raylet.pid), "RAY_JOB_ID": job,
            "PYTHONPATH": str(self.root / "argus" / "hook"), "RANK": "3",
            "ARGUS_LEASE": json.dumps({"job": self.job, "attempt": 1, "gpus": 0,
                                       "nodes": [{"name": self.name, "id": "aa"}]}),
        }  # fmt: skip
        argv = [sys.executable, self.root / "default_worker.py", self.logs, letter, CANARY, "--node-id=aa"]
        return self.start([*prefix, *argv], env)

    def scout(self):
        file = self.dir / "scouts" / f"{self.name}.json"
        return json.loads(wait_for(lambda: file.exists() and file.read_text(), "a scout"))["pid"]

    def copies(self):
        return sorted((self.dir / "logs" / "workers" / self.name).glob("worker-*"))

    def copied(self, text):
        found = lambda: [f for f in self.copies() if text in f.read_text()]  # noqa: E731
        return wait_for(found, f"'{text}' in a copied log")[0]

    def facts(self):
        file = self.dir / "scene" / self.name / "scene.json"
        return json.loads(wait_for(lambda: file.exists() and file.read_text(), "the facts of the scene"))

    def place(self):
        return f"/tmp/argus-{os.getuid()}-{self.job}-a1-{os.uname().nodename}-{self.raylet.pid}"

    def places(self):
        return list(pathlib.Path("/tmp").glob(f"argus-{os.getuid()}-{self.job}-a1-*-{self.raylet.pid}"))

    def gone(self, scout):
        """With all that it had: its keeper ends after it."""
        scouts = self.dir / "scouts"
        wait_for(lambda: not is_running(scout) and not self.places() and not scouts.exists(), "the end of the scout")

    def close(self):
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.raylet.kill()
        self.raylet.communicate()
        scouts = self.dir / "scouts" / f"{self.name}.json"
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            os.kill(json.loads(scouts.read_text())["pid"], signal.SIGTERM)

    def give_gpus(self, *lines):
        """A driver with these GPUs: fake_nvml.c says how they are written."""
        give_gpus(self.bin, SHEPHERD.parent / "argus-gpus", *lines)

    def set_gpus(self, *lines):
        set_gpus(self.bin, *lines)

    def gpu_book(self):
        file = self.dir / "gpus" / f"{self.name}.json"
        return json.loads(file.read_text()) if file.exists() else None
