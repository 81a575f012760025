# SPDX-License-Identifier: Apache-2.0
"""The nodes of a lease: which of Ray's nodes they are, and how demands without GPUs are kept on them."""

from argus_say import _argus_say


def _argus_meets(expression, value):
    """A label selector's expression: v, !v, in(a,b), !in(a,b)."""
    body = expression[1:] if expression.startswith("!") else expression
    values = [v.strip() for v in body[3:-1].split(",")] if body.startswith("in(") else [body]
    return (value in values) != expression.startswith("!")


class _ArgusNodes:
    """The leased nodes, and demands without GPUs: each goes to any of these nodes, by a label selector where Ray has
    labels, else by the resource that its node has for itself, in turn. A soft affinity to another node becomes one to
    a leased node. A hard one can never be met, as on a cluster that has nothing else: it waits or fails, as Ray does
    then.

    With `spread: cluster` in the JobSpec these demands are free, but for the head: what asks for no CPU could land
    there, so it asks for a grain of the resource that all workers have."""

    GRAIN = 0.0001

    def __init__(self, lease):
        self.all, self.label, self.worker = lease["nodes"], lease.get("label"), lease.get("worker")
        self.is_free = lease.get("spread") == "cluster" or not self.all
        self.turn, self.plain = 0, self._selector(self._values(self.all))
        self.rows = None  # Ray's own nodes(), once it is imported

    # -- which they are --

    def resource(self, node):
        return node.get("resource") or "argus_node_" + node["name"]

    def next(self):
        self.turn += 1
        return self.all[self.turn % len(self.all)]

    def find(self, row):
        """The leased node of a row of ray.nodes(); None: it is not leased."""
        labels, resources = row.get("Labels") or {}, row.get("Resources") or {}
        for n in self.all:
            by_name = labels.get("argus.node") == n["name"] or "argus_node_" + n["name"] in resources
            if by_name or (n.get("id") and row.get("NodeID") == n["id"]):
                return n
        return None

    def _find_id(self, node_id):
        """A raylet that was started again has another id than the lease says: then Ray's list tells."""
        mine = [n for n in self.all if n.get("id") == node_id]
        rows = [] if mine or not self.rows else [r for r in self.rows() if r.get("NodeID") == node_id]
        return mine[0] if mine else self.find(rows[0]) if rows else None

    # -- labels --

    def _values(self, nodes):
        return [n["name"] if self.label == "argus.node" else n.get("id", "") for n in nodes]

    def _selector(self, values):
        values = [v for v in values if v]
        return f"in({','.join(values)})" if len(values) > 1 else values[0] if values else "none-of-the-lease"

    def select(self, selector, nodes):
        """The selector, restricted to the nodes. Its own condition on the same label stays in force."""
        if not selector and nodes is self.all:
            return {self.label: self.plain}
        values, theirs = self._values(nodes), dict(selector or {})
        if self.label in theirs:
            values = [v for v in values if _argus_meets(theirs[self.label], v)]
        return {**theirs, self.label: self._selector(values)}

    def select_all(self, options, nodes):
        """The options of a task or an actor, restricted to the nodes, and so is what it may fall back on."""
        bound = {**options, "label_selector": self.select(options.get("label_selector"), nodes)}
        if options.get("fallback_strategy"):
            bound["fallback_strategy"] = [
                {**f, "label_selector": self.select(f.get("label_selector"), nodes)}
                for f in options["fallback_strategy"]
            ]
        return bound

    # -- tasks and actors without GPUs --

    def _affinity(self, options):
        strategy = options.get("scheduling_strategy")
        return strategy if type(strategy).__name__ == "NodeAffinitySchedulingStrategy" else None

    def _names_its_node(self, options):
        affinity = self._affinity(options)
        named = any(str(name).startswith("node:") for name in options.get("resources") or ())  # as Serve's controller
        wanted = str((options.get("label_selector") or {}).get("ray.io/node-id", "!"))  # as Serve's proxies
        return bool(affinity and not affinity.soft) or named or not wanted.startswith(("!", "in("))

    def bind(self, options):
        """The options of a task or an actor without GPUs and outside of any group; the same object when there is
        nothing to do. What Serve puts on a node by name (its controller, its proxies) belongs there."""
        asked, names = options.get("resources") or {}, self._names_its_node(options)
        if self.is_free:
            grain = options.get("num_cpus") == 0 and self.worker and not names
            return {**options, "resources": {self.worker: self.GRAIN, **asked}} if grain else options
        if names and options.get("namespace") == "serve":
            return options
        bound, node = self._bind_affinity(options)
        if self.label:
            return self.select_all(bound, self.all)
        node = node or self.next()
        return {**bound, "resources": {**asked, self.resource(node): self.GRAIN}}

    def _bind_affinity(self, options):
        """The options with an affinity to a leased node, and that node; None: it has no affinity."""
        from copy import copy

        affinity = self._affinity(options)
        node = self._find_id(affinity.node_id) if affinity else None
        if not affinity or node:
            return options, node
        if not affinity.soft:
            _argus_say(
                f"this job wants something on Ray's node {affinity.node_id}, which is not in its lease: that waits or "
                "fails. 'spread: cluster' in the JobSpec gives what needs no GPU the whole cluster"
            )
            return options, None
        node, moved = self.next(), copy(affinity)
        moved.node_id = node.get("id")
        return {**options, "scheduling_strategy": moved if moved.node_id else None}, node

    # -- bundles without GPUs --

    def bind_bundles(self, bundles, selectors, at, strategy):
        """at: those with GPUs, which are bound already. Changed in place."""
        rest = [i for i in range(len(bundles)) if i not in at]
        if self.is_free:
            for i in rest:
                bundles[i] = self._off_the_head(bundles[i])
            return
        for i in rest if self.label else ():
            selectors[i] = self.select(selectors[i], self.all)
        if strategy == "STRICT_PACK":  # its labels are not looked at; with GPUs its node is named already
            rest = [] if at else rest[:1]
        elif self.label:
            rest = []
        for i in rest:
            node = self._roomiest() if strategy == "STRICT_PACK" else self.next()
            bundles[i][self.resource(node)] = 0.001

    def _off_the_head(self, bundle):
        asks = [str(name) for name, amount in bundle.items() if amount]
        can_be_there = asks and not any(n in ("CPU", "GPU") or n.startswith("node:") for n in asks)
        return {self.worker: self.GRAIN, **bundle} if self.worker and can_be_there else bundle

    def _roomiest(self):
        """The node with the most free CPUs."""
        if len(self.all) == 1:
            return self.all[0]
        try:
            from ray._private.state import state

            free = state.available_resources_per_node()
        except Exception:  # another Ray: any of them
            free = {}
        self.turn += 1
        turned = self.all[self.turn % len(self.all) :] + self.all[: self.turn % len(self.all)]
        return max(turned, key=lambda n: (free.get(n.get("id")) or {}).get("CPU", 0))
