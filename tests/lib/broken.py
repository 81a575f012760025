# SPDX-License-Identifier: Apache-2.0
"""The corpus of broken specs, and the shared root that they speak of.

Each file of tests/corpus/broken begins with what must be found: stage (preflight or trial), field, says (a part of the
sentence), fix (a part of the hint)."""

import json
import pathlib
import shutil
import struct
import subprocess

import yaml
from raybed import env_path

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "corpus" / "broken"
GOOD = b"PAR1" + b"\0" * 40 + b"PAR1"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n"
PAGE = b"<!DOCTYPE html><html><body>404</body></html>"
HUGE = 10**15  # parameters: no disk has room for their checkpoints


class Case:
    def __init__(self, path):
        self.name, self.text = path.stem, path.read_text()
        lines = [line[2:] for line in self.text.splitlines() if line.startswith("# ")]
        head = dict(line.split(": ", 1) for line in lines if ": " in line)
        self.stage, self.field, self.says = head["stage"], head["field"], head["says"]
        self.fix = head.get("fix", "")
        self.spec = yaml.safe_load(self.text)

    def is_told(self, problem):
        return (
            problem["field"] == self.field
            and self.says in problem["detail"]
            and self.fix in (problem.get("hint") or "")
        )


def cases(stage):
    return [c for c in map(Case, sorted(CORPUS.glob("*.yaml"))) if c.stage == stage]


def shard(shape, cut=0, data=16):
    header = json.dumps({"a": {"dtype": "BF16", "shape": shape, "data_offsets": [0, data]}}).encode()
    whole = struct.pack("<Q", len(header)) + header + b"\0" * data
    return whole[: len(whole) - cut]


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def make_model(directory, without=(), **more):
    files = {"config.json": '{"model_type": "qwen2"}', "tokenizer.json": "{}", "model.safetensors": shard([2, 4])}
    for name, data in {**files, **more}.items():
        if name not in without:
            put(directory / name, data)


def make_models(models):
    index = json.dumps({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})
    shards = {"model.safetensors.index.json": index, "m-1.safetensors": shard([2, 4])}
    make_model(models / "tiny")
    make_model(models / "huge", **{"model.safetensors": shard([HUGE])})
    make_model(models / "no-config", ["config.json"])
    make_model(models / "torn-config", **{"config.json": '{"model_type": '})
    make_model(models / "no-tokenizer", ["tokenizer.json"])
    make_model(models / "no-weights", ["model.safetensors"])
    make_model(models / "missing-shard", ["model.safetensors"], **shards)
    make_model(models / "short-shard", **shards, **{"m-2.safetensors": shard([2, 4], cut=5)})
    make_model(models / "page-shard", **{"model.safetensors": PAGE})
    make_model(models / "pointer-shard", **{"model.safetensors": POINTER})
    make_model(models / "torn-index", **{"model.safetensors.index.json": "<html>"})
    (models / "empty").mkdir()
    put(models / "a-file", "x")


def make_data(data):
    files = {"train": GOOD, "val": GOOD, "page": PAGE, "pointer": POINTER, "cut": GOOD[:-4], "empty": b""}
    for name, text in {**files, "table": b"a,b\n1,2\n3,4\n5,6\n", "secret": b"PARE" + GOOD + b"PARE"}.items():
        put(data / f"{name}.parquet", text)
    put(data / "rows.jsonl", "a: 1\n")
    (data / "folder.parquet").mkdir()
    (data / "loop.parquet").symlink_to("loop.parquet")
    (data / "escape.parquet").symlink_to("/etc/hostname")
    put(data.parents[1] / "users/bob/datasets/x.parquet", GOOD)
    (data / "bob.parquet").symlink_to(data.parents[1] / "users/bob/datasets/x.parquet")


def make_verl(code, version="0.5.0"):
    """The configurations and the version of a real release, no more; False when it is not there."""
    env = env_path(f"verl-{version}")
    found = sorted(env.glob("lib/python*/site-packages/verl")) if env else []
    for verl in found[:1]:
        shutil.copytree(verl / "trainer/config", code / version / "verl/trainer/config")
        put(code / version / "verl/version/version", (verl / "version/version").read_bytes())
        put(code / version / "verl/__init__.py", "")
    return bool(found)


def make_world(root):
    """False: there is no verl to take the configurations from."""
    common = root / "common"
    make_data(common / "datasets")
    make_models(common / "models")
    put(common / "code/reward.py", "def compute_score(*a, **k):\n    return 1.0\n")
    put(common / "code/empty.py", "")
    put(common / "code/binary.py", b"\x7fELF\0\0\0")
    put(common / "code/torn.yaml", "tools: [\n")
    return make_verl(common / "code/verl")


# ---- what only the trial sees ----

REWARDS = '''
import os, time
def good(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": float(solution_str == ground_truth), "of": data_source}
def loops(**_):
    while True:
        pass
def exits(**_):
    os._exit(0)
def crashes(**_):
    import ctypes
    ctypes.string_at(0)
def recurses(**k):
    return recurses(**k)
def prints(**_):
    while True:
        print("x" * 100000, flush=True)
def hoards(**_):
    return len(bytearray(1 << 40))
def raises(**k):
    return k["answer"]
def text(**_):
    return "very good"
def nan(**_):
    return float("nan")
def no_score(**_):
    return {"points": 1}
def arguments(solution, truth):
    return 1.0
async def later(**_):
    return 0.5
'''
TABLES = '''
import sys
import pyarrow as pa
import pyarrow.parquet as pq
def write(name, rows, schema=None):
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), f"{sys.argv[1]}/{name}.parquet")
prompt, truth = [{"role": "user", "content": "1+1?"}], {"style": "rule", "ground_truth": "2"}
whole = {"prompt": prompt, "data_source": "sums", "reward_model": truth, "extra_info": {"index": 0}}
write("rl", [whole] * 8)
write("bare", [{"prompt": prompt}] * 8)
write("text", [{**whole, "prompt": "1+1?"}] * 8)
write("truthless", [{**whole, "reward_model": {"style": "rule"}}] * 8)
write("none_in_it", [], pa.Table.from_pylist([whole]).schema)
write("sft", [{"messages": [*prompt, {"role": "assistant", "content": "2"}]}] * 8)
'''


def make_trial_world(root, python):
    common = root / "common"
    (common / "datasets").mkdir(parents=True, exist_ok=True)
    subprocess.run([python, "-c", TABLES, common / "datasets"], check=True)
    put(common / "datasets/train.parquet", GOOD)
    put(common / "code/rewards.py", REWARDS)
    put(common / "code/reward.py", "def compute_score(*a, **k):\n    return 1.0\n")
    put(common / "code/syntax.py", "def compute_score(:\n")
    put(common / "code/imports.py", "import no_such_module_at_all\n")
    put(common / "code/shadow/verl/__init__.py", "")
    put(common / "code/my/__init__.py", "")
    put(common / "code/my/rewards.py", REWARDS)
    make_model(common / "models/tiny")
