# SPDX-License-Identifier: Apache-2.0
"""argus-shepherd, the real program: what it starts, how it ends it, and what it says of it."""

import ctypes
import errno
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys

import pytest
from shepherding import SHEPHERD, Attempt, is_outermost, is_running, needs_shepherd, small_group, wait_for

pytestmark = needs_shepherd


@pytest.fixture
def attempt(tmp_path):
    with Attempt(tmp_path) as made:
        yield made


# ---- how the command ends ----


@pytest.mark.parametrize("code", [0, 1, 7, 90, 255])
def test_exit_code(attempt, code):
    rc, out = attempt.shell(f"echo out; echo err >&2; exit {code}").run()
    end = attempt.exit()
    assert rc == code
    assert (end["cause"], end["code"], end["signal"]) == ("exit", code, None)
    assert end["sentence"] == f"the command ended with exit code {code}"
    assert attempt.log.read_text() == "out\nerr\n"
    assert out == f"out\nerr\nargus-shepherd: the command ended with exit code {code}\n"
    assert (end["log_bytes"], end["dropped_bytes"], end["log_error"]) == (8, 0, None)
    assert (end["job"], end["attempt"], end["node"]) == ("j1", 1, os.uname().nodename)
    assert end["started_at"] <= end["ended_at"]
    assert end["max_rss_bytes"] > 0
    assert not (attempt.dir / ".exit.json.new").exists()


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT])
def test_signal(attempt, sig):
    rc, out = attempt.shell(f"ulimit -c 0; kill -{int(sig)} $$").run()
    end = attempt.exit()
    assert rc == 128 + sig
    assert (end["cause"], end["code"], end["signal"]) == ("signal", None, sig.name)
    assert f"the command was killed by {sig.name}" in out


def test_resources_are_counted(attempt):
    rc, _ = attempt.python("x = bytearray(60 << 20); sum(i * i for i in range(10**6))").run()
    end = attempt.exit()
    assert rc == 0
    assert end["max_rss_bytes"] > 60 << 20
    assert end["user_s"] > 0


@pytest.mark.parametrize(
    "line,word",
    [
        ("{python} -c 'raise RuntimeError(\"loss is nan\")' 2>&1 | tee {log}", "RuntimeError: loss is nan"),
        ("torchrunn train.py 2>&1 | cat", "not found"),
        ("{python} -c 'print(1)' | tee {log}", None),
        ("{python} -c 'raise KeyError(1)' 2>&1; for i in 1 2 3 4 5 6 7 8; do echo step $i; done", None),
    ],
)
def test_an_end_that_hides_a_failure_is_told(attempt, tmp_path, line, word):
    """Of a pipe the shell knows the end of the last part alone."""
    rc, _ = attempt.shell(line.format(python=sys.executable, log=tmp_path / "its.log")).run()
    end = attempt.exit()
    assert (rc, end["cause"], end["code"]) == (0, "exit", 0)
    if word is None:
        assert end["last_error"] is None and "ends with '" not in end["sentence"]
    else:
        assert word in end["last_error"] and end["last_error"] in end["sentence"] and "pipefail" in end["sentence"]


# ---- what the command gets ----


def test_every_byte_of_argv_and_env(attempt, tmp_path):
    every = bytes(range(1, 256))
    values = [every, b"", b"$HOME `id` \\ ' \" \n", "é\u2028\U0001f600".encode(), b"\xff\xfe", b"a" * 100000]
    script = (
        "import os, sys\n"
        "out = open(sys.argv[1], 'wb')\n"
        "for a in sys.argv[2:]: out.write(os.fsencode(a) + b'\\0')\n"
        "for i in range(len(sys.argv) - 2): out.write(os.environb[b'V%d' % i] + b'\\0')\n"
    )
    got = tmp_path / "got"
    attempt.launch(sys.executable, "-c", script, got, *values, env={f"V{i}": v for i, v in enumerate(values)})
    rc, out = attempt.run()
    assert rc == 0, out
    assert got.read_bytes().split(b"\0")[:-1] == values * 2


