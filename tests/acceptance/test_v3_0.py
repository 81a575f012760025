# SPDX-License-Identifier: Apache-2.0
"""v3.0: several people. Two users on eight GPUs, a queue that explains itself, a timeout, directories, quotas."""

import pytest
from stage import wait_for

ALICE, BOB, NEXT = "v30-alice", "v30-bob", ["v30-next-1", "v30-next-2"]
HOLD = {"workload": "ray", "entrypoint": ["sleep", "3600"], "nnodes": 1, "n_gpus_per_node": 1}


@pytest.fixture(scope="module")
def doc(stage):
    return stage.document("v3.0")


@pytest.fixture(scope="module")
def people(stage, doc):
    """The tokens of two users."""
    doc.run("people")
    for name in ("alice", "bob"):
        stage.tokens[name] = (stage.home / f"{name}.token").read_text().strip()
    return stage.tokens


@pytest.fixture(scope="module")
def run(stage, doc, people):
    """alice and bob train side by side, the next job of each waits; all ends without anybody doing anything."""
    seen = {"queue": doc.run("train")}
    for job in (ALICE, BOB):
        stage.wait_state(job, "RUNNING", "SUCCEEDED", "TIMEOUT")
    seen["waiting"] = [stage.keep(f"{job}.why.json", stage.get(f"/v1/jobs/{job}/why")) for job in NEXT]
    seen["rows"] = [stage.job(job) for job in NEXT]
    seen["own"], seen["others"] = doc.run("own").split(), doc.run("others").split()
    seen["all"] = doc.run("all")
    doc.run("not-mine", code=4)
    doc.run("timeout", code=12)
    doc.run("ends")
    return {**seen, **{job: stage.keep_job(job) for job in (ALICE, BOB, *NEXT)}}


@pytest.fixture(scope="module")
def quota(stage, doc, run):
    """bob may hold one GPU of two and has one; his second job waits."""
    said = doc.run("quota")
    stage.wait_state("v30-quota-1", "RUNNING")
    why = stage.keep("quota.why.json", stage.get("/v1/jobs/v30-quota-2/why"))
    refused = stage.call("POST", "/v1/jobs", {**HOLD, "n_gpus_per_node": 2}, token="bob")
    yield {"said": said, "why": why, "job": stage.job("v30-quota-2"), "refused": refused}
    for job in stage.get("/v1/jobs?state=live")["jobs"]:  # the bed is for others as well
        stage.stop_job(job["id"])
        stage.wait_over(job["id"])


def free_gpus(stage):
    return sum(n["gpus"]["free"] for n in stage.get("/v1/nodes")["nodes"])


def apply_hint(stage, job, spec, why, token):
    """Do what the hint names, and no more; the id of the job that it says would start."""
    hint = why["hint"]
    if hint["kind"] == "job_end":
        stage.stop_job(hint["job"])
        return job
    assert hint["kind"] == "shape", f"a hint of another kind was not expected here: {why}"
    stage.stop_job(job, token=token)
    shape = {"nnodes": hint["nnodes"], "n_gpus_per_node": hint["n_gpus_per_node"]}
    return stage.submit({**spec, **shape}, token=token)


# ---- two users ----


def test_each_user_sees_their_own_jobs(run):
    assert run["own"] == [ALICE, NEXT[0]]
    assert run["others"] == [BOB, NEXT[1]]
    assert all(job in run["all"] for job in (ALICE, BOB, *NEXT))
    assert (run[ALICE]["user"], run[BOB]["user"]) == ("alice", "bob")


def test_nobody_touches_the_jobs_of_others(stage, run, people):
    for method, path in [("GET", ""), ("GET", "/logs"), ("GET", "/events"), ("GET", "/why"), ("POST", ":stop")]:
        assert stage.call(method, f"/v1/jobs/{ALICE}{path}", token="bob").status == 404, path
    assert stage.call("GET", f"/v1/jobs/{ALICE}", token="alice").status == 200
    for method, path in [("POST", "/v1/nodes"), ("POST", "/v1/users"), ("GET", "/v1/tokens?user=alice")]:
        assert stage.call(method, path, {} if method == "POST" else None, token="bob").status in (403, 404), path
    assert {job for n in stage.get("/v1/nodes", token="bob")["nodes"] for job in n["jobs"]} <= {BOB, NEXT[1]}


