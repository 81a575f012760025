# SPDX-License-Identifier: Apache-2.0
"""Nobody keeps the others out: ceilings per address and user, slow clients, and what outsiders are told.

Addresses of 127.0.0.0/8 stand for machines: only 127.0.0.1 has no ceiling of its own.
"""

import contextlib
import http.client
import json
import pathlib
import socket
import subprocess

import pytest
from fakeray import FakeRay
from programs import PROGRAMS
from toyhttp import PATIENCE, problem, read_all, read_until, request, serving

from argusd import Argusd, needs_argusd, until

OTHER = "127.9.9.1"


def connect(port, source=OTHER):
    return socket.create_connection(("127.0.0.1", port), PATIENCE, source_address=(source, 0))


def is_closed(s):
    """By the other side, without an answer."""
    with contextlib.suppress(ConnectionResetError):
        return s.recv(1) == b""
    return True


# ---- the layer ----


def test_an_address_has_a_ceiling_and_the_next_one_is_served():
    with serving("address_connections=4") as server, contextlib.ExitStack() as stack:
        held = [stack.enter_context(connect(server.port)) for _ in range(4)]
        held[-1].sendall(request("GET", "/hello"))  # the four are taken
        read_until(held[-1], b"hello")
        assert is_closed(stack.enter_context(connect(server.port)))
        other = stack.enter_context(connect(server.port, "127.9.9.2"))
        other.sendall(request("GET", "/hello", "Connection: close"))
        assert b"200 OK" in read_all(other)
        held.pop().close()

        def is_served_again():
            with connect(server.port) as s:
                s.sendall(request("GET", "/hello", "Connection: close"))
                with contextlib.suppress(ConnectionError):
                    return b"200 OK" in read_all(s)

        until(is_served_again, "the place of one that went is free")


def test_a_full_server_lets_go_of_who_waited_longest():
    with serving("connections=32") as server, contextlib.ExitStack() as stack:
        for n in range(100):  # far more than there is room for, and none of them says a word
            stack.enter_context(connect(server.port, f"127.9.8.{n + 1}"))
        assert json.loads(server.call("GET", "/hello").body) == {"text": "hello"}


def test_a_slow_head_and_a_slow_body_are_cut_and_others_served():
    with serving("idle=3000", "body=3000") as server, contextlib.ExitStack() as stack:
        head = stack.enter_context(server.socket(b"GET /hello HTTP/1.1\r\nHost: x\r\nX-A: "))
        body = stack.enter_context(server.socket(request("POST", "/echo", "Content-Length: 1000", body=b"ab")))
        assert server.call("GET", "/hello").status == 200
        for s in (head, body):
            assert b"200 OK" not in read_all(s)


def test_a_reader_that_takes_nothing_is_cut():
    """The reply is far more than the sockets hold between them."""
    body = b"x" * (8 << 20)
    with serving("reply=3000") as server, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(PATIENCE)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(request("PUT", "/big", f"Content-Length: {len(body)}", body=body))
        read_until(slow, b"200 OK")
        until(lambda: b"connections_slow_total 1" in server.call("GET", "/metrics").body, "it is cut")
        assert len(read_all(slow)) < len(body)
        assert server.call("PUT", "/big", body).body == body  # one that reads has it whole


def test_polls_and_streams_of_one_user():
    with serving("user_polls=2", "user_streams=2") as server, contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(server.socket(request("GET", "/wait?wait=60s")))
            stack.enter_context(server.socket(request("GET", "/feed")))
        server.until(lambda s: s["waiters"] == 2)
        problem(server.call("GET", "/wait?wait=60s"), 429, "too_many_requests")
        until(lambda: b"streams 2" in server.call("GET", "/metrics").body, "both streams are open")
        problem(server.call("GET", "/feed"), 429, "too_many_requests")


def test_bodies_in_memory_have_a_sum():
    with serving("bodies_bytes=65536") as server:  # 8 KiB of one user
        assert server.call("PUT", "/big", b"x" * 4096).status == 200
        problem(server.call("PUT", "/big", b"x" * 16384), 429, "too_many_requests")
        assert server.call("PUT", "/big", b"x" * 4096).status == 200  # given back


# ---- argusd ----


@pytest.fixture
def argusd(tmp_path):
    with FakeRay() as ray, Argusd(tmp_path, ray.url, more="limits: {connections_per_address: 8}") as a:
        yield a


def get(argusd, source, path, token=None):
    c = http.client.HTTPConnection("127.0.0.1", argusd.port, timeout=PATIENCE, source_address=(source, 0))
    with contextlib.closing(c):
        c.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        reply = c.getresponse()
        return reply.status, reply.read()


@needs_argusd
def test_idle_connections_of_one_address_keep_nobody_out(argusd):
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connect(argusd.port)) for _ in range(200)]
        assert all(is_closed(s) for s in idle[8:])
        assert get(argusd, "127.9.9.2", "/healthz")[0] == 200
        argusd.submit("echo honest")  # from 127.0.0.1


