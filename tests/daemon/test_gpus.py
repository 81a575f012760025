# SPDX-License-Identifier: Apache-2.0
"""Whose GPUs are used and how: beside a fake Ray a scout reads a pretended driver (tests/lib/fake_nvml.c), and its
words stand in the place of Ray's page, in the job's GPUs, and after its end."""

import contextlib
import json
import os
import pathlib
import subprocess

import pytest
from fakedriver import give_gpus, set_gpus
from figurebed import World
from programs import PROGRAMS
from receiver import Receiver
from rulebed import Watch, rules_yaml
from shepherding import is_outermost

from argusd import needs_argusd, until

pytestmark = needs_argusd

GPU = "gpu {} {} 40000 300000 55"


class GpuWorld(World):
    """Its workers are this machine, and so is the driver."""

    def __init__(self, home, more=""):
        super().__init__(home, more)
        self.home = home
        self.bin = self.argusd.root / "argus" / "bin" / os.uname().machine
        until((self.bin / "argus-gpus").exists, "argus-gpus on the shared root")
        give_gpus(self.bin, None, GPU.format(0, 0), GPU.format(1, 0))

    def submit(self, name, **keys):
        """A job whose scout runs as its hook would start it. It prints, so that its silence is never taken for
        idleness in a moment without figures. Ends when its gate opens, and fails once for a file NAME.fail."""
        gate, pid, fail = (self.argusd.root / "common" / f"{name}.{end}" for end in ("gate", "pid", "fail"))
        scout = (
            f"P=/tmp/argus-{os.getuid()}-$ARGUS_JOB_ID-a${{ARGUS_ATTEMPT_DIR##*/}}-test; mkdir $P; "
            f'{PROGRAMS["argus-shepherd"]} --scout "$ARGUS_ATTEMPT_DIR" $P {os.getpid()} "$ARGUS_DRIVER_NODE"; '
        )
        wait = (
            f"echo $$ >{pid}.new; mv {pid}.new {pid}; "
            f"while [ ! -e {gate} ]; do if [ -e {fail} ]; then rm {fail}; exit 1; fi; echo .; sleep 0.1; done"
        )
        run = f"export RANK=0; sh -c '{wait}'"
        job = self.argusd.submit(scout + run, **keys)
        until(pid.exists, "the process of the job")
        return job, int(pid.read_text()), gate

    def argus(self, *words):
        env = {**os.environ, "ARGUS_URL": self.argusd.url, "ARGUS_TOKEN": self.argusd.tokens["user"]}
        return subprocess.run([PROGRAMS["argus"], *words], env=env, capture_output=True, text=True, check=False)

    @contextlib.contextmanager
    def silent_pages(self):
        """Ray's pages say nothing of GPUs."""
        texts = {name: page.text for name, page in self.pages.items()}
        for page in self.pages.values():
            page.text = "".join(line for line in page.text.splitlines(True) if "ray_node_gpus_" not in line)
        try:
            yield
        finally:
            for name, page in self.pages.items():
                page.text = texts[name]

    def gpus(self, job, ok):
        def look():
            page = self.argusd.get(f"/v1/jobs/{job}/gpus?step=15s")
            return page["series"] if all(map(ok, page["series"])) else None

        return until(look, "the job's GPUs")


