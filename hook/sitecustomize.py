# SPDX-License-Identifier: Apache-2.0
"""The Argus hook: first on PYTHONPATH of every Python process of a job.

Python imports a module of this name by itself when it starts. We are quick, say
nothing, break nothing, and leave the name to whoever had it before us: the
sitecustomize that Python would have found without this directory is run as the
real one. No other module is here, so nothing of a job can be shadowed, and beside
an installed copy stands a plain file called __pycache__, so that no process of a
job ever writes a cache here. Works on Python 3.8 and newer.

Where argusd says what the job has leased (ARGUS_LEASE), the job's own import of
Ray is watched and three functions of Ray are wrapped: what they are asked for is
bound to the lease before Ray sees it (class _ArgusLease). Ray itself is never
imported from here. If anything of this fails, Ray is left as it is, and one line
about it goes to stderr and to debug/binding.txt of the attempt; argusd reads back
from Ray where things really are.

In a worker of Ray, the first one of the attempt on its node starts our scout there: a small program of its own
that copies the workers' logs to the shared root and tells what it found there when the job fails.

Where argusd names a file (ARGUS_SECRETS), its values are put into the environment.

Where argusd says what code the job is to run (ARGUS_PROOF), what a process really
imported is written to proof/ of the attempt, and what is not as it was to be, too:
the shepherd ends the attempt then (class _ArgusProof). A process that wants another
verl on purpose starts without that variable."""


# ---- the sitecustomize of others ----


def _argus_find_next():
    """The spec of the sitecustomize that Python would have found without us, or None."""
    import os
    import sys
    from importlib.machinery import PathFinder

    here = os.path.realpath(os.path.dirname(os.path.abspath(__file__)))
    # Another copy of this file may be further down the path: each runs once.
    done = sys.__dict__.setdefault("_argus_hook_dirs", set())
    done.add(here)

    def is_other(entry):
        return isinstance(entry, str) and os.path.realpath(entry or os.curdir) not in done

    others = [entry for entry in sys.path if is_other(entry)]
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        spec = find and find("sitecustomize", others if finder is PathFinder else None)
        if spec is not None:
            return spec if getattr(spec.loader, "exec_module", None) else None
    return None


def _argus_chain():
    import sys

    try:
        spec = _argus_find_next()
        if spec is None:
            return
        from importlib.util import module_from_spec

        module = module_from_spec(spec)
    except Exception:  # a job never fails because of us
        return
    # Import gives what stands in sys.modules at the end, so from here on the name is theirs. What
    # they raise goes the way it would have gone without us: Python tells it and starts.
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


# ---- saying something ----


def _argus_say(text, said=set()):  # noqa: B006  (what this process has said already)
    import sys

    if text in said:
        return
    said.add(text)
    try:
        sys.stderr.write("argus: " + text + "\n")
        sys.stderr.flush()
    except Exception:  # there is no stderr
        pass


def _argus_note(what, error):
    """Something of the binding failed: one line for the job, one for argusd's read-back."""
    import os

    text = " ".join(f"{what}: {type(error).__name__}: {error}".split())[:300]
    _argus_say("GPU demand could not be bound to the lease (" + text + ")")
    try:
        with open(os.environ["ARGUS_ATTEMPT_DIR"] + "/debug/binding.txt", "a") as f:
            f.write(text + "\n")
    except Exception:  # no directory, or the shared root is away
        pass


# ---- secrets ----


def _argus_take_secrets():
    """In a worker of Ray: what is secret in the job's environment comes by a file that only its user can read, and
    not through Ray. The driver has it already, and so do children of this process: there the name is empty."""
    import os

    path = os.environ.get("ARGUS_SECRETS")
    if not path:
        return
    try:
        import json

        with open(path, encoding="utf-8") as f:
            os.environ.update({name: value for name, value in json.load(f).items() if name})
        os.environ["ARGUS_SECRETS"] = ""
    except Exception as e:  # no words of the file itself
        why = getattr(e, "strerror", None) or type(e).__name__
        _argus_say(f"the job's secrets could not be read from {path}: {why}")


