# SPDX-License-Identifier: Apache-2.0
"""Trackers by verl's own Tracking class in real processes, with a real MLflow server, the real clients of W&B and
SwanLab before stand-ins of their servers, and W&B's, TensorBoard's and SwanLab's real files: whatever a server does,
the training ends well, and the tracker has all of it afterwards (of SwanLab its file)."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys

import pytest
from fakeray import FakeRay
from preload import needs_compiler
from programs import PROGRAMS
from trackerbed import (
    LIB,
    READ_BOARD,
    READ_SWANLAB,
    READ_WANDB,
    MLflow,
    SwanlabStand,
    WandbStand,
    Way,
    link_packages,
    packages,
    read_back,
)
from wallclock import WallClock

from argusd import Argusd, needs_argusd, until

# A test makes several trainings, and reads files by programs that import a tracker: each wait has its own bound.
pytestmark = [needs_argusd, pytest.mark.timeout(900)]

KEY, VAL = "critic/score/mean", "val-core/toy/acc/mean@1"
# Steps as a trainer logs them; at a step that has a gate it waits for the test.
TRAINING = """
import os, select, sys
while not os.path.exists(sys.argv[4] + "-begin"):
    select.select([], [], [], 0.05)
from verl.utils.tracking import Tracking
names, steps, gates, place = sys.argv[1].split(","), int(sys.argv[2]), eval(sys.argv[3]), sys.argv[4]
tracking = Tracking(sys.argv[5], sys.argv[6], default_backend=["console", *names], config={"trainer": {"n": 1}})
for step in range(1, steps + 1):
    tracking.log({"critic/score/mean": step / 8, "val-core/toy/acc/mean@1": 0.5}, step=step)
    open(f"{place}-{step}", "w").close()
    while step in gates and not os.path.exists(f"{place}-go-{step}"):
        select.select([], [], [], 0.05)
if sys.argv[7] == "by force":  # as Ray ends a trainer's process, and what that has started
    tracking.logger["wandb"].finish()
    for child in open(f"/proc/self/task/{os.getpid()}/children").read().split():
        os.kill(int(child), 9)
    os._exit(0)
