# SPDX-License-Identifier: Apache-2.0
"""Search in logs: of one job, and of all that one may see; pages join, others' jobs are not there."""

import os
import re
import socket
import subprocess
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import pytest
from fakeray import FakeRay
from threads import only_the_first

from argusd import PROGRAMS, Argusd, needs_argusd, until

pytestmark = needs_argusd


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    """Three jobs of the user, the newest first: ids[0]; and one of somebody else."""
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("search"), ray.url) as argusd:
        for name in ("bob", "carol"):
            assert argusd.call("POST", "/v1/users", {"name": name}).status == 201
            argusd.tokens[name] = argusd.call("POST", "/v1/tokens", {"user": name}).json()["token"]
        says = "echo start {0}; seq 1 2000; echo needle in {0}; printf end-needle"
        argusd.ids = [argusd.submit(says.format(n)) for n in "abc"]
        argusd.ids.reverse()
        argusd.other = argusd.submit("seq 1 300000; echo needle of bob; seq 1 100000", token="bob")
        for job in (*argusd.ids, argusd.other):
            argusd.wait_over(job)
        yield argusd


def search(w, path, pattern, token="user", status=200, **more):
    query = urllib.parse.urlencode({"grep": pattern, **more})
    reply = w.call("GET", f"{path}?{query}", token=token)
    assert reply.status == status, reply
    return reply.json()


def every(w, path, pattern, token="user", **more):
    """The hits of all pages."""
    hits, cursor = [], {}
    while cursor is not None:
        page = search(w, path, pattern, token, **more, **cursor)
        hits += page["hits"]
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
    return hits


def test_one_job(w):
    job = w.ids[0]
    log = w.log_file(job).read_bytes()
    hits = every(w, f"/v1/jobs/{job}/logs", "needle|^start")
    assert [h["text"] for h in hits] == ["start c", "needle in c", "end-needle"]
    for hit in hits:
        assert log[hit["offset"] :].startswith(hit["text"].encode())
        assert (hit["job"], hit["attempt"]) == (job, 1)
    numbers = every(w, f"/v1/jobs/{job}/logs", "^[0-9]+$", limit=130)
    assert [h["text"] for h in numbers] == [str(n) for n in range(1, 2001)]
    assert search(w, f"/v1/jobs/{job}/logs", "nowhere")["next_cursor"] is None


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_all_jobs_newest_first(w, limit):
    hits = every(w, "/v1/logs", "needle", limit=limit)
    assert [(h["job"], h["text"]) for h in hits] == [
        (job, text) for job, n in zip(w.ids, "cba", strict=True) for text in (f"needle in {n}", "end-needle")
    ]


def test_nobody_sees_what_is_not_his(w):
    assert [h["text"] for h in every(w, "/v1/logs", "needle", token="bob")] == ["needle of bob"]
    assert every(w, "/v1/logs", "needle", token="carol") == []
    assert {h["job"] for h in every(w, "/v1/logs", "needle", token="admin")} == {*w.ids, w.other}
    assert {h["job"] for h in every(w, "/v1/logs", "needle", token="admin", user="bob")} == {w.other}
    first = search(w, "/v1/logs", "needle", token="admin", limit=1)  # his cursor, in other hands
    assert search(w, "/v1/logs", "needle", token="carol", cursor=first["next_cursor"])["hits"] == []
    assert search(w, f"/v1/jobs/{w.other}/logs", "needle", token="carol", status=404)["code"] == "not_found"


def test_what_an_index_excludes_is_not_read(w):
    log = w.log_file(w.other).read_bytes()
    whole = search(w, f"/v1/jobs/{w.other}/logs", "ne[e]d[l]e", token="bob")
    page = search(w, f"/v1/jobs/{w.other}/logs", "(?i)NEEDLE of", token="bob")
    assert page["hits"] == whole["hits"] == [
        {"job": w.other, "attempt": 1, "source": "driver", "file": None, "node": None, "rank": None,
         "offset": log.index(b"needle"), "text": "needle of bob"}
    ]  # fmt: skip
    assert (whole["bytes"], whole["skipped_bytes"]) == (len(log), 0)
    assert page["bytes"] + page["skipped_bytes"] == len(log) and page["skipped_bytes"] > 0  # more when it kept up
    assert page["hits"] == every(w, "/v1/logs", "needle", token="bob", limit=1)


