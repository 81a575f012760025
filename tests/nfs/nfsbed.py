# SPDX-License-Identifier: Apache-2.0
"""The two clients' mounts and the server's own view, in the guest of tools/nfs/guest."""

import os
import pathlib
import subprocess

HEAD, NODE = (pathlib.Path(p) for p in os.environ["ARGUS_NFS"].split(":"))
EXPORT = pathlib.Path("/srv/export")  # what HEAD and NODE are on the server's own disk
# The root has one path everywhere: what the head has mounted is hidden from the node by the node's own mount.
ON_NODE = ("unshare", "--mount", "sh", "-c", f'mount --bind {NODE} {HEAD} && exec "$@"', "sh")


def sh(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120).stdout


def on_server(path):
    """The server's own path of what lies below the head's mount."""
    return EXPORT / path.relative_to(HEAD)
