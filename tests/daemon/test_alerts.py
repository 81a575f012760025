# SPDX-License-Identifier: Apache-2.0
"""Something breaks, and who is to hear of it does: real HTTP servers in the place of receivers, which check signatures
as the real ones document and answer as those do. Each message comes at least once, always with the same id."""

import contextlib
import json
import os
import subprocess
import urllib.parse

import pytest
from fakeray import FakeRay
from programs import PROGRAMS
from receiver import KEY, Receiver, check_webhook, sign

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd


def check_feishu(post, body):
    said = json.loads(body)
    good = said["sign"] == sign(f"{said['timestamp']}\nSEC".encode(), b"")
    return 200, json.dumps({"code": 0 if good else 19021, "msg": "sign match fail"}).encode()


def check_dingtalk(post, body):
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(post.path).query))
    good = query.get("sign") == sign(b"SEC", f"{query.get('timestamp')}\nSEC".encode())
    return 200, json.dumps({"errcode": 0 if good else 310000, "errmsg": "sign not match"}).encode()


def alerts_yaml(receivers, more=""):
    lines = [f"    {name}: {{{said}}}" for name, said in receivers.items()]
    return "\n".join(["alerts:", "  wait: 1s", "  settle: 1s", "  every: 1s", "  secrets_of: user/admin", more,
                      "  receivers:", *lines, "calls: {networks: [127.0.0.0/8]}"])  # fmt: skip


@contextlib.contextmanager
def house(home, receivers, more="", secrets=()):
    with FakeRay(state=home / "ray") as ray, Argusd(home, ray.url, more=alerts_yaml(receivers, more)) as argusd:
        for name, value in secrets:
            assert argusd.call("PUT", f"/v1/secrets/{name}", {"value": value}).status == 201
        argusd.ray = ray
        yield argusd


def hears(receiver, part):
    return until(lambda: receiver.titled(part), f"a message with {part!r}")[0]


def test_a_job_that_fails_is_told_in_every_form(tmp_path):
    with Receiver() as hook, Receiver() as feishu, Receiver() as ding, Receiver() as wecom, Receiver() as slack:
        hook.answer, feishu.answer, ding.answer = check_webhook, check_feishu, check_dingtalk
        wecom.answer = (200, b'{"errcode":0}')
        receivers = {
            "hook": f'kind: webhook, url: "{hook.url}", secret: HOOK_KEY',
            "feishu": f'kind: feishu, url: "{feishu.url}", secret: CHAT_KEY, language: zh',
            "ding": f'kind: dingtalk, url: "{ding.url}", secret: CHAT_KEY',
            "wecom": "kind: wecom, url_secret: WECOM_URL",
            "slack": f'kind: slack, url: "{slack.url}"',
            "log": "kind: log",
        }
        secrets = [("HOOK_KEY", "whsec_" + KEY), ("CHAT_KEY", "SEC"), ("WECOM_URL", wecom.url)]
        with house(tmp_path, receivers, secrets=secrets) as argusd:
            job = argusd.submit("exit 3")
            argusd.wait_over(job)
            said = hears(hook, job)
            assert said["type"] == "incident.opened" and said["incident"]["severity"] == "warning"
            assert said["incident"]["alerts"][0]["rule"] == "job_failed"
            for other in (feishu, ding, wecom, slack):
                until(lambda o=other: any(job in json.dumps(b) for b in o.bodies()), "it is told")
            assert [b for b in feishu.bodies() if job in json.dumps(b) and "作业" in b["content"]["text"]]
            until(lambda: f"[warning] job '{job}'" in argusd.said(), "the log has it")
            assert len(hook.titled(job)) == 1  # an incident alerts once

            def all_taken():
                """What a receiver has may still be on its way out of the store."""
                rows = argusd.get("/v1/receivers")["receivers"]
                told = {r["name"]: (r["waiting"], r["trouble"]) for r in rows}
                return told == dict.fromkeys(receivers, (0, None)) and rows

            shown = until(all_taken, "all have taken all")
            everything = json.dumps([shown, argusd.get("/v1/alerts"), argusd.events()]) + argusd.said()
            assert "hidden-key" not in everything and KEY not in everything


