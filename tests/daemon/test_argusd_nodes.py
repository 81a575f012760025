# SPDX-License-Identifier: Apache-2.0
"""The registry of nodes over HTTP, beside a fake Ray: what is taken and refused, what a restart finds again, what is
foreign. No machine is behind a node here (tests/ray has those): ssh finds nobody, and that is a reason like another."""

import concurrent.futures
import json

import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

NOBODY = {"host": "127.0.0.1", "port": 1}  # refuses at once


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    home = tmp_path_factory.mktemp("nodes")
    with FakeRay(state=home / "ray") as ray, Argusd(home, ray.url) as argusd:
        argusd.ray = ray
        until(lambda: argusd.call("GET", "/v1/nodes/h2").status == 200, "Ray lists its nodes")
        yield argusd


def add(argusd, spec, status=201):
    reply = argusd.call("POST", "/v1/nodes", spec)
    assert reply.status == status, reply
    return reply.json()


def node(argusd, name):
    return argusd.get(f"/v1/nodes/{name}")


def act(argusd, name, verb, status=202, **body):
    reply = argusd.call("POST", f"/v1/nodes/{name}:{verb}", body)
    assert reply.status == status, reply
    return reply.json()


def gone(argusd, name):
    until(lambda: argusd.call("GET", f"/v1/nodes/{name}").status == 404, f"{name} is forgotten")


def kinds(argusd, name):
    return [e["kind"] for e in argusd.events() if e.get("object") == f"node/{name}"]


def test_a_node_that_nobody_answers_for_stays_pending_and_says_why(w):
    (n,) = add(w, {"name": "p1", **NOBODY, "gpu_count": 4, "labels": "a,b", "env": {"MY_TOKEN": "s3cret"}})["nodes"]
    assert (n["state"], n["registered"], n["labels"]) == ("pending", True, ["a", "b"])
    assert n["spec"]["env"] == {"MY_TOKEN": "***"}
    n = until(lambda: (n := node(w, "p1"))["reason"]["code"] == "ssh_unreachable" and n, "its reason")
    assert n["state"] == "pending" and n["reason"]["text"] and n["reason"]["fix"]
    assert n["findings"][0]["code"] == "ssh_unreachable"
    assert kinds(w, "p1")[:2] == ["node_added", "node_trouble"]
    audit = [e for e in w.events() if e.get("object") == "node/p1"][0]
    assert audit["actor"] == "admin" and "s3cret" not in json.dumps(audit)
    checked = act(w, "p1", "check", 200)
    assert checked["findings"][0]["code"] == "ssh_unreachable"
    act(w, "p1", "remove")
    gone(w, "p1")
    until(lambda: kinds(w, "p1")[-1] == "node_removed", "its last event")


def test_the_same_spec_is_the_same_node_and_another_one_is_refused(w):
    spec = {"name": "s1", "host": "s1.invalid"}
    add(w, spec)
    assert len(add(w, spec, 200)["nodes"]) == 1
    for name, host, code in (("s1", "s2.invalid", "node_other_spec"), ("s2", "s1.invalid", "host_is_node")):
        reply = w.call("POST", "/v1/nodes", {"name": name, "host": host})
        assert (reply.status, reply.json()["code"]) == (409, code), reply
        assert "s1" in reply.json()["detail"]
    add(w, {"name": "s2", "host": "s1.invalid", "port": 2222})  # another sshd is another machine
    for name in ("s1", "s2"):
        act(w, name, "remove")
        gone(w, name)


def test_two_adds_at_once_make_one_node(w):
    specs = [{"name": "t1", "host": "t1.invalid"}, {"name": "t2", "host": "t1.invalid"}] * 4
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        status = list(pool.map(lambda s: w.call("POST", "/v1/nodes", s).status, specs))
    assert sorted(status) == [200] * 3 + [201] + [409] * 4
    (name,) = [n["name"] for n in w.get("/v1/nodes")["nodes"] if n["name"] in ("t1", "t2")]
    act(w, name, "remove")
    gone(w, name)


