# SPDX-License-Identifier: Apache-2.0
"""What failed is tried again: toy suites that fail once, fail always, are too many, or break before a test begins."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools/check"
sys.path.insert(0, str(CHECK))

from again import MOST_FLAKY, Count, Runs  # noqa: E402

# Fails as often as the file beside it says, and then never again.
TOY = """
import json, os, pathlib
import pytest

HERE = pathlib.Path(__file__).resolve().parent

def fails(name, times):
    mark = HERE / (name + ".runs")
    runs = mark.read_text().count("x") if mark.exists() else 0
    mark.write_text("x" * (runs + 1))
    return runs < times
"""


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """Runs a toy suite; the runs of it, for its lines, and the count with what its end adds."""
    monkeypatch.chdir(tmp_path)

    def run(text, strict=False, workers=()):
        toy = tmp_path / "toy"
        toy.mkdir()
        (toy / "test_toy.py").write_text(TOY + text)
        runs = Runs(str(tmp_path), strict)
        arguments = ["-q", "-p", "no:cacheprovider", str(toy), f"--rootdir={toy}"]
        count = runs.pytest(arguments, workers, {"PYTHONDONTWRITEBYTECODE": "1"}, lambda text: None)
        return runs, count + runs.close()

    return run


def runs_of(tmp_path, name):
    return (tmp_path / "toy" / f"{name}.runs").read_text().count("x")


@pytest.mark.parametrize(("times", "workers"), [(1, ("-n2",)), (2, ())])
def test_what_passes_when_tried_again_is_passed_and_named(suite, tmp_path, times, workers):
    text = f"""
def test_race():
    assert not fails("race", {times}), "lost the race"
def test_good():
    fails("good", 0)
"""
    runs, count = suite(text, workers=workers)
    assert count == Count(2), list(runs.lines())
    assert list(runs.lines())[0] == "flaky: 1: test_toy.py::test_race"
    assert "lost the race" in (tmp_path / "flaky/test_toy.py-test_race.txt").read_text()
    assert runs_of(tmp_path, "race") == times + 1
    assert runs_of(tmp_path, "good") == 1, "what passed is not run again"


def test_a_story_is_tried_again_from_its_beginning(suite, tmp_path):
    text = """
pytestmark = pytest.mark.story
told = []
def test_begins():
    fails("begins", 0)
    told.append(1)
def test_goes_on():
    assert told and not fails("goes_on", 1), "lost the thread"
"""
    runs, count = suite(text)
    assert count == Count(2), list(runs.lines())
    assert list(runs.lines())[0] == "flaky: 1: test_toy.py::test_goes_on"
    assert (runs_of(tmp_path, "begins"), runs_of(tmp_path, "goes_on")) == (2, 2)


def test_what_fails_each_time_fails(suite, tmp_path):
    runs, count = suite("def test_bad():\n    assert not fails('bad', 99)\ndef test_good():\n    pass\n")
    assert count == Count(1, failed=1)
    assert list(runs.lines()) == ["FAILED test test_toy.py::test_bad"]
    assert runs_of(tmp_path, "bad") == 3, "once, and twice again"


def test_more_than_five_flaky_ones_fail(suite):
    names = [f"race{i}" for i in range(MOST_FLAKY + 1)]
    runs, count = suite("".join(f"def test_{n}():\n    assert not fails('{n}', 1)\n" for n in names))
    assert count == Count(len(names), failed=1)
    assert f"FAILED more than {MOST_FLAKY} flaky ones" in "\n".join(runs.lines())


def test_five_flaky_ones_do_not(suite):
    names = [f"race{i}" for i in range(MOST_FLAKY)]
    _, count = suite("".join(f"def test_{n}():\n    assert not fails('{n}', 1)\n" for n in names))
    assert count == Count(len(names))


def test_strict_counts_each_flaky_one_as_failed(suite):
    text = "".join(f"def test_{n}():\n    assert not fails('{n}', 1)\n" for n in ("a", "b"))
    runs, count = suite(text, strict=True)
    assert count.failed == 2
    assert list(runs.lines())[0] == "flaky: 2: test_toy.py::test_a, test_toy.py::test_b"


FIXTURE = """
@pytest.fixture(scope="module")
def ground():
    assert not fails("ground", {times}), "no ground"
@pytest.mark.parametrize("n", range(9))
def test_on_it(ground, n):
    pass
"""


def test_a_fixture_that_broke_is_one_however_many_tests_it_has(suite):
    runs, count = suite(FIXTURE.format(times=1))
    assert count == Count(9), list(runs.lines())
    assert list(runs.lines())[0].startswith("flaky: 1: test_toy.py::test_on_it[0], ")


def test_a_fixture_that_cannot_be_taken_down_is_a_failure(suite):
    text = """
