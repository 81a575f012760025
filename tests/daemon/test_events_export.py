# SPDX-License-Identifier: Apache-2.0
"""Events of a time, and all of them as a file: in the reader's sight, with the filters, to the end and no further; by
the command line, too, which replaces no file unless it is told."""

import csv
import io
import json
import os
import subprocess

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import PATIENCE, Argusd, needs_argusd

pytestmark = needs_argusd

MANY = 450  # more than two pages of an export


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("export"), ray.url) as argusd:
        argusd.call("POST", "/v1/users", {"name": "bob"})
        argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
        for n in range(MANY):
            name = "=SUM(A1)" if n == 0 else f"s{n}"
            note = {"note": name}
            assert argusd.call("PATCH", "/v1/users/bob", note, token="admin").status == 200
        yield argusd


def exported(argusd, query="", token="admin", status=200):
    reply = argusd.call("GET", f"/v1/events:export?{query}", token=token)
    assert reply.status == status, reply
    return reply


def argus(argusd, *options, code=0, cwd=None):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["admin"], "HOME": str(argusd.home)}
    argv = [PROGRAMS["argus"], "events", *options]
    said = subprocess.run(argv, env=env, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE)
    assert said.returncode == code, said
    return said


def lines(reply):
    assert reply.headers["Content-Type"] == "application/x-ndjson"
    return [json.loads(line) for line in reply.body.decode().splitlines()]


def test_all_events_are_there_once_and_in_order(argusd):
    reply = exported(argusd)
    assert 'filename="argus-events.ndjson"' in reply.headers["Content-Disposition"]
    rows = lines(reply)
    page = argusd.get("/v1/events?limit=1000")["events"]
    assert len(rows) > MANY and rows == page[: len(rows)]
    for row in rows[:5]:
        argusd.contract.holds(row, {"$ref": "#/components/schemas/Event"}, "a line of the export")


def test_the_filters_hold(argusd):
    rows = lines(exported(argusd, "kind=user_changed&object=user/bob"))
    assert {(r["kind"], r["object"]) for r in rows} == {("user_changed", "user/bob")} and len(rows) == MANY
    assert lines(exported(argusd, "kind=nothing")) == []


def test_csv_is_no_formula(argusd):
    reply = exported(argusd, "format=csv&kind=user_changed")
    assert reply.headers["Content-Type"].startswith("text/csv")
    table = list(csv.DictReader(io.StringIO(reply.body.decode())))
    assert len(table) == MANY and table[0]["actor"] and table[0]["object"] == "user/bob"
    assert list(table[0]) == ["seq", "at", "kind", "object", "job", "actor", "from", "to", "text", "data"]
    assert json.loads(table[0]["data"])["after"]["note"] == "=SUM(A1)"
    cells = [value for row in table for value in row.values()]
    assert not [value for value in cells if value.startswith("=")]


def test_nobody_exports_what_he_does_not_see(argusd):
    argusd.call("PUT", "/v1/secrets/CANARY", {"value": "x", "user": "bob"}, token="bob")
    seen = [r["seq"] for r in lines(exported(argusd, token="bob"))]
    page = [e["seq"] for e in argusd.get("/v1/events?limit=1000", token="bob")["events"]]
    assert seen and seen == page[: len(seen)]
    assert "CANARY" in exported(argusd, token="bob").body.decode()
    assert "CANARY" not in exported(argusd, token="user").body.decode()
    assert "CANARY" not in exported(argusd, "format=csv", token="user").body.decode()