def test_a_list_is_taken_whole_or_not_at_all(w):
    good = [{"name": f"l{i}", "host": f"l{i}.invalid"} for i in range(3)]
    bad = [*good, {"name": "l3", "host": "l3.invalid", "gpus_count": 4}]
    reply = w.call("POST", "/v1/nodes", bad)
    assert (reply.status, reply.json()["code"]) == (422, "unknown_key")
    (problem,) = reply.json()["problems"]
    assert problem["field"] == "[3].gpus_count" and "gpu_count" in problem["hint"]
    assert w.call("POST", "/v1/nodes", [*good, {"name": "head", "host": "x"}]).status == 422
    assert not {n["name"] for n in w.get("/v1/nodes")["nodes"]} & {"l0", "l1", "l2"}
    assert [n["name"] for n in add(w, {"nodes": good})["nodes"]] == ["l0", "l1", "l2"]
    for s in good:
        act(w, s["name"], "remove", force=True)
        gone(w, s["name"])


@pytest.mark.parametrize("path, body, status", [
    ("nobody:drain", {}, 404),
    ("h2:drain", {}, 409),  # somebody else started it
    ("b1:drain", {"then": "run"}, 400),
    ("b1:drain", {"deadline": "soon"}, 400),
    ("b1:drain", {"dedline": "1h"}, 400),
    ("b1:drain", [], 400),
])  # fmt: skip
def test_what_is_refused(w, path, body, status):
    spec = {"name": "b1", "host": "b1.invalid"}
    assert w.call("POST", "/v1/nodes", spec).status in (200, 201)
    reply = w.call("POST", f"/v1/nodes/{path}", body)
    assert reply.status == status, reply
    assert reply.json()["detail"]
    assert node(w, "b1")["state"] == "pending"


def test_drained_is_offline_and_back_is_pending(w):
    add(w, {"name": "d1", "host": "d1.invalid"})
    n = act(w, "d1", "drain", deadline="10m", then="restart")
    assert (n["state"], n["want"], n["drain"]["then"]) == ("offline", "drained", "restart")
    assert act(w, "d1", "undrain")["state"] == "pending"
    act(w, "d1", "remove")
    gone(w, "d1")


def test_a_change_wakes_who_waits_for_it(w):
    add(w, {"name": "e1", "host": "e1.invalid"})
    until(lambda: node(w, "e1")["reason"]["code"] == "ssh_unreachable", "its reason")
    act(w, "e1", "drain")
    last = {}

    def at_rest():
        """The same page twice: a look that was under way is over."""
        reply = w.call("GET", "/v1/nodes/e1", **({"If_None_Match": last["etag"]} if last else {}))
        last["etag"] = reply.headers["ETag"]
        return reply.status == 304

    until(at_rest, "the page does not change")
    etag = last["etag"]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        later = pool.submit(w.call, "GET", "/v1/nodes/e1?wait=60s", If_None_Match=etag)
        act(w, "e1", "undrain")
        assert later.result().json()["want"] == "up"
    act(w, "e1", "remove")
    gone(w, "e1")


