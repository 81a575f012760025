# SPDX-License-Identifier: Apache-2.0
"""The lease: the job's share of Ray, and how a demand is bound to it. Ray itself is not changed."""

from argus_claims import _argus_deal, _ArgusClaims
from argus_nodes import _ArgusNodes
from argus_say import _argus_say


class _ArgusLease:
    """The job's share of Ray's GPUs, and how a demand is bound to it.

    Exact, on nodes that Argus started: each node has resources argus_share_0 … of amount 1, and the lease has one of
    them for itself. A demand of g GPUs asks for g/k of it beside its GPUs, k being the GPUs leased on each node, and a
    label selector names the nodes. So Ray counts tasks, actors and groups against the lease together; what is beyond
    it waits, as on a cluster that has nothing else, and whatever strategy the job chose still decides within it.

    Else, by dealing: groups get their nodes from an account of ours (_ArgusClaims), single demands are held to k by one
    of the implicit resources that each Ray node has (amount 1 of any name), which Ray cannot take into groups.

    Demands without GPUs go to the leased nodes too (_ArgusNodes)."""

    GRAIN = 0.0001
    NOWHERE = "argus_beyond_lease"  # no node has this resource

    def __init__(self, text):
        import json

        lease = json.loads(text)
        self.id = f"{lease['job']}-a{lease['attempt']}"
        self.gpus, self.nodes = float(lease["gpus"]), lease["nodes"]
        self.label, self.share = lease.get("label"), lease.get("share")
        self.places = _ArgusNodes(lease)
        self.exact = bool(self.share and self.label)
        self.total = self.gpus * len(self.nodes)
        self.where = ", ".join(f"{n['name']}: {self.gpus:g}" for n in self.nodes) or "no node"
        self.groups, self.long_lived, self.told_sum, self.turn = {}, 0.0, False, 0

    # -- words --

    def _tell(self, what):
        _argus_say(
            f"this job asks Ray for {what}, and its lease has {self.total:g} GPUs ({self.where}): what is beyond the "
            "lease waits. Ask for more with nnodes and n_gpus_per_node"
        )

    def _hold(self, gpus):
        """This process made an actor or a group that holds so many."""
        self.long_lived += gpus
        if self.long_lived > self.total + 1e-6 and not self.told_sum:
            self.told_sum = True
            self._tell(f"{self.long_lived:g} GPUs at once by actors and placement groups")

    def _let_go(self, gpus):
        self.long_lived -= gpus

    def _amount(self, gpus, of):
        import math

        part = gpus / of
        return math.ceil(part - 1e-6) if part > 1 else max(self.GRAIN, math.floor(part * 10000 + 1e-6) / 10000)

    # -- tasks and actors --

    def _in_group(self, options):
        from ray._private.worker import global_worker
        from ray.util.placement_group import get_current_placement_group

        strategy, group = options.get("scheduling_strategy"), options.get("placement_group", "default")
        capture = options.get("placement_group_capture_child_tasks")
        if strategy is not None:
            if type(strategy).__name__ != "PlacementGroupSchedulingStrategy":
                return False
            group, capture = strategy.placement_group, strategy.placement_group_capture_child_tasks
        if isinstance(group, str):
            if capture is None:
                capture = global_worker.connected and global_worker.should_capture_child_tasks_in_placement_group
            group = get_current_placement_group() if capture else None
        return group is not None and not group.is_empty

    def _place_one(self, gpus):
        """(resource, amount, nodes) for a demand outside of any group. NOWHERE goes without nodes: what names nodes by
        their id and can never be there fails at once in Ray, where it should wait."""
        if gpus > self.gpus + 1e-6 or not self.nodes:
            self._tell(f"{gpus:g} GPUs on one node")
        if self.gpus <= 0 or not self.nodes:
            return self.NOWHERE, 1, []
        if self.exact:
            return self.share, self._amount(gpus, self.gpus), self.nodes
        room = _ArgusClaims(self).room() if self.gpus >= 1 else {n["name"]: self.gpus for n in self.nodes}
        most = max(room.values())
        if most < gpus:
            if gpus <= self.gpus:
                self._tell(f"{gpus:g} GPUs beside its placement groups")
            return self.NOWHERE, 1, []
        nodes = [n for n in self.nodes if room[n["name"]] >= most]
        if not self.label:  # one of them, in turn: a resource names one node
            self.turn += 1
            nodes = [nodes[self.turn % len(nodes)]]
        return "node:__internal_implicit_resource_argus:" + self.id, self._amount(gpus, most), nodes

    def bind_one(self, options):
        """The options of a task or an actor, bound; the same object when there is nothing to do."""
        gpus = options.get("num_gpus") or 0
        if gpus > 0:
            if self._in_group(options):
                return options
            name, amount, nodes = self._place_one(gpus)
            resources = {**(options.get("resources") or {}), name: amount}
            bound = {**options, "resources": resources}
            if self.label and nodes:
                return self.places.select_all(bound, nodes)
            if nodes:
                resources[self.places.resource(nodes[0])] = 0.001
            return bound
        return options if self._in_group(options) else self.places.bind(options)

    def made_actor(self, handle, gpus):
        from weakref import finalize

        if gpus <= self.gpus + 1e-6:  # else it never comes, and that was told
            self._hold(gpus)
            finalize(handle, self._let_go, gpus).atexit = False

    # -- groups --

    def bind_group(self, asked):
        """asked: the arguments of placement_group(), changed in place. The claims to be named after the group."""
        bundles, selectors = asked.get("bundles"), asked.get("bundle_label_selector")
        if not isinstance(bundles, list) or not all(isinstance(b, dict) for b in bundles):
            return None  # Ray says what is wrong with them
        if selectors and len(selectors) != len(bundles):
            return None
        bundles = [dict(b) for b in bundles]
        selectors = [dict(s) for s in selectors] if selectors else [{} for _ in bundles]
        at = [i for i, b in enumerate(bundles) if b.get("GPU", 0) > 0]
        strategy = self._strategy(asked)
        claims = self._bind_bundles(bundles, selectors, at, strategy) if at else None
        self.places.bind_bundles(bundles, selectors, at, strategy)
        asked["bundles"] = bundles
        if any(selectors):
            asked["bundle_label_selector"] = selectors
        return claims

    def _strategy(self, asked):
        topology = asked.get("topology_strategy") or {}
        return topology.get("ray.io/node-id") or asked.get("strategy") or "PACK"

    def _bind_bundles(self, bundles, selectors, at, strategy):
        needs = [bundles[i]["GPU"] for i in at]
        fits = self._fits(needs, strategy)
        if self.gpus <= 0 or not self.nodes:
            for i in at:
                bundles[i][self.NOWHERE] = 1
            return None
        if self.exact:
            for i in at:
                bundles[i][self.share] = self._amount(bundles[i]["GPU"], self.gpus)
                selectors[i] = self.places.select(selectors[i], self.nodes)
            return self._pack(bundles, at, needs, fits) if strategy == "STRICT_PACK" else None
        places, claims = self._deal(needs, strategy) if fits else (None, None)
        by_name = {n["name"]: n for n in self.nodes}
        for k, i in enumerate(at):
            if places is None:
                bundles[i][self.NOWHERE] = 1
                continue
            bundles[i][self.places.resource(by_name[places[k]])] = 0.001
            if self.label:
                selectors[i] = self.places.select(selectors[i], [by_name[places[k]]])
        return claims

    def _pack(self, bundles, at, needs, fits):
        """Ray (2.51 at least) does not look at the labels of a STRICT_PACK group: its node is chosen here, by the
        account, and named by the node's own resource. When there is no room it waits on one of them."""
        places = claims = None
        if fits and len(self.nodes) > 1 and self.gpus >= 1:
            places, claims = self._deal(needs, "STRICT_PACK", False)
        self.turn += 1
        node = self.nodes[self.turn % len(self.nodes)]
        if places:
            node = next(n for n in self.nodes if n["name"] == places[0])
        bundles[at[0]][self.places.resource(node)] = 0.001
        return claims

    def _fits(self, needs, strategy):
        """Does the lease hold it when it is empty? If not, say so."""
        largest = sum(needs) if strategy == "STRICT_PACK" else max(needs)
        if largest > self.gpus + 1e-6:
            self._tell(f"{largest:g} GPUs on one node")
        elif sum(needs) > self.total + 1e-6:
            self._tell(f"a placement group of {sum(needs):g} GPUs")
        elif strategy == "STRICT_SPREAD" and len(needs) > len(self.nodes):
            self._tell(f"GPUs on {len(needs)} nodes")
        else:
            return True
        return False

    def _deal(self, needs, strategy, tell=True):
        claims = _ArgusClaims(self)
        for swept in (False, True):
            for _ in range(8):
                places, sums = _argus_deal(needs, strategy, claims.room()), {}
                if places is None:
                    break
                for i, node in enumerate(places):
                    sums[node] = sums.get(node, 0) + needs[i]
                keys = claims.take(sums)
                if keys is not None:
                    return places, keys
            if not swept:
                claims.sweep()
        if tell:
            self._tell("more GPUs by placement groups than it has leased (this one waits for ever)")
        return None, None

    def made_group(self, group, asked, claims):
        if claims:
            _ArgusClaims(self).name(claims, group.id.hex())
        gpus = sum(b.get("GPU", 0) for b in asked["bundles"])
        if 0 < gpus <= self.total + 1e-6:
            self.groups[group.id.hex()] = gpus
            self._hold(gpus)

    def removed_group(self, group):
        name = group.id.hex()
        self._let_go(self.groups.pop(name, 0))
        if self.gpus >= 1 and (not self.exact or len(self.nodes) > 1):
            _ArgusClaims(self).drop_if(lambda value: value == name.encode())

    # -- names --

    def namespace(self, name):
        """Names that a library has once for the whole cluster, where each job needs its own: two jobs of verl 0.9 would
        share one TransferQueue and train on each other's answers."""
        return f"{name}.{self.id}" if name == "transfer_queue" else name
