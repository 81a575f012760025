# SPDX-License-Identifier: Apache-2.0
"""The web pages: a person trains a model in a browser alone, on real Ray with real verl. docs/acceptance/web.md has the
steps; each is a test here, and goes on where the one before it ended. Pictures of all are kept as evidence."""

import json
import pathlib
import re
import sys
import types

import pytest
import stage as staging
from raybed import BEDS
from stage import wait_for

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "web"))
from webbed import CHROMIUM, Chromium, fill  # noqa: E402

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.story,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]

SAVES, STEPS = 2, 6
# The person's own. It stands still once the training has saved, until the test lets it go: a kill is never too late.
REWARD = '''"""What an answer is worth: the share of its characters that the right one has."""
import os
import pathlib
import select


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **keys):
    attempt = pathlib.Path(os.environ["ARGUS_ATTEMPT_DIR"])
    saved = attempt.parents[1] / "checkpoints/latest_checkpointed_iteration.txt"
    while saved.exists() and not (attempt.parents[3] / "common/go").exists():
        select.select([], [], [], 0.05)
    answer = solution_str.split("<|im_end|>")[0]
    return sum(c in ground_truth for c in answer) / max(1, len(answer))
'''


class WebStage(staging.Stage):
    others = {"user": "alice"}


class Story:
    """What the steps hand on: the page that alice looks at, and the jobs that she made."""

    def __init__(self, stage, browser):
        self.stage, self.browser = stage, browser
        self.page = browser.page(token=None)
        self.page.set_default_timeout(1000 * 180)
        self.jobs, self.done = [], []

    def step(self, name):
        """After the step: a picture of it, and what the page did wrong."""
        self.done.append(name)
        self.page.screenshot(path=self.stage.evidence / f"{len(self.done):02}-{name}.png", full_page=True)
        # A dry run of a spec that is half written is refused, and that is its answer.
        assert [wrong for wrong in self.page.wrong if "status of 422" not in wrong] == []

    def after(self, name):
        assert self.done and self.done[-1] == name, f"the step before, {name}, did not come to its end"
        return self.page


def rows(first, n):
    """Question and answer, as gsm8k has them."""
    some = [{"question": f"{i}+{i}?", "answer": f"twice {i}\n#### {2 * i}"} for i in range(first, first + n)]
    return "".join(json.dumps(row) + "\n" for row in some).encode()


def own_file(name, data):
    """Of her computer: the browser is handed its bytes, no file of this machine."""
    return {"name": name, "mimeType": "application/octet-stream", "buffer": data}


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory, evidence, tiny):
    with staging.open_stage(WebStage, BEDS.get("2.51.1"), request, tmp_path_factory, evidence, tiny) as s:
        doc = s.document("web")
        doc.run("model")
        doc.run("preset")
        yield s
        (s.root / "common/go").touch()


@pytest.fixture(scope="module")
def story(stage):
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: run ./dev setup")
    with sync_api.sync_playwright() as p:
        browser = Chromium(p, types.SimpleNamespace(argusd=stage))
        yield Story(stage, browser)
        browser.close()


def test_logs_in(story):
    page = story.page
    page.goto(story.stage.url)
    page.fill("input[name=token]", story.stage.tokens["user"])
    page.press("input[name=token]", "Enter")
    page.wait_for_selector(".rail .foot:has-text('alice')")
    page.wrong.clear()  # the first question, whether she is logged in, is answered by 401
    story.step("logs_in")


def test_uploads_data(story):
    page = story.after("logs_in")
    page.click(".rail a:has-text('Data')")
    page.click(".head button:has-text('Import')")
    page.fill("[role=dialog] input >> nth=0", "sums")
    page.set_input_files(
        "[role=dialog] input[type=file]", [own_file("train.jsonl", rows(0, 40)), own_file("test.jsonl", rows(40, 8))]
    )
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector(".vrow:has-text('sums@1') :text('Ready')")
    page.click(".vrow a:has-text('sums@1')")
    page.wait_for_selector(".drawer .lib-cols:has-text('question'):has-text('answer')")
    page.wait_for_selector(".drawer :text('rl: no column')")
    assert "40+40?" in page.inner_text(".drawer") or "0+0?" in page.inner_text(".drawer")
    story.step("uploads_data")


