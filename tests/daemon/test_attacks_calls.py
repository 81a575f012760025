# SPDX-License-Identifier: Apache-2.0
"""Whom argusd calls: what a user may name leads to no server on argusd's own machine or network, and what Ray tells as
a machine's address is one, or nothing."""

import json

import pytest
from fakeray import FakeRay
from figurebed import Page
from receiver import Receiver

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

ALERTS = """
alerts:
  wait: 1s
  settle: 1s
  every: 1s
  secrets_of: project/rl
  receivers: {ops: {kind: feishu, url_secret: CHAT_URL}}
"""
ODD = "127.0.0.1/latest/meta-data?x="


def people(argusd):
    for name in ("bob",):
        argusd.call("POST", "/v1/users", {"name": name})
        argusd.tokens[name] = argusd.call("POST", "/v1/tokens", {"user": name}).json()["token"]
    argusd.call("POST", "/v1/projects", {"name": "rl", "members": ["alice"]})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "2130706433"])
def test_a_secret_url_leads_to_no_server_of_this_machine(tmp_path, host):
    """A member of the project stores the URL: argusd sends nothing there, and an admin is told why."""
    with Receiver() as inside, FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url, ALERTS) as argusd:
        inside.answer = (200, b'{"code": 19, "msg": "the-answer-of-a-server-inside"}')
        people(argusd)
        url = inside.url.replace("127.0.0.1", host)
        body = {"value": url, "project": "rl"}
        assert argusd.call("PUT", "/v1/secrets/CHAT_URL", body, token="user").status == 201
        job = argusd.submit("exit 3", project="rl")
        argusd.wait_over(job)
        row = until(lambda: (r := argusd.get("/v1/receivers")["receivers"][0])["trouble"] and r, "it was tried")
        assert "calls.networks" in row["trouble"] or host == "[::1]" and "failed" in row["trouble"], row
        assert inside.seen == []
        for token in ("user", "bob"):
            assert argusd.get("/v1/receivers", token=token)["receivers"][0]["trouble"] is None
        everything = json.dumps([argusd.events(), argusd.get("/v1/alerts?state=all")]) + argusd.said()
        assert "the-answer-of-a-server-inside" not in everything


def test_a_listed_network_is_called(tmp_path):
    more = ALERTS + "calls: {networks: [127.0.0.0/8]}"
    with Receiver() as inside, FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url, more) as argusd:
        inside.answer = (200, b'{"code": 0}')
        people(argusd)
        body = {"value": inside.url, "project": "rl"}
        assert argusd.call("PUT", "/v1/secrets/CHAT_URL", body, token="user").status == 201
        argusd.wait_over(argusd.submit("exit 3", project="rl"))
        until(lambda: inside.seen, "it was called")


def test_what_a_called_server_answers_is_told_to_admins_alone(tmp_path):
    """The member of a project who stores the URL may choose within calls.networks, and reads nothing from there."""
    more = ALERTS + '  rules: {messages_stuck: {when: messages_failing >= 1s}}\ncalls: {networks: [127.0.0.0/8]}'
    with Receiver() as inside, FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url, more) as argusd:
        inside.answer = (200, b'{"code": 77, "msg": "the-answer-of-a-server-inside"}')
        people(argusd)
        body = {"value": inside.url, "project": "rl"}
        assert argusd.call("PUT", "/v1/secrets/CHAT_URL", body, token="user").status == 201
        argusd.wait_over(argusd.submit("exit 3", project="rl"))
        until(lambda: any(e["kind"] == "alert_refused" for e in argusd.events()), "it was refused")
        incident = argusd.get("/v1/incidents?all=1")["incidents"][0]["id"]

        def seen_by(token):
            paths = [f"/v1/incidents/{incident}", f"/v1/incidents/{incident}/report", "/v1/receivers",
                     "/v1/alerts?state=all", "/v1/events?limit=1000"]  # fmt: skip
            return {p: b"the-answer-of-a-server-inside" in argusd.call("GET", p, token=token).body for p in paths}

        told = until(lambda: (t := seen_by("admin"))["/v1/receivers"] and t, "an admin is told why")
        assert sorted(p for p, there in told.items() if there) == [
            f"/v1/incidents/{incident}", f"/v1/incidents/{incident}/report", "/v1/receivers"]  # fmt: skip
        assert not any(seen_by("user").values())
        inside.answer = (200, b'{"code": 11232, "msg": "the-answer-of-a-server-inside"}')  # it is asked again
        argusd.wait_over(argusd.submit("exit 3", project="rl"))
        until(lambda: any(a["rule"] == "messages_stuck" for a in argusd.get("/v1/alerts")["alerts"]), "it is an alert")
        assert not any(seen_by("user").values())


