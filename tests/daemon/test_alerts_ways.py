# SPDX-License-Identifier: Apache-2.0
"""On the way to a receiver: what is refused holds nothing behind it, a mail reaches those who take it, what is silenced
wakes nobody, and each incident says what became of its messages."""

import collections
import contextlib
import datetime
import email.utils
import json
import pathlib
import re
import sqlite3
import subprocess
import urllib.request

import pytest
from fakeray import FakeRay
from mailserver import MailServer
from ports import free_port
from receiver import Receiver
from test_alerts import alerts_yaml, house

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd
OBSERVE = pathlib.Path(__file__).parents[2] / "deploy" / "observe"
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def tellings(argusd, incident):
    """{receiver: (state, why)}, a pair of None for who has none."""
    rows = argusd.get(f"/v1/incidents/{incident}")["tellings"]
    return collections.defaultdict(lambda: (None, None)) | {t["receiver"]: (t["state"], t["why"]) for t in rows}


def incident_of(argusd, job):
    """The id, once its alert is there."""
    found = lambda: [a["incident"] for a in argusd.get("/v1/alerts?state=all")["alerts"] if a["name"] == job]  # noqa: E731
    return until(lambda: found(), "it is an alert")[0]


def test_a_message_that_is_answered_with_500_holds_nothing_behind_it(tmp_path):
    with Receiver() as hook, house(tmp_path, {"hook": f'kind: webhook, url: "{hook.url}"'}) as argusd:
        poison = argusd.submit("exit 3")
        hook.answer = lambda post, body: (500, b"no") if poison.encode() in body else (200, b"{}")
        argusd.wait_over(poison)
        until(lambda: hook.seen, "it was tried")
        others = [argusd.submit("exit 3") for _ in range(3)]
        for job in others:
            argusd.wait_over(job)
        for job in others:
            until(lambda job=job: hook.titled(job), "it came though the first one has not")
        assert not hook.titled(poison)
        assert tellings(argusd, incident_of(argusd, poison))["hook"][0] == "on_the_way"
        hook.answer = (200, b"{}")
        until(lambda: hook.titled(poison), "the first one comes, too")
        incident = incident_of(argusd, poison)
        until(lambda: tellings(argusd, incident) == {"hook": ("taken", None)}, "and its incident says so")


def test_one_of_several_in_one_message_is_refused_and_the_others_come(tmp_path):
    """People get what waits in one message; if that is refused each goes alone, and one alone is refused."""
    with Receiver() as chat:
        jobs = []
        bad = lambda body: jobs and jobs[1].encode() in body  # noqa: E731
        chat.answer = (503, b"later")
        with house(tmp_path, {"chat": f'kind: slack, url: "{chat.url}", per_minute: 60'}) as argusd:
            jobs += [argusd.submit("exit 3") for _ in range(3)]
            for job in jobs:
                argusd.wait_over(job)
            chat.answer = lambda post, body: (400, b"no") if bad(body) else (200, b"ok")
            for job in (jobs[0], jobs[2]):
                until(lambda job=job: any(job in json.dumps(b) for b in chat.bodies()), "it came")
            refused = incident_of(argusd, jobs[1])
            until(lambda: tellings(argusd, refused)["chat"][0] == "refused", "its incident says that it was refused")


def test_a_mail_comes_to_those_who_take_it(tmp_path):
    with MailServer(refused={"gone@example.org"}, deferred={"late@example.org": 1}) as mail:
        to = "to: [gone@example.org, late@example.org, ops@example.org]"
        receiver = f'kind: mail, from: argus@example.org, {to}, language: zh, url: "{mail.url}"'
        with house(tmp_path, {"mail": receiver}) as argusd:
            job = argusd.submit("exit 3")
            argusd.wait_over(job)
            until(lambda: mail.mails("ops@example.org") and mail.mails("late@example.org"), "two have it")
            incident = incident_of(argusd, job)
            until(lambda: tellings(argusd, incident)["mail"][0] == "taken", "it is settled")
            assert "gone@example.org" in tellings(argusd, incident)["mail"][1]
            assert len(mail.mails("ops@example.org")) == 1  # who has it is not asked again
            one = mail.mails("ops@example.org")[0]
            assert email.utils.parsedate_to_datetime(one["Date"]).tzinfo and one["Message-ID"].endswith("@example.org>")
            assert job in one["Subject"] and "作业" in one["Subject"] and job in one.get_content()
            raw = next(b for _, b in mail.took)
            head = raw.partition(b"\r\n\r\n")[0]
            assert max(map(len, re.findall(rb"=\?UTF-8\?B\?.*?\?=", head))) <= 75
            assert max(map(len, raw.split(b"\r\n"))) <= 998


