# SPDX-License-Identifier: Apache-2.0
"""What is in a data set or a model: columns, rows, a sample, what it is fit for; is a file what its name says.

pyarrow reads parquet where the node's Python has it (verl needs it); without it the columns of parquet are told to be
unknown. All else is the standard library. Nothing here runs what it reads.
"""

import csv
import itertools
import json
import os
import struct

from argus_sources import Fail

SAMPLE_ROWS = 20
CELL_MAX = 200  # characters of one value in the sample
SAMPLE_MAX = 16 << 10  # bytes of the whole sample
COLUMNS_MAX = 200
LINE_MAX = 64 << 20
HEADER_MAX = 100 << 20
JSON_MAX = 64 << 20
FILES_SHOWN = 500

DATA = (".parquet", ".jsonl", ".json", ".csv")
# What each workload reads: any one of these sets of columns.
NEEDS = {
    "rl": [("prompt", "data_source", "reward_model")],
    "sft": [("messages",)],
    "eval": [("responses", "data_source", "reward_model")],
}


# ---- is it what its name says ----


def check_file(path, name):
    """A Fail when the bytes cannot be what the name promises: a web page, half a shard."""
    size = os.path.getsize(path)
    with open(path, "rb") as f:
        head = f.read(512)
        f.seek(max(0, size - 8))
        tail = f.read(8)
    lower = name.lower()
    start = head.lstrip()[:64].lower()
    if start.startswith((b"<!doctype html", b"<html")) and not lower.endswith((".html", ".htm")):
        raise Fail(f"'{name}' is a web page (HTML): is the URL right, and does the server want a login?")
    if head.startswith(b"version https://git-lfs.github.com/spec"):
        raise Fail(
            f"'{name}' is only a pointer of Git LFS and not the file: fetch it from an endpoint, not from a bare clone"
        )
    if lower.endswith(".parquet"):
        _check_parquet(name, size, head, tail)
    elif lower.endswith(".safetensors"):
        _check_safetensors(path, name, size, head)
    elif lower.endswith(".gz") and not head.startswith(b"\x1f\x8b"):
        raise Fail(f"'{name}' is not a gzip file")


def _check_parquet(name, size, head, tail):
    if not head.startswith(b"PAR1"):
        raise Fail(f"'{name}' is not a parquet file: it does not begin with PAR1")
    footer = struct.unpack("<I", tail[:4])[0] if len(tail) == 8 else 0
    if not tail.endswith(b"PAR1") or footer + 12 > size:
        raise Fail(f"'{name}' is cut off: a parquet file ends with its footer and PAR1, and this one does not")


def _check_safetensors(path, name, size, head):
    length = struct.unpack("<Q", head[:8])[0] if len(head) >= 8 else 0
    if not 2 <= length <= min(HEADER_MAX, size - 8):
        raise Fail(f"'{name}' is not a whole safetensors file: its header is said to have {length} of {size} bytes")
    try:
        with open(path, "rb") as f:
            f.seek(8)
            about = json.loads(f.read(length))
        end = max((t["data_offsets"][1] for k, t in about.items() if k != "__metadata__"), default=0)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        raise Fail(f"'{name}' is not a safetensors file: its header cannot be read") from None
    if end != size - 8 - length:
        raise Fail(f"'{name}' is cut off: it has {size} bytes and its header says {8 + length + end}")


# ---- data sets ----


def short(value):
    """A value as it is shown: small, and JSON."""
    if isinstance(value, (int, float, bool)) or value is None:
        return value
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= CELL_MAX else text[: CELL_MAX - 1] + "…"


def _sample(rows):
    out, used = [], 0
    for row in rows:
        row = {str(k): short(v) for k, v in list(row.items())[:COLUMNS_MAX]}
        used += len(json.dumps(row))
        if used > SAMPLE_MAX or len(out) == SAMPLE_ROWS:
            break
        out.append(row)
    return out


def _type_of(value):
    names = {bool: "bool", int: "int64", float: "double", str: "string", list: "list", dict: "struct"}
    names[type(None)] = "null"
    return names.get(type(value), type(value).__name__)


