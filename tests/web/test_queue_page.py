# SPDX-License-Identifier: Apache-2.0
"""A job that waits, in a browser: each node that was looked at, what has to end, and what if it asked otherwise."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from webbed import CHROMIUM, World

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("queue"), full=False) as w:
        script, keys = w.holds()
        w.submit("wide", script, name="half of each node", nnodes=4, n_gpus_per_node=4, timeout="5h", **keys)
        w.argusd.wait_state(w.jobs["wide"], "RUNNING")
        yield w
        w.gate.write_text("")


def test_a_waiting_job_is_changed_in_place(browser, world):
    script, keys = world.holds()
    job = world.submit("waits", script, name="a whole node", n_gpus_per_node=8, **keys)
    page = browser.open(f"/queue?why={job}", ".drawer .looks li")
    looks = page.locator(".drawer .looks li")
    assert looks.count() == 4, "each node of the pool"
    assert "4 of 8 GPUs are free" in page.inner_text(".drawer .looks")
    assert world.jobs["wide"] in page.inner_text(".drawer"), "what has to end before"
    page.wait_for_selector(".drawer .patch.hint:has-text('n_gpus_per_node: 4')")
    page.click("text=What would come of it?")
    page.wait_for_selector("#whatif :text('at once')")
    assert f"argus change --nnodes 2 --gpus 4 {job}" in page.inner_text("#whatif .cli")
    page.fill("#whatif label:has-text('Nodes') input", "9")
    page.wait_for_selector("#whatif .btn.main[disabled], #whatif p.said")
    assert world.argusd.job(job)["state"] == "QUEUED", "nothing of it was done"
    page.fill("#whatif label:has-text('Nodes') input", "2")
    page.wait_for_selector("#whatif :text('at once')")
    page.click("#whatif .btn.main:not([disabled])")
    until(lambda: world.argusd.job(job)["state"] == "RUNNING", "it starts on what is free")
    assert (world.argusd.job(job)["nnodes"], world.argusd.job(job)["gpus"]) == (2, 8)
    assert page.wrong == []
    page.context.close()
    world.argusd.stop_job(job)


def test_a_hint_has_its_button(browser, world):
    script, keys = world.holds()
    job = world.submit("hinted", script, name="a whole node again", n_gpus_per_node=8, **keys)
    page = browser.open(f"/queue?why={job}", ".drawer .patch.hint", lang="zh")
    assert "空闲 4 块" in page.inner_text(".drawer .looks")
    page.click("text=按此更改")
    until(lambda: world.argusd.job(job)["state"] == "RUNNING", "it starts so")
    (event,) = (e for e in world.argusd.events(job) if e["kind"] == "change")
    assert event["actor"] == "alice"
    page.context.close()
    world.argusd.stop_job(job)


def test_a_line_longer_than_a_page_begins_at_its_begin(browser, world):
    """What waits longest and what priority puts before it, and how many are not shown; what runs is all there."""
    (row,) = (r for r in world.argusd.get("/v1/jobs?all=1&state=RUNNING")["jobs"] if r["id"] == world.jobs["wide"])

    def waits(name, position, priority=50):
        more = {"id": name, "name": name, "state": "QUEUED", "position": position, "priority": priority}
        return {**row, **more, "started_at": None, "flags": []}

    def answer(route):
        asked = {k: v[0] for k, v in parse_qs(urlsplit(route.request.url).query).items()}
        if asked.get("state") != "QUEUED":
            return route.continue_()
        if "count" in asked:
            return route.fulfill(json={"jobs": [], "next_cursor": "j1", "total": 12345, "states": {}})
        first = {"sort": asked.get("sort"), "order": asked.get("order")}
        if first == {"sort": "priority", "order": None}:
            return route.fulfill(json={"jobs": [waits("urgent", 1, 90), waits("newest", 900)], "next_cursor": "d13-1"})
        assert first == {"sort": "queued_at", "order": "asc"}
        return route.fulfill(json={"jobs": [waits("oldest", 2), waits("older", 3)], "next_cursor": "u00-1"})

    page = browser.page()
    page.route(re.compile(r"/v1/jobs\?"), answer)
    page.goto(f"{world.argusd.url}/queue")
    page.wait_for_selector(".cut-says:has-text('The first 3 of 12,345 are shown.')")
    names = page.locator(".glist").first.locator(".gr.two .name").all_inner_texts()
    assert names == ["urgent", "oldest", "older"]
    page.wait_for_selector(".glist:has-text('Starting and running') .gr.two:has-text('half of each node')")
    page.goto(f"{world.argusd.url}/")
    page.wait_for_selector(".panel:has-text('12,345 waiting') .qrow:has-text('urgent')")
    page.goto(f"{world.argusd.url}/usage")
    page.wait_for_selector(".lead-lines:has-text('12,345 jobs wait; the 2 that wait longest')")
    assert page.wrong == []
    page.context.close()


def test_the_first_page_forgets_no_long_training(browser, world):
    """What hangs, what failed and one's own that run are asked for as such, not among the newest of everybody."""
    (row,) = (r for r in world.argusd.get("/v1/jobs?all=1&state=RUNNING")["jobs"] if r["id"] == world.jobs["wide"])
    old = {**row, "id": "old", "name": "trains since May", "queued_at": "2026-05-01T00:00:00Z"}

    def answer(route):
        asked = {k: v[0] for k, v in parse_qs(urlsplit(route.request.url).query).items()}
        assert "since" not in asked, asked
        hangs = asked.get("flag") == "UNKNOWN,HUNG" and asked["state"] == "live" and asked["all"] == "true"
        own = asked["all"] == "false" and asked.get("state") == "live"
        jobs = [{**old, "flags": ["HUNG"]}] if hangs else [old] if own else []
        route.fulfill(json={"jobs": jobs, "next_cursor": None})

    page = browser.page()
    page.route(re.compile(r"/v1/jobs\?"), answer)
    page.goto(f"{world.argusd.url}/")
    page.wait_for_selector(".needs li:has-text('trains since May')")
    page.wait_for_selector(".jrow:has-text('trains since May')")
    assert page.wrong == []
    page.context.close()
