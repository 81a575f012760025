# SPDX-License-Identifier: Apache-2.0
"""Our client against real Ray, the founding version and the newest; and Ray against what was recorded of it."""

import json
import pathlib
import socket
import subprocess
import threading
import uuid

import pytest
from fakeray import wait_for
from raybed import BEDS
from rayprobe import PROBE, Probe
from record import DRIVER, compare, record

pytestmark = [pytest.mark.ray, pytest.mark.skipif(PROBE is None, reason="ray_probe is not built")]

RECORDED = pathlib.Path(__file__).resolve().parents[1] / "fake_ray" / "recorded"
LIST_JOBS = """
import json
from ray.job_submission import JobSubmissionClient
keep = "submission_id job_id status entrypoint message error_type start_time end_time metadata driver_node_id".split()
jobs = [j.dict() if hasattr(j, "dict") else j.__dict__ for j in JobSubmissionClient("URL").list_jobs()]
print("JOBS=" + json.dumps([{k: j[k] for k in keep} | {"exit_code": j["driver_exit_code"]} for j in jobs], default=str))
"""


@pytest.fixture(scope="module", params=[pytest.param("2.51.1", marks=pytest.mark.nightly), "2.60.0"])
def bed(request):
    return BEDS.get(request.param)


@pytest.fixture
def probe(bed):
    return Probe(bed.url)


@pytest.fixture
def name():
    return f"t-{uuid.uuid4().hex[:8]}"


def ends(probe, sid):
    """The job once it is terminal."""
    terminal = ("SUCCEEDED", "FAILED", "STOPPED")
    return wait_for(lambda: (j := probe("get", sid).get("job")) and j["status"] in terminal and j, f"end of {sid}")


def runs(probe, sid):
    return wait_for(lambda: (j := probe("get", sid)["job"])["status"] == "RUNNING" and j, f"{sid} runs")


def test_recorded_answers_still_hold(bed):
    recorded = json.loads((RECORDED / f"{bed.version}.json").read_text())
    got_version, got = record(bed.url)
    assert got_version == bed.version
    assert compare(recorded, got) == []


def test_version(bed, probe):
    got = probe("version")
    new = bed.version == "2.60.0"
    assert (got["version"], got["token"], got["entrypoint_labels"]) == (bed.version, new, new)
    assert got["session"].startswith("session_")


def test_nodes_are_those_of_the_bed(bed, probe):
    nodes = probe("nodes")["nodes"]
    assert [n["ip"] for n in nodes] == sorted(bed.ips.values())
    assert [n["ip"] for n in nodes if n["head"]] == [bed.head_ip]
    assert all(n["alive"] for n in nodes)
    workers = [n for n in nodes if not n["head"]]
    assert {n["resources"]["GPU"] for n in workers} == {4}
    assert {k for n in workers for k in n["resources"] if k.startswith("argus_node_")} == {
        f"argus_node_{h}" for h in bed.ips if bed.ips[h] != bed.head_ip
    }


def test_life_of_a_job_on_the_node_that_was_asked_for(bed, probe, name):
    spec = {
        "submission_id": name,
        "entrypoint": 'echo "$A"; echo oops >&2; exit 3',
        "env": {"A": "b"},
        "metadata": {"argus": "mark"},
        "num_cpus": 1,
        "resources": {"argus_node_h2": 1},
        "labels": {"argus.node": "h2"},
    }
    got = probe.submit(spec, spec)
    assert [g["outcome"] for g in got] == ["ACCEPTED", "DUPLICATE"]
    job = ends(probe, name)
    assert (job["status"], job["exit_code"], job["error_type"]) == ("FAILED", 3, "JOB_ENTRYPOINT_COMMAND_ERROR")
    assert job["metadata"] == {"argus": "mark"}
    node = next(n for n in probe("nodes")["nodes"] if n["node_id"] == job["driver_node_id"])
    assert node["ip"] == bed.ips["h2"]
    assert job["end_ms"] >= job["start_ms"] > 0
    assert probe("stop", name)["outcome"] == "ENDED"


def test_unknown_label_key_is_left_out_where_ray_is_old(bed, probe, name):
    """With a label that no node has: the old Ray never hears of it, the new one waits."""
    spec = {"submission_id": name, "entrypoint": "exec sleep 600", "labels": {"argus.node": "nowhere"}}
    assert probe.submit(spec)[0]["outcome"] == "ACCEPTED"
    if bed.version == "2.51.1":
        runs(probe, name)
        probe("stop", name)
        ends(probe, name)
    else:
        wait_for(lambda: probe("supervisor", name).get("actor", {}).get("state") == "PENDING_CREATION", "its wait")
        assert probe("get", name)["job"]["status"] == "PENDING"


