# SPDX-License-Identifier: Apache-2.0
"""A job that has ended is submitted once more: as a new job, linked to the old one, for whoever may change that one."""

import os
import subprocess

import broken
import pytest
from checkpoints import TRACKER, put_checkpoint
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd

COMMON = "${SHARED_ROOT}/common"
TRAIN = {
    "workload": "grpo",
    "n_gpus_per_node": 4,
    "pool": "nowhere",  # it waits, until it is stopped
    "model_id": f"{COMMON}/models/tiny",
    "train_file": f"{COMMON}/datasets/train.parquet",
    "val_file": f"{COMMON}/datasets/val.parquet",
}


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("retry"), ray.url) as argusd:
        broken.make_world(argusd.root)
        assert argusd.call("POST", "/v1/users", {"name": "bob"}).status == 201
        argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
        yield argusd


def retry(w, job, body=None, query="", token="user", **headers):
    return w.call("POST", f"/v1/jobs/{job}:retry{query}", body or {}, token=token, **headers)


def retried(w, *args, **more):
    reply = retry(w, *args, **more)
    assert reply.status == 201, reply
    return reply.json()


def refused(reply, status, *words):
    assert reply.status == status, reply
    detail = reply.json()["detail"]
    assert all(word in detail for word in words), detail
    assert "\n" not in detail


def trained(w, steps=(), newest=None, **keys):
    """A training that has ended and left these checkpoints."""
    reply = w.post({**TRAIN, **keys}, "?no_trial=1", token="user")
    assert reply.status == 201, reply
    job = reply.json()["id"]
    w.stop_job(job)
    kept = w.job_dir(job) / "checkpoints"
    for step in steps:
        put_checkpoint(kept, step)
    if newest:
        (kept / TRACKER).write_text(str(newest))
    return job


def told(w, job, kind):
    return [(e["actor"], e["text"]) for e in w.events(job) if e["kind"] == kind]


def test_the_same_job_again(w):
    text = "workload: ray # as it was written\nentrypoint: echo again\nn_gpus_per_node: 0\nname: once more\n"
    old = w.post(text, token="user").json()["id"]
    w.wait_over(old)
    answer = retried(w, old)
    new = answer["id"]
    assert new != old and answer["retry_of"] == old and answer["changes"] == []
    view = w.wait_over(new)
    assert (view["state"], view["user"], view["spec"], view["name"]) == ("SUCCEEDED", "alice", text, "once more")
    assert (view["retry_of"], view["attempt"]) == (old, 1)
    assert w.job(old)["retry_of"] is None and w.job(old)["attempt"] == 1
    assert told(w, old, "retried") == [("alice", f"submitted again as job '{new}'")]
    assert told(w, new, "retry") == [("alice", f"it is job '{old}' again")]
    w.restart()
    assert w.job(new)["retry_of"] == old


def test_one_that_had_chosen_its_id_gets_another(w):
    old = w.submit("echo mine", submission_id="mine-1", env={"A": "1.10"})
    w.wait_over(old)
    new = retried(w, old)["id"]
    view = w.wait_over(new)
    assert new != old and view["state"] == "SUCCEEDED"
    assert view["resolved_spec"]["env"] == {"A": "1.10"}


def test_an_admin_retries_it_for_its_user(w):
    old = w.submit("echo hers")
    w.wait_over(old)
    new = retried(w, old, token="admin")["id"]
    assert w.wait_over(new)["user"] == "alice"
    assert told(w, new, "retry")[0][0] == "admin" and told(w, old, "retried")[0][0] == "admin"


def test_a_lost_answer_is_asked_for_again(w):
    old, other = w.submit("echo one"), w.submit("echo two")
    w.wait_over(old)
    w.wait_over(other)
    first = retried(w, old, Idempotency_Key="once")["id"]
    again = retry(w, old, Idempotency_Key="once")
    assert (again.status, again.json()["id"]) == (200, first)
    refused(retry(w, other, Idempotency_Key="once"), 409, "another body", first)


