# SPDX-License-Identifier: Apache-2.0
"""Pipelines beside a fake Ray: steps that need each other, what they hand on, retries, cancel, cache, schedules, over
kill -9 of argusd; by HTTP and by the command line."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import time

import pytest
from fakeray import FakeRay
from preload import needs_compiler
from programs import PROGRAMS
from rulebed import watched
from wallclock import WallClock

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/pipelines/sft-to-model.yaml"

CHAIN = """\
name: chain
params:
  word: {required: true}
  times: {type: integer, default: 2}
steps:
  last:
    needs: [good]
    with: {workload: ray, entrypoint: ["cat", "${{ steps.first.dir }}/said"]}
  good:
    uses: check
    with: {that: "${{ steps.first.state == 'SUCCEEDED' && params.times >= 2 }}", else: too few}
  first:
    with:
      workload: ray
      entrypoint: echo ${{ params.word }} > $ARGUS_ATTEMPT_DIR/../../said
"""


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("pipes"), ray.url) as argusd:
        yield argusd


def store(argusd, text, token="user", status=201, query=""):
    name = text.split("\n")[0].removeprefix("name: ")
    reply = argusd.call("PUT", f"/v1/pipelines/{name}{query}", text, token=token)
    assert reply.status in (status, 200), reply
    return name


def begin(argusd, name, token="user", status=201, **body):
    reply = argusd.call("POST", f"/v1/pipelines/{name}:run", body, token=token)
    assert reply.status == status, reply
    return reply.json()["id"] if status == 201 else reply.json()


def run_of(argusd, run, token="user"):
    return argusd.call("GET", f"/v1/pipeline-runs/{run}", token=token).json()


def over(argusd, run, token="user"):
    def ended():
        page = run_of(argusd, run, token)
        return page if page["ended_at"] else None

    try:
        return until(ended, f"run {run} is over")
    except AssertionError as e:
        page = run_of(argusd, run, token)
        jobs = [argusd.get(f"/v1/jobs/{s['job']}") for s in page["steps"] if s["job"]]
        raise AssertionError(json.dumps([page["steps"], jobs], indent=1)) from e


def states(page):
    return {s["name"]: s["state"] for s in page["steps"]}


def step_of(page, name):
    return next(s for s in page["steps"] if s["name"] == name)


def test_a_chain(argusd):
    """What a step leaves behind is where the next one finds it."""
    store(argusd, CHAIN)
    page = over(argusd, begin(argusd, "chain", params={"word": "hello"}))
    assert page["state"] == "SUCCEEDED", json.dumps(page, indent=1)
    assert states(page) == dict.fromkeys(["first", "good", "last"], "SUCCEEDED")
    assert page["params"] == {"word": "hello", "times": 2} and (page["done"], page["total"]) == (3, 3)
    last = step_of(page, "last")
    assert "hello" in argusd.call("GET", f"/v1/jobs/{last['job']}/logs", token="user").body.decode()
    assert last["needs"] == ["good", "first"] and last["left"]["job"] == last["job"]
    job = argusd.job(last["job"])
    assert (job["user"], job["name"]) == ("alice", "chain-last")
    events = argusd.get("/v1/events?limit=500")["events"]
    mine = [e for e in events if (e.get("object") or "").startswith(f"pipeline/{page['id']}")]
    assert {e["kind"] for e in mine} == {"pipeline_started", "pipeline_step", "pipeline_job", "pipeline_ended"}


@pytest.mark.parametrize(("least", "state"), [(0.25, "SUCCEEDED"), (0.5, "FAILED")])
def test_a_check_of_what_main_eval_printed(argusd, least, state):
    """A dict as Python prints it is the metrics of the step."""
    says = """print("{'test_score/openai/gsm8k': np.float64(0.25)}")"""
    that = f"${{{{ steps.eval.metrics['test_score/openai/gsm8k'] >= {least} }}}}"
    steps = {
        "eval": {"with": {"workload": "ray", "entrypoint": ["python3", "-c", says]}},
        "good": {"uses": "check", "with": {"that": that}},
    }
    assert argusd.call("PUT", "/v1/pipelines/scores", {"name": "scores", "steps": steps}, token="user").status < 300
    page = over(argusd, begin(argusd, "scores"))
    assert (states(page)["eval"], page["state"]) == ("SUCCEEDED", state), json.dumps(page, indent=1)
    assert step_of(page, "eval")["left"]["metrics"] == {"test_score/openai/gsm8k": 0.25}


def test_a_check_that_is_not_true_ends_it(argusd):
    store(argusd, CHAIN)
    page = over(argusd, begin(argusd, "chain", params={"word": "w", "times": "1"}))
    assert page["state"] == "FAILED"
    assert states(page) == {"first": "SUCCEEDED", "good": "FAILED", "last": "SKIPPED"}
    reason = step_of(page, "good")["reason"]
    assert reason["code"] == "pipe_check_false" and reason["args"] == {"else": "too few"}
    assert step_of(page, "last")["reason"]["code"] == "pipe_before_failed"


def test_a_run_that_failed_is_told(tmp_path):
    """With the step and its job, in the incident of that job; its owner sees it, others do not."""
    with watched(tmp_path, "pipeline_failed: {keep: 3s}") as w:
        assert w.argusd.call("POST", "/v1/users", {"name": "bob", "role": "user"}).status == 201
        bob = w.argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
        store(w.argusd, "name: ill\nsteps: {a: {with: {workload: ray, entrypoint: exit 3}}}\n")
        begun = w.begin()
        run = begin(w.argusd, "ill")
        told = w.hears("pipeline_failed", begun, run)
        job = step_of(over(w.argusd, run), "a")["job"]
        assert told["text"] == f"run '{run}' of alice's pipeline has failed: step 'a' has failed: job '{job}'"
        (alert,) = w.alerts("pipeline_failed", "all", run)
        assert alert["incident"] == w.alerts("job_failed", "all", job)[0]["incident"]
        for token, n in (("user", 1), (bob, 0)):
            rows = w.argusd.call("GET", "/v1/alerts?state=all", token=token).json()["alerts"]
            assert len([a for a in rows if a["rule"] == "pipeline_failed"]) == n
        w.ends("pipeline_failed", run)


def test_the_same_inputs_are_not_run_again(argusd):
    store(argusd, CHAIN)
    first = over(argusd, begin(argusd, "chain", params={"word": "twice"}))
    again = over(argusd, begin(argusd, "chain", params={"word": "twice"}))
    forced = over(argusd, begin(argusd, "chain", params={"word": "twice"}, force=True))
    jobs = [step_of(p, "first")["job"] for p in (first, again, forced)]
    assert jobs[0] == jobs[1] != jobs[2]
    assert step_of(again, "first")["cached"] and step_of(again, "last")["cached"]
    assert not step_of(forced, "first")["cached"]
    other = over(argusd, begin(argusd, "chain", params={"word": "another"}))
    assert not step_of(other, "first")["cached"]


def planned(argusd, path, **body):
    reply = argusd.call("POST", path, {"dry_run": True, **body}, token="user")
    assert reply.status == 200, reply
    plan = reply.json()
    return plan, {s["name"]: s["would"] for s in plan["steps"]}


def test_what_a_run_would_do(argusd):
    """Told before it is begun: what runs and why, what an earlier run stands in for, what is decided then."""
    store(argusd, CHAIN.replace("name: chain", "name: plan"))
    path = "/v1/pipelines/plan:run"
    plan, would = planned(argusd, path, params={"word": "planned"})
    assert would == {"first": "run", "good": "depends", "last": "depends"} and plan["to_run"] == 3
    assert {s["reason"]["code"] for s in plan["steps"]} == {"pipe_plan_first", "pipe_plan_decided"}
    assert argusd.call("GET", "/v1/pipeline-runs?pipeline=plan", token="user").json()["runs"] == []
    run = over(argusd, begin(argusd, "plan", params={"word": "planned"}))
    _, would = planned(argusd, path, params={"word": "planned"})
    assert would == {"first": "reuse", "good": "pass", "last": "reuse"}
    plan, would = planned(argusd, path, params={"word": "planned", "times": 1})
    assert plan["steps"][1]["reason"]["args"] == {"else": "too few"}
    assert would == {"first": "reuse", "good": "fail", "last": "skip"}
    plan, would = planned(argusd, path, params={"word": "v"})
    (first,) = [s for s in plan["steps"] if s["name"] == "first"]
    assert (first["would"], first["earlier"], first["reason"]["code"]) == ("run", run["id"], "pipe_plan_other")
    assert [c["key"] for c in first["changes"]] == ["entrypoint"] and "echo planned" in first["changes"][0]["from"]
    # A retry from a step: what is before it stays.
    _, would = planned(argusd, f"/v1/pipeline-runs/{run['id']}:retry", **{"from": "last", "force": True})
    assert would == {"first": "keep", "good": "keep", "last": "run"}
    assert run_of(argusd, run["id"])["ended_at"] == run["ended_at"], "nothing was begun"
    said = cli(argusd, "pipe", "run", "plan", "--dry-run", "-p", "word=v")
    assert said.returncode == 0 and "first entrypoint:" in said.stdout and run["id"] in said.stdout, said
    assert cli(argusd, "pipe", "plan", "plan", "-p", "word=v").stdout == said.stdout
    assert [r["id"] for r in argusd.get("/v1/pipeline-runs?pipeline=plan", token="user")["runs"]] == [run["id"]]
    assert "keep" in cli(argusd, "pipe", "retry", run["id"], "--from", "last", "--dry-run").stdout


def test_a_step_tells_what_it_read(argusd):
    text = (
        CHAIN.replace("name: chain", "name: told") + "  never:\n    if: params.times > 5\n    with: {workload: ray}\n"
    )
    store(argusd, text)
    first = over(argusd, begin(argusd, "told", params={"word": "told"}))
    again = over(argusd, begin(argusd, "told", params={"word": "told"}))
    good, never = step_of(again, "good"), step_of(again, "never")
    assert good["values"] == {"steps.first.state": "SUCCEEDED", "params.times": 2} and good["inputs"]["that"] is True
    assert (never["if"], never["if_value"], never["values"]) == ("params.times > 5", False, {"params.times": 2})
    last = step_of(again, "last")
    assert (last["cached"], last["earlier"]) == (True, first["id"])
    assert last["inputs"]["entrypoint"][1] == step_of(first, "first")["left"]["dir"] + "/said"
    shown = argusd.call("GET", f"/v1/pipeline-runs?limit=1&before={again['number']}&pipeline=told", token="user").json()
    assert [r["id"] for r in shown["runs"]] == [first["id"]]


def last_reasons(argusd, run, step):
    """Codes of what was said of a step of a run."""
    events = argusd.get(f"/v1/events?kind=pipeline_step&object=pipeline/{run}/{step}&limit=500")["events"]
    return [e["reason"]["code"] for e in events if e.get("reason")]


def test_a_step_whose_output_is_gone_runs_again(argusd, tmp_path):
    """What an earlier run made is looked at: the plan and the run say what is gone, and the step runs."""
    store(argusd, CHAIN.replace("name: chain", "name: gone"))
    path, body = "/v1/pipelines/gone:run", {"params": {"word": "gone"}}
    first = over(argusd, begin(argusd, "gone", **body))
    _, would = planned(argusd, path, **body)
    assert would == {"first": "reuse", "good": "pass", "last": "reuse"}
    job = step_of(first, "first")["job"]
    (argusd.root / "jobs" / job).rename(tmp_path / job)
    plan, would = planned(argusd, path, **body)
    assert would["first"] == "run", plan
    reason = next(s["reason"] for s in plan["steps"] if s["name"] == "first")
    assert reason["code"] == "pipe_plan_gone" and reason["args"]["run"] == first["id"]
    assert reason["args"]["path"].endswith(f"/jobs/{job}"), reason
    again = over(argusd, begin(argusd, "gone", **body))
    assert again["state"] == "SUCCEEDED" and step_of(again, "first")["job"] != job
    assert "pipe_plan_gone" in last_reasons(argusd, again["id"], "first")
    # The new output stands in from now on, though an older one with the same inputs is gone.
    third = over(argusd, begin(argusd, "gone", **body))
    assert step_of(third, "first")["cached"] and step_of(third, "first")["job"] == step_of(again, "first")["job"]


def test_a_link_in_place_of_the_output_is_not_followed(argusd, tmp_path):
    """Whoever puts a link there, to nothing or to anything, changes nothing: it is no absence."""
    store(argusd, "name: linked\nsteps: {a: {with: {workload: ray, entrypoint: echo linked}}}\n")
    job = step_of(over(argusd, begin(argusd, "linked")), "a")["job"]
    where = argusd.root / "jobs" / job
    where.rename(tmp_path / "moved")
    where.symlink_to(tmp_path / "nothing")
    _, would = planned(argusd, "/v1/pipelines/linked:run")
    assert would == {"a": "reuse"}
    where.unlink()
    _, would = planned(argusd, "/v1/pipelines/linked:run")
    assert would == {"a": "run"}


def test_a_changed_file_makes_its_step_run(argusd):
    """A plain path is an input by the names, sizes and times of its files; the plan says what counts."""
    code = argusd.root / "users" / "alice" / "plain-code"
    code.mkdir(parents=True)
    (code / "main.py").write_text("print(1)\n")
    outside = str(argusd.root / "elsewhere")  # below the root, and nobody's place
    os.mkdir(outside)
    spec = {"workload": "ray", "entrypoint": "true", "working_dir": str(code), "extra_pythonpath": [outside]}
    body = {"name": "plain", "steps": {"a": {"with": spec}, "b": {"with": {"workload": "ray", "entrypoint": "true"}}}}
    assert argusd.call("PUT", "/v1/pipelines/plain", body, token="user").status == 201
    path = "/v1/pipelines/plain:run"
    assert over(argusd, begin(argusd, "plain"))["state"] == "SUCCEEDED"
    plan, would = planned(argusd, path)
    assert would == {"a": "reuse", "b": "reuse"}, plan
    assert plan["steps"][0]["paths"] == [
        {"path": str(code), "state": "compared", "files": 1},
        {"path": outside, "state": "unseen", "files": 0},
    ]
    assert plan["steps"][1]["paths"] == []
    (code / "__pycache__").mkdir()
    (code / "__pycache__" / "main.pyc").write_text("made by a run")
    assert planned(argusd, path)[1] == {"a": "reuse", "b": "reuse"}
    (code / "main.py").write_text("print(12)\n")
    plan, would = planned(argusd, path)
    assert would == {"a": "run", "b": "reuse"} and plan["steps"][0]["reason"]["code"] == "pipe_plan_content"
    (change,) = plan["steps"][0]["changes"]
    assert change["key"] == str(code) and plan["steps"][1]["changes"] == []
    assert re.fullmatch(r'"[0-9a-f]{12}"', change["from"]) and re.fullmatch(r'"[0-9a-f]{12}"', change["to"]), change
    assert change["from"] != change["to"]
    assert f"a {code}: {change['from']} -> {change['to']}" in cli(argusd, "pipe", "run", "plain", "--dry-run").stdout
    page = over(argusd, begin(argusd, "plain"))
    assert not step_of(page, "a")["cached"] and step_of(page, "b")["cached"]
    shutil.rmtree(code)
    plan, _ = planned(argusd, path)
    assert plan["steps"][0]["paths"][0]["state"] == "missing"
    assert [(c["key"], c["from"], c["to"]) for c in plan["steps"][0]["changes"]] == [
        (str(code), change["to"], '"missing"')
    ]
    assert f"{code}: missing" in cli(argusd, "pipe", "run", "plain", "--dry-run").stdout


PREPARES = """\
import sys  # --local_dataset_path --local_save_dir
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
like = b"PAR1" + bytes(1024) + (16).to_bytes(4, "little") + b"PAR1"  # at both ends, where it is looked at
open(given["--local_save_dir"] + "/train.parquet", "wb").write(like)
"""


def test_new_raw_data_and_another_script_are_prepared_again(argusd):
    """A raw data set that is named without its version is an input by the newest one, the script by its file."""
    mine = argusd.root / "users" / "alice" / "to-prepare"
    mine.mkdir(parents=True)
    script = mine / "make.py"
    script.write_text(PREPARES)

    def bring(n):
        rows = mine / f"rows-{n}.jsonl"
        rows.write_text(json.dumps({"question": f"{n} + {n}?", "answer": str(2 * n)}) + "\n")
        form = {"name": "to-prepare", "source": str(rows), "in_place": True}
        until(lambda: argusd.call("POST", "/v1/datasets", form, token="user").status == 201, "the import is taken")
        where = f"/v1/datasets/to-prepare@{n}"
        until(lambda: argusd.get(where, token="user")["state"] == "ready", f"version {n} is ready")

    made = {"uses": "prepare", "with": {"name": "to-prepare", "with": str(script), "as": "prepared"}}
    body = {"name": "prepares", "steps": {"made": made}}
    assert argusd.call("PUT", "/v1/pipelines/prepares", body, token="user").status == 201
    path = "/v1/pipelines/prepares:run"
    bring(1)
    first = over(argusd, begin(argusd, "prepares"))
    assert step_of(first, "made")["left"]["dataset"] == "prepared@1" and first["state"] == "SUCCEEDED", first
    plan, would = planned(argusd, path)
    assert would == {"made": "reuse"}, plan
    assert [(p["path"], p["state"]) for p in plan["steps"][0]["paths"]] == [(str(script), "compared")]
    bring(2)
    plan, would = planned(argusd, path)
    assert would == {"made": "run"} and plan["steps"][0]["reason"]["code"] == "pipe_plan_content", plan
    (change,) = plan["steps"][0]["changes"]
    assert change["key"] == "name to-prepare", change
    assert change["from"].startswith('"to-prepare@1') and change["to"].startswith('"to-prepare@2'), change
    second = step_of(over(argusd, begin(argusd, "prepares")), "made")
    assert second["left"]["dataset"] == "prepared@2" and not second["cached"]
    assert planned(argusd, path)[1] == {"made": "reuse"}
    script.write_text(PREPARES + "print('another')\n")
    plan, would = planned(argusd, path)
    assert would == {"made": "run"} and [c["key"] for c in plan["steps"][0]["changes"]] == [str(script)], plan


FLAKY = """\
name: flaky
steps:
  a:
    retry: {limit: 1, backoff: 1s}
    with: {workload: ray, entrypoint: "test -e PLACE/go || { touch PLACE/go; exit 3; }"}
  b:
    needs: [a]
    with: {workload: ray, entrypoint: "test -e PLACE/fixed"}
  sweep:
    needs: [b]
    if: always()
    with: {workload: ray, entrypoint: "true"}
  c: {needs: [b], with: {workload: ray, entrypoint: "true"}}
