# SPDX-License-Identifier: Apache-2.0
"""Notebooks in a browser: started, seen running, opened, kept, frozen, stopped, removed; what each state looks like. A
small server (webbed.py) takes JupyterLab's place."""

import os
import pathlib

import pytest
from webbed import CHROMIUM, World, ask_again

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("notebooks"), full=False) as w:
        yield w


def shot(page, name):
    """With ARGUS_SHOTS a picture of the whole page is kept there."""
    if os.environ.get("ARGUS_SHOTS"):
        page.screenshot(path=pathlib.Path(os.environ["ARGUS_SHOTS"]) / f"{name}.png", full_page=True)


def line(page):
    return page.inner_text("[role=dialog] footer .cli span")


def act(page, name):
    page.click(f".drawer footer .btn:has-text('{name}')")
    page.wait_for_selector("[role=dialog]")


def do(page):
    page.click("[role=dialog] .btn.main, [role=dialog] .btn.bad")
    page.wait_for_selector("[role=dialog]", state="detached")


def test_a_notebook_from_its_start_to_its_end(browser, world):
    page = browser.open("/notebooks", "main .blank:has-text('No notebooks yet')")
    shot(page, "nb-none")
    page.click(".head button:has-text('Start a notebook')")
    assert line(page) == "argus notebook start"
    page.fill("[role=dialog] label:has-text('Name') input", "big")
    page.select_option("[role=dialog] select", "0.5")
    assert "share their GPUs" in page.inner_text("[role=dialog]")
    page.select_option("[role=dialog] select", "1")
    page.fill("[role=dialog] label:has-text('idle') input", "2h")
    assert line(page) == "argus notebook start big --gpus 1 --idle 2h"
    shot(page, "nb-start")
    do(page)
    # The drawer of the new one is open: it waits, starts, and is ready, without a click.
    page.wait_for_selector(".drawer .st:has-text('Ready')")
    there = world.argusd.get("/v1/notebooks/big", token="user")
    assert there["gpus"] == 1 and there["idle"] == "7200s" and there["node"] in page.inner_text(".drawer .kv")
    assert page.locator(f".drawer a[href='/jobs/{there['job']}']").count() == 1
    page.wait_for_selector(".drawer .kv:has-text('2h 0m')")
    # It is opened in a tab of its own, at the door, which asks once whether that is her.
    with page.context.expect_page() as opened:
        page.click(".drawer .nb-open .btn:has-text('Open')")
    opened.value.wait_for_selector("h1:has-text('alice')")
    shot(opened.value, "nb-door")
    opened.value.click("button")
    opened.value.wait_for_url(f"{world.door}/n/alice/big/lab")
    assert opened.value.evaluate("window.opener") is None
    opened.value.close()
    act(page, "Extend")
    page.select_option("[role=dialog] select", "8h")
    assert line(page) == "argus notebook extend big --for 8h" and "its 1 GPU " in page.inner_text("[role=dialog]")
    shot(page, "nb-extend")
    do(page)
    page.wait_for_selector(".drawer dt:has-text('Not stopped as idle before')")
    shot(page, "nb-ready")
    act(page, "Stop")
    assert line(page) == "argus notebook stop big" and "1 GPU goes back" in page.inner_text("[role=dialog]")
    shot(page, "nb-stop")
    do(page)
    page.wait_for_selector(".drawer .st:has-text('Stopped')")
    until(lambda: world.argusd.job(there["job"])["state"] == "STOPPED", "its lease is over")
    act(page, "Start")
    assert line(page) == "argus notebook start big", "it is what it was"
    page.select_option("[role=dialog] select", "0")
    assert line(page) == "argus notebook start big --gpus 0"
    page.keyboard.press("Escape")
    page.wait_for_selector("[role=dialog]", state="detached")
    act(page, "Remove")
    assert line(page) == "argus notebook rm big"
    do(page)
    page.wait_for_selector("main .blank:has-text('No notebooks yet')")
    assert page.wrong == []
    page.context.close()


