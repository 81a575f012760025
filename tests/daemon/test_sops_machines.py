# SPDX-License-Identifier: Apache-2.0
"""docs/sop of memory, disks, the shared root and argusd itself, beside a fake Ray: something is broken, the operator
pastes the blocks as they stand, and it is well."""

import contextlib
import http.client
import sqlite3
import subprocess

import broken
import pytest
import standin
from checkpoints import put_checkpoint
from fakeray import FakeRay
from preload import needs_compiler
from programs import PROGRAMS
from smalldisk import fill, small_disk
from soppage import SOP, SopPage
from test_alert_rules import SlowRoot
from test_ops import is_looked_at

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd

DOCTOR = (0, 1)  # its exit status tells whether something is ill: of the machine of the test, too
DU = (0, 1)  # argusd may remove a file while it looks


def test_each_page_has_both_languages():
    """The gate `twins` holds the commands of each pair equal."""
    english = {p.stem for p in SOP.glob("*.md") if not p.name.endswith(".zh.md")}
    chinese = {p.name.removesuffix(".zh.md") for p in SOP.glob("*.zh.md")}
    mine = {"node-on", "node-off", "oom", "upgrade", "disk-full", "nfs-away"}
    assert mine <= english and mine <= chinese
    for name in mine:
        assert f"({name}.zh.md)" in (SOP / f"{name}.md").read_text()
        assert f"({name}.md)" in (SOP / f"{name}.zh.md").read_text()


def doctor_row(said, name):
    """The words of a check's line: its name, its state, what it says."""
    return next(line.split() for line in said.splitlines() if line.startswith(f"{name} "))


def becomes(page, block, name, state):
    """What the page's `argus doctor` says once that check is so."""

    def look():
        said = page.paste(block, codes=DOCTOR)
        return said if doctor_row(said, name)[1] == state else None

    return until(look, f"'{name}' is {state}")


# ---- out of memory ----

HOARDS = "import resource; resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20)); bytearray(1 << 30)"
GPU_FULL = """#!/bin/sh
echo 'step:1 - actor/loss:0.1'
echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.'
exit 1
"""
MICRO_BATCH = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"


def found(argusd, job):
    """The class of its failure, once all of the finding is there."""
    argusd.wait_over(job)
    return argusd.wait_job(job, lambda v: "rule" in (v["finding"] or {}), "has its finding")["finding"]["class"]


def fails_for_the_gpu(argusd):
    """No GPU is here: the program says what torch says, and the memory is not asked."""
    broken.make_world(argusd.root)
    python = argusd.root / "common/fails/python"
    broken.put(python, GPU_FULL)
    python.chmod(0o755)
    common = "${SHARED_ROOT}/common"
    spec = {"workload": "grpo", "n_gpus_per_node": 1, "model_id": f"{common}/models/tiny"}
    spec |= {"train_file": f"{common}/datasets/train.parquet", "val_file": f"{common}/datasets/val.parquet"}
    spec |= {"runtime_env": {"py_executable": f"{common}/fails/python"}, "overrides": [f"{MICRO_BATCH}=8"]}
    reply = argusd.post(spec, token="user")
    assert reply.status == 201, reply
    return reply.json()["id"]


@pytest.fixture
def small_shm(tmp_path):
    """A /dev/shm of 64 KiB below a path of its own."""
    (tmp_path / "machine/dev").mkdir(parents=True)
    with small_disk(tmp_path / "machine/dev/shm", "64k") as shm:
        yield shm


def test_memory_ran_out(tmp_path, small_shm):
    with FakeRay() as ray, Argusd(tmp_path, ray.url, "trial: false") as argusd:
        fills = f"dd if=/dev/zero of={small_shm}/torch_7_1 bs=64k count=4"
        failed = {
            "gpu_oom": fails_for_the_gpu(argusd),
            "host_oom": argusd.submit(Argusd.python(HOARDS), memory_per_node="1GiB"),
            "shm_exhausted": argusd.submit(fills),
        }
        for name, job in failed.items():
            assert found(argusd, job) == name
        pages = {name: SopPage("oom", argusd, JOB=job) for name, job in failed.items()}
        for name, page in pages.items():
            assert name in page.paste("which").splitlines()[2]
            others = page.paste("others")
            assert all(job in others for job in failed.values()) and "FAILED" in others
        check_fix(argusd, pages["gpu_oom"], failed["gpu_oom"], lambda spec: micro_batch(spec["overrides"]) < 8)
        old = argusd.job(failed["host_oom"])["resolved_spec"]["memory_per_node"]
        check_fix(argusd, pages["host_oom"], failed["host_oom"], lambda spec: spec["memory_per_node"] != old)
        subprocess.run(["mount", "-o", "remount,size=4m", small_shm], check=True)
        page, job = pages["shm_exhausted"], failed["shm_exhausted"]
        new = page.paste("again").strip()
        assert argusd.wait_over(new)["state"] == "SUCCEEDED"
        assert new in page.paste("after")
        assert argusd.job(new)["retry_of"] == job
        assert set.intersection(*(p.left for p in pages.values())) == set()


