# SPDX-License-Identifier: Apache-2.0
"""v3.1: code of one's own. Two releases of verl at the same time, each proven; environment down to the last child."""

import json
import os
import pathlib
import re
import shutil
import subprocess
from statistics import fmean

import pytest
from raybed import built_env
from stage import verl_package

# Three trainings: minutes of CPU. In every check test_v1_1.py trains with two trees of verl and with the newest one,
# and tests/daemon/test_hook*.py have the proof and the environment of children.
pytestmark = pytest.mark.nightly

FAMILY = pathlib.Path(__file__).with_name("family.py")
BESIDE = "uvicorn fastapi starlette h11 annotated_doc transfer_queue".split()  # verl 0.9.1 wants them, 0.5.0 does not
STEPS = 24  # of the curves
CURVE = re.compile(r"(?<![\w/])step:(\d+) - .*?critic/score/mean:(-?[\d.]+(?:e-?\d+)?)")
KINDS = "worker loader-fork loader-spawn engine-fork engine-spawn program".split()


@pytest.fixture(scope="module")
def doc(stage):
    """Both trees of verl, and what the family needs, are on the shared root."""
    newest = built_env("verl-0.9.1")
    code = stage.root / "common/code"
    package = verl_package(newest)
    shutil.copytree(package, code / "verl/0.9.1/verl")
    for name in BESIDE:
        shutil.copytree(package.parent / name, code / "verl/0.9.1" / name)
    (code / "family").mkdir()
    shutil.copy(FAMILY, code / "family")
    (code / "extra").mkdir()
    make_venv(stage, stage.root / "common/venvs/a")
    return stage.document("v3.1")


def make_venv(stage, place):
    """A venv on the shared root, on top of the packages that the workers have."""
    subprocess.run([stage.bed.python, "-m", "venv", "--without-pip", place], check=True)
    (packages,) = place.glob("lib/python3*/site-packages")
    (packages / "below.pth").write_text(f"{verl_package(stage.bed.env).parent}\n")


@pytest.fixture(scope="module")
def versions(stage, doc):
    doc.run("versions")
    doc.run("proof")
    return {job: stage.keep_job(job) for job in ("v31-old", "v31-new")}


@pytest.fixture(scope="module")
def curves(stage, doc, versions):
    """critic/score/mean of each step, under the reward of v31-old and under the one that pays for the contrary."""
    doc.run("reward")
    stage.keep_job("v31-reward")
    found = {job: dict(CURVE.findall(stage.driver_log(job))) for job in ("v31-old", "v31-reward")}
    return {job: [float(steps[str(n)]) for n in range(1, STEPS + 1)] for job, steps in found.items()}


@pytest.fixture(scope="module")
def family(stage, doc):
    doc.run("family")
    stage.keep_job("v31-family")
    told = re.findall(r"(?m)^FAMILY (.*)$", stage.driver_log("v31-family"))
    return stage.keep("v31-family.told.json", [json.loads(line) for line in told])


# ---- several versions ----


def test_two_releases_train_at_the_same_time(stage, versions):
    old, new = versions["v31-old"], versions["v31-new"]
    assert old["state"] == new["state"] == "SUCCEEDED"
    assert old["started_at"] < new["ended_at"] and new["started_at"] < old["ended_at"], "not at the same time"
    for job, last in (("v31-old", STEPS), ("v31-new", 2)):
        saved = stage.job_dir(job) / "checkpoints/latest_checkpointed_iteration.txt"
        assert saved.read_text() == str(last) and last in stage.steps(job)
    assert (old["verl"], new["verl"]) == ("0.5.0", "0.9.1")


FROM_ZIP = pytest.param("v31-reward", "0.5.0", marks=pytest.mark.nightly)


@pytest.mark.parametrize(("job", "version"), [("v31-old", "0.5.0"), ("v31-new", "0.9.1"), FROM_ZIP])
def test_each_is_proven_to_have_imported_its_own(request, stage, versions, job, version):
    """By its path, from a snapshot, and from a zip that came with the submit."""
    if job == "v31-reward":
        request.getfixturevalue("curves")
    told = stage.job(job)
    proof, code = told["proof"]["imports"], str(stage.root / f"common/code/verl/{version}")
    if job != "v31-old":
        (kept,) = [s for s in told["snapshots"] if s["key"] == "code"]
        code = str(stage.root / f"argus/snapshots/{kept['hash']}/tree")
        assert (proof["hash"], kept["path"], kept["verl"]) == (kept["hash"], code, version)
    file = f"{code}/verl/__init__.py"
    assert (proof["ok"], proof["verl"], proof["file"], proof["ray"]) == (True, version, file, stage.bed.version)
    gang = {n["name"] for n in told["nodes"]}
    assert gang <= set(proof["nodes"])
    kinds = {(p["kind"], p["node"]) for p in proof["processes"] if p["file"] == file}
    assert {k for k, _ in kinds} >= {"driver", "worker"}
    assert {node for kind, node in kinds if kind == "worker"} >= gang
    records = [json.loads(p.read_text()) for p in (stage.job_dir(job) / "attempts/1/proof").iterdir()]
    assert len(records) == len(proof["processes"])
    for record in records:
        assert record["torch"] and record["python"] and record["sys_path"][0:1]
        assert record["code"] == code


