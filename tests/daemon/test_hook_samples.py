# SPDX-License-Identifier: Apache-2.0
"""verl's dumps under the hook, in every Python that is here, with trainers of a few lines that dump as verl does.

tests/verl/test_samples_real.py shows the same with the trainers of verl itself."""

import json
import sys

import pytest
from dumpers import TRAINERS
from test_hook import hook, python, run, write  # noqa: F401  (two are fixtures)

BEGIN = """
import json, math, os
from verl.trainer.{module} import {name} as Trainer
trainer = Trainer()
Samples = Trainer._dump_generations.__globals__.get('_ArgusSamples')
def settle():
    for f in getattr(trainer, '_dump_futures', []):
        f.result()
dump, ROLLOUT = trainer.dump, os.environ.get('ARGUS_SAMPLES', '') + '/rollout'
"""


class Job:
    def __init__(self, tmp_path, hook_dir, trainer):
        self.dir, self.hook, self.python = tmp_path / "job", hook_dir, sys.executable
        self.trainer = trainer
        module, name, text = TRAINERS[trainer]
        here = tmp_path / "code/verl"
        here.parent.mkdir()
        for part in ("", "trainer", "trainer/ppo", "trainer/ppo/v1"):
            write(here / part, "__init__.py", "")
        (here / f"trainer/{module}.py").write_text(text)
        self.begin = BEGIN.format(module=module.replace("/", "."), name=name)
        (self.dir / "attempt/debug").mkdir(parents=True)

    def run(self, code):
        return run(self.python, self.hook, self.hook.parent / "code", code=self.begin + code + "\ntrainer.close()\n")

    def rows(self, step, kind="rollout"):
        path = self.dir / f"samples/{kind}/{step}.jsonl"
        return [json.loads(line, parse_constant=lambda _: pytest.fail("no JSON")) for line in path.open()]

    def steps(self):
        return sorted(int(p.stem) for p in (self.dir / "samples/rollout").glob("*.jsonl"))

    def told(self):
        return (self.dir / "attempt/debug/samples.txt").read_text().splitlines()


@pytest.fixture(params=sorted(TRAINERS))
def job(request, tmp_path, hook, monkeypatch):  # noqa: F811
    made = Job(tmp_path, hook, request.param)
    monkeypatch.setenv("ARGUS_SAMPLES", str(made.dir / "samples"))
    monkeypatch.setenv("ARGUS_ATTEMPT_DIR", str(made.dir / "attempt"))
    return made


def test_a_dump_has_the_form_of_verl(job, python):  # noqa: F811
    job.python = python
    done = job.run("dump(1, [('a\\n', 'b é', 1.0), ('a', 'c', 0.5)], ROLLOUT, fmt=[1, 2], short=[7])")
    assert done.stderr == ""
    rows = job.rows(1)
    for row in rows:
        row.pop("gts", None)  # from 0.6.0 on
    assert rows == [
        {"input": "a\n", "output": "b é", "score": 1.0, "step": 1, "fmt": 1},
        {"input": "a", "output": "c", "score": 0.5, "step": 1, "fmt": 2},
    ]


HARD = """
class Scalar:
    def tolist(self): return 2.5
class Odd:
    def __str__(self): raise ValueError('no text')
ring = []
ring.append(ring)
for step in (1, 2, 3):
    dump(step, [('a', 'b', float('nan')), ('c', 'd\\ud800', 1.0)], ROLLOUT,
         scalar=[Scalar(), 3], bad=[{1, 2}, {('k', 1): math.inf}], odd=[Odd(), ring], big=[10 ** 5000, 1])
dump(4, [('a', 'b', 1.0)], '/proc/nowhere/rollout', bad=[{1}])
dump(5, [('a', 'b', 1.0)], os.environ['ARGUS_SAMPLES'] + '/../own', bad=[{1}])
print('trained')
"""


def test_what_json_cannot_hold_never_ends_a_training(job, python):  # noqa: F811
    job.python = python
    done = job.run(HARD)
    assert done.stdout == "trained\n"
    first, second = job.rows(3)
    assert (first["score"], first["scalar"], first["bad"], first["odd"]) == (None, 2.5, "{1, 2}", "<Odd>")
    assert (second["score"], second["output"], second["big"]) == (1.0, "d?", 1)
    assert second["bad"] == {"('k', 1)": None}
    said = [line for line in done.stderr.splitlines() if line.startswith("argus: ")]
    assert len([line for line in said if "a value that JSON cannot hold" in line]) == 1, "told once"
    counted = [line for line in job.told() if "a value that JSON cannot hold" in line]
    assert len(counted) == 3 * 6 and counted[-1].startswith("18 "), "and each is counted"
    for why in ("/proc/nowhere", "not JSON serializable"):
        assert any(why in line for line in job.told()), "nor what verl's own writer raises"