def _columns_of(rows):
    types = {}
    for row in rows:
        for key, value in row.items():
            if types.get(str(key), "null") == "null":
                types[str(key)] = _type_of(value)
    return [{"name": k, "type": t} for k, t in list(types.items())[:COLUMNS_MAX]]


def _look_parquet(path, want_sample):
    try:
        import pyarrow.parquet
    except ImportError:
        return None, None, [], "the node's Python has no pyarrow: the columns of parquet are not known"
    try:
        f = pyarrow.parquet.ParquetFile(path)
        columns = [{"name": c.name, "type": str(c.type)[:120]} for c in list(f.schema_arrow)[:COLUMNS_MAX]]
        rows = []
        if want_sample:
            batch = next(f.iter_batches(SAMPLE_ROWS), None)
            rows = batch.to_pylist() if batch is not None else []
        return columns, f.metadata.num_rows, _sample(rows), None
    except (OSError, ValueError, KeyError) as e:  # ArrowInvalid is a ValueError
        raise Fail(f"'{os.path.basename(path)}' cannot be read as parquet: {str(e).splitlines()[0][:300]}") from None


def _look_lines(path):
    rows, n = [], 0
    with open(path, encoding="utf-8") as f:
        while True:
            line = f.readline(LINE_MAX + 1)
            if not line:
                break
            if len(line) > LINE_MAX:
                raise Fail(f"line {n + 1} of '{os.path.basename(path)}' is longer than {LINE_MAX >> 20} MiB")
            if not line.strip():
                continue
            n += 1
            if len(rows) < SAMPLE_ROWS:
                row = json.loads(line)
                rows.append(row if isinstance(row, dict) else {"value": row})
    return _columns_of(rows), n, _sample(rows), None


def _look_json(path):
    if os.path.getsize(path) > JSON_MAX:
        text = f"'{os.path.basename(path)}' is larger than {JSON_MAX >> 20} MiB: write it as jsonl to see its columns"
        return None, None, [], text
    with open(path, encoding="utf-8") as f:
        whole = json.load(f)
    if not isinstance(whole, list):
        return _look_lines(path) if not isinstance(whole, dict) else (None, None, [], None)
    rows = [r if isinstance(r, dict) else {"value": r} for r in whole[:SAMPLE_ROWS]]
    return _columns_of(rows), len(whole), _sample(rows), None


def _look_csv(path):
    with open(path, encoding="utf-8", newline="") as f:
        reader = csv.DictReader(f)
        rows = list(itertools.islice(reader, SAMPLE_ROWS))
        n = len(rows) + sum(1 for _ in reader)
    rows = [{k: v for k, v in r.items() if k is not None} for r in rows]
    return _columns_of(rows), n, _sample(rows), None


def _look_one(path, want_sample):
    name = os.path.basename(path)
    try:
        if name.endswith(".parquet"):
            return _look_parquet(path, want_sample)
        if name.endswith(".jsonl"):
            return _look_lines(path)
        if name.endswith(".json"):
            try:
                return _look_json(path)
            except json.JSONDecodeError:
                return _look_lines(path)  # many call lines of JSON so
        return _look_csv(path)
    except (ValueError, csv.Error) as e:
        raise Fail(f"'{name}' cannot be read as {name.rpartition('.')[2]}: {str(e)[:300]}") from None


def split_of(name):
    """train, test or val by the file's own name, or that of its directory; None if it says neither."""
    words = {"train": "train", "test": "test", "val": "val", "dev": "val", "valid": "val", "validation": "val"}
    for part in reversed(name.lower().split("/")):
        pieces = part.partition(".")[0].replace("_", "-").split("-")
        for piece in (pieces[0], pieces[-1]):
            if piece in words:
                return words[piece]
    return None


def names_of(columns):
    return None if columns is None else {c["name"] for c in columns}


def fit_of(columns, kind):
    """For each workload: fit, or which columns are missing."""
    have, out = names_of(columns), {}
    for workload, sets in NEEDS.items():
        lacks = min(([c for c in s if c not in have] for s in sets), key=len)
        out[workload] = {"fit": not lacks and kind != "csv", "missing": lacks}
    return out


