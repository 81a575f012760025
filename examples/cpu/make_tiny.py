#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a model and data that a CPU can train within minutes, without any network.

    make_tiny.py [--seed N] [--bytes] MODEL_DIR DATA_DIR

MODEL_DIR  a Qwen2 with two layers and random weights, its byte-level tokenizer and chat template
DATA_DIR   rl_train, rl_val (prompt, reward_model: answer with digits), sft_train, sft_val (messages: sums of two
           digits) and eval (four recorded answers per sum), as parquet in the columns that verl reads
"""

import argparse
import json
import os
import random
import string

import pandas
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, GenerationConfig, Qwen2Config, Qwen2ForCausalLM

END, START, STOP = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# every digit and every other sign is a word of its own, letters stay together
WORDS = r"\p{N}|[^\r\n\p{L}\p{N}]?\p{L}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
SPACE, NEWLINE = "\u0120", "\u010a"  # as byte-level tokenizers write them
DIGITS = string.digits


def make_tokenizer(path, has_bytes):
    """The file layout of Qwen2's repositories, which transformers 4 and 5 both load. has_bytes: it knows any text."""
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(WORDS), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = [chr(c) for c in range(33, 127)] + [SPACE, NEWLINE]
    if has_bytes:
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=len(alphabet) + 32, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(["system", "user", "assistant"] * 50, trainer)
    tokenizer.add_special_tokens([END, START, STOP])
    tokenizer.save(os.path.join(path, "tokenizer.json"))
    tokenizer.model.save(path)
    plain = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": True}
    special = {str(tokenizer.token_to_id(t)): {"content": t, **plain} for t in (END, START, STOP)}
    config = {
        "tokenizer_class": "Qwen2Tokenizer",
        "model_max_length": 512,
        "bos_token": None,
        "eos_token": STOP,
        "pad_token": END,
        "unk_token": None,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "additional_special_tokens": [START, STOP],
        "added_tokens_decoder": special,
        "chat_template": TEMPLATE,
    }
    with open(os.path.join(path, "tokenizer_config.json"), "w") as f:
        json.dump(config, f, indent=2)
    return AutoTokenizer.from_pretrained(path)


def make_model(path, seed, has_bytes):
    os.makedirs(path, exist_ok=True)
    tokenizer = make_tokenizer(path, has_bytes)
    torch.manual_seed(seed)
    ids = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    ids["bos_token_id"] = tokenizer.pad_token_id
    config = Qwen2Config(
        vocab_size=-(-len(tokenizer) // 8) * 8,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        initializer_range=0.05,
        **ids,
    )
    model = Qwen2ForCausalLM(config).float()
    model.save_pretrained(path, safe_serialization=True)
    GenerationConfig(**ids).save_pretrained(path)
    return sum(p.numel() for p in model.parameters())


def rl_row(index, split, source, question, truth):
    return {
        "data_source": source,
        "prompt": [{"role": "user", "content": question}],
        "ability": "tiny",
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {"index": index, "split": split},
    }


def sft_row(question, answer):
    talk = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return {"messages": talk, "question": question, "answer": answer}


def eval_row(index, a, b):
    row = rl_row(index, "test", "tiny/sums", f"{a}+{b}=", str(a + b))
    return {**row, "responses": [str(a + b), str(a + b + 1), "0" if a + b else "1", "?"]}


def make_data(path, seed):
    os.makedirs(path, exist_ok=True)
    chance = random.Random(seed)
    sums = [(a, b) for a in range(10) for b in range(10)]
    chance.shuffle(sums)
    train, val = sums[:80], sums[80:] + sums[:12]
    tables = {"eval": [eval_row(i, a, b) for i, (a, b) in enumerate(val)]}
    for split, pairs in (("train", train * 8), ("val", val)):
        rows = [rl_row(i, split, "tiny/digits", f"{a}{b}", DIGITS) for i, (a, b) in enumerate(pairs)]
        tables[f"rl_{split}"] = rows
        tables[f"sft_{split}"] = [sft_row(f"{a}+{b}=", str(a + b)) for a, b in pairs]
    for name, rows in tables.items():
        pandas.DataFrame(rows).to_parquet(os.path.join(path, name + ".parquet"))
    return {name: len(rows) for name, rows in tables.items()}


def main():
    ap = argparse.ArgumentParser(description="a tiny model and data for it")
    ap.add_argument("model_dir")
    ap.add_argument("data_dir")
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--bytes", action="store_true", help="a tokenizer for text of any language, not of ASCII alone")
    a = ap.parse_args()
    print(f"model: {make_model(a.model_dir, a.seed, a.bytes)} parameters in {a.model_dir}")
    for name, rows in sorted(make_data(a.data_dir, a.seed).items()):
        print(f"data: {rows} rows in {os.path.join(a.data_dir, name)}.parquet")


if __name__ == "__main__":
    main()
