# SPDX-License-Identifier: Apache-2.0
"""Real verl lands exactly on its lease: 0.5.0 over two nodes that have more GPUs free, and two jobs of 0.9.1 at the
same time, each with a TransferQueue of its own and all of its actors on its own node."""

import pathlib
import re

import pytest
import stage as staging
from raybed import BEDS, built_env

from argusd import OVER

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
FEW_STEPS = ["total_training_steps=2", "save_freq=2", "test_freq=2"]

pytestmark = [pytest.mark.verl, pytest.mark.ray, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    env = built_env("verl-0.5.0")
    return staging.make_tiny(env / "bin/python", tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def stage(request, tmp_path_factory, tiny):
    bed, kept = BEDS.get(request.param), tmp_path_factory.mktemp("kept")
    with staging.open_stage(staging.Stage, bed, request, tmp_path_factory, kept, tiny) as s:
        yield s


def submit(stage, job, example, *settings, helpers=1):
    """An example as it stands, but for micro batches that two processes can share as well as one."""
    spec = stage.evidence / f"{job}.yaml"
    text = re.sub(r"(micro_batch_size_per_gpu)=64", r"\1=32", (EXAMPLES / example).read_text())
    spec.write_text(re.sub(r"(agent|reward)\.num_workers=1", rf"\1.num_workers={helpers}", text))
    sets = [x for s in (f"submission_id={job}", *FEW_STEPS, *settings) for x in ("--set", s)]
    stage.argus("submit", *sets, str(spec))


def is_read_back(stage, job, gpus):
    """Once Ray tells of all of them: {node: GPUs}."""

    def is_there():
        got = stage.job(job)
        assert got["state"] not in ("FAILED", "STOPPED"), f"{got['reason']} {stage.driver_log(job)[-3000:]}"
        rows = (got["placement"] or {}).get("nodes") or []
        return {n["name"]: n["gpus"] for n in rows if n["gpus"]} == gpus and got

    return staging.wait_for(is_there, f"{job} is read back")


def trained(stage, job):
    stage.wait_state(job, "SUCCEEDED")
    assert "lease_breach" not in stage.kinds(job)
    assert stage.steps(job)[-1] == 2
    assert "could not be bound" not in stage.driver_log(job)


@pytest.mark.nightly  # a minute each; in every check tests/acceptance/test_v1_1.py sees SFT on its two nodes
@pytest.mark.parametrize("stage", ["2.51.1"], indirect=True)
@pytest.mark.parametrize("workload", ["grpo", "ppo"])
def test_two_nodes_each_with_its_part(stage, workload):
    """verl makes one group for each node and lets Ray choose: alone, both may land on one node with four GPUs."""
    job = f"two-nodes-{workload}"
    submit(stage, job, f"verl-0.5.0/{workload}.yaml", "nnodes=2")
    got = is_read_back(stage, job, {"h2": 1, "h3": 1})
    assert got["placement"]["ok"]
    trained(stage, job)


def hold_all_but_one_gpu_of_each_node(stage):
    spec = {"workload": "ray", "entrypoint": ["sleep", "10000"], "nnodes": 2, "n_gpus_per_node": 3}
    return stage.submit(spec, token="admin")


@pytest.mark.nightly  # two minutes
@pytest.mark.parametrize("stage", ["2.60.0"], indirect=True)
def test_two_jobs_at_once_share_neither_a_queue_nor_a_node(stage):
    """Each has one GPU of a node of its own, and two helpers of each kind, which verl would put on both nodes."""
    held, jobs = hold_all_but_one_gpu_of_each_node(stage), ["queue-a", "queue-b"]
    for job in jobs:
        submit(stage, job, "grpo.yaml", helpers=2)

    seen = {}

    def look():
        actors = stage.cluster("actors")
        for job in jobs:
            mine = [a for a in actors if a["job"] == job and a["state"] == "ALIVE"]
            kinds = [a["class_name"] for a in mine]
            if sum(kind.startswith("AgentLoopWorker") for kind in kinds) == 2 and "TransferQueueController" in kinds:
                seen[job] = mine
            got = stage.job(job)
            assert job in seen or got["state"] not in OVER, (got, stage.driver_log(job)[-3000:])
        return len(seen) == 2

    staging.wait_for(look, "each job has its helpers and its queue", 900)
    stage.keep("queues.actors.json", seen)
    homes = {job: [n["name"] for n in stage.job(job)["nodes"]] for job in jobs}
    assert sorted(homes.values()) == [["h2"], ["h3"]]
    for job, actors in seen.items():
        assert [a["class_name"] for a in actors].count("TransferQueueController") == 1
        assert {a["node"] for a in actors} == set(homes[job]), [(a["class_name"], a["node"]) for a in actors]
    for job in jobs:
        trained(stage, job)
        assert stage.job(job)["placement"]["actors_outside"] == 0
        assert "outside_lease" not in stage.kinds(job)
    spans = [(stage.job(job)["started_at"], stage.job(job)["ended_at"]) for job in jobs]
    assert max(start for start, _ in spans) < min(end for _, end in spans), "side by side"
    stage.stop_job(held)
    BEDS.drop()
