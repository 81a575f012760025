# SPDX-License-Identifier: Apache-2.0
"""What would end with a job, told before it is stopped: its attempt, what it has not saved, and who names it."""

import json
import os
import subprocess

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd

NEVER = {"pool": "nowhere"}  # it waits for ever


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    """A job of alice on two GPUs, whose steps since its start took an hour; bob does not see it."""
    home = tmp_path_factory.mktemp("stopplan")
    with FakeRay(state=home / "ray") as ray, Argusd(home, ray.url) as argusd:
        gate = argusd.root / "common/gate"
        job = argusd.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done", n_gpus_per_node=2)
        argusd.wait_state(job, "RUNNING")
        lines = [{"step": s, "data": {"timing_s/step": 600.0}} for s in range(1, 7)]
        metrics = argusd.job_dir(job) / "attempts/1/metrics.jsonl"
        metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
        argusd.wait_job(job, lambda j: j["step"] == 6, "is at its step")
        assert argusd.call("POST", "/v1/users", {"name": "bob"}).status == 201
        argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
        argusd.work = job
        yield argusd
        gate.write_text("")


def plan(argusd, job, token="user", status=200):
    reply = argusd.call("POST", f"/v1/jobs/{job}:stop?dry_run=1", token=token)
    assert reply.status == status, reply
    return reply.json()


def cli(argusd, *args):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "LANG": "C.UTF-8"}
    argv = [PROGRAMS["argus"], *args]
    return subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def test_what_was_not_saved_is_lost(bed):
    p = plan(bed, bed.work)
    assert (p["job"], p["state"], p["attempt"], p["gpus"]) == (bed.work, "RUNNING", 1, 2)
    assert (p["step"], p["saved_step"], p["steps"], p["hidden"]) == (6, None, [], 0)
    assert p["at_risk_gpu_hours"] == pytest.approx(2.0)  # an hour of two GPUs
    assert bed.job(bed.work)["state"] == "RUNNING", "nothing was done"


def test_who_names_it_is_named_to_who_may_see_it(bed):
    theirs = bed.submit(f"echo {bed.work}/checkpoints", token="user", **NEVER)
    hidden = bed.submit(f"echo {bed.work}/checkpoints", token="admin", **NEVER)
    p = plan(bed, bed.work, "admin")
    assert {(j["job"], j["user"], j["state"]) for j in p["jobs"]} >= {(theirs, "alice", "QUEUED")}
    assert {theirs, hidden} == {j["job"] for j in p["jobs"]} and p["hidden"] == 0
    p = plan(bed, bed.work)
    assert ([j["job"] for j in p["jobs"]], p["hidden"]) == ([theirs], 1)
    for job in (theirs, hidden):
        bed.stop_job(job)
        bed.wait_over(job)
    assert plan(bed, bed.work)["jobs"] == []


def test_one_that_waits_and_one_that_is_over_lose_nothing(bed):
    job = bed.submit("echo x", **NEVER)
    nothing = {"attempt": None, "gpus": 0, "step": None, "saved_step": None, "at_risk_gpu_hours": 0, "jobs": []}
    p = plan(bed, job)
    assert p["state"] == "QUEUED" and {k: p[k] for k in nothing} == nothing
    bed.stop_job(job)
    bed.wait_over(job)
    p = plan(bed, job)
    assert p["state"] == "STOPPED" and {k: p[k] for k in nothing} == nothing


def test_who_may_not_stop_it_gets_no_plan_either(bed):
    assert plan(bed, bed.work, "viewer", 403)["code"]
    assert plan(bed, bed.work, "bob", 404)["code"] == "not_found"
    assert bed.job(bed.work)["state"] == "RUNNING"


def test_the_command_line_says_it(bed):
    got = cli(bed, "stop", "--dry-run", bed.work)
    assert (got.returncode, got.stdout) == (0, f"{bed.work}: 2 GPUs come back, 2.0 GPU-hours of work are lost\n"), got
    shown = json.loads(cli(bed, "stop", "--dry-run", "-o", "json", bed.work).stdout)
    assert shown == plan(bed, bed.work)
    got = cli(bed, "stop", "--dry-run", "--state", "RUNNING")
    assert got.returncode == 2 and "needs ID" in got.stderr, got
    assert bed.job(bed.work)["state"] == "RUNNING"
