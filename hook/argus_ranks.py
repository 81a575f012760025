# SPDX-License-Identifier: Apache-2.0
"""How long each rank of a training worked and how long it waited for the others, told every few seconds.

In a collective all wait for the slowest. What a rank did between two of them is its own work, what it spent inside of
one that came back by itself is waiting: the rank that works longest and waits least is the slow one. Collectives of
tensors on a GPU return at once, so they are not timed, and where there are no others nothing is told; neither is what
DDP does in C++.

A rank writes ranks/<world>-<rank>.json of the attempt, the newest windows of WINDOW seconds with the sums of each:
beside work and wait what may have slowed it down: its CPU seconds, time that its cgroup was throttled, major faults,
bytes that it read and wrote, and the shortest round trip of its connections to other hosts. Several worlds of one
attempt (an actor's, a critic's) have a name each, made of where their ranks meet. argusd reads and judges
(core/training/rank.h)."""

from argus_process import _argus_lease_name, _argus_node_id
from argus_say import _argus_note


class _ArgusRanks:
    WINDOW = 10.0  # seconds; ARGUS_RANKS_WINDOW, for tests
    KEPT = 12  # windows in the file
    NAMES = (
        "all_gather", "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce", "all_to_all",
        "all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "gather", "monitored_barrier", "reduce",
        "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter",
    )  # fmt: skip

    def __init__(self, directory):
        import os

        self.directory, self.is_off = directory, False
        self.window = float(os.environ.get("ARGUS_RANKS_WINDOW") or self.WINDOW)
        self.thread, self.is_inside = None, False  # the first thread that came is timed
        self.work = self.wait = 0.0
        self.calls = 0
        self.left_at = self.began = None
        self.windows, self.before, self.writing, self.who = [], None, None, None

    # ---- in the training's own thread; what is raised here ends the timing and nothing else ----

    def times(self, args):
        """Is this call to be timed?"""
        from threading import get_ident

        if self.is_off or self.is_inside:
            return False
        if self.thread is None:
            self.thread = get_ident()
        return self.thread == get_ident() and not _argus_on_gpu(args)

    def leave(self, began, now):
        """All ranks leave together, so that the windows of all begin together, too."""
        if self.left_at is None:
            self.began, self.before = now, _argus_usage()
        else:
            self.work += began - self.left_at
            self.wait += now - began
            self.calls += 1
        self.left_at = now
        if now - self.began >= self.window:
            self.close(now)

    def close(self, now):
        """The window is over; a thread writes, for the shared root may be slow or away."""
        import threading
        import time

        usage, before = _argus_usage(), self.before
        row = {"at": time.time(), "seconds": now - self.began, "work": self.work, "wait": self.wait}
        row["calls"] = self.calls
        row.update((k, usage[k] - before[k]) for k in usage if k in before)
        self.windows = [*self.windows[1 - self.KEPT :], row]
        self.work = self.wait = 0.0
        self.calls, self.began, self.before = 0, now, usage
        if self.writing is None or not self.writing.is_alive():
            self.writing = threading.Thread(target=self.write, args=(list(self.windows),), daemon=True)
            self.writing.start()

    # ---- in a thread of ours ----

    def write(self, windows):
        import json
        import os

        try:
            if self.who is None:
                self.who = _argus_rank()
            if self.who["world"] < 2:
                self.is_off = True
                return
            windows[-1]["rtt_ms"] = _argus_round_trip()
            os.makedirs(self.directory, exist_ok=True)
            path = f"{self.directory}/{self.who['id']}-{self.who['rank']}.json"
            part = f"{path}.{os.getpid()}"
            with open(part, "w") as f:
                json.dump({**self.who, "windows": windows}, f)
            os.replace(part, path)
        except Exception:  # it is told again with the next window
            pass

    # ---- the wrapping ----

    def wrap(self, function, is_compiling):
        from functools import wraps
        from time import monotonic

        @wraps(function)
        def collective(*args, **keys):
            if is_compiling() or keys.get("async_op"):
                return function(*args, **keys)
            try:
                if not self.times([*args[:2], *keys.values()]):
                    return function(*args, **keys)
                self.is_inside, began = True, monotonic()
            except Exception as e:
                self.stop(e)
                return function(*args, **keys)
            try:
                return function(*args, **keys)
            finally:
                try:
                    self.is_inside = False
                    self.leave(began, monotonic())
                except Exception as e:
                    self.stop(e)

        return collective

    def stop(self, error):
        self.is_off = True
        _argus_note("torch.distributed", error)

    def change(self, module):
        try:
            from torch.compiler import is_compiling
        except ImportError:  # torch before 2.1

            def is_compiling():
                return False

        for name in self.NAMES:
            function = getattr(module, name, None)
            if callable(function):
                setattr(module, name, self.wrap(function, is_compiling))


