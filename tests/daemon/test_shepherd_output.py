# SPDX-License-Identifier: Apache-2.0
"""argus-shepherd, the real program: every byte of output, floods, readers that do not read, disks that are full."""

import hashlib
import os
import resource
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


# ---- output ----

FLOOD = r"""
import hashlib, os, sys
block = os.urandom(1 << 20)
sha, left, i = hashlib.sha256(), int(sys.argv[1]), 0
while left:
    part = (b'%020d' % i + block)[:min(left, 1 + i * 7919 % (1 << 20))]
    os.write(1, part); sha.update(part)
    left -= len(part); i += 1
open(sys.argv[2], 'w').write(sha.hexdigest())
"""


def test_a_gigabyte_arrives_unchanged(attempt, tmp_path):
    size = 1_000_000_007
    attempt.launch(sys.executable, "-c", FLOOD, str(size), tmp_path / "sha", logs={"rate": 0})
    rc, out = attempt.run()
    assert rc == 0
    sha = hashlib.sha256()
    with open(attempt.log, "rb") as f:
        while part := f.read(1 << 20):
            sha.update(part)
    assert attempt.log.stat().st_size == size == attempt.exit()["log_bytes"]
    attempt.log.unlink()
    assert sha.hexdigest() == (tmp_path / "sha").read_text()
    assert f"bytes left out here: the whole output is in '{attempt.log}'" in out


def test_ray_is_given_a_bounded_part_with_the_end(attempt):
    rc, out = attempt.python("import sys\nfor i in range(400000): print('line', i)").run()
    assert rc == 0
    assert len(out) < 1 << 20
    lines = out.splitlines()
    assert lines[0] == "line 0"
    assert lines[-2] == "line 399999"
    assert attempt.log.read_text() == "".join(f"line {i}\n" for i in range(400000))
    index = attempt.log.with_name("driver.log.idx")
    assert 0 < index.stat().st_size < attempt.log.stat().st_size / 40


def test_ray_that_does_not_read_blocks_nobody(attempt):
    attempt.python("import os\nfor i in range(300): os.write(1, b'x' * 65536)").start()
    wait_for(lambda: (attempt.dir / "exit.json").exists(), "the end, with nobody reading the output")
    attempt.process.stdout.close()
    assert attempt.process.wait() == 0
    assert attempt.exit()["log_bytes"] == 300 * 65536


def test_ray_that_went_away_stops_nobody(attempt):
    attempt.shell("echo up; read line <%s; echo more; exit 6" % (attempt.dir / "go"))
    os.mkfifo(attempt.dir / "go")
    attempt.start()
    attempt.said("up")
    attempt.process.stdout.close()
    (attempt.dir / "go").write_text("go\n")
    assert attempt.process.wait() == 6
    assert attempt.log.read_text() == "up\nmore\n"


def test_command_that_closes_its_output(attempt):
    os.mkfifo(attempt.dir / "go")
    attempt.shell(f"exec >&- 2>&-; read line <{attempt.dir}/go; exit 8").start()
    wait_for(lambda: attempt.beat().get("seq", 0) > 3, "beats without output")
    (attempt.dir / "go").write_text("go\n")
    assert attempt.finish()[0] == 8


def test_log_that_meets_a_limit(attempt):
    """The log may not grow beyond 1 MiB: the command still runs to its end, and the rest is counted."""
    limit = 1 << 20
    script = "import os\nfor i in range(50): os.write(1, b'y' * 65535 + b'\\n')\nos.write(1, b'end')"
    attempt.python(script, logs={"patience_s": 0.2})
    rc, out = attempt.run(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    end = attempt.exit()
    assert rc == 0
    assert attempt.log.stat().st_size == limit == end["log_bytes"]
    assert end["dropped_bytes"] == 50 * 65536 + 3 - limit
    assert f"cannot write '{attempt.log}': File too large; the command goes on, its output waits in" in out
    assert end["log_error"] == f"the last {end['dropped_bytes']} bytes of output could not be written: File too large"
    assert f"{end['dropped_bytes']} bytes of its output are missing in the log" in end["sentence"]


@pytest.fixture
def small_place(tmp_path):
    with small_disk(tmp_path / "small", "2m") as place:
        yield place


def test_full_disk(small_place, tmp_path):
    """What does not fit waits in the spool, and nothing of it is lost."""
    attempt = Attempt(small_place)
    attempt.python(
        "import os, select\n"
        "os.write(1, b'z' * (2 << 20) + b'\\n')\n"
        f"while not os.path.exists({str(small_place / 'enough')!r}):\n"
        "    select.select([], [], [], 0.05)\n"
        "os.write(1, b'after\\n')"
    )
    filler = small_place / "filler"
    filler.write_bytes(bytes(512 << 10))
    with open(tmp_path / "ray", "wb") as ray:
        attempt.start(stdout=ray)
    told = f"cannot write '{attempt.log}': No space left on device; the command goes on, its output waits"
    wait_for(lambda: told in (tmp_path / "ray").read_text(), "the line about the full disk")
    waits = wait_for(lambda: attempt.beat().get("waiting_bytes", 0), "bytes that wait in a beat")
    subprocess.run(["mount", "-o", "remount,size=8m", small_place], check=True)
    (small_place / "enough").touch()
    rc, _ = attempt.finish()
    end, log = attempt.exit(), attempt.log.read_bytes()
    assert rc == 0 and waits > 0
    assert log == b"z" * (2 << 20) + b"\nafter\n"
    assert (end["log_bytes"], end["dropped_bytes"], end["log_error"]) == (len(log), 0, None)
    assert end["root_away_s"] > 0
    assert "the shared root is there again after" in (tmp_path / "ray").read_text()


def test_disk_that_stays_full_still_has_the_end(small_place):
    attempt = Attempt(small_place)
    rc, _ = attempt.python("import os; os.write(1, b'z' * (4 << 20))", logs={"patience_s": 0.2}).run()
    end = attempt.exit()
    assert rc == 0
    assert (end["cause"], end["code"]) == ("exit", 0)
    assert end["log_bytes"] + end["dropped_bytes"] == 4 << 20
