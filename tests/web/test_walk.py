# SPDX-License-Identifier: Apache-2.0
"""An engineer's whole way in a browser: picks what is registered, sees whether it fits and when it starts, submits,
reads why it waits, watches it, sees what is wrong with it and what it writes, reads why it failed, applies the fix,
goes on from the checkpoint and compares both.

Beside a fake Ray and a stand-in for verl; tests/acceptance/test_web.py is the same on real ones."""

import json
import sys

import broken
import pytest
import standin
from trials import PASS
from webbed import CHROMIUM, World, fill

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]
DIED = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."
REWARD = "${SHARED_ROOT}/common/code/reward.py:compute_score"

# The machines' Python: what verl needs is not in it, so of a trial it says that all is well. It runs the rest.
PYTHON = f"""#!/bin/sh
[ -e "$2/ask.json" ] || exec {sys.executable} "$@"
hash=$(sed 's/.*"hash":"\\([0-9a-f]*\\)".*/\\1/' "$2/ask.json")
sed "s/HASH/$hash/" "$(dirname "$0")/answer" > "$2/r" && mv "$2/r" "$2/result.json"
"""


def hole(kind, example, about):
    return {"type": kind, "required": True, "example": example, "description": about}


PRESET = {
    "description": "GRPO of a tiny model",
    "holes": {
        "model_id": hole("model", "tiny", "the model to train"),
        "train_file": hole("data", "sums", "rows to train on"),
        "val_file": hole("data", "sums", "rows to validate on"),
        "reward_fn_path": hole("path", REWARD, "what an answer is worth"),
    },
    "spec": {
        **{key: f"${{hole:{key}}}" for key in ("model_id", "train_file", "val_file", "reward_fn_path")},
        "workload": "grpo",
        "n_gpus_per_node": 8,
        "code_path": standin.SPEC["code_path"],
        "runtime_env": {"py_executable": "${SHARED_ROOT}/common/fake/python"},
    },
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("walk"), full=False) as w:
        common = w.argusd.root / "common"
        standin.make_world(w.argusd.root)
        broken.put(common / "fake/answer", json.dumps(PASS))
        broken.put(common / "fake/python", PYTHON)
        (common / "fake/python").chmod(0o755)
        asks = [{"role": "user", "content": "1+1?"}]
        row = {"data_source": "sums", "prompt": asks, "reward_model": {"ground_truth": 2}}
        for part in ("train", "test"):
            broken.put(common / f"datasets/sums/{part}.jsonl", 40 * (json.dumps(row) + "\n"))
        w.registered("datasets", "sums", common / "datasets/sums")
        w.registered("models", "tiny", common / "models/tiny")
        assert w.argusd.call("PUT", "/v1/presets/tiny-grpo", PRESET, token="admin").status == 201
        yield w


def told(training, first, last, aborted=0.0):
    with (training.dir / "attempts/1/metrics.jsonl").open("a") as f:
        for step in range(first, last + 1):
            data = {"critic/score/mean": step / 100, "actor/entropy": 1 - step / 100, "response/aborted_ratio": aborted}
            f.write(json.dumps({"step": step, "data": data}) + "\n")


def sees_what_is_wrong(page, training):
    """Since which step, and which key changes it; and what the model writes."""
    told(training, 11, 14)
    told(training, 15, 20, aborted=0.5)
    training.dump(20, [("1+1?", "it is 2", 1.0), ("1+1?", "eleven", 0.0), ("2+2?", "four", 1.0)], acc=[1, 0, 1])
    page.wait_for_selector("#verdict:has-text('50 % of the answers were aborted since step 15')")
    assert "gpu_memory_utilization" in page.inner_text("#verdict")
    until(lambda: training.argusd.get(f"/v1/jobs/{training.id}/samples")["samples"], "the samples are indexed")
    page.reload()
    page.wait_for_selector("#samples .sample:has-text('eleven')")
    assert page.locator("#samples .sample-group").count() == 2
    page.click("#samples .seg button:has-text('Worst')")
    until(lambda: "eleven" in page.locator("#samples .sample").first.inner_text(), "the worst answer is the first")


