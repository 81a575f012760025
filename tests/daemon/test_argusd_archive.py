# SPDX-License-Identifier: Apache-2.0
"""The directory of a finished job becomes one archive and comes back byte for byte: by the API and by the command line,
with argusd killed at each step, and not while somebody needs the files."""

import hashlib
import json
import os
import stat
import subprocess

import pytest
from checkpoints import put_checkpoint
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

MANY = 1500  # files: a step takes long enough to be met


def fill(top, files):
    """One of everything that an archive has to keep."""
    deep = top / "made" / "deep"
    deep.mkdir(parents=True)
    for i in range(files):
        (deep / f"f{i}").write_bytes(b"%d\n" % i * 40)
    with open(top / "made" / "hole", "wb") as f:
        f.truncate(4 << 20)
        f.seek(2 << 20)
        f.write(b"x")
    with open(os.fsencode(top) + b"/made/odd\n\xff", "w") as f:
        f.write("odd")
    os.link(deep / "f0", top / "made" / "same")
    os.symlink("/etc/passwd", top / "made" / "out")
    os.chmod(deep / "f1", 0o600)
    os.utime(deep / "f1", ns=(10**18, 10**18 + 123456000))


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("archive"), ray.url) as a:
        yield a


def tree_of(top):
    """Everything that an archive has to keep, by path."""
    found, inodes = {}, {}
    for here, dirs, files in os.walk(os.fsencode(top)):
        for name in [b"."] + files + [d for d in dirs if os.path.islink(os.path.join(here, d))]:
            path = os.path.join(here, name)
            st = os.lstat(path)
            row = [stat.filemode(st.st_mode), st.st_mtime_ns]
            if stat.S_ISLNK(st.st_mode):
                row.append(os.readlink(path))
            elif stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    row += [st.st_size, hashlib.sha256(f.read()).hexdigest(), inodes.setdefault(st.st_ino, path)]
            found[os.path.relpath(path, os.fsencode(top))] = row
    return {k: [x if not isinstance(x, bytes) else x[len(os.fsencode(top)) :] for x in v] for k, v in found.items()}


def finished(a, files=20):
    job = a.submit("echo made")
    assert a.wait_over(job)["state"] == "SUCCEEDED"
    until(lambda: settled(a, job), f"{job} is written down")
    fill(a.job_dir(job), files)
    return job


def settled(a, job):
    """The last file is the one of Ray's list; meta.json comes before it."""
    meta = a.job_dir(job) / "meta.json"
    last = a.job_dir(job) / "attempts/1/debug/ray_job_list_post.txt"
    return json.loads(meta.read_text())["state"] == "SUCCEEDED" and last.exists()


def state_of(a, job):
    return (a.job(job)["archived"] or {}).get("state")


def change(a, job, verb, body=None, token="user"):
    """Until it is taken: its last records may still be on their way to the disk."""
    last = {}

    def taken():
        last["reply"] = a.call("POST", f"/v1/jobs/{job}:{verb}", body, token=token)
        return last["reply"].status == 202

    until(taken, f"{verb} is taken")
    return last["reply"].json()


def archive(a, job):
    change(a, job, "archive")
    until(lambda: state_of(a, job) == "archived", f"{job} is archived")


def test_there_and_back(argusd):
    job = finished(argusd)
    top = argusd.job_dir(job)
    before, driver_log = tree_of(top), argusd.log_file(job).read_bytes()
    archive(argusd, job)
    page = argusd.job(job)["archived"]
    assert page["files"] == len({r[4] for r in before.values() if len(r) == 5})
    assert os.path.getsize(page["path"]) == page["packed"] and page["bytes"] > 4 << 20 > page["packed"]
    assert sorted(os.listdir(top)) == ["archived.json", "meta.json"]
    assert json.loads((top / "archived.json").read_text())["archive"] == page["path"]

    # Any tar opens it: nobody depends on argusd for his files.
    listed = subprocess.run(["tar", "--zstd", "-tf", page["path"]], capture_output=True, check=True).stdout
    assert f"{job}/made/deep/f7\n".encode() in listed and f"{job}.manifest\n".encode() in listed

    for path in ("logs", "logs/files", "metrics", "logs?follow=1"):
        reply = argusd.call("GET", f"/v1/jobs/{job}/{path}")
        assert reply.status == 409 and f"argus unarchive {job}" in reply.json()["detail"], reply
    assert change(argusd, job, "archive")["archived"]["state"] == "archived"  # twice is once

    change(argusd, job, "unarchive")
    until(lambda: state_of(argusd, job) is None, f"{job} is back")
    assert tree_of(top) == before and argusd.log_file(job).read_bytes() == driver_log
    assert not os.path.exists(page["path"])
    assert [k for k in argusd.kinds(job) if "archive" in k] == ["archived", "unarchived"]
    assert argusd.follow(job)[0] == driver_log
    assert not [n for n in os.listdir(argusd.root / "jobs") if n.startswith(".argus-")]


