# SPDX-License-Identifier: Apache-2.0
"""Secrets: stored sealed, given to one attempt's processes, and found nowhere else."""

import base64
import json
import os
import re
import stat
import subprocess
import sys
import urllib.parse

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

CANARY = 'canary/4711 do"not\'tell'
OTHER = "canary-of-the-project"


def forms(value):
    """How a program may have written it down."""
    yield value
    yield json.dumps(value)[1:-1]
    yield repr(value)[1:-1]
    yield urllib.parse.quote(value)
    yield urllib.parse.quote(value, safe="")
    yield base64.b64encode(value.encode()).decode()


def content(file):
    try:
        return file.read_bytes()
    except FileNotFoundError:  # it was there for a moment only, as the file that proves the root
        return b""


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    class World:
        def put(self, name, value, token="user", **more):
            return self.argusd.call("PUT", f"/v1/secrets/{name}", {"value": value, **more}, token=token)

        def names(self, query="", token="user"):
            return [s["name"] for s in self.argusd.get("/v1/secrets" + query, token=token)["secrets"]]

        def places(self, *values):
            """Every file that holds one of them, below everything that argusd and Ray write."""
            files = {f for f in self.argusd.home.rglob("*") if f.is_file() and not f.is_symlink()}
            hit = [form.encode() for value in values for form in forms(value)]
            return sorted(str(f) for f in files if any(h in content(f) for h in hit))

        def cli(self, *args, stdin="", token="user"):
            env = {**os.environ, "ARGUS_URL": self.argusd.url, "ARGUS_TOKEN": self.argusd.tokens[token]}
            argv = [PROGRAMS["argus"], *args]
            return subprocess.run(argv, input=stdin, env=env, capture_output=True, text=True, timeout=120)

    home = tmp_path_factory.mktemp("secrets")
    with FakeRay(state=home / "ray") as ray, Argusd(home, ray.url) as argusd:
        it = World()
        it.ray, it.argusd = ray, argusd
        yield it


PRINTS = """
import base64, json, os, sys, urllib.parse
mine, ours = os.environ["MY_KEY"], os.environ["OUR_KEY"]
for c in "split " + mine + " over writes\\n":
    os.write(1, c.encode())
print(json.dumps(dict(os.environ)), sys.argv, repr(mine), urllib.parse.quote(mine), flush=True)
print(base64.b64encode(mine.encode()).decode(), ours, len(mine), len(ours), flush=True)
path = os.environ["FILE"]
print(sorted(json.load(open(path))), oct(os.stat(path).st_mode & 0o777), flush=True)
raise RuntimeError("the key " + mine + " was refused")
"""


def test_a_job_has_them_and_nobody_else(w):
    """Printed in all ways, killed and run again: not in one file, answer or event, before and after."""
    for name, value, more in (("MY_KEY", CANARY, {}), ("OUR_KEY", OTHER, {"project": "default"})):
        reply = w.put(name, value, "admin" if more else "user", **more)
        assert reply.status == 201 and value not in reply.body.decode()
    path = w.argusd.root / "argus" / "secrets"
    script = 'exec "$0" -c "$PRINTS" "--key=$MY_KEY"'
    spec = {
        **Argusd.spec(["/bin/sh", "-c", script, sys.executable]),
        "env": {"PRINTS": PRINTS, "FILE": str(path / "telling-1")},
        "secrets": ["MY_KEY", "OUR_KEY"],
        "submission_id": "telling-1",
    }
    dry = w.argusd.post(spec, "?dry_run=1", token="user")
    assert dry.status == 200, dry
    job = w.argusd.submit(spec)
    view = w.argusd.wait_over(job)
    log = w.argusd.log_file(job).read_text()
    assert view["state"] == "FAILED" and view["exit"]["code"] == 1, log
    assert log.startswith("split *** over writes\n")
    assert f"*** *** {len(CANARY)} {len(OTHER)}\n['MY_KEY', 'OUR_KEY'] 0o600\n" in log
    assert "the key *** was refused" in log
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    until(lambda: list(path.iterdir()) == [], "the file of the workers is gone with the attempt")
    sent = w.ray.ask("GET", "state")
    said = [dry.body.decode(), json.dumps(sent), w.argusd.said()]
    for page in (f"/v1/jobs/{job}", "/v1/jobs", f"/v1/jobs/{job}/events", "/v1/events", "/v1/secrets", "/metrics"):
        said.append(w.argusd.call("GET", page).body.decode())
    assert not [form for value in (CANARY, OTHER) for form in forms(value) if any(form in text for text in said)]
    assert w.places(CANARY, OTHER) == []
    assert "last_use_at" in w.argusd.get("/v1/secrets", token="user")["secrets"][0]
    used = {s["name"]: s["last_use_at"] for s in w.argusd.get("/v1/secrets?all=1")["secrets"]}
    assert used["MY_KEY"] and used["OUR_KEY"]


