# SPDX-License-Identifier: Apache-2.0
"""The real driver: what argus-gpus tells of a GPU that rests, works and faults is what nvidia-smi tells of it; and what
the probe and the look of a machine find, on this machine itself."""

import json
import platform
import queue
import re
import shutil
import subprocess
import threading
import time

import pytest
from gpubed import MIB, at_work, environment, go_astray, kernel_xids, smi, smi_page
from programs import PROGRAMS
from sshtool import TOOL

from argusd import until

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(PROGRAMS is None, reason="Argus is not built")]

OF_PROGRAMS = {13, 31, 43}  # Xids of a program's own fault
SAMPLES = 6  # of a watch, one each 15 s: far more than it takes to see a change


def program():
    return PROGRAMS["argus-shepherd"].parent / "argus-gpus"


def once():
    done = subprocess.run([program(), "--once"], stdout=subprocess.PIPE, timeout=60)
    assert done.returncode == 0, done.stdout
    sample = json.loads(done.stdout)
    assert sample["trouble"] == "", sample
    return sample


class Watch:
    """argus-gpus --watch; its samples as they come."""

    def __init__(self):
        self.lines = queue.Queue()
        self.process = subprocess.Popen([program(), "--watch"], stdout=subprocess.PIPE)
        threading.Thread(target=self.hear, daemon=True).start()

    def hear(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def next(self):
        return self.lines.get(timeout=60)

    def until(self, ok, what):
        seen = []
        while len(seen) < SAMPLES:
            seen.append(self.next()["gpus"][0])
            if ok(seen[-1]):
                return seen[-1]
        raise AssertionError(f"{what}: not in {seen}")

    def close(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def watch():
    made = Watch()
    yield made
    made.close()


def pids(card):
    return {p["pid"] for p in card["processes"]}


def test_a_gpu_at_rest(watch):
    fields = (
        "index uuid name driver_version memory.total memory.used memory.reserved temperature.gpu power.draw".split()
    )
    fields += "pcie.link.width.current pcie.link.width.max ecc.errors.uncorrected.volatile.total".split()
    fields += "remapped_rows.pending remapped_rows.failure".split()
    rows, sample = smi(*fields), once()
    assert len(sample["gpus"]) == len(rows) > 0
    for card, row in zip(sample["gpus"], rows, strict=True):
        assert (card["index"], card["uuid"], card["name"]) == (row["index"], row["uuid"], row["name"])
        assert sample["driver"] == str(row["driver_version"])
        assert card["mem_total_bytes"] == pytest.approx(row["memory.total"] * MIB, abs=MIB)
        # What the driver keeps for itself is not in use, as nvidia-smi counts.
        assert card["mem_used_bytes"] == pytest.approx(row["memory.used"] * MIB, abs=64 * MIB)
        assert card["temperature_celsius"] == pytest.approx(row["temperature.gpu"], abs=4)
        assert card["power_watts"] == pytest.approx(row["power.draw"], rel=0.3)
        assert (card["pcie_width"], card["pcie_width_max"]) == (row[fields[9]], row[fields[10]])
        assert card["ecc_uncorrected"] == row["ecc.errors.uncorrected.volatile.total"]
        assert (card["rows_pending"], card["rows_failed"]) == tuple(
            {"No": 0, "Yes": 1}.get(v, v) for v in (row["remapped_rows.pending"], row["remapped_rows.failure"])
        )
        assert card["energy_joules"] > 0 and card["throttle"] is not None and card["xid"] == 0
        assert card["slowdown_celsius"] is None or card["slowdown_celsius"] > card["temperature_celsius"]
    assert watch.next()["gpus"][0]["uuid"] == rows[0]["uuid"]


def test_links(watch):
    """So many NVLinks as `nvidia-smi nvlink --status` shows with a speed."""
    said = subprocess.run(["nvidia-smi", "nvlink", "--status", "-i", "0"], capture_output=True, text=True).stdout
    up = len(re.findall(r"Link \d+: [\d.]+ GB/s", said))
    assert once()["gpus"][0]["nvlinks"] in ({None, 0} if up == 0 else {up}), said


@pytest.fixture(scope="module")
def worked(watch):
    """A GPU that works all the time: two samples of it, and what nvidia-smi said meanwhile."""
    with at_work(1.0, 4096) as pid:
        first = watch.until(lambda c: c["util"] >= 0.9, "the use of a GPU that works")
        begun = [smi("power.draw", "utilization.gpu")[0] for _ in range(3)]
        second = watch.next()
        now = once()["gpus"][0]
        row = smi("memory.used", "temperature.gpu", "power.draw", "utilization.gpu")[0]
        apps = smi("pid", "used_memory", of="compute-apps")
    return {"pid": pid, "first": first, "second": second, "now": now, "smi": row, "apps": apps, "begun": begun}


def test_a_gpu_at_work(worked):
    card, row, second = worked["now"], worked["smi"], worked["second"]["gpus"][0]
    assert row["utilization.gpu"] >= 90 and second["util"] >= 0.9
    assert card["mem_used_bytes"] == pytest.approx(row["memory.used"] * MIB, abs=64 * MIB)
    assert card["mem_used_bytes"] > 4096 * MIB
    assert card["temperature_celsius"] == pytest.approx(row["temperature.gpu"], abs=6)
    assert card["power_watts"] == pytest.approx(row["power.draw"], rel=0.3)


def test_whose_memory_it_is(worked):
    (app,) = worked["apps"]
    (process,) = worked["now"]["processes"]
    assert process["pid"] == app["pid"] == worked["pid"]
    assert process["mem_bytes"] == pytest.approx(app["used_memory"] * MIB, abs=2 * MIB)
    (process,) = worked["second"]["gpus"][0]["processes"]
    assert process["pid"] == worked["pid"] and process["util"] >= 0.8


def test_energy_is_power_by_time(worked):
    """Of the 15 s between two samples of a GPU that works: the driver's counter against its power."""
    watts = sum(row["power.draw"] for row in worked["begun"]) / len(worked["begun"])
    spent = worked["second"]["gpus"][0]["energy_joules"] - worked["first"]["energy_joules"]
    assert spent == pytest.approx(15 * watts, rel=0.35)


def test_a_gpu_that_works_half_of_the_time(watch):
    with at_work(0.5, 16) as pid:
        until(lambda: pid in pids(once()["gpus"][0]), "its process")

        def is_half(card):
            mine = [p["util"] for p in card["processes"] if p["pid"] == pid]
            return mine and mine[0] is not None and 0.2 < mine[0] < 0.9

        card = watch.until(is_half, "the use of its process")
        assert 0.2 < card["util"] < 0.9


def test_the_newest_sample_in_a_file(tmp_path):
    file = tmp_path / "at" / "newest.json"
    file.parent.mkdir()
    keeper = subprocess.Popen([program(), "--keep", file])
    try:
        until(file.exists, "the first sample")
        first = json.loads(file.read_text())
        assert first["gpus"][0]["uuid"] == smi("uuid")[0]["uuid"]
        until(lambda: json.loads(file.read_text())["at"] > first["at"], "the next one in its place")
        shutil.rmtree(file.parent)
        assert keeper.wait(timeout=60) == 0, "it ends with its directory"
    finally:
        keeper.kill()
        keeper.wait()


def test_a_program_that_goes_astray(watch):
    """A write to nowhere: the driver tells of an Xid, and the reader at once, not with its next turn."""
    before = kernel_xids()
    said = go_astray()
    assert "illegal memory access" in said, said
    ended = time.time() * 1e6
    card = watch.until(lambda c: c["xid"], "the Xid")
    assert card["xid"] in OF_PROGRAMS
    if before is not None and kernel_xids() != before:
        assert card["xid"] in kernel_xids()[len(before) :]
    assert once()["at"] > ended


# ---- a machine as argusd sees it, without ssh since it is this one ----


@pytest.fixture
def tool(tmp_path):
    if TOOL is None:
        pytest.skip("ssh_tool is not built")
    env, place = environment(), tmp_path / "bin" / platform.machine()
    place.mkdir(parents=True)
    shutil.copy(program(), place / "argus-gpus")
    keys = {"name": "here", "node": "here", "owner": "gpu-tests", "local": 1, "ray_bin": env / "bin/ray"}
    words = [f"{k}={v}" for k, v in keys.items()]

    def call(verb, *args, **more):
        argv = [TOOL, *words, *(f"{k}={v}" for k, v in more.items()), verb, *args]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and not done.stderr, done
        return json.loads(done.stdout)

    call.cards = place.parent
    return call


def test_the_probe_finds_the_gpus(tool):
    rows, found = smi("name", "driver_version"), tool("probe")
    assert found["has_nvidia"] and found["gpus"] == len(rows) and found["gpu_trouble"] == ""
    assert (found["gpu_type"], found["driver"]) == (rows[0]["name"], str(rows[0]["driver_version"]))
    ask = "import torch; print(torch.__version__.partition('+')[0], torch.version.cuda)"
    said = subprocess.run([environment() / "bin/python", "-c", ask], capture_output=True, text=True, check=True)
    assert [found["torch"].partition("+")[0], found["cuda"]] == said.stdout.split()
    assert [f for f in found["findings"] if f["code"] == "gpu_trouble"] == []


def test_a_raylet_with_the_gpus_and_a_stray(tool, tmp_path):
    """A head of ours on this machine: a look tells its GPUs by the driver, and a process on one that is no job's."""
    port = {"port.port": 26379, "port.dashboard-port": 28265}
    shape = {"head": 1, "gpus": len(smi("uuid")), "cpus": 2, "object_store_bytes": 200_000_000, "node_ip": "127.0.0.1"}
    started = tool("start", **shape, **port)
    assert started["outcome"] == "ok", started
    try:

        def look():
            got = tool("look", cards=tool.cards, gpus=len(smi("uuid")))
            assert got["outcome"] == "ok" and got["health_code"] in (None, ""), got
            return got

        got = until(lambda: (g := look())["cards"] and g, "the driver's words")
        assert [c["uuid"] for c in got["cards"]] == [row["uuid"] for row in smi("uuid")]
        assert got["strays"] == 0, got
        with at_work(0.1, 64) as pid:
            got = look()
            assert got["strays"] == 1 and str(pid) in got["stray_text"], got
        until(lambda: look()["strays"] == 0, "it is gone")
    finally:
        tool("stop")


def test_what_is_not_told_is_what_nvidia_smi_does_not_tell_either():
    """Of a card no figure is missing that nvidia-smi has."""
    card, page = once()["gpus"][0], smi_page("TEMPERATURE", "ECC", "PERFORMANCE")
    told = {k: int(v) for k, v in re.findall(r"(GPU [\w. ]*Temp)\s*: (-?\d+) C", page)}
    if (
        "GPU Slowdown T.Limit Temp" in told
    ):  # Hopper and later: degrees that are left, against degrees that must be left
        slowdown = told["GPU Current Temp"] + told["GPU T.Limit Temp"] - told["GPU Slowdown T.Limit Temp"]
    else:
        slowdown = told.get("GPU Slowdown Temp")
    assert card["slowdown_celsius"] == (slowdown and pytest.approx(slowdown, abs=2)), page
    missing = {k for k, v in card.items() if v is None} - {"nvlinks"}
    assert missing == set(), card
