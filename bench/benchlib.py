# SPDX-License-Identifier: Apache-2.0
"""benchlib - what the benchmarks share: a release build, a real argusd on a directory of its own, tables, results."""

import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
READY_SECONDS = 60


def quietly(command):
    """Runs it; what it says is shown only when it fails."""
    got = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if got.returncode:
        sys.exit(f"{got.stdout[-4000:]}\nbench: {command[0]} failed")
    return got.stdout


def build(*targets):
    """The release programs, built when needed; returns their directory."""
    out = os.environ.get("ARGUS_BENCH_BUILD", os.path.join(ROOT, "build-bench"))
    if not os.path.exists(os.path.join(out, "build.ninja")):
        setup = ["meson", "setup", "--buildtype=release", "-Dtests=disabled", "-Dwerror=false", out, ROOT]
        quietly(setup)
    quietly(["ninja", "-C", out, "bench-programs", *targets])
    return out


def use_test_environment():
    """The harness of the tests wants their environment."""
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        argv = [os.path.join(ROOT, "tools/setup/env-path"), "test"]
        env = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        python = os.path.join(env, "bin/python")
        os.execv(python, [python, *sys.argv])  # by its whole path: the fake Ray is started with the same one


def at_share(values, share):
    """The quantile of sorted values; None: there are none."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else None


def lines(command):
    """Runs a program that prints JSON lines; its answers, and whether it was content."""
    got = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    if got.returncode not in (0, 1) or not got.stdout.strip():
        sys.exit(f"bench: {command[0]} failed with exit status {got.returncode}")
    return [json.loads(line) for line in got.stdout.splitlines()], got.returncode == 0


def until(condition, what, seconds=300, pause=0.5):
    """The first true value of condition(), which is asked for again after each pause."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            sys.exit(f"bench: {what}: not within {seconds} s")
        time.sleep(pause)
    return value


def machine():
    return {
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "load_average": os.getloadavg()[0],
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def table(head, rows):
    cells = [head] + [[f"{c:,.2f}" if isinstance(c, float) else str(c) for c in row] for row in rows]
    width = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for row in cells:
        padded = [c.ljust(width[i]) if i == 0 else c.rjust(width[i]) for i, c in enumerate(row)]
        print("  ".join(padded).rstrip())


def save(name, result):
    """bench/results/NAME-TIME.json, with the machine beside the numbers."""
    os.makedirs(os.path.join(HERE, "results"), exist_ok=True)
    path = os.path.join(HERE, "results", f"{name}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"machine": machine(), **result}, f, indent=1)
        f.write("\n")
    print(f"written: {os.path.relpath(path, ROOT)}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def workplace():
    """A directory on a real disk that goes away with the process."""
    return tempfile.TemporaryDirectory(prefix="argus-bench-", dir=os.environ.get("ARGUS_BENCH_DIR"))


class Argusd:
    """A real argusd with its own store. Ray is an address where nobody listens: jobs stay queued."""

    def __init__(self, out, where, limits="{queued_jobs: 10000000, queued_jobs_per_user: 0}"):
        self.binary = os.path.join(out, "src", "argusd", "argusd")
        self.where, self.port = where, free_port()
        self.shared, self.state = os.path.join(where, "shared"), os.path.join(where, "state")
        self.config, self.log = os.path.join(where, "argus.yaml"), os.path.join(where, "argusd.log")
        self.process = None
        for d in (self.shared, self.state):
            os.makedirs(d, exist_ok=True)
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(f"shared_root: {self.shared}\nstate_dir: {self.state}\nlisten: 127.0.0.1:{self.port}\n"
                    f"ray: {{address: 'http://127.0.0.1:{free_port()}', auth: none}}\nlimits: {limits}\n")
        got = subprocess.run([self.binary, "init", "--config", self.config],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        self.token = got.stdout.strip()

    def store(self):
        return [os.path.join(self.state, n) for n in os.listdir(self.state) if n.endswith(".db")][0]

    def start(self):
        """Seconds until /readyz says yes."""
        began = time.monotonic()
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([self.binary, "--config", self.config], stderr=log)
        while time.monotonic() - began < READY_SECONDS:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5):
                    return time.monotonic() - began
            except (urllib.error.URLError, ConnectionError):
                if self.process.poll() is not None:
                    break
                time.sleep(0.002)
        with open(self.log, encoding="utf-8") as log:
            sys.exit("bench: argusd is not ready:\n" + log.read()[-2000:])

    def rss(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def load(self, out, what, path, clients, *options):
        """One run of bench-load against it."""
        rows, good = lines([os.path.join(out, "bench", "bench-load"), "-c", clients, *options,
                            "-H", f"Authorization: Bearer {self.token}", what, f"127.0.0.1:{self.port}", path])
        return {**rows[0], "good": good}

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(30)
            self.process = None
