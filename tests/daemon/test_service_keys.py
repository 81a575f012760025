# SPDX-License-Identifier: Apache-2.0
"""Keys that open one service: what they open, and all that they do not, beside a fake Ray Serve."""

import json
import os
import subprocess
from urllib.parse import quote

import pytest
from programs import PROGRAMS
from test_argusd_api import content
from test_service_calls import CHAT, QUESTION, ask, requests_of, rows_until
from test_services import Bed

from argusd import PATIENCE, needs_argusd, until

pytestmark = needs_argusd
MOST = 50  # keys of one service


class KeyBed(Bed):
    def key(self, service, status=201, token="user", **more):
        reply = self.argusd.call("POST", "/v1/service-keys", {"service": service, **more}, token=token)
        assert reply.status == status, reply
        return reply.json()

    def keys(self, service=None, token="user"):
        query = f"?service={service}" if service else ""
        reply = self.argusd.call("GET", f"/v1/service-keys{query}", token=token)
        assert reply.status == 200, reply
        return reply.json()["keys"]

    def drop(self, key, status=200, token="user"):
        reply = self.argusd.call("DELETE", f"/v1/service-keys/{key['id']}", token=token)
        assert reply.status == status, reply
        return reply

    def made(self, name, **more):
        """A name is free again once the last lease of the one before has ended."""

        def made():
            reply = self.argusd.call("POST", "/v1/services", {"model": "sums", "name": name, **more}, token="user")
            return reply.status != 409 and reply

        reply = until(made, f"{name} is made")
        assert reply.status == 201, reply
        return self.ready(name, 1)

    def gone(self, name):
        assert self.argusd.call("DELETE", f"/v1/services/{name}", token="user").status == 200
        until(lambda: self.page(name) is None, f"{name} is gone")

    def person(self, name):
        assert self.argusd.call("POST", "/v1/users", {"name": name}).status == 201
        self.argusd.tokens[name] = self.argusd.call("POST", "/v1/tokens", {"user": name}).json()["token"]
        return name


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    with KeyBed(tmp_path_factory.mktemp("keys")) as bed:
        bed.model("sums")
        bed.made("one", log_share=1)
        bed.made("two")
        yield bed


def events_of(bed, kind):
    return [e for e in bed.argusd.events() if e["kind"] == kind]


def test_a_key_asks_its_service(bed):
    made = bed.key("one", name="website")
    text = made["key"]
    assert text.startswith("arguskey_") and (made["user"], made["state"]) == ("alice", "works")
    assert ask(bed, "one", token=text).json()["app"] == "one-v1"
    up = bed.ray.ask("GET", "serve")["told"]
    assert up["x-argus-user"] == "alice" and "authorization" not in up and text not in str(up)
    streamed = ask(bed, "one", body={**QUESTION, "stream": True}, token=text)
    assert streamed.status == 200 and streamed.body.endswith(b"data: [DONE]\n\n")
    assert ask(bed, "one", "v1/models", None, text, "GET").status == 200
    rows = rows_until(bed, "one", 3)
    assert {(r["user"], r["key"]) for r in rows} == {("alice", made["id"])}
    assert ask(bed, "one").status == 200
    assert until(lambda: len(rows := requests_of(bed, "one")) == 4 and rows, "hers is listed")[0]["key"] == ""
    until(lambda: f"user=alice key={made['id']} " in bed.argusd.said(), "the log names it")
    bed.drop(made)


def test_a_key_is_shown_once_and_kept_nowhere(bed):
    told = len(events_of(bed, "service_key_added"))
    made = bed.key("one", name="website")
    text = made["key"]
    assert ask(bed, "one", token=text).status == 200
    (shown,) = bed.keys("one")
    assert "key" not in shown and shown["last_use_at"] and shown["name"] == "website"
    events = events_of(bed, "service_key_added")[told:]
    assert [(e["object"], e["actor"]) for e in events] == [("service/one", "alice")]
    secret = text.removeprefix("arguskey_").encode()
    assert secret not in bed.argusd.said().encode() and secret.decode() not in json.dumps(events)
    kept = [p for p in bed.home.rglob("*") if p.is_file() and not p.is_symlink()]
    assert any(b"service_key" in content(p) for p in kept), "its row is among these files"
    assert [p for p in kept if secret in content(p)] == []
    bed.drop(made)
    assert events_of(bed, "service_key_removed")[-1]["object"] == "service/one"