def test_who_asks_for_many_leaves_turns_to_others(argusd):
    """Six that take long, then one of somebody else: his is not the last."""
    hers, his = [finished(argusd, MANY) for _ in range(6)], finished(argusd)
    for job in hers:
        change(argusd, job, "archive")
    change(argusd, his, "archive", token="admin")
    for job in (*hers, his):
        until(lambda job=job: state_of(argusd, job) == "archived", f"{job} is archived")
    done = {j: e["seq"] for j in (*hers, his) for e in argusd.events(j) if e["kind"] == "archived"}
    assert done[his] < max(done[job] for job in hers), done


def with_checkpoint(a):
    """A job whose checkpoint is in the catalogue."""
    job = finished(a)
    kept = a.job_dir(job) / "checkpoints"
    put_checkpoint(kept, 10)
    assert a.call("POST", f"/v1/jobs/{job}/checkpoints:gc", {"dry_run": True}).status == 200
    assert [c["step"] for c in steps_of(a, job)] == [10]
    return job


def steps_of(a, job):
    return a.get(f"/v1/jobs/{job}/checkpoints")["checkpoints"]


def without_checkpoints(tree):
    return {k: v for k, v in tree.items() if not k.startswith(b"checkpoints/") or k == b"checkpoints/."}


def test_without_its_checkpoints(argusd):
    """They go with the directory, for good, and from the catalogue; all else comes back byte for byte."""
    job = with_checkpoint(argusd)
    top = argusd.job_dir(job)
    before = tree_of(top)
    bare = without_checkpoints(before)
    assert len(before) > len(bare)
    change(argusd, job, "archive", {"checkpoints": False})
    argusd.kill9()  # whatever step it is at, is undone or done to its end
    argusd.start()
    until(lambda: state_of(argusd, job) in ("archived", "failed", None), "it is done or undone")
    if state_of(argusd, job) != "archived":
        assert tree_of(top) == before and steps_of(argusd, job)
        change(argusd, job, "archive", {"checkpoints": False})
        until(lambda: state_of(argusd, job) == "archived", f"{job} is archived")
    page = argusd.job(job)["archived"]
    assert page["no_checkpoints"] and page["files"] == len({r[4] for r in bare.values() if len(r) == 5}), page
    assert json.loads((top / "archived.json").read_text())["without"] == "checkpoints"
    listed = subprocess.run(["tar", "--zstd", "-tf", page["path"]], capture_output=True, check=True).stdout
    assert f"{job}/made/deep/f7\n".encode() in listed and b"global_step_10" not in listed
    (told,) = [e for e in argusd.events(job) if e["kind"] == "archived"]
    assert "its checkpoints were removed" in told["text"], told
    # With them it cannot be archived any more: that is another archive.
    reply = argusd.call("POST", f"/v1/jobs/{job}:archive", token="user")
    assert (reply.status, reply.json()["code"]) == (409, "job_archived"), reply
    change(argusd, job, "unarchive")
    until(lambda: state_of(argusd, job) is None, f"{job} is back")
    assert tree_of(top) == bare and steps_of(argusd, job) == []


def test_a_checkpoint_in_use_keeps_its_job(argusd):
    """Nobody's model goes with the directory of the job that made it."""
    job = with_checkpoint(argusd)
    model = f"{argusd.root}/jobs/{job}/checkpoints/global_step_10"
    holder = argusd.submit("exec tail -f /dev/null", env={"MODEL": model})
    reply = argusd.call("POST", f"/v1/jobs/{job}:archive", {"checkpoints": False}, token="user")
    assert (reply.status, reply.json()["code"]) == (409, "job_in_use"), reply
    assert state_of(argusd, job) is None and steps_of(argusd, job)
    argusd.stop_job(holder)
    argusd.wait_over(holder)


