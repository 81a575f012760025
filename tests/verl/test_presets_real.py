# SPDX-License-Identifier: Apache-2.0
"""Three of the shipped presets train for real, with a tiny model and what a CPU needs. test_cmdline_real.py composes
all of them."""

import os
import pathlib

import pytest
import stage as staging
import yaml
from raybed import BEDS, built_env

pytestmark = [pytest.mark.verl, pytest.mark.ray, pytest.mark.nightly, pytest.mark.timeout(1200)]

STEPS = 2
EXAMPLE = {"ppo-0.5b": "verl-0.5.0/ppo.yaml", "grpo-0.5b": "verl-0.5.0/grpo.yaml", "sft-0.5b": "sft.yaml"}
TINY = {"train_batch_size": 8, "micro_batch_size": 8}
SMALL = {
    "ppo-0.5b": {**TINY, "mini_batch_size": 8, "max_prompt_length": 16, "max_response_length": 16},
    "grpo-0.5b": {**TINY, "mini_batch_size": 8, "max_prompt_length": 16, "max_response_length": 16, "samples": 4},
    "sft-0.5b": {**TINY, "max_length": 64},
}
PLACES = ["code_path", "model_id", "train_file", "val_file", "reward_fn_path", "extra_pythonpath", "env"]


@pytest.fixture(scope="module", params=["2.51.1", "2.60.0"])
def stage(request, tmp_path_factory):
    env = built_env("verl-0.5.0")
    kept = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence"))
    tiny, bed = staging.make_tiny(env / "bin/python", tmp_path_factory.mktemp("tiny")), BEDS.get(request.param)
    with staging.open_stage(staging.Stage, bed, request, tmp_path_factory, kept, tiny) as s:
        yield s


def for_a_cpu(example):
    """Of the example's overrides those below its line that says CPU, and what SFT of a tiny model needs."""
    text = (staging.ROOT / "examples" / example).read_text()
    cpu = yaml.safe_load("overrides:\n" + text.split("  # CPU", 1)[1].partition("\n")[2])["overrides"]
    whole = yaml.safe_load(text)["overrides"]
    own = [o for o in whole if o.startswith(("engine", "data.pad", "data.use", "data.mess"))]
    return [*own, *(o for o in cpu if o not in own)]


def start(stage, preset):
    """By the preset's name: its holes, the places of this stage, and its own overrides before those for a CPU."""
    example = EXAMPLE[preset]
    places = yaml.safe_load((staging.ROOT / "examples" / example).read_text())
    body = {key: places[key] for key in PLACES if key in places}
    body |= {"preset": preset, "submission_id": preset.partition("-")[0], **SMALL[preset]}
    body |= {"overrides": for_a_cpu(example)}
    body |= {"total_training_steps": STEPS, "save_freq": STEPS, "test_freq": STEPS}
    return stage.submit(body, token="admin")


def check(stage, preset, job):
    stage.wait_state(job, "SUCCEEDED")
    got = stage.keep_job(job)
    assert sorted(set(stage.steps(job))) == list(range(1, STEPS + 1))
    assert got["name"] == preset.replace("-", " ")
    assert "data.train_batch_size=8" in got["argv"], "a hole of the preset, filled"
    kept = stage.job_dir(job) / "checkpoints"
    assert (kept / "latest_checkpointed_iteration.txt").read_text() == str(STEPS)


def test_they_train(stage):
    """Those for verl 0.5.0 beside each other on the old Ray, SFT of 0.9.1 on the new one."""
    mine = [p for p, example in EXAMPLE.items() if example.startswith("verl-0.5.0/") == (stage.verl == "0.5.0")]
    jobs = {preset: start(stage, preset) for preset in mine}
    assert jobs
    for preset, job in jobs.items():
        check(stage, preset, job)