def test_a_key_opens_nothing_else(bed):
    made = bed.key("one")
    key = made["key"]
    assert ask(bed, "one", token=key).status == 200
    for path in (CHAT, "v1/models", "", "../one/v1/models"):
        assert ask(bed, "two", path, token=key).status in (400, 404), path
    other = ask(bed, "two", token=key)
    assert (other.status, other.json()["code"]) == (404, "not_found"), "whether there is one it does not learn"
    assert other.json()["detail"].replace("two", "x") == ask(bed, "x", token=key).json()["detail"]
    for path in ("../two/v1/models", "..%2ftwo/v1/models", "%2e%2e/two/v1/models"):
        assert ask(bed, "one", path, None, key, "GET").status in (400, 404), path
    # No route of the API, in whatever way it is asked, but those that everybody may ask.
    api = bed.argusd.get("/v1/openapi.json")
    asked = 0
    for path, item in api["paths"].items():
        for method, operation in item.items():
            if operation["x-least-role"] == "none":
                continue
            names = {p["name"]: quote(str(p["example"]), "") for p in operation["parameters"] if p["in"] == "path"}
            target = path.format(**{**names, "name": "one"})
            reply = bed.argusd.ask(method.upper(), target, None, key, {})
            assert (reply.status, reply.json()["code"]) == (403, "key_opens_one"), (method, target, reply)
            asked += 1
    assert asked > 150
    assert bed.argusd.ask("POST", "/v1/services/one:ask", {"text": "hello"}, key, {}).status == 403
    assert bed.argusd.ask("GET", "/metrics", None, key, {}).status == 403
    # It begins no session, is no cookie, and says no more to who may ask without a token.
    assert bed.argusd.ask("POST", "/v1/session", {"token": key}, None, {}).status == 401
    for cookie in (f"argus_session={key}", f"__Host-argus={key}"):
        assert bed.argusd.ask("GET", f"/v1/services/one/{CHAT}", None, None, {"Cookie": cookie}).status == 401
    for path in ("/v1/version", "/readyz"):
        told, strangers = (bed.argusd.ask("GET", path, None, token, {}).json() for token in (key, None))
        assert told == strangers != bed.argusd.ask("GET", path, None, "user", {}).json(), path
    # What is nearly a key is none.
    for wrong in (key[:-1], key + "A", "arguskey_", "arguskey_" + "A" * 43, key.replace("arguskey_", "argus_")):
        assert ask(bed, "one", token=wrong).status == 401, wrong
    bed.drop(made)


def test_a_key_that_is_removed_opens_nothing_from_then_on(bed):
    first, second = bed.key("one", name="a"), bed.key("one", name="b")
    assert [ask(bed, "one", token=k["key"]).status for k in (first, second)] == [200, 200]
    bed.drop(first)
    reply = ask(bed, "one", token=first["key"])
    assert (reply.status, reply.json()["code"]) == (401, "key_unknown")
    assert ask(bed, "one", token=second["key"]).status == 200
    bed.drop(first, 404)
    # After a kill, too, while the other one goes on.
    bed.argusd.kill9()
    bed.argusd.start()
    bed.ready("one", 1)
    assert ask(bed, "one", token=first["key"]).status == 401
    until(lambda: ask(bed, "one", token=second["key"]).status == 200, "the other one opens it")
    bed.drop(second)
    assert bed.keys("one") == []


def test_an_expired_key(bed):
    assert bed.key("one", 422, expires="1s")["status"] == 422
    made = bed.key("one", expires="1h")
    assert made["expires_at"] and ask(bed, "one", token=made["key"]).status == 200
    bed.drop(made)


def test_limits_of_a_key(bed):
    bed.made("few", requests_per_minute=1)
    mine, free = bed.key("few", requests_per_minute=3), bed.key("few")
    assert [ask(bed, "few", token=mine["key"]).status for _ in range(4)] == [200, 200, 200, 429]
    reply = ask(bed, "few", token=mine["key"])
    assert reply.json()["code"] == "calls_too_many" and mine["id"] in reply.json()["detail"]
    assert 1 <= int(reply.headers["Retry-After"]) <= 61
    # One without limits of its own has the service's, and neither takes anything from its maker or another key.
    assert [ask(bed, "few", token=free["key"]).status for _ in range(2)] == [200, 429]
    assert [ask(bed, "few").status for _ in range(2)] == [200, 429]
    costly = bed.key("few", tokens_per_minute=1, requests_per_minute=100)
    assert [ask(bed, "few", token=costly["key"]).status for _ in range(2)] == [200, 429]
    assert ask(bed, "few", token=costly["key"]).json()["code"] == "calls_tokens"
    assert bed.key("few", 422, requests_per_minute=-1)["status"] == 422
    bed.gone("few")


