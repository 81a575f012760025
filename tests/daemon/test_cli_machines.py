# SPDX-License-Identifier: Apache-2.0
"""argus node|pool|gpus|cluster against a stand-in for argusd: what is sent, what is said, how it ends."""

import json
import os
import pathlib
import subprocess
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml
from programs import PROGRAMS

pytestmark = pytest.mark.skipif(PROGRAMS is None, reason="argus is not built")
TOKEN, DEADLINE = "argus_test_token", 120
KEY = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"
REFUSED = {"code": "ssh_refused", "text": "no key of ours is accepted", "fix": "put the public key there"}


def node(name="node-7", state="online", **more):
    return {
        "name": name,
        "state": state,
        "flags": [],
        "reason": {"code": "", "text": "", "fix": None},
        "gpus": {"total": 4, "used": 0, "free": 4, "bad": 0},
        "facts": {"ray": "2.51.1", "python": "3.11.2"},
        "host_key": KEY,
        "findings": [],
        **more,
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urllib.parse.urlsplit(self.path).path
        self.server.asked.append((self.command, path, body.decode()))
        self.server.queries.append(self.path.partition("?")[2])
        replies = self.server.replies.get((self.command, path), [(404, {"code": "not_found", "detail": "no such"})])
        status, reply = replies.pop(0) if len(replies) > 1 else replies[0]
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status < 400 else "application/problem+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = answer


@pytest.fixture
def server():
    """Give it replies: server.replies[("GET", path)] = [(status, body), …]; the last one stays."""
    s = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    s.asked, s.queries, s.replies, s.daemon_threads = [], [], {}, True
    threading.Thread(target=s.serve_forever, daemon=True).start()
    yield s
    s.shutdown()
    s.server_close()


@pytest.fixture
def argus(tmp_path, server):
    def call(*args, code=0, text="", **env):
        keep = {k: v for k, v in os.environ.items() if k in ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")}
        url = f"http://127.0.0.1:{server.server_address[1]}"
        env = {**keep, "HOME": str(tmp_path), "ARGUS_URL": url, "ARGUS_TOKEN": TOKEN, **env}
        p = subprocess.run(
            [PROGRAMS["argus"], *args], input=text, env=env, capture_output=True, text=True, timeout=DEADLINE
        )
        assert p.returncode == code, f"{args}: {p.returncode}: {p.stdout}{p.stderr}"
        return p

    return call


def sent(server):
    return [json.loads(body) if body else None for method, _, body in server.asked if method == "POST"]


# ---- add ----


def test_add_by_options(server, argus):
    server.replies["POST", "/v1/nodes"] = [(201, {"nodes": [node(state="pending")]})]
    options = ["--host", "10.0.0.17", "--pool", "a6000,node-7", "--gpus", "4", "--cpus", "40", "--port", "2222"]
    more = ["--user", "root", "--identity-file", "/k", "--ray-bin", "/r/ray", "--env", "A=b=c", "--image", "i"]
    assert argus("node", "add", "node-7", *options, *more).stdout == "node-7 pending\n"
    assert sent(server) == [
        {
            "name": "node-7",
            "host": "10.0.0.17",
            "labels": "a6000,node-7",
            "gpu_count": 4,
            "cpu_count": 40,
            "port": 2222,
            "user": "root",
            "identity_file": "/k",
            "ray_bin": "/r/ray",
            "env": {"A": "b=c"},
            "image": "i",
        }
    ]


def test_add_a_file_as_it_is(server, argus, tmp_path):
    server.replies["POST", "/v1/nodes"] = [(201, {"nodes": [node("a", "pending"), node("b", "pending")]})]
    text = "- {name: a, host: x}  # one\n- {name: b, host: y}\n"
    (tmp_path / "n.yaml").write_text(text)
    for args in (["-f", str(tmp_path / "n.yaml")], [str(tmp_path / "n.yaml")], ["-f", "-"]):
        assert argus("node", "add", *args, text=text).stdout == "a pending\nb pending\n"
    assert [body for _, _, body in server.asked] == [text] * 3


def test_add_tells_every_problem_with_its_place(server, argus, tmp_path):
    problem = {"level": "error", "field": "hosst", "line": 2, "column": 3, "detail": "unknown key", "hint": "host"}
    server.replies["POST", "/v1/nodes"] = [(422, {"code": "bad_spec", "detail": "x", "problems": [problem]})]
    (tmp_path / "n.yaml").write_text("name: a\n  hosst: b\n")
    assert f"{tmp_path}/n.yaml:2:3: " in argus("node", "add", "-f", str(tmp_path / "n.yaml"), code=5).stderr


@pytest.mark.parametrize(
    "args, sentence",
    [
        ([], "give a name with --host, or a file with -f"),
        (["node-7"], "say where 'node-7' is: --host HOST"),
        (["node-7", "--host", "h", "-f", "x"], "not both"),
        (["node-7", "--host", "h", "--env", "A"], "'--env A' is not K=V"),
    ],
)
def test_add_misused(argus, args, sentence):
    assert sentence in argus("node", "add", *args, code=2).stderr


def test_add_waits_until_it_is_online(server, argus):
    server.replies["POST", "/v1/nodes"] = [(201, {"nodes": [node(state="pending")]})]
    late = [(200, node(state="pending", reason=REFUSED)), (200, node())]
    server.replies["GET", "/v1/nodes/node-7"] = late
    p = argus("node", "add", "node-7", "--host", "h", "--wait")
    assert p.stdout == f"node-7 online\n  GPUs: 4, Ray 2.51.1, Python 3.11.2\n  host key {KEY}\n"
    assert "node-7 pending: no key of ours is accepted; put the public key there" in p.stderr


def test_add_says_what_stood_in_the_way_to_the_end(server, argus):
    server.replies["POST", "/v1/nodes"] = [(201, {"nodes": [node(state="pending")]})]
    server.replies["GET", "/v1/nodes/node-7"] = [(200, node(state="pending", reason=REFUSED))]
    p = argus("node", "add", "node-7", "--host", "h", "--wait", "--timeout", "2s", code=5)
    assert "no key of ours is accepted" in p.stderr and "joins by itself once that is mended" in p.stderr


# ---- drain, undrain, rm, check ----


def test_drain_and_its_choices(server, argus):
    server.replies["POST", "/v1/nodes/node-7:drain"] = [(202, node(state="draining"))]
    assert argus("node", "drain", "node-7").stdout == "node-7 draining\n"
    argus("node", "drain", "node-7", "--deadline", "2h", "--then", "restart")
    argus("node", "drain", "node-7", "--stop-foreign")
    assert sent(server) == [
        {"then": "wait"}, {"then": "restart", "deadline": 7200}, {"then": "wait", "stop_foreign": True},
    ]  # fmt: skip
    assert "needs a deadline" in argus("node", "drain", "node-7", "--then", "stop", code=2).stderr


def test_drain_waits_until_it_is_offline(server, argus):
    server.replies["POST", "/v1/nodes/node-7:drain"] = [(202, node(state="draining"))]
    server.replies["GET", "/v1/nodes/node-7"] = [(200, node(state="draining")), (200, node(state="offline"))]
    assert argus("node", "drain", "node-7", "--wait").stdout == "node-7 offline\n"
    server.replies["GET", "/v1/nodes/node-7"] = [(200, node(state="draining"))]
    assert "not there in time" in argus("node", "drain", "node-7", "--wait", "--timeout", "2s", code=7).stderr


def test_undrain(server, argus):
    server.replies["POST", "/v1/nodes/node-7:undrain"] = [(202, node(state="pending"))]
    server.replies["GET", "/v1/nodes/node-7"] = [(200, node())]
    assert argus("node", "undrain", "node-7").stdout == "node-7 pending\n"
    assert argus("node", "undrain", "--wait", "node-7").stdout.startswith("node-7 online\n")


def test_rm_returns_when_it_is_gone(server, argus):
    server.replies["POST", "/v1/nodes/node-7:remove"] = [(202, node(state="offline"))]
    server.replies["GET", "/v1/nodes/node-7"] = [(200, node(state="offline")), (404, {"code": "not_found"})]
    assert argus("node", "rm", "node-7").stdout == "node-7 removed\n"
    argus("node", "rm", "--force", "node-7")
    argus("node", "rm", "--force", "--stop-foreign", "node-7")
    assert sent(server) == [None, {"force": True}, {"force": True, "stop_foreign": True}]


def test_rm_of_a_machine_in_use(server, argus):
    detail = "jobs run on node 'node-7': a; drain it first"
    server.replies["POST", "/v1/nodes/node-7:remove"] = [(409, {"code": "conflict", "detail": detail})]
    assert detail in argus("node", "rm", "node-7", code=5).stderr


def test_check(server, argus):
    server.replies["POST", "/v1/nodes/node-7:check"] = [(200, node()), (200, node(findings=[REFUSED]))]
    assert "nothing stands in its way" in argus("node", "check", "node-7").stdout
    p = argus("node", "check", "node-7", "--accept-key", code=5)
    assert "ssh_refused: no key of ours is accepted; put the public key there" in p.stdout
    assert sent(server) == [None, {"accept_key": True}]


def test_names_are_no_paths(server, argus):
    argus("node", "drain", "a/b?c", code=4)
    assert server.asked[0][1] == "/v1/nodes/a%2Fb%3Fc:drain"


def test_a_choice_goes_into_the_query(server, argus):
    server.replies["GET", "/v1/alerts"] = [(200, {"alerts": []})]
    argus("alert", "ls", "--state", "all", "--severity", "critical")
    assert server.queries == ["state=all&severity=critical"]


# ---- reading ----

GPUS = {"total": 8, "used": 3, "idle_held": 2, "foreign": 1, "held": 0, "free": 4, "draining": 0, "bad": 0}
POOL = {"cluster": "default", "type": "A6000", "nodes": 2, "largest_gang": 4, "queued": 5, "next_free": None}
MEM = {"gpu_mem_used_bytes": 100 << 30, "gpu_mem_total_bytes": 640 << 30}
POOLS = {"pools": [{**POOL, "pool": None, "gpus": GPUS, "util": 0.574, **MEM}, {**POOL, "pool": "a6000", "gpus": GPUS}]}


def test_gpus(server, argus):
    server.replies["GET", "/v1/pools"] = [(200, POOLS)]
    title, whole, pool = argus("gpus").stdout.splitlines()
    words = "CLUSTER POOL TYPE TOTAL USED UTIL MEM IDLE FOREIGN FREE DRAINING BAD LARGEST-GANG QUEUED NEXT-FREE"
    assert title.split() == words.split()
    assert whole.split() == "default (all) A6000 8 3 57% 100/640G 2 1 4 0 0 4 5 -".split()
    assert pool.split()[1] == "a6000" and pool.split()[5:7] == ["-", "-"]
    narrow = argus("gpus", COLUMNS="80").stdout.splitlines()
    assert all(len(line) <= 80 for line in narrow) and {"FREE", "LARGEST-GANG"} <= set(narrow[0].split())
    assert json.loads(argus("gpus", "-o", "json").stdout) == POOLS


def rule(key, first, last, who, sources, why, closed=True):
    ports = {"key": key, "first": first, "last": last}
    return {**ports, "from": who, "sources": sources, "closed": closed, "why": why}


FIREWALL = {
    "node": "node-1",
    "address": "10.0.0.2",
    "unknown": ["prometheus"],
    "rules": [
        rule("sshd", 22, 22, "argusd", ["10.0.0.9"], "ssh", closed=False),
        rule("raylet", 9500, 9500, "nodes, argusd", ["10.0.0.1", "fd00::7", "10.0.0.9"], "node manager"),
        rule("worker", 20000, 21249, "nodes", [], "workers"),
    ],
}


def code_of(text):
    return [line.strip() for line in text.splitlines() if not line.strip().startswith("#")]


def test_node_firewall(server, argus):
    server.replies["GET", "/v1/nodes/node-1/firewall"] = [(200, FIREWALL)]
    plain = argus("node", "firewall", "node-1").stdout
    assert "prometheus: its address is not known" in plain and "add --prometheus ADDRESS" in plain
    assert "9500        raylet       from 10.0.0.1, 10.0.0.9, fd00::7 (nodes, argusd): node manager" in plain
    assert "20000-21249 worker       from no known source (nodes): workers" in plain
    assert json.loads(argus("node", "firewall", "node-1", "--format", "json").stdout) == FIREWALL


def test_node_firewall_for_packet_filters(server, argus):
    server.replies["GET", "/v1/nodes/node-1/firewall"] = [(200, FIREWALL)]
    sh = code_of(argus("node", "firewall", "node-1", "--format", "iptables", "--prometheus", "10.0.0.8").stdout)
    four, six = ([line for line in sh if line.startswith(tool)] for tool in ("iptables", "ip6tables"))
    assert "iptables -A ARGUS -p tcp -s 10.0.0.1,10.0.0.9 --dport 9500 -j ACCEPT" in four
    assert "ip6tables -A ARGUS -p tcp -s fd00::7 --dport 9500 -j ACCEPT" in six
    assert [line for line in four if line.endswith("DROP")] == [
        "iptables -A ARGUS -p tcp --dport 9500 -j DROP", "iptables -A ARGUS -p tcp --dport 20000:21249 -j DROP"
    ]  # fmt: skip
    assert sh.index("iptables -A ARGUS -p tcp --dport 9500 -j DROP") > sh.index(
        "iptables -A ARGUS -p tcp -s 10.0.0.1,10.0.0.9 --dport 9500 -j ACCEPT"
    )
    nft = code_of(argus("node", "firewall", "node-1", "--format", "nft").stdout)
    assert nft[:3] == ["table inet argus", "delete table inet argus", "table inet argus {"]
    assert "ip saddr { 10.0.0.1, 10.0.0.9 } tcp dport 9500 accept" in nft
    assert "ip6 saddr { fd00::7 } tcp dport 9500 accept" in nft
    assert [line for line in nft if line.endswith("drop")] == ["tcp dport 9500 drop", "tcp dport 20000-21249 drop"]
    assert not any("dport 22 drop" in line for line in nft)


@pytest.mark.parametrize("key, value", [("sources", ["10.0.0.1; reboot"]), ("first", 0), ("why", "x\nreboot")])
def test_node_firewall_lets_nothing_but_addresses_into_a_rule(server, argus, key, value):
    bad = {**FIREWALL, "rules": [{**FIREWALL["rules"][1], key: value}]}
    server.replies["GET", "/v1/nodes/node-1/firewall"] = [(200, bad)]
    for form in ("plain", "iptables", "nft"):
        p = argus("node", "firewall", "node-1", "--format", form, code=5)
        assert p.stdout == "" and "a rule that is none" in p.stderr


def test_pool_ls(server, argus):
    server.replies["GET", "/v1/pools"] = [(200, POOLS)]
    title, row = argus("pool", "ls").stdout.splitlines()
    assert title.split() == "POOL CLUSTER NODES TYPE TOTAL FREE QUEUED".split()
    assert row.split() == "a6000 default 2 A6000 8 4 5".split()


CLUSTER = {
    "name": "default",
    "address": "http://10.0.0.1:8265",
    "up": True,
    "ray_version": "2.51.1",
    "head_ip": "10.0.0.1",
    "head": {"managed": True, "host": "10.0.0.1", "state": "online"},
    "registered": 3,
    "online": 2,
    "gpus": 8,
    "reason": {"code": "", "text": ""},
}
DOWN = {**CLUSTER, "up": False, "reason": {"code": "ray_unreachable", "text": "Ray does not answer"}}


def test_cluster_ls_and_status(server, argus):
    server.replies["GET", "/v1/clusters"] = [(200, {"clusters": [CLUSTER]})]
    title, row = argus("cluster", "ls").stdout.splitlines()
    assert title.split() == "CLUSTER STATE HEAD RAY NODES TOTAL REASON".split()
    assert row.split() == "default up 10.0.0.1 (managed) 2.51.1 2/3 8 -".split()
    assert "cluster 'default' is up\n  head 10.0.0.1, started by argusd" in argus("cluster", "status").stdout
    assert "there is no cluster 'other'" in argus("cluster", "status", "other", code=4).stderr
    server.replies["GET", "/v1/clusters"] = [(200, {"clusters": [DOWN]})]
    assert "is down: Ray does not answer" in argus("cluster", "status", code=6).stdout


def test_cluster_up_returns_when_it_is_up(server, argus):
    server.replies["GET", "/v1/clusters"] = [(200, {"clusters": [DOWN]})] * 2 + [(200, {"clusters": [CLUSTER]})]
    server.replies["POST", "/v1/clusters/default:up"] = [(202, {"clusters": [DOWN]})]
    p = argus("cluster", "up")
    assert "Ray does not answer" in p.stderr and "is up" in p.stdout


def test_cluster_down_names_what_would_end_and_asks(server, argus):
    server.replies["GET", "/v1/clusters"] = [(200, {"clusters": [CLUSTER]})]
    job = {"id": "grpo-1", "user": "alice", "state": "RUNNING"}
    server.replies["GET", "/v1/jobs"] = [(200, {"jobs": [job], "next_cursor": None})]
    server.replies["POST", "/v1/clusters/default:down"] = [(202, {"clusters": [CLUSTER]})]
    p = argus("cluster", "down", code=2)
    assert "grpo-1 alice RUNNING" in p.stderr and "add -y" in p.stderr and sent(server) == []
    argus("cluster", "down", "-y")
    argus("cluster", "down", "-y", "--stop-foreign")
    assert sent(server) == [{"stop_jobs": True}, {"stop_jobs": True, "stop_foreign": True}]


def test_file_of_machines_that_the_readme_names_is_a_list_of_specs():
    specs = yaml.safe_load((pathlib.Path(__file__).resolve().parents[2] / "examples/nodes.yaml").read_text())
    assert {s["name"] for s in specs} == {"node-1", "node-2"} and all(s["host"] for s in specs)