def test_uploads_a_reward(story):
    page = story.after("uploads_data")
    page.click(".rail a:has-text('Files')")
    for folder in ("users/alice", "code"):
        page.click(f".vrow a:has-text('{folder}')")
    page.set_input_files("input[type=file]", own_file("reward.py", REWARD.encode()))
    page.click(".vrow a:has-text('reward.py')")
    page.wait_for_selector(".preview-text:has-text('def compute_score')")
    story.step("uploads_a_reward")


def test_prepares_the_data(story):
    page = story.after("uploads_a_reward")
    page.click(".rail a:has-text('Data')")
    page.click(".vrow a:has-text('sums@1')")
    page.click(".drawer button:has-text('Prepare')")
    assert "argus data prepare sums@1 --with gsm8k --as sums-verl" in page.inner_text("[role=dialog] footer")
    page.click("[role=dialog] .btn.main")
    page.click(".drawer .drawer-close")
    page.wait_for_selector(".vrow:has-text('sums-verl@1') :text('Ready')")
    page.wait_for_selector(".vrow:has-text('sums-verl@1') .flag.ok:has-text('rl')")
    page.click(".vrow a:has-text('sums-verl@1')")
    page.wait_for_selector(".drawer .lib-cols:has-text('reward_model')")
    story.step("prepares_the_data")


def test_picks_model_preset_and_data(story):
    page = story.after("prepares_the_data")
    page.click(".drawer >> text=New job with it")
    page.wait_for_selector("label:has-text('Preset') option:has-text('tiny-grpo')", state="attached")
    page.select_option("label:has-text('Preset') select", "tiny-grpo")
    wait_for(lambda: page.input_value("[name=train_file]") == "sums-verl@1", "the data stays what it was")
    fill(page, "val_file", "sums-verl@1")
    models = page.locator("#f-model_id-list option").evaluate_all("all => all.map((o) => o.value)")
    fill(page, "model_id", next(m for m in models if m.startswith("tiny")))
    rewards = page.locator("#f-reward_fn_path-list option").evaluate_all("all => all.map((o) => o.value)")
    fill(page, "reward_fn_path", next(r for r in rewards if "reward.py" in r))
    fill(page, "name", "sums with a tiny model")
    story.step("picks_model_preset_and_data")


def test_sees_fit_and_start(story):
    page, stage = story.after("picks_model_preset_and_data"), story.stage
    page.wait_for_selector("label:has([name=train_file]) .say.ok:has-text('48 rows · fits grpo')")
    page.wait_for_selector(".stackfigs:has-text('at once')")
    page.wait_for_selector(".okays")
    wait = f"while [ ! -e {stage.root}/common/others_go ]; do sleep 0.2; done"
    others = stage.submit(wait, token="admin", name="all GPUs", nnodes=2, n_gpus_per_node=4)
    stage.wait_state(others, "RUNNING")
    fill(page, "name", "sums, tiny")  # each change asks again
    page.wait_for_selector(".plan-why")
    assert "at once" not in page.inner_text(".stackfigs")
    story.step("sees_fit_and_start")


def test_submits(story):
    page = story.after("sees_fit_and_start")
    page.click(".plan-acts .btn.main:not([disabled])")
    page.wait_for_url("**/jobs/*")
    story.jobs.append(page.url.rsplit("/", 1)[1])
    page.wait_for_selector(".job-head .st:has-text('Queued')")
    story.step("submits")


def test_sees_why_it_waits(story):
    page, stage, job = story.after("submits"), story.stage, story.jobs[0]
    page.click(".rail a:has-text('Queue')")
    page.click("a.gr:has-text('sums, tiny')")
    page.wait_for_selector(".drawer .why-text:not(:empty)")
    said = page.locator(".drawer .why-text")
    wait_for(lambda: said.text_content() == stage.get(f"/v1/jobs/{job}/why")["text"], "the reason is argusd's")
    story.step("sees_why_it_waits")
    (stage.root / "common/others_go").touch()
    page.wait_for_selector(".drawer .st:has-text('Running')")


def test_watches_curves_and_log(story):
    page, stage, job = story.after("sees_why_it_waits"), story.stage, story.jobs[0]
    page.click(".drawer a.link.mono")
    page.wait_for_selector(".job-head .st:has-text('Running')")
    page.wait_for_selector("#log li:has-text('step:1 - ')")
    page.wait_for_selector(".charts canvas")
    page.wait_for_selector(f"#log li:has-text('step:{SAVES} - ')")
    page.wait_for_selector("#checkpoints .st:has-text('Verified')")
    page.wait_for_selector(f".figs .fig:has-text('of {STEPS}')")
    assert stage.job(job)["attempt"] == 1
    story.step("watches_curves_and_log")


