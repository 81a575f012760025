# SPDX-License-Identifier: Apache-2.0
"""bench/blackbox: what an answer scores, what the scenes are, and what argusd says of scenes that are played back."""

import json
import pathlib
import re
import sys

import pytest
from receiver import Receiver, chat

from argusd import needs_argusd

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import contestants  # noqa: E402
import scenemaker  # noqa: E402
from scene import Scene, score  # noqa: E402

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB"
XID = "NVRM: Xid (PCI:0000:db:00): 48, pid=991, name=python3, Double Bit ECC Error"
ONE = {"causes": ["gpu_oom"]}
FIELD = re.compile(r"\{(?:user|ip|driver|pid|node|rank|pci|name|error|n|loss|norm|score)\b")
QUOTE = {"file": "logs/driver.log", "line": 2, "text": OOM}


@pytest.fixture
def scene(tmp_path):
    files = {"job.json": '{"exit": {"code": 1}}', "logs/driver.log": f"step:1\n\x1b[36m{OOM}\x1b[0m\nthe end\n",
             "scene/n1/kernel.txt": f"[1.0] {XID}\n"}  # fmt: skip
    scenemaker.put_files(tmp_path, files)
    return Scene(str(tmp_path))


def says(*causes, path=(QUOTE,)):
    return {"causes": list(causes), "path": list(path)}


# ---- the scorer ----


def test_the_true_cause_alone_is_worth_one(scene):
    assert score(scene, ONE, says("gpu_oom")) == 1
    kernel = {"file": "scene/n1/kernel.txt", "line": 1, "text": XID}
    assert score(scene, ONE, says("gpu_oom", path=[QUOTE, {**kernel, "line": None}, kernel])) == 1
    assert score(scene, ONE, says("gpu_oom", path=[{"file": None, "line": None, "text": XID}])) == 1


@pytest.mark.parametrize("causes", [["host_oom"], ["gpu_hardware"], ["unknown"], []])
def test_a_wrong_cause_is_worth_nothing(scene, causes):
    assert score(scene, ONE, says(*causes)) == 0


def test_a_distractor_that_is_named_too_costs(scene):
    assert score(scene, ONE, says("gpu_oom", "gpu_hardware")) == 1 / 2
    assert score(scene, ONE, says("gpu_oom", "gpu_hardware", "host_oom")) == 1 / 3
    assert score(scene, ONE, says("gpu_oom", "gpu_oom")) == 1


def test_all_true_causes_are_asked_for(scene):
    two = {"causes": ["gpu_oom", "gpu_hardware"]}
    assert score(scene, two, says("gpu_oom")) == 0
    assert score(scene, two, says("gpu_hardware", "gpu_oom")) == 1
    assert score(scene, two, says("gpu_hardware", "gpu_oom", "host_oom")) == 2 / 3


@pytest.mark.parametrize(
    "hop",
    [
        {"file": "logs/driver.log", "line": 2, "text": OOM + " more"},  # not in the line
        {"file": "logs/driver.log", "line": 1, "text": OOM},  # another line
        {"file": "logs/driver.log", "line": 0, "text": OOM},
        {"file": "logs/driver.log", "line": -3, "text": OOM},
        {"file": "logs/driver.log", "line": 99, "text": OOM},
        {"file": "logs/driver.log", "line": "2", "text": OOM},
        {"file": "scene/n1/kernel.txt", "line": None, "text": OOM},  # another file
        {"file": "../../etc/passwd", "line": None, "text": OOM},
        {"file": None, "line": 2, "text": OOM},  # a number of no file
        {"file": ["logs/driver.log"], "line": 2, "text": OOM},
        {"file": "logs/driver.log", "line": None, "text": "CUDA"},  # stands anywhere
        {"file": "logs/driver.log", "line": None, "text": ""},
        {},
    ],
)
def test_a_quote_that_is_not_there_is_worth_nothing(scene, hop):
    assert score(scene, ONE, says("gpu_oom", path=[QUOTE])) == 1
    assert score(scene, ONE, says("gpu_oom", path=[QUOTE, hop])) == 0


def test_a_failure_wants_a_quote(scene):
    assert score(scene, ONE, says("gpu_oom", path=[])) == 0


def test_a_healthy_run_is_blamed_for_nothing(scene):
    well = {"causes": []}
    assert score(scene, well, says(path=[])) == 1 and score(scene, well, says("none", path=[])) == 1
    assert score(scene, well, says("gpu_oom")) == 0


# ---- the scenes ----


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    where = tmp_path_factory.mktemp("scenes") / "made"
    names = scenemaker.make_scenes(where, seed=3, per_kind=2)
    truths = [json.loads((where / "truth" / f"{n}.json").read_text()) for n in names]
    return [(Scene(str(where / "scenes" / n)), t) for n, t in zip(names, truths, strict=True)]


def tree(where):
    return {p.relative_to(where): p.read_bytes() for p in where.rglob("*") if p.is_file()}


def test_a_seed_makes_the_same_scenes_again(tmp_path):
    kinds = ["gpu_oom", "data_error"]
    for place, seed in (("one", 1), ("again", 1), ("other", 2)):
        scenemaker.make_scenes(tmp_path / place, seed, kinds, per_kind=1)
    assert tree(tmp_path / "one") == tree(tmp_path / "again") != tree(tmp_path / "other")


