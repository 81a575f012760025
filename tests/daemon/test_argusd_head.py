# SPDX-License-Identifier: Apache-2.0
"""A head that argusd starts on its own machine, by a program of the test in the place of `ray`. What runs there is not
ended because its dashboard is silent: jobs may run on it that nobody can see now, and not only ours."""

import os
import pathlib
import signal
import socket
import sys

import pytest
from fakeray import FakeRay
from ports import free_port

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

# `ray start --head`: a raylet and a GCS that do nothing, and a dashboard that listens and never answers.
RAY = """#!PYTHON
import pathlib, subprocess, sys
here = pathlib.Path(__file__).parent
listens = "import signal, socket, sys; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); signal.pause()"
options = dict(word.partition("=")[::2] for word in sys.argv[1:])
with open(here / "starts", "a") as starts:
    starts.write("start\\n")
for name in ("raylet", "gcs_server"):
    child = subprocess.Popen([here / name, "6000"])
    while pathlib.Path(f"/proc/{child.pid}/comm").read_text().strip() != name:
        pass
dashboard = subprocess.Popen([sys.executable, "-c", listens, options["--dashboard-port"], "dashboard/dashboard.py"])
(here / "dashboard").write_text(str(dashboard.pid))
"""


class HeadArgusd(Argusd):
    nodes = "min_shm: 0, min_disk: 0"

    def __init__(self, home):
        self.dashboard_port = free_port()
        super().__init__(home, f"http://127.0.0.1:{self.dashboard_port}")
        self.bin = pathlib.Path(home) / "bin"
        (self.bin / "ray-2.51.1.dist-info").mkdir(parents=True)
        self.program("python3", f'#!/bin/sh\nPYTHONPATH={self.bin} exec {sys.executable} "$@"\n')  # it "has" Ray
        self.program("ray", RAY.replace("PYTHON", f"{self.bin}/python3", 1))
        for name in ("raylet", "gcs_server"):
            (self.bin / name).symlink_to("/bin/sleep")

    def program(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def write_config(self):
        super().write_config()
        text = self.config.read_text().replace(
            f'ray: {{address: "{self.ray_url}"',
            f"ports: {{gcs: {free_port()}}}\nnodes: {{{self.nodes}}}\n"
            f'ray: {{address: "{self.ray_url}", head: {{managed: true, host: 127.0.0.1, ray_bin: {self.bin}/ray}}',
        )
        self.config.write_text(text)

    def head_row(self):
        return self.get("/v1/nodes/head")

    def wait_reason(self, code):
        try:
            return until(lambda: (h := self.head_row())["reason"]["code"] == code and h, f"the head is {code}")
        except AssertionError as e:
            raise AssertionError(f"{e}; last: {self.head_row()}; {self.said()[-3000:]}") from None

    def starts(self):
        return (self.bin / "starts").read_text().count("start")

    def pids_of(self, name):
        """Of the processes that run this program of ours."""
        mine = f"{self.bin}/{name}\0".encode()
        return [p.parent.name for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if read(p).startswith(mine)]

    def pid_of(self, name):
        """Once there is one: on a busy machine argusd may be at starting its head anew."""
        return until(lambda: len(pids := self.pids_of(name)) == 1 and pids[0], f"one '{name}' runs")


def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.fixture
def argusd(tmp_path):
    with HeadArgusd(tmp_path) as argusd:
        yield argusd
        argusd.call("POST", "/v1/clusters/default:down", {})
        until(lambda: argusd.head_row()["state"] == "offline", "the head is stopped")


def dashboard_listens(argusd):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", argusd.dashboard_port)) == 0


def test_a_head_that_is_silent_is_told_and_goes_on(argusd, tmp_path):
    head = argusd.wait_reason("dashboard_silent")
    assert head["state"] == "pending" and "ends none of its processes" in head["reason"]["text"]
    assert "cluster down" in head["reason"]["fix"]
    told = lambda reason: [reason[key] for key in ("code", "text", "fix")]  # noqa: E731
    clusters = lambda: argusd.get("/v1/clusters")["clusters"]  # noqa: E731
    until(lambda: told(clusters()[0]["reason"]) == told(head["reason"]), "the cluster tells the same")
    pids = [argusd.pid_of(name) for name in ("raylet", "gcs_server")]
    argusd.kill9()
    argusd.start()
    argusd.wait_reason("dashboard_silent")  # adopted or just found: it is no other head
    assert [argusd.pid_of(name) for name in ("raylet", "gcs_server")] == pids and argusd.starts() == 1
    told = [e for e in argusd.events() if e.get("object") == "node/head" and e["reason"]["code"] == "dashboard_silent"]
    assert told and all(e["kind"] == "node_trouble" for e in told)
    dashboard = until((argusd.bin / "dashboard").read_text, "the head was started")
    os.kill(int(dashboard), signal.SIGKILL)
    until(lambda: not dashboard_listens(argusd), "the port is free")
    ray = FakeRay(state=tmp_path / "ray")
    ray.port = argusd.dashboard_port
    with ray:
        until(lambda: argusd.head_row()["state"] == "online", "its dashboard answers, and it is in")
        assert [argusd.pid_of(name) for name in ("raylet", "gcs_server")] == pids and argusd.starts() == 1
