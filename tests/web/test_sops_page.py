# SPDX-License-Identifier: Apache-2.0
"""The SOPs in a browser: those of docs/sop, each command as it stands there, copied, and a plan that a button makes."""

import pathlib
import re
import urllib.parse

import pytest
from soppage import SOP
from webbed import CHROMIUM, World

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]
KEEPS = "{ value: { writeText: async (text) => { window.__copied = text; } } }"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("sops"), full=False) as w:
        yield w


def title(path: pathlib.Path):
    return path.read_text().partition("\n")[0].removeprefix("# ")


def names():
    return sorted(p.stem for p in SOP.glob("*.md") if not p.stem.endswith(".zh"))


def in_language(name, lang):
    zh = SOP / f"{name}.zh.md"
    return zh if lang == "zh" and zh.exists() else SOP / f"{name}.md"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_all_that_are_shipped_are_listed(browser, world, lang):
    page = browser.open("/ops", "main h1", token="viewer", lang=lang)
    page.click("main a[href='/ops/sops']")
    page.wait_for_selector("main .tbl a[href^='/ops/sops/']")
    assert page.locator("main .tbl a").all_inner_texts() == [title(in_language(n, lang)) for n in names()]
    assert page.wrong == []
    page.context.close()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_command_is_there_as_it_stands(browser, world, lang):
    page = browser.open("/ops/sops", "main .tbl tbody td", token="viewer", lang=lang)
    for name in names():
        page.goto(f"{world.argusd.url}/ops/sops/{name}")
        page.wait_for_selector(".sop-command pre")
        text = in_language(name, lang).read_text()
        wanted = re.findall(r"(?ms)^```sh \S+\n(.*?)\n^```$", text)
        assert page.locator(".sop-command pre").all_text_contents() == wanted, name
        assert page.inner_text("main h1") == title(in_language(name, lang))
    assert page.wrong == []
    page.context.close()


def test_a_command_is_copied_and_its_answer_stands_beside_it(browser, world):
    page = browser.open("/ops/sops/node-off", ".sop-step", token="viewer")
    page.evaluate(f"(() => {{ Object.defineProperty(navigator, 'clipboard', {KEEPS}); }})()")
    step = page.locator(".sop-step", has=page.locator("h3:has-text('2.')"))
    said = step.locator(".sop-command pre").first.text_content()
    assert said.startswith("argus node drain")
    step.locator(".btn:has-text('Copy')").first.click()
    assert until(lambda: page.evaluate("window.__copied"), "it is copied") == said
    assert "draining" in step.locator(".sop-deed").first.inner_text(), "what is expected of it"
    page.fill("input[name=NODE]", "gpu 03")
    page.wait_for_selector(".sop-values pre:has-text(\"export NODE='gpu 03'\")")
    assert urllib.parse.parse_qs(urllib.parse.urlsplit(page.url).query) == {"v.NODE": ["gpu 03"]}
    assert "node=gpu+03" in step.locator("a:has-text('On the page Nodes')").get_attribute("href")
    page.context.close()


def test_a_plan_is_made_by_its_button_and_does_nothing_yet(browser, world):
    assert world.argusd.call("POST", "/v1/projects", {"name": "rlhf", "members": ["alice"]}).status == 201
    job = world.argusd.submit("true", project="rlhf", nnodes=9, n_gpus_per_node=8)
    page = browser.open("/ops/sops/reclaim", ".sop-step", token="admin")
    button = page.locator(".sop-step .btn:has-text('Make this plan')")
    assert button.is_disabled(), "nothing says yet whose jobs"
    assert "Set PROJECT above first" in page.inner_text(".sop-steps")
    page.fill("input[name=PROJECT]", "nobody")
    page.wait_for_selector(".sop-step .btn:has-text('Make this plan'):not([disabled])")
    button.click()
    page.wait_for_selector(".sop-step [role=alert]")
    assert "/ops/sops/reclaim" in page.url, "what is refused is said where it was asked"
    page.fill("input[name=PROJECT]", "rlhf")
    page.wait_for_selector(".sop-step .btn:has-text('Make this plan'):not([disabled])")
    button.click()
    page.wait_for_selector(".drawer .ops-steps li")
    assert job in page.inner_text(".drawer")
    plan = page.url.rpartition("plan=")[2]
    assert world.argusd.get(f"/v1/ops/plans/{plan}", token="admin")["action"] == "stop_many"
    assert world.argusd.job(job)["state"] == "QUEUED", "a plan does nothing by itself"
    page.context.close()
    world.argusd.stop_job(job)


