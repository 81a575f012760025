# SPDX-License-Identifier: Apache-2.0
"""What a job makes argusd read, make and write by links on the shared root: nothing outside of it.

The links lie there before argusd comes, or a process swaps them in and out all the while; what they lead to is as it
was afterwards, and no word of it is in an answer."""

import json
import os

import broken
import pytest
from attack import flipping, make_outside, untouched
from fakeray import FakeRay
from snapshots import add, tar

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd
WORD = "k3y-0f-the-head"  # one word: what a file with a version may hold
IN_JOB = 'cd "${ARGUS_ATTEMPT_DIR:?}" || exit 9; '


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("links"), ray.url) as argusd:
        argusd.wait_over(argusd.submit("true"))  # the root was looked at
        broken.put(argusd.root / "common/t.parquet", broken.GOOD)
        yield argusd


@pytest.fixture
def outside(tmp_path):
    return make_outside(tmp_path / "head")


def swap(path, to):
    """What a job does: the thing goes aside, a link has its name."""
    if path.exists():
        path.rename(path.with_name(path.name + ".kept"))
    path.symlink_to(to)


def swap_back(path):
    path.unlink()
    kept = path.with_name(path.name + ".kept")
    if kept.exists():
        kept.rename(path)


# ---- reading ----


DATA = "${SHARED_ROOT}/common/t.parquet"
SPEC = {"workload": "grpo", "n_gpus_per_node": 1, "model_id": "q/w", "train_file": DATA, "val_file": DATA}


def dry(w, **keys):
    return w.post({**SPEC, **keys}, "?dry_run=1&no_trial=1", token="user").body.decode()


def tree(w, name):
    version = w.root / "common/code" / name / "verl/version/version"
    version.parent.mkdir(parents=True)
    version.write_text("0.5.0\n")
    return version


@pytest.mark.parametrize("place", ["version", "version/version", "."])
def test_the_version_of_a_tree_is_no_file_of_the_head(w, tmp_path, place):
    for at in ("version/version", "version", "verl/version/version"):
        (tmp_path / at).parent.mkdir(parents=True, exist_ok=True)
        if not (tmp_path / at).is_dir():
            (tmp_path / at).write_text(WORD)
    name = "v-" + place.replace("/", "-")
    version = tree(w, name)
    at = w.root / "common/code" / name / ("" if place == "." else "verl/" + place)
    end = {"version": "version", "version/version": "version/version", ".": "."}[place]
    assert '"verl":"0.5.0"' in dry(w, code_path=f"${{SHARED_ROOT}}/common/code/{name}").replace(" ", "")
    at.rename(w.root / "common/code" / (name + ".kept"))
    at.symlink_to(tmp_path / end)
    again = w.root / "common/code" / (name + "-again")  # another name: what was found is kept for a minute
    again.symlink_to(name)
    assert version.read_text() == WORD
    assert WORD not in dry(w, code_path=f"${{SHARED_ROOT}}/common/code/{name}-again")


def test_the_version_of_an_interpreter_is_no_file_of_the_head(w, tmp_path):
    (tmp_path / "python3.11/site-packages/verl/version").mkdir(parents=True)
    (tmp_path / "python3.11/site-packages/verl/version/version").write_text(WORD)
    venv = w.root / "common/venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").write_text("#!/bin/sh\n")
    (venv / "bin/python").chmod(0o755)
    (venv / "lib").symlink_to(tmp_path)
    said = dry(w, runtime_env={"py_executable": "${SHARED_ROOT}/common/venv/bin/python"})
    assert '"argv"' in said and WORD not in said


def test_a_version_that_is_swapped_while_it_is_read(w, tmp_path):
    (tmp_path / "word").write_text(WORD)
    names = [f"race-{i}" for i in range(24)]
    versions = [tree(w, name) for name in names]
    for version in versions[1:]:
        version.unlink()
        version.symlink_to("../../../race-0/verl/version/version")
    with flipping(versions[0], tmp_path / "word"):
        for name in names:
            assert WORD not in dry(w, code_path=f"${{SHARED_ROOT}}/common/code/{name}")


