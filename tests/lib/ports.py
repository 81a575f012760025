# SPDX-License-Identifier: Apache-2.0
"""Ports for whoever listens later, or again on the same one: never one that the kernel may give to an outgoing
connection in between, and none of docs/ports.md."""

import contextlib
import itertools
import os
import random
import socket

WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw7").removeprefix("gw"))
PORTS = itertools.cycle(random.sample(range(30000, 32400)[WORKER % 24 :: 24], 100))  # of this one of pytest's workers


def free_port():
    for port in PORTS:
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port
