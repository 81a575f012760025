# SPDX-License-Identifier: Apache-2.0
"""The shared root hangs for a while, as an NFS server does that went away: every write waits. A training goes on, its
log is whole afterwards, and argusd answers all the time."""

import os
import pathlib
import re
import subprocess
import time

import pytest
from barestage import BareStage
from raybed import BEDS
from stage import open_stage

from argusd import until

pytestmark = [
    pytest.mark.ray,
    pytest.mark.nightly,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.getuid() != 0 or not os.path.exists("/dev/loop-control"), reason="no mount can be made"),
]

HANGS = 40  # seconds

# 2 MB a second, which no pipe holds for long; its steps are told on the machine's own disk as well.
TRAINS = """
import os, sys, threading
pause, line = threading.Event().wait, "x" * 2000
told = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for step in range(10**6):
    print(f"line {step} {line}", flush=True)
    os.pwrite(told, b"%12d" % step, 0)
    pause(0.001)
    if step % 100 == 0 and os.path.exists(sys.argv[2]):
        break
print(f"the last was {step}")
"""


def sh(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=240).stdout.strip()


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory):
    """Its shared root is a file system of its own, mounted here and on each host."""
    evidence = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence"))
    stage = open_stage(BareStage, BEDS.bare("2.60.0"), request, tmp_path_factory, evidence, None)
    image = tmp_path_factory.mktemp("image") / "root.img"
    stage.root.mkdir()
    sh("truncate", "-s", "2G", image)
    sh("mkfs.ext4", "-q", image)
    device = sh("losetup", "--find", "--show", image)
    try:
        sh("mount", "-o", "noatime", device, stage.root)
        for host in ("h1", "h2"):
            stage.bed.on(host, "mount", "-o", "noatime", device, str(stage.root))
        with stage:
            stage.add_node("node-1", "h2", gpu_count=1)
            stage.wait_node("node-1", "online")
            yield stage
    finally:
        BEDS.drop()
        subprocess.run(["umount", stage.root], check=False)
        sh("losetup", "--detach", device)


@pytest.fixture(scope="module")
def stalled(stage, tmp_path_factory):
    """A job under which the root hangs until argusd says that it cannot see the job."""
    place = tmp_path_factory.mktemp("outside")
    steps, end = place / "steps", place / "end"
    job = stage.submit(stage.spec([str(stage.bed.python), "-c", TRAINS, str(steps), str(end)]), token="admin")
    stage.wait_state(job, "RUNNING")
    stage.wait_log(job, "line 100 ")
    seen = {"job": job}
    sh("fsfreeze", "--freeze", stage.root)
    try:
        end_of_it, before = time.monotonic() + HANGS, int(steps.read_text())
        slowest = [0]

        def hung_long_enough():
            asked = time.monotonic()
            seen["during"] = stage.job(job)
            slowest.append(time.monotonic() - asked)
            return asked > end_of_it

        until(hung_long_enough, "the root hung for a while")
        seen["went_on"] = int(steps.read_text()) - before
    finally:
        sh("fsfreeze", "--unfreeze", stage.root)
    print(f"\nthe slowest answer while the root hung: {max(slowest):.3f} s; steps meanwhile: {seen['went_on']}")
    end.touch()
    return {**seen, "over": stage.wait_over(job)}


def test_training_goes_on(stalled):
    assert stalled["went_on"] > 1000
    assert stalled["during"]["state"] == "RUNNING"


def test_it_ends_as_ever(stage, stalled):
    over = stalled["over"]
    assert (over["state"], over["attempt"], over["restarts"], over["finding"]) == ("SUCCEEDED", 1, 0, None)


def whole_log(stage, job):
    """By the API, in large pieces."""
    text, size = b"", 1
    while len(text) < size:
        reply = stage.call("GET", f"/v1/jobs/{job}/logs?offset={len(text)}&limit={8 << 20}")
        assert reply.status == 200 and reply.body, reply
        text, size = text + reply.body, int(reply.headers["Argus-Log-Size"])
    return text


def test_nothing_of_its_log_is_lost(stage, stalled):
    text = whole_log(stage, stalled["job"])
    lines = [int(n) for n in re.findall(rb"(?m)^line (\d+) x{2000}$", text)]
    (last,) = re.findall(rb"(?m)^the last was (\d+)$", text)
    missing = set(range(int(last) + 1)) - set(lines)
    assert not missing, f"{len(missing)} lines, the first {min(missing)}"
    assert lines == sorted(lines)
