# SPDX-License-Identifier: Apache-2.0
"""Where all tests find what they share."""

import collections
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BEDS = {
    "acceptance": "training",
    "verl": "training",
    "faults": "hosts",
    "ray": "hosts",
    "ssh": "machines",
    "gpu": "gpu",
}
# Those on bare hosts go where there are bare hosts; those without any bed go wherever a worker is free. Trainings are
# what a run is made of: half of them have a bed of their own.
OTHERS = {
    "acceptance/test_v3_0.py": "trainings",
    "acceptance/test_v3_1.py": "trainings",
    "acceptance/test_v4_0.py": "trainings",
    "acceptance/test_sop.py": "machines",
    "acceptance/test_v2_1.py": "machines",
    "acceptance/test_v5_0_serve.py": "machines",
    "verl/test_trial_real.py": "trainings",
    "ray/test_fake_ray.py": None,
    "ray/test_ray_client.py": None,
    "verl/test_cmdline_real.py": None,
    "verl/test_trial.py": None,
}
GROUPS_WITH_BED = {*BEDS.values(), *filter(None, OTHERS.values())}
BED_WORKERS = ("gw0", "gw1")  # a real cluster each: more at once, and one of them does not come up in time
# How long a group takes on two quiet cores, where its number of tests does not tell: about 2 s each.
SECONDS = {
    **dict.fromkeys(GROUPS_WITH_BED, 500),
    "tests/daemon/test_gpus.py": 220,
    "tests/daemon/test_argusd_queue.py": 120,
    "tests/daemon/test_argusd_ray.py": 150,
    "tests/daemon/test_figures.py": 120,
    "tests/daemon/test_pipes.py": 130,
    "tests/web/test_connection.py": 100,
    "tests/package/test_roots.py": 420,
}
LIB = str(HERE / "lib")
if LIB not in sys.path:
    sys.path.insert(0, LIB)


def pytest_configure(config):
    config.addinivalue_line("markers", "ray: needs a real Ray cluster on this machine")
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
        return -SECONDS.get(group, 2 * sizes[group]), group

    items.sort(key=turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

        def _assign_work_unit(self, node):
            """Two workers take what has a bed, the others what has none; each takes the rest when its own is out."""
            wants_bed = node.gateway.id in BED_WORKERS
            wanted = [group for group in self.workqueue if (group in GROUPS_WITH_BED) == wants_bed]
            if wanted:
                self.workqueue.move_to_end(wanted[0], last=False)
            super()._assign_work_unit(node)

    return ByGroup(config, log)
