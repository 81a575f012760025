# SPDX-License-Identifier: Apache-2.0
"""Ray Core: pi by chance. Tasks count, an actor on each node adds up, all read one object."""

import json
import os
import pathlib

import numpy
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

import ray

POINTS, TASKS = 200_000, 8


@ray.remote(num_gpus=1)
def count(seeds, i):
    """How many points of a square are in its circle. seeds came by reference: Ray copies it once to each node."""
    points = numpy.random.default_rng(seeds[i]).random((POINTS, 2))
    return int(((points**2).sum(axis=1) < 1).sum()), ray.util.get_node_ip_address()


@ray.remote(num_gpus=1)
class Sum:
    """Keeps what it was told, on a GPU of its own."""

    def __init__(self):
        self.inside, self.nodes = 0, set()

    def add(self, counted):
        inside, node = counted
        self.inside += inside
        self.nodes.add(node)

    def result(self):
        return {"inside": self.inside, "counted_on": sorted(self.nodes), "node": ray.util.get_node_ip_address()}


def main():
    ray.init()
    group = placement_group([{"CPU": 1, "GPU": 1}] * 2, strategy="STRICT_SPREAD")  # whole or not at all
    ray.get(group.ready())
    sums = [Sum.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, i)).remote() for i in range(2)]
    seeds = ray.put(numpy.arange(TASKS))
    added = [sums[i % 2].add.remote(count.remote(seeds, i)) for i in range(TASKS)]  # on the other two GPUs
    ray.get(added)
    parts = ray.get([s.result.remote() for s in sums])
    pi = 4 * sum(p["inside"] for p in parts) / (POINTS * TASKS)
    text = json.dumps({"pi": pi, "parts": parts})
    print(text)
    pathlib.Path(os.environ["ARGUS_ATTEMPT_DIR"], "result.json").write_text(text)


if __name__ == "__main__":
    main()
