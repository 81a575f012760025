# SPDX-License-Identifier: Apache-2.0
"""Turns a registered data set into one that verl reads: the entrypoint of a preparing job, placed by argusd.

    argus_prepare.py ORDER         ORDER is JSON, made by argusd (registry_prepare.c)

Either with a preparer of ours (`gsm8k`: rows of question and answer, the answer's number behind "####"), or with a
script such as those of verl's examples/data_preprocess, which is run unchanged: it is told by the options that it
has (--local_dataset_path, --local_save_dir, --local_dir) where the raw files are and where to write. What it wrote is
checked, looked at and renamed to its place as an import's files are. Needs pyarrow, as verl does.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import argus_import
import argus_look
from argus_sources import Fail, Item

INSTRUCTION = 'Let\'s think step by step and output the final answer after "####".'
HELD_OUT = 20  # one row of so many, when the raw set has no test split
OPTIONS = {"--local_dataset_path": "input", "--local_save_dir": "output", "--local_dir": "output"}


def say(text):
    argus_import.say(text)


def need_pyarrow():
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise Fail(f"'{sys.executable}' has no pyarrow: name a Python that has it with --python") from None
    return pyarrow


# ---- rows of a raw set ----


def rows_of(path):
    name = os.path.basename(path)
    try:
        if name.endswith(".parquet"):
            import pyarrow.parquet

            for batch in pyarrow.parquet.ParquetFile(path).iter_batches(1000):
                yield from batch.to_pylist()
        elif name.endswith(".csv"):
            import csv

            with open(path, encoding="utf-8", newline="") as f:
                yield from csv.DictReader(f)
        else:
            with open(path, encoding="utf-8") as f:
                text = f.read(1)
                f.seek(0)
                yield from json.load(f) if text == "[" else (json.loads(line) for line in f if line.strip())
    except (ValueError, OSError) as e:
        raise Fail(f"'{name}' cannot be read: {str(e)[:300]}") from None


def raw_splits(root, single):
    """{split: [path]} of the raw set."""
    if single:
        return {"all": [root]}
    files = []
    for at, _, names in os.walk(root):
        files += [(os.path.relpath(os.path.join(at, n), root), 0) for n in names]
    _, names = argus_look.data_files(files)
    out = {}
    for name in names:
        out.setdefault(argus_look.split_of(name) or "all", []).append(os.path.join(root, name))
    if not out:
        raise Fail("the data set holds no parquet, jsonl, json or csv file")
    return out


# ---- gsm8k ----


def gsm8k_row(row, split, index, where):
    question, answer = row.get("question"), row.get("answer")
    if not isinstance(question, str) or not isinstance(answer, str):
        raise Fail(f"row {index} of '{where}' has no text 'question' and 'answer', but {sorted(map(str, row))[:20]}")
    found = re.search(r"#### *(-?[0-9.,]+)", answer)
    if not found:
        raise Fail(f"row {index} of '{where}': its answer does not end in '#### NUMBER'")
    return {
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "user", "content": question + " " + INSTRUCTION}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": found.group(1).replace(",", "")},
        "extra_info": {"split": split, "index": index, "answer": answer, "question": question},
    }


def write_rows(rows, path):
    pyarrow = need_pyarrow()
    if not rows:
        raise Fail(f"nothing is left for '{os.path.basename(path)}': the raw set is too small")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    say(f"{os.path.basename(path)}: {len(rows)} rows")


def prepare_gsm8k(order, made):
    need_pyarrow()
    splits = raw_splits(order["input"], order.get("single"))
    train = splits.get("train") or splits.get("all") or []
    test = splits.get("test") or splits.get("val") or []
    rows = {"train": [(r, p) for p in train for r in rows_of(p)], "test": [(r, p) for p in test for r in rows_of(p)]}
    if not test:
        whole = rows["train"]
        rows["test"] = whole[::HELD_OUT] if len(whole) > 1 else []
        rows["train"] = [r for i, r in enumerate(whole) if i % HELD_OUT]
        say(f"the raw set has no test split: every {HELD_OUT}th row is held out")
    for split, all_rows in rows.items():
        done = [gsm8k_row(r, split, i, os.path.basename(p)) for i, (r, p) in enumerate(all_rows)]
        write_rows(done, os.path.join(made, split + ".parquet"))


# ---- a script ----


def prepare_script(order, made):
    script = os.path.realpath(order["script"])
    if not argus_import.is_under(script, [os.path.realpath(r) for r in order["roots"]]):
        raise Fail(
            f"'{order['script']}' leads to '{script}', which lies under none of the directories that you may use"
        )
    try:
        with open(script, encoding="utf-8") as f:
            text = f.read(1 << 20)
    except (OSError, ValueError) as e:
        raise Fail(f"'{order['script']}' cannot be read: {e}") from None
    places = {"input": order["input"], "output": made}
    argv = [sys.executable, script]
    for option, place in OPTIONS.items():
        known = re.search(re.escape(option) + r"\b", text)
        if known and not (option == "--local_dir" and "--local_save_dir" in argv):
            argv += [option, places[place]]
    if made not in argv and not order.get("args"):
        raise Fail(
            f"'{script}' has neither --local_save_dir nor --local_dir: say with --arg where it writes, {{output}}"
        )
    argv += [a.replace("{input}", order["input"]).replace("{output}", made) for a in order.get("args") or []]
    say("runs " + " ".join(argv))
    env = dict(os.environ, ARGUS_DATA_INPUT=order["input"], ARGUS_DATA_OUTPUT=made)
    env["HF_DATASETS_CACHE"] = os.path.join(order["staging"], "cache")  # goes with the rest
    code = subprocess.call(argv, cwd=made, env=env, stdin=subprocess.DEVNULL)
    if code:
        raise Fail(f"'{os.path.basename(script)}' ended with {code}: its log is above")


# ---- all ----


class Prepare(argus_import.Import):
    def run(self):
        os.makedirs(self.report, exist_ok=True)
        kept = argus_import.read_json(os.path.join(self.staging, "result.json"))
        if kept and os.path.isdir(self.goal):
            return kept
        if os.path.lexists(self.goal):
            raise Fail(f"something is at '{self.goal}' already")
        shutil.rmtree(self.data, ignore_errors=True)  # a half one of an attempt before
        os.makedirs(self.data)
        self.pin, self.phase = None, "preparing"
        self.progress(now=True)
        (prepare_gsm8k if self.order["with"] == "gsm8k" else prepare_script)(self.order, self.data)
        rows = self.gather()
        self.check_quota(sum(r["size"] for r in rows))
        about = self.look(rows, self.data)
        self.phase = "done"
        result = self.finish(rows, about)
        self.progress(now=True)
        return result

    def gather(self):
        rows = []
        for at, dirs, names in os.walk(self.data):
            dirs[:] = [d for d in dirs if d != "__pycache__"]
            for name in sorted(names):
                rows.append(self.take(os.path.relpath(os.path.join(at, name), self.data)))
        if not any(r["path"].endswith(".parquet") for r in rows):
            raise Fail("nothing was written: no parquet file is there")
        return rows

    def take(self, name):
        path = os.path.join(self.data, name)
        if os.path.islink(path) or not os.path.isfile(path):
            raise Fail(f"'{name}' is not a plain file")
        argus_look.check_file(path, name)
        hashes = argus_import.Hashes(Item(name))
        with open(path, "rb") as f:
            for data in iter(lambda: f.read(argus_import.CHUNK), b""):
                hashes.add(data)
            os.fsync(f.fileno())
        row = {"path": name, "size": hashes.n, "sha256": hashes.sha.hexdigest()}
        self.count(row)
        return row


if __name__ == "__main__":
    sys.exit(argus_import.main(sys.argv, Prepare))