def test_values_in_the_environment_are_sealed_too(w):
    """The store has no word of a spec with a secret; the job and its page have it after a restart as before."""
    spec = {**Argusd.spec("echo $MY_TOKEN $PLAIN; sleep 1000"), "env": {"MY_TOKEN": OTHER, "PLAIN": "visible"}}
    job = w.argusd.submit(spec)
    w.argusd.wait_state(job, "RUNNING")
    held = w.argusd.submit({**spec, "nnodes": 9, "n_gpus_per_node": 4})
    place = w.argusd.root / "argus" / "secrets"
    files = until(lambda: (f := list(place.iterdir())) == [place / job] and f, "the file of its workers, and no other")
    assert json.loads(files[0].read_text()) == {"MY_TOKEN": OTHER}
    before = w.argusd.job(held)["spec"]
    w.argusd.kill9()
    w.argusd.start()
    assert w.argusd.job(held)["spec"] == before and "visible" in before and "canary" not in before
    assert w.places(OTHER) == [str(files[0])]
    assert w.argusd.stop_job(held)["state"] == "STOPPED"
    w.argusd.stop_job(job)
    w.argusd.wait_over(job)
    until(lambda: not files[0].exists(), "it is gone with its attempt")
    assert "visible" in w.argusd.job(held)["spec"]
    assert w.argusd.log_file(job).read_text() == "*** visible\n"
    assert w.places(OTHER) == []


def test_what_a_lost_machine_leaves_is_swept(w):
    """At the start, and when an attempt ends; what belongs to a running one stays."""
    w.put("MY_KEY", CANARY)
    over = w.argusd.submit("true", secrets=["MY_KEY"])
    w.argusd.wait_over(over)
    job = w.argusd.submit("sleep 1000", secrets=["MY_KEY"])
    w.argusd.wait_state(job, "RUNNING")
    place = w.argusd.root / "argus" / "secrets"
    names = lambda: {f.name for f in place.iterdir()}  # noqa: E731
    w.argusd.kill9()
    for name in (over, f"{job}-a2", ".never-was-a4.123.tmp"):
        (place / name).write_text("{}")
    left = w.argusd.job_dir(over) / "attempts" / "1" / ".secrets.json"
    left.write_text("{}")
    w.argusd.start()
    until(lambda: names() == {job} and not left.exists(), "what is of no attempt is gone")
    (place / "never-was-a5").write_text("{}")
    w.argusd.stop_job(job)
    w.argusd.wait_over(job)
    until(lambda: not names(), "nothing is left")


def test_user_before_project_and_unknown_names(w):
    w.put("BOTH", "mine-0123", "user")
    w.put("BOTH", "theirs-0123", "admin", project="default")
    line = "printf %s $BOTH | tr a-z A-Z"
    for token, shown in (("user", "MINE-0123"), ("admin", "THEIRS-0123")):
        job = w.argusd.submit({**Argusd.spec(line), "secrets": ["BOTH"]}, token=token)
        w.argusd.wait_over(job)
        assert w.argusd.log_file(job).read_text() == shown
    reply = w.argusd.post({**Argusd.spec(line), "secrets": ["NO_SUCH"]}, token="user")
    problem = reply.json()
    assert (reply.status, problem["field"]) == (422, "secrets")
    assert "argus secret set NO_SUCH" in problem["detail"]
    told = w.argusd.post({**Argusd.spec("echo mine-0123"), "secrets": ["BOTH"]}, token="user")
    assert told.status == 422 and "write $BOTH there" in told.json()["detail"]
    assert "mine-0123" not in told.body.decode()
    job = w.argusd.submit({**Argusd.spec(line), "secrets": ["BOTH"], "nnodes": 9, "n_gpus_per_node": 4})
    assert w.argusd.call("DELETE", "/v1/secrets/BOTH", token="user").status == 200
    assert w.argusd.stop_job(job)["state"] == "STOPPED"


@pytest.mark.parametrize(
    ("name", "body", "status", "says"),
    [
        ("lower", {"value": "x"}, 422, "cannot be the name of a secret"),
        ("1A", {"value": "x"}, 422, "beginning with a letter"),
        ("A" * 65, {"value": "x"}, 422, "1 to 64"),
        ("PYTHONPATH", {"value": "x"}, 422, "belongs to the platform"),
        ("ARGUS_TOKEN", {"value": "x"}, 422, "belongs to the platform"),
        ("LD_PRELOAD", {"value": "x"}, 422, "belongs to the platform"),
        ("KEY", {}, 422, "missing or empty"),
        ("KEY", {"value": ""}, 422, "missing or empty"),
        ("KEY", {"value": 7}, 422, "'value' is not text"),
        ("KEY", {"value": "canary-12\0"}, 400, "not a JSON object"),
        ("KEY", {"value": "x" * 32769}, 413, "32769 bytes and may have 32768"),
        ("KEY", {"value": "canary-12", "to": "x"}, 422, "other than value, user, project"),
        ("KEY", {"value": "canary-12", "user": "alice", "project": "default"}, 422, "give one of them"),
        ("KEY", {"value": "canary-12", "project": "nobodys"}, 404, "no secret 'KEY'"),
        ("KEY", {"value": "canary-12", "user": "victor"}, 404, "no secret 'KEY'"),
        ("KEY", '{"value": "canary-12', 400, "not a JSON object"),
        ("KEY", "[]", 400, "not a JSON object"),
    ],
)
def test_bad_input(w, name, body, status, says):
    reply = w.argusd.call("PUT", f"/v1/secrets/{name}", body, token="user", Content_Type="application/json")
    assert reply.status == status, reply
    assert says in reply.json()["detail"] and "canary" not in reply.body.decode()
    assert name not in w.names("?all=1", "admin")


