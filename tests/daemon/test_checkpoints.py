# SPDX-License-Identifier: Apache-2.0
"""The checkpoints of a job: listed, gone on from what can be read, kept and removed by rule and by hand."""

import contextlib
import json
import os
import sqlite3
import subprocess

import pytest
import standin
from checkpoints import is_loadable
from fakeray import FakeRay
from holdremovals import held_removals
from preload import needs_compiler
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

RESTART = {"max": 5, "backoff": "1s", "on": ["user_code_error", "unknown"]}


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("checkpoints"), ray.url) as made:
        standin.make_world(made.root)
        yield made


def cli(argusd, *args):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "LANG": "C.UTF-8"}
    argv = [PROGRAMS["argus"], *args]
    return subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)


def test_a_restart_goes_on_from_what_can_be_read(argusd):
    t = standin.Training(argusd, restart=RESTART)
    assert t.begun(1) == ["auto "]
    t.save(10, 20)
    t.order("torn", 30)
    t.order("unnamed", 40)
    t.order("exit", 3)
    assert t.begun(2)[1] == f"resume_path {t.kept}/global_step_20"
    assert t.steps() == [10, 20] and t.tracker() == 20
    assert f"trainer.resume_from_path={t.kept}/global_step_20" in argusd.job(t.id)["argv"]
    (text,) = t.told("resume")
    assert "goes on from the checkpoint of step 20" in text and "step 40 is torn" in text and "put aside" in text
    t.save(30)
    t.order("exit", 3)
    assert t.begun(3)[2] == f"resume_path {t.kept}/global_step_30"
    assert t.told("resume")[1] == "it goes on from the checkpoint of step 30"
    argusd.stop_job(t.id)


def test_the_last_one_is_looked_at_after_the_end_and_never_denied(argusd):
    """From the job's end on until the list has it, the list says that there may be more."""
    t = standin.Training(argusd)
    t.save(10)
    until(lambda: t.states() == {10: "verified"}, "the first one is listed")
    t.order("save", 20)
    t.order("exit", 0)
    seen = []

    def settled():
        over = argusd.job(t.id)["state"] == "SUCCEEDED"
        page = argusd.get(f"/v1/jobs/{t.id}/checkpoints")
        steps = [c["step"] for c in page["checkpoints"]]
        seen.append((over, page["looking"], steps))
        return over and not page["looking"]

    until(settled, "it was looked at")
    assert all(looking or 20 in steps for over, looking, steps in seen if over), seen


def test_another_job_goes_on_from_the_newest_verified(argusd):
    t = standin.Training(argusd)
    t.save(10, 20)
    t.order("torn", 30)
    until(lambda: t.states() == {10: "verified", 20: "verified", 30: "broken"}, "all are in the catalogue")
    plan = argusd.post({**standin.SPEC, "resume": t.id}, "?dry_run=1&no_trial=1", token="user").json()
    assert f"trainer.resume_from_path={t.kept}/global_step_20" in plan["argv"]
    new = standin.Training(argusd, resume=t.id)
    assert new.begun(1) == [f"resume_path {t.kept}/global_step_20"]
    t.save(40, 50, 60)
    until(lambda: 10 not in t.steps() and t.states().get(60) == "verified", "retention takes what nobody needs")
    plan = gc(argusd, t, dry_run=True)  # the other one's command line names it
    assert (20, "in_use") in [(c["step"], c["kept_by"]) for c in plan["checkpoints"]]
    shown = {c["step"]: c for c in argusd.get(f"/v1/jobs/{t.id}/checkpoints?used_by=1")["checkpoints"]}
    assert (shown[20]["kept"], shown[20]["used_by"]) == ("in_use", [{"kind": "job", "name": new.id}])
    assert shown[60]["kept"] == "last_verified" and "used_by" not in shown[60]
    assert not [c for c in t.listed() if "used_by" in c], "nobody asked"
    assert f"job '{new.id}'" in cli(argusd, "ckpt", "ls", "--used-by", t.id).stdout
    for job in (t, new):
        argusd.stop_job(job.id)
    empty = argusd.post({**standin.SPEC, "resume": "nobody"}, "?dry_run=1&no_trial=1", token="user")
    assert (empty.status, empty.json()["detail"], empty.json()["field"]) == (422, "no job 'nobody'", "resume")
    empty = argusd.post({**standin.SPEC, "resume": "nobody"}, "?dry_run=1&no_trial=1")  # an admin sees all there is
    assert empty.status == 422 and "no verified checkpoint to resume from" in empty.json()["detail"]


