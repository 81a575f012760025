# SPDX-License-Identifier: Apache-2.0
"""Data sets and models in the real argusd, with a fake Ray that really runs the import jobs."""

import json
import os
import subprocess
import threading

import pytest
from fakeray import FakeRay
from fileserver import FileServer
from importing import hash_of, parquet_like, tree_of

from argusd import PATIENCE, PROGRAMS, Argusd, needs_argusd, until

pytestmark = needs_argusd

LINES = "".join(json.dumps({"question": f"{i} + {i}?", "answer": str(2 * i)}) + "\n" for i in range(30)).encode()


class Cli:
    def __init__(self, argusd, home, token):
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "ARGUS_URL": argusd.url, "ARGUS_TOKEN": token}

    def run(self, *args):
        return subprocess.run(
            [PROGRAMS["argus"], *args], env=self.env, capture_output=True, text=True, timeout=PATIENCE
        )


class Data:
    def __init__(self, argusd):
        self.argusd = argusd

    def bring(self, source, name="raw", token="user", kind="datasets", **more):
        form = {"name": name, "source": str(source), **more}

        def post():  # right after a start the shared root is still being checked
            reply = self.argusd.call("POST", f"/v1/{kind}", form, token=token)
            return reply.status != 503 and reply

        reply = until(post, "the import is taken")
        assert reply.status == 201, reply
        return reply.json()

    def get(self, ref, token="user", kind="datasets"):
        reply = self.argusd.call("GET", f"/v1/{kind}/{ref}", token=token)
        return reply.json() if reply.status == 200 else None

    def ready(self, ref, **more):
        def look():
            e = self.get(ref, **more)
            assert e, f"{ref} is gone: {self.argusd.said()[-3000:]}"
            return e["state"] == "ready" and e

        return until(look, f"{ref} is ready")

    def gone(self, ref, **more):
        until(lambda: self.get(ref, **more) is None, f"{ref} is gone")

    def log(self, entry):
        path = self.argusd.log_file(entry["job"])
        return path.read_text() if path.exists() else ""

    def left(self):
        """What imports have left below users/ and common/."""
        out = []
        for top in ("users", "common"):
            for p in (self.argusd.root / top).rglob("*"):
                if p.is_file() or p.name.startswith(".import"):
                    out.append(str(p.relative_to(self.argusd.root)))
        return sorted(out)


