# SPDX-License-Identifier: Apache-2.0
"""The cluster behind the fake dashboard: nodes, jobs, logical resources, processes.

Follows what real Ray was seen to do: PENDING jobs cannot be stopped or deleted, a stop is only "asked", DELETE too
soon brings a ghost back, dead nodes stay listed, a restarted node has a new id, a lost memory a new session.
"""

import asyncio
import contextlib
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WAITING = " It may be waiting for resources (CPUs, GPUs, memory, custom resources) to become available."
TERMINAL = ("SUCCEEDED", "FAILED", "STOPPED")
AGENT_PORT = 52365
POLL_S = 0.03

DEFAULT_NODES = [
    {"name": "h1", "ip": "10.99.0.1", "head": True, "resources": {}},
    {"name": "h2", "ip": "10.99.0.2", "resources": {"CPU": 40, "GPU": 4, "worker_node": 100, "argus_node_h2": 1000}},
    {"name": "h3", "ip": "10.99.0.3", "resources": {"CPU": 40, "GPU": 4, "worker_node": 100, "argus_node_h3": 1000}},
]

SETTINGS = {
    "start_delay": 0.05,  # PENDING -> RUNNING, seconds
    "driver_delay": 0.1,  # RUNNING -> driver_info; null = the entrypoint never calls ray.init()
    "hold_pending": False,  # nothing starts while this is true
    "driver_on_head": False,  # drivers land on the head, whatever they asked for
    "driver_ip": None,  # what driver_info says instead of the node's address
    "orphans": 0,  # so many of the next jobs stay as they are without supervisor
    "orphan_status": "PENDING",  # what Ray says of them: RUNNING is said before anything of a job runs
    "missed_deaths": False,  # a supervisor that dies is RUNNING in its record for ever, and DEAD as an actor
    "start_timeout": 900.0,
    "ghost_window": 1.0,  # DELETE sooner than this after the end: the record comes back
    "ghost_delay": 1.0,
    "death_delay": 0.2,  # node dead -> its jobs FAILED
    "serve_delay": 0.3,  # see serve.py
    "serve_failing": [],  # applications that are DEPLOY_FAILED
    "serve_sick": [],  # whose replicas answer 500
    "serve_encoders": [],  # whose model makes no text, and has embeddings alone
    "serve_hold": False,  # an answer that is streamed stays after its first event
    "serve_programs": {},  # name -> route, of applications that jobs made
    "serve_open": False,  # no gate stands in the proxies
    "serve_key_file": None,
    "no_agent": False,  # POSTs answer that the head's agent is away
    "state_warning": "",  # why the lists of the state API are not whole
}


