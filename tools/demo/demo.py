#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo: a Ray cluster of three hosts on this machine, argusd, and a GRPO run with verl's own program.

    demo.py run DIR | down DIR

Everything lies in DIR (by default .demo in the clone: two clones do not meet, and deleting it leaves nothing behind):
app/ the programs, bed/ the cluster, shared/ the shared root, state/ argusd's store, demo.json what was started.
What runs already and is healthy is used again.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tools", "bed")]
import curve  # noqa: E402
import procs  # noqa: E402

BED = [sys.executable, os.path.join(ROOT, "tools", "bed", "bed")]
START = time.monotonic()
QUIET = 10  # seconds without a line after which one is printed


def step(text):
    print(f"\n== {text}", flush=True)


def say(text):
    print(f"[{time.monotonic() - START:5.0f} s] {text}", flush=True)


def fail(text):
    print(f"demo: {text}", file=sys.stderr)
    sys.exit(1)


def paths(directory):
    names = ("app", "bed", "shared", "state", "demo.json", "argus.yaml", "argusd.log", "env.sh", "follow.log", "token")
    return {name.split(".")[0]: os.path.join(directory, name) for name in names} | {"dir": directory}


def clean_env(**more):
    """Without proxies: everything that is asked here is on this machine."""
    env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return {**env, **more}


def environment(name):
    got = subprocess.run([os.path.join(ROOT, "tools", "setup", "env-path"), name], stdout=subprocess.PIPE, text=True)
    if got.returncode != 0:
        sys.exit(1)
    return got.stdout.strip()


# ---- the cluster -------------------------------------------------------------------------------------------------


def bed_call(p, verb, *args, **kwargs):
    return subprocess.run([*BED, verb, "--dir", p["bed"], *args], **kwargs)


def start_cluster(p, venv):
    step("3/6 three hosts: a Ray head that computes nothing, two workers with 4 pretended GPUs each")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if bed_call(p, "status", **quiet).returncode == 0:
        say("the cluster of the last run is healthy: used again")
    else:
        bed_call(p, "down")
        up = ["--env", venv, "--hosts", "3", "--gpus", "4", "--auth", "token", "--bare-workers"]
        if bed_call(p, "up", *up).returncode != 0:
            fail("the cluster did not start: the reason stands above")
    with open(os.path.join(p["bed"], "bed.json")) as f:
        bed = json.load(f)
    say(f"dashboard {bed['dashboard_url']}, " + ", ".join(f"{h['name']} {h['ip']} ({h['role']})" for h in bed["hosts"]))
    return bed


# ---- the shared root ---------------------------------------------------------------------------------------------


def put(source, target):
    """A directory appears whole or not at all."""
    shutil.rmtree(target + ".new", ignore_errors=True)
    shutil.copytree(source, target + ".new", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.rename(target + ".new", target)


def fill_shared_root(p, venv):
    step("4/6 code, a tiny model and data on the shared root")
    common = os.path.join(p["shared"], "common")
    os.makedirs(os.path.join(common, "code"), exist_ok=True)
    put(os.path.join(ROOT, "examples", "cpu"), os.path.join(common, "code", "cpu"))
    snapshot = os.path.join(common, "code", "verl", "0.9.1")
    if not os.path.exists(os.path.join(snapshot, "verl")):
        os.makedirs(snapshot, exist_ok=True)
        lib = os.path.join(venv, "lib")
        packages = os.path.join(lib, sorted(os.listdir(lib))[0], "site-packages")
        put(os.path.join(packages, "verl"), os.path.join(snapshot, "verl"))
        say(f"code of verl 0.9.1: {snapshot}")
    model, data = os.path.join(common, "models", "tiny"), os.path.join(common, "datasets", "tiny")
    if os.path.exists(os.path.join(model, "model.safetensors")) and os.path.exists(os.path.join(data, "eval.parquet")):
        say("model and data are there from the last run")
        return
    say("making model and data (importing torch takes a few seconds)")
    make = [os.path.join(venv, "bin", "python"), os.path.join(ROOT, "examples", "cpu", "make_tiny.py"), model, data]
    if subprocess.run(make).returncode != 0:
        fail("the tiny model could not be made: the reason stands above")


# ---- argusd ------------------------------------------------------------------------------------------------------


def load_state(p):
    try:
        with open(p["demo"]) as f:
            return json.load(f)
    except (FileNotFoundError, ValueError):
        return {}


def save_state(p, state):
    with open(p["demo"] + ".new", "w") as f:
        json.dump(state, f, indent=2)
    os.replace(p["demo"] + ".new", p["demo"])


def free_port(wanted):
    for port in [*range(wanted, wanted + 100), 0]:
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return s.getsockname()[1]


def config_text(p, bed, port):
    return (
        "# Written by ./dev demo.\n"
        f"shared_root: {p['shared']}\n"
        f"state_dir: {p['state']}\n"
        f"listen: 127.0.0.1:{port}\n"
        "ray:\n"
        f"  address: {bed['dashboard_url']}\n"
        "  auth: token\n"
        f"  auth_token_file: {bed['token_path']}\n"
        "entrypoint_resources: {worker_node: 1}\n"
    )


def ask(url, token=None, body=None):
    """With a body: a POST of it."""
    request = urllib.request.Request(url, headers={"User-Agent": "argus-demo"})
    if token:
        request.add_header("Authorization", "Bearer " + token)
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30) as reply:
        return reply.read().decode()


