# SPDX-License-Identifier: Apache-2.0
"""NodeSpec's model_cache: a registered model is copied once to the own disk of each node of a job, and read from there;
the script that does it alone, and argusd with a stand-in for ssh that runs scripts here."""

import contextlib
import hashlib
import json
import os
import pathlib
import signal
import sqlite3
import subprocess

import pytest
import standin
from fakeray import FakeRay
from test_registry import Data, make_model

from argusd import Argusd, needs_argusd, until

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "src/ssh/modelcache.sh"
MANY = 10**9
NOT_CACHED = "from the shared root and not from its nodes' own disks"


def hash_of_tree(top):
    rows = sorted(str(p.relative_to(top)) for p in top.rglob("*") if p.is_file())
    listing = "".join(f"{hashlib.sha256((top / r).read_bytes()).hexdigest()}  {r}\n" for r in rows)
    return hashlib.sha256(listing.encode()).hexdigest()


class Cache:
    """One machine's, by the script alone."""

    def __init__(self, home):
        self.home, self.dir = home, home / "disk/cache"

    def model(self, name, size=1000):
        top = self.home / "root" / name
        (top / "sub dir").mkdir(parents=True)
        (top / "sub dir/weights").write_bytes(name.encode() * size)
        (top / "config.json").write_text(f'{{"name": "{name}"}}')
        return top

    def words(self, top, job, most, live, key):
        return ["sh", SCRIPT, self.dir, top, key or hash_of_tree(top), str(most), job, *live]

    def ask(self, top, job="j", most=MANY, live=(), key=None, env=None):
        run = subprocess.run(
            self.words(top, job, most, live, key), stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env
        )
        assert run.returncode == 0, run
        answer = dict(line.split("=", 1) for line in run.stdout.splitlines())
        return answer["STATE"], answer

    def copy(self, top, key=None):
        return self.dir / (key or hash_of_tree(top)) / "model"

    def kept(self):
        return {p.name for p in self.dir.iterdir() if not p.name.startswith(".")}

    def is_clean(self):
        return not [p for p in self.dir.iterdir() if p.name.startswith(".") and not p.name.endswith(".lock")]


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path)


def same(a, b):
    return hash_of_tree(a) == hash_of_tree(b)


def test_copied_once(cache):
    top = cache.model("m")
    state, answer = cache.ask(top)
    assert (state, answer["BYTES"]) == ("miss", str(sum(p.stat().st_size for p in top.rglob("*") if p.is_file())))
    assert same(cache.copy(top), top) and cache.is_clean()
    before = [p.stat().st_ino for p in sorted(cache.copy(top).rglob("*"))]
    assert cache.ask(top, "k")[0] == "hit"
    assert [p.stat().st_ino for p in sorted(cache.copy(top).rglob("*"))] == before and cache.is_clean()


def test_a_copy_that_was_changed_is_none(cache):
    top = cache.model("m")
    assert cache.ask(top)[0] == "miss"
    for change in ("bytes", "gone", "more"):
        weights = cache.copy(top) / "sub dir/weights"
        weights.chmod(0o644)
        if change == "bytes":
            weights.write_bytes(b"x")
        elif change == "gone":
            weights.unlink()
        else:
            (cache.copy(top) / "another").write_text("")
        assert cache.ask(top)[0] == "miss", change
        assert same(cache.copy(top), top) and cache.is_clean()


def test_what_is_not_what_was_registered_gets_no_name(cache):
    top = cache.model("m")
    key = hash_of_tree(top)
    (top / "config.json").write_text("{}")
    state, answer = cache.ask(top, key=key)
    assert state == "differs" and "is not what was registered" in answer["TEXT"], answer
    assert cache.kept() == set() and cache.is_clean()


