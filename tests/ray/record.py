#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Walks a dashboard, real or fake, through the life of a few jobs and writes down every answer.

    record.py URL DIR [--driver COMMAND]

DIR/<version>.json gets one entry per step: what was asked, the status, the content type, the body. The copies under
tests/fake_ray/recorded are of real Ray, made with a bed of three hosts; test_fake_ray.py holds the fake to them and
test_ray_real.py holds Ray itself to them. COMMAND is an entrypoint that calls ray.init(), makes a placement group
and waits to be stopped. Paths of the machine are taken out of the texts.
"""

import argparse
import json
import pathlib
import re
import select
import time
import urllib.error
import urllib.request

JOBS = "/api/jobs/"
DEADLINE = 120
HEADERS = {"User-Agent": "argus/record", "Content-Type": "application/json"}

# Makes a placement group over two workers, then waits; in one shell line, for an entrypoint.
DRIVER = (
    "exec python -c \"import ray, time; ray.init(namespace='argus'); from ray.util.placement_group import "
    "placement_group as g; ray.get(g([{'GPU': 1}, {'GPU': 1}], name='gang', strategy='STRICT_SPREAD').ready()); "
    "print('ready', flush=True); time.sleep(600)\""
)


def wait_for(condition, what):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        select.select([], [], [], 0.1)
    raise SystemExit(f"record: {what}: not seen within {DEADLINE} s")


def scrub(text):
    """No path of the machine that recorded."""
    return re.sub(r"(?<![\w:/])/(?:[\w.@+-]+/)+", ".../", text)


class Recorder:
    def __init__(self, url, token=None):
        self.url = url.rstrip("/")
        self.headers = {**HEADERS, **({"Authorization": f"Bearer {token}"} if token else {})}
        self.steps = {}

    def ask(self, method, path, body=None, headers=None):
        data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, method=method, data=data, headers={**self.headers, **(headers or {})}
        )
        try:
            answer = urllib.request.urlopen(request, timeout=DEADLINE)
        except urllib.error.HTTPError as e:
            answer = e
        with answer:
            return answer.status, answer.headers.get_content_type(), answer.read().decode("utf-8", "replace")

    def step(self, name, method, path, body=None, headers=None):
        status, kind, text = self.ask(method, path, body, headers)
        entry = {"method": method, "path": path, "status": status, "type": kind}
        if kind == "application/json":
            entry["json"] = json.loads(scrub(text))
        else:
            entry["text"] = scrub(text)
        self.steps[name] = entry
        return entry.get("json", text)

    def job(self, sid):
        status, _, text = self.ask("GET", JOBS + sid)
        return json.loads(text) if status == 200 else {"status": None}

    def wait_status(self, sid, *wanted):
        return wait_for(lambda: (j := self.job(sid))["status"] in wanted and j, f"{sid} {wanted}")

    def submit(self, sid, entrypoint, **more):
        return {"submission_id": sid, "entrypoint": entrypoint, **more}


def about_cluster(r):
    version = r.step("version", "GET", "/api/version")
    r.step("authentication_mode", "GET", "/api/authentication_mode")
    r.step("healthz", "GET", "/api/gcs_healthz")
    rows = r.step("nodes", "GET", "/api/v0/nodes?limit=10000")["data"]["result"]["result"]
    r.step("nodes_limit", "GET", "/api/v0/nodes?limit=100000")
    r.step("nodes_filter", "GET", "/api/v0/nodes?filter_keys=nonsense&filter_predicates=%3D&filter_values=x")
    r.step("no_resource", "GET", "/api/v0/nonsense")
    return version["ray_version"], next(n["node_ip"] for n in rows if not n["is_head_node"])


def refusals(r, browser):
    r.step("submit_unknown_key", "POST", JOBS, {"entrypoint": "x", "nonsense": 1})
    r.step("submit_no_entrypoint", "POST", JOBS, {"submission_id": "x"})
    r.step("submit_malformed", "POST", JOBS, "{")
    r.step("submit_no_slash", "POST", "/api/jobs", {"entrypoint": "x"})
    r.step("submit_browser", "POST", JOBS, {"entrypoint": "x"}, {"User-Agent": browser})
    r.step("get_missing", "GET", JOBS + "nope")
    r.step("stop_missing", "POST", JOBS + "nope/stop")
    r.step("delete_missing", "DELETE", JOBS + "nope")


def life(r, ip, driver):
    place = {f"node:{ip}": 0.001}
    env = {"env_vars": {"A": "b"}}
    body = r.submit("ok", "echo hello", metadata={"k": "v"}, runtime_env=env, entrypoint_resources=place)
    r.step("submit", "POST", JOBS, body)
    r.step("submit_duplicate", "POST", JOBS, body)
    r.step("submit_impossible", "POST", JOBS, r.submit("wait", "echo x", entrypoint_resources={"no_such": 1}))
    r.step("submit_failing", "POST", JOBS, r.submit("bad", "echo sorry; exit 3"))
    r.step("submit_driver", "POST", JOBS, r.submit("gang", driver, entrypoint_num_cpus=1, entrypoint_resources=place))
    r.wait_status("ok", "SUCCEEDED")
    ended = time.monotonic()
    r.wait_status("bad", "FAILED")
    wait_for(lambda: r.job("gang").get("driver_info"), "driver_info of the gang")
    r.step("job_succeeded", "GET", JOBS + "ok")
    r.step("job_failed", "GET", JOBS + "bad")
    r.step("job_pending", "GET", JOBS + "wait")
    r.step("job_running", "GET", JOBS + "gang")
    r.step("jobs", "GET", JOBS)
    r.step("logs", "GET", JOBS + "bad/logs")
    return ended


def state(r):
    name = "filter_keys=name&filter_predicates=%3D&filter_values=_ray_internal_job_actor_wait"
    r.step("supervisor_pending", "GET", f"/api/v0/actors?limit=10000&{name}")
    r.step("actors", "GET", "/api/v0/actors?limit=10000")
    live = "filter_keys=state&filter_predicates=%21%3D&filter_values=DEAD"
    r.step("actors_detail", "GET", f"/api/v0/actors?limit=10000&detail=true&{live}")
    groups = "/api/v0/placement_groups?limit=10000&detail=true"
    wait_for(
        lambda: '"CREATED"' in r.ask("GET", groups)[2] or '"total": 0' in r.ask("GET", groups)[2], "a placement group"
    )
    r.step("groups_detail", "GET", groups)
    wait_for(lambda: "usageByNode" in r.ask("GET", "/api/cluster_status")[2], "a report of the monitor")
    r.step("cluster_status", "GET", "/api/cluster_status")


def ends(r, ended):
    r.step("stop_pending", "POST", JOBS + "wait/stop")
    r.step("delete_pending", "DELETE", JOBS + "wait")
    r.step("stop", "POST", JOBS + "gang/stop")
    r.wait_status("gang", "STOPPED")
    r.step("job_stopped", "GET", JOBS + "gang")
    r.step("stop_ended", "POST", JOBS + "ok/stop")
    wait_for(lambda: time.monotonic() - ended > 6, "the time after which DELETE is safe")
    r.step("delete", "DELETE", JOBS + "ok")


def record(url, driver=DRIVER, token=None):
    """(version, {step: answer}). The job `wait` stays PENDING: nothing can take it away."""
    r = Recorder(url, token)
    version, ip = about_cluster(r)
    refusals(r, "Mozilla/5.0 (X11)")
    ended = life(r, ip, driver)
    state(r)
    ends(r, ended)
    return version, r.steps


# -- comparing two recordings -----------------------------------------------------

# Objects whose keys are names and not part of the form.
MAPS = set(
    "resources_total labels usage usageByNode metadata env_vars activeNodes nodeTypeMapping unit_resources "
    "required_resources label_selector nodeTypes idleTimeMap".split()
)


def shape(value, key=""):
    """The form of an answer: keys and types, not values."""
    if isinstance(value, dict):
        if key in MAPS:
            return {"*": merge_all(shape(v, key) for v in value.values())}
        return {k: shape(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [merge_all(shape(v, key if key in MAPS else "") for v in value)]
    if value is None or isinstance(value, bool):
        return {None: "null", True: "bool", False: "bool"}[value]
    return "number" if isinstance(value, (int, float)) else "text"


def merge_all(shapes):
    merged = "null"
    for s in shapes:
        merged = merge(merged, s)
    return merged


def merge(a, b):
    if a == "null":
        return b
    if b == "null" or a == b:
        return a
    if isinstance(a, dict) and isinstance(b, dict):
        return {k: merge(a.get(k, "null"), b.get(k, "null")) for k in a.keys() | b.keys()}
    if isinstance(a, list) and isinstance(b, list):
        return [merge(a[0], b[0])]
    return f"{a}|{b}"


def differences(a, b, at=""):
    """Where two shapes say different things; null and an empty list fit everything."""
    if a == "null" or b == "null":
        return []
    if isinstance(a, dict) and isinstance(b, dict):
        found = [f"{at}.{k}: only in one of the two" for k in a.keys() ^ b.keys()]
        return found + [d for k in a.keys() & b.keys() for d in differences(a[k], b[k], f"{at}.{k}")]
    if isinstance(a, list) and isinstance(b, list):
        return differences(a[0], b[0], at + "[]")
    return [] if a == b else [f"{at}: {a} and {b}"]


def last_line(text):
    """What an error text says in the end, without its ids and addresses."""
    lines = [line.strip() for line in text.splitlines() if re.search(r"\w\w\w", line)]
    return re.sub(r"[0-9a-f]{8,}|\d+\.\d+\.\d+\.\d+", "*", lines[-1] if lines else "")


def compare(recorded, other):
    """All differences in form between two recordings, as sentences."""
    found = [f"{name}: only in one of the two" for name in recorded.keys() ^ other.keys()]
    for name in recorded.keys() & other.keys():
        a, b = recorded[name], other[name]
        if (a["status"], a["type"]) != (b["status"], b["type"]):
            found.append(f"{name}: {a['status']} {a['type']} and {b['status']} {b['type']}")
        elif "json" in a:
            found += differences(shape(a["json"]), shape(b["json"]), name)
        elif last_line(a["text"]) != last_line(b["text"]):
            found.append(f"{name}: '{last_line(a['text'])}' and '{last_line(b['text'])}'")
    return sorted(found)


def main():
    ap = argparse.ArgumentParser(description="write down what a Ray dashboard answers")
    ap.add_argument("url")
    ap.add_argument("dir", type=pathlib.Path)
    ap.add_argument("--driver", default=DRIVER)
    ap.add_argument("--token")
    args = ap.parse_args()
    version, steps = record(args.url, args.driver, args.token)
    args.dir.mkdir(parents=True, exist_ok=True)
    path = args.dir / f"{version}.json"
    path.write_text(json.dumps(steps, indent=1, sort_keys=True) + "\n")
    print(path)


if __name__ == "__main__":
    main()
