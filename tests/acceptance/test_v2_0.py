# SPDX-License-Identifier: Apache-2.0
"""v2.0: the HTTP control plane. PPO by the API, Ray's state as it is, a stop that frees, a crash that costs nothing."""

import json
import re

import pytest
from stage import wait_for

JOB, STOPPED = "v20-ppo", "v20-stop"
ALIVE = "/api/v0/actors?detail=1&filter_keys=state&filter_predicates=%3D&filter_values=ALIVE"
LIST_JOBS = """
import json
from ray.job_submission import JobSubmissionClient
keep = "submission_id status entrypoint metadata driver_node_id".split()
rows = [{{**{{k: getattr(d, k) for k in keep}}, "ip": d.driver_info and d.driver_info.node_ip_address,
         "pid": d.driver_info and d.driver_info.pid}} for d in JobSubmissionClient("{url}").list_jobs()]
print(json.dumps(rows, default=lambda v: getattr(v, "value", str(v))))
"""


def ray_rows(stage, path):
    return stage.ray(path)["data"]["result"]["result"]


def look(stage, job):
    """One moment of a running job as argusd tells it, as Ray's REST API tells it, and as Ray's own client does."""
    seen = {
        "job": stage.job(job),
        "list": stage.get("/v1/jobs?state=live")["jobs"],
        "nodes": stage.get("/v1/nodes")["nodes"],
        "actors": stage.cluster("actors"),
        "groups": stage.cluster("placement_groups"),
        "ray_nodes": ray_rows(stage, "/api/v0/nodes?detail=1"),
        "ray_actors": ray_rows(stage, ALIVE),
        "ray_groups": ray_rows(stage, "/api/v0/placement_groups?detail=1"),
        "client": stage.python(LIST_JOBS.format(url=stage.bed.url)),
        "ray_status": stage.bed.on("ctl", "ray", "status"),
    }
    return stage.keep(f"{job}.look.json", seen)


def to_task_runner(stage, signal):
    """The process that leads the training gets a signal."""
    (runner,) = [a for a in ray_rows(stage, ALIVE) if a["class_name"].rpartition(".")[2] == "TaskRunner"]
    (ip,) = [n["node_ip"] for n in ray_rows(stage, "/api/v0/nodes?detail=1") if n["node_id"] == runner["node_id"]]
    (host,) = [name for name, its in stage.bed.ips.items() if its == ip]
    stage.bed.on(host, "kill", f"-{signal}", str(runner["pid"]))


def trains(stage, job):
    stage.ray_driver(job)
    stage.wait_log(job, r"step:1 - ")


def used(stage, what):
    """How much of a resource is taken, as `ray status` says it."""
    m = re.search(rf"(?m)^ ([\d.]+)/([\d.]+) {what}\b", stage.bed.on("ctl", "ray", "status"))
    return m and (float(m[1]), float(m[2]))


def nothing_used(stage):
    return all((got := used(stage, what)) and got[0] == 0 for what in ("GPU", "CPU"))


@pytest.fixture(scope="module")
def doc(stage):
    return stage.document("v2.0")


@pytest.fixture(scope="module")
def run(stage, doc):
    """PPO by the API; argusd is killed while it trains and starts again before it ends."""
    doc.run("submit")
    trains(stage, JOB)
    to_task_runner(stage, "STOP")  # a look takes longer than this training
    seen = look(stage, JOB)
    before = stage.steps(JOB)[-1]
    stage.kill9()
    to_task_runner(stage, "CONT")
    wait_for(lambda: stage.steps(JOB)[-1] > before, "the training goes on without argusd")
    seen["steps"] = stage.keep("steps_at_kill_and_start.json", [before, stage.steps(JOB)[-1]])
    with pytest.raises(OSError):
        stage.call("GET", "/healthz")
    stage.start()
    seen["after"] = stage.keep(f"{JOB}.after_restart.json", stage.job(JOB))
    doc.run("wait")
    return {**seen, "end": stage.keep_job(JOB)}


