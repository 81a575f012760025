# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/sop about Ray and NCCL, beside a fake Ray: its session, a job or the network is broken, the
operator pastes the blocks as they stand, and it is well. The head that is restarted is argusd's own, started by a
program in the place of `ray`, and its dashboard is the fake one."""

import os
import signal
import sys

import pytest
from fakeray import PROGRAM, FakeRay
from soppage import SopPage
from test_argusd_head import HeadArgusd
from test_node_check_net import NODES, PYTHON, Server, measured

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

NEVER = {"max": 0}  # restarts
WORK = '[ "$ARGUS_ATTEMPT" != 1 ] || exec tail -f /dev/null'  # the next attempt ends at once
STUCK = "trap '' TERM; echo up; while :; do timeout 0.2 tail -f /dev/null; done"


def found(argusd, job):
    """The class of its newest finding; it may be made after the end is told."""
    return until(lambda: argusd.get(f"/v1/jobs/{job}/findings")["findings"], "a finding is made")[0]["class"]


def running(argusd, *jobs):
    for job in jobs:
        argusd.wait_state(job, "RUNNING")
    return jobs


# ---- Ray session ----


def test_ray_has_a_new_session(tmp_path):
    """Its raylets are swept away for the new head, and the jobs get SIGTERM."""
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        again = {"max": 1, "on": ["infra"], "backoff": "0s"}
        comes_back = argusd.submit(WORK, n_gpus_per_node=1, restart=again)
        ends = argusd.submit(WORK, n_gpus_per_node=1, restart=NEVER)
        running(argusd, comes_back, ends)
        ray.lose_memory()
        until(lambda: "ray_new_session" in {e["kind"] for e in argusd.events()}, "the new session is seen")
        for starts in ray.starts().values():
            os.kill(starts[0]["pid"], signal.SIGTERM)
        ray.add_job(submission_id="theirs", start_time=1000)
        assert argusd.wait_over(ends)["state"] == "FAILED"
        assert argusd.wait_over(comes_back)["state"] == "SUCCEEDED"
        assert {found(argusd, job) for job in (ends, comes_back)} == {"node_lost"}
        until(lambda: argusd.get("/v1/clusters/default/foreign")["foreign"], "the job of somebody else is seen")
        page = SopPage("ray-session", argusd, JOB=ends)
        said = page.paste("look")
        assert " up " in said and "Ray's head was restarted" in said
        said = page.paste("jobs")
        assert ends in said and comes_back in said
        assert "node_lost" in page.paste("why")
        assert "theirs" in page.paste("left")
        new = page.paste("again").strip()
        running(argusd, new)
        assert argusd.job(new)["retry_of"] == ends
        said = page.paste("after")
        assert "cluster 'default' is up" in said and new in said
        assert page.left == set()


# ---- Ray job ----


def leaves_others_alone(argusd, page, job):
    """Somebody plans to stop another job, and both of them: the page's line finds neither plan. The other job."""
    theirs = argusd.submit("true", nnodes=9, n_gpus_per_node=4)  # it waits for ever
    for jobs in ([job, theirs], [theirs]):
        assert argusd.call("POST", "/v1/ops/stop_many", {"jobs": jobs}).status == 201
    page.paste("apply", codes=(2,))
    return theirs


def stop_and_start_again(argusd, job, look, ray_says):
    """The whole page of a job that does not go on: `look` is in what its state says, `ray_says` in what Ray has."""
    page = SopPage("ray-job", argusd, JOB=job)
    said = page.paste("look")
    assert job in said and look in said
    assert ray_says in page.paste("ray")
    theirs = leaves_others_alone(argusd, page, job)
    said = page.paste("plan")
    assert job in said and "alice" in said and "stop_jobs: waiting" in said
    assert argusd.job(job)["state"] == "RUNNING"  # a plan does nothing
    assert argusd.call("POST", "/v1/ops/stop_many", {"jobs": [theirs]}).status == 201  # newer than the page's
    said = page.paste("apply")
    assert "stop_jobs: done" in said and "1 of 1 jobs have ended" in said
    assert argusd.job(theirs)["state"] == "QUEUED"
    argusd.stop_job(theirs)
    assert "STOPPED" in page.paste("left")
    again = page.paste("again").strip()
    running(argusd, again)
    assert argusd.job(again)["retry_of"] == job
    assert page.left == set()


def test_a_driver_is_stuck(tmp_path):
    """It does not heed SIGTERM either."""
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        job = argusd.submit(STUCK, n_gpus_per_node=1, stop_grace="2s")
        running(argusd, job)
        until(lambda: argusd.log_file(job).read_text() == "up\n", "the trap is set")
        stop_and_start_again(argusd, job, "RUNNING", "JobSupervisor")
        assert argusd.job(job)["exit"]["signal"] == "SIGKILL"


@pytest.mark.nightly  # until the witnesses' contradiction is told
def test_ray_has_lost_a_job_that_runs(tmp_path):
    """Ray has given its node up, and the shepherd there beats on."""
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        job = argusd.submit(WORK, n_gpus_per_node=1)
        running(argusd, job)
        ray.node(argusd.job(job)["nodes"][0]["name"], "dead", processes="keep")
        argusd.wait_job(job, lambda j: "UNKNOWN" in j["flags"], "is UNKNOWN")
        stop_and_start_again(argusd, job, "UNKNOWN", job)
        assert len(argusd.job(job)["attempts"]) == 1


# ---- head restart ----

