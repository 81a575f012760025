# SPDX-License-Identifier: Apache-2.0
"""Faults of argusd itself while jobs run on real Ray, on bare hosts that it took in over SSH: cut off from all of them
at once (nothing is killed, all is reconciled), and killed in each phase of a preemption (it goes on where it was)."""

import pytest
from failing import FAULTS, HOST_OF, Failing

from argusd import until

pytestmark = [pytest.mark.ray, pytest.mark.timeout(900)]

# Each tells its starts. One goes on until it is told to end; the other, asked to end, takes its time, so that a phase
# can be met.
WORK = 'echo start >>"$0/$1.starts"; while [ ! -e "$0/$1.end" ]; do sleep 0.1; done; echo "end of $1"'
CLINGS = """
echo start >>"$0/$1.starts"
trap 'while [ ! -e "$0/$1.end" ]; do sleep 0.1; done; exit 143' TERM
while :; do sleep 0.1; done
"""




@pytest.fixture(scope="module")
def nodes(bare):
    for name, host in HOST_OF.items():
        bare.add_node(name, host, gpu_count=1, labels=[name])
    return {name: bare.wait_node(name, "online") for name in ("node-1", "node-2")}


def work(stage, name, script=WORK, **keys):
    entrypoint = ["/bin/sh", "-c", script, str(stage.root), name]
    return stage.submit(stage.spec(entrypoint, n_gpus_per_node=1, submission_id=name, **keys), token="admin")


def end(stage, name):
    (stage.root / f"{name}.end").touch()


def starts(stage, name):
    path = stage.root / f"{name}.starts"
    return len(path.read_text().splitlines()) if path.exists() else 0


# ---- cut off ----


def is_up(stage):
    return stage.get("/v1/clusters")["clusters"][0]["up"]


@pytest.fixture(scope="module")
def cut(bare, nodes):
    """Two jobs run. One ends by itself while argusd sees nothing of the world, the other goes on."""
    for name in ("goes-on", "ends"):
        work(bare, name)
    for name in ("goes-on", "ends"):
        bare.wait_state(name, "RUNNING")
    waits = work(bare, "waits")
    bare.bed.verb("cut", "ctl")
    until(lambda: not is_up(bare), "argusd has noticed that Ray is away")
    end(bare, "ends")
    until((bare.job_dir("ends") / "attempts/1/exit.json").exists, "one has ended behind the cut")
    during = {job: bare.job(job) for job in ("goes-on", "ends", waits)}
    bare.bed.verb("heal", "ctl")
    until(lambda: is_up(bare), "argusd sees Ray again")
    return {"during": during, "ended": bare.wait_state("ends", "SUCCEEDED"), "next": bare.wait_state(waits, "RUNNING")}


def test_nothing_was_killed(bare, cut):
    assert cut["during"]["goes-on"]["state"] == "RUNNING"
    job = bare.wait_job("goes-on", lambda j: j["state"] == "RUNNING" and not j["flags"], "runs, seen by everybody")
    assert (job["attempt"], job["restarts"]) == (1, 0)
    assert starts(bare, "goes-on") == 1
    assert {e["kind"] for e in bare.events("goes-on")}.isdisjoint({"stop", "ended", "restarted", "preempted"})


def test_what_ended_behind_the_cut_is_told_once(bare, cut):
    assert (cut["ended"]["exit"]["code"], cut["ended"]["attempt"]) == (0, 1)
    assert starts(bare, "ends") == 1
    assert bare.kinds("ends").count("ended") == 1


def test_what_waited_started_once(bare, cut):
    until(lambda: starts(bare, "waits") == 1, "it told its start")
    assert cut["next"]["nodes"] == cut["ended"]["nodes"], "on the GPU that came free"


def test_no_raylet_was_touched(bare, nodes, cut):
    for name, before in nodes.items():
        after = bare.wait_node(name, "online")
        assert after["ray_node_id"] == before["ray_node_id"], name


def test_they_end_as_ever(bare, cut):
    for name in ("goes-on", "waits"):
        end(bare, name)
        assert bare.wait_state(name, "SUCCEEDED")["attempt"] == 1


# ---- killed ----


def crash(stage):
    stage.kill9()
    stage.start()


@pytest.fixture(scope="module")
def preempted(bare, cut):
    """A GPU, lent to a job that may be restarted. The project that it is guaranteed to asks for it."""
    bare.more = "limits: {reclaim_grace: 3s}"
    bare.write_config()
    bare.restart()
    for project in ("lends", "borrows"):
        assert bare.call("POST", "/v1/projects", {"name": project}).status == 201
    reply = bare.call("PUT", "/v1/projects/lends/quota", {"gpus_guaranteed": 1})
    assert reply.status == 200, reply
    again = {"max": 3, "on": ["node_lost"]}
    work(bare, "borrower", CLINGS, pool="node-1", project="borrows", restart=again, stop_grace="10m")
    bare.wait_state("borrower", "RUNNING")
    work(bare, "owner", CLINGS, pool="node-1", project="lends")
    seen = []
    until(lambda: "reclaim" in bare.kinds("borrower"), "the borrower was told")
    crash(bare)
    seen.append(bare.job("borrower")["state"])
    bare.wait_state("borrower", "STOPPING")
    crash(bare)
    seen.append(bare.wait_state("borrower", "STOPPING", "QUEUED")["state"])
    seen.append(bare.job("owner")["state"])
    end(bare, "borrower")
    bare.wait_state("owner", "STARTING", "RUNNING")
    crash(bare)
    owner = bare.wait_state("owner", "RUNNING")
    return {"seen": seen, "owner": owner, "borrower": bare.job("borrower")}


def test_slot_changed_hands_once(bare, preempted):
    told, stopping, owner = preempted["seen"]
    assert told in ("RUNNING", "STOPPING") and (stopping, owner) == ("STOPPING", "QUEUED")
    assert preempted["owner"]["attempt"] == 1
    until(lambda: starts(bare, "owner") == 1, "it told its start")
    assert preempted["borrower"]["state"] == "QUEUED" and starts(bare, "borrower") == 1
    assert preempted["owner"]["nodes"] == [{"name": "node-1", "gpu_ids": [0]}]


def test_borrower_comes_back_once_the_slot_is_free(bare, preempted):
    bare.stop_job("owner")
    end(bare, "owner")
    back = bare.wait_state("borrower", "RUNNING")
    assert (back["attempt"], [a["k"] for a in back["attempts"]]) == (2, [1, 2])
    until(lambda: starts(bare, "borrower") == 2, "its second start")
    assert [a["ray_id"] for a in back["attempts"]] == ["borrower", "borrower-a2"]
    bare.stop_job("borrower")
    assert bare.wait_over("borrower")["state"] == "STOPPED"


# ---- why they ended: the others at night, on the newest Ray (test_faults_real.py) ----

DAILY = ("actor_raises", "driver_killed", "exit_137", "rank_killed")


@pytest.fixture(scope="module")
def failing(bare, preempted):
    failing = Failing(bare)
    for name in DAILY:
        uses_ray = FAULTS[name].what.endswith(".py")
        failing.submit(FAULTS[name], name, n_gpus_per_node=1 if uses_ray else 0)
    for name in DAILY:
        failing.wait_ready(name)
        failing.fire(name)
    return failing


@pytest.mark.parametrize("fault", DAILY)
def test_fault_is_found_and_dealt_with(failing, fault):
    failing.check(fault)


def test_an_exception_is_found_with_its_line(failing):
    quote = failing.found("actor_raises")["evidence"][0]
    assert "KeyError: 'loss'" in quote["text"] and quote["offset"] > 0
