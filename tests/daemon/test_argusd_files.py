# SPDX-License-Identifier: Apache-2.0
"""What argusd leaves on disks, and what it does when these are away, read-only or full; its configuration."""

import contextlib
import json
import os
import re
import sqlite3
import stat
import subprocess

import pytest
import yaml
from fakeray import FakeRay
from hangs import hanging
from preload import needs_compiler

from argusd import PROGRAMS, Argusd, needs_argusd, until

pytestmark = needs_argusd

LINKS = {
    "config/argv.json": "attempts/{k}/argv.json",
    "config/env.json": "attempts/{k}/env.json",
    "config/submit_payload.json": "attempts/{k}/submit_payload.json",
    "logs/driver.log": "attempts/{k}/logs/driver.log",
    "debug/ray_status_pre.txt": "attempts/{k}/debug/ray_status_pre.txt",
    "debug/ray_job_list_post.txt": "attempts/{k}/debug/ray_job_list_post.txt",
}
FILES = {
    "meta.json", "config/ray_config.yaml", "config/jobspec.yaml", "config/submit_cmd.txt", "logs/submit.out",
}  # fmt: skip
OF_ATTEMPT = {
    "launch.json", "submit_payload.json", "argv.json", "env.json", "run.sh", "beat", "exit.json", "logs/driver.log",
    "debug/ray_status_pre.txt", "debug/ray_job_list_post.txt",
}  # fmt: skip


@pytest.fixture
def ray():
    with FakeRay() as made:
        yield made


@pytest.fixture
def argusd(tmp_path, ray):
    with Argusd(tmp_path, ray.url) as made:
        made.ray = ray
        yield made


def meta(argusd, job):
    path = argusd.job_dir(job) / "meta.json"
    return json.loads(path.read_text()) if path.exists() else {}


def wait_meta(argusd, job, state):
    return until(lambda: (m := meta(argusd, job)).get("state") == state and m, f"meta.json says {state}")


def tree(top):
    return {str(p.relative_to(top)) for p in top.rglob("*") if p.is_symlink() or not p.is_dir()}


def error_of(*argv, **more):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=120, **more)
    return done.returncode, done.stderr


def owed(argusd):
    """Rows of files that are still to be written."""
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db:
        return db.execute("SELECT name FROM entry WHERE kind = 'meta_owed'").fetchall()


# ---- a job's directory ----


def test_a_kill_before_the_last_meta_is_written(argusd):
    """Between the commit of the end and that file: the row of what is owed is there at the start, the file is old."""
    job = argusd.submit("echo hello")
    argusd.wait_over(job)
    wait_meta(argusd, job, "SUCCEEDED")
    until(lambda: not owed(argusd), "nothing is owed")
    argusd.kill9()
    path = argusd.job_dir(job) / "meta.json"
    whole = path.read_text()
    path.write_text(whole.replace("SUCCEEDED", "RUNNING"))
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db, db:
        db.executemany("INSERT INTO entry VALUES('meta_owed', ?, '{}', 1)", [(job,), ("long-gone",)])
    argusd.start()
    assert wait_meta(argusd, job, "SUCCEEDED") == json.loads(whole)
    until(lambda: not owed(argusd), "nothing is owed")


def test_the_last_meta_waits_for_its_directory(argusd):
    """One that is not there may be on a root that is not mounted: what is owed stays owed."""
    job = argusd.submit("echo hello")
    argusd.wait_over(job)
    wait_meta(argusd, job, "SUCCEEDED")
    until(lambda: not owed(argusd), "nothing is owed")
    argusd.kill9()
    top = argusd.job_dir(job)
    away = top.rename(argusd.home / "away")
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db, db:
        db.executemany("INSERT INTO entry VALUES('meta_owed', ?, '{}', 1)", [(job,), ("long-gone",)])
    argusd.start()
    until(lambda: ("long-gone",) not in owed(argusd), "what is owed was looked at")
    argusd.wait_over(argusd.submit("echo another"))
    assert (job,) in owed(argusd)
    (away / "meta.json").unlink()
    away.rename(top)
    wait_meta(argusd, job, "SUCCEEDED")
    until(lambda: not owed(argusd), "nothing is owed")


