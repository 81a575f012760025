# SPDX-License-Identifier: Apache-2.0
"""Real verl 0.9.1 trains a tiny model on a real GPU: FSDP and NCCL, a curve that falls, a checkpoint, its use told."""

import pathlib

import pytest
import yaml
from stage import ROOT, wait_for

pytestmark = [pytest.mark.gpu, pytest.mark.ray, pytest.mark.verl]

STEPS = 40
OF_CPU = ("trainer.device=",)  # the example's overrides that a GPU does not want


@pytest.fixture(scope="module")
def sft(stage):
    if not stage.has_verl:
        pytest.skip("the environment of ARGUS_GPU_ENV has no verl")
    spec = yaml.safe_load((ROOT / "examples/sft.yaml").read_text())
    del spec["extra_pythonpath"]
    spec |= {"submission_id": "gpu-sft", "nnodes": 1, "n_cpus_per_gpu": 10}
    spec |= {"total_training_steps": STEPS, "save_freq": STEPS // 2, "test_freq": STEPS // 2}
    spec["overrides"] = [o for o in spec["overrides"] if not o.startswith(OF_CPU)]
    job = stage.submit(spec, token="admin")
    stage.wait_state(job, "SUCCEEDED")
    stage.keep(f"{job}.log", stage.driver_log(job))
    return stage.keep_job(job)


def test_it_trains(stage, sft):
    assert sorted(set(stage.steps("gpu-sft"))) == list(range(1, STEPS + 1))
    losses = stage.get("/v1/jobs/gpu-sft/metrics?keys=train/loss&points=512")["series"]["train/loss"]["value"]
    assert len(losses) >= STEPS // 2 and losses[-1] < losses[0] / 2, losses


def test_it_saves(stage, sft):
    kept = stage.job_dir("gpu-sft") / "checkpoints"
    assert (kept / "latest_checkpointed_iteration.txt").read_text() == str(STEPS)
    assert (kept / f"global_step_{STEPS}/model_world_size_1_rank_0.pt").stat().st_size > 0


def test_its_gpu_is_told(stage, sft):
    """It is short, but not shorter than a sample: its process, rank, memory and energy are known."""
    (row,) = wait_for(lambda: stage.get("/v1/jobs/gpu-sft/gpus?step=15s")["series"], "its GPU")
    assert row["by_processes"] and row["rank"] == 0 and row["uuid"].startswith("GPU-")
    assert row["mem_peak_bytes"] > 100 << 20 and row["used_joules"] > 0
    log = pathlib.Path(stage.job_dir("gpu-sft") / "logs/driver.log").read_text(errors="replace")
    assert "gloo" not in log.lower()
