# SPDX-License-Identifier: Apache-2.0
"""Sessions of browsers: begun with a token, opened by a cookie, and what keeps other sites and other people out."""

import http.cookies

import pytest
from fakeray import FakeRay
from preload import needs_compiler
from wallclock import WallClock

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd

COOKIE = "argus_session"


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("sessions"), ray.url, "session: {per_user: 3}") as a:
        yield a


class Browser:
    """What a browser keeps and sends: the cookie, and the csrf word that our pages learned."""

    def __init__(self, argusd, token="user", **head):
        self.argusd = argusd
        self.login = argusd.call(
            "POST", "/v1/session", {"token": argusd.tokens.get(token, token)}, token=None, User_Agent="test", **head
        )
        self.cookie = http.cookies.SimpleCookie(self.login.headers.get("Set-Cookie", ""))
        self.csrf = self.login.json().get("csrf") if self.login.status == 201 else None

    @property
    def text(self):
        return f"{COOKIE}={self.cookie[COOKIE].value}"

    def call(self, method, path, body=None, csrf=True, **head):
        head = {"Cookie": self.text, **head}
        if csrf:
            head["Argus_CSRF"] = self.csrf if csrf is True else csrf
        return self.argusd.call(method, path, body, token=None, **head)

    def works(self):
        return self.call("GET", "/v1/whoami").status == 200


def test_a_link_logs_in_once(argusd):
    made = argusd.call("POST", "/v1/session:link", {}, token="user")
    assert made.status == 201 and made.headers["Cache-Control"] == "no-store", made
    link, path = made.json()["link"], made.json()["path"]
    assert path == f"/#login={link}", "a fragment is sent to no server"
    assert argusd.call("GET", f"/?login={link}", token=None, Accept_Encoding="gzip").status in (200, 404)
    both = argusd.call("POST", "/v1/session", {"link": link, "token": argusd.tokens["user"]}, token=None)
    assert both.status == 400, "one of the two"
    foreign = argusd.call("POST", "/v1/session", {"link": link}, token=None, Sec_Fetch_Site="cross-site")
    assert foreign.status == 403, "and it is not used up by another site"
    login = argusd.call("POST", "/v1/session", {"link": link}, token=None)
    assert (login.status, login.json()["user"], login.json()["role"]) == (201, "alice", "user")
    cookie = http.cookies.SimpleCookie(login.headers["Set-Cookie"])[COOKIE].value
    assert argusd.call("GET", "/v1/whoami", token=None, Cookie=f"{COOKIE}={cookie}").json()["user"] == "alice"
    again = argusd.call("POST", "/v1/session", {"link": link}, token=None)
    assert (again.status, again.json()["code"]) == (401, "login_link_over")
    assert argusd.call("POST", "/v1/session", {"link": "x" * 43}, token=None).status == 401
    assert link not in argusd.log.read_text()


def test_a_token_is_shown_once_and_a_cookie_opens_the_api(argusd):
    b = Browser(argusd)
    assert b.login.status == 201, b.login
    morsel = b.cookie[COOKIE]
    assert morsel["httponly"] and morsel["samesite"] == "Strict" and morsel["path"] == "/" and not morsel["domain"]
    assert not morsel["secure"], "plain HTTP: a browser would throw a secure cookie away"
    page = b.login.json()
    assert page["user"] == "alice" and page["role"] == "user" and morsel.value not in b.login.body.decode()
    assert b.call("GET", "/v1/whoami").json()["user"] == "alice"
    assert b.call("GET", "/v1/session").json()["csrf"] == b.csrf, "a page that is loaded again learns the word again"
    assert argusd.call("GET", "/v1/whoami", token="user").status == 200, "a bearer token works as before"


def test_a_wrong_token_makes_no_session(argusd):
    for token in ("argus_" + "x" * 43, ""):
        b = Browser(argusd, token)
        assert b.login.status == 401 and "Set-Cookie" not in b.login.headers, b.login
    assert argusd.call("POST", "/v1/session", {}, token=None).status == 400
    assert argusd.call("POST", "/v1/session", {"token": "x", "more": 1}, token=None).status == 400


