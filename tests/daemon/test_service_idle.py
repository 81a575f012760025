# SPDX-License-Identifier: Apache-2.0
"""Services that sleep while nobody asks them, beside a fake Ray Serve: their leases go back, the next request wakes
them, and kill -9 loses neither."""

import contextlib
import json
import os
import subprocess

import pytest
from programs import PROGRAMS
from test_service_calls import CHAT, QUESTION, ask
from test_services import Bed, replicas_of

from argusd import PATIENCE, needs_argusd, until

pytestmark = needs_argusd
LEAST = "2s"  # in place of a minute


class IdleBed(Bed):
    def idle(self, name, span, status=200, token="user"):
        reply = self.argusd.call("PATCH", f"/v1/services/{name}", {"idle": span}, token=token)
        assert reply.status == status, reply
        return reply.json()

    def asleep(self, name):
        """It sleeps, holds nothing, and goes on so whatever its idle time is now."""
        self.idle(name, LEAST)
        page = self.wait(name, lambda p: p["state"] == "SLEEPING" and not replicas_of(p), f"{name} sleeps")
        self.idle(name, "1h")
        assert page["asleep_at"] and not page["woken_at"] and page["gpus"] == 0 and page["ready"] == 0
        return page

    def made(self, name, **more):
        self.serve(model="sums", name=name, **more)
        return self.ready(name, 1, more.get("replicas", 1))

    def kinds(self, name):
        return [e["kind"] for e in self.argusd.events() if e["object"] == f"service/{name}"]

    def gone(self, name):
        self.argusd.call("DELETE", f"/v1/services/{name}", token="user")
        until(lambda: self.page(name) is None, f"{name} is gone")


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    with IdleBed(tmp_path_factory.mktemp("idle"), serve=f", idle_least: {LEAST}") as bed:
        bed.model("sums")
        yield bed


def refused(bed, name, code, **more):
    reply = ask(bed, name, **more)
    assert (reply.status, reply.json()["code"]) == (503, code), reply
    assert int(reply.headers["Retry-After"]) >= 1
    return reply


def test_it_sleeps_and_the_next_request_wakes_it(bed):
    page = bed.made("nap", gpus=1, idle="1h")
    assert page["idle"] == "3600s" and page["asleep_at"] is None
    lease = replicas_of(page)[0]["job"]
    assert ask(bed, "nap").status == 200
    page = bed.asleep("nap")
    assert page["current"] == 1 and page["versions"][0]["state"] == "SLEEPING"
    reason = page["versions"][0]["reason"]
    assert reason["code"] == "serve_asleep" and "the next request wakes it" in reason["text"]
    assert "argus service wake nap" in reason["text"]
    assert bed.argusd.wait_over(lease)["state"] == "STOPPED"
    bed.wait_apps()
    listed = {s["name"]: s["state"] for s in bed.argusd.get("/v1/services", token="user")["services"]}
    assert listed["nap"] == "SLEEPING"

    # When it has its lease is not known yet, and so it is not said when it answers.
    detail = refused(bed, "nap", "serve_wakes").json()["detail"]
    assert "was asleep" in detail and "once it has its lease" in detail and "answers in" not in detail
    page = bed.ready("nap", 1)
    assert page["asleep_at"] is None and page["woken_at"] is None
    assert replicas_of(page)[0]["job"] != lease
    assert ask(bed, "nap").status == 200
    kinds = bed.kinds("nap")
    assert (kinds.count("service_slept"), kinds.count("service_woken")) == (1, 1)
    (woken,) = [e for e in bed.argusd.events() if e["object"] == "service/nap" and e["kind"] == "service_woken"]
    assert woken["actor"] == "alice"
    bed.gone("nap")
    bed.wait_apps()


def test_what_waits_in_the_queue_says_so(bed):
    bed.made("late", gpus=1)
    bed.asleep("late")
    bed.made("hog", gpus=4, replicas=2)  # every GPU there is
    assert ask(bed, "late").status == 503

    def queued():
        reply = ask(bed, "late")
        return reply.json().get("code") == "serve_wakes_queued" and reply

    reply = until(queued, "it waits for its lease, and says so")
    (replica,) = replicas_of(bed.page("late"))
    assert replica["job"] in reply.json()["detail"] and reply.json()["hint"] == f"argus why {replica['job']}"
    assert int(reply.headers["Retry-After"]) >= 1
    assert bed.argusd.get(f"/v1/jobs/{replica['job']}/why", token="user")
    bed.gone("hog")
    bed.ready("late", 1)
    assert ask(bed, "late").status == 200
    bed.gone("late")
    bed.wait_apps()


