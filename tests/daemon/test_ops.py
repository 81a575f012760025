# SPDX-License-Identifier: Apache-2.0
"""Plans of what is dangerous, beside a fake Ray: who may make, see, approve and apply one; that it stands on one state
and on its time; that each step is looked at; and what a kill -9 in the middle leaves."""

import contextlib
import json
import os
import sqlite3
import subprocess

import pytest
import standin
from checkpoints import put_checkpoint
from fakeray import FakeRay
from holdremovals import held_removals
from preload import needs_compiler
from programs import PROGRAMS
from test_remedies import mender

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

NOBODY = {"host": "127.0.0.1", "port": 1}  # refuses at once
WAITS = {"nnodes": 9, "n_gpus_per_node": 4}  # more than there is: it waits for ever


def worker(name, ip):
    return {"name": name, "ip": ip, "resources": {"CPU": 8, "GPU": 4, "worker_node": 100, f"argus_node_{name}": 1000}}


HEAD = {"name": "head", "ip": "127.0.0.1", "head": True, "resources": {"CPU": 0}}
NODES = [HEAD, worker("w1", "127.0.0.2")]


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    home = tmp_path_factory.mktemp("ops")
    nodes = [*NODES, worker("w2", "127.0.0.3")]
    with FakeRay(nodes=nodes, state=home / "ray") as ray, Argusd(home, ray.url) as argusd:
        standin.make_world(argusd.root)
        for name, role in (("bob", "user"), ("eve", "admin")):
            assert argusd.call("POST", "/v1/users", {"name": name, "role": role}).status == 201
            argusd.tokens[name] = argusd.call("POST", "/v1/tokens", {"user": name}).json()["token"]
        yield argusd


def post(argusd, path, status, body=None, token="admin"):
    reply = argusd.call("POST", f"/v1/ops/{path}", body or {}, token=token)
    assert reply.status == status, reply
    return reply.json()


def plan(argusd, action, token="admin", status=201, **body):
    return post(argusd, action, status, body, token)


def apply(argusd, p, status=202, token="admin", **body):
    return post(argusd, f"plans/{p['id']}:apply?wait=60s", status, body, token)


def look(argusd, p, token="admin"):
    return argusd.get(f"/v1/ops/plans/{p['id']}", token=token)


def over(argusd, p):
    return until(lambda: (now := look(argusd, p))["state"] not in ("waiting", "applying") and now, "the plan is over")


def kinds(argusd, p):
    return [e["kind"] for e in argusd.events() if e.get("object") == f"plan/{p['id']}"]


def waiting(argusd, n=1, token="user"):
    return [argusd.submit("echo held", token=token, **WAITS) for _ in range(n)]


def cli(argusd, *args, code=0, token="admin", lang="C.UTF-8"):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens[token], "LANG": lang, "COLUMNS": "80"}
    got = subprocess.run([PROGRAMS["argus"], *args], env=env, capture_output=True, text=True, timeout=120)
    assert got.returncode == code, got
    return got


def test_a_plan_names_what_it_touches_and_does_nothing(w):
    gate = w.root / "common/gate"
    job = w.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done", n_gpus_per_node=2, timeout="3h")
    name = w.wait_state(job, "RUNNING")["nodes"][0]["name"]
    assert w.call("POST", "/v1/nodes", {"name": name, **NOBODY}).status == 201  # what runs there goes on
    p = plan(w, "drain_node", node=name, then="stop", deadline="10m")
    (row,) = p["jobs"]
    assert (row["job"], row["user"], row["fate"], row["gpus_here"]) == (job, "alice", "stopped", 2)
    assert (p["state"], p["users"], p["gpus"], p["target"], p["user"]) == ("waiting", ["alice"], 2, name, "admin")
    assert p["at_risk_gpu_hours"] == row["at_risk_gpu_hours"] > 0
    assert [(s["step"], s["state"], s["real"]) for s in p["steps"]] == [
        ("drain", "waiting", None), ("wait_empty", "waiting", None),
    ]  # fmt: skip
    assert p["steps"][0]["expected"]["text"] == f"node '{name}' takes no new job"
    assert p["things"] == [{"thing": f"node/{name}", "fate": "drained", "bytes": 0}]
    assert len(p["hash"]) == 64 and p["expires_at"] > p["created_at"] and p["difference"] == []
    assert w.get(f"/v1/nodes/{name}")["drain"] is None and w.job(job)["state"] == "RUNNING"
    assert plan(w, "drain_node", node=name, then="stop", deadline="10m")["hash"] == p["hash"]
    gate.write_text("")
    w.wait_over(job)
    (change,) = look(w, p)["difference"]
    assert (change["fact"], change["planned"], change["now"]) == (f"job/{job}", "RUNNING, attempt 1", None)
    refused = apply(w, p, 409)
    assert refused["code"] == "ops_state_changed" and f"job/{job}: RUNNING, attempt 1 -> none" in refused["detail"]
    assert "make a new plan" in refused["hint"]
    assert w.get(f"/v1/nodes/{name}")["drain"] is None and kinds(w, p) == ["ops_planned"]
    assert w.call("POST", f"/v1/nodes/{name}:remove", {"force": True}).status == 202
    until(lambda: not w.get(f"/v1/nodes/{name}")["registered"], "others' machines are used as they are")


