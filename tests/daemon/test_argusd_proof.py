# SPDX-License-Identifier: Apache-2.0
"""What was imported: the real hook writes it, the real shepherd ends what is wrong, argusd and the CLI tell it."""

import json
import os
import subprocess
import sys

import pytest
from fakeray import FakeRay
from programs import PROGRAMS
from shepherding import Attempt, needs_shepherd, wait_for
from snapshots import added, tar
from snapshots import verl as tree_of_verl

from argusd import Argusd, needs_argusd, until

STAY = "import time; print('imported', flush=True); time.sleep(600)"
RECORD = {"kind": "worker", "node": "w2", "pid": 12}
BAD = {"what": "verl", "expected": "/code/verl", "found": "/site/verl/__init__.py"}
SENTENCE = "verl was imported from '/site/verl/__init__.py' and not from '/code/verl' (worker process 12 on w2)"


# ---- the shepherd alone ----


@pytest.fixture
def attempt(tmp_path):
    with Attempt(tmp_path) as a:
        (a.dir / "proof").mkdir()
        yield a


def put(attempt, name, record):
    """As the hook does it: whole or not there."""
    new = attempt.dir / "proof/.new"
    new.write_text(json.dumps(record))
    new.rename(attempt.dir / "proof" / name)


@needs_shepherd
def test_a_mismatch_on_another_node_ends_the_command(attempt):
    attempt.shell("trap 'echo asked' TERM; echo up; while :; do sleep 0.1; done").start()
    attempt.said("up")
    put(attempt, "worker-w2-1.json", RECORD)
    put(attempt, "mismatch-worker-w2-1.json", {**RECORD, "mismatch": BAD})
    attempt.said("asked")  # it does not obey, and has no hour for it
    rc, out = attempt.finish()
    end = attempt.exit()
    assert (rc, end["cause"], end["class"], end["signal"]) == (92, "mismatch", "import_error", "SIGKILL")
    assert end["sentence"] == SENTENCE + "; the command was killed by SIGKILL"
    assert SENTENCE in out and end["stop_reason"] is None


@needs_shepherd
@pytest.mark.parametrize("code", [0, 1])
def test_a_command_that_ends_before_it_was_seen(attempt, code):
    """However it ended by itself: it was not this job's code."""
    put(attempt, "kept", {**RECORD, "mismatch": BAD})
    proof = attempt.dir / "proof"
    assert attempt.shell(f"mv {proof}/kept {proof}/mismatch-worker-w2-1.json; exit {code}").run()[0] == 92
    end = attempt.exit()
    assert (end["cause"], end["class"]) == ("mismatch", "import_error")
    assert end["sentence"].startswith(SENTENCE)


@needs_shepherd
def test_who_stops_it_is_heard_first(attempt):
    attempt.shell("trap 'exit 3' TERM; echo up; while :; do sleep 0.1; done").start()
    attempt.said("up")
    (attempt.dir / "stop").write_text("by alice")
    rc, _ = attempt.finish()
    assert (rc, attempt.exit()["cause"], attempt.exit()["class"]) == (3, "stopped", None)


@needs_shepherd
def test_files_that_are_no_records(attempt):
    proof = attempt.dir / "proof"
    (proof / "mismatch-a.json").mkdir()
    (proof / "mismatch-b.json").write_bytes(b"\xff\x00{")
    (proof / "mismatch-c.json").symlink_to("/dev/zero")
    (proof / "mismatch-d.json").symlink_to("nowhere")
    with open(proof / "mismatch-e.json", "wb") as f:
        f.truncate(1 << 40)
    os.mkfifo(proof / "mismatch-f.json")
    put(attempt, "mismatch-g.json", RECORD)
    assert attempt.shell("sleep 1.5").run()[0] == 0
    assert attempt.exit()["cause"] == "exit"


# ---- argusd, on a Ray that runs the driver alone ----


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("proof"), ray.url) as a:
        for name, version in (("old", "0.5.0"), ("new", "0.9.1")):
            verl(a.root / "common/code" / name, version)
        verl(a.root / "common/work", "mine")
        (a.root / "common/work/train.py").write_text(f"import verl\n{STAY}\n")
        yield a


def verl(directory, version):
    (directory / "verl/version").mkdir(parents=True)
    (directory / "verl/version/version").write_text(version + "\n")
    (directory / "verl/__init__.py").write_text(f"__version__ = {version!r}\n")


def code(argusd, name):
    return str(argusd.root / "common/code" / name)


def run(argusd, script, **keys):
    return argusd.submit(argusd.spec([sys.executable, "-c", script]), **keys)


def status(argusd, job):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "LANG": "C.UTF-8"}
    argv = [PROGRAMS["argus"], "status", job]
    return subprocess.run(argv, env=env, check=True, capture_output=True, text=True, timeout=240).stdout