@pytest.fixture(scope="module")
def stopped(stage, doc, run):
    """A PPO run that would take an hour, stopped while it trains."""
    wait_for(lambda: nothing_used(stage), "Ray has all GPUs and CPUs free before")
    before = stage.keep("ray_status_before_stop.txt", stage.bed.on("ctl", "ray", "status"))
    doc.run("submit-long")
    trains(stage, STOPPED)
    during = wait_for(lambda: (got := used(stage, "GPU")) and got[0] > 0 and got, "Ray sees the GPU taken")
    seen = look(stage, STOPPED)
    doc.run("stop")
    end = stage.wait_state(STOPPED, "STOPPED")
    stage.keep_job(STOPPED)
    return {**seen, "before": before, "during": during, "end": end}


# ---- one run by the API ----


def test_driver_is_on_a_worker(stage, run, doc):
    (ray,) = [r for r in run["client"] if r["submission_id"] == JOB]
    assert ray["ip"] in stage.workers.values() and ray["ip"] != stage.head_ip
    assert run["job"]["driver"] == {"node": run["job"]["nodes"][0]["name"], "ip": ray["ip"], "pid": int(ray["pid"])}
    assert run["job"]["proof"]["driver_on_worker"] is True
    assert ray["ip"] in doc.run("detail")


def test_list_and_detail_say_the_same(run):
    (row,) = [j for j in run["list"] if j["id"] == JOB]
    assert row["state"] == "RUNNING" and row["workload"] == "ppo"
    # it trains between the one answer and the other, and its first step may be told there
    moves = {"step", "total_steps", "eta", "gpu_util", "reward", "ends", "gpu_hours"}
    assert {k: run["job"][k] for k in row.keys() - moves} == {k: row[k] for k in row.keys() - moves}
    assert moves <= row.keys() & run["job"].keys()
    assert run["job"]["submission_id"] == JOB and run["job"]["attempts"][0]["ray_id"] == JOB


@pytest.mark.parametrize("which, job", [("run", JOB), ("stopped", STOPPED)])
def test_jobs_read_back_with_the_real_client(stage, request, which, job):
    seen = request.getfixturevalue(which)
    (ray,) = [r for r in seen["client"] if r["submission_id"] == job]
    payload = json.loads((stage.job_dir(job) / "attempts/1/submit_payload.json").read_text())
    assert (ray["status"], seen["job"]["state"]) == ("RUNNING", "RUNNING")
    assert (ray["entrypoint"], ray["metadata"]) == (payload["entrypoint"], payload["metadata"])
    assert (ray["metadata"]["argus_job"], ray["metadata"]["argus_attempt"]) == (job, "1")
    assert (ray["ip"], int(ray["pid"])) == (seen["job"]["driver"]["ip"], seen["job"]["driver"]["pid"])
    node = {n["node_id"]: n["node_ip"] for n in seen["ray_nodes"]}[ray["driver_node_id"]]
    assert node == seen["job"]["proof"]["driver_node_ip"]


def test_nodes_are_those_of_ray(stage, run):
    ray = {n["node_id"]: n for n in run["ray_nodes"]}
    assert {n["ray_node_id"] for n in run["nodes"]} == set(ray) and len(ray) == len(stage.bed.ips)
    for n in run["nodes"]:
        r = ray[n["ray_node_id"]]
        total = r["resources_total"]
        assert (n["ip"], n["is_head"]) == (r["node_ip"], r["is_head_node"])
        assert (n["state"] == "online") == (r["state"] == "ALIVE")
        assert (n["gpus"]["total"], n["cpus"]["total"]) == (total.get("GPU", 0), total.get("CPU", 0))
        if not n["is_head"]:
            assert f"argus_node_{n['name']}" in total and stage.workers[n["name"]] == n["ip"]
    holders = {n["name"]: n["jobs"] for n in run["nodes"] if n["jobs"]}
    assert holders == {run["job"]["driver"]["node"]: [JOB]}


def test_actors_are_those_of_ray_each_with_its_job(run):
    names = {n["ray_node_id"]: n["name"] for n in run["nodes"]}
    ours = {a["actor_id"]: a for a in run["actors"]}
    hex_id = {a["ray_job_id"] for a in run["actors"] if a["job"] == JOB}
    assert len(hex_id) == 1
    mine = [a for a in run["ray_actors"] if a["job_id"] in hex_id]
    assert {"TaskRunner", "WorkerDict"} <= {a["class_name"].rpartition(".")[2] for a in mine}
    for a in mine:
        got = ours[a["actor_id"]]
        assert (got["job"], got["class_name"], got["pid"]) == (JOB, a["class_name"], a["pid"])
        assert got["node"] == names[a["node_id"]]
    assert [a for a in run["actors"] if a["job"] not in (JOB, None)] == []


