# SPDX-License-Identifier: Apache-2.0
"""The preparing tool by itself, with the Python of an environment that has pyarrow and datasets, as a node's has."""

import json
import os
import subprocess
import sys

import pytest
from importing import LIB, Bed
from raybed import env_path

ROWS = [{"question": f"What is {i} + {i}?", "answer": f"It is 2 x {i}.\n#### {2 * i:,}"} for i in range(600, 640)]
# In the manner of verl's examples/data_preprocess: the same options, the same calls.
SCRIPT = """
import argparse, os, datasets
p = argparse.ArgumentParser()
p.add_argument("--local_dir", default=None)
p.add_argument("--hdfs_dir", default=None)
p.add_argument("--local_save_dir", default="~/data/gsm8k")
p.add_argument("--local_dataset_path", default=None)
args = p.parse_args()
raw = datasets.load_dataset(args.local_dataset_path, "main")
save = args.local_dir or args.local_save_dir
for split in ("train", "test"):
    def row(example, i, split=split):
        return {"data_source": "x", "prompt": [{"role": "user", "content": example.pop("question")}], "ability": "m",
                "reward_model": {"style": "rule", "ground_truth": example.pop("answer")}, "extra_info": {"index": i}}
    raw[split].map(function=row, with_indices=True).to_parquet(os.path.join(save, split + ".parquet"))
"""
CARD = """---
configs:
- config_name: main
  data_files:
  - {split: train, path: main/train-*}
  - {split: test, path: main/test-*}
---
"""


@pytest.fixture(scope="module")
def python():
    home = env_path("verl-0.5.0")
    if home is None:
        pytest.skip("no environment with pyarrow: run ./dev setup")
    return home / "bin/python"


class Preparing(Bed):
    def start(self, source, env=(), python=None, **more):
        order = {**self.order("", **more), "input": str(source)}
        argv = [python, "-B", LIB / "argus_prepare.py", json.dumps(order)]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env={**os.environ, **dict(env), "HF_HOME": str(self.home / "hf")})  # fmt: skip

    def read(self, python, name):
        script = "import json, sys, pyarrow.parquet as p; print(json.dumps(p.read_table(sys.argv[1]).to_pylist()))"
        done = subprocess.run([python, "-c", script, self.goal / name], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)


@pytest.fixture
def bed(tmp_path):
    made = Preparing(tmp_path)
    raw = made.root / "raw/main"
    raw.mkdir(parents=True)
    (made.root / "raw/README.md").write_text(CARD)
    for split, rows in (("train", ROWS), ("test", ROWS[:5])):
        (raw / f"{split}-0000.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return made


def test_gsm8k_becomes_what_verl_reads(bed, python):
    result = bed.good(bed.root / "raw", python=python, **{"with": "gsm8k"})
    about = result["about"]
    assert about["rows"] == 45 and about["fit"]["rl"] == {"fit": True, "missing": []}
    assert about["splits"] == {"train": ["train.parquet"], "test": ["test.parquet"]}
    assert [c["name"] for c in about["columns"]] == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
    rows = bed.read(python, "train.parquet")
    assert len(rows) == 40 and rows[0]["reward_model"] == {"ground_truth": "1200", "style": "rule"}
    assert rows[0]["data_source"] == "openai/gsm8k" and rows[0]["prompt"][0]["role"] == "user"
    assert rows[0]["extra_info"]["question"] == ROWS[0]["question"]
    assert sorted(p.name for p in bed.goal.iterdir()) == ["test.parquet", "train.parquet"]


def test_one_file_without_splits(bed, python):
    result = bed.good(bed.root / "raw/main/train-0000.jsonl", python=python, single=True, **{"with": "gsm8k"})
    assert result["about"]["rows"] == 40
    assert len(bed.read(python, "test.parquet")) == 2


def test_a_script_runs_unchanged(bed, python):
    script = bed.root / "script.py"
    script.write_text(SCRIPT)
    result = bed.good(bed.root / "raw", python=python, script=str(script), **{"with": "script"})
    assert result["about"]["rows"] == 45 and result["about"]["fit"]["rl"]["fit"]


def test_what_goes_wrong_leaves_nothing(bed, python):
    (bed.root / "dies.py").write_text("import sys  # --local_dir\nopen('half.parquet', 'w').write('x')\nsys.exit(3)\n")
    (bed.root / "idle.py").write_text("# --local_dir\n")
    (bed.root / "torn.py").write_text("# --local_dir\nopen('train.parquet', 'w').write('PAR1 and no more')\n")
    for name, want in (("dies", "ended with 3"), ("idle", "no parquet file is there"), ("torn", "is cut off")):
        error = bed.bad(bed.root / "raw", python=python, script=str(bed.root / f"{name}.py"), **{"with": "script"})
        assert want in error
    outside = bed.bad(bed.root / "raw", python=python, script="/etc/passwd", **{"with": "script"})
    assert "lies under none of the directories" in outside
    (bed.root / "raw/main/train-0000.jsonl").write_text('{"q": 1}\n')
    assert "has no text 'question'" in bed.bad(bed.root / "raw", python=python, **{"with": "gsm8k"})
    bare = bed.bad(bed.root / "raw", python=sys.executable, **{"with": "gsm8k"})
    assert "has no pyarrow" in bare