def test_stop_frees_what_it_held(probe, name):
    spec = {"submission_id": name, "entrypoint": "exec sleep 600", "num_gpus": 4, "resources": {"argus_node_h3": 1}}
    assert probe.submit(spec)[0]["outcome"] == "ACCEPTED"
    node = runs(probe, name)["driver_node_id"]

    def gpus_used():
        return next(u["gpus_used"] for u in probe("usages")["usages"] if u["node_id"] == node)

    wait_for(lambda: gpus_used() == 4, "4 GPUs in use")
    assert probe("supervisor", name)["actor"]["state"] == "ALIVE"
    assert probe("delete", name)["outcome"] == "TOO_EARLY"
    assert probe("stop", name)["outcome"] == "ASKED"
    job = ends(probe, name)
    assert job["status"] == "STOPPED" and "exit_code" not in job
    wait_for(lambda: gpus_used() == 0, "no GPU in use")
    wait_for(lambda: probe("supervisor", name)["outcome"] == "NOT_FOUND", "the end of its supervisor")


def test_pending_job_cannot_be_taken_back(probe, name):
    probe.submit({"submission_id": name, "entrypoint": "true", "resources": {"no_such": 1}})
    assert probe("stop", name)["outcome"] == "ASKED"
    assert probe("get", name)["job"]["status"] == "PENDING"
    assert probe("delete", name)["outcome"] == "TOO_EARLY"
    wait_for(lambda: probe("supervisor", name).get("actor", {}).get("state") == "PENDING_CREATION", "its supervisor")


def test_what_is_not_there(probe):
    for call in ("get", "stop", "delete", "supervisor"):
        assert probe(call, "never-was")["outcome"] == "NOT_FOUND", call


def test_harvested_job_is_deleted_and_stays_so(probe, name):
    probe.submit({"submission_id": name, "entrypoint": "true"})
    ends(probe, name)
    # the rule is 5 s after the terminal status; the supervisor's end is what it waits for
    wait_for(lambda: probe("supervisor", name)["outcome"] == "NOT_FOUND", "the end of its supervisor")
    later = f"{name}-later"
    probe.submit({"submission_id": later, "entrypoint": "sleep 6"})
    ends(probe, later)
    assert probe("delete", name)["outcome"] == "DONE"
    probe.submit({"submission_id": f"{name}-last", "entrypoint": "sleep 2"})
    ends(probe, f"{name}-last")
    assert probe("get", name)["outcome"] == "NOT_FOUND"


# -- doubt --------------------------------------------------------------------------


