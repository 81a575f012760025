# SPDX-License-Identifier: Apache-2.0
"""The ops agent: what it is pushed (docs/ops-agent.md), by whose eyes, over restarts; and what it answers. The examples
of the contract are messages that argusd sent, and are compared with those that it sends now."""

import json
import os
import pathlib
import subprocess

import jsonschema
import pytest
from agentbed import Agent, agent_house, example_of, published, shape
from programs import PROGRAMS
from receiver import check_webhook

from argusd import needs_argusd, until

pytestmark = needs_argusd

CONTRACT = pathlib.Path(__file__).parents[2] / "docs" / "ops-agent"
KINDS = ("submitted", "admitted", "started", "finding", "ended", "opinion", "alert_fired", "alert_acknowledged")


def kept(name, made):
    """The file of the contract; written anew with ARGUS_WRITE_EXAMPLES=1."""
    file = CONTRACT / name
    if os.environ.get("ARGUS_WRITE_EXAMPLES"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    return json.loads(file.read_text())


def judge(message):
    schema = json.loads((CONTRACT / "argus-agent-1.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(message)


def test_each_event_that_its_token_may_see_comes_in_order_over_kill_9(tmp_path):
    with Agent() as agent, agent_house(tmp_path, agent) as argusd:
        begin = argusd.get("/v1/agent")["taken"]
        theirs = argusd.submit("true", token="admin")
        hers = argusd.submit("exit 3")
        argusd.wait_over(hers), argusd.wait_over(theirs)
        agent.hears(lambda e: e["job"] == hers and e["kind"] == "ended", "the end is told")
        agent.answer = (503, b"later")
        second = argusd.submit("true")
        argusd.wait_over(second)
        until(lambda: argusd.get("/v1/agent")["trouble"], "it is told to be in trouble")
        argusd.kill9()
        argusd.start()
        agent.answer = check_webhook
        agent.hears(lambda e: e["job"] == second and e["kind"] == "ended", "the end is told after a kill")
        assert theirs not in json.dumps(agent.bodies())
        seen = argusd.get(f"/v1/events?since={begin}&limit=1000", token="user")["events"]
        told = [e["seq"] for e in agent.events()]
        wanted = [e["seq"] for e in seen if e["seq"] <= max(told)]
        assert list(dict.fromkeys(told)) == wanted, "each once at least, in their order"
        for b in agent.bodies():
            assert b["schema"] == "argus-agent/1" and b["since"] <= b["next"] and b["gap"] is None
        by_seq = {e["seq"]: e for e in seen}
        assert all(by_seq[e["seq"]] == e for e in agent.events() if e["seq"] in by_seq), "as GET /v1/events has them"
        page = argusd.get("/v1/agent")
        assert page["is_there"] and page["batches"] and page["trouble"] is None


def test_an_interruption_names_its_report(tmp_path):
    with Agent() as agent, agent_house(tmp_path, agent) as argusd:
        job = argusd.submit("exit 3")
        argusd.wait_over(job)
        finding = agent.hears(lambda e: e["job"] == job and e["kind"] == "finding", "the interruption is told")
        report = argusd.call("GET", finding["report"], token="user")
        assert report.status == 200 and job in report.body.decode(), "the agent's token opens it"
        agent.hears(lambda e: e["job"] == job and e["kind"] == "ended", "the end is told")
        assert {e["kind"] for e in agent.events() if e["report"]} == {"finding"}


def test_a_dead_agent_is_behind_by_so_much_and_is_told_the_gap(tmp_path):
    with Agent() as agent, agent_house(tmp_path, agent, role="admin", more=", behind: 100") as argusd:
        agent.answer = None  # it takes connections and says nothing
        begin = argusd.get("/v1/agent")["taken"]
        for i in range(130):
            assert argusd.call("PUT", f"/v1/secrets/K{i}", {"value": "x"}).status == 201
        agent.over.set()
        agent.answer = check_webhook
        gap = until(lambda: next((b["gap"] for b in agent.bodies() if b["gap"]), None), "the gap is told")
        assert gap["since"] >= begin and gap["next"] > gap["since"]
        last = argusd.get("/v1/events?newest_first=1&limit=1")["events"][0]["seq"]
        until(lambda: argusd.get("/v1/agent")["taken"] >= last, "it has caught up")
        told = {e["seq"] for e in agent.events()}
        missed = argusd.get(f"/v1/events?since={gap['since']}&limit=1000")["events"]
        assert all(e["seq"] in told for e in missed if gap["next"] < e["seq"] <= last)
        assert [e["kind"] for e in argusd.events()].count("agent_gap") == 1
        until(lambda: argusd.get("/v1/agent")["gap"] is None, "the gap was told")
        sent = next(b for b in agent.bodies() if b["gap"])
        secrets = [e for e in sent["events"] if e["kind"].startswith("secret")]  # others may stand before them
        made = example_of({**sent, "events": secrets[:1], "figures": []}, {})
        example = kept("examples/batch-gap.json", made)
        assert shape(example) == shape(made)
        judge(example)


def test_without_a_token_that_works_nothing_is_pushed(tmp_path):
    with Agent() as agent, agent_house(tmp_path, agent) as argusd:
        job = argusd.submit("true")
        argusd.wait_over(job)
        agent.hears(lambda e: e["job"] == job, "it is told")
        assert argusd.call("DELETE", f"/v1/tokens/{argusd.agent_token}").status == 200
        before = len(agent.bodies())
        late = argusd.submit("true", token="admin")
        argusd.wait_over(late)
        until(lambda: "opens nothing" in (argusd.get("/v1/agent")["trouble"] or ""), "its trouble is told")
        assert len(agent.bodies()) == before


def test_an_agent_that_takes_nothing_is_an_alert(tmp_path):
    """And the command line says how it goes, and what was said of a job, without a character that moves a terminal."""
    config = "alerts: {every: 1s, rules: {agent_stuck: {when: agent_failing >= 2s, clear: agent_failing < 1s}}}"
    with Agent() as agent, agent_house(tmp_path, agent, config=config) as argusd:
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ARGUS_URL": argusd.url}
        env["ARGUS_TOKEN"] = argusd.tokens["admin"]

        def argus(*args):
            argv = [PROGRAMS["argus"], *args]
            return subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout

        def alerts(state):
            return [a for a in argusd.get(f"/v1/alerts?state={state}")["alerts"] if a["rule"] == "agent_stuck"]

        agent.answer = (503, b"later")
        job = argusd.submit("exit 3")
        argusd.wait_over(job)
        [alert] = until(lambda: alerts("open"), "nobody takes what is pushed: an alert")
        assert "has taken nothing for" in alert["text"] and "tells admins why" in alert["text"]
        shown = argus("agent", "show")
        assert "failing since" in shown and "503" in shown and "none is asked" in shown
        agent.answer = check_webhook
        until(lambda: not alerts("open") and alerts("past"), "it takes them again")
        assert "failing since" not in argus("agent", "show")
        said = {"cause": "the \x1b[31mdisk", "advice": "mount it", "confidence": 0.7}
        assert argusd.call("POST", f"/v1/jobs/{job}/findings", said).status == 201
        shown = argus("opinions", job)
        assert "\x1b" not in shown and "disk" in shown and "mount it" in shown and "70 %" in shown
        assert json.loads(argus("opinions", job, "-o", "json"))["opinions"][0]["advice"] == "mount it"


def test_what_its_address_answers_is_told_to_admins_alone(tmp_path):
    """Neither the page nor the alert tells it to others: by such an address somebody could ask what argusd reaches."""
    config = "alerts: {every: 1s, rules: {agent_stuck: {when: agent_failing >= 1s}}}"
    with Agent() as agent, agent_house(tmp_path, agent, config=config) as argusd:
        agent.answer = (418, b"the-answer-of-a-server-inside")
        argusd.wait_over(argusd.submit("exit 3"))
        until(lambda: "418" in (argusd.get("/v1/agent")["trouble"] or ""), "an admin is told why")
        trouble = argusd.get("/v1/agent")["trouble"].encode()
        until(lambda: any(a["rule"] == "agent_stuck" for a in argusd.get("/v1/alerts")["alerts"]), "it is an alert")
        incident = argusd.get("/v1/incidents")["incidents"][0]["id"]
        for token in ("viewer", "user"):
            page = argusd.call("GET", "/v1/agent", token=token).json()
            assert page["is_there"] and page["failing_since"] and page["trouble"] is None
            for path in ("/v1/alerts?state=all", f"/v1/incidents/{incident}/report", "/v1/events?limit=1000"):
                said = argusd.call("GET", path, token=token).body
                assert trouble not in said and b"server-inside" not in said, path


def test_figures_of_running_jobs_come_by_themselves(tmp_path):
    with Agent() as agent, agent_house(tmp_path, agent) as argusd:
        job = argusd.submit("exec tail -f /dev/null")
        other = argusd.submit("exec tail -f /dev/null", token="admin")
        argusd.wait_state(job, "RUNNING"), argusd.wait_state(other, "RUNNING")
        until(lambda: [f for f in agent.figures() if f["job"] == job], "its figures are told")
        until(lambda: any(b["figures"] and not b["events"] for b in agent.bodies()), "also when nothing happens")
        assert {f["job"] for f in agent.figures()} == {job}
        assert all(f["attempt"] == 1 and f["state"] == "RUNNING" for f in agent.figures())
        argusd.stop_job(job), argusd.stop_job(other)


def test_an_opinion_stands_beside_the_finding_and_changes_nothing(tmp_path):
    said = {
        "cause": "<script>alert(1)</script> \x1b[31m the data set was gone",
        "advice": "mount it", "class": "data_error", "confidence": 0.7, "link": "https://agent.example/7",
        "patch": {"restart": {"max": 1}},
    }  # fmt: skip
    with Agent() as agent, agent_house(tmp_path, agent) as argusd:
        job = argusd.submit("exit 3")
        argusd.wait_over(job)
        path = f"/v1/jobs/{job}/findings"
        before = argusd.job(job)
        assert argusd.call("POST", path, said, token="viewer").status == 403
        bad = ({"link": "javascript:x"}, {"author": "root"}, {"attempt": 9}, {"patch": "text"}, {"cause": "x" * 3000})
        for wrong in ({}, *({"cause": "c", **b} for b in bad)):
            assert argusd.call("POST", path, wrong, token="user").status == 400, wrong
        made = argusd.call("POST", path, said, token="user")
        assert made.status == 201
        shown = argusd.get(path)
        assert shown["opinions"] == [made.json()] and len(shown["findings"]) == 1
        assert {k: made.json()[k] for k in said} == said
        assert (made.json()["author"], made.json()["source"], made.json()["attempt"]) == ("alice", "given", 1)
        after = argusd.job(job)
        assert (after["state"], after["finding"]) == (before["state"], before["finding"])
        told = agent.hears(lambda e: e["kind"] == "opinion", "its own opinion comes back as an event")
        assert told["actor"] == "alice" and told["data"]["cause"] == said["cause"] and told["seq"] == made.json()["id"]
        argusd.restart()
        assert argusd.get(path)["opinions"] == [made.json()]
        for _ in range(99):
            assert argusd.call("POST", path, {"cause": "again"}, token="user").status == 201
        assert argusd.call("POST", path, {"cause": "again"}, token="user").status == 422
        assert len(argusd.get(path)["opinions"]) == 100
        plan = argusd.call("POST", f"/v1/jobs/{job}:retry?dry_run=1", {"patch": said["patch"]}, token="user")
        assert plan.status == 200 and "restart" in plan.body.decode()
        both = argusd.call("POST", f"/v1/jobs/{job}:retry", {"patch": {}, "apply_fix": True}, token="user")
        assert both.status == 400


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A run that has every message: (batches, events by kind, opinion sent and answered, acknowledgement)."""
    config = "alerts: {wait: 0s, settle: 1s, every: 1s}"
    with Agent() as agent, agent_house(tmp_path_factory.mktemp("told"), agent, "admin", config=config) as argusd:
        runs = argusd.submit("exec tail -f /dev/null", token="user")
        argusd.wait_state(runs, "RUNNING")
        job = argusd.submit("echo 'ValueError: no such column'; exit 3", token="user")
        argusd.wait_over(job)
        alert = until(lambda: argusd.get("/v1/alerts?state=all")["alerts"], "there is an alert")[0]
        opinion = {
            "attempt": 1, "class": "data_error", "confidence": 0.8, "cause": "the column was renamed",
            "advice": "use 'prompt'", "link": "https://agent.example/1", "patch": {"restart": {"max": 1}},
        }  # fmt: skip
        answer = argusd.call("POST", f"/v1/jobs/{job}/findings", opinion).json()
        acked = argusd.call("POST", f"/v1/alerts/{alert['id']}:ack", {"note": "the agent looks"}).json()
        for kind in KINDS:
            agent.hears(lambda e, k=kind: e["kind"] == k, f"{kind} is told")
        until(lambda: agent.figures(), "figures are told")
        names = {job: "job-failed", runs: "job-running", argusd.root.as_posix(): "/shared"}
        events = {}
        for e in agent.events():
            if e["kind"] in KINDS and (e["job"] in (job, None) or e["kind"].startswith(("alert", "incident"))):
                events.setdefault(e["kind"], example_of(e, names))
        batches = [example_of(b, names) for b in agent.bodies()]
        seqs = [e["seq"] for e in events.values()]
        messages = {
            "batch": {
                **max(batches, key=lambda b: len(b["figures"])), "events": list(events.values()),
                "since": min(seqs) - 1, "next": max(seqs),
            },
            "opinion": opinion,
            "opinion-answer": example_of(answer, names),
            "ack": {"note": "the agent looks"},
            "ack-answer": example_of(acked, names),
        }
        yield messages, json.loads(argusd.ask("GET", "/v1/openapi.json", None, None, {}).body)
        argusd.stop_job(runs)


def test_the_published_schema_is_what_argusd_says_of_itself(told):
    _, api = told
    assert kept("argus-agent-1.schema.json", published(api)) == published(api)


@pytest.mark.parametrize("name", ["batch", "opinion", "opinion-answer", "ack", "ack-answer"])
def test_the_examples_are_what_is_sent(told, name):
    messages, _ = told
    example = kept(f"examples/{name}.json", messages[name])
    judge(example)
    if name != "batch":
        assert shape(example) == shape(messages[name])
        return
    real = {e["kind"]: e for e in messages[name]["events"]}
    assert {e["kind"] for e in example["events"]} == set(KINDS) == set(real)
    for e in example["events"]:
        assert shape(e) == shape(real[e["kind"]]), e["kind"]
        same = ("kind", "actor", "object", "from", "to", "report")
        assert [e[k] for k in same] == [real[e["kind"]][k] for k in same]
    assert shape({**example, "events": []}) == shape({**messages[name], "events": []})


def test_an_agent_of_this_version_reads_what_a_later_one_adds(told):
    """The compatibility rule: members may come, none goes."""
    schema = json.loads((CONTRACT / "argus-agent-1.schema.json").read_text())
    batch = json.loads((CONTRACT / "examples/batch.json").read_text())
    judge = jsonschema.Draft202012Validator({**schema, "anyOf": [{"$ref": "#/$defs/AgentBatch"}]})
    judge.validate({**batch, "added": 1, "events": [{**e, "added": {}} for e in batch["events"]]})
    for gone in ("schema", "events", "next"):
        assert not judge.is_valid({k: v for k, v in batch.items() if k != gone})