"""


def test_retries_and_a_run_that_is_mended(argusd, tmp_path):
    store(argusd, FLAKY.replace("PLACE", str(tmp_path)))
    run = begin(argusd, "flaky")
    page = over(argusd, run)
    assert states(page) == {"a": "SUCCEEDED", "b": "FAILED", "c": "SKIPPED", "sweep": "SUCCEEDED"}
    assert step_of(page, "a")["tries"] == 2
    assert step_of(page, "b")["reason"]["args"]["state"] == "FAILED"
    before = step_of(page, "a")["job"]
    (tmp_path / "fixed").touch()
    reply = argusd.call("POST", f"/v1/pipeline-runs/{run}:retry", {}, token="user")
    assert reply.status == 202 and reply.json()["ended_at"] is None
    page = over(argusd, run)
    assert page["state"] == "SUCCEEDED" and step_of(page, "a")["job"] == before
    # From a step that succeeded: it and all that needs it.
    argusd.call("POST", f"/v1/pipeline-runs/{run}:retry", {"from": "a", "force": True}, token="user")
    assert step_of(over(argusd, run), "a")["job"] != before
    reply = argusd.call("POST", f"/v1/pipeline-runs/{run}:retry", {"from": "x"}, token="user")
    assert (reply.status, reply.json()["code"]) == (404, "pipe_step_unknown")


def test_what_a_run_cost(argusd, tmp_path):
    """GPU-hours of each step over all its tries, as its jobs have them, and their sum; what an earlier run made is
    free."""
    held = f"{{workload: ray, nnodes: 1, n_gpus_per_node: 1, entrypoint: 'test -e {tmp_path}/fixed'}}"
    free = "{workload: ray, entrypoint: echo cost}"
    store(argusd, f"name: cost\nsteps:\n  held: {{with: {held}}}\n  free: {{needs: [held], with: {free}}}\n")
    run = begin(argusd, "cost")
    first = over(argusd, run)
    assert first["state"] == "FAILED"
    (tmp_path / "fixed").touch()
    assert argusd.call("POST", f"/v1/pipeline-runs/{run}:retry", {}, token="user").status == 202
    page = over(argusd, run)
    assert page["state"] == "SUCCEEDED", page
    jobs = [step_of(p, "held")["job"] for p in (first, page)]
    hours = [argusd.job(job)["gpu_hours"] for job in jobs]
    assert len(set(jobs)) == 2 and all(h > 0 for h in hours)
    assert step_of(first, "held")["gpu_hours"] == pytest.approx(hours[0])
    assert step_of(page, "held")["gpu_hours"] == pytest.approx(sum(hours))
    assert step_of(page, "free")["gpu_hours"] == 0 and page["gpu_hours"] == step_of(page, "held")["gpu_hours"]
    assert over(argusd, begin(argusd, "cost"))["gpu_hours"] == 0
    argusd.restart()
    assert run_of(argusd, run)["gpu_hours"] == pytest.approx(page["gpu_hours"])
    (row,) = [r for r in argusd.get("/v1/pipeline-runs?pipeline=cost", token="user")["runs"] if r["id"] == run]
    assert row["gpu_hours"] == pytest.approx(page["gpu_hours"])
    assert "GPU-H" in cli(argusd, "pipe", "show", run, "-o", "wide").stdout


EDITED = """\
name: edited
params:
  left: {required: true}
  right: {type: integer, default: 1}
