# SPDX-License-Identifier: Apache-2.0
"""The trial by itself, in verl's own environment: what it finds, and what a good job shows."""

import concurrent.futures
import json
import pathlib
import subprocess

import broken
import pytest
import yaml
from catalogue import rows, said
from raybed import built_env

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "lib/argus_trial.py"
LIMITS = {"seconds": 600, "reward_seconds": 60, "reward_bytes": 4 << 30}
SOON = {"reward_seconds": 2}  # of a reward that never returns

pytestmark = [pytest.mark.verl, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    env = built_env("verl-0.5.0")
    root = tmp_path_factory.mktemp("trial")
    broken.make_trial_world(root, env / "bin/python")
    code = root / "common/code/verl/0.5.0"
    code.mkdir(parents=True)
    (code / "verl").symlink_to(next(env.glob("lib/python*/site-packages/verl")))
    return root, env / "bin/python"


def ask_of(root, spec):
    """What argusd would ask."""
    spec = json.loads(json.dumps(spec).replace("${SHARED_ROOT}", str(root)))
    where, _, function = spec.get("reward_fn_path", "").partition(":")
    reward = {"file": where, "function": function or "compute_score"} if where else None
    modules = {"sft": "verl.trainer.fsdp_sft_trainer", "eval": "verl.trainer.main_eval"}
    argv = ["python3", "-m", modules.get(spec["workload"], "verl.trainer.main_ppo"), *spec.get("overrides", [])]
    if spec["workload"] == "sft":
        argv.append("data.multiturn.enable=True")
    files = {key: [spec[key]] for key in ("train_file", "val_file") if key in spec}
    path = [spec.get("working_dir"), spec["code_path"], *spec.get("extra_pythonpath", [])]
    ask = {"workload": spec["workload"], "argv": argv, "code_path": spec["code_path"], "verl": "0.5.0"}
    says = {}
    for code, english, _ in rows("trial"):
        says.setdefault(code, []).append(english)
    return {**LIMITS, **ask, "reward": reward, **files, "says": says}, path


def run(world, directory, spec, **more):
    root, python = world
    ask, path = ask_of(root, spec)
    directory.mkdir(parents=True)
    (directory / "ask.json").write_text(json.dumps(ask | more))
    env = {"PYTHONPATH": ":".join(p for p in path if p), "PATH": "/usr/bin:/bin", "HOME": str(directory)}
    done = subprocess.run([python, PROGRAM, directory], env=env, capture_output=True, text=True, timeout=600)
    assert (directory / "result.json").exists(), done.stderr
    result = json.loads((directory / "result.json").read_text())
    for f in result["findings"]:  # as argusd says it
        f["hint"] = said("trial", f["code"], f["args"])[1]
    return {**result, "its log": (directory / "trial.log").read_bytes()}


@pytest.fixture(scope="module")
def found(world, tmp_path_factory):
    """All of the corpus, two at a time."""
    cases, directory = broken.cases("trial"), tmp_path_factory.mktemp("cases")

    def one(case):
        return run(world, directory / case.name, case.spec, **(SOON if case.name == "trial-reward-loops" else {}))

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return dict(zip((c.name for c in cases), pool.map(one, cases), strict=True))


@pytest.mark.parametrize("case", broken.cases("trial"), ids=lambda c: c.name)
def test_each_of_the_corpus_is_found(found, case):
    result = found[case.name]
    assert not result["ok"]
    assert any(case.is_told(f) for f in result["findings"]), result["findings"]
    for one in result["findings"]:
        at, log = one["log"], result["its log"]
        assert log[at["offset"] :].split(b"\n")[0].decode() == one["detail"] == log.decode().split("\n")[at["line"] - 1]


GOOD = {
    "workload": "grpo",
    "code_path": "${SHARED_ROOT}/common/code/verl/0.5.0",
    "train_file": "${SHARED_ROOT}/common/datasets/rl.parquet",
    "val_file": "${SHARED_ROOT}/common/datasets/rl.parquet",
    "reward_fn_path": "${SHARED_ROOT}/common/code/rewards.py:good",
    "overrides": ["data.train_batch_size=4", "actor_rollout_ref.rollout.name=hf"],
}


def test_a_good_one_shows_what_it_saw(world, tmp_path):
    result = run(world, tmp_path / "good", GOOD)
    assert result["ok"] and not result["findings"], result
    assert result["reward"]["returned"] == "{'score': 1.0, 'of': 'sums'}"
    assert [d["rows"] for d in result["data"]] == [8, 8] and "1+1?" in result["row"]["prompt"]
    assert result["train_rows"] == 8
    assert result["versions"]["verl"].startswith("0.5.0") and result["versions"]["ray"] == "2.51.1"


def test_a_module_and_a_coroutine(world, tmp_path):
    spec = {**GOOD, "extra_pythonpath": ["${SHARED_ROOT}/common/code"], "reward_fn_path": "x"}
    result = run(world, tmp_path / "module", spec, reward={"module": "my.rewards", "function": "later"})
    assert result["ok"] and result["reward"]["returned"] == "0.5", result
    assert result["reward"]["file"].endswith("my/rewards.py")


def test_the_newest_verl_finds_nothing_in_the_example(world, tmp_path):
    env = built_env("verl-0.9.1")
    root, code = world[0], tmp_path / "code"
    code.mkdir()
    (code / "verl").symlink_to(next(env.glob("lib/python*/site-packages/verl")))
    example = yaml.safe_load((PROGRAM.parents[1] / "examples/grpo.yaml").read_text())
    overrides = [o for o in example["overrides"] if "train_batch_size" not in o] + ["data.train_batch_size=4"]
    overrides.append("data.train_max_samples=6")
    spec = {**GOOD, "code_path": str(code), "overrides": overrides}
    result = run((root, env / "bin/python"), tmp_path / "newest", spec, verl="0.9.1")
    assert result["ok"], result["findings"]
    assert result["train_rows"] == 6  # no more of the 8 are read


def test_several_findings_at_once(world, tmp_path):
    spec = {**GOOD, "train_file": "${SHARED_ROOT}/common/datasets/bare.parquet"}
    spec |= {"working_dir": "${SHARED_ROOT}/common/code/shadow"}
    spec |= {"reward_fn_path": "${SHARED_ROOT}/common/code/syntax.py"}
    result = run(world, tmp_path / "several", spec)
    assert {f["field"] for f in result["findings"]} == {"code_path", "train_file", "reward_fn_path"}
