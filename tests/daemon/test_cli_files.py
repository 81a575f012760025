# SPDX-License-Identifier: Apache-2.0
"""argus files against the real argusd, over a network that cuts connections."""

import json
import os
import socket
import subprocess
import threading

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd


class Proxy:
    """Forwards to a port, and cuts a connection after so many bytes each way; the last limit stays."""

    def __init__(self, port):
        self.port, self.limits, self.lock = port, [], threading.Lock()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            with self.lock:
                limit = self.limits.pop(0) if self.limits else 1 << 40
            there = socket.create_connection(("127.0.0.1", self.port))
            for a, b in ((client, there), (there, client)):
                threading.Thread(target=self.pump, args=(a, b, limit), daemon=True).start()

    @staticmethod
    def pump(a, b, limit):
        try:
            while limit > 0 and (data := a.recv(min(limit, 65536))):
                b.sendall(data)
                limit -= len(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Hands:
    def __init__(self, argusd, home):
        self.argusd, self.home, self.proxy = argusd, home, Proxy(argusd.port)

    def argus(self, *args, token="user", url=None, **more):
        env = {"ARGUS_URL": url or self.argusd.url, "ARGUS_TOKEN": self.argusd.tokens[token], "PATH": "/usr/bin:/bin"}
        env["XDG_CACHE_HOME"] = str(self.home / ".cache")
        argv = [PROGRAMS["argus"], "files", *map(str, args)]
        return subprocess.run(argv, env=env, cwd=self.home, capture_output=True, **more)

    def well(self, *args, **more):
        done = self.argus(*args, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def badly(self, status, *args, **more):
        done = self.argus(*args, **more)
        assert done.returncode == status, (done.returncode, done.stderr)
        return done.stderr.decode()


@pytest.fixture(scope="module")
def hands(tmp_path_factory):
    home = tmp_path_factory.mktemp("hands")
    with FakeRay() as ray:
        ray.listen(False)
        with Argusd(tmp_path_factory.mktemp("argusd"), ray.url) as argusd:
            until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "the root is ready")
            (argusd.root / "users/alice/datasets").mkdir(parents=True, exist_ok=True)
            yield Hands(argusd, home)


def test_there_and_back(hands):
    data = os.urandom(300_001)
    (hands.home / "a b.bin").write_bytes(data)
    said = hands.well("put", "a b.bin", "users/alice/datasets/deep/er/", "-p")
    assert said == b"users/alice/datasets/deep/er/a b.bin\n"
    assert (hands.argusd.root / "users/alice/datasets/deep/er/a b.bin").read_bytes() == data
    hands.well("get", "users/alice/datasets/deep/er/a b.bin", "back")
    assert (hands.home / "back").read_bytes() == data
    assert hands.well("get", "users/alice/datasets/deep/er/a b.bin", "-") == data
    table = hands.well("ls", "users/alice/datasets/deep/er").decode()
    assert "a b.bin" in table
    assert "293KiB" in table
    entries = json.loads(hands.well("ls", "users/alice/datasets/deep/er", "-o", "json"))["entries"]
    assert [(e["name"], e["bytes"]) for e in entries] == [("a b.bin", len(data))]
    assert "users/alice/" in hands.well("ls").decode()
    assert "recursive" in hands.badly(5, "rm", "users/alice/datasets/deep")
    assert hands.well("rm", "-r", "users/alice/datasets/deep") == b"users/alice/datasets/deep removed (3)\n"


def test_stdin_and_empty(hands):
    hands.well("put", "-", "common/piped", input=b"from a pipe")
    assert hands.well("get", "common/piped", "-") == b"from a pipe"
    hands.well("put", "/dev/null", "common/empty")
    hands.well("get", "common/empty")
    assert (hands.home / "empty").read_bytes() == b""


def test_nothing_is_replaced_unless_told(hands):
    (hands.home / "f").write_text("one")
    hands.well("put", "f", "common/f")
    (hands.home / "f").write_text("two")
    assert "--force" in hands.badly(5, "put", "f", "common/f")
    assert (hands.argusd.root / "common/f").read_text() == "one"
    assert "--force" in hands.badly(5, "get", "common/f")
    assert (hands.home / "f").read_text() == "two"
    hands.well("put", "-f", "f", "common/f")
    assert (hands.argusd.root / "common/f").read_text() == "two"
    (hands.argusd.root / "common/f").write_text("three")
    hands.well("get", "--force", "common/f")
    assert (hands.home / "f").read_text() == "three"


def test_cuts_in_the_middle(hands):
    """Each cut costs a pause and no byte: what the server has is not sent again."""
    data = os.urandom(2_000_000)
    (hands.home / "cut").write_bytes(data)
    # the look at the goal, the list, the beginning; then parts that are cut
    hands.proxy.limits = [1 << 20, 700_000, 900_000]
    done = hands.argus("put", "cut", "common/cut", url=hands.proxy.url)
    assert done.returncode == 0, done.stderr
    assert b"going on" in done.stderr
    assert (hands.argusd.root / "common/cut").read_bytes() == data
    hands.proxy.limits = [700_000, 900_000]
    done = hands.argus("get", "common/cut", "cut_back", url=hands.proxy.url)
    assert done.returncode == 0, done.stderr
    assert b"going on" in done.stderr
    assert (hands.home / "cut_back").read_bytes() == data
    assert not list(hands.home.glob("*.part")) + list(hands.home.glob(".*.part"))


def test_another_call_goes_on(hands):
    """A half-sent upload, as of a client that died, is found by its first bytes and gone on with."""
    data = os.urandom(1_500_000)
    (hands.home / "again").write_bytes(data)
    call = hands.argusd.call
    half = call("POST", "/v1/uploads", {"name": "again", "bytes": len(data)}, token="user").json()["id"]
    path = f"/v1/uploads/{half}?offset=0"
    call("PUT", path, data[:1_000_000], token="user", Content_Type="application/octet-stream")
    other = call("POST", "/v1/uploads", {"name": "again", "bytes": len(data)}, token="user").json()["id"]
    path = f"/v1/uploads/{other}?offset=0"
    call("PUT", path, b"x" * 500_000, token="user", Content_Type="application/octet-stream")
    done = hands.argus("put", "again", "common/again")
    assert done.returncode == 0, done.stderr
    assert b"going on at 1000000 of 1500000" in done.stderr
    assert (hands.argusd.root / "common/again").read_bytes() == data
    assert call("GET", f"/v1/uploads/{other}", token="user").json()["offset"] == 500_000
    # and a part of a file that was brought down
    etag = call("GET", "/v1/files?path=common/again", token="user").json()["etag"]
    (hands.home / f".down.{etag}.part").write_bytes(data[:700_000])
    done = hands.argus("get", "common/again", "down")
    assert b"going on at 700000" in done.stderr
    assert (hands.home / "down").read_bytes() == data


def test_exit_codes(hands):
    (hands.home / "x").write_text("x")
    hands.badly(4, "get", "common/none", "y")
    hands.badly(4, "ls", "users/bob")
    hands.badly(4, "rm", "common/none")
    hands.badly(3, "rm", "common/f", token="viewer")
    hands.badly(3, "ls", "argus/bin")
    hands.badly(2, "ls", "common/../users")
    hands.badly(2, "put", "none", "common/y")
    hands.badly(2, "put", "x")
    hands.badly(6, "ls", "common", url="http://127.0.0.1:1")
    assert "snapshot" in hands.badly(2, "put", ".", "common/y")
    assert "-r" in hands.badly(2, "get", "common")
    hands.badly(2, "get", "-r", "common", "-")
    hands.badly(2, "get", "-r", "common/f", "y")
    hands.badly(4, "get", "-r", "common/none", "y")
    hands.badly(2, "put", "-r", "x", "common/y")
    hands.badly(2, "put", "-r", ".", "common/")
    hands.badly(5, "put", "x", "common/datasets")
    assert not (hands.home / "y").exists()


def grow(top, files):
    for rel, text in files.items():
        path = top / rel
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def content(top):
    return {str(p.relative_to(top)): p.read_text() for p in top.rglob("*") if p.is_file() and not p.is_symlink()}


TREE = {"a": "1", "b/c": "22", "b/d e/f.txt": "", "z": "333"}


def test_a_directory_there_and_back(hands):
    grow(hands.home / "tree", TREE)
    (hands.home / "tree/b/link").symlink_to("../a")
    (hands.home / "tree/empty").mkdir()
    done = hands.argus("put", "-r", "tree/", "users/alice/new/")
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().splitlines() == [f"users/alice/new/tree/{p}" for p in sorted(TREE)]
    assert b"'tree/b/link' is left out" in done.stderr and b"4 files, 6B" in done.stderr
    there = hands.argusd.root / "users/alice/new/tree"
    assert content(there) == TREE
    # some more that no directory here can take, or that leads out of it
    (there / "out").symlink_to(hands.argusd.root / "common")
    (there / "odd\nname").write_text("x")
    done = hands.argus("get", "-r", "users/alice/new/tree", "bag/")
    assert done.returncode == 2, done.stderr  # bag/ is not there
    (hands.home / "bag").mkdir()
    done = hands.argus("get", "-r", "users/alice/new/tree", "bag/")
    assert done.returncode == 0, done.stderr
    assert content(hands.home / "bag/tree") == TREE
    assert b"4 files, 6B" in done.stderr and b"2 left out" in done.stderr
    # what is there already does not come again, and what differs is not replaced unless told
    (there / "a").write_text("one")
    (there / "b/new").write_text("new")
    said = hands.badly(5, "get", "-r", "users/alice/new/tree", "bag/tree")
    assert "bag/tree/a" in said and "--force" in said
    done = hands.argus("get", "-rf", "users/alice/new/tree", "bag/tree")
    assert done.returncode == 0, done.stderr
    assert content(hands.home / "bag/tree") == {**TREE, "a": "one", "b/new": "new"}
    assert b"2 files, 6B" in done.stderr and b"3 more were there already" in done.stderr


def test_a_directory_over_a_link_that_stands_in_the_way(hands):
    grow(hands.argusd.root / "common/way", {"d/f": "theirs"})
    (hands.home / "elsewhere").mkdir()
    (hands.home / "way").mkdir()
    (hands.home / "way/d").symlink_to(hands.home / "elsewhere")
    hands.badly(2, "get", "-r", "common/way")
    assert not list((hands.home / "elsewhere").iterdir())


def test_an_ended_put_of_a_directory_goes_on(hands):
    grow(hands.home / "long", TREE)
    grow(hands.argusd.root / "common/long", {"b/d e/f.txt": "somebody's"})
    said = hands.badly(5, "put", "-r", "long", "common/long")
    assert "b/d e/f.txt" in said and "2 files" in said
    (hands.argusd.root / "common/long/b/d e/f.txt").unlink()
    (hands.home / "long/a").write_text("changed meanwhile")
    said = hands.badly(5, "put", "-r", "long", "common/long")
    assert "common/long/a" in said  # it is another one now
    (hands.argusd.root / "common/long/a").unlink()
    done = hands.argus("put", "-r", "long", "common/long")
    assert done.returncode == 0, done.stderr
    assert b"3 files" in done.stderr and b"1 more was there already" in done.stderr
    assert content(hands.argusd.root / "common/long") == {**TREE, "a": "changed meanwhile"}
    assert not list((hands.home / ".cache/argus").glob("*.put"))
    assert "--force" in hands.badly(5, "put", "-r", "long", "common/long")  # all of it is done: as of one file


def test_data_upload(hands):
    """Files become a data set where they lie; what the registry refuses leaves no bytes."""
    (hands.home / "train.jsonl").write_text('{"prompt": "a"}\n')
    (hands.home / "test.jsonl").write_text('{"prompt": "b"}\n')
    argv = [PROGRAMS["argus"], "data", "upload", "train.jsonl", "test.jsonl", "--name"]
    env = {"ARGUS_URL": hands.argusd.url, "ARGUS_TOKEN": hands.argusd.tokens["user"], "PATH": "/usr/bin:/bin"}
    done = subprocess.run([*argv, "mine"], env=env, cwd=hands.home, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ref, job = done.stdout.split()
    assert ref == "mine@1"
    view = hands.argusd.get(f"/v1/datasets/{ref}", token="user")
    assert (view["job"], view["in_place"]) == (job, True)
    folder = hands.argusd.root / "users/alice/datasets/mine"
    (upload,) = folder.iterdir()
    assert view["path"] == str(upload)
    assert (upload / "train.jsonl").read_text() == '{"prompt": "a"}\n'
    done = subprocess.run([*argv, "no good name"], env=env, cwd=hands.home, capture_output=True, text=True)
    assert done.returncode == 5, done.stderr
    assert not (hands.argusd.root / "users/alice/datasets/no good name").exists()