def test_with_nothing_to_read_it_begins_anew(argusd):
    t = standin.Training(argusd, restart=RESTART)
    t.order("torn", 10)
    t.order("exit", 3)
    assert t.begun(2)[1] == "auto "
    assert t.steps() == [] and t.tracker() == 0
    assert "begins anew" in t.told("resume")[0]
    argusd.stop_job(t.id)


def test_the_catalogue(argusd):
    t = standin.Training(argusd)
    t.save(10)
    until(lambda: t.states() == {10: "verified"}, "step 10 is in the catalogue")
    (one,) = t.listed()
    size = sum(p.stat().st_size for p in (t.kept / "global_step_10").rglob("*") if p.is_file())
    assert (one["bytes"], one["attempt"], one["verified"], one["why"]) == (size, 1, True, None)
    assert one["at"] and argusd.job(t.id)["checkpoints"] == [one]
    t.order("unnamed", 20)
    until(lambda: t.states() == {10: "verified", 20: "partial"}, "the unfinished one is there")
    t.order("torn", 30)
    until(lambda: t.states().get(30) == "broken", "the torn one is there")
    assert "optim_world_size_1_rank_0.pt': it has no end" in t.listed()[2]["why"]
    assert t.told("checkpoint")[0].startswith("the checkpoint of step 10 is complete: ")
    assert len(t.told("checkpoint_broken")) == 1
    argusd.restart()
    assert t.states()[10] == "verified" and len(t.told("checkpoint_broken")) == 1
    t.order("save", 40)
    t.order("exit", 0)
    assert argusd.wait_over(t.id)["state"] == "SUCCEEDED"
    until(lambda: t.states().get(40) == "verified", "what was saved last is looked at after the end")


def test_retention(argusd):
    t = standin.Training(argusd, checkpoint={"keep_last": 2}, restart=RESTART)
    t.save(10, 20, 30)
    until(lambda: t.steps() == [20, 30] and list(t.states()) == [20, 30], "two are kept")
    assert t.told("checkpoint_removed")[-1].startswith("removed the checkpoints of the steps 10: ")
    t.order("exit", 3)
    t.begun(2)
    t.save(40)
    until(lambda: t.steps() == [30, 40], "what an attempt before saved is counted, too")
    t.order("torn", 50)
    until(lambda: t.states().get(50) == "broken", "it is found torn")
    assert t.steps() == [30, 40, 50]  # nothing goes for one that cannot be read
    t.save(60)
    until(lambda: t.steps() == [40, 60], "leavings go")
    argusd.stop_job(t.id)


ACC, LOSS = "val-core/toy/acc/mean@1", "val/loss"


def told(t, step, **values):
    with (t.dir / "attempts/1/metrics.jsonl").open("a") as f:
        f.write(json.dumps({"step": step, "data": {"actor/entropy": step / 100, **values}}) + "\n")


@pytest.fixture(scope="module")
def validated(argusd):
    """Three checkpoints and what validation told at two of them; it is over."""
    t = standin.Training(argusd)
    told(t, 10, **{ACC: 0.9, LOSS: 3, "val-aux/toy/len": 7})
    told(t, 20, **{ACC: 0.25, LOSS: 2})
    told(t, 25, **{ACC: 1})  # nothing was saved there
    told(t, 30)
    t.save(10, 20, 30)
    wanted = [{ACC: 0.9, LOSS: 3}, {ACC: 0.25, LOSS: 2}, {}]
    until(lambda: [c["values"] for c in t.listed()] == wanted, "its values stand at each checkpoint")
    t.order("exit", 0)
    argusd.wait_over(t.id)
    return t


def page_of(argusd, t, query=""):
    page = argusd.get(f"/v1/jobs/{t.id}/checkpoints{query}")
    return page["metric"], page["mode"], page["best"], [c["value"] for c in page["checkpoints"]]


