# SPDX-License-Identifier: Apache-2.0
"""Python runs this at the start of every process that has this directory on its PYTHONPATH.

The first `import verl` then loads verl_on_cpu before it. Python runs only the first sitecustomize that it finds, so
this one also runs the next one on the path.
"""

import importlib.machinery
import importlib.util
import os
import sys


class _BeforeVerl:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "verl":
            sys.meta_path.remove(_BeforeVerl)
            importlib.import_module("verl_on_cpu")
        return  # the usual finders go on


def _run_next():
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.abspath(p or ".") for p in sys.path]
    later = places[places.index(here) + 1 :] if here in places else []
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", later)
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


sys.meta_path.insert(0, _BeforeVerl)
_run_next()
