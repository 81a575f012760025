# SPDX-License-Identifier: Apache-2.0
"""v4.0: where the GPUs went, over a kill -9 of argusd in the middle of a training; reports and forecast; a real
Prometheus and a real MLflow server beside argusd; who hears of faults, and how soon; the loop of the ops agent.

A part of docs/acceptance/v4.0.md is a group of tests here, in its order: each fixture runs its blocks."""

import csv
import datetime
import io
import json
import os
import re
import signal
import statistics
import subprocess
import time
import urllib.parse
import urllib.request
import xml.etree.ElementTree

import pytest
from fakedriver import give_gpus, set_gpus
from ports import free_port
from raybed import BEDS
from receiver import KEY, Receiver, chat, check_webhook
from stage import ROOT, wait_for
from trackerbed import READ_BOARD, READ_WANDB, MLflow, link_packages, packages, read_back

# Nine minutes with a bed of its own. In every check a real Prometheus scrapes argusd (test_prometheus.py), a real
# MLflow takes runs (test_trackers.py), the agent loop closes (test_agent_loop.py), rules fire (test_alerts.py).
pytestmark = pytest.mark.nightly

JOB = "v40-train"
OBSERVE = ROOT / "deploy/observe"
BAR = 60  # seconds from a fault to the message
REWARD = "critic/score/mean"
OF_GPUS = {"Mean use of GPUs", "Most GPU memory in use", "Use of GPUs", "GPU memory"}  # no GPU is in these machines
OF_LIVE = {  # the trainings here are over before two steps of theirs were scraped; one job alone has GPUs that are read
    "Goodput of live jobs",
    "GPU use of live jobs",
    "GPU memory of live jobs: the fullest GPU",
    "GPU memory of live jobs: all GPUs",
    "Use of all GPUs that jobs hold",
}
OF_POOLS = {"Free GPUs by pool", "Leased share by pool", "Jobs that wait by pool"}  # nor a machine in a pool
OF_SERVICES = {  # nor is there a service
    "Replicas of services",
    "Requests to services",
    "Time of requests to services",
    "Tokens of services",
}
PARTS = ("used", "held_idle", "blocked", "free", "draining", "broken", "foreign")
GROUPINGS = ("cluster", "pool", "user", "project", "workload")


def ms(seconds):
    return round(1000 * float(seconds))


def at(time):
    return datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


# ---- what is beside argusd ----


class Hook(Receiver):
    """Takes webhooks that are signed as they must be, and remembers when."""

    def __init__(self):
        super().__init__()
        self.times, self.answer = [], self.check

    def check(self, post, body):
        status, text = check_webhook(post, body)
        if status < 300:
            self.times.append((time.time(), json.loads(body)))
        return status, text

    def first(self, part):
        """When a message came first that speaks of it, and the message; None: none did."""
        return next(((at, said) for at, said in self.times if part in json.dumps(said)), None)


class Beside:
    """What the document's shell knows of its services; each block runs with it."""

    def __init__(self, stage, home, hook, model):
        self.stage, self.home, self.hook, self.model = stage, home, hook, model
        self.mlflow, self.prometheus = MLflow(home), f"127.0.0.1:{free_port()}"
        at = f"{stage.bed.ctl_ip}:{self.mlflow.port}"  # by which jobs reach this machine
        self.mlflow.url = f"http://{at}"
        self.values = {
            "BESIDE": str(home), "CONFIG": str(stage.config), "PYTHON": str(packages()[0]), "MLFLOW": at,
            "PROMETHEUS": self.prometheus, "HOOK_URL": hook.url, "MODEL_URL": f"http://127.0.0.1:{model.port}",
            "AGENT_PORT": str(free_port()), "WEBHOOK_KEY": "whsec_" + KEY,
        }  # fmt: skip

    def run(self, block, **more):
        return self.stage.document("v4.0").run(block, **self.values, **more)

    def ask(self, query):
        url = f"http://{self.prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=240) as reply:
            return json.load(reply)["data"]["result"]


def fetched():
    """Where deploy/observe/fetch keeps the Prometheus that ./dev setup has fetched: below the home of whoever runs the
    tests. A stage has a home of its own, and may have no network to fetch it anew."""
    found = subprocess.run([OBSERVE / "fetch", "--where"], capture_output=True, text=True)
    if found.returncode:
        pytest.skip(found.stderr.strip())
    return os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")


