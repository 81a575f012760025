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
THERE_BEFORE = "was there before the job: submit it under another submission_id"


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
def waiting(argusd, *specs, restored=False):
    """The jobs are accepted and wait for GPUs, which come in the end. restored: argusd is started anew meanwhile."""
    holder = argusd.submit("exec tail -f /dev/null", nnodes=2, n_gpus_per_node=4)
    argusd.wait_state(holder, "RUNNING")
    for spec in specs:
        argusd.submit({**spec, "n_gpus_per_node": 1})
    if restored:
        argusd.restart()
    yield
    argusd.stop_job(holder)


@contextlib.contextmanager
def unsent(argusd, *specs):
    """The jobs have the directories of their first attempts, and Ray took none of them: argusd was killed, and writes
    all of it again."""
    argusd.ray.fault("status", method="POST", path="/api/jobs/", status=500)
    for spec in specs:
        argusd.submit({**spec, "n_gpus_per_node": 1})
    for spec in specs:
        launch = argusd.root / "jobs" / spec["submission_id"] / "attempts/1/launch.json"
        until(launch.exists, f"{launch} is written")
    argusd.kill9()
    yield
    argusd.ray.heal()
    argusd.start()


def replaced(at, by):
    """What is there is renamed away, and a link has its name."""
    at.rename(at.with_name(at.name + ".kept"))
    at.symlink_to(by)


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
    places = ["", "attempts", "attempts/1", "attempts/1/logs", "config", "logs", "debug"]
    with unsent(w, *(shell(f"evil{i}", "echo owned") for i in range(len(places)))):
        for i, place in enumerate(places):
            replaced(w.root / f"jobs/evil{i}" / place, outside)
    for i in range(len(places)):
        is_refused(w, f"evil{i}")
    untouched(outside)
    honest(w)


def test_a_link_in_the_place_of_a_file_is_replaced(w, outside):
    files = ["attempts/1/run.sh", "attempts/1/launch.json", "attempts/1/.secrets.json", "config/jobspec.yaml"]
    with unsent(w, shell("evil", "echo honest")):
        for name in [*files, "meta.json"]:
            (w.root / "jobs/evil" / name).unlink(missing_ok=True)
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
    is_refused(w, "worse", THERE_BEFORE)
    untouched(outside)


SQUATTERS = ("dir", "empty", "file", "link", "nowhere")


def squat(argusd, outside):
    """Somebody has the names of these jobs' directories."""
    jobs = argusd.root / "jobs"
    (jobs / "dir/attempts/1").mkdir(parents=True)
    (jobs / "dir/attempts/1/hint").write_text("of another")
    (jobs / "empty").mkdir()
    (jobs / "file").write_text("of another")
    (jobs / "link").symlink_to(outside)
    (jobs / "nowhere").symlink_to("nothing")


def is_as_squatted(argusd, outside):
    jobs = argusd.root / "jobs"
    assert [p.name for p in (jobs / "dir/attempts").rglob("*")] == ["1", "hint"]
    assert (jobs / "dir/attempts/1/hint").read_text() == "of another"
    assert (jobs / "file").read_text() == "of another"
    assert (jobs / "link").is_symlink() and (jobs / "nowhere").is_symlink()
    untouched(outside)


def test_a_name_that_is_taken_is_no_place_for_a_new_job(w, outside):
    squat(w, outside)
    for _ in ("at first", "after a restart"):
        for job in SQUATTERS:
            reply = w.post(shell(job), token="user")
            assert (reply.status, reply.json()["field"]) == (409, "submission_id"), reply
            assert f"'{job}'" in reply.json()["detail"], reply
            assert w.post(shell(job), "?dry_run=1", token="user").status == 409
        w.restart()
    is_as_squatted(w, outside)
    assert not list((w.root / "jobs/empty").iterdir())
    honest(w)


@pytest.mark.parametrize("restored", [False, True])
def test_what_came_while_the_job_waited_ends_it(w, outside, restored):
    """An empty directory misleads nobody, and may be our own: it is taken."""
    with waiting(w, *(shell(job) for job in SQUATTERS), restored=restored):
        squat(w, outside)
    for job in SQUATTERS:
        if job == "empty":
            assert w.wait_over(job)["state"] == "SUCCEEDED"
        else:
            is_refused(w, job, f"jobs/{job}' {THERE_BEFORE}")
    is_as_squatted(w, outside)


def test_a_start_between_making_and_writing_fails_no_job(w):
    with unsent(w, shell("mine")):
        attempts = w.root / "jobs/mine/attempts"
        attempts.rename(attempts.with_name("elsewhere"))
    assert w.wait_over("mine")["state"] == "SUCCEEDED"
    with waiting(w, shell("tried"), restored=True):
        (w.root / "jobs/tried/trial").mkdir(parents=True)
        (w.root / "jobs/tried/trial/ask.json").write_text("{}")
    assert w.wait_over("tried")["state"] == "SUCCEEDED"


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
