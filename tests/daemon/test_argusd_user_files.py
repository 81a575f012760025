# SPDX-License-Identifier: Apache-2.0
"""/v1/files of the real argusd: look, list by pages, read by ranges, put whole, remove; whose paths are whose; every
way out of a root; hostile names; a root that is away."""

import contextlib
import http.client
import os
import urllib.parse

import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("files"), ray.url) as argusd:
        argusd.call("POST", "/v1/users", {"name": "bob"})
        argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
        argusd.call("POST", "/v1/tokens", {"user": "alice"})
        argusd.done = argusd.submit("echo hello")
        argusd.wait_over(argusd.done)
        until((argusd.root / "users/bob/code").exists, "directories of users are made")
        until((argusd.root / "users/alice/code").exists, "directories of users are made")
        yield argusd


def ask(argusd, method, path, query="", token="user", what="", **headers):
    whole = f"/v1/files{what}?path={urllib.parse.quote(path)}{query}"
    return argusd.call(method, whole, token=token, **headers)


def content(argusd, path, token="user", **headers):
    return ask(argusd, "GET", path, token=token, what="/content", **headers)


def problem(reply, status, code):
    of_class = reply.json()["type"].removeprefix("urn:argus:problem:")  # its code names the sentence
    assert (reply.status, of_class) == (status, code), reply
    assert reply.json()["detail"]
    return reply.json()["detail"]


def upload(argusd, data, token="user"):
    made = argusd.call("POST", "/v1/uploads", {"name": "x", "bytes": len(data)}, token=token).json()["id"]
    path = f"/v1/uploads/{made}?offset=0"
    sent = argusd.call("PUT", path, data, token=token, Content_Type="application/octet-stream")
    assert sent.json()["state"] == "complete", sent
    return made


def put(argusd, path, data=b"", token="user", **more):
    body = {"path": path, "upload": upload(argusd, data, token), **more}
    return argusd.call("POST", "/v1/files", body, token=token)


def on_disk(argusd, path):
    return argusd.root / path


# ---- the usual ----


def test_put_look_read_remove(argusd):
    data = os.urandom(700_000)
    reply = put(argusd, "users/alice/datasets/new/a.bin", data)
    assert "datasets/new/a.bin" in problem(reply, 404, "not_found")  # its directory is not there
    reply = put(argusd, "users/alice/datasets/new/a.bin", data, parents=True)
    assert reply.status == 201, reply
    assert reply.json()["bytes"] == len(data)
    assert on_disk(argusd, "users/alice/datasets/new/a.bin").read_bytes() == data
    view = ask(argusd, "GET", "users/alice/datasets/new/a.bin").json()
    assert (view["kind"], view["bytes"]) == ("file", len(data))
    reply = content(argusd, f"{argusd.root}/users/alice/datasets/new/a.bin")
    assert (reply.status, reply.body == data, reply.headers["ETag"]) == (200, True, f'"{view["etag"]}"')
    assert reply.headers["Content-Length"] == str(len(data))
    problem(ask(argusd, "DELETE", "users/alice/datasets/new"), 409, "conflict")
    assert ask(argusd, "DELETE", "users/alice/datasets/new", "&recursive=1").json()["removed"] == 2
    problem(ask(argusd, "GET", "users/alice/datasets/new"), 404, "not_found")
    events = argusd.get("/v1/events?limit=1000")["events"]
    kinds = [e["kind"] for e in events if "datasets/new" in str(e.get("object"))]
    assert kinds == ["file_put", "file_removed"]


def test_nothing_is_replaced_silently(argusd):
    assert put(argusd, "common/once", b"first").status == 201
    reply = put(argusd, "common/once", b"second")
    problem(reply, 409, "conflict")
    assert "replace" in reply.json()["hint"]
    assert on_disk(argusd, "common/once").read_bytes() == b"first"
    reply = put(argusd, "common/once", b"second", replace=True)
    assert reply.json()["replaced"] is True
    assert on_disk(argusd, "common/once").read_bytes() == b"second"
    problem(put(argusd, "common/datasets", b"x", replace=True), 409, "conflict")
    problem(put(argusd, "common/once/x", b"x", parents=True), 400, "bad_request")


