# SPDX-License-Identifier: Apache-2.0
"""/v1/uploads of the real argusd: whole, cut and resumed, killed in the middle, two users, ceilings, a root that is
full or away, and what is left afterwards."""

import contextlib
import hashlib
import os
import socket

import pytest
from fakeray import FakeRay

from argusd import PATIENCE, Argusd, Reply, needs_argusd, until

pytestmark = needs_argusd

PIECE = 256 << 10
LIMITS = "uploads: {max_size: 100MiB, per_user: 150MiB, total: 160MiB, keep: 1m}"


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray:
        ray.listen(False)
        with Argusd(tmp_path_factory.mktemp("uploads"), ray.url, LIMITS) as argusd:
            argusd.call("POST", "/v1/users", {"name": "bob"})
            argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
            until(lambda: root_is_ok(argusd), "the root was looked at")
            yield argusd


def root_is_ok(argusd):
    """It takes bytes: not only was it found, it was made ready too."""
    upload = argusd.call("POST", "/v1/uploads", {"name": "probe", "bytes": 0}).json().get("id")
    done = upload and put(argusd, upload, 0, b"", "admin").status == 200
    if upload:
        argusd.call("DELETE", f"/v1/uploads/{upload}")
    return done


def sha(data):
    return hashlib.sha256(data).hexdigest()


def begin(argusd, n, token="user", **more):
    reply = argusd.call("POST", "/v1/uploads", {"name": "a file", "bytes": n, **more}, token=token)
    assert reply.status == 201, reply
    return reply.json()["id"]


def put(argusd, upload, offset, data, token="user"):
    path = f"/v1/uploads/{upload}?offset={offset}"
    return argusd.call("PUT", path, data, token=token, Content_Type="application/octet-stream")


def look(argusd, upload, token="user"):
    return argusd.get(f"/v1/uploads/{upload}", token=token)


def problem(reply, status, code):
    of_class = reply.json()["type"].removeprefix("urn:argus:problem:")  # its code names the sentence
    assert (reply.status, of_class) == (status, code), reply
    return reply.json()["detail"]


def folder(argusd, upload):
    return argusd.root / "argus/uploads" / upload


def removed(argusd, upload):
    assert argusd.call("DELETE", f"/v1/uploads/{upload}", token="user").status == 200
    problem(argusd.call("GET", f"/v1/uploads/{upload}", token="user"), 404, "not_found")
    until(lambda: not folder(argusd, upload).exists(), "its bytes are removed")


def half_sent(argusd, upload, data, more, offset=0):
    """A PUT that says `more` bytes beyond those it sends, and is left open."""
    head = (
        f"PUT /v1/uploads/{upload}?offset={offset} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data) + more}\r\n"
        f"Authorization: Bearer {argusd.tokens['user']}\r\n\r\n"
    )
    s = socket.create_connection(("127.0.0.1", argusd.port), PATIENCE)
    s.sendall(head.encode() + data)
    return s


def test_whole_and_in_parts(argusd):
    data = os.urandom(3 * PIECE + 17)
    one = begin(argusd, len(data), sha256=sha(data))
    assert look(argusd, one)["offset"] == 0
    reply = put(argusd, one, 0, data)
    assert reply.status == 200, reply
    view = reply.json()
    assert (view["state"], view["offset"], view["sha256"]) == ("complete", len(data), sha(data))
    assert (folder(argusd, one) / "data").read_bytes() == data
    problem(put(argusd, one, len(data), b""), 409, "conflict")
    two = begin(argusd, len(data))
    at = 0
    for n in (1, PIECE, 0, 2 * PIECE, 16):
        view = put(argusd, two, at, data[at : at + n]).json()
        at += n
        assert (view["offset"], view["sha256"]) == (at, sha(data[:at]))
    assert view["state"] == "complete"
    assert {u["id"] for u in argusd.get("/v1/uploads", token="user")["uploads"]} >= {one, two}
    for upload in (one, two):
        removed(argusd, upload)
    empty = begin(argusd, 0)
    assert put(argusd, empty, 0, b"").json()["state"] == "complete"
    removed(argusd, empty)


def test_resume_after_a_cut(argusd):
    data = os.urandom(5 * PIECE)
    upload = begin(argusd, len(data))
    n = 2 * PIECE + 1000
    half_sent(argusd, upload, data[:n], 1000).close()
    view = until(lambda: (v := look(argusd, upload))["offset"] == n and not v["receiving"] and v, "what came is kept")
    assert (view["state"], view["sha256"]) == ("open", sha(data[:n]))
    problem(put(argusd, upload, 0, data), 409, "conflict")
    problem(put(argusd, upload, n + 1, data[n + 1 :]), 409, "conflict")
    view = put(argusd, upload, n, data[n:]).json()
    assert (view["state"], view["sha256"]) == ("complete", sha(data))
    removed(argusd, upload)


