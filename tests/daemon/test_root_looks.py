# SPDX-License-Identifier: Apache-2.0
"""A look at the shared root that failed says nothing: it is not empty, its mark stays, no attempt starts by it."""

import contextlib
import errno
import os

import pytest
from brokenlook import COMPILER, BrokenLooks
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = [needs_argusd, pytest.mark.skipif(not COMPILER, reason="no C compiler")]

ERRORS = [errno.ESTALE, errno.EIO, errno.EMFILE, errno.EACCES]


@pytest.fixture(scope="module")
def ray():
    with FakeRay() as ray:
        yield ray


@contextlib.contextmanager
def open_argusd(home, ray, order=""):
    """An argusd whose looks obey, from its start on."""
    looks, argusd = BrokenLooks(home), Argusd(home, ray.url)
    argusd.env = looks.env()
    looks.order(order)
    with argusd:
        try:
            yield argusd, looks
        finally:
            looks.order("")


@pytest.fixture(scope="module")
def broken(tmp_path_factory, ray):
    with open_argusd(tmp_path_factory.mktemp("looks"), ray) as (argusd, looks):
        heals(argusd)
        yield argusd, looks


def heals(argusd):
    until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "the shared root is well")


def begin(argusd):
    reply = argusd.call("POST", "/v1/uploads", {"name": "a file", "bytes": 3}, token="user")
    assert reply.status == 201, reply
    return reply.json()["id"]


def put(argusd, upload, **headers):
    headers["Content_Type"] = "application/octet-stream"
    return argusd.call("PUT", f"/v1/uploads/{upload}?offset=0", b"abc", token="user", **headers)


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_a_failed_look_at_the_start(broken, error):
    """It is told with its reason, asked again, and neither mark is written anew."""
    argusd, looks = broken
    marks = sorted((argusd.root / "argus").glob(".*root*"))
    before = [(p.name, p.stat().st_ino) for p in marks]
    assert len(before) == 2
    for mark in marks:
        argusd.stop()
        with looks.fail(mark.name, error):
            argusd.start()
            until(lambda: os.strerror(error) in (argusd.get("/readyz")["reason"] or ""), "argusd tells it")
            said = argusd.get("/readyz")["reason"]
            assert "cannot look at" in said and "empty" not in said and "mount it" not in said, said
            reply = argusd.post(argusd.spec("echo x"))
            assert (reply.status, said in reply.json()["detail"]) == (503, True), reply
        heals(argusd)
    assert [(p.name, p.stat().st_ino) for p in marks] == before


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_a_failed_look_of_an_upload(broken, error):
    argusd, looks = broken
    heals(argusd)
    upload = begin(argusd)
    with looks.fail(".shared-root", error):
        english, chinese = (put(argusd, upload, Accept_Language=language) for language in ("en", "zh"))
    if "wait for the shared root" not in english.json()["detail"]:  # argusd itself has seen it by now
        assert (english.status, english.json()["code"]) == (503, "root_unseen"), english
        assert os.strerror(error) in english.json()["detail"] and "empty" not in english.json()["detail"]
        assert chinese.json()["detail"].startswith("无法查看共享根"), chinese
    heals(argusd)
    assert put(argusd, upload).status == 200


@pytest.mark.parametrize("name", ["logs", "1"])  # its directories, with driver.log and exit.json
@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_a_failed_look_starts_no_attempt(broken, error, name):
    """Whether it has started is asked again, and once it is known that it has not, it starts."""
    argusd, looks = broken
    heals(argusd)
    with looks.fail(name, error):
        job = argusd.submit("echo x")
        at = argusd.root / "jobs" / job
        told = f"cannot open '{argusd.root}/jobs/{job}/attempts/1"
        until(lambda: told in argusd.said() or (at / "attempts").exists(), "it was looked for")
        assert os.strerror(error) in argusd.said() and not (at / "attempts").exists()
    over = argusd.wait_over(job)
    assert (over["state"], over["attempt"]) == ("SUCCEEDED", 1), over