def test_drain_and_take_away_step_by_step(w):
    assert w.call("POST", "/v1/nodes", {"name": "d1", "host": "127.0.0.1", "port": 2}).status == 201
    p = plan(w, "drain_node", node="d1")
    done = apply(w, p)
    assert done["state"] == "done" and done["applied_by"] == "admin" and done["ended_at"]
    assert [s["state"] for s in done["steps"]] == ["done", "done"]
    assert done["steps"][1]["real"]["text"] == "node 'd1' is offline, and 0 jobs hold something there"
    assert w.get("/v1/nodes/d1")["state"] == "offline"
    assert kinds(w, p) == ["ops_planned", "ops_applied", "ops_step_done", "ops_step_done", "ops_done"]
    step = [e for e in w.events() if e["kind"] == "ops_step_done" and e["object"] == f"plan/{p['id']}"][0]
    assert "expected: node 'd1' takes no new job; found: node 'd1' is " in step["text"]
    assert apply(w, p, 409)["code"] == "ops_was_applied"
    gone = apply(w, plan(w, "remove_node", node="d1"))
    assert (gone["state"], [s["step"] for s in gone["steps"]]) == ("done", ["remove"])
    assert w.call("GET", "/v1/nodes/d1").status == 404
    assert plan(w, "remove_node", node="d1", status=404)["code"] == "not_found"


def test_stop_many_by_name_and_by_filter(w):
    jobs = waiting(w, 2)
    other = waiting(w, token="bob")[0]
    p = plan(w, "stop_many", "user", jobs=jobs)
    assert {j["job"] for j in p["jobs"]} == set(jobs) and {j["fate"] for j in p["jobs"]} == {"stopped"}
    assert p["at_risk_gpu_hours"] == 0  # they hold nothing
    done = apply(w, p, token="user")
    assert done["state"] == "done" and done["steps"][0]["real"]["text"] == "2 of 2 jobs have ended"
    assert [w.job(j)["state"] for j in (*jobs, other)] == ["STOPPED", "STOPPED", "QUEUED"]
    by_filter = plan(w, "stop_many", user="bob")
    assert [j["job"] for j in by_filter["jobs"]] == [other]
    late = waiting(w, token="bob")[0]  # the filter means it as well: that is another state
    assert f"job/{late}: none -> QUEUED, attempt 0" in apply(w, by_filter, 409)["detail"]
    assert apply(w, plan(w, "stop_many", user="bob"))["state"] == "done"
    assert w.job(late)["state"] == "STOPPED"


