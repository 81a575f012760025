# SPDX-License-Identifier: Apache-2.0
"""Machines that fail, and an argusd that is killed, on real Ray: bare hosts with an sshd each, one stage for the file.

The parts follow one another, each from the state that the one before left: two nodes that are online. argusd is killed
in each phase of a join and of a drain; phases are held open by programs of a host that wait (Held), not by luck.

    ARGUS_EVIDENCE=DIR     where the numbers go (how soon a loss was told); they are kept, and no test depends on them
"""

import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shutil
import time

import pytest
from barestage import BareStage
from fakeray import wait_for
from raybed import BEDS
from rayprocs import named, of_ray
from stage import open_stage

from argusd import until

pytestmark = [pytest.mark.ray, pytest.mark.timeout(900)]

HOSTS = {"node-1": "h2", "node-2": "h3"}
LOSS_DEADLINE = 60  # seconds; on a quiet machine the event comes within 30
AGAIN = {"max": 3, "on": ["node_lost"], "backoff": "1s"}
QUICK_LOOKS = "nodes: {look_every: 2s}"
OWN = {"GLOO_SOCKET_IFNAME": "lo"}  # of node-2, by its NodeSpec
NETWORK = """
import json, os, socket, subprocess, sys
import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

CHILD = "import json, os; print(json.dumps({n: v for n, v in os.environ.items() if n.startswith(('NCCL_', 'GLOO_'))}))"

class Rank:
    def look(self):
        return [socket.gethostname(), json.loads(subprocess.check_output([sys.executable, "-c", CHILD]))]

ray.init()
group = placement_group([{"GPU": 1, "CPU": 1}] * 2, strategy="STRICT_SPREAD")
ray.get(group.ready())
place = [PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=i) for i in range(2)]
ranks = [ray.remote(num_gpus=1)(Rank).options(scheduling_strategy=p).remote() for p in place]
for told in ray.get([r.look.remote() for r in ranks]):
    print("SEES " + json.dumps(told), flush=True)
"""
# Tells each start of itself, and goes on until it is told to end.
WORK = 'echo start >>"$0/$1.starts"; while [ ! -e "$0/$1.end" ]; do sleep 0.1; done; echo "end of $1"'


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory):
    evidence = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence"))
    with open_stage(BareStage, BEDS.bare("2.51.1"), request, tmp_path_factory, evidence, None) as stage:
        yield stage


# ---- a host's programs and processes ----


class Held:
    """A program of a host that waits for release() before it does what it does; met() once somebody called it."""

    SCRIPT = '#!/bin/sh\n: >"$0.met"\nwhile [ -e "$0.hold" ]; do sleep 0.1; done\nexec {} "$@"\n'

    def __init__(self, bed, host, name):
        self.path = pathlib.Path(bed.dir, "hosts", host, "bin", name)
        self.hold, self.was_met = self.path.with_name(f"{name}.hold"), self.path.with_name(f"{name}.met")

    def __enter__(self):
        self.hold.touch()
        fresh = self.path.with_name(f".{self.path.name}")
        fresh.write_text(self.SCRIPT.format(shutil.which(self.path.name)))
        fresh.chmod(0o755)
        fresh.rename(self.path)
        return self

    def met(self):
        until(self.was_met.exists, f"{self.path.name} is called")

    def release(self):
        self.hold.unlink(missing_ok=True)

    def __exit__(self, *_):
        self.release()
        self.path.unlink()
        self.was_met.unlink(missing_ok=True)


def pids(stage, host, name):
    """Of all processes of that host with this name."""
    return [pid for _, pid in named(stage.bed, [host], name)]


def dashboard(stage):
    """The process of the head, and not those that it started."""
    return of_ray(stage.bed, ["h1"], "dashboard")[0][1]


def raylet(stage, node):
    """The only one on its host."""
    found = pids(stage, HOSTS[node], "raylet")
    assert len(found) == 1, found
    return found[0]


def crash(stage):
    stage.kill9()
    stage.start()


# ---- what argusd tells ----


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def last_seq(stage):
    return max(e["seq"] for e in stage.events())