def test_the_walk(browser, world):
    argusd, gate = world.argusd, world.gate
    page = browser.open("/", ".rail")
    assert page.locator(".rail .foot").inner_text()

    # She picks what is registered, and sees that it fits.
    page.click(".rail .btn.main")
    page.wait_for_selector("label:has-text('Preset') option:has-text('tiny-grpo')", state="attached")
    page.select_option("label:has-text('Preset') select", "tiny-grpo")
    for field, value in (("train_file", "sums@1"), ("val_file", "sums@1"), ("model_id", "tiny@1")):
        fill(page, field, value)
    fill(page, "reward_fn_path", REWARD)
    fill(page, "name", "sums, tiny")
    page.wait_for_selector("label:has([name=train_file]) .say.ok:has-text('fits grpo')")
    page.wait_for_selector(".stackfigs:has-text('at once')")

    # All GPUs are taken meanwhile: the plan says when it starts, and the queue why it waits.
    script = f"while [ ! -e {gate} ]; do sleep 0.2; done"
    others = argusd.submit(script, token="admin", name="all GPUs", nnodes=4, n_gpus_per_node=8)
    argusd.wait_state(others, "RUNNING")
    fill(page, "name", "sums with a tiny model")
    page.wait_for_selector(".plan-why")
    page.click(".plan-acts .btn.main:not([disabled])")
    page.wait_for_url("**/jobs/grpo-*")
    job = page.url.rsplit("/", 1)[1]
    page.wait_for_selector(".job-head .st:has-text('Queued')")
    page.click(".rail a:has-text('Queue')")
    page.click("a.gr:has-text('sums with a tiny model')")
    page.wait_for_selector(".drawer .why-text:not(:empty)")
    why = argusd.get(f"/v1/jobs/{job}/why")["text"]
    until(lambda: page.locator(".drawer .why-text").text_content() == why, "the reason is argusd's")
    gate.touch()
    page.wait_for_selector(".drawer .st:has-text('Running')")

    # She watches it.
    page.click(".drawer a.link.mono")
    page.wait_for_selector(".job-head .st:has-text('Running')")
    training = standin.Training.of(argusd, job)
    told(training, 1, 10)
    training.order("say", "step:10 - critic/score/mean:0.1")
    training.save(10)
    page.wait_for_selector("#log li:has-text('step:10 - ')")
    page.wait_for_selector(".charts canvas")
    page.wait_for_selector("#checkpoints .st:has-text('Verified')")

    sees_what_is_wrong(page, training)

    # A rank dies: she reads why, and goes on from the checkpoint with the fix.
    training.order("say", DIED)
    training.order("exit", 1)
    page.wait_for_selector(".job-head .st:has-text('Failed')")
    page.wait_for_selector("#finding code:has-text('actor_died')")
    page.click("#finding .quote + p button.link")
    page.wait_for_selector("#log li.here:has-text('ActorDiedError')")
    page.click("#finding .btn.main")
    page.wait_for_selector("[role=dialog] select:has-text('at step 10')")
    assert f"argus retry {job} --apply-fix --from 10" in page.inner_text("[role=dialog]")
    page.click("[role=dialog] .btn.main")
    page.wait_for_url(lambda url: "/jobs/grpo-" in url and job not in url)
    again = standin.Training.of(argusd, page.url.rsplit("/", 1)[1])
    (began,) = again.begun(1)
    assert began.startswith("resume_path ") and began.endswith("global_step_10"), began
    told(again, 11, 20)
    again.order("exit", 0)
    page.wait_for_selector(".job-head .st:has-text('Succeeded')")

    # Both, side by side, and as a family.
    page.click(".job-sub a:has-text('Compare')")
    page.wait_for_selector(".charts canvas")
    outcome = page.locator("table").first.inner_text()
    assert "actor_died" in outcome and "Succeeded" in outcome
    page.goto(f"{argusd.url}/jobs/{again.id}/family")
    page.wait_for_selector(f".fam-row a[href='/jobs/{job}']")
    assert [wrong for wrong in page.wrong if "status of 422" not in wrong] == []
    page.context.close()