def test_reward_file_is_part_of_the_proof(stage, versions):
    assert versions["v31-old"]["proof"]["imports"]["reward"] == str(stage.root / "common/code/cpu/reward.py")


# ---- another reward ----


@pytest.mark.nightly  # a training more; in every check the trial calls rewards of several kinds
def test_another_reward_trains_to_another_curve(curves):
    """One pays for digits, the other for anything else. The model begins with few digits and learns what is paid."""
    digits, others = curves["v31-old"], [1 - score for score in curves["v31-reward"]]  # shares of digits, both
    assert fmean(digits[:4]) < 0.3 and fmean(others[:4]) < 0.3
    assert fmean(digits[-4:]) > 1.5 * fmean(digits[:4]), digits
    assert fmean(others[-4:]) < fmean(others[:4]), others
    assert fmean(digits[-4:]) > 2 * fmean(others[-4:]), (digits, others)


@pytest.mark.nightly  # the same training
def test_reward_of_a_module_is_part_of_the_proof(stage, curves):
    module = stage.root / "users/admin/code/rewards/reward.py"
    assert stage.job("v31-reward")["proof"]["imports"]["reward"] == str(module)


# ---- another code than the job's ----


def test_a_shadow_is_an_import_error(stage, doc, versions):
    doc.run("shadow", code=10)
    job = stage.keep_job("v31-shadow")
    mine, own = stage.root / "common/code/mine/verl", stage.root / "common/code/verl/0.5.0/verl"
    assert (job["state"], job["reason"]["code"], job["finding"]["class"]) == ("FAILED", *["import_error"] * 2)
    assert f"verl was imported from '{mine}/__init__.py' and not from '{own}'" in job["reason"]["text"]
    assert (len(job["attempts"]), stage.steps("v31-shadow")) == (1, [])
    assert str(mine) in doc.run("shadow-why")


# ---- environment and paths ----


def test_every_process_told(stage, family):
    assert sorted(t["what"] for t in family) == sorted(["driver", "runner", *KINDS, *KINDS])
    hosts = set(stage.workers) if stage.bed.info["mode"] == "netns" else {os.uname().nodename}
    for kind in KINDS:
        assert {t["host"] for t in family if t["what"] == kind} == hosts, kind
    assert len({(t["host"], t["pid"]) for t in family}) == len(family)


def test_variables_reach_every_process(stage, family):
    want = {
        "ARGUS_JOB_ID": "v31-family",
        "ARGUS_ATTEMPT": "1",
        "ARGUS_ATTEMPT_DIR": str(stage.job_dir("v31-family") / "attempts/1"),
        "FAMILY_WORD": "two words, an = and a 'quote'",
        "FAMILY_OTHER": str(stage.root),
    }
    for told in family:
        who = f"{told['what']} {told['pid']} on {told['host']}"
        for source in (told["proc"], told["env"]):
            missing = [n for n, v in want.items() if source.get(n) != v]
            assert not missing, f"{who} lacks {missing}"
            assert json.loads(source["ARGUS_PROOF"])["code"].endswith("/0.5.0"), who


def test_paths_reach_every_process(stage, family):
    code = stage.root / "common/code"
    venv = stage.root / "common/venvs/a/bin/python"
    order = [str(p) for p in (stage.root / "argus/hook", code / "verl/0.5.0", code / "family", code / "extra")]
    for told in family:
        who = f"{told['what']} {told['pid']} on {told['host']}"
        assert told["python"] == str(venv), who
        assert [p for p in told["env"]["PYTHONPATH"].split(":") if p in order] == order, who
        assert set(order) <= set(told["path"]), who  # Ray puts the driver's directory in front
        assert told["path"].index(order[0]) < told["path"].index(order[1]) < told["path"].index(order[3]), who
    (driver,) = [t for t in family if t["what"] == "driver"]
    assert driver["cwd"] == str(code / "family")


def test_entrypoint_of_the_driver(stage, family):
    payload = json.loads((stage.job_dir("v31-family") / "attempts/1/submit_payload.json").read_text())
    assert (payload["entrypoint_num_cpus"], payload["entrypoint_resources"]["worker_node"]) == (2, 1)
    assert payload["runtime_env"]["py_executable"] == str(stage.root / "common/venvs/a/bin/python")


def test_code_that_is_missing_on_a_node(stage, doc, family):
    """Something else is mounted over the trees of verl on one of the machines."""
    if stage.bed.info["mode"] != "netns":
        pytest.skip("the hosts of this bed share their mounts")
    trees, away = str(stage.root / "common/code/verl"), sorted(stage.workers)[-1]
    stage.bed.on(away, "mount", "-t", "tmpfs", "none", trees)
    try:
        doc.run("missing", code=10)
    finally:
        stage.bed.on(away, "umount", "-l", trees)
    job = stage.keep_job("v31-missing")
    assert (job["state"], job["reason"]["code"], len(job["attempts"])) == ("FAILED", "import_error", 1)
    said = rf"the job's code_path '{trees}/0.5.0' is not there \(\w+ process \d+ on {away}\)"
    assert re.match(said, job["reason"]["text"]), job["reason"]


def test_every_command_of_the_document_was_run(stage, doc, versions, family):
    assert doc.never_run(at_night=["reward"]) == []