def test_an_upload_is_used_once_and_only_by_its_owner(argusd):
    mine = upload(argusd, b"abc")
    ask_for = {"path": "common/used", "upload": mine}
    problem(argusd.call("POST", "/v1/files", ask_for, token="bob"), 404, "not_found")
    problem(argusd.call("POST", "/v1/files", {**ask_for, "sha256": "0" * 64}, token="user"), 409, "conflict")
    problem(argusd.call("POST", "/v1/files", {**ask_for, "path": "common/no/dir"}, token="user"), 404, "not_found")
    assert argusd.call("POST", "/v1/files", ask_for, token="user").status == 201  # what was refused left it as it was
    problem(argusd.call("POST", "/v1/files", {**ask_for, "path": "common/again"}, token="user"), 404, "not_found")
    until(lambda: not on_disk(argusd, f"argus/uploads/{mine}").exists(), "nothing of it stays")
    half = argusd.call("POST", "/v1/uploads", {"name": "x", "bytes": 5}, token="user").json()["id"]
    problem(argusd.call("POST", "/v1/files", {"path": "common/half", "upload": half}, token="user"), 409, "conflict")
    assert not on_disk(argusd, "common/half").exists()
    argusd.call("DELETE", f"/v1/uploads/{half}", token="user")


def test_list_by_pages(argusd):
    folder = on_disk(argusd, "common/many")
    folder.mkdir()
    names = sorted([f"f{i:03}" for i in range(25)] + ["a b", "中"], key=lambda n: n.encode())
    for name in names:
        (folder / name).write_text("x")
    (folder / "link").symlink_to("f000")
    names = sorted([*names, "link"], key=lambda n: n.encode())
    for limit in (1, 7, 28, 1000):
        seen, cursor = [], ""
        while cursor is not None:
            page = ask(argusd, "GET", "common/many", f"&limit={limit}&cursor={cursor}").json()
            assert len(page["entries"]) <= limit
            seen += [e["name"] for e in page["entries"]]
            cursor = page["next_cursor"]
        assert seen == names
    link = next(e for e in ask(argusd, "GET", "common/many").json()["entries"] if e["name"] == "link")
    assert (link["kind"], link["target"]) == ("link", "f000")
    for bad in ("x", "abc", "00", "a" * 600):
        problem(ask(argusd, "GET", "common/many", f"&cursor={bad}"), 400, "bad_request")
    roots = argusd.get("/v1/files", token="user")["entries"]
    assert [e["name"] for e in roots] == ["common", "users/alice"]


# ---- ranges ----


def test_ranges(argusd):
    data = os.urandom(400_000)
    on_disk(argusd, "common/ranged").write_bytes(data)
    etag = content(argusd, "common/ranged").headers["ETag"]
    n = len(data)
    for header, start, end in (
        ("bytes=0-0", 0, 1), ("bytes=5-9", 5, 10), ("bytes=399990-", 399990, n), ("bytes=-7", n - 7, n),
        ("bytes=100000-99999999", 100000, n), (f"bytes=-{n + 5}", 0, n),
    ):  # fmt: skip
        reply = content(argusd, "common/ranged", Range=header)
        assert (reply.status, reply.body == data[start:end]) == (206, True), header
        assert reply.headers["Content-Range"] == f"bytes {start}-{end - 1}/{n}"
    for header in ("bytes=5-3", "bytes=a-", "lines=1-2", "bytes=0-1,5-6"):  # not understood: all of it
        reply = content(argusd, "common/ranged", Range=header)
        assert (reply.status, len(reply.body)) == (200, n)
    for header in (f"bytes={n}-", "bytes=-0"):
        reply = content(argusd, "common/ranged", Range=header)
        problem(reply, 416, "range_not_satisfiable")
        assert reply.headers["Content-Range"] == f"bytes */{n}"
    assert content(argusd, "common/ranged", Range="bytes=1-2", If_Range=etag).status == 206
    assert content(argusd, "common/ranged", Range="bytes=1-2", If_Range='"other"').status == 200
    assert content(argusd, "common/ranged", If_None_Match=etag).status == 304
    on_disk(argusd, "common/ranged").write_bytes(data[1:])
    assert content(argusd, "common/ranged", Range="bytes=1-2", If_Range=etag).status == 200
    on_disk(argusd, "common/ranged").write_bytes(b"")
    reply = content(argusd, "common/ranged")
    assert (reply.status, reply.body, reply.headers["Content-Length"]) == (200, b"", "0")
    head = ask(argusd, "HEAD", "common/once", what="/content")
    assert (head.status, head.body) == (200, b"")


