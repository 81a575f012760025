# SPDX-License-Identifier: Apache-2.0
"""The HTTP layer over real sockets: the barrier, long-polls, streams, documents, TLS, the end."""

import contextlib
import http.client
import json
import os
import re
import resource
import ssl
import subprocess
import threading

import pytest
from fakeray import wait_for
from toyhttp import PATIENCE, Server, make_certificate, problem, program, read_all, read_until, request, serving


@pytest.fixture
def server():
    with serving() as s:
        yield s


# ---- the barrier ----


def test_replies_leave_in_the_order_of_their_barriers(server):
    held = {}
    for n in (30, 10, 20, 40):
        held[n] = server.socket(request("POST", f"/held?barrier={n}", "Connection: close"))
        reply = server.socket(request("POST", f"/held?barrier={n}", "Connection: close"))
        held[n, "again"] = reply
    for n in (10, 20, 30):
        server.call("POST", f"/release?to={n}")
        assert b" 201 " in read_all(held[n])
        assert b" 201 " in read_all(held[n, "again"])
        later = [s for k, s in held.items() if (k[0] if isinstance(k, tuple) else k) > n]
        for s in later:
            s.setblocking(False)
            with pytest.raises(BlockingIOError):
                s.recv(1)
            s.settimeout(PATIENCE)
    server.call("POST", "/release?to=99")
    assert b" 201 " in read_all(held[40])
    assert server.call("POST", "/held?barrier=99").status == 201


def test_many_held_replies_share_one_release(server):
    clients = [server.socket(request("POST", "/held?barrier=5", "Connection: close")) for _ in range(200)]
    server.call("POST", "/release?to=5")
    assert all(b" 201 " in read_all(s) for s in clients)


def test_client_that_leaves_while_its_reply_is_held(server):
    for _ in range(50):
        server.socket(request("POST", "/held?barrier=7")).close()
    server.call("POST", "/release?to=7")
    assert server.call("GET", "/hello").status == 200


# ---- long-polls ----


def test_long_poll_wakes_and_times_out(server):
    assert json.loads(server.call("GET", "/wait?wait=0s").body)["text"] == "nothing"
    s = server.socket(request("GET", "/wait?wait=60s", "Connection: close"))
    server.until(lambda st: st["waiters"] == 1)
    server.call("POST", "/wake")
    assert b"woken" in read_all(s)


def test_a_thousand_long_polls(server):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    try:
        polls = [server.socket(request("GET", "/wait?wait=60s", "Connection: close")) for _ in range(1000)]
        server.until(lambda st: st["waiters"] == 1000)
        for s in polls[:100]:
            s.close()
        server.until(lambda st: st["gone"] == 100 and st["waiters"] == 900)
        server.call("POST", "/wake")
        assert all(b"woken" in read_all(s) for s in polls[100:])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_client_that_leaves_a_long_poll_is_noticed(server):
    s = server.socket(request("GET", "/wait?wait=60s"))
    server.until(lambda st: st["waiters"] == 1)
    s.close()
    assert server.until(lambda st: st["gone"] == 1)["waiters"] == 0


# ---- streams ----


def test_events_resume_without_loss(server):
    with contextlib.closing(server.client()) as c:
        reply = server.ask(c, "GET", "/feed?until=3")
        assert reply.getheader("Content-Type") == "text/event-stream"
        assert reply.body == b"".join(b"id: %d\ndata: x\n\n" % i for i in (1, 2, 3))
        reply = server.ask(c, "GET", "/feed?until=5", Last_Event_ID="3")
        assert reply.body == b"".join(b"id: %d\ndata: x\n\n" % i for i in (4, 5))
        assert server.ask(c, "GET", "/hello").status == 200


def test_lines_of_an_event(server):
    s = server.socket(request("GET", "/feed"))
    read_until(s, b"\r\n\r\n")
    server.call("POST", "/feed", b"one\ntwo\r\nthree\rfour\n", Content_Type="text/plain")
    assert b"id: 7\nevent: note\ndata: one\ndata: two\ndata: three\ndata: four\ndata: \n\n" in read_until(s, b"\n\n")


def test_stream_to_an_old_client(server):
    data = read_all(server.socket(b"GET /feed?until=2 HTTP/1.0\r\n\r\n"))
    assert data.endswith(b"\r\n\r\nid: 1\ndata: x\n\nid: 2\ndata: x\n\n")


def test_heartbeat():
    with serving("heartbeat=50") as server:
        s = server.socket(request("GET", "/feed"))
        beat = re.search(rb"\n(:[^\n]*\n\n)", read_until(s, b"alive\n\n"))[1]
        assert len(beat) >= 20, beat  # curl looks at 5 s, and takes less than a byte a second for a loss


def test_stream_waits_for_its_barrier(server):
    s = server.socket(request("GET", "/feed?until=1&barrier=4"))
    server.until(lambda st: st["fed"] == 1)
    s.setblocking(False)
    with pytest.raises(BlockingIOError):
        s.recv(1)
    s.settimeout(PATIENCE)
    server.call("POST", "/release?to=4")
    assert b"data: x" in read_until(s, b"0\r\n\r\n")


