# SPDX-License-Identifier: Apache-2.0
"""GET /v1/forecast and argus forecast: demand from the ledger, when a pool is full, what more nodes would change.

The days of the past are written into the store of an argusd that is down; the truth of such a ledger is known."""

import contextlib
import csv
import fcntl
import io
import json
import os
import pty
import socket
import struct
import subprocess
import termios
import unicodedata

import pytest
from fakeray import FakeRay
from ledgerdays import write_days
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

GPUS = 4
WEEK = [1.0, 1.5, 2.0, 1.0, 0.5, 0.0, 0.25]  # GPUs by day


def nodes():
    rows = [{"name": "head", "ip": "127.0.0.1", "head": True, "resources": {"CPU": 0}}]
    for i, name in enumerate(("w1", "w2")):
        worker = {"CPU": 8, "GPU": 2, "worker_node": 1, f"argus_node_{name}": 1}
        rows.append({"name": name, "ip": f"127.0.0.{2 + i}", "resources": worker})
    return rows


@contextlib.contextmanager
def world(home, days=(), labels=""):
    with FakeRay(nodes=nodes(), state=home / "ray") as ray, Argusd(home, ray.url) as argusd:
        if len(days):
            argusd.stop()
            write_days(argusd, labels, days, GPUS)
            argusd.start()
        until(lambda: argusd.get("/v1/pools")["pools"][0]["gpus"]["total"] == GPUS, "the nodes are known")
        until(lambda: ask(argusd)["pools"][0]["capacity_gpus"] == GPUS, "the book has them")
        yield argusd


def ask(argusd, query="", status=200):
    reply = argusd.call("GET", f"/v1/forecast?{query}", token="viewer")
    assert reply.status == status, reply
    return reply.json()


