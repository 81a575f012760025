# SPDX-License-Identifier: Apache-2.0
"""Our client of Ray against a dashboard in every kind of trouble: what is not known is told as unknown."""

import socket
import threading

import pytest
from fakeray import FakeRay
from rayprobe import PROBE, Probe

pytestmark = pytest.mark.skipif(PROBE is None, reason="ray_probe is not built")

JOB = {"submission_id": "a-1", "entrypoint": "echo hello", "metadata": {"argus": "mark"}}


@pytest.fixture(params=["2.51.1", "2.60.0"])
def fake(request):
    with FakeRay(request.param) as ray:
        yield ray


@pytest.fixture
def old():
    with FakeRay("2.51.1") as ray:
        yield ray


@pytest.fixture
def probe(fake):
    return Probe(fake.url)


def test_version_tells_what_it_supports(fake, probe):
    got = probe("version")
    assert got["version"] == fake.version
    assert got["session"] == fake.ask("GET", "state")["session"]
    new = fake.version == "2.60.0"
    assert (got["labels"], got["token"], got["entrypoint_labels"]) == (True, new, new)


def test_life_of_a_job(fake, probe):
    fake.settings(ghost_window=0)
    spec = {**JOB, "entrypoint": "echo $A; exit 3", "env": {"A": "b"}, "resources": {"worker_node": 1}, "num_cpus": 1}
    assert probe.submit(spec)[0]["outcome"] == "ACCEPTED"
    fake.wait_status("a-1", "FAILED")
    job = probe("get", "a-1")["job"]
    assert (job["status"], job["exit_code"], job["error_type"]) == ("FAILED", 3, "JOB_ENTRYPOINT_COMMAND_ERROR")
    assert job["metadata"] == {"argus": "mark"}
    assert job["driver_node_id"] in [n["node_id"] for n in probe("nodes")["nodes"] if not n["head"]]
    assert probe("stop", "a-1")["outcome"] == "ENDED"
    assert probe("supervisor", "a-1")["outcome"] == "NOT_FOUND"
    assert probe("delete", "a-1")["outcome"] == "DONE"
    assert probe("delete", "a-1")["outcome"] == "NOT_FOUND"
    assert probe("get", "a-1")["outcome"] == "NOT_FOUND"
    assert probe("stop", "a-1")["outcome"] == "NOT_FOUND"
    assert len(fake.starts()["a-1"]) == 1


def test_pending_can_be_neither_stopped_nor_deleted(fake, probe):
    fake.settings(hold_pending=True)
    probe.submit(JOB)
    assert probe("stop", "a-1")["outcome"] == "ASKED"
    assert probe("get", "a-1")["job"]["status"] == "PENDING"
    assert probe("delete", "a-1")["outcome"] == "TOO_EARLY"
    assert probe("supervisor", "a-1")["actor"]["state"] == "PENDING_CREATION"


def test_orphan_has_no_supervisor(fake, probe):
    fake.settings(orphans=1)
    assert probe.submit(JOB)[0]["outcome"] == "ACCEPTED"
    assert probe("get", "a-1")["job"]["status"] == "PENDING"
    assert probe("supervisor", "a-1")["outcome"] == "NOT_FOUND"


def test_ghost_of_an_early_delete_is_told_apart(fake, probe):
    fake.settings(ghost_window=600)  # early, however long the asking takes here
    probe.submit(JOB)
    fake.wait_status("a-1", "SUCCEEDED")
    assert probe("delete", "a-1")["outcome"] == "DONE"
    fake.wait_status("a-1", "FAILED")
    assert probe("get", "a-1")["job"]["is_ghost"] is True


# -- submit ----------------------------------------------------------------------


def test_submits_go_one_after_another_and_in_order(fake, probe):
    specs = [{**JOB, "submission_id": f"a-{i}"} for i in range(5)]
    got = probe.submit(*specs, {**JOB, "submission_id": "a-0"})
    assert [g["outcome"] for g in got] == ["ACCEPTED"] * 5 + ["DUPLICATE"]
    assert "already exists" in got[-1]["sentence"]
    posts = [r for r in fake.requests() if r["method"] == "POST"]
    versions = [r for r in fake.requests() if r["path"] == "/api/version"]
    assert (len(posts), len(versions)) == (6, 1)


def test_submits_keep_their_gap(fake, probe):
    probe.submit(*[{**JOB, "submission_id": f"a-{i}"} for i in range(4)], per_second=5)
    times = [r["time"] for r in fake.requests() if r["method"] == "POST"]
    assert times[-1] - times[0] > 0.3  # three gaps of 200 ms, never shorter, whatever the load


def test_version_is_read_before_the_first_post_and_unknown_keys_are_left_out(fake, probe):
    spec = {**JOB, "labels": {"zone": "a"}}
    assert probe.submit(spec)[0]["outcome"] == "ACCEPTED"
    assert [r["path"] for r in fake.requests()] == ["/api/version", "/api/jobs/"]


