# SPDX-License-Identifier: Apache-2.0
"""The dumps of verl's own trainers under the hook: in the form of that release, and whatever the values are."""

import json
import os
import subprocess

import pytest
from hookfile import place_hook
from test_cmdline_real import verl_python

pytestmark = pytest.mark.verl

TRAINERS = {
    "0.5.0": ("0.5.0", "verl.trainer.ppo.ray_trainer", "RayPPOTrainer"),
    "0.9.1": ("0.9.1", "verl.trainer.ppo.ray_trainer", "RayPPOTrainer"),
    "0.9.1 V1": ("0.9.1", "verl.trainer.ppo.v1.trainer_base", "PPOTrainer"),
}
# dump(): by verl's own class, with no more of a trainer than its dump asks for.
CODE = """
import os, sys
import numpy, torch
from {module} import {name} as Trainer
class Alone(Trainer):
    def __init__(self): pass
Alone.__abstractmethods__ = frozenset()
trainer, own = Alone(), '{own}'
getattr(trainer, '_init_dump_executor', bool)()
gts = dict(gts=['4', None]) if '{version}' != '0.5.0' else dict()
def dump(step, path, scores, **extras):
    trainer.global_steps = step
    trainer._dump_generations(inputs=['2+2', 'a'], outputs=['4', 'b\\n'], scores=scores, dump_path=path,
                              reward_extra_infos_dict=extras, **gts)
    if path == ours:  # as a step of a training is longer than a dump
        for f in getattr(trainer, '_dump_futures', []):
            f.result()
ours = os.environ.get('ARGUS_SAMPLES', own) + '/rollout'
for step in range(1, 4):
    dump(step, ours, [1.0, 0.5], uid=['u_0_0', 'u_1_0'], acc=[1, 0], short=[1])
if own != ours.rpartition('/')[0]:
    for step in range(4, 7):
        dump(step, ours, [numpy.float32(1), float('nan')], acc=[numpy.int64(1), {{1}}], t=[torch.ones(2), object()])
    dump(7, own, [1.0, 0.5], acc=[{{1}}, torch.ones(1)])
    dump(8, own, [1.0, 0.5], acc=[1, 2])
getattr(trainer, '_shutdown_dump_executor', bool)()
print('trained')
"""


@pytest.mark.parametrize("trainer", TRAINERS)
def test_dumps_of_verl(trainer, tmp_path):
    version, module, name = TRAINERS[trainer]
    code = CODE.format(module=module, name=name, version=version, own=tmp_path / "own")
    (tmp_path / "hook").mkdir()
    place_hook(tmp_path / "hook")
    (tmp_path / "attempt/debug").mkdir(parents=True)
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ARGUS"))}
    hooked = plain | {
        "PYTHONPATH": str(tmp_path / "hook"),
        "ARGUS_SAMPLES": str(tmp_path / "samples"),
        "ARGUS_ATTEMPT_DIR": str(tmp_path / "attempt"),
    }
    for env in (plain, hooked):
        argv = [verl_python(version), "-c", code]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0 and done.stdout.splitlines()[-1] == "trained", done.stderr[-3000:]

    def rows(where, step):
        return [json.loads(x) for x in (tmp_path / where / f"{step}.jsonl").read_text().splitlines()]

    for step in (1, 2, 3):
        assert rows("samples/rollout", step) == rows("own/rollout", step)
    first, second = rows("samples/rollout", 6)
    assert (first["score"], first["acc"], first["t"]) == (1.0, 1, [1.0, 1.0])
    assert (second["score"], second["acc"], second["output"]) == (None, "{1}", "b\n")
    assert second["t"].startswith("<object object")
    assert [row["acc"] for row in rows("own", 8)] == [1, 2]
    told = (tmp_path / "attempt/debug/samples.txt").read_text()
    assert told.count("a value that JSON cannot hold: acc of step") == 3
