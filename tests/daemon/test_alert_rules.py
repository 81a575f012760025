# SPDX-License-Identifier: Apache-2.0
"""What each shipped rule is about is broken, and mended: its message comes to a receiver, and the alert ends. Here the
rules of jobs, Ray's head, the shared root, queue, quotas and argusd; the others are where docs/alert-rules.md says. A
rule waits as long as its test can (`for`, `keep`, `clear_for`); what it asks stays as shipped, or is scaled by a row of
RULES that the page names."""

import contextlib
import json
import os
import pathlib
import re
import signal
import threading

import pytest
from agentbed import Agent, agent_yaml
from fakeray import FakeRay
from preload import needs_compiler, preload
from receiver import KEY, Receiver
from rulebed import WITHIN, Watch, rules_yaml, watched
from smalldisk import fill, small_disk
from test_hang import SHORT, steps, trains
from test_head_lost import Head
from wallclock import WallClock

from argusd import Argusd, needs_argusd, pause, until

pytestmark = needs_argusd

ROOT = pathlib.Path(__file__).parents[2]
PATIENT = "exec tail -f /dev/null"
PAGE = ROOT / "docs" / "alert-rules.md"


def test_each_shipped_rule_has_its_test():
    """The page names each rule and the test that breaks it."""
    shipped = re.findall(r"^(\w+):$", (ROOT / "lib/alerts.yaml").read_text(), re.M)
    rows = re.findall(r"^\| `(\w+)` \|.*\| `([\w/.]+)::(\w+)` \|", PAGE.read_text(), re.M)
    assert [rule for rule, _, _ in rows] == shipped
    for rule, path, test in rows:
        text = (ROOT / path).read_text()
        assert f"def {test}(" in text and f'"{rule}"' in text, rule


def test_a_message_that_comes_late_is_none(monkeypatch):
    """Whoever waits for one in a test learns which rule was late, and how late."""
    monkeypatch.delenv("ARGUS_EVIDENCE", raising=False)
    said = {"type": "incident.opened", "incident": {"alerts": [{"rule": "node_lost", "name": "w1"}]}}

    class Told:
        came = [(1000.0, json.dumps(said))]

    w = Watch(None, Told())
    assert w.hears("node_lost", 1000.0 - WITHIN)["name"] == "w1"
    with pytest.raises(AssertionError, match=r"node_lost came after 60\.5 s"):
        w.hears("node_lost", 1000.0 - WITHIN - 0.5)


# ---- jobs ----


JOBS = """
job_failed: {keep: 3s}
job_timeout: {keep: 3s}
job_done: {keep: 3s}
"""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    with watched(tmp_path_factory.mktemp("jobs"), JOBS) as w:
        yield w


@pytest.mark.parametrize(
    "rule, script, keys, said",
    [
        ("job_failed", "exit 3", {}, "has failed: the command ended with exit code 3"),
        ("job_timeout", PATIENT, {"timeout": "1s", "stop_grace": "1s"}, "ended by its timeout"),
        ("job_done", "true", {"notify": ["hook:succeeded"]}, "has ended: SUCCEEDED"),
    ],
    ids=["failed", "timeout", "done"],
)
def test_ends_of_jobs(jobs, rule, script, keys, said):
    job = jobs.argusd.submit(script, **keys)
    if rule == "job_timeout":
        jobs.argusd.wait_state(job, "RUNNING")
    begun = jobs.begin()
    assert said in jobs.hears(rule, begun, job)["text"]
    jobs.ends(rule, job)


def test_a_node_dies_under_a_job(tmp_path):
    """Both are one incident; the job goes elsewhere, the node comes back."""
    with watched(tmp_path, "job_interrupted: {keep: 3s}\nnode_lost: {for: 1s}") as w:
        job = w.argusd.submit(PATIENT, n_gpus_per_node=1, restart={"max": 1, "backoff": "1s"})
        node = w.argusd.wait_state(job, "RUNNING")["nodes"][0]["name"]
        begun = w.begin()
        w.argusd.ray.node(node, "dead")
        lost = w.hears("node_lost", begun, node)
        assert f"node '{node}' is lost" in lost["text"]
        assert "goes back to the queue" in w.hears("job_interrupted", begun, job)["text"]
        (interrupted,) = w.alerts("job_interrupted", "all")
        assert interrupted["incident"] == w.alerts("node_lost", "open", node)[0]["incident"]
        w.argusd.ray.node(node, "alive")
        w.ends("node_lost", node)
        w.ends("job_interrupted", job)
        w.argusd.stop_job(job)


