# SPDX-License-Identifier: Apache-2.0
"""Tells a driver on which of several raylets of one machine it runs.

`ray.init()` looks for "the" raylet of this machine. Where the hosts of a bed are loopback addresses of one machine
there are several, and it would take the head's. The address of the host is in the environment instead.
"""

import importlib.machinery
import importlib.util
import os
import sys


class _AfterRayWorker:
    def find_spec(self, name, path=None, target=None):
        if name != "ray._private.worker":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            init = module.init

            def init_here(*args, **kwargs):
                kwargs.setdefault("_node_ip_address", os.environ["ARGUS_BED_IP"])
                return init(*args, **kwargs)

            init_here.__doc__, init_here.__wrapped__ = init.__doc__, init
            module.init = init_here

        spec.loader.exec_module = exec_module
        return spec


def _run_next():
    """Python loads one sitecustomize only; the one that this one hides is run here."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.abspath(p or ".") for p in sys.path]
    later = places[places.index(here) + 1 :] if here in places else []
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", later)
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("ARGUS_BED_IP"):
    sys.meta_path.insert(0, _AfterRayWorker())
_run_next()