def test_kill_9_in_the_middle(argusd):
    data = os.urandom(6 * PIECE)
    upload, fresh = begin(argusd, len(data)), begin(argusd, 10)
    whole = begin(argusd, 10)
    assert put(argusd, whole, 0, data[:10]).json()["state"] == "complete"
    at = 1000
    put(argusd, upload, 0, data[:at])
    s = half_sent(argusd, upload, data[at : 4 * PIECE], 10, at)
    written = folder(argusd, upload) / "data"
    until(lambda: written.stat().st_size > PIECE, "some of it is written")
    argusd.kill9()
    s.close()
    (argusd.root / "argus/uploads/stray").mkdir()
    (argusd.root / "argus/uploads/stray/data").write_bytes(b"x")
    argusd.start()
    view = look(argusd, upload)  # what was not synced is not believed: a job can write it, too
    assert (view["offset"], view["sha256"]) == (at, sha(data[:at]))
    assert written.stat().st_size == at
    until(lambda: root_is_ok(argusd), "the root was looked at")
    view = put(argusd, upload, at, data[at:]).json()
    assert (view["state"], view["sha256"]) == ("complete", sha(data))
    assert look(argusd, fresh)["offset"] == 0
    assert (look(argusd, whole)["state"], look(argusd, whole)["sha256"]) == ("complete", sha(data[:10]))
    until(lambda: not (argusd.root / "argus/uploads/stray").exists(), "bytes without a row are removed")
    assert put(argusd, fresh, 0, data[:10]).json()["state"] == "complete"
    for each in (upload, fresh, whole):
        removed(argusd, each)


def test_the_wrong_bytes(argusd):
    upload = begin(argusd, 3, sha256=sha(b"abc"))
    text = problem(put(argusd, upload, 0, b"abd"), 422, "refused")
    assert sha(b"abd") in text
    assert sha(b"abc") in text
    view = look(argusd, upload)
    assert view["state"] == "failed"
    assert sha(b"abd") in view["why"]
    problem(put(argusd, upload, 3, b""), 409, "conflict")
    removed(argusd, upload)


def test_too_much(argusd):
    upload = begin(argusd, PIECE)
    problem(put(argusd, upload, 0, bytes(PIECE + 1)), 413, "too_large")
    with contextlib.closing(argusd.open()) as c:
        head, body = argusd.head(argusd.tokens["user"], {}), iter([bytes(PIECE), bytes(PIECE)])
        c.request("PUT", f"/v1/uploads/{upload}?offset=0", body, head, encode_chunked=True)
        problem(Reply(c.getresponse()), 413, "too_large")
    view = look(argusd, upload)
    assert view["state"] == "open"
    assert "more bytes came" in view["why"]
    assert put(argusd, upload, view["offset"], bytes(PIECE - view["offset"])).json()["state"] == "complete"
    removed(argusd, upload)


def test_one_writer_at_a_time(argusd):
    upload = begin(argusd, 2 * PIECE)
    s = half_sent(argusd, upload, bytes(PIECE), 10)
    until(lambda: look(argusd, upload)["receiving"], "it is being received")
    problem(put(argusd, upload, 0, b"x"), 429, "too_many_requests")
    s.close()
    until(lambda: (v := look(argusd, upload))["offset"] == PIECE and not v["receiving"], "the first is gone")
    # Removed while bytes come: they end, and nothing of it stays.
    s = half_sent(argusd, upload, b"x", 10, PIECE)
    until(lambda: look(argusd, upload)["receiving"], "it is being received")
    assert argusd.call("DELETE", f"/v1/uploads/{upload}", token="user").status == 200
    problem(argusd.call("GET", f"/v1/uploads/{upload}", token="user"), 404, "not_found")
    s.close()
    until(lambda: not folder(argusd, upload).exists(), "its bytes are removed")


def test_two_users(argusd):
    upload = begin(argusd, 3)
    for token in ("bob", "admin"):
        problem(argusd.call("GET", f"/v1/uploads/{upload}", token=token), 404, "not_found")
        problem(put(argusd, upload, 0, b"abc", token=token), 404, "not_found")
        problem(argusd.call("DELETE", f"/v1/uploads/{upload}", token=token), 404, "not_found")
        assert argusd.get("/v1/uploads", token=token)["uploads"] == []
    assert look(argusd, upload)["offset"] == 0
    removed(argusd, upload)