"""


def wait_tracker(argusd, job, kind, state="complete", problem=None):
    def found(view):
        rows = [t for t in view["trackers"] or [] if t["tracker"] == kind and t["state"] == state]
        return rows and (rows[-1]["problem"] or not problem) and rows[-1]

    return found(argusd.wait_job(job, found, f"has its run in {kind}"))


def with_packages(argusd, argv, kind="trackers", **spec):
    """A spec whose Python is verl's and has the trackers' packages, both below the shared root."""
    site = link_packages(argusd.root / "common", kind)
    verl = argusd.root / "common/verl"
    if not verl.exists():
        verl.symlink_to(packages("verl-0.5.0")[0].parents[1])
    python = f"{verl}/bin/python"
    return {"workload": "ray", "entrypoint": [python, *argv], "nnodes": 1, "n_gpus_per_node": 0,
            "extra_pythonpath": [str(site)], "runtime_env": {"py_executable": python}, **spec}  # fmt: skip


class Training:
    def __init__(self, argusd, names, steps=12, gates=(), project="proj", run="my run", end="", **spec):
        self.argusd, self.steps = argusd, steps
        self.place = argusd.root / "common" / os.urandom(4).hex()
        argv = ["-c", TRAINING, names, str(steps), repr(tuple(gates)), str(self.place), project, run, end]
        kind = "swanlab" if "swanlab" in names else "trackers"
        self.id = argusd.submit(with_packages(argusd, argv, kind, **spec))

    def begin(self):
        """How its trackers are used is decided: it may begin."""
        self.argusd.wait_job(self.id, lambda j: j["state"] == "RUNNING", "runs")
        pathlib.Path(f"{self.place}-begin").touch()
        return self

    def until_step(self, step):
        until(lambda: pathlib.Path(f"{self.place}-{step}").exists(), f"step {step}: {self.log()[-2000:]}")
        return self

    def go(self, step):
        pathlib.Path(f"{self.place}-go-{step}").touch()

    def log(self):
        path = self.argusd.log_file(self.id)
        return path.read_text(errors="replace") if path.exists() else ""

    def over(self, state="SUCCEEDED"):
        view = self.argusd.wait_over(self.id)
        assert view["state"] == state, self.log()[-3000:]
        return view

    def tracker(self, kind, state="complete", problem=None):
        return wait_tracker(self.argusd, self.id, kind, state, problem)

    def owes(self, kind):
        """Its run once it was tried to send it, and the server did not take it."""
        return self.tracker(kind, "owed", problem=True)

    def told(self):
        told = [e["reason"] for e in self.argusd.events(self.id) if e["kind"] == "tracker"]
        return [(r["code"], r["text"]) for r in told]


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("trackers"), ray.url, OWN) as made:
        yield made


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory):
    with MLflow(tmp_path_factory.mktemp("mlflow")) as made:
        yield made


def on_mlflow(url, **more):
    return {"tracking": {"backend": "mlflow", "uri": url, "project": "proj", "run": "my run", **more}}


def check_whole(mlflow, training, status="FINISHED", steps=None):
    (run,) = mlflow.runs("proj", training.id)
    steps = steps or training.steps
    assert mlflow.history(run["info"]["run_id"], KEY) == [(s, s / 8) for s in range(1, steps + 1)]
    assert [s for s, _ in mlflow.history(run["info"]["run_id"], VAL.replace("@", "_at_"))] == list(range(1, steps + 1))
    assert (run["info"]["status"], run["info"]["run_name"]) == (status, "my run")
    tags = {t["key"]: t["value"] for t in run["data"]["tags"]}
    assert (tags["argus.job"], tags["argus.run"]) == (training.id, f"{training.id}-1")
    assert tags["argus.state"] == training.argusd.job(training.id)["state"] and tags["argus.restarts"] == "0"
    return run


def check_decided(well, away):
    none, online = [t.told() for t in away], [t.told() for t in well]
    assert all(told[0][0] == "tracker_none" for told in none), none
    assert all(told[0][0] == "tracker_online" for told in online), online


def decided(training):
    """It waits to begin, and burdens the machine no more than that, until all others are decided, too."""
    training.argusd.wait_job(training.id, lambda j: j["state"] == "RUNNING", "runs")
    return training


def status_page(argusd, job):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "LANG": "C.UTF-8"}
    argv = [PROGRAMS["argus"], "status", job]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=240, check=True).stdout


def stop_at(step, trainings):
    for t in trainings:
        t.until_step(step)
        t.argusd.stop_job(t.id)
        t.over("STOPPED")


def check_killed(mlflow, trainings):
    for t in trainings:
        t.tracker("mlflow")
        check_whole(mlflow, t, "KILLED", 3)


OWN = "calls: {networks: [127.0.0.0/8]}"  # servers that users name are on this machine
FAULTS = ("refuse", "hang", "error")
LONGER_THAN_OWED = 8 * 24 * 3600  # seconds: what is owed for a week is given up


def ways_to(port, before, amid, stack):
    """All of them, and by kind: broken before the start, to be spoilt in the middle, and one that stays well."""
    ways = [stack.enter_context(Way(port, how)) for how in (*before, *["pass"] * (len(amid) + 1))]
    return ways, ways[: len(before)], ways[len(before) : -1], ways[-1]


@pytest.mark.parametrize("before, amid", [
    pytest.param([], ["error"], id="one"),
    pytest.param(FAULTS, FAULTS, id="all", marks=pytest.mark.nightly),  # eight trainings: more than a minute
])  # fmt: skip
def test_mlflow_whatever_it_does(argusd, mlflow, before, amid):
    """Trainings at the same time: the server is well; it refuses, hangs, answers 500 before the start; it dies,
    hangs, answers 500 in the middle; and the training itself is stopped."""
    with contextlib.ExitStack() as stack:
        ways, broken, spoilt, own = ways_to(mlflow.port, before, amid, stack)
        well = decided(Training(argusd, "mlflow", **on_mlflow(mlflow.url)))
        cut = [decided(Training(argusd, "mlflow", gates=[3], **on_mlflow(way.url))) for way in spoilt]
        stopped = [decided(Training(argusd, "mlflow", gates=[3], **on_mlflow(own.url))) for _ in before[:1]]
        away = [Training(argusd, "console", **on_mlflow(way.url)) for way in broken]
        for t in [well, *away, *cut, *stopped]:
            t.begin()
        run = well.over()["trackers"][0]
        for way, how, t in zip(spoilt, amid, cut, strict=True):
            t.until_step(3)
            way.how = how
            t.go(3)
        stop_at(3, stopped)
        for t in [*away, *cut]:
            t.over()
        check_decided([well, *stopped, *cut], away)
        owed = [t.owes("mlflow") for t in [*away, *cut]]
        assert not any("Oops" in r["problem"] for r in owed), owed
        argusd.kill9()
        argusd.start()
        for way in ways:
            way.how = "pass"
        for t in [well, *away, *cut]:
            assert t.tracker("mlflow")["run"] == check_whole(mlflow, t)["info"]["run_id"]
        check_killed(mlflow, stopped)
    page = status_page(argusd, well.id)
    assert run["mode"] == "online" and run["run"] in run["link"] and run["link"] in page, page


def put_key(argusd, name, value):
    reply = argusd.call("PUT", f"/v1/secrets/{name}", {"value": value}, token="user")
    assert reply.status in (200, 201), reply


def on_wandb(way):
    keys = {"enabled": True, "mode": "online", "project": "proj", "run": "my run"}
    return {"wandb": keys, "env": {"WANDB_BASE_URL": way.url}}


def check_sent(wandb, training):
    sent = wandb.runs[f"{training.id}-1"]
    lines = {line["_step"]: line[KEY] for line in sent["lines"].values() if KEY in line}
    assert lines == {s: s / 8 for s in range(1, training.steps + 1)}
    assert (sent["project"], sent["groupName"], sent["exit"]) == ("proj", training.id, 0)


def check_modes(well, away):
    assert [t.told()[0][0] for t in well] == ["tracker_online"] * len(well)
    assert [t.told()[0][0] for t in away] == ["tracker_offline"] * len(away)


@pytest.mark.parametrize("before, amid", [
    pytest.param([], [], id="well"),
    pytest.param(FAULTS, FAULTS, id="all", marks=pytest.mark.nightly),  # seven; three wait 15 s at their end
])  # fmt: skip
def test_wandb_online_whatever_it_does(argusd, before, amid):
    """The server is well; it refuses, hangs, answers 500 before the start, or in the middle: then it has all steps once
    it is back, and the training has waited for none of it."""
    with WandbStand() as wandb, contextlib.ExitStack() as stack:
        put_key(argusd, "WANDB_API_KEY", wandb.KEY)
        ways, broken, spoilt, own = ways_to(wandb.port, before, amid, stack)
        well = decided(Training(argusd, "wandb", **on_wandb(own)))
        cut = [decided(Training(argusd, "wandb", gates=[3], **on_wandb(way))) for way in spoilt]
        away = [decided(Training(argusd, "wandb", **on_wandb(way))) for way in broken]
        for t in [well, *away, *cut]:
            t.begin()
        for way, how, t in zip(spoilt, amid, cut, strict=True):
            t.until_step(3)
            until(lambda t=t: f"{t.id}-1" in wandb.runs, "the run has begun at the server")
            way.how = how
            t.go(3)
        for t in [well, *away, *cut]:
            t.over()
        check_modes([well, *cut], away)
        for t in [*away, *cut]:
            t.owes("wandb")
        for way in ways:
            way.how = "pass"
        for t in [well, *away, *cut]:
            assert t.tracker("wandb")["link"].endswith(f"/proj/runs/{t.id}-1")
            check_sent(wandb, t)


def on_swanlab(way=None):
    keys = {"tracking": {"backend": "swanlab", "project": "proj", "run": "my run"}}
    return {**keys, "env": {"SWANLAB_API_HOST": way.url}} if way else keys


def swanlab_file(training):
    (file,) = training.argusd.job_dir(training.id).glob(f"metrics/swanlab/{training.id}-1/run-*/run-*.swanlab")
    return read_back(READ_SWANLAB, file, "swanlab")


def until_swanlab_file(training):
    """At its third step: its library takes seconds to begin, and a shorter training is over without it."""
    place = training.argusd.job_dir(training.id)
    until(lambda: list(place.glob("metrics/swanlab/*/run-*/run-*.swanlab")), "its file")
    training.go(3)


def check_swanlab_file(training):
    seen = swanlab_file(training)
    named = (seen["id"], seen["project"], seen["name"], seen["group"])
    assert named == (f"{training.id}-1", "proj", "my run", training.id)
    assert {int(s): v[KEY] for s, v in seen["steps"].items()} == {s: s / 8 for s in range(1, training.steps + 1)}
    assert seen["state"] == "RUN_STATE_FINISHED"
    assert seen["lines"] == 0, "what a training prints may hold a secret"


@pytest.mark.parametrize("before, amid", [
    pytest.param(["refuse"], [], id="one"),
    pytest.param(FAULTS, FAULTS, id="all", marks=pytest.mark.nightly),  # as above
])  # fmt: skip
def test_swanlab_whatever_it_does(argusd, before, amid):
    """The server has all of it; away before the start, the files have; away in the middle, the files have it, too."""
    with SwanlabStand() as swanlab, contextlib.ExitStack() as stack:
        put_key(argusd, "SWANLAB_API_KEY", swanlab.KEY)
        _, broken, spoilt, own = ways_to(swanlab.port, before, amid, stack)
        well = decided(Training(argusd, "swanlab", gates=[3], **on_swanlab(own)))
        cut = [decided(Training(argusd, "swanlab", gates=[3], **on_swanlab(way))) for way in spoilt]
        away = [decided(Training(argusd, "swanlab", gates=[3], **on_swanlab(way))) for way in broken]
        for t in [well, *away, *cut]:
            t.begin()
        for t in away:
            until_swanlab_file(t)
        for way, how, t in zip([own, *spoilt], ["pass", *amid], [well, *cut], strict=True):
            t.until_step(3)
            until(lambda t=t: swanlab.runs.get(f"{t.id}-1", {}).get("state"), "the run has begun at the server")
            way.how = how
            t.go(3)
        for t in [well, *away, *cut]:
            t.over()
        check_modes([well, *cut], away)
        sent = swanlab.runs[f"{well.id}-1"]
        assert {s: v[KEY] for s, v in sent["steps"].items()} == {s: s / 8 for s in range(1, 13)}
        assert (sent["state"], sent["name"], sent["group"]) == ("FINISHED", "my run", well.id)
        for t in [well, *away, *cut]:
            check_swanlab_file(t)
        for t in away:
            assert pathlib.Path(t.tracker("swanlab", "kept")["link"]).is_dir()


def test_swanlab_without_a_server(argusd):
    t = Training(argusd, "swanlab", gates=[3], **on_swanlab()).begin().until_step(3)
    until_swanlab_file(t)
    t.over()
    check_swanlab_file(t)
    row = t.tracker("swanlab", "kept")
    assert row["mode"] == "offline" and pathlib.Path(row["link"]).name == f"{t.id}-1"


def test_a_run_says_why_it_ended(argusd, mlflow):
    """The tracker tells of each attempt what the job's page does: that it was started again, and why."""
    program = """
import json, os, sys
print(json.dumps({"step": 1, "loss": 1.0}), flush=True)
sys.exit("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
"""
    spec = {"workload": "ray", "entrypoint": [sys.executable, "-c", program], "nnodes": 1, "n_gpus_per_node": 0}
    job = argusd.submit({**spec, "restart": {"on": ["gpu_oom"], "max": 1, "backoff": "1s"}, **on_mlflow(mlflow.url)})
    view = argusd.wait_over(job)
    argusd.wait_job(job, lambda j: [t["state"] for t in j["trackers"]] == ["complete"] * 2, "has both runs")
    runs = {tags["argus.run"]: (tags, run["info"]["status"]) for run in mlflow.runs("proj", job)
            for tags in [{t["key"]: t["value"] for t in run["data"]["tags"]}]}  # fmt: skip
    assert view["state"] == "FAILED" and view["finding"]["class"] == "gpu_oom", view
    for k, state in ((1, "RESTARTED"), (2, "FAILED")):
        tags, status = runs[f"{job}-{k}"]
        assert (tags["argus.state"], tags["argus.finding"], tags["argus.restarts"]) == (state, "gpu_oom", str(k - 1))
        assert tags["argus.advice"] == view["finding"]["advice"] and status == "FAILED"


