# SPDX-License-Identifier: Apache-2.0
"""A job that waits, in a browser: each node that was looked at, what has to end, and what if it asked otherwise."""

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
    with World(tmp_path_factory.mktemp("queue"), full=False) as w:
        script, keys = w.holds()
        w.submit("wide", script, name="half of each node", nnodes=4, n_gpus_per_node=4, timeout="5h", **keys)
        w.argusd.wait_state(w.jobs["wide"], "RUNNING")
        yield w
        w.gate.write_text("")


def test_a_waiting_job_is_changed_in_place(browser, world):
    script, keys = world.holds()
    job = world.submit("waits", script, name="a whole node", n_gpus_per_node=8, **keys)
    page = browser.open(f"/queue?why={job}", ".drawer .looks li")
    looks = page.locator(".drawer .looks li")
    assert looks.count() == 4, "each node of the pool"
    assert "4 of 8 GPUs are free" in page.inner_text(".drawer .looks")
    assert world.jobs["wide"] in page.inner_text(".drawer"), "what has to end before"
    page.wait_for_selector(".drawer .patch.hint:has-text('n_gpus_per_node: 4')")
    page.click("text=What would come of it?")
    page.wait_for_selector("#whatif :text('at once')")
    assert f"argus change --nnodes 2 --gpus 4 {job}" in page.inner_text("#whatif .cli")
    page.fill("#whatif label:has-text('Nodes') input", "9")
    page.wait_for_selector("#whatif .btn.main[disabled], #whatif p.said")
    assert world.argusd.job(job)["state"] == "QUEUED", "nothing of it was done"
    page.fill("#whatif label:has-text('Nodes') input", "2")
    page.wait_for_selector("#whatif :text('at once')")
    page.click("#whatif .btn.main:not([disabled])")
    until(lambda: world.argusd.job(job)["state"] == "RUNNING", "it starts on what is free")
    assert (world.argusd.job(job)["nnodes"], world.argusd.job(job)["gpus"]) == (2, 8)
    assert page.wrong == []
    page.context.close()
    world.argusd.stop_job(job)


def test_a_hint_has_its_button(browser, world):
    script, keys = world.holds()
    job = world.submit("hinted", script, name="a whole node again", n_gpus_per_node=8, **keys)
    page = browser.open(f"/queue?why={job}", ".drawer .patch.hint", lang="zh")
    assert "空闲 4 块" in page.inner_text(".drawer .looks")
    page.click("text=按此更改")
    until(lambda: world.argusd.job(job)["state"] == "RUNNING", "it starts so")
    (event,) = (e for e in world.argusd.events(job) if e["kind"] == "change")
    assert event["actor"] == "alice"
    page.context.close()
    world.argusd.stop_job(job)
