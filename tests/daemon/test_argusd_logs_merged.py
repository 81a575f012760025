# SPDX-License-Identifier: Apache-2.0
"""The driver's log and those of all workers as one row of lines: by their times, each line once, over a restart of
argusd; through the API and `argus logs --source all`."""

import json
import os
import subprocess

import jsonschema
import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

ZERO, ONE, OTHER = "worker-a0-02000000-11.out", "worker-b1-02000000-12.err", "worker-c2-02000000-13.out"
T = "2026-01-31 12:00:0"


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("merged"), ray.url) as argusd:
        assert argusd.call("POST", "/v1/users", {"name": "bob"}).status == 201
        argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
        yield argusd


def worker(w, job, node, name, text, attempt=1):
    directory = w.job_dir(job) / f"attempts/{attempt}/logs/workers" / node
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / name, "a") as f:
        f.write(text)
    return directory


def put_workers(w, job):
    one = worker(w, job, "w1", ZERO, f"{T}1,500 zero begins\nand goes on\n{T}4,000 zero ends\n")
    two = worker(w, job, "w2", ONE, f"{T}1,499 one begins\n{T}3,000 one ends\n")
    worker(w, job, "w2", OTHER, "")
    (one / "ranks.json").write_text(json.dumps({ZERO: {"pid": 11, "actor": "Trainer", "rank": 0}}))
    (two / "ranks.json").write_text(json.dumps({ONE: {"pid": 12, "actor": "Trainer", "rank": 1}}))


IN_ORDER = [
    ("driver", "the driver"), ("w2", f"{T}1,499 one begins"), ("w1", f"{T}1,500 zero begins"), ("w1", "and goes on"),
    ("w2", f"{T}3,000 one ends"), ("w1", f"{T}4,000 zero ends"),
]  # fmt: skip


@pytest.fixture(scope="module")
def done(w):
    job = w.submit("echo the driver")
    w.wait_over(job)
    put_workers(w, job)
    return job


def look(w, job, **query):
    page = w.get(f"/v1/jobs/{job}/logs/merged?" + "&".join(f"{k}={v}" for k, v in query.items()))
    return page, [(page["sources"][x["source"]]["node"] or "driver", x["text"]) for x in page["lines"]]


def test_lines_in_order_of_their_times(w, done):
    page, lines = look(w, done)
    jsonschema.validate(page, w.get("/v1/openapi.json")["components"]["schemas"]["LogMerged"])
    assert lines == IN_ORDER
    assert (page["attempt"], page["more"], page["ended"], page["left_out"]) == (1, False, True, 0)
    of = {s["file"]: s for s in page["sources"]}
    assert set(of) == {None, f"w1/{ZERO}", f"w2/{ONE}"}, "a log without a byte is none yet"
    assert (of[f"w1/{ZERO}"]["rank"], of[f"w1/{ZERO}"]["actor"], of[None]["source"]) == (0, "Trainer", "driver")
    begins = {(page["sources"][x["source"]]["file"], x["offset"]) for x in page["lines"]}
    assert {(None, 0), (f"w1/{ZERO}", 0), (f"w2/{ONE}", 0)} <= begins
    assert look(w, done, source="worker")[1] == IN_ORDER[1:]
    assert look(w, done, tail=2)[1] == IN_ORDER[-2:]
    assert look(w, done, cursor=page["cursor"])[1] == []
    assert look(w, done, cursor="1~")[1] == IN_ORDER, "an empty cursor begins at the first byte"


def test_what_ray_repeats_of_a_worker_stands_once(w):
    job = w.submit("echo '(Trainer pid=11) said'; echo '(Trainer pid=12, ip=10.0.0.2) of another'; echo the driver")
    w.wait_over(job)
    directory = worker(w, job, "w1", ZERO, "said\0 it\n")
    (directory / "ranks.json").write_text(json.dumps({ZERO: {"pid": 11, "actor": "Trainer", "rank": 0}}))
    of_driver = [("driver", "(Trainer pid=12, ip=10.0.0.2) of another"), ("driver", "the driver")]
    assert sorted(look(w, job)[1]) == [*of_driver, ("w1", "said\ufffd it")]
    said = argus(w, job)
    assert said.returncode == 0 and len(said.stdout.splitlines()) == 3, said