def test_environment_of_ray_survives_and_ours_wins(attempt):
    script = "import os; print([os.environ.get(k) for k in ('RAY_ADDRESS', 'A', 'B', 'PYTHONPATH')])"
    env = dict(os.environ, RAY_ADDRESS="127.0.0.1:6379", A="ray", B="ray", PYTHONPATH="/worker/own")
    rc, out = attempt.python(script, env={"A": "argus $B"}, pythonpath_prefix="/hook:/code").run(env=env)
    assert rc == 0
    assert out.splitlines()[0] == "['127.0.0.1:6379', 'argus $B', 'ray', '/hook:/code:/worker/own']"
    assert attempt.beat()["ip"] == "127.0.0.1"


@pytest.mark.parametrize(
    "own, want",
    [(None, "/a:/b"), ("", "/a:/b"), ("/a:/b:/c", "/a:/b:/c"), ("/a:/bc", "/a:/b:/a:/bc")],
)
def test_pythonpath(attempt, own, want):
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if own is not None:
        env["PYTHONPATH"] = own
    attempt.shell('printf %s "$PYTHONPATH"', pythonpath_prefix="/a:/b").run(env=env)
    assert attempt.log.read_text() == want


def test_files_directory_and_session(attempt, tmp_path):
    script = "ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0; pwd; ps -o sid= -p $$ | tr -d ' '; echo $$"
    inherited = os.open("/dev/null", os.O_RDONLY)
    attempt.shell(script, cwd=str(tmp_path)).run(pass_fds=[inherited])
    os.close(inherited)
    fds, cwd, sid, pid = attempt.log.read_text().splitlines()
    assert fds == "0 1 2 3 /dev/null"  # 3 is what ls reads
    assert cwd == str(tmp_path)
    assert sid == pid


def test_secrets_come_by_file_and_leave_no_trace(attempt):
    secrets = attempt.dir / ".secrets.json"
    secrets.write_text(json.dumps({"env": {"WANDB_API_KEY": "s3cr3t-value"}, "argv": None}))
    secrets.chmod(0o600)
    script = 'test "${#WANDB_API_KEY}" = 12 && test ! -e "$F"'
    rc, _ = attempt.shell(script, env={"F": str(secrets)}, secrets=".secrets.json").run()
    assert rc == 0
    assert not secrets.exists()
    for path in attempt.dir.rglob("*"):
        assert path.is_dir() or b"s3cr3t" not in path.read_bytes(), path


PRINTS = """
import base64, os, sys, time, urllib.parse
value = os.environ["WANDB_API_KEY"]
for c in f"<{value}>":
    os.write(1, c.encode())
os.write(2, b"\\n")
print(sys.argv[1], dict(os.environ), base64.b64encode(b"user:" + value.encode()), urllib.parse.quote(value, safe=""))
print(value[:-1], flush=True)
raise RuntimeError(f"the key {value} is bad")
"""


def test_secret_values_are_stars_in_the_log(attempt):
    """In the log and in what Ray is given, however they are printed; the sizes are those of what is there."""
    value, ray = 'canary/7"x-0123456789+', attempt.dir / "workers"
    ray.write_text("{}")
    secrets = {"env": {"WANDB_API_KEY": value}, "argv": [sys.executable, "-c", PRINTS, "--key=shown-in-argv"]}
    (attempt.dir / ".secrets.json").write_text(json.dumps(secrets))
    attempt.launch(sys.executable, "-c", PRINTS, "--key=***", secrets=".secrets.json", worker_secrets=str(ray))
    rc, out = attempt.run()
    log = attempt.log.read_text()
    assert rc == 1 and out.startswith(log)
    for hidden in (value, "shown-in-argv", "canary%2F7", json.dumps(value)[1:-1]):
        assert hidden not in out
    lines = log.splitlines()
    assert lines[0] == "<***>" and lines[1].startswith("--key=*** {") and "'WANDB_API_KEY': '***'" in lines[1]
    assert "'ARGUS_SECRETS': ''" in lines[1]
    encoded = lines[1].split(" b'")[1].split("'")[0]
    assert encoded.startswith("dXNlcjp") and "***" in encoded and len(encoded) < 16
    assert lines[1].endswith(" ***") and lines[2] == value[:-1] and log.endswith("the key *** is bad\n")
    assert attempt.exit()["log_bytes"] == attempt.log.stat().st_size
    assert not ray.exists()


