# SPDX-License-Identifier: Apache-2.0
"""argus diagnose --log: any log, without a server."""

import bz2
import gzip
import json
import lzma
import os
import pickle
import random
import shutil
import subprocess

import programs
import pytest

pytestmark = pytest.mark.skipif(not programs.PROGRAMS, reason="argus is not built")

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOGS = os.path.join(HERE, "findings")
RULES = os.path.join(os.path.dirname(HERE), "rules")

HEAD = "family: x\nrules:\n  - {id: a, "

CASES = [
    ("gpu_oom", "gpu_oom", "CUDA out of memory", 5),
    ("host_oom_told_late", "host_oom", "oom-kill", 6),
    ("reward", "user_code_error", "KeyError: 'algebra'", 6),
    ("dead_rank", "user_code_error", "parts must not be empty", 4),
    ("torn_checkpoint", "checkpoint_error", "Ran out of input", 6),
    ("wrapper_only", "unknown", "exitcode: 1", 1),
    ("healthy_scary", "none", None, None),
]


def argus(*args, stdin=None):
    got = subprocess.run([programs.PROGRAMS["argus"], "diagnose", *args], input=stdin, capture_output=True, text=True)
    return got.returncode, got.stdout, got.stderr


@pytest.mark.parametrize("name,word,quote,line", CASES)
def test_logs(name, word, quote, line):
    code, out, err = argus("--log", os.path.join(LOGS, name + ".txt"), "-o", "json")
    assert code == 0, err
    got = json.loads(out)
    assert got["class"] == word
    if quote is None:
        assert got["evidence"] == []
        return
    first = got["evidence"][0]
    assert quote in first["text"]
    assert first["line"] == line
    with open(os.path.join(LOGS, name + ".txt"), "rb") as f:
        f.seek(first["offset"])
        assert f.readline().decode().strip() == first["text"]


def test_standard_input_and_people():
    code, out, err = argus("--log", "-", stdin="step\nMemoryError\n")
    assert code == 0, err
    assert "host_oom" in out
    assert "line 2: MemoryError" in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_exit_code_is_a_fact():
    code, out, _ = argus("--log", "-", "--exit-code", "3", "-o", "json", stdin="nothing to see\n")
    assert code == 0
    assert json.loads(out)["class"] == "unknown"


def test_wrong_use():
    assert argus()[0] == 2
    code, _, err = argus("--log", "/nowhere/at/all")
    assert code != 0
    assert "/nowhere/at/all" in err


PACKED = [
    ("gz", gzip.compress(b"MemoryError\n", mtime=0), "zcat", "gzip"),
    ("xz", lzma.compress(b"MemoryError\n"), "xzcat", "xz"),
    ("bz2", bz2.compress(b"MemoryError\n"), "bzcat", "bzip2"),
    ("elf", b"\x7fELF\2\1\1", "is a program and no log", None),
    ("pickle", pickle.dumps({"step": list(range(1000))}), "is not a text log", None),
    ("random", random.Random(1).randbytes(5000), "is not a text log", None),
]


@pytest.mark.parametrize("end,content,said,unpacker", PACKED, ids=[p[0] for p in PACKED])
def test_what_is_no_text_is_not_called_healthy(tmp_path, end, content, said, unpacker):
    path = tmp_path / f"driver.log.{end}"
    path.write_bytes(content)
    code, out, err = argus("--log", str(path), "-o", "json")
    if unpacker and shutil.which(unpacker):
        assert code == 0, err
        assert json.loads(out)["class"] == "host_oom"
    else:
        assert (code, out) == (2, "") and said in err and str(path) in err
    argv = [programs.PROGRAMS["argus"], "diagnose", "--log", "-", "-o", "json"]
    got = subprocess.run(argv, input=content, capture_output=True)  # a pipe, which is read once
    if unpacker and shutil.which(unpacker):
        assert got.returncode == 0, got.stderr
        assert json.loads(got.stdout)["class"] == "host_oom"
    else:
        assert got.returncode == 2 and said.encode() in got.stderr
    no_unpacker = {**os.environ, "PATH": str(tmp_path)}
    got = subprocess.run(argv, input=content, capture_output=True, env=no_unpacker)
    assert got.returncode == 2 and said.encode() in got.stderr


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 300000])
def test_a_pipe_gives_every_byte_once(length):
    """What was read to see whether it is packed is part of the log; bytes may come one at a time."""
    text = "x" * length + "\nMemoryError\n"
    argv = [programs.PROGRAMS["argus"], "diagnose", "--log", "-", "-o", "json"]
    p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for part in (text[:1], text[1:9], text[9:]):
        p.stdin.write(part)
        p.stdin.flush()
    got = json.loads(p.communicate()[0])
    assert (p.returncode, got["class"], got["bytes"]) == (0, "host_oom", len(text))
    assert got["evidence"][0]["offset"] == length + 1


