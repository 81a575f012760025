# SPDX-License-Identifier: Apache-2.0
"""A pipeline's step that deploys, beside a fake Ray Serve: it ends once its version has the traffic, is not run again
while it has, is called off with its run, and is done once whenever argusd is killed."""

import json
import os
import subprocess
import time

import pytest
from programs import PROGRAMS
from test_services import Bed, replicas_of

from argusd import PATIENCE, needs_argusd, until

pytestmark = needs_argusd


def text(name, **more):
    params = {"limit": {"type": "integer", "default": 7}}
    deploy = {"name": name, "model": "sums", "keep": "cold", "requests_per_minute": "${{ params.limit }}"}
    shown = ["echo", "${{ steps.serve.url }}", "${{ steps.serve.service }}", "${{ steps.serve.version }}"]
    return {
        "name": name,
        "params": params,
        "steps": {
            "serve": {"uses": "deploy", "with": deploy, **more},
            "after": {"with": {"workload": "ray", "entrypoint": shown}},
        },
    }


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    with Bed(tmp_path_factory.mktemp("deploys")) as bed:
        bed.model("sums")
        yield bed


def store(bed, pipe, status=201):
    reply = bed.argusd.call("PUT", f"/v1/pipelines/{pipe['name']}", pipe, token="user")
    assert reply.status == status, reply
    return reply.json()


def begin(bed, name, **body):
    reply = bed.argusd.call("POST", f"/v1/pipelines/{name}:run", body, token="user")
    assert reply.status == 201, reply
    return reply.json()["id"]


def run_of(bed, run):
    return bed.argusd.get(f"/v1/pipeline-runs/{run}", token="user")


def over(bed, run):
    until(lambda: run_of(bed, run)["ended_at"], f"{run} is over")
    return run_of(bed, run)


def step_of(page, name="serve"):
    return next(s for s in page["steps"] if s["name"] == name)


def would(bed, name, **body):
    reply = bed.argusd.call("POST", f"/v1/pipelines/{name}:run", {"dry_run": True, **body}, token="user")
    assert reply.status == 200, reply
    return {s["name"]: s["would"] for s in reply.json()["steps"]}


def test_it_ends_with_the_traffic_and_is_not_run_again(bed):
    store(bed, text("sums"))
    assert would(bed, "sums") == {"serve": "run", "after": "run"} and bed.page("sums") is None
    first = over(bed, begin(bed, "sums"))
    assert first["state"] == "SUCCEEDED", json.dumps(first, indent=1)
    left = dict(step_of(first)["left"])
    assert left.pop("before") == {"replicas": 0, "stopped": False} and left.pop("made_at")
    assert left == {"service": "sums", "version": 1, "url": "/v1/services/sums/v1"}
    page = bed.page("sums")
    assert (page["current"], page["state"], page["keep"], page["owner"]) == (1, "READY", "cold", "alice")
    assert page["versions"][0]["spec"]["requests_per_minute"] == 7
    log = bed.argusd.call("GET", f"/v1/jobs/{step_of(first, 'after')['job']}/logs", token="user").body
    assert b"/v1/services/sums/v1 sums 1" in log
    # The same again stands; another limit is another version; another one's traffic is a reason to deploy again.
    assert would(bed, "sums") == {"serve": "reuse", "after": "reuse"}
    again = over(bed, begin(bed, "sums"))
    assert step_of(again)["cached"] and step_of(again)["left"] == step_of(first)["left"]
    assert [v["n"] for v in bed.page("sums")["versions"]] == [1]
    other = over(bed, begin(bed, "sums", params={"limit": 8}))
    assert step_of(other)["left"]["version"] == 2 and not step_of(other)["cached"]
    assert bed.page("sums")["current"] == 2 and would(bed, "sums") == {"serve": "run", "after": "run"}
    traced = lineage(bed, f"{bed.argusd.url}/v1/services/sums/v1")
    assert (traced[0]["what"], traced[0]["name"], traced[1]["name"]) == ("service", "sums v2", "sums@1")
    assert traced[0]["hash"] == traced[1]["hash"]