# ---- the scout of this node ----


def _argus_lease_name(node_id):
    """Our name of a node of the lease, by Ray's id of it; None where nobody says it."""
    import json
    import os

    nodes = json.loads(os.environ.get("ARGUS_LEASE") or "{}").get("nodes") or []
    return next((n["name"] for n in nodes if n.get("id") == node_id), None)


def _argus_scout_place(path):
    """Make the scout's directory. True: it needs a scout; None: it is somebody else's, since /tmp is everybody's."""
    import os
    import time
    from fcntl import LOCK_EX, LOCK_NB, flock

    try:
        os.mkdir(path, 0o700)
        return True
    except FileExistsError:
        if os.lstat(path).st_uid != os.getuid():
            return None
    try:
        with open(path + "/lock", "r+") as f:
            flock(f, LOCK_EX | LOCK_NB)
        return True  # whoever held it has died
    except FileNotFoundError:  # before it held it, or it has just begun
        return time.time() - os.stat(path).st_mtime > 10
    except OSError:  # it lives
        return False


def _argus_scout():
    """In a worker of Ray: leave word for the scout of the attempt on this node, and start it where there is none. The
    shepherd does the same on the driver's node (shepherd/scout.h)."""
    import os
    import sys

    env = os.environ
    raylet, attempt = env.get("RAY_RAYLET_PID"), env.get("ARGUS_ATTEMPT_DIR")
    argv = raylet and attempt and _argus_argv()
    if not argv or not any(a.endswith("default_worker.py") for a in argv[:8]):
        return
    host = os.uname()
    name = f"argus-{os.getuid()}-{env['ARGUS_JOB_ID']}-a{env['ARGUS_ATTEMPT']}-{host.nodename}-{raylet}"
    place = "/tmp/" + name
    needs_scout = _argus_scout_place(place)
    if needs_scout is None:
        return
    mark = f"{place}/{env.get('RAY_JOB_ID')}-{os.getpid()}"
    os.close(os.open(mark, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    if not needs_scout:
        return
    argus = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    program = f"{argus}/bin/{host.machine}/argus-shepherd"
    ids = [a.partition("=")[2] for a in argv if a.startswith("--node-id=")]
    node = (ids and _argus_lease_name(ids[0])) or host.nodename
    path = os.path.dirname(sys.executable or "/usr/bin/") + ":" + env.get("PATH", "/usr/bin:/bin")
    null = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)]
    words = [program, "--scout", attempt, place, raylet, node]
    try:
        os.waitpid(os.posix_spawn(program, words, {"PATH": path}, file_actions=null), 0)
    except OSError:  # no such program here: there is no scout on this node
        os.unlink(mark)
        os.rmdir(place)


# ---- the account of groups, where Ray cannot keep it ----


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
        """places: GPUs by node. The keys, or None when somebody was quicker."""
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


# ---- the lease ----


def _argus_meets(expression, value):
    """A label selector's expression: v, !v, in(a,b), !in(a,b)."""
    body = expression[1:] if expression.startswith("!") else expression
    values = [v.strip() for v in body[3:-1].split(",")] if body.startswith("in(") else [body]
    return (value in values) != expression.startswith("!")


