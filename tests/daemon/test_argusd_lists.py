# SPDX-License-Identifier: Apache-2.0
"""The list of jobs in any order, with counts and flags; and what a spec is, for those who write one elsewhere."""

import json

import jsonschema
import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd


@pytest.fixture
def argusd(tmp_path):
    """Its Ray is away: jobs stay in the queue."""
    with FakeRay() as ray:
        ray.listen(False)
        with Argusd(tmp_path, ray.url) as a:
            yield a


def pages(argusd, query):
    rows, cursor = [], ""
    while cursor is not None:
        page = argusd.get(f"/v1/jobs?limit=2&count=1&{query}" + (f"&cursor={cursor}" if cursor else ""))
        rows += page["jobs"]
        cursor = page["next_cursor"]
    return [j["name"] for j in rows], page


def test_orders_counts_and_flags(argusd):
    for name, nodes, more in (("b", 3, {}), ("A", 1, {"pool": "cpu"}), ("c", 2, {}), ("d", 2, {"user": "user"})):
        argusd.submit("echo x", name=name, nnodes=nodes, n_gpus_per_node=9, token=more.pop("user", "admin"), **more)
    ids = {j["name"]: j["id"] for j in argusd.all_jobs()}
    argusd.call("POST", f"/v1/jobs/{ids['c']}:hold", {})
    argusd.stop_job(ids["b"])
    for query, names in (
        ("sort=name&order=asc", ["A", "b", "c", "d"]),
        ("sort=gpus", ["b", "d", "c", "A"]),  # of two alike the newer one first, in either direction
        ("sort=nnodes&order=asc", ["A", "d", "c", "b"]),
        ("order=asc", ["b", "A", "c", "d"]),
        ("sort=ended_at&order=asc", ["b", "d", "c", "A"]),  # those that have none are last
        ("sort=ended_at", ["b", "d", "c", "A"]),
        ("sort=name&order=asc&pool=cpu,nowhere", ["A"]),
        ("flag=HELD", ["c"]),
        ("flag=HUNG,HELD", ["c"]),
        ("flag=HUNG", []),
        ("gpus=18&sort=name&order=asc", ["c", "d"]),
        ("gpus=10-27&sort=name&order=asc", ["b", "c", "d"]),
        ("gpus=19-&state=STOPPED", ["b"]),
        ("gpus=0-8", []),
        ("failure=gpu_oom,unknown", []),
        ("failure_node=w1,w2", []),
        ("state=QUEUED&sort=name", ["d", "c", "A"]),
        ("state=QUEUED&order=asc", ["A", "c", "d"]),  # a long line from its oldest on
        ("state=QUEUED,STOPPED&order=asc", ["b", "A", "c", "d"]),
    ):
        found, page = pages(argusd, "all=1&" + query)
        assert found == names, query
        assert page["total"] == len(names), query
        if not any(word in query for word in ("flag", "pool", "gpus", "failure")):
            assert page["states"] == {"QUEUED": 3, "STOPPED": 1}, query
    assert "total" not in argusd.get("/v1/jobs")
    first = argusd.get("/v1/jobs?all=1&limit=1&sort=name")
    for query, says in (
        ("sort=luck", "not sorted by 'luck'; queued_at id name"),
        ("order=up", "'up' is neither asc nor desc"),
        ("flag=TIRED", "'TIRED' is not a valid flag"),
        ("failure=gpu_oom,tired", "'tired' is not a class of failure"),
        ("failure=none", "'none' is not a class of failure"),
        *((f"gpus={bad}", f"'{bad}' is not a number of GPUs") for bad in ("-", "-8", "8-5", "5-x", "1.5", "1-2-3")),
        (f"sort=user&cursor={first['next_cursor']}", "is not a cursor"),
    ):
        reply = argusd.call("GET", f"/v1/jobs?{query}")
        assert (reply.status, says in reply.json()["detail"]) == (400, True), reply


def test_the_schema_of_a_spec_is_one_of_its_own(argusd):
    schema = argusd.call("GET", "/v1/jobspec.schema.json", token=None).json()
    described = argusd.get("/v1/openapi.json")["components"]["schemas"]["JobSpec"]
    assert schema["properties"].keys() == described["properties"].keys() and "$ref" not in json.dumps(schema)
    assert schema["properties"]["workload"]["enum"] and schema["properties"]["nnodes"]["minimum"] == 1
    assert {"const": "none"} in schema["properties"]["checkpoint"]["anyOf"]
    whole = jsonschema.Draft202012Validator(schema)
    for spec, good in (
        ({"workload": "ray", "entrypoint": "true"}, True),
        ({"workload": "ray", "entrypoint": ["a", "b"], "checkpoint": "none"}, True),
        ({"preset": "echo", "word": "a hole"}, True),
        ({"workload": "ray", "no_such_key": 1}, False),
        ({"entrypoint": "true"}, False),
        ({"workload": "ray", "nnodes": 0}, False),
    ):
        assert whole.is_valid(spec) == good, spec
