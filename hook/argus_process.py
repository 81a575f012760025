# SPDX-License-Identifier: Apache-2.0
"""Which process this is: its initial environment, and its node of the lease."""


def _argus_argv():
    """The environment that this process was started with, before any code changed it."""
    import sys

    argv = getattr(sys, "orig_argv", None)
    if argv is None:  # before Python 3.10
        with open("/proc/self/cmdline", "rb") as f:
            argv = [a.decode("utf-8", "replace") for a in f.read(100000).split(b"\0")]
    return argv


def _argus_node_id():
    """Ray's id of the node, in a worker of Ray; None elsewhere."""
    return next((a.partition("=")[2] for a in _argus_argv() if a.startswith("--node-id=")), None)


def _argus_lease_name(node_id):
    """Our name of a node of the lease, by Ray's id of it; None where it is not known."""
    import json
    import os

    nodes = json.loads(os.environ.get("ARGUS_LEASE") or "{}").get("nodes") or []
    return next((n["name"] for n in nodes if node_id and n.get("id") == node_id), None)
