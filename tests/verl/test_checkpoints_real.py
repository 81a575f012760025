# SPDX-License-Identifier: Apache-2.0
"""Real verl saves, a rank of it is killed, and the next attempt goes on from what was saved; retention goes on, too.

The training stands still in its reward once it has saved, until the test lets it go: the kill is never too late.
"""

import json
import os
import pathlib
import re

import pytest
import stage as staging
import yaml
from raybed import BEDS, built_env

from argusd import needs_argusd, until

pytestmark = [pytest.mark.verl, pytest.mark.nightly, needs_argusd, pytest.mark.timeout(1200)]

EXAMPLE = {"2.51.1": "verl-0.5.0/grpo.yaml", "2.60.0": "grpo.yaml"}
RESTART = {"max": 1, "backoff": "1s", "on": ["actor_died"]}
STEPS, EVERY = 10, 2
GATED = """
import os, pathlib, select
import reward

def compute_score(*args, **keys):
    saved = pathlib.Path(os.environ["KEPT"]) / "latest_checkpointed_iteration.txt"
    while saved.exists() and not pathlib.Path(os.environ["GATE"]).exists():
        select.select([], [], [], 0.05)
    return reward.compute_score(*args, **keys)
"""


@pytest.fixture(scope="module", params=sorted(EXAMPLE))
def stage(request, tmp_path_factory):
    env = built_env("verl-0.5.0")
    evidence = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence"))
    tiny = staging.make_tiny(env / "bin/python", tmp_path_factory.mktemp("tiny"))
    bed = BEDS.get(request.param)
    with staging.open_stage(staging.Stage, bed, request, tmp_path_factory, evidence, tiny) as s:
        (s.root / "common/code/cpu/gated.py").write_text(GATED)
        yield s


def submit(stage, job, gate):
    text = (staging.ROOT / "examples" / EXAMPLE[stage.bed.version]).read_text()
    spec = yaml.safe_load(text)
    spec |= {"submission_id": job, "total_training_steps": STEPS, "save_freq": EVERY, "test_freq": STEPS}
    spec |= {"checkpoint": {"keep_last": 2}, "restart": RESTART}
    spec["reward_fn_path"] = spec["reward_fn_path"].replace("reward.py", "gated.py")
    spec["env"] |= {"GATE": str(gate), "KEPT": str(stage.job_dir(job) / "checkpoints")}
    return stage.submit(spec, token="admin")


def listed(stage, job):
    return {c["step"]: c for c in stage.get(f"/v1/jobs/{job}/checkpoints")["checkpoints"]}


def check_samples(stage, job):
    """What verl wrote at each step is kept, over the restart, and is what it took its mean score of."""
    told = stage.get(f"/v1/jobs/{job}/metrics?keys=critic/score/mean&points=512")["series"]["critic/score/mean"]
    page = stage.get(f"/v1/jobs/{job}/samples?limit=100")
    means = {s["step"]: s["score_mean"] for s in page["steps"]}
    assert means == pytest.approx(dict(zip(told["step"], told["value"], strict=True)), abs=1e-3)
    assert page["samples"] and all(s["input"] and s["step"] == STEPS for s in page["samples"])
    groups = [s["group"] for s in page["samples"]]
    assert max(map(groups.count, groups)) > 1, "several answers to one prompt"
    assert [s["step"] for s in stage.get(f"/v1/jobs/{job}/samples?kind=validation")["steps"]] == [STEPS]


def test_a_killed_rank_costs_little(stage, tmp_path):
    gate = tmp_path / "gate"
    job = submit(stage, "killed", gate)
    staging.wait_for(lambda: listed(stage, job).get(EVERY, {}).get("verified"), "its first checkpoint is verified")
    stage.wait_log(job, rf"step:{EVERY} - ")
    stage.kill_a_rank()
    gate.touch()
    view = stage.wait_state(job, "SUCCEEDED")
    stage.keep_job(job)
    assert (view["attempt"], view["restarts"], view["step"]) == (2, 1, STEPS)
    (found,) = until(lambda: stage.get(f"/v1/jobs/{job}/findings")["findings"], "why the first attempt ended is found")
    assert (found["attempt"], found["class"]) == (1, "actor_died"), found

    check_samples(stage, job)

    # the second attempt, by what it says itself
    here = stage.job_dir(job) / "attempts/2"
    log = re.sub(r"\x1b\[[0-9;]*m", "", (here / "logs/driver.log").read_text(errors="replace"))
    assert re.search(rf"(?i)setting global step to {EVERY}\b", log) and f"global_step_{EVERY}" in log
    steps = [int(n) for n in re.findall(r"(?<![\w/])step:(\d+) - ", log)]
    assert [n for n in steps if n] == list(range(EVERY + 1, STEPS + 1))
    assert f"trainer.resume_from_path={stage.job_dir(job)}/checkpoints/global_step_{EVERY}" in view["argv"]
    (told,) = [e["text"] for e in stage.events(job) if e["kind"] == "resume"]
    assert told == f"it goes on from the checkpoint of step {EVERY}"

    # what is left: keep_last, each of them read
    until(lambda: list(listed(stage, job)) == [STEPS - EVERY, STEPS], "retention has left two")
    until(lambda: all(c["verified"] for c in listed(stage, job).values()), "each is verified")
    kept = stage.job_dir(job) / "checkpoints"
    assert sorted(p.name for p in kept.glob("global_step_*")) == sorted(f"global_step_{n}" for n in listed(stage, job))
    assert (kept / "latest_checkpointed_iteration.txt").read_text() == str(STEPS)
    for step in listed(stage, job):
        reply = stage.call("POST", f"/v1/jobs/{job}/checkpoints/{step}:verify", {})
        assert reply.status == 200 and reply.json()["verified"], reply
    stage.keep("listed.json", json.dumps(listed(stage, job)))
