# SPDX-License-Identifier: Apache-2.0
"""A node of real Ray where no job runs: what the driver says of its GPUs comes by the looks over ssh, and is told as
figures, alerts and health, and what its InfiniBand ports carry; and Ray's ports, which without a token run code for
everyone who reaches them, are tried from argusd's machine until the rules of `argus node firewall` keep it out."""

import datetime
import os
import pathlib
import shutil
import subprocess
import time

import pytest
from barestage import BareStage
from fakedriver import give_gpus, set_gpus
from programs import PROGRAMS
from raybed import BED, BEDS
from receiver import Receiver
from rulebed import Watch, rules_yaml
from stage import open_stage, wait_for

from argusd import until

pytestmark = [pytest.mark.ray, pytest.mark.timeout(900)]

GPU = "gpu {} {} 40000 300000 55"
RULES = """
gpu_hot: {for: 0s}
node_unhealthy: {for: 0s, clear_for: 1s}
node_ssh_away: {for: 1s}
"""


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory):
    evidence = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence"))
    hook = Receiver()
    made = open_stage(BareStage, BEDS.bare("2.51.1"), request, tmp_path_factory, evidence, None)
    request.addfinalizer(hook.__exit__)
    made.more = "nodes: {look_every: 2s}\n" + rules_yaml(hook, RULES)
    with made as stage:
        stage.watch = Watch(stage, hook)
        stage.bin = stage.root / "argus/bin" / os.uname().machine
        until((stage.bin / "argus-gpus").exists, "argus-gpus on the shared root")
        give_gpus(stage.bin, None, GPU.format(0, 0), GPU.format(1, 70))
        stage.add_node("node-1", "h2", gpu_count=2)
        stage.wait_node("node-1", "online")
        yield stage


# Ray's ports that have one number, but for the raylet's own, from which the head hears that it lives.
PORTS = 'iifname != "lo" tcp dport 9600-9999 drop'


def nft(stage, host, *words, **keys):
    within = [str(BED), "on", "--dir", stage.bed.dir, host, "nft"]
    subprocess.run([*within, *words], text=True, check=True, **keys)


def cut(stage, host, *rules):
    """These rules, and none of before."""
    chain = f"type filter hook input priority 0; {'; '.join(rules)};"
    nft(stage, host, "-f", "-", input=f"flush ruleset\ntable inet cut {{ chain input {{ {chain} }}; }}\n")


def second(stage):
    """node-2 is there, without GPUs."""
    if stage.call("GET", "/v1/nodes/node-2").status == 404:
        stage.add_node("node-2", "h3")
    stage.wait_node("node-2", "online")


def newest(stage, figure="gpu_util_ratio"):
    """The newest value of each GPU; None: not told."""
    series = stage.get(f"/v1/nodes/node-1/figures?figure={figure}&since=10m&step=15s")["series"]
    told = [[v for v in s["mean"] if v is not None] for s in series]
    return [v[-1] if v else None for v in told]


def alerts(stage, state="open"):
    return {(a["rule"], a["text"]) for a in stage.get(f"/v1/alerts?state={state}")["alerts"]}


def online_at(stage, name):
    """When Ray first had it, as Watch counts: from then on its ports answer."""
    at = next(e["at"] for e in stage.node_events(name) if e["kind"] == "node_online")
    return time.monotonic() - (time.time() - datetime.datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp())


def test_idle_gpus_are_seen(stage):
    until(lambda: newest(stage) == [0, 0.7], "the use of its GPUs, of which no job has one")
    assert newest(stage, "gpu_power_watts") == [300, 300]
    assert newest(stage, "gpu_mem_used_bytes")[0] == pytest.approx(40000 << 20, rel=1e-4)
    assert [newest(stage, f"gpu_{f}") for f in ("xid", "ecc_uncorrected")] == [[0, 0], [0, 0]]
    if not os.path.exists("/sys/class/infiniband"):
        assert newest(stage, "net_rdma_received_bytes_per_second") == [None]  # not measured, and not 0


