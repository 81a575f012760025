# SPDX-License-Identifier: Apache-2.0
"""hold_on_failure: a job that has failed keeps its slots for a look, over restarts of argusd, until it is released."""

import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

WHOLE = {"nnodes": 2, "n_gpus_per_node": 4}  # all that the fake Ray has


@pytest.fixture
def argusd(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as a:
        yield a


def is_holding(job):
    return "HOLDING" in job["flags"]


def fails(argusd, span):
    return argusd.submit("echo ModuleNotFoundError; exit 3", hold_on_failure=span, **WHOLE)


@pytest.mark.parametrize("verb", ["release", "stop"])
def test_slots_are_kept_until_somebody_lets_go(argusd, verb):
    job = fails(argusd, "1h")
    view = argusd.wait_job(job, is_holding, "the hold")
    assert view["state"] == "RUNNING" and f"`argus release {job}`" in view["reason"]["text"]
    assert "holding" in argusd.kinds(job)
    until(lambda: "finding" in argusd.kinds(job), "why it failed is told before the hold is over")
    ends = view["hold_until"]
    assert ends == view["deadline"] and argusd.get("/v1/jobs?flag=HOLDING")["jobs"][0]["hold_until"] == ends
    other = argusd.submit("echo other", **WHOLE)
    assert "hold_until" not in argusd.job(other)
    argusd.kill9()
    argusd.start()
    assert is_holding(argusd.job(job))
    assert argusd.job(other)["state"] == "QUEUED"  # the lease goes on
    reply = argusd.call("POST", f"/v1/jobs/{job}:{verb}", token="user")
    assert reply.status in (200, 202), reply
    view = argusd.wait_over(job)
    assert (view["state"], view["flags"], view["exit"]["code"]) == ("FAILED", [], 3)
    assert "hold_until" not in view
    assert "exit code 3" in view["reason"]["text"]
    assert argusd.wait_over(other)["state"] == "SUCCEEDED"


def test_the_time_is_over_and_what_ends_well_is_not_kept(argusd):
    good = argusd.submit("echo fine", hold_on_failure="1h", **WHOLE)
    assert argusd.wait_over(good)["state"] == "SUCCEEDED"
    job = fails(argusd, "1s")
    assert argusd.wait_over(job)["state"] == "FAILED"
    assert {"holding", "released"} <= set(argusd.kinds(job))
