# SPDX-License-Identifier: Apache-2.0
"""The buttons between a spec and a model, each pressed: a trial on a worker, a checkpoint's merge, its publish."""

import json
import re

import broken
import pytest
import standin
from trials import FAIL, PASS, PYTHON
from webbed import CHROMIUM, World

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]
# In the place of verl's: what it leaves is a model.
MERGER = """
import pathlib, sys
sys.path.insert(0, {lib!r})
import broken
broken.make_model(pathlib.Path(sys.argv[sys.argv.index("--target_dir") + 1]))
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("model"), full=False) as w:
        standin.make_world(w.argusd.root)
        code = w.argusd.root / "common/code/standin/verl/model_merger.py"
        broken.put(code, MERGER.format(lib=str(broken.__file__).rpartition("/")[0]))
        broken.put(w.argusd.root / "common/fake/python", PYTHON)
        (w.argusd.root / "common/fake/python").chmod(0o755)
        yield w


def answer(world, what):
    place = world.argusd.root / "common/fake"
    (place / ".answer").write_text(json.dumps(what))
    (place / ".answer").rename(place / "answer")


def test_a_trial_is_run_and_says_what_it_found(browser, world):
    page = browser.open("/submit", ".cm-content")
    spec = {**standin.SPEC, "runtime_env": {"py_executable": "${SHARED_ROOT}/common/fake/python"}}
    text = json.dumps(spec)
    page.locator(".cm-content").fill(text)
    page.wait_for_selector(".plan-section button:has-text('Try it')")
    answer(world, FAIL)
    page.click("text=Try it")
    page.wait_for_selector(".checks:has-text('KeyError'):has-text('reward_fn_path')")
    page.locator(".cm-content").fill(text.replace('"grpo"', '"ppo"'))
    page.wait_for_selector("text=The spec has changed since")
    answer(world, PASS)
    page.click("text=Try it")
    page.wait_for_selector(".checks:has-text('The trial found nothing wrong')")
    page.context.close()


def test_a_checkpoint_is_merged_and_the_model_published(browser, world):
    training = standin.Training(world.argusd)
    training.save(10)
    training.order("exit", 0)
    world.argusd.wait_over(training.id)
    page = browser.open(f"/jobs/{training.id}", "#checkpoints a.link")
    page.click("#checkpoints a.link:has-text('Merge')")
    page.wait_for_selector(".cm-line:has-text('global_step_10/actor')")
    page.wait_for_selector(".plan-acts .btn.main:not([disabled])")
    page.click(".plan-acts .btn.main")
    page.wait_for_url("**/jobs/merge-*")
    page.wait_for_selector(".job-head button:has-text('Publish')")
    page.click(".job-head button:has-text('Publish')")
    page.fill("[role=dialog] input", "merged")
    assert "argus model import" in page.inner_text("[role=dialog] footer")
    page.click("[role=dialog] .btn.main")
    page.wait_for_url(re.compile("/models/merged(@|%40)1$"))
    until(lambda: world.argusd.get("/v1/models/merged", token="user")["state"] == "ready", "the model is there")
    page.wait_for_selector(f".lineage a[href='/jobs/{training.id}']")
    assert page.wrong == []
    page.context.close()


def test_a_checkpoint_with_its_value_is_exported(browser, world):
    training = standin.Training(world.argusd)
    with (training.dir / "attempts/1/metrics.jsonl").open("a") as f:
        f.write(json.dumps({"step": 10, "data": {"val/loss": 1.5}}) + "\n")
        f.write(json.dumps({"step": 20, "data": {"val/loss": 2.5}}) + "\n")
    training.save(10, 20)
    until(lambda: [c["value"] for c in training.listed()] == [1.5, 2.5], "what validation told is there")
    training.order("exit", 0)
    world.argusd.wait_over(training.id)
    page = browser.open(f"/jobs/{training.id}", "#checkpoints tbody tr:nth-child(2)")
    assert "val/loss" in page.inner_text("#checkpoints thead")
    rows = page.locator("#checkpoints tbody tr").all_inner_texts()
    assert ["2.5" in rows[0], "1.5" in rows[1]] == [True, True] and ["best" in r for r in rows] == [False, True]
    page.click("#checkpoints tbody tr:nth-child(2) button.link:has-text('Export')")
    page.fill("[role=dialog] input", "exported")
    assert f"argus ckpt export {training.id} 10 --hf --name exported" in page.inner_text("[role=dialog] footer")
    page.click("[role=dialog] .btn.main")
    page.wait_for_url("**/jobs/merge-*")
    until(lambda: world.argusd.get("/v1/models/exported", token="user")["state"] == "ready", "the model is there")
    assert page.wrong == []
    page.context.close()


def test_a_checkpoint_is_served(browser, world):
    training = standin.Training(world.argusd)
    training.save(10)
    training.order("exit", 0)
    world.argusd.wait_over(training.id)
    page = browser.open(f"/jobs/{training.id}", "#checkpoints button.link:has-text('Serve')")
    page.click("#checkpoints button.link:has-text('Serve')")
    page.fill("[role=dialog] label:has-text('Name of the service') input", "from-job")
    page.fill("[role=dialog] label:has-text('GPUs of one replica') input", "1")
    line = f"argus serve --job {training.id} --step 10 --name from-job --gpus 1"
    assert line in page.inner_text("[role=dialog] footer")
    page.click("[role=dialog] .btn.main")
    page.wait_for_url("**/services/from-job")
    page.wait_for_selector(".svc-title .st:has-text('Ready')")
    assert world.argusd.get("/v1/services/from-job", token="user")["what"] == f"{training.id}-10@1"
    assert page.wrong == []
    page.context.close()
