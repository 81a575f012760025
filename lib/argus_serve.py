# SPDX-License-Identifier: Apache-2.0
"""Holds the lease of one replica of a service, on its machine, while Ray Serve runs the replica there.

    argus_serve.py --app sums-v2 [--inspect MODULE:NAME --args JSON]

It is the command of an ordinary job: argusd puts the application into Ray Serve's list once the job runs, and takes it
out of the list once the job is asked to stop. Until then the replica's log is brought home, line by line, as the job's
own. After SIGTERM it ends when no process of the replica is left here, so that the lease ends no earlier than what was
run on it.

With --inspect it first imports the application here, on the leased machine, and writes down which deployments it has:
argusd must name each of them to hold it to this machine. `argus_serve.py --list ...` is that part, run by Ray's Python.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import traceback

from argus_raylet import raylet_option

LOOK_S = 1
PIECE = 1 << 20


def ray_python():
    """The interpreter with which this raylet starts its workers."""
    return (raylet_option("python_worker_command") or sys.executable).split()[0]


def serve_logs():
    return pathlib.Path(raylet_option("log_dir") or "/tmp/ray/session_latest/logs") / "serve"


# ---- what an application is made of ----


def list_deployments(a):
    """By Ray's own way of building an application, so that names are those that it will use."""
    sys.path.insert(0, os.getcwd())
    import importlib

    from ray.serve._private.api import call_user_app_builder_with_args_if_necessary
    from ray.serve._private.build_app import build_app

    module, _, name = a.inspect.partition(":")
    target = importlib.import_module(module)
    for part in name.split("."):
        target = getattr(target, part)
    app = call_user_app_builder_with_args_if_necessary(target, json.loads(a.args))
    built = build_app(app, name=a.app, default_runtime_env={}, make_deployment_handle=lambda d, n: None)
    return [describe(d) for d in built.deployments]


def describe(d):
    config, options = d._deployment_config, d.ray_actor_options or {}
    if config.autoscaling_config is not None:
        sys.exit(f"deployment '{d.name}' scales by itself: argusd does that, by --max-replicas; give it num_replicas")
    return {
        "name": d.name,
        "num_replicas": config.num_replicas,
        "num_cpus": options.get("num_cpus", 1),
        "num_gpus": options.get("num_gpus", 0) or 0,
        "memory": int(options.get("memory") or 0),
    }


def inspect(a):
    words = [ray_python(), __file__, "--list", *sys.argv[1:]]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"the application '{a.inspect}' cannot be built here (see above)")
    found = json.loads(done.stdout.splitlines()[-1])
    root = pathlib.Path(__file__).resolve().parents[2]  # this file is <shared root>/argus/lib/argus_serve.py
    result = root / "jobs" / os.environ["ARGUS_JOB_ID"] / "serve.json"
    part = result.with_name(result.name + ".part")
    part.write_text(json.dumps({"dir": os.getcwd(), "deployments": found}))
    part.replace(result)
    for d in found:
        print(f"deployment {d['name']}: {d['num_replicas']} x {d['num_cpus']} CPU, {d['num_gpus']} GPU", flush=True)


# ---- while it serves ----


def replicas(app):
    """Processes of this application's replicas on this machine."""
    found = []
    for p in pathlib.Path("/proc").iterdir():
        if p.name.isdigit():
            try:
                words = (p / "cmdline").read_bytes()
            except OSError:
                continue
            if words.startswith(f"ray::ServeReplica:{app}:".encode()):
                found.append(int(p.name))
    return found


class Tail:
    """New bytes of the replicas' log files, whole lines only."""

    def __init__(self, app):
        self.app, self.at = app, {}

    def look(self):
        try:
            files = sorted(serve_logs().glob(f"replica_{self.app}_*.log"))
        except OSError:
            return
        for path in files:
            self.read(path)

    def read(self, path):
        try:
            with path.open("rb") as f:
                f.seek(self.at.get(path, 0))
                text = f.read(PIECE)
        except OSError:
            return
        whole = text.rfind(b"\n") + 1 or (len(text) if len(text) == PIECE else 0)
        if whole:
            self.at[path] = self.at.get(path, 0) + whole
            sys.stdout.buffer.write(text[:whole])
            sys.stdout.buffer.flush()


def hold(app):
    leaving = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: leaving.set())
    print(f"the lease is held for '{app}'", flush=True)
    tail, gone = Tail(app), 0
    while gone < 2:  # seen twice: a process that only begins has its name a moment later
        leaving.wait(LOOK_S) if not leaving.is_set() else threading.Event().wait(LOOK_S)
        tail.look()
        gone = gone + 1 if leaving.is_set() and not replicas(app) else 0
    print(f"no process of '{app}' is left here", flush=True)


def main():
    ap = argparse.ArgumentParser(prog="argus_serve")
    ap.add_argument("--app", required=True)
    ap.add_argument("--inspect")
    ap.add_argument("--args", default="{}")
    ap.add_argument("--list", action="store_true")
    a = ap.parse_args()
    if a.list:
        try:
            print("\n" + json.dumps(list_deployments(a)))
        except Exception:
            traceback.print_exc()
            sys.exit(1)
        return
    if a.inspect:
        inspect(a)
    hold(a.app)


if __name__ == "__main__":
    main()
