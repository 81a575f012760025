# SPDX-License-Identifier: Apache-2.0
"""The pages in a real browser against the real argusd: each in both languages, themes and widths without a violation of
axe, an overflow, an error or a request to another host; what people do there; and hostile texts, which stay texts."""

import json
import os
import pathlib
import re
import urllib.parse

import pytest
from webbed import CHROMIUM, HOSTILE_NAME, World, ask_again

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]

AXE = pathlib.Path(__file__).resolve().parents[2] / "web/node_modules/axe-core/axe.min.js"
# Address (with ids of the world's jobs), and what is there when it is drawn.
PAGES = {
    "overview": ("/", ".needs li"),
    "queue": ("/queue", "a.gr"),
    "why": ("/queue?why={waits}", ".drawer .why-text"),
    "jobs": ("/jobs", ".vrow, .cards li"),
    "nodes": ("/nodes", ".n-row .lease"),
    "node": ("/nodes?node=gpu-01", ".drawer .slots td .slot"),
    "node_table": ("/nodes?view=table", ".vrow, .cards li"),
    "foreign": ("/nodes?view=foreign", ".tbl tbody td"),
    "usage": ("/usage", ".stack"),
    "usage_by": ("/usage?by=project&for=7d", ".tbl tbody td"),
    "simulator": ("/simulator", ".tbl tbody td"),
    "simulator_trace": ("/simulator?source=trace&policy=none&nodes=8x8", ".sim-drop"),
    "simulation": ("/simulator/{simulation}", ".sim-charts canvas"),
    "alerts": ("/alerts", ".tbl tbody td"),
    "rules": ("/alerts?view=rules", ".tbl tbody td"),
    "events": ("/events", ".tbl tbody td"),
    "people": ("/people", ".tbl tbody td"),
    "person": ("/people?view=users&user=alice", ".drawer .kv"),
    "settings": ("/settings", "#tokens .tbl"),
    "event": ("/events?kind=held&seq={held_seq}", ".drawer .kv"),
    "job": ("/jobs/{running}", ".charts canvas"),
    "failed": ("/jobs/{failed}", ".patch"),
    "hostile": ("/jobs/{hostile}", ".log li"),
    "compare": ("/compare?jobs={running},{failed},{done}&spec=all", ".charts canvas"),
    "data": ("/data/sums@1", ".rows td"),
    "models": ("/models/tiny@1", ".lineage .box"),
    "services": ("/services", ".tbl tbody td"),
    "service": ("/services/answers", ".svc-figs"),  # its curves and requests go with argusd
    "ops": ("/ops", ".tbl tbody td"),
    "ops_plan": ("/ops?plan={plan}", ".drawer .ops-steps li"),
    "sops": ("/ops/sops", ".tbl tbody td"),
    "sop": ("/ops/sops/reclaim?v.PROJECT=rlhf", ".sop-step"),
    "notebooks": ("/notebooks", ".tbl tbody td"),
    "notebook": ("/notebooks?name=alice/main", ".drawer dt"),
    "pipelines": ("/pipelines", ".tbl tbody td"),
    "pipeline_runs": ("/pipelines?view=runs", ".tbl tbody td"),
    "pipeline": ("/pipelines/strange?p.n=1", ".pipe-runs .tbl"),
    "pipeline_run": ("/pipelines/strange/{pipe_run}", ".pipe-box"),
    "pipeline_step": ("/pipelines/strange/{pipe_run}?step=good", ".drawer .kv"),
    "files": ("/files?path=users/alice/code&show={file}", ".preview-text"),
    "snapshots": ("/snapshots?name=mine@1&with=mine@2", ".lib-diff li"),
    "presets": ("/presets?name=strange", ".lib-pre"),
    "submit": ("/submit?from={running}", ".plan-why"),
    "family": ("/jobs/{failed}/family", ".fam-row"),
}
LOOKS = [(lang, theme, width) for lang in ("en", "zh") for theme in ("light", "dark") for width in (1280, 900, 390)]
BETWEEN = [look for look in LOOKS if look[2] == 900]
PROBLEM = {"type": "urn:argus:problem:{0}", "title": "x", "status": 0, "code": "{0}", "detail": "what the server says"}
# What stands in the place of each answer, and what is then there.
INSTEAD = {
    "error": (500, "internal", "main .blank-title.c-bad"),
    "denied": (403, "denied", "main .blank-title"),
    "lost": (None, "", "main .blank-title.c-bad"),
}
STATES = ("full", "error", "empty", "denied", "lost")
# Pages that have something to show and to do without any answer.
ALONE = {"simulator", "simulator_trace", "submit", "settings", "compare", "sops", "sop"}


