# SPDX-License-Identifier: Apache-2.0
"""The dashboards of deploy/observe/grafana: what Grafana loads them by, its own types, and every query against a real
Prometheus that scrapes argusd and, found through argusd, a machine's page as a real Ray wrote it.

GRAFANA_URL=http://admin:PASSWORD@HOST:3000 loads them into a real Grafana, too: no package of one was found."""

import base64
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
import xml.etree.ElementTree

import pytest
import yaml
from fakeray import FakeRay
from ports import free_port
from test_argusd_metrics import Training
from test_prometheus import OBSERVE, Prometheus, names, page

from argusd import Argusd, needs_argusd, until

pytestmark = [needs_argusd, pytest.mark.timeout(300)]

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAFANA = OBSERVE / "grafana"
FILES = sorted((GRAFANA / "dashboards").glob("*.json"))
RAY_PAGE = pathlib.Path(__file__).resolve().parents[1] / "golden/figures/ray-2.60.0-worker.prom"
GPUS = {"resources": {"CPU": 8, "GPU": 2, "worker_node": 1}}
# Without machines that argusd brought into pools these have no series: their families are there all the same.
OF_POOLS = {"argus_pool_gpus", "argus_pool_queued_jobs"}
# So have those of services, without a service that was asked: test_service_calls.py has one.
OF_SERVICES = {
    "argus_service_replicas",
    "argus_service_requests_total",
    "argus_service_request_seconds_bucket",
    "argus_service_tokens_total",
}
VALUES = {"cluster": ".*", "instance": ".*", "pool": ".*", "node": ".*", "datasource": "x"}


def panels(path):
    return json.loads(path.read_text())["panels"]


def queries():
    return [(f.stem, p["title"], t["expr"]) for f in FILES for p in panels(f) for t in p["targets"]]


def families(expression):
    bare = re.sub(r'"[^"]*"', "", expression)
    return set(re.findall(r"\b((?:argus|ray|process)_\w+)", bare)) | ({"up"} & set(re.findall(r"\bup\b", bare)))


