# SPDX-License-Identifier: Apache-2.0
"""The founding documents' own files: argusd runs on their ray_config.yaml and takes their JobSpecs, unchanged but for
the root's path, the ports, and what a test must add."""

import pathlib
import shutil
import subprocess

import broken
import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd
COMPAT = pathlib.Path(__file__).resolve().parents[2] / "examples/compat"


class Founding(Argusd):
    def write_config(self):
        text = (COMPAT / "ray_config.yaml").read_text()
        for old, new in (("http://127.0.0.1:8265", self.ray_url), ('"/private"', f'"{self.root}"')):
            assert old in text
            text = text.replace(old, new)
        ours = f"listen: 127.0.0.1:{self.port}\nstate_dir: {self.state_dir}\n"
        self.config.write_text(text + ours + f"shepherd: {PROGRAMS['argus-shepherd']}\n")


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    """What the JobSpecs name is there: verl, data, and the model in the cache of HF_HOME."""
    with FakeRay() as ray, Founding(tmp_path_factory.mktemp("compat"), ray.url) as argusd:
        if not broken.make_world(argusd.root):
            pytest.skip("no verl environment is there")
        common = argusd.root / "common"
        if not broken.make_verl(common / "code/verl", "0.9.1"):
            pytest.skip("no environment of verl 0.9.1 is there")
        for name in ("gsm8k", "gsm8k_sft"):
            (common / "datasets" / name).mkdir()
            for part, of in (("train", "train"), ("test", "val")):
                shutil.copy(common / f"datasets/{of}.parquet", common / f"datasets/{name}/{part}.parquet")
        cached = argusd.root / "hf/hub/models--Qwen--Qwen2.5-0.5B-Instruct"
        (cached / "refs").mkdir(parents=True)
        (cached / "refs/main").write_text("abc")
        shutil.copytree(common / "models/tiny", cached / "snapshots/abc")
        yield argusd


def test_the_config_is_read_as_it_stands():
    argv = [PROGRAMS["argusd"], "--check", "--config", COMPAT / "ray_config.yaml"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "user_code_path" in done.stdout + done.stderr  # common to all users: a warning


def lead_to(w, version):
    """The JobSpecs' code_path is this release of verl."""
    link = w.root / "common/code/verl/verl_repo"
    link.unlink(missing_ok=True)
    link.symlink_to(link.with_name(version))


def submit(w, name):
    return w.post((COMPAT / f"jobspec_{name}.yaml").read_bytes(), "?no_trial=1", token="user")


def settled(w, name, status):
    """argusd remembers for some seconds which release lies at a path."""
    replies = []

    def is_settled():
        replies.append(submit(w, name))
        return replies[-1].status == status

    until(is_settled, f"{name} is answered with {status}")
    return replies[-1]


@pytest.mark.parametrize(("name", "version"), [("ppo", "0.5.0"), ("grpo", "0.5.0"), ("sft", "0.9.1")])
def test_a_jobspec_is_taken_as_it_stands(w, name, version):
    lead_to(w, version)
    reply = settled(w, name, 201)
    job = w.job(reply.json()["id"])
    assert job["id"].startswith(f"{name}-")  # an empty submission_id is none
    assert (job["workload"], job["nnodes"]) == (name, 2)
    assert job["gpus"] == 8
    w.stop_job(job["id"])


def test_sft_over_nodes_waits_for_a_newer_verl(w):
    lead_to(w, "0.5.0")
    reply = settled(w, "sft", 422)
    assert [p["field"] for p in reply.json()["problems"]] == ["nnodes"]
    assert "0.7.0 or newer" in reply.json()["detail"]
