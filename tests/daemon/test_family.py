# SPDX-License-Identifier: Apache-2.0
"""The family of a job: retries, forks and resumes as a tree, in what each spec differs from its parent's, and notes."""

import json
import os
import random
import subprocess
import unicodedata
import urllib.parse

import broken
import pytest
from checkpoints import TRACKER, put_checkpoint
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd

COMMON = "${SHARED_ROOT}/common"
TRAIN = {
    "workload": "grpo",
    "n_gpus_per_node": 4,
    "pool": "nowhere",
    "model_id": f"{COMMON}/models/tiny",
    "train_file": f"{COMMON}/datasets/train.parquet",
    "val_file": f"{COMMON}/datasets/val.parquet",
    "overrides": ["actor_rollout_ref.actor.optim.lr=1e-6", "trainer.total_epochs=3"],
}
WAITS = Argusd.spec("echo x", pool="nowhere", name="the first", priority=40, env={f"K{i}": f"v{i}" for i in range(8)})
MOST = 1000  # jobs that are told


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("family"), ray.url) as argusd:
        broken.make_world(argusd.root)
        for user in ("bob", "carol"):
            assert argusd.call("POST", "/v1/users", {"name": user}).status == 201
            argusd.tokens[user] = argusd.call("POST", "/v1/tokens", {"user": user}).json()["token"]
        team = {"name": "team", "members": ["alice", "bob"]}
        assert argusd.call("POST", "/v1/projects", team).status == 201
        yield argusd


def made(w, spec, parent=None, note=None, token="user"):
    words = {k: v for k, v in (("from", parent), ("note", note), ("no_trial", "1")) if v}
    reply = w.post(spec, "?" + urllib.parse.urlencode(words), token=token)
    assert reply.status == 201, reply
    return reply.json()["id"]


def family(w, job, token="user"):
    page = w.get(f"/v1/jobs/{job}/family", token=token)
    assert page["job"] == job
    return page


def rows(w, job, token="user"):
    """By id, and that each stands behind its parent, one deeper."""
    page, seen = family(w, job, token), {}
    for row in page["jobs"]:
        assert row["id"] not in seen
        assert row["depth"] == (seen[row["parent"]]["depth"] + 1 if row["parent"] else 0)
        assert (row["how"] is None) == (row["parent"] is None) == (row["depth"] == 0)
        seen[row["id"]] = row
    return seen


def edits(row):
    return {e["key"]: (e["old"], e["new"]) for e in row["changes"]}


def refused(reply, status, *words):
    assert reply.status == status, reply
    assert all(word in reply.body.decode() for word in words), reply


def argus(w, *args, token="user", lang="C.UTF-8", **more):
    env = {**os.environ, "ARGUS_URL": w.url, "ARGUS_TOKEN": w.tokens[token], "LANG": lang, "LC_ALL": lang, **more}
    return subprocess.run([PROGRAMS["argus"], *args], env=env, capture_output=True, text=True)


def test_retry_fork_and_resume(w):
    root = made(w, TRAIN, note="学习率 <b>1e-6</b>")
    w.stop_job(root)
    kept = w.job_dir(root) / "checkpoints"
    put_checkpoint(kept, 20)
    (kept / TRACKER).write_text("20")
    call = lambda body: w.call("POST", f"/v1/jobs/{root}:retry?no_trial=1", body, token="user")  # noqa: E731
    again = call({"patch": {"nnodes": 2}, "note": "on two nodes"}).json()["id"]
    on = call({"from": "latest"}).json()["id"]
    rate = "actor_rollout_ref.actor.optim.lr"
    spec = {**TRAIN, "overrides": [f"{rate}=5e-7", "trainer.total_epochs=3", "trainer.save_freq=5"]}
    fork = made(w, spec, parent=root)
    by_hand = made(w, {**TRAIN, "resume": f"{root}@20"})
    deeper = made(w, {**spec, "name": "deeper"}, parent=fork)
    seen = rows(w, deeper)
    assert list(seen) == [root, again, on, fork, deeper, by_hand]
    told = {job: (r["parent"], r["how"], r["step"], r["note"]) for job, r in seen.items()}
    assert told == {
        root: (None, None, None, "学习率 <b>1e-6</b>"),
        again: (root, "retry", None, "on two nodes"),
        on: (root, "resume", 20, None),
        fork: (root, "fork", None, None),
        by_hand: (root, "resume", 20, None),
        deeper: (fork, "fork", None, None),
    }
    assert seen[root]["changes"] is None
    assert edits(seen[again]) == {"nnodes": (None, "2")}
    assert edits(seen[on]) == edits(seen[by_hand]) == {"resume": (None, f"{root}@20")}
    changed = {f"overrides.{rate}": ("1e-6", "5e-7"), "overrides.trainer.save_freq": (None, "5")}
    assert edits(seen[fork]) == changed
    assert edits(seen[deeper]) == {"name": (None, "deeper")}
    assert seen[root]["state"] == "STOPPED" and seen[root]["ended_at"] and seen[fork]["ended_at"] is None
    assert list(rows(w, root)) == list(seen), "whichever of them is asked about"
    for job in list(seen)[1:]:
        w.stop_job(job)