def run_pipeline(argusd, url, name):
    """A run of a pipeline that trains and then ends FAILED, for want of a parameter: (its id, the job that trains)."""
    job = {"workload": "ray", "entrypoint": "true", **on_mlflow(url)}
    good = {"uses": "check", "needs": ["train"], "with": {"that": "${{ params.ok }}", "else": "too few"}}
    params = {"ok": {"type": "boolean", "default": False}}
    pipe = {"name": name, "params": params, "steps": {"train": {"with": job}, "good": good}}
    assert argusd.call("PUT", f"/v1/pipelines/{name}", pipe, token="user").status == 201
    run = argusd.call("POST", f"/v1/pipelines/{name}:run", {}, token="user").json()["id"]

    def over():
        page = argusd.get(f"/v1/pipeline-runs/{run}", token="user")
        return page["ended_at"] and page

    page = until(over, "the run is over")
    return run, next(s["job"] for s in page["steps"] if s["name"] == "train")


def retry_well(argusd, run, **more):
    again = argusd.call("POST", f"/v1/pipeline-runs/{run}:retry", {"params": {"ok": True}, **more}, token="user")
    assert again.status == 202, again


def until_mlflow_says(mlflow, job, end):
    """(tags, status) of the run there, once it has this end of the pipeline's run."""

    def told():
        (found,) = mlflow.runs("proj", job)
        tags = {t["key"]: t["value"] for t in found["data"]["tags"]}
        status = found["info"]["status"]
        return tags.get("argus.pipeline_end") == end and status != "RUNNING" and (tags, status)

    return until(told, f"MLflow has the end of the run: {end}")


