# SPDX-License-Identifier: Apache-2.0
"""hook/sitecustomize.py: what a process imported is written down, by the oldest and the newest Python that is here, and
no job fails of it."""

import json
import os
import pathlib
import subprocess

import pytest
from test_hook import hook, interpreters, write  # noqa: F401  (one is a fixture)

FORK = "import os\npid = os.fork()\nif not pid:\n    import verl\n    os._exit(0)\nos.waitpid(pid, 0)\n"
SPAWN = (
    "import multiprocessing as m\n"
    "def look(): import verl\n"
    "if __name__ == '__main__':\n"
    "    p = m.get_context('spawn').Process(target=look); p.start(); p.join()\n"
)


EXTREMES = interpreters()[:: max(1, len(interpreters()) - 1)]
BY_NEWEST = pytest.mark.parametrize("python", EXTREMES[-1:], indirect=True, ids=["newest"])


@pytest.fixture(params=EXTREMES, ids=lambda p: pathlib.Path(p).name)
def python(request):
    return request.param


class Job:
    """A job's processes: its verl, the directory of its attempt, the variables that argusd gives."""

    def __init__(self, python, installed, place):
        self.python, self.hook, self.place = python, installed, place
        self.attempt, self.code, self.proof = place / "attempt", place / "code", place / "attempt/proof"
        self.proof.mkdir(parents=True)
        self.verl(self.code, "0.5.0")
        self.want = {"code": str(self.code), "expect": True, "snapshot": "verl@a", "hash": "cafe"}
        self.env = {"ARGUS_DRIVER_NODE": "w1"}

    def verl(self, directory, version, text=""):
        (directory / "verl").mkdir(parents=True)
        (directory / "verl/__init__.py").write_text(f"__version__ = {version!r}\n{text}\n")
        return directory

    def start(self, code, *path, options=(), cwd=None, **env):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ARGUS"))}
        path = ":".join(map(str, [self.hook, *(path or [self.code])]))
        mine = {"ARGUS_ATTEMPT_DIR": str(self.attempt), "ARGUS_PROOF": json.dumps(self.want), "PYTHONPATH": path}
        argv = [self.python, *options, *(code if isinstance(code, list) else ["-c", code])]
        env = {k: v for k, v in {**kept, **mine, **self.env, **env}.items() if v is not None}
        return subprocess.Popen(argv, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, code, *path, **more):
        process = self.start(code, *path, **more)
        out, err = process.communicate(timeout=300)
        assert (process.returncode, err) == (0, ""), err
        return out

    def records(self):
        return {p.name: json.loads(p.read_text()) for p in sorted(self.proof.iterdir())}

    def mismatches(self):
        return [r["mismatch"] for name, r in self.records().items() if name.startswith("mismatch-")]


@pytest.fixture
def job(python, hook, tmp_path):  # noqa: F811
    return Job(python, hook, tmp_path)


# ---- what is written ----


def test_driver_with_its_own_verl(job):
    job.run("import verl", cwd=job.place)
    (name, got), = job.records().items()
    assert (name, got["kind"], got["node"], got["main"]) == ("driver-w1-1.json", "driver", "w1", "-c")
    assert got["verl"] == {"version": "0.5.0", "file": f"{job.code}/verl/__init__.py"}
    assert (got["snapshot"], got["hash"], got["cwd"]) == ("verl@a", "cafe", str(job.place))
    assert str(job.code) in got["sys_path"] and got["python"] in job.run("import sys; print(sys.version)")


def test_versions_of_what_is_imported(job):
    lib = write(job.place / "lib", "torch.py", "__version__ = '2.13.0+cpu'\n")
    write(lib, "ray.py", "__version__ = '2.51.1'\n")
    job.run("import torch, ray, verl", job.code, lib)
    (got,) = job.records().values()
    assert (got["torch"], got["ray"]) == ("2.13.0+cpu", "2.51.1")


@BY_NEWEST
@pytest.mark.parametrize("how", ["file", "module", "nowhere"])
def test_reward_is_resolved_and_not_imported(job, how):
    package = write(job.code / "mine", "__init__.py", "raise SystemExit('imported')\n")
    write(package, "score.py", "raise SystemExit('imported')\n")
    job.want["reward"] = {"file": str(package / "score.py"), "module": "mine.score", "nowhere": "mine.absent"}[how]
    job.run("import verl")
    (got,) = job.records().values()
    found = None if how == "nowhere" else str(package / "score.py")
    assert got["reward"] == {"asked": job.want["reward"], "file": found}


def test_module_as_entrypoint(job):
    write(job.code / "verl/trainer", "__init__.py", "")
    write(job.code / "verl/trainer", "main_ppo.py", "import verl\n")
    job.run(["-m", "verl.trainer.main_ppo", "secret=1"])
    (got,) = job.records().values()
    assert got["main"] == "-m verl.trainer.main_ppo" and "secret" not in json.dumps(got)