@pytest.fixture(scope="module")
def beside(stage, tmp_path_factory):
    cache = fetched()
    home = tmp_path_factory.mktemp("beside")
    link_packages(stage.root / "common")
    with Hook() as hook, Receiver() as model:
        made = Beside(stage, home, hook, model)
        try:
            made.run("mlflow")
            made.run("settings")
            stage.restart()
            made.run("prometheus", XDG_CACHE_HOME=cache)
            yield made
        finally:
            for service in ("prometheus", "mlflow"):
                subprocess.run([OBSERVE / "down", home / service], check=False)


@pytest.fixture(scope="module")
def doc(stage, beside):
    return stage.document("v4.0")


# ---- accounting and reports ----


@pytest.fixture(scope="module")
def train(stage, doc):
    assert doc.run("submit").splitlines()[0] == JOB
    stage.wait_log(JOB, r"step:1 - ")
    stage.kill9()
    stage.start()
    doc.run("wait")
    return stage.keep_job(JOB)


@pytest.fixture(scope="module")
def books(stage, train):
    """The ledger by each grouping, once it has all of the job."""

    def look():
        pages = {by: stage.get(f"/v1/usage?from=1d&by={by}") for by in GROUPINGS}
        return all(p["until"] > train["ended_at"] for p in pages.values()) and pages

    return stage.keep("usage.json", wait_for(look, "the ledger goes beyond the job's end"))


def test_the_ledger_balances_over_kill_9(train, books):
    for by in ("cluster", "pool"):
        for series in books[by]["series"]:
            parts = sum(ms(v) for part in PARTS for v in series[part])
            assert parts == sum(ms(v) for v in series["capacity"]) > 0, (by, series)
    assert train["state"] == "SUCCEEDED" and len(train["attempts"]) == 1, "argusd's death was not the job's"


def test_a_job_has_what_the_ledger_says(train, books):
    held, gpus = ms(train["gpu_seconds"]), train["nnodes"] * train["n_gpus_per_node"]
    ran = at(train["ended_at"]) - at(train["started_at"])
    assert held >= gpus * ms(ran - 1) > 0  # a lease is held before and after the run
    for by in ("user", "project", "workload", "cluster"):
        told = sum(ms(v) for s in books[by]["series"] for k in ("used", "held_idle") for v in s[k])
        assert told == held, by
    assert [s["name"] for s in books["user"]["series"]] == [train["user"]]


def test_reports_say_the_same(doc, train, books):
    for table in doc.run("gpu").split("NAME")[1:]:
        assert len(table.splitlines()) >= 2, table
    rows = list(csv.DictReader(io.StringIO(doc.run("gpu-csv"))))
    for row in rows:
        assert sum(ms(row[f"{part}_gpu_s"]) for part in PARTS) == pytest.approx(ms(row["capacity_gpu_s"]), abs=1)
    assert sum(float(r["used_gpu_s"]) for r in rows) == pytest.approx(train["gpu_seconds"], abs=0.01)
    page = doc.run("job")
    assert f"GPU-hours     {train['gpu_hours']:10.2f}" in page.splitlines() and JOB in page
    (waste,) = csv.DictReader(io.StringIO(doc.run("waste-csv")))
    assert (waste["id"], waste["advice"], float(waste["idle_hours"])) == (JOB, "none", 0)
    assert float(waste["gpu_hours"]) == pytest.approx(train["gpu_hours"], abs=1e-3)
    assert float(waste["unknown_hours"]) == pytest.approx(train["gpu_hours"], abs=1e-3)  # nobody measured


# ---- forecast ----


def test_forecast_of_a_young_store(stage, doc, train):
    said = doc.run("forecast")
    assert "(all): not enough history" in said and "1 jobs since" in said
    whole = next(p for p in json.loads(doc.run("forecast-json"))["pools"] if p["pool"] is None)
    assert not whole["enough"] and whole["points"] == [] and whole["full_at"] is None
    if_so = whole["what_if"]
    assert (if_so["jobs"], if_so["now"]["nodes"], if_so["then"]["nodes"]) == (1, 2, 4)
    assert if_so["now"]["never"] == if_so["then"]["never"] == 0
    assert if_so["then"]["utilisation"] == pytest.approx(if_so["now"]["utilisation"] / 2, rel=0.01)


# ---- figures ----


def test_machines_and_jobs_show_what_they_did(stage, beside, train, books):
    said = beside.run("figures")
    (row,) = [line for line in said.splitlines() if line.startswith(JOB) and "SUCCEEDED" in line]
    assert f"{train['gpu_hours']:.2f}" in row.split()
    (item,) = [j for j in stage.get("/v1/jobs?all=1")["jobs"] if j["id"] == JOB]
    assert item["gpu_hours"] == train["gpu_hours"] == pytest.approx(train["gpu_seconds"] / 3600)
    up = [line.split("\t") for line in said.splitlines() if re.match(r"(argusd|ray)\t", line)]
    assert {job for job, *_ in up} == {"argusd", "ray"} and all(value == "1" for *_, value in up), up
    assert {node for job, node, _ in up if job == "ray"} >= {n["name"] for n in stage.get("/v1/nodes")["nodes"]}


