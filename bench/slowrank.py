# SPDX-License-Identifier: Apache-2.0
"""slowrank - one rank of bench/slowranks: it works, meets the others in a gloo all-reduce, and works again.

    slowrank.py STORE RANK WORLD SECONDS FAULT DIRECTORY

FAULT, of this rank: "none"; "disk": it writes DISK_BYTES with each step and waits for the disk; "memory": it touches
more pages than its cgroup has room for; "cpu" and "network" are done to it from outside."""

import mmap
import os
import sys
import time

import torch
import torch.distributed as dist

DISK_BYTES, PAGES = 256 << 10, 96 << 20
STEP = 0.05  # seconds of a step, of which the processor works for a part; ranks of one machine share its cores


def compute(until):
    while time.process_time() < until:
        sum(range(2000))


def main():
    store, rank, world, seconds, fault, directory = sys.argv[1:]
    rank, world, end = int(rank), int(world), time.monotonic() + float(seconds)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world)
    grads, done = torch.ones(50_000), torch.zeros(1)
    path, pages = os.path.join(directory, f"written-{rank}"), mmap.mmap(-1, PAGES) if fault == "memory" else None
    while not done.item():
        compute(time.process_time() + STEP / 10)
        time.sleep(STEP / 2)
        if fault == "disk":
            with open(path, "wb", buffering=0) as f:
                f.write(os.urandom(DISK_BYTES))
                os.fsync(f.fileno())
        if pages:
            for at in range(0, PAGES, 16384):
                pages[at] = 1
        dist.all_reduce(grads)
        grads /= world
        done = torch.tensor([float(time.monotonic() > end)])
        dist.all_reduce(done, op=dist.ReduceOp.MAX)


main()