def test_who_may(w):
    (hers,) = waiting(w)
    p = plan(w, "stop_many", "user", jobs=[hers])
    assert plan(w, "stop_many", "bob", 404, jobs=[hers])  # as if it were not there
    assert plan(w, "stop_many", "bob", 409, user="alice")["code"] == "ops_no_jobs"
    assert plan(w, "stop_many", "viewer", 403, jobs=[hers])
    for action in ("drain_node", "remove_node", "restart_ray_head"):
        assert plan(w, action, "user", 403)["type"].endswith(":forbidden")
    for token, status in ((None, 401), ("bob", 404), ("viewer", 200), ("user", 200), ("eve", 200)):
        assert w.call("GET", f"/v1/ops/plans/{p['id']}", token=token).status == status
        listed = w.call("GET", "/v1/ops/plans?waiting=1", token=token)
        assert token is None or (p["id"] in [x["id"] for x in listed.json()["plans"]]) == (status == 200)
    assert apply(w, p, 404, "bob") and apply(w, p, 403, "viewer")
    assert post(w, f"plans/{p['id']}:approve", 403, token="user")
    assert post(w, f"plans/{p['id']}:approve", 403, token="viewer")
    seen = {t: [e for e in w.get("/v1/events?limit=1000", token=t)["events"] if e.get("object") == f"plan/{p['id']}"]
            for t in ("user", "bob", "viewer")}  # fmt: skip
    assert seen["user"] and seen["viewer"] and not seen["bob"]
    assert apply(w, p, token="eve")["state"] == "done"  # an admin may


def test_a_lesser_token_of_an_admin_is_no_admin(w):
    (hers,) = waiting(w)
    lesser = w.call("POST", "/v1/tokens", {"user": "eve", "role": "user"}).json()["token"]
    assert plan(w, "stop_many", lesser, 409, user="alice")["code"] == "ops_no_jobs"
    assert plan(w, "stop_many", lesser, 403, jobs=[hers])
    p = plan(w, "stop_many", "eve", jobs=[hers])  # nor by a plan that the admin's own token made
    assert apply(w, p, 403, lesser) and w.job(hers)["state"] == "QUEUED"
    assert look(w, p)["state"] == "waiting" and apply(w, p, token="eve")["state"] == "done"


def test_who_is_no_admin_any_more_cleans_nothing_up(w):
    t = trained(w)
    assert w.call("POST", "/v1/users", {"name": "frank", "role": "admin"}).status == 201
    w.tokens["frank"] = w.call("POST", "/v1/tokens", {"user": "frank"}).json()["token"]
    p = plan(w, "cleanup_job_artifacts", "frank", job=t.id)
    assert w.call("PATCH", "/v1/users/frank", {"role": "user"}).status == 200
    failed = apply(w, p, token="frank")
    assert failed["state"] == "failed" and t.steps() == [10, 20, 30, 40]
    assert failed["steps"][0]["real"]["text"].startswith("0 of 2 checkpoints are gone")


def test_what_chose_the_jobs_is_the_target(w):
    jobs = waiting(w, 5)
    one, many = plan(w, "stop_many", jobs=jobs[:1]), plan(w, "stop_many", jobs=jobs)
    assert one["target"] == f"job/{jobs[0]}"
    assert many["target"] == "".join(f"job/{job}," for job in jobs[:3]) + "+2"  # the list of plans stays small
    both = plan(w, "stop_many", jobs=jobs[:1], user="alice")
    assert both["target"] == f"job/{jobs[0]},user/alice"
    listed = {p["id"]: p["target"] for p in w.get("/v1/ops/plans?waiting=1")["plans"]}
    assert all(listed[p["id"]] == p["target"] for p in (one, many, both))
    assert look(w, one)["difference"] == []  # it is no part of the state that is compared
    assert apply(w, many)["state"] == "done"


def test_two_stops_do_not_wait_for_each_other(w):
    """A user's plan that takes long does not hold up the admin's."""
    gate = w.root / "common/gate-of-stops"
    job = w.submit(f"trap '' TERM; echo up; while [ ! -e {gate} ]; do sleep 0.1; done", stop_grace="1h")
    w.wait_state(job, "RUNNING")
    until(lambda: w.log_file(job).read_text() == "up\n", "the trap is set")
    hers = plan(w, "stop_many", "user", jobs=[job])
    assert post(w, f"plans/{hers['id']}:apply", 202, token="user")["state"] == "applying"
    w.wait_state(job, "STOPPING")
    mine = plan(w, "stop_many", jobs=[job])
    assert mine["target"] == hers["target"]
    assert post(w, f"plans/{mine['id']}:apply", 202)["state"] == "applying"
    gate.write_text("")
    assert over(w, hers)["state"] == over(w, mine)["state"] == "done"


