# SPDX-License-Identifier: Apache-2.0
"""Two nodes with four GPUs each train for real: eight ranks over gloo, PPO (actor, critic, reference) and SFT."""

import re

import pytest
import stage as staging
import yaml
from raybed import BEDS, built_env

pytestmark = [pytest.mark.verl, pytest.mark.ray, pytest.mark.nightly, pytest.mark.timeout(2400)]

STEPS = 3
SHAPE = {"nnodes": 2, "n_gpus_per_node": 4, "total_training_steps": STEPS, "save_freq": STEPS, "test_freq": STEPS}
RANKS = [f"model_world_size_8_rank_{rank}.pt" for rank in range(8)]


@pytest.fixture
def stage(request, tmp_path_factory):
    env = built_env("verl-0.5.0")
    tiny, bed = staging.make_tiny(env / "bin/python", tmp_path_factory.mktemp("tiny")), BEDS.get(request.param)
    with staging.open_stage(staging.Stage, bed, request, tmp_path_factory, tmp_path_factory.mktemp("kept"), tiny) as s:
        yield s


def train(stage, job, example, **keys):
    """An example as it stands, but for its shape and micro batches that eight ranks can share."""
    text = re.sub(r"(micro_batch_size_per_gpu)=\d+", r"\1=4", (staging.ROOT / "examples" / example).read_text())
    reply = stage.post({**yaml.safe_load(text), **SHAPE, "submission_id": job, **keys})
    assert reply.status == 201, reply

    def is_read_back():
        got = stage.job(job)
        assert got["state"] not in ("FAILED", "STOPPED"), f"{got['reason']} {stage.driver_log(job)[-3000:]}"
        return sum(n["gpus"] for n in (got["placement"] or {"nodes": []})["nodes"]) == 8 and got["placement"]

    placement = staging.wait_for(is_read_back, f"the ranks of {job} are read back", 1200)
    assert {n["name"]: n["gpus"] for n in placement["nodes"]} == {"h2": 4, "h3": 4}
    assert placement["ok"] and placement["actors_outside"] == 0, placement
    staging.wait_for(lambda: stage.job(job)["state"] not in ("STARTING", "RUNNING"), f"{job} is over", 1200)
    assert stage.job(job)["state"] == "SUCCEEDED", stage.driver_log(job)[-3000:]
    assert sorted(set(stage.steps(job))) == list(range(1, STEPS + 1))
    return stage.job_dir(job) / f"checkpoints/global_step_{STEPS}"


@pytest.mark.parametrize("stage", ["2.51.1"], indirect=True)
def test_ppo(stage):
    saved = train(stage, "ppo-2x4", "verl-0.5.0/ppo.yaml")
    for part in ("actor", "critic"):
        assert [name for name in RANKS if not (saved / part / name).stat().st_size] == []


@pytest.mark.parametrize("stage", ["2.60.0"], indirect=True)
def test_sft(stage):
    # Its ranks ask for 10 CPUs each: all that the bed's nodes have.
    saved = train(stage, "sft-2x4", "sft.yaml", entrypoint_num_cpus=0)
    assert [name for name in RANKS if not (saved / name).stat().st_size] == []
    BEDS.drop()
