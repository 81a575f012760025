# SPDX-License-Identifier: Apache-2.0
"""What one may not see does not exist for him: ann makes everything that there is, each thing with a mark in its name
or its text, and every GET of the API is asked with the token of bob, who shares no project with her; so is every tool
of MCP, and he follows every stream while she goes on. No answer of any of them, about anything of hers by its very
name, has the mark."""

import contextlib
import itertools
import json
import re
import subprocess

import pytest
import standin
from checkpoints import put_checkpoint
from fakeray import FakeRay
from programs import PROGRAMS
from snapshots import added, tar
from test_mcp import call as call_tool
from test_mcp import new as ask_mcp

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd
MARK = "zqx"
RECEIVERS = "alerts: {receivers: {ops: {kind: log}}}"
# Lists show the most where they are asked for all; a stream begins with what was.
ALL = ("all=1", "state=all", "limit=1000", f"user={MARK}-ann", f"project={MARK}-project", "by=user", "by=project")
STREAMS = {"/v1/changes"}
FOLLOWED = ("/v1/events?follow=1&since=0", "/v1/changes?follow=1")
JUDGED = """print('{"step": 10, "score": 0.25}', flush=True)"""


class World:
    """Everything of ann's, by the words in braces of the routes."""

    def __init__(self, argusd):
        self.argusd = argusd
        self.names = {}
        for name, token in ((f"{MARK}-ann", "ann"), ("bob", "bob")):
            self.made("POST", "/v1/users", {"name": name}, "admin")
            reply = self.made("POST", "/v1/tokens", {"user": name, "name": f"{token}-token"}, "admin")
            argusd.tokens[token] = reply["token"]
        self.made("POST", "/v1/tokens", {"name": f"{MARK}-token"})
        self.keep("user", f"{MARK}-ann")
        project = {"name": f"{MARK}-project", "members": [f"{MARK}-ann"], "note": f"{MARK}-note"}
        self.made("POST", "/v1/projects", project, "admin")
        self.keep("project", f"{MARK}-project")
        for path in (f"users/{MARK}-ann", f"projects/{MARK}-project"):
            self.made("PUT", f"/v1/{path}/quota", {"queued": 1000}, "admin")
        until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "the root is ready")
        self.make_training()
        self.make_jobs()
        self.make_archive()
        self.make_content()
        self.make_work()
        self.make_alerts()

    def keep(self, word, name):
        self.names.setdefault(word, []).append(name)

    def made(self, method, path, body=None, token="ann"):
        reply = self.argusd.call(method, path, body, token=token)
        assert reply.status in (200, 201, 202, 204), (path, reply)
        return reply.json() if reply.body else None

    def job(self, name, line, **keys):
        keys = {"project": f"{MARK}-project", "env": {"WHO": f"{MARK}-env"}, **keys}
        job = self.argusd.submit(line, token="ann", submission_id=f"{MARK}-{name}", **keys)
        self.keep("id", job)
        return job

    def make_training(self):
        """One with samples, metrics, a checkpoint, and a job that judged that; over, since others need its GPU."""
        standin.make_world(self.argusd.root)
        name = f"{MARK}-training"
        judge = {"workload": "ray", "n_gpus_per_node": 0, "entrypoint": ["python3", "-c", JUDGED]}
        spec = {"submission_id": name, "project": f"{MARK}-project", "eval_on_save": judge}
        reply = self.argusd.post({**standin.SPEC, **spec}, "?no_trial=1", token="ann")
        assert reply.status == 201, reply
        training = standin.Training.of(self.argusd, name)
        training.dump(1, [(f"{MARK}-prompt", f"{MARK}-answer", 1.0)])
        training.order("say", f"step:1 - {MARK}/score:0.5")
        training.save(10)
        until(lambda: [c["eval"] for c in training.listed()] == ["done"], "its checkpoint is judged")
        training.order("exit", 0)
        self.argusd.wait_over(name)
        for page, key in {"samples": "samples", "metrics": "series"}.items():
            path = f"/v1/jobs/{name}/{page}"
            until(lambda path=path, key=key: self.argusd.get(path, token="ann")[key], f"it has {page}")
        self.keep("id", name)
        self.keep("id", f"{name}-eval-10")

    def make_archive(self):
        packed = self.job("packed", f"echo {MARK}-packed")
        self.argusd.wait_over(packed)
        pack = lambda: self.argusd.call("POST", f"/v1/jobs/{packed}:archive", token="ann").status  # noqa: E731
        until(lambda: pack() == 202, "its last records are on the disk")
        state = lambda: (self.argusd.job(packed)["archived"] or {}).get("state")  # noqa: E731
        until(lambda: state() == "archived", "its directory is an archive")

    def make_jobs(self):
        failed = self.job("failed", f"echo {MARK}-said; echo 'ValueError: {MARK}-error' >&2; exit 1")
        self.argusd.wait_over(failed)
        put_checkpoint(self.argusd.job_dir(failed) / "checkpoints", 10)
        runs = self.job("runs", f"echo {MARK}-up; exec tail -f /dev/null", nnodes=2, n_gpus_per_node=4)
        self.argusd.wait_state(runs, "RUNNING")
        self.job("waits", "echo x", nnodes=2, n_gpus_per_node=4)
        self.job("greedy", "echo x", nnodes=9, n_gpus_per_node=4)
        self.made("POST", f"/v1/jobs/{failed}/findings", {"cause": f"{MARK}-cause"})
        self.made("POST", f"/v1/jobs/{failed}:note", {"note": f"{MARK}-noted"})
        self.keep("ray_id", runs)

    def make_content(self):
        root = self.argusd.root
        (root / f"users/{MARK}-ann").mkdir(parents=True, exist_ok=True)
        (root / f"users/{MARK}-ann/{MARK}-file").write_text(f"{MARK}-text")
        raw = root / f"users/{MARK}-ann/{MARK}-raw.jsonl"
        raw.write_text('{"question": "1 + 1?"}\n')
        self.keep("id", self.made("POST", "/v1/uploads", {"name": f"{MARK}-upload", "bytes": 9})["id"])
        self.keep("name", added(self.argusd, f"{MARK}-code@1", tar({f"{MARK}.py": "x"}), token="ann")["name"])
        spec = {"workload": "ray", "entrypoint": f"echo {MARK}-preset"}
        self.made("PUT", f"/v1/presets/{MARK}-preset?project={MARK}-project", {"spec": spec})
        self.made("PUT", f"/v1/secrets/{MARK.upper()}_KEY", {"value": f"{MARK}-value"})
        team = {"value": f"{MARK}-value", "project": f"{MARK}-project"}
        self.made("PUT", f"/v1/secrets/{MARK.upper()}_TEAM", team)
        self.keep("name", f"{MARK}-preset")
        for kind in ("datasets", "models"):
            body = {"name": f"{MARK}-{kind}", "source": str(raw), "in_place": True, "project": f"{MARK}-project"}
            reply = self.argusd.call("POST", f"/v1/{kind}", body, token="ann")
            assert reply.status == 201 or kind == "models", reply
            self.keep("name", f"{MARK}-{kind}")

    def make_work(self):
        spec = {"workload": "ray", "entrypoint": f"echo {MARK}-step"}
        body = {"name": f"{MARK}-pipe", "concurrency": "allow", "steps": {f"{MARK}-train": {"with": spec}}}
        self.made("PUT", f"/v1/pipelines/{MARK}-pipe?project={MARK}-project", body)
        self.keep("run", self.made("POST", f"/v1/pipelines/{MARK}-pipe:run", {})["id"])
        self.made("POST", f"/v1/pipelines/{MARK}-pipe:schedule", {"cron": "@yearly"})
        self.made("POST", "/v1/notebooks", {"name": f"{MARK}-book"})
        service = {"app": f"{MARK}.m:a", "name": f"{MARK}-service", "project": f"{MARK}-project"}
        self.made("POST", "/v1/services", service)
        for name in ("pipe", "book", "service"):
            self.keep("name", f"{MARK}-{name}")
        self.keep("simulation", self.made("POST", "/v1/simulations")["id"])
        self.keep("plan", self.made("POST", "/v1/ops/stop_many", {"jobs": [f"{MARK}-greedy"]})["id"])
        self.keep("session", self.made("POST", "/v1/session", {"token": self.argusd.tokens["ann"]}, None)["id"])
        self.made("PATCH", "/v1/me/settings", {"settings": {"page": f"{MARK}-page"}})

    def make_alerts(self):
        rule = {"of": "job", "when": "gpus > 30", "text": "job '{name}' wants {gpus} GPUs", "severity": "critical"}
        self.made("PUT", "/v1/alert_rules/greedy", rule, "admin")
        alerts = until(lambda: self.argusd.get("/v1/alerts?state=all", token="ann")["alerts"], "there is an alert")
        for a in alerts:
            self.keep("alert", a["id"])
            self.keep("incident", a["incident"])
        self.made("POST", f"/v1/alerts/{alerts[0]['id']}:ack", {"note": f"{MARK}-ack"})
        self.made("POST", f"/v1/alerts/{alerts[0]['id']}:silence", {"for": "1h", "note": f"{MARK}-silence"})
        body = {"for": "1h", "names": [f"{MARK}-runs"], "note": f"{MARK}-why"}
        self.made("POST", "/v1/silences", body, "admin")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with FakeRay("2.60.0") as ray, Argusd(tmp_path_factory.mktemp("stranger"), ray.url, RECEIVERS) as argusd:
        made = World(argusd)
        until(lambda: argusd.call("GET", "/v1/prometheus/targets", token="ann").status == 200, "argusd knows its pages")
        yield made


