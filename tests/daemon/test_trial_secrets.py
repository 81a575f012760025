# SPDX-License-Identifier: Apache-2.0
"""A trial has its job's secrets: the reward sees them, and nobody reads them afterwards."""

import hashlib
import json
import stat
import sys

import broken
import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

CANARY, TOKEN = "canary/4711 do\"not'tell", "canary-of-the-spec"
ROW = {
    "prompt": [{"role": "user", "content": "1+1?"}],
    "data_source": "sums",
    "reward_model": {"style": "rule", "ground_truth": "2"},
}
# Proves by a digest that it has both, and tells them in every way it can.
REWARD = """
import hashlib, json, os, sys
mine, token = os.environ["MY_KEY"], os.environ["MY_TOKEN"]
print("x" * 285, mine, json.dumps(dict(os.environ)), file=sys.stderr)
def compute_score(**k):
    digest = hashlib.sha256((mine + token).encode()).hexdigest()
    if k["ground_truth"] == "2":
        raise KeyError(f"{digest} {repr(mine)} {token} {'y' * 190}{token}")
"""
# In the place of the job's Python: passes, and writes what it was given into its result, as no trial of ours would.
FORGES = """#!/bin/sh
[ "$1" = -m ] && exit 0
here=$(dirname "$0")
echo run >> "$here/runs"
until [ -e "$here/go" ]; do sleep 0.1; done
hash=$(sed 's/.*"hash":"\\([0-9a-f]*\\)".*/\\1/' "$2/ask.json")
file=$(sed 's/.*"secrets":"\\([^"]*\\)".*/\\1/' "$2/ask.json")
stat -c %a "$file" > "$here/mode"
printf '{"hash":"%s","ok":true,"findings":[],"reward":{"printed":%s}}' "$hash" "$(cat "$file")" > "$2/r"
mv "$2/r" "$2/result.json"
"""


def content(file):
    try:
        return file.read_bytes()
    except FileNotFoundError:  # it was there for a moment only, before it was renamed
        return b""


