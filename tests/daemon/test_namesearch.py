# SPDX-License-Identifier: Apache-2.0
"""GET /v1/search and argus find: each kind is found, what fits best comes first, and nobody is shown what the lists do
not show."""

import subprocess
import urllib.parse

import pytest
from fakeray import FakeRay
from programs import PROGRAMS
from snapshots import added, tar

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd
OWNER, MEMBER, STRANGER = "quark", "carol", "bob"
# The list of each kind, and what of its rows is the name in a hit.
LISTS = {
    "user": ("users", "name"),
    "project": ("projects", "name"),
    "dataset": ("datasets", "ref"),
    "model": ("models", "ref"),
    "service": ("services", "name"),
    "pipeline": ("pipelines", "name"),
    "notebook": ("notebooks", "name"),
    "snapshot": ("snapshots", "name"),
    "preset": ("presets", "name"),
}
SPEC = {"workload": "ray", "entrypoint": "true"}


def make_world(argusd):
    """One thing of each kind of the user quark, in the project quark-team where that can be."""

    def made(method, path, body, token=OWNER):
        reply = argusd.call(method, path, body, token=token)
        assert reply.status == 201, (path, reply)
        return reply.json()

    for name in (OWNER, MEMBER, STRANGER):
        made("POST", "/v1/users", {"name": name}, "admin")
        argusd.tokens[name] = made("POST", "/v1/tokens", {"user": name}, "admin")["token"]
    made("POST", "/v1/projects", {"name": "quark-team", "members": [OWNER, MEMBER]}, "admin")
    until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "the root is ready")
    team = {"project": "quark-team"}
    waits = {"pool": "nowhere"}  # for machines that nobody has: it stays as it is
    for kind in ("datasets", "models"):
        body = {"name": f"quark-{kind}", "source": "http://127.0.0.1:9/x.jsonl", **team, **waits}
        made("POST", f"/v1/{kind}", body)
    made("POST", "/v1/services", {"app": "m:a", "name": "quark-service", **team, "pool": ["nowhere"]})
    pipe = {"name": "quark-pipe", "steps": {"a": {"with": SPEC}}}
    made("PUT", "/v1/pipelines/quark-pipe?project=quark-team", pipe)
    made("POST", "/v1/notebooks", {"name": "quark-book"})
    made("PUT", "/v1/presets/quark-preset?project=quark-team", {"spec": SPEC})
    added(argusd, "quark-code@1", tar({"a.py": "1"}), token=OWNER)
    argusd.submit("echo x", token=OWNER, submission_id="j1", name="the quark run", nnodes=9, n_gpus_per_node=4, **team)


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay("2.60.0") as ray, Argusd(tmp_path_factory.mktemp("namesearch"), ray.url) as a:
        make_world(a)
        yield a


def search(argusd, text, limit=50, token="admin"):
    query = urllib.parse.urlencode({"q": text, "limit": limit})
    return argusd.get(f"/v1/search?{query}", token=token)["results"]


def test_each_kind_is_found(argusd):
    found = search(argusd, "QUARK")
    job = {"kind": "job", "id": "j1", "name": "the quark run", "about": "QUEUED"}
    assert job in found
    # The user alone is called so; all others begin with it, in the order of their kinds.
    assert [(h["kind"], h["id"], h["name"], h["about"]) for h in found if h["kind"] != "job"] == [
        ("user", "quark", "quark", "user"),
        ("project", "quark-team", "quark-team", None),
        ("dataset", "quark:quark-datasets@1", "quark-datasets@1", "quark"),
        ("model", "quark:quark-models@1", "quark-models@1", "quark"),
        ("service", "quark-service", "quark-service", "quark"),
        ("pipeline", "quark/quark-pipe", "quark-pipe", "quark"),
        ("notebook", "quark/quark-book", "quark-book", "quark"),
        ("snapshot", "quark/quark-code@1", "quark-code@1", "quark"),
        ("preset", "quark-team/quark-preset", "quark-preset", "quark-team"),
    ]
    for kind, path in (("dataset", "datasets"), ("model", "models")):
        (ref,) = [h["id"] for h in found if h["kind"] == kind]
        assert argusd.get(f"/v1/{path}/{urllib.parse.quote(ref, safe='')}")["owner"] == "quark"


def test_nodes_and_what_is_shipped(argusd):
    node = argusd.get("/v1/nodes")["nodes"][0]
    hit = {"kind": "node", "id": node["name"], "name": node["name"], "about": node["state"]}
    assert hit in search(argusd, node["name"][:3].upper())
    (preset,) = [h for h in search(argusd, "grpo-7b") if h["kind"] == "preset"]
    assert (preset["id"], preset["about"]) == ("grpo-7b", None)


