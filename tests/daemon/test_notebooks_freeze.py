# SPDX-License-Identifier: Apache-2.0
"""'argus notebook freeze': what pip put into the overlay of a notebook becomes a snapshot with which a job runs. The
overlay is made by the program of the lease itself; the lease is not needed for it."""

import argparse
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import venv
import zipfile

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd
LIB = pathlib.Path(__file__).resolve().parents[2] / "lib"


def moo_wheel(folder, version):
    """A package for pip, of one module."""
    at, info = folder / f"moo-{version}-py3-none-any.whl", f"moo-{version}.dist-info"
    with zipfile.ZipFile(at, "w") as z:
        z.writestr("moo/__init__.py", f"SAYS = 'moo {version}'\n")
        z.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: moo\nVersion: {version}\n")
        z.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(f"{info}/RECORD", "")
    return at


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    home = tmp_path_factory.mktemp("freeze")
    with FakeRay(state=home / "ray") as ray, Argusd(home, ray.url) as argusd:
        reply = argusd.call("POST", "/v1/notebooks", {"name": "main", "snapshot": "none@1"}, token="user")
        assert reply.status == 201, reply
        yield argusd


@pytest.fixture(scope="module")
def overlay(argusd):
    """That of alice's notebook, as a start of it leaves it."""
    sys.path.insert(0, str(LIB))
    try:
        program = importlib.import_module("argus_notebook")
    finally:
        sys.path.remove(str(LIB))
    home = argusd.root / "users/alice"
    os.environ[program.TOKEN_ENV] = "a token"
    try:
        env = program.prepare(
            argparse.Namespace(name="main", home=str(home), pip_index_url=None, pip_trusted_host=None)
        )
    finally:
        del os.environ[program.TOKEN_ENV]
    shutil.rmtree(env["JUPYTER_RUNTIME_DIR"])
    return pathlib.Path(env["VIRTUAL_ENV"])


# What the program of a lease does before it starts the server, in an interpreter of its own.
PREPARE = """
import argparse, sys
sys.path.insert(0, sys.argv[1])
import argus_notebook as program
words = argparse.Namespace(name=sys.argv[2], home=sys.argv[3], pip_index_url=None, pip_trusted_host=None)
print(program.prepare(words)["VIRTUAL_ENV"])
"""


