# SPDX-License-Identifier: Apache-2.0
"""From a job's checkpoint to an endpoint in one request, beside a fake Ray Serve and a stand-in for verl's merger:
merged, registered and served, whoever goes away meanwhile; reused, refused, failed, argusd killed in the middle."""

import json
import os
import pathlib
import subprocess

import broken
import pytest
import standin
from programs import PROGRAMS
from test_ckpt_export import MERGER, model, trained
from test_services import Bed, replicas_of

from argusd import PATIENCE, needs_argusd, until

pytestmark = needs_argusd


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    with Bed(tmp_path_factory.mktemp("serve_job")) as bed:
        argusd = bed.argusd
        standin.make_world(argusd.root)
        lib = str(pathlib.Path(broken.__file__).parent)
        broken.put(argusd.root / "common/code/standin/verl/model_merger.py", MERGER.format(lib=lib))
        for name in ("bob", "eve"):
            assert argusd.call("POST", "/v1/users", {"name": name}).status == 201
            argusd.tokens[name] = argusd.call("POST", "/v1/tokens", {"user": name}).json()["token"]
        assert argusd.call("POST", "/v1/projects", {"name": "rlhf", "members": ["alice", "eve"]}).status == 201
        yield bed


def argus(bed, *words):
    env = {"PATH": os.environ["PATH"], "HOME": str(bed.home), "ARGUS_URL": bed.argusd.url, "LANG": "C"}
    env["ARGUS_TOKEN"] = bed.argusd.tokens["user"]
    return subprocess.run([PROGRAMS["argus"], *words], env=env, capture_output=True, text=True, timeout=PATIENCE)


def merges(bed):
    return sorted(j["id"] for j in bed.argusd.all_jobs("&workload=merge"))


def newest(page):
    return page["versions"][0]


def awaits(page):
    return newest(page)["state"] == "WAITING" and newest(page)["reason"] and newest(page)["reason"]["code"]


def judged(bed, *values, **keys):
    """A training with a checkpoint at 10, 20, …, each with this value."""
    t = standin.Training(bed.argusd, **keys)
    steps = [10 * (i + 1) for i in range(len(values))]
    with (t.dir / "attempts/1/metrics.jsonl").open("a") as f:
        for step, value in zip(steps, values, strict=True):
            f.write(json.dumps({"step": step, "data": {"val/loss": value}}) + "\n")
    t.save(*steps)
    wanted = [("verified", v) for v in values]
    until(lambda: [(c["state"], c["value"]) for c in t.listed()] == wanted, "they are judged")
    t.order("exit", 0)
    bed.argusd.wait_over(t.id)
    return t


def gate_of(tmp_path):
    gate = tmp_path / "gate"
    gate.touch()
    return gate


def gone(bed, name):
    bed.argusd.call("DELETE", f"/v1/services/{name}", token="user")
    until(lambda: bed.page(name) is None, f"{name} is gone")


def test_one_command_from_a_checkpoint_to_the_traffic(bed):
    t = judged(bed, 1.5, 2.5)
    done = argus(bed, "serve", "--job", t.id, "--step", "best", "--name", "best")
    assert done.returncode == 0 and done.stdout == "best\n", done
    page = bed.ready("best", 1)
    v = newest(page)
    assert (v["spec"]["model"], v["model_job"], v["reason"]) == (f"{t.id}-10@1", None, None)
    entry = model(bed.argusd, f"{t.id}-10@1")
    assert entry["state"] == "ready" and entry["lineage"]["merge"] in merges(bed)
    assert (v["spec"]["model_path"], v["spec"]["model_hash"]) == (entry["path"], entry["hash"])
    assert bed.apps()["best-v1"]["args"]["model"] == entry["path"]

    # The newest where nothing is said, as the next version of the same service.
    bed.serve(path="/v1/services/best:deploy", job=t.id)
    page = bed.ready("best", 2)
    assert newest(page)["spec"]["model"] == f"{t.id}-20@1"

    # Merged before: nothing is merged again, and nothing is waited for. The name is made of the job's.
    before = merges(bed)
    made = bed.serve(job=t.id, step="10")
    assert newest(made)["model_job"] is None and newest(made)["spec"]["model"] == f"{t.id}-10@1"
    bed.ready(made["name"], 1)
    assert merges(bed) == before and made["name"] == t.id.lower()[:40]
    gone(bed, "best")
    gone(bed, made["name"])


def test_it_says_what_it_waits_for_and_outlives_argusd(bed, tmp_path):
    gate = gate_of(tmp_path)
    t = trained(bed.argusd, 10, env={"GATE": str(gate)})
    before = merges(bed)
    made = bed.serve(job=t.id, step="latest", name="held")
    (merge,) = set(merges(bed)) - set(before)
    assert (made["wanted"], made["state"], made["what"]) == (1, "WAITING", f"{t.id}-10@1")
    assert (newest(made)["model_job"], newest(made)["replicas"]) == (merge, [])
    assert newest(made)["reason"]["code"] == "serve_model_merged" and merge in newest(made)["reason"]["text"]
    said = argus(bed, "service", "status", "held")
    assert said.returncode == 0 and f"being merged by job '{merge}'" in said.stdout, said
    no = bed.act("held", "ask", status=503, text="hello")
    assert merge in no["detail"], no

    # A second request for the same checkpoint waits for the same merge.
    bed.serve(job=t.id, step="10", name="other")
    bed.argusd.wait_state(merge, "RUNNING")
    for _ in range(2):
        bed.argusd.kill9()
        bed.argusd.start()
        assert awaits(bed.page("held")) == "serve_model_merged"
    gate.unlink()
    bed.argusd.kill9()
    bed.argusd.start()
    for name in ("held", "other"):
        page = bed.ready(name, 1)
        assert [v["n"] for v in page["versions"]] == [1] and newest(page)["spec"]["model"] == f"{t.id}-10@1"
    assert set(merges(bed)) - set(before) == {merge}, "it is merged once"
    gone(bed, "held")
    gone(bed, "other")


