# SPDX-License-Identifier: Apache-2.0
"""kill -9 of argusd by count while runs of a pipeline go on: each step is done once, none is lost. ARGUS_PIPE_KILLS
kills (200); nightly takes more. And a schedule whose times came while argusd was away."""

import contextlib
import datetime
import http.client
import json
import os
import random
import time

import pytest
from fakeray import FakeRay
from preload import needs_compiler
from wallclock import WallClock

from argusd import Argusd, needs_argusd, pause, until

pytestmark = [needs_argusd, pytest.mark.timeout(0)]

KILLS = int(os.environ.get("ARGUS_PIPE_KILLS", "200"))
SEED = int(os.environ.get("ARGUS_SEED", "1"))
STEPS, WAVE = 4, 4  # steps of a run, one behind the other but for the last two; runs at a time
HOUR = 3600


def chain(place):
    """Each step leaves a mark of its run. The first one fails when it is tried first, so that retries are met, too."""
    steps = {}
    for i in range(STEPS):
        mark = f"echo x >> {place}/${{{{ params.n }}}}-s{i}"
        line = f"{mark}; test $(wc -l < {place}/${{{{ params.n }}}}-s0) -ge 2" if i == 0 else mark
        needs = [] if i == 0 else ["s0"] if i == 1 else ["s1"]
        steps[f"s{i}"] = {"cache": False, "needs": needs, "with": {"workload": "ray", "entrypoint": line}}
    steps["s0"]["retry"] = {"limit": 1}
    params = {"n": {"type": "integer", "required": True}}
    return {"name": "killed", "concurrency": "allow", "params": params, "steps": steps}


def marks(place, n):
    return [len((place / f"{n}-s{i}").read_text().split()) for i in range(STEPS)]


class Storm:
    """Waves of runs, and one who kills argusd until he has killed it so often."""

    def __init__(self, argusd, place):
        self.argusd, self.place, self.random = argusd, place, random.Random(SEED)
        self.kills, self.n = 0, 0

    def begin(self):
        self.n += 1
        body = {"params": {"n": self.n}}
        reply = until(
            lambda: (r := self.argusd.call("POST", "/v1/pipelines/killed:run", body, token="user")).status != 503 and r,
            "a run begins",
        )
        assert reply.status == 201, reply
        return self.n, reply.json()["id"]

    def page(self, run):
        """None: there is no answer, because argusd is just coming."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            reply = self.argusd.call("GET", f"/v1/pipeline-runs/{run}", token="user")
            return reply.json() if reply.status == 200 else None

    def is_over(self, run):
        page = self.page(run)
        return page and page["ended_at"] and page

    def kill(self):
        long = self.random.random() < 0.35
        pause(self.random.uniform(0, 2.0 if long else 0.2))
        self.argusd.kill9()
        self.argusd.spawn()
        self.kills += 1

    def wave(self):
        runs = [self.begin() for _ in range(WAVE)]
        while self.kills < KILLS and not all(self.is_over(run) for _, run in runs):
            self.kill()
        self.argusd.wait_up()
        for n, run in runs:
            page = until(lambda run=run: self.is_over(run), f"{run} is over, after {self.kills} kills of seed {SEED}")
            assert page["state"] == "SUCCEEDED", json.dumps(page, indent=1)
            assert marks(self.place, n) == [2] + [1] * (STEPS - 1), f"{run}: kill {self.kills} of seed {SEED}"
            tries = {s["name"]: s["tries"] for s in page["steps"]}
            assert tries == {"s0": 2, **{f"s{i}": 1 for i in range(1, STEPS)}}, json.dumps(page, indent=1)


def check_jobs(argusd, runs):
    """One job for each try, and no other."""
    events = argusd.events()
    jobs = [e["reason"]["args"]["job"] for e in events if e["kind"] == "pipeline_job"]
    assert len(jobs) == len(set(jobs)) == runs * (STEPS + 1)
    submitted = {e["job"] for e in events if e["kind"] == "submitted"}
    assert submitted == set(jobs), "a job that no step knows"


def test_each_step_is_done_once(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path / "home", ray.url) as argusd:
        place = tmp_path / "done"
        place.mkdir()
        assert argusd.call("PUT", "/v1/pipelines/killed", chain(place), token="user").status == 201
        storm = Storm(argusd, place)
        while storm.kills < KILLS:
            storm.wave()
        check_jobs(argusd, storm.n)


@needs_compiler
def test_one_catch_up_after_each_outage(tmp_path):
    """However many times came while argusd was away, one run makes up for them, and the next time lies ahead."""
    clock = WallClock(tmp_path)
    with FakeRay() as ray, contextlib.ExitStack() as until_the_end:
        argusd = Argusd(tmp_path, ray.url)
        argusd.env = clock.env()
        until_the_end.enter_context(argusd)
        text = {"name": "hourly", "steps": {"a": {"uses": "check", "with": {"that": True}}}}
        assert argusd.call("PUT", "/v1/pipelines/hourly", text, token="user").status == 201
        path = "/v1/pipelines/hourly"
        cron = f"{(time.gmtime().tm_min + 30) % 60} * * * *"  # none comes while the test looks
        assert argusd.call("POST", f"{path}:schedule", {"cron": cron}, token="user").status == 200

        def runs():
            return argusd.get("/v1/pipeline-runs?pipeline=hourly")["runs"]

        def ahead():
            """In seconds: a time that is not past begins nothing."""
            at = datetime.datetime.fromisoformat(argusd.get(f"{path}?user=alice")["next_at"])
            return at.timestamp() - (time.time() + clock.offset)

        for outage, hours in enumerate((1, 5, 30), 1):
            argusd.kill9()
            clock.jump(hours * HOUR)
            argusd.start()
            until(lambda n=outage: len(runs()) >= n, f"what came in {hours} hours is made up for")
            argusd.kill9()
            argusd.start()
            assert 0 < ahead() <= HOUR and len(runs()) == outage, runs()
        assert all(r["by_schedule"] and r["state"] == "SUCCEEDED" for r in runs()), runs()
