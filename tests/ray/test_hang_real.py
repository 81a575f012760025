# SPDX-License-Identifier: Apache-2.0
"""A hang on real Ray: two actors on two nodes step together, one of them is stopped, or waits for what does not come.
The scouts of both nodes tell where everybody stands."""

import json
import os

import pytest
from raybed import BEDS

from argusd import Argusd, needs_argusd, until

pytestmark = [pytest.mark.ray, pytest.mark.nightly, needs_argusd, pytest.mark.timeout(900)]

SHORT = "hang: {factor: 2, floor: 3s, environment: 1h, model_load: 1h, first_step: 1h}"
PROGRAM = """
import json, os, sys, threading
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

@ray.remote(num_cpus=0.1)
class Trainer:
    def __init__(self, place):
        self.gate = place + "/gate"
    def who(self):
        return {"pid": os.getpid(), "host": os.uname().nodename}
    def step(self, n):
        threading.Event().wait(0.1)
        if os.environ["RANK"] == "1" and os.path.exists(self.gate):
            open(self.gate).read()
        return n

def at(node):
    return NodeAffinitySchedulingStrategy(node, soft=False)

ray.init()
nodes = [n["NodeID"] for n in ray.nodes() if n["Alive"] and "worker_node" in n["Resources"]]
ranks = [
    Trainer.options(scheduling_strategy=at(n), runtime_env={"env_vars": {"RANK": str(i)}}).remote(sys.argv[1])
    for i, n in enumerate(nodes[:2])
]
told = f"{sys.argv[1]}/ranks-{os.environ['ARGUS_ATTEMPT']}"
with open(told + ".new", "w") as f:
    json.dump(ray.get([r.who.remote() for r in ranks]), f)
os.rename(told + ".new", told)
print("Total training steps: 1000000", flush=True)
n = 0
while not os.path.exists(sys.argv[1] + "/end"):
    n += 1
    ray.get([r.step.remote(n) for r in ranks])
    print(f"step:{n} - critic/score/mean:0.1 - timing_s/step:0.1", flush=True)
"""


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with Argusd(tmp_path_factory.mktemp("hang"), BEDS.get("2.60.0").url, SHORT) as made:
        yield made


class Job:
    """It trains on two nodes."""

    def __init__(self, argusd, place, **keys):
        self.argusd, self.place, self.bed = argusd, place, BEDS.get("2.60.0")
        (place / "train.py").write_text(PROGRAM)
        command = [str(self.bed.python), str(place / "train.py"), str(place)]
        self.id = argusd.submit(argusd.spec(command, spread="cluster"), **keys)
        argusd.wait_job(self.id, lambda j: (j["step"] or 0) > 5, "trains")
        ranks = json.loads((place / "ranks-1").read_text())
        assert len({r["host"] for r in ranks}) == 2, ranks
        self.pid, self.host = ranks[1]["pid"], ranks[1]["host"]

    def signal(self, name):
        self.bed.on(self.host, "kill", f"-{name}", str(self.pid))

    def state(self):
        """Of its rank 1; "" when that is gone."""
        return self.bed.on(self.host, "sh", "-c", f"sed 's/.*) //' /proc/{self.pid}/stat 2>/dev/null || :")[:1]

    def events(self, kind):
        return [e for e in self.argusd.events(self.id) if e["kind"] == kind]

    def end(self):
        (self.place / "end").touch()
        return self.argusd.wait_over(self.id)


def hung(job):
    return job.argusd.wait_job(job.id, lambda j: j["flags"] == ["HUNG"] and j["finding"], "is hung")


def goes_on(job):
    job.argusd.wait_job(job.id, lambda j: not j["flags"], "goes on")
    assert job.events("went_on")
    found = f"/v1/jobs/{job.id}/findings"
    until(lambda: job.argusd.get(found)["findings"][0]["class"] == "none", "the finding is closed")


def check(job, found, state="T"):
    """What is said of it names the rank, and its node has told so."""
    assert (found["class"], found["rank"], found["node"]) == ("timeout_or_hang", "1", job.host), found
    assert found["pid"] == str(job.pid) and found["actor"] == "Trainer", found
    told = job.argusd.job_dir(job.id) / "attempts/1" / found["evidence"][1]["source"]
    processes = {p["pid"]: p for p in json.loads(told.read_text())}
    mine = processes[job.pid]
    assert told.stem == job.host and (mine["state"], mine["rank"], mine["by"]) == (state, "1", "py-spy"), mine
    assert mine["threads"] and mine["cmd"].startswith("ray::Trainer"), mine
    until(lambda: len(list(told.parent.glob("*.json"))) == 2, "both nodes have answered")


def test_a_stopped_actor_is_named_and_goes_on(argusd, tmp_path):
    job = Job(argusd, tmp_path)
    job.signal("STOP")
    view = hung(job)
    assert job.state() == "T", "whoever looked at it has not woken it"
    check(job, view["finding"])
    said = f"rank 1 (Trainer, pid {job.pid} on {job.host}) is stopped (state T)"
    assert said in job.events("hung")[-1]["text"] and said in view["reason"]["text"] and view["state"] == "RUNNING"
    job.signal("CONT")
    goes_on(job)
    assert job.end()["state"] == "SUCCEEDED"


def test_the_only_one_at_work_is_named(argusd, tmp_path):
    """It waits in its own code; the other has done its part of the step."""
    job = Job(argusd, tmp_path)
    os.mkfifo(tmp_path / "gate")
    view = hung(job)
    check(job, view["finding"], "S")
    assert f"rank 1 (Trainer, pid {job.pid} on {job.host}) stands in Trainer.step" in view["reason"]["text"]
    with open(tmp_path / "gate", "w"):
        (tmp_path / "gate").unlink()
    goes_on(job)
    assert job.end()["state"] == "SUCCEEDED"


def test_a_policy_starts_it_again(argusd, tmp_path):
    job = Job(argusd, tmp_path, restart={"max": 1, "on": ["timeout_or_hang"], "backoff": "0s"})
    job.signal("STOP")
    argusd.wait_job(job.id, lambda j: j["attempt"] == 2 and j["state"] == "RUNNING", "runs again")
    until(lambda: not job.state(), "the stopped one is gone")
    check(job, next(f for f in argusd.get(f"/v1/jobs/{job.id}/findings")["findings"] if f["attempt"] == 1))
    assert job.events("stop")[0]["reason"]["code"] == "timeout_or_hang"
    argusd.wait_job(job.id, lambda j: os.path.exists(tmp_path / "ranks-2") and (j["step"] or 0) > 5, "trains again")
    view = job.end()
    assert (view["state"], view["restarts"]) == ("SUCCEEDED", 1)
