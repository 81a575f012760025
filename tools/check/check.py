#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs everything that says whether Argus is right, and adds it up.

    check.py check [--strict] [gates|unit|whole]
                                          the last line is `N passed, N failed, N skipped`; exit 1 if any failed
    check.py nightly [STEP...]            the same, longer and strict, and then clang, valgrind, NFS and fuzzing; the
                                          date and the result of each step go to docs/nightly.md

A count is one gate, one unit-test program, or one test of tests/. A step that cannot even start counts as one failure.
Whole-program tests get the sanitized programs; where these are stands in ARGUS_BIN. What failed is tried again, alone:
again.py.
"""

import os
import re
import shutil
import subprocess
import sys
import time

from again import FAILURE, Count, Runs, call

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
START = time.monotonic()
ASAN = "build-asan"
# mold links the 250 programs of the unit tests in a fifth of the time; release builds keep the system's linker.
LINKER = ["-Dc_link_args=-fuse-ld=mold"] if shutil.which("mold") else []
SANITIZE = ["-Db_sanitize=address,undefined", "-Db_lundef=false", "--buildtype=debugoptimized", *LINKER]
FUZZ_SECONDS = os.environ.get("ARGUS_FUZZ_SECONDS", "600")
STEPS = ("gates", "unit", "whole")
# Most tests mostly wait; which of them share a worker, and how many have real Ray at a time: tests/conftest.py.
WORKERS = ["-n6", "--dist=loadscope", "--no-loadscope-reorder"]
PATIENCE = ["--timeout-multiplier", "8"]  # meson's 30 s are 10 s of work for three of them, and a machine may be busy
HANGS = ["--timeout=300"]  # seconds: a test that hangs is told, it does not eat the run
RUNS = Runs(os.path.join(ROOT, ASAN), strict="--strict" in sys.argv[1:] or sys.argv[1:2] == ["nightly"])
OUTPUT_AGAIN = 20  # lines of a failed gate's output that are told again with it


def say(text):
    print(f"=== [{time.monotonic() - START:.0f} s] {text}", flush=True)


def run(argv, **env):
    """The exit status."""
    return call(argv, cwd=ROOT, env={**os.environ, **env})


def build(folder, options, **env):
    """True when the folder holds an up-to-date build."""
    say(f"build {folder}")
    if not os.path.exists(os.path.join(ROOT, folder, "build.ninja")):
        setup = (
            ["meson", "setup", "--wipe", folder]
            if os.path.isdir(os.path.join(ROOT, folder))
            else ["meson", "setup", folder]
        )
        if run([*setup, "--prefix=/", "--bindir=bin", "-Dwerror=true", *options], **env) != 0:
            return False
    # meson uses ccache where it is there; the folder that a build stands in is no part of what it makes.
    return run(["ninja", "-C", folder], CCACHE_NOHASHDIR="1", **env) == 0


def gates():
    build(ASAN, SANITIZE)  # for the gates that ask programs; unit() counts its failure
    say("gates")
    p = subprocess.Popen(["tools/gates/run"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    last, again = "", 0
    for line in p.stdout:
        print(line, end="", flush=True)
        last = line
        if m := re.match(r"(\S+) +FAILED ", line):
            RUNS.broken.append(f"gate {m[1]}")
            again = OUTPUT_AGAIN
        elif not line.startswith("  "):
            again = 0
        elif again and not line.rstrip().endswith(" ok"):  # selftest has a line for each gate
            RUNS.broken[-1] += "\n" + line.rstrip()
            again -= 1
    p.wait()
    m = re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped\s*", last)
    if not m:
        return FAILURE
    count = Count(*map(int, m.groups()))
    return count + FAILURE if p.returncode and not count.failed else count


def unit(folder=ASAN, options=SANITIZE, wrap=None, **env):
    if not build(folder, options, **env):
        return FAILURE
    say(f"unit tests in {folder}")
    how = ["--wrapper", wrap] if wrap else []
    sanitizer = {"UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}
    return RUNS.meson(os.path.join(ROOT, folder), [*PATIENCE, *how], sanitizer, say)


def whole(options=(), **env):
    if not build(ASAN, SANITIZE):
        return FAILURE
    dest = os.path.join(ROOT, ASAN, "dest")
    if run(["meson", "install", "-C", ASAN, "--no-rebuild", "--quiet", "--destdir", dest]) != 0:
        return FAILURE
    if not os.path.isdir(os.path.join(ROOT, "tests")):
        return Count()
    say("whole-program tests")
    env["ARGUS_BIN"] = os.path.join(dest, "bin")
    limit = f"--session-timeout={os.environ.get('ARGUS_CHECK_SECONDS', '3600')}"
    report = ["-ra", "--durations=25", "-p", "no:cacheprovider"]
    os.chdir(ROOT)
    return RUNS.pytest(["tests", *options, *HANGS, limit, *report], WORKERS, env, say)


def fuzz():
    say(f"every fuzz target for {FUZZ_SECONDS} s")
    p = subprocess.Popen(["tools/fuzz", FUZZ_SECONDS], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    count = Count()
    for line in p.stdout:
        print(line, end="", flush=True)
        m = re.match(r"\w+ (ok|FAILED)\b", line)
        if m:
            count += Count(1) if m.group(1) == "ok" else FAILURE
    return count + FAILURE if p.wait() and not count.failed else count


def nfs(folder):
    """The root on a real NFS mount; a machine that cannot make one says why."""
    say("the shared root on NFS")
    p = subprocess.Popen(["tools/nfs/check", folder], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    last = ""
    for line in p.stdout:
        print(line, end="", flush=True)
        last = line
    m = re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped\s*", last)
    count = Count(*map(int, m.groups())) if m else FAILURE
    return count + FAILURE if p.wait() and not count.failed else count


def clang():
    return unit("build-clang", ["--buildtype=debugoptimized"], CC="clang")


def release():
    return unit("build-optimised", ["--buildtype=release", "-Dweb=disabled"])


def valgrind():
    wrap = "valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=9"
    return unit("build-valgrind", ["--buildtype=debug"], wrap=wrap)


def nfs_mount():
    if not build("build-valgrind", ["--buildtype=debug"]):
        return FAILURE
    return nfs("build-valgrind")


def late():
    """What is marked `nightly` and nothing else: `whole` has it all."""
    return whole(["-m", "nightly"])


# What runs each night, in this order, in words for docs/nightly.md.
NIGHTLY = {
    "gates": (gates, "every gate, clang's static analyzer in depth"),
    "unit": (unit, "unit tests, address and undefined-behaviour sanitizers"),
    "whole": (whole, "whole-program tests with those marked `nightly`, 10,000 kill -9 of argusd"),
    "clang": (clang, "build and unit tests by clang"),
    "release": (release, "optimised build without pages, and its unit tests"),
    "valgrind": (valgrind, "unit tests under valgrind"),
    "nfs": (nfs_mount, "the shared root on a real NFS mount"),
    "fuzz": (fuzz, f"every fuzz target for {FUZZ_SECONDS} s"),
}
OTHERS = {"late": (late, "of the whole-program tests those marked `nightly`, alone")}
TABLE = os.path.join(ROOT, "docs", "nightly.md")
TABLE_HEAD = """# The last nightly runs

