# SPDX-License-Identifier: Apache-2.0
"""What argusd puts right on a machine by itself: the script that does it alone, and argusd beside a fake Ray with a
stand-in for ssh that runs its looks and remedies here. Each test breaks the thing and sees it mended, and sees what
must be left alone untouched."""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import uuid

import pytest
from fakeray import FakeRay

from argusd import PROGRAMS, Argusd, needs_argusd, until

TOP = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = TOP / "src/ssh/remedycall.sh"
HOUR = 3600
OLD = "session_2026-01-01_00-00-00_000001_1"
NEW = "session_2026-01-02_00-00-00_000001_1"


def mark_of(owner, node):
    return hashlib.sha256(f"{owner}\n{node}".encode()).hexdigest()[:24]


@contextlib.contextmanager
def process(shell="read -r nothing", argv=None, **env):
    """A process that lives until it is ended, with these variables."""
    given = {k: v for k, v in os.environ.items() if not k.startswith("ARGUS_")} | env
    argv = argv or ["sh", "-c", f"echo up; {shell}"]
    own = {"start_new_session": True}  # a raylet that is ended takes its session with it
    p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=given, **own)
    try:
        assert p.stdout.readline() == b"up\n"
        yield p
    finally:
        p.kill()
        p.wait()
        p.stdin.close()
        p.stdout.close()


def lives(p):
    return p.poll() is None


def grow_old(top):
    """As if nothing in it had changed for two hours."""
    for at in [*top.rglob("*"), top]:
        then = at.lstat().st_mtime - 2 * HOUR
        os.utime(at, (then, then), follow_symlinks=False)


def make_session(top, name):
    at = top / name
    (at / "logs").mkdir(parents=True)
    (at / "logs/raylet.out").write_bytes(b"x" * 100000)
    grow_old(at)
    return at


# ---- the script ----


class Node:
    """One of ours, as remedycall.sh knows it."""

    def __init__(self):
        self.owner, self.name = f"test{uuid.uuid4().hex[:16]}", "n1"
        self.mark = mark_of(self.owner, self.name)
        self.own = pathlib.Path(f"/tmp/argus-{os.getuid()}/{self.owner}")

    def knows(self, *paths):
        (self.own / self.name).mkdir(parents=True, mode=0o700)
        (self.own / self.name / "sessions").write_text("".join(f"{p}\n" for p in paths))

    def ask(self, verb, *words):
        argv = ["sh", SCRIPT, verb, self.owner, self.name, self.mark, *map(str, words)]
        run = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert run.returncode == 0 and not run.stderr, run
        lines = run.stdout.splitlines()
        assert lines[-1] == "END=done", lines
        return lines[:-1]


@pytest.fixture
def node():
    n = Node()
    yield n
    shutil.rmtree(n.own, ignore_errors=True)


def test_only_processes_of_the_job_and_of_the_node_are_ended(node):
    of_job = {"ARGUS_MARK": node.mark, "ARGUS_JOB_ID": "job-1"}
    with (
        process(**of_job) as meek,
        process("trap '' TERM; echo; read -r nothing", **of_job) as stubborn,
        process(**of_job | {"ARGUS_JOB_ID": "job-11"}) as longer_name,
        process(**of_job | {"ARGUS_MARK": mark_of(node.owner, "n2")}) as of_another_node,
        process(**of_job | {"ARGUS_MARK": node.mark + "0"}) as longer_mark,
        process(ARGUS_MARK=node.mark) as raylet,
        process(ARGUS_JOB_ID="job-1") as without_mark,
        process(ARGUS_NOTE=f"ARGUS_MARK={node.mark}", ARGUS_JOB_ID="job-1") as in_another_variable,
        process(ARGUS_NOTE="env of\nARGUS_JOB_ID=job-1\n", **of_job | {"ARGUS_JOB_ID": "job-2"}) as in_a_note,
    ):
        assert stubborn.stdout.readline() == b"\n"  # its trap is set
        said = node.ask("strays", 0, "job-0", "job-1")
        assert said[0] == "PROCESSES=2" and said[2] == "LEFT=0", said
        until(lambda: not lives(meek) and not lives(stubborn), "both are gone")
        assert stubborn.returncode == -signal.SIGKILL
        for p in (longer_name, of_another_node, longer_mark, raylet, without_mark, in_another_variable, in_a_note):
            assert lives(p), p.args
        assert node.ask("strays", 0, "job-1") == ["PROCESSES=0", "KILLED=0", "LEFT=0"]


