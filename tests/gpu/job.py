# SPDX-License-Identifier: Apache-2.0
"""A job on one GPU, run by tests/gpu/test_jobs.py: an actor of Ray that has it does what the first argument says.

job.py work GATE    tells where it is and whether NCCL works; holds its GPU idle until GATE.work is there, then works
                    until GATE.end is
job.py fill         allocates until the memory is full
job.py stray        writes to an address where nothing is
"""

import json
import os
import pathlib
import runpy
import select
import sys
import time

import ray

HOLD_GIB = 8
ASTRAY = str(pathlib.Path(__file__).with_name("astray.py"))


@ray.remote(num_gpus=1, runtime_env={"env_vars": {"RANK": "0"}})
class Rank:
    def look(self):
        import torch

        self.held = torch.empty(HOLD_GIB << 30, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        uuid = str(torch.cuda.get_device_properties(0).uuid)
        return {
            "visible": os.environ["CUDA_VISIBLE_DEVICES"],
            "gpus": ray.get_gpu_ids(),
            "uuid": uuid,
            "pid": os.getpid(),
        }

    def gather(self):
        """A group of one rank: NCCL starts, and sums."""
        import torch
        import torch.distributed as dist

        dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29511", rank=0, world_size=1)
        one = torch.ones(1, device="cuda")
        dist.all_reduce(one)
        dist.destroy_process_group()
        return {"sum": one.item(), "nccl": ".".join(map(str, torch.cuda.nccl.version()))}

    def work(self, gate):
        import torch

        a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
        while not pathlib.Path(gate + ".end").exists():
            for _ in range(20):
                a @ a
            torch.cuda.synchronize()

    def fill(self):
        import torch

        kept = []
        while True:
            kept.append(torch.empty(4 << 30, dtype=torch.uint8, device="cuda"))

    def stray(self):
        runpy.run_path(ASTRAY)


def tell(thing):
    print("GOT " + json.dumps(thing), flush=True)


def main():
    what, *rest = sys.argv[1:]
    ray.init()
    rank = Rank.remote()
    if what in ("fill", "stray"):
        ray.get(getattr(rank, what).remote())
    tell(ray.get(rank.look.remote()))
    tell(ray.get(rank.gather.remote()))
    while not pathlib.Path(rest[0] + ".work").exists():
        print(time.time(), flush=True)  # its output lives: only its GPU is idle
        select.select([], [], [], 1)
    work = rank.work.remote(rest[0])
    while not ray.wait([work], timeout=1)[0]:
        print(time.time(), flush=True)
    ray.get(work)


main()
