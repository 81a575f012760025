# SPDX-License-Identifier: Apache-2.0
"""v4.1: a machine comes and goes by the pages of docs/sop, a plan for another state is refused, the head of Ray is
restarted by a plan, the loop of the ops agent, and the finder beside agents. On Ray 2.60.0 and hosts that are bare."""

import json
import os
import pathlib
import re
import signal

import pytest
from checkpoints import put_checkpoint
from ports import free_port
from receiver import KEY, Receiver, chat
from stage import wait_for

# Minutes with a bed of its own. In every check test_sop.py takes a machine on and off, tests/daemon/test_sops*.py break
# the other things, test_ops.py plans and test_agent_loop.py closes the loop, beside a fake Ray.
pytestmark = pytest.mark.nightly

NODE, PROJECT, JOB = "node-7", "nightly", "v41-stays"
NVIDIA_SMI = "#!/bin/sh\ncase $* in *query-gpu*) echo 'NVIDIA RTX A6000, 550.54.15, 0';; esac\n"
RECLAIM = ("before", "plan", "apply", "ckpt", "after")


class World:
    """What the shell of the pages knows."""

    def __init__(self, stage, home, model):
        self.stage, self.home, self.model = stage, home, model
        self.values = {
            "NODE": NODE, "NODE_HOST": stage.workers["h2"], "POOL": "a6000", "DEADLINE": "10s", "PROJECT": PROJECT,
            "BESIDE": str(home), "CONFIG": str(stage.config), "MODEL_URL": f"http://127.0.0.1:{model.port}",
            "AGENT_PORT": str(free_port()), "AGENT_KEY": "whsec_" + KEY,
        }  # fmt: skip
        self.values |= {k: os.environ[k] for k in ("ARGUS_BIN", "ARGUS_BUILD") if k in os.environ}  # for bench/blackbox

    def run(self, block, page="v4.1", code=0, **more):
        return self.stage.document(page).run(block, code=code, **self.values, **more)

    def plan(self):
        """The plan whose id the page keeps."""
        return self.stage.get("/v1/ops/plans/" + (self.home / "plan").read_text().strip())

    def wait_gpu(self):
        wait_for(lambda: self.stage.node(NODE)["gpus"]["free"] == 1, "the machine has its GPU")


@pytest.fixture(scope="module")
def world(bare_newest, tmp_path_factory):
    smi = pathlib.Path(bare_newest.bed.dir, "hosts/h2/bin/nvidia-smi")
    smi.write_text(NVIDIA_SMI)
    smi.chmod(0o755)
    with Receiver() as model:
        yield World(bare_newest, tmp_path_factory.mktemp("beside"), model)


@pytest.fixture(scope="module")
def on(world):
    said = {block: world.run(block, "sop/node-on") for block in ("before", "add", "after")}
    world.wait_gpu()
    return said | {block: world.run(block, "sop/node-on") for block in ("try", "check")}


@pytest.fixture(scope="module")
def planned(world, on):
    """A plan, a job that it does not know of, and what became of both."""
    world.wait_gpu()  # the trial of the page holds nothing any more
    said = {"plan": world.run("plan"), "old": world.plan()}
    world.run("job")
    world.stage.wait_state(JOB, "RUNNING")
    said |= {"refused": world.run("refused", code=5), "after": world.plan(), "state": world.stage.job(JOB)["state"]}
    said |= {"anew": world.run("anew"), "new": world.plan(), "then": world.stage.job(JOB)}
    world.run("back")
    world.stage.wait_node(NODE, "online")
    world.stage.wait_state(JOB, "RUNNING")
    return said


@pytest.fixture(scope="module")
def head(world, planned):
    """Ray's session before and after, and the job."""
    before = world.stage.get("/v1/version")["ray"]
    said = world.run("head")
    world.stage.wait_node(NODE, "online")
    job = world.stage.wait_state(JOB, "RUNNING")
    return {"said": said, "plan": world.plan(), "before": before, "job": job,
            "after": world.stage.get("/v1/version")["ray"]}  # fmt: skip


@pytest.fixture(scope="module")
def reclaimed(world, head):
    kept = world.stage.job_dir(JOB) / "checkpoints"
    for step in (10, 20, 30, 40):  # its keep_last is 3, as no spec says otherwise
        put_checkpoint(kept, step)
    # Those of a job that is no training are looked at when somebody asks for them.
    look = world.stage.call("POST", f"/v1/jobs/{JOB}/checkpoints:gc", {"dry_run": True})
    assert look.status == 200, look
    said = {block: world.run(block, "sop/reclaim") for block in RECLAIM}
    return said | {"job": world.stage.job(JOB), "steps": sorted(p.name for p in kept.glob("global_step_*"))}