def test_job_directory(argusd):
    text = "# my run\nworkload: ray\nentrypoint: 'echo hello; echo there >&2'\n"
    text += "env: {PLAIN: a b, MY_TOKEN: hidden-one}\n"
    reply = argusd.post(text, token="user")
    job = reply.json()["id"]
    argusd.wait_over(job)
    top = argusd.job_dir(job)
    wait_meta(argusd, job, "SUCCEEDED")
    until(lambda: (top / "attempts/1/debug/ray_job_list_post.txt").exists(), "the last file")
    attempt = {f"attempts/1/{f}" for f in OF_ATTEMPT}
    beside = {"attempts/1/logs/driver.log.times"}  # of output that took its time
    assert tree(top) - beside == FILES | attempt | set(LINKS)
    for link, target in LINKS.items():
        assert (top / link).is_symlink(), link
        assert (top / link).resolve() == (top / target.format(k=1)).resolve()
        assert (top / link).exists()
    for folder in ("checkpoints", "attempts/1/proof", "attempts/1/scene"):
        assert (top / folder).is_dir(), folder
    assert (top / "logs/driver.log").read_text() == "hello\nthere\n"
    assert json.loads((top / "config/argv.json").read_text())[-1] == "echo hello; echo there >&2"
    assert json.loads((top / "config/env.json").read_text())["PLAIN"] == "a b"
    spec = (top / "config/jobspec.yaml").read_text()
    assert spec.startswith("# my run\nworkload: ray\n")
    assert yaml.safe_load(spec)["env"]["PLAIN"] == "a b"
    assert "hidden-one" not in spec
    assert (top / "config/ray_config.yaml").read_text() == argusd.config.read_text()
    payload = json.loads((top / "config/submit_payload.json").read_text())
    assert payload["submission_id"] == job
    assert payload["entrypoint_resources"]["worker_node"] == 1
    line = (top / "config/submit_cmd.txt").read_text()
    assert line.startswith("ray job submit ")
    assert f"--submission-id {job}" in line or f"--submission-id={job}" in line
    assert job in (top / "logs/submit.out").read_text()
    exit_file = json.loads((top / "attempts/1/exit.json").read_text())
    assert (exit_file["cause"], exit_file["code"]) == ("exit", 0)
    strangers = [p for p in top.rglob("*") if stat.S_IMODE(p.lstat().st_mode) & 0o002 and not p.is_symlink()]
    assert not [p for p in strangers if p.is_file()]


def test_a_job_is_told_how_many_gpus_it_has_on_each_node(argusd):
    """The driver's beside those of each node: a scout knows by them whether it has seen all (gpuheld.c)."""
    job = argusd.submit("echo x", nnodes=2, n_gpus_per_node=2, entrypoint_num_gpus=1)
    argusd.wait_over(job)
    payload = json.loads((argusd.job_dir(job) / "config/submit_payload.json").read_text())
    lease = json.loads(payload["runtime_env"]["env_vars"]["ARGUS_LEASE"])
    assert payload["entrypoint_num_gpus"] == 1 and len(lease["nodes"]) == 2
    assert (lease["gpus"], lease["driver_gpus"]) == (2, 1)


def test_links_follow_the_newest_attempt(argusd):
    argusd.ray.add_job(submission_id="taken", status="RUNNING")
    job = argusd.submit("echo second", submission_id="taken")
    assert argusd.wait_over(job)["attempt"] == 2
    top = argusd.job_dir(job)
    wait_meta(argusd, job, "SUCCEEDED")
    until(lambda: (top / "attempts/2/debug/ray_job_list_post.txt").exists(), "the last file")
    for link, target in LINKS.items():
        assert (top / link).resolve() == (top / target.format(k=2)).resolve(), link
    assert (top / "logs/driver.log").read_text() == "second\n"


