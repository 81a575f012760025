# SPDX-License-Identifier: Apache-2.0
"""A checkpoint becomes a model: merged by a job, looked at by another, and registered where it lies."""

import json
import os
import pathlib
import subprocess
from urllib.parse import quote

import broken
import pytest
import standin
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

# In the place of verl's: it waits where it is told to, and what it leaves is a model, for its user alone.
MERGER = """
import json, os, pathlib, select, sys
sys.path.insert(0, {lib!r})
import broken
word = dict(zip(sys.argv[2::2], sys.argv[3::2]))
target = pathlib.Path(word["--target_dir"])
(target.parent.parent / "argv.json").write_text(json.dumps(sys.argv[1:]))
while pathlib.Path(os.environ.get("GATE", "/none")).exists():
    select.select([], [], [], 0.05)
if "FAILS" in os.environ or not any(pathlib.Path(word["--local_dir"]).glob("model_world_size_*")):
    raise SystemExit(3)
broken.make_model(target)
(target / "model.safetensors").chmod(0o600)
"""


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    home = tmp_path_factory.mktemp("export")
    with FakeRay(state=home / "ray") as ray, Argusd(home, ray.url) as made:
        standin.make_world(made.root)
        lib = str(pathlib.Path(broken.__file__).parent)
        broken.put(made.root / "common/code/standin/verl/model_merger.py", MERGER.format(lib=lib))
        for name in ("bob", "eve"):
            assert made.call("POST", "/v1/users", {"name": name}).status == 201
            made.tokens[name] = made.call("POST", "/v1/tokens", {"user": name}).json()["token"]
        assert made.call("POST", "/v1/projects", {"name": "rlhf", "members": ["alice", "eve"]}).status == 201
        yield made


def trained(argusd, *steps, **keys):
    """One that is over, and its checkpoints are in the catalogue."""
    t = standin.Training(argusd, **keys)
    t.save(*steps)
    until(lambda: t.states() == dict.fromkeys(steps, "verified"), "they are verified")
    t.order("exit", 0)
    argusd.wait_over(t.id)
    return t


def export(argusd, t, step, token="user", **body):
    return argusd.call("POST", f"/v1/jobs/{t.id}/checkpoints/{step}:export", body, token=token)


def exported(argusd, t, step, **body):
    reply = export(argusd, t, step, **body)
    assert reply.status == 201, reply
    return reply.json()


def model(argusd, ref, token="user"):
    reply = argusd.call("GET", f"/v1/models/{quote(ref)}", token=token)
    return reply.json() if reply.status == 200 else None


def ready(argusd, ref, token="user"):
    return until(lambda: (m := model(argusd, ref, token)) and m["state"] == "ready" and m, f"{ref} is ready")


def test_a_checkpoint_becomes_a_model(argusd):
    t = trained(argusd, 10, 20, project="rlhf", env={"A_WORD": "x", "MY_TOKEN": "hidden"})
    made = exported(argusd, t, 10)
    assert made["model"] == f"{t.id}-10@1"
    job = argusd.wait_over(made["job"])
    assert (job["state"], job["workload"], job["user"], job["project"]) == ("SUCCEEDED", "merge", "alice", "rlhf")
    assert "A_WORD" in job["spec"] and "MY_TOKEN" not in job["spec"] and "hidden" not in json.dumps(job)
    assert job["gpus"] == 0
    one = ready(argusd, made["model"])
    merged = argusd.root / f"jobs/{made['job']}/output/model"
    assert (one["path"], made["path"], one["in_place"]) == (str(merged), str(merged), True)
    argv = json.loads((merged.parent.parent / "argv.json").read_text())
    kept = t.kept / "global_step_10/actor"
    assert argv == ["merge", "--backend", "fsdp", "--local_dir", str(kept), "--target_dir", str(merged)]
    assert (merged / "model.safetensors").stat().st_mode & 0o777 == 0o644, "whoever sees the model may read it"
    lineage = {k: one["lineage"][k] for k in ("job", "step", "merge")}
    assert lineage == {"job": t.id, "step": 10, "merge": made["job"]} and one["lineage_by"] == "argusd"
    assert argusd.job(one["job"])["state"] == "SUCCEEDED" and one["job"] != made["job"]
    about = f"model/~alice/{t.id}-10@1"
    kinds = {e["kind"] for e in argusd.get("/v1/events?limit=1000")["events"] if e["object"] == about}
    assert kinds == {"model_import", "model_imported"}

    # Its project's members see it, others once it is shared.
    assert model(argusd, f"alice:{t.id}-10", "eve")["state"] == "ready"
    assert model(argusd, f"alice:{t.id}-10", "bob") is None
    again = argusd.call("POST", f"/v1/models/{t.id}-10:share", {"users": ["bob"] * 101}, token="user")
    assert again.status == 422 and again.json()["code"] == "shared_too_many"  # named again and again
    shared = argusd.call("POST", f"/v1/models/{t.id}-10:share", {"users": ["bob"]}, token="user")
    assert shared.status == 200, shared
    spec = {**standin.SPEC, "model_id": f"alice:{t.id}-10"}
    plan = argusd.post(spec, "?dry_run=1&no_trial=1", token="bob")
    assert plan.status == 200 and f"actor_rollout_ref.model.path={merged}" in plan.json()["argv"], plan


