# SPDX-License-Identifier: Apache-2.0
"""Who makes messages in a loop holds up nobody: what is severest goes first, each user has a share."""

import datetime
import json
import threading
import time

from receiver import Receiver
from test_alerts import house

from argusd import needs_argusd, until

pytestmark = needs_argusd
USERS, JOBS = 50, 6
ARRIVES_WITHIN = 60  # seconds from an incident's begin to the request that its receiver takes, by argusd's own clock


def people(argusd):
    """Tokens of users who may do nothing that any user may not."""
    for k in range(USERS):
        assert argusd.call("POST", "/v1/users", {"name": f"u{k}", "role": "user"}).status == 201
        made = argusd.call("POST", "/v1/tokens", {"user": f"u{k}", "name": "first"})
        assert made.status == 201
        yield made.json()["token"]


def misbehave(argusd, token):
    """Jobs that fail or are stopped, all of which ask for messages; silences and lists between them."""
    for k in range(JOBS):
        job = argusd.post({**argusd.spec("exit 3" if k % 2 else "exec tail -f /dev/null"),
                           "notify": ["hook:failed,stopped"]}, token=token)  # fmt: skip
        assert job.status == 201, job
        if k % 2 == 0:
            assert argusd.call("POST", f"/v1/jobs/{job.json()['id']}:stop", token=token).status in (200, 202)
        alerts = argusd.call("GET", "/v1/alerts?state=all&limit=2000", token=token).json()["alerts"]
        for alert in alerts[:1]:
            argusd.call("POST", f"/v1/alerts/{alert['id']}:silence", {"for": "365d"}, token=token)


def sent_at(hook, incident):
    """When argusd sent each message of an incident that was taken: whole seconds, as it signs them."""
    return [int(head["webhook-timestamp"]) for _, head, body in list(hook.got)
            if json.loads(body)["incident"]["id"] == incident]  # fmt: skip


def test_fifty_users_who_misbehave_hold_up_nothing_critical(tmp_path):
    """The receiver's line is long with what they did when Ray's head goes: that is the next thing that it hears."""
    with Receiver() as hook, house(tmp_path, {"hook": f'kind: webhook, url: "{hook.url}"'}) as argusd:
        hook.answer = None  # it says nothing: what comes waits
        threads = [threading.Thread(target=misbehave, args=(argusd, token)) for token in list(people(argusd))]
        for t in threads:
            t.start()

        def waiting():
            return argusd.get("/v1/receivers")["receivers"][0]["waiting"]

        until(lambda: waiting() >= 3 * USERS, "a long line waits")
        argusd.ray.listen(False)
        until(lambda: argusd.get("/v1/alerts?severity=critical")["alerts"], "Ray's head is lost")
        critical = until(
            lambda: [i for i in argusd.get("/v1/incidents")["incidents"] if i["severity"] == "critical"], "an incident"
        )[0]["id"]
        told = lambda: argusd.get(f"/v1/incidents/{critical}")["tellings"]  # noqa: E731
        until(lambda: any(t["state"] == "on_the_way" for t in told()), "it says that its message is on its way")
        begun = time.monotonic()
        hook.answer = lambda post, body: (200, b"{}")
        hook.over.set()
        until(lambda: hook.titled("Ray's head"), "the critical one came")
        print(f"a critical message came {time.monotonic() - begun:.1f} s after its receiver answered again")
        heard = [b["incident"]["severity"] for b in hook.bodies()]
        assert heard.index("critical") <= 2, heard  # beside what was on its way, and one that had failed
        opened = datetime.datetime.fromisoformat(argusd.get(f"/v1/incidents/{critical}")["opened_at"]).timestamp()
        sent = min(sent_at(hook, critical))
        assert int(opened) <= sent <= opened + ARRIVES_WITHIN, sent - opened
        for t in threads:
            t.join()
        argusd.ray.listen(True)
        until(lambda: waiting() == 0, "and all others come")
        users = {a["user"] for b in hook.bodies() for a in b["incident"]["alerts"] if a.get("user")}
        assert len(users) == USERS