def test_faults_of_idle_gpus_are_told(stage):
    gpus = (GPU.format(0, 0), "gpu 1 70 40000 300000 95")
    begun = Watch.begin()
    set_gpus(stage.bin, *gpus, "xid 0 79", "pending 1 1")
    for rule, text in (
        ("gpu_xid", "GPU node-1/0 reported Xid 79"),
        ("gpu_hot", "GPU node-1/1 is at 95 degrees"),
        ("gpu_rows_pending", "GPU node-1/1 replaces bad memory rows at its next reset"),
    ):
        until(lambda rule=rule, text=text: (rule, text) in alerts(stage), text)
    assert "Xid 79" in stage.watch.hears("gpu_xid", begun, "node-1/0")["text"]  # though a port of the node is told of
    assert stage.node("node-1")["health"] == "ok"
    set_gpus(stage.bin, *gpus, "rows 1 1")
    sick = until(lambda: (n := stage.node("node-1"))["health"] != "ok" and n, "its health")
    assert "GPU 1 has memory rows that could not be replaced" in sick["reason"]["text"]
    until(lambda: any(r == "node_unhealthy" for r, _ in alerts(stage)), "its alert")
    set_gpus(stage.bin, GPU.format(0, 0), GPU.format(1, 70))
    until(lambda: stage.node("node-1")["health"] == "ok", "it is well again")
    stage.watch.ends("node_unhealthy", "node-1")


