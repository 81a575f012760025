# SPDX-License-Identifier: Apache-2.0
"""Tests on a machine with real GPUs of NVIDIA, run with ARGUS_GPU=1 (docs/gpu.md): file after file, on GPUs that
nobody else uses."""

import os
import pathlib
import sys

import pytest

LIB = str(pathlib.Path(__file__).resolve().parents[1] / "lib")
if LIB not in sys.path:
    sys.path.insert(0, LIB)

import gpubed  # noqa: E402
import stage as staging  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.skipif(not gpubed.SMI, reason="this machine has no nvidia-smi"))
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def evidence(tmp_path_factory):
    return pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence")).resolve()


@pytest.fixture(scope="session")
def bed():
    made = gpubed.GpuBed()
    yield made
    made.down()


@pytest.fixture(scope="module")
def stage(request, bed, tmp_path_factory, evidence):
    """argusd beside a real Ray that has the GPUs, and a tiny model where the environment has verl."""
    has_verl = any(bed.env.glob("lib/python3*/site-packages/verl"))
    tiny = staging.make_tiny(bed.python, tmp_path_factory.mktemp("tiny")) if has_verl else None
    with staging.open_stage(staging.Stage, bed, request, tmp_path_factory, evidence, tiny) as made:
        made.has_verl = has_verl
        yield made
