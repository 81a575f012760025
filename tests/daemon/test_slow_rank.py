# SPDX-License-Identifier: Apache-2.0
"""One rank of a training is slower than the others: it is named with its node and why, told once, and taken back."""

import os

from preload import needs_compiler
from ranks import WORLD, tell
from rulebed import watched
from test_argusd_metrics import Training, cli
from wallclock import WallClock

from argusd import needs_argusd, until

pytestmark = needs_argusd


def test_a_slow_rank_is_named_and_taken_back(tmp_path):
    with watched(tmp_path) as w:
        t = Training(w.argusd)
        (node,) = [n["name"] for n in w.argusd.job(t.id)["nodes"]]
        told = lambda: [e for e in w.argusd.events(t.id) if e["kind"] == "rank_slow"]  # noqa: E731
        begun = w.begin()
        tell(w.argusd, t.id, node, slow=2, throttled=4)
        text = f"rank 2 on {node} holds the others up: it works 1.9 times as long as they do"
        assert text in w.hears("job_rank_slow", begun, t.id)["text"]
        slow = w.argusd.job(t.id)["slow_rank"]
        assert (slow["rank"], slow["node"], slow["cause"], slow["ranks"]) == (2, node, "cpu_cap", WORLD)
        assert slow["factor"] == 1.9 and slow["lost"] == 0.5 and slow["text"].startswith(text) and slow["since"]
        assert "CPU" in slow["fix"] and f"argus node drain {node}" in slow["fix"]
        chinese = w.argusd.get(f"/v1/jobs/{t.id}", **{"Accept-Language": "zh"})["slow_rank"]
        assert chinese["text"].startswith(f"{node} 上的 rank 2 拖慢了其他 rank")
        (event,) = told()
        assert event["text"] == slow["text"] and event["reason"]["code"] == "rank_slow_cpu_cap"
        shown = cli(w.argusd, "status", t.id)
        assert f"rank 2 on {node} holds the others up" in shown, shown
        assert f"rank 2 on {node} holds the others up" in cli(w.argusd, "why", t.id)
        w.argusd.restart()
        tell(w.argusd, t.id, node, slow=2, throttled=4)
        until(lambda: w.argusd.job(t.id)["slow_rank"], "it is known again after a restart")
        tell(w.argusd, t.id, node)
        w.ends("job_rank_slow", t.id)
        assert w.argusd.job(t.id)["slow_rank"] is None
        t.let_go()
        w.argusd.wait_over(t.id)


def test_what_a_job_writes_there_instead(tmp_path):
    """No other job's machine is named, and nothing that is no rank's file is read."""
    with watched(tmp_path) as w:
        t, other = Training(w.argusd), Training(w.argusd)
        (node,) = [n["name"] for n in w.argusd.job(t.id)["nodes"]]
        tell(w.argusd, t.id, "elsewhere", slow=1)
        place = w.argusd.job_dir(other.id) / "attempts/1/ranks"
        place.mkdir()
        os.mkfifo(place / "a-0.json")
        (place / "a-1.json").symlink_to("/etc/passwd")
        (place / "a-2.json").mkdir()
        (place / "a-3.json").write_text("[" * 20000)
        third = Training(w.argusd)
        tell(w.argusd, third.id, node, slow=0, cpu=1, disk_bytes=500_000_000)
        slow = until(lambda: w.argusd.job(third.id)["slow_rank"], "the third's is named: the readers go on")
        assert slow["cause"] == "disk"
        assert w.argusd.job(t.id)["slow_rank"] is None and w.argusd.job(other.id)["slow_rank"] is None
        tell(w.argusd, other.id, w.argusd.job(other.id)["nodes"][0]["name"], slow=3)
        until(lambda: w.argusd.job(other.id)["slow_rank"], "beside all that its own ranks are read")
        for one in (t, other, third):
            one.let_go()
            w.argusd.wait_over(one.id)


@needs_compiler
def test_a_node_that_is_slow_in_several_jobs(tmp_path):
    """A registered machine keeps in which jobs of a week it was slow, over a restart."""
    clock, node = WallClock(tmp_path), "w1"
    nodes = [{"name": "head", "ip": "127.0.0.1", "head": True, "resources": {"CPU": 0}}]
    resources = {"CPU": 8, "GPU": 2, "worker_node": 2, "argus_node_w1": 2}
    nodes.append({"name": node, "ip": "127.0.0.2", "resources": resources})
    with watched(tmp_path, env=clock.env(), nodes=nodes) as w:
        first, second = Training(w.argusd, n_gpus_per_node=1), Training(w.argusd, n_gpus_per_node=1)
        for t in (first, second):
            assert [n["name"] for n in w.argusd.job(t.id)["nodes"]] == [node]
        spec = {"name": node, "host": "192.0.2.7", "ray_bin": "/usr/bin/ray", "identity_file": "/nowhere"}
        reply = w.argusd.call("POST", "/v1/nodes", spec)
        assert reply.status == 201, reply
        tell(w.argusd, first.id, node, slow=1, throttled=4)
        until(lambda: w.argusd.job(first.id)["slow_rank"], "it is slow in the first")
        w.argusd.restart()
        begun = w.begin()
        tell(w.argusd, second.id, node, slow=3, throttled=4)
        text = w.hears("node_slow", begun, node)["text"]
        said = f"ranks on node '{node}' held the others up in 2 jobs of the last week"
        assert text == f"{said}; users whose jobs these are: 1, and from two on it takes jobs last"
        for t in (first, second):
            t.let_go()
            w.argusd.wait_over(t.id)
        clock.jump(8 * 86400)
        w.ends("node_slow", node)
