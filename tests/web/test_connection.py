# SPDX-License-Identifier: Apache-2.0
"""The connection is lost and comes back while every page is open: a banner, what was there is kept and marked old,
then all of it lives again. Nobody loads a page anew."""

import contextlib
import os
import types

import pytest
from cable import Cable
from test_pages import PAGES
from webbed import CHROMIUM, Chromium, World

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]
# Forty open pages keep two cores busy for minutes. By day every second one is lost and found, each in one of the two
# ways; by night all of them, in both.
SHOWN = ["job", "jobs", "queue", "events"]  # what comes afterwards is looked for on these
OTHERS = [name for name in PAGES if name not in SHOWN]
NIGHT = bool(os.environ.get("ARGUS_NIGHTLY"))
WHEN_KILLED = [*SHOWN, *(OTHERS if NIGHT else OTHERS[::4])]
WHEN_CUT = [*SHOWN, *(OTHERS if NIGHT else OTHERS[2::4])]
# What a page shows in the place of its data, when it has none.
REFUSED = "main .blank-title.c-bad"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("connection")) as w:
        yield w
        w.gate.write_text("")


@pytest.fixture(scope="module")
def playwright():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: run ./dev setup")
    with sync_api.sync_playwright() as p:
        yield p


@contextlib.contextmanager
def pages(playwright, world, port, names):
    """{name: tab} of one browser, as a person has them, each with a mark that a reload would wipe off."""
    a = world.argusd
    seen = types.SimpleNamespace(url=f"http://127.0.0.1:{port}", tokens=a.tokens, call=a.call)
    browser = Chromium(playwright, types.SimpleNamespace(argusd=seen))
    first = browser.page(token="admin")
    tabs = {}
    for name in names:
        path, there = PAGES[name]
        tab = first if not tabs else first.context.new_page()
        tab.set_default_timeout(120_000)
        tab.goto(seen.url + path.format(**world.jobs))
        tab.wait_for_selector(there)
        tab.wait_for_selector(".live:not(.off)")
        tab.wait_for_selector("main .loading", state="detached")  # of each panel: what has no data yet has none to keep
        tab.evaluate("window.__mark = true")
        tabs[name] = tab
    try:
        yield tabs
    finally:
        browser.close()


def is_old(name, tab):
    tab.wait_for_selector(".stale[role=alert]")
    assert tab.locator(".app.is-stale").count() == 1, f"{name}: nothing marks its data as old"
    assert tab.locator(PAGES[name][1]).count() > 0, f"{name}: its data went"
    assert tab.locator(REFUSED).count() == 0, f"{name}: {tab.inner_text('main')[:400]}"


def is_live(name, tab):
    tab.wait_for_selector(".live:not(.off)")
    tab.wait_for_selector(".stale", state="detached")
    tab.wait_for_selector(PAGES[name][1])
    until(lambda: tab.locator(REFUSED).count() == 0, f"{name} shows its data")
    assert tab.evaluate("window.__mark") is True, f"{name} was loaded again"


def what_comes_is_seen(world, tabs, word):
    a = world.argusd
    with open(a.log_file(world.jobs["running"]), "a") as log:
        log.write(f"{word} in the log\n")
    job = a.submit("true", token="admin", name=f"{word} in the lists", nnodes=4, n_gpus_per_node=8)
    tabs["job"].wait_for_selector(f"#log li:has-text('{word} in the log')")
    tabs["jobs"].wait_for_selector(f".vrow:has-text('{word} in the lists')")
    tabs["queue"].wait_for_selector(f"a.gr:has-text('{word} in the lists')")
    tabs["events"].wait_for_selector(".e-new button")
    assert tabs["job"].locator(f"#log li:has-text('{word} in the log')").count() == 1, "each line once"
    a.stop_job(job)


def test_argusd_is_killed_and_started(playwright, world):
    with pages(playwright, world, world.argusd.port, WHEN_KILLED) as tabs:
        world.argusd.kill9()
        for name, tab in tabs.items():
            is_old(name, tab)
        world.argusd.start()
        for name, tab in tabs.items():
            is_live(name, tab)
        what_comes_is_seen(world, tabs, "killed")


def test_the_network_is_cut(playwright, world):
    """Nobody is told of it: the silence is."""
    with Cable(world.argusd.port) as cable, pages(playwright, world, cable.port, WHEN_CUT) as tabs:
        cable.cut()
        for name, tab in tabs.items():
            is_old(name, tab)
        cable.heal()
        for name, tab in tabs.items():
            is_live(name, tab)
        what_comes_is_seen(world, tabs, "cut")


def test_a_page_that_was_asked_for_meanwhile(playwright, world):
    """Its program did not come either."""
    browser = Chromium(playwright, world)
    page = browser.open("/jobs", ".live:not(.off)")
    world.argusd.kill9()
    page.wait_for_selector(".live.off")
    page.click(".rail a[href='/usage']")
    page.wait_for_selector(REFUSED)
    page.click(".rail a[href='/jobs']")
    page.wait_for_selector(".head h1:has-text('Jobs')")
    page.click(".rail a[href='/usage']")
    page.wait_for_selector(REFUSED)
    world.argusd.start()
    page.wait_for_selector(".stack")
    browser.close()