def test_what_validation_told_stands_at_each_checkpoint(argusd, validated):
    t = validated
    assert page_of(argusd, t) == (ACC, "max", 10, [0.9, 0.25, None])
    assert [c["value"] for c in argusd.job(t.id)["checkpoints"]] == [0.9, 0.25, None]
    before = t.listed()
    argusd.restart()
    assert t.listed() == before
    out = cli(argusd, "ckpt", "ls", t.id)
    assert f"{ACC} 0.9, {LOSS} 3" in out.stdout, out


def test_any_metric_says_which_is_best(argusd, validated):
    t = validated
    assert page_of(argusd, t, f"?metric={LOSS}") == (LOSS, "min", 20, [3, 2, None])
    assert page_of(argusd, t, f"?metric={LOSS}&mode=max") == (LOSS, "max", 10, [3, 2, None])
    assert page_of(argusd, t, "?metric=actor/entropy") == ("actor/entropy", "max", 30, [0.1, 0.2, 0.3])
    assert page_of(argusd, t, "?metric=val-aux/*") == ("val-aux/*", "max", 10, [7, None, None])
    no = argusd.call("GET", f"/v1/jobs/{t.id}/checkpoints?metric=actor/entrapy")
    assert (no.status, no.json()["code"]) == (404, "no_metric")
    assert no.json()["detail"].endswith("has told no metric 'actor/entrapy': did you mean 'actor/entropy'?")
    assert argusd.call("GET", f"/v1/jobs/{t.id}/checkpoints?mode=most").status == 400

    assert cli(argusd, "ckpt", "best", t.id).stdout == "10\n"
    smallest = cli(argusd, "ckpt", "best", "--metric", LOSS, t.id)
    assert smallest.stdout == "20\n" and f"{LOSS} is 2 at step 20, the smallest" in smallest.stderr
    assert cli(argusd, "ckpt", "best", "--metric", LOSS, "--max", t.id).stdout == "10\n"
    asked = json.loads(cli(argusd, "ckpt", "best", "-o", "json", "--metric", "actor/*", t.id).stdout)
    assert (asked["step"], asked["value"]) == (30, 0.3)
    for args, status, says in (
        (("--metric", "val/los"), 4, f"did you mean '{LOSS}'?"),
        (("--min", "--max"), 2, "--min or --max, not both"),
    ):
        no = cli(argusd, "ckpt", "best", t.id, *args)
        assert no.returncode == status and says in no.stderr, no
    listed = cli(argusd, "ckpt", "ls", "--metric", "actor/entropy", t.id).stdout.splitlines()
    assert [line.split()[:2] for line in listed[1:]] == [["10", "verified"], ["20", "verified"], ["30", "verified"]]
    assert "0.3" in listed[3]


def test_a_retry_from_the_best(argusd, validated):
    t = validated

    def retry(**body):
        return argusd.call("POST", f"/v1/jobs/{t.id}:retry?dry_run=1&no_trial=1", body, token="user")

    for body, step in (({}, 10), ({"metric": LOSS}, 20), ({"metric": "actor/entropy", "mode": "min"}, 10)):
        plan = retry(**{"from": "best"}, **body)
        assert plan.status == 200, plan
        assert f"trainer.resume_from_path={t.kept}/global_step_{step}" in plan.json()["argv"]
    for body, status, says in (
        ({"from": "best", "metric": "val/los"}, 422, f"did you mean '{LOSS}'?"),
        ({"from": "latest", "metric": LOSS}, 400, "they go with 'from': \"best\""),
        ({"from": "best", "mode": "most"}, 400, "max or min"),
    ):
        no = retry(**body)
        assert no.status == status and says in no.json()["detail"], no
    done = cli(argusd, "retry", "--from", "best", "--metric", LOSS, t.id)
    assert done.returncode == 0, done
    new = done.stdout.strip()
    assert argusd.get(f"/v1/jobs/{new}", token="user")["retry_of"] == t.id
    argusd.stop_job(new)


