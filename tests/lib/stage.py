# SPDX-License-Identifier: Apache-2.0
"""A stage for acceptance: a bed with real Ray, a shared root with nothing but real verl, argusd with an empty store.

    stage.document("v1")       docs/acceptance/v1.md, whose commands are run as they stand there
    stage.get(path)            argusd's answer; stage.ray(path) is Ray's own
    stage.python(script)       runs where Ray's Python packages are, on this machine, with Ray's address and token

What proves something is kept: stage.keep(name, thing) writes it into the evidence of this stage.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest
from programs import PROGRAMS

from argusd import OVER, Argusd

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEADLINE = 400  # of a training run on a busy machine: far more than it needs
RANKS = """
import json
from ray.util.state import list_actors, list_nodes
ips = {n.node_id: n.node_ip for n in list_nodes()}
alive = list_actors(filters=[("state", "=", "ALIVE")], detail=True)
print(json.dumps([[a.class_name, a.pid, ips[a.node_id]] for a in alive]))
"""
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def wait_for(condition, what, seconds=DEADLINE):
    """The first true value of condition(); what takes long is asked a few times a second."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        pause.wait(0.25)
    raise AssertionError(f"{what}: not seen within {seconds} s")


def verl_package(env):
    (found,) = env.glob("lib/python3*/site-packages/verl")
    return found


def make_tiny(python, directory, *options):
    """Model and data, by the program that the demo uses."""
    program, model, data = ROOT / "examples/cpu/make_tiny.py", directory / "model", directory / "data"
    subprocess.run([python, program, *options, model, data], check=True, timeout=300, stdout=subprocess.DEVNULL)
    return directory


class Document:
    """The commands of a page below docs/: blocks that open with ```sh NAME, run by bash as a person would run them."""

    were_run = {}  # {document: its blocks}, on whichever stage

    def __init__(self, stage, path):
        text = (ROOT / "docs" / f"{path}.md").read_text()
        self.stage, self.blocks = stage, dict(re.findall(r"(?ms)^```sh (\S+)\n(.*?)^```$", text))
        self.done = self.were_run.setdefault(path, set())
        assert self.blocks, f"no commands in {path}.md"

    def never_run(self, at_night=()):
        """The blocks that nobody ran; those that are run at night alone are asked for at night alone."""
        late = () if os.environ.get("ARGUS_NIGHTLY") else at_night
        return sorted(set(self.blocks) - self.done - set(late))

    def run(self, block, code=0, **values):
        """What it printed; code is the exit status that it must end with, values what the shell knows besides."""
        self.done.add(block)
        argv, env = ["bash", "-euo", "pipefail", "-c", self.blocks[block]], self.stage.shell_env() | values
        p = subprocess.run(argv, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=3 * DEADLINE)
        out, err = p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")
        self.stage.keep(f"{block}.txt", f"exit status {p.returncode}\n--- stdout\n{out}\n--- stderr\n{err}")
        assert p.returncode == code, f"{block}: exit status {p.returncode}: {out[-2000:]}{err[-2000:]}"
        return out


