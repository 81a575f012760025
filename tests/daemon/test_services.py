# SPDX-License-Identifier: Apache-2.0
"""Services beside a fake Ray Serve: leases as jobs, the list that argusd alone writes, versions that take the traffic
and give it back, scale, failures, the gate, kill -9 in the middle of all of it."""

import contextlib
import json
import os
import subprocess
import threading
import urllib.request

import pytest
from fakeray import FakeRay
from ports import free_port
from programs import PROGRAMS
from receiver import Receiver
from rulebed import Watch, rules_yaml

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd


def machines():
    """All on loopback addresses, so that their proxies can be asked."""
    resources = {"CPU": 40, "GPU": 4, "worker_node": 100}
    workers = [
        {
            "name": f"h{i}",
            "ip": f"127.0.0.{i}",
            "resources": {**resources, f"argus_node_h{i}": 1000},
            "labels": {"argus.node": f"h{i}"},
        }
        for i in (2, 3)
    ]
    return [{"name": "h1", "ip": "127.0.0.1", "head": True, "resources": {}}, *workers]


class Bed:
    def __init__(self, tmp, version="2.60.0", serve="", kind=Argusd):
        self.home, self.serve_more, self.kind = tmp, serve, kind
        self.ray = FakeRay(version, nodes=machines(), state=tmp / "ray")

    def __enter__(self):
        self.ray.start()
        more = f"serve: {{port: {free_port()}{self.serve_more}}}"
        self.argusd = self.kind(self.home, self.ray.url, more=more)
        self.ray.settings(serve_key_file=str(self.argusd.root / "argus/serve/key"))
        self.argusd.__enter__()
        return self

    def __exit__(self, *why):
        self.argusd.__exit__(*why)
        self.ray.stop()

    def model(self, name):
        """A registered model; what is in it nobody reads here."""
        d = self.argusd.root / "users/alice/models" / f"{name}-files"
        d.mkdir(parents=True)
        (d / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], "model_type": "llama"}')
        form = {"name": name, "source": str(d), "in_place": True}

        def post():
            reply = self.argusd.call("POST", "/v1/models", form, token="user")
            return reply.status != 503 and reply

        reply = until(post, "the model is taken")
        assert reply.status == 201, reply
        until(
            lambda: self.argusd.call("GET", f"/v1/models/{name}", token="user").json()["state"] == "ready",
            f"{name} is ready",
        )

    def serve(self, status=201, token="user", path="/v1/services", **body):
        reply = self.argusd.call("POST", path, body, token=token)
        assert reply.status == status, reply
        return reply.json()

    def act(self, name, verb, status=200, token="user", **body):
        reply = self.argusd.call("POST", f"/v1/services/{name}:{verb}", body, token=token)
        assert reply.status == status, reply
        return reply.json()

    def page(self, name, token="user"):
        reply = self.argusd.call("GET", f"/v1/services/{name}", token=token)
        return reply.json() if reply.status == 200 else None

    def wait(self, name, condition, what):
        def look():
            page = self.page(name)
            return page and condition(page) and page

        try:
            return until(look, what)
        except AssertionError as e:
            raise AssertionError(f"{e}: {json.dumps(self.page(name))[:4000]}") from None

    def ready(self, name, version, replicas=1):
        return self.wait(
            name,
            lambda p: p["current"] == version and not p["wanted"] and p["state"] == "READY" and p["ready"] == replicas,
            f"{name} v{version} is ready",
        )

    def apps(self):
        return self.ray.ask("GET", "serve")["apps"]

    def puts(self):
        return self.ray.ask("GET", "serve")["puts"]

    def wait_apps(self, *names):
        until(lambda: sorted(self.apps()) == sorted(names), f"the list is {names}, not {sorted(self.apps())}")


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    with Bed(tmp_path_factory.mktemp("services")) as bed:
        bed.model("sums")
        yield bed


