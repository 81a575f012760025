# SPDX-License-Identifier: Apache-2.0
"""A memory limit around a whole host of a bed, as a container engine sets one (cgroup version 1, root).

    with cages(bed, {"h2": 3 << 30}):     before anything is started there; gone again once the host is
"""

import contextlib
import os
import pathlib

from fakeray import wait_for

MOUNT = pathlib.Path("/sys/fs/cgroup/memory")

INTO = """
for p in /proc/[0-9]*; do echo "${p#/proc/}" >"$0/cgroup.procs" 2>/dev/null || true; done
mount --bind "$0" "$1"
"""


def possible():
    return os.getuid() == 0 and (MOUNT / "memory.limit_in_bytes").exists() and os.access(MOUNT, os.W_OK)


def remove(group):
    """Once its last process is gone; the kernel may take a moment for that."""

    def is_gone():
        with contextlib.suppress(OSError):
            group.rmdir()
        return not group.exists()

    wait_for(is_gone, f"{group} can be removed")


@contextlib.contextmanager
def cages(bed, limits):
    groups = {host: MOUNT / f"{pathlib.Path(bed.dir).name}-{host}" for host in limits}
    try:
        for host, group in groups.items():
            group.mkdir()
            (group / "memory.limit_in_bytes").write_text(str(limits[host]))
            bed.on(host, "sh", "-c", INTO, str(group), str(MOUNT))
        yield
    finally:
        for group in groups.values():
            if group.exists():
                remove(group)
