# SPDX-License-Identifier: Apache-2.0
"""Runs one entrypoint as Ray's JobSupervisor does, in a process of its own.

    runner.py JOBDIR

JOBDIR/job.json says what to run. The claim file makes a second runner of the same job end at once, so that the
fake itself never starts anything twice; `starts` counts what really started. Outlives the fake: exit.json tells
a restarted one how it ended.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time


def put(path, value):
    with open(path + ".new", "w") as f:
        json.dump(value, f)
    os.replace(path + ".new", path)


def update_env(env_vars):
    """Ray's expansion of env_vars, word for word: later ones see earlier ones, unset ${UPPER} vanishes."""
    for key, value in env_vars.items():
        os.environ[key] = re.sub(r"\$\{[A-Z0-9_]+\}", "", os.path.expandvars(value))


def main(jobdir):
    with open(os.path.join(jobdir, "job.json")) as f:
        job = json.load(f)
    try:
        os.close(os.open(os.path.join(jobdir, "claim"), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return
    os.environ.update(job["base_env"])
    update_env(job["env_vars"])
    with open(job["log"], "ab") as log:
        child = subprocess.Popen(
            ["/bin/sh", "-c", job["entrypoint"]],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # First: who reads of a start may kill this.
    put(os.path.join(jobdir, "pid.json"), {"pid": child.pid, "runner": os.getpid()})
    line = {"id": job["id"], "pid": child.pid, "node": job["node"], "ip": job["ip"], "time": time.time()}
    with open(job["starts"], "a") as f:
        f.write(json.dumps(line) + "\n")
    if os.path.exists(job["closed"]):
        os.killpg(child.pid, signal.SIGKILL)
    put(os.path.join(jobdir, "exit.json"), {"code": child.wait(), "time": time.time()})


main(sys.argv[1])
