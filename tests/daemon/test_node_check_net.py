# SPDX-License-Identifier: Apache-2.0
"""argus node check --net beside a fake Ray: where its job runs, what the server makes of the result, which baseline
stays, over restarts; the tool itself is tried on real hosts by tests/ray/test_netcheck.py."""

import itertools
import json
import os
import subprocess
import sys

import pytest
from fakeray import FakeRay

from argusd import PROGRAMS, Argusd, needs_argusd, until

pytestmark = needs_argusd

WORKERS = ("w1", "w2", "w3")
NODES = [
    {"name": w, "ip": f"10.0.1.{i}", "resources": {"CPU": 8, "GPU": 2, "worker_node": 100, f"argus_node_{w}": 1000}}
    for i, w in enumerate(WORKERS)
]

# In place of the Python that runs the tool: what the test has written down, once it is there.
PYTHON = """#!PROGRAM
import os, sys, threading
assert sys.argv[1].endswith("/argus/lib/argus_netcheck.py") and os.path.exists(sys.argv[1])
result, plan = sys.argv[sys.argv.index("--result") + 1], PLAN
while not os.path.exists(plan):
    threading.Event().wait(0.05)
text = open(plan).read()
if text:
    open(result + ".new", "w").write(text)
    os.rename(result + ".new", result)
"""


def measured(rates, nodes=WORKERS, **more):
    """rates: {pair: Mbit/s}, or one for all."""
    pairs = itertools.combinations(nodes, 2)
    rate = rates.get if isinstance(rates, dict) else lambda *_: rates
    told = [{"a": b, "b": a, "mbps": rate((a, b), 1000), "usec": 30.4} for a, b in pairs]
    sizes = [{"bytes": 1024, "algo_mbps": 9.5, "bus_mbps": 12.6, "usec": 860}]
    return json.dumps({"backend": "gloo", "pairs": told, "sizes": sizes, "missed": [], **more})


class Server(Argusd):
    def __init__(self, home, ray):
        super().__init__(home, ray.url)
        self.plan = self.home / "plan.json"

    def cluster(self):
        return self.get("/v1/nodes")["nodes"]

    def measures(self, text):
        fresh = self.plan.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self.plan)

    def network(self):
        return self.get("/v1/clusters/default/network")

    def check(self, status=202, token="admin", **order):
        reply = self.call("POST", "/v1/nodes:check", order, token=token)
        assert reply.status == status, reply
        return reply.json()

    def checked(self, job):
        def is_over():
            (check,) = [k for k in self.network()["checks"] if k["job"] == job]
            return check if check["state"] != "running" else None

        return until(is_over, "the check is judged")

    def whole(self, text, **order):
        self.measures(text)
        return self.checked(self.check(**order)["job"])

    def argus(self, *argv):
        env = {"ARGUS_URL": self.url, "ARGUS_TOKEN": self.tokens["admin"], "HOME": str(self.home)}
        return subprocess.run([PROGRAMS["argus"], *argv], env=env, capture_output=True, text=True, timeout=120)


@pytest.fixture
def argusd(tmp_path, monkeypatch):
    python = tmp_path / "bin/python3"
    python.parent.mkdir()
    python.write_text(PYTHON.replace("PROGRAM", sys.executable).replace("PLAN", repr(str(tmp_path / "plan.json"))))
    python.chmod(0o755)
    monkeypatch.setenv("PATH", f"{python.parent}:{os.environ['PATH']}")
    with FakeRay(nodes=NODES, state=tmp_path / "ray") as ray, Server(tmp_path, ray) as a:
        until(lambda: len(a.cluster()) == len(NODES), "the nodes are there")
        yield a


def pair(argusd, *names):
    (found,) = [p for p in argusd.network()["pairs"] if (p["a"], p["b"]) == names]
    return found