def test_how_many_there_are():
    groups = [row[0] for row in scenemaker.plan(scenemaker.KINDS, 10)]
    assert {g: groups.count(g) for g in groups} == {"kind": 250, "healthy": 30, "distractor": 30}
    assert 16 <= len(scenemaker.KINDS) <= 25


def test_the_truth_stands_outside(made):
    for scene, truth in made:
        told = scene.files["job.json"] + scene.files["events.jsonl"] + scene.name + " ".join(scene.files)
        assert "causes" not in told and "truth" not in told
        assert not any(word in told for word in [truth["kind"], *truth["causes"], "distractor"]), told


def test_what_was_wrong_can_be_quoted(made):
    known = json.loads((scenemaker.LOGS / "truth.json").read_text())
    seen = set()
    for scene, truth in made:
        source = pathlib.PurePath(truth["from"]).stem
        assert scene.job["exit"]["code"] == (0 if truth["kind"] == "healthy" else 1)
        if truth["kind"] in scenemaker.REAL:
            assert known[source]["quote"] in scene.files["logs/driver.log"]
            seen.add(truth["kind"])
        else:
            assert not FIELD.search("".join(scene.files.values())), "a field that was not filled"
    assert seen == set(scenemaker.REAL)


def test_a_distractor_is_beside_the_failure(made):
    found = {t["distractor"]: (s, t) for s, t in made if "distractor" in t}
    assert set(found) == set(scenemaker.DISTRACTORS)
    for name, (scene, truth) in found.items():
        assert truth["distractor_cause"] not in truth["causes"]
        node = scene.job["nodes"][0]["name"]
        facts, since, whole = (scene.files[f] for f in (f"scene/{node}/scene.json", f"scene/{node}/kernel.txt",
                                                        f"nodes/{node}/dmesg.txt"))  # fmt: skip
        facts = json.loads(facts)
        if name == "xid":
            assert facts["xid"] in (48, 79) and facts["xid_line"] in since and "0000:db:00" in facts["xid_line"]
            assert "0000:db:00" not in json.dumps(scene.job["nodes"]), "no GPU of the job"
        elif name == "old_oom":
            assert "Killed process" in whole and "Killed process" not in since and facts["own_oom_kills"] == 0
        else:
            assert "Killed process" in since and facts["oom_kills"] == 1
            assert facts["oom_unsure"] == (facts["own_oom_kills"] == 1)


# ---- who answers ----


def test_the_script_has_no_more_than_its_policy():
    ask = contestants.by_hand
    files = {"a": ["fine", "ValueError: x", "the end"], "b": [f"[9.0] {XID}"]}
    assert ask(0, files) == {"causes": [], "path": []}
    assert ask(1, files)["causes"] == ["gpu_hardware"], "it compares no GPUs"
    assert ask(1, {"a": files["a"]}) == says(
        "user_code_error", path=[{"file": "a", "line": 2, "text": "ValueError: x"}])  # fmt: skip
    assert ask(1, {"a": [OOM, "ValueError: x"]})["causes"] == ["gpu_oom"]
    assert ask(1, {"a": ["fine"]})["causes"] == ["unknown"]


@pytest.fixture
def model(monkeypatch):
    with Receiver() as made:
        monkeypatch.setenv("ARGUS_BLACKBOX_OPENAI", f"http://127.0.0.1:{made.port}/v1/")
        yield made


def test_a_model_is_shown_the_files_and_is_scored_as_others_are(scene, model):
    model.answer = chat(json.dumps(says("gpu_oom")))
    assert score(scene, ONE, contestants.ask_model(scene)) == 1
    system, user = (message["content"] for message in model.bodies()[0]["messages"])
    assert OOM in user and XID in user and "=== logs/driver.log" in user
    assert {"gpu_oom", "user_code_error"} < set(system.split())
    for nonsense in ("it was the GPU", "[]", '{"causes": "gpu_oom"}', '{"causes": ["gpu_oom"], "path": ["x", 7]}'):
        model.answer = chat(nonsense)
        assert score(scene, ONE, contestants.ask_model(scene)) == 0


@needs_argusd
def test_argusd_answers_of_scenes_that_are_played_back(tmp_path):
    """By the driver's log, by a line of the kernel and by a fact that scouts brought, and a healthy run."""
    rows = [("kind", "gpu_oom", 0, None), ("kind", "host_oom_killed", 0, None), ("kind", "shm_exhausted", 1, None),
            ("healthy", "healthy", 0, None)]  # fmt: skip
    scenes, truths = [], {}
    for n, row in enumerate(rows):
        files, truths[f"scene-{n}"] = scenemaker.make_scene(row, f"scene-{n}", seed=1)
        scenemaker.put_files(tmp_path / "made" / f"scene-{n}", files)
        scenes.append(Scene(str(tmp_path / "made" / f"scene-{n}")))
    (tmp_path / "home").mkdir()
    with contestants.replayed(tmp_path / "home", scenes) as bed:
        for scene in scenes:
            for ask in (bed.ask_finder, bed.ask_mcp):
                answer = ask(scene)
                assert score(scene, truths[scene.name], answer) == 1, (truths[scene.name], answer)
