# SPDX-License-Identifier: Apache-2.0
"""What a job takes of its nodes: its scout adds up its processes, argusd reads that beside what the node itself does,
and what nobody measured is told as nothing."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
from figurebed import World
from programs import PROGRAMS
from scouting import Node
from shepherding import needs_shepherd, wait_for

from argusd import needs_argusd, until

pytestmark = [needs_argusd, needs_shepherd]

OF_NODE = ("cpu_util_ratio", "mem_used_bytes", "net_sent_bytes_per_second", "disk_read_bytes_per_second")


@pytest.fixture
def node(tmp_path):
    made = Node(tmp_path, "exit 0")
    yield made
    made.close()


def test_a_scout_adds_up_its_own_processes(node):
    file = node.dir / "load" / f"{node.name}.json"

    def load(ok):
        def there():
            said = json.loads(file.read_text()) if file.exists() else None
            return said if said and ok(said) else None

        return wait_for(there, "what the processes take")

    worker = node.worker()
    spins = node.start(["/bin/sh", "-c", "while :; do :; done"], {**os.environ, **node.marks()})
    told = load(lambda s: s["processes"] >= 2 and (s["cpu_cores"] or 0) > 0)
    page = os.sysconf("SC_PAGESIZE")
    resident, shared = (int(n) for n in pathlib.Path(f"/proc/{worker}/statm").read_text().split()[1:3])
    assert told["mem_bytes"] > (resident - shared) * page / 2
    os.kill(spins, signal.SIGKILL)
    load(lambda s: s["at"] > told["at"] and s["processes"] < told["processes"])
    os.kill(worker, signal.SIGKILL)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("load"))
    yield made
    made.close()


def submit(world, name, with_scout=False):
    """A job on one GPU that waits for its gate; with a scout as its hook would start it."""
    gate = world.argusd.root / "common" / f"{name}.gate"
    scout = (
        f"P=/tmp/argus-{os.getuid()}-$ARGUS_JOB_ID-a1-test; mkdir $P; "
        f'{PROGRAMS["argus-shepherd"]} --scout "$ARGUS_ATTEMPT_DIR" $P {os.getpid()} "$ARGUS_DRIVER_NODE"; '
    )
    wait = f"while [ ! -e {gate} ]; do sleep 0.1; done"
    job = world.argusd.submit((scout if with_scout else "") + wait, name=name, n_gpus_per_node=1)
    [held] = world.argusd.wait_state(job, "RUNNING")["nodes"]
    return job, held["name"], gate


def load_of(world, job, ok):
    def there():
        page = world.argusd.get(f"/v1/jobs/{job}/load")
        return page if page["nodes"] and ok(page["nodes"][0]) else None

    return until(there, "the job's nodes")


def test_a_job_beside_its_node(world):
    job, name, gate = submit(world, "counted", with_scout=True)
    page = load_of(world, job, lambda h: h["job_cpu_cores"] is not None and all(h[f] is not None for f in OF_NODE))
    [host] = page["nodes"]
    assert (host["node"], host["alone"]) == (name, True) and host["job_processes"] >= 1
    assert page["job_cpu_cores"] == host["job_cpu_cores"] and page["job_mem_bytes"] == host["job_mem_bytes"] > 0
    env = {**os.environ, "ARGUS_URL": world.argusd.url, "ARGUS_TOKEN": world.argusd.tokens["user"], "LANG": "C.UTF-8"}
    top = subprocess.run([PROGRAMS["argus"], "top", job], env=env, check=True, capture_output=True, text=True).stdout
    assert re.search(r"^its nodes +its processes keep \d+\.\d CPU cores busy and hold \d+\.\d GiB", top, re.M), top
    assert host["net_rdma_sent_bytes_per_second"] is None, "nobody looks at a node that is not registered"
    others = [submit(world, f"beside-{n}") for n in range(3)]  # all four GPUs are held
    load_of(world, job, lambda h: not h["alone"])
    for _, _, other in others:
        other.touch()
    load_of(world, job, lambda h: h["alone"])
    gate.touch()
    world.argusd.wait_over(job)
    page = world.argusd.get(f"/v1/jobs/{job}/load")
    assert page == {"id": job, "job_cpu_cores": None, "job_mem_bytes": None, "nodes": []}
    for other, _, _ in others:
        world.argusd.wait_over(other)


def test_what_is_not_measured_is_told_as_nothing(world):
    """No scout, a file that is old, lies or is a link: the node's own figures stand all the same."""
    job, name, gate = submit(world, "blind")
    of_job = ("job_processes", "job_cpu_cores", "job_mem_bytes")
    folder = world.argusd.job_dir(job) / "attempts/1/load"
    folder.mkdir(parents=True)
    file, secret = folder / f"{name}.json", world.argusd.root / "common" / "theirs.json"

    def told(said):
        file.unlink(missing_ok=True)
        file.write_text(json.dumps(said))
        return load_of(world, job, lambda h: h["cpu_util_ratio"] is not None)["nodes"][0]

    now = lambda: int(time.time() * 1e6)  # noqa: E731
    first = load_of(world, job, lambda h: h["cpu_util_ratio"] is not None)
    assert [first["nodes"][0][k] for k in of_job] == [None] * 3 and first["job_cpu_cores"] is None
    good = {"processes": 3, "cpu_cores": 1.5, "mem_bytes": 4096}
    assert [told({"at": now(), **good})[k] for k in of_job] == [3, 1.5, 4096]
    assert [told({"at": now() - 600_000_000, **good})[k] for k in of_job] == [None] * 3
    lie = {"at": now(), "processes": -7, "cpu_cores": 1e300, "mem_bytes": 4096}
    assert [told(lie)[k] for k in of_job] == [None, None, 4096]
    assert [told("x" * 5000)[k] for k in of_job] == [None] * 3
    secret.write_text(json.dumps({"at": now(), **good}))
    file.unlink()
    file.symlink_to(secret)
    [linked] = world.argusd.get(f"/v1/jobs/{job}/load")["nodes"]
    assert [linked[k] for k in of_job] == [None] * 3
    env = {**os.environ, "ARGUS_URL": world.argusd.url, "ARGUS_TOKEN": world.argusd.tokens["user"], "LANG": "C.UTF-8"}
    top = subprocess.run([PROGRAMS["argus"], "top", job], env=env, check=True, capture_output=True, text=True).stdout
    assert job in top and "its processes keep" not in top
    gate.touch()
    world.argusd.wait_over(job)