def test_what_cannot_be_planned(w):
    assert plan(w, "drain_node", status=422, then="stop")
    assert plan(w, "drain_node", status=422, node="w1", then="never")
    assert plan(w, "drain_node", status=404, node="w9")
    assert plan(w, "drain_node", status=409, node="w2")["code"] == "node_not_ours"
    assert plan(w, "drain_node", status=400, node="w1", dry_run=False)["code"] == "ops_plans_only"
    assert plan(w, "stop_many", status=400)["code"] == "filter_empty"
    assert plan(w, "stop_many", status=404, jobs=["none"])["code"] == "ops_job_not_live"
    assert plan(w, "restart_ray_head", status=409)["code"] == "ops_head_not_ours"
    assert plan(w, "restart_ray_head", status=404, cluster="other")["code"] == "no_such_cluster"
    assert plan(w, "cleanup_job_artifacts", status=404, job="none")
    assert w.call("POST", "/v1/ops/format_disk", {}).status == 404
    assert w.call("GET", "/v1/ops/plans/plan-none").status == 404
    (job,) = waiting(w)
    assert plan(w, "stop_many", status=422, jobs=[job] * 1001)["code"] == "ops_too_many_jobs"  # named again and again
    made = [w.call("POST", "/v1/ops/stop_many", {"jobs": [job]}, token="user") for _ in range(21)]
    assert made[-1].status == 429 and made[-1].json()["code"] == "ops_full" and made[0].status == 201
    w.stop_job(job)


def is_looked_at(argusd, job):
    """Does argusd still look at its checkpoints by itself? By the store's row."""
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db:
        row = db.execute("SELECT body FROM entry WHERE kind = 'checkpoints' AND name = ?", (job,)).fetchone()
    return json.loads(row[0])["open"]


def trained(argusd):
    """Over, with four checkpoints, of which its keep_last wants two."""
    t = standin.Training(argusd, checkpoint={"keep_last": 2})
    t.save(10, 20)
    t.order("exit", 0)
    assert argusd.wait_over(t.id)["state"] == "SUCCEEDED"
    until(lambda: not is_looked_at(argusd, t.id), "the look that its end owes was made")
    for step in (30, 40):
        put_checkpoint(t.kept, step)
    return t


def test_a_cleanup_leaves_the_newest_and_says_so(w):
    t = trained(w)
    p = plan(w, "cleanup_job_artifacts", "eve", job=t.id)
    fates = {x["thing"]: x["fate"] for x in p["things"]}
    assert fates["checkpoint/10"] == fates["checkpoint/20"] == "removed" and fates["checkpoint/40"] != "removed"
    assert t.steps() == [10, 20, 30, 40] and all(x["bytes"] > 0 for x in p["things"])
    assert p["steps"][0]["expected"]["text"] == "2 checkpoints are gone, and step 40 is there"
    done = apply(w, p, token="eve")
    assert done["state"] == "done" and t.steps() == [30, 40]
    assert done["steps"][0]["real"]["text"] == "2 of 2 checkpoints are gone; the newest verified one is of step 40"


def test_a_look_that_is_not_as_expected_fails_the_plan(w):
    """What the plan promised to remove is named by a new job in the last moment: it stays, and that is told."""
    t = trained(w)
    p = plan(w, "cleanup_job_artifacts", "eve", job=t.id)
    user = w.post({**standin.SPEC, "nnodes": 9, "n_gpus_per_node": 4, "resume": f"{t.id}@10"}, "?no_trial=1",
                  token="user")  # fmt: skip
    assert user.status == 201, user
    failed = apply(w, p, token="eve")
    assert failed["state"] == "failed" and t.steps() == [10, 30, 40]
    assert failed["steps"][0]["real"]["text"].startswith("1 of 2 checkpoints are gone")
    assert kinds(w, p)[-2:] == ["ops_step_failed", "ops_failed"]
    got = cli(w, "ops", "show", p["id"])
    assert "clean_checkpoints: failed" in got.stdout
    w.stop_job(user.json()["id"])