def told(stage, node, kind, after, deadline=None):
    """The first such event of the node since then."""

    def look():
        found = [e for e in stage.node_events(node) if e["kind"] == kind and e["seq"] > after]
        return found and found[0]

    return wait_for(look, f"{kind} of {node}", deadline) if deadline else until(look, f"{kind} of {node}")


def wait_reason(stage, node, code):
    until(lambda: stage.node(node)["reason"]["code"] == code, f"{node} is {code}")


def spec(stage, node, **keys):
    ours = {"host": stage.bed.ips[HOSTS.get(node, "h2")], "ray_bin": str(stage.bed.ray)}
    return {"name": node, **ours, "identity_file": str(stage.bed.key), "gpu_count": 1, "labels": [node], **keys}


def work(stage, name, **keys):
    entrypoint = ["/bin/sh", "-c", WORK, str(stage.root), name]
    body = stage.spec(entrypoint, n_gpus_per_node=1, submission_id=name, **keys)
    return stage.submit(body, token="admin")


def starts(stage, name):
    path = stage.root / f"{name}.starts"
    return path.read_text().splitlines() if path.exists() else []


def end(stage, name):
    (stage.root / f"{name}.end").touch()


def where(job):
    return [n["name"] for n in job["nodes"]]


# ---- a join, whatever happens to argusd meanwhile ----


@pytest.fixture(scope="module")
def joined(stage):
    """Two machines are added, one of them twice at once; argusd is killed in each phase of that one's join."""
    seen, bed, first = {}, stage.bed, spec(stage, "node-1")
    with Held(bed, "h2", "timeout") as ray_start:
        with Held(bed, "h2", "date") as probe:
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                both = [pool.submit(stage.call, "POST", "/v1/nodes", first) for _ in range(2)]
            seen["twice"] = sorted(f.result().status for f in both)
            seen["other_name"] = stage.call("POST", "/v1/nodes", {**first, "name": "node-9"}).status
            seen["other_spec"] = stage.call("POST", "/v1/nodes", {**first, "gpu_count": 3}).status
            probe.met()
            seen["probe"] = stage.node("node-1")
            crash(stage)
        assert stage.call("POST", "/v1/nodes", spec(stage, "node-2", env=OWN)).status == 201
        ray_start.met()
        seen["start"] = stage.node("node-1")
        stage.more = QUICK_LOOKS
        stage.write_config()
        crash(stage)
        stage.wait_node("node-2", "online")
        silenced = dashboard(stage)
        bed.on("h1", "kill", "-STOP", silenced)
        try:
            ray_start.release()
            wait_reason(stage, "node-1", "joining")
            seen["join"] = stage.node("node-1")
            stage.kill9()
        finally:
            bed.on("h1", "kill", "-CONT", silenced)
        stage.start()
    return {**seen, "online": {name: stage.wait_node(name, "online") for name in HOSTS}}


def test_one_machine_added_twice_at_once_is_one_node(joined):
    assert joined["twice"] == [200, 201]
    assert (joined["other_name"], joined["other_spec"]) == (409, 409)


def test_argusd_was_killed_in_each_phase_of_the_join(joined):
    assert [joined[phase]["state"] for phase in ("probe", "start", "join")] == ["pending"] * 3
    assert [joined[phase]["reason"]["code"] for phase in ("probe", "start", "join")] == ["added", "starting", "joining"]


def test_one_raylet_came_of_it(stage, joined):
    for name in HOSTS:
        assert raylet(stage, name)
        alive = [n for n in stage.cluster("nodes") if n["name"] == name and n["state"] == "online"]
        assert [n["ray_node_id"] for n in alive] == [joined["online"][name]["ray_node_id"]]
    listed = stage.ray("/api/v0/nodes?detail=1")["data"]["result"]["result"]
    assert len([n for n in listed if n["node_ip"] == stage.bed.ips["h2"]]) == 1, "and no other one before it"


# ---- what the processes of a job see of their node's network ----


