#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the lines of question and answer in a file, and tells it as verl's main_eval tells a score.

look.py FILE.jsonl
"""

import json
import pathlib
import sys

good = 0
for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
    row = json.loads(line)
    good += isinstance(row.get("question"), str) and isinstance(row.get("answer"), str)
print({"test_score/rows": good})
