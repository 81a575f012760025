# SPDX-License-Identifier: Apache-2.0
"""A network check: all-reduce over all leased nodes and over each pair of them, as training does it.

One actor sits on each node. First each opens a port and the others connect, so that a node that cannot be reached is
named and not waited for; then torch.distributed (NCCL where there are GPUs, else Gloo) measures each pair (latency of
a KiB, bandwidth of 4 MiB) and the whole ring in several sizes. argusd runs it as a job ('argus node check --net'),
reads --result and judges it against the baseline that it keeps for each pair.

Without argusd, on each host: argus_netcheck.py --rank R --hosts a=10.0.0.1,b=10.0.0.2 --port 28999. A node's figure is
then that of its best pair: a slow node spoils all of its pairs, and not its neighbours' others. The exit status is 1
when a node is below 80 % of the median of the nodes, or of its own best in the file --best.
"""

import argparse
import datetime
import itertools
import json
import os
import pathlib
import socket
import statistics
import sys
import time

LEAST = 0.8
SECONDS = 0.5  # of each measurement, about
MIB = 1 << 20  # numbers of 4 bytes
SIZES = (256, 16 << 10, 256 << 10, MIB, 4 * MIB)  # numbers, of the ring


def judge(pairs, best):
    """pairs: {(a, b): Mbit/s}, best: {node: Mbit/s}. Each node's figure, and a sentence for each that is too slow."""
    figures = {}
    for (a, b), mbps in pairs.items():
        for node in (a, b):
            figures[node] = max(figures.get(node, 0), mbps)
    middle = statistics.median(figures.values()) if len(figures) > 2 else 0
    slow = {}
    for node, mbps in figures.items():
        for what, other in (("the median of the nodes", middle), ("its best so far", best.get(node, 0))):
            if mbps < LEAST * other:
                slow[node] = f"reaches {mbps:.0f} Mbit/s, {100 * mbps / other:.0f} % of {what} ({other:.0f})"
    return figures, slow


def interface_of(ip):
    """The interface that has this address; "" when it is not one of IPv4."""
    import fcntl
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _, name in socket.if_nameindex():
            try:
                got = fcntl.ioctl(s.fileno(), 0x8915, struct.pack("256s", name.encode()))  # SIOCGIFADDR
            except OSError:
                continue
            if socket.inet_ntoa(got[20:24]) == ip:
                return name
    return ""