def test_goodput_is_that_of_the_job(beside, train, books):
    """It ended after argusd had been killed: what it did before that counts."""

    def seconds(kind):
        (told,) = beside.ask(f"argus_job_{kind}_seconds_total")
        return float(told["value"][1])

    useful = wait_for(lambda: seconds("useful"), "Prometheus has asked argusd since the end")
    assert useful == pytest.approx(train["goodput"]["productive_s"], rel=0.01)
    ratio = train["goodput"]["ratio"]  # as of its last step
    assert 0.75 * ratio <= useful / seconds("held") <= ratio * 1.01


# ---- trackers ----


def curve(stage, job):
    told = stage.get(f"/v1/jobs/{job}/metrics?keys={REWARD}&points=512")["series"][REWARD]
    return dict(zip(told["step"], told["value"], strict=True))


def test_training_is_whole_in_mlflow_and_wandb(stage, beside, train, books):
    def is_whole(job):
        return all(t["state"] in ("complete", "kept") for t in job["trackers"])

    rows = {t["tracker"]: t for t in stage.wait_job(JOB, is_whole, "is in its trackers")["trackers"]}
    (run,) = beside.mlflow.runs("v40", JOB)
    assert (run["info"]["status"], run["info"]["run_name"]) == ("FINISHED", "train")
    want = curve(stage, JOB)
    assert sorted(want) == [1, 2, 3, 4]
    assert dict(beside.mlflow.history(run["info"]["run_id"], REWARD)) == pytest.approx(want, abs=1e-3)
    assert rows["mlflow"]["link"] in beside.run("tracked") and run["info"]["run_id"] in rows["mlflow"]["link"]
    (file,) = stage.job_dir(JOB).glob(f"attempts/1/wandb/offline-run-*/run-{JOB}-1.wandb")
    seen = read_back(READ_WANDB, file)
    assert (seen["id"], seen["project"], seen["name"], seen["group"]) == (f"{JOB}-1", "v40", "train", JOB)
    assert {int(s): v[REWARD] for s, v in seen["steps"].items() if REWARD in v} == pytest.approx(want, abs=1e-3)


def test_tensorboard_has_another(stage, beside, train, books):
    beside.run("board")
    job = stage.keep_job("v40-board")
    (board,) = stage.job_dir(job["id"]).glob("metrics/tensorboard/*")
    assert job["state"] == "SUCCEEDED" and [t["link"] for t in job["trackers"]] == [str(board)]
    want = curve(stage, job["id"])
    assert sorted(want) == [1, 2]
    assert dict(read_back(READ_BOARD, board)[REWARD]) == pytest.approx(want, abs=1e-3)


# ---- ops agent ----


@pytest.fixture(scope="module")
def agent(stage, beside, train, books):
    said = {"cause": "COLUMN is missing", "advice": "set it", "confidence": 0.9, "patch": {"env": {"COLUMN": "p"}}}
    beside.model.answer = chat(json.dumps(said))
    pid = int(beside.run("agent"))
    try:
        with_code = stage.document("v4.0").run("agent-job", code=10, **beside.values)

        def opinions():
            found = stage.get("/v1/jobs/v40-column/findings")["opinions"]
            return len(found) == 2 and found

        found = wait_for(opinions, f"its two opinions: {(beside.home / 'agent.log').read_text()}")
        stage.keep("agent.log", (beside.home / "agent.log").read_text())
        return {"said": with_code, "opinions": found, "end": beside.run("agent-end")}
    finally:
        os.kill(pid, signal.SIGTERM)


def test_agent_closes_the_loop(stage, beside, agent):
    cause, verdict = (o["cause"] for o in agent["opinions"])
    jobs = [stage.job(j["id"]) for j in stage.all_jobs("&all=1")]
    (again,) = [j for j in jobs if j["retry_of"] == "v40-column"]
    assert again["state"] == "SUCCEEDED" and cause == "COLUMN is missing"
    assert verdict == f"the retry {again['id']} with the proposed change ended SUCCEEDED"
    assert cause in agent["end"]
    asked = json.loads(beside.model.got[0][2])
    assert "COLUMN is not set" in asked["messages"][1]["content"], "the evidence goes to the model"
    (alert,) = [a for a in stage.get("/v1/alerts?state=all")["alerts"] if a["name"] == "v40-column"]
    assert stage.get(f"/v1/alerts/{alert['id']}")["acked_by"] == "admin"


