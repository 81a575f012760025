# SPDX-License-Identifier: Apache-2.0
"""/v1/simulations: a trace that is sent, and our own history, replayed by argusd; bounds, cancel, who sees what, and
the command line beside them."""

import csv
import io
import itertools
import json
import os
import random
import subprocess

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

HEAD = "submit_time,duration_s,num_gpus,cluster"
OVER = ("done", "failed", "cancelled")
HOUR = 3600


def trace(n=200, pools=("a", "b"), seed=1):
    chance = random.Random(seed)
    at = itertools.accumulate(chance.expovariate(1 / 600) for _ in range(n))
    rows = [f"{1.7e9 + t:.0f},{chance.randrange(60, 3 * HOUR)},{chance.choice((1, 2, 4, 8))}" for t in at]
    return "\n".join([HEAD, *(f"{row},{chance.choice(pools)}" for row in rows)]) + "\n"


# 20,000 gangs that come at once: a replay of this takes far longer than it takes to cancel it.
LONG = "\n".join([HEAD, *(f"{1.7e9 + i},{HOUR},{1 + i % 8},a" for i in range(20000))]) + "\n"


def worker(name, ip):
    return {"name": name, "ip": ip, "resources": {"CPU": 8, "GPU": 4, "worker_node": 1, f"argus_node_{name}": 1}}


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    nodes = [{"name": "head", "ip": "127.0.0.1", "head": True, "resources": {"CPU": 0}}]
    nodes += [worker("w1", "127.0.0.2"), worker("w2", "127.0.0.3")]
    home = tmp_path_factory.mktemp("simulations")
    with FakeRay(nodes=nodes, state=home / "ray") as ray, Argusd(home, ray.url) as made:
        yield made


def start(argusd, body=None, query="", token="user"):
    return argusd.call("POST", f"/v1/simulations{query}", body, token=token, Content_Type="text/csv")


def begun(argusd, body=None, query="", token="user"):
    reply = start(argusd, body, query, token)
    assert reply.status == 202, reply
    return reply.json()["id"]


def wait_over(argusd, sim, token="user"):
    def over():
        page = argusd.get(f"/v1/simulations/{sim}", token=token)
        return page if page["state"] in OVER else None

    return until(over, f"{sim} is over")


def simulated(argusd, body=None, query="", token="user"):
    page = wait_over(argusd, begun(argusd, body, query, token), token)
    assert page["state"] == "done", page
    return page


def rows_of(argusd, sim, part, token="user"):
    reply = argusd.call("GET", f"/v1/simulations/{sim}/csv?part={part}", token=token)
    assert reply.status == 200 and reply.headers["Content-Type"].startswith("text/csv"), reply
    return list(csv.DictReader(io.StringIO(reply.body.decode())))


def cli(argusd, *args, status=0):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "LANG": "C.UTF-8"}
    got = subprocess.run([PROGRAMS["argus"], *args], env=env, capture_output=True, text=True, timeout=120)
    assert got.returncode == status and "Sanitizer" not in got.stderr, got
    return got


