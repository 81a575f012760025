# SPDX-License-Identifier: Apache-2.0
"""Every field that a user, a job, a node or Ray can fill tries to be markup, on the page that shows it; addresses that
somebody else made try it too; nobody frames a page, and what others have is not there, whatever the address says."""

import json
import sys
import urllib.parse

import broken
import pytest
from test_pages import PAGES
from webbed import CHROMIUM, World

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]
HIDDEN = "\u202e\u200b\x1b\x07"
MARKS = (
    "main img:not(.cm-widgetBuffer):not(.picture), main script, main iframe, main object, main svg[onload],"
    " main [onclick], main [onerror], a[href^='javascript' i], a[href^='data' i]"
)
WIDE = 10 << 20


def text_of(field):
    return f"<img src=x onerror=alert('{field}')> \u202egnp.exe \"'><script>alert('{field}')</script>"


def shown_as(field):
    return f"onerror=alert('{field}')"


# What fills a field, and the page that shows it.
FIELDS = {
    "job": "/jobs",
    "metric": "/jobs/{measured}",
    "key": "/compare?jobs={measured},{failed}&spec=all",
    "ack": "/alerts?alert={alert}",
    "silence": "/alerts?view=silences",
    "user": "/people?view=users&user=alice",
    "project": "/people?project=default",
    "token": "/settings",
    "agent": "/settings?sessions=all",
    "foreign": "/nodes?view=foreign",
    "actor": "/nodes?view=actors",
    "group": "/nodes?view=groups",
    "column": "/data/odd@1",
    "row": "/data/odd@1",
    "architecture": "/models/odd@1",
}
ALIVE = {"state": "ALIVE", "job_id": "09000000", "node_id": None, "pid": 7, "ray_namespace": "x"}
GROUP = {"state": "CREATED", "is_detached": False, "creator_job_id": "09000000", "bundles": [], "stats": None}


def alert_of(argusd, job):
    def known():
        return [x["id"] for x in argusd.get("/v1/alerts")["alerts"] if x["name"] == job]

    return until(known, "an alert of it")[0]


