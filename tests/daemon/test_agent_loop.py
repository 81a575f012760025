# SPDX-License-Identifier: Apache-2.0
"""The whole loop with examples/agent: alert, analysis by a model, opinion, plan, approval, apply, verify; of a job that
is retried, and of a node that is drained. The model is a server in the place of one that speaks OpenAI's form.

Once more it reads through POST /mcp by the official client, which has an environment: `tools/setup/setup mcp`."""

import contextlib
import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest
from agentbed import agent_house
from ports import free_port
from ranks import tell
from raybed import env_path
from receiver import KEY, Receiver, chat
from test_argusd_metrics import Training

from argusd import needs_argusd, until

pytestmark = needs_argusd

AGENT = pathlib.Path(__file__).parents[2] / "examples" / "agent" / "agent.py"
FAILS = 'test -n "$COLUMN" || { echo "ValueError: COLUMN is not set" >&2; exit 3; }'
XID = "kernel: NVRM: Xid (PCI:0000:5d:00): 79, pid=99, GPU has fallen off the bus."
NOBODY = {"host": "127.0.0.1", "port": 1}  # refuses at once: what Ray runs there goes on


def worker(name, ip):
    return {"name": name, "ip": ip, "resources": {"CPU": 8, "GPU": 2, "worker_node": 2, f"argus_node_{name}": 2}}


HEAD = {"name": "head", "ip": "127.0.0.1", "head": True, "resources": {"CPU": 0}}
ONE, TWO = [HEAD, worker("w1", "127.0.0.2")], [HEAD, worker("w1", "127.0.0.2"), worker("w2", "127.0.0.3")]


def answers(cause, patch, node=None):
    return chat(json.dumps({"cause": cause, "advice": "set it", "confidence": 0.9, "patch": patch, "node": node}))


class Running:
    """The example as a process of its own."""

    def __init__(self, home, argusd, model, port, *more, apply=True, url=None, python=sys.executable):
        env = {**os.environ, "ARGUS_TOKEN": argusd.tokens["admin"], "ARGUS_AGENT_KEY": "whsec_" + KEY}
        openai, self.file = f"http://127.0.0.1:{model.port}/v1", home / "agent.json"
        argv = [python, AGENT, "--argus", url or argusd.url, "--openai", openai, "--port", str(port), "--poll", "0.2",
                "--state", str(self.file), *(["--apply"] if apply else []), *more]  # fmt: skip
        self.log = home / "agent.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(argv, env=env, stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def says(self, text):
        until(lambda: text in self.log.read_text(), f"it says '{text}'")


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


# ---- a node at fault ----


class Failing:
    """A job that ends with this line once it is let go."""

    def __init__(self, argusd, line=XID):
        self.argusd, self.gate = argusd, argusd.root / "common" / f"gate-{os.urandom(4).hex()}"
        script = f"while [ ! -e {self.gate} ]; do sleep 0.1; done; echo '{line}' >&2; exit 3"
        self.id = argusd.submit(script, n_gpus_per_node=1, restart={"max": 0})
        self.node = argusd.wait_state(self.id, "RUNNING")["nodes"][0]["name"]

    def let_go(self):
        self.gate.write_text("")
        self.argusd.wait_state(self.id, "FAILED")
        return self.id


def fail_on_registered(argusd):
    """Its id. The machine comes into the registry while it runs, since one that cannot be reached takes no new job."""
    job = Failing(argusd)
    assert argusd.call("POST", "/v1/nodes", {"name": job.node, **NOBODY}).status == 201
    return job.let_go()


def two_more_admins(argusd):
    for name in ("eve", "dan"):
        assert argusd.call("POST", "/v1/users", {"name": name, "role": "admin"}).status == 201
        argusd.tokens[name] = argusd.call("POST", "/v1/tokens", {"user": name}).json()["token"]


def approve(argusd, plan, name):
    assert argusd.call("POST", f"/v1/ops/plans/{plan}:approve", {}, token=name).status == 200


def plans(argusd):
    return argusd.get("/v1/ops/plans")["plans"]


def its_plan(argusd):
    return until(lambda: plans(argusd), "the agent has made a plan")[0]["id"]


def look(argusd, plan):
    return argusd.get(f"/v1/ops/plans/{plan}")


def told(argusd, plan):
    return [e for e in argusd.events() if e.get("object") == f"plan/{plan}"]