def test_without_a_value_there_is_no_best(argusd):
    t = standin.Training(argusd)
    t.save(10)
    until(lambda: t.states() == {10: "verified"}, "it is in the catalogue")
    assert page_of(argusd, t) == (None, None, None, [None])
    no = cli(argusd, "ckpt", "best", t.id)
    assert no.returncode == 4 and "validation told nothing" in no.stderr, no
    argusd.stop_job(t.id)
    argusd.wait_over(t.id)
    no = cli(argusd, "retry", "--from", "best", t.id)
    assert no.returncode == 5 and "validation told nothing" in no.stderr, no


@pytest.mark.nightly  # it waits for looks
def test_the_best_stays(argusd):
    t = standin.Training(argusd, checkpoint={"keep_last": 1, "keep_best": {"metric": "val-core/*", "mode": "max"}})
    metrics = t.dir / "attempts/1/metrics.jsonl"
    for step, value in ((10, 0.2), (20, 0.9), (30, 0.5), (40, 0.4)):
        with metrics.open("a") as f:
            f.write(json.dumps({"step": step, "data": {"val-core/toy/acc/mean@1": value}}) + "\n")
        until(lambda step=step: argusd.job(t.id)["step"] == step, "the step is read")
        t.save(step)
        until(lambda step=step: t.states().get(step) == "verified", f"step {step} is verified")
    until(lambda: t.steps() == [20, 40] and list(t.states()) == [20, 40], "the best and the last are kept")
    assert [c["value"] for c in t.listed()] == [0.9, 0.4]
    refused = argusd.post({**standin.SPEC, "resume": f"{t.id}@999"}, "?no_trial=1", token="user")
    (problem,) = refused.json()["problems"]
    assert (refused.status, problem["field"]) == (422, "resume") and "there is no checkpoint" in problem["detail"]
    argusd.stop_job(t.id)


@pytest.mark.nightly  # it waits for looks
def test_what_is_in_use_stays(argusd):
    t = standin.Training(argusd, checkpoint={"keep_last": 1})
    t.save(10)
    until(lambda: t.states() == {10: "verified"}, "it is verified")
    other = argusd.post({**standin.SPEC, "resume": f"{t.id}@10", "pool": "nowhere"}, "?no_trial=1", token="user")
    assert other.status == 201, other
    t.save(20, 30)
    until(lambda: t.steps() == [10, 30] and list(t.states()) == [10, 30], "the one that a job waits for stays")
    plan = gc(argusd, t, dry_run=True)
    assert [(c["step"], c["kept_by"]) for c in plan["checkpoints"]] == [(10, "in_use"), (30, "last_verified")]
    argusd.stop_job(other.json()["id"])
    until(lambda: t.steps() == [30] or gc(argusd, t)["removed"] >= 0, "nobody needs it any more")
    until(lambda: t.steps() == [30], "it goes")
    argusd.stop_job(t.id)


def test_what_was_saved_while_argusd_was_away(argusd):
    """No tick of argusd ever saw it run with a checkpoint."""
    t = standin.Training(argusd)
    argusd.kill9()
    t.save(10)
    t.order("exit", 0)
    until((argusd.job_dir(t.id) / "attempts/1/exit.json").exists, "it has ended")
    argusd.start()
    assert argusd.wait_over(t.id)["state"] == "SUCCEEDED"
    until(lambda: t.states() == {10: "verified"}, "it is in the catalogue")


def row_of(argusd, job):
    """What the store keeps of its checkpoints."""
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db:
        row = db.execute("SELECT body FROM entry WHERE kind = 'checkpoints' AND name = ?", (job,)).fetchone()
    return json.loads(row[0]) if row else None


def ended_unseen(argusd):
    """A training that saved once and ended, killed argusd with it before its checkpoints were looked at: its id."""
    for _ in range(20):
        t = standin.Training(argusd)
        argusd.kill9()
        t.save(10)
        t.order("exit", 0)
        until((argusd.job_dir(t.id) / "attempts/1/exit.json").exists, "it has ended")
        argusd.start()
        assert argusd.wait_over(t.id)["state"] == "SUCCEEDED"
        argusd.kill9()
        if not (row_of(argusd, t.id) or {}).get("list"):
            return t
        argusd.start()
    raise AssertionError("each look came before the kill")


