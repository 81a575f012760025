# SPDX-License-Identifier: Apache-2.0
"""What a submit is told before anything runs: each wrong name at its line, what cannot start, keys in plain sight."""

import json

import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd

KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    home = tmp_path_factory.mktemp("told")
    with FakeRay(state=home / "ray") as ray, Argusd(home / "home", ray.url) as made:
        yield made


def told(reply, level="error"):
    return [p for p in reply.json()["problems"] if p["level"] == level]


def test_every_wrong_name_is_told_at_once(argusd):
    text = """workload: ray
entrypoint: echo x
project: nowhere
cluster: elsewhere
secrets:
  - NOT_THERE
  - NOR_THIS
code: none@1
train_file: unknown-data
"""
    assert argusd.call("POST", "/v1/projects", {"name": "rlhf"}).status == 201  # without one, any name is a project
    reply = argusd.post(text, token="user")
    assert reply.status == 422, reply
    problems = told(reply)
    assert sorted((p["field"], p["line"]) for p in problems) == [
        ("cluster", 4), ("code", 8), ("project", 3), ("secrets", 6), ("secrets", 6), ("train_file", 9),
    ]  # fmt: skip
    assert all("NOT_THERE" in p["detail"] or "NOR_THIS" in p["detail"] for p in problems if p["field"] == "secrets")


@pytest.mark.parametrize(
    "keys, code",
    [
        ({"env": {"A": "x" * 70_000, "B": "y" * 60_000}}, "env_too_large"),
        ({"env": {"A": None}}, "pair_null"),
        ({"env": ["A=1"]}, "pairs_form"),
        ({"name": "n" * 201}, "job_name_long"),
        ({"name": "a\nb"}, "name_control"),
        ({"after": ["first"]}, "no_after"),
        ({"after": ["Not An Id", "x"]}, "no_after"),
        ({"cluster": "elsewhere"}, "spec_other_cluster"),
        ({"n_gpu": 1}, "unknown_key"),
        ({"entrypoint": ["", "x"]}, "entrypoint_no_program"),
        ({"entrypoint": ["echo", "x" * (128 << 10)]}, "argument_too_long"),
    ],
)
def test_what_cannot_start_is_refused(argusd, keys, code):
    """One mistake is one problem: not a warning beside it, either."""
    reply = argusd.post({**Argusd.spec("echo x"), **keys})
    assert reply.status == 422 and [p["code"] for p in reply.json()["problems"]] == [code], reply


def test_what_is_told_and_taken(argusd):
    reply = argusd.post({"workload": "ray", "entrypoint": "true | cat"}, query="?dry_run=1")
    assert reply.status == 200 and [p["code"] for p in told(reply, "warning")] == ["entrypoint_pipe"], reply


def test_a_key_in_plain_sight_is_told_and_veiled(argusd):
    spec = Argusd.spec(["/bin/echo", "--api-key", KEY])
    reply = argusd.post(spec)
    assert reply.status == 201, reply
    job = reply.json()["id"]
    argusd.wait_job(job, lambda j: j["state"] == "SUCCEEDED", "end")
    page = argusd.job(job)
    assert "text_looks_secret" in json.dumps(page["warnings"])
    assert KEY not in json.dumps(page)
    for path in ("config/jobspec.yaml", "config/submit_cmd.txt", "attempts/1/run.sh", "attempts/1/submit_payload.json"):
        assert KEY not in (argusd.job_dir(job) / path).read_text(), path
    assert argusd.log_file(job).read_text() == "--api-key ***\n"  # what the program says of it is veiled, too
