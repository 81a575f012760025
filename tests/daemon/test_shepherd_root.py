# SPDX-License-Identifier: Apache-2.0
"""argus-shepherd, the real program, on a shared root that hangs; floods, and logs of several files."""

import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest
from shepherding import Attempt, needs_shepherd, wait_for
from smalldisk import small_disk

pytestmark = needs_shepherd


@pytest.fixture
def attempt(tmp_path):
    with Attempt(tmp_path) as made:
        yield made


def files_of(log):
    """(offset, path) of each file of the log, in order."""
    later = [(int(p.name.rsplit(".", 1)[1]), p) for p in log.parent.glob("driver.log.*") if p.suffix[1:].isdigit()]
    return [(0, log), *sorted(later)]


def lines_of(n):
    return "".join(f"line {i:9d} {'x' * 84}\n" for i in range(n)).encode()


PRINT_LINES = r"""
import os, sys
def wait(name):
    import select
    while not os.path.exists(name): select.select([], [], [], 0.02)
place, n = sys.argv[1], int(sys.argv[2])
os.write(1, b'up\n')
wait(place + '/go')
out = b''.join(b'line %9d %s\n' % (i, b'x' * 84) for i in range(n))
while out: out = out[os.write(1, out[:65536]):]
open(place + '/printed', 'w').close()
wait(place + '/end')
sys.exit(3)
"""


# ---- a root that hangs ----


class Frozen:
    """A file system of its own whose writers hang in the kernel while it is frozen, as when an NFS server is away."""

    def __init__(self, place):
        self.image, self.place, self.is_frozen = place / "image", place / "root", False
        self.place.mkdir()

    def mount(self):
        with open(self.image, "wb") as f:
            f.truncate(96 << 20)
        for command in (
            ["mkfs.ext4", "-q", "-F", self.image],
            ["mount", "-o", "loop,noatime", self.image, self.place],
            ["fsfreeze", "-f", self.place],
            ["fsfreeze", "-u", self.place],
        ):
            done = subprocess.run(command, capture_output=True, text=True) if shutil.which(command[0]) else None
            if not done or done.returncode:
                return f"no '{command[0]}': {done.stderr.strip() if done else 'not installed'}"
        return None

    def freeze(self):
        subprocess.run(["fsfreeze", "-f", self.place], check=True)
        self.is_frozen = True

    def thaw(self):
        if self.is_frozen:
            subprocess.run(["fsfreeze", "-u", self.place], check=True)
        self.is_frozen = False


@pytest.fixture
def root(tmp_path):
    made = Frozen(tmp_path)
    reason = made.mount()
    try:
        if reason:
            pytest.skip(f"cannot make a root that hangs: {reason}")
        yield made
    finally:
        made.thaw()
        subprocess.run(["umount", "-l", made.place], capture_output=True)


@pytest.fixture
def hung(root, tmp_path):
    """An attempt whose command waits for tmp_path/go; what Ray is given goes to tmp_path/ray."""
    with Attempt(root.place) as made:
        yield made
        root.thaw()


def begin(attempt, root, place, n, env=None, **more):
    attempt.launch(sys.executable, "-c", PRINT_LINES, place, str(n), **more)
    with open(place / "ray", "wb") as ray:
        attempt.start(stdout=ray, env=env)
    attempt.said("up")
    root.freeze()
    (place / "go").touch()
    wait_for(lambda: (place / "printed").exists(), "all output to be taken while the root hangs")


def told(place, words):
    wait_for(lambda: words in (place / "ray").read_text(), f"'{words}' in Ray's log")


def test_a_root_that_hangs_stops_nobody_and_loses_nothing(root, hung, tmp_path):
    """30 MB come while it hangs, and the command ends: all of it is there once the root answers."""
    begin(hung, root, tmp_path, 300000)
    told(tmp_path, "the shared root does not answer; the command goes on, its output waits in memory and in")
    (tmp_path / "end").touch()
    told(tmp_path, "line    299999 ")  # the command is over, and the log still waits
    root.thaw()
    rc, _ = hung.finish()
    end = hung.exit()
    assert rc == 3 and (end["cause"], end["code"]) == ("exit", 3)
    want = b"up\n" + lines_of(300000)
    assert (end["log_bytes"], end["dropped_bytes"], end["log_error"]) == (len(want), 0, None)
    assert hashlib.sha256(hung.log.read_bytes()).digest() == hashlib.sha256(want).digest()
    assert end["root_away_s"] > 0
    told(tmp_path, "the shared root is there again after")


def test_a_stop_reaches_the_command_while_the_root_hangs_for_ever(root, hung, tmp_path):
    """And once nobody waits for the root any more, that is said and the status is right."""
    begin(hung, root, tmp_path, 10, logs={"patience_s": 1})
    hung.process.send_signal(signal.SIGTERM)
    told(tmp_path, "stopping the command: asked by SIGTERM")
    told(tmp_path, "stopped (asked by SIGTERM): the command was killed by SIGTERM; 1000 bytes of its output are miss")
    told(tmp_path, "gave up: how it ended is not in")
    root.thaw()
    assert hung.finish()[0] == 128 + signal.SIGTERM


