# SPDX-License-Identifier: Apache-2.0
"""Services in a browser: served, asked, deployed, scaled, rolled back, stopped; what each state looks like."""

import os
import pathlib

import pytest
from test_pages import violations
from webbed import CHROMIUM, World, ask_again

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("services"), full=False) as w:
        w.model()
        yield w


def shot(page, name):
    """With ARGUS_SHOTS a picture of the whole page is kept there."""
    if os.environ.get("ARGUS_SHOTS"):
        page.screenshot(path=pathlib.Path(os.environ["ARGUS_SHOTS"]) / f"{name}.png", full_page=True)


def service(world, name="sums"):
    return world.argusd.get(f"/v1/services/{name}", token="user")


def act(page, name):
    page.click(f".head .btn:has-text('{name}')")
    page.wait_for_selector("[role=dialog]")


def line(page):
    return page.inner_text("[role=dialog] footer .cli span")


def do(page):
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector("[role=dialog]", state="detached")


def test_a_service_from_its_first_version_to_its_end(browser, world):
    page = browser.open("/services", "main .blank:has-text('No services yet')")
    shot(page, "none")
    page.click(".head button:has-text('Serve a model')")
    assert page.locator("[role=dialog] .btn.main").is_disabled(), "what is served is not said yet"
    page.fill("[role=dialog] label:has-text('A registered model') input", "tiny")
    page.fill("[role=dialog] label:has-text('Name') input", "sums")
    page.fill("[role=dialog] label:has-text('GPUs of one') input", "1")
    page.fill("[role=dialog] label:has-text('Tokens per user') input", "9000")
    assert line(page) == "argus serve tiny --name sums --gpus 1 --tokens-per-minute 9000"
    shot(page, "serve")
    page.click("[role=dialog] .btn.main")
    page.wait_for_url("**/services/sums")
    page.wait_for_selector(".svc-title .st:has-text('Ready')")
    lease = service(world)["versions"][0]["replicas"][0]
    assert page.inner_text(".reps-node") == lease["node"]
    assert page.locator(f".rep a[href='/jobs/{lease['job']}']").count() == 1
    model = browser.open("/models/tiny@1", ".onward a[href='/services/sums']")
    assert "/v1/services/sums/v1" in model.inner_text(".onward"), "the model's page says where it answers"
    model.context.close()
    # The box asks as any client does, and shows the words as they come.
    page.fill("#try textarea", "6 times 7?")
    assert "argus service ask sums '6 times 7?'" in page.inner_text("#try .cli")
    page.click("#try .btn.main")
    page.wait_for_selector("#try .lib-pre:has-text('0123')")
    page.wait_for_selector("#try .try-facts:has-text('4 tokens')")
    page.wait_for_selector(".svc-calls td:has-text('POST /v1/chat/completions')")
    world.ray.settings(serve_sick=["sums-v1"])
    page.click("#try .btn.main")
    page.wait_for_selector("#try .note.bad:has-text('Internal Server Error')")
    world.ray.settings(serve_sick=[])
    page.click("button:has-text('Failed')")
    until(lambda: page.locator(".svc-calls tbody tr").count() == 1, "what failed stands alone")
    assert "calls=failed" in page.url and "argus service requests sums --failed" in page.inner_text("main")
    page.wait_for_selector(".svc-charts canvas")
    shot(page, "service-whole")
    # The next version, and back.
    act(page, "Deploy a version")
    page.fill("[role=dialog] label:has-text('Tokens per user') input", "0")
    assert line(page) == "argus service deploy sums --tokens-per-minute 0"
    assert "holds 1 GPU more" in page.inner_text("[role=dialog]")
    do(page)
    page.wait_for_selector("tr.is-current:has-text('v2')")
    act(page, "Roll back")
    assert line(page) == "argus service rollback sums --version 1" and "It is warm" in page.inner_text("[role=dialog]")
    do(page)
    page.wait_for_selector("tr.is-current:has-text('v1')")
    act(page, "Scale")
    page.fill("[role=dialog] input", "2")
    assert line(page) == "argus service scale sums 2"
    do(page)
    page.wait_for_selector(".fig:has-text('2 of 2')")
    page.wait_for_selector(".happened code:has-text('service_scaled')")
    shot(page, "two")
    act(page, "Stop")
    said = page.inner_text("[role=dialog]")
    assert "Its 4 replicas finish" in said and line(page) == "argus service stop sums", said
    shot(page, "stop")
    do(page)
    page.wait_for_selector(".svc-title .st:has-text('Stopped')")
    page.wait_for_selector(".blank:has-text('No replicas')")
    assert page.locator("#try .btn.main").is_disabled()
    shot(page, "stopped")
    act(page, "Remove")
    page.click("[role=dialog] .btn.main")
    page.wait_for_url("**/services")
    page.wait_for_selector("main .blank:has-text('No services yet')")
    assert {x for x in page.wrong if "500" not in x and "404" not in x} == set()  # sick, then gone
    page.context.close()


