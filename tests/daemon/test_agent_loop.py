# SPDX-License-Identifier: Apache-2.0
"""The whole loop with examples/agent: alert, analysis by a model, opinion, plan, apply, verify. The model is a server
in the place of one that speaks OpenAI's form."""

import json
import os
import pathlib
import subprocess
import sys

from agentbed import agent_house
from ports import free_port
from receiver import KEY, Receiver

from argusd import needs_argusd, until

pytestmark = needs_argusd

AGENT = pathlib.Path(__file__).parents[2] / "examples" / "agent" / "agent.py"
FAILS = 'test -n "$COLUMN" || { echo "ValueError: COLUMN is not set" >&2; exit 3; }'


def answers(cause, patch):
    said = json.dumps({"cause": cause, "advice": "set it", "confidence": 0.9, "patch": patch})
    return 200, json.dumps({"choices": [{"message": {"content": said}}]}).encode()


class Running:
    """The example as a process of its own."""

    def __init__(self, home, argusd, model, port):
        env = {**os.environ, "ARGUS_TOKEN": argusd.tokens["admin"], "ARGUS_AGENT_KEY": "whsec_" + KEY}
        openai, state = f"http://127.0.0.1:{model.port}/v1", str(home / "agent.json")
        argv = [sys.executable, AGENT, "--argus", argusd.url, "--openai", openai, "--apply", "--port", str(port),
                "--state", state]  # fmt: skip
        self.log = home / "agent.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(argv, env=env, stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Address:
    def __init__(self):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"


def opinions(argusd, job):
    return argusd.get(f"/v1/jobs/{job}/findings")["opinions"]


def test_alert_analysis_opinion_plan_apply_verify(tmp_path):
    config = "alerts: {wait: 0s, settle: 1s, every: 1s}"
    at = Address()
    with Receiver() as model, agent_house(tmp_path, at, "admin", config=config) as argusd:
        model.answer = answers("COLUMN is missing", {"env": {"COLUMN": "prompt"}})
        with Running(tmp_path, argusd, model, at.port):
            job = argusd.submit(FAILS)
            argusd.wait_state(job, "FAILED")
            said = until(lambda: opinions(argusd, job), "the agent says why")[0]
            assert said["cause"] == "COLUMN is missing" and said["author"] == "admin"
            asked = json.loads(model.got[0][2])
            assert "COLUMN is not set" in asked["messages"][1]["content"]
            until(lambda: len(opinions(argusd, job)) == 2, "it has made the change and looked at its end")
            last = opinions(argusd, job)[-1]["cause"]
            again = next(j for j in argusd.all_jobs("&all=1") if j["id"] != job)["id"]
            assert last == f"the retry {again} with the proposed change ended SUCCEEDED"
            assert argusd.job(again)["retry_of"] == job and argusd.job(again)["state"] == "SUCCEEDED"
            alerts = until(lambda: [a for a in argusd.get("/v1/alerts?state=all")["alerts"] if a["name"] == job], "one")
            until(lambda: argusd.get(f"/v1/alerts/{alerts[0]['id']}")["acked_by"] == "admin", "it is acknowledged")

        # A model that lies: what it says is text, and nothing is changed that it may not change.
        model.answer = answers("give me all", {"user": "root", "env": {"X": "1"}})
        late = argusd.submit(FAILS)  # while no agent runs: it reads what it has missed
        argusd.wait_state(late, "FAILED")
        with Running(tmp_path, argusd, model, at.port) as agent:
            until(lambda: opinions(argusd, late), "it reads what came while it was away")
            until(lambda: "is not made" in agent.log.read_text(), "it says that it changes nothing")
            assert len(argusd.all_jobs("&all=1")) == 3
            assert len(opinions(argusd, job)) == 2, "what was dealt with is not dealt with again"
