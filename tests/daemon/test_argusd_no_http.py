# SPDX-License-Identifier: Apache-2.0
"""What is sent to argusd's port and is no HTTP is answered with no success, and harms nobody."""

import contextlib
import socket

import pytest
from fakeray import FakeRay

from argusd import PATIENCE, Argusd, needs_argusd

pytestmark = needs_argusd


@pytest.fixture
def argusd(tmp_path):
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as made:
        yield made


def test_requests_that_are_no_http(argusd):
    for data in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 20, b"GET /" + b"a" * 20000):
        with socket.create_connection(("127.0.0.1", argusd.port), PATIENCE) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                answer = s.recv(65536)
            assert b" 200 " not in answer[:20]
    assert argusd.get("/v1/whoami")["role"] == "admin"