def test_a_trace_gives_what_the_command_line_gives(argusd, tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(trace())
    page = simulated(argusd, trace(), "?nodes=3x8&seed=7&name=my%20trace")
    assert (page["source"], page["name"], page["jobs"], page["progress"]) == ("trace", "my trace", 200, 1)
    options = ("--trace", str(path), "--nodes", "3x8", "--seed", "7", "-o", "json")
    here = json.loads(cli(argusd, "simulate", *options).stdout)
    assert page["result"]["hash"] == here["hash"]
    assert page["result"]["policies"] == here["policies"]
    assert list(here["policies"]) == ["fair", "easy", "fifo"]
    for policy in here["policies"].values():
        assert len(policy["used"]) == len(policy["queue"]) == 240
        mean = sum(policy["used"]) / 240
        assert mean == pytest.approx(policy["utilisation"] * policy["gpus"], rel=0.01)


def test_the_numbers_as_csv(argusd):
    page = simulated(argusd, trace(), "?policy=fair,fifo")
    sim, policies = page["id"], page["result"]["policies"]
    assert [r["policy"] for r in rows_of(argusd, sim, "policies")] == ["fair", "fifo"]
    for row in rows_of(argusd, sim, "pools"):
        pool = policies[row["policy"]]["pools"][row["pool"]]
        assert float(row["utilisation"]) == pytest.approx(pool["utilisation"])
        assert float(row["wait_p95_s"]) == pytest.approx(pool["wait"]["p95"])
    sizes = rows_of(argusd, sim, "sizes")
    assert {r["gpus"] for r in sizes} == {"1", "2-4", "5-8", "9-16", ">16"}
    assert sum(int(r["jobs"]) for r in sizes if r["policy"] == "fair") == policies["fair"]["jobs"]
    series = rows_of(argusd, sim, "series")
    assert len(series) == 480 and [float(r["gpus_used"]) for r in series[:240]] == policies["fair"]["used"]
    assert argusd.call("GET", f"/v1/simulations/{sim}/csv?part=x", token="user").status == 400


def test_our_own_history_is_what_he_may_see(argusd):
    mine = [argusd.submit("true", n_gpus_per_node=1) for _ in range(3)]
    theirs = argusd.submit("true", token="admin", n_gpus_per_node=2)
    for job in (*mine, theirs):
        argusd.wait_over(job)
    page = simulated(argusd, query="?since=1h&policy=fair")
    assert (page["source"], page["jobs"], page["is_cut"]) == ("history", 3, False)
    pool = page["result"]["policies"]["fair"]["pools"]["all"]
    assert (pool["nodes"], page["result"]["options"]["gpus_per_node"]) == (2, 4)  # those that there are now
    assert page["result"]["policies"]["fair"]["gangs"]["2-4"]["jobs"] == 0
    whole = simulated(argusd, query="?since=1h&policy=fair", token="admin")
    assert (whole["jobs"], whole["result"]["policies"]["fair"]["gangs"]["2-4"]["jobs"]) == (4, 1)
    none = wait_over(argusd, begun(argusd, query="?since=1s&pool=nowhere"))
    assert (none["state"], none["reason"]["code"], none["result"]) == ("failed", "simulation_no_jobs", None)


@pytest.mark.parametrize(
    "query, body, status, code",
    [
        ("?policy=best", trace(), 400, "simulation_option"),
        ("?nodes=8", trace(), 400, "simulation_option"),
        ("?nodes=8x8&load=1", trace(), 400, "simulation_nodes_and_load"),
        ("?guess=3-2", trace(), 400, "simulation_option"),
        ("?seed=-1", trace(), 400, "bad_number_query"),
        ("?since=soon", None, 400, "bad_time"),
    ],
)
def test_what_is_asked_badly_is_refused_at_once(argusd, query, body, status, code):
    reply = start(argusd, body, query)
    assert reply.status == status, reply
    assert reply.json()["code"] == code


@pytest.mark.parametrize(
    "query, body, code",
    [
        ("", "no,such,columns\n1,2,3\n", "trace_no_column"),
        ("?pool=c", trace(), "simulation_no_pool"),
        ("", HEAD + "\n" + "".join(f"1,1,1,p{i}\n" for i in range(65)), "simulation_pools"),
        ("", HEAD + "\n" + "1,1,1,a\n" * 100001, "simulation_jobs"),
        ("?nodes=20000x1", trace(), "simulation_nodes_all"),
    ],
)
def test_a_trace_that_cannot_be_played_fails_with_its_reason(argusd, query, body, code):
    page = wait_over(argusd, begun(argusd, body, query))
    assert (page["state"], page["reason"]["code"], page["result"]) == ("failed", code, None)
    assert page["reason"]["text"] and "{" not in page["reason"]["text"]
    zh = argusd.get(f"/v1/simulations/{page['id']}", token="user", Accept_Language="zh")["reason"]["text"]
    assert zh != page["reason"]["text"]


def test_one_runs_others_wait_and_each_may_be_cancelled(argusd):
    first = begun(argusd, LONG, "?nodes=2x8")
    until(lambda: argusd.get(f"/v1/simulations/{first}", token="user")["progress"] > 0, "the first one goes on")
    second = begun(argusd, LONG, "?nodes=2x8")
    assert argusd.get(f"/v1/simulations/{second}", token="user")["state"] == "waiting"
    reply = start(argusd, trace())
    assert (reply.status, reply.json()["code"]) == (429, "simulation_own_busy")
    other = begun(argusd, trace(), token="admin")  # another user's share is his own
    assert argusd.call("POST", f"/v1/simulations/{second}:cancel", token="user").json()["state"] == "cancelled"
    page = argusd.call("POST", f"/v1/simulations/{first}:cancel", token="user").json()
    assert (page["state"], page["reason"]["code"]) == ("cancelled", "simulation_cancelled")
    assert argusd.call("POST", f"/v1/simulations/{first}:cancel", token="user").status == 409
    assert wait_over(argusd, other, "admin")["state"] == "done"
    assert argusd.call("GET", f"/v1/simulations/{first}/csv", token="user").status == 409


def test_only_who_asked_and_who_sees_all_sees_it(argusd):
    own = simulated(argusd, trace(50), "?policy=fifo")["id"]
    admins = simulated(argusd, trace(50), "?policy=fifo", "admin")["id"]
    for path in (f"/v1/simulations/{admins}", f"/v1/simulations/{admins}/csv"):
        assert argusd.call("GET", path, token="user").status == 404
    for method, path in (("DELETE", ""), ("POST", ":cancel")):
        assert argusd.call(method, f"/v1/simulations/{admins}{path}", token="user").status == 404
    lists = {who: argusd.get("/v1/simulations", token=who)["simulations"] for who in ("user", "viewer")}
    ids = {who: {s["id"] for s in rows} for who, rows in lists.items()}
    assert own in ids["user"] and admins not in ids["user"] and {own, admins} <= ids["viewer"]
    assert start(argusd, trace(50), token="viewer").status == 403
    assert argusd.call("DELETE", f"/v1/simulations/{own}", token="viewer").status == 403
    assert argusd.call("DELETE", f"/v1/simulations/{own}", token="user").status == 200
    assert argusd.call("GET", f"/v1/simulations/{own}", token="user").status == 404


def test_results_outlive_argusd_and_the_oldest_go(argusd):
    made = [simulated(argusd, trace(20, seed=i), "?policy=fifo&nodes=1x8")["id"] for i in range(11)]
    kept = [s["id"] for s in argusd.get("/v1/simulations", token="user")["simulations"]]
    assert kept == made[:0:-1]  # the newest first, ten of them
    before = argusd.get(f"/v1/simulations/{made[-1]}", token="user")
    live = begun(argusd, LONG, "?nodes=2x8")
    argusd.kill9()
    argusd.start()
    assert argusd.get(f"/v1/simulations/{made[-1]}", token="user") == before
    page = argusd.get(f"/v1/simulations/{live}", token="user")
    assert (page["state"], page["reason"]["code"]) == ("failed", "simulation_lost")
    last = begun(argusd, LONG, "?nodes=2x8")
    until(lambda: argusd.get(f"/v1/simulations/{last}", token="user")["progress"] > 0, "it runs")
    argusd.restart()  # does not wait for its end
    assert argusd.get(f"/v1/simulations/{last}", token="user")["state"] == "failed"


def test_the_command_line_asks_the_server(argusd):
    argusd.wait_over(argusd.submit("true", n_gpus_per_node=1))
    out = cli(argusd, "simulate", "--history", "--since", "1h", "--policy", "fair,fifo").stdout
    assert [line.split()[4] for line in out.splitlines()[1:3]] == ["fifo", "fair"]
    listed = json.loads(cli(argusd, "simulate", "ls", "-o", "json").stdout)["simulations"]
    sim = listed[0]["id"]
    assert cli(argusd, "simulate", "show", sim).stdout == out
    assert json.loads(cli(argusd, "simulate", "show", sim, "-o", "json").stdout)["id"] == sim
    assert sim in cli(argusd, "simulate", "ls").stdout
    refused = cli(argusd, "simulate", "cancel", sim, status=5).stderr
    assert f"simulation '{sim}' is over" in refused
    assert f"simulation {sim} removed" in cli(argusd, "simulate", "rm", sim).stdout
    failed = cli(argusd, "simulate", "--history", "--since", "1s", "--pool", "nowhere", status=5).stderr
    assert "no job that you may see has run" in failed
    assert "give one" in cli(argusd, "simulate", "--history", "--trace", "x", status=2).stderr
