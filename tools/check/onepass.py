#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One run of pytest, and what became of each test.

    onepass.py OUT.json [--only IDS.json] -- ARGUMENTS OF PYTEST

OUT.json: {"code": pytest's exit status, "collected": [id], "tests": {id: {"outcome", "when", "text"}},
"costs": {file: {"tests", "wall", "cpu"}}}. An outcome is `passed`, `failed` or `skipped`; `when` is the phase that
decided it. A cost is in seconds; `cpu` counts the test's own process and the processes that it waited for, where
tests/conftest.py tells it. IDS.json is a list: no other test runs, but for those of a file that is marked `story`: a
test there goes on from what the tests before it left.
"""

import json
import sys

import pytest


class Outcomes:
    """Beside the workers of xdist it sees their reports, and asks each of them what it collected."""

    def __init__(self, only):
        self.only, self.collected, self.tests, self.costs = only, {}, {}, {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        if self.only is not None:
            named = [item for item in items if item.nodeid in self.only]
            stories = {item.path for item in named if item.get_closest_marker("story")}
            asked = [item for item in items if item.nodeid in self.only or item.path in stories]
            config.hook.pytest_deselected(items=[item for item in items if item not in asked])
            items[:] = asked
        self.collected.update(dict.fromkeys(item.nodeid for item in items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        self.collected.update(dict.fromkeys(ids))

    def pytest_runtest_logreport(self, report):
        """The worst of the phases: a test that passed and whose fixture cannot be taken down has failed."""
        cost = self.costs.setdefault(report.nodeid.partition("::")[0], {"tests": 0, "wall": 0.0, "cpu": 0.0})
        cost["tests"] += report.when == "call"
        cost["wall"] += report.duration
        cost["cpu"] += getattr(report, "cpu", 0.0)
        known = self.tests.get(report.nodeid)
        if report.failed:
            text = (known["text"] + "\n" if known else "") + report.longreprtext
            when = known["when"] if known and known["outcome"] == "failed" else report.when
            self.tests[report.nodeid] = {"outcome": "failed", "when": when, "text": text}
        elif known is None and (report.skipped or report.when == "call"):
            self.tests[report.nodeid] = {"outcome": report.outcome, "when": report.when, "text": ""}
        elif known and report.skipped and known["outcome"] == "passed":
            known["outcome"] = "skipped"


def main(argv):
    out, only = argv[0], None
    if argv[1] == "--only":
        with open(argv[2]) as f:
            only = set(json.load(f))
    outcomes = Outcomes(only)
    code = pytest.main(argv[argv.index("--") + 1 :], plugins=[outcomes])
    with open(out, "w") as f:
        told = {"collected": list(outcomes.collected), "tests": outcomes.tests, "costs": outcomes.costs}
        json.dump({"code": int(code), **told}, f)
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