def test_half_a_secret_waits_for_nothing_else(attempt):
    """What could be its beginning is shown once it is not, and at the end."""
    secrets = {"env": {"WANDB_API_KEY": "0123456789"}, "argv": None}
    (attempt.dir / ".secrets.json").write_text(json.dumps(secrets))
    attempt.shell("printf 0123; printf 'x\\n01234'", secrets=".secrets.json").run()
    assert attempt.log.read_text() == "0123x\n01234"


def test_real_argv_in_the_secrets(attempt):
    argv = ["/bin/echo", "token=real"]
    (attempt.dir / ".secrets.json").write_text(json.dumps({"env": {}, "argv": argv}))
    attempt.launch("/bin/echo", "token=***", secrets=".secrets.json").run()
    assert attempt.log.read_text() == "token=real\n"


# ---- what cannot start ----


def failed(attempt, sentence, **more):
    rc, out = attempt.run(**more)
    end = attempt.exit()
    assert rc == 90
    assert (end["cause"], end["code"], end["signal"], end["pid"]) == ("start_failed", None, None, None)
    assert re.search(sentence, end["sentence"]), end["sentence"]
    assert (end["job"], end["attempt"]) == ("j1", 1)
    assert end["sentence"] in out


def test_no_such_program(attempt):
    failed(attempt.launch("no-such-program"), "^program 'no-such-program' is not in PATH$")


def test_program_is_looked_up_in_the_path_of_the_launch(attempt, tmp_path):
    tool = tmp_path / "my-tool"
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    attempt.launch("my-tool", env={"PATH": str(tmp_path)}).run()
    assert attempt.log.read_text() == "found\n"


def test_no_such_directory(attempt):
    failed(attempt.shell("true", cwd="/no/such"), "^cannot enter the working directory '/no/such': No such file")


def test_not_executable(attempt, tmp_path):
    (tmp_path / "x").write_text("echo hi\n")
    failed(attempt.launch(str(tmp_path / "x")), "^cannot execute '.*/x': Permission denied$")


def test_no_launch_file(attempt):
    failed(attempt, "launch.json' is not there: is the shared root mounted")


@pytest.mark.parametrize(
    "text, sentence",
    [
        ('{"version": 1', "broken at 1:"),
        ("[]", "not an object"),
        ("", "broken"),
        ('{"version": 2}', "'version' is not 1"),
        ('{"version": 1, "job": "j1", "attempt": "x"}', "'attempt' is not"),
        ('{"version": 1, "job": "j1", "attempt": 1, "argv": []}', "'argv' is not"),
        ('{"version": 1, "job": "j1", "attempt": 1, "argv": ["x", 3]}', "'argv' is not"),
        ('{"version": 1, "job": "j1", "attempt": 1, "argv": ["x"], "env": {"A": 3}}', "'env' is not"),
        ('{"version": 1, "job": "j", "attempt": 1, "argv": ["x"], "env": {}, "stop_grace_s": -1}', "'stop_grace_s' is"),
    ],
)
def test_broken_launch_file(attempt, text, sentence):
    (attempt.dir / "launch.json").write_text(text)
    failed(attempt, "cannot use '.*launch.json': .*" + sentence)


def test_secrets_that_are_not_there(attempt):
    failed(attempt.shell("true", secrets=".secrets.json"), "cannot read the secrets .*: cannot open '.*/.secrets.json'")


def test_no_attempt_directory(tmp_path):
    done = subprocess.run([SHEPHERD, tmp_path / "nowhere"], capture_output=True, text=True)
    assert done.returncode == 90
    assert "nowhere': No such file or directory: is the shared root mounted" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_usage():
    done = subprocess.run([SHEPHERD], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "usage: argus-shepherd <attempt directory>\n")
    assert subprocess.run([SHEPHERD, "--version"], capture_output=True, text=True).stdout.startswith("argus-shepherd ")


# ---- once ----


def test_second_one_touches_nothing(attempt):
    attempt.shell("echo ran; cat /dev/null").run()

    def picture():
        return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in attempt.dir.rglob("*") if p.is_file()}

    before = picture()
    rc, out = attempt.run()
    assert rc == 91
    assert out == f"argus-shepherd: the attempt in '{attempt.dir}' was started before: doing nothing\n"
    assert picture() == before