class Member:
    """On one node."""

    def __init__(self, name=None, ip=None):
        if ip is None:
            import ray

            ip = ray.util.get_node_ip_address()
        self.ip, self.name = ip, name or os.environ.get("ARGUS_NODE") or socket.gethostname()
        names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_IB_DISABLE")
        self.interface = os.environ.get("GLOO_SOCKET_IFNAME") or interface_of(self.ip)
        if self.interface:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", self.interface)
        self.env = {n: os.environ[n] for n in names if n in os.environ}

    def about(self):
        return {"node": self.name, "ip": self.ip, "interface": self.interface, "env": self.env}

    def listen(self, port):
        self.server = socket.create_server((self.ip, port))
        return self.server.getsockname()[1]

    def free_port(self):
        with socket.create_server((self.ip, 0)) as s:
            return s.getsockname()[1]

    def missed(self, others):
        """Names of those (name, ip, port) that do not let us in."""

        def reaches(ip, port):
            try:
                socket.create_connection((ip, port), timeout=5).close()
                return True
            except OSError:
                return False

        return [name for name, ip, port in others if name != self.name and not reaches(ip, port)]

    def join(self, rank, size, ip, port, may_use_gpus=True):
        import torch
        import torch.distributed as dist

        self.device = "cuda" if may_use_gpus and torch.cuda.is_available() else "cpu"
        dist.init_process_group(
            "nccl" if self.device == "cuda" else "gloo",
            init_method=f"tcp://{ip}:{port}",
            rank=rank,
            world_size=size,
            timeout=datetime.timedelta(seconds=60),
        )
        ranks = [*itertools.combinations(range(size), 2), tuple(range(size))]
        self.groups = [(r, dist.new_group(list(r)), rank in r) for r in dict.fromkeys(ranks)]
        return dist.get_backend()

    def measure_sizes(self):
        """[{bytes, Mbit/s, Mbit/s of the bus, microseconds}] of the ring."""
        ranks, group, _ = self.groups[-1]
        bus, out = 2 * (len(ranks) - 1) / len(ranks), []
        for numbers in SIZES:
            took = self._time(group, numbers, self._rounds(group, numbers))
            algo = numbers * 4 * 8 / took / 1e6
            out.append({"bytes": numbers * 4, "algo_mbps": algo, "bus_mbps": algo * bus, "usec": took * 1e6})
        return out

    def measure(self):
        """[[ranks, Mbit/s of the bus, microseconds]] of the groups that this one is in."""
        import torch.distributed as dist

        out = []
        for ranks, group, is_in in self.groups:
            if is_in:
                small = self._time(group, 256, 20)
                large = self._time(group, MIB, self._rounds(group, MIB))
                bus = 2 * (len(ranks) - 1) / len(ranks)
                out.append([list(ranks), 4 * MIB * 8 * bus / large / 1e6, small * 1e6])
            dist.barrier()
        return out

    def _rounds(self, group, numbers):
        """The same for all of the group: as slow as its slowest."""
        import torch
        import torch.distributed as dist

        self._time(group, numbers, 1)
        took = torch.tensor([self._time(group, numbers, 1)], device=self.device)
        dist.all_reduce(took, op=dist.ReduceOp.MAX, group=group)
        return max(1, min(200, int(SECONDS / took.item())))

    def _time(self, group, numbers, rounds):
        import torch
        import torch.distributed as dist

        data = torch.ones(numbers, device=self.device)
        dist.barrier(group=group)
        began = time.monotonic()
        for _ in range(rounds):
            dist.all_reduce(data, group=group)
        if self.device == "cuda":
            torch.cuda.synchronize()
        return (time.monotonic() - began) / rounds


def find_missed(members, about, port):
    """{node: those that do not reach it}"""
    import ray

    ports = ray.get([m.listen.remote(port) for m in members])
    others = [(a["node"], a["ip"], p) for a, p in zip(about, ports, strict=True)]
    missed = {}
    for a, names in zip(about, ray.get([m.missed.remote(others) for m in members]), strict=True):
        for name in names:
            missed.setdefault(name, []).append(a["node"])
    return missed


def settle(nodes, gpus):
    """An actor on each leased node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    import ray

    remote = ray.remote(num_cpus=1 if gpus else 0, num_gpus=gpus)(Member)
    at = [NodeAffinitySchedulingStrategy(node["id"], soft=False) for node in nodes]
    return [remote.options(scheduling_strategy=s).remote(node["name"]) for node, s in zip(nodes, at, strict=True)]


def run(nodes, gpus, port):
    """About each node, the backend, rows of the pairs and the ring, sizes of the ring, who is not reached."""
    import ray

    members = settle(nodes, gpus)
    about = ray.get([m.about.remote() for m in members], timeout=300)
    missed = find_missed(members, about, port)
    if missed:
        return about, "", [], [], missed
    first = about[0]["ip"]
    meet = ray.get(members[0].free_port.remote())
    joins = [m.join.remote(rank, len(nodes), first, meet, gpus > 0) for rank, m in enumerate(members)]
    backend = ray.get(joins, timeout=180)[0]
    rows = []
    for rank, mine in enumerate(ray.get([m.measure.remote() for m in members])):
        rows += [row for row in mine if row[0][0] == rank]
    return about, backend, rows, ray.get([m.measure_sizes.remote() for m in members])[0], {}


def as_argusd_reads_it(about, backend, rows, sizes, missed):
    names = [a["node"] for a in about]
    pairs = [
        {"a": names[ranks[0]], "b": names[ranks[1]], "mbps": mbps, "usec": usec}
        for ranks, mbps, usec in rows
        if len(ranks) == 2
    ]
    told = [{"node": name, "by": by} for name, by in missed.items()]
    return {"backend": backend, "pairs": pairs, "sizes": sizes, "missed": told}


def write(path, text):
    """Whole or not at all."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text)
    fresh.replace(path)