steps:
  a: {with: {workload: ray, entrypoint: "echo edited-${{ params.left }}"}}
  b: {with: {workload: ray, entrypoint: "echo edited-${{ params.right }}"}}
  a2: {needs: [a], with: {workload: ray, entrypoint: "test -e PLACE/fixed"}}
  b2: {needs: [b], with: {workload: ray, entrypoint: "echo b2-edited"}}
"""


def test_a_retry_with_other_parameters(argusd, tmp_path):
    """What reads a parameter that was changed goes again with what needs it; all other steps stay."""
    store(argusd, EDITED.replace("PLACE", str(tmp_path)))
    run = begin(argusd, "edited", params={"left": "x"})
    page = over(argusd, run)
    assert states(page) == {"a": "SUCCEEDED", "b": "SUCCEEDED", "a2": "FAILED", "b2": "SUCCEEDED"}
    jobs = {s["name"]: s["job"] for s in page["steps"]}
    (tmp_path / "fixed").touch()
    path = f"/v1/pipeline-runs/{run}:retry"
    for body, field, code in (
        ({"params": {"lefd": "y"}}, "params.lefd", "pipe_param_unknown"),
        ({"params": {"right": "many"}}, "params.right", "pipe_param_type"),
        ({"params": {"left": None}}, "params.left", "pipe_param_missing"),
    ):
        reply = argusd.call("POST", path, body, token="user")
        problem = reply.json()["problems"][0]
        assert (reply.status, problem["field"], problem["code"]) == (422, field, code)
    reply = argusd.call("POST", path, {"from": "a22"}, token="user").json()
    assert (reply["code"], reply["args"]["near"]) == ("pipe_step_unknown", "a2"), reply
    assert run_of(argusd, run)["params"] == {"left": "x", "right": 1}, "a refusal changes nothing"
    plan, would = planned(argusd, path, **{"from": "a2", "params": {"right": 2}})
    assert would == {"a": "keep", "b": "run", "a2": "run", "b2": "run"} and plan["params"]["right"] == 2
    codes = {s["name"]: (s["reason"] or {}).get("code") for s in plan["steps"]}
    assert codes == {"a": None, "b": "pipe_plan_other", "a2": "pipe_plan_failed", "b2": "pipe_plan_again"}
    wrong = cli(argusd, "pipe", "retry", run, "--from", "a2", "--set", "right")
    assert wrong.returncode != 0 and "right" in wrong.stderr
    done = cli(argusd, "pipe", "retry", run, "--from", "a2", "--set", "right=2")
    assert done.returncode == 0, done
    page = over(argusd, run)
    assert page["state"] == "SUCCEEDED" and page["params"] == {"left": "x", "right": 2}
    new = {s["name"]: s["job"] for s in page["steps"]}
    assert new["a"] == jobs["a"] and new["b"] != jobs["b"] and new["a2"] != jobs["a2"]
    assert new["b2"] != jobs["b2"]
    assert "echo edited-2" in step_of(page, "b")["inputs"]["entrypoint"]


def test_a_retry_beside_another_run(argusd, tmp_path):
    """A retry waits, is refused, or takes the other one's place, as a new run would."""
    for how in ("queue", "skip", "replace", "allow"):
        name, place = f"beside-{how}", tmp_path / how
        place.mkdir()
        text = WAITS.replace("PLACE", str(place)).replace("concurrency: queue", f"concurrency: {how}")
        store(argusd, text.replace("name: waits", f"name: {name}"))
        first = begin(argusd, name)
        running(argusd, first, "a")
        argusd.call("POST", f"/v1/pipeline-runs/{first}:cancel", token="user")
        over(argusd, first)
        second = begin(argusd, name, force=True)
        running(argusd, second, "a")
        reply = argusd.call("POST", f"/v1/pipeline-runs/{first}:retry", {}, token="user")
        if how == "skip":
            assert (reply.status, reply.json()["code"]) == (409, "pipe_run_skipped")
        elif how == "queue":
            assert reply.status == 202 and reply.json()["started_at"] is None
        else:
            running(argusd, first, "a")
        (place / "go").touch()
        assert over(argusd, second)["state"] == ("CANCELLED" if how == "replace" else "SUCCEEDED")
        mended = over(argusd, first)
        assert mended["state"] == ("CANCELLED" if how == "skip" else "SUCCEEDED")
        if how == "queue":
            assert mended["started_at"] >= run_of(argusd, second)["ended_at"]


