# SPDX-License-Identifier: Apache-2.0
"""However a job ends, argusd's API, `argus status` and the run in its tracker tell the same: twelve kinds of end, each
with a real MLflow server beside the fake Ray."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from fakeray import FakeRay
from programs import PROGRAMS
from trackerbed import MLflow

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

MORE = "limits: {reclaim_grace: 1s}\ncalls: {networks: [127.0.0.0/8]}"
PATIENT = "echo up; exec tail -f /dev/null"
AGAIN = {"max": 1, "backoff": "1s", "on": ["unknown", "user_code_error"]}
OOM = "import sys; sys.exit('torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB')"
FINISHED, FAILED, KILLED = "FINISHED", "FAILED", "KILLED"


class Bed:
    def __init__(self, argusd, ray, mlflow):
        self.argusd, self.ray, self.mlflow = argusd, ray, mlflow

    def submit(self, spec, **keys):
        tracking = {"backend": "mlflow", "uri": self.mlflow.url, "project": "ends"}
        return self.argusd.submit(spec, tracking=tracking, **keys)

    def running(self, spec=PATIENT, **keys):
        job = self.submit(spec, **keys)
        self.argusd.wait_state(job, "RUNNING")
        return job

    def project(self, name):
        """With half of the GPUs as its own."""
        assert self.argusd.call("POST", "/v1/projects", {"name": name, "members": ["alice"]}).status == 201
        assert self.argusd.call("PUT", f"/v1/projects/{name}/quota", {"gpus_guaranteed": 4}).status == 200

    def shepherd(self, job):
        (start,) = self.ray.starts()[job]
        return start["pid"]


def succeeds(b):
    return b.submit("exit 0")


def fails_by_its_code(b):
    return b.submit("exit 3")


def is_out_of_memory(b):
    return b.submit([sys.executable, "-c", OOM])


def is_stopped(b):
    job = b.running()
    b.argusd.stop_job(job, token="user")
    return job


def is_over_its_time(b):
    return b.submit(PATIENT, timeout="2s", stop_grace="1s")


def is_preempted_and_stopped(b):
    b.project("lent")
    b.project("owns")
    job = b.running(project="lent", restart={"max": 1}, stop_grace="1s", nnodes=2, n_gpus_per_node=4)
    b.argusd.submit(PATIENT, project="owns", n_gpus_per_node=4)
    b.argusd.wait_job(job, lambda j: (j["state"], j["flags"]) == ("QUEUED", ["RESTARTING"]), "is back in the queue")
    b.argusd.stop_job(job)
    return job


def is_killed_with_its_shepherd(b):
    job = b.running()
    os.killpg(b.shepherd(job), signal.SIGKILL)
    return job


def loses_its_node(b):
    job = b.running()
    b.ray.node(b.argusd.job(job)["nodes"][0]["name"], "dead")
    return job


def loses_its_head(b):
    """The new session knows no job, and the old node's processes are swept away."""
    job = b.running()
    b.ray.lose_memory()
    until(lambda: "ray_new_session" in {e["kind"] for e in b.argusd.events()}, "the new session is seen")
    os.kill(b.shepherd(job), signal.SIGTERM)
    return job


def ends_while_argusd_is_away(b):
    gate = b.argusd.root / "common/gate"
    job = b.running(f"while [ ! -e {gate} ]; do sleep 0.1; done")
    b.argusd.kill9()
    gate.touch()
    until((b.argusd.job_dir(job) / "attempts/1/exit.json").exists, "it has ended")
    b.argusd.start()
    return job


def succeeds_at_its_second_attempt(b):
    return b.submit('[ "$ARGUS_ATTEMPT" != 1 ] || exit 3', restart=AGAIN)


def is_stopped_while_it_waits(b):
    job = b.submit("echo x", nnodes=9, n_gpus_per_node=4)
    b.argusd.wait_job(job, lambda j: j["reason"]["code"], "says why it waits")
    b.argusd.stop_job(job)
    return job


@dataclasses.dataclass
class End:
    """How it comes to it, the job's state, (status, argus.state) of the run of each attempt, the class of a failure."""

    of: Callable
    state: str
    runs: list
    finding: str | None = None


