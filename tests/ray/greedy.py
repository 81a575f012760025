# SPDX-License-Identifier: Apache-2.0
"""A job that asks Ray for GPUs in every way there is, and tells where it got them: one line `GOT {"way": …}` for each.

greedy.py GPUS_PER_NODE NODES [dealt]: what it has leased, so that it knows what must fit; dealt: on nodes where Ray
cannot count, so that what once was beyond the lease never comes. It is run by test_binding_real.py."""

import collections
import json
import sys
import threading
import time

from ray._private.state import state
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as Affinity
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy as InGroup

import ray

K, N = int(sys.argv[1]), int(sys.argv[2])
PATIENCE = 60  # for what must come; what must not come is given
MOMENT = 3  # seconds to come all the same


def here():
    return ray.get_runtime_context().get_node_id()


@ray.remote(num_gpus=1)
def task(seconds=0.3):
    begin = time.time()
    threading.Event().wait(seconds)  # a task that takes so long
    return here(), begin, time.time()


@ray.remote(num_cpus=0)
def free():
    return here()


@ray.remote(num_gpus=1)
class Holder:
    def where(self):
        return here()


@ray.remote(num_gpus=1)
def parent():
    return ray.get(task.remote(0.1))[0]


@ray.remote
class Nested:
    """As verl's TaskRunner, Tune's controllers and the like: it asks from a process of its own."""

    def tasks(self):
        return ray.get([task.remote() for _ in range(3 * K * N)])

    def group(self):
        self.held = placement_group([{"GPU": 1, "CPU": 1}] * K, strategy="STRICT_PACK")
        return self.held.wait(PATIENCE), nodes_of(self.held)

    def drop(self):
        remove_placement_group(self.held)


def name_of(resources):
    return next((r[len("argus_node_") :] for r in resources if r.startswith("argus_node_")), "head")


def nodes_of(group):
    return [n for n in placement_group_table(group)["bundles_to_node_id"].values() if n]


def peak(runs):
    """The most that ran at once, by node."""
    best = collections.Counter()
    for node in {r[0] for r in runs}:
        now = 0
        for _, step in sorted([(r[1], 1) for r in runs if r[0] == node] + [(r[2], -1) for r in runs if r[0] == node]):
            now += step
            best[node] = max(best[node], now)
    return best


def got(way, by_node, **more):
    print("GOT " + json.dumps({"way": way, "nodes": {NAMES[n]: c for n, c in by_node.items()}, **more}), flush=True)


def released(killed=()):
    """Ray gives back what ended a moment later. A kill that met an actor at its start is said again."""
    end = time.monotonic() + PATIENCE
    mine = placement_group([{"GPU": K, "CPU": 1}] * N, strategy="SPREAD")
    while not mine.wait(1):
        assert time.monotonic() < end, "the lease does not get free"
        for a in killed:
            ray.kill(a)
    remove_placement_group(mine)


def by_tasks():
    got("tasks", peak(ray.get([task.remote() for _ in range(4 * K * N)])))
    spread = task.options(scheduling_strategy="SPREAD")
    got("tasks SPREAD", peak(ray.get([spread.remote() for _ in range(4 * K * N)])))
    nested = Nested.remote()
    got("nested tasks", peak(ray.get(nested.tasks.remote())))
    ray.kill(nested)


def by_actors():
    actors = [Holder.remote() for _ in range(2 * K * N)]
    asked = [a.where.remote() for a in actors]
    first, _ = ray.wait(asked, num_returns=K * N, timeout=PATIENCE)
    done, _ = ray.wait(asked, num_returns=len(asked), timeout=MOMENT)
    got("actors", collections.Counter(ray.get(done)), came=len(done), first=len(first))
    came = set(done)
    # What waits goes first: an actor that is killed while it gets the place of another is missed by
    # some versions of Ray.
    for _, a in sorted(zip(asked, actors, strict=True), key=lambda pair: pair[0] in came):
        ray.kill(a)
    released(actors)