def replicas_of(page, version=None):
    return [r for v in page["versions"] if version in (None, v["n"]) for r in v["replicas"]]


def test_a_model_is_leased_listed_checked_and_served(bed):
    made = bed.serve(model="sums", name="one", gpus=1)
    assert made["wanted"] == 1 and made["endpoint"] == "/v1/services/one/v1"
    page = bed.ready("one", 1)
    (replica,) = replicas_of(page)
    job = bed.argusd.job(replica["job"])
    assert (job["state"], job["workload"], job["user"]) == ("RUNNING", "serve", "alice")
    assert job["nodes"][0]["name"] == replica["node"]
    app = bed.apps()["one-v1"]
    assert app["route_prefix"] == "/s/one-v1" and app["import_path"] == "argus_engine:build"
    assert app["args"]["model"].endswith("sums-files") and app["args"]["name"] == "one"
    options = app["deployments"][0]["ray_actor_options"]
    assert options["label_selector"] == {"argus.node": replica["node"]} and options["num_gpus"] == 1
    assert page["gpus"] == 1 and page["versions"][0]["spec"]["model"] == "sums@1"
    before = bed.puts()
    bed.argusd.restart()  # what is as it should be is not put again
    bed.ready("one", 1)
    assert bed.puts() == before
    bed.argusd.call("DELETE", "/v1/services/one", token="user")
    until(lambda: bed.page("one") is None, "the service is gone")
    bed.wait_apps()
    assert bed.argusd.wait_over(replica["job"])["state"] == "STOPPED"


def test_the_next_version_takes_the_traffic_and_gives_it_back(bed):
    bed.serve(model="sums", name="two", keep="warm")
    bed.ready("two", 1)
    bed.serve(path="/v1/services/two:deploy", replicas=2)
    bed.ready("two", 2, replicas=2)
    bed.wait("two", lambda p: p["previous"] == 1 and p["versions"][1]["state"] == "READY", "the one before is warm")
    assert bed.act("two", "rollback")["current"] == 1  # at once
    bed.act("two", "rollback", status=409, version=1)
    bed.act("two", "rollback", status=404, version=9)
    bed.argusd.call("PATCH", "/v1/services/two", {"keep": "cold"}, token="user")
    bed.wait("two", lambda p: not replicas_of(p, 2), "what is cold holds nothing")
    bed.act("two", "rollback")
    bed.ready("two", 2, replicas=2)
    bed.act("two", "stop")
    bed.wait("two", lambda p: p["state"] == "STOPPED" and not replicas_of(p), "it is stopped")
    bed.wait_apps()
    bed.act("two", "rollback", version=2)
    bed.ready("two", 2, replicas=2)
    back = [e for e in bed.argusd.get("/v1/events?limit=500")["events"] if e["kind"].startswith("service_roll")]
    assert [e["text"] for e in back if e["object"] == "service/two"] == [
        "requests go to version 1 again",
        "version 2 is started again",
        "version 2 is started again",
    ]
    bed.argusd.call("DELETE", "/v1/services/two", token="user")
    bed.wait_apps()


