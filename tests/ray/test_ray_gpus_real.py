# SPDX-License-Identifier: Apache-2.0
"""Ray's own series of GPUs on a node of real Ray: its agent opens a pretended driver (tests/lib/fake_nvml.c) as it
would open NVIDIA's. Where argus-gpus has no driver, what argusd tells is Ray's; where it has one, both say the same.

The tests follow one another. The driver is placed for Ray alone first, by the `env` of the node's spec."""

import ctypes.util
import os
import pathlib
import re

import pytest
from barestage import BareStage
from fakedriver import give_gpus, set_gpus
from raybed import BEDS
from stage import DIRECT, open_stage

from argusd import until

pytestmark = [pytest.mark.ray, pytest.mark.timeout(900)]

MIB = 1 << 20
TOTAL, KEPT = 81559, 480  # MiB of the pretended GPU, and what its driver keeps for itself, which Ray counts as used
SERIES = re.compile(r'^(ray_node_\w+)\{(?:.*,)?GpuIndex="(\d+)".*\} (\S+)$', re.M)
VERSIONS = ["2.51.1", pytest.param("2.60.0", marks=pytest.mark.nightly)]


def gpu_lines(*percent):
    """Each GPU works so much; the first holds 40,000 MiB, the next 41,000, and so on."""
    return [f"gpu {i} {use} {40000 + 1000 * i} {300000 + 1000 * i} {50 + i}" for i, use in enumerate(percent)]


class Node:
    """node-1: Ray's driver is in `rays`, argusd's beside argus-gpus in `ours`."""

    def __init__(self, stage):
        self.stage, self.rays = stage, stage.home / "driver"
        self.ours = stage.root / "argus/bin" / os.uname().machine
        self.rays.mkdir()
        until((self.ours / "argus-gpus").exists, "argus-gpus on the shared root")
        give_gpus(self.rays, None, *gpu_lines(0, 70))
        stage.add_node("node-1", "h2", gpu_count=2, env={"LD_LIBRARY_PATH": str(self.rays)})
        stage.wait_node("node-1", "online")

    def page(self):
        """{series: {index: value}} of Ray's own page; empty until argusd knows where it is."""
        reply = self.stage.call("GET", "/v1/prometheus/targets")
        groups = [g for g in reply.json() if g["labels"]["node"] == "node-1"] if reply.status == 200 else []
        told = {}
        for group in groups:
            try:
                with DIRECT.open(f"http://{group['targets'][0]}/metrics", timeout=60) as answer:
                    text = answer.read().decode()
            except OSError:  # Ray names the port before its agent listens there
                return {}
            for name, gpu, value in SERIES.findall(text):
                told.setdefault(name, {})[int(gpu)] = float(value)
        return told

    def newest(self, figure="gpu_util_ratio"):
        """The newest value that argusd tells of each GPU; None: not told."""
        series = self.stage.get(f"/v1/nodes/node-1/figures?figure={figure}&since=10m&step=15s")["series"]
        told = [[v for v in s["mean"] if v is not None] for s in series]
        return [v[-1] if v else None for v in told]


@pytest.fixture(scope="module", params=VERSIONS)
def node(request, tmp_path_factory):
    if ctypes.util.find_library("nvidia-ml"):
        pytest.skip("this machine has a driver of NVIDIA, which argus-gpus would find where there should be none")
    evidence = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence"))
    made = open_stage(BareStage, BEDS.bare(request.param), request, tmp_path_factory, evidence, None)
    made.more = "nodes: {look_every: 2s}"
    with made as stage:
        yield Node(stage)


def test_ray_tells_what_its_driver_says(node):
    page = until(lambda: (p := node.page()).get("ray_node_gpus_utilization") == {0: 0, 1: 70} and p, "Ray's series")
    assert page["ray_node_gpus_available"] == {0: 1, 1: 1}
    assert page["ray_node_gram_used"] == {0: 40000 + KEPT, 1: 41000 + KEPT}
    assert page["ray_node_gram_available"] == {0: TOTAL - 40000 - KEPT, 1: TOTAL - 41000 - KEPT}
    if node.stage.bed.version == "2.60.0":
        assert page["ray_node_gpu_power_milliwatts"] == {0: 300000, 1: 301000}
        assert page["ray_node_gpu_temperature_celsius"] == {0: 50, 1: 51}


def test_argusd_tells_rays_word_where_it_has_no_other(node):
    until(lambda: node.newest() == [0, 0.7], "the use of its GPUs")
    used = [(40000 + KEPT) * MIB, (41000 + KEPT) * MIB]
    assert node.newest("gpu_mem_used_bytes") == pytest.approx(used, rel=1e-4)
    assert node.newest("gpu_mem_total_bytes") == pytest.approx([TOTAL * MIB] * 2, rel=1e-4)
    assert node.newest("gpu_xid") in ([], [None, None])  # no page of Ray tells of errors


def test_both_tell_the_same(node):
    """What the driver says changes for both; of memory, Ray counts what the driver keeps, and the driver does not."""
    lines = gpu_lines(35, 90)
    give_gpus(node.ours, None, *lines)
    set_gpus(node.rays, *lines)
    until(lambda: node.newest("gpu_xid") == [0, 0], "argus-gpus tells of its GPUs")
    page = until(lambda: (p := node.page()).get("ray_node_gpus_utilization") == {0: 35, 1: 90} and p, "Ray's series")
    until(lambda: node.newest() == [0.35, 0.9], "the same use by argusd")
    used, free = ([page[f"ray_node_gram_{part}"][gpu] * MIB for gpu in (0, 1)] for part in ("used", "available"))
    ours = pytest.approx([u - KEPT * MIB for u in used], rel=1e-4)
    until(lambda: node.newest("gpu_mem_used_bytes") == ours, "the same memory but for what the driver keeps")
    total = pytest.approx([u + f for u, f in zip(used, free, strict=True)], rel=1e-4)
    assert node.newest("gpu_mem_total_bytes") == total
    if node.stage.bed.version == "2.60.0":
        power = page["ray_node_gpu_power_milliwatts"]
        assert node.newest("gpu_power_watts") == pytest.approx([power[0] / 1000, power[1] / 1000])