def children_of(pid):
    """pid and all that descend from it now, as Ray's stop finds them."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as f:
                    parents[int(name)] = int(f.read().rsplit(")", 1)[1].split()[1])
            except (OSError, ValueError, IndexError):
                pass
    found = [pid]
    for p in found:
        found += [c for c, parent in parents.items() if parent == p]
    return found


def send(pids, sig):
    for pid in pids:
        try:
            os.kill(pid, sig)
        except ProcessLookupError:
            pass


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def read_json(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def now_ms():
    return int(time.time() * 1000)


def new_node(spec):
    res = {k: float(v) for k, v in spec.get("resources", {}).items() if v}
    res.setdefault("memory", 16e9)
    res.setdefault("object_store_memory", 2e8)
    res[f"node:{spec['ip']}"] = 1.0
    if spec.get("head"):
        res["node:__internal_head__"] = 1.0
    node_id = secrets.token_hex(28)
    return {
        "spec": spec,
        "name": spec["name"],
        "ip": spec["ip"],
        "head": bool(spec.get("head")),
        "node_id": node_id,
        "resources": res,
        "labels": {**spec.get("labels", {}), "ray.io/node-id": node_id},
        "alive": True,
        "message": None,
    }


class Cluster:
    def __init__(self, version, root, nodes=None):
        self.version = version
        self.root = root
        self.settings = dict(SETTINGS)
        self.changed = asyncio.Event()  # set, and another one in its place, when the settings are changed
        self.world = {"actors": [], "groups": []}  # told beside what the jobs make
        self.tasks = set()
        os.makedirs(root, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(root, "closed"))
        self.starts = os.path.join(root, "starts.jsonl")
        old = read_json(os.path.join(root, "state.json"))
        if old:
            self.nodes, self.jobs, self.session = old["nodes"], old["jobs"], old["session"]
            self.counter = old["counter"]
        else:
            self.nodes = [new_node(s) for s in nodes or DEFAULT_NODES]
            self.counter = 1
            self.new_session()
        self.save()

    def change(self, settings):
        self.settings.update(settings)
        self.changed.set()
        self.changed = asyncio.Event()

    def resume(self):
        for job in self.jobs.values():
            if job["record"]["status"] not in TERMINAL and job["runs"]:
                self.spawn(self.run(job))

    def spawn(self, coro):
        task = asyncio.get_running_loop().create_task(coro)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def new_session(self):
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        self.session = f"session_{stamp}_{random.randrange(10**6):06d}_{os.getpid()}"
        self.jobs = {}

    def save(self):
        path = os.path.join(self.root, "state.json")
        with open(path + ".new", "w") as f:
            json.dump({"nodes": self.nodes, "jobs": self.jobs, "session": self.session, "counter": self.counter}, f)
        os.replace(path + ".new", path)

    def minor(self):
        return int(self.version.split(".")[1])

    # -- jobs ------------------------------------------------------------------

    def jobdir(self, job):
        return os.path.join(self.root, job["session"], "jobs", job["id"])

    def log_path(self, job):
        return os.path.join(self.root, job["session"], "logs", f"job-driver-{job['id']}.log")

    def submit(self, req):
        """The put-if-absent of Ray: ValueError when the id is taken."""
        sid = req.get("submission_id") or req.get("job_id") or "raysubmit_" + secrets.token_hex(8)
        if sid in self.jobs:
            raise ValueError(f"Job with submission_id {sid} already exists. Please use a different submission_id.")
        runs = self.settings["orphans"] <= 0
        if not runs:
            self.settings["orphans"] -= 1
        demand = {k: float(v) for k, v in (req.get("entrypoint_resources") or {}).items() if v}
        for key, name in (("num_cpus", "CPU"), ("num_gpus", "GPU"), ("memory", "memory")):
            if req.get("entrypoint_" + key):
                demand[name] = float(req["entrypoint_" + key])
        record = {
            "type": "SUBMISSION",
            "job_id": None,
            "submission_id": sid,
            "driver_info": None,
            "status": "PENDING" if runs else self.settings["orphan_status"],
            "entrypoint": req["entrypoint"],
            "message": "Job has not started yet." + (WAITING if demand else ""),
            "error_type": None,
            "start_time": now_ms(),
            "end_time": None,
            "metadata": req.get("metadata"),
            "runtime_env": req.get("runtime_env"),
            "driver_agent_http_address": None,
            "driver_node_id": None,
            "driver_exit_code": None,
        }
        job = {
            "id": sid,
            "record": record,
            "session": self.session,
            "demand": demand,
            "labels": req.get("entrypoint_label_selector") or {},
            "node": None,
            "actor": secrets.token_hex(12) + "01000000",
            "stop_asked": False,
            "runs": runs,
            "ended": None,
        }
        self.jobs[sid] = job
        self.save()
        if runs:
            self.spawn(self.run(job))
        return sid

    def is_known(self, job):
        return self.jobs.get(job["id"]) is job

    def free(self, node):
        left = dict(node["resources"])
        for job in self.jobs.values():
            if job["node"] == node["node_id"] and job["record"]["status"] == "RUNNING":
                for name, amount in job["demand"].items():
                    left[name] = left.get(name, 0) - amount
        return left

    def place(self, job):
        head = next((n for n in self.nodes if n["head"] and n["alive"]), None)
        if self.settings["driver_on_head"] or (not job["demand"] and not job["labels"]):
            return head
        for node in self.nodes:
            left = self.free(node)
            fits = all(left.get(k, 0) >= v - 1e-9 for k, v in job["demand"].items())
            if node["alive"] and fits and all(node["labels"].get(k) == v for k, v in job["labels"].items()):
                return node
        return None

    def end(self, job, status, message, error=None, code=None):
        if job["record"]["status"] in TERMINAL:
            return
        job["record"].update(status=status, message=message, error_type=error, end_time=now_ms(), driver_exit_code=code)
        job["ended"] = time.time()
        self.save()

    async def run(self, job):
        if job["record"]["status"] == "PENDING":
            await asyncio.sleep(self.settings["start_delay"])
            node = await self.wait_for_place(job)
            if node is None or not self.is_known(job):
                return
            self.start(job, node)
        await self.watch(job)

    async def wait_for_place(self, job):
        while self.is_known(job) and job["record"]["status"] == "PENDING":
            node = None if self.settings["hold_pending"] else self.place(job)
            if node:
                return node
            limit = self.settings["start_timeout"]
            if time.time() - job["record"]["start_time"] / 1000 > limit:
                text = (
                    f"Job supervisor actor failed to start within {limit} seconds. This timeout can be configured by "
                    "setting the environment variable RAY_JOB_START_TIMEOUT_SECONDS."
                )
                self.end(job, "FAILED", text, "JOB_SUPERVISOR_ACTOR_START_TIMEOUT")
            await asyncio.sleep(POLL_S)
        return None

    def start(self, job, node):
        job["node"] = node["node_id"]
        job["record"].update(
            status="RUNNING",
            message="Job is currently running.",
            driver_agent_http_address=f"http://{node['ip']}:{AGENT_PORT}",
            driver_node_id=node["node_id"],
        )
        self.save()
        jobdir = self.jobdir(job)
        os.makedirs(jobdir, exist_ok=True)
        os.makedirs(os.path.dirname(self.log_path(job)), exist_ok=True)
        if node["head"]:
            with open(self.log_path(job), "a") as log:
                log.write("Runtime env is setting up.\n")
        runtime_env = job["record"]["runtime_env"] or {}
        base = {
            "RAY_ADDRESS": f"{self.nodes[0]['ip']}:6379",
            "PYTHONUNBUFFERED": "1",
            "RAY_JOB_CONFIG_JSON_ENV_VAR": json.dumps(
                {"runtime_env": runtime_env, "metadata": job["record"]["metadata"] or {}}
            ),
        }
        if job["demand"]:
            base["CUDA_VISIBLE_DEVICES"] = ",".join(str(i) for i in range(int(job["demand"].get("GPU", 0))))
        what = {
            "id": job["id"],
            "entrypoint": job["record"]["entrypoint"],
            "base_env": base,
            "env_vars": runtime_env.get("env_vars") or {},
            "log": self.log_path(job),
            "node": node["name"],
            "ip": node["ip"],
            "starts": self.starts,
            "closed": os.path.join(self.root, "closed"),
        }
        with open(os.path.join(jobdir, "job.json"), "w") as f:
            json.dump(what, f)
        job["started"] = time.time()
        subprocess.Popen(
            [sys.executable, "-I", "-S", os.path.join(HERE, "runner.py"), jobdir],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=jobdir,
        )

    async def watch(self, job):
        """Until it ends, is killed with its node, or its memory is lost."""
        exit_path = os.path.join(self.jobdir(job), "exit.json")
        while self.is_known(job) and job["record"]["status"] == "RUNNING":
            got = read_json(exit_path)
            if got:
                await self.finished(job, got["code"])
            elif job["stop_asked"]:
                await self.kill_slowly(job)
            elif not self.is_supervisor_gone(job):
                self.tell_driver(job)
                await asyncio.sleep(POLL_S)
            elif self.settings["missed_deaths"]:
                await asyncio.sleep(POLL_S)
            else:
                self.kill_now(job)
                text = "Job supervisor actor died: The actor died unexpectedly before finishing this task."
                self.end(job, "FAILED", text, "JOB_SUPERVISOR_ACTOR_DIED")

    def is_supervisor_gone(self, job):
        pids = read_json(os.path.join(self.jobdir(job), "pid.json"))
        return pids and not is_alive(pids["runner"]) and not os.path.exists(os.path.join(self.jobdir(job), "exit.json"))

    def tell_driver(self, job):
        delay = self.settings["driver_delay"]
        pids = read_json(os.path.join(self.jobdir(job), "pid.json"))
        if job["record"]["driver_info"] or delay is None or not pids:
            return
        if time.time() - job.get("started", 0) < delay:
            return
        self.counter += 1
        hex_id = f"{self.counter:02x}000000"
        node = next(n for n in self.nodes if n["node_id"] == job["node"])
        ip = self.settings["driver_ip"] or node["ip"]
        job["record"].update(job_id=hex_id, driver_info={"id": hex_id, "node_ip_address": ip, "pid": str(pids["pid"])})
        self.save()

    async def finished(self, job, code):
        if code == 0:
            self.end(job, "SUCCEEDED", "Job finished successfully.", code=0)
            return
        with open(self.log_path(job), "rb") as f:
            tail = f.read()[-20000:].decode("utf-8", "replace")
        lines = "".join(tail.splitlines(keepends=True)[-10:])
        text = (
            f"Job entrypoint command failed with exit code {code}, last available logs (truncated to 20,000 chars):\n"
        )
        self.end(job, "FAILED", text + lines, "JOB_ENTRYPOINT_COMMAND_ERROR", code)

    async def kill_slowly(self, job):
        """SIGTERM to the tree of this moment, SIGKILL after the wait; STOPPED then."""
        pids = read_json(os.path.join(self.jobdir(job), "pid.json"))
        if not pids:
            await asyncio.sleep(POLL_S)
            return
        env = (job["record"]["runtime_env"] or {}).get("env_vars") or {}
        deadline = time.time() + float(env.get("RAY_JOB_STOP_WAIT_TIME_S", 3))
        tree = children_of(pids["pid"])
        send(tree, signal.SIGTERM)
        while any(is_alive(p) for p in tree) and time.time() < deadline:
            await asyncio.sleep(POLL_S)
        send([p for p in tree if is_alive(p)], signal.SIGKILL)
        if self.is_known(job):
            self.end(job, "STOPPED", "Job was intentionally stopped.")

    def kill_now(self, job):
        """What a dead raylet takes along."""
        pids = read_json(os.path.join(self.jobdir(job), "pid.json"))
        if pids and not os.path.exists(os.path.join(self.jobdir(job), "exit.json")):
            send([pids["runner"], *children_of(pids["pid"])], signal.SIGKILL)  # who would tell of it first

    def stop(self, job):
        """Only asked; a PENDING one stays so until it starts."""
        if job["record"]["status"] in TERMINAL or not job["runs"]:
            return False
        job["stop_asked"] = True
        self.save()
        return True

    def delete(self, job):
        if job["record"]["status"] not in TERMINAL:
            raise RuntimeError(
                f"Attempted to delete job '{job['id']}', but it is in a non-terminal state {job['record']['status']}."
            )
        del self.jobs[job["id"]]
        self.save()
        if job["ended"] and time.time() - job["ended"] < self.settings["ghost_window"]:
            self.spawn(self.bring_back(job))

    async def bring_back(self, job):
        await asyncio.sleep(self.settings["ghost_delay"])
        message = (
            "Job supervisor actor died: The actor died unexpectedly before finishing this task.\n"
            f"\tclass_name: JobSupervisor\n\tactor_id: {job['actor']}\n"
            "The actor is dead because its worker process has died. Worker exit type: INTENDED_USER_EXIT "
            "Worker exit detail: Worker exits by an user request. Worker exits with an exit code 0. "
            "exit_actor() is called."
        )
        job["record"] = {
            **dict.fromkeys(job["record"]),
            "type": "SUBMISSION",
            "submission_id": job["id"],
            "status": "FAILED",
            "entrypoint": "Entrypoint not found.",
            "message": message,
            "error_type": "JOB_SUPERVISOR_ACTOR_DIED",
            "end_time": now_ms(),
        }
        self.jobs.setdefault(job["id"], job)
        self.save()

    # -- nodes -------------------------------------------------------------------

    def node_down(self, name, processes="kill", message=None):
        """processes: `kill` as when the raylet dies, `keep` as when the link is cut."""
        for node in [n for n in self.nodes if n["name"] == name and n["alive"]]:
            node["alive"] = False
            node["message"] = message or (
                "Unexpected termination: health check failed due to missing too many heartbeats"
            )
            for job in list(self.jobs.values()):
                if job["node"] == node["node_id"] and job["record"]["status"] == "RUNNING":
                    job["stop_asked"] = False
                    if processes == "kill":
                        self.kill_now(job)
                    self.spawn(self.lose(job, node))
        self.save()

    async def lose(self, job, node):
        text = (
            "Job supervisor actor died: The actor died unexpectedly before finishing this task.\n"
            f"\tclass_name: JobSupervisor\n\tactor_id: {job['actor']}\n"
            "The actor died because its node has died. Node Id: "
            f"{node['node_id']}\n\t"
            "the actor's node was terminated unexpectedly: "
            "health check failed due to missing too many heartbeats"
        )
        await asyncio.sleep(self.settings["death_delay"])
        self.end(job, "FAILED", text, "JOB_SUPERVISOR_ACTOR_DIED")

    def node_up(self, name):
        """A new raylet: a new node id, the dead one stays listed."""
        old = next((n for n in self.nodes if n["name"] == name), None)
        if old is None:
            raise KeyError(name)
        if not any(n["name"] == name and n["alive"] for n in self.nodes):
            self.nodes.append(new_node(old["spec"]))
            self.save()

    def move_node(self, name, ip):
        """Its raylet says that it is at this address."""
        for node in self.nodes:
            if node["name"] == name and node["alive"]:
                node["ip"] = ip
        self.save()

    def add_node(self, spec):
        self.nodes.append(new_node(spec))
        self.save()

    async def lose_memory(self, kill_after):
        """The head came back without its store; old raylets take their drivers along after a while."""
        old = list(self.jobs.values())
        self.new_session()
        self.nodes = [new_node(n["spec"]) for n in self.nodes if n["alive"]]
        self.save()
        if kill_after is not None:
            await asyncio.sleep(kill_after)
            for job in old:
                self.kill_now(job)

    # -- the end -------------------------------------------------------------------

    def read_starts(self):
        try:
            with open(self.starts) as f:
                return [json.loads(line) for line in f]
        except OSError:
            return []

    def reap(self):
        """Kill every process that this state directory knows of."""
        for top, _, files in os.walk(self.root):
            if "pid.json" in files and "exit.json" not in files:
                pids = read_json(os.path.join(top, "pid.json"))
                if pids and is_alive(pids["runner"]):
                    send([*children_of(pids["pid"]), pids["runner"]], signal.SIGKILL)

    def close(self, keep):
        with open(os.path.join(self.root, "closed"), "w"):
            pass  # a runner that is just starting its entrypoint sees it and undoes that
        self.reap()
        if not keep:
            shutil.rmtree(self.root, ignore_errors=True)