# Every lstat() says EIO: a file server that is ill. In the machine's numbers of newfstatat.
LSTAT = {"x86_64": 262, "aarch64": 79}.get(os.uname().machine)


def no_lstat():
    """A filter of seccomp for this process and what it becomes: newfstatat() by AT_SYMLINK_NOFOLLOW fails."""
    rows = [
        (0x20, 0, 0, 0),  # load the number
        (0x15, 0, 3, LSTAT),
        (0x20, 0, 0, 16 + 3 * 8),  # load the flags
        (0x15, 0, 1, 0x100),
        (0x06, 0, 0, 0x00050000 | errno.EIO),
        (0x06, 0, 0, 0x7FFF0000),  # all else is let through
    ]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *r) for r in rows))
    program = ctypes.create_string_buffer(struct.pack("HP", len(rows), ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program)) == 0


@pytest.mark.skipif(LSTAT is None, reason="the numbers of this machine's calls are not known")
def test_a_failed_look_starts_nothing(attempt):
    """Whether the attempt is over cannot be seen: what it left must not be written over."""
    (attempt.dir / "exit.json").write_text("{}")
    attempt.shell("echo again").start(preexec_fn=no_lstat)
    rc, out = attempt.finish()
    assert (rc, os.strerror(errno.EIO) in out) == (90, True), out
    assert "cannot start: cannot look at '" in out, out
    assert (attempt.dir / "exit.json").read_text() == "{}" and not attempt.log.exists()
    assert attempt.run()[0] == 91


def test_of_many_at_once_one_runs(attempt, tmp_path):
    attempt.shell(f"echo x >>{tmp_path}/runs")
    many = [subprocess.Popen([SHEPHERD, attempt.dir], stdout=subprocess.PIPE) for _ in range(12)]
    codes = sorted(p.wait() for p in many if p.communicate())
    assert codes == [0] + [91] * 11
    assert (tmp_path / "runs").read_text() == "x\n"


def test_one_that_was_killed_is_not_run_again(attempt, tmp_path):
    attempt.shell(f"echo x >>{tmp_path}/runs; echo up; exec sleep 1000", env={}).start()
    attempt.said("up")
    pid = wait_for(lambda: attempt.beat().get("pid"), "the beat")
    attempt.process.kill()
    attempt.process.wait()
    wait_for(lambda: not is_running(pid), "the command's end")  # nobody holds GPUs unwatched
    assert not (attempt.dir / "exit.json").exists()
    assert attempt.run()[0] == 91
    assert (tmp_path / "runs").read_text() == "x\n"
    assert not (attempt.dir / "exit.json").exists()


# ---- stopping ----

GENTLE = "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done"


