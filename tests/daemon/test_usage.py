# SPDX-License-Identifier: Apache-2.0
"""Accounting: GET /v1/usage balances to the millisecond, over kill -9, restarts and jumps of the wall clock.

A job has the GPU-seconds that its leases held; who sees what; a GPU that the figures call idle is held idle. Beside a
fake Ray."""

import contextlib
import csv
import datetime
import http.server
import io
import json
import os
import sqlite3
import subprocess
import threading
import time

import pytest
from fakeray import FakeRay
from preload import needs_compiler
from programs import PROGRAMS
from wallclock import WallClock

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

PARTS = ("used", "held_idle", "blocked", "free", "draining", "broken", "foreign")
GPUS = 4
DAY = 86400


def nodes(**pages):
    """A head, and two workers with two GPUs each."""
    rows = [{"name": "head", "ip": "127.0.0.1", "head": True, "resources": {"CPU": 0}}]
    for i, name in enumerate(("w1", "w2")):
        worker = {"CPU": 8, "GPU": 2, "worker_node": 1, f"argus_node_{name}": 1}
        page = {"metrics_port": pages[name]} if name in pages else {}
        rows.append({"name": name, "ip": f"127.0.0.{2 + i}", "resources": worker, **page})
    return rows


def ms(t):
    at = datetime.datetime.fromisoformat(t.replace("Z", "+00:00"))
    return round(at.timestamp() * 1000)


def gpu_ms(seconds):
    return round(seconds * 1000)


class Books:
    """The usage of an argusd, in GPU-milliseconds, as sums of all points."""

    def __init__(self, argusd):
        self.argusd = argusd

    def page(self, query="", token="admin"):
        reply = self.argusd.call("GET", f"/v1/usage?from=30d&{query}", token=token)
        assert reply.status == 200, reply
        return reply.json()

    def sums(self, query="", token="admin"):
        # Sums of a moment ago may be told: what comes behind the first answer has all that was before the call.
        first = self.page(query, token)["until"]
        page = until(lambda: (p := self.page(query, token))["until"] > first and p, "sums of now")
        told = {s["name"]: {k: sum(gpu_ms(v) for v in s[k]) for k in s if k != "name"} for s in page["series"]}
        return told, ms(page["until"])

    def whole(self):
        """Of the cluster, checked: the seven parts are the capacity, whatever they are grouped by."""
        told, now = self.sums()
        assert set(told) <= {"default"}
        whole = told.get("default", dict.fromkeys((*PARTS, "capacity", "unknown", "busy", "redone"), 0))
        assert sum(whole[p] for p in PARTS) == whole["capacity"]
        assert whole["unknown"] <= whole["used"]
        assert 0 <= whole["redone"] <= whole["used"]
        return whole, now

    def seen(self):
        """Once the workers are in the book."""
        return until(lambda: self.whole()[0]["capacity"] or None, "the nodes have capacity")


@contextlib.contextmanager
def world(home, env=None, **pages):
    with FakeRay(nodes=nodes(**pages), state=home / "ray") as ray:
        argusd = Argusd(home, ray.url)
        argusd.env = env or {}
        with argusd:
            books = Books(argusd)
            books.seen()
            yield argusd, books


def listed(argusd, job):
    """Its row in the list."""
    return next(j for j in argusd.all_jobs("&all=1") if j["id"] == job)


def gated(argusd, name, **keys):
    """A job that runs until its gate is there."""
    gate = argusd.root / "common" / name
    job = argusd.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done", **keys)
    argusd.wait_state(job, "RUNNING")
    return job, gate


