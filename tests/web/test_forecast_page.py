# SPDX-License-Identifier: Apache-2.0
"""What will be needed, on the page Usage: when a pool is full, as the API says it, its band, what more nodes change."""

import re

import pytest
from ledgerdays import write_days
from test_pages import is_sound, turn_to
from webbed import CHROMIUM, World

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]
GPUS = 32
SAYS = "#outlook .outlook-says.strong"


def forecast(world, query=""):
    return world.argusd.get(f"/v1/forecast?{query}", token="viewer")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """0.4 GPUs more are needed each day: 95 % of 32 are reached about a week from now."""
    with World(tmp_path_factory.mktemp("forecast"), full=False) as w:
        w.argusd.stop()
        write_days(w.argusd, "h20", [0.4 * i for i in range(70)], capacity=GPUS)
        w.argusd.start()
        until(lambda: forecast(w)["pools"][0]["capacity_gpus"] == GPUS, "the book has the nodes")
        w.argusd.wait_over(w.argusd.submit("echo a job to play again", n_gpus_per_node=8))
        yield w


def test_when_a_pool_is_full_is_said_above_its_band(browser, world):
    whole = next(p for p in forecast(world)["pools"] if p["pool"] is None)
    assert whole["full_at"], "the world is made so"
    page = browser.open("/usage", "#outlook svg.outlook-band", token="viewer")
    assert f"All nodes: full on {whole['full_at'][5:10]}" in page.inner_text(SAYS)
    curve = page.get_attribute("#outlook svg .curve", "points").split()
    assert len(curve) == len(whole["points"]) == 28
    heights = [float(p.split(",")[1]) for p in curve]
    assert heights == sorted(heights, reverse=True), "more is needed each day"
    assert page.locator("#outlook [aria-label='Week by week'] tbody tr").count() == 4
    assert "of which" in page.inner_text("#outlook .note-row")
    page.click("#outlook .seg button:has-text('8 weeks')")
    page.wait_for_url("**/usage?weeks=8")
    told = next(p for p in forecast(world, "weeks=8")["pools"] if p["pool"] is None)
    page.wait_for_selector(f"#outlook [aria-label='Week by week'] tbody tr:nth-child({told['weeks']})")
    assert page.wrong == []
    page.context.close()


def test_each_pool_has_its_own(browser, world):
    page = browser.open("/usage", "#outlook svg.outlook-band", lang="zh")
    page.click("#outlook .tbl a:has-text('h20')")
    page.wait_for_url(re.compile(r"/usage\?pool=h20"))
    page.wait_for_selector(f"{SAYS}:has-text('h20：目前没有节点')")
    assert page.locator("#outlook .outlook-asks").count() == 0, "nothing can be added to what is not there"
    page.context.close()


def test_what_more_nodes_would_change(browser, world):
    page = browser.open("/usage", "#outlook svg.outlook-band", token="viewer")
    page.fill("#outlook input[name=more]", "2")
    page.press("#outlook input[name=more]", "Enter")
    page.wait_for_url("**/usage?nodes=2")
    sides = page.locator("#outlook [aria-label='As it is, and with other nodes'] tbody tr")
    sides.nth(1).wait_for()
    assert [sides.nth(i).locator("td").first.inner_text() for i in range(2)] == ["4", "6"]
    whole = next(p for p in forecast(world, "nodes=2")["pools"] if p["pool"] is None)
    now, then = whole["what_if"]["now"], whole["what_if"]["then"]
    assert now["full_at"] and not then["full_at"], "two nodes more are enough for four weeks"
    assert now["full_at"][5:10] in sides.nth(0).inner_text()
    assert "–" in sides.nth(1).inner_text()
    assert "argus forecast --nodes 2" in page.inner_text("#outlook .cli")
    assert f"The {whole['what_if']['jobs']} job" in page.inner_text("#outlook")
    with page.expect_request(lambda r: "/v1/forecast?" in r.url and "nodes=2" in r.url and "weeks=8" in r.url):
        page.goto(f"{world.argusd.url}/usage?nodes=2&weeks=8")  # both sides look as far ahead as the picture
    page.goto(f"{world.argusd.url}/usage?nodes=-4")
    page.wait_for_selector("#outlook code:has-text('forecast_no_nodes')")
    page.context.close()


def test_the_panel_is_sound(browser, world):
    page = browser.open("/usage?nodes=2", "#outlook svg.outlook-band", follows=True)
    for look in (("en", "dark", 390), ("zh", "light", 1280)):
        turn_to(page, *look)
        page.wait_for_selector("#outlook svg.outlook-band")
        page.wait_for_selector("main .loading", state="detached")
        is_sound(page)
    page.context.close()
