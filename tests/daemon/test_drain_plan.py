# SPDX-License-Identifier: Apache-2.0
"""What a drain would do, told before it is done; and the GPUs of each machine one by one in the list."""

import json
import os
import subprocess

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

NOBODY = {"host": "127.0.0.1", "port": 1}


def worker(name, ip):
    return {"name": name, "ip": ip, "resources": {"CPU": 8, "GPU": 4, "worker_node": 1, f"argus_node_{name}": 1}}


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    """A job of alice on two GPUs of a machine that is registered; its steps since the start took an hour."""
    home = tmp_path_factory.mktemp("drain")
    nodes = [{"name": "head", "ip": "127.0.0.1", "head": True, "resources": {"CPU": 0}}, worker("w1", "127.0.0.2")]
    with FakeRay(nodes=nodes, state=home / "ray") as ray, Argusd(home, ray.url) as argusd:
        gate = argusd.root / "common/gate"
        job = argusd.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done", n_gpus_per_node=2, timeout="3h")
        argusd.wait_state(job, "RUNNING")
        lines = [{"step": s, "data": {"timing_s/step": 600.0}} for s in range(1, 7)]
        metrics = argusd.job_dir(job) / "attempts/1/metrics.jsonl"
        metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
        argusd.wait_job(job, lambda j: j["step"] == 6, "is at its step")
        assert argusd.call("POST", "/v1/nodes", {"name": "w1", **NOBODY}).status == 201
        argusd.work = job
        yield argusd
        gate.write_text("")


def plan(argusd, name="w1", status=200, **body):
    reply = argusd.call("POST", f"/v1/nodes/{name}:drain?dry_run=1", body)
    assert reply.status == status, reply
    return reply.json()


def cli(argusd, *args):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["admin"], "LANG": "C.UTF-8"}
    got = subprocess.run([PROGRAMS["argus"], *args], env=env, capture_output=True, text=True, timeout=120)
    assert got.returncode == 0, got
    return got


def test_who_waits_loses_nothing(bed):
    p = plan(bed)
    (job,) = p["jobs"]
    assert (job["job"], job["user"], job["state"], job["step"]) == (bed.work, "alice", "RUNNING", 6)
    assert (job["gpus"], job["gpus_here"], job["fate"]) == (2, 2, "waited_for")
    assert (p["then"], p["deadline"], p["users"], p["at_risk_gpu_hours"]) == ("wait", None, ["alice"], 0)
    assert p["empty_late_at"] == job["ends_late_at"] and job["ends_late_at"]  # its timeout at the latest


def test_what_is_stopped_loses_the_steps_since_its_checkpoint(bed):
    for then, fate in (("stop", "stopped"), ("restart", "restarted")):
        p = plan(bed, then=then, deadline="10m")
        (job,) = p["jobs"]
        assert job["fate"] == fate and job["at_risk_gpu_hours"] == pytest.approx(2.0)  # an hour of two GPUs
        assert p["at_risk_gpu_hours"] == job["at_risk_gpu_hours"]
        assert p["empty_late_at"] == p["deadline"]
    assert plan(bed, then="stop")["deadline"]  # at once


def test_nothing_is_done(bed):
    before = bed.get("/v1/nodes/w1")
    plan(bed, then="stop", deadline=0)
    after = bed.get("/v1/nodes/w1")
    assert (after["want"], after["drain"]) == (before["want"], None) and after["state"] != "draining"
    assert bed.job(bed.work)["state"] == "RUNNING"
    assert not [e for e in bed.events() if e["kind"] == "node_draining"]


def test_who_may_not_drain_gets_no_plan_either(bed):
    assert bed.call("POST", "/v1/nodes/w1:drain?dry_run=1", {}, token="user").status == 403
    plan(bed, "w9", 404)
    assert plan(bed, status=400, then="never")["code"] == "drain_then"


def test_the_command_line_shows_the_plan(bed):
    got = cli(bed, "node", "drain", "w1", "--dry-run", "--then", "stop", "--deadline", "10m")
    assert bed.work in got.stdout and "stopped" in got.stdout and "2.0" in got.stdout
    assert "2.0 GPU-hours at risk" in got.stderr
    as_json = json.loads(cli(bed, "node", "drain", "w1", "--dry-run", "-o", "json").stdout)
    assert as_json["jobs"][0]["job"] == bed.work


def test_the_list_has_each_gpu(bed):
    def slots(token):
        rows = bed.get("/v1/nodes", token=token)["nodes"]
        return next(n["slots"] for n in rows if n["name"] == "w1")

    mine = slots("user")
    held = [s for s in mine if s["state"] == "leased"]
    assert [s["gpu"] for s in mine] == list(range(len(mine))) and len(held) == 2
    assert all(s["jobs"] == [bed.work] and s["jobs_hidden"] == 0 for s in held)
    assert all(s["util"] is None for s in mine)  # nobody told: null, never 0
    assert "slots" not in bed.get("/v1/nodes/w1")
    assert bed.call("POST", "/v1/users", {"name": "carol"}).status == 201
    bed.tokens["carol"] = bed.call("POST", "/v1/tokens", {"user": "carol"}).json()["token"]
    others = [s for s in slots("carol") if s["state"] == "leased"]
    assert [(s["jobs"], s["jobs_hidden"]) for s in others] == [([], 1)] * 2
    until(lambda: bed.job(bed.work)["state"] == "RUNNING", "it goes on")


def test_a_machine_with_jobs_is_removed_by_the_form_that_is_named(bed):
    """Before a drain and during one the refusal says what to do; by then the drain has begun."""
    got = bed.call("POST", "/v1/nodes/w1:remove", {})
    assert got.status == 409 and "argus node drain w1" in got.json()["detail"], got
    assert bed.call("POST", "/v1/nodes/w1:drain", {}).status in (200, 202)
    got = bed.call("POST", "/v1/nodes/w1:remove", {})
    assert got.status == 409 and "still being drained" in got.json()["detail"], got
    assert bed.work in got.json()["detail"] and "argus node rm --force w1" in got.json()["detail"], got
    assert bed.call("POST", "/v1/nodes/w1:undrain", {}).status in (200, 202)
    until(lambda: bed.get("/v1/nodes/w1")["state"] != "draining", "it takes jobs again")
