# SPDX-License-Identifier: Apache-2.0
"""Requests to services through argusd, beside a fake Ray Serve: who may, what passes, limits, counts, a new version."""

import contextlib
import http.client
import json
import threading

import pytest
from test_changes import Listener
from test_services import Bed, replicas_of

from argusd import PATIENCE, needs_argusd, until

pytestmark = needs_argusd
CHAT = "v1/chat/completions"
QUESTION = {"model": "one", "messages": [{"role": "user", "content": "6 times 7?"}]}


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    with Bed(tmp_path_factory.mktemp("calls")) as bed:
        bed.model("sums")
        bed.serve(model="sums", name="one", log_share=1)
        bed.ready("one", 1)
        yield bed


def ask(bed, name, path=CHAT, body=QUESTION, token="user", method="POST", **headers):
    return bed.argusd.ask(method, f"/v1/services/{name}/{path}", body, token, headers)


def told(bed):
    return bed.ray.ask("GET", "serve")["told"]


def test_a_question_and_its_answer(bed):
    reply = ask(bed, "one", **{"X-Argus-Key": "mine", "X-Argus-User": "root", "X-Request-ID": "r-1", "Cookie": "a=b"})
    assert reply.status == 200 and reply.json()["app"] == "one-v1", reply
    assert reply.headers["X-Request-ID"] == "r-1" and reply.headers["Content-Security-Policy"].startswith("sandbox")
    up = told(bed)
    assert (up["x-argus-user"], up["x-request-id"], up["x-forwarded-prefix"]) == ("alice", "r-1", "/v1/services/one")
    assert "authorization" not in up and "cookie" not in up
    assert up["x-argus-key"] != "mine" and up["x-argus-key"] not in str(reply.headers)
    line = until(lambda: [x for x in bed.argusd.said().splitlines() if "service=one" in x], "the line of the request")
    assert "user=alice" in line[-1] and "tokens_in=3 tokens_out=2" in line[-1] and "6 times 7" not in bed.argusd.said()


def test_events_as_they_come(bed):
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", bed.argusd.port, timeout=PATIENCE)) as c:
        headers = {"Authorization": f"Bearer {bed.argusd.tokens['user']}", "Content-Type": "application/json"}
        body = {**QUESTION, "stream": True, "stream_options": {"include_usage": True}}
        c.request("POST", f"/v1/services/one/{CHAT}", json.dumps(body), headers)
        reply = c.getresponse()
        assert (reply.status, reply.getheader("Content-Type")) == (200, "text/event-stream")
        text = reply.read().decode()
        assert text.count("data: ") == 6 and text.endswith("data: [DONE]\n\n")
    until(lambda: "tokens_in=3 tokens_out=4" in bed.argusd.said(), "its tokens are counted")


def test_who_may(bed):
    assert ask(bed, "one", token=None).status == 401
    assert ask(bed, "one", token="admin").status == 200
    assert ask(bed, "nothing").status == 404
    stranger = bed.argusd.call("POST", "/v1/users", {"name": "stranger"}, token="admin")
    assert stranger.status == 201
    made = bed.argusd.call("POST", "/v1/tokens", {"user": "stranger"}, token="admin").json()["token"]
    bed.argusd.tokens["stranger"] = made
    mine = bed.argusd.call("POST", "/v1/projects", {"name": "closed", "members": ["alice"]}, token="admin")
    assert mine.status == 201
    hers, theirs = Listener(bed.argusd), Listener(bed.argusd, "stranger")
    bed.serve(model="sums", name="private", project="closed")
    bed.ready("private", 1)
    until(lambda: "private" in hers.told("services"), "she hears of her service")
    assert theirs.told("services") == set()
    hers.close(), theirs.close()
    assert ask(bed, "private").status == 200
    assert ask(bed, "private", token="stranger").status == 404
    assert bed.argusd.call("GET", "/v1/services/private:requests", token="stranger").status == 404
    bed.argusd.call("DELETE", "/v1/services/private", token="user")


def requests_of(bed, name, query=""):
    reply = bed.argusd.call("GET", f"/v1/services/{name}:requests{query}", token="user")
    assert reply.status == 200, reply
    return reply.json()["requests"]