def test_the_end_of_a_pipeline_is_told(argusd, mlflow):
    """With the step that decided it, in the runs of its jobs; a retry that ends well says so instead."""
    run, trained = run_pipeline(argusd, mlflow.url, "told")
    tags, status = until_mlflow_says(mlflow, trained, "FAILED: good")
    assert (tags["argus.pipeline"], tags["argus.pipeline_step"]) == (run, "train")
    assert (tags["argus.state"], status) == ("SUCCEEDED", "FINISHED"), "the job itself ended well"
    retry_well(argusd, run)
    tags, status = until_mlflow_says(mlflow, trained, "SUCCEEDED")
    assert tags["argus.pipeline"] == run and status == "FINISHED"
    wait_tracker(argusd, trained, "mlflow")


@contextlib.contextmanager
def with_clock(home):
    """(an argusd, its wall clock)"""
    clock = WallClock(home)
    with FakeRay() as ray:
        argusd = Argusd(home, ray.url, OWN)
        argusd.env = clock.env()
        with argusd:
            yield argusd, clock


@needs_compiler
def test_what_is_owed_once_more_has_a_week_of_its_own(tmp_path, mlflow):
    """A pipeline's run ends again long after its job: a server that refuses is asked again, over a restart, and given
    up a week after that end. One more end is told all the same."""
    with Way(mlflow.port) as way, with_clock(tmp_path) as (argusd, clock):
        run, trained = run_pipeline(argusd, way.url, "late")
        until_mlflow_says(mlflow, trained, "FAILED: good")
        wait_tracker(argusd, trained, "mlflow")
        clock.jump(LONGER_THAN_OWED)
        way.how = "refuse"
        retry_well(argusd, run)
        wait_tracker(argusd, trained, "mlflow", "owed", problem=True)
        argusd.stop()
        asked = way.seen
        argusd.start()
        until(lambda: way.seen >= asked + 2, "it is asked once more after a failure")
        assert wait_tracker(argusd, trained, "mlflow", "owed")["problem"]
        clock.jump(LONGER_THAN_OWED)
        assert wait_tracker(argusd, trained, "mlflow", "given_up")["problem"]
        tags, _ = until_mlflow_says(mlflow, trained, "FAILED: good")
        assert tags["argus.pipeline"] == run, "nothing of the retry came there"
        way.how = "pass"
        retry_well(argusd, run, **{"from": "good"})
        until_mlflow_says(mlflow, trained, "SUCCEEDED")
        wait_tracker(argusd, trained, "mlflow")