def test_what_is_refused(w):
    for more in ({"pattern": "a(b"}, {"pattern": ""}, {"pattern": "x" * 2000}, {"pattern": "x", "cursor": "1~2"},
                 {"pattern": "x", "limit": 0}, {"pattern": "x", "since": "yesterday"}):  # fmt: skip
        problem = search(w, "/v1/logs", status=400, **more)
        assert problem["type"] == "urn:argus:problem:bad_request", problem
    for path in ("/v1/logs", f"/v1/jobs/{w.ids[0]}/logs"):
        assert "'10' has no unit: 10s, 10m, 10h or 10d" in search(w, path, "x", status=400, since="10")["detail"]
    assert "'a(b' is not a valid regular expression" in search(w, "/v1/logs", "a(b", status=400)["detail"]


def test_a_pattern_is_compiled_beside_the_loop(w):
    """While the other threads stand still the loop answers everybody, and a broken pattern has no answer yet."""
    # The threads are there.
    assert "not a valid regular expression" in search(w, "/v1/logs", "a(b", status=400)["detail"]
    with socket.create_connection(("127.0.0.1", w.port), 60) as s:
        try:
            with only_the_first(w.process.pid) as n:
                assert n >= 2
                token = f"Authorization: Bearer {w.tokens['user']}"
                s.sendall(f"GET /v1/logs?grep=a(b HTTP/1.1\r\nHost: x\r\n{token}\r\n\r\n".encode())
                for _ in range(20):  # turns of the loop: the search was read in one of them
                    assert w.call("GET", "/healthz").status == 200
                s.setblocking(False)
                with pytest.raises(BlockingIOError):
                    s.recv(1)
        except PermissionError:
            pytest.skip("no thread may be held on this machine")
        s.settimeout(60)
        assert s.recv(12) == b"HTTP/1.1 400"


def test_the_command_line(w):
    env = {"ARGUS_URL": w.url, "ARGUS_TOKEN": w.tokens["user"], "HOME": str(w.home)}

    def run(*argv):
        return subprocess.run([PROGRAMS["argus"], "logs", *argv], env=env, capture_output=True, text=True)

    found = run("--all", "--grep", "^needle")
    log = w.log_file(w.ids[0]).read_bytes()
    assert found.stdout.splitlines()[0] == f"{w.ids[0]}/1:{log.index(b'needle')}: needle in c"
    assert len(found.stdout.splitlines()) == 3
    assert found.returncode == 0, found.stderr
    assert run("--all", "--grep", "needle", "--tail", "2").returncode == 2
    assert run("--all").returncode == 2
    assert run().returncode == 2
    bad = run("--all", "--grep", "a(b")
    assert bad.returncode == 2 and "not a valid regular expression" in bad.stderr
    one = run("--grep", "needle in [abc]", w.ids[1])
    assert (one.returncode, one.stdout) == (0, "needle in b\n")


BYTES = r"""
import os, sys
for i in range(5000):
    os.write(1, b"needle %d \xff\x00 \t%s\n" % (i, b"x" * (i % 7)) if i % 2 else b"hay %d\n" % i)
os.write(1, b"needle " + b"y" * 300000 + b"\n")
os.write(1, b"\xfe needle with no end")
"""


def test_the_command_line_prints_lines_as_they_are(w):
    job = w.submit(w.python(BYTES))
    w.wait_over(job)
    env = {"ARGUS_URL": w.url, "ARGUS_TOKEN": w.tokens["user"], "HOME": str(w.home)}
    want = b"".join(line + b"\n" for line in w.log_file(job).read_bytes().splitlines() if b"needle" in line)
    for more in ([], ["-f"], ["--attempt", "1", "-f"], ["--since", "1h"], ["--tail", "100000"]):
        argv = [PROGRAMS["argus"], "logs", job, "--grep", "n[e]{2}dle", *more]
        found = subprocess.run(argv, env=env, capture_output=True)
        same = found.stdout == want  # without the difference, which pytest would work on for hours
        assert same and found.returncode == 0, (more, len(found.stdout), len(want), found.stderr)
    assert search(w, f"/v1/jobs/{job}/logs", "needle", bytes=1, limit=1)["hits"][0]["b64"]


HALVES = """
import os, sys
os.write(1, b"needle 1\\nhay\\nneed")
open(sys.argv[1]).read()
os.write(1, b"le 2\\nhay\\nneedle 3\\n")
"""