class RayPage(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.end_headers()
        self.wfile.write(RAY_PAGE.read_bytes())

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    home = tmp_path_factory.mktemp("grafana")
    with http.server.ThreadingHTTPServer(("127.0.0.2", 0), RayPage) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        head = {"name": "head", "ip": "127.0.0.1", "head": True, "resources": {"CPU": 0}}
        nodes = [head, {"name": "w1", "ip": "127.0.0.2", "metrics_port": web.server_port, **GPUS}]
        with FakeRay(nodes=nodes, state=home / "ray") as ray, Argusd(home, ray.url) as made:
            yield made
        web.shutdown()


@pytest.fixture(scope="module")
def prometheus(argusd, tmp_path_factory):
    where = tmp_path_factory.mktemp("observe")
    (where / "token").write_text(argusd.tokens["viewer"] + "\n")
    listen = f"127.0.0.1:{free_port()}"
    up = [OBSERVE / "up", "--argusd", f"127.0.0.1:{argusd.port}", "--token-file", where / "token"]
    got = subprocess.run([*up, "--dir", where / "d", "--listen", listen], capture_output=True, text=True)
    assert got.returncode == 0, got
    config = where / "d/prometheus.yml"
    text = config.read_text().replace("scrape_interval: 15s", "scrape_interval: 1s").replace(": 30s", ": 1s")
    config.write_text(text)
    try:
        subprocess.run(["curl", "-fsS", "-X", "POST", f"http://{listen}/-/reload"], check=True)
        yield Prometheus(f"http://{listen}")
    finally:
        subprocess.run([OBSERVE / "down", where / "d"], check=True)


def test_dashboards_are_whole():
    """What Grafana loads by: unique ids, the data source and the other variables by name, a sentence for each panel."""
    boards = [json.loads(f.read_text()) for f in FILES]
    assert len({b["uid"] for b in boards}) == len(boards) >= 4
    for f, board in zip(FILES, boards, strict=True):
        assert f.stem == board["uid"] and board["schemaVersion"] >= 39
        assert len({p["id"] for p in board["panels"]}) == len(board["panels"])
        known = {v["name"] for v in board["templating"]["list"]}
        text = json.dumps(board)
        assert set(re.findall(r"\$\{?([a-z]+)", text)) <= known, f
        for p in board["panels"]:
            assert p["description"] and p["targets"] and p["gridPos"]["x"] + p["gridPos"]["w"] <= 24, (f, p["title"])
            refs = [t["refId"] for t in p["targets"]]
            assert len(set(refs)) == len(refs) and all(t["legendFormat"] for t in p["targets"])


def typed(place, boards):
    """What Grafana's own types (@grafana/schema, a package of web/) say of {name: dashboard}: lines of the compiler."""
    sys.path.insert(0, str(ROOT / "tools/web"))
    import weblib

    node = weblib.ready()
    (place / "node_modules").symlink_to(os.readlink(weblib.LINK))
    for name, board in boards.items():
        text = (
            f"import type {{ Dashboard }} from '@grafana/schema';\nexport const d: Dashboard =\n{json.dumps(board)};\n"
        )
        (place / f"{name}.ts").write_text(text)
    compiler = [os.path.join(node, "bin/node"), "node_modules/typescript/bin/tsc", "--noEmit", "--strict"]
    compiler += ["--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2022"]
    compiler += ["--pretty", "false"]
    done = subprocess.run([*compiler, *(f"{name}.ts" for name in boards)], cwd=place, capture_output=True, text=True)
    assert (done.returncode == 0) == (not done.stdout), done
    return done.stdout.splitlines()


def test_dashboards_fit_grafanas_own_types(tmp_path):
    boards = {f.stem: json.loads(f.read_text()) for f in FILES}
    wrong = json.loads(json.dumps(boards["argus-jobs"]))
    del wrong["panels"][0]["gridPos"]["h"]
    told = typed(tmp_path, {**boards, "wrong": wrong})
    assert told and all(line.startswith(("wrong.ts", " ")) for line in told), told


def test_provisioning_names_what_is_there():
    (provider,) = yaml.safe_load((GRAFANA / "provisioning/dashboards/argus.yaml").read_text())["providers"]
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/argus.yaml").read_text())["datasources"]
    services = yaml.safe_load((OBSERVE / "compose.yaml").read_text())["services"]
    mounts = {v.split(":")[1] for v in services["grafana"]["volumes"] if v.startswith("./")}
    assert {provider["options"]["path"], "/etc/grafana/provisioning"} <= mounts
    assert source["url"].lstrip("$") in services["grafana"]["environment"]


def training(argusd):
    """A job that goes on, holds a GPU and has told of steps."""
    made = Training(argusd, n_gpus_per_node=1)
    made.steps(1, 2)
    made.until_step(2)
    return made


def test_every_query_has_data(argusd, prometheus):
    """After a real job, in a real Prometheus, which found the machine's page through argusd."""
    until(lambda: prometheus.value('up{job="argusd"}') == 1, "argusd is up in Prometheus")
    assert argusd.wait_over(argusd.submit("true", n_gpus_per_node=1))["state"] == "SUCCEEDED"
    argusd.wait_over(argusd.submit("exit 3"))
    ended = training(argusd)
    ended.let_go()
    argusd.wait_over(ended.id)
    live = training(argusd)
    declared = names(page(argusd)) | set(re.findall(r"^(ray_\w+)", RAY_PAGE.read_text(), re.M)) | {"up"}
    declared |= {n + "_bucket" for n in declared}
    left = dict.fromkeys(queries())
    assert len(left) >= 30
    for query in list(left):
        used = families(query[2])
        assert used and used <= declared, (query, used - declared)
        if used <= OF_POOLS or used <= OF_SERVICES:
            del left[query]

    def all_have_data():
        for board, title, expression in list(left):
            filled = re.sub(r"\$(\w+)", lambda m: VALUES[m[1]], expression)
            if prometheus.get("/api/v1/query", query=filled)["result"]:
                del left[board, title, expression]
        return not left

    try:
        until(all_have_data, "every panel has data")
    except AssertionError:
        raise AssertionError(f"without data: {list(left)}") from None
    live.let_go()
    argusd.wait_over(live.id)


def grafana_ask(url, path, body=None, method=None):
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    head = {"Content-Type": "application/json"}
    if parts.username:
        key = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        head["Authorization"] = "Basic " + base64.b64encode(key.encode()).decode()
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{parts.scheme}://{host}{parts.path.rstrip('/')}{path}", data, head, method=method
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


@pytest.mark.skipif(
    "GRAFANA_URL" not in os.environ, reason="GRAFANA_URL names no Grafana (http://USER:PASSWORD@HOST:PORT)"
)
def test_a_real_grafana_loads_them():
    """It takes each dashboard, and gives back the panels and queries that it was given. What was there under these
    names is replaced, and is removed afterwards."""
    url = os.environ["GRAFANA_URL"]
    for f in FILES:
        board = json.loads(f.read_text())
        made = grafana_ask(url, "/api/dashboards/db", {"dashboard": {**board, "id": None}, "overwrite": True})
        try:
            assert (made["status"], made["uid"]) == ("success", board["uid"]), made
            kept = grafana_ask(url, f"/api/dashboards/uid/{board['uid']}")["dashboard"]
            shown = [(p["title"], [t["expr"] for t in p["targets"]]) for p in kept["panels"]]
            assert shown == [(p["title"], [t["expr"] for t in p["targets"]]) for p in board["panels"]]
            assert [v["name"] for v in kept["templating"]["list"]] == [v["name"] for v in board["templating"]["list"]]
        finally:
            grafana_ask(url, f"/api/dashboards/uid/{board['uid']}", method="DELETE")


def test_each_dashboard_is_drawn_without_a_grafana(argusd, prometheus, tmp_path):
    until(lambda: prometheus.value('up{job="argusd"}') == 1, "argusd is up in Prometheus")
    draw = [GRAFANA / "draw", "--prometheus", prometheus.url, "--span", "60", "--out", tmp_path]
    told = subprocess.run(draw, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(told) == sum(len(panels(f)) for f in FILES)
    for f in FILES:
        picture = xml.etree.ElementTree.parse(tmp_path / f"{f.stem}.svg").getroot()
        words = [e.text for e in picture.iter("{http://www.w3.org/2000/svg}text")]
        assert {p["title"] for p in panels(f)} <= set(words)
        drawn = [line.split("\t") for line in told if line.startswith(f.stem + "\t")]
        assert words.count("no data") == sum(n == "0" for _, _, n in drawn) < len(drawn)
