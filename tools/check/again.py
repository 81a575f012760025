# SPDX-License-Identifier: Apache-2.0
"""What failed runs again, alone, at most twice: a race that loses once in a thousand runs must not hold a change, and
must not be hidden either.

    runs = Runs(folder, strict)          folder: where first tracebacks are kept, below `flaky/`
    count = runs.pytest(arguments, workers, env)
    count = runs.meson(build folder, options, env)
    runs.close(), runs.lines()           what is said above the last line

A test that passes when it is tried again counts as passed and is flaky. Flaky ones are counted by cause: a fixture that
broke is one, however many tests it has. More than MOST_FLAKY causes fail the run, each of them does when it is strict.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = 2  # how often what failed is tried again
MOST_FLAKY = 5
MOST_AGAIN = 40  # tests: where more fail, it is no race, and trying them one by one would take the day


class Count:
    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def __add__(self, other):
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __eq__(self, other):
        return str(self) == str(other)

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


FAILURE = Count(failed=1)
OUTCOMES = {"passed": Count(1), "failed": FAILURE, "skipped": Count(skipped=1)}


def call(argv, **keys):
    return subprocess.run(argv, **keys).returncode


def read_json(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def cause_of(nodeid, test):
    """What failed before the test itself began is the fixture's: the same complaint in one file is one cause."""
    if test["when"] != "setup":
        return nodeid
    lines = [line for line in test["text"].splitlines() if line.startswith("E ")]
    return f"{nodeid.partition('::')[0]}: {lines[-1] if lines else 'setup'}"