@pytest.fixture
def data(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        argusd.ray = ray
        yield Data(argusd)


def test_the_life_of_a_data_set(data):
    with FileServer({"train.jsonl": LINES}) as web:
        entry = data.bring(web.url + "/train.jsonl", "gsm8k.raw")
        assert (entry["ref"], entry["state"], entry["owner"]) == ("gsm8k.raw@1", "importing", "alice")
        assert data.argusd.wait_over(entry["job"])["state"] == "SUCCEEDED", data.log(entry)
        one = data.ready("gsm8k.raw")
    assert one["path"] == str(data.argusd.root / "users/alice/datasets/gsm8k.raw/1")
    assert tree_of(one["path"]) == {"train.jsonl": LINES}
    assert (one["rows"], one["bytes"], one["files"]) == (30, len(LINES), 1)
    assert one["hash"] == hash_of({"train.jsonl": LINES})
    assert one["fit"]["rl"] == {"fit": False, "missing": ["prompt", "data_source", "reward_model"]}
    assert len(one["about"]["sample"]) == 20 and one["about"]["sample"][0]["question"] == "0 + 0?"
    assert data.left() == ["users/alice/datasets/gsm8k.raw/1/train.jsonl"]

    # A second version beside it; the newest is meant when none is said.
    raw = data.argusd.root / "users/alice/more.jsonl"
    raw.write_bytes(LINES[: LINES.index(b"\n") + 1])
    two = data.bring("${USER_ROOT}/more.jsonl", "gsm8k.raw")
    assert two["ref"] == "gsm8k.raw@2" and two["source"] == str(raw)
    assert data.ready("gsm8k.raw@2")["rows"] == 1
    assert data.get("gsm8k.raw")["version"] == 2
    assert [e["ref"] for e in data.argusd.get("/v1/datasets", token="user")["datasets"]] == [
        "gsm8k.raw@2",
        "gsm8k.raw@1",
    ]

    # A restart keeps all of it; what is removed goes with its bytes, and its number is not given again.
    data.argusd.restart()
    assert data.get("gsm8k.raw@1")["hash"] == one["hash"]
    assert data.argusd.call("DELETE", "/v1/datasets/gsm8k.raw@2", token="user").status == 200
    assert data.get("gsm8k.raw@2") is None
    until(
        lambda: data.left() == ["users/alice/datasets/gsm8k.raw/1/train.jsonl", "users/alice/more.jsonl"], "it is swept"
    )
    third = data.bring(raw, "gsm8k.raw", in_place=True)
    assert third["ref"] == "gsm8k.raw@3"
    assert data.ready("gsm8k.raw@3")["path"] == str(raw)
    assert data.argusd.call("DELETE", "/v1/datasets/gsm8k.raw@3", token="user").status == 200
    until(lambda: "dataset_removed" in [e["kind"] for e in data.argusd.events()[-3:]], "it is gone")
    assert raw.exists()


def test_what_fails_leaves_nothing(data):
    with FileServer({"train.parquet": b"x"}) as web:
        web.spoil("/train.parquet", html=True)
        entry = data.bring(web.url + "/train.parquet")
        assert data.argusd.wait_over(entry["job"])["state"] == "FAILED"
        data.gone("raw")
    assert data.left() == []
    failed = [e for e in data.argusd.events() if e["kind"] == "dataset_import_failed"]
    assert len(failed) == 1 and "web page (HTML)" in failed[0]["text"]


def test_a_stop_in_the_middle_leaves_nothing(data):
    stall = threading.Event()
    with FileServer({"big.bin": bytes(1 << 20), "other.bin": bytes(10)}) as web:
        web.spoil("/big.bin", stall=stall)
        entry = data.bring(web.url + "/big.bin")
        until(lambda: (data.get("raw")["progress"] or {}).get("phase") == "fetching", "it is seen to fetch")
        assert any(".import-" in p for p in data.left())
        assert data.argusd.call("DELETE", "/v1/datasets/raw", token="user").status == 200
        assert data.argusd.wait_over(entry["job"])["state"] == "STOPPED"
        stall.set()
        data.gone("raw")
    assert data.left() == []


def test_what_is_taken_away_while_it_ends_well_does_not_come(data):
    """The stop is too late for the job, and not for the registry."""
    stall = threading.Event()
    with FileServer({"big.bin": bytes(1 << 20)}) as web:
        web.spoil("/big.bin", stall=stall)
        data.bring(web.url + "/big.bin")
        until(lambda: (data.get("raw")["progress"] or {}).get("phase") == "fetching", "it is seen to fetch")
        stall.set()
        data.argusd.call("DELETE", "/v1/datasets/raw", token="user")
        data.gone("raw")
    assert data.left() == []


def odd_progress(at, secret):
    """Ways in which a job can put something else in the place of its progress."""
    yield "a list", lambda: at.write_text('["forged"]')
    yield "deep", lambda: at.write_text("[" * 2000)
    yield "no JSON", lambda: at.write_bytes(b"\xff\x00{")
    yield "far", lambda: (at.write_text("{}"), os.truncate(at, 15 << 40))
    yield "a link", lambda: at.symlink_to(secret)
    yield "a pipe", lambda: os.mkfifo(at)
    yield "a directory", at.mkdir


def test_what_a_job_says_of_its_progress_holds_nobody(data, tmp_path):
    stall = threading.Event()
    (tmp_path / "secret").write_text('{"phase": "of another"}')
    raw = data.argusd.root / "common/train.jsonl"
    until(raw.parent.is_dir, "the root is prepared")
    raw.write_bytes(LINES)
    with FileServer({"big.bin": bytes(1 << 20), "other.bin": bytes(10)}) as web:
        web.spoil("/big.bin", stall=stall)
        entry = data.bring(web.url + "/big.bin")
        until(lambda: (data.get("raw")["progress"] or {}).get("phase") == "fetching", "it is seen to fetch")
        at = data.argusd.job_dir(entry["job"]) / "import/progress.json"
        for n, (what, put) in enumerate(odd_progress(at, tmp_path / "secret")):
            at.unlink() if not at.is_dir() else at.rmdir()
            put()
            data.bring(raw, f"other{n}", in_place=True, token="admin")  # each turn looks at all imports
            data.ready(f"other{n}", token="admin")
            told = data.get("raw")["progress"]
            assert told["phase"] == "fetching" and set(told) <= {"phase", "bytes", "total", "files", "of"}, what
        at.rmdir()
        at.write_text('{"phase": "checking"}')
        until(lambda: data.get("raw")["progress"] == {"phase": "checking"}, "it is read again")
        assert data.argusd.call("DELETE", "/v1/datasets/raw", token="user").status == 200
        stall.set()
        data.gone("raw")


def test_argusd_is_killed_meanwhile(data):
    """The job goes on without argusd; its end is taken up by the next one."""
    stall = threading.Event()
    with FileServer({"train.jsonl": LINES}) as web:
        web.spoil("/train.jsonl", stall=stall)
        entry = data.bring(web.url + "/train.jsonl", common=True)
        until(lambda: (data.get("raw")["progress"] or {}).get("phase") == "fetching", "it is seen to fetch")
        data.argusd.kill9()
        stall.set()
        until(lambda: (data.argusd.job_dir(entry["job"]) / "import/result.json").exists(), "the job has ended")
        data.argusd.start()
        assert data.ready("raw")["hash"] == hash_of({"train.jsonl": LINES})
    assert data.left() == ["common/datasets/raw/1/train.jsonl"]


def test_who_sees_what(data):
    """A common one is everybody's to see and its owner's to remove; one's own goes before it."""
    raw = data.argusd.root / "common/train.jsonl"
    until(raw.parent.is_dir, "the root is prepared")
    raw.write_bytes(LINES)
    data.bring(raw, common=True, token="admin")
    data.ready("raw")
    own = data.bring(raw, token="user")
    assert data.ready("raw@1")["owner"] == "alice" and own["path"].startswith(str(data.argusd.root / "users/alice"))
    assert data.get("common%3Araw")["owner"] == "admin"
    assert data.argusd.call("DELETE", "/v1/datasets/common%3Araw", token="user").status == 403
    assert data.get("alice%3Araw", token="admin")["owner"] == "alice"
    assert data.argusd.call("POST", "/v1/users", {"name": "bob"}).status == 201
    bob = data.argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
    assert data.get("raw", token=bob)["common"] and data.get("alice%3Araw", token=bob) is None
    assert [e["common"] for e in data.argusd.get("/v1/datasets", token=bob)["datasets"]] == [True]


@pytest.mark.parametrize(
    "more, field, want",
    [
        ({"name": "a/b"}, "name", "cannot be the name of"),
        ({"source": "relative/path"}, "source", "of no known kind"),
        ({"source": "gopher://x/y"}, "source", "of no known kind"),
        ({"source": "ftp://me:secret@host/x"}, "source", "would be seen by everybody"),
        ({"source": "/etc/passwd"}, "source", "lies under none of the directories"),
        ({"source": "${SHARED_ROOT}/users/bob/x"}, "source", "lies under none of the directories"),
        ({"source": "${SHARED_ROOT}/argus/hook"}, "source", "lies under none of the directories"),
        ({"source": "${USER_ROOT}/../bob/x"}, "source", "without '..'"),
        ({"source": "${SHARED_ROOT}/jobs/no-such/x"}, "source", "lies under none of the directories"),
        ({"source": "https://x/y", "in_place": True}, "in_place", "only a path can stay"),
        ({"sha256": "xyz"}, "sha256", "64 hexadecimal"),
        ({"filename": "../x"}, "filename", "no '/'"),
        ({"project": "nope"}, "project", None),
        ({"sources": "x"}, "sources", "unknown key"),
    ],
)  # fmt: skip
def test_bad_forms(refusing, more, field, want):
    reply = refusing.call("POST", "/v1/datasets", {"name": "x", "source": "http://x/y.jsonl", **more}, token="user")
    problem = reply.json()
    assert reply.status in (403, 422) and problem["field"] == field, problem
    assert want is None or want in problem["detail"], problem
    assert refusing.get("/v1/datasets")["datasets"] == []


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("refusing"), ray.url) as argusd:
        made = argusd.call("POST", "/v1/projects", {"name": "other"})
        assert made.status == 201
        until(lambda: argusd.post(Argusd.spec("true"), "?dry_run=1").status != 503, "the root is there")
        yield argusd


