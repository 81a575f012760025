# SPDX-License-Identifier: Apache-2.0
"""v5.0, pipelines: train, check, merge and register in one file, on real Ray with real verl; the same again from what
was made before; traced back to job and data. Services and notebooks add theirs."""

import pytest
from stage import wait_for

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def doc(stage):
    return stage.document("v5.0")


def over(stage, run):
    def ended():
        page = stage.get(f"/v1/pipeline-runs/{run}")
        return page if page["ended_at"] else None

    return stage.keep(f"{run}.json", wait_for(ended, f"run {run} is over", 900))


def steps_of(page):
    return {s["name"]: s for s in page["steps"]}


@pytest.fixture(scope="module")
def first(stage, doc):
    drawn = [line.split()[0] for line in doc.run("check").splitlines()]
    assert drawn == ["train", "good", "merge", "register"]
    assert doc.run("run").strip() == "cpu-1"
    return over(stage, "cpu-1")


def test_one_file_trains_merges_and_registers(stage, doc, first):
    assert first["state"] == "SUCCEEDED", first["steps"]
    steps = steps_of(first)
    train = stage.keep_job(steps["train"]["job"])
    assert train["state"] == "SUCCEEDED" and max(stage.steps(train["id"])) == 4
    left = steps["train"]["left"]
    assert left["checkpoint"]["latest"] == f"{train['id']}@4" and "critic/score/mean" in left["metrics"]
    merged = stage.job_dir(steps["merge"]["job"]) / "output/model"
    assert (merged / "model.safetensors").stat().st_size > 0
    model = stage.get("/v1/models/tiny-grpo")
    assert (model["state"], steps["register"]["left"]["model"]) == ("ready", "tiny-grpo@1")
    assert "SUCCEEDED" in doc.run("show")


def test_the_model_is_traced_back(stage, doc, first):
    said = doc.run("lineage")
    steps = steps_of(first)
    assert steps["merge"]["job"] in said and steps["train"]["job"] in said


def test_the_same_again_and_other_inputs(stage, doc, first):
    again = over(stage, doc.run("again").strip())
    assert again["state"] == "SUCCEEDED" and all(s["cached"] for s in again["steps"] if s["uses"] != "check")
    assert steps_of(again)["train"]["job"] == steps_of(first)["train"]["job"]
    other = over(stage, doc.run("other").strip())
    assert other["state"] == "SUCCEEDED" and not any(s["cached"] for s in other["steps"])
    assert steps_of(other)["train"]["job"] != steps_of(first)["train"]["job"]
    assert stage.get("/v1/models/tiny-short")["state"] == "ready"


def test_every_command_of_the_document_was_run(doc, first):
    assert doc.never_run() == []
