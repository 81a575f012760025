# SPDX-License-Identifier: Apache-2.0
"""What would serve a job better: known from runs like it and from its pool, and nothing is started by asking."""

import json
import os
import shlex
import subprocess

import broken
import yaml
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd


def test_a_suggestion_comes_from_runs_and_from_the_pool(tmp_path):
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:

        def suggested(**keys):
            reply = argusd.post(Argusd.spec("true", **keys), "?suggest=1", token="user")
            assert reply.status == 200, reply
            return {a["key"]: a["value"] for a in reply.json()["advice"]}

        until(lambda: argusd.post(Argusd.spec("true"), "?dry_run=1").json()["placement"], "argusd has seen Ray")
        assert "advice" not in argusd.post(Argusd.spec("true"), "?dry_run=1").json()
        assert suggested() == {}
        for _ in range(5):
            argusd.wait_over(argusd.submit("true"))
        before = len(argusd.all_jobs())
        until(lambda: list(suggested()) == ["timeout"], "it is known from all five")
        assert suggested(nnodes=7, n_gpus_per_node=4)["nnodes"] == "2"
        assert len(argusd.all_jobs()) == before

        (tmp_path / "job.yaml").write_text("workload: ray\nentrypoint: [sh, -c, 'true']\n")
        env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "HOME": str(tmp_path)}
        argv = [PROGRAMS["argus"], "submit", "--suggest", "job.yaml"]
        p = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
        assert p.returncode == 0, p.stderr
        assert p.stdout.startswith("# nine of ten runs like this ended within")
        assert "\ntimeout: " in p.stdout and "to take it: argus submit job.yaml --set timeout=" in p.stderr
        assert len(argusd.all_jobs()) == before


MICRO = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"
OVERRIDES = ["+actor_rollout_ref.rollout.engine_kwargs.x=1"]
# In the place of the job's Python: what a verl would say with the sizes of its command line.
PYTHON = """#!/bin/sh
case " $* " in *" data.seed=7 "*)
    for i in 1 2 3 4; do echo "step:$i - actor/loss:0.1 - timing_s/step:60.0 - timing_s/save_checkpoint:40.0"; done
    exit 1 ;;
*micro_batch_size_per_gpu=16*)
    echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    exit 1 ;;
*micro_batch_size_per_gpu=8*) s=5.0 ;;
*) s=9.0 ;;
esac
for i in 1 2 3 4; do echo "step:$i - actor/loss:0.1 - timing_s/step:$s"; done
"""


def test_a_suggestion_comes_from_the_sizes_of_other_jobs(tmp_path):
    """What ran out of GPU memory, what fitted, what was faster, and what saving cost: of jobs that he may see."""
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        broken.make_world(argusd.root)
        broken.put(argusd.root / "common/fake/python", PYTHON)
        (argusd.root / "common/fake/python").chmod(0o755)
        common = "${SHARED_ROOT}/common"
        spec = {"workload": "grpo", "n_gpus_per_node": 1, "model_id": f"{common}/models/tiny"}
        spec |= {"train_file": f"{common}/datasets/train.parquet", "val_file": f"{common}/datasets/val.parquet"}
        spec |= {"runtime_env": {"py_executable": f"{common}/fake/python"}, "save_freq": 50}

        def of(rows, *more):
            return {**spec, "overrides": [*OVERRIDES, f"{MICRO}={rows}", *more]}

        def ran(body):
            reply = argusd.post(body, "?no_trial=1", token="user")
            assert reply.status == 201, reply
            return argusd.wait_over(reply.json()["id"])

        def suggested(body, token="user"):
            reply = argusd.post(body, "?suggest=1", token=token)
            assert reply.status == 200, reply
            return {a["key"]: a for a in reply.json()["advice"]}

        died = argusd.wait_job(ran(of(16))["id"], lambda j: j["finding"]["class"] == "gpu_oom", "was out of memory")
        assert suggested(of(16)) == {}
        worked = ran(of(8))
        until(lambda: argusd.job(worked["id"])["metrics"], "its steps are known")
        key = f"overrides.{MICRO}"
        advice = until(lambda: suggested(of(32)).get(key), "the size that fitted is told")
        assert advice["value"] == "8" and died["id"] in advice["text"] and worked["id"] in advice["text"], advice
        assert key not in suggested(of(32, "data.max_response_length=4096")), "other lengths"
        assert key not in suggested({**of(32), "n_gpus_per_node": 2}), "another shape"
        assert argusd.call("POST", "/v1/users", {"name": "bob"}).status == 201
        bob = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
        assert key not in suggested(of(32), token=bob), "jobs that he does not see"

        slow = ran(of(4))
        advice = until(lambda: suggested(of(4)).get(key), "the faster one is told")
        assert advice["value"] == "8" and "took 5 s" in advice["text"] and "took 9 s" in advice["text"], advice
        assert slow["id"] in advice["text"] and worked["id"] in advice["text"]

        ran(of(8, "data.seed=7"))
        advice = until(lambda: suggested(of(8)).get("save_freq"), "what saving cost is told")
        assert int(advice["value"]) < 10 and "a save 40 s" in advice["text"], advice

        (tmp_path / "job.json").write_text(json.dumps(of(16)))
        env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "HOME": str(tmp_path)}
        argv = [PROGRAMS["argus"], "submit", "--suggest", "job.json"]
        p = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
        assert p.returncode == 0, p
        patch = yaml.safe_load(p.stdout)
        assert f"{MICRO}=8" in patch["overrides"] and patch["save_freq"] == int(advice["value"]), p
        taken = shlex.split(p.stderr.split("to take it: argus ")[1])
        argv = [PROGRAMS["argus"], *taken, "--dry-run", "--no-trial", "-o", "json"]
        p = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
        assert p.returncode == 0 and f'"{MICRO}=8"' in p.stdout and f"{MICRO}=16" not in p.stdout, p
        assert OVERRIDES[0] in p.stdout