def looks_of(name, state):
    """By day: each page whole on a desk and on a phone, in both languages and themes; one look at another state and at
    the width between, in turns. By night all of them."""
    i = list(PAGES).index(name)
    if os.environ.get("ARGUS_NIGHTLY"):
        return LOOKS
    if state == "full":
        return [("en", "light", 1280), ("zh", "dark", 390)] if i % 2 else [("zh", "light", 1280), ("en", "dark", 390)]
    return [BETWEEN[i // 4 % len(BETWEEN)]] if STATES[1 + i % 4] == state else []


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("web")) as w:
        yield w
        w.gate.write_text("")


def at(world, name):
    path, there = PAGES[name]
    return path.format(**world.jobs), there


def violations(page):
    """What axe-core finds, by rule. It is put in by the debugger: the page's policy would not have it."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text() + "\n;undefined")
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return {v["id"]: [n["html"][:200] for n in v["nodes"][:3]] for v in found}


def turn_to(page, lang, theme, width):
    """As a person does it: no page is loaded again."""
    page.set_viewport_size({"width": width, "height": 844 if width < 600 else 800})
    page.emulate_media(color_scheme=theme)
    button = page.wait_for_selector(".bar .end .btn[lang]", state="attached")
    if page.evaluate("document.documentElement.lang")[:2] != lang:
        button.evaluate("(it) => it.click()")
    page.wait_for_selector(f"html[lang^={lang}][data-theme={theme}]", state="attached")


# Words that somebody cut without saying so: no ellipsis, and nothing that scrolls.
CLIPPED = """() => [...document.querySelectorAll('button, a.btn, h1, h2, th, legend, .st, .flag, .blank *')]
    .filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)
    .filter((e) => { const s = getComputedStyle(e);
        return ['hidden', 'clip'].includes(s.overflowX) && s.textOverflow !== 'ellipsis' && !e.closest('.sr'); })
    .map((e) => e.outerHTML.slice(0, 200))"""

# What reaches beyond the window, innermost first.
BEYOND = """() => [...document.querySelectorAll('body *')]
    .filter((e) => e.getBoundingClientRect().right > innerWidth && ![...e.children].some((c) =>
        c.getBoundingClientRect().right > innerWidth))
    .map((e) => e.getBoundingClientRect().right + ' ' + e.outerHTML.slice(0, 200))"""

STACKED = """() => [...document.querySelectorAll('.vhead, .vrow')]
    .filter((r) => [...r.children].some((c) =>
        c.getBoundingClientRect().top >= r.getBoundingClientRect().bottom))
    .map((r) => r.outerHTML.slice(0, 200))"""


def is_sound(page):
    assert violations(page) == {}
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{wide} pixels too wide: {page.evaluate(BEYOND)}"
    assert page.evaluate(CLIPPED) == [], "clipped"
    assert page.evaluate(STACKED) == [], "cells below their row"
    text = page.inner_text("body")
    assert not re.search(r"\b(undefined|NaN|null|\[object)\b", re.sub(r"(?s)\{.*?\n\}", "", text)), "a value leaked"


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    with World(tmp_path_factory.mktemp("empty"), full=False) as w:
        yield w


def answer_instead(page, state):
    status, code, _ = INSTEAD[state]

    def instead(route):
        if re.search(r"/v1/(session|changes|me/settings)\b", route.request.url):
            return route.continue_()
        if status is None:
            return route.abort()
        body = {**PROBLEM, "type": PROBLEM["type"].format(code), "code": code, "status": status}
        return route.fulfill(status=status, body=json.dumps(body), content_type="application/problem+json")

    page.route("**/v1/**", instead)


def there_in(name, state):
    """What is there when the page is drawn in that state."""
    if state == "full":
        return PAGES[name][1]
    if name in ALONE:
        return "main h1"
    return INSTEAD[state][2] if state in INSTEAD else "main h1, main .blank"


@pytest.mark.parametrize("name, state", [(n, s) for n in PAGES for s in STATES if looks_of(n, s)])
def test_a_page_is_whole(browser, world, empty, name, state):
    path, there = at(world, name)[0], there_in(name, state)
    with browser.of(empty if state == "empty" else world), browser.kept(state in INSTEAD) as page:
        if state in INSTEAD:
            answer_instead(page, state)
        page.goto(browser.world.argusd.url + path)
        for look in looks_of(name, state):
            turn_to(page, *look)
            page.wait_for_selector(there)
            page.wait_for_selector("main .loading", state="detached")
            is_sound(page)
        if state == "full":
            assert page.wrong == []
        assert [w for w in page.wrong if not w.startswith("console: Failed to load resource")] == []


def test_a_panel_that_is_refused_says_so(browser, world):
    """Each panel of the overview has a word for it; none waits for ever for an answer that came."""
    page = browser.page()
    problem = {"type": "urn:argus:problem:internal", "title": "x", "status": 500, "code": "internal", "detail": "no"}
    for what in ("jobs", "pools", "usage"):
        page.route(
            f"**/v1/{what}?*" if what != "pools" else "**/v1/pools",
            lambda r: r.fulfill(status=500, body=json.dumps(problem), content_type="application/problem+json"),
        )
    page.goto(world.argusd.url)
    page.wait_for_selector("main .blank-title.c-bad")
    page.wait_for_selector("main .loading", state="detached")
    assert page.locator("main .blank-title.c-bad").count() == page.locator("main .panel").count() == 5
    page.context.close()


def test_log_in_and_out(browser, world):
    page = browser.open("/jobs?state=live", ".login", token=None)
    page.fill("input[name=token]", "argus_wrong")
    page.click("button[type=submit]")
    page.wait_for_selector(".login [role=alert]")
    page.fill("input[name=token]", "argus_" + "x" * 43)
    page.click("button[type=submit]")
    page.wait_for_selector("text=this token is not known here")
    page.fill("input[name=token]", world.argusd.tokens["user"])
    page.press("input[name=token]", "Enter")
    page.wait_for_selector(".rail .foot button")
    assert page.url.endswith("/jobs?state=live"), "the address that was asked for"
    cookie = page.context.cookies()[0]
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    assert world.argusd.tokens["user"] not in page.evaluate("JSON.stringify(localStorage) + document.cookie")
    page.click(".rail .foot button")
    page.wait_for_selector(".login")
    assert page.context.cookies() == []
    page.context.close()


def test_a_revoked_session_brings_the_login(browser, world):
    page = browser.open("/jobs", ".vrow")
    mine = page.evaluate("fetch('/v1/session').then((r) => r.json())")["id"]
    assert world.argusd.call("DELETE", f"/v1/sessions/{mine}", token="user").status == 200
    page.wait_for_selector(".login")  # the stream ends with it, nobody has to click
    page.context.close()


def test_what_changes_comes_by_itself(browser, world):
    page = browser.open("/jobs?mine=1", ".vrow")
    page.wait_for_selector(".live:not(.off)")
    job = world.argusd.submit("true", token="user", name="comes by itself")
    page.wait_for_selector("text=comes by itself")
    world.argusd.wait_over(job)
    row = page.locator(".vrow", has_text="comes by itself")
    until(lambda: "Succeeded" in row.inner_text(), "its state changes in place")
    page.context.close()


def test_tabs_share_one_stream(browser, tmp_path):
    """One user may have one stream here: two tabs that are live have it together. And pages of an empty world."""
    with World(tmp_path, full=False, more="limits: {streams_per_user: 1}") as empty:
        filled, browser.world = browser.world, empty
        try:
            first = browser.open("/jobs", ".live:not(.off)")
            second = first.context.new_page()
            for path in ("/queue", "/"):
                second.goto(empty.argusd.url + path)
                second.wait_for_selector(".live:not(.off)")
                second.wait_for_selector("main .blank")
                assert violations(second) == {}
            assert "No jobs yet" in first.inner_text("main")
            first.context.close()
        finally:
            browser.world = filled


def test_a_lost_connection_shows_and_heals(browser, world):
    page = browser.open("/jobs", ".live:not(.off)")
    page.wait_for_selector(".vrow >> nth=3")
    world.argusd.stop()
    try:
        page.wait_for_selector(".live.off")
        page.wait_for_selector(".stale")
        assert page.locator(".vrow").count() > 3, "what was there stays"
    finally:
        world.argusd.start()  # the world is that of all tests here
    ask_again(page)
    page.wait_for_selector(".live:not(.off)")
    page.wait_for_selector(".stale", state="detached")
    page.context.close()


def test_the_keyboard_alone(browser, world):
    page = browser.open("/", ".needs li")
    page.keyboard.press("?")
    page.wait_for_selector("[role=dialog] .keymap")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_url("**/jobs")
    page.wait_for_selector(".vrow")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.wait_for_selector(".pickbar")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/*")
    page.keyboard.press("Control+k")
    page.fill(".finder input", "mt-bench")
    page.wait_for_selector(".finder-hits li:has-text('mt-bench zh')")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{world.jobs['done']}")
    page.context.close()


SCROLLED = "(id) => Math.abs(document.getElementById(id).getBoundingClientRect().top)"


def keymap(page):
    """The map of the page that is shown: each row's words and its keys."""
    page.keyboard.press("?")
    page.wait_for_selector("[role=dialog] .keymap")
    rows = page.locator(".keymap").evaluate(
        "(map) => [...map.querySelectorAll('dt')].map((dt) => ["
        "dt.nextElementSibling.textContent, [...dt.querySelectorAll('kbd')].map((k) => k.textContent)])"
    )
    page.keyboard.press("Escape")
    page.wait_for_selector("[role=dialog]", state="detached")
    return dict(rows)


