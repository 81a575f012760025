# SPDX-License-Identifier: Apache-2.0
"""The proxy over real sockets: what passes both ways, who waits for whom, and servers and clients that mean harm."""

import base64
import contextlib
import hashlib
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import threading
import time

import pytest
from fakeray import wait_for
from toyhttp import PATIENCE, Server, make_certificate, problem, program, read_all, read_until, request

TOKEN = "Authorization: Bearer good"
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Behind:
    """A server that does with each connection what the test says: its thread gets the socket."""

    def __init__(self, do):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port, self.do, self.heads, self.errors = self.listener.getsockname()[1], do, [], []
        self.open = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                s, _ = self.listener.accept()
                s.settimeout(PATIENCE)
                self.open.append(s)
                threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        try:
            head = b""
            while b"\r\n\r\n" not in head:
                piece = s.recv(65536)
                if not piece:
                    return
                head += piece
            head, rest = head.split(b"\r\n\r\n", 1)
            self.heads.append(head.decode())
            self.do(s, head.decode(), rest)
        except OSError as e:
            self.errors.append(e)
        finally:
            s.close()

    def lines(self, i=-1):
        """The lines of a head, names in lower case."""
        return {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in self.heads[i].split("\r\n")[1:])}

    def close(self):
        self.listener.close()
        for s in self.open:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)


class Toy(Server):
    def __init__(self, *args):
        import toyhttp

        kept, toyhttp.program = toyhttp.program, lambda: program().with_name("http_test_proxy")
        try:
            super().__init__(*args)
        finally:
            toyhttp.program = kept

    def call(self, method, path, body=None, **headers):
        return super().call(method, path, body, **{"Authorization": "Bearer good", **headers})

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def metric(self, name):
        text = super().call("GET", "/metrics").body.decode()
        return float(re.search(rf"^toy_{re.escape(name)} (\S+)$", text, re.M).group(1))

    def until_idle(self):
        until(lambda: self.metric("proxy_open") == 0)


def until(test):
    return wait_for(test, "the proxy", PATIENCE)


@contextlib.contextmanager
def through(do, *args):
    behind = Behind(do)
    toy = None
    try:
        toy = Toy(f"up={behind.port}", *args)
        yield toy, behind
        toy.stop()
    finally:
        behind.close()
        if toy:
            toy.process.kill()
            toy.process.wait()


def answer(s, *lines, body=b"", status="200 OK"):
    s.sendall("\r\n".join([f"HTTP/1.1 {status}", *lines]).encode() + b"\r\n\r\n" + body)


def whole_body(s, head, rest):
    """The body of a request, whichever way it is framed."""
    length = re.search(r"(?i)^content-length: (\d+)", head, re.M)
    if length:
        while len(rest) < int(length.group(1)):
            piece = s.recv(1 << 20)
            assert piece
            rest += piece
        return rest
    body = b""
    if "chunked" not in head.lower():
        return body
    while True:
        while b"\r\n" not in rest:
            rest += s.recv(1 << 20)
        size, rest = rest.split(b"\r\n", 1)
        n = int(size, 16)
        while len(rest) < n + 2:
            rest += s.recv(1 << 20)
        body, rest = body + rest[:n], rest[n + 2 :]
        if not n:
            return body


def echo(s, head, rest):
    body = whole_body(s, head, rest)
    answer(s, f"Content-Length: {len(body)}", "Content-Type: text/plain", body=body)


def hello(s, head, rest):
    answer(s, "Content-Length: 5", body=b"hello")


# ---- what passes ----


def test_the_target_reaches_the_server_as_it_was_sent():
    with through(hello) as (toy, behind):
        for path in ("/", "/a%2Fb//c/?x=%20y&x=2", "/%C3%A9", "/a:b/{c}?{}"):
            assert toy.call("GET", "/p/x" + path).body == b"hello"
            assert behind.heads[-1].split(" ")[1] == "/base" + path
        assert toy.call("HEAD", "/p/x/h").getheader("Content-Length") == "5"
        assert behind.heads[-1].startswith("HEAD /base/h HTTP/1.1\r\n")
        for path in ("/../x", "/a/%2e%2E/x", "/a\\..\\b", "/.", "/a/..%2fb"):
            s = toy.socket(request("GET", "/p/x" + path, TOKEN, "Connection: close"))
            assert read_all(s).split(b" ")[1] in (b"400", b"404"), path
        assert all(".." not in h.split(" ")[1] for h in behind.heads)