@pytest.mark.nightly
def test_replicas_come_go_and_are_replaced(bed):
    bed.serve(model="sums", name="three")
    first = replicas_of(bed.ready("three", 1))[0]["job"]
    bed.act("three", "scale", replicas=3)
    page = bed.ready("three", 1, replicas=3)
    assert first in [r["job"] for r in replicas_of(page)]  # what serves is not touched by a scale
    bed.wait_apps("three-v1", "three-v1-r2", "three-v1-r3")
    bed.act("three", "scale", status=422, replicas=65)
    bed.act("three", "scale", replicas=1)
    bed.wait("three", lambda p: [r["job"] for r in replicas_of(p)] == [first], "the others are gone")
    bed.wait_apps("three-v1")
    bed.argusd.stop_job(first)  # its lease ends: another one is taken
    bed.wait("three", lambda p: p["ready"] and replicas_of(p)[0]["job"] not in (None, first), "it is replaced")
    bed.ray.settings(serve_failing=["three-v2"])
    bed.serve(path="/v1/services/three:deploy", max_ongoing_requests=4)
    page = bed.wait("three", lambda p: p["versions"][0]["state"] == "FAILED", "the bad version is given up")
    assert page["current"] == 1 and page["ready"] == 1 and "ValueError" in page["versions"][0]["reason"]["text"]
    bed.ray.settings(serve_failing=[], serve_sick=["three-v3"])
    bed.serve(path="/v1/services/three:deploy", max_ongoing_requests=5)
    page = bed.wait(
        "three",
        lambda p: [r["reason"] and r["reason"]["code"] for r in replicas_of(p, 3)] == ["serve_check"],
        "a replica that does not pass its check gets no traffic",
    )
    assert page["current"] == 1
    bed.ray.settings(serve_sick=[])
    bed.ready("three", 3)
    bed.argusd.call("DELETE", "/v1/services/three", token="user")
    bed.wait_apps()


def test_a_new_head_and_others_applications(bed):
    bed.serve(model="sums", name="four")
    bed.ready("four", 1)
    bed.ray.settings(serve_programs={"lens": "/lens"})
    shown = until(
        lambda: [
            a for a in bed.argusd.call("GET", "/v1/service-applications").json()["applications"] if a["name"] == "lens"
        ],
        "what a job made is shown",
    )
    assert shown[0]["made_by"] == "program"
    bed.ray.settings(serve_programs={})
    bed.ray.lose_memory(kill_after=0)  # Ray knows nothing any more
    until(lambda: "four-v1" in bed.apps(), "argusd deploys again")
    bed.ready("four", 1)
    bed.argusd.call("DELETE", "/v1/services/four", token="user")
    bed.wait_apps()


def put_list(bed, change, **more):
    """Somebody puts a list of his own: what change() makes of the applications that are there."""
    url = f"{bed.ray.url}/api/serve/applications/"
    with urllib.request.urlopen(url, timeout=PATIENCE) as reply:
        shown = json.load(reply)["applications"].values()
    configs = [a["deployed_app_config"] for a in shown if a["deployed_app_config"]]
    body = json.dumps({"applications": change(configs), **more}).encode()
    headers = {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(url, body, headers, method="PUT"), timeout=PATIENCE).close()


def test_a_name_like_ours_does_not_make_it_ours(bed):
    bed.serve(model="sums", name="seven")
    bed.ready("seven", 1)
    one = {"import_path": "lens:app", "deployments": [{"name": "Lens"}]}
    lens = {**one, "name": "lens-v1", "route_prefix": "/s/lens-v1"}
    nine = {**one, "name": "seven-v9", "route_prefix": "/9"}
    put_list(bed, lambda there: [*there, lens, nine])

    def made_by():
        reply = bed.argusd.call("GET", "/v1/service-applications", token="user")
        return {a["name"]: a["made_by"] for a in reply.json()["applications"]}

    shown = {"seven-v1": "argusd", "lens-v1": "list", "seven-v9": "list"}
    until(lambda: made_by() == shown, "they are shown as somebody else's")
    assert bed.serve(model="sums", name="lens", status=409)["code"] == "serve_app_taken"
    puts = bed.puts()
    bed.serve(path="/v1/services/seven:deploy", max_ongoing_requests=4)
    bed.ready("seven", 2)
    assert bed.puts() > puts and {"lens-v1", "seven-v9"} <= set(bed.apps())
    bed.argusd.call("DELETE", "/v1/services/seven", token="user")
    until(lambda: bed.page("seven") is None, "the service is gone")
    bed.wait_apps("lens-v1", "seven-v9")
    for name in ("lens-v1", "seven-v9"):
        assert len([x for x in bed.argusd.said().splitlines() if x.endswith(f"app={name}")]) == 1, "it is told once"
    put_list(bed, lambda there: [])
    bed.wait_apps()


