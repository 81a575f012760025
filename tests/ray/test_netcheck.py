# SPDX-License-Identifier: Apache-2.0
"""lib/argus_netcheck.py: torch's all-reduce over gloo between hosts with cables of their own, as processes that
somebody started and as a job of argusd on real Ray; a slow cable, and a host that lets nobody in, are named."""

import importlib.util
import json
import pathlib
import subprocess

import pytest
import stage as staging
from raybed import BED, BEDS, env_path, namespaces

from argusd import needs_argusd

TOOL = pathlib.Path(__file__).resolve().parents[2] / "lib/argus_netcheck.py"
ON = [BED, "on", "--dir"]
PORT = 28999


def judge(pairs, best=()):
    spec = importlib.util.spec_from_file_location("netcheck", TOOL)
    netcheck = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(netcheck)
    return netcheck.judge(pairs, dict(best))


def test_netcheck_names_the_slow_one():
    """Without Ray: a slow node spoils its pairs, and its neighbours are not blamed for that."""
    assert judge({("a", "b"): 900, ("a", "c"): 910, ("b", "c"): 890})[1] == {}
    figures, slow = judge({("a", "b"): 900, ("a", "c"): 40, ("b", "c"): 41})
    assert (list(slow), figures["c"]) == (["c"], 41) and "5 % of the median of the nodes (900)" in slow["c"]
    assert judge({("a", "b"): 40})[1] == {}  # of two nobody knows which, without a past
    assert list(judge({("a", "b"): 40}, {"a": 45, "b": 900})[1]) == ["b"]


def throttle(on, rate, *hosts):
    """What these hosts send goes no faster."""
    for host in hosts:
        on(host, "tc", "qdisc", "replace", *f"dev eth0 root tbf rate {rate} burst 256kb latency 200ms".split())


class Hosts:
    """Three bare hosts."""

    def __init__(self, directory):
        self.dir, self.best = str(directory), directory / "best.json"
        self.python = env_path("verl-0.9.1") / "bin/python"
        up = [BED, "up", "--dir", self.dir, "--mode", "netns", "--no-ray", "--quiet"]
        subprocess.run(up, check=True, capture_output=True)
        self.ips = {h["name"]: h["ip"] for h in json.loads((directory / "bed.json").read_text())["hosts"]}

    def on(self, host, *argv):
        subprocess.run([*ON, self.dir, host, *argv], check=True, capture_output=True, text=True)

    def check(self, *names, patience=200):
        """Stdout, stderr and exit status of each, started on all at once."""
        words = ["--hosts", ",".join(f"{n}={self.ips[n]}" for n in names), "--port", str(PORT), "--best", self.best]
        words += ["--patience", str(patience)]
        argv = [self.python, TOOL, *words, "--rank"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        running = [subprocess.Popen([*ON, self.dir, n, *argv, str(r)], **pipes) for r, n in enumerate(names)]
        told = [(*running[0].communicate(timeout=250), running[0].returncode)]
        for p in running[1:]:
            if told[0][2]:
                p.kill()  # what it started may wait for the first one, and ends with the bed
            else:
                told.append((*p.communicate(timeout=250), p.returncode))
        return told


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    if not namespaces() or env_path("verl-0.9.1") is None:
        pytest.skip("needs network namespaces (root) and the environment verl-0.9.1")
    directory = tmp_path_factory.mktemp("bed")
    try:
        yield Hosts(directory)
    finally:
        subprocess.run([BED, "down", "--dir", directory], capture_output=True)


def is_well(hosts, groups, *names):
    (told, said, code), *others = hosts.check(*names)
    assert code == 0 and [o[2] for o in others] == [0] * len(others), said
    figures = [line.split()[-4:] for line in told.splitlines() if "Mbit/s" in line]
    assert len(figures) == groups and all(5 < float(mbps) < 330 and float(us) > 0 for mbps, _, us, _ in figures)


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_two_and_three_hosts(hosts):
    throttle(hosts.on, "300mbit", "h1", "h2", "h3")
    is_well(hosts, 1, "h1", "h2")
    is_well(hosts, 4, "h1", "h2", "h3")
    kept = json.loads(hosts.best.read_text())
    assert set(kept) == {"h1", "h2", "h3"} and all(b["at"] and b["mbps"] > 5 for b in kept.values())
    throttle(hosts.on, f"{max(1, int(min(b['mbps'] for b in kept.values()) / 8))}mbit", "h3")
    _, said, code = hosts.check("h1", "h2", "h3")[0]
    assert code == 1 and f"node 'h3' (eth0 {hosts.ips['h3']}) reaches " in said, said
    assert "of the median of the nodes" in said or "of its best so far" in said
    throttle(hosts.on, "300mbit", "h3")
    hosts.on("h3", "nft", "add", "table", "inet", "closed")
    hosts.on("h3", "nft", "add chain inet closed in { type filter hook input priority 0; }")
    hosts.on("h3", "nft", f"add rule inet closed in tcp dport {PORT} drop")
    _, said, code = hosts.check("h1", "h3", patience=10)[0]
    assert code == 1 and f"node 'h3' (? {hosts.ips['h3']}) is not reached by h1" in said, said


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory):
    kept = tmp_path_factory.mktemp("kept")
    with staging.open_stage(staging.Stage, BEDS.get("2.60.0"), request, tmp_path_factory, kept, None) as s:
        staging.wait_for(lambda: s.get("/readyz")["shared_root"] == "ok", "the shared root was checked")
        yield s


def check(stage, *args, code=0):
    """What argus says of a check of h2 and h3: the check, and the one pair."""
    told = json.loads(stage.argus("node", "check", "--net", "h2", "h3", "-o", "json", *args, code=code))
    (pair,) = told["pairs"]
    assert (pair["a"], pair["b"], told["check"]["backend"]) == ("h2", "h3", "gloo")
    return told["check"], pair


@pytest.mark.ray
@pytest.mark.nightly
@needs_argusd
@pytest.mark.timeout(900)
def test_as_a_job(stage):
    """The second one's host has a slower cable, which becomes the baseline."""
    if stage.bed.info["mode"] != "netns":
        pytest.skip("cables need hosts with namespaces")
    try:
        throttle(stage.bed.on, "400mbit", "h2", "h3")
        well, pair = check(stage)
        assert (well["state"], set(well["nodes"]), well["troubles"]) == ("passed", {"h2", "h3"}, [])
        assert 10 < pair["mbps"] < 440 and pair["usec"] > 0 and pair["baseline_mbps"] == pair["mbps"]
        assert [s["bytes"] for s in well["sizes"]] == [1 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20]
        assert {n["name"] for n in stage.job(well["job"])["nodes"]} == {"h2", "h3"}
        throttle(stage.bed.on, f"{max(1, int(pair['mbps'] / 8))}mbit", "h3")
        slow, now = check(stage, code=5)
        (trouble,) = slow["troubles"]
        assert (slow["state"], trouble["code"], now["slow"]) == ("failed", "net_slow", True)
        assert (trouble["args"]["a"], trouble["args"]["b"], trouble["args"]["baseline"]) == ("h2", "h3", pair["mbps"])
        assert stage.get("/v1/nodes/h3")["network_peers"][0]["percent"] < 80
        anew, now = check(stage, "--baseline")
        assert anew["state"] == "passed" and now["baseline_mbps"] == now["mbps"] < pair["mbps"] / 2
    finally:  # the bed may serve others
        for host in ("h2", "h3"):
            subprocess.run([*ON, stage.bed.dir, host, "tc", "qdisc", "del", "dev", "eth0", "root"])