# As shipped, but for how long a fault has to last, and to be away.
RULES = """
gpu_hot: {for: 0s, clear_for: 1s}
gpu_xid: {clear_for: 1s}
gpu_xid_program: {clear_for: 1s}
gpu_throttled: {for: 0s, clear_for: 1s}
gpu_pcie_fallen: {for: 0s, clear_for: 1s}
gpu_nvlink_fallen: {for: 0s, clear_for: 1s}
job_gpu_abnormal: {for: 1s, clear_for: 1s}
job_idle_gpus: {when: gpus > 0 and gpu_use < 5% and running_for > 1s, for: 1s, clear_for: 1s}
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with Receiver() as hook:
        made = GpuWorld(tmp_path_factory.mktemp("gpus"), rules_yaml(hook, RULES))
        made.watch = Watch(made.argusd, hook)
        yield made
        made.close()


def test_the_use_of_a_job(world):
    job, pid, gate = world.submit("use", n_gpus_per_node=1)
    [held] = world.argusd.job(job)["nodes"]
    [gpu] = held["gpu_ids"]
    set_gpus(world.bin, GPU.format(gpu, 33), GPU.format(1 - gpu, 90), f"proc {gpu} {pid} 2000 33")
    # Ray's pages say 87 and 5: the driver's mean is what counts, of the job's own GPU alone.
    running = world.argusd.wait_job(job, lambda j: j["gpu_util"] == 33, "has the driver's use")
    assert running["state"] == "RUNNING"
    [told] = world.gpus(job, lambda s: (s["busy_s"] or 0) > 0)
    assert (told["node"], told["gpu"], told["rank"], told["by_processes"]) == (held["name"], gpu, 0, True)
    assert told["uuid"].endswith(str(gpu)) and told["mem_peak_bytes"] == 2000 << 20
    assert told["busy_s"] <= told["watched_s"] * 0.33 + 0.01 and told["used_joules"] > 0
    assert (told["temperature_celsius"], told["power_watts"]) == (55, 300)
    gate.touch()
    world.argusd.wait_over(job)
    [after] = world.gpus(job, lambda s: s["busy_s"] is not None)
    assert after["busy_s"] >= told["busy_s"] and after["rank"] == 0


def test_the_sums_are_the_nodes(world):
    """A job on both GPUs of a node beside a stranger's process: its parts and the stranger's are what the GPUs did."""
    set_gpus(world.bin, GPU.format(0, 40), GPU.format(1, 80))
    job, pid, gate = world.submit("sums", n_gpus_per_node=2)
    [held] = world.argusd.job(job)["nodes"]
    lines = [f"proc 0 {pid} 1000 30", f"proc 0 {os.getpid()} 500 10", f"proc 1 {pid} 1000 80"]
    set_gpus(world.bin, GPU.format(0, 40), GPU.format(1, 80), *lines)
    told = world.gpus(job, lambda s: (s["busy_s"] or 0) > 0 and s["by_processes"])
    assert [s["gpu"] for s in told] == [0, 1]
    # The scout's own book of the node, beside what the job is told.
    path = next(pathlib.Path(world.argusd.root).glob(f"**/{job}/attempts/1/gpus/{held['name']}.json"))

    def agreed():
        cards = json.loads(path.read_text())["gpus"]
        told = world.gpus(job, lambda s: True)
        same = all(s["watched_s"] == pytest.approx(c["watched_s"], rel=1e-4) for s, c in zip(told, cards, strict=True))
        return (told, cards) if same else None

    told, cards = until(agreed, "the newest book in the job")
    strange = sum(p["busy_s"] for c in cards for p in c["processes"] if not p["ours"])
    assert strange > 0  # the parts as the driver tells them, in a pid namespace equal ones
    assert sum(s["busy_s"] for s in told) + strange == pytest.approx(sum(c["busy_s"] for c in cards), rel=1e-4)
    assert told[1]["busy_s"] == pytest.approx(told[1]["watched_s"] * 0.8, rel=1e-4)
    gate.touch()
    world.argusd.wait_over(job)


@pytest.mark.skipif(not is_outermost(), reason="in a pid namespace the driver's use by process is not taken")
def test_a_job_that_rests_beside_one_that_works(world):
    """Both workers are this machine, so that a job on each is on the same GPUs: what the one does is not held to be the
    other one's work, and together it is what the GPUs do."""
    keys = {"n_gpus_per_node": 2, "idle": {"min_gpu_util": 5, "window": "20s"}}
    lines = [GPU.format(g, 80) for g in (0, 1)]
    with world.silent_pages():
        set_gpus(world.bin, *lines)
        works, pid, works_gate = world.submit("works", **keys)
        lines += [f"proc {g} {pid} 2000 80" for g in (0, 1)]
        set_gpus(world.bin, *lines)
        rests, pid, rests_gate = world.submit("rests", **keys)
        set_gpus(world.bin, *lines, *[f"proc {g} {pid} 500 0" for g in (0, 1)])
        idle = world.argusd.wait_job(rests, lambda j: "IDLE" in j["flags"], "is called idle")
        assert idle["reason"]["args"]["use"] == 0, idle["reason"]
        world.argusd.wait_job(rests, lambda j: j["gpu_idle_hours"] > 0, "holds its GPUs idle in the ledger")
        world.argusd.wait_job(rests, lambda j: 0 <= j["gpu_util"] < 40, "has no part in what the GPUs do")
        busy = world.argusd.wait_job(works, lambda j: j["gpu_util"] == 80, "has all that the GPUs do")
        assert "IDLE" not in busy["flags"] and busy["gpu_idle_hours"] == 0
        for row in world.gpus(works, lambda s: s["by_processes"]):
            assert row["busy_s"] == pytest.approx(row["watched_s"] * 0.8, rel=1e-4) and row["used_joules"] > 0
        for row in world.gpus(rests, lambda s: s["by_processes"]):
            assert row["busy_s"] == row["used_joules"] == 0
        for job, gate in ((works, works_gate), (rests, rests_gate)):
            gate.touch()
            world.argusd.wait_over(job)


