# SPDX-License-Identifier: Apache-2.0
"""An argusd with an ops agent: a receiver of its batches, and a token that decides what it is told."""

import contextlib
import json
import re

from fakeray import FakeRay
from receiver import KEY, Receiver, check_webhook

from argusd import Argusd, until

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Agent(Receiver):
    """Takes batches that are signed as they must be."""

    def __init__(self):
        super().__init__()
        self.answer = check_webhook

    def events(self):
        return [e for b in self.bodies() for e in b["events"]]

    def figures(self):
        return [f for b in self.bodies() for f in b["figures"]]

    def hears(self, condition, what):
        return until(lambda: next((e for e in self.events() if condition(e)), None), what)


def agent_yaml(url, token, more=""):
    return f'agent: {{url: "{url}", secret: AGENT_KEY, secrets_of: user/admin, token: {token}, every: 1s{more}}}'


@contextlib.contextmanager
def agent_house(home, agent, role="user", more="", config="", nodes=None):
    """role: whose eyes the agent has. config: more lines of argus.yaml. nodes: of the fake Ray, if not its own."""
    with FakeRay(nodes=nodes, state=home / "ray") as ray, Argusd(home, ray.url, more=config) as argusd:
        argusd.ray = ray
        assert argusd.call("PUT", "/v1/secrets/AGENT_KEY", {"value": "whsec_" + KEY}).status == 201
        token = argusd.get("/v1/tokens", token=role)["tokens"][0]["id"]
        argusd.more = agent_yaml(agent.url, token, more) + "\n" + config
        argusd.write_config()
        argusd.agent_token = token
        argusd.restart()
        yield argusd


def published(api):
    """The schema of the contract, from openapi.json: what is sent to an agent is open, for members may be added; what
    it sends is closed."""
    roots, closed = ["AgentBatch", "OpinionForm", "Opinion", "AlertAck", "Alert"], {"OpinionForm", "AlertAck"}
    schemas, kept, todo = api["components"]["schemas"], {}, list(roots)

    def opened(node, inside):
        if isinstance(node, list):
            return [opened(x, inside) for x in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            todo.append(name)
            return {"$ref": f"#/$defs/{name}"}
        drop = {"additionalProperties"} if node.get("additionalProperties") is False and inside not in closed else set()
        return {k: opened(v, inside) for k, v in node.items() if k not in drop}

    while todo:
        name = todo.pop()
        if name not in kept:
            kept[name] = None
            kept[name] = opened(schemas[name], name)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "argus-agent/1",
        "title": "messages between Argus and an ops agent",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in roots],
        "$defs": dict(sorted(kept.items())),
    }


def example_of(message, names):
    """The message with what differs from run to run written the same way: names are texts to be replaced."""
    text = json.dumps(message, ensure_ascii=False)
    for old, new in names.items():
        text = text.replace(old, new)
    text = TIME.sub("2026-01-01T00:00:00Z", text)
    text = re.sub(r"agt_[0-9a-f]{24}", "agt_0123456789abcdef01234567", text)
    return json.loads(text)


def shape(value):
    """Members and types, without values; a list is what its items are."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()}
    if isinstance(value, list):
        return sorted({json.dumps(shape(v), sort_keys=True) for v in value})
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
