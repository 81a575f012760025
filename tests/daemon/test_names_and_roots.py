# SPDX-License-Identifier: Apache-2.0
"""What people write is taken for what it is: the shared root by the path that they see, and no name that a line of a
table could not hold."""

import json
import socket
import struct
import subprocess
import urllib.parse

import pytest
from fakeray import FakeRay
from snapshots import tar, upload

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

# ---- the root by its other paths ----


def submit_first(argusd, spec):
    """Right after a start: until the root was looked at its other path is not known, so the answer is "not yet"."""

    def answer():
        reply = argusd.post(spec, token="user")
        if reply.status != 503:
            return reply
        assert reply.json()["code"] == "not_yet" and "Retry-After" in reply.headers, reply

    reply = until(answer, "argusd has looked at the root")
    assert reply.status == 201, reply
    return reply.json()["id"]


def runs_by(argusd, seen):
    """A job names a directory of the root as its user sees it: it runs there, and is kept as argus.yaml spells it."""
    code = argusd.root / "users/alice/code/by-other"
    code.mkdir(parents=True)
    (code / "said.txt").write_text("from the root")
    spec = argusd.spec("cat said.txt", working_dir=f"{seen}/users/alice/code/by-other")
    argusd.restart()
    job = submit_first(argusd, spec)
    argusd.wait_job(job, lambda j: j["state"] == "SUCCEEDED", "end")
    kept = (argusd.job_dir(job) / "config/jobspec.yaml").read_text()
    assert str(code) in kept and f"{seen}/" not in kept, kept
    assert b"from the root" in argusd.call("GET", f"/v1/jobs/{job}/logs", token="user").body
    for other in (f"{seen}-2", f"{seen}/../elsewhere"):  # what only begins so is no other name of it
        reply = argusd.post({**spec, "working_dir": f"{other}/users/alice/code/by-other"}, token="user")
        assert reply.status == 422 and reply.json()["problems"][0]["field"] == "working_dir", reply


def test_the_root_through_a_link(tmp_path):
    """argus.yaml names the link, the user the directory that it leads to."""
    real = tmp_path / "disk 7" / "shared"
    real.mkdir(parents=True)
    (tmp_path / "shared").symlink_to(real)
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        runs_by(argusd, real)


@pytest.fixture
def elsewhere(tmp_path):
    """The same directory by a bind mount."""
    root, at = tmp_path / "shared", tmp_path / "elsewhere"
    root.mkdir()
    at.mkdir()
    mounted = subprocess.run(["mount", "--bind", root, at], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount: {mounted.stderr.strip()}")
    yield at
    subprocess.run(["umount", "-l", at], check=True)


def test_the_root_through_a_bind_mount(tmp_path, elsewhere):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        runs_by(argusd, elsewhere)


# ---- names ----


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    home = tmp_path_factory.mktemp("names")
    more = 'alerts: {receivers: {ops: {kind: log}}}'
    with FakeRay(state=home / "ray") as ray, Argusd(home / "home", ray.url, more) as made:
        yield made


SPEC = {"workload": "ray", "entrypoint": "true"}
STEPS = {"steps": {"a": {"with": SPEC}}}
RULE = {"of": "job", "when": "gpus > 3000", "text": "x"}

# Each noun that somebody names: how one is made, with the name in the body or as the last part of the path.
NAMED = {
    "job": ("POST", "/v1/jobs", lambda n: {**Argusd.spec("true"), "name": n}),
    "submission": ("POST", "/v1/jobs", lambda n: {**Argusd.spec("true"), "submission_id": n}),
    "project": ("POST", "/v1/projects", lambda n: {"name": n}),
    "user": ("POST", "/v1/users", lambda n: {"name": n}),
    "token": ("POST", "/v1/tokens", lambda n: {"user": "alice", "name": n}),
    "secret": ("PUT", "/v1/secrets/", lambda n: {"value": "x"}),
    "preset": ("PUT", "/v1/presets/", lambda n: {"spec": SPEC}),
    "pipeline": ("PUT", "/v1/pipelines/", lambda n: {"name": n, **STEPS}),
    "step": ("PUT", "/v1/pipelines/whole", lambda n: {"name": "whole", "steps": {n: {"with": SPEC}}}),
    "dataset": ("POST", "/v1/datasets", lambda n: {"name": n, "source": "http://127.0.0.1:9/x.jsonl"}),
    "model": ("POST", "/v1/models", lambda n: {"name": n, "source": "http://127.0.0.1:9/x"}),
    "snapshot": ("POST", "/v1/snapshots", lambda n: {"name": f"{n}@1", "upload": "UPLOAD"}),
    "version": ("POST", "/v1/snapshots", lambda n: {"name": f"x@{n}", "upload": "UPLOAD"}),
    "upload": ("POST", "/v1/uploads", lambda n: {"name": n, "bytes": 1}),
    "file": ("POST", "/v1/files", lambda n: {"path": f"users/alice/{n}", "upload": "UPLOAD"}),
    "notebook": ("POST", "/v1/notebooks", lambda n: {"name": n}),
    "service": ("POST", "/v1/services", lambda n: {"name": n, "app": "a:b"}),
    "rule": ("PUT", "/v1/alert_rules/", lambda n: RULE),
    "simulation": ("POST", "/v1/simulations?name=", lambda n: None),
    "node": ("POST", "/v1/nodes", lambda n: {"name": n, "host": "127.0.0.1"}),
}
PLAIN = {"secret": "PLAIN_7", "rule": "plain_7"}
UNPLUGGED = ("notebook", "service")  # by this argus.yaml none is made, whatever its name
LIMIT, LIMIT_OF = 200, {"file": 255}  # of a file what file systems have
ODD = {"newline": "a\nb", "bell": "a\x07b", "escape": "\x1b[31mred", "delete": "a\x7fb", "c1": "a\x85b"}


def made_with(argusd, noun, name):
    method, path, body = NAMED[noun]
    asked = body(name)
    if asked and asked.get("upload") == "UPLOAD":
        asked["upload"] = upload(argusd, tar({"a.py": "pass"}), token="admin")
    path += urllib.parse.quote(name, safe="") if path[-1] in "/=" else ""
    return argusd.call(method, path, asked)


@pytest.mark.parametrize("noun", NAMED)
def test_a_name_has_an_end_and_no_control_characters(argusd, noun):
    """It is refused as a mistake of who asks, and nothing is made."""
    last = max((e["seq"] for e in argusd.events()), default=0)
    for why, name in {"long": "n" * (LIMIT_OF.get(noun, LIMIT) + 1), **ODD}.items():
        reply = made_with(argusd, noun, name)
        assert reply.status in (400, 404, 422), (noun, why, reply)
    made = [e for e in argusd.events() if e["seq"] > last and e["actor"] == "admin"]
    assert noun != "upload" and all(e["object"].startswith("upload/") for e in made) or not made, made
    plain = made_with(argusd, noun, PLAIN.get(noun, "plain-7"))
    assert plain.status < 300 or noun in UNPLUGGED, plain


def test_who_submits_goes_while_it_is_looked_whether_he_may(argusd):
    """The store is asked about the job that his spec names; he may close his connection meanwhile."""
    over = argusd.submit("true")
    argusd.wait_over(over)
    body = json.dumps(argusd.spec("true", code_path=str(argusd.root / f"jobs/{over}/output"))).encode()
    head = f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {argusd.tokens['user']}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    for _ in range(100):
        with socket.create_connection(("127.0.0.1", argusd.port), timeout=60) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # it is seen at once
            s.sendall(head.encode() + body)
    assert argusd.call("GET", "/healthz").status == 200 and argusd.process.poll() is None