def test_by_the_retention_of_the_project(tmp_path):
    """What ended longer ago is archived, told, and comes back byte for byte; checkpoints only where it says so."""
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as a:
        made = a.call("POST", "/v1/projects", {"name": "brief", "members": ["alice"], "retention": "1s"})
        assert (made.status, made.json()["retention"], made.json()["retention_checkpoints"]) == (201, "1s", False), made
        jobs = [a.submit("echo made", project=p) for p in ("brief", "default")]
        writer = f"mkdir -p {a.root}/jobs/$ARGUS_JOB_ID/checkpoints"
        jobs.append(a.submit(writer, project="brief"))
        for job in jobs:
            assert a.wait_over(job)["state"] == "SUCCEEDED"
            until(lambda job=job: settled(a, job), f"{job} is written down")
        brief, other, saved = jobs
        fill(a.job_dir(brief), 20)
        put_checkpoint(a.job_dir(saved) / "checkpoints", 10)
        reply = a.call("POST", f"/v1/jobs/{saved}/checkpoints:gc", {"dry_run": True})
        assert reply.status == 200 and len(a.get(f"/v1/jobs/{saved}/checkpoints")["checkpoints"]) == 1, reply
        before = tree_of(a.job_dir(brief))
        a.stop()
        a.start()  # a round begins
        until(lambda: state_of(a, brief) == "archived", "its retention is over")
        (told,) = [e for e in a.events(brief) if e["kind"] == "retention"]
        assert told["actor"] == "argusd" and "the retention of project 'brief', 1s" in told["text"], told
        change(a, brief, "unarchive")
        until(lambda: state_of(a, brief) is None, "it is back")
        assert tree_of(a.job_dir(brief)) == before
        assert state_of(a, other) is None and state_of(a, saved) is None
        done = cli(a, "project", "set", "brief", "--retention", "90d", token="admin")
        assert done.returncode == 0 and a.get("/v1/projects/brief")["retention"] == "7776000s", done
        done = cli(a, "project", "set", "brief", "--retention", "1s", "--retention-checkpoints", token="admin")
        assert done.returncode == 0 and a.get("/v1/projects/brief")["retention_checkpoints"], done
        a.stop()
        a.start()
        until(lambda: state_of(a, saved) == "archived" and state_of(a, brief) == "archived", "both, now")
        assert state_of(a, other) is None


def test_who_may_and_when(argusd):
    job = finished(argusd)
    for token in ("viewer", None):
        assert argusd.call("POST", f"/v1/jobs/{job}:archive", token=token).status in (401, 403, 404)
    running = argusd.submit("exec tail -f /dev/null")
    argusd.wait_state(running, "RUNNING")
    reply = argusd.call("POST", f"/v1/jobs/{running}:archive", token="user")
    assert reply.status == 409 and "only a job that is over" in reply.json()["detail"]
    argusd.stop_job(running)

    user = argusd.submit(f"echo {argusd.job_dir(job)}/made >/dev/null; exec tail -f /dev/null")
    argusd.wait_state(user, "RUNNING")
    until(lambda: "names job" in argusd.call("POST", f"/v1/jobs/{job}:archive", token="user").json().get("detail", ""),
          "a job that uses it is in the way")  # fmt: skip
    assert state_of(argusd, job) is None
    argusd.stop_job(user)
    argusd.wait_over(user)
    archive(argusd, job)
    reply = argusd.post(argusd.spec(f"cat {argusd.job_dir(job)}/made/deep/f1"), token="user")
    assert reply.status == 409 and f"argus unarchive {job}" in reply.json()["detail"], reply


def test_what_cannot_be_kept_is_told(argusd):
    job = finished(argusd)
    os.mkfifo(argusd.job_dir(job) / "made" / "pipe")
    before = tree_of(argusd.job_dir(job))
    change(argusd, job, "archive")
    until(lambda: state_of(argusd, job) == "failed", "it is refused")
    assert "'made/pipe' is a pipe" in argusd.job(job)["archived"]["problem"]
    assert "archive_failed" in argusd.kinds(job) and tree_of(argusd.job_dir(job)) == before
    (argusd.job_dir(job) / "made" / "pipe").unlink()
    archive(argusd, job)


