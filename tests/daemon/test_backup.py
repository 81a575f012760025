# SPDX-License-Identifier: Apache-2.0
"""Backups of the store: made by themselves and on demand, sealed, read again; and the way back by `argusd restore`, on
the same machine, on one without any state, and from a directory in which somebody has meddled."""

import os
import pathlib
import shutil
import subprocess

import pytest
from fakeray import FakeRay
from programs import PROGRAMS
from soppage import SopPage

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd


@pytest.fixture
def argusd(tmp_path):
    with FakeRay() as ray, Argusd(tmp_path, ray.url, "backup: {every: 0}") as made:
        yield made


def backups(argusd):
    return argusd.get("/v1/backups", token="admin")["backups"]


def make(argusd):
    """One more; its name."""
    before = {b["name"] for b in backups(argusd)}

    def begun():
        return argusd.call("POST", "/v1/backups", token="admin").status == 202

    until(begun, "a backup is begun")
    return until(lambda: [b["name"] for b in backups(argusd) if b["name"] not in before], "there is one more")[0]


def place(argusd):
    return argusd.root / "argus/backup"


def restore(argusd, *args, code=0):
    argv = [PROGRAMS["argusd"], "restore", "--config", argusd.config, *args]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240)
    assert done.returncode == code, done
    return done.stdout + done.stderr


def stopped(argusd):
    """argusd ends as at a shutdown of the machine."""
    process, argusd.process = argusd.process, None
    process.terminate()
    assert process.wait(240) == 0


def ids(argusd):
    return {j["id"] for j in argusd.get("/v1/jobs?all=1", token="admin")["jobs"]}


def test_a_backup_and_the_way_back(argusd):
    assert argusd.call("PUT", "/v1/secrets/KEY", {"value": "canary-4711"}, token="user").status in (200, 201)
    first = argusd.submit("echo first")
    argusd.wait_over(first)
    name = make(argusd)
    (told,) = [e for e in argusd.events() if e["kind"] == "backup_made"]
    assert told["actor"] == "admin" and name in told["reason"]["text"] and "1 job, " in told["reason"]["text"]
    later = argusd.submit("echo later")
    argusd.wait_over(later)
    assert "canary" not in str((place(argusd) / name).read_bytes())
    assert (place(argusd) / name).stat().st_mode & 0o777 == 0o600
    refused = restore(argusd, code=1)
    assert "is in use" in refused or "argusd" in refused  # it runs
    assert ids(argusd) == {first, later}
    stopped(argusd)
    said = restore(argusd)
    assert f"{name} is in place: 1 jobs" in said
    argusd.start()
    assert ids(argusd) == {first} and argusd.job(first)["state"] == "SUCCEEDED"
    assert argusd.get("/v1/events:verify", token="admin")["ok"]
    # The secret opens still, the tokens are those of the backup, and the store of before is put aside.
    job = argusd.submit({**argusd.spec("test ${#KEY} = 11"), "secrets": ["KEY"]})
    assert argusd.wait_over(job)["state"] == "SUCCEEDED"
    (aside,) = argusd.state_dir.glob("before-restore-*")
    assert (aside / "argus.db").exists() and (aside / "secrets.key").exists()


def test_what_was_submitted_after_the_backup(tmp_path):
    """It runs on and is listed as somebody else's, so it can be adopted; nothing of it is ended."""
    with FakeRay() as ray, Argusd(tmp_path, ray.url, "backup: {every: 0}") as argusd:
        make(argusd)
        job = argusd.submit("sleep 600")
        argusd.wait_state(job, "RUNNING")
        ray_id = argusd.job(job)["attempts"][0]["ray_id"]
        foreign = "/v1/clusters/default/foreign"
        assert argusd.get(foreign, token="admin")["foreign"] == []
        stopped(argusd)
        restore(argusd)
        argusd.start()
        (row,) = until(lambda: argusd.get(foreign, token="admin")["foreign"], "it is listed")
        assert (row["ray_id"], row["state"], row["is_adopted"]) == (ray_id, "RUNNING", False)
        adopted = argusd.call("POST", f"{foreign}/{ray_id}:adopt", {"project": "default"}, token="admin")
        assert adopted.status in (200, 201) and adopted.json()["is_adopted"], adopted
        until(lambda: argusd.get("/readyz")["ray"] == "ok", "argusd has seen Ray's list")
        assert ray.wait_status(ray_id, "RUNNING")
        assert not [r for r in ray.requests() if r["method"] != "GET" and r["path"].endswith("/stop")]


def test_a_machine_without_any_state(argusd, tmp_path):
    job = argusd.submit("true")
    argusd.wait_over(job)
    name = make(argusd)
    stopped(argusd)
    shutil.copy(argusd.state_dir / "backup.key", tmp_path / "kept.key")
    shutil.rmtree(argusd.state_dir)
    said = restore(argusd, code=1)
    assert "backup.key' is not there: name a copy of backup.key with --key" in said
    assert name in restore(argusd, "--list") and not (argusd.state_dir / "argus.db").exists()
    said = restore(argusd, "--key", str(tmp_path / "kept.key"), "--from", name)
    assert "is in place" in said
    argusd.start()
    assert ids(argusd) == {job}
    assert (argusd.state_dir / "backup.key").read_text() == (tmp_path / "kept.key").read_text()


