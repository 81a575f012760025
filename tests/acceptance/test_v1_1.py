# SPDX-License-Identifier: Apache-2.0
"""v1.1: JobSpecs for PPO, GRPO and SFT by the command line, failures that can be found, verl by code_path."""

import json
import os
import re

import pytest
from stage import wait_for

PPO = [f"v11-ppo-{n}" for n in (1, 2, 3)]
AT_NIGHT = ["three", "wrong-value", "wrong-value-why", "learn"]  # blocks of the document
WORKERS_AT = """
import json
from ray.util.state import list_actors
theirs = [a for a in list_actors(detail=True) if a.class_name == "TrainingWorker"]  # those that ended, too
print(json.dumps(sorted(a.node_id for a in theirs)))
"""


@pytest.fixture(scope="module")
def doc(stage):
    return stage.document("v1.1")


@pytest.fixture(scope="module")
def grpo(stage, doc):
    doc.run("grpo")
    return stage.keep_job("v11-grpo")


@pytest.fixture(scope="module")
def colours(stage, doc):
    """Two snapshots, each a whole verl and a module of its own; which one is imported is the spec's choice alone."""
    code = stage.root / "common/code/verl"
    for name in ("red", "blue"):
        doc.run(f"snapshot-{name}")
        (code / name / "verl/version/version").write_text(f"0.5.0+{name}\n")
    doc.run("markers")
    return {name: stage.keep_job(f"v11-{name}") for name in ("red", "blue")}


@pytest.fixture(scope="module")
def sft(newest):
    """The run over two nodes, and where its workers were while it trained."""
    doc = newest.document("v1.1")
    doc.run("sft")

    def at_work():
        groups, actors = newest.cluster("placement_groups"), newest.cluster("actors")
        ours = [a for a in actors if (a["class_name"], a["state"]) == ("TrainingWorker", "ALIVE")]
        made = [g for g in groups if (g["job"], g["state"]) == ("v11-sft", "CREATED")]
        return len(ours) == 2 and made and (actors, groups)

    actors, groups = wait_for(at_work, "both workers of v11-sft are there")
    seen = {
        "actors": newest.keep("v11-sft.actors.json", actors),
        "groups": newest.keep("v11-sft.groups.json", groups),
        "ray": newest.keep("v11-sft.ray_workers.json", newest.python(WORKERS_AT)),
    }
    doc.run("sft-wait")
    return {**seen, "job": newest.keep_job("v11-sft")}


def story(stage, job):
    return [e["kind"] for e in stage.events(job)]


def started_trained_saved(stage, job, steps):
    assert stage.job(job)["state"] == "SUCCEEDED"
    kinds = story(stage, job)
    assert [k for k in kinds if k in ("submitted", "accepted", "started", "ended")] == [
        "submitted",
        "accepted",
        "started",
        "ended",
    ]
    assert sorted(set(stage.steps(job))) == list(range(1, steps + 1))
    checkpoints = stage.job_dir(job) / "checkpoints"
    assert (checkpoints / "latest_checkpointed_iteration.txt").read_text() == str(steps)
    return checkpoints / f"global_step_{steps}"


# ---- directories of several ----


def share_no_directory(stage, jobs):
    files = {}
    for job in jobs:
        here = stage.job_dir(job)
        assert stage.job(job)["output_dir"] == str(here)
        files[job] = {(s.st_dev, s.st_ino) for s in (p.stat() for p in here.rglob("*") if p.exists())}
        own = (here / "attempts/1/argv.json").read_text() + (here / "attempts/1/env.json").read_text()
        assert not [other for other in jobs if other != job and other in own]
        assert not [p for p in here.rglob("*") if not os.path.realpath(p).startswith(str(here))]
    assert len(set().union(*files.values())) == sum(map(len, files.values()))


@pytest.mark.nightly  # two minutes of CPU; in every check other jobs of this stage share none, and PPO trains in v1
@pytest.mark.timeout(900)  # three trainings, one after the other
def test_three_ppo_runs_in_a_row_share_no_directory(stage, doc):
    doc.run("three")
    starts = []
    for job in PPO:
        detail = stage.keep_job(job)
        assert started_trained_saved(stage, job, 2).is_dir()
        assert f"trainer.default_local_dir={stage.job_dir(job)}/checkpoints" in detail["argv"]
        starts.append((detail["started_at"], detail["ended_at"]))
    share_no_directory(stage, PPO)
    assert all(end < start for (_, end), (start, _) in zip(starts, starts[1:], strict=False)), "one after the other"