def test_each_of_a_hundred_edges_is_the_difference(w):
    rng = random.Random(11)
    root = made(w, WAITS)
    specs, wanted = {root: WAITS}, {}
    for n in range(100):
        parent = rng.choice(list(specs)) if n % 4 == 0 else root
        old = specs[parent]
        spec, changed = {**old, "env": dict(old["env"])}, {}
        for key in rng.sample(sorted(old["env"]), rng.randrange(4)):
            value = None if rng.random() < 0.3 else f"{rng.random()}"
            changed[f"env.{key}"] = (old["env"][key], value)
            spec["env"] = {k: v for k, v in spec["env"].items() if k != key} | ({key: value} if value else {})
        if rng.random() < 0.5:
            spec["name"] = f"fork {n}"
            changed["name"] = (old["name"], spec["name"])
        if rng.random() < 0.5:
            spec["nnodes"] = old["nnodes"] + 1
            changed["nnodes"] = (str(old["nnodes"]), str(spec["nnodes"]))
        if rng.random() < 0.3:
            changed["timeout"] = (old.get("timeout"), f"{n + 1}h")
            spec["timeout"] = f"{n + 1}h"
        items = list(spec.items())
        rng.shuffle(items)  # the order of its keys is no difference
        job = made(w, dict(items), parent=parent)
        specs[job], wanted[job] = spec, (parent, changed)
    seen = rows(w, root)
    assert len(seen) == 101 and not family(w, root)["more"]
    assert {job: (r["parent"], edits(r)) for job, r in seen.items() if job != root} == wanted
    w.kill9()
    w.start()
    assert rows(w, root) == seen, "after a kill it is as it was"


def test_secrets_are_stars(w):
    old = made(w, {**WAITS, "env": {"MY_TOKEN": "first-secret-value", "A": "1"}})
    new = made(w, {**WAITS, "env": {"MY_TOKEN": "second-secret-value", "A": "second-secret-value"}}, parent=old)
    same = made(w, {**WAITS, "env": {"MY_TOKEN": "first-secret-value", "A": "1"}}, parent=old)
    reply = w.call("GET", f"/v1/jobs/{old}/family", token="user")
    assert b"secret-value" not in reply.body
    seen = rows(w, old)
    assert edits(seen[new]) == {"env.MY_TOKEN": ("***", "***"), "env.A": ("1", "***")}
    assert edits(seen[same]) == {}, "sealed twice, and the same"


def test_of_two_secrets_that_begin_alike_nothing_is_left(w):
    old = made(w, {**WAITS, "env": {"MY_TOKEN": "one-secret", "A": "1"}})
    new = made(w, {**WAITS, "env": {"MY_TOKEN": "one-secret-rotated", "A": "one-secret-rotated"}}, parent=old)
    assert edits(rows(w, old)[new])["env.A"] == ("1", "***")


