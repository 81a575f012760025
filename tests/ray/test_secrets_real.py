# SPDX-License-Identifier: Apache-2.0
"""A secret on real Ray: every process of the job has it, and nothing that Argus or Ray's own records say holds it."""

import hashlib
import pathlib
import re
import urllib.request

import pytest
from raybed import BEDS

from argusd import Argusd, needs_argusd, until

pytestmark = [pytest.mark.ray, needs_argusd, pytest.mark.timeout(900)]

CANARY, TOKEN = "canary-wandb-0123456789", "canary-token-9876543210"
PROGRAM = """
import hashlib, os, subprocess, sys
import ray

def seen(where):
    child = "import os; print(os.environ['WANDB_API_KEY'] + os.environ['MY_TOKEN'])"
    below = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout.strip()
    here = os.environ.get("WANDB_API_KEY", "") + os.environ.get("MY_TOKEN", "")
    return where, ray.util.get_node_ip_address(), *(hashlib.sha256(s.encode()).hexdigest() for s in (here, below))

@ray.remote(num_cpus=0.1)
class Worker:
    def see(self, where):
        if where == "nested":
            print("a worker tells", os.environ["WANDB_API_KEY"], flush=True)
        return seen(where)

@ray.remote(num_cpus=0.1)
class Runner:  # as verl's TaskRunner, which holds the logger and makes the workers
    def run(self):
        inner = Worker.options(runtime_env={"env_vars": {"RANK": "0"}}).remote()
        return [seen("actor"), *ray.get([inner.see.remote("nested")])]

ray.init()
task = ray.remote(num_cpus=0.1)(seen)
for row in [seen("driver"), *ray.get(Runner.remote().run.remote()), ray.get(task.remote("task"))]:
    print("SEEN", *row, flush=True)
print(dict(os.environ), sys.argv, flush=True)
raise RuntimeError("no entry with " + os.environ["MY_TOKEN"])
"""


def content(file):
    try:
        return file.read_bytes()
    except FileNotFoundError:  # it was there for a moment only, before it was renamed
        return b""


def holders(*tops):
    """The files below that hold one of the values."""
    values = [v.encode() for v in (CANARY, TOKEN)]
    files = [f for top in tops for f in pathlib.Path(top).rglob("*") if f.is_file() and not f.is_symlink()]
    return [f for f in files if any(v in content(f) for v in values)]


def ask_ray(bed, path):
    with urllib.request.urlopen(bed.url + path, timeout=240) as r:
        return r.read().decode()


def test_every_process_has_it_and_no_record(tmp_path):
    bed = BEDS.get("2.60.0")
    with Argusd(tmp_path, bed.url) as a:
        assert a.call("PUT", "/v1/secrets/WANDB_API_KEY", {"value": CANARY}, token="user").status == 201
        argv = [str(bed.python), "-c", PROGRAM]
        spec = {**a.spec(argv), "secrets": ["WANDB_API_KEY"], "env": {"MY_TOKEN": TOKEN}, "submission_id": "telling"}
        job = a.submit(spec)
        seen = []

        def is_over():
            seen.append(ask_ray(bed, "/api/jobs/"))  # while it runs, and at its end
            return a.job(job)["state"] not in ("QUEUED", "STARTING", "RUNNING")

        until(is_over, "the job is over")
        log = re.sub(r"\x1b\[[0-9;]*m", "", a.log_file(job).read_text())
        assert a.job(job)["exit"]["code"] == 1, log[-3000:]
        rows = [line.split() for line in log.splitlines() if line.startswith("SEEN ")]
        digest = hashlib.sha256((CANARY + TOKEN).encode()).hexdigest()
        places = ("driver", "actor", "nested", "task")
        assert [(r[1], *r[3:]) for r in rows] == [(place, digest, digest) for place in places], log
        assert "no entry with ***" in log and "'WANDB_API_KEY': '***'" in log and "a worker tells ***" in log
        assert any('"telling"' in text and '"ARGUS_SECRETS"' in text for text in seen)
        seen += [ask_ray(bed, f"/api/v0/{kind}?detail=1&limit=1000") for kind in ("actors", "workers")]
        seen += [a.call("GET", path).body.decode() for path in (f"/v1/jobs/{job}", "/v1/events", "/v1/jobs")]
        assert not [value for value in (CANARY, TOKEN) for text in seen if value in text]
        until(lambda: list((a.root / "argus" / "secrets").iterdir()) == [], "the file of the workers is gone")
        assert holders(tmp_path) == []
        # Ray itself writes what a worker prints: that copy is on the worker's own disk and not ours to mask.
        assert list(pathlib.Path(bed.dir).rglob("job-driver-telling.log")), "Ray's logs are there"
        assert {re.sub(r"-.*", "", f.name) for f in holders(bed.dir)} == {"worker"}
