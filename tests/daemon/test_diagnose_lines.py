# SPDX-License-Identifier: Apache-2.0
"""argus diagnose on single lines, in the wording of the programs that print them: tests/findings/lines.tsv has the
class and the line. By day every tenth of them; and the second candidate, as people and programs are shown it."""

import json
import pathlib
import subprocess

import programs
import pytest

pytestmark = pytest.mark.skipif(not programs.PROGRAMS, reason="argus is not built")

FILE = pathlib.Path(__file__).resolve().parents[1] / "findings/lines.tsv"
LINES = [line.split("\t", 1) for line in FILE.read_text().splitlines()]
DIED = "A worker died or was killed while executing a task\nTimeoutError: the store gave no answer\n"


def diagnose(log, *more):
    argv = [programs.PROGRAMS["argus"], "diagnose", "--log", "-", *more]
    done = subprocess.run(argv, input=log, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def wrong(lines):
    found = [(label, json.loads(diagnose(line + "\n", "-o", "json"))["class"], line) for label, line in lines]
    return [f"{label} is taken for {got}: {line}" for label, got, line in found if label != got]


def test_every_tenth_line():
    assert not wrong(LINES[::10])


@pytest.mark.nightly
def test_every_line():
    assert not wrong(LINES)


def test_a_second_is_told():
    found = json.loads(diagnose(DIED, "-o", "json"))
    assert found["class"] == "actor_died"
    second = found["second"]
    assert second["class"] == "timeout_or_hang"
    assert second["quote"]["text"].startswith("TimeoutError")
    assert 0 < second["confidence"] <= found["confidence"]
    told = diagnose(DIED)
    assert "or else     timeout_or_hang - something waited longer" in told
    assert "line 2: TimeoutError: the store gave no answer" in told


def test_what_is_sure_has_no_second():
    log = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    assert json.loads(diagnose(log, "-o", "json"))["second"] is None
    assert "or else" not in diagnose(log)
