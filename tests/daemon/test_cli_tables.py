# SPDX-License-Identifier: Apache-2.0
"""Every table of the command line fits the terminal, whatever the values, and what it is read for keeps its room.

A stand-in for argusd answers each path by openapi.json, with values as long as they get."""

import json
import os
import pathlib
import re
import subprocess
import threading
import unicodedata
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from contract import types_of
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import PATIENCE, Argusd, needs_argusd

pytestmark = needs_argusd

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src/argus"
JOB = "grpo-of-a-model-with-a-long-name-0123456"  # 40 characters
# By table of the source: the command that prints it, and the column that people read it for.
TABLES = {
    "job/jobtable.c:LIST": ("ls -a", "REASON"),
    "job/jobtable.c:QUEUE": ("queue", "REASON"),
    "job/jobtable.c:TOP": ("top -a", None),
    "noun/work/top.c:LOADS": (f"load {JOB}", None),
    "job/eventline.c:COLUMNS": ("events", "TEXT"),
    "simulate/simulate_table.c:POOLS": ("simulate --trace TRACE", None),
    "simulate/simulate_table.c:GANGS": ("simulate --trace TRACE", None),
    "noun/machine/gpus.c:POOL_LIST": ("pool ls", None),
    "noun/content/model.c:MODELS": ("model ls", None),
    "noun/machine/cluster.c:CLUSTERS": ("cluster ls", "REASON"),
    "noun/machine/cluster.c:FOREIGN": ("cluster foreign default", None),
    "noun/people/user.c:USERS": ("user ls", None),
    "noun/machine/gpus.c:POOLS": ("gpus", None),
    "noun/people/quota.c:QUOTAS": ("quota ls", None),
    "noun/machine/node.c:NODES": ("node ls", "REASON"),
    "noun/people/token.c:TOKENS": ("token ls", None),
    "noun/people/secret.c:SECRETS": ("secret ls", None),
    "noun/people/project.c:PROJECTS": ("project ls", None),
    "noun/content/snapshot.c:SNAPSHOTS": ("snapshot ls", None),
    "noun/content/data.c:DATASETS": ("data ls", None),
    "noun/machine/alert.c:ALERTS": ("alert ls", "TEXT"),
    "noun/machine/alert.c:RULES": ("alert rules", "WHEN"),
    "noun/machine/alert.c:RECEIVERS": ("alert receivers", "REASON"),
    "noun/machine/alert.c:SILENCES": ("alert silences", "NOTE"),
    "noun/content/files.c:FILES_LS_COLUMNS": ("files ls common", None),
    "noun/content/ckpt.c:CHECKPOINTS": (f"ckpt ls {JOB}", "NOTE"),
    "noun/content/ckpt.c:JOBS": ("ckpt ls --project rlhf", None),
    "noun/work/samples.c:SAMPLES": (f"samples {JOB}", "ANSWER"),
    "noun/work/samples.c:SAMPLE_STEPS": (f"samples {JOB} --steps", None),
    "noun/work/find.c:FOUND": ("find grpo", None),
    "noun/content/preset.c:PRESETS": ("preset ls", "TEXT"),
    "noun/content/preset.c:HOLES": ("preset show p", "TEXT"),
    "noun/machine/alert.c:INCIDENTS": ("incident ls", "TEXT"),
    "noun/machine/backup.c:BACKUPS": ("backup ls", None),
    "noun/machine/cluster.c:ACTORS": ("cluster actors default", None),
    "noun/machine/cluster.c:GROUPS": ("cluster groups default", None),
    "noun/work/notebook.c:NOTEBOOKS": ("notebook ls", "REASON"),
    "noun/machine/doctor.c:DOCTOR_OWN": ("doctor", "REASON"),
    "noun/machine/ops.c:PLANS": ("ops ls", None),
    "noun/machine/ops.c:REMEDIES": ("ops remedies", None),
    "noun/machine/ops.c:REMEDY_ACTS": ("ops remedies", None),
    "noun/work/pipe.c:PIPELINES": ("pipe ls", None),
    "noun/work/pipe.c:RUNS": ("pipe runs", None),
    "noun/past/report.c:POOL_COLUMNS": ("report gpu --by pool", None),
    "noun/past/report.c:PEOPLE_COLUMNS": ("report gpu --by user", None),
    "noun/past/report.c:PROJECT_COLUMNS": ("report gpu --by project", None),
    "noun/past/report.c:WASTE_COLUMNS": ("report waste", "ADVICE"),
    "noun/past/report.c:TAKEN_COLUMNS": ("report waste", None),
    "noun/past/recovery.c:CLASS_COLUMNS": ("report recovery", None),
    "noun/past/recovery.c:NODE_COLUMNS": ("report recovery", None),
    "noun/past/recovery.c:PEOPLE_COLUMNS": ("report people", None),
    "noun/work/service.c:SERVICES": ("service ls", None),
    "noun/work/service.c:REQUESTS": ("service requests s", None),
    "noun/work/service.c:APPLICATIONS": ("service applications", None),
    "noun/work/servicekey.c:SERVICE_KEYS": ("service key ls", None),
    "noun/past/simulate.c:SIMULATIONS": ("simulate ls", None),
    "noun/content/snapshot.c:SNAPSHOT_FILES": ("snapshot files s@1", None),
    "noun/people/token.c:SESSIONS": ("session ls", None),
}
# A part of a page that has other lines, or made of files that are there: not printed here.
OF_A_PAGE = {
    *("model/entry.c:ENTRY_USER_COLUMNS",),
    *("machine/drainview.c:DRAINVIEW_JOBS", "machine/drainview.c:DRAINVIEW_FOREIGN"),
    *("noun/machine/cluster.c:PAIRS", "noun/machine/doctor.c:DOCTOR_COLUMNS"),
    *("noun/past/forecast.c:FORECAST_COLUMNS", "noun/past/forecast.c:WEEK_COLUMNS"),
    *("noun/past/forecast.c:SIDE_COLUMNS", "noun/work/pipe.c:STEPS", "noun/work/pipe.c:PLANNED"),
    "noun/work/service.c:REPLICAS",
}
FOLLOWED = {"noun/machine/doctor.c:DOCTOR_OWN"}  # by the command that mends it
SENTENCES = {
    "C.UTF-8": "waiting for 64 GPUs on 8 nodes of pool h20-production-east: 12 are free now, others once a job ends",
    "zh_CN.UTF-8": "等待资源池中八台机器上的六十四块显卡：现在有十二块空闲，其余的要等前面的强化学习训练作业全部结束",
}
NAMES = {
    "job": JOB, "name": "数学推理强化学习基线实验第十二次（长提示词）", "pool": "h20-production-east",
    "user": "algorithm-engineer-of-team-one", "owner": "algorithm-engineer-of-team-one",
    "project": "rlhf-of-the-reasoning-team", "cluster": "default-production-cluster", "workload": "generate",
    "node": "gpu-worker-0123.rack-12.example", "ray_version": "2.51.1", "type": "NVIDIA-H20-96GB-HBM3",
    "role": "viewer", "verl": "0.9.1.dev20261123", "severity": "critical", "kind": "alertmanager",
    "id": "0123456789abcdef",
}  # fmt: skip
LONG = {"reason", "text", "title", "detail", "description", "note", "when", "trouble", "why", "sentence", "fix"}
TRACE = "submit_time,duration_s,num_gpus,cluster\n" + "".join(
    f"2024-02-27 {n // 60:02}:{n % 60:02}:00,{600 + n * 37 % 90000},{1 << n % 5},h20-production-east-{n % 2}\n"
    for n in range(400)
)
TIMES = {"at", "since", "until", "eta", "p50", "p90", "next_free"}
TIME = "2026-11-21T10:00:00.000Z"


