# SPDX-License-Identifier: Apache-2.0
"""A trial that fails its job leaves a finding as any other: class, place, quoted line, advice, fix; and none is lost.

The trial is the real program, beside a fake Ray, in an environment that has every module by name alone."""

import json
import os
import pathlib
import re
import subprocess
import sys

import broken
import pytest
import yaml
from fakeray import FakeRay
from preload import held, needs_compiler
from programs import PROGRAMS

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd

MODULES = "torch ray transformers hydra omegaconf pyarrow tensordict codetiming datasets pandas cachetools"
ROW = {
    "prompt": [{"role": "user", "content": "1+1?"}],
    "data_source": "sums",
    "reward_model": {"style": "rule", "ground_truth": "2"},
}
# The finding of a trial is not written before it is let go.
HOLDS = r"""
int renameat(int from, const char *old, int to, const char *new)
{
    int (*real)(int, const char *, int, const char *) = dlsym(RTLD_NEXT, "renameat");
    if (strcmp(new, "finding.json") == 0) hold();
    return real(from, old, to, new);
}
"""
REWARDS = """import json
def good(**k):
    return 1.0
def raises(**k):
    return k["no_such_key"]
def library(**k):
    return json.loads("{")
def text(**k):
    return "very good"
def ends(**k):
    import os
    os._exit(3)
def recurses(**k):
    return recurses(**k)
"""
# In the place of the job's Python. The job itself (called with -m) is over at once.
PYTHON = f"""#!/bin/sh
[ "$1" = -m ] && exit 0
exec {sys.executable} "$@"
"""


class World:
    def __init__(self, argusd, ray):
        self.argusd, self.ray, self.common = argusd, ray, argusd.root / "common"
        broken.make_world(argusd.root)
        verl = self.common / "code/verl/0.5.0/verl"
        broken.put(verl / "version/version", "0.5.0")
        broken.put(verl / "__init__.py", "")
        broken.put(verl / "trainer/main_ppo.py", "")  # it reads no configuration
        for name in MODULES.split():
            broken.put(self.common / "modules" / name / "__init__.py", "")
        broken.put(self.common / "rows.jsonl", json.dumps(ROW) + "\n")
        broken.put(self.common / "bare.jsonl", json.dumps({"prompt": ROW["prompt"]}) + "\n")
        broken.put(self.common / "rewards.py", REWARDS)
        broken.put(self.common / "imports.py", "import os\nimport no_such_module_at_all\n")
        broken.put(self.common / "syntax.py", "def compute_score(:\n")
        self.python(PYTHON)

    def python(self, text):
        broken.put(self.common / "bin/python", text)
        (self.common / "bin/python").chmod(0o755)

    def spec(self, job, **keys):
        common = "${SHARED_ROOT}/common"
        return {
            "workload": "grpo", "submission_id": job, "n_gpus_per_node": 1, "model_id": f"{common}/models/tiny",
            "code_path": f"{common}/code/verl/0.5.0", "runtime_env": {"py_executable": f"{common}/bin/python"},
            "extra_pythonpath": [f"{common}/modules"], "train_file": f"{common}/rows.jsonl",
            "val_file": f"{common}/rows.jsonl", **keys,
        }  # fmt: skip

    def reward(self, name):
        return "${SHARED_ROOT}/common/" + name

    def failed(self, job, **keys):
        self.argusd.submit(self.spec(job, **keys))
        it = self.argusd.wait_over(job)
        assert (it["state"], it["attempt"]) == ("FAILED", 0), it["reason"]
        return it

    def findings(self, job, **more):
        return self.argusd.get(f"/v1/jobs/{job}/findings", **more)["findings"]

    def dir(self, job):
        return self.argusd.job_dir(job) / "trial"

    def argus(self, *args, lang="C", text=""):
        keep = {k: v for k, v in os.environ.items() if k == "PATH" or k.endswith("SAN_OPTIONS")}
        env = {**keep, "HOME": str(self.argusd.home), "LANG": lang, "COLUMNS": "200"}
        env |= {"ARGUS_URL": self.argusd.url, "ARGUS_TOKEN": self.argusd.tokens["admin"]}
        argv = [PROGRAMS["argus"], *args]
        return subprocess.run(argv, input=text, env=env, capture_output=True, text=True, timeout=PATIENCE)


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("trial"), ray.url) as argusd:
        yield World(argusd, ray)