LOGS_ITSELF = """
import wandb
run = wandb.init(project="proj", config={"trainer": {"n": 1}})
run.log({"loss": 0.5}, step=1)
run.finish()
wandb.teardown()
"""


def until_wandb_says(wandb, job, end):
    """The configuration of the run at the server, once it has this end of the pipeline's run."""

    def told():
        config = json.loads(wandb.runs.get(f"{job}-1", {}).get("config") or "{}")
        return config.get("argus_pipeline_end", {}).get("value") == end and config

    return until(told, f"W&B has the end of the run: {end}")


def test_the_end_of_a_pipeline_is_told_to_wandb(argusd):
    """It comes while the run is being sent, and argusd is killed: the run is sent again, with what it has logged and
    its own configuration. So it is after a retry."""
    gate = argusd.root / "common/eval"
    waits = {"workload": "ray", "entrypoint": f"while [ ! -s {gate} ]; do sleep 0.1; done; exit $(cat {gate})"}
    with WandbStand() as wandb:
        put_key(argusd, "WANDB_API_KEY", wandb.KEY)
        keys = {"wandb": {"enabled": True, "project": "proj"}, "env": {"WANDB_BASE_URL": wandb.url}}
        train = with_packages(argusd, ["-c", LOGS_ITSELF], **keys)
        pipe = {"name": "sent", "steps": {"train": {"with": train}, "eval": {"needs": ["train"], "with": waits}}}
        assert argusd.call("PUT", "/v1/pipelines/sent", pipe, token="user").status == 201
        wandb.takes_runs.clear()
        run = argusd.call("POST", "/v1/pipelines/sent:run", {}, token="user").json()["id"]

        def page():
            return argusd.get(f"/v1/pipeline-runs/{run}", token="user")

        def trained():
            return next(s["job"] for s in page()["steps"] if s["name"] == "train")

        job = until(trained, "the step has its job")
        first = wait_tracker(argusd, job, "wandb", "syncing")
        gate.write_text("3")
        until(lambda: page()["ended_at"], "the run of the pipeline is over")
        argusd.kill9()
        argusd.start()
        wandb.takes_runs.set()
        told = until_wandb_says(wandb, job, "FAILED: eval")
        assert (told["argus_pipeline"]["value"], told["argus_pipeline_step"]["value"]) == (run, "train"), told
        assert told["argus_state"]["value"] == "SUCCEEDED" and told["trainer"]["value"] == {"n": 1}, told
        assert wait_tracker(argusd, job, "wandb")["sync_job"] != first["sync_job"]
        sent = wandb.runs[f"{job}-1"]
        assert [(line["_step"], line["loss"]) for line in sent["lines"].values()] == [(1, 0.5)]
        assert (sent["project"], sent["groupName"], sent["exit"]) == ("proj", job, 0)
        gate.write_text("0")
        again = argusd.call("POST", f"/v1/pipeline-runs/{run}:retry", {}, token="user")
        assert again.status == 202, again
        told = until_wandb_says(wandb, job, "SUCCEEDED")
        assert told["argus_pipeline"]["value"] == run and told["trainer"]["value"] == {"n": 1}, told
        wait_tracker(argusd, job, "wandb")