def test_meta_follows_the_states(argusd):
    go = argusd.home / "go"
    argusd.ray.settings(hold_pending=True)
    job = argusd.submit(f"while [ ! -e {go} ]; do timeout 0.1 tail -f /dev/null; done; exit 5", name="n", project="p")
    first = wait_meta(argusd, job, "STARTING")
    assert (first["id"], first["user"], first["project"], first["workload"]) == (job, "alice", "p", "ray")
    argusd.ray.settings(hold_pending=False)
    second = wait_meta(argusd, job, "RUNNING")
    assert second["started_at"]
    assert second["nodes"]
    argusd.kill9()
    argusd.start()
    go.touch()
    last = wait_meta(argusd, job, "FAILED")
    assert last["exit"]["code"] == 5
    assert last["ended_at"]
    assert last["finding"]
    left = lambda: [p for p in argusd.job_dir(job).iterdir() if p.name.startswith(".") or p.name.endswith("~")]  # noqa: E731
    until(lambda: not left(), "nothing half written is left")


def test_programs_on_the_shared_root(argusd):
    argusd.submit("echo x")
    root = argusd.root
    until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "the root is made ready")
    assert (root / "argus/hook/sitecustomize.py").exists()
    shepherd = root / f"argus/bin/{os.uname().machine}/argus-shepherd"
    assert shepherd.read_bytes() == PROGRAMS["argus-shepherd"].read_bytes()
    assert os.access(shepherd, os.X_OK)
    for folder in ("common/datasets", "common/models", "common/code", "users", "hf", "jobs"):
        assert (root / folder).is_dir()
    argusd.stop()
    shepherd.unlink()  # a scout may still run it
    shepherd.write_bytes(b"old")
    argusd.start()
    until(lambda: shepherd.read_bytes() == PROGRAMS["argus-shepherd"].read_bytes(), "it is replaced")


# ---- disks in trouble ----


@pytest.fixture
def disk(tmp_path):
    """A small file system of its own: full() and heal(), read_only()."""

    class Disk:
        path = tmp_path / "disk"

        def mount(self, *options):
            return subprocess.run(["mount", *options, self.path], capture_output=True, text=True)

        def full(self):
            with open(self.path / "filler", "ab", buffering=0) as f:
                for size in (1 << 20, 4096, 512, 1):
                    try:
                        while True:
                            f.write(bytes(size))
                    except OSError:
                        pass

        def heal(self):
            (self.path / "filler").unlink()

    made = Disk()
    made.path.mkdir()
    mounted = made.mount("-t", "tmpfs", "-o", "size=48m", "argus-test")
    if mounted.returncode:
        pytest.skip(f"cannot mount a small tmpfs: {mounted.stderr.strip()}")
    yield made
    subprocess.run(["umount", "-l", made.path], check=True)


def refused(argusd, words):
    """A submit is refused with a sentence that has these words."""

    until(lambda: re.search(words, argusd.get("/readyz")["reason"] or ""), f"the reason says '{words}'")
    reply = argusd.post(Argusd.spec("echo x"))
    problem = reply.json()
    assert (reply.status, problem["code"]) == (503, "shared_root_unavailable")
    assert re.search(words, problem["detail"]), problem
    assert argusd.call("GET", "/healthz").status == 200
    assert argusd.get("/v1/jobs")["jobs"] is not None
    return problem


def heals(argusd):
    until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "the shared root is well again")
    assert argusd.wait_over(argusd.submit("echo x"))["state"] == "SUCCEEDED"


