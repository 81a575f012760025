# SPDX-License-Identifier: Apache-2.0
"""GPU demand is bound to the lease on real Ray: the founding version and the newest.

A greedy job beside a training gang asks for GPUs in every way there is (greedy.py), on nodes that have more GPUs free
than it has leased. Nothing of it may be anywhere else, or more, than its lease."""

import json
import pathlib
import re

import pytest
from fakeray import wait_for
from raybed import BEDS

from argusd import Argusd, needs_argusd

pytestmark = [pytest.mark.ray, needs_argusd, pytest.mark.timeout(900)]

GREEDY = pathlib.Path(__file__).with_name("greedy.py")
GANG = """
import signal, sys, ray
from ray.util.placement_group import placement_group
ray.init()
n = int(sys.argv[1])
group = placement_group([{"GPU": 1, "CPU": 1}] * n, strategy="STRICT_SPREAD")
assert group.wait(240)
print("HOLDS", flush=True)
signal.pause()
"""


@pytest.fixture(scope="module", params=[pytest.param("2.51.1", marks=pytest.mark.nightly), "2.60.0"])
def bed(request):
    return BEDS.get(request.param)


@pytest.fixture(scope="module")
def argusd(bed, tmp_path_factory):
    with Argusd(tmp_path_factory.mktemp("argusd"), bed.url) as a:
        wait_for(lambda: len(nodes(a)) == 2, "both workers are there")
        yield a


def nodes(argusd):
    return [n for n in argusd.get("/v1/nodes")["nodes"] if n["state"] == "online" and not n["is_head"]]


def submit(argusd, bed, script, *args, **keys):
    argv = [str(bed.python), *(["-c", script] if "\n" in script else [script]), *map(str, args)]
    return argusd.submit(argusd.spec(argv, **keys))


def log(argusd, job):
    path = argusd.log_file(job)
    return re.sub(r"\x1b\[[0-9;]*m", "", path.read_text(errors="replace")) if path.exists() else ""


def wait_log(argusd, job, text):
    def is_there():
        said, state = log(argusd, job), argusd.job(job)["state"]
        assert text in said or state in ("QUEUED", "STARTING", "RUNNING"), f"{state}: {said[-3000:]}"
        return text in said

    wait_for(is_there, f"{text!r} in the log of {job}", 400)


def rows(said):
    return {r["way"]: r for r in map(json.loads, re.findall(r"(?m)^GOT (.*)$", said))}


@pytest.fixture
def gang(argusd, bed):
    """One GPU of each node, held as a training holds it."""
    job = submit(argusd, bed, GANG, 2, nnodes=2, n_gpus_per_node=1)
    wait_log(argusd, job, "HOLDS")
    yield job
    argusd.stop_job(job)
    argusd.wait_over(job)


def check_greedy(said, per_node, names, others=()):
    """All ways, each within the lease."""
    got = rows(said)
    for way, row in got.items():
        assert set(row["nodes"]) <= set(names), row
        assert way == "no CPU" or all(gpus <= per_node for gpus in row["nodes"].values()), row
    total = per_node * len(names)
    assert got["actors"]["came"] == got["actors"]["first"] == total, got["actors"]
    for way in got:
        if way.startswith("group"):
            assert got[way]["came"], way
    assert sum(got["groups of actors"]["nodes"].values()) == total
    assert not got["beside full groups"]["came"]
    assert [w for w in got if w.startswith("beyond") and got[w]["came"]] == []
    assert {w: r["nodes"] for w, r in got.items() if w.startswith("affinity")} == {
        **{f"affinity {n}": {} for n in others},
        **{f"affinity {n}": {n: 1} for n in names},
    }


@pytest.mark.nightly  # two minutes and a half with each Ray
def test_a_greedy_job_beside_a_gang_stays_in_its_lease(argusd, bed, gang):
    """Each node has four GPUs: one is the gang's, two are leased here, one is free for nobody."""
    job = submit(argusd, bed, str(GREEDY), 2, 2, nnodes=2, n_gpus_per_node=2)
    wait_log(argusd, job, "DONE")
    assert argusd.wait_over(job)["state"] == "SUCCEEDED", log(argusd, job)[-3000:]
    said = log(argusd, job)
    check_greedy(said, 2, ["h2", "h3"])
    assert len(re.findall(r"argus: this job asks Ray for 3 GPUs on one node, and its lease has 4 GPUs", said)) == 1
    assert "could not be bound" not in said
    assert argusd.job(gang)["state"] == "RUNNING"


