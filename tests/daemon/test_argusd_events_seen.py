# SPDX-License-Identifier: Apache-2.0
"""Who sees which events: what somebody makes, as pages, filters and a stream show it to everybody."""

import contextlib

import pytest
from fakeray import FakeRay
from snapshots import added, tar

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

EVERYBODY, OWNER = ("alice", "carol", "bob", "admin", "viewer"), ("alice", "admin", "viewer")


def ok(reply, *statuses):
    assert reply.status in (statuses or (200, 201, 202)), reply
    return reply.json()


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("seen"), ray.url) as argusd:
        argusd.tokens["alice"] = argusd.tokens["user"]
        for name in ("bob", "carol"):
            ok(argusd.call("POST", "/v1/users", {"name": name}))
            argusd.tokens[name] = ok(argusd.call("POST", "/v1/tokens", {"user": name}))["token"]
        ok(argusd.call("POST", "/v1/projects", {"name": "rlhf", "members": ["alice", "carol"]}))
        make_all(argusd)
        yield argusd


def make_all(argusd):
    """One event at least of each kind of thing: alice's own, and of her project."""

    def call(method, path, body=None, **more):
        return ok(argusd.call(method, path, body, token="alice", **more))

    call("POST", "/v1/tokens", {"name": "canary-token"})
    until((argusd.root / "users/alice/code").exists, "directories of users are made")
    call("PUT", "/v1/secrets/CANARY_OWN", {"value": "x", "user": "alice"})
    call("PUT", "/v1/secrets/CANARY_OURS", {"value": "x", "project": "rlhf"})
    for path in ("users/alice/code/canary-own.bin", "common/code/canary-all.bin"):
        made = call("POST", "/v1/uploads", {"name": "canary-upload.bin", "bytes": 1})["id"]
        call("PUT", f"/v1/uploads/{made}?offset=0", b"x", Content_Type="application/octet-stream")
        call("POST", "/v1/files", {"path": path, "upload": made})
    call("DELETE", "/v1/files?path=users/alice/code/canary-own.bin")
    added(argusd, "canaryown@1", tar({"a": "own"}), token="alice")
    added(argusd, "canaryall@1", tar({"a": "all"}), common=True)
    argusd.submit("echo own", token="alice", name="canary-own-job")
    argusd.submit("echo ours", token="alice", name="canary-our-job", project="rlhf")


def events_of(argusd, person, query=""):
    return argusd.get(f"/v1/events?limit=1000{query}", token=person)["events"]


# What the object or kind of an event begins with, and who sees those of what alice made.
SEEN = {
    "secret/user/alice/": OWNER,
    "secret/project/rlhf/": ("alice", "carol", "admin", "viewer"),
    "upload/alice/": OWNER,
    "file/users/alice/": OWNER,
    "file/common/": EVERYBODY,
    "token/alice/": OWNER,
    "user/alice/snapshot/": OWNER,
    "snapshot/canaryall": EVERYBODY,
    "project/rlhf": ("alice", "carol", "admin", "viewer"),
    "user/bob": ("bob", "admin", "viewer"),
    "user/carol": ("carol", "admin", "viewer"),
}


@pytest.mark.parametrize("prefix", SEEN)
def test_of_each_thing(argusd, prefix):
    for person in EVERYBODY:
        hits = [e["object"] for e in events_of(argusd, person) if (e["object"] or "").startswith(prefix)]
        assert bool(hits) == (person in SEEN[prefix]), (person, hits)


def test_jobs(argusd):
    jobs = {j["name"]: j["id"] for j in argusd.get("/v1/jobs?all=1")["jobs"]}
    for name, people in (("canary-own-job", OWNER), ("canary-our-job", ("alice", "carol", "admin", "viewer"))):
        for person in EVERYBODY:
            seen = [e for e in events_of(argusd, person) if e["job"] == jobs[name]]
            assert bool(seen) == (person in people), (name, person)
            assert bool(events_of(argusd, person, f"&job={jobs[name]}")) == (person in people)


FILTERS = ["", "&actor=alice", "&object=secret", "&object=upload", "&kind=secret_added,file_put", "&newest_first=1"]


@pytest.mark.parametrize("query", FILTERS)
def test_bob_sees_nothing_of_hers(argusd, query):
    """Secrets with their lengths, names of uploads and of files were shown to everybody."""
    rows = [e for e in events_of(argusd, "bob", query) if "canary" in str(e).lower()]
    assert {e["object"] for e in rows} <= {"file/common/code/canary-all.bin", "snapshot/canaryall@1"}


def test_a_stream_shows_the_same(argusd):
    ok(argusd.call("PUT", "/v1/secrets/MARK", {"value": "x", "user": "bob"}, token="bob"))
    page = [e["seq"] for e in events_of(argusd, "bob")]
    with contextlib.closing(argusd.stream("/v1/events?follow=1&since=0", token="bob")) as stream:
        rows = []
        for _, _, data in stream:
            rows.append(data)
            if data["object"] == "secret/user/bob/MARK":
                break
        assert [e["seq"] for e in rows] == page[: len(rows)]
        ok(argusd.call("PUT", "/v1/secrets/CANARY_LIVE", {"value": "x", "user": "alice"}, token="alice"))
        ok(argusd.call("PUT", "/v1/secrets/MARK2", {"value": "x", "user": "bob"}, token="bob"))
        live = []  # what everybody sees may come in between
        for _, _, data in stream:
            if data["object"] == "secret/user/bob/MARK2":
                break
            live.append(data)
        assert not [e for e in live if e["job"] or "canary" in str(e).lower()], live


def test_a_member_no_more(argusd):
    """The event stays of the project; who leaves it sees it no more."""
    ok(argusd.call("POST", "/v1/projects", {"name": "left", "members": ["carol"]}))
    ok(argusd.call("PUT", "/v1/secrets/THEIRS", {"value": "x", "project": "left"}, token="carol"))
    theirs = "&object=secret/project/left/THEIRS"
    assert len(events_of(argusd, "carol", theirs)) == 1
    ok(argusd.call("PATCH", "/v1/projects/left", {"remove": ["carol"]}))
    assert events_of(argusd, "carol", theirs) == [] != events_of(argusd, "admin", theirs)


def test_after_a_restart(argusd):
    before = {person: events_of(argusd, person) for person in EVERYBODY}
    argusd.kill9()
    argusd.start()
    for person, rows in before.items():
        assert events_of(argusd, person)[: len(rows)] == rows