def test_a_model_knows_who_uses_it(bed):
    """The version with the traffic and the one before it, and the runs that deployed them, for who may see them."""
    bed.model("worn")
    pipe = text("worn")
    pipe["steps"]["serve"]["with"]["model"] = "worn"
    store(bed, pipe)
    runs = [over(bed, begin(bed, "worn", params={"limit": n}))["id"] for n in (7, 8)]

    def uses(token):
        reply = bed.argusd.call("GET", "/v1/models/worn@1/uses", token=token)
        return reply.json()["uses"] if reply.status == 200 else reply.status

    found = uses("user")
    services = [(u["name"], u["version"], u["has_traffic"], u["endpoint"]) for u in found if u["kind"] == "service"]
    assert services == [("worn", 2, True, "/v1/services/worn/v1"), ("worn", 1, False, "/v1/services/worn/v1")], found
    steps = [(u["name"], u["step"], u["state"], u["made"]) for u in found if u["kind"] == "run"]
    assert steps == [(run, "serve", "SUCCEEDED", False) for run in reversed(runs)], found
    said = lineage(bed, "worn")
    onward = [(link["what"], link["name"], link["endpoint"]) for link in said if link.get("made") is False]
    assert onward[:2] == [("service", "worn v2", "/v1/services/worn/v1"), ("service", "worn v1", None)], said
    assert ("run", f"{runs[0]} serve", None) in onward and said[0]["name"] == "worn@1"
    assert bed.argusd.call("POST", "/v1/users", {"name": "ann", "role": "user"}).status == 201
    ann = bed.argusd.call("POST", "/v1/tokens", {"user": "ann"}).json()["token"]
    assert uses(ann) == 404, "a model that one may not see"
    shared = bed.argusd.call("POST", "/v1/models/worn:share", {"users": ["ann"]}, token="user")
    assert shared.status == 200 and uses(ann) == [], "she sees the model, and nothing of who uses it"
    bed.argusd.call("DELETE", "/v1/services/worn", token="user")


def test_another_service_of_that_name_and_number_does_not_stand_in(bed):
    """Removed and made anew, it has a version 1 again."""
    store(bed, text("anew"))
    assert over(bed, begin(bed, "anew"))["state"] == "SUCCEEDED"
    bed.argusd.restart()
    assert would(bed, "anew")["serve"] == "reuse", "its version is found again after a restart"

    def made():
        reply = bed.argusd.call("POST", "/v1/services", {"model": "sums", "name": "anew"}, token="user")
        return reply.status != 409 and reply

    bed.argusd.call("DELETE", "/v1/services/anew", token="user")
    reply = until(made, "the first one is gone")
    assert reply.status == 201, reply
    bed.ready("anew", 1)
    assert would(bed, "anew") == {"serve": "run", "after": "run"}
    page = over(bed, begin(bed, "anew"))
    assert not step_of(page)["cached"] and step_of(page)["left"]["version"] == 2, json.dumps(page, indent=1)
    bed.argusd.call("DELETE", "/v1/services/anew", token="user")


def rolls_back(bed, run, token="user"):
    return bed.argusd.call("POST", f"/v1/pipeline-runs/{run}:rollback", token=token)


