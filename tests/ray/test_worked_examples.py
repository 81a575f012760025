# SPDX-License-Identifier: Apache-2.0
"""examples/ray through Argus on real Ray 2.60.0: each as a user submits it, its result, and its place in the lease."""

import json
import math
import pathlib

import pytest
import stage as staging
from raybed import BEDS

from argusd import needs_argusd

pytestmark = [pytest.mark.ray, needs_argusd, pytest.mark.timeout(900)]

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/ray"


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory):
    kept = tmp_path_factory.mktemp("kept")
    with staging.open_stage(staging.Stage, BEDS.get("2.60.0"), request, tmp_path_factory, kept, None) as s:
        s.argus("snapshot", "add", str(EXAMPLES), "--name", "ray-examples@1")
        yield s


def submit(stage, name):
    stage.argus("submit", "--set", f"submission_id={name}", str(EXAMPLES / f"{name}.yaml"))


def result_of(stage, name):
    """What it wrote, once it has ended well; and the addresses of the nodes that it had leased."""
    job = stage.wait_state(name, "SUCCEEDED")
    said = stage.driver_log(name)
    assert "could not be bound" not in said, said[-3000:]
    result = json.loads((stage.job_dir(name) / "attempts/1/result.json").read_text())
    return result, {stage.workers[n["name"]] for n in job["nodes"]}


def listed(stage, job, what):
    """Rows of Ray's actors as argusd shows them: the job's own, of this class, once they are on their nodes."""

    def look():
        rows = [a for a in stage.cluster("actors") if a["job"] == job and a["node"] and what in a["class_name"]]
        return len(rows) == 2 and rows

    return staging.wait_for(look, f"actors {what} of {job} are listed")


@pytest.fixture(scope="module")
def quick(stage):
    """Two that share nothing run side by side."""
    for name in ("core", "data"):
        submit(stage, name)


def test_core(stage, quick):
    got, leased = result_of(stage, "core")
    assert abs(got["pi"] - math.pi) < 0.01
    assert [len(leased), {p["node"] for p in got["parts"]}] == [2, leased]
    assert {node for p in got["parts"] for node in p["counted_on"]} <= leased


def test_data(stage, quick):
    got, leased = result_of(stage, "data")
    ids = [i for i in range(10_000) if i % 7]
    assert (got["rows"], got["sum"]) == (len(ids), sum(i % 7 for i in ids))
    assert {by.split(" GPU ")[0] for by in got["by"]} == leased


@pytest.mark.nightly
def test_train(stage):
    submit(stage, "train")
    rows = listed(stage, "train", "RayTrainWorker")
    got, leased = result_of(stage, "train")
    first, second = got["ranks"]
    assert {first["node"], second["node"]} == leased and len(leased) == 2
    assert (first["slope"], first["offset"]) == (second["slope"], second["offset"]), "they share their gradients"
    assert abs(first["slope"] - 3) < 0.2 and abs(first["offset"] - 1) < 0.2
    assert pathlib.Path(got["checkpoint"], "line.pt").is_file() and got["checkpoint"].startswith(str(stage.root))
    assert {stage.workers[r["node"]] for r in rows} == leased
    assert len({r["placement_group_id"] for r in rows}) == 1 and rows[0]["placement_group_id"]


@pytest.mark.nightly
def test_tune(stage):
    submit(stage, "tune")
    got, leased = result_of(stage, "tune")
    assert (got["best_lr"], got["errors"], len(got["trials"])) == (0.4, 0, 4)
    assert [t["training_iteration"] for t in got["trials"]] == [10] * 4
    assert {t["node"] for t in got["trials"]} == leased and len({t["gpus"] for t in got["trials"]}) == 1


@pytest.mark.nightly
def test_serve(stage):
    submit(stage, "serve")
    rows = listed(stage, "serve", "ServeReplica")
    got, leased = result_of(stage, "serve")
    assert [a["text"] for a in got["answers"]] == ["gut Morgen Welt"] * 2
    assert {a["node"] for a in got["answers"]} == leased and len({tuple(a["gpus"]) for a in got["answers"]}) == 1
    assert [(stage.workers[r["node"]], r["resources"]["GPU"]) for r in rows] == [(*leased, 0.5)] * 2


@pytest.mark.nightly
def test_rllib(stage):
    submit(stage, "rllib")
    got, _ = result_of(stage, "rllib")
    returns = got["returns"]
    assert max(returns[-2:]) > 1.5 * returns[0], returns
    assert pathlib.Path(got["checkpoint"]).is_dir() and got["checkpoint"].startswith(str(stage.root))
