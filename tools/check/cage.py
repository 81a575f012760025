#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command so that nothing that it starts outlives it.

    cage.py COMMAND...      its exit status is the command's

As root the command runs in a pid, mount, network and ipc namespace of its own: the kernel ends all that is in there
when its first process ends, and that one ends when this program does, by SIGKILL too. A port of it is no port of the
machine. Its /tmp is an empty folder that goes with it, unless the command, its home or its folder lies below /tmp;
ARGUS_KEEP_TMP=1 keeps it. (TMPDIR would not do: with it, all hosts of a bed have one directory of Ray's.)
Elsewhere this program adopts the orphans of the command and ends them; after a SIGKILL of this program they stay.
"""

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "bed"))
import procs  # noqa: E402

PREFIX = "argus-run-"
LOCK = "lock"
NAMESPACES = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "--net", "--ipc"]
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None, use_errno=True)


def end_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def may_hide_tmp():
    """Nothing that the run needs lies below /tmp."""
    needed = [os.getcwd(), os.path.expanduser("~"), sys.executable, os.environ.get("XDG_CACHE_HOME", "/")]
    return not any(os.path.realpath(path).startswith("/tmp/") for path in needed)


def has_namespaces():
    if os.getuid() != 0 or not shutil.which("unshare") or not shutil.which("ip"):
        return False
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.run([*NAMESPACES, "ip", "link", "set", "lo", "up"], **quiet).returncode == 0


# ---- temporary files -------------------------------------------------------------------------------------------------


def is_held(path):
    """Whether a process lives that holds the lock: it says so without a number that another process may have by now."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


def remove_left():
    """The folders of this user's runs that were killed."""
    for entry in os.scandir("/tmp"):
        if not entry.name.startswith(PREFIX) or not entry.is_dir(follow_symlinks=False):
            continue
        with contextlib.suppress(FileNotFoundError):
            if entry.stat(follow_symlinks=False).st_uid == os.getuid() and not is_held(f"{entry.path}/{LOCK}"):
                shutil.rmtree(entry.path, ignore_errors=True)


@contextlib.contextmanager
def own_folder():
    """Made under a name that no cleaning knows, and named when its lock is held."""
    made = tempfile.mkdtemp(prefix="argus-new-", dir="/tmp")
    with open(os.path.join(made, LOCK), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = os.path.join("/tmp", PREFIX + os.path.basename(made).removeprefix("argus-new-"))
        os.rename(made, folder)
        try:
            yield folder
        finally:
            if os.environ.get("ARGUS_KEEP_TMP"):
                print(f"cage: its /tmp is {folder}", file=sys.stderr)
            else:
                shutil.rmtree(folder, ignore_errors=True)


# ---- the run ---------------------------------------------------------------------------------------------------------


def name_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read(300).replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def tell_left(left):
    for who in left:
        if name := name_of(who["pid"]):
            print(f"cage: left running and ended: {who['pid']} {name[:120]}", file=sys.stderr)


def first_process(tmp, argv):
    """What runs as the first process of the namespaces: it reaps all, and ends with the command's status."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    if tmp:
        subprocess.run(["mount", "--bind", tmp, "/tmp"], check=True)
    child = subprocess.Popen(argv)

    def pass_on(number, _frame):
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            tell_left(procs.tree(os.getpid()))
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def run(argv, caged, tmp=""):
    """Caged: in namespaces, where `tmp` is what the command sees as /tmp, "" for the machine's own."""
    if caged:
        argv = [*NAMESPACES, sys.executable, os.path.abspath(__file__), "--first", tmp, *argv]
    else:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = subprocess.Popen(argv, preexec_fn=end_with_parent)
    stopped = []

    def stop(number, _frame):
        stopped.append(number)
        child.kill()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    code = child.wait()
    if not caged:
        tell_left(procs.tree(os.getpid()))
        procs.kill_all(lambda: procs.tree(os.getpid()))
    return 128 + stopped[0] if stopped else code if code >= 0 else 128 - code


def main(argv):
    if argv[:1] == ["--first"]:
        first_process(argv[1], argv[2:])
    if not argv:
        sys.exit("usage: cage.py COMMAND...")
    remove_left()
    caged = has_namespaces()
    if not caged or not may_hide_tmp():
        return run(argv, caged)
    with own_folder() as folder:
        inside = os.path.join(folder, "tmp")
        os.mkdir(inside)
        os.chmod(inside, 0o1777)
        return run(argv, caged, inside)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
