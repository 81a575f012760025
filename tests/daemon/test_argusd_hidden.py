# SPDX-License-Identifier: Apache-2.0
"""What one may not see is not named to him: in reasons, hints, events, lists of others, and in what goes on long."""

import contextlib
import json
import threading

import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

PATIENT = "echo up; exec tail -f /dev/null"
WHOLE = {"nnodes": 2, "n_gpus_per_node": 4}  # all that the fake Ray has


@contextlib.contextmanager
def house(tmp_path, more=""):
    """alice and bob do not see each other; carol is with alice in project p, with bob in project q."""
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url, more) as a:
        a.ray = ray
        a.tokens["alice"] = a.tokens["user"]
        for name in ("bob", "carol"):
            make(a, "/v1/users", {"name": name})
            a.tokens[name] = make(a, "/v1/tokens", {"user": name})["token"]
        make(a, "/v1/projects", {"name": "p", "members": ["alice", "carol"]})
        make(a, "/v1/projects", {"name": "q", "members": ["bob", "carol"]})
        yield a


@pytest.fixture
def argusd(tmp_path):
    with house(tmp_path) as a:
        until(lambda: dry_run(a, "alice")["placement"], "argusd has seen Ray and the shared root")
        yield a


def make(argusd, path, body, method="POST"):
    reply = argusd.call(method, path, body)
    assert reply.status in (200, 201), reply
    return reply.json()


def dry_run(argusd, token):
    return argusd.post(Argusd.spec("echo x", **WHOLE), "?dry_run=1", token=token).json()


def running(argusd, token, **keys):
    job = argusd.submit(PATIENT, token=token, **{**WHOLE, **keys})
    argusd.wait_state(job, "RUNNING")
    return job


def told(argusd, job, token):
    """All that one is told of his own job and of the queue."""
    paths = (f"/v1/jobs/{job}", f"/v1/jobs/{job}/why", f"/v1/jobs/{job}/events", "/v1/jobs", "/v1/events?limit=1000")
    rows = [argusd.call("GET", path, token=token) for path in paths]
    rows.append(argusd.post(Argusd.spec("echo x", **WHOLE), "?dry_run=1", token=token))
    assert all(r.status == 200 for r in rows), rows
    return "\n".join(r.body.decode() for r in rows)


def test_why_names_only_jobs_that_one_may_see(argusd):
    hers = running(argusd, "alice", project="p", submission_id="the-one-of-alice")
    his = argusd.submit("echo x", token="bob", **WHOLE)
    until(lambda: argusd.get(f"/v1/jobs/{his}/why")["hint"], "the hint is there")
    seen = argusd.get(f"/v1/jobs/{his}/why")  # an admin's
    assert (seen["hint"]["kind"], seen["hint"]["job"]) == ("job_end", hers)
    assert f"when job '{hers}' ends" in seen["hint_text"]
    seen = argusd.get(f"/v1/jobs/{his}/why", token="bob")
    assert (seen["hint"]["kind"], seen["hint"]["job"]) == ("job_end", None)
    assert "when another's job ends" in seen["hint_text"]
    assert hers not in told(argusd, his, "bob")
    argusd.stop_job(his)
    mine = argusd.submit("echo x", token="carol", **WHOLE)
    seen = until(lambda: argusd.get(f"/v1/jobs/{mine}/why", token="carol")["hint"], "the hint is there")
    assert seen["job"] == hers  # of her project


def test_the_first_in_line_is_not_named_to_strangers(tmp_path):
    with house(tmp_path, "policy: fifo") as argusd:
        until(lambda: dry_run(argusd, "alice")["placement"], "argusd has seen Ray and the shared root")
        running(argusd, "alice", n_gpus_per_node=3)
        first = argusd.submit("echo x", token="alice", submission_id="first-of-alice", **WHOLE)
        his = argusd.submit("echo x", token="bob", n_gpus_per_node=1)
        own = argusd.submit("echo x", token="alice", n_gpus_per_node=1)
        assert f"behind '{first}'" in argusd.job(his)["reason"]["text"]
        assert f"behind '{first}'" in argusd.get(f"/v1/jobs/{own}/why", token="alice")["text"]
        assert "behind another's job, which" in argusd.get(f"/v1/jobs/{his}/why", token="bob")["text"]
        assert first not in told(argusd, his, "bob")


