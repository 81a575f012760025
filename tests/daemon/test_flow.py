# SPDX-License-Identifier: Apache-2.0
"""Policy flow: a long training gives its GPUs to a short job right after its checkpoint, and goes on from it."""

import contextlib

import standin
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

ALL = {"nnodes": 2, "n_gpus_per_node": 4}  # all that the fake Ray has
SHORT = "echo marker"


@contextlib.contextmanager
def flowing(tmp_path, quantum):
    with FakeRay() as ray, Argusd(tmp_path, ray.url, more=f"policy: flow\nflow: {{quantum: {quantum}}}") as argusd:
        standin.make_world(argusd.root)
        yield argusd


def kinds(argusd, job, *wanted):
    return [e["reason"]["code"] for e in argusd.events(job) if e["kind"] in wanted]


def test_a_long_job_gives_way_right_after_its_checkpoint(tmp_path):
    with flowing(tmp_path, "1s") as argusd:
        t = standin.Training(argusd, restart={"max": 1}, **ALL)
        argusd.wait_state(t.id, "RUNNING")
        short = argusd.submit(SHORT, n_gpus_per_node=1)
        argusd.wait_job(short, lambda v: v["reason"]["code"] == "waiting_for_gpus", "waits: nothing was saved yet")
        t.save(10)
        assert argusd.wait_over(short)["state"] == "SUCCEEDED"
        assert t.begun(2) == ["auto ", f"resume_path {t.kept}/global_step_10"]
        view = argusd.wait_state(t.id, "RUNNING")
        assert (view["attempt"], view["restart"]["preemptions"], view["restart"]["failures"]) == (2, 1, 0)
        assert kinds(argusd, t.id, "stop", "ended") == ["set_back", "set_back"]
        (text, _) = [e["text"] for e in argusd.events(t.id) if e["kind"] in ("stop", "ended")]
        assert f"gave way to job '{short}'" in text
        saved, stopped = (
            next(e["seq"] for e in argusd.events(t.id) if e["kind"] == kind) for kind in ("checkpoint", "stop")
        )
        assert saved < stopped
        argusd.stop_job(t.id)


def test_who_cannot_go_on_does_not_give_way(tmp_path):
    with flowing(tmp_path, "1s") as argusd:
        t = standin.Training(argusd, **ALL)  # it says nothing of restarts
        argusd.wait_state(t.id, "RUNNING")
        short = argusd.submit(SHORT, n_gpus_per_node=1)
        t.save(10)
        until(lambda: t.states() == {10: "verified"}, "the checkpoint is complete")
        assert argusd.wait_over(argusd.submit(SHORT, n_gpus_per_node=0))["state"] == "SUCCEEDED"  # a pass later
        assert (argusd.job(t.id)["state"], argusd.job(short)["state"]) == ("RUNNING", "QUEUED")
        for job in (short, t.id):
            argusd.stop_job(job)