# Which key of the spec, what is found of it: class, advice, a part of the quoted line, where in the user's code.
KINDS = {
    "raises": (("rewards.py:raises", "user_code_error", "trial-reward-raises"),
               ("raises KeyError: 'no_such_key' at rewards.py:5", "rewards.py", 5)),
    "library": (("rewards.py:library", "user_code_error", "trial-reward-raises"),
                ("raises JSONDecodeError", "rewards.py", 7)),
    "recurses": (("rewards.py:recurses", "user_code_error", "trial-reward-raises"),
                 ("raises RecursionError", "rewards.py", 14)),
    "text": (("rewards.py:text", "user_code_error", "trial-reward-score"),
             ("returned very good, which is not a number", "rewards.py", 8)),
    "ends": (("rewards.py:ends", "user_code_error", "trial-reward-ended"),
             ("ended Python itself, with exit status 3", None, None)),
    "absent": (("rewards.py:nobody", "user_code_error", "trial-reward-absent"), ("does not exist", None, None)),
    "imports": (("imports.py", "import_error", "trial-import-reward"),
                ("cannot be loaded: ModuleNotFoundError", "imports.py", 2)),
    "syntax": (("syntax.py", "user_code_error", "trial-reward-syntax"),
               ("does not compile: invalid syntax at line 1", "syntax.py", 1)),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_reward_is_found_with_its_line(w, kind):
    (reward, wanted, advice), (says, file, line) = KINDS[kind]
    job = w.failed(f"reward-{kind}", reward_fn_path=w.reward(reward))
    found = job["finding"]
    assert (found["class"], job["reason"]["code"], found["advice_code"]) == (wanted, wanted, advice)
    first, *others = found["evidence"]
    assert says in first["text"] and first["source"] == "trial.log"
    log = (w.dir(job["id"]) / "trial.log").read_bytes()
    assert log[first["offset"] :].split(b"\n")[0].decode() == first["text"]
    assert log.split(b"\n")[first["line"] - 1].decode() == first["text"]
    if line:
        source = w.common / file
        code = source.read_text().splitlines()[line - 1].strip()
        (place,) = others
        assert (place["source"], place["line"], place["text"]) == (str(source), line, code)
        assert source.read_bytes()[place["offset"] :].split(b"\n")[0].decode().strip() == code
    else:
        assert others == []
    assert w.findings(job["id"]) == [found]
    assert json.loads((w.dir(job["id"]) / "finding.json").read_text()) == found


def test_the_traceback_of_a_reward_stands_in_its_log(w):
    w.failed("traced", reward_fn_path=w.reward("rewards.py:library"))
    log = (w.dir("traced") / "trial.log").read_text()
    assert "Traceback (most recent call last)" in log and "json.decoder.JSONDecodeError" in log


def test_data_and_imports_are_found_too(w):
    column = w.failed("column", train_file="${SHARED_ROOT}/common/bare.jsonl")["finding"]
    assert (column["class"], column["advice_code"]) == ("data_error", "trial-data-column")
    assert "bare.jsonl' has no column 'data_source', 'reward_model'" in column["evidence"][0]["text"]
    (w.common / "modules/tensordict/__init__.py").unlink()
    (w.common / "modules/tensordict").rmdir()
    try:
        lacks = w.failed("lacks", overrides=["trainer.test_freq=3"])["finding"]
    finally:
        broken.put(w.common / "modules/tensordict/__init__.py", "")
    assert (lacks["class"], lacks["advice_code"]) == ("import_error", "trial-import-lacks")
    assert "lacks tensordict" in lacks["evidence"][0]["text"]
    assert lacks["node"] in [n["name"] for n in w.argusd.get("/v1/nodes")["nodes"]]


def test_it_is_an_event_before_the_end_and_a_restart_keeps_it(w):
    job = w.failed("kept", reward_fn_path=w.reward("rewards.py:raises"))
    told = [(e["kind"], e["reason"]["code"]) for e in w.argusd.events("kept")]
    assert told.index(("finding", "user_code_error")) < told.index(("rejected", "user_code_error"))
    (zh,) = w.findings("kept", **{"Accept-Language": "zh-CN"})
    assert {**zh, "advice": job["finding"]["advice"]} == job["finding"] and "奖励函数" in zh["advice"]
    w.argusd.restart()
    assert w.argusd.job("kept")["finding"] == job["finding"] and w.findings("kept") == [job["finding"]]


def test_diagnose_says_what_the_last_line_of_follow_promises(w):
    spec = w.spec("told", reward_fn_path=w.reward("rewards.py:raises"))
    p = w.argus("submit", "--follow", "-", text=yaml.safe_dump(spec))
    assert p.returncode == 10 and "FAILED user_code_error" in p.stderr and "(argus diagnose told)" in p.stderr, p
    p = w.argus("diagnose", "told")
    assert p.returncode == 0, p.stderr
    lines = p.stdout.splitlines()
    assert lines[0].split() == ["job", "told,", "its", "trial"]
    assert lines[1].startswith("first seen  byte ") and lines[1].endswith(" of trial/trial.log")
    assert "user_code_error - " in p.stdout and "raises KeyError: 'no_such_key'" in p.stdout
    assert f"""code        {w.common}/rewards.py:5: return k["no_such_key"]""" in lines
    assert "advice      call the reward by hand" in p.stdout
    assert "奖励函数" in w.argus("diagnose", "told", lang="zh_CN.UTF-8").stdout
    assert "raises KeyError" in w.argus("status", "told").stdout


def test_each_code_of_the_trial_has_its_advice():
    """In the catalogue, so in both languages."""
    top = pathlib.Path(__file__).resolve().parents[2]
    codes = set(re.findall(r'"((?:import|config|data|reward)-[a-z]+)"', (top / "lib/argus_trial.py").read_text()))
    rows = set(re.findall(r'SAY\(\s*"trial-([a-z-]+)"', (top / "src/base/catalogue/message_advice.c").read_text()))
    assert codes and codes | {"refused"} == rows


# ---- what a kill and a stalled root do to it ----


@pytest.fixture
def own(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        yield World(argusd, ray)


def test_a_kill_at_any_time_leaves_one_finding(own):
    """The trial's result lies on the root while argusd is away, and is judged when it is back."""
    go = own.common / "go"
    own.python(PYTHON.replace("exec", f"until [ -e {go} ]; do sleep 0.1; done\nexec"))
    own.argusd.submit(own.spec("cut", reward_fn_path=own.reward("rewards.py:raises")))
    until(lambda: (own.dir("cut") / "ask.json").exists() and "cut-trial" in own.ray.starts(), "the trial runs")
    own.argusd.kill9()
    go.touch()
    until(lambda: (own.dir("cut") / "result.json").exists(), "it has ended")
    own.argusd.start()
    job = own.argusd.wait_over("cut")
    own.argusd.kill9()
    own.argusd.start()
    assert own.argusd.job("cut")["finding"] == job["finding"] and own.findings("cut") == [job["finding"]]
    assert job["finding"]["evidence"][1]["line"] == 5
    assert own.argusd.kinds("cut").count("finding") == 1


def test_a_secret_that_went_away_is_a_finding_and_leaves_no_file(own):
    """Nothing was asked: the directory of that name may be another's, and is not touched."""
    own.python("#!/bin/sh\nexec tail -f /dev/null\n")
    assert own.argusd.call("PUT", "/v1/secrets/GOES", {"value": "canary-0123456789"}, token="user").status == 201
    first = [f"first-{n}" for n in range(8)]
    for job in first:
        own.argusd.submit(own.spec(job))
    for job in first:
        until(lambda job=job: f"{job}-trial" in own.ray.jobs(), "its trial is with Ray")
    own.argusd.submit(own.spec("bare", secrets=["GOES"]))
    own.argusd.wait_job("bare", lambda j: "8 others run first" in j["reason"]["text"], "waits for the others")
    assert own.argusd.call("DELETE", "/v1/secrets/GOES", token="user").status == 200
    own.argusd.stop_job("first-0")
    job = own.argusd.wait_over("bare")
    found = job["finding"]
    assert (job["state"], found["class"], found["advice_code"]) == ("FAILED", "config_error", "trial-refused")
    assert "GOES" in found["evidence"][0]["text"] and found["evidence"][0]["source"] is None
    assert own.findings("bare") == [found] and not own.dir("bare").exists()


@needs_compiler
def test_a_finding_that_takes_too_long_is_owed_whole(tmp_path):
    """The end is told without it after ten seconds; a kill and a start later it is there, with each quote."""
    (tmp_path / "home").mkdir()
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path / "home", ray.url) as argusd:
        own = World(argusd, ray)
        argusd.stop()
        argusd.env = held(tmp_path, HOLDS)
        argusd.start()
        argusd.submit(own.spec("late", reward_fn_path=own.reward("rewards.py:raises")))
        until((tmp_path / "held").exists, "it writes the finding down")
        assert argusd.job("late")["state"] == "QUEUED"
        argusd.submit(own.spec("stopped", reward_fn_path=own.reward("rewards.py:text")))
        argusd.stop_job("stopped")
        job = argusd.wait_over("late")
        assert (job["state"], job["reason"]["code"], own.findings("late")) == ("FAILED", "user_code_error", [])
        assert argusd.kinds("late").count("rejected") == 1
        argusd.kill9()
        argusd.env = {}
        argusd.start()
        until(lambda: own.findings("late"), "the finding is made")
        (found,) = own.findings("late")
        argusd.wait_job("late", lambda j: j["finding"] == found, "shows it")
        assert found["evidence"][1]["source"] == str(own.common / "rewards.py")
        assert found["advice_code"] == "trial-reward-raises" and argusd.kinds("late").count("finding") == 1
        assert argusd.job("stopped")["state"] == "STOPPED" and own.findings("stopped") == []
