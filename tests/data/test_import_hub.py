# SPDX-License-Identifier: Apache-2.0
"""The import tool against a Hugging Face endpoint, and that endpoint (tests/lib/fileserver.py) against the client
library of Hugging Face, so that what is tested is what a mirror speaks."""

import hashlib
import json
import os
import subprocess

import pytest
from fileserver import FileServer
from importing import Bed, hash_of, parquet_like, tree_of
from raybed import env_path

ROWS = "".join(json.dumps({"messages": [{"role": "user", "content": str(i)}]}) + "\n" for i in range(30)).encode()
FILES = {"README.md": b"# raw\n", "data/train.jsonl": ROWS, "data/shard.bin": bytes(range(256)) * 3000}
LFS = ["data/shard.bin"]
REPO = "datasets/openai/gsm8k"
SHARD = f"/{REPO}/resolve/%s/data/shard.bin"


@pytest.fixture
def bed(tmp_path):
    return Bed(tmp_path)


@pytest.fixture
def hub():
    with FileServer() as web:
        web.commit = web.repo(REPO, {**FILES, ".gitattributes": b"*.bin lfs\n"}, LFS)
        web.shard = SHARD % web.commit
        yield web


def test_the_endpoint_is_what_the_client_library_speaks(hub, tmp_path):
    home = env_path("verl-0.9.1")
    if home is None:
        pytest.skip("no environment with huggingface_hub: run ./dev setup")
    script = (
        "import sys, huggingface_hub as h\n"
        "print(h.snapshot_download('openai/gsm8k', repo_type='dataset', local_dir=sys.argv[1]))\n"
    )
    env = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1",
           "HF_HUB_DISABLE_TELEMETRY": "1"}  # fmt: skip
    done = subprocess.run(
        [home / "bin/python", "-c", script, str(tmp_path / "got")], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for name, data in FILES.items():
        assert (tmp_path / "got" / name).read_bytes() == data


def test_a_repository_comes_whole_and_pinned(hub, bed):
    result = bed.good("hf://openai/gsm8k", endpoint=hub.url)
    assert tree_of(bed.goal) == FILES
    assert result["revision"] == hub.commit and result["hash"] == hash_of(FILES)
    assert result["about"]["fit"]["sft"]["fit"] and result["about"]["rows"] == 30
    again = Bed(bed.home / "again")
    again.good(f"hf://openai/gsm8k@{hub.commit}", endpoint=hub.url, include=["data/*.jsonl"])
    assert tree_of(again.goal) == {"data/train.jsonl": ROWS}


def test_the_mirror_goes_down_in_the_middle(hub, bed):
    hub.spoil(hub.shard, cut=[100000, 0, 200000], status=[503, 502])
    bed.good("hf://openai/gsm8k", env={"HF_ENDPOINT": hub.url})
    assert tree_of(bed.goal) == FILES
    assert hub.ranges(hub.shard) == [None, None, None, "bytes=100000-", "bytes=100000-", "bytes=300000-"]


@pytest.mark.parametrize(
    "how, want",
    [
        ({"length": 1000}, "one of them lies"),
        ({"bytes": b"x" * len(FILES["data/shard.bin"])}, "is not what it should be"),
        ({"bytes": FILES["data/shard.bin"][:-7]}, "one of them lies"),
        ({"html": True}, "gives a web page (HTML)"),
        ({"status": [503] * 20}, "given up on 'data/shard.bin' after 6 tries"),
        ({"cut": [1000] + [0] * 20}, "ended after 1000 of 768000 bytes"),
        ({"status": [401]}, "given as secret HF_TOKEN"),
    ],
)  # fmt: skip
def test_a_mirror_that_lies_or_fails(hub, bed, how, want):
    hub.spoil(hub.shard, **how)
    assert want in bed.bad("hf://openai/gsm8k", endpoint=hub.url)


def test_what_a_listing_may_not_say(bed):
    with FileServer() as web:
        for i, files in enumerate(({"../evil": b"x"}, {"a": b"1", "a/b": b"2"}, {"a//b": b"1"}, {"x\ny": b"1"})):
            web.repo(f"datasets/bad/r{i}", files)
            assert bed.bad(f"hf://bad/r{i}", endpoint=web.url)
        web.spoil("/api/datasets/page/r/revision/main", html=True)
        assert "does not answer as a Hugging Face endpoint" in bed.bad("hf://page/r", endpoint=web.url)
        assert "is not there (404)" in bed.bad("hf://no/such", endpoint=web.url)
        assert "is not hf://" in bed.bad("hf://a/b/c/d", endpoint=web.url)


def test_a_half_shard_of_a_model(bed):
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    whole = len(header).to_bytes(8, "little") + header + bytes(16)
    config = json.dumps({"architectures": ["X"], "model_type": "x"}).encode()
    index = json.dumps({"weight_map": {"w": "a.safetensors", "v": "b.safetensors"}}).encode()
    with FileServer() as web:
        web.repo("models/q/half", {"config.json": config, "model.safetensors": whole[:-3]})
        assert "is cut off" in bed.bad("hf://q/half", endpoint=web.url, what="model")
        web.repo("models/q/missing", {"config.json": config, "a.safetensors": whole,
                                      "model.safetensors.index.json": index})  # fmt: skip
        assert "names 2 files and 1 are missing" in bed.bad("hf://q/missing", endpoint=web.url, what="model")
        web.repo("models/q/good", {"config.json": config, "model.safetensors": whole}, lfs=["model.safetensors"])
        result = bed.good("hf://q/good", endpoint=web.url, what="model")
    assert result["about"]["parameters"] == 4 and result["about"]["architecture"] == "X"


def test_the_token_goes_to_its_host_only(bed):
    """A mirror sends large files to another host: the token stays behind."""
    seen = []
    with FileServer({"blob": parquet_like()}) as other, FileServer() as web:
        web.repo("datasets/a/b", {"x.bin": other.files["/blob"]})
        handler = web.http.RequestHandlerClass

        class Redirecting(handler):
            def do_GET(self):
                seen.append((self.path, self.headers.get("Authorization")))
                if "/resolve/" in self.path:
                    self.send_response(302)
                    self.send_header("Location", other.url + "/blob")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                else:
                    super().do_GET()

        class Watching(handler):
            def do_GET(self):
                seen.append((self.path, self.headers.get("Authorization")))
                super().do_GET()

        web.http.RequestHandlerClass, other.http.RequestHandlerClass = Redirecting, Watching
        bed.good("hf://a/b", endpoint=web.url, env={"HF_TOKEN": "hf_secret"})
    assert {p.partition("?")[0].split("/")[1]: a for p, a in seen} == {
        "api": "Bearer hf_secret", "datasets": "Bearer hf_secret", "blob": None}  # fmt: skip
    assert hashlib.sha256((bed.goal / "x.bin").read_bytes()).digest() == hashlib.sha256(parquet_like()).digest()