def test_a_cookie_alone_changes_nothing(argusd):
    """CSRF: a page of another site can make the browser send the cookie, and cannot know the word."""
    b = Browser(argusd)
    spec = Argusd.spec("true")
    for csrf in (False, "", "0" * 64, b.csrf[:-1]):
        refused = b.call("POST", "/v1/jobs", spec, csrf=csrf)
        assert refused.status == 401 and "Argus-CSRF" in refused.json()["detail"], refused
    other = Browser(argusd, "admin")
    assert b.call("POST", "/v1/jobs", spec, csrf=other.csrf).status == 401, "the word of another session"
    assert b.call("POST", "/v1/jobs", spec, Sec_Fetch_Site="cross-site").status == 401
    assert b.call("DELETE", "/v1/session", csrf=False).status == 401
    assert b.works(), "and it is still logged in"
    assert b.call("POST", "/v1/jobs", spec, Sec_Fetch_Site="same-origin").status == 201


def test_a_login_is_not_made_for_another_site(argusd):
    b = Browser(argusd, Sec_Fetch_Site="cross-site")
    assert b.login.status == 403 and "Set-Cookie" not in b.login.headers
    form = argusd.call("POST", "/v1/session", "token=x", token=None, Content_Type="text/plain")
    assert form.status == 415, "a form of another site cannot send JSON"


def test_a_login_never_takes_over_a_cookie(argusd):
    """Fixation: whatever cookie a browser was given before, the login makes a new one and the old one ends."""
    mine = Browser(argusd, "admin")
    theirs = Browser(argusd, "user", Cookie=mine.text)
    assert theirs.text != mine.text and theirs.works() and not mine.works()
    planted = Browser(argusd, "user", Cookie=f"{COOKIE}=chosen-by-another")
    assert planted.cookie[COOKIE].value != "chosen-by-another" and planted.works()


def test_two_cookies_of_the_name_open_nothing(argusd):
    a, b = Browser(argusd), Browser(argusd, "admin")
    assert a.call("GET", "/v1/whoami", Cookie=f"{a.text}; {b.text}").status == 401
    assert a.call("GET", "/v1/whoami", Cookie=f"x=1; {a.text}; y=2").json()["user"] == "alice"
    assert a.call("GET", "/v1/whoami", Cookie=f"{COOKIE}={'x' * 4000}").status == 401


def test_sessions_are_listed_and_ended(argusd):
    mine, other = Browser(argusd), Browser(argusd)
    listed = mine.call("GET", "/v1/sessions").json()["sessions"]
    assert {s["user"] for s in listed} == {"alice"} and len(listed) >= 2
    assert "hash" not in listed[0] and other.csrf not in str(listed) and listed[0]["agent"] == "test"
    gone = other.login.json()["id"]
    assert mine.call("DELETE", f"/v1/sessions/{gone}").status == 200
    assert not other.works() and mine.works()
    assert mine.call("DELETE", f"/v1/sessions/{gone}").status == 404
    assert any(e["kind"] == "session_ended" for e in argusd.events())
    everyone = argusd.get("/v1/sessions?all=1", token="admin")["sessions"]
    assert mine.login.json()["id"] in {s["id"] for s in everyone}


def test_an_admin_lists_the_sessions_of_one_user(argusd):
    mine, theirs = Browser(argusd, "admin"), Browser(argusd)
    listed = mine.call("GET", "/v1/sessions?user=alice").json()["sessions"]
    assert {s["user"] for s in listed} == {"alice"} and theirs.login.json()["id"] in {s["id"] for s in listed}
    assert mine.call("GET", "/v1/sessions?user=alice&all=1").json()["sessions"] == listed, "user= is the narrower one"
    own = {s["id"] for s in theirs.call("GET", "/v1/sessions").json()["sessions"]}
    asked = theirs.call("GET", "/v1/sessions?user=alice").json()["sessions"]
    assert {s["id"] for s in asked} == own, "one's own by name"
    refused = theirs.call("GET", f"/v1/sessions?user={mine.login.json()['user']}")
    assert refused.status in (403, 404), refused