def test_reads_the_finding(story):
    page, stage = story.after("watches_curves_and_log"), story.stage
    stage.kill_a_rank()
    (stage.root / "common/go").touch()
    page.wait_for_selector(".job-head .st:has-text('Failed')")
    page.wait_for_selector("#finding code:has-text('actor_died')")
    page.wait_for_selector("#finding .advice")
    assert page.inner_text("#finding .quote >> nth=0")
    page.click("#finding .quote + p button.link")
    page.wait_for_selector("#log li.here")
    assert "restart.max" in page.inner_text("#finding .patch")
    story.step("reads_the_finding")


def test_applies_the_fix_from_the_checkpoint(story):
    page, stage, job = story.after("reads_the_finding"), story.stage, story.jobs[0]
    page.click("#finding .btn.main")
    dialog = page.wait_for_selector("[role=dialog]")
    page.wait_for_selector(f"[role=dialog] select:has-text('at step {SAVES}')")
    assert f"argus retry {job} --apply-fix --from {SAVES}" in dialog.inner_text()
    assert "restart.max" in dialog.inner_text()
    page.click("[role=dialog] .btn.main")
    page.wait_for_url(lambda url: "/jobs/" in url and job not in url)
    story.jobs.append(page.url.rsplit("/", 1)[1])
    page.wait_for_selector(f".job-sub a:has-text('{job}')")
    page.wait_for_selector(f"#log li:has-text('step:{STEPS} - ')")
    page.wait_for_selector(".job-head .st:has-text('Succeeded')")
    page.wait_for_selector(f"#checkpoints td:text-is('{STEPS}')")
    again = stage.keep_job(story.jobs[1])
    stage.keep_job(job)
    assert (again["retry_of"], again["resolved_spec"]["restart"]["max"]) == (job, 1)
    assert sorted(set(stage.steps(again["id"]))) == list(range(SAVES + 1, STEPS + 1)), "from the checkpoint on"
    story.step("applies_the_fix_from_the_checkpoint")


def test_compares_both(story):
    page, jobs = story.after("applies_the_fix_from_the_checkpoint"), story.jobs
    page.click(".job-sub a:has-text('Compare')")
    page.wait_for_selector(".charts canvas")
    outcome = page.locator("table").first.inner_text()
    assert "actor_died" in outcome and "Succeeded" in outcome and all(job in page.url for job in jobs)
    assert "restart" in page.inner_text(".difftbl")
    story.step("compares_both")


def test_publishes_the_model(story):
    page, stage, job = story.after("compares_both"), story.stage, story.jobs[1]
    page.click(".rail a:has-text('Jobs')")
    page.click(f".vrow a.name[href='/jobs/{job}']")
    page.click(f"#checkpoints tr:has(td.strong:text-is('{STEPS}')) a.link:has-text('Merge')")
    page.wait_for_selector(f".cm-line:has-text('{job}/checkpoints/global_step_{STEPS}/actor')")
    page.click(".plan-acts .btn.main:not([disabled])")
    page.wait_for_url("**/jobs/merge-*")
    merge = page.url.rsplit("/", 1)[1]
    stage.wait_state(merge, "SUCCEEDED")
    page.click(".job-head button:has-text('Publish')")
    page.fill("[role=dialog] input >> nth=0", "sums-model")
    assert f"{merge}/output/model --name sums-model" in page.inner_text("[role=dialog] footer")
    page.click("[role=dialog] .btn.main")
    page.wait_for_url(re.compile("/models/sums-model(@|%40)1$"))
    page.wait_for_selector(".drawer header :text('Ready')")
    for of in (job, merge):
        page.wait_for_selector(f".drawer .lineage a[href='/jobs/{of}']")
    lineage = page.inner_text(".drawer .lineage")
    assert all(name in lineage for name in ("sums-verl@1", "tiny@1", "sums-model@1")), lineage
    model = stage.keep("sums-model.json", stage.get("/v1/models/sums-model", token="user"))
    assert model["state"] == "ready" and (model["lineage"]["job"], model["lineage"]["step"]) == (job, STEPS)
    stage.keep_job(merge)
    story.step("publishes_the_model")


def test_each_step_of_the_page_is_a_test(stage, story):
    text = (staging.ROOT / "docs/acceptance/web.md").read_text()
    assert re.findall(r"(?m)^\d+\. \*\*(\w+)\.\*\*", text) == story.done
    assert stage.document("web").never_run() == []