MATRIX = """\
name: grid
steps:
  e:
    matrix: {x: [1, 2], y: [a, b]}
    with: {workload: ray, entrypoint: "echo ${{ matrix.x }}-${{ matrix.y }}"}
  all: {uses: check, with: {that: "${{ steps.e.state == 'SUCCEEDED' }}"}}
"""


def test_a_matrix(argusd):
    store(argusd, MATRIX)
    page = over(argusd, begin(argusd, "grid"))
    assert states(page) == dict.fromkeys(["e-1", "e-2", "e-3", "e-4", "all"], "SUCCEEDED")
    assert step_of(page, "e-3")["matrix"] == {"x": 2, "y": "a"}
    log = argusd.call("GET", f"/v1/jobs/{step_of(page, 'e-3')['job']}/logs", token="user").body.decode()
    assert "2-a" in log


WAITS = """\
name: waits
concurrency: queue
steps:
  a: {with: {workload: ray, entrypoint: "while [ ! -e PLACE/go ]; do sleep 0.1; done"}}
  b: {needs: [a], with: {workload: ray, entrypoint: "true"}}
"""


def running(argusd, run, step):
    def job():
        page = run_of(argusd, run)
        found = step_of(page, step)["job"]
        return found if found and argusd.job(found)["state"] == "RUNNING" else None

    return until(job, f"step {step} runs")


