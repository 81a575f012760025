# SPDX-License-Identifier: Apache-2.0
"""Streams of argusd: every follower gets the file's bytes, whatever is cut, restarted, queued or over meanwhile."""

import base64
import concurrent.futures
import contextlib
import http.client
import os
import subprocess
import threading

import pytest
from fakeray import FakeRay

from argusd import PROGRAMS, Argusd, needs_argusd, until, wait_for

pytestmark = needs_argusd

# Bytes of every kind, in pieces of every size; waits for a file in the middle, so that followers catch up first.
WRITER = """
import os, random, select, sys
r = random.Random(7)
for half in range(2):
    for i in range(400):
        os.write(1, r.randbytes(r.choice([1, 2, 17, 4096, 9000])) + b'\\n' * r.randrange(3))
    while half == 0 and not os.path.exists(sys.argv[1]):
        select.select([], [], [], 0.02)
"""


# A hundred lines, and no more until it may end.
WAITS = """
os.write(1, b"old line\\n" * 100)
while not os.path.exists(sys.argv[1]):
    select.select([], [], [], 0.02)
"""


class Following:
    """A client that reads a stream to its end, and comes back with its last id whenever the stream breaks."""

    def __init__(self, argusd, job, cut_after=0):
        self.argusd, self.job, self.cut_after = argusd, job, cut_after
        self.data, self.last, self.end = bytearray(), None, None

    def once(self):
        head = {"Last_Event_ID": self.last} if self.last else {}
        with contextlib.closing(self.argusd.stream(f"/v1/jobs/{self.job}/logs?follow=1", **head)) as stream:
            for n, (number, kind, event) in enumerate(stream):
                if kind == "end":
                    self.end = event
                    return
                assert event["offset"] == len(self.data)
                self.data += base64.b64decode(event["b64"])
                assert int(number) == len(self.data)
                self.last = number
                if self.cut_after and n >= self.cut_after:
                    return

    def run(self):
        def is_over():
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.once()
            return self.end

        until(is_over, "the end of the stream")
        return bytes(self.data)


@pytest.fixture
def argusd(tmp_path):
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as made:
        made.ray = ray
        yield made


def writer(argusd):
    """A job that has written its first half, and what lets it go on."""
    go = argusd.home / "go"
    job = argusd.submit(argusd.python(WRITER, go))
    argusd.wait_state(job, "RUNNING")
    return job, go


def truth(argusd, job):
    return argusd.log_file(job).read_bytes()


def assert_same(got, want):
    """Equal; without the difference, which pytest would work on for hours."""
    first = next((i for i, (a, b) in enumerate(zip(got, want, strict=False)) if a != b), None)
    same = got == want
    assert same, f"{len(got)} bytes, not {len(want)}; the first other one is at {first}"


def wait_at_rest(argusd, job):
    """The first half is written."""
    size = [0, -1]

    def same():
        size[:] = [len(truth(argusd, job)), size[0]]
        return size[0] > 100000 and size[0] == size[1]

    until(same, "the first half")


def test_a_hundred_followers(argusd):
    job, go = writer(argusd)
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        early = [pool.submit(argusd.follow, job) for _ in range(60)]
        wait_at_rest(argusd, job)
        late = [pool.submit(argusd.follow, job, token="user") for _ in range(40)]
        go.touch()
        got = [f.result() for f in early + late]
    whole = truth(argusd, job)
    assert len(whole) > 500000
    assert [len(data) for data, _ in got] == [len(whole)] * 100
    assert all(data == whole for data, _ in got)
    assert {end["state"] for _, end in got} == {"SUCCEEDED"}
    assert {end["exit_code"] for _, end in got} == {0}


def test_cut_connections_resume(argusd):
    job, go = writer(argusd)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        followers = [Following(argusd, job, cut_after=n) for n in range(1, 9)]
        going = [pool.submit(f.run) for f in followers]
        until(lambda: all(f.last for f in followers), "all have begun")
        go.touch()
        got = [f.result() for f in going]
    assert all(data == truth(argusd, job) for data in got)


