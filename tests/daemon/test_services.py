# SPDX-License-Identifier: Apache-2.0
"""Services beside a fake Ray Serve: leases as jobs, the list that argusd alone writes, versions that take the traffic
and give it back, scale, failures, the gate, kill -9 in the middle of all of it."""

import json
import os
import subprocess

import pytest
from fakeray import FakeRay
from ports import free_port
from programs import PROGRAMS

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
    def __init__(self, tmp, version="2.60.0", serve=""):
        self.home, self.serve_more = tmp, serve
        self.ray = FakeRay(version, nodes=machines(), state=tmp / "ray")

    def __enter__(self):
        self.ray.start()
        more = f"serve: {{port: {free_port()}{self.serve_more}}}"
        self.argusd = Argusd(self.home, self.ray.url, more=more)
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
    bed.ray.lose_memory(kill_after=0)  # Ray knows nothing any more
    until(lambda: "four-v1" in bed.apps(), "argusd deploys again")
    bed.ready("four", 1)
    bed.argusd.call("DELETE", "/v1/services/four", token="user")
    bed.wait_apps()


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