@pytest.mark.parametrize("how", ["fails", "stopped", "removed"])
def test_a_merge_that_comes_to_nothing_leaves_the_version_before(bed, tmp_path, how):
    gate = gate_of(tmp_path)
    good = trained(bed.argusd, 10)
    bad = trained(bed.argusd, 10, env={"GATE": str(gate), **({"FAILS": "1"} if how == "fails" else {})})
    bed.serve(job=good.id, name=how)
    bed.ready(how, 1)
    made = bed.serve(job=bad.id, name=how)
    merge = newest(made)["model_job"]
    assert (made["current"], made["wanted"], made["state"]) == (1, 2, "READY")
    bed.argusd.wait_state(merge, "RUNNING")
    if how == "fails":
        gate.unlink()
    elif how == "stopped":
        bed.argusd.stop_job(merge)
    else:
        assert bed.argusd.call("DELETE", f"/v1/models/{bad.id}-10@1", token="user").status == 200
        gate.unlink()
    page = bed.wait(how, lambda p: newest(p)["state"] == "FAILED" and not p["wanted"], "it is given up")
    reason = newest(page)["reason"]
    assert reason["code"] == "serve_model_failed" and f"{bad.id}-10@1" in reason["text"]
    if how != "removed":
        ended = {"fails": "FAILED", "stopped": "STOPPED"}[how]
        assert f"job '{merge}' ended as {ended}" in reason["text"], reason
    assert (page["current"], page["ready"], page["state"]) == (1, 1, "READY")
    events = bed.argusd.get("/v1/events?limit=1000")["events"]
    failed = [e for e in events if e["kind"] == "service_failed" and e["object"] == f"service/{how}"]
    assert [e["reason"]["code"] for e in failed] == ["serve_model_failed"]
    assert not replicas_of(page, 2)
    # What failed stays what it is after a restart, and its number is not given again.
    bed.argusd.restart()
    page = bed.ready(how, 1)
    assert newest(page)["state"] == "FAILED"
    bed.serve(job=good.id, name=how)
    bed.ready(how, 3)
    gone(bed, how)


def test_a_service_that_is_removed_waits_for_nothing(bed, tmp_path):
    gate = gate_of(tmp_path)
    t = trained(bed.argusd, 10, env={"GATE": str(gate)})
    merge = newest(bed.serve(job=t.id, name="brief"))["model_job"]
    bed.argusd.wait_state(merge, "RUNNING")
    gone(bed, "brief")
    gate.unlink()
    assert bed.argusd.wait_over(merge)["state"] == "SUCCEEDED", "the merge is an export like any other"
    until(lambda: model(bed.argusd, f"{t.id}-10@1")["state"] == "ready", "its model is there")


def test_who_may_and_what_is_refused(bed):
    t = judged(bed, 1.5, project="rlhf")
    silent = trained(bed.argusd, 10)
    plain = bed.argusd.submit("true")
    bed.argusd.wait_over(plain)
    before = merges(bed)
    for token, body, status, says in (
        ("bob", {"job": t.id}, 404, f"no job '{t.id}'"),
        ("eve", {"job": t.id}, 403, ""),
        ("viewer", {"job": t.id}, 403, ""),
        ("user", {"job": "nosuch"}, 404, "nosuch"),
        ("user", {"job": t.id, "step": "999"}, 404, "step 999"),
        ("user", {"job": t.id, "step": "first"}, 422, "'first' is not a valid checkpoint"),
        ("user", {"job": t.id, "model": "sums"}, 422, "one of 'model', 'job' and 'app'"),
        ("user", {"model": "sums", "step": "10"}, 422, "no 'job' is given"),
        ("user", {"job": silent.id, "step": "best"}, 422, "validation told nothing"),
        ("user", {"job": plain}, 422, plain),
        ("user", {"job": plain, "step": "10"}, 422, "no checkpoint to export"),
        ("user", {"job": t.id, "project": "default"}, 201, ""),
    ):
        no = bed.serve(status=status, token=token, name="refused", **body)
        assert status == 201 or says in no["detail"], no
        if status != 201:
            assert bed.page("refused", token="admin") is None
    assert len(set(merges(bed)) - set(before)) == 1, "only what can be served is merged"
    bed.ready("refused", 1)
    gone(bed, "refused")


def test_in_a_pipeline_the_merge_is_a_step_of_its_own(bed):
    def store(**words):
        steps = {"serve": {"uses": "deploy", "with": {"name": "p", **words}}}
        return bed.argusd.call("PUT", "/v1/pipelines/p", {"name": "p", "steps": steps}, token="user")

    no = store(job="grpo-7")
    assert no.status == 422 and no.json()["problems"][0]["code"] == "pipe_with_key", no
    assert store(config="job: grpo-7").status == 201
    run = bed.argusd.call("POST", "/v1/pipelines/p:run", {}, token="user").json()["id"]

    def over():
        page = bed.argusd.get(f"/v1/pipeline-runs/{run}", token="user")
        return page["ended_at"] and page

    assert until(over, "the run is over")["steps"][0]["reason"]["code"] == "pipe_with_key"
