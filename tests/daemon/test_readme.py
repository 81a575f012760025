# SPDX-License-Identifier: Apache-2.0
"""The README from top to bottom: what a command or a spec names was made by a command further up."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Which word of a command becomes a name that others use.
MAKERS = [r"--name (\S+)", r"--as (\S+)", r"argus project add (\S+)", r"argus user add (\S+)"]
MAKERS += [r"argus secret set (\S+)"]


def code(path):
    """(line number, text) of the indented and the fenced lines, without their comments."""
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield number, re.sub(r"\s#.*", "", line)


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_nothing_is_used_before_it_is_made(name):
    lines = list(code(ROOT / name))
    made = {}
    for number, text in lines:
        for maker in MAKERS:
            for word in re.findall(maker, text):
                made.setdefault(word, number)
    assert {"gsm8k", "gsm8k-verl", "qwen-0.5b", "rlhf", "alice"} <= made.keys(), made
    for word, at in made.items():
        use = re.compile(rf"(?<![\w/.@-]){re.escape(word)}(?![\w.-])")
        first = next(number for number, text in lines if use.search(text))
        assert first == at, f"{name}:{first} uses '{word}', which line {at} makes"


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_presets_and_examples_are_there(name):
    for number, text in code(ROOT / name):
        for preset in re.findall(r"--preset (\S+)|argus preset show (\S+)", text):
            word = preset[0] or preset[1]
            assert (ROOT / "lib/presets" / f"{word}.yaml").exists(), f"{name}:{number}: {word}"
        for path in re.findall(r"(?<![\w/])examples/\S+\.(?:yaml|py)", text):
            assert (ROOT / path).exists(), f"{name}:{number}: {path}"
