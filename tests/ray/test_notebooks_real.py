# SPDX-License-Identifier: Apache-2.0
"""Notebooks with a real JupyterLab on real Ray 2.60.0: machines that argusd starts, cells run through its door; then
what dies under them, from the kernel to the machine, and a GPU that is lent and taken back. Each time: what is told
(state, phase, interruption), and that the files are there.

The environment with JupyterLab is made by `tools/setup/setup jupyter`."""

import json
import os
import pathlib

import pytest
import stage as staging
from barestage import BareStage
from notebookbed import Door, lab_environment
from ports import free_port
from raybed import BEDS
from rayprocs import of_ray
from stage import DEADLINE, wait_for

from argusd import needs_argusd

pytestmark = [pytest.mark.ray, pytest.mark.nightly, needs_argusd, pytest.mark.timeout(900)]

HOSTS = {"n1": "h2", "n2": "h3"}
WITH_GPU = "n1"
PATIENT = "echo up; exec tail -f /dev/null"
# What a cell knows of where it runs.
LOOK = """
import importlib.util, json, os, socket, sys
print(json.dumps({"host": socket.gethostname(), "job": os.environ["ARGUS_JOB_ID"], "prefix": sys.prefix,
                  "lab": importlib.util.find_spec("jupyterlab").origin}))
"""
WRITE = "n = open('kept.txt', 'a').write('a line\\n')"


class NotebookStage(BareStage):
    others = {"user": "alice"}

    def __init__(self, *args):
        super().__init__(*args)
        self.door = free_port()
        self.more = f"{Door.lines(self.door)}limits: {{reclaim_grace: 2s}}\n"


class Bed(Door):
    patience = DEADLINE

    def __init__(self, stage, python):
        self.argusd, self.python, self.door = stage, str(python), stage.door

    def file(self, name):
        return self.argusd.root / "users/alice" / name

    def events(self, name):
        """Kinds of what was told of a notebook, in their order."""
        return [e["kind"] for e in self.argusd.events() if e["object"] == f"notebook/alice/{name}"]

    def check_goes_on(self, name, path="a.ipynb"):
        """Files are there, and its cells run. -> the machine on which they do"""
        assert self.file("kept.txt").read_text() == "a line\n"
        with self.kernel(name, path) as kernel:
            kernel.run(WRITE.replace("'a'", "'w'"))
            assert kernel.run("print(open('kept.txt').read(), end='')") == "a line\n"
            return json.loads(kernel.run(LOOK))["host"]


@pytest.fixture(scope="module")
def bed(request, tmp_path_factory):
    python = lab_environment() / "bin/python"
    kept = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("kept"))
    with staging.open_stage(NotebookStage, BEDS.bare("2.60.0"), request, tmp_path_factory, kept, None) as s:
        for name, host in HOSTS.items():
            s.add_node(name, host, gpu_count=1 if name == WITH_GPU else 0, cpu_count=6)
        for name in HOSTS:
            s.wait_node(name, "online")
        yield Bed(s, python)


def begin(bed, name, **keys):
    """A notebook that is ready, one line in its user's directory, and its page."""
    bed.ready(name, **keys)
    bed.file("kept.txt").unlink(missing_ok=True)
    with bed.kernel(name, "a.ipynb") as kernel:
        assert kernel.run(WRITE) == ""
    assert bed.file("kept.txt").read_text() == "a line\n"
    return bed.page(name)


def ids(kernel):
    """Of the kernel's process, and of the server that started it."""
    return kernel.run("import os; print(os.getpid(), os.getppid())").split()


def is_there(bed, host, pid):
    return bed.argusd.bed.on(host, "sh", "-c", f"[ -e /proc/{pid} ] && echo yes || :").strip() == "yes"


def test_a_cell_runs_on_the_leased_machine(bed):
    page = begin(bed, "looks")
    assert (page["phase"], page["reason"], page["interruption"]) == ("ready", None, None)
    assert bed.argusd.job(page["job"])["nodes"][0]["name"] == page["node"]
    with bed.kernel("looks", "a.ipynb") as kernel:
        seen = json.loads(kernel.run(LOOK))
        assert kernel.run("1 / 0") == "ZeroDivisionError: division by zero"
    assert (seen["host"], seen["job"]) == (HOSTS[page["node"]], page["job"])
    assert seen["prefix"].startswith(str(bed.file(".argus/overlay-")))
    assert seen["lab"].startswith(str(lab_environment())), "what the environment has is seen"
    bed.gone("looks")
    assert bed.file("kept.txt").read_text() == "a line\n"


def test_a_killed_kernel_begins_anew_in_the_same_notebook(bed):
    """JupyterLab tells its page and starts it again; to argusd nothing has happened."""
    page = begin(bed, "kernel")
    with bed.kernel("kernel", "a.ipynb") as kernel:
        assert kernel.run("x = 41") == ""
        pid, _ = ids(kernel)
        bed.argusd.bed.kill(HOSTS[page["node"]], pid)
        assert kernel.told("restarting") == "restarting"
        assert kernel.run("print('x' in globals())") == "False\n", "what was in its memory is gone"
        assert ids(kernel)[0] != pid
    after = bed.page("kernel")
    assert (after["state"], after["phase"], after["job"]) == ("READY", "ready", page["job"])
    assert after["interruption"] is None and "notebook_interrupted" not in bed.events("kernel")
    assert bed.check_goes_on("kernel") == HOSTS[page["node"]]
    bed.gone("kernel")


