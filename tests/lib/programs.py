# SPDX-License-Identifier: Apache-2.0
"""The programs under test: those of ARGUS_BIN, else those of the build that was made last."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("argusd", "argus", "argus-shepherd")


def built(folder, name):
    return folder / "src" / name.removeprefix("argus-") / name


def find_programs():
    """{name: path}, or None when there is no build with all three."""
    if os.environ.get("ARGUS_BIN"):
        found = {n: pathlib.Path(os.environ["ARGUS_BIN"]) / n for n in NAMES}
        return found if all(p.exists() for p in found.values()) else None
    if os.environ.get("ARGUS_BUILD"):
        folders = [pathlib.Path(os.environ["ARGUS_BUILD"])]
    else:
        folders = [f.parent for f in ROOT.glob("build*/build.ninja")]
    whole = [f for f in folders if all(built(f, n).exists() for n in NAMES)]
    newest = max(whole, key=lambda f: built(f, "argusd").stat().st_mtime, default=None)
    return newest and {n: built(newest, n) for n in NAMES}


def find_tool(path):
    """A program of the tests, which is built and not installed: beside whatever build the tests are about."""
    folders = [os.environ.get("ARGUS_BUILD")]
    if os.environ.get("ARGUS_BIN"):
        folders.append(pathlib.Path(os.environ["ARGUS_BIN"]).parents[1])
    folders += [ROOT / "build", ROOT / "build-asan"]
    found = [pathlib.Path(f) / path for f in folders if f and (pathlib.Path(f) / path).exists()]
    return found[0] if found else None


PROGRAMS = find_programs()
