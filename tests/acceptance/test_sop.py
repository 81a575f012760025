# SPDX-License-Identifier: Apache-2.0
"""docs/sop: their commands as an operator would paste them, in order, on the newest Ray: node on, a job, node off."""

import pathlib
import re

import pytest
from stage import wait_for

ON = {"NODE": "node-7", "POOL": "a6000"}
OFF = {"NODE": "node-7", "DEADLINE": "10s"}
STAYS = {"workload": "ray", "entrypoint": ["sleep", "3600"], "nnodes": 1, "n_gpus_per_node": 1, "pool": "node-7"}
NVIDIA_SMI = "#!/bin/sh\ncase $* in *query-gpu*) echo 'NVIDIA RTX A6000, 550.54.15, 0';; esac\n"


@pytest.fixture(scope="module")
def on(bare_newest):
    """A machine with one GPU comes. That it has one is pretended by what stands in for its nvidia-smi."""
    smi = pathlib.Path(bare_newest.bed.dir, "hosts/h2/bin/nvidia-smi")
    smi.write_text(NVIDIA_SMI)
    smi.chmod(0o755)
    page = bare_newest.document("sop/node-on")
    values = {**ON, "NODE_HOST": bare_newest.workers["h2"]}
    said = {block: page.run(block, **values) for block in ("before", "add", "after")}
    wait_for(lambda: bare_newest.node("node-7")["gpus"]["free"] == 1, "its GPU is free: else step 4 waits for ever")
    said |= {block: page.run(block, **values) for block in ("try", "check")}
    status = bare_newest.keep("ray_status_on.txt", bare_newest.ray_status())
    (job,) = bare_newest.get("/v1/jobs")["jobs"]
    return {**said, "page": page, "status": status, "job": bare_newest.keep_job(job["id"])}


@pytest.fixture(scope="module")
def off(bare_newest, on):
    """It goes while a job runs there that may be started again elsewhere."""
    page = bare_newest.document("sop/node-off")
    job = bare_newest.submit({**STAYS, "restart": {"max": 3, "on": ["node_lost"]}}, token="admin")
    bare_newest.wait_state(job, "RUNNING")
    said = {block: page.run(block, **OFF) for block in ("who", "drain", "remove", "after")}
    return {**said, "page": page, "id": job, "job": bare_newest.keep_job(job)}


def processes(stage, host):
    """What runs on a host beside its sshd, the host's own pid 1 and this look itself."""
    script = "for p in /proc/[0-9]*; do echo $(tr '\\0' ' ' <$p/cmdline); done"
    lines = stage.bed.on(host, "sh", "-c", script).splitlines()
    return [line for line in lines if line.strip() and not re.search(r"sshd|keeper\.py|cmdline|ssh-", line)]


def test_node_on_as_the_operator_reads_it(bare_newest, on):
    assert "node-7" not in on["before"]
    assert "online" in on["add"] and "SHA256:" in on["add"]
    assert re.search(r"(?m)^node-7\s.*online", on["after"]) and "a6000" in on["after"]
    assert "hello from h2" in on["try"]
    assert on["job"]["state"] == "SUCCEEDED"
    assert [n["name"] for n in on["job"]["nodes"]] == ["node-7"]
    assert "argus_node_node-7" in on["status"]


def test_node_off_as_the_operator_reads_it(bare_newest, off):
    assert off["id"][:8] in off["who"]
    assert re.search(r"(?m)^node-7 offline", off["drain"])
    assert "node-7 removed" in off["remove"] and "node-7" not in off["after"]


def test_job_on_it_waits_for_another_machine(off):
    assert (off["job"]["state"], off["job"]["restarts"]) == ("QUEUED", 1)
    assert [a["k"] for a in off["job"]["attempts"]] == [1]


def test_nothing_of_ours_is_left_on_the_machine(bare_newest, off):
    wait_for(lambda: processes(bare_newest, "h2") == [], "h2 is as bare as it was")

    def alive():
        nodes = bare_newest.ray("/api/v0/nodes?detail=1")["data"]["result"]["result"]
        return {n["node_ip"] for n in nodes if n["state"] == "ALIVE"}

    wait_for(lambda: bare_newest.workers["h2"] not in alive(), "Ray has let it go")
    assert bare_newest.call("GET", "/v1/nodes/node-7").status == 404


def test_every_command_of_the_pages_was_run(on, off):
    assert on["page"].never_run() == [] and off["page"].never_run() == []
