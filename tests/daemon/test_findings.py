# SPDX-License-Identifier: Apache-2.0
"""Why an attempt ended: found before its end is told, kept, shown, and what decides whether the job starts again."""

import json
import os
import subprocess
import sys

import broken
import pytest
from fakeray import FakeRay
from preload import held, needs_compiler
from programs import PROGRAMS

from argusd import OVER, Argusd, needs_argusd, until

pytestmark = needs_argusd

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
FAILS = f"echo fine so far; echo '{OOM}' >&2; exit 1"
# The first attempt fails, the second does not.
ONCE = f'if mkdir "$0/$1"; then echo "{OOM}"; exit 1; fi; echo better'
RAISES = "def reward(x):\n    raise KeyError('no such key')\nreward(1)\n"

# The scene of an attempt is not read before it is let go.
HOLDS = r"""
DIR *fdopendir(int fd)
{
    DIR *(*real)(int) = dlsym(RTLD_NEXT, "fdopendir");
    char link[64], path[4096] = "";
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, "/scene")) hold();
    return real(fd);
}
"""


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("findings"), ray.url) as argusd:
        yield argusd


def findings(w, job, **more):
    return w.get(f"/v1/jobs/{job}/findings", **more)["findings"]


def over(w, job):
    """Its view with all that was found: where that takes long, the end is told with a class alone, and first."""
    is_found = lambda v: not v["finding"] or "rule" in v["finding"]  # noqa: E731
    return w.wait_job(job, lambda v: v["state"] in OVER and is_found(v), "is over, and why is found")


def ended(w, *args, **keys):
    return over(w, w.submit(*args, **keys))


def quoted(w, job, finding):
    """The line that the finding quotes, as it stands in the file."""
    first = finding["evidence"][0]
    with open(w.job_dir(job["id"]) / "attempts" / str(finding["attempt"]) / first["source"], "rb") as f:
        f.seek(first["offset"])
        return f.readline().decode().rstrip("\n"), first["text"]


# ---- what a failure leaves ----


def test_the_first_error_is_named_with_its_place(w):
    job = ended(w, FAILS)
    found = job["finding"]
    assert (job["state"], found["class"], job["reason"]["code"]) == ("FAILED", "gpu_oom", "gpu_oom")
    assert quoted(w, job, found) == (OOM, OOM)
    assert found["evidence"][0]["line"] == 2 and found["node"] == job["driver"]["node"]
    assert found["rule"] and found["advice"] and 0 < found["confidence"] <= 1
    assert found["advice_code"] == found["rule"]
    assert findings(w, job["id"]) == [found]
    reply = w.call("GET", f"/v1/jobs/{job['id']}/findings", **{"Accept-Language": "zh-CN"})
    (other,) = reply.json()["findings"]
    assert {**other, "advice": found["advice"]} == found and "显存" in other["advice"]
    left = json.loads((w.job_dir(job["id"]) / "attempts/1/finding.json").read_text())
    assert left == found
    told = [(e["kind"], e["reason"]["code"]) for e in w.events(job["id"])]
    assert told.index(("finding", "gpu_oom")) < told.index(("ended", "gpu_oom"))
    w.restart()
    assert w.job(job["id"])["finding"] == found and findings(w, job["id"]) == [found]


def test_rays_view_is_part_of_the_scene(w):
    job = ended(w, "exit 7")
    listed = w.get(f"/v1/jobs/{job['id']}/logs/files?source=scene")["files"]
    assert [(f["file"], f["node"]) for f in listed] == [("ray_nodes.json", ""), ("ray_actors.json", "")]
    told = [w.call("GET", f"/v1/jobs/{job['id']}/logs?source=scene&file={f['file']}").json() for f in listed]
    assert told[0]["ray_answers"] and job["driver"]["node"] in [n["name"] for n in told[0]["nodes"] if n["is_alive"]]
    assert "placement" in told[1]
    stopped = w.submit("exec tail -f /dev/null")
    w.wait_state(stopped, "RUNNING")
    w.stop_job(stopped)
    w.wait_over(stopped)
    assert w.get(f"/v1/jobs/{stopped}/logs/files?source=scene")["files"] == []


