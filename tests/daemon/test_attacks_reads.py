# SPDX-License-Identifier: Apache-2.0
"""A job makes files below the root that reach further than argusd wants to read, or that hold whoever opens them:
others are served all the while, and argusd ends when it is told to."""

import contextlib
import ctypes
import http.client
import os
import stat
import threading

import pytest
from fakeray import FakeRay
from preload import held, needs_compiler
from snapshots import added, tar

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd
FAR = 15 << 40  # days of reading
MANY = 16  # as many as argusd has threads

# Whoever looks at this name is held until the test is over.
HOLDS = r"""
#include <sys/stat.h>
int fstatat64(int dir, const char *name, struct stat64 *ret, int flags)
{
    int (*real)(int, const char *, struct stat64 *, int) = dlsym(RTLD_NEXT, "fstatat64");
    if (strcmp(name, "holds-who-looks") == 0) hold();
    return real(dir, name, ret, flags);
}
int fstatat(int dir, const char *name, struct stat *ret, int flags)
{
    int (*real)(int, const char *, struct stat *, int) = dlsym(RTLD_NEXT, "fstatat");
    if (strcmp(name, "holds-who-looks") == 0) hold();
    return real(dir, name, ret, flags);
}
"""


@pytest.fixture
def w(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        argusd.ray = ray
        people(argusd)
        yield argusd


def people(argusd):
    until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "the root is ready")
    argusd.call("POST", "/v1/users", {"name": "bob"})
    argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]


def begun(argusd, size, token="user"):
    reply = argusd.call("POST", "/v1/uploads", {"name": "a file", "bytes": size}, token=token)
    assert reply.status == 201, reply
    return reply.json()["id"]


def put(argusd, upload, offset, data, token="user"):
    path = f"/v1/uploads/{upload}?offset={offset}"
    return argusd.call("PUT", path, data, token=token, Content_Type="application/octet-stream")


def at_once(calls):
    """All of them beside each other, without waiting."""
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    for t in threads:
        t.start()
    return threads


def test_uploads_that_a_job_made_far_larger(w):
    """The hash of what came is argusd's own: neither a forged state nor the length of the file is believed."""
    uploads = [begun(w, 10) for _ in range(MANY)]
    for upload in uploads:
        assert put(w, upload, 0, b"abc").json()["offset"] == 3
        there = w.root / "argus/uploads" / upload
        os.truncate(there / "data", FAR)
        (there / "state").write_bytes(b"argusup1" + bytes(160))
    replies = []
    hers = at_once([lambda u=u: replies.append(put(w, u, 3, b"d")) for u in uploads])
    theirs = begun(w, 4, token="bob")
    assert put(w, theirs, 0, b"bobs", token="bob").json()["state"] == "complete"
    for t in hers:
        t.join()
    assert [(r.status, r.json()["offset"]) for r in replies] == [(200, 4)] * MANY
    for upload in uploads:
        os.truncate(w.root / "argus/uploads" / upload / "data", FAR)
    w.restart()
    until(lambda: w.get("/readyz")["shared_root"] == "ok", "the root is ready")
    looks = at_once([lambda u=u: w.get(f"/v1/uploads/{u}", token="user") for u in uploads])
    w.wait_over(w.submit("true"))
    for t in looks:
        t.join()
    assert {w.get(f"/v1/uploads/{u}", token="user")["offset"] for u in uploads} == {4}
    assert put(w, uploads[0], 4, b"efghij").json()["state"] == "complete"
    assert (w.root / "argus/uploads" / uploads[0] / "data").read_bytes() == b"abcdefghij"


def test_an_upload_that_grew_is_no_snapshot(w):
    data = tar({"a": "x"})
    upload = begun(w, len(data))
    assert put(w, upload, 0, data).json()["state"] == "complete"
    os.truncate(w.root / "argus/uploads" / upload / "data", FAR)
    reply = w.call("POST", "/v1/snapshots", {"name": "grown@1", "upload": upload}, token="user")
    assert "somebody changed it" in reply.json()["detail"], reply


def test_a_snapshot_whose_file_a_job_made_far_larger(w):
    """Its manifest says how long each file is: a file of another length is not read."""
    made = added(w, "far@1", tar({"code.py": "x = 1\n"}))
    code = w.root / "argus/snapshots" / made["hash"] / "tree/code.py"
    code.chmod(0o644)
    os.truncate(code, FAR)
    jobs = [w.submit("true", code="far@1") for _ in range(MANY)]
    w.wait_over(w.submit("true", token="bob"))
    assert w.get("/readyz")["shared_root"] == "ok"
    for job in jobs:
        assert "code.py" in str(w.wait_over(job)), w.job(job)
    w.stop()


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_what_is_no_file_is_not_opened(w, kind):
    """A named pipe or a device in the place of a log, of a job's and of a user's file: argusd looks at it and leaves
    it. Opening alone can hold whoever does, or reset a machine by its watchdog."""
    job = w.submit("echo said")
    w.wait_over(job)
    places = {
        w.job_dir(job) / "attempts/1/logs/driver.log": f"/v1/jobs/{job}/logs",
        w.job_dir(job) / "meta.json": f"/v1/files/content?path=jobs/{job}/meta.json",
        w.root / "users/alice/thing": "/v1/files/content?path=users/alice/thing",
    }
    for place, path in places.items():
        place.unlink(missing_ok=True)
        put_odd(place, kind)
        seen = opens_of(place)
        assert w.call("GET", path, token="user").status in (200, 400, 403, 404, 503), path
        assert seen() == 0, place
    w.wait_over(w.submit("true", token="bob"))


def put_odd(place, kind):
    place.parent.mkdir(parents=True, exist_ok=True)
    if kind == "fifo":
        os.mkfifo(place, 0o644)
        return
    try:
        os.mknod(place, 0o644 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("this user makes no devices")


def opens_of(path):
    """How often it was opened from now on, as the kernel tells."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_NONBLOCK)
    assert libc.inotify_add_watch(fd, str(path).encode(), 0x20) >= 0  # IN_OPEN

    def count():
        try:
            return len(os.read(fd, 65536)) // 16
        except BlockingIOError:
            return 0
        finally:
            os.close(fd)

    return count


def listed(argusd):
    with contextlib.suppress(OSError, http.client.HTTPException):  # argusd ends meanwhile
        argusd.ask("GET", "/v1/files?path=users/alice/folder", None, "user", {})


@needs_compiler
def test_it_ends_while_the_root_holds_its_threads(tmp_path):
    """Whatever the root does: the calls cannot be taken back, and are not waited for. What was stored is there."""
    with FakeRay(state=tmp_path / "ray") as ray:
        argusd = Argusd(tmp_path, ray.url)
        argusd.env = held(tmp_path, HOLDS)
        with argusd:
            people(argusd)
            folder = argusd.root / "users/alice/folder"
            folder.mkdir(parents=True)
            (folder / "holds-who-looks").touch()
            hers = at_once([lambda: listed(argusd)] * MANY)
            until((tmp_path / "held").exists, "somebody is held")
            job = argusd.submit("true", token="bob")
            argusd.wait_over(job)
            upload = begun(argusd, 4, token="bob")
            assert put(argusd, upload, 0, b"bobs", token="bob").json()["state"] == "complete"
            argusd.stop()
            (tmp_path / "free").touch()
            for t in hers:
                t.join()
            argusd.start()
            assert argusd.job(job)["state"] == "SUCCEEDED"
            assert argusd.get(f"/v1/uploads/{upload}", token="bob")["state"] == "complete"
