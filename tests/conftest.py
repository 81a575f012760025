# SPDX-License-Identifier: Apache-2.0
"""Where all tests find what they share."""

import collections
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
# What needs a bed of hosts, and on which of them it takes its turn.
BEDS = {"acceptance": "training", "verl": "training", "faults": "hosts", "ray": "hosts", "ssh": "machines"}
BARE = {"test_sop.py", "test_v2_1.py"}  # acceptance on hosts where nothing runs yet, as tests/ssh wants them
BEDLESS = {"test_cmdline_real.py", "test_fake_ray.py", "test_ray_client.py", "test_trial.py"}
LONG = {
    f"tests/daemon/test_{name}.py"
    for name in "argusd_files argusd_kill argusd_logs argusd_queue argusd_ray argusd_stop argusd_timeouts".split()
    + "trial_life checkpoints shepherd_root".split()
} | {"tests/ray/test_ray_client.py", "tests/verl/test_cmdline_real.py", "tests/verl/test_trial.py"}
FEW = 3  # tests of a file that takes seconds
LIB = str(HERE / "lib")
if LIB not in sys.path:
    sys.path.insert(0, LIB)


def pytest_configure(config):
    config.addinivalue_line("markers", "ray: needs a real Ray cluster on this machine")
    config.addinivalue_line("markers", "verl: needs an environment with verl")
    config.addinivalue_line(
        "markers", "nightly(on=VALUE): takes long and adds little to the others (with VALUE); with ARGUS_NIGHTLY only"
    )


class Teller:
    """A failure is told when it happens: a run of half an hour may be cut before its summary."""

    def __init__(self, reporter):
        self.reporter = reporter

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.reporter.write_line(f"\nfailed: {report.nodeid} ({report.when})\n{report.longreprtext[-3000:]}")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(Teller(reporter))


def group_of(nodeid):
    """For runs with several workers: a file stays whole, and what shares a bed of hosts is one worker's, in turn."""
    path = pathlib.PurePath(nodeid.partition("::")[0])
    if path.name in BEDLESS:
        return str(path)
    return "machines" if path.name in BARE else BEDS.get(path.parent.name, str(path))


def is_nightly(item):
    callspec = getattr(item, "callspec", None)
    values = [None, *(callspec.params.values() if callspec else ())]
    return any(mark.kwargs.get("on") in values for mark in item.iter_markers("nightly"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    late = [] if os.environ.get("ARGUS_NIGHTLY") else [item for item in items if is_nightly(item)]
    if late:
        config.hook.pytest_deselected(items=late)
        items[:] = [item for item in items if item not in late]
    sizes = collections.Counter(group_of(item.nodeid) for item in items)

    def turn(item):
        """What takes longest begins first. Each worker holds one more group in hand, which waits for what it is at:
        let those be small ones, and the long ones come after them. Training: acceptance begins on the bed that verl's
        own tests leave."""
        group = group_of(item.nodeid)
        kind = 0 if group in BEDS.values() else 2 if group in LONG else 1 if sizes[group] <= FEW else 3
        return kind, sizes[group], group, group == "training" and item.path.parent.name == "acceptance"

    items.sort(key=turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    return ByGroup(config, log)
