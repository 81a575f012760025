# SPDX-License-Identifier: Apache-2.0
"""What `argus node firewall` prints, loaded by the real nft and the real iptables inside a host of its own: another
node and argusd's machine get in, a host that is no node does not. Plain listeners stand for Ray."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys

import pytest
from fakeray import FakeRay
from programs import PROGRAMS
from raybed import BED, namespaces

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.skipif(os.getuid() != 0 or not shutil.which("nft"), reason="needs root and nft"),
]

LISTEN = """import socket,sys
s=[socket.create_server(('',int(p))) for p in sys.argv[1:]]
print('up',flush=True)
sys.stdin.read()
"""
TRY = """import socket,sys
from concurrent.futures import ThreadPoolExecutor
def reach(p):
    try:
        socket.create_connection((sys.argv[1],int(p)),timeout=15).close(); return p
    except OSError: return ''
print(*ThreadPoolExecutor(64).map(reach,sys.argv[2:]))
"""  # what is let in answers in a millisecond; what is not, never


def run(*argv, **more):
    return subprocess.run(argv, check=True, capture_output=True, text=True, **more).stdout


class Hosts:
    """Three bare hosts of tools/bed: of two this argusd has nodes, the third is a stranger."""

    def __init__(self, directory, stack):
        self.dir = str(directory)
        stack.callback(lambda: subprocess.run([BED, "down", "--dir", self.dir], capture_output=True))
        run(BED, "up", "--dir", self.dir, "--mode", "netns", "--no-ray", "--quiet")
        self.info = json.loads((directory / "bed.json").read_text())
        self.ips = {name: h["ip"] for name, h in zip(("guard", "peer", "stranger"), self.info["hosts"], strict=True)}
        self.names = {name: h["name"] for name, h in zip(self.ips, self.info["hosts"], strict=True)}

    def argv(self, name, *argv):
        return [str(BED), "on", "--dir", self.dir, self.names[name], *argv]

    def within(self, name, *argv, **more):
        return run(*self.argv(name, *argv), **more)

    def reached(self, name, ip, ports):
        return {int(p) for p in self.within(name, sys.executable, "-c", TRY, ip, *map(str, ports)).split()}


LOADERS = {"nft": ["nft", "-f", "-"], "iptables": ["sh"]}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    if not namespaces():
        pytest.skip("hosts need network namespaces: root, in a container that allows them")
    with contextlib.ExitStack() as stack:
        yield Hosts(tmp_path_factory.mktemp("bed"), stack)


@pytest.fixture(params=LOADERS)
def form(request, hosts):
    """What is printed for it; the rules go with the test."""
    if not shutil.which(request.param):
        pytest.skip(f"{request.param} is not installed: run ./dev setup")
    yield request.param
    hosts.within("guard", "nft", "flush", "ruleset")


def test_a_host_that_is_no_node_does_not_reach_ray(tmp_path, hosts, form):
    with contextlib.ExitStack() as stack:
        guard, peer, ctl = hosts.ips["guard"], hosts.ips["peer"], hosts.info["ctl_ip"]
        ray = stack.enter_context(FakeRay(state=tmp_path / "ray"))
        argusd = stack.enter_context(Argusd(tmp_path, ray.url))
        for name, ip in (("guard", guard), ("peer", peer)):
            assert argusd.call("POST", "/v1/nodes", {"name": name, "host": ip, "port": 1}).status == 201
            until(lambda name=name: argusd.get(f"/v1/nodes/{name}")["reason"]["code"] == "ssh_unreachable", "a look")
        rules = [r for r in argusd.get("/v1/nodes/guard/firewall")["rules"] if r["closed"]]
        ports = sorted({p for r in rules for p in (r["first"], r["last"])})
        listen = hosts.argv("guard", sys.executable, "-c", LISTEN, *map(str, ports))
        p = subprocess.Popen(listen, stdin=-1, stdout=-1)
        stack.callback(p.wait)
        stack.callback(p.stdin.close)
        assert p.stdout.readline() == b"up\n"
        assert hosts.reached("stranger", guard, ports) == set(ports)  # before the rules everybody does
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ARGUS_URL": argusd.url}
        env["ARGUS_TOKEN"] = argusd.tokens["admin"]
        text = run(PROGRAMS["argus"], "node", "firewall", "guard", "--format", form, env=env)
        for _ in range(2):  # loading them again replaces them
            hosts.within("guard", *LOADERS[form], input=text)

        def allowed(ip):
            return {q for r in rules if ip in r["sources"] for q in (r["first"], r["last"])}

        assert allowed(peer) and allowed(ctl)
        assert hosts.reached("stranger", guard, ports) == set()
        assert hosts.reached("peer", guard, ports) == allowed(peer)
        for port in allowed(ctl):
            socket.create_connection((guard, port), timeout=PATIENCE).close()
