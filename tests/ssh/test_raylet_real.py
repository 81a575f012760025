# SPDX-License-Identifier: Apache-2.0
"""Our raylets on real hosts with real Ray: started, adopted, looked at, stopped; and what must be left alone."""

import json
import os
import pathlib
import subprocess

import pytest
from fakeray import wait_for
from raybed import BEDS, ENVS, built_env
from rayprobe import PROBE, Probe
from sshtool import TOOL, SshTool
from stage import DIRECT

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(TOOL is None or PROBE is None, reason="ssh_tool and ray_probe are not built"),
]

STORE = 100_000_000


def gave_up(got):
    """Ray gives its own start 30 s, which a busy machine may exceed: then it is tried again, as argusd does."""
    return got["outcome"] == "start_failed" and "timed out during startup" in got["text"]


def start(tool, **keys):
    for _ in range(3):
        got = tool("start", **keys)
        if not gave_up(got):
            break
    assert got["outcome"] == "ok", got
    return got


class Cluster:
    """A head on h1, started by us; workers come and go."""

    def __init__(self, bed):
        self.bed = bed
        self.address = f"{bed.head_ip}:6379"
        self.head = SshTool(bed, "h1", object_store_bytes=STORE, ray_bin=bed.ray)
        ports = {"port.port": 6379, "port.dashboard-host": bed.head_ip}
        self.started = start(self.head, head=1, **ports)
        self.probe = Probe(f"http://{bed.head_ip}:8265")
        wait_for(lambda: self.probe("version")["outcome"] == "known", "the head answers")

    def worker(self, host, **keys):
        resources = json.dumps({"worker_node": 100, f"argus_node_{host}": 1000})
        return SshTool(
            self.bed,
            host,
            **{
                "address": self.address,
                "cpus": 8,
                "gpus": 4,
                "object_store_bytes": STORE,
                "ray_bin": self.bed.ray,
                "resources_json": resources,
                "labels": f"argus.node={host}",
            }
            | keys,
        )

    def nodes(self, host):
        """What Ray says of the raylets at that address, the living ones."""
        return [n for n in self.probe("nodes").get("nodes", []) if n["ip"] == self.bed.ips[host] and n["alive"]]

    def ids(self, host):
        return {n["node_id"] for n in self.nodes(host)}

    def dead(self, node_id):
        """Ray's own record of a raylet, once it calls it dead."""
        with DIRECT.open(f"http://{self.bed.head_ip}:8265/api/v0/nodes?detail=1", timeout=240) as reply:
            rows = json.load(reply)["data"]["result"]["result"]
        return next((n for n in rows if (n["node_id"], n["state"]) == (node_id, "DEAD")), None)

    def processes(self, host, word):
        """pids of that host whose command line has the word."""
        out = self.bed.on(host, "sh", "-c", f"grep -l '{word}' /proc/[0-9]*/cmdline 2>/dev/null || true")
        return [int(line.split("/")[2]) for line in out.split()]


@pytest.fixture(scope="module", params=[pytest.param("2.51.1", marks=pytest.mark.nightly), "2.60.0"])
def cluster(request):
    got = Cluster(BEDS.bare(request.param))
    yield got
    assert got.head("stop", grace=5000)["outcome"] == "ok"
    assert got.processes("h1", "[r]ay/") == []


@pytest.fixture
def worker(cluster):
    """Of one host; whatever a test leaves there is stopped."""
    made = []

    def make(host="h2", **keys):
        made.append(cluster.worker(host, **keys))
        return made[-1]

    yield make
    for one in made:
        one("stop", grace=3000)


def facts(got):
    return {k: got[k] for k in ("pid", "session", "start_time", "boot_id", "token", "address", "node_ip")}


def test_head(cluster):
    got = cluster.head("look")
    assert got["alive"] and got["is_head"] and facts(got) == facts(cluster.started)
    assert cluster.started["ray_took"] > 0
    (node,) = cluster.nodes("h1")
    assert node["head"] and "CPU" not in node["resources"] and "GPU" not in node["resources"]
    assert cluster.probe("version")["version"] == cluster.bed.version