def test_a_name_that_is_taken_before_the_first_service(tmp_path):
    """argusd looks at Ray Serve once there is a service: it takes this one's name, and sees then that it is taken."""
    with Bed(tmp_path) as bed:
        bed.model("sums")
        first = {"name": "first-v1", "route_prefix": "/s/first-v1", "import_path": "lens:app"}
        first["deployments"] = [{"name": "Lens"}]
        put_list(bed, lambda there: [first], http_options={"host": "0.0.0.0", "port": free_port()})
        bed.serve(model="sums", name="first")
        page = bed.wait("first", lambda p: p["versions"][0]["state"] == "FAILED", "its version is given up")
        assert page["versions"][0]["reason"]["code"] == "serve_app_taken"
        bed.serve(path="/v1/services/first:deploy", model="sums")
        bed.ready("first", 2)
        assert bed.apps()["first-v1"]["import_path"] == "lens:app", "it stays as it is"
        bed.argusd.restart()
        bed.argusd.call("DELETE", "/v1/services/first", token="user")
        bed.wait_apps("first-v1")


class Near(Argusd):
    networks = "127.0.0.0/26"


FAR = "127.0.0.66"  # not there: somebody else's machine


def test_proxies_are_not_called_where_only_ray_says_that_they_are(tmp_path):
    """The head's raylet, then the one of a replica's machine, tell Ray the address of another machine."""
    with Bed(tmp_path, kind=Near) as bed:
        bed.model("sums")

        def say(node, ip):
            bed.ray.ask("POST", f"nodes/{node}", {"ip": ip})

        def is_refused(code):
            return lambda p: any((r["reason"] or {}).get("code") == code for r in replicas_of(p))

        say("h1", FAR)
        until(lambda: bed.argusd.get("/v1/clusters")["clusters"][0]["head_ip"] == FAR, "argusd was told so")
        bed.serve(model="sums", name="near")
        bed.wait("near", is_refused("head_only_ray_says"), "nothing is deployed")
        assert not bed.apps()
        say("h1", "127.0.0.1")
        (replica,) = replicas_of(bed.ready("near", 1))
        own = {"h2": "127.0.0.2", "h3": "127.0.0.3"}[replica["node"]]
        assert bed.ray.ask("GET", "serve")["asked_at"] == ["127.0.0.1", own]

        say(replica["node"], FAR)
        page = bed.wait("near", is_refused("node_only_ray_says"), "its replica has no door")
        (replica,) = replicas_of(page)
        assert f"only Ray says that it is at {FAR}" in replica["reason"]["text"], replica
        asked = ("POST", "/v1/services/near/v1/completions", {"prompt": "1"}, "user", {})
        assert bed.argusd.ask(*asked).status == 503
        say(replica["node"], own)
        bed.ready("near", 1)
        assert bed.argusd.ask(*asked).status == 200
        assert FAR not in bed.ray.ask("GET", "serve")["asked_at"]


@pytest.mark.nightly
def test_kill_9_in_the_middle_of_deploys(bed):
    bed.serve(model="sums", name="five", replicas=2)
    for again in range(4):
        if again:
            bed.serve(path="/v1/services/five:deploy", max_ongoing_requests=again)
        until(lambda: any(r["job"] for r in replicas_of(bed.page("five"))), "a lease is asked for")
        bed.argusd.kill9()
        bed.argusd.start()
    bed.ready("five", 4, replicas=2)


    def leases():
        """The jobs that live, and those of the replicas that are wanted."""
        live = [j["id"] for j in bed.argusd.all_jobs("&state=QUEUED,STARTING,RUNNING&workload=serve")]
        return sorted(live), sorted(r["job"] for r in replicas_of(bed.page("five")) if r["job"])

    until(lambda: (got := leases())[0] == got[1], "no lease twice")
    bed.argusd.call("DELETE", "/v1/services/five", token="user")
    bed.wait_apps()


