# SPDX-License-Identifier: Apache-2.0
"""eval_on_save: each checkpoint is judged by a job of its own, and what that told stands with the checkpoint."""

import os
import subprocess

import broken
import pytest
import standin
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd

ACC = "val-core/toy/acc/mean@1"
OUT = "${SHARED_ROOT}/jobs/${JOB}-eval-${STEP}"
JUDGE = """
import os, select, sys
while not os.path.exists(sys.argv[3]):
    select.select([], [], [], 0.02)
assert os.path.isdir(sys.argv[1] + "/actor")
print('{"step": %s, "score": 0.25}' % sys.argv[2], flush=True)
"""


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("evals"), ray.url) as made:
        standin.make_world(made.root)
        yield made


def judged(t):
    return {c["step"]: (c["eval"], c["eval_job"], c["values"]) for c in t.listed()}


def let(argusd, job, says):
    """The eval job tells this and ends."""
    place = argusd.job_dir(job)
    until(lambda: (place / "begun").is_file(), f"{job} runs")
    (place / ".validate").write_text(says)
    (place / ".validate").rename(place / "validate")
    assert argusd.wait_over(job)["state"] == "SUCCEEDED"


def test_the_training_itself_judges_each_of_its_checkpoints_one_at_a_time(argusd):
    t = standin.Training(argusd, submission_id="own", test_freq=-1, eval_on_save={"env": {"HOW": "alone"}})
    t.save(10, 20)
    until(lambda: judged(t).get(10, ("",))[0] == "submitted", "the first is being judged")
    first = argusd.job("own-eval-10")
    assert (first["user"], first["priority"], first["name"]) == (argusd.job(t.id)["user"], 0, "eval of own, step 10")
    assert first["resolved_spec"]["resume"] == "own@10" and first["resolved_spec"]["env"]["HOW"] == "alone"
    assert "trainer.val_only=True" in first["resolved_spec"]["overrides"]
    assert judged(t)[20][0] is None and argusd.call("GET", "/v1/jobs/own-eval-20").status == 404
    let(argusd, "own-eval-10", f"step:10 - {ACC}:0.75")
    until(lambda: judged(t)[10] == ("done", "own-eval-10", {ACC: 0.75}), "its value stands with the checkpoint")
    let(argusd, "own-eval-20", f"step:20 - {ACC}:0.5")
    until(lambda: judged(t)[20] == ("done", "own-eval-20", {ACC: 0.5}), "so does that of the second")
    page = argusd.get(f"/v1/jobs/{t.id}/checkpoints")
    assert (page["metric"], page["best"]) == (ACC, 10)
    assert [e for e in t.told("checkpoint_eval") if "step 10" in e] == [
        "the checkpoint of step 10 is being judged by job 'own-eval-10'",
        "job 'own-eval-10' has judged the checkpoint of step 10: its values stand with the checkpoint",
    ]
    argusd.stop_job(t.id)


def test_a_job_of_its_own_judges_and_the_last_checkpoint_of_a_training_that_is_over_too(argusd):
    """Over a kill -9 of argusd while the eval job runs."""
    spec = {
        "workload": "ray",
        "n_gpus_per_node": 0,
        "entrypoint": ["python3", "-c", JUDGE, "${CHECKPOINT}", "${STEP}", f"{OUT}/go"],
    }
    t = standin.Training(argusd, submission_id="apart", eval_on_save=spec)
    t.save(10)
    t.order("exit", 0)
    argusd.wait_over(t.id)
    until(lambda: judged(t).get(10, ("",))[0] == "submitted", "the last one is judged, too")
    until(lambda: argusd.job("apart-eval-10")["state"] == "RUNNING", "the eval job runs")
    before = judged(t)
    argusd.kill9()
    argusd.start()
    assert judged(t) == before
    (argusd.job_dir("apart-eval-10") / "go").touch()
    assert argusd.wait_over("apart-eval-10")["state"] == "SUCCEEDED"
    until(lambda: judged(t)[10] == ("done", "apart-eval-10", {"eval/score": 0.25}), "what it told stands there")