ESCAPE = """
import os, signal, sys
del os.environ["ARGUS_LEASE"]  # as a job that has its own way of starting Python
os.execv(sys.executable, [sys.executable, "-c", INNER])
"""
OUTSIDE = {
    "actor": """
import ray, signal
ray.init()
Holder = type("Holder", (), {"at": lambda self: 1})
holder = ray.remote(num_gpus=2, label_selector={"argus.node": "NODE"})(Holder).remote()
ray.get(holder.at.remote())
print("OUT", flush=True)
signal.pause()
""",
    "group": """
import ray, signal
from ray.util.placement_group import placement_group
ray.init()
there = [{"argus.node": "NODE"}] * 3
group = placement_group([{"GPU": 1}] * 3, strategy="STRICT_PACK", bundle_label_selector=there)
assert group.wait(240)
print("OUT", flush=True)
signal.pause()
""",
}


@pytest.mark.parametrize("kind", sorted(OUTSIDE))
def test_what_is_outside_is_found_and_the_job_is_stopped(argusd, bed, kind):
    """A job that escapes the hook: the read-back tells where it is and how much, and stops it."""
    job = submit(argusd, bed, "import signal\nsignal.pause()", n_gpus_per_node=1)  # where the next one is not
    inside = argusd.wait_state(job, "RUNNING")["nodes"][0]["name"]
    outside = {"h2": "h3", "h3": "h2"}[inside]
    script = ESCAPE.replace("INNER", repr(OUTSIDE[kind].replace("NODE", outside)))
    escaped = submit(argusd, bed, script, n_gpus_per_node=1)
    got = argusd.wait_over(escaped)
    argusd.stop_job(job)
    argusd.wait_over(job)
    leased = got["nodes"][0]["name"]
    assert got["state"] == "FAILED" and got["reason"]["code"] == "lease_breach", got
    (event,) = [e for e in argusd.events(escaped) if e["kind"] == "lease_breach"]
    gpus = {"actor": 2, "group": 3}[kind]
    told = [n for n in ("h2", "h3") if f"{gpus} GPUs on '{n}', where it has {int(n == leased)} (" in event["text"]]
    assert told == [outside] if kind == "actor" else len(told) == 1, event  # a group goes where Ray likes
    (where,) = told
    assert {"actor": "actor Holder (pid ", "group": "placement group "}[kind] in event["text"]
    placement = got["placement"]
    assert not placement["ok"] and placement["beyond_gpus"] == gpus - int(where == leased)
    assert [n for n in placement["nodes"] if n["name"] == where][0]["gpus"] == gpus


def test_a_breach_is_an_event_only_where_argus_yaml_says_so(bed, tmp_path):
    with Argusd(tmp_path, bed.url, more="lease_breach: event") as argusd:
        wait_for(lambda: len(nodes(argusd)) == 2, "both workers are there")
        script = ESCAPE.replace("INNER", repr(OUTSIDE["group"].replace("NODE", "h3")))
        job = submit(argusd, bed, script, n_gpus_per_node=1)
        wait_for(lambda: "lease_breach" in argusd.kinds(job), "the breach is told")
        assert argusd.wait_job(job, lambda j: j["placement"], "is read back")["state"] == "RUNNING"
        argusd.stop_job(job)
        assert argusd.wait_over(job)["state"] == "STOPPED"


def test_what_is_within_is_proven(argusd, bed, gang):
    """The gang's own page says where it really is."""

    def is_whole(view):
        rows = (view["placement"] or {}).get("nodes") or []
        told = {n["name"]: (n["gpus"], n["leased_gpus"], n["bundles"]) for n in rows}
        return told == dict.fromkeys(("h2", "h3"), (1, 1, 1))

    placement = argusd.wait_job(gang, is_whole, "is read back")["placement"]
    assert placement["ok"] and placement["checked_at"], placement
    assert "lease_breach" not in argusd.kinds(gang)