def test_a_dead_worker_is_named_by_what_its_scout_wrote(w):
    def ranks(rank):
        return json.dumps({"worker-a1-02000000-1340.out": {"pid": 1340, "actor": "WorkerDict", "rank": rank}})

    job = ended(
        w,
        f"""cd "$ARGUS_ATTEMPT_DIR/logs"
for d in h2 h3 w7; do mkdir -p workers/$d; : > workers/$d/worker-a1-02000000-1340.out; done
echo '{ranks(3)}' | tee workers/h2/ranks.json > workers/h3/ranks.json
echo '{ranks(5)}' > workers/w7/ranks.json
echo '(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker PID: 1340 Exit'
exit 1""",
    )
    found = job["finding"]
    assert (found["class"], found["pid"], found["rank"]) == ("actor_died", "1340", "3")
    assert (found["actor"], found["node"]) == ("WorkerDict", job["driver"]["node"])


def test_a_python_exception_is_the_users(w):
    job = ended(w, Argusd.python(RAISES))
    assert (job["state"], job["finding"]["class"]) == ("FAILED", "user_code_error")
    assert "KeyError: 'no such key'" in quoted(w, job, job["finding"])


def test_success_has_none_whatever_its_words(w):
    job = ended(w, f"echo '{OOM}'")
    assert (job["state"], job["finding"], findings(w, job["id"])) == ("SUCCEEDED", None, [])


def test_a_pipe_that_hides_a_failure_is_told_beside_success(w):
    view = ended(w, f"{sys.executable} -c 'raise RuntimeError(\"loss is nan\")' 2>&1 | cat")
    assert (view["state"], view["finding"], findings(w, view["id"])) == ("SUCCEEDED", None, [])
    assert view["reason"]["code"] == "last_error" and "pipefail" in view["reason"]["text"]
    assert "exit code 0" in view["reason"]["text"] and "'RuntimeError: loss is nan'" in view["reason"]["text"]
    well = ended(w, "echo all is well | cat")
    assert (well["state"], well["reason"]["code"], well["reason"]["text"]) == ("SUCCEEDED", "", "")


def test_nothing_said_is_unknown(w):
    job = ended(w, "exit 7")
    assert (job["state"], job["finding"]["class"], job["exit"]["code"]) == ("FAILED", "unknown", 7)


def test_metrics_that_are_no_number_until_the_end(w):
    def run(*values):
        """A training whose file, not its log, tells these norms of its steps."""
        lines = [json.dumps({"step": k, "data": {"actor/grad_norm": v}}) for k, v in enumerate(values, 1)]
        told = " ".join(f"'{line}'" for line in lines)
        return ended(w, f"""printf '%s\\n' {told} >"$ARGUS_ATTEMPT_DIR/metrics.jsonl"; exit 7""")["finding"]

    found = run(None, 0.5, None)
    assert found["class"] == "nan_loss" and "'actor/grad_norm' since step 3" in found["evidence"][0]["text"]
    assert run(None, 0.5)["class"] == "unknown"


def test_a_stop_is_no_riddle(w):
    job = w.submit(f"echo '{OOM}'; exec tail -f /dev/null")
    w.wait_state(job, "RUNNING")
    w.stop_job(job)
    view = over(w, job)
    assert (view["state"], view["finding"]["class"]) == ("STOPPED", "preempted_or_stopped")
    assert "stopped by 'admin'" in view["finding"]["evidence"][0]["text"]
    assert view["reason"]["code"] == "stopped_by_user"


def test_a_timeout(w):
    job = ended(w, "exec tail -f /dev/null", timeout="1s", stop_grace="1s")
    assert job["state"] == "TIMEOUT" and job["finding"]["class"] in ("timeout_or_hang", "preempted_or_stopped")
    waited = ended(w, "echo x", pool="nowhere", queue_timeout="1s")
    assert (waited["state"], waited["finding"]) == ("TIMEOUT", None)


