# SPDX-License-Identifier: Apache-2.0
"""argus snapshot against the real argusd: what of a directory goes, with and without git; nothing is sent twice;
archives, comparison, removal."""

import json
import os
import shutil
import subprocess

import pytest
from fakeray import FakeRay
from programs import PROGRAMS
from snapshots import verl, zipped

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd


class Cli:
    def __init__(self, argusd, home):
        keep = {k: v for k, v in os.environ.items() if k == "PATH" or k.endswith("SAN_OPTIONS")}
        self.env = {**keep, "HOME": str(home), "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"]}
        self.home = home

    def run(self, *args, **env):
        argv = [PROGRAMS["argus"], *map(str, args)]
        return subprocess.run(argv, env={**self.env, **env}, capture_output=True, text=True, timeout=PATIENCE)

    def json(self, *args, **env):
        p = self.run(*args, "-o", "json", **env)
        assert p.returncode == 0, p.stderr
        return json.loads(p.stdout)

    def git(self, tree, *args):
        argv = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args]
        return subprocess.run(argv, cwd=tree, env=self.env, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("snapshots"), ray.url) as argusd:
        argusd.wait_over(argusd.submit("true"))  # the root was looked at
        yield argusd


@pytest.fixture
def cli(argusd, tmp_path):
    return Cli(argusd, tmp_path)


FILES = {
    **verl("0.9.1"),
    "run.sh": "#!/bin/sh\n",
    ".gitignore": "*.log\nbuild/\n/only-top\n",
    "a.log": "ignored",
    "build/x": "ignored",
    "only-top": "ignored",
    "sub/only-top": "kept",
    "sub/.gitignore": "!keep.log\n*.tmp\n",
    "sub/keep.log": "kept",
    "sub/x.tmp": "ignored",
    "n" * 120 + "/" + "m" * 120: "a long name",
}
KEPT = {n for n, text in FILES.items() if text != "ignored"}


def make(tree):
    for name, text in FILES.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("run.sh")
    return tree


def listed(path):
    return {os.path.relpath(os.path.join(d, f), path) for d, _, files in os.walk(path) for f in files}


def test_directory_with_and_without_git(cli, argusd, tmp_path):
    tree = make(tmp_path / "tree")
    one = cli.json("snapshot", "add", tree, "--name", "plain@1")
    assert listed(one["path"]) == KEPT | {"link"} and one["verl"] == "0.9.1" and not one["common"]
    assert os.readlink(f"{one['path']}/link") == "run.sh" and os.access(f"{one['path']}/run.sh", os.X_OK)
    cli.git(tree, "init", "-q")
    cli.git(tree, "add", "-A")
    cli.git(tree, "commit", "-qm", "one")
    two = cli.json("snapshot", "add", tree, "--name", "git@1", "--common")
    assert two["hash"] == one["hash"] and two["common"]  # both ways choose the same files
    (tree / "new.py").write_text("not added yet")
    (tree / "sub/keep.log").unlink()
    three = cli.json("snapshot", "add", tree, "--name", "git")
    assert three["name"] == f"git@{three['hash'][:12]}"
    p = cli.run("snapshot", "diff", "git@1", three["name"])
    assert p.stdout == "+ new.py\n- sub/keep.log\n", p
    # Only a part of a work tree.
    part = cli.json("snapshot", "add", tree / "verl", "--name", "part@1")
    assert listed(part["path"]) == {"__init__.py", "version/version"}


def test_nothing_is_sent_or_read_twice(cli, argusd, tmp_path):
    tree = make(tmp_path / "tree")
    (tree / "marker").write_text(str(tmp_path))
    first = cli.json("snapshot", "add", tree, "--name", "twice@1")
    uploads = [e for e in argusd.get("/v1/events?limit=1000")["events"] if e["kind"] == "upload_begun"]
    assert cli.json("snapshot", "add", tree, "--name", "twice@1") == first
    again = cli.json("snapshot", "add", tree, "--name", "twice@2")
    assert again["hash"] == first["hash"]
    assert uploads == [e for e in argusd.get("/v1/events?limit=1000")["events"] if e["kind"] == "upload_begun"]
    # What changed is seen, whatever the cache holds; a broken cache is no trouble.
    (tree / "marker").write_text(str(tmp_path)[::-1])
    changed = cli.json("snapshot", "add", tree, "--name", "twice@3")
    assert changed["hash"] != first["hash"]
    for cache in (tmp_path / ".cache/argus").iterdir():
        cache.write_text("argus-cache 1\n1 2 3 4 zz marker\nbroken")
    assert cli.json("snapshot", "add", tree, "--name", "twice@4")["hash"] == changed["hash"]


