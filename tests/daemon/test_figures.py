# SPDX-License-Identifier: Apache-2.0
"""Figures of machines: argusd asks each node's own metrics page, beside a fake Ray whose nodes have real HTTP pages of
what a Ray 2.60.0 and a 2.51.1 wrote; what a page says comes to the job, to the routes and over a restart."""

import contextlib
import re
import sqlite3
import time

import pytest
from figurebed import World

from argusd import needs_argusd, until

pytestmark = needs_argusd

UUID = "GPU-00000000-0000-0000-0000-00000000000"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("figures"))
    yield made
    made.close()


def test_a_node_is_asked_and_tells(world):
    assert [v[-1] for v in world.told("w1")] == [0.87, 0.05]
    assert world.told("w1", "gpu_power_watts")[0][-1] == 512
    assert world.told("w1", "gpu_mem_total_bytes")[1][-1] == pytest.approx(81559 * 2**20, rel=1e-5)
    assert world.told("w1", "cpu_util_ratio")[0][-1] == 0.159
    page = until(lambda: (p := world.figures("w1"))["why_not"] == "" and p, "it was asked in time")
    assert [s["uuid"] for s in page["series"]] == [UUID + "0", UUID + "1"]
    assert page["step_s"] == 15 and page["points"] == len(page["series"][0]["mean"])
    # Ray 2.51 tells no uuid and no power.
    assert world.told("w2")
    assert [s["uuid"] for s in world.figures("w2")["series"]] == [None, None]
    assert all(v is None for s in world.figures("w2", "gpu_power_watts")["series"] for v in s["mean"])
    # The head has no port in this Ray: it is said, and nothing else suffers.
    until(lambda: "metrics" in world.figures("head", "cpu_util_ratio")["why_not"], "why the head tells nothing")


def test_a_job_has_the_use_of_its_own_gpus(world):
    world.told("w1")
    gate = world.argusd.root / "common" / "gate"
    job = world.argusd.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done", n_gpus_per_node=1, nnodes=2)
    running = world.argusd.wait_state(job, "RUNNING")
    held = {(n["name"], g) for n in running["nodes"] for g in n["gpu_ids"]}
    last = {}
    for node in ("w1", "w2"):
        for g, values in enumerate(world.told(node)):
            last[node, g] = values[-1]
    use = round(100 * sum(last[k] for k in held) / len(held))
    world.argusd.wait_job(job, lambda j: j["gpu_util"] == use, f"uses {use} % of both")
    row = lambda: next(r for r in world.argusd.get("/v1/jobs")["jobs"] if r["id"] == job)  # noqa: E731
    until(lambda: row()["gpu_util"] == use, "the list says the same")

    def gpus():
        page = world.argusd.get(f"/v1/jobs/{job}/gpus?step=15s")
        told = [s for s in page["series"] if any(v is not None for v in s["mean"])]
        return page if len(told) == 2 else None

    page = until(gpus, "the series of its GPUs")
    assert {(s["node"], s["gpu"]) for s in page["series"]} == held
    for s in page["series"]:
        assert s["mean_of_all"] == pytest.approx(last[s["node"], s["gpu"]])
        assert 0 < s["mem_used_max_bytes"] < s["mem_total_bytes"]
    check_lane(world, job, held)
    gate.touch()
    world.argusd.wait_over(job)
    assert job not in metrics(world) and "argus_job_gpus{" not in metrics(world), "its series end with it"


def metrics(world):
    return world.argusd.call("GET", "/metrics").body.decode()


def check_lane(world, job, held):
    """Prometheus reads the same of its GPUs, by the lane of the job and not by its id."""
    used, total = (
        [world.told(node, f"gpu_mem_{what}_bytes")[gpu][-1] for node, gpu in held] for what in ("used", "total")
    )
    use = [world.told(node)[gpu][-1] for node, gpu in held]
    page = metrics(world)
    (lane,) = re.findall(rf'^argus_job_lane_info{{lane="(\d+)",id="{job}",.*}} 1$', page, re.M)
    told = dict(re.findall(rf'^argus_job_(gpu\w+){{lane="{lane}"}} (\S+)$', page, re.M))
    assert float(told["gpus"]) == 2
    assert float(told["gpu_use_ratio"]) == pytest.approx(sum(use) / 2, abs=0.01)
    assert float(told["gpu_memory_used_bytes"]) == pytest.approx(sum(used), rel=1e-6)
    fullest = max(u / t for u, t in zip(used, total, strict=True))
    assert float(told["gpu_memory_fullest_ratio"]) == pytest.approx(fullest, rel=1e-6)
    assert "\nargus_jobs_without_lane 0\n" in page