def gets():
    """The paths of all GETs, as argusd lists them."""
    listed = subprocess.run([PROGRAMS["argusd"], "--list-routes"], capture_output=True, text=True, check=True).stdout
    routes = [line.split("\t")[0] for line in listed.splitlines()]
    return [route.removeprefix("GET ") for route in routes if route.startswith("GET ")]


def filled(path, names):
    """The path with each name of hers in each pair of braces."""
    words = re.findall(r"{(\w+)}", path)
    known = {"cluster": ["default"], "name": [*names.get("name", []), "worker1"], "rule": ["greedy"], "step": ["10"]}
    chosen = [known.get(w) or names[w] for w in words]
    for values in itertools.product(*chosen):
        one = path
        for word, value in zip(words, values, strict=True):
            one = one.replace("{" + word + "}", value)
        yield one, values


def asked(path):
    yield path
    if path in STREAMS:
        return
    for more in ALL:
        yield f"{path}?{more}"
    yield f"{path}?user={MARK}-ann&all=1&limit=1000"
    if path == "/v1/files":
        yield f"{path}?path=users/{MARK}-ann"
        yield f"{path}?path=users"
    if path == "/v1/files/content":
        yield f"{path}?path=users/{MARK}-ann/{MARK}-file"
    if path.endswith("/samples"):
        yield f"{path}?step=1"
    if path.endswith("/logs"):
        yield f"{path}?tail=1000"
    if path == "/v1/logs":
        yield f"{path}?grep={MARK[:2]}"
    if path == "/v1/search":
        for text in (MARK[:2], f"{MARK}-ann", f"{MARK}-project"):
            yield f"{path}?q={text}&limit=50"
    if path.endswith("/report"):
        yield f"{path}?format=html"


