# SPDX-License-Identifier: Apache-2.0
"""The account of placement groups, where Ray cannot keep it, and the dealing of bundles to nodes."""


class _ArgusClaims:
    """Which GPUs of the lease the job's placement groups hold: one key of Ray's internal store for each, taken by
    put-if-absent. Only for clusters whose nodes lack the share resources."""

    SPACE = b"argus"
    NEW = b"new "  # a claim whose group is being made, and since when

    def __init__(self, lease):
        from ray.experimental import internal_kv

        self.kv = internal_kv
        self.prefix = f"lease/{lease.id}/"
        self.keys = {n["name"]: [self._key(n["name"], i) for i in range(int(lease.gpus))] for n in lease.nodes}

    def _key(self, node, i):
        return f"{self.prefix}{node}/{i}".encode()

    def _all(self):
        return self.kv._internal_kv_list(self.prefix.encode(), namespace=self.SPACE)

    def room(self):
        """GPUs of each node that no group holds."""
        taken = set(self._all())
        return {node: sum(k not in taken for k in keys) for node, keys in self.keys.items()}

    def take(self, places):
        """places: GPUs by node. The keys, or None when another process was quicker."""
        import math
        import time

        got, value = [], self.NEW + str(int(time.time())).encode()
        for node, gpus in places.items():
            want = math.ceil(gpus - 1e-6)
            for key in self.keys[node]:
                if want and not self.kv._internal_kv_put(key, value, False, namespace=self.SPACE):
                    got.append(key)
                    want -= 1
            if want:
                self.drop(got)
                return None
        return got

    def name(self, keys, group):
        for key in keys:
            self.kv._internal_kv_put(key, group.encode(), True, namespace=self.SPACE)

    def drop(self, keys):
        for key in keys:
            self.kv._internal_kv_del(key, namespace=self.SPACE)

    def drop_if(self, is_over):
        for key in self._all():
            value = self.kv._internal_kv_get(key, namespace=self.SPACE)
            if value is not None and is_over(value):
                self.drop([key])

    def sweep(self):
        """Claims of groups that are gone without having been removed by anybody."""
        import time

        from ray._private.state import state
        from ray._raylet import PlacementGroupID

        def is_over(value):
            if value.startswith(self.NEW):
                return time.time() - int(value[len(self.NEW) :]) > 60
            found = state.placement_group_table(PlacementGroupID(bytes.fromhex(value.decode())))
            return not found or found.get("state") == "REMOVED"

        self.drop_if(is_over)


def _argus_deal(needs, strategy, room):
    """The node of each bundle, or None: needs are the GPUs of the bundles, room the free GPUs by node."""
    room, used, places = dict(room), set(), {}
    if strategy == "STRICT_PACK":
        fits = [n for n in room if room[n] >= sum(needs)]
        return [min(fits, key=room.get)] * len(needs) if fits else None
    for i in sorted(range(len(needs)), key=lambda i: -needs[i]):
        fits = [n for n in room if room[n] >= needs[i] and not (strategy == "STRICT_SPREAD" and n in used)]
        if not fits:
            return None
        if strategy == "PACK":
            node = max(fits, key=lambda n: (n in used, room[n]))
        else:
            node = min(fits, key=lambda n: (n in used, -room[n]))
        room[node] -= needs[i]
        used.add(node)
        places[i] = node
    return [places[i] for i in range(len(needs))]
