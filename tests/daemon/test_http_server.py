# SPDX-License-Identifier: Apache-2.0
"""The HTTP layer over real sockets: routes, tokens, bodies, heads that lie, connections."""

import contextlib
import json
import os
import socket

import pytest
from toyhttp import problem, read_all, request, serving


@pytest.fixture
def server():
    with serving() as s:
        yield s


# ---- routes ----


def test_hello_and_its_headers(server):
    reply = server.call("GET", "/hello")
    assert (reply.status, json.loads(reply.body)) == (200, {"text": "hello"})
    assert reply.getheader("X-Content-Type-Options") == "nosniff"
    assert reply.getheader("Cache-Control") is None
    assert server.call("GET", "/state").getheader("Cache-Control") == "no-store"


def test_head_has_the_length_and_no_body(server):
    with contextlib.closing(server.client()) as c:
        reply = server.ask(c, "HEAD", "/hello")
        assert (reply.status, reply.body, reply.getheader("Content-Length")) == (200, b"", "16")
        assert server.ask(c, "GET", "/hello").status == 200


def test_unknown_path_and_wrong_method(server):
    problem(server.call("GET", "/nothing"), 404, "not_found")
    problem(server.call("GET", "/hello/"), 404, "not_found")
    reply = server.call("DELETE", "/hello")
    problem(reply, 405, "method_not_allowed")
    assert reply.getheader("Allow") == "GET, HEAD, OPTIONS"
    problem(server.call("GET", "/things/a:stop"), 405, "method_not_allowed")
    problem(server.call("BREW", "/hello"), 405, "method_not_allowed")


def test_options(server):
    reply = server.call("OPTIONS", "/things/a:stop")
    assert (reply.status, reply.getheader("Allow")) == (204, "POST, OPTIONS")
    assert reply.getheader("Access-Control-Allow-Origin") is None
    assert server.call("OPTIONS", "*").status == 204
    problem(server.call("OPTIONS", "/nothing"), 404, "not_found")


def test_path_parameters_are_decoded_strictly(server):
    assert json.loads(server.call("GET", "/things/a%2Fb%20%E4%B8%AD").body)["text"] == "a/b 中"
    reply = server.call("POST", "/things/a%3Ab:stop")
    assert (reply.status, json.loads(reply.body)["text"], reply.getheader("X-Verb")) == (202, "a:b", "stop")
    for bad in ("%", "%4", "%zz", "%00", "%0a", "%c0%af", "%ed%a0%80", "%ff"):
        problem(server.call("GET", f"/things/{bad}"), 400, "bad_request")
    for bad in ("..", ".", "%2e%2e", "..%2f..", "a:b"):
        assert server.call("GET", f"/things/{bad}").status == (200 if bad == "..%2f.." else 404)


def test_query(server):
    ask = lambda q: server.call("POST", "/echo" + q)  # noqa: E731
    assert ask("?text=a+b%26").getheader("X-Query") == "a b&"
    assert ask("?n=-5&yes&text=").status == 200
    assert problem(ask("?tex=1"), 400, "bad_request")["hint"] == "did you mean 'text'"
    assert problem(ask("?n=five"), 400, "bad_request")["field"] == "n"
    assert problem(ask("?yes=maybe"), 400, "bad_request")["field"] == "yes"
    problem(ask("?text=%zz"), 400, "bad_request")
    problem(ask("?" + "text=1&" * 40), 400, "bad_request")
    assert problem(server.call("GET", "/wait?wait=soon"), 400, "bad_request")["field"] == "wait"


def test_problems_carry_every_field(server):
    text = problem(server.call("GET", "/problems"), 422, "bad_spec")
    assert (text["field"], text["code"], text["hint"]) == ("a.b", "unknown_key", "did you mean 'c'?")
    assert text["args"] == {"key": "b", "near": "c"}
    assert text["problems"][0]["line"] == text["line"] == 3


def test_etag(server):
    assert server.call("GET", "/hello").getheader("ETag") == '"v1"'
    reply = server.call("GET", "/hello", If_None_Match='"v0", W/"v1"')
    assert (reply.status, reply.body, reply.getheader("ETag")) == (304, b"", '"v1"')
    assert server.call("GET", "/hello", If_None_Match='"v2"').status == 200


