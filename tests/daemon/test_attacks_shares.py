# SPDX-License-Identifier: Apache-2.0
"""One user's jobs leave argusd more to read than it can: the jobs of others are measured, indexed and started again all
the while."""

import json
import os
import shutil

import pytest
import standin
from checkpoints import TRACKER, put_checkpoint
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd
FAR = 15 << 40  # days of reading
MANY = 6
SAVED = 300  # checkpoints of one job
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
ONCE = f'if mkdir "$0/$1"; then echo "{OOM}"; exit 1; fi; echo better'


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("shares"), ray.url) as argusd:
        standin.make_world(argusd.root)
        until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "the root is ready")
        argusd.call("POST", "/v1/users", {"name": "bob"})
        argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
        yield argusd


def waiting(w, gate, then="", **keys):
    """A job that runs until the gate is there."""
    job = w.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done{then}", **keys)
    w.wait_state(job, "RUNNING")
    return job


def step_line(step):
    return json.dumps({"step": step, "data": {"critic/score/mean": step / 100}}) + "\n"


def test_metrics_of_others_are_read_beside_terabytes(w):
    gate = w.root / "common/gate-metrics"
    hers = [waiting(w, gate) for _ in range(MANY)]
    his = waiting(w, gate, token="bob")
    for job in hers:
        path = w.job_dir(job) / "attempts/1/metrics.jsonl"
        path.write_text(step_line(1))
        os.truncate(path, FAR)
    with (w.job_dir(his) / "attempts/1/metrics.jsonl").open("a") as f:
        f.write(step_line(1))
    w.wait_job(his, lambda j: j["step"] == 1, "is at step 1")
    for job in hers:
        w.wait_job(job, lambda j: j["step"] == 1, "is read to where its hole begins")
    gate.write_text("")
    for job in [*hers, his]:
        w.wait_over(job)


def test_a_dump_of_many_names_is_no_sample(w):
    t = standin.Training(w)
    t.dump(1, [("p", "q", 1.0)])
    t.dump(2, [("p", "r", 1.0)])
    dumps = w.job_dir(t.id) / "samples/rollout"
    for step in range(100, 600):
        os.link(dumps / "1.jsonl", dumps / f"{step}.jsonl")

    def steps():
        reply = w.call("GET", f"/v1/jobs/{t.id}/samples", token="user")
        return [s["step"] for s in reply.json()["steps"]]

    assert steps() == [2]
    until(lambda: "more than one name" in w.said(), "the log says so")
    index = w.state_dir / "samples/alice" / t.id
    assert index.stat().st_size < 1 << 16
    w.stop_job(t.id)


def test_restarts_of_others_are_decided_beside_failures(w):
    """Logs that are larger than what is read of one, of jobs that all end at once."""
    gate = w.root / "common/gate-findings"
    hers = [waiting(w, gate, "; exit 1") for _ in range(MANY)]
    for job in hers:
        os.truncate(w.log_file(job), 1 << 30)
    gate.write_text("")
    spec = Argusd.spec(["/bin/sh", "-c", ONCE, str(w.root / "common"), "once-shares"])
    again = {"max": 1, "on": ["gpu_oom"], "backoff": "0s"}
    his = w.submit(spec, restart=again, token="bob")
    view = w.wait_over(his)
    assert (view["state"], view["restarts"]) == ("SUCCEEDED", 1), view
    for job in hers:
        w.wait_over(job)


def test_checkpoints_of_others_are_looked_at_beside_thousands(w):
    """argusd finds all of them at once when it starts: it looks at his one before it is through with any job of hers,
    of which half are older than his."""

    def training(token):
        reply = w.post({**standin.SPEC, "checkpoint": {"keep_last": 2 * SAVED}}, "?no_trial=1", token=token)
        assert reply.status == 201, reply
        return standin.Training.of(w, reply.json()["id"])

    def found(t):
        return [e["seq"] for e in w.events(t.id) if e["kind"] == "checkpoint"]

    his_at = MANY // 2
    all_of_them = [training("bob" if i == his_at else "user") for i in range(MANY + 1)]
    his = all_of_them[his_at]
    hers = [t for t in all_of_them if t is not his]
    w.stop()
    for t in all_of_them:
        one = put_checkpoint(t.kept, 1, size=10)
        for step in range(2, SAVED + 1 if t is not his else 2):
            shutil.copytree(one, t.kept / f"global_step_{step}")
            (t.kept / TRACKER).write_text(str(step))
    w.start()
    until(lambda: all(len(found(t)) == (1 if t is his else SAVED) for t in all_of_them), "all were found")
    assert found(his)[0] < min(found(t)[0] for t in hers)
    for t in all_of_them:
        w.stop_job(t.id)
