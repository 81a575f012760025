# SPDX-License-Identifier: Apache-2.0
"""A page of docs/sop beside an argusd of a test: its blocks, pasted as an operator pastes them.

page = SopPage("token-leak", argusd, WHO="alice")
said = page.paste("close")
assert page.left == set()
"""

import os
import pathlib
import re
import subprocess

from programs import PROGRAMS

SOP = pathlib.Path(__file__).resolve().parents[2] / "docs/sop"


class SopPage:
    def __init__(self, name, argusd, **values):
        self.blocks = dict(re.findall(r"(?ms)^```sh (\S+)\n(.*?)^```$", (SOP / f"{name}.md").read_text()))
        self.left = set(self.blocks)
        path = f"{PROGRAMS['argus'].parent}:{os.environ['PATH']}"
        self.env = {"ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["admin"], "LANG": "C.UTF-8", "PATH": path}
        self.env |= {"HOME": str(argusd.home), **values}

    def paste(self, block, codes=(0,)):
        """What it printed; codes: the exit statuses that are right."""
        self.left.discard(block)
        argv = ["bash", "-euo", "pipefail", "-c", self.blocks[block]]
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=280)
        assert done.returncode in codes, done
        return done.stdout
