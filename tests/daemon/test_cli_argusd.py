# SPDX-License-Identifier: Apache-2.0
"""argus against the real argusd: that both mean the same by every route the command line uses."""

import json
import os
import subprocess

import pytest
import yaml
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd

COUNT = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo step:$i; sleep 0.02; done; printf '\\377\\000end'"


class Cli:
    def __init__(self, argusd, home):
        keep = {k: v for k, v in os.environ.items() if k == "PATH" or k.endswith("SAN_OPTIONS")}
        self.env = {**keep, "HOME": str(home), "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["admin"]}

    def start(self, *args):
        ends = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([PROGRAMS["argus"], *args], env=self.env, bufsize=0, **ends)

    def run(self, *args, text=""):
        argv = [PROGRAMS["argus"], *args]
        return subprocess.run(argv, input=text, env=self.env, capture_output=True, text=True, timeout=PATIENCE)

    def json(self, *args):
        p = self.run(*args, "-o", "json")
        assert p.returncode == 0, p.stderr
        return json.loads(p.stdout)

    def submit(self, entrypoint, *options, **keys):
        p = self.run("submit", "-", *options, text=yaml.safe_dump(Argusd.spec(entrypoint, **keys)))
        assert p.returncode == 0, p.stderr
        return p.stdout.split()[0]


@pytest.fixture
def argusd(tmp_path):
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as a:
        yield a


@pytest.fixture
def cli(argusd, tmp_path):
    return Cli(argusd, tmp_path)


def test_submit_follow_prints_id_then_log_and_succeeds(cli, argusd, tmp_path):
    go = tmp_path / "go"
    spec = tmp_path / "job.yaml"
    spec.write_text(yaml.safe_dump(Argusd.spec(f"echo one; while [ ! -e {go} ]; do sleep 0.1; done; echo two")))
    p = cli.start("submit", "--follow", str(spec))
    job = p.stdout.readline().decode().strip()
    until(lambda: argusd.job(job)["proof"], "the driver's place is checked")
    go.touch()
    log, talk = p.communicate(timeout=PATIENCE)
    assert (p.returncode, log) == (0, b"one\ntwo\n")
    assert f"job {job} SUCCEEDED" in talk.decode().splitlines()[-1]
    status = cli.run("status", job).stdout
    assert "not on the head" in status and str(argusd.job_dir(job) / "logs/driver.log") in status


def test_follow_loses_and_doubles_nothing_when_argusd_is_killed(cli, argusd):
    job = cli.submit(COUNT)
    p = cli.start("logs", "-f", job)
    seen = p.stdout.readline()
    argusd.kill9()
    argusd.start()
    rest, talk = p.communicate(timeout=PATIENCE)
    assert seen + rest == argusd.log_file(job).read_bytes()
    assert p.returncode == 0, talk


def test_exit_statuses_of_jobs(cli, argusd):
    failed = cli.submit("exit 3")
    assert cli.run("wait", failed).returncode == 10
    assert cli.run("logs", "-f", failed).returncode == 10
    endless = cli.submit("exec sleep 1000", n_gpus_per_node=1)
    assert cli.run("wait", endless, "--timeout", "1s").returncode == 7
    assert cli.run("stop", endless, "--wait").returncode == 0
    assert cli.run("wait", failed, endless).returncode == 10
    assert cli.run("wait", endless).returncode == 11
    assert cli.run("status", "nope").returncode == 4
    nodes = cli.json("node", "ls")["nodes"]
    assert sum(n["gpus"]["used"] for n in nodes) == 0


def test_problems_come_with_places_and_dry_run_starts_nothing(cli, argusd):
    until(lambda: argusd.post(Argusd.spec("true"), "?dry_run=1").json()["placement"], "argusd has seen Ray")
    p = cli.run("submit", "-", text="workload: ray\nnnods: 1\nn_gpus_per_node: x\nentrypoint: 'true'\n")
    assert p.returncode == 5
    assert "stdin:2:1: error: 'nnods': " in p.stderr and "stdin:3:18: error: 'n_gpus_per_node'" in p.stderr
    spec = yaml.safe_dump(Argusd.spec("true"))
    p = cli.run("submit", "-", "--dry-run", "--set", "nnodes=1", text=spec)
    assert (p.returncode, p.stdout) == (0, "/bin/sh -c true\n") and "would start now on h" in p.stderr
    assert cli.json("ls", "-a")["jobs"] == []


def test_lists_filters_and_events_agree(cli, argusd):
    jobs = [cli.submit("exec sleep 1000", name="twin", n_gpus_per_node=4) for _ in range(3)]
    until(lambda: {argusd.job(job)["state"] for job in jobs[:2]} == {"RUNNING"}, "two run")
    waiting = cli.json("queue")["jobs"]
    assert [j["id"] for j in waiting] == jobs[2:] and waiting[0]["reason"]["text"]
    assert cli.run("ls", "-q").stdout.split() == jobs[::-1]
    assert cli.run("ls", "-q", "--state", "running", "--since", "1h").stdout.split() == jobs[1::-1]
    assert cli.run("ls", "-q", "--user", "nobody").stdout == ""
    ambiguous = cli.run("status", "twin").stderr
    assert all(job in ambiguous for job in jobs)
    p = cli.run("stop", "--filter", "workload=ray", "-y", "--wait")
    assert p.returncode == 0 and p.stdout.count(" STOPPED") >= 3
    kinds = [e["kind"] for e in cli.json("events", jobs[0])["events"]]
    assert kinds[0] == "submitted" and len(kinds) > 3
    assert cli.run("events", "-f", jobs[0]).returncode == 0
    assert cli.run("logs", "--tail", "1", jobs[0]).returncode == 0
    assert cli.json("whoami")["role"] == "admin" and cli.json("version")["server"]["version"]


def test_refusals_are_said_by_lang(cli, argusd):
    spec = yaml.safe_dump(Argusd.spec("echo x"))
    assert argusd.call("PUT", "/v1/users/admin/quota", {"queued": 0}).status == 200
    english = cli.run("submit", "-", text=spec)
    cli.env["LC_ALL"] = "zh_CN.UTF-8"
    chinese = cli.run("submit", "-", text=spec)
    assert (english.returncode, chinese.returncode) == (5, 5)
    assert "jobs waiting and may have 0" in english.stderr and "个作业等待，最多 0 个" in chinese.stderr
    gone = cli.run("user", "rm", "nobody")
    assert gone.returncode == 4 and "没有用户 'nobody'" in gone.stderr


def test_an_id_of_another_form_is_answered_with_the_form(cli):
    for noun, form in (("alert", "a17"), ("incident", "i4")):
        p = cli.run(noun, "show", "1")
        assert p.returncode == 4 and f"as {form}" in p.stderr and f"argus {noun} ls" in p.stderr, p


def test_who_gives_no_token_is_told_so(cli, argusd):
    """It is no token that is wrong, and what stores one is named."""
    del cli.env["ARGUS_TOKEN"]
    p = cli.run("ls")
    assert p.returncode == 3 and "no token was sent" in p.stderr and "argus login" in p.stderr, p
    cli.env["ARGUS_TOKEN"] = "argus_of_somebody_else"
    p = cli.run("ls")
    assert p.returncode == 3 and "no token was sent" not in p.stderr and "argus login" in p.stderr, p


def test_every_obstacle_is_in_why(cli, argusd):
    """The pool is empty, too: who waits for the quota alone is not told half of it."""
    assert argusd.call("POST", "/v1/projects", {"name": "rl"}).status == 201
    large = argusd.spec("echo x", nnodes=2, n_gpus_per_node=64, project="rl", pool="nowhere")
    job = argusd.submit(large, token="admin")
    smaller = argusd.call("PUT", "/v1/projects/rl/quota", {"gpus_ceiling": 1})  # a submit beyond it is refused
    assert smaller.status == 200
    why = until(
        lambda: (w := argusd.get(f"/v1/jobs/{job}/why"))["code"] != "shared_root_not_seen" and w,
        "argusd has looked at its root",
    )
    codes = [why["code"], *[a["code"] for a in why["also"]]]
    assert codes[0] == "quota_gpus" and "pool_too_small" in codes[1:], why
    out = cli.run("why", job).stdout.splitlines()
    assert [line for line in out if line.startswith("then ") and "nowhere" in line], out
    held = argusd.call("POST", f"/v1/jobs/{job}:hold")
    assert held.status in (200, 202)
    why = argusd.get(f"/v1/jobs/{job}/why")
    assert why["code"].startswith("held") and {a["code"] for a in why["also"]} >= {"quota_gpus", "pool_too_small"}, why