def having(argusd):
    """Addresses of which the store says that they have the mail; None: no mail is on its way."""
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db:
        rows = db.execute("SELECT body FROM entry WHERE kind = 'delivery'").fetchall()
    return json.loads(rows[0][0]).get("having", []) if rows else None


def test_who_has_a_mail_does_not_get_it_again_from_an_argusd_that_starts_anew(tmp_path):
    with MailServer(deferred={"late@example.org": 10**9, "two@example.org": 10**9}) as mail:
        to = "to: [ops@example.org, late@example.org, two@example.org]"
        receiver = f'kind: mail, from: argus@example.org, {to}, url: "{mail.url}"'
        with house(tmp_path, {"mail": receiver}) as argusd:
            job = argusd.submit("exit 3")
            argusd.wait_over(job)
            until(lambda: having(argusd) == ["ops@example.org"], "it is stored that one has it")
            argusd.kill9()
            mail.deferred["late@example.org"] = 0
            argusd.start()
            until(lambda: having(argusd) == ["ops@example.org", "late@example.org"], "another one has it, too")
            assert [len(mail.mails(f"{a}@example.org")) for a in ("ops", "late", "two")] == [1, 1, 0]
            argusd.kill9()
            mail.deferred["two@example.org"] = 0
            argusd.start()
            incident = incident_of(argusd, job)
            until(lambda: tellings(argusd, incident)["mail"] == ("taken", None), "all have it")
            assert [len(mail.mails(f"{a}@example.org")) for a in ("ops", "late", "two")] == [1, 1, 1]


def test_a_mail_that_all_had_when_argusd_was_killed_is_taken(tmp_path):
    with MailServer(deferred={"ops@example.org": 10**9}) as mail:
        receiver = f'kind: mail, from: argus@example.org, to: [ops@example.org], url: "{mail.url}"'
        with house(tmp_path, {"mail": receiver}) as argusd:
            job = argusd.submit("exit 3")
            argusd.wait_over(job)
            incident = incident_of(argusd, job)
            until(lambda: having(argusd) == [], "its mail is on its way")
            argusd.kill9()
            with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db, db:
                had = "json_set(body, '$.having', json_array('ops@example.org'))"
                db.execute(f"UPDATE entry SET body = {had} WHERE kind = 'delivery'")
            asked = len(mail.asked)
            argusd.start()
            until(lambda: tellings(argusd, incident)["mail"] == ("taken", None), "its incident says so")
            assert having(argusd) is None and len(mail.asked) == asked


def test_what_is_silenced_is_not_escalated(tmp_path):
    with Receiver() as ops, Receiver() as boss:
        receivers = {"ops": f'kind: webhook, url: "{ops.url}"', "boss": f'kind: webhook, url: "{boss.url}"'}
        more = ("  routes: [{to: ops, least: critical}]\n  escalate: {after: 4s, to: [boss], least: critical}\n"
                "  rules: {job_failed: {severity: critical}}")  # fmt: skip
        with house(tmp_path, receivers, more=more) as argusd:
            quiet, loud = argusd.submit("exit 3"), None
            argusd.wait_over(quiet)
            alert = until(lambda: argusd.get("/v1/alerts")["alerts"], "an alert")[0]["id"]
            assert argusd.call("POST", f"/v1/alerts/{alert}:silence", {"for": "1h"}).status == 200
            loud = argusd.submit("exit 3")
            argusd.wait_over(loud)
            until(lambda: boss.titled(loud), "what nobody silenced or acknowledged goes higher")
            assert not boss.titled(quiet)


def alert_of(argusd, job, state="open"):
    """The newest of this job, in this state; None: there is none."""
    found = [a for a in argusd.get(f"/v1/alerts?state={state}")["alerts"] if a["name"] == job]
    return max(found, key=lambda a: int(a["id"][1:]), default=None)


