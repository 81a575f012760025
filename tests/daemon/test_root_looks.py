# SPDX-License-Identifier: Apache-2.0
"""A look at the shared root that failed says nothing: it is not empty, its mark stays, no attempt starts by it. And an
upload that comes before argusd has prepared a new root waits for that."""

import contextlib
import errno
import os
import threading

import pytest
from brokenlook import BrokenLooks
from fakeray import FakeRay
from preload import needs_compiler

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = [needs_argusd, needs_compiler]

ERRORS = [errno.ESTALE, errno.EIO, errno.EMFILE, errno.EACCES]
MARKER = "argus/.shared-root"


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


class Sent:
    """A PUT under way; returns as soon as argusd has it, or has answered."""

    def __init__(self, argusd):
        self.upload, self.replies = begin(argusd), []
        self.thread = threading.Thread(target=self.send, args=(argusd,))
        self.thread.start()
        page = f"/v1/uploads/{self.upload}"
        until(lambda: self.replies or argusd.get(page, token="user")["receiving"], "its bytes are there")

    def send(self, argusd):
        with contextlib.suppress(OSError):
            self.replies.append(put(argusd, self.upload))

    def reply(self):
        self.thread.join()
        return self.replies[0]


def test_an_upload_before_the_root_is_prepared(tmp_path, ray):
    """argusd makes common/ before it says that the root is prepared: nobody calls it empty meanwhile."""
    with open_argusd(tmp_path, ray, "hold 0 common") as (argusd, looks):
        sent = Sent(argusd)
        assert not (argusd.root / MARKER).exists() and not sent.replies, sent.replies
        looks.order("")
        reply = sent.reply()
        assert (reply.status, reply.json()["state"]) == (200, "complete"), reply


def test_a_root_that_cannot_be_prepared(tmp_path, ray):
    """What waits for the first look is refused when that tells why."""
    with open_argusd(tmp_path, ray, "hold 0 common") as (argusd, looks):
        sent = Sent(argusd)
        (argusd.root / "common").write_text("")
        looks.order("")
        reply = sent.reply()
        assert (reply.status, reply.json()["code"]) == (503, "shared_root_unavailable"), reply
        assert "common' is not a directory: move it away" in reply.json()["detail"], reply


def test_a_stop_while_an_upload_waits(tmp_path, ray):
    with open_argusd(tmp_path, ray, "hold 0 common") as (argusd, looks):
        sent = Sent(argusd)
        argusd.process.terminate()
        until(lambda: "stopping" in argusd.said(), "argusd stops")
        looks.order("")
        assert argusd.process.wait(PATIENCE) == 0, argusd.said()[-4000:]
        argusd.process = None
        sent.thread.join()


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
    assert (english.status, english.json()["code"]) == (503, "shared_root_unavailable"), english
    assert os.strerror(error) in english.json()["detail"] and "empty" not in english.json()["detail"]
    assert "不能查看" in chinese.json()["detail"], chinese
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