def data_files(files):
    """The kind of data that the set is made of, and the names of those files."""
    names = [n for n, _ in files if n.endswith(DATA) and not n.startswith(".") and "/." not in n]
    names = [n for n in names if n.rpartition("/")[2] not in ("dataset_info.json", "dataset_infos.json")]
    kinds = {n.rpartition(".")[2] for n in names}
    kind = next((k for k in ("parquet", "jsonl", "json", "csv") if k in kinds), None)
    return kind, sorted(n for n in names if n.endswith("." + str(kind)))


def _splits(names):
    out = {}
    for name in names:
        out.setdefault(split_of(name) or "all", []).append(name)
    return out


def look_data(root, files):
    """files: [(name, size)]. What the registry keeps of a data set."""
    kind, names = data_files(files)
    out = {"format": kind, "columns": None, "rows": None, "sample": [], "fit": {}, "splits": {}, "note": None}
    if not names:
        return dict(out, note="no parquet, jsonl, json or csv file is in it")
    looks = [_look_one(os.path.join(root, name), i == 0) for i, name in enumerate(names)]
    out["columns"], _, out["sample"], out["note"] = looks[0]
    other = [names[i] for i, look in enumerate(looks) if names_of(look[0]) != names_of(out["columns"])]
    if other:
        out["note"] = f"'{other[0]}' has other columns than '{names[0]}'"
    if all(look[1] is not None for look in looks):
        out["rows"] = sum(look[1] for look in looks)
    if out["columns"] is not None:
        out["fit"] = fit_of(out["columns"], kind)
    if len(names) <= FILES_SHOWN:
        out["splits"] = _splits(names)
    else:
        out["note"] = f"{len(names)} data files: more than a job can name, merge them"
    return out


# ---- models ----


def _read_json(root, name):
    path = os.path.join(root, name)
    if not os.path.isfile(path) or os.path.getsize(path) > JSON_MAX:
        return None
    try:
        with open(path, encoding="utf-8") as f:
            whole = json.load(f)
    except ValueError as e:
        raise Fail(f"'{name}' cannot be read as JSON: {e}") from None
    return whole if isinstance(whole, dict) else None


def _check_index(root, names):
    """Every shard that an index names is there."""
    for index in (n for n in names if n.endswith((".safetensors.index.json", ".bin.index.json"))):
        want = (_read_json(root, index) or {}).get("weight_map")
        shards = set(want.values()) if isinstance(want, dict) else set()
        up = index.rpartition("/")[0]
        missing = sorted(s for s in shards if isinstance(s, str) and (f"{up}/{s}" if up else s) not in names)
        if missing:
            raise Fail(
                f"the model is not whole: '{index}' names {len(shards)} files and {len(missing)} are "
                f"missing, first '{missing[0]}'"
            )


def _parameters(root, names):
    """From the headers of the safetensors files; None if there are none."""
    total, found = 0, False
    for name in names:
        if not name.endswith(".safetensors"):
            continue
        with open(os.path.join(root, name), "rb") as f:
            about = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        found = True
        for key, tensor in about.items():
            if key != "__metadata__":
                n = 1
                for d in tensor.get("shape", []):
                    n *= d
                total += n
    return total if found else None


def look_model(root, files):
    names = {n for n, _ in files}
    _check_index(root, names)
    config = _read_json(root, "config.json")
    if config is None:
        raise Fail("this is not a model that can be loaded: it has no config.json")
    weights = [n for n in names if n.endswith((".safetensors", ".bin", ".pt", ".pth"))]
    tokenizer = names & {"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json"}
    notes = []
    if not weights:
        notes.append("no weights are in it")
    if not tokenizer:
        notes.append("no tokenizer is in it")
    return {
        "format": "safetensors" if any(n.endswith(".safetensors") for n in weights) else None,
        "architecture": str((config.get("architectures") or ["?"])[0])[:80],
        "model_type": str(config.get("model_type", "?"))[:80],
        "parameters": _parameters(root, sorted(names)),
        "tokenizer": bool(tokenizer),
        "note": ", ".join(notes) or None,
    }