def test_jobs_share_no_directory(stage, grpo, colours):
    assert f"trainer.default_local_dir={stage.job_dir('v11-grpo')}/checkpoints" in grpo["argv"]
    share_no_directory(stage, ["v11-grpo", "v11-red", "v11-blue"])


# ---- GRPO, and the directory of a job ----


def test_grpo_started_trained_saved(stage, grpo):
    saved = started_trained_saved(stage, "v11-grpo", 4)
    assert (saved / "actor/model_world_size_1_rank_0.pt").stat().st_size > 0
    assert not (saved / "critic").exists()
    assert "algorithm.adv_estimator=grpo" in grpo["argv"]
    metrics = grpo["metrics"]  # from the console: this verl writes no file
    assert (metrics["step"], metrics["total_steps"], metrics["progress"]) == (4, 4, 1)
    assert metrics["reward"]["key"] == "critic/score/mean" and len(metrics["reward"]["spark"]) == 4


def test_directory_of_a_job(stage, grpo):
    root = stage.job_dir("v11-grpo")
    assert all((root / name).is_dir() for name in ("config", "logs", "checkpoints", "debug"))
    spec = (root / "config/jobspec.yaml").read_text()
    assert "workload: grpo" in spec and "total_training_steps: 4" in spec
    assert "ray job submit" in (root / "config/submit_cmd.txt").read_text()
    assert "step:4 - " in (root / "logs/driver.log").read_text()
    assert "GPU" in (root / "debug/ray_status_pre.txt").read_text()
    wait_for((root / "debug/ray_job_list_post.txt").exists, "the last file, which comes after meta.json")
    assert "v11-grpo" in (root / "debug/ray_job_list_post.txt").read_text()
    meta = json.loads((root / "meta.json").read_text())
    assert (meta["id"], meta["state"]) == ("v11-grpo", "SUCCEEDED")


# ---- failures that can be found ----


def is_refused(stage, doc, block, *said):
    """Before it is a job: one sentence with the field, what is wrong and what to do."""
    doc.run(block, code=5)
    told = (stage.evidence / f"{block}.txt").read_text()
    assert all(words in told for words in said), told
    assert stage.call("GET", f"/v1/jobs/v11-{block}").status == 404 and not stage.job_dir(f"v11-{block}").exists()


def test_wrong_model_is_found(stage, doc):
    is_refused(stage, doc, "wrong-model", "'model_id'", "/common/models/absent")


def test_wrong_key_is_found(stage, doc):
    is_refused(stage, doc, "wrong-key", "'overrides'", "'trainer.no_such_key'")


@pytest.mark.nightly  # a minute and a half; tests/faults has others that real Ray runs into in every check
def test_wrong_value_is_found(stage, doc):
    doc.run("wrong-value", code=10)
    stage.wait_job("v11-wrong-value", lambda j: "rule" in (j["finding"] or {}), "has its finding")
    job = stage.keep_job("v11-wrong-value")
    assert (job["state"], job["exit"]["cause"], job["exit"]["code"]) == ("FAILED", "exit", 1)
    assert "NotImplementedError" in doc.run("wrong-value-why")
    assert job["finding"]["sentence"] and job["finding"]["node"] in stage.workers
    assert not list((stage.job_dir("v11-wrong-value") / "checkpoints").glob("global_step_*"))


def test_missing_resources_are_told(stage, doc):
    """Larger than the cluster: it waits and says so, and Ray never hears of it."""
    assert "pool_too_small" in doc.run("too-large")

    def says_why():
        """A busy Ray may be out of sight for a moment, which is then its reason."""
        got, waiting = stage.job("v11-too-large"), json.loads(stage.argus("queue", "-o", "json"))["jobs"]
        listed = [j["reason"] for j in waiting if j["id"] == "v11-too-large"]
        return got["reason"]["code"] == "pool_too_small" and listed == [got["reason"]] and got

    assert wait_for(says_why, "its page and the queue say why it waits")["state"] == "QUEUED"
    assert stage.ray("/api/jobs/v11-too-large") is None
    stage.argus("stop", "--wait", "v11-too-large")
    assert stage.job("v11-too-large")["state"] == "STOPPED"