def test_cancel_stops_the_jobs(argusd, tmp_path):
    store(argusd, WAITS.replace("PLACE", str(tmp_path)))
    run = begin(argusd, "waits")
    job = running(argusd, run, "a")
    assert argusd.call("POST", f"/v1/pipeline-runs/{run}:cancel", token="user").status == 202
    page = over(argusd, run)
    assert (page["state"], states(page)) == ("CANCELLED", {"a": "CANCELLED", "b": "CANCELLED"})
    ended = argusd.job(job)
    assert ended["state"] == "STOPPED" and ended["reason"]["code"] == "pipe_run_cancelled"


def test_what_a_stop_would_end_with_it(argusd, tmp_path):
    """The plan names the steps that a stop then ends, and no step that starts all the same."""
    more = """\
  c: {needs: [b], with: {workload: ray, entrypoint: "true"}}
  d: {needs: [a], if: always(), with: {workload: ray, entrypoint: "true"}}
"""
    store(argusd, WAITS.replace("PLACE", str(tmp_path)).replace("name: waits", "name: stops") + more)
    run = begin(argusd, "stops")
    job = running(argusd, run, "a")
    reply = argusd.call("POST", f"/v1/jobs/{job}:stop?dry_run=1", token="user")
    assert reply.status == 200, reply
    fates = {s["step"]: s["fate"] for s in reply.json()["steps"] if s["run"] == run}
    assert fates == {"a": "cancelled", "b": "skipped", "c": "skipped"}
    assert argusd.job(job)["state"] == "RUNNING", "nothing was done"
    argusd.stop_job(job, token="user")
    assert states(over(argusd, run)) == {"a": "CANCELLED", "b": "SKIPPED", "c": "SKIPPED", "d": "SUCCEEDED"}