class _ArgusLease:
    """What the job has of Ray's GPUs, and how a demand is bound to it.

    Exact, on nodes that Argus started: each node has resources argus_share_0 … of amount 1, and the lease has one of
    them for itself. A demand of g GPUs asks for g/k of it beside its GPUs, k being the GPUs leased on each node, and a
    label selector names the nodes. So Ray counts tasks, actors and groups against the lease together; what is beyond
    it waits, as on a cluster that has nothing else, and whatever strategy the job chose still decides within it.

    Else, by dealing: groups get their nodes from an account of ours (_ArgusClaims), single demands are held to k by one
    of the implicit resources that each Ray node has (amount 1 of any name), which Ray cannot take into groups.

    Demands without GPUs stay free, but for the head: what asks for no CPU could land there, so it asks for a grain of
    the resource that all workers have. What names its node itself (hard affinity) is left alone."""

    GRAIN = 0.0001
    NOWHERE = "argus_beyond_lease"  # no node has this resource

    def __init__(self, text):
        import json

        lease = json.loads(text)
        self.id = f"{lease['job']}-a{lease['attempt']}"
        self.gpus, self.nodes = float(lease["gpus"]), lease["nodes"]
        self.label, self.share, self.worker = lease.get("label"), lease.get("share"), lease.get("worker")
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

    # -- labels --

    def _select(self, selector, nodes):
        """The selector that also holds to the nodes. What it says of the same label counts too."""
        values = [n["name"] if self.label == "argus.node" else n["id"] for n in nodes]
        theirs = dict(selector or {})
        if self.label in theirs:
            values = [v for v in values if _argus_meets(theirs[self.label], v)]
        mine = f"in({','.join(values)})" if len(values) > 1 else values[0] if values else "none-of-the-lease"
        return {**theirs, self.label: mine}

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
                bound["label_selector"] = self._select(options.get("label_selector"), nodes)
                if options.get("fallback_strategy"):
                    bound["fallback_strategy"] = [
                        {**f, "label_selector": self._select(f.get("label_selector"), nodes)}
                        for f in options["fallback_strategy"]
                    ]
            elif nodes:
                resources[self._resource(nodes[0])] = 0.001
            return bound
        if options.get("num_cpus") == 0 and self.worker and not self._names_its_node(options):
            return {**options, "resources": {self.worker: self.GRAIN, **(options.get("resources") or {})}}
        return options

    def _names_its_node(self, options):
        strategy = options.get("scheduling_strategy")
        hard = type(strategy).__name__ == "NodeAffinitySchedulingStrategy" and not strategy.soft
        named = any(str(name).startswith("node:") for name in options.get("resources") or ())  # as Serve's controller
        wanted = str((options.get("label_selector") or {}).get("ray.io/node-id", "!"))  # as Serve's proxies
        return hard or named or not wanted.startswith(("!", "in(")) or self._in_group(options)

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
        bundles = [self._off_the_head(b) for b in bundles]
        selectors = [dict(s) for s in selectors] if selectors else [{} for _ in bundles]
        at = [i for i, b in enumerate(bundles) if b.get("GPU", 0) > 0]
        claims = self._bind_bundles(bundles, selectors, at, self._strategy(asked)) if at else None
        asked["bundles"] = bundles
        if any(selectors):
            asked["bundle_label_selector"] = selectors
        return claims

    def _strategy(self, asked):
        topology = asked.get("topology_strategy") or {}
        return topology.get("ray.io/node-id") or asked.get("strategy") or "PACK"

    def _off_the_head(self, bundle):
        asks = [str(name) for name, amount in bundle.items() if amount]
        can_be_there = asks and not any(n in ("CPU", "GPU") or n.startswith("node:") for n in asks)
        return {self.worker: self.GRAIN, **bundle} if self.worker and can_be_there else dict(bundle)

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
                selectors[i] = self._select(selectors[i], self.nodes)
            return self._pack(bundles, at, needs, fits) if strategy == "STRICT_PACK" else None
        places, claims = self._deal(needs, strategy) if fits else (None, None)
        by_name = {n["name"]: n for n in self.nodes}
        for k, i in enumerate(at):
            if places is None:
                bundles[i][self.NOWHERE] = 1
                continue
            bundles[i][self._resource(by_name[places[k]])] = 0.001
            if self.label:
                selectors[i] = self._select(selectors[i], [by_name[places[k]]])
        return claims

    def _resource(self, node):
        return node.get("resource") or "argus_node_" + node["name"]

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
        bundles[at[0]][self._resource(node)] = 0.001
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


# ---- the proof of what was imported ----


def _argus_argv():
    """What this process was started with, before anybody changed it."""
    import sys

    argv = getattr(sys, "orig_argv", None)
    if argv is None:  # before Python 3.10
        with open("/proc/self/cmdline", "rb") as f:
            argv = [a.decode("utf-8", "replace") for a in f.read(100000).split(b"\0")]
    return argv


