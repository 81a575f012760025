# SPDX-License-Identifier: Apache-2.0
"""Logs beside the driver's: what Ray's workers printed and the scene, listed and read by name through argusd and the
command line, and nothing else of the machine."""

import json
import subprocess
import urllib.parse

import jsonschema
import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd

ZERO, ONE, OTHER = "worker-a0-02000000-11.out", "worker-b1-02000000-12.out", "worker-c2-02000000-13.err"
RANKS = {ZERO: {"pid": 11, "actor": "Trainer", "rank": 0}, ONE: {"pid": 12, "actor": "Trainer", "rank": 1}}


def put_logs(attempt):
    """As the scouts of two nodes leave them; the log of rank 0 in three segments, with a gap before the last."""
    one, two = attempt / "logs/workers/w1", attempt / "logs/workers/w2"
    for directory in (one, two, attempt / "scene/w1/logs"):
        directory.mkdir(parents=True)
    (one / ZERO).write_text("zero begins\n")
    (one / f"{ZERO}.12").write_text("zero goes on\n")
    (one / f"{ZERO}.100").write_text("zero ends\n")
    (one / ONE).write_text("one says\nfar more")
    (one / "ranks.json").write_text(json.dumps(RANKS))
    (two / OTHER).write_text("")
    (two / "notes.txt").write_text("no log")
    (attempt / "scene/w1/kernel.txt").write_text("oom-kill\n")
    (attempt / "scene/w1/scene.json").write_text("{}\n")
    (attempt / "scene/w1/logs/python-core-worker-a0_11.log").write_text("core\n")


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("logfiles"), ray.url) as argusd:
        argusd.done = argusd.submit("echo the driver")
        argusd.wait_over(argusd.done)
        argusd.attempt = argusd.job_dir(argusd.done) / "attempts/1"
        put_logs(argusd.attempt)
        assert argusd.call("POST", "/v1/users", {"name": "bob"}).status == 201
        argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
        yield argusd


def files(w, query=""):
    return w.get(f"/v1/jobs/{w.done}/logs/files{query}")["files"]


def read(w, source, file, token="user", **more):
    query = urllib.parse.urlencode({"source": source, "file": file, **more})
    return w.call("GET", f"/v1/jobs/{w.done}/logs?{query}", token=token)


def test_the_list(w):
    page = w.get(f"/v1/jobs/{w.done}/logs/files")
    api = w.get("/v1/openapi.json")
    jsonschema.validate(page, api["components"]["schemas"]["LogFiles"])
    assert (page["id"], page["attempt"], page["cut"]) == (w.done, 1, False)
    assert [(f["file"], f["rank"], f["actor"], f["pid"], f["bytes"]) for f in page["files"]] == [
        (f"w1/{ZERO}", 0, "Trainer", 11, 110),
        (f"w1/{ONE}", 1, "Trainer", 12, 17),
        (f"w2/{OTHER}", None, None, None, 0),
        ("w1/kernel.txt", None, None, None, 9),
        ("w1/scene.json", None, None, None, 3),
        ("w1/logs/python-core-worker-a0_11.log", None, None, None, 5),
    ]
    assert {f["source"] for f in files(w, "?source=worker")} == {"worker"}
    assert len(files(w, "?source=scene")) == 3
    assert [f["file"] for f in files(w, "?node=w2")] == [f"w2/{OTHER}"]
    assert files(w, "?node=w9") == files(w, "?node=../workers/w2") == files(w, "?node=") == []


def test_one_file(w):
    for f in files(w):
        reply = read(w, f["source"], f["file"])
        assert (reply.status, reply.headers["Argus-Log-Size"]) == (200, str(f["bytes"])), f
    assert read(w, "worker", f"w1/{ZERO}").body == b"zero begins\nzero goes on\n"
    behind = read(w, "worker", f"w1/{ZERO}", offset=25)
    assert (behind.body, behind.headers["Argus-Log-Offset"]) == (b"zero ends\n", "100")
    assert read(w, "worker", f"w1/{ONE}", tail=1).body == b"far more"
    assert read(w, "worker", f"w1/{ONE}", offset=4, limit=4).body == b"says"
    assert read(w, "scene", "w1/kernel.txt").body == b"oom-kill\n"
    data, end = w.follow(w.done, f"&source=worker&file=w1/{ONE}")
    assert (data, end["state"]) == (b"one says\nfar more", "SUCCEEDED")