def test_its_other_states(browser, world):
    world.ray.settings(serve_failing=["bad-v1"])
    reply = world.argusd.call("POST", "/v1/services", {"model": "tiny", "name": "bad", "gpus": 9}, token="user")
    assert reply.status == 201, reply
    page = browser.open("/services/bad", ".note.quiet:has-text('Why it is not ready')", lang="en", width=900)
    assert "GPUs" in page.inner_text(".note.quiet") and page.locator(".reps-none").count() == 1
    assert page.locator("#try .btn.main").is_disabled() and "nothing can be asked now" in page.inner_text("#try")
    shot(page, "waits-900")
    world.argusd.stop()
    page.wait_for_selector(".stale")
    assert page.inner_text("h1").startswith("bad"), "what was there stays"
    world.argusd.start()
    ask_again(page)
    page.wait_for_selector(".stale", state="detached")
    page.context.close()
    page = browser.open("/services/bad", ".svc-figs", token="viewer", lang="zh", theme="dark")
    assert page.locator(".head .btn").count() == 0 and page.locator("#try").count() == 0, "who watches does nothing"
    shot(page, "viewer")
    page.goto(f"{world.argusd.url}/services/nosuch")
    page.wait_for_selector("main .blank:has-text('没有这个服务')")
    page.context.close()
    world.argusd.call("DELETE", "/v1/services/bad", token="user")


def test_an_application_is_asked_by_path(browser, world):
    world.ray.settings(serve_failing=[])
    reply = world.argusd.call("POST", "/v1/services", {"app": "m:app", "name": "lens", "cpus": 1}, token="user")
    assert reply.status == 201, reply
    page = browser.open("/services/lens", ".svc-figs")
    assert page.inner_text(".svc-line pre >> nth=0").endswith("/v1/services/lens/")
    page.fill("#try input", "/x")
    page.fill("#try textarea", "{")
    assert page.inner_text("#try .cli").startswith("argus service ask lens --path /x --body")
    page.context.close()
    world.argusd.call("DELETE", "/v1/services/lens", token="user")


def test_keys_and_settings(browser, world):
    reply = world.argusd.call("POST", "/v1/services", {"model": "tiny", "name": "keyed"}, token="user")
    assert reply.status == 201, reply
    page = browser.open("/services/keyed", "#keys .blank:has-text('No keys')", lang="en")
    page.click("#keys .btn:has-text('Make a key')")
    page.fill("[role=dialog] label:has-text('What it is for') input", "website")
    page.fill("[role=dialog] label:has-text('Requests/min') input", "60")
    page.fill("[role=dialog] label:has-text('Expires') input", "30d")
    made = "argus service key new keyed --name website --requests-per-minute 60 --expires 30d"
    assert line(page) == made
    do(page)
    text = page.inner_text("#keys .svc-key")
    assert text.startswith("arguskey_")
    until(lambda: world.argusd.get("/v1/service-keys?service=keyed", token="user")["keys"], "it is there")
    page.wait_for_selector("#keys td:has-text('website')")
    assert violations(page) == {}
    page.reload()
    page.wait_for_selector("#keys td:has-text('website')")
    assert text not in page.content(), "it is shown once"
    page.click("#keys button[aria-label='Remove website']")
    page.wait_for_selector("[role=dialog]")
    do(page)
    page.wait_for_selector("#keys .blank:has-text('No keys')")
    # What is kept, and after how long it sleeps, in one dialog.
    page.click(".btn:has-text('Change')")
    page.fill("[role=dialog] label:has-text('Sleeps after') input", "2h")
    assert line(page) == "argus service idle keyed --after 2h"
    do(page)
    page.wait_for_selector(".kv dd:has-text('without a request')")
    assert service(world, "keyed")["idle"] == "7200s"
    page.context.close()
    page = browser.open("/services/keyed", "#keys .blank", token="viewer", lang="zh", theme="dark")
    assert page.locator("#keys .btn").count() == 0, "who watches makes none"
    page.context.close()
    world.argusd.call("DELETE", "/v1/services/keyed", token="user")


def two_versions(world, name):
    """Both ready: the second has the traffic, the first is kept warm."""

    def served(path, version, **body):
        reply = world.argusd.call("POST", path, body, token="user")
        assert reply.status == 201, reply
        until(
            lambda: [v for v in service(world, name)["versions"] if v["n"] == version and v["state"] == "READY"],
            f"{name} v{version} is ready",
        )

    served("/v1/services", 1, model="tiny", name=name, keep="warm")
    served(f"/v1/services/{name}:deploy", 2)
    until(lambda: service(world, name)["current"] == 2, "the second one has the traffic")


FIRST = "#try .try-of label:nth-child(1) select"


def lane(page, version):
    return page.locator(f".try-answer:has(h3:has-text('v{version}'))")


def lines_of(page):
    return page.locator("#try .cli").all_inner_texts()


