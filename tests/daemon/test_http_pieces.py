# SPDX-License-Identifier: Apache-2.0
"""Bodies that are handed over in pieces: whole, chunked, cut, slow, too much, too little, refused early and late."""

import contextlib
import hashlib
import json
import os
import socket
import threading

import pytest
from toyhttp import problem, read_all, serving

PIECE = 256 << 10
TYPE = {"Content-Type": "application/octet-stream"}


@pytest.fixture
def server():
    with serving() as s:
        yield s


def said(reply):
    got, digest = json.loads(reply.body)["text"].split()
    return int(got), digest


def counted(data):
    return len(data), hashlib.sha256(data).hexdigest()


def head(path, *lines):
    return ("\r\n".join([f"PUT {path} HTTP/1.1", "Host: x", *lines]) + "\r\n\r\n").encode()


@pytest.mark.parametrize("n", [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 7])
def test_whole_bodies(server, n):
    data = os.urandom(n)
    with contextlib.closing(server.client()) as c:
        for _ in range(2):  # the connection goes on
            reply = server.ask(c, "PUT", "/pieces", data, **TYPE)
            assert (reply.status, said(reply)) == (200, counted(data))
    assert server.state()["length"] == n


def test_a_slow_disk_holds_the_peer(server):
    """Two pieces are in memory, the rest waits in the sockets: the sender cannot run ahead."""
    data = os.urandom(40 * PIECE)
    reply = server.call("PUT", "/pieces?pause=2", data, **TYPE)
    assert (reply.status, said(reply)) == (200, counted(data))
    with contextlib.closing(server.socket(head("/pieces?pause=60000", f"Content-Length: {100 << 20}"))) as s:
        s.settimeout(0.3)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 100 << 20:
                sent += s.send(bytes(1 << 16))
        assert sent < 50 << 20
        assert server.until(lambda t: t["pieced"] >= PIECE)["pieced"] < 2 * PIECE
    server.call("POST", "/hurry")
    server.until(lambda t: t["cut"] == 1 and t["counting"] == 0)


def test_chunked(server):
    data = os.urandom(2 * PIECE + 99)
    with contextlib.closing(server.client()) as c:
        c.request("PUT", "/pieces", iter([data[:10], data[10:PIECE], data[PIECE:]]), TYPE, encode_chunked=True)
        reply = c.getresponse()
        reply.body = reply.read()
    assert (reply.status, said(reply)) == (200, counted(data))
    assert server.state()["length"] == -1


def test_a_cut_body_leaves_what_came(server):
    for n in (1, PIECE + 5):
        before = server.state()["cut"]
        with contextlib.closing(server.socket(head("/pieces", f"Content-Length: {10 * PIECE}") + bytes(n))):
            pass
        state = server.until(lambda t, before=before: t["cut"] == before + 1)
        assert (state["pieced"], state["counting"]) == (n, 0)


def test_cut_while_a_piece_is_with_its_owner(server):
    n = 2 * PIECE + 5  # one is with the owner, one is full, the third cannot be read
    with contextlib.closing(server.socket(head("/pieces?pause=60000", f"Content-Length: {10 * PIECE}") + bytes(n))):
        server.until(lambda t: t["pieced"] >= PIECE)
    server.call("POST", "/hurry")
    state = server.until(lambda t: t["cut"] == 1)
    assert (state["pieced"], state["counting"]) == (n, 0)


def test_gone_before_the_answer(server):
    s = server.socket(head("/pieces?pause=200", "Content-Length: 3") + b"abc")
    server.until(lambda t: t["pieced"] == 3)
    s.close()
    state = server.until(lambda t: t["counting"] == 0)
    assert (state["gone"], state["cut"]) == (1, 0)


def test_expect_100_continue(server):
    with contextlib.closing(server.socket(head("/pieces", "Content-Length: 3", "Expect: 100-continue"))) as s:
        assert s.recv(100).startswith(b"HTTP/1.1 100 ")
        s.sendall(b"abc")
        assert b"200 OK" in s.recv(100)
    with contextlib.closing(server.socket(head("/pieces?refuse=1", "Content-Length: 3", "Expect: 100-continue"))) as s:
        text = read_all(s)
        assert text.startswith(b"HTTP/1.1 409 ") and b"100 Continue" not in text and b"Connection: close" in text


