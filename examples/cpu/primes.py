#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts prime numbers with one Ray task per slice, each on a GPU of its own, and tells which nodes did it."""

import argparse

import ray


@ray.remote(num_gpus=1)
def count(first, last):
    found = sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(max(first, 2), last))
    return found, ray.util.get_node_ip_address()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--below", type=int, default=100000)
    ap.add_argument("--slices", type=int, default=8)
    a = ap.parse_args()
    ray.init()
    edges = [a.below * i // a.slices for i in range(a.slices + 1)]
    total = 0
    tasks = [count.remote(first, last) for first, last in zip(edges, edges[1:], strict=False)]
    for i, task in enumerate(tasks):
        found, where = ray.get(task)
        total += found
        print(f"slice {i + 1}/{a.slices}: {found} primes from {where}", flush=True)
    print(f"{total} primes below {a.below}")


if __name__ == "__main__":
    main()
