# SPDX-License-Identifier: Apache-2.0
"""One attempt's directory and the real argus-shepherd in it, for the tests of both."""

import contextlib
import json
import os
import pathlib
import select
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHEPHERD = (
    pathlib.Path(os.environ["ARGUS_BIN"]) / "argus-shepherd"
    if os.environ.get("ARGUS_BIN")
    else pathlib.Path(os.environ.get("ARGUS_BUILD", ROOT / "build")) / "src/shepherd/argus-shepherd"
)
needs_shepherd = pytest.mark.skipif(not SHEPHERD.exists(), reason=f"{SHEPHERD} is not built")

DEADLINE = 120  # of whatever is waited for: far more than a loaded machine needs


def pause():
    select.select([], [], [], 0.02)


def is_outermost():
    """Whether the kernel's log has the numbers of processes that we have: in a namespace of its own it has others."""
    return os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"


def wait_for(condition, what):
    for _ in range(DEADLINE * 50):
        value = condition()
        if value:
            return value
        pause()
    raise AssertionError(f"waited in vain for {what}")


def encode(value: bytes):
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}


def is_running(pid: int) -> bool:
    """There and no zombie."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


class Attempt:
    def __init__(self, root: pathlib.Path):
        self.dir = root / "jobs" / "j1" / "attempts" / "1"
        (self.dir / "logs").mkdir(parents=True)
        self.log = self.dir / "logs" / "driver.log"
        self.process = None

    def launch(self, *argv, env=None, **more):
        text = {
            "version": 1, "job": "j1", "attempt": 1,
            "argv": [encode(os.fsencode(a)) for a in argv],
            "cwd": None, "env": {k: encode(os.fsencode(v)) for k, v in (env or {}).items()},
            "pythonpath_prefix": None, "stop_grace_s": 60, "beat_s": 0.1, "secrets": None,
        }  # fmt: skip
        text.update(more)
        (self.dir / "launch.json").write_text(json.dumps(text))
        return self

    def shell(self, script, **more):
        return self.launch("/bin/sh", "-c", script, **more)

    def python(self, script, **more):
        return self.launch(sys.executable, "-c", script, **more)

    def start(self, **more):
        more.setdefault("stdout", subprocess.PIPE)
        self.process = subprocess.Popen([SHEPHERD, self.dir], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)
        return self.process

    def finish(self):
        out, err = self.process.communicate(timeout=DEADLINE)
        assert b"Sanitizer" not in err, err.decode()
        assert err == b""
        return self.process.returncode, (out or b"").decode(errors="replace")

    def run(self, **more):
        self.start(**more)
        return self.finish()

    def exit(self):
        return json.loads((self.dir / "exit.json").read_text())

    def beat(self):
        return json.loads((self.dir / "beat").read_text()) if (self.dir / "beat").exists() else {}

    def said(self, word):
        """The command has printed this."""
        there = lambda: self.log.exists() and word in self.log.read_text(errors="replace")  # noqa: E731
        return wait_for(there, f"'{word}' in the log")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def make_group():
    rows = [row.split(":", 2) for row in pathlib.Path("/proc/self/cgroup").read_text().splitlines()]
    own = {controller: path for _, controller, path in rows}
    limits = {"memory": ("/memory", "memory.limit_in_bytes"), "": ("", "memory.max")}
    for controller, (mount, limit) in limits.items():
        group = pathlib.Path(f"/sys/fs/cgroup{mount}{own.get(controller, '/none')}/argus-test-{os.getpid()}")
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text("64000000")
            return group
        except OSError:
            group.rmdir()
    return None


@contextlib.contextmanager
def small_group():
    """A cgroup below ours that may hold 64 MB, where the kernel's log tells of those who held more."""
    group = os.access("/dev/kmsg", os.R_OK) and make_group()
    if not group:
        pytest.skip("needs a cgroup of its own and the kernel's log")
    try:
        yield group
    finally:
        wait_for(lambda: not (group / "cgroup.procs").read_text(), "an empty group")
        group.rmdir()
