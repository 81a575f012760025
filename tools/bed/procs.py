# SPDX-License-Identifier: Apache-2.0
"""Processes by pid and start time: a pid alone may belong to somebody else by the time it is used."""

import os
import signal
import time


def stat(pid):
    """(state, parent, start time in ticks), or None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            fields = f.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return fields[0].decode(), int(fields[1]), int(fields[19])


def mark(pid):
    found = stat(pid)
    return {"pid": pid, "start": found[2] if found else 0}


def alive(who):
    found = stat(who["pid"]) if who else None
    return bool(found) and found[2] == who["start"] and found[0] not in "ZX"


def exe(pid):
    """The program that a process runs, "" when it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def tree(root, skip=()):
    """The living descendants of a process, as marks, without the subtrees of the pids in skip."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            found = stat(int(name))
            if found and found[0] not in "ZX":
                children.setdefault(found[1], []).append({"pid": int(name), "start": found[2]})
    out, todo = [], [root]
    while todo:
        for who in children.get(todo.pop(), []):
            if who["pid"] not in skip:
                out.append(who)
                todo.append(who["pid"])
    return out


def send(who, sig):
    if not alive(who):
        return False
    try:
        os.kill(who["pid"], sig)
    except ProcessLookupError:
        return False
    return True


def kill_all(find, seconds=10):
    """SIGKILL whatever find() returns until it returns nothing; the number of processes that were hit."""
    hit, end = set(), time.monotonic() + seconds
    while time.monotonic() < end:
        found = find()
        if not found:
            break
        for who in found:
            if send(who, signal.SIGKILL):
                hit.add((who["pid"], who["start"]))
        time.sleep(0.02)
    return len(hit)


def wait_gone(who, seconds):
    end = time.monotonic() + seconds
    while alive(who) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(who)


def wait_reaped(pid, seconds):
    """Until the keeper has taken notice of all its dead; otherwise they would be left to pid 1, which may not care."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as f:
                if not f.read().strip():
                    return
        except OSError:
            return
        time.sleep(0.02)
