# SPDX-License-Identifier: Apache-2.0
"""What a training says of itself: where its steps go, what is wrong with it, and who hears of that."""

import json

import pytest
from fakeray import FakeRay
from rulebed import watched
from test_argusd_metrics import Training, cli

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd

# Eight GPUs: tokens / (seconds x GPUs) = throughput.
STEP = {
    "timing_s/step": 10.0,
    "timing_s/gen": 6.0,
    "timing_s/reward": 1.5,
    "timing_s/update_actor": 2.0,
    "perf/total_num_tokens": 8000,
    "perf/throughput": 100.0,
    "response_length/clip_ratio": 0.02,
}
TOOL = {
    "timing_s/agent_loop/generate_sequences/mean": 3.0,
    "timing_s/agent_loop/generate_sequences/max": 4.0,
    "timing_s/agent_loop/slowest/generate_sequences": 3.9,
    "timing_s/agent_loop/slowest/tool_calls": 2.0,
    "timing_s/agent_loop/slowest/prompt_length": 100,
    "timing_s/agent_loop/slowest/response_length": 700,
}


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("verdict"), ray.url) as made:
        yield made


def tells(t, first, last, attempt=1, **more):
    for step in range(first, last + 1):
        own = {"critic/score/mean": 0.2 + step / 200, "actor/entropy": 1.0, "response/aborted_ratio": 0.0}
        data = {**STEP, **own, **more}
        t.write(json.dumps({"step": step, "data": data}) + "\n", attempt)


def steps_of(argusd, job):
    return argusd.get(f"/v1/jobs/{job}/steps")


def test_where_the_steps_go(argusd):
    t = Training(argusd)
    assert steps_of(argusd, t.id) == {"id": t.id, "state": "RUNNING", "anatomy": None, "usual": None}
    assert "no step has told its time" in cli(argusd, "steps", t.id)
    tells(t, 1, 11)
    tells(t, 12, 12, **TOOL)
    t.until_step(12)
    a = steps_of(argusd, t.id)["anatomy"]
    shares = {s["stage"]: s["share"] for s in a["stages"]}
    assert (a["steps"], a["gpus"], a["step_seconds"]) == (12, 8, 10)
    assert (shares["reward"], shares["update"], shares["rest"]) == (
        pytest.approx(0.15),
        pytest.approx(0.2),
        pytest.approx(0.05),
    )
    assert a["bubble"]["gpu_hours"] == pytest.approx(8 * (12 * 2.0 + 2.0) / 3600) and a["bubble"]["at_least"]
    assert (a["slowest"]["step"], a["slowest"]["tools"], a["slowest"]["response_tokens"]) == (12, 2, 700)
    assert a["levers"][0]["lever"] == "reward" and "GPU-hours so far" in a["levers"][0]["text"]
    assert len(a["bars"]) == 12 and a["bars"][11]["tools"] == 2
    chinese = argusd.get(f"/v1/jobs/{t.id}/steps", **{"Accept-Language": "zh"})["anatomy"]
    assert chinese["levers"][0]["text"].startswith("GPU 在等待奖励")
    page = cli(argusd, "steps", t.id)
    assert "12 (1-12), 10 s each" in page and "at least 0.0578 GPU-hours" in page
    assert "step 12: 5.9 s, of them 2 s in tools" in page and "700 tokens answered to 100" in page
    argusd.restart()
    assert steps_of(argusd, t.id)["anatomy"]["steps"] == 12
    t.let_go()
    argusd.wait_over(t.id)
    assert steps_of(argusd, t.id)["anatomy"]["steps"] == 12


def test_what_is_usual(tmp_path):
    """The median share of each stage in jobs like it that ended, and that the reader may see."""
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:

        def trains(reward, **more):
            t = Training(argusd, **more)
            tells(t, 1, 3, **{"timing_s/gen": 4.0, "timing_s/reward": reward})
            t.until_step(3)
            return t

        def ends(t):
            t.let_go()
            argusd.wait_over(t.id)
            return t

        first = ends(trains(1.0))
        ends(trains(2.0))
        assert steps_of(argusd, first.id)["usual"] is None, "one other job says nothing"
        ends(trains(3.0))
        assert steps_of(argusd, first.id)["usual"] is None, "of three it is one itself"
        t = trains(0.5)
        usual = steps_of(argusd, t.id)["usual"]
        shares = {s["stage"]: s["share"] for s in usual["stages"]}
        assert (usual["jobs"], usual["step_seconds"]) == (3, 10)
        assert (shares["reward"], shares["generate"], shares["save"]) == (pytest.approx(0.2), pytest.approx(0.4), 0)
        page = cli(argusd, "steps", t.id)
        assert "10 s a step in 3 jobs of the same workload and pool" in page
        (line,) = [x for x in page.splitlines() if x.startswith("reward")]
        assert "5 % / 20 %" in line, line
        argusd.call("POST", "/v1/users", {"name": "bob"})
        argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
        reply = argusd.call("GET", f"/v1/jobs/{t.id}/steps", token="bob")
        assert reply.status == 404, "nobody is told medians by a job that he may not see"
        ends(t)
        his = trains(0.5, token="bob")
        page = argusd.call("GET", f"/v1/jobs/{his.id}/steps", token="bob").json()
        assert (page["anatomy"]["steps"], page["usual"]) == (3, None), "nor those of jobs that he may not see"
        assert steps_of(argusd, his.id)["usual"]["jobs"] == 4, "an admin sees them"
        ends(his)