def test_all_attempts_of_a_job(world):
    """What an earlier attempt used stays, and counts."""
    set_gpus(world.bin, GPU.format(0, 50), GPU.format(1, 50))
    restart = {"max": 1, "backoff": "1s", "on": ["unknown", "user_code_error"]}
    job, _, gate = world.submit("again", n_gpus_per_node=1, restart=restart)
    [first] = world.gpus(job, lambda s: (s["used_joules"] or 0) > 0)
    gate.with_suffix(".fail").touch()
    world.argusd.wait_job(job, lambda j: j["attempt"] == 2, "is at its second attempt")
    [second] = world.gpus(job, lambda s: (s["used_joules"] or 0) > 0)
    gate.touch()
    end = world.argusd.wait_over(job)
    assert end["state"] == "SUCCEEDED", end["reason"]

    def agreed():
        page, end = world.argusd.get(f"/v1/jobs/{job}/gpus?step=15s"), world.argusd.job(job)
        return (page, end) if end["gpu_joules"] == pytest.approx(page["total"]["used_joules"]) else None

    page, end = until(agreed, "the newest book in the job")
    [earlier], [newest] = page["earlier"], page["series"]
    assert earlier["attempt"] == 1 and (earlier["node"], earlier["gpu"]) == (first["node"], first["gpu"])
    for key in ("used_joules", "busy_s", "watched_s"):
        assert earlier[key] >= first[key] and newest[key] >= second[key], key
        assert page["total"][key] == pytest.approx(earlier[key] + newest[key]), key
    said = world.argus("status", job)
    assert said.returncode == 0 and f"{end['gpu_joules'] / 3.6e6:.4f} kWh, over all attempts" in said.stdout, said


def xid_ends(world, rule):
    """A reader of a driver tells its newest Xid while it lives; the next one, on either node, knows of none."""
    jobs = [world.submit(f"{rule}-{n}", n_gpus_per_node=2) for n in range(2)]
    world.watch.ends(rule)
    for job, _, gate in jobs:
        gate.touch()
        world.argusd.wait_over(job)


def test_faults_of_gpus_and_idle_jobs_are_told(world):
    """Broken in the driver: Xid, memory, heat; one GPU of a job works and the other does not; then neither does."""
    submitted = Watch.begin()
    set_gpus(world.bin, GPU.format(0, 90), GPU.format(1, 0))
    job, pid, gate = world.submit("faults", n_gpus_per_node=2, idle={"min_gpu_util": 5, "window": "20s"})
    procs = [f"proc {g} {pid} 1000 0" for g in (0, 1)]
    set_gpus(world.bin, GPU.format(0, 90), GPU.format(1, 0), *procs)
    world.gpus(job, lambda s: s["by_processes"])  # an Xid from before a driver's reader began is not told by it
    watch, begun = world.watch, Watch.begin()
    set_gpus(world.bin, GPU.format(0, 90), "gpu 1 0 40000 300000 95", "ecc 0 3", "xid 0 79", *procs)
    said = {
        "gpu_xid": "reported Xid 79",
        "gpu_ecc": "3 uncorrected memory errors",
        "gpu_hot": "is at 95 degrees",
    }
    for rule, text in said.items():
        assert text in watch.hears(rule, begun)["text"]
    assert "unevenly: 0 % of one" in watch.hears("job_gpu_abnormal", submitted, job)["text"]  # it is so from the start
    assert "IDLE" not in world.argusd.job(job)["flags"]
    set_gpus(world.bin, GPU.format(0, 0), GPU.format(1, 0), *procs)
    idle = world.argusd.wait_job(job, lambda j: "IDLE" in j["flags"], "is idle")
    assert idle["reason"]["code"] == "gpu_idle" and "min_gpu_util is 5" in idle["reason"]["text"]
    args = idle["reason"]["args"]
    assert args["use"] < 5 and args["since"] and args["gpus"] == 2
    assert idle["state"] == "RUNNING"
    set_gpus(world.bin, GPU.format(0, 90), GPU.format(1, 90), *procs)
    world.argusd.wait_job(job, lambda j: "IDLE" not in j["flags"], "works again")
    kinds = [e["kind"] for e in world.argusd.get(f"/v1/jobs/{job}/events")["events"]]
    assert "idle" in kinds and "busy" in kinds
    for rule in ("gpu_ecc", "gpu_hot", "job_gpu_abnormal"):
        watch.ends(rule)
    gate.touch()
    world.argusd.wait_over(job)
    xid_ends(world, "gpu_xid")


