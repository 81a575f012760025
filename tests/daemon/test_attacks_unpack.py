# SPDX-License-Identifier: Apache-2.0
"""A job on the shared root against argusd that unpacks there: it swaps directories for links and edits what it finds,
in a process of its own, until it would have won. Nothing outside the root changes and no command of its runs."""

import hashlib
import os
import struct
import subprocess
import zlib

import pytest
from attack import attacker
from fakeray import FakeRay
from snapshots import add, tar

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd
ROUNDS, FILLERS = 4, 8000

# Each prints a line when it has done it once.
SWAPPER = """
import glob, os, sys
root, victim = sys.argv[1:]
done = set()
while True:
    for tree in glob.glob(root + "/argus/snapshots/.new-*/tree"):
        try:
            if tree not in done and os.path.isdir(tree + "/a"):
                os.rename(tree + "/a", tree + "/a.x")
                os.symlink(victim, tree + "/a")
                done.add(tree)
                print(tree, flush=True)
        except OSError:
            pass
"""
EDITOR = """
import glob, os, sys
root, marker = sys.argv[1:]
seen = set()
while True:
    for stage in glob.glob(root + "/argus/snapshots/.new-*"):
        if stage not in seen:
            seen.add(stage)
            print(stage, flush=True)
        for config in glob.glob(stage + "/**/config", recursive=True):
            try:
                with open(config, "a") as f:
                    f.write('[filter "x"]\\n smudge = "id >' + marker + '; cat"\\n')
            except OSError:
                pass
"""


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("attacks"), ray.url) as argusd:
        argusd.wait_over(argusd.submit("true"))  # the root was looked at
        yield argusd


def test_a_directory_that_becomes_a_link_leads_nowhere(argusd, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    files = {"a/0": "first", **{f"f/{i}": str(i) for i in range(FILLERS)}}
    files |= {f"a/b/{i}": "deep" for i in range(50)} | {"a/pwn": "* * * * * root id\n", "a/link": ("l", "0")}
    with attacker(SWAPPER, argusd.root, victim) as line:
        swapped = 0
        for i in range(ROUNDS):
            reply = add(argusd, f"swap@{i}", tar({**files, "a/round": str(i)}))
            assert reply.status < 500 or reply.json().get("detail"), reply
            swapped += bool(line())
            assert list(victim.iterdir()) == []
            assert victim.stat().st_mode & 0o777 == victim.parent.stat().st_mode & 0o777 | 0o055
        assert swapped, "it never was in time: this shows nothing"


def git(repo, *argv):
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *who, *argv], cwd=repo, check=True, stdout=subprocess.DEVNULL)


def test_a_repository_that_a_job_edits_runs_nothing(argusd, tmp_path):
    repo, marker = tmp_path / "repo", tmp_path / "pwned"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    (repo / ".gitattributes").write_text("* filter=x\n")
    (repo / "a").write_text("text\n")
    (repo / "large").write_bytes(os.urandom(24 << 20))
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "one")
    git(repo, "bundle", "create", str(tmp_path / "code.bundle"), "--all")
    with attacker(EDITOR, argusd.root, marker) as line:
        for i in range(ROUNDS):
            reply = add(argusd, f"edit@{i}", (tmp_path / "code.bundle").read_bytes())
            assert reply.status in (200, 201), reply
            until(line, "it saw the place where the snapshot is made")
            assert not marker.exists()
    left = lambda: [p.name for p in argusd.state_dir.iterdir() if p.name.startswith("git-")]  # noqa: E731
    until(lambda: left() == [], "nothing of it is left")


def packed(kind, data, size=None, base=b""):
    """An object of a pack: its type and size, then its bytes."""
    n = len(data) if size is None else size
    head, n = [kind << 4 | n & 15], n >> 4
    while n:
        head[-1] |= 0x80
        head.append(n & 0x7F)
        n >>= 7
    return bytes(head) + base + zlib.compress(data, 9)


def number(n):
    out = b""
    while n > 0x7F:
        out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
    return out + bytes([n])


def delta_bomb(copies):
    """A bundle of a few KiB: a file of zeros, and one that is made of it over and over."""
    zeros, once = bytes(16 << 20), (16 << 20) - 1
    name = hashlib.sha1(b"blob %d\0" % len(zeros) + zeros).digest()
    delta = number(len(zeros)) + number(copies * once) + (b"\xf0" + once.to_bytes(3, "little")) * copies
    pack = b"PACK" + struct.pack(">II", 2, 2) + packed(3, zeros) + packed(7, delta, base=name)
    pack += hashlib.sha1(pack).digest()
    return b"# v2 git bundle\n" + name.hex().encode() + b" refs/heads/main\n\n" + pack


def test_a_small_pack_that_unfolds_to_gigabytes_is_refused(argusd):
    bomb = delta_bomb(100)
    assert len(bomb) < 64 << 10
    reply = add(argusd, "bomb@1", bomb)
    assert reply.status == 422 or reply.status == 400, reply
    assert "memory to unfold" in reply.json()["detail"], reply


def test_objects_of_a_bundle_are_checked(argusd, tmp_path):
    """A tree with one name twice, which 'git bundle unbundle' takes without a word."""
    blob = b"text\n"
    of = hashlib.sha1(b"blob 5\0" + blob).digest()
    tree = b"100644 a\0" + of + b"100644 a\0" + of
    root = hashlib.sha1(b"tree %d\0" % len(tree) + tree).hexdigest()
    who = "t <t@example.org> 1700000000 +0000"
    commit = f"tree {root}\nauthor {who}\ncommitter {who}\n\none\n".encode()
    name = hashlib.sha1(b"commit %d\0" % len(commit) + commit).hexdigest()
    pack = b"PACK" + struct.pack(">II", 2, 3) + packed(3, blob) + packed(2, tree) + packed(1, commit)
    pack += hashlib.sha1(pack).digest()
    reply = add(argusd, "twice@1", b"# v2 git bundle\n" + name.encode() + b" HEAD\n\n" + pack)
    assert reply.status in (400, 422), reply
    assert "duplicateEntries" in reply.json()["detail"], reply
