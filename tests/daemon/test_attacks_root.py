# SPDX-License-Identifier: Apache-2.0
"""What a job can do to the shared root, it can do with argusd's own uid: here it does, beside the real argusd.

Each test puts a link where argusd is about to write, change a mode or look, and asserts that what the link leads to
is as it was, and that honest jobs still run."""

import os
import stat

import broken
import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd


@pytest.fixture
def w(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        until(lambda: (argusd.root / "jobs").is_dir(), "the root is ready")
        yield argusd


@pytest.fixture
def outside(tmp_path):
    """A directory of the head that no job can reach, and what is in it."""
    path = tmp_path / "head"
    path.mkdir(mode=0o700)
    path.chmod(0o700)
    (path / "key").write_text("secret")
    (path / "key").chmod(0o600)
    return path


def untouched(outside):
    assert os.listdir(outside) == ["key"]
    assert (outside / "key").read_text() == "secret"
    assert [stat.S_IMODE(os.stat(p).st_mode) for p in (outside, outside / "key")] == [0o700, 0o600]


def shell(job, line="echo honest"):
    return {"workload": "ray", "submission_id": job, "entrypoint": line}


def honest(argusd, job="honest"):
    argusd.submit(shell(job))
    assert argusd.wait_over(job)["state"] == "SUCCEEDED"


@pytest.mark.parametrize("place", [".", "attempts", "attempts/1", "attempts/1/logs", "config", "logs", "debug"])
def test_a_link_in_a_jobs_directory_is_not_written_through(w, outside, place):
    at = w.root / "jobs/evil" / place
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(outside)
    w.submit(shell("evil", "echo owned"))
    job = w.wait_over("evil")
    untouched(outside)
    assert job["state"] == "FAILED" and job["reason"]["code"] == "config_error", job["reason"]
    assert "argusd follows no link" in job["reason"]["text"]
    honest(w)


def test_a_link_in_the_place_of_a_file_is_replaced(w, outside):
    attempt = w.root / "jobs/evil/attempts/1"
    attempt.mkdir(parents=True)
    (w.root / "jobs/evil/config").mkdir()
    files = ["attempts/1/run.sh", "attempts/1/launch.json", "attempts/1/.secrets.json", "config/jobspec.yaml"]
    for name in [*files, "meta.json"]:
        (w.root / "jobs/evil" / name).symlink_to(outside / "key")
    honest(w, "evil")
    until(lambda: not (w.root / "jobs/evil/meta.json").is_symlink(), "meta.json is written")
    for name in files[:2]:
        assert not (w.root / "jobs/evil" / name).is_symlink()
    untouched(outside)


@pytest.mark.parametrize("place", ["trial", "."])
def test_the_trials_directory_is_no_link(w, outside, place):
    broken.make_world(w.root)
    broken.put(w.root / "common/code/verl/0.5.0/verl/version/version", "0.5.0")
    common = "${SHARED_ROOT}/common"
    at = w.root / "jobs/evil" / place
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(outside)
    spec = {"workload": "grpo", "submission_id": "evil", "n_gpus_per_node": 1, "model_id": f"{common}/models/tiny",
            "code_path": f"{common}/code/verl/0.5.0", "train_file": f"{common}/datasets/train.parquet",
            "val_file": f"{common}/datasets/val.parquet"}  # fmt: skip
    w.submit(spec)
    job = w.wait_over("evil")
    untouched(outside)
    assert (job["state"], job["reason"]["code"]) == ("FAILED", "config_error"), job["reason"]
    assert "argusd follows no link" in job["reason"]["text"]


def test_the_bytes_of_an_upload_are_no_link(w, outside):
    data = b"bytes of a user"
    upload = w.call("POST", "/v1/uploads", {"name": "x", "bytes": len(data)}, token="user").json()["id"]
    reply = w.call("PUT", f"/v1/uploads/{upload}?offset=0", data, token="user", Content_Type="application/octet-stream")
    assert reply.status == 200, reply
    held = w.root / "argus/uploads" / upload / "data"
    held.rename(held.with_name("kept"))
    held.symlink_to(outside / "key")
    reply = w.call("POST", "/v1/files", {"path": "common/x", "upload": upload}, token="user")
    untouched(outside)
    assert reply.status >= 400 and "follows no link" in reply.json()["detail"], reply
