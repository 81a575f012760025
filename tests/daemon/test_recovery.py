# SPDX-License-Identifier: Apache-2.0
"""What failures cost: a training that fails and goes on from its save, in its page, over many jobs, and in reports.

The parts of its time are held against the ledger of the slots, which counts by itself. Beside a fake Ray."""

import csv
import datetime
import io
import os
import subprocess

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

PARTS = ("productive", "detect", "diagnose", "queue", "start", "redo", "other")
LOSSES = PARTS[1:6]
GPUS, STEP, SAVED, DIES, LAST = 2, 0.5, 4, 8, 12
# Attempt 1 dies after step 8, attempt 2 goes on from the save of step 4.
TRAINS = f"""
[ "$ARGUS_ATTEMPT" = 1 ] && at=1 to={DIES} || at={SAVED + 1} to={LAST}
while [ $at -le $to ]; do
    sleep {STEP}; echo '{{"step":'$at',"total_steps":{LAST},"step_time":{STEP},"loss":0.5}}'; at=$((at+1))
done
[ "$ARGUS_ATTEMPT" = 1 ] && kill -9 $$
exit 0
"""
AGAIN = {"max": 2, "backoff": "2s", "on": ["unknown", "host_oom", "user_code_error", "actor_died"]}


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    nodes = [{"name": "head", "ip": "127.0.0.1", "head": True, "resources": {"CPU": 0}}]
    worker = {"CPU": 8, "GPU": 2, "worker_node": 1, "argus_node_w1": 1}
    nodes.append({"name": "w1", "ip": "127.0.0.2", "resources": worker})
    home = tmp_path_factory.mktemp("recovery")
    with FakeRay(nodes=nodes, state=home / "ray") as ray, Argusd(home, ray.url) as made:
        yield made