def test_faults_that_a_gpu_works_on_with_are_told(world):
    """Rows of memory, heat that holds the clock back, a narrower slot, links that fell; some end at once."""
    set_gpus(world.bin, GPU.format(0, 90), GPU.format(1, 90))
    job, pid, gate = world.submit("links", n_gpus_per_node=2)
    node = world.argusd.job(job)["nodes"][0]["name"]
    procs = [f"proc {g} {pid} 1000 90" for g in (0, 1)]
    set_gpus(world.bin, GPU.format(0, 90), GPU.format(1, 90), *procs)
    world.gpus(job, lambda s: s["by_processes"])  # its 18 links were seen
    begun = Watch.begin()
    faults = ["xid 1 31", "rows 0 1", "pending 1 1", "throttle 0 64", "throttle 1 4", "pcie 1 8", "links 0 16"]
    set_gpus(world.bin, GPU.format(0, 90), GPU.format(1, 90), *faults, *procs)
    said = {
        "gpu_xid_program": f"a program made GPU {node}/1 report Xid 31",
        "gpu_rows_failed": f"GPU {node}/0 has memory rows that could not be replaced",
        "gpu_rows_pending": f"GPU {node}/1 replaces bad memory rows at its next reset",
        "gpu_throttled": f"GPU {node}/0 is held back by heat or power (at 55 degrees)",
        "gpu_pcie_fallen": f"GPU {node}/1 has 8 PCIe lanes, 8 fewer than its slot",
        "gpu_nvlink_fallen": f"GPU {node}/0 has lost 2 of its NVLinks, 16 are up",
    }

    def alerts(state):
        found = world.argusd.get(f"/v1/alerts?state={state}")["alerts"]
        return {a["rule"]: a["text"] for a in found if a["rule"] in said}

    until(lambda: alerts("open") == said, "each fault as an alert")
    for rule, text in said.items():
        assert world.watch.hears(rule, begun)["text"] == text
    assert not [
        a
        for a in world.argusd.get("/v1/alerts?state=open")["alerts"]
        if "Xid 31" in a["text"] and a["rule"] == "gpu_xid"
    ]
    chinese = world.argusd.call("GET", "/v1/alerts?state=open", **{"Accept-Language": "zh-CN"}).json()["alerts"]
    assert f"GPU {node}/0 有 2 条 NVLink 断开，16 条正常" in [a["text"] for a in chinese]
    # A limit of power that was set (4) is none; what was mended is over.
    set_gpus(world.bin, GPU.format(0, 90), GPU.format(1, 90), *procs)
    for rule in said.keys() - {"gpu_xid_program"}:
        world.watch.ends(rule)
    gate.touch()
    world.argusd.wait_over(job)
    xid_ends(world, "gpu_xid_program")


def test_an_idle_job_is_warned_and_its_owner_may_say_why(world):
    """Warned, justified, warned again, and then its GPUs are taken back."""
    set_gpus(world.bin, GPU.format(0, 0), GPU.format(1, 0))
    keys = {"idle": {"min_gpu_util": 5, "window": "20s", "warn": "10s", "action": "stop"}}
    job, _, gate = world.submit("justified", n_gpus_per_node=1, **keys)
    warned = world.argusd.wait_job(job, lambda j: "IDLE" in j["flags"], "is called idle")
    assert f"argus justify {job}" in warned["reason"]["text"] and warned["reason"]["args"]["ends"], warned["reason"]
    for refused in ({}, {"reason": ""}, {"reason": "x" * 301}, {"reason": "x", "for": "8d"}):
        assert world.argusd.call("POST", f"/v1/jobs/{job}:justify", refused).status in (400, 422), refused
    assert world.argus("justify", job, "a judge scores on CPUs", "--for", "25s").returncode == 0
    quiet = world.argusd.wait_job(job, lambda j: "IDLE" not in j["flags"], "is not called idle any more")
    assert quiet["idle_reason"] == "a judge scores on CPUs" and quiet["idle_until"] and quiet["state"] == "RUNNING"
    (event,) = [e for e in world.argusd.events(job) if e["kind"] == "justified"]
    assert "a judge scores on CPUs" in event["text"] and event["actor"] != "argusd"
    over = world.argusd.wait_over(job)
    assert over["state"] == "FAILED" and over["reason"]["code"] == "gpu_idle", over["reason"]
    kinds = [e["kind"] for e in world.argusd.events(job) if e["kind"] in ("idle", "busy", "justified")]
    assert kinds == ["idle", "justified", "busy", "idle"], kinds
    gate.touch()


def test_an_idle_job_is_stopped_where_its_spec_says_so(world):
    set_gpus(world.bin, GPU.format(0, 0), GPU.format(1, 0))
    keys = {"idle": {"min_gpu_util": 5, "window": "20s", "action": "stop"}}
    job, _, _ = world.submit("stopped", n_gpus_per_node=1, **keys)
    begun = Watch.begin()
    over = world.argusd.wait_over(job)
    assert over["reason"]["code"] == "gpu_idle" or "min_gpu_util" in over["reason"]["text"], over["reason"]
    assert "holds 1 GPUs and uses 0 % of them" in world.watch.hears("job_idle_gpus", begun, job)["text"]
    world.watch.ends("job_idle_gpus", job)