def test_which_lines_go_up_and_come_down():
    def do(s, head, rest):
        answer(
            s,
            "Content-Length: 2",
            "Set-Cookie: session=evil",
            "Access-Control-Allow-Origin: *",
            "Server: x",
            "X-Kept: 1",
            "Vary: a",
            "Vary: b",
            "Connection: X-Hop",
            "X-Hop: 1",
            'Clear-Site-Data: "*"',
            f"Location: http://127.0.0.1:{behind.port}/base/next?a",
            body=b"ok",
        )

    with through(do) as (toy, behind):
        told = {
            "Cookie": "session=good",
            "Origin": "http://x",
            "X-Forwarded-For": "6.6.6.6",
            "X-Argus-User": "root",
            "X-Request-ID": "mine-1",
            "Connection": "close, X-Secret",
            "X-Secret": "1",
            "X-Mine": "2",
            "TE": "trailers",
            "Proxy-Authorization": "x",
            "x-request-timeout-seconds": "1",
            "Accept-Encoding": "br",
        }
        reply = toy.call("GET", "/p/x/a", **told)
        assert reply.body == b"ok"
        up = behind.lines()
        assert up["authorization"] == "token inner" and up["x-mine"] == "2" and up["accept-encoding"] == "br"
        assert up["host"] == f"127.0.0.1:{behind.port}" and up["x-forwarded-for"] == "127.0.0.1"
        assert (up["x-forwarded-proto"], up["x-forwarded-prefix"]) == ("http", "/p/x")
        assert up["x-request-id"] == "mine-1" == reply.getheader("X-Request-ID")
        ours = "cookie origin x-argus-user x-secret te proxy-authorization x-request-timeout-seconds"
        for name in ours.split():
            assert name not in up, name
        assert "good" not in behind.heads[-1]
        assert reply.getheader("X-Kept") == "1" and reply.msg.get_all("Vary") == ["a", "b"]
        assert reply.getheader("Location") == "/p/x/next?a"
        assert reply.getheader("Content-Security-Policy").startswith("sandbox")
        for name in ("Set-Cookie", "Access-Control-Allow-Origin", "Server", "X-Hop", "Clear-Site-Data"):
            assert reply.getheader(name) is None, name


def test_without_a_token_nothing_is_passed_on():
    with through(hello) as (toy, behind):
        problem(toy.call("GET", "/p/x/a", Authorization="Bearer bad"), 401, "unauthorised")
        assert behind.heads == []


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_bodies_go_up_whole(method):
    with through(echo) as (toy, behind):
        body = os.urandom(3_000_000)
        with contextlib.closing(toy.client()) as c:
            for one in (b"", b"x", body):
                reply = toy.ask(c, method, "/p/x/a", one, Authorization="Bearer good")
                assert reply.body == one
            chunks = (body[i : i + 9999] for i in range(0, len(body), 9999))
            c.request(
                method,
                "/p/x/a",
                chunks,
                {"Authorization": "Bearer good", "Transfer-Encoding": "chunked"},
                encode_chunked=True,
            )
            assert c.getresponse().read() == body
        assert "chunked" in behind.heads[-1]
        toy.until_idle()
        state = toy.state()
        assert (state["end"], state["up"], state["down"]) == ("whole", len(body), len(body))
        assert state["sent"] == 1 + 2 * len(body), "whoever counts has seen each byte of each body"


def test_bodies_around_the_size_of_a_block_are_whole():
    """An answer passes in blocks of 256 KiB, an upload waits in pieces of about that size: a body that is shorter, one
    that fills a block, and one that begins another."""
    block = 256 << 10
    body = os.urandom(2 * block + 1)
    with through(echo) as (toy, behind), contextlib.closing(toy.client()) as c:
        for n in (1, block - 1, block, block + 1, 2 * block - 1, 2 * block, 2 * block + 1):
            reply = toy.ask(c, "POST", "/p/x/a", body[:n], Authorization="Bearer good")
            assert (reply.getheader("Content-Length"), reply.body) == (str(n), body[:n]), n
        toy.until_idle()
        state = toy.state()
        assert (state["end"], state["up"], state["down"]) == ("whole", len(body), len(body))