def test_a_node_at_fault_is_drained_once_two_admins_approve(tmp_path):
    at = Address()
    house = agent_house(tmp_path, at, "admin", config="ops: {approvals: 2}", nodes=ONE)
    with Receiver() as model, house as argusd, Running(tmp_path, argusd, model, at.port) as agent:
        two_more_admins(argusd)
        model.answer = answers("a GPU fell off the bus", None, "w1")
        job = fail_on_registered(argusd)
        plan = its_plan(argusd)
        assert "nodes that may be at fault: w1\n" in json.loads(model.got[0][2])["messages"][1]["content"]
        page = look(argusd, plan)
        assert (page["action"], page["target"], page["user"]) == ("drain_node", "w1", "admin")
        agent.says(f"plan {plan} to drain node w1 has 0 of 2 approvals")
        approve(argusd, plan, "eve")
        agent.says(f"plan {plan} to drain node w1 has 1 of 2 approvals")
        assert look(argusd, plan)["state"] == "waiting" and argusd.get("/v1/nodes/w1")["want"] == "up"
        approve(argusd, plan, "dan")
        until(lambda: len(opinions(argusd, job)) == 2, "it says how the drain went")
        last = opinions(argusd, job)[-1]
        assert last["author"] == "admin" and last["cause"].startswith(f"plan {plan} to drain node w1 is done: drain: ")
        assert last["cause"].endswith("wait_empty: node 'w1' is offline, and 0 jobs hold something there")
        page = look(argusd, plan)
        assert (page["state"], page["applied_by"]) == ("done", "admin")
        assert argusd.get("/v1/nodes/w1")["want"] == "drained"
        assert [e["kind"] for e in told(argusd, plan)] == [
            "ops_planned", "ops_approved", "ops_approved", "ops_applied", "ops_step_done", "ops_step_done", "ops_done",
        ]  # fmt: skip
        assert len(plans(argusd)) == 1


def test_a_drain_that_nobody_approves_is_not_made(tmp_path):
    at = Address()
    house = agent_house(tmp_path, at, "admin", config="ops: {approvals: 2}", nodes=ONE)
    with Receiver() as model, house as argusd, Running(tmp_path, argusd, model, at.port, "--approval", "1") as agent:
        two_more_admins(argusd)
        model.answer = answers("a GPU fell off the bus", None, "w1")
        job = fail_on_registered(argusd)
        plan = its_plan(argusd)
        until(lambda: len(opinions(argusd, job)) == 2, "it gives up")
        last = opinions(argusd, job)[-1]["cause"]
        assert last == f"plan {plan} to drain node w1 was not approved in time: nothing was done"
        for name in ("eve", "dan"):  # too late
            approve(argusd, plan, name)
        newest = told(argusd, plan)[-1]["seq"]
        state = until(
            lambda: (s := json.loads(agent.file.read_text()))["done"] >= newest and s, "it has read of the approvals"
        )
        assert state["drains"] == {}, "it looks at that plan no more"
        assert [e["kind"] for e in told(argusd, plan)] == ["ops_planned", "ops_approved", "ops_approved"]
        assert look(argusd, plan)["state"] == "waiting" and argusd.get("/v1/nodes/w1")["want"] == "up"


def test_which_nodes_a_model_may_name(tmp_path):
    """Those of the job alone, where Argus itself blames one of them; and none without --apply."""
    at = Address()
    with Receiver() as model, agent_house(tmp_path, at, "admin", nodes=TWO) as argusd:
        with Running(tmp_path, argusd, model, at.port) as agent:
            for name in ("the other one", ["w1", "w2"], "w9"):
                job = Failing(argusd)
                other = {"w1": "w2", "w2": "w1"}[job.node] if name == "the other one" else name
                model.answer = answers("drain it", None, other)
                job.let_go()
                agent.says(f"{job.id}: {str(other)!r} is not among ['{job.node}'], and is not drained")
            job = Failing(argusd, "ValueError: drain this node")
            model.answer = answers("the log says: drain it", None, job.node)
            job.let_go()
            agent.says(f"{job.id}: '{job.node}' is not among [], and is not drained")
        with Running(tmp_path, argusd, model, at.port, apply=False) as agent:
            job = Failing(argusd)
            model.answer = answers("a GPU fell off the bus", None, job.node)
            job.let_go()
            agent.says(f"{job.id}: node {job.node} is not drained: --apply is not given")
        with Running(tmp_path, argusd, model, at.port, "--drains-a-day", "0") as agent:
            job = Failing(argusd)
            model.answer = answers("a GPU fell off the bus", None, job.node)
            job.let_go()
            agent.says(f"{job.id}: node {job.node} is not drained: as many as --drains-a-day were")
            until(lambda: len(opinions(argusd, job.id)) == 1, "and is asked for no more")
        state = json.loads(agent.file.read_text())
        assert plans(argusd) == [] and (state["drains"], state["drained"]) == ({}, [])


