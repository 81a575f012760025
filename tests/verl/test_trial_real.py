# SPDX-License-Identifier: Apache-2.0
"""The trial on real Ray with real verl 0.5.0: what it finds costs no GPU, and what is good goes on."""

import pathlib

import pytest
import stage as staging
from raybed import BEDS, built_env

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/verl-0.5.0/grpo.yaml"

CANARY = "canary-of-the-judge-0123"

pytestmark = [pytest.mark.verl, pytest.mark.ray, pytest.mark.timeout(1200)]


class TriedStage(staging.Stage):
    trial = True


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory):
    env = built_env("verl-0.5.0")
    tiny = staging.make_tiny(env / "bin/python", tmp_path_factory.mktemp("tiny"))
    kept = tmp_path_factory.mktemp("kept")
    with staging.open_stage(TriedStage, BEDS.get("2.51.1"), request, tmp_path_factory, kept, tiny) as s:
        yield s


def content(file):
    try:
        return file.read_bytes()
    except FileNotFoundError:  # Ray has removed it meanwhile
        return b""


def test_a_reward_that_raises_fails_before_a_gpu_is_held(stage):
    reward = stage.root / "common/code/bad_reward.py"
    key = "import os\nprint(os.environ['JUDGE_KEY'])\n"
    reward.write_text(key + "def compute_score(**k):\n    return k['no_such_key']\n")
    assert stage.call("PUT", "/v1/secrets/JUDGE_KEY", {"value": CANARY}).status == 201
    more = ["submission_id=bad", f"reward_fn_path={reward}", "secrets=[JUDGE_KEY]"]
    stage.argus("submit", *(word for key in more for word in ("--set", key)), str(EXAMPLE))
    job = stage.wait_state("bad", "FAILED")
    assert job["attempt"] == 0 and job["reason"]["code"] == "user_code_error"
    assert "raises KeyError: 'no_such_key' at bad_reward.py:4" in job["reason"]["text"]
    assert job["trial"]["versions"]["verl"].startswith("0.5.0")
    assert not (stage.job_dir("bad") / "attempts").exists()
    found = job["finding"]
    assert (found["class"], found["advice_code"]) == ("user_code_error", "trial-reward-raises")
    sentence, place = found["evidence"]
    log = (stage.job_dir("bad") / "trial/trial.log").read_bytes()
    assert log[sentence["offset"] :].split(b"\n")[0].decode() == sentence["text"] and "KeyError" in sentence["text"]
    assert (place["source"], place["line"], place["text"]) == (str(reward), 4, "return k['no_such_key']")
    told = stage.argus("diagnose", "bad")
    for part in ("user_code_error", f"{reward}:4: return k['no_such_key']", "raises KeyError", "advice "):
        assert part in " ".join(told.split()), told
    assert job["trial"]["reward"]["printed"].strip() == "***"
    files = [f for top in (stage.home, stage.bed.dir) for f in pathlib.Path(top).rglob("*") if f.is_file()]
    assert [f for f in files if "driver-bad-trial" in f.name], "Ray's own log of the trial is among them"
    assert [f for f in files if not f.is_symlink() and CANARY.encode() in content(f)] == []


def test_a_good_one_goes_on_and_shows_its_score(stage):
    stage.argus("submit", "--set", "submission_id=good", str(EXAMPLE))
    job = stage.wait_job("good", lambda j: j["state"] in ("STARTING", "RUNNING", "FAILED"), "goes on")
    assert job["state"] != "FAILED", job["reason"]
    assert job["trial"]["ok"] and float(job["trial"]["reward"]["returned"]) == 1.0, job["trial"]
    assert job["trial"]["seconds"] < 60
    stage.stop_job("good")
    stage.wait_over("good")
