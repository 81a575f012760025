# SPDX-License-Identifier: Apache-2.0
"""The queue as people use it: hold, release, priority, why, stop of many, and many who submit at once."""

import concurrent.futures

import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

PATIENT = "echo up; exec tail -f /dev/null"
WHOLE = {"nnodes": 2, "n_gpus_per_node": 4}  # all that the fake Ray has
NEVER = {"nnodes": 9, "n_gpus_per_node": 4}


@pytest.fixture
def argusd(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as a:
        a.ray = ray
        until(lambda: dry_run(a)["placement"], "argusd has seen Ray and the shared root")
        yield a


def change(argusd, job, verb, token="admin", **body):
    return argusd.call("POST", f"/v1/jobs/{job}:{verb}", body or None, token=token)


def why(argusd, job):
    return argusd.get(f"/v1/jobs/{job}/why")


def waiting(argusd):
    rows = sorted(argusd.all_jobs("&state=QUEUED"), key=lambda j: j["position"])
    return [j["id"] for j in rows]


def full(argusd):
    job = argusd.submit(PATIENT, **WHOLE)
    argusd.wait_state(job, "RUNNING")
    return job


# ---- hold, release, priority ----


def test_a_held_job_waits_until_it_is_released(argusd):
    holder = full(argusd)
    held, other = (argusd.submit(f"echo {n}", **WHOLE) for n in ("held", "other"))
    reply = change(argusd, held, "hold", token="user")
    assert (reply.status, reply.json()["flags"], reply.json()["held_by"]) == (200, ["HELD"], "alice")
    assert change(argusd, held, "hold", token="user").status == 200
    assert why(argusd, held)["code"] == "held"
    argusd.restart()
    argusd.stop_job(holder)
    assert argusd.wait_over(other)["state"] == "SUCCEEDED"  # it was behind the one that is held
    assert argusd.job(held)["state"] == "QUEUED"
    assert change(argusd, held, "release", token="user").json()["flags"] == []
    assert argusd.wait_over(held)["state"] == "SUCCEEDED"
    assert [k for k in argusd.kinds(held) if k in ("held", "released")] == ["held", "released"]


def test_who_may_hold_and_what_can_be_held(argusd):
    running = full(argusd)
    mine = argusd.submit("echo x", **WHOLE)
    assert change(argusd, running, "hold").status == 409
    assert "RUNNING" in change(argusd, running, "hold").json()["detail"]
    assert change(argusd, mine, "hold", token="admin").status == 200
    reply = change(argusd, mine, "release", token="user")
    assert (reply.status, "root" in reply.body.decode() or "admin" in reply.body.decode()) == (403, True)
    assert change(argusd, mine, "release", token="admin").status == 200
    argusd.stop_job(mine)
    assert change(argusd, mine, "hold").status == 409
    theirs = argusd.submit("echo x", token="admin", **WHOLE)
    assert change(argusd, theirs, "hold", token="user").status in (403, 404)
    assert change(argusd, theirs, "hold", token="viewer").status == 403


def test_priority_changes_the_order(argusd):
    holder = full(argusd)
    first, second, third = (argusd.submit(f"echo {n}", **WHOLE) for n in range(3))
    assert waiting(argusd) == [first, second, third]
    assert change(argusd, third, "priority", priority=90).json()["priority"] == 90
    assert waiting(argusd) == [third, first, second]
    assert change(argusd, first, "priority", token="user", priority=10).status == 200
    assert waiting(argusd) == [third, second, first]
    argusd.restart()
    assert waiting(argusd) == [third, second, first]
    for bad in ({"priority": 101}, {"priority": "high"}, {"prio": 5}, {}):
        reply = argusd.call("POST", f"/v1/jobs/{first}:priority", bad)
        assert reply.status == 422, reply
    changed = [e for e in argusd.events(third) if e["kind"] == "priority"]
    assert [e["text"] for e in changed] == ["priority 90, it was 50"]
    argusd.stop_job(holder)
    for job in (first, second, third):
        assert argusd.wait_over(job)["state"] == "SUCCEEDED"
    starts = {j: argusd.job(j)["started_at"] for j in (first, second, third)}
    assert starts[third] < starts[second] < starts[first]


# ---- why ----


def test_why_in_every_state(argusd):
    holder = full(argusd)
    waits, large = argusd.submit("echo x", n_gpus_per_node=4), argusd.submit("echo x", **NEVER)
    seen = why(argusd, waits)
    assert (seen["state"], seen["code"], seen["position"]) == ("QUEUED", "waiting_for_gpus", 1)
    assert seen["text"]
    assert why(argusd, large)["code"] == "pool_too_small"
    seen = why(argusd, holder)
    assert (seen["state"], seen["code"], seen["position"], seen["hint"]) == ("RUNNING", "running", None, None)
    argusd.stop_job(holder)
    assert argusd.wait_over(holder)["state"] == "STOPPED"
    assert why(argusd, holder)["code"] == "stopped_by_user"
    assert argusd.wait_over(waits)["state"] == "SUCCEEDED"
    assert why(argusd, waits)["code"] == "succeeded"
    failed = argusd.submit("exit 3")
    argusd.wait_over(failed)
    assert (why(argusd, failed)["state"], bool(why(argusd, failed)["text"])) == ("FAILED", True)


def test_why_names_each_node_and_what_has_to_end(argusd):
    holder = argusd.submit(PATIENT, n_gpus_per_node=4, timeout="2h")
    argusd.wait_state(holder, "RUNNING")
    at = argusd.job(holder)["nodes"][0]["name"]
    waits, large = argusd.submit("echo x", **WHOLE), argusd.submit("echo x", nnodes=1, n_gpus_per_node=9)
    seen = why(argusd, waits)
    nodes = {n["name"]: n for n in seen["nodes"]}
    assert {n["code"] for n in nodes.values()} == {"look_gpus", "look_serves"} and len(nodes) == 2
    assert (nodes[at]["code"], nodes[at]["free"], nodes[at]["needs"]) == ("look_gpus", 0, 4)
    assert nodes[at]["until"] and "0 of 4 GPUs are free" in nodes[at]["text"]
    assert all(n["planned"] for n in nodes.values())
    (end,) = seen["frees"]
    assert (end["job"], end["user"], end["gpus"], end["leaves"]) == (holder, "alice", 4, False)
    assert end["at"] == nodes[at]["until"] and seen["promise"] >= end["at"]
    assert {n["code"] for n in why(argusd, large)["nodes"]} == {"look_small"}
    said = argusd.call("GET", f"/v1/jobs/{waits}/why", **{"Accept-Language": "zh"}).json()
    assert "空闲 0 块" in next(n["text"] for n in said["nodes"] if n["name"] == at)
    stranger = argusd.call("GET", f"/v1/jobs/{waits}/why", token="viewer").json()
    assert stranger["frees"][0]["job"] in (holder, None)
    runs = why(argusd, holder)
    assert (runs["nodes"], runs["frees"], runs["promise"]) == ([], [], None)


# ---- change ----


def test_a_job_that_waits_is_changed(argusd):
    holder = argusd.submit(PATIENT, n_gpus_per_node=4)
    argusd.wait_state(holder, "RUNNING")
    wide, behind = argusd.submit("echo wide", **WHOLE), argusd.submit("echo behind", n_gpus_per_node=9)
    plan = argusd.call("POST", f"/v1/jobs/{wide}:change?dry_run=1&no_trial=1", {"nnodes": 1}, token="user").json()
    assert plan["dry_run"] and plan["placement"]["nodes"] and plan["demand"]["gpus"] == 4
    assert plan["changes"] == [{"key": "nnodes", "old": "2", "new": "1"}]
    assert argusd.job(wide)["nnodes"] == 2, "a dry run changes nothing"
    for token, body, status, says in (
        ("user", {}, 400, "nothing is to be changed"),
        ("user", {"nnodes": 0}, 422, "nnodes"),
        ("user", {"entrypoint": "rm"}, 400, "entrypoint"),
        ("viewer", {"nnodes": 1}, 403, ""),
    ):
        reply = argusd.call("POST", f"/v1/jobs/{wide}:change", body, token=token)
        assert (reply.status, says in reply.body.decode()) == (status, True), reply
    assert argusd.call("POST", f"/v1/jobs/{holder}:change", {"nnodes": 1}).status == 409
    reply = argusd.call("POST", f"/v1/jobs/{behind}:change", {"pool": "a100", "timeout": "90m"}, token="user")
    assert (reply.status, reply.json()["id"]) == (200, behind)
    change(argusd, wide, "hold")
    reply = argusd.call("POST", f"/v1/jobs/{wide}:change", {"nnodes": 1, "n_gpus_per_node": 2}, token="admin")
    assert reply.status == 200
    argusd.restart()  # it is on disk: row and spec
    job = argusd.job(behind)
    assert (job["pool"], job["resolved_spec"]["timeout"], job["state"]) == ("a100", "5400s", "QUEUED")
    assert [j["id"] for j in argusd.get("/v1/jobs?all=1&pool=a100")["jobs"]] == [behind]
    job = argusd.job(wide)
    assert (job["gpus"], job["resolved_spec"]["nnodes"], job["user"]) == (2, 1, "alice")
    (event,) = (e for e in argusd.events(wide) if e["kind"] == "change")
    assert (event["actor"], event["text"]) == ("admin", "waits with a changed spec: nnodes, n_gpus_per_node")
    assert {c["key"]: c["new"] for c in event["data"]} == {"nnodes": "1", "n_gpus_per_node": "2"}
    change(argusd, wide, "release")
    assert len(argusd.wait_over(wide)["attempts"]) == 1 and argusd.job(wide)["state"] == "SUCCEEDED"
    argusd.stop_job(holder)
    argusd.stop_job(behind)


def test_a_change_says_who_would_wait_longer(argusd):
    """Runs of a known length, so that starts can be foreseen."""
    for _ in range(6):
        argusd.wait_over(argusd.submit("timeout 1 tail -f /dev/null; true", **WHOLE))
    holder = full(argusd)
    first, second = (argusd.submit("echo x", timeout="10h", **WHOLE) for _ in range(2))
    for job in (first, second):
        argusd.wait_job(job, lambda v: v["eta"], "is foreseen")
    plan = argusd.call("POST", f"/v1/jobs/{second}:change?dry_run=1&no_trial=1", {"priority": 90}).json()
    assert plan["before"]["p50"] and plan["eta"]["p50"] and plan["eta"]["p50"] <= plan["before"]["p50"]
    assert isinstance(plan["others"], list)
    argusd.stop_job(holder)
    for job in (first, second):
        argusd.stop_job(job)


def test_another_reason_wakes_who_waits_for_news(argusd):
    holder = full(argusd)
    first, second = (argusd.submit("echo x", **WHOLE) for _ in range(2))
    argusd.wait_job(second, lambda v: v["position"] == 2, "is second")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        tag = argusd.call("GET", f"/v1/jobs/{second}").headers["ETag"]
        news = pool.submit(argusd.call, "GET", f"/v1/jobs/{second}?wait=60s", If_None_Match=tag)
        change(argusd, first, "hold")
        argusd.stop_job(first)
        reply = news.result()
    assert (reply.status, reply.json()["position"], reply.json()["state"]) == (200, 1, "QUEUED")
    argusd.stop_job(second)
    argusd.stop_job(holder)


# ---- when ----


def test_starts_are_foreseen_from_what_was_learnt(argusd):
    """Runs of the same kind ended before; after a restart that is still known."""
    for _ in range(6):
        argusd.wait_over(argusd.submit("timeout 1 tail -f /dev/null; true", **WHOLE))
    holder = full(argusd)
    argusd.restart()
    jobs = [argusd.submit("echo x", **WHOLE) for _ in range(3)]
    for job in jobs:
        argusd.wait_job(job, lambda v: v["eta"], "is foreseen")
    rows = sorted(argusd.get("/v1/jobs?state=QUEUED")["jobs"], key=lambda j: j["position"])
    assert all(j["queued_at"] < j["eta"]["p50"] <= j["eta"]["p90"] for j in rows)
    assert [j["eta"]["p50"] for j in rows] == sorted(j["eta"]["p50"] for j in rows)
    until(lambda: why(argusd, jobs[0])["eta"] == argusd.job(jobs[0])["eta"], "both tell the same forecast")
    assert dry_run(argusd, **WHOLE)["eta"]["p50"] >= rows[-1]["eta"]["p50"]
    argusd.stop_job(holder)
    for job in jobs:
        assert argusd.wait_over(job)["eta"] is None


# ---- dry runs ----


def dry_run(argusd, **keys):
    reply = argusd.post(Argusd.spec("echo x", **keys), "?dry_run=1", token="user")
    assert reply.status == 200, reply
    return reply.json()


def test_a_dry_run_says_where_it_would_run_or_why_not(argusd):
    plan = dry_run(argusd, n_gpus_per_node=2, project="default")
    assert plan["argv"] == ["/bin/sh", "-c", "echo x"]
    (node,) = plan["placement"]["nodes"]
    assert (len(node["gpu_ids"]), plan["placement"]["driver_node"], plan["why"]) == (2, node["name"], None)
    used = plan["quota"]["project"]
    assert (used["name"], used["gpus_used"], used["gpus_after"]) == ("default", 0, 2)
    assert plan["quota"]["user"]["name"] == "alice"
    checks = {c["code"]: c["ok"] for c in plan["checks"]}
    assert list(checks) == ["check_spec", "check_code", "check_data", "check_secrets", "check_fit", "check_quota",
                            "check_space"] and all(checks.values())  # fmt: skip
    job = argusd.submit("exec tail -f /dev/null", n_gpus_per_node=2)  # it told the truth
    assert argusd.wait_state(job, "RUNNING")["nodes"] == plan["placement"]["nodes"]
    holder = argusd.submit(PATIENT, n_gpus_per_node=4)
    argusd.wait_state(holder, "RUNNING")
    large = dry_run(argusd, n_gpus_per_node=200)
    assert [c["code"] for c in large["checks"] if not c["ok"]] == ["check_fit"] and large["problems"]
    plan = dry_run(argusd, n_gpus_per_node=4)
    assert (plan["placement"], plan["why"]["code"], plan["why"]["position"]) == (None, "waiting_for_gpus", 1)
    assert plan["quota"]["user"]["gpus_used"] == 6
    assert argusd.get("/v1/jobs?state=QUEUED")["jobs"] == []
    assert not (argusd.root / "jobs" / "dry-run").exists()
    for j in (job, holder):
        argusd.stop_job(j)


def test_a_dry_run_without_ray(argusd):
    assert dry_run(argusd)["placement"]["nodes"][0]["gpu_ids"] == []
    argusd.ray.listen(False)
    until(lambda: argusd.get("/readyz")["ray"] == "away", "argusd sees it")
    plan = dry_run(argusd)
    assert (plan["placement"], plan["why"]["code"]) == (None, "ray_unreachable")


def test_require_fit_names_the_largest_size(argusd):
    def refused(**keys):
        reply = argusd.post(Argusd.spec("echo x", **keys), "?require_fit=1")
        assert (reply.status, reply.json()["code"]) == (422, "pool_too_small")
        return reply.json()["detail"]

    assert "at most nnodes: 2 with n_gpus_per_node: 4" in refused(nnodes=3, n_gpus_per_node=4)
    assert "not even one node with 5 GPUs" in refused(n_gpus_per_node=5)


# ---- leases ----


def test_slots_are_named_and_outlive_a_restart(argusd):
    first = argusd.submit(PATIENT, n_gpus_per_node=3)
    second = argusd.submit(PATIENT, nnodes=2, n_gpus_per_node=1)
    third = argusd.submit(PATIENT, n_gpus_per_node=3)
    for job in (first, second, third):
        argusd.wait_state(job, "RUNNING")

    def slots():
        return {(n["name"], g) for j in (first, second, third) for n in argusd.job(j)["nodes"] for g in n["gpu_ids"]}

    before = slots()
    assert len(before) == 8  # none twice
    argusd.restart()
    assert slots() == before
    for job in (first, second, third):
        argusd.stop_job(job)


def test_a_lost_node_restarts_the_job_elsewhere(argusd):
    job = argusd.submit(PATIENT, n_gpus_per_node=1, restart={"max": 1, "backoff": "1s"})
    view = argusd.wait_state(job, "RUNNING")
    node = view["nodes"][0]["name"]
    argusd.ray.node(node, "dead")
    view = argusd.wait_job(job, lambda v: v["attempt"] == 2 and v["state"] == "RUNNING", "runs again")
    assert view["nodes"][0]["name"] != node
    assert (view["restarts"], view["restart"]["failures"], view["restart"]["avoid"]) == (1, 1, [node])
    assert [a["state"] for a in view["attempts"]] == ["ENDED", "RUNNING"]
    first, second = view["attempts"]
    assert [n["name"] for n in first["nodes"]] == [node] and second["nodes"] == view["nodes"]
    assert (first["queued_at"], second["queued_at"]) == (view["queued_at"], first["ended_at"])
    assert (first["finding"]["class"], first["finding"]["node"]) == ("node_lost", node) and first["finding"]["sentence"]
    assert second["finding"] is None
    back = [e for e in argusd.events(job) if e["to"] == "QUEUED" and e["from"] == "RUNNING"]
    assert [e["reason"]["code"] for e in back] == ["node_lost"]
    argusd.stop_job(job)


# ---- stop of many ----


def stop_many(argusd, token="admin", **body):
    return argusd.call("POST", "/v1/jobs:stop", body, token=token)


def test_stop_by_filter(argusd):
    mine = [argusd.submit("echo x", **NEVER) for _ in range(3)]
    theirs = [argusd.submit("echo x", token="admin", project="p", **NEVER) for _ in range(2)]
    runs = argusd.submit(PATIENT, token="admin")
    argusd.wait_state(runs, "RUNNING")
    reply = stop_many(argusd, token="user", state=["QUEUED"])
    assert reply.status == 202
    assert {j["id"] for j in reply.json()["jobs"]} == set(mine)  # only one's own
    assert {j["state"] for j in reply.json()["jobs"]} == {"STOPPED"}
    seqs = [e["seq"] for e in argusd.events() if e["job"] in mine and e["to"] == "STOPPED"]
    assert seqs == list(range(seqs[0], seqs[0] + 3))  # together
    assert {argusd.job(j)["state"] for j in theirs} == {"QUEUED"}
    reply = stop_many(argusd, project="p", state=["RUNNING"])
    assert reply.json() == {"jobs": [], "more": False}
    reply = stop_many(argusd, ids=[theirs[0], mine[0]])
    assert [j["id"] for j in reply.json()["jobs"]] == [theirs[0]]  # the other is over
    reply = stop_many(argusd, workload="ray")
    assert {j["id"]: j["state"] for j in reply.json()["jobs"]} == {theirs[1]: "STOPPED", runs: "STOPPING"}
    assert argusd.wait_over(runs)["state"] == "STOPPED"


def test_what_cannot_be_stopped_by_filter(argusd):
    mine, theirs = argusd.submit("echo x", **NEVER), argusd.submit("echo x", token="admin", **NEVER)
    assert stop_many(argusd, token="user", ids=[mine, theirs]).status in (403, 404)
    assert stop_many(argusd, token="user", ids=[mine, "never-there"]).status == 404
    assert stop_many(argusd, token="user", user=argusd.job(theirs)["user"]).status == 403
    assert stop_many(argusd, token="viewer", ids=[mine]).status == 403
    for bad, status in (({}, 400), ({"state": ["FAILED"]}, 400), ({"usr": "x"}, 422), ({"ids": {"a": 1}}, 422)):
        assert stop_many(argusd, **bad).status == status, bad
    assert {argusd.job(j)["state"] for j in (mine, theirs)} == {"QUEUED"}


# ---- many at once ----

USERS, EACH = 20, 50


def test_a_thousand_jobs_of_twenty_users_at_once(tmp_path):
    with FakeRay() as ray:
        ray.listen(False)
        argusd = Argusd(tmp_path, ray.url)
        with argusd:
            argusd.stop()
            tokens = [argusd.init("--user", f"u{n:02}", "--role", "user") for n in range(USERS)]
            argusd.start()

            def submit_all(n):
                return [argusd.submit(f"echo {n} {i}", token=tokens[n], name=f"{i}") for i in range(EACH)]

            with concurrent.futures.ThreadPoolExecutor(USERS) as pool:
                ids = list(pool.map(submit_all, range(USERS)))
            argusd.kill9()
            argusd.start()
            rows = {j["id"]: j for j in argusd.all_jobs("&state=QUEUED")}
            assert len(rows) == USERS * EACH
            for n, own in enumerate(ids):
                assert [rows[i]["user"] for i in own] == [f"u{n:02}"] * EACH
                places = [rows[i]["position"] for i in own]
                assert places == sorted(places), "each user's in the order of his submits"
            assert sorted(j["position"] for j in rows.values()) == list(range(1, USERS * EACH + 1))
            errors = [e for e in argusd.said().splitlines() if " err " in e or "level=err" in e]
            assert errors == []
            many = [i for own in ids for i in own]
            reply = stop_many(argusd, ids=many)
            assert len(reply.json()["jobs"]) == USERS * EACH
            until(lambda: argusd.get("/v1/jobs?state=live")["jobs"] == [], "all are stopped")
            assert reply.json()["more"] is False


# ---- how many may wait ----


def test_full_queue(tmp_path):
    with FakeRay() as ray:
        ray.listen(False)
        with Argusd(tmp_path, ray.url, more="limits: {queued_jobs: 3}") as argusd:
            for _ in range(3):
                argusd.submit("echo x")
            reply = argusd.post(Argusd.spec("echo x"))
            assert (reply.status, reply.json()["code"]) == (429, "too_many_requests")
            ray.listen(True)
            until(lambda: argusd.post(Argusd.spec("echo x")).status == 201, "there is room again")


def test_one_user_does_not_fill_the_queue(tmp_path):
    with FakeRay() as ray:
        ray.listen(False)
        with Argusd(tmp_path, ray.url, more="limits: {queued_jobs_per_user: 2}") as argusd:
            for _ in range(2):
                argusd.submit("echo x", token="user")
            reply = argusd.post(Argusd.spec("echo x"), token="user")
            assert (reply.status, reply.json()["type"]) == (422, "urn:argus:problem:refused")
            assert reply.json()["code"] == "quota_queued"
            assert reply.json()["args"] == {"user": "alice", "queued": 2, "limit": 2}
            assert "alice' has 2 jobs waiting and may have 2 (limits.queued_jobs_per_user)" in reply.json()["detail"]
            argusd.submit("echo x", token="admin")  # others still get in
            assert argusd.call("PUT", "/v1/users/alice/quota", {"queued": 3}).status == 200
            argusd.submit("echo x", token="user")
            reply = argusd.post(Argusd.spec("echo x"), token="user")
            assert (reply.status, "may have 3 (queued)" in reply.json()["detail"]) == (422, True), reply
            assert reply.json()["args"] == {"kind": "user", "account": "alice", "queued": 3, "limit": 3}
            spoken = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}
            other = argusd.call("POST", "/v1/jobs", Argusd.spec("echo x"), token="user", **spoken).json()
            same = ("type", "status", "code", "args")
            assert [other[k] for k in same] == [reply.json()[k] for k in same]
            assert "个作业等待" in other["detail"] and other["hint"] != reply.json()["hint"]