def test_who_gives_gpus_back_is_not_told_to_whose_job(tmp_path):
    with house(tmp_path, "limits: {reclaim_grace: 1h}") as argusd:
        until(lambda: dry_run(argusd, "alice")["placement"], "argusd has seen Ray and the shared root")
        make(argusd, "/v1/projects/p/quota", {"gpus_guaranteed": 8}, "PUT")
        his = running(argusd, "bob", project="q", restart={"max": 1})
        hers = argusd.submit("echo x", token="alice", project="p", submission_id="guaranteed-one", **WHOLE)
        until(lambda: "reclaim" in argusd.kinds(his), "bob's job is asked for its GPUs")
        assert any(hers in e["text"] for e in argusd.events(his))
        words = told(argusd, his, "bob")
        assert "another project needs 8 of its 8 guaranteed GPUs for " in words
        assert hers not in words
        assert "project 'p'" not in words


def test_projects_of_another_are_shown_as_far_as_one_sees_them(argusd):
    make(argusd, "/v1/projects", {"name": "secret", "members": ["carol"]})

    def projects(path, token):
        rows = argusd.get(path, token=token)
        rows = rows.get("users", [rows])
        return next(u["projects"] for u in rows if u["name"] == "carol")

    for path in ("/v1/users", "/v1/users/carol"):
        assert projects(path, "alice") == ["p"]
        assert projects(path, "bob") == ["q"]
        assert projects(path, "carol") == projects(path, "admin") == projects(path, "viewer") == ["p", "q", "secret"]


def test_stop_many_says_the_same_of_hidden_and_of_no_jobs(argusd):
    hers = running(argusd, "alice")
    answers = [argusd.call("POST", "/v1/jobs:stop", {"ids": [job]}, token="bob") for job in (hers, "no-such-job")]
    assert [a.status for a in answers] == [404, 404]
    assert answers[0].json()["detail"].replace(hers, "X") == answers[1].json()["detail"].replace("no-such-job", "X")


def test_who_leaves_a_project_hears_no_more_of_its_jobs(argusd):
    """Streams and long-polls that began while he was in it."""
    hers = running(argusd, "alice", project="p")
    until(lambda: {"started", "driver_placed"} <= set(argusd.kinds(hers)), "nothing more is to come")
    last = argusd.events(hers)[-1]["seq"]
    events = argusd.stream(f"/v1/jobs/{hers}/events?follow=1", token="carol")
    log = argusd.stream(f"/v1/jobs/{hers}/logs?follow=1", token="carol")
    rows, lines = iter(events), iter(log)
    while next(rows)[2]["seq"] < last:
        pass
    assert next(lines)[1] == "log"
    late = {}

    def wait_long():
        late["reply"] = argusd.call("GET", f"/v1/jobs/{hers}?wait=60s", token="carol", If_None_Match=tag)

    tag = argusd.call("GET", f"/v1/jobs/{hers}", token="carol").headers["ETag"]
    waiter = threading.Thread(target=wait_long)
    waiter.start()
    make(argusd, "/v1/projects/p", {"remove": ["carol"]}, "PATCH")
    assert [kind for _, kind, _ in lines] == []  # to its end
    argusd.stop_job(hers)
    argusd.wait_over(hers)
    waiter.join()
    assert late["reply"].status == 404
    own = argusd.stream("/v1/events?follow=1&since=0", token="carol")
    assert hers not in {data["job"] for _, _, data in (next(iter(own)),)}
    make(argusd, "/v1/users/carol", {"disabled": True}, "PATCH")
    argusd.submit("echo x", token="alice")  # whatever happens next ends them
    assert [data["kind"] for _, _, data in rows] == []
    for stream in (events, log, own):
        stream.close()


def test_a_change_of_a_large_project_is_in_the_log_whole(argusd):
    names = [f"{i:04}-{'x' * 26}" for i in range(1000)]
    with contextlib.closing(argusd.open()) as c:
        for name in names:
            c.request("POST", "/v1/users", json.dumps({"name": name}), argusd.head(argusd.tokens["admin"], {}))
            reply = c.getresponse()
            assert (reply.status, reply.read()[:0]) == (201, b"")
    make(argusd, "/v1/projects", {"name": "large", "members": names})
    make(argusd, "/v1/projects/large", {"note": "now"}, "PATCH")
    changed = next(e for e in argusd.events() if e["kind"] == "project_changed" and e["object"] == "project/large")
    assert (changed["data"]["before"]["note"], changed["data"]["after"]["note"]) == ("", "now")
    assert changed["data"]["after"]["members"] == names
