# SPDX-License-Identifier: Apache-2.0
"""A disk that is soon full."""

import contextlib
import os
import subprocess

import pytest


@contextlib.contextmanager
def small_disk(place, size):
    """A memory file system of `size` ("2m") at `place`, made if need be; skips where none can be mounted."""
    place.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "argus-test", place]
    mounted = subprocess.run(mount, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small tmpfs: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def fill(disk, left):
    """A file that leaves so many bytes."""
    room, ballast = os.statvfs(disk), disk / "ballast"
    ballast.write_bytes(bytes(room.f_bavail * room.f_frsize - left))
    return ballast