def test_what_somebody_has_meddled_with(argusd):
    """Jobs can write there: what does not open is told and passed over, and nothing but the seal is believed."""
    job = argusd.submit("true")
    argusd.wait_over(job)
    name = make(argusd)
    good = (place(argusd) / name).read_bytes()
    for stamp, data in {
        "20990101T000000Z": b"x" * 1000,
        "20990101T000001Z": good,  # another name: its seal is for the first
        "20990101T000002Z": good[:-1],
        "20990101T000003Z": good[:200] + bytes([good[200] ^ 1]) + good[201:],
    }.items():
        (place(argusd) / f"argus-{stamp}.backup").write_bytes(data)
    os.symlink(argusd.state_dir / "backup.key", place(argusd) / "argus-20990101T000004Z.backup")
    (place(argusd) / "argus-20990101T000005Z.backup").mkdir()
    stopped(argusd)
    said = restore(argusd)
    assert said.count("was sealed with another key, or it was changed or cut") == 4, said
    assert f"{name} is in place" in said
    said = restore(argusd, "--from", "argus-20990101T000004Z.backup", code=1)
    assert "cannot be used" in said
    assert "is not a valid backup name" in restore(argusd, "--from", "../../state/argus.db", code=1)
    argusd.start()
    assert ids(argusd) == {job}


def test_by_themselves_and_so_many(tmp_path):
    kept = tmp_path / "elsewhere"
    kept.mkdir()
    with FakeRay() as ray, Argusd(tmp_path, ray.url, f"backup: {{every: 1s, keep: 2, dir: {kept}}}") as argusd:
        seen = set()

        def four():
            seen.update(b["name"] for b in backups(argusd))
            return len(seen) >= 4

        until(four, "backups are made by themselves")
        assert len(list(kept.iterdir())) <= 3  # two, and one that is being made
        assert not list(place(argusd).iterdir())
        argusd.kill9()
        argusd.start()
        before = len(seen)
        until(lambda: four() and len(seen) > before, "and after a kill, too")


def test_there_is_no_place(tmp_path):
    """It is told once, and by an alert for as long as it lasts; then it goes on."""
    kept = tmp_path / "elsewhere"
    rules = "alerts: {every: 1s, rules: {backup_overdue: {when: backup_overdue >= 1s, clear: backup_overdue < 1s}}}"
    config = f"backup: {{every: 1s, dir: {kept}}}\n{rules}"
    with FakeRay() as ray, Argusd(tmp_path, ray.url, config) as argusd:

        def alerts():
            return [a for a in argusd.get("/v1/alerts?state=open")["alerts"] if a["rule"] == "backup_overdue"]

        until(lambda: alerts(), "the alert fires")
        assert len([e for e in argusd.events() if e["kind"] == "backup_failed"]) == 1
        assert argusd.call("POST", "/v1/backups", token="user").status == 403
        kept.mkdir()
        until(lambda: argusd.call("POST", "/v1/backups", token="admin").status == 202, "one is begun")
        until(lambda: list(kept.glob("argus-*.backup")), "it is made")
        until(lambda: not alerts(), "the alert ends")


def test_the_commands(argusd):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["admin"], "LANG": "C.UTF-8"}

    def argus(*args):
        done = subprocess.run([PROGRAMS["argus"], *args], env=env, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done
        return done.stdout

    first = make(argusd)
    assert "backup in ${SHARED_ROOT}/argus/backup begun" in argus("backup", "now")
    until(lambda: backups(argusd)[0]["name"] != first, "it is made")
    assert backups(argusd)[0]["name"] in argus("backup", "ls")
    assert pathlib.Path(place(argusd), backups(argusd)[0]["name"]).stat().st_size == backups(argusd)[0]["bytes"]


def test_the_operators_page(argusd):
    """docs/sop/backup-restore.md, block by block, as it stands there."""
    values = {"CONFIG": argusd.config, "STATE": argusd.state_dir, "KEPT": argusd.home / "kept.key"}
    page = SopPage("backup-restore", argusd, **{name: str(path) for name, path in values.items()})
    job = argusd.submit("true")
    argusd.wait_over(job)
    page.paste("key")
    first = make(argusd)
    assert first in page.paste("list")
    assert "begun" in page.paste("now")
    second = until(lambda: [b["name"] for b in backups(argusd) if b["name"] != first], "it is made")[0]
    stopped(argusd)
    assert first in (said := page.paste("look")) and second in said
    shutil.rmtree(argusd.state_dir)
    assert f"{second} is in place: 1 jobs" in page.paste("restore")
    argusd.start()
    assert job in page.paste("after") and page.left == set()
