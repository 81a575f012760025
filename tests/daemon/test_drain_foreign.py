# SPDX-License-Identifier: Apache-2.0
"""Jobs of Ray that Argus did not submit, on a machine that is to go: they are waited for and named, whatever ends a
raylet, and stopped only where somebody says so. Beside a fake Ray, with a stand-in for ssh that really ends the
stand-in for the raylet on this machine."""

import json

import pytest
from test_drain_plan import cli
from test_ops import apply, look, over
from test_ops import plan as ops_plan
from test_remedies import lives, mender

from argusd import needs_argusd, until

pytestmark = needs_argusd

RAY_JOB = "09000000"  # Ray's own id of the job of somebody else


@pytest.fixture
def a(tmp_path):
    """argusd with one machine, h2, that is in: of four GPUs, and 40 CPUs by Ray's count."""
    with mender(tmp_path) as (made, _):
        made.in_from_now()
        until(lambda: made.node()["ray_node_id"], "Ray lists it")
        yield made


def place(a, name="h2"):
    (node_id,) = [n["node_id"] for n in a.ray.ask("GET", "state")["nodes"] if n["name"] == name]
    return node_id


def holds(a, creator=RAY_JOB, node="h2", **resources):
    """A placement group of this driver on a machine."""
    amounts = {k: float(v) for k, v in resources.items()}
    bundle = {"bundle_id": "1", "node_id": place(a, node), "unit_resources": amounts}
    group = {"placement_group_id": "f" * 36, "name": "", "creator_job_id": creator, "state": "CREATED", "stats": {}}
    a.ray.world(groups=[{**group, "bundles": [bundle], "is_detached": False}] if resources else [])


def begin(a, **record):
    """A job of somebody else, as Ray lists it."""
    a.ray.add_job(submission_id="theirs", job_id=RAY_JOB, **record)


def end(a):
    a.ray.add_job(submission_id="theirs", job_id=RAY_JOB, status="SUCCEEDED", end_time=2)
    holds(a)


def drain(a, query="", **body):
    reply = a.call("POST", f"/v1/nodes/h2:drain{query}", body)
    assert reply.status in (200, 202), reply
    return reply.json()


def others(a, **body):
    return drain(a, "?dry_run=1", **body)["foreign"]


def waits(a, *words):
    """The page of h2, once its reason says that it waits for others, in these words."""

    def says():
        n = a.node()
        return n["reason"]["code"] == "drain_foreign" and all(w in n["reason"]["text"] for w in words) and n

    n = until(says, f"it waits for {words}")
    assert n["state"] == "draining" and lives(a.raylet_process), n
    return n


def stays(a):
    """It was looked at again and again, and its raylet is left alone."""
    looks = a.asked("raylet.sh")
    until(lambda: a.asked("raylet.sh") >= looks + 4, "it is looked at")
    assert lives(a.raylet_process) and a.node()["state"] == "draining", a.node()


def goes(a):
    until(lambda: not lives(a.raylet_process), "its raylet is ended")
    until(lambda: a.node()["state"] == "offline", "it is offline")


def manage_head(a):
    """From now on the head is argusd's to start."""
    head = "head: {managed: true, host: 127.0.0.1, ssh: {host: 127.0.0.1, port: 1}}"
    a.config.write_text(a.config.read_text().replace(f"temp_dir: {a.temp}", f"temp_dir: {a.temp}, {head}"))
    a.restart()


def untouched(a):
    """Nothing was ever asked of Ray that would change the job of somebody else."""
    assert not [r for r in a.ray.requests() if r["method"] != "GET" and "theirs" in r["path"]]


def test_a_drain_waits_for_a_job_of_somebody_else(a):
    begin(a)
    holds(a, GPU=1, CPU=2)
    row = {"ray_id": "theirs", "project": None, "owner": None, "gpus": 1, "cpus": 2, "fate": "waited_for"}
    until(lambda: others(a) == [row], "the plan names it")
    assert drain(a, "?dry_run=1")["empty_at"] is None  # nobody can tell
    (stopped,) = others(a, stop_foreign=True)
    assert stopped["fate"] == "stopped"
    shown = cli(a, "node", "drain", "h2", "--dry-run").stdout
    assert "theirs" in shown and "waited for" in shown
    assert a.node()["state"] == "online"  # a plan does nothing
    drain(a, then="stop", deadline=0)  # that is said of our jobs
    n = waits(a, "Ray job 'theirs' holds 1 GPU and 2 CPUs")
    assert "argus node drain --stop-foreign h2" in n["reason"]["fix"] and n["drain"]["stop_foreign"] is False
    chinese = a.get("/v1/nodes/h2", Accept_Language="zh")["reason"]["text"]
    assert "Ray 作业 'theirs' 占用 1 张 GPU 和 2 个 CPU" in chinese
    stays(a)
    adopted = a.call("POST", "/v1/clusters/default/foreign/theirs:adopt", {"project": "default", "user": "alice"})
    assert adopted.status == 200, adopted
    waits(a, "Ray job 'theirs' of user 'alice' holds 1 GPU")
    assert others(a)[0]["owner"] == "alice"
    end(a)
    goes(a)
    untouched(a)


