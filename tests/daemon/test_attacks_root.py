# SPDX-License-Identifier: Apache-2.0
"""What a job can do to the shared root, it can do with argusd's own uid: here it does, beside the real argusd.

Each test puts a link where argusd is about to write, change a mode or look, and asserts that what the link leads to
is as it was, and that honest jobs still run."""

import contextlib

import broken
import pytest
from attack import make_outside, untouched
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd


@pytest.fixture
def w(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "the root is ready")
        argusd.ray = ray
        yield argusd


@pytest.fixture
def outside(tmp_path):
    return make_outside(tmp_path / "head")


def shell(job, line="echo honest"):
    return {"workload": "ray", "submission_id": job, "entrypoint": line}


@contextlib.contextmanager
def waiting(argusd, *specs, restored=True):
    """The jobs are accepted and wait for GPUs, which come in the end. restored: argusd was started anew meanwhile, and
    cannot know any more whether it made their directories."""
    holder = argusd.submit("exec tail -f /dev/null", nnodes=2, n_gpus_per_node=4)
    argusd.wait_state(holder, "RUNNING")
    for spec in specs:
        argusd.submit({**spec, "n_gpus_per_node": 1})
    if restored:
        argusd.restart()
    yield
    argusd.stop_job(holder)


@contextlib.contextmanager
def away(argusd, *specs):
    """The same, but Ray is away: no trial begins either."""
    until(lambda: argusd.get("/v1/clusters")["clusters"][0]["up"], "Ray is seen")
    argusd.ray.listen(False)
    until(lambda: not argusd.get("/v1/clusters")["clusters"][0]["up"], "Ray is away")
    for spec in specs:
        argusd.submit(spec)
    argusd.restart()
    yield
    argusd.ray.listen(True)


def is_refused(argusd, job, words="argusd follows no link"):
    over = argusd.wait_over(job)
    assert (over["state"], over["reason"]["code"]) == ("FAILED", "config_error"), over["reason"]
    assert words in over["reason"]["text"]


def honest(argusd, job="honest"):
    argusd.submit(shell(job))
    assert argusd.wait_over(job)["state"] == "SUCCEEDED"


def test_a_link_in_a_jobs_directory_is_not_written_through(w, outside):
    places = [".", "attempts", "attempts/1", "attempts/1/logs", "config", "logs", "debug"]
    with waiting(w, *(shell(f"evil{i}", "echo owned") for i in range(len(places)))):
        for i, place in enumerate(places):
            at = w.root / f"jobs/evil{i}" / place
            at.parent.mkdir(parents=True, exist_ok=True)
            at.symlink_to(outside)
    for i in range(len(places)):
        is_refused(w, f"evil{i}")
    untouched(outside)
    honest(w)


def test_a_link_in_the_place_of_a_file_is_replaced(w, outside):
    attempt = w.root / "jobs/evil/attempts/1"
    files = ["attempts/1/run.sh", "attempts/1/launch.json", "attempts/1/.secrets.json", "config/jobspec.yaml"]
    with waiting(w, shell("evil", "echo honest")):
        attempt.mkdir(parents=True)
        (w.root / "jobs/evil/config").mkdir()
        for name in [*files, "meta.json"]:
            (w.root / "jobs/evil" / name).symlink_to(outside / "key")
    assert w.wait_over("evil")["state"] == "SUCCEEDED"
    until(lambda: not (w.root / "jobs/evil/meta.json").is_symlink(), "meta.json is written")
    for name in files[:2]:
        assert not (w.root / "jobs/evil" / name).is_symlink()
    untouched(outside)


def test_the_trials_directory_is_no_link(w, outside):
    broken.make_world(w.root)
    broken.put(w.root / "common/code/verl/0.5.0/verl/version/version", "0.5.0")
    common = "${SHARED_ROOT}/common"
    spec = {"workload": "grpo", "n_gpus_per_node": 1, "model_id": f"{common}/models/tiny",
            "code_path": f"{common}/code/verl/0.5.0", "train_file": f"{common}/datasets/train.parquet",
            "val_file": f"{common}/datasets/val.parquet"}  # fmt: skip
    with away(w, {**spec, "submission_id": "evil"}, {**spec, "submission_id": "worse"}):
        (w.root / "jobs/evil").mkdir()
        (w.root / "jobs/evil/trial").symlink_to(outside)
        (w.root / "jobs/worse").symlink_to(outside)
    is_refused(w, "evil")
    is_refused(w, "worse")
    untouched(outside)


def taken(argusd, job):
    at = argusd.root / "jobs" / job
    (at / "attempts/1").mkdir(parents=True)
    (at / "attempts/1/hint").write_text("of another")
    return at


def test_a_directory_that_is_not_the_jobs_refuses_its_id(w):
    taken(w, "theirs")
    reply = w.post(shell("theirs"), token="user")
    assert (reply.status, reply.json()["field"]) == (409, "submission_id"), reply
    assert w.post(shell("theirs"), "?dry_run=1", token="user").status == 409
    honest(w)


def test_a_directory_that_came_while_the_job_waited_ends_it(w):
    with waiting(w, shell("late"), restored=False):
        at = taken(w, "late")
    is_refused(w, "late", "jobs/late' was there before the job: submit it under another submission_id")
    assert sorted(p.name for p in (at / "attempts/1").iterdir()) == ["hint"]


def test_a_start_between_making_and_writing_fails_no_job(w):
    with waiting(w, shell("mine")):
        taken(w, "mine")  # as if argusd had made it before it was started anew
    assert w.wait_over("mine")["state"] == "SUCCEEDED"


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