`./dev nightly [STEP...]` writes this table: a row is the last run of that step, and only of what ran here.
Tests that want the environments `jupyter`, `mcp` or `verl-0.7.1` skip until `tools/setup/setup NAME` has built them.

| step | what | when | commit | result | minutes |
| --- | --- | --- | --- | --- | --- |
"""


def read_rows():
    if not os.path.exists(TABLE):
        return {}
    with open(TABLE) as f:
        rows = [line for line in f if line.startswith("| ")][2:]
    return {line.split("|")[1].strip(): line for line in rows}


def note(step, what, count, seconds):
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    when = time.strftime("%Y-%m-%d", time.gmtime())
    rows = read_rows()
    rows[step] = f"| {step} | {what} | {when} | {commit.stdout.strip()} | {count} | {seconds / 60:.0f} |\n"
    with open(TABLE, "w") as f:
        f.write(TABLE_HEAD + "".join(rows[s] for s in (*NIGHTLY, *OTHERS) if s in rows))


def nightly(steps):
    os.environ.setdefault("ARGUS_KILL_LOOPS", "10000")
    os.environ.setdefault("ARGUS_PIPE_KILLS", "2000")
    os.environ.setdefault("ARGUS_NIGHTLY", "1")  # tests that are marked so run too
    os.environ.setdefault("ARGUS_CHECK_SECONDS", "36000")
    os.environ.setdefault("ARGUS_SCHED_OPS", "400000")
    os.environ.setdefault("GATE_DEEP", "1")
    total = Count()
    for step in steps or NIGHTLY:
        function, what = (NIGHTLY | OTHERS)[step]
        began = time.monotonic()
        count = function()
        note(step, what, count, time.monotonic() - began)
        total += count
    return total


def main():
    verb, steps = sys.argv[1], [word for word in sys.argv[2:] if word != "--strict"]
    there = [*NIGHTLY, *OTHERS] if verb == "nightly" else STEPS
    unknown = [s for s in steps if s not in there]
    if unknown:
        sys.exit(f"check: no step '{unknown[0]}': there are {' '.join(there)}")
    if verb == "nightly":
        total = nightly(steps)
    else:
        total = Count()
        for step in steps or STEPS:
            total += {"gates": gates, "unit": unit, "whole": whole}[step]()
    total += RUNS.close()
    if RUNS.costs:
        print("\n".join(RUNS.dearest()))
    say("result")
    for line in RUNS.lines():
        print(line)
    print(total)
    sys.exit(1 if total.failed else 0)


if __name__ == "__main__":
    main()
