# SPDX-License-Identifier: Apache-2.0
"""Every command line of tests/golden/cmdline is taken by the real verl.

Its programs print the config that they would run with (`--cfg job`), and that config holds what the
JobSpec said. They take seconds to import, so the rarer ones are composed by the same Hydra from the
same files in one process per version, without importing verl. The environment of verl 0.7.1 is made by
`tools/setup/setup verl-0.7.1`.
"""

import atexit
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/cmdline"
SHARED = tempfile.mkdtemp(prefix="argus-root-")  # verl makes directories there
atexit.register(shutil.rmtree, SHARED, ignore_errors=True)

pytestmark = pytest.mark.verl


def built_tool():
    found = sorted(ROOT.glob("build*/src/core/cmdline_tool"), key=lambda p: p.stat().st_mtime)
    if not found:
        pytest.skip("cmdline_tool is not built")
    return found[-1]


def verl_python(version):
    done = subprocess.run(
        [ROOT / "tools/setup/env-path", f"verl-{version}"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no environment with verl {version}: {done.stderr.strip()}")
    return pathlib.Path(done.stdout.strip()) / "bin/python"


def command(version, spec, *how):
    argv = [built_tool(), version, SHARED, *how]
    done = subprocess.run(argv, input=spec, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def printed_config(version, argv, tmp_path):
    """What verl's program prints when it is asked for its config instead of running."""
    at = max(i for i, word in enumerate(argv) if word.startswith("verl."))
    done = subprocess.run(
        [verl_python(version), "-m", argv[at], "--cfg", "job", "--resolve", *argv[at + 1 :]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return yaml.safe_load(done.stdout)


def pick(config, dotted):
    for part in dotted.split("."):
        config = config[part]
    return config


EXPECT = {
    "ppo": {
        "algorithm.adv_estimator": "gae",
        "critic.model.path": f"{SHARED}/common/models/qwen",
        "trainer.nnodes": 2,
        "trainer.n_gpus_per_node": 4,
        "trainer.save_freq": 29,
        "trainer.max_actor_ckpt_to_keep": 11,
        "trainer.default_local_dir": f"{SHARED}/jobs/ppo-1/checkpoints",
        "trainer.rollout_data_dir": f"{SHARED}/jobs/ppo-1/samples/rollout",
        "trainer.validation_data_dir": f"{SHARED}/jobs/ppo-1/samples/validation",
        "algorithm.kl_ctrl.kl_coef": 0.002,
        "actor_rollout_ref.rollout.name": "vllm",
    },
    "grpo": {
        "algorithm.adv_estimator": "grpo",
        "data.train_files": [f"{SHARED}/common/datasets/a.parquet", f"{SHARED}/common/datasets/b's.parquet"],
        "data.train_batch_size": 252,
        "trainer.project_name": "p 1",
        "trainer.resume_mode": "resume_path",
        "trainer.resume_from_path": f"{SHARED}/jobs/other-job/checkpoints/global_step_40",
        "actor_rollout_ref.rollout.n": 5,
    },
    "megatron": {
        "actor_rollout_ref.actor.strategy": "megatron",
        "actor_rollout_ref.rollout.tensor_model_parallel_size": 2,
        "trainer.nnodes": 2,
    },
    "multiturn": {
        "actor_rollout_ref.rollout.multi_turn.enable": True,
        "actor_rollout_ref.rollout.multi_turn.tool_config_path": f"{SHARED}/users/alice/code/tools.yaml",
    },
    "sft": {
        "trainer.max_ckpt_to_keep": 11,
        "trainer.resume_mode": "disable",
        "data.max_length": 2048,
        "data.train_files": f"{SHARED}/common/datasets/sft/train.parquet",
    },
    "eval": {"data.path": f"{SHARED}/users/alice/out/generated.parquet"},
    "generate": {
        "data.output_path": f"{SHARED}/jobs/generate-1/output/generated.parquet",
        "trainer.n_gpus_per_node": 2,
    },
}
REWARD = {
    "0.5.0": "custom_reward_function",
    "0.7.1": "reward.custom_reward_function",
    "0.9.1": "reward.custom_reward_function",
}
VERSIONS = ["0.5.0", pytest.param("0.7.1", marks=pytest.mark.nightly), "0.9.1"]


PRINTED = ["ppo", "sft"]  # by the program itself

COMPOSE = """
import importlib.util, json, pathlib, re, sys
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

root = pathlib.Path(importlib.util.find_spec("verl").submodule_search_locations[0])
answers = {}
for name, words in json.load(sys.stdin).items():
    at = max(i for i, word in enumerate(words) if word.startswith("verl."))
    source = (root.parent / (words[at].replace(".", "/") + ".py")).read_text()
    config_name = re.search(r'config_name="([^"]+)"', source)[1]
    for flag in [w for w in words[at + 1 :] if w.startswith("--config-name=")]:
        config_name = flag.partition("=")[2]
    overrides = [w for w in words[at + 1 :] if not w.startswith("--")]
    with initialize_config_dir(config_dir=str(root / "trainer/config"), version_base=None):
        config = compose(config_name, overrides=overrides)
    answers[name] = OmegaConf.to_container(config)
json.dump(answers, sys.stdout)
"""


def check(version, workload, config):
    for key, value in EXPECT[workload].items():
        assert pick(config, key) == value, key
    if workload in ("ppo", "eval", "multiturn"):
        reward = pick(config, REWARD[version])
        assert reward["path"] == f"{SHARED}/users/alice/code/my_reward.py"
        assert reward["name"] == ("score" if workload == "eval" else "compute_score")
    if workload not in ("eval", "generate"):
        assert ("file" in config["trainer"]["logger"]) == (version != "0.5.0")


def golden(workload):
    return (GOLDEN / f"{workload}.yaml").read_text()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("workload", PRINTED)
@pytest.mark.parametrize("version", VERSIONS)
def test_verl_takes_the_command_line(version, workload, tmp_path):
    argv = command(version, golden(workload))["argv"]
    check(version, workload, printed_config(version, argv, tmp_path))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", VERSIONS)
def test_verls_configs_have_every_key(version):
    rest = {w: command(version, golden(w))["argv"] for w in EXPECT if w not in PRINTED}
    done = subprocess.run(
        [verl_python(version), "-c", COMPOSE], input=json.dumps(rest), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    configs = json.loads(done.stdout)
    assert set(configs) == set(rest)
    for workload, config in configs.items():
        check(version, workload, config)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", VERSIONS)
def test_verls_configs_have_every_key_of_the_shipped_presets(version):
    texts = {p.stem: p.read_text() for p in (ROOT / "lib/presets").glob("*.yaml") if p.stem != "merge"}
    argvs = {name: command(version, text, "preset")["argv"] for name, text in texts.items()}
    done = subprocess.run(
        [verl_python(version), "-c", COMPOSE], input=json.dumps(argvs), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    configs = json.loads(done.stdout)
    for name in ("ppo-7b", "grpo-7b"):
        assert pick(configs[name], "actor_rollout_ref.rollout.tensor_model_parallel_size") == 2
        assert pick(configs[name], "data.train_batch_size") == 1024
    assert pick(configs["sft-7b"], "data.max_length") == 2048


@pytest.mark.timeout(600)
def test_odd_values_arrive(tmp_path):
    """Quotes, blanks, braces and backslashes in a path and in a name reach verl's config."""
    name = 'it\'s [a] {b}: "c", =d \\ ${e} é'
    spec = yaml.safe_load(golden("ppo"))
    spec["project"] = name
    spec["train_file"] = "${SHARED_ROOT}/odd dir/it's, {x}.parquet"
    argv = command("0.9.1", yaml.safe_dump(spec))["argv"]
    config = printed_config("0.9.1", argv, tmp_path)
    assert pick(config, "trainer.project_name") == name
    assert pick(config, "data.train_files") == f"{SHARED}/odd dir/it's, {{x}}.parquet"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("source", ["golden", pytest.param("preset", marks=pytest.mark.nightly)])
def test_the_merger_takes_its_arguments(version, source, tmp_path):
    """It parses them and then misses the checkpoint, which is not there."""
    preset = (ROOT / "lib/presets/merge.yaml").read_text()
    argv = (command(version, preset, "preset") if source == "preset" else command(version, golden("merge")))["argv"]
    done = subprocess.run(
        [verl_python(version), *argv[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1, "argparse would end with 2"
    (missed,) = set(re.findall(rf"{SHARED}/jobs/[\w.-]+/checkpoints/global_step_\d+/actor", done.stderr))
    assert source == "preset" or missed == f"{SHARED}/jobs/ppo-1/checkpoints/global_step_30/actor"