def test_a_changed_archive_is_not_believed(argusd):
    job = finished(argusd)
    archive(argusd, job)
    path = argusd.job(job)["archived"]["path"]
    with open(path, "r+b") as f:
        whole = f.read()
        f.seek(len(whole) // 2)
        f.write(bytes(b ^ 0xFF for b in whole[len(whole) // 2 : len(whole) // 2 + 8]))
    change(argusd, job, "unarchive")
    until(lambda: state_of(argusd, job) == "archived" and argusd.job(job)["archived"]["problem"], "it is told")
    with open(path, "wb") as f:
        f.write(whole)
    change(argusd, job, "unarchive")
    until(lambda: state_of(argusd, job) is None, f"{job} is back")
    assert (argusd.job_dir(job) / "made" / "deep" / "f3").read_bytes() == b"3\n" * 40


def cli(a, *args, token="user"):
    env = {**os.environ, "ARGUS_URL": a.url, "ARGUS_TOKEN": a.tokens[token], "LANG": "C"}
    return subprocess.run([PROGRAMS["argus"], *args], capture_output=True, text=True, env=env)


def test_by_the_command_line(argusd):
    job = finished(argusd)
    change(argusd, job, "archive")  # its records are on disk now
    done = cli(argusd, "archive", job, "--wait")
    path = argusd.job(job)["archived"]["path"]
    assert done.returncode == 0 and f"job {job} is archived: {path}" in done.stderr, done
    assert "archived: " in cli(argusd, "status", job).stdout
    assert cli(argusd, "logs", job).returncode != 0
    done = cli(argusd, "unarchive", job, "--wait")
    assert done.returncode == 0 and f"job {job} is back in {argusd.job_dir(job)}" in done.stderr, done
    told = cli(argusd, "archive", job)
    assert told.returncode == 0 and f"job {job} is being archived: 'argus status {job}'" in told.stderr, told
    until(lambda: state_of(argusd, job) == "archived", "it is archived")
    told = cli(argusd, "unarchive", job)
    assert told.returncode == 0 and f"job {job} is being brought back: 'argus status {job}'" in told.stderr, told
    until(lambda: state_of(argusd, job) is None, f"{job} is back")
    done = cli(argusd, "archive", job, "--no-checkpoints", "--wait")
    assert done.returncode == 0 and argusd.job(job)["archived"]["no_checkpoints"], done
    assert cli(argusd, "archive").returncode == 2
    done = cli(argusd, "archive", "--older", "9999d")
    assert done.returncode == 0 and done.stdout == ""


def names_below(path):
    try:
        return os.listdir(path)
    except FileNotFoundError:
        return []


PACKING = ("the row", ".part", ".tar.zst", ".argus-old-", "archived.json")
BACK = ("the row", ".argus-new-", "back")


def is_at(a, job, step):
    names = names_below(a.root / "argus" / "archive") + names_below(a.root / "jobs") + names_below(a.job_dir(job))
    return step == "the row" or step == "back" and "made" in names or any(step in n for n in names)


def test_killed_at_each_step(argusd):
    job = finished(argusd, MANY)
    before = tree_of(argusd.job_dir(job))
    for verb, steps, done in (("archive", PACKING, "archived"), ("unarchive", BACK, None)):
        for step in steps:
            if state_of(argusd, job) == done:  # the last kill came when it was all but done
                change(argusd, job, "unarchive" if verb == "archive" else "archive")
                until(lambda: state_of(argusd, job) in ("archived", None), "it is where it was")
            change(argusd, job, verb)
            until(lambda: is_at(argusd, job, step) or state_of(argusd, job) == done, f"{verb} comes to {step}")
            argusd.kill9()
            argusd.start()
            until(lambda: state_of(argusd, job) in ("archived", "failed", None), f"{verb} is done or undone")
            if state_of(argusd, job) != "archived":
                assert tree_of(argusd.job_dir(job)) == before
        if state_of(argusd, job) != done:
            change(argusd, job, verb)
            until(lambda: state_of(argusd, job) == done, f"{verb} is done")
    assert tree_of(argusd.job_dir(job)) == before
    assert not [n for n in os.listdir(argusd.root / "jobs") if n.startswith(".argus-")]