@needs_argusd
def test_two_versions_at_once_each_with_its_own(argusd):
    jobs = {n: run(argusd, f"import verl\n{STAY}", code_path=code(argusd, n)) for n in ("old", "new")}
    for name, version in (("old", "0.5.0"), ("new", "0.9.1")):
        proven = lambda v: (v["proof"] or {}).get("imports")  # noqa: E731
        imports = argusd.wait_job(jobs[name], proven, "is proven")["proof"]["imports"]
        file = f"{code(argusd, name)}/verl/__init__.py"
        assert (imports["ok"], imports["verl"], imports["file"], imports["attempt"]) == (True, version, file, 1)
        (process,) = imports["processes"]
        node = argusd.job(jobs[name])["nodes"][0]["name"]
        assert (process["kind"], process["node"], imports["nodes"]) == ("driver", node, [node])
        assert f"verl {version} from {file}, on {node}" in status(argusd, jobs[name])
        told = [e for e in argusd.events(jobs[name]) if e["kind"] == "imported"]
        assert [e["text"] for e in told] == [f"verl {version} was imported from '{file}'"]
    for job in jobs.values():
        argusd.stop_job(job)
    for job in jobs.values():
        argusd.wait_over(job)
        assert argusd.job(job)["proof"]["imports"]["ok"]


@needs_argusd
def test_snapshot_is_part_of_the_proof(argusd):
    one = added(argusd, "proven@1", tar(tree_of_verl("0.7.1", "x")))
    job = run(argusd, "import verl", code="proven@1")
    view = argusd.wait_over(job)
    imports = view["proof"]["imports"]
    assert (view["state"], imports["ok"]) == ("SUCCEEDED", True)
    assert (imports["snapshot"], imports["hash"]) == ("proven@1", one["hash"])
    assert f"= proven@1 ({one['hash']}), on " in status(argusd, job)


@needs_argusd
def test_a_shadow_ends_as_import_error(argusd):
    """In the working directory, where Python looks first. It is not started again."""
    work = str(argusd.root / "common/work")
    again = {"max": 3, "on": ["node_lost", "infra"]}
    job = run(argusd, f"import verl\n{STAY}", code_path=code(argusd, "old"), working_dir=work, restart=again)
    view = argusd.wait_over(job)
    assert (view["state"], view["reason"]["code"], view["finding"]["class"]) == ("FAILED", *["import_error"] * 2)
    assert (view["exit"]["cause"], len(view["attempts"])) == ("mismatch", 1)
    both = f"verl was imported from '{work}/verl/__init__.py' and not from '{code(argusd, 'old')}/verl' (driver process"
    assert view["reason"]["text"].startswith(both)
    imports = view["proof"]["imports"]
    assert imports["ok"] is False and imports["mismatch"].startswith(both)
    assert both in status(argusd, job)
    told = [e["reason"]["code"] for e in argusd.events(job) if e["kind"] == "imported"]
    assert told == ["import_error"]


@needs_argusd
def test_a_path_that_is_gone_when_it_starts(argusd):
    path = argusd.root / "common/code/gone"
    verl(path, "0.5.0")
    gate = argusd.root / "common/gate"
    wait = f"while [ ! -e {gate} ]; do sleep 0.1; done; {sys.executable} -c 'import verl'"
    job = argusd.submit(wait, code_path=str(path))
    argusd.wait_state(job, "RUNNING")
    path.rename(argusd.root / "common/code/moved")
    gate.touch()
    view = argusd.wait_over(job)
    assert (view["state"], view["reason"]["code"]) == ("FAILED", "import_error")
    assert view["reason"]["text"].startswith(f"the job's code_path '{path}' is not there (driver process")


@needs_argusd
def test_a_node_that_shows_nothing_is_told_and_left_alone(argusd):
    """Its gang is on two nodes, and one alone has proven anything when it trains."""
    gate = argusd.root / "common/trains"
    wait = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.1)\n"
    steps = [f"print('{line}', flush=True)\n" for line in ("step:0 - val:1", "(x) step:1 - loss:0.5")]
    script = "import verl\n" + steps[0] + wait + steps[1] + STAY
    job = run(argusd, script, code_path=code(argusd, "old"), nnodes=2, n_gpus_per_node=1)
    proven = lambda v: (v["proof"] or {}).get("imports")  # noqa: E731
    view = argusd.wait_job(job, proven, "is proven")
    assert "imports_missing" not in argusd.kinds(job)
    gate.touch()
    until(lambda: "imports_missing" in argusd.kinds(job), "the silence is told")
    (event,) = [e for e in argusd.events(job) if e["kind"] == "imports_missing"]
    (silent,) = {n["name"] for n in view["nodes"]} - set(view["proof"]["imports"]["nodes"])
    assert event["reason"]["code"] == "no_proof" and f"no process on node {silent} " in event["text"]
    assert argusd.job(job)["state"] == "RUNNING"
    argusd.stop_job(job)
    argusd.wait_over(job)
    assert argusd.kinds(job).count("imports_missing") == 1


@needs_argusd
def test_while_argusd_is_away(argusd):
    gate = argusd.root / "common/later"
    work = str(argusd.root / "common/work")
    wait = f"while [ ! -e {gate} ]; do sleep 0.1; done; exec {sys.executable} train.py"
    job = argusd.submit(wait, code_path=code(argusd, "new"), working_dir=work)
    argusd.wait_state(job, "RUNNING")
    argusd.kill9()
    gate.touch()
    file = argusd.job_dir(job) / "attempts/1/exit.json"
    wait_for(file.exists, "the shepherd ends it alone")
    assert json.loads(file.read_text())["class"] == "import_error"
    argusd.start()
    view = argusd.wait_over(job)
    assert (view["state"], view["reason"]["code"]) == ("FAILED", "import_error")
    until(lambda: argusd.job(job)["proof"]["imports"]["ok"] is False, "the proof is read")