def test_what_is_refused(w):
    ended = w.submit("echo x")
    w.wait_over(ended)
    waits = w.submit("echo x", pool="nowhere")
    refused(retry(w, waits), 409, "is QUEUED", "only a job that has ended")
    w.stop_job(waits)
    refused(retry(w, "no-such-job"), 404)
    refused(retry(w, ended, token="viewer"), 403)
    refused(retry(w, ended, token="bob"), 404)
    refused(retry(w, ended, {"apply": True}), 400, "'apply'")
    refused(retry(w, ended, {"apply_fix": "yes"}), 400, "apply_fix")
    refused(retry(w, ended, {"from": 20}), 400, "from")
    refused(retry(w, ended, {"apply_fix": True}), 422, "no fix to apply", "no finding")
    refused(retry(w, ended, {"from": "20"}), 422, "nothing to resume")
    assert told(w, ended, "retried") == []


def test_from_a_checkpoint(w):
    old = trained(w, steps=(10, 20, 30), newest=20)
    for from_, step in (("latest", 20), ("10", 10), ("global_step_20", 20), (f"{old}@10", 10)):
        plan = retry(w, old, {"from": from_}, "?dry_run=1&no_trial=1")
        assert plan.status == 200, plan
        path = w.root / "jobs" / old / f"checkpoints/global_step_{step}"
        assert f"trainer.resume_from_path={path}" in plan.json()["argv"]
        assert plan.json()["changes"] == [{"key": "resume", "old": None, "new": f"{old}@{step}"}]
    answer = retried(w, old, {"from": "latest"}, "?no_trial=1")
    view = w.job(answer["id"])
    assert view["resolved_spec"]["resume"] == f"{old}@20" and view["retry_of"] == old
    w.stop_job(view["id"])


def test_a_checkpoint_that_is_not_there(w):
    old = trained(w, steps=(10, 30), newest=20)
    refused(retry(w, old, {"from": "30"}), 422, "step 30", "verl has not named it as finished")  # torn
    (w.job_dir(old) / "checkpoints/global_step_10/actor/model_world_size_1_rank_0.pt").write_bytes(b"PK")
    refused(retry(w, old, {"from": "10"}), 422, "step 10", "model_world_size_1_rank_0.pt", "cut off")
    refused(retry(w, old, {"from": "latest"}), 422, "no finished checkpoint", "torn")
    refused(retry(w, old, {"from": "15"}), 422, "step 15")
    refused(retry(w, old, {"from": "other-job@10"}), 422, "resume: <job id>@<step>")
    refused(retry(w, old, {"from": "soon"}), 400, "give its step")
    refused(retry(w, trained(w), {"from": "latest"}), 422, "has no finished checkpoint")


def test_on_the_command_line(w):
    env = {**os.environ, "ARGUS_URL": w.url, "ARGUS_TOKEN": w.tokens["user"], "LANG": "C.UTF-8"}

    def argus(*args):
        return subprocess.run([PROGRAMS["argus"], *args], env=env, capture_output=True, text=True)

    old = trained(w, steps=(10,), newest=10, resume="never")
    done = argus("retry", "--from", "latest", "--dry-run", old)
    assert done.returncode == 0, done.stderr
    assert "- resume: never\n" in done.stderr and f"+ resume: {old}@10\n" in done.stderr
    done = argus("retry", "--from", "latest", old)
    new = done.stdout.strip()
    assert done.returncode == 0 and w.job(new)["retry_of"] == old, done.stderr
    done = argus("retry", new)
    assert (done.returncode, done.stdout) == (5, "") and "only a job that has ended" in done.stderr
    w.stop_job(new)


def test_several_on_the_command_line(w):
    """Each is tried: one that is refused is told with its name, and the others are retried."""
    env = {**os.environ, "ARGUS_URL": w.url, "ARGUS_TOKEN": w.tokens["user"], "LANG": "C.UTF-8"}
    olds = [trained(w, steps=(10,), newest=10), trained(w, steps=(20,), newest=20)]
    argv = [PROGRAMS["argus"], "retry", "--from", "latest", olds[0], "no-such-job", trained(w), olds[1]]
    done = subprocess.run(argv, env=env, capture_output=True, text=True)
    made = done.stdout.split()
    assert [w.job(new)["retry_of"] for new in made] == olds, done
    assert done.returncode != 0 and "no-such-job" in done.stderr and "no finished checkpoint" in done.stderr
    for new in made:
        w.stop_job(new)
