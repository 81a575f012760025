# SPDX-License-Identifier: Apache-2.0
"""A look at a file of one's own machine that failed is no absence either: nothing is written over what may be there,
and nothing is sent that what cannot be read may keep back."""

import errno
import os
import subprocess

import pytest
from brokenlook import BrokenLooks
from fakeray import FakeRay
from preload import needs_compiler
from programs import PROGRAMS

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = [needs_argusd, needs_compiler]

ERRORS = [errno.ESTALE, errno.EIO, errno.EMFILE]
each_error = pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("local"), ray.url) as argusd:
        until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "the root was looked at")
        yield argusd


@pytest.fixture
def looks(tmp_path):
    return BrokenLooks(tmp_path)


def run(looks, program, *args, **env):
    env = {**os.environ, "LANG": "C", **looks.env(), **env}
    argv = [PROGRAMS[program], *map(str, args)]
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=PATIENCE)


def client(argusd, looks, *args):
    """argus, without git, so that it reads .gitignore itself."""
    own = {"ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "HOME": str(looks.home), "PATH": "/nowhere"}
    return run(looks, "argus", *args, **own)


@each_error
def test_init_writes_over_no_configuration(looks, tmp_path, error):
    config = tmp_path / "argus.yaml"
    config.write_text("as it was")
    with looks.fail(config.name, error):
        done = run(looks, "argusd", "init", "--config", config, "--shared-root", tmp_path)
    assert (done.returncode != 0, config.read_text()) == (True, "as it was"), done.stderr
    assert f"cannot look at '{config}'" in done.stderr and os.strerror(error) in done.stderr, done.stderr


@each_error
def test_no_start_without_a_look_at_the_key(argusd, looks, error):
    """Else the first secret would be sealed with a new key, written over this one."""
    key = argusd.state_dir / "secrets.key"
    argusd.stop()
    try:
        with looks.fail(key.name, error):
            done = run(looks, "argusd", "--config", argusd.config)
    finally:
        argusd.start()
    assert done.returncode not in (0, -6) and f"cannot look at '{key}'" in done.stderr, done.stderr
    assert os.strerror(error) in done.stderr


@each_error
def test_a_file_is_not_fetched_over_another(argusd, looks, tmp_path, error):
    there = tmp_path / "there"
    there.write_text("as it was")
    (argusd.root / "common" / "there").write_text("new")
    with looks.fail(there.name, error):
        done = client(argusd, looks, "files", "get", "common/there", there)
    assert (done.returncode != 0, there.read_text()) == (True, "as it was"), done.stderr
    assert os.strerror(error) in done.stderr, done.stderr


@each_error
def test_no_snapshot_without_its_rules(argusd, looks, tmp_path, error):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".gitignore").write_text("secret\n")
    (tree / "secret").write_text("key")
    name = f"rules@{error}"
    with looks.fail(".gitignore", error):
        done = client(argusd, looks, "snapshot", "add", tree, "--name", name)
    told = f"cannot read './.gitignore': {os.strerror(error)}"  # and not later, when it is packed itself
    assert done.returncode != 0 and told in done.stderr, (done.stdout, done.stderr)
    done = client(argusd, looks, "snapshot", "add", tree, "--name", name)
    assert done.returncode == 0, done.stderr
    assert not (argusd.root / f"users/alice/code/rules/{error}/secret").exists()