def asked_versions(world, name):
    return {r["version"] for r in world.argusd.get(f"/v1/services/{name}:requests", token="user")["requests"]}


def test_two_versions_are_asked_the_same_side_by_side(browser, world):
    two_versions(world, "pair")
    page = browser.open("/services/pair", "#try .try-of", lang="en")
    assert lines_of(page) == ["argus service ask pair '1 + 1 ='"], "as every client asks"
    page.select_option("#try label:has-text('Beside it') select", "1")
    page.wait_for_url(lambda url: url.endswith(("?try=2%2C1", "?try=2,1")))
    both = [f"argus service ask pair --version {n} '1 + 1 ='" for n in (2, 1)]
    until(lambda: lines_of(page) == both, "each has its line")
    # Both stream at once, and stop together.
    world.ray.settings(serve_hold=True)
    page.click("#try .btn.main")
    for n in (2, 1):
        lane(page, n).locator("pre:has-text('0')").wait_for()
        lane(page, n).locator("[role=log][aria-busy=true]").wait_for()
    shot(page, "two-versions")
    page.click("#try .try-acts .btn:has-text('End it')")
    for n in (2, 1):
        lane(page, n).locator(".try-facts:has-text('ended by you')").wait_for()
    world.ray.settings(serve_hold=False)
    # By the keyboard alone.
    page.focus("#try textarea")
    page.keyboard.press("Control+Enter")
    for n in (2, 1):
        lane(page, n).locator("pre:has-text('0123')").wait_for()
        facts = lane(page, n).locator(".try-facts:has-text('4 tokens')").inner_text()
        assert "first token after" in facts and "whole after" in facts, facts
    until(lambda: asked_versions(world, "pair") == {1, 2}, "the list of requests names both")
    left, right = lane(page, 2).bounding_box(), lane(page, 1).bounding_box()
    assert left["x"] + left["width"] <= right["x"] and abs(left["y"] - right["y"]) < 2, "side by side"
    assert violations(page) == {}
    # One that fails does not stop the other.
    world.ray.settings(serve_sick=["pair-v1"])
    page.click("#try .btn.main")
    lane(page, 1).locator(".note.bad:has-text('Internal Server Error')").wait_for()
    lane(page, 2).locator("pre:has-text('0123')").wait_for()
    world.ray.settings(serve_sick=[])
    # One alone, and what every client asks again.
    page.select_option("#try label:has-text('Beside it') select", "")
    page.wait_for_url(lambda url: "try=" not in url)
    page.select_option(FIRST, "1")
    page.wait_for_url(lambda url: url.endswith("?try=1"))
    until(lambda: lines_of(page) == ["argus service ask pair --version 1 '1 + 1 ='"], "one has its line")
    page.click("#try .btn.main")
    lane(page, 1).locator("pre:has-text('0123')").wait_for()
    assert page.locator(".try-answer").count() == 1
    page.context.close()
    world.argusd.call("DELETE", "/v1/services/pair", token="user")


def test_two_versions_on_a_narrow_screen_and_in_chinese(browser, world):
    two_versions(world, "twin")
    page = browser.open("/services/twin?try=2,1,7", "#try .try-of", lang="zh", width=390)
    first, second = lane(page, 2).bounding_box(), lane(page, 1).bounding_box()
    assert second["y"] >= first["y"] + first["height"] and abs(first["x"] - second["x"]) < 2, "beneath each other"
    assert "v2 的应答" in page.inner_text("#try") and violations(page) == {}
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"
    page.context.close()
    page = browser.open("/services/twin?try=2,7", "#try .try-of", lang="en")
    assert "No replica of v7 is ready now" in page.inner_text("#try")
    page.context.close()
    world.argusd.call("DELETE", "/v1/services/twin", token="user")


def test_what_is_warm_is_asked_while_what_has_the_traffic_is_not_ready(browser, world):
    two_versions(world, "lone")
    world.ray.settings(serve_sick=["lone-v2"])  # its next replica does not pass its check
    (lease,) = [r["job"] for v in service(world, "lone")["versions"] if v["n"] == 2 for r in v["replicas"]]
    world.argusd.stop_job(lease)
    until(lambda: not service(world, "lone")["ready"], "v2 has no replica that is ready")
    page = browser.open("/services/lone", "#try .try-of", lang="en")
    assert page.input_value(FIRST) == "2" and page.locator("#try .btn.main").is_disabled()
    assert page.locator(f"{FIRST} option").all_text_contents() == ["v2, which has the traffic", "v1"]
    assert "No replica of v2 is ready now" in page.inner_text("#try")
    page.select_option(FIRST, "1")
    page.wait_for_url(lambda url: url.endswith("?try=1"))
    page.click("#try .btn.main")
    lane(page, 1).locator("pre:has-text('0123')").wait_for()
    assert violations(page) == {}
    page.context.close()
    world.ray.settings(serve_sick=[])
    world.argusd.call("DELETE", "/v1/services/lone", token="user")