def micro_batch(overrides):
    return next(int(o.split("=")[1]) for o in overrides if o.split("=")[0] == MICRO_BATCH)


def check_fix(argusd, page, job, is_changed):
    """The plan starts nothing, the fix a job whose spec is changed."""
    before = {j["id"] for j in argusd.all_jobs("&all=1")}
    page.paste("plan")
    assert {j["id"] for j in argusd.all_jobs("&all=1")} == before
    new = page.paste("fix").strip()
    view = argusd.job(new)
    assert view["retry_of"] == job and is_changed(view["resolved_spec"]), view
    assert new in page.paste("after")
    argusd.wait_over(new)


# ---- the upgrade ----


def put_programs(where, version):
    """Programs as a tarball has them; argusd notes which version it was that was started."""
    (where / "bin").mkdir(parents=True)
    for name, real in PROGRAMS.items():
        program = where / "bin" / name
        program.write_text(f'#!/bin/sh\necho {version} >>"{where.parent}/{name}.started"\nexec {real} "$@"\n')
        program.chmod(0o755)


def started(home):
    return (home / "argusd.started").read_text().split()[-1]


def test_another_version_and_the_way_back(tmp_path, monkeypatch):
    put_programs(tmp_path / "opt", "old")
    put_programs(tmp_path / "opt-new", "new")
    with FakeRay() as ray, Argusd(tmp_path, ray.url, "backup: {every: 0}") as argusd:
        monkeypatch.setitem(PROGRAMS, "argusd", tmp_path / "opt/bin/argusd")
        argusd.restart()
        assert started(tmp_path) == "old"
        values = {"CONFIG": argusd.config, "STATE": argusd.state_dir, "KEPT": tmp_path / "kept.key"}
        values |= {"ROOT": argusd.root, "PREFIX": tmp_path / "opt", "NEW": tmp_path / "opt-new"}
        page = SopPage("upgrade", argusd, **{name: str(path) for name, path in values.items()})
        runs = argusd.submit("exec tail -f /dev/null")
        argusd.wait_state(runs, "RUNNING")
        assert doctor_row(page.paste("doctor", codes=DOCTOR), "store")[1] == "well"
        assert runs in page.paste("before")
        page.paste("backup")
        (made,) = until(lambda: [b["name"] for b in argusd.get("/v1/backups")["backups"]], "the backup is made")
        assert made in page.paste("made")
        assert "can be used" in page.paste("new")
        argusd.stop()
        page.paste("swap")
        argusd.start()
        assert started(tmp_path) == "new"
        argusd.wait_state(runs, "RUNNING")
        said = page.paste("after")
        assert runs in said and "whole: " in said
        later = argusd.submit("exec tail -f /dev/null")
        argusd.wait_state(later, "RUNNING")

        # The new version has changed the store: the old one refuses it and changes nothing.
        argusd.stop()
        with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db:
            db.execute("PRAGMA user_version = 9999")
        page.paste("back")
        argusd.spawn()
        assert argusd.process.wait(PATIENCE) != 0
        argusd.process = None
        assert started(tmp_path) == "old"
        assert "start the newer argusd, or restore an older backup" in argusd.said()
        assert f"{made} is in place" in page.paste("restore")
        argusd.start()
        argusd.wait_state(runs, "RUNNING")
        assert argusd.call("GET", f"/v1/jobs/{later}").status == 404
        said = page.paste("later")
        assert said.count(later) == 1 and said.count(runs) == 2  # a directory, and no job of this argusd
        assert page.left == set()


# ---- disks ----

SCALED = "alerts: {every: 1s, rules: {root_full: {when: free < 10MiB, clear: free > 20MiB, for: 1s}}}"
SHARD = 4_000_000  # bytes; a checkpoint has three


def trained(argusd):
    """A job that is over, with four checkpoints, of which its keep_last wants two."""
    t = standin.Training(argusd, checkpoint={"keep_last": 2})
    for step in (10, 20):
        t.order("save", step, SHARD)
        until(lambda step=step: t.tracker() == step, f"step {step} is saved")
    t.order("exit", 0)
    assert argusd.wait_over(t.id)["state"] == "SUCCEEDED"
    until(lambda: not is_looked_at(argusd, t.id), "the look that its end owes was made")
    for step in (30, 40):
        put_checkpoint(t.kept, step)
    return t