def test_a_kill_between_the_end_and_its_look(argusd):
    """The debt is a row of the store, in the batch of the end, and goes with the look, also where nothing was found."""
    t = ended_unseen(argusd)
    argusd.start()
    until(lambda: t.states() == {10: "verified"}, "it is in the catalogue")
    until(lambda: not row_of(argusd, t.id)["open"], "the debt is paid")
    none = standin.Training(argusd)
    none.order("exit", 0)
    argusd.wait_over(none.id)
    until(lambda: not row_of(argusd, none.id), "nothing is kept of what has none")
    linked = standin.Training(argusd)
    linked.kept.rename(linked.kept.with_name("elsewhere"))
    linked.kept.symlink_to("elsewhere")
    linked.order("exit", 0)
    argusd.wait_over(linked.id)
    until(lambda: not row_of(argusd, linked.id), "nothing is owed for what cannot be looked at")


def test_who_may_not_see_a_job_keeps_nothing_of_it(argusd):
    assert argusd.call("POST", "/v1/users", {"name": "bob"}).status == 201
    argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
    t = standin.Training(argusd, checkpoint={"keep_last": 1})
    t.save(10)
    until(lambda: t.states() == {10: "verified"}, "it is verified")
    his = argusd.submit(f"echo {t.id}@10", token="bob", pool="nowhere")
    t.save(20, 30)
    until(lambda: t.steps() == [30], "it goes as if nobody had named it")
    for job in (his, t.id):
        argusd.stop_job(job)


@pytest.mark.nightly  # it waits for looks
def test_what_is_registered_where_it_lies_stays(argusd):
    t = standin.Training(argusd, checkpoint={"keep_last": 1})
    t.save(10)
    until(lambda: t.states() == {10: "verified"}, "it is verified")
    rows = t.kept / "global_step_10/actor/huggingface/rows.jsonl"
    rows.parent.mkdir(parents=True, exist_ok=True)
    rows.write_text('{"prompt": "a"}\n')
    entry = {"name": "kept", "source": str(rows), "in_place": True}
    reply = argusd.call("POST", "/v1/datasets", entry, token="user")
    assert reply.status == 201, reply
    until(lambda: argusd.get("/v1/datasets/kept", token="user")["state"] == "ready", "no job names it any more")
    t.save(20, 30)
    until(lambda: t.steps() == [10, 30] and list(t.states()) == [10, 30], "what the registry names stays")
    plan = gc(argusd, t, dry_run=True)
    assert [(c["step"], c["kept_by"]) for c in plan["checkpoints"]] == [(10, "in_use"), (30, "last_verified")]
    assert argusd.call("DELETE", "/v1/datasets/kept@1", token="user").status < 300
    until(lambda: t.steps() == [30] or gc(argusd, t)["removed"] >= 0, "nobody needs it any more")
    until(lambda: t.steps() == [30], "it goes")
    argusd.stop_job(t.id)


@pytest.mark.nightly  # it waits for looks
def test_verl_does_not_take_what_another_job_needs(argusd):
    t = standin.Training(argusd, checkpoint={"keep_last": 2})
    t.save(10, 20)
    until(lambda: t.states() == {10: "verified", 20: "verified"}, "they are verified")
    other = argusd.post({**standin.SPEC, "resume": f"{t.id}@10", "pool": "nowhere"}, "?no_trial=1", token="user")
    assert other.status == 201, other
    gc(argusd, t)  # a look at once
    pin = t.kept / ".argus-pin-1-10/actor/model_world_size_1_rank_0.pt"
    assert pin.is_file()
    t.order("forget", 10)
    until(lambda: is_loadable(t.kept / "global_step_10"), "it is there again")
    until(lambda: t.states() == {10: "verified", 20: "verified"}, "and in the catalogue")
    t.save(30, 40)
    until(lambda: list(t.states()) == t.steps() == [10, 30, 40] and pin.is_file(), "it stays beside the two")
    argusd.stop_job(other.json()["id"])
    gc(argusd, t)
    until(lambda: t.steps() == [30, 40] and not pin.exists(), "nobody needs it any more")
    argusd.stop_job(t.id)


def gc(argusd, t, **body):
    reply = argusd.call("POST", f"/v1/jobs/{t.id}/checkpoints:gc", body, token="user")
    assert reply.status == 200, reply
    return reply.json()


