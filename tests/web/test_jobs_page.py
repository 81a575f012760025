# SPDX-License-Identifier: Apache-2.0
"""What is done to several chosen jobs: each is named with what will be done or why not, and tells what came of it."""

import json
import shutil

import broken
import pytest
from checkpoints import TRACKER, put_checkpoint
from webbed import CHROMIUM, World

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]
TRAIN = {
    "workload": "grpo",
    "n_gpus_per_node": 4,
    "pool": "nowhere",  # it waits, until it is stopped
    "model_id": "${SHARED_ROOT}/common/models/tiny",
    "train_file": "${SHARED_ROOT}/common/datasets/train.parquet",
    "val_file": "${SHARED_ROOT}/common/datasets/val.parquet",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("jobs"), full=False) as w:
        broken.make_world(w.argusd.root)
        script, keys = w.holds()
        w.submit("live", script, name="still live", n_gpus_per_node=1, **keys)
        w.submit("failed", "exit 1", name="ended badly", n_gpus_per_node=1)
        w.submit("done", "true", name="ended well", n_gpus_per_node=1)
        for what in ("failed", "done"):
            w.argusd.wait_over(w.jobs[what])
        gone = w.argusd.root / "common/models/gone"
        broken.make_model(gone)
        w.jobs["lost"] = trained(w, name="lost its model", model_id="${SHARED_ROOT}/common/models/gone")
        shutil.rmtree(gone)
        yield w
        w.gate.write_text("")


def trained(world, **keys):
    """A training that has ended."""
    reply = world.argusd.call("POST", "/v1/jobs?no_trial=1", {**TRAIN, **keys}, token="user")
    assert reply.status == 201, reply
    world.argusd.stop_job(reply.json()["id"])
    return reply.json()["id"]


def choose(page, *names):
    for name in names:
        page.locator(".vrow", has_text=name).locator("input[type=checkbox]").check()


def known(page, job, step):
    """A checkpoint that the catalogue has: a trainer that ran would have made it known."""
    one = {"step": step, "state": "complete", "verified": False, "bytes": 4000, "at": "2026-11-26T08:00:00Z"}
    body = json.dumps({"id": job, "bytes": 4000, "checkpoints": [{**one, "attempt": 1, "value": None, "why": None}]})
    page.route(f"**/v1/jobs/{job}/checkpoints", lambda r: r.fulfill(body=body, content_type="application/json"))


def row(page, name):
    return page.locator("[role=dialog] .many li", has_text=name)


def test_several_are_retried(browser, world):
    page = browser.open("/jobs", ".vrow:has-text('still live')")
    choose(page, "still live")
    assert page.locator(".pickbar .btn:has-text('Retry')").is_disabled(), "none of them has ended"
    choose(page, "ended badly", "ended well", "lost its model")
    page.click(".pickbar .btn:has-text('Retry')")
    dialog = page.locator("[role=dialog]")
    page.wait_for_selector("[role=dialog] .btn.main:has-text('Retry 2 jobs')")
    assert "1 of the chosen jobs have not ended" in dialog.inner_text() and row(page, "still live").count() == 0
    for name in ("ended badly", "ended well"):
        assert "Begins anew" in row(page, name).inner_text()
    whyNot = row(page, "lost its model").inner_text()
    assert "Begins anew" not in whyNot and "models/gone" in whyNot, whyNot
    line = page.inner_text("[role=dialog] footer .cli")
    assert world.jobs["failed"] in line and world.jobs["done"] in line and world.jobs["lost"] not in line, line
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector("[role=dialog] .btn:has-text('Close')")
    for what, name in (("failed", "ended badly"), ("done", "ended well")):
        made = row(page, name).locator("a").get_attribute("href").split("/")[-1]
        assert world.argusd.job(made)["retry_of"] == world.jobs[what]
        world.argusd.wait_over(made)
    assert page.locator("[role=dialog] .btn.main").count() == 0, "it is done, and is not done again"
    page.click("[role=dialog] .btn:has-text('Close')")
    assert "2 chosen" in page.locator(".pickbar").inner_text(), "what was not done is still chosen"
    assert [w for w in page.wrong if "422" not in w] == [], "the browser itself tells of what was refused"
    page.context.close()


def test_where_a_retry_goes_on(browser, world):
    a = world.argusd
    old = trained(world, name="trained to 40")
    put_checkpoint(a.job_dir(old) / "checkpoints", 40)
    (a.job_dir(old) / "checkpoints" / TRACKER).write_text("40")
    page = browser.open("/jobs?q=trained", ".vrow")
    known(page, old, 40)
    choose(page, "trained to 40")
    page.click(".pickbar .btn:has-text('Retry')")
    page.wait_for_selector("[role=dialog] .many :text('Goes on from step 40')")
    assert f"argus retry --from latest {old}" in page.inner_text("[role=dialog] footer .cli")
    page.uncheck("[role=dialog] .tick input")
    page.wait_for_selector("[role=dialog] .many :text('Begins anew')")
    page.check("[role=dialog] .tick input")
    page.wait_for_selector("[role=dialog] .many :text('Goes on from step 40')")
    page.click("[role=dialog] .btn.main")
    made = page.locator("[role=dialog] .many a").get_attribute("href").split("/")[-1]
    assert f"{old}@40" in a.job(made)["spec"]
    a.stop_job(made)
    page.context.close()


