# SPDX-License-Identifier: Apache-2.0
"""A data set's whole way on real Ray with real verl: imported, prepared by a script of verl's kind that is run as it
is, and trained on by registered names of data and model.

    ARGUS_VERL_SCRIPT=FILE     the script, for example examples/data_preprocess/gsm8k.py of a clone of verl: packages of
                               verl do not hold it. Without it, one of ours with the same options, imports and calls.
"""

import json
import os
import pathlib

import pytest
import stage as staging
import yaml
from raybed import BEDS, built_env

pytestmark = [pytest.mark.verl, pytest.mark.ray, pytest.mark.nightly, pytest.mark.timeout(1200)]

STEPS = 2
CARD = """---
configs:
- config_name: main
  data_files:
  - {split: train, path: main/train-*}
  - {split: test, path: main/test-*}
---
"""
SCRIPT = """
import argparse
import os
import re

import datasets
from verl.utils.hdfs_io import copy, makedirs

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_dir", default=None)
    parser.add_argument("--hdfs_dir", default=None)
    parser.add_argument("--local_save_dir", default="~/data/gsm8k")
    parser.add_argument("--local_dataset_path", default=None)
    args = parser.parse_args()
    raw = datasets.load_dataset(args.local_dataset_path or "openai/gsm8k", "main")

    def rows_of(split):
        def row(example, index):
            answer = example.pop("answer")
            return {
                "data_source": "openai/gsm8k",
                "prompt": [{"role": "user", "content": example.pop("question")}],
                "ability": "math",
                "reward_model": {"style": "rule", "ground_truth": re.search("#### (-?[0-9,]+)", answer)[1]},
                "extra_info": {"split": split, "index": index, "answer": answer},
            }

        return row

    save = args.local_dir or args.local_save_dir
    for split in ("train", "test"):
        raw[split].map(function=rows_of(split), with_indices=True).to_parquet(os.path.join(save, f"{split}.parquet"))
    if args.hdfs_dir is not None:
        makedirs(args.hdfs_dir)
        copy(src=save, dst=args.hdfs_dir)
"""


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory):
    env = built_env("verl-0.5.0")
    kept = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence"))
    tiny, bed = staging.make_tiny(env / "bin/python", tmp_path_factory.mktemp("tiny")), BEDS.get("2.51.1")
    with staging.open_stage(staging.Stage, bed, request, tmp_path_factory, kept, tiny) as s:
        yield s


def lay_out_raw(top):
    """Question and answer in the layout of the hub."""
    rows = [{"question": f"{i}+{i}?", "answer": f"twice {i}\n#### {2 * i}"} for i in range(40)]
    (top / "main").mkdir(parents=True)
    (top / "README.md").write_text(CARD)
    for split, some in (("train", rows), ("test", rows[:8])):
        (top / f"main/{split}-0000.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    return top


def entry(stage, kind, ref):
    """The entry, which is there soon after the job that made it has ended."""
    return staging.wait_for(lambda: (got := stage.get(f"/v1/{kind}/{ref}"))["state"] == "ready" and got, ref)


@pytest.fixture(scope="module")
def prepared(stage):
    """Data and model by their names, as a user brings them."""
    raw, script = lay_out_raw(stage.root / "common/raw"), stage.root / "common/code/preprocess.py"
    own = os.environ.get("ARGUS_VERL_SCRIPT")
    script.write_text(pathlib.Path(own).read_text() if own else SCRIPT)
    stage.argus("data", "import", str(raw), "--name", "sums", "--common", "--wait")
    entry(stage, "datasets", "sums")
    stage.argus("model", "import", str(stage.root / "common/models/tiny"), "--name", "tiny", "--in-place", "--wait")
    entry(stage, "models", "tiny")
    stage.argus("data", "prepare", "sums", "--with", str(script), "--as", "sums-verl", "--common", "--wait")
    entries = {"raw": entry(stage, "datasets", "sums"), "data": entry(stage, "datasets", "sums-verl")}
    return stage.keep("data.entries.json", {**entries, "model": entry(stage, "models", "tiny")})


@pytest.fixture(scope="module")
def trained(stage, prepared):
    """GRPO, whose rewards are verl's own for this source of data."""
    spec = yaml.safe_load((staging.ROOT / "examples/verl-0.5.0/grpo.yaml").read_text())
    del spec["reward_fn_path"]
    spec |= {"submission_id": "by-name", "model_id": "tiny", "total_training_steps": STEPS, "save_freq": STEPS}
    spec |= {"train_file": "sums-verl/train.parquet", "val_file": "sums-verl/test.parquet", "test_freq": STEPS}
    spec["overrides"].append("data.max_prompt_length=160")
    stage.submit(spec, token="admin")
    stage.wait_state("by-name", "SUCCEEDED")
    return stage.keep_job("by-name")


def test_the_script_makes_what_verl_reads(stage, prepared):
    data = prepared["data"]
    assert (data["rows"], data["fit"]["rl"]["fit"]) == (48, True), data
    assert data["lineage"]["data"] == [prepared["raw"]["ref"]]
    assert [c["name"] for c in data["about"]["columns"]][:4] == ["data_source", "prompt", "ability", "reward_model"]
    assert data["hash"].startswith("sha256:") and data["hash"] != prepared["raw"]["hash"]


def test_it_trains_by_names(stage, prepared, trained):
    assert stage.steps("by-name") == list(range(1, STEPS + 1))
    named = {i["key"]: (i["ref"], i["hash"]) for i in trained["inputs"]}
    data = (prepared["data"]["ref"], prepared["data"]["hash"])
    assert named["train_file"] == named["val_file"] == data, named
    assert named["model_id"] == (prepared["model"]["ref"], prepared["model"]["hash"])
    (train,) = [word for word in trained["argv"] if word.startswith("data.train_files=")]
    assert f"{prepared['data']['path']}/train.parquet" in train
    assert "dataset len: 40" in stage.driver_log("by-name"), "verl has read every row that was prepared"
    kept = stage.job_dir("by-name") / f"checkpoints/global_step_{STEPS}/actor/model_world_size_1_rank_0.pt"
    assert kept.stat().st_size > 0