@BY_NEWEST
def test_ray_worker_says_its_node(job):
    """A worker of Ray has its node's id among its arguments, and our name for it in the lease."""
    script = write(job.place, "default_worker.py", "import verl\n") / "default_worker.py"
    lease = {"job": "j", "attempt": 1, "gpus": 0, "nodes": [{"name": "w7", "id": "abc"}]}
    job.env = {"ARGUS_LEASE": json.dumps(lease)}
    for _ in range(5):
        job.run([str(script), "--node-id=abc"])
    assert sorted(job.records()) == [f"worker-w7-{n}.json" for n in (1, 2, 3)]
    job.run([str(script), "--node-id=unknown"])
    assert sorted(job.records())[0] == f"worker-{os.uname().nodename}-1.json"


def test_forked_and_spawned_children(job):
    script = write(job.place, "main.py", SPAWN) / "main.py"
    job.run(FORK)
    assert sorted(job.records()) == ["child-w1-1.json"]
    job.run([str(script)])
    got = job.records()
    assert sorted(got) == ["child-w1-1.json", "child-w1-2.json"]
    assert len({r["pid"] for r in got.values()}) == 2


@BY_NEWEST
def test_fork_with_threads(job):
    code = "import threading, time\nfor _ in range(8): threading.Thread(target=time.sleep, args=(1,)).start()\n"
    job.run("import warnings\nwarnings.simplefilter('ignore')\n" + code + FORK)
    assert sorted(job.records()) == ["child-w1-1.json"]


@BY_NEWEST
def test_hundreds_of_processes_leave_a_few_files(job):
    job.env = {}
    code = "import os\nfor _ in range(300):\n    if not os.fork():\n        import verl\n        os._exit(0)\n"
    job.run(code + "while True:\n    try: os.wait()\n    except ChildProcessError: break\n")
    assert sorted(job.records()) == [f"child-{os.uname().nodename}-{n}.json" for n in (1, 2)]
    assert job.mismatches() == []


def test_job_without_verl(job):
    """Its driver is proven when it starts, and once more by Ray, if it imports it."""
    work = write(job.place / "work", "main.py", "")
    job.want = {"code": None, "expect": False, "working_dir": str(work)}
    job.run([str(work / "main.py")], work, cwd=work)
    (got,) = job.records().values()
    assert (got["kind"], got["main"], got["cwd"], got["verl"]) == ("driver", str(work / "main.py"), str(work), None)
    assert got["working_dir"] == str(work)
    next(iter(job.proof.iterdir())).unlink()
    write(work, "ray.py", "__version__ = '9.9'\n")
    write(work, "main.py", "import ray\n")
    job.run([str(work / "main.py")], work)
    (got,) = job.records().values()
    assert got["ray"] == "9.9"


# ---- mismatches ----


def test_a_shadow_is_told_before_it_runs(job):
    shadow = job.verl(job.place / "site", "0.9.1", "import os; print(sorted(os.listdir(os.environ['PROOF'])))")
    out = job.run("import verl", shadow, job.code, PROOF=str(job.proof))
    assert out == "['mismatch-driver-w1-1.json']\n"
    assert job.mismatches() == [
        {"what": "verl", "expected": f"{job.code}/verl", "found": f"{shadow}/verl/__init__.py"}
    ]


def test_a_shadow_that_raises(job):
    shadow = job.verl(job.place / "site", "1", "raise RuntimeError('theirs')")
    job.run("try:\n    import verl\nexcept RuntimeError as e: print(e)", shadow, job.code)
    assert [m["found"] for m in job.mismatches()] == [f"{shadow}/verl/__init__.py"]


def test_in_the_working_directory_of_the_driver(job):
    work = job.verl(job.place / "work", "mine")
    job.run("import verl", cwd=work)
    assert [m["found"] for m in job.mismatches()] == [f"{work}/verl/__init__.py"]


def test_code_path_that_is_a_link(job):
    """A name of a snapshot is a link to its content: either way of writing the path is right."""
    link = job.place / "name"
    link.symlink_to(job.code)
    job.run("import verl", link)
    job.want["code"] = str(link)
    job.run("import verl", job.code)
    job.run("import verl", link)
    inside = job.place / "inside"
    inside.mkdir()
    (inside / "verl").symlink_to(job.code / "verl")
    job.want["code"] = str(inside)
    job.run("import verl", inside)
    assert job.mismatches() == []


@pytest.mark.parametrize("what", ["code", "working_dir"])
def test_a_directory_that_is_missing_here(job, what):
    job.want[what] = str(job.place / "gone")
    job.run("pass")
    assert job.mismatches() == [{"what": what, "expected": f"{job.place}/gone", "found": None}]