def test_by_hand(argusd):
    t = standin.Training(argusd, checkpoint={"keep_last": 3})
    t.save(10, 20)
    t.order("unnamed", 30)
    until(lambda: t.states() == {10: "verified", 20: "verified", 30: "partial"}, "all are seen")
    out = cli(argusd, "ckpt", "ls", t.id)
    assert [line.split()[:2] for line in out.stdout.splitlines()[1:]] == [
        ["10", "verified"], ["20", "verified"], ["30", "partial"]]  # fmt: skip
    assert cli(argusd, "ckpt", "verify", f"{t.id}:10").stdout.startswith("step 10 verified, ")
    spoil(t, 20)
    bad = cli(argusd, "ckpt", "verify", f"{t.id}:20")
    assert bad.returncode == 5 and "step 20 broken" in bad.stdout and "are not what was written" in bad.stdout
    assert t.states() == {10: "verified", 20: "broken", 30: "partial"}
    argusd.stop_job(t.id)
    argusd.wait_over(t.id)
    plan = cli(argusd, "ckpt", "gc", "--dry-run", t.id)
    assert plan.returncode == 0 and plan.stderr.count("goes") == 1 and t.steps() == [10, 20, 30]
    asked = cli(argusd, "ckpt", "gc", t.id)
    assert asked.returncode == 2 and "add -y" in asked.stderr
    assert cli(argusd, "ckpt", "gc", "-y", t.id).stdout.startswith("1 removed, ")
    assert t.steps() == [10, 20] and list(t.states()) == [10, 20]  # the tracker names the broken one
    removed = [e for e in argusd.events(t.id) if e["kind"] == "checkpoint_removed"]
    assert [e["actor"] for e in removed] == ["alice"]


def pin(argusd, t, step, word="pin", token="user"):
    return argusd.call("POST", f"/v1/jobs/{t.id}/checkpoints/{step}:{word}", token=token)


def test_what_is_pinned_stays(argusd):
    """Over the retention, verl's own removal, a restart of argusd and the end of the job, until it is taken back."""
    t = standin.Training(argusd, checkpoint={"keep_last": 1})
    t.save(10)
    until(lambda: t.states() == {10: "verified"}, "it is verified")
    assert pin(argusd, t, 99).json()["code"] == "pin_no_checkpoint"
    assert pin(argusd, t, "x").status == 400
    done = cli(argusd, "ckpt", "pin", t.id, "10")
    assert (done.returncode, done.stdout) == (0, "step 10 is pinned: it stays\n"), done.stderr
    reply = pin(argusd, t, 10)
    assert (reply.status, reply.json()["pinned"]) == (200, True), "said twice it is said once"
    assert t.told("checkpoint_pinned") == ["the checkpoint of step 10 is pinned: it stays"]
    named = t.kept / ".argus-pin-1-10/actor/model_world_size_1_rank_0.pt"
    until(named.is_file, "it has a second name")
    t.order("forget", 10)
    t.save(20)  # which comes after that
    until(lambda: is_loadable(t.kept / "global_step_10"), "verl took it, and it is there again")
    t.save(30)
    until(lambda: t.steps() == [10, 30] and list(t.states()) == [10, 30], "it stays beside the newest")
    argusd.restart()
    assert [c.get("pinned") for c in t.listed()] == [True, None]
    argusd.stop_job(t.id)
    argusd.wait_over(t.id)
    plan = gc(argusd, t, dry_run=True)
    assert [(c["step"], c["kept_by"]) for c in plan["checkpoints"]] == [(10, "pinned"), (30, "last_verified")]
    lines = cli(argusd, "ckpt", "ls", t.id).stdout.splitlines()[1:]
    assert [("pinned" in line) for line in lines] == [True, False]
    refused = argusd.call("POST", f"/v1/jobs/{t.id}:archive", {"checkpoints": False}, token="user")
    assert (refused.status, refused.json()["code"]) == (409, "job_has_pinned"), refused
    assert cli(argusd, "ckpt", "unpin", t.id, "10").stdout == "step 10 is not pinned any more\n"
    assert gc(argusd, t)["removed"] == 1 and t.steps() == [30]
    assert len(t.told("checkpoint_pinned")) == len(t.told("checkpoint_unpinned")) == 1