@pytest.mark.parametrize("person", ["admin", "viewer", OWNER, MEMBER, STRANGER])
def test_nothing_but_what_the_lists_show(argusd, person):
    found = search(argusd, "quark", token=person)
    for kind, (path, member) in LISTS.items():
        listed = {row[member] for row in argusd.get(f"/v1/{path}", token=person)[path] if "quark" in row[member]}
        assert {h["name"] for h in found if h["kind"] == kind} == listed, kind
    jobs = {j["id"] for j in argusd.get("/v1/jobs?all=1&limit=1000", token=person)["jobs"]}
    hits = {h["id"] for h in found if h["kind"] == "job"}
    assert hits <= jobs and ("j1" in hits) == (person != STRANGER)
    if person == STRANGER:
        assert found == []


def test_the_best_comes_first(argusd):
    names = {"a1": "xabacusx", "a2": "my abacus", "a3": "abacus-old", "a4": "abacus-new", "a5": "abacus"}
    for job, name in names.items():
        argusd.submit("echo x", token="user", submission_id=job, name=name, nnodes=9, n_gpus_per_node=4)
    argusd.stop_job("a3")
    argusd.wait_over("a3")
    until(lambda: "a3" not in {j["id"] for j in argusd.get("/v1/jobs?all=1&state=live")["jobs"]}, "its end is on disk")
    found = search(argusd, "Abacus", token="user")
    assert [h["id"] for h in found] == ["a5", "a4", "a3", "a2", "a1"]
    assert {h["id"]: h["about"] for h in found}["a3"] == "STOPPED"
    assert [h["id"] for h in search(argusd, "abacus", limit=2, token="user")] == ["a5", "a4"]
    assert [h["id"] for h in search(argusd, "a3", token="user")][0] == "a3"


def test_what_belongs_to_an_owner_or_a_project(argusd):
    """By the whole name alone, and behind what is called so."""
    of_owner = search(argusd, "quark")
    assert of_owner[0]["kind"] == "user" and "j1" in {h["id"] for h in of_owner}
    of_project = search(argusd, "quark-team")
    assert of_project[0]["kind"] == "project"
    assert {"job", "dataset", "model", "service", "pipeline", "preset"} <= {h["kind"] for h in of_project}
    assert [h["kind"] for h in search(argusd, "quark-tea")] == ["project"]


def test_kinds_take_turns(argusd):
    """Many jobs that begin so do not hide the one preset."""
    for i in range(6):
        job = f"lepton-{i}"
        argusd.submit("echo x", token="user", submission_id=job, name=job, nnodes=9, n_gpus_per_node=4)
    reply = argusd.call("PUT", "/v1/presets/lepton", {"spec": SPEC}, token="user")
    assert reply.status == 201, reply
    assert [h["kind"] for h in search(argusd, "lept", limit=3, token="user")] == ["job", "preset", "job"]


@pytest.mark.parametrize("query", ["", "q=", f"q={'x' * 101}", "q=x&limit=0", "q=x&limit=51", "q=x&limit=many"])
def test_refusals(argusd, query):
    reply = argusd.call("GET", f"/v1/search?{query}")
    assert reply.status == 400, reply


def test_a_refusal_says_what_to_give(argusd):
    assert "give 1 to 100 bytes" in argusd.call("GET", "/v1/search").json()["detail"]
    chinese = argusd.call("GET", "/v1/search", Accept_Language="zh-CN").json()["detail"]
    assert "100 字节" in chinese
    assert search(argusd, "x" * 100) == []
    assert search(argusd, "%") == [] and search(argusd, "quark_") == []  # no patterns


def find(argusd, *args, token="admin"):
    env = {"ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens[token], "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    return subprocess.run([PROGRAMS["argus"], "find", *args], env=env, capture_output=True, text=True, check=True)


def test_argus_find(argusd):
    lines = find(argusd, "quark").stdout.splitlines()
    assert lines[0].split() == ["KIND", "NAME", "ABOUT"]
    rows = [line.split() for line in lines[1:]]
    assert rows[0] == ["user", "quark", "user"] and ["preset", "quark-team/quark-preset", "quark-team"] in rows
    assert ["job", "j1", "(the", "quark", "run)", "QUEUED"] in rows
    assert len(find(argusd, "quark", "--limit", "2").stdout.splitlines()) == 3
    nothing = find(argusd, "quark", token=STRANGER)
    assert "nothing that you may see" in nothing.stdout + nothing.stderr