@pytest.fixture(scope="module")
def agent(world, reclaimed):
    answer = {"cause": "COLUMN is missing", "advice": "set it", "confidence": 0.9, "patch": {"env": {"COLUMN": "p"}}}
    world.model.answer = chat(json.dumps(answer))
    world.run("settings")
    world.stage.restart()
    world.wait_gpu()
    pid = int(world.run("agent"))
    try:
        world.run("agent-job", code=10)

        def opinions():
            found = world.stage.get("/v1/jobs/v41-column/findings")["opinions"]
            return len(found) == 2 and found

        found = wait_for(opinions, f"its two opinions: {(world.home / 'agent.log').read_text()}")
        return {"opinions": found, "end": world.run("agent-end")}
    finally:
        world.stage.keep("agent.log", (world.home / "agent.log").read_text())
        os.kill(pid, signal.SIGTERM)


@pytest.fixture(scope="module")
def off(world, agent):
    return {block: world.run(block, "sop/node-off") for block in ("who", "drain", "remove", "after")}


def test_a_machine_comes_by_the_page(on):
    assert NODE not in on["before"] and "online" in on["add"]
    assert "hello from h2" in on["try"]


def test_a_plan_for_another_state_is_refused(planned):
    assert planned["old"]["jobs"] == [] and planned["old"]["state"] == "waiting"
    assert f"job/{JOB}" in planned["refused"], planned["refused"]
    assert planned["state"] == "RUNNING" and planned["after"]["state"] != "done", "nothing was done"


def test_the_new_plan_names_the_job_and_does_what_it_says(planned):
    (row,) = planned["new"]["jobs"]
    assert (row["job"], row["fate"]) == (JOB, "restarted")
    assert planned["new"]["state"] == "done"
    for step in planned["new"]["steps"]:
        assert step["state"] == "done" and step["expected"]["text"] and step["real"]["text"], step
    assert planned["then"]["state"] == "QUEUED" and planned["then"]["restart"]["preemptions"] == 1


def test_the_head_is_restarted_and_the_job_runs_again(head):
    assert head["plan"]["state"] == "done" and [s["state"] for s in head["plan"]["steps"]] == ["done"] * 3
    assert head["after"]["up"] and head["after"]["session"] != head["before"]["session"]
    assert len(head["job"]["attempts"]) >= 3
    assert head["job"]["restart"]["failures"] == 0, "no failure is charged for it"


def test_a_project_is_cleaned_up_by_the_page(reclaimed):
    assert JOB in reclaimed["plan"] and reclaimed["job"]["state"] == "STOPPED"
    assert "global_step_10" not in reclaimed["steps"] and reclaimed["steps"][-1] == "global_step_40", "the newest stays"


def test_the_doctor_says_what_is_well(world, reclaimed):
    said = json.loads(world.run("doctor"))
    states = {row["name"]: row["state"] for row in said["checks"]}
    assert [states[name] for name in ("store", "ray", "root", "root_test")] == ["well"] * 4, said
    assert all(row["fix"] for row in said["checks"] if row["state"] in ("soon", "ill")), said


def test_the_loop_of_the_agent_closes(world, agent):
    cause, verdict = (o["cause"] for o in agent["opinions"])
    (again,) = [j for j in map(world.stage.job, (j["id"] for j in world.stage.all_jobs("&all=1"))) if j["retry_of"]]
    assert (again["retry_of"], again["state"]) == ("v41-column", "SUCCEEDED")
    assert cause == "COLUMN is missing" and cause in agent["end"]
    assert verdict == f"the retry {again['id']} with the proposed change ended SUCCEEDED"


def test_the_machine_goes_by_the_page(world, off):
    assert f"{NODE} removed" in off["remove"] and NODE not in off["after"]
    assert world.stage.call("GET", f"/v1/nodes/{NODE}").status == 404


def test_the_finder_beside_agents(world):
    """The table of bench/blackbox on few scenes: with the finder an agent is not wrong more often than without."""
    said = world.run("blackbox", HOME=os.environ["HOME"])  # where the environments are
    scores = {name: float(score) for name, score in re.findall(r"(?m)^(finder|script|mcp)\s.*\s([\d.]+)$", said)}
    assert scores["mcp"] >= scores["script"] > 0 and scores["finder"] > 0, said


def test_every_command_of_the_pages_was_run(world, off):
    for page in ("v4.1", "sop/node-on", "sop/node-off", "sop/reclaim"):
        assert world.stage.document(page).never_run() == []