def test_what_cannot_be_pinned(argusd):
    t = standin.Training(argusd)
    t.save(10)
    t.order("torn", 20)
    until(lambda: t.states() == {10: "verified", 20: "broken"}, "both are seen")
    refused = pin(argusd, t, 20)
    assert (refused.status, refused.json()["code"]) == (409, "pin_not_verified")
    assert "broken" in refused.json()["detail"]
    assert pin(argusd, t, 20, "unpin").status == 200, "it never was"
    assert argusd.call("POST", "/v1/users", {"name": "stranger"}).status == 201
    stranger = argusd.call("POST", "/v1/tokens", {"user": "stranger"}).json()["token"]
    assert pin(argusd, t, 10, token=stranger).status == 404
    argusd.stop_job(t.id)


def test_so_many_can_be_pinned(argusd):
    """Others are written into the row: no look at a job that is over takes away what is not there."""
    t = standin.Training(argusd)
    t.save(10)
    t.order("exit", 0)
    argusd.wait_over(t.id)
    until(lambda: (row := row_of(argusd, t.id)) and row["list"] and not row["open"], "no look at it is owed")
    argusd.stop()
    for n, status in ((64, 409), (63, 200)):
        put_pinned(argusd, t.id, range(1001, 1001 + n))
        argusd.start()
        reply = pin(argusd, t, 10)
        assert reply.status == status, reply
        assert status == 200 or reply.json()["code"] == "pins_many"
        argusd.stop()
    argusd.start()
    assert [c["pinned"] for c in t.listed()] == [True], "over a restart, too"


def put_pinned(argusd, job, steps):
    row = {**row_of(argusd, job), "pinned": list(steps)}
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db, db:
        body = json.dumps(row)
        db.execute("UPDATE entry SET body = ? WHERE kind = 'checkpoints' AND name = ?", (body, job))


def spoil(t, step):
    """Within a tensor: only who reads all of it can tell."""
    shard = t.kept / f"global_step_{step}/actor/model_world_size_1_rank_0.pt"
    at = shard.read_bytes().index(b"\x5a" * 100)
    with shard.open("r+b") as f:
        f.seek(at + 500)
        f.write(b"x")


def test_of_nobody(argusd):
    for what in ("project", "user"):
        none = argusd.call("GET", f"/v1/checkpoints?{what}=none")
        assert (none.status, none.json()["detail"]) == (404, f"no {what} 'none'")
        out = cli(argusd, "ckpt", "ls", f"--{what}", "none")
        assert out.returncode == 4 and f"no {what} 'none'" in out.stderr
    assert argusd.get("/v1/checkpoints?project=default&user=victor")["jobs"] == []


@pytest.mark.nightly  # it waits for looks
def test_of_a_whole_project(argusd):
    made = argusd.call("POST", "/v1/projects", {"name": "rlhf", "members": ["alice"]})
    assert made.status == 201, made
    ones = [standin.Training(argusd, project="rlhf", checkpoint={"keep_last": 3}) for _ in range(2)]
    other = standin.Training(argusd)
    for t, steps in zip((*ones, other), ((10, 20), (10,), (10,)), strict=True):
        t.save(*steps)
        wanted = dict.fromkeys(steps, "verified")
        until(lambda t=t, wanted=wanted: t.states() == wanted, "all are seen")
    for t in ones:
        t.order("unnamed", 50)
        until(lambda t=t: t.states().get(50) == "partial", "and one that is not finished")
    rows = argusd.get("/v1/checkpoints?project=rlhf&user=alice")
    assert [(r["id"], r["newest"]) for r in rows["jobs"]] == [(ones[0].id, 20), (ones[1].id, 10)]
    assert rows["bytes"] == sum(r["bytes"] for r in rows["jobs"]) and rows["total"] == 2
    assert other.id in [r["id"] for r in argusd.get("/v1/checkpoints?user=alice")["jobs"]]
    out = cli(argusd, "ckpt", "ls", "--project", "rlhf")
    assert [line.split()[0] for line in out.stdout.splitlines()[1:]] == [t.id for t in ones]
    both = cli(argusd, "ckpt", "ls", "--project", "rlhf", ones[0].id)
    assert both.returncode == 2 and "not both" in both.stderr
    for t in ones:
        argusd.stop_job(t.id)
        argusd.wait_over(t.id)
        torn = t.kept / ".argus-torn-7.1"
        torn.mkdir()
    gone = cli(argusd, "ckpt", "gc", "-y", "--user", "alice", "--project", "rlhf")
    assert gone.returncode == 0 and f"{ones[1].id}:" in gone.stderr, gone
    assert not torn.exists() and [t.steps() for t in ones] == [[10, 20], [10]]
    argusd.stop_job(other.id)