def test_the_last_requests_are_listed_without_their_bodies(bed):
    bed.serve(model="sums", name="seen")
    bed.ready("seen", 1)
    assert requests_of(bed, "seen") == []
    assert ask(bed, "seen", f"{CHAT}?secret=word").status == 200
    for path in ("/v1/models\tuser=root", "/v1/models\x1b[2J", "/v1/models?a=\r\nX: y"):
        bed.act("seen", "ask", 400, path=path)  # it stands in a line of the log
    bed.act("seen", "ask", text="6 times 7?")
    asked, first = until(lambda: (got := requests_of(bed, "seen"))[1:] and got, "both are listed")
    assert (asked["user"], asked["method"], asked["path"]) == ("alice", "POST", "/v1/chat/completions")
    assert (first["path"], first["status"], first["tokens_out"]) == ("/v1/chat/completions", 200, 2)
    assert first["version"] == 1
    assert "secret" not in str(first) and requests_of(bed, "seen", "?failed=1") == []
    bed.ray.settings(serve_sick=["seen-v1"])
    assert ask(bed, "seen").status == 500
    bed.ray.settings(serve_sick=[])
    (failed,) = until(lambda: requests_of(bed, "seen", "?failed=1"), "what failed is kept by itself")
    assert failed["status"] == 500 and len(requests_of(bed, "seen")) == 3
    for _ in range(110):
        assert ask(bed, "seen", "v1/models", None, method="GET").status == 200
    assert len(until(lambda: len(got := requests_of(bed, "seen")) == 100 and got, "the last hundred")) == 100
    assert requests_of(bed, "seen", "?failed=1") == [failed], "many do not wash it away"
    reply = bed.argusd.call("GET", "/v1/services/seen:requests", token="admin")
    assert reply.status == 200
    spans = bed.page("seen")["spans"]
    assert len(spans) == 29 and all(a["at"] < b["at"] for a, b in zip(spans, spans[1:], strict=False))
    until(lambda: sum(s["requests"] for s in bed.page("seen")["spans"]) >= 113, "the spans that are over have them all")
    assert sum(s["errors"] for s in bed.page("seen")["spans"]) == 1
    bed.argusd.call("DELETE", "/v1/services/seen", token="user")


def rows_until(bed, name, n):
    return until(lambda: len(got := requests_of(bed, name)) >= n and got, f"{n} requests of {name} are listed")


def test_embeddings_pass_and_their_tokens_are_counted(bed):
    bed.ray.settings(serve_encoders=["words-v1"])  # it makes no text: it is checked by an embedding
    bed.serve(model="sums", name="words", log_share=1, tokens_per_minute=7)
    bed.ready("words", 1)
    reply = ask(bed, "words", "v1/embeddings", {"model": "words", "input": ["one", "two"]})
    assert reply.status == 200 and [d["index"] for d in reply.json()["data"]] == [0, 1], reply
    assert reply.json()["data"][0]["embedding"] == [0.6, 0.8]
    (row,) = rows_until(bed, "words", 1)
    assert (row["path"], row["tokens_in"], row["tokens_out"]) == ("/v1/embeddings", 6, 0)
    until(lambda: "path=/v1/embeddings" in bed.argusd.said(), "its line is written")
    (line,) = [x for x in bed.argusd.said().splitlines() if "path=/v1/embeddings" in x]
    assert "service=words" in line and "tokens_in=6 tokens_out=0" in line and "two" not in line
    refused = ask(bed, "words", body={**QUESTION, "model": "words"})
    assert (refused.status, refused.json()["error"]["code"]) == (400, "no_completions"), "the engine's own sentence"
    # Something of the seven is left: nine more are taken, and what follows waits.
    assert ask(bed, "words", "v1/embeddings", {"model": "words", "input": ["three"] * 3}).status == 200
    reply = ask(bed, "words", "v1/embeddings", {"model": "words", "input": "four"})
    assert (reply.status, reply.json()["code"]) == (429, "calls_tokens")
    bed.ray.settings(serve_encoders=[])
    bed.argusd.call("DELETE", "/v1/services/words", token="user")


