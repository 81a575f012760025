# SPDX-License-Identifier: Apache-2.0
"""A reader of the driver beside a raylet on a real host, by ssh: a look starts it, keeps it, starts it anew when it
dies or another program was placed, and tells what makes the machine unfit; the raylet's stop ends it. The driver is
a pretended library, and a process that only bears the name and our marks stands for the raylet."""

import hashlib
import platform
import shutil
import subprocess
import sys

import pytest
from fakedriver import give_gpus, set_gpus
from programs import PROGRAMS
from raybed import BED
from sshtool import TOOL

from argusd import until

pytestmark = [pytest.mark.ray, pytest.mark.skipif(TOOL is None, reason="ssh_tool is not built")]

NODE = "reading"
MARK = hashlib.sha256(f"tests\n{NODE}".encode()).hexdigest()[:24]
RAYLET = "open('/proc/self/comm', 'w').write('raylet'); print('up', flush=True); import signal; signal.pause()"
GPU = "gpu {} {} 40000 300000 55"


def marked(bed, mark):
    """The processes of h2 that have this in their environment."""
    out = bed.on("h2", "sh", "-c", f"grep -l {mark} /proc/[0-9]*/environ 2>/dev/null || true")
    return {int(line.split("/")[2]) for line in out.split()}


def kill(bed, pids):
    """One that has gone with another one is no error: a reader is a process and its guard."""
    bed.on("h2", "sh", "-c", 'kill -9 "$@" 2>/dev/null || true', "sh", *map(str, pids))


@pytest.fixture
def raylet(bed):
    """On h2, until somebody stops it."""
    marks = f"ARGUS_OWNER=tests ARGUS_NODE={NODE} ARGUS_MARK={MARK} ARGUS_RAYLET=token".split()
    argv = [BED, "on", "--dir", bed.dir, "h2", "env", *marks, "setsid", sys.executable, "-c", RAYLET]
    p = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"up\n"
    yield p
    kill(bed, marked(bed, f"ARGUS_MARK={MARK}"))  # what the test has not stopped itself
    p.stdout.close()
    p.wait(timeout=240)


@pytest.fixture
def place(tmp_path):
    place = tmp_path / "bin" / platform.machine()
    place.mkdir(parents=True)
    give_gpus(place, PROGRAMS["argus-shepherd"].parent / "argus-gpus", GPU.format(0, 40), GPU.format(1, 0))
    return place


def readers(bed):
    return marked(bed, f"ARGUS_CARDS={MARK}")


class Looks:
    def __init__(self, tool, place):
        self.tool, self.keys = tool(node=NODE), {"cards": place.parent, "gpus": 2}

    def __call__(self, **more):
        got = self.tool("look", **self.keys, **more)
        assert got["outcome"] == "ok", got
        return got

    def until(self, ok, what):
        return until(lambda: (got := self()) and ok(got) and got, what)


def test_a_reader_lives_beside_the_raylet(bed, tool, raylet, place):
    look = Looks(tool, place)
    first = look.until(lambda got: got["cards"], "the driver's words")["cards"]
    assert [c["util"] for c in first] == [pytest.approx(0.4), 0]
    assert (first[0]["mem_used_bytes"], first[0]["power_watts"]) == (40000 << 20, 300)
    assert (first[0]["rows_pending"], first[0]["pcie_width"], first[0]["xid"]) == (0, 16, 0)
    pids = readers(bed)
    assert pids
    # The same one goes on; an error that the driver tells meanwhile is heard.
    set_gpus(place, GPU.format(0, 90), GPU.format(1, 0), "pending 0 1", "pcie 1 8", "xid 1 31")
    got = look.until(lambda got: got["cards"][0]["util"] == pytest.approx(0.9), "the next sample")
    assert readers(bed) == pids
    assert (got["cards"][0]["rows_pending"], got["cards"][1]["pcie_width"], got["cards"][1]["xid"]) == (1, 8, 31)
    assert got["health"] == ""  # none of these keeps jobs away
    # It died: the next look starts it again. Another program was placed: that one runs.
    kill(bed, pids)
    look.until(lambda got: got["cards"], "its successor's words")
    second = readers(bed)
    assert second and not second & pids
    shutil.copy(place / "argus-gpus", place / "new")
    (place / "new").rename(place / "argus-gpus")
    look.until(lambda got: got["cards"], "the new one's words")
    assert readers(bed) and not readers(bed) & second
    # Without a raylet of ours nothing is started, and its stop ends the reader.
    assert look.tool("stop", grace=1000)["outcome"] == "ok"
    assert readers(bed) == set()
    assert look()["cards"] == [] and readers(bed) == set()


@pytest.mark.parametrize("fault, says", [
    ("rows 1 1", "GPU 1 has memory rows that could not be replaced"),
    ("crash", "the driver of its GPUs fails: the NVIDIA driver's library crashes"),
    ("hang", "the driver of its GPUs fails: the NVIDIA driver does not answer"),
])  # fmt: skip
def test_what_makes_a_machine_unfit(bed, tool, raylet, place, fault, says):
    set_gpus(place, GPU.format(0, 40), GPU.format(1, 0), fault)
    look = Looks(tool, place)
    got = look.until(lambda got: got["health"], "its trouble")
    assert (got["health_code"], got["health"]) == ("gpu_trouble", says)
    assert look.tool("stop", grace=1000)["outcome"] == "ok"
    assert readers(bed) == set()


def test_a_machine_without_a_driver_is_well(bed, tool, raylet, tmp_path):
    place = tmp_path / "bin" / platform.machine()
    place.mkdir(parents=True)
    shutil.copy(PROGRAMS["argus-shepherd"].parent / "argus-gpus", place / "argus-gpus")
    if subprocess.run([place / "argus-gpus", "--once"], stdout=subprocess.DEVNULL).returncode == 0:
        pytest.skip("this machine has a driver of NVIDIA")
    look = Looks(tool, place)
    got = look()
    assert (got["cards"], got["health"]) == ([], "")
    assert look.tool("stop", grace=1000)["outcome"] == "ok"
