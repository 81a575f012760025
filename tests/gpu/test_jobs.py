# SPDX-License-Identifier: Apache-2.0
"""Jobs on a real GPU, on real Ray: whose GPU it is and how it is used, idle GPUs, and failures that a GPU tells."""

import json
import pathlib
import subprocess

import pytest
from gpubed import kernel_xids, smi
from stage import wait_for

pytestmark = [pytest.mark.gpu, pytest.mark.ray]

JOB = pathlib.Path(__file__).with_name("job.py")
GIB = 1 << 30
HELD = 8 * GIB  # by job.py
OF_PROGRAMS = {13, 31, 43}
ALERTS = """alerts:
  every: 1s
  rules: {job_idle_gpus: {when: gpus > 0 and gpu_use < 5% and running_for > 1s, for: 1s}}
"""


@pytest.fixture(scope="module")
def argus(stage):
    stage.write_config()
    stage.config.write_text(stage.config.read_text() + ALERTS)
    stage.restart()
    return stage


def submit(stage, job, *args, **keys):
    argv = [str(stage.bed.python), str(JOB), *map(str, args)]
    spec = {"workload": "ray", "submission_id": job, "entrypoint": argv, "nnodes": 1, "n_gpus_per_node": 1}
    return stage.submit(spec | {"entrypoint_num_cpus": 1, "n_cpus_per_gpu": 1} | keys, token="admin")


def told(stage, job):
    """What job.py has printed so far."""
    lines = [t.partition("GOT ")[2] for t in stage.driver_log(job).splitlines() if t.startswith("GOT ")]
    return {k: v for line in lines for k, v in json.loads(line).items()}


def gpu_of(stage, job):
    (row,) = stage.get(f"/v1/jobs/{job}/gpus?step=15s")["series"]
    return row


def newest(points):
    return next((v for v in reversed(points) if v is not None), 0)


def wait_gpu(stage, job, ok, what):
    return wait_for(lambda: (row := gpu_of(stage, job)) and ok(row) and row, what, 120)


@pytest.fixture(scope="module")
def worked(argus, tmp_path_factory):
    """A job that holds its GPU idle until argusd has said so, then works until its use is told."""
    gate, job = tmp_path_factory.mktemp("gate") / "gate", "gpu-work"
    submit(argus, job, "work", gate, idle={"min_gpu_util": 5, "window": "20s"})
    got = wait_for(lambda: (g := told(argus, job)) and "nccl" in g and g, "the job tells of NCCL", 200)
    idle = argus.wait_job(job, lambda j: "IDLE" in j["flags"], "is idle")
    alerts = wait_for(
        lambda: [a for a in argus.get("/v1/alerts?state=open")["alerts"] if a["rule"] == "job_idle_gpus"], "alert"
    )
    gate.with_name("gate.work").touch()
    busy = argus.wait_job(job, lambda j: (j["gpu_util"] or 0) > 20 and "IDLE" not in j["flags"], "works")
    running = wait_gpu(argus, job, lambda r: (r["busy_s"] or 0) > 20 and newest(r["mean"]) > 0.9, "its use")
    board = smi("uuid", "memory.used", "power.draw", "temperature.gpu")[0]
    said = [argus.argus(*verb, "-o", "json") for verb in (["status", job], ["gpus"], ["top"])]
    gate.with_name("gate.end").touch()
    argus.wait_state(job, "SUCCEEDED")
    over = wait_gpu(argus, job, lambda r: r["busy_s"] >= running["busy_s"], "what it used, after its end")
    everything = {
        "got": got,
        "idle": idle,
        "alerts": alerts,
        "busy": busy,
        "running": running,
        "board": board,
        "over": over,
    }
    argus.keep("worked.json", everything)
    argus.keep_job(job)
    return everything | {"said": said}


def test_the_gpu_is_the_leases_and_nccl_starts(worked):
    got, row = worked["got"], worked["running"]
    assert got["visible"] == "0" and got["gpus"] == [0]
    assert row["uuid"] == worked["board"]["uuid"] == "GPU-" + got["uuid"].removeprefix("GPU-")
    assert got["sum"] == 1 and got["nccl"]


def test_a_gpu_that_is_held_idle_is_told(worked):
    reason = worked["idle"]["reason"]
    assert reason["code"] == "gpu_idle" and reason["args"]["use"] < 5 and reason["args"]["gpus"] == 1
    assert worked["idle"]["state"] == "RUNNING" and worked["alerts"]


