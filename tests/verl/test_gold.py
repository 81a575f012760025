# SPDX-License-Identifier: Apache-2.0
"""The first five steps of GRPO with one seed, of two releases of verl, against kept values: three runs of each.

tests/golden/metrics/verl-VERSION.json has the values of each step and what a metric may be away from them: the CPU's
arithmetic and, in verl 0.9.1, the order in which requests arrive at the inference engine change what is sampled. How
far the three runs are from one another is printed and kept (ARGUS_EVIDENCE). ARGUS_WRITE_GOLD=1 writes the values anew.
"""

import json
import os
import pathlib
import re
from statistics import fmean

import pytest
import stage as staging
import yaml
from raybed import BEDS, built_env

pytestmark = [pytest.mark.verl, pytest.mark.ray, pytest.mark.nightly, pytest.mark.timeout(2400)]

GOLD = pathlib.Path(__file__).resolve().parents[1] / "golden/metrics"
EXAMPLE = {"2.51.1": "verl-0.5.0/grpo.yaml", "2.60.0": "grpo.yaml"}
SEEDS = {"2.51.1": ["+data.seed=7"], "2.60.0": ["data.seed=7", "actor_rollout_ref.rollout.seed=7"]}
STEPS, RUNS = 5, 3
# How far two runs may be from one another: a mean over 64 answers of 16 tokens moves by some hundredths when others are
# sampled, and the prompts are the same whatever is sampled. The mean of the three may be away from the gold by half of
# that: less than what these steps learn.
WITHIN = {
    "critic/score/mean": 0.06,
    "actor/pg_loss": 0.25,
    "actor/grad_norm": 0.6,
    "response_length/mean": 2.4,
    "prompt_length/mean": 0.0,
}


@pytest.fixture(scope="module", params=sorted(EXAMPLE))
def stage(request, tmp_path_factory):
    env = built_env("verl-0.5.0")
    kept = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence"))
    tiny, bed = staging.make_tiny(env / "bin/python", tmp_path_factory.mktemp("tiny")), BEDS.get(request.param)
    with staging.open_stage(staging.Stage, bed, request, tmp_path_factory, kept, tiny) as s:
        yield s


def metrics(log):
    """{metric: its value of each step} by verl's own console lines."""
    found = {}
    for line in re.findall(r"(?<![\w/])step:\d+ - .*", log):
        said = dict(part.split(":", 1) for part in line.split(" - ") if ":" in part)
        if said["step"] != "0":
            for name in WITHIN:
                found.setdefault(name, []).append(float(re.sub(r"^np\.\w+\((.*)\)$", r"\1", said[name].strip())))
    return found


@pytest.fixture(scope="module")
def runs(stage):
    """What each of the runs has told."""
    spec = yaml.safe_load((staging.ROOT / "examples" / EXAMPLE[stage.bed.version]).read_text())
    spec |= {"total_training_steps": STEPS, "save_freq": STEPS, "test_freq": STEPS}
    spec["overrides"] += SEEDS[stage.bed.version]
    names = [f"gold-{n}" for n in range(RUNS)]
    for name in names:
        stage.submit({**spec, "submission_id": name}, token="admin")
    for name in names:
        stage.wait_state(name, "SUCCEEDED")
    return stage.keep("gold.runs.json", [metrics(stage.driver_log(name)) for name in names])


def away(one, other):
    """The widest distance of each metric over all steps."""
    return {name: max(abs(a - b) for a, b in zip(one[name], other[name], strict=True)) for name in WITHIN}


def too_far(distances, part=1.0):
    return {name: far for name, far in distances.items() if far > part * WITHIN[name]}


def middle(runs):
    return {name: [fmean(step) for step in zip(*(run[name] for run in runs), strict=True)] for name in WITHIN}


def test_runs_of_one_seed_agree(stage, runs):
    assert [{len(values) for values in run.values()} for run in runs] == [{STEPS}] * RUNS
    spread = {name: max(away(a, b)[name] for a in runs for b in runs) for name in WITHIN}
    print(f"spread of {RUNS} runs of verl {stage.verl}: {json.dumps(stage.keep('gold.spread.json', spread))}")
    assert too_far(spread) == {}, spread


def test_they_are_as_they_were(stage, runs):
    file = GOLD / f"verl-{stage.verl}.json"
    if os.environ.get("ARGUS_WRITE_GOLD"):
        kept = {name: [round(value, 6) for value in values] for name, values in middle(runs).items()}
        file.write_text(json.dumps({"example": EXAMPLE[stage.bed.version], "metrics": kept}, indent=2) + "\n")
    gold = json.loads(file.read_text())["metrics"]
    distance = stage.keep("gold.distance.json", away(middle(runs), gold))
    assert too_far(distance, 0.5) == {}, distance
    flat = {**gold, "critic/score/mean": gold["critic/score/mean"][:1] * STEPS}
    assert too_far(away(flat, gold), 0.5), "a run that learns nothing would not be seen"