def test_nobody_ends_the_session_of_another(argusd):
    admin, alice, victor = Browser(argusd, "admin"), Browser(argusd), Browser(argusd, "viewer")
    theirs = admin.login.json()["id"]
    assert alice.call("DELETE", f"/v1/sessions/{theirs}").status == 404, "not even that it is there"
    every, own = (alice.call("GET", f"/v1/sessions{query}").json()["sessions"] for query in ("?all=1", ""))
    assert [s["id"] for s in every] == [s["id"] for s in own]
    assert victor.call("DELETE", f"/v1/sessions/{theirs}").status in (403, 404)
    assert admin.works()
    assert victor.call("DELETE", f"/v1/sessions/{victor.login.json()['id']}").status == 200, "his own"


def test_log_out(argusd):
    b = Browser(argusd)
    out = b.call("DELETE", "/v1/session")
    assert out.status == 200 and "Max-Age=0" in out.headers["Set-Cookie"]
    assert not b.works()
    assert argusd.call("DELETE", "/v1/session", token="user").status == 404, "a token is no session"
    assert argusd.call("GET", "/v1/session", token="user").status == 404


def test_a_session_ends_with_its_token(argusd):
    token = argusd.call("POST", "/v1/tokens", {"name": "browser"}, token="user").json()
    b = Browser(argusd, token["token"])
    stream = argusd.stream("/v1/events?follow=1", token=None, Cookie=b.text)
    assert b.works()
    assert argusd.call("DELETE", f"/v1/tokens/{token['id']}", token="user").status == 200
    refused = b.call("GET", "/v1/whoami")
    assert refused.status == 401, refused
    argusd.submit("true", token="user")
    for _ in stream:  # it ends, with the next event at the latest
        pass
    assert b.login.json()["id"] not in {s["id"] for s in argusd.get("/v1/sessions", token="user")["sessions"]}


def test_one_user_has_so_many_and_the_least_used_goes(argusd):
    first, *others = (Browser(argusd, "admin") for _ in range(4))
    assert not first.works() and all(b.works() for b in others)


def test_sessions_survive_a_restart(argusd):
    b = Browser(argusd)
    argusd.restart()
    assert b.works() and b.call("POST", "/v1/jobs", Argusd.spec("true")).status == 201


@needs_compiler
@pytest.mark.parametrize("key", ["idle", "longest"])
def test_a_session_ends_by_the_clock(tmp_path, key):
    """Unused for `idle`, or used all the time for `longest`."""
    clock = WallClock(tmp_path)
    with FakeRay() as ray, Argusd(tmp_path, ray.url, f"session: {{{key}: 1h}}") as a:
        a.stop()
        a.env = clock.env()
        a.start()
        b = Browser(a)
        link = a.call("POST", "/v1/session:link", {}, token="user").json()["link"]
        clock.jump(40 * 60)
        assert b.works()
        assert a.call("POST", "/v1/session", {"link": link}, token=None).status == 401, "it lives ten minutes"
        clock.jump(40 * 60)
        last = b.works()
        assert last == (key == "idle"), "a use puts the idle end off, and the longest life off by nothing"
        clock.jump(80 * 60)
        refused = b.call("GET", "/v1/whoami")
        assert refused.status == 401 and "ended" in refused.json()["detail"]


def test_the_cookie_is_not_in_the_store(argusd):
    b = Browser(argusd)
    argusd.call("POST", "/v1/jobs", Argusd.spec("true"), token="user")
    secret = b.cookie[COOKIE].value.encode()
    for path in argusd.state_dir.glob("*"):
        if path.is_file():
            assert secret not in path.read_bytes(), path