@pytest.fixture
def small_place(tmp_path):
    with small_disk(tmp_path / "small", "3m") as place:
        yield place


def test_a_spool_whose_disk_is_full_keeps_the_first_and_the_last(root, hung, tmp_path, small_place):
    begin(hung, root, tmp_path, 300000, env=dict(os.environ, TMPDIR=str(small_place)))
    assert list(small_place.iterdir()) == []  # the file has no name
    root.thaw()
    (tmp_path / "end").touch()
    rc, _ = hung.finish()
    end, log, want = hung.exit(), hung.log.read_bytes(), b"up\n" + lines_of(300000)
    gap = re.search(rb"\[argus\] (\d+) bytes of output dropped here: the shared root is away and the spool in "
                    rb"'.*' is full: No space left on device\n", log)  # fmt: skip
    assert rc == 3 and gap
    before, after = log[: gap.start()], log[gap.end() :]
    before = before if want.startswith(before) else before[:-1]  # a line was ended for it
    assert len(before) > 5 << 20 and want.startswith(before)
    assert len(after) > 900_000 and want.endswith(after)
    assert int(gap[1]) == end["dropped_bytes"] == len(want) - len(before) - len(after)


# ---- floods and large logs ----


def test_a_flood_is_cut_in_its_middle(attempt):
    """100 MB at once where 1 MiB a second may come: the beginning, the end, and lines that say what is missing."""
    attempt.python(
        "import os\n"
        "block = b'noise %060d\\n' % 7 * 1000\n"
        "os.write(1, b'first\\n')\n"
        "for i in range(1500): os.write(1, block)\n"
        "os.write(1, b'the error\\n')",
        logs={"rate": 1 << 20},
    )
    rc, _ = attempt.run()
    end, log = attempt.exit(), attempt.log.read_bytes()
    gaps = re.findall(rb"^\[argus\] (\d+) bytes of output dropped here: more than 1048576 a second came\n", log, re.M)
    assert rc == 0 and gaps
    assert log.startswith(b"first\nnoise") and log.endswith(b"\nthe error\n")
    assert sum(map(int, gaps)) == end["dropped_bytes"] > 50 << 20
    assert end["log_bytes"] == len(log)
    assert f"{end['dropped_bytes']} bytes of its output are missing in the log" in end["sentence"]


def test_a_large_log_goes_on_in_further_files(attempt):
    """Each begins where the one before ended; past the ceiling of all, the oldest but the first go."""
    want = lines_of(200000)
    attempt.python(
        "import os\n"
        "out = b''.join(b'line %9d %s\\n' % (i, b'x' * 84) for i in range(200000))\n"
        "while out: out = out[os.write(1, out[:65536]):]",
        logs={"rate": 0, "segment": 1 << 20, "total": 5 << 20},
    )
    rc, _ = attempt.run()
    files = files_of(attempt.log)
    end = attempt.exit()
    assert rc == 0 and end["log_bytes"] == len(want)
    first = files[0][1].read_bytes()
    assert want.startswith(first) and first.endswith(b"\n") and len(first) > 1_000_000
    gap_at, gap = files[1]
    said = re.fullmatch(r"\[argus\] (\d+) bytes of output dropped here: the log may hold .* bytes.*\n", gap.read_text())
    assert int(said[1]) == files[2][0] - len(first) == end["dropped_bytes"]
    assert gap_at + gap.stat().st_size == files[2][0]
    for offset, path in files[2:]:
        part = path.read_bytes()
        assert part == want[offset : offset + len(part)]
    assert files[-1][0] + files[-1][1].stat().st_size == len(want)
    assert sum(p.stat().st_size for _, p in files) <= 5 << 20


def test_no_line_ends_for_very_long(attempt):
    logs = {"rate": 0, "segment": 64 << 20}
    attempt.python("import os\nfor i in range(300): os.write(1, b'x' * (1 << 20))", logs=logs)
    rc, _ = attempt.run()
    files = files_of(attempt.log)
    assert rc == 0
    assert [offset for offset, _ in files] == [i * (64 << 20) for i in range(5)]
    assert attempt.exit()["log_bytes"] == sum(p.stat().st_size for _, p in files) == 300 << 20


def test_what_is_said_after_the_command_has_ended(attempt):
    """By a process that it left behind and that ends when it is asked to."""
    up = pathlib.Path(attempt.dir / "up")
    late = f"trap 'echo late; exit' TERM; echo there; touch {up}; while :; do sleep 0.05; done"
    attempt.shell(f'setsid sh -c "{late}" & while [ ! -e {up} ]; do sleep 0.02; done; echo over')
    rc, _ = attempt.run()
    assert rc == 0
    log = attempt.log.read_text()
    assert "over\n" in log and log.endswith("late\n")
    assert attempt.exit()["strays"] >= 1