def test_the_use_of_a_job(worked):
    row, board = worked["running"], worked["board"]
    assert row["by_processes"] and row["rank"] == 0
    assert HELD < row["mem_peak_bytes"] < HELD + 3 * GIB
    assert row["mem_used_max_bytes"] == pytest.approx(board["memory.used"] * 2**20, rel=0.05)
    assert row["power_watts"] == pytest.approx(board["power.draw"], rel=0.3)
    assert row["temperature_celsius"] == pytest.approx(board["temperature.gpu"], abs=8)
    assert 0 < row["busy_s"] < row["watched_s"]
    mean = row["used_joules"] / row["watched_s"]
    assert 40 < mean < 1000, "watts over the time that was watched"
    assert worked["over"]["busy_s"] >= row["busy_s"] and worked["over"]["rank"] == 0


def test_the_sums_are_the_gpus(argus, worked):
    """The scout's own book: the shares of processes are what the GPU worked; the job's row is its process's share."""
    (path,) = argus.job_dir("gpu-work").glob("attempts/1/gpus/*.json")
    (card,) = json.loads(path.read_text())["gpus"]
    assert card["uuid"] == worked["board"]["uuid"] and card["ours"]
    assert sum(p["busy_s"] for p in card["processes"]) == pytest.approx(card["busy_s"], rel=0.02)
    (mine,) = [p for p in card["processes"] if p["ours"]]
    assert mine["pid"] == worked["got"]["pid"] and mine["rank"] == 0
    assert worked["over"]["busy_s"] == pytest.approx(mine["busy_s"], rel=0.02)


def test_the_ledger(argus, worked):
    """The lease's seconds of the job are used or held idle, and all parts are the capacity."""
    job = argus.job("gpu-work")

    def look():
        page = argus.get("/v1/usage?from=1d&by=user")
        return page["until"] > job["ended_at"] and page

    book = argus.keep("usage.json", wait_for(look, "the ledger goes beyond the job's end"))
    used, idle = (sum(sum(s[part]) for s in book["series"]) for part in ("used", "held_idle"))
    assert used > 10 and idle > 10, (used, idle)
    assert used + idle >= job["gpu_seconds"] - 1
    whole = argus.get("/v1/usage?from=1d&by=cluster")["series"]
    parts = ("used", "held_idle", "blocked", "free", "draining", "broken", "foreign")
    for series in whole:
        assert sum(sum(series[p]) for p in parts) == pytest.approx(sum(series["capacity"]), abs=0.01)


def test_the_command_line_tells_it(argus, worked):
    status, gpus, top = (json.loads(text) for text in worked["said"])
    assert status["gpu_util"] > 20 and status["gpu_mem_max_bytes"] > HELD, status
    (pool, *_) = gpus["pools"]
    assert pool["util"] > 0.05 and pool["gpu_mem_total_bytes"] > pool["gpu_mem_used_bytes"] > HELD, pool
    assert [j["gpu_util"] > 20 for j in top["jobs"]] == [True], top


def failed(stage, job, *args):
    submit(stage, job, *args)
    stage.wait_state(job, "FAILED")
    view = stage.keep_job(job)
    assert view["finding"], stage.driver_log(job)[-3000:]
    return view["finding"]


def test_memory_of_a_gpu_that_is_full(argus):
    found = failed(argus, "gpu-full", "fill")
    assert found["class"] == "gpu_oom", found
    assert "CUDA out of memory" in found["evidence"][0]["text"], found
    assert "GiB" in found["evidence"][0]["text"]


def test_an_illegal_memory_access(argus):
    before = kernel_xids()
    found = failed(argus, "gpu-astray", "stray")
    assert found["class"] == "cuda_error", found
    assert "illegal memory access" in found["evidence"][0]["text"], found
    (path,) = argus.job_dir("gpu-astray").glob("attempts/1/gpus/*.json")
    (card,) = json.loads(path.read_text())["gpus"]
    # It is told, and nobody is asked to drain the node for it.
    rules = wait_for(
        lambda: {a["rule"] for a in argus.get("/v1/alerts?state=all")["alerts"] if "Xid" in a["text"]}, "it"
    )
    assert rules == {"gpu_xid_program"}
    assert card["xid"] in OF_PROGRAMS, card
    if before is not None and kernel_xids() != before:
        assert card["xid"] in kernel_xids()[len(before) :]
    said = subprocess.run(["dmesg"], capture_output=True, text=True).stdout
    argus.keep("dmesg.txt", said[-20000:])
