# SPDX-License-Identifier: Apache-2.0
"""GPUs of a scout's node: read by argus-gpus out of a pretended library of the driver (tests/lib/fake_nvml.c), added up
for each process; and no harm to the scout where the driver hangs, crashes or is not there."""

import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
from fakedriver import give_gpus, set_gpus
from scouting import Node
from shepherding import SHEPHERD, is_outermost, is_running, needs_shepherd, wait_for

pytestmark = needs_shepherd

GPU = "gpu {} {} 40000 300000 55"


@pytest.fixture
def node(tmp_path):
    made = []

    def make(command="exit 0", **more):
        made.append(Node(tmp_path, command, **more))
        return made[-1]

    yield make
    for n in made:
        n.close()


@pytest.fixture
def machine(tmp_path):
    """argus-gpus in a folder of its own with a pretended driver."""

    class Machine:
        def give(self, *lines):
            give_gpus(tmp_path, SHEPHERD.parent / "argus-gpus", *lines)

        def set(self, *lines):
            set_gpus(tmp_path, *lines)

        def once(self):
            done = subprocess.run([tmp_path / "argus-gpus", "--once"], stdout=subprocess.PIPE, check=False)
            return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    return Machine()


def test_one_sample(machine):
    machine.give(GPU.format(0, 40), "now 0 100", GPU.format(1, 0), "proc 0 7 2000 35", "peak 7 3000", "ecc 1 2",
                 "links 1 17", "throttle 1 64", "energy 0 5000")  # fmt: skip
    code, [sample] = machine.once()
    assert code == 0 and sample["driver"] == "570.00" and sample["trouble"] == ""
    first, second = sample["gpus"]
    # The mean of the driver's buffer, not what it says of the moment.
    assert first["util"] == pytest.approx(0.4) and second["util"] == 0
    assert (first["pci"], second["pci"]) == ("00000000:3B:00.0", "00000000:3C:00.0")
    assert first["uuid"].endswith("0") and first["energy_joules"] == 5 and second["energy_joules"] is None
    assert first["mem_used_bytes"] == 40000 << 20 and first["mem_total_bytes"] == 81559 << 20
    assert first["power_watts"] == 300 and first["temperature_celsius"] == 55 and first["slowdown_celsius"] == 89
    assert (second["ecc_uncorrected"], second["nvlinks"], second["throttle"]) == (2, 17, 64)
    [process] = first["processes"]
    assert (process["pid"], process["util"]) == (7, pytest.approx(0.35) if is_outermost() else None)
    assert (process["mem_bytes"], process["mem_peak_bytes"]) == (2000 << 20, 3000 << 20)


def test_in_a_container(machine, tmp_path):
    """In a pid namespace of its own the driver tells processes as that counts them, but their use as the outermost
    one counts: what it tells is not taken for another process's."""
    inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*inside, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("pid namespaces are not allowed here")
    machine.give(GPU.format(0, 40), "proc 0 7 2000 35")
    done = subprocess.run([*inside, tmp_path / "argus-gpus", "--once"], stdout=subprocess.PIPE, check=True)
    [process] = json.loads(done.stdout)["gpus"][0]["processes"]
    assert (process["pid"], process["mem_bytes"], process["util"]) == (7, 2000 << 20, None)


@pytest.mark.parametrize("fault, says", [("hang", "does not answer"), ("crash", "crashes")])
def test_a_driver_that_fails_is_told(machine, fault, says):
    machine.give(GPU.format(0, 40), fault)
    code, [sample] = machine.once()
    assert code == 0 and sample["gpus"] == [] and says in sample["trouble"]


def test_no_driver(tmp_path):
    shutil.copy(SHEPHERD.parent / "argus-gpus", tmp_path / "argus-gpus")
    done = subprocess.run([tmp_path / "argus-gpus", "--once"], stdout=subprocess.PIPE, check=False)
    if done.returncode == 0:
        pytest.skip("this machine has a driver of NVIDIA")
    assert done.returncode == 3 and "no libnvidia-ml" in json.loads(done.stdout)["trouble"]


def book_of(n, ok):
    def there():
        book = n.gpu_book()
        return book if book and ok(book) else None

    return wait_for(there, "a book of the GPUs")


@pytest.mark.skipif(not is_outermost(), reason="in a pid namespace the driver's use by process is not taken")
def test_whose_work_it_is(node):
    n = node()
    n.give_gpus(GPU.format(0, 50), GPU.format(1, 0), f"proc 0 {os.getpid()} 100 10")
    worker = n.worker()
    n.set_gpus(GPU.format(0, 50), GPU.format(1, 0), f"proc 0 {worker} 2000 40", f"proc 0 {os.getpid()} 100 10")
    scout = n.scout()
    n.copied("secret")
    # Added up: 50 % of the GPU, of which 40 % are the worker's. The second sample comes after 15 s.
    first = book_of(n, lambda b: b["gpus"][0]["watched_s"] > 0)
    card, other = first["gpus"]
    mine, strange = (next(p for p in card["processes"] if p["pid"] == pid) for pid in (worker, os.getpid()))
    assert card["ours"] and not other["ours"]
    assert (mine["ours"], mine["rank"], mine["mem_peak_bytes"]) == (True, 3, 2000 << 20)
    assert (strange["ours"], strange["rank"]) == (False, None)
    assert card["busy_s"] == pytest.approx(card["watched_s"] * 0.5) and other["busy_s"] == 0
    assert mine["busy_s"] + strange["busy_s"] == pytest.approx(card["busy_s"])
    assert card["used_joules"] == pytest.approx(300 * card["watched_s"])
    # A scout that comes again goes on with the book.
    os.kill(scout, signal.SIGKILL)
    n.set_gpus(GPU.format(0, 50), GPU.format(1, 0))
    book_of(n, lambda b: b["gpus"][0]["watched_s"] >= card["watched_s"] and not b["gpus"][0]["processes"][0]["lives"])
    os.kill(worker, signal.SIGKILL)


def test_a_scout_that_the_hook_starts_has_the_lease(node):
    """Without it the scout never knows that it has seen all GPUs of the attempt (gpuheld.c)."""
    n = node()
    n.worker()
    environ = pathlib.Path(f"/proc/{n.scout()}/environ").read_bytes().split(b"\0")
    (lease,) = (json.loads(e.partition(b"=")[2]) for e in environ if e.startswith(b"ARGUS_LEASE="))
    assert (lease["job"], lease["nodes"][0]["name"]) == (n.job, n.name)


def test_a_driver_that_hangs_does_no_harm(node):
    n = node()
    n.give_gpus(GPU.format(0, 50), "hang")
    n.worker()
    scout = n.scout()
    n.copied("secret")
    book_of(n, lambda b: "does not answer" in b["trouble"])
    assert is_running(scout)
    (n.logs / "more").touch()
    n.copied("more")
    n.raylet.kill()
    assert n.facts()["node"] == "w1"
    n.gone(scout)