@pytest.mark.parametrize("source, file, status", [
    ("worker", "w1/ranks.json", 400), ("worker", "w1/driver.log", 400), ("worker", "w2/notes.txt", 400),
    ("worker", f"w1/../w1/{ONE}", 400), ("worker", f"../workers/w1/{ONE}", 400), ("worker", f"/w1/{ONE}", 400),
    ("worker", f"w1/{ONE}/", 400), ("worker", f"./{ONE}", 400), ("worker", ONE, 400), ("worker", "", 400),
    ("worker", "w1/worker-../../../../driver.out", 400), ("worker", "w1/worker-\n.out", 400),
    ("worker", f"w9/{ONE}", 404), ("worker", "w1/worker-none.out", 404), ("worker", f"w1/{ZERO}.12", 400),
    ("worker", f"linked/{ONE}", 404), ("worker", "w1/worker-linked.out", 404), ("worker", "w1/worker-dir.out", 404),
    ("scene", "w1/../../exit.json", 400), ("scene", "w1/logs/../scene.json", 400), ("scene", "w1/core", 400),
    ("scene", "w1/logs/none.log", 404), ("driver", f"w1/{ONE}", 400), ("platform", f"w1/{ONE}", 400),
])  # fmt: skip
def test_no_way_out(w, source, file, status):
    """Neither by its name nor by a link that the job made."""
    workers = w.attempt / "logs/workers"
    outside = w.home / "outside"
    if not outside.exists():
        outside.mkdir()
        (outside / ONE).write_text("secret")
        (workers / "linked").symlink_to(outside)
        (workers / "w1/worker-linked.out").symlink_to(outside / ONE)
        (workers / "w1/worker-dir.out").mkdir()
    reply = read(w, source, file)
    assert reply.status == status and "secret" not in reply.body.decode()
    word = {400: "bad_request", 404: "not_found"}[status]
    assert reply.json()["type"] == f"urn:argus:problem:{word}"
    assert not [f for f in files(w) if "linked" in f["file"] or "dir" in f["file"]]


def test_what_goes_together(w):
    for source, file in (("driver", f"w1/{ONE}"), ("all", f"w1/{ONE}"), ("worker", "x"), ("scene", "../x")):
        assert read(w, source, file, grep="x").status == 400
    assert read(w, "worker", f"w1/{ONE}", attempt=2).status == 404
    assert read(w, "worker", f"w1/{ONE}", token="bob").status == 404
    assert w.call("GET", f"/v1/jobs/{w.done}/logs/files", token="bob").status == 404


def found(w, path, token="user", **more):
    """(file or source, rank, offset, text) of the hits of all pages."""
    hits, cursor = [], {}
    while cursor is not None:
        page = w.call("GET", f"{path}?{urllib.parse.urlencode({**more, **cursor})}", token=token).json()
        hits += [(h["file"] or h["source"], h["rank"], h["offset"], h["text"]) for h in page["hits"]]
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
    return hits


@pytest.mark.parametrize("limit", [1, 100])
def test_search(w, limit):
    driver = [("driver", None, 0, "the driver")]
    workers = [
        (f"w1/{ZERO}", 0, 0, "zero begins"), (f"w1/{ZERO}", 0, 12, "zero goes on"), (f"w1/{ZERO}", 0, 100, "zero ends"),
        (f"w1/{ONE}", 1, 0, "one says"),
    ]  # fmt: skip
    for path in (f"/v1/jobs/{w.done}/logs", "/v1/logs"):
        assert found(w, path, grep="zero|says|driver", source="all", limit=limit) == driver + workers
        assert found(w, path, grep="zero|says|driver", source="worker", limit=limit) == workers
        assert found(w, path, grep="zero|says|driver", limit=limit) == driver
        assert found(w, path, grep="oom", source="scene", limit=limit) == [("w1/kernel.txt", None, 0, "oom-kill")]
    one = found(w, f"/v1/jobs/{w.done}/logs", grep=".", source="worker", file=f"w1/{ONE}", limit=limit)
    assert one == [(f"w1/{ONE}", 1, 0, "one says"), (f"w1/{ONE}", 1, 9, "far more")]
    assert found(w, "/v1/logs", token="bob", grep="zero", source="all") == []
    api = w.get("/v1/openapi.json")["components"]["schemas"]["LogHits"]
    jsonschema.validate(w.get("/v1/logs?grep=zero&source=all"), api)


def test_a_search_is_refused(w):
    refused = (
        "source=platform",
        "source=scene&cursor=~a~1~0~w1/worker-a.out",
        "source=worker&cursor=~a~1~0~../x/worker-a.out",
        f"cursor=~a~1~0~w1/{ONE}",
    )
    for query in refused:
        assert w.call("GET", f"/v1/logs?grep=zero&{query}").status == 400, query