def test_so_much_is_not_told(w):
    """64 KiB of differences a job, 4 MiB of a page."""
    root = made(w, WAITS)
    wide = made(w, {**WAITS, "env": {"WIDE": "x" * 70_000}}, parent=root)
    page = family(w, root)
    assert page["more"] and rows(w, root)[wide]["changes"] is None
    root = made(w, WAITS)
    size, most = 60_000, 4 << 20
    for n in range(most // size + 3):
        made(w, {**WAITS, "env": {**WAITS["env"], "LONG": f"{n:03}" + "x" * (size - 3)}}, parent=root)
    page = family(w, root)
    told = [row for row in page["jobs"] if row["changes"]]
    assert page["more"] and len(page["jobs"]) == most // size + 4
    assert most // (size + 200) <= len(told) <= most // size
    assert told == page["jobs"][1 : len(told) + 1], "the first ones are"
    assert all(edits(row)["env.LONG"][1].startswith(f"{n:03}x") for n, row in enumerate(told))
    assert not family(w, made(w, WAITS))["more"]


def test_a_stranger_sees_from_where_he_may(w):
    root = made(w, WAITS, note="only alice's")
    team = made(w, {**WAITS, "project": "team"}, parent=root)
    hidden = made(w, WAITS, parent=team, note="only alice's")
    shared = made(w, {**WAITS, "project": "team", "name": "shared"}, parent=team)
    below = made(w, {**WAITS, "project": "team"}, parent=hidden)
    assert set(rows(w, shared)) == {root, team, hidden, shared, below}
    reply = w.call("GET", f"/v1/jobs/{shared}/family", token="bob")
    assert not any(word.encode() in reply.body for word in (root, hidden, "only alice"))
    seen = rows(w, shared, "bob")
    assert list(seen) == [team, shared]
    first = seen[team]
    assert (first["parent"], first["how"], first["step"], first["changes"]) == (None, None, None, None)
    assert list(rows(w, below, "bob")) == [below], "what it came of is out of sight"
    for job in (root, hidden):
        refused(w.call("GET", f"/v1/jobs/{job}/family", token="bob"), 404)
    refused(w.call("GET", f"/v1/jobs/{shared}/family", token="carol"), 404)


def test_from_a_job_that_is_not_there(w):
    root = made(w, WAITS)
    unseen = w.post(WAITS, f"?from={root}", token="bob")
    never = w.post(WAITS, "?from=never-was", token="bob")
    for reply, job in ((unseen, root), (never, "never-was"), (w.post(WAITS, "?from=never-was"), "never-was")):
        refused(reply, 422, '"from"', f"no job '{job}'")
    says = lambda reply: reply.json()["detail"]  # noqa: E731
    assert says(unseen).replace(root, "never-was") == says(never), "one sentence for both"
    refused(w.post(WAITS, "?dry_run=1&from=never-was", token="user"), 422, '"from"')
    assert list(rows(w, root)) == [root]


def test_one_key_is_one_origin(w):
    root, other = made(w, WAITS), made(w, WAITS)
    first = w.post(WAITS, f"?from={root}", token="user", Idempotency_Key="once")
    again = w.post(WAITS, f"?from={root}", token="user", Idempotency_Key="once")
    assert (first.status, again.status) == (201, 200) and first.json()["id"] == again.json()["id"]
    refused(w.post(WAITS, f"?from={other}", token="user", Idempotency_Key="once"), 409)
    assert len(rows(w, root)) == 2


def test_notes(w):
    job = made(w, WAITS)
    note = lambda body, token="user": w.call("POST", f"/v1/jobs/{job}:note", body, token=token)  # noqa: E731
    assert note({"note": "a <i>reason</i>"}).json() == {"id": job, "note": "a <i>reason</i>"}
    assert rows(w, job)[job]["note"] == "a <i>reason</i>"
    for bad in ("two\nlines", "x" * 501, "\x1b[31m", "a\u2028b"):
        refused(note({"note": bad}), 400, "one line")
        refused(w.post(WAITS, f"?note={urllib.parse.quote(bad)}", token="user"), 400)
    refused(note({"note": 7}), 400, "note")
    refused(note({"notes": "x"}), 400, "notes")
    assert note({"note": "a\u2067b\u061cc"}).json()["note"] == "a\u2067b\u061cc"
    shown = argus(w, "family", job).stdout
    assert "a?b?c" in shown and not {"\u2067", "\u061c"} & set(shown), "no line is turned round"
    assert note({"note": "a <i>reason</i>"}).status == 200
    refused(note({"note": "x"}, "bob"), 404)
    refused(note({"note": "x"}, "viewer"), 403)
    w.stop_job(job)
    retry = lambda body: w.call("POST", f"/v1/jobs/{job}:retry", body, token="user")  # noqa: E731
    for wrong in (7, ["x"], {"a": "x"}, False):
        refused(retry({"note": wrong}), 400, "'note' is not text")
    refused(retry({"note": "two\nlines"}), 400, "one line")
    assert list(rows(w, job)) == [job]
    assert note({"note": "y" * 500}, "admin").status == 200, "also when it is over"
    w.restart()
    assert rows(w, job)[job]["note"] == "y" * 500
    assert note({"note": None}).json()["note"] is None and rows(w, job)[job]["note"] is None
    told = [(e["actor"], e["text"]) for e in w.events(job) if e["kind"] == "change"]
    assert told[0] == ("alice", "noted: a <i>reason</i>") and told[-1] == ("alice", "its note was taken away")
    assert [actor for actor, _ in told] == ["alice"] * 3 + ["admin", "alice"]


def width(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def test_on_the_command_line(w, tmp_path):
    file = tmp_path / "job.json"
    file.write_text(json.dumps({**WAITS, "name": "学习率减半的一次很长很长的实验" * 4}))
    root = made(w, WAITS)
    done = argus(w, "submit", "--from", root, "--note", "半个学习率 half the rate " * 6, str(file))
    fork = done.stdout.strip()
    assert done.returncode == 0 and rows(w, root)[fork]["how"] == "fork", done.stderr
    w.stop_job(fork)
    again = argus(w, "retry", "--note", "once more", fork).stdout.strip()
    assert rows(w, root)[again]["note"] == "once more"
    assert argus(w, "note", again, "why not").stdout.strip() == again
    for lang, word in (("C.UTF-8", "fork"), ("zh_CN.UTF-8", "派生")):
        done = argus(w, "family", again, lang=lang, COLUMNS="80")
        lines = done.stdout.splitlines()
        assert done.returncode == 0 and max(map(width, lines)) <= 80, done
        assert lines[0].startswith(f"{root} QUEUED") and f"└─ {fork} STOPPED {word}" in lines[1]
        assert any("why not" in line for line in lines) and any("name the first → 学习率" in line for line in lines)
    told = json.loads(argus(w, "family", again, "-o", "json").stdout)
    assert told == family(w, again)
    alone = argus(w, "family", made(w, WAITS))
    assert alone.returncode == 0 and "nothing came of job" in alone.stderr
    assert argus(w, "note", again, "").returncode == 0 and rows(w, again)[again]["note"] is None
    assert argus(w, "note", again, "a\nb").returncode != 0
    assert argus(w, "submit", "--from", "never-was", str(file)).returncode != 0
    for call in (("submit", "--note", "x" * 501, str(file)), ("retry", "--note", "x" * 5000, fork)):
        done = argus(w, *call)
        assert done.returncode == 2 and "a note is one line of text" in done.stderr, done
    done = argus(w, "submit", "--from", "x" * 5000, "--note", "why", str(file))
    assert done.returncode == 2 and "'--from' is too long" in done.stderr, done
    for job in (root, again):
        w.stop_job(job)


def test_no_more_are_told_than_anybody_reads(w):
    root = made(w, WAITS)
    forks = [made(w, WAITS, parent=root) for _ in range(MOST + 5)]
    page = family(w, root)
    assert len(page["jobs"]) == MOST and page["more"]
    last = family(w, forks[-1])
    assert len(last["jobs"]) == MOST and last["more"]
    assert {root, forks[-1]} <= {row["id"] for row in last["jobs"]}, "the job itself and its line are there"
    assert "not all are told" in argus(w, "family", root).stderr
