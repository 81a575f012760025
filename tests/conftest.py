# SPDX-License-Identifier: Apache-2.0
"""Where all tests find what they share."""

import collections
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BEDS = {"acceptance": "training", "verl": "training", "faults": "hosts", "ray": "hosts", "ssh": "machines"}
# Those on bare hosts go where there are bare hosts; those without any bed go wherever a worker is free.
OTHERS = {
    "acceptance/test_sop.py": "machines",
    "acceptance/test_v2_1.py": "machines",
    "ray/test_fake_ray.py": None,
    "ray/test_ray_client.py": None,
    "verl/test_cmdline_real.py": None,
    "verl/test_trial.py": None,
}
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
    name = f"{path.parent.name}/{path.name}"
    bed = OTHERS[name] if name in OTHERS else BEDS.get(path.parent.name)
    return bed or str(path)


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
        """What takes longest begins first. Each worker holds one more group in hand: let that be a small one."""
        group = group_of(item.nodeid)
        return group not in BEDS.values(), sizes[group], group

    items.sort(key=turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    return ByGroup(config, log)
