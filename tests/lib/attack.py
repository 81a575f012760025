# SPDX-License-Identifier: Apache-2.0
"""What tests of attacks by way of the shared root share: a process that attacks, a place that must stay as it is."""

import contextlib
import os
import stat
import subprocess
import sys

from argusd import until

# Makes PATH a link to VICTIM and then again what it was, in one step each way, over and over. Says once that it began.
FLIPPER = """
import ctypes, os, sys
path, victim = sys.argv[1:]
link, turns = path + ".link", 0
swap = ctypes.CDLL(None).renameat2
os.symlink(victim, link)
while True:
    assert swap(-100, path.encode(), -100, link.encode(), 2) == 0
    turns += 1
    if turns == 1000:
        print("it has begun", flush=True)
"""


@contextlib.contextmanager
def attacker(program, *args):
    """Its lines, as they come."""
    argv = [sys.executable, "-c", program, *map(str, args)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        os.set_blocking(process.stdout.fileno(), False)
        try:
            yield lambda: process.stdout.readline()
            assert process.poll() is None, "the attacker gave up: this shows nothing"
        finally:
            process.kill()


@contextlib.contextmanager
def flipping(path, victim):
    """Swapped all the while; as it was afterwards."""
    link = path.with_name(path.name + ".link")
    with attacker(FLIPPER, path, victim) as line:
        until(line, "the swapping has begun")
        yield
    if path.is_symlink():
        path.unlink()
        link.rename(path)
    else:
        link.unlink()


def make_outside(path):
    """A directory of the head that no job can reach, and what is in it."""
    path.mkdir(mode=0o700)
    path.chmod(0o700)
    (path / "key").write_text("secret")
    (path / "key").chmod(0o600)
    return path


def untouched(outside):
    assert os.listdir(outside) == ["key"]
    assert (outside / "key").read_text() == "secret"
    assert [stat.S_IMODE(os.stat(p).st_mode) for p in (outside, outside / "key")] == [0o700, 0o600]
