# SPDX-License-Identifier: Apache-2.0
"""A new job in a browser: form and spec are one text, a dry run tells what is wrong at its line and its field, and it
is submitted, tried small and saved as a preset."""

import pytest
from webbed import CHROMIUM, World

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]
SPEC = "# mine\nworkload: ray\nname: said\nnnodes: 1\nn_gpus_per_node: 1\nentrypoint: echo hello\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("submit"), full=False) as w:
        until(lambda: w.argusd.post(w.argusd.spec("true"), "?dry_run=1").json()["placement"], "Ray is seen")
        yield w


@pytest.fixture
def page(browser):
    page = browser.open("/submit", ".cm-content")
    page.locator(".cm-content").fill(SPEC)
    yield page
    page.context.close()


def shown(page):
    return "\n".join(page.locator(".cm-line").all_inner_texts())


def test_form_and_spec_are_one_text(page):
    until(lambda: page.input_value("[name=name]") == "said", "the form has what was typed")
    assert page.input_value("[name=entrypoint]") == "echo hello"
    page.fill("[name=name]", "of the form")
    page.press("[name=name]", "Tab")
    until(lambda: "name: of the form" in shown(page), "the spec has what was chosen")
    assert shown(page).startswith("# mine\nworkload: ray\n"), "comments and order stay"
    page.wait_for_selector("text=at once")
    page.reload()
    until(lambda: page.input_value("[name=name]") == "of the form", "the address holds the text")


def test_what_is_typed_stays_while_the_page_is_drawn_anew(page):
    until(lambda: page.input_value("[name=name]") == "said", "the form has what was typed")
    page.fill("[name=name]", "half a wo")
    page.evaluate("document.querySelector('.bar .end .btn[lang]').click()")  # the focus stays where it is
    page.wait_for_selector("html[lang^=zh]")
    assert page.input_value("[name=name]") == "half a wo"
    page.press("[name=name]", "Tab")
    until(lambda: "name: half a wo" in shown(page), "the spec has it when the field is left")


def test_keys_within_a_key_are_completed(page):
    page.locator(".cm-content").fill(SPEC + "checkpoint:\n  kee")
    page.locator(".cm-content").press("Control+End")
    page.locator(".cm-content").press("Control+Space")
    page.wait_for_selector(".cm-tooltip-autocomplete li:has-text('keep_last')")
    page.keyboard.press("Escape")


def test_what_is_wrong_stands_at_its_line_and_its_field(page):
    page.locator(".cm-content").fill(SPEC.replace("nnodes: 1", "nnodes: 0"))
    page.wait_for_selector(".checks .link:has-text('line 4')")
    assert page.locator("label:has([name=nnodes]) .say.bad").count() == 1
    assert page.get_attribute("[name=nnodes]", "aria-invalid") == "true"
    assert page.locator(".plan-acts .btn.main").is_disabled()
    page.click(".checks .link")
    page.keyboard.type("nnodes: 1")  # the line is selected
    page.wait_for_selector(".plan-acts .btn.main:not([disabled])")
    until(lambda: page.locator(".say.bad").count() == 0, "nothing is wrong any more")


def test_what_is_wrong_is_said_in_the_language_that_is_chosen(page):
    page.locator(".cm-content").fill(SPEC.replace("nnodes: 1", "nnodes: 0"))
    wrong = page.locator("label:has([name=nnodes]) .say.bad")
    until(lambda: wrong.count() and wrong.inner_text().isascii(), "it is said in English")
    page.click(".bar .end .btn[lang]")
    until(lambda: wrong.count() and not wrong.inner_text().isascii(), "it is said in Chinese")


def test_a_submit_leads_to_the_job(page, world):
    page.wait_for_selector(".plan-acts .btn.main:not([disabled])")
    page.wait_for_selector("text=at once")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/jobs/ray-*")
    job = page.url.rsplit("/", 1)[1]
    assert world.argusd.job(job)["name"] == "said"


def test_a_spec_becomes_a_preset_that_is_picked(page, world):
    page.wait_for_selector("text=at once")
    page.click("text=Save as preset")
    page.fill("[role=dialog] input", "said-twice")
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector("[role=dialog]", state="detached")
    assert world.argusd.call("GET", "/v1/presets/said-twice", token="user").json()["workload"] == "ray"
    page.goto(world.argusd.url + "/submit?preset=said-twice")
    page.wait_for_selector("text=at once")
    assert shown(page).startswith("preset: said-twice")
    page.click("text=Smoke run")
    page.wait_for_url("**/jobs/ray-*")


def test_a_viewer_submits_nothing(browser):
    page = browser.open("/submit", ".blank", token="viewer")
    assert "You may look" in page.inner_text("main") and page.locator(".rail .btn.main").count() == 0
    page.context.close()
