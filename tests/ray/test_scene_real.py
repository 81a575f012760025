# SPDX-License-Identifier: Apache-2.0
"""Workers' logs and the scene on real Ray: a driver on one node, an actor on the other, and what is left of both."""

import json
import os
import pathlib
import re

import pytest
from raybed import BEDS

from argusd import Argusd, needs_argusd, until

pytestmark = [pytest.mark.ray, needs_argusd, pytest.mark.timeout(900)]

CANARY = "canary-0123456789"
PROGRAM = """
import os, sys, threading
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as At

@ray.remote(num_cpus=0.1)
class Far:
    def say(self, word):
        print("the actor says", word, os.environ["MY_TOKEN"], flush=True)
        return os.getpid()
    def wait(self):
        threading.Event().wait()

ray.init()
here = ray.get_runtime_context().get_node_id()
others = [n for n in ray.nodes() if n["Alive"] and n["NodeID"] != here and "worker_node" in n["Resources"]]
far = Far.options(scheduling_strategy=At(others[0]["NodeID"], soft=False)).remote()
print("FAR", others[0]["NodeManagerAddress"], ray.get(far.say.remote("hello")), flush=True)
waiting = far.wait.remote()
open(sys.argv[1]).read()
raise RuntimeError("it fails here")
"""


def test_what_a_failure_leaves(tmp_path):
    bed = BEDS.get("2.60.0")
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with Argusd(tmp_path, bed.url) as a:
        command = [str(bed.python), "-c", PROGRAM, str(gate)]
        spec = {**a.spec(command), "env": {"MY_TOKEN": CANARY}, "spread": "cluster"}  # the actor leaves the lease
        job = a.submit(spec)
        attempt = a.log_file(job).parents[1]
        workers = attempt / "logs" / "workers"

        def copies():
            return {f: f.read_text() for f in workers.glob("*/worker-*.out")}

        def told():
            return [f for f, text in copies().items() if "the actor says hello ***" in text]

        [log] = until(told, "the far actor's log is copied")
        scouts = lambda: {f.stem for f in (attempt / "scouts").glob("*.json")}  # noqa: E731
        until(lambda: len(scouts()) == 2, "a scout on each node")
        scouts = scouts()
        assert log.parent.name in scouts, scouts
        ranks = log.parent / "ranks.json"  # whose log it is, written beside it a moment later
        until(lambda: ranks.exists() and log.name in json.loads(ranks.read_text()), "the log's process is named")
        assert json.loads(ranks.read_text())[log.name]["actor"] == "Far"
        (attempt / "stacks").mkdir()
        (attempt / "stacks" / "1.ask").write_text("{}")
        until(lambda: len(list((attempt / "stacks" / "1").glob("*.json"))) == 2, "both nodes tell their stacks")
        processes = json.loads((attempt / "stacks" / "1" / f"{log.parent.name}.json").read_text())
        [far] = [p for p in processes if p["actor"] == "Far"]
        assert far["cmd"].startswith("ray::Far") and far["text"], far
        gate.write_text("go")
        until(lambda: a.job(job)["state"] == "FAILED", "the job failed")
        scene = attempt / "scene"

        def told_all():
            facts = {d.name: json.loads((d / "scene.json").read_text()) for d in scene.iterdir() if d.is_dir()}
            return set(facts) == scouts and facts

        facts = until(told_all, "the scene of each node is there")
        assert facts[log.parent.name]["logs"] >= 1
        until(lambda: not (attempt / "scouts").exists(), "the scouts have gone")
        assert not any(CANARY.encode() in read(f) for f in attempt.rglob("*") if f.is_file())
        # The bed's hosts share this machine's process table, and tell their own pids.
        ours = lambda: [p for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if str(attempt).encode() in read(p)]  # noqa: E731
        until(lambda: not ours(), "no process of it is left")


def read(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


@pytest.mark.nightly
def test_the_raylet_dies(tmp_path):
    """What the actor said last is there, and its node's scene, though nothing of Ray is left on the node."""
    bed = BEDS.get("2.60.0")
    try:
        with Argusd(tmp_path, bed.url) as a:
            os.mkfifo(tmp_path / "gate")
            command = [str(bed.python), "-c", PROGRAM, str(tmp_path / "gate")]
            spec = {**a.spec(command), "env": {"MY_TOKEN": CANARY}, "spread": "cluster"}
            job = a.submit(spec)
            far = until(lambda: re.search(r"(?m)^FAR (\S+) \d+$", a.log_file(job).read_text()), "the far actor runs")[1]
            host = next(name for name, ip in bed.ips.items() if ip == far)
            attempt = a.log_file(job).parents[1]
            until(lambda: len(list((attempt / "scouts").glob("*.json"))) == 2, "a scout on each node")
            raylet = json.loads((attempt / "scouts" / f"{host}.json").read_text())["raylet"]
            bed.kill(host, raylet)  # and nothing else: its workers go by themselves
            until(lambda: (attempt / "scene" / host / "scene.json").exists(), "the scene of the lost node")
            logs = lambda: "".join(f.read_text() for f in (attempt / "logs" / "workers").rglob("worker-*.out"))  # noqa: E731
            until(lambda: "the actor says hello ***" in logs(), "what the actor said is there")
    finally:
        BEDS.drop()
