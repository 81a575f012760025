# SPDX-License-Identifier: Apache-2.0
"""The hook as it is installed: one file, made of hook/*.py as the build makes it."""

import functools
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


@functools.cache
def hook_text():
    argv = [ROOT / "tools/join", ROOT / "hook/sitecustomize.py", "/dev/stdout"]
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout


def place_hook(directory):
    (directory / "sitecustomize.py").write_text(hook_text())