def test_what_a_run_deployed_goes_back(bed):
    """Once: then its version has no traffic any more. A first version has none before it, and a run that an earlier
    one stood in for has deployed nothing."""
    store(bed, text("back"))
    first = over(bed, begin(bed, "back"))["id"]
    reply = rolls_back(bed, first)
    assert (reply.status, reply.json()["code"]) == (404, "serve_no_previous"), reply
    cached = over(bed, begin(bed, "back"))["id"]
    reply = rolls_back(bed, cached)
    assert (reply.status, reply.json()["code"]) == (409, "pipe_rollback_none"), reply
    second = over(bed, begin(bed, "back", params={"limit": 8}))["id"]
    assert bed.page("back")["current"] == 2
    assert bed.argusd.call("POST", "/v1/users", {"name": "eve", "role": "user"}).status == 201
    eve = bed.argusd.call("POST", "/v1/tokens", {"user": "eve"}).json()["token"]
    assert rolls_back(bed, second, token=eve).status == 404 and bed.page("back")["current"] == 2
    env = {"PATH": os.environ["PATH"], "HOME": str(bed.home), "ARGUS_URL": bed.argusd.url, "LANG": "C"}
    env["ARGUS_TOKEN"] = bed.argusd.tokens["user"]
    cli = [PROGRAMS["argus"], "pipe", "rollback", second]
    said = subprocess.run(cli, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert said.returncode == 0 and f"run {second}: what it deployed goes back" in said.stdout, said
    bed.wait("back", lambda p: p["current"] == 1 and not p["wanted"], "version 1 has the traffic again")
    told = bed.argusd.get(f"/v1/events?kind=pipeline_rolled_back&object=pipeline/{second}/serve")["events"]
    assert [e["actor"] for e in told] == ["alice"]
    reply = rolls_back(bed, second)
    assert (reply.status, reply.json()["code"]) == (409, "pipe_rollback_past"), reply
    assert bed.page("back")["current"] == 1
    bed.argusd.call("DELETE", "/v1/services/back", token="user")


def lineage(bed, of):
    env = {"PATH": os.environ["PATH"], "HOME": str(bed.home), "ARGUS_URL": bed.argusd.url, "LANG": "C"}
    env["ARGUS_TOKEN"] = bed.argusd.tokens["user"]
    cli = [PROGRAMS["argus"], "model", "lineage", of, "-o", "json"]
    said = subprocess.run(cli, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert said.returncode == 0, said
    return json.loads(said.stdout)


def test_it_is_called_off_with_its_run(bed):
    bed.ray.settings(serve_sick=["held-v1", "held-v2"])
    store(bed, text("held"))
    run = begin(bed, "held")
    until(lambda: bed.page("held") and bed.page("held")["wanted"] == 1, "its version is being made ready")
    assert bed.argusd.call("POST", f"/v1/pipeline-runs/{run}:cancel", token="user").status == 202
    page = over(bed, run)
    assert page["state"] == "CANCELLED" and step_of(page)["state"] == "CANCELLED"
    bed.wait("held", lambda p: p["stopped"] and not replicas_of(p), "a first version that is called off holds nothing")
    # Somebody else's deploy in between, or a stop, is told.
    run = begin(bed, "held")
    until(lambda: bed.page("held")["wanted"] == 2, "its version is being made ready")
    bed.act("held", "stop")
    page = over(bed, run)
    assert page["state"] == "FAILED" and step_of(page)["reason"]["code"] == "pipe_deploy_off"
    assert step_of(page, "after")["state"] == "SKIPPED"
    bed.ray.settings(serve_sick=[])
    bed.argusd.call("DELETE", "/v1/services/held", token="user")


def test_what_is_kept_changes_where_it_is_said_and_a_project_does_not(bed):
    bed.serve(model="sums", name="told", keep="none")
    bed.ready("told", 1)
    pipe = text("told")
    store(bed, pipe)
    assert over(bed, begin(bed, "told"))["state"] == "SUCCEEDED" and bed.page("told")["keep"] == "cold"
    del pipe["steps"]["serve"]["with"]["keep"]
    store(bed, pipe, status=200)
    assert over(bed, begin(bed, "told"))["state"] == "SUCCEEDED" and bed.page("told")["keep"] == "cold"
    pipe["steps"]["serve"]["with"]["project"] = "elsewhere"
    store(bed, pipe, status=200)
    reason = step_of(over(bed, begin(bed, "told", force=True)))["reason"]
    assert (reason["code"], reason["args"]) == ("serve_other_project", {"service": "told", "project": "default"})
    bed.argusd.call("DELETE", "/v1/services/told", token="user")


def test_a_deploy_that_comes_to_nothing_leaves_the_service_as_it_was(bed):
    """Late, cancelled or failed: as many replicas as before, and stopped where it was."""
    bed.serve(model="sums", name="same", keep="cold")
    bed.ready("same", 1)
    bed.ray.settings(serve_sick=["same-v2", "same-v3"])
    pipe = text("same", timeout="2s", cache=False)
    pipe["steps"]["serve"]["with"]["replicas"] = 2
    store(bed, pipe)
    page = over(bed, begin(bed, "same"))
    assert step_of(page)["reason"]["code"] == "pipe_step_timeout"
    assert step_of(page)["left"]["before"] == {"replicas": 1, "stopped": False}
    page = bed.ready("same", 1)
    assert (page["replicas"], page["stopped"]) == (1, False)
    bed.act("same", "stop")
    del pipe["steps"]["serve"]["timeout"]
    store(bed, pipe, status=200)
    run = begin(bed, "same")
    bed.wait("same", lambda p: p["wanted"] == 3 and not p["stopped"], "its version is being made ready")
    assert bed.argusd.call("POST", f"/v1/pipeline-runs/{run}:cancel", token="user").status == 202
    over(bed, run)
    page = bed.page("same")
    assert (page["replicas"], page["stopped"], page["current"], page["wanted"]) == (1, True, 1, 0)
    bed.ray.settings(serve_failing=["same-v4", "same-v4-r2"], serve_sick=[])
    page = over(bed, begin(bed, "same"))
    assert step_of(page)["reason"]["code"] == "pipe_deploy_failed"
    page = bed.page("same")
    assert (page["replicas"], page["stopped"], page["current"]) == (1, True, 1)
    bed.wait("same", lambda p: not replicas_of(p), "it holds nothing")
    bed.ray.settings(serve_failing=[])
    bed.argusd.call("DELETE", "/v1/services/same", token="user")


def test_mistakes_are_told_before_anything_runs(bed):
    wrong = text("wrong")
    wrong["steps"]["serve"]["with"] = {"model": "sums", "replica": 2}
    said = store(bed, wrong, status=422)
    assert {p["code"] for p in said["problems"]} == {"pipe_with_key", "pipe_with_missing"}
    wrong = text("wrong")
    wrong["steps"]["after"]["with"]["entrypoint"] = ["echo", "${{ steps.serve.job }}"]
    assert store(bed, wrong, status=422)["problems"][0]["code"] == "pipe_ref_step"
    late = text("late", timeout="2s")
    late["steps"]["serve"]["with"]["gpus"] = 64
    store(bed, late)
    page = over(bed, begin(bed, "late"))
    assert step_of(page)["reason"]["code"] == "pipe_step_timeout"
    bed.wait("late", lambda p: p["stopped"] and not replicas_of(p), "what is too late holds nothing")
    bed.argusd.call("DELETE", "/v1/services/late", token="user")
    nobodys = text("nobodys")
    nobodys["steps"]["serve"]["with"]["model"] = "nosuch"
    store(bed, nobodys)
    assert step_of(over(bed, begin(bed, "nobodys")))["reason"]["code"] == "not_found"


def test_a_user_who_is_disabled_deploys_nothing(bed):
    go = bed.home / "go"
    pipe = text("away")
    held = {"workload": "ray", "entrypoint": f"until [ -e {go} ]; do sleep 0.1; done"}
    pipe["steps"]["first"] = {"with": held}
    pipe["steps"]["serve"]["needs"] = ["first"]
    store(bed, pipe)
    run = begin(bed, "away")

    def first_runs():
        job = step_of(run_of(bed, run), "first")["job"]
        return job and bed.argusd.job(job)["state"] == "RUNNING"

    until(first_runs, "the step before it runs")
    account = ("PATCH", "/v1/users/alice")
    assert bed.argusd.call(*account, {"disabled": True}, token="admin").status == 200
    go.touch()

    def ended():
        return bed.argusd.call("GET", f"/v1/pipeline-runs/{run}", token="admin").json()["ended_at"]

    until(ended, "the run is over")
    assert bed.argusd.call(*account, {"disabled": False}, token="admin").status == 200
    page = run_of(bed, run)
    assert step_of(page, "first")["state"] == "SUCCEEDED" and step_of(page)["state"] == "FAILED"
    assert step_of(page)["reason"]["code"] == "you_are_disabled" and bed.page("away") is None
    again = bed.argusd.call("POST", f"/v1/pipeline-runs/{run}:retry", token="user")
    assert again.status == 202, again
    assert over(bed, run)["state"] == "SUCCEEDED", "once enabled she goes on from there"
    bed.argusd.call("DELETE", "/v1/services/away", token="user")


def test_kill_9_at_any_moment(bed):
    """Killed again and again while it goes: one version, and none is lost."""
    store(bed, text("killed", cache=False))
    bed.ray.settings(serve_delay=1)
    for n in (1, 2):
        run = begin(bed, "killed")
        deadline = time.monotonic() + PATIENCE
        for _ in range(4):
            bed.argusd.kill9()
            bed.argusd.start()
        until(lambda run=run: run_of(bed, run)["ended_at"] or time.monotonic() > deadline, "it is over")
        page = over(bed, run)
        assert page["state"] == "SUCCEEDED" and step_of(page)["left"]["version"] == n, json.dumps(page, indent=1)
        assert [v["n"] for v in bed.page("killed")["versions"]] == list(range(n, 0, -1))
    bed.ray.settings(serve_delay=0.3)