def test_events_of_a_time(argusd):
    rows = lines(exported(argusd, "kind=user_changed"))
    first, last = rows[100]["at"], rows[200]["at"]
    expected = [r["seq"] for r in rows if first <= r["at"] < last]
    query = f"kind=user_changed&from={first}&to={last}"
    told = argusd.get(f"/v1/events?limit=1000&{query}")["events"]
    assert expected and [e["seq"] for e in told] == expected
    assert [r["seq"] for r in lines(exported(argusd, query))] == expected
    newest = argusd.get(f"/v1/events?newest_first=1&limit=3&{query}")["events"]
    assert [e["seq"] for e in newest] == expected[::-1][:3]
    assert argusd.get("/v1/events?from=1h&kind=user_changed&limit=1000")["events"]
    assert argusd.get("/v1/events?to=30d")["events"] == [], "nothing is so old"
    said = argus(argusd, "--kind", "user_changed", "--from", first, "--to", last, "-o", "json")
    assert [e["seq"] for e in json.loads(said.stdout)["events"]] == expected[-200:]


def test_the_command_line_writes_a_file_and_replaces_none_unless_told(argusd, tmp_path):
    rows = lines(exported(argusd, "kind=user_changed"))
    first, last = rows[100]["at"], rows[200]["at"]
    expected = [r["seq"] for r in rows if first <= r["at"] < last]
    file = tmp_path / "told.ndjson"
    of_time = ("--kind", "user_changed", "--from", first, "--to", last)
    said = argus(argusd, *of_time, "--export", str(file))
    assert str(file) in said.stderr and said.stdout == ""
    assert [json.loads(line)["seq"] for line in file.read_text().splitlines()] == expected
    refused = argus(argusd, "--export", str(file), code=5)
    assert "is there already: --force replaces it" in refused.stderr
    assert [json.loads(line)["seq"] for line in file.read_text().splitlines()] == expected, "it is as it was"
    for more in ((), ("--force",)):
        refused = argus(argusd, "--export", str(tmp_path), *more, code=2)
        assert f"'{tmp_path}' is a directory" in refused.stderr, "no file takes its name, and --force does not help"
    argus(argusd, "--kind", "user_changed", "--export", str(file), "--csv", "--force")
    with open(file, newline="") as f:
        assert [int(row["seq"]) for row in csv.DictReader(f)] == [r["seq"] for r in rows]
    piped = argus(argusd, *of_time, "--export", "-")
    assert [json.loads(line)["seq"] for line in piped.stdout.splitlines()] == expected
    assert [p.name for p in tmp_path.iterdir()] == [file.name], "no part of it is left"


def test_the_events_of_one_job_as_a_file(argusd, tmp_path):
    job = argusd.submit("true", name="told in a file")
    argusd.wait_over(job)
    whole = [e["seq"] for e in argusd.get(f"/v1/jobs/{job}/events?limit=1000")["events"]]
    argus(argusd, "told in a file", "--export", str(tmp_path / "one"))
    told = [json.loads(line) for line in (tmp_path / "one").read_text().splitlines()]
    assert {e["job"] for e in told} == {job} and [e["seq"] for e in told][: len(whole)] == whole


@pytest.mark.parametrize(("options", "says"), [
    (["--csv"], "go with --export"),
    (["--force"], "go with --export"),
    (["--export", ""], "--export needs the name of a file"),
    (["--export", "there/"], "--export needs the name of a file"),
    (["--export", "x", "--follow"], "do not go with it"),
    (["--export", "x", "--limit", "3"], "do not go with it"),
    (["--export", "x", "-o", "json"], "do not go with it"),
])  # fmt: skip
def test_what_the_command_line_refuses(argusd, tmp_path, options, says):
    assert says in argus(argusd, *options, code=2, cwd=tmp_path).stderr
    assert not list(tmp_path.iterdir())


def test_what_the_server_refuses_leaves_no_file(argusd, tmp_path):
    said = argus(argusd, "--from", "yesterday", "--export", "x", code=2, cwd=tmp_path)
    assert "yesterday" in said.stderr and not list(tmp_path.iterdir())
    said = argus(argusd, "--export", "no/such/place", code=2, cwd=tmp_path)
    assert "'no/such/place' cannot be written" in said.stderr and not list(tmp_path.iterdir())


@pytest.mark.parametrize("query", ["format=xml", "from=yesterday", "to=12"])
def test_what_is_refused(argusd, query):
    assert exported(argusd, query, status=400).json()["type"].startswith("urn:argus:problem:")