def test_a_wake_that_a_quota_stops_says_so(bed):
    bed.made("poor", gpus=1)
    bed.asleep("poor")
    assert bed.argusd.call("PUT", "/v1/users/alice/quota", {"queued": 0}).status == 200
    refused(bed, "poor", "serve_wakes")
    until(lambda: ask(bed, "poor").json()["code"] == "serve_not_ready", "it is not submitted")
    reply = refused(bed, "poor", "serve_not_ready")
    assert reply.json()["args"]["why"]["code"] == "quota_queued", reply
    assert reply.headers["Retry-After"] == "30"  # of a service that is awake it would be 2
    assert bed.argusd.call("PUT", "/v1/users/alice/quota", {}).status == 200
    bed.ready("poor", 1)
    assert ask(bed, "poor").status == 200
    bed.gone("poor")
    bed.wait_apps()


def test_a_stream_under_way_keeps_it_awake(bed):
    """Another service that nobody asks is loaded and falls asleep meanwhile: so much time has gone by."""
    bed.made("busy")
    bed.made("quiet")
    bed.ray.settings(serve_hold=True)
    headers = {"Authorization": f"Bearer {bed.argusd.tokens['user']}", "Content-Type": "application/json"}
    with contextlib.closing(bed.argusd.open()) as c:
        c.request("POST", f"/v1/services/busy/{CHAT}", json.dumps({**QUESTION, "stream": True}), headers)
        reply = c.getresponse()
        assert reply.status == 200
        bed.wait("busy", lambda p: p["in_flight"] == 1, "the request is under way")
        bed.idle("busy", LEAST)
        bed.asleep("quiet")  # perhaps for the time before the stream
        bed.act("quiet", "wake")
        bed.ready("quiet", 1)
        bed.asleep("quiet")
        page = bed.page("busy")
        assert (page["state"], page["in_flight"], page["asleep_at"]) == ("READY", 1, None)
        bed.ray.settings(serve_hold=False)
        assert reply.read().decode().endswith("data: [DONE]\n\n")
    bed.asleep("busy")
    for name in ("busy", "quiet"):
        bed.gone(name)
    bed.wait_apps()