@pytest.mark.nightly  # it waits for looks at the root
def test_the_shared_root_is_full(tmp_path):
    with (
        small_disk(tmp_path / "shared", "160m") as root,
        FakeRay() as ray,
        Argusd(tmp_path, ray.url, SCALED) as argusd,
    ):
        standin.make_world(root)
        t = trained(argusd)
        page = SopPage("disk-full", argusd, ROOT=str(root), STATE=str(argusd.state_dir), JOB=t.id)
        fill(root, 6 << 20)
        becomes(page, "which", "root_room", "ill")
        until(lambda: "root_full" in page.paste("guard"), "the alert is open")
        assert f"jobs/{t.id}" in page.paste("largest", codes=DU)
        plan = page.paste("plan")
        assert t.steps() == [10, 20, 30, 40]  # a plan does nothing
        assert "checkpoint/10: removed" in plan and "checkpoint/20: removed" in plan
        assert "clean_checkpoints: done" in page.paste("apply")
        assert t.steps() == [30, 40]
        becomes(page, "which", "root_room", "well")
        until(lambda: not argusd.get("/v1/alerts?state=open")["alerts"], "the alert is over")
        said = page.paste("after")
        assert "whole: " in said and t.id not in said
        assert page.left == {"state"}


@pytest.mark.nightly
def test_the_disk_of_the_state_is_full(tmp_path):
    disk = tmp_path / "disk"
    with (
        small_disk(disk, "24m"),
        FakeRay() as ray,
        Argusd(tmp_path, ray.url, state_dir=disk / "state") as argusd,
    ):
        job = argusd.submit("exec tail -f /dev/null")
        argusd.wait_state(job, "RUNNING")
        page = SopPage("disk-full", argusd, ROOT=str(argusd.root), STATE=str(argusd.state_dir))
        aside = argusd.state_dir / "before-restore-1700000000/argus.db"
        aside.parent.mkdir()
        with contextlib.suppress(OSError), open(aside, "wb") as f:
            while True:
                f.write(bytes(1 << 12))
                f.flush()

        def is_ill():
            """argusd knows of it when it has something to write."""
            with contextlib.suppress(OSError, http.client.HTTPException):
                argusd.ask("POST", "/v1/jobs", Argusd.spec("true"), "user", {})
            return doctor_row(page.paste("which", codes=DOCTOR), "store")[1] == "ill"

        until(is_ill, "the store takes nothing")
        assert argusd.ask("POST", "/v1/jobs", Argusd.spec("true"), "user", {}).status == 503
        assert str(aside) in page.paste("state", codes=DU)
        aside.unlink()
        becomes(page, "which", "store", "well")
        assert "whole: " in page.paste("after")
        assert argusd.job(job)["state"] == "RUNNING"
        assert argusd.wait_over(argusd.submit("true"))["state"] == "SUCCEEDED"


# ---- the shared root ----

COUNTS = """
i=0
while [ ! -e {end} ]; do
    i=$((i + 1))
    echo line $i
    sleep 0.05
done
echo the last was $i
"""


@contextlib.contextmanager
def mounted(what, where):
    """A mount that can go and come back: (take_away, bring_back)."""
    what.mkdir()
    where.mkdir()

    def bring_back():
        return subprocess.run(["mount", "--bind", what, where], capture_output=True, text=True)

    def take_away():
        subprocess.run(["umount", "-l", where], check=True)

    done = bring_back()
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr.strip()}")
    try:
        yield take_away, bring_back
    finally:
        subprocess.run(["umount", "-l", where], capture_output=True)


@pytest.mark.nightly  # it waits for looks at the root
@needs_compiler
def test_the_shared_root_is_away(tmp_path):
    slow = SlowRoot(tmp_path)
    with mounted(tmp_path / "served", tmp_path / "shared") as (take_away, bring_back), FakeRay() as ray:
        argusd = Argusd(tmp_path, ray.url)
        argusd.env = slow.env
        with argusd:
            root_is_away(argusd, slow, take_away, bring_back)


def root_is_away(argusd, slow, take_away, bring_back):
    end = argusd.home / "end"
    job = argusd.submit(COUNTS.format(end=end))
    argusd.wait_state(job, "RUNNING")
    page = SopPage("nfs-away", argusd, ROOT=str(argusd.root))
    becomes(page, "which", "root", "well")

    # It hangs: argusd answers all the same, and takes no job.
    slow.takes(10**9)
    try:
        assert "does not answer" in becomes(page, "which", "root", "ill")
        assert job in page.paste("jobs")
        assert argusd.post(Argusd.spec("true"), token="user").status == 503
    finally:
        slow.takes(0)
    becomes(page, "which", "root", "well")

    # Its mount is missing, and an empty directory is there.
    take_away()
    assert "is empty now: mount it" in becomes(page, "which", "root", "ill")
    assert page.paste("mount").splitlines() == [f"{argusd.root} is not mounted", "it does not answer"]
    assert argusd.post(Argusd.spec("true"), token="user").status == 503
    assert bring_back().returncode == 0
    becomes(page, "which", "root", "well")
    assert page.paste("mount").splitlines()[-1] == "it answers"

    becomes(page, "which", "root_test", "well")
    said = page.paste("after")
    assert "root_ok" in said and job in said and "whole: " in said
    end.touch()
    assert argusd.wait_over(job)["state"] == "SUCCEEDED"
    data, _ = argusd.follow(job)
    *lines, last = data.decode().splitlines()
    assert lines == [f"line {i + 1}" for i in range(len(lines))] and last == f"the last was {len(lines)}"
    assert job not in page.paste("failed")
    assert page.left == set()