def test_by_the_command_line(argusd):
    t = trained(argusd, 10)
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "LANG": "C.UTF-8"}
    argv = [PROGRAMS["argus"], "ckpt", "export", t.id, "10", "--hf", "--name", "mine", "--common"]
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
    ref, job = done.stdout.split()
    assert ref == "mine@1" and f"argus logs -f {job}" in done.stderr, done
    one = ready(argusd, "mine", token="bob")
    assert one["common"] and one["lineage"] == {"job": t.id, "step": 10}
    again = exported(argusd, t, 10, name="mine", common=True)
    assert again["model"] == "mine@2"
    ready(argusd, "mine@2")


def test_it_stays_while_it_is_read(argusd, tmp_path):
    gate = tmp_path / "gate"
    gate.touch()
    t = standin.Training(argusd, checkpoint={"keep_last": 1}, env={"GATE": str(gate)})
    t.save(10)
    until(lambda: t.states() == {10: "verified"}, "it is verified")
    made = exported(argusd, t, 10)  # the training runs on
    argusd.wait_state(made["job"], "RUNNING")
    t.save(20, 30)

    def plan(**body):
        reply = argusd.call("POST", f"/v1/jobs/{t.id}/checkpoints:gc", body, token="user")
        assert reply.status == 200, reply
        return {c["step"]: c["kept_by"] for c in reply.json()["checkpoints"]}

    until(lambda: plan() == {10: "in_use", 30: "last_verified"}, "all but what is read and the newest goes")
    argusd.kill9()
    gate.unlink()
    argusd.start()
    ready(argusd, made["model"])
    assert argusd.job(made["job"])["state"] == "SUCCEEDED"
    until(lambda: plan() == {30: "last_verified"}, "nobody reads it any more")
    assert t.steps() == [30]
    argusd.stop_job(t.id)


@pytest.mark.parametrize("how", ["fails", "stopped", "removed"])
def test_a_merge_that_does_not_end_well_leaves_no_model(argusd, tmp_path, how):
    gate = tmp_path / "gate"
    gate.touch()
    t = trained(argusd, 10, env={"GATE": str(gate), **({"FAILS": "1"} if how == "fails" else {})})
    made = exported(argusd, t, 10)
    argusd.wait_state(made["job"], "RUNNING")
    assert model(argusd, made["model"])["state"] == "importing"
    if how == "fails":
        gate.unlink()
    elif how == "stopped":
        argusd.stop_job(made["job"])
    else:
        assert argusd.call("DELETE", f"/v1/models/{made['model']}", token="user").status == 200
    argusd.wait_over(made["job"])
    until(lambda: model(argusd, made["model"]) is None, "it is not in the registry")
    told = [e["text"] for e in argusd.get("/v1/events?limit=1000")["events"] if e["kind"] == "model_import_failed"]
    assert any(f"job '{made['job']}', which was to make its files, did not end well" in text for text in told)


def test_what_is_refused(argusd):
    t = standin.Training(argusd)
    t.save(10)
    t.order("unnamed", 20)
    until(lambda: t.states() == {10: "verified", 20: "partial"}, "both are seen")
    t.order("exit", 0)
    argusd.wait_over(t.id)
    plain = argusd.submit("true")
    argusd.wait_over(plain)
    for token, step, body, status, says in (
        ("user", 20, {}, 422, "step 20"),
        ("user", 999, {}, 404, "step 999"),
        ("user", "x", {}, 400, "'x' is not a valid step"),
        ("bob", 10, {}, 404, f"no job '{t.id}'"),
        ("viewer", 10, {}, 403, ""),
        ("user", 10, {"name": "a/b"}, 422, "a/b"),
        ("user", 10, {"hf": False}, 400, "'hf' must be true"),
        ("user", 10, {"format": "gguf"}, 400, "format"),
    ):
        no = export(argusd, t, step, token, **body)
        assert no.status == status and says in no.json()["detail"], no
        assert no.json()["detail"].count("\n") == 0
    no = argusd.call("POST", f"/v1/jobs/{plain}/checkpoints/10:export", {}, token="user")
    assert no.status == 422 and "no checkpoint to export" in no.json()["detail"], no
    assert not [m for m in argusd.get("/v1/models")["models"] if m["name"].startswith(t.id)]
