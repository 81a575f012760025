# SPDX-License-Identifier: Apache-2.0
"""The ledger on real Ray with real verl: where the time of each GPU went over a rank that is killed, a node that is
drained, a job of somebody else and a kill -9 of argusd. ARGUS_LEDGER_MINUTES draws the world out to so many minutes."""

import datetime
import os
import pathlib
import time

import pytest
import yaml
from barestage import BareStage
from raybed import BEDS
from stage import ROOT, make_tiny, open_stage, wait_for

pytestmark = [pytest.mark.verl, pytest.mark.nightly, pytest.mark.timeout(7200)]

HOSTS, GPUS = {"node-1": "h2", "node-2": "h3"}, 2
PARTS = ("used", "held_idle", "blocked", "free", "draining", "broken", "foreign")
STEPS = 90  # a step takes a second: what is done to it is done before it ends
MINUTES = float(os.environ.get("ARGUS_LEDGER_MINUTES", 0))


def ms(seconds):
    return round(1000 * float(seconds))


def at(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory):
    evidence = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence"))
    bed = BEDS.bare("2.51.1")
    tiny = make_tiny(bed.python, tmp_path_factory.mktemp("tiny"))
    with open_stage(BareStage, bed, request, tmp_path_factory, evidence, tiny) as s:
        for name, host in HOSTS.items():
            s.add_node(name, host, gpu_count=GPUS, cpu_count=8, labels=["whole"])
        for name in HOSTS:
            s.wait_node(name, "online")
        yield s


def train(stage, job):
    """A training that goes on when a rank of it dies; its node."""
    spec = yaml.safe_load((ROOT / "examples/verl-0.5.0/grpo.yaml").read_text())
    spec |= {"submission_id": job, "total_training_steps": STEPS, "total_epochs": STEPS, "save_freq": 5}
    spec |= {"test_freq": -1, "pool": "whole"}
    spec |= {"restart": {"max": 3, "backoff": "1s", "on": ["actor_died"]}}
    spec["overrides"] += ["trainer.val_before_train=False"]
    stage.submit(spec, token="admin")
    stage.wait_log(job, r"step:5 - ")
    (node,) = stage.job(job)["nodes"]
    return node["name"]


def trouble(stage, job, ray_id):
    """One round of it; the view of the training, once all is over."""
    node = train(stage, job)
    (other,) = set(HOSTS) - {node}
    stage.give_to_ray(ray_id, node=other)
    wait_for(lambda: stage.get("/v1/pools")["pools"][0]["gpus"]["foreign"] == 1, "what somebody else holds is counted")
    stage.kill_a_rank()
    assert stage.call("POST", f"/v1/nodes/{other}:drain", {}).status == 202
    said = lambda: stage.node(other)["reason"]["text"]  # noqa: E731
    wait_for(lambda: f"Ray job '{ray_id}' holds 1 GPU" in said(), "the drain waits for it")
    stage.kill9()
    stage.start()
    over = stage.wait_over(job)
    assert stage.node(other)["state"] == "draining", stage.node(other)
    stage.take_from_ray(ray_id)  # it still ran
    stage.wait_node(other, "offline")
    wait_for(lambda: stage.get("/v1/pools")["pools"][0]["gpus"]["foreign"] == 0, "it is gone")
    assert stage.call("POST", f"/v1/nodes/{other}:undrain", {}).status == 202
    stage.wait_node(other, "online")
    return over


@pytest.fixture(scope="module")
def world(stage):
    """The trainings, and the ledger once it has all of them."""
    begun, trained = time.time(), []
    while not trained or time.time() - begun < 60 * MINUTES:
        n = len(trained)
        trained.append(trouble(stage, f"trains-{n}", f"theirs-{n}"))
    last = max(at(t["ended_at"]) for t in trained)

    def look():
        pages = {by: stage.get(f"/v1/usage?from=1d&by={by}") for by in ("cluster", "pool", "user", "workload")}
        return all(at(p["until"]) > last for p in pages.values()) and pages

    books = wait_for(look, "the ledger goes beyond the last end")
    stage.keep("ledger.json", {"trained": trained, "books": books, "minutes": (time.time() - begun) / 60})
    return trained, books


def total(books, by, *parts):
    return sum(ms(v) for s in books[by]["series"] for part in parts for v in s[part])


def test_the_parts_are_the_capacity(world):
    trained, books = world
    assert [(t["state"], len(t["attempts"])) for t in trained] == [("SUCCEEDED", 2)] * len(trained)
    for by in ("cluster", "pool"):
        assert total(books, by, *PARTS) == total(books, by, "capacity") > 0, books[by]
    for part in ("used", "foreign", "draining", "free"):
        assert total(books, "cluster", part) > 0, (part, books["cluster"])
    # Four GPUs: one of the training and one beside it, one that somebody else held, one that drained beside that.
    assert total(books, "cluster", "broken") < total(books, "cluster", "capacity") / 10


def test_what_jobs_held_is_what_the_ledger_says(world):
    trained, books = world
    held = sum(ms(t["gpu_seconds"]) for t in trained)
    for by in ("cluster", "user", "workload"):
        assert total(books, by, "used", "held_idle") == held > 0, by


def test_what_the_kill_cost(world):
    trained, _ = world
    for t in trained:
        r = t["recovery"]
        assert r["failures"] == 1 and r["repaired"] == 1 and 0 < r["ettr"] < 1, r
        assert r["held_s"] == pytest.approx(t["gpu_seconds"], rel=0.01)
        parts = ("productive", "detect", "diagnose", "queue", "start", "redo", "other")
        assert sum(r[f"{p}_s"] for p in parts) == pytest.approx(r["held_s"] + r["waited_s"], abs=0.01)
