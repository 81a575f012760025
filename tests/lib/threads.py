# SPDX-License-Identifier: Apache-2.0
"""The threads of a program held one by one, so that a test sees which of them does what. A debugger's calls: a signal
would stop all of them."""

import contextlib
import ctypes
import os
import pathlib

SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000

ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
ptrace.restype = ctypes.c_long


def ask(what, thread):
    if ptrace(what, thread, None, None) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


@contextlib.contextmanager
def only_the_first(pid):
    """All threads but the first one stand still. PermissionError: this machine does not let us."""
    others = sorted(int(t.name) for t in pathlib.Path(f"/proc/{pid}/task").iterdir() if int(t.name) != pid)
    held = []
    try:
        for thread in others:
            ask(SEIZE, thread)
            held.append(thread)
            ask(INTERRUPT, thread)
            os.waitpid(thread, WALL)
        yield len(held)
    finally:
        for thread in held:
            ask(DETACH, thread)