def test_several_are_archived(browser, world):
    a = world.argusd
    jobs = [world.jobs["failed"], world.jobs["done"]]
    page = browser.open("/jobs", ".vrow:has-text('ended well')", token="admin")
    known(page, jobs[1], 10)
    for job in jobs:
        page.locator(f".vrow:has(a[href='/jobs/{job}']) input[type=checkbox]").check()
    page.click(".pickbar .btn:has-text('Archive')")
    page.wait_for_selector("[role=dialog] .btn.main:has-text('Archive 2 jobs')")
    assert "No checkpoints" in row(page, "ended badly").inner_text()
    assert "1 checkpoint, " in row(page, "ended well").inner_text()
    page.check("[role=dialog] .tick input")
    page.wait_for_selector("[role=dialog] .many .c-bad:has-text('is removed')")
    assert "argus archive --no-checkpoints" in page.inner_text("[role=dialog] footer .cli")
    page.uncheck("[role=dialog] .tick input")
    page.click("[role=dialog] .btn.main")
    for name in ("ended badly", "ended well"):
        row(page, name).locator(".c-ok:has-text('Archived')").wait_for()
    assert all(a.job(job)["archived"]["state"] == "archived" for job in jobs)
    page.click("[role=dialog] .btn:has-text('Close')")
    page.wait_for_selector(".pickbar", state="detached")
    page.locator(f".vrow:has(a[href='/jobs/{jobs[1]}']) input[type=checkbox]").check()
    page.click(".pickbar .btn:has-text('Archive')")
    page.wait_for_selector("[role=dialog] .missing:has-text('None of them can be')")
    assert "Is archived already" in row(page, "ended well").inner_text()
    page.context.close()


def test_a_row_is_a_line(browser, world):
    """The cells of the head and of each row stand beside one another, at every width that has rows."""
    page = browser.open("/jobs", ".vrow")
    below = """() => [...document.querySelectorAll('.vhead, .vrow')].filter((r) => [...r.children].some((c) =>
        c.getBoundingClientRect().top >= r.getBoundingClientRect().bottom)).length"""
    for width in (1280, 900):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_selector(".vrow")
        assert page.evaluate(below) == 0
    page.context.close()


def test_what_is_listed_is_the_address(browser, world):
    """Order, states and flags are the server's, and the command line prints the same list."""
    page = browser.open("/jobs?mine=0&q=ended", ".vrow")
    names = lambda: [n.strip() for n in page.locator(".vrow .name").all_inner_texts()]  # noqa: E731
    page.click(".vhead button:has-text('Job')")
    page.wait_for_url("**sort=name**")
    until(lambda: names() and names() == sorted(names(), key=str.lower), "in order of names")
    page.click(".vhead button:has-text('Job')")
    page.wait_for_url("**sort=-name**")
    until(lambda: names() and names() == sorted(names(), key=str.lower, reverse=True), "and the other way")
    assert "--sort name" in page.inner_text(".head .cli")
    total = page.inner_text(".head").split(" jobs")[0].split()[-1]
    assert int(total) == len(names())
    page.click(".facet:has-text('Failed')")
    page.wait_for_url("**state=FAILED**")
    until(lambda: (n := names()) and all("ended badly" in name for name in n), "only what failed")
    page.wait_for_selector(".facet[aria-pressed=true]:has-text('Failed')")
    assert page.locator(".facet[aria-pressed=true]").count() == 1
    assert page.locator(".facet:has-text('Succeeded') b").inner_text() != "0", "counts are of all states"
    page.click("summary:has-text('Filter')")
    page.check(".filter-body fieldset input >> nth=0")
    page.wait_for_url("**flag=HUNG**")
    page.wait_for_selector("text=Nothing matches")
    assert page.wrong == []
    page.context.close()


def test_a_long_list_has_pages(browser, world):
    page = browser.page()
    rows = world.argusd.get("/v1/jobs?all=1&limit=1")["jobs"]

    def answer(route):
        is_next = "cursor=" in route.request.url
        body = {"jobs": [{**rows[0], "name": "second page" if is_next else "first page"}],
                "next_cursor": None if is_next else "j7", "total": 1001, "states": {"STOPPED": 1001}}  # fmt: skip
        route.fulfill(body=json.dumps(body), content_type="application/json")

    page.route("**/v1/jobs?*", answer)
    page.goto(world.argusd.url + "/jobs")
    page.wait_for_selector(".vrow:has-text('first page')")
    page.wait_for_selector(".head:has-text('1 of 1,001 jobs')")
    page.click(".listfoot a")
    page.wait_for_url("**after=j7**")
    page.wait_for_selector(".vrow:has-text('second page')")
    page.click(".listfoot a:has-text('To the first')")
    page.wait_for_selector(".vrow:has-text('first page')")
    page.context.close()


def test_a_link_logs_a_browser_in_once(browser, world):
    path = world.argusd.call("POST", "/v1/session:link", {}, token="user").json()["path"]
    page = browser.page(token=None)
    page.goto(world.argusd.url + path)
    page.wait_for_selector(".login .btn.main")
    assert "#" not in page.url, "it does not stay in the history"
    page.reload()  # nothing was used up by looking
    page.goto("about:blank")
    page.goto(world.argusd.url + path)
    page.click(".login .btn.main")
    page.wait_for_selector("main h1")
    other = browser.page(token=None)
    other.goto(world.argusd.url + path)
    other.click(".login .btn.main")
    other.wait_for_selector(".login [role=alert]:has-text('was used')")
    other.click("text=Log in with a token instead")
    other.wait_for_selector(".login input[type=password]")
    page.context.close()
    other.context.close()
