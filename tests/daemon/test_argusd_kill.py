# SPDX-License-Identifier: Apache-2.0
"""kill -9 of argusd at any moment of submits, starts, runs and stops: nothing acknowledged is lost, nothing is doubled,
nothing is started twice, and every log is whole. ARGUS_KILL_LOOPS kills (60); nightly takes more."""

import hashlib
import http.client
import os
import random
import threading
import urllib.parse

import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, pause, until

pytestmark = [needs_argusd, pytest.mark.timeout(0)]

LOOPS = int(os.environ.get("ARGUS_KILL_LOOPS", "60"))
JOBS = max(LOOPS * 3 // 4, 8)
SPREAD = 3  # submitters
LIMITS = "limits: {live_jobs: 24, submit_per_second: 200}"
NODES = [
    {"name": "head", "ip": "10.99.0.1", "head": True, "resources": {}},
    {"name": "w1", "ip": "10.99.0.2", "resources": {"CPU": 64, "GPU": 8, "worker_node": 100, "argus_node_w1": 1000}},
]
ENDLESS = "echo up; exec tail -f /dev/null"


def is_endless(n):
    """These are stopped; the others end by themselves."""
    return n % 4 == 3


def shell_line(n):
    return ENDLESS if is_endless(n) else f"seq {n} {n + 4000}; timeout 0.1 tail -f /dev/null; echo end {n}"


def expected_log(n):
    return ("".join(f"{i}\n" for i in range(n, n + 4001)) + f"end {n}\n").encode()


class Storm:
    """Clients that ask until they are answered, and one who kills."""

    def __init__(self, argusd, seed):
        self.argusd, self.random = argusd, random.Random(seed)
        self.kills = 0
        self.ids, self.statuses, self.failures = {}, {}, []
        self.turn = threading.Condition()

    def insist(self, method, path, body=None, **headers):
        """An answer that is none of an argusd that is just coming or going."""

        def ask():
            try:
                reply = self.argusd.call(method, path, body, **headers)
            except (OSError, http.client.HTTPException):
                return None
            return reply if reply.status not in (503,) else None

        return until(ask, f"an answer to {method} {path}")

    def guarded(self, what, *args):
        try:
            what(*args)
        except BaseException as e:  # told by the test's own thread
            self.failures.append(e)

    def wait_turn(self, n):
        """Job n comes after its share of the kills, so that they meet each stage of its life."""
        with self.turn:
            self.turn.wait_for(lambda: self.kills >= n * LOOPS // JOBS)

    def submit(self, first):
        for n in range(first, JOBS, SPREAD):
            self.wait_turn(n)
            spec = Argusd.spec(shell_line(n), stop_grace="5s")
            reply = self.insist("POST", "/v1/jobs", spec, token="user", Idempotency_Key=f"job-{n}")
            assert reply.status in (200, 201), reply
            self.ids[n] = reply.json()["id"]

    def stop(self):
        for n in range(JOBS):
            if not is_endless(n):
                continue
            until(lambda n=n: n in self.ids or self.failures, f"job {n} was taken")
            if self.random.random() < 0.7:  # the others are stopped wherever they are
                states = ("RUNNING",)
                until(lambda n=n: self.state(n) in states, f"job {n} runs")
            reply = self.insist("POST", f"/v1/jobs/{self.ids[n]}:stop", token="user")
            assert reply.status in (200, 202), reply

    def state(self, n):
        return self.insist("GET", "/v1/jobs/" + urllib.parse.quote(self.ids[n])).json()["state"]

    def kill(self):
        for _ in range(LOOPS):
            long = self.random.random() < 0.25
            pause(self.random.uniform(0, 1.2 if long else 0.3))
            self.argusd.kill9()
            self.argusd.spawn()
            with self.turn:
                self.kills += 1
                self.turn.notify_all()

    def run(self):
        work = [(self.submit, i) for i in range(SPREAD)] + [(self.stop,)]
        threads = [threading.Thread(target=self.guarded, args=w, daemon=True) for w in work]
        for t in threads:
            t.start()
        self.kill()
        for t in threads:
            t.join()
        if self.failures:
            raise self.failures[0]
        self.argusd.wait_up()


def check_events(argusd, rows):
    """Global numbers without a gap; each job's states follow from one another."""
    events = argusd.events()
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    chains = {}
    for e in events:
        if e.get("job") and e.get("to"):
            chains.setdefault(e["job"], []).append(e)
    for row in rows:
        chain = chains[row["id"]]
        assert [e["kind"] for e in chain].count("submitted") == 1
        state = None
        for e in chain:
            assert e.get("from") == state, chain
            state = e["to"]
        assert state == row["state"]


def check_starts(argusd, ray, ids):
    starts = ray.starts()
    for n, job in ids.items():
        view = argusd.job(job)
        times = [len(starts.get(a["ray_id"], [])) for a in view["attempts"]]
        assert sum(times) <= 1, (n, view, starts)
        if view["state"] == "SUCCEEDED":
            assert sum(times) == 1, (n, view)
    ours = {a["ray_id"] for job in ids.values() for a in argusd.job(job)["attempts"]}
    assert set(starts) <= ours


def check_log(argusd, job, n):
    reply = argusd.call("GET", f"/v1/jobs/{job}/logs?limit=8000000")
    assert reply.status == 200
    assert hashlib.sha256(reply.body).hexdigest() == hashlib.sha256(expected_log(n)).hexdigest(), (n, job)
    assert argusd.log_file(job).read_bytes() == reply.body


def test_kill_at_any_moment(tmp_path):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    state = tmp_path / "ray"
    with FakeRay(nodes=NODES, state=state) as ray, Argusd(tmp_path, ray.url, more=LIMITS) as argusd:
        ray.settings(driver_delay=0.01, start_delay=0.01)
        storm = Storm(argusd, seed)
        storm.run()
        assert sorted(storm.ids) == list(range(JOBS))
        assert len(set(storm.ids.values())) == JOBS
        for job in storm.ids.values():
            argusd.wait_over(job)
        rows = argusd.all_jobs()
        assert sorted(r["id"] for r in rows) == sorted(storm.ids.values())
        state = {r["id"]: r for r in rows}
        wrong = [
            state[job] for n, job in storm.ids.items()
            if state[job]["state"] != ("STOPPED" if is_endless(n) else "SUCCEEDED")
        ]  # fmt: skip
        assert wrong == []
        check_starts(argusd, ray, storm.ids)
        check_events(argusd, rows)
        for n, job in storm.ids.items():
            if not is_endless(n):
                check_log(argusd, job, n)