def press(page, keys):
    for key in keys:
        page.keyboard.press({"Ctrl": "Control+k", "Esc": "Escape"}.get(key, key))


def open_and_shut(page, keys, there):
    press(page, keys)
    page.wait_for_selector(there)
    page.keyboard.press("Escape")
    page.wait_for_selector(there, state="detached")


def test_every_key_of_the_map_does_what_it_says(browser, world):
    """What opens something, what goes somewhere, what moves in a list; and no row of a map is left."""
    page = browser.open("/jobs", ".vrow")
    rows = keymap(page)
    assert rows.pop("find, go anywhere") == ["Ctrl", "K", "/"] and rows.pop("this map") == ["?"]
    for keys in (["Ctrl"], ["/"]):
        open_and_shut(page, keys, ".finder")
    press(page, ["c"])
    page.wait_for_selector(".toast")
    assert rows.pop("copy the command line") == ["c"] and rows.pop("close what is open") == ["Esc"]
    at = "() => document.activeElement.dataset.row"
    assert rows.pop("next, previous row") == ["j", "k"] and rows.pop("choose the row") == ["x"]
    for key, row in (("j", "0"), ("j", "1"), ("k", "0")):
        press(page, [key])
        assert page.evaluate(at) == row
    press(page, ["x"])
    page.wait_for_selector(".pickbar")
    goes = {says: keys for says, keys in rows.items() if says.startswith("go to ")}
    assert len(goes) > 15 and set(rows) == set(goes), "each key has its test"
    for says, keys in goes.items():
        page.evaluate("document.activeElement.blur()")
        press(page, keys)
        # A function: the page's policy lets no text be run again while it is waited for.
        page.wait_for_function("(title) => document.title === title", arg=says.removeprefix("go to ") + " · Argus")
        page.wait_for_selector("main h1, main .blank")
    page.context.close()