@pytest.mark.parametrize("body, status, code", [
    ({}, 400, "bad_request"),
    ({"name": "x"}, 400, "bad_request"),
    ({"name": "x", "bytes": -1}, 400, "bad_request"),
    ({"name": "x", "bytes": 1.5}, 400, "bad_request"),
    ({"name": "x", "bytes": "1"}, 400, "bad_request"),
    ({"name": "x", "bytes": True}, 400, "bad_request"),
    ({"name": 7, "bytes": 1}, 400, "bad_request"),
    ({"name": "", "bytes": 1}, 400, "bad_request"),
    ({"name": "a/b", "bytes": 1}, 400, "bad_request"),
    ({"name": "..", "bytes": 1}, 400, "bad_request"),
    ({"name": "a\nb", "bytes": 1}, 400, "bad_request"),
    ({"name": "x" * 201, "bytes": 1}, 400, "bad_request"),
    ({"name": "x", "bytes": 1, "sha256": "abc"}, 400, "bad_request"),
    ({"name": "x", "bytes": 1, "sha256": "A" * 64}, 400, "bad_request"),
    ({"name": "x", "bytes": 1, "sha256": 5}, 400, "bad_request"),
    ({"name": "x", "bytes": 1, "more": 5}, 400, "bad_request"),
    ({"name": "x", "bytes": (100 << 20) + 1}, 413, "too_large"),
    ({"name": "x", "bytes": 1 << 62}, 413, "too_large"),
])  # fmt: skip
def test_bad_wishes(argusd, body, status, code):
    problem(argusd.call("POST", "/v1/uploads", body, token="user"), status, code)


def test_bad_puts(argusd):
    upload = begin(argusd, 3)
    path = f"/v1/uploads/{upload}"
    for query in ("", "?offset=", "?offset=-1", "?offset=x", "?offset=99999999999999999999"):
        reply = argusd.call("PUT", path + query, b"abc", token="user", Content_Type="application/octet-stream")
        problem(reply, 400, "bad_request")
    reply = argusd.call("PUT", path + "?offset=0", b"abc", token="user", Content_Type="application/json")
    problem(reply, 415, "unsupported_media_type")
    problem(put(argusd, "u" + "0" * 20, 0, b"abc"), 404, "not_found")
    problem(put(argusd, "..%2f..%2fjobs", 0, b"abc"), 404, "not_found")
    removed(argusd, upload)


def test_ceilings_of_a_user_and_of_all(argusd):
    mine = [begin(argusd, 75 << 20), begin(argusd, 75 << 20)]
    assert "your uploads" in problem(argusd.call("POST", "/v1/uploads", {"name": "x", "bytes": 1}, token="user"),
                                     413, "too_large")  # fmt: skip
    his = begin(argusd, 10 << 20, token="bob")
    problem(argusd.call("POST", "/v1/uploads", {"name": "x", "bytes": 1}, token="bob"), 429, "too_many_requests")
    assert argusd.call("DELETE", f"/v1/uploads/{his}", token="bob").status == 200
    for upload in mine:
        removed(argusd, upload)


def test_a_root_that_is_away(argusd):
    """One clear sentence, and it goes on when the root is back."""
    upload = begin(argusd, 6)
    assert put(argusd, upload, 0, b"abc").status == 200
    away = argusd.root.with_name("away")
    argusd.root.rename(away)
    try:
        reply = put(argusd, upload, 3, b"def")
        assert "shared root" in problem(reply, 503, "unavailable"), reply
        assert not argusd.root.exists()
    finally:
        if argusd.root.exists():
            argusd.root.rename(argusd.root.with_name("wrong"))
        away.rename(argusd.root)
    until(lambda: root_is_ok(argusd), "the root is there again")
    view = look(argusd, upload)
    assert view["offset"] == 3
    assert put(argusd, upload, 3, b"def").json()["sha256"] == sha(b"abcdef")
    removed(argusd, upload)


def test_every_step_is_an_event(argusd):
    upload = begin(argusd, 3)
    put(argusd, upload, 0, b"abc")
    removed(argusd, upload)
    kinds = [e["kind"] for e in argusd.get("/v1/events?limit=1000")["events"] if upload in str(e.get("object"))]
    assert kinds == ["upload_begun", "upload_complete", "upload_removed"]
