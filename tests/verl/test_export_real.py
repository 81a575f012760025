# SPDX-License-Identifier: Apache-2.0
"""A checkpoint of real verl, exported by one command: transformers loads the directory, and its weights are the
checkpoint's. Of RL (actor, one rank) with three releases of verl and of SFT (two ranks) with the newest. And judged by
the training itself, run to validate alone: it tells what the training told at that step.
The environment of verl 0.7.1 is made by `tools/setup/setup verl-0.7.1`."""

import os
import pathlib

import pytest
import stage as staging
import yaml
from raybed import BEDS, ENVS, built_env

from argusd import needs_argusd

pytestmark = [pytest.mark.verl, pytest.mark.nightly, needs_argusd, pytest.mark.timeout(1800)]

STEPS = 2
EXAMPLE = {"0.5.0": "verl-0.5.0/grpo.yaml", "0.7.1": "verl-0.7.1/grpo.yaml", "0.9.1": "grpo.yaml"}
# The model answers, and each of its weights is the shards' of all ranks together, as the merger writes them (bfloat16).
LOADS = """
import glob, json, sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
merged, kept = {merged!r}, {kept!r}
tokenizer = AutoTokenizer.from_pretrained(merged)
model = AutoModelForCausalLM.from_pretrained(merged, torch_dtype=torch.bfloat16)
out = model.generate(**tokenizer("1 + 1 =", return_tensors="pt"), max_new_tokens=4, do_sample=False)
ranks = sorted(glob.glob(kept + "/model_world_size_*_rank_*.pt"))
parts = [torch.load(path, map_location="cpu", weights_only=False) for path in ranks]

def whole(name):
    rows = [p[name] for p in parts]
    if not hasattr(rows[0], "_local_tensor"):
        return rows[0]
    local = [row._local_tensor for row in rows]
    return torch.cat(local) if len(local) > 1 and rows[0].placements[0].is_shard() else local[0]

have = model.state_dict()
wrong = [n for n in parts[0] if n in have and not torch.equal(whole(n).to(torch.bfloat16), have[n])]
same = len(set(parts[0]) & set(have))
print(json.dumps({{"ranks": len(ranks), "same": same, "wrong": wrong, "tokens": out.shape[1]}}))
"""


@pytest.fixture(scope="module", params=sorted(EXAMPLE))
def stage(request, tmp_path_factory):
    env = built_env("verl-0.5.0")
    evidence = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence"))
    tiny = staging.make_tiny(env / "bin/python", tmp_path_factory.mktemp("tiny"))
    bed = BEDS.get(ENVS[request.param], verl=request.param)
    with staging.open_stage(staging.Stage, bed, request, tmp_path_factory, evidence, tiny) as s:
        yield s


def train(stage, example, job, **keys):
    spec = yaml.safe_load((staging.ROOT / "examples" / example).read_text())
    spec |= {"submission_id": job, "total_training_steps": STEPS, "save_freq": STEPS, "test_freq": STEPS, **keys}
    stage.submit(spec, token="admin")
    stage.wait_state(job, "SUCCEEDED")
    stage.keep_job(job)

    def seen():
        page = stage.get(f"/v1/jobs/{job}/checkpoints")
        return not page["looking"] and page["best"] and page

    return staging.wait_for(seen, "its checkpoint has what validation told")


def check_export(stage, job, kept, ranks):
    reply = stage.call("POST", f"/v1/jobs/{job}/checkpoints/{STEPS}:export", {"name": job})
    assert reply.status == 201, reply
    made = reply.json()
    stage.wait_state(made["job"], "SUCCEEDED")
    stage.keep_job(made["job"])

    def ready():
        model = stage.get(f"/v1/models/{job}")
        return model["state"] == "ready" and model

    model = staging.wait_for(ready, "the model is in the registry")
    assert model["lineage"]["job"] == job and model["lineage"]["step"] == STEPS
    answer = stage.python(LOADS.format(merged=model["path"], kept=str(stage.job_dir(job) / kept)))
    stage.keep(f"{job}.loaded.json", answer)
    assert answer["ranks"] == ranks and answer["same"] > 10 and answer["tokens"] > 4 and answer["wrong"] == [], answer


def test_rl(stage):
    page = train(stage, EXAMPLE[stage.verl], "grpo-out")
    (one,) = page["checkpoints"]
    assert page["metric"].startswith("val-core/") and page["best"] == STEPS and page["metric"] in one["values"]
    check_export(stage, "grpo-out", f"checkpoints/global_step_{STEPS}/actor", 1)


def test_sft_of_two_ranks(stage):
    if stage.verl != "0.9.1":
        pytest.skip("the shipped example is 0.9.1's")
    page = train(stage, "sft.yaml", "sft-out")
    assert (page["metric"], page["mode"]) == ("val/loss", "min")
    check_export(stage, "sft-out", f"checkpoints/global_step_{STEPS}", 2)


def test_a_checkpoint_is_judged_by_its_training_run_to_validate_alone(stage):
    page = train(stage, EXAMPLE[stage.verl], "grpo-judged", eval_on_save={})
    metric, (one,) = page["metric"], page["checkpoints"]
    judge = f"grpo-judged-eval-{STEPS}"
    staging.wait_for(lambda: stage.call("GET", f"/v1/jobs/{judge}").status == 200, "the eval job is there")
    stage.wait_state(judge, "SUCCEEDED")
    stage.keep_job(judge)
    told = stage.get(f"/v1/jobs/{judge}")["metrics"]["latest"]
    assert told[metric] == pytest.approx(one["values"][metric], abs=1e-6), (told, one)

    def judged():
        (one,) = stage.get("/v1/jobs/grpo-judged/checkpoints")["checkpoints"]
        return one["eval"] == "done"

    staging.wait_for(judged, "the checkpoint says so")