def answer(argusd, path, token):
    """The text of an answer; of a stream, what it begins with."""
    if path.partition("?")[0] in STREAMS:
        with contextlib.closing(argusd.stream(path, token=token)) as stream:
            return json.dumps([row for row, _ in zip(iter(stream), range(1), strict=False)], default=str)
    reply = argusd.call("GET", path, token=token)
    assert reply.status < 500 or path == "/readyz", (path, reply)
    return reply.body.decode(errors="replace")


def marks(text, path, values):
    """Where the mark stands, but for the names that he asked for himself."""
    own = {path, *values, *re.findall(r"[\w./-]*" + MARK + r"[\w./-]*", path)}
    for name in sorted(own | {n.partition("@")[0] for n in own}, key=len, reverse=True):
        text = text.replace(name, "") if name else text
    return [text[max(0, m.start() - 200) : m.end() + 100] for m in re.finditer(MARK, text, re.IGNORECASE)]


def test_the_world_is_there(world):
    """What bob is not shown is shown to ann: a walk through an empty house would find nothing."""
    seen = {path for path in gets() for one, _ in filled(path, world.names) for question in asked(one)
            if marks(answer(world.argusd, question, "ann"), "", ())}  # fmt: skip
    wanted = """/v1/jobs /v1/jobs/{id} /v1/jobs/{id}/events /v1/events /v1/alerts /v1/incidents /v1/silences /v1/users
        /v1/projects /v1/tokens /v1/secrets /v1/presets /v1/pipelines /v1/pipeline-runs /v1/notebooks /v1/services
        /v1/snapshots /v1/uploads /v1/datasets /v1/ops/plans /v1/quotas /v1/me/settings /v1/nodes
        /v1/search /v1/jobs/{id}/samples /v1/jobs/{id}/metrics /v1/jobs/{id}/logs /v1/jobs/{id}/logs/files
        /v1/jobs/{id}/checkpoints /v1/checkpoints""".split()
    assert not set(wanted) - seen


