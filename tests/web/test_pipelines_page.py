# SPDX-License-Identifier: Apache-2.0
"""Pipelines in a browser: stored, run with parameters, looked at step by step, run again, cancelled, scheduled."""

import pytest
from webbed import CHROMIUM, World

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]
TEXT = """\
name: flow
description: says a word and looks at it
params:
  word: {required: true, description: what is said}
  times: {type: integer, default: 2}
  loud: {type: boolean, default: false}
steps:
  say:
    with: {workload: ray, entrypoint: ["echo", "${{ params.word }}"]}
  many:
    matrix: {x: [1, 2, 3]}
    with: {workload: ray, entrypoint: ["echo", "${{ matrix.x }}"]}
  good:
    uses: check
    needs: [many]
    with: {that: "${{ params.times >= 2 && steps.say.state == 'SUCCEEDED' }}", else: too few}
  shout:
    needs: [good]
    if: params.loud
    with: {workload: ray, entrypoint: ["cat", "${{ steps.say.dir }}/meta.json"]}
"""
HELD = """\
name: held
steps:
  a: {with: {workload: ray, entrypoint: "while [ ! -e GATE ]; do sleep 0.1; done"}}
  b: {needs: [a], with: {workload: ray, entrypoint: "true"}}
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("pipes"), full=False) as w:
        yield w
        w.gate.write_text("")


def run_of(world, page):
    return world.argusd.get(f"/v1/pipeline-runs/{page.url.split('/')[-1].split('?')[0]}", token="user")


def over(page, word):
    page.wait_for_selector(f".pipe-head .st:has-text('{word}')")


def test_a_pipeline_is_stored_run_and_run_again(browser, world):
    page = browser.open("/pipelines", "main .blank:has-text('No pipelines yet')")
    page.click(".head button:has-text('Store a pipeline')")
    editor = page.locator("[role=dialog] .cm-content")
    editor.fill(TEXT.replace("needs: [good]", "needs: [god]"))
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector("[role=dialog] .pipe-problems:has-text(\"did you mean 'good'\")")
    editor.fill(TEXT)
    page.click("[role=dialog] .btn.main")
    page.wait_for_url("**/pipelines/flow*user=alice")
    page.wait_for_selector(".pipe-problems:has-text('word')")
    assert page.locator(".pipe-go .btn.main").is_disabled(), "what is needed is missing"
    page.fill("label:has-text('word') input", "hello")
    page.wait_for_selector("text=5 of 6 steps would run")
    assert "p.word=hello" in page.url and "argus pipe run flow -p word=hello" in page.inner_text(".pipe-go")
    page.wait_for_selector(".pipe-box.t-quiet:has-text('shout')")
    page.click(".pipe-go .btn.main")
    page.wait_for_url("**/pipelines/flow/flow-*")
    over(page, "Succeeded")
    assert page.locator(".pipe-box").count() == 4 and page.locator(".pipe-dots i").count() == 3
    first = run_of(world, page)
    # Each step tells what it read, what it left and why it is where it is.
    page.click(".pipe-box:has-text('good')")
    drawer = page.wait_for_selector(".drawer:has-text('params.times')")
    assert "steps.say.state" in drawer.inner_text() and "step=good" in page.url
    page.click(".pipe-box:has-text('shout')")
    page.wait_for_selector(".drawer:has-text('params.loud'):has-text('false')")
    page.click(".pipe-box:has-text('many')")
    page.click(".drawer a:has-text('many-2')")
    job = next(s["job"] for s in first["steps"] if s["name"] == "many-2")
    page.wait_for_selector(f".drawer a[href='/jobs/{job}']")
    page.keyboard.press("Escape")
    # The same again runs nothing again; another word runs what reads it.
    page.click("text=With other parameters")
    page.wait_for_selector("text=Nothing would run again")
    page.fill("label:has-text('word') input", "other")
    page.wait_for_selector("text=2 of 6 steps would run")
    assert '"other"' in page.inner_text(".pipe-why .patch") and first["id"] in page.inner_text(".pipe-why")
    page.click(".pipe-go .btn.main")
    page.wait_for_url("**/pipelines/flow/flow-*")
    over(page, "Succeeded")
    page.wait_for_selector(f".pipe-box:has-text('say'), .pipe-box:has-text('{first['id']}')")
    assert page.locator(f"tr.is-current:has-text('{run_of(world, page)['id']}')").count() == 1
    page.keyboard.press("[")
    page.wait_for_url(f"**/{first['id']}")
    page.keyboard.press("]")
    page.wait_for_url("**/flow-*")
    assert {w for w in page.wrong if "422" not in w and "inline style" not in w} == set()  # of the editor's typing
    page.context.close()


def test_an_address_that_is_handed_on(browser, world):
    """It says whose pipeline it is; one that does not finds the only one, and asks where there are two."""
    a = world.argusd
    text = (
        "name: {0}\nparams: {{n: {{type: integer, default: 2}}}}\n"
        "steps: {{a: {{with: {{workload: ray, entrypoint: 'true'}}}}}}\n"
    )
    for name, token in (("hers", "user"), ("both", "user"), ("both", "admin")):
        assert a.call("PUT", f"/v1/pipelines/{name}", text.format(name), token=token).status == 201
    for _ in range(2):
        assert a.call("POST", "/v1/pipelines/both:run", {}, token="admin").status == 201
    run = a.call("POST", "/v1/pipelines/both:run", {}, token="user").json()["id"]
    page = browser.open("/pipelines", "main .tbl")
    address = page.locator("a.name:has-text('both')").get_attribute("href")
    page.context.close()
    page = browser.open(address, ".head h1:has-text('both')", token="admin")
    page.wait_for_selector(f".pipe-runs .tbl:has-text('{run}')")
    assert page.locator(".pipe-runs tbody tr").count() == 1 and "alice" in page.inner_text(".head")
    page.goto(f"{a.url}/pipelines/both/{run}")
    page.click(".pipe-head a:has-text('both')")
    page.wait_for_url("**/pipelines/both?user=alice")
    page.goto(f"{a.url}/pipelines/hers?p.n=5")
    page.wait_for_selector(".pipe-go:has-text('argus pipe run hers --user alice -p n=5')")
    assert "user=alice" in page.url and "p.n=5" in page.url
    page.click(".head button:has-text('Remove')")
    assert "argus pipe rm hers --user alice" in page.inner_text("[role=dialog] footer")
    page.context.close()
    several = "main .blank:has-text('Several people have a pipeline both')"
    page = browser.open("/pipelines/both?p.n=5", several, token="viewer")
    page.context.close()


def test_a_run_that_failed_is_retried_by_its_plan(browser, world):
    store = world.argusd.call("PUT", "/v1/pipelines/flow", TEXT, token="user")
    assert store.status in (200, 201), store
    page = browser.open("/pipelines/flow?p.word=x&p.times=1", ".pipe-box")
    page.click(".pipe-go .btn.main")
    page.wait_for_url("**/pipelines/flow/flow-*")
    over(page, "Failed")
    page.wait_for_selector(".pipe-box.t-bad:has-text('too few')")
    page.click(".head .btn:has-text('Retry')")
    page.wait_for_selector("[role=dialog] .pipe-box:has-text('Stays')")
    page.wait_for_selector("[role=dialog] .pipe-box:has-text('Would fail')")
    page.check("[role=dialog] .tick input")
    assert "--force" in page.inner_text("[role=dialog] footer")
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector("[role=dialog]", state="detached")
    over(page, "Failed")
    page.click(".pipe-box:has-text('say')")
    page.click(".drawer footer .btn")
    page.wait_for_selector("[role=dialog]:has-text('argus pipe retry')")
    assert "--from say" in page.inner_text("[role=dialog] footer")
    # With another value of a parameter the plan is another one, and a wrong one is refused there.
    page.wait_for_selector("[role=dialog] .pipe-box:has-text('Decided later')")
    page.fill("[role=dialog] label:has-text('times') input", "many")
    page.wait_for_selector("[role=dialog] .note.bad:has-text('times')")
    page.fill("[role=dialog] label:has-text('times') input", "2")
    page.wait_for_selector("[role=dialog] .note.bad", state="detached")
    page.wait_for_selector("[role=dialog] footer:has-text('--set times=2')")
    page.context.close()


def test_a_run_is_cancelled_and_its_graph_is_live(browser, world):
    text = HELD.replace("GATE", str(world.gate))
    assert world.argusd.call("PUT", "/v1/pipelines/held", text, token="user").status == 201
    run = world.argusd.call("POST", "/v1/pipelines/held:run", {}, token="user").json()["id"]
    page = browser.open(f"/pipelines/held/{run}", ".pipe-box.t-run")
    page.click(".head .btn:has-text('Cancel')")
    assert "1 job of it is stopped" in page.inner_text("[role=dialog]")
    page.click("[role=dialog] .btn.main")
    over(page, "Cancelled")
    page.context.close()
    page = browser.open(f"/pipelines/held/{run}", ".pipe-box", token="viewer")
    assert page.locator(".head .btn").count() == 0, "who may not is offered nothing"
    page.goto(f"{world.argusd.url}/pipelines/held/held-999")
    page.wait_for_selector("main .blank:has-text('No such run')")
    page.context.close()


def test_a_schedule_is_set_and_ended(browser, world):
    text = HELD.replace("GATE", "/").replace("name: held", "name: nightly")
    assert world.argusd.call("PUT", "/v1/pipelines/nightly", text, token="user").status == 201
    page = browser.open("/pipelines/nightly", ".pipe-box")
    page.click("text=Set the schedule")
    page.fill("[role=dialog] input >> nth=0", "30 2 * * *")
    page.fill("[role=dialog] input >> nth=1", "Asia/Shanghai")
    assert "--cron '30 2 * * *' --zone Asia/Shanghai" in page.inner_text("[role=dialog] footer")
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector(".pipe-times li")
    times = page.locator(".pipe-times li").all_inner_texts()
    assert len(times) == 5 and all(x.endswith("02:30") for x in times), times
    page.click("text=End the schedule")
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector(".pipe-times", state="detached")
    page.click(".head .btn:has-text('Remove')")
    page.click("[role=dialog] .btn.main")
    page.wait_for_url("**/pipelines")
    until(lambda: world.argusd.call("GET", "/v1/pipelines/nightly", token="user").status == 404, "it is gone")
    page.context.close()
