# SPDX-License-Identifier: Apache-2.0
"""A model that is imported from what a job has left knows what it was made of, whatever its importer says."""

import json
import os
import subprocess

import broken
import pytest
import standin
from fakeray import FakeRay
from importing import parquet_like
from programs import PROGRAMS
from snapshots import added, tar

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd


@pytest.fixture
def a(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        standin.make_world(argusd.root)
        broken.put(argusd.root / "common/code/standin/verl/model_merger.py", "")
        broken.put(argusd.root / "common/rows.jsonl", json.dumps({"prompt": [], "data_source": "s"}) + "\n")
        yield argusd


def bring(a, kind, name, source, token="user", **more):
    form = {"name": name, "source": str(source), **more}
    return until(lambda: (r := a.call("POST", f"/v1/{kind}", form, token=token)).status != 503 and r, "it is answered")


def ready(a, kind, ref):
    def look():
        reply = a.call("GET", f"/v1/{kind}/{ref}", token="user")
        assert reply.status == 200, a.said()[-3000:]
        return reply.json()["state"] == "ready" and reply.json()

    return until(look, f"{ref} is ready")


def make_model(path):
    header = json.dumps({"w": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}}).encode()
    broken.put(path / "model.safetensors", len(header).to_bytes(8, "little") + header + bytes(48))
    broken.put(path / "config.json", json.dumps({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}))
    broken.put(path / "tokenizer.json", "{}")


def check_onward(a, job):
    """What was made of the base model, and which job read it, whose row is in the store alone."""
    went = a.call("GET", "/v1/models/base/uses", token="user").json()
    assert (went["ref"], went["jobs"], went["more"]) == ("base@1", 1, False)
    found = {(u["kind"], u["name"], u["owner"], u["said"]) for u in went["uses"]}
    expected = [("model", "tuned@1"), ("model", "merged@1"), ("job", job)]
    assert found == {(*use, "alice", False) for use in expected}
    every = {u["name"] for u in a.call("GET", "/v1/models/base/uses", token="admin").json()["uses"]}
    assert every == {"tuned@1", "merged@1", "all@1", job}
    env = {**os.environ, "ARGUS_URL": a.url, "ARGUS_TOKEN": a.tokens["user"], "COLUMNS": "100"}
    said = subprocess.run([PROGRAMS["argus"], "model", "lineage", "base"], capture_output=True, text=True, env=env)
    onward = sorted(line.split()[1:3] for line in said.stdout.splitlines() if line.startswith("-> "))
    assert onward == sorted([["job", job], ["model", "merged@1"], ["model", "tuned@1"]]), said


def test_from_a_checkpoint_and_through_a_merge(a):
    assert bring(a, "datasets", "sums", a.root / "common/rows.jsonl", in_place=True).status == 201
    make_model(a.root / "common/models/base")
    assert bring(a, "models", "base", a.root / "common/models/base", in_place=True).status == 201
    data, base = ready(a, "datasets", "sums"), ready(a, "models", "base")
    mine = added(a, "mine@1", tar({"helper.py": "1"}))
    shards = [a.root / "common/datasets" / f"{'long' * 20}-{n}.parquet" for n in range(200)]
    for path in shards:
        broken.put(path, parquet_like())
    files = ["sums", *map(str, shards)]
    t = standin.Training(a, train_file=files, model_id="base", working_dir="mine@1")
    t.save(10)
    until(lambda: [c["step"] for c in t.listed() if c["state"] == "verified"] == [10], "its checkpoint is known")
    t.order("exit", 0)
    a.wait_over(t.id)
    step = t.kept / "global_step_10/actor"
    make_model(step / "huggingface")
    expected = {
        "job": t.id, "workload": "grpo", "attempt": 1, "step": 10, "verl": "0.5.0",
        "snapshot": [
            {"key": "working_dir", "name": "mine@1", "hash": mine["hash"]},
            {"key": "code_path", "path": str(a.root / "common/code/standin")},
        ],
        "data": [
            {"key": "train_file", "ref": "sums@1", "hash": data["hash"]},
        ],
        "model": {"ref": "base@1", "hash": base["hash"]},
    }  # fmt: skip
    reply = bring(a, "models", "tuned", step / "huggingface", lineage={"job": "another", "eval": 0.7})
    assert reply.status == 201, reply
    one = ready(a, "models", "tuned")
    n = len(one["lineage"]["data"]) - 1  # as many as fit
    assert 0 < n < len(shards)
    expected["data"] += [{"key": "train_file", "path": str(path)} for path in shards[:n]]
    expected["more_data"] = len(shards) - n + 1
    assert one["lineage"] == {**expected, "said": {"job": "another", "eval": 0.7}} and one["lineage_by"] == "argusd"

    # Whoever cannot see the job learns from an entry for all which one it was.
    assert bring(a, "models", "all", step / "huggingface", token="admin", common=True).status == 201
    assert ready(a, "models", "all")["lineage"] == {"job": t.id, "step": 10}
    assert a.call("GET", "/v1/models/all", token="admin").json()["lineage"] == expected

    # A merge stands between; it and the training are read from the store, and after a restart.
    merge = {**standin.SPEC, "workload": "merge", "model_id": str(step), "submission_id": "merging"}
    for key in ("train_file", "val_file", "n_gpus_per_node"):
        del merge[key]
    a.wait_over(a.submit(merge))
    make_model(a.root / "jobs/merging/output/model")
    a.restart()
    assert bring(a, "models", "merged", "${SHARED_ROOT}/jobs/merging/output/model").status == 201
    assert ready(a, "models", "merged")["lineage"] == {**expected, "merge": "merging"}
    env = {**os.environ, "ARGUS_URL": a.url, "ARGUS_TOKEN": a.tokens["user"], "COLUMNS": "100"}
    said = subprocess.run([PROGRAMS["argus"], "model", "lineage", "merged"], capture_output=True, text=True, env=env)
    words = [line.split()[:2] for line in said.stdout.splitlines()]
    assert words[:5] == [
        ["model", "merged@1"], ["merge", "merging"], ["training", t.id], ["code", "mine@1"], words[4],
    ], said  # fmt: skip
    assert ["data", "sums@1"] in words and words[-2] == ["model", "base@1"] and data["hash"][:16] in said.stdout
    a.restart()
    assert ready(a, "models", "merged")["lineage_by"] == "argusd"

    check_onward(a, t.id)
    env = {**os.environ, "ARGUS_URL": a.url, "ARGUS_TOKEN": a.tokens["user"]}
    argv = [PROGRAMS["argus"], "model", "show", "merged"]
    shown = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=True).stdout
    assert f"job {t.id}, attempt 1, step 10, merged by job merging" in shown
    assert f"working_dir mine@1 {mine['hash']}" in shown and f"base@1 {base['hash']}" in shown

    # Nobody learns from it of a job that he may not see, and of other sources only what was said is there.
    hers = a.submit({**Argusd.spec("true"), "submission_id": "hers"}, token="admin")
    a.wait_over(hers)
    make_model(a.root / "jobs/hers/output")
    assert bring(a, "models", "stolen", a.root / "jobs/hers/output").status == 422
    assert bring(a, "models", "told", a.root / "common/models/base", lineage={"job": t.id}).status == 201
    told = ready(a, "models", "told")
    assert (told["lineage"], told["lineage_by"]) == ({"job": t.id}, "importer")
    assert ready(a, "models", "base")["lineage_by"] is None