def make_model(path):
    path.mkdir(parents=True)
    header = json.dumps({"w": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}}).encode()
    (path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(48))
    (path / "config.json").write_text(json.dumps({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}))
    (path / "tokenizer.json").write_text("{}")


def test_a_model_is_looked_at(data):
    model = data.argusd.root / "users/alice/models/raw"
    make_model(model)
    lineage = {"job": "grpo-1", "data": ["gsm8k@1"]}
    data.bring(model, "tiny", kind="models", lineage=lineage)
    one = data.ready("tiny", kind="models")
    assert (one["architecture"], one["parameters"], one["lineage"]) == ("Qwen2ForCausalLM", 12, lineage)
    os.unlink(model / "config.json")
    data.bring(model, "tiny", kind="models")
    data.gone("tiny@2", kind="models")
    assert "no config.json" in [e for e in data.argusd.events() if e["kind"] == "model_import_failed"][0]["text"]


def test_files_of_what_is_registered_in_common_are_its_owners(data):
    """Everybody writes below common/, but not where an entry of somebody else lies: in it, above it, or its place."""
    argusd = data.argusd
    home = argusd.root / "common/shared-raw"
    home.mkdir(parents=True)
    (home / "train.jsonl").write_bytes(LINES)
    (argusd.root / "common/free.txt").write_text("anybody's")
    data.bring("${SHARED_ROOT}/common/shared-raw", in_place=True, token="admin")
    data.ready("raw@1", token="admin")

    def remove(path, token="user"):
        return argusd.call("DELETE", f"/v1/files?path={path}&recursive=true", token=token)

    def put(path):
        upload = argusd.call("POST", "/v1/uploads", {"name": "x", "bytes": 1}, token="user").json()["id"]
        octets = {"Content_Type": "application/octet-stream"}
        assert argusd.call("PUT", f"/v1/uploads/{upload}?offset=0", b"x", token="user", **octets).status == 200
        return argusd.call("POST", "/v1/files", {"path": path, "upload": upload, "replace": True}, token="user")

    inside = "common/shared-raw/train.jsonl"
    replies = [remove(inside), remove("common/shared-raw"), put(inside), put("common/shared-raw/more.jsonl")]
    assert [r.status for r in replies] == [403] * 4, replies
    assert replies[0].json()["detail"].endswith("cannot be changed: a registered data set or model lies there")
    assert (home / "train.jsonl").read_bytes() == LINES
    assert put("common/shared-raw-beside").status == 201
    assert remove("common/free.txt").status == 200
    assert argusd.call("DELETE", "/v1/datasets/raw@1", token="admin").status == 200
    data.gone("raw@1")
    assert remove("common/shared-raw").status == 200