def test_its_other_states(browser, world):
    start = {"name": "waits", "gpus": 0.5}
    assert world.argusd.call("POST", "/v1/notebooks", start, token="user").status == 201
    until(lambda: world.argusd.get("/v1/notebooks/waits", token="user")["reason"], "it is said what it waits for")
    why = world.argusd.get("/v1/notebooks/waits", token="user")["reason"]["text"]
    page = browser.open("/notebooks", ".nb-why", width=900)
    assert why[1:] in page.inner_text("main .tbl") and page.locator(".tbl .btn").count() == 0
    shot(page, "nb-waits-900")
    # What is refused is said, and the tab that was made for it is gone again.
    page.route("**/v1/notebooks", lambda r: r.fulfill(json=ready(world)))
    page.wait_for_selector(".tbl .btn:has-text('Open')")
    page.click(".tbl .btn:has-text('Open')")
    page.wait_for_selector(".note.bad:has-text('waits was not opened')")
    until(lambda: len(page.context.pages) == 1, "the tab is closed")
    shot(page, "nb-refused-900")
    page.click(".note.bad button")
    page.wait_for_selector(".note.bad", state="detached")
    page.unroute("**/v1/notebooks")
    world.argusd.stop()
    page.wait_for_selector(".stale")
    assert page.locator(".tbl tbody tr").count() == 1, "what was there stays"
    world.argusd.start()
    ask_again(page)
    page.wait_for_selector(".stale", state="detached")
    page.goto(f"{world.argusd.url}/notebooks?name=alice/nosuch")
    page.wait_for_selector(".drawer .blank:has-text('No such notebook')")
    page.context.close()
    # Another one's: an admin stops it, and does not open or start it.
    page = browser.open("/notebooks?name=alice/waits", ".drawer .kv", token="admin", lang="zh", theme="dark")
    page.wait_for_selector(".drawer .cli:has-text('argus notebook show waits --user alice')")
    page.wait_for_selector(".drawer .nb-phases [aria-current=step]:has-text('排队中')")
    page.click(".drawer footer .btn.bad")
    assert page.locator(".drawer footer .btn:has-text('冻结')").count() == 0, "its snapshot would be the admin's"
    assert line(page) == "argus notebook stop waits --user alice" and "不再等待租约" in page.inner_text("[role=dialog]")
    shot(page, "nb-admin-zh")
    do(page)
    page.wait_for_selector(".drawer .st:has-text('已停止')")
    page.click(".drawer footer .btn.bad")
    assert line(page) == "argus notebook rm waits --user alice"
    do(page)
    page.wait_for_selector("main .blank")
    page.context.close()
    page = browser.open("/notebooks?do=start", "main .blank", token="viewer")
    assert page.locator(".head .btn:has-text('Start')").count() == 0 and page.locator("[role=dialog]").count() == 0
    page.context.close()


def install(world, notebook):
    """What a start and a pip leave of a notebook of alice's; no program does it here."""
    own = world.argusd.root / "users/alice/.argus"
    site = own / "overlay-0123456789ab/lib/python3.11/site-packages"
    (site / "moo").mkdir(parents=True)
    (site / "moo/__init__.py").write_text("SAYS = 'moo'\n")
    (site / "moo-1.2.dist-info").mkdir()
    (site / "moo-1.2.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: moo\nVersion: 1.2\n")
    (own / "notebooks" / notebook).mkdir(parents=True, exist_ok=True)
    (own / "notebooks" / notebook / "overlay").write_text("overlay-0123456789ab python3.11\n")


def test_its_packages_are_frozen(browser, world):
    world.notebook("kit")
    until(lambda: world.argusd.get("/v1/notebooks/kit", token="user")["state"] == "READY", "it is ready")
    page = browser.open("/notebooks?name=alice/kit", ".drawer .kv")
    act(page, "Freeze")
    assert line(page) == "argus notebook freeze kit"
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector("[role=dialog] .note.bad:has-text('has no packages of its own')")
    assert page.locator(".nb-frozen").count() == 0
    install(world, "kit")
    page.fill("[role=dialog] label:has-text('Name of the snapshot') input", "moo@1")
    assert line(page) == "argus notebook freeze kit --as moo@1"
    shot(page, "nb-freeze")
    do(page)
    page.wait_for_selector(".drawer .nb-frozen a:has-text('moo@1')")
    assert "working_dir: moo@1" in page.inner_text(".nb-frozen")
    shot(page, "nb-frozen")
    kept = world.argusd.root / "users/alice/code/moo/1/argus-packages.txt"
    assert kept.read_text() == "moo==1.2\n"
    act(page, "Freeze")
    page.fill("[role=dialog] label:has-text('Name of the snapshot') input", "moo@1")
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector("[role=dialog] .note.bad:has-text('moo@1')")  # a version is made once
    page.keyboard.press("Escape")
    page.wait_for_selector("[role=dialog]", state="detached")
    page.click(".drawer .nb-frozen a")
    page.wait_for_selector(".drawer h2:has-text('moo@1')")
    page.wait_for_selector(".drawer:has-text('argus-packages.txt')")
    page.context.close()
    # Without a name argusd gives it one.
    page = browser.open("/notebooks?name=alice/kit", ".drawer .kv", lang="zh", theme="dark")
    act(page, "冻结")
    assert line(page) == "argus notebook freeze kit" and "快照名称" in page.inner_text("[role=dialog]")
    do(page)
    page.wait_for_selector(".drawer .nb-frozen a:has-text('kit-packages@')")
    shot(page, "nb-frozen-zh")
    assert page.wrong == []
    page.context.close()


def ready(world):
    """The list, as though its one notebook were ready."""
    listed = world.argusd.get("/v1/notebooks", token="user")
    return {"notebooks": [{**n, "state": "READY", "reason": None} for n in listed["notebooks"]]}
