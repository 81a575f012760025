# SPDX-License-Identifier: Apache-2.0
"""Jobs that fail in a known way, at a known moment, on hosts with real Ray: for the tests and for bench/faults.

    with caged(bed), BareStage(bed, ...) as stage:
        failing = Failing(stage)
        failing.join()                      the machines
    failing.submit(FAULTS["exit_1"])        a job that runs up to its gate
    failing.wait_ready("exit-1")
    failing.fire("exit-1")                  and fails now
    failing.delay("exit-1")                 seconds from there to the event of its finding

Each tells at its gate that it is there, waits to be let on, and notes the time. A second attempt goes well at once.
"""

import dataclasses
import datetime
import hashlib
import json
import time

from memcage import cages, possible
from rayprocs import OF_RAY, of_ray

from argusd import until

HOST_OF = {"node-1": "h2", "node-2": "h3"}
MEMORY = 4 << 30  # of each host
# On node-1 Ray's own monitor sees to the memory, on node-2 the kernel does.
ENV = {"node-1": {"RAY_memory_usage_threshold": "0.9"}, "node-2": {"RAY_memory_monitor_refresh_ms": "0"}}
SMALL = 'mkdir -p "$0" && mount -t tmpfs -o size=1m none "$0"'

GATE = """
[ "$ARGUS_ATTEMPT" = 1 ] || { echo "the second time all is well"; exit 0; }
echo $$ >"$0/$1.there"
while [ ! -e "$0/$1.go" ]; do sleep 0.05; done
date +%s.%N >"$0/$1.fault"
"""

# After the gate, until somebody ends it. The copy is the truth: it has at most one line more.
COPIES = """
n=0
while :; do n=$((n + 1)); echo "line $n of $1" >>"$0/$1.copy"; echo "line $n of $1"; sleep 0.05; done
"""
BEGUN = 10  # lines

# Beside each program in Python.
MODULE = '''
import json, os, pathlib, sys, threading, time

pause = threading.Event().wait
root, job = pathlib.Path(sys.argv[1]), sys.argv[2]


def gate(**told):
    """The things told are for the test: who is to be killed, and where."""
    if os.environ["ARGUS_ATTEMPT"] != "1":
        print("the second time all is well")
        sys.exit(0)
    there = root / f"{job}.there"
    there.with_suffix(".new").write_text(json.dumps(told))
    there.with_suffix(".new").rename(there)
    while not (root / f"{job}.go").exists():
        pause(0.05)
    (root / f"{job}.fault").write_text(str(time.time()))
'''

RANKS = """
import os
import ray
from ray.util import get_node_ip_address
from gate import gate, pause

ray.init()


@ray.remote(num_cpus=0, num_gpus=0.5)
class Rank:
    def __init__(self, rank):
        self.rank = rank

    def where(self):
        return os.getpid(), get_node_ip_address()

    def step(self, table, n):
        print(f"rank {self.rank} of step {n}", flush=True)
        return table["loss"]


ranks = [Rank.remote(n) for n in range(2)]
pid, ip = ray.get([r.where.remote() for r in ranks])[1]
ray.get([r.step.remote({"loss": 0.5}, 1) for r in ranks])
gate(pid=pid, ip=ip)
"""

ON_AND_ON = """
for n in range(2, 10**6):
    ray.get([r.step.remote({"loss": 0.5}, n) for r in ranks])
    pause(0.1)
"""

