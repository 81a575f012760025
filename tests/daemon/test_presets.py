# SPDX-License-Identifier: Apache-2.0
"""Presets against the real argusd: kept over a restart, filled by a submit, by the key and by the command line."""

import json
import os
import subprocess

import pytest
import yaml
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import PATIENCE, Argusd, needs_argusd

pytestmark = needs_argusd

ECHO = """\
description: says a word
holes:
  word: {type: text, required: true, example: hello, description: what is said}
  gpus: {type: integer, default: 0}
spec:
  workload: ray
  name: the echo
  entrypoint: [echo, "${hole:word}"]
  n_gpus_per_node: ${hole:gpus}
  env: {A: "1"}
"""


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("presets"), ray.url) as argusd:
        assert argusd.call("PUT", "/v1/presets/echo", ECHO, token="user").status == 201
        yield argusd


def refused(argusd, body, status=422):
    reply = argusd.call("POST", "/v1/jobs?dry_run=1", body, token="user")
    assert reply.status == status, reply
    return reply.json()


def test_a_job_is_made_of_it(argusd):
    body = "preset: echo\nword: 'it is'\nenv: {B: '2'}\ntimeout: 1h\n"
    job = argusd.call("POST", "/v1/jobs", body, token="user").json()["id"]
    assert argusd.wait_over(job)["state"] == "SUCCEEDED"
    detail = argusd.get(f"/v1/jobs/{job}")
    assert (detail["name"], detail["resolved_spec"]["timeout"]) == ("the echo", "3600s")
    kept = json.loads(detail["spec"])
    assert kept == {
        "workload": "ray", "name": "the echo", "entrypoint": ["echo", "it is"], "n_gpus_per_node": 0,
        "env": {"A": "1", "B": "2"}, "timeout": "1h",
    }  # fmt: skip
    assert "it is" in argusd.call("GET", f"/v1/jobs/{job}/logs").body.decode()


def test_what_is_missing_or_unknown_is_one_sentence(argusd):
    problem = refused(argusd, "preset: echo\nwrod: x\n")
    said = [p["detail"] for p in problem["problems"]]
    assert said == [
        "'wrod' is neither a hole of preset 'echo' nor a key of a spec; its holes are: word (required), gpus",
        "preset 'echo' needs a value for: word; its holes are: word (required), gpus",
    ]
    assert problem["problems"][0]["hint"] == "did you mean 'word'?"
    assert problem["problems"][0]["line"] == 2
    assert "takes a whole number, not 'many'" in refused(argusd, "preset: echo\nword: x\ngpus: many\n")["detail"]
    assert "did you mean 'echo'?" in refused(argusd, "preset: ecko\n")["detail"]
    assert refused(argusd, "preset: echo\nword: x\npriority: 500\n")["field"] == "priority"


def test_a_smoke_run_of_it(argusd):
    reply = argusd.call("POST", "/v1/jobs?dry_run=1&smoke=1", "preset: echo\nword: x\ngpus: 8\nnnodes: 4\n")
    assert reply.status == 200, reply
    assert reply.json()["demand"]["gpus"] == 1


def test_a_project_has_its_own(argusd):
    assert argusd.call("POST", "/v1/projects", {"name": "rlhf", "members": ["alice"]}).status == 201
    own = ECHO.replace("the echo", "of rlhf")
    assert argusd.call("PUT", "/v1/presets/echo?project=rlhf", own, token="user").status == 201
    for body, name in (("project: rlhf\n", "of rlhf"), ("", "the echo")):
        reply = argusd.call("POST", "/v1/jobs?dry_run=1", f"preset: echo\nword: x\n{body}", token="user")
        assert reply.json()["resolved_spec"]["name"] == name
    whole = argusd.call("POST", "/v1/jobs?dry_run=1", "preset: rlhf/echo\nword: x\n", token="user").json()
    assert whole["resolved_spec"]["name"] == "of rlhf"
    names = [(p["name"], p["project"]) for p in argusd.get("/v1/presets?workload=ray", token="user")["presets"]]
    assert names == [("echo", "default"), ("echo", "rlhf")]
    events = argusd.get("/v1/events?limit=1000", token="user")["events"]
    assert [e["kind"] for e in events if e["text"] == "preset 'echo' stored" and e["object"] == "project/rlhf"]
    assert argusd.call("DELETE", "/v1/projects/rlhf").status == 200
    assert argusd.call("GET", "/v1/presets/echo?project=rlhf").status == 404