def test_the_oldest_goes_and_none_in_use(cache):
    tops = {name: cache.model(name) for name in ("a", "b", "c", "d")}
    keys = {name: hash_of_tree(top) for name, top in tops.items()}
    size = sum(p.stat().st_size for p in tops["a"].rglob("*") if p.is_file())
    room = {"most": 2 * size + 10}
    assert cache.ask(tops["a"], "ja", **room)[0] == cache.ask(tops["b"], "jb", **room)[0] == "miss"
    assert cache.ask(tops["a"], "ja", live=["ja", "jb"], **room)[0] == "hit"  # b was used longest ago
    state, answer = cache.ask(tops["c"], "jc", live=["ja", "jb", "jc"], **room)
    assert state == "full" and "is in use" in answer["TEXT"] and cache.kept() == {keys["a"], keys["b"]}
    state, answer = cache.ask(tops["c"], "jc", live=["jb", "jc"], **room)
    assert (state, answer["REMOVED"]) == ("miss", "1") and cache.kept() == {keys["b"], keys["c"]}
    state, answer = cache.ask(tops["d"], "jd", live=["jd"], **room)
    assert (state, answer["REMOVED"]) == ("miss", "1") and cache.kept() == {keys["c"], keys["d"]}
    state, answer = cache.ask(tops["a"], "ja", most=size - 1)
    assert state == "full" and "all copies may take" in answer["TEXT"]
    assert cache.is_clean()


def test_two_at_once_make_one_copy(cache):
    top = cache.model("m", 300_000)
    words = [cache.words(top, f"j{i}", MANY, [], None) for i in range(4)]
    runs = [subprocess.Popen(w, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) for w in words]
    states = [r.communicate()[0].splitlines()[0] for r in runs]
    assert sorted(states) == ["STATE=hit"] * 3 + ["STATE=miss"]
    assert same(cache.copy(top), top) and cache.is_clean()


def test_killed_in_the_middle(cache):
    """What is left of it is no copy, and goes with the next one of any model."""
    top, other = cache.model("m", 30_000_000), cache.model("n")
    part = cache.dir / f".{hash_of_tree(top)}.part"
    words, null = cache.words(top, "j", MANY, [], None), subprocess.DEVNULL
    run = subprocess.Popen(words, stdin=null, stdout=null, start_new_session=True)
    until(lambda: (part / "model").exists(), "it copies")
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    lock = part.with_suffix(".lock")  # what the script had called dies a moment later, and holds it until then
    until(lambda: subprocess.run(["flock", "-n", lock, "true"]).returncode == 0, "nobody holds the lock")
    assert cache.kept() == set()
    assert cache.ask(other)[0] == "miss" and not part.exists()
    assert cache.ask(top)[0] == "miss" and same(cache.copy(top), top)


def test_a_place_that_cannot_be_used(cache):
    top = cache.model("m")
    cache.dir.parent.mkdir()
    cache.dir.write_text("a file")
    assert cache.ask(top)[0] == "broken"
    cache.dir.unlink()
    assert cache.ask(cache.home / "nothing", key="0" * 64)[0] == "broken"
    bare = cache.home / "bin"
    bare.mkdir()
    for tool in ("sh", "mkdir", "rm"):
        (bare / tool).symlink_to(f"/bin/{tool}")
    state, answer = cache.ask(top, env={"PATH": str(bare)})
    assert state == "broken" and "no flock" in answer["TEXT"], answer


# ---- argusd ----

SSH = """#!/bin/sh
# A machine is this one; whoever asks for something else than a model finds nobody.
script=$(mktemp {home}/script.XXXXXX) && cat >"$script"
grep -q '^# modelcache.sh' "$script" || exit 255
case "$*" in *"$(cat {home}/away 2>/dev/null || echo nobody)"*) exit 255 ;; esac
exec sh -s <"$script"
"""


@contextlib.contextmanager
def bed(home):
    """Two machines of Ray's list that argusd reaches, and a registered model."""
    (home / "bin").mkdir()
    (home / "bin/ssh").write_text(SSH.format(home=home))
    (home / "bin/ssh").chmod(0o755)
    with FakeRay(state=home / "ray") as ray:
        a = Argusd(home, ray.url)
        a.env = {"PATH": f"{home / 'bin'}:{os.environ['PATH']}"}
        with a:
            a.ray = ray
            standin.make_world(a.root)
            model = a.root / "users/alice/models/raw"
            make_model(model)
            data = Data(a)
            data.bring(model, "tiny-model", kind="models")
            a.model = data.ready("tiny-model", kind="models")
            yield a


