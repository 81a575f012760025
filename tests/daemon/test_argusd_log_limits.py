# SPDX-License-Identifier: Apache-2.0
"""What argus.yaml says of logs reaches the shepherd of a running job: files, ceilings, what was dropped."""

import json

import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd

KIB = 1024
LIMITS = "logs: {file_size: 64KiB, total_size: 1MiB, rate: 0, spool: 2MiB, patience: 5m}"
LINES = "seq -f 'line %010.0f' 1 {}"  # of 16 bytes each: 4096 of them fill a file


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("limits"), ray.url, LIMITS) as argusd:
        yield argusd


def ran(w, script):
    job = w.submit(script)
    assert w.wait_over(job)["state"] == "SUCCEEDED"
    return job, w.job_dir(job) / "attempts/1"


def shown(w, job):
    text, size = b"", 1
    while len(text) < size:
        reply = w.call("GET", f"/v1/jobs/{job}/logs?offset={len(text)}")
        assert reply.status == 200 and int(reply.headers["Argus-Log-Offset"]) == len(text) and reply.body
        text, size = text + reply.body, int(reply.headers["Argus-Log-Size"])
    return text


def lines(first, last):
    return b"".join(b"line %010d\n" % i for i in range(first, last + 1))


def test_a_log_goes_on_in_the_next_file(w):
    """Also where something else has its name."""
    foreign = 'echo foreign >"$ARGUS_ATTEMPT_DIR/logs/driver.log.131072"; '
    job, attempt = ran(w, foreign + LINES.format(20000))
    told = json.loads((attempt / "launch.json").read_text())["logs"]
    assert told == {"rate": 0, "segment": 64 * KIB, "total": 1024 * KIB, "spool": 2048 * KIB, "patience_s": 300}
    sizes = {f.name: f.stat().st_size for f in (attempt / "logs").glob("driver.log*") if f.suffix[1:].isdigit()}
    assert sizes == {f"driver.log.{k * 64 * KIB}": 64 * KIB for k in range(1, 4)} | {"driver.log.262144": 57856}
    assert shown(w, job) == lines(1, 20000)
    assert (attempt / "logs/driver.log.131072.found").read_text() == "foreign\n"
    end = json.loads((attempt / "exit.json").read_text())
    assert (end["log_bytes"], end["dropped_bytes"], end["log_error"]) == (320000, 0, None)


def test_the_oldest_but_the_first_are_dropped_and_told(w):
    job, attempt = ran(w, LINES.format(100000))
    files = [f for f in (attempt / "logs").glob("driver.log*") if f.suffix == ".log" or f.suffix[1:].isdigit()]
    assert sum(f.stat().st_size for f in files) <= 1024 * KIB + 64 * KIB
    end = json.loads((attempt / "exit.json").read_text())
    assert end["log_bytes"] == 1600000 and end["dropped_bytes"] >= 500000
    first = w.call("GET", f"/v1/jobs/{job}/logs?offset=0&limit=65536").body
    assert first == lines(1, 4096)
    newest = w.call("GET", f"/v1/jobs/{job}/logs?tail=5").body
    assert newest == lines(99996, 100000)
    told = [f for f in files if "bytes of output dropped here" in f.read_text()]
    assert len(told) == 1 and str(end["dropped_bytes"]) in told[0].read_text()