@pytest.mark.parametrize("how", ["queue", "skip", "replace", "allow"])
def test_two_runs_of_one_pipeline(argusd, tmp_path, how):
    text = WAITS.replace("PLACE", str(tmp_path)).replace("concurrency: queue", f"concurrency: {how}")
    store(argusd, text.replace("name: waits", f"name: two-{how}"))
    first = begin(argusd, f"two-{how}")
    running(argusd, first, "a")
    if how == "skip":
        assert begin(argusd, f"two-{how}", status=409)["code"] == "pipe_run_skipped"
    else:
        second = begin(argusd, f"two-{how}", force=True)
        if how == "queue":
            assert run_of(argusd, second)["started_at"] is None
        else:
            running(argusd, second, "a")
    (tmp_path / "go").touch()
    assert over(argusd, first)["state"] == ("CANCELLED" if how == "replace" else "SUCCEEDED")
    if how != "skip":
        assert over(argusd, second)["state"] == "SUCCEEDED"


def test_a_step_that_takes_too_long(argusd, tmp_path):
    text = WAITS.replace("PLACE", str(tmp_path)).replace("  a: {", "  a: {timeout: 2s, ")
    store(argusd, text.replace("name: waits", "name: slow"))
    page = over(argusd, begin(argusd, "slow"))
    assert states(page) == {"a": "FAILED", "b": "SKIPPED"}
    assert argusd.job(step_of(page, "a")["job"])["reason"]["code"] == "pipe_step_timeout"


WRONG_JOBS = """\
name: wrong
params: {t: {default: 1h}}
steps:
  a:
    with:
      workload: ray
      entrypont: ls
      nnodes: many
      timeout: "${{ params.t }}"
      checkpoint: none
      restart: {maxx: 1, backoff: "${{ params.t }}"}
      pool: ["${{ params.t }}", b]
  b: {with: {}}
"""


def test_mistakes_are_told_with_their_places(argusd):
    text = 'name: wrong\nsteps:\n  a:\n    needs: [tran]\n    with: {x: "${{ params.y }}"}\n  train: {with: {}}\n'
    reply = argusd.call("PUT", "/v1/pipelines/wrong", text, token="user")
    told = [(p["code"], p["line"], p["field"]) for p in reply.json()["problems"]]
    assert reply.status == 422
    assert told == [("pipe_step_unknown", 3, "steps.a.needs"), ("pipe_ref_unknown", 5, "steps.a.with")]
    assert reply.json()["problems"][0]["hint"] == "did you mean 'train'"
    reply = argusd.call("PUT", "/v1/pipelines/wrong", WRONG_JOBS, token="user")
    told = sorted((p["line"], p["code"], p["field"]) for p in reply.json()["problems"])
    assert reply.status == 422
    assert told == [
        (7, "unknown_key", "steps.a.with.entrypont"),
        (8, "not_whole", "steps.a.with.nnodes"),
        (11, "unknown_key", "steps.a.with.restart.maxx"),
        (13, "key_missing", "steps.b.with.workload"),
    ]
    assert all(p["column"] for p in reply.json()["problems"]), reply.json()
    store(argusd, CHAIN)
    assert begin(argusd, "chain", status=422)["problems"][0]["code"] == "pipe_param_missing"
    # What only the submit finds is why the step failed.
    store(argusd, "name: bad\nsteps: {a: {with: {workload: ray}}}\n")
    page = over(argusd, begin(argusd, "bad"))
    assert page["state"] == "FAILED" and step_of(page, "a")["job"] is None
    assert step_of(page, "a")["reason"]["code"] == "workload_needs"


def test_what_a_preset_does_not_take_is_told_before_anything_runs(argusd):
    """A key that is neither a hole nor of the JobSpec, a value of the wrong type; expressions may become anything."""
    preset = "holes: {steps: {type: integer, required: true}}\n"
    preset += "spec:\n  workload: ray\n  entrypoint: echo x${hole:steps}\n"
    reply = argusd.call("PUT", "/v1/presets/taken", preset, token="user")
    assert reply.status in (200, 201), reply
    text = "name: filled\nparams: {n: {default: 1h}}\nsteps:\n  a:\n    with: {workload: ray, entrypoint: echo begun}\n"
    step = "  b:\n    needs: [a]\n    with:\n      preset: taken\n"
    for keys, told in (
        ("      stepz: 3\n      steps: 1\n", [(10, "preset_key_unknown", "steps.b.with.stepz")]),
        ("      steps: many\n", [(10, "hole_not_of_type", "steps.b.with.steps")]),
        ("      nnodes: 1\n", [(9, "holes_missing", "steps.b.with.preset")]),
        ("      steps: 1\n      nnodes: many\n", [(9, "not_whole", "steps.b.with.nnodes")]),
    ):
        store(argusd, text + step + keys)
        problems = begin(argusd, "filled", status=422)["problems"]
        assert [(p["line"], p["code"], p["field"]) for p in problems] == told, keys
    store(argusd, text + step.replace("taken", "nowhere"))
    (problem,) = begin(argusd, "filled", status=422)["problems"]
    assert (problem["line"], problem["field"]) == (9, "steps.b.with.preset"), problem
    assert argusd.call("GET", "/v1/pipeline-runs?pipeline=filled", token="user").json()["runs"] == []
    store(argusd, text + step + "      steps: \"${{ params.n }}\"\n      timeout: \"${{ params.n }}\"\n")
    page = over(argusd, begin(argusd, "filled"))
    assert (page["state"], step_of(page, "b")["reason"]["code"]) == ("FAILED", "hole_not_of_type"), page


def test_who_sees_and_changes_it(argusd):
    """Another user's pipeline and run are not there; an admin sees them, a viewer changes nothing."""
    assert argusd.call("POST", "/v1/users", {"name": "bob", "role": "user"}).status == 201
    bob = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
    store(argusd, CHAIN)
    run = begin(argusd, "chain", params={"word": "mine"})
    over(argusd, run)
    for path in ("/v1/pipelines/chain?user=alice", f"/v1/pipeline-runs/{run}"):
        assert argusd.call("GET", path, token=bob).status == 404
        assert argusd.call("GET", path, token="viewer").status == 200
    for path in (f"/v1/pipeline-runs/{run}:cancel", f"/v1/pipeline-runs/{run}:retry"):
        assert argusd.call("POST", path, token=bob).status == 404
    assert argusd.call("POST", "/v1/pipelines/chain:run?user=alice", {}, token=bob).status == 404
    assert argusd.call("GET", "/v1/pipeline-runs", token=bob).json()["runs"] == []
    assert argusd.call("POST", f"/v1/pipeline-runs/{run}:cancel", token="viewer").status == 403


