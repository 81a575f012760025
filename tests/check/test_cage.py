# SPDX-License-Identifier: Apache-2.0
"""Nothing of a run outlives it, however it ends."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools/check"
CAGE = [sys.executable, str(CHECK / "cage.py")]
sys.path[:0] = [str(CHECK), str(CHECK.parents[1] / "tests/lib")]

import cage  # noqa: E402
from fakeray import wait_for  # noqa: E402

needs_namespaces = pytest.mark.skipif(not cage.has_namespaces(), reason="namespaces need root, where they are allowed")

# Leaves its process group and its parent, as daemons do; says where it is by a file that it holds locked.
DAEMON = """
import fcntl, os, signal, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
held = open(sys.argv[1], "w")
fcntl.flock(held, fcntl.LOCK_EX)
open(sys.argv[1] + ".up", "w").close()
signal.pause()
"""


@pytest.fixture
def daemon(tmp_path):
    (tmp_path / "daemon.py").write_text(DAEMON)
    return f"{sys.executable} {tmp_path}/daemon.py {tmp_path}/held; until [ -e {tmp_path}/held.up ]; do :; done"


def test_the_status_is_the_commands():
    assert subprocess.run([*CAGE, "sh", "-c", "exit 7"]).returncode == 7
    assert subprocess.run([*CAGE, "true"]).returncode == 0


def test_a_daemon_that_was_left_is_ended_and_told(daemon, tmp_path):
    done = subprocess.run([*CAGE, "sh", "-c", daemon], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and "left running and ended" in done.stderr
    assert not cage.is_held(tmp_path / "held")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, pytest.param(signal.SIGKILL, marks=needs_namespaces)])
def test_a_killed_run_leaves_no_process(daemon, tmp_path, how):
    argv = [*CAGE, "sh", "-c", daemon + "; sleep 600"]
    run = subprocess.Popen(argv, cwd=tmp_path, stderr=subprocess.DEVNULL)
    wait_for((tmp_path / "held.up").exists, "the daemon runs")
    assert cage.is_held(tmp_path / "held")
    run.send_signal(how)
    assert run.wait(240) != 0
    wait_for(lambda: not cage.is_held(tmp_path / "held"), "the daemon is gone")


@needs_namespaces
def test_ports_mounts_and_namespaces_are_its_own(tmp_path):
    """What a killed test leaves: a mount, a network device, somebody who listens."""
    script = f"""
mount -t tmpfs tmpfs {tmp_path}/mount && touch {tmp_path}/mount/inside
ip link add cable type bridge
python3 -m http.server --bind 127.0.0.1 30001 >/dev/null 2>&1 &
until python3 -c 'import socket; socket.create_connection(("127.0.0.1", 30001))' 2>/dev/null; do :; done
"""
    (tmp_path / "mount").mkdir()
    for _ in range(2):
        subprocess.run([*CAGE, "sh", "-ec", script], check=True, capture_output=True, timeout=240)
        assert not list((tmp_path / "mount").iterdir())
        assert not pathlib.Path("/sys/class/net/cable").exists()


def begin():
    """A run that lives until a line comes, and what it has made in its /tmp."""
    script = 'ls /tmp; made=$(mktemp); echo "$made"; read line'
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    run = subprocess.Popen([*CAGE, "sh", "-c", script], cwd=CHECK, **pipes)
    return run, run.stdout.readline().strip()


def folders():
    return {entry.name for entry in os.scandir("/tmp") if entry.name.startswith(cage.PREFIX)}


@needs_namespaces
@pytest.mark.skipif(not cage.may_hide_tmp(), reason="this checkout lies below /tmp")
def test_a_run_has_a_tmp_of_its_own_which_goes_with_it():
    (first, made), (second, also_made) = begin(), begin()
    assert made.startswith("/tmp/tmp.") and also_made.startswith("/tmp/tmp."), "each was empty at first"
    assert not os.path.exists(made) and not os.path.exists(also_made)
    there = folders()
    assert len(there) >= 2
    for run in (first, second):
        run.communicate("\n", timeout=240)
        assert run.returncode == 0
    assert len(there - folders()) == 2


@needs_namespaces
@pytest.mark.skipif(not cage.may_hide_tmp(), reason="this checkout lies below /tmp")
def test_the_folder_of_a_killed_run_goes_with_the_next_and_that_of_a_live_one_stays():
    before = folders()
    dead, _ = begin()
    (its,) = folders() - before
    live, _ = begin()
    (other,) = folders() - before - {its}
    dead.kill()
    dead.wait(240)
    dead.stdin.close()
    assert its in folders()
    wait_for(lambda: not cage.is_held(f"/tmp/{its}/{cage.LOCK}"), "the lock of the killed run is free")
    subprocess.run([*CAGE, "true"], check=True)
    assert its not in folders() and other in folders()
    live.communicate("\n", timeout=240)
    assert live.returncode == 0 and other not in folders()


def test_without_namespaces_too(daemon, tmp_path):
    """As somebody who is not root has it."""
    script = "import cage, sys; cage.has_namespaces = lambda: False; sys.exit(cage.main(sys.argv[1:]))"
    argv = [sys.executable, "-c", script, "sh", "-c", daemon + "; exit 3"]
    env = {**os.environ, "PYTHONPATH": str(CHECK)}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 3 and "left running and ended" in done.stderr
    assert not cage.is_held(tmp_path / "held")