def test_slow_reader_pauses_the_producer(server):
    until, size = 4000, 8192
    s = server.socket(f"GET /feed?until={until}&size={size} HTTP/1.0\r\n\r\n".encode())
    state = server.until(lambda st: st["drained"] > 0)
    assert state["fed"] < until and state["queued"] <= 262144
    data = read_all(s)
    assert data.count(b"x" * size) == until
    assert server.until(lambda st: st["fed"] == until)["queued"] == -1


def test_client_that_leaves_a_stream_is_noticed(server):
    quiet = server.socket(request("GET", "/feed"))
    read_until(quiet, b"\r\n\r\n")
    quiet.close()
    server.until(lambda st: st["gone"] == 1)
    busy = server.socket(request("GET", "/feed?until=1000000&size=8192"))
    server.until(lambda st: st["drained"] > 0)
    busy.close()
    server.until(lambda st: st["gone"] == 2)


def test_too_many_streams():
    with serving("streams=2") as server:
        open_ones = [server.socket(request("GET", "/feed")) for _ in range(2)]
        for s in open_ones:
            read_until(s, b"\r\n\r\n")
        reply = server.call("GET", "/feed")
        problem(reply, 503, "unavailable")
        assert reply.getheader("Retry-After")


# ---- documents ----


def test_metrics(server):
    server.call("GET", "/hello")
    server.call("GET", "/nothing")
    text = lambda: server.call("GET", "/metrics").body.decode()  # noqa: E731
    wait_for(lambda: "toy_http_connections 1\n" in text(), "those of the other requests are gone")
    text = text()
    assert 'toy_http_requests_total{method="GET",route="/hello",status="200"} 1\n' in text
    assert 'toy_http_requests_total{method="other",route="other",status="404"} 1\n' in text
    assert 'toy_http_request_duration_seconds_bucket{method="GET",route="/hello",le="+Inf"} 1\n' in text


def test_openapi(server):
    doc = json.loads(server.call("GET", "/openapi.json").body)
    assert doc["openapi"] == "3.1.0"
    assert "/hidden" not in doc["paths"]
    assert set(doc["paths"]["/whoami"]) == {"get", "post"}
    stop = doc["paths"]["/things/{id}:stop"]["post"]
    assert stop["parameters"][0]["name"] == "id" and "202" in stop["responses"]
    assert stop["parameters"][0]["example"] == "one"  # of the row /things/{id}
    assert doc["paths"]["/whoami"]["get"]["security"] == [{"token": []}]
    assert doc["paths"]["/hello"]["get"]["security"] == []
    ids = [op["operationId"] for path in doc["paths"].values() for op in path.values()]
    assert len(ids) == len(set(ids))


# ---- TLS, addresses, the end ----


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"))


def test_tls(certificate):
    cert, key = certificate
    with serving(f"cert={cert}", f"key={key}") as server:
        context = ssl.create_default_context(cafile=cert)
        body = os.urandom(1 << 20)
        c = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE, context=context)
        with contextlib.closing(c):
            for _ in range(20):
                assert Server.ask(c, "GET", "/hello").status == 200
            assert Server.ask(c, "PUT", "/big", body).body == body
            assert Server.ask(c, "GET", "/feed?until=100&size=8192").body.count(b"x" * 8192) == 100
            assert json.loads(Server.ask(c, "GET", "/wait?wait=0s").body)["text"] == "nothing"
        assert b" 200 OK" not in read_all(server.socket(request("GET", "/hello")))
        curl = ["curl", "-sS", "--cacert", cert, f"https://127.0.0.1:{server.port}/hello"]
        assert json.loads(subprocess.run(curl, check=True, capture_output=True).stdout) == {"text": "hello"}


def start_fails(*args):
    done = subprocess.run([program(), *args], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    return done.stderr


def test_what_stops_the_start(certificate, tmp_path):
    cert, key = certificate
    assert "not an address to listen on" in start_fails("listen=nonsense")
    assert "not the IP address" in start_fails("listen=localhost:80")
    assert "only one is given" in start_fails(f"cert={cert}")
    assert "cannot read" in start_fails(f"cert={cert}", f"key={tmp_path}/none")
    os.chmod(cert, 0o644)
    assert "chmod 600" in start_fails(f"cert={key}", f"key={cert}")  # anybody may read what is called the key
    os.chmod(cert, 0o600)
    assert "certificate" in start_fails(f"cert={key}", f"key={cert}")
    with serving() as server:
        assert "in use" in start_fails(f"listen=127.0.0.1:{server.port}")


def test_closing_answers_what_waits():
    server = Server()
    poll = server.socket(request("GET", "/wait?wait=60s"))
    quiet = server.socket(request("GET", "/feed"))
    read_until(quiet, b"\r\n\r\n")
    held = server.socket(request("POST", "/held?barrier=9"))
    idle = server.socket()
    server.until(lambda st: st["waiters"] == 1)
    ends = {}
    readers = [
        threading.Thread(target=lambda k=k, s=s: ends.update({k: read_all(s)}))
        for k, s in {"poll": poll, "quiet": quiet, "held": held, "idle": idle}.items()
    ]
    for t in readers:
        t.start()
    server.stop()
    for t in readers:
        t.join(PATIENCE)
    assert b"nothing" in ends["poll"] and b"Connection: close" in ends["poll"]
    assert ends["quiet"].endswith(b"0\r\n\r\n")
    assert (ends["held"], ends["idle"]) == (b"", b"")  # never durable: no answer is the truth
