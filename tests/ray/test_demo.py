# SPDX-License-Identifier: Apache-2.0
"""The demo's machines: argusd reaches its workers over ssh and starts Ray there, so that they can be drained; a second
run takes up what the first one left, and one whose machines were made anew gets them back. Without the training."""

import json
import pathlib
import subprocess
import sys

import pytest
from programs import PROGRAMS
from raybed import env_path, namespaces

from argusd import needs_argusd, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools/demo"))
import demo  # noqa: E402

pytestmark = [pytest.mark.ray, needs_argusd, pytest.mark.timeout(900)]


class Run:
    """One `./dev demo` up to where it trains."""

    def __init__(self, directory, venv):
        self.p = demo.paths(str(directory))
        self.bed = demo.start_cluster(self.p, str(venv))
        self.url = demo.start_argusd(self.p, self.bed)
        self.env = demo.write_env(self.p, self.url)
        self.workers = demo.add_workers(self.p, self.bed, str(venv), self.url, self.env)

    def argus(self, *args):
        argv = [PROGRAMS["argus"], *args]
        return subprocess.run(argv, env=self.env, check=True, capture_output=True, text=True, timeout=400).stdout

    def node(self, name):
        return json.loads(self.argus("node", "show", name, "-o", "json"))

    def gpus(self):
        return {n["name"]: n["gpus"]["total"] for n in json.loads(self.argus("node", "ls", "-o", "json"))["nodes"]}


def test_the_workers_of_the_demo_are_drained_and_come_back(tmp_path):
    venv = env_path("verl-0.9.1")
    if venv is None or not namespaces():
        pytest.skip("no environment verl-0.9.1 (run ./dev setup), or no namespaces")
    (tmp_path / "shared").mkdir()
    if PROGRAMS["argus-shepherd"].parent != PROGRAMS["argusd"].parent:
        pytest.skip("the programs are not installed: set ARGUS_BIN")
    (tmp_path / "app").mkdir()
    (tmp_path / "app/bin").symlink_to(PROGRAMS["argusd"].parent)
    spec = tmp_path / "both.yaml"
    spec.write_text("workload: ray\nnnodes: 2\nn_gpus_per_node: 2\nentrypoint: [echo, hello]\n")
    try:
        run = Run(tmp_path, venv)
        assert run.workers == ["worker-1", "worker-2"]
        assert {n: g for n, g in run.gpus().items() if n in run.workers} == {"worker-1": 4, "worker-2": 4}
        run.argus("node", "drain", "worker-1", "--wait")
        assert run.node("worker-1")["state"] == "offline"
        again = Run(tmp_path, venv)
        assert (again.bed, again.url) == (run.bed, run.url), "what runs is used again"
        assert [again.node(n)["state"] for n in again.workers] == ["online", "online"], "and what was drained is back"
        demo.bed_call(again.p, "down", check=True)
        until(lambda: again.node("worker-2")["state"] != "online", "argusd knows that the machines are gone")
        anew = Run(tmp_path, venv)
        assert [anew.node(n)["state"] for n in anew.workers] == ["online", "online"], "new machines join by themselves"
        assert "hello" in anew.argus("submit", "--follow", str(spec))
    finally:
        demo.down(str(tmp_path))