# ---- several versions by code_path ----


def test_two_code_paths_print_two_markers(stage, colours):
    code = stage.root / "common/code/verl"
    for name, detail in colours.items():
        log = stage.driver_log(f"v11-{name}")
        assert detail["state"] == "SUCCEEDED"
        assert re.findall(r"(?m)^marker (\w+), verl (\S+) from (\S+)$", log) == [
            (name, f"0.5.0+{name}", f"{code}/{name}/verl/__init__.py")
        ]


# ---- the five commands ----


def test_submit_status_stop_logs_list(stage, doc):
    assert doc.run("submit").strip() == "v11-cli"
    stage.wait_state("v11-cli", "RUNNING")
    stage.wait_log("v11-cli", r"tick 3\n")
    status = json.loads(doc.run("status"))
    assert (status["id"], status["state"], status["workload"]) == ("v11-cli", "RUNNING", "ray")
    assert doc.run("logs").startswith("tick 1\ntick 2\ntick 3\n")
    assert "v11-cli" in doc.run("list").split()
    doc.run("stop")
    job = stage.keep_job("v11-cli")
    assert job["state"] == "STOPPED"
    assert "v11-cli" not in doc.run("list").split()
    assert stage.argus("status", "v11-cli", "-o", "json").count("STOPPED") >= 1


# ---- the newest verl on the newest Ray ----


def test_sft_over_two_nodes_started_trained_saved(newest, sft):
    saved = started_trained_saved(newest, "v11-sft", 6)
    shards = [f"{what}_world_size_2_rank_{rank}.pt" for what in ("model", "optim") for rank in (0, 1)]
    assert all((saved / name).stat().st_size > 0 for name in shards)


def test_sft_trained_on_both_nodes(newest, sft):
    """Where Ray had its placement groups and its workers, by Ray's own client and by argusd."""
    ours = [g for g in sft["groups"] if g["job"] == "v11-sft" and g["state"] == "CREATED"]
    bundles = [b for g in ours for b in g["bundles"]]
    assert sorted(b["node"] for b in bundles) == sorted(newest.workers)
    assert all(b["resources"]["GPU"] == 1 for b in bundles)
    workers = [a for a in sft["actors"] if a["class_name"] == "TrainingWorker" and a["state"] == "ALIVE"]
    assert sorted(a["node"] for a in workers) == sorted(newest.workers)
    assert {a["job"] for a in workers} == {"v11-sft"}
    assert len(sft["ray"]) == len(set(sft["ray"])) == 2
    assert sorted(n["name"] for n in sft["job"]["nodes"]) == sorted(newest.workers)
    placement = sft["job"]["placement"]
    assert placement["ok"] and placement["actors_outside"] == 0, placement


@pytest.mark.nightly  # three minutes; in every check the newest verl trains by SFT
def test_grpo_of_the_newest_verl_learns(newest):
    newest.document("v1.1").run("learn")
    metrics = newest.keep_job("v11-learn")["metrics"]
    started_trained_saved(newest, "v11-learn", 12)
    path = newest.job_dir("v11-learn") / "metrics/metrics.jsonl"
    rows = [json.loads(line) for line in newest.keep("v11-learn.metrics.jsonl", path.read_text()).splitlines()]
    rewards = [r["data"]["critic/score/mean"] for r in rows if "critic/score/mean" in r["data"]]
    assert len(rewards) == 12
    assert (metrics["step"], metrics["progress"], metrics["reward"]["value"]) == (12, 1, rewards[-1])
    assert "step 12 of 12 (100%)" in newest.argus("status", "v11-learn")
    assert sum(rewards[-3:]) / 3 > 1.5 * sum(rewards[:3]) / 3


def test_every_command_of_the_document_was_run(newest, sft):
    assert newest.document("v1.1").never_run(AT_NIGHT) == []