def test_a_schedule(argusd):
    store(argusd, CHAIN.replace("name: chain", "name: nightly"))
    path = "/v1/pipelines/nightly:schedule"
    body = {"cron": "0 2 * * *", "zone": "Asia/Shanghai", "params": {"word": "w"}}
    reply = argusd.call("POST", path, body, token="user")
    assert reply.status == 200 and reply.json()["next_at"].endswith("T18:00:00.000Z"), reply
    for body, code in (
        ({"cron": "61 * * * *", "params": {"word": "w"}}, "cron_field"),
        ({"cron": "0 0 30 2 *", "params": {"word": "w"}}, "cron_never"),
        ({"cron": "@daily", "zone": "Nowhere/At-all", "params": {"word": "w"}}, "zone_unknown"),
        ({"cron": "@daily", "zone": "../../etc/passwd", "params": {"word": "w"}}, "zone_unknown"),
    ):
        assert argusd.call("POST", path, body, token="user").json()["code"] == code
    problem = argusd.call("POST", path, {"cron": "@daily"}, token="user").json()
    assert problem["problems"][0]["code"] == "pipe_param_missing"
    reply = argusd.call("POST", path, {"cron": "* * * * *", "params": {"word": "by itself"}}, token="user")

    def came():
        runs = argusd.call("GET", "/v1/pipeline-runs?pipeline=nightly", token="user").json()["runs"]
        return [r for r in runs if r["by_schedule"]]

    (run, *_) = until(came, "the schedule comes within a minute")
    assert over(argusd, run["id"])["params"]["word"] == "by itself"
    page = argusd.call("GET", "/v1/pipelines/nightly", token="user").json()
    assert len(page["next_times"]) == 5 and page["next_times"][0] == page["next_at"]
    off = argusd.call("POST", path, {"cron": None}, token="user").json()
    assert (off["cron"], off["next_at"]) == (None, None)


def test_a_row_of_an_older_argusd_is_begun_again(argusd):
    """A retry whose submit was being checked, with what the try before it had left: it has no job, and gets one."""
    store(argusd, "name: older\nsteps: {a: {cache: false, with: {workload: ray, entrypoint: echo hello}}}\n")
    run = begin(argusd, "older")
    job = step_of(over(argusd, run), "a")["job"]
    argusd.stop()
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db, db:
        (text,) = db.execute("SELECT body FROM entry WHERE kind = 'pipeline_run' AND name = ?", (run,)).fetchone()
        row = json.loads(text)
        (item,) = row["items"]
        assert item["left"]["job"] == job and item["state"] == row["state"]
        row |= {"state": "RUNNING", "ended_at": None}
        item |= {"state": "RUNNING", "ended_at": None, "job": None}
        where = (json.dumps(row), run)
        db.execute("UPDATE entry SET body = ? WHERE kind = 'pipeline_run' AND name = ?", where)
    argusd.start()
    page = over(argusd, run)
    assert page["state"] == "SUCCEEDED" and step_of(page, "a")["job"] not in (None, job)


@needs_compiler
def test_the_schedule_of_a_user_who_is_disabled(tmp_path):
    """No run begins, however often the schedule comes, and that is told once; then it goes on."""
    clock = WallClock(tmp_path)
    with FakeRay() as ray, contextlib.ExitStack() as until_the_end:
        argusd = Argusd(tmp_path, ray.url)
        argusd.env = clock.env()
        until_the_end.enter_context(argusd)
        store(argusd, "name: hourly\nsteps: {a: {uses: check, with: {that: true}}}\n")
        path = "/v1/pipelines/hourly"
        assert argusd.call("POST", f"{path}:schedule", {"cron": "0 * * * *"}, token="user").status == 200

        def set_disabled(disabled):
            assert argusd.call("PATCH", "/v1/users/alice", {"disabled": disabled}).status == 200

        def comes():
            next_at = argusd.get(f"{path}?user=alice")["next_at"]
            clock.jump(3600)
            until(lambda: argusd.get(f"{path}?user=alice")["next_at"] != next_at, "the schedule has come")

        set_disabled(True)
        comes()
        argusd.restart()
        comes()
        missed = [e for e in argusd.get("/v1/events?limit=500")["events"] if e["kind"] == "pipeline_missed"]
        assert [e["reason"]["code"] for e in missed] == ["you_are_disabled"], missed
        assert argusd.get("/v1/pipeline-runs")["runs"] == []
        set_disabled(False)
        comes()
        (run,) = argusd.get("/v1/pipeline-runs")["runs"]
        assert over(argusd, run["id"])["state"] == "SUCCEEDED"


def cli(argusd, *args, token="user"):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens[token], "COLUMNS": "100"}
    return subprocess.run([PROGRAMS["argus"], *args], capture_output=True, text=True, env=env)


def test_the_example_is_one(argusd):
    drawn = cli(argusd, "pipe", "check", str(EXAMPLE))
    assert drawn.returncode == 0, drawn.stderr
    assert [line.split()[:2] for line in drawn.stdout.splitlines()] == [
        ["train", "job"], ["good", "check"], ["merge", "job"], ["publish", "publish"],
    ]  # fmt: skip
    drawn = cli(argusd, "pipe", "check", str(EXAMPLE.with_name("sft-to-service.yaml")))
    assert drawn.returncode == 0 and drawn.stdout.splitlines()[-1].split()[:2] == ["serve", "deploy"], drawn


