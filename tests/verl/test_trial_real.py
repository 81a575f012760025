# SPDX-License-Identifier: Apache-2.0
"""The trial on real Ray with real verl 0.5.0: what it finds costs no GPU, and what is good goes on."""

import pathlib

import pytest
import stage as staging
from raybed import BEDS, ENVS, env_path

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/verl-0.5.0/grpo.yaml"

pytestmark = [pytest.mark.verl, pytest.mark.ray, pytest.mark.timeout(1200)]


class TriedStage(staging.Stage):
    trial = True


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory):
    env = env_path(ENVS["2.51.1"])
    if env is None:
        pytest.skip(f"the environment {ENVS['2.51.1']} is not built: run ./dev setup")
    tiny = staging.make_tiny(env / "bin/python", tmp_path_factory.mktemp("tiny"))
    kept = tmp_path_factory.mktemp("kept")
    with staging.open_stage(TriedStage, BEDS.get("2.51.1"), request, tmp_path_factory, kept, tiny) as s:
        yield s


def test_a_reward_that_raises_fails_before_a_gpu_is_held(stage):
    reward = stage.root / "common/code/bad_reward.py"
    reward.write_text("def compute_score(**k):\n    return k['no_such_key']\n")
    stage.argus("submit", "--set", "submission_id=bad", "--set", f"reward_fn_path={reward}", str(EXAMPLE))
    job = stage.wait_state("bad", "FAILED")
    assert job["attempt"] == 0 and job["reason"]["code"] == "user_code_error"
    assert "raises KeyError: 'no_such_key' at bad_reward.py:2" in job["reason"]["text"]
    assert job["trial"]["versions"]["verl"].startswith("0.5.0")
    assert not (stage.job_dir("bad") / "attempts").exists()


def test_a_good_one_goes_on_and_shows_its_score(stage):
    stage.argus("submit", "--set", "submission_id=good", str(EXAMPLE))
    job = stage.wait_job("good", lambda j: j["state"] in ("STARTING", "RUNNING", "FAILED"), "goes on")
    assert job["state"] != "FAILED", job["reason"]
    assert job["trial"]["ok"] and float(job["trial"]["reward"]["returned"]) == 1.0, job["trial"]
    assert job["trial"]["seconds"] < 60
    stage.stop_job("good")
    stage.wait_over("good")
