# SPDX-License-Identifier: Apache-2.0
"""Users, tokens, projects, quotas and the chain of events of the real argusd, by API and by CLI."""

import contextlib
import json
import os
import re
import sqlite3
import subprocess

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd


@pytest.fixture
def argusd(tmp_path):
    """One whose Ray is away: jobs stay in the queue."""
    with FakeRay() as ray:
        ray.listen(False)
        with Argusd(tmp_path, ray.url) as one:
            one.ray = ray
            yield one


def ask(argusd, method, path, status, body=None, token="admin"):
    reply = argusd.call(method, path, body, token=token)
    assert reply.status == status, (method, path, reply)
    return reply.json()


def make_user(argusd, name, role="user"):
    """A user with a token, whose text comes back."""
    ask(argusd, "POST", "/v1/users", 201, {"name": name, "role": role})
    return ask(argusd, "POST", "/v1/tokens", 201, {"user": name, "name": "first"})["token"]


def cli(argusd, *args, token="admin", columns=80):
    env = {k: v for k, v in os.environ.items() if not k.startswith("ARGUS_")}
    env |= {"ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens.get(token, token), "HOME": str(argusd.home)}
    env |= {"COLUMNS": str(columns), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    return subprocess.run([PROGRAMS["argus"], *map(str, args)], env=env, capture_output=True, text=True)


def ok(argusd, *args, **more):
    done = cli(argusd, *args, **more)
    assert done.returncode == 0, (args, done)
    return done.stdout


# ---- users ----


def test_users_come_and_go(argusd):
    made = ask(argusd, "POST", "/v1/users", 201, {"name": "bob", "note": "new here"})
    assert (made["role"], made["disabled"], made["projects"], made["tokens"]) == ("user", False, [], 0)
    assert ask(argusd, "POST", "/v1/users", 409, {"name": "bob"})["code"] == "is_there"
    token = ask(argusd, "POST", "/v1/tokens", 201, {"user": "bob"})["token"]
    assert argusd.get("/v1/whoami", token=token)["user"] == "bob"
    argusd.restart()
    assert argusd.get("/v1/users/bob")["note"] == "new here"
    assert argusd.get("/v1/users/bob")["tokens"] == 1
    assert argusd.get("/v1/whoami", token=token)["role"] == "user"
    job = argusd.submit("echo x", token=token)
    assert "1 job that is not over" in ask(argusd, "DELETE", "/v1/users/bob", 409)["detail"]
    argusd.stop_job(job)
    ask(argusd, "DELETE", "/v1/users/bob", 200)
    assert "revoked" in ask(argusd, "GET", "/v1/whoami", 401, token=token)["detail"]
    ask(argusd, "GET", "/v1/users/bob", 404)
    argusd.restart()
    ask(argusd, "GET", "/v1/users/bob", 404)
    assert argusd.job(job)["user"] == "bob"
    assert re.search(r"\buser/bob +user_added\b", ok(argusd, "events")), "a row says what it is about"


def test_bad_users(argusd):
    for name in ("", "Bob", "-x", "a/b", "a b", "x" * 32, "argusd", "../x"):
        assert ask(argusd, "POST", "/v1/users", 422, {"name": name})["field"] == "name"
    assert ask(argusd, "POST", "/v1/users", 422, {})["field"] == "name"
    for body in ({"name": "x", "role": "boss"}, {"name": "x", "role": "none"}):
        assert ask(argusd, "POST", "/v1/users", 422, body)["field"] == "role"
    problem = ask(argusd, "POST", "/v1/users", 422, {"name": "x", "rolle": "user"})
    assert "did you mean 'role'" in problem["hint"]
    assert ask(argusd, "PATCH", "/v1/users/alice", 422, {"name": "bob"})["field"] == "name"
    ask(argusd, "POST", "/v1/users", 422, [1, 2])
    ask(argusd, "PATCH", "/v1/users/nobody", 404, {"note": "x"})
    assert [u["name"] for u in argusd.get("/v1/users")["users"]] == ["admin", "alice", "victor"]


def test_disabled_and_lowered(argusd):
    token = make_user(argusd, "bob", "admin")
    assert argusd.get("/v1/whoami", token=token)["role"] == "admin"
    ask(argusd, "PATCH", "/v1/users/bob", 200, {"role": "user"})
    assert argusd.get("/v1/whoami", token=token)["role"] == "user"
    ask(argusd, "POST", "/v1/users", 403, {"name": "x"}, token=token)
    ask(argusd, "PATCH", "/v1/users/bob", 200, {"disabled": True})
    assert "disabled" in ask(argusd, "GET", "/v1/whoami", 401, token=token)["detail"]
    argusd.restart()
    ask(argusd, "GET", "/v1/whoami", 401, token=token)
    ask(argusd, "POST", "/v1/tokens", 409, {"user": "bob"})
    ask(argusd, "PATCH", "/v1/users/bob", 200, {"disabled": False})
    assert argusd.get("/v1/whoami", token=token)["role"] == "user"


def test_the_last_admin_stays(argusd):
    me = argusd.get("/v1/whoami")["token"]["id"]
    assert "last admin" in ask(argusd, "DELETE", "/v1/users/admin", 409)["detail"]
    ask(argusd, "PATCH", "/v1/users/admin", 409, {"role": "user"})
    ask(argusd, "PATCH", "/v1/users/admin", 409, {"disabled": True})
    assert "last token" in ask(argusd, "DELETE", f"/v1/tokens/{me}", 409)["detail"]
    ask(argusd, "POST", "/v1/users", 201, {"name": "root2", "role": "admin"})
    ask(argusd, "DELETE", "/v1/users/admin", 409)  # the other one cannot come in
    lesser = ask(argusd, "POST", "/v1/tokens", 201, {"user": "root2", "role": "user"})
    ask(argusd, "DELETE", f"/v1/tokens/{me}", 409)
    other = ask(argusd, "POST", "/v1/tokens", 201, {"user": "root2"})["token"]
    ask(argusd, "DELETE", f"/v1/tokens/{me}", 200)
    ask(argusd, "GET", "/v1/whoami", 401)
    ask(argusd, "DELETE", "/v1/users/admin", 200, token=other)
    ask(argusd, "DELETE", f"/v1/tokens/{lesser['id']}", 200, token=other)
    ask(argusd, "DELETE", "/v1/users/root2", 409, token=other)


def test_directories_on_first_use(argusd):
    def there(user):
        return all((argusd.root / "users" / user / d).is_dir() for d in ("datasets", "models", "code"))

    common = [argusd.root / "common" / d for d in ("datasets", "models", "code")]
    until(lambda: all(d.is_dir() for d in common), "what is common is there")
    ask(argusd, "POST", "/v1/users", 201, {"name": "bob"})
    until(lambda: there("bob"), "bob has directories")
    assert not there("alice")
    argusd.submit("echo x", token="user")
    until(lambda: there("alice"), "alice has directories")


# ---- tokens ----


def test_tokens_are_shown_once_and_end(argusd):
    made = ask(argusd, "POST", "/v1/tokens", 201, {"name": "ci", "role": "viewer", "expires": "1h"}, token="user")
    assert re.fullmatch(r"argus_[A-Za-z0-9_-]{43}", made["token"])
    assert (made["user"], made["role"], made["state"]) == ("alice", "viewer", "works")
    assert made["expires_at"] and made["last_use_at"] is None
    assert argusd.get("/v1/whoami", token=made["token"])["role"] == "viewer"
    listed = argusd.get("/v1/tokens", token="user")["tokens"]
    mine = next(k for k in listed if k["id"] == made["id"])
    assert mine["last_use_at"] and "token" not in mine
    assert {k["user"] for k in listed} == {"alice"}
    for path in ("/v1/tokens?all=1", "/v1/events", "/v1/users", "/metrics"):
        assert made["token"] not in argusd.call("GET", path).body.decode()
    db = b"".join(p.read_bytes() for p in argusd.state_dir.glob("argus.db*"))
    assert made["token"].encode() not in db
    ask(argusd, "DELETE", f"/v1/tokens/{made['id']}", 200, token="user")
    problem = ask(argusd, "GET", "/v1/whoami", 401, token=made["token"])
    assert "was revoked" in problem["detail"]
    argusd.kill9()
    argusd.start()
    ask(argusd, "GET", "/v1/whoami", 401, token=made["token"])
    assert made["id"] not in {k["id"] for k in argusd.get("/v1/tokens", token="user")["tokens"]}
    ended = {k["id"]: k["state"] for k in argusd.get("/v1/tokens?ended=1", token="user")["tokens"]}
    assert ended[made["id"]] == "revoked"


def test_expired(argusd):
    token = ask(argusd, "POST", "/v1/tokens", 201, {"expires": "60s"}, token="user")["token"]
    argusd.stop()
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db:
        db.execute("UPDATE token SET expires_at=expires_at-61000000 WHERE expires_at>0")
        db.commit()
    argusd.start()
    assert "expired at" in ask(argusd, "GET", "/v1/whoami", 401, token=token)["detail"]
    for bad in ("0s", "59s", "4000d", "soon", "-1d"):
        ask(argusd, "POST", "/v1/tokens", 422, {"expires": bad}, token="user")


def test_tokens_that_ended_long_ago_make_room(argusd):
    """They are forgotten when there is need, and not at a start: the clock may be wrong then."""
    argusd.stop()
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db:
        (now,) = db.execute("SELECT max(created_at) FROM token").fetchone()
        days = {"long ago": 40, "lately": 20}
        rows = [
            (f"{n:032d}".encode(), f"old{n}", when, "alice", "user", now - days[when] * 86400_000_000)
            for n, when in enumerate(["long ago"] * 900 + ["lately"] * 99)
        ]
        db.executemany("INSERT INTO token VALUES(?, ?, ?, ?, ?, 1, ?, 0, 0)", rows)
        db.commit()
    argusd.start()

    def names():
        return [k["name"] for k in argusd.get("/v1/tokens?ended=1", token="user")["tokens"]]

    assert names().count("long ago") == 900
    ask(argusd, "POST", "/v1/tokens", 201, {"name": "new"}, token="user")
    assert (names().count("long ago"), names().count("lately"), names().count("new")) == (0, 99, 1)
    argusd.restart()
    assert (names().count("long ago"), names().count("new")) == (0, 1)


def test_no_token_above_its_maker(argusd):
    ask(argusd, "POST", "/v1/tokens", 422, {"role": "admin"}, token="user")
    ask(argusd, "POST", "/v1/tokens", 404, {"user": "admin"}, token="user")
    ask(argusd, "POST", "/v1/tokens", 404, {"user": "nobody"}, token="user")
    ask(argusd, "POST", "/v1/tokens", 404, {"user": "nobody"})
    ask(argusd, "POST", "/v1/tokens", 403, {}, token="viewer")
    ask(argusd, "POST", "/v1/tokens", 422, {"user": "alice", "role": "admin"})
    lesser = ask(argusd, "POST", "/v1/tokens", 201, {"role": "user"})["token"]
    ask(argusd, "POST", "/v1/tokens", 403, {"role": "admin"}, token=lesser)
    assert ask(argusd, "POST", "/v1/tokens", 201, {}, token=lesser)["role"] == "user"
    theirs = ask(argusd, "POST", "/v1/tokens", 201, {"user": "victor"})
    ask(argusd, "DELETE", f"/v1/tokens/{theirs['id']}", 404, token="user")
    ask(argusd, "GET", "/v1/tokens?user=victor", 404, token="user")
    assert {k["user"] for k in argusd.get("/v1/tokens?all=1", token="user")["tokens"]} == {"alice"}
    assert {k["user"] for k in argusd.get("/v1/tokens?all=1")["tokens"]} == {"admin", "alice", "victor"}
    for _ in range(99):
        ask(argusd, "POST", "/v1/tokens", 201, {}, token="user")
    assert "revoke some" in ask(argusd, "POST", "/v1/tokens", 422, {}, token="user")["detail"]


# ---- projects and quotas ----


def test_projects(argusd):
    bob = make_user(argusd, "bob")
    argusd.submit("echo x", project="anything", token="user")  # none was made yet: a label
    made = ask(argusd, "POST", "/v1/projects", 201, {"name": "rlhf", "members": ["alice"], "pool": "h20", "share": 2,
                                                     "priority_ceiling": 60})  # fmt: skip
    assert (made["members"], made["pool"], made["share"], made["priority_ceiling"]) == (["alice"], "h20", 2, 60)
    ask(argusd, "POST", "/v1/projects", 409, {"name": "rlhf"})
    ask(argusd, "POST", "/v1/projects", 422, {"name": "p2", "members": ["nobody"]})
    reply = argusd.post(Argusd.spec("echo x", project="anything"), token="user")
    assert (reply.status, reply.json()["field"]) == (422, "project")
    job = argusd.submit("echo x", project="rlhf", token="user")
    assert (argusd.job(job)["pool"], argusd.job(job)["project"]) == ("h20", "rlhf")
    reply = argusd.post(Argusd.spec("echo x", project="rlhf", priority=61), token="user")
    assert reply.status == 422
    assert "60" in reply.json()["detail"] and "priority" in reply.json()["detail"]
    assert argusd.post(Argusd.spec("echo x", project="rlhf"), token=bob).status == 422
    ask(argusd, "GET", f"/v1/jobs/{job}", 404, token=bob)
    ask(argusd, "PATCH", "/v1/projects/rlhf", 200, {"add": ["bob"], "pool": ""})
    assert argusd.get(f"/v1/jobs/{job}", token=bob)["id"] == job
    ask(argusd, "POST", f"/v1/jobs/{job}:stop", 403, token=bob)
    other = argusd.submit("echo x", project="rlhf", token=bob)
    assert argusd.job(other)["pool"] is None
    argusd.restart()
    assert argusd.get("/v1/projects/rlhf")["members"] == ["alice", "bob"]
    assert argusd.get("/v1/users/bob")["projects"] == ["rlhf"]
    ask(argusd, "PATCH", "/v1/projects/rlhf", 200, {"remove": ["bob"]})
    ask(argusd, "GET", f"/v1/jobs/{job}", 404, token=bob)
    ask(argusd, "DELETE", "/v1/projects/rlhf", 409)
    ask(argusd, "DELETE", "/v1/projects/default", 409)
    ask(argusd, "PATCH", "/v1/projects/default", 422, {"members": ["alice"]})
    for each in (job, other):
        argusd.stop_job(each)
    ask(argusd, "DELETE", "/v1/projects/rlhf", 200)
    assert [p["name"] for p in argusd.get("/v1/projects")["projects"]] == ["default"]


def test_own_lists_and_all(argusd):
    bob, carol = make_user(argusd, "bob"), make_user(argusd, "carol")
    ask(argusd, "POST", "/v1/projects", 201, {"name": "shared", "members": ["alice", "bob"]})
    a1 = argusd.submit("echo x", token="user")
    a2 = argusd.submit("echo x", token="user", project="shared", name="same")
    b1 = argusd.submit("echo x", token=bob, project="shared", name="same")
    b2 = argusd.submit("echo x", token=bob)
    c1 = argusd.submit("echo x", token=carol)

    def ids(query, token):
        return {j["id"] for j in argusd.get(f"/v1/jobs{query}", token=token)["jobs"]}

    assert ids("", "user") == {a1, a2}
    assert ids("", bob) == {b1, b2}
    assert ids("", carol) == ids("?all=1", carol) == {c1}
    assert ids("?all=1", "user") == {a1, a2, b1}
    assert ids("?all=1", bob) == {a2, b1, b2}
    assert ids("?user=bob", "user") == {b1}
    assert ids("?user=carol", "user") == set()
    assert ids("?project=shared", "user") == {a2, b1}
    assert ids("?project=shared&all=0", "user") == {a2}
    assert ids("?all=1", "admin") == ids("", "admin") == ids("", "viewer") == {a1, a2, b1, b2, c1}
    assert ids("?all=0", "admin") == set()
    # a name means one's own; what is not seen makes nothing ambiguous
    assert argusd.get("/v1/jobs/same", token="user")["id"] == a2
    assert argusd.get("/v1/jobs/same", token=bob)["id"] == b1
    ask(argusd, "GET", "/v1/jobs/same", 404, token=carol)
    ask(argusd, "GET", "/v1/jobs/same", 409, token="admin")
    seen = {e["job"] for e in argusd.get("/v1/events?limit=1000", token=carol)["events"]}
    assert seen & {a1, a2, b1, b2, c1} == {c1}
    seen = {e["job"] for e in argusd.get("/v1/events?limit=1000", token="user")["events"]}
    assert seen & {a1, a2, b1, b2, c1} == {a1, a2, b1}
    ask(argusd, "GET", f"/v1/jobs/{c1}/logs", 404, token="user")
    ask(argusd, "GET", f"/v1/jobs/{c1}/events", 404, token="user")
    assert argusd.get(f"/v1/events?job={c1}", token="user")["events"] == []


def test_a_stream_ends_with_its_token(argusd):
    made = ask(argusd, "POST", "/v1/tokens", 201, {}, token="user")
    stream = argusd.stream("/v1/events?follow=1", token=made["token"])
    argusd.submit("echo x", token="user")
    assert next(iter(stream))[1] == "event"
    ask(argusd, "DELETE", f"/v1/tokens/{made['id']}", 200, token="user")
    argusd.submit("echo y", token="user")
    kinds = [data["kind"] for _, _, data in stream]  # to its end
    assert kinds.count("submitted") <= 1
    stream.close()


def test_quotas_are_kept_and_shown(argusd):
    ask(argusd, "POST", "/v1/projects", 201, {"name": "p", "members": ["alice"]})
    got = ask(argusd, "PUT", "/v1/projects/p/quota", 200, {"gpus_guaranteed": 4, "gpus_ceiling": 8, "queued": 3})
    assert got["quota"] == {"gpus_guaranteed": 4, "gpus_ceiling": 8, "cpus": None, "memory": None, "running": None,
                            "queued": 3, "gpu_hours_per_month": None, "checkpoints": None, "storage": None}  # fmt: skip
    ask(argusd, "PUT", "/v1/users/alice/quota", 200, {"running": 2, "gpu_hours_per_month": 100.5})
    argusd.kill9()
    argusd.start()
    assert argusd.get("/v1/projects/p/quota")["quota"]["gpus_ceiling"] == 8
    assert argusd.get("/v1/users/alice")["quota"]["gpu_hours_per_month"] == 100.5
    argusd.submit("echo x", token="user", project="p")
    usage = argusd.get("/v1/projects/p/quota", token="user")["usage"]
    assert (usage["queued"], usage["running"]) == (1, 0)
    names = {(q["kind"], q["name"]) for q in argusd.get("/v1/quotas", token="user")["quotas"]}
    assert names == {("project", "default"), ("project", "p"), ("user", "alice")}
    for bad in ({"gpus_ceiling": -1}, {"gpus_ceiling": "many"}, {"gpu": 1}, {"gpus_guaranteed": 9, "gpus_ceiling": 8},
                {"running": 1.5}):  # fmt: skip
        ask(argusd, "PUT", "/v1/projects/p/quota", 422, bad)
    assert argusd.get("/v1/projects/p/quota")["quota"]["queued"] == 3
    ask(argusd, "PUT", "/v1/projects/p/quota", 200, {})
    assert set(argusd.get("/v1/projects/p/quota")["quota"].values()) == {None}


# ---- the chain ----


def tamper(argusd, *statements, least=1):
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db", timeout=PATIENCE)) as db:
        for statement in statements:
            assert db.execute(statement).rowcount >= least, statement
        db.commit()


def verify(argusd, expect=""):
    return argusd.get("/v1/events:verify" + (f"?expect={expect}" if expect else ""))


def some_events(argusd):
    make_user(argusd, "bob")
    argusd.stop_job(argusd.submit("echo x"))
    found = verify(argusd)
    assert (found["ok"], found["unchained"], found["broken_seq"]) == (True, 0, None)
    assert 5 < found["count"] == found["head"]["seq"] <= len(argusd.events())
    return found


def test_the_chain_goes_on_over_restarts_and_kills(argusd):
    first = some_events(argusd)
    argusd.restart()
    argusd.submit("echo x")
    second = verify(argusd, first["head"]["hash"])
    assert second["ok"] and second["expected_seq"] == first["head"]["seq"] < second["head"]["seq"]
    argusd.kill9()
    argusd.start()
    argusd.submit("echo x")
    assert verify(argusd, second["head"]["hash"])["ok"]
    missing = verify(argusd, "0" * 64)
    assert not missing["ok"] and missing["reason"]["code"] == "not_found"
    assert argusd.call("GET", "/v1/events:verify?expect=xyz").status == 400


@pytest.mark.parametrize("column, value", [
    ("actor", "'eve'"), ("text", "'nothing happened'"), ("at", "at+1"), ("data", "NULL"), ("object", "'user/eve'"),
    ("kind", "kind||'x'"), ("job_seq", "job_seq+1"), ("hash", "NULL"), ("hash", "zeroblob(32)"),
])  # fmt: skip
def test_a_changed_row_is_found(argusd, column, value):
    some_events(argusd)
    seq = next(e["seq"] for e in argusd.events() if e["kind"] == "user_added")
    tamper(argusd, f"UPDATE event SET {column}={value} WHERE seq={seq}")
    found = verify(argusd)
    assert not found["ok"] and found["broken_seq"] == seq
    done = cli(argusd, "events", "--verify")
    assert done.returncode == 1
    assert "BROKEN" in done.stdout and f"event {seq}" in done.stderr


def test_a_chain_made_anew_under_argusd_is_found(argusd):
    some_events(argusd)

    def is_found():
        """An event of argusd may come between the one and the other."""
        tamper(argusd, "UPDATE event SET hash=NULL, actor='eve'")
        found = verify(argusd)
        return not found["ok"] and "remembers" in found["reason"]["text"]

    until(is_found, "it is found")


def test_removed_moved_and_cut_off(argusd):
    found = some_events(argusd)
    tamper(argusd, "DELETE FROM event WHERE seq=3")
    assert verify(argusd)["broken_seq"] == 4
    argusd.stop()
    tamper(argusd, "UPDATE event SET seq=-5 WHERE seq=5", "UPDATE event SET seq=5 WHERE seq=4",
           "UPDATE event SET seq=4 WHERE seq=-5")  # fmt: skip
    argusd.start()
    assert verify(argusd)["broken_seq"] == 4
    assert found["head"]["seq"] > 5


def test_a_tail_that_was_cut_off(argusd):
    found = some_events(argusd)
    cut = f"DELETE FROM event WHERE seq>{found['head']['seq'] - 2}"
    tamper(argusd, cut)

    def is_cut_off():
        """An event that came in between breaks the chain instead: it is cut off, too."""
        code = verify(argusd)["reason"]["code"]
        tamper(argusd, cut, least=0)
        return code == "cut_off"

    until(is_cut_off, "argusd knows better")
    argusd.stop()
    tamper(argusd, cut, least=0)  # what came in between, if anything
    argusd.start()  # now it does not
    assert verify(argusd)["ok"]
    done = cli(argusd, "events", "--verify", "--expect", found["head"]["hash"])
    assert done.returncode == 1 and "expected hash" in done.stderr
    argusd.submit("echo x")
    assert not verify(argusd, found["head"]["hash"])["ok"]


def test_every_change_leaves_its_event(argusd):
    make_user(argusd, "bob")
    ask(argusd, "PATCH", "/v1/users/bob", 200, {"role": "viewer", "note": "n"})
    ask(argusd, "POST", "/v1/projects", 201, {"name": "p", "members": ["alice"]})
    ask(argusd, "PATCH", "/v1/projects/p", 200, {"add": ["bob"]})
    ask(argusd, "PUT", "/v1/projects/p/quota", 200, {"gpus_ceiling": 8})
    ask(argusd, "PUT", "/v1/users/bob/quota", 200, {"running": 1})
    made = ask(argusd, "POST", "/v1/tokens", 201, {"name": "t"}, token="user")
    ask(argusd, "DELETE", f"/v1/tokens/{made['id']}", 200, token="user")
    ask(argusd, "DELETE", "/v1/projects/p", 200)
    ask(argusd, "DELETE", "/v1/users/bob", 200)
    found = [(e["kind"], e["object"], e["actor"]) for e in argusd.events() if e["object"]]
    token = f"token/alice/{made['id']}"
    wanted = [
        ("user_changed", "user/bob", "admin"), ("project_added", "project/p", "admin"),
        ("project_changed", "project/p", "admin"), ("quota_changed", "project/p", "admin"),
        ("quota_changed", "user/bob", "admin"), ("token_added", token, "alice"), ("token_revoked", token, "alice"),
        ("project_removed", "project/p", "admin"), ("user_removed", "user/bob", "admin"),
    ]  # fmt: skip
    assert [f for f in found if f in wanted] == wanted
    changed = next(e for e in argusd.events() if e["kind"] == "user_changed")
    assert (changed["data"]["before"]["role"], changed["data"]["after"]["role"]) == ("user", "viewer")
    quota = next(e for e in argusd.events() if e["kind"] == "quota_changed")
    assert quota["data"]["before"]["gpus_ceiling"] is None
    assert quota["data"]["after"]["gpus_ceiling"] == 8
    assert made["token"] not in json.dumps(argusd.events())


# ---- the command line ----


def test_cli(argusd):
    assert ok(argusd, "user", "add", "bob", "--note", "ops").strip() == "user bob made"
    token = ok(argusd, "token", "add", "--user", "bob", "--expires", "90d").strip()
    assert re.fullmatch(r"argus_[A-Za-z0-9_-]{43}", token)
    assert ok(argusd, "whoami", token=token).startswith("bob (user)")
    assert "no user" in cli(argusd, "user", "set", "nobody", "--role", "user").stderr
    assert cli(argusd, "user", "set", "bob").returncode == 2
    ok(argusd, "user", "set", "bob", "--role", "viewer")
    assert cli(argusd, "user", "add", "x", token=token).returncode == 3
    ok(argusd, "user", "set", "bob", "--role", "user")
    ok(argusd, "project", "add", "rlhf", "--member", "alice,bob", "--share", "2", "--priority-ceiling", "70")
    ok(argusd, "project", "set", "rlhf", "--remove", "alice", "--pool", "h20")
    shown = json.loads(ok(argusd, "project", "show", "rlhf", "-o", "json"))
    assert (shown["members"], shown["pool"], shown["share"]) == (["bob"], "h20", 2)
    assert "priority ceiling   70" in ok(argusd, "project", "show", "rlhf")
    ok(argusd, "quota", "set", "--project", "rlhf", "--gpus", "16", "--guaranteed", "8")
    ok(argusd, "quota", "set", "--project", "rlhf", "--queued", "5")
    ok(argusd, "quota", "set", "--project", "rlhf", "--guaranteed", "none")
    quota = json.loads(ok(argusd, "quota", "show", "--project", "rlhf", "-o", "json"))["quota"]
    assert (quota["gpus_ceiling"], quota["gpus_guaranteed"], quota["queued"]) == (16, None, 5)
    assert cli(argusd, "quota", "set", "--project", "rlhf").returncode == 2
    assert cli(argusd, "quota", "set", "--gpus", "3").returncode == 2
    for args in (("user", "ls"), ("token", "ls", "-a"), ("project", "ls"), ("quota", "ls")):
        text = ok(argusd, *args)
        assert "bob" in text or "rlhf" in text, args
        assert json.loads(ok(argusd, *args, "-o", "json")), args
    listed = json.loads(ok(argusd, "token", "ls", "--user", "bob", "-o", "json"))["tokens"]
    assert ok(argusd, "token", "revoke", listed[0]["id"]).strip() == f"token {listed[0]['id']} revoked"
    assert cli(argusd, "whoami", token=token).returncode == 3
    ok(argusd, "project", "rm", "rlhf")
    ok(argusd, "user", "rm", "bob")
    assert cli(argusd, "user", "rm", "bob").returncode == 4
    text = ok(argusd, "events", "--verify")
    head = re.search(r"^head ([0-9a-f]{64})$", text, re.M)[1]
    assert json.loads(ok(argusd, "events", "--verify", "--expect", head, "-o", "json"))["ok"] is True
    assert cli(argusd, "events", "--verify", token="user").returncode == 3
    assert cli(argusd, "events", "--expect", head).returncode == 2


# ---- what was used ----


def test_use_outlives_restarts(tmp_path):
    def hours(argusd):
        quotas = [argusd.get(f"/v1/{path}/quota") for path in ("projects/default", "users/alice")]
        return [quota["usage"]["gpu_hours_this_month"] for quota in quotas]

    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        assert hours(argusd) == [0, 0]
        job = argusd.submit("exec tail -f /dev/null", n_gpus_per_node=2)
        argusd.wait_state(job, "RUNNING")
        until(lambda: min(hours(argusd)) > 0, "GPUs are counted")
        argusd.restart()  # it is written at the end
        running = hours(argusd)
        assert min(running) > 0
        argusd.stop_job(job)
        argusd.wait_over(job)
        until(lambda: argusd.get("/v1/users/alice/quota")["usage"]["gpus"] == 0, "the GPUs are back")
        used = hours(argusd)
        assert used[0] >= running[0] > 0
        argusd.submit("echo x")  # what is on disk now holds what was written before
        argusd.kill9()
        argusd.start()
        after = hours(argusd)
        assert after == pytest.approx(used)
