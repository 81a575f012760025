# SPDX-License-Identifier: Apache-2.0
"""The Python client that notebooks have as `argus`: against a real argusd beside a fake Ray."""

import importlib.util
import pathlib
import subprocess

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def argus():
    spec = importlib.util.spec_from_file_location("argus_client", ROOT / "lib/argus_client.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    home = tmp_path_factory.mktemp("client")
    with FakeRay(state=home / "ray") as ray, Argusd(home, ray.url) as argusd:
        yield argusd


def test_submit_wait_and_what_came_of_it(argus, argusd, monkeypatch, tmp_path):
    monkeypatch.setenv("ARGUS_URL", argusd.url)
    monkeypatch.setenv("ARGUS_TOKEN", argusd.tokens["user"])
    seen = []
    line = '{"step": %d, "data": {"loss": %s}}'
    script = "".join(f"echo '{line % (s, v)}' >> $ARGUS_ATTEMPT_DIR/metrics.jsonl; " for s, v in ((1, 0.5), (2, 0.25)))
    job = argus.submit(argusd.spec(f"echo hello; {script}"), name="from a cell")
    assert job.wait(timeout=120, on_change=lambda j: seen.append(j.state)).state == "SUCCEEDED"
    assert seen[-1] == "SUCCEEDED" and "hello" in job.logs() and job.name == "from a cell"
    assert job.metrics(pandas=False) == [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25}]
    assert [j.id for j in argus.jobs(user="alice")] == [job.id]
    at = tmp_path / "job.yaml"
    at.write_text("workload: ray\nentrypoint: exit 3\n")
    failing = argus.submit(str(at))
    with pytest.raises(argus.Failed, match=failing.id):
        failing.wait(timeout=120)
    with pytest.raises(argus.Error) as refused:
        argus.submit({"workload": "rocket"})
    assert refused.value.status == 422 and refused.value.problem["problems"]


def test_settings_of_a_login_and_the_magic(argus, argusd, monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("ARGUS_URL", raising=False)
    monkeypatch.delenv("ARGUS_TOKEN", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(RuntimeError, match="argus login"):
        argus.jobs()
    login = [PROGRAMS["argus"], "login", argusd.url, "--token", argusd.tokens["user"]]
    subprocess.run(login, env={"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}, check=True)
    monkeypatch.setenv("ARGUS_URL", "http://127.0.0.1:1")
    with pytest.raises(RuntimeError, match="no server"):  # a token goes to no other server
        argus.jobs()
    monkeypatch.delenv("ARGUS_URL")
    registered = {}

    class Shell:
        def register_magic_function(self, function, kind, name):
            registered[name] = (function, kind)

    argus.load_ipython_extension(Shell())
    function, kind = registered["argus"]
    at = tmp_path / "job.yaml"
    at.write_text("workload: ray\nentrypoint: echo from the magic\n")
    job = function(f"submit {at} -w")
    assert kind == "line_cell" and job.state == "SUCCEEDED"
    function(f"logs {job.id}")
    assert "from the magic" in capsys.readouterr().out
    assert function(f"submit {at} n_gpus_per_node=1") is None, "a word that does nothing is not taken"
    assert function("dance") is None and "submit FILE" in capsys.readouterr().out
    cell = "workload: ray\nentrypoint: echo from the cell\n"
    made = function("submit", cell)
    assert argus.job(made.id).wait(timeout=120).id == made.id
    done = function("submit -w", cell)
    assert done.state == "SUCCEEDED" and "from the cell" in done.logs()
    for line in (f"submit {at}", f"status {done.id}", ""):
        assert function(line, cell) is None, "a cell is taken by submit alone, and is its spec"
    with pytest.raises(argus.Error):
        function("submit", "workload: rocket")
