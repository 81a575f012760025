# SPDX-License-Identifier: Apache-2.0
"""A job that runs and gets nowhere: who stands elsewhere is named, what the spec says is done, and nobody is accused
who moves. What the nodes answer comes from the test, in the words of a scout (shepherd/stacks.h)."""

import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import threading

import pytest
from fakeray import FakeRay
from raybed import env_path
from test_argusd_metrics import Training, cli

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

SHORT = "hang: {factor: 2, floor: 2s, environment: 1h, model_load: 1h, first_step: 1h}"
C10D = "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
WAITS = {"function": "all_reduce", "file": C10D, "line": 2806}


def rank(n, frame=None, state="S", **more):
    frames = [frame] if frame else []
    return {
        "pid": 100 + n, "rank": str(n), "actor": "WorkerDict", "worker": "aa", "cmd": "ray::WorkerDict.step",
        "state": state, "cpu_s": 0.07, "parent": 1, "by": "py-spy", "error": None,
        "threads": [{"name": "MainThread", "id": 1, "active": True, "frames": frames}], "frames": frames, **more,
    }  # fmt: skip


class Scout(threading.Thread):
    """Answers for one node of an attempt, as its own would: what say() gives for the n-th ask."""

    def __init__(self, argusd, job, say, node="w1", attempt=1):
        super().__init__(daemon=True)
        self.dir = argusd.job_dir(job) / "attempts" / str(attempt)
        self.say, self.node, self.asks = say, node, 0
        self.over = threading.Event()
        (self.dir / "scouts").mkdir(exist_ok=True)
        (self.dir / f"scouts/{node}.json").write_text("{}")

    def run(self):
        while not self.over.wait(0.1):
            if (self.dir / f"stacks/{self.asks + 1}.ask").exists():
                self.asks += 1
                at = self.dir / f"stacks/{self.asks}"
                at.mkdir(exist_ok=True)
                (at / ".tmp").write_text(json.dumps(self.say(self.asks)))
                (at / ".tmp").rename(at / f"{self.node}.json")


@contextlib.contextmanager
def scout(*args, **keys):
    made = Scout(*args, **keys)
    made.start()
    try:
        yield made
    finally:
        made.over.set()
        made.join()


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("hang"), ray.url, SHORT) as made:
        yield made


def trains(argusd, **keys):
    t = Training(argusd, "echo Total training steps: 50", **keys)
    steps(t, 1, 5)
    return t


def steps(t, first, last, attempt=1):
    """Of 20 ms each."""
    for step in range(first, last + 1):
        t.write(json.dumps({"step": step, "data": {"critic/score/mean": 0.1, "timing_s/step": 0.02}}) + "\n", attempt)
    t.until_step(last)


def hung(argusd, job):
    return argusd.wait_job(job, lambda j: j["flags"] == ["HUNG"] and j["finding"], "is hung")


def events(argusd, job, *kinds):
    got = argusd.get(f"/v1/jobs/{job}/events?limit=1000")["events"]
    return [e for e in got if not kinds or e["kind"] in kinds]


def test_a_stopped_rank_is_named_and_the_job_goes_on(argusd):
    t = trains(argusd)
    with scout(argusd, t.id, lambda n: [rank(0, WAITS), rank(1, WAITS), rank(2, state="T")]):
        view = hung(argusd, t.id)
    f = view["finding"]
    assert (f["class"], f["rank"], f["node"], f["pid"]) == ("timeout_or_hang", "2", "w1", "102")
    said = "rank 2 (WorkerDict, pid 102 on w1) is stopped (state T); 2 of 3 ranks stand in all_reduce"
    assert said in f["evidence"][0]["text"] and f["evidence"][1]["source"] == "stacks/2/w1.json"
    assert json.loads((argusd.job_dir(t.id) / "attempts/1" / f["evidence"][1]["source"]).read_text())[2]["pid"] == 102
    # Who sees the job reads there where each process stood.
    at = f"/v1/files?path=jobs/{t.id}/attempts/1/stacks/2"
    (answer,) = argusd.get(at)["entries"]
    assert (answer["name"], answer["kind"]) == ("w1.json", "file") and answer["bytes"] > 0 and answer["changed_at"]
    read = argusd.call("GET", at.replace("files?", "files/content?") + "/w1.json")
    assert read.status == 200 and [p["rank"] for p in json.loads(read.body)] == ["0", "1", "2"]
    assert view["reason"]["code"] == "timeout_or_hang" and view["state"] == "RUNNING"
    (told,) = events(argusd, t.id, "hung")
    assert said in told["text"] and "no new step for" in told["text"] and told["from"] == told["to"] == "RUNNING"
    assert said in " ".join(cli(argusd, "why", t.id).split()) and "HUNG" in cli(argusd, "status", t.id)

    steps(t, 6, 7)  # somebody lets it go on
    view = argusd.wait_job(t.id, lambda j: not j["flags"], "goes on")
    (told,) = events(argusd, t.id, "went_on")
    assert "it went on" in told["text"]
    until(lambda: argusd.get(f"/v1/jobs/{t.id}/findings")["findings"][0]["class"] == "none", "the finding is closed")
    assert argusd.job(t.id)["finding"] is None and not argusd.job(t.id)["reason"]["text"]
    t.let_go()
    assert argusd.wait_over(t.id)["state"] == "SUCCEEDED"