def test_imports_are_no_records_of_the_head(w, outside):
    record = {"kind": "driver", "node": "head", "pid": 1, "verl": {"version": WORD, "file": "/x"}}
    (outside / "key").write_text(json.dumps(record))
    (outside / "key").rename(outside / "driver-head-1.json")
    script = IN_JOB + "rm -r proof && ln -s $AT proof; touch $AT/now; sleep 3"
    job = w.submit(script, env={"AT": str(outside)})
    w.wait_over(job)
    assert (w.job_dir(job) / "attempts/1/proof").is_symlink()
    assert WORD not in json.dumps([w.job(job), w.events(job)])


# ---- the look before a job is accepted ----

TOOLS = "actor_rollout_ref.rollout.multi_turn.tool_config_path"


def told(w, **keys):
    """What is wrong with it, without the names that it gave."""
    reply = w.post({**SPEC, **keys}, "?dry_run=1&no_trial=1", token="user")
    problems = reply.json().get("problems") or []
    return [(p["field"], p["detail"]) for p in problems if p["level"] == "error"]


@pytest.mark.parametrize("key", ["train_file", "reward_fn_path", "code_path", "model_id", "py_executable", TOOLS])
def test_what_lies_elsewhere_is_not_even_found_to_be_missing(w, tmp_path, key):
    """By a link, and for an override by its path: one answer, whatever is there."""
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/config.json").write_text("{ not JSON")
    (tmp_path / "torn").write_text("a: [1,\n")
    (tmp_path / "whole").write_text("a: 1\n")
    (tmp_path / "program").write_text("#!/bin/sh\n")
    (tmp_path / "program").chmod(0o755)
    answers = set()
    for name in ("dir", "torn", "whole", "program", "none"):
        link = w.root / "common" / "elsewhere"
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / name)
        for path in [str(link)] + ([str(tmp_path / name)] if key == TOOLS else []):
            keys = {"overrides": [f"{TOOLS}={path}"]} if key == TOOLS else {key: path}
            keys = {"runtime_env": keys} if key == "py_executable" else keys
            text = json.dumps([t for t in told(w, **keys) if t[0] in (key, "overrides", "runtime_env.py_executable")])
            answers.add(text.replace(str(tmp_path / name), "ELSEWHERE"))
    assert len(answers) == 1 + (key == TOOLS), answers
    assert ("outside the shared root" in str(answers)) == (key != "py_executable"), answers


def test_no_part_of_a_model_lies_elsewhere(w, tmp_path):
    model = w.root / "common/models/linked"
    broken.make_model(model)
    for name in ("config.json", "model.safetensors", "model.safetensors.index.json"):
        (tmp_path / name).write_text("{ not JSON")
        (model / name).unlink(missing_ok=True)
        (model / name).symlink_to(tmp_path / name)
    assert not [t for t in told(w, model_id=str(model)) if str(tmp_path) in t[1] or "JSON" in t[1]]


def test_a_cache_of_models_that_a_spec_names_elsewhere_is_not_looked_at(w, tmp_path):
    broken.make_model(tmp_path / "hub/models--q--w/snapshots/1", **{"config.json": "{ not JSON"})
    for home in (tmp_path, tmp_path / "none"):
        assert not [t for t in told(w, model_id="q/w", env={"HF_HOME": str(home)}) if t[0] == "model_id"]


def test_a_directory_that_is_swapped_while_it_is_looked_at(w, tmp_path):
    (tmp_path / "tools.yaml").write_text("a: [1,\n")
    at = w.root / "common/flip"
    at.mkdir()
    (at / "tools.yaml").write_text("a: 1\n")
    with flipping(at, tmp_path):
        said = [told(w, overrides=[f"{TOOLS}={at}/tools.yaml"], name=str(i)) for i in range(400)]
    assert not [t for t in said if "does not parse" in str(t)], said
    assert len({str(t) for t in said}) > 1, "it never was in time: this shows nothing"


# ---- metrics ----