@needs_compiler
def test_a_job_that_sends_it_and_fails_is_not_begun_for_ever(tmp_path):
    """Each try of W&B is a job. One that fails is followed by another; after a week the one that fails is the last."""
    with WandbStand() as wandb, with_clock(tmp_path) as (argusd, clock):
        put_key(argusd, "WANDB_API_KEY", wandb.KEY)
        keys = {"wandb": {"enabled": True, "project": "proj"}, "env": {"WANDB_BASE_URL": wandb.url}}
        wandb.takes_runs.clear()
        job = argusd.submit(with_packages(argusd, ["-c", LOGS_ITSELF], **keys))
        first = wait_tracker(argusd, job, "wandb", "syncing")["sync_job"]
        argusd.stop_job(first)
        assert wait_tracker(argusd, job, "wandb", "owed", problem=True)["sync_job"] == first
        clock.jump(LONGER_THAN_OWED)
        argusd.restart()  # the next try comes at once
        second = wait_tracker(argusd, job, "wandb", "syncing")["sync_job"]
        assert second != first
        argusd.stop_job(second)
        assert wait_tracker(argusd, job, "wandb", "given_up", problem=True)["sync_job"] == second
        wandb.takes_runs.set()


def test_a_copy_of_wandbs_file_has_its_records(tmp_path, monkeypatch):
    """Whatever their lengths are: a record is cut at the end of a block, whose last bytes may be too few for a head."""
    monkeypatch.syspath_prepend(LIB)
    from argus_track import BLOCK, HEAD, framed, raw_records

    first = BLOCK - HEAD - HEAD  # the rest of the first block, behind the head of the file and its own
    for size in (0, 1, *range(first - 2 * HEAD, first + HEAD), first + BLOCK, 3 * BLOCK):
        records = [bytes([i]) * n for i, n in enumerate((size, 5, 0, 2 * BLOCK, 1))]
        file = tmp_path / str(size)
        file.write_bytes(b":W&B\xe1\xbe\0" + b"".join(framed(records)))
        assert list(raw_records(file)) == records, size