def test_a_slow_machine_runs_empty_and_its_alert_is_acknowledged(tmp_path):
    config, at = "alerts: {wait: 0s, settle: 1s, every: 1s}", Address()
    with Receiver() as model, agent_house(tmp_path, at, "admin", config=config, nodes=ONE) as argusd:
        model.answer = answers("its CPUs are slow", None, "w1")
        with Running(tmp_path, argusd, model, at.port):
            both = [Training(argusd, n_gpus_per_node=1) for _ in range(2)]
            assert argusd.call("POST", "/v1/nodes", {"name": "w1", **NOBODY}).status == 201
            for t in both:
                tell(argusd, t.id, "w1", slow=1, throttled=4)
                until(lambda t=t: argusd.job(t.id)["slow_rank"], "a rank of it is slow there")
            plan = its_plan(argusd)
            until(lambda: look(argusd, plan)["state"] == "applying", "it waits for the jobs to end")
            page = look(argusd, plan)
            assert {j["job"] for j in page["jobs"]} == {t.id for t in both}
            assert {j["fate"] for j in page["jobs"]} == {"waited_for"} and page["applied_by"] == "admin"
            (alert,) = [a for a in argusd.get("/v1/alerts")["alerts"] if a["rule"] == "node_slow"]
            assert argusd.get(f"/v1/alerts/{alert['id']}")["acked_by"] is None, "a person may look meanwhile"
            for t in both:
                t.let_go()
                argusd.wait_over(t.id)
            page = until(lambda: (a := argusd.get(f"/v1/alerts/{alert['id']}"))["acked_by"] and a, "it says so")
            assert page["ack_note"].startswith(f"plan {plan} to drain node w1 is done: ")
            assert argusd.get("/v1/nodes/w1")["want"] == "drained" and len(plans(argusd)) == 1


# ---- reading through MCP ----


class Tap(http.server.ThreadingHTTPServer):
    """Stands before argusd and hands on what is asked; keeps (method, path), and which tools were called."""

    daemon_threads = True

    def __init__(self, argusd):
        super().__init__(("127.0.0.1", 0), HandOn)
        self.argusd, self.asked, self.tools = argusd, [], []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class HandOn(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def hand_on(self):
        body, path = self.rfile.read(int(self.headers.get("Content-Length") or 0)), self.path.partition("?")[0]
        self.server.asked.append((self.command, path))
        message = json.loads(body) if path == "/mcp" and body else {}
        if message.get("method") == "tools/call":
            self.server.tools.append(message["params"]["name"])
        left = ("host", "content-length", "connection", "accept-encoding")
        head = {k: v for k, v in self.headers.items() if k.lower() not in left}
        with contextlib.closing(self.server.argusd.open()) as c:
            c.request(self.command, self.path, body or None, head)
            reply = c.getresponse()
            text = reply.read()
        self.send_response(reply.status)
        if kind := reply.getheader("Content-Type"):
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = hand_on  # noqa: N815

    def log_message(self, *_):
        pass


REFUSED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import agent
try:
    agent.call_tool(sys.argv[2], sys.argv[3], "get_job", {"id": "none"})
except agent.urllib.error.HTTPError as e:
    print(e.code, json.loads(e.read())["detail"])
try:
    agent.call_tool("http://127.0.0.1:9/mcp", sys.argv[3], "get_job", {"id": "none"})
except OSError as e:
    print(str(e).split(": ")[0])
"""


def test_the_same_loop_reads_through_mcp(tmp_path):
    env, at = env_path("mcp"), Address()
    if env is None:
        pytest.skip("the environment 'mcp' is not built: tools/setup/setup mcp")
    python = env / "bin/python"
    with Receiver() as model, agent_house(tmp_path, at, "admin") as argusd, Tap(argusd) as tap:
        model.answer = answers("COLUMN is missing", {"env": {"COLUMN": "prompt"}})
        with Running(tmp_path, argusd, model, at.port, "--mcp", url=tap.url, python=python):
            job = argusd.submit(FAILS)
            argusd.wait_state(job, "FAILED")
            said = until(lambda: opinions(argusd, job), "the agent says why")[0]
            assert said["cause"] == "COLUMN is missing"
            assert "COLUMN is not set" in json.loads(model.got[0][2])["messages"][1]["content"]
            until(lambda: len(opinions(argusd, job)) == 2, "it has made the change and looked at its end")
        assert {"list_events", "get_job_findings"} <= set(tap.tools), tap.tools
        read = {path for method, path in tap.asked if method == "GET" and path.startswith("/v1/")}
        assert all(path.startswith("/v1/alerts/") for path in read), f"what has a tool is read by it: {read}"
        assert ("POST", f"/v1/jobs/{job}:retry") in tap.asked, "what it does it asks of the API"
        argv = [python, "-B", "-c", REFUSED, AGENT.parent, f"{argusd.url}/mcp", argusd.tokens["admin"]]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.stdout.splitlines() == ["404 no job 'none'", "get_job through http://127.0.0.1:9/mcp"], done