def test_what_is_wrong_and_since_when(argusd):
    t = Training(argusd)
    told = lambda: [e for e in argusd.events(t.id) if e["kind"] == "verdict"]  # noqa: E731
    tells(t, 1, 4)
    assert t.until_step(4)["verdict"]["state"] == "early"
    tells(t, 5, 14)
    v = t.until_step(14)["verdict"]
    assert (v["state"], v["kind"], v["text"]) == ("fine", None, "nothing wrong is seen in 14 steps")
    assert {x["figure"] for x in v["not_measured"]} == {"kl", "gap", "staleness", "validation", "memory"}
    tells(t, 15, 20, **{"response/aborted_ratio": 0.5})
    v = t.until_step(20)["verdict"]
    (item,) = v["items"]
    assert (v["state"], v["kind"], item["step"], item["metric"]) == ("bad", "aborted", 15, "response/aborted_ratio")
    assert v["text"] == item["text"] == "50 % of the answers were aborted since step 15" and item["stands"]
    assert item["key"] in item["fix"] and 0.5 < item["certainty"] < 1
    (event,) = told()
    assert event["text"] == v["text"] and event["reason"]["code"] == "verdict_aborted"
    page = cli(argusd, "status", t.id)
    assert "50 % of the answers were aborted since step 15" in page and "gpu_memory_utilization" in page
    assert "aborted since step 15" in cli(argusd, "why", t.id)
    top = cli(argusd, "top", "-o", "wide")
    assert [line.split()[-1] for line in top.splitlines() if line.startswith(t.id)] == ["aborted"]
    argusd.restart()
    tells(t, 21, 21, **{"response/aborted_ratio": 0.5})
    assert t.until_step(21)["verdict"]["kind"] == "aborted" and len(told()) == 1, "told once"
    t.let_go()
    view = argusd.wait_over(t.id)
    assert view["verdict"]["items"][0]["step"] == 15


def test_two_things_are_wrong_at_once(argusd):
    """The worse one is the verdict, though the other began first; that one is in reach."""
    t = Training(argusd)
    tells(t, 1, 11)
    tells(t, 12, 17, **{"actor/pg_clipfrac": 0.7})
    assert t.until_step(17)["verdict"]["kind"] == "clipped"
    tells(t, 18, 24, **{"actor/pg_clipfrac": 0.7, "response/aborted_ratio": 0.5})
    v = t.until_step(24)["verdict"]
    assert [(i["kind"], i["step"], i["stands"]) for i in v["items"]] == [("aborted", 18, True), ("clipped", 12, True)]
    assert (v["state"], v["kind"]) == ("bad", "aborted")
    for noun in ("status", "why"):
        page = cli(argusd, noun, t.id)
        assert page.index("aborted since step 18") < page.index("70 % of the tokens are clipped since step 12")
        assert "also seen" in page and "argus samples" not in page, "it has no samples"
    t.let_go()
    argusd.wait_over(t.id)


def test_steps_that_are_run_again_are_judged_once(argusd):
    """A restart voids what it runs again: the verdict is made of what counts."""
    t = Training(argusd, restart={"max": 1, "backoff": "1s", "on": ["unknown", "user_code_error"]})
    tells(t, 1, 12)
    tells(t, 13, 18, **{"response/aborted_ratio": 0.5})
    assert t.until_step(18)["verdict"]["kind"] == "aborted"
    t.let_go(code=3)
    t.runs(2)
    tells(t, 13, 19, attempt=2)
    view = t.until_step(19)
    assert view["verdict"]["state"] == "fine" and view["verdict"]["items"] == []
    assert steps_of(argusd, t.id)["anatomy"]["steps"] == 19
    t.let_go(attempt=2)
    argusd.wait_over(t.id)


def test_a_verdict_is_told_and_taken_back(tmp_path):
    with watched(tmp_path) as w:
        t = Training(w.argusd)
        tells(t, 1, 14)
        t.until_step(14)
        begun = w.begin()
        tells(t, 15, 20, **{"response/aborted_ratio": 0.5})
        assert "50 % of the answers were aborted since step 15" in w.hears("job_verdict", begun, t.id)["text"]
        tells(t, 21, 40)
        w.ends("job_verdict", t.id)
        t.let_go()
        w.argusd.wait_over(t.id)


ALERT = "actor/entropy < 0.5 for 3 steps"


