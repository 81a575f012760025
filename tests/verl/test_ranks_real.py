# SPDX-License-Identifier: Apache-2.0
"""What the hook tells of real ranks of torch over gloo, each a process under the hook as in a job."""

import json
import os
import subprocess

import pytest
from hookfile import place_hook
from test_cmdline_real import verl_python

pytestmark = pytest.mark.verl

WORLD = 3
# A rank: it works by sleeping, rank 1 for longer, until each has told of three windows and more.
CODE = """
import json, os, pathlib, sys, threading
import torch, torch.distributed as dist
rank, place = int(os.environ["RANK"]), pathlib.Path(os.environ["ARGUS_ATTEMPT_DIR"]) / "ranks"
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=int(sys.argv[2]))
one = torch.ones(8)
dist.all_reduce(one, async_op=True).wait()
done = torch.zeros(1)
while not done.item():
    threading.Event().wait(0.5 if rank == 1 else 0.05)
    dist.all_reduce(one)
    dist.all_gather_object([None] * dist.get_world_size(), rank)
    try:
        (mine,) = place.glob(f"*-{rank}.json")
        told = len(json.loads(mine.read_text())["windows"])
    except ValueError:
        told = 0
    done = torch.tensor([float(told >= 3)])
    dist.all_reduce(done, op=dist.ReduceOp.MIN)
print("ended", one.shape)
"""


def judge(rank, one):
    assert (one["rank"], one["world"], one["node"]) == (rank, WORLD, f"w{rank}") and one["pid"]
    for w in one["windows"]:
        assert w["seconds"] >= 2.5 and w["calls"] > 0 and w["cpu"] >= 0 and w["faults"] >= 0
        assert w["work"] + w["wait"] == pytest.approx(w["seconds"], rel=0.05)


@pytest.mark.parametrize("version", ["0.5.0", "0.9.1"])
def test_a_rank_that_works_longer_waits_less(version, tmp_path):
    (tmp_path / "hook").mkdir()
    place_hook(tmp_path / "hook")
    (tmp_path / "attempt").mkdir()
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ARGUS"))}
    env = plain | {"PYTHONPATH": str(tmp_path / "hook"), "ARGUS_ATTEMPT_DIR": str(tmp_path / "attempt")}
    env["ARGUS_RANKS_WINDOW"] = "2.5"
    argv = [verl_python(version), "-c", CODE, str(tmp_path / "store"), str(WORLD)]
    ranks = [
        subprocess.Popen(argv, env={**env, "RANK": str(r), "ARGUS_NODE": f"w{r}"}, stdout=subprocess.PIPE, text=True)
        for r in range(WORLD)
    ]
    ended = [(r.communicate(timeout=240)[0].strip(), r.returncode) for r in ranks]
    assert ended == [("ended torch.Size([8])", 0)] * WORLD
    files = [next((tmp_path / "attempt/ranks").glob(f"*-{r}.json")) for r in range(WORLD)]
    told = [json.loads(f.read_text()) for f in files]
    assert len({one["id"] for one in told}) == 1
    for rank, one in enumerate(told):
        judge(rank, one)
    work = [sum(w["work"] for w in one["windows"][-3:]) for one in told]
    assert work[1] > 1.3 * max(work[0], work[2]), work