def test_a_viewer_makes_no_plan_and_what_is_not_there_says_so(browser, world):
    page = browser.open("/ops/sops/reclaim?v.PROJECT=x", ".sop-step", token="viewer")
    assert page.locator(".btn:has-text('Make this plan')").count() == 0
    page.goto(f"{world.argusd.url}/ops/sops/nowhere")
    page.wait_for_selector("main .blank-title:has-text('No such SOP')")
    page.context.close()


def test_a_value_of_a_strange_address_cannot_act_in_a_terminal(browser, world):
    evil = urllib.parse.quote("x; rm -rf ~ '\u202e\u0085")  # with those below a space argusd refuses the address
    page = browser.open(f"/ops/sops/reclaim?v.PROJECT={evil}", ".sop-step", token="viewer")
    said = page.locator(".sop-values pre").first.text_content()
    assert said.startswith("export PROJECT='x") and said.endswith("'")
    assert not set("\u0085\u202e") & set(said), "it is one quoted word without control characters"
    page.context.close()


def answered(step):
    """What its first command says now, once it was asked."""
    step.locator(".btn:has-text('Show the answer now')").first.click()
    said = step.locator(".sop-said pre").first
    said.wait_for()
    return said


def test_the_answer_of_now_stands_beside_the_expected_one(browser, world):
    page = browser.open("/ops/sops/node-off", ".sop-step", token="viewer")
    step = page.locator(".sop-step", has=page.locator("h3:has-text('1.')"))
    asked = []
    page.on("request", lambda r: "/v1/" in r.url and asked.append((r.method, urllib.parse.urlsplit(r.url).path)))
    said = answered(step).text_content()
    nodes = {n["name"] for n in world.argusd.get("/v1/nodes", token="viewer")["nodes"]}
    assert {line.split()[0] for line in said.splitlines()} == nodes and "online" in said, said
    assert step.locator(".sop-said p").last.text_content() == "argus node ls"
    assert ("GET", "/v1/nodes") in asked and {method for method, _ in asked} == {"GET"}
    drain = page.locator(".sop-step", has=page.locator("h3:has-text('2.')"))
    assert drain.locator(".btn:has-text('Show the answer now')").count() == 0, "it does something"
    assert page.wrong == []
    page.context.close()


def test_an_answer_waits_for_its_values_and_a_refusal_is_one(browser, world):
    job = world.argusd.submit("true", nnodes=9, n_gpus_per_node=8)
    page = browser.open("/ops/sops/ray-job", ".sop-step", token="admin")
    step = page.locator(".sop-step", has=page.locator(".sop-command pre:has-text('argus status')")).first
    assert step.locator(".btn:has-text('Show the answer now')").first.is_disabled(), "nothing says yet which job"
    page.fill("input[name=JOB]", job)
    step.locator(".btn:has-text('Show the answer now'):not([disabled])").first.wait_for()
    said = answered(step).text_content()
    assert said.startswith(job) and "QUEUED" in said, said
    page.fill("input[name=JOB]", "nobodys")
    answered(step)
    page.wait_for_selector(".sop-said pre.c-bad:has-text(\"no job 'nobodys'\")")
    page.context.close()
    world.argusd.stop_job(job)
