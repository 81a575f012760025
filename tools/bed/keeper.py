#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ancestor of everything in one host of the bed, and the reaper of its orphans.

    keeper.py host CONF         pid 1 of a host with namespaces of its own: mounts, name, then reaping
    keeper.py loop RC CMD...    a host on a loopback address: runs CMD, writes its exit code to RC, then reaping

Ray's daemons leave their starter. They land here (as pid 1, or as the kernel's "child subreaper"), so that a
walk down from this process finds all that was started in the host, and nothing else.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36


def prepare_host(conf):
    """A host's own /dev/shm, /run, /tmp/ray, /etc/hosts and name; all other files are the machine's."""

    def mount(*args):
        subprocess.run(["mount", *args], check=True)

    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/dev/shm")
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    os.makedirs("/tmp/ray", exist_ok=True)
    mount("--bind", conf["tmp"], "/tmp/ray")
    mount("--bind", conf["hosts_file"], "/etc/hosts")
    socket.sethostname(conf["name"])
    with open(conf["ready"], "w") as f:
        f.write("ready\n")


def reap(first, rc_path):
    """Forever; the exit code of the first child is what the starter waits for."""
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            signal.pause()
            continue
        if pid == first:
            with open(rc_path + ".new", "w") as f:
                f.write(f"{os.waitstatus_to_exitcode(status)}\n")
            os.replace(rc_path + ".new", rc_path)


def main():
    signal.signal(signal.SIGCHLD, lambda *a: None)  # only so that pause() returns
    first, rc_path = None, None
    if sys.argv[1] == "host":
        with open(sys.argv[2]) as f:
            prepare_host(json.load(f))
    else:
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        rc_path = sys.argv[2]
        if sys.argv[3:]:
            first = subprocess.Popen(sys.argv[3:], start_new_session=True).pid
    reap(first, rc_path)


if __name__ == "__main__":
    main()