def test_the_command_line(w):
    jobs = waiting(w, 2)
    made = cli(w, "ops", "plan", "stop_many", "--jobs", ",".join(jobs), "-o", "json")
    p = json.loads(made.stdout)
    shown = cli(w, "ops", "show", p["id"])
    assert jobs[0] in shown.stdout and "1. stop_jobs: waiting" in shown.stdout
    assert "expected: 2 jobs have ended" in shown.stdout and "2 jobs, 0.0 GPU-hours at risk" in shown.stderr
    assert f"next: argus ops apply {p['id']}" in shown.stderr
    assert all(len(line) <= 80 for line in shown.stdout.splitlines())
    assert p["id"] in cli(w, "ops", "ls", "--waiting").stdout
    assert "预期：2 个作业已结束" in cli(w, "ops", "show", p["id"], lang="zh_CN.UTF-8").stdout
    done = cli(w, "ops", "apply", p["id"], "--wait")
    assert "1. stop_jobs: done" in done.stdout and "found:    2 of 2 jobs have ended" in done.stdout
    again = cli(w, "ops", "apply", p["id"], code=5)
    assert "does not wait any more: it is done" in again.stderr
    assert p["id"] not in cli(w, "ops", "ls", "--waiting").stdout


def ids(w, *words, **more):
    return cli(w, "ops", "ls", "-q", *words, **more).stdout.split()


def test_the_command_line_finds_a_plan(w):
    jobs = waiting(w, 2)
    quiet = cli(w, "ops", "plan", "stop_many", "--jobs", jobs[0], "-q")
    first = quiet.stdout.strip()
    assert quiet.stdout == f"{first}\n" and look(w, {"id": first})["target"] == f"job/{jobs[0]}"
    theirs = plan(w, "stop_many", jobs=jobs[1:])["id"]
    again = plan(w, "stop_many", jobs=jobs[:1])["id"]
    mine = ("--action", "stop_many", "--target", f"job/{jobs[0]}")
    assert ids(w, "--waiting", *mine) == [again, first]  # the newest first
    assert {again, first, theirs} <= set(ids(w)) and theirs in ids(w, "--action", "stop_many")
    assert not ids(w, "--action", "drain_node", "--target", f"job/{jobs[0]}")
    shown = json.loads(cli(w, "ops", "ls", "-q", *mine, "-o", "json").stdout)
    assert [p["id"] for p in shown["plans"]] == [again, first]
    assert cli(w, "ops", "ls", *mine).stdout.count("plan-") == 2
    assert apply(w, {"id": again})["state"] == "done"
    assert ids(w, "--waiting", *mine) == [first] and ids(w, *mine) == [again, first]
    none = cli(w, "ops", "ls", "-q", "--target", "job/none")
    assert none.stdout == "" and "no plan is like that" in none.stderr
    assert "the id of the plan is empty" in cli(w, "ops", "apply", "", code=2).stderr
    assert "计划的 id 为空" in cli(w, "ops", "apply", "", code=2, lang="zh_CN.UTF-8").stderr
    w.stop_job(jobs[1])


def test_the_command_line_knows_each_action(w):
    actions = [p.removeprefix("/v1/ops/") for p in w.get("/v1/openapi.json")["paths"] if p.startswith("/v1/ops/")]
    actions = {action for action in actions if not action.startswith("plans")}
    assert "drain_node" in actions
    for action in actions:
        cli(w, "ops", "ls", "--action", action)
    cli(w, "ops", "ls", "--action", "format_disk", code=2)


# ---- two people, and time ----


def test_two_people(tmp_path):
    with FakeRay() as ray, Argusd(tmp_path, ray.url, more="ops: {approvals: 2}") as a:
        for name in ("eve", "dan"):
            assert a.call("POST", "/v1/users", {"name": name, "role": "admin"}).status == 201
            a.tokens[name] = a.call("POST", "/v1/tokens", {"user": name}).json()["token"]
        (job,) = waiting(a)
        p = plan(a, "stop_many", jobs=[job])
        approve = f"plans/{p['id']}:approve"
        assert (p["needs"], p["approvals"]) == (2, [])
        assert apply(a, p, 409)["code"] == "ops_needs_approval"
        assert post(a, approve, 403)["code"] == "ops_own_approval"
        for _ in range(2):  # one person counts once
            assert [x["user"] for x in post(a, approve, 200, token="eve")["approvals"]] == ["eve"]
        assert apply(a, p, 409)["detail"].startswith(f"plan '{p['id']}' has 1 of 2 approvals")
        assert "next, by another admin: argus ops approve" in cli(a, "ops", "show", p["id"]).stderr
        a.kill9()
        a.start()  # what was approved stays so
        assert "next: argus ops apply" in cli(a, "ops", "approve", p["id"], token="dan").stderr
        assert apply(a, p)["state"] == "done" and a.job(job)["state"] == "STOPPED"
        assert kinds(a, p)[:4] == ["ops_planned", "ops_approved", "ops_approved", "ops_applied"]


