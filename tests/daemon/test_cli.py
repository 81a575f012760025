# SPDX-License-Identifier: Apache-2.0
"""argus, the real program, against a small stand-in for argusd: exit codes, tables, streams, retries."""

import functools
import json
import os
import pathlib
import pty
import re
import select
import signal
import stat
import subprocess
import termios
import unicodedata
import urllib.parse

import pytest
import stub_api
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARGUS = (
    pathlib.Path(os.environ["ARGUS_BIN"]) / "argus"
    if os.environ.get("ARGUS_BIN")
    else pathlib.Path(os.environ.get("ARGUS_BUILD", ROOT / "build")) / "src/argus/argus"
)
pytestmark = pytest.mark.skipif(not ARGUS.exists(), reason=f"{ARGUS} is not built")

DEADLINE = 120


@pytest.fixture
def stub():
    s = stub_api.Stub()
    yield s
    s.close()


class Cli:
    def __init__(self, home, url):
        keep = {k: v for k, v in os.environ.items() if k in ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")}
        self.env = {**keep, "HOME": str(home), "ARGUS_URL": url, "ARGUS_TOKEN": stub_api.TOKEN, "TERM": "xterm"}

    def start(self, *args, **more):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([ARGUS, *args], env=self.env, **{**pipes, **more})

    def run(self, *args, text=None, **env):
        p = subprocess.run(
            [ARGUS, *args], input=text or "", env={**self.env, **env}, capture_output=True, text=True, timeout=DEADLINE
        )
        assert "Sanitizer" not in p.stderr, p.stderr
        return p

    def ok(self, *args, **more):
        p = self.run(*args, **more)
        assert p.returncode == 0, p.stderr
        return p.stdout

    def json(self, *args):
        return json.loads(self.ok(*args, "-o", "json"))


@pytest.fixture
def cli(tmp_path, stub):
    return Cli(tmp_path, stub.url)


def read_until(stream, pattern):
    """What the stream gave up to the match."""
    seen = b""
    while not re.search(pattern, seen):
        ready, _, _ = select.select([stream], [], [], DEADLINE)
        piece = os.read(stream.fileno(), 1 << 16) if ready else b""
        assert piece, f"no {pattern!r} in {seen!r}"
        seen += piece
    return seen


def on_terminal(cli, *args, columns=80, keys=b"", until=None, **env):
    """Exit status and what a terminal of that width was sent."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, columns))
    ends = {"stdin": slave, "stdout": slave, "stderr": slave}
    p = subprocess.Popen([ARGUS, *args], env={**cli.env, **env}, start_new_session=True, **ends)
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 1 << 16)
        except OSError:
            break
        if not piece:
            break
        seen += piece
        if until and re.search(until, seen):
            os.write(master, keys)
            until = None
    os.close(master)
    return p.wait(DEADLINE), seen


def columns_of(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


# ---- usage ----


@pytest.mark.parametrize(
    "args, sentence, try_",
    [
        (["submitt"], "unknown command 'submitt': did you mean 'submit'?", "help"),
        (["node"], "'argus node' needs one of ls, add, show", "help"),
        (["token", "rm", "x"], "'argus token' has no 'rm': it has add, ls, revoke", "help"),
        (["top", "--csv"], "--csv is of one job: give its ID", "top --help"),
        (["logs", "--folow", "x"], "unknown option '--folow': did you mean '--follow'?", "logs --help"),
        (["logs"], "'argus logs' needs ID", "logs --help"),
        (["whoami", "x"], "'argus whoami' does not take 'x'", "whoami --help"),
        (["ls", "-o", "x"], "'x' is not a valid value for '--output': it takes table, wide, json, yaml", "ls --help"),
        (["ls", "--limit"], "option '--limit' needs a value: --limit N", "ls --help"),
        (["wait", "--timeout", "soon", "x"], "wrong value of '--timeout'", "wait --help"),
        (["stop"], "'argus stop' needs ID… or a filter such as --state QUEUED", "stop --help"),
        (
            ["stop", "x", "--state", "QUEUED"],
            "'argus stop' needs ID… or a filter such as --state QUEUED, not both",
            "stop --help",
        ),
        (["priority", "x", "101"], "'101' is not a valid priority: 0 to 100, high first", "priority --help"),
        (["stop", "--filter", "colour=red"], "'colour=red' is not a valid filter", "stop --help"),
        (["logs", "--attempt", "0", "x"], "wrong value of '--attempt': it counts from 1", "logs --help"),
        (["diagnose", "--attempt", "0", "x"], "wrong value of '--attempt': it counts from 1", "diagnose --help"),
        (["logs", "--grep", "(", "x"], "'(' is not a valid regular expression", "logs --help"),
    ],
)
def test_usage_error_is_one_line_and_where_to_read_more(cli, args, sentence, try_):
    p = cli.run(*args)
    first, second = p.stderr.splitlines()
    assert (p.returncode, p.stdout, second) == (2, "", f"try 'argus {try_}'")
    assert first.startswith(f"argus: {sentence}")


def test_help_of_a_noun_lists_its_commands(cli):
    rows = [x.split() for x in cli.ok("ckpt", "--help").splitlines() if x.startswith("  ckpt ")]
    assert [row[1] for row in rows] == ["ls", "best", "export", "pin", "unpin", "verify", "gc"]
    assert all(len(row) > 3 for row in rows)


def test_help_man_page_and_completion_know_every_option(cli):
    names = [line.split("\t")[0] for line in cli.ok("--list-commands").splitlines()]
    scripts = {shell: cli.ok("completion", shell) for shell in ("bash", "zsh", "fish")}
    assert len(names) > 40
    overview = cli.ok("help")
    shown = functools.cache(lambda command: cli.ok(*command.split(), "--help"))
    page = functools.cache(lambda command: cli.ok("help", "--man", *command.split()))
    for name in names:
        command, _, option = name.partition(" --")
        if option:
            assert f"--{option}" in shown(command)
            assert f"--{option}".replace("-", "\\-") in page(command)
            assert f"--{option}" in scripts["bash"] and f"--{option}" in scripts["zsh"]
            assert f"-l {option}" in scripts["fish"]
        else:
            assert command in overview and command.split()[0] in scripts["bash"]


def test_bash_completion_completes(cli, stub, tmp_path):
    stub.add("grpo-1")
    script = tmp_path / "c.bash"
    script.write_text(cli.ok("completion", "bash"))

    def complete(*words):
        line = " ".join(f"'{w}'" for w in words)
        shell = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _argus; "
        shell += "printf '%s\\n' \"${COMPREPLY[@]}\""
        env = {**cli.env, "PATH": f"{ARGUS.parent}:{cli.env['PATH']}"}
        return subprocess.run(["bash", "-c", shell], env=env, capture_output=True, text=True, check=True).stdout.split()

    assert complete("argus", "su") == ["submit"]
    assert complete("argus", "ls", "--outp") == ["--output"]
    assert complete("argus", "ls", "-o", "ya") == ["yaml"]
    assert complete("argus", "status", "grpo") == ["grpo-1"]


# ---- login and the server ----


def test_login_checks_and_remembers(cli, stub, tmp_path):
    del cli.env["ARGUS_URL"], cli.env["ARGUS_TOKEN"]
    path = tmp_path / ".config/argus/config.yaml"
    bad = cli.run("login", stub.url, "--token", "wrong")
    assert bad.returncode == 3 and not path.exists()
    good = cli.run("login", stub.url + "/", text=stub_api.TOKEN + "\n")
    assert good.returncode == 0 and "as alice (admin)" in good.stderr and good.stdout == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert yaml.safe_load(path.read_text()) == {"server": stub.url, "token": stub_api.TOKEN}
    assert list(path.parent.iterdir()) == [path]
    assert cli.ok("whoami").startswith("alice (admin)")
    assert cli.run("whoami", ARGUS_TOKEN="other").returncode == 3


def test_login_on_a_terminal_does_not_echo_the_token(cli, stub):
    status, seen = on_terminal(cli, "login", stub.url, keys=stub_api.TOKEN.encode() + b"\n", until=rb"token: ")
    assert status == 0 and b"as alice" in seen and stub_api.TOKEN.encode() not in seen


def test_stored_token_is_not_sent_to_another_server(cli, stub):
    token = cli.env.pop("ARGUS_TOKEN")
    cli.ok("login", stub.url, "--token", token)
    other = stub_api.Stub()
    assert cli.run("ls", ARGUS_URL=other.url).returncode == 3
    assert not any("Authorization" in r[2] for r in other.requests)
    other.close()
    assert cli.run("ls").returncode == 0


def test_a_list_is_asked_for_in_an_order(cli, stub):
    for args, asked in (
        (["--sort", "ran", "--order", "asc", "--flag", "hung,idle", "--pool", "a100"],
         {"sort": ["ran"], "order": ["asc"], "flag": ["HUNG,IDLE"], "pool": ["a100"]}),
        (["--state", "live"], {"state": ["live"]}),
        (["--state", "failed", "--state", "timeout"], {"state": ["FAILED,TIMEOUT"]}),
    ):  # fmt: skip
        cli.ok("ls", *args)
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(stub.requests[-1][1]).query)
        assert {**query, **asked} == query
        assert query.keys() - asked.keys() <= {"all", "limit"}
    assert cli.run("ls", "--order", "up").returncode == 2


def test_broken_config_names_the_place(cli, tmp_path):
    path = tmp_path / ".config/argus/config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("server: http://127.0.0.1:1\ntokn: x\n")
    p = cli.run("ls")
    assert p.returncode == 2 and f"{path}:2:1: 'tokn'" in p.stderr
    path.write_text("server: ftp://x\n")
    del cli.env["ARGUS_URL"]
    assert "'ftp://x' is not a valid server address" in cli.run("ls").stderr


def test_unreachable_server_is_6_and_says_which(cli, stub):
    stub.close()
    p = cli.run("ls")
    assert p.returncode == 6 and stub.url in p.stderr and "argus login" in p.stderr
    assert "argus   " in cli.run("version").stdout


def test_wrong_token_is_3_and_names_login(cli):
    p = cli.run("ls", ARGUS_TOKEN="wrong")
    assert p.returncode == 3 and "argus login" in p.stderr


def test_plain_http_to_another_machine_warns(cli):
    p = cli.run("login", "http://argus.invalid:1", "--token", "x")
    assert p.returncode == 6 and "is not encrypted" in p.stderr


# ---- submit ----


def test_submit_prints_only_the_id_and_sends_the_file_as_it_is(cli, stub, tmp_path):
    spec = tmp_path / "job.yaml"
    spec.write_text("# mine\nworkload: grpo\n")
    p = cli.run("submit", str(spec), "--require-fit", "--no-trial")
    assert p.returncode == 0 and p.stdout == "grpo-20261121-000000\n"
    assert "argus logs -f grpo-20261121-000000" in p.stderr
    ((_, path, headers, body),) = stub.seen("POST", "/v1/jobs")
    assert body == spec.read_bytes() and headers["Content-Type"] == "application/yaml"
    assert path == "/v1/jobs?require_fit=1&no_trial=1" and len(headers["Idempotency-Key"]) == 32


def test_a_lost_answer_is_asked_again_and_makes_one_job(cli, stub):
    stub.drop_posts = 2
    p = cli.run("submit", "-", text="workload: grpo\n")
    assert p.returncode == 0 and len(stub.jobs) == 1 and "trying again" in p.stderr
    keys = {r[2]["Idempotency-Key"] for r in stub.seen("POST", "/v1/jobs")}
    assert len(stub.requests) == 3 and len(keys) == 1


def test_two_submits_are_two_jobs(cli, stub):
    assert cli.ok("submit", "-", text="a: 1\n") != cli.ok("submit", "-", text="a: 1\n")
    assert len({r[2]["Idempotency-Key"] for r in stub.requests}) == 2


PROBLEMS = {
    "code": "bad_spec",
    "detail": "the spec has problems",
    "problems": [
        {"level": "error", "field": "nnodes", "line": 2, "column": 9, "detail": "'x' is not a number"}
        | {"hint": "nnodes: 1", "new": "member"},
        {"level": "warning", "field": "save_freq", "line": 3, "column": 1, "detail": "is small", "hint": None},
    ],
}


def test_every_problem_is_told_with_its_place(cli, stub, tmp_path):
    spec = tmp_path / "job.yaml"
    spec.write_text("workload: grpo\nnnodes: x\nsave_freq: 1\n")
    stub.refuse = (422, PROBLEMS)
    p = cli.run("submit", str(spec))
    assert p.returncode == 5 and p.stdout == ""
    assert p.stderr.splitlines() == [
        f"{spec}:2:9: error: 'nnodes': 'x' is not a number (nnodes: 1)",
        f"{spec}:3:1: warning: 'save_freq': is small",
        f"argus: '{spec}' was refused: 2 problems",
    ]


def test_set_changes_what_is_sent_and_keeps_places_of_the_file(cli, stub, tmp_path):
    spec = tmp_path / "job.yaml"
    spec.write_text("# a comment\n\nsave_freq: 1\nnnodes: 1\nversion: '1.0'\nrestart: {max: 3}\n")
    cli.ok("submit", str(spec), "--set", "nnodes=2", "--set", "restart.max=5", "--set", "a.b=[x, 1]")
    sent = yaml.safe_load(stub.requests[-1][3])
    assert sent == {"save_freq": 1, "nnodes": 2, "version": "1.0", "restart": {"max": 5}, "a": {"b": ["x", 1]}}
    stub.refuse = (422, PROBLEMS)
    lines = cli.run("submit", str(spec), "--set", "nnodes=x").stderr.splitlines()
    assert lines[0].startswith(f"{spec}:4:1: error: 'nnodes'") and lines[1].startswith(f"{spec}:3:1: warning")
    assert cli.run("submit", str(spec), "--set", "nnodes").returncode == 2
    assert cli.run("submit", str(spec), "--set", "overrides.=1").returncode == 2


def test_set_puts_one_override_into_the_list(cli, stub, tmp_path):
    spec = tmp_path / "job.yaml"
    spec.write_text("nnodes: 1\n")
    cli.ok("submit", str(spec), "--set", "overrides.a.b=1e-6")
    assert yaml.safe_load(stub.requests[-1][3])["overrides"] == ["a.b=1e-6"]
    spec.write_text("overrides: [a.b=1, +c.d=2, a.bc=3]\n")
    cli.ok("submit", str(spec), "--set", "overrides.c.d=[x, 1]", "--set", "overrides.a.b=4", "--set", "overrides.e=5")
    assert yaml.safe_load(stub.requests[-1][3])["overrides"] == ["a.b=4", "+c.d=[x, 1]", "a.bc=3", "e=5"]
    spec.write_text("overrides: {a: 1}\n")
    assert cli.run("submit", str(spec), "--set", "overrides.a=1").returncode == 2


def test_dry_run_prints_a_command_line_that_a_shell_reads_back(cli, stub):
    line = cli.ok("submit", "-", "--dry-run", text="workload: ppo\n")
    assert line == "python3 -m verl.trainer.main_ppo 'a=b c'\n" and not stub.jobs


def test_submit_follow_says_why_it_waits_then_streams_then_exits_with_the_job(cli, stub, tmp_path):
    spec = tmp_path / "job.yaml"
    spec.write_text("workload: grpo\n")
    p = cli.start("submit", str(spec), "--follow")
    job = read_until(p.stdout, rb"\n").decode().strip()
    stub.change(job, position=3, reason={"code": "pool_busy", "text": "4 of 8 GPUs are free"})
    assert b"QUEUED, position 3: 4 of 8 GPUs are free" in read_until(p.stderr, rb"position 3[^\n]*\n")
    stub.change(job, state="RUNNING", started_at="2026-11-21T10:00:00Z", nodes=[{"name": "w1"}], reason=None)
    read_until(p.stderr, rb"RUNNING on w1")
    stub.log(job, b"step:1\n")
    read_until(p.stdout, rb"step:1\n")
    stub.change(job, state="SUCCEEDED", ended_at="2026-11-21T10:04:10Z")
    _, talk = p.communicate(timeout=DEADLINE)
    assert p.returncode == 0 and talk.decode().splitlines()[-1] == f"job {job} SUCCEEDED in 4m10s"


# ---- logs ----

EVERY_BYTE = bytes(range(256)) * 300 + b"\xe4\xbd no utf-8\r\n\n"


def test_log_bytes_are_exact_whatever_the_size_of_pieces(cli, stub):
    job = stub.add("j1", state="RUNNING")
    stub.log(job, EVERY_BYTE)
    for stub.piece in (1 << 16, 1000):
        p = subprocess.run([ARGUS, "logs", job], env=cli.env, capture_output=True, timeout=DEADLINE)
        assert (p.returncode, p.stdout) == (0, EVERY_BYTE)


def test_followed_log_survives_cut_connections_byte_for_byte(cli, stub):
    job = stub.add("j1", state="RUNNING")
    stub.piece, stub.cut_logs = 5000, 3
    stub.log(job, EVERY_BYTE)
    p = cli.start("logs", "-f", job)
    seen = b""
    while len(seen) < len(EVERY_BYTE):
        seen += os.read(p.stdout.fileno(), 1 << 16)
    stub.log(job, b"last line without end")
    stub.change(job, state="FAILED", finding={"class": "gpu_oom", "node": "node-7"})
    rest, talk = p.communicate(timeout=DEADLINE)
    assert seen + rest == EVERY_BYTE + b"last line without end"
    assert len(stub.seen("GET", "follow=1")) > 3
    assert talk.decode().splitlines()[-1] == "job j1 FAILED gpu_oom on node-7 (argus diagnose j1)"
    assert p.returncode == 10


def test_the_end_of_all_logs_as_one_is_asked_for_until_it_is_answered(cli, stub):
    job = stub.add("j1", state="FAILED", finding={"class": "gpu_oom", "node": "node-7"})
    stub.log(job, b"a line\n")
    stub.drop_jobs = 2
    p = cli.run("logs", "-f", "--source", "all", job)
    assert "a line" in p.stdout and stub.drop_jobs == 0
    assert p.stderr.splitlines()[-1] == "job j1 FAILED gpu_oom on node-7 (argus diagnose j1)"
    assert p.returncode == 10


def test_follow_outlives_a_restart_of_the_server(cli, stub, tmp_path):
    job = stub.add("j1", state="RUNNING")
    stub.log(job, b"one\n")
    p = cli.start("logs", "-f", job)
    assert read_until(p.stdout, rb"one\n") == b"one\n"
    port = stub.server.server_address[1]
    stub.close()
    read_until(p.stderr, rb"connection lost")
    again = stub_api.Stub(port)
    again.add("j1", state="SUCCEEDED")
    again.log(job, b"one\ntwo\n")
    rest, talk = p.communicate(timeout=DEADLINE)
    again.close()
    assert rest == b"two\n" and p.returncode == 0 and b"connected again" in talk


@pytest.mark.parametrize(
    "members, status",
    [
        ({"state": "SUCCEEDED"}, 0),
        ({"state": "FAILED"}, 10),
        ({"state": "STOPPED"}, 11),
        ({"state": "TIMEOUT"}, 12),
        ({"state": "FAILED", "exit": {"cause": "lost", "code": -1, "signal": None}}, 13),
    ],
)
def test_follow_and_wait_exit_with_the_job(cli, stub, members, status):
    job = stub.add("j1", **members)
    assert cli.run("logs", "-f", job).returncode == status
    assert cli.run("wait", job).returncode == status


def test_ctrl_c_detaches_and_leaves_the_job_alone(cli, stub):
    job = stub.add("j1", state="RUNNING")
    stub.log(job, b"one\n")
    p = cli.start("logs", "-f", job)
    read_until(p.stdout, rb"one\n")
    p.send_signal(signal.SIGINT)
    _, talk = p.communicate(timeout=DEADLINE)
    assert p.returncode == 0 and b"detached; job j1 goes on" in talk
    assert not stub.seen("POST", "") and stub.jobs[job]["state"] == "RUNNING"


def test_tail_then_follow_joins_without_a_gap(cli, stub):
    job = stub.add("j1", state="SUCCEEDED")
    stub.log(job, b"".join(b"line %d\n" % i for i in range(100)))
    assert cli.ok("logs", "--tail", "2", job) == "line 98\nline 99\n"
    p = cli.run("logs", "-f", "--tail", "2", job)
    assert p.stdout == "line 98\nline 99\n" and "offset=" in stub.seen("GET", "follow=1")[-1][1]


def test_grep_prints_matching_lines_only(cli, stub):
    job = stub.add("j1", state="SUCCEEDED")
    stub.piece = 7
    stub.log(job, b"step:1 x\nnoise\nstep:2 y\nstep:3")
    assert cli.ok("logs", "--grep", "^step:[23]", job) == "step:2 y\nstep:3\n"
    assert cli.ok("logs", "-f", "--grep", "^step:[23]", job) == "step:2 y\nstep:3\n"
    assert len(stub.seen("GET", "grep=")) == 2  # the server found them


def test_terminal_gets_colours_and_no_other_control(cli, stub):
    job = stub.add("j1", state="SUCCEEDED")
    stub.log(job, b"\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J\xc2\x9b2J\n")
    _, seen = on_terminal(cli, "logs", job)
    assert b"\x1b[31mred\x1b[0m ^[]0;title^G ^[[2J\\x9b2J" in seen


def test_the_answer_of_a_service_steers_no_terminal(cli, stub):
    stub.says = "well\x1b]0;title\x07\x1b[2J\x9b1A"
    status, seen = on_terminal(cli, "service", "ask", "talks", "6 times 7?")
    assert status == 0 and b"well^[]0;title^G^[[2J\\x9b1A" in seen
    assert cli.ok("service", "ask", "talks", "6 times 7?") == stub.says + "\n", "what is no terminal gets it as it came"


# ---- reading ----


def fill(stub):
    long = "waiting for 8 GPUs on 2 nodes of pool h20: 4 are free now, the others when job sft-1 ends"
    stub.add("ppo-20261121-a1b2c3", name="gsm8k baseline", workload="ppo", state="SUCCEEDED", step=29, gpu_util=87.5,
             gpu_hours=12.344)  # fmt: skip
    stub.add("sft-20261121-d4e5f6", name="数学推理强化学习基线实验", user="bob", state="RUNNING", flags=["UNKNOWN"])
    eta = {"p50": "2026-11-21T12:00:00Z", "p90": "2099-11-21T14:00:00Z"}
    stub.add("grpo-20261121-q2", position=2, priority=50, reason={"code": "pool_busy", "text": long}, eta=eta)
    stub.add("grpo-20261121-q1", position=1, priority=50, name="evil\x1b[2J\n", reason={"code": "x", "text": "y"})


def test_columns_are_those_of_the_manual(cli, stub):
    fill(stub)
    gpus = {"total": 4, "used": 3, "free": 1, "bad": 0}
    stub.nodes = [{"name": "w1", "state": "online", "gpus": gpus, "unknown": [1]}]
    head = cli.ok("ls").splitlines()[0].split()
    assert head == "ID NAME USER WORKLOAD STATE NODES×GPU QUEUED RUN RESTARTS STEP UTIL GPU-H REASON".split()
    assert cli.ok("list").splitlines()[0].split() == head
    assert [line.split()[-2] for line in cli.ok("ls").splitlines() if "87.5%" in line] == ["12.34"]
    head = cli.ok("queue").splitlines()[0].split()
    assert head == "POS ID NAME USER PROJECT POOL PRIO NODES×GPU WAIT ETA REASON".split()
    head, row = (line.split() for line in cli.ok("node", "ls").splitlines())
    assert head == "NODE POOL STATE GPUS(free/used/bad) JOBS HEALTH SINCE REASON".split()
    assert row == "w1 - online 1/3/0 - - - -".split()


def test_status_says_what_the_gpus_do(cli, stub):
    stub.add("busy-1", state="RUNNING", gpu_util=71)
    stub.add("dark-1", state="RUNNING")
    assert "71 % on average in the last minutes" in " ".join(cli.ok("status", "busy-1").split())
    assert "GPU use" not in cli.ok("status", "dark-1"), "nobody measured it"


def test_a_loss_is_not_told_as_a_reward(cli, stub):
    curve = {"key": "x", "value": 0.25, "best": 0.25, "spark": [0.5, 0.25]}
    stub.add("sft-1", state="RUNNING", metrics={"step": 3, "loss": curve})
    stub.add("ppo-1", state="RUNNING", metrics={"step": 3, "reward": curve})
    rows = {line.split()[0]: line for line in cli.ok("top").splitlines()}
    assert " loss 0.25 " in rows["sft-1"]
    assert "loss" not in rows["ppo-1"] and " 0.25 " in rows["ppo-1"]


@pytest.mark.parametrize("columns", [30, 80, 100, 200])
@pytest.mark.parametrize("command", ["ls -a", "queue", "node ls", "events"])
def test_tables_fit_the_terminal(cli, stub, command, columns):
    fill(stub)
    stub.nodes = [{"name": "worker-with-a-name", "state": "online", "jobs": list(stub.jobs), "reason": "r" * 99}]
    stub.event(job="sft-20261121-d4e5f6", kind="started", **{"from": "STARTING", "to": "RUNNING"}, text="t" * 99)
    _, seen = on_terminal(cli, *command.split(), columns=columns, NO_COLOR="1")
    lines = seen.decode().replace("\r", "").splitlines()
    table = [line for line in lines if not line.startswith("some columns")]
    assert len(table) > 1 and b"\x1b" not in seen
    assert max(map(columns_of, table)) <= columns


def test_events_on_a_terminal_say_what_they_are_about(cli, stub):
    fill(stub)
    ids = {"job": "a-job-with-a-long-name-20261121-d4e5f6", "object": "job/a-job-with-a-long-name-20261121-d4e5f6"}
    stub.event(**ids, kind="started", **{"from": "STARTING", "to": "RUNNING"}, text="its shepherd was seen at work")
    _, seen = on_terminal(cli, "events", columns=80, NO_COLOR="1")
    head, *rows = seen.decode().replace("\r", "").splitlines()
    assert [c for c in head.split() if c not in ("SEQ", "CHANGE")] == "AT JOB KIND TEXT".split()
    assert "a-job-with-a-" in rows[-1] and "its shepherd was seen" in rows[-1]


def test_nothing_is_cut_in_a_pipe_and_no_control_gets_through(cli, stub):
    fill(stub)
    out = cli.ok("ls", "-a")
    assert "when job sft-1 ends" in out and "evil?[2J" in out and "\x1b" not in out and "…" not in out


def test_queue_is_in_order_and_ls_shows_mine_unless_asked(cli, stub):
    fill(stub)
    rows = [line.split() for line in cli.ok("queue").splitlines()[1:]]
    assert [r[1] for r in rows] == ["grpo-20261121-q1", "grpo-20261121-q2"]
    assert "sft-20261121-d4e5f6" not in cli.ok("ls") and "sft-20261121-d4e5f6" in cli.ok("ls", "-a")
    assert cli.ok("ls", "-q", "--user", "bob") == "sft-20261121-d4e5f6\n"
    assert cli.ok("ls", "-q", "--state", "queued,running", "-a").count("\n") == 3


def test_queue_on_a_terminal_keeps_what_matters(cli, stub):
    fill(stub)
    _, seen = on_terminal(cli, "queue", columns=80, NO_COLOR="1")
    head = seen.decode().splitlines()[0].split()  # how long they have waited makes a column more or less
    assert [c for c in head if c not in ("USER", "NODES×GPU")] == "POS ID WAIT ETA REASON".split()


@pytest.mark.parametrize("command", ["ls -a", "queue"])
def test_what_tells_jobs_apart_stays_longest(cli, stub, command):
    """The user where users differ, the pool where places of several lines stand there; else others go first."""
    why = {"code": "x", "text": "needs 8 GPUs, of which 4 are free in this pool as it is now"}
    for n, (user, pool) in enumerate([("alice", "a100"), ("alice", "a100")]):
        stub.add(f"job-of-a-long-name-20261121-{n}", user=user, pool=pool, position=n + 1, state="QUEUED", reason=why)

    def head():
        _, seen = on_terminal(cli, *command.split(), columns=80, NO_COLOR="1")
        return seen.decode().splitlines()[0].split()

    assert "USER" not in head() and "POOL" not in head()
    stub.add("job-of-a-long-name-20261121-7", user="bob", pool="h20", position=1, state="QUEUED", reason=why)
    assert "USER" in head() and ("POOL" in head() or command != "queue")


def test_a_job_without_a_place_in_line_has_none_in_the_table(cli, stub):
    stub.add("first", position=1)
    stub.add("second", position=2)
    stub.add("held", state="QUEUED", flags=["HELD"])
    stub.jobs["held"].pop("position", None)
    rows = [line.split() for line in cli.ok("queue").splitlines()[1:]]
    assert [(r[0], r[1]) for r in rows] == [("1", "first"), ("2", "second"), ("-", "held")]


def test_why_says_code_evidence_hint_and_eta(cli, stub):
    eta = {"p50": "2026-11-21T12:00:00Z", "p90": "2026-11-21T14:00:00Z"}
    reason = {"code": "waiting_for_gpus", "text": "it needs 8 GPUs, 4 are free"}
    also = [{"code": "quota_gpus", "text": "project rl holds 8 of 8 GPUs"}]
    stub.add("j1", position=3, eta=eta, reason=reason, also=also, hint_text="would start now on pool a6000")
    lines = [line.split(None, 1) for line in cli.ok("why", "j1", "--utc").splitlines()]
    assert lines == [
        ["job", "j1"], ["state", "QUEUED, position 3"], ["code", "waiting_for_gpus"],
        ["reason", "it needs 8 GPUs, 4 are free"], ["then", "project rl holds 8 of 8 GPUs"],
        ["would", "help  would start now on pool a6000"],
        ["ETA", "2026-11-21T12:00:00Z/2026-11-21T14:00:00Z"],
    ]  # fmt: skip
    stub.add("j2", state="RUNNING", reason={"code": "running", "text": "it runs"})
    lines = [line.split(None, 1) for line in cli.ok("why", "j2").splitlines()]
    assert lines == [["job", "j2"], ["state", "RUNNING"], ["code", "running"], ["reason", "it runs"]]


def test_hold_release_and_priority(cli, stub):
    fill(stub)
    p = cli.run("hold", "grpo-20261121-q1", "grpo-20261121-q2")
    assert "argus release grpo-20261121-q1" in p.stderr
    out = p.stdout
    assert out == "grpo-20261121-q1 QUEUED,HELD\ngrpo-20261121-q2 QUEUED,HELD\n"
    assert cli.ok("release", "grpo-20261121-q2") == "grpo-20261121-q2 QUEUED\n"
    assert "job grpo-20261121-q1 has priority 80" in cli.run("priority", "grpo-20261121-q1", "80").stderr
    assert stub.jobs["grpo-20261121-q1"]["priority"] == 80 and stub.jobs["grpo-20261121-q1"]["flags"] == ["HELD"]
    p = cli.run("hold", "nope", "grpo-20261121-q2")
    assert p.returncode == 4 and stub.jobs["grpo-20261121-q2"]["flags"] == ["HELD"]


def test_list_follows_pages_up_to_the_limit(cli, stub):
    for i in range(450):
        stub.add(f"j{i}")
    assert len(cli.json("ls", "--limit", "430")["jobs"]) == 430
    p = cli.run("ls", "-q")
    assert p.stdout.count("\n") == 50


READING = ["ls", "queue", "status grpo-20261121-q1", "why grpo-20261121-q1", "node ls", "events", "whoami", "version"]


@pytest.mark.parametrize("command", READING)
def test_json_and_yaml_say_the_same(cli, stub, command):
    fill(stub)
    stub.event(job="x", kind="submitted", text="- not: a list # nor a comment")
    assert yaml.safe_load(cli.ok(*command.split(), "-o", "yaml")) == cli.json(*command.split())


def test_names_and_prefixes_are_resolved_and_ambiguity_lists_candidates(cli, stub):
    fill(stub)
    assert cli.json("status", "gsm8k baseline")["id"] == "ppo-20261121-a1b2c3"
    assert cli.json("status", "sft")["id"] == "sft-20261121-d4e5f6"
    p = cli.run("status", "grpo")
    assert p.returncode == 5 and "grpo-20261121-q1" in p.stderr and "grpo-20261121-q2" in p.stderr
    assert cli.run("status", "nope/../x?y").returncode == 4


def test_a_page_says_the_node_of_a_finding_once(cli, stub):
    found = {"class": "gpu_oom", "node": "w1", "sentence": "gpu_oom on w1, rank 3: full"}
    stub.add("j1", state="FAILED", finding=found)
    assert cli.ok("status", "j1").count("w1") == 1


def test_status_shows_proof_paths_and_finding(cli, stub):
    stub.add(
        "j1",
        state="FAILED",
        started_at="2026-11-21T10:00:00Z",
        ended_at="2026-11-21T10:05:00Z",
        driver={"node": "w1", "ip": "10.0.0.3", "pid": 42},
        proof={"driver_on_worker": True, "driver_node_ip": "10.0.0.3", "head_ip": "10.0.0.1"},
        paths={"dir": "/mnt/shared/jobs/j1", "driver_log": "/mnt/shared/jobs/j1/logs/driver.log"},
        finding={"class": "gpu_oom", "sentence": "gpu_oom: it was full", "node": "w1", "advice": "halve the batch"},
        exit={"cause": "exit", "code": 1, "signal": None},
        attempts=[{"k": 1, "state": "ENDED", "ray_id": "j1", "end": "exit code 1"}],
        restart={"max": 2, "failures": 1},
    )
    out = cli.ok("status", "j1", "--utc")
    assert "driver on worker w1 (10.0.0.3), not on the head (10.0.0.1)" in out
    assert "2026-11-21T10:00:00Z, ran 5m" in out and "gpu_oom on w1: it was full\n" in out
    assert "Ray job j1: exit code 1\n" in out and "restarts    1 of the 2 that restart.max allows\n" in out
    assert "/mnt/shared/jobs/j1/logs/driver.log" in out and "exit, code 1" in out
    stub.change("j1", finding={"class": "unknown", "sentence": "unknown", "meaning": "nothing says why"})
    assert "unknown: nothing says why\n" in cli.ok("status", "j1")
    stub.change("j1", proof={"driver_on_worker": False, "head_ip": "10.0.0.1"})
    assert "ON THE HEAD (10.0.0.1)" in cli.ok("status", "j1")


def attempt(k, **more):
    times = {"queued_at": "2026-11-21T08:00:00Z", "accepted_at": "2026-11-21T10:00:00Z",
             "started_at": "2026-11-21T10:01:00Z", "ended_at": "2026-11-21T10:31:00Z"}  # fmt: skip
    base = {"k": k, "state": "ENDED", "ray_id": f"j1-{k}", "end": "exit code 1", "nodes": [], "finding": None}
    return {**base, **times, **more}


@pytest.mark.parametrize("lang,waited,on", [("C", "waited 2h", "on "), ("zh_CN.UTF-8", "等待 2h", "位于 ")])
def test_status_says_where_each_attempt_ran_and_why_it_failed(cli, stub, lang, waited, on):
    nodes = [{"name": f"gpu-node-{n:02}", "gpu_ids": [0, 1, 2, 3]} for n in range(4)]
    nodes.append({"name": "bare", "gpu_ids": []})
    lost = {"class": "node_lost", "sentence": "gpu-node-01 is away", "node": "gpu-node-01", "advice": None}
    full = {"class": "gpu_oom", "sentence": "gpu_oom on gpu-node-02: full", "node": "gpu-node-02", "advice": None}
    attempts = [attempt(1, nodes=nodes, finding=lost), attempt(2, nodes=nodes[:1], finding=full), attempt(3)]
    stub.add("j1", state="FAILED", attempts=[*attempts, attempt(4, finding=full)], finding=full)
    _, seen = on_terminal(cli, "status", "j1", columns=80, NO_COLOR="1", LANG=lang)
    lines = seen.decode().replace("\r", "").splitlines()
    assert max(map(columns_of, lines)) <= 80, lines
    text = " ".join(" ".join(lines).split())
    places = ", ".join([*(f"gpu-node-{n:02} (0 1 2 3)" for n in range(4)), "bare"])
    assert f"1 ENDED 30m Ray job j1-1: node_lost: gpu-node-01 is away {waited}, {on}{places}" in text
    assert f"2 ENDED 30m Ray job j1-2: gpu_oom on gpu-node-02: full {waited}, {on}gpu-node-00 (0 1 2 3)" in text
    assert f"3 ENDED 30m Ray job j1-3: exit code 1 {waited} 4 ENDED" in text
    assert text.count("gpu_oom on gpu-node-02: full") == 2, "the job's own finding is not told twice"
    stub.change("j1", attempts=[attempt(1, queued_at=None)])
    assert waited.split()[0] not in cli.ok("status", "j1", LANG=lang), "nobody kept when it began to wait"


@pytest.mark.parametrize("failures,save_s,said", [
    (1, 0.0275, "save_freq 3 may lose least: a save takes 28ms; one failure in 15m is not enough to tell a rate"),
    (3, 0.0002, "save_freq 3 would lose least: a save takes <1ms, a failure came every 15m"),
    (3, 2.25, "a save takes 2.2s,"),
    (3, 61, "a save takes 1m1s,"),
])  # fmt: skip
def test_status_advises_how_often_to_save(cli, stub, failures, save_s, said):
    goodput = {"ratio": 0.5, "held_s": 900, "steps_lost": 2, "save_s": save_s, "mtbf_s": 900, "save_freq": 3}
    stub.add("j1", goodput={**goodput, "failures": failures})
    assert said in cli.ok("status", "j1")


def test_status_shows_what_was_imported(cli, stub):
    imports = {"ok": True, "verl": "0.9.1", "file": "/s/verl/__init__.py", "nodes": ["w1", "w2"], "mismatch": None}
    stub.add("j1", proof={"driver_on_worker": None, "imports": imports})
    assert "imports     verl 0.9.1 from /s/verl/__init__.py, on w1,w2\n" in cli.ok("status", "j1")
    stub.change("j1", proof={"imports": {**imports, "snapshot": "verl@a", "hash": "cafe"}})
    assert "verl 0.9.1 from /s/verl/__init__.py = verl@a (cafe), on w1,w2\n" in cli.ok("status", "j1")
    stub.change("j1", proof={"imports": {"ok": False, "mismatch": "from '/a' and not from '/b'\x1b[2J", "verl": "1"}})
    out = cli.ok("status", "j1")
    assert "imports     from '/a' and not from '/b'" in out and "\x1b" not in out
    stub.change("j1", proof={"imports": {"ok": True, "verl": 7, "nodes": {}, "file": None}})
    assert "imports" not in cli.ok("status", "j1")


def test_members_of_another_version_are_no_trouble(cli, stub):
    odd = {"id": "odd", "state": "PAUSED", "reason": "text", "nnodes": "2", "flags": {"x": 1}, "new": [{}]}
    stub.jobs["odd"] = odd
    stub.logs["odd"] = b""
    assert "PAUSED" in cli.ok("ls", "-a") and "PAUSED" in cli.ok("status", "odd")


def test_chinese_titles_and_english_states(cli, stub):
    fill(stub)
    out = cli.ok("ls", LANG="zh_CN.UTF-8")
    assert "状态" in out and "STATE" not in out and "SUCCEEDED" in out


def test_watch_shows_changes_and_ends_with_ctrl_c(cli, stub):
    stub.add("j1")
    p = cli.start("status", "j1", "--watch")
    read_until(p.stdout, rb"QUEUED")
    stub.change("j1", state="RUNNING")
    read_until(p.stdout, rb"RUNNING")
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=DEADLINE)
    assert p.returncode == 0


# ---- stop, wait, events ----


def test_stop_by_name_and_by_filter(cli, stub):
    fill(stub)
    assert cli.ok("stop", "gsm8k baseline") == "ppo-20261121-a1b2c3 SUCCEEDED\n"
    p = cli.run("stop", "--filter", "user=alice")
    assert p.returncode == 2 and "add -y" in p.stderr and stub.jobs["grpo-20261121-q1"]["state"] == "QUEUED"
    out = cli.ok("stop", "--filter", "user=alice", "-y", "--wait")
    assert "job grpo-20261121-q1 STOPPED" in out and stub.jobs["sft-20261121-d4e5f6"]["state"] == "RUNNING"
    assert [r[1] for r in stub.seen("POST", ":stop")][1:] == ["/v1/jobs:stop"]  # all of them at once
    p = cli.run("stop", "nope", "sft")
    assert p.returncode == 4 and stub.jobs["sft-20261121-d4e5f6"]["state"] == "STOPPED"


def test_archive_of_all_that_are_old_waits_for_places(cli, stub):
    ids = [stub.add(f"old-{n}", state="SUCCEEDED", ended_at="2026-01-01T00:00:00Z") for n in range(3)]
    stub.busy = 2
    p = cli.run("archive", "--older", "1d")
    assert p.returncode == 0 and sorted(p.stdout.split()[::2]) == ids and stub.busy == 0
    assert len(stub.seen("POST", ":archive")) == 5
    stub.busy = 1
    assert cli.run("archive", "old-0").returncode != 0  # one that is named is told at once


def test_stop_is_about_ones_own_unless_all(cli, stub):
    fill(stub)
    out = cli.ok("stop", "--state", "queued,running", "-y")
    assert sorted(out.splitlines()) == ["grpo-20261121-q1 STOPPED", "grpo-20261121-q2 STOPPED"]
    assert stub.jobs["sft-20261121-d4e5f6"]["state"] == "RUNNING"
    assert "no live job matches" in cli.run("stop", "--project", "rlhf", "--state", "QUEUED", "--all", "-y").stderr
    assert cli.ok("stop", "--project", "rlhf", "--all", "-y") == "sft-20261121-d4e5f6 STOPPED\n"


def test_stop_asks_on_a_terminal(cli, stub):
    stub.add("j1", state="RUNNING")
    status, seen = on_terminal(cli, "stop", "--filter", "user=alice", keys=b"n\n", until=rb"\[y/N\] ")
    assert status == 2 and b"j1" in seen and stub.jobs["j1"]["state"] == "RUNNING"
    status, _ = on_terminal(cli, "stop", "--filter", "user=alice", keys=b"y\n", until=rb"\[y/N\] ")
    assert status == 0 and stub.jobs["j1"]["state"] == "STOPPED"


def test_wait_takes_the_worst_and_sees_the_end_at_once(cli, stub):
    stub.add("j1", state="SUCCEEDED")
    stub.add("j2", state="RUNNING")
    stub.add("j3", state="STOPPED")
    p = cli.start("wait", "j1", "j2", "j3")
    read_until(p.stderr, rb"job j2 RUNNING")
    stub.change("j2", state="TIMEOUT")
    out, _ = p.communicate(timeout=DEADLINE)
    assert p.returncode == 12 and b"job j2 TIMEOUT" in out
    assert cli.run("wait", "j1", "nope").returncode == 4


def test_wait_times_out_with_7(cli, stub):
    stub.add("j1", state="RUNNING")
    p = cli.run("wait", "j1", "--timeout", "1s")
    assert p.returncode == 7 and "had not ended" in p.stderr


def test_events_are_listed_and_followed_to_the_end_of_the_job(cli, stub):
    stub.add("j1")
    stub.event(job="j1", kind="submitted", to="QUEUED", text="submitted by alice")
    stub.event(job="j2", kind="submitted", to="QUEUED")
    assert "submitted by alice" in cli.ok("events", "j1") and "j2" not in cli.ok("events", "j1")
    assert "JOB" not in cli.ok("events", "j1").splitlines()[0] and "JOB" in cli.ok("events").splitlines()[0]
    assert [e["seq"] for e in cli.json("events")["events"]] == [1, 2]
    assert [e["seq"] for e in cli.json("events", "--limit", "1")["events"]] == [2]
    assert [e["seq"] for e in cli.json("events", "--since", "1")["events"]] == [2]
    p = cli.start("events", "-f", "j1", "-o", "json")
    read_until(p.stdout, rb"\n")
    stub.event(job="j1", kind="ended", **{"from": "RUNNING", "to": "FAILED"})
    out, _ = p.communicate(timeout=DEADLINE)
    assert p.returncode == 0 and [json.loads(line)["seq"] for line in out.splitlines()] == [3]
