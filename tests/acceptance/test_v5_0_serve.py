# SPDX-License-Identifier: Apache-2.0
"""v5.0, from data to an endpoint and back: one file on real Ray 2.60.0 with verl 0.9.1 and our engine on the CPU."""

import json

import pytest
from stage import wait_for

pytestmark = pytest.mark.nightly

NAME = "tiny-sums"


@pytest.fixture(scope="module")
def house(bare_newest):
    for name, host in {"n1": "h2", "n2": "h3"}.items():
        bare_newest.add_node(name, host, gpu_count=1, cpu_count=12)
    for name in ("n1", "n2"):
        bare_newest.wait_node(name, "online")
    return bare_newest


@pytest.fixture(scope="module")
def doc(house):
    return house.document("v5.0-serve")


def over(stage, run):
    def ended():
        page = stage.get(f"/v1/pipeline-runs/{run}")
        return page if page["ended_at"] else None

    page = stage.keep(f"{run}.json", wait_for(ended, f"run {run} is over", 900))
    failed = [s["job"] for s in page["steps"] if s.get("job") and s["state"] != "SUCCEEDED"]
    assert page["state"] == "SUCCEEDED", (page["steps"], [stage.driver_log(job)[-3000:] for job in failed])
    return page


def steps_of(page):
    return {s["name"]: s for s in page["steps"]}


@pytest.fixture(scope="module")
def first(house, doc):
    doc.run("data")
    doc.run("model")
    assert doc.run("run").strip() == "cpu-to-service-1"
    return over(house, "cpu-to-service-1")


def test_one_file_makes_an_endpoint(house, doc, first):
    steps = steps_of(first)
    train = house.keep_job(steps["train"]["job"])
    assert max(house.steps(train["id"])) == 8
    assert steps["publish"]["left"]["model"] == f"{NAME}@1"
    assert steps["serve"]["left"]["service"] == NAME
    assert "SUCCEEDED" in doc.run("show") and "READY" in doc.run("status")


def test_it_answers(house, doc, first):
    assert doc.run("ask").strip()
    reply = json.loads(doc.run("curl"))
    assert reply["object"] == "chat.completion" and reply["usage"]["completion_tokens"] > 0
    openai = pytest.importorskip("openai", reason="the client is pinned in the test environment")
    client = openai.OpenAI(base_url=f"{house.url}/v1/services/{NAME}/v1", api_key=house.tokens["admin"])
    asked = {"model": NAME, "messages": [{"role": "user", "content": "1 + 1 ="}], "max_tokens": 8, "temperature": 0}
    whole = client.chat.completions.create(**asked).choices[0].message.content
    pieces = client.chat.completions.create(**asked, stream=True)
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices) == whole


def test_it_is_traced_back_to_the_data(house, doc, first):
    said = doc.run("lineage")
    steps = steps_of(first)
    data = house.get("/v1/datasets/tiny-sft")
    for word in (steps["merge"]["job"], steps["train"]["job"], "tiny-sft@1", data["hash"][:12]):
        assert word in said, (word, said)


def test_the_next_version_and_the_way_back(house, doc, first):
    page = over(house, doc.run("next").strip())
    assert steps_of(page)["train"]["job"] != steps_of(first)["train"]["job"]
    assert steps_of(page)["serve"]["left"]["version"] == 2
    assert house.get(f"/v1/services/{NAME}")["current"] == 2
    doc.run("rollback")
    assert house.get(f"/v1/services/{NAME}")["current"] == 1  # warm: at once
    house.argus("service", "rm", NAME)
    wait_for(lambda: not house.get("/v1/services")["services"], "it is gone", 240)


# ---- the worked example: from raw lines to an endpoint, and back ----

ENDPOINT = "sums-endpoint"


@pytest.fixture(scope="module")
def example(house):
    return house.document("../examples/projects/sft-to-endpoint/README")