def test_only_who_sees_the_job(w, done):
    assert w.call("GET", f"/v1/jobs/{done}/logs/merged", token="bob").status == 404


def test_links_are_not_followed(w):
    job = w.submit("true")
    w.wait_over(job)
    directory = worker(w, job, "w1", ZERO, "plain\n")
    (w.home / "secret").write_text("secret\n")
    (directory / ONE).symlink_to(w.home / "secret")
    assert [text for _, text in look(w, job)[1]] == ["plain"]


def test_what_comes_is_told_once_over_a_restart(w):
    gate = w.root / "common/gate"
    job = w.submit(f"echo begins; while [ ! -e {gate} ]; do sleep 0.2; done; echo ends")
    w.wait_state(job, "RUNNING")
    until(lambda: look(w, job)[1] == [("driver", "begins")], "the driver says something")
    page, _ = look(w, job)
    worker(w, job, "w1", ZERO, "one\nhalf")
    page, lines = look(w, job, cursor=page["cursor"])
    assert lines == [("w1", "one")] and not page["ended"]
    w.kill9()
    w.start()
    worker(w, job, "w1", ZERO, " and whole\n")
    page, lines = look(w, job, cursor=page["cursor"])
    assert lines == [("w1", "half and whole")]
    gate.write_text("")
    w.wait_over(job)
    page, lines = look(w, job, cursor=page["cursor"])
    assert lines == [("driver", "ends")] and page["ended"]
    gate.unlink()


# ---- the command line ----


def argus(w, job, *argv):
    env = {"ARGUS_URL": w.url, "ARGUS_TOKEN": w.tokens["user"], "HOME": str(w.home), "LANG": "C.UTF-8"}
    argv = [PROGRAMS["argus"], "logs", job, "--source", "all", *argv]
    return subprocess.run(argv, env={**os.environ, **env}, capture_output=True, text=True)


PRINTED = [
    "[driver] the driver", f"[rank 1 w2 err] {T}1,499 one begins", f"[rank 0 w1] {T}1,500 zero begins",
    "[rank 0 w1] and goes on", f"[rank 1 w2 err] {T}3,000 one ends", f"[rank 0 w1] {T}4,000 zero ends",
]  # fmt: skip


def test_the_command_line(w, done):
    said = argus(w, done)
    assert said.returncode == 0 and said.stdout.splitlines() == PRINTED, said
    assert "the newest lines of 3 logs" in said.stderr and "as they were read" in said.stderr
    assert argus(w, done, "--tail", "2").stdout.splitlines() == PRINTED[-2:]
    assert argus(w, done, "--tail", "3", "--grep", "zero").stdout.splitlines() == PRINTED[-1:], "of the last lines"
    followed = argus(w, done, "-f", "--grep", "zero|driver")
    assert followed.stdout.splitlines() == [PRINTED[0], PRINTED[2], PRINTED[5]]
    assert followed.returncode == 0 and "SUCCEEDED" in followed.stderr
    found = argus(w, done, "--grep", "zero ends|the driver").stdout.splitlines()
    at = f"{done}/1"
    where = len(f"{T}1,500 zero begins\nand goes on\n")
    assert found == [f"{at}:0: the driver", f"{at}/w1/{ZERO}[0]:{where}: {T}4,000 zero ends"]


def test_the_command_line_follows(w):
    gate = w.root / "common/gate"
    job = w.submit(f"while [ ! -e {gate} ]; do sleep 0.2; done; exit 3")
    w.wait_state(job, "RUNNING")
    worker(w, job, "w1", ZERO, "was there\n")
    env = {"ARGUS_URL": w.url, "ARGUS_TOKEN": w.tokens["user"], "HOME": str(w.home)}
    argv = [PROGRAMS["argus"], "logs", "-f", job, "--source", "all"]
    with subprocess.Popen(argv, env={**os.environ, **env}, stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == f"[w1 {ZERO}] was there\n"
        worker(w, job, "w2", ONE, "comes\n")
        assert p.stdout.readline() == f"[w2 {ONE}] comes\n"
        gate.write_text("")
        rest = p.stdout.read()
    assert rest == "" and p.returncode == 10, "the status of a job that failed"
    gate.unlink()