def install(overlay, wheel):
    words = ["-m", "pip", "install", "--no-index", "--no-deps", "--upgrade", str(wheel)]
    done = subprocess.run([overlay / "bin/python", *words], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done


def freeze(argusd, name="main", token="user", **body):
    return argusd.call("POST", f"/v1/notebooks/{name}:freeze", body, token=token)


def site_of(overlay):
    return next(overlay.glob("lib/python3.*/site-packages"))


def strays(argusd):
    return list((argusd.root / "argus/uploads").iterdir())


def test_before_its_first_start_there_is_nothing(argusd):
    reply = freeze(argusd)
    assert (reply.status, reply.json()["code"]) == (409, "freeze_no_overlay"), reply
    assert freeze(argusd, "other").status == 404
    assert freeze(argusd, token="admin").status == 404, "it is alice's"
    assert freeze(argusd, token="viewer").status == 403


def test_a_job_runs_with_what_was_installed(argusd, overlay, tmp_path):
    install(overlay, moo_wheel(tmp_path, "1.2"))
    reply = freeze(argusd, snapshot="moo@1")
    assert reply.status == 201 and reply.json()["name"] == "moo@1", reply
    assert not reply.json()["needs"], "its versions are not what a machine must have"
    tree = argusd.root / "users/alice/code/moo/1"
    assert "moo==1.2\n" in (tree / "argus-packages.txt").read_text()
    said = json.loads((tree / "argus-environment.json").read_text())
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    assert said == {"environment": overlay.name.removeprefix("overlay-"), "python": version}
    install(overlay, moo_wheel(tmp_path, "1.3"))  # changes nothing of what is frozen
    line = f"{sys.executable} -c 'import moo; print(moo.SAYS)'"
    job = argusd.submit(argusd.spec(line, working_dir="moo@1"))
    argusd.wait_job(job, lambda v: v["state"] == "SUCCEEDED", "imports it")
    assert "moo 1.2" in argusd.call("GET", f"/v1/jobs/{job}/logs", token="user").body.decode()
    until(lambda: strays(argusd) == [], "what was packed is gone")


def test_the_command_and_a_name_by_itself(argusd, overlay, tmp_path):
    install(overlay, moo_wheel(tmp_path, "2.0"))
    env = {"ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "HOME": str(tmp_path), "LANG": "C"}
    words = [PROGRAMS["argus"], "notebook", "freeze", "main"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and "snapshot main-packages@2" in done.stdout + done.stderr, done
    named = subprocess.run([*words, "--as", "two@1"], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert named.returncode == 0, named
    again = freeze(argusd, snapshot="two@1")
    assert (again.status, again.json()["code"]) == (409, "snapshot_other"), again
    assert freeze(argusd, snapshot="../two").status >= 400


def test_where_the_environment_has_no_pip(argusd, tmp_path):
    """The overlay has one of its own. What Python puts beside it before 3.12 is no package of the user's, and does not
    hide that of the environment."""
    reply = argusd.call("POST", "/v1/notebooks", {"name": "bare", "snapshot": "none@1"}, token="user")
    assert reply.status == 201, reply
    venv.create(tmp_path / "bare", symlinks=True)
    (site,) = tmp_path.glob("bare/lib/python3.*/site-packages")
    (site / "setuptools.py").write_text("__version__ = 'of the environment'\n")
    argv = [tmp_path / "bare/bin/python", "-c", PREPARE, LIB, "bare", argusd.root / "users/alice"]
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), "ARGUS_NOTEBOOK_TOKEN": "a token"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done
    overlay = pathlib.Path(done.stdout.splitlines()[-1])
    say = [overlay / "bin/python", "-c", "import setuptools; print(setuptools.__version__)"]
    assert subprocess.run(say, capture_output=True, text=True, check=True).stdout == "of the environment\n"
    assert [p.name.partition("-")[0] for p in site_of(overlay).glob("*.dist-info")] == ["pip"]
    reply = freeze(argusd, "bare")
    assert (reply.status, reply.json()["code"]) == (409, "freeze_nothing"), reply
    install(overlay, moo_wheel(tmp_path, "1.4"))
    reply = freeze(argusd, "bare", snapshot="bare@1")
    assert reply.status == 201, reply
    kept = argusd.root / "users/alice/code/bare/1"
    assert (kept / "argus-packages.txt").read_text() == "moo==1.4\n"
    assert {p.name for p in kept.glob("*.dist-info")} == {"moo-1.4.dist-info"}


def test_a_record_that_leads_elsewhere(argusd, overlay):
    """The notebook's own programs can write what they like into the user's directory."""
    record = argusd.root / "users/alice/.argus/notebooks/main/overlay"
    kept = record.read_text()
    (argusd.root / "users/bob/secret-1.dist-info").mkdir(parents=True)
    away = site_of(overlay) / "away"
    away.symlink_to(argusd.root / "users/bob")
    try:
        for text in ("../../../bob python3.11\n", "overlay-0123456789ab ../../../bob\n", "x" * 5000):
            record.write_text(text)
            reply = freeze(argusd, snapshot="stolen@1")
            assert reply.status >= 400, reply
            assert argusd.call("GET", "/v1/snapshots/stolen@1", token="user").status == 404
        record.write_text(kept)
        assert freeze(argusd, snapshot="own@1").status == 201
        assert not (argusd.root / "users/alice/code/own/1/away").exists(), "a link is not part of it"
    finally:
        record.write_text(kept)
        away.unlink()
    until(lambda: strays(argusd) == [], "nothing of it is left")
