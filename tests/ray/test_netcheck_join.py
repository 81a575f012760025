# SPDX-License-Identifier: Apache-2.0
"""check_net of a NodeSpec: a machine that joins is measured with a neighbour, by torch's all-reduce over gloo on real
Ray between hosts with cables of their own, before it takes a job; a slow cable keeps jobs off until it is well.

The parts follow one another, each from the state that the one before left.
"""

import json
import pathlib
import subprocess

import pytest
from barestage import BareStage
from raybed import BED, BEDS
from stage import open_stage, wait_for

from argusd import needs_argusd

pytestmark = [pytest.mark.ray, pytest.mark.nightly, needs_argusd, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory):
    evidence = pathlib.Path(tmp_path_factory.mktemp("evidence"))
    with open_stage(BareStage, BEDS.bare("2.51.1"), request, tmp_path_factory, evidence, None) as stage:
        yield stage


def throttle(stage, host, rate):
    """What this host sends goes no faster."""
    words = f"tc qdisc replace dev eth0 root tbf rate {rate} burst 256kb latency 200ms".split()
    subprocess.run([BED, "on", "--dir", stage.bed.dir, host, *words], check=True, capture_output=True)


def checks(stage):
    return stage.get("/v1/clusters/default/network")["checks"]


def settled(stage, node):
    """The node once its network was measured."""

    def look():
        n = stage.node(node)
        return n["state"] == "online" and n["health"] != "checking" and n

    return wait_for(look, f"the network of {node} was measured")


def seq_of(stage, kind, **of):
    """Of the newest such event."""
    found = [e for e in stage.events() if e["kind"] == kind and all(e[k] == v for k, v in of.items())]
    return max(e["seq"] for e in found)


def test_the_first_of_its_pool_has_nobody_to_be_measured_with(stage):
    stage.add_node("node-1", "h2", gpu_count=1, labels=["x"], check_net=True)
    stage.wait_node("node-1", "online")
    assert settled(stage, "node-1")["health"] == "ok"
    told = [e["reason"]["code"] for e in stage.node_events("node-1") if e["kind"] == "node_healthy"]
    assert told == ["net_check_alone"] and checks(stage) == []
    assert stage.node("node-1")["spec"]["check_net"] is True


def test_the_next_is_measured_before_it_takes_a_job_over_a_kill(stage):
    throttle(stage, "h2", "400mbit")
    throttle(stage, "h3", "400mbit")
    stage.add_node("node-2", "h3", gpu_count=1, labels=["x", "second"], check_net=True)
    job = stage.submit("echo here", pool="second", n_gpus_per_node=1, token="admin")
    wait_for(lambda: [k for k in checks(stage) if k["state"] == "running"], "it is measured")
    node = stage.node("node-2")
    assert (node["state"], node["health"], node["reason"]["code"]) == ("online", "checking", "net_check_runs")
    assert stage.get(f"/v1/jobs/{job}")["state"] in ("PENDING", "QUEUED"), stage.job(job)
    stage.kill9()
    stage.start()
    assert settled(stage, "node-2")["health"] == "ok", checks(stage)
    (check,) = checks(stage)
    assert (check["state"], check["join"], check["backend"]) == ("passed", True, "gloo")
    assert sorted(check["nodes"]) == ["node-1", "node-2"]
    stage.wait_over(job)
    assert seq_of(stage, "node_healthy", object="node/node-2") < seq_of(stage, "admitted", object=f"job/{job}")
    (pair,) = stage.get("/v1/clusters/default/network")["pairs"]
    assert pair["baseline_mbps"] == pair["mbps"] > 0


def test_a_slow_cable_keeps_jobs_off_and_a_check_that_passes_lets_them_in(stage):
    (pair,) = stage.get("/v1/clusters/default/network")["pairs"]
    reply = stage.call("POST", "/v1/nodes/node-2:drain", {"then": "stop"})
    assert reply.status == 202, reply
    stage.wait_node("node-2", "offline")
    throttle(stage, "h3", f"{max(1, int(pair['mbps'] / 8))}mbit")
    assert stage.call("POST", "/v1/nodes/node-2:undrain", {}).status == 202
    stage.wait_node("node-2", "online")
    node = settled(stage, "node-2")
    assert (node["health"], node["reason"]["code"]) == ("unhealthy", "net_slow"), node
    assert node["reason"]["args"]["percent"] < 80 and "look at the links of both" in node["reason"]["fix"]
    chinese = stage.call("GET", "/v1/nodes/node-2", Accept_Language="zh").json()["reason"]
    assert "之间" in chinese["text"] and "检查两者的链路" in chinese["fix"]
    assert stage.node("node-1")["health"] == "ok"  # it was there before, and takes jobs
    job = stage.submit("echo here", pool="second", n_gpus_per_node=1, token="admin")
    why = stage.get(f"/v1/jobs/{job}/why")
    assert why["code"] == "nodes_not_usable" and "'node-2' is unhealthy" in why["text"], why
    stage.kill9()
    stage.start()
    assert stage.node("node-2")["reason"]["code"] == "net_slow"
    told = json.loads(stage.argus("node", "check", "--net", "node-1", "node-2", "--baseline", "-o", "json"))
    assert told["check"]["state"] == "passed" and told["check"]["join"] is False
    assert stage.node("node-2")["health"] == "ok"
    stage.wait_over(job)