def test_what_is_silenced_while_its_message_waits_is_not_told(tmp_path):
    with Receiver() as hook, house(tmp_path, {"hook": f'kind: webhook, url: "{hook.url}"'}) as argusd:
        hook.answer = (503, b"later")
        job = argusd.submit("exit 3")
        argusd.wait_over(job)
        until(lambda: hook.seen, "it was tried")
        incident = incident_of(argusd, job)
        assert tellings(argusd, incident)["hook"][0] == "on_the_way"
        silence = {"for": "2h"}
        assert argusd.call("POST", f"/v1/alerts/{alert_of(argusd, job)['id']}:silence", silence).status == 200
        hook.answer = (200, b"{}")
        until(lambda: tellings(argusd, incident) == {"hook": ("silenced", None)}, "its incident says why not")
        assert argusd.get("/v1/receivers")["receivers"][0]["waiting"] == 0
        argusd.kill9()
        argusd.start()
        other = argusd.submit("exit 3")
        argusd.wait_over(other)
        until(lambda: hook.titled(other), "what nobody silenced is told")
        assert not hook.titled(job)
        assert argusd.call("DELETE", "/v1/silences/s1").status == 200
        until(lambda: hook.titled(job), "and this one once its silence has ended, as it is open still")


def test_a_silence_of_an_alert_holds_when_that_comes_back(tmp_path):
    """Under another id, and after a restart."""
    with house(tmp_path, {}) as argusd:
        rule = {"of": "job", "when": "gpus > 200", "text": "'{name}' is large"}
        assert argusd.call("PUT", "/v1/alert_rules/large", rule).status == 201
        job, other = (argusd.submit("echo held", nnodes=222, n_gpus_per_node=1) for _ in range(2))
        first = until(lambda: alert_of(argusd, job), "its alert")["id"]
        assert argusd.call("POST", f"/v1/alerts/{first}:silence", {"for": "2h"}).status == 200
        assert argusd.call("PATCH", "/v1/alert_rules/large", {"off": True}).status == 200
        until(lambda: alert_of(argusd, job, "past"), "it has ended")
        assert argusd.call("PATCH", "/v1/alert_rules/large", {"off": False}).status == 200
        again = until(lambda: alert_of(argusd, job, "silenced"), "it is back, and silent")
        assert again["id"] != first and again["silenced_by"] == "s1"
        until(lambda: alert_of(argusd, other), "another job's is not silent")
        assert not alert_of(argusd, other, "silenced") and not alert_of(argusd, job)
        argusd.restart()
        assert alert_of(argusd, job, "silenced")["silenced_by"] == "s1"
        assert argusd.get("/v1/silences")["silences"][0]["alert"] == first
        assert argusd.call("POST", f"/v1/alerts/{again['id']}:silence", {"for": "1h"}).status == 200
        assert [s["alert"] for s in argusd.get("/v1/silences")["silences"]] == [again["id"]]  # in place of the first


@pytest.mark.parametrize("when", [pytest.param("a minute later", marks=pytest.mark.nightly), "after a kill"])
def test_alertmanager_hears_again_of_all_that_is_open(tmp_path, when):
    """More than one message has, and without what has ended."""
    with (
        Receiver() as am,
        house(tmp_path, {"am": f'kind: alertmanager, url: "{am.url}"'}, more="  routes: [{to: am}]") as argusd,
    ):
        rule = {"of": "job", "when": "gpus > 200", "text": "'{name}' is large"}
        assert argusd.call("PUT", "/v1/alert_rules/large", rule).status == 201
        jobs = {argusd.submit("echo held", nnodes=222, n_gpus_per_node=1) for _ in range(25)}
        told = lambda: {a["labels"]["name"] for b in am.bodies() for a in b}  # noqa: E731
        until(lambda: told() >= jobs, "each is told")
        over = jobs.pop()
        argusd.stop_job(over)
        now = lambda: datetime.datetime.now(datetime.UTC).isoformat()  # noqa: E731
        ended = lambda a: a["labels"]["name"] == over and a["endsAt"] < now()  # noqa: E731
        until(lambda: any(ended(a) for b in am.bodies() for a in b), "the end of one is told")
        if when == "after a kill":
            argusd.kill9()
        am.got.clear()
        if when == "after a kill":
            argusd.start()
        until(lambda: told() >= jobs, f"and all again {when}")
        again = [a for b in am.bodies() for a in b if a["labels"]["name"] == over]
        assert all(ended(a) for a in again), "what is over is told as over, if it was under way when argusd was killed"


