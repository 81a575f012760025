# SPDX-License-Identifier: Apache-2.0
"""A line of a job's output is written whole."""


def _argus_write_lines():
    """PYTHONUNBUFFERED=1, which a job has so that its log is no block behind, makes print() write a text and its end
    one after the other. What another thread, process or stderr of the job writes in between into the same log then
    stands in that line, and a step's last metric is lost. Written at the end of each line, a line is one write."""
    import os
    import sys

    if not os.environ.get("PYTHONUNBUFFERED"):
        return
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "write_through", False) and not stream.isatty():
            stream.reconfigure(line_buffering=True, write_through=False)
