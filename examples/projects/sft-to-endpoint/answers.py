#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a model each question of a file, and writes the answers as verl's main_eval reads them.

answers.py MODEL_DIR QUESTIONS.jsonl        writes output/answers.parquet in the directory of the job
"""

import json
import os
import pathlib
import sys

import pyarrow
import pyarrow.parquet
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

NEW_TOKENS = 8


def answer(model, tokenizer, question):
    asked = [{"role": "user", "content": question}]
    text = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
    tokens = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        made = model.generate(**tokens, max_new_tokens=NEW_TOKENS, do_sample=False)
    return tokenizer.decode(made[0][tokens["input_ids"].shape[1] :], skip_special_tokens=True)


def main():
    home, questions = sys.argv[1], pathlib.Path(sys.argv[2])
    tokenizer = AutoTokenizer.from_pretrained(home)
    model = AutoModelForCausalLM.from_pretrained(home).float().eval()
    rows = []
    for line in map(json.loads, questions.read_text().splitlines()):
        rows.append(
            {
                "data_source": "sums",
                "prompt": [{"role": "user", "content": line["question"]}],
                "reward_model": {"style": "rule", "ground_truth": line["answer"]},
                "responses": [answer(model, tokenizer, line["question"])],
            }
        )
    out = pathlib.Path(os.environ["ARGUS_ATTEMPT_DIR"]).parents[1] / "output"
    out.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), out / "answers.parquet")
    print(f"{len(rows)} answers")


if __name__ == "__main__":
    main()