def test_the_project_is_planned_and_its_two_steps_run(argusd):
    """examples/projects/sft-to-endpoint: all of pipeline.yaml is planned, and look.yaml runs beside the fake Ray."""
    project = EXAMPLE.parents[1] / "projects/sft-to-endpoint"
    shutil.copytree(project, argusd.root / "common/code/sft-to-endpoint")
    given = ["-p", "raw=sums-raw@1", "-p", "model=sums-base@1"]
    drawn = cli(argusd, "pipe", "run", str(project / "pipeline.yaml"), *given, "--dry-run", "-o", "json")
    assert drawn.returncode == 0, drawn.stderr
    assert {s["name"]: s["would"] for s in json.loads(drawn.stdout)["steps"]} == {
        "prepare": "run", "train": "run", "merge": "run", "answers": "run", "eval": "run",
        "good": "depends", "publish": "depends", "serve": "depends",
    }  # fmt: skip
    run = cli(argusd, "pipe", "run", str(project / "look.yaml"))
    page = over(argusd, run.stdout.strip())
    assert page["state"] == "SUCCEEDED" and states(page) == {"look": "SUCCEEDED", "enough": "SUCCEEDED"}, page
    assert step_of(page, "look")["left"]["metrics"] == {"test_score/rows": 80}
    few = over(argusd, begin(argusd, "look-at-sums", params={"least": 81}))
    assert few["state"] == "FAILED" and step_of(few, "look")["cached"] and states(few)["enough"] == "FAILED"


def test_the_documented_file_is_one(argusd, tmp_path):
    text = (EXAMPLE.parents[2] / "docs/pipelines.md").read_text()
    (block,) = [b for b in text.split("```yaml\n")[1:] if b.startswith("name: ")]
    path = tmp_path / "sft.yaml"
    path.write_text(block.split("```")[0])
    drawn = cli(argusd, "pipe", "check", str(path))
    assert drawn.returncode == 0, drawn.stderr
    assert [line.split()[0] for line in drawn.stdout.splitlines()] == ["train", "good", "merge", "publish"]


def test_by_the_command_line(argusd, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(CHAIN.replace("name: chain", "name: by-hand"))
    drawn = cli(argusd, "pipe", "check", str(path)).stdout.splitlines()
    assert [line.split()[0] for line in drawn] == ["first", "good", "last"]
    assert "<- good, first" in drawn[2]
    run = cli(argusd, "pipe", "run", str(path), "-p", "word=hi").stdout.strip()
    assert run.startswith("by-hand-")
    over(argusd, run)
    assert "SUCCEEDED" in cli(argusd, "pipe", "show", run).stdout
    assert "SUCCEEDED" in cli(argusd, "pipe", "graph", run).stdout
    assert run in cli(argusd, "pipe", "runs", "--pipeline", "by-hand").stdout
    assert "first" in cli(argusd, "pipe", "ls").stdout
    assert cli(argusd, "pipe", "retry", run, "--from", "good").returncode == 0
    over(argusd, run)
    path.write_text("name: x\nsteps:\n  a: {with: {x: '${{ steps.b.job }}'}}\n")
    wrong = cli(argusd, "pipe", "check", str(path))
    assert wrong.returncode == 5 and f"{path}:3:" in wrong.stderr and "no step 'b'" in wrong.stderr
    assert cli(argusd, "pipe", "rm", "by-hand").returncode == 0
    assert run_of(argusd, run)["state"] == "SUCCEEDED"


def test_somebody_elses_by_the_command_line(argusd):
    """Two people have one of the same name: what is done to which is said by --user."""
    text = CHAIN.replace("name: chain", "name: shared")
    for token in ("user", "admin"):
        store(argusd, text, token=token)
    runs = {}
    for token in ("user", "admin"):
        runs[token] = over(argusd, begin(argusd, "shared", token=token, params={"word": token}), token=token)["id"]
    seen = cli(argusd, "pipe", "runs", "--pipeline", "shared", "--owner", "alice", token="admin").stdout
    assert runs["user"] in seen and runs["admin"] not in seen
    how = ["--cron", "@daily", "-p", "word=x", "--user", "alice"]
    when = cli(argusd, "pipe", "schedule", "shared", *how, token="admin")
    assert when.returncode == 0, when
    crons = {t: argusd.get("/v1/pipelines/shared", token=t)["cron"] for t in ("user", "admin")}
    assert crons == {"user": "@daily", "admin": None}
    assert cli(argusd, "pipe", "rm", "shared", "--user", "alice", token="admin").returncode == 0
    assert argusd.call("GET", "/v1/pipelines/shared", token="user").status == 404
    assert argusd.call("GET", "/v1/pipelines/shared", token="admin").status == 200


def killed(place, code):
    """Four steps, one after the other, each of which leaves a mark; what each names is looked at before it begins."""
    steps = {}
    for i in range(4):
        job = {"workload": "ray", "entrypoint": f"echo x >> {place}/s{i}", "extra_pythonpath": [str(code)]}
        steps[f"s{i}"] = {"cache": False, "with": job, "needs": [f"s{i - 1}"] if i else []}
    return {"name": "killed", "concurrency": "allow", "steps": steps}


def test_kill_9_at_any_moment(tmp_path):
    """Killed again and again while runs go on: each step is done once, none is lost."""
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path / "home", ray.url) as argusd:
        place = tmp_path / "done"
        place.mkdir()
        code = argusd.root / "users" / "alice" / "killed-code"
        code.mkdir(parents=True)
        assert argusd.call("PUT", "/v1/pipelines/killed", killed(place, code), token="user").status == 201
        runs = [begin(argusd, "killed") for _ in range(3)]
        kills = 0
        deadline = time.monotonic() + 120
        while any(run_of(argusd, r)["ended_at"] is None for r in runs) and time.monotonic() < deadline:
            if kills < 12:
                argusd.kill9()
                argusd.start()
                kills += 1
        pages = [over(argusd, r) for r in runs]
        assert [p["state"] for p in pages] == ["SUCCEEDED"] * 3, json.dumps(pages, indent=1)
        for i in range(4):
            assert (place / f"s{i}").read_text() == "x\n" * 3
        jobs = argusd.get("/v1/jobs?all=1&limit=100")["jobs"]
        assert len(jobs) == 12 and kills >= 3