def test_a_job_hangs(tmp_path):
    with watched(tmp_path, more=SHORT) as w:
        t = trains(w.argusd)
        begun = w.begin()
        assert "gets nowhere" in w.hears("job_hung", begun, t.id)["text"]
        steps(t, 6, 9)
        w.ends("job_hung", t.id)
        t.let_go()
        w.argusd.wait_over(t.id)


# ---- Ray's head and the queue ----


UNSEEN = "job_unknown: {when: unknown_for >= 1s}"
AWAY = UNSEEN + """
head_lost: {for: 1s}
queue_stuck: {for: 1s}
"""


def test_ray_goes_away(tmp_path):
    """One incident: the head, a job that nobody sees any more, a queue of which none may start. Of such a job it tells
    only if that lasts, so that a moment without Ray is one message."""
    with watched(tmp_path, AWAY) as w:
        runs = w.argusd.submit(PATIENT)
        w.argusd.wait_state(runs, "RUNNING")
        begun = w.begin()
        w.argusd.ray.listen(False)
        waits = w.argusd.submit("true")
        assert "does not answer" in w.hears("head_lost", begun)["text"]
        (stuck,) = until(lambda: w.alerts("queue_stuck", "open"), "the queue is stuck")
        assert "1 jobs wait and none may start: Ray" in stuck["text"], stuck
        until(lambda: w.alerts("job_unknown", "open", runs), "nobody sees the job")
        found = [w.alerts(rule, "open")[0]["incident"] for rule in ("head_lost", "queue_stuck", "job_unknown")]
        assert len(set(found)) == 1
        w.argusd.ray.listen(True)
        for rule in ("head_lost", "queue_stuck", "job_unknown"):
            w.ends(rule)
        w.argusd.wait_over(waits)
        w.argusd.stop_job(runs)


def test_nobody_can_see_a_job(tmp_path):
    """Where its head is no alert of its own."""
    with watched(tmp_path, f"{UNSEEN}\nhead_lost: {{off: true}}") as w:
        job = w.argusd.submit(PATIENT)
        w.argusd.wait_state(job, "RUNNING")
        begun = w.begin()
        w.argusd.ray.listen(False)
        assert "nobody can see job" in w.hears("job_unknown", begun, job)["text"]
        w.argusd.ray.listen(True)
        w.ends("job_unknown", job)
        w.argusd.stop_job(job)


def test_a_job_waits_for_long(tmp_path):
    with watched(tmp_path, "queue_long: {when: waiting > 0 and longest_wait > 2s}") as w:
        begun = w.begin()
        job = w.argusd.submit("true", nnodes=222, n_gpus_per_node=1)
        assert "the first in line of 1 waiting jobs" in w.hears("queue_long", begun)["text"]
        w.argusd.stop_job(job)
        w.ends("queue_long")


def test_a_quota_is_nearly_used(tmp_path):
    with watched(tmp_path) as w:
        limit = {"gpu_hours_per_month": 1 / 3600}  # a second of one GPU
        assert w.argusd.call("PUT", "/v1/users/alice/quota", limit).status == 200
        job = w.argusd.submit(PATIENT, n_gpus_per_node=1)
        w.argusd.wait_state(job, "RUNNING")
        begun = w.begin()
        assert "user 'user/alice' has used" in w.hears("quota_near", begun, "user/alice")["text"]
        w.argusd.stop_job(job)
        w.argusd.wait_over(job)
        assert w.argusd.call("PUT", "/v1/users/alice/quota", {"gpu_hours_per_month": 1000}).status == 200
        w.ends("quota_near", "user/alice")


# ---- the shared root ----