# ---- alerts ----


def told(beside, part):
    """When the message came that speaks of it."""
    return wait_for(lambda: beside.hook.first(part), f"a message of {part}")


def gpu_lines(*busy):
    """The four pretended GPUs of a machine: these work at 90 %, the others rest."""
    return [f"gpu {gpu} {90 if gpu in busy else 0} 40000 300000 55" for gpu in range(4)]


@pytest.fixture(scope="module")
def uneven(stage, beside, agent):
    """A job of two GPUs of which a pretended driver says that one rests: the message, and what the alert says after
    both have worked, and the job has ended. Nothing is left of that driver for what follows."""
    place = stage.root / "argus/bin" / os.uname().machine
    give_gpus(place, None, *gpu_lines())
    try:
        beside.run("uneven")
        (held,) = stage.wait_job("v40-uneven", lambda j: j["state"] == "RUNNING", "runs")["nodes"]
        works, _ = held["gpu_ids"]
        set_gpus(place, *gpu_lines(works))
        _, message = told(beside, "unevenly")
        during = stage.job("v40-uneven")["state"]
        set_gpus(place, *gpu_lines(*held["gpu_ids"]))
        after = wait_for(lambda: past(stage, "job_gpu_abnormal"), "the alert is over")
        beside.run("uneven-end")
        return {"during": during, "message": message, "after": after}
    finally:
        for name in ("libnvidia-ml.so.1", "nvml.state"):
            (place / name).unlink()


def past(stage, rule):
    return [a for a in stage.get("/v1/alerts?state=past")["alerts"] if a["rule"] == rule]


def test_abnormal_use_of_gpus_fires_an_alert(stage, uneven):
    stage.keep("uneven.json", uneven)
    (said,) = [a for a in uneven["message"]["incident"]["alerts"] if a["rule"] == "job_gpu_abnormal"]
    assert said["name"] == "v40-uneven" and "unevenly: 0 % of one and " in said["text"], said
    assert uneven["during"] == "RUNNING", "an alert does nothing to the job"
    assert [a["name"] for a in uneven["after"]] == ["v40-uneven"]


@pytest.fixture(scope="module")
def faults(stage, beside, agent):
    """{fault: seconds to its message}, by the receiver's clock; the last one takes a machine away."""
    spans = {}
    beside.run("faults")
    for job in ("v40-exits", "v40-killed", "v40-memory"):
        at, _ = told(beside, job)
        spans[job] = at - float((beside.home / job).read_text())
    beside.run("lost")
    job = stage.wait_job("v40-lost", lambda j: j["state"] == "RUNNING", "runs")
    host = next(h for h, ip in stage.workers.items() if ip == node_ip(stage, job["nodes"][0]["name"]))
    began = time.time()
    try:
        stage.bed.verb("kill-worker", host)
        spans["v40-lost"] = told(beside, "v40-lost")[0] - began
        yield stage.keep("faults.json", spans)
    finally:
        BEDS.drop()  # a machine of it is gone


def node_ip(stage, name):
    return next(n["ip"] for n in stage.get("/v1/nodes")["nodes"] if n["name"] == name)


def test_each_fault_is_told_in_time(stage, beside, faults):
    assert len(faults) == 4 and all(0 <= s <= BAR for s in faults.values()), faults
    stage.keep("faults.median.txt", f"median {statistics.median(faults.values()):.1f} s of {faults}")


def test_incidents_have_their_reports(beside, faults):
    said = beside.run("incidents")
    assert "v40-lost" in said


# ---- dashboards ----


@pytest.fixture(scope="module")
def pictures(stage, beside, faults):
    """{(dashboard, panel): series}, and the pictures in the evidence."""
    told = [line.split("\t") for line in beside.run("pictures").splitlines()]
    for picture in (beside.home / "pictures").iterdir():
        stage.keep(picture.name, picture.read_text())
    return {(board, panel): int(n) for board, panel, n in told}


def test_every_panel_has_data_and_is_drawn(stage, beside, pictures):
    assert len({board for board, _ in pictures}) >= 4
    empty = {panel for (_, panel), n in pictures.items() if not n}
    assert empty <= OF_GPUS | OF_POOLS | OF_SERVICES | OF_LIVE, empty
    for board in {board for board, _ in pictures}:
        tree = xml.etree.ElementTree.parse(beside.home / f"pictures/{board}.svg")
        assert sum(e.tag.endswith("polyline") and e.get("stroke") != "#2f3138" for e in tree.iter()) >= 3, board


def test_every_command_of_the_document_was_run(doc, train, books, pictures, agent, uneven, faults):
    assert doc.never_run(["board"]) == []
