# SPDX-License-Identifier: Apache-2.0
"""The exporter of a NodeSpec on real Ray: argusd places it over ssh, starts it, asks its page, starts it again when it
dies, and ends it with the node; and a real Prometheus finds argusd, each page of Ray and the exporter by itself."""

import json
import os
import pathlib
import platform
import subprocess
import urllib.parse
import urllib.request

import pytest
from barestage import BareStage
from exporter import write_exporter
from ports import free_port
from raybed import BEDS
from stage import open_stage

from argusd import until

pytestmark = [pytest.mark.ray, pytest.mark.nightly, pytest.mark.timeout(900)]

OBSERVE = pathlib.Path(__file__).resolve().parents[2] / "deploy/observe"
UUID = "GPU-00000000-0000-0000-0000-00000000000"


def dcgm(util, xid=0):
    """A page as dcgm-exporter writes it, of two GPUs; a value that it does not know is a number above 2^62."""
    rows = {"GPU_UTIL": util, "FB_USED": [40960, 512], "FB_FREE": [40599, 81047], "POWER_USAGE": [512.2, 71.5],
            "GPU_TEMP": [61, 9223372036854775794], "XID_ERRORS": [xid, 0], "ECC_DBE_VOL_TOTAL": [0, 0]}  # fmt: skip
    label = 'gpu="{g}",UUID="{u}{g}",pci_bus_id="00000000:0{g}:00.0",device="nvidia{g}",modelName="NVIDIA H100"'
    lines = []
    for name, values in rows.items():
        lines += [f"# HELP DCGM_FI_DEV_{name} x", f"# TYPE DCGM_FI_DEV_{name} gauge"]
        lines += [f"DCGM_FI_DEV_{name}{{{label.format(g=g, u=UUID)}}} {v}" for g, v in enumerate(values)]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory):
    evidence = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence"))
    made = open_stage(BareStage, BEDS.bare("2.60.0"), request, tmp_path_factory, evidence, None)
    made.more = "nodes: {look_every: 2s}"
    with made as stage:
        yield stage


class Node:
    """node-1, whose exporter serves `page`."""

    def __init__(self, stage):
        self.stage, self.page = stage, stage.home / "dcgm.prom"
        self.page.write_text(dcgm([42, 7], xid=31))
        place = stage.root / "argus/bin" / platform.machine()
        self.program = write_exporter(place / "dcgm-exporter", self.page)
        stage.add_node("node-1", "h2", gpu_count=2, exporter="dcgm")
        stage.wait_node("node-1", "online")

    def exporter(self, code):
        def is_so():
            got = self.stage.node("node-1")["exporter"]
            return got and got["code"] == code and got

        return until(is_so, f"its exporter: {code}")

    def pids(self):
        out = self.stage.bed.on("h2", "sh", "-c", "grep -l ARGUS_EXPORTER= /proc/[0-9]*/environ 2>/dev/null || true")
        return {line.split("/")[2] for line in out.split()}

    def newest(self, figure="gpu_util_ratio"):
        """The newest value of each GPU; None: not told."""
        series = self.stage.get(f"/v1/nodes/node-1/figures?figure={figure}&since=10m&step=15s")["series"]
        told = [[v for v in s["mean"] if v is not None] for s in series]
        return [v[-1] if v else None for v in told]


@pytest.fixture(scope="module")
def node(stage):
    return Node(stage)


def test_argusd_reads_it(node):
    until(lambda: node.newest() == [0.42, 0.07], "the use of its GPUs")
    assert node.newest("gpu_power_watts") == [512, 72]
    assert node.newest("gpu_temperature_celsius")[0] == 61
    assert node.exporter("exporter_runs")["text"] == "'dcgm-exporter' runs on port 9400"
    # An error of before it was watched is none; one that comes now is.
    assert node.newest("gpu_xid") == [0, 0]
    node.page.write_text(dcgm([42, 7], xid=79))
    until(lambda: node.newest("gpu_xid")[0] == 79, "the new error")


def test_prometheus_finds_all_of_it(node, stage, tmp_path):
    where, listen = tmp_path / "observe", f"127.0.0.1:{free_port()}"
    (tmp_path / "token").write_text(stage.tokens["admin"] + "\n")
    up = [OBSERVE / "up", "--argusd", f"127.0.0.1:{stage.port}", "--token-file", tmp_path / "token"]
    got = subprocess.run([*up, "--dir", where, "--listen", listen], capture_output=True, text=True)
    assert got.returncode == 0, got

    def ask(query):
        url = f"http://{listen}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(url, timeout=10) as r:
            return {s["metric"].get("node", ""): float(s["value"][1]) for s in json.load(r)["data"]["result"]}

    try:
        until(lambda: ask('up{job="argusd"}') == {"": 1}, "argusd is up")
        until(lambda: ask('up{job="ray"}') == {"head": 1, "node-1": 1}, "each page of Ray is up")
        until(lambda: ask('up{job="gpus"}') == {"node-1": 1}, "the exporter is up")
        assert ask('DCGM_FI_DEV_GPU_UTIL{gpu="0"}') == {"node-1": 42}
        assert set(ask("ray_node_mem_total > 0")) == {"head", "node-1"}
    finally:
        subprocess.run([OBSERVE / "down", where], check=True)


def test_it_comes_back_and_is_told_when_it_does_not(node, stage):
    (first,) = node.pids()
    stage.bed.kill("h2", first)
    until(lambda: len(node.pids()) == 1 and node.pids() != {first}, "it was started again")
    # It ends at once: tried again, less and less often, and told once.
    kept = node.page.rename(node.page.with_suffix(".kept"))
    (second,) = node.pids()
    stage.bed.kill("h2", second)
    assert "there is no GPU for it" in node.exporter("exporter_ended")["text"]
    told = [e for e in stage.node_events("node-1") if e["kind"] == "node_exporter"]
    assert [e["reason"]["code"] for e in told] == ["exporter_runs", "exporter_ended"]
    kept.rename(node.page)
    node.exporter("exporter_runs")
    assert stage.node("node-1")["state"] == "online" and stage.node("node-1")["health"] == "ok"


def test_a_page_that_lies_harms_nobody(node, stage):
    node.page.write_text("DCGM_FI_DEV_GPU_UTIL{" + "x" * (5 << 20))
    assert "larger than" in node.exporter("exporter_silent")["text"]
    node.page.write_text('DCGM_FI_DEV_GPU_UTIL{gpu="63"} 1\nDCGM_FI_DEV_GPU_UTIL{gpu="0"} -5\n\0{{{\n' + dcgm([21, 8]))
    until(lambda: node.newest() == [0.21, 0.08], "it is well again, and has two GPUs")
    assert len(node.stage.get("/v1/nodes/node-1/figures?figure=gpu_util_ratio")["series"]) == 2
    metrics = stage.call("GET", "/metrics").body.decode()
    assert float(next(w for w in metrics.splitlines() if w.startswith("argus_figures_bad_lines_total")).split()[1]) >= 1


def test_it_ends_with_the_node(node, stage):
    assert len(node.pids()) == 1
    assert stage.call("POST", "/v1/nodes/node-1:drain", {}).status == 202
    stage.wait_node("node-1", "offline")
    assert node.pids() == set()
    assert stage.node("node-1")["exporter"] is None
