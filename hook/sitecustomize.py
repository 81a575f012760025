# SPDX-License-Identifier: Apache-2.0
"""The Argus hook: first on PYTHONPATH of every Python process of a job.

Python imports a module of this name by itself when it starts. We are quick, say
nothing, break nothing, and leave the name to whoever had it before us: the
sitecustomize that Python would have found without this directory is run as the
real one. No other module is here, so nothing of a job can be shadowed, and beside
an installed copy stands a plain file called __pycache__, so that no process of a
job ever writes a cache here. Works on Python 3.8 and newer."""


def _argus_find_next():
    """The spec of the sitecustomize that Python would have found without us, or None."""
    import os
    import sys
    from importlib.machinery import PathFinder

    here = os.path.realpath(os.path.dirname(os.path.abspath(__file__)))
    # Another copy of this file may be further down the path: each runs once.
    done = sys.__dict__.setdefault("_argus_hook_dirs", set())
    done.add(here)

    def is_other(entry):
        return isinstance(entry, str) and os.path.realpath(entry or os.curdir) not in done

    others = [entry for entry in sys.path if is_other(entry)]
    for finder in list(sys.meta_path):
        spec = finder.find_spec("sitecustomize", others if finder is PathFinder else None)
        if spec is not None:
            return spec if getattr(spec.loader, "exec_module", None) else None
    return None


def _argus_chain():
    import sys

    try:
        spec = _argus_find_next()
        if spec is None:
            return
        from importlib.util import module_from_spec

        module = module_from_spec(spec)
    except Exception:  # a job never fails because of us
        return
    # Import gives what stands in sys.modules at the end, so from here on the name is theirs. What
    # they raise goes the way it would have gone without us: Python tells it and starts.
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_argus_chain()