def test_a_client_that_goes_in_the_middle(argusd):
    with on_disk(argusd, "common/large").open("wb") as f:
        f.truncate(64 << 20)
    with contextlib.closing(argusd.open()) as c:
        c.request("GET", "/v1/files/content?path=common/large", headers=argusd.head(argusd.tokens["user"], {}))
        raw = c.getresponse()
        assert len(raw.read(1 << 20)) == 1 << 20
    assert argusd.get("/v1/whoami")["role"] == "admin"


def test_a_file_that_gets_shorter(argusd):
    """Its length was said: the answer breaks, and is never short and whole."""
    path = on_disk(argusd, "common/shrinking")
    with path.open("wb") as f:
        f.truncate(64 << 20)
    with contextlib.closing(argusd.open()) as c:
        c.request("GET", "/v1/files/content?path=common/shrinking", headers=argusd.head(argusd.tokens["user"], {}))
        raw = c.getresponse()
        raw.read(1000)
        os.truncate(path, 0)
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            raw.read()


# ---- whose is it ----


def test_other_users(argusd):
    on_disk(argusd, "users/bob/secret").write_text("his")
    for path in ("users/bob", "users/bob/secret", "users/nobody/x"):
        text = problem(ask(argusd, "GET", path), 404, "not_found")
        assert "secret" in path or text.endswith(f"no path '{path}'")
        problem(ask(argusd, "DELETE", path), 404, "not_found")
        problem(content(argusd, path), 404, "not_found")
    problem(put(argusd, "users/bob/x", b"x"), 404, "not_found")
    assert content(argusd, "users/bob/secret", token="bob").body == b"his"
    assert content(argusd, "users/bob/secret", token="admin").body == b"his"
    problem(content(argusd, "users/bob/secret", token="viewer"), 403, "forbidden")
    assert ask(argusd, "GET", "common", token="viewer").status == 200
    problem(ask(argusd, "DELETE", "common/once", token="viewer"), 403, "forbidden")


def test_jobs_are_read_only_and_for_who_sees_them(argusd):
    log = f"jobs/{argusd.done}/attempts/1/logs/driver.log"
    assert content(argusd, log).body == b"hello\n"
    names = [e["name"] for e in ask(argusd, "GET", f"jobs/{argusd.done}").json()["entries"]]
    assert {"attempts", "logs", "meta.json"} <= set(names)
    problem(content(argusd, log, token="bob"), 404, "not_found")
    problem(ask(argusd, "GET", f"jobs/{argusd.done}", token="bob"), 404, "not_found")
    problem(ask(argusd, "GET", "jobs/none"), 404, "not_found")
    problem(ask(argusd, "DELETE", log), 403, "forbidden")
    problem(put(argusd, f"jobs/{argusd.done}/x", b"x"), 403, "forbidden")
    closed = on_disk(argusd, f"jobs/{argusd.done}/closed")
    closed.write_text("a secret")
    closed.chmod(0o600)
    problem(content(argusd, f"jobs/{argusd.done}/closed"), 403, "forbidden")


# ---- ways out ----