class RdmaPorts:
    """/sys/class of node-1 with two InfiniBand devices. Each receives 1 GB/s and sends a quarter of that, as long as
    somebody asks: told() lets them count first."""

    def __init__(self, stage, tree):
        self.stage, self.tree = stage, tree
        self.began = dict.fromkeys(("mlx5_0", "mlx5_1"), time.monotonic())
        self.count()
        stage.bed.on("h2", "mount", "--bind", str(tree), "/sys/class")

    def close(self):
        self.stage.bed.on("h2", "umount", "-l", "/sys/class")

    def count(self):
        """In words of 4 bytes; a file is never seen half written."""
        for device, began in self.began.items():
            counters = self.tree / f"infiniband/{device}/ports/1/counters"
            words = int((time.monotonic() - began) * 250e6)
            counters.mkdir(parents=True, exist_ok=True)
            for name, value in (("port_rcv_data", words), ("port_xmit_data", words // 4)):
                (counters / "new").write_text(f"{value}\n")
                (counters / "new").rename(counters / name)

    def points(self, way):
        (series,) = self.stage.get(
            f"/v1/nodes/node-1/figures?figure=net_rdma_{way}_bytes_per_second&since=10m&step=15s"
        )["series"]
        return series["mean"]

    def told(self, way):
        self.count()
        return [v for v in self.points(way) if v is not None]


def test_what_its_infiniband_ports_carry(stage, tmp_path):
    """Of a device that is reset nothing is claimed that no port can carry, and of one that is gone nothing at all."""
    ports = RdmaPorts(stage, tmp_path)
    try:
        until(lambda: any(1e9 < v < 4e9 for v in ports.told("received")), "2 GB/s that both receive")
        until(lambda: any(0.25e9 < v < 1e9 for v in ports.told("sent")), "a quarter of that sent")
        ports.began["mlx5_0"] = time.monotonic()  # it was reset, and counts from 0 on
        had = len(ports.told("received"))
        until(lambda: len(v := ports.told("received")) > had and 1e9 < v[-1] < 4e9, "its rate afterwards")
        assert all(0 <= v < 100e9 for way in ("received", "sent") for v in ports.told(way))
        ports.began.clear()
        shutil.rmtree(tmp_path / "infiniband")
        until(lambda: ports.points("received")[-2:] == [None, None], "nothing is told of devices that are gone")
    finally:
        ports.close()


def test_ssh_does_not_get_through(stage):
    """Its sshd is cut off, its raylet is not. Nothing else is wrong there: its message waits for no other one."""
    if not shutil.which("nft"):
        pytest.skip("nft is not installed: run ./dev setup")
    cut(stage, "h3", PORTS)
    try:
        second(stage)
        begun = Watch.begin()
        cut(stage, "h3", PORTS, "tcp dport 22 drop")
        assert "does not get through" in stage.watch.hears("node_ssh_away", begun, "node-2")["text"]
    finally:
        nft(stage, "h3", "flush", "ruleset")
    stage.watch.ends("node_ssh_away", "node-2")


def test_what_a_write_to_the_root_takes_there_is_a_fact(stage):
    rule = {"of": "node", "when": "root_write_time > 0s", "text": "it takes {root_write_time} s", "severity": "info"}
    assert stage.call("PUT", "/v1/alert_rules/writes", rule).status == 201
    until(lambda: any(r == "writes" for r, _ in alerts(stage)), "the alert")
    assert stage.call("DELETE", "/v1/alert_rules/writes").status == 200


def test_a_port_that_answers_those_it_should_keep_out(stage):
    if not shutil.which("nft"):
        pytest.skip("nft is not installed: run ./dev setup")

    def ports(state):
        return {text for rule, text in alerts(stage, state) if rule == "ray_port_open" and "'node-1'" in text}

    said = until(lambda: next((t for t in ports("open") if "the machine of argusd" in t), None), "the port as an alert")
    assert "(objects)" in said or "(agent)" in said or "(agent_grpc)" in said or "(runtime_env)" in said
    assert "no token" in said
    stage.watch.hears("ray_port_open", online_at(stage, "node-1"), "node-1")
    env = {"PATH": os.environ["PATH"], "HOME": str(stage.home), "ARGUS_URL": stage.url}
    env["ARGUS_TOKEN"] = stage.tokens["admin"]
    argv = [PROGRAMS["argus"], "node", "firewall", "node-1", "--format", "nft"]
    rules = subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout
    nft(stage, "h2", "-f", "-", input=rules)
    try:
        stage.watch.ends("ray_port_open", "node-1")
        assert stage.node("node-1")["state"] == "online"
    finally:
        nft(stage, "h2", "flush", "ruleset")
    until(lambda: any("no token" in text for text in ports("open")), "the port as an alert again: it flaps, untold")


def test_a_port_that_answers_another_node(stage):
    """A filter that lets in node-2 alone: it is seen from there, and its end, too."""
    if not shutil.which("nft"):
        pytest.skip("nft is not installed: run ./dev setup")

    def said():
        return [t for r, t in alerts(stage) if r == "ray_port_open" and "'node-1'" in t]

    second(stage)
    try:
        cut(stage, "h2", PORTS)  # an alert that is open goes on saying whom it was about when it began
        until(lambda: not said(), "nobody is let in")
        cut(stage, "h2", f"ip saddr != {stage.bed.ips['h3']} {PORTS}")
        wait_for(lambda: any("the machine of node-2" in t for t in said()), "node-2 is let in", 300)  # it has its turn
        assert stage.node("node-1")["state"] == "online"
        cut(stage, "h2", PORTS)
        stage.watch.ends("ray_port_open", "node-1")
    finally:
        nft(stage, "h2", "flush", "ruleset")


def test_the_reader_ends_with_the_node(stage):
    def readers():
        return stage.bed.on("h2", "sh", "-c", "grep -l ARGUS_CARDS= /proc/[0-9]*/environ 2>/dev/null || true").split()

    assert len(readers()) in (1, 2, 3)  # with its child that asks the driver
    assert stage.call("POST", "/v1/nodes/node-1:drain", {}).status == 202
    stage.wait_node("node-1", "offline")
    assert readers() == []
