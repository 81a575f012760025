# SPDX-License-Identifier: Apache-2.0
"""./dev land: what is proven is a clean clone of HEAD, and main moves forward to what was green, and not else."""

import os
import pathlib
import subprocess
import sys

import pytest

LAND = pathlib.Path(__file__).resolve().parents[2] / "tools/check/land"
sys.path[:0] = [str(LAND.parent), str(LAND.parents[2] / "tests/lib")]

from cage import is_held  # noqa: E402
from fakeray import wait_for  # noqa: E402

CHECK = "test -e good && ! test -e untracked && echo run >> {runs} && echo '1 passed, 0 failed, 0 skipped'\n"


class Repo:
    """Branch `main` with a green commit, and branch `work` checked out."""

    def __init__(self, place):
        self.place, self.cache, self.runs = place / "repo", place / "cache", place / "runs"
        self.place.mkdir()
        self.git("init", "-q", "-b", "main")
        (self.place / ".ci").mkdir()
        (self.place / ".ci/run").write_text(CHECK.format(runs=self.runs))
        (self.place / "good").touch()
        self.commit("first")
        self.git("switch", "-q", "-c", "work")

    def git(self, *args):
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(["git", *who, *args], cwd=self.place, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, text, **files):
        for name, content in files.items():
            (self.place / name).write_text(content)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", text)
        return self.at("HEAD")

    def at(self, name):
        return self.git("rev-parse", name)

    def env(self):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "ARGUS_"))}
        return kept | {"XDG_CACHE_HOME": str(self.cache)}

    def land(self, *args, where=None):
        argv = [sys.executable, LAND, *args]
        return subprocess.run(
            argv, cwd=where or self.place, env=self.env(), capture_output=True, text=True, timeout=240
        )

    def times_run(self):
        return len(self.runs.read_text().splitlines()) if self.runs.exists() else 0


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path)


def test_a_green_commit_gets_a_stamp_and_main_stays(repo):
    main, commit = repo.at("main"), repo.commit("second", note="x")
    done = repo.land()
    assert done.returncode == 0, done
    stamp = repo.cache / "argus/green" / repo.at("HEAD^{tree}")
    assert commit in stamp.read_text() and "1 passed, 0 failed, 0 skipped" in stamp.read_text()
    assert repo.at("main") == main
    assert not (repo.cache / "argus/land/argus").exists(), "the clone went"


def test_main_moves_forward_beside_another_branch(repo):
    commit = repo.commit("second", note="x")
    assert repo.land("--main").returncode == 0
    assert repo.at("main") == commit and repo.git("branch", "--show-current") == "work"


def test_a_green_tree_is_not_run_again(repo):
    commit = repo.commit("second", note="x")
    assert repo.land().returncode == 0
    assert repo.land("--main").returncode == 0
    assert repo.times_run() == 1 and repo.at("main") == commit


def test_main_that_is_checked_out_moves_with_its_files(repo):
    repo.git("switch", "-q", "main")
    commit = repo.commit("second", note="x")
    repo.git("update-ref", "refs/heads/main", "HEAD~1")
    repo.git("reset", "-q", "--hard")
    repo.git("worktree", "add", "-q", "--detach", "../other", commit)
    assert repo.land("--main", where=repo.place.parent / "other").returncode == 0
    assert repo.at("main") == commit
    assert (repo.place / "note").read_text() == "x" and not repo.git("status", "--porcelain")


def test_a_red_commit_moves_nothing_and_keeps_its_clone(repo):
    main = repo.at("main")
    repo.git("rm", "-q", "good")
    repo.commit("red")
    done = repo.land("--main")
    assert done.returncode == 1 and "is not green" in done.stderr
    assert repo.at("main") == main and not (repo.cache / "argus/green").exists()
    assert (repo.cache / "argus/land/argus/.ci/run").exists()
    (repo.place / "good").touch()
    repo.commit("green")
    assert repo.land("--main").returncode == 0, "what a red one left is in nobody's way"


def test_what_is_not_committed_is_not_in_it(repo):
    repo.commit("second", note="x")
    (repo.place / "untracked").touch()
    done = repo.land()
    assert done.returncode == 0 and "not committed" in done.stderr


def test_main_never_moves_aside(repo):
    repo.commit("second", note="x")
    repo.git("branch", "-f", "main", "work")
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.commit("other", note="y")
    main = repo.at("main")
    done = repo.land("--main")
    assert done.returncode == 1 and "rebase" in done.stderr
    assert repo.at("main") == main and repo.times_run() == 0, "told before the run"


def test_two_at_once_refuse(repo, tmp_path):
    go, begun = tmp_path / "go", tmp_path / "begun"
    os.mkfifo(go)
    (repo.place / ".ci/run").write_text(f"touch {begun}; read line < {go}; echo '1 passed, 0 failed, 0 skipped'\n")
    repo.commit("waits")
    first = subprocess.Popen([sys.executable, LAND], cwd=repo.place, env=repo.env(), stdout=subprocess.DEVNULL)
    wait_for(begun.exists, "the first runs")
    second = repo.land()
    assert second.returncode == 1 and f"another landing runs (process {first.pid})" in second.stderr
    go.write_text("\n")
    assert first.wait(240) == 0


def test_a_killed_landing_is_in_nobodys_way(repo, tmp_path):
    held, begun = tmp_path / "held", tmp_path / "begun"
    (repo.place / ".ci/run").write_text(f"exec 9>{held}; flock 9; touch {begun}; read line <>/dev/ptmx\n")
    repo.commit("waits")
    first = subprocess.Popen([sys.executable, LAND], cwd=repo.place, env=repo.env(), stdout=subprocess.DEVNULL)
    wait_for(begun.exists, "the first runs")
    first.kill()
    first.wait(240)
    wait_for(lambda: not is_held(held), "its run has ended with it")
    (repo.place / ".ci/run").write_text(CHECK.format(runs=repo.runs))
    commit = repo.commit("green")
    assert repo.land("--main").returncode == 0 and repo.at("main") == commit