def test_a_directory_that_cannot_be_written(job):
    job.dir.joinpath("samples").write_text("in the way")
    done = job.run("dump(1, [('a', 'b', 1.0)], ROLLOUT)\nprint('trained')")
    assert done.stdout == "trained\n"
    assert "samples could not be kept as they are, the training goes on" in done.stderr


def test_the_rate_follows_the_bytes(job):
    """Two lines of 40 bytes of text: of 80 bytes every second step where 40 may be of each; and the first and last."""
    job.run(
        "Samples.EACH = 40\ntrainer.total_training_steps = 9\n"
        "for step in range(3, 10):\n    dump(step, [('a' * 20, 'b' * 20, 1.0)] * 2, ROLLOUT)\n    settle()"
    )
    assert job.steps() == [3, 4, 6, 8, 9]


ROOM = """
Samples.QUOTA, size = 0, 0
for step in range({first}, {last}):
    dump(step, [('a', 'b' * 100, 1.0 if step == 17 else 0.5)], ROLLOUT)
    settle()
    size = size or os.path.getsize(ROLLOUT + '/{first}.jsonl')
    Samples.QUOTA = {keeps} * size + size // 2
"""


def test_the_quota_keeps_the_newest_the_best_and_every_tenth(job):
    begin = ROOM.replace("Samples.QUOTA, size = 0, 0", "Samples.QUOTA, size = 1 << 30, 0")
    job.run(begin.format(first=1, last=36, keeps=8))
    assert job.steps() == [10, 17, 20, 30, 32, 33, 34, 35]
    job.run(begin.format(first=36, last=51, keeps=4))  # the next attempt knows which is the best
    assert job.steps() == [17, 30, 40, 50]


def test_a_step_of_too_many_bytes_is_left_out_and_told(job):
    job.run("Samples.QUOTA = 400\ndump(1, [('a', 'b' * 101, 1.0)], ROLLOUT)\ndump(2, [('a', 'b', 1.0)], ROLLOUT)")
    assert job.steps() == [2]
    assert job.told() == ["1 step 1 of rollout: 102 characters are too many"]


def test_a_line_that_is_too_long_is_cut(job):
    job.run("Samples.LINE, Samples.TEXT = 200, 50\ndump(1, [('a', 'b' * 900, 1.0)], ROLLOUT, extra=['c'])")
    assert job.rows(1) == [{"input": "a", "output": "b" * 50, "score": 1.0, "step": 1}]


def test_without_samples_verl_is_left_alone(job, monkeypatch):
    monkeypatch.delenv("ARGUS_SAMPLES")
    assert job.run("print(Samples, hasattr(Trainer._dump_generations, '__wrapped__'))").stdout == "None False\n"


@pytest.mark.parametrize("job", [name for name in sorted(TRAINERS) if name != "0.5.0"], indirect=True)
def test_a_disk_that_is_too_slow_holds_up_nobody(job):
    """The writer waits until all are dumped: what it cannot take is left out and told, but for the last step. verl
    0.5.0 has no thread for it."""
    job.run(
        "import threading\ngo, write = threading.Event(), Samples.write\n"
        "Samples.write = lambda *args: (go.wait(), write(*args))\ntrainer.total_training_steps = 9\n"
        "for step in range(1, 10): dump(step, [('a', 'b', 1.0)], ROLLOUT)\ngo.set()"
    )
    assert job.steps() == [1, 2, 3, 4, 9]
    assert [line.partition(": ")[2] for line in job.told()] == ["the disk is too slow"] * 4


def test_a_tracker_and_samples_change_one_module(job, monkeypatch):
    """Both have work at the end of the import of verl's trainer."""
    monkeypatch.setenv("ARGUS_TRACKERS", "guarded")
    done = job.run("print([hasattr(getattr(Trainer, f), '__wrapped__') for f in ('fit', '_dump_generations')])")
    assert done.stdout == f"[{'V1' not in job.trainer}, True]\n"