def test_a_ray_that_is_silent_ends_nothing(a):
    """Over a kill -9: argusd does not know what Ray told before, and Ray does not tell it now."""
    begin(a, driver_node_id=place(a))  # it holds nothing that Ray counts: its entrypoint runs there
    drain(a)
    waits(a, "Ray job 'theirs' runs there")
    a.ray.listen(False)
    a.kill9()
    a.start()
    stays(a)
    a.ray.listen(True)
    waits(a, "Ray job 'theirs' runs there")
    stays(a)
    assert a.call("POST", "/v1/nodes/h2:undrain", {}).status == 202
    n = until(lambda: (n := a.node())["state"] == "online" and n, "it takes jobs again")
    assert n["reason"]["code"] != "drain_foreign" and lives(a.raylet_process)
    untouched(a)


def test_cpus_of_nobody_keep_a_machine_until_somebody_says_otherwise(a):
    holds(a, creator="0a000000", CPU=3)  # no job of Ray's list has this id
    drain(a)
    waits(a, "0 GPUs and 3 CPUs are held by nobody that argusd knows")
    stays(a)
    n = drain(a, stop_foreign=True)
    assert n["drain"]["stop_foreign"] is True and "jobs of others end with it" in n["reason"]["text"]
    goes(a)
    told = a.told("node_drain")[-1]
    assert told["actor"] == "admin" and told["data"]["after"]["stop_foreign"] is True, told


def test_what_a_job_of_ours_gave_back_is_nobodys(a):
    """Ray counts it for a moment longer: the machine goes, and nobody is named."""
    gate = a.root / "common/gate"
    job = a.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done", n_gpus_per_node=2, pool="x")
    a.wait_state(job, "RUNNING")
    holds(a, creator="0b000000", GPU=2)  # as its workers do
    drain(a)
    assert a.node()["state"] == "draining" and [j["job"] for j in drain(a, "?dry_run=1")["jobs"]] == [job]
    gate.write_text("")
    a.wait_over(job)
    holds(a)
    seen = set()

    def gone():
        n = a.node()
        seen.add(n["reason"]["code"])
        return n["state"] == "offline"

    until(gone, "it goes")
    assert "drain_foreign" not in seen, seen


def test_lists_that_are_cut_prove_nothing(a):
    """An actor that holds no GPU and no CPU is in one list alone; where that is cut it may be what is missing."""
    until(lambda: not others(a), "nobody is there")
    begin(a, driver_node_id=place(a, "h3"))
    a.ray.settings(state_warning="Failed to query data from 1 of 2 sources")
    drain(a)
    n = until(lambda: (n := a.node())["reason"]["code"] == "drain_untold" and n, "Ray does not tell")
    assert "argus node drain --stop-foreign h2" in n["reason"]["fix"], n
    stays(a)
    blank = {"class_name": "Keeper", "state": "ALIVE", "name": "", "pid": 7, "is_detached": False}
    its = {"job_id": RAY_JOB, "node_id": place(a), "required_resources": {}, "placement_group_id": None}
    a.ray.world(actors=[{"actor_id": "e" * 32, **blank, **its}])
    a.ray.settings(state_warning="")
    waits(a, "Ray job 'theirs' runs there")
    a.ray.world(actors=[])  # its driver goes on elsewhere
    goes(a)
    untouched(a)


def test_a_removal_waits_too(a):
    begin(a)
    holds(a, GPU=1)
    until(lambda: [f["ray_id"] for f in others(a)] == ["theirs"], "it is known")
    refused = a.call("POST", "/v1/nodes/h2:remove", {})
    assert refused.status == 409 and refused.json()["code"] == "node_has_foreign", refused
    assert "theirs" in refused.json()["detail"] and "argus node drain h2" in refused.json()["hint"], refused
    assert a.call("POST", "/v1/nodes/h2:remove", {"force": True}).status == 202  # that is said of our jobs
    n = waits(a, "it is being removed", "Ray job 'theirs' holds 1 GPU")
    assert "argus node rm --stop-foreign h2" in n["reason"]["fix"]
    stays(a)
    assert a.call("POST", "/v1/nodes/h2:remove", {"stop_foreign": True}).status == 202
    until(lambda: not lives(a.raylet_process), "its raylet is ended")
    until(lambda: a.call("GET", "/v1/nodes/h2").status == 404, "it is forgotten")
    untouched(a)


