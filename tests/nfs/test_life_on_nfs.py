# SPDX-License-Identifier: Apache-2.0
"""A small Argus whose shared root is a real NFSv4.2 mount: argusd is one client of the server, the machine on which
jobs run is another one. Cables are cut, and the server starts again."""

import contextlib
import re
import subprocess
import time
import uuid

import pytest
from fakeray import FakeRay
from nfsbed import HEAD, NODE, ON_NODE, sh
from programs import PROGRAMS

from argusd import Argusd, until

AWAY = 20  # seconds without the server

# It tells its steps on the node's own disk as well, and ends when it is told to.
TRAINS = """
i=0
while [ ! -e {end} ]; do
    i=$((i + 1))
    echo line $i
    echo $i >{steps}.new && mv {steps}.new {steps}
    sleep 0.05
done
echo the last was $i
"""


@contextlib.contextmanager
def cut(client):
    """The cable of one client."""
    sh("ip", "link", "set", f"to-{client.name}", "down")
    try:
        yield
    finally:
        sh("ip", "link", "set", f"to-{client.name}", "up")


@contextlib.contextmanager
def server_stopped():
    sh("rpc.nfsd", "0")
    try:
        yield
    finally:
        sh("rpc.nfsd", "--no-nfs-version", "3", "4")


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    """Its own state is on the guest's own disk, as a store must be."""
    with (
        FakeRay(wrap=ON_NODE) as ray,
        Argusd(tmp_path_factory.mktemp("argusd"), ray.url, shared_root=HEAD / uuid.uuid4().hex) as argusd,
    ):
        yield argusd


@pytest.fixture
def trains(argusd, tmp_path):
    """A job in its middle, how far it is, and how to end it."""
    steps, end = tmp_path / "steps", tmp_path / "end"
    job = argusd.submit(TRAINS.format(steps=steps, end=end))
    argusd.wait_state(job, "RUNNING")
    until(lambda: int(steps.read_text()) > 20, "it makes steps")
    yield job, steps, end
    end.touch()


def whole_log(argusd, job):
    return argusd.call("GET", f"/v1/jobs/{job}/logs?offset=0&limit={8 << 20}", token="admin").body.decode()


def assert_whole(text):
    (last,) = re.findall(r"(?m)^the last was (\d+)$", text)
    assert [int(n) for n in re.findall(r"(?m)^line (\d+)$", text)] == list(range(1, int(last) + 1))


def goes_on_while(argusd, job, steps, seconds):
    """Steps made meanwhile; argusd answers all the time."""
    over, before = time.monotonic() + seconds, int(steps.read_text())

    def waited():
        argusd.job(job)
        return time.monotonic() > over

    until(waited, "the server was away for a while")
    return int(steps.read_text()) - before


def ends_whole(argusd, job, end):
    end.touch()
    over = argusd.wait_over(job)
    assert (over["state"], over["attempt"], over["finding"]) == ("SUCCEEDED", 1, None), argusd.events(job)
    assert_whole(whole_log(argusd, job))


def test_what_two_clients_are(argusd):
    """The fixtures are what they claim: NFS 4.2, and the node has a client of its own."""
    kinds = re.findall(rf"on ({HEAD}|{NODE}) type nfs4 \(.*vers=4\.2,.*clientaddr=([0-9.]+)", sh("mount"))
    assert len({address for _, address in kinds}) == 2, kinds
    job = argusd.submit(f"grep ' {HEAD} ' /proc/self/mountinfo | tail -1 | grep -o 'clientaddr=[0-9.]*'")
    assert argusd.wait_over(job)["state"] == "SUCCEEDED"
    assert f"clientaddr={dict(kinds)[str(NODE)]}" in whole_log(argusd, job)


def test_the_exit_and_the_log_come_home(argusd):
    job = argusd.submit("echo what it said; exit 3")
    over = argusd.wait_over(job)
    assert (over["state"], over["attempt"]) == ("FAILED", 1)
    assert "what it said" in whole_log(argusd, job)


def test_one_of_two_shepherds_runs(argusd, tmp_path):
    """A second one on the other client finds driver.log there."""
    job = argusd.submit(f"echo one >>{tmp_path}/ran")
    assert argusd.wait_over(job)["state"] == "SUCCEEDED"
    attempt = argusd.job_dir(job) / "attempts/1"
    (shepherd,) = argusd.root.glob("argus/bin/*/argus-shepherd")
    before = (attempt / "exit.json").read_bytes()
    for _ in range(2):
        assert subprocess.run([shepherd, attempt], capture_output=True, timeout=120).returncode != 0
    assert (tmp_path / "ran").read_text() == "one\n"
    assert (attempt / "exit.json").read_bytes() == before


def test_the_node_loses_the_server(argusd, trains):
    job, steps, end = trains
    with cut(NODE):
        assert goes_on_while(argusd, job, steps, AWAY) > 20
    ends_whole(argusd, job, end)


def test_the_head_loses_the_server(argusd, trains):
    job, steps, end = trains
    with cut(HEAD):
        assert goes_on_while(argusd, job, steps, AWAY) > 20
    ends_whole(argusd, job, end)


def test_the_server_starts_again(argusd, trains):
    job, steps, end = trains
    with server_stopped():
        assert goes_on_while(argusd, job, steps, AWAY) > 20
    ends_whole(argusd, job, end)


def test_a_job_is_stopped_through_the_root(argusd, trains):
    job, _, _ = trains
    argusd.stop_job(job)
    assert argusd.wait_over(job)["state"] == "STOPPED"


def test_a_store_on_nfs_is_refused(tmp_path):
    state = HEAD / uuid.uuid4().hex
    config = tmp_path / "argus.yaml"
    config.write_text(f"shared_root: {tmp_path}\nstate_dir: {state}\nray: {{address: 'http://127.0.0.1:1'}}\n")
    for argv in (["init", "--config", config], ["--config", config]):
        done = subprocess.run([PROGRAMS["argusd"], *argv], capture_output=True, text=True, timeout=120)
        assert done.returncode != 0
        assert "is on a network file system" in done.stderr
        assert "give state_dir a local disk" in done.stderr