def by_groups():
    bundle = {"GPU": 1, "CPU": 1}
    shapes = [
        ("PACK", [bundle] * (K * N)),
        ("SPREAD", [bundle] * (K * N)),
        ("PACK", [{"CPU": 1}] + [bundle] * (K * N)),
        ("STRICT_SPREAD", [{"GPU": K, "CPU": 1}] * N),
        ("STRICT_PACK", [bundle] * K),
    ]
    for strategy, bundles in shapes:
        group = placement_group(bundles, strategy=strategy)
        came, at = group.wait(PATIENCE), placement_group_table(group)["bundles_to_node_id"]
        gpus = collections.Counter()
        for i, b in enumerate(bundles):
            if came and b.get("GPU"):
                gpus[at[i]] += b["GPU"]
        got(f"group {strategy} of {len(bundles)}", gpus, came=came)
        remove_placement_group(group)
        released()


def as_verl():
    """Groups of K bundles, one for each node, made by actors at the same time; a task beside them has to wait."""
    nested = [Nested.remote() for _ in range(N)]
    made = ray.get([n.group.remote() for n in nested])
    got("groups of actors", collections.Counter(x for _, at in made for x in at), came=all(ok for ok, _ in made))
    beside = task.remote(0.1)
    early, _ = ray.wait([beside], timeout=MOMENT)
    one_more = placement_group([{"GPU": 1}])
    got("beside full groups", {}, came=bool(early) or one_more.wait(MOMENT))
    remove_placement_group(one_more)
    ray.get([n.drop.remote() for n in nested])
    if "dealt" in sys.argv:
        ray.cancel(beside)
    else:
        got("after the groups", {ray.get(beside, timeout=PATIENCE)[0]: 1})
    for n in nested:
        ray.kill(n)
    released()


def within_a_group():
    group = placement_group([{"GPU": 1, "CPU": 1}] * 2, strategy="STRICT_PACK")
    assert group.wait(PATIENCE)
    capture = parent.options(scheduling_strategy=InGroup(group, placement_group_capture_child_tasks=True))
    got("child within a group", {ray.get(capture.remote(), timeout=PATIENCE): 1})
    remove_placement_group(group)
    released()


def by_name_of_a_node():
    """What names its node itself gets it within the lease, and nothing outside."""
    for node, name in NAMES.items():
        if name == "head":
            continue
        try:
            strategy = Affinity(node, soft=False)
            at = ray.get(task.options(scheduling_strategy=strategy).remote(0.1), timeout=PATIENCE / 4)[0]
            got(f"affinity {name}", {at: 1})
        except (ray.exceptions.TaskUnschedulableError, ray.exceptions.GetTimeoutError):
            got(f"affinity {name}", {})


def without_gpus():
    spread = free.options(scheduling_strategy="SPREAD")
    got("no CPU", collections.Counter(ray.get([spread.remote() for _ in range(12)])))


def beyond():
    for strategy, n in (("STRICT_PACK", K + 1), ("PACK", K * N + 1), ("STRICT_SPREAD", N + 1)):
        group = placement_group([{"GPU": 1, "CPU": 1}] * n, strategy=strategy)
        got(f"beyond: {strategy} of {n}", {}, came=group.wait(MOMENT))
        remove_placement_group(group)
    large = task.options(num_gpus=K + 1).remote(0.1)
    got("beyond: one task", {}, came=bool(ray.wait([large], timeout=MOMENT)[0]))
    ray.cancel(large)


ray.init()
# The names of all nodes: ray.nodes() has those of the lease alone.
NAMES = {n["NodeID"]: name_of(n["Resources"]) for n in state.node_table() if n["Alive"]}
for way in (by_tasks, by_actors, by_groups, as_verl, within_a_group, by_name_of_a_node, without_gpus, beyond):
    way()
print("DONE", flush=True)