def test_dropped_answer_is_a_doubt_that_get_resolves(fake, probe):
    fake.fault("drop_answer", method="POST", count=1)
    assert probe.submit(JOB)[0]["outcome"] == "DOUBT"
    assert probe("get", "a-1")["job"]["metadata"] == {"argus": "mark"}
    assert probe.submit(JOB)[0]["outcome"] == "DUPLICATE"
    fake.wait_status("a-1", "SUCCEEDED")
    assert len(fake.starts()["a-1"]) == 1


def test_lost_post_is_a_doubt_that_get_resolves(fake, probe):
    fake.fault("reset", method="POST", count=1)
    assert probe.submit(JOB)[0]["outcome"] == "DOUBT"
    assert probe("get", "a-1")["outcome"] == "NOT_FOUND"
    assert probe.submit(JOB)[0]["outcome"] == "ACCEPTED"


@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "hang"},
        {"kind": "status", "status": 500},
        {"kind": "status", "status": 502, "text": "<html>bad gateway</html>"},
        {"kind": "status", "status": 408, "text": "timeout"},
        {"kind": "status", "status": 200, "text": "welcome"},
        {"kind": "status", "status": 204, "text": ""},
        {"kind": "garbage"},
        {"kind": "replace", "json": {"submission_id": "somebody"}},
        {"kind": "replace", "json": []},
        {"kind": "raw"},
        {"kind": "huge", "bytes": 8 << 20},
    ],
    ids=lambda r: f"{r['kind']}-{r.get('status', r.get('json', ''))}",
)
def test_every_unusable_answer_to_a_post_is_a_doubt(old, rule):
    old.fault(method="POST", **rule)
    got = Probe(old.url).submit(JOB, submit_ms=500)[0]
    assert got["outcome"] == "DOUBT", got
    assert got["sentence"]


@pytest.mark.parametrize(
    ("rule", "outcome"),
    [
        ({"status": 400, "text": "TypeError: unexpected keyword argument 'x'"}, "REFUSED"),
        ({"status": 405, "text": "Method Not Allowed for browser traffic."}, "REFUSED"),
        ({"status": 413, "text": "Maximum request body size 104857600 exceeded."}, "REFUSED"),
        ({"status": 500, "text": "RuntimeError: Request failed with status code 400: ValueError: no.\n."}, "REFUSED"),
        ({"status": 500, "text": "No available agent to submit job, please try again later."}, "NO_AGENT"),
        ({"status": 500, "text": "Failed to get head node agent within 10 seconds. The last"}, "NO_AGENT"),
        ({"status": 404, "text": "404: Not Found"}, "UNREACHABLE"),
        ({"status": 401, "text": "Unauthorized: Missing authentication token"}, "UNREACHABLE"),
        ({"status": 302, "text": ""}, "UNREACHABLE"),
        ({"status": 400, "text": "Job with submission_id a-1 already exists."}, "DUPLICATE"),
    ],
    ids=lambda v: str(v.get("status")) if isinstance(v, dict) else v,
)
def test_definite_answers_to_a_post(old, rule, outcome):
    old.fault("status", method="POST", **rule)
    assert Probe(old.url).submit(JOB)[0]["outcome"] == outcome


def test_refusal_quotes_the_last_line_of_the_traceback(old):
    text = "Traceback (most recent call last):\n  File x\nTypeError: unexpected keyword argument 'x'\n.\n"
    old.fault("status", method="POST", status=400, text=text)
    got = Probe(old.url).submit(JOB)[0]
    assert "'TypeError: unexpected keyword argument 'x''" in got["sentence"]
    assert "Traceback" not in got["sentence"]


def test_nobody_there_is_definitely_not_submitted(old):
    old.listen(False)
    got = Probe(old.url).submit(JOB, {**JOB, "submission_id": "a-2"})
    assert [g["outcome"] for g in got] == ["UNREACHABLE"] * 2
    old.listen(True)
    assert Probe(old.url).submit(JOB)[0]["outcome"] == "ACCEPTED"


def test_version_that_hangs_submits_nothing(old):
    old.fault("hang", path="/api/version")
    assert Probe(old.url).submit(JOB, read_ms=300)[0]["outcome"] == "UNREACHABLE"
    assert not [r for r in old.requests() if r["method"] == "POST"]


# -- everything else -----------------------------------------------------------------

SPOILT = [
    {"kind": "hang"},
    {"kind": "status", "status": 500},
    {"kind": "status", "status": 404, "text": "404: Not Found"},
    {"kind": "status", "status": 200, "text": ""},
    {"kind": "garbage"},
    {"kind": "garbage", "body": "[" * 100000},
    {"kind": "garbage", "body": '{"a":' * 3000},
    {"kind": "replace", "json": None},
    {"kind": "replace", "json": {"result": False, "msg": "no", "data": {"result": None}}},
    {"kind": "replace", "json": [{"type": "SUBMISSION"}]},
    {"kind": "raw"},
    {"kind": "raw", "bytes": "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n[{"},
    {"kind": "raw", "bytes": "HTTP/1.1 200 OK\r\nX: " + "y" * 90000 + "\r\n\r\n"},
    {"kind": "huge"},
    {"kind": "reset"},
]