def test_missing_root_at_start(tmp_path, ray):
    with Argusd(tmp_path, ray.url) as argusd:
        argusd.stop()
        argusd.root.rename(tmp_path / "away")
        argusd.start()
        refused(argusd, "does not exist: mount it, or correct 'shared_root'")
        (tmp_path / "away").rename(argusd.root)
        heals(argusd)


@needs_compiler
def test_a_request_before_the_first_look_at_the_root_is_asked_again(tmp_path, ray):
    """It is told so, and the command line waits; before, it was told that the root is checked, and gave up."""
    argusd = Argusd(tmp_path, ray.url, shared_root=tmp_path / "hung/shared")
    argusd.env = hanging(tmp_path)
    with argusd:
        early = argusd.ask("GET", "/v1/files?path=common", None, argusd.tokens["user"], {})
        assert (early.status, early.json()["code"]) == (503, "shared_root_not_seen"), early
        assert (early.json()["type"], early.headers["Retry-After"]) == ("urn:argus:problem:not_yet", "1")
        env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"]}
        argv = [PROGRAMS["argus"], "files", "ls", "common"]
        with subprocess.Popen(argv, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asks:
            told = asks.stderr.readline()
            (tmp_path / "free").touch()
            out, err = asks.communicate(timeout=240)
        assert "has not looked at the shared root yet" in told and (asks.returncode, err) == (0, ""), (out, err)
        assert argusd.call("GET", "/v1/files?path=common", token="user").status == 200


def test_root_that_goes_away(argusd):
    """Jobs that wait are not lost, and start when it is back."""
    waits = argusd.submit("echo x", nnodes=3, n_gpus_per_node=4)

    def taken_unseen():
        """A job that was taken when the root was away already; not if argusd looked at it in between."""
        until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "the root was looked at")
        argusd.root.rename(argusd.home / "away")
        reply = argusd.post(Argusd.spec("echo x"), token="user")
        if reply.status == 201:
            return reply.json()["id"]
        (argusd.home / "away").rename(argusd.root)
        return None

    taken = until(taken_unseen, "a job is taken before anybody sees it")
    refused(argusd, "does not exist")
    assert not argusd.root.exists()  # nobody made it anew in the wrong place
    argusd.wait_job(waits, lambda v: v["reason"]["code"] == "shared_root_unavailable", "says why it waits")
    res = {"CPU": 40, "GPU": 4, "worker_node": 100, "argus_node_h4": 1000}
    argusd.ray.ask("POST", "nodes", {"name": "h4", "ip": "10.99.0.4", "resources": res})
    (argusd.home / "away").rename(argusd.root)
    assert [argusd.wait_over(j)["state"] for j in (waits, taken)] == ["SUCCEEDED"] * 2
    heals(argusd)


def test_root_that_is_unmounted(tmp_path, ray, disk):
    """An empty mount point is no shared root: nothing is written there."""
    with Argusd(tmp_path, ray.url, shared_root=disk.path) as argusd:
        heals(argusd)
        subprocess.run(["umount", "-l", disk.path], check=True)
        refused(argusd, "was prepared and is empty now: mount it")
        assert not (disk.path / "jobs").exists()
        assert disk.mount("-t", "tmpfs", "-o", "size=48m", "argus-test").returncode == 0
        argusd.restart()
        heals(argusd)


def test_full_root(tmp_path, ray, disk):
    with Argusd(tmp_path, ray.url, shared_root=disk.path) as argusd:
        heals(argusd)
        disk.full()
        argusd.restart()
        refused(argusd, "is full .*: free some space")
        disk.heal()
        heals(argusd)


def test_read_only_root(tmp_path, ray, disk):
    with Argusd(tmp_path, ray.url, shared_root=disk.path) as argusd:
        heals(argusd)
        argusd.stop()
        assert disk.mount("-o", "remount,ro").returncode == 0
        argusd.start()
        refused(argusd, "cannot be written by user .*: change its owner or its mount options")
        assert disk.mount("-o", "remount,rw").returncode == 0
        heals(argusd)