def test_an_alert_of_a_metric(tmp_path):
    with watched(tmp_path) as w:
        t = Training(w.argusd, alerts=[ALERT, "critic/score/mean is nan"])
        assert w.argusd.job(t.id)["metric_alerts"] is None
        tells(t, 1, 5)
        low, other = t.until_step(5)["metric_alerts"]
        assert (low["alert"], low["stands"], low["metric"]) == (ALERT, False, None)
        assert low["text"] == f"{ALERT}: it never held"
        begun = w.begin()
        tells(t, 6, 8, **{"actor/entropy": 0.25})
        said = f"{ALERT}: 'actor/entropy' is 0.25 since step 6"
        alert = w.hears("job_metric", begun, t.id)
        message, curve = alert["text"], alert["curve"]
        assert f"{said} {'█' * 5}{'▁' * 3}" in message, message  # all values so far, as a curve
        assert curve == {"metric": "actor/entropy", "limit": 0.5, "points": [1] * 5 + [0.25] * 3}
        low, other = w.argusd.job(t.id)["metric_alerts"]
        assert (low["stands"], low["step"], low["value"], other["seen"]) == (True, 6, 0.25, False)
        assert (low["limit"], low["points"], other.get("points")) == (0.5, curve["points"], None)
        told = lambda: [e["text"] for e in w.argusd.events(t.id) if e["kind"] == "metric_alert"]  # noqa: E731
        assert told() == [said]
        shown = cli(w.argusd, "status", t.id)
        assert "is 0.25 since step" in shown, shown
        w.argusd.restart()
        tells(t, 9, 9, **{"actor/entropy": 0.25})
        t.until_step(9)
        assert told() == [said], "told once"
        tells(t, 10, 10)
        w.ends("job_metric", t.id)
        low, _ = w.argusd.job(t.id)["metric_alerts"]
        assert (low["stands"], low["seen"], low["step"]) == (False, True, 6)
        span = {"metric": "actor/entropy", "step": 6, "seen_at": 8, "ended_at": 10, "value": 0.25}
        assert low["spans"] == [span]
        t.let_go()
        w.argusd.wait_over(t.id)


def test_an_alert_that_cannot_be_read(argusd):
    head = 'workload: ray\nentrypoint: "true"\nnnodes: 1\n'
    spec = head + "alerts:\n  - actor/entropy < 0.1\n  - actor/entropy under 0.1\n"
    reply = argusd.call("POST", "/v1/jobs", spec, token="user")
    assert reply.status == 422
    (problem,) = reply.json()["problems"]
    assert (problem["field"], problem["line"], problem["code"]) == ("alerts", 6, "metric_alert_bad")
    assert "is wanted in column 15, where 'under' stands" in problem["detail"]


def test_alerts_of_a_project(tmp_path):
    """They hold for each job that is submitted to it, beside the job's own, and are said to be the project's."""
    nan = "critic/score/mean is nan"
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        bad = argusd.call("POST", "/v1/projects", {"name": "rl", "alerts": [ALERT, "entropy under 1"]})
        (problem,) = bad.json()["problems"]
        assert (bad.status, problem["field"], problem["code"]) == (422, "alerts", "metric_alert_bad")
        assert "'entropy under 1'" in problem["detail"] and "in column 9" in problem["detail"]
        many = argusd.call("POST", "/v1/projects", {"name": "rl", "alerts": [f"x > {i}" for i in range(17)]})
        assert (many.status, many.json()["problems"][0]["code"]) == (422, "project_alerts_many")
        cli(argusd, "project", "add", "rl", "--member", "alice", "--alert", ALERT, "--alert", nan, token="admin")
        assert argusd.get("/v1/projects/rl")["alerts"] == [ALERT, nan]
        assert ALERT in cli(argusd, "project", "show", "rl")
        t = Training(argusd, project="rl", alerts=[nan])
        other = Training(argusd)
        cli(argusd, "project", "set", "rl", "--no-alerts", token="admin")
        argusd.restart()
        assert argusd.get("/v1/projects/rl")["alerts"] == []
        tells(t, 1, 5, **{"actor/entropy": 0.25})
        tells(other, 1, 5, **{"actor/entropy": 0.25})
        own, low = t.until_step(5)["metric_alerts"]
        assert (own["alert"], own.get("of_project"), own["seen"]) == (nan, None, False), "it says so itself"
        assert (low["alert"], low["of_project"], low["stands"], low["step"]) == (ALERT, True, True, 1)
        told = [e["text"] for e in argusd.events(t.id) if e["kind"] == "metric_alert"]
        assert told == [f"{ALERT}: 'actor/entropy' is 0.25 since step 1"]
        page = " ".join(cli(argusd, "status", t.id).split())
        assert "is 0.25 since step 1" in page and "a rule of the project" in page
        assert other.until_step(5)["metric_alerts"] is None, "that one is of another project"
        for each in (t, other):
            each.let_go()
            argusd.wait_over(each.id)