# ---- tokens ----


def test_tokens_and_roles(server):
    for bad in ({}, {"Authorization": "Bearer nope"}, {"Authorization": "Basic dmlld2Vy"}, {"Authorization": ""}):
        reply = server.call("GET", "/whoami", **bad)
        problem(reply, 401, "unauthorised")
        assert reply.getheader("WWW-Authenticate") == "Bearer"
    good = {"Authorization": "bearer viewer-token"}
    assert json.loads(server.call("GET", "/whoami", **good).body)["text"] == "ann"
    problem(server.call("POST", "/whoami", b"{}", **good), 403, "forbidden")


def test_two_tokens_are_ambiguous(server):
    token = "Authorization: Bearer viewer-token"
    assert b" 400 " in read_all(server.socket(request("GET", "/whoami", token, token)))


# ---- bodies ----


def test_echo_and_media_types(server):
    reply = server.call("POST", "/echo", b'{"a":1}', Content_Type="Application/JSON; charset=utf-8")
    assert (reply.body, reply.getheader("X-Type")) == (b'{"a":1}', "application/json")
    assert server.call("POST", "/echo", bytes(range(256))).body == bytes(range(256))
    problem(server.call("POST", "/echo", b"a=1", Content_Type="text/html"), 415, "unsupported_media_type")


def test_body_at_and_over_the_ceiling(server):
    with contextlib.closing(server.client()) as c:
        assert server.ask(c, "POST", "/echo", b"x" * 4096).body == b"x" * 4096
        problem(server.ask(c, "POST", "/echo", b"x" * 4097), 413, "too_large")
        problem(server.ask(c, "POST", "/release?to=0", b"x"), 413, "too_large")
        assert server.ask(c, "GET", "/hello").status == 200  # still in step


def test_huge_body_is_refused_before_it_is_sent(server):
    s = server.socket(request("POST", "/echo", "Content-Length: 99999999999", "Expect: 100-continue"))
    data = read_all(s)
    assert data.startswith(b"HTTP/1.1 413 ") and b"100 Continue" not in data
    s = server.socket(request("POST", "/echo", "Content-Length: 99999999999999999999999"))
    assert read_all(s).startswith(b"HTTP/1.1 413 ")


def test_large_body_arrives_whole(server):
    body = os.urandom(1 << 20) * 8
    assert server.call("PUT", "/big", body).body == body