class _ArgusProof:
    """What this process imported, against what the job's spec said.

    A record is a file of proof/: KIND-NODE-N.json, and mismatch-KIND-NODE-N.json of a process that has not what the
    job asked for. N counts up to a limit, so that a node with hundreds of processes has a few files; each process
    looks for itself all the same. A record is written beside its name and linked to it: whole or not there."""

    LIMITS = {"driver": 1, "worker": 3, "child": 2}  # files of each kind on one node, mismatches apart
    LIST_MAX, TEXT_MAX = 256, 4096  # of sys.path, in one record

    def __init__(self, text):
        import json
        import os

        self.want = json.loads(text)
        self.dir = os.environ["ARGUS_ATTEMPT_DIR"] + "/proof"
        self.pid, self.argv = os.getpid(), _argus_argv()
        self.own, self.told, self.verl = None, set(), None

    # -- who we are --

    def _kind(self):
        import os

        words = " ".join(self.argv[:8])
        if os.getpid() != self.pid or "multiprocessing" in words:
            return "child"
        if os.environ.get("ARGUS_DRIVER_NODE"):  # the shepherd's command has it, and nobody else
            return "driver"
        return "worker" if "default_worker.py" in words else "child"

    def _node(self):
        """Our name of this machine where somebody says it, else its own."""
        import os

        name = os.environ.get("ARGUS_DRIVER_NODE")
        ids = [a.partition("=")[2] for a in self.argv if a.startswith("--node-id=")]
        if not name and ids:
            name = _argus_lease_name(ids[0])
        return name or os.uname().nodename

    def _main(self):
        """The program or module that runs, without its arguments."""
        import os
        import sys

        for i, a in enumerate(self.argv[1:], 1):
            if a == "-c":
                return "-c"
            if a == "-m":
                return " ".join(self.argv[i : i + 2])
            if not a.startswith("-"):
                return os.path.abspath(a)
        return os.path.abspath(sys.argv[0]) if getattr(sys, "argv", [""])[0] else ""

    # -- what there is --

    def _version_of(self, name):
        """Of the module where it was imported, else of what is installed."""
        import sys

        module = sys.modules.get(name)
        if module is not None:
            return str(getattr(module, "__version__", "") or "") or None
        from importlib import metadata

        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return None

    def _reward(self):
        """The file that the spec's reward function is in, as this process would find it. Nothing is imported."""
        import os
        from importlib.machinery import PathFinder

        asked = self.want.get("reward")
        if not asked or "/" in asked:
            return os.path.realpath(asked) if asked and os.path.exists(asked) else None
        path, spec = None, None
        parts = asked.split(".")
        for i in range(len(parts)):
            spec = PathFinder.find_spec(".".join(parts[: i + 1]), path)
            if spec is None:
                return None
            path = spec.submodule_search_locations
        return spec.origin

    def _record(self, versions):
        import os
        import sys
        import time

        cut = [str(p)[: self.TEXT_MAX] for p in sys.path[: self.LIST_MAX]]
        try:
            cwd = os.getcwd()
        except OSError:
            cwd = None
        record = {
            "version": 1,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "kind": self._kind(),
            "node": self._node(),
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "main": self._main(),
            "cwd": cwd,
            "python": sys.version.split()[0],
            "executable": sys.executable,
            "verl": self.verl,
            "code": self.want.get("code"),
            "working_dir": self.want.get("working_dir"),
            "snapshot": self.want.get("snapshot"),
            "hash": self.want.get("hash"),
        }
        if versions:
            reward = self.want.get("reward")
            record.update(
                torch=self._version_of("torch"),
                ray=self._version_of("ray"),
                reward={"asked": reward, "file": self._reward()} if reward else None,
            )
        return {**record, "sys_path": cut}

    # -- files --

    def _names(self, prefix):
        kind = self._kind()
        base = f"{prefix}{kind}-{self._node()}".replace("/", "_")[:180]
        return [f"{self.dir}/{base}-{n + 1}.json" for n in range(self.LIMITS[kind])]

    def _place(self, new, names):
        """One of the names for the new file, None when all are taken."""
        import os

        for name in names:
            try:
                os.link(new, name)
                return name
            except FileExistsError:
                continue
            except OSError:  # a file system without hard links
                if not os.path.exists(name):
                    os.rename(new, name)
                    return name
        return None

    def _write(self, versions, mismatch=None):
        import json
        import os

        prefix = "mismatch-" if mismatch else ""
        names = self._names(prefix)
        mine = None if prefix or not self.own or self.own[0] != os.getpid() else self.own[1]
        if not mine and all(map(os.path.exists, names)):
            return  # the rest is not cheap
        record = self._record(versions)
        if mismatch:
            record["mismatch"] = mismatch
        new = f"{self.dir}/.new-{record['host']}-{os.getpid()}"
        try:
            with open(new, "wb") as f:
                f.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace"))
            if mine:
                os.rename(new, mine)
            else:
                mine = self._place(new, names)
        finally:
            if os.path.lexists(new):
                os.unlink(new)
        if mine and not prefix:
            self.own = (os.getpid(), mine)

    # -- moments --

    def _mismatch(self, what, expected, found):
        import os

        if (what, os.getpid()) in self.told:
            return
        self.told.add((what, os.getpid()))
        self._write(False, {"what": what, "expected": expected, "found": found})

    def _is_there(self, path):
        """A directory, also where this machine has not heard yet that it was made."""
        import os
        import time

        for _ in range(10):
            if os.path.isdir(path):
                return True
            try:
                os.listdir(os.path.dirname(path.rstrip("/")))  # an NFS client asks its server then
            except OSError:
                pass
            time.sleep(0.1)
        return False

    def begin(self):
        import os

        if not os.path.isdir(self.dir):
            return
        for what in ("code", "working_dir"):
            path = self.want.get(what)
            if path and not self._is_there(path):
                self._mismatch(what, path, None)
        if not self.want.get("expect") and self._kind() == "driver":
            self._write(False)

    def found(self, spec):
        """verl is about to be imported, from this place."""
        import os

        places = list(spec.submodule_search_locations or ()) if spec else []
        file = spec.origin if spec and spec.has_location else places[0] if places else None
        self.verl = {"version": None, "file": file}
        code = self.want.get("code")
        if not code or not self.want.get("expect"):
            return
        below = code.rstrip("/") + "/"
        if not file or not (file.startswith(below) and "/../" not in file or self._is_below(file, code)):
            self._mismatch("verl", below + "verl", os.path.abspath(file) if file else None)

    def _is_below(self, file, code):
        import os

        return os.path.realpath(file).startswith(os.path.realpath(code).rstrip("/") + "/")

    def imported(self, module):
        if module.__name__ == "verl":
            version = getattr(module, "__version__", None)
            self.verl = {"version": str(version) if version else None, "file": getattr(module, "__file__", None)}
        self._write(True)

    def changes(self):
        """For _ArgusFinder. A job that is to have a verl is proven by its import, any other by that of Ray."""
        names = ["verl"] if self.want.get("expect") else ["verl", "ray"]
        return {name: _argus_quiet(self.imported) for name in names}

    def watches(self):
        return {"verl": _argus_quiet(self.found)}