def test_network_of_each_node_in_the_processes_of_its_ranks(stage, joined):
    """A child of a rank: the JobSpec's own first, then the NodeSpec's, then what was seen of the node."""
    argv = [str(stage.bed.python), "-c", NETWORK]
    body = stage.spec(argv, nnodes=2, n_gpus_per_node=1, env={"NCCL_IB_DISABLE": "0"}, submission_id="network")
    stage.submit(body, token="admin")
    stage.wait_state("network", "SUCCEEDED")
    told = dict(map(json.loads, re.findall(r"(?m)^SEES (.*)$", stage.driver_log("network"))))
    seen = {"NCCL_SOCKET_IFNAME": "=eth0", "GLOO_SOCKET_IFNAME": "eth0", "NCCL_IB_DISABLE": "0"}
    assert {node: stage.node(node)["network_env"] for node in HOSTS} == {
        "node-1": {**seen, "NCCL_IB_DISABLE": "1"},
        "node-2": {**seen, "NCCL_IB_DISABLE": "1", **OWN},
    }
    assert {host: {n: env[n] for n in seen} for host, env in told.items()} == {"h2": seen, "h3": {**seen, **OWN}}


# ---- sshd is gone, the raylet lives ----


@pytest.fixture(scope="module")
def deaf(stage, joined):
    """A job runs on a machine whose sshd goes away and comes back."""
    work(stage, "keeps", pool="node-1", restart={**AGAIN, "avoid_failed_nodes": False})
    stage.wait_state("keeps", "RUNNING")
    before, pid = last_seq(stage), raylet(stage, "node-1")
    stage.bed.verb("kill-sshd", "h2")
    try:
        away = told(stage, "node-1", "node_ssh_unreachable", before)
        during = {"node": stage.node("node-1"), "job": stage.job("keeps")}
    finally:
        stage.bed.verb("start-sshd", "h2")
    back = told(stage, "node-1", "node_ssh_back", before)
    return {"away": away, "back": back, **during, "after": stage.node("node-1"), "pid": pid}


def test_silent_sshd_is_told_and_takes_nothing_away(stage, joined, deaf):
    assert deaf["node"]["state"] == "online" and "ssh_unreachable" in deaf["node"]["flags"]
    assert deaf["away"]["text"] and deaf["away"]["seq"] < deaf["back"]["seq"]
    assert (deaf["after"]["state"], deaf["after"]["flags"]) == ("online", [])
    assert raylet(stage, "node-1") == deaf["pid"]
    assert deaf["after"]["ray_node_id"] == joined["online"]["node-1"]["ray_node_id"]
    assert (deaf["job"]["state"], deaf["job"]["attempt"]) == ("RUNNING", 1)
    assert stage.job("keeps")["state"] == "RUNNING"
    until(lambda: len(starts(stage, "keeps")) == 1, "it told its start")


# ---- a raylet is killed, and a host is destroyed ----


@pytest.fixture(scope="module")
def lost(stage, deaf):
    """At the same time: the raylet of one machine, under its job, and the other machine as a whole."""
    stage.more = ""  # as installed: looks are 15 s apart
    stage.write_config()
    stage.restart()
    for name in HOSTS:
        stage.wait_node(name, "online")
    before, nodes = last_seq(stage), {name: stage.node(name) for name in HOSTS}
    killed = time.time()
    stage.bed.kill("h2", raylet(stage, "node-1"))
    destroyed = time.time()
    stage.bed.verb("destroy", "h3")
    events = {name: told(stage, name, "node_offline", before, LOSS_DEADLINE) for name in HOSTS}
    stage.bed.verb("create", "h3")
    numbers = {"raylet_killed_s": seconds(events["node-1"]["at"]) - killed,
               "host_destroyed_s": seconds(events["node-2"]["at"]) - destroyed}  # fmt: skip
    stage.keep("loss_to_event.json", numbers)
    print(f"from the loss to its event: {numbers}")
    back = {name: told(stage, name, "node_online", events[name]["seq"]) for name in HOSTS}
    return {"before": nodes, "events": events, "back": back, "after": {name: stage.node(name) for name in HOSTS}}


