# SPDX-License-Identifier: Apache-2.0
"""One run of lib/argus_import.py in a directory of its own, without argusd."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys

LIB = pathlib.Path(__file__).resolve().parents[2] / "lib"


class Bed:
    def __init__(self, home):
        self.home = pathlib.Path(home)
        self.root = self.home / "root"
        self.mine = self.root / "users/alice/datasets"
        self.mine.mkdir(parents=True, exist_ok=True)
        self.goal = self.mine / "gsm8k/1"
        self.staging = self.mine / ".import-j1"
        self.report = self.home / "report"

    def order(self, source, **more):
        return {
            "what": "dataset", "source": str(source),
            "goal": str(source if more.get("how") == "in_place" else self.goal), "staging": str(self.staging),
            "report": str(self.report), "roots": [str(self.root)], "pause": 0.01, **more,
        }  # fmt: skip

    def start(self, source, env=(), python=sys.executable, **more):
        argv = [python, "-B", LIB / "argus_import.py", json.dumps(self.order(source, **more))]
        return subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **dict(env)}
        )

    def run(self, source, **more):
        """(exit status, what it said)"""
        with self.start(source, **more) as p:
            said = p.communicate()[0]
        return p.returncode, said

    def result(self):
        return json.loads((self.report / "result.json").read_text())

    def good(self, source, **more):
        code, said = self.run(source, **more)
        assert code == 0, said
        result = self.result()
        assert result["ok"], result
        return result

    def bad(self, source, **more):
        """The sentence; and that nothing is left behind."""
        code, said = self.run(source, **more)
        assert code == 1, said
        result = self.result()
        assert not result["ok"] and result["error"] in said
        assert not self.goal.exists() and not self.staging.exists()
        assert list(self.mine.rglob("*")) == [] or all(p.is_dir() for p in self.mine.rglob("*"))
        return result["error"]


def put_files(top, files):
    for name, data in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return top


def tree_of(root):
    root = pathlib.Path(root)
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def hash_of(files):
    lines = "".join(f"{hashlib.sha256(files[n]).hexdigest()}  {n}\n" for n in sorted(files))
    return "sha256:" + hashlib.sha256(lines.encode()).hexdigest()


def parquet_like(n=1000):
    """Bytes that a look at both ends takes for parquet (pyarrow would not)."""
    return b"PAR1" + bytes(range(256)) * (n // 256 + 1) + (16).to_bytes(4, "little") + b"PAR1"