def _argus_quiet(function):
    def quiet(*args):
        try:
            function(*args)
        except Exception:  # no directory, no space, no right: a job never fails because of us
            pass

    return quiet


def _argus_proof():
    """None where nothing is to be proven."""
    import os
    import sys

    try:
        proof = _ArgusProof(os.environ["ARGUS_PROOF"])
    except Exception:
        return None
    _argus_quiet(proof.begin)()
    verl = sys.modules.get("verl")
    if verl is not None:  # by a .pth file
        _argus_quiet(proof.found)(verl.__spec__)
        _argus_quiet(proof.imported)(verl)
    return proof


# ---- Ray's functions ----


def _argus_wrap_groups(module, lease):
    from functools import wraps
    from inspect import signature

    create, remove = module.placement_group, module.remove_placement_group
    shape = signature(create)

    @wraps(create)
    def placement_group(*args, **kwargs):
        try:
            call = shape.bind(*args, **kwargs)
            claims = lease.bind_group(call.arguments)
        except Exception as e:
            _argus_note("placement_group", e)
            return create(*args, **kwargs)
        group = create(*call.args, **call.kwargs)
        try:
            lease.made_group(group, call.arguments, claims)
        except Exception as e:
            _argus_note("placement_group", e)
        return group

    @wraps(remove)
    def remove_placement_group(placement_group):
        done = remove(placement_group)
        try:
            lease.removed_group(placement_group)
        except Exception as e:
            _argus_note("remove_placement_group", e)
        return done

    module.placement_group, module.remove_placement_group = placement_group, remove_placement_group