class Runs:
    def __init__(self, folder, strict=False):
        self.folder, self.strict = os.path.join(folder, "flaky"), strict
        self.flaky = {}  # cause -> names
        self.broken = []  # a line for each that failed each time
        self.costs = {}  # of the first pass: onepass.py
        self.beds = os.path.join(self.folder, "beds.jsonl")
        shutil.rmtree(self.folder, ignore_errors=True)

    def keep(self, name, text):
        """The first traceback of a flaky one."""
        file = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[-150:].strip("-")
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, file + ".txt"), "a") as f:
            f.write(f"{name}\n\n{text}\n")

    def add_flaky(self, name, cause, text):
        self.flaky.setdefault(cause, []).append(name)
        self.keep(name, text)

    # ---- pytest ----

    def one_pass(self, arguments, env, only=None):
        """What onepass.py wrote; None when it did not come to its end."""
        out, ids = os.path.join(self.folder, "outcomes.json"), os.path.join(self.folder, "only.json")
        os.makedirs(self.folder, exist_ok=True)
        if os.path.exists(out):
            os.unlink(out)
        argv = [sys.executable, os.path.join(HERE, "onepass.py"), out]
        if only is not None:
            with open(ids, "w") as f:
                json.dump(sorted(only), f)
            argv += ["--only", ids]
        call([*argv, "--", *arguments], env={**os.environ, "ARGUS_BEDS_AGAIN": self.beds, **env})
        return read_json(out)

    def pytest(self, arguments, workers=(), env=None, say=print):
        """`workers` are the arguments of the first pass alone."""
        env = env or {}
        first = self.one_pass([*arguments, *workers], env)
        if first is None or first["code"] not in (0, 1, 5):
            self.broken.append("pytest did not come to its end")
            return FAILURE
        tests = first["tests"]
        self.costs = first["costs"]
        failed = {name: test["text"] for name, test in tests.items() if test["outcome"] == "failed"}
        never = [name for name in first["collected"] if name not in tests]
        if never:
            self.broken.append(f"{len(never)} tests never ran, the first is {never[0]}")

        def passing(names):
            again = self.one_pass(arguments, env, names)
            return {name for name, test in again["tests"].items() if test["outcome"] == "passed"} if again else set()

        left = self.try_again("tests", failed, passing, say, lambda name: cause_of(name, tests[name]))
        self.broken += [f"test {name}" for name in sorted(left)]
        count = sum((OUTCOMES[test["outcome"]] for name, test in tests.items() if name not in failed), Count())
        count += Count(len(failed) - len(left), len(left))
        if never or (first["code"] == 1 and not failed):
            count += FAILURE
        return count

    def try_again(self, what, failed, passing, say, cause=str):
        """The names that fail each time. failed: {name: what it said}; passing(names): those that pass now."""
        left = set(failed)
        if len(left) > MOST_AGAIN:
            say(f"{len(left)} {what} failed: too many to be tried again")
            return left
        for _ in range(ROUNDS):
            if not left:
                break
            say(f"{len(left)} {what} failed: each is tried again, alone")
            for name in sorted(left & passing(left)):
                self.add_flaky(name, cause(name), failed[name])
                left.discard(name)
        return left

    # ---- unit tests ----

    def meson_pass(self, build, options, env, names=()):
        """{name: (result, what it said)} of one run, and its exit status."""
        logs = os.path.join(build, "meson-logs", "testlog*.json")  # a wrapper's name is in it
        for log in glob.glob(logs):
            os.unlink(log)
        argv = ["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs", *options, *names]
        code = call(argv, env={**os.environ, **env})
        results = {}
        for log in glob.glob(logs):
            with open(log) as f:
                for test in map(json.loads, f):
                    text = f"{test['result']}\n{test.get('stdout', '')}\n{test.get('stderr', '')}"
                    results[f"unit test {test['name']}"] = (test["result"], text)
        return results, code

    def meson(self, build, options=(), env=None, say=print):
        env = env or {}
        good = {"OK": Count(1), "EXPECTEDFAIL": Count(1), "SKIP": Count(skipped=1)}
        results, code = self.meson_pass(build, [*options, "--num-processes", "2"], env)
        failed = {name: text for name, (result, text) in results.items() if result not in good}
        count = sum((good[result] for result, _ in results.values() if result in good), Count())
        if not failed and (code or not results):
            self.broken.append("the unit tests did not come to their end")
            return count + FAILURE

        def passing(names):
            asked = [name.removeprefix("unit test ").rpartition(" / ")[2] for name in sorted(names)]
            again, _ = self.meson_pass(build, [*options, "--num-processes", "1"], env, asked)
            return {name for name, (result, _) in again.items() if result == "OK"}

        left = self.try_again("unit tests", failed, passing, say)
        self.broken += [f"{name} ({results[name][0]})" for name in sorted(left)]
        return count + Count(len(failed) - len(left), len(left))

    # ---- the end ----

    def close(self):
        """The failures that flaky ones are: none, one for being too many, or each where the run is strict."""
        if os.path.exists(self.beds):
            with open(self.beds) as f:
                for bed in map(json.loads, f):
                    self.add_flaky(bed["name"], bed["name"], bed["why"])
            os.unlink(self.beds)
        if self.strict:
            return Count(failed=len(self.flaky))
        return FAILURE if len(self.flaky) > MOST_FLAKY else Count()

    def dearest(self, most=30):
        """The files that took the most CPU, a line each."""
        dear = sorted(self.costs.items(), key=lambda item: -item[1]["cpu"])[:most]
        total = sum(cost["cpu"] for cost in self.costs.values())
        yield f"{len(dear)} files with the most CPU, of {total:.0f} s in all:"
        for name, cost in dear:
            yield f"{cost['cpu']:7.0f} s of CPU  {cost['wall']:6.0f} s  {cost['tests']:4d} tests  {name}"

    def lines(self):
        for what in self.broken:
            yield f"FAILED {what}"
        if self.flaky:
            names = sorted(name for names in self.flaky.values() for name in names)
            yield f"flaky: {len(self.flaky)}: {', '.join(names)}"
            yield f"flaky: the first traceback of each is in {os.path.relpath(self.folder)}"
        if len(self.flaky) > MOST_FLAKY and not self.strict:
            yield f"FAILED more than {MOST_FLAKY} flaky ones: this is no chance"
