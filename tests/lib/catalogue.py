# SPDX-License-Identifier: Apache-2.0
"""The sentences of argusd's catalogue (src/base/catalogue), for what names a code and its arguments alone."""

import pathlib
import re

ROWS = pathlib.Path(__file__).resolve().parents[2] / "src" / "base" / "catalogue"
TEXT = r'"((?:[^"\\]|\\.)*)"'
ROW = re.compile(rf'\bSAY(?:_FIX)?\(\s*"(\w+)",\s*{TEXT},\s*{TEXT}(?:,\s*{TEXT})?')
HOLE = re.compile(r"(?<!\$)\{(\w+)(\|\|)?\}")


def rows(family):
    for code, english, _, fix in ROW.findall((ROWS / f"message_{family}.c").read_text()):
        yield code, english, fix


def said(family, code, args):
    """(sentence, fix) in English, of the first row whose arguments are all there."""
    for of, english, fix in rows(family):
        if of == code and all(key in args for key, _ in HOLE.findall(english)):
            return tuple(HOLE.sub(lambda m: "" if m[2] else str(args.get(m[1], "")), text) for text in (english, fix))
    raise AssertionError(f"the family '{family}' has no row '{code}' with the arguments {sorted(args)}")
