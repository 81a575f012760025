#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns lines of question and answer into the conversations that verl's SFT reads.

    prepare.py --local_dataset_path RAW --local_save_dir OUT        as a step that prepares calls it

RAW is a .jsonl file or a directory of them. OUT gets train.parquet and val.parquet; every fifth line is held out.
"""

import argparse
import json
import pathlib

import pyarrow
import pyarrow.parquet

TIMES = 8  # so often each line to train on stands in the set: it is a small one
BATCH = 32  # the validation set has one batch at least


def lines_of(raw):
    files = [raw] if raw.is_file() else sorted(raw.rglob("*.jsonl"))
    return [json.loads(line) for f in files for line in f.read_text().splitlines() if line.strip()]


def row_of(line):
    talk = [{"role": "user", "content": line["question"]}, {"role": "assistant", "content": line["answer"]}]
    return {"messages": talk, **line}


def split(lines):
    held_out = lines[::5]
    train = [line for i, line in enumerate(lines) if i % 5]
    return {"train": train * TIMES, "val": held_out + train[: max(0, BATCH - len(held_out))]}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--local_dataset_path", type=pathlib.Path, required=True)
    ap.add_argument("--local_save_dir", type=pathlib.Path, required=True)
    a = ap.parse_args()
    for name, lines in split(lines_of(a.local_dataset_path)).items():
        rows = [row_of(line) for line in lines]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), a.local_save_dir / f"{name}.parquet")
        print(f"{name}: {len(rows)} rows")


if __name__ == "__main__":
    main()