def test_killed_raylet_is_found_and_started_anew(stage, lost):
    assert lost["events"]["node-1"]["reason"]["code"] in ("raylet_died", "ray_dead")
    assert lost["events"]["node-1"]["text"] and lost["back"]["node-1"]["actor"] == "argusd"
    assert lost["after"]["node-1"]["ray_node_id"] != lost["before"]["node-1"]["ray_node_id"]
    assert raylet(stage, "node-1")


def test_destroyed_host_is_found_and_taken_back(stage, lost):
    assert lost["events"]["node-2"]["reason"]["code"] in ("node_unreachable", "ray_dead")
    assert lost["back"]["node-2"]["actor"] == "argusd"
    assert lost["after"]["node-2"]["ray_node_id"] != lost["before"]["node-2"]["ray_node_id"]
    assert lost["after"]["node-2"]["host_key"] == lost["before"]["node-2"]["host_key"]
    assert raylet(stage, "node-2")


def test_job_of_the_killed_raylet_starts_again(stage, lost):
    again = stage.wait_job("keeps", lambda j: j["state"] == "RUNNING" and j["attempt"] == 2, "runs again")
    assert (where(again), again["restarts"]) == (["node-1"], 1)
    found = until(lambda: stage.get("/v1/jobs/keeps/findings")["findings"], "why it ended is found")
    assert [(f["attempt"], f["class"], f["node"]) for f in found] == [(1, "node_lost", "node-1")]
    until(lambda: len(starts(stage, "keeps")) == 2, "it told its second start")
    end(stage, "keeps")
    assert stage.wait_state("keeps", "SUCCEEDED")["attempt"] == 2


# ---- the head loses its raylet, under a job ----


@pytest.fixture(scope="module")
def maimed(stage, lost):
    """What runs goes on by the head's GCS. When it is over the head is started anew, and not before."""
    work(stage, "rides", pool="node-2")
    stage.wait_state("rides", "RUNNING")
    before, gcs = last_seq(stage), pids(stage, "h1", "gcs_server")
    stage.bed.kill("h1", *pids(stage, "h1", "raylet"))
    wait_reason(stage, "head", "gcs_alone")
    during = {"job": stage.job("rides"), "gcs": pids(stage, "h1", "gcs_server"), "was": gcs}
    end(stage, "rides")
    over = stage.wait_over("rides")
    head = told(stage, "head", "node_online", before)
    for name in HOSTS:
        told(stage, name, "node_online", head["seq"])
    return {**during, "over": over}


@pytest.mark.nightly  # a minute; the killed head is in every check
def test_head_without_its_raylet_is_not_ended_under_a_job(stage, maimed):
    assert maimed["gcs"] == maimed["was"] and len(maimed["was"]) == 1
    assert (maimed["job"]["state"], maimed["job"]["attempt"]) == ("RUNNING", 1)
    assert (maimed["over"]["state"], maimed["over"]["attempt"]) == ("SUCCEEDED", 1)
    assert len(starts(stage, "rides")) == 1
    assert pids(stage, "h1", "gcs_server") != maimed["was"]


# ---- the head is killed ----


@pytest.fixture(scope="module")
def beheaded(stage, lost):
    before, nodes = last_seq(stage), {name: stage.node(name) for name in HOSTS}
    killed = time.time()
    stage.bed.kill("h1", *pids(stage, "h1", "raylet"), *pids(stage, "h1", "gcs_server"), dashboard(stage))
    gone = told(stage, "head", "node_offline", before, LOSS_DEADLINE)
    stage.keep("head_to_event.json", {"head_killed_s": seconds(gone["at"]) - killed})
    head = told(stage, "head", "node_online", before)
    back = {name: told(stage, name, "node_online", head["seq"]) for name in HOSTS}
    return {"before": nodes, "gone": gone, "head": head, "back": back, "after": {n: stage.node(n) for n in HOSTS}}


def test_killed_head_is_started_anew_and_takes_its_nodes_in_again(stage, beheaded):
    assert beheaded["gone"]["reason"]["code"] and beheaded["gone"]["text"]
    assert len(pids(stage, "h1", "gcs_server")) == 1
    for name in HOSTS:
        assert beheaded["after"][name]["state"] == "online"
        assert beheaded["after"][name]["ray_node_id"] != beheaded["before"][name]["ray_node_id"]
        assert raylet(stage, name)
    assert {n["name"] for n in stage.cluster("nodes") if n["state"] == "online"} == {"head", *HOSTS}