def test_a_policy_that_restarts_does(argusd):
    on = {"max": 1, "on": ["timeout_or_hang"], "backoff": "0s"}
    t = trains(argusd, restart=on)
    elsewhere = {"function": "_try_get_data", "file": C10D.replace("distributed/", "utils/data/"), "line": 4}
    with scout(argusd, t.id, lambda n: [rank(0, elsewhere), rank(1, WAITS), rank(2, WAITS)]):
        argusd.wait_job(t.id, lambda j: j["attempt"] == 2 and j["state"] == "RUNNING", "runs again")
    kinds = [e["kind"] for e in events(argusd, t.id) if e["kind"] in ("hung", "stop", "ended", "admitted")]
    assert kinds == ["admitted", "hung", "stop", "ended", "admitted"]
    story = events(argusd, t.id)
    assert all(len(e["text"]) > 5 and e["actor"] for e in story if e["kind"] != "submitted"), story
    assert {e["data"]["attempt"] for e in story if e["data"]} == {1, 2}
    (stop,) = argusd.get(f"/v1/events?kind=stop,none&object=job/{t.id}&actor=argusd")["events"]
    assert stop["reason"]["code"] == "timeout_or_hang" and "rank 0" in stop["text"]
    (ended,) = events(argusd, t.id, "ended")
    assert (ended["from"], ended["to"]) == ("STOPPING", "QUEUED") and ended["text"].startswith("restart 1 of 1")
    assert argusd.get(f"/v1/jobs/{t.id}/events?actor=nobody")["events"] == []
    shown = cli(argusd, "events", t.id, "--kind", "hung", "-o", "json")
    assert [e["kind"] for e in json.loads(shown)["events"]] == ["hung"]
    first = argusd.get(f"/v1/jobs/{t.id}/findings")["findings"][0]
    assert (first["class"], first["attempt"], first["rank"]) == ("timeout_or_hang", 1, "0")
    t.let_go(2)
    view = argusd.wait_over(t.id)
    assert (view["state"], view["restarts"]) == ("SUCCEEDED", 1)


def test_a_kill_between_the_hang_and_what_follows(argusd):
    """Its flag is on disk, nothing else: the finding is made and the policy carried out at the next start."""
    t = trains(argusd, restart={"max": 1, "on": ["timeout_or_hang"], "backoff": "0s"})
    argusd.kill9()
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db, db:
        db.execute("UPDATE job SET flags = 'HUNG', reason_text = 'no new step for 9m' WHERE id = ?", (t.id,))
        where = "WHERE seq = (SELECT seq FROM job WHERE id = ?)"
        db.execute(f"UPDATE job_detail SET detail = json_set(detail, '$.hung_step', 5) {where}", (t.id,))
    argusd.start()
    t.let_go(2)
    view = argusd.wait_over(t.id)
    assert (view["state"], view["restarts"]) == ("SUCCEEDED", 1)
    (stop,) = events(argusd, t.id, "stop")
    assert "no new step for 9m" in stop["text"] and stop["reason"]["code"] == "timeout_or_hang"
    first = argusd.get(f"/v1/jobs/{t.id}/findings")["findings"][0]
    assert (first["class"], first["attempt"]) == ("timeout_or_hang", 1)


@pytest.mark.nightly  # seconds of waiting
def test_what_moves_is_given_time(argusd):
    """The other way round too: a job nobody answers for and that prints is not accused."""
    t = trains(argusd)
    busy = {"function": "save", "file": "/job/save.py"}
    with scout(argusd, t.id, lambda n: [rank(0, {**busy, "line": n}), rank(1, WAITS)]) as s:
        until(lambda: s.asks >= 4, "it was asked about twice")
        assert not events(argusd, t.id, "hung") and not argusd.job(t.id)["flags"]
    argusd.stop_job(t.id)
    assert argusd.wait_over(t.id)["state"] == "STOPPED"


@pytest.mark.nightly  # seconds of waiting
def test_while_argusd_is_away_no_time_passes(argusd):
    t = trains(argusd)
    argusd.kill9()
    argusd.start()
    with scout(argusd, t.id, lambda n: [rank(0, WAITS), rank(1, state="T")]):
        view = hung(argusd, t.id)
    argusd.kill9()
    argusd.start()
    assert argusd.job(t.id)["flags"] == ["HUNG"]
    steps(t, 6, 6)
    argusd.wait_job(t.id, lambda j: not j["flags"], "goes on")
    assert len(events(argusd, t.id, "hung")) == len(events(argusd, t.id, "went_on")) == 1
    assert view["finding"]["rank"] == "1"
    t.let_go()
    argusd.wait_over(t.id)