@pytest.mark.parametrize("path", gets())
def test_nothing_of_hers_comes_back(world, path):
    found = {}
    for one, values in filled(path, world.names):
        for question in asked(one):
            seen = marks(answer(world.argusd, question, "bob"), question, values)
            if seen:
                found[question] = seen[0]
    assert not found


# ---- streams ----


def followed(world, path, token, mine):
    """What a stream says while ann makes a note and a job, up to a job of the reader himself."""
    argusd, said = world.argusd, []
    with contextlib.closing(argusd.stream(path, token=token)) as stream:
        world.made("POST", f"/v1/jobs/{MARK}-failed:note", {"note": f"{MARK}-noted for {mine}"})
        argusd.submit("echo x", token="ann", submission_id=f"{MARK}-beside-{mine}", project=f"{MARK}-project")
        argusd.submit("echo x", token=token, submission_id=mine)
        for row in stream:
            said.append(json.dumps(row, default=str))
            if mine in said[-1].replace(f"{MARK}-beside-{mine}", "").replace(f"{MARK}-noted for {mine}", ""):
                return said
    raise AssertionError(f"{path} has ended before it told of '{mine}'")


@pytest.mark.parametrize("path", FOLLOWED)
def test_who_follows_hears_nothing_of_hers(world, path):
    name = path.partition("?")[0].rpartition("/")[2]
    assert any(MARK in said for said in followed(world, path, "ann", f"own-{name}"))
    assert [said for said in followed(world, path, "bob", f"bobs-{name}") if MARK in said.lower()] == []


def test_a_job_of_hers_is_not_followed(world):
    for job in world.names["id"]:
        for path in (f"/v1/jobs/{job}/logs?follow=1", f"/v1/jobs/{job}/events?follow=1"):
            with contextlib.closing(world.argusd.open()) as c:
                head = {"Accept": "text/event-stream"}
                c.request("GET", path, None, world.argusd.head(world.argusd.tokens["bob"], head))
                raw = c.getresponse()
                assert raw.status == 404, path  # a stream would not end, and is not read
                assert not marks(raw.read().decode(), path, (job,)), path


# ---- MCP ----


def tool_calls(tool, names):
    """Arguments of a tool: each name of hers where it needs one, and what makes its lists longest."""
    known = {**names, "job": names["id"], "jobs": [[j] for j in names["id"]], "node": ["worker1"], "step": [10]}
    needed = tool["inputSchema"].get("required", [])
    more = {"all": True, "limit": 1000, "state": "all", "user": f"{MARK}-ann", "project": f"{MARK}-project",
            "q": MARK[:2], "grep": MARK[:2]}  # fmt: skip
    for values in itertools.product(*[known.get(word) or [MARK[:2]] for word in needed]):
        given = dict(zip(needed, values, strict=True))
        yield given
        for key, value in more.items():
            if key in tool["inputSchema"]["properties"] and key not in given:
                yield {**given, key: value}


def test_no_tool_tells_of_hers(world):
    """What reads says nothing of hers, what acts is refused; there is no other thing in MCP that could tell."""
    argusd, asked_of = world.argusd, 0
    assert MARK in json.dumps(call_tool(argusd, "list_jobs", "ann"))
    for tool in ask_mcp(argusd, "tools/list", token="bob").json()["result"]["tools"]:
        reads = tool["annotations"]["readOnlyHint"]
        for given in tool_calls(tool, world.names):
            result = call_tool(argusd, tool["name"], "bob", **given)
            own = [v for value in given.values() for v in (value if isinstance(value, list) else [value])]
            seen = marks(json.dumps(result), "", [v for v in own if isinstance(v, str)])
            assert not seen, (tool["name"], given, seen)
            names_hers = bool(tool["inputSchema"].get("required"))
            assert reads or not names_hers or result["isError"], (tool["name"], given, result)
            asked_of += 1
    assert asked_of > 50
    for method in ("resources/list", "resources/templates/list", "prompts/list"):
        assert ask_mcp(argusd, method, token="bob").status == 404, f"{method} is to be walked here, too"
