# SPDX-License-Identifier: Apache-2.0
"""The import tool by itself: local paths and HTTP, good and bad."""

import hashlib
import json
import os
import re
import shutil
import signal
import threading

import pytest
from fakeray import wait_for
from fileserver import FileServer
from importing import Bed, hash_of, parquet_like, put_files, tree_of
from smalldisk import small_disk

ROWS = [{"question": f"{i} + {i}?", "answer": f"#### {2 * i}"} for i in range(40)]
LINES = "".join(json.dumps(r) + "\n" for r in ROWS).encode()


@pytest.fixture
def bed(tmp_path):
    return Bed(tmp_path)


# ---- a path ----


def test_a_directory_is_copied_whole(bed):
    files = {"train.jsonl": LINES, "sub/test.jsonl": LINES[: LINES.index(b"\n") + 1], "README.md": b"# read me\n"}
    put_files(bed.root / "raw", files)
    result = bed.good(bed.root / "raw")
    assert tree_of(bed.goal) == files
    assert result["hash"] == hash_of(files) and result["files"] == 3 and result["path"] == str(bed.goal)
    about = result["about"]
    assert about["format"] == "jsonl" and about["rows"] == 41
    assert about["columns"] == [{"name": "question", "type": "string"}, {"name": "answer", "type": "string"}]
    assert about["splits"] == {"train": ["train.jsonl"], "test": ["sub/test.jsonl"]}
    assert len(about["sample"]) == 1 and about["sample"][0] == ROWS[0]
    assert about["fit"]["sft"] == {"fit": False, "missing": ["messages"]}
    assert tree_of(bed.root / "raw") == files


def test_a_disk_that_is_full_keeps_nothing_of_it(bed):
    """Told before, where the sizes tell it; or in the middle, small files take a whole block each; or by the disk."""
    large, small = bed.home / "large", bed.home / "small"
    for place, count, data in ((large, 4, LINES * 1000), (small, 4000, LINES[:40])):
        place.mkdir()
        for n in range(count):
            (place / f"{n}.jsonl").write_bytes(data)
    allow = {"roots": [str(bed.home)]}
    with small_disk(bed.home / "disk", "20m") as disk:
        full = Bed(disk)
        assert "no room on the shared root: it needs" in full.bad(large, **allow)
        assert re.search(r"no room on the shared root: '\d+.jsonl' needs", full.bad(small, **allow))
        for n in range(1, 4):
            (large / f"{n}.jsonl").unlink()
        full.good(large, **allow)
    with small_disk(bed.home / "few", "20m,nr_inodes=200") as disk:
        assert "no room is left on the shared root" in Bed(disk).bad(small, **allow)


def test_a_file_is_used_where_it_is(bed):
    path = bed.root / "train.jsonl"
    path.write_bytes(LINES)
    result = bed.good(path, how="in_place")
    assert result["path"] == str(path) and result["hash"] == hash_of({"train.jsonl": LINES})
    assert not bed.goal.exists() and path.read_bytes() == LINES
    assert len(result["about"]["sample"]) == 20


def test_what_was_uploaded_is_moved(bed):
    upload = bed.root / "upload"
    upload.mkdir()
    (upload / "train.jsonl").write_bytes(LINES)
    inode = (upload / "train.jsonl").stat().st_ino
    bed.good(upload, how="move", consume=str(upload))
    assert (bed.goal / "train.jsonl").stat().st_ino == inode and not upload.exists()


def test_a_path_outside_is_refused(bed, tmp_path):
    (tmp_path / "outside.jsonl").write_bytes(LINES)
    assert "lies under none of the directories" in bed.bad(tmp_path / "outside.jsonl")
    (bed.root / "link").symlink_to(tmp_path / "outside.jsonl")
    assert "lies under none of the directories" in bed.bad(bed.root / "link")
    (bed.root / "raw").mkdir()
    (bed.root / "raw/link").symlink_to(tmp_path / "outside.jsonl")
    assert "is a link that leads out" in bed.bad(bed.root / "raw")
    assert "is not there" in bed.bad(bed.root / "nothing")
    (bed.root / "empty").mkdir()
    assert "holds no files" in bed.bad(bed.root / "empty")