def test_a_data_set_is_shared_with_a_user_and_a_project(data, tmp_path):
    argusd = data.argusd
    for name in ("bob", "carol", "dave"):
        assert argusd.call("POST", "/v1/users", {"name": name}).status == 201
        argusd.tokens[name] = argusd.call("POST", "/v1/tokens", {"user": name}).json()["token"]
    assert argusd.call("POST", "/v1/projects", {"name": "rl", "members": ["carol"]}).status == 201
    home = argusd.root / "users/alice/raw"
    home.mkdir(parents=True)
    (home / "train.parquet").write_bytes(parquet_like())
    data.bring(home, "mine")
    data.ready("mine@1")

    def seen():
        return {who for who in ("bob", "carol", "dave") if data.get("alice%3Amine@1", token=who)}

    def submit(who):
        spec = {"workload": "sft", "n_gpus_per_node": 1, "model_id": "o/m", "train_file": "alice:mine"}
        return argusd.post(spec, "?dry_run=1&no_trial=1", token=who).body.decode()

    def share(token="user", **body):
        return argusd.call("POST", "/v1/datasets/mine@1:share", body, token=token)

    assert seen() == set() and share("bob", users=["bob"]).status == 404
    reply = share(users=["bob"], projects=["rl"])
    assert (reply.status, reply.json()["shared"]) == (200, ["user/bob", "project/rl"]), reply
    assert seen() == {"bob", "carol"}
    listed = argusd.get("/v1/datasets", token="carol")["datasets"]
    assert [(e["ref"], e["owner"], e["shared"]) for e in listed] == [("mine@1", "alice", [])]
    unknown = "'alice:mine' is not an absolute path, nor a registered data set"
    assert [unknown in submit(who) for who in ("bob", "carol", "dave")] == [False, False, True]
    for change in ("DELETE", "POST"):
        path = "/v1/datasets/alice%3Amine@1" + (":share" if change == "POST" else "")
        assert argusd.call(change, path, {"users": ["dave"]} if change == "POST" else None, token="bob").status == 403
    assert "dataset_share" in [e["kind"] for e in argusd.events()]
    assert share().status == 400 and share(projects=["default"]).status == 400 and share(users=["No"]).status == 422
    argusd.restart()
    assert seen() == {"bob", "carol"}
    cli = Cli(argusd, tmp_path, argusd.tokens["user"])
    done = cli.run("data", "share", "mine", "--off", "--user", "bob")
    assert (done.returncode, seen()) == (0, {"carol"}), done
    done = cli.run("data", "share", "mine", "--off")
    assert (done.returncode, seen()) == (0, set()), done
    assert cli.run("data", "share", "mine").returncode != 0


