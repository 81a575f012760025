# SPDX-License-Identifier: Apache-2.0
"""v2.1: machines over SSH. Two bare hosts join, a gang waits for the second; one is drained, destroyed, taken back."""

import json
import re

import pytest
from stage import wait_for

GANG, DRAINED, BACK = "v21-gang", ["v21-drained-1", "v21-drained-2"], "v21-back"
STATES = ("pending", "online", "draining", "offline")


def alive(status):
    """The workers that `ray status` counts, by the resource that names them."""
    return set(re.findall(r"/1000\.0 argus_node_(\S+)", status))


def ray_alive(stage):
    rows = stage.ray("/api/v0/nodes?detail=1")["data"]["result"]["result"]
    return {n["node_ip"] for n in rows if n["state"] == "ALIVE"}


def walk(stage, node):
    """The states that a node went through, as its events tell them."""
    return [e["to"] for e in stage.node_events(node) if e.get("to") in STATES]


def too_large(bare):
    """The gang as it waits; a busy Ray may be out of sight for a moment, which is then its reason."""

    def says_why():
        got = bare.job(GANG)
        return got["reason"]["code"] == "pool_too_small" and got

    return wait_for(says_why, "it says why it waits")


def both_in_status(bare):
    """`ray status`, which tells a few seconds later than Ray's own list what there is."""

    def look():
        status = bare.ray_status()
        return alive(status) == {"node-1", "node-2"} and status

    return wait_for(look, "both machines show in `ray status`")


@pytest.fixture(scope="module")
def doc(bare):
    return bare.document("v2.1")


@pytest.fixture(scope="module")
def head(bare, doc):
    """What there is before a machine was added."""
    doc.run("head")
    return {"status": bare.keep("ray_status_head.txt", bare.ray_status()), "nodes": bare.get("/v1/nodes")["nodes"]}


@pytest.fixture(scope="module")
def gang(bare, doc, head):
    """A gang of two nodes meets none, then one, then two."""
    doc.run("gang")
    seen = {"alone": bare.keep("gang.alone.json", too_large(bare))}
    doc.run("node-1")
    seen["first"] = bare.keep("node-1.json", bare.node("node-1"))
    seen["said"] = doc.run("gang-waits")
    seen["one"] = bare.keep("gang.one.json", too_large(bare))
    why = wait_for(lambda: (w := bare.get(f"/v1/jobs/{GANG}/why"))["code"] == "pool_too_small" and w, "and why")
    seen["why"] = bare.keep("gang.why.json", why)
    seen["ray_one"] = bare.keep("gang.ray_one.json", bare.ray("/api/jobs/"))
    seen["second"] = bare.keep("node-2.added.json", json.loads(doc.run("node-2")))
    doc.run("both")
    seen["status"] = bare.keep("ray_status_both.txt", both_in_status(bare))
    record = bare.ray_driver(GANG)
    try:
        doc.run("gang-ends")
    finally:
        bare.keep("gang.log", bare.driver_log(GANG))
    return {**seen, "ray": record, "end": bare.keep_job(GANG)}


@pytest.fixture(scope="module")
def drained(bare, doc, gang):
    doc.run("drain")
    jobs = [bare.keep_job(job) for job in DRAINED]
    seen = {"jobs": jobs, "node": bare.wait_node("node-2", "offline")}
    wait_for(lambda: bare.workers["h3"] not in ray_alive(bare), "Ray has let the drained node go")
    doc.run("undrain")
    bare.wait_node("node-2", "online")
    return seen


@pytest.fixture(scope="module")
def destroyed(bare, doc, drained):
    """The second host is gone with all that ran on it, and is made anew at its address."""
    before = bare.node("node-2")
    bare.bed.verb("destroy", "h3")
    gone = bare.keep("node-2.gone.json", bare.wait_node("node-2", "offline"))
    bare.bed.verb("create", "h3")
    back = bare.keep("node-2.back.json", bare.wait_node("node-2", "online"))
    doc.run("back")
    return {"before": before, "gone": gone, "back": back, "job": bare.keep_job(BACK)}


# ---- the head ----


def test_head_was_started_and_computes_nothing(bare, head):
    (node,) = head["nodes"]
    assert (node["is_head"], node["state"], node["gpus"]["total"]) == (True, "online", 0)
    assert alive(head["status"]) == set() and "GPU" not in head["status"]
    assert ray_alive(bare) >= {bare.head_ip}


# ---- machines ----


def test_both_machines_show_in_ray_status(bare, gang):
    assert alive(gang["status"]) == {"node-1", "node-2"}
    assert "2.0 GPU" in gang["status"]