def _argus_on_gpu(args):
    """Does one of these arguments lie on a GPU? Of a call without tensors: does this process use one at all?"""
    import torch

    tensors = []
    for arg in args:
        first = arg[0] if isinstance(arg, (list, tuple)) and arg else arg
        if isinstance(first, torch.Tensor):
            tensors.append(first)
    if tensors:
        return any(t.device.type != "cpu" for t in tensors)
    return torch.cuda.is_initialized()


def _argus_rank():
    import hashlib
    import os

    import torch.distributed as dist

    node = _argus_lease_name(_argus_node_id()) or os.environ.get("ARGUS_NODE") or os.environ.get("ARGUS_DRIVER_NODE")
    world = dist.get_world_size()
    meets = f"{os.environ.get('MASTER_ADDR')} {os.environ.get('MASTER_PORT')} {world}"
    name = hashlib.sha256(meets.encode()).hexdigest()[:12]
    rank = {"id": name, "rank": dist.get_rank(), "world": world, "pid": os.getpid()}
    return {**rank, "node": node or os.uname().nodename}


def _argus_usage():
    """Sums since this process began, as far as this system tells them."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    sums = {"cpu": used.ru_utime + used.ru_stime, "faults": used.ru_majflt}
    try:
        with open("/proc/self/io") as f:
            io = dict(line.split(": ") for line in f.read().splitlines())
        sums["disk_bytes"] = int(io["read_bytes"]) + int(io["write_bytes"])
    except Exception:
        pass
    throttled = _argus_throttled()
    if throttled is not None:
        sums["throttled"] = throttled
    return sums


def _argus_throttled():
    """Seconds that the cgroup of this process was held back, by either version of cgroups; None: nobody tells. A
    container that does not know its group by name sees it as the root of its mount."""
    places = []
    try:
        with open("/proc/self/cgroup") as f:
            for line in f:
                _, controllers, group = line.strip().split(":", 2)
                mount = "/sys/fs/cgroup/" + controllers if controllers else "/sys/fs/cgroup"
                if not controllers or "cpu" in controllers.split(","):
                    places += [f"{mount}{group}/cpu.stat", f"{mount}/cpu.stat"]
        for place in places:
            try:
                with open(place) as f:
                    stat = dict(line.split() for line in f.read().splitlines())
            except OSError:
                continue
            if "throttled_usec" in stat:
                return int(stat["throttled_usec"]) / 1e6
            if "throttled_time" in stat:
                return int(stat["throttled_time"]) / 1e9
    except Exception:
        pass
    return None


def _argus_round_trip():
    """The shortest smoothed round trip of this process's TCP connections to other hosts, in milliseconds; None: there
    are none. The shortest, because a connection to the Internet is long on any host."""
    import os
    import socket
    import stat
    import struct

    times = []
    for name in os.listdir("/proc/self/fd")[:4096]:
        fd = -1
        try:
            if not stat.S_ISSOCK(os.stat(f"/proc/self/fd/{name}").st_mode):
                continue
            fd = os.dup(int(name))
            # With its type given the socket's flags stay as they are: they are those of the training's own.
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK, 0, fileno=fd) as s:
                fd = -1
                if s.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) != socket.SOCK_STREAM:
                    continue
                if s.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) not in (socket.AF_INET, socket.AF_INET6):
                    continue
                info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
                if info[0] == 1 and s.getpeername()[0] != s.getsockname()[0]:  # tcpi_state: established
                    times.append(struct.unpack_from("I", info, 68)[0] / 1000)  # tcpi_rtt, in microseconds
        except OSError:
            continue
        finally:
            if fd >= 0:
                os.close(fd)
    return min(times) if times else None


def _argus_ranks_changes():
    import os

    attempt = os.environ.get("ARGUS_ATTEMPT_DIR")
    if not attempt:
        return {}
    return {"torch.distributed.distributed_c10d": lambda m: _ArgusRanks(attempt + "/ranks").change(m)}