class Alertmanager:
    """The real one, of this distribution; what it knew of alerts goes with its process."""

    def __init__(self, home):
        self.home, self.port = home, free_port()
        self.url = f"http://127.0.0.1:{self.port}/api/v2/alerts"

    def start(self):
        up = [OBSERVE / "up-alertmanager", "--dir", self.home, "--listen", f"127.0.0.1:{self.port}"]
        done = subprocess.run(up, capture_output=True, text=True)
        assert done.returncode == 0, done

    def stop(self):
        subprocess.run([OBSERVE / "down", self.home])

    def open(self):
        """Names of what it holds for open."""
        with DIRECT.open(self.url, timeout=60) as reply:
            return {a["labels"]["name"] for a in json.load(reply) if a["status"]["state"] == "active"}


@pytest.mark.skipif(
    subprocess.run([OBSERVE / "fetch", "--where"], capture_output=True).returncode != 0,
    reason="no Alertmanager: run deploy/observe/fetch",
)
def test_a_real_alertmanager_that_starts_anew_knows_all_that_is_open(tmp_path):
    am = Alertmanager(tmp_path / "am")
    with contextlib.ExitStack() as runs, house(tmp_path, {"am": f'kind: alertmanager, url: "{am.url}"'},
                                               more="  routes: [{to: am}]") as argusd:  # fmt: skip
        am.start()
        runs.callback(am.stop)
        rule = {"of": "job", "when": "gpus > 200", "text": "'{name}' is large"}
        assert argusd.call("PUT", "/v1/alert_rules/large", rule).status == 201
        jobs = {argusd.submit("echo held", nnodes=222, n_gpus_per_node=1) for _ in range(25)}
        until(lambda: am.open() == jobs, "it has each")
        over = jobs.pop()
        argusd.stop_job(over)
        until(lambda: am.open() == jobs, "and of one the end")
        argusd.kill9()
        am.stop()
        am.start()
        assert am.open() == set()
        argusd.start()
        until(lambda: am.open() == jobs, "all that is open, once argusd is back")


def test_a_rule_is_changed_in_one_thing_and_an_unknown_fact_is_refused(tmp_path):
    with house(tmp_path, {}) as argusd:
        changed = argusd.call("PATCH", "/v1/alert_rules/job_failed", {"off": True})
        assert changed.status == 200
        rule = changed.json()
        assert rule["off"] is True and rule["when"] == "to == FAILED" and rule["from"] == "admin"
        assert argusd.call("PATCH", "/v1/alert_rules/none", {"off": True}).status == 404
        bad = argusd.call("PATCH", "/v1/alert_rules/node_disk_low", {"when": "disk_fre < 1GiB"})
        assert bad.status == 422 and "disk_free" in bad.body.decode()
        assert argusd.call("DELETE", "/v1/alert_rules/job_failed").status == 200
        assert argusd.get("/v1/alert_rules/job_failed")["off"] is False


def test_lists_come_in_pages(tmp_path):
    with house(tmp_path, {}) as argusd:
        rule = {"of": "job", "when": "gpus > 200", "text": "'{name}' is large"}
        assert argusd.call("PUT", "/v1/alert_rules/large", rule).status == 201
        jobs = {argusd.submit("echo held", nnodes=222, n_gpus_per_node=1) for _ in range(5)}
        until(lambda: {a["name"] for a in argusd.get("/v1/alerts")["alerts"]} == jobs, "each has its alert")
        for path, key in (("/v1/alerts", "alerts"), ("/v1/incidents", "incidents")):
            seen, cursor = [], ""
            while cursor is not None:
                page = argusd.get(f"{path}?limit=2" + (f"&cursor={cursor}" if cursor else ""))
                assert len(page[key]) <= 2
                seen += [x["id"] for x in page[key]]
                cursor = page["next_cursor"]
            assert len(seen) == len(set(seen)) == 5
            assert argusd.call("GET", f"{path}?limit=0").status == 400
            assert argusd.call("GET", f"{path}?cursor=-1").status == 400


def test_a_node_that_was_lost_before_argusd_knew_it_is_no_news(tmp_path):
    """Ray lists it until its head starts anew. One that argusd has seen alive is told, also if it went meanwhile."""
    with FakeRay(state=tmp_path / "ray") as ray:
        ray.node("h2", "dead")
        with Argusd(tmp_path, ray.url, more=alerts_yaml({"log": "kind: log"})) as argusd:
            job = argusd.submit("echo it runs on the other one")
            argusd.wait_over(job)
            argusd.kill9()
            ray.node("h3", "dead")
            argusd.start()

            def lost():
                return {a["name"] for a in argusd.get("/v1/alerts")["alerts"] if a["rule"] == "node_lost"}

            assert until(lost, "a node is lost") == {"h3"}