@pytest.fixture(scope="module")
def trained(argusd):
    """The training, once it is over."""
    job = argusd.submit(TRAINS, name="trains", n_gpus_per_node=GPUS, restart=AGAIN)
    over = argusd.wait_over(job)
    assert (over["state"], len(over["attempts"]), over["step"]) == ("SUCCEEDED", 2, LAST), over
    return over


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def argus(argusd, *args, token="admin", language="C.UTF-8"):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens.get(token, token)}
    env |= {"COLUMNS": "200", "LC_ALL": language}
    done = subprocess.run([PROGRAMS["argus"], *args], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def cli(argusd, *args, **keys):
    return argus(argusd, "report", *args, **keys)


def test_the_parts_are_what_it_held_and_waited_for(argusd, trained):
    r = trained["recovery"]
    parts = {p: r[f"{p}_s"] for p in PARTS}
    assert sum(parts.values()) == pytest.approx(r["held_s"] + r["waited_s"], abs=1e-3)
    # The ledger of the slots has counted by itself.
    assert r["held_s"] * GPUS == pytest.approx(trained["gpu_seconds"], rel=0.01)
    assert r["waited_s"] == pytest.approx(parts["queue"], abs=1e-3) and parts["queue"] >= 2  # the backoff
    # Each step counts once, by what it says: the ones that were run again are not productive.
    assert parts["productive"] == pytest.approx(LAST * STEP)
    # How long those took is by when their lines were read: core/test/recovery.c has the exact cut.
    assert parts["redo"] > 0 and parts["start"] > 0
    assert r["ettr"] == pytest.approx(parts["productive"] / (r["held_s"] + r["waited_s"]))
    assert (r["failures"], r["interruptions"], r["repaired"]) == (1, 1, 1)
    first, second = trained["attempts"]
    assert seconds(first["fault_at"]) <= seconds(first["noticed_at"]) <= seconds(first["ended_at"])
    assert second["fault_at"] is None and second["noticed_at"] is None
    assert parts["detect"] == pytest.approx(seconds(first["noticed_at"]) - seconds(first["fault_at"]), abs=0.002)
    assert parts["diagnose"] == pytest.approx(seconds(first["ended_at"]) - seconds(first["noticed_at"]), abs=0.002)
    # Until step 9, the first that is new: five steps behind the fault, and all that lies between.
    assert r["mttr_s"] >= parts["detect"] + parts["diagnose"] + parts["queue"] + (DIES - SAVED + 1) * STEP
    argusd.restart()
    assert argusd.job(trained["id"])["recovery"] == r
    report = argusd.call("GET", f"/v1/jobs/{trained['id']}/report").body.decode()
    assert f"{100 * r['ettr']:.0f} %" in report and f"queue {parts['queue']:.0f}" in report


def test_over_many_jobs(argusd, trained):
    # One that tells of no step and dies for good has no part in the ETTR, but its failure counts.
    other = argusd.wait_over(argusd.submit("exit 3", n_gpus_per_node=1))
    assert other["recovery"]["ettr"] is None and other["recovery"]["other_s"] > 0
    page = argusd.get("/v1/usage/recovery?from=1d&user=alice")
    r = trained["recovery"]
    assert page["complete"] and page["looked_at"] == 2 and page["left_out"] == 0
    assert page["ettr"] == pytest.approx(r["ettr"])
    total = page["total"]
    assert (total["name"], total["jobs"], total["failures"], total["repaired"]) == (None, 1, 1, 1)
    assert total["mttr_s"] == pytest.approx(r["mttr_s"])
    for part in PARTS:
        assert total[f"{part}_hours"] * 3600 == pytest.approx(r[f"{part}_s"] * GPUS, abs=1e-6), part
    # By class and by node: all of it but the first start, which no failure made.
    assert sum(c["failures"] for c in page["classes"]) == 2
    costs = [c["cost_hours"] for c in page["classes"]]
    assert costs == sorted(costs, reverse=True) and page["classes"][0]["repaired"] == 1
    (lemon,) = page["nodes"]
    assert (lemon["name"], lemon["failures"] >= 1, lemon["jobs"] >= 1) == ("w1", True, True)
    worst = page["classes"][0]
    assert worst["cost_hours"] == pytest.approx(sum(worst[f"{p}_hours"] for p in LOSSES))
    assert worst["start_hours"] < total["start_hours"]
    assert worst["redo_hours"] == pytest.approx(total["redo_hours"])
    (alice,) = page["users"]
    assert (alice["name"], alice["jobs"]) == ("alice", 2)
    waited = sum(j["recovery"]["first_wait_s"] * g for j, g in ((trained, GPUS), (other, 1)))
    assert alice["first_wait_hours"] * 3600 == pytest.approx(waited, abs=1e-6)
    one = argusd.get("/v1/usage/recovery?from=1d&user=alice&limit=1")
    assert len(one["classes"]) == 1 and one["left_out"] == len(page["classes"]) - 1
    refused = argusd.call("GET", "/v1/usage/recovery?from=1h&to=2h")
    assert (refused.status, refused.json()["code"]) == (400, "usage_no_time")
    assert argusd.get("/v1/usage/recovery?from=30d&to=20d")["looked_at"] == 0


def test_the_jobs_behind_a_class_of_failure(argusd, trained):
    """As many as the class has, by the API and by argus ls."""

    def failed_by(classes):
        return {j["id"] for j in argusd.get(f"/v1/jobs?all=1&user=alice&ran_since=1d&failure={classes}")["jobs"]}

    classes = argusd.get("/v1/usage/recovery?from=1d&user=alice")["classes"]
    behind = {c["name"]: failed_by(c["name"]) for c in classes}
    assert {name: len(ids) for name, ids in behind.items()} == {c["name"]: c["jobs"] for c in classes}
    every = set().union(*behind.values())
    assert trained["id"] in every and failed_by(",".join(behind)) == every
    (lemon,) = argusd.get("/v1/usage/recovery?from=1d&user=alice")["nodes"]
    by_node = argusd.get(f"/v1/jobs?all=1&ran_since=1d&failure_node={lemon['name']}")["jobs"]
    assert len(by_node) == lemon["jobs"] and trained["id"] in {j["id"] for j in by_node}
    assert argusd.get("/v1/jobs?all=1&failure_node=w2")["jobs"] == []
    assert failed_by("disk_full") == set()
    listed = argus(argusd, "ls", "-aq", "--failure", ",".join(behind), "--gpus", f"{GPUS}-")
    assert listed.split() == [trained["id"]]


def test_who_sees_it(argusd, trained):
    assert argusd.call("POST", "/v1/users", {"name": "bo"}).status == 201
    assert argusd.call("POST", "/v1/projects", {"name": "vision", "members": ["bo"]}).status == 201
    token = argusd.call("POST", "/v1/tokens", {"name": "t", "user": "bo", "role": "user"}).json()["token"]
    hidden = argusd.call("GET", "/v1/usage/recovery", token=token).json()
    assert (hidden["looked_at"], hidden["classes"], hidden["nodes"], hidden["users"]) == (0, [], [], [])
    assert hidden["ettr"] is None
    assert "alice" not in cli(argusd, "people", token=token)


def test_a_job_that_waits_and_one_that_runs(argusd, trained):
    gate = argusd.root / "common" / "gate"
    line = f"while [ ! -e {gate} ]; do sleep 0.1; done"
    runs = argusd.submit(line, name="holds", n_gpus_per_node=2, project="default")
    argusd.wait_state(runs, "RUNNING")
    waits = argusd.submit("true", name="waits", n_gpus_per_node=2)
    assert argusd.job(waits)["recovery"] is None

    def grows():
        (alice,) = argusd.get("/v1/usage/recovery?from=1d&user=alice")["users"]
        return alice["first_wait_hours"], alice["other_hours"]

    wait, other = grows()
    until(lambda: grows()[1] > other, "what is held grows")
    gate.touch()
    for job in (runs, waits):
        argusd.wait_over(job)
    until(lambda: grows()[0] > wait, "its wait is told once it has held slots")


def test_reports(argusd, trained):
    r = trained["recovery"]
    said = cli(argusd, "job", trained["id"]).splitlines()
    assert f"ETTR          {100 * r['ettr']:9.1f}%" in said and "failures               1" in said
    assert any(line.split() == ["queue", f"{r['queue_s'] * GPUS / 3600:.2f}"] for line in said)
    whole, *each = csv.DictReader(io.StringIO(cli(argusd, "job", trained["id"], "--csv")))
    assert [(x["id"], x["attempt"]) for x in (whole, *each)] == [(trained["id"], k) for k in ("", "1", "2")]
    assert float(whole["held_gpu_s"]) == pytest.approx(trained["gpu_seconds"], abs=1e-3)
    assert float(whole["redone_gpu_s"]) == pytest.approx(trained["gpu_redone_hours"] * 3600, abs=1e-3)
    assert float(whole["ettr"]) == pytest.approx(r["ettr"], abs=1e-4) and whole["failures"] == "1"
    for part in PARTS:
        assert float(whole[f"{part}_gpu_s"]) == pytest.approx(r[f"{part}_s"] * GPUS, abs=1e-3), part
    for row, attempt in zip(each, trained["attempts"], strict=True):
        assert float(row["held_gpu_s"]) == pytest.approx(attempt["gpu_seconds"], abs=1e-3)
        assert (row["ettr"], row["failures"], row["productive_gpu_s"]) == ("", "", "")
    head, titles, *rest = cli(argusd, "recovery").splitlines()
    assert head.startswith(f"ETTR {100 * r['ettr']:.1f}%, MTTR ") and head.endswith(", 1 failures")
    assert titles.split()[:3] == ["CLASS", "COST", "FAILURES"] and any(row.startswith("w1 ") for row in rest)
    page = argusd.get("/v1/usage/recovery?from=7d")
    rows = list(csv.DictReader(io.StringIO(cli(argusd, "recovery", "--csv"))))
    assert [(x["what"], x["name"]) for x in rows] == [("class", c["name"]) for c in page["classes"]] + [("node", "w1")]
    for row, line in zip(rows, page["classes"] + page["nodes"], strict=True):
        assert float(row["cost_hours"]) == pytest.approx(line["cost_hours"], abs=1e-6)
        assert int(row["failures"]) == line["failures"]
    assert cli(argusd, "recovery", language="zh_CN.UTF-8").startswith("有效训练时间占比 ")
    empty = cli(argusd, "recovery", "--from", "2100-01-01T00:00:00Z", "--to", "2100-01-02T00:00:00Z")
    assert empty.startswith("ETTR -, MTTR -, 0 failures")


def test_report_people(argusd, trained):
    series = argusd.get("/v1/usage?from=7d&by=user")["series"]
    told = {s["name"]: s for s in series}
    rows = {x["user"]: x for x in csv.DictReader(io.StringIO(cli(argusd, "people", "--csv")))}
    users = {u["name"]: u for u in argusd.get("/v1/usage/recovery?from=7d&limit=1000")["users"]}
    assert set(rows) == set(told) | set(users) and "alice" in rows
    row, page, user = rows["alice"], told["alice"], users["alice"]
    held = sum(page["used"] + page["held_idle"]) / 3600
    assert float(row["held_gpu_h"]) == pytest.approx(held, abs=2e-6) and held > 0
    assert float(row["unknown_gpu_h"]) == pytest.approx(sum(page["unknown"]) / 3600, abs=2e-6)
    assert float(row["redone_gpu_h"]) == pytest.approx(user["redo_hours"], abs=2e-6)
    assert float(row["redone_gpu_h"]) * 3600 >= trained["recovery"]["redo_s"] * GPUS - 0.01
    waited = user["queue_hours"] + user["first_wait_hours"]
    assert float(row["waited_gpu_h"]) == pytest.approx(waited, abs=2e-6) and waited > 0
    titles, first, *_ = cli(argusd, "people").splitlines()
    assert titles.split() == ["USER", "GPU-H", "COMPUTED", "IDLE", "UNKNOWN", "REDONE", "WAITED"]
    assert first.split()[0] == "alice"
    with_json = cli(argusd, "people", "-o", "json")
    assert '"usage"' in with_json and '"recovery"' in with_json