def test_who_may(bed):
    bob = bed.person("bob")
    mine = bed.key("one")
    assert bed.key("one", 404, bob)["code"] == bed.key("nothing", 404, bob)["code"] == "not_found"
    assert bed.key("one", 403, "viewer")["status"] == 403
    assert bed.key("nothing", 404, "admin")["code"] == "not_found"
    assert bed.keys(token=bob) == [] and [k["id"] for k in bed.keys("one", "viewer")] == [mine["id"]]
    hidden = bed.drop(mine, 404, bob).json()
    assert "'one'" not in hidden["detail"], "nor does he learn which service it opens"
    bed.drop(mine, 403, "viewer")
    bed.drop(mine, token="admin")


def test_a_key_may_what_its_maker_may(bed):
    carl = bed.person("carl")
    made = bed.argusd.call("POST", "/v1/projects", {"name": "team", "members": ["alice", carl]})
    assert made.status == 201, made
    bed.made("shared", project="team")
    his = bed.key("shared", token=carl)
    assert ask(bed, "shared", token=his["key"]).status == 200

    def change(path, **body):
        reply = bed.argusd.call("PATCH", path, body)
        assert reply.status == 200, reply

    change("/v1/projects/team", remove=[carl])
    assert ask(bed, "shared", token=his["key"]).status == 404
    assert [k["state"] for k in bed.keys("shared")] == ["void"]
    change("/v1/projects/team", add=[carl])
    assert ask(bed, "shared", token=his["key"]).status == 200
    change(f"/v1/users/{carl}", disabled=True)
    assert ask(bed, "shared", token=his["key"]).status == 401
    change(f"/v1/users/{carl}", disabled=False, role="viewer")
    assert ask(bed, "shared", token=his["key"]).status == 403
    # He goes, and whoever is called so later has none of his keys.
    change(f"/v1/users/{carl}", role="user")
    assert bed.argusd.call("DELETE", f"/v1/users/{carl}").status == 200
    bed.person(carl)
    change("/v1/projects/team", add=[carl])
    assert ask(bed, "shared", token=his["key"]).json()["code"] == "key_unknown" and bed.keys("shared") == []
    bed.gone("shared")


def test_keys_go_with_their_service(bed):
    bed.made("brief")
    old = bed.key("brief")
    bed.gone("brief")
    assert ask(bed, "brief", token=old["key"]).status == 401
    bed.made("brief")
    assert ask(bed, "brief", token=old["key"]).json()["code"] == "key_unknown", "another one has its name"
    assert bed.keys("brief") == []
    bed.gone("brief")


def test_there_are_so_many_keys_and_no_more(bed):
    made = [bed.key("two", name=f"k{i}") for i in range(MOST)]
    assert bed.key("two", 422, name="more")["code"] == "service_keys_full"
    bed.drop(made.pop())
    made.append(bed.key("two", name="instead"))
    assert bed.key("two", 422, name="x" * 129)["code"] == "service_key_name"
    assert bed.key("two", 422, name="a\x1b[2J")["code"] == "service_key_name"
    for k in made:
        bed.drop(k)


def test_the_commands(bed):
    env = {"PATH": os.environ["PATH"], "HOME": str(bed.home), "ARGUS_URL": bed.argusd.url}
    env |= {"ARGUS_TOKEN": bed.argusd.tokens["user"], "LANG": "C"}

    def argus(*words, rc=0):
        done = subprocess.run([PROGRAMS["argus"], *words], env=env, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == rc, done
        return done

    said = argus("service", "key", "new", "one", "--name", "ci", "--requests-per-minute", "9")
    text = said.stdout.strip()
    assert ask(bed, "one", token=text).status == 200 and "shown this once" in said.stderr
    listed = argus("service", "key", "ls", "--service", "one").stdout
    (k,) = bed.keys("one")
    assert k["id"] in listed and "ci" in listed and " 9" in listed and text not in listed
    assert "removed" in argus("service", "key", "rm", k["id"]).stdout
    assert ask(bed, "one", token=text).status == 401
    assert bed.keys("one") == []
    said = argus("service", "key", "forget", rc=2)
    assert "key new" in said.stderr, "what there is instead"