@contextlib.contextmanager
def asked(bed, name):
    """One request after the other: the versions that answered, and what was no answer."""
    over, apps, failed = threading.Event(), set(), []

    def client():
        while not over.is_set():
            reply = bed.argusd.ask("POST", f"/v1/services/{name}/v1/completions", {"prompt": "1"}, "user", {})
            if reply.status == 200:
                apps.add(reply.json()["app"].split("-r")[0])
            else:
                failed.append((reply.status, reply.body))

    asks = threading.Thread(target=client)
    asks.start()
    try:
        yield apps, failed
    finally:
        over.set()
        asks.join(PATIENCE)


def events_of(bed, name):
    return [e for e in bed.argusd.get("/v1/events?limit=500")["events"] if e["object"] == f"service/{name}"]


def two_versions(bed, name, **deploy):
    """Version 2 has the traffic; version 1, of four GPUs, is cold."""
    bed.serve(model="sums", name=name, gpus=4, keep="cold")
    bed.ready(name, 1)
    bed.serve(path=f"/v1/services/{name}:deploy", **deploy)
    bed.ready(name, 2)
    bed.wait(name, lambda p: not replicas_of(p, 1), "what is cold holds nothing")


def no_room_for_both(bed, name):
    """The same, and version 2 has all eight GPUs."""
    two_versions(bed, name, max_ongoing_requests=4)
    bed.act(name, "scale", replicas=2)
    bed.ready(name, 2, replicas=2)


def test_a_rollback_where_there_is_no_room_for_both(bed):
    no_room_for_both(bed, "full")
    with asked(bed, "full") as (apps, failed):
        bed.act("full", "rollback", version=1)
        bed.ready("full", 1, replicas=2)
        until(lambda: "full-v1" in apps, "what is gone back to answers")
    assert failed == [] and apps == {"full-v2", "full-v1"}
    gave = [e["text"] for e in events_of(bed, "full") if e["kind"] == "service_yielded"]
    assert gave == ["version 2 gives a lease, for which version 1 waits"], "the other one answered until then"
    bed.wait("full", lambda p: not replicas_of(p, 2), "the version that people left holds nothing")
    # Nothing was given for what is deployed after that: it does not get the traffic before all of its replicas answer.
    bed.argusd.call("PATCH", "/v1/services/full", {"keep": "warm"}, token="user")
    bed.ray.settings(serve_sick=["full-v3-r2"])
    bed.serve(path="/v1/services/full:deploy", gpus=0)
    page = bed.wait(
        "full",
        lambda p: sorted(r["state"] for r in replicas_of(p, 3)) == ["CHECKING", "READY"],
        "one of its replicas answers",
    )
    assert (page["current"], page["wanted"]) == (1, 3)
    bed.act("full", "rollback", version=1)  # the deploy is called off
    page = bed.wait("full", lambda p: not replicas_of(p, 3), "what was called off holds nothing")
    assert [r["state"] for r in replicas_of(page, 2)] == ["WAITING"], "what is warm asks for nothing that it gave"
    bed.ray.settings(serve_sick=[])
    bed.argusd.call("DELETE", "/v1/services/full", token="user")
    bed.wait_apps()


def test_a_rollback_to_what_cannot_begin_gives_the_leases_back(bed):
    no_room_for_both(bed, "gone")
    bed.ray.settings(serve_failing=["gone-v1", "gone-v1-r2"])
    with asked(bed, "gone") as (apps, failed):
        bed.act("gone", "rollback", version=1)
        bed.wait("gone", lambda p: p["versions"][1]["state"] == "FAILED", "what was ready once is given up")
        bed.ready("gone", 2, replicas=2)
    assert failed == [] and apps == {"gone-v2"}
    kinds = [e["kind"] for e in events_of(bed, "gone")]
    assert (kinds.count("service_yielded"), kinds.count("service_failed")) == (1, 1)
    bed.ray.settings(serve_failing=[])
    bed.act("gone", "rollback", version=1)  # asked for again, it is tried again
    bed.ready("gone", 1, replicas=2)
    bed.argusd.call("DELETE", "/v1/services/gone", token="user")
    bed.wait_apps()


