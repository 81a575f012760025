# SPDX-License-Identifier: Apache-2.0
"""The life of a trial beside a fake Ray: a job of verl starts only after it, once, whatever is killed meanwhile."""

import concurrent.futures
import json
import stat

import broken
import pytest
from fakeray import FakeRay
from snapshots import added, tar
from trials import FAIL, PASS, PYTHON

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd


class World:
    def __init__(self, argusd, ray):
        self.argusd, self.ray = argusd, ray
        self.place = argusd.root / "common/fake"
        broken.make_world(argusd.root)
        broken.put(argusd.root / "common/code/verl/0.5.0/verl/version/version", "0.5.0")
        broken.put(self.place / "python", PYTHON)
        (self.place / "python").chmod(0o755)

    def spec(self, job, **keys):
        common = "${SHARED_ROOT}/common"
        files = {"train_file": f"{common}/datasets/train.parquet", "val_file": f"{common}/datasets/val.parquet"}
        return {
            "workload": "grpo", "submission_id": job, "n_gpus_per_node": 1, "model_id": f"{common}/models/tiny",
            "code_path": f"{common}/code/verl/0.5.0", "runtime_env": {"py_executable": f"{common}/fake/python"},
            **files, **keys,
        }  # fmt: skip

    def answer(self, what):
        text = what if isinstance(what, str) else json.dumps(what)
        (self.place / ".answer").write_text(text)
        (self.place / ".answer").rename(self.place / "answer")

    def tried(self, spec):
        """The plan of a spec whose trial has ended: on a busy machine one comes too late for its answer."""

        def plan():
            made = self.argusd.post(spec, "?dry_run=1", token="user").json()
            return made if made["trial"]["state"] != "not_run" else None

        return until(plan, "the plan has its trial")

    def runs(self):
        path = self.place / "runs"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def waits(self, job):
        return self.argusd.wait_job(job, lambda j: j["reason"]["code"] == "trial_running", "waits for its trial")

    def begun(self, n=1):
        until(lambda: self.runs() >= n, "the trial runs")