# ---- drains, whatever happens to argusd meanwhile ----


def drain(stage, node, **how):
    reply = stage.call("POST", f"/v1/nodes/{node}:drain", how)
    assert reply.status == 202, reply


@pytest.fixture(scope="module")
def restarted(stage, beheaded):
    """Its node is drained under a job that is to go on elsewhere; argusd is killed before and in the stop."""
    work(stage, "moves", restart=AGAIN)
    (first,) = where(stage.wait_state("moves", "RUNNING"))
    (other,) = set(HOSTS) - {first}
    with Held(stage.bed, HOSTS[first], "ln") as stop:  # the first thing that a stop does there
        drain(stage, first, deadline="1s", then="restart")
        draining = stage.node(first)
        crash(stage)
        moved = stage.wait_job("moves", lambda j: j["state"] == "RUNNING" and j["attempt"] == 2, "runs elsewhere")
        stop.met()
        leaving = stage.node(first)
        stage.kill9()
    stage.start()
    offline = stage.wait_node(first, "offline")
    work(stage, "waits", pool=first)
    seen = {"draining": draining, "leaving": leaving, "moved": moved, "offline": offline}
    return {"first": first, "other": other, **seen}


def test_drain_with_restart_moves_the_job(stage, restarted):
    assert restarted["draining"]["state"] == "draining" and restarted["draining"]["drain"]["then"] == "restart"
    assert where(restarted["moved"]) == [restarted["other"]]
    until(lambda: len(starts(stage, "moves")) == 2, "it told its second start")
    assert "node_drain_due" in [e["kind"] for e in stage.node_events(restarted["first"])]


def test_drained_machine_is_stopped_though_argusd_was_killed(stage, restarted):
    assert (restarted["leaving"]["state"], restarted["leaving"]["reason"]["code"]) == ("draining", "stopping")
    assert (restarted["offline"]["state"], restarted["offline"]["want"]) == ("offline", "drained")
    assert pids(stage, HOSTS[restarted["first"]], "raylet") == []


@pytest.fixture(scope="module")
def stopped(stage, restarted):
    """The other machine is drained as well, and its job is not to go on."""
    before = last_seq(stage)
    drain(stage, restarted["other"], deadline="1s", then="stop")
    crash(stage)
    over = stage.wait_over("moves")
    offline = stage.wait_node(restarted["other"], "offline")
    waits = stage.job("waits")
    reply = stage.call("POST", f"/v1/nodes/{restarted['first']}:undrain", {})
    assert reply.status == 202, reply
    back = stage.wait_node(restarted["first"], "online")
    runs = stage.wait_state("waits", "RUNNING")
    end(stage, "waits")
    return {"over": over, "offline": offline, "waits": waits, "back": back, "runs": runs, "before": before}


def test_drain_with_stop_ends_the_job(stage, restarted, stopped):
    assert (stopped["over"]["state"], stopped["over"]["attempt"]) == ("STOPPED", 2)
    assert restarted["other"] in stopped["over"]["reason"]["text"]
    assert len(starts(stage, "moves")) == 2
    assert stopped["offline"]["want"] == "drained" and pids(stage, HOSTS[restarted["other"]], "raylet") == []


def test_drained_machines_get_nothing_new(stage, restarted, stopped):
    assert (stopped["waits"]["state"], stopped["waits"]["attempts"]) == ("QUEUED", [])
    assert (where(stopped["runs"]), stopped["runs"]["attempt"]) == ([restarted["first"]], 1)
    online = told(stage, restarted["first"], "node_online", stopped["before"])
    (admitted,) = [e["seq"] for e in stage.events("waits") if e["kind"] == "admitted"]
    assert online["seq"] < admitted
    stage.wait_state("waits", "SUCCEEDED")
    assert len(starts(stage, "waits")) == 1
