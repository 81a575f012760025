# SPDX-License-Identifier: Apache-2.0
"""What a removal would break: DELETE with ?dry_run names jobs, pipelines and presets that use a data set or a preset,
and removes nothing. What a service keeps is in test_services.py."""

import json
import os
import subprocess

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd

SPEC = "workload: ray, entrypoint: 'true'"
PIPELINE = """\
name: nightly
params:
  rows: {default: sums@1}
steps:
  first:
    with: {%s, train_file: "${{ params.rows }}"}
"""
OTHER = """\
name: other
steps:
  first:
    with: {%s, train_file: another, name: sums}
"""


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("removals"), ray.url) as argusd:
        argusd.call("POST", "/v1/users", {"name": "bob"})
        argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
        argusd.call("POST", "/v1/tokens", {"user": "alice"})
        for user in ("alice", "bob"):
            until((argusd.root / f"users/{user}/code").is_dir, "the user has directories")
            rows = argusd.root / f"users/{user}/sums.jsonl"
            rows.write_text(json.dumps({"question": "1+1?", "answer": "2"}) + "\n")
        yield argusd


def brought(argusd, name, token="user", user="alice", **more):
    form = {"name": name, "source": str(argusd.root / f"users/{user}/sums.jsonl"), "in_place": True, **more}
    reply = until(
        lambda: (r := argusd.call("POST", "/v1/datasets", form, token=token)).status != 503 and r, "it is taken"
    )
    assert reply.status == 201, reply
    ref = reply.json()["ref"]
    until(lambda: argusd.get(f"/v1/datasets/{ref}", token=token)["state"] == "ready", f"{ref} is there")
    return ref


def plan(argusd, path, token="user", status=200):
    reply = argusd.call("DELETE", f"{path}{'&' if '?' in path else '?'}dry_run=1", token=token)
    assert reply.status == status, reply
    return reply.json()


def users(told):
    return sorted((u["kind"], u["name"], u["owner"], u["keeps"]) for u in told["users"])


def test_a_data_set_is_used_by_jobs_pipelines_and_presets(argusd):
    ref = brought(argusd, "sums")
    path = f"/v1/datasets/{ref}"
    free = plan(argusd, path)
    assert free == {"name": "sums@1", "refused": False, "users": [], "hidden": 0}
    for text in (PIPELINE % SPEC, OTHER % SPEC):
        name = text.split("\n")[0].removeprefix("name: ")
        assert argusd.call("PUT", f"/v1/pipelines/{name}", text, token="user").status == 201
    preset = f"description: d\nspec: {{{SPEC}, train_file: sums}}\n"
    assert argusd.call("PUT", "/v1/presets/adds", preset, token="user").status == 201
    gate = argusd.root / "common/removals-gate"
    job = argusd.submit(f"while [ ! -e {gate} ]; do sleep 0.2; done", token="user", train_file="sums")
    told = plan(argusd, path)
    assert users(told) == [
        ("job", job, "alice", True), ("pipeline", "nightly", "alice", False), ("preset", "adds", "default", False),
    ]  # fmt: skip
    assert told["refused"] and told["hidden"] == 0
    refused = argusd.call("DELETE", path, token="user")
    assert (refused.status, refused.json()["code"]) == (409, "entry_used"), "as the plan has said"
    gate.touch()
    argusd.wait_over(job)
    told = plan(argusd, path)
    assert [u[0] for u in users(told)] == ["pipeline", "preset"] and not told["refused"]
    assert argusd.get(path, token="user")["state"] == "ready", "a plan removes nothing"
    assert argusd.call("DELETE", path, token="user").status == 200
    for noun in ("pipelines/nightly", "pipelines/other", "presets/adds"):
        argusd.call("DELETE", f"/v1/{noun}", token="user")


def test_a_name_without_a_version_is_that_of_its_owner(argusd):
    """Bob's pipeline says `mine`, and means his own."""
    alices, bobs = brought(argusd, "mine"), brought(argusd, "mine", token="bob", user="bob")
    text = f"name: bobs\nsteps:\n  first:\n    with: {{{SPEC}, val_file: [mine]}}\n"
    assert argusd.call("PUT", "/v1/pipelines/bobs", text, token="bob").status == 201
    assert plan(argusd, f"/v1/datasets/{alices}")["users"] == []
    assert users(plan(argusd, f"/v1/datasets/{bobs}", token="bob")) == [("pipeline", "bobs", "bob", False)]
    plan(argusd, "/v1/datasets/bob:mine", status=404)


def test_what_one_may_not_see_is_counted(argusd):
    """Bob's pipeline uses what alice has shared with him."""
    ref = brought(argusd, "lent")
    shared = argusd.call("POST", f"/v1/datasets/{ref}:share", {"users": ["bob"]}, token="user")
    assert shared.status == 200, shared
    text = f"name: hidden\nsteps:\n  first:\n    with: {{{SPEC}, train_file: 'alice:lent@1'}}\n"
    assert argusd.call("PUT", "/v1/pipelines/hidden", text, token="bob").status == 201
    told = plan(argusd, f"/v1/datasets/{ref}")
    assert (told["users"], told["hidden"]) == ([], 1) and "hidden" not in json.dumps(told["users"])
    plan(argusd, "/v1/datasets/alice%3Alent@1", token="bob", status=403)


def test_a_preset_is_used_by_pipelines(argusd):
    preset = f"description: d\nspec: {{{SPEC}}}\n"
    assert argusd.call("PUT", "/v1/presets/base", preset, token="user").status == 201
    text = "name: of-base\nsteps:\n  first:\n    with: {preset: base}\n"
    assert argusd.call("PUT", "/v1/pipelines/of-base", text, token="user").status == 201
    assert users(plan(argusd, "/v1/presets/base?project=default")) == [("pipeline", "of-base", "alice", False)]
    keep = {k: v for k, v in os.environ.items() if k == "PATH" or k.endswith("SAN_OPTIONS")}
    env = {**keep, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "HOME": str(argusd.home)}
    said = subprocess.run(
        [PROGRAMS["argus"], "preset", "rm", "base", "--dry-run"],
        env=env, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert said.returncode == 0 and "of-base" in said.stdout and "finds it no more" in said.stdout, said
    assert argusd.call("GET", "/v1/presets/base", token="user").status == 200, "a plan removes nothing"
    assert argusd.call("DELETE", "/v1/presets/base", token="user").status == 200
