# SPDX-License-Identifier: Apache-2.0
"""The toy server of src/http/test/server.c, and raw HTTP, for the tests of the HTTP layer."""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 150  # seconds that a healthy server never needs, however busy the machine is


def program():
    """It is built and not installed: beside whatever build the tests are about."""
    folders = [os.environ.get("ARGUS_BUILD"), ROOT / "build-asan", ROOT / "build"]
    built = [pathlib.Path(f) / "src/http/http_test_server" for f in folders if f]
    found = next((p for p in built if p.exists()), None)
    if not found:
        pytest.skip("http_test_server is not built")
    return found


def make_certificate(folder):
    """(certificate, key) of this machine, signed by itself."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        + ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    key.chmod(0o600)
    return cert, key


class Server:
    def __init__(self, *args):
        self.process = subprocess.Popen([program(), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline() or 0)
        assert self.port, self.process.stderr.read()

    def socket(self, data=b""):
        s = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        s.sendall(data)
        return s

    def client(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def call(self, method, path, body=None, **headers):
        with contextlib.closing(self.client()) as c:
            return self.ask(c, method, path, body, **headers)

    @staticmethod
    def ask(c, method, path, body=None, **headers):
        c.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        reply = c.getresponse()
        reply.body = reply.read()
        return reply

    def state(self):
        return json.loads(self.call("GET", "/state").body)

    def until(self, test):
        end = time.monotonic() + PATIENCE
        while not test(state := self.state()):
            assert time.monotonic() < end, state
        return state

    def stop(self):
        """It must end by itself, cleanly: a leak or a finding of a sanitizer is a failure."""
        self.process.send_signal(signal.SIGTERM)
        _, talk = self.process.communicate(timeout=PATIENCE)
        assert (self.process.returncode, talk) == (0, "")


@contextlib.contextmanager
def serving(*args):
    server = Server(*args)
    try:
        yield server
        server.stop()
    finally:
        server.process.kill()
        server.process.wait()


def problem(reply, status, code):
    assert reply.status == status, reply.body
    assert reply.getheader("Content-Type") == "application/problem+json"
    text = json.loads(reply.body)
    assert {"type", "title", "status", "detail", "code"} <= set(text)
    assert (text["status"], text["type"]) == (status, f"urn:argus:problem:{code}")  # its code names the sentence
    return text


def read_all(s):
    data = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while piece := s.recv(65536):
            data += piece
    return bytes(data)


def read_until(s, mark):
    data = b""
    while mark not in data:
        piece = s.recv(65536)
        assert piece, data
        data += piece
    return data


def request(method, path, *headers, body=b""):
    head = [f"{method} {path} HTTP/1.1", "Host: x", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body