def _argus_wrap_remote(cls, lease, is_actor):
    from functools import wraps

    remote = cls._remote

    @wraps(remote)
    def _remote(self, *args, **options):
        bound = options
        try:
            bound = lease.bind_one(options)
            if is_actor and bound.get("namespace"):
                bound = {**bound, "namespace": lease.namespace(bound["namespace"])}
        except Exception as e:
            _argus_note("remote", e)
        made = remote(self, *args, **bound)
        try:
            if is_actor and bound.get("resources") is not options.get("resources") and options.get("num_gpus"):
                lease.made_actor(made, options["num_gpus"])
        except Exception as e:
            _argus_note("remote", e)
        return made

    cls._remote = _remote


def _argus_wrap_names(module, lease):
    from functools import wraps

    find = module.get_actor

    @wraps(find)
    def get_actor(name, namespace=None):
        return find(name, lease.namespace(namespace))

    module.get_actor = get_actor


class _ArgusFinder:
    """On sys.meta_path: finds a module as Python does, and has it changed at the end of its import."""

    def __init__(self, changes, watches):
        self.changes, self.watches = changes, watches

    def find_spec(self, name, path=None, target=None):
        change = self.changes.get(name)
        return self._find(name, path, target, change) if change else None

    def _find(self, name, path, target, change):
        spec = self._ask_others(name, path, target)
        if name in self.watches:
            self.watches[name](spec)
        if spec is not None and getattr(spec.loader, "exec_module", None):
            try:
                self._arm(spec.loader, name, change)
            except Exception as e:
                if name not in self.watches:
                    _argus_note(name, e)
        return spec

    def _ask_others(self, name, path, target):
        import sys

        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                return spec
        return None

    def _arm(self, loader, name, change):
        run = loader.exec_module

        def exec_module(module):
            run(module)
            try:
                change(module)
                self.changes.pop(name, None)
            except Exception as e:
                _argus_note(name, e)

        loader.exec_module = exec_module


def _argus_lease_changes():
    import os

    text = os.environ.get("ARGUS_LEASE")
    if not text:
        return {}
    try:
        lease = _ArgusLease(text)
    except Exception as e:
        _argus_note("ARGUS_LEASE", e)
        return {}
    return {
        "ray.util.placement_group": lambda m: _argus_wrap_groups(m, lease),
        "ray.remote_function": lambda m: _argus_wrap_remote(m.RemoteFunction, lease, False),
        "ray.actor": lambda m: _argus_wrap_remote(m.ActorClass, lease, True),
        "ray._private.worker": lambda m: _argus_wrap_names(m, lease),
    }


def _argus_watch():
    import sys

    if any(type(f).__name__ == "_ArgusFinder" for f in sys.meta_path):
        return
    changes, proof = _argus_lease_changes(), _argus_proof()
    if proof:
        changes.update(proof.changes())
    if changes:
        sys.meta_path.insert(0, _ArgusFinder(changes, proof.watches() if proof else {}))


_argus_quiet(_argus_scout)()
_argus_take_secrets()
_argus_quiet(_argus_watch)()
_argus_chain()