@pytest.fixture
def w(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        yield World(argusd, ray)


def test_a_job_starts_after_its_trial_and_shows_it(w):
    w.argusd.submit(w.spec("one"))
    w.waits("one")
    w.begun()
    why = w.argusd.get("/v1/jobs/one/why")
    assert why["code"] == "trial_running" and "its trial has to end first" in why["text"]
    request = next(r for r in w.ray.jobs().values() if r["submission_id"] == "one-trial")
    assert request["metadata"]["argus_trial"] == "1"
    w.answer(PASS)
    assert w.argusd.wait_over("one")["state"] == "SUCCEEDED"
    job = w.argusd.job("one")
    assert job["trial"]["ok"] and job["trial"]["reward"]["returned"] == "0.5"
    kinds = w.argusd.kinds("one")
    assert kinds.index("tried") < kinds.index("admitted") and w.runs() == 1
    w.argusd.submit(w.spec("two"))  # the same content: known to be good
    assert w.argusd.wait_over("two")["state"] == "SUCCEEDED" and w.runs() == 1
    (w.argusd.root / "common/datasets/train.parquet").write_bytes(broken.GOOD + b"PAR1")
    w.argusd.submit(w.spec("three"))
    assert w.argusd.wait_over("three")["state"] == "SUCCEEDED" and w.runs() == 2
    w.argusd.post(w.spec("four", priority=51), "?no_trial=1")
    assert w.argusd.wait_over("four")["state"] == "SUCCEEDED" and w.runs() == 2


def test_the_smallest_leased_node_decides_how_many_threads_the_transfer_queue_has(tmp_path):
    """Below eight CPUs verl 0.9 warns 200 times a step of a default that is larger than the node."""
    worker = {"GPU": 4, "worker_node": 100}
    hosts = [
        {"name": "h1", "ip": "10.99.0.1", "head": True, "resources": {"CPU": 8}},
        {"name": "h2", "ip": "10.99.0.2", "resources": {"CPU": 40, "argus_node_h2": 1000, **worker}},
        {"name": "h3", "ip": "10.99.0.3", "resources": {"CPU": 6, "argus_node_h3": 1000, **worker}},
    ]
    with FakeRay(state=tmp_path / "ray", nodes=hosts) as ray, Argusd(tmp_path, ray.url) as argusd:
        w = World(argusd, ray)
        broken.put(argusd.root / "common/code/verl/0.9.1/verl/version/version", "0.9.1")
        new = {"code_path": "${SHARED_ROOT}/common/code/verl/0.9.1"}
        units = "transfer_queue.backend.SimpleStorage.num_data_storage_units"
        for job, threads, keys in (
            ("both", "1", {"nnodes": 2, "overrides": [f"{units}=1"]}),
            ("large", None, {"overrides": [f"{units}=8"]}),
        ):
            reply = argusd.post(w.spec(job, **new, **keys), "?no_trial=1")
            assert reply.status == 201, reply
            argusd.wait_over(job)
            leased = {n["name"] for n in argusd.job(job)["nodes"]}
            assert leased == ({"h2", "h3"} if threads else {"h2"})
            assert w.ray.jobs()[job]["runtime_env"]["env_vars"].get("TQ_NUM_THREADS") == threads, job


def test_the_rows_that_it_counts_decide_how_often_is_saved(w):
    w.answer({**PASS, "train_rows": 256_000})
    epochs = {"total_epochs": 2, "overrides": ["data.train_batch_size=256"]}
    plan = w.tried(w.spec("rows", **epochs))
    assert "trainer.save_freq=200" in plan["argv"]
    w.argusd.submit(w.spec("rows", **epochs))
    w.argusd.wait_over("rows")
    assert "trainer.save_freq=200" in w.argusd.job("rows")["argv"]
    late = {**epochs, "total_training_steps": 3000}
    sentence = "2 epochs of 256000 rows end after 2000 steps, before step 3000"
    plan = w.tried(w.spec("late", **late))
    assert [p["detail"] for p in plan["problems"] if "epochs of" in p["detail"]] == [sentence]
    w.argusd.submit(w.spec("late", **late))
    w.argusd.wait_over("late")
    assert [e["text"] for e in w.argusd.events("late") if e["kind"] == "warning"] == [sentence]


def test_what_it_finds_ends_the_job_before_it_holds_anything(w):
    w.answer(FAIL)
    w.argusd.submit(w.spec("bad"))
    job = w.argusd.wait_over("bad")
    assert (job["state"], job["attempt"], job["nodes"]) == ("FAILED", 0, [])
    assert job["reason"] == {"code": "user_code_error", "text": "'f' raises KeyError", "args": None}
    assert job["trial"]["findings"][0]["hint"] == "run it"
    assert "bad" not in w.ray.starts()
    until(lambda: "bad-trial" not in w.ray.jobs(), "Ray's record of the trial is deleted")


def test_it_sees_the_snapshots_of_its_job(w):
    w.answer(PASS)
    probe = {"name": "x", "bytes": 0}
    until(lambda: w.argusd.call("POST", "/v1/uploads", probe).status == 201, "the root was looked at")
    mine = added(w.argusd, "mine@1", tar({"rewarding.py": "1"}))
    w.argusd.submit(w.spec("one", working_dir="mine@1"))
    assert w.argusd.wait_over("one")["state"] == "SUCCEEDED"
    trial = json.loads((w.argusd.root / "jobs/one/trial/ask.json").read_text())
    assert trial["code_path"].endswith("/0.5.0")
    assert mine["hash"] in (w.place / "path").read_text()


def test_a_dry_run_waits_for_its_trial_and_leaves_nothing(w):
    def dry(job="dry", **keys):
        reply = w.argusd.post(w.spec(job, **keys), "?dry_run=1", token="user")
        assert reply.status == 200, reply
        return reply.json()["trial"]

    # It makes the user's directories, which are on PYTHONPATH.
    w.argusd.post(w.spec("before"), "?no_trial=1", token="user")
    w.argusd.wait_over("before")
    w.answer(FAIL)
    trial = dry()
    assert (trial["state"], trial["text"]) == ("failed", "'f' raises KeyError")
    assert trial["result"]["findings"][0]["hint"] == "run it"
    w.answer(PASS)
    assert dry()["state"] == "passed" and w.runs() == 2
    assert dry()["state"] == "passed" and w.runs() == 2  # the same content: known to be good
    w.argusd.submit(w.spec("dry"))
    assert w.argusd.wait_over("dry")["state"] == "SUCCEEDED" and w.runs() == 2
    w.answer("nothing")  # it ends without a word
    assert dry("dry-2", overrides=["trainer.test_freq=7"])["state"] == "not_run"
    away = dry("dry-3", pool="nowhere", overrides=["trainer.test_freq=8"])
    assert away == {"state": "not_run", "text": "no worker of its pool is there", "result": None}
    until(lambda: not list((w.argusd.root / "argus/trials").glob("dry-run-*")), "its files are gone")
    until(lambda: not [j for j in w.ray.jobs() if j.startswith("dry-run-")], "its records are gone")
    assert not (w.argusd.root / "jobs/dry-2").exists()


def test_of_one_user_one_dry_run_is_tried_at_once(w):
    until(lambda: w.argusd.post(w.spec("dry"), "?dry_run=1&no_trial=1").json()["placement"], "argusd has seen Ray")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(w.argusd.post, w.spec("dry"), "?dry_run=1", token="user")
        w.begun()
        trial = w.argusd.post(w.spec("dry", total_training_steps=7), "?dry_run=1", token="user").json()["trial"]
        assert trial["state"] == "not_run" and "another dry run of yours is being tried" in trial["text"]
        w.answer(PASS)
        assert first.result().json()["trial"]["state"] == "passed"
    assert w.argusd.post(w.spec("dry"), "?dry_run=1", token="user").json()["trial"]["state"] == "passed"


def test_a_pass_that_a_job_wrote_into_the_root_is_none(w):
    """The trials that passed are known in argusd's own directory alone, and those of one user to that user alone."""
    w.answer(PASS)
    w.argusd.submit(w.spec("one"))
    assert w.argusd.wait_over("one")["state"] == "SUCCEEDED" and w.runs() == 1
    (kept,) = until(lambda: list((w.argusd.state_dir / "trials").glob("*.json")), "its pass is kept")
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert not list((w.argusd.root / "argus").glob("trials/*.json"))
    broken.put(w.argusd.root / "argus/trials" / kept.name, kept.read_bytes())
    kept.unlink()
    w.argusd.submit(w.spec("two"))
    assert w.argusd.wait_over("two")["state"] == "SUCCEEDED" and w.runs() == 2
    w.argusd.submit(w.spec("three"), token="admin")
    assert w.argusd.wait_over("three")["state"] == "SUCCEEDED" and w.runs() == 3


def test_a_dry_run_whose_argusd_dies_leaves_no_record(w):
    until(lambda: w.argusd.post(w.spec("dry"), "?dry_run=1&no_trial=1").json()["placement"], "argusd has seen Ray")
    connection = w.argusd.open()
    head = w.argusd.head(w.argusd.tokens["user"], {"Content_Type": "application/json"})
    connection.request("POST", "/v1/jobs?dry_run=1", json.dumps(w.spec("dry")), head)
    w.begun()
    w.argusd.kill9()
    connection.close()
    assert [j for j in w.ray.jobs() if j.startswith("dry-run-")]
    w.argusd.start()
    until(lambda: not [j for j in w.ray.jobs() if j.startswith("dry-run-")], "its record is gone")


def test_a_dry_run_that_nobody_waits_for_ends(w):
    until(lambda: w.argusd.post(w.spec("dry"), "?dry_run=1&no_trial=1").json()["placement"], "argusd has seen Ray")
    connection = w.argusd.open()
    head = {"Authorization": f"Bearer {w.argusd.tokens['admin']}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/jobs?dry_run=1", json.dumps(w.spec("dry")), head)
    w.begun()
    connection.close()
    until(lambda: not list((w.argusd.root / "argus/trials").glob("dry-run-*")), "its files are gone")
    until(lambda: not [j for j in w.ray.jobs() if j.startswith("dry-run-")], "its record is gone")


def test_those_without_a_worker_keep_nobody_from_a_trial(w):
    away = [f"away-{n}" for n in range(9)]
    for job in away:
        w.argusd.submit(w.spec(job, pool="nowhere"))
    for job in away:
        w.argusd.wait_job(job, lambda j: "no worker of its pool" in j["reason"]["text"], "has no worker")
    w.answer(PASS)
    w.argusd.submit(w.spec("here"))
    assert w.argusd.wait_over("here")["state"] == "SUCCEEDED" and w.runs() == 1


@pytest.mark.parametrize("when", ["at once", "while it runs", "after it"])
def test_a_kill_at_any_time_makes_one_trial(w, when):
    if when == "after it":
        w.answer(PASS)
    w.argusd.submit(w.spec("once"))
    if when != "at once":
        w.begun()
    w.argusd.kill9()
    w.argusd.start()
    w.answer(PASS)
    assert w.argusd.wait_over("once")["state"] == "SUCCEEDED"
    assert w.runs() == 1 and len(w.ray.starts()["once-trial"]) == 1


@pytest.mark.nightly  # half a minute of waiting
def test_a_lost_trial_is_tried_again_and_then_given_up(w):
    w.answer("nothing")
    w.argusd.submit(w.spec("lost"))
    assert w.argusd.wait_over("lost")["state"] == "SUCCEEDED"
    assert w.runs() == 3 and w.argusd.kinds("lost").count("untried") == 3
    assert w.argusd.get("/v1/jobs/lost/findings")["findings"] == []  # it failed no job: there is nothing to find
    assert {n for n in w.ray.starts() if n.startswith("lost")} == {
        "lost", "lost-trial", "lost-a1-trial", "lost-a2-trial",
    }  # fmt: skip


def test_a_stop_ends_the_trial_too(w):
    w.argusd.submit(w.spec("stopped"))
    w.begun()
    w.argusd.stop_job("stopped")
    assert w.argusd.wait_over("stopped")["state"] == "STOPPED"
    until(lambda: w.ray.jobs().get("stopped-trial", {"status": "STOPPED"})["status"] == "STOPPED", "it was stopped")
