# SPDX-License-Identifier: Apache-2.0
"""The family of a job in a browser: the tree and the list, a difference whole, a note in place, two compared."""

import urllib.parse

import pytest
from test_pages import is_sound, turn_to
from webbed import CHROMIUM, HOSTILE_NAME, World, visible

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("family"), full=False) as w:
        root = w.submit("root", "true", name="the first", pool="nowhere", env={"LR": "1e-6"})
        fork(w, "half", root, "half the rate", name="half", env={"LR": "5e-7", "SEED": "2"})
        fork(w, "strange", w.jobs["half"], visible(HOSTILE_NAME), name=HOSTILE_NAME, env={"LR": HOSTILE_NAME})
        w.submit("alone", "true", name="nobody's", pool="nowhere")
        yield w


def fork(w, what, parent, note, **keys):
    query = urllib.parse.urlencode({"from": parent, "note": note})
    reply = w.argusd.post(w.argusd.spec("true", pool="nowhere", **keys), f"?{query}", token="user")
    assert reply.status == 201, reply
    w.jobs[what] = reply.json()["id"]


def notes(world):
    page = world.argusd.get(f"/v1/jobs/{world.jobs['root']}/family", token="user")
    return {row["id"]: row["note"] for row in page["jobs"]}


def test_the_tree_and_a_difference(browser, world):
    page = browser.open(f"/jobs/{world.jobs['root']}", ".job-head .acts")
    page.click(".job-head .acts a:has-text('Family')")
    page.wait_for_selector(".fam-row")
    assert page.locator(".fam-row").count() == page.locator(".graph .box").count() == 3
    assert page.locator(".graph .wires path").count() == 2
    row = page.locator(".fam-row", has_text="half the rate")
    said = row.inner_text()
    assert "Fork" in said and "LR 1e-6 → 5e-7" in said and "+env.SEED 2" in said and "Queued" in said
    row.locator(".fam-diff").press("Enter")
    page.wait_for_selector(".drawer .diff ins:has-text('env.LR: 5e-7')")
    assert page.locator(".drawer .diff del:has-text('env.LR: 1e-6')").count() == 1
    page.keyboard.press("Escape")
    page.wait_for_selector(".drawer", state="detached")
    assert f"argus family {world.jobs['root']}" in page.inner_text(".head .cli")
    page.click(f".graph a.box[href$='{world.jobs['half']}']")
    page.wait_for_selector(".drawer h3:has-text('the first')")
    assert page.wrong == []
    page.context.close()


def test_a_note_is_changed_in_place(browser, world):
    job = world.jobs["half"]
    page = browser.open(f"/jobs/{job}/family", ".fam-row")
    row = page.locator(".fam-row[aria-current]")
    row.locator("button:has-text('Change')").click()
    field = row.locator("input.field")
    assert field.input_value() == "half the rate"
    field.press("Escape")
    row.locator("button:has-text('Change')").click()
    field.fill("a quarter <b>bold</b>")
    field.press("Enter")
    until(lambda: notes(world)[job] == "a quarter <b>bold</b>", "the note is kept")
    page.wait_for_selector(".fam-row[aria-current] bdi:has-text('a quarter <b>bold</b>')")
    assert world.argusd.call("POST", f"/v1/jobs/{job}:note", {"note": "half the rate"}, token="user").status == 200
    page.wait_for_selector(".fam-row[aria-current] bdi:has-text('half the rate')")  # it comes by itself
    assert page.wrong == []
    page.context.close()


def test_two_are_compared(browser, world):
    page = browser.open(f"/jobs/{world.jobs['half']}/family", ".fam-row")
    for name in ("the first", "half the rate"):
        page.locator(".fam-row", has_text=name).first.locator("input[type=checkbox]").check()
    page.click(".head a:has-text('Compare the two')")
    page.wait_for_url(lambda url: "/compare?jobs=" in url and world.jobs["half"] in url)
    page.wait_for_selector(".difftbl")
    page.context.close()


def test_hostile_texts_are_texts(browser, world):
    page = browser.open(f"/jobs/{world.jobs['strange']}/family?of={world.jobs['strange']}", ".drawer .diff")
    assert page.locator("main img, main script, .drawer img, .drawer script").count() == 0
    assert page.evaluate("window.__alerts || []") == []
    page.context.close()


def test_a_job_alone_and_one_that_is_not_there(browser, world):
    page = browser.open(f"/jobs/{world.jobs['alone']}/family", ".blank")
    assert "Nothing came of this job yet" in page.inner_text("main")
    assert page.locator(".fam-row").count() == 1 and page.locator(".graph").count() == 0
    page.context.close()
    page = browser.open("/jobs/never-was/family", ".blank h1")
    assert "No such job" in page.inner_text("main")
    page.context.close()


def test_a_viewer_reads(browser, world):
    page = browser.open(f"/jobs/{world.jobs['half']}/family", ".fam-row", token="viewer")
    assert page.locator(".fam-note button").count() == 0
    page.context.close()


LOOKS = [("en", "light", 1280), ("zh", "dark", 900), ("zh", "light", 390), ("en", "dark", 390)]


@pytest.mark.parametrize("look", LOOKS)
def test_it_is_sound_at_each_width(browser, world, look):
    with browser.kept() as page:
        page.goto(world.argusd.url + f"/jobs/{world.jobs['strange']}/family")
        page.wait_for_selector(".fam-row")
        turn_to(page, *look)
        page.locator(".fam-tree").wait_for(state="visible" if look[2] > 700 else "hidden")
        is_sound(page)
        assert page.wrong == []
