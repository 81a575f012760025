# SPDX-License-Identifier: Apache-2.0
"""Real Ray for tests: one bed of three hosts at a time (it costs 1.5 GB), kept until another kind is asked for.

    bed = BEDS.get("2.51.1")            the running one if it is of that kind, else a new one
    bed = BEDS.get("2.51.1", verl="0.7.1")      of that Ray, by the environment of another verl than the usual one
    bed.url, bed.head_ip, bed.python, bed.token, bed.verl, bed.on("h2", "ls"), bed.verb("kill-worker", "h2")
    bed = BEDS.bare("2.51.1")           hosts with an sshd and nothing else; that version of Ray lies at bed.ray
    bed.key, bed.ray, bed.ssh_config, bed.verb("destroy", "h2")

Whoever breaks a bed (kills a host) calls BEDS.drop() in the end.
"""

import atexit
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BED = ROOT / "tools" / "bed" / "bed"
# Which Ray the environment verl-<version> brings. Of two with the same Ray the first one is the usual one.
ENVS = {"0.5.0": "2.51.1", "0.7.1": "2.51.1", "0.9.1": "2.60.0"}
BARE = "bare"  # in the place of a kind of authentication


def env_path(name):
    """Where the private environment is, None when it was not built."""
    done = subprocess.run([ROOT / "tools/setup/env-path", name], capture_output=True, text=True)
    path = pathlib.Path(done.stdout.strip())
    return path if done.returncode == 0 and (path / "bin/python").exists() else None


def built_env(name):
    """The same for a test that cannot do without it."""
    path = env_path(name)
    if path is None:
        pytest.skip(f"the environment {name} is not built: run tools/setup/setup {name}")
    return path


def usual_verl(version):
    return next(verl for verl, ray in ENVS.items() if ray == version)


@functools.cache
def namespaces():
    """Whether this machine can make hosts of namespaces."""
    ask = "import bedlib, sys; sys.exit(not bedlib.may_use_namespaces())"
    return subprocess.run([sys.executable, "-c", ask], cwd=BED.parent).returncode == 0


class Bed:
    def __init__(self, version, auth, verl=None):
        self.version, self.auth, self.verl = version, auth, verl or usual_verl(version)
        assert ENVS[self.verl] == version, f"the environment of verl {self.verl} brings Ray {ENVS[self.verl]}"
        self.env = built_env(f"verl-{self.verl}")
        self.up_at_last(*(["--mode", "netns", "--no-ray"] if auth == BARE else ["--auth", auth]))
        self.take_info()

    def take_info(self):
        self.python, self.ray = self.env / "bin/python", self.env / "bin/ray"
        self.ips = {h["name"]: h["ip"] for h in self.info["hosts"]}
        self.head_ip, self.ctl_ip = self.info["head_ip"], self.info["ctl_ip"]
        self.url = self.info["dashboard_url"] or f"http://{self.head_ip}:8265"
        self.token = pathlib.Path(self.info["token_path"]).read_text().strip() if self.info["token_path"] else None
        self.key, self.ssh_config = pathlib.Path(self.dir, "id"), self.info["ssh_config"]

    def up_at_last(self, *args):
        """A `ray start` that is slow on a busy machine must not fail all tests of a group; the run is told of it."""
        for again in (True, True, False):
            try:
                return self.up(*args)
            except (AssertionError, subprocess.TimeoutExpired) as e:
                self.down()  # what was made of it
                if not again:
                    raise
                self.tell(f"bed of Ray {self.version} ({self.auth})", str(e))

    @staticmethod
    def tell(name, why):
        if path := os.environ.get("ARGUS_BEDS_AGAIN"):
            with open(path, "a") as f:
                f.write(json.dumps({"name": name, "why": why}) + "\n")

    def up(self, *args):
        self.dir = tempfile.mkdtemp(prefix="argus-bed-")
        done = subprocess.run(
            [BED, "up", "--dir", self.dir, "--env", self.env, *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=400,
        )
        if done.returncode != 0:
            raise AssertionError(f"the bed did not come up: {done.stdout[-2000:]}")
        self.info = json.loads((pathlib.Path(self.dir) / "bed.json").read_text())

    def verb(self, *args):
        verb, *rest = args
        done = subprocess.run([BED, verb, "--dir", self.dir, *rest], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"bed {args}: {done.stdout}{done.stderr}"
        return done.stdout

    def on(self, host, *argv):
        done = subprocess.run([BED, "on", "--dir", self.dir, host, *argv], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{host}: {argv}: {done.stdout}{done.stderr}"
        return done.stdout

    def kill(self, host, *pids, signal="KILL"):
        """Each that is still there; one at least is. Those that belong together end one another."""
        script = f'n=0; for p; do kill -{signal} "$p" 2>/dev/null && n=$((n + 1)); done; [ $n -gt 0 ]'
        self.on(host, "sh", "-c", script, "sh", *map(str, pids))

    def down(self):
        subprocess.run([BED, "down", "--dir", self.dir], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.dir, ignore_errors=True)


class Beds:
    def __init__(self):
        self.bed = None

    def bare(self, version):
        if not namespaces():
            pytest.skip("hosts with an sshd need network namespaces: root, in a container that allows them")
        return self.get(version, BARE)

    def get(self, version, auth="none", verl=None):
        kind = (version, auth, verl or usual_verl(version))
        if self.bed and (self.bed.version, self.bed.auth, self.bed.verl) != kind:
            self.drop()
        if self.bed is None:
            if os.environ.get("ARGUS_NO_RAY"):
                pytest.skip("ARGUS_NO_RAY is set")
            self.bed = Bed(*kind)
        return self.bed

    def drop(self):
        if self.bed:
            self.bed.down()
        self.bed = None


BEDS = Beds()
atexit.register(BEDS.drop)
