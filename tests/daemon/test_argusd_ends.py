# SPDX-License-Identifier: Apache-2.0
"""How argusd ends with work of every kind in flight, and how it does not begin: with what an operator gets wrong."""

import contextlib
import http.client
import signal
import subprocess
import threading

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd

PATIENT = "echo up; timeout 600 tail -f /dev/null"


@pytest.fixture
def ray(tmp_path):
    with FakeRay(state=tmp_path / "ray") as made:
        yield made


def begin(target, *args):
    def run():
        with contextlib.suppress(OSError, http.client.HTTPException):
            target(*args)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def test_ends_with_work_in_flight(tmp_path, ray):
    """Streams, long-polls, a look at a Ray that hangs, a job that is being sent: all end, and argusd with them."""
    with Argusd(tmp_path / "home", ray.url) as argusd:
        job = argusd.submit(PATIENT)
        argusd.wait_state(job, "RUNNING")
        tag = argusd.call("GET", f"/v1/jobs/{job}").headers["ETag"]
        ray.fault("hang")
        until(lambda: ray.requests(), "Ray was asked")
        late = argusd.submit("echo late")
        under_way = [
            begin(lambda: list(argusd.stream(f"/v1/jobs/{job}/logs?follow=true"))),
            begin(lambda: list(argusd.stream("/v1/events?follow=true"))),
            begin(lambda: argusd.call("GET", f"/v1/jobs/{job}?wait=60s", If_None_Match=tag)),
            begin(lambda: argusd.call("GET", "/v1/events?since=100000000&wait=60s")),
            begin(lambda: argusd.call("GET", "/v1/clusters/default/actors")),
            begin(lambda: argusd.call("GET", "/v1/clusters/default/foreign")),
            begin(lambda: argusd.submit("echo last")),
        ]
        text = lambda: argusd.call("GET", "/metrics").body.decode()  # noqa: E731
        until(lambda: "argus_http_streams 2" in text(), "both streams are open")
        argusd.process.send_signal(signal.SIGTERM)
        assert argusd.process.wait(PATIENCE) == 0
        for thread in under_way:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        ray.heal()
        argusd.start()
        assert argusd.wait_over(late)["state"] == "SUCCEEDED"
        assert argusd.job(job)["state"] == "RUNNING"
        argusd.stop_job(job)
        assert argusd.wait_over(job)["state"] == "STOPPED"


def fails(argusd):
    argv = [PROGRAMS["argusd"], "--config", argusd.config]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    assert "Sanitizer" not in done.stderr
    lines = [x for x in done.stderr.splitlines() if x.startswith("argusd: ")]
    assert len(lines) == 1, done.stderr
    return done.returncode, lines[0]


def test_what_keeps_it_from_starting(tmp_path, ray):
    with Argusd(tmp_path / "home", ray.url) as first:
        code, line = fails(first)  # the same store
        assert (code, str(first.state_dir) in line) == (1, True)
        second = Argusd(tmp_path / "second", ray.url)
        second.home.mkdir()
        second.root.mkdir()
        second.port = first.port
        second.write_config()
        code, line = fails(second)
        assert (code, str(first.port) in line) == (1, True)
        second.config.write_text(second.config.read_text().replace("argus-shepherd\n", "no-shepherd\n"))
        code, line = fails(second)
        assert (code, "shepherd" in line) == (2, True)


def test_what_a_spec_may_not_ask(tmp_path, ray):
    """Keys that would do harm if they were ignored are refused by name."""
    with Argusd(tmp_path / "home", ray.url) as argusd:
        for key, value in (("after", ["x"]), ("code", "verl@1"), ("secrets", ["KEY"]), ("cluster", "elsewhere")):
            reply = argusd.post(Argusd.spec("echo x", **{key: value}))
            assert (reply.status, reply.json()["field"]) == (422, key), reply
        assert argusd.post(Argusd.spec("echo x", cluster="default")).status == 201
        reply = argusd.post(Argusd.spec("echo x"), Idempotency_Key="k" * 201)
        assert reply.status == 400, reply