def test_a_killed_argusd_takes_nothing_from_a_notebook(bed):
    page = begin(bed, "argusd")
    cookie, to = bed.enter("argusd")
    with bed.kernel("argusd", "a.ipynb") as kernel:
        assert kernel.run("x = 41") == ""
    bed.argusd.kill9()
    bed.argusd.start()
    after = bed.wait("READY", "argusd")
    assert (after["job"], after["node"], after["interruption"]) == (page["job"], page["node"], None)
    assert bed.ask(to, cookie)[0] == 200, "whoever was in is in"
    with bed.kernel("argusd", "a.ipynb") as kernel:
        assert kernel.run("print(x + 1)") == "42\n", "the kernel has noticed nothing"
    assert bed.check_goes_on("argusd") == HOSTS[page["node"]]
    assert bed.argusd.job(page["job"])["attempt"] == 1 and "notebook_interrupted" not in bed.events("argusd")
    bed.gone("argusd")


def test_a_killed_jupyterlab_ends_the_notebook_until_people_start_it(bed):
    page = begin(bed, "server")
    host = HOSTS[page["node"]]
    with bed.kernel("server", "a.ipynb") as kernel:
        mine, server = ids(kernel)
    bed.argusd.bed.kill(host, server)
    failed = bed.wait("FAILED", "server")
    assert (failed["phase"], failed["interruption"]) == (None, None)
    assert failed["reason"]["code"] == "notebook_job_ended", failed
    assert failed["reason"]["text"] == f"its lease, job '{page['job']}', has ended: FAILED"
    assert "JupyterLab server has ended by itself, by signal 9" in bed.argusd.driver_log(page["job"])
    wait_for(lambda: not is_there(bed, host, mine), "its kernel has ended with it")
    assert bed.call("POST", "/v1/notebooks/server:open").status == 503
    again = bed.ready("server")
    assert again["job"] != page["job"] and again["reason"] is None
    bed.check_goes_on("server")
    bed.gone("server")


@pytest.mark.parametrize("what", ["raylet", "host"])
def test_a_lost_machine_is_told_and_the_notebook_starts_on_another(bed, what):
    name = f"lost-{what}"
    page = begin(bed, name)
    host = HOSTS[page["node"]]
    if what == "raylet":
        ((_, raylet),) = of_ray(bed.argusd.bed, [host], "raylet")
        bed.argusd.bed.kill(host, raylet)
    else:
        bed.argusd.bed.verb("destroy", host)
    try:

        def is_elsewhere():
            now = bed.page(name)
            return now["state"] == "READY" and now["node"] != page["node"] and now

        after = wait_for(is_elsewhere, f"{name} is ready on another machine")
    finally:
        if what == "host":
            bed.argusd.bed.verb("create", host)
    assert after["job"] == page["job"] and after["phase"] == "ready" and after["interrupted_at"]
    assert after["interruption"]["code"] == "notebook_lost"
    assert f"machine '{page['node']}' was lost" in after["interruption"]["text"]
    assert bed.events(name).count("notebook_interrupted") == 1
    assert bed.check_goes_on(name) == HOSTS[after["node"]]
    bed.gone(name)
    for node in HOSTS:  # for who comes next
        bed.argusd.wait_node(node, "online")


def test_a_lent_gpu_goes_back_after_its_grace_and_comes_again(bed):
    """The only GPU is guaranteed to another project than the notebook's."""
    for project in ("owners", "borrowers"):
        assert bed.argusd.call("POST", "/v1/projects", {"name": project, "members": ["alice"]}).status == 201
    assert bed.argusd.call("PUT", "/v1/projects/owners/quota", {"gpus_guaranteed": 1}).status == 200
    page = begin(bed, "lent", gpus=1, project="borrowers")
    assert page["node"] == WITH_GPU
    owner = bed.argusd.submit(PATIENT, project="owners", n_gpus_per_node=1)
    bed.argusd.wait_state(owner, "RUNNING")
    told = [e["reason"]["code"] for e in bed.argusd.events(page["job"]) if e["kind"] in ("reclaim", "stop", "ended")]
    assert told == ["reclaiming", "preempted", "preempted"]
    bed.wait("WAITING", "lent")
    waits = wait_for(lambda: (n := bed.page("lent"))["interruption"] and n["reason"] and n, "what happened is told")
    assert (waits["state"], waits["phase"], waits["job"]) == ("WAITING", "queued", page["job"])
    assert waits["interruption"]["code"] == "notebook_gave_way" and waits["interrupted_at"]
    refused = bed.call("POST", "/v1/notebooks/lent:open")
    assert (refused.status, refused.json()["code"]) == (503, "notebook_not_ready")
    bed.argusd.stop_job(owner)
    after = bed.wait("READY", "lent")
    assert (after["job"], after["node"], after["reason"]) == (page["job"], WITH_GPU, None)
    assert after["interruption"] == waits["interruption"], "until people start it anew"
    assert bed.argusd.job(page["job"])["restart"]["preemptions"] == 1
    assert bed.check_goes_on("lent") == HOSTS[WITH_GPU]
    bed.gone("lent")