def test_the_command_line_finds_what_is_there_and_what_comes(w):
    go = w.home / "go on"
    os.mkfifo(go)
    job = w.submit(w.python(HALVES, go))
    w.wait_state(job, "RUNNING")
    until(lambda: w.log_file(job).exists() and w.log_file(job).read_bytes().endswith(b"need"), "the first half")
    page = search(w, f"/v1/jobs/{job}/logs", "need")
    assert (len(page["hits"]), page["attempt"], page["offset"]) == (2, 1, len(b"needle 1\nhay\n"))
    env = {"ARGUS_URL": w.url, "ARGUS_TOKEN": w.tokens["user"], "HOME": str(w.home)}
    argv = [PROGRAMS["argus"], "logs", "-f", job, "--grep", "need"]
    with open(w.home / "found", "w+b") as out, subprocess.Popen(argv, env=env, stdout=out) as follower:
        until(lambda: os.fstat(out.fileno()).st_size, "what is there was found")
        go.write_text("")
        assert follower.wait() == 0
        out.seek(0)
        assert out.read() == b"needle 1\nneedle 2\nneedle 3\n"


# Its first attempt fails once the gate is open.
TWICE = """
import os, sys
for i in range(3):
    os.write(1, b"needle %s of attempt %s\\n" % (str(i).encode(), os.environ["ARGUS_ATTEMPT"].encode()))
if os.environ["ARGUS_ATTEMPT"] == "1":
    open(sys.argv[1]).read()
    os._exit(1)
"""


def test_the_pages_of_a_search_stay_in_their_attempt(w):
    go = w.home / "go twice"
    os.mkfifo(go)
    restart = {"max": 1, "backoff": "1s", "on": ["unknown", "user_code_error"]}
    job = w.submit(w.python(TWICE, go), restart=restart)
    w.wait_state(job, "RUNNING")
    until(lambda: w.log_file(job).exists() and w.log_file(job).read_bytes().count(b"\n") == 3, "three lines")
    path = f"/v1/jobs/{job}/logs"
    first = search(w, path, "needle", limit=1)
    go.write_text("")
    w.wait_over(job)
    rest, end = [], first
    while end["next_cursor"]:
        end = search(w, path, "needle", limit=1, cursor=end["next_cursor"])
        rest += end["hits"]
        assert end["attempt"] == 1
    assert [h["text"] for h in rest] == ["needle 1 of attempt 1", "needle 2 of attempt 1"]
    assert end["offset"] == w.log_file(job).stat().st_size
    assert [h["attempt"] for h in every(w, path, "needle", limit=2)] == [2, 2, 2]  # who begins now


@pytest.mark.parametrize("more", [[], ["-f"], ["--source", "worker"], ["--all"]])
def test_a_bad_pattern_is_one_sentence(w, more):
    env = {"ARGUS_URL": w.url, "ARGUS_TOKEN": w.tokens["user"], "HOME": str(w.home)}
    ids = [] if "--all" in more else [w.ids[0]]
    argv = [PROGRAMS["argus"], "logs", "--grep", "a(b", *more, *ids]
    done = subprocess.run(argv, env=env, capture_output=True, text=True)
    if "--source" not in more:  # it has none, which is said first
        assert re.search(r"'a\(b' is not a valid regular expression: .*, at its byte 3\n", done.stderr), done.stderr
    assert done.stdout == "" and done.returncode in (2, 4)


def test_who_comes_while_others_search_waits(w):
    """No page is refused, though no more than two are searched for at once; and who went away holds up nobody."""
    path = f"/v1/jobs/{w.other}/logs"
    query = f"{path}?grep=%5E%5B0-9%5D%2A7%24&limit=1000"
    for _ in range(6):
        with socket.create_connection(("127.0.0.1", w.port)) as s:
            s.sendall(f"GET {query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {w.tokens['bob']}\r\n\r\n".encode())
    with ThreadPoolExecutor(8) as pool:
        many = [pool.submit(every, w, path, "^[0-9]*7$", "bob", limit=1000) for _ in range(4)]
        other = pool.submit(every, w, "/v1/logs", "needle", "admin", limit=1)
        assert {len(one.result()) for one in many} == {40000}
        assert len(other.result()) == len(every(w, "/v1/logs", "needle", "admin"))
