# SPDX-License-Identifier: Apache-2.0
"""The Argus hook: first on PYTHONPATH of every Python process of a job.

Python imports a module of this name by itself when it starts. We are quick, say
nothing, break nothing, and leave the name to whoever had it before us: the
sitecustomize that Python would have found without this directory is run as the
real one. Works on Python 3.8 and newer.

Where it is installed no other module is, so nothing of a job can be shadowed and
no job meets half of a new hook: the argus_*.py beside this source become part of
the one file when Argus is built (tools/join). A plain file called __pycache__
stands there, so that no process of a job ever writes a cache.

Where argusd says what the job has leased (ARGUS_LEASE), the job's own import of
Ray is watched and a few functions of Ray are wrapped: what they are asked for is
bound to the lease before Ray sees it (classes _ArgusLease and _ArgusNodes), and
ray.nodes() lists what is leased. Ray itself is never
imported from here. If anything of this fails, Ray is left as it is, and one line
about it goes to stderr and to debug/binding.txt of the attempt; argusd reads back
from Ray where things really are.

In a worker of Ray, the first one of the attempt on its node starts our scout there: a small program of its own
that copies the workers' logs to the shared root and tells what it found there when the job fails.

Each line of stdout and stderr is written by one call, also where Python is told not to buffer.

Where argusd names a file (ARGUS_SECRETS), its values are put into the environment. So is what the lease says of
this node's network, where nobody has set it.

Where the job has a tracker over a network (ARGUS_TRACKERS), verl's logger of it works in a thread of its own, and what
it raises or waits for never reaches the training (class _ArgusTracker).

Where argusd names a directory for samples (ARGUS_SAMPLES), verl's dumps of them are bounded, and what a dump raises
never reaches the training (class _ArgusSamples).

In a rank of a training each collective of torch is timed, and the sums of some seconds are told in ranks/ of the
attempt, so that the rank for which the others wait is known (class _ArgusRanks).

Where argusd says what code the job is to run (ARGUS_PROOF), what a process really
imported is written to proof/ of the attempt, and what is not as it was to be, too:
the shepherd ends the attempt then (class _ArgusProof). A process that wants another
verl on purpose starts without that variable."""

from argus_finder import _ArgusFinder
from argus_lines import _argus_write_lines
from argus_proof import _argus_proof
from argus_ranks import _argus_ranks_changes
from argus_samples import _argus_samples_changes
from argus_say import _argus_quiet
from argus_tracking import _argus_tracking_changes
from argus_worker import _argus_scout, _argus_take_network, _argus_take_secrets
from argus_wrap import _argus_lease_changes


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
        find = getattr(finder, "find_spec", None)
        spec = find and find("sitecustomize", others if finder is PathFinder else None)
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


def _argus_both(first, second):
    def change(module):
        first(module)
        second(module)

    return change


def _argus_watch():
    import sys

    if any(type(f).__name__ == "_ArgusFinder" for f in sys.meta_path):
        return
    changes = {**_argus_lease_changes(), **_argus_samples_changes(), **_argus_ranks_changes()}
    proof = _argus_proof()
    for name, change in _argus_tracking_changes().items():
        changes[name] = _argus_both(changes[name], change) if name in changes else change
    if proof:
        changes.update(proof.changes())
    if changes:
        sys.meta_path.insert(0, _ArgusFinder(changes, proof.watches() if proof else {}))


_argus_quiet(_argus_write_lines)()
_argus_quiet(_argus_scout)()
_argus_take_secrets()
_argus_quiet(_argus_take_network)()
_argus_quiet(_argus_watch)()
_argus_chain()
