# SPDX-License-Identifier: Apache-2.0
"""Every state has a deadline and a next state, and neither a wall clock that jumps nor restarts of argusd change it."""

import pytest
from fakeray import FakeRay
from preload import needs_compiler
from wallclock import WallClock

from argusd import Argusd, needs_argusd, until

pytestmark = [needs_argusd, needs_compiler]

DAY = 24 * 3600
PATIENT = "echo up; exec tail -f /dev/null"
LARGE = {"nnodes": 9, "n_gpus_per_node": 4}


class Bed:
    def __init__(self, home, more=""):
        self.ray = FakeRay()
        self.clock = WallClock(home)
        self.home, self.more = home, more

    def __enter__(self):
        self.ray.start()
        self.argusd = Argusd(self.home, self.ray.url, self.more)
        self.argusd.env = self.clock.env()
        self.argusd.__enter__()
        return self

    def __exit__(self, *error):
        try:
            self.argusd.__exit__(*error)
        finally:
            self.ray.stop()

    def a_whole_life(self):
        """When this is over, argusd has looked at every job more than once."""
        assert self.argusd.wait_over(self.argusd.submit("echo marker"))["state"] == "SUCCEEDED"


@pytest.fixture
def b(tmp_path):
    with Bed(tmp_path) as made:
        yield made


@pytest.mark.parametrize("restart", [False, True], ids=["alive", "restart"])
def test_a_clock_set_forward_shortens_nothing(b, restart):
    runs = b.argusd.submit(PATIENT, timeout="20h", stop_grace="2s")
    waits = b.argusd.submit("echo x", **LARGE, queue_timeout="20h")
    b.argusd.wait_state(runs, "RUNNING")
    before = b.argusd.job(runs)["deadline"]
    b.clock.jump(DAY)
    if restart:
        b.argusd.restart()
    b.a_whole_life()
    assert [b.argusd.job(j)["state"] for j in (runs, waits)] == ["RUNNING", "QUEUED"]
    assert b.argusd.job(runs)["deadline"] > before  # by the clock as it is now
    b.argusd.stop_job(runs)
    assert b.argusd.wait_over(runs)["state"] == "STOPPED"


@pytest.mark.parametrize("restart", [False, True], ids=["alive", "restart"])
def test_a_clock_set_back_lengthens_nothing(b, restart):
    runs = b.argusd.submit(PATIENT, timeout="10s", stop_grace="2s")
    waits = b.argusd.submit("echo x", **LARGE, queue_timeout="10s")
    b.argusd.wait_state(runs, "RUNNING")
    b.clock.jump(-DAY)
    if restart:
        b.argusd.restart()
    ended = [b.argusd.wait_over(j) for j in (runs, waits)]
    assert [(j["state"], j["reason"]["code"]) for j in ended] == [("TIMEOUT", "timeout"), ("TIMEOUT", "queue_timeout")]


def test_restarts_do_not_lengthen_it(b):
    """More often than the timeout lasts; it ends all the same."""
    job = b.argusd.submit(PATIENT, timeout="8s", stop_grace="2s")
    b.argusd.wait_state(job, "RUNNING")

    def restarted_until_over():
        b.argusd.restart()
        return b.argusd.job(job)["state"] == "TIMEOUT"

    until(restarted_until_over, "the timeout came between the restarts")


def test_held_time_is_not_waiting(b):
    job = b.argusd.submit("echo x", **LARGE, queue_timeout="3s")
    other = b.argusd.submit("echo x", **LARGE, queue_timeout="3s")
    assert b.argusd.call("POST", f"/v1/jobs/{job}:hold").status == 200
    assert b.argusd.wait_over(other)["state"] == "TIMEOUT"
    b.argusd.restart()
    b.a_whole_life()
    assert b.argusd.job(job)["state"] == "QUEUED"
    assert b.argusd.job(job)["deadline"] is None
    assert b.argusd.call("POST", f"/v1/jobs/{job}:release").status == 200
    assert b.argusd.wait_over(job)["reason"]["code"] == "queue_timeout"


def test_starts_that_come_to_nothing_end(b):
    """Somebody else has the id of each attempt; after five the job fails as the infrastructure's fault."""
    b.ray.fault("status", method="POST", path="/api/jobs/", status=503)
    job = b.argusd.submit("echo mine", submission_id="mine")
    b.argusd.wait_state(job, "STARTING")
    for k in range(1, 9):
        b.ray.add_job(submission_id=job if k == 1 else f"{job}-a{k}", status="RUNNING")
    b.ray.heal()
    view = b.argusd.wait_over(job)
    assert (view["state"], view["finding"]["class"], view["reason"]["code"]) == ("FAILED", "infra", "infra")
    assert [a["state"] for a in view["attempts"]] == ["ABANDONED"] * 5
    assert b.argusd.get("/v1/nodes")["nodes"][0]["gpus"]["used"] == 0


def test_a_start_that_takes_too_long_is_tried_again(tmp_path):
    with Bed(tmp_path, "start_deadline: 10s") as b:
        b.ray.settings(hold_pending=True)
        job = b.argusd.submit("echo x")
        b.ray.wait_status(job, "PENDING")
        b.clock.jump(-DAY)
        b.argusd.restart()
        b.argusd.wait_job(job, lambda v: len(v["attempts"]) > 1, "is sent again")
        assert "start_deadline" in [e["reason"]["code"] for e in b.argusd.events(job)]
        b.ray.settings(hold_pending=False)
        assert b.argusd.wait_over(job)["state"] == "SUCCEEDED"


def test_a_start_that_only_ray_tells_of_is_none(tmp_path):
    """Ray says RUNNING before its runner starts anything: where that dies unnoticed the job has not begun."""
    with Bed(tmp_path, "start_deadline: 10s") as b:
        b.ray.settings(orphans=1, orphan_status="RUNNING")
        job = b.argusd.submit("echo after all")
        assert b.argusd.wait_over(job)["state"] == "SUCCEEDED"
        view = b.argusd.job(job)
        assert [a["state"] for a in view["attempts"]] == ["ABANDONED", "ENDED"]
        events = b.argusd.events(job)
        assert "start_deadline" in [e["reason"]["code"] for e in events if e.get("reason")]
        assert [e["kind"] for e in events].count("started") == 1, "of the first nobody saw a shepherd"
