# SPDX-License-Identifier: Apache-2.0
"""argus alert and argus incident against a stand-in for argusd: what is sent, and what is said in both languages."""

import json

import pytest
from test_cli_machines import argus, server  # noqa: F401, they are fixtures

RULE = {"name": "job_hung", "of": "job", "when": "hung == yes", "from": "admin", "off": True}
ALERT = {
    "id": "a17",
    "rule": "node_lost",
    "severity": "critical",
    "kind": "node",
    "name": "w1",
    "incident": "i4",
    "text": "node 'w1' is lost",
    "fix": "argus node check w1",
    "since": "2026-11-21T10:00:00.000Z",
    "acked_by": "bob",
}
INCIDENT = {
    "id": "i4",
    "title": "node 'w1' is lost",
    "opened_at": "2026-11-21T10:00:00.000Z",
    "closed_at": None,
    "gpu_hours": 1.5,
    "alerts": [ALERT],
    "tellings": [
        {"receiver": "ops", "state": "refused", "why": "HTTP 403"},
        {"receiver": "chat", "state": "taken", "why": None},
    ],
}


@pytest.mark.parametrize(
    "options, method, body",
    [
        (["--off"], "PATCH", {"off": True}),
        (["--on"], "PATCH", {"off": False}),
        (["--for", "5m", "--severity", "critical"], "PATCH", {"for": "5m", "severity": "critical"}),
        (["--of", "job", "--when", "gpus > 3", "--text", "x"], "PUT", {"of": "job", "when": "gpus > 3", "text": "x"}),
    ],
    ids=["off", "on", "two", "whole"],
)
def test_a_rule_is_changed_by_what_is_given(server, argus, options, method, body):  # noqa: F811
    server.replies[method, "/v1/alert_rules/job_hung"] = [(200, RULE)]
    argus("alert", "rule", "job_hung", *options)
    asked = [(m, path, json.loads(sent)) for m, path, sent in server.asked]
    assert asked == [(method, "/v1/alert_rules/job_hung", body)]


def test_a_rule_without_a_word_is_no_change(server, argus):  # noqa: F811
    argus("alert", "rule", "job_hung", code=2)
    argus("alert", "rule", "job_hung", "--on", "--off", code=2)
    assert not server.asked


def test_an_alert_is_told_in_the_language_of_who_asks(server, argus):  # noqa: F811
    server.replies["GET", "/v1/alerts/a17"] = [(200, ALERT)]
    english = argus("alert", "show", "a17").stdout
    assert "node 'w1' is lost" in english and "fix: argus node check w1" in english
    assert "acknowledged by: bob" in english
    assert "2026-11-21T10" not in english  # a time as people have it
    assert "2026-11-21T10:00:00Z" in argus("alert", "show", "a17", "--utc").stdout
    assert "ago (2026-11-21 18:00:00 +0800)" in argus("alert", "show", "a17", TZ="CST-8").stdout
    chinese = argus("alert", "show", "a17", LANG="zh_CN.UTF-8").stdout
    assert "确认人: bob" in chinese and "acknowledged" not in chinese  # its sentence is argusd's


def test_checkpoints_that_are_being_looked_at_are_not_denied(server, argus):  # noqa: F811
    server.replies["GET", "/v1/jobs/j/checkpoints"] = [(200, {"checkpoints": [], "looking": True})]
    done = argus("ckpt", "ls", "j")
    assert "is being looked at" in done.stderr and "no checkpoints" not in done.stdout + done.stderr
    server.replies["GET", "/v1/jobs/j/checkpoints"] = [(200, {"checkpoints": [], "looking": False})]
    done = argus("ckpt", "ls", "j")
    assert "no checkpoints" in done.stdout + done.stderr and "looked at" not in done.stderr


def test_a_data_set_shows_a_few_rows_column_by_column(server, argus):  # noqa: F811
    rows = [{"prompt": [{"role": "user", "content": f"{'a long begin that all of them have ' * 3}{n}"}],
             "answer": f"answer {n}"} for n in range(20)]  # fmt: skip
    entry = {"name": "gsm8k", "version": 1, "owner": "alice", "state": "ready", "about": {"sample": rows}}
    server.replies["GET", "/v1/datasets/gsm8k"] = [(200, entry)]
    done = argus("data", "show", "gsm8k")
    lines = done.stdout.splitlines()
    answers = [line.partition("answer: ")[2] for line in lines if "answer: " in line]
    assert answers == ["answer 0", "answer 1", "answer 2"]
    assert sum(line.startswith("row ") for line in lines) == 3 and "-o json" in done.stderr
    assert max(map(len, lines)) <= 80


def test_an_incident_says_who_was_told(server, argus):  # noqa: F811
    server.replies["GET", "/v1/incidents/i4"] = [(200, INCIDENT)]
    english = argus("incident", "show", "i4").stdout
    assert "ops: refused the message (HTTP 403)" in english and "chat: took the message" in english
    assert "cost: 1.50 GPU-h" in english
    assert "ops: 拒收消息 (HTTP 403)" in argus("incident", "show", "i4", LANG="zh_CN.UTF-8").stdout


@pytest.mark.parametrize(
    "words, path, key, said",
    [
        (["alert", "ls"], "/v1/alerts", "alerts", "no alerts"),
        (["alert", "silences"], "/v1/silences", "silences", "no silences"),
        (["alert", "receivers"], "/v1/receivers", "receivers", "nobody is told"),
        (["incident", "ls"], "/v1/incidents", "incidents", "no incidents"),
    ],
    ids=["alerts", "silences", "receivers", "incidents"],
)
def test_an_empty_list_says_so(server, argus, words, path, key, said):  # noqa: F811
    server.replies["GET", path] = [(200, {key: []})]
    assert said in argus(*words).stderr
