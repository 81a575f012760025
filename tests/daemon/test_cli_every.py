# SPDX-License-Identifier: Apache-2.0
"""Each verb of argus with each of its options and values of every kind: none ends by a signal, by a sanitizer's report,
or with a status that its manual has not. The verbs and options are those that the program itself lists for a shell; the
servers answer by argusd's own openapi.json, whole, bare or wrongly, or are not there. A sample by day, all at night."""

import collections
import concurrent.futures
import json
import os
import random
import re
import subprocess
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd
NIGHT = bool(os.environ.get("ARGUS_NIGHTLY"))
BY_DAY = 260  # runs beside the one of each verb
PATIENCE = 10  # seconds: who follows or watches is ended then, and has not crashed
ODD = [
    "", " ", "0", "1", "-1", "-", "--", "99999999999999999999", "-99999999999999999999", "1e400", "nan", "0x10", "true",
    "null", "漢字\u202e😀", "\x01\x1b[31m\x7f", "a\nb", "=", "a=b", "a=", "=b", ",", "a,b", "/", "../..",
    "/proc/self/mem", "{}", "[]", "{name}", "%s%n", "*", "5m", "1d", "2026-11-21", "1GiB", "none", "x" * 5000,
    b"\xff\xfe\x80",
]  # fmt: skip
# init makes a server, with units of systemd; --watch and --follow never end by themselves: one run of each says enough.
NOT_RUN = {"init"}
STATUSES = {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13}  # of argus(1)


# ---- what there is ----


def verbs(home):
    """[(words, {option: the words that it may have})], as completion for a shell has them."""
    text = run(["completion", "bash"], "http://127.0.0.1:9", home)[1].decode()
    found = collections.defaultdict(dict)
    nouns, name = r"^        ([a-z|-]+)\)\n            words='([^']*)'", None
    options = r"^                (--\S+?)(?:\|-\w)?\) words='([^']*)'"
    for m in re.finditer(f"{nouns}|{options}", text, re.M):
        if m.group(1):
            heads = m.group(2).split()
            verb = [w for w in heads if not w.startswith("--")]
            name = (m.group(1).split("|")[0], *verb)
            found[name].update({w: [] for w in heads if w.startswith("--") and w != "--help"})
        else:
            found[name][m.group(3)] = m.group(4).split()
    return [(list(v), opts) for v, opts in found.items() if v[0] not in NOT_RUN]


# ---- servers ----


def made(api, schema, whole, depth=0):
    """A value of the schema: with every member, or with those alone that must be there."""
    while "$ref" in schema:
        schema = api["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    kinds = schema.get("type", [])
    kind = kinds if isinstance(kinds, str) else next((k for k in kinds if (k != "null") == whole), "null")
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        wanted = schema.get("properties", {})
        keep = wanted if whole else schema.get("required", [])
        return {k: made(api, wanted[k], whole, depth + 1) for k in keep if k in wanted and depth < 9}
    if kind == "array":
        return [made(api, schema.get("items", {}), whole, depth + 1)] * 2 if whole and depth < 9 else []
    text = "2026-11-21T10:00:00.000Z" if schema.get("format") == "date-time" else "漢\x1b[1m\n"
    return {"string": text, "integer": 1 << 60, "number": 1e300, "boolean": True}.get(kind)


def replies_of(api):
    """[(method, pattern of the path, the schema of its reply)]"""
    rows = []
    for path, methods in api["paths"].items():
        for method, what in methods.items():
            good = next((r for s, r in what.get("responses", {}).items() if s.startswith("2")), {})
            schema = good.get("content", {}).get("application/json", {}).get("schema")
            rows.append((method.upper(), re.compile(re.sub(r"\\{\w+\\}", "[^/:]+", re.escape(path))), schema))
    return rows


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, body = self.server.say(self.command, urllib.parse.urlsplit(self.path).path)
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status < 400 else "application/problem+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = answer  # noqa: N815


def server(say):
    s = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    s.say, s.daemon_threads = say, True
    threading.Thread(target=s.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
    return s


@pytest.fixture(scope="module")
def urls(tmp_path_factory):
    home = tmp_path_factory.mktemp("argusd")
    with FakeRay(state=home / "ray") as ray, Argusd(home, ray.url) as argusd:
        api = argusd.get("/v1/openapi.json")
    rows = replies_of(api)

    def by_schema(whole):
        def say(method, path):
            schema = next((s for m, p, s in rows if m == method and p.fullmatch(path)), None)
            return 200, made(api, schema, whole) if schema else {}

        return say

    wrong = [{}, [], 7, "text", None, {"jobs": [1], "alerts": "no", "nodes": {}, "id": []}]
    lie = lambda method, path: (200, wrong[len(path) % len(wrong)])  # noqa: E731
    refuse = lambda method, path: (404, {"code": "not_found", "detail": "no '\x1b[31m'", "status": 404})  # noqa: E731
    servers = [server(say) for say in (by_schema(True), by_schema(False), lie, refuse)]
    yield [f"http://127.0.0.1:{s.server_address[1]}" for s in servers] + ["http://127.0.0.1:9"]
    for s in servers:
        s.shutdown()
        s.server_close()


# ---- runs ----


def run(words, url, home):
    """(status, stdout, stderr); the status is None where it had to be ended. It can start nothing: PATH is empty."""
    keep = {k: v for k, v in os.environ.items() if k in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")}
    env = {**keep, "HOME": str(home), "ARGUS_URL": url, "ARGUS_TOKEN": "argus_x", "PATH": "/no", "LANG": "zh_CN.UTF-8"}
    argv = [PROGRAMS["argus"], *words]
    try:
        p = subprocess.run(
            argv, env=env, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return None, late.stdout or b"", late.stderr or b""
    return p.returncode, p.stdout, p.stderr


def words_of(verb, arguments, options):
    return [*verb, *arguments, *(w for name, value in options for w in ((name,) if value is None else (name, value)))]


def cases_of(every, rng):
    """All that is run at night: every option alone with each value, and all of a verb's at once."""
    for verb, options in every:
        yield words_of(verb, [], [])
        for k in range(3):
            odd = [rng.choice(ODD) for _ in range(k)]
            yield words_of(verb, odd, [(name, rng.choice(words or ODD)) for name, words in options.items()])
        for name, words in options.items():
            for value in [None, *words, *ODD]:
                yield words_of(verb, [rng.choice(["x", *ODD])], [(name, value)])


def test_no_verb_crashes(urls, tmp_path):
    every = verbs(tmp_path)
    assert len(every) > 120 and ["alert", "ls"] in [v for v, _ in every]
    assert {tuple(v): o for v, o in every}[("alert", "ls")]["--state"] == ["open", "silenced", "past", "all"]
    rng = random.Random(29)
    cases = list(cases_of(every, rng))
    if not NIGHT:
        choices = [words_of(v, [], [(n, w)]) for v, o in every for n, ws in o.items() if n != "--output" for w in ws]
        plain = [words_of(v, [], []) for v, _ in every]
        cases = plain + rng.sample(choices, min(60, len(choices))) + rng.sample(cases, BY_DAY)

    def judge(k):
        words, url = cases[k], urls[k % len(urls)]
        status, _, said = run(words, url, tmp_path)
        bad = b"Sanitizer" in said or b"runtime error" in said or b"Assertion" in said
        return (words, url, status, said[-2000:]) if bad or status not in {*STATUSES, None} else None

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        crashed = [bad for bad in pool.map(judge, range(len(cases))) if bad]
    assert not crashed, crashed[:5]