def test_placement_groups_are_those_of_ray_each_with_its_job(stage, run):
    ours = {g["placement_group_id"]: g for g in run["groups"]}
    ray = [g for g in run["ray_groups"] if g["state"] != "REMOVED"]  # those of former jobs stay listed
    assert ray and {g["placement_group_id"] for g in ray} == set(ours)
    names = {n["ray_node_id"]: n["name"] for n in run["nodes"]}
    for g in ray:
        got = ours[g["placement_group_id"]]
        assert (got["job"], got["state"], got["name"]) == (JOB, "CREATED", g["name"])
        assert [b["node"] for b in got["bundles"]] == [names[b["node_id"]] for b in g["bundles"]]
        assert {b["node"] for b in got["bundles"]} <= set(stage.workers)


# ---- a crash ----


def test_killed_argusd_costs_nothing(stage, run, doc):
    """The job went on, was found again as the same attempt, succeeded once, and its log is whole."""
    at_kill, at_start = run["steps"]
    assert at_start > at_kill
    assert run["after"]["state"] in ("RUNNING", "SUCCEEDED") and run["after"]["attempt"] == 1
    assert (run["end"]["state"], run["end"]["exit"]["code"]) == ("SUCCEEDED", 0)
    assert (run["end"]["attempt"], run["end"]["restarts"], len(run["end"]["attempts"])) == (1, 0, 1)
    kinds = [e["kind"] for e in stage.events(JOB)]
    assert [kinds.count(k) for k in ("submitted", "admitted", "accepted", "started", "ended")] == [1] * 5
    assert stage.steps(JOB) == list(range(1, 31))
    file = (stage.job_dir(JOB) / "logs/driver.log").read_bytes()
    served = stage.call("GET", f"/v1/jobs/{JOB}/logs?limit={8 << 20}")
    assert (served.status, served.body) == (200, file)
    assert doc.run("log") == file.decode()


# ---- a stop ----


def test_stop_frees_the_resources_in_rays_own_view(stage, stopped):
    assert stopped["during"] == (1, 8)
    assert " 0.0/8.0 GPU" in stopped["before"] and " 1.0/8.0 GPU" in stopped["ray_status"]
    wait_for(lambda: nothing_used(stage), "Ray has all GPUs and CPUs free again")
    stage.keep("ray_status_after_stop.txt", stage.bed.on("ctl", "ray", "status"))
    groups = lambda: {g["state"] for g in ray_rows(stage, "/api/v0/placement_groups?detail=1")}  # noqa: E731
    wait_for(lambda: groups() <= {"REMOVED"}, "all groups are removed")
    hex_id = {a["ray_job_id"] for a in stopped["actors"] if a["job"] == STOPPED}
    actors = lambda: ray_rows(stage, "/api/v0/actors?detail=1")  # noqa: E731
    wait_for(lambda: {a["state"] for a in actors() if a["job_id"] in hex_id} <= {"DEAD"}, "all of its actors are dead")


def test_stop_says_so(stage, stopped):
    end = stage.job(STOPPED)
    assert (end["state"], end["exit"]["cause"]) == ("STOPPED", "stopped")
    assert "admin" in end["reason"]["text"]
    kinds = [(e["kind"], e["actor"], e["to"]) for e in stage.events(STOPPED)]
    assert ("stop", "admin", "STOPPING") in kinds
    assert [(k, to) for k, _, to in kinds if k == "ended"] == [("ended", "STOPPED")]
    assert all((n["gpus"]["used"], n["jobs"]) == (0, []) for n in stage.get("/v1/nodes")["nodes"])
    checkpoints = stage.job_dir(STOPPED) / "checkpoints"
    assert not list(checkpoints.glob("global_step_*")) and stage.steps(STOPPED)


def test_every_command_of_the_document_was_run(run, stopped, doc):
    assert doc.never_run() == []
