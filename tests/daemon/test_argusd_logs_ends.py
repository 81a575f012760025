# SPDX-License-Identifier: Apache-2.0
"""Logs are whole after every kind of end: what followers got, by its digest, beside what the program wrote."""

import concurrent.futures
import hashlib
import subprocess

import pytest
from fakeray import FakeRay
from test_argusd_logs import Following

from argusd import PROGRAMS, Argusd, needs_argusd, until

pytestmark = needs_argusd

# Bytes of every kind; a copy of them is the truth. Half of it before the gate opens. Then the end that is asked for.
WRITER = """
import os, random, select, signal, sys
how, gate, copy = sys.argv[1:]
r, copy = random.Random(how), open(copy, "wb", buffering=0)
for half in range(2):
    for i in range(150):
        data = r.randbytes(r.choice([1, 2, 17, 4096, 9000])) + b"\\n" * r.randrange(3)
        os.write(1, data)
        copy.write(data)
    while half == 0 and not os.path.exists(gate):
        select.select([], [], [], 0.02)
copy.write(b"")
os.rename(sys.argv[3], sys.argv[3] + ".whole")
if how == "signal":
    os.kill(os.getpid(), signal.SIGKILL)
if how in ("stop", "timeout"):
    select.select([], [], [])
os._exit(3 if how == "fails" else 0)
"""
ENDS = {"exits": "SUCCEEDED", "fails": "FAILED", "signal": "FAILED", "stop": "STOPPED", "timeout": "TIMEOUT"}
STATUS = {"SUCCEEDED": 0, "FAILED": 10, "STOPPED": 11, "TIMEOUT": 12}


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Case:
    def __init__(self, argusd, how):
        self.argusd, self.how = argusd, how
        self.copy = argusd.home / how
        more = {"timeout": "90s"} if how == "timeout" else {}  # all is written by then
        self.job = argusd.submit(argusd.python(WRITER, how, argusd.home / "go", self.copy), stop_grace="1s", **more)

    def begin(self, pool):
        """One who follows in one go, one whose connection is cut all the time, and the command line."""
        self.followers = [Following(self.argusd, self.job), Following(self.argusd, self.job, cut_after=2)]
        self.going = [pool.submit(f.run) for f in self.followers]
        env = {"ARGUS_URL": self.argusd.url, "ARGUS_TOKEN": self.argusd.tokens["user"], "HOME": str(self.argusd.home)}
        argv = [PROGRAMS["argus"], "logs", "-f", self.job]
        self.printed = self.argusd.home / (self.how + ".out")
        with open(self.printed, "wb") as out:
            self.command = subprocess.Popen(argv, env=env, stdout=out, stderr=subprocess.PIPE)
        self.said = pool.submit(self.command.communicate)
        until(self.has_begun, "all have begun")

    def has_begun(self):
        for g in self.going:
            if g.done():
                g.result()  # raises what went wrong
        return all(f.last for f in self.followers) and self.printed.stat().st_size

    def finish(self):
        whole = self.copy.with_name(self.how + ".whole")
        until(whole.exists, "all is written")
        if self.how == "stop":
            self.argusd.stop_job(self.job)
        want = digest(whole.read_bytes())
        assert {digest(g.result()) for g in self.going} == {want}, self.how
        _, err = self.said.result()
        assert digest(self.printed.read_bytes()) == want, self.how
        assert self.command.returncode == STATUS[ENDS[self.how]], err
        assert f"job {self.job} {ENDS[self.how]}".encode() in err.splitlines()[-1]
        assert {f.end["state"] for f in self.followers} == {ENDS[self.how]}
        assert digest(self.argusd.follow(self.job)[0]) == want, self.how  # and for whoever comes later


ALIVE = pytest.param(False, marks=pytest.mark.nightly)


@pytest.mark.parametrize("killed", [ALIVE, True], ids=["alive", "argusd-killed"])
def test_every_end_leaves_a_whole_log(tmp_path, killed):
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd, concurrent.futures.ThreadPoolExecutor(20) as pool:
        cases = [Case(argusd, how) for how in ENDS if how != "timeout" or not killed]  # that one takes long
        for case in cases:
            argusd.wait_state(case.job, "RUNNING")
            case.begin(pool)
        if killed:
            argusd.kill9()
        (argusd.home / "go").touch()
        if killed:
            argusd.start()
        for case in cases:
            case.finish()


# Its first attempt fails, its second succeeds; each waits for its own gate.
TWICE = """
import os, select, sys
k = os.environ["ARGUS_ATTEMPT"]
os.write(1, f"attempt {k} begins\\n".encode())
while not os.path.exists(sys.argv[1] + k):
    select.select([], [], [], 0.02)
os.write(1, f"attempt {k} ends\\n".encode())
os._exit(1 if k == "1" else 0)
"""


def test_a_follower_goes_on_with_the_next_attempt(tmp_path):
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        restart = {"max": 1, "backoff": "1s", "on": ["unknown", "user_code_error"]}
        job = argusd.submit(argusd.python(TWICE, argusd.home / "go"), restart=restart)
        argusd.wait_state(job, "RUNNING")
        env = {"ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "HOME": str(argusd.home)}
        with open(argusd.home / "out", "w+b") as out:
            argv = [PROGRAMS["argus"], "logs", "-f", job]
            with subprocess.Popen(argv, env=env, stdout=out, stderr=subprocess.PIPE) as command:
                until(lambda: b"attempt 1 begins" in (argusd.home / "out").read_bytes(), "it follows")
                (argusd.home / "go1").touch()
                until(lambda: b"attempt 2 begins" in (argusd.home / "out").read_bytes(), "the second attempt")
                argusd.restart()  # it comes back to the second attempt, at its place
                (argusd.home / "go2").touch()
                _, err = command.communicate()
        assert command.returncode == 0, err
        want = "".join(f"attempt {k} begins\nattempt {k} ends\n" for k in (1, 2))
        assert (argusd.home / "out").read_bytes().decode() == want
        assert b"attempt 2 begins" in err
        assert argusd.follow(job, "&attempt=1")[0] == b"attempt 1 begins\nattempt 1 ends\n"
        ids = [number for number, kind, _ in argusd.stream(f"/v1/jobs/{job}/logs?follow=1") if kind == "log"]
        assert ids[-1] == "2:32"
        again = argusd.stream(f"/v1/jobs/{job}/logs?follow=1", Last_Event_ID="1:17")
        rest = [e for _, kind, e in again if kind == "log"]
        assert [(e["attempt"], e["offset"]) for e in rest] == [(1, 17), (2, 0)]