def test_the_book_balances_over_kill_9(tmp_path):
    with world(tmp_path) as (argusd, books):
        before, t0 = books.whole()
        job, gate = gated(argusd, "gate", n_gpus_per_node=1, nnodes=2)
        held, t1 = books.whole()
        assert held["capacity"] - before["capacity"] == GPUS * (t1 - t0)
        for _ in range(3):  # nobody stops it in peace; what it has not stored yet is replayed
            argusd.kill9()
            argusd.start()
        books.seen()
        later, t2 = books.whole()
        # The time while argusd was away belongs to what the lease says.
        assert later["capacity"] - held["capacity"] == GPUS * (t2 - t1)
        assert later["used"] - held["used"] == 2 * (t2 - t1)
        # Nobody measured anything: used, and said as unknown.
        assert later["unknown"] == later["used"] and later["held_idle"] == 0
        gate.touch()
        over = argusd.wait_over(job)
        end, t3 = books.whole()
        assert end["capacity"] - before["capacity"] == GPUS * (t3 - t0)
        assert gpu_ms(over["gpu_seconds"]) == end["used"]
        assert over["gpu_hours"] == pytest.approx(over["gpu_seconds"] / 3600)
        ran = ms(over["ended_at"]) - ms(over["started_at"])
        assert end["used"] >= 2 * (ran - 1000)  # a lease is held before and after the run
        for by, name in (("user", "alice"), ("project", "default"), ("workload", "ray"), ("pool", "")):
            told, _ = books.sums(f"by={by}")
            assert told[name]["used"] == end["used"], (by, told)
        assert gpu_ms(3600 * listed(argusd, job)["gpu_hours"]) == end["used"]
        argusd.restart()
        assert gpu_ms(argusd.job(job)["gpu_seconds"]) == gpu_ms(3600 * listed(argusd, job)["gpu_hours"]) == end["used"]


def test_attempts_add_up(tmp_path):
    with world(tmp_path) as (argusd, books):
        job = argusd.submit(
            "exit 3", n_gpus_per_node=2, restart={"max": 1, "backoff": "1s", "on": ["user_code_error", "unknown"]}
        )
        over = argusd.wait_over(job)
        whole, _ = books.whole()
        assert gpu_ms(over["gpu_seconds"]) == whole["used"] > 0
        assert gpu_ms(3600 * listed(argusd, job)["gpu_hours"]) == whole["used"]
        assert len(over["attempts"]) == over["restarts"] + 1


@needs_compiler
def test_the_wall_clock_is_a_label(tmp_path):
    clock = WallClock(tmp_path)
    with world(tmp_path, env=clock.env()) as (argusd, books):
        job, gate = gated(argusd, "gate", n_gpus_per_node=2)
        at, first = {}, books.whole()[0]

        def label():
            return ms(books.page()["until"])

        for jump in (3 * DAY, -8 * DAY):
            at[jump] = label()
            clock.jump(jump)
            # The label follows, the amounts go on as if nothing had happened.
            until(lambda j=jump: abs(label() - at[j]) > DAY * 1000, "the label follows the wall clock")
        argusd.kill9()
        clock.jump(5 * DAY)
        argusd.start()
        books.seen()
        gate.touch()
        over = argusd.wait_over(job)
        told, _ = books.sums("to=" + "2100-01-01T00:00:00Z")
        whole = told["default"]
        assert sum(whole[p] for p in PARTS) == whole["capacity"] >= first["capacity"]
        assert gpu_ms(over["gpu_seconds"]) == whole["used"]
        # Days of jumps made nobody pay for days.
        assert whole["capacity"] < GPUS * DAY * 1000


