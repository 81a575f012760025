# SPDX-License-Identifier: Apache-2.0
"""Something is broken, its rule's message comes; it is mended, and the alert ends. How long the message took is kept.

    with watched(home, "quota_near: {for: 0s}") as w:
        begun = w.begin()
        ...                                         what breaks it
        w.hears("quota_near", begun)                the message that names this rule, within a minute
        ...                                         what mends it
        w.ends("quota_near")

With ARGUS_EVIDENCE (a directory) each time is a line of its rules.jsonl, from which docs/alert-rules.md is."""

import contextlib
import json
import os
import pathlib
import time

from fakeray import FakeRay
from receiver import Receiver

from argusd import Argusd, until

WITHIN = 60  # seconds from the fault to its message, whatever the rule: a test shortens what a rule waits for
# A fact that is a mean is first known, or first crosses a bound, when enough of the minutes are there.
MEANS = {"job_idle_gpus": 300, "job_gpu_abnormal": 300}


def rules_yaml(hook, rules, more=""):
    """argus.yaml's part: everything is told to the receiver, at once. rules: lines, one rule each."""
    lines = [f"    {line}" for line in rules.strip().splitlines()] if rules else []
    return "\n".join([
        "alerts:", "  wait: 1s", "  settle: 1s", "  every: 1s", "  routes: [{to: hook, least: info}]",
        *(["  rules:", *lines] if lines else []),
        "  receivers:", f'    hook: {{kind: webhook, url: "{hook.url}"}}', more,
        "calls: {networks: [127.0.0.0/8]}",
    ])  # fmt: skip


class Watch:
    """hook: the receiver of its messages."""

    def __init__(self, argusd, hook):
        self.argusd, self.hook = argusd, hook

    @staticmethod
    def begin():
        return time.monotonic()

    def alerts(self, rule, state, name=None):
        rows = self.argusd.get(f"/v1/alerts?state={state}&limit=2000")["alerts"]
        return [a for a in rows if a["rule"] == rule and name in (None, a["name"])]

    def message(self, rule, begun, name=None):
        """(when it came, the alert in it) of the first message since then that has this rule."""
        for came, body in [m for m in list(self.hook.came) if m[0] >= begun]:
            said = json.loads(body)
            for a in (said.get("incident") or {}).get("alerts", []) if said["type"] != "incident.resolved" else []:
                if a["rule"] == rule and name in (None, a["name"]):
                    return came, a
        return None

    def hears(self, rule, begun, name=None):
        """The alert as the message has it, which did not come late."""
        came, alert = until(lambda: self.message(rule, begun, name), f"a message of {rule}")
        if folder := os.environ.get("ARGUS_EVIDENCE"):
            with open(pathlib.Path(folder) / "rules.jsonl", "a") as f:
                f.write(json.dumps({"rule": rule, "seconds": round(came - begun, 1)}) + "\n")
        most = WITHIN + MEANS.get(rule, 0)
        assert came - begun <= most, f"the message of {rule} came after {came - begun:.1f} s, more than {most}"
        return alert

    def ends(self, rule, name=None):
        until(lambda: not self.alerts(rule, "open", name), f"{rule} has ended")
        assert self.alerts(rule, "past", name), rule


@contextlib.contextmanager
def watched(home, rules="", more="", env=None, argusd=Argusd, nodes=None, **keys):
    """An argusd beside a fake Ray (w.ray), whose receiver hears of everything."""
    with Receiver() as hook, FakeRay(state=home / "ray", **({"nodes": nodes} if nodes else {})) as ray:
        made = argusd(home, ray.url, more=rules_yaml(hook, rules) + "\n" + more, **keys)
        made.env = dict(env or {})
        with made:
            made.ray = ray
            yield Watch(made, hook)