def test_refused_before_the_body(server):
    with contextlib.closing(server.client()) as c:
        for _ in range(2):  # a small body is read away and the connection goes on
            problem(server.ask(c, "PUT", "/pieces?refuse=1", b"x" * 1000, **TYPE), 409, "conflict")
        problem(server.ask(c, "PUT", "/pieces", b"x", Content_Type="text/plain"), 415, "unsupported_media_type")
        problem(server.ask(c, "PUT", "/pieces?what=1", b"x", **TYPE), 400, "bad_request")
        assert said(server.ask(c, "PUT", "/pieces", b"x", **TYPE)) == counted(b"x")
    with contextlib.closing(server.socket(head("/pieces?refuse=1", f"Content-Length: {100 << 20}"))) as s:
        assert read_all(s).startswith(b"HTTP/1.1 409 ")  # not one byte of it was waited for
    problem(server.call("PUT", "/pieces", bytes((256 << 20) // 1024), Content_Length=str((256 << 20) + 1)),
            413, "too_large")  # fmt: skip


def test_refused_halfway(server):
    """The rest is read away, so that the peer hears why; and a peer that never stops is cut off."""
    data = bytes(30 * PIECE)
    with contextlib.closing(server.client()) as c:
        for pause in (0, 5):
            reply = server.ask(c, "PUT", f"/pieces?refuse_at={2 * PIECE}&pause={pause}", data, **TYPE)
            problem(reply, 507, "no_space")
        assert said(server.ask(c, "PUT", "/pieces", b"x", **TYPE)) == counted(b"x")
    s = server.socket(head("/pieces?refuse_at=1", f"Content-Length: {200 << 20}"))
    with contextlib.closing(s), pytest.raises(OSError):  # noqa: PT012
        for _ in range(200):
            s.sendall(bytes(1 << 20))
    assert server.until(lambda t: t["counting"] == 0)["cut"] == 0


@pytest.mark.parametrize("pause", [0, 5])
@pytest.mark.parametrize("size", [1000, 70001])
def test_chunks_refused_halfway(server, size, pause):
    """Many small ones are there at once; the connection sleeps once, and goes on."""
    data = bytes(30 * PIECE)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    body = b"".join(f"{len(p):x}\r\n".encode() + p + b"\r\n" for p in [*pieces, b""])
    path = f"/pieces?refuse_at={2 * PIECE}&pause={pause}"
    for _ in range(3):
        with contextlib.closing(server.socket(head(path, "Transfer-Encoding: chunked"))) as s:
            s.sendall(body)
            assert b" 507 " in s.recv(65536)
    assert server.until(lambda t: t["counting"] == 0)["cut"] == 0


def test_more_than_the_head_said(server):
    """What follows the body is the next request: a bad one here."""
    with contextlib.closing(server.socket(head("/pieces", "Content-Length: 3") + b"abcdefgh\r\n\r\n")) as s:
        text = read_all(s)
        assert text.startswith(b"HTTP/1.1 200 OK") and json.dumps(f"3 {counted(b'abc')[1]}").encode() in text


def test_too_little(server):
    """Half closed: the end of a short body is a cut, soon, and not a wait for more."""
    s = server.socket(head("/pieces", "Content-Length: 30") + b"abc")
    s.shutdown(socket.SHUT_WR)
    server.until(lambda t: t["cut"] == 1 and t["pieced"] == 3)
    s.close()


def test_a_peer_that_is_too_slow():
    with (
        serving("body=300") as server,
        contextlib.closing(server.socket(head("/pieces", "Content-Length: 1000000") + b"a")) as s,
    ):
        assert read_all(s) == b""
        assert server.until(lambda t: t["cut"] == 1)["pieced"] == 1


def test_only_so_many_bodies_at_once():
    with serving("bodies=2") as server:
        open_ones = [server.socket(head("/pieces", "Content-Length: 9") + b"abc") for _ in range(2)]
        server.until(lambda t: t["counting"] == 2)
        problem(server.call("PUT", "/pieces", b"x", **TYPE), 503, "unavailable")
        for s in open_ones:
            s.close()
        server.until(lambda t: t["counting"] == 0)
        assert said(server.call("PUT", "/pieces", b"x", **TYPE)) == counted(b"x")


def test_many_at_once(server):
    """Each gets its own bytes."""
    wrong = []

    def one(i):
        data = os.urandom(PIECE * 2 + i)
        reply = server.call("PUT", f"/pieces?pause={i % 3}", data, **TYPE)
        if (reply.status, said(reply)) != (200, counted(data)):
            wrong.append(i)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_the_server_ends_in_the_middle():
    with serving() as server:
        s = server.socket(head("/pieces", f"Content-Length: {10 * PIECE}") + bytes(PIECE + 3))
        held = server.socket(head("/pieces?pause=60000", f"Content-Length: {10 * PIECE}") + bytes(3 * PIECE))
        server.until(lambda t: t["counting"] == 2)
        server.stop()  # by itself, without a leak
        s.close()
        held.close()


def test_a_get_has_no_pieces(server):
    problem(server.call("GET", "/pieces"), 405, "method_not_allowed")