class Page:
    """The metrics page of one node."""

    def __init__(self, ip, use):
        lines = "".join(
            f'ray_node_gpus_utilization{{GpuDeviceName="X",GpuIndex="{i}",ip="{ip}"}} {u}\n' for i, u in enumerate(use)
        )
        body = ("# TYPE ray_node_gpus_utilization gauge\n" + lines).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((ip, 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def test_idle_is_what_the_figures_say(tmp_path):
    page = Page("127.0.0.2", (80, 1))
    try:
        with world(tmp_path, w1=page.port) as (argusd, books):
            job, gate = gated(argusd, "gate", n_gpus_per_node=2, nnodes=2)

            def measured():
                whole, _ = books.whole()
                return whole if whole["held_idle"] else None

            whole = until(measured, "a GPU is held idle")
            assert whole["busy"] > 0
            pool = next(p for p in argusd.get("/v1/pools")["pools"] if p["pool"] is None)
            assert (pool["gpus"]["idle_held"], pool["gpus"]["unknown"]) == (1, 2)
            assert pool["util"] == pytest.approx((0.8 + 0.01) / 2, abs=0.02)
            gate.touch()
            over = argusd.wait_over(job)
            assert over["gpu_idle_hours"] > 0 and over["gpu_unknown_hours"] > 0
            whole, _ = books.whole()
            assert gpu_ms(over["gpu_seconds"]) == whole["used"] + whole["held_idle"]
    finally:
        page.close()


def report(argusd, *args, token="admin"):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens.get(token, token), "COLUMNS": "80"}
    done = subprocess.run([PROGRAMS["argus"], "report", *args], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_run_again_is_redone(tmp_path):
    """Attempt 1 dies at step 4, attempt 2 goes on behind step 2; each stands still where a gate is missing."""
    with world(tmp_path) as (argusd, books):
        dies, fresh, ends = (argusd.root / "common" / name for name in ("dies", "fresh", "ends"))
        job = argusd.submit(
            f"""
say() {{ echo '{{"step":'$1',"total_steps":6,"step_time":0.1,"loss":0.5}}'; }}
gate() {{ while [ ! -e "$1" ]; do sleep 0.1; done; }}
if [ "$ARGUS_ATTEMPT" = 1 ]; then
    say 1; say 2; say 3; say 4; gate {dies}; kill -9 $$
fi
say 3; gate {fresh}; say 5; gate {ends}
""",
            n_gpus_per_node=2,
            restart={"max": 2, "backoff": "1s", "on": ["unknown", "host_oom", "user_code_error", "actor_died"]},
        )
        until(lambda: argusd.job(job)["step"] == 4, "attempt 1 is at step 4")
        assert books.whole()[0]["redone"] == 0
        dies.touch()
        before = until(lambda: (w := books.whole()[0])["redone"] and w, "attempt 2 runs step 3 again")
        argusd.kill9()
        argusd.start()
        books.seen()
        again, _ = books.whole()
        # Seconds, so that its metrics were read anew meanwhile: what is held all the time is redone, without a gap.
        still = until(lambda: (w := books.whole()[0])["redone"] > again["redone"] + 2 * 3000 and w, "it still does")
        assert still["redone"] - before["redone"] == still["used"] - before["used"]
        fresh.touch()
        until(lambda: argusd.job(job)["step"] == 5, "attempt 2 is at a new step")
        done, _ = books.whole()
        later, _ = books.whole()
        assert later["redone"] == done["redone"] and later["used"] > done["used"]
        ends.touch()
        over = argusd.wait_over(job)
        assert (over["state"], len(over["attempts"])) == ("SUCCEEDED", 2), over
        end, _ = books.whole()
        assert end["redone"] == later["redone"] == gpu_ms(3600 * over["gpu_redone_hours"])
        told, _ = books.sums("by=user")
        assert told["alice"]["redone"] == end["redone"]
        # Each attempt held a lease of its own, and the second one ran steps again.
        one, two = over["attempts"]
        assert one["gpu_seconds"] > 0 and one["gpu_redone_seconds"] == 0
        assert gpu_ms(one["gpu_seconds"]) + gpu_ms(two["gpu_seconds"]) == gpu_ms(over["gpu_seconds"]) == end["used"]
        assert gpu_ms(two["gpu_redone_seconds"]) == end["redone"]
        assert [a["gpu_unknown_seconds"] for a in (one, two)] == [a["gpu_seconds"] for a in (one, two)]
        rows = [line.split() for line in report(argusd, "job", job).splitlines()]
        for a in (one, two):
            kinds = ("gpu_seconds", "gpu_idle_seconds", "gpu_unknown_seconds", "gpu_redone_seconds")
            assert [str(a["k"]), *(f"{a[k]:.3f}" for k in kinds)] in rows
        points = csv.DictReader(io.StringIO(report(argusd, "gpu", "--by", "pool", "--csv")))
        assert sum(gpu_ms(float(p["redone_gpu_s"])) for p in points) == end["redone"]
        argusd.restart()
        assert argusd.job(job)["attempts"] == over["attempts"]


def test_reports(tmp_path):
    with world(tmp_path) as (argusd, books):
        job = argusd.submit("true", n_gpus_per_node=2)
        over = argusd.wait_over(job)
        told, _ = books.sums("by=user")
        table = report(argusd, "gpu").splitlines()
        assert table[0].split()[:3] == ["NAME", "CAPACITY", "USED"] and table[1].startswith("(none)")
        assert all(len(line) <= 80 for line in table)
        rows = list(csv.DictReader(io.StringIO(report(argusd, "gpu", "--by", "pool", "--step", "15m", "--csv"))))
        assert len(rows) == argusd.get("/v1/usage?from=7d&step=15m")["points"]
        assert sum(gpu_ms(float(r["used_gpu_s"])) for r in rows) == told["alice"]["used"]
        for r in rows:
            assert sum(gpu_ms(float(r[f"{p}_gpu_s"])) for p in PARTS) == gpu_ms(float(r["capacity_gpu_s"]))
        people = report(argusd, "gpu", "--by", "user").splitlines()
        assert people[0].split()[:2] == ["NAME", "USED"] and people[1].split()[0] == "alice"
        waste = argusd.get("/v1/usage/jobs?from=1d")
        assert waste["complete"] and [w["id"] for w in waste["jobs"]] == [job]
        assert waste["jobs"][0]["gpu_hours"] == pytest.approx(over["gpu_hours"])
        assert waste["jobs"][0]["advice"] == "none"  # nobody measured it
        assert waste["back_test"] is None  # nobody asked
        assert (waste["taken"], waste["taken_count"], waste["taken_error"]) == ([], 0, None)  # nothing is claimed
        tried = argusd.get("/v1/usage/jobs?from=1d&back_test=true")
        assert tried["back_test"]["tried"] == 0 and tried["jobs"] == waste["jobs"]  # there was no week before
        table = report(argusd, "waste").splitlines()
        assert table[0].split()[0] == "JOB" and table[1].split()[:2] == [job, "alice"]
        assert list(csv.DictReader(io.StringIO(report(argusd, "waste", "--csv"))))[0]["id"] == job
        assert f"GPU-hours     {over['gpu_hours']:10.2f}" in report(argusd, "job", job).splitlines()
        # Who may not see a job does not see its waste.
        assert argusd.call("POST", "/v1/projects", {"name": "rl", "members": []}).status == 201
        assert argusd.call("POST", "/v1/users", {"name": "bo"}).status == 201
        token = argusd.call("POST", "/v1/tokens", {"name": "t", "user": "bo", "role": "user"}).json()["token"]
        assert argusd.call("GET", "/v1/usage/jobs", token=token).json()["jobs"] == []
        assert len(report(argusd, "waste", token=token).splitlines()) == 1  # the titles


def test_series_and_who_sees_them(tmp_path):
    with world(tmp_path) as (argusd, books):
        for user in ("ann", "bo"):
            assert argusd.call("POST", "/v1/users", {"name": user}).status == 201
        for project, member in (("rl", "ann"), ("vision", "bo")):
            body = {"name": project, "members": [member]}
            assert argusd.call("POST", "/v1/projects", body).status == 201
        token = {}
        for user in ("ann", "bo"):
            reply = argusd.call("POST", "/v1/tokens", {"name": "t", "user": user, "role": "user"})
            assert reply.status == 201, reply
            token[user] = reply.json()["token"]
        for user, project in (("ann", "rl"), ("bo", "vision")):
            argusd.wait_over(argusd.submit("true", token=token[user], project=project, n_gpus_per_node=1))
        told, _ = books.sums("by=project")
        assert set(told) == {"rl", "vision"} and all(s["used"] > 0 and s["capacity"] == 0 for s in told.values())
        assert books.sums("by=user&project=rl")[0].keys() == {"ann"}
        # A user sees his own projects; what a pool did is everybody's.
        assert books.sums("by=project", token["ann"])[0].keys() == {"rl"}
        assert books.sums("by=user", token["bo"])[0].keys() == {"bo"}
        assert books.sums("by=pool", token["bo"])[0][""]["capacity"] > 0
        hidden = argusd.call("GET", "/v1/usage?by=user&project=rl", token=token["bo"])
        assert (hidden.status, hidden.json()["code"]) == (403, "usage_hidden")
        for query, code in (
            ("by=colour", "usage_by_unknown"),
            ("from=1h&to=2h", "usage_no_time"),
            ("from=80d&step=15m", "usage_too_fine"),
        ):
            reply = argusd.call("GET", f"/v1/usage?{query}")
            assert (reply.status, reply.json()["code"]) == (400, code), reply
        # However it is cut, it is as much.
        whole = books.page()["series"][0]
        for step in ("15m", "1d", "7d"):
            page = argusd.get(f"/v1/usage?from=8d&step={step}")
            series = page["series"][0]
            assert page["points"] == len(series["used"])
            assert sum(map(gpu_ms, series["used"])) == gpu_ms(whole["used"][0])
            assert sum(map(gpu_ms, series["capacity"])) >= gpu_ms(whole["capacity"][0])


def test_what_projects_had_of_each_other(tmp_path):
    """vision holds all four GPUs, of which rl is guaranteed three; rl waits for two, and vision for one more."""
    with world(tmp_path) as (argusd, books):
        token = {}
        for user, project in (("ann", "rl"), ("bo", "vision")):
            assert argusd.call("POST", "/v1/users", {"name": user}).status == 201
            assert argusd.call("POST", "/v1/projects", {"name": project, "members": [user]}).status == 201
            reply = argusd.call("POST", "/v1/tokens", {"name": "t", "user": user, "role": "user"})
            token[user] = reply.json()["token"]
        assert argusd.call("PUT", "/v1/projects/rl/quota", {"gpus_guaranteed": 3}).status == 200
        holder, gate = gated(argusd, "gate", token=token["bo"], project="vision", n_gpus_per_node=2, nnodes=2)
        waits = [
            argusd.submit("true", token=token["ann"], project="rl", n_gpus_per_node=2),
            argusd.submit("true", token=token["bo"], project="vision", n_gpus_per_node=1),
        ]

        def told(who="admin"):
            page = books.page("by=project", who)
            return {d["project"]: d for d in page["dealings"]}

        def both():
            now = told()
            has = ("rl", "wait_taken_gpu_s"), ("rl", "lent_gpu_s"), ("vision", "wait_own_gpu_s")
            return now if all(p in now and now[p][key] > 0 for p, key in has) else None

        def check(now):
            rl, vision = now["rl"], now["vision"]
            parts = {x["project"]: gpu_ms(x["gpu_s"]) for x in vision["borrowed"]}
            # Three of its four are those of rl; the fourth was guaranteed to nobody.
            assert set(parts) == {"rl", ""} and parts["rl"] == 3 * parts[""], now
            assert gpu_ms(vision["borrowed_gpu_s"]) == sum(parts.values())
            assert [(x["project"], gpu_ms(x["gpu_s"])) for x in rl["lent"]] == [("vision", parts["rl"])]
            # What rl waits vision gives; what vision waits is its own, but for the start of its first job.
            assert gpu_ms(rl["wait_taken_gpu_s"]) == gpu_ms(vision["wait_given_gpu_s"])
            assert (rl["wait_own_gpu_s"], rl["wait_given_gpu_s"], vision["lent_gpu_s"]) == (0, 0, 0)
            assert 0 < vision["wait_own_gpu_s"] <= vision["wait_taken_gpu_s"]
            return parts[""]

        lent = check(until(both, "the dealings are told"))
        argusd.kill9()
        argusd.start()
        books.seen()
        later = until(lambda: (now := told()) and check(now) > lent and now, "time goes on after a kill")
        # The name of a project that ann is not in is not hers to see.
        mine = told(token["ann"])
        assert set(mine) == {"rl"} and [x["project"] for x in mine["rl"]["lent"]] == ["*"]
        assert mine["rl"]["lent_gpu_s"] >= later["rl"]["lent_gpu_s"]
        assert books.page("by=user")["dealings"] == [] == books.page("by=project&user=bo")["dealings"]
        assert books.page("by=project&project=rl")["dealings"][0]["project"] == "rl"
        gate.touch()
        for job in (holder, *waits):
            argusd.wait_over(job)
        end = told()
        held, _ = books.sums("by=project")
        # rl borrowed nothing while it ran within its guarantee, and nobody lent more than was held; what was
        # lent goes on to the next whole second.
        assert end["rl"]["borrowed"] == []
        had = held["vision"]["used"] + held["vision"]["held_idle"]
        assert gpu_ms(end["vision"]["borrowed_gpu_s"]) <= had + GPUS * 1000
        table = report(argusd, "gpu", "--by", "project").splitlines()
        assert "LENT" in table[0] and all(len(line) <= 80 for line in table)
        rows = {r["name"]: r for r in csv.DictReader(io.StringIO(report(argusd, "gpu", "--by", "project", "--csv")))}
        assert float(rows["rl"]["lent_gpu_s"]) > 0 and float(rows["vision"]["wait_given_gpu_s"]) > 0


EVER = "from=1970-01-01T00:00:00Z"


def sql_shift(db, job, began, ended):
    """The job, and its only attempt, as if it had all been so many days ago; its row's number."""
    at = [int((time.time() - days * DAY) * 1e6) for days in (began, began, ended)]
    (seq,) = db.execute("SELECT seq FROM job WHERE id=?", (job,)).fetchone()
    db.execute("UPDATE job SET queued_at=?, started_at=?, ended_at=? WHERE seq=?", (*at, seq))
    db.execute(
        "UPDATE attempt SET started_at=?, ended_at=?, detail=json_set(detail, '$.planned_at', ?) WHERE job_seq=?",
        (at[1], at[2], at[1], seq),
    )
    return seq


def test_a_job_is_of_each_time_in_which_it_held_slots(tmp_path):
    """One that began ten days ago and ended an hour ago, one that was over two days ago, and one that waits."""
    with world(tmp_path) as (argusd, _):
        long, short = (argusd.submit("true", name=name, n_gpus_per_node=1) for name in ("long", "short"))
        for job in (long, short):
            argusd.wait_over(job)
        waits = argusd.submit("true", name="waits", n_gpus_per_node=2, nnodes=9)
        argusd.stop()
        with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db, db:
            sql_shift(db, long, began=10, ended=1 / 24)
            sql_shift(db, short, began=2.5, ended=2)
        argusd.start()

        def told(query):
            jobs = argusd.get(f"/v1/jobs?all=true&{query}")["jobs"]
            return {j["id"] for j in jobs}

        assert told("ran_since=1d") == told("ran_since=1d&sort=gpu_hours") == {long}
        assert told("since=1d") == {waits}
        assert told("ran_since=3d") == {long, short} and told("ran_since=11d&ran_until=9d") == {long}
        counted = argusd.get("/v1/jobs?all=true&ran_since=3d&count=true&limit=1")
        assert (counted["total"], counted["states"]) == (2, {"SUCCEEDED": 2})
        for what in ("jobs", "recovery"):
            for query, n in (("from=1d", 1), ("from=3d", 2), ("from=11d&to=9d", 1), ("from=20d&to=11d", 0), (EVER, 2)):
                assert argusd.get(f"/v1/usage/{what}?{query}")["looked_at"] == n, (what, query)
        assert [w["id"] for w in argusd.get("/v1/usage/jobs?from=1d")["jobs"]] == [long]
        env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["admin"]}
        argv = [PROGRAMS["argus"], "ls", "-aq", "--ran-since", "11d", "--ran-until", "9d"]
        assert subprocess.run(argv, env=env, capture_output=True, text=True).stdout.split() == [long]
        refused = argusd.call("GET", "/v1/jobs?ran_since=12")
        assert (refused.status, refused.json()["code"]) == (400, "time_no_unit")


def test_what_would_gain_most_is_not_cut_off(tmp_path):
    """Waits for data are no waste, but a job that would gain hours by less of them goes before one that idled a bit."""
    with world(tmp_path) as (argusd, _):
        idle, data = (argusd.submit("true", name=name, n_gpus_per_node=1) for name in ("idle", "data"))
        for job in (idle, data):
            argusd.wait_over(job)
        argusd.stop()
        # Ten tens of steps, half of them quick: an hour of steps and two between them.
        attempt = {"k": 1, "steps": 100, "good_s": 3600, "between_s": 7200, "between_tens_2": 5, "between_tens_70": 5}
        held = 3 * 3600 * 10_000_000  # three hours of one GPU
        with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db, db:
            for job, part in ((idle, 0.3), (data, 0)):
                seq = sql_shift(db, job, began=0.5, ended=0.3)
                (text,) = db.execute("SELECT detail FROM job_detail WHERE seq=?", (seq,)).fetchone()
                detail = {**json.loads(text), "gpu_held": held, "gpu_idle": int(part * held), "gpu_unknown": 0}
                if job == data:
                    detail["metrics"] = {"attempts": [attempt]}
                db.execute("UPDATE job_detail SET detail=? WHERE seq=?", (json.dumps(detail), seq))
        argusd.start()
        (row,) = argusd.get("/v1/usage/jobs?from=1d&limit=1")["jobs"]
        assert (row["id"], row["advice"], row["waste_hours"]) == (data, "faster_data", 0)
        assert row["gain_hours"] == pytest.approx(2 - 0.02 / 0.98)
        rest = argusd.get("/v1/usage/jobs?from=1d")["jobs"]
        assert [w["id"] for w in rest] == [data, idle] and rest[1]["waste_hours"] == pytest.approx(0.9)


def test_a_timeout_far_above_what_a_job_took(tmp_path):
    with world(tmp_path) as (argusd, _):
        job = argusd.submit("true", n_gpus_per_node=1, timeout="1d")
        argusd.wait_over(job)
        (row,) = argusd.get("/v1/usage/jobs?from=1d")["jobs"]
        # What it gains in the queue is not known, and is not told.
        assert (row["advice"], row["advised_timeout_s"], row["gain_hours"]) == ("shorter_time_limit", 600, None)
        assert "a timeout of 10m would have done" in report(argusd, "waste", "-o", "wide")
        (line,) = csv.DictReader(io.StringIO(report(argusd, "waste", "--csv")))
        assert (line["advice"], line["gain_hours"]) == ("shorter_time_limit", "")


def test_the_advice_of_last_week_is_tried(tmp_path):
    """Two jobs of one kind, a week apart, as the ledger would have them: the first one's advice, on the second."""
    with world(tmp_path) as (argusd, _):
        jobs = [argusd.submit("true", name=f"train-{i}", n_gpus_per_node=2, nnodes=2) for i in (1, 2)]
        for job in jobs:
            argusd.wait_over(job)
        argusd.stop()
        with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db, db:
            for job, days, idle in ((jobs[0], 10, 0.75), (jobs[1], 1, 0.5)):
                seq = sql_shift(db, job, began=days, ended=days - 0.4)
                (text,) = db.execute("SELECT detail FROM job_detail WHERE seq=?", (seq,)).fetchone()
                held = GPUS * 10 * 3600 * 10_000_000  # ten hours of four GPUs
                detail = {**json.loads(text), "gpu_held": held, "gpu_idle": int(idle * held), "gpu_unknown": 0}
                db.execute("UPDATE job_detail SET detail=? WHERE seq=?", (json.dumps(detail), seq))
        argusd.start()
        told = argusd.get("/v1/usage/jobs?from=7d&back_test=true")
        assert [w["id"] for w in told["jobs"]] == [jobs[1]] and told["looked_at"] == 1
        before = argusd.get("/v1/usage/jobs?from=14d&to=7d&back_test=true")
        assert [w["id"] for w in before["jobs"]] == [jobs[0]] and before["looked_at"] == 1
        assert before["back_test"]["tried"] == 0, "of the two weeks before that time, where no other job was"
        # One GPU would have done in the week before; in the last one two of four were busy: it was wrong.
        assert told["back_test"] == {
            "advised": 1, "tried": 1, "too_small": 1, "promised_hours": 30, "saved_hours": 0, "held_hours": 40
        }  # fmt: skip
        env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["admin"]}
        said = subprocess.run([PROGRAMS["argus"], "report", "waste"], env=env, capture_output=True, text=True).stderr
        assert "tried on 1 jobs of the last week: 0.0/40.0 GPU-hours saved; wrong for 1" in said
        env["LC_ALL"] = "zh_CN.UTF-8"
        said = subprocess.run([PROGRAMS["argus"], "report", "waste"], env=env, capture_output=True, text=True).stderr
        assert "最近一周的 1 个作业" in said