def test_a_job_names_what_is_registered(data):
    """Names become paths at submit and stay those; what is in use is not removed."""
    home = data.argusd.root / "users/alice/raw"
    home.mkdir(parents=True)
    for name in ("train.parquet", "test.parquet"):
        (home / name).write_bytes(parquet_like())
    model = data.argusd.root / "users/alice/model"
    make_model(model)
    data.bring(home, "gsm8k")
    data.bring(model, "tiny", kind="models", in_place=True)
    one, tiny = data.ready("gsm8k"), data.ready("tiny", kind="models")

    spec = {"workload": "grpo", "nnodes": 1, "n_gpus_per_node": 1, "pool": "nowhere", "model_id": "tiny",
            "train_file": "gsm8k", "val_file": ["gsm8k@1", "alice:gsm8k/train.parquet"]}  # fmt: skip
    plan = data.argusd.post(spec, "?dry_run=1", token="user")
    assert plan.status == 200, plan
    argv = " ".join(plan.json()["argv"])
    assert f"data.train_files={one['path']}/train.parquet" in argv
    assert f"{one['path']}/test.parquet" in argv and f"model.path={tiny['path']}" in argv

    reply = data.argusd.post(spec, "?no_trial=1", token="user")
    assert reply.status == 201, reply
    job = reply.json()["id"]
    view = data.argusd.job(job)
    assert [(i["key"], i["ref"], i["hash"]) for i in view["inputs"]] == [
        ("train_file", "gsm8k@1", one["hash"]), ("val_file", "gsm8k@1", one["hash"]),
        ("val_file", "gsm8k@1", one["hash"]), ("model_id", "tiny@1", tiny["hash"])]  # fmt: skip
    data.bring(home, "gsm8k")
    data.ready("gsm8k@2")
    data.argusd.restart()
    assert data.argusd.job(job)["resolved_spec"]["train_file"] == [f"{one['path']}/train.parquet"]
    assert data.argusd.call("DELETE", "/v1/datasets/gsm8k@1", token="user").status == 409
    data.argusd.stop_job(job)
    data.argusd.wait_over(job)
    until(lambda: data.argusd.call("DELETE", "/v1/datasets/gsm8k@1", token="user").status == 200, "it is free")

    spec["val_file"] = "gsm8k@2"
    for key, value, want in (
        ("train_file", "nothing", "nor a registered data set"),
        ("train_file", "gsm8k@7", "nor a registered data set"),
        ("val_file", "bob:gsm8k", "nor a registered data set"),
        ("model_id", "tiny@3", "nor a registered model"),
        ("train_file", "gsm8k/../../x", "is not an absolute path"),
    ):
        refused = data.argusd.post({**spec, key: value}, "?dry_run=1", token="user")
        assert refused.status == 422 and want in refused.json()["detail"], refused
        assert refused.json()["field"] == key