def test_bad_ones_are_refused_whole(argusd):
    def put(text, name="bad", status=422):
        reply = argusd.call("PUT", f"/v1/presets/{name}", text, token="user")
        assert reply.status == status, reply
        return reply.json()

    assert "no hole 'wort'; the holes are: word" in put(ECHO.replace("${hole:word}", "${hole:wort}"))["detail"]
    problem = put(ECHO.replace("entrypoint:", "entrypint:"))["problems"][0]
    assert (problem["field"], problem["line"]) == ("spec.entrypint", 8)
    assert "shipped preset" in put(ECHO, "grpo-7b", 409)["detail"]
    assert "name of a secret" in put(ECHO.replace('A: "1"', 'HF_TOKEN: "abc"'))["detail"]
    assert put("a: [")["code"] == "yaml_bracket"
    assert argusd.call("GET", "/v1/presets/bad").status == 404
    assert argusd.call("DELETE", "/v1/presets/grpo-7b").status == 403


def test_it_is_there_after_a_restart(argusd):
    before = argusd.get("/v1/presets/echo")
    argusd.restart()
    assert argusd.get("/v1/presets/echo") == before
    assert before["text"] == ECHO


# ---- the command line ----


@pytest.fixture
def cli(argusd, tmp_path):
    keep = {k: v for k, v in os.environ.items() if k == "PATH" or k.endswith("SAN_OPTIONS")}
    env = {**keep, "HOME": str(tmp_path), "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"]}

    def run(*args, ok=True):
        argv = [PROGRAMS["argus"], *map(str, args)]
        p = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
        assert (p.returncode == 0) == ok, p.stderr
        return p

    return run


def test_the_command_line(argusd, cli, tmp_path):
    assert "grpo-7b" in cli("preset", "ls").stdout
    assert "required" in cli("preset", "show", "grpo-7b").stdout
    text = cli("preset", "show", "grpo-7b", "--text").stdout
    assert yaml.safe_load(text)["spec"]["workload"] == "grpo"
    (tmp_path / "mine.yaml").write_text(ECHO)
    assert cli("preset", "add", tmp_path / "mine.yaml").stdout == "preset mine stored\n"
    p = cli("submit", "--preset", "mine", "--set", "word=a b", "--set", "name=other", "--dry-run", "-o", "json")
    spec = json.loads(p.stdout)["resolved_spec"]
    assert (spec["entrypoint"], spec["name"]) == (["echo", "a b"], "other")
    (tmp_path / "job.yaml").write_text("name: of a file\nword: x\n")
    p = cli("submit", tmp_path / "job.yaml", "--preset", "mine", "--dry-run", "-o", "json")
    assert json.loads(p.stdout)["resolved_spec"]["name"] == "of a file"
    (tmp_path / "bad.yaml").write_text("preset: mine\nword: x\nnnodes: none\n")
    p = cli("submit", tmp_path / "bad.yaml", ok=False)
    assert p.returncode == 5 and "bad.yaml:3:1: error: 'nnodes'" in p.stderr
    p = cli("submit", "--preset", "mine", ok=False)
    assert p.returncode == 5 and "needs a value for: word" in p.stderr
    assert cli("submit", ok=False).returncode == 2
    assert cli("preset", "rm", "mine").stdout == "preset mine removed\n"
    assert cli("preset", "show", "mine", ok=False).returncode == 4
    (tmp_path / "bad.yaml").write_text(ECHO.replace("holes:", "hols:"))
    p = cli("preset", "add", tmp_path / "bad.yaml", ok=False)
    assert p.returncode == 5 and "bad.yaml:2:1: error: 'hols': unknown key" in p.stderr
