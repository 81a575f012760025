# SPDX-License-Identifier: Apache-2.0
"""`argus adopt`: a job that somebody else gave to Ray gets a record, which outlives argusd and what Ray knows of it."""

import json

import pytest
from fakeray import FakeRay
from test_argusd_people import ask, cli, make_user, ok

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd
HERE = "/v1/clusters/default/foreign"


@pytest.fixture
def argusd(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as one:
        one.ray = ray
        until(lambda: one.get("/readyz")["ray"] == "ok", "Ray answers")
        ray.add_job(submission_id="theirs", status="RUNNING", start_time=1000)
        ask(one, "POST", "/v1/projects", 201, {"name": "rlhf"})
        yield one


def foreign(argusd, token="admin"):
    return {f["ray_id"]: f for f in ask(argusd, "GET", HERE, 200, token=token)["foreign"]}


def told(argusd, kind, token="admin"):
    return [e for e in ask(argusd, "GET", "/v1/events?limit=200", 200, token=token)["events"] if e["kind"] == kind]


def test_a_foreign_job_is_adopted_and_its_record_stays(argusd):
    dora, carol = make_user(argusd, "dora"), make_user(argusd, "carol")
    before = foreign(argusd)["theirs"]
    assert (before["is_adopted"], before["project"], before["owner"]) == (False, None, None)
    said = ok(argusd, "adopt", "theirs", "--project", "rlhf", "--user", "dora")
    assert said == "theirs is of project rlhf, user dora\n"
    (event,) = told(argusd, "adopted")
    assert (event["object"], event["text"]) == ("foreign/theirs", "adopted for project 'rlhf', user 'dora'")
    argusd.kill9()
    argusd.start()
    until(lambda: argusd.get("/readyz")["ray"] == "ok", "Ray answers")
    record = foreign(argusd, dora)["theirs"]
    assert (record["project"], record["owner"], record["state"]) == ("rlhf", "dora", "RUNNING")
    assert record["is_adopted"] and record["adopted_at"] and record["started_at"]
    # Somebody else sees that it is adopted, and not by whom.
    hidden = foreign(argusd, carol)["theirs"]
    assert (hidden["is_adopted"], hidden["project"], hidden["owner"]) == (True, None, None)
    assert told(argusd, "adopted", dora) and not told(argusd, "adopted", carol)
    argusd.ray.lose_memory()
    until(lambda: foreign(argusd, dora)["theirs"]["state"] == "GONE", "Ray forgot it")
    (end,) = told(argusd, "adopted_ended", dora)
    assert (end["object"], end["text"]) == ("foreign/theirs", "the job that project 'rlhf' adopted is over: GONE")
    assert foreign(argusd)["theirs"]["ended_at"]
    listed = json.loads(ok(argusd, "cluster", "foreign", "default", "-o", "json"))["foreign"]
    assert [(f["ray_id"], f["project"]) for f in listed] == [("theirs", "rlhf")]
    assert not [r for r in argusd.ray.requests() if r["method"] != "GET" and "theirs" in r["path"]]


def test_adopting_again_moves_it(argusd):
    ok(argusd, "adopt", "theirs", "--project", "default")
    ok(argusd, "adopt", "theirs", "--project", "rlhf")
    row = foreign(argusd)["theirs"]
    assert (row["project"], row["owner"]) == ("rlhf", "admin") and len(told(argusd, "adopted")) == 2


def test_what_is_refused(argusd):
    own = argusd.submit("sleep 1000")
    argusd.wait_state(own, "RUNNING")
    path = HERE + "/{}:adopt"
    body = {"project": "rlhf"}
    assert "Ray lists no job 'none'" in ask(argusd, "POST", path.format("none"), 404, body)["detail"]
    ask(argusd, "POST", path.format(own), 404, body)  # it is ours
    ask(argusd, "POST", path.format("theirs"), 404, {"project": "absent"})
    ask(argusd, "POST", path.format("theirs"), 404, {**body, "user": "absent"})
    ask(argusd, "POST", path.format("theirs"), 422, {})
    ask(argusd, "POST", path.format("theirs"), 403, body, token=make_user(argusd, "dora"))
    ask(argusd, "POST", path.format("theirs").replace("default", "other"), 404, body)
    assert cli(argusd, "adopt", "theirs").returncode == 2
    assert not foreign(argusd)["theirs"]["is_adopted"]
