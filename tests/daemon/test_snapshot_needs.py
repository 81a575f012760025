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

from argusd import Argusd, needs_argusd

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


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("needs"), ray.url) as a:
        yield a


def give_facts(argusd, node, **facts):
    """As a probe of this machine would have left them."""
    argusd.stop()
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db, db:
        (body,) = db.execute("SELECT body FROM entry WHERE kind = 'node' AND name = ?", (node,)).fetchone()
        row = json.loads(body)
        row["facts"] = {**(row.get("facts") or {}), **facts}
        db.execute("UPDATE entry SET body = ? WHERE kind = 'node' AND name = ?", (json.dumps(row), node))
    argusd.start()


def warnings(argusd, pool):
    spec = {"workload": "ray", "entrypoint": "true", "nnodes": 1, "n_gpus_per_node": 0, "pool": pool}
    reply = argusd.post({**spec, "working_dir": "her@1"}, query="?dry_run=1", token="user")
    assert reply.status == 200, reply
    return [w["detail"] for w in reply.json()["problems"] if "does not fit" in w["detail"]]


def test_read_and_shown(argusd):
    snapshot = added(argusd, "my@1", tar(TREE))
    assert snapshot["needs"] == NEEDS
    assert argusd.get("/v1/snapshots/my@1", token="user")["needs"] == NEEDS
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "LANG": "C"}
    shown = subprocess.run([PROGRAMS["argus"], "snapshot", "show", "my@1"], capture_output=True, text=True, env=env)
    assert shown.returncode == 0 and [x for x in shown.stdout.splitlines() if x.startswith("needs ")] == [
        f"needs {x}" for x in NEEDS
    ]
    assert added(argusd, "bare@1", tar({"a.py": "1\n"}))["needs"] == []
    evil = {"setup.py": "install_requires = [" + '"' * 3000, "a": "numpy<2\n", "requirements.txt": ("l", "a")}
    assert added(argusd, "evil@1", tar(evil))["needs"] == []


def test_against_the_machines_of_the_pool(argusd):
    added(argusd, "her@1", tar(TREE))
    for name, pool in (("old", "a"), ("new", "b"), ("unseen", "b")):
        reply = argusd.call("POST", "/v1/nodes", {"name": name, "host": f"{name}.invalid", "labels": [pool]})
        assert reply.status in (200, 201, 202), reply
    assert warnings(argusd, "a") == []  # nobody has looked at them
    give_facts(argusd, "old", torch="2.5.1+cu121", python="3.11.2")
    give_facts(argusd, "new", torch="2.6.0+cu124", python="3.11.2", numpy="1.26.4")
    (told,) = warnings(argusd, "a")
    assert told.startswith("snapshot 'her@1' does not fit 1 of 1 machines: on node 'old' it needs torch>=2.4,!=2.5.*")
    assert told.endswith("and there is 2.5.1+cu121")
    assert warnings(argusd, "b") == []
