# SPDX-License-Identifier: Apache-2.0
"""Leases of services beside a fake Ray Serve: what they cost, requests that wait, autoscaling within
its bounds, and a replica that is preempted and comes back."""

import contextlib
import json

import pytest
from fakeray import wait_for
from test_service_calls import CHAT, QUESTION
from test_services import Bed, events_of, replicas_of

from argusd import PATIENCE, needs_argusd, until

pytestmark = needs_argusd
DOWN_AFTER = 120  # seconds below target_requests until a replica goes: SERVE_DOWN_AFTER_S
PATIENT = "echo up; exec tail -f /dev/null"


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    with Bed(tmp_path_factory.mktemp("leases")) as bed:
        bed.model("sums")
        yield bed


def gone(bed, name):
    assert bed.argusd.call("DELETE", f"/v1/services/{name}", token="user").status == 200
    until(lambda: bed.page(name) is None, f"{name} is gone")
    bed.wait_apps()


def jobs_of(bed, name):
    return bed.argusd.get(f"/v1/jobs?workload=serve&q={name}-v&limit=10")["jobs"]


@contextlib.contextmanager
def streams(bed, name, n):
    """So many requests under way, until the end of the block."""
    headers = {"Authorization": f"Bearer {bed.argusd.tokens['user']}", "Content-Type": "application/json"}
    bed.ray.settings(serve_hold=True)
    with contextlib.ExitStack() as stack:
        replies = []
        for _ in range(n):
            c = stack.enter_context(contextlib.closing(bed.argusd.open()))
            c.request("POST", f"/v1/services/{name}/{CHAT}", json.dumps({**QUESTION, "stream": True}), headers)
            replies.append(c.getresponse())
        try:
            yield
        finally:
            bed.ray.settings(serve_hold=False)
        assert all(r.status == 200 and r.read().endswith(b"data: [DONE]\n\n") for r in replies)


def test_what_leases_cost(bed):
    bed.serve(model="sums", name="dear", gpus=1, replicas=2)
    page = bed.ready("dear", 1, replicas=2)
    assert page["gpus"] == 2
    for replica, app in zip(replicas_of(page), ("dear-v1", "dear-v1-r2"), strict=True):
        options = bed.apps()[app]["deployments"][0]["ray_actor_options"]
        assert options["num_gpus"] == 1 and options["label_selector"] == {"argus.node": replica["node"]}
        job = bed.argusd.job(replica["job"])
        assert (job["state"], job["n_gpus_per_node"]) == ("RUNNING", 1)
    # What they cost stays when they are gone, over a restart too.
    bed.act("dear", "stop")
    page = bed.wait("dear", lambda p: not replicas_of(p), "its leases are over")
    assert page["gpus"] == 0
    spent = page["gpu_hours"]
    jobs = jobs_of(bed, "dear")
    assert len(jobs) == 2 and 0 < spent == pytest.approx(sum(j["gpu_hours"] for j in jobs))
    bed.argusd.restart()
    assert bed.page("dear")["gpu_hours"] == pytest.approx(spent)
    gone(bed, "dear")


def test_a_kill_loses_no_cost(bed):
    """Also between the end of a lease and the next turn of its service."""
    bed.serve(model="sums", name="costly", gpus=1)
    (replica,) = replicas_of(bed.ready("costly", 1))
    bed.act("costly", "stop")
    bed.argusd.wait_over(replica["job"])
    bed.argusd.kill9()
    bed.argusd.start()
    page = bed.wait("costly", lambda p: not replicas_of(p), "its lease is over")
    (job,) = jobs_of(bed, "costly")
    assert 0 < page["gpu_hours"] == pytest.approx(job["gpu_hours"])
    gone(bed, "costly")


def test_requests_that_wait(bed):
    bed.serve(model="sums", name="narrow", max_ongoing_requests=1)
    assert bed.ready("narrow", 1)["waiting"] == 0
    with streams(bed, "narrow", 3):
        page = bed.wait("narrow", lambda p: p["in_flight"] == 3, "all are under way")
        assert page["waiting"] == 2, "its replica takes one at once"
    bed.wait("narrow", lambda p: (p["in_flight"], p["waiting"]) == (0, 0), "they have ended")
    gone(bed, "narrow")


@pytest.mark.nightly
def test_autoscaling_takes_and_returns_leases_within_its_bounds(bed):
    bed.serve(model="sums", name="wide", gpus=1, min_replicas=1, max_replicas=2, target_requests=1)
    (first,) = replicas_of(bed.ready("wide", 1))
    with streams(bed, "wide", 5):
        page = bed.ready("wide", 1, replicas=2)
        assert first["job"] in [r["job"] for r in replicas_of(page)], "what serves is not touched"
        assert page["gpus"] == 2 and page["replicas"] == 2, "five would be five replicas, but for the bound"
        states = [bed.argusd.job(r["job"])["state"] for r in replicas_of(page)]
        assert states == ["RUNNING", "RUNNING"], "each has a lease of its own"

    def is_narrow():
        page = bed.page("wide")
        return len(replicas_of(page)) == page["replicas"] == 1 and page

    page = wait_for(is_narrow, "one lease is given back", DOWN_AFTER + PATIENCE)
    assert [r["job"] for r in replicas_of(page)] == [first["job"]] and page["gpus"] == 1
    scaled = [(e["from"], e["to"]) for e in events_of(bed, "wide") if e["kind"] == "service_scaled"]
    assert sorted(scaled) == [("1", "2"), ("2", "1")]
    bed.act("wide", "ask", text="6 times 7?")
    gone(bed, "wide")


def test_a_replica_that_is_preempted_comes_back(tmp_path):
    with Bed(tmp_path) as bed:
        bed.model("sums")
        bed.argusd.more += "\nlimits: {reclaim_grace: 1s}"
        bed.argusd.write_config()
        bed.argusd.restart()
        for project in ("a", "b"):
            assert bed.argusd.call("POST", "/v1/projects", {"name": project, "members": ["alice"]}).status == 201
            assert bed.argusd.call("PUT", f"/v1/projects/{project}/quota", {"gpus_guaranteed": 4}).status == 200
        # All eight GPUs; the second replica is beyond what its project is guaranteed.
        bed.serve(model="sums", name="lent", project="b", gpus=4, replicas=2, graceful="1s")
        before = {r["job"] for r in replicas_of(bed.ready("lent", 1, replicas=2))}
        owner = bed.argusd.submit(PATIENT, project="a", n_gpus_per_node=4, priority=90)
        bed.argusd.wait_state(owner, "RUNNING")
        page = bed.wait("lent", lambda p: p["state"] == "DEGRADED" and p["ready"] == 1, "one of them is left")
        assert sorted(r["state"] for r in replicas_of(page)) == ["READY", "WAITING"] and page["gpus"] == 4
        until(lambda: len(bed.apps()) == 1, "the list has no replica without a lease")
        bed.act("lent", "ask", text="6 times 7?")
        (waits,) = [r for r in replicas_of(page) if r["state"] == "WAITING"]
        assert waits["job"] in before and bed.argusd.job(waits["job"])["restart"]["preemptions"] == 1
        bed.argusd.stop_job(owner)
        page = bed.ready("lent", 1, replicas=2)
        assert {r["job"] for r in replicas_of(page)} == before, "by the job that it had"
        gone(bed, "lent")