@pytest.mark.parametrize("rule", SPOILT, ids=lambda r: f"{r['kind']}-{r.get('status', '')}")
def test_spoilt_answers_are_unknown(old, rule):
    old.add_job(submission_id="a-1", status="RUNNING")
    old.fault(**rule)
    probe = Probe(old.url, read_ms=700)
    for call in (["get", "a-1"], ["stop", "a-1"], ["delete", "a-1"], ["supervisor", "a-1"]):
        got = probe(*call)
        assert got["outcome"] == "UNKNOWN" and got["sentence"], (call, got)
    for call in ("version", "jobs", "nodes", "usages", "actors", "groups"):
        got = probe(call)
        assert got["outcome"] == "unknown" and got["sentence"], (call, got)


def test_errors_have_their_word(old):
    old.fault("hang", path="/api/version")
    assert Probe(old.url, read_ms=300)("version")["error"] == "timeout"
    old.heal()
    probe = Probe(old.url)
    old.fault("huge")
    assert probe("jobs", list_max=100000)["error"] == "too_large"
    old.listen(False)
    assert probe("version")["error"] == "unreachable"


def test_another_job_in_the_answer_is_unknown(old):
    old.add_job(submission_id="b-1")
    record = old.jobs()["b-1"]
    old.fault("replace", path="/api/jobs/a-1", json=record)
    assert Probe(old.url)("get", "a-1")["outcome"] == "UNKNOWN"


def test_lists_are_sorted_and_whole(fake, probe):
    for name in ("c", "a", "b"):
        fake.add_job(submission_id=name)
    assert [j["submission_id"] for j in probe("jobs")["jobs"]] == ["a", "b", "c"]
    assert [n["ip"] for n in probe("nodes")["nodes"]] == ["10.99.0.1", "10.99.0.2", "10.99.0.3"]


def test_partial_actor_list_proves_no_absence(old):
    inner = {"total": 20000, "num_after_truncation": 10000, "num_filtered": 0, "result": []}
    old.fault("replace", path="/api/v0/actors", json={"result": True, "msg": "", "data": {"result": inner}})
    assert Probe(old.url)("supervisor", "a-1")["outcome"] == "UNKNOWN"
    assert Probe(old.url)("actors")["partial"] is True


def test_dead_and_new_nodes(fake, probe):
    fake.node("h2", "dead")
    fake.node("h2", "alive")
    states = sorted((n["ip"], n["alive"]) for n in probe("nodes")["nodes"])
    assert states == [("10.99.0.1", True), ("10.99.0.2", False), ("10.99.0.2", True), ("10.99.0.3", True)]
    assert len(probe("usages")["usages"]) == 4  # the dead one too


def test_lost_memory_is_another_session(fake, probe):
    probe.submit(JOB)
    before = probe("version")["session"]
    fake.lose_memory()
    assert probe("version")["session"] != before
    assert probe("get", "a-1")["outcome"] == "NOT_FOUND"


def test_headers_are_no_browsers(fake, probe):
    probe("version")
    headers = {k.lower(): v for k, v in fake.requests()[-1]["headers"].items()}
    assert headers["user-agent"] == "argus/probe"
    assert "authorization" not in headers
    assert not [h for h in headers if h == "origin" or h.startswith("sec-fetch")]


def test_token():
    with FakeRay("2.60.0", token="s" * 64) as fake:
        assert Probe(fake.url, token="s" * 64)("version")["outcome"] == "known"
        assert Probe(fake.url, token="s" * 64).submit(JOB)[0]["outcome"] == "ACCEPTED"
        for probe in (Probe(fake.url), Probe(fake.url, token="wrong")):
            assert probe("version")["error"] == "unauthorised"
            assert probe("get", "a-1")["outcome"] == "UNKNOWN"
            got = probe.submit({**JOB, "submission_id": "a-2"})[0]
            assert (got["outcome"], got["error"]) == ("UNREACHABLE", "unauthorised")
        assert "a-2" not in fake.jobs()


def test_ids_are_escaped(fake, probe):
    fake.add_job(submission_id="a-1")
    for name in ("../jobs/a-1", "a-1/stop", "a-1?x=1", "a%2D1", "a-1&b"):
        assert probe("get", name)["outcome"] != "FOUND", name


def test_slow_bytes_of_a_server_that_never_ends_time_out():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip():
            peer, _ = server.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{")
                peer.recv(1)  # until the client goes

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert Probe(url, read_ms=300)("version")["error"] == "timeout"
        thread.join()