@pytest.mark.parametrize("how", ["file", signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_stop(attempt, how):
    attempt.shell(GENTLE).start()
    attempt.said("up")
    if how == "file":
        (attempt.dir / "stop").write_text("alice asked for it\n")
    else:
        attempt.process.send_signal(how)
    rc, out = attempt.finish()
    end = attempt.exit()
    reason = "alice asked for it" if how == "file" else f"asked by {how.name}"
    assert rc == 3
    assert (end["cause"], end["code"], end["stop_reason"]) == ("stopped", 3, reason)
    assert end["sentence"] == f"stopped ({reason}): the command ended with exit code 3"
    log = attempt.log.read_text()  # the shell may tell of its own child in between
    assert log.startswith("up\n")
    assert log.endswith("bye\n")
    assert f"stopping the command: {reason}" in out


def test_stop_before_the_start(attempt):
    (attempt.dir / "stop").write_text("no longer wanted")
    (attempt.dir / ".secrets.json").write_text("{}")
    rc, out = attempt.shell("echo never").run()
    end = attempt.exit()
    assert rc == 0
    assert (end["cause"], end["code"], end["pid"]) == ("stopped_before_start", None, None)
    assert end["sentence"] == "stopped before the command was started: no longer wanted"
    assert "never" not in out
    assert not (attempt.dir / ".secrets.json").exists()
    assert attempt.run()[0] == 91


def test_one_that_will_not_stop_is_killed(attempt):
    attempt.shell("trap '' TERM; echo up; while :; do sleep 0.05; done", stop_grace_s=0.3).start()
    attempt.said("up")
    attempt.process.send_signal(signal.SIGTERM)
    attempt.process.send_signal(signal.SIGTERM)  # asking twice changes nothing
    rc, _ = attempt.finish()
    end = attempt.exit()
    assert rc == 128 + signal.SIGKILL
    assert (end["cause"], end["signal"]) == ("stopped", "SIGKILL")


# Says that it saves for longer than one that was asked with it would read.
SAVES = """
import select, signal, sys
def save(*_):
    for i in range(40):
        print("saving", i, flush=True)
        select.select([], [], [], 0.02)
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("up", flush=True)
while True:
    select.select([], [], [], 0.05)
"""


@pytest.mark.parametrize(
    "line",
    [
        "{python} | tee {log}",
        "{python} 2>&1 | tee -a {log} | cat",
        "{python} > >(tee {log}) 2>&1",
        "exec > >(tee {log}); {python}",
        "yes | {python} | tee {log}",
        "{python} | while read line; do echo $line; done | tee {log}",
    ],
)
def test_who_reads_is_stopped_last(attempt, tmp_path, line):
    """What the training says while it saves is read to its end."""
    (tmp_path / "train.py").write_text(SAVES)
    log = tmp_path / "its.log"
    script = line.format(python=f"{sys.executable} {tmp_path}/train.py", log=log)
    attempt.launch("/bin/bash", "-c", script).start()
    attempt.said("up")
    (attempt.dir / "stop").write_text('{"reason": "stopped by the test"}')
    attempt.finish()
    assert attempt.exit()["cause"] == "stopped"
    for text in (attempt.log.read_text(), log.read_text()):
        assert "saving 39\n" in text and text.endswith("saved\n"), text[-300:]


def test_a_reader_that_goes_on_is_stopped_too(attempt):
    script = f"{sys.executable} -c '{SAVES}' | ({sys.executable} -c 'import signal\nwhile True: signal.pause()')"
    attempt.shell("echo up; " + script).start()
    attempt.said("up")
    (attempt.dir / "stop").write_text("{}")
    attempt.finish()
    assert attempt.exit()["cause"] == "stopped"


def test_one_that_stands_still_is_woken(attempt):
    attempt.shell("trap 'exit 4' TERM; echo up; kill -STOP $$; exit 5").start()
    attempt.said("up")
    pid = wait_for(lambda: attempt.beat().get("pid"), "the beat")
    wait_for(lambda: " T " in pathlib.Path(f"/proc/{pid}/stat").read_text(), "the stopped state")
    attempt.process.send_signal(signal.SIGTERM)
    assert attempt.finish()[0] == 4


# Four ways to get away; each ignores what it is asked and says its pid.
ESCAPE = r"""
import os, select, signal, sys
def hide(name, depth, session):
    for _ in range(depth):
        if os.fork(): return
        if session: os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    null = os.open('/dev/null', os.O_RDWR)
    if name != 'holds-output':
        for fd in (0, 1, 2): os.dup2(null, fd)
    with open(os.path.join(sys.argv[1], name + '.tmp'), 'w') as f: f.write(str(os.getpid()))
    os.rename(os.path.join(sys.argv[1], name + '.tmp'), os.path.join(sys.argv[1], name))
    while True: signal.pause()
ways = (('child', 1, False), ('session', 1, True), ('double-fork', 2, True), ('holds-output', 3, True))
for name, depth, session in ways:
    pid = os.fork()
    if not pid:
        hide(name, depth, session)
        os._exit(0)
    if depth: os.waitpid(pid, 0)
while len([n for n in os.listdir(sys.argv[1]) if not n.endswith('.tmp')]) < 4: select.select([], [], [], 0.01)
print('hidden', flush=True)
if sys.argv[2] == 'stay':
    signal.pause()
"""


def escapees(directory):
    return {p.name: int(p.read_text()) for p in directory.iterdir()}


def test_escapees_are_caught_at_a_stop(attempt, tmp_path):
    pids = tmp_path / "pids"
    pids.mkdir()
    attempt.launch(sys.executable, "-c", ESCAPE, pids, "stay", stop_grace_s=0.3).start()
    attempt.said("hidden")
    assert all(is_running(pid) for pid in escapees(pids).values())
    (attempt.dir / "stop").write_text("enough")
    attempt.finish()
    assert [n for n, pid in escapees(pids).items() if is_running(pid)] == []
    assert attempt.exit()["cause"] == "stopped"


def test_escapees_are_caught_at_the_end(attempt, tmp_path):
    pids = tmp_path / "pids"
    pids.mkdir()
    rc, _ = attempt.launch(sys.executable, "-c", ESCAPE, pids, "leave", stop_grace_s=0.3).run()
    end = attempt.exit()
    assert rc == 0
    assert len(escapees(pids)) == 4
    assert [n for n, pid in escapees(pids).items() if is_running(pid)] == []
    assert (end["cause"], end["code"], end["strays"]) == ("exit", 0, 4)
    assert "4 processes it left behind were ended" in end["sentence"]


def test_strangers_are_left_alone(attempt):
    stranger = subprocess.Popen(["sleep", "1000"])
    try:
        attempt.shell(GENTLE).start()
        attempt.said("up")
        attempt.process.send_signal(signal.SIGTERM)
        attempt.finish()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_no_zombies(attempt):
    """Orphans come to the shepherd, so it must bury them while the command runs."""
    attempt.shell("for i in $(seq 40); do sh -c '(true) & (exit 3) &'; done; echo up; " + GENTLE).start()
    attempt.said("up")
    shepherd = attempt.process.pid

    def children():
        text = pathlib.Path(f"/proc/{shepherd}/task/{shepherd}/children").read_text()
        return [int(p) for p in text.split()]

    wait_for(lambda: children() == [attempt.beat().get("pid")], "the burial of all orphans")
    attempt.process.send_signal(signal.SIGTERM)
    assert attempt.finish()[0] == 3


# ---- signs of life ----


def test_beat(attempt):
    attempt.shell(GENTLE).start()
    attempt.said("up")
    # The log is counted in the beat after it was written.
    good = lambda b: b.get("seq", 0) > 3 and b["log_bytes"] == 3 and b  # noqa: E731
    beat = wait_for(lambda: good(attempt.beat()), "four beats")
    stat = pathlib.Path(f"/proc/{beat['pid']}/stat").read_text().rsplit(")", 1)[1].split()
    assert beat["start_ticks"] == int(stat[19])
    assert int(stat[1]) == beat["shepherd_pid"] == attempt.process.pid
    assert (beat["job"], beat["attempt"], beat["state"], beat["log_bytes"]) == ("j1", 1, "running", 3)
    assert beat["node"] == os.uname().nodename
    later = wait_for(lambda: (b := attempt.beat())["seq"] > beat["seq"] and b, "one more beat")
    assert later["at"] > beat["at"]
    attempt.process.send_signal(signal.SIGTERM)
    attempt.finish()


def test_beat_tells_of_stopping(attempt):
    attempt.shell("trap '' TERM; echo up; read line <%s" % (attempt.dir / "go"))
    os.mkfifo(attempt.dir / "go")
    attempt.start()
    attempt.said("up")
    attempt.process.send_signal(signal.SIGTERM)
    wait_for(lambda: attempt.beat().get("state") == "stopping", "the state in the beat")
    (attempt.dir / "go").write_text("go\n")
    assert attempt.finish()[0] == 0
    assert attempt.exit()["cause"] == "stopped"


def test_static():
    """It must start where nothing is installed."""
    text = subprocess.run(["readelf", "-l", SHEPHERD], capture_output=True, text=True)
    if text.returncode or b"__asan_init" in SHEPHERD.read_bytes():
        pytest.skip("a sanitized build is not static, or there is no readelf")
    assert "INTERP" not in text.stdout


# ---- killed for memory ----


def test_the_kernel_says_who_was_killed_for_memory(attempt):
    with small_group() as group:
        attempt.shell(f'echo $$ >"{group}/cgroup.procs"; exec "{sys.executable}" -c "x = bytearray(300 << 20)"')
        rc, _ = attempt.run()
    assert rc == 137
    told = attempt.exit()
    assert told["own_oom_kill"] == 1 and "Killed process " in told["oom_line"]
    if is_outermost():
        assert not told["oom_unsure"] and f"Killed process {told['pid']} " in told["oom_line"]
    assert "memory" in told["sentence"] and told["memory_peak_bytes"] != 0