def test_what_was_told_is_there_after_a_restart(world):
    world.told("w1")
    before = world.figures("w1", query="since=10m&step=15s")["series"][0]
    asked = sum(v is not None for v in before["mean"])
    world.argusd.process.terminate()
    assert world.argusd.process.wait() == 0
    files = sorted(p.name.split(".")[1] for p in (world.argusd.state_dir / "figures" / "w1").iterdir())
    assert set(files) == {"rollups", "samples"}
    # A crash in the middle of a record, and argusd goes on behind the last whole one.
    for p in (world.argusd.state_dir / "figures" / "w1").iterdir():
        with open(p, "ab") as f:
            f.write(b"\x40\0\0\0torn")
    pages = world.pages["w1"].asked
    world.argusd.start()
    until(lambda: world.pages["w1"].asked > pages, "it asks again")

    def kept():
        values = [v for v in world.figures("w1")["series"][:1] for v in v["mean"] if v is not None]
        return len(values) > asked and values

    assert set(until(kept, "old and new samples")) == {0.87}


def test_a_page_that_lies_harms_nobody(world):
    world.told("w1")
    good, page = world.pages["w1"].text, world.pages["w1"]
    asked = page.asked
    page.text = "ray_node_gpus_utilization{" + "x" * (5 << 20)
    until(lambda: "larger than" in world.figures("w1")["why_not"], "a page that is too large is told")
    page.text, page.status = good, 500
    until(lambda: "answers 500" in world.figures("w1")["why_not"], "a page that fails is told")
    page.status = 200
    page.text = 'ray_node_gpus_utilization{GpuIndex="1000"} 1\nray_node_mem_used NaN\n\x00\xff{{{\n' + good
    until(lambda: world.figures("w1")["why_not"] == "", "it is well again")
    assert page.asked > asked
    assert world.told("w1")[0][-1] == 0.87
    metrics = world.argusd.call("GET", "/metrics").body.decode()
    lines = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if line.startswith("argus_figures_"))
    assert float(lines["argus_figures_page_failures_total"]) >= 2
    assert float(lines["argus_figures_bad_lines_total"]) >= 1
    assert float(lines["argus_figures_write_failures_total"]) == 0


def test_what_cannot_be_asked_is_said(world):
    a = world.argusd
    for path, status, word in (
        ("/v1/nodes/nobody/figures", 404, "nobody"),
        ("/v1/nodes/w1/figures?figure=heat", 400, "heat"),
        ("/v1/nodes/w1/figures?since=2000-01-01T00:00:00Z&until=1999-01-01T00:00:00Z", 400, "since"),
    ):
        reply = a.call("GET", path)
        assert reply.status == status and word in reply.json()["detail"], reply
    coarse = world.figures("w1", query="since=89d&step=15s")
    assert coarse["step_s"] >= 300 and coarse["points"] <= 1001


def test_a_job_that_ended_long_ago_has_an_answer(world):
    """Its whole attempt is told without a time asked for; of an attempt of which nothing is kept, empty points."""
    a = world.argusd
    job = a.submit("true", n_gpus_per_node=1)
    a.wait_over(job)
    for days, points in ((2, 73), (100, 2)):  # 6 hours in steps of 5 minutes, and its last step
        a.stop()
        ended = int((time.time() - days * 86400) // 300 * 300) * 1_000_000
        with contextlib.closing(sqlite3.connect(a.state_dir / "argus.db")) as db, db:
            db.execute(
                "UPDATE attempt SET started_at=?, ended_at=? WHERE job_seq=(SELECT seq FROM job WHERE id=?)",
                (ended - 6 * 3600 * 1_000_000, ended, job),
            )
        a.start()
        page = a.get(f"/v1/jobs/{job}/gpus?step=1m")
        assert len(page["series"]) == 1 and page["points"] == points, page
        assert page["series"][0]["mean_of_all"] is None
        reply = a.call("GET", f"/v1/jobs/{job}/gpus?since=1h")
        assert (reply.status, reply.json()["code"]) == (400, "since_behind_until"), "it had ended by then"