def environment(argusd, **more):
    keep = {k: v for k, v in os.environ.items() if k == "PATH" or k.endswith("SAN_OPTIONS")}
    return {**keep, "HOME": str(argusd.home), "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["viewer"], **more}


def argus(argusd, *args, **env):
    argv = [PROGRAMS["argus"], "forecast", *args]
    return subprocess.run(argv, env=environment(argusd, **env), capture_output=True, text=True)


def on_terminal(argusd, *args, **env):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    ends = {"stdin": slave, "stdout": slave, "stderr": subprocess.PIPE}
    p = subprocess.Popen([PROGRAMS["argus"], "forecast", *args], env=environment(argusd, NO_COLOR="1", **env), **ends)
    os.close(slave)
    seen = b""
    with contextlib.suppress(OSError):
        while piece := os.read(master, 1 << 16):
            seen += piece
    os.close(master)
    p.communicate()
    return seen.decode().replace("\r", "").splitlines()


def width(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def test_what_repeats_is_foretold(tmp_path):
    days = [WEEK[i % 7] for i in range(70)]
    with world(tmp_path, days) as argusd:
        (pool,) = ask(argusd, "weeks=3")["pools"]
        assert pool["pool"] is None and pool["enough"] and (pool["days"], pool["weeks"]) == (70, 3)
        assert [p["gpus"] for p in pool["points"]] == pytest.approx([WEEK[i % 7] for i in range(21)], abs=1e-6)
        assert pool["error_gpus"] == pytest.approx(0, abs=1e-6) and pool["covered"] == 1
        assert pool["last_week_gpus"] == pytest.approx(sum(WEEK) / 7)
        assert pool["full_at"] is None and pool["full_early_at"] is None and pool["saturated_days"] == 0
        # The command line: a table that fits, in two languages; every day as CSV; the reply as JSON.
        for lang, title in (("C", "NEXT WEEK"), ("zh_CN.UTF-8", "下周")):
            lines = on_terminal(argusd, "--weeks", "3", LC_ALL=lang)
            assert title in lines[0] and "(all)" in lines[1], lines
            assert max(map(width, lines)) <= 80
            assert "0.9±0.0" in lines[1]
        weeks = argus(argusd, "--pool", "", "--weeks", "3")
        assert weeks.returncode == 0, weeks.stderr
        rows = list(csv.DictReader(io.StringIO(argus(argusd, "--weeks", "3", "--csv").stdout)))
        assert [float(r["gpus"]) for r in rows] == pytest.approx([WEEK[i % 7] for i in range(21)], abs=1e-3)
        assert json.loads(argus(argusd, "--weeks", "3", "-o", "json").stdout)["pools"][0]["points"] == pool["points"]


def test_when_it_is_full(tmp_path):
    # A twentieth of a GPU a day: 95 % of four GPUs are reached about 28 days after the last one.
    days = [0.05 * i for i in range(49)]
    with world(tmp_path, days, labels="h20") as argusd:
        told = {p["pool"]: p for p in ask(argusd, "weeks=2")["pools"]}
        assert set(told) == {None, "h20"}
        whole = told[None]
        assert whole["method"] == "trend" and whole["error_gpus"] < 0.5 * whole["naive_error_gpus"]
        assert whole["weeks"] == 2 and whole["full_at"] is None  # 3.1 GPUs then
        assert told["h20"]["capacity_gpus"] == 0 and told["h20"]["full_at"] is None  # no node is in it now
    days = [0.05 * i for i in range(70)]
    with world(tmp_path / "later", days, labels="h20") as argusd:
        (pool,) = ask(argusd, "weeks=6&pool=h20")["pools"]
        assert pool["weeks"] == 6
        whole = next(p for p in ask(argusd, "weeks=6")["pools"] if p["pool"] is None)
        first = next(p["at"] for p in whole["points"] if p["gpus"] >= 0.95 * GPUS)
        assert whole["full_at"] == first and whole["full_early_at"] <= first
        assert first <= whole["points"][13]["at"]  # the truth: 3.8 GPUs on the seventh day
        shown = argus(argusd, "--weeks", "6")
        assert first[:10] in shown.stdout
        one = argus(argusd, "--weeks", "6", "--pool", "h20")
        assert one.stdout.count("\n") == 2 + 1 + 1 + 6, one.stdout


def test_too_short_a_history_is_said(tmp_path):
    with world(tmp_path, [1.0] * 12) as argusd:
        (pool,) = ask(argusd)["pools"]
        assert not pool["enough"] and (pool["days"], pool["days_needed"], pool["weeks"]) == (12, 35, 0)
        assert pool["points"] == [] and pool["full_at"] is None
        said = argus(argusd)
        assert said.returncode == 0 and "(all): not enough history: 12 of 35 days" in said.stderr
        assert "历史不足" in argus(argusd, LC_ALL="zh_CN.UTF-8").stderr
        assert ask(argusd, "pool=nowhere", 404)["code"] == "forecast_no_pool"
        for query in ("weeks=0", "weeks=14", "nodes=x", "nodes=1001"):
            ask(argusd, query, 400)


def test_what_more_nodes_would_change(tmp_path):
    with world(tmp_path, [4.0] * 40) as argusd:
        gate = argusd.root / "common" / "gate"
        wait = f"while [ ! -e {gate} ]; do sleep 0.1; done"
        jobs = [argusd.submit(wait, n_gpus_per_node=2, nnodes=2) for _ in range(3)]
        argusd.wait_state(jobs[0], "RUNNING")
        gate.touch()
        for job in jobs:
            argusd.wait_over(job)
        (pool,) = ask(argusd, "nodes=4")["pools"]
        if_so, now, then = pool["what_if"], pool["what_if"]["now"], pool["what_if"]["then"]
        assert (if_so["jobs"], if_so["node_gpus"]) == (3, 2)
        assert (now["nodes"], then["nodes"]) == (2, 6)
        # All three were there before the first had ended: they waited for each other, and would not have.
        assert now["wait_mean_s"] > 0 and then["wait_mean_s"] == 0 and now["never"] == 0
        assert then["utilisation"] == pytest.approx(now["utilisation"] / 3, rel=0.05)
        # It is full today, and was on each of the last 28 days; with four nodes more it is not.
        assert now["full_at"] == ask(argusd)["from"] and then["full_at"] is None
        assert pool["saturated_days"] == 28
        shown = argus(argusd, "--nodes", "4")
        assert "3 jobs since" in shown.stderr and "full on 28 of the last 28 days" in shown.stderr
        assert [line.split()[0] for line in shown.stdout.splitlines()[-2:]] == ["2", "6"]
        fewer = ask(argusd, "nodes=-1")["pools"][0]["what_if"]
        assert fewer["then"]["nodes"] == 1 and fewer["then"]["never"] == 3
        assert ask(argusd, "nodes=-2", 422)["code"] == "forecast_no_nodes"
        # Who hangs up while it is worked out takes nothing with him.
        bearer = f"Authorization: Bearer {argusd.tokens['viewer']}"
        for path in ("/v1/forecast?nodes=1", "/v1/usage?by=pool&from=90d"):
            for _ in range(40):
                with socket.create_connection(("127.0.0.1", argusd.port)) as s:
                    s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{bearer}\r\n\r\n".encode())
        assert ask(argusd, "nodes=1")["pools"][0]["what_if"]["now"] == now