# A file server that is slow or hangs: what is synced below $SLOW_ROOT takes as many ms as the file $SLOW_ORDER says.
SLOW = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static long ordered(void)
{
    char text[32];
    int fd = open(getenv("SLOW_ORDER"), O_RDONLY | O_CLOEXEC);
    long n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return atol(text);
}
int fsync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    char link[64], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    long n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = 0;
    if (!strncmp(path, getenv("SLOW_ROOT"), strlen(getenv("SLOW_ROOT"))))
        for (long ms = 0; ms < ordered(); ms += 20)
            usleep(20000);
    return real(fd);
}
"""


class SlowRoot:
    def __init__(self, home):
        self.order_file = home / "slow"
        self.env = preload(home, "slow", SLOW, SLOW_ORDER=str(self.order_file), SLOW_ROOT=str(home / "shared"))
        self.takes(0)

    def takes(self, ms):
        fresh = self.order_file.with_name("slow.new")
        fresh.write_text(str(ms))
        fresh.replace(self.order_file)


@needs_compiler
@pytest.mark.parametrize(
    "rule, ms, said",
    [
        ("root_write_slow", 1500, "one small write on the shared root takes"),
        ("root_slow", 10**9, "a check of it hangs"),
    ],
    ids=["slow", "hangs"],
)
def test_the_shared_root_is_slow(tmp_path, rule, ms, said):
    slow = SlowRoot(tmp_path)
    with watched(tmp_path, f"{rule}: {{for: 1s}}", env=slow.env) as w:
        until(lambda: w.argusd.get("/readyz")["shared_root"] == "ok", "the root was looked at")
        begun = w.begin()
        slow.takes(ms)
        try:
            assert said in w.hears(rule, begun)["text"]
        finally:
            slow.takes(0)
        w.ends(rule)


def test_the_shared_root_is_away(tmp_path):
    """As when its mount is gone: what is there is empty."""
    with watched(tmp_path, "root_bad: {for: 1s}") as w:
        until(lambda: w.argusd.get("/readyz")["shared_root"] == "ok", "the root was looked at")
        mark = w.argusd.root / "argus/.shared-root"
        begun = w.begin()
        mark.rename(mark.with_name("away"))
        assert "the shared root cannot be used" in w.hears("root_bad", begun)["text"]
        mark.with_name("away").rename(mark)
        w.ends("root_bad")


def test_the_shared_root_is_nearly_full(tmp_path):
    """Programs of ours are on it: it is small and not tiny, and so are the figures of the rule."""
    scaled = "root_full: {when: free < 10MiB, clear: free > 20MiB, for: 1s}"
    with small_disk(tmp_path / "shared", "80m") as root, watched(tmp_path, scaled) as w:
        until(lambda: w.argusd.get("/readyz")["shared_root"] == "ok", "the root was looked at")
        assert not w.alerts("root_full", "open")
        begun = w.begin()
        ballast = fill(root, 6 << 20)
        assert "the shared root is nearly full" in w.hears("root_full", begun)["text"]
        ballast.unlink()
        w.ends("root_full")


# ---- a machine ----


MACHINE = """
node_unhealthy: {for: 1s, clear_for: 1s}
node_disk_low: {when: disk_free < 30MiB, clear: disk_free > 60MiB, for: 1s}
"""


class Machine(Head):
    """The machine of a managed head: its Ray works on a small disk, and its clock is not argusd's."""

    nodes = "min_shm: 0, min_disk: 80MiB, look_every: 2s"

    def __init__(self, home, hook):
        super().__init__(home)
        self.more = rules_yaml(hook, MACHINE)
        self.clock = WallClock(home)
        self.env = self.clock.env()

    def write_config(self):
        super().write_config()
        text = self.config.read_text()
        self.config.write_text(text.replace("ray: {address", f"ray: {{temp_dir: {self.home}/disk, address", 1))


@needs_compiler
def test_a_machine_whose_disk_fills(tmp_path):
    with small_disk(tmp_path / "disk", "100m") as disk, Receiver() as hook, Machine(tmp_path, hook) as argusd:
        w = Watch(argusd, hook)
        until(lambda: argusd.get("/v1/nodes/head")["facts"]["disk_free_bytes"], "its disk was looked at")
        begun = w.begin()
        (disk / "large").write_bytes(bytes(90 << 20))
        assert "MiB left" in w.hears("node_disk_low", begun, "head")["text"]
        sick = w.hears("node_unhealthy", begun, "head")
        assert "node 'head' is unhealthy: " in sick["text"] and "{" not in sick["text"], sick
        (disk / "large").unlink()
        w.ends("node_disk_low", "head")
        w.ends("node_unhealthy", "head")