def test_the_keys_of_a_job(browser, world):
    page = browser.open(f"/jobs/{world.jobs['failed']}?log=step", "#log mark")
    page.wait_for_selector("#curves .blank, #curves canvas")
    rows = {s: k for s, k in keymap(page).items() if not s.startswith(("go to", "find", "this map", "copy", "close"))}
    sections = {
        s.removeprefix("section of the page: "): k for s, k in rows.items() if s.startswith("section of the page: ")
    }
    assert len(sections) == 9
    for (key,) in list(sections.values())[::-1]:
        press(page, [key])
        shown = page.locator(".jump a").nth(int(key) - 1).get_attribute("href")[1:]
        top = page.evaluate(SCROLLED, shown)
        end = page.evaluate("scrollY + innerHeight >= document.documentElement.scrollHeight - 2")
        assert top < 120 or end, f"{key} goes to {shown}"
    for says in sections:
        rows.pop(f"section of the page: {says}")
    marks = page.locator("#log mark")
    for key, nth in (("n", 0), ("n", 1), ("N", 0)):
        press(page, [key])
        assert "now" in (marks.nth(nth).get_attribute("class") or "")
    press(page, ["e"])
    page.wait_for_selector("#log .here:has-text('OutOfMemoryError')")
    assert "line=" in page.url and "log=" not in page.url
    page.reload()
    page.wait_for_selector("#log .here:has-text('OutOfMemoryError')")
    press(page, ["f"])
    page.wait_for_selector("#log .here", state="detached")
    assert rows.pop("next, previous row") == ["j", "k"], "of its table of trackers"
    assert sorted(map(tuple, rows.values())) == [("e",), ("f",), ("n", "N")], rows
    page.context.close()


