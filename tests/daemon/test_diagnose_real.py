# SPDX-License-Identifier: Apache-2.0
"""argus diagnose on the console logs of real trainings that failed: verl 0.5.0 on CPUs, each broken on purpose.

A file is called <class>-<what>.txt and holds all that was printed but for the configuration; truth.json has, for each,
what the first line that it quotes must hold, and the exit status of the driver."""

import json
import pathlib
import subprocess

import programs
import pytest

pytestmark = pytest.mark.skipif(not programs.PROGRAMS, reason="argus is not built")

LOGS = pathlib.Path(__file__).resolve().parents[1] / "findings/real"
TRUTH = json.loads((LOGS / "truth.json").read_text())


@pytest.mark.parametrize("name", sorted(p.stem for p in LOGS.glob("*.txt")))
def test_real(name):
    truth, path = TRUTH[name], LOGS / f"{name}.txt"
    argv = [programs.PROGRAMS["argus"], "diagnose", "--log", path, "--exit-code", str(truth["exit"]), "-o", "json"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["class"] == name.partition("-")[0], found
    if truth["quote"]:
        first = found["evidence"][0]
        assert truth["quote"] in first["text"]
        assert truth["quote"] in path.read_bytes()[first["offset"] :].partition(b"\n")[0].decode()
