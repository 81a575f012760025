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
assert group.wait(120)
print("HOLDS", flush=True)
signal.pause()
"""


@pytest.fixture(scope="module", params=["2.51.1", "2.60.0"])
def bed(request):
    return BEDS.get(request.param)


@pytest.fixture(scope="module")
def argusd(bed, tmp_path_factory):
    with Argusd(tmp_path_factory.mktemp("argusd"), bed.url) as a:
        wait_for(lambda: len(nodes(a)) == 2, "both workers are there", 60)
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
        if way == "no CPU":
            assert "head" not in row["nodes"], row
            continue
        assert set(row["nodes"]) <= set(names), row
        assert all(gpus <= per_node for gpus in row["nodes"].values()), row
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
assert group.wait(60)
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


@pytest.mark.nightly(on="2.51.1")  # the new Ray's in every check
def test_a_breach_is_an_event_only_where_argus_yaml_says_so(bed, tmp_path):
    with Argusd(tmp_path, bed.url, more="lease_breach: event") as argusd:
        wait_for(lambda: len(nodes(argusd)) == 2, "both workers are there", 60)
        script = ESCAPE.replace("INNER", repr(OUTSIDE["group"].replace("NODE", "h3")))
        job = submit(argusd, bed, script, n_gpus_per_node=1)
        wait_for(lambda: "lease_breach" in argusd.kinds(job), "the breach is told", 120)
        assert argusd.wait_job(job, lambda j: j["placement"], "is read back")["state"] == "RUNNING"
        argusd.stop_job(job)
        assert argusd.wait_over(job)["state"] == "STOPPED"


def test_what_is_within_is_proven(argusd, bed, gang):
    """The gang's own page says where it really is."""
    placement = argusd.wait_job(gang, lambda j: j["placement"] and j["placement"]["nodes"], "is read back")["placement"]
    assert placement["ok"] and placement["checked_at"], placement
    assert {n["name"]: (n["gpus"], n["leased_gpus"], n["bundles"]) for n in placement["nodes"]} == {
        "h2": (1, 1, 1),
        "h3": (1, 1, 1),
    }
    assert "lease_breach" not in argusd.kinds(gang)


@pytest.mark.nightly(on="2.51.1")  # the new Ray's in every check
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


@pytest.mark.nightly(on="2.51.1")  # the new Ray's in every check
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
    (note,) = [e for e in argusd.events(job) if e["kind"] == "lease_unbound"]
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
        wait_for(lambda: len(nodes(argusd)) == 5, "all raylets are there", 60)
        twin = submit(argusd, bed, str(GREEDY), 2, 1, nnodes=1, n_gpus_per_node=2, pool="twins")
        plain = submit(argusd, bed, str(GREEDY), 2, 2, "dealt", nnodes=2, n_gpus_per_node=2, pool="plain")
        for job in (twin, plain):
            wait_log(argusd, job, "DONE")
            assert argusd.wait_over(job)["state"] == "SUCCEEDED", log(argusd, job)[-3000:]
        check_greedy(log(argusd, twin), 2, ["twin"], ["h2", "h3", "plain2", "plain34"])
        check_greedy(log(argusd, plain), 2, ["plain2", "plain34"], ["h2", "h3", "twin"])
    finally:
        BEDS.drop()
