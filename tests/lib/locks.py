# SPDX-License-Identifier: Apache-2.0
"""Whether a process lives that holds a lock: it says so without a number that another process may have by now."""

import fcntl


def is_held(path):
    with open(path) as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
