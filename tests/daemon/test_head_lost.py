# SPDX-License-Identifier: Apache-2.0
"""Ray's head goes away under jobs that run: told and found at once where its machine says so, and nothing is done to a
job whose shepherd beats. The managed head is on argusd's own machine, by a program in the place of `ray`."""

import contextlib
import os
import signal
import sys
import time

import pytest
from fakeray import FakeRay
from test_argusd_head import HeadArgusd, dashboard_listens

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

INFRA = {"max": 1, "on": ["infra"], "backoff": "0s"}
WORK = '[ "$ARGUS_ATTEMPT" != 1 ] || exec tail -f /dev/null'  # the next attempt ends at once


class Head(HeadArgusd):
    """What its Ray answers is told by a fake one at its dashboard's port."""

    nodes = "min_shm: 0, min_disk: 0, look_every: 2s"

    def __init__(self, home):
        super().__init__(home)
        self.ray = FakeRay(state=self.home / "ray")
        self.ray.port = self.dashboard_port

    def __enter__(self):
        super().__enter__()
        try:
            self.end_dashboard()
            until(self.takes_port, "the fake Ray has the dashboard's port")
            return self.wait_in()
        except BaseException:
            self.__exit__(*sys.exc_info())  # what is left of a head would be one to the next argusd here
            raise

    def __exit__(self, *broken):
        self.call("POST", "/v1/clusters/default:down", {"stop_jobs": True})
        super().__exit__(*broken)
        self.ray.stop()
        for name in ("raylet", "gcs_server"):
            for pid in self.pids_of(name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)

    def wait_in(self):
        until(lambda: self.head_row()["state"] == "online", "the head is online")
        return self

    def end_dashboard(self):
        """Of the head that argusd has just started: the fake one takes its port."""
        at = self.bin / "dashboard"
        os.kill(int(until(at.read_text, "the head was started")), signal.SIGKILL)
        until(lambda: not dashboard_listens(self), "the port is free")
        at.unlink()

    def takes_port(self):
        """On a slow machine argusd starts its head once more meanwhile, with a dashboard that is to end, too."""
        try:
            self.ray.start()
        except AssertionError:
            if (self.bin / "dashboard").exists():
                self.end_dashboard()
            return False
        return True

    def lose_head(self, *processes):
        self.ray.listen(False)
        for name in processes:
            os.kill(int(self.pid_of(name)), signal.SIGKILL)


def findings(argusd, job):
    return [(e["reason"]["code"], e["text"]) for e in argusd.events(job) if e["kind"] == "finding"]


def first_finding(argusd, job):
    """Why an attempt ended may be found after its end is told."""
    rows = until(lambda: argusd.get(f"/v1/jobs/{job}/findings")["findings"], "a finding is made")
    return rows[0]["class"], rows[0]["rule"], rows[0]["attempt"]


def kill_shepherd(ray, job):
    """And what it runs: the node is gone with Ray."""
    (start,) = ray.starts()[job]
    os.killpg(start["pid"], signal.SIGKILL)


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    with Head(tmp_path_factory.mktemp("head")) as made:
        yield made


def test_a_head_that_is_gone_is_found_at_once(head):
    """Its jobs are told and left alone. Were Ray to come back and still know them, all was well."""
    job = head.submit(WORK, restart=INFRA)
    head.wait_state(job, "RUNNING")
    head.lose_head("raylet", "gcs_server")
    view = head.wait_job(job, lambda j: j["flags"] == ["UNKNOWN"] and j["finding"], "is found headless")
    assert (view["state"], view["attempt"], view["finding"]["class"]) == ("RUNNING", 1, "node_lost")
    (blind,) = [e for e in head.events(job) if e["kind"] == "blind"]
    assert blind["reason"]["code"] == "head_lost" and "gone from its machine" in blind["text"]
    ((code, text),) = findings(head, job)
    assert code == "node_lost" and "Ray's head is gone" in text
    head.kill9()
    head.start()
    head.end_dashboard()
    head.ray.listen(True)
    head.wait_job(job, lambda j: not j["flags"] and not j["finding"], "is seen again")
    assert [code for code, _ in findings(head, job)] == ["node_lost", "none"]
    head.wait_in()
    head.stop_job(job)
    assert head.wait_over(job)["state"] == "STOPPED"