def join(a, **caches):
    for node, cache in caches.items():
        given = {"name": node, "host": f"{node}.invalid", "labels": ["x"], **({"model_cache": cache} if cache else {})}
        assert a.call("POST", "/v1/nodes", given).status in (200, 201, 202)
    a.stop()
    with contextlib.closing(sqlite3.connect(a.state_dir / "argus.db")) as db, db:
        for name, body in db.execute("SELECT name, body FROM entry WHERE kind = 'node'").fetchall():
            row = {**json.loads(body), "state": "online", "step": "in", "may_run": True}  # as their join leaves them
            db.execute("UPDATE entry SET body = ? WHERE kind = 'node' AND name = ?", (json.dumps(row), name))
    a.start()
    until(lambda: all(a.get(f"/v1/nodes/{n}")["state"] == "online" for n in caches), "they are in")


def trained(a, nnodes=1):
    """The model's path in the command line, and what was told of it."""
    t = standin.Training(a, model_id="tiny-model", nnodes=nnodes, pool="x")
    argv = dict(x.split("=", 1) for x in a.job(t.id)["argv"] if "=" in x)
    told = [e for e in a.events(t.id) if e["kind"] == "model_cache"]
    return t, argv["actor_rollout_ref.model.path"], told


def ended(a, t):
    t.order("exit", 0)
    assert a.wait_over(t.id)["state"] == "SUCCEEDED"


@needs_argusd
def test_a_job_reads_it_from_its_node(tmp_path):
    with bed(tmp_path) as a:
        cache = tmp_path / "disk"
        join(a, h2=str(cache), h3=str(cache))
        assert a.get("/v1/nodes/h2")["spec"]["model_cache"] == str(cache)
        copy = cache / a.model["hash"].removeprefix("sha256:") / "model"
        first, path, (told,) = trained(a)
        assert path == str(copy) and same(copy, pathlib.Path(a.model["path"]))
        assert "each of its nodes" in told["text"] and " miss " in told["text"] and str(copy) in told["text"], told
        second, path, (told,) = trained(a)
        assert path == str(copy) and " hit " in told["text"], told
        ended(a, first)
        ended(a, second)
        both, path, (told,) = trained(a, nnodes=2)
        assert path == str(copy) and "h2 hit" in told["text"] and "h3 hit" in told["text"], told
        a.kill9()
        a.start()  # it runs on, and is not asked for again
        ended(a, both)
        assert len([e for e in a.events(both.id) if e["kind"] == "model_cache"]) == 1
        # The copy was spoilt: it is made anew, and read.
        next(copy.glob("*.safetensors")).unlink()
        third, path, (told,) = trained(a)
        assert path == str(copy) and " miss " in told["text"] and same(copy, pathlib.Path(a.model["path"]))
        ended(a, third)


@needs_argusd
def test_whatever_fails_the_job_starts_with_the_shared_root(tmp_path):
    with bed(tmp_path) as a:
        cache = tmp_path / "disk"
        join(a, h2=str(cache), h3=str(cache))
        cache.write_text("no directory")
        t, path, (told,) = trained(a)
        assert path == a.model["path"] and NOT_CACHED in told["text"] and " broken " in told["text"], told
        ended(a, t)
        cache.unlink()
        (tmp_path / "away").write_text("h3.invalid")  # one of two is not reached
        t, path, (told,) = trained(a, nnodes=2)
        assert path == a.model["path"] and "h2 miss" in told["text"] and "h3 away" in told["text"], told
        ended(a, t)
        (tmp_path / "away").unlink()
        weights = next(pathlib.Path(a.model["path"]).glob("*.safetensors"))
        for spoilt in cache.glob("*/model/*.safetensors"):
            spoilt.unlink()
        weights.chmod(0o644)
        weights.write_bytes(weights.read_bytes()[:-1] + b"x")
        t, path, (told,) = trained(a)
        assert path == a.model["path"] and " differs " in told["text"], told
        ended(a, t)


@needs_argusd
def test_one_node_without_a_cache(tmp_path):
    with bed(tmp_path) as a:
        join(a, h2=str(tmp_path / "disk"), h3=None)
        t, path, (told,) = trained(a, nnodes=2)
        assert path == a.model["path"] and NOT_CACHED in told["text"] and "h3: model_cache -" in told["text"], told
        ended(a, t)
        reply = a.call("POST", "/v1/nodes", {"name": "n", "host": "n.invalid", "model_cache": "relative"})
        assert (reply.status, reply.json()["problems"][0]["code"]) == (422, "node_model_cache"), reply