PROGRAMS = {
    "raises.py": RANKS + "ray.get([r.step.remote({}, 2) for r in ranks])\n",
    "ranks.py": RANKS + ON_AND_ON,
    "reward.py": """
import ray
from gate import gate

ray.init()


@ray.remote(num_gpus=1)
def score(answers):
    import my_reward

    return [my_reward.compute_score("toy", a, "4") for a in answers]


gate()
print(ray.get(score.remote(["4", ""])))
""",
    "my_reward.py": "def compute_score(source, answer, truth):\n    return len(truth) / len(answer)\n",
    "data.py": """
from gate import gate, root
import pyarrow.parquet
import torch


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, n):
        return pyarrow.parquet.read_table(root / "programs/torn.parquet").num_rows


gate()
for batch in torch.utils.data.DataLoader(Rows(), num_workers=1):
    print(batch)
""",
    "torn.parquet": "PAR1 and nothing of what should follow",
    "segfault.py": "import ctypes\nfrom gate import gate\ngate()\nctypes.string_at(0)\n",
    "flood.py": """
import os, time
from gate import gate, pause

gate()
piece, begin = (b"x" * 99 + b"\\n") * 10_000, time.monotonic()
for n in range(300):
    os.write(1, b"".join(piece[i : i + 1000] for i in range(0, len(piece), 1000)))
    pause(max(0, begin + (n + 1) / 100 - time.monotonic()))
raise RuntimeError("the end of the flood")
""",
    "save.py": """
import os, sys
from gate import gate, root

gate()
step = root / "small" / "global_step_1"
os.makedirs(step, exist_ok=True)
with open(step / "model_world_size_1_rank_0.pt", "wb") as f:
    for _ in range(16):
        f.write(b"w" * 1_000_000)
""",
    "hoards.py": """
import ray
from gate import gate

ray.init()


@ray.remote(num_gpus=1, max_restarts=0, max_task_retries=0)
class Rollout:
    def fill(self):
        held = []
        while True:
            held.append(bytearray(b"x") * (8 << 20))


rollout = Rollout.remote()
ray.get(rollout.__ray_ready__.remote())
gate()
ray.get(rollout.fill.remote())
""",
}


@dataclasses.dataclass
class Fault:
    name: str
    what: str  # a shell line after the gate, or a program
    classes: tuple  # of the finding: any of them is right
    said: str = ""  # in the line that the finding quotes
    exit: tuple = ()  # cause, and code or signal
    on: tuple = ("gpu_hardware",)  # classes that start it again
    restarts: bool = False
    kill: str = ""  # who gets the signal: command, rank, shepherd, raylet, head
    signal: str = "KILL"
    copies: bool = False  # what it prints it writes to a file first
    keys: dict = dataclasses.field(default_factory=dict)


def table(*faults):
    return {f.name: f for f in faults}


FAULTS = table(
    Fault("exit_1", "echo 'about to fail'; exit 1", ("unknown",), exit=("exit", 1), on=("unknown",), restarts=True),
    Fault("exit_137", "exit 137", ("actor_died",), exit=("exit", 137)),
    Fault("segfault", "segfault.py", ("actor_died",), exit=("signal", "SIGSEGV"), on=("actor_died",), restarts=True),
    Fault("driver_killed", "while :; do sleep 0.1; done", ("actor_died",), exit=("signal", "SIGKILL"), kill="command"),
    Fault("actor_raises", "raises.py", ("user_code_error",), said="KeyError: 'loss'", exit=("exit", 1)),
    Fault("reward_raises", "reward.py", ("user_code_error",), said="ZeroDivisionError", exit=("exit", 1)),
    Fault("data_torn", "data.py", ("data_error",), said="Parquet magic bytes", exit=("exit", 1)),
    # what its machine does to it
    Fault("disk_full", "save.py", ("disk_full",), said="No space left on device", exit=("exit", 1)),
    Fault("flood", "flood.py", ("user_code_error",), said="RuntimeError: the end of the flood", exit=("exit", 1)),
    Fault(
        "host_oom_by_ray", "hoards.py", ("host_oom",), exit=("exit", 1), on=("host_oom",), restarts=True,
        keys={"pool": "node-1"},
    ),  # fmt: skip
    Fault("host_oom_by_kernel", "hoards.py", ("host_oom",), exit=("exit", 1), keys={"pool": "node-2"}),
    Fault(
        "rank_killed", "ranks.py", ("actor_died",), said="died", exit=("exit", 1), on=("actor_died",), restarts=True,
        kill="rank",
    ),  # fmt: skip
)


# Those that take the memory of a host take it from whatever else runs there.
HOARDS = ("host_oom_by_kernel", "host_oom_by_ray") if possible() else ()