@pytest.fixture
def ground():
    yield
    assert not fails("ground", 99)
def test_on_it(ground):
    pass
"""
    _, count = suite(text)
    assert count == Count(failed=1)


def test_a_skip_is_no_pass(suite):
    text = """
def test_race():
    if not fails("race", 1):
        pytest.skip("nothing to see")
    assert False
"""
    _, count = suite(text)
    assert count == Count(failed=1)


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_a_suite_that_cannot_be_read_is_a_failure_and_not_tried_again(suite, workers):
    runs, count = suite("def test_good():\n    pass\nraise RuntimeError\n", workers=workers)
    assert count.failed and not runs.flaky


def test_what_was_cut_is_a_failure(suite):
    """The time of a run is up: what passed until then does not make it green."""
    text = "import select\n" + "".join(f"def test_{i}():\n    select.select([], [], [], 1)\n" for i in range(20))
    runs, count = suite(text, workers=("--session-timeout=1",))
    assert count.failed == 1 and count.passed < 20
    assert "tests never ran" in "\n".join(runs.lines())


def test_a_worker_that_dies_takes_its_test_with_it(suite):
    text = """
def test_race():
    if fails("race", 1):
        os.kill(os.getpid(), 9)
def test_good():
    pass
"""
    runs, count = suite(text, workers=("-n2",))
    assert count == Count(2), list(runs.lines())
    assert list(runs.lines())[0] == "flaky: 1: test_toy.py::test_race"


def test_a_bed_that_came_up_at_the_second_try_is_flaky(suite):
    text = """
def test_on_a_bed():
    with open(os.environ["ARGUS_BEDS_AGAIN"], "a") as f:
        f.write(json.dumps({"name": "bed of Ray 2.51.1 (none)", "why": "no dashboard"}) + "\\n")
"""
    runs, count = suite(text)
    assert count == Count(1)
    assert list(runs.lines())[0] == "flaky: 1: bed of Ray 2.51.1 (none)"


@pytest.fixture
def bed(monkeypatch, tmp_path):
    """A kind of bed whose `up` fails as often as it is told."""
    import raybed

    monkeypatch.setenv("ARGUS_BEDS_AGAIN", str(tmp_path / "again"))
    monkeypatch.setattr(raybed, "env_path", lambda name: tmp_path)

    class Slow(raybed.Bed):
        tries, failing = 0, 0

        def up(self, *args):
            self.dir, type(self).tries = str(tmp_path / "bed"), self.tries + 1
            if self.tries <= self.failing:
                raise AssertionError("'ray start' on h1 fails")
            self.info = {
                "hosts": [],
                "head_ip": "",
                "ctl_ip": "",
                "dashboard_url": "",
                "token_path": "",
                "ssh_config": "",
            }

    return Slow


def test_a_bed_is_made_again_and_told(bed, tmp_path):
    bed.failing = 2
    bed("2.51.1", "none")
    told = [json.loads(line) for line in (tmp_path / "again").read_text().splitlines()]
    assert told == [{"name": "bed of Ray 2.51.1 (none)", "why": "'ray start' on h1 fails"}] * 2


def test_a_bed_that_never_comes_up_is_a_failure(bed):
    bed.failing = 3
    with pytest.raises(AssertionError, match="ray start"):
        bed("2.51.1", "none")
    assert bed.tries == 3


UNIT = """project('toy')
python = import('python').find_installation('python3')
foreach name, times : {'race': '1', 'good': '0', %s}
  test(name, python, args: [files('toy.py'), name, times], suite: 'base')
endforeach
"""


@pytest.mark.parametrize(("bad", "options"), [(False, ()), (True, ()), (False, ("--wrapper", "env"))])
def test_unit_tests_are_tried_again(tmp_path, monkeypatch, bad, options):
    """By a wrapper, as valgrind is one, too: its log has another name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "meson.build").write_text(UNIT % ("'bad': '99'" if bad else ""))
    (tmp_path / "toy.py").write_text(
        TOY.replace("import pytest", "import sys") + "sys.exit(fails(sys.argv[1], int(sys.argv[2])))\n"
    )
    setup = ["meson", "setup", "-Dwrap_mode=nodownload", "build"]
    subprocess.run(setup, check=True, stdout=subprocess.DEVNULL)
    runs = Runs(str(tmp_path))
    count = runs.meson("build", options, say=lambda text: None) + runs.close()
    assert count == Count(2, failed=int(bad)), list(runs.lines())
    said = "\n".join(runs.lines())
    assert re.search(r"^flaky: 1: unit test .*race$", said, re.M)
    assert bool(re.search(r"^FAILED unit test .*bad", said, re.M)) == bad
    assert (tmp_path / "race.runs").read_text() == "xx" and (tmp_path / "good.runs").read_text() == "x"
