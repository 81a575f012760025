# SPDX-License-Identifier: Apache-2.0
"""What one user chose reaches another: names in tables that a spreadsheet opens, links that log in, a download whose
reader may read no more, a pattern that never ends."""

import csv
import http.client
import io
import json
import urllib.parse

import pytest
import standin
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd
FORMULA = '=HYPERLINK("http://evil","open")'
LARGE = 1 << 30  # far more than sockets and queues hold


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("answers"), ray.url) as argusd:
        standin.make_world(argusd.root)
        until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "the root is ready")
        argusd.call("POST", "/v1/users", {"name": "bob"})
        argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
        until((argusd.root / "users/bob/code").exists, "his directories are made")
        yield argusd


def test_the_name_of_a_metric_is_no_formula(w):
    gate = w.root / "common/gate-formula"
    job = w.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done")
    w.wait_state(job, "RUNNING")
    with (w.job_dir(job) / "attempts/1/metrics.jsonl").open("a") as f:
        f.write(json.dumps({"step": 1, "data": {FORMULA: 1.5, "critic/score/mean": 0.5}}) + "\n")
    w.wait_job(job, lambda j: j["step"] == 1, "is at step 1")
    text = w.call("GET", f"/v1/jobs/{job}/metrics?format=csv", token="user").body.decode()
    gate.write_text("")
    w.wait_over(job)
    head = next(csv.reader(io.StringIO(text)))
    assert sorted(head[1:]) == sorted(["'" + FORMULA, "critic/score/mean"]), head


def test_who_makes_many_links_ends_none_of_others(w):
    hers = w.call("POST", "/v1/session:link", {}, token="user").json()["link"]
    his = [w.call("POST", "/v1/session:link", {}, token="bob").json()["link"] for _ in range(300)]
    assert w.call("POST", "/v1/session", {"link": his[0]}, token=None).status == 401, "his own oldest went"
    assert w.call("POST", "/v1/session", {"link": his[-1]}, token=None).status == 201
    login = w.call("POST", "/v1/session", {"link": hers}, token=None)
    assert (login.status, login.json()["user"]) == (201, "alice")


def short_token(w, user, how):
    made = w.call("POST", "/v1/tokens", {"user": user}).json()
    if how == "revoked":
        return made["token"], lambda: w.call("DELETE", f"/v1/tokens/{made['id']}")
    return made["token"], lambda: w.call("PATCH", f"/v1/users/{user}", {"disabled": True})


@pytest.fixture
def bob(w):
    yield "bob"
    w.call("PATCH", "/v1/users/bob", {"disabled": False})


@pytest.mark.parametrize("how", ["revoked", "disabled"])
def test_a_download_ends_with_the_right_to_it(w, bob, how):
    with (w.root / "users/bob" / f"large-{how}").open("wb") as f:
        f.truncate(LARGE)
    token, end = short_token(w, bob, how)
    c = w.open()
    try:
        c.request("GET", f"/v1/files/content?path=users/bob/large-{how}", headers=w.head(token, {}))
        raw = c.getresponse()
        assert raw.status == 200 and len(raw.read(1 << 20)) == 1 << 20
        assert end().status in (200, 204)
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            raw.read()
    finally:
        c.close()


def test_a_pattern_that_repeats_without_end(w):
    """PCRE2 counts no step of it: one such line would hold a search for many seconds, two searches all others'."""
    job = w.submit("head -c 300000 /dev/zero | tr '\\0' a; echo; echo aaZ")
    w.wait_over(job)
    found, cursor = [], ""
    while cursor is not None:
        page = w.call("GET", f"/v1/jobs/{job}/logs?grep=a%7B1,65000%7D%3F%5BXZ%5D{cursor}", token="user")
        assert page.status == 200, page
        found += [(hit["job"], hit["text"]) for hit in page.json()["hits"]]
        after = page.json()["next_cursor"]
        cursor = after and "&cursor=" + urllib.parse.quote(after)
    assert found == [(job, "aaZ")]
