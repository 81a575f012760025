# SPDX-License-Identifier: Apache-2.0
"""The quota of bytes for snapshots, data sets and models: told before they are written, and where two came at once."""

import concurrent.futures
import threading

import pytest
from fakeray import FakeRay
from fileserver import FileServer
from snapshots import add, added, tar

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

KIB = 1 << 10
GIB = 1 << 30
LINE = b'{"question": "1 + 1?", "answer": "2"}\n'


@pytest.fixture
def a(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        probe = {"name": "x", "bytes": 0}
        until(lambda: argusd.call("POST", "/v1/uploads", probe).status == 201, "the root was looked at")
        yield argusd


def limit(a, kib, who="users/alice"):
    reply = a.call("PUT", f"/v1/{who}/quota", {"storage": kib * KIB / GIB if kib is not None else None})
    assert reply.status == 200, reply


def used(a, who="users/alice"):
    return round(a.get(f"/v1/{who}/quota")["usage"]["storage"] * GIB)


def send(a, name, files, token="user", **more):
    """Once the shared root can be written to: a busy machine looks at it late."""
    return until(lambda: (reply := add(a, name, tar(files), token, **more)).status != 503 and reply, "it is answered")


def contents(a):
    place = a.root / "argus/snapshots"
    return sorted(p.name for p in place.iterdir() if len(p.name) == 64) if place.exists() else []


def refused(reply):
    assert reply.status == 422, reply
    return reply.json()["detail"]


def test_snapshots_are_charged_once_to_each_who_names_them(a):
    limit(a, 10)
    assert added(a, "one@1", tar({"a": "x" * 6 * KIB}))["bytes"] == 6 * KIB
    before = contents(a)
    detail = refused(send(a, "two@1", {"a": "y" * 5 * KIB}))
    assert "of user 'alice' take 6 KiB of the 10 KiB" in detail, detail
    assert "remove some first, the largest is the snapshot 'one@1' with 6 KiB" in detail
    until(lambda: contents(a) == before and not list((a.root / "argus/snapshots").glob(".*")), "nothing is left of it")
    assert send(a, "same@1", {"a": "x" * 6 * KIB}).status == 422  # its hash is not known before it is unpacked
    hash_of = before[0]
    reply = a.call("POST", "/v1/snapshots", {"name": "same@1", "hash": hash_of}, token="user")
    assert reply.status == 201 and used(a) == 6 * KIB  # a further name of what is there
    assert send(a, "small@1", {"a": "z" * 4 * KIB}).status == 201 and used(a) == 10 * KIB
    assert "take 10 KiB of the 10 KiB" in refused(send(a, "tiny@1", {"a": "t"}))
    # Somebody else pays for the same content himself; what is common is charged to who added it.
    assert send(a, "mine@1", {"a": "x" * 6 * KIB}, token="admin").status == 201
    assert used(a) == 10 * KIB and contents(a).count(hash_of) == 1
    assert a.call("DELETE", "/v1/snapshots/one@1", token="user").status == 200
    assert used(a) == 10 * KIB
    assert a.call("DELETE", "/v1/snapshots/same@1", token="user").status == 200
    assert used(a) == 4 * KIB
    assert send(a, "ours@1", {"b": "c" * 6 * KIB}, common=True).status == 201 and used(a) == 10 * KIB
    limit(a, None)
    assert send(a, "tiny@1", {"a": "t"}).status == 201


def test_two_at_once_do_not_both_pass(a):
    limit(a, 10)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(send, a, f"n{i}@1", {"a": str(i) * 7 * KIB}) for i in range(4)]
        statuses = sorted(f.result().status for f in asked)
    assert statuses == [201, 422, 422, 422] and used(a) == 7 * KIB
    until(lambda: len(contents(a)) == 1, "nothing is left of the others")


def bring(a, name, source, kind="datasets", **more):
    form = {"name": name, "source": str(source), **more}
    return until(lambda: (r := a.call("POST", f"/v1/{kind}", form, token="user")).status != 503 and r, "it is answered")


def failure(a, entry):
    """What the event says of it, once its bytes are gone."""
    until(lambda: a.call("GET", f"/v1/datasets/{entry['ref']}", token="user").status == 404, "it is gone")
    said = [e["text"] for e in a.events() if e["kind"] == "dataset_import_failed" and entry["name"] in e["object"]]
    left = [p for p in (a.root / "users/alice/datasets").glob("*") if p.name.startswith(".import")]
    assert len(said) == 1 and not left and not list((a.root / "users/alice/datasets").glob(f"{entry['name']}/*"))
    return said[0]


def test_imports(a):
    assert a.call("POST", "/v1/projects", {"name": "p", "members": ["alice"]}).status == 201
    source = a.root / "users/alice/raw.jsonl"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_bytes(LINE * (6 * KIB // len(LINE)))
    size = source.stat().st_size
    limit(a, 10)
    ready = lambda ref: until(lambda: a.get(f"/v1/datasets/{ref}", token="user")["state"] == "ready", "it is ready")  # noqa: E731
    assert bring(a, "first", source, project="p").status == 201
    ready("first")
    assert used(a) == used(a, "projects/p") == size
    second = bring(a, "second", source).json()  # how much it is the job finds out, before it fetches
    assert a.wait_over(second["job"])["state"] == "FAILED"
    said = failure(a, second)
    assert "of user 'alice' take 5.975 KiB of the 10 KiB" in said, said
    assert "the largest is the data set 'first@1'" in said
    assert bring(a, "there", source, in_place=True).status == 201  # no bytes of ours
    ready("there")
    assert used(a) == size
    # The project's quota holds beside the user's.
    limit(a, 100)
    limit(a, 7, "projects/p")
    third = bring(a, "third", source, project="p").json()
    assert "of project 'p' take" in failure(a, third)
    limit(a, 1, "projects/p")
    detail = refused(bring(a, "fourth", source, project="p"))
    assert detail.startswith("the data sets, models and archives of project 'p' take") and used(a) == size


def test_two_imports_at_once_do_not_both_pass(a):
    """Each had room when it began: the second is refused when it is to be registered, and its bytes go."""
    gate, names = threading.Event(), ("x", "y")
    limit(a, 10)
    with FileServer({f"{name}.jsonl": LINE * (6 * KIB // len(LINE)) for name in names}) as web:
        for name in names:
            web.spoil(f"/{name}.jsonl", stall=gate)
        made = [bring(a, name, f"{web.url}/{name}.jsonl").json() for name in names]
        gate.set()
        for entry in made:
            assert a.wait_over(entry["job"])["state"] == "SUCCEEDED"

    def states():
        replies = [a.call("GET", f"/v1/datasets/{e['ref']}", token="user") for e in made]
        return sorted(r.json()["state"] if r.status == 200 else "gone" for r in replies)

    until(lambda: states() == ["gone", "ready"], "one of them is there")
    until(lambda: len(list((a.root / "users/alice/datasets").glob("*/1"))) == 1, "the bytes of the other are gone")
    assert used(a) < 10 * KIB
    said = [e["text"] for e in a.events() if e["kind"] == "dataset_import_failed"]
    assert len(said) == 1 and "5.975 KiB more would come" in said[0]