AS_VERL = """
import json, sys, ray
from ray._private.state import state
from ray.util.placement_group import placement_group, placement_group_table
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as Affinity
ray.init()
NAMES = {n["NodeID"]: next((r[11:] for r in n["Resources"] if r.startswith("argus_node_")), "head")
         for n in state.node_table() if n["Alive"]}
def here(self=None):
    return NAMES[ray.get_runtime_context().get_node_id()]
Worker, task = type("Worker", (), {"here": here}), ray.remote(num_cpus=0.1)(lambda: here())
held = []  # until the end
def actors(nodes, **options):
    for i in range(2):
        where = {"scheduling_strategy": Affinity(nodes[i % len(nodes)], soft=True)} if nodes else {}
        held.append(ray.remote(**options)(Worker).options(**where).remote())
    return sorted(set(ray.get([a.here.remote() for a in held[-2:]])))
def group(strategy):
    held.append(placement_group([{"CPU": 0.1}] * 4, strategy=strategy))
    assert held[-1].wait(240), strategy
    return sorted({NAMES[n] for n in placement_group_table(held[-1])["bundles_to_node_id"].values()})
listed = [n["NodeID"] for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) > 0]
got = {
    "driver": [here()],
    "listed": sorted(NAMES[n] for n in listed),
    "verl": actors(listed, num_cpus=0.1),
    "any node": actors(sorted(NAMES), num_cpus=0.1),
    "no CPU": actors([], num_cpus=0),
    "tasks": sorted(set(ray.get([task.options(scheduling_strategy="SPREAD").remote() for _ in range(6)]))),
    **{s: group(s) for s in ("PACK", "SPREAD", "STRICT_PACK")},
}
print("GOT " + json.dumps(got), flush=True)
import signal
signal.pause()
"""


def spread_over(argusd, job):
    wait_log(argusd, job, "GOT ")
    (line,) = wait_for(lambda: re.findall(r"(?m)^GOT (.*\})$", log(argusd, job)), "the whole of its line")
    return json.loads(line)


def read_back(argusd, job, actors):
    """The job's page, once it tells of so many actors."""

    def has(view):
        return view["placement"] and sum(n["actors"] for n in view["placement"]["nodes"]) >= actors

    return argusd.wait_job(job, has, "its actors are read back")["placement"]


def end(argusd, *jobs):
    for job in jobs:
        argusd.stop_job(job)
    for job in jobs:
        argusd.wait_over(job)


def test_what_needs_no_gpu_stays_on_the_lease(argusd, bed):
    """Two jobs beside each other, each with a whole node, and each does as verl does: actors that hold no GPU go around
    all nodes of Ray's list, by soft affinities."""
    jobs = [submit(argusd, bed, AS_VERL, n_gpus_per_node=4) for _ in range(2)]
    homes = set()
    for job in jobs:
        got = spread_over(argusd, job)
        (home,) = [n["name"] for n in argusd.job(job)["nodes"]]
        assert {tuple(places) for places in got.values()} == {(home,)}, (home, got)
        placement = read_back(argusd, job, 6)
        assert placement["ok"] and placement["actors_outside"] == 0, placement
        assert [(n["name"], n["is_leased"]) for n in placement["nodes"]] == [(home, True)]
        assert "outside_lease" not in argusd.kinds(job)
        homes.add(home)
    assert homes == {"h2", "h3"}
    end(argusd, *jobs)


def test_a_job_without_gpus_has_a_lease_too_and_may_leave_it_if_it_says_so(argusd, bed):
    job, free = submit(argusd, bed, AS_VERL), submit(argusd, bed, AS_VERL, spread="cluster")
    got = spread_over(argusd, job)
    (home,) = [n["name"] for n in argusd.job(job)["nodes"]]
    assert {tuple(places) for places in got.values()} == {(home,)}, (home, got)
    got = spread_over(argusd, free)
    (home,) = [n["name"] for n in argusd.job(free)["nodes"]]
    assert got["driver"] == [home] and got["listed"] == ["h2", "h3"]
    assert got["verl"] == got["SPREAD"] == ["h2", "h3"]
    assert not [way for way, places in got.items() if "head" in places], got
    placement = read_back(argusd, free, 6)
    assert placement["ok"] and placement["actors_outside"] > 0, placement
    assert sorted(n["is_leased"] for n in placement["nodes"]) == [False, True]
    assert "outside_lease" not in argusd.kinds(free)
    end(argusd, job, free)


def test_an_actor_outside_of_the_lease_is_told_and_no_breach(argusd, bed):
    script = ESCAPE.replace("INNER", repr(AS_VERL))
    job = submit(argusd, bed, script, n_gpus_per_node=1)
    wait_for(lambda: "outside_lease" in argusd.kinds(job), "it is told")
    (home,) = [n["name"] for n in argusd.job(job)["nodes"]]
    (event,) = [e for e in argusd.events(job) if e["kind"] == "outside_lease"]
    other = {"h2": "h3", "h3": "h2"}[home]
    assert event["text"] == f"actor Worker runs on '{other}', which this job has not leased"
    placement = read_back(argusd, job, 6)
    assert placement["ok"] and placement["actors_outside"] > 0
    assert argusd.job(job)["state"] == "RUNNING"
    end(argusd, job)