@pytest.mark.parametrize("how", ["stop", "kill9"])
def test_restart_in_the_middle(argusd, how):
    job, go = writer(argusd)
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        followers = [Following(argusd, job) for _ in range(10)]
        going = [pool.submit(f.run) for f in followers]
        until(lambda: all(f.last for f in followers), "all have begun")
        getattr(argusd, how)()
        go.touch()
        argusd.start()
        got = [f.result() for f in going]
    assert all(data == truth(argusd, job) for data in got)
    assert all(f.end["state"] == "SUCCEEDED" for f in followers)


def test_follow_from_the_queue_to_the_end(argusd):
    argusd.ray.settings(hold_pending=True)
    starting = argusd.submit("echo one; echo two")
    large = argusd.submit("echo three; exit 4", nnodes=3, n_gpus_per_node=4)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        going = [pool.submit(argusd.follow, j) for j in (starting, large)]
        argusd.wait_state(starting, "STARTING")
        assert argusd.job(large)["state"] == "QUEUED"
        argusd.ray.settings(hold_pending=False)
        res = {"CPU": 40, "GPU": 4, "worker_node": 100, "argus_node_h4": 1000}
        argusd.ray.ask("POST", "nodes", {"name": "h4", "ip": "10.99.0.4", "resources": res})
        first, second = (g.result() for g in going)
    assert (first[0], first[1]["state"], first[1]["exit_code"]) == (b"one\ntwo\n", "SUCCEEDED", 0)
    assert (second[0], second[1]["state"], second[1]["exit_code"]) == (b"three\n", "FAILED", 4)


def test_follow_of_one_that_never_leaves_the_queue(argusd):
    job = argusd.submit("echo x", nnodes=9, n_gpus_per_node=4)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        going = pool.submit(argusd.follow, job)
        argusd.wait_state(job, "QUEUED")
        argusd.stop_job(job)
        data, end = going.result()
    assert (data, end["state"]) == (b"", "STOPPED")
    assert argusd.follow(job) == (data, end)


def test_parts_of_a_finished_log(argusd):
    job = argusd.submit("seq 1 1000; printf 'no newline'")
    argusd.wait_over(job)
    whole = truth(argusd, job)
    lines = whole.split(b"\n")

    def part(query):
        reply = argusd.call("GET", f"/v1/jobs/{job}/logs{query}", token="viewer")
        assert reply.status == 200, reply
        assert reply.headers["Argus-Log-Size"] == str(len(whole))
        return reply.body

    assert part("") == whole == argusd.follow(job)[0]
    assert part("?offset=100") == whole[100:]
    assert part("?offset=100&limit=7") == whole[100:107]
    assert part(f"?offset={len(whole)}") == b""
    assert part(f"?offset={len(whole) + 99}") == b""
    assert part("?tail=1") == b"no newline"
    assert part("?tail=3") == b"\n".join(lines[-3:])
    assert part("?tail=0") == b""
    assert part("?tail=99999") == whole
    assert part("?attempt=1") == whole
    assert argusd.follow(job, Last_Event_ID="0")[0] == whole
    for query, status in (
        ("?offset=-1", 400), ("?offset=x", 400), ("?limit=0", 400), ("?tail=-2", 400), ("?attempt=2", 404),
        ("?attempt=0", 400), ("?source=driver", 200), ("?source=other", 400),
    ):  # fmt: skip
        assert argusd.call("GET", f"/v1/jobs/{job}/logs{query}").status == status, query


