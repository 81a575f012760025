# SPDX-License-Identifier: Apache-2.0
"""argusd beside a Ray that lies, hangs, forgets and dies: jobs start once, end as they really ended, none is killed.

What has to outwait the patience of the witnesses runs at once, each case with its own Ray and argusd; see `slow`.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import signal

import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

GPUS = {"CPU": 64, "GPU": 4, "worker_node": 100}


def worker(n):
    return {"name": f"w{n}", "ip": f"10.99.1.{n}", "resources": {**GPUS, f"argus_node_w{n}": 1000}}


class Bed:
    """One Ray, one argusd, and jobs that go on until they are told."""

    def __init__(self, home, more="", **ray):
        self.home = pathlib.Path(home)
        self.ray = FakeRay(**ray)
        self.more = more

    def __enter__(self):
        self.ray.start()
        self.argusd = Argusd(self.home, self.ray.url, self.more)
        return self

    def __exit__(self, *_):
        self.ray.stop()

    def patient(self, name):
        """A shell line that goes on until let_go(name)."""
        go = self.home / f"go-{name}"
        return f"echo up; while [ ! -e {go} ]; do timeout 0.1 tail -f /dev/null; done; echo {name} ends"

    def let_go(self, name):
        (self.home / f"go-{name}").touch()

    def running(self, name, **keys):
        """A job that runs, and its command says so."""
        job = self.argusd.submit(self.patient(name), **keys)
        self.argusd.wait_state(job, "RUNNING")
        until(lambda: self.argusd.log_file(job).read_text() == "up\n", "the first line")
        return job

    def command_runs(self, job):
        """False also where its shepherd never came to start it."""
        beat = self.argusd.job_dir(job) / "attempts/1/beat"
        pid = re.search(r'"pid":\s*(\d+)', beat.read_text()) if beat.exists() else None
        return bool(pid) and os.path.exists(f"/proc/{pid[1]}")

    def starts(self, job):
        return sum(len(self.ray.starts().get(a["ray_id"], [])) for a in self.argusd.job(job)["attempts"])

    def succeeds(self, job, starts=1):
        view = self.argusd.wait_over(job)
        assert view["state"] == "SUCCEEDED", view
        assert self.starts(job) == starts
        return view


@contextlib.contextmanager
def bed(home, more="", **ray):
    with Bed(home, more, **ray) as b, b.argusd:
        yield b


@pytest.fixture
def b(tmp_path):
    with bed(tmp_path) as made:
        yield made


def is_unknown(view):
    return "UNKNOWN" in view["flags"]


# ---- submitting ----


def test_dropped_answer_starts_once(b):
    b.ray.fault("drop_answer", method="POST", path="/api/jobs/", count=1)
    job = b.argusd.submit("echo once")
    view = b.succeeds(job)
    assert [a["ray_id"] for a in view["attempts"]] == [job]


@pytest.mark.parametrize("fault", [{"kind": "status"}, {"kind": "reset"}, {"kind": "garbage"}, {"kind": "raw"}])
def test_bad_answers_to_the_post_start_once(b, fault):
    """The first two answers are spoiled before Ray took anything."""
    b.ray.fault(**fault, method="POST", path="/api/jobs/", count=2)
    assert [a["k"] for a in b.succeeds(b.argusd.submit("echo once"))["attempts"]] == [1]


def test_dropped_answer_and_then_no_answers_start_once(b):
    b.ray.fault("drop_answer", method="POST", path="/api/jobs/", count=1)
    b.ray.fault("status", method="GET", path="/api/jobs/", count=3)
    assert [a["k"] for a in b.succeeds(b.argusd.submit("echo once"))["attempts"]] == [1]


def test_foreign_id_is_refused_at_submit(b):
    b.ray.add_job(submission_id="theirs-1", status="SUCCEEDED", end_time=1000)
    spec = Argusd.spec("echo x", submission_id="theirs-1")
    until(lambda: b.argusd.post(spec, "?dry_run=true").status == 409, "argusd has seen the foreign job")
    refused = b.argusd.post(spec)
    assert (refused.status, refused.json()["field"]) == (409, "submission_id")
    assert b.argusd.post({**spec, "submission_id": "theirs-2"}).status == 201


def test_foreign_job_with_the_same_id(b):
    """It comes after the submit was taken, and before it is sent."""
    b.ray.fault("status", method="POST", path="/api/jobs/", status=503)
    job = b.argusd.submit("echo mine", submission_id="mine-1")
    b.argusd.wait_state(job, "STARTING")
    b.ray.add_job(submission_id="mine-1", status="RUNNING")
    b.ray.heal()
    view = b.succeeds(job)
    assert [(a["ray_id"], a["state"]) for a in view["attempts"]] == [("mine-1", "ABANDONED"), ("mine-1-a2", "ENDED")]
    assert b.ray.jobs()["mine-1"]["status"] == "RUNNING"
    touched = [r for r in b.ray.requests() if r["method"] != "GET" and "/mine-1" in r["path"].removesuffix("-a2")]
    assert [r for r in touched if not r["path"].rstrip("/stop").endswith("-a2")] == []
    assert b.argusd.call("GET", f"/v1/jobs/{job}/logs").body == b"mine\n"


def test_records_are_deleted_after_harvest_and_only_ours(b):
    b.ray.add_job(submission_id="theirs-over", status="SUCCEEDED", end_time=1000)
    b.ray.add_job(submission_id="theirs-runs", status="RUNNING", metadata={"argus": "another", "argus_job": "x"})
    jobs = [b.argusd.submit("echo x; exit 3"), b.argusd.submit("echo y")]
    assert [b.argusd.wait_over(j)["state"] for j in jobs] == ["FAILED", "SUCCEEDED"]
    until(lambda: set(b.ray.jobs()) == {"theirs-over", "theirs-runs"}, "our records are gone, the others stay")
    assert b.ray.jobs()["theirs-runs"]["status"] == "RUNNING"
    assert not [r for r in b.ray.requests() if r["method"] != "GET" and "theirs" in r["path"]]
    assert b.argusd.get("/v1/clusters/default/foreign")["foreign"]


# ---- Ray is away ----


@pytest.mark.parametrize("trouble", ["status", "garbage", "reset", "refused"])
def test_jobs_wait_while_ray_is_away(tmp_path, trouble):
    with Bed(tmp_path) as b:
        if trouble == "refused":
            b.ray.listen(False)
        else:
            b.ray.fault(trouble)
        with b.argusd as argusd:
            jobs = [argusd.submit(f"echo {n}") for n in range(3)]
            for job in jobs:
                view = argusd.wait_job(job, lambda v: v["reason"]["code"] == "ray_unreachable", "says that Ray is away")
                assert view["state"] == "QUEUED"
            assert argusd.get("/readyz")["ray"] == "away"
            argusd.restart()
            assert [argusd.job(j)["state"] for j in jobs] == ["QUEUED"] * 3
            b.ray.listen(True)
            b.ray.heal()
            for job in jobs:
                b.succeeds(job)


# ---- placement ----


def test_driver_on_the_head(b):
    b.ray.settings(driver_on_head=True)
    job = b.argusd.submit(b.patient("never"), stop_grace="2s")
    view = b.argusd.wait_over(job)
    assert (view["state"], view["finding"]["class"]) == ("FAILED", "platform")
    assert view["proof"]["driver_on_worker"] is False
    placed = [e for e in b.argusd.events(job) if e["kind"] == "driver_placed"]
    assert placed
    assert placed[0]["reason"]["code"] == "driver_on_head"
    assert not b.command_runs(job)


def test_driver_on_its_worker(b):
    job = b.running("r")
    view = b.argusd.wait_job(job, lambda v: v["proof"] and v["driver"]["pid"], "has its proof")
    node = view["nodes"][0]["name"]
    assert view["proof"]["driver_on_worker"] is True
    assert view["proof"]["driver_node"] == view["driver"]["node"] == node
    assert view["proof"]["head_ip"] != view["proof"]["driver_node_ip"]
    assert "driver_placed" in b.argusd.kinds(job)
    b.let_go("r")
    b.succeeds(job)


# ---- stopping ----


def test_stop_in_every_state(b):
    queued = b.argusd.submit("touch " + str(b.home / "queued"), nnodes=9, n_gpus_per_node=4)
    running = b.running("run", stop_grace="5s")
    b.ray.settings(hold_pending=True)
    pending = b.argusd.submit("touch " + str(b.home / "pending"))
    b.ray.wait_status(pending, "PENDING")
    for job in (queued, running, pending):
        b.argusd.stop_job(job, token="user")
    assert b.argusd.job(queued)["state"] == "STOPPED"
    assert {b.argusd.wait_over(j)["state"] for j in (queued, running, pending)} == {"STOPPED"}
    b.ray.settings(hold_pending=False)
    assert not b.command_runs(running)
    marker = b.argusd.submit("echo later")  # by then the pending one has had its chance
    b.succeeds(marker)
    until(lambda: set(b.ray.jobs()) == set(), "all records are gone")
    assert not (b.home / "queued").exists()
    assert not (b.home / "pending").exists()
    assert b.argusd.job(running)["reason"]["code"] == "stopped_by_user"
    assert b.argusd.stop_job(running)["state"] == "STOPPED"


def test_stop_of_a_job_that_was_never_sent(b):
    b.ray.fault("status", method="POST", path="/api/jobs/", status=503)
    job = b.argusd.submit("echo x")
    b.argusd.wait_state(job, "STARTING")
    b.argusd.stop_job(job)
    assert b.argusd.wait_over(job)["state"] == "STOPPED"
    b.ray.heal()
    b.succeeds(b.argusd.submit("echo next"))
    assert job not in b.ray.starts()


def test_stop_of_one_who_does_not_want_to(b):
    line = "trap '' TERM; echo up; while :; do timeout 0.2 tail -f /dev/null; done"
    job = b.argusd.submit(line, stop_grace="2s")
    b.argusd.wait_state(job, "RUNNING")
    until(lambda: b.argusd.log_file(job).read_text() == "up\n", "the trap is set")
    b.argusd.stop_job(job)
    view = b.argusd.wait_over(job)
    assert (view["state"], view["exit"]["signal"]) == ("STOPPED", "SIGKILL")
    assert not b.command_runs(job)


def test_stop_while_ray_is_away(b):
    job = b.running("r", stop_grace="5s")
    b.ray.listen(False)
    b.argusd.stop_job(job)
    assert b.argusd.wait_over(job)["state"] == "STOPPED"
    assert not b.command_runs(job)


def test_timeouts(b):
    runs = b.argusd.submit(b.patient("a"), timeout="2s", stop_grace="5s")
    waits = b.argusd.submit("echo x", nnodes=9, n_gpus_per_node=4, queue_timeout="2s")
    ended, gave_up = b.argusd.wait_over(runs), b.argusd.wait_over(waits)
    assert (ended["state"], ended["reason"]["code"]) == ("TIMEOUT", "timeout")
    assert (gave_up["state"], gave_up["reason"]["code"]) == ("TIMEOUT", "queue_timeout")
    assert not b.command_runs(runs)
    assert waits not in b.ray.starts()


# ---- gangs ----


def test_gang_larger_than_the_pool_blocks_nobody(b):
    large = b.argusd.submit(b.patient("large"), nnodes=3, n_gpus_per_node=4)
    b.argusd.wait_job(large, lambda v: v["reason"]["code"] == "pool_too_small", "says why")
    b.succeeds(b.argusd.submit("echo small", n_gpus_per_node=1))
    b.argusd.restart()
    b.succeeds(b.argusd.submit("echo small", n_gpus_per_node=4))
    assert b.argusd.job(large)["state"] == "QUEUED"
    b.ray.ask("POST", "nodes", worker(3))
    view = b.argusd.wait_state(large, "RUNNING")
    assert len(view["nodes"]) == 3
    b.let_go("large")
    b.succeeds(large)


def test_two_gangs_that_fit_alone(b):
    first = b.running("first", nnodes=2, n_gpus_per_node=3)
    second = b.argusd.submit(b.patient("second"), nnodes=2, n_gpus_per_node=3)
    third = b.argusd.submit("echo third", n_gpus_per_node=1)
    b.argusd.wait_job(second, lambda v: v["reason"]["code"] == "waiting_for_gpus", "says why")
    b.succeeds(third)  # the slot that neither needs: it delays nobody
    b.argusd.restart()
    waiting = b.argusd.job(second)
    assert (waiting["state"], waiting["position"]) == ("QUEUED", 1)
    b.let_go("first")
    b.succeeds(first)
    b.argusd.wait_state(second, "RUNNING")
    b.let_go("second")
    b.succeeds(second)


# ---- what takes the witnesses' patience ----


def children_of(pid):
    """It, and all that descend from it now."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            stat = pathlib.Path(f"/proc/{name}/stat").read_text()
            parents[int(name)] = int(stat.rpartition(")")[2].split()[1])
    found = [pid]
    for p in found:
        found += [c for c, parent in parents.items() if parent == p]
    return found


