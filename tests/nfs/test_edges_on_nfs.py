# SPDX-License-Identifier: Apache-2.0
"""What only a file server does: a directory that it replaces under its clients, a root that is nobody there, and two
clients that want the same file at the same moment."""

import base64
import contextlib
import errno
import json
import os
import subprocess
import uuid

import pytest
from fakeray import FakeRay
from nfsbed import EXPORT, HEAD, ON_NODE, on_server, sh

from argusd import Argusd, until

RACES = 10
NOBODY = 65534


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with (
        FakeRay(wrap=ON_NODE) as ray,
        Argusd(tmp_path_factory.mktemp("argusd"), ray.url, shared_root=HEAD / uuid.uuid4().hex) as argusd,
    ):
        yield argusd


def log(argusd, job):
    return argusd.call("GET", f"/v1/jobs/{job}/logs?offset=0&limit={8 << 20}", token="admin").body.decode()


def ended(argusd, job):
    over = argusd.wait_over(job)
    assert (over["state"], over["attempt"]) == ("SUCCEEDED", 1), (over, argusd.events(job))
    return over


# ---- ESTALE ----


def replace(directory):
    """By the server: another directory of this name and content. What clients hold of the old one is stale."""
    here = on_server(directory)
    old, new = here.with_name(here.name + ".old"), here.with_name(here.name + ".new")
    sh("cp", "-a", here, new)
    here.rename(old)
    new.rename(here)
    sh("rm", "-r", old)


@pytest.mark.parametrize("below", [".", "jobs", "common"])
def test_a_directory_that_the_server_replaced(argusd, below):
    """Whoever holds it meets ESTALE. argusd opens it anew: what was there is read, and jobs start and end."""
    job = argusd.submit("echo here it was")
    ended(argusd, job)
    held = os.open(argusd.root / below, os.O_RDONLY | os.O_DIRECTORY)
    try:
        replace(argusd.root / below)
        with pytest.raises(OSError) as told:
            os.mkdir("mine", dir_fd=held)
        assert told.value.errno in (errno.ESTALE, errno.ENOENT)  # the server may know that it is gone
    finally:
        os.close(held)
    assert log(argusd, job) == "here it was\n"
    following = argusd.submit("echo and on")
    ended(argusd, following)
    assert log(argusd, following) == "and on\n"
    assert argusd.get("/readyz")["shared_root"] == "ok"


def test_a_log_directory_that_the_server_replaced(argusd):
    """Of a copy, which is the same log, a follower is told nothing; of another log once, and he has all of it."""
    job = argusd.submit("echo here it was; sleep 1000")
    argusd.wait_state(job, "RUNNING")
    logs = argusd.root / f"jobs/{job}/attempts/1/logs"
    until(lambda: (logs / "driver.log").read_text() == "here it was\n", "it has written")
    with contextlib.closing(argusd.stream(f"/v1/jobs/{job}/logs?follow=1")) as stream:
        events = iter(stream)

        def heard():
            _, kind, event = next(events)
            return kind, base64.b64decode(event["b64"]) if kind == "log" else event["lost"]

        assert heard() == ("log", b"here it was\n")
        replace(logs)
        with (on_server(logs) / "driver.log").open("a") as f:
            f.write("and on\n")
        assert heard() == ("log", b"and on\n")
        (on_server(logs) / "driver.log").unlink()
        replace(logs)
        (on_server(logs) / "driver.log").write_text("anew\n")
        assert heard() == ("replaced", 0)
        assert heard() == ("log", b"anew\n")
    argusd.stop_job(job)


# ---- root_squash ----


@contextlib.contextmanager
def export(how):
    """The export with this option; as it was in the end."""

    def tell(option):
        sh("exportfs", "-o", f"rw,sync,{option},no_subtree_check,fsid=0", f"*:{EXPORT}")

    tell(how)
    try:
        yield
    finally:
        tell("no_root_squash")


def test_root_squash_is_told_and_works_once_nobody_may_write(tmp_path):
    """The server takes root for nobody. While the directory is root's no job is taken, and one sentence says why."""
    root = EXPORT / uuid.uuid4().hex
    root.mkdir(mode=0o755)
    with (
        export("root_squash"),
        FakeRay(wrap=ON_NODE) as ray,
        Argusd(tmp_path, ray.url, shared_root=HEAD / root.name) as argusd,
    ):
        until(lambda: "cannot be written" in (argusd.get("/readyz")["reason"] or ""), "the root was looked at")
        refused = argusd.post(argusd.spec("true"))
        assert refused.status == 503
        said = f"'{argusd.root}' cannot be written by user 0 (Permission denied): change its owner or its mount options"
        assert refused.json()["detail"] == f"the shared root cannot be used: the shared root {said}"
        assert argusd.get("/readyz")["shared_root"] == "unavailable"
        assert list(root.iterdir()) == []

        os.chown(root, NOBODY, NOBODY)
        until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "the root can be written")
        job = argusd.submit("echo by nobody")
        ended(argusd, job)
        assert log(argusd, job) == "by nobody\n"
        assert (root / f"jobs/{job}/attempts/1/logs/driver.log").stat().st_uid == NOBODY


# ---- a race ----


def gated(fifo, *argv):
    return ["sh", "-c", 'read -r go <"$0" && exec "$@"', str(fifo), *map(str, argv)]


def race(shepherd, attempt, place):
    """One shepherd on each client, let go in the same moment; their exit statuses."""
    fifos = [place / "gate-head", place / "gate-node"]
    for fifo in fifos:
        os.mkfifo(fifo)
    argvs = [gated(fifos[0], shepherd, attempt), [*ON_NODE, *gated(fifos[1], shepherd, attempt)]]
    both = [subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for argv in argvs]
    gates = [os.open(fifo, os.O_WRONLY) for fifo in fifos]  # each returns once its reader is there
    for gate in gates:
        os.write(gate, b"go\n")
    said = [p.communicate(timeout=120)[1] for p in both]
    for gate in gates:
        os.close(gate)
    return [p.returncode for p in both], said


def test_two_shepherds_that_race_run_one_command(argusd, tmp_path):
    """On two clients of one server, ten times."""
    until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "it has seen that root may write again")
    first = argusd.submit("echo first")
    ended(argusd, first)
    launch = json.loads((argusd.job_dir(first) / "attempts/1/launch.json").read_text())
    (shepherd,) = argusd.root.glob("argus/bin/*/argus-shepherd")
    for n in range(RACES):
        place = tmp_path / str(n)
        place.mkdir()
        attempt = argusd.root / f"jobs/race-{n}/attempts/1"
        (attempt / "logs").mkdir(parents=True)
        line = f"echo one >>{place}/ran; echo from it"
        text = {**launch, "job": f"race-{n}", "argv": ["/bin/sh", "-c", line]}
        (attempt / "launch.json").write_text(json.dumps(text))
        codes, said = race(shepherd, attempt, place)
        assert sorted(code == 0 for code in codes) == [False, True], (codes, said)
        assert (place / "ran").read_text() == "one\n"
        assert (attempt / "logs/driver.log").read_text() == "from it\n"
        # The winner may be the other client, and a path that was looked up too early is missing here for a while.
        until(lambda at=attempt: "exit.json" in os.listdir(at), "this client sees how it ended")
        assert json.loads((attempt / "exit.json").read_text())["code"] == 0
