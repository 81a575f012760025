# SPDX-License-Identifier: Apache-2.0
"""Jobs that are preempted for a quota: told, stopped after the grace, back in the queue, on again; and argusd is killed
in each phase of that."""

import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

PATIENT = "echo up; exec tail -f /dev/null"
BOTH = {"nnodes": 2, "n_gpus_per_node": 4}  # all that the fake Ray has


class Bed:
    def __init__(self, argusd, ray):
        self.argusd, self.ray = argusd, ray
        for project in ("a", "b"):
            reply = argusd.call("POST", "/v1/projects", {"name": project, "members": ["alice"]})
            assert reply.status == 201, reply
            reply = argusd.call("PUT", f"/v1/projects/{project}/quota", {"gpus_guaranteed": 4})
            assert reply.status == 200, reply

    def borrower(self, **keys):
        """A job of b that holds everything."""
        job = self.argusd.submit(PATIENT, project="b", stop_grace="2s", restart={"max": 1}, **BOTH, **keys)
        self.argusd.wait_state(job, "RUNNING")
        return job

    def owner(self):
        """A job of a that wants what is its own."""
        return self.argusd.submit(PATIENT, project="a", n_gpus_per_node=4)

    def let_go(self, *jobs):
        for job in jobs:
            self.argusd.stop_job(job)
        for job in jobs:
            assert self.argusd.wait_over(job)["state"] == "STOPPED"

    def told(self, job):
        """That it is to give back: an event, which stays; as its reason another one follows."""
        until(lambda: "reclaim" in self.argusd.kinds(job), f"{job} is told")

    def gone_back(self, job):
        return self.argusd.wait_job(
            job, lambda v: v["state"] == "QUEUED" and v["flags"] == ["RESTARTING"], "has gone back to the queue"
        )


@pytest.fixture
def make(tmp_path):
    made = []

    def start(grace):
        ray = FakeRay(state=tmp_path / "ray").start()
        argusd = Argusd(tmp_path, ray.url, more=f"limits: {{reclaim_grace: {grace}}}")
        made.extend([ray, argusd])
        argusd.__enter__()
        return Bed(argusd, ray)

    yield start
    ray, argusd = made
    try:
        argusd.__exit__(None)
    finally:
        ray.stop()


def test_a_borrower_gives_back_and_goes_on(make):
    b = make("2s")
    borrower = b.borrower()
    owner = b.owner()
    b.told(borrower)
    view = b.argusd.wait_state(owner, "RUNNING")
    assert view["queued_at"] < view["started_at"]
    view = b.gone_back(borrower)
    assert (view["started_at"], view["nodes"], view["restarts"]) == (None, [], 1)
    assert (view["restart"]["preemptions"], view["restart"]["failures"], view["restart"]["avoid"]) == (1, 0, [])
    told = [e["reason"]["code"] for e in b.argusd.events(borrower) if e["kind"] in ("reclaim", "stop", "ended")]
    assert told == ["reclaiming", "preempted", "preempted"]
    assert b.argusd.job(owner)["attempt"] == 1
    b.let_go(owner)
    view = b.argusd.wait_state(borrower, "RUNNING")
    assert (view["attempt"], view["flags"], [a["state"] for a in view["attempts"]]) == (2, [], ["ENDED", "RUNNING"])
    assert [len(b.ray.starts()[a["ray_id"]]) for a in view["attempts"]] == [1, 1]
    b.let_go(borrower)


def test_who_cannot_go_on_is_left_alone(make):
    b = make("0s")
    stays = b.argusd.submit(PATIENT, project="b", **BOTH)  # it says nothing of restarts
    b.argusd.wait_state(stays, "RUNNING")
    owner = b.owner()
    b.argusd.wait_job(owner, lambda v: v["reason"]["code"], "says why it waits")
    assert b.argusd.wait_over(b.argusd.submit("echo marker", n_gpus_per_node=0))["state"] == "SUCCEEDED"
    assert b.argusd.job(stays)["state"] == "RUNNING"
    b.let_go(owner, stays)


def test_a_grace_that_ends_in_vain(make):
    b = make("15s")  # the owner is gone before they are over
    borrower = b.borrower()
    owner = b.owner()
    b.told(borrower)
    b.let_go(owner)
    until(
        lambda: [e for e in b.argusd.events(borrower) if e["reason"]["code"] == "not_reclaimed"],
        "it is told that it may stay",
    )
    view = b.argusd.job(borrower)
    assert (view["state"], view["attempt"]) == ("RUNNING", 1)
    b.let_go(borrower)


def test_a_stop_overrules_a_preemption(make):
    """Whoever wants it to end for good is stronger than who wants its slots back."""
    b = make("1s")
    line = "trap '' TERM; echo up; while :; do timeout 0.2 tail -f /dev/null; done"
    job = b.argusd.submit(line, project="b", stop_grace="20s", restart={"max": 1}, **BOTH)
    b.argusd.wait_state(job, "RUNNING")
    owner = b.owner()
    b.argusd.wait_state(job, "STOPPING")
    b.argusd.stop_job(job)
    view = b.argusd.wait_over(job)
    assert (view["state"], view["reason"]["code"], view["attempt"]) == ("STOPPED", "stopped_by_user", 1)
    b.argusd.wait_state(owner, "RUNNING")
    b.let_go(owner)


@pytest.mark.parametrize("phase", ["told", "stopping", "queued"])
def test_killed_in_each_phase_of_a_preemption(make, phase):
    b = make("3s")
    borrower = b.borrower()
    owner = b.owner()
    if phase == "told":
        b.told(borrower)
    elif phase == "stopping":
        b.argusd.wait_job(borrower, lambda v: v["state"] != "RUNNING", "is being stopped")
    else:
        b.gone_back(borrower)
    b.argusd.kill9()
    b.argusd.start()
    b.argusd.wait_state(owner, "RUNNING")
    view = b.gone_back(borrower)
    assert (view["restart"]["preemptions"], len(view["attempts"])) == (1, 1)
    b.let_go(owner)
    assert b.argusd.wait_state(borrower, "RUNNING")["attempt"] == 2
    b.let_go(borrower)