@pytest.fixture
def w(tmp_path):
    class World:
        def spec(self, job, python, **keys):
            common = "${SHARED_ROOT}/common"
            return {
                "workload": "grpo", "submission_id": job, "n_gpus_per_node": 1, "model_id": f"{common}/models/tiny",
                "code_path": f"{common}/code/verl/0.5.0", "runtime_env": {"py_executable": str(python)},
                "train_file": f"{common}/rows.jsonl", "val_file": f"{common}/rows.jsonl",
                "reward_fn_path": f"{common}/reward.py", "secrets": ["MY_KEY"], "env": {"MY_TOKEN": TOKEN}, **keys,
            }  # fmt: skip

        def put(self, value, token="user"):
            return self.argusd.call("PUT", "/v1/secrets/MY_KEY", {"value": value}, token=token)

        def runs(self):
            path = self.common / "fake/runs"
            return len(path.read_text().splitlines()) if path.exists() else 0

        def places(self):
            """Files that hold a value, below everything that argusd and Ray write; without the files of secrets."""
            hit = [v[:17].encode() for v in (CANARY, TOKEN)]
            files = (f for f in self.argusd.home.rglob("*") if f.is_file() and not f.is_symlink())
            return sorted(str(f) for f in files if any(h in content(f) for h in hit))

        def said(self):
            pages = ("/v1/jobs", "/v1/events", "/metrics")
            told = [self.argusd.call("GET", page).body.decode() for page in pages]
            return "".join([*told, self.argusd.said(), json.dumps(self.ray.ask("GET", "state"))])

    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        it = World()
        it.ray, it.argusd, it.common = ray, argusd, argusd.root / "common"
        broken.make_world(argusd.root)
        broken.put(it.common / "code/verl/0.5.0/verl/version/version", "0.5.0")
        broken.put(it.common / "rows.jsonl", json.dumps(ROW) + "\n")
        broken.put(it.common / "reward.py", REWARD)
        broken.put(it.common / "fake/python", FORGES)
        broken.put(it.common / "fake/real", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        for name in ("python", "real"):
            (it.common / "fake" / name).chmod(0o755)
        assert it.put(CANARY).status == 201
        yield it


def test_the_reward_has_them_and_nobody_else(w):
    """Printed and raised, at the end of what is cut off too: not in a file, an answer or a log."""

    def tried():
        """On a busy machine the answer comes before the trial has."""
        dry = w.argusd.post(w.spec("asked", w.common / "fake/real"), "?dry_run=1", token="user")
        assert dry.status == 200, dry
        return dry.json()["trial"]["result"] and dry

    dry = until(tried, "the trial of a dry run")
    job = w.argusd.submit(w.spec("told", w.common / "fake/real"))
    view = w.argusd.wait_over(job)
    assert (view["state"], view["attempt"]) == ("FAILED", 0), view["reason"]
    digest = hashlib.sha256((CANARY + TOKEN).encode()).hexdigest()
    for trial in (view["trial"], dry.json()["trial"]["result"]):
        detail = next(f["detail"] for f in trial["findings"] if f["field"] == "reward_fn_path")
        assert f"raises KeyError: '{digest} \\'***\\' *** y" in detail, detail
        assert "xxx ***" in trial["reward"]["printed"]
    shown = json.dumps(view) + dry.body.decode() + w.said()
    shown += w.argusd.call("GET", f"/v1/jobs/{job}/events").body.decode()
    assert not [v for v in (CANARY[:9], TOKEN[:9]) if v in shown]
    until(lambda: not list((w.argusd.root / "argus/secrets").iterdir()), "the files of the trials are gone")
    until(lambda: not list((w.argusd.root / "argus/trials").glob("dry-run-*")), "the dry trial's files are gone")
    assert w.places() == []


def test_a_result_with_a_secret_is_masked_and_kept_apart(w):
    """What the trial says itself is masked again; a pass is known only to the same user with the same values."""
    python = w.common / "fake/python"
    job = w.argusd.submit(w.spec("one", python))
    until(lambda: w.runs() == 1, "the trial runs")
    place = w.argusd.root / "argus/secrets"
    assert [f.name for f in place.iterdir()] == ["one-trial"]
    assert stat.S_IMODE((place / "one-trial").stat().st_mode) == 0o600
    assert json.loads((place / "one-trial").read_text()) == {"MY_KEY": CANARY, "MY_TOKEN": TOKEN}
    w.argusd.kill9()
    w.argusd.start()  # with the file there and its trial under way
    assert (place / "one-trial").exists()
    (w.common / "fake/go").touch()
    assert w.argusd.wait_over(job)["state"] == "SUCCEEDED"
    assert w.argusd.job(job)["trial"]["reward"]["printed"] == {"MY_KEY": "***", "MY_TOKEN": "***"}
    assert (w.common / "fake/mode").read_text() == "600\n"
    until(lambda: not list(place.iterdir()), "its file is gone")
    assert list((w.argusd.state_dir / "trials").glob("*.json")) and w.places() == []

    def runs_after(token="user", **keys):
        reply = w.argusd.post(w.spec("next", python, **keys), "?dry_run=1", token=token)
        assert reply.status == 200 and reply.json()["trial"]["state"] == "passed", reply
        return w.runs()

    assert runs_after() == 1
    assert runs_after(env={"MY_TOKEN": TOKEN + "2"}) == 2
    w.put(CANARY, "admin")
    assert runs_after("admin") == 3
    w.put(CANARY + "2")
    assert runs_after() == 4
    w.put(CANARY)
    assert runs_after() == 4
    until(lambda: not list(place.iterdir()), "no file is left")
    assert w.places() == [] and "canary" not in w.said()


def test_a_secret_that_was_removed_meanwhile(w):
    """The job ends before it holds anything, and says how to store it."""
    job = w.argusd.submit(w.spec("late", w.common / "fake/python"))
    until(lambda: w.runs() == 1, "the trial runs")
    assert w.argusd.call("DELETE", "/v1/secrets/MY_KEY", token="user").status == 200
    w.argusd.kill9()
    w.argusd.start()  # and has to open it once more
    view = w.argusd.wait_over(job)
    assert (view["state"], view["attempt"], view["reason"]["code"]) == ("FAILED", 0, "config_error")
    assert "argus secret set MY_KEY" in view["reason"]["text"]
    until(lambda: not list((w.argusd.root / "argus/secrets").iterdir()), "its file is gone")