def test_they_ran_side_by_side(run):
    a, b = run[ALICE], run[BOB]
    assert a["state"] == "SUCCEEDED" and max(a["started_at"], b["started_at"]) < min(a["ended_at"], b["ended_at"])
    (here,), (there,) = a["nodes"][0]["gpu_ids"], b["nodes"][0]["gpu_ids"]
    assert (a["nodes"][0]["name"], here) != (b["nodes"][0]["name"], there)


# ---- the queue ----


def test_what_does_not_fit_waits_and_says_why(run):
    assert [row["state"] for row in run["rows"]] == ["QUEUED", "QUEUED"]
    first, second = run["waiting"]
    assert first["code"] == "waiting_for_gpus" and first["position"] == 1
    assert second["position"] == 2 and second["text"]
    assert all(job in run["queue"] for job in NEXT)


def test_waiting_jobs_started_by_themselves_in_order_of_submission(stage, run):
    first, second = (run[job] for job in NEXT)
    assert [j["state"] for j in (first, second)] == ["SUCCEEDED", "SUCCEEDED"]
    assert max(run[ALICE]["ended_at"], run[BOB]["ended_at"]) <= first["started_at"]
    assert first["queued_at"] < second["queued_at"] and first["ended_at"] <= second["started_at"]
    for job in NEXT:
        assert [e["actor"] for e in stage.events(job) if e["kind"] == "admitted"] == ["argusd"]


# ---- the timeout ----


def test_short_timeout_stops_the_training(stage, run):
    end = run[BOB]
    assert (end["state"], end["reason"]["code"], end["exit"]["cause"]) == ("TIMEOUT", "timeout", "stopped")
    assert "45" in end["reason"]["text"]
    assert [e["to"] for e in stage.events(BOB) if e["kind"] == "ended"] == ["TIMEOUT"]
    wait_for(lambda: free_gpus(stage) == 8, "all GPUs are free again")


# ---- directories ----


def test_directories_of_each_user_and_of_all(stage, run, doc):
    said = doc.run("directories")
    assert all(word in said for word in ("datasets", "models", "code"))
    doc.run("not-your-path", code=5)
    refused = (stage.evidence / "not-your-path.txt").read_text()
    assert "users/alice/code' lies in another user's directory" in refused
    for user in ("alice", "bob"):
        assert {p.name for p in (stage.root / "users" / user).iterdir()} >= {"datasets", "models", "code"}
    assert {p.name for p in (stage.root / "common").iterdir()} >= {"datasets", "models", "code"}


# ---- quotas, and the truth of why ----


def test_user_over_the_ceiling_is_told(quota, doc):
    assert (quota["job"]["state"], quota["job"]["reason"]["code"]) == ("QUEUED", "quota_gpus")
    assert quota["why"]["code"] == "quota_gpus" and "bob" in quota["why"]["text"]
    assert quota["why"]["text"] in quota["said"]
    problem = quota["refused"]
    assert (problem.status, problem.json()["code"]) == (422, "quota_ceiling")
    assert "'bob' may hold at most 1 GPU" in problem.json()["detail"]
    doc.run("over-quota", code=5)


def test_hint_is_true_for_a_quota(stage, quota):
    assert free_gpus(stage) == 7, "what bob lacks is not a GPU"
    started = apply_hint(stage, "v30-quota-2", HOLD, quota["why"], "bob")
    stage.wait_state(started, "RUNNING")


def test_hint_is_true_for_gpus(stage, quota):
    spec = {**HOLD, "nnodes": 2, "n_gpus_per_node": 4}
    job = stage.submit(spec, token="alice")
    why = stage.keep("gpus.why.json", stage.get(f"/v1/jobs/{job}/why"))
    assert (why["code"], stage.job(job)["state"]) == ("waiting_for_gpus", "QUEUED")
    started = apply_hint(stage, job, spec, why, "alice")
    stage.wait_state(started, "RUNNING")


def test_every_change_is_in_the_audit(stage, quota, doc):
    doc.run("audit")
    told = {(e["kind"], e["object"]): e for e in stage.events() if (e["object"] or "").startswith("user/")}
    assert any(obj == "user/bob" for _, obj in told)
    assert all(e["actor"] == "admin" for e in told.values())


def test_every_command_of_the_document_was_run(quota, doc):
    left = doc.never_run()
    assert left == []
