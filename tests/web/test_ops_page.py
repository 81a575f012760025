# SPDX-License-Identifier: Apache-2.0
"""The page Ops on a phone: a plan is approved by one admin and applied by another, and each step's check is seen. Below
the plans stand the remedies of argusd, and what they did."""

import json

import pytest
from test_pages import is_sound
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


def reason(code, text):
    return {"code": code, "text": text}


ENDED = "2 processes of 'sft-1' have ended, 0 of them by SIGKILL; 0 remain"
ACTS = [
    {
        "remedy": "raylet", "node": "gpu-02", "at": "2026-11-21T10:05:00.000Z", "ended_at": None,
        "why": reason("remedy_raylet", "its raylet died"), "outcome": "under_way", "found": None,
    },
    {
        "remedy": "stray_process", "node": "gpu-01", "at": "2026-11-21T10:00:00.000Z",
        "ended_at": "2026-11-21T10:00:02.000Z", "outcome": "done",
        "why": reason("remedy_stray_process", "2 processes of 'sft-1', which is over, are ended"),
        "found": reason("remedy_stray_done", ENDED),
    },
]  # fmt: skip


@pytest.mark.parametrize("lang, width", [("en", 1280), ("zh", 390)])
def test_remedies_stand_there_with_what_they_did(browser, world, lang, width):
    said = world.argusd.get("/v1/remedies", token="viewer")
    page = browser.open("/ops", "#remedies .tbl tbody tr", token="viewer", lang=lang, width=width)
    rows = page.locator("#remedies .tbl tbody tr").all_inner_texts()
    assert len(rows) == len(said["remedies"]) == 3
    assert all(r["key"] in row for r, row in zip(said["remedies"], rows, strict=True)), rows
    page.wait_for_selector("#remedy-acts .blank-title")

    # As of a day on which something was put right: argusd has no machine of its own here.
    said["remedies"][0] |= {"on": False, "nodes": [{"node": "gpu-01", "acts": 12, "leave": "spent"}]}
    body = json.dumps(said | {"acts": ACTS})
    page.route("**/v1/remedies*", lambda r: r.fulfill(status=200, body=body, content_type="application/json"))
    page.reload()
    page.wait_for_selector("#remedy-acts .tbl tbody tr")
    first = page.locator("#remedies .tbl tbody tr").first.inner_text()
    assert "gpu-01 12/12" in first and {"en": "off", "zh": "关闭"}[lang] in first
    acts = page.locator("#remedy-acts .tbl tbody tr").all_inner_texts()
    assert "its raylet died" in acts[0] and {"en": "under way", "zh": "进行中"}[lang] in acts[0]
    assert "gpu-01" in acts[1] and ENDED in acts[1] and {"en": "done", "zh": "完成"}[lang] in acts[1]
    assert page.get_attribute("#remedy-acts .tbl tbody tr >> nth=1 >> a", "href") == "/nodes?node=gpu-01"
    is_sound(page)
    assert page.wrong == []
    page.context.close()