def test_only_dead_sessions_of_ours_go(node, tmp_path):
    temp, elsewhere = tmp_path / "ray", tmp_path / "elsewhere"
    names = [f"session_2026-01-01_00-00-0{i}_000001_1" for i in range(8)]
    dead, named, opened, busy, linked, newest, foreign, inner = names
    for name in (dead, named, opened, busy, newest, foreign):
        make_session(temp, name)
    kept = make_session(elsewhere, "precious")
    (temp / linked).symlink_to(kept)
    (temp / dead / "way_out").symlink_to(kept)
    grow_old(temp / dead)
    (temp / "session_latest").symlink_to(temp / newest)
    (temp / busy / "logs/new").write_text("just now")
    node.knows(*(temp / n for n in names if n != foreign), temp / "..", temp / "session_1/../precious", kept, "/")
    with (
        process(argv=["sh", "-c", "echo up; read -r nothing", f"--session_dir={temp / named}"]),
        open(temp / opened / "logs/raylet.out"),
    ):
        said = node.ask("sessions", temp, 60)
    (line,) = said
    assert line.startswith("REMOVED=") and line.endswith(f" {temp / dead}"), line
    assert int(line[len("REMOVED=") :].split()[0]) >= 90
    left = {p.name for p in temp.iterdir()}
    assert left == {named, opened, busy, linked, newest, foreign, "session_latest"}
    assert (kept / "logs/raylet.out").is_file()
    # Those that were in use are dead now, too.
    assert sorted(x.rsplit("/", 1)[1] for x in node.ask("sessions", f"{temp}/", 60)) == sorted([named, opened])


def test_a_place_that_is_a_link_is_left_alone(node, tmp_path):
    at = make_session(tmp_path / "real", OLD)
    (tmp_path / "ray").symlink_to(tmp_path / "real")
    node.knows(tmp_path / "ray" / OLD)
    assert node.ask("sessions", tmp_path / "ray", 60) == []
    assert at.is_dir()


@needs_argusd
def test_each_remedy_is_described():
    listed = subprocess.run([PROGRAMS["argusd"], "--list-config"], capture_output=True, text=True, check=True).stdout
    keys = {line.split()[0] for line in listed.splitlines() if line.startswith("remedies.")}
    page = (TOP / "docs/remedies.md").read_text()
    described = {line.split("`")[1] for line in page.splitlines() if line.startswith("## `")}
    assert keys and keys == {f"remedies.{name}" for name in described}
    for name, limit in (("stray_process", 12), ("dead_sessions", 6), ("raylet", 12)):
        assert f"| `{name}` | {limit} |" in page, name


# ---- argusd ----

SSH = """#!/bin/sh
# The machine is this one. Looks and remedies are run, remedies not before `hold` is away; a probe finds nobody, so that
# no Ray is ever started here.
script=$(mktemp {home}/script.XXXXXX) && cat >"$script"
kind=$(grep -m 1 -o '^# [a-z_]*[.]sh' "$script")
echo "$kind" >>{home}/asked
case $kind in
"# raylet.sh") ;;
"# remedycall.sh") while [ -e {home}/hold ]; do sleep 0.1; done ;;
*) exit 255 ;;
esac
exec sh -s <"$script"
"""