def test_full_state_dir(tmp_path, ray, disk):
    """Writers are told, readers go on, what was acknowledged stays, and it heals by itself."""
    ray.listen(False)  # nothing but the clients writes
    with Argusd(tmp_path, ray.url, state_dir=disk.path / "state") as argusd:
        taken = [argusd.submit("echo x") for _ in range(5)]
        disk.full()

        def refusal():
            reply = argusd.post(Argusd.spec("echo x " + "y" * 20000))
            if reply.status == 201:
                taken.append(reply.json()["id"])
            return reply if reply.status == 503 else None

        told = until(refusal, "a writer is told").json()
        assert told["type"] == "urn:argus:problem:store_failed"
        assert argusd.call("GET", "/readyz").status == 503
        assert argusd.call("GET", "/healthz").status == 200
        assert {j["id"] for j in argusd.all_jobs()} >= set(taken[:5])
        assert argusd.job(taken[0])["state"] == "QUEUED"
        disk.heal()
        until(lambda: argusd.call("GET", "/readyz").status == 200, "the store writes again")
        taken.append(argusd.submit("echo x"))
        argusd.kill9()
        argusd.start()
        assert {j["id"] for j in argusd.all_jobs()} >= set(taken)


# ---- configuration and start ----

GOOD = "shared_root: {root}\nlisten: 127.0.0.1:0\nstate_dir: {state}\n"


@pytest.mark.parametrize("more, line, words", [
    ("shared_rot: /x\n", 4, "shared_root"),
    ("limits: {live_jobs: none}\n", 4, "live_jobs"),
    ("ray:\n  auth: tokn\n", 5, "none.*token|token.*none"),
    ("ray: {addressx: http://x:1}\n", 4, "address"),
    ("ray: {address: 10.0.0.1:6379}\n", 4, "http://HOST:8265"),
    ("policy: fare\n", 4, "fair"),
    ("policy: [fair\nprefix: x\n", "[4-6]", "brackets"),
])  # fmt: skip
def test_mistakes_in_the_configuration(tmp_path, more, line, words):
    config = tmp_path / "argus.yaml"
    config.write_text(GOOD.format(root=tmp_path, state=tmp_path / "state") + more)
    for argv in ([PROGRAMS["argusd"], "--config", config], [PROGRAMS["argusd"], "--check", "--config", config]):
        code, said = error_of(*argv)
        assert code == 2
        errors = [x for x in said.splitlines() if "error:" in x]
        assert len(errors) == 1, said
        assert re.match(rf"{re.escape(str(config))}:{line}:\d+: error: ", errors[0]), said
        assert re.search(words, errors[0]), said
    assert not (tmp_path / "state").exists()


def test_all_mistakes_at_once(tmp_path):
    config = tmp_path / "argus.yaml"
    config.write_text("listen: nowhere\nstate_dir: here\npolcy: fair\nlimits: {live_jobs: 0}\n")
    code, said = error_of(PROGRAMS["argusd"], "--check", "--config", config)
    assert code == 2
    for words in ("'shared_root' is missing", ":1:.*HOST:PORT", ":2:.*not absolute", ":3:1: .*polcy", ":4:.*live_jobs"):
        assert re.search(words, said), (words, said)


def test_check(tmp_path):
    config = tmp_path / "argus.yaml"
    config.write_text(GOOD.format(root=tmp_path, state=tmp_path / "state"))
    assert error_of(PROGRAMS["argusd"], "--check", "--config", config) == (0, "")
    config.write_text(GOOD.format(root=tmp_path, state=tmp_path / "state").replace("127.0.0.1", "0.0.0.0"))
    code, said = error_of(PROGRAMS["argusd"], "--check", "--config", config)
    assert code == 0
    assert "warning" in said
    code, said = error_of(PROGRAMS["argusd"], "--check", "--config", tmp_path / "none.yaml")
    assert code == 2
    assert "none.yaml" in said
    assert "argusd init" in said