def test_a_rollback_gives_nothing_in_vain(bed):
    two_versions(bed, "vain", gpus=1)
    # Others hold all the other GPUs: what the service has on one machine is not enough there.
    bed.serve(model="sums", name="rest", gpus=3)
    bed.serve(model="sums", name="more", gpus=1, replicas=2)
    bed.ready("rest", 1)
    bed.ready("more", 1, replicas=2)
    bed.act("vain", "rollback", version=1)
    page = bed.wait(
        "vain",
        lambda p: [r["reason"] and r["reason"]["code"] for r in replicas_of(p, 1)] == ["waiting_for_gpus"],
        "it waits for its lease",
    )
    (kept,) = replicas_of(page, 2)
    changed = page["changed_at"]
    bed.serve(model="sums", name="after")  # argusd has turned several times once this one is ready
    bed.ready("after", 1)
    page = bed.page("vain")
    assert replicas_of(page, 2) == [kept] and page["changed_at"] == changed
    bed.act("vain", "ask", text="6 times 7?")
    for name in ("rest", "more", "after"):
        bed.argusd.call("DELETE", f"/v1/services/{name}", token="user")
    bed.ready("vain", 1)
    bed.argusd.call("DELETE", "/v1/services/vain", token="user")
    bed.wait_apps()


def test_a_model_that_a_service_keeps_is_not_removed(bed):
    bed.model("kept")

    def remove():
        return bed.argusd.call("DELETE", "/v1/models/kept", token="user")

    bed.serve(model="kept", name="keeper", keep="warm")
    bed.ready("keeper", 1)
    refused = remove()
    assert (refused.status, refused.json()["code"]) == (409, "entry_served")
    assert "'kept@1' is version 1 of service 'keeper'" in refused.json()["detail"], refused
    assert "argus service keep keeper --keep none" in refused.json()["hint"]
    plan = bed.argusd.call("DELETE", "/v1/models/kept?dry_run=1", token="user").json()
    assert plan["refused"]
    assert [(u["kind"], u["name"], u["keeps"]) for u in plan["users"]] == [("service", "keeper", True)]
    bed.serve(path="/v1/services/keeper:deploy", model="sums")
    bed.ready("keeper", 2)
    assert remove().json()["code"] == "entry_served", "it is kept warm"
    bed.argusd.call("PATCH", "/v1/services/keeper", {"keep": "cold"}, token="user")
    bed.wait("keeper", lambda p: not replicas_of(p, 1), "what is cold holds nothing")
    assert remove().json()["code"] == "entry_served", "a rollback would load it"
    bed.argusd.restart()
    assert remove().json()["code"] == "entry_served", "rows say so"
    assert bed.argusd.get("/v1/models/kept", token="user")["state"] == "ready"
    bed.argusd.call("PATCH", "/v1/services/keeper", {"keep": "none"}, token="user")
    bed.wait("keeper", lambda p: [v["n"] for v in p["versions"]] == [2], "the version before is forgotten")
    assert remove().status == 200
    until(lambda: bed.argusd.call("GET", "/v1/models/kept", token="user").status == 404, "the model is gone")
    bed.argusd.call("DELETE", "/v1/services/keeper", token="user")
    bed.wait_apps()