def test_a_job_without_gpus_gets_none(argusd, bed):
    script = """
import ray
ray.init()
f = ray.remote(num_gpus=1)(lambda: 1)
print("CAME" if ray.wait([f.remote()], timeout=5)[0] else "WAITS", flush=True)
"""
    job = submit(argusd, bed, script)
    assert argusd.wait_over(job)["state"] == "SUCCEEDED", log(argusd, job)
    assert "WAITS" in log(argusd, job)
    assert "argus: this job asks Ray for 1 GPUs on one node, and its lease has 0 GPUs" in log(argusd, job)


def test_a_hook_that_fails_leaves_a_note(argusd, bed):
    """Ray as it may be one day: what the hook wants to change is not there. The job runs, unbound, and that is told."""
    script = """
import json, os, signal, sys
lease = json.loads(os.environ["ARGUS_LEASE"])
other = {"h2": "h3", "h3": "h2"}[lease["nodes"][0]["name"]]
import ray.actor
find = next(f for f in sys.meta_path if type(f).__name__ == "_ArgusFinder")
import ray
broken = type(find)._arm.__globals__["_ArgusLease"]
broken._place_one = lambda *a: 1 / 0
ray.init()
Holder = type("Holder", (), {"at": lambda self: 1})
holder = ray.remote(num_gpus=1, label_selector={"argus.node": other})(Holder).remote()
ray.get(holder.at.remote())
signal.pause()
"""
    job = submit(argusd, bed, script, n_gpus_per_node=1)
    assert argusd.wait_over(job)["reason"]["code"] == "lease_breach", log(argusd, job)
    assert "argus: GPU demand could not be bound to the lease (remote: ZeroDivisionError" in log(argusd, job)
    notes = lambda: [e for e in argusd.events(job) if e["kind"] == "lease_unbound"]  # noqa: E731
    (note,) = wait_for(notes, "it is told")
    assert "remote: ZeroDivisionError: division by zero" in note["text"]


def start_raylet(bed, host, name, gpus, *options, **resources):
    """One more raylet in a host of the bed, at its address, with ports of its own."""
    port = 20000 + 2000 * len(name)
    bed.on(
        host,
        *("env", "-u", "SSH_CLIENT", str(bed.ray), "start", f"--address={bed.info['gcs_address']}"),
        *(f"--node-ip-address={bed.ips[host]}", "--num-cpus=20", f"--num-gpus={gpus}", "--disable-usage-stats"),
        *(f"--resources={json.dumps({'worker_node': 100, f'argus_node_{name}': 1000, **resources})}", *options),
        *("--object-store-memory=100000000", f"--dashboard-agent-listen-port={port}"),
        *(f"--min-worker-port={port + 100}", f"--max-worker-port={port + 1900}"),
    )


@pytest.mark.nightly
def test_two_raylets_at_one_address_and_nodes_that_others_started(argusd, bed):
    """Last, since the bed is another one then. Two more raylets at the addresses of the first two: one has shares and a
    label as ours have, the other has neither, as in a cluster that somebody else started."""
    shares = {f"argus_share_{i}": 1 for i in range(16)}
    try:
        start_raylet(bed, "h2", "twin", 4, "--labels=argus.node=twin,argus.pool=twins", **shares)
        start_raylet(bed, "h2", "plain2", 3, "--labels=argus.pool=plain")
        start_raylet(bed, "h3", "plain34", 3, "--labels=argus.pool=plain")
        wait_for(lambda: len(nodes(argusd)) == 5, "all raylets are there")
        twin = submit(argusd, bed, str(GREEDY), 2, 1, nnodes=1, n_gpus_per_node=2, pool="twins")
        plain = submit(argusd, bed, str(GREEDY), 2, 2, "dealt", nnodes=2, n_gpus_per_node=2, pool="plain")
        for job in (twin, plain):
            wait_log(argusd, job, "DONE")
            assert argusd.wait_over(job)["state"] == "SUCCEEDED", log(argusd, job)[-3000:]
        check_greedy(log(argusd, twin), 2, ["twin"], ["h2", "h3", "plain2", "plain34"])
        check_greedy(log(argusd, plain), 2, ["plain2", "plain34"], ["h2", "h3", "twin"])
    finally:
        BEDS.drop()