class Longest:
    """A value of a schema, as long as it gets."""

    def __init__(self, schemas, sentence, path):
        self.schemas, self.sentence = schemas, sentence
        self.names = {**NAMES, "id": JOB if "/jobs" in path or "/checkpoints" in path else NAMES["id"]}

    def text(self, name, schema):
        if schema.get("format") == "date-time" or name.endswith("_at") or name in TIMES:
            return TIME
        return self.sentence if name in LONG else self.names.get(name, "a-rather-long-value-of-a-member")

    def of(self, schema, name="", depth=0):
        if "$ref" in schema:
            return self.of(self.schemas[schema["$ref"].rpartition("/")[2]], name, depth + 1)
        if "anyOf" in schema:
            return self.of(schema["anyOf"][0], name, depth + 1)
        if "enum" in schema:
            return max((word for word in schema["enum"] if word is not None), key=lambda word: len(str(word)))
        kinds = types_of(schema)
        if "object" in kinds:
            return {k: self.of(v, k, depth + 1) for k, v in schema.get("properties", {}).items() if depth < 12}
        if "array" in kinds:
            return [self.of(schema.get("items", {}), name.removesuffix("s"), depth + 1)] * 3
        if "string" in kinds:
            return self.text(name, schema)
        if "boolean" in kinds:
            return False
        return 123456 if "integer" in kinds else 12345.678 if "number" in kinds else None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        _, operation = self.server.contract.find("GET", path)
        kinds = operation["responses"]["200"]["content"]
        longest = Longest(self.server.contract.api["components"]["schemas"], self.server.sentence, path)
        reply = longest.of(kinds["application/json"]["schema"])
        if "next_cursor" in reply:
            reply["next_cursor"] = None  # there is no other page
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(scope="module")
def contract(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("contract"), ray.url) as argusd:
        return argusd.contract