def test_metrics_are_not_written_through_a_link(w, outside):
    record = {"step": 7, "attempt": 1, "at": 1, "offset": 1, "from_log": True}
    stolen = json.dumps({**record, "data": {"stolen/key": 42}})
    (outside / "metrics.jsonl").write_text(stolen + "\n" + "x" * 1000)
    lines = "for i in 1 2 3; do echo step:$i - critic/score/mean:0.5; done; sleep 2"
    job = w.submit(IN_JOB + "cd ../.. && rm -r metrics && ln -s $AT metrics; " + lines, env={"AT": str(outside)})
    w.wait_over(job)
    assert (w.job_dir(job) / "metrics").is_symlink()
    assert "stolen" not in json.dumps(w.get(f"/v1/jobs/{job}/metrics"))
    assert (outside / "metrics.jsonl").read_text() == stolen + "\n" + "x" * 1000
    (outside / "metrics.jsonl").unlink()
    untouched(outside)


def test_a_merged_file_that_is_a_link_is_replaced(w, outside):
    link = "cd ../../metrics && ln -s $AT/key metrics.jsonl || exit 9; "
    job = w.submit(IN_JOB + link + "echo step:1 - critic/score/mean:0.5; sleep 2", env={"AT": str(outside)})
    merged = w.job_dir(job) / "metrics/metrics.jsonl"
    until(lambda: w.job(job)["step"] == 1 and not merged.is_symlink(), "the step is merged")
    w.wait_over(job)
    untouched(outside)


# ---- people's directories and snapshots ----


@pytest.mark.parametrize("place", ["code", "."])
def test_a_users_directory_that_is_a_link_is_not_filled(w, outside, place):
    at = w.root / "users/alice" / place
    swap(at, outside)
    reply = add(w, "nologin@1", tar({"a": "b"}))
    assert w.wait_over(w.submit("true"))["state"] == "SUCCEEDED"
    untouched(outside)
    swap_back(at)
    assert reply.status >= 400 and "follows no link" in reply.json()["detail"], reply


@pytest.mark.parametrize("place", ["code", "."])
def test_a_users_directory_that_is_swapped_meanwhile(w, outside, place):
    at = w.root / "users/alice" / place
    with flipping(at, outside):
        for i in range(12):
            add(w, f"race-{len(str(at))}-{i}@1", tar({"a": str(i)}))
            untouched(outside)
        for job in [w.submit("true") for _ in range(6)]:
            w.wait_over(job)
            untouched(outside)


# ---- what is argusd's own ----


def test_an_upload_is_not_written_through_a_link(w, outside):
    upload = w.call("POST", "/v1/uploads", {"name": "x", "bytes": 4}, token="user").json()["id"]
    at = w.root / "argus/uploads" / upload
    at.parent.mkdir(exist_ok=True)
    swap(at, outside)
    kind = {"Content_Type": "application/octet-stream"}
    reply = w.call("PUT", f"/v1/uploads/{upload}?offset=0", b"1234", token="user", **kind)
    w.call("DELETE", f"/v1/uploads/{upload}", token="user")
    untouched(outside)
    assert reply.status >= 400, reply


def test_secrets_are_not_written_through_a_link(w, outside):
    assert w.call("PUT", "/v1/secrets/MY_KEY", {"value": "a-long-secret-value"}, token="user").status == 201
    at = w.root / "argus/secrets"
    swap(at, outside)
    job = w.wait_over(w.submit("true", secrets=["MY_KEY"]))
    swap_back(at)
    untouched(outside)
    assert job["state"] == "FAILED" and "follows no link" in job["reason"]["text"], job["reason"]


def test_nothing_is_installed_through_a_link(w, outside):
    """The hook, the shepherd and the libraries, which argusd places at its start; and the directories of a new root."""
    places = [w.root / "argus" / name for name in ("hook", "bin", "lib")] + [w.root / "common"]
    marker = w.root / "argus/.shared-root"
    marker.unlink()
    for at in places:
        swap(at, outside)
    w.restart()
    until(lambda: "follows no link" in (w.get("/readyz")["reason"] or ""), "it is told")
    untouched(outside)
    for at in places:
        swap_back(at)
    until(lambda: w.get("/readyz")["shared_root"] == "ok", "the root is good again")
    assert marker.exists() and os.listdir(outside) == ["key"]
