# SPDX-License-Identifier: Apache-2.0
"""What src/core/verl/hydra.c writes, the real Hydra and OmegaConf read back byte for byte."""

import json
import pathlib
import subprocess
import sys

import pytest

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")
pytest.importorskip("hydra", reason="hydra-core is not installed")

from hydra.core.override_parser.overrides_parser import OverridesParser  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = sorted(ROOT.glob("build*/src/core/hydra_quote_tool"), key=lambda p: p.stat().st_mtime)

pytestmark = pytest.mark.skipif(not BUILT, reason="hydra_quote_tool is not built")

PARSER = OverridesParser.create()

# Pieces on which the two grammars turn, among any text that a value can hold.
pieces = st.sampled_from(
    ["\\", "\\\\", "'", '"', "${", "}", "$", "{", "[", "]", "(", ")", ",", ":", "=", " ", "\t", "\n", "\r", "~", "+"]
    + ["@", "#", "%", "null", "true", "1", "1e3", "nan", "???", "choice(1,2)", "range(3)", "a.b", "é"]
)
texts = st.one_of(
    st.lists(pieces, max_size=12).map("".join),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40),
).filter(lambda s: s != "???")


def quote(values: list[bytes], *args: str) -> list[bytes]:
    data = b"".join(v + b"\0" for v in values)
    done = subprocess.run([BUILT[-1], *args], input=data, capture_output=True, check=True)
    return done.stdout.split(b"\0")[:-1]


def read(answer: bytes):
    """The value of 'k' in the config, as verl's code would see it."""
    assert answer[:1] == b"+", answer
    override = PARSER.parse_override(answer[1:].decode())
    config = OmegaConf.create({"k": None})
    OmegaConf.update(config, override.key_or_group, override.value(), merge=True)
    return OmegaConf.to_container(config, resolve=True)["k"]


@settings(max_examples=150, deadline=None)
@given(st.lists(texts, min_size=1, max_size=40))
def test_every_text_comes_back(values):
    answers = quote([v.encode() for v in values])
    assert [read(a) for a in answers] == values


@settings(max_examples=100, deadline=None)
@given(st.lists(texts, min_size=1, max_size=5))
def test_every_list_comes_back(values):
    (answer,) = quote([v.encode() for v in values], "list")
    assert read(answer) == values


def test_every_character_below_256_comes_back():
    values = [f"{a}{chr(i)}{b}" for i in range(1, 256) for a, b in [("", ""), ("x", ""), ("", "x"), ("\\", "'")]]
    answers = quote([v.encode() for v in values])
    assert [read(a) for a in answers] == values


@pytest.mark.parametrize("value", [b"???", b"\xff", b"a\xe2\x82", b"\xed\xa0\x80"])
def test_what_cannot_be_said_is_refused(value):
    (answer,) = quote([value])
    assert answer.startswith(b"-"), answer


def test_a_whole_hydra_program_sees_the_value(tmp_path):
    """Through argv and @hydra.main, working directory and all, and not only through the parser."""
    program = tmp_path / "program.py"
    program.write_text(
        "import hydra, json\n"
        "@hydra.main(config_path=None, config_name='c', version_base=None)\n"
        "def main(cfg):\n"
        "    print(json.dumps({'k': cfg.k}))\n"
        "from hydra.core.config_store import ConfigStore\n"
        "ConfigStore.instance().store('c', {'k': ''})\n"
        "main()\n"
    )
    value = "it's ${x} \\${y} \\\\' \"q\"\n\ttab, [a]={b}: é $HOME \\"
    (answer,) = quote([value.encode()])
    assert answer[:1] == b"+"
    run_dir = f"hydra.run.dir='{tmp_path}'"
    done = subprocess.run(
        [sys.executable, program, answer[1:], run_dir], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["k"] == value
