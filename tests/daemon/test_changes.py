# SPDX-License-Identifier: Apache-2.0
"""The stream of what changed: who is told which ids, what comes back after a break, and that nothing is lost."""

import threading

import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd


class Listener:
    """Keeps what a stream told: ids by topic, and its last id."""

    def __init__(self, argusd, token="user", **head):
        self.stream = argusd.stream("/v1/changes?follow=1", token=token, **head)
        self.hello, self.last, self.ids = None, "", {}
        self.topics, self.twice = [], []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        until(lambda: self.hello is not None, "the stream says hello")

    def read(self):
        for last, kind, data in self.stream:
            self.last = last
            if kind == "hello":
                self.hello = data
            else:
                self.topics.append(kind)
                self.twice += [i for i in set(data["ids"]) if data["ids"].count(i) > 1]
                self.ids.setdefault(kind, set()).update(data["ids"])

    def told(self, topic):
        return self.ids.get(topic, set())

    def close(self):
        """Gone for good: nothing is read after it."""
        self.stream.raw.fp.raw._sock.shutdown(2)
        self.thread.join(30)
        assert not self.thread.is_alive()


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("changes"), ray.url) as a:
        a.ray = ray
        yield a


def test_a_follower_hears_of_his_jobs_and_of_no_other(argusd):
    alice, admin, victor = Listener(argusd), Listener(argusd, "admin"), Listener(argusd, "viewer")
    hers, theirs = argusd.submit("true", token="user"), argusd.submit("true", token="admin")
    argusd.wait_over(hers), argusd.wait_over(theirs)
    for sees_all in (admin, victor):
        until(lambda x=sees_all: {hers, theirs} <= x.told("jobs"), "who sees everything hears of both")
    until(lambda: hers in alice.told("jobs"), "she hears of her own")
    assert theirs not in alice.told("jobs")
    assert "events" in alice.topics
    for x in (alice, admin, victor):
        assert x.hello == {"reset": False}
        x.close()


def test_steps_and_positions_change_without_an_event(argusd):
    """Priority moves others in the queue: no event tells of those."""
    first, second = (argusd.submit("true", nnodes=9, n_gpus_per_node=4) for _ in range(2))
    until(lambda: argusd.job(second).get("position"), "it has a place")
    x = Listener(argusd)
    before = argusd.job(first)["position"]
    assert argusd.call("POST", f"/v1/jobs/{second}:priority", {"priority": 60}, token="admin").status == 200
    until(lambda: argusd.job(first)["position"] != before, "the other is first now")
    until(lambda: {first, second} <= x.told("jobs"), "both are told")
    x.close()
    for job in (first, second):
        argusd.stop_job(job)


def test_a_break_loses_nothing(argusd):
    keeper = Listener(argusd)  # while somebody follows, what changes is noted
    x = Listener(argusd)
    argusd.wait_over(argusd.submit("true"))
    until(lambda: x.last and x.told("jobs"), "it heard something")
    x.close()
    missed = argusd.submit("true")
    argusd.wait_over(missed)
    until(lambda: missed in keeper.told("jobs"), "the others hear of it")
    assert keeper.topics.count("jobs") > 1, "it changed more than once"
    again = Listener(argusd, Last_Event_ID=x.last)
    assert again.hello == {"reset": False}
    until(lambda: missed in again.told("jobs"), "it is told later")
    assert not again.twice and not keeper.twice, "however often it changed, it is told once"
    again.close()
    keeper.close()


def test_who_cannot_be_told_is_told_so(argusd):
    for last in ("0000000000000000-5", "nonsense", "", "9" * 300):
        x = Listener(argusd, Last_Event_ID=last)
        assert x.hello == {"reset": last != ""}, last
        x.close()
    x = Listener(argusd)
    last = x.last
    x.close()
    argusd.restart()
    y = Listener(argusd, Last_Event_ID=last)
    assert y.hello == {"reset": True}, "another argusd has other numbers"
    y.close()


def test_machines_are_told(argusd):
    x = Listener(argusd)
    node = {"name": "there", "host": "127.0.0.1", "port": 1}
    assert argusd.call("POST", "/v1/nodes", node).status == 201
    until(lambda: "nodes" in x.topics, "nodes changed")
    x.close()


def test_a_stream_ends_with_its_token(argusd):
    token = argusd.call("POST", "/v1/tokens", {}, token="user").json()
    x = Listener(argusd, token["token"])
    assert argusd.call("DELETE", f"/v1/tokens/{token['id']}", token="user").status == 200
    x.thread.join(60)
    assert not x.thread.is_alive()
    assert argusd.call("GET", "/v1/changes").json()["id"]
