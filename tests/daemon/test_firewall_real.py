# SPDX-License-Identifier: Apache-2.0
"""What `argus node firewall` prints, loaded by the real nft inside a host of its own: another node and argusd's
machine get in, a host that is no node does not. Plain listeners stand for Ray."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

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
        socket.create_connection((sys.argv[1],int(p)),timeout=5).close(); return p
    except OSError: return ''
print(*ThreadPoolExecutor(64).map(reach,sys.argv[2:]))
"""  # what is let in answers in a millisecond; what is not, never


def run(*argv, **more):
    return subprocess.run(argv, check=True, capture_output=True, text=True, **more).stdout


class Net:
    """A bridge in a namespace, hosts on it, and a cable to this machine (.254)."""

    def __init__(self, stack):
        self.stack, self.pids = stack, {}
        switch = self.space("switch")
        self.within("switch", "ip", "link", "add", "br0", "type", "bridge")
        self.within("switch", "ip", "link", "set", "br0", "up")
        for x in range(1, 255):
            self.cable, self.subnet = f"agfw{x}", f"10.98.{x}"
            argv = ["ip", "link", "add", self.cable, "type", "veth", "peer", "name", "ctl", "netns", str(switch)]
            if subprocess.run(argv, capture_output=True).returncode == 0:
                break
        else:
            pytest.skip("this machine may not add network cables")
        run("ip", "addr", "add", f"{self.subnet}.254/24", "dev", self.cable)
        run("ip", "link", "set", self.cable, "up")
        self.within("switch", "ip", "link", "set", "ctl", "master", "br0", "up")

    def space(self, name):
        p = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo up; exec cat"], stdin=-1, stdout=-1)
        self.stack.callback(p.wait)
        self.stack.callback(p.stdin.close)
        assert p.stdout.readline() == b"up\n"
        self.pids[name] = p.pid
        return p.pid

    def argv(self, name, *argv):
        return ["nsenter", "-t", str(self.pids[name]), "--net", *argv]

    def within(self, name, *argv, **more):
        return run(*self.argv(name, *argv), **more)

    def host(self, name, last):
        pid, ip = self.space(name), f"{self.subnet}.{last}"
        link = ["ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(pid)]
        self.within("switch", *link)
        self.within("switch", "ip", "link", "set", name, "master", "br0", "up")
        self.within(name, "ip", "addr", "add", f"{ip}/24", "dev", "eth0")
        self.within(name, "ip", "link", "set", "eth0", "up")
        return ip

    def reached(self, name, ip, ports):
        return {int(p) for p in self.within(name, sys.executable, "-c", TRY, ip, *map(str, ports)).split()}


def test_a_host_that_is_no_node_does_not_reach_ray(tmp_path):
    with contextlib.ExitStack() as stack:
        net = Net(stack)
        guard, peer, _ = net.host("guard", 1), net.host("peer", 2), net.host("stranger", 3)
        ray = stack.enter_context(FakeRay(state=tmp_path / "ray"))
        argusd = stack.enter_context(Argusd(tmp_path, ray.url))
        for name, ip in (("guard", guard), ("peer", peer)):
            assert argusd.call("POST", "/v1/nodes", {"name": name, "host": ip, "port": 1}).status == 201
            until(lambda name=name: argusd.get(f"/v1/nodes/{name}")["reason"]["code"] == "ssh_unreachable", "a look")
        rules = [r for r in argusd.get("/v1/nodes/guard/firewall")["rules"] if r["closed"]]
        ports = sorted({p for r in rules for p in (r["first"], r["last"])})
        listen = net.argv("guard", sys.executable, "-c", LISTEN, *map(str, ports))
        p = subprocess.Popen(listen, stdin=-1, stdout=-1)
        stack.callback(p.wait)
        stack.callback(p.stdin.close)
        assert p.stdout.readline() == b"up\n"
        assert net.reached("stranger", guard, ports) == set(ports)  # before the rules everybody does
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ARGUS_URL": argusd.url}
        env["ARGUS_TOKEN"] = argusd.tokens["admin"]
        text = run(PROGRAMS["argus"], "node", "firewall", "guard", "--format", "nft", env=env)
        for _ in range(2):  # loading them again replaces them
            net.within("guard", "nft", "-f", "-", input=text)

        def allowed(ip):
            return {q for r in rules if ip in r["sources"] for q in (r["first"], r["last"])}

        assert allowed(peer) and allowed(f"{net.subnet}.254")
        assert net.reached("stranger", guard, ports) == set()
        assert net.reached("peer", guard, ports) == allowed(peer)
        for port in allowed(f"{net.subnet}.254"):
            socket.create_connection((guard, port), timeout=20).close()