def test_a_run_whose_slots_were_taken_did_not_fail(tmp_path, mlflow):
    with FakeRay() as ray, Argusd(tmp_path, ray.url, more=f"limits: {{reclaim_grace: 1s}}\n{OWN}") as argusd:
        for name in ("lent", "owns"):
            assert argusd.call("POST", "/v1/projects", {"name": name, "members": ["alice"]}).status == 201
            assert argusd.call("PUT", f"/v1/projects/{name}/quota", {"gpus_guaranteed": 4}).status == 200
        program = ["/bin/sh", "-c", "while :; do sleep 0.1; done"]
        spec = {"workload": "ray", "entrypoint": program, "n_gpus_per_node": 4}
        more = {"project": "lent", "restart": {"max": 1}, "stop_grace": "1s", **on_mlflow(mlflow.url)}
        job = argusd.submit({**spec, "nnodes": 2, **more})
        argusd.wait_state(job, "RUNNING")
        owner = argusd.submit({**spec, "nnodes": 1, "project": "owns"})
        argusd.wait_job(job, lambda j: [t["state"] for t in j["trackers"]] == ["complete"], "its run is told")
        (run,) = mlflow.runs("proj", job)
        tags = {t["key"]: t["value"] for t in run["data"]["tags"]}
        assert (run["info"]["status"], tags["argus.state"]) == ("KILLED", "PREEMPTED")
        for each in (owner, job):
            argusd.stop_job(each)
            argusd.wait_over(each)


def test_a_step_of_more_values_than_a_request_takes(argusd, mlflow):
    """MLflow takes 1,000 metrics at once."""
    program = """
import json
for step in (1, 2):
    print(json.dumps({"step": step, **{f"layer/{i}": i + step for i in range(1500)}}))
"""
    argv = [sys.executable, "-c", program]
    with Way(mlflow.port, "refuse") as way:
        more = on_mlflow(way.url)
        spec = {"workload": "ray", "entrypoint": argv, "nnodes": 1, "n_gpus_per_node": 0, **more}
        job = argusd.submit(spec)
        argusd.wait_over(job)
        wait_tracker(argusd, job, "mlflow", "owed", problem=True)
        way.how = "pass"
        wait_tracker(argusd, job, "mlflow")
    (run,) = mlflow.runs("proj", job)
    for i in (0, 999, 1000, 1499):
        assert mlflow.history(run["info"]["run_id"], f"layer/{i}") == [(1, i + 1), (2, i + 2)]