def test_the_first_that_passes_sets_the_baseline_and_a_slow_pair_is_named(argusd):
    check = argusd.whole(measured(1000))
    assert (check["state"], check["nodes"], check["backend"], check["troubles"]) == ("passed", [*WORKERS], "gloo", [])
    assert check["sizes"] == [{"bytes": 1024, "algo_mbps": 9.5, "bus_mbps": 12.6, "usec": 860}]
    assert [(p["a"], p["b"], p["mbps"], p["baseline_mbps"], p["percent"]) for p in argusd.network()["pairs"]] == [
        (a, b, 1000, 1000, 100) for a, b in itertools.combinations(WORKERS, 2)
    ]
    job = argusd.job(check["job"])
    assert (job["nnodes"], job["n_gpus_per_node"], job["user"]) == (3, 1, argusd.get("/v1/whoami")["user"])

    slow = argusd.whole(measured({("w1", "w3"): 799}))
    (trouble,) = slow["troubles"]
    assert (slow["state"], trouble["code"]) == ("failed", "net_slow")
    assert trouble["args"] == {"a": "w1", "b": "w3", "mbps": 799, "percent": 79, "baseline": 1000}
    assert pair(argusd, "w1", "w3") | {"at": 0, "baseline_at": 0} == {
        "a": "w1", "b": "w3", "mbps": 799, "usec": 30, "at": 0, "job": slow["job"], "baseline_mbps": 1000,
        "baseline_at": 0, "baseline_job": check["job"], "percent": 79, "slow": True,
    }  # fmt: skip
    peers = {p["node"]: p["slow"] for p in argusd.get("/v1/nodes/w3")["network_peers"]}
    assert peers == {"w1": True, "w2": False}
    assert "network_peers" not in argusd.cluster()[1]
    told = [e for e in argusd.get("/v1/events")["events"] if e["kind"] == "network_checked"]
    assert [e["reason"]["code"] for e in told] == ["network_fine", "net_slow"]

    anew = argusd.whole(measured({("w1", "w3"): 799}), baseline=True)
    assert anew["state"] == "passed" and pair(argusd, "w1", "w3")["baseline_mbps"] == 799
    known = argusd.network()
    argusd.restart()
    assert argusd.network() == known


def test_it_runs_on_the_named_machines_alone(argusd):
    blocker = argusd.submit("sleep 1000", nnodes=3, n_gpus_per_node=2)  # all there is
    argusd.wait_state(blocker, "RUNNING")
    argusd.measures(measured(1000, ("w1", "w3")))
    job = argusd.check(nodes=["w3", "w1"])["job"]
    assert argusd.get(f"/v1/jobs/{job}/why")["code"] == "waiting_for_gpus"
    argusd.stop_job(blocker)
    assert argusd.checked(job)["state"] == "passed"
    assert {n["name"] for n in argusd.job(job)["nodes"]} == {"w1", "w3"}
    assert [(p["a"], p["b"]) for p in argusd.network()["pairs"]] == [("w1", "w3")]


def test_without_a_baseline_the_slow_machine_is_named_and_sets_none(argusd):
    rates = {("w1", "w3"): 40, ("w2", "w3"): 41}
    check = argusd.whole(measured(rates))
    (trouble,) = check["troubles"]
    assert (check["state"], trouble["code"], trouble["args"]["node"]) == ("failed", "net_uneven", "w3")
    assert all(p["baseline_mbps"] is None for p in argusd.network()["pairs"])
    missed = json.loads(measured(1)) | {"backend": "", "pairs": [], "sizes": []}
    missed["missed"] = [{"node": "w2", "by": ["w1", "w3"]}]
    check = argusd.whole(json.dumps(missed), baseline=True)
    assert [t["text"] for t in check["troubles"]] == ["'w2' is not reached by w1, w3"]