def test_who_may_wake_it(bed):
    bed.made("door")
    bed.asleep("door")
    assert bed.argusd.call("POST", "/v1/users", {"name": "stranger"}).status == 201
    bed.argusd.tokens["stranger"] = bed.argusd.call("POST", "/v1/tokens", {"user": "stranger"}).json()["token"]
    bed.act("door", "wake", status=404, token="stranger")
    assert ask(bed, "door", token="stranger").status == 404
    bed.act("door", "wake", status=403, token="viewer")
    assert ask(bed, "door", token="viewer").status == 403
    assert bed.page("door")["state"] == "SLEEPING"
    env = {"PATH": os.environ["PATH"], "HOME": str(bed.home), "ARGUS_URL": bed.argusd.url}
    env |= {"ARGUS_TOKEN": bed.argusd.tokens["user"], "LANG": "C"}

    def argus(*words):
        done = subprocess.run([PROGRAMS["argus"], *words], env=env, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done
        return done.stdout + done.stderr

    said = argus("service", "status", "door")
    assert "SLEEPING" in said and "the next request wakes it" in said
    assert "awake" in argus("service", "wake", "door")
    bed.ready("door", 1)
    assert bed.act("door", "wake")["state"] == "READY"  # nothing is to be done
    assert bed.kinds("door").count("service_woken") == 1
    # Whoever says that it never sleeps wakes it, too.
    bed.asleep("door")
    argus("service", "idle", "door", "--after", "off")
    page = bed.ready("door", 1)
    assert page["idle"] == "0s"
    bed.act("door", "stop")
    assert bed.act("door", "wake", status=409)["code"] == "serve_is_stopped"
    bed.gone("door")
    bed.wait_apps()


def test_a_named_version_wakes_it_only_where_it_can_answer(bed):
    bed.made("pick", keep="cold", idle="1h")
    bed.serve(path="/v1/services/pick:deploy")
    bed.ready("pick", 2)
    bed.asleep("pick")
    for version, status in (("1", 409), ("7", 404)):
        reply = ask(bed, "pick", **{"Argus-Version": version})
        assert reply.status == status and "v2 can be asked" in reply.json()["detail"], reply
    assert bed.page("pick")["state"] == "SLEEPING" and "service_woken" not in bed.kinds("pick")
    refused(bed, "pick", "serve_wakes", **{"Argus-Version": "2"})
    bed.ready("pick", 2)
    bed.gone("pick")
    bed.wait_apps()


def test_a_request_to_what_is_kept_warm_wakes_it(bed):
    bed.made("pair", keep="warm", idle="1h")
    bed.serve(path="/v1/services/pair:deploy")
    bed.ready("pair", 2)
    bed.asleep("pair")
    refused(bed, "pair", "serve_wakes", **{"Argus-Version": "1"})
    bed.ready("pair", 2)
    reply = until(lambda: (r := ask(bed, "pair", **{"Argus-Version": "1"})).status == 200 and r, "v1 is warm again")
    assert reply.json()["app"] == "pair-v1"
    bed.gone("pair")
    bed.wait_apps()


def test_what_is_kept_warm_says_when_it_is_loaded(bed):
    """It comes after what has the traffic, and says by its own last load when to ask again."""
    bed.ray.settings(serve_delay=3)
    bed.made("slow", keep="warm", gpus=1)
    bed.ray.settings(serve_delay=0.3)
    bed.serve(path="/v1/services/slow:deploy", gpus=0)
    bed.ready("slow", 2)
    bed.asleep("slow")
    bed.made("hog", gpus=4, replicas=2)  # every GPU there is: version 1 gets none
    refused(bed, "slow", "serve_wakes", **{"Argus-Version": "1"})
    bed.ready("slow", 2)
    for _ in range(3):
        reply = refused(bed, "slow", "serve_version_not_ready", **{"Argus-Version": "1"})
        assert int(reply.headers["Retry-After"]) >= 3, "its own load; of any service that is awake it would be 2"
        assert "v2 can be asked" in reply.json()["detail"], reply
    assert bed.act("slow", "ask", status=503, text="6 times 7?", version=1)["code"] == "serve_version_not_ready"
    assert ask(bed, "slow").json()["app"] == "slow-v2", "nobody else waits for it"
    bed.gone("hog")
    reply = until(lambda: (r := ask(bed, "slow", **{"Argus-Version": "1"})).status == 200 and r, "v1 is warm again")
    assert reply.json()["app"] == "slow-v1"
    # Its replica is lost: another one is on its way.
    bed.ray.settings(serve_sick=["slow-v1"])
    bed.argusd.stop_job(replicas_of(bed.page("slow"), 1)[0]["job"])
    until(lambda: ask(bed, "slow", **{"Argus-Version": "1"}).status == 503, "it is loaded again")
    refused(bed, "slow", "serve_version_not_ready", **{"Argus-Version": "1"})
    bed.act("slow", "stop")
    refused(bed, "slow", "serve_is_stopped", **{"Argus-Version": "1"})
    bed.ray.settings(serve_sick=[])
    bed.gone("slow")
    bed.wait_apps()


def test_what_is_refused(bed):
    assert bed.serve(model="sums", name="odd", idle="soon", status=422)["code"] == "serve_idle"
    said = bed.serve(model="sums", name="odd", idle="1s", status=422)
    assert said["code"] == "serve_idle_short" and LEAST in said["detail"]
    assert bed.page("odd") is None
    bed.made("odd", idle="1h")
    assert bed.idle("odd", "soon", status=422)["code"] == "serve_idle"
    assert bed.idle("odd", "1s", status=422)["code"] == "serve_idle_short"
    bed.idle("odd", "1h", status=403, token="viewer")
    reply = bed.argusd.call("PATCH", "/v1/services/odd", {}, token="user")
    assert (reply.status, reply.json()["code"]) == (400, "serve_keep")
    assert bed.page("odd")["idle"] == "3600s"
    bed.gone("odd")
    bed.wait_apps()


def set_of(page):
    return page["idle"], page["keep"]


def changes_of(bed, name):
    told = [e for e in bed.argusd.events() if (e["object"], e["kind"]) == (f"service/{name}", "service_idle")]
    return sorted((e["actor"], e["from"], e["to"]) for e in told)


def test_a_deploy_changes_what_it_says_once_it_has_the_traffic(bed):
    bed.made("swap", idle="1h")
    bed.serve(path="/v1/services/swap:deploy", max_ongoing_requests=4)
    assert set_of(bed.ready("swap", 2)) == ("3600s", "warm")
    bed.ray.settings(serve_sick=["swap-v3"])
    assert set_of(bed.serve(path="/v1/services/swap:deploy", idle="off", keep="cold")) == ("3600s", "warm")
    bed.argusd.kill9()
    bed.argusd.start()
    assert set_of(bed.page("swap")) == ("3600s", "warm")
    bed.ray.settings(serve_sick=[])
    assert set_of(bed.ready("swap", 3)) == ("0s", "cold")
    # What somebody says meanwhile is said later, and holds.
    bed.ray.settings(serve_sick=["swap-v4"])
    bed.serve(path="/v1/services/swap:deploy", idle="2h", keep="none")
    bed.idle("swap", "3h")
    bed.ray.settings(serve_sick=[])
    assert set_of(bed.ready("swap", 4)) == ("10800s", "none")
    assert changes_of(bed, "swap") == [("alice", "1h", "off"), ("alice", "off", "3h")]
    bed.gone("swap")
    bed.wait_apps()


def test_a_deploy_that_fails_leaves_it_asleep(bed):
    """Whatever it says of the service, and over kill -9."""
    bed.made("still", keep="warm")
    since = bed.asleep("still")["asleep_at"]
    bed.ray.settings(serve_failing=["still-v2"])
    page = bed.serve(path="/v1/services/still:deploy", idle="off", keep="none")
    assert (page["state"], page["asleep_at"]) == ("SLEEPING", since)
    bed.argusd.kill9()
    bed.argusd.start()
    page = bed.wait(
        "still",
        lambda p: p["versions"][0]["state"] == "FAILED" and not replicas_of(p),
        "the bad version is given up",
    )
    assert (page["state"], page["asleep_at"], page["current"], page["wanted"]) == ("SLEEPING", since, 1, 0)
    assert set_of(page) == ("3600s", "warm")
    assert "service_woken" not in bed.kinds("still")
    bed.ray.settings(serve_failing=[])
    bed.gone("still")
    bed.wait_apps()


@pytest.mark.nightly
def test_deploy_and_rollback_while_it_sleeps(bed):
    bed.made("next", keep="warm")
    bed.asleep("next")
    bed.serve(path="/v1/services/next:deploy", max_ongoing_requests=4)
    page = bed.ready("next", 2)
    assert page["asleep_at"] is None and page["previous"] == 1
    bed.wait("next", lambda p: p["versions"][1]["state"] == "READY", "the one before is warm again")
    page = bed.asleep("next")  # what is warm holds nothing either
    assert [v["state"] for v in page["versions"]] == ["SLEEPING", "COLD"]
    bed.act("next", "rollback", status=409, version=2)
    bed.act("next", "rollback")
    bed.ready("next", 1)
    # A deploy that comes to nothing leaves it asleep, and so does one that is called off.
    bed.asleep("next")
    bed.ray.settings(serve_failing=["next-v3"])
    bed.serve(path="/v1/services/next:deploy", max_ongoing_requests=5)
    page = bed.wait("next", lambda p: p["versions"][0]["state"] == "FAILED", "the bad version is given up")
    assert page["state"] == "SLEEPING" and page["current"] == 1
    bed.ray.settings(serve_failing=[], serve_sick=["next-v4"])
    bed.serve(path="/v1/services/next:deploy", max_ongoing_requests=6)
    page = bed.act("next", "rollback", version=1)
    assert (page["state"], page["wanted"]) == ("SLEEPING", 0)
    bed.ray.settings(serve_sick=[])
    bed.wait("next", lambda p: not replicas_of(p), "nothing of it is held")
    refused(bed, "next", "serve_wakes")
    bed.ready("next", 1)
    bed.gone("next")
    bed.wait_apps()


@pytest.mark.nightly
def test_it_wakes_with_the_replicas_that_were_asked_for(bed):
    bed.made("many", replicas=2, max_replicas=3)
    bed.act("many", "scale", replicas=3)
    bed.ready("many", 1, 3)
    assert bed.asleep("many")["replicas"] == 2
    bed.act("many", "wake")
    bed.ready("many", 1, 2)
    bed.gone("many")
    bed.wait_apps()


def test_kill_9_while_it_sleeps_and_while_it_wakes(bed):
    bed.made("deep", gpus=1)
    since = bed.asleep("deep")["asleep_at"]
    bed.argusd.kill9()
    bed.argusd.start()
    page = bed.page("deep")
    assert (page["state"], page["asleep_at"], page["idle"]) == ("SLEEPING", since, "3600s")
    bed.ray.settings(serve_sick=["deep-v1"])  # it is loaded, and not ready before this is over
    reply = until(lambda: (r := ask(bed, "deep")).json()["code"] == "serve_wakes" and r, "it is being woken")
    assert int(reply.headers["Retry-After"]) >= 1
    until(lambda: "deep-v1" in bed.apps(), "its lease is there")
    until(lambda: "its last load" in ask(bed, "deep").json()["detail"], "it says how long the last load took")
    bed.argusd.kill9()
    bed.argusd.start()
    page = bed.page("deep")
    assert page["asleep_at"] is None and page["woken_at"] and page["current"] == 1
    until(lambda: ask(bed, "deep").json()["code"] == "serve_wakes", "it is still being woken")
    bed.ray.settings(serve_sick=[])
    page = bed.ready("deep", 1)
    assert page["woken_at"] is None and bed.kinds("deep").count("service_woken") == 1
    assert ask(bed, "deep").status == 200
    live = [j["id"] for j in bed.argusd.all_jobs("&state=QUEUED,STARTING,RUNNING&workload=serve")]
    assert live == [replicas_of(page)[0]["job"]], "no lease twice"
    bed.gone("deep")
    bed.wait_apps()