def test_machines_went_from_pending_to_online(bare, gang):
    assert gang["first"]["state"] == "online"
    (second,) = [n for n in [gang["second"], *gang["second"].get("nodes", [])] if n.get("name") == "node-2"]
    assert second["state"] == "pending"
    for name in ("node-1", "node-2"):
        assert walk(bare, name)[:2] == ["pending", "online"]
        assert bare.node(name)["host_key"].startswith("SHA256:")
        events = bare.node_events(name)
        assert all(e["actor"] and e["text"] for e in events) and events[0]["actor"] == "admin"


def test_pools_by_label(bare, gang, doc):
    pools = {p["pool"]: p for p in bare.get("/v1/pools")["pools"]}
    assert {"blue", "green"} <= set(pools)
    assert [pools[name]["gpus"]["total"] for name in ("blue", "green")] == [1, 1]


# ---- the gang ----


def test_gang_larger_than_the_pool_waits_and_ray_never_hears_of_it(gang):
    for view in (gang["alone"], gang["one"]):
        assert (view["state"], view["reason"]["code"]) == ("QUEUED", "pool_too_small")
        assert view["attempts"] == []
    assert gang["why"]["code"] == "pool_too_small" and "has 1, needs 2" in gang["why"]["text"]
    assert "pool_too_small" in gang["said"] or "has 1, needs 2" in gang["said"]
    assert [j for j in gang["ray_one"] if GANG in str(j["submission_id"])] == []


def test_gang_started_by_itself_on_both_and_trained(bare, gang):
    end = gang["end"]
    assert (end["state"], end["attempt"], end["restarts"]) == ("SUCCEEDED", 1, 0)
    assert {n["name"]: n["gpu_ids"] for n in end["nodes"]} == {"node-1": [0], "node-2": [0]}
    assert gang["ray"]["driver_info"]["node_ip_address"] in bare.workers.values()
    online = [e["seq"] for e in bare.node_events("node-2") if e.get("to") == "online"][0]
    (admitted,) = [e["seq"] for e in bare.events(GANG) if e["kind"] == "admitted"]
    assert online < admitted
    assert bare.steps(GANG) == [1, 2]
    saved = bare.job_dir(GANG) / "checkpoints/global_step_2/actor"
    assert {p.name for p in saved.glob("model_*.pt")} == {f"model_world_size_2_rank_{n}.pt" for n in (0, 1)}


def test_each_node_says_what_nccl_and_gloo_are_to_use(bare, gang):
    """As seen over ssh, and handed to the job's processes with the lease."""
    seen = {"NCCL_SOCKET_IFNAME": "=eth0", "GLOO_SOCKET_IFNAME": "eth0", "NCCL_IB_DISABLE": "1"}
    payload = json.loads((bare.job_dir(GANG) / "config/submit_payload.json").read_text())
    lease = json.loads(payload["runtime_env"]["env_vars"]["ARGUS_LEASE"])
    assert {n["name"]: n["env"] for n in lease["nodes"]} == {"node-1": seen, "node-2": seen}


# ---- drain ----


def test_drained_node_gets_no_new_job(bare, drained):
    assert [[n["name"] for n in job["nodes"]] for job in drained["jobs"]] == [["node-1"], ["node-1"]]
    assert all(job["state"] == "SUCCEEDED" for job in drained["jobs"])
    first, second = drained["jobs"]
    assert first["ended_at"] <= second["started_at"], "one GPU, one after the other"


def test_drained_node_went_draining_offline_and_came_back(bare, drained):
    states = walk(bare, "node-2")
    assert states[:4] == ["pending", "online", "draining", "offline"]
    assert "online" in states[4:]
    drain = next(e for e in bare.node_events("node-2") if e.get("to") == "draining")
    assert drain["actor"] == "admin"


# ---- destroyed ----


@pytest.mark.nightly  # a minute; tests/ray/test_nodes_real.py destroys a host in every check
def test_destroyed_machine_is_found_out(bare, destroyed):
    assert destroyed["before"]["state"] == "online"
    assert destroyed["gone"]["reason"]["text"]
    told = [e for e in bare.node_events("node-2") if e.get("to") == "offline"][-1]
    assert told["actor"] != "admin" and told["text"]


@pytest.mark.nightly  # the same
def test_machine_that_returns_is_taken_back_and_works(bare, destroyed):
    assert destroyed["back"]["name"] == destroyed["before"]["name"]
    assert destroyed["back"]["host_key"] == destroyed["before"]["host_key"]
    assert destroyed["back"]["ray_node_id"] != destroyed["before"]["ray_node_id"]
    assert (destroyed["job"]["state"], [n["name"] for n in destroyed["job"]["nodes"]]) == ("SUCCEEDED", ["node-2"])
    last = [e for e in bare.node_events("node-2") if e.get("to") == "online"][-1]
    assert last["actor"] != "admin"


def test_every_command_of_the_document_was_run(drained, doc):
    assert doc.never_run(at_night=["back"]) == []
