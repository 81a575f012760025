# SPDX-License-Identifier: Apache-2.0
"""hook/sitecustomize.py: chains, shadows nothing, writes nothing, breaks nothing, in every Python that is here."""

import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from hookfile import ROOT, place_hook

HOOK = ROOT / "hook"


def interpreters():
    """One per minor version from 3.8: this one, those on PATH, those of pyenv and /usr/bin."""
    found = {}
    roots = [os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")) + "/versions/*/bin", "/usr/bin"]
    for path in [sys.executable] + [p for root in roots for p in sorted(glob.glob(root + "/python3.*"))]:
        if not path.rsplit("python", 1)[-1].replace("3.", "", 1).isdigit() and path != sys.executable:
            continue
        ask = [path, "-SEc", "import sys; print(*sys.version_info[:2])"]
        done = subprocess.run(ask, capture_output=True, text=True)
        if done.returncode == 0:
            version = tuple(map(int, done.stdout.split()))
            if version >= (3, 8):
                found.setdefault(version, path)
    return [found[v] for v in sorted(found)]


@pytest.fixture(params=interpreters(), ids=lambda p: pathlib.Path(p).name)
def python(request):
    return request.param


@pytest.fixture
def hook(tmp_path):
    """As fsroot_install() places it."""
    installed = tmp_path / "hook"
    installed.mkdir()
    place_hook(installed)
    (installed / "__pycache__").touch(0o444)
    return installed


def run(python, *path, code, cwd=None, options=()):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env["PYTHONPATH"] = ":".join(map(str, path))
    done = subprocess.run([python, *options, "-c", code], env=env, cwd=cwd, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done


def write(directory, name, text):
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(text)
    return directory


def test_next_one_is_the_real_one(python, hook, tmp_path):
    theirs = write(tmp_path / "theirs", "sitecustomize.py", "import sys\nsys.ran = __file__\nvalue = 7\n")
    code = "import sys, sitecustomize as s; print(sys.ran, s.__file__, s.value, s.__name__)"
    done = run(python, hook, theirs, code=code)
    file = str(theirs / "sitecustomize.py")
    assert done.stdout.split() == [file, file, "7", "sitecustomize"]
    assert done.stderr == ""


def test_only_the_first_of_the_others_runs_and_once(python, hook, tmp_path):
    count = "import sys\nsys.ran = getattr(sys, 'ran', '') + {!r}\n"
    a = write(tmp_path / "a", "sitecustomize.py", count.format("a"))
    b = write(tmp_path / "b", "sitecustomize.py", count.format("b"))
    assert run(python, hook, a, b, code="import sys; print(sys.ran)").stdout == "a\n"


def test_package_as_sitecustomize(python, hook, tmp_path):
    package = tmp_path / "p" / "sitecustomize"
    package.mkdir(parents=True)
    write(package, "__init__.py", "from . import inner\n")
    write(package, "inner.py", "value = 5\n")
    done = run(python, hook, tmp_path / "p", code="import sitecustomize; print(sitecustomize.inner.value)")
    assert done.stdout == "5\n"


def test_nobody_behind_us(python, hook):
    done = run(python, hook, code="import sys; print('fine')", options=["-S"])
    assert (done.stdout, done.stderr) == ("fine\n", "")
    done = run(python, hook, code="print('fine')")
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_twice_on_the_path_and_a_second_copy(python, hook, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(hook, copy)
    link = tmp_path / "link"
    link.symlink_to(hook)
    theirs = write(tmp_path / "theirs", "sitecustomize.py", "import sys\nsys.ran = getattr(sys, 'ran', 0) + 1\n")
    done = run(python, hook, copy, link, hook, theirs, copy, code="import sys; print(sys.ran)")
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_what_theirs_adds_to_the_path_stays(python, hook, tmp_path):
    theirs = write(tmp_path / "theirs", "sitecustomize.py", "import sys\nsys.path.append('/added')\n")
    assert run(python, hook, theirs, code="import sys; print('/added' in sys.path)").stdout == "True\n"


@pytest.mark.parametrize("broken", ["raise ValueError('theirs')", "import no_such_module", "this is no python"])
def test_a_broken_one_breaks_as_without_us(python, hook, tmp_path, broken):
    theirs = write(tmp_path / "theirs", "sitecustomize.py", broken + "\n")
    code = "import sys; print('started', 'sitecustomize' in sys.modules)"
    without = run(python, theirs, code=code)
    with_us = run(python, hook, theirs, code=code)
    assert without.stdout == "started False\n"
    assert with_us.stdout == without.stdout
    assert with_us.stderr == without.stderr


def test_our_own_failure_is_silent(python, hook, tmp_path):
    """A finder of the job that raises, entries that are no text, a working directory that is gone."""
    gone = tmp_path / "gone"
    gone.mkdir()
    bad = (
        "import os, sys\n"
        "class Bad:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'sitecustomize': raise RuntimeError('theirs')\n"
        "sys.path[:0] = [b'bytes', 3, None]\n"
        f"os.rmdir({str(gone)!r})\n"
        "sys.meta_path.append(Bad())\n"
        f"exec(compile(open({str(hook / 'sitecustomize.py')!r}).read(), 'x', 'exec'), {{'__file__': 'relative.py'}})\n"
        "print('alive')"
    )
    done = run(python, code=bad, cwd=gone, options=["-I"])
    assert (done.stdout, done.stderr) == ("alive\n", "")


def test_nothing_is_shadowed_and_nothing_written(python, hook, tmp_path):
    assert sorted(p.name for p in hook.iterdir()) == ["__pycache__", "sitecustomize.py"]
    find = "import pkgutil\nprint([x.name for x in pkgutil.iter_modules(%r)])"
    assert run(python, hook, code=find % [str(hook)]).stdout == "['sitecustomize']\n"
    theirs = write(tmp_path / "theirs", "sitecustomize.py", "")
    write(theirs, "__pycache__.py", "mine = True\n")
    done = run(python, hook, theirs, code="import __pycache__ as p; print(p.mine)")
    assert done.stdout == "True\n"
    assert (hook / "__pycache__").stat().st_size == 0
    assert sorted(p.name for p in hook.iterdir()) == ["__pycache__", "sitecustomize.py"]


def test_modules_of_the_job_are_found_where_they_were(python, hook, tmp_path):
    job = write(tmp_path / "job", "json.py", "theirs = True\n")  # the job shadows what it likes
    done = run(python, hook, job, code="import json; print(json.theirs)")
    assert done.stdout == "True\n"


def test_spawned_and_forked_children_have_it(python, hook, tmp_path):
    theirs = write(tmp_path / "theirs", "sitecustomize.py", "import sys\nsys.ran = True\n")
    script = write(tmp_path, "spawn.py", (
        "import multiprocessing as m, sys\n"
        "def look(q): q.put(getattr(sys, 'ran', False))\n"
        "if __name__ == '__main__':\n"
        "    for how in ('fork', 'spawn'):\n"
        "        c = m.get_context(how); q = c.Queue(); p = c.Process(target=look, args=(q,)); p.start()\n"
        "        print(q.get()); p.join()\n"
    )) / "spawn.py"  # fmt: skip
    done = run(python, hook, theirs, code=f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    assert done.stdout == "True\nTrue\n"


def test_a_line_is_written_whole(python, hook):
    """Threads, or stdout and stderr, share a log: a print() is one write. A pipe of packets tells writes apart."""
    code = (
        "import sys; print('a', 'b'); print('c', end=''); sys.stdout.flush(); print('d', file=sys.stderr);"
        "print('e', end='\\r'); print('f', end='')"
    )
    for argv in ([python, "-c", code], [python, "-u", "-c", code]):
        ours, theirs = os.pipe2(os.O_DIRECT)
        env = {**os.environ, "PYTHONPATH": str(hook), "PYTHONUNBUFFERED": "1"}
        subprocess.run(argv, env=env, stdout=theirs, stderr=theirs, timeout=240, check=True)
        os.close(theirs)
        with os.fdopen(ours, "rb", buffering=0) as pipe:
            assert list(iter(lambda: pipe.read(4096), b"")) == [b"a b\n", b"c", b"d\n", b"e\r", b"f"]


def test_secrets_come_by_file(python, hook, tmp_path, monkeypatch):
    """They replace what the machine has; what the process changes afterwards is what its children have."""
    (tmp_path / "s").write_text('{"MY_TOKEN": "caf\\u00e9 \\" x", "B": ""}')
    monkeypatch.setenv("ARGUS_SECRETS", str(tmp_path / "s"))
    monkeypatch.setenv("MY_TOKEN", "of the machine")
    child = "import os; print(os.environ['MY_TOKEN'], repr(os.environ['ARGUS_SECRETS']))"
    code = (
        "import os, subprocess, sys\n"
        "print(ascii(os.environ['MY_TOKEN']), repr(os.environ['B']), flush=True)\n"
        f"os.environ['MY_TOKEN'] = 'mine'\nsubprocess.run([sys.executable, '-c', {child!r}], check=True)\n"
    )
    done = run(python, hook, code=code)
    assert done.stdout.splitlines() == ["'caf\\xe9 \" x' ''", "mine ''"]
    assert done.stderr == ""


NETWORK = "import os; print(*(os.environ.get(k) for k in ('NCCL_SOCKET_IFNAME', 'NCCL_IB_HCA', 'NCCL_IB_DISABLE')))"


def test_network_of_the_node(python, hook, monkeypatch):
    """Of this node alone, by its name or by Ray's id of it, and only what nobody has set."""
    nodes = [
        {"name": "w1", "id": "aa", "env": {"NCCL_SOCKET_IFNAME": "=eth0", "NCCL_IB_HCA": "=mlx5_0:1"}},
        {"name": "w2", "id": "bb", "env": {"NCCL_SOCKET_IFNAME": "=bond0", "NCCL_IB_DISABLE": "1"}},
        {"name": "w3", "id": "cc"},
    ]
    monkeypatch.setenv("ARGUS_LEASE", json.dumps({"job": "j", "attempt": 1, "gpus": 1, "nodes": nodes}))
    said = {}
    for name in ("w1", "w2", "w3", "w4"):
        monkeypatch.setenv("ARGUS_NODE", name)
        said[name] = run(python, hook, code=NETWORK).stdout.split()
    none = ["None"] * 3
    assert said == {"w1": ["=eth0", "=mlx5_0:1", "None"], "w2": ["=bond0", "None", "1"], "w3": none, "w4": none}
    monkeypatch.delenv("ARGUS_NODE")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth9")
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | {"PYTHONPATH": str(hook)}
    worker = [python, "-c", NETWORK, "--node-id=bb"]
    done = subprocess.run(worker, env=env, capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.split() == ["eth9", "None", "1"]


@pytest.mark.parametrize("text", ['{"env"', '{"nodes": 7, "": "env"}', '{"nodes": [{"name": "w1", "env": 7}]}'])
def test_a_lease_that_cannot_be_read_breaks_nothing(hook, monkeypatch, text):
    monkeypatch.setenv("ARGUS_LEASE", text)
    monkeypatch.setenv("ARGUS_NODE", "w1")
    run(sys.executable, hook, code=NETWORK)


@pytest.mark.parametrize("text", [None, "canary-1234 is no JSON", '["canary-1234"]', '{"A": 7}'])
def test_secrets_that_cannot_be_read(hook, tmp_path, monkeypatch, text):
    """One line, without a word of the file, and the process goes on."""
    path = tmp_path / "s"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv("ARGUS_SECRETS", str(path))
    done = run(sys.executable, hook, code="print('on')")
    assert done.stdout == "on\n"
    assert f"the job's secrets could not be read from {path}: " in done.stderr
    assert "canary" not in done.stderr


# verl 0.9.1's way of using RL-Insight, and an RL-Insight whose server takes the connection and never answers.
HANGING_INSIGHT = """
import os
from contextlib import contextmanager
from threading import Event


class RLInsightLogger:
    _init_done = False

    def __init__(self, project_name, experiment_name, config=None):
        self._ensure_rl_insight_init()

    @classmethod
    def enabled(cls):
        return os.environ.get("VERL_RL_INSIGHT_ENABLE") == "1"

    @classmethod
    def _ensure_rl_insight_init(cls):
        if not cls._init_done:
            if os.environ["INSIGHT"] == "hangs":
                Event().wait()
            if os.environ["INSIGHT"] == "fails":
                raise SystemExit("no server")
            cls._init_done = True

    @classmethod
    @contextmanager
    def trace_state(cls, name, *, state_lane_id=None):
        cls._ensure_rl_insight_init()
        print("timed", name, flush=True)
        yield

    @classmethod
    def trace_span(cls, name, *, start_time_ns, end_time_ns):
        cls._ensure_rl_insight_init()

    @classmethod
    def log(cls, data, step):
        cls._ensure_rl_insight_init()
        print("told", step, flush=True)

    @classmethod
    def finish(cls):
        print("finished", flush=True)


class Tracking:
    def __init__(self, project_name, experiment_name, default_backend="console", config=None):
        self.logger = {}
        if "rl_insight" in default_backend:
            self.logger["rl_insight"] = RLInsightLogger(project_name, experiment_name, config)

    def log(self, data, step):
        for logger in self.logger.values():
            logger.log(data=data, step=step)
"""
INSIGHT_TRAINING = """
import os
from verl.utils.tracking import RLInsightLogger, Tracking
if os.environ["INSIGHT_IN"] == "trainer":
    tracking = Tracking("p", "e", default_backend=["console", "rl_insight"])
for step in range(1, 4):
    with RLInsightLogger.trace_state("step", state_lane_id="rank_0"):
        RLInsightLogger.trace_span("part", start_time_ns=1, end_time_ns=2)
    if os.environ["INSIGHT_IN"] == "trainer":
        tracking.log({"a": step}, step)
print("trained", flush=True)
if os.environ["INSIGHT"] == "hangs":
    os._exit(0)  # its end waits for trackers, which is another matter
"""


def test_its_word_takes_no_lock_of_the_stream(python):
    """Python aborts a process that ends while a thread is inside the write of a stream: a training, by our thread."""
    say = f"import io, os, sys; exec(open({str(HOOK / 'argus_say.py')!r}).read()); "
    assert run(python, code=say + "sys.stderr.write = lambda s: os._exit(9); _argus_say('a')").stderr == "argus: a\n"
    no_file = "sys.stderr = s = io.StringIO(); _argus_say('a'); print(s.getvalue(), end='')"
    assert run(python, code=say + no_file).stdout == "argus: a\n"
    assert run(python, code=say + "sys.stderr = None; _argus_say('a'); print('goes on')").stdout == "goes on\n"


@pytest.mark.parametrize("place", ["trainer", "worker"])
@pytest.mark.parametrize("way", ["works", "hangs", "fails"])
def test_an_insight_that_hangs_stalls_no_training(hook, tmp_path, monkeypatch, way, place):
    """Neither where its logger is made, nor in the processes that only time their steps with it."""
    utils = tmp_path / "site/verl/utils"
    utils.mkdir(parents=True)
    for package in (utils, utils.parent):
        (package / "__init__.py").touch()
    (utils / "tracking.py").write_text(HANGING_INSIGHT)
    for key, value in {"ARGUS_TRACKERS": "guarded", "VERL_RL_INSIGHT_ENABLE": "1"}.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("INSIGHT", way)
    monkeypatch.setenv("INSIGHT_IN", place)
    said = run(sys.executable, hook, tmp_path / "site", code=INSIGHT_TRAINING).stdout.splitlines()
    assert "trained" in said
    told = [line for line in said if line.startswith(("told", "finished"))]
    assert told == (["told 1", "told 2", "told 3", "finished"] if (way, place) == ("works", "trainer") else [])
    assert way == "works" or not any(line.startswith("timed") for line in said)
