# SPDX-License-Identifier: Apache-2.0
"""The first steps of a worker of Ray: it takes the job's secrets, and makes sure that its node has a scout."""

from argus_process import _argus_argv, _argus_lease_name, _argus_node_id
from argus_say import _argus_say


def _argus_take_secrets():
    """In a worker of Ray: what is secret in the job's environment comes by a file that only its user can read, and
    not through Ray. The driver has it already, and so do children of this process: there the name is empty."""
    import os

    path = os.environ.get("ARGUS_SECRETS")
    if not path:
        return
    try:
        import json

        with open(path, encoding="utf-8") as f:
            os.environ.update({name: value for name, value in json.load(f).items() if name})
        os.environ["ARGUS_SECRETS"] = ""
    except Exception as e:  # no words of the file itself
        why = getattr(e, "strerror", None) or type(e).__name__
        _argus_say(f"the job's secrets could not be read from {path}: {why}")


def _argus_take_network():
    """What the lease says of this node's network: NCCL_… and GLOO_… that nobody who is heard before it has set."""
    import json
    import os

    text = os.environ.get("ARGUS_LEASE") or ""
    if '"env"' not in text:
        return
    nodes = json.loads(text).get("nodes") or []
    ours = _argus_node_id()
    name = os.environ.get("ARGUS_NODE")
    for node in nodes:
        if node.get("name") == name or (ours and node.get("id") == ours):
            for key, value in (node.get("env") or {}).items():
                os.environ.setdefault(key, value)
            return


def _argus_scout_place(path):
    """Make the scout's directory. True: it needs a scout; None: another user made it, since /tmp is open to all."""
    import os
    import time
    from fcntl import LOCK_EX, LOCK_NB, flock

    try:
        os.mkdir(path, 0o700)
        return True
    except FileExistsError:
        if os.lstat(path).st_uid != os.getuid():
            return None
    try:
        with open(path + "/lock", "r+") as f:
            flock(f, LOCK_EX | LOCK_NB)
        return True  # whoever held it has died
    except FileNotFoundError:  # before it held it, or it has just begun
        return time.time() - os.stat(path).st_mtime > 10
    except OSError:  # it lives
        return False


def _argus_scout():
    """In a worker of Ray: leave word for the scout of the attempt on this node, and start it where there is none. The
    shepherd does the same on the driver's node (shepherd/scout.h)."""
    import os
    import sys

    env = os.environ
    raylet, attempt = env.get("RAY_RAYLET_PID"), env.get("ARGUS_ATTEMPT_DIR")
    argv = raylet and attempt and _argus_argv()
    if not argv or not any(a.endswith("default_worker.py") for a in argv[:8]):
        return
    host = os.uname()
    name = f"argus-{os.getuid()}-{env['ARGUS_JOB_ID']}-a{env['ARGUS_ATTEMPT']}-{host.nodename}-{raylet}"
    place = "/tmp/" + name
    needs_scout = _argus_scout_place(place)
    if needs_scout is None:
        return
    mark = f"{place}/{env.get('RAY_JOB_ID')}-{os.getpid()}"
    os.close(os.open(mark, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    if not needs_scout:
        return
    argus = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    program = f"{argus}/bin/{host.machine}/argus-shepherd"
    node = _argus_lease_name(_argus_node_id()) or host.nodename
    path = os.path.dirname(sys.executable or "/usr/bin/") + ":" + env.get("PATH", "/usr/bin:/bin")
    null = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)]
    # By the lease the scout tells the Xid of a GPU of the job from that of a neighbour's (gpuheld.c).
    kept = {"PATH": path, "ARGUS_LEASE": env.get("ARGUS_LEASE", "")}
    words = [program, "--scout", attempt, place, raylet, node]
    try:
        os.waitpid(os.posix_spawn(program, words, kept, file_actions=null), 0)
    except OSError:  # no such program here: there is no scout on this node
        os.unlink(mark)
        os.rmdir(place)