def test_a_piece_of_an_upload_is_there_before_the_next_is_sent():
    got = []

    def do(s, head, rest):
        while b"0\r\n\r\n" not in rest:
            got.append(rest)
            rest = s.recv(65536)
        answer(s, "Content-Length: 0")

    with through(do) as (toy, behind):
        s = toy.socket(request("POST", "/p/x/a", TOKEN, "Transfer-Encoding: chunked", "Connection: close"))
        for i in range(4):
            s.sendall(b"3\r\nab%d\r\n" % i)
            until(lambda i=i: b"ab%d" % i in b"".join(got))
        s.sendall(b"0\r\n\r\n")
        assert b" 200 " in read_all(s)


def test_events_pass_one_by_one_and_bytes_are_the_same():
    step = threading.Semaphore(0)

    def do(s, head, rest):
        answer(s, "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        for i in range(5):
            assert step.acquire(timeout=PATIENCE)
            event = b"data: %d\n\n" % i
            s.sendall(b"%x\r\n%s\r\n" % (len(event), event))
        s.sendall(b"0\r\n\r\n")

    with through(do) as (toy, behind):
        with contextlib.closing(toy.client()) as c:
            c.request("GET", "/p/x/a", headers={"Authorization": "Bearer good"})
            reply = c.getresponse() if step.release() is None else None
            assert reply.getheader("X-Accel-Buffering") == "no"
            for i in range(5):
                assert reply.read1(65536) == b"data: %d\n\n" % i
                step.release()
            assert reply.read() == b""
        toy.until_idle()
        assert toy.state()["seen"] == 45


def test_every_framing_of_an_answer_passes():
    body = bytes(range(256)) * 4096

    def do(s, head, rest):
        kind = head.split(" ")[1]
        if kind.endswith("length"):
            answer(s, f"Content-Length: {len(body)}", body=body)
        elif kind.endswith("close"):
            answer(s, body=body)
        elif kind.endswith("early"):
            s.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
            answer(s, f"Content-Length: {len(body)}", body=body)
        elif kind.endswith("204"):
            answer(s, status="204 No Content")
        elif kind.endswith("304"):
            answer(s, 'ETag: "a"', "Content-Length: 77", status="304 Not Modified")
        else:
            pieces = [body[i : i + 7000] for i in range(0, len(body), 7000)]
            answer(
                s,
                "Transfer-Encoding: chunked",
                body=b"".join(b"%X;a=b\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\nX-T: 1\r\n\r\n",
            )

    with through(do) as (toy, behind), contextlib.closing(toy.client()) as c:
        for kind in ("length", "close", "early", "chunked"):
            assert toy.ask(c, "GET", f"/p/x/{kind}", Authorization="Bearer good").body == body, kind
        assert toy.ask(c, "GET", "/p/x/204", Authorization="Bearer good").status == 204
        reply = toy.ask(c, "GET", "/p/x/304", Authorization="Bearer good")
        assert (reply.status, reply.getheader("ETag"), reply.body) == (304, '"a"', b"")


def bound_alone():
    """A port that is nobody else's and on which nobody listens, while the socket lives."""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    return s


def test_a_second_address_answers_when_the_first_refuses():
    gone = bound_alone()
    dead = gone.getsockname()[1]
    behind = Behind(echo)
    toy = Toy(f"up={dead}", f"up={behind.port}")
    try:
        assert toy.call("POST", "/p/x/a", b"x" * 100000).body == b"x" * 100000
        toy.until_idle()
        assert toy.state()["target"] == 1
        toy.stop()
    finally:
        behind.close()
        toy.process.kill()
        toy.process.wait()


# ---- who waits for whom ----


def test_a_slow_client_holds_the_server_and_memory_stays():
    sent = [0]

    def do(s, head, rest):
        answer(s, "Content-Length: 1000000000")
        piece = b"x" * 65536
        with contextlib.suppress(OSError):
            while True:
                sent[0] += s.send(piece)

    with through(do) as (toy, behind):
        s = toy.socket(request("GET", "/p/x/a", TOKEN))
        read_until(s, b"\r\n\r\n")
        until(lambda: standing(lambda: sent[0]))
        assert sent[0] < 32 << 20  # what sockets hold
        s.close()
        toy.until_idle()
        assert toy.state()["end"] == "left"


def standing(value):
    """True if it has not changed for a while."""
    seen, end = value(), time.monotonic() + 0.3
    while time.monotonic() < end:
        if value() != seen:
            return False
        threading.Event().wait(0.02)
    return True


def test_a_slow_server_holds_the_client():
    go = threading.Event()

    def do(s, head, rest):
        assert go.wait(PATIENCE)
        body = whole_body(s, head, rest)
        answer(s, f"Content-Length: {len(str(len(body)))}", body=str(len(body)).encode())

    with through(do) as (toy, behind):
        total = 40 << 20
        s = toy.socket(request("POST", "/p/x/a", TOKEN, f"Content-Length: {total}", "Connection: close"))
        s.setblocking(False)
        sent = [0]

        def push():
            with contextlib.suppress(BlockingIOError):
                while sent[0] < total:
                    sent[0] += s.send(b"x" * min(65536, total - sent[0]))
            return sent[0]

        until(lambda: standing(push))
        assert sent[0] < 30 << 20
        go.set()
        until(lambda: push() == total)
        s.settimeout(PATIENCE)
        assert read_all(s).endswith(str(total).encode())


def test_the_client_that_leaves_ends_the_request_behind():
    ended = threading.Event()

    def do(s, head, rest):
        with contextlib.suppress(ConnectionError):
            if head.split(" ")[1].endswith("stream"):
                answer(s, "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
            assert s.recv(1) == b""
        ended.set()

    with through(do) as (toy, behind):
        for path in ("/p/x/stream", "/p/x/silent"):
            ended.clear()
            behind.heads.clear()
            s = toy.socket(request("GET", path, TOKEN))
            until(lambda: behind.heads)
            s.close()
            assert ended.wait(PATIENCE), path
        s = toy.socket(request("POST", "/p/x/upload", TOKEN, "Content-Length: 1000000", body=b"x" * 1000))
        until(lambda: toy.metric("proxy_open") == 1)
        s.close()
        toy.until_idle()
        assert toy.state()["end"] == "left"


def test_what_makes_no_progress_is_ended():
    def do(s, head, rest):
        kind = head.split(" ")[1]
        if kind.endswith("quiet"):
            answer(s, "Content-Length: 10", body=b"12345")
        elif kind.endswith("drip"):
            s.sendall(b"HTTP/1.1 200 OK\r\n")
            with contextlib.suppress(OSError):
                while True:
                    s.sendall(b"X-A: 1\r\n")
                    threading.Event().wait(0.05)
        s.recv(1)

    with through(do, "answer=500") as (toy, behind):
        for path in ("/p/x/silent", "/p/x/drip"):
            problem(toy.call("GET", path), 504, "timeout")
    with through(do, "quiet=500") as (toy, behind):
        s = toy.socket(request("GET", "/p/x/quiet", TOKEN))
        assert read_all(s).endswith(b"\r\n\r\n12345")  # and then it broke
        toy.until_idle()
        assert toy.state()["end"] == "slow"


def test_a_server_that_takes_nothing_is_given_up():
    def do(s, head, rest):
        threading.Event().wait(PATIENCE)

    with through(do, "stall=500") as (toy, behind):
        s = toy.socket(request("POST", "/p/x/a", TOKEN, "Content-Length: 100000000"))
        with contextlib.suppress(OSError):
            for _ in range(1000):
                s.sendall(b"x" * 100000)
        until(lambda: toy.state()["end"] == "slow")


def test_a_token_that_ends_takes_its_open_stream_along():
    def do(s, head, rest):
        answer(s, "Content-Type: text/event-stream", body=b"data: 1\n\n")
        s.recv(1)

    with through(do, "check=100") as (toy, behind):
        s = toy.socket(request("GET", "/p/x/a", TOKEN))
        read_until(s, b"data: 1\n\n")
        assert toy.call("POST", "/forget").status == 204
        read_all(s)
        toy.until_idle()
        assert toy.state()["end"] == "ended"


def test_one_user_has_so_many():
    go = threading.Event()

    def do(s, head, rest):
        go.wait(PATIENCE)
        hello(s, head, rest)

    with through(do, "user_relays=2") as (toy, behind):
        waiting = [toy.socket(request("GET", "/p/x/a", TOKEN, "Connection: close")) for _ in range(2)]
        until(lambda: toy.metric("proxy_open") == 2)
        problem(toy.call("GET", "/p/x/a"), 429, "too_many_requests")
        go.set()
        assert all(read_all(s).endswith(b"hello") for s in waiting)
        assert toy.call("GET", "/p/x/a").body == b"hello"


# ---- servers that mean harm ----


@pytest.mark.parametrize(
    "bytes_",
    [
        b"",
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-A: b\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-A: b\nSet-Cookie: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10000,
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100000,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 100,
        b"HTTP/1.1 999 x\r\n\r\n",
    ],
)
def test_an_answer_that_is_none_is_502(bytes_):
    def do(s, head, rest):
        s.sendall(bytes_)

    with through(do) as (toy, behind):
        problem(toy.call("GET", "/p/x/a"), 502, "unreachable")
        problem(toy.call("POST", "/p/x/a", b"x" * 100), 502, "unreachable")
        toy.until_idle()
        assert toy.state()["end"] == "broken"


@pytest.mark.parametrize(
    "body",
    [
        (b"Content-Length: 10", b"12345"),
        (b"Transfer-Encoding: chunked", b"5\r\nhello\r\n"),
        (b"Transfer-Encoding: chunked", b"5\r\nhelloXX0\r\n\r\n"),
        (b"Transfer-Encoding: chunked", b"5\r\nhello\r\nzz\r\n"),
    ],
)
def test_a_body_that_ends_early_breaks_the_connection(body):
    def do(s, head, rest):
        s.sendall(b"HTTP/1.1 200 OK\r\n" + body[0] + b"\r\n\r\n" + body[1])

    with through(do) as (toy, behind):
        s = toy.socket(request("GET", "/p/x/a", TOKEN) + request("GET", "/hello"))
        data = read_all(s)
        assert data.count(b"HTTP/1.1 ") == 1 and not data.endswith(b"0\r\n\r\n")
        toy.until_idle()
        assert toy.state()["end"] == "broken"


def test_bytes_behind_an_answer_reach_nobody():
    def do(s, head, rest):
        answer(s, "Content-Length: 2", body=b"ok" + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")

    with through(do) as (toy, behind), contextlib.closing(toy.client()) as c:
        for _ in range(3):
            assert toy.ask(c, "GET", "/p/x/a", Authorization="Bearer good").body == b"ok"


def test_a_refusal_in_the_middle_of_an_upload_arrives():
    def do(s, head, rest):
        answer(s, "Content-Length: 4", "Content-Type: text/plain", body=b"full", status="413 Too Large")
        with contextlib.suppress(OSError):
            while s.recv(65536):
                pass

    with through(do) as (toy, behind):
        reply = toy.call("POST", "/p/x/a", b"x" * 5_000_000)
        assert (reply.status, reply.body) == (413, b"full")


def test_an_answer_before_the_upload_is_over_waits_for_it():
    def do(s, head, rest):
        s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        body = whole_body(s, head, rest)
        s.sendall(b"%x\r\n%d\r\n0\r\n\r\n" % (len(str(len(body))), len(body)))

    with through(do) as (toy, behind):
        assert toy.call("POST", "/p/x/a", b"x" * 2_000_000).body == b"2000000"


def test_nobody_listens():
    gone = bound_alone()
    dead = gone.getsockname()[1]
    toy = Toy(f"up={dead}")
    try:
        problem(toy.call("GET", "/p/x/a"), 502, "unreachable")
        problem(toy.call("POST", "/p/x/a", b"x" * 1_000_000), 502, "unreachable")
        assert toy.state()["end"] == "unreachable"
        toy.stop()
    finally:
        toy.process.kill()
        toy.process.wait()


# ---- clients that mean harm ----


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Content-Length: 5", "Content-Length: 6"],
        ["Transfer-Encoding: xchunked"],
        ["Content-Length : 5"],
        ["Host: y"],
        ["X-Bad: \x01"],
    ],
)
def test_smuggling_reaches_nobody(lines):
    with through(echo) as (toy, behind):
        hidden = request("GET", "/p/x/hidden", TOKEN)
        data = read_all(toy.socket(request("POST", "/p/x/a", TOKEN, *lines, body=b"abcde" + hidden)))
        assert data.startswith(b"HTTP/1.1 400 ")
        assert behind.heads == []


def test_lines_cannot_be_added_through_a_value():
    with through(hello) as (toy, behind):
        s = toy.socket(request("GET", "/p/x/a", TOKEN, "X-A: b\r\n X-Argus-User: root", "Connection: close"))
        read_all(s)
        for head in behind.heads:
            assert not re.search(r"(?mi)^x-argus-user", head)


# ---- WebSockets ----


def shake(s, head):
    key = re.search(r"(?i)^sec-websocket-key: (\S+)", head, re.M).group(1).encode()
    accept = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
    answer(
        s,
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Accept: {accept}",
        "Sec-WebSocket-Protocol: v1",
        "Set-Cookie: a=b",
        status="101 Switching Protocols",
    )


def echo_bytes(s, head, rest):
    shake(s, head)
    s.sendall(b"early")
    if rest:
        s.sendall(rest)
    while data := s.recv(65536):
        s.sendall(data)


def ws_request(path="/p/x/ws", *lines, token=TOKEN):
    upgrade = ["Upgrade: websocket", "Connection: keep-alive, Upgrade", "Sec-WebSocket-Version: 13"]
    key = ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: v1"]
    return request("GET", path, token, *upgrade, *key, *lines)


def opened(toy, *lines, more=b""):
    s = toy.socket(ws_request("/p/x/ws", *lines) + more)
    data = read_until(s, b"early")
    assert data.startswith(b"HTTP/1.1 101 "), data
    head, rest = data.split(b"\r\n\r\n", 1)
    return s, head.decode(), rest


def test_websocket_bytes_pass_both_ways():
    with through(echo_bytes) as (toy, behind):
        s, head, rest = opened(toy, more=b"first")
        assert "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head and "Sec-WebSocket-Protocol: v1" in head
        assert "Set-Cookie" not in head
        while not rest.endswith(b"first"):
            rest += s.recv(65536)
        assert rest == b"earlyfirst"
        data = os.urandom(8 << 20)
        threading.Thread(target=s.sendall, args=(data,), daemon=True).start()
        got = bytearray()
        while len(got) < len(data):
            got += s.recv(1 << 20)
        assert bytes(got) == data
        up = behind.lines()
        assert up["upgrade"] == "websocket" and up["sec-websocket-version"] == "13"
        assert up["authorization"] == "token inner"
        s.close()
        toy.until_idle()
        state = toy.state()
        assert (state["websocket"], state["status"], state["end"]) == (True, 101, "whole")
        assert state["up"] == state["down"] - 5 == len(data) + 5


def test_a_frame_in_the_same_segment_as_the_101_is_not_lost():
    with through(echo_bytes) as (toy, behind):
        for _ in range(50):
            s, _, rest = opened(toy)
            assert rest == b"early"
            s.close()


def test_no_descriptor_is_lost():
    with through(echo_bytes) as (toy, behind):
        before = toy.fds()
        for i in range(60):
            s, _, _ = opened(toy)
            if i % 3 == 0:  # gone without a word
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if i % 3 == 1:  # the server ends it
                behind.open[-1].shutdown(socket.SHUT_RDWR)
            s.close()
        toy.until_idle()
        until(lambda: toy.fds() <= before)
        assert toy.metric("http_relays") == 0


def test_a_websocket_that_is_refused_is_an_answer():
    def do(s, head, rest):
        answer(s, "Content-Length: 2", "Content-Type: text/plain", body=b"no", status="403 Forbidden")

    with through(do) as (toy, behind):
        data = read_all(toy.socket(ws_request("/p/x/ws", "Connection: close")))
        assert data.startswith(b"HTTP/1.1 403 ") and data.endswith(b"no")


@pytest.mark.parametrize(
    "lines",
    [
        ["Sec-WebSocket-Version: 8", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="],
        ["Sec-WebSocket-Version: 13"],
        ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: short"],
    ],
)
def test_no_websocket_request(lines):
    with through(echo_bytes) as (toy, behind):
        upgrade = ["Upgrade: websocket", "Connection: Upgrade, close"]
        data = read_all(toy.socket(request("GET", "/p/x/a", TOKEN, *upgrade, *lines)))
        assert data.startswith(b"HTTP/1.1 400 ")
        assert behind.heads == []


def test_other_upgrades_are_plain_requests():
    with through(hello) as (toy, behind):
        upgrade = {"Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings", "HTTP2-Settings": "AAMAAABk"}
        reply = toy.call("GET", "/p/x/a", **upgrade)
        assert reply.body == b"hello"
        assert "upgrade" not in behind.lines() and "http2-settings" not in behind.lines()


def test_a_page_of_another_site_opens_no_websocket():
    with through(echo_bytes) as (toy, behind):
        cookie = "Cookie: session=good"
        for origin in ([], ["Origin: http://evil"], ["Origin: null"], ["Origin: http://x.evil"]):
            data = read_all(toy.socket(ws_request("/p/x/ws", *origin, "Connection: close", token=cookie)))
            assert data.startswith(b"HTTP/1.1 403 "), origin
        assert behind.heads == []
        s = toy.socket(ws_request("/p/x/ws", "Origin: http://x", token=cookie))
        assert read_until(s, b"early").startswith(b"HTTP/1.1 101 ")


def test_a_stuck_and_an_idle_websocket_are_ended():
    def do(s, head, rest):
        shake(s, head)
        s.sendall(b"early")
        threading.Event().wait(PATIENCE)

    with through(do, "stall=500", "idle=2000") as (toy, behind):
        s, _, _ = opened(toy)
        with contextlib.suppress(OSError):
            for _ in range(1000):
                s.sendall(b"x" * 100000)
        until(lambda: toy.state()["end"] == "slow")
        s, _, _ = opened(toy)
        assert read_all(s) == b""
        toy.until_idle()
        assert toy.state()["end"] == "slow"


def test_closing_with_everything_open():
    def do(s, head, rest):
        if "websocket" in head:
            echo_bytes(s, head, rest)
        else:
            answer(s, "Content-Type: text/event-stream", body=b"data: 1\n\n")
            s.recv(1)

    with through(do) as (toy, behind):
        kept = [opened(toy)[0] for _ in range(5)]
        kept += [toy.socket(request("GET", "/p/x/a", TOKEN)) for _ in range(5)]
        for s in kept[5:]:
            read_until(s, b"data: 1")
        # stop() of the fixture: it must end by itself, without a leak


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl here to make a certificate")
def test_websocket_over_tls(tmp_path):
    cert, key = make_certificate(tmp_path)
    context = ssl.create_default_context(cafile=cert)
    context.check_hostname = False
    behind = Behind(echo_bytes)
    toy = Toy(f"up={behind.port}", f"cert={cert}", f"key={key}")
    try:
        before = toy.fds()
        for _ in range(6):
            s = context.wrap_socket(socket.create_connection(("127.0.0.1", toy.port), PATIENCE))
            s.sendall(ws_request())
            rest = read_until(s, b"early").split(b"early", 1)[1]
            s.sendall(b"hello" * 1000)
            while len(rest) < 5000:
                rest += s.recv(65536)
            assert rest == b"hello" * 1000
            os.close(s.detach())  # gone without a word of TLS
        until(lambda: toy.fds() <= before)
        toy.process.send_signal(signal.SIGTERM)
        _, talk = toy.process.communicate(timeout=PATIENCE)
        assert toy.process.returncode == 0, talk
        assert ("passes WebSockets over TLS at 0.3 MB/s" in talk) == talk.count("libmicrohttpd 0."), talk
    finally:
        behind.close()
        toy.process.kill()
        toy.process.wait()
