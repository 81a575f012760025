# SPDX-License-Identifier: Apache-2.0
"""The faults that happen to runs, made to happen on the newest Ray: what each is found to be, what becomes of the job.

All of them twice: argusd sees the first round happen, and is dead when the second does. How long each took from the
fault to its finding is printed (-s) and kept; no test depends on it.

    ARGUS_EVIDENCE=DIR     where the times go
"""

import os
import pathlib
import statistics

import pytest
from barestage import BareStage
from failing import FAULTS, HOARDS, LOST, Failing, caged
from raybed import BEDS
from stage import open_stage

from argusd import until

pytestmark = [pytest.mark.ray, pytest.mark.nightly, pytest.mark.timeout(1200)]

ROUNDS = ("seen", "unseen")
WAVES = (sorted(set(FAULTS) - {"host_oom_by_kernel", "host_oom_by_ray"}), HOARDS)


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory):
    evidence = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("evidence"))
    bed = BEDS.bare("2.60.0")
    with caged(bed), open_stage(BareStage, bed, request, tmp_path_factory, evidence, None) as stage:
        yield stage


@pytest.fixture(scope="module")
def failing(stage):
    made = Failing(stage)
    made.join()
    return made


@pytest.fixture(scope="module")
def delays(stage):
    """{fault: seconds} of those that argusd saw happen."""
    took = {}
    yield took
    if took:
        told = {"median_s": statistics.median(took.values()), "max_s": max(took.values()), "each": took}
        print(f"\nfrom the fault to its finding: {told}")
        stage.keep("fault_to_finding.json", told)


def let_happen(stage, failing, jobs, is_seen):
    for job in jobs:
        failing.wait_ready(job)
    if not is_seen:
        stage.kill9()
    for job in jobs:
        failing.fire(job)
    if not is_seen:
        for job in jobs:
            until(lambda job=job: failing.is_over(job), f"{job} has ended, unseen")
        stage.start()
    for job in jobs:
        stage.wait_over(job)


# ---- a job fails ----


@pytest.fixture(scope="module", params=ROUNDS)
def ended(request, stage, failing):
    """Of each fault the job, over."""
    jobs = {}
    for wave in WAVES:
        ours = {name: failing.submit(FAULTS[name], f"{request.param}-{name.replace('_', '-')}") for name in wave}
        let_happen(stage, failing, ours.values(), request.param == "seen")
        jobs |= ours
    return request.param, jobs


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_found_and_dealt_with(failing, ended, delays, fault):
    when, jobs = ended
    if fault not in jobs:
        pytest.skip("no cgroup of memory can be made here")
    if when == "seen":
        delays[fault] = failing.delay(jobs[fault])
    failing.check(jobs[fault])


# ---- Ray fails under a job ----

@pytest.fixture(scope="module", params=[(fault, when) for fault in LOST for when in ROUNDS], ids="-".join)
def lost(request, stage, failing):
    """A job whose machine lost what it stands on; the machines are whole again."""
    fault, when = request.param
    job = failing.submit(LOST[fault], f"{when}-{fault.replace('_', '-')}")
    let_happen(stage, failing, [job], when == "seen")
    failing.wait_online()
    return fault, when, job


def test_loss_is_found_and_dealt_with(failing, lost, delays):
    fault, when, job = lost
    if when == "seen":
        delays[fault] = failing.delay(job)
    failing.check(job)
