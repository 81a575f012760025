# SPDX-License-Identifier: Apache-2.0
"""A list of 10,000 jobs, which the server tells in pages of 1,000: one scrolls over all of them and back, few rows are
in the document, and what was chosen and the address stay."""

import json
import urllib.parse

import pytest
from webbed import CHROMIUM, World

from argusd import needs_argusd

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]
PAGE, ALL = 1000, 10_000


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("scrolled"), full=False) as w:
        w.submit("one", "true", name="one", n_gpus_per_node=1)
        w.argusd.wait_over(w.jobs["one"])
        yield w


@pytest.fixture
def page(browser, world):
    """The list of jobs, told by the test in argusd's place; `asked` has the cursors of the pages, "" the first;
    `ids` the jobs that are real, by their place."""
    page, row = browser.page(), world.argusd.all_jobs()[0]
    page.asked, page.ids = [], {}

    def answer(route):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(route.request.url).query)
        first, limit = int(query.get("cursor", ["0"])[0]), int(query["limit"][0])
        if limit == PAGE:
            page.asked.append(query.get("cursor", [""])[0])
        last = min(ALL, first + limit)
        jobs = [{**row, "id": page.ids.get(i, f"job-{i}"), "name": f"job {i}"} for i in range(first, last)]
        body = {"jobs": jobs, "next_cursor": str(last) if last < ALL else None, "total": ALL, "states": {}}
        route.fulfill(body=json.dumps(body), content_type="application/json")

    page.route("**/v1/jobs?*", answer)
    page.goto(world.argusd.url + "/jobs?sort=name")
    page.wait_for_selector(".vrow")
    page.wait_for_selector(".head:has-text('1,000 of 10,000 jobs')")
    return page


def scroll(page, to):
    page.evaluate(f"(() => {{ const e = document.querySelector('.vlist'); e.scrollTop = {to} }})()")


def test_all_pages_come_while_one_scrolls(page):
    page.locator(".vrow", has_text="job 3").first.locator("input").check()
    address = page.url
    for n in range(2, ALL // PAGE + 1):
        scroll(page, "e.scrollHeight")
        if n < ALL // PAGE:
            page.wait_for_selector(f".head:has-text('{n},000 of 10,000 jobs')")
        else:
            page.wait_for_selector(".listfoot", state="detached")  # there is no other page
        assert page.locator(".vrow").count() < 80
    scroll(page, "e.scrollHeight")
    page.wait_for_selector(".vrow:has-text('job 9999')")
    assert page.url == address and "1 chosen" in page.inner_text(".pickbar")
    assert set(page.asked) == {"", *(str(i) for i in range(PAGE, ALL, PAGE))}
    page.locator(".vrow", has_text="job 9999").locator("input").check()
    scroll(page, "0")
    page.wait_for_selector(".vrow:has-text('job 0')")
    assert page.locator(".vrow", has_text="job 3").first.locator("input").is_checked()
    assert "2 chosen" in page.inner_text(".pickbar")
    assert page.get_attribute("[role=grid]", "aria-rowcount") == str(ALL + 1)
    assert page.wrong == []
    page.context.close()


def test_another_question_begins_at_its_first_page(page):
    scroll(page, "e.scrollHeight")
    page.wait_for_selector(".head:has-text('2,000 of 10,000 jobs')")
    page.click(".vhead button:has-text('Job')")
    page.wait_for_url("**sort=-name**")
    page.wait_for_selector(".head:has-text('1,000 of 10,000 jobs')")
    page.context.close()


def test_a_change_while_another_page_comes_is_shown(page, world):
    script, keys = world.holds()
    job = page.ids[PAGE + 500] = world.submit("held", script, name="held", n_gpus_per_node=1, **keys)
    world.argusd.wait_state(job, "RUNNING")
    scroll(page, "e.scrollHeight")
    page.wait_for_selector(".head:has-text('2,000 of 10,000 jobs')")
    held = []
    page.route(lambda url: f"cursor={2 * PAGE}" in url, lambda route: held.append(route))
    while not held:  # while the page before it is asked for anew, nothing is asked for by scrolling
        scroll(page, "0")
        scroll(page, "e.scrollHeight")
        page.evaluate("new Promise(requestAnimationFrame)")
    assert world.argusd.call("POST", f"/v1/jobs/{job}:stop", token="user").status in (200, 202)
    world.argusd.wait_over(job)
    page.evaluate("new Promise((done) => setTimeout(done, 4000))")  # behind the 1.5 s until it is asked anew
    with page.expect_request(lambda r: f"cursor={PAGE}&" in r.url + "&"):
        held[0].fallback()
    page.wait_for_selector(".head:has-text('3,000 of 10,000 jobs')")
    page.unroute_all(behavior="ignoreErrors")
    page.context.close()


def test_what_lies_behind_has_an_address(page):
    """Without scrolling there is a link, and with it one begins there and scrolls on."""
    page.click(".listfoot a:has-text('Next 1,000')")
    page.wait_for_url("**after=1000**")
    page.wait_for_selector(".vrow:has-text('job 1000')")
    scroll(page, "e.scrollHeight")
    page.wait_for_selector(".head:has-text('2,000 of 10,000 jobs')")
    assert "2000" in page.asked
    page.context.close()


def test_a_list_that_is_slower_than_its_changes_comes(browser, world):
    """A change does not end the answer that is on its way, or a slow list would never be there: it is asked for again
    behind it."""
    beside, page = browser.open("/jobs?mine=0", ".vrow"), browser.page()
    held, failed = [], []
    page.on("requestfailed", lambda r: failed.append(r.url))
    page.route(lambda url: "/v1/jobs?" in url and f"limit={PAGE}" in url, lambda route: held.append(route))
    with page.expect_request(lambda r: "/v1/jobs?" in r.url and f"limit={PAGE}" in r.url):
        page.goto(world.argusd.url + "/jobs?mine=0", wait_until="commit")
    world.submit("two", "true", name="two", n_gpus_per_node=1)
    beside.wait_for_selector(".vrow:has-text('two')")  # so the change was told, to this page too
    page.evaluate("new Promise((done) => setTimeout(done, 400))")  # behind what the page had set for 250 ms
    assert [url for url in failed if "/v1/jobs?" in url] == [] and len(held) == 1
    with page.expect_request(lambda r: "/v1/jobs?" in r.url and f"limit={PAGE}" in r.url):
        held[0].continue_()
    page.wait_for_selector(".vrow:has-text('one')")
    page.unroute_all(behavior="ignoreErrors")
    page.context.close()
    beside.context.close()