def test_plans_name_them(a):
    begin(a)
    holds(a, GPU=1)
    until(lambda: [f["ray_id"] for f in others(a)] == ["theirs"], "it is known")
    for action in ("drain_node", "remove_node"):
        p = ops_plan(a, action, node="h2")
        assert {"thing": "foreign/theirs", "fate": "waited_for", "bytes": 0} in p["things"], p
        p = ops_plan(a, action, node="h2", stop_foreign=True)
        assert {"thing": "foreign/theirs", "fate": "stopped", "bytes": 0} in p["things"] and p["stop_foreign"], p
    p = ops_plan(a, "drain_node", node="h2", then="stop", deadline="1s")
    assert a.call("POST", f"/v1/ops/plans/{p['id']}:apply", {}).status == 202
    waits(a, "Ray job 'theirs' holds 1 GPU")
    assert [s["state"] for s in look(a, p)["steps"]] == ["done", "running"]
    end(a)
    goes(a)
    assert over(a, p)["state"] == "done"
    untouched(a)


def test_a_plan_that_stops_them_is_made_for_those_that_were_seen(a):
    p = ops_plan(a, "drain_node", node="h2", stop_foreign=True)
    begin(a)
    holds(a, GPU=1)
    until(lambda: [f["ray_id"] for f in others(a)] == ["theirs"], "it is known")
    assert "foreign/theirs: none -> runs" in apply(a, p, 409)["detail"]
    p = ops_plan(a, "drain_node", node="h2", stop_foreign=True)
    apply(a, p)
    goes(a)
    assert over(a, p)["state"] == "done"


def test_a_plan_names_all_of_them_or_is_refused(a):
    """What is stopped with a machine is shown before, each job of it."""
    at = place(a)
    for i in range(1001):
        a.ray.add_job(submission_id=f"theirs-{i}", driver_node_id=at)
    until(lambda: len(others(a)) == 1001, "they are known")
    for action, how in (("drain_node", {}), ("drain_node", {"stop_foreign": True}), ("remove_node", {"force": True})):
        refused = ops_plan(a, action, status=422, node="h2", **how)
        assert refused["code"] == "ops_too_many_foreign" and "more than 1000 jobs" in refused["detail"], refused
    assert lives(a.raylet_process) and a.get("/v1/ops/plans")["plans"] == []
    a.ray.add_job(submission_id="theirs-0", driver_node_id=at, status="SUCCEEDED", end_time=2)
    until(lambda: len(others(a)) == 1000, "one is over")
    p = ops_plan(a, "drain_node", node="h2", stop_foreign=True)
    named = {t["thing"] for t in p["things"] if t["fate"] == "stopped"}
    assert named == {f"foreign/theirs-{i}" for i in range(1, 1001)}


def test_a_cluster_whose_head_is_not_argusds_does_not_go_under_them(a):
    """Its machines alone would go, and what is said is about them and about `cluster down`."""
    begin(a)
    holds(a, GPU=1)
    until(lambda: [f["ray_id"] for f in others(a)] == ["theirs"], "it is known")
    down = a.call("POST", "/v1/clusters/default:down", {"stop_jobs": True})
    assert down.status == 409 and down.json()["code"] == "cluster_has_foreign", down
    assert "use node 'h2'" in down.json()["detail"] and "theirs" in down.json()["detail"], down
    assert "argus cluster down --stop-foreign" in down.json()["hint"] and "node rm" not in down.json()["hint"], down
    chinese = a.call("POST", "/v1/clusters/default:down", {"stop_jobs": True}, Accept_Language="zh").json()
    assert "正在使用节点 'h2'" in chinese["detail"] and "argus cluster down --stop-foreign" in chinese["hint"], chinese
    assert a.node()["want"] == "up" and lives(a.raylet_process)


def test_the_head_does_not_go_under_them(a):
    """The head is argusd's to start, and no job of Ray outlives it, wherever it runs."""
    manage_head(a)
    begin(a, driver_node_id=place(a))
    until(lambda: [f["ray_id"] for f in others(a)] == ["theirs"], "argusd knows it")
    begin(a, driver_node_id=place(a, "h3"))
    until(lambda: not others(a), "it runs elsewhere")
    down = a.call("POST", "/v1/clusters/default:down", {"stop_jobs": True})
    assert down.status == 409 and down.json()["code"] == "cluster_has_foreign", down
    assert "theirs" in down.json()["detail"]
    restart = ops_plan(a, "restart_ray_head", status=409, force=True)
    assert restart["code"] == "ops_head_has_foreign" and "theirs" in restart["detail"], restart
    assert a.node()["want"] == "up" and lives(a.raylet_process)
    p = ops_plan(a, "restart_ray_head", force=True, stop_foreign=True)
    assert {"thing": "foreign/theirs", "fate": "stopped", "bytes": 0} in p["things"], json.dumps(p)
