# SPDX-License-Identifier: Apache-2.0
"""The page Ops on a phone: a plan is approved by one admin and applied by another, and each step's check is seen."""

import pytest
from webbed import CHROMIUM, World

from argusd import needs_argusd

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]
PHONE = {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("ops"), full=False, more="ops: {approvals: 1}") as w:
        assert w.argusd.call("POST", "/v1/users", {"name": "eve", "role": "admin"}).status == 201
        w.argusd.tokens["eve"] = w.argusd.call("POST", "/v1/tokens", {"user": "eve"}).json()["token"]
        yield w


def waiting_plan(world):
    job = world.argusd.submit("true", nnodes=9, n_gpus_per_node=8)
    reply = world.argusd.call("POST", "/v1/ops/stop_many", {"jobs": [job]}, token="user")
    assert reply.status == 201 and reply.json()["needs"] == 1, reply
    return job, reply.json()["id"]


def buttons(page):
    return page.locator(".drawer footer .btn:visible").all_inner_texts()


def test_a_plan_is_approved_and_applied_on_a_phone(browser, world):
    job, plan = waiting_plan(world)
    page = browser.open(f"/ops?plan={plan}", ".drawer .ops-steps li", token="eve", **PHONE)
    assert buttons(page) == ["Approve"], "it waits for an approval: nobody can apply it yet"
    page.click(".drawer footer .btn:has-text('Approve')")
    assert job in page.inner_text("[role=dialog]"), "what it touches is named first"
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector(".drawer footer .btn:has-text('Apply')")
    assert buttons(page) == ["Apply"] and world.argusd.job(job)["state"] == "QUEUED"
    page.context.close()

    page = browser.open(f"/ops?plan={plan}", ".drawer .ops-steps li", token="user", **PHONE)
    page.click(".drawer footer .btn:has-text('Apply')")
    assert job in page.inner_text("[role=dialog]")
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector(".drawer .ops-steps li:has-text('1 of 1 jobs have ended')")
    assert page.locator(".drawer footer .btn").count() == 0, "it is applied once"
    world.argusd.wait_state(job, "STOPPED")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.context.close()


def test_who_made_a_plan_does_not_approve_it(browser, world):
    _, plan = waiting_plan(world)
    page = browser.open(f"/ops?plan={plan}", ".drawer .ops-steps li", token="user", **PHONE)
    assert page.locator(".drawer footer .btn").count() == 0
    page.context.close()
