# SPDX-License-Identifier: Apache-2.0
"""Where all tests find what they share."""

import collections
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BEDS = {"acceptance": "training", "verl": "training", "faults": "hosts", "ray": "hosts", "ssh": "machines"}
LIB = str(HERE / "lib")
if LIB not in sys.path:
    sys.path.insert(0, LIB)


def pytest_configure(config):
    config.addinivalue_line("markers", "ray: needs a real Ray cluster on this machine")
    config.addinivalue_line("markers", "verl: needs an environment with verl")
    config.addinivalue_line("markers", "nightly: takes long and adds little to the others; with ARGUS_NIGHTLY only")


def group_of(nodeid):
    """For runs with several workers: a file stays whole, and what shares a bed of hosts is one worker's, in turn."""
    path = pathlib.PurePath(nodeid.partition("::")[0])
    return BEDS.get(path.parent.name, str(path))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    late = [item for item in items if item.get_closest_marker("nightly") and not os.environ.get("ARGUS_NIGHTLY")]
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