ENDS = [
    End(succeeds, "SUCCEEDED", [(FINISHED, "SUCCEEDED")]),
    End(fails_by_its_code, "FAILED", [(FAILED, "FAILED")]),
    End(is_out_of_memory, "FAILED", [(FAILED, "FAILED")], "gpu_oom"),
    End(is_stopped, "STOPPED", [(KILLED, "STOPPED")]),
    End(is_over_its_time, "TIMEOUT", [(KILLED, "TIMEOUT")]),
    End(is_preempted_and_stopped, "STOPPED", [(KILLED, "PREEMPTED")]),
    End(is_killed_with_its_shepherd, "FAILED", [(FAILED, "FAILED")]),
    End(loses_its_node, "FAILED", [(FAILED, "FAILED")]),
    End(loses_its_head, "FAILED", [(FAILED, "FAILED")]),
    End(ends_while_argusd_is_away, "SUCCEEDED", [(FINISHED, "SUCCEEDED")]),
    End(succeeds_at_its_second_attempt, "SUCCEEDED", [(FAILED, "RESTARTED"), (FINISHED, "SUCCEEDED")]),
    End(is_stopped_while_it_waits, "STOPPED", []),
]
SLOW = (is_killed_with_its_shepherd, loses_its_node)  # until the beat counts as stopped


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory):
    with MLflow(tmp_path_factory.mktemp("mlflow")) as made:
        yield made


def cli(argusd, *args):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "LANG": "C.UTF-8"}
    argv = [PROGRAMS["argus"], *args]
    return subprocess.run(argv, env=env, check=True, capture_output=True, text=True, timeout=240).stdout


def told_runs(mlflow, job):
    """(status, its tags) of each run of the job, by the number of the attempt."""
    found = {}
    for run in mlflow.runs("ends", job):
        tags = {t["key"]: t["value"] for t in run["data"]["tags"]}
        found[int(tags["argus.run"].rpartition("-")[2])] = (run["info"]["status"], tags)
    return [found[k] for k in sorted(found)]


def let_go_of_all(argusd):
    for job in [j["id"] for j in argusd.all_jobs() if j["state"] in ("QUEUED", "STARTING", "RUNNING")]:
        argusd.stop_job(job)
        argusd.wait_over(job)


def check_page(argusd, view, end):
    """What the API and the command line say."""
    assert view["state"] == end.state, view
    assert end.finding is None or view["finding"]["class"] == end.finding, view
    (line,) = [x for x in cli(argusd, "status", view["id"]).splitlines() if x.startswith("state ")]
    assert end.state in line.split(), line
    shown = json.loads(cli(argusd, "status", view["id"], "-o", "json"))
    assert (shown["id"], shown["state"], shown["restarts"]) == (view["id"], end.state, view["restarts"])
    assert shown["trackers"] == view["trackers"]


def check_runs(runs, end):
    """What the tracker says of each attempt."""
    assert [(status, tags["argus.state"]) for status, tags in runs] == end.runs
    assert [tags["argus.restarts"] for _, tags in runs] == [str(k) for k in range(len(runs))]
    assert end.finding is None or runs[-1][1]["argus.finding"] == end.finding


def test_all_kinds_are_there():
    assert len({end.of for end in ENDS}) == len(ENDS) == 12


@pytest.mark.parametrize("end", [
    pytest.param(end, id=end.of.__name__, marks=[pytest.mark.nightly] if end.of in SLOW else [])
    for end in ENDS
])  # fmt: skip
def test_what_is_told_of_an_end(tmp_path, mlflow, end):
    with FakeRay() as ray, Argusd(tmp_path, ray.url, more=MORE) as argusd:
        job = end.of(Bed(argusd, ray, mlflow))
        argusd.wait_over(job)
        complete = ["complete"] * len(end.runs)
        view = argusd.wait_job(job, lambda j: [t["state"] for t in j["trackers"] or []] == complete, "is told whole")
        check_page(argusd, view, end)
        check_runs(told_runs(mlflow, job) if end.runs else [], end)
        let_go_of_all(argusd)
