# SPDX-License-Identifier: Apache-2.0
"""What set-up installs is, byte for byte, what the lock files name."""

import hashlib
import importlib.util
import os
import pathlib
import re
import sys
import zipfile

import pytest

SETUP = pathlib.Path(__file__).resolve().parents[2] / "tools/setup"


@pytest.fixture(scope="module")
def env():
    spec = importlib.util.spec_from_file_location("setup_env", SETUP / "env.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def place(tmp_path):
    """An environment of its own, and beside it the only package that there is."""
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    info = "locked-1.0.dist-info"
    with zipfile.ZipFile(tmp_path / "locked-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("locked.py", "")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: locked\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"locked.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return tmp_path


def install(env, place, pin):
    where = ("--no-index", "--find-links", os.fspath(place), "--target", os.fspath(place / "out"))
    env.install(place, [pin], "it", *where)


def test_another_file_than_the_locked_one_is_refused(env, place, capfd):
    digest = hashlib.sha256((place / "locked-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    other = digest[:-1] + ("0" if digest[-1] != "0" else "1")
    for pin, why in ((f"locked==1.0 --hash=sha256:{other}", "DO NOT MATCH THE HASHES"), ("locked==1.0", "--hash=")):
        with pytest.raises(SystemExit):
            install(env, place, pin)
        assert why in capfd.readouterr().err
        assert not (place / "out").exists()
    install(env, place, f"locked==1.0 --hash=sha256:{digest}")
    assert (place / "out/locked.py").exists()


def test_every_pin_has_hashes_and_a_changed_one_is_another_environment(env, monkeypatch):
    form = re.compile(r"[a-z0-9._-]+==[^ ;]+( ; [^\\]+?)?( --hash=sha256:[0-9a-f]{64})+")
    for name in env.names():
        wanted = env.pins(name)
        assert wanted
        assert [p for p in wanted if not form.fullmatch(p)] == []
        assert not [p for p in wanted if "://" in p]
        before = env.env_path(name)
        with monkeypatch.context() as patch:
            patch.setattr(env, "pins", lambda _, wanted=wanted: [*wanted[:-1], wanted[-1][:-1] + "x"])
            assert env.env_path(name) != before
    assert form.fullmatch(env.PIP)