def signal_each(pids, number):
    """What ended meanwhile needs none: the command's own programs come and go."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def away_while_a_job_runs(home):
    with bed(home) as b:
        job = b.running("r")
        b.ray.listen(False)
        b.argusd.wait_job(job, is_unknown, "is UNKNOWN")
        late = b.argusd.submit("echo late")
        b.argusd.wait_job(late, lambda v: v["reason"]["code"] == "ray_unreachable", "says that Ray is away")
        view = b.argusd.job(job)
        assert view["state"] == "RUNNING"
        assert view["unknown_since"]
        assert "blind" in b.argusd.kinds(job)
        assert b.command_runs(job)
        b.let_go("r")
        b.succeeds(job)
        assert b.argusd.follow(job)[0] == b"up\nr ends\n"
        b.ray.listen(True)
        b.succeeds(late)


def away_for_a_while(home):
    """It comes back while the job still runs: the flag goes, and nothing was done to the job."""
    with bed(home) as b:
        job = b.running("r")
        b.ray.fault("hang")
        b.argusd.wait_job(job, is_unknown, "is UNKNOWN")
        b.argusd.restart()
        b.ray.heal()
        view = b.argusd.wait_job(job, lambda v: not v["flags"], "is seen again")
        assert view["state"] == "RUNNING"
        assert "seen" in b.argusd.kinds(job)
        b.let_go("r")
        b.succeeds(job)


def memory_lost_while_running(home):
    with bed(home) as b:
        job = b.running("r")
        b.ray.lose_memory()
        b.argusd.wait_job(job, is_unknown, "is UNKNOWN")
        assert b.argusd.job(job)["state"] == "RUNNING"
        assert b.command_runs(job)
        b.let_go("r")
        view = b.argusd.wait_over(job)
        assert (view["state"], len(view["attempts"])) == ("SUCCEEDED", 1)
        assert len(b.ray.starts()[job]) == 1


def memory_lost_while_pending(home):
    with bed(home) as b:
        b.ray.settings(hold_pending=True)
        job = b.argusd.submit("echo after all")
        b.ray.wait_status(job, "PENDING")
        b.argusd.wait_job(job, lambda v: v["attempts"][0]["accepted_at"], "was accepted")
        b.ray.lose_memory()
        b.argusd.wait_job(job, lambda v: len(v["attempts"]) == 2, "has another attempt")
        b.ray.settings(hold_pending=False)
        view = b.succeeds(job)
        assert [a["ray_id"] for a in view["attempts"]] == [job, f"{job}-a2"]


def given_up_starts_late(home):
    """The attempt that was given up starts after all: its command does not run."""
    with bed(home, more="start_deadline: 10s") as b:
        ran = b.home / "ran"
        b.ray.settings(hold_pending=True)
        job = b.argusd.submit(f"echo once >> {ran}")
        b.argusd.wait_job(job, lambda v: len(v["attempts"]) > 1, "is sent again")
        until(lambda: (b.argusd.job_dir(job) / "attempts/1/stop").exists(), "the first one is told to end")
        b.ray.settings(hold_pending=False)
        assert b.argusd.wait_over(job)["state"] == "SUCCEEDED"
        until(lambda: not b.ray.jobs(), "no attempt is left in Ray")
        assert ran.read_text() == "once\n"


def orphan(home):
    with bed(home) as b:
        b.ray.settings(orphans=1)
        job = b.argusd.submit("echo after all")
        view = b.succeeds(job)
        assert [a["state"] for a in view["attempts"]] == ["ABANDONED", "ENDED"]
        assert "orphan" in [e["reason"]["code"] for e in b.argusd.events(job) if e.get("reason")]


def node_dies_with_its_driver(home):
    with bed(home) as b:
        job = b.running("r")
        node = b.argusd.job(job)["nodes"][0]["name"]
        b.ray.node(node, "dead")
        b.ray.wait_status(job, "FAILED")
        assert b.argusd.job(job)["state"] == "RUNNING"  # one witness is none
        view = b.argusd.wait_over(job)
        assert (view["state"], view["exit"]["cause"], view["finding"]["class"]) == ("FAILED", "lost", "node_lost")
        other = b.argusd.submit("echo elsewhere", n_gpus_per_node=4)
        assert b.succeeds(other)["nodes"][0]["name"] != node


def a_death_that_ray_missed(home):
    """Its record says RUNNING for ever: once the beat stands still Ray is asked for the supervisor, which is dead."""
    with bed(home) as b:
        job = b.running("r")
        b.ray.settings(missed_deaths=True)
        shepherd = b.ray.starts()[job][0]["pid"]
        runner = int(pathlib.Path(f"/proc/{shepherd}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(runner, signal.SIGKILL)
        signal_each(children_of(shepherd), signal.SIGKILL)
        view = b.argusd.wait_over(job)
        assert b.ray.jobs()[job]["status"] == "RUNNING"
        assert (view["state"], view["exit"]["cause"]) == ("FAILED", "lost"), view


def a_shepherd_that_stands_still(home):
    """Its supervisor is alive: nothing is done to the job, which is UNKNOWN until it beats again."""
    with bed(home) as b:
        job = b.running("r")
        shepherd = b.ray.starts()[job][0]["pid"]
        stopped = children_of(shepherd)
        signal_each(stopped, signal.SIGSTOP)
        try:
            b.argusd.wait_job(job, is_unknown, "is UNKNOWN")
            asked = lambda: sum("_ray_internal_job_actor_" in r["path"] for r in b.ray.requests())  # noqa: E731
            until(lambda: asked() >= 2, "Ray is asked, and again")
            assert b.argusd.job(job)["state"] == "RUNNING" and is_unknown(b.argusd.job(job))
        finally:
            signal_each(stopped, signal.SIGCONT)
        b.let_go("r")
        b.succeeds(job)


def link_to_a_node_is_cut(home):
    """Ray says FAILED, the shepherd beats: they contradict each other, so nothing is done."""
    with bed(home) as b:
        job = b.running("r")
        b.ray.node(b.argusd.job(job)["nodes"][0]["name"], "dead", processes="keep")
        b.argusd.wait_job(job, is_unknown, "is UNKNOWN")
        assert b.command_runs(job)
        b.let_go("r")
        view = b.argusd.wait_over(job)
        assert (view["state"], len(view["attempts"])) == ("SUCCEEDED", 1)


def hung_ray(home):
    """A Ray that takes connections and never answers."""
    with Bed(home) as b:
        b.ray.fault("hang")
        with b.argusd as argusd:
            job = argusd.submit("echo x")
            argusd.wait_job(job, lambda v: v["reason"]["code"] == "ray_unreachable", "says that Ray is away")
            b.ray.heal()
            b.succeeds(job)


def ray_is_killed_and_comes_back(home):
    """kill -9 of the head with its store kept: what runs goes on, and is taken up again."""
    with bed(home, state=home / "ray") as b:
        job = b.running("r")
        b.ray.kill()
        until(lambda: b.argusd.get("/readyz")["ray"] == "away", "argusd sees it")
        b.ray.start()
        until(lambda: b.argusd.get("/readyz")["ray"] == "ok", "argusd sees it back")
        assert b.argusd.job(job)["state"] == "RUNNING"
        b.let_go("r")
        b.succeeds(job)


def stands_still_while_a_job_runs(home):
    """SIGSTOP of argusd for longer than its patience: it looks before it tells anybody of silence."""
    with bed(home) as b:
        job = b.running("r")
        beat = b.argusd.job_dir(job) / "attempts/1/beat"

        def count():
            return int(re.search(r'"seq":\s*(\d+)', beat.read_text())[1])

        then = count()
        os.kill(b.argusd.process.pid, signal.SIGSTOP)
        try:
            until(lambda: count() > then + 11, "the job beats for a minute")  # one each 5 s
        finally:
            os.kill(b.argusd.process.pid, signal.SIGCONT)
        b.let_go("r")
        b.succeeds(job)
        assert "stood still" in b.argusd.said()
        assert "unknown" not in [e["reason"]["code"] for e in b.argusd.events(job) if e.get("reason")]


SLOW = [
    stands_still_while_a_job_runs,
    away_while_a_job_runs, away_for_a_while, memory_lost_while_running, memory_lost_while_pending, orphan,
    a_death_that_ray_missed, a_shepherd_that_stands_still, given_up_starts_late, node_dies_with_its_driver,
    link_to_a_node_is_cut, hung_ray, ray_is_killed_and_comes_back,
]  # fmt: skip


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """All of SLOW, under way."""
    with concurrent.futures.ThreadPoolExecutor(len(SLOW)) as pool:
        yield {case: pool.submit(case, tmp_path_factory.mktemp(case.__name__)) for case in SLOW}


@pytest.mark.parametrize("case", SLOW, ids=lambda c: c.__name__)
def test_patience(slow, case):
    slow[case].result()