def test_ways_out(argusd):
    home = on_disk(argusd, "users/alice")
    for name, to in (("etc", "/etc/passwd"), ("his", "../bob/secret"), ("up", "../.."), ("proc", "/proc/self/root")):
        (home / name).symlink_to(to)
        problem(content(argusd, f"users/alice/{name}"), 403, "forbidden")
        problem(ask(argusd, "GET", f"users/alice/{name}"), 403, "forbidden")
        problem(put(argusd, f"users/alice/{name}/x", b"x", parents=True), 403, "forbidden")
    (home / "his_dir").symlink_to("../bob")
    problem(put(argusd, "users/alice/his_dir/planted", b"x"), 403, "forbidden")
    problem(ask(argusd, "DELETE", "users/alice/his_dir/secret"), 403, "forbidden")
    assert on_disk(argusd, "users/bob/secret").read_text() == "his"
    assert ask(argusd, "DELETE", "users/alice/his_dir").status == 200  # the link itself
    assert on_disk(argusd, "users/bob/secret").exists()
    for path in ("/etc/passwd", "argus/uploads", "hf/x", "users", "jobs", "../x", "/", "store.db"):
        reply = ask(argusd, "GET", path)
        assert reply.status in (400, 403), (path, reply)
        if path != "/":
            assert content(argusd, path).status in (400, 403)
    os.mkfifo(home / "fifo")
    problem(content(argusd, "users/alice/fifo"), 400, "bad_request")


@pytest.mark.parametrize("path", [
    "common/../users/bob/secret", "common/.", "common/..", "common/a\nb", "common/a\x01", "common/" + "x" * 256,
    "common" + "/d" * 65, "common/" + "x/" * 1000,
])  # fmt: skip
def test_hostile_names(argusd, path):
    for method in ("GET", "DELETE"):
        problem(ask(argusd, method, path), 400, "bad_request")
    problem(put(argusd, path, b"x", parents=True), 400, "bad_request")


def test_hostile_bytes(argusd):
    for raw in ("common/%ff", "common/%00", "common/%c0%af", "common/%7f", "common/%ed%a0%80"):
        assert argusd.call("GET", f"/v1/files?path={raw}", token="user").status == 400
    for path in (None, 7, ""):
        assert argusd.call("POST", "/v1/files", {"path": path, "upload": "x"}, token="user").status in (400, 403)
    for fixture in ("common/datasets", "users/alice/code", "users/alice", "common"):
        assert ask(argusd, "DELETE", fixture, "&recursive=1").status in (400, 409), fixture
        assert on_disk(argusd, fixture).exists()


def test_names_that_jobs_made(argusd):
    """Listed, however odd; removed with their directory."""
    folder = on_disk(argusd, "common/odd")
    folder.mkdir()
    for name in (b"\xff\xfe", b"line\nend", b"\x1b[31m"):
        os.close(os.open(os.path.join(os.fsencode(folder), name), os.O_CREAT | os.O_WRONLY))
    entries = ask(argusd, "GET", "common/odd").json()["entries"]
    assert len(entries) == 3
    assert all(e["odd"] for e in entries)
    assert ask(argusd, "DELETE", "common/odd", "&recursive=1").json()["removed"] == 4


def test_a_root_that_is_away(argusd):
    away = argusd.root.with_name("away")
    made = upload(argusd, b"x")
    argusd.root.rename(away)
    try:
        problem(ask(argusd, "GET", "common"), 503, "unavailable")
        problem(content(argusd, "common/once"), 503, "unavailable")
        reply = argusd.call("POST", "/v1/files", {"path": "common/x", "upload": made}, token="user")
        problem(reply, 503, "unavailable")
        problem(ask(argusd, "DELETE", "common/once"), 503, "unavailable")
    finally:
        if argusd.root.exists():
            argusd.root.rename(argusd.root.with_name("wrong"))
        away.rename(argusd.root)
    until(lambda: ask(argusd, "GET", "common").status == 200, "the root is there again")
    form = {"path": "common/x", "upload": made}
    until(lambda: argusd.call("POST", "/v1/files", form, token="user").status == 201, "and takes what is put there")


def test_files_are_the_first_that_a_new_user_brings(argusd):
    """Before a job or a token made their directories: somebody else's are not made by looking."""
    argusd.stop()
    argusd.tokens["new"] = argusd.init("--user", "new", "--role", "user")
    argusd.start()
    problem(ask(argusd, "GET", "users/new", token="bob"), 404, "not_found")
    assert not (argusd.root / "users/new").exists()
    names = [e["name"] for e in ask(argusd, "GET", "users/new", token="new").json()["entries"]]
    assert sorted(names) == ["code", "datasets", "models"]
