# SPDX-License-Identifier: Apache-2.0
"""The bed's state file, its lock and its end."""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time

import procs

START = time.monotonic()


class BedError(Exception):
    pass


def fail(text):
    raise BedError(text)


def say(bed, text):
    if not bed.get("quiet"):
        print(f"[{time.monotonic() - START:5.1f} s] {text}", flush=True)


@contextlib.contextmanager
def dir_lock(path):
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "lock"), "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def state_file(path):
    return os.path.join(path, "bed.json")


def load(path):
    try:
        with open(state_file(path)) as f:
            return json.load(f)
    except FileNotFoundError:
        return None
    except ValueError as e:
        fail(f"'{state_file(path)}' is not JSON: {e}")


def need(path):
    bed = load(path)
    if not bed:
        fail(f"no bed in '{path}': run 'bed up --dir {path}' first")
    return bed


def save(bed):
    path = state_file(bed["dir"])
    with open(path + ".new", "w") as f:
        json.dump(bed, f, indent=2)
        f.write("\n")
    os.replace(path + ".new", path)


def host(bed, name, or_ctl=False):
    for h in [*bed["hosts"], *([{"name": "ctl"}] if or_ctl else [])]:
        if h["name"] == name:
            return h
    fail(f"no host '{name}' in this bed: there are {' '.join(h['name'] for h in bed['hosts'])}")


def ray_version(env):
    """Read from the package's metadata: importing Ray takes a second."""
    for lib in sorted(os.listdir(os.path.join(env, "lib"))):
        packages = os.path.join(env, "lib", lib, "site-packages")
        for name in os.listdir(packages) if os.path.isdir(packages) else ():
            if name.startswith("ray-") and name.endswith(".dist-info"):
                return name[4 : -len(".dist-info")]
    return None


def check(a):
    if a.hosts < 1 or a.hosts > 200 or a.gpus < 0:
        fail("--hosts must be 1 to 200 and --gpus must not be negative")
    if a.mode == "netns" and os.getuid() != 0:
        fail("--mode netns needs root; --mode loopback does not")
    if a.no_ray:
        return None
    if not a.env or not os.access(os.path.join(a.env, "bin", "ray"), os.X_OK):
        fail(f"no 'bin/ray' in the environment '{a.env}': name one with ray[default] by --env")
    version = ray_version(a.env)
    if a.auth == "token" and tuple(int(x) for x in version.split(".")[:2]) < (2, 52):
        fail(f"--auth token needs Ray 2.52, and '{a.env}' has {version}")
    return version


def may_use_namespaces():
    """Whether this user may make hosts of namespaces: root in a container often may not."""
    programs = ("unshare", "nsenter", "ip", "ssh-keygen", "/usr/sbin/sshd")
    if os.getuid() != 0 or not all(shutil.which(p) for p in programs):
        return False
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    one, other = (f"ag{end}{secrets.token_hex(5)}" for end in "ab")  # several may ask at once
    inside = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "--uts", "--ipc"]
    inside += ["sh", "-c", "ip link add br0 type bridge && mount -t tmpfs tmpfs /run"]
    outside = ["ip", "link", "add", one, "type", "veth", "peer", "name", other]
    if subprocess.run(inside, **quiet).returncode or subprocess.run(outside, **quiet).returncode:
        return False
    return subprocess.run(["ip", "link", "del", one], **quiet).returncode == 0


def new(a):
    version = check(a)
    mode = a.mode or ("netns" if may_use_namespaces() else "loopback")
    shutil.rmtree(os.path.join(a.dir, "hosts"), ignore_errors=True)
    bed = {
        "id": secrets.token_hex(4),
        "dir": a.dir,
        "mode": mode,
        "state": "starting",
        "quiet": a.quiet,
        "env": os.path.abspath(a.env) if a.env else None,
        "ray_version": version,
        "auth": a.auth,
        "token_path": None,
        "head_env": a.head_env,
        "gpus": a.gpus,
        "cpus": a.cpus or max(4, 10 * a.gpus),
        "dashboard_url": None,
        "gcs_address": None,
        "head_ip": None,
        "ctl_ip": None,
        "ssh_config": None,
        "switch": None,
        "temp_dir": None,
        "hosts": [
            {"name": f"h{i}", "role": "worker" if i > 1 else "head", "ip": None, "ssh_port": None, "keeper": None,
             "bare": a.bare_workers and mode == "netns" and i > 1}
            for i in range(1, a.hosts + 1)
        ],
    }
    for h in bed["hosts"]:
        os.makedirs(host_dir(bed, h), exist_ok=True)
    if a.auth == "token":
        bed["token_path"] = os.path.join(a.dir, "token")
        with open(os.open(bed["token_path"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
            f.write(secrets.token_hex(32) + "\n")
    save(bed)
    return bed


def host_dir(bed, h, *rest):
    return os.path.join(bed["dir"], "hosts", h["name"], *rest)


def any_alive(bed):
    return any(procs.alive(h["keeper"]) for h in bed["hosts"]) or procs.alive(bed["switch"])


def stop_host(bed, h):
    """A keeper is the ancestor of all that runs in its host, orphans too, so its tree is exactly what was started."""
    if procs.alive(h["keeper"]):
        pid = h["keeper"]["pid"]
        if bed["mode"] == "netns":
            procs.send(h["keeper"], signal.SIGKILL)  # `unshare --kill-child`: pid 1 goes, and all of its namespace
        procs.kill_all(lambda: procs.tree(pid))
        procs.wait_reaped(pid, 2)
        procs.send(h["keeper"], signal.SIGKILL)
        procs.wait_gone(h["keeper"], 5)
    h["keeper"] = None


def stop(bed, keep=False):
    for h in reversed(bed["hosts"]):
        stop_host(bed, h)
    procs.send(bed["switch"], signal.SIGKILL)
    bed["switch"] = None
    if not keep:
        for h in bed["hosts"]:
            shutil.rmtree(host_dir(bed, h), ignore_errors=True)
        if bed["temp_dir"] and os.path.basename(bed["temp_dir"]) == f"argus-bed-{bed['id']}":
            shutil.rmtree(bed["temp_dir"], ignore_errors=True)
    bed["state"] = "down"
    save(bed)


def tail(path, lines=25):
    try:
        with open(path, errors="replace") as f:
            return "".join(f.readlines()[-lines:])
    except OSError:
        return ""


def complain(text, log):
    sys.stderr.write(tail(log))
    fail(text)