def test_files_that_are_read_once_and_those_that_are_not(cli, argusd, tmp_path):
    """What is hashed goes into the archive at once, what is large or known already follows: it is all there."""
    tree = make(tmp_path / "tree")
    (tree / "large").write_bytes(os.urandom(400_000))
    (tree / "edge").write_bytes(os.urandom(128 << 10))
    (tree / "empty").write_bytes(b"")

    def known():  # a file that changed a moment ago is not remembered
        cli.json("snapshot", "add", tree, "--name", "mixed@1")
        (cache,) = (tmp_path / ".cache/argus").glob("*.snapshot")
        return {"large", "edge", "empty", "run.sh"} <= {line.split()[-1] for line in cache.read_text().splitlines()}

    until(known, "the files are remembered")
    assert cli.run("snapshot", "rm", "mixed@1").returncode == 0
    (tree / "new.py").write_text("x = 1\n")
    made = cli.json("snapshot", "add", tree, "--name", "mixed@2")
    assert listed(made["path"]) == KEPT | {"link", "large", "edge", "empty", "new.py"}
    for name in listed(made["path"]):
        with open(os.path.join(made["path"], name), "rb") as f:
            assert f.read() == (tree / name).read_bytes(), name


def test_archives(cli, tmp_path):
    file = tmp_path / "code.zip"
    file.write_bytes(zipped({"top/verl/version/version": "0.5.0\n", "top/verl/__init__.py": ""}))
    made = cli.json("snapshot", "add", file, "--name", "zip@1")
    assert made["verl"] == "0.5.0" and listed(made["path"]) == {"verl/version/version", "verl/__init__.py"}
    repo = make(tmp_path / "repo")
    cli.git(repo, "init", "-q", "-b", "main")
    cli.git(repo, "add", "-A")
    cli.git(repo, "commit", "-qm", "one")
    commit = cli.git(repo, "rev-parse", "--short=10", "HEAD").strip()
    (repo / "later").write_text("x")
    cli.git(repo, "add", "-A")
    cli.git(repo, "commit", "-qm", "two")
    cli.git(repo, "bundle", "create", str(tmp_path / "code.bundle"), "--all")
    made = cli.json("snapshot", "add", tmp_path / "code.bundle", "--name", f"bundle@{commit}")
    assert listed(made["path"]) == KEPT | {"link"}
    bad = tmp_path / "bad.zip"
    bad.write_bytes(zipped({"../evil": "x"}))
    p = cli.run("snapshot", "add", bad, "--name", "bad@1")
    assert p.returncode == 5 and "'..'" in p.stderr, p


