# SPDX-License-Identifier: Apache-2.0
"""What one may not see does not exist for him: ann makes everything that there is, each thing with a mark in its name
or its text, and every GET of the API is asked with the token of bob, who shares no project with her. No answer of any
of them, about anything of hers by its very name, has the mark."""

import contextlib
import itertools
import json
import re
import subprocess

import pytest
from checkpoints import put_checkpoint
from fakeray import FakeRay
from programs import PROGRAMS
from snapshots import added, tar

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd
MARK = "zqx"
RECEIVERS = "alerts: {receivers: {ops: {kind: log}}}"
# Lists show the most where they are asked for all; a stream begins with what was.
ALL = ("all=1", "state=all", "limit=1000", f"user={MARK}-ann", f"project={MARK}-project", "by=user", "by=project")
STREAMS = {"/v1/changes"}


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
        self.make_jobs()
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
        /v1/search""".split()
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
