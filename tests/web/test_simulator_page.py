# SPDX-License-Identifier: Apache-2.0
"""The simulator in a browser, settings that follow a person to another one, and the plan that a drain shows first."""

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
    with World(tmp_path_factory.mktemp("simulator"), full=False) as w:
        yield w


def test_a_trace_is_sent_played_and_forgotten(browser, world, tmp_path):
    trace = tmp_path / "jobs.csv"
    rows = [f"{1.7e9 + 60 * i:.0f},{600 + 7 * i},{1 + i % 8}" for i in range(300)]
    trace.write_text("\n".join(["submit_time,duration_s,num_gpus", *rows]) + "\n")
    page = browser.open("/simulator?source=trace&nodes=2x8", ".sim-drop")
    assert page.is_disabled(".sim-go .btn")
    page.set_input_files(".sim-drop input", str(trace))
    page.uncheck(".sim-policy:has-text('easy') input")
    assert "policy=fair%2Cfifo" in page.url or "policy=fair,fifo" in page.url
    page.click(".sim-go .btn")
    page.wait_for_selector(".sim-charts canvas")
    sim = page.url.rpartition("/")[2]
    assert world.argusd.get(f"/v1/simulations/{sim}", token="user")["name"] == "jobs.csv"
    assert page.locator(".sim-side tbody tr").count() == 2
    assert "fair" in page.inner_text(".sim-verdict")
    page.reload()  # its address is all that it needs
    page.wait_for_selector(".sim-charts canvas")
    page.click("button:has-text('Forget')")
    page.click("[role=dialog] button:has-text('Forget the simulation')")
    page.wait_for_selector(".sim-form")
    assert world.argusd.call("GET", f"/v1/simulations/{sim}", token="user").status == 404
    assert page.wrong == []
    page.context.close()


def test_what_fails_says_why_and_a_viewer_only_looks(browser, world):
    page = browser.open("/simulator?since=7d", ".sim-form")
    page.click(".sim-go .btn")
    page.wait_for_selector("code:has-text('simulation_no_jobs')")
    path = page.url.removeprefix(world.argusd.url)
    page.context.close()
    page = browser.open(path, "code:has-text('simulation_no_jobs')", token="viewer")
    assert page.locator("text=Ask anew").count() == 0
    page.context.close()
    page = browser.open("/simulator/sim-none", ".blank", token="viewer")
    assert "not_found" in page.inner_text("main")
    page.goto(world.argusd.url + "/simulator")
    page.wait_for_selector("text=may look at simulations")
    page.context.close()


def test_views_follow_the_person(browser, world):
    page = browser.open("/jobs?state=FAILED", ".blank")
    page.click("text=Save this view")
    page.fill(".view-save input", "what broke")
    page.press(".view-save input", "Enter")
    page.wait_for_selector(".views a:has-text('what broke')")
    kept = lambda: world.argusd.get("/v1/me/settings", token="user")["settings"].get("jobs.views")  # noqa: E731
    until(lambda: kept() == [{"says": "what broke", "search": "state=FAILED"}], "it is kept")
    page.context.close()
    other = browser.open("/jobs", ".views a:has-text('what broke')")  # another browser
    other.click(".views a:has-text('what broke')")
    other.click("text=Forget view what broke")
    until(lambda: kept() == [], "it is forgotten")
    other.context.close()
    theirs = browser.open("/jobs", ".blank", token="viewer")
    assert theirs.locator("text=what broke").count() == 0
    theirs.context.close()


def test_a_drain_shows_its_plan(browser, world):
    job = world.submit("held", "while [ ! -e " + str(world.gate) + " ]; do sleep 0.2; done", n_gpus_per_node=8)
    view = world.argusd.wait_state(job, "RUNNING")
    node = view["nodes"][0]["name"]
    body = {"name": node, "host": "127.0.0.1", "port": 1}
    assert world.argusd.call("POST", "/v1/nodes", body).status == 201
    (at,) = [n["node_id"] for n in world.ray.ask("GET", "state")["nodes"] if n["name"] == node]
    world.ray.add_job(submission_id="theirs", driver_node_id=at)  # somebody else's
    planned = lambda: world.argusd.call("POST", f"/v1/nodes/{node}:drain?dry_run=1", {}).json()  # noqa: E731
    until(lambda: planned()["foreign"], "argusd knows it")
    page = browser.open(f"/nodes?node={node}", ".drawer", token="admin")
    page.click(".drawer button:has-text('Drain')")
    page.wait_for_selector("[role=dialog] .plan-jobs li:has-text('runs to its end')")
    page.select_option("[role=dialog] select", "stop")
    page.wait_for_selector("[role=dialog] .plan-jobs li:has-text('is stopped')")
    assert "alice" in page.inner_text("[role=dialog] .plan-jobs")
    page.wait_for_selector("[role=dialog] .plan-others li:has-text('theirs'):has-text('runs to its end')")
    page.check("[role=dialog] .tick input")
    page.wait_for_selector("[role=dialog] .plan-others li:has-text('is stopped')")
    page.click("[role=dialog] button:has-text('Cancel')")
    assert world.argusd.get(f"/v1/nodes/{node}")["drain"] is None
    world.gate.write_text("")
    page.context.close()
