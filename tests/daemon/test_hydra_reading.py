# SPDX-License-Identifier: Apache-2.0
"""What src/core/spec/hydra_read.c reads in an override, the real Hydra 1.3 and OmegaConf read too; and what
it shows as the nearest correct spelling, they read."""

import json
import pathlib
import random
import subprocess

import pytest

pytest.importorskip("hydra", reason="hydra-core is not installed")

from hydra.core.override_parser.overrides_parser import OverridesParser  # noqa: E402
from hydra.core.override_parser.types import QuotedString  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from omegaconf.errors import GrammarParseError  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = sorted(ROOT.glob("build*/src/core/hydra_read_tool"), key=lambda p: p.stat().st_mtime)

pytestmark = pytest.mark.skipif(not BUILT, reason="hydra_read_tool is not built")

PARSER = OverridesParser.create()
# enum hydra_fault
FINE, BAD_KEY, BAD_VALUE, SWEEP, NO_CALL, OPEN_NAME = range(6)

KEYS = ["a", "a.b", "+a", "++a.b", "~a", "a/b", "a@b", "a.0", "$a", "a-b", "a b", "a[0]", "é", "a..b", "a.b/c", "-a"]
KEYS += ["a:b", "a.01", " a", "a ", "~a@b", "+++a", "a@", "1", "a.1x", "a/b@c.d"]
PIECES = ["=", "[", "]", "{", "}", ",", "(", ")", "#", "$", "${", "${a.b}", "${}", "'", '"', "\\", "\\\\", "\\'"]
PIECES += ['\\"']
PIECES += ["\\,", "\\=", "\\ ", " ", "  ", "\t", "x", "foo", "1", "-2", "0", "01", "1_0", "1.5", ".5", "5.", "1e-3"]
PIECES += ["e5"]
PIECES += ["inf", "NaN", "true", "null", "None", ":", ": ", "/", "*", "|", "?", "@", "%", "+", "-", ".", "~", "!", "&"]
PIECES += [";", "<", ">", "`", "^", "é", "强化", "\n", "'a b'", '"c"', "choice", "choice(", "range(1,2)", "int("]
PIECES += ["sort("]
PIECES += ["glob(*)", "tag(", "[1,2]", "{a:1}", "f(x)", "a=", "path/to", "s3://b/c", "a@b", "1x", "x1", '{"a": 1}']


def made(rnd):
    key = rnd.choice(KEYS) if rnd.random() < 0.25 else rnd.choice(["a", "a.b", "+x.y_z"])
    value = "".join(rnd.choice(PIECES) for _ in range(rnd.randrange(7)))
    return key + ("=" if rnd.random() < 0.97 else "") + value


def ask(overrides):
    data = b"".join(o.encode() + b"\0" for o in overrides)
    done = subprocess.run([BUILT[-1]], input=data, capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def of_hydra(override):
    """The faults that ours may tell, and the value."""
    try:
        read = PARSER.parse_override(override)
    except Exception as e:  # of several classes, by the part of Hydra that refuses
        said = str(e)
        if "Unknown function" in said:
            return {NO_CALL}, None
        # The arguments of a function are not looked at by ours.
        is_late = "while evaluating" in said or "positional argument follows" in said
        return ({FINE, SWEEP, NO_CALL, OPEN_NAME} if is_late else {BAD_KEY, BAD_VALUE}), None
    if read.is_sweep_override():
        return {SWEEP}, None
    try:
        OmegaConf.update(OmegaConf.create({"k": 1}), "k", read.value())
    except GrammarParseError:
        return {FINE, OPEN_NAME}, read.value()  # ours looks for the end of ${…} alone
    except Exception:
        return {FINE}, read.value()  # a value that is no setting of this k
    return {FINE}, read.value()


def texts(value):
    """None where the value is no text: a number is told apart from its spelling by Hydra alone."""
    value = value if isinstance(value, list) else [value]
    return [v.text if isinstance(v, QuotedString) else v if isinstance(v, str) else None for v in value]


def hold(overrides):
    wrong = []
    for override, ours in zip(overrides, ask(overrides), strict=True):
        faults, value = of_hydra(override)
        if ours["fault"] not in faults:
            wrong.append((override, ours["fault"], faults))
        elif ours["fault"] == FINE and value is not None and ours.get("texts") is not None:
            theirs = texts(value)
            fits = len(theirs) == len(ours["texts"])
            if not fits or any(t not in (None, o) for t, o in zip(theirs, ours["texts"], strict=True)):
                wrong.append((override, ours["texts"], theirs))
        if ours["near"] is not None and of_hydra(ours["near"])[0].isdisjoint({FINE}):
            wrong.append((override, "near", ours["near"]))
    assert not wrong, wrong[:10]


@pytest.mark.parametrize("seed", [1, 2])
def test_both_read_alike(seed):
    rnd = random.Random(seed)
    hold([made(rnd) for _ in range(400)])


@pytest.mark.nightly
def test_both_read_alike_ten_thousand_times():
    rnd = random.Random()
    hold([made(rnd) for _ in range(10_000)])


def test_what_people_write_has_a_spelling_that_hydra_reads():
    written = {
        "trainer.experiment_name=lr=1e-6 run": "lr=1e-6 run",
        "trainer.experiment_name=qwen#2": "qwen#2",
        "trainer.project_name=数学-实验": "数学-实验",
        "trainer.experiment_name=it's (new)": "it's (new)",
        "data.prompt_key= [x": None,
        "trainer.logger=console,tensorboard": ["console", "tensorboard"],
        "model.path=/m/step=5/hf": "/m/step=5/hf",
    }
    for (override, meant), answer in zip(written.items(), ask(written), strict=True):
        assert answer["fault"] != FINE and answer["near"], (override, answer)
        value = PARSER.parse_override(answer["near"]).value()
        if meant is not None:
            assert (texts(value) if isinstance(meant, list) else texts(value)[0]) == meant, answer