# `ray start --head`: a raylet and a GCS that do nothing, and a fake Ray as the dashboard. Each start has a state of its
# own, so it is another session; argusd knows a dashboard by the path of its program, which the state's ends in.
RAY = """#!PYTHON
import os, pathlib, subprocess, sys
here = pathlib.Path(__file__).parent
options = dict(word.partition("=")[::2] for word in sys.argv[1:])
for name in ("raylet", "gcs_server"):
    child = subprocess.Popen([here / name, "6000"])
    while pathlib.Path(f"/proc/{child.pid}/comm").read_text().strip() != name:
        pass
state = here / f"session-{os.getpid()}/dashboard/dashboard.py"
subprocess.Popen([sys.executable, "FAKE", "--port", options["--dashboard-port"], "--state", state])
"""


class Head(HeadArgusd):
    nodes = "min_shm: 0, min_disk: 0, look_every: 2s"

    def __init__(self, home):
        super().__init__(home)
        self.program("ray", RAY.replace("PYTHON", f"{self.bin}/python3", 1).replace("FAKE", str(PROGRAM)))

    def is_head(self, state):
        return self.head_row()["state"] == state


@pytest.fixture
def head(tmp_path):
    with Head(tmp_path) as made:
        try:
            until(lambda: made.is_head("online"), "the head is online")
            yield made
        finally:
            made.call("POST", "/v1/clusters/default:down", {"stop_jobs": True})
            until(lambda: made.is_head("offline"), "the head is stopped")


def test_the_head_is_restarted(head):
    goes_back = head.submit(WORK, n_gpus_per_node=1, restart={"max": 3})
    ends = head.submit(WORK, n_gpus_per_node=1, restart=NEVER)
    running(head, goes_back, ends)
    before = {name: head.pid_of(name) for name in ("raylet", "gcs_server")}
    page = SopPage("head-restart", head, CLUSTER="default")
    said = page.paste("before")
    assert goes_back in said and ends in said and " up " in said
    said = page.paste("plan")
    assert goes_back in said and ends in said and "cluster_down: waiting" in said
    assert [head.job(job)["state"] for job in (goes_back, ends)] == ["RUNNING", "RUNNING"]  # a plan does nothing
    assert {name: head.pid_of(name) for name in before} == before
    said = page.paste("apply")
    assert all(f"{step}: done" in said for step in ("cluster_down", "cluster_up", "jobs_back")), said
    assert not set(before.values()) & {head.pid_of(name) for name in before}
    assert head.job(ends)["state"] == "STOPPED"
    view = head.wait_over(goes_back)
    assert (view["state"], view["attempt"]) == ("SUCCEEDED", 2)
    until(lambda: "ray_new_session" in {e["kind"] for e in head.events()}, "the new session is told")
    said = page.paste("after")
    assert "cluster 'default' is up" in said and "Ray's head was restarted" in said
    assert page.left == set()


# ---- NCCL ----

NO_ROUTE = "node1:19:20 [1] NCCL WARN Call to ibv_modify_qp failed with error No route to host"


@pytest.fixture
def cabled(tmp_path, monkeypatch):
    """Three machines of two GPUs, with a baseline of each pair. The figures of a check are the test's."""
    python = tmp_path / "bin/python3"
    python.parent.mkdir()
    python.write_text(PYTHON.replace("PROGRAM", sys.executable).replace("PLAN", repr(str(tmp_path / "plan.json"))))
    python.chmod(0o755)
    with monkeypatch.context() as m:
        m.setenv("PATH", f"{python.parent}:{os.environ['PATH']}")
        ray = FakeRay(nodes=NODES, state=tmp_path / "ray").start()
    try:
        with Server(tmp_path, ray) as argusd:
            until(lambda: len(argusd.cluster()) == len(NODES), "the nodes are there")
            assert argusd.whole(measured(1000))["state"] == "passed"
            yield argusd
    finally:
        ray.stop()


def test_a_job_dies_in_nccl(cabled):
    mended = cabled.root / "common/mended"
    line = f"[ -e {mended} ] && exec tail -f /dev/null; echo '{NO_ROUTE}'; exit 1"
    job = cabled.submit(line, nnodes=2, n_gpus_per_node=1, restart=NEVER)
    assert cabled.wait_over(job)["state"] == "FAILED"
    assert found(cabled, job) == "nccl_network"
    cabled.measures(measured({("w1", "w3"): 400, ("w2", "w3"): 410}))
    page = SopPage("nccl", cabled, JOB=job, NODES="w1 w2 w3", NODE="w3")
    assert "nccl_network" in page.paste("finding")
    assert job in page.paste("before")
    said = page.paste("net")
    assert "w1 - w3: 400 Mbit/s" in said and "SLOW" in said and "between 'w2' and 'w3' there are 410 Mbit/s" in said
    # Argus drains machines of its own. Nobody answers at this one's address, and Ray has it as before.
    assert cabled.call("POST", "/v1/nodes", {"name": "w3", "host": "127.0.0.1", "port": 1}).status == 201
    said = page.paste("plan")
    assert "drain: waiting" in said and "node/w3: drained" in said
    assert cabled.get("/v1/nodes/w3")["drain"] is None  # a plan does nothing
    said = page.paste("apply")
    assert "drain: done" in said and "wait_empty: done" in said
    assert cabled.get("/v1/nodes/w3")["state"] == "offline"
    mended.touch()
    again = page.paste("again").strip()
    running(cabled, again)
    assert {n["name"] for n in cabled.job(again)["nodes"]} == {"w1", "w2"}
    said = page.paste("after")
    assert again in said and "offline" in said
    assert page.left == set()