def test_who_may_see_it(w):
    job = ended(w, FAILS)["id"]
    assert findings(w, job, token="viewer") == findings(w, job)
    assert w.call("POST", "/v1/users", {"name": "bob"}).status == 201
    bob = w.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
    assert w.call("GET", f"/v1/jobs/{job}/findings", token=bob).status == 404


# ---- starting again ----


def test_its_class_decides_whether_it_starts_again(w):
    again = {"max": 2, "on": ["gpu_oom"], "backoff": "0s"}
    job = w.submit(Argusd.spec(["/bin/sh", "-c", ONCE, str(w.root), "once"]), restart=again)
    view = w.wait_over(job)
    assert (view["state"], view["attempt"], view["restarts"], view["finding"]) == ("SUCCEEDED", 2, 1, None)
    assert view["restart"]["avoid"] == [], "no node was at fault"
    assert [(f["attempt"], f["class"]) for f in findings(w, job)] == [(1, "gpu_oom")]
    back = [e for e in w.events(job) if e["kind"] == "ended" and e["to"] == "QUEUED"]
    assert [e["reason"]["code"] for e in back] == ["gpu_oom"]
    other = ended(w, FAILS, restart={"max": 2, "on": ["node_lost", "nccl_timeout"], "backoff": "0s"})
    assert (other["state"], other["attempt"], other["finding"]["class"]) == ("FAILED", 1, "gpu_oom")


def test_a_guess_starts_nothing_again(w):
    """Words that may mean a node are told as such; the witnesses know of no reason to run it again."""
    view = ended(w, "echo node gpu-7 is down; exit 1", restart={"max": 1, "on": ["node_lost"], "backoff": "0s"})
    assert (view["state"], view["attempt"]) == ("FAILED", 1)
    assert [(f["class"], f["rule"]) for f in findings(w, view["id"])] == [("node_lost", "vague-node")]


def test_its_exit_code_decides_too(w):
    asks = '[ "$ARGUS_ATTEMPT" != 1 ] || exit 75'
    again = {"max": 1, "on": ["exit:75"], "backoff": "0s"}
    view = ended(w, asks, restart=again)
    assert (view["state"], view["attempt"], view["restarts"]) == ("SUCCEEDED", 2, 1)
    other = ended(w, "exit 7", restart=again)
    assert (other["state"], other["attempt"]) == ("FAILED", 1)


def test_as_often_as_it_may(w):
    view = ended(w, FAILS, restart={"max": 2, "on": ["gpu_oom"], "backoff": "0s"})
    assert (view["state"], view["attempt"], view["restarts"]) == ("FAILED", 3, 2)
    assert [f["attempt"] for f in findings(w, view["id"])] == [1, 2, 3]
    assert view["finding"]["attempt"] == 3


# ---- the fix ----

FAILING = f"#!/bin/sh\necho 'step:1 - actor/loss:0.1'\necho '{OOM}'\nexit 1\n"


def test_the_fix_is_applied_and_shown(w):
    broken.make_world(w.root)
    broken.put(w.root / "common/fails/python", FAILING)
    (w.root / "common/fails/python").chmod(0o755)
    common = "${SHARED_ROOT}/common"
    spec = {"workload": "grpo", "n_gpus_per_node": 1, "model_id": f"{common}/models/tiny"}
    spec |= {"train_file": f"{common}/datasets/train.parquet", "val_file": f"{common}/datasets/val.parquet"}
    spec |= {"runtime_env": {"py_executable": f"{common}/fails/python"}}
    key = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"
    spec |= {"overrides": [f"{key}=8", "actor_rollout_ref.rollout.gpu_memory_utilization=0.6"]}
    reply = w.post(spec, "?no_trial=1", token="user")
    assert reply.status == 201, reply
    job = over(w, reply.json()["id"])
    assert job["finding"]["class"] == "gpu_oom" and job["finding"]["patch"], job["finding"]
    body = {"apply_fix": True}
    reply = w.call("POST", f"/v1/jobs/{job['id']}:retry?no_trial=1", body, token="user")
    assert reply.status == 201, reply
    changes = {c["key"]: (c["old"], c["new"]) for c in reply.json()["changes"]}
    assert changes and all(old != new for old, new in changes.values()), changes
    fixed = w.job(reply.json()["id"])
    assert fixed["retry_of"] == job["id"]
    for name, (_, new) in changes.items():
        assert not name.startswith("overrides.") or f"{name.removeprefix('overrides.')}={new}" in fixed["spec"], fixed
    w.stop_job(fixed["id"])
    plain = ended(w, FAILS)
    reply = w.call("POST", f"/v1/jobs/{plain['id']}:retry", body, token="user")
    assert (reply.status, "no fix to apply" in reply.json()["detail"]) == (422, True), reply