# What Ray itself loses under a job, and what goes on without it.
AGAIN = {"restarts": True, "copies": True}
LOST = table(
    Fault("shepherd_killed", COPIES, ("platform",), on=("infra",), kill="shepherd", **AGAIN),
    Fault("raylet_killed", COPIES, ("node_lost",), on=("node_lost",), kill="raylet", **AGAIN),
    Fault("head_killed", COPIES, ("node_lost",), on=("infra",), kill="head", **AGAIN),
)
# Nobody can see it, and nothing is done to it.
SILENT = table(Fault("shepherd_stopped", COPIES, ("unknown",), kill="shepherd", signal="STOP", copies=True))


def caged(bed):
    """Around hosts on which nothing runs yet."""
    return cages(bed, dict.fromkeys(HOST_OF.values(), MEMORY) if possible() else {})


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


LOOKED_AT = 1 << 20  # bytes of a log's end


class Failing:
    def __init__(self, stage):
        self.stage, self.host_of = stage, HOST_OF
        self.host_at = {stage.bed.ips[h]: h for h in HOST_OF.values()}
        self.faults, self.aims, self.begun = {}, {}, {}
        self.place = stage.root / "programs"
        self.place.mkdir(exist_ok=True)
        for name, text in {"gate.py": MODULE, **PROGRAMS}.items():
            (self.place / name).write_text(text)

    def join(self):
        """The machines of the stage."""
        for name, host in HOST_OF.items():
            self.stage.bed.on(host, "sh", "-c", SMALL, str(self.stage.root / "small"))
            self.stage.add_node(name, host, gpu_count=5, labels=[name], env=ENV[name])
        self.wait_online()

    def wait_online(self):
        for name in ("head", *HOST_OF):
            self.stage.wait_node(name, "online")

    def argv(self, fault, job):
        if fault.what.endswith(".py"):
            return [str(self.stage.bed.python), str(self.place / fault.what), str(self.stage.root), job]
        return ["/bin/sh", "-c", GATE + fault.what, str(self.stage.root), job]

    def submit(self, fault, job=None, **keys):
        job = job or fault.name.replace("_", "-")
        argv = self.argv(fault, job)
        restart = {"max": 1, "on": list(fault.on), "backoff": "0s"}
        more = {"n_gpus_per_node": 1, "restart": restart, **fault.keys, **keys}
        self.stage.submit(self.stage.spec(argv, submission_id=job, **more), token="admin")
        self.faults[job] = fault
        return job

    def file(self, job, what):
        return self.stage.root / f"{job}.{what}"

    def wait_ready(self, job):
        """It runs, is at its gate, and who is to be killed is known."""
        until(self.file(job, "there").exists, f"{job} is at its gate")
        view = self.stage.wait_job(job, lambda j: j["state"] == "RUNNING" and j["driver"], "runs")
        self.aims[job] = self.aim(job, self.host_of[view["driver"]["node"]], self.faults[job].kill)

    def aim(self, job, host, whom):
        """On which host whose processes are to be killed."""
        if whom == "rank":
            told = json.loads(self.file(job, "there").read_text())
            return self.host_at[told["ip"]], [told["pid"]]
        if whom in OF_RAY:
            host = "h1" if whom == "head" else host
            return host, [pid for _, pid in of_ray(self.stage.bed, [host], whom)]
        pid = whom and self.beat(job)["pid"]
        if whom == "shepherd":
            pid = int(self.stage.bed.on(host, "sed", "-n", "s/^PPid:[[:space:]]*//p", f"/proc/{pid}/status"))
        return host, [pid] if pid else []

    def fire(self, job):
        """It fails now."""
        host, pids = self.aims[job]
        self.file(job, "go").touch()
        until(self.file(job, "fault").exists, f"{job} is let on")
        if self.faults[job].copies:
            log = self.stage.job_dir(job) / "attempts/1/logs/driver.log"
            until(lambda: log.read_bytes().count(b"\n") >= BEGUN, f"{job} prints")
            self.begun[job] = log.stat().st_size
        if pids:
            self.file(job, "fault").write_text(str(time.time()))
            self.stage.bed.kill(host, *pids, signal=self.faults[job].signal)

    def is_over(self, job):
        """By its files, or by its processes; argusd is not asked."""
        return (self.stage.job_dir(job) / "attempts/1/exit.json").exists() or not self.processes(job)

    def beat(self, job):
        """With the driver's number, which the first beat of a shepherd does not know yet."""
        path = self.stage.job_dir(job) / "attempts/1/beat"

        def look():
            beat = path.exists() and json.loads(path.read_text())
            return beat and beat.get("pid") and beat

        return until(look, f"{job} beats")

    def found(self, job):
        """Where that takes long, the end of an attempt is told before it is found why."""
        return until(lambda: self.stage.get(f"/v1/jobs/{job}/findings")["findings"], f"why {job} ended is found")[0]

    def delay(self, job):
        told = until(lambda: [e for e in self.stage.events(job) if e["kind"] == "finding"], f"why {job} ended is told")
        return seconds(told[0]["at"]) - float(self.file(job, "fault").read_text())

    def check(self, job):
        """What must be true of every job here, once it is over."""
        fault, view = self.faults[job], self.stage.wait_over(job)
        first, found = view["attempts"][0], self.found(job)
        assert (found["attempt"], found["class"] in fault.classes) == (1, True), found
        assert any(fault.said in quote["text"] for quote in found["evidence"]) or not fault.said, found
        assert found["node"] in self.host_of, found
        if fault.exit:
            got = json.loads((self.stage.job_dir(job) / "attempts/1/exit.json").read_text())
            code = got["signal"] if fault.exit[0] == "signal" else got["code"]
            assert (got["cause"], code) == fault.exit, got
        again = 1 if fault.restarts else 0
        assert view["state"] == ("SUCCEEDED" if again else "FAILED"), view["reason"]
        assert (view["attempt"], view["restarts"]) == (1 + again, again), first
        self.check_log(job)
        if fault.copies:
            self.check_copy(job)
        self.check_gone(job)

    def check_log(self, job):
        """Complete, as people get it: up to the last of the bytes that the shepherd counted."""
        path = self.stage.job_dir(job) / "attempts/1/exit.json"
        if not path.exists():
            return
        size = json.loads(path.read_text())["log_bytes"]
        begin = max(0, size - LOOKED_AT)
        reply = self.stage.call("GET", f"/v1/jobs/{job}/logs?attempt=1&offset={begin}&limit={LOOKED_AT}")
        assert reply.status == 200, reply
        assert (len(reply.body), int(reply.headers["Argus-Log-Size"])) == (size - begin, size), job

    def check_copy(self, job):
        """As people get it, the log is what the program wrote, byte by byte, and all that was in it when its machine
        or the head went. Where a shepherd lived to say how it ended, nothing but the line under way is missing."""
        reply = self.stage.call("GET", f"/v1/jobs/{job}/logs?attempt=1&limit={LOOKED_AT}")
        assert reply.status == 200, reply
        log, copy = reply.body, self.file(job, "copy").read_bytes()
        digest = hashlib.sha256(copy[: len(log)]).hexdigest()
        assert (hashlib.sha256(log).hexdigest(), log.count(b"\n") >= BEGUN) == (digest, True), job
        assert len(log) >= self.begun[job], job
        if (self.stage.job_dir(job) / "attempts/1/exit.json").exists():
            assert copy[len(log) :].count(b"\n") <= 1, job

    def processes(self, job):
        """Of a job, on all machines."""
        look = f"grep -l ARGUS_JOB_ID={job} /proc/[0-9]*/environ 2>/dev/null || true"
        return sum([self.stage.bed.on(h, "sh", "-c", look).split() for h in self.host_of.values()], [])

    def check_gone(self, job):
        """Nothing of it is left on any machine."""

        def left():
            actors = [a for a in self.stage.cluster("actors") if a["job"] == job and a["state"] == "ALIVE"]
            return self.processes(job) + actors

        until(lambda: not left(), f"nothing of {job} is left")