@pytest.mark.nightly  # seconds of waiting
def test_a_job_without_steps_is_left_alone_unless_it_asks(argusd):
    quiet = argusd.submit("sleep 300")
    idles = argusd.submit("sleep 300", idle={"window": "1s", "action": "stop"})
    argusd.wait_state(idles, "RUNNING")
    with scout(argusd, idles, lambda n: [rank(0, WAITS)]):
        view = argusd.wait_over(idles)
    assert (view["state"], view["finding"]["class"]) == ("FAILED", "timeout_or_hang")
    assert "no output for" in view["reason"]["text"]
    assert not argusd.job(quiet)["flags"] and not (argusd.job_dir(quiet) / "attempts/1/stacks").exists()
    argusd.stop_job(quiet)
    argusd.wait_over(quiet)


# ---- real ranks ----

IMPATIENT = """
import datetime, multiprocessing, multiprocessing.connection, os, sys
import torch, torch.distributed as dist

def rank(n, world, store, out):
    os.environ["RANK"] = str(n)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=n, world_size=world,
                            timeout=datetime.timedelta(seconds=60))
    dist.all_reduce(torch.ones(1))
    open(f"{out}/rank-{n}", "w").write(str(os.getpid()))
    while True:
        dist.all_reduce(torch.ones(1 << 16))

if __name__ == "__main__":
    args = (3, sys.argv[1] + "/store", sys.argv[1])
    ranks = [multiprocessing.get_context("spawn").Process(target=rank, args=(n, *args)) for n in range(3)]
    for r in ranks:
        r.start()
    multiprocessing.connection.wait([r.sentinel for r in ranks])
    for r in ranks:
        r.kill()
    sys.exit(1)
"""

GLOO = """
import json, os, sys
import torch, torch.distributed as dist, torch.multiprocessing as mp

def rank(n, world, store, out):
    os.environ["RANK"] = str(n)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=n, world_size=world)
    open(f"{out}/rank-{n}", "w").write(str(os.getpid()))
    for step in range(1, 1000000):
        dist.all_reduce(torch.ones(1 << 16))
        if n == 0:
            print(f"step:{step} - critic/score/mean:0.1 - timing_s/step:0.05", flush=True)

if __name__ == "__main__":
    print("Total training steps: 1000000", flush=True)
    mp.spawn(rank, (3, sys.argv[1] + "/store", sys.argv[1]), nprocs=3)
"""


def real(out, n):
    """What /proc says of a rank."""
    pid = int((out / f"rank-{n}").read_text())
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return {"pid": pid, "rank": str(n), "cmd": "python", "state": fields[0], "cpu_s": cpu, "threads": []}


@pytest.mark.nightly
def test_a_real_rank_that_is_stopped(argusd, tmp_path):
    """Three ranks of torch over gloo; one gets SIGSTOP, and later SIGCONT."""
    env = env_path("verl-0.5.0")
    if env is None:
        pytest.skip("the environment verl-0.5.0, which has torch, is not here")
    script = tmp_path / "ranks.py"
    script.write_text(GLOO)
    job = argusd.submit(argusd.spec([str(env / "bin/python"), str(script), str(tmp_path)]))
    argusd.wait_job(job, lambda j: (j["step"] or 0) > 5, "trains")
    stopped = int((tmp_path / "rank-2").read_text())
    os.kill(stopped, signal.SIGSTOP)
    try:
        with scout(argusd, job, lambda n: [real(tmp_path, i) for i in range(3)]):
            view = hung(argusd, job)
        assert (view["finding"]["rank"], view["finding"]["pid"]) == ("2", str(stopped))
        assert "rank 2" in view["reason"]["text"] and "is stopped" in view["reason"]["text"]
    finally:
        os.kill(stopped, signal.SIGCONT)
    argusd.wait_job(job, lambda j: not j["flags"], "goes on")
    argusd.stop_job(job)
    assert argusd.wait_over(job)["state"] == "STOPPED"


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["verl-0.5.0", "verl-0.9.1"])
def test_real_ranks_that_wait_for_a_stopped_one_in_vain(argusd, tmp_path, name):
    """Torch's own time limit ends the others before anybody calls it a hang."""
    env = env_path(name)
    if env is None:
        pytest.skip(f"the environment {name}, which has torch, is not here")
    script = tmp_path / "ranks.py"
    script.write_text(IMPATIENT)
    job = argusd.submit(argusd.spec([str(env / "bin/python"), str(script), str(tmp_path)]))
    until(lambda: all((tmp_path / f"rank-{n}").read_text() for n in range(3)), "all ranks are at work")
    os.kill(int((tmp_path / "rank-2").read_text()), signal.SIGSTOP)
    view = argusd.wait_over(job)
    assert (view["state"], view["finding"]["class"]) == ("FAILED", "timeout_or_hang")
    assert "Timed out waiting 60000ms for" in view["finding"]["evidence"][0]["text"]