@pytest.mark.parametrize("name", ["argus.yaml", "a/b/argus.yaml", "./argus.yaml"])
def test_init_at_a_path_that_is_not_absolute(tmp_path, name):
    argv = [PROGRAMS["argusd"], "init", "--config", name, "--shared-root", tmp_path / "shared"]
    (tmp_path / "shared").mkdir()
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and len(done.stdout.split()) == 1, done
    wanted = yaml.safe_load((tmp_path / name).read_text())
    assert wanted["state_dir"] == str((tmp_path / name).resolve().parent / "state")
    assert error_of(PROGRAMS["argusd"], "--check", "--config", tmp_path / name) == (0, "")


@pytest.mark.parametrize("more", ["ssh: {identity_file: KEY}\n", "ray: {head: {ssh: {identity_file: KEY}}}\n"])
def test_check_looks_at_the_key(tmp_path, more):
    config, key = tmp_path / "argus.yaml", tmp_path / "key"
    config.write_text(GOOD.format(root=tmp_path, state=tmp_path / "state") + more.replace("KEY", str(key)))
    argv = (PROGRAMS["argusd"], "--check", "--config", config)
    code, said = error_of(*argv)
    assert code == 0 and re.search(r":4:\d+: warning: .*identity_file", said)
    assert f"'{key}' cannot be read: No such file" in said
    key.touch(0o644)
    code, said = error_of(*argv)
    assert code == 0 and "others than its owner may read it" in said and "chmod 600" in said
    key.chmod(0o600)
    assert error_of(*argv) == (0, "")


def test_one_argusd_per_state_dir(argusd):
    other = argusd.home / "other.yaml"
    other.write_text(argusd.config.read_text().replace(str(argusd.port), "0"))
    for argv in (["--config", other], ["init", "--config", other, "--user", "eve", "--role", "admin"]):
        code, said = error_of(PROGRAMS["argusd"], *argv)
        assert code == 1, said
        assert len(said.splitlines()) == 1, said
        assert str(argusd.state_dir) in said
    assert argusd.get("/v1/whoami")["role"] == "admin"
    assert argusd.wait_over(argusd.submit("echo x"))["state"] == "SUCCEEDED"


def test_port_that_is_taken(argusd):
    other = argusd.home / "other.yaml"
    text = argusd.config.read_text().replace(str(argusd.state_dir), str(argusd.home / "other-state"))
    other.write_text(text)
    code, said = error_of(PROGRAMS["argusd"], "--config", other)
    assert code == 1
    last = said.splitlines()[-1]
    assert last.startswith("argusd: "), said
    assert str(argusd.port) in last


def test_store_that_is_none(argusd):
    argusd.stop()
    store = argusd.state_dir / "argus.db"
    good = store.read_bytes()
    store.write_bytes(b"this is no database\n" * 400)
    code, said = error_of(PROGRAMS["argusd"], "--config", argusd.config)
    assert code == 1
    assert str(store) in said.splitlines()[-1]
    store.write_bytes(good)
    for side in ("-wal", "-shm"):
        side_file = store.with_name(store.name + side)
        if side_file.exists():
            side_file.unlink()
    argusd.start()


def test_token_is_shown_once_and_kept_as_hash(argusd):
    tokens = list(argusd.tokens.values())
    assert len(set(tokens)) == 3
    assert all(re.fullmatch(r"argus_[A-Za-z0-9_-]{43}", t) for t in tokens)
    argusd.stop()
    for path in (*argusd.state_dir.rglob("*"), argusd.log, argusd.config):
        data = path.read_bytes() if path.is_file() else b""
        assert not [t for t in tokens if t.encode() in data or t[6:].encode() in data], path
    assert stat.S_IMODE(argusd.state_dir.stat().st_mode) == 0o700
    argusd.start()