def test_a_request_names_the_version_that_answers(bed):
    bed.serve(model="sums", name="two", keep="warm", log_share=1)
    bed.ready("two", 1)
    bed.serve(path="/v1/services/two:deploy")
    bed.ready("two", 2)

    def app(**named):
        return ask(bed, "two", **named).json()["app"]

    assert app() == "two-v2", "whoever names none gets what has the traffic"
    assert app(**{"Argus-Version": "1"}) == "two-v1" and app(**{"Argus-Version": "2"}) == "two-v2"
    assert "argus-version" not in told(bed), "it is ours, and goes no further"
    assert [r["version"] for r in rows_until(bed, "two", 3)] == [2, 1, 2]
    until(lambda: "service=two version=1 " in bed.argusd.said(), "the log names the version")
    assert bed.act("two", "ask", text="6 times 7?", version=1)["answer"]["app"] == "two-v1"
    assert bed.act("two", "ask", path="/v1/models", version=2)["version"] == 2
    assert bed.act("two", "ask", text="6 times 7?")["version"] == 2
    # Limits are the service's, whichever version answers: the one before has none of its own.
    bed.serve(path="/v1/services/two:deploy", requests_per_minute=1)
    bed.ready("two", 3)
    assert [ask(bed, "two", **{"Argus-Version": "2"}).status for _ in range(2)] == [200, 429]
    assert ask(bed, "two").status == 429
    bed.argusd.call("DELETE", "/v1/services/two", token="user")


def test_a_version_that_cannot_answer_is_refused_with_those_that_can(bed):
    bed.serve(model="sums", name="old", keep="cold")
    bed.ready("old", 1)
    bed.serve(path="/v1/services/old:deploy")
    bed.ready("old", 2)
    bed.wait("old", lambda p: not [v for v in p["versions"] if v["n"] == 1][0]["replicas"], "the one before is gone")
    cold = ask(bed, "old", **{"Argus-Version": "1"})
    assert (cold.status, cold.json()["code"]) == (409, "serve_version_not_ready")
    assert "v2 can be asked" in cold.json()["detail"] and "rollback old --version 1" in cold.json()["hint"]
    none = ask(bed, "old", **{"Argus-Version": "7"})
    assert (none.status, none.json()["code"]) == (404, "serve_version_none") and "v2" in none.json()["detail"]
    for wrong in ("0", "-1", "v1", "1.5", "one", "99999999999999999999"):
        reply = ask(bed, "old", **{"Argus-Version": wrong})
        assert (reply.status, reply.json()["code"]) == (400, "serve_version_text"), wrong
    assert bed.act("old", "ask", 409, text="6 times 7?", version=1)["code"] == "serve_version_not_ready"
    assert bed.act("old", "ask", 404, text="6 times 7?", version=7)["code"] == "serve_version_none"
    reply = bed.argusd.call("POST", "/v1/services/old:ask", {"text": "6 times 7?", "version": "two"}, token="user")
    assert reply.status in (400, 422), reply
    assert requests_of(bed, "old") == [], "none of them was a request of the service"
    assert ask(bed, "old").status == 200
    # Where what has the traffic has no replica that is ready either, none is named.
    bed.ray.settings(serve_sick=["old-v2"])
    bed.argusd.stop_job(replicas_of(bed.page("old"), 2)[0]["job"])
    bed.wait("old", lambda p: not p["ready"], "its replica is lost")
    cold = ask(bed, "old", **{"Argus-Version": "1"})
    assert (cold.status, cold.json()["code"]) == (409, "serve_version_not_ready")
    assert "none of another version is" in cold.json()["detail"], cold
    assert cold.json()["hint"] == "argus service status old says what it waits for"
    none = ask(bed, "old", **{"Argus-Version": "7"})
    assert (none.status, none.json()["code"]) == (404, "serve_version_none")
    assert "none of those that it has can be asked now" in none.json()["detail"], none
    bed.ray.settings(serve_sick=[])
    bed.ready("old", 2)
    bed.act("old", "stop")
    reply = ask(bed, "old", **{"Argus-Version": "1"})
    assert (reply.status, reply.json()["code"]) == (503, "serve_is_stopped")
    bed.argusd.call("DELETE", "/v1/services/old", token="user")


