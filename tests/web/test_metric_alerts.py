# SPDX-License-Identifier: Apache-2.0
"""Alerts of metrics in a browser: those of a project are shown, added and removed on its page, which says on which jobs
they hold now; and the page of a job marks on the metric's curve where one fired and where it ended."""

import json

import pytest
from webbed import CHROMIUM, World

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]

LOW = "actor/entropy < 0.5 for 3 steps"
NAN = "critic/score/mean is nan"
ODD = "actor/odd_ratio > 0.5 for 3 steps"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("alerts"), full=False) as w:
        yield w
        w.gate.write_text("")


def training(world, name, metric, values, **keys):
    """The id of a running job that told these values of a metric, one a step."""
    argusd = world.argusd
    script, held = world.holds("")
    job = argusd.submit(script, name=name, **held, **keys)
    argusd.wait_state(job, "RUNNING")
    with open(argusd.job_dir(job) / "attempts/1/metrics.jsonl", "a") as f:
        for step, value in enumerate(values, 1):
            data = {"critic/score/mean": 0.2 + step / 100, "timing_s/step": 10.0, metric: value}
            f.write(json.dumps({"step": step, "data": data}) + "\n")
    argusd.wait_job(job, lambda j: j["step"] == len(values), "is at its step")
    return job


def test_the_alerts_of_a_project(browser, world):
    argusd = world.argusd
    assert argusd.call("POST", "/v1/projects", {"name": "rl", "members": ["alice"]}).status == 201
    page = browser.open("/people?project=rl", ".alerts-of:has-text('asks for no alerts')", token="admin")
    page.click(".alerts-of button:has-text('Add an alert')")
    act = page.locator("[role=dialog] .btn.main")
    assert act.is_disabled(), "without an alert"
    page.fill("[role=dialog] input", "actor/entropy under 0.5")
    act.click()
    page.wait_for_selector("[role=dialog] .said:has-text(\"in column 15, where 'under' stands\")")
    page.fill("[role=dialog] input", LOW)
    footer = page.locator("[role=dialog] footer")
    footer.filter(has_text=f"argus project set rl --alert '{LOW}'").wait_for()
    act.click()
    page.wait_for_selector(f".alerts-of td:has-text('{LOW}')")
    assert argusd.get("/v1/projects/rl")["alerts"] == [LOW]
    assert argusd.call("PATCH", "/v1/projects/rl", {"alerts": [LOW, NAN]}).status == 200
    page.wait_for_selector(f".alerts-of td:has-text('{NAN}')")

    job = training(world, "slips", "actor/entropy", [1.0] * 5 + [0.25] * 3, project="rl")
    row = lambda alert: page.locator(".alerts-of tbody tr", has_text=alert)  # noqa: E731
    row(LOW).locator("a", has_text="slips").wait_for()
    assert row(LOW).locator("a").get_attribute("href") == f"/jobs/{job}"
    assert row(NAN).locator("a").count() == 0, "that one does not hold"

    mine = browser.open("/people?project=rl", ".alerts-of a:has-text('slips')", lang="zh")
    assert "指标告警" in mine.inner_text(".alerts-of") and NAN in mine.inner_text(".alerts-of")
    assert mine.locator(".alerts-of button").count() == 0, "who may change nothing is offered nothing"
    assert mine.wrong == []
    mine.context.close()

    page.click(f"[aria-label='Remove {NAN}']")
    footer.filter(has_text=f"argus project set rl --alert '{LOW}'").wait_for()
    page.click("[role=dialog] .btn.main")
    until(lambda: row(NAN).count() == 0, "the alert is removed")
    assert argusd.get("/v1/projects/rl")["alerts"] == [LOW]
    page.click(f"[aria-label='Remove {LOW}']")
    footer.filter(has_text="argus project set rl --no-alerts").wait_for()
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector(".alerts-of:has-text('asks for no alerts')")
    assert argusd.get("/v1/projects/rl")["alerts"] == []
    low, _ = argusd.job(job)["metric_alerts"]
    assert low["stands"] and low["of_project"], "a job keeps what its project had"
    page.context.close()
    argusd.stop_job(job)


def test_where_an_alert_fired_and_ended_on_the_curve(browser, world):
    argusd = world.argusd
    job = training(world, "marked", "actor/odd_ratio", [0.1] * 5 + [0.9] * 3 + [0.1] * 4, alerts=[ODD])
    spans = lambda j: (j["metric_alerts"] or [{}])[0].get("spans", [])  # noqa: E731
    (span,) = spans(argusd.wait_job(job, lambda j: any(s["ended_at"] for s in spans(j)), "its alert has ended"))
    assert (span["metric"], span["step"], span["seen_at"], span["ended_at"]) == ("actor/odd_ratio", 6, 8, 9)
    page = browser.open(f"/jobs/{job}", "#curves canvas")
    chart = page.locator("#curves .chart", has=page.locator(".key", has_text="actor/odd_ratio"))
    spots = chart.locator(".spot")
    until(lambda: spots.count() == 2, "a mark where it fired, and one where it ended")
    said = [f"{ODD}: fired at step 8 with 0.9, true since step 6", f"{ODD}: ended at step 9"]
    assert spots.evaluate_all("all => all.map((e) => e.title)") == said
    label = chart.locator(".plot").get_attribute("aria-label")
    assert all(text in label for text in said), label
    left = lambda: spots.evaluate_all("all => all.map((e) => e.getBoundingClientRect().left)")  # noqa: E731
    until(lambda: (at := left()) and at[0] < at[1], "they stand in the order of the steps")
    spots.first.hover()  # nothing lies over it: the pointer gets its title
    curves = page.locator("#curves .chart")
    until(lambda: page.locator("#curves canvas").count() == curves.count() > 1, "each curve is drawn")
    assert page.locator("#curves .spot").count() == 2, "and no other curve has them"
    legend = page.inner_text("#curves .legend")
    assert "an alert of the metric fires" in legend and "it ends" in legend, legend
    assert page.wrong == []
    page.context.close()
    page = browser.open(f"/jobs/{job}", "#curves .spot", lang="zh")
    assert page.locator("#curves .spot").first.get_attribute("title").startswith(f"{ODD}：第 8 步触发")
    page.context.close()
    argusd.stop_job(job)
