# SPDX-License-Identifier: Apache-2.0
"""Notebooks beside a fake Ray: the lease as a job, the door with an origin of its own, who may pass it, kill -9. The
program of the lease is a small server in place of JupyterLab; test_notebooks_lab.py has a real one."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import urllib.parse

import pytest
from fakeray import FakeRay
from figurebed import GOLDEN, Page
from notebookbed import Door
from ports import free_port
from receiver import Receiver
from rulebed import Watch, rules_yaml

from argusd import PROGRAMS, Argusd, needs_argusd, until

pytestmark = needs_argusd

# Says what it was asked, as JSON; and misbehaves as it is told.
STANDIN = """
import http.server, itertools, json, os, pathlib, signal, sys, threading
sys.argv[0] = "x"
import argparse
ap = argparse.ArgumentParser()
for n in ("name", "base", "home", "ports"):
    ap.add_argument("--" + n)
a, _ = ap.parse_known_args()
TOKEN = os.environ["ARGUS_NOTEBOOK_TOKEN"]

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = json.dumps({"path": self.path, "headers": dict(self.headers.items()),
                           "ok": self.headers.get("Authorization") == "token " + TOKEN}).encode()
        self.send_response(302 if "/away" in self.path else 200)
        if "/away" in self.path:
            self.send_header("Location", "http://127.0.0.1:1/secret")
        self.send_header("Set-Cookie", "argus_session=evil; Path=/")
        self.send_header("Service-Worker-Allowed", "/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        pass

first, last = map(int, a.ports.split("-"))
for port in range(first, last + 1):
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        break
    except OSError:
        pass
job = pathlib.Path(a.home).parents[1] / "jobs" / os.environ["ARGUS_JOB_ID"]

def tell(record):
    (job / "notebook.json.part").write_text(json.dumps({"attempt": int(os.environ["ARGUS_ATTEMPT"]), **record}))
    (job / "notebook.json.part").rename(job / "notebook.json")

hold = pathlib.Path(a.home) / "hold"
for phase in ("environment", "server") if hold.is_fifo() else ():
    tell({"phase": phase})
    hold.read_text()  # until the test opens the other end

def quiet(name):
    try:
        return json.loads((pathlib.Path(a.home) / name).read_text())
    except (OSError, ValueError):  # nobody says so, or it is just being written
        return 0

def tell_ready(seq, quiet):
    tell({"phase": "ready", "port": port, "seq": seq, "quiet_s": quiet, "kernels": 1, "terminals": 0, "busy": False})

def go_on():
    for seq in itertools.count(2):
        threading.Event().wait(1)
        if seconds := quiet("quiet-" + a.name):
            tell_ready(seq, seconds)

tell_ready(1, quiet("quiet"))
threading.Thread(target=go_on, daemon=True).start()
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
server.serve_forever()
"""


def worker(name, ip, **keys):
    resources = {"CPU": 40, "GPU": 2, "worker_node": 100, f"argus_node_{name}": 1000}
    return {"name": name, "ip": ip, "resources": resources, "labels": {"argus.node": name}, **keys}


def machines(*more, **keys):
    """keys: of h2."""
    head = {"name": "h1", "ip": "127.0.0.9", "head": True, "resources": {}}
    return [head, worker("h2", "127.0.0.1", **keys), *more]


class Bed(Door):
    def __init__(self, home, kind=Argusd, more="", keys="", nodes=(), metrics=None):
        """metrics: the page of h2 that tells of its GPUs."""
        self.home, self.kind, self.more, self.keys = home, kind, more, keys
        told = {"metrics_port": metrics.port} if metrics else {}
        self.ray = FakeRay("2.60.0", nodes=machines(*nodes, **told), state=home / "ray")

    def __enter__(self):
        self.ray.start()
        self.door = free_port()
        ports = free_port()
        more = f"{self.lines(self.door, self.keys)}ports: {{notebook: {ports}-{ports + 20}}}\n{self.more}"
        self.argusd = self.kind(self.home, self.ray.url, more=more)
        self.argusd.__enter__()
        python = self.home / "standin"  # takes the place of the interpreter: runs ours instead of the tool
        python.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} {self.home}/standin.py "$@"\n')
        python.chmod(0o755)
        (self.home / "standin.py").write_text(STANDIN)
        self.python = str(python)
        return self

    def __exit__(self, *why):
        self.argusd.__exit__(*why)
        self.ray.stop()


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    with Bed(tmp_path_factory.mktemp("notebooks")) as bed:
        yield bed


@pytest.fixture(scope="module")
def mine(bed):
    """One of alice's that is ready, for all tests here."""
    return bed.ready()


def test_a_notebook_is_a_job_on_its_lease(bed, mine):
    job = bed.argusd.job(mine["job"])
    assert (job["state"], job["workload"], job["user"]) == ("RUNNING", "notebook", "alice")
    assert job["nodes"][0]["name"] == mine["node"] == "h2"
    assert mine["kernels"] == 1 and mine["reason"] is None
    assert bed.start(status=409)["code"] == "notebook_runs"
    assert bed.call("DELETE", "/v1/notebooks/main").status == 409
    listed = bed.call("GET", "/v1/notebooks").json()["notebooks"]
    assert [n["name"] for n in listed] == ["main"]
    assert bed.page(token="viewer") is None


def test_the_door_opens_for_its_owner_and_strips_what_is_ours(bed, mine):
    cookie, to = bed.enter()
    assert to == "/n/alice/main/lab"
    session = "argus_session=x"
    status, headers, body = bed.ask("/n/alice/main/api/x%2Fy?a=b", f"{session}; {cookie}", X_Argus_User="root")
    got = json.loads(body)
    assert status == 200 and got["ok"] and got["path"] == "/n/alice/main/api/x%2Fy?a=b"
    sent = {k.lower(): v for k, v in got["headers"].items()}
    assert "cookie" not in sent and sent["x-argus-user"] == "alice" and "Bearer" not in str(sent)
    assert "Set-Cookie" not in headers and "Service-Worker-Allowed" not in headers
    token = sent["authorization"].removeprefix("token ")
    assert token not in bed.argusd.said() and token not in str(mine)
    for f in (bed.argusd.root / "jobs" / mine["job"]).rglob("*"):
        assert not f.is_file() or f.is_symlink() or token.encode() not in f.read_bytes(), f
    # Elsewhere is elsewhere: the address is told, and not gone to.
    status, headers, _ = bed.ask("/n/alice/main/away", cookie)
    assert (status, headers["Location"]) == (302, "http://127.0.0.1:1/secret")


def test_a_ticket_is_good_once_and_a_cookie_for_one_user(bed, mine):
    cookie, _ = bed.enter()
    url = urllib.parse.urlsplit(bed.url())
    path = f"{url.path}?{url.query}"
    # Who only follows it is asked; no form of another site, and none that does not say from where, answers.
    status, headers, body = bed.ask(path, Accept_Language="zh")
    assert status == 200 and headers["Set-Cookie"] is None and "alice" in body.decode() and "代码" in body.decode()
    for origin in ({}, {"Origin": "http://elsewhere.example"}):
        status, headers, body = bed.ask(path, method="POST", **origin)
        assert (status, json.loads(body)["code"]) == (403, "notebook_other_site") and headers["Set-Cookie"] is None
    assert bed.ask(path, cookie)[0] == 303, "her cookie is there: nobody is asked"
    status, _, body = bed.ask(path)
    assert (status, json.loads(body)["code"]) == (401, "notebook_ticket")
    assert bed.ask("/open?ticket=" + "A" * 43)[0] == 401 and bed.ask("/open")[0] == 401
    # The admin sees it, but only its owner opens it.
    reply = bed.call("POST", "/v1/notebooks/main:open?user=alice", token="admin")
    assert (reply.status, reply.json()["code"]) == (403, "notebook_not_yours")
    assert bed.call("POST", "/v1/notebooks/main:open?user=alice", token="viewer").status in (403, 404)
    reply = bed.call("POST", "/v1/notebooks/nosuch:open", token="admin")
    assert (reply.status, reply.json()["code"]) == (404, "not_found")
    # Another user's ticket does not open beside it, nor his cookie what is hers.
    bed.ready("main", token="admin")
    other = urllib.parse.urlsplit(bed.url(token="admin"))
    status, _, body = bed.ask(f"{other.path}?{other.query}", cookie)
    assert (status, json.loads(body)["code"]) == (409, "notebook_other_user")
    his, to = bed.enter(token="admin")
    assert bed.ask(to, his)[0] == 200 and bed.ask("/n/alice/main/lab", his)[0] == 404
    assert "Max-Age=0" in bed.ask("/leave", cookie)[1]["Set-Cookie"]
    bed.gone("main", token="admin")


def test_the_door_knows_no_api_and_no_credential_of_it(bed, mine):
    cookie, _ = bed.enter()
    bearer = {"Authorization": f"Bearer {bed.argusd.tokens['user']}"}
    assert bed.ask("/v1/jobs", cookie)[0] == 404 and bed.ask("/v1/jobs", **bearer)[0] == 404
    assert bed.ask("/n/alice/main/lab", **bearer)[0] == 401
    assert bed.ask("/n/alice/main/lab")[0] == 401
    forged = cookie[:-1] + ("0" if cookie[-1] != "0" else "1")
    assert bed.ask("/n/alice/main/lab", forged)[0] == 401
    # The API knows no cookie of the door.
    c = http.client.HTTPConnection("127.0.0.1", bed.argusd.port, timeout=60)
    c.request("GET", "/v1/jobs", headers={"Cookie": cookie})
    assert c.getresponse().status == 401
    c.close()
    # Pages of other sites, and names that are not the door's.
    assert bed.ask("/n/alice/main/api", cookie, "POST", Origin="http://evil.example")[0] == 403
    assert bed.ask("/n/alice/main/api", cookie, "POST", Origin="null")[0] == 403
    assert bed.ask("/n/alice/main/api", cookie, "POST", Origin=f"http://{bed.host}")[0] == 200
    assert bed.ask("/n/alice/main/lab", cookie, host=f"127.0.0.1:{bed.door}")[0] == 403
    assert bed.ask("/n/alice/main/%2e%2e/%2e%2e/x", cookie)[0] in (400, 404)


def test_argusd_of_the_same_name_opens_none(bed, mine):
    c = http.client.HTTPConnection("127.0.0.1", bed.argusd.port, timeout=60)
    lines = {"Host": f"localhost:{bed.argusd.port}", "Authorization": f"Bearer {bed.argusd.tokens['user']}"}
    c.request("POST", "/v1/notebooks/main:open", headers=lines)
    reply = c.getresponse()
    assert (reply.status, json.loads(reply.read())["code"]) == (409, "notebooks_same_host")
    c.close()


def test_a_record_is_not_believed_about_a_place(bed, mine):
    """A job may write what it likes: a port that is none of a notebook's leads nowhere."""
    cookie, to = bed.enter()
    assert bed.ask(to, cookie)[0] == 200
    at = bed.argusd.root / "jobs" / mine["job"] / "notebook.json"
    good = json.loads(at.read_text())
    at.write_text(json.dumps({**good, "port": bed.argusd.port, "host": "127.0.0.9", "seq": 2}))
    bed.argusd.restart()
    until(lambda: bed.page()["state"] == "STARTING", "nothing of the record is believed")
    assert bed.ask(to, cookie)[0] == 503
    at.write_text(json.dumps({**good, "seq": 3}))
    bed.wait("READY")
    assert bed.ask(to, cookie)[0] == 200  # the cookie outlives a restart


def test_kill_nine_makes_one_job_and_loses_none(bed):
    bed.start("killed")
    bed.argusd.kill9()
    bed.argusd.start()
    page = bed.wait("READY", "killed")
    jobs = [j for j in bed.call("GET", "/v1/jobs?limit=500").json()["jobs"] if j["name"] == "notebook killed"]
    assert [j["id"] for j in jobs] == [page["job"]]
    cookie, to = bed.enter("killed")
    bed.argusd.kill9()
    bed.argusd.start()
    bed.wait("READY", "killed")
    assert bed.page("killed")["job"] == page["job"] and bed.ask(to, cookie)[0] == 200
    bed.gone("killed")


def test_a_lease_that_is_stopped_says_how_it_ended(bed):
    """The store alone knows it, once its end is on disk."""
    page = bed.ready("lease")
    bed.argusd.stop_job(page["job"])
    over = bed.wait("STOPPED", "lease")
    assert over["reason"]["code"] == "notebook_job_ended" and over["job"] is None, over
    assert over["reason"]["text"] == f"its lease, job '{page['job']}', has ended: STOPPED"
    bed.gone("lease")


@pytest.mark.parametrize("namesakes", [1, 2])
def test_a_lease_that_is_gone_is_no_job_of_that_name(bed, namesakes):
    """Its row is not there any more, and jobs of somebody else have its id as their name."""
    page, gone = bed.ready("gone"), f"gone-{namesakes}"
    for _ in range(namesakes):
        bed.argusd.wait_over(bed.argusd.submit("echo hello", token="admin", name=gone))
    bed.argusd.stop()
    with contextlib.closing(sqlite3.connect(bed.argusd.state_dir / "argus.db")) as db, db:
        db.execute("UPDATE entry SET body = replace(body, ?, ?) WHERE kind = 'notebook'", (page["job"], gone))
    bed.argusd.start()
    assert bed.wait("FAILED", "gone")["reason"]["text"] == f"its lease, job '{gone}', has ended"
    bed.argusd.stop_job(page["job"])
    bed.argusd.wait_over(page["job"])
    assert bed.call("DELETE", "/v1/notebooks/gone").status == 200


PREPARED = """
import json, pathlib, sys
sys.path.insert(0, sys.argv.pop(1))
import argus_notebook as tool
tool.make_overlay = lambda home: pathlib.Path(home)  # a virtual environment takes seconds, and is no part of this
env = tool.prepare(tool.read_words())
print(json.dumps({k: v for k, v in env.items() if k.startswith("PIP_")}))
"""


def prepared(home, words, **env):
    lib = pathlib.Path(__file__).resolve().parents[2] / "lib"
    words = [*words, "--home", home]  # the last one counts
    env = {"PATH": os.environ["PATH"], "ARGUS_NOTEBOOK_TOKEN": "t", **env}
    argv = [sys.executable, "-c", PREPARED, lib, *words]
    return json.loads(subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout)


def test_pip_installs_from_the_mirror_of_argus_yaml(tmp_path):
    """By the command of the lease, in the environment of its cells; a user's own word goes before."""
    url, host = "https://mirror.example.org/simple", "mirror.example.org"
    with Bed(tmp_path, keys=f", pip_index_url: '{url}', pip_trusted_host: {host}") as bed:
        bed.start()
        job = bed.wait("READY")["job"]
        words = bed.argusd.job(job)["resolved_spec"]["entrypoint"][2:]
        assert words[-4:] == ["--pip-index-url", url, "--pip-trusted-host", host]
        assert prepared(tmp_path / "home", words) == {"PIP_INDEX_URL": url, "PIP_TRUSTED_HOST": host}
        own = prepared(tmp_path / "home", words, PIP_INDEX_URL="https://own.example.org")
        assert own == {"PIP_INDEX_URL": "https://own.example.org", "PIP_TRUSTED_HOST": host}
        assert prepared(tmp_path / "home", words[:-4]) == {}
        bed.gone("main")


def test_who_hears_before_an_idle_one_is_stopped(tmp_path):
    """A message while there is time left; a notebook that is kept ends the alert."""
    with Receiver() as hook, Bed(tmp_path, more=rules_yaml(hook, "")) as bed:
        w = Watch(bed.argusd, hook)
        home = bed.argusd.root / "users/alice"
        home.mkdir(parents=True, exist_ok=True)
        (home / "quiet").write_text("3600")
        begun = w.begin()
        bed.start("quiet", idle="4m", cpus=2)
        said = w.hears("notebook_idle", begun)
        assert said["text"].startswith("notebook 'quiet' of alice is not used, and is stopped in "), said
        assert bed.page("quiet")["state"] == "READY"
        assert bed.call("POST", "/v1/notebooks/quiet:extend", {"for": "1h"}).status == 200
        w.ends("notebook_idle")
        bed.gone("quiet")


def test_a_revoked_token_shuts_the_door(bed, mine):
    made = bed.call("POST", "/v1/tokens", {"name": "short"}).json()
    bed.argusd.tokens["short"] = made["token"]
    cookie, to = bed.enter(token="short")
    assert bed.ask(to, cookie)[0] == 200
    assert bed.call("DELETE", f"/v1/tokens/{made['id']}").status == 200
    assert bed.ask(to, cookie)[0] == 401


def test_nobody_there_warned_then_stopped_and_started_as_it_was(bed):
    home = bed.argusd.root / "users/alice"
    until(home.is_dir, "alice's directory")
    pathlib.Path(home / "quiet").write_text("3600")
    bed.start("quiet", idle="4s", cpus=2)
    page = bed.wait("STOPPED", "quiet")
    assert page["reason"]["code"] == "notebook_was_idle"
    kinds = [e["kind"] for e in bed.argusd.events() if e["object"] == "notebook/alice/quiet"]
    assert kinds.index("notebook_idle") < kinds.index("notebook_stopped")
    # Started again without a word it is what it was; kept, it is not stopped.
    reply = bed.call("POST", "/v1/notebooks", {"name": "quiet", "idle": "2m"})
    assert reply.status == 201 and reply.json()["cpus"] == 2
    bed.wait("READY", "quiet")
    kept = bed.call("POST", "/v1/notebooks/quiet:extend", {"for": "1h"}).json()
    assert kept["keep_until"] is not None
    until(lambda: bed.page("quiet")["stops_in"] not in (None, "0s"), "its clock is shown")
    assert bed.call("POST", "/v1/notebooks/quiet:extend", {"for": "1s"}).status == 400
    (home / "quiet").unlink()
    bed.gone("quiet")


def with_use(page, use):
    """The page with this use of each GPU, in percent."""
    for gpu, percent in enumerate(use):
        line = rf'(?m)^(ray_node_gpus_utilization\{{[^}}]*GpuIndex="{gpu}"[^}}]*\}}) .*$'
        page, n = re.subn(line, rf"\g<1> {percent:.1f}", page)
        assert n == 1, gpu
    return page


def test_who_uses_a_gpu_is_not_idle(tmp_path):
    """Two that are quiet, as far as Jupyter knows: under one of them a program works on its GPU."""
    metrics = Page("127.0.0.1", with_use((GOLDEN / "ray-2.60.0-worker.prom").read_text(), [87, 0]))
    try:
        with Bed(tmp_path, metrics=metrics) as bed:

            def is_told():
                if "h2" not in {n["name"] for n in bed.argusd.get("/v1/nodes")["nodes"]}:
                    return False
                series = bed.argusd.get("/v1/nodes/h2/figures?figure=gpu_util_ratio&since=10m&step=15s")["series"]
                return len(series) == 2 and all(any(v is not None for v in s["mean"]) for s in series)

            until(is_told, "the use of both GPUs")
            by_gpu = {}
            for name in ("a", "b"):
                job = bed.ready(name, gpus=1, idle="1m")["job"]
                (gpu,) = bed.argusd.job(job)["nodes"][0]["gpu_ids"]
                by_gpu[gpu] = name
            works, rests = by_gpu[0], by_gpu[1]
            for name in by_gpu.values():
                (bed.argusd.root / f"users/alice/quiet-{name}").write_text("3600")
            assert bed.wait("STOPPED", rests)["reason"]["code"] == "notebook_was_idle"
            assert bed.page(works)["state"] == "READY"
            warned = {e["object"] for e in bed.argusd.events() if e["kind"] == "notebook_idle"}
            assert warned == {f"notebook/alice/{rests}"}, "the other one is not even warned"
            bed.gone(works)
    finally:
        metrics.close()


def test_each_phase_of_a_start_is_told(bed, mine, tmp_path):
    """By the reply, and by the command line; what a phase means is the reason why it does not run yet."""
    assert mine["phase"] == "ready"
    hold = bed.argusd.root / "users/alice/hold"
    os.mkfifo(hold)
    try:
        assert bed.start("slow", gpus=2)["phase"] in ("queued", "placed")
        for phase, code in (("environment", "notebook_prepares"), ("server", "notebook_starts")):
            until(lambda: (bed.page("slow")["reason"] or {}).get("code") == code, f"{phase} is told")
            page = bed.page("slow")
            assert (page["state"], page["phase"]) == ("STARTING", phase)
            if phase == "server":
                env = {"ARGUS_URL": bed.argusd.url, "ARGUS_TOKEN": bed.argusd.tokens["user"], "COLUMNS": "250"}
                argv = [PROGRAMS["argus"], "notebook", "ls"]
                own = {**os.environ, **env, "XDG_CONFIG_HOME": str(tmp_path)}
                listed = subprocess.run(argv, capture_output=True, text=True, env=own, timeout=60).stdout
                assert "PHASE" in listed and "JupyterLab starts on the leased machine" in listed, listed
            hold.write_text("")
    finally:
        hold.unlink()
    page = bed.wait("READY", "slow")
    assert page["phase"] == "ready" and page["reason"] is None
    # All GPUs are held by that one: the next start is told what it waits for.
    bed.start("behind", gpus=1)
    page = until(lambda: (n := bed.page("behind"))["reason"] and n, "it is said what it waits for")
    assert (page["state"], page["phase"]) == ("WAITING", "queued")
    bed.gone("behind")
    bed.gone("slow")


def test_so_many_run_at_the_same_time_and_no_more(tmp_path):
    """Of one user, whatever their names, and of one project, whoever started them; a stopped one makes room."""
    with Bed(tmp_path, keys=", running_per_user: 2, running_per_project: 3") as bed:
        bed.start("a")
        bed.start("b")
        refused = bed.start("c", status=422)
        assert refused["code"] == "notebooks_of_user" and "argus notebook stop" in refused["hint"]
        assert bed.page("c") is None, "what is refused leaves nothing"
        bed.start("a", token="admin")
        refused = bed.start("b", status=422, token="admin")
        assert refused["code"] == "notebooks_of_project" and "'default'" in refused["detail"]
        bed.wait("READY", "a")
        bed.gone("a")
        bed.start("c")
        # One that is stopped counts again when it is started again.
        bed.call("POST", "/v1/notebooks/b:stop")
        bed.wait("STOPPED", "b")
        bed.start("a")
        assert bed.start("b", status=422)["code"] == "notebooks_of_user"


def test_a_lost_machine_is_told_and_the_notebook_starts_elsewhere(tmp_path):
    with Bed(tmp_path, nodes=[worker("h3", "127.0.0.3")]) as bed:
        before = bed.ready()
        assert before["interruption"] is None and before["interrupted_at"] is None
        kept = bed.argusd.root / "users/alice/kept.ipynb"
        kept.write_text("{}")
        bed.ray.node(before["node"], "dead")
        after = until(lambda: (n := bed.page())["state"] == "READY" and n["node"] != before["node"] and n, "elsewhere")
        assert after["job"] == before["job"] and kept.exists()
        assert after["interruption"]["code"] == "notebook_lost" and after["interrupted_at"]
        assert f"machine '{before['node']}' was lost" in after["interruption"]["text"]

        def told():
            return [e for e in bed.argusd.events() if e["kind"] == "notebook_interrupted"]

        (event,) = told()
        assert event["object"] == "notebook/alice/main"
        bed.argusd.restart()
        again = bed.wait("READY")
        assert again["interruption"] == after["interruption"] and len(told()) == 1
        # Started by people, it begins anew.
        bed.call("POST", "/v1/notebooks/main:stop")
        bed.wait("STOPPED")
        assert bed.ready()["interruption"] is None and len(told()) == 1


def test_what_is_refused(bed):
    assert bed.start("A b", status=422)["code"] == "notebook_name"
    assert bed.start("x", status=422, gpus=99)["code"]
    assert bed.start("x", status=201, snapshot="nothing@1")["name"] == "x"
    page = bed.wait("FAILED", "x")
    assert page["reason"]["text"]
    assert bed.call("DELETE", "/v1/notebooks/x").status == 200
    assert bed.call("POST", "/v1/notebooks", {"name": "v"}, token="viewer").status == 403


def test_an_admin_says_whose(bed, mine, tmp_path):
    """By the command line, which without a name means one's own."""
    own = {"ARGUS_URL": bed.argusd.url, "ARGUS_TOKEN": bed.argusd.tokens["admin"], "XDG_CONFIG_HOME": str(tmp_path)}

    def argus(*words):
        argv = [PROGRAMS["argus"], "notebook", *words]
        return subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **own}, timeout=60)

    assert "no notebook" in argus("show", "main").stderr
    shown = argus("show", "main", "--user", "alice")
    assert shown.returncode == 0 and "owner: alice" in shown.stdout, shown
    assert argus("extend", "main", "--for", "2h", "--user", "alice").returncode == 0
    assert bed.page()["keep_until"]
    bed.start("theirs")
    assert argus("stop", "theirs", "--user", "alice").returncode == 0
    bed.wait("STOPPED", "theirs")
    assert argus("rm", "theirs", "--user", "alice").returncode == 0 and bed.page("theirs") is None


class Near(Argusd):
    networks = "127.0.0.0/26"


def test_the_door_leads_nowhere_that_only_ray_tells(tmp_path):
    """The raylet of the leased machine tells Ray the address of another one, which has a server at the same port."""
    far, path = "127.0.0.66", "/n/alice/main/api"
    with Bed(tmp_path, kind=Near) as bed:
        note = bed.ready()
        cookie, _ = bed.enter()
        assert bed.ask(path, cookie)[0] == 200
        record = json.loads((bed.argusd.job_dir(note["job"]) / "notebook.json").read_text())
        foreign = Page(far, "", record["port"])
        try:
            bed.ray.ask("POST", "nodes/h2", {"ip": far})
            _, _, body = until(lambda: (r := bed.ask(path, cookie))[0] == 503 and r, "the door is closed")
            assert f"only Ray says that it is at {far}" in json.loads(body)["detail"], body
            assert bed.call("POST", "/v1/notebooks/main:open").status == 503
            bed.ray.ask("POST", "nodes/h2", {"ip": "127.0.0.1"})
            until(lambda: bed.ask(path, cookie)[0] == 200, "the door is open again")
            assert foreign.asked == 0
        finally:
            foreign.close()