def test_the_find_box_goes_anywhere(browser, world):
    def found(text, says):
        page.keyboard.press("Control+k")
        page.fill(".finder input", text)
        row = page.locator(".finder-hits li", has_text=says).first
        row.wait_for()
        row.click()

    page = browser.open("/", ".needs li", token="admin")
    found(world.jobs["done"][:-2], "mt-bench zh")
    page.wait_for_url(f"**/jobs/{world.jobs['done']}")
    found("ali", "Jobs of alice")
    page.wait_for_url("**/jobs?user=alice")
    found("gpu-03", "gpu-03")
    page.wait_for_selector(".drawer:has-text('gpu-03')")
    found("ppo-0.5b", "ppo-0.5b")
    page.wait_for_selector(".drawer:has-text('ppo-0.5b')")
    found("simul", "Simulator")
    page.wait_for_url("**/simulator")
    for text, says in (("import a model", "Import a model"), ("add a node", "Add a node"), ("token", "Make a token")):
        found(text, says)
        page.wait_for_selector("[role=dialog]:not(.finder) .form, [role=dialog]:not(.finder) .lib-asks")
        assert "do=" not in page.url
        page.keyboard.press("Escape")
    found("theme: d", "Theme: Dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.goto(f"{world.argusd.url}/jobs/{world.jobs['running']}")
    page.wait_for_selector(".job-head .btn.bad")
    found("stop", "Stop the job")
    page.wait_for_selector("[role=dialog]:has-text('Stop')")
    page.context.close()
    page = browser.open("/?do=import", ".needs li", token="viewer")  # an address that does nothing here
    page.keyboard.press("Control+k")
    page.fill(".finder input", "import a model")
    page.wait_for_selector(".finder-none")
    page.context.close()


def test_a_job_on_paper(browser, world):
    """Light, though the screen is dark; the page alone, with its charts, log and spec whole."""
    page = browser.open(f"/jobs/{world.jobs['running']}", ".charts canvas", theme="dark")
    page.wait_for_selector("#log li")
    page.evaluate("addEventListener('beforeprint', () => { window.__paper = document.documentElement.dataset.theme; })")
    pdf = page.pdf(format="A4", print_background=True)
    assert pdf.startswith(b"%PDF") and pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") >= 2
    assert page.evaluate("window.__paper") == "light", "paper is"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark", "and the screen is as before"
    page.emulate_media(media="print")
    for hidden in (".rail", ".bar", ".job-head .btn", ".jump", ".logbar", ".cli"):
        assert not page.locator(hidden).first.is_visible(), hidden
    for whole in ("#log .log", "#spec pre"):
        assert page.locator(whole).evaluate("(e) => e.scrollHeight - e.clientHeight") <= 1, whole
    assert page.locator("main .figs").is_visible() and page.locator("#log li").last.is_visible()
    page.context.close()


def test_stop_names_what_it_stops(browser, world):
    job = world.argusd.submit("sleep 300", token="user", name="to be stopped")
    world.argusd.wait_state(job, "RUNNING")
    page = browser.open(f"/jobs/{job}", ".job-head .btn.bad")
    page.click(".job-head .btn.bad")
    dialog = page.wait_for_selector("[role=dialog]")
    assert "to be stopped" in dialog.inner_text() and f"argus stop {job}" in dialog.inner_text()
    assert page.evaluate("document.activeElement.textContent") == "Cancel", "the safe way out comes first"
    page.keyboard.press("Escape")
    assert world.argusd.job(job)["state"] == "RUNNING"
    page.click(".job-head .btn.bad")
    page.click("[role=dialog] .btn.main")
    world.argusd.wait_over(job)
    page.wait_for_selector(".job-head .st:has-text('Stopped')")
    page.context.close()


def test_a_machine_is_added_drained_and_removed(browser, world):
    """None is there at that address: its steps and the reason are told, and each deed names it first."""
    page = browser.open("/nodes", ".n-row", token="admin")
    page.click(".head .btn")
    page.fill("[role=dialog] input >> nth=0", "gpu-99")
    page.fill("[role=dialog] input >> nth=1", "127.0.0.1")
    page.fill("[role=dialog] input >> nth=3", "1")
    assert violations(page) == {}, "of a dialog with a form"
    assert "argus node add gpu-99 --host 127.0.0.1 --port 1 --wait" in page.inner_text("[role=dialog] footer")
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector(".drawer .steps .c-ok")
    page.wait_for_selector(".drawer .note .said")
    assert page.url.endswith("?node=gpu-99")
    page.click(".drawer footer .btn:has-text('Drain')")
    page.select_option("[role=dialog] select", "restart")
    assert "argus node drain gpu-99 --then restart --deadline 2h" in page.inner_text("[role=dialog] footer")
    assert "--stop-foreign" not in page.inner_text("[role=dialog] footer"), "nobody said that others' jobs go"
    page.check("[role=dialog] .tick input")
    assert "--deadline 2h --stop-foreign" in page.inner_text("[role=dialog] footer")
    page.keyboard.press("Escape")
    page.click(".drawer footer .btn.bad")
    assert "Remove gpu-99?" in page.inner_text("[role=dialog] h1")
    assert "argus ops plan remove_node --node gpu-99" in page.inner_text("[role=dialog] footer")
    page.click("[role=dialog] .btn.main")
    page.wait_for_url("**/ops?plan=plan-*")
    page.wait_for_selector(".drawer .ops-steps li:has-text('remove')")
    assert world.argusd.call("GET", "/v1/nodes/gpu-99").status == 200, "it is only planned"
    page.click(".drawer footer .btn:has-text('Apply')")
    page.click("[role=dialog] .btn.main")
    until(lambda: world.argusd.call("GET", "/v1/nodes/gpu-99").status == 404, "it is gone")
    page.goto(world.argusd.url + "/nodes")
    page.wait_for_selector(".n-row")
    assert page.locator(".n-row", has_text="gpu-99").count() == 0
    page.context.close()


def test_usage_is_split(browser, world):
    page = browser.open("/usage", ".stack")
    page.hover(".stack > span:last-child")
    page.wait_for_selector(".stackbox .legend b")
    page.click(".seg button:has-text('User')")
    page.wait_for_url("**/usage?by=user")
    page.wait_for_selector(".tbl a:has-text('alice')")
    assert "argus report gpu --by user --from 1d --step 1h" in page.inner_text(".head")
    page.context.close()


def test_what_a_lead_reads_first(browser, world):
    page = browser.open("/usage", ".leadpool")
    bars = page.locator(".leadpool").all()
    for bar in bars:
        told = [int(x.removesuffix("%")) for x in bar.locator(".leadparts b").all_inner_texts()]
        assert sum(told) == 100, bar.inner_text()
    page.locator(".lead-lines li").nth(2).wait_for()
    said = page.locator(".lead-lines li").all_inner_texts()
    assert "GPU-hours" in said[0] and ("wait" in said[2]), said
    row = page.locator("[aria-label='Projects and people'] tr", has_text="alice").first
    row.locator("a").click()  # the jobs behind the figure
    page.wait_for_url("**/jobs?user=alice&sort=-gpu_hours&ran_since=1d")
    page.wait_for_selector(".vrow:has-text('alice')")
    page.context.close()


def test_a_failure_and_a_wait_lead_to_their_jobs(browser, world):
    """Each figure of a class of failure and of a size of gang opens the jobs behind it."""

    def shown(query):
        page.wait_for_url(f"**/jobs?{query}")
        told = world.argusd.call("GET", f"/v1/jobs?all=1&{query.split('&sort=')[0]}", token="user").json()
        want = [j["id"] for j in told["jobs"]]
        assert want, query
        page.wait_for_function("n => document.querySelectorAll('.vrow').length === n", arg=len(want))
        return want

    page = browser.open("/usage", "[aria-label$='By class'] tbody td")
    figures = page.locator("[aria-label$='By class'] tbody tr", has_text="gpu_oom").locator("td a")
    assert figures.count() >= 3
    figures.nth(1).click()
    assert world.jobs["failed"] in shown("failure=gpu_oom&sort=-gpu_hours&ran_since=1d")
    assert page.locator(".fchip", has_text="gpu_oom").count() == 1
    page.go_back()
    page.locator("[aria-label='Waiting, by size'] tbody tr").first.locator("td a").nth(1).click()
    page.wait_for_url("**/jobs?state=QUEUED&gpus=*")
    shown(page.url.partition("?")[2])
    page.context.close()


def test_quotas_stand_beside_what_is_held(browser, world):
    page = browser.open("/usage", "[aria-label='Quotas'] tbody td")
    row = page.locator("[aria-label='Quotas'] tbody tr", has=page.locator("a", has_text=re.compile("^alice$")))
    held = {q["name"]: q["usage"]["gpus"] for q in world.argusd.get("/v1/quotas")["quotas"] if q["kind"] == "user"}
    titles = page.locator("[aria-label='Quotas'] thead th").all_inner_texts()
    row.locator("td").nth(titles.index("Holds now")).wait_for()
    assert row.locator("td").nth(titles.index("Holds now")).inner_text() == f"{held['alice']:g}"
    row.locator("a").click()
    page.wait_for_url("**/people?view=users&user=alice")
    page.context.close()


def test_why_gpus_rest_is_said_on_the_page(browser, world):
    page = browser.open(f"/jobs/{world.jobs['running']}", "#gpus")
    page.click("#gpus header .link:has-text('Justify')")
    act = page.locator("[role=dialog] .btn.main")
    assert act.is_disabled()  # without a reason
    page.fill("[role=dialog] input >> nth=0", "a judge scores on CPUs")
    assert f"argus justify --for 4h {world.jobs['running']} 'a judge" in page.inner_text("[role=dialog] footer")
    act.click()
    page.wait_for_selector(".idle-note:has-text('a judge scores on CPUs')")
    assert world.argusd.get(f"/v1/jobs/{world.jobs['running']}")["idle_reason"] == "a judge scores on CPUs"
    page.context.close()


def test_usage_of_a_month(browser, world):
    page = browser.open("/usage", ".leadpool")
    month = page.locator("select[aria-label=Month] option").nth(1).evaluate("e => e.value")
    page.select_option("select[aria-label=Month]", month)
    page.wait_for_url(f"**/usage?for={month}")
    page.wait_for_selector(".leadpool")
    assert f"--from {month}-01T00:00:00Z" in page.inner_text(".head")
    page.context.close()


def test_an_alert_is_acknowledged_and_silenced(browser, world):
    page = browser.open("/alerts", ".tbl tbody td")
    page.click(".tbl a.said-block")
    page.click(".drawer footer .btn:has-text('Acknowledge')")
    page.fill("[role=dialog] input", "I look at it")
    assert "--note 'I look at it'" in page.inner_text("[role=dialog] footer")
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector(".drawer .kv:has-text('I look at it')")
    page.click(".drawer footer .btn:has-text('Silence')")
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector(".drawer a[href*='view=silences']")
    page.click(".drawer a[href*='view=silences']")
    page.wait_for_selector(".tbl tbody td:has-text('alice')")
    assert page.locator(".tbl .btn").count() == 0, "admins alone end one"
    page.context.close()
    page = browser.open("/alerts?view=silences", ".tbl .btn", token="admin")
    page.click(".tbl .btn")
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector("main .blank:has-text('No silences')")
    page.context.close()


def test_an_alert_has_the_curve_of_its_moment(browser, world):
    """The figures are made here: nobody measures the GPUs of a fake Ray."""
    asked = []

    def measured(route):
        asked.append(urllib.parse.parse_qs(urllib.parse.urlsplit(route.request.url).query))
        since = asked[-1]["since"][0]
        row = {
            "node": "gpu-01", "gpu": 0, "uuid": None, "mean": [0.9, 0.8, 0.1, None], "max": [1, 1, 1, None],
            "mean_of_all": 0.6, "mem_used_max_bytes": None, "mem_total_bytes": None, "temperature_celsius": None,
            "power_watts": None, "rank": 0, "by_processes": False, "watched_s": None, "busy_s": None,
        }  # fmt: skip
        total = dict.fromkeys(("watched_s", "busy_s", "used_joules", "mem_peak_bytes"))
        page = {"id": "x", "figure": "gpu_util_ratio", "from": since, "step_s": 900, "points": 4, "series": [row]}
        route.fulfill(json={**page, "earlier": [], "total": total})

    alerts = world.argusd.get("/v1/alerts?state=all", token="user")["alerts"]
    alert = next(a for a in alerts if a["kind"] == "job")
    page = browser.open("/alerts", ".tbl tbody td")
    page.route("**/v1/jobs/*/gpus?*", measured)
    page.goto(f"{page.url.split('?')[0]}?alert={alert['id']}")
    page.wait_for_selector(".alert-curve canvas")
    assert "gpu_util_ratio, %" in page.inner_text(".alert-curve")
    assert asked[0]["since"][0] < alert["since"], "from before it opened"
    page.context.close()


def test_an_admin_silences_what_matches(browser, world):
    page = browser.open("/alerts?view=silences", "main .blank, .tbl tbody td", token="admin")
    page.click("text=Silence what matches")
    act = page.locator("[role=dialog] .btn.main")
    assert act.is_disabled(), "of everything there is no silence"
    page.fill("[role=dialog] input >> nth=0", "disk_*, node_offline")
    page.fill("[role=dialog] input >> nth=4", "gpu-9*")
    line = "argus alert silence-match --rule 'disk_*' --rule node_offline --name 'gpu-9*' --for 2h"
    assert line in page.inner_text("[role=dialog] footer")
    act.click()
    row = page.locator(".tbl tbody tr", has_text="disk_*")
    row.wait_for()
    (silence,) = [s for s in world.argusd.get("/v1/silences")["silences"] if "disk_*" in s["rules"]]
    assert (silence["rules"], silence["names"]) == (["disk_*", "node_offline"], ["gpu-9*"])
    row.locator(".btn").click()
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector(".tbl, main .blank")
    until(lambda: page.locator(".tbl tbody tr", has_text="disk_*").count() == 0, "it has ended")
    page.context.close()


def test_an_incident_has_a_report(browser, world):
    page = browser.open("/alerts?view=incidents", ".tbl tbody td")
    page.click(".tbl a.said-block")
    report = page.get_attribute(".drawer footer a", "href")
    text = page.evaluate("(at) => fetch(at).then((r) => r.text())", report)
    name = re.search(r"/incidents/(i[0-9]+)/", report)[1]  # on a slow machine there is more than one
    assert text.startswith("<!doctype html>") and f"<h1>Incident {name}" in text
    page.context.close()


def test_a_rule_is_added_and_removed(browser, world):
    page = browser.open("/alerts?view=rules", ".tbl tbody td", token="admin")
    page.click("text=Add a rule")
    for i, text in enumerate(["disk_tight", "disk_free < 50GiB", "5m", "disk is tight"]):
        page.fill(f"[role=dialog] input.field >> nth={i}", text)
    page.click("[role=dialog] .btn.main")
    page.click("[aria-label='Remove disk_tight']")
    page.click("[role=dialog] .btn.main")
    until(lambda: page.locator(".tbl tr", has_text="disk_tight").count() == 0, "the rule is gone")
    page.context.close()


def test_events_are_live_and_their_chain_is_whole(browser, world):
    page = browser.open("/events?kind=priority", "main .blank", token="admin")
    page.wait_for_selector(".live:not(.off)")
    page.goto(page.url.split("?")[0])
    page.wait_for_selector(".tbl tbody td")
    rows = page.locator(".tbl tbody tr").count()
    path = f"/v1/jobs/{world.jobs['waits']}:priority"
    assert world.argusd.call("POST", path, {"priority": 61}, token="admin").status == 200
    page.wait_for_selector(".e-new button")
    assert page.locator(".tbl tbody tr").count() == rows, "what one reads keeps its place"
    page.click(".e-new button")
    until(lambda: page.locator(".tbl tbody tr").count() > rows, "and then they are there")
    page.click("text=Check the chain")
    page.wait_for_selector(".e-chain.ok")
    page.context.close()


def test_events_of_a_time_are_shown_and_exported(browser, world):
    page = browser.open("/events?actor=alice", ".tbl tbody td", token="admin")
    page.fill("input[aria-label=Latest]", "2020-01-01T00:00")
    page.locator("input[aria-label=Latest]").blur()
    page.wait_for_selector("main .blank:has-text('Nothing matches')")
    page.click("main .blank .btn")
    page.wait_for_selector(".tbl tbody td")
    assert page.input_value("input[aria-label=Latest]") == ""
    page.goto(f"{page.url.split('?')[0]}?actor=alice")
    page.wait_for_selector(".tbl tbody td")
    href = page.get_attribute("a[download]:has-text('JSON')", "href")
    text = page.evaluate("(at) => fetch(at).then((r) => r.text())", href)
    rows = [json.loads(line) for line in text.splitlines()]
    assert rows and {r["actor"] for r in rows} == {"alice"}
    page.context.close()


def test_people_and_quotas_are_set(browser, world):
    page = browser.open("/people", ".tbl tbody td", token="admin")
    page.click("text=Add a project")
    page.fill("[role=dialog] input >> nth=0", "rlhf")
    page.fill("[role=dialog] input >> nth=1", "alice")
    assert "argus project add rlhf --member alice" in page.inner_text("[role=dialog] footer")
    page.click("[role=dialog] .btn.main")
    page.click(".tbl a:has-text('rlhf')")
    page.click(".drawer footer .btn:has-text('Quota')")
    page.fill("[role=dialog] input >> nth=0", "8")
    page.fill("[role=dialog] input >> nth=1", "16")
    assert "argus quota set --project rlhf --guaranteed 8 --gpus 16" in page.inner_text("[role=dialog] footer")
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector(".drawer .quotabar b")
    assert world.argusd.call("GET", "/v1/projects/rlhf", token="admin").json()["quota"]["gpus_ceiling"] == 16
    page.click(".drawer footer .btn.bad")
    assert "Remove project rlhf?" in page.inner_text("[role=dialog] h1")
    page.click("[role=dialog] .btn.main")
    until(lambda: page.locator(".tbl tr", has_text="rlhf").count() == 0, "it is gone")
    page.context.close()


def test_an_admin_revokes_the_token_of_another(browser, world):
    made = world.argusd.call("POST", "/v1/tokens", {"name": "lost-laptop"}, token="user").json()
    body = {"token": made["token"]}
    assert world.argusd.call("POST", "/v1/session", body, token=None, User_Agent="lost browser").status == 201
    page = browser.open("/people?view=users&user=alice", ".opens-tokens .tbl tbody td", token="admin")
    page.click(".opens-sessions tr:has-text('lost browser') button")
    assert "argus session end" in page.inner_text("[role=dialog] footer")
    page.click("[role=dialog] .btn.main")
    until(lambda: page.locator(".opens-sessions tr", has_text="lost browser").count() == 0, "it is logged out")
    page.click("[aria-label='Revoke lost-laptop']")
    assert f"argus token revoke {made['id']}" in page.inner_text("[role=dialog] footer")
    page.click("[role=dialog] .btn.main")
    until(lambda: page.locator(".opens-tokens tr", has_text="lost-laptop").count() == 0, "it is gone")
    assert world.argusd.call("GET", "/v1/whoami", token=made["token"]).status == 401
    page.context.close()
    page = browser.open("/people?view=users&user=alice", ".drawer .kv")
    assert page.locator(".opens-tokens").count() == 0, "who may change nothing is offered nothing"
    page.context.close()


def test_a_token_is_shown_once(browser, world):
    page = browser.open("/settings", "#tokens .tbl tbody td")
    page.click("text=Make a token")
    page.fill("[role=dialog] input >> nth=0", "ci")
    page.click("[role=dialog] .btn.main")
    token = page.inner_text(".set-token")
    assert token.startswith("argus_")
    page.reload()
    page.click("[aria-label='Revoke ci']")
    assert token not in page.content(), "never again"
    page.click("[role=dialog] .btn.main")
    until(lambda: page.locator("#tokens tr", has_text="ci").count() == 0, "it is gone")
    page.context.close()


def test_a_foreign_job_is_adopted(browser, world):
    page = browser.open("/nodes?view=foreign", ".tbl tbody td", token="admin")
    page.click(".tbl button")
    page.fill("[role=dialog] input >> nth=0", "default")
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector(".tbl tbody td:has-text('default')")
    page.context.close()


def test_a_viewer_is_offered_nothing(browser, world):
    page = browser.open(f"/jobs/{world.jobs['running']}", ".charts canvas", token="viewer")
    assert page.locator(".job-head .btn").count() == 0
    page.context.close()


def test_another_ones_job_is_not_there(browser, world):
    page = browser.open(f"/jobs/{world.jobs['other']}", ".blank")
    assert "no such job" in page.inner_text("main")
    page.context.close()


def test_the_address_holds_the_state(browser, world):
    page = browser.open("/jobs?state=live&sort=-name&q=grpo", ".vrow")
    assert page.input_value("input[type=search]") == "grpo"
    assert page.locator("[aria-sort=descending]").inner_text() == "Job"
    names = page.locator(".vrow .name").all_inner_texts()
    assert names and names == sorted(names, key=str.lower, reverse=True) and all("grpo" in n for n in names)
    page.context.close()


def test_a_log_is_searched_by_the_server(browser, world):
    page = browser.open(f"/jobs/{world.jobs['running']}?log=step:14%5B01%5D%20", "#log mark")
    until(lambda: page.locator("#log li").count() == 2, "two lines are found")
    page.context.close()


@pytest.mark.parametrize("path, there", [(p, t) for p, t in PAGES.values()], ids=list(PAGES))
def test_hostile_texts_are_texts(browser, world, path, there):
    """A job's name and log try to be markup, a title, a cleared screen, the other direction."""
    page = browser.open(path.format(**{**world.jobs, "running": world.jobs["hostile"]}), "main h1")
    assert page.evaluate("window.__alerts || []") == []
    marks = "main img:not(.cm-widgetBuffer), main script, main iframe, main [onclick], main [onerror]"
    assert page.locator(marks).count() == 0
    assert "owned" not in page.title()
    shown = page.inner_text("main")
    assert not set("\u202e\u200b\x1b\x07") & set(shown), "what hides or turns a text is made visible"
    page.context.close()


def test_the_hostile_log_is_shown(browser, world):
    page = browser.open(f"/jobs/{world.jobs['hostile']}", "#log li")
    until(lambda: page.locator("#log li").count() >= 4, "all of its lines")
    text = page.inner_text("#log")
    assert "<script>document.title='owned'</script>" in text and "<b onclick=alert(3)>bold</b>" in text
    assert page.locator("#log .ansi-bad").first.inner_text() == "red"
    assert page.inner_text(".job-head h1").startswith(HOSTILE_NAME[:28])
    assert page.wrong == []
    page.context.close()


def test_ten_thousand_rows_are_a_few_in_the_document(browser, world):
    page = browser.page()
    row = world.argusd.all_jobs()[0]
    many = {"jobs": [{**row, "id": f"job-{i}", "name": f"job {i}"} for i in range(10_000)], "next_cursor": None}
    body = json.dumps(many)
    page.route("**/v1/jobs?*", lambda r: r.fulfill(body=body, content_type="application/json"))
    page.goto(world.argusd.url + "/jobs")
    page.wait_for_selector(".vrow")
    assert page.locator(".vrow").count() < 80
    page.evaluate("document.querySelector('.vlist').scrollTop = 1e9")
    page.wait_for_selector("text=job 9999")
    assert page.locator(".vrow").count() < 80
    page.context.close()
