# SPDX-License-Identifier: Apache-2.0
"""argusd as Prometheus sees it: the page by promtool, the shipped rules by promtool's own tests, and a real Prometheus,
started by deploy/observe/up, that scrapes argusd with a token."""

import contextlib
import json
import pathlib
import re
import subprocess
import urllib.parse
import urllib.request

import pytest
import yaml
from fakeray import FakeRay
from ports import free_port
from preload import needs_compiler
from programs import PROGRAMS
from receiver import Receiver
from remotewrite import Taken
from wallclock import WallClock

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = [needs_argusd, pytest.mark.timeout(300)]

OBSERVE = pathlib.Path(__file__).resolve().parents[2] / "deploy/observe"
# Prometheus' own and those of the client: not ours to name.
FOREIGN = {"up"}


@pytest.fixture(scope="module")
def promtool():
    found = subprocess.run([OBSERVE / "fetch", "--where"], stdout=subprocess.PIPE, text=True, check=True)
    return pathlib.Path(found.stdout.strip()) / "usr/bin/promtool"


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("prometheus"), ray.url) as made:
        job = made.submit("exit 3")
        made.wait_over(job)
        made.call("GET", "/v1/nowhere")
        yield made


def page(argusd):
    return argusd.call("GET", "/metrics").body.decode()


def names(text):
    return set(re.findall(r"^# TYPE (\S+)", text, re.M))


def test_page_is_what_promtool_wants(argusd, promtool):
    text = page(argusd)
    got = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    assert (got.returncode, got.stderr) == (0, ""), got
    series = [line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series)), "a series is there twice"
    assert '=""' not in text


def test_page_holds_no_ids_but_in_info(argusd):
    ids = [j["id"] for j in argusd.get("/v1/jobs")["jobs"]]
    nodes = [n["ray_node_id"] for n in argusd.get("/v1/nodes")["nodes"] if n.get("ray_node_id")]
    for line in page(argusd).splitlines():
        if not re.match(r"\w+_info\{", line):
            assert not [i for i in ids + nodes if i in line], line


def test_page_counts(argusd):
    text = page(argusd)
    assert 'argus_jobs_ended_total{state="FAILED"} 1\n' in text
    assert "argus_job_wait_seconds_count 1\n" in text
    assert 'argus_http_requests_total{method="other",route="other",status="404"} 1\n' in text
    uses = dict(re.findall(r'^argus_gpus\{use="(\w+)"\} (\S+)$', text, re.M))
    nodes = argusd.get("/v1/nodes")["nodes"]
    assert sum(map(float, uses.values())) == sum(n["gpus"]["total"] for n in nodes if not n["is_head"]) > 0
    assert float(re.search(r"^process_resident_memory_bytes (\S+)$", text, re.M)[1]) > 1 << 20


def test_rules_by_promtool(promtool):
    rules = sorted((OBSERVE / "rules").glob("*.yml"))
    assert len(rules) == 2
    for call in (["check", "rules", "--lint-fatal", *rules], ["test", "rules", OBSERVE / "rules_test.yml"]):
        got = subprocess.run([promtool, *call], capture_output=True, text=True)
        assert got.returncode == 0, got


def test_rules_name_series_that_there_are(argusd):
    known = names(page(argusd)) | FOREIGN
    known |= {n + s for n in known for s in ("_bucket", "_count", "_sum")}
    for f in (OBSERVE / "rules").glob("*.yml"):
        groups = yaml.safe_load(f.read_text())["groups"]
        for rule in (r for g in groups for r in g["rules"]):
            expression = re.sub(r'"[^"]*"', "", rule["expr"])
            used = set(re.findall(r"(?<![\w:])((?:argus|process|up)\w*)(?![\w:(])", expression))
            assert used <= known, (rule, used - known)


def test_every_alert_is_tested_or_simple():
    """An alert whose expression computes has a case in rules_test.yml."""
    tested = (OBSERVE / "rules_test.yml").read_text()
    for group in yaml.safe_load((OBSERVE / "rules/alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            simple = re.fullmatch(r'\w+(\{[^}]*\})? == [01]|[\w:{}="/ ]+ > [\d.]+', rule["expr"])
            assert simple or f"alertname: {rule['alert']}" in tested, rule["alert"]


class Prometheus:
    def __init__(self, url):
        self.url = url

    def get(self, path, **query):
        with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(query)}", timeout=PATIENCE) as r:
            return json.load(r)["data"]

    def value(self, query):
        result = self.get("/api/v1/query", query=query)["result"]
        return float(result[0]["value"][1]) if result else None