@pytest.mark.skipif(not shutil.which("gzip"), reason="there is no gzip here")
def test_a_torn_archive_is_read_as_far_as_it_goes(tmp_path):
    noise = "".join(f"line {i * 7919 % 1000}\n" for i in range(20000))
    whole = gzip.compress(("MemoryError\n" + noise).encode(), mtime=0)
    (tmp_path / "torn.gz").write_bytes(whole[: len(whole) // 2])
    code, out, err = argus("--log", str(tmp_path / "torn.gz"), "-o", "json")
    assert code == 0, err
    assert json.loads(out)["class"] == "host_oom"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_other_encodings(tmp_path, encoding):
    path = tmp_path / "driver.log"
    text = "开始\r\n" * 2 + "this is how the log of a run begins on Windows\r\nMemoryError: é\r\n"
    path.write_bytes(text.encode(encoding))
    code, out, err = argus("--log", str(path), "-o", "json")
    assert code == 0, err
    got = json.loads(out)
    first, plain = got["evidence"][0], {"utf-16": "utf-16-le", "utf-8-sig": "utf-8"}.get(encoding, encoding)
    assert (got["class"], first["text"], first["line"]) == ("host_oom", "MemoryError: é", 4)
    assert path.read_bytes()[first["offset"] :] == "MemoryError: é\r\n".encode(plain)
    assert got["bytes"] == path.stat().st_size


def test_an_empty_log_says_nothing():
    code, out, err = argus("--log", "-", stdin="")
    assert (code, out) == (2, "") and "is empty" in err and "--exit-code" in err
    assert json.loads(argus("--log", "-", "--exit-code", "3", "-o", "json", stdin="")[1])["class"] == "unknown"
    assert json.loads(argus("--log", "-", "--exit-code", "0", "-o", "json", stdin="")[1])["class"] == "none"


def test_wrong_places(tmp_path):
    (tmp_path / "logs").mkdir()
    assert "is a directory: name a file of it" in argus("--log", str(tmp_path))[2]
    log = tmp_path / "logs/driver.log"
    log.write_text("MemoryError\n")
    assert f"a job's log is {log}" in argus("--log", str(tmp_path))[2]
    assert f"is a file: argus diagnose --log {log}" in argus(str(log))[2]
    for wrong, said in (
        (["x", "--log", str(log)], "either a job or a log"),
        (["--log", str(log), "--attempt", "2"], "--attempt is of a job"),
        (["--log", str(log), "--exit-code", "300"], "a number from 0 to 255"),
    ):
        code, out, err = argus(*wrong)
        assert (code, out) == (2, "") and said in err


def test_rules_of_a_directory(tmp_path):
    code, out, err = argus("--log", os.path.join(LOGS, "gpu_oom.txt"), "--rules", RULES, "-o", "json")
    assert code == 0, err
    assert json.loads(out)["rule"] == "gpu-out-of-memory"
    (tmp_path / "a.yaml").write_text(
        "family: mine\nrules:\n  - id: mine\n    class: data_error\n    pattern: my own trouble\n    advice: do it\n"
        "    samples: {match: [my own trouble], miss: [none]}\n"
    )
    code, out, err = argus("--log", "-", "--rules", str(tmp_path), "-o", "json", stdin="my own trouble\n")
    assert code == 0, err
    assert json.loads(out)["rule"] == "mine"


@pytest.mark.parametrize(
    "text,said",
    [
        ("family: x\nrules:\n  - {id: a}\n", "a.yaml:3"),
        (HEAD + "pattern: '(abc', role: benign, samples: {match: [abcdef]}}\n", "'a.pattern'"),
        (HEAD + "pattern: abcdef, role: benign, samples: {match: [xyz]}}\n", ": 'a': the sample 'xyz' is not matched"),
    ],
)
def test_bad_rules(tmp_path, text, said):
    (tmp_path / "a.yaml").write_text(text)
    code, _, err = argus("--log", "-", "--rules", str(tmp_path), stdin="")
    assert code != 0
    assert said in err


def test_the_page_is_made_from_the_rules():
    with open(os.path.join(os.path.dirname(HERE), "docs", "findings.md")) as f:
        page = f.read()
    same = argus("--list-rules")[1] == page
    assert same, "make it anew: argus diagnose --list-rules > docs/findings.md"


def test_score_tool(tmp_path):
    cases = tmp_path / "cases.jsonl"
    oom = "x\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    rows = [
        {"id": "a", "label": "gpu_oom", "excerpt": oom, "root_cause": "the GPU's memory was full"},
        {"id": "b", "label": "none", "excerpt": "all is well\n", "root_cause": ""},
        {"id": "c", "label": "disk_full", "excerpt": oom, "primary": "x"},
    ]
    cases.write_text("\n".join(json.dumps(r) for r in rows) + "\nbroken\n[1]\n")
    tool = os.path.join(os.path.dirname(HERE), "tools", "diagnose-score")
    env = dict(os.environ, ARGUS_BIN=os.path.dirname(programs.PROGRAMS["argus"]))
    got = subprocess.run([tool, str(cases)], capture_output=True, text=True, env=env)
    assert got.returncode == 0, got.stderr
    assert got.stdout.splitlines()[-1] == "top-1: 66.7 % primary-line: 66.7 %"
    assert got.stdout.splitlines()[-2] == "top-2: 66.7 %, a second in 0.0 %"
    assert got.stderr.count("left out") == 2