def test_series_of_a_service(bed):
    bed.serve(model="sums", name="series", requests_per_minute=2)
    bed.ready("series", 1)
    assert ask(bed, "series").status == 200
    bed.ray.settings(serve_sick=["series-v1"])
    assert ask(bed, "series").status == 500
    bed.ray.settings(serve_sick=[])
    assert ask(bed, "series").status == 429
    rows_until(bed, "series", 2)

    def page(token):
        reply = bed.argusd.call("GET", "/metrics", token=token)
        assert reply.status == 200, reply
        return reply.body.decode()

    lines = page("admin").splitlines()
    for says in (
        'replicas{service="series",state="wanted"} 1',
        'replicas{service="series",state="ready"} 1',
        'requests_total{service="series",code="2xx"} 1',
        'requests_total{service="series",code="5xx"} 1',
        'requests_total{service="series",code="refused"} 1',
        'request_seconds_count{service="series"} 2',
        'tokens_total{service="series",kind="prompt"} 3',
        'tokens_total{service="series",kind="answer"} 2',
    ):
        assert f"argus_service_{says}" in lines, says
    assert 'service="series"' in page("user")
    assert bed.argusd.call("POST", "/v1/users", {"name": "outsider"}).status == 201
    token = bed.argusd.call("POST", "/v1/tokens", {"user": "outsider"}).json()["token"]
    assert "argus_build_info" in page(token) and 'service="' not in page(token), "none of them is his"
    bed.argusd.call("DELETE", "/v1/services/series", token="user")
    until(lambda: 'service="series"' not in page("admin"), "its series go with it")


def test_addresses_stay_below_the_service(bed):
    for path in ("../../v1/users", "a/../../x", "%2e%2e/x", "..%2fx"):
        assert ask(bed, "one", path).status in (400, 404), path
    reply = ask(bed, "one", "docs/a%20b?x=%2F", None, method="GET")
    assert reply.status == 200


def test_so_many_requests_and_tokens_in_a_minute(bed):
    bed.serve(model="sums", name="few", requests_per_minute=1)  # the next one is let through a minute later
    bed.ready("few", 1)
    assert ask(bed, "few").status == 200
    reply = ask(bed, "few")
    assert (reply.status, reply.json()["code"]) == (429, "calls_too_many")
    assert 1 <= int(reply.headers["Retry-After"]) <= 61
    assert ask(bed, "few", token="admin").status == 200  # another one has a minute of his own
    # An answer costs four tokens: four minutes until it is paid for.
    bed.serve(path="/v1/services/few:deploy", requests_per_minute=0, tokens_per_minute=1)
    bed.ready("few", 2)
    assert [ask(bed, "few").status for _ in range(2)] == [200, 429]
    assert ask(bed, "few").json()["code"] == "calls_tokens"
    until(lambda: bed.page("few")["refused_per_minute"] > 0, "what was refused is on its page")
    bed.argusd.call("DELETE", "/v1/services/few", token="user")


def test_what_is_tried_counts_as_any_other_request(bed):
    bed.serve(model="sums", name="tried", requests_per_minute=2, log_share=1)
    bed.ready("tried", 1)
    reply = bed.argusd.call("POST", "/v1/services/tried:ask", {"text": "6 times 7?", "path": "/x"}, token="user")
    assert (reply.status, reply.json()["code"]) == (400, "serve_ask"), "what is no request does not count"
    bed.act("tried", "ask", text="6 times 7?")
    assert ask(bed, "tried").status == 200
    refused = bed.argusd.call("POST", "/v1/services/tried:ask", {"text": "6 times 7?"}, token="user")
    assert (refused.status, refused.json()["code"]) == (429, "calls_too_many")
    assert 1 <= int(refused.headers["Retry-After"]) <= 61
    assert ask(bed, "tried").json()["code"] == "calls_too_many"
    tried, passed = sorted(rows_until(bed, "tried", 2), key=lambda r: r["at"])
    assert {(r["user"], r["tokens_in"], r["tokens_out"], r["tokens_estimated"]) for r in (tried, passed)} == {
        ("alice", 3, 2, False)
    }
    lines = until(
        lambda: len(got := [x for x in bed.argusd.said().splitlines() if "service=tried " in x]) == 2 and got,
        "a line of each in the log",
    )
    assert all("tokens_in=3 tokens_out=2 estimated=no" in x and "6 times 7" not in x for x in lines)
    # Its tokens are of the same minute, too, also where the answer is an event stream.
    bed.serve(path="/v1/services/tried:deploy", requests_per_minute=0, tokens_per_minute=1)
    bed.ready("tried", 2)
    bed.act("tried", "ask", path=f"/{CHAT}", body={**QUESTION, "stream": True})
    assert ask(bed, "tried").json()["code"] == "calls_tokens"
    assert bed.act("tried", "ask", 429, text="6 times 7?")["code"] == "calls_tokens"
    row = rows_until(bed, "tried", 3)[0]
    assert row["tokens_estimated"] and row["tokens_out"] == 4 and row["tokens_in"] > 0
    bed.argusd.call("DELETE", "/v1/services/tried", token="user")