@needs_argusd
def test_strangers_of_many_addresses_keep_nobody_out(tmp_path):
    """More than argusd has room for, and none of them in haste: who is served sees nothing of it."""
    more = "limits: {connections: 128}"
    slow_head = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nX-A: "
    with FakeRay() as ray, Argusd(tmp_path, ray.url, more=more) as argusd, contextlib.ExitStack() as stack:
        for n in range(300):
            s = stack.enter_context(connect(argusd.port, f"127.9.{n // 50}.7"))
            with contextlib.suppress(ConnectionError):  # it may be gone already
                s.sendall((b"", b"GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n", slow_head)[n % 3])
            if n % 50 == 0:
                assert get(argusd, "127.9.100.1", "/healthz")[0] == 200
                argusd.submit("echo honest")
        assert get(argusd, "127.9.100.1", "/healthz")[0] == 200
        argusd.wait_over(argusd.submit("echo honest"))
        assert "open files" not in argusd.said()


@needs_argusd
def test_the_sixty_fifth_stream_of_a_user(argusd):
    with contextlib.ExitStack() as stack:
        for _ in range(64):
            stack.enter_context(contextlib.closing(argusd.stream("/v1/events?follow=true", token="user")))
        reply = argusd.call("GET", "/v1/events?follow=true", token="user")
        assert reply.status == 429 and "64 streams are open" in reply.json()["detail"], reply
        argusd.stream("/v1/events?follow=true", token="viewer").close()


@needs_argusd
def test_what_outsiders_are_told(argusd):
    assert argusd.call("GET", "/metrics", token=None).status == 401
    assert b"argus_jobs" in argusd.call("GET", "/metrics", token="viewer").body  # as Prometheus asks, with a bearer
    told = argusd.call("GET", "/readyz", token=None).json()
    assert told == {"ready": True, "reason": None}
    assert argusd.call("GET", "/readyz", token="no such token").json() == told
    assert set(argusd.get("/readyz")) == {"ready", "store", "ray", "shared_root", "reason"}
    told = argusd.call("GET", "/v1/version", token=None).json()
    assert {k: v for k, v in told.items() if v is not None} == {"version": told["version"]}
    known = argusd.get("/v1/version", token="viewer")
    assert (known["shared_root"], known["cluster"]) == (str(argusd.root), "default") and "session" in known["ray"]


@needs_argusd
def test_a_poll_whose_token_is_revoked_meanwhile_says_nothing(argusd):
    made = argusd.call("POST", "/v1/tokens", {"name": "short", "user": "alice"}).json()

    def all_told():
        """What is news of a start: it would answer the poll."""
        kinds = [e["kind"] for e in argusd.get("/v1/events")["events"]]
        return "root_ok" in kinds and kinds.count("node_online") == len(argusd.get("/v1/nodes")["nodes"]) > 0

    until(all_told, "the cluster is there")
    since = argusd.get("/v1/events?newest_first=true&limit=1")["events"][0]["seq"]
    path = f"/v1/events?since={since}&wait=60s"
    with connect(argusd.port, "127.9.9.3") as s:
        s.sendall(request("GET", path, f"Authorization: Bearer {made['token']}", "Connection: close"))
        argusd.get("/v1/whoami")  # comes after it
        assert argusd.call("DELETE", f"/v1/tokens/{made['id']}").status in (200, 204)
        argusd.submit("echo secret")
        answer = read_all(s)
    assert b" 401 " in answer and b"seq" not in answer, answer


@needs_argusd
def test_open_files_are_raised_to_the_hard_limit(argusd):
    line = next(
        x for x in pathlib.Path(f"/proc/{argusd.process.pid}/limits").read_text().splitlines() if "open files" in x
    )
    soft, hard = line.split()[3:5]
    assert soft == hard


@needs_argusd
def test_run_as_is_refused_with_the_reason(tmp_path):
    config = tmp_path / "argus.yaml"
    config.write_text(f"shared_root: {tmp_path}\nstate_dir: {tmp_path}/state\nrun_as: {{alice: 1001}}\n")
    done = subprocess.run([PROGRAMS["argusd"], "--config", config, "--check"], capture_output=True, text=True)
    assert done.returncode == 2 and "under the uid of argusd" in done.stderr, done.stderr


@needs_argusd
def test_a_state_dir_that_others_may_read_is_told(tmp_path):
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        assert "chmod 700" not in argusd.said()
        argusd.stop()
        argusd.state_dir.chmod(0o755)
        argusd.start()
        until(lambda: "chmod 700" in argusd.said(), "the mode is told")


@needs_argusd
def test_the_description_is_one_text_for_all(argusd):
    """Who asks for it and does not read holds no copy."""
    readers, size = 300, len(argusd.call("GET", "/v1/openapi.json").body)  # 100 MB of copies, above any noise
    assert size > 150_000  # more than the sockets hold between them

    def memory():
        status = pathlib.Path(f"/proc/{argusd.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) << 10

    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(readers)]
        for s in held:  # from 127.0.0.1, which has no ceiling
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.settimeout(PATIENCE)
            s.connect(("127.0.0.1", argusd.port))
            s.sendall(request("GET", "/healthz"))
            read_until(s, b"200 OK")
        before = memory()
        for s in held:
            s.sendall(request("GET", "/v1/openapi.json"))
        for s in held:
            read_until(s, b"openapi")
        assert memory() - before < readers * size / 4
