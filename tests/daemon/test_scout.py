# SPDX-License-Identifier: Apache-2.0
"""The scout of an attempt on a node: the hook or the shepherd starts it, it copies the workers' logs, tells stacks,
gathers the scene, and goes. A program in the place of Ray's raylet starts everything, as Ray does."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from scouting import CANARY, Node
from shepherding import is_outermost, is_running, needs_shepherd, small_group, wait_for

pytestmark = needs_shepherd

@pytest.fixture
def node(tmp_path):
    made = []

    def make(command, **more):
        made.append(Node(tmp_path, command, **more))
        return made[-1]

    yield make
    for n in made:
        n.close()


def gate(tmp_path):
    os.mkfifo(tmp_path / "gate")
    return f'read x <"{tmp_path}/gate"; '


def test_a_failure_leaves_logs_and_a_scene(node, tmp_path):
    n = node(gate(tmp_path) + "exit 3")
    n.shepherd()
    scout = n.scout()
    worker = n.worker()
    log = n.copied("secret ***\n")
    assert log.name == f"worker-{'a' * 56}-02000000-{worker}.out"
    assert log.read_text() == ":job_id:02000000\n:actor_name:Actor\nsecret ***\n"
    ranks = log.parent / "ranks.json"
    told = wait_for(lambda: ranks.exists() and json.loads(ranks.read_text()).get(log.name), "its name")
    assert told["pid"] == worker and told["actor"] == "Actor" and told["rank"] == 3
    assert n.scout() == scout, "one on each node"
    (n.logs / f"python-core-worker-{'a' * 56}_{worker}.log").write_text(f"of Ray's own {CANARY}\n")
    (tmp_path / "gate").write_text("\n")
    wait_for((n.dir / "exit.json").exists, "the end")
    facts = n.facts()
    assert facts["node"] == "w1" and facts["processes"] == 1 and facts["xid"] == 0
    assert [fs["path"] for fs in facts["file_systems"]] == ["/dev/shm", str(n.logs), str(n.dir)]
    scene = n.dir / "scene" / "w1"
    [stack] = json.loads((scene / "stacks.json").read_text())
    assert stack["pid"] == worker and stack["rank"] == "3" and stack["actor"] == "Actor"
    assert "RANK=3" in (scene / "environment.txt").read_text()
    assert "MemTotal" in (scene / "system.txt").read_text()
    assert (scene / "logs" / f"python-core-worker-{'a' * 56}_{worker}.log").read_text() == "of Ray's own ***\n"
    n.gone(scout)
    held = [f for f in n.dir.rglob("*") if f.is_file() and CANARY in f.read_text(errors="replace")]
    assert held == []


def test_a_worker_that_was_killed_for_memory(node, tmp_path):
    with small_group() as group:
        n = node(gate(tmp_path) + "exit 3")
        n.shepherd()
        n.scout()
        worker = n.worker()
        n.copied("secret")
        (group / "cgroup.procs").write_text(str(worker))
        (n.logs / "grow").touch()
        wait_for(lambda: not is_running(worker), "the end of the worker")
    (tmp_path / "gate").write_text("\n")
    facts = n.facts()
    assert facts["own_oom_kills"] == 1 and not (is_outermost() and facts["oom_unsure"])
    killed = f"Killed process {worker} " if is_outermost() else "Killed process "
    assert killed in facts["oom_line"] and killed in (n.dir / "scene" / "w1" / "kernel.txt").read_text()
    wait_for((n.dir / "exit.json").exists, "the end")


def test_success_leaves_the_logs_alone(node, tmp_path):
    n = node(gate(tmp_path) + "exit 0")
    n.shepherd()
    scout = n.scout()
    n.worker()
    n.copied("secret")
    (tmp_path / "gate").write_text("\n")
    wait_for((n.dir / "exit.json").exists, "the end")
    n.gone(scout)
    assert not (n.dir / "scene").exists()
    assert len(n.copies()) == 1


def test_the_hook_starts_it_and_the_raylet_ends_it(node):
    """As on a node without the driver: workers come and go, and the raylet dies while all else goes on."""
    n = node("exit 0")
    (n.dir / "beat").write_text("{}")
    place = n.place()
    os.mkdir(place, 0o700)
    os.utime(place, (0, 0))  # whoever made it died before it held it
    first = n.worker("a")
    scout = n.scout()
    assert len(n.places()) == 1
    n.copied("secret")
    os.kill(first, signal.SIGKILL)
    n.worker("b")
    wait_for(lambda: len(n.copies()) == 2, "both logs")
    assert is_running(scout) and n.scout() == scout
    (n.logs / "more").touch()
    n.raylet.kill()
    n.copied("more")
    assert n.facts()["node"] == "w1"
    n.gone(scout)


def test_a_supervisor_of_ray_is_not_copied(node):
    n = node("exit 0")
    n.worker("a", job="02000000")
    scout = n.scout()
    other = f"worker-{'c' * 56}-01000000-1.out"
    (n.logs / other).write_text(":job_id:01000000\n:actor_name:JobSupervisor\nanother job\n")
    n.copied("secret")
    assert [f.name[:8] for f in n.copies()] == ["worker-a"]
    os.kill(scout, signal.SIGTERM)
    n.gone(scout)


@pytest.mark.parametrize("stopped", [False, True])
def test_stacks(node, stopped):
    n = node("exit 0")
    worker = n.worker()
    scout = n.scout()
    n.copied("secret")
    if stopped:
        os.kill(worker, signal.SIGSTOP)
        stat = pathlib.Path(f"/proc/{worker}/stat")
        wait_for(lambda: ") T " in stat.read_text(), "a worker that stands still")
    (n.dir / "stacks").mkdir()
    for ask in (1, 12):
        (n.dir / "stacks" / f"{ask}.ask").write_text("{}")
    wait_for(lambda: len(list((n.dir / "stacks").glob("*/w1.json"))) == 2, "both answers")
    [told] = json.loads((n.dir / "stacks" / "12" / "w1.json").read_text())
    assert told["pid"] == worker and told["cmd"].startswith(sys.executable)
    assert told["state"] in ("T" if stopped else "SRD") and told["cpu_s"] >= 0
    assert told["parent"] == n.raylet.pid and told["rank"] == "3"
    state = pathlib.Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[0]
    assert state in ("T" if stopped else "SRD"), "to be looked at changes nothing"
    if told["by"] == "py-spy":
        assert "wait_for_nobody" in {f["function"] for f in told["frames"]} and "wait_for_nobody" in told["text"]
    else:
        assert told["error"] and "Thread" in told["text"]
    os.kill(scout, signal.SIGTERM)
    n.gone(scout)


# Started so, a process has an environment that nobody can read in time, as that of one that hangs in the kernel.
HANGS = 'mount --bind "$0" /proc/$$/environ && exec "$@"'


@pytest.fixture
def unreadable(tmp_path):
    """A pipe that nobody writes to, while the test runs."""
    pipe = tmp_path / "unreadable"
    os.mkfifo(pipe)
    yield pipe
    mounted = [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    for place in (m for m in mounted if m.startswith("/proc/") and m.endswith("/environ")):
        subprocess.run(["umount", "-l", place], check=False)
    os.close(os.open(pipe, os.O_RDWR))  # whoever still waits reads its end


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: nothing can be mounted")
def test_a_process_that_cannot_be_read_stops_nothing(node, unreadable):
    n = node("exit 0")
    n.worker("a")
    scout = n.scout()
    n.copied("secret")
    hung = n.worker("b", prefix=["/bin/sh", "-c", HANGS, unreadable])
    assert n.copied(f"secret {'*' * 3}") and wait_for(lambda: len(n.copies()) == 2, "both logs")
    (n.dir / "stacks").mkdir()
    (n.dir / "stacks" / "1.ask").write_text("{}")
    answer = n.dir / "stacks" / "1" / f"{n.name}.json"
    told = {p["pid"]: p for p in json.loads(wait_for(lambda: answer.exists() and answer.read_text(), "an answer"))}
    assert set(told) == set(n.pids) and "hangs" in told[hung]["error"] and told[hung]["rank"] is None
    (n.logs / "more").touch()
    n.copied("more")
    assert n.scout() == scout
    (n.dir / "scene").mkdir(exist_ok=True)
    (n.dir / "scene" / "ask").write_text("{}")
    assert n.facts()["processes"] == 2
    assert f"[process {hung}] hangs" in (n.dir / "scene" / n.name / "environment.txt").read_text()
    (n.dir / "exit.json").write_text("{}")
    n.gone(scout)


def test_a_place_of_somebody_else_is_not_used(node, tmp_path):
    n = node("exit 0")
    place = n.place()
    os.mkdir(place, 0o777)
    os.chown(place, 12345, 12345)
    try:
        n.worker()
        wait_for(lambda: list(n.logs.glob("worker-*")), "a worker that has begun")
        assert n.shepherd() and wait_for((n.dir / "exit.json").exists, "the end")
        assert os.listdir(place) == [] and not (n.dir / "scouts").exists()
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize("hidden", ["in the file", "in the command"])
def test_nothing_is_shown_that_could_not_be_masked(node, hidden):
    n = node("exit 0" if hidden == "in the file" else "exit 0 # key=***")
    if hidden == "in the file":
        (n.root / "secrets").unlink()
    log = f"worker-{'e' * 56}-02000000-1.out"
    (n.logs / log).touch()
    left = n.dir / "logs" / "workers" / n.name / f"{log}.4096"
    left.parent.mkdir(parents=True)
    left.write_text("by one that could show it\n")
    n.worker()
    scout = n.scout()
    (n.dir / "stacks").mkdir()
    wait_for(lambda: len(list(n.logs.glob("worker-*"))) == 2, "its log")
    (n.dir / "stacks" / "1.ask").write_text("{}")
    answer = n.dir / "stacks" / "1" / "w1.json"
    [stack] = json.loads(wait_for(lambda: answer.exists() and answer.read_text(), "where the worker stands"))
    assert stack["rank"] == "3" and stack["cmd"] is None and CANARY not in answer.read_text()
    told = json.loads((n.dir / "scouts" / "w1.json").read_text())
    assert "not copied" in told["trouble"]
    (n.dir / "scene").mkdir(exist_ok=True)
    (n.dir / "scene" / "ask").write_text("{}")
    assert n.facts()["trouble"] == told["trouble"]  # nobody waits for more
    assert [f.name for f in (n.dir / "scene" / "w1").iterdir()] == ["scene.json"]
    (n.dir / "exit.json").write_text("{}")
    n.gone(scout)
    assert n.copies() == [left]


def test_secrets_of_the_command_line_are_masked(node, tmp_path):
    n = node(gate(tmp_path) + "exit 3 # key=***")
    (n.root / "secrets").write_text(json.dumps({"": [CANARY]}))
    n.shepherd()
    scout = n.scout()
    worker = n.worker()
    assert n.copied("secret ***\n").read_text().endswith("secret ***\n")
    (tmp_path / "gate").write_text("\n")
    n.facts()
    [stack] = json.loads((n.dir / "scene" / "w1" / "stacks.json").read_text())
    assert stack["pid"] == worker and CANARY not in stack["cmd"] and stack["cmd"].startswith(sys.executable)
    wait_for((n.dir / "exit.json").exists, "the end")
    n.gone(scout)


def test_one_that_was_killed_comes_again(node):
    n = node("exit 0")
    n.worker("a")
    first = n.scout()
    log = n.copied("secret")
    stray, of_another = log.parent / f"{log.name}.4096", log.parent / f"worker-{'f' * 56}-02000000-1.out.77"
    for file in (stray, of_another):
        file.write_text("left by one that is gone\n")
    os.kill(first, signal.SIGKILL)
    second = wait_for(lambda: n.scout() != first and n.scout(), "another scout")
    (n.logs / "more").touch()
    assert n.copied("more\n").read_text() == ":job_id:02000000\n:actor_name:Actor\nsecret ***\nmore\n"
    assert not stray.exists() and of_another.exists()
    keeper = int(pathlib.Path(f"/proc/{second}/stat").read_text().rpartition(")")[2].split()[1])
    assert pathlib.Path(f"/proc/{keeper}/comm").read_text() == "argus-scout\n"
    os.kill(keeper, signal.SIGKILL)
    os.kill(second, signal.SIGKILL)
    wait_for(lambda: not is_running(second), "the end of both")
    n.worker("b")  # its hook finds nobody
    third = wait_for(lambda: n.scout() not in (first, second) and n.scout(), "a third scout")
    wait_for(lambda: len([f for f in n.copies() if f.suffix == ".out"]) == 2, "both logs")
    (n.dir / "exit.json").write_text("{}")
    n.gone(third)


# As a raylet that a job starts by itself: one worker, and the end of it.
LOCAL = """
import os, subprocess, sys
open("/proc/self/comm", "w").write("raylet")
worker = subprocess.Popen(sys.argv[1:], env={**os.environ, "RAY_RAYLET_PID": str(os.getpid())})
open(os.environ["TOLD"], "w").write(f"{os.getpid()} {worker.pid}")
worker.wait()
"""


def test_a_ray_of_the_job_s_own_gets_none(node, tmp_path):
    n = node("exit 0")
    script, told = tmp_path / "local.py", tmp_path / "told"
    script.write_text(LOCAL)
    (tmp_path / "own").mkdir()
    env = {"ARGUS_DRIVER_NODE": n.name, **n.marks(), "TOLD": str(told), "RAY_JOB_ID": "02000000"}
    env["PYTHONPATH"] = str(tmp_path / "argus" / "hook")
    n.attempt.launch(
        sys.executable, script, sys.executable, tmp_path / "default_worker.py", tmp_path / "own", "a", "x",
        env=env, worker_secrets=str(tmp_path / "secrets"), job=n.job,
    )  # fmt: skip
    n.shepherd()
    scout = n.scout()
    wait_for(lambda: list((tmp_path / "own").glob("worker-*")), "its worker, and what the hook did")
    raylet, worker = wait_for(lambda: told.exists() and told.read_text(), "both pids").split()
    assert not list(pathlib.Path("/tmp").glob(f"argus-{os.getuid()}-{n.job}-a1-*-{raylet}"))
    os.kill(int(worker), signal.SIGKILL)
    wait_for((n.dir / "exit.json").exists, "the end")
    assert n.attempt.exit()["strays"] == 0
    n.gone(scout)