class Mender(Argusd):
    """argusd with one machine, h2 of Ray's list, on which a stand-in for a raylet runs."""

    def __init__(self, home, ray, more):
        nodes = more.pop("nodes", "")
        remedies = f"remedies: {json.dumps(more)}" if more else ""
        super().__init__(home, ray.url, f"nodes: {{look_every: 1s{nodes}}}\n{remedies}")
        self.ray = ray
        self.temp = home / "sessions"
        (home / "bin").mkdir()
        (home / "bin/ssh").write_text(SSH.format(home=home))
        (home / "bin/ssh").chmod(0o755)
        self.env = {"PATH": f"{home / 'bin'}:{os.environ['PATH']}"}
        self.raylet = home / "bin/raylet"
        self.raylet.write_text("#!/bin/sh\necho up\nread -r nothing\n")
        self.raylet.chmod(0o755)

    def write_config(self):
        self.config.write_text(
            f"shared_root: {self.root}\nlisten: 127.0.0.1:{self.port}\nstate_dir: {self.state_dir}\n"
            f'ray: {{address: "{self.ray_url}", networks: [{self.networks}], temp_dir: {self.temp}}}\n'
            f"shepherd: {PROGRAMS['argus-shepherd']}\n{self.more}\n"
        )

    def database(self):
        return contextlib.closing(sqlite3.connect(self.state_dir / "argus.db"))

    def mark(self):
        with self.database() as db:
            ((self.instance,),) = db.execute("SELECT value FROM meta WHERE key = 'instance'").fetchall()
        return mark_of(self.instance, "h2")

    def add(self):
        assert self.call("POST", "/v1/nodes", {"name": "h2", "host": "h2.invalid", "labels": ["x"]}).status == 201

    @staticmethod
    def row(db):
        """As the store has h2."""
        ((body,),) = db.execute("SELECT body FROM entry WHERE kind = 'node' AND name = 'h2'").fetchall()
        return json.loads(body)

    @staticmethod
    def put_row(db, row):
        db.execute("UPDATE entry SET body = ? WHERE kind = 'node' AND name = 'h2'", (json.dumps(row),))

    def in_from_now(self, **ended):
        """argusd starts anew with h2 as its join leaves it, and with these jobs over for so many hours."""
        self.stop()
        (self.home / "asked").unlink(missing_ok=True)
        with self.database() as db, db:
            self.put_row(db, self.row(db) | {"state": "online", "step": "in", "may_run": True})
            for job, hours in ended.items():
                db.execute("UPDATE job SET ended_at = ended_at - ? WHERE id = ?", (hours * HOUR * 10**6, job))
        self.start()

    def asked(self, kind):
        at = self.home / "asked"
        return at.read_text().splitlines().count(f"# {kind}") if at.is_file() else 0

    def told(self, kind):
        return [e for e in self.events() if e["kind"] == kind and e.get("object") == "node/h2"]

    def node(self):
        return self.get("/v1/nodes/h2")

    def acts(self, **how):
        """The newest first."""
        return self.get("/v1/remedies", **how)["acts"]

    def remedy(self, name):
        (one,) = [r for r in self.get("/v1/remedies")["remedies"] if r["remedy"] == name]
        return one

    def argus(self, *words):
        env = {"ARGUS_URL": self.url, "ARGUS_TOKEN": self.tokens["viewer"], "HOME": str(self.home), "LANG": "C.UTF-8"}
        done = subprocess.run([PROGRAMS["argus"], *words], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done
        return done.stdout


@contextlib.contextmanager
def mender(home, **more):
    with FakeRay(state=home / "ray") as ray, Mender(home, ray, more) as a:
        a.add()
        mark = a.mark()
        try:
            argv = [a.raylet, f"--session_dir={a.temp / NEW}"]
            with process(argv=argv, ARGUS_MARK=mark, ARGUS_RAYLET="t") as raylet:
                a.raylet_process = raylet
                yield a, mark
        finally:
            shutil.rmtree(f"/tmp/argus-{os.getuid()}/{a.instance}", ignore_errors=True)


@needs_argusd
def test_what_a_job_left_is_ended_and_nothing_else(tmp_path):
    with mender(tmp_path) as (a, mark):
        over, fresh = a.submit("true"), a.submit("true")
        a.wait_over(over)
        a.wait_over(fresh)
        with (
            process(ARGUS_MARK=mark, ARGUS_JOB_ID=over) as stray,
            process(ARGUS_MARK=mark, ARGUS_JOB_ID=fresh) as just_over,
            process(ARGUS_MARK=mark, ARGUS_JOB_ID=over + "0") as of_nobody,
            process(ARGUS_JOB_ID=over) as without_mark,
        ):
            a.in_from_now(**{over: 1, fresh: -1})  # the other one is fresh, however slow this machine is
            until(lambda: not lives(stray), "it is ended")
            (done,) = until(lambda: a.told("node_remedied"), "it is told")
            (why,) = a.told("node_remedy")
            assert over in why["text"] and why["actor"] == "argusd" and over in done["text"], (why, done)
            assert why["seq"] < done["seq"]
            for p in (just_over, of_nobody, without_mark, a.raylet_process):
                assert lives(p), p.args
            assert a.node()["state"] == "online"
        a.restart()  # the book is in the row
        with a.database() as db:
            assert a.row(db)["remedies"].startswith("stray_process@")


@needs_argusd
def test_processes_of_a_job_that_runs_are_left_alone(tmp_path):
    with mender(tmp_path) as (a, mark):
        over = a.submit("true")
        a.wait_over(over)
        a.in_from_now(**{over: 1})
        os.mkfifo(tmp_path / "go")
        runs = a.submit(f"read -r x <{tmp_path}/go", n_gpus_per_node=1, pool="x")
        a.wait_state(runs, "RUNNING")
        with process(ARGUS_MARK=mark, ARGUS_JOB_ID=runs) as its, process(ARGUS_MARK=mark, ARGUS_JOB_ID=over) as stray:
            until(lambda: not lives(stray), "the other one is ended")
            until(lambda: a.told("node_remedied"), "it is told")
            assert lives(its)
        (tmp_path / "go").write_text("on\n")
        a.wait_over(runs)


@needs_argusd
def test_off_is_off(tmp_path):
    with mender(tmp_path, stray_process="off", raylet="off") as (a, mark):
        over = a.submit("true")
        a.wait_over(over)
        with process(ARGUS_MARK=mark, ARGUS_JOB_ID=over) as stray:
            a.in_from_now(**{over: 1})
            until(lambda: a.told("node_strays"), "it is seen")
            looks = a.asked("raylet.sh")
            until(lambda: a.asked("raylet.sh") >= looks + 3, "it is seen again and again")
            assert lives(stray) and not a.told("node_remedy") and not a.asked("remedycall.sh")
            assert a.acts() == [] and [a.remedy(r)["on"] for r in ("raylet", "dead_sessions")] == [False, True]
        a.raylet_process.kill()
        n = until(lambda: (n := a.node())["reason"]["code"] == "raylet_rests" and n, "its raylet is missed")
        assert n["state"] == "offline" and "remedies.raylet is off" in n["reason"]["text"], n
        assert not a.asked("probe.sh") and not a.told("node_remedy")
        assert a.call("POST", "/v1/nodes/h2:drain", {}).status == 202
        until(lambda: a.node()["want"] == "drained" and a.node()["state"] == "offline", "it is drained")
        assert a.call("POST", "/v1/nodes/h2:undrain", {}).status == 202
        until(lambda: a.asked("probe.sh"), "an operator starts it")


@needs_argusd
def test_a_raylet_that_dies_is_started_again_until_the_limit(tmp_path):
    with mender(tmp_path) as (a, _):
        a.in_from_now()
        until(lambda: a.asked("raylet.sh"), "it is looked at")
        a.raylet_process.kill()
        (why,) = until(lambda: a.told("node_remedy"), "it is told")
        assert "1 of at most 12" in why["text"], why
        until(lambda: a.asked("probe.sh"), "it is to be started")
        (act,) = a.acts()
        assert (act["remedy"], act["outcome"], act["found"]) == ("raylet", "under_way", None), act
        # As after the twelfth within the hour.
        a.stop()
        (tmp_path / "asked").unlink()
        with a.database() as db, db:
            row = a.row(db)
            row |= {"code": "raylet_died", "text": "{}", "remedies": " ".join([row["remedies"]] * 12)}
            row["may_run"] = False  # or a new argusd takes the h2 that the fake Ray lists for what it started
            a.put_row(db, row)
        a.start()
        n = until(lambda: (n := a.node())["reason"]["code"] == "raylet_rests" and n, "it rests")
        assert "12 times within an hour" in n["reason"]["text"], n
        assert not a.asked("probe.sh") and len(a.told("node_remedy")) == 1
        (act,) = a.acts()
        assert act["outcome"] == "failed", "its raylet rests"
        assert a.remedy("raylet")["nodes"] == [{"node": "h2", "acts": 12, "leave": "spent"}]
        # Whoever asks for a look gets one.
        assert a.call("POST", "/v1/nodes/h2:check", {}).status == 200
        assert a.asked("probe.sh") == 1


@needs_argusd
def test_a_full_disk_is_cleared_of_dead_sessions(tmp_path):
    with mender(tmp_path, nodes=", min_disk: 900TiB") as (a, _):
        dead = make_session(a.temp, OLD)
        foreign = make_session(a.temp, OLD + "2")
        living = make_session(a.temp, NEW)
        ours = pathlib.Path(f"/tmp/argus-{os.getuid()}/{a.instance}/h2")
        ours.mkdir(parents=True, mode=0o700)
        (ours / "sessions").write_text(f"{dead}\n")
        a.in_from_now()
        (done,) = until(lambda: a.told("node_remedied"), "it is told")
        assert "1 directory" in done["text"], done
        assert not dead.exists() and foreign.is_dir() and living.is_dir()
        # The session of the raylet that runs was written down by the look, for the day on which it is dead.
        assert (ours / "sessions").read_text().splitlines() == [str(dead), str(living)]
        looks = a.asked("raylet.sh")
        until(lambda: a.asked("raylet.sh") >= looks + 3, "it is still full")
        assert len(a.told("node_remedy")) == 1 and a.asked("remedycall.sh") == 1  # it rests


# ---- what it did, for people ----


def check_command(a):
    """What `argus ops remedies` says of the act on h2."""
    said = a.argus("ops", "remedies", "--node", "h2", "--from", "2d")
    for row in (["stray_process", "on", "12", "30s", "h2 1"], ["dead_sessions", "off", "remedies.dead_sessions"]):
        (line,) = [x for x in said.splitlines() if x.startswith(row[0])]
        assert all(word in line for word in row), said
    assert [x for x in said.splitlines() if "h2" in x and "done" in x and "stray_process" in x], said
    assert json.loads(a.argus("ops", "remedies", "-o", "json"))["acts"][0]["node"] == "h2"


@needs_argusd
def test_what_was_put_right_is_listed(tmp_path):
    with mender(tmp_path, dead_sessions="off") as (a, mark):
        assert a.call("POST", "/v1/users", {"name": "bob"}).status == 201
        a.tokens["bob"] = a.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
        over = a.submit("true")
        a.wait_over(over)
        with process(ARGUS_MARK=mark, ARGUS_JOB_ID=over):
            a.in_from_now(**{over: 1})
            (act,) = until(lambda: (v := a.acts()) and v[0]["outcome"] == "done" and v, "it is told what came of it")
        assert (act["remedy"], act["node"], act["why"]["code"]) == ("stray_process", "h2", "remedy_stray_process")
        assert over in act["why"]["text"] and over in act["found"]["text"] and act["at"] <= act["ended_at"], act
        page = a.get("/v1/remedies")
        assert [(r["remedy"], r["key"], r["on"], r["limit"], r["rest"]) for r in page["remedies"]] == [
            ("stray_process", "remedies.stray_process", True, 12, "30s"),
            ("dead_sessions", "remedies.dead_sessions", False, 6, "600s"),
            ("raylet", "remedies.raylet", True, 12, "0s"),
        ]
        (where,) = page["remedies"][0]["nodes"]
        assert (where["node"], where["acts"]) == ("h2", 1) and where["leave"] != "spent" and page["cut"] is False
        assert page["remedies"][2]["nodes"] == []

        (hidden,) = a.acts(token="bob")
        assert hidden["outcome"] == "done" and over not in json.dumps(hidden), "bob does not see that job"
        other = a.get("/v1/remedies?node=h9")
        assert other["acts"] == [] and [r["nodes"] for r in other["remedies"]] == [[], [], []]
        assert a.call("GET", "/v1/remedies?from=5").status == 400, "a span has a unit"
        check_command(a)


@contextlib.contextmanager
def held_remedies(home):
    """No remedy acts meanwhile. Those that wait for it go on afterwards, whatever becomes of the test."""
    hold = home / "hold"
    hold.write_text("")
    try:
        yield
    finally:
        hold.unlink()


@needs_argusd
def test_an_act_that_a_restart_cut_off_is_broken_off(tmp_path):
    with mender(tmp_path) as (a, mark):
        over = a.submit("true")
        a.wait_over(over)
        with process(ARGUS_MARK=mark, ARGUS_JOB_ID=over) as stray, held_remedies(tmp_path):
            a.in_from_now(**{over: 1})
            until(lambda: a.asked("remedycall.sh"), "it has begun")
            (act,) = a.acts()
            assert (act["outcome"], act["ended_at"], act["found"]) == ("under_way", None, None), act
            a.restart()
            assert a.acts()[-1]["outcome"] == "broken_off" and lives(stray)


@needs_argusd
def test_the_start_of_a_raylet_is_done_once_ray_lists_it(tmp_path):
    with mender(tmp_path) as (a, _):
        a.in_from_now()
        until(lambda: a.asked("raylet.sh"), "it is looked at")
        a.raylet_process.kill()
        until(lambda: a.told("node_remedy"), "it is to be started again")
        a.restart()  # a new one does not know that the h2 which the fake Ray lists is the raylet that died
        act = until(lambda: next((x for x in a.acts() if x["ended_at"]), None), "it is in")
        assert (act["remedy"], act["outcome"], act["found"]["code"]) == ("raylet", "done", "node_online"), act