def test_a_dead_receiver_delays_no_other_and_a_200_may_be_a_failure(tmp_path):
    with Receiver() as dead, Receiver() as rude, Receiver() as moved, Receiver() as hook:
        dead.answer, rude.answer, moved.answer = None, (200, b'{"errcode":310000,"errmsg":"no"}'), (302, b"")
        receivers = {
            "dead": f'kind: webhook, url: "{dead.url}"',
            "rude": f'kind: dingtalk, url: "{rude.url}"',
            "moved": f'kind: webhook, url: "{moved.url}"',
            "hook": f'kind: webhook, url: "{hook.url}"',
        }
        with house(tmp_path, receivers) as argusd:
            job = argusd.submit("exit 3")
            hears(hook, job)

            def refused():
                return {e["object"] for e in argusd.events() if e["kind"] == "alert_refused"}

            until(lambda: refused() == {"receiver/rude", "receiver/moved"}, "two have refused")
            assert len(set(moved.seen)) == 1  # no redirect is followed
            assert "hidden-key" not in json.dumps(argusd.events())


@pytest.mark.parametrize("moment", ["before", "while"])
def test_kill_9_between_fault_and_delivery_loses_nothing(tmp_path, moment):
    with Receiver() as hook:
        hook.answer = (503, b"later") if moment == "before" else None
        with house(tmp_path, {"hook": f'kind: webhook, url: "{hook.url}"'}) as argusd:
            job = argusd.submit("exit 3")
            argusd.wait_over(job)
            until(lambda: hook.seen, "it was tried")
            argusd.kill9()
            hook.over.set()
            hook.answer = (200, b"{}")
            argusd.start()
            said = hears(hook, job)
            assert set(hook.seen) == {hook.ids()[0]}  # every try had one id
            until(lambda: argusd.get("/v1/receivers")["receivers"][0]["waiting"] == 0, "it was taken")
            again = argusd.submit("exit 3")
            hears(hook, again)
            assert len(hook.titled(job)) == 1 and said["incident"]["id"] == "i1"


def test_ray_away_is_one_incident_with_all_jobs_and_it_ends(tmp_path):
    with Receiver() as hook, house(tmp_path, {"hook": f'kind: webhook, url: "{hook.url}"'}) as argusd:
        jobs = [argusd.submit("exec tail -f /dev/null") for _ in range(3)]
        for job in jobs:
            argusd.wait_state(job, "RUNNING")
        argusd.ray.listen(False)
        said = hears(hook, "Ray's head")
        assert said["incident"]["cause"] == "cluster/default" and said["incident"]["severity"] == "critical"
        argusd.ray.listen(True)
        until(lambda: [b for b in hook.bodies() if b["type"] == "incident.resolved"], "it is over")
        rows = argusd.get("/v1/incidents?all=1")["incidents"]
        assert [i["cause"] for i in rows if i["cause"].startswith("cluster/")] == ["cluster/default"]


