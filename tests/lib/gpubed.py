# SPDX-License-Identifier: Apache-2.0
"""A machine with real GPUs of NVIDIA, for tests/gpu: what nvidia-smi says, work, and a Ray that has them.

ARGUS_GPU_ENV names a Python environment with Ray, a torch that sees the GPUs and, for tests/gpu/test_verl.py, verl."""

import contextlib
import csv
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
from raybed import Bed

ENV = os.environ.get("ARGUS_GPU_ENV")
SMI = shutil.which("nvidia-smi")
MIB = 1 << 20
ASTRAY = pathlib.Path(__file__).parents[1] / "gpu/astray.py"
NOT_TOLD = ("[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[Insufficient Permissions]")

# Works for a part of each fifth of a second on products of matrices, and holds so much memory besides.
WORK = """
import sys, threading, time, torch
part, hold = float(sys.argv[1]), torch.empty(int(sys.argv[2]) << 20, dtype=torch.uint8, device="cuda")
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
torch.cuda.synchronize()
print("up", flush=True)
while True:
    end, until = time.monotonic() + 0.2, time.monotonic() + 0.2 * part
    while time.monotonic() < until:
        a @ a
        torch.cuda.synchronize()
    threading.Event().wait(max(0, end - time.monotonic()))
"""


def environment():
    """The environment with Ray and torch; without one the test is skipped."""
    if not ENV:
        pytest.skip("ARGUS_GPU_ENV names no environment with Ray and a torch that sees the GPUs")
    return pathlib.Path(ENV)


def smi(*fields, of="gpu"):
    """A list of rows, each {field: number, text, or None where it is not told}."""
    argv = [SMI, f"--query-{of}={','.join(fields)}", "--format=csv,noheader,nounits"]
    out = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    rows = csv.reader(out.splitlines(), skipinitialspace=True)
    return [dict(zip(fields, map(value, row), strict=True)) for row in rows]


def value(text):
    if text in NOT_TOLD:
        return None
    return float(text) if re.fullmatch(r"-?\d+(\.\d+)?", text) else text


def smi_page(*kinds):
    """`nvidia-smi -q`, as it prints it."""
    return subprocess.run([SMI, "-q", "-d", ",".join(kinds)], capture_output=True, text=True, check=True).stdout


@contextlib.contextmanager
def at_work(part=1.0, hold_mib=4096):
    """A process that works on the first GPU; its pid."""
    argv = [environment() / "bin/python", "-c", WORK, str(part), str(hold_mib)]
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, env=plain_env())
    try:
        assert p.stdout.readline() == b"up\n", "torch does not see the GPU"
        yield p.pid
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


def go_astray():
    """What a process says that writes where it may not."""
    argv = [environment() / "bin/python", ASTRAY]
    done = subprocess.run(argv, capture_output=True, text=True, env=plain_env(), timeout=300)
    assert done.returncode != 0, "a write to nowhere went well"
    return done.stderr


def plain_env():
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith("RAY_")}


def kernel_xids():
    """The numbers of the Xids in the kernel's log, in their order; None: it may not be read."""
    done = subprocess.run(["dmesg"], capture_output=True, text=True)
    return [int(n) for n in re.findall(r"NVRM: Xid \([^)]*\): (\d+)", done.stdout)] if done.returncode == 0 else None


class GpuBed(Bed):
    """A head without GPUs and one raylet with all GPUs of this machine, as this very user."""

    version, auth, verl = "2.60.0", "none", "0.9.1"

    def __init__(self):
        self.env = environment()
        self.dir = tempfile.mkdtemp(prefix="argus-bed-")
        shape = ["--mode", "loopback", "--hosts", "2", "--gpus", str(len(smi("index"))), "--cpus", str(os.cpu_count())]
        self.up(*shape)
        self.take_info()