def test_a_model_of_the_checkpoint_knows_what_judged_it(argusd):
    """Also what came after it was registered, and by the command line."""
    t = standin.Training(argusd, submission_id="known", test_freq=-1, eval_on_save={"env": {"HOW": "alone"}})
    t.save(10)
    until(lambda: judged(t).get(10, ("",))[0] == "submitted", "it is being judged")
    made = t.kept / "global_step_10/actor/huggingface"
    broken.make_model(made)
    form = {"name": "of-known", "source": str(made), "in_place": True}
    reply = argusd.call("POST", "/v1/models", form, token="user")
    assert reply.status == 201, reply

    def lineage():
        return argusd.get("/v1/models/of-known", token="user")["lineage"]

    until(lambda: argusd.get("/v1/models/of-known", token="user")["state"] == "ready", "it is registered")
    assert "eval" not in lineage() and lineage()["step"] == 10
    let(argusd, "known-eval-10", f"step:10 - {ACC}:0.75")
    until(lambda: lineage().get("eval") == {"job": "known-eval-10", "values": {ACC: 0.75}}, "its value is there")
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "LANG": "C.UTF-8"}
    argv = [PROGRAMS["argus"], "model", "lineage", "of-known"]
    said = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert said.returncode == 0 and f"{ACC} 0.75" in said.stdout, said
    argusd.stop_job(t.id)


def test_what_main_eval_prints_stands_with_the_checkpoint(argusd):
    """A dict as Python prints it, without a step."""
    says = """print("{'test_score/toy/sums': np.float64(0.25), 'test_score/toy/words': 1}")"""
    spec = {"workload": "ray", "n_gpus_per_node": 0, "entrypoint": ["python3", "-c", says]}
    t = standin.Training(argusd, eval_on_save=spec)
    t.save(10)
    until(lambda: judged(t).get(10, ("",))[0] not in (None, "", "submitted"), "it is judged")
    state, _, values = judged(t)[10]
    assert (state, values) == ("done", {"eval/test_score/toy/sums": 0.25, "eval/test_score/toy/words": 1})
    argusd.stop_job(t.id)


@pytest.mark.parametrize(("code", "state"), [(0, "silent"), (3, "failed")])
def test_an_eval_that_tells_nothing_or_fails(argusd, code, state):
    spec = {"workload": "ray", "n_gpus_per_node": 0, "entrypoint": ["bash", "-c", f"exit {code}"]}
    t = standin.Training(argusd, eval_on_save=spec)
    t.save(10)
    until(lambda: judged(t).get(10, ("",))[0] == state, f"it is {state}")
    assert judged(t)[10][2] == {}
    argusd.stop_job(t.id)


def test_one_that_is_refused_is_told_once_with_the_reason(argusd):
    spec = {"workload": "ray", "entrypoint": ["true"], "working_dir": "nowhere@7"}
    t = standin.Training(argusd, eval_on_save=spec)
    t.save(10)
    until(lambda: judged(t).get(10, ("",))[0] == "refused", "it is refused")
    (text,) = t.told("checkpoint_eval")
    assert text.startswith("the checkpoint of step 10 is not judged: ") and "nowhere" in text
    argusd.stop_job(t.id)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"workload": "ray"}, "the job that it starts is refused: 'entrypoint': "),
        ({"val_fil": "x"}, "the job that it starts is refused: 'val_fil': "),
        ({"submission_id": "mine"}, "may not have 'submission_id'"),
        ({"resume": "never"}, "may not have 'resume'"),
        ({"env": {"WANDB_API_KEY": "x"}}, "the value of 'WANDB_API_KEY' would be shown"),
        ("yes", "a mapping"),
    ],
)
def test_what_cannot_become_a_job_is_refused_at_the_submit(argusd, spec, says):
    reply = argusd.post({**standin.SPEC, "eval_on_save": spec}, token="user")
    assert reply.status == 422, reply
    assert any(p["field"] == "eval_on_save" and says in p["detail"] for p in reply.json()["problems"]), reply.json()


def test_an_sft_needs_a_workload(argusd):
    spec = {k: v for k, v in standin.SPEC.items() if k != "workload"}
    reply = argusd.post({**spec, "workload": "sft", "eval_on_save": {}}, token="user")
    assert reply.status == 422
    assert "an SFT cannot be run to validate alone" in reply.body.decode(), reply


def test_a_key_in_what_judges_is_not_shown_and_the_smoke_run_has_no_eval(argusd):
    key = "sk-" + "a1B2c3D4" * 4
    spec = {"workload": "ray", "n_gpus_per_node": 0, "entrypoint": ["python3", "judge.py", "--api-key", key]}
    spec |= {"working_dir": "${SHARED_ROOT}/common/code"}
    t = standin.Training(argusd, eval_on_save=spec)
    view = argusd.call("GET", f"/v1/jobs/{t.id}", token="user").body.decode()
    assert '"--api-key"' in view and key not in view
    argusd.stop_job(t.id)
    small = argusd.post({**standin.SPEC, "eval_on_save": {}}, "?smoke=1&dry_run=1&no_trial=1", token="user")
    assert small.status == 200, small
    assert "eval_on_save" not in small.json()["resolved_spec"]