def test_an_old_plan_is_not_applied(tmp_path):
    with FakeRay() as ray, Argusd(tmp_path, ray.url, more="ops: {expires: 1s}") as a:
        (job,) = waiting(a)
        p = plan(a, "stop_many", jobs=[job])
        until(lambda: look(a, p)["state"] == "expired", "it expires")
        refused = apply(a, p, 409)
        assert refused["code"] == "ops_expired" and refused["hint"]
        assert post(a, f"plans/{p['id']}:approve", 409)["code"] == "ops_expired"
        assert a.get("/v1/ops/plans?waiting=1")["plans"] == [] and a.job(job)["state"] == "QUEUED"


# ---- kill -9 ----


def test_a_restart_of_the_head_ends_no_job_that_may_run_again(tmp_path):
    """Its machine is to be empty at once, while it still stops: it goes back to the queue all the same."""
    with mender(tmp_path) as (a, _):
        head = "head: {managed: true, host: 127.0.0.1, ssh: {host: 127.0.0.1, port: 1}}"
        a.write_config()
        a.config.write_text(a.config.read_text().replace(f"temp_dir: {a.temp}", f"temp_dir: {a.temp}, {head}"))
        a.in_from_now()
        gate = a.root / "common/gate"
        slow = f"trap 'while [ ! -e {gate} ]; do sleep 0.1; done; exit 0' TERM; while :; do sleep 0.1; done"
        job = a.submit(slow, n_gpus_per_node=1, pool="x", restart={"max": 3})
        a.wait_state(job, "RUNNING")
        p = plan(a, "restart_ray_head", force=True)
        assert [(j["job"], j["fate"]) for j in p["jobs"]] == [(job, "restarted")]
        post(a, f"plans/{p['id']}:apply", 202, {"confirm": "default"})
        until(lambda: a.told("node_drain_due"), "its machine is to be empty")
        assert a.job(job)["state"] == "STOPPING"
        gate.write_text("")
        until(lambda: a.job(job)["state"] == "QUEUED", "it waits to run again")
        assert a.job(job)["restart"]["preemptions"] == 1