def cli(argusd, *args, code=0, **env):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["admin"], "LANG": "C.UTF-8", **env}
    done = subprocess.run([PROGRAMS["argus"], *args], env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == code, done
    return done


def check_report_verb(argusd, incident, job):
    """Markdown in the reader's language, or what was asked for; what others wrote moves no cursor."""
    english = cli(argusd, "incident", "report", incident).stdout
    assert f"# Incident {incident}\n" in english and job in english and "I look" in english
    chinese = cli(argusd, "incident", "report", incident, LANG="zh_CN.UTF-8").stdout
    assert f"# 事故 {incident}\n" in chinese and "确认人" in chinese
    page = cli(argusd, "incident", "report", incident, "--format", "html", "--language", "zh").stdout
    assert page.startswith("<!doctype html>") and f"<h1>事故 {incident}</h1>" in page
    said = english + chinese + page
    assert "\x9b" not in said and "\x1b" not in said
    assert "no incident 'i999'" in cli(argusd, "incident", "report", "i999", code=4).stderr


def test_ack_silence_rules_and_report(tmp_path):
    with Receiver() as hook, house(tmp_path, {"hook": f'kind: webhook, url: "{hook.url}"'}) as argusd:
        rule = {"of": "job", "when": "gpus > 200", "text": "job '{name}' wants {gpus} GPUs", "severity": "critical"}
        assert argusd.call("PUT", "/v1/alert_rules/greedy", {**rule, "when": "gpus >"}).status == 422
        assert argusd.call("PUT", "/v1/alert_rules/greedy", rule, token="user").status == 403
        assert argusd.call("PUT", "/v1/alert_rules/greedy", rule).status == 201
        job = argusd.submit("echo held", nnodes=222, n_gpus_per_node=1)
        said = hears(hook, job)
        assert "wants 222 GPUs" in said["title"]
        alert = argusd.get("/v1/alerts")["alerts"][0]
        mine = argusd.call("POST", f"/v1/alerts/{alert['id']}:ack", {"note": "I look \x9b31m"}, token="user")
        assert mine.status == 200 and mine.json()["acked_by"] == "alice"
        assert argusd.call("POST", f"/v1/alerts/{alert['id']}:silence", {"for": "1h"}).status == 200
        assert argusd.get("/v1/alerts")["alerts"] == []
        assert argusd.get("/v1/alerts?state=silenced")["alerts"][0]["silenced_by"] == "s1"
        assert argusd.call("POST", "/v1/silences", {"for": "1h"}).status == 422  # of everything
        assert argusd.call("DELETE", "/v1/silences/s1").status == 200
        report = argusd.call("GET", f"/v1/incidents/{alert['incident']}/report")
        assert job in report.body.decode() and "I look" in report.body.decode()
        html = argusd.call("GET", f"/v1/incidents/{alert['incident']}/report?format=html&language=zh")
        assert html.headers["Content-Type"].startswith("text/html") and job in html.body.decode()
        check_report_verb(argusd, alert["incident"], job)
        argusd.restart()
        assert argusd.get("/v1/alerts")["alerts"][0]["acked_by"] == "alice"
        assert argusd.get("/v1/alert_rules/greedy")["from"] == "admin"
        assert argusd.call("DELETE", "/v1/alert_rules/greedy").status == 200
        until(lambda: argusd.get("/v1/alerts")["alerts"] == [], "its alert has ended")
        assert argusd.call("DELETE", "/v1/alert_rules/job_failed").status == 409


def report_section(argusd, incident, heading, **query):
    """What stands below a heading, to the end: it is the last one."""
    asked = urllib.parse.urlencode(query)
    return argusd.call("GET", f"/v1/incidents/{incident}/report?{asked}").body.decode().split(heading, 1)[1]


def test_a_report_tells_what_was_done_and_nothing_else(tmp_path):
    """Two incidents of one rule: of a job that was held and released, and of one that nobody touched."""
    with house(tmp_path, {}) as argusd:
        rule = {"of": "job", "when": "gpus > 200", "text": "job '{name}' wants {gpus} GPUs", "severity": "info"}
        assert argusd.call("PUT", "/v1/alert_rules/greedy", rule).status == 201
        held, left = (argusd.submit("echo hi", nnodes=222, n_gpus_per_node=1) for _ in range(2))

        def greedy():
            return {a["name"]: a["incident"] for a in argusd.get("/v1/alerts")["alerts"] if a["rule"] == "greedy"}

        of = until(lambda: len(found := greedy()) == 2 and found, "both are told of")
        assert of[held] != of[left]
        assert "no event tells of an act" in report_section(argusd, of[held], "## What was done")
        assert argusd.call("POST", f"/v1/jobs/{held}:hold", {}).status == 200
        assert argusd.call("POST", f"/v1/jobs/{held}:release", {}).status == 200
        events = {e["kind"]: e for e in argusd.events(held)}
        done = report_section(argusd, of[held], "## What was done")
        acts = [line for line in done.splitlines() if f"job/{held}" in line]
        assert [line.split()[1] for line in acts] == [events[k]["at"] for k in ("held", "released")]
        assert all(f" admin, job/{held}: " in line for line in acts)
        assert "no event tells" not in done and left not in done
        untouched = report_section(argusd, of[left], "## What was done")
        assert "no event tells of an act" in untouched and held not in untouched
        page = report_section(argusd, of[held], "<h2>处理</h2>", format="html", language="zh")
        assert page.count(f"admin，job/{held}") == 2 and "没有事件记录" not in page
        assert "没有事件记录" in report_section(argusd, of[left], "<h2>处理</h2>", format="html", language="zh")


def test_one_user_does_not_fill_the_silences(tmp_path):
    """A silence of an alert replaces his own of before, and what users may have leaves room to admins."""
    with house(tmp_path, {}) as argusd:
        jobs = [argusd.submit("exit 3") for _ in range(60)]
        for job in jobs:
            argusd.wait_over(job)
        alerts = until(
            lambda: len(a := argusd.get("/v1/alerts", token="user")["alerts"]) >= 60 and a, "each has its alert"
        )
        first = alerts[0]["id"]
        for _ in range(200):
            assert argusd.call("POST", f"/v1/alerts/{first}:silence", {"for": "365d"}, token="user").status == 200
        assert len(argusd.get("/v1/silences")["silences"]) == 1
        answers = [argusd.call("POST", f"/v1/alerts/{a['id']}:silence", {"for": "1h"}, token="user") for a in alerts]
        assert [r.status for r in answers].count(200) == 50
        assert {r.status for r in answers} == {200, 422}
        assert argusd.call("POST", "/v1/silences", {"for": "1h", "names": ["x"]}).status == 201
        assert argusd.call("POST", f"/v1/alerts/{first}:silence", {"for": "1h"}).status == 200  # an admin's is his own
        assert len(argusd.get("/v1/silences")["silences"]) == 52


def test_a_job_that_only_waits_is_asked_about_when_its_time_comes(tmp_path):
    """Of what waits nothing changes but the time: two rules, the one met before the other, and one made meanwhile."""
    with house(tmp_path, {}) as argusd:

        def put(name, when):
            rule = {"of": "job", "when": when, "text": "'{name}' waits", "severity": "info"}
            assert argusd.call("PUT", f"/v1/alert_rules/{name}", rule).status == 201

        def fired():
            return {a["rule"] for a in argusd.get("/v1/alerts")["alerts"] if a["name"] == job}

        put("soon", "queued_for > 1s")
        put("later", "queued_for >= 3s and user == alice")
        job = argusd.submit("echo held", nnodes=222, n_gpus_per_node=1)
        until(lambda: fired() == {"soon", "later"}, "both are told, one after the other")
        put("new", "queued_for > 2s")
        until(lambda: fired() == {"soon", "later", "new"}, "a new rule is asked about a job that waits already")
        argusd.stop_job(job)
        until(lambda: fired() == set(), "what is over waits no more")


def test_notify_of_a_job(tmp_path):
    with Receiver() as mine, Receiver() as ops:
        receivers = {"mine": f'kind: webhook, url: "{mine.url}"', "ops": f'kind: webhook, url: "{ops.url}"'}
        with house(tmp_path, receivers, more='  routes: [{to: ops, least: critical}]') as argusd:
            refused = argusd.post(Argusd.spec("exit 3", notify=["nobody"]), token="user")
            assert refused.status == 422 and "receiver" in refused.json()["detail"]
            failed = argusd.submit("exit 3", notify=["mine"])
            good = argusd.submit("echo fine", notify=["mine:succeeded"])
            quiet = argusd.submit("echo fine", notify=["mine"])
            for job in (failed, good, quiet):
                argusd.wait_over(job)
            hears(mine, failed)
            hears(mine, good)
            assert not mine.titled(quiet) and not ops.got


def test_a_submit_is_no_return_to_the_queue(tmp_path):
    """A new job is queued, as one that was interrupted is; only the latter has come from another state."""
    with house(tmp_path, {}) as argusd:
        rule = {"of": "job", "when": "to == QUEUED", "keep": "1h", "text": "'{name}' is back", "severity": "info"}
        assert argusd.call("PUT", "/v1/alert_rules/back", rule).status in (200, 201)
        job = argusd.submit("exit 3")
        argusd.wait_over(job)
        rules = lambda: [a["rule"] for a in argusd.get("/v1/alerts")["alerts"] if a["name"] == job]  # noqa: E731
        until(lambda: "job_failed" in rules(), "its end is told")
        assert rules() == ["job_failed"]


def test_a_test_message(tmp_path):
    with Receiver() as hook, house(tmp_path, {"hook": f'kind: webhook, url: "{hook.url}"'}) as argusd:
        assert argusd.call("POST", "/v1/receivers/hook:test").status == 202
        until(lambda: hook.got, "it came")
        assert hook.bodies()[0]["type"] == "test"
        assert argusd.call("POST", "/v1/receivers/none:test").status == 404