class HostileWorld(World):
    def fill(self):
        super().fill()
        self.told()
        self.brought()
        self.measured()

    def ok(self, method, path, body, token="admin", **head):
        reply = self.argusd.call(method, path, body, token=token, **head)
        assert reply.status in (200, 201), reply
        return reply.json()

    def told(self):
        """What people write of people, alerts and access, and what Ray tells of others."""
        self.ok("PATCH", "/v1/users/alice", {"note": text_of("user")})
        self.ok("PATCH", "/v1/projects/default", {"note": text_of("project")})
        self.ok("POST", "/v1/tokens", {"name": text_of("token")[:60]}, "user")
        login = {"token": self.argusd.tokens["user"]}
        self.ok("POST", "/v1/session", login, None, User_Agent=f"<img src=x {shown_as('agent')}>")
        rule = {"of": "node", "when": "disk_free < 1GiB", "text": text_of("rule"), "fix": text_of("rule")}
        self.ok("PUT", "/v1/alert_rules/odd", rule)
        broken_job = self.argusd.submit("exit 3", token="user", name=text_of("job"))
        self.argusd.wait_over(broken_job)
        self.jobs["alert"] = alert_of(self.argusd, broken_job)
        self.ok("POST", f"/v1/alerts/{self.jobs['alert']}:ack", {"note": text_of("ack")})
        self.ok("POST", "/v1/silences", {"names": ["nobody"], "note": text_of("silence"), "for": "1h"})
        self.ray.add_job(submission_id=text_of("foreign"), start_time=1_764_000_000_000)
        self.ray.world(
            actors=[{"actor_id": "a1", "class_name": text_of("actor"), "name": text_of("actor"), **ALIVE}],
            groups=[{"placement_group_id": "g1", "name": text_of("group"), **GROUP}],
        )

    def brought(self):
        mine = self.argusd.root / "users/alice"
        rows = [{text_of("column"): text_of("row"), "prompt": "x"} for _ in range(9)]
        (mine / "datasets/odd").mkdir()
        (mine / "datasets/odd/train.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        config = {"model_type": "qwen2", "architectures": [text_of("architecture")]}
        broken.make_model(mine / "models/odd", **{"config.json": json.dumps(config)})
        for what in ("datasets", "models"):
            body = {"name": "odd", "source": str(mine / what / "odd"), "in_place": True}
            self.ok("POST", f"/v1/{what}", body, "user")
            until(lambda w=what: self.argusd.get(f"/v1/{w}/odd", token="user")["state"] == "ready", f"{what} are there")

    def measured(self):
        """A job that names its metrics and its environment, and writes a line of 10 MB."""
        wide = f"{sys.executable} -c \"print('wide ' + 'w' * {WIDE})\"; "
        holds, _ = self.holds()
        env = {"KEY": text_of("key"), "SAID": "after the wide line\n"}
        job = self.submit("measured", wide + holds, name="measured", env=env)
        self.argusd.wait_state(job, "RUNNING")
        with open(self.argusd.job_dir(job) / "attempts/1/metrics.jsonl", "a") as f:
            for step in range(1, 4):
                f.write(json.dumps({"step": step, "data": {text_of("metric").replace("/", " "): step}}) + "\n")
        self.argusd.wait_job(job, lambda j: j["step"] == 3, "is at its step")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with HostileWorld(tmp_path_factory.mktemp("hostile")) as w:
        yield w
        w.gate.write_text("")


def stays_text(page):
    assert page.evaluate("window.__alerts || []") == []
    assert page.locator(MARKS).count() == 0, page.locator(MARKS).evaluate_all("all => all.map((e) => e.outerHTML)")
    shown = page.inner_text("body")
    assert not set(HIDDEN) & set(shown), "what hides or turns a text is made visible"
    assert [w for w in page.wrong if "Content Security Policy" in w or "another host" in w] == []
    return shown


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_is_shown_as_it_is(browser, world, field):
    token = "user" if field in ("token", "agent") else "admin"
    page = browser.open(FIELDS[field].format(**world.jobs), "main h1", token=token)
    page.wait_for_selector(f"main :text(\"{shown_as(field)}\")", state="attached")
    stays_text(page)
    page.context.close()


def test_a_line_of_ten_megabytes(browser, world):
    page = browser.open(f"/jobs/{world.jobs['measured']}", "#log li:has-text('after the wide line')")
    page.wait_for_selector("#log li:has-text('bytes more')")
    assert len(page.inner_text("#log")) < 100_000
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_an_address_of_somebody_else(browser, world, name):
    """Each part of a page's address that it reads, and some that it does not, tries to be markup."""
    path, _, search = PAGES[name][0].format(**world.jobs).partition("?")
    known = dict(urllib.parse.parse_qsl(search))
    evil = text_of("address")
    known |= dict.fromkeys([*known, *"q view of log from job show name with at sort spec by next".split()], evil)
    quoted = urllib.parse.quote(evil, safe="")
    page = browser.page()
    for at in (f"{path}?{urllib.parse.urlencode(known)}#{quoted}", f"{path}/{quoted}"):
        page.goto(world.argusd.url + at)
        page.wait_for_selector("main h1, .blank, main .panel")
        stays_text(page)
        assert page.url.startswith(world.argusd.url)
    page.context.close()


# All pages come with one answer's headers: by day some of them are framed.
BY_DAY = ("overview", "job", "files", "service", "notebook")
FRAMED = [pytest.param(name, marks=[] if name in BY_DAY else pytest.mark.nightly) for name in PAGES]


@pytest.mark.parametrize("name", FRAMED)
def test_nobody_frames_a_page(browser, world, name):
    """Clickjacking: another site's page shows ours in a frame, and there is nothing in it to be clicked."""
    page = browser.page()
    page.route("http://elsewhere.test/", lambda r: r.fulfill(content_type="text/html", body=frame_of(world, name)))
    page.goto("http://elsewhere.test/")
    page.wait_for_function("() => window.__loaded")
    assert all(f.url.startswith(("http://elsewhere.test", "chrome-error:")) for f in page.frames)
    told = page.request.get(world.argusd.url + PAGES[name][0].format(**world.jobs)).headers
    assert "frame-ancestors 'none'" in told["content-security-policy"] and told["x-frame-options"] == "DENY"
    page.context.close()


def frame_of(world, name):
    url = world.argusd.url + PAGES[name][0].format(**world.jobs).replace("&", "&amp;")
    return f"<iframe src='{url}' onload='window.__loaded = 1'></iframe>"


ASKS = "u => fetch(u, {method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}'}).then(() => 0, () => 0)"


def test_a_page_of_another_site_changes_nothing(browser, world):
    """CSRF: its forms and requests reach argusd from a browser that is logged in, and nothing comes of them."""
    page = browser.page()
    job, before = world.jobs["waits"], len(world.argusd.all_jobs())
    body = """<form method=post enctype='text/plain'><input name='{"workload":"ray","x":"' value='"}'></form>"""
    page.route("http://elsewhere.test/", lambda r: r.fulfill(content_type="text/html", body=body))
    for path in (f"/v1/jobs/{job}:stop", "/v1/jobs", "/v1/session", "/v1/tokens", "/v1/presets/strange"):
        page.goto("http://elsewhere.test/")
        page.evaluate(ASKS, world.argusd.url + path)
        with page.expect_navigation():
            page.evaluate(f"document.forms[0].action = '{world.argusd.url}{path}'; document.forms[0].submit()")
    assert world.argusd.job(job)["state"] == "QUEUED" and len(world.argusd.all_jobs()) == before
    assert world.argusd.call("GET", "/v1/presets/strange", token="user").status == 200
    page.goto(world.argusd.url + "/jobs")
    page.wait_for_selector(".vrow")  # and she is still logged in
    page.context.close()


def test_a_planted_session_is_not_taken(browser, world):
    """Fixation: the cookie that somebody put there before the login opens nothing after it."""
    page = browser.page(token=None)
    login = world.argusd.call("POST", "/v1/session", {"token": world.argusd.tokens["viewer"]}, token=None)
    name, _, planted = login.headers["Set-Cookie"].split(";")[0].partition("=")
    page.context.add_cookies([{"name": name, "value": planted, "url": world.argusd.url}])
    page.goto(world.argusd.url + "/settings")
    page.wait_for_selector(".rail .foot:has-text('victor')")
    page.click(".rail .foot button")
    page.fill("input[name=token]", world.argusd.tokens["user"])
    page.press("input[name=token]", "Enter")
    page.wait_for_selector(".rail .foot:has-text('alice')")
    (cookie,) = page.context.cookies()
    assert cookie["value"] != planted
    assert world.argusd.call("GET", "/v1/whoami", token=None, Cookie=f"{name}={planted}").status == 401
    page.context.close()


# What is the admin's alone, in alice's addresses: her pages have nothing of it.
OF_OTHERS = {
    "/jobs/{other}": "long-context",
    "/jobs/{other}?attempt=1&log=a&from=all": "long-context",
    "/queue?why={other}": "long-context",
    "/compare?jobs={other},{failed}": "long-context",
    "/submit?from={other}": "long-context",
    "/events?job={other}": "long-context",
    "/data/secret@1": "secret rows",
    "/models/secret@1": "secret rows",
    "/files?path=users/admin/code&show=secret.py": "secret rows",
    "/files?path=users/alice/../admin/code": "secret rows",
    "/files?path=jobs/{other}": "long-context",
    "/snapshots?name=hidden@1": "secret rows",
    "/presets?name=theirs:hidden": "secret rows",
    "/people?view=users&user=admin": "secret note",
    "/people?project=theirs": "secret note",
    "/alerts?alert={other_alert}": "secret alert",
}


@pytest.fixture(scope="module")
def another(world):
    """Things of the admin and of a project that alice is no member of."""
    a = world.argusd
    world.ok("POST", "/v1/projects", {"name": "theirs", "note": "secret note", "members": ["admin"]})
    world.ok("PATCH", "/v1/users/admin", {"note": "secret note"})
    preset = {"description": "secret rows", "spec": {"workload": "ray", "entrypoint": "secret rows"}}
    world.ok("PUT", "/v1/presets/hidden?project=theirs", preset)
    own = a.root / "users/admin"
    (own / "datasets/secret").mkdir(parents=True)
    (own / "datasets/secret/train.jsonl").write_text('{"prompt": "secret rows"}\n')
    (own / "code").mkdir(exist_ok=True)
    (own / "code/secret.py").write_text("secret rows\n")
    broken.make_model(own / "models/secret", **{"config.json": '{"architectures": ["secret rows"]}'})
    for what in ("datasets", "models"):
        world.ok("POST", f"/v1/{what}", {"name": "secret", "source": str(own / what / "secret"), "in_place": True})
        until(lambda w=what: a.get(f"/v1/{w}/secret")["state"] == "ready", f"{what} are there")
    failed = a.submit("exit 4", token="admin", name="secret alert")
    a.wait_over(failed)
    return {**world.jobs, "other_alert": alert_of(a, failed)}


@pytest.mark.parametrize("path", OF_OTHERS)
def test_what_others_have_is_not_there(browser, world, another, path):
    page = browser.open(path.format(**another), "main h1, .blank, main .panel")
    page.wait_for_selector("main .loading", state="detached")
    assert OF_OTHERS[path] not in page.inner_text("body"), page.inner_text("main")[:600]
    assert world.argusd.get("/v1/whoami", token="user")["user"] == "alice"
    page.context.close()