def read_best(path):
    try:
        return {n: b for n, b in json.loads(path.read_text()).items() if isinstance(b.get("mbps"), (int, float))}
    except (OSError, ValueError, AttributeError):
        return {}


def keep_best(path, best, figures, now):
    for node, mbps in figures.items():
        if mbps > best.get(node, {}).get("mbps", 0):
            best[node] = {"mbps": mbps, "at": now}
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, json.dumps(best, indent=1))


def complain(about, trouble):
    for a in about:
        if a["node"] in trouble:
            print(f"node '{a['node']}' ({a['interface']} {a['ip']}) {trouble[a['node']]}", file=sys.stderr)


def tell(about, backend, rows, missed, kept):
    """For eyes, and what is wrong in sentences; the result."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    names = [a["node"] for a in about]
    pairs = {tuple(names[r] for r in ranks): mbps for ranks, mbps, _ in rows if len(ranks) == 2}
    best = read_best(kept) if kept else {}
    figures, slow = judge(pairs, {n: b["mbps"] for n, b in best.items()})
    if kept and figures:
        keep_best(kept, best, figures, now)
    for ranks, mbps, usec in rows:
        print(f"{' - '.join(names[r] for r in ranks):40s} {mbps:10.0f} Mbit/s {usec:10.0f} us")
    trouble = {n: f"is not reached by {', '.join(by)}" for n, by in missed.items()} | slow
    complain(about, trouble)
    rows = [{"nodes": [names[r] for r in ranks], "mbps": mbps, "usec": usec} for ranks, mbps, usec in rows]
    return {"at": now, "backend": backend, "nodes": about, "groups": rows, "figures": figures, "trouble": trouble}


def by_hand(rank, hosts, port, kept, patience):
    """One of several processes that somebody started, one on each host; the first one tells."""
    member = Member(*hosts[rank])
    member.listen(port)
    others = [(name, ip, port) for name, ip in hosts]
    end = time.monotonic() + patience
    while (missed := member.missed(others)) and time.monotonic() < end:
        time.sleep(0.2)  # they are being started
    if missed:
        about = [{"node": name, "ip": ip, "interface": "?"} for name, ip in hosts]
        return tell(about, "", [], {name: [member.name] for name in missed}, None)
    backend = member.join(rank, len(hosts), hosts[0][1], port + 1)
    import torch.distributed as dist

    told = [None] * len(hosts)
    dist.all_gather_object(told, {"about": member.about(), "rows": member.measure()})
    rows = [row for r, t in enumerate(told) for row in t["rows"] if row[0][0] == r]
    about = [t["about"] for t in told]
    return tell(about, backend, rows, {}, kept) if rank == 0 else {"trouble": {}}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--result", type=pathlib.Path, help="where argusd reads what was measured")
    p.add_argument("--best", type=pathlib.Path, help="without Ray: where each node's best figure is kept")
    p.add_argument("--port", type=int, default=0, help="that the nodes open for each other; a free one if absent")
    p.add_argument("--rank", type=int, help="without Ray: which of --hosts this one is")
    p.add_argument("--hosts", help="without Ray: name=address, with commas; uses --port and the next one")
    p.add_argument("--patience", type=float, default=60, help="seconds for the others to be started by hand")
    o = p.parse_args()
    if o.hosts:
        hosts = [tuple(h.split("=", 1)) for h in o.hosts.split(",")]
        return 1 if by_hand(o.rank, hosts, o.port, o.best, o.patience)["trouble"] else 0
    lease = json.loads(os.environ["ARGUS_LEASE"])
    about, backend, rows, sizes, missed = run(lease["nodes"], lease["gpus"], o.port)
    tell(about, backend, rows, missed, None)
    if o.result:
        write(o.result, json.dumps(as_argusd_reads_it(about, backend, rows, sizes, missed)))
    return 0  # it is argusd that judges


if __name__ == "__main__":
    sys.exit(main())