def test_a_log_of_many_files(argusd):
    """What lies between two segments was dropped: it is told, and offsets stay true."""
    job = argusd.submit("seq 1 1000")
    argusd.wait_over(job)
    first = truth(argusd, job)
    log = argusd.log_file(job)
    log.with_name(f"driver.log.{len(first)}").write_bytes(b"second\n")
    log.with_name("driver.log.9000").write_bytes(b"[argus] dropped\nlast\n")
    data, at = bytearray(), []
    with contextlib.closing(argusd.stream(f"/v1/jobs/{job}/logs?follow=1")) as stream:
        for number, kind, event in stream:
            if kind == "log":
                data += base64.b64decode(event["b64"])
                at.append((event["offset"], int(number)))
    assert_same(bytes(data), first + b"second\n[argus] dropped\nlast\n")
    assert at[-1] == (9000, 9021)
    reply = argusd.call("GET", f"/v1/jobs/{job}/logs?offset={len(first) + 7}")
    assert (reply.body, reply.headers["Argus-Log-Offset"]) == (b"[argus] dropped\nlast\n", "9000")
    assert argusd.call("GET", f"/v1/jobs/{job}/logs?tail=1").body == b"last\n"
    env = {"ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "HOME": str(argusd.home)}
    printed = subprocess.run([PROGRAMS["argus"], "logs", job], env=env, capture_output=True, check=True)
    assert_same(printed.stdout, first + b"second\n[argus] dropped\nlast\n")
    assert f"{9000 - len(first) - 7} bytes are not there".encode() in printed.stderr


def test_follow_from_an_offset(argusd):
    job = argusd.submit("seq 1 1000")
    argusd.wait_over(job)
    with contextlib.closing(argusd.stream(f"/v1/jobs/{job}/logs?follow=1&offset=500")) as stream:
        events = list(stream)
    data = b"".join(base64.b64decode(e["b64"]) for _, kind, e in events if kind == "log")
    assert_same(data, truth(argusd, job)[500:])
    assert events[-1][1] == "end"


def test_the_first_attempt_is_followed_when_asked_for(argusd):
    argusd.ray.add_job(submission_id="twice", status="RUNNING")
    job = argusd.submit("echo second attempt", submission_id="twice")
    argusd.wait_over(job)
    assert argusd.follow(job)[0] == b"second attempt\n"
    assert argusd.follow(job, "&attempt=2")[0] == b"second attempt\n"
    assert argusd.follow(job, "&attempt=1")[0] == b""


def test_the_command_line_follows(argusd):
    job, go = writer(argusd)
    env = {"ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "HOME": str(argusd.home)}
    argv = [PROGRAMS["argus"], "logs", job, "-f"]
    with open(argusd.home / "followed", "w+b") as out:
        with subprocess.Popen(argv, env=env, stdout=out, stderr=subprocess.PIPE) as follower:
            until(lambda: os.fstat(out.fileno()).st_size, "it follows already")
            wait_at_rest(argusd, job)
            argusd.restart()
            go.touch()
            _, err = follower.communicate()
        out.seek(0)
        assert_same(out.read(), truth(argusd, job))
    assert follower.returncode == 0
    assert b"SUCCEEDED" in err


def test_a_followed_log_ends_with_its_token(argusd):
    made = argusd.call("POST", "/v1/tokens", {}, token="user").json()
    job = argusd.submit("echo here; exec tail -f /dev/null")
    argusd.wait_state(job, "RUNNING")
    with contextlib.closing(argusd.stream(f"/v1/jobs/{job}/logs?follow=1", token=made["token"])) as stream:
        assert next(iter(stream))[1] == "log"
        assert argusd.call("DELETE", f"/v1/tokens/{made['id']}", token="user").status == 200
        assert list(stream) == []  # to its end, which tells nothing of the job
    argusd.stop_job(job)


# ---- events ----


def numbers(events):
    return [e["seq"] for e in events]


def read_events(argusd, path, enough, since=None):
    """From a stream that is cut every few events: those until enough(events)."""
    got, last = [], since
    while not enough(got):
        head = {"Last_Event_ID": str(last)} if last is not None else {}
        with contextlib.closing(argusd.stream(f"{path}?follow=1", **head)) as stream:
            for n, (number, _, event) in enumerate(stream):
                assert int(number) == event["seq"]
                got.append(event)
                last = event["seq"]
                if enough(got) or n >= 4:
                    break
    return got


def test_events_resume_without_gap_or_double(argusd):
    jobs = []
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        ended = lambda events: sum(e["kind"] == "ended" for e in events) == 12  # noqa: E731
        going = [pool.submit(read_events, argusd, "/v1/events", ended, since=0) for _ in range(4)]
        jobs = [argusd.submit(f"echo {n}") for n in range(12)]
        got = [g.result() for g in going]
    for events in got:
        assert numbers(events) == list(range(1, events[-1]["seq"] + 1))
    assert max(got, key=len) == argusd.events()[: max(map(len, got))]
    for job in jobs:
        of_job = [e for e in argusd.events() if e.get("job") == job]
        assert argusd.events(job) == of_job
        over = lambda events: events and events[-1]["kind"] == "ended"  # noqa: E731
        assert read_events(argusd, f"/v1/jobs/{job}/events", over) == of_job


def test_events_across_a_restart(argusd):
    first = argusd.submit("echo x")
    argusd.wait_over(first)
    before = argusd.events()
    argusd.restart()
    second = argusd.submit("echo y")
    argusd.wait_over(second)
    after = argusd.events()
    assert after[: len(before)] == before
    assert numbers(after) == list(range(1, len(after) + 1))


def test_events_wait(argusd):
    job = argusd.submit("echo x", nnodes=9, n_gpus_per_node=4)
    seen = argusd.get(f"/v1/jobs/{job}/events")["next"]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(argusd.get, f"/v1/jobs/{job}/events?since={seen}&wait=60s")
        argusd.stop_job(job)
        wait_for(waiting.done, "an answer before the wait is over", 40)
        assert [e["to"] for e in waiting.result()["events"]] == ["STOPPED"]


class Replaced:
    """A follower of a log that somebody exchanges: pieces of each file that it was told of, and what it was told."""

    def __init__(self, argusd, job, offset=0):
        self.stream = argusd.stream(f"/v1/jobs/{job}/logs?follow=1&offset={offset}")
        self.files, self.told, self.at = [bytearray()], [], offset
        self.over = False
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        with contextlib.closing(self.stream):
            for number, kind, event in self.stream:
                if kind == "end":
                    self.over = True
                    return
                if kind == "replaced":
                    assert event["was"] == self.at and event["lost"] == 0
                    self.told.append(event["offset"])
                    self.files.append(bytearray())
                else:
                    assert event["offset"] == self.at
                    self.files[-1] += base64.b64decode(event["b64"])
                self.at = int(number)

    def has(self, *texts):
        def same():
            assert self.thread.is_alive()
            return [bytes(x) for x in self.files] == list(texts)

        until(same, "what is there now is followed")


def renamed(log, text):
    new = log.with_name("new")
    new.write_bytes(text)
    new.rename(log)


def rotated(log, text):
    log.rename(log.with_name("driver.log.old"))
    log.write_bytes(text)


def new_directory(log, text):
    """As after a server has put another one in its place."""
    log.parent.rename(log.parent.with_name(f"logs.old.{len(text)}"))
    log.parent.mkdir()
    log.write_bytes(text)


def written_anew(log, text):
    log.write_bytes(b"")
    log.write_bytes(text)


LONG = b"".join(b"new line %d\n" % i for i in range(3000))


@pytest.mark.parametrize("how", [renamed, rotated, new_directory, written_anew])
def test_another_file_in_the_place_of_a_log(argusd, how):
    """Shorter, longer, and one more time: all of each file, each byte once, and told once for each."""
    go = argusd.home / "go"
    job = argusd.submit(argusd.python("import os, select, sys\n" + WAITS, go))
    argusd.wait_state(job, "RUNNING")
    log = argusd.log_file(job)
    until(lambda: log.read_bytes() == b"old line\n" * 100, "it has written")
    late = Replaced(argusd, job, offset=890)  # one line of it
    seen = Replaced(argusd, job)
    try:
        old = b"old line\n" * 100
        late.has(old[890:])
        seen.has(old)
        how(log, b"a short one\n")
        seen.has(old, b"a short one\n")
        how(log, LONG)
        seen.has(old, b"a short one\n", LONG)
        with log.open("ab") as f:
            f.write(b"and on\n")
        seen.has(old, b"a short one\n", LONG + b"and on\n")
        late.has(old[890:], b"a short one\n", LONG + b"and on\n")
        copy = log.with_name("copy")
        copy.write_bytes(log.read_bytes() + b"a copy that goes on\n")
        copy.rename(log)  # the same log: nothing is told
        seen.has(old, b"a short one\n", LONG + b"and on\na copy that goes on\n")
        os.truncate(log, len(LONG))
        until(lambda: seen.told[2:] == late.told[2:] == [len(LONG)], "the cut is told")
        with log.open("ab") as f:
            f.write(b"after a cut\n")
        seen.has(old, b"a short one\n", LONG + b"and on\na copy that goes on\n", b"after a cut\n")
    finally:
        go.touch()
        seen.thread.join()
        late.thread.join()
    assert seen.over and late.over and seen.told == late.told == [0, 0, len(LONG)]
    assert argusd.said().count("a followed log was") == 1