def test_networks_of_the_configuration_are_networks(tmp_path):
    with FakeRay() as ray:
        argusd = Argusd(tmp_path, ray.url, "calls: {networks: [10.0.0.0/33]}")
        argusd.root.mkdir()
        argusd.write_config()
        with pytest.raises(AssertionError, match="10.0.0.0/33"):
            argusd.init()


def test_an_address_of_a_machine_is_an_address(tmp_path):
    """Whoever joins Ray says what its address is: nothing of it is pasted into a URL, here or by Prometheus."""
    worker = {"resources": {"CPU": 8, "GPU": 2, "worker_node": 1}}
    nodes = [
        {"name": "head", "ip": "127.0.0.1", "head": True, "resources": {"CPU": 0}},
        {"name": "w1", "ip": ODD, "metrics_port": 9, **worker},
        {"name": "w2", "ip": "169.254.169.254", "metrics_port": 9, **worker},
    ]
    with FakeRay(nodes=nodes, state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        until(lambda: len(argusd.get("/v1/clusters/default/nodes")["nodes"]) == 3, "Ray's machines are seen")
        told = [argusd.call("GET", path).body.decode() for path in ("/v1/prometheus/targets", "/metrics")]
        told.append(json.dumps(argusd.get("/v1/clusters/default/nodes")))
        for text in told:
            assert "latest/meta-data" not in text
            assert "169.254.169.254" not in text


class Strict(Argusd):
    networks = "10.0.0.0/8"  # no node of this file is there


@pytest.fixture
def pages():
    """Where argusd may ask, and the server of somebody else, which has a page, too."""
    addresses = {"head": "127.0.0.1", "true": "127.0.0.5", "foreign": "127.0.0.66"}
    made = {name: Page(address, "ray_node_mem_used 1\n") for name, address in addresses.items()}
    yield made
    for page in made.values():
        page.close()


def test_an_address_that_only_ray_tells_is_not_called(tmp_path, pages):
    """Three raylets say that they are at a server of somebody else: one that nobody registered, one by the name of a
    node that is registered elsewhere, and one that has taken the name of a node that is there itself."""

    def raylet(name, ip, page, of=None):
        resources = {"CPU": 8, "GPU": 2, "worker_node": 1, f"argus_node_{of or name}": 1}
        return {"name": name, "ip": ip, "metrics_port": pages[page].port, "resources": resources}

    head = {"name": "head", "ip": "127.0.0.1", "head": True, "resources": {"CPU": 0}}
    nodes = [
        {**head, "metrics_port": pages["head"].port},
        raylet("w1", "127.0.0.66", "foreign"),
        raylet("r2", "127.0.0.66", "foreign"),
        raylet("r1", "127.0.0.5", "true"),
        raylet("thief", "127.0.0.66", "foreign", of="r1"),
    ]
    with FakeRay(nodes=nodes, state=tmp_path / "ray") as ray, Strict(tmp_path, ray.url) as argusd:
        for name, host in (("r1", "127.0.0.5"), ("r2", "127.0.0.6")):
            reply = argusd.call("POST", "/v1/nodes", {"name": name, "host": host, "port": 1})
            assert reply.status == 201, reply
        for name in ("w1", "r2"):
            until(lambda name=name: argusd.call("GET", f"/v1/nodes/{name}/figures?figure=cpu_util_ratio").status == 200
                  and "only Ray says" in argusd.get(f"/v1/nodes/{name}/figures?figure=cpu_util_ratio")["why_not"],
                  f"why {name} is not asked")  # fmt: skip
        # Each node has its moment in the 15 s: after the second request to one, that of every other has come.
        before = {name: pages[name].asked for name in ("head", "true")}
        until(lambda: all(pages[name].asked >= n + 2 for name, n in before.items()), "the others are asked")
        targets = until(lambda: (r := argusd.call("GET", "/v1/prometheus/targets")).status == 200 and r.json(),
                        "where the pages are")  # fmt: skip
        told = {t for row in targets for t in row["targets"]}
        assert told == {f"127.0.0.1:{pages['head'].port}", f"127.0.0.5:{pages['true'].port}"}
        assert pages["foreign"].asked == 0
