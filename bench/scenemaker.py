# SPDX-License-Identifier: Apache-2.0
"""scenemaker - makes the scenes of bench/blackbox from a seed: DIR/scenes/scene-NNN, and what is true of each in
DIR/truth/scene-NNN.json. The same seed makes the same bytes; names and order tell nothing of the kind.

Two sources. The kinds of REAL are the consoles of real verl trainings that were broken on purpose
(tests/findings/real), with other pids, users and addresses. Those of MADE are written here after what the libraries
print and what the faults of tests/lib/failing.py leave: no such machine failed, and scene.json is what
src/shepherd/scout/scene.h says that a scout would write."""

import json
import pathlib
import random
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
LOGS = ROOT / "tests" / "findings" / "real"
WHOLE, HEALTHY, WITH_DISTRACTOR = 10, 30, 30  # scenes of each kind; the two others of that many
DAY = "2026-11-22"  # of the real consoles
BOOTED_H = 300  # hours before the job began
REAL = ("actor_died", "checkpoint_error", "config_error", "data_error", "disk_full", "import_error",
        "insufficient_resources", "model_load_error", "nan_loss", "permission_or_path", "port_conflict",
        "timeout_or_hang", "user_code_error")  # fmt: skip
# What stands in logs that are well.
NOISE = (
    "E0000 00:00:1736163964.0 {pid} cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to register factory "
    "for plugin cuDNN when one has already been registered",
    "[W socket.cpp:464] [c10d] The server socket cannot be initialized on [::]:29500 (errno: 97 - Address family not "
    "supported by protocol).",
    "(WorkerDict pid={pid}, ip={ip}) WARNING 11-22 14:04:53 scheduler.py:1484] Sequence group 3 is preempted by "
    "PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.",
    "(raylet) file_system_monitor.cc:111: /tmp/ray/session_1 is over 95% full, available space: 1392345088",
    "/opt/x.py:7: FutureWarning: `torch.cuda.amp.autocast(args...)` is deprecated.",
)
SURVIVED = """Traceback (most recent call last):
  File "/srv/{user}/board.py", line 3, in send
    raise RuntimeError("the board is away")
RuntimeError: the board is away"""
STEP = ("(TaskRunner pid={driver}) step:{n} - actor/pg_loss:{loss:.4f} - actor/grad_norm:{norm:.3f} - "
        "critic/score/mean:{score:.3f} - response_length/mean:512.0 - timing_s/step:12.0")  # fmt: skip
W = "(WorkerDict pid={pid}, ip={ip}) "
RAISED = W + """Traceback (most recent call last):
""" + W + """  File "/opt/verl/workers/actor/dp_actor.py", line 412, in update_policy
""" + W + """    loss.backward()
"""
ENGINE = W + """Traceback (most recent call last):
""" + W + """  File "/opt/verl/workers/rollout/vllm_rollout.py", line 88, in __init__
""" + W + """    self.inference_engine = LLM(**kwargs)
"""
# What follows from whatever a rank met.
PASSED_ON = """Error executing job with overrides: ['trainer.nnodes=2']
Traceback (most recent call last):
  File "/opt/verl/trainer/main_ppo.py", line 74, in run_ppo
    ray.get(runner.run.remote(config))
ray.exceptions.RayTaskError({error}): ray::TaskRunner.run() (pid={driver}, ip={ip})
Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace."""
DIED = """(raylet, ip={ip}) A worker died or was killed while executing a task by an unexpected system error. To \
troubleshoot the problem, check the logs for the dead worker. Worker PID: {pid} Worker exit type: SYSTEM_ERROR
Traceback (most recent call last):
  File "/opt/verl/trainer/main_ppo.py", line 74, in run_ppo
    ray.get(runner.run.remote(config))
ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
The actor is dead because its worker process has died. Worker exit detail: Worker unexpectedly exits with a \
connection error code 2. End of file."""
OOM_KILL = "Memory cgroup out of memory: Killed process {pid} ({name}) total-vm:91238712kB, anon-rss:66012312kB"