def test_who_may(bed):
    bed.serve(model="sums", name="six", token="viewer", status=403)
    bed.serve(model="nosuch", name="six", status=404)
    bed.serve(model="sums", name="six-v1", status=422)
    assert bed.serve(model="sums", app="a:b", status=422)["code"] == "serve_model_or_app"
    bed.serve(model="sums", name="six")
    assert bed.page("six", token="viewer")  # who watches sees everything
    bed.ready("six", 1)
    # A stranger neither sees it nor takes its name, which is made of what he serves.
    assert bed.argusd.call("POST", "/v1/users", {"name": "bob"}).status == 201
    bob = bed.argusd.tokens["bob"] = bed.argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
    assert bob and bed.page("six", token="bob") is None
    bed.serve(app="six:app", token="bob", status=404)
    assert [v["n"] for v in bed.page("six")["versions"]] == [1]

    def applications(token):
        reply = bed.argusd.call("GET", "/v1/service-applications", token=token)
        return [a["name"] for a in reply.json()["applications"]]

    until(lambda: "six-v1" in applications("user"), "Ray Serve's list was seen")
    assert "six-v1" not in applications("bob")
    cli = [PROGRAMS["argus"], "service", "status", "six"]
    env = {"PATH": os.environ["PATH"], "HOME": str(bed.home), "ARGUS_URL": bed.argusd.url}
    env |= {"ARGUS_TOKEN": bed.argusd.tokens["user"], "LANG": "C"}
    said = subprocess.run(cli, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert said.returncode == 0 and "READY" in said.stdout, said
    asked = subprocess.run(
        [cli[0], "service", "ask", "six", "hello", "-o", "json"],
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    reply = json.loads(asked.stdout)
    assert (reply["status"], reply["answer"]["app"], reply["answer"]["model"]) == (200, "six-v1", "six"), asked
    page = bed.page("six")
    assert page["requests_per_minute"] > 0 and page["in_flight"] == 0 and page["tokens_per_second"] > 0
    bed.act("six", "ask", token="viewer", status=403, text="hello")
    bed.act("six", "ask", status=400, text="hello", path="/v1/models")
    bed.act("nosuch", "ask", status=404, text="hello")
    logs = subprocess.run([cli[0], "service", "logs", "six"], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert "the lease is held for 'six-v1'" in logs.stdout, logs
    done = subprocess.run([cli[0], "service", "rm", "six"], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done
    bed.wait_apps()


def test_a_service_without_a_replica_is_told(tmp_path):
    with Receiver() as hook, Bed(tmp_path) as bed:
        bed.model("sums")
        bed.argusd.more += "\n" + rules_yaml(hook, "service_down: {when: service_down >= 2s, clear: service_down < 1s}")
        bed.argusd.write_config()
        bed.argusd.restart()
        w = Watch(bed.argusd, hook)
        bed.serve(model="sums", name="lone")
        page = bed.ready("lone", 1)
        begun = w.begin()
        bed.ray.settings(serve_sick=["lone-v1"])
        bed.argusd.stop_job(replicas_of(page)[0]["job"])
        text = w.hears("service_down", begun)["text"]
        assert "have no ready replica: 1," in text and "lone" not in text, "all see the alert, and not all the service"
        bed.ray.settings(serve_sick=[])
        bed.ready("lone", 1)
        w.ends("service_down")


@pytest.mark.nightly
def test_no_gate_no_service(tmp_path):
    with Bed(tmp_path) as bed:
        bed.model("sums")
        bed.ray.settings(serve_open=True)
        bed.serve(model="sums", name="open")
        page = bed.wait(
            "open",
            lambda p: [r["reason"] and r["reason"]["code"] for r in replicas_of(p)] == ["serve_no_gate"],
            "nothing is deployed behind an open port",
        )
        assert bed.apps() == {} and page["current"] == 0
        assert bed.serve(model="sums", name="more", status=503)["code"] == "serve_unable"
        bed.ray.settings(serve_open=False)
        bed.ready("open", 1)


def test_an_old_ray_is_refused(tmp_path):
    with Bed(tmp_path, version="2.51.1") as bed:
        bed.model("sums")

        def version():
            return bed.argusd.call("GET", "/v1/clusters", token="user").json()["clusters"][0].get("ray_version")

        until(version, "the version of Ray is known")
        said = bed.serve(model="sums", name="old", status=503)
        assert "2.60" in said["detail"] and bed.page("old") is None
