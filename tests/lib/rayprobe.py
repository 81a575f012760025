# SPDX-License-Identifier: Apache-2.0
"""Our client of Ray from Python: ray_probe (src/ray/test/probe.c), one call each."""

import json
import pathlib
import subprocess
import tempfile

from programs import find_tool

PROBE = find_tool("src/ray/ray_probe")


class Probe:
    """probe = Probe(url, token="…"); probe("get", "a-1")["outcome"]"""

    def __init__(self, url, prefix=(), **options):
        self.url, self.prefix = url, list(prefix)
        self.options = [f"{k}={v}" for k, v in options.items()]

    def lines(self, *args, **options):
        more = [f"{k}={v}" for k, v in options.items()]
        argv = [*self.prefix, str(PROBE), self.url, *self.options, *more, *map(str, args)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{argv}: exit {done.returncode}: {done.stderr}"
        assert not done.stderr, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def __call__(self, *args, **options):
        (line,) = self.lines(*args, **options)
        return line

    def submit(self, *specs, **options):
        """Each spec is a dict: submission_id, entrypoint, env, metadata, resources, ...; the answers in order."""
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for i, spec in enumerate(specs):
                paths.append(pathlib.Path(folder) / f"{i}.json")
                paths[-1].write_text(json.dumps(spec))
            return self.lines("submit", *paths, **options)
