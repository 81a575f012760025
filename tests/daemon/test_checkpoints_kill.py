# SPDX-License-Identifier: Apache-2.0
"""A training that is killed while it saves, retention at work beside it, and a disk that is full: there is always a
checkpoint that can be loaded, once one was finished, and it is what the next attempt is given."""

import os
import pathlib
import random
import signal
import subprocess
import sys

import pytest
from checkpoints import is_loadable
from programs import find_tool
from smalldisk import small_disk

TOOL = find_tool("src/fsroot/ckpt_tool")
pytestmark = pytest.mark.skipif(TOOL is None, reason="no ckpt_tool: build first")

SAVER = """
import pathlib, sys
sys.path.insert(0, {lib!r})
from checkpoints import put_checkpoint
kept, step, size = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
while True:
    step += 10
    try:
        put_checkpoint(kept, step, world=2, size=size)
    except OSError as e:
        sys.exit(28 if e.errno == 28 else 1)
    print(step, flush=True)
"""


class Bed:
    def __init__(self, root):
        self.root = root
        self.kept = root / "jobs/j/checkpoints"
        self.kept.mkdir(parents=True)
        self.finished = 0

    def saver(self, step, size):
        code = SAVER.format(lib=str(pathlib.Path(__file__).parents[1] / "lib"))
        argv = [sys.executable, "-c", code, self.kept, str(step), str(size)]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)

    def keeper(self, n):
        return subprocess.Popen([TOOL, "keep", self.root, "j", str(n)])

    def settle(self):
        done = subprocess.run([TOOL, "settle", self.root, "j"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return int(done.stdout.split("\n")[0])

    def names(self):
        return [name for _, _, names in os.walk(self.kept) for name in names]

    def one_life(self, step, size, rng):
        """Until it was killed in the middle of a save, or the disk was full; what it said to have finished."""
        with self.saver(step, size) as training:
            for _ in range(rng.randint(0, 3)):  # saves that it is granted
                line = training.stdout.readline()
                if not line:
                    break
                self.finished = int(line)
            for _ in range(rng.randint(0, 60)):  # and then some of the next one: a look takes about as long as a file
                self.names()
            training.kill()
            for line in training.stdout:
                self.finished = int(line)


@pytest.fixture
def bed(tmp_path):
    return Bed(tmp_path)


def many_kills(bed, kills, seed):
    rng = random.Random(seed)
    step = 0
    with bed.keeper(1) as keeper:
        try:
            for k in range(kills):
                bed.one_life(step, rng.choice((10, 1000, 300000)), rng)
                step = bed.settle()
                assert step >= bed.finished, f"kill {k} of seed {seed}: {bed.finished} was finished"
                assert not step or is_loadable(bed.kept / f"global_step_{step}"), f"kill {k} of seed {seed}"
        finally:
            keeper.send_signal(signal.SIGKILL)
    assert step
    left = [p.name for p in bed.kept.glob("global_step_*")]
    assert len(left) <= 3, left  # retention was at work


def test_killed_while_it_saves(bed):
    many_kills(bed, 10, seed=6)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [int(os.environ.get("ARGUS_SEED", "1"))])
def test_killed_a_hundred_times(bed, seed):
    many_kills(bed, 100, seed)


@pytest.fixture
def small_bed(tmp_path):
    with small_disk(tmp_path / "disk", "4m") as place:
        yield Bed(place)


@pytest.mark.parametrize("keep", [1, 9])
def test_a_full_disk(small_bed, keep):
    """Of 14 shards of 100 kB that 4 MB hold no three: the save that fails costs nothing that was finished."""
    bed, step = small_bed, 0
    for size in (50000, 100000, 200000, 300000, 600000):
        with bed.keeper(keep) as keeper, bed.saver(step, size) as training:
            for line in training.stdout:
                bed.finished = int(line)
                if bed.finished >= step + 50:
                    training.kill()
            training.wait()
            keeper.send_signal(signal.SIGKILL)
        last, step = step, bed.settle()
        assert step >= bed.finished and step >= last
        assert is_loadable(bed.kept / f"global_step_{step}")
