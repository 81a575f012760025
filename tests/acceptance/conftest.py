# SPDX-License-Identifier: Apache-2.0
"""Acceptance on real Ray with real verl: one stage per version of Argus and of Ray, evidence kept at one place.

ARGUS_EVIDENCE=DIR     where the evidence goes; without it, a directory of pytest's that is named at the end
"""

import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(p) for p in (HERE, HERE.parent / "lib") if str(p) not in sys.path]

import stage as staging  # noqa: E402
from barestage import BareStage  # noqa: E402
from raybed import BEDS, built_env  # noqa: E402

KEPT = pytest.StashKey()


def pytest_configure(config):
    config.addinivalue_line("markers", "ray: needs a real Ray cluster on this machine")


def pytest_collection_modifyitems(items):
    """All on the bed of the old Ray first, then the new one's: a bed comes up once. Those on bare hosts are last."""

    def turn(item):
        return [name in item.fixturenames for name in ("bare_newest", "bare", "newest")]

    at = [i for i, item in enumerate(items) if HERE in item.path.parents]
    mine = sorted((items[i] for i in at), key=turn)
    for i, item in zip(at, mine, strict=True):
        item.add_marker(pytest.mark.ray)
        item.add_marker(pytest.mark.timeout(1200))
        items[i] = item


@pytest.fixture(scope="session")
def evidence(request, tmp_path_factory):
    place = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence")).resolve()
    request.config.stash[KEPT] = place
    return place


def pytest_terminal_summary(terminalreporter, config):
    if KEPT in config.stash:
        terminalreporter.write_line(f"evidence of the acceptance tests: {config.stash[KEPT]}")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A model and data that a CPU can train, made once; both generations of transformers read them."""
    env = built_env("verl-0.5.0")
    return staging.make_tiny(env / "bin/python", tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory, evidence, tiny):
    """verl 0.5.0 on Ray 2.51.1: the quick one."""
    with staging.open_stage(staging.Stage, BEDS.get("2.51.1"), request, tmp_path_factory, evidence, tiny) as s:
        yield s


@pytest.fixture(scope="module")
def bare(request, tmp_path_factory, evidence, tiny):
    """verl 0.5.0 and Ray 2.51.1 on hosts where nothing runs yet: a head that argusd starts, no other machine."""
    with staging.open_stage(BareStage, BEDS.bare("2.51.1"), request, tmp_path_factory, evidence, tiny) as s:
        yield s


@pytest.fixture(scope="module")
def newest(request, tmp_path_factory, evidence, tiny):
    """verl 0.9.1 on Ray 2.60.0, with Ray's token authentication. What is not needed after it goes."""
    bed = BEDS.get("2.60.0", "token")
    with staging.open_stage(staging.Stage, bed, request, tmp_path_factory, evidence, tiny) as s:
        yield s
    BEDS.drop()


@pytest.fixture(scope="module")
def bare_newest(request, tmp_path_factory, evidence, tiny):
    """Ray 2.60.0, with its token authentication, on hosts where nothing runs yet."""
    with staging.open_stage(BareStage, BEDS.bare("2.60.0"), request, tmp_path_factory, evidence, tiny) as s:
        yield s