def test_what_an_advice_foresaw_stands_beside_what_the_next_job_got(tmp_path):
    """Half of four GPUs idled; a job of the same name took two and needed a tenth more of their time. One of another
    name, one that ran before there was an advice, and one on all four again show nothing of it."""
    with world(tmp_path) as (argusd, _):
        shapes = {
            "before": ("grpo", 1, 5, 4.8),
            "advised": ("grpo", 2, 4, 3.6),
            "again": ("grpo", 2, 3.5, 3.2),
            "renamed": ("grpo-2", 1, 3.1, 2.8),
            "took": ("grpo", 1, 3, 2.6),
        }  # name, nodes of two GPUs, days ago that it was queued and was over
        jobs = {key: argusd.submit("true", name=s[0], n_gpus_per_node=2, nnodes=s[1]) for key, s in shapes.items()}
        for job in jobs.values():
            argusd.wait_over(job)
        assert argusd.get("/v1/usage/jobs?from=7d")["taken"] == []
        argusd.stop()
        hours = {"before": 22, "advised": 40, "again": 40, "renamed": 22, "took": 22}
        with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db, db:
            for key, (_, _, began, ended) in shapes.items():
                seq = sql_shift(db, jobs[key], began=began, ended=ended)
                (text,) = db.execute("SELECT detail FROM job_detail WHERE seq=?", (seq,)).fetchone()
                held = hours[key] * 3600 * 10_000_000
                idle = held // 2 if key == "advised" else 0
                detail = {**json.loads(text), "gpu_held": held, "gpu_idle": idle, "gpu_unknown": 0}
                db.execute("UPDATE job_detail SET detail=? WHERE seq=?", (json.dumps(detail), seq))
        argusd.start()
        told = argusd.get("/v1/usage/jobs?from=7d")
        (pair,) = told["taken"]
        assert pair == {
            "id": jobs["advised"], "next": jobs["took"], "name": "grpo", "user": "alice", "advice": "fewer_gpus",
            "advised_gpus": 2, "save_freq": None,
            "foreseen_hours": pytest.approx(20), "got_hours": pytest.approx(18),
        }  # fmt: skip
        assert (told["taken_count"], told["taken_error"]) == (1, pytest.approx(0.1))
        # Where one of the two is not looked at there is no pair.
        assert argusd.get("/v1/usage/jobs?from=3d")["taken_error"] is None
        env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["admin"]}
        argv = [PROGRAMS["argus"], "report", "waste", "-o", "wide"]
        done = subprocess.run(argv, env=env, capture_output=True, text=True)
        head, row = done.stdout.splitlines()[-2:]
        assert head.split() == ["ADVISED", "NEXT", "USER", "FORESEEN", "GOT", "ADVICE"]
        cells = row.split()
        assert cells[:2] == [jobs["advised"], jobs["took"]] and cells[3:5] == ["20.0", "18.0"]
        assert "advice that a later job took: 1; median error of what it foresaw: 10%" in done.stderr
        # Who may not see the jobs does not see what became of their advice.
        assert argusd.call("POST", "/v1/users", {"name": "bo"}).status == 201
        token = argusd.call("POST", "/v1/tokens", {"name": "t", "user": "bo", "role": "user"}).json()["token"]
        assert argusd.call("GET", "/v1/usage/jobs", token=token).json()["taken"] == []