def test_a_plan_under_way_goes_on_and_no_step_is_done_twice(tmp_path):
    with FakeRay(nodes=NODES, state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as a:
        gate = a.root / "common/gate"
        job = a.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done", n_gpus_per_node=1)
        a.wait_state(job, "RUNNING")
        assert a.call("POST", "/v1/nodes", {"name": "w1", **NOBODY}).status == 201
        p = plan(a, "drain_node", node="w1")  # then: wait
        assert post(a, f"plans/{p['id']}:apply", 202)["state"] == "applying"
        now = look(a, p)
        assert [s["state"] for s in now["steps"]] == ["done", "running"]
        assert now["steps"][1]["real"]["text"].endswith("and 1 job holds something there")
        second = plan(a, "remove_node", node="w1", force=True)
        assert apply(a, second, 409)["code"] == "ops_under_way"
        a.kill9()
        a.start()
        assert look(a, p)["state"] == "applying"
        gate.write_text("")
        assert over(a, p)["state"] == "done"
        assert kinds(a, p) == ["ops_planned", "ops_applied", "ops_step_done", "ops_step_done", "ops_done"]
        acts = [e["kind"] for e in a.events() if e.get("object") == "node/w1" and e["actor"] == "admin"]
        assert acts == ["node_added", "node_offline"]
        until(lambda: a.job(job)["state"] == "SUCCEEDED", "the job ran to its end")


@pytest.mark.nightly  # three starts of argusd and a training
@needs_compiler
def test_a_removal_that_was_under_way_is_told_as_broken_off(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as a:
        standin.make_world(a.root)
        t = trained(a)
        a.stop()
        a.env = held_removals(tmp_path)
        a.start()
        p = plan(a, "cleanup_job_artifacts", job=t.id)
        assert post(a, f"plans/{p['id']}:apply", 202)["state"] == "applying"
        until((tmp_path / "held").exists, "a removal has begun")
        a.kill9()
        a.env = {}
        a.start()
        broken = look(a, p)
        assert (broken["state"], broken["steps"][0]["state"]) == ("broken_off", "broken_off")
        assert broken["steps"][0]["real"]["text"].endswith("in the middle of this step, which is not done twice")
        assert kinds(a, p)[-2:] == ["ops_step_broken_off", "ops_broken_off"]
        assert apply(a, p, 409)["code"] == "ops_was_applied"
        rest = plan(a, "cleanup_job_artifacts", job=t.id)
        assert apply(a, rest)["state"] == "done" and t.steps() == [30, 40]


def test_who_takes_the_node_back_ends_the_plan(tmp_path):
    with FakeRay(nodes=NODES, state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as a:
        gate = a.root / "common/gate"
        job = a.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done", n_gpus_per_node=1)
        a.wait_state(job, "RUNNING")
        assert a.call("POST", "/v1/nodes", {"name": "w1", **NOBODY}).status == 201
        p = plan(a, "drain_node", node="w1")
        post(a, f"plans/{p['id']}:apply", 202)
        assert a.call("POST", "/v1/nodes/w1:undrain").status == 202
        failed = over(a, p)
        assert failed["state"] == "failed" and failed["steps"][1]["state"] == "failed"
        gate.write_text("")
        a.wait_over(job)


def test_the_restart_of_a_head(tmp_path):
    """No machine is behind it here, so it does not come up again: how far it was, a kill -9 does not change."""
    with FakeRay(nodes=NODES, state=tmp_path / "ray") as ray:
        ssh = "ssh: {host: 127.0.0.1, port: 1}"
        head = f'ray: {{address: "{ray.url}", head: {{managed: true, host: 127.0.0.1, {ssh}}}}}'
        a = Argusd(tmp_path, ray.url)
        a.write_config = lambda: a.config.write_text(
            f"shared_root: {a.root}\nlisten: 127.0.0.1:{a.port}\nstate_dir: {a.state_dir}\n{head}\n"
            f"shepherd: {PROGRAMS['argus-shepherd']}\n"
        )
        with a:
            stays = a.submit("sleep 600", n_gpus_per_node=1, restart={"max": 3})
            ends = a.submit("sleep 600", n_gpus_per_node=1, restart={"max": 0})
            for job in (stays, ends):
                a.wait_state(job, "RUNNING")
            refused = plan(a, "restart_ray_head", status=409)
            assert refused["code"] == "ops_head_has_jobs" and "2 jobs run" in refused["detail"]
            p = plan(a, "restart_ray_head", force=True)
            fates = {j["job"]: j["fate"] for j in p["jobs"]}
            assert fates == {stays: "restarted", ends: "stopped"} and p["confirm"] == "default"
            assert apply(a, p, 409)["detail"] == "this has to be confirmed: send 'confirm: default' with it"
            post(a, f"plans/{p['id']}:apply", 202, {"confirm": "default"})
            until(lambda: [s["state"] for s in look(a, p)["steps"]] == ["done", "running", "waiting"], "it is down")
            assert a.job(ends)["state"] == "STOPPED"
            assert a.job(stays)["restart"]["preemptions"] == 1 and a.job(stays)["state"] != "STOPPED"
            before = kinds(a, p)
            a.kill9()
            a.start()
            until(lambda: a.get("/v1/clusters")["clusters"][0]["head"]["state"] == "pending", "the head is wanted")
            now = look(a, p)
            assert [s["state"] for s in now["steps"]] == ["done", "running", "waiting"] and kinds(a, p) == before
            assert now["steps"][1]["real"]["text"].startswith("the head is pending; ")
            a.stop_job(stays)