def test_kill_9_while_it_runs_and_an_end_that_nobody_saw(argusd):
    job = argusd.check()["job"]
    argusd.wait_state(job, "RUNNING")
    argusd.kill9()
    argusd.start()
    assert [k["state"] for k in argusd.network()["checks"]] == ["running"]
    argusd.measures(measured(500))
    assert argusd.checked(job)["state"] == "passed" and pair(argusd, "w1", "w2")["baseline_mbps"] == 500
    argusd.plan.unlink()
    job = argusd.check()["job"]
    argusd.wait_state(job, "RUNNING")
    argusd.stop()
    argusd.measures(measured(100))
    exit_file = argusd.job_dir(job) / "attempts/1/exit.json"
    until(exit_file.exists, "the job is over")
    argusd.start()
    check = argusd.checked(job)
    assert (check["state"], {t["code"] for t in check["troubles"]}) == ("failed", {"net_slow"})


def test_what_is_no_result(argusd):
    (argusd.home / "outside.json").write_text(measured(1000))
    check = argusd.whole(measured(1000, ("w1", "w2", "other")))
    (trouble,) = check["troubles"]
    assert (check["state"], trouble["code"], trouble["args"]["state"]) == ("failed", "net_no_result", "SUCCEEDED")
    assert trouble["text"].startswith(f"job '{check['job']}' ended as SUCCEEDED, and there is no result")
    argusd.plan.unlink()
    job = argusd.check()["job"]
    argusd.wait_state(job, "RUNNING")
    (argusd.job_dir(job) / "netcheck.json").symlink_to(argusd.home / "outside.json")
    argusd.measures("")
    assert argusd.checked(job)["troubles"][0]["code"] == "net_no_result"
    assert argusd.network()["pairs"] == []


def test_what_is_refused(argusd):
    assert argusd.check(404, nodes=["w1", "nobody"])["field"] == "nodes"
    assert "2 to 32 machines, and here are 1" in argusd.check(400, nodes=["w1", "w1"])["detail"]
    argusd.call("POST", "/v1/nodes", {"name": "there", "host": "127.0.0.1", "port": 1})
    assert argusd.check(409, nodes=["w1", "there"])["code"] == "node_takes_none"
    assert argusd.check(404, pool="nope")["code"] == "netcheck_no_pool"
    assert argusd.check(400, pool="a", nodes=["w1", "w2"])["code"] == "netcheck_nodes_or_pool"
    assert argusd.check(400, nodes=[1, 2])["code"] == "netcheck_nodes_form"
    for token in ("user", "viewer"):
        argusd.check(403, token=token)
    assert argusd.network() == {"pairs": [], "checks": []}


def test_the_command_line(argusd):
    argusd.measures(measured(1000))
    done = argusd.argus("node", "check", "--net")
    assert done.returncode == 0, done.stderr
    assert "w1 - w3: 1000 Mbit/s, 30 us, 100 % of the baseline (1000)\n" in done.stdout
    assert "all, 1.0 KiB: 10 Mbit/s, bus 13 Mbit/s, 860 us\n" in done.stdout, done.stdout
    argusd.measures(measured({("w1", "w3"): 500}))
    done = argusd.argus("node", "check", "--net", *WORKERS)
    assert done.returncode == 5 and "not as it should be" in done.stderr
    assert "w1 - w3: 500 Mbit/s, 30 us, 50 % of the baseline (1000) SLOW\n" in done.stdout
    assert "between 'w1' and 'w3' there are 500 Mbit/s, 50 % of the baseline (1000); look at the links" in done.stdout
    assert "w3 - w1: 500 Mbit/s" in argusd.argus("node", "show", "w3").stdout
    done = argusd.argus("node", "check", "--net", "--baseline", "-o", "json")
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["check"]["state"] == "passed" and len(told["pairs"]) == 3
    job = argusd.argus("node", "check", "--net", "--no-wait").stdout.strip()
    assert job in {k["job"] for k in argusd.network()["checks"]}
    for argv in (["--pool", "a", "w1"], ["w1", "--baseline"], [], ["--net", "--accept-key"]):
        assert argusd.argus("node", "check", *argv).returncode == 2, argv
    assert argusd.argus("node", "check", "--net", "w1", "nobody").returncode == 4