# ---- argusd dies between end and finding ----


@needs_compiler
def test_a_kill_loses_no_finding(tmp_path):
    """Killed while it looks: the end is told with its finding after the restart. Killed when it took too long and the
    end was told without: the finding is owed, and made after the restart."""
    (tmp_path / "home").mkdir()
    with FakeRay(state=tmp_path / "ray") as ray:
        argusd = Argusd(tmp_path / "home", ray.url)
        with argusd:
            argusd.stop()
            argusd.env = held(tmp_path, HOLDS)
            argusd.start()
            job = argusd.submit(FAILS)
            until((tmp_path / "held").exists, "it looks at what the attempt left")
            assert argusd.job(job)["state"] in ("STARTING", "RUNNING")
            argusd.kill9()
            argusd.start()
            view = argusd.wait_over(job)
            assert (view["state"], view["finding"]["class"]) == ("FAILED", "unknown")
            assert findings(argusd, job) == []
            assert argusd.wait_over(argusd.submit("echo others go on"))["state"] == "SUCCEEDED"
            argusd.kill9()
            argusd.env = {}
            argusd.start()
            until(lambda: findings(argusd, job), "the finding is made")
            view = argusd.wait_job(job, lambda j: j["finding"]["class"] == "gpu_oom", "has its finding")
            assert view["state"] == "FAILED" and argusd.kinds(job).count("finding") == 1
            meta = argusd.job_dir(job) / "meta.json"
            until(lambda: "gpu_oom" in meta.read_text(), "meta.json tells of it too")
            argusd.restart()
            assert len(findings(argusd, job)) == 1 and argusd.kinds(job).count("finding") == 1


# ---- on the command line ----


def test_what_people_see(w):
    env = {**os.environ, "ARGUS_URL": w.url, "ARGUS_TOKEN": w.tokens["user"], "LANG": "C.UTF-8", "COLUMNS": "80"}

    def argus(*args):
        return subprocess.run([PROGRAMS["argus"], *args], env=env, capture_output=True, text=True)

    job = ended(w, FAILS)
    done = argus("logs", "-f", job["id"])
    last = f"job {job['id']} FAILED gpu_oom on {job['driver']['node']} (argus diagnose {job['id']})"
    assert done.returncode == 10 and done.stderr.splitlines()[-1].endswith(last), done.stderr
    assert "gpu_oom on " in argus("status", job["id"]).stdout
    done = argus("diagnose", job["id"])
    assert done.returncode == 0, done.stderr
    assert "gpu_oom - " in done.stdout and "line 2: torch.OutOfMemoryError: CUDA out of memory" in done.stdout
    assert f"job         {job['id']}, attempt 1" in done.stdout
    assert "byte 12 of attempts/1/logs/driver.log" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout
    assert json.loads(argus("diagnose", "-o", "json", job["id"]).stdout)["class"] == "gpu_oom"
    assert json.loads(argus("diagnose", "--attempt", "1", "-o", "json", job["id"]).stdout)["attempt"] == 1
    done = argus("diagnose", "--attempt", "2", job["id"])
    assert done.returncode == 4 and "attempt 2" in done.stderr
    fine = ended(w, "echo fine")
    done = argus("diagnose", fine["id"])
    assert done.returncode == 4 and "has no finding" in done.stderr