@pytest.fixture(scope="module")
def made(house, example):
    for block in ("files", "raw", "base", "verl"):
        example.run(block)
    planned = example.run("plan")
    assert "prepare" in planned and "serve" in planned
    assert not house.get("/v1/pipeline-runs?pipeline=sft-to-endpoint")["runs"], "a plan begins nothing"
    return over(house, example.run("sums").strip())


def test_raw_lines_become_an_endpoint(house, example, made):
    steps = steps_of(made)
    assert [s["name"] for s in made["steps"]] == (
        ["prepare", "train", "merge", "answers", "eval", "good", "publish", "serve"]
    )  # fmt: skip
    assert max(house.steps(house.keep_job(steps["train"]["job"])["id"])) == 8
    score = steps["eval"]["left"]["metrics"]["test_score/sums"]
    assert 0 <= score <= 1, "verl's main_eval has judged the answers"
    assert steps["serve"]["left"]["service"] == ENDPOINT and steps["publish"]["left"]["model"] == f"{ENDPOINT}@1"
    assert "SUCCEEDED" in example.run("steps", RUN=made["id"])
    assert made["gpu_hours"] == pytest.approx(sum(s["gpu_hours"] for s in made["steps"])) and made["gpu_hours"] > 0
    example.run("answer")


def test_the_endpoint_is_traced_back_to_the_prepared_data(house, example, made):
    said = example.run("whence")
    steps = steps_of(made)
    data = house.get(f"/v1/datasets/{ENDPOINT}-sft")
    assert data["lineage"]["data"] == ["sums-raw@1"]
    for word in (steps["merge"]["job"], steps["train"]["job"], f"{ENDPOINT}-sft@1", data["hash"][:12]):
        assert word in said, (word, said)


def test_the_version_is_traced_back_to_all_that_made_it_and_on(house, example, made):
    """As `argus model lineage NAME@V` prints it: each link with its name and hash, what validation said of the
    checkpoint, the run that made it and the service that has it."""
    steps = steps_of(made)
    said = house.keep(f"{ENDPOINT}@1.lineage.txt", example.run("onward"))
    links = [line.split() for line in said.splitlines() if line]
    train = steps["train"]["job"]
    (values,) = [c["values"] for c in house.get(f"/v1/jobs/{train}/checkpoints")["checkpoints"] if c["step"] == 8]
    (verl,) = [s for s in house.get("/v1/snapshots")["snapshots"] if s["name"] == "sums-verl@0.9.1"]

    def short(path):
        return house.get(f"/v1/{path}")["hash"][:16]

    for link in (
        ["model", f"{ENDPOINT}@1", short(f"models/{ENDPOINT}@1")],
        ["merge", steps["merge"]["job"]],
        ["training", train, "step", "8"],
        ["eval", "val/loss", f"{values['val/loss']:.6g}"],
        ["code", "sums-verl@0.9.1", verl["hash"][:16]],
        ["data", f"{ENDPOINT}-sft@1", short(f"datasets/{ENDPOINT}-sft@1")],
        ["model", "sums-base@1", short("models/sums-base@1")],
    ):
        assert link in links, (link, said)
    onward = [link[:3] for link in links if link[0] in ("->", "<-")]
    assert ["->", "service", ENDPOINT] in onward and ["<-", "run", made["id"]] in onward, onward


def test_another_rate_makes_the_next_version_and_back(house, example, made):
    page = over(house, example.run("again").strip())
    steps = steps_of(page)
    assert steps["prepare"]["cached"] and not steps["train"]["cached"]
    assert steps["serve"]["left"]["version"] == 2 and house.get(f"/v1/services/{ENDPOINT}")["current"] == 2
    example.run("back", RUN=page["id"])
    wait_for(lambda: house.get(f"/v1/services/{ENDPOINT}")["current"] == 1, "version 1 has the traffic again", 240)
    house.argus("service", "rm", ENDPOINT)
    wait_for(lambda: not house.get("/v1/services")["services"], "it is gone", 240)


def test_every_command_of_the_documents_was_run(doc, first, example, made):
    assert (doc.never_run(), example.never_run()) == ([], [])