class Cutter:
    """Passes a request on and cuts the line: after `sent` bytes of it, or before the answer goes back."""

    def __init__(self, bed, cut):
        self.cut = cut
        host, port = bed.url.removeprefix("http://").split(":")
        self.target = (host, int(port))
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.pass_on, args=(peer,), daemon=True).start()

    def pass_on(self, peer):
        with peer, socket.create_connection(self.target) as ray:
            while data := peer.recv(65536):
                is_post = data.startswith(b"POST")
                if is_post and self.cut == "request":
                    ray.sendall(data[: len(data) // 2])
                    return
                ray.sendall(data)
                answer = ray.recv(1 << 20)
                if is_post and self.cut == "answer":
                    return
                peer.sendall(answer)


@pytest.mark.parametrize("cut", ["request", "answer"])
def test_doubt_is_resolved_by_get_and_nothing_starts_twice(bed, probe, name, tmp_path, cut):
    mark = tmp_path / "ran"
    spec = {"submission_id": name, "entrypoint": f"echo x >> {mark}", "metadata": {"argus": name}}
    cutter = Cutter(bed, cut)
    with cutter.server:
        assert Probe(cutter.url).submit(spec)[0]["outcome"] == "DOUBT"
    found = probe("get", name)
    assert found["outcome"] == ("FOUND" if cut == "answer" else "NOT_FOUND")
    if cut == "answer":
        assert found["job"]["metadata"] == {"argus": name}
    assert probe.submit(spec)[0]["outcome"] == ("DUPLICATE" if cut == "answer" else "ACCEPTED")
    assert ends(probe, name)["status"] == "SUCCEEDED"
    assert probe.submit(spec)[0]["outcome"] == "DUPLICATE"
    assert mark.read_text() == "x\n"


def test_many_at_once_are_all_accepted_once(probe, name):
    specs = [{"submission_id": f"{name}-{i}", "entrypoint": "true"} for i in range(4)]
    got = probe.submit(*specs, *specs)
    assert [g["outcome"] for g in got] == ["ACCEPTED"] * 4 + ["DUPLICATE"] * 4
    for spec in specs:
        assert ends(probe, spec["submission_id"])["status"] == "SUCCEEDED"


# -- compared with Ray's own ------------------------------------------------------------


def test_driver_actors_and_groups_of_a_gang(bed, probe, name):
    spec = {"submission_id": name, "entrypoint": DRIVER, "num_cpus": 1, "resources": {"argus_node_h2": 1}}
    probe.submit(spec)
    job = wait_for(lambda: (j := probe("get", name)["job"])["driver_ip"] and j, "driver_info")
    assert job["driver_ip"] == bed.ips["h2"]
    group = wait_for(
        lambda: (g := probe("groups", job["job_id"])["groups"]) and g[0]["state"] == "CREATED" and g, "gang", 120
    )[0]
    placed = {b["node_id"] for b in group["bundles"]}
    workers = {n["node_id"] for n in probe("nodes")["nodes"] if not n["head"]}
    assert placed == workers and group["job_id"] == job["job_id"]
    assert {b["resources"]["GPU"] for b in group["bundles"]} == {1}
    listed = probe("actors")
    assert listed["partial"] is False
    assert f"_ray_internal_job_actor_{name}" in [a["name"] for a in listed["actors"]]
    assert probe("stop", name)["outcome"] == "ASKED"
    ends(probe, name)
    wait_for(lambda: probe("groups", job["job_id"])["groups"] == [], "the end of the gang")


def test_list_equals_that_of_rays_own_client(bed, probe):
    script = LIST_JOBS.replace("URL", bed.url)
    out = bed.on("ctl", str(bed.python), "-c", script)
    theirs = json.loads(next(line for line in out.splitlines() if line.startswith("JOBS=")).removeprefix("JOBS="))
    ours = probe("jobs")["jobs"]
    assert len(ours) >= 5

    def key(job):
        return (job["submission_id"] or "", job["job_id"] or "")

    for a, b in zip(ours, sorted(theirs, key=key), strict=True):
        same = "submission_id job_id entrypoint message error_type driver_node_id".split()
        assert {k: a[k] for k in same} == {k: b[k] for k in same}
        assert a["status"] == b["status"].removeprefix("JobStatus.")
        assert (a["start_ms"], a["end_ms"]) == (b["start_time"] or 0, b["end_time"] or 0)
        assert a["metadata"] == (b["metadata"] or {})
        assert a.get("exit_code") == b["exit_code"]


def test_dead_worker_is_told_and_its_job_fails(bed, probe, name):
    spec = {"submission_id": name, "entrypoint": "exec sleep 600", "resources": {"argus_node_h3": 1}}
    probe.submit(spec)
    runs(probe, name)
    bed.verb("kill-worker", "h3")
    try:
        job = ends(probe, name)
        assert (job["status"], job["error_type"]) == ("FAILED", "JOB_SUPERVISOR_ACTOR_DIED")
        assert "exit_code" not in job and not job["is_ghost"]
        dead = wait_for(lambda: [n for n in probe("nodes")["nodes"] if not n["alive"]], "Ray calls its node dead")
        assert [n["ip"] for n in dead] == [bed.ips["h3"]] and dead[0]["state_message"]
    finally:
        BEDS.drop()  # what follows gets a whole bed


def test_token_is_sent_and_demanded(name):
    bed = BEDS.get("2.60.0", "token")
    probe, spec = Probe(bed.url, token=bed.token), {"submission_id": name, "entrypoint": "true"}
    for other in (Probe(bed.url), Probe(bed.url, token="0" * 64)):
        assert other("version")["error"] == "unauthorised"
        assert other("jobs")["error"] == "unauthorised"
        assert other("get", name)["outcome"] == "UNKNOWN"
        assert other.submit(spec)[0]["outcome"] == "UNREACHABLE"
    assert probe("get", name)["outcome"] == "NOT_FOUND"
    assert [n["ip"] for n in probe("nodes")["nodes"]] == sorted(bed.ips.values())
    assert probe.submit(spec)[0]["outcome"] == "ACCEPTED"
    assert ends(probe, name)["status"] == "SUCCEEDED"
    wait_for(lambda: len(probe("usages")["usages"]) == 3, "the monitor's report of all three")


def test_probe_refuses_to_look_like_a_browser():
    done = subprocess.run([PROBE, "http://127.0.0.1:1", "agent=Mozilla/5.0", "version"], capture_output=True, text=True)
    assert done.returncode == 2 and "ray refuses browsers" in done.stderr