def test_worker_as_ray_sees_it(cluster, worker):
    pools = ["A6000.big_mem-1", "all"]
    labels = worker().text("labels", "h2", *pools)
    h = worker(labels=labels)
    got = start(h)
    assert (got["alive"], got["adopted"], got["is_head"]) == (True, False, False)
    assert (got["address"], got["node_ip"]) == (cluster.address, cluster.bed.ips["h2"])
    (node,) = wait_for(lambda: len(nodes := cluster.nodes("h2")) == 1 and nodes, "Ray knows it, and no other one")
    assert (node["resources"]["CPU"], node["resources"]["GPU"]) == (8, 4)
    assert (node["resources"]["worker_node"], node["resources"]["argus_node_h2"]) == (100, 1000)
    assert node["labels"]["argus.node"] == "h2" and node["labels"]["argus.pool"] == pools[0]
    assert node["labels"]["argus.pool.all"] == "1"
    assert facts(h("look")) == facts(got)


def test_environment_of_the_raylet(cluster, worker):
    got = start(worker(), **{"env.X_OF_TEST": "a 'b'"})
    bed = cluster.bed
    env = bed.on("h2", "cat", f"/proc/{got['pid']}/environ").split("\0")
    names = {e.split("=")[0] for e in env}
    assert not names & {"SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "BASH_ENV"}
    assert {"ARGUS_OWNER=tests", "ARGUS_NODE=h2", f"ARGUS_RAYLET={got['token']}", "X_OF_TEST=a 'b'"} <= set(env)
    limits = bed.on("h2", "cat", f"/proc/{got['pid']}/limits")
    (soft, hard) = next(line.split()[3:5] for line in limits.splitlines() if line.startswith("Max open files"))
    assert int(soft) == min(65536, int(hard))
    session = bed.on("h2", "cat", f"/proc/{got['pid']}/stat").rpartition(")")[2].split()[3]
    assert int(session) == got["session"]


def test_adopted_never_a_second_one(cluster, worker):
    h = worker()
    first = start(h)
    wait_for(lambda: cluster.nodes("h2"), "Ray knows it")
    again = start(h)
    assert again["adopted"] and facts(again) == facts(first)
    cluster.bed.on("h2", "rm", "-r", f"/tmp/argus-{os.getuid()}/tests/h2")  # its record is lost
    assert facts(h("look")) == facts(first)
    again = start(h)
    assert again["adopted"] and facts(again) == facts(first)
    wait_for(lambda: len(cluster.nodes("h2")) == 1, "Ray knows it, and no other one")


def test_two_starts_at_once(cluster, worker):
    one, other = worker(), worker()
    for _ in range(3):
        running = [one.begin("start"), other.begin("start"), one.begin("start")]
        got = [one.finish(p) for p in running]
        if not any(gave_up(g) for g in got):
            break
    assert [g["outcome"] for g in got] == ["ok"] * 3
    assert sorted(g["adopted"] for g in got) == [False, True, True]
    assert len({g["token"] for g in got}) == 1
    assert len(cluster.processes("h2", "[r]aylet/raylet")) == 1


def test_start_goes_on_when_the_connection_breaks(cluster, worker):
    h = worker()
    running = h.begin("start")
    wait_for(lambda: h("look")["starting"], "the start is under way")
    cluster.bed.verb("kill-sshd", "h2")
    try:
        got = h.finish(running)
    finally:
        cluster.bed.verb("start-sshd", "h2")
    assert (got["outcome"], got["trouble"]) == ("ssh", "ssh_unreachable")
    found = wait_for(lambda: (look := h("look"))["alive"] and look, "it came up by itself")
    again = start(h)
    assert again["adopted"] and facts(again) == facts(found)


def test_killed_raylet(cluster, worker):
    h = worker()
    first = start(h)
    old = wait_for(lambda: len(pids := cluster.processes("h2", "[l]og_monitor")) == 1 and pids, "its log monitor runs")
    cluster.bed.kill("h2", first["pid"])
    wait_for(lambda: not h("look")["alive"], "the look says so")
    assert cluster.processes("h2", "[l]og_monitor") == old  # Ray leaves it
    second = start(h)
    assert not second["adopted"] and second["token"] != first["token"]
    assert old[0] not in cluster.processes("h2", "[l]og_monitor")


def test_stop_ends_all_of_it_and_ray_hears_at_once(cluster, worker):
    before = cluster.ids("h2")  # one that was killed lives on in Ray's list for a while
    h = worker()
    start(h)
    (own,) = wait_for(lambda: cluster.ids("h2") - before, "Ray knows it")
    got = h("stop", grace=10000)
    assert got["outcome"] == "ok" and got["ended"] >= 3
    dead = wait_for(lambda: cluster.dead(own), "Ray calls it dead")
    assert "health check" not in (dead["state_message"] or ""), "it did not say so itself"
    assert cluster.processes("h2", "[s]ite-packages/ray/") == []
    assert not h("look")["alive"]
    assert h("stop", grace=1000)["ended"] == 0


@pytest.mark.nightly  # three minutes on a busy machine
def test_what_is_not_ours_is_left_alone(cluster, worker):
    """Somebody else's raylet and process on the same machine, and a recycled pid in our record."""
    bed = cluster.bed
    bed.on("h3", str(bed.ray), "start", "--head", "--num-cpus=1", f"--object-store-memory={STORE}", "--port=6400",
           "--include-dashboard=false", "--disable-usage-stats", f"--node-ip-address={bed.ips['h3']}")  # fmt: skip
    theirs = cluster.processes("h3", "[s]ite-packages/ray/")
    try:
        h = worker("h3", **{"port.dashboard-agent-listen-port": 52400})
        start(h)
        assert len(cluster.processes("h3", "[r]aylet/raylet")) == 2
        assert h("stop", grace=5000)["outcome"] == "ok"
        assert set(theirs) <= set(cluster.processes("h3", "[s]ite-packages/ray/"))
        # Their raylet's pid in our record, with the start time of another process.
        start(h)
        folder = f"/tmp/argus-{os.getuid()}/tests/h3"
        record = bed.on("h3", "cat", f"{folder}/record")
        h("stop", grace=5000)
        lines = [f"RAYLET={theirs[0]} 1" if line.startswith("RAYLET=") else line for line in record.splitlines()]
        lines = [line for line in lines if not line.startswith("PROC=")] + [f"PROC={p} 1" for p in theirs]
        bed.on("h3", "sh", "-c", 'printf "%s\\n" "$@" >"$0"', f"{folder}/record", *lines)
        assert not h("look")["alive"]
        got = h("stop", grace=5000)
        assert (got["outcome"], got["ended"], got["killed"]) == ("ok", 0, 0)
        assert set(theirs) <= set(cluster.processes("h3", "[s]ite-packages/ray/"))
    finally:
        bed.verb("kill-worker", "h3")


DRIVER = """
import os, sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, runtime_env={"env_vars": {"ARGUS_JOB_ID": "j-1"}})
@ray.remote(num_gpus=1, resources={"argus_node_h2": 1})
class Trainer:
    def child(self):
        import subprocess
        return subprocess.Popen(["sleep", "600"]).pid
t = Trainer.remote()
print(ray.get(t.child.remote()), flush=True)
sys.stdin.read()
"""


def test_processes_of_jobs(cluster, worker, tmp_path):
    h = worker()
    start(h)
    bed = cluster.bed
    (tmp_path / "driver.py").write_text(DRIVER)
    argv = bed_argv(bed, "h1", str(bed.python), str(tmp_path / "driver.py"), cluster.address)
    driver = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        child = int(driver.stdout.readline())
        got = h("look", "j-1", "j-2")
        assert [(j["id"], j["is_live"]) for j in got["jobs"]] == [("j-1", True)]
        assert got["jobs"][0]["processes"] >= 2 and (got["strays"], got["stray_text"]) == (0, "")
        got = h("look", "j-2")
        assert not got["jobs"][0]["is_live"] and got["strays"] >= 2
        assert "of job 'j-1'" in got["stray_text"]
        assert cluster.worker("h3")("look")["jobs"] == []
    finally:
        driver.communicate("")
    # Whatever the driver's end left of it goes with the raylet.
    assert h("stop", grace=5000)["outcome"] == "ok"
    assert child not in cluster.processes("h2", "[s]leep")


def bed_argv(bed, host, *argv):
    return [str(pathlib.Path(__file__).resolve().parents[2] / "tools/bed/bed"), "on", "--dir", bed.dir, host, *argv]


def test_destroyed_host_comes_back(cluster, worker):
    h = worker("h3")
    first = start(h)
    cluster.bed.verb("destroy", "h3")
    assert h("look", limit=3000)["outcome"] == "ssh"
    cluster.bed.verb("create", "h3")
    got = wait_for(lambda: (look := h("look"))["outcome"] == "ok" and look, "the host answers")
    assert not got["alive"]  # the same boot, and perhaps the same pid: another process
    second = start(h)
    assert not second["adopted"] and second["token"] != first["token"]


@pytest.mark.nightly  # three quarters of a minute for each
def test_head_of_another_ray(cluster, worker):
    env = built_env(next(f"verl-{verl}" for verl, ray in ENVS.items() if ray != cluster.bed.version))
    h = worker()
    got = h("start", ray_bin=env / "bin/ray", limit=240000)
    assert got["outcome"] == "no_head"
    assert "did not take it in" in got["text"] and "the same Ray" in got["fix"]
    assert cluster.processes("h2", "[s]ite-packages/ray/") == []
    assert not h("look")["alive"]


def test_health(cluster, worker, tmp_path):
    h = worker(shared_root=tmp_path, min_disk_bytes=1 << 20, max_skew=60000, max_write=60000)
    (tmp_path / "mark").write_text("")
    bed = cluster.bed
    got = h("look", root_mark="mark")
    assert (got["health"], got["health_code"]) == ("", "")
    bed.on("h2", "mount", "--bind", "-o", "ro", str(tmp_path), str(tmp_path))
    try:
        got = h("look", root_mark="mark")
        assert got["health_code"] == "root_read_only" and "Read-only" in got["health"]
    finally:
        bed.on("h2", "umount", str(tmp_path))
    assert h("look", root_mark="none")["health_code"] == "root_not_mounted"
    smi = pathlib.Path(bed.dir) / "hosts/h2/bin/nvidia-smi"
    gpu = 'echo "H200, 550, 0"'
    smi.write_text(f"#!/bin/sh\ncase $* in *compute-apps*) echo 1;; *) {gpu}; {gpu};; esac\n")
    smi.chmod(0o755)
    try:
        got = h("look", gpus=2)
        assert got["health"] == "" and got["strays"] == 1  # pid 1 is nobody of ours
        assert "on a GPU: 1 " in got["stray_text"]
        assert h("look", gpus=4)["health_code"] == "gpu_trouble"
    finally:
        smi.unlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mark"]


LABELS = """
import json, sys
from ray._private.label_utils import parse_node_labels_string
for text in json.load(sys.stdin):
    try:
        parse_node_labels_string(text)
        print("taken")
    except ValueError:
        print("refused")
"""


def test_labels_are_those_that_ray_takes(cluster, worker):
    texts = ["a", "A-1", "a.b_c-d", "x" * 63, "-a", "a-", "a b", "a/b", "a=b", "é", "a.", "1"]
    asked = json.dumps([f"argus.node={t}" for t in texts])
    done = subprocess.run([cluster.bed.python, "-c", LABELS], input=asked, capture_output=True, text=True, check=True)
    said = done.stdout.split()
    h = worker()
    ours = ["refused" if "cannot be a label" in h.text("labels", t) else "taken" for t in texts]
    assert ours == said
    assert {"taken", "refused"} <= set(said)