def test_files_that_are_sent_afterwards(tmp_path):
    """W&B offline and TensorBoard: their files read back; W&B's go to the server once it is there; a training that is
    killed is sent whole all the same."""
    with WandbStand() as wandb, FakeRay() as ray, wandb.argusd(tmp_path, ray.url) as argusd:
        wandb.is_away = True
        reply = argusd.call("PUT", "/v1/secrets/WANDB_API_KEY", {"value": wandb.KEY}, token="user")
        assert reply.status in (200, 201), reply
        keys = {"wandb": {"enabled": True, "project": "proj", "run": "my run"}, "tracking": {"backend": "tensorboard"}}
        t = Training(argusd, "wandb,tensorboard", **keys)
        killed = Training(argusd, "wandb", gates=[5], wandb={"enabled": True, "mode": "online", "project": "proj"})
        assert t.begin().over()["state"] == "SUCCEEDED"
        killed.begin()
        assert [code for code, _ in t.told()] == ["tracker_offline", "tracker_offline"]
        assert killed.until_step(5).told()[0][0] == "tracker_offline"  # the server was away
        argusd.stop_job(killed.id)
        killed.over("STOPPED")

        (file,) = argusd.job_dir(t.id).glob(f"attempts/1/wandb/offline-run-*/run-{t.id}-1.wandb")
        seen = read_back(READ_WANDB, file)
        assert (seen["id"], seen["project"], seen["name"], seen["group"]) == (f"{t.id}-1", "proj", "my run", t.id)
        assert {int(s): v[KEY] for s, v in seen["steps"].items()} == {s: s / 8 for s in range(1, 13)}
        assert seen["exit"] == 0
        (board,) = argusd.job_dir(t.id).glob("metrics/tensorboard/*")
        assert board.name == f"{t.id}-1" and t.tracker("tensorboard")["link"] == str(board)
        assert read_back(READ_BOARD, board)[KEY] == [[s, s / 8] for s in range(1, 13)]

        t.owes("wandb")
        wandb.is_away = False
        row, other = t.tracker("wandb"), killed.tracker("wandb")
        assert row["link"] == f"{wandb.url}/team/proj/runs/{t.id}-1" and row["sync_job"] != other["sync_job"]
        assert argusd.job(row["sync_job"])["state"] == "SUCCEEDED"
        for job, steps, code in ((t.id, 12, 0), (killed.id, 5, 255)):
            sent = wandb.runs[f"{job}-1"]
            lines = {line["_step"]: line[KEY] for line in sent["lines"].values()}
            assert lines == {s: s / 8 for s in range(1, steps + 1)}
            assert (sent["project"], sent["groupName"], sent["exit"]) == ("proj", job, code)
        told = json.loads(wandb.runs[f"{killed.id}-1"]["config"])
        assert (told["argus_state"]["value"], told["argus_restarts"]["value"]) == ("STOPPED", 0), told


def test_a_process_that_is_ended_by_force(argusd):
    """Whatever W&B began to write is on disk once its finish() is over: three times, for it was a race."""
    jobs = [Training(argusd, "wandb", 4, end="by force", wandb={"enabled": True}) for _ in range(3)]
    for t in jobs:
        t.begin().over()
        (file,) = argusd.job_dir(t.id).glob(f"attempts/1/wandb/offline-run-*/run-{t.id}-1.wandb")
        seen = read_back(READ_WANDB, file)
        assert seen["id"] == f"{t.id}-1" and len(seen["steps"]) == 4 and seen["exit"] == 0, seen


def test_nothing_is_configured(argusd):
    """W&B's files stay where they are; MLflow without an address is told; a job without a tracker has none."""
    t = Training(argusd, "wandb", wandb={"enabled": True, "mode": "online"}, tracking={"backend": "mlflow"})
    view = t.begin().over()
    rows = {r["tracker"]: r for r in t.argusd.job(t.id)["trackers"]}
    assert (rows["wandb"]["mode"], rows["wandb"]["state"]) == ("offline", "kept")
    assert pathlib.Path(rows["wandb"]["link"]).is_dir() and rows["mlflow"]["mode"] == "none"
    assert "no address" in dict(t.told())["tracker_none"] and view["step"] == 12
    bare = argusd.submit("true")
    assert argusd.wait_over(bare)["trackers"] is None