def test_a_stream_that_says_no_usage_is_estimated(bed):
    bed.serve(model="sums", name="guess", log_share=1, tokens_per_minute=100)
    bed.ready("guess", 1)
    said = {**QUESTION, "stream": True, "messages": [{"role": "user", "content": "how are you? " * 40}]}
    assert ask(bed, "guess", body=said).body.endswith(b"data: [DONE]\n\n")
    (row,) = rows_until(bed, "guess", 1)
    assert row["tokens_in"] == (len(json.dumps(said)) + 3) // 4 > 100, "four bytes make a token"
    assert row["tokens_out"] == 4 and row["tokens_estimated"] is True
    lines = until(lambda: [x for x in bed.argusd.said().splitlines() if "service=guess " in x], "the request's line")
    assert f"tokens_in={row['tokens_in']} tokens_out=4 estimated=yes" in lines[0]
    assert ask(bed, "guess").json()["code"] == "calls_tokens", "its prompt was more than a minute's worth"
    bed.argusd.call("DELETE", "/v1/services/guess", token="user")


def test_a_body_that_is_too_large(bed):
    bed.serve(model="sums", name="small", max_body="1KiB")
    bed.ready("small", 1)
    assert ask(bed, "small").status == 200
    assert bed.act("small", "ask", 413, text="x" * 2000)["code"] == "call_body_large"
    reply = ask(bed, "small", body={**QUESTION, "pad": "x" * 2000})
    assert (reply.status, reply.json()["code"]) == (413, "call_body_large")
    bed.argusd.call("DELETE", "/v1/services/small", token="user")


def test_a_stopped_service_says_so(bed):
    bed.serve(model="sums", name="off")
    bed.ready("off", 1)
    bed.act("off", "stop")
    reply = ask(bed, "off")
    assert (reply.status, reply.json()["code"]) == (503, "serve_is_stopped")
    bed.argusd.call("DELETE", "/v1/services/off", token="user")


def test_no_request_fails_while_versions_change(bed):
    bed.serve(model="sums", name="busy", keep="warm")
    bed.ready("busy", 1)
    over, seen, failed = threading.Event(), set(), []

    def client():
        while not over.is_set():
            reply = ask(bed, "busy")
            if reply.status == 200:
                seen.add(reply.json()["app"])
            else:
                failed.append((reply.status, reply.body))

    clients = [threading.Thread(target=client) for _ in range(4)]
    for c in clients:
        c.start()
    try:
        bed.serve(path="/v1/services/busy:deploy", replicas=2)
        bed.ready("busy", 2, replicas=2)
        until(lambda: any(a.startswith("busy-v2") for a in seen), "the new version has the traffic")
        bed.act("busy", "rollback")
        bed.act("busy", "rollback", version=2)
        bed.act("busy", "scale", replicas=1)
        bed.ready("busy", 2)
    finally:
        over.set()
        for c in clients:
            c.join(PATIENCE)
    assert failed == [] and {a.split("-r")[0] for a in seen} == {"busy-v1", "busy-v2"}
    bed.argusd.call("DELETE", "/v1/services/busy", token="user")