@pytest.fixture(scope="module", params=SENTENCES)
def argus(contract, request, tmp_path_factory):
    """argus by one language: its output, for a width."""
    s = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    s.contract, s.sentence, s.daemon_threads = contract, SENTENCES[request.param], True
    threading.Thread(target=s.serve_forever, daemon=True).start()
    keep = {k: v for k, v in os.environ.items() if k == "PATH" or k.endswith("SAN_OPTIONS")}
    env = {**keep, "HOME": str(tmp_path_factory.mktemp("home")), "LANG": request.param, "ARGUS_TOKEN": "t"}
    env["ARGUS_URL"] = f"http://127.0.0.1:{s.server_address[1]}"

    trace = tmp_path_factory.mktemp("trace") / "trace.csv"
    trace.write_text(TRACE)

    def call(command, columns):
        command = command.replace("TRACE", str(trace))
        width = {"COLUMNS": str(columns)} if columns else {}
        argv = [PROGRAMS["argus"], *command.split()]
        p = subprocess.run(argv, env={**env, **width}, capture_output=True, text=True, timeout=PATIENCE)
        assert p.returncode == 0, f"{command}: {p.stdout}{p.stderr}"
        return p.stdout

    yield call
    s.shutdown()
    s.server_close()


def width_of(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def test_each_table_of_the_source_is_looked_at():
    found = {
        f"{path.relative_to(SOURCES)}:{name}"
        for path in SOURCES.rglob("*.c")
        if "test" not in path.parts
        for name in re.findall(r"^static const struct column (\w+)\[\]", path.read_text(), re.MULTILINE)
    }
    assert found == set(TABLES) | OF_A_PAGE


@pytest.mark.parametrize("columns", [80, 100, 120, 200])
@pytest.mark.parametrize("table", TABLES)
def test_no_line_is_wider_than_the_terminal_and_the_reason_has_its_room(argus, table, columns):
    """What a table is read for is its last column, or the one before the advice: two fifths of the line, or all that
    there is to say."""
    command, column = TABLES[table]
    lines = argus(command, columns).splitlines()
    assert len(lines) > 1 and [line for line in lines if width_of(line) > columns] == []
    if column:
        head, row, *_ = lines
        told = re.split(" {2,}", row)[-2 if table in FOLLOWED else -1]
        assert width_of(told) >= columns * 2 // 5 - 1 or "…" not in told, (head, row)


@pytest.mark.parametrize("table", TABLES)
def test_nothing_is_left_out_of_a_pipe(argus, table):
    command, column = TABLES[table]
    head, *rows = argus(command, None).splitlines()
    assert "…" not in "".join(rows)
    wide = argus(f"{command} -o wide", 80).splitlines()[0]
    assert set(head.split()) <= set(wide.split())
