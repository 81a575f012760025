# SPDX-License-Identifier: Apache-2.0
"""Logs since a time: by when their bytes were written, which the shepherd marks beside them."""

import base64
import struct
import subprocess
import time
import urllib.parse
import zlib

import pytest
from fakeray import FakeRay

from argusd import PROGRAMS, Argusd, needs_argusd

pytestmark = needs_argusd

PARTS = (b"first part\n", b"second part\nof two lines\n", b"third part\n")


def marks(rows):
    """As the shepherd writes them: by this time all before this offset had been written."""
    heads = [struct.pack("<QQI", int(by * 1e6), offset, 0x31747841) for by, offset in rows]
    return b"".join(head + struct.pack("<I", zlib.crc32(head)) for head in heads)


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    """A job whose parts are an hour, half an hour and one minute old, and one as it is."""
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("since"), ray.url) as argusd:
        argusd.timed = argusd.submit("printf 'first part\\nsecond part\\nof two lines\\nthird part\\n'")
        argusd.plain = argusd.submit("echo plain")
        argusd.began = time.time()
        for job in (argusd.timed, argusd.plain):
            argusd.wait_over(job)
        now, ends = time.time(), [sum(map(len, PARTS[:i])) for i in (1, 2, 3)]
        ages = (3600, 1800, 60)
        rows = [(now - age, end) for age, end in zip(ages, ends, strict=True)]
        argusd.log_file(argusd.timed).with_name("driver.log.times").write_bytes(marks(rows))
        yield argusd


def read(w, job=None, **query):
    reply = w.call("GET", f"/v1/jobs/{job or w.timed}/logs?{urllib.parse.urlencode(query)}")
    return reply.body if reply.status == 200 else reply.status


def followed(w, query):
    """What a stream brings to its end; it goes on without a gap from where it begins."""
    data, at = b"", None
    for _, kind, event in w.stream(f"/v1/jobs/{w.timed}/logs?follow=1{query}"):
        if kind == "end":
            return data
        assert event["offset"] == (event["offset"] if at is None else at)
        data += base64.b64decode(event["b64"])
        at = event["offset"] + len(base64.b64decode(event["b64"]))
    raise AssertionError("the stream broke")


@pytest.mark.parametrize("since, parts", [("2h", PARTS), ("45m", PARTS[1:]), ("10m", PARTS[2:]), ("10s", ())])
def test_parts(w, since, parts):
    want = b"".join(parts)
    assert read(w, since=since) == want
    assert followed(w, f"&since={since}") == want
    assert read(w, since=since, tail=2) == b"".join(want.splitlines(keepends=True)[-2:])
    hits = w.get(f"/v1/jobs/{w.timed}/logs?grep=part&since={since}")["hits"]
    assert [h["text"].encode() + b"\n" in part for h, part in zip(hits, parts, strict=True)] == [True] * len(parts)
    env = {"ARGUS_URL": w.url, "ARGUS_TOKEN": w.tokens["user"], "HOME": str(w.home)}
    for more in ([], ["-f"]):
        argv = [PROGRAMS["argus"], "logs", *more, "--since", since, w.timed]
        done = subprocess.run(argv, env=env, capture_output=True)
        assert (done.returncode, done.stdout) == (0, want), done.stderr
        assert b"not there" not in done.stderr


def test_of_the_shepherd(w):
    """Its marks say at least when the end of the log was written."""
    assert read(w, w.plain, since="2h") == b"plain\n"
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60))
    assert read(w, w.plain, since=soon) == b""
    past = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(w.began - 3600))
    assert read(w, w.plain, since=past) == b"plain\n"


def test_what_goes_on_has_its_place(w):
    """A stream that was cut off begins where it was, whatever the time is now."""
    at = len(PARTS[0])
    assert followed(w, f"&since=10s&last_event_id={at}") == b"".join(PARTS[1:])
    assert read(w, since="10m", offset=3) == PARTS[2]
    assert read(w, since="2h", offset=3) == b"".join(PARTS)[3:]


def test_without_marks_all_is_new(w):
    w.log_file(w.plain).with_name("driver.log.times").unlink()
    assert read(w, w.plain, since="10s") == b"plain\n"


def test_what_is_refused(w):
    assert read(w, since="yesterday") == 400
    assert read(w, since="10m", source="worker", file="w1/worker-a.out") == 400
    assert read(w, since="10m", source="worker", grep="x", attempt=1) == 400
    env = {"ARGUS_URL": w.url, "ARGUS_TOKEN": w.tokens["user"], "HOME": str(w.home)}
    argv = [PROGRAMS["argus"], "logs", "--source", "worker", "--since", "10m", w.timed]
    assert subprocess.run(argv, env=env, capture_output=True).returncode == 2