class Stage(Argusd):
    others = {}  # an empty store but for the first admin
    trial = False  # before each job: has tests of its own

    def __init__(self, bed, directory, tiny, evidence):
        self.bed = bed
        super().__init__(directory, self.bed.url)
        self.log = evidence / "argusd.log"
        self.evidence, self.tiny = evidence, tiny
        self.verl = bed.verl
        self.head_ip, self.ray_token = self.bed.head_ip, self.bed.token
        self.workers = {name: ip for name, ip in self.bed.ips.items() if ip != self.head_ip}
        self.documents = {}

    def __enter__(self):
        if self.tiny is None:
            return super().__enter__()
        common = self.root / "common"
        shutil.copytree(ROOT / "examples/cpu", common / "code/cpu", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(verl_package(self.bed.env), common / f"code/verl/{self.verl}/verl")
        shutil.copytree(self.tiny / "model", common / "models/tiny")
        shutil.copytree(self.tiny / "data", common / "datasets/tiny")
        return super().__enter__()

    def write_config(self):
        auth = f"  auth: token\n  auth_token_file: {self.bed.info['token_path']}\n" if self.bed.token else ""
        self.config.write_text(
            f"shared_root: {self.root}\nstate_dir: {self.state_dir}\nlisten: 127.0.0.1:{self.port}\n"
            f"shepherd: {PROGRAMS['argus-shepherd']}\ntrial: {str(self.trial).lower()}\n"
            f"ray:\n  address: {self.ray_url}\n  networks: [10.99.0.0/16]\n{auth}"
        )

    def wait_up(self):
        super().wait_up()
        wait_for(lambda: self.call("GET", "/readyz").status == 200, "argusd takes jobs")
        wait_for(lambda: self.get("/readyz")["shared_root"] == "ok", "argusd has looked at the shared root")
        wait_for(lambda: self.get("/v1/clusters")["clusters"][0]["up"], "argusd sees Ray")
        return self

    # ---- asking ----

    def shell_env(self):
        """What a person's shell knows."""
        names = ("LANG", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")
        return {
            **{k: v for k, v in os.environ.items() if k in names},
            "PATH": f"{PROGRAMS['argus'].parent}:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "HOME": str(self.home),
            "ARGUS_URL": self.url,
            "ARGUS_TOKEN": self.tokens["admin"],
            "SHARED_ROOT": str(self.root),
        }

    def document(self, name):
        return self.documents.setdefault(name, Document(self, name if "/" in name else f"acceptance/{name}"))

    def argus(self, *args, code=0):
        argv = [PROGRAMS["argus"], *args]
        done = subprocess.run(argv, env=self.shell_env(), capture_output=True, text=True, timeout=DEADLINE)
        assert done.returncode == code, f"argus {args}: {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def cluster(self, what):
        return self.get(f"/v1/clusters/default/{what}")[what]

    def ray(self, path):
        """Ray's own answer; None when it has no such thing."""
        request = urllib.request.Request(self.bed.url + path, headers={"User-Agent": "argus-test"})
        if self.ray_token:
            request.add_header("Authorization", f"Bearer {self.ray_token}")
        try:
            with DIRECT.open(request, timeout=240) as reply:
                return json.load(reply)
        except urllib.error.HTTPError:
            return None

    def ray_status(self):
        return self.bed.on("ctl", "ray", "status")

    def tell_ray(self, path, body=None):
        """As somebody who knows nothing of Argus."""
        headers = {"Content-Type": "application/json", "User-Agent": "somebody"}
        if self.ray_token:
            headers["Authorization"] = f"Bearer {self.ray_token}"
        request = urllib.request.Request(self.bed.url + path, json.dumps(body).encode(), headers, method="POST")
        with DIRECT.open(request, timeout=240) as reply:
            return json.load(reply)

    def give_to_ray(self, ray_id, gpus=1, node=None):
        """A job that Argus did not submit; on this machine of ours, if one is named."""
        body = {"submission_id": ray_id, "entrypoint": "exec sleep 100000", "entrypoint_num_gpus": gpus}
        if node:
            body["entrypoint_resources"] = {f"argus_node_{node}": 1}
        assert self.tell_ray("/api/jobs/", body)["submission_id"] == ray_id

    def take_from_ray(self, ray_id):
        assert self.tell_ray(f"/api/jobs/{ray_id}/stop")["stopped"]

    def python(self, script):
        """The JSON that a script prints in its last line."""
        return json.loads(self.bed.on("ctl", str(self.bed.python), "-c", script).strip().splitlines()[-1])

    def kill_a_rank(self):
        """One process of the only training, as a machine's fault would."""
        actors = self.python(RANKS)
        ranks = [(pid, ip) for name, pid, ip in actors if "WorkerDict" in name or "TrainingWorker" in name]
        assert ranks, actors
        pid, ip = ranks[0]
        (host,) = [name for name, its in self.bed.ips.items() if its == ip]
        self.bed.kill(host, pid)

    # ---- a job's files ----

    def driver_log(self, job):
        path = self.job_dir(job) / "logs/driver.log"
        return re.sub(r"\x1b\[[0-9;]*m", "", path.read_text(errors="replace")) if path.exists() else ""

    def steps(self, job):
        """The numbers of the training steps in the driver's log; verl validates under number 0."""
        return [int(n) for n in re.findall(r"(?<![\w/])step:(\d+) - ", self.driver_log(job)) if n != "0"]

    def wait_state(self, job, *states, seconds=DEADLINE):
        def is_there():
            got = self.job(job)
            late = got["state"] in OVER and got["state"] not in states
            assert not late, f"{job} is {got['state']}: {got['reason']} {self.driver_log(job)[-3000:]}"
            return got["state"] in states and got

        return wait_for(is_there, f"{job} is {' or '.join(states)}", seconds)

    def wait_log(self, job, pattern):
        def is_there():
            if re.search(pattern, self.driver_log(job)):
                return True
            got = self.job(job)
            assert got["state"] not in OVER, f"{job} is {got['state']}: {got['reason']} {self.driver_log(job)[-3000:]}"

        wait_for(is_there, f"{pattern!r} in the log of {job}")

    def ray_driver(self, job):
        """Ray's own record of the job while its driver runs; None when it was over before."""

        def look():
            record = self.ray(f"/api/jobs/{job}")
            return record and record["driver_info"] and record

        return wait_for(look, f"Ray knows the driver of {job}")

    # ---- evidence ----

    def keep(self, name, thing):
        text = thing if isinstance(thing, str) else json.dumps(thing, indent=2, default=str)
        (self.evidence / name).write_text(text)
        return thing

    def keep_job(self, job):
        """The job as argusd tells it, its events, its files, and Ray's job list and status of this moment."""
        self.keep(f"{job}.json", self.job(job))
        self.keep(f"{job}.events.json", self.events(job))
        files = sorted(p for p in self.job_dir(job).rglob("*") if not p.is_dir() or p.is_symlink())
        links = {p: f" -> {os.readlink(p)}" for p in files if p.is_symlink()}
        lines = [f"{p.lstat().st_size:>10} {p.relative_to(self.root)}{links.get(p, '')}" for p in files]
        self.keep(f"{job}.files.txt", "\n".join(lines))
        self.keep(f"{job}.ray_jobs.json", self.ray("/api/jobs/"))
        self.keep(f"{job}.ray_status.txt", self.ray_status())
        return self.job(job)


def open_stage(kind, bed, request, tmp_path_factory, evidence, tiny):
    if PROGRAMS is None:
        pytest.skip("argusd, argus and argus-shepherd are not built")
    name = f"{request.module.__name__}-{bed.verl}"
    place = evidence / name
    place.mkdir(parents=True, exist_ok=True)
    return kind(bed, tmp_path_factory.mktemp(name), tiny, place)
