# SPDX-License-Identifier: Apache-2.0
"""What a snapshot's setup files ask for is read, shown, and held against what the machines of a submit's pool have."""

import contextlib
import json
import os
import sqlite3
import subprocess

import pytest
from fakeray import FakeRay
from programs import PROGRAMS
from snapshots import added, tar, verl

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

PYPROJECT = """
[project]
name = "mycode"
requires-python = ">=3.10"
dependencies = [
    "torch>=2.4,!=2.5.*",  # as tested
    "ray[default]>=2.41",
]
"""
TREE = {**verl("0.9.1"), "pyproject.toml": PYPROJECT, "requirements.txt": "numpy<2.0.0\ntorch>=9\n"}
NEEDS = ["python>=3.10", "torch>=2.4,!=2.5.*", "ray>=2.41", "numpy<2.0.0"]


def ready(argusd):
    until(lambda: argusd.call("GET", "/readyz").status == 200, "Ray answers")
    until((argusd.root / "argus/.shared-root").exists, "the shared root is prepared")


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("needs"), ray.url) as a:
        ready(a)
        yield a


def give_facts(argusd, node, online=False, **facts):
    """As a probe of this machine would have left them, and its join."""
    argusd.stop()
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db, db:
        (body,) = db.execute("SELECT body FROM entry WHERE kind = 'node' AND name = ?", (node,)).fetchone()
        row = json.loads(body)
        row["facts"] = {**(row.get("facts") or {}), **facts}
        if online:
            row.update(state="online", step="in", may_run=True)
        db.execute("UPDATE entry SET body = ? WHERE kind = 'node' AND name = ?", (json.dumps(row), node))
    argusd.start()
    ready(argusd)


def register(argusd, **pools):
    for name, pool in pools.items():
        reply = argusd.call("POST", "/v1/nodes", {"name": name, "host": f"{name}.invalid", "labels": [pool]})
        assert reply.status in (200, 201, 202), reply


def spec(pool, snapshot, **more):
    job = {"workload": "ray", "entrypoint": "true", "n_gpus_per_node": 0}
    return {**job, "pool": pool, "working_dir": snapshot, **more}


def asked(argusd, pool, snapshot="her@1", **more):
    """What a dry run says of needs: its status, and the sentences."""
    reply = argusd.post(spec(pool, snapshot, **more), query="?dry_run=1", token="user")
    assert reply.status in (200, 422), reply
    return reply.status, [w["detail"] for w in reply.json()["problems"] if "does not fit" in w["detail"]]


def cli(argusd, *args, lang="C", code=0):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "LANG": lang, "LC_ALL": lang}
    p = subprocess.run([PROGRAMS["argus"], *args], capture_output=True, text=True, env=env)
    assert p.returncode == code, p
    return p.stdout


def test_read_and_shown(argusd):
    snapshot = added(argusd, "my@1", tar(TREE))
    assert snapshot["needs"] == NEEDS
    assert argusd.get("/v1/snapshots/my@1", token="user")["needs"] == NEEDS
    shown = cli(argusd, "snapshot", "show", "my@1")
    assert [x for x in shown.splitlines() if x.startswith("needs ")] == [f"needs {x}" for x in NEEDS]
    assert added(argusd, "bare@1", tar({"a.py": "1\n"}))["needs"] == []
    evil = {"setup.py": "install_requires = [" + '"' * 3000, "a": "numpy<2\n", "requirements.txt": ("l", "a")}
    assert added(argusd, "evil@1", tar(evil))["needs"] == []