@contextlib.contextmanager
def started(where, *options):
    """A Prometheus by deploy/observe/up, stopped in the end."""
    listen = f"127.0.0.1:{free_port()}"
    up = [OBSERVE / "up", *options, "--dir", where, "--listen", listen]
    got = subprocess.run(up, capture_output=True, text=True)
    assert got.returncode == 0, got
    try:
        yield Prometheus(f"http://{listen}")
    finally:
        subprocess.run([OBSERVE / "down", where], check=True)


@pytest.fixture(scope="module")
def prometheus(argusd, tmp_path_factory):
    where = tmp_path_factory.mktemp("observe")
    (where / "token").write_text(argusd.tokens["viewer"] + "\n")
    with started(where / "d", "--argusd", f"127.0.0.1:{argusd.port}", "--token-file", where / "token") as made:
        yield made


def test_a_real_prometheus_scrapes_argusd(argusd, prometheus):
    until(lambda: prometheus.value('up{job="argusd"}') == 1, "argusd is up in Prometheus")
    assert prometheus.value("argus_build_info") == 1
    assert prometheus.value('argus_jobs_ended_total{state="FAILED"}') == 1
    rules = [r for g in prometheus.get("/api/v1/rules")["groups"] for r in g["rules"]]
    assert len(rules) == 25
    until(
        lambda: all(r["health"] == "ok" for g in prometheus.get("/api/v1/rules")["groups"] for r in g["rules"]),
        "every rule was evaluated",
    )
    total = until(lambda: prometheus.value("cluster:argus_gpus:sum"), "a recorded series is there")
    assert total == prometheus.value("sum(argus_gpus)")


def pushing(url, **keys):
    told = {"url": url, "every": "1s", "instance": "pushed", **keys}
    return f"remote_write: {json.dumps(told)}"


def test_a_real_prometheus_takes_what_argusd_pushes(tmp_path):
    """All series of the page, with the labels of a scrape; those of a job end with it, and do not live on. This
    Prometheus scrapes nothing."""
    with (
        started(tmp_path / "d", "--argusd", "none") as p,
        FakeRay() as ray,
        Argusd(tmp_path, ray.url, pushing(f"{p.url}/api/v1/write")) as argusd,
    ):
        gate = argusd.root / "common/gate"
        job = argusd.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done", n_gpus_per_node=1)
        argusd.wait_state(job, "RUNNING")
        join = f'argus_job_gpus * on (instance, lane) group_left (id) argus_job_lane_info{{id="{job}"}}'
        assert until(lambda: p.value(join), "the GPUs of the job are there") == 1
        assert p.value('argus_build_info{job="argusd",instance="pushed"}') == 1
        # What failed is in the page before this one: a page that was taken says so.
        assert p.value("argus_remote_write_failures_total") == 0
        series = set(re.findall(r"^(\w+)[{ ]", page(argusd), re.M))
        assert {"argus_jobs", "argus_job_wait_seconds_bucket", "process_open_fds"} <= series
        until(lambda: series <= set(p.get("/api/v1/label/__name__/values")), "all that the page has is there")
        gate.touch()
        argusd.wait_over(job)
        until(lambda: p.value('argus_jobs_ended_total{state="SUCCEEDED"}') == 1, "its end is there")
        until(lambda: p.value("argus_job_lane_info") is None, "its lane has ended, and not by five minutes of silence")
        assert p.value("argus_build_info") == 1


def test_a_push_that_is_not_taken_costs_nothing(tmp_path):
    with Receiver() as other, FakeRay() as ray:
        keys = {"token": "PUSH", "secrets_of": "user/admin"}
        with Argusd(tmp_path, ray.url, pushing(f"http://127.0.0.1:{other.port}/write", **keys)) as argusd:
            told = lambda what: float(re.search(rf"^argus_remote_write_{what}_total (\S+)$", page(argusd), re.M)[1])  # noqa: E731
            until(lambda: told("failures") >= 1, "its secret is not there yet")
            assert not other.seen
            other.answer = (400, b"out of order sample")
            assert argusd.call("PUT", "/v1/secrets/PUSH", {"value": "a-token-of-the-receiver"}).status == 201
            until(lambda: other.seen, "it was asked")
            was = told("failures")
            until(lambda: told("failures") > was, "the refusal is counted")
            other.answer = (204, b"")
            until(lambda: told("pages") >= 1, "and it goes on")
            path, head, body = other.got[0]
            assert (path, head["Authorization"]) == ("/write", "Bearer a-token-of-the-receiver")
            assert (head["Content-Type"], head["Content-Encoding"]) == ("application/x-protobuf", "snappy")
            assert head["X-Prometheus-Remote-Write-Version"] == "0.1.0" and b"argus_build_info" in body
            assert argusd.said().count("metrics could not be pushed") == 1, "it was failing once"
            assert argusd.wait_over(argusd.submit("true"))["state"] == "SUCCEEDED"