def test_a_kill_loses_nothing_of_the_registry(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        add(argusd, [{"name": "k1", **NOBODY, "labels": ["x"]}, {"name": "k2", "host": "k2.invalid"}])
        act(argusd, "k2", "drain")
        argusd.kill9()
        argusd.start()
        k1, k2 = node(argusd, "k1"), node(argusd, "k2")
        assert (k1["state"], k1["labels"], k1["want"]) == ("pending", ["x"], "up")
        assert (k2["state"], k2["want"]) == ("offline", "drained")
        until(lambda: node(argusd, "k1")["reason"]["code"] == "ssh_unreachable", "it is tried again")
        act(argusd, "k1", "remove")
        argusd.kill9()
        argusd.start()
        gone(argusd, "k1")
        assert node(argusd, "k2")["name"] == "k2"


def test_pools_count_by_use_and_by_label(w):
    add(w, {"name": "q1", "host": "q1.invalid", "gpu_count": 8, "labels": ["big"], "gpu_type": "H20"})
    all_rows = lambda: {p["pool"]: p for p in w.get("/v1/pools")["pools"]}  # noqa: E731
    rows = until(lambda: (r := all_rows()) and "big" in r and r[None]["gpus"]["free"] == 8 and r, "both pools count")
    assert rows["big"]["gpus"]["total"] == rows["big"]["gpus"]["bad"] == 8  # it is not in
    assert rows["big"]["type"] == "H20" and rows["big"]["largest_gang"] == 0
    assert rows[None]["gpus"]["total"] == 16
    act(w, "q1", "remove")
    gone(w, "q1")


def test_what_others_hold_in_ray_is_held_back(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray:
        (h2,) = [n["node_id"] for n in ray.ask("GET", "state")["nodes"] if n["name"] == "h2"]
        bundle = {"bundle_id": "1", "node_id": h2, "unit_resources": {"GPU": 3.0, "CPU": 1.0}}
        group = {"placement_group_id": "f" * 36, "name": "", "creator_job_id": "09000000", "state": "CREATED"}
        ray.world(groups=[{**group, "bundles": [bundle], "is_detached": True, "stats": {}}])
        with Argusd(tmp_path, ray.url) as argusd:
            until(lambda: argusd.call("GET", "/v1/nodes/h2").status == 200, "Ray lists its nodes")
            until(lambda: node(argusd, "h2")["gpus"]["foreign"] == 3, "what the others hold")
            assert argusd.get("/v1/pools")["pools"][0]["gpus"] == {
                "total": 8, "used": 0, "foreign": 3, "held": 0, "free": 5, "draining": 0, "bad": 0,
                "idle_held": 0, "unknown": 0,
            }  # fmt: skip
            job = argusd.submit("exec sleep 1000", nnodes=2, n_gpus_per_node=2)
            until(lambda: argusd.job(job)["reason"]["code"] == "waiting_for_gpus", "it waits")
            assert argusd.job(job)["state"] == "QUEUED"
            ray.world(groups=[])
            argusd.wait_state(job, "RUNNING")
            argusd.stop_job(job)
            argusd.wait_over(job)


def test_firewall_names_who_is_to_reach_its_ports(w):
    add(w, [{"name": "f1", "host": "127.0.0.71", "port": 1}, {"name": "f2", "host": "127.0.0.72", "port": 1}])
    add(w, {"name": "f3", "host": "f3.invalid"})
    for name in ("f1", "f2"):
        until(lambda name=name: node(w, name)["reason"]["code"] == "ssh_unreachable", "it was looked at")
    got = w.get("/v1/nodes/f1/firewall?prometheus=127.0.0.9,10.1.0.0/16")
    assert (got["node"], got["address"]) == ("f1", "127.0.0.71")
    rules = {r["key"]: r for r in got["rules"]}
    ports = {p["key"]: p for p in node(w, "f1")["ports"]}
    assert {k: (r["first"], r["last"]) for k, r in rules.items() if k != "sshd"} == {
        k: (p["first"], p["last"]) for k, p in ports.items()
    }
    assert (rules["sshd"]["first"], rules["sshd"]["closed"]) == (1, False)
    assert all(r["closed"] for k, r in rules.items() if k != "sshd")
    assert "127.0.0.72" in rules["objects"]["sources"] and "127.0.0.71" not in rules["objects"]["sources"]
    for key in ("metrics", "exporter"):  # argusd asks for them itself
        assert rules[key]["sources"] == [*rules["sshd"]["sources"], "127.0.0.9", "10.1.0.0/16"]
    assert rules["runtime_env"]["sources"] == []
    assert set(rules["raylet"]["sources"]) > set(rules["objects"]["sources"]) or "127.0.0.1" in rules["sshd"]["sources"]
    assert got["unknown"] == ["nodes"]  # nobody knows f3's
    assert "prometheus" in w.get("/v1/nodes/f1/firewall")["unknown"]
    moved = w.get("/v1/nodes/f1/firewall?argusd=192.0.2.1")
    assert next(r for r in moved["rules"] if r["key"] == "sshd")["sources"] == ["192.0.2.1"]
    for name in ("f1", "f2", "f3"):
        act(w, name, "remove", force=True)
        gone(w, name)


@pytest.mark.parametrize("query, status", [
    ("f9/firewall", 404),
    ("h2/firewall", 409),  # somebody else started it: argusd does not know its ports
    ("b1/firewall?prometheus=here", 400),
    ("b1/firewall?prometheus=10.0.0.0/33", 400),
    ("b1/firewall?argusd=10.0.0.1;reboot", 400),
    ("b1/firewall?argus=10.0.0.1", 400),
])  # fmt: skip
def test_firewall_that_is_refused(w, query, status):
    assert w.call("POST", "/v1/nodes", {"name": "b1", "host": "b1.invalid"}).status in (200, 201)
    reply = w.call("GET", f"/v1/nodes/{query}")
    assert reply.status == status and reply.json()["detail"], reply