@needs_compiler
def test_a_machine_whose_clock_is_wrong(tmp_path):
    """A world of its own: what comes back to an incident that was told often is told later and later."""
    with small_disk(tmp_path / "disk", "100m"), Receiver() as hook, Machine(tmp_path, hook) as argusd:
        w = Watch(argusd, hook)
        until(lambda: argusd.get("/v1/nodes/head")["facts"]["disk_free_bytes"], "it was looked at")
        begun = w.begin()
        argusd.clock.jump(100)
        assert "away from argusd's" in w.hears("node_clock_skew", begun, "head")["text"]
        argusd.clock.jump(-100)
        w.ends("node_clock_skew", "head")


# ---- argusd itself ----


def test_the_store_cannot_be_written(tmp_path):
    """Its message does not wait for the store, which is what fails."""
    disk = tmp_path / "state-disk"
    with (
        small_disk(disk, "24m"),
        watched(tmp_path, "store_failing: {for: 1s}", state_dir=disk / "state") as w,
    ):
        w.argusd.wait_over(w.argusd.submit("true"))
        ballast, begun = disk / "ballast", w.begin()
        with contextlib.suppress(OSError), open(ballast, "wb") as f:
            while True:
                f.write(bytes(1 << 12))
                f.flush()
        over = threading.Event()

        def writes():
            while not over.wait(0.1):
                with contextlib.suppress(OSError):
                    w.argusd.ask("POST", "/v1/jobs", Argusd.spec("true"), "user", {})

        writer = threading.Thread(target=writes, daemon=True)
        writer.start()
        try:
            said = w.hears("store_failing", begun)
        finally:
            over.set()
            ballast.unlink()
            writer.join()
        assert "argusd cannot write its store" in said["text"]
        w.ends("store_failing")


def test_argusd_stands_still(tmp_path):
    with watched(tmp_path, "argusd_slow: {clear_for: 4s}") as w:
        os.kill(w.argusd.process.pid, signal.SIGSTOP)
        begun = w.begin()
        pause(8)
        os.kill(w.argusd.process.pid, signal.SIGCONT)
        assert "answered nobody meanwhile" in w.hears("argusd_slow", begun)["text"]
        w.ends("argusd_slow")


def test_a_receiver_takes_nothing(tmp_path):
    """Who is told is another one."""
    scaled = "messages_stuck: {when: messages_failing >= 2s}"
    with Receiver() as deaf, Receiver() as hook, FakeRay(state=tmp_path / "ray") as ray:
        deaf.answer = (503, b"later")
        more = rules_yaml(hook, scaled).replace(
            "  receivers:", f'  receivers:\n    deaf: {{kind: webhook, url: "{deaf.url}"}}'
        )
        more = more.replace("routes: [", "routes: [{to: deaf, kinds: [job]}, ")
        with Argusd(tmp_path, ray.url, more=more) as argusd:
            w, begun = Watch(argusd, hook), Watch.begin()
            argusd.wait_over(argusd.submit("exit 3"))
            assert "receiver 'deaf' has not taken a message" in w.hears("messages_stuck", begun)["text"]
            deaf.answer = (200, b"{}")
            w.ends("messages_stuck")


def test_the_ops_agent_takes_nothing(tmp_path):
    with Agent() as agent, watched(tmp_path, "agent_stuck: {when: agent_failing >= 2s}") as w:
        assert w.argusd.call("PUT", "/v1/secrets/AGENT_KEY", {"value": "whsec_" + KEY}).status == 201
        token = w.argusd.get("/v1/tokens", token="user")["tokens"][0]["id"]
        w.argusd.more += "\n" + agent_yaml(agent.url, token)
        w.argusd.write_config()
        w.argusd.restart()
        works, begun, agent.answer = agent.answer, w.begin(), (503, b"later")
        w.argusd.wait_over(w.argusd.submit("true"))
        assert "the ops agent has taken nothing for" in w.hears("agent_stuck", begun)["text"]
        agent.answer = works
        w.ends("agent_stuck")


def test_no_backup_is_made(tmp_path):
    kept = tmp_path / "elsewhere"
    kept.mkdir()
    scaled = "backup_overdue: {when: backup_overdue >= 1s, clear: backup_overdue < 1s}"
    with watched(tmp_path, scaled, more=f"backup: {{every: 2s, dir: {kept}}}") as w:
        until(lambda: list(kept.glob("argus-*.backup")), "a backup is made")
        begun = w.begin()
        kept.rename(tmp_path / "moved")
        assert "the backup of the store is" in w.hears("backup_overdue", begun)["text"]
        (tmp_path / "moved").rename(kept)
        w.ends("backup_overdue")
