# SPDX-License-Identifier: Apache-2.0
"""A trial whose answer the test gives: what stands in for the job's Python, and answers."""

# In the place of the job's Python: says what the test wrote into `answer`, as soon as it is there. The job itself
# (called with -m) is over at once.
PYTHON = """#!/bin/sh
[ "$1" = -m ] && exit 0
here=$(dirname "$0")
echo run >> "$here/runs"
echo "$PYTHONPATH" > "$here/path"
until [ -e "$here/answer" ]; do sleep 0.1; done
[ "$(cat "$here/answer")" = nothing ] && exit 1
hash=$(sed 's/.*"hash":"\\([0-9a-f]*\\)".*/\\1/' "$2/ask.json")
sed "s/HASH/$hash/" "$here/answer" > "$2/r" && mv "$2/r" "$2/result.json"
"""
PASS = {"hash": "HASH", "ok": True, "findings": [], "seconds": 1, "reward": {"returned": "0.5"}}
FOUND = {"class": "user_code_error", "field": "reward_fn_path", "detail": "'f' raises KeyError", "hint": "run it"}
FAIL = {"hash": "HASH", "ok": False, "findings": [FOUND]}