def test_command_line(w):
    """By stdin and by file; one newline at the end is not the value's."""
    done = w.cli("secret", "set", "CLI_KEY", stdin="canary-cli-1\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "secret CLI_KEY stored\n", "")
    file = w.argusd.home / "value.txt"
    file.write_text("canary\ncli-2\n\n")
    assert w.cli("secret", "set", "CLI_FILE", "--from-file", str(file)).returncode == 0
    file.unlink()
    short = w.cli("secret", "set", "CLI_SHORT", stdin="abc")
    assert short.returncode == 0 and "less than 8 bytes" in short.stderr
    listed = w.cli("secret", "ls").stdout
    assert "CLI_KEY" in listed and "canary" not in listed
    line = 'printf "%s %s" "${#CLI_KEY}" "${#CLI_FILE}"'
    job = w.argusd.submit({**Argusd.spec(line), "secrets": ["CLI_KEY", "CLI_FILE"]})
    w.argusd.wait_over(job)
    assert w.argusd.log_file(job).read_text() == "12 13"
    assert w.cli("secret", "set", "CLI_KEY", "canary-in-argv").returncode == 2
    for bad, says in (("", "the value is empty"), ("\n", "the value is empty"), ("a\0b", "zero byte")):
        done = w.cli("secret", "set", "CLI_BAD", stdin=bad)
        assert done.returncode == 2 and says in done.stderr, bad
    removed = w.cli("secret", "rm", "CLI_KEY", "CLI_FILE", "CLI_SHORT")
    assert removed.stdout.splitlines()[-1] == "secret CLI_SHORT removed"
    again = w.cli("secret", "rm", "CLI_KEY")
    assert again.returncode == 4 and "no secret 'CLI_KEY' of user 'alice'" in again.stderr


def test_who_comes_later_has_nothing(w):
    """A user's and a project's secrets go with them; the events tell names, never values."""
    w.argusd.call("POST", "/v1/users", {"name": "dora"})
    w.argusd.call("POST", "/v1/projects", {"name": "gone", "members": ["dora"]})
    assert w.put("HERS", "canary-hers", "admin", user="dora").status == 201
    assert w.put("HERS", "canary-hers-2", "admin", user="dora").status == 200
    assert w.put("OURS", "canary-ours", "admin", project="gone").status == 201
    assert w.names("?user=dora", "admin") == ["HERS"] and w.names("?project=gone", "admin") == ["OURS"]
    assert "HERS" not in w.names() and "OURS" not in w.names("?all=1")
    assert w.argusd.call("DELETE", "/v1/projects/gone").status == 200
    assert w.argusd.call("DELETE", "/v1/users/dora").status == 200
    w.argusd.call("POST", "/v1/users", {"name": "dora"})
    assert not {"HERS", "OURS"} & set(w.names("?all=1", "admin"))
    kinds = [(e["kind"], e["object"]) for e in w.argusd.events() if (e.get("object") or "").endswith("/HERS")]
    assert kinds == [("secret_added", "secret/user/dora/HERS"), ("secret_changed", "secret/user/dora/HERS")]
    assert "canary-hers" not in w.argusd.call("GET", "/v1/events").body.decode()


def test_the_key_file(w):
    """Only its owner's; what was sealed with it is not opened with another one, and argusd says so at its start."""
    w.put("KEPT", "canary-kept")
    key = w.argusd.state_dir / "secrets.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    text = key.read_text()
    w.argusd.stop()
    breaks = [
        (lambda: key.chmod(0o640), "others can open .* make it 0600"),
        (lambda: key.write_text(text.translate(str.maketrans("0123456789", "1234567890"))), "not the key"),
        (lambda: key.write_text("x\n"), "no key of ours"),
        (lambda: key.unlink(), "is missing, and the store holds what was sealed"),
    ]
    for act, says in breaks:
        act()
        argv = [PROGRAMS["argusd"], "--config", w.argusd.config]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
        assert done.returncode == 2 and re.search(says, done.stderr), done.stderr
        key.write_text(text)
        key.chmod(0o600)
    w.argusd.start()
    assert "KEPT" in w.names()
