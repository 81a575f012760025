# SPDX-License-Identifier: Apache-2.0
"""On real Ray: parts of one GPU, and what somebody else runs beside Argus, which may be adopted.

One machine with two GPUs that may be shared, started by argusd over SSH; the tests follow one another."""

import json
import os
import pathlib

import pytest
from barestage import BareStage
from raybed import BEDS
from stage import open_stage, wait_for

pytestmark = [pytest.mark.ray, pytest.mark.nightly, pytest.mark.timeout(900)]  # two minutes for each Ray

# What Ray gives an actor of that part of a GPU, and whether more than it is refused.
PART = """
import json, os, signal, sys, ray
part = float(sys.argv[1])
ray.init()
class Holder:
    def look(self):
        return ray.get_gpu_ids()
holder = ray.remote(num_gpus=part)(Holder).remote()
got = ray.get(holder.look.remote())
more = ray.remote(num_gpus=0.25)(Holder).remote()
late = bool(ray.wait([more.look.remote()], timeout=5)[0])
print("GOT " + json.dumps({"gpus": got, "more": late}), flush=True)
signal.pause()
"""


@pytest.fixture(scope="module", params=["2.51.1", "2.60.0"])
def stage(request, tmp_path_factory):
    evidence = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence"))
    with open_stage(BareStage, BEDS.bare(request.param), request, tmp_path_factory, evidence, None) as s:
        s.add_node("node-1", "h2", gpu_count=2, cpu_count=8, labels=["shared", "shareable"])
        s.wait_node("node-1", "online")
        yield s


def submit(stage, job, part, script=PART):
    spec = {"workload": "ray", "submission_id": job, "n_gpus_per_node": part, "pool": "shared"}
    spec |= {"entrypoint": [str(stage.bed.python), "-c", script, str(part)], "entrypoint_num_cpus": 0.1}
    reply = stage.post({**spec, "n_cpus_per_gpu": 1})
    assert reply.status == 201, reply


def got(stage, job):
    stage.wait_log(job, r"(?m)^GOT .*\}$")
    (line,) = [text for text in stage.driver_log(job).splitlines() if text.startswith("GOT ")]
    return json.loads(line[len("GOT ") :])


def leased(stage, job):
    """The one GPU that argusd says it has a part of."""
    (node,) = stage.wait_state(job, "RUNNING")["nodes"]
    (gpu,) = node["gpu_ids"]
    return gpu


def stop(stage, *jobs):
    for job in jobs:
        stage.stop_job(job)
    for job in jobs:
        stage.wait_state(job, "STOPPED")


def pool(stage):
    (row,) = [p for p in stage.get("/v1/pools")["pools"] if p["pool"] == "shared"]
    return row


def test_parts_of_one_gpu(stage):
    """Half and two quarters share one GPU, a whole one has the other; then the machine is full."""
    parts = {"half": 0.5, "quarter-a": 0.25, "quarter-b": 0.25}
    for job, part in parts.items():
        submit(stage, job, part)
    ids = {job: leased(stage, job) for job in parts}
    assert len(set(ids.values())) == 1, ids
    submit(stage, "whole", 1)
    assert leased(stage, "whole") not in ids.values()
    seen = {job: got(stage, job) for job in parts}
    assert all(len(s["gpus"]) == 1 and not s["more"] for s in seen.values()), seen
    assert len({s["gpus"][0] for s in seen.values()}) == 1, seen
    submit(stage, "late", 0.25)
    assert stage.job("late")["state"] == "QUEUED"
    stop(stage, "quarter-a")
    assert leased(stage, "late") == ids["half"]
    used = wait_for(lambda: (gpus := pool(stage)["gpus"])["free"] == 0 and gpus, "the pool is full")
    assert used["used"] == 2, used
    for job in ("half", "quarter-b", "whole", "late"):
        assert "lease_breach" not in stage.kinds(job)
    stop(stage, "half", "quarter-b", "whole", "late")


def foreign(stage, ray_id):
    rows = stage.get("/v1/clusters/default/foreign")["foreign"]
    return next((f for f in rows if f["ray_id"] == ray_id), None)


def test_a_job_of_somebody_else_is_counted_adopted_and_never_touched(stage):
    stage.give_to_ray("theirs")

    def runs():
        row = foreign(stage, "theirs")
        return row and (row["state"], row["node"]) == ("RUNNING", "node-1") and row

    row = wait_for(runs, "it runs")
    assert not row["is_adopted"]
    wait_for(lambda: pool(stage)["gpus"]["foreign"] == 1, "what it holds is counted")
    submit(stage, "wants-two", 2)
    wait_for(lambda: stage.job("wants-two")["reason"]["code"], "it waits")
    submit(stage, "wants-one", 1)
    stage.wait_state("wants-one", "RUNNING")  # the other GPU
    assert stage.call("POST", "/v1/projects", {"name": "rlhf"}).status == 201
    stage.argus("adopt", "theirs", "--project", "rlhf")
    row = foreign(stage, "theirs")
    assert (row["project"], row["owner"], row["state"]) == ("rlhf", "admin", "RUNNING")
    stop(stage, "wants-one")
    assert stage.job("wants-two")["state"] == "QUEUED" and stage.ray("/api/jobs/theirs")["status"] == "RUNNING"
    stage.take_from_ray("theirs")
    stage.wait_state("wants-two", "RUNNING")
    assert foreign(stage, "theirs")["state"] == "STOPPED"
    (end,) = wait_for(lambda: [e for e in stage.events() if e["kind"] == "adopted_ended"], "its end is told")
    assert end["object"] == "foreign/theirs" and "STOPPED" in end["text"]
    stop(stage, "wants-two")