def test_a_job_that_waits(w):
    job = w.submit("true", nnodes=9, n_gpus_per_node=4)
    page = w.get(f"/v1/jobs/{job}/logs/files")
    assert (page["attempt"], page["files"]) == (1, [])
    w.stop_job(job)


# ---- the command line ----


def argus(w, *argv):
    env = {"ARGUS_URL": w.url, "ARGUS_TOKEN": w.tokens["user"], "HOME": str(w.home)}
    return subprocess.run([PROGRAMS["argus"], "logs", w.done, *argv], env=env, capture_output=True, text=True)


def says(w, *argv):
    done = argus(w, *argv)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_line(w):
    zero = f"==> w1 rank 0 {ZERO} (Trainer) <==\nzero begins\nzero goes on\nzero ends\n"
    one = f"==> w1 rank 1 {ONE} (Trainer) <==\none says\nfar more"
    assert says(w, "--source", "worker") == f"{zero}\n{one}\n==> w2 {OTHER} <==\n"
    assert says(w, "--source", "worker", "--node", "w1") == f"{zero}\n{one}"
    assert says(w, "--source", "worker", "--rank", "1") == "one says\nfar more"
    assert says(w, "--source", "worker", "--rank", "0", "--tail", "1") == "zero ends\n"
    assert says(w, "--source", "worker", "--file", "*.err") == ""
    assert says(w, "--source", "worker", "--grep", "says") == f"==> w1 rank 1 {ONE} (Trainer) <==\none says\n"
    assert says(w, "--source", "worker", "--node", "w1", "--rank", "0", "--grep", "on$|ends") == (
        "zero goes on\nzero ends\n")
    assert says(w, "--source", "scene", "--grep", "oom|core", "--file", "*.txt") == "oom-kill\n"
    assert says(w, "--source", "scene", "--file", "w1/*.txt") == "oom-kill\n"
    assert "<==\ncore\n" in says(w, "--source", "scene")
    assert says(w, "--source", "driver") == says(w) == "the driver\n"


def test_the_command_line_searches_all(w):
    env = {"ARGUS_URL": w.url, "ARGUS_TOKEN": w.tokens["user"], "HOME": str(w.home)}
    argv = [PROGRAMS["argus"], "logs", "--all", "--source", "all", "--grep", "driver|zero ends|more"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    at = f"{w.done}/1"
    assert done.stdout.splitlines() == [
        f"{at}:0: the driver", f"{at}/w1/{ZERO}[0]:100: zero ends", f"{at}/w1/{ONE}[1]:9: far more"
    ]  # fmt: skip
    scene = [*argv[:4], "scene", *argv[5:]]
    assert subprocess.run(scene, env=env, capture_output=True).returncode == 2


def test_the_command_line_follows_one(w):
    assert says(w, "-f", "--source", "worker", "--rank", "1") == "one says\nfar more"
    assert says(w, "-f", "--source", "worker", "--rank", "1", "--tail", "1") == "far more"
    assert says(w, "-f", "--source", "worker", "--rank", "1", "--grep", "far|says") == "one says\nfar more\n"
    many = argus(w, "-f", "--source", "worker")
    assert many.returncode == 2 and "--follow wants one log and 3 fit: choose by --node" in many.stderr


def test_the_command_line_platform(w):
    lines = says(w, "--source", "platform").splitlines()
    assert len(lines) == len(w.events(w.done)) and all(w.done in line for line in lines)
    assert says(w, "--source", "platform", "--tail", "2").splitlines() == lines[-2:]
    assert "SUCCEEDED" in says(w, "--source", "platform", "-f").splitlines()[-1]


@pytest.mark.parametrize("argv, status, sentence", [
    (["--source", "worker", "--rank", "7"], 4, "no such log of source worker"),
    (["--source", "worker", "--node", "w9"], 4, "no log of source worker on node w9"),
    (["--source", "scene", "--node", "w9"], 4, "a scene is gathered when an attempt fails"),
    (["--source", "worker", "--rank", "x"], 2, "'x' is not a valid rank"),
    (["--source", "other"], 2, "--source"),
    (["--source", "all", "--tail", "2001"], 2, "--tail is 2000 at most"),
    (["--source", "all", "--node", "w1"], 2, "go with --source worker"),
    (["--rank", "0"], 2, "go with --source worker"),
    (["--source", "platform", "--grep", "x"], 2, "goes without"),
    (["--source", "platform", "-f", "--tail", "3"], 2, "without --follow"),
])  # fmt: skip
def test_the_command_line_refuses(w, argv, status, sentence):
    done = argus(w, *argv)
    assert (done.returncode, done.stdout) == (status, "") and sentence in done.stderr, done.stderr