class Made:
    """What happened: lines of the driver's log and of one worker, the kernel's, the facts of the scout."""

    def __init__(self, cause, driver, worker="", kernel="", steps=True, **facts):
        self.cause, self.driver, self.worker, self.kernel = cause, driver, worker, kernel
        self.steps, self.facts = steps, facts  # steps: it had trained before


def raised(cause, *texts, head=RAISED, error="RuntimeError", steps=True):
    tail = "\n" + PASSED_ON.replace("{error}", error)
    return [Made(cause, head + W + text + tail, steps=steps) for text in texts]


MADE = {
    "gpu_oom": raised(
        "gpu_oom",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU {rank} has a total capacity of "
        "79.15 GiB of which 1.00 GiB is free.",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU {rank}; 39.39 GiB total "
        "capacity; 37.02 GiB already allocated)",
        error="OutOfMemoryError",
    ),
    "host_oom_killed": [
        Made("host_oom", DIED, kernel=OOM_KILL, oom_kills=1, own_oom_kills=1, oom_line=OOM_KILL),
    ],
    "host_oom_told": [
        Made("host_oom", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
             "Memory on the node (IP: {ip}, ID: 8f1c) where the task (actor ID: 9c, name=WorkerDict.__init__, "
             "pid={pid}, memory used=210.11GB) was running was 503.11GB / 512.00GB (0.98), which exceeds the memory "
             "usage threshold of 0.95."),
        *raised("host_oom", "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 47.7 GiB for an array with "
                "shape (80000, 80000) and data type float64", error="_ArrayMemoryError"),
    ],
    "shm_exhausted": [
        *raised("shm_exhausted", "RuntimeError: DataLoader worker (pid {pid}) is killed by signal: Bus error. It is "
                "possible that dataloader's workers are out of shared memory. Please try to raise your shared memory "
                "limit."),
        Made("shm_exhausted", DIED, shm_full=True, worker="[{ip}:{pid}] NCCL WARN Error: failed to extend "
             "/dev/shm/nccl-Xa81 to 33030532 bytes"),
    ],
    "nccl_timeout": [
        Made("nccl_timeout", DIED, worker="[rank{rank}]:[E ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught "
             "collective operation timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, "
             "Timeout(ms)=600000) ran for 600012 milliseconds before timing out."),
    ],
    "nccl_network": [
        Made("nccl_network", W + "{node}:{pid}:140 [2] transport/net_ib.cc:2220 NCCL WARN NET/IB: Got completion from "
             "peer {ip}<41000> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=0\n" + RAISED + W +
             "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error\n" +
             PASSED_ON.replace("{error}", "DistBackendError")),
    ],
    "gpu_hardware": [
        Made("gpu_hardware", DIED, xid=79, kernel="NVRM: Xid (PCI:{pci}): 79, pid={pid}, name=ray::WorkerDict, GPU "
             "has fallen off the bus."),
        Made("gpu_hardware", RAISED + W + "torch.AcceleratorError: CUDA error: unspecified launch failure\n" +
             PASSED_ON.replace("{error}", "AcceleratorError"), xid=48, kernel="NVRM: Xid (PCI:{pci}): 48, pid={pid}, "
             "name=ray::WorkerDict, Double Bit ECC Error"),
    ],
    "node_lost": [
        Made("node_lost", "(autoscaler) The node with node id: 8f1c and address: {ip} and node name: {ip} has been "
             "marked dead because the detector has missed too many heartbeats from it.\n" + DIED),
    ],
    "auth_or_hub": raised(
        "auth_or_hub",
        "huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url "
        "https://huggingface.co/meta/x",
        "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/models/x: offline mode "
        "is enabled.",
        head=W + "Traceback (most recent call last):\n" + W + '  File "/opt/verl/utils/fs.py", line 20, in pull\n',
        error="GatedRepoError", steps=False,
    ),
    "cuda_error": raised(
        "cuda_error",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx( handle, opa, opb)`",
    ),
    "inference_engine_failed": raised(
        "inference_engine_failed",
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
        "initializing the engine.",
        "ValueError: Free memory on device (12.1/79.1 GiB) on startup is less than desired GPU memory utilization "
        "(0.9, 71.2 GiB).",
        head=ENGINE, error="ValueError", steps=False,
    ),
    "driver_mismatch": raised(
        "driver_mismatch",
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU "
        "driver",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        head=ENGINE, steps=False,
    ),
}  # fmt: skip
KINDS = (*REAL, *MADE)
# What is beside the failure and has nothing to do with it: the class that it would be, and kinds of that very class.
DISTRACTORS = {
    "xid": ("gpu_hardware", ("gpu_hardware", "cuda_error")),
    "old_oom": ("host_oom", ("host_oom_killed", "host_oom_told", "actor_died")),
    "neighbour": ("host_oom", ("host_oom_killed", "host_oom_told", "actor_died")),
}


class Draft:
    """A scene while it is made."""

    def __init__(self, rng):
        self.rng = rng
        first = rng.randrange(10, 90)
        self.nodes = [f"gpu-{first + k}" for k in range(2)]
        self.words = {
            "user": rng.choice(["anna", "bo", "chen", "dee"]), "ip": f"10.{rng.randrange(1, 9)}.0.{first}",
            "driver": rng.randrange(4000, 60000), "pid": rng.randrange(4000, 60000), "node": self.nodes[0],
            "rank": rng.randrange(4), "pci": "0000:1b:00", "name": "ray::WorkerDict",
        }  # fmt: skip
        self.driver, self.worker, self.metrics, self.events = [], [], [], []
        self.kernel, self.before, self.facts = [], [], {}
        self.exit = 1

    def say(self, text):
        return text.format(**self.words)

    def train(self, steps, scary=False):
        for n in range(1, steps + 1):
            told = {"loss": self.rng.random() / 50, "norm": 0.3 + self.rng.random() / 5, "score": n / 100}
            self.driver.append(STEP.format(n=n, **told, **self.words))
            data = {"actor/pg_loss": told["loss"], "actor/grad_norm": told["norm"]}
            self.metrics.append({"step": n, "data": data})
            if scary and n == 1:
                self.driver += self.say(SURVIVED).split("\n")

    def noise(self, most):
        for line in self.rng.sample(NOISE, self.rng.randrange(1, most + 1)):
            self.driver.insert(self.rng.randrange(len(self.driver) // 3 + 1), self.say(line))


def renamed(draft, text):
    """A real console as that of another run."""
    pids = sorted(set(re.findall(r"pid[=:] ?(\d{4,})", text)))
    new = draft.rng.sample(range(4000, 60000), len(pids))
    for old, pid in zip(pids, new, strict=True):
        text = re.sub(rf"\b{old}\b", str(pid), text)
    text = text.replace("/srv/anna/", f"/srv/{draft.words['user']}/").replace("10.0.0.5", draft.words["ip"])
    return re.sub(r"\bworker-1\b", draft.nodes[0], text)


def begin_lines():
    """A real start, up to the first step."""
    return (LOGS / "none-healthy-save.txt").read_text().partition("\nTraining Progress:")[0]


def draft_real(draft, kind, n):
    sources = sorted(LOGS.glob(f"{kind}-*.txt"))
    source = sources[n % len(sources)]
    draft.driver = renamed(draft, source.read_text()).rstrip("\n").split("\n")
    draft.exit = json.loads((LOGS / "truth.json").read_text())[source.stem]["exit"]
    if kind == "disk_full":
        draft.facts["disk_full"] = True
    draft.noise(2)
    return {"causes": [kind], "from": f"tests/findings/real/{source.name}"}


def draft_made(draft, kind, n):
    made = MADE[kind][n % len(MADE[kind])]
    draft.driver = renamed(draft, begin_lines()).split("\n")
    if made.steps:
        draft.train(draft.rng.randrange(3, 30))
    draft.noise(3)
    draft.driver += draft.say(made.driver).split("\n")
    draft.worker += draft.say(made.worker).split("\n") if made.worker else []
    draft.kernel += [draft.say(made.kernel)] if made.kernel else []
    draft.facts = {k: draft.say(v) if isinstance(v, str) else v for k, v in made.facts.items()}
    return {"causes": [made.cause], "from": "bench/scenemaker.py"}


def draft_healthy(draft):
    draft.exit = 0
    draft.driver = renamed(draft, begin_lines()).split("\n")
    draft.train(draft.rng.randrange(5, 40), scary=draft.rng.random() < 0.5)
    draft.noise(len(NOISE))
    return {"causes": [], "from": "tests/findings/real/none-healthy-save.txt"}


# ---- distractors ----


def add_xid(draft):
    """A GPU of this node that another job holds; the scout tells the node's first Xid, whoever's GPU it was."""
    xid, said = draft.rng.choice([(48, "Double Bit ECC Error"), (79, "GPU has fallen off the bus.")])
    draft.kernel.insert(0, f"NVRM: Xid (PCI:0000:db:00): {xid}, pid=991, name=python3, {said}")
    draft.facts.setdefault("xid", xid)
    draft.events.append({"at": at(14, 20), "kind": "gpu_fault", "node": draft.nodes[0], "gpu": 6, "xid": xid})


def add_old_oom(draft):
    """On the day before, before this job began: in the kernel's whole log and not in the scout's part of it."""
    draft.before.append(OOM_KILL.format(pid=991, name="python3"))


def add_neighbour(draft):
    """A job beside it lost a process to the kernel, in a cgroup that both may share."""
    draft.kernel.append(OOM_KILL.format(pid=992, name="sft_neighbour"))
    draft.facts |= {"oom_kills": 1, "own_oom_kills": 0}
    if draft.rng.random() < 0.5:
        draft.facts |= {"own_oom_kills": 1, "oom_unsure": True, "oom_line": draft.kernel[-1]}
    draft.events.append({"at": at(14, 40), "kind": "ended", "job": "bob-sft", "node": draft.nodes[0], "to": "FAILED",
                         "exit": 137})  # fmt: skip


ADD = {"xid": add_xid, "old_oom": add_old_oom, "neighbour": add_neighbour}

# ---- a directory ----


def at(hour, minute):
    return f"{DAY}T{hour:02}:{minute:02}:00Z"


def facts_of(draft, node):
    """scene.json of a node, all keys that src/shepherd/scout/scene.h has for the verdict."""
    blank = {"version": 1, "node": node, "host": node, "at": at(15, 30), "took_ms": 40, "oom_kills": 0,
             "own_oom_kills": 0, "oom_unsure": False, "oom_line": None, "memory_max_bytes": None,
             "memory_peak_bytes": None, "shm_full": False, "disk_full": False, "xid": 0, "xid_line": None}  # fmt: skip
    if node != draft.nodes[0]:
        return blank
    facts = blank | draft.facts
    if facts["xid"]:
        facts["xid_line"] = next(line for line in draft.kernel if "NVRM: Xid" in line)
    return facts


def job_of(draft, name):
    cards = [{"index": n, "pci": f"0000:{bus}:00.0"} for n, bus in enumerate(["1b", "43", "52", "61"])]
    return {"id": name, "user": draft.words["user"], "state": "FAILED" if draft.exit else "SUCCEEDED", "attempt": 1,
            "exit": {"cause": "exit", "code": draft.exit}, "began_at": at(14, 0), "ended_at": at(15, 30),
            "nodes": [{"name": n, "gpus": cards} for n in draft.nodes],
            "gpus_of_a_node": 8}  # fmt: skip


def json_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def files_of(draft, name):
    """{path: content}"""
    own = [{"at": at(13, 50), "kind": "submitted", "job": name}, {"at": at(14, 0), "kind": "started", "job": name},
           {"at": at(15, 30), "kind": "exited", "job": name, "exit": draft.exit}]  # fmt: skip
    events = sorted(own + draft.events, key=lambda e: e["at"])
    files = {
        "job.json": json.dumps(job_of(draft, name), indent=1) + "\n",
        "events.jsonl": json_lines(events),
        "metrics.jsonl": json_lines(draft.metrics),
        "logs/driver.log": "\n".join(draft.driver) + "\n",
    }
    if draft.worker:
        pid = draft.words["pid"]
        worker = f"logs/workers/{draft.nodes[0]}/worker-{'a1' * 28}-02000000-{pid}.out"
        files[worker] = f":job_id:02000000\n:actor_name:WorkerDict\n{chr(10).join(draft.worker)}\n"
    for node in draft.nodes:
        mine = draft.kernel if node == draft.nodes[0] else []
        old = draft.before if node == draft.nodes[0] else []
        began = BOOTED_H * 3600
        dmesg = [f"[{began - 90000 + k}.000000] {line}" for k, line in enumerate(["systemd[1]: Started cron.", *old])]
        since = [f"[{began + 1800 + k}.000000] {line}" for k, line in enumerate(mine)]
        files[f"scene/{node}/scene.json"] = json.dumps(facts_of(draft, node), indent=1) + "\n"
        files[f"scene/{node}/kernel.txt"] = "".join(line + "\n" for line in since)
        files[f"nodes/{node}/dmesg.txt"] = "".join(line + "\n" for line in dmesg + since)
    return files


def plan(kinds, per_kind):
    """(group, kind, number, distractor) of each scene. The two others shrink as the kinds do."""
    rows = [("kind", kind, n, None) for kind in kinds for n in range(per_kind)]
    share = min(1.0, per_kind / WHOLE)
    rows += [("healthy", "healthy", n, None) for n in range(max(1, round(HEALTHY * share)))]
    names = list(DISTRACTORS)
    for n in range(max(len(names), round(WITH_DISTRACTOR * share))):
        name = names[n % len(names)]
        fit = [kind for kind in kinds if kind not in DISTRACTORS[name][1]]
        if fit:
            rows.append(("distractor", fit[(n // len(names) * 7 + n) % len(fit)], n, name))
    return rows


def make_scene(row, name, seed):
    """(files, truth)"""
    group, kind, n, distractor = row
    draft = Draft(random.Random(f"{seed}/{group}/{kind}/{n}"))
    if group == "healthy":
        truth = draft_healthy(draft)
    else:
        truth = (draft_real if kind in REAL else draft_made)(draft, kind, n)
    if distractor:
        ADD[distractor](draft)
        truth |= {"distractor": distractor, "distractor_cause": DISTRACTORS[distractor][0]}
    return files_of(draft, name), {"scene": name, "group": group, "kind": kind, **truth}


def put_files(where, files):
    for path, content in files.items():
        file = where / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


def make_scenes(where, seed, kinds=KINDS, per_kind=WHOLE):
    """Writes them below where/scenes and where/truth; the names in order."""
    rows = plan(kinds, per_kind)
    random.Random(f"{seed}/order").shuffle(rows)
    where = pathlib.Path(where)
    (where / "truth").mkdir(parents=True)
    names = [f"scene-{k:03}" for k in range(len(rows))]
    for row, name in zip(rows, names, strict=True):
        files, truth = make_scene(row, name, seed)
        put_files(where / "scenes" / name, files)
        (where / "truth" / f"{name}.json").write_text(json.dumps(truth, indent=1) + "\n")
    return names