def test_files_that_are_not_what_their_name_says(bed):
    cases = {
        "a.parquet": (b"<!DOCTYPE html><html>", "is a web page"),
        "b.parquet": (b"hello" * 100, "does not begin with PAR1"),
        "c.parquet": (parquet_like()[:-3], "is cut off"),
        "e.safetensors": (b"\xff\xff\xff\0\0\0\0\0{}", "is not a whole safetensors file"),
        "f.jsonl": (b'{"a": 1}\n{"a": \n', "cannot be read as jsonl"),
        "g.bin": (b"version https://git-lfs.github.com/spec/v1\noid", "only a pointer of Git LFS"),
        "h.json.gz": (b"{}", "is not a gzip file"),
    }
    for name, (data, want) in cases.items():
        (bed.root / name).write_bytes(data)
        assert want in bed.bad(bed.root / name)
    (bed.root / "d.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    bed.good(bed.root / "d.safetensors")


def test_more_than_allowed(bed):
    (bed.root / "big.bin").write_bytes(bytes(1 << 20))
    assert "more than the 1.0 KiB that it may have" in bed.bad(bed.root / "big.bin", max_bytes=1024)


# ---- HTTP ----


def test_a_file_comes_by_http(bed):
    with FileServer({"data/train.jsonl": LINES}) as web:
        result = bed.good(web.url + "/data/train.jsonl?version=3")
    assert tree_of(bed.goal) == {"train.jsonl": LINES} and result["hash"] == hash_of({"train.jsonl": LINES})


def test_a_connection_that_breaks_is_taken_up_again(bed):
    with FileServer({"train.jsonl": LINES}) as web:
        web.spoil("/train.jsonl", cut=[100, 0, 50], status=[503])
        bed.good(web.url + "/train.jsonl")
        assert web.ranges("/train.jsonl") == [None, None, "bytes=100-", "bytes=100-", "bytes=150-"]
    assert tree_of(bed.goal) == {"train.jsonl": LINES}


def test_a_server_without_ranges_begins_anew(bed):
    with FileServer({"train.jsonl": LINES}) as web:
        web.spoil("/train.jsonl", cut=[100], no_range=True)
        bed.good(web.url + "/train.jsonl")
    assert tree_of(bed.goal) == {"train.jsonl": LINES}


def test_a_file_that_changed_meanwhile_is_not_mixed(bed):
    """With an ETag the server says so; without one the bytes of two files would be joined: the checksum tells."""
    with FileServer({"train.jsonl": LINES}) as web:
        web.spoil("/train.jsonl", cut=[100])
        with bed.start(web.url + "/train.jsonl", pause=3) as p:
            wait_for(lambda: web.seen, "the first request")
            web.files["/train.jsonl"] = LINES.upper().replace(b"QUESTION", b"question")
            assert p.wait(240) == 0
    assert tree_of(bed.goal) == {"train.jsonl": LINES.upper().replace(b"QUESTION", b"question")}


def test_a_checksum_is_held(bed):
    with FileServer({"train.jsonl": LINES}) as web:
        bed.good(web.url + "/train.jsonl", sha256=hashlib.sha256(LINES).hexdigest())
        shutil.rmtree(bed.goal)
        shutil.rmtree(bed.staging)
        error = bed.bad(web.url + "/train.jsonl", sha256="0" * 64)
    assert "is not what it should be" in error


@pytest.mark.parametrize(
    "how, want",
    [
        ({"html": True}, "gives a web page (HTML)"),
        ({"html": True, "type": "application/octet-stream"}, "is a web page (HTML)"),
        ({"length": 100000}, "given up on 'train.jsonl'"),
        ({"cut": [10] + [0] * 20}, "ended after 10 of"),
        ({"status": [404]}, "is not there (404)"),
        ({"status": [403]}, "give a token as secret"),
        ({"status": [500] * 20}, "answers 500"),
    ],
)  # fmt: skip
def test_a_server_that_fails_or_lies(bed, how, want):
    with FileServer({"train.jsonl": LINES}) as web:
        web.spoil("/train.jsonl", **how)
        assert want in bed.bad(web.url + "/train.jsonl")


def test_nobody_is_there(bed):
    with FileServer() as web:
        url = web.url
    assert "cannot be reached" in bed.bad(url + "/train.jsonl")
    assert "cannot be imported from" in bed.bad("gopher://x/y")


def test_a_kill_in_the_middle_goes_on_where_it_was(bed):
    stall = threading.Event()
    with FileServer({"train.jsonl": LINES}) as web:
        web.spoil("/train.jsonl", stall=stall)
        with bed.start(web.url + "/train.jsonl") as p:
            part = bed.staging / "part/0"
            wait_for(lambda: part.exists() and web.seen, "a first piece")
            os.kill(p.pid, signal.SIGKILL)
            p.wait()
        stall.set()
        bed.good(web.url + "/train.jsonl")
    assert tree_of(bed.goal) == {"train.jsonl": LINES}
    progress = json.loads((bed.report / "progress.json").read_text())
    assert progress == {"phase": "done", "bytes": len(LINES), "total": 0, "files": 1, "of": 1}


def test_an_end_between_the_last_two_steps(bed):
    (bed.root / "train.jsonl").write_bytes(LINES)
    first = bed.good(bed.root / "train.jsonl")
    (bed.report / "result.json").unlink()
    assert bed.good(bed.root / "train.jsonl") == first
    shutil.rmtree(bed.staging)
    code, said = bed.run(bed.root / "train.jsonl")
    assert code == 1 and "something is at" in said
    assert tree_of(bed.goal) == {"train.jsonl": LINES}