def test_against_the_machines_of_the_pool(argusd):
    added(argusd, "her@1", tar(TREE))
    register(argusd, old="a", new="b", unseen="b", old2="c", unseen2="c")
    assert asked(argusd, "a") == (200, [])  # nobody has looked at them
    give_facts(argusd, "old", torch="2.5.1+cu121", python="3.11.2")
    give_facts(argusd, "old2", torch="2.5.1+cu121", python="3.11.2")
    give_facts(argusd, "new", torch="2.6.0+cu124", python="3.11.2", numpy="1.26.4")
    status, (told,) = asked(argusd, "a")
    assert status == 422  # no machine of the pool can
    assert told.startswith("snapshot 'her@1' does not fit 1 of 1 machines: on node 'old' it needs torch>=2.4,!=2.5.*")
    assert told.endswith("and there is 2.5.1+cu121")
    status, (told,) = asked(argusd, "c")
    assert status == 200 and told.startswith("snapshot 'her@1' does not fit 1 of 2 machines: on node 'old2'")
    assert asked(argusd, "b") == (200, [])
    python = argusd.root / "common/venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    own = {"runtime_env": {"py_executable": "${SHARED_ROOT}/common/venv/bin/python"}}
    assert asked(argusd, "a", **own) == (200, [])  # its packages are its own


def test_placed_where_it_fits(argusd):
    """Two machines of Ray's list, one with an older torch: a job goes to the other one, waits for it, and says so."""
    added(argusd, "placed@1", tar({"a.py": "1\n", "requirements.txt": "torch>=2.6\n"}))
    register(argusd, h2="x", h3="x")
    give_facts(argusd, "h2", online=True, torch="2.5.1+cu121")
    give_facts(argusd, "h3", online=True, numpy="1.26.4")
    until(lambda: all(argusd.get(f"/v1/nodes/{n}")["state"] == "online" for n in ("h2", "h3")), "both are in")
    big = {**spec("x", "placed@1"), "n_gpus_per_node": 4, "entrypoint": "sleep 1000"}
    first, second = (argusd.submit(big) for _ in range(2))
    view = argusd.wait_job(first, lambda j: j["state"] == "RUNNING", "runs")
    assert [n["name"] for n in view["nodes"]] == ["h3"]  # h2 is free, and its torch is too old
    why = argusd.get(f"/v1/jobs/{second}/why", token="user")
    assert why["code"] == "waiting_for_gpus" and "(1 node does not fit)" in why["text"], why
    assert why["unfit"] == [
        {"node": "h2", "need": "torch>=2.6", "has": "2.5.1+cu121"},
        {"node": "h3", "need": "torch>=2.6", "has": None},  # nobody knows: it may go there
    ]
    shown = cli(argusd, "why", second)
    assert "h2: torch>=2.6, has 2.5.1+cu121" in shown and "h3: torch>=2.6" in shown
    assert argusd.post({**spec("x", "placed@1"), "nnodes": 2, "n_gpus_per_node": 4}, token="user").status == 201
    wide = next(j["id"] for j in argusd.get("/v1/jobs?state=QUEUED", token="user")["jobs"] if j["id"] != second)
    why = argusd.get(f"/v1/jobs/{wide}/why", token="user")
    assert why["code"] == "nodes_unfit" and "h2 does not (torch>=2.6, and there is 2.5.1+cu121)" in why["text"], why
    chinese = argusd.call("GET", f"/v1/jobs/{wide}/why", token="user", Accept_Language="zh").json()
    assert "不符合（torch>=2.6，实际 2.5.1+cu121）" in chinese["text"], chinese
    argusd.stop_job(wide)
    correct_the_needs(argusd, first, second)


def correct_the_needs(argusd, first, second):
    """What the setup file asks for was more than the code needs."""
    assert argusd.call("PATCH", "/v1/snapshots/placed@1", {"needs": ["torch>>2"]}, token="user").status == 422
    assert argusd.call("PATCH", "/v1/snapshots/placed@1", {"needs": ["torch>=2"] * 17}, token="user").status == 422
    assert argusd.call("PATCH", "/v1/snapshots/placed@1", {"needs": ["torch>=2"]}, token="viewer").status in (403, 404)
    cli(argusd, "snapshot", "needs", "placed@1", code=2)
    cli(argusd, "snapshot", "needs", "placed@1", "--set", "torch>=2.4", "--set", "python>=3.9")
    view = argusd.wait_job(second, lambda j: j["state"] == "RUNNING", "runs where it did not fit before")
    assert [n["name"] for n in view["nodes"]] == ["h2"]
    shown = argusd.get("/v1/snapshots/placed@1", token="user")
    assert shown["needs"] == ["torch>=2.4", "python>=3.9"] and shown["needs_by"] == "alice"
    (event,) = [e for e in argusd.events() if e["kind"] == "snapshot_needs"]
    assert event["actor"] == "alice" and event["object"] == "user/alice/snapshot/placed@1"
    before, after = (event["data"][x]["needs"] for x in ("before", "after"))
    assert (before, after) == (["torch>=2.6"], ["torch>=2.4", "python>=3.9"])
    cli(argusd, "snapshot", "needs", "placed@1", "--none")
    argusd.stop()
    argusd.start()
    assert argusd.get("/v1/snapshots/placed@1", token="user")["needs"] == []  # as said, not as its files have it
    for job in (first, second):
        argusd.stop_job(job)


