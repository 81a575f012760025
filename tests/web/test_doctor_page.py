# SPDX-License-Identifier: Apache-2.0
"""The page Doctor: an admin sees a line for each check, with what to do; others are told that it is not theirs."""

import json

import pytest
from test_pages import is_sound, turn_to
from webbed import CHROMIUM, World

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]
LOOKS = [("en", "light", 1280), ("zh", "dark", 390)]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("doctor"), full=False) as w:
        yield w


def checks(page):
    """{check: (state, what was found, what to do)}, as they stand there."""
    rows = page.locator(".tbl tbody tr").evaluate_all(
        "(rows) => rows.map((r) => [...r.cells].slice(0, 2).map((c) => c.innerText.trim()).concat("
        "r.querySelector('bdi').innerText, r.querySelector('.doctor-says p')?.innerText ?? ''))"
    )
    return {name: (state, text, fix) for name, state, text, fix in rows}


def ill_of(said):
    return {c["name"] for c in said["checks"] if c["state"] == "ill"}


def test_an_admin_sees_each_check_and_what_to_do(browser, world):
    page = browser.open("/ops", token="admin", follows=True)
    page.click("main .head a[href='/ops/doctor']")
    page.wait_for_selector("main h1:text-is('Doctor')")  # the page Ops has tables, too
    page.wait_for_selector(".tbl tbody tr")
    said = world.argusd.get("/v1/doctor")
    shown = checks(page)
    assert len(shown) == len(said["checks"])
    assert {(text, fix) for _, text, fix in shown.values() if fix} >= {
        (c["text"], c["fix"]) for c in said["checks"] if c["name"] == "prometheus"
    }
    assert shown["Certificate"][0] == "well" and shown["Metrics"][0] == "not known"
    for look in LOOKS:
        turn_to(page, *look)
        page.wait_for_selector(f"main h1:text-is('{'Doctor' if look[0] == 'en' else '体检'}')")
        page.wait_for_selector("main .loading", state="detached")
        is_sound(page)
    page.wait_for_selector(".tbl td:text-is('证书')")
    until(lambda: "没有证书" in page.inner_text(".tbl"), "the sentences are in the language of the page")
    assert page.wrong == []
    page.context.close()


def test_what_became_ill_is_seen_when_one_looks_again(browser, world):
    page = browser.open("/ops/doctor", ".tbl tbody tr", token="admin")
    again = "main .panel header .btn:has-text('Look again')"
    world.ray.stop()
    try:
        until(lambda: "ray" in ill_of(world.argusd.get("/v1/doctor")), "argusd has seen that Ray is away")
        page.click(again)
        page.wait_for_selector(".tbl tr:has(td:text-is('Ray')) .st.c-bad")
        state, _, fix = checks(page)["Ray"]
        assert state == "ill" and "ray.address" in fix
        assert "ill" in page.inner_text("main .panel header .dim")
    finally:
        world.ray.start()
    page.context.close()


@pytest.mark.parametrize("token", ["user", "viewer"])
def test_others_are_told_that_it_is_for_admins(browser, world, token):
    page = browser.open("/ops/doctor", "main .blank-title", token=token)
    assert "You may not see this" in page.inner_text("main") and page.locator(".tbl").count() == 0
    is_sound(page)
    assert page.wrong == [], "nothing is asked that would be refused"
    page.goto(world.argusd.url + "/ops")
    page.wait_for_selector("main .head")
    assert page.locator("a[href='/ops/doctor']").count() == 0
    page.context.close()


INSTEAD = {
    "error": (500, {"code": "internal", "detail": "what the server says"}, "main .blank-title.c-bad"),
    "denied": (403, {"code": "forbidden", "detail": "what the server says"}, "main .blank-title"),
    "empty": (200, {"ill": False, "checks": []}, "main .blank-title:has-text('No checks')"),
    "lost": (None, {}, "main .blank-title.c-bad"),
}


@pytest.mark.parametrize("state", INSTEAD)
def test_what_stands_in_the_place_of_the_checks(browser, world, state):
    status, body, there = INSTEAD[state]
    page = browser.page(token="admin")
    kind = "application/json" if status == 200 else "application/problem+json"
    if status not in (200, None):
        body = {**body, "type": f"urn:argus:problem:{body['code']}", "title": "x", "status": status}
    page.route(
        "**/v1/doctor*",
        lambda r: r.fulfill(status=status, body=json.dumps(body), content_type=kind) if status else r.abort(),
    )
    page.goto(world.argusd.url + "/ops/doctor")
    page.wait_for_selector(there)
    page.wait_for_selector("main .loading", state="detached")
    is_sound(page)
    assert page.locator(".tbl").count() == 0
    page.context.close()