def is_ready(url):
    try:
        ask(url + "/readyz")
        return True
    except (OSError, urllib.error.URLError):
        return False


def stop_argusd(state):
    """The one that was started, by its pid and start time; its jobs go on without it."""
    who = state.get("argusd")
    if procs.send(who, signal.SIGTERM) and not procs.wait_gone(who, 15):
        procs.send(who, signal.SIGKILL)
        procs.wait_gone(who, 5)
    state["argusd"] = None


def is_current(p, state, text):
    """Running, with this configuration, and not a program that was built anew since."""
    who = state.get("argusd")
    if not procs.alive(who) or not os.path.exists(p["argus"]):
        return False
    with open(p["argus"]) as f:
        same = f.read() == text
    return same and not os.readlink(f"/proc/{who['pid']}/exe").endswith(" (deleted)")


def start_argusd(p, bed):
    step("5/6 argusd")
    state = load_state(p)
    port = state.get("port")
    if not port or not procs.alive(state.get("argusd")):
        port = free_port(port or 8080)
    text, url = config_text(p, bed, port), f"http://127.0.0.1:{port}"
    if is_current(p, state, text) and is_ready(url):
        say(f"argusd already runs at {url}")
        return url
    stop_argusd(state)
    with open(p["argus"], "w") as f:
        f.write(text)
    program = os.path.join(p["app"], "bin", "argusd")
    make_token(p, program)
    with open(p["argusd"], "ab") as log:
        argv = [program, "--config", p["argus"]]
        child = subprocess.Popen(
            argv, env=clean_env(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    state.update(argusd=procs.mark(child.pid), port=port)
    save_state(p, state)
    end = time.monotonic() + 30
    while not is_ready(url):
        if child.poll() is not None or time.monotonic() > end:
            subprocess.run(["tail", "-n", "20", p["argusd"]], stdout=sys.stderr)
            fail("argusd did not start: its last lines stand above")
        time.sleep(0.05)
    say(f"argusd runs at {url} (pid {child.pid}, log {p['argusd']})")
    return url


def make_token(p, program):
    """`argusd init` shows the first admin token once; the demo keeps it for the person at this terminal."""
    if os.path.exists(p["token"]):
        return
    argv = [program, "init", "--config", p["argus"]]
    got = subprocess.run(argv, env=clean_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if got.returncode != 0:  # a store whose first token is lost: a further one
        argv += ["--user", "admin", "--role", "admin"]
        got = subprocess.run(argv, env=clean_env(), stdout=subprocess.PIPE, text=True)
    if got.returncode != 0 or not got.stdout.strip():
        fail("'argusd init' gave no token: the reason stands above")
    with open(os.open(p["token"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        f.write(got.stdout.strip() + "\n")
    say(f"first admin token: in {p['token']}")


def write_env(p, url):
    """What a shell needs to use this argusd. The token is in it, so it is the owner's alone."""
    with open(p["token"]) as f:
        token = f.read().strip()
    with open(os.open(p["env"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        f.write(f"export ARGUS_URL='{url}' ARGUS_TOKEN='{token}'\nexport PATH='{p['app']}/bin':\"$PATH\"\n")
    return clean_env(ARGUS_URL=url, ARGUS_TOKEN=token)


def node_of(url, token, name):
    """None: it is not registered."""
    try:
        return json.loads(ask(f"{url}/v1/nodes/{name}", token))
    except urllib.error.HTTPError as e:
        if e.code != 404:
            raise
        return None


def post(url, token, body):
    try:
        return ask(url, token, body)
    except urllib.error.HTTPError as e:
        fail(f"{url} is refused: {e.read().decode(errors='replace')}")


def add_workers(p, bed, venv, url, env):
    """Registers the bare workers, so that argusd starts Ray there, and may drain them. One of a bed of before, at an
    address that is no more, is forgotten first."""
    token = env["ARGUS_TOKEN"]
    workers = {f"worker-{n}": h for n, h in enumerate((h for h in bed["hosts"] if h.get("bare")), 1)}
    for name, h in workers.items():
        node = node_of(url, token, name)
        if node and node["spec"]["host"] != h["ip"]:
            post(f"{url}/v1/nodes/{name}:remove", token, {"force": True})
            wait_for(f"{name} is forgotten", lambda name=name: not node_of(url, token, name))
            node = None
        if not node:
            spec = {"name": name, "host": h["ip"], "ray_bin": os.path.join(venv, "bin", "ray")}
            spec.update(identity_file=os.path.join(p["bed"], "id"), gpu_count=bed["gpus"], cpu_count=bed["cpus"])
            post(f"{url}/v1/nodes", token, spec)
        elif node["want"] != "online":
            post(f"{url}/v1/nodes/{name}:undrain", token, {})
    for name in workers:
        wait_for(f"{name} is online", lambda name=name: node_of(url, token, name)["state"] == "online")
        say(f"{name} is online: argusd reached it over ssh and started Ray there")
    return list(workers)


def wait_for(what, is_there, seconds=180):
    end = time.monotonic() + seconds
    while not is_there():
        if time.monotonic() > end:
            fail(f"not seen within {seconds} s: {what}; 'argus node ls' says why")
        time.sleep(0.5)


# ---- the run -----------------------------------------------------------------------------------------------------


class Follower:
    """Shows a line for each training step of the log that `argus submit --follow` prints, and keeps all of it."""

    def __init__(self, log):
        self.log, self.last, self.lines, self.job, self.tail = log, time.monotonic(), 0, None, ""
        self.done, self.told = threading.Event(), 0

    def show(self, text):
        say(text)
        self.last = time.monotonic()

    def line(self, line):
        self.log.write(line)
        self.log.flush()
        if self.job is None:
            self.job = line.strip()
            self.show(f"job {self.job}")
            return
        self.lines += 1
        self.tail = re.sub(r"\x1b\[[0-9;]*m", "", line).strip()
        m = re.search(r"step:(\d+) - (.*)", self.tail)
        values = dict(part.rsplit(":", 1) for part in m.group(2).split(" - ") if ":" in part) if m else {}
        if curve.REWARD in values:
            score = re.sub(r"[^\d.eE+-]", "", values[curve.REWARD].replace("np.float64", ""))
            self.show(f"step {m.group(1):>3}  reward {float(score):.3f}")

    def heartbeat(self):
        while not self.done.wait(1):
            if time.monotonic() - self.last > QUIET:
                new, self.told = self.lines - self.told, self.lines
                self.show(f"{new} new lines of log" + (f", the last one: {self.tail[:60]}" if new else ""))


def train(p, env):
    step("6/6 argus submit --follow examples/grpo.yaml (about three minutes; the whole log: " + p["follow"] + ")")
    argv = [os.path.join(p["app"], "bin", "argus"), "submit", "--follow", os.path.join(ROOT, "examples", "grpo.yaml")]
    with open(p["follow"], "w") as log:
        follower = Follower(log)
        threading.Thread(target=follower.heartbeat, daemon=True).start()
        child = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True, errors="replace")
        for line in child.stdout:
            follower.line(line)
        follower.done.set()
        code = child.wait()
    if follower.job is None:
        fail("the job was not accepted: the reason stands above")
    return follower.job, code


def metrics_file(job_dir):
    for name in ("metrics/metrics.jsonl", "attempts/1/metrics.jsonl"):
        path = os.path.join(job_dir, name)
        if os.path.exists(path):
            return path
    fail(f"no metrics in '{job_dir}'")


def driver_line(url, env, job):
    detail = json.loads(ask(f"{url}/v1/jobs/{job}", env["ARGUS_TOKEN"]))
    driver = detail.get("driver") or {}
    return f"{driver.get('node')} {driver.get('ip')} (a worker; the head is never used)", detail.get("state")


def login_link(p, env):
    """An address that logs one browser in, once; without one the page asks for the token."""
    argus = os.path.join(p["app"], "bin", "argus")
    got = subprocess.run([argus, "login-link"], env=env, stdout=subprocess.PIPE, text=True)
    return got.stdout.strip() or None


def finish(p, bed, url, env, job, code, workers):
    job_dir = os.path.join(p["shared"], "jobs", job)
    if code != 0:
        fail(f"the run ended otherwise (exit code {code} of argus): see '{job_dir}/logs/driver.log'")
    metrics = metrics_file(job_dir)
    points = curve.read(metrics, curve.REWARD)
    print()
    print(curve.draw(points, curve.REWARD, (sys.stdout.encoding or "").lower().startswith("utf")))
    driver, state = driver_line(url, env, job)
    drain = f"""
  argus node drain {workers[0]} --wait && argus node undrain {workers[0]} --wait""" if workers else ""
    print(f"""
job          {job}, {state}
driver       {driver}
logs         {job_dir}/logs/driver.log
config       {job_dir}/config/
checkpoints  {job_dir}/checkpoints/
metrics      {metrics}

Real here: Ray, verl and its FSDP steps, checkpoints. Pretended: the GPUs; tiny: the model.
argusd keeps running at {url}; Ray's dashboard is {bed["dashboard_url"]}.

Next:
  . {p["env"]}                  # ARGUS_URL, ARGUS_TOKEN and PATH for this shell
  argus status {job}
  argus ls
  argus node ls{drain}
  argus submit --follow examples/sft.yaml       # two nodes
  argus submit --follow --set model_id={job_dir}/checkpoints/global_step_30/actor examples/merge.yaml
  argus submit examples/ppo.yaml && argus queue
  ./dev down                                    # stop all of this

In a browser: {url}
Open this once, within ten minutes, to be logged in ('argus login-link' makes another):
  {login_link(p, env) or "'argus login-link' made none: the page takes the token of " + p["env"]}
""")


def run(directory):
    os.makedirs(directory, exist_ok=True)
    p = paths(directory)
    venv = environment("verl-0.9.1")
    bed = start_cluster(p, venv)
    fill_shared_root(p, venv)
    url = start_argusd(p, bed)
    env = write_env(p, url)
    workers = add_workers(p, bed, venv, url, env)
    job, code = train(p, env)
    finish(p, bed, url, env, job, code, workers)


def down(directory):
    p = paths(directory)
    state = load_state(p)
    if procs.alive(state.get("argusd")):
        stop_argusd(state)
        save_state(p, state)
        say("argusd stopped")
    if os.path.exists(os.path.join(p["bed"], "bed.json")):
        bed_call(p, "down", check=True)
        say("the cluster stopped")
    if os.path.isdir(directory):
        say(f"files stay in {directory}")


def main():
    verb, directory = sys.argv[1], os.path.abspath(sys.argv[2])
    try:
        {"run": run, "down": down}[verb](directory)
    except KeyboardInterrupt:
        print(
            "\ndemo: interrupted; what runs goes on: './dev demo' takes it up, './dev down' stops it", file=sys.stderr
        )
        sys.exit(130)


if __name__ == "__main__":
    main()