MACHINES = [{"name": "h1", "ip": "10.99.0.1", "head": True, "resources": {}}] + [
    {"name": n, "ip": ip, "resources": {"CPU": 40, "GPU": 4, "worker_node": 100, f"argus_node_{n}": 1000}}
    for n, ip in (("h2", "10.99.0.2"), ("h3", "10.99.0.3"))
]


def test_a_pool_that_fits_is_suggested(tmp_path):
    """The machine of one pool is too old: who asks for advice is told of the pool whose machine is not."""
    with FakeRay(nodes=MACHINES, state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        ready(argusd)
        added(argusd, "advised@1", tar({"a.py": "1\n", "requirements.txt": "torch>=2.6\n"}))
        register(argusd, h2="old-image", h3="new-image", away="old-image")  # nobody looked at that: no refusal
        give_facts(argusd, "h2", online=True, torch="2.5.1")
        give_facts(argusd, "h3", online=True, torch="2.6.0")
        until(lambda: all(argusd.get(f"/v1/nodes/{n}")["state"] == "online" for n in ("h2", "h3")), "both are in")
        wish = {**spec("old-image", "advised@1"), "n_gpus_per_node": 4}

        def plan():
            reply = argusd.post(wish, query="?dry_run=1&suggest=1", token="user")
            assert reply.status == 200, reply
            return (p := reply.json())["why"]["code"] == "nodes_unfit" and p

        told = until(plan, "Ray's list is looked at, and its own pool does not fit")
        assert not told["fits_pool"]
        assert [(x["key"], x["value"]) for x in told["advice"] if x["key"] == "pool"] == [("pool", "new-image")]


def test_memory_that_jobs_state(tmp_path):
    """Two jobs of one node whose memory a probe saw: the second one waits for memory alone, over a restart too."""
    with FakeRay(nodes=MACHINES, state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        ready(argusd)
        register(argusd, h2="mem")
        give_facts(argusd, "h2", online=True, memory_bytes=100 << 30)
        until(lambda: argusd.get("/v1/nodes/h2")["state"] == "online", "it is in")
        wish = {"workload": "ray", "entrypoint": "sleep 1000", "n_gpus_per_node": 1, "pool": "mem"}
        first = argusd.submit({**wish, "memory_per_node": "60GiB"})
        argusd.wait_job(first, lambda j: j["state"] == "RUNNING", "runs")
        second = argusd.submit({**wish, "memory_per_node": "60GiB"})
        silent = argusd.submit(wish)  # states none
        argusd.wait_job(silent, lambda j: j["state"] == "RUNNING", "runs beside it")
        argusd.stop()
        argusd.start()
        ready(argusd)
        until(lambda: argusd.get(f"/v1/jobs/{second}/why")["code"] == "waiting_for_memory", "it says so")
        told = cli(argusd, "why", second)
        assert "needs 1 x 60 GiB of memory, as it states" in told, told
        reply = argusd.post({**wish, "memory_per_node": "200GiB"}, query="?require_fit=1", token="user")
        assert reply.status == 422 and "1 CPUs and 200 GiB of memory fits it" in reply.json()["detail"], reply
        argusd.stop_job(first)
        argusd.wait_job(second, lambda j: j["state"] == "RUNNING", "its memory is free")
        for job in (second, silent):
            argusd.stop_job(job)
