# SPDX-License-Identifier: Apache-2.0
"""v1: a head, two workers with 4 GPUs each, PPO as a Ray job, its driver on a worker, everything kept."""

import pytest
from stage import wait_for

# A training: minutes of CPU. In every check test_v2_0.py trains by PPO and looks at its driver.
pytestmark = pytest.mark.nightly

JOB = "v1-ppo"
CLIENT = """
import json
from ray.job_submission import JobSubmissionClient
d = JobSubmissionClient("{url}").get_job_info("{job}")
print(json.dumps({{"ip": d.driver_info.node_ip_address, "pid": d.driver_info.pid, "node": d.driver_node_id}}))
"""


@pytest.fixture(scope="module")
def run(stage):
    """The run of docs/acceptance/v1.md, and what Ray said about its driver while it ran."""
    doc = stage.document("v1")
    assert doc.run("submit").splitlines()[0] == JOB
    ray = stage.keep("ray_record.json", stage.ray_driver(JOB))
    client = stage.keep("ray_client.json", stage.python(CLIENT.format(url=stage.bed.url, job=JOB)))
    doc.run("wait")
    return {"doc": doc, "ray": ray, "client": client, "job": stage.keep_job(JOB)}


def test_driver_is_on_a_worker_and_not_on_the_head(stage, run):
    """By Ray's REST API, by its own client, and by the proof that argusd keeps."""
    ip = run["ray"]["driver_info"]["node_ip_address"]
    assert ip in stage.workers.values() and ip != stage.head_ip
    assert run["client"] == {"ip": ip, "pid": run["ray"]["driver_info"]["pid"], "node": run["ray"]["driver_node_id"]}
    proof, driver = run["job"]["proof"], run["job"]["driver"]
    assert (proof["driver_on_worker"], proof["driver_node_ip"], proof["head_ip"]) == (True, ip, stage.head_ip)
    assert stage.workers[driver["node"]] == driver["ip"] == ip
    assert driver["pid"] == int(run["client"]["pid"])
    placed = [e for e in stage.events(JOB) if e["kind"] == "driver_placed"]
    assert placed and all(ip in e["text"] and stage.head_ip in e["text"] for e in placed)
    assert ip in run["doc"].run("driver")


def test_head_computes_nothing(stage, run):
    nodes = {n["node_ip"]: n for n in stage.ray("/api/v0/nodes?detail=1")["data"]["result"]["result"]}
    assert set(nodes) == set(stage.bed.ips.values())
    for ip, node in nodes.items():
        total = node["resources_total"]
        assert (total.get("CPU", 0) > 0, total.get("GPU", 0)) == ((False, 0) if ip == stage.head_ip else (True, 4))


def test_everything_lies_in_the_directory_of_the_job(stage, run):
    """The directory's form, and that the run wrote nothing for which it would have needed another place."""
    root = stage.job_dir(JOB)
    assert run["job"]["output_dir"] == str(root)
    plain = ["meta.json"]
    plain += [f"config/{n}" for n in ("ray_config.yaml", "jobspec.yaml", "submit_cmd.txt")]
    plain += [f"attempts/1/{n}" for n in ("launch.json", "submit_payload.json", "argv.json", "env.json", "exit.json")]
    plain += [f"attempts/1/{n}" for n in ("logs/driver.log", "debug/ray_status_pre.txt", "debug/ray_job_list_post.txt")]
    links = [f"config/{n}.json" for n in ("submit_payload", "argv", "env")]
    links += ["logs/driver.log", "debug/ray_status_pre.txt", "debug/ray_job_list_post.txt"]
    is_plain = lambda p: p.is_file() and not p.is_symlink() and p.stat().st_size  # noqa: E731
    wait_for(lambda: all(is_plain(root / n) for n in plain), f"all is there of {plain}")
    assert [n for n in links if not (root / n).is_symlink() or not (root / n).is_file()] == []
    outside = {p.name for p in stage.root.iterdir()} - {"argus", "common", "hf", "jobs", "users"}
    assert outside == set() and [p.name for p in (stage.root / "jobs").iterdir()] == [JOB]
    assert str(root / "logs/driver.log") in run["doc"].run("look")


def test_checkpoints_at_save_freq(stage, run):
    """Four steps, one checkpoint every second one, whole: actor, critic and the loader's place."""
    assert run["job"]["state"] == "SUCCEEDED" and run["job"]["exit"]["code"] == 0
    assert stage.steps(JOB) == [1, 2, 3, 4]
    checkpoints = stage.job_dir(JOB) / "checkpoints"
    assert (checkpoints / "latest_checkpointed_iteration.txt").read_text() == "4"
    assert sorted(p.name for p in checkpoints.glob("global_step_*")) == ["global_step_2", "global_step_4"]
    shards = [f"{who}/{what}_world_size_1_rank_0.pt" for who in ("actor", "critic") for what in ("model", "optim")]
    for step in (2, 4):
        assert all((checkpoints / f"global_step_{step}" / name).stat().st_size > 0 for name in [*shards, "data.pt"])


def test_every_command_of_the_document_was_run(run):
    assert run["doc"].never_run() == []