def test_a_script_prepares_it_and_the_command_line_shows_it(data, tmp_path):
    """By the command line, whole: a script needs no pyarrow here."""
    cli = Cli(data.argusd, tmp_path, data.argusd.tokens["user"])
    mine = data.argusd.root / "users/alice"
    (mine / "code").mkdir(parents=True)
    (mine / "train.jsonl").write_bytes(LINES)
    script = mine / "code/make.py"
    script.write_text(
        "import sys  # --local_dataset_path --local_save_dir\n"
        "given = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"
        "raw = open(given['--local_dataset_path'] + '/train.jsonl', 'rb').read()\n"
        f"open(given['--local_save_dir'] + '/train.parquet', 'wb').write({parquet_like()!r})\n"
    )
    done = cli.run("data", "import", "${USER_ROOT}/train.jsonl", "--name", "raw", "--wait")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split()[0] == "raw@1"
    data.ready("raw")
    done = cli.run("data", "prepare", "raw", "--with", str(script), "--as", "made", "--wait")
    assert done.returncode == 0, done.stderr + data.argusd.said()[-2000:]
    made = data.ready("made")
    assert made["lineage"] == {"data": ["raw@1"], "hash": data.get("raw")["hash"], "with": str(script)}
    assert tree_of(made["path"]) == {"train.parquet": parquet_like()}

    cli.env["COLUMNS"] = "80"
    listed = cli.run("data", "ls")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["NAME", "made@1", "raw@1"]
    assert all(len(line) <= 80 for line in listed.stdout.splitlines())
    shown = cli.run("data", "show", "raw").stdout
    assert "rows         30" in shown and "rl           not fit: missing prompt, data_source, reward_model" in shown
    assert "columns      question: string" in shown
    assert "row 1        question: 0 + 0?\n             answer: 0\n" in shown, shown
    assert json.loads(cli.run("data", "show", "made", "-o", "json").stdout)["ref"] == "made@1"
    assert cli.run("data", "rm", "raw@1").stdout == "raw@1 removed\n"
    assert cli.run("data", "show", "raw").returncode == 4
    assert cli.run("data", "import", "x").returncode == 2
    assert cli.run("model", "ls").returncode == 0
    refused = data.argusd.call("POST", "/v1/datasets:prepare", {"name": "made", "with": "relative.py"}, token="user")
    assert refused.status == 422 and refused.json()["field"] == "with"
    unknown = data.argusd.call("POST", "/v1/datasets:prepare", {"name": "nothing", "with": "gsm8k"}, token="user")
    assert unknown.status == 404