def test_chunked_upload(server):
    chunks = iter([b"a" * 10, b"b" * 2000, b"c"])
    with contextlib.closing(server.client()) as c:
        c.request("POST", "/echo", chunks, encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
        assert c.getresponse().read() == b"a" * 10 + b"b" * 2000 + b"c"
        many = (b"x" * 1000 for _ in range(50))
        c.request("POST", "/echo", many, encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
        reply = c.getresponse()
        reply.body = reply.read()
        problem(reply, 413, "too_large")
        assert server.ask(c, "GET", "/hello").status == 200


def test_endless_chunked_upload_is_cut_off(server):
    s = server.socket(request("POST", "/echo", "Transfer-Encoding: chunked"))
    with pytest.raises(OSError):
        for _ in range(1 << 16):
            s.sendall(b"400\r\n" + b"x" * 0x400 + b"\r\n")
    assert server.call("GET", "/hello").status == 200


def test_bad_chunks_are_refused(server):
    for chunk in (b"xyz\r\n", b"5\r\nabcdefgh\r\n", b"-1\r\n", b"ffffffffffffffffff\r\n"):
        data = read_all(server.socket(request("POST", "/echo", "Transfer-Encoding: chunked", body=chunk)))
        assert data.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ")), (chunk, data)


# ---- heads that lie ----


@pytest.mark.parametrize(
    "headers",
    [
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 5"],
        ["Content-Length: 5", "Content-Length: 5"],
        ["Content-Length: 5", "Content-Length: 6"],
        ["Content-Length: 5, 5"],
        ["Content-Length: +5"],
        ["Content-Length: -5"],
        ["Content-Length: 0x5"],
        ["Content-Length: 5 5"],
        ["Content-Length:"],
        ["Content-Length : 5"],
        ["Transfer-Encoding: gzip"],
        ["Transfer-Encoding: gzip, chunked"],
        ["Transfer-Encoding: chunked, identity"],
        ["Transfer-Encoding: xchunked"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding : chunked"],
        ["X Bad: 1"],
        ["X-Bad\x01: 1"],
        ["X-Bad: \x01"],
        ["Host: y"],
    ],
)
def test_smuggling_is_refused_and_the_connection_closed(server, headers):
    hidden = request("GET", "/hello")
    s = server.socket(request("POST", "/echo", *headers, body=b"abcde" + hidden))
    data = read_all(s)
    assert data.startswith(b"HTTP/1.1 400 "), data
    assert b" 200 " not in data


def test_long_target_and_long_headers(server):
    problem(server.call("GET", "/hello?x=" + "y" * 4096), 414, "too_large")
    reply = server.call("GET", "/hello", X_Long="y" * 8200)
    problem(reply, 431, "headers_too_large")
    data = read_all(server.socket(b"GET /" + b"a" * 100000))
    assert data == b"" or data.startswith(b"HTTP/1.1 414 ")
    data = read_all(server.socket(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100000))
    assert data == b"" or data.startswith(b"HTTP/1.1 431 ")
    assert server.call("GET", "/hello").status == 200


def test_garbage_bytes(server):
    for garbage in (
        b"\r\n\r\n\r\n",
        b"\x00" * 100,
        bytes(range(256)) * 4 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"GET /hello\r\n\r\n",
        b"GET /hello HTTP/9.9\r\n\r\n",
        b"GET /hello HTTP/1.1\r\n\r\n",
        b"GET /he llo HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /hello#x HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /hello\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://x/hello HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ):
        s = server.socket(garbage)
        s.shutdown(socket.SHUT_WR)
        assert b" 200 OK" not in read_all(s), garbage
    assert server.call("GET", "/hello").status == 200


def test_old_clients_are_served_and_closed(server):
    assert b" 200 OK" in read_all(server.socket(b"GET /hello HTTP/1.0\r\n\r\n"))


# ---- connections ----


def test_keep_alive_and_pipelining(server):
    with contextlib.closing(server.client()) as c:
        for _ in range(100):
            assert server.ask(c, "GET", "/hello").status == 200
    s = server.socket(
        request("GET", "/things/1") + request("GET", "/things/2") + request("GET", "/things/3", "Connection: close")
    )
    data = read_all(s)
    assert [data.find(b'"%d"' % i) for i in (1, 2, 3)] == sorted(data.find(b'"%d"' % i) for i in (1, 2, 3))
    assert data.count(b"HTTP/1.1 200 OK") == 3


def test_pipelined_request_waits_for_the_held_one(server):
    s = server.socket(request("POST", "/held?barrier=3") + request("GET", "/things/next", "Connection: close"))
    server.call("POST", "/release?to=3")
    data = read_all(s)
    assert 0 < data.find(b"held") < data.find(b"next")


def test_slow_heads_are_cut_off():
    with serving("idle=300") as server:
        slow = [server.socket(b"GET /hello") for _ in range(20)]
        drip = server.socket(b"GET /hello HTTP/1.1\r\nHost: x\r\n")
        with pytest.raises(OSError):
            while True:  # a byte at a time, each well within the idle time
                drip.sendall(b"X: 1\r\n")
                drip.settimeout(0.05)
                with contextlib.suppress(TimeoutError):
                    assert drip.recv(1) == b""
                    raise OSError
        assert [read_all(s) for s in slow] == [b""] * 20
        assert server.call("GET", "/hello").status == 200


def test_slow_bodies_are_cut_off():
    with serving("body=300", "idle=60000") as server:
        s = server.socket(request("POST", "/echo", "Content-Length: 10", body=b"abc"))
        assert read_all(s) == b""


def test_client_that_leaves_early(server):
    for data in (b"", b"GET", request("POST", "/echo", "Content-Length: 100", body=b"x"), request("GET", "/hello")):
        for _ in range(20):
            server.socket(data).close()
    assert server.call("GET", "/hello").status == 200


def test_more_connections_than_allowed_wait():
    with serving("connections=4") as server:
        first = [server.socket() for _ in range(4)]
        late = server.socket(request("GET", "/hello", "Connection: close"))
        for s in first:
            s.close()
        assert b" 200 OK" in read_all(late)