def test_what_is_over_is_ended_once(tmp_path):
    with Receiver() as other, FakeRay() as ray:
        other.answer = taken = Taken()
        with Argusd(tmp_path, ray.url, pushing(f"http://127.0.0.1:{other.port}/write")) as argusd:
            gate, name = argusd.root / "common/gate", "argus_job_lane_info"
            job = argusd.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done", n_gpus_per_node=1)
            (lane,) = until(lambda: [of for of in taken.values(name) if ("id", job) in of], "its lane is there")
            assert taken.values(name)[lane] == 1
            gate.touch()
            argusd.wait_over(job)
            until(lambda: lane in taken.ends(name), "its lane has ended")
            had = len(taken.pages)
            until(lambda: len(taken.pages) >= had + 2, "more pages were taken")
            assert taken.ends(name) == [lane] and lane not in taken.values(name)
            assert not taken.ends("argus_build_info") and not taken.refused


@needs_compiler
def test_pages_are_pushed_while_the_clock_is_behind(tmp_path):
    """Set back, each page is a millisecond after the one before, and none is refused, until the clock has caught up.
    What was refused because the clock ran ahead holds nothing up once it is right again."""
    clock = WallClock(tmp_path)
    with Receiver() as other, FakeRay() as ray:
        other.answer = taken = Taken()
        argusd = Argusd(tmp_path, ray.url, pushing(f"http://127.0.0.1:{other.port}/write"))
        argusd.env = clock.env()

        def more(n):
            had = len(taken.pages)
            until(lambda: len(taken.pages) >= had + n, "more pages were taken")

        def apart():
            return taken.pages[-1].ms - taken.pages[-2].ms

        with argusd:
            more(1)
            clock.jump(-3600)
            more(3)  # the first one may have been made before that
            assert apart() == 1
            clock.jump(3600)
            until(lambda: apart() > 1, "pages have their own time again")
            assert not taken.refused
            clock.jump(7200)
            until(lambda: taken.refused, "the receiver takes nothing of the future")
            clock.jump(-7200)
            more(2)


def test_remote_write_is_checked(tmp_path):
    argusd = Argusd(tmp_path, "http://127.0.0.1:1", "remote_write: {url: 'ftp://h/', token: T}")
    argusd.root.mkdir()
    argusd.write_config()
    check = [PROGRAMS["argusd"], "--check", "--config", argusd.config]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode != 0
    assert "does not begin with http://" in done.stderr and "remote_write.secrets_of" in done.stderr, done


def test_targets_are_the_machines_that_have_a_page(tmp_path):
    worker = {"resources": {"CPU": 8, "GPU": 2, "worker_node": 1}}
    nodes = [
        {"name": "head", "ip": "127.0.0.1", "head": True, "resources": {"CPU": 0}},
        {"name": "w1", "ip": "127.0.0.2", "metrics_port": 9, **worker},
        {"name": "w2", "ip": "127.0.0.3", "metrics_port": 10, **worker},
    ]
    with FakeRay(nodes=nodes, state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as a:

        def told():
            reply = a.call("GET", "/v1/prometheus/targets", token="viewer")
            assert reply.status in (200, 503), reply
            return reply.json() if reply.status == 200 else None

        targets = until(told, "every machine has told where its page is")
        assert sorted(t["targets"] for t in targets) == [["127.0.0.2:9"], ["127.0.0.3:10"]]
        assert all(t["labels"]["cluster"] == "default" and t["labels"]["kind"] == "ray" for t in targets)
        assert all(value for t in targets for value in t["labels"].values())
        ray.stop()
        until(lambda: a.call("GET", "/v1/prometheus/targets").status == 503, "a Ray that is away gives no shorter list")


def test_up_says_what_is_wrong(tmp_path):
    def up(*options):
        got = subprocess.run([OBSERVE / "up", *options], capture_output=True, text=True)
        return got.returncode, got.stderr

    assert up("--argusd", "nohost") == (2, "up: --argusd HOST:PORT is missing: where argusd listens\n")
    code, text = up("--argusd", "h:1", "--token-file", tmp_path / "none")
    assert code == 2 and "argus token add" in text
