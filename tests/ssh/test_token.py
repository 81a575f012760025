# SPDX-License-Identifier: Apache-2.0
"""token.sh: where Ray's token is kept on a machine whose /tmp others may write."""

import os
import pathlib
import shutil
import stat
import subprocess
import uuid

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "src/ssh/token.sh"


@pytest.fixture
def put(tmp_path):
    """Runs the script as one whose number nobody else has: /tmp/argus-<number> is not there yet."""
    number = f"test{uuid.uuid4().hex}"
    (tmp_path / "id").write_text(f"#!/bin/sh\necho {number}\n")
    (tmp_path / "id").chmod(0o755)
    at = pathlib.Path("/tmp", f"argus-{number}")

    def run():
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        return subprocess.run(["sh", SCRIPT, "a1b2", "the token"], env=env, capture_output=True, text=True, timeout=240)

    run.at = at
    yield run
    if at.is_symlink():
        at.unlink()
    shutil.rmtree(at, ignore_errors=True)


def test_only_its_user_reads_it(put):
    for _ in range(2):
        done = put()
        assert (done.returncode, done.stdout) == (0, f"{put.at}/a1b2/ray_token\n"), done
    file = put.at / "a1b2/ray_token"
    assert file.read_text() == "the token\n"
    assert [stat.S_IMODE(p.stat().st_mode) for p in (put.at, file.parent, file)] == [0o700, 0o700, 0o600]
    put.at.chmod(0o777)  # somebody opened it
    assert put().returncode == 0 and stat.S_IMODE(put.at.stat().st_mode) == 0o755


def test_no_directory_of_another_is_used(put, tmp_path):
    put.at.symlink_to(tmp_path)
    assert put().returncode == 3
    put.at.unlink()
    put.at.mkdir()
    (put.at / "a1b2").symlink_to(tmp_path)
    assert put().returncode == 3
    assert not (tmp_path / "ray_token").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives directories away")
@pytest.mark.parametrize("place", ["", "a1b2"])
def test_a_directory_that_another_owns_is_refused(put, place):
    (put.at / "a1b2").mkdir(parents=True)
    os.chown(put.at / place, 65534, 65534)
    assert put().returncode == 3
    assert not list((put.at / "a1b2").iterdir())
