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
    seen = until(lambda: (w := argusd.get(f"/v1/jobs/{his}/why"))["hint"] and w, "the hint is there")  # an admin's
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
        argusd.wait_job(his, lambda v: f"behind '{first}'" in v["reason"]["text"], "says behind whom it waits")
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
    ended = argusd.submit("true", token="alice", n_gpus_per_node=0)
    argusd.wait_over(ended)
    argusd.restart()
    jobs = (hers, ended, "no-such-job")
    answers = [argusd.call("POST", "/v1/jobs:stop", {"ids": [job]}, token="bob") for job in jobs]
    assert [a.status for a in answers] == [404, 404, 404]
    words = [a.json()["detail"].replace(job, "X") for a, job in zip(answers, jobs, strict=True)]
    assert words == ["no job 'X'"] * 3
    reply = argusd.call("POST", "/v1/jobs:stop", {"ids": [ended]}, token="alice")  # asked again, nothing is wrong
    assert (reply.status, reply.json()["jobs"]) == (202, [])


def test_an_id_that_is_taken_is_told_without_whose(argusd):
    hers = argusd.submit(PATIENT, token="alice", submission_id="of-alice")
    (argusd.root / "jobs/a-directory").mkdir()
    taken = [argusd.post(Argusd.spec("true", submission_id=i), token="bob") for i in (hers, "a-directory")]
    assert [r.status for r in taken] == [409, 409]
    words = [r.json()["detail"].replace(i, "X") for r, i in zip(taken, (hers, "a-directory"), strict=True)]
    assert words[0] == words[1], words
    assert taken[1].json()["hint"] == "leave it out, or choose another"


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
        """To the end: a figure of the job that changes meanwhile is an answer, too, of a job that runs."""
        reply = first
        while reply.status in (200, 304):
            assert reply.status == 304 or reply.json()["state"] == "RUNNING", reply
            tag = reply.headers["ETag"]
            reply = argusd.call("GET", f"/v1/jobs/{hers}?wait=60s", token="carol", If_None_Match=tag)
        late["reply"] = reply

    first = argusd.call("GET", f"/v1/jobs/{hers}", token="carol")
    waiter = threading.Thread(target=wait_long)
    waiter.start()
    make(argusd, "/v1/projects/p", {"remove": ["carol"]}, "PATCH")
    assert [kind for _, kind, _ in lines] == []  # to its end
    argusd.stop_job(hers)
    argusd.wait_over(hers)
    waiter.join()
    assert late and late["reply"].status == 404
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


def told_of(argusd, job, token):
    """What a spec is told that names this job in each way that there is; the job's id is put as JOB."""
    sft = {"workload": "sft", "n_gpus_per_node": 1, "model_id": "o/m", "train_file": "${SHARED_ROOT}/common/x.parquet"}
    ways = [
        {**sft, "resume": job},
        {**sft, "resume": f"{job}@10"},
        {**sft, "model_id": f"${{SHARED_ROOT}}/jobs/{job}/checkpoints/global_step_10/actor/huggingface"},
        {**sft, "train_file": [f"${{SHARED_ROOT}}/common/../jobs/{job}/out.parquet"]},
        {**sft, "overrides": [f"data.x=${{SHARED_ROOT}}/jobs/{job}/x"]},
        Argusd.spec(f"cat {argusd.root}/jobs/{job}/meta.json"),
        Argusd.spec("true", working_dir=f"{argusd.root}/jobs/{job}"),
        Argusd.spec("true", env={"FROM": f"{argusd.root}/jobs/{job}"}),
        Argusd.spec("true", extra_pythonpath=[f"{argusd.root}//jobs/{job}/code"]),
    ]
    replies = [argusd.post(way, "?dry_run=1&no_trial=1", token=token) for way in ways]
    return [(r.status, r.json().get("detail", "").replace(job, "JOB"), r.json().get("field")) for r in replies]


def test_a_spec_names_no_job_that_one_may_not_see(argusd):
    ended = argusd.submit("true", token="alice", project="p")
    argusd.wait_over(ended)
    live = argusd.submit(PATIENT, token="alice", project="p")
    never = told_of(argusd, "never-was", "bob")
    assert {(status, text) for status, text, _ in never} == {(422, "no job 'JOB'")}, never
    fields = ["resume", "resume", "model_id", "train_file", "overrides", "entrypoint", "working_dir", "env"]
    assert [field for _, _, field in never] == [*fields, "extra_pythonpath"]
    argusd.restart()  # the one that is over is in the store alone
    assert told_of(argusd, ended, "bob") == told_of(argusd, live, "bob") == never
    for job in (ended, live):
        for token in ("carol", "alice", "admin"):
            assert not any("no job" in text for _, text, _ in told_of(argusd, job, token)), token
    mine = Argusd.spec(f"ls {argusd.root}/jobs/own-one", submission_id="own-one")
    assert argusd.post(mine, "?dry_run=1", token="bob").status == 200