def test_no_verl_at_all(job):
    (job.code / "verl/__init__.py").unlink()
    (job.code / "verl").rmdir()
    job.run("try:\n    import verl\nexcept ImportError: print('none')", job.code)
    assert job.mismatches() == [{"what": "verl", "expected": f"{job.code}/verl", "found": None}]


def test_a_process_that_wants_another(job):
    shadow = job.verl(job.place / "other", "2")
    job.run("import verl", shadow, ARGUS_PROOF=None)
    assert job.records() == {}


# ---- nothing of it breaks a job ----


def test_no_place_to_write(job):
    """No directory, one that is a file, one that may not be written, a full disk."""
    says = "import verl; print(verl.__version__)"
    assert job.run(says, ARGUS_ATTEMPT_DIR="/nonexistent") == "0.5.0\n"
    assert job.run(says, ARGUS_ATTEMPT_DIR=None) == "0.5.0\n"
    job.proof.rmdir()
    assert job.run(says) == "0.5.0\n"
    job.proof.write_text("a file")
    assert job.run(says) == "0.5.0\n"
    job.proof.unlink()
    job.proof.symlink_to("/proc/self")  # nobody may make a file there
    assert job.run(says) == "0.5.0\n"


def test_a_full_disk_leaves_nothing(job):
    code = "import resource as r, signal as s\ns.signal(s.SIGXFSZ, s.SIG_IGN)\nr.setrlimit(r.RLIMIT_FSIZE, (64, 64))\n"
    assert job.run(code + "import verl; print(verl.__version__)") == "0.5.0\n"
    assert list(job.proof.iterdir()) == []


@BY_NEWEST
@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"code": 7, "expect": true}', '{"working_dir": {}}'])
def test_a_variable_that_is_no_text_of_ours(job, text):
    assert job.run("import verl; print(1)", ARGUS_PROOF=text) == "1\n"


@pytest.mark.parametrize("option", ["-S", "-I", "-E", "-s", "-O"])
def test_odd_ways_to_start(job, option):
    path = f"import sys; sys.path.insert(0, {str(job.code)!r}); import verl; print(verl.__version__)"
    assert job.run(path, options=[option], HOME=None, PATH=None) == "0.5.0\n"


@BY_NEWEST
@pytest.mark.parametrize(
    "code",
    [
        "del sys.meta_path",
        "sys.meta_path = None",
        "sys.meta_path.clear()",
        "sys.meta_path.insert(0, 7)",
        "sys.path = []",
        "sys.path[:0] = [b'x', None, '\\udcff']",
        "sys.modules.clear()",
        "sys.argv = None",
    ],
)
def test_a_job_that_breaks_its_own_import(job, code):
    """What it does is as without us."""
    tail = "try:\n    import verl\nexcept BaseException as e: print(type(e).__name__)\nos._exit(0)"
    script = f"import os, sys\n{code}\n{tail}"
    with_us, without = (job.start(script, ARGUS_PROOF=p).communicate(timeout=300) for p in (json.dumps(job.want), None))
    assert with_us == without


def test_sitecustomize_of_the_job(job):
    theirs = write(job.place / "theirs", "sitecustomize.py", "import sys, verl\nsys.ran = verl.__version__\n")
    assert job.run("import sys; print(sys.ran)", job.code, theirs) == "0.5.0\n"
    assert sorted(job.records()) == ["driver-w1-1.json"]


def test_verl_that_cannot_be_wrapped(job):
    """A finder of the job whose loader takes no attributes."""
    finder = (
        "import sys, importlib.machinery as m\n"
        "class L:\n"
        "    __slots__ = ()\n"
        "    def create_module(self, spec): return None\n"
        "    def exec_module(self, module): module.__version__ = 'theirs'\n"
        "class F:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'verl': return m.ModuleSpec(name, L())\n"
        "sys.meta_path.insert(1, F())\n"
        "import verl; print(verl.__version__)\n"
    )
    assert job.run(finder) == "theirs\n"
    assert [m["found"] for m in job.mismatches()] == [None]


def test_namespace_package(job):
    empty = job.place / "ns"
    (empty / "verl").mkdir(parents=True)
    (job.code / "verl/__init__.py").unlink()
    (job.code / "verl").rmdir()
    job.run("import verl; print(verl.__path__)", empty)
    assert [m["found"] for m in job.mismatches()] == [f"{empty}/verl"]


def test_by_a_pth_file(job):
    """verl was imported before us: it is looked at all the same."""
    code = f"import verl, runpy; runpy.run_path({str(job.hook / 'sitecustomize.py')!r})"
    shadow = job.verl(job.place / "site", "3")
    job.run(code, shadow, options=["-S"])
    assert [m["found"] for m in job.mismatches()] == [f"{shadow}/verl/__init__.py"]


def test_names_are_plain(job):
    job.env = {"ARGUS_DRIVER_NODE": "../../x/" + "n" * 300}
    job.run("import verl")
    (name,) = job.records()
    assert pathlib.Path(name).name == name and len(name) < 255