@pytest.mark.nightly  # src/fsroot/test/ckpt.c has the same without argusd
def test_a_restart_knows_what_was_found_broken(argusd):
    t = standin.Training(argusd, checkpoint={"keep_last": 2}, restart=RESTART)
    t.save(10, 20)
    until(lambda: t.states() == {10: "verified", 20: "verified"}, "both are seen")
    spoil(t, 20)
    assert cli(argusd, "ckpt", "verify", f"{t.id}:20").returncode == 5
    argusd.restart()
    t.order("exit", 3)
    assert t.begun(2)[1] == f"resume_path {t.kept}/global_step_10"
    assert "step 20 is torn: " in t.told("resume")[0] and "are not what was written" in t.told("resume")[0]
    assert t.steps() == [10] and t.tracker() == 10
    argusd.stop_job(t.id)


@needs_compiler
def test_who_comes_while_others_are_removed(tmp_path):
    """The first of two is being removed: who names the second now is in time, who names the first is told."""
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        standin.make_world(argusd.root)
        t = standin.Training(argusd, checkpoint={"keep_last": 1})
        argusd.stop()
        t.save(10, 20, 30)
        argusd.env = held_removals(tmp_path)
        argusd.start()
        until((tmp_path / "held").exists, "a removal has begun")

        def names(step):
            return argusd.post({**standin.SPEC, "resume": f"{t.id}@{step}", "pool": "nowhere"}, "?no_trial=1")

        late, early = names(10), names(20)
        assert (late.status, late.json()["code"]) == (409, "checkpoint_going"), late
        assert "is being removed" in late.json()["detail"]
        assert early.status == 201, early
        source = str(t.kept / "global_step_10/actor/huggingface")
        entry = {"name": "late", "source": source, "in_place": True, "common": True}
        model = argusd.call("POST", "/v1/models", entry)
        assert model.status == 409 and "is being removed" in model.json()["detail"], model
        assert argusd.get("/v1/models")["models"] == []
        (tmp_path / "free").touch()
        until(lambda: list(t.states()) == [20, 30], "the first is gone")
        plan = gc(argusd, t)
        assert t.steps() == [20, 30] and [c["kept_by"] for c in plan["checkpoints"]] == ["in_use", "last_verified"]
        argusd.stop_job(early.json()["id"])
        assert gc(argusd, t)["removed"] == 1 and t.steps() == [30]
        argusd.stop_job(t.id)


@pytest.mark.nightly  # it waits for looks
def test_a_quota_of_checkpoints(argusd):
    gib = 4 * 3000 / 2**30  # of the checkpoints below: one fits, two do not
    assert argusd.call("PUT", "/v1/projects/default/quota", {"checkpoints": 1000}).status == 200
    t = standin.Training(argusd, checkpoint={"keep_last": 3})
    t.order("save", 10, 3000)
    t.order("save", 20, 3000)
    until(lambda: list(t.states()) == [10, 20], "both are there")
    assert argusd.call("PUT", "/v1/projects/default/quota", {"checkpoints": gib}).status == 200
    t.order("save", 30, 3000)
    until(lambda: t.steps() == [30] and list(t.states()) == [30], "one is kept")
    assert "its quota is" in t.told("checkpoint_quota")[0]
    reply = argusd.post(standin.SPEC, "?no_trial=1", token="user")
    assert reply.status == 422 and "checkpoints of project 'default'" in reply.json()["detail"], reply
    assert argusd.call("PUT", "/v1/projects/default/quota", {}).status == 200
    argusd.stop_job(t.id)
