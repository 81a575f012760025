# SPDX-License-Identifier: Apache-2.0
"""What the raylet above this process was started with: Ray tells a job's command none of this."""

import os
import pathlib


def ancestors():
    """Command lines of the processes above this one, the nearest first."""
    pid = os.getpid()
    while pid > 1:
        try:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
            pid = int(stat.rpartition(")")[2].split()[1])
            yield pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except (OSError, ValueError, IndexError):
            return


def raylet_option(name):
    """The value of its option --NAME=VALUE; None where there is no raylet or no such option."""
    for words in ancestors():
        if words and words[0].endswith("/raylet"):
            return next((word.partition("=")[2] for word in words if word.startswith(f"--{name}=")), None)
    return None