@pytest.mark.nightly  # until the beat counts as stopped
def test_a_head_that_is_gone_and_a_beat_that_stops_are_an_end(head):
    """Ray need not come back for that; the next attempt waits until it does."""
    job = head.submit(WORK, restart=INFRA)
    head.wait_state(job, "RUNNING")
    head.lose_head("raylet", "gcs_server")
    kill_shepherd(head.ray, job)
    view = head.wait_state(job, "QUEUED")
    (ended,) = [e for e in head.events(job) if e["kind"] == "ended"]
    assert view["flags"] == ["RESTARTING"] and "Ray's head went away" in ended["text"]
    head.ray.lose_memory()
    head.end_dashboard()
    head.ray.listen(True)
    view = head.wait_over(job)
    assert (view["state"], view["restarts"]) == ("SUCCEEDED", 1)
    until(lambda: {code for code, _ in findings(head, job)} == {"node_lost"}, "why is found, and nothing else")


@pytest.mark.nightly  # until a beat that did not go on would count as stopped
def test_a_beat_from_before_the_root_was_away_is_no_word(head):
    """Its machine exports the root: both are away, and back before the job's node finds the root again."""
    go = head.home / "go"
    job = head.submit(WORK, restart=INFRA)
    other = head.submit(f"while [ ! -e {go} ]; do timeout 0.1 tail -f /dev/null; done; exit 0")
    head.wait_state(job, "RUNNING")
    head.wait_state(other, "RUNNING")
    (start,) = head.ray.starts()[job]
    jobs = head.root / "jobs"
    os.kill(start["pid"], signal.SIGSTOP)
    away = jobs.rename(head.root / "away")
    begun = time.monotonic()
    head.lose_head("raylet", "gcs_server")
    head.wait_job(job, lambda j: j["flags"] == ["UNKNOWN"] and j["finding"], "is found headless")
    until(lambda: time.monotonic() > begun + 35, "the old beat is older than a silence")
    away.rename(jobs)
    go.touch()
    assert head.wait_over(other)["state"] == "SUCCEEDED"  # the files of both were looked at
    assert (head.job(job)["state"], head.job(job)["attempt"]) == ("RUNNING", 1)
    os.kill(start["pid"], signal.SIGCONT)
    head.end_dashboard()
    head.ray.listen(True)
    head.wait_job(job, lambda j: not j["flags"] and not j["finding"], "is seen again")
    assert "ended" not in head.kinds(job)
    head.kill9()  # the fake one has its head's old id, which argusd takes for the lost one's while it remembers
    head.start()
    head.wait_in()
    head.stop_job(job)
    assert head.wait_over(job)["state"] == "STOPPED"


@pytest.mark.nightly  # the same
def test_a_head_that_lost_its_raylet_alone_is_not_gone(head):
    job = head.submit(WORK, restart=INFRA)
    head.wait_state(job, "RUNNING")
    head.lose_head("raylet")
    view = head.wait_job(job, lambda j: j["flags"] == ["UNKNOWN"] and j["finding"], "is unknown")
    assert (view["state"], view["finding"]["class"], view["finding"]["rule"]) == ("RUNNING", "unknown", "silence")
    head.ray.listen(True)
    head.wait_job(job, lambda j: not j["flags"] and not j["finding"], "is seen again")
    head.stop_job(job)
    assert head.wait_over(job)["state"] == "STOPPED"


@pytest.mark.nightly  # until the beat counts as stopped
def test_a_head_lost_while_argusd_is_away(tmp_path):
    """The session that Ray had when it took the attempt is not the one that it has now."""
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        job = argusd.submit(WORK, restart=INFRA)
        argusd.wait_state(job, "RUNNING")
        argusd.kill9()
        kill_shepherd(ray, job)
        ray.lose_memory()
        argusd.start()
        view = argusd.wait_over(job)
        assert (view["state"], view["attempt"], view["restarts"]) == ("SUCCEEDED", 2, 1)
        assert first_finding(argusd, job) == ("node_lost", "fact-head-lost", 1)


def test_what_is_swept_away_for_a_new_head_was_lost_with_the_old(tmp_path):
    """The node's old raylet is stopped for the new session, and its jobs get SIGTERM: nobody wanted that of the job."""
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        job = argusd.submit(WORK, restart=INFRA)
        argusd.wait_state(job, "RUNNING")
        ray.lose_memory()
        until(lambda: "ray_new_session" in {e["kind"] for e in argusd.events()}, "the new session is seen")
        (start,) = ray.starts()[job]
        os.kill(start["pid"], signal.SIGTERM)
        view = argusd.wait_over(job)
        assert (view["state"], view["attempt"], view["restarts"]) == ("SUCCEEDED", 2, 1)
        assert first_finding(argusd, job) == ("node_lost", "fact-head-lost", 1)