def test_refusals(cli, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    p = cli.run("snapshot", "add", tree, "--name", "x@1")
    assert p.returncode == 5 and "no file in" in p.stderr, p
    (tree / "l").symlink_to("/etc/passwd")
    p = cli.run("snapshot", "add", tree, "--name", "x@1")
    assert p.returncode == 5 and "leads out of the tree" in p.stderr, p
    (tree / "l").unlink()
    os.mkfifo(tree / "pipe")
    p = cli.run("snapshot", "add", tree, "--name", "x@1")
    assert p.returncode == 5 and "'pipe' is a device, pipe or socket" in p.stderr, p
    (tree / "pipe").unlink()
    (tree / "a").write_text("1")
    assert cli.run("snapshot", "add", tree).returncode == 2
    assert cli.run("snapshot", "add", tmp_path / "none", "--name", "x@1").returncode == 2
    p = cli.run("snapshot", "add", tree, "--name", "X@1")
    assert p.returncode == 2 and "name@version" in p.stderr, p
    (tree / "A").write_text("2")
    p = cli.run("snapshot", "add", tree, "--name", "x@1")
    assert p.returncode == 5 and "in case alone" in p.stderr, p
    assert "x@1" not in cli.run("snapshot", "ls").stdout


def test_all_odd_names_of_a_tree_are_told_at_once(cli, tmp_path):
    """Nobody mends a tree one name at a time; what is only in a directory of another case counts as well."""
    tree = tmp_path / "tree"
    (tree / "Sub").mkdir(parents=True)
    (tree / "sub").mkdir()
    plain = ("good.py", "README", "ReadMe", "Sub/x.py", "sub/y.py", "sub/z.py")
    for name in (*plain, "new\nline.txt", "tab\t.txt", "a\\b"):
        (tree / name).write_text("1")
    (tree / "out").symlink_to("/etc/hostname")
    os.mkfifo(tree / "pipe")
    (tree / os.fsdecode(b"caf\xe9.txt")).write_text("1")
    p = cli.run("snapshot", "add", tree, "--name", "odd@1")
    assert p.returncode == 5, p
    told = (r"new\x0aline.txt", r"tab\x09.txt", r"'a\b'", "'README' and 'ReadMe'", "'Sub' and 'sub'", "'out'", "'pipe'",
            r"caf\xe9")  # fmt: skip
    for part in told:
        assert p.stderr.count(part) == 1, (part, p.stderr)
    assert "good.py" not in p.stderr and f" {len(told)} files" in p.stderr.splitlines()[-1], p.stderr
    assert "odd@1" not in cli.run("snapshot", "ls").stdout


def test_a_submodule_that_nobody_checked_out_is_told(cli, tmp_path):
    inner, repo = tmp_path / "inner", tmp_path / "repo"
    for at in (inner, repo):
        at.mkdir()
        (at / "x.py").write_text("1")
        cli.git(at, "init", "-q")
        cli.git(at, "add", "-A")
        cli.git(at, "commit", "-qm", "one")
    cli.git(repo, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(inner), "third/inner")
    cli.git(repo, "commit", "-qm", "two")
    cli.git(repo, "submodule", "-q", "deinit", "-f", "third/inner")
    p = cli.run("snapshot", "add", repo, "--name", "empty-submodule@1")
    assert p.returncode == 0 and "'third/inner'" in p.stderr and "git submodule update --init" in p.stderr, p
    cli.git(repo, "-c", "protocol.file.allow=always", "submodule", "-q", "update", "--init")
    p = cli.run("snapshot", "add", repo, "--name", "full-submodule@1")
    assert p.returncode == 0 and "third/inner" not in p.stderr, p


def test_ls_and_rm(cli, argusd, tmp_path):
    tree = make(tmp_path / "tree")
    (tree / "marker").write_text("ls and rm")
    shutil.rmtree(tree / "sub")
    p = cli.run("snapshot", "add", tree, "--name", "mine@1")
    assert p.stdout == "mine@1\n" and "verl 0.9.1" in p.stderr, p
    cli.json("snapshot", "add", tree, "--name", "mine@1", "--common")
    rows = [line.split() for line in cli.run("snapshot", "ls", "-o", "wide").stdout.splitlines()]
    assert rows[0][:3] == ["NAME", "OWNER", "VERL"]
    assert {r[1] for r in rows if r[0] == "mine@1"} == {"alice", "common"}
    assert cli.run("snapshot", "rm", "mine@1").stdout == "snapshot mine@1 removed\n"
    assert [s["common"] for s in cli.json("snapshot", "ls")["snapshots"] if s["name"] == "mine@1"] == [True]
    assert cli.run("snapshot", "rm", "mine@1", "--common").returncode == 0
    assert cli.run("snapshot", "rm", "mine@1").returncode == 4


# ---- a spec's working_dir that is a directory here ----


def spec_of(tree, working_dir="./code"):
    entrypoint = ["sh", "-c", "cat said; pwd"]
    spec = {"workload": "ray", "entrypoint": entrypoint, "working_dir": working_dir}
    (tree / "job.yaml").write_text(json.dumps(spec))
    return tree / "job.yaml"


def test_a_local_working_dir_becomes_a_snapshot(argusd, cli, tmp_path):
    code = tmp_path / "My Code"
    code.mkdir()
    (code / "said").write_text("from here\n")
    (code / "x.log").write_text("left out")
    (code / ".gitignore").write_text("*.log\n")
    p = cli.run("submit", "--wait", spec_of(tmp_path, "./My Code"))
    assert p.returncode == 0, p.stderr
    job = argusd.get(f"/v1/jobs/{p.stdout.split()[0]}", token="user")
    log = argusd.call("GET", f"/v1/jobs/{job['id']}/logs", token="user").body.decode()
    assert log.startswith("from here\n/") and "is snapshot my-code@" in p.stderr
    made = [s for s in cli.json("snapshot", "ls")["snapshots"] if s["name"].startswith("my-code@")]
    assert [s["files"] for s in made] == [2] and made[0]["hash"] in log
    assert made[0]["hash"] in job["resolved_spec"]["working_dir"]
    p = cli.run("submit", "--dry-run", spec_of(tmp_path, "./My Code"))  # unchanged: the same one, nothing is sent
    assert p.returncode == 0 and made[0]["name"] in p.stderr
    assert argusd.get("/v1/uploads", token="user")["uploads"] == []
    (code / "said").write_text("something else\n")
    assert cli.run("submit", "--dry-run", spec_of(tmp_path, "./My Code")).returncode == 0
    assert len([s for s in cli.json("snapshot", "ls")["snapshots"] if s["name"].startswith("my-code@")]) == 2


def test_a_working_dir_that_cannot_go_is_one_sentence(cli, tmp_path):
    p = cli.run("submit", spec_of(tmp_path, "./none"))
    assert p.returncode == 2 and "working_dir './none' is not a directory here: No such file" in p.stderr
    p = cli.run("submit", spec_of(tmp_path, "./job.yaml"))
    assert p.returncode == 2 and "working_dir './job.yaml' is not a directory here" in p.stderr
    (tmp_path / "empty").mkdir()
    p = cli.run("submit", spec_of(tmp_path, "./empty"))
    assert p.returncode == 5 and "working_dir './empty': there is no file in" in p.stderr
    with open(tmp_path / "empty/data", "wb") as f:
        f.truncate(3 << 30)  # sparse
    p = cli.run("submit", spec_of(tmp_path, "./empty"))
    assert p.returncode == 5 and "more than 2048 MiB that no .gitignore leaves out" in p.stderr
