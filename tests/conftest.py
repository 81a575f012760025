# SPDX-License-Identifier: Apache-2.0
"""Where all tests find what they share."""

import collections
import os
import pathlib
import resource
import signal
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
# Which tests share a bed of real Ray, and so a worker: those of a folder, but for some files. A bed costs 15 s and half
# of the machine; its tests come in turn.
BEDS = {
    "acceptance": "training",
    "verl": "training",
    "faults": "faults",
    "ray": "hosts",
    "ssh": "machines",
    "gpu": "gpu",
}
OTHERS = {
    "acceptance/test_v3_0.py": "trainings",
    "acceptance/test_v3_1.py": "trainings",
    "acceptance/test_v4_0.py": "trainings",
    "acceptance/test_sop.py": "machines",
    "acceptance/test_v2_1.py": "machines",
    "acceptance/test_v5_0_serve.py": "machines",
    "verl/test_trial_real.py": "trainings",
    "ray/test_nodes_real.py": "faults",
    # Those without any bed go wherever a worker is free.
    "ray/test_fake_ray.py": None,
    "ray/test_ray_client.py": None,
    "verl/test_cmdline_real.py": None,
    "verl/test_trial.py": None,
}
GROUPS_WITH_BED = {*BEDS.values(), *filter(None, OTHERS.values())}
BEDS_AT_A_TIME = 2  # with three, two cores are so busy that a head of Ray does not come up in time
# Seconds that a group takes on two quiet cores, where the number of its tests does not tell.
SECONDS = {
    "training": 500,
    "trainings": 450,
    "hosts": 400,
    "faults": 400,
    "machines": 350,
    "tests/daemon/test_gpus.py": 220,
    "tests/daemon/test_argusd_queue.py": 120,
    "tests/daemon/test_argusd_ray.py": 150,
    "tests/daemon/test_figures.py": 120,
    "tests/daemon/test_pipes.py": 130,
    "tests/daemon/test_trackers.py": 200,
    "tests/web/test_connection.py": 100,
    "tests/package/test_roots.py": 420,
}
TO_END = 120  # seconds that the rest of a test has at least, whatever its body took
LIB = str(HERE / "lib")
if LIB not in sys.path:
    sys.path.insert(0, LIB)


for name in ("COLUMNS", "LINES"):  # readline, which pytest imports, hands its guess of a terminal to the workers
    os.environ.pop(name, None)


def pytest_configure(config):
    config.addinivalue_line("markers", "ray: needs a real Ray cluster on this machine")
    config.addinivalue_line("markers", "story: its tests go on from one another, and are retried together")
    config.addinivalue_line("markers", "web: needs a browser")
    config.addinivalue_line("markers", "verl: needs an environment with verl")
    config.addinivalue_line("markers", "gpu: needs a real GPU of NVIDIA on this machine; with ARGUS_GPU only")
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
    if not os.environ.get("ARGUS_GPU"):
        late += [item for item in items if item not in late and item.get_closest_marker("gpu")]
    if late:
        config.hook.pytest_deselected(items=late)
        items[:] = [item for item in items if item not in late]
    sizes = collections.Counter(group_of(item.nodeid) for item in items)

    def turn(item):
        """What takes longest begins first, so that no worker is alone with it in the end."""
        group = group_of(item.nodeid)
        return -SECONDS.get(group, sizes[group]), group

    items.sort(key=turn)


def cpu_so_far():
    """Seconds of this process and of those that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


cpu_told = [cpu_so_far()]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """The alarm of pytest-timeout ends a test that hangs; within pytest's own code it would end the whole run. A test
    that failed in its last moments is told first, and its fixtures have a while to be taken down. A report carries
    the CPU seconds since the one before."""
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        report = yield
        now = cpu_so_far()
        report.cpu, cpu_told[0] = now - cpu_told[0], now
        return report
    finally:
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left, TO_END))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        """So many workers as there may be beds take groups with a bed first; the others take none."""

        def _split_scope(self, nodeid):
            return group_of(nodeid)

        def next_for(self, node):
            """The group that a worker is to take; None where all that is left is for others. Whoever had a bed once
            keeps it, and whoever may have one takes none of the other groups before all with a bed are taken."""
            with_bed = [n for n, work in self.assigned_work.items() if not GROUPS_WITH_BED.isdisjoint(work)]
            may_bed = node in with_bed or len(with_bed) < BEDS_AT_A_TIME
            groups = sorted(self.workqueue, key=lambda group: (group in GROUPS_WITH_BED) != may_bed)
            return next((group for group in groups if may_bed or group not in GROUPS_WITH_BED), None)

        def _assign_work_unit(self, node):
            group = self.next_for(node)
            if group is None:
                node.shutdown()
                return
            self.workqueue.move_to_end(group, last=False)
            super()._assign_work_unit(node)

    return ByGroup(config, log)
