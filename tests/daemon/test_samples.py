# SPDX-License-Identifier: Apache-2.0
"""What a training wrote: dumped by a stand-in for verl under the hook, indexed, and asked for over the API and the
command line."""

import json
import os
import subprocess

import jsonschema
import pytest
import standin
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

LOOP = "so it is " * 20


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("samples"), ray.url) as made:
        standin.make_world(made.root)
        assert made.call("PUT", "/v1/secrets/MY_KEY", {"value": "canary-value-77"}, token="user").status in (200, 201)
        yield made


@pytest.fixture(scope="module")
def training(argusd):
    t = standin.Training(argusd)
    first = [("2+2=", "5", 0.0), ("2+2=", "4", 1.0), ("a b", "x\n<b>é</b> & y", 0.5)]
    t.dump(1, first, acc=[0, 1, None], why=["", "ok", {}])
    t.dump(2, [("2+2=", "4", 1.0), ("2+2=", "four", 1.0), ("c", LOOP, -1.0)], acc=[1, 1, float("nan")])
    t.dump(10, [("2+2=", "it is canary-value-77", 0.25), ("2+2=", "4", 0.25), ("a b", "z", 1.0)])
    t.dump(10, [("v", "w", 1.0)], kind="validation")
    yield t
    argusd.stop_job(t.id)


def ask(argusd, job, query="", status=200, token="user"):
    reply = argusd.call("GET", f"/v1/jobs/{job}/samples{query}", token=token)
    assert reply.status == status, reply
    return reply.json()


def answers(argusd, job, query=""):
    return [(s["step"], s["output"], s["score"]) for s in ask(argusd, job, query)["samples"]]


def test_the_newest_step(argusd, training):
    page = ask(argusd, training.id)
    jsonschema.validate(page, {**argusd.get("/v1/openapi.json"), "$ref": "#/components/schemas/Samples"})
    assert (page["kind"], page["pending"], page["next_cursor"], page["cut"]) == ("rollout", False, None, False)
    assert [(s["output"], s["score"]) for s in page["samples"]] == [("it is ***", 0.25), ("4", 0.25), ("z", 1.0)]
    steps = {s["step"]: s for s in page["steps"]}
    assert list(steps) == [10, 2, 1]
    assert (steps[10]["groups"], steps[10]["flat_groups"], steps[10]["score_mean"]) == (1, 1, 0.5)
    assert (steps[1]["groups"], steps[1]["flat_groups"], steps[1]["samples"]) == (1, 0, 3)
    assert ask(argusd, training.id, "?kind=validation")["samples"][0]["input"] == "v"


def test_a_sample_as_it_is(argusd, training):
    """Text is text: nothing of it is changed, and parts of the reward are numbers where they are some."""
    odd = ask(argusd, training.id, "?step=1")["samples"][2]
    assert (odd["input"], odd["output"], odd["repeats"]) == ("a b", "x\n<b>é</b> & y", 0)
    assert odd["parts"] == {"acc": None, "why": "{}"}
    looping = ask(argusd, training.id, "?step=2&order=worst&limit=1")["samples"][0]
    assert looping["repeats"] > 0.8 and looping["score"] == -1 and looping["parts"] == {"acc": None}


def test_orders_and_filters(argusd, training):
    assert answers(argusd, training.id, "?step=1&order=worst&limit=2") == [(1, "5", 0.0), (1, "x\n<b>é</b> & y", 0.5)]
    assert answers(argusd, training.id, "?step=1&order=best&limit=1") == [(1, "4", 1.0)]
    assert answers(argusd, training.id, "?step=1&min=0.4&max=0.6") == [(1, "x\n<b>é</b> & y", 0.5)]
    assert [s[:2] for s in answers(argusd, training.id, "?grep=%5E4$")] == [(10, "4"), (2, "4"), (1, "4")]
    assert answers(argusd, training.id, "?grep=canary") == [], "what is not shown is not found either"
    changed = ask(argusd, training.id, "?step=10&order=changed&since=1")["samples"]
    assert [(s["output"], s["change"]) for s in changed] == [("z", 0.5), ("it is ***", -0.25), ("4", -0.25)]


def test_one_prompt_over_the_steps(argusd, training):
    prompt = ask(argusd, training.id, "?step=1")["samples"][0]["prompt"]
    assert [s[:2] for s in answers(argusd, training.id, f"?prompt={prompt}")] == [
        (10, "it is ***"), (10, "4"), (2, "4"), (2, "four"), (1, "5"), (1, "4"),
    ]  # fmt: skip
    seen, cursor = [], ""
    while cursor is not None:
        page = ask(argusd, training.id, f"?prompt={prompt}&limit=4{cursor}")
        seen += [s["output"] for s in page["samples"]]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
    assert seen == ["it is ***", "4", "4", "four", "5", "4"]


def test_long_texts_are_cut_and_it_is_said(argusd, training):
    sample = ask(argusd, training.id, "?step=2&order=worst&limit=1&text=10")["samples"][0]
    assert (sample["output"], sample["cut"]) == (LOOP[:10], True)
    assert ask(argusd, training.id, "?step=1&text=4")["samples"][2]["output"] == "x\n<b"


def test_who_may(argusd, training):
    argusd.call("POST", "/v1/users", {"name": "bob"})
    argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
    ask(argusd, training.id, status=404, token="bob")


def test_the_sampler_indexes_while_it_runs(argusd, training):
    """The index is there before anybody asks."""
    other = standin.Training(argusd)
    other.dump(1, [("p", "q", 1.0)])
    index = argusd.state_dir / "samples" / "alice" / other.id
    until(lambda: index.is_file() and index.stat().st_size, "its samples are indexed")
    assert b"output" not in index.read_bytes(), "numbers alone"
    argusd.stop_job(other.id)


def opens(argusd, job, look):
    """A sample to look at is what it says, without its text, and its command opens it."""
    assert set(look) == {"step", "prompt", "score", "command"} and 1 <= look["step"] <= 12
    worst = ask(argusd, job, f"?step={look['step']}&prompt={look['prompt']}&order=worst")["samples"][0]
    assert worst["score"] == look["score"]
    program, noun, *args = look["command"].split()
    assert (program, noun) == ("argus", "samples")
    assert look["prompt"] in cli(argusd, *args).stdout


def test_samples_that_come_behind_the_last_step(argusd):
    """An alert shows them though no step is told any more."""
    t = standin.Training(argusd, alerts=["critic/score/mean < 0.1"])
    step = {"step": 1, "data": {"critic/score/mean": 0.05, "timing_s/step": 1.0}}
    with open(argusd.job_dir(t.id) / "attempts/1/metrics.jsonl", "a") as f:
        f.write(json.dumps(step) + "\n")

    def alert():
        return (argusd.job(t.id)["metric_alerts"] or [{}])[0]

    until(lambda: alert().get("stands"), "the alert holds")
    assert "samples" not in alert()
    t.dump(1, [("p", "q", 0.5)])
    (look,) = until(lambda: alert().get("samples"), "its sample is shown")
    opens(argusd, t.id, look)
    argusd.stop_job(t.id)


def test_what_they_say_is_a_metric_and_judged(argusd):
    """Shares of each step beside its own metrics, in the verdict too: here all answers to a prompt are one text."""
    t = standin.Training(argusd, alerts=["samples/flat_groups >= 50 % for 2 steps"])
    for step in range(1, 13):
        t.dump(step, [("2+2=", "4", 1.0), ("2+2=", "4", 1.0), (f"{step}", "x", 0.0), (f"{step}", "x", 1.0)])
    path = argusd.job_dir(t.id) / "attempts/1/metrics.jsonl"

    def tells(*steps):
        with open(path, "a") as f:
            for step in steps:
                data = {"critic/score/mean": 0.5 + step / 100, "timing_s/step": 1.0}
                f.write(json.dumps({"step": step, "data": data}) + "\n")

    def newest():
        series = argusd.get(f"/v1/jobs/{t.id}/metrics?keys=samples/same_answers")["series"]
        return series["samples/same_answers"]["step"][-1] if series else 0

    tells(*range(1, 14))
    until(lambda: newest() == 12, "the samples of twelve steps are in the curves")
    tells(14)  # what samples say is judged with the next step
    v = until(lambda: (v := argusd.job(t.id)["verdict"]) and v["kind"] == "same_answers" and v, "it is judged")
    item = v["items"][0]
    event = until(lambda: next((e for e in argusd.events(t.id) if e["kind"] == "verdict"), None), "it is told")
    assert (item["step"], item["value"], item["metric"]) == (1, 1, "samples/same_answers")
    assert v["text"] == "all answers to a prompt are the same text since step 1: so it is for 100 % of the prompts"
    assert "rollout.temperature" in v["fix"]
    assert len(item["samples"]) == 2, "one of each prompt of a step"
    for look in item["samples"]:
        opens(argusd, t.id, look)
    opens(argusd, t.id, event["data"]["samples"][0])
    (alert,) = argusd.job(t.id)["metric_alerts"]
    assert alert["stands"] and alert["metric"] == "samples/flat_groups" and alert["value"] == 0.5
    assert [x["score"] for x in alert["samples"]] == [0.0, 1.0]
    told = until(lambda: next((e for e in argusd.events(t.id) if e["kind"] == "metric_alert"), None), "it is told, too")
    opens(argusd, t.id, told["data"]["samples"][0])
    for noun in ("status", "why"):
        page = cli(argusd, t.id, noun=noun).stdout
        assert f"argus samples {t.id} --step 1 --worst 5 --full" in page, page
    argusd.restart()
    assert argusd.job(t.id)["verdict"]["kind"] == "same_answers"
    argusd.stop_job(t.id)


def test_blank_answers_and_turns_of_a_chat_are_metrics(argusd):
    t = standin.Training(argusd)
    rows = [("a", " \n", 0.0), ("a", "4\nuser\nb", 0.0), ("b", "<|im_start|>", 1.0), ("b", "users pay", 1.0)]
    for step in (1, 2):
        t.dump(step, rows)
    with open(argusd.job_dir(t.id) / "attempts/1/metrics.jsonl", "a") as f:
        for step in (1, 2, 3):
            f.write(json.dumps({"step": step, "data": {"critic/score/mean": 0.5}}) + "\n")
    names = ["samples/blank_answers", "samples/template_answers", "samples/twin_prompts"]

    def told():
        series = argusd.get(f"/v1/jobs/{t.id}/metrics?keys={','.join(names)}")["series"]
        return [(series[n]["step"], series[n]["value"]) for n in names] if len(series) == len(names) else []

    want = [([1, 2], [share, share]) for share in (0.25, 0.5, 0)]
    until(lambda: told() == want, "both steps are in the curves")
    argusd.stop_job(t.id)


def test_without_samples(argusd):
    t = standin.Training(argusd, samples=False)
    assert not [a for a in argusd.job(t.id)["argv"] if "data_dir" in a]
    page = ask(argusd, t.id)
    assert (page["samples"], page["steps"]) == ([], [])
    argusd.stop_job(t.id)


def test_what_a_job_puts_there(argusd):
    """A FIFO, a link, a directory, half a line, zeros, and a terabyte of nothing."""
    t = standin.Training(argusd)
    here = t.dir / "samples/rollout"
    here.mkdir(parents=True)
    os.mkfifo(here / "1.jsonl")
    (here / "2.jsonl").symlink_to("/etc/passwd")
    (here / "3.jsonl").mkdir()
    with (here / "4.jsonl").open("wb") as f:
        f.write(b'{"input": "a", "output": "b", "score": Infinity}\n{"input": "a", "out')
        f.truncate(1 << 40)
    page = ask(argusd, t.id)
    assert [(s["output"], s["score"]) for s in page["samples"]] == [("b", None)]
    assert [s["step"] for s in page["steps"]] == [4]
    (here / "4.jsonl").unlink()
    until(lambda: ask(argusd, t.id)["steps"] == [], "the one that went is gone")
    argusd.stop_job(t.id)


# ---- the command line ----


def cli(argusd, *args, lang="C.UTF-8", noun="samples"):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "LANG": lang}
    argv = [PROGRAMS["argus"], noun, *args]
    return subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)


def test_the_command(argusd, training):
    lines = cli(argusd, training.id, "--step", "1").stdout.splitlines()
    assert lines[0].split() == ["STEP", "PROMPT", "SCORE", "CHANGE", "REPEATS", "ANSWER"]
    assert [line.split()[0] for line in lines[1:]] == ["1", "1", "1"] and "x <b>é</b> & y" in lines[3]
    full = cli(argusd, training.id, "--step", "1", "--best", "1", "--full").stdout
    assert full.splitlines()[1:] == ["  prompt", "    2+2=", "  answer", "    4", ""]
    assert full.startswith("step 1  prompt ") and full.splitlines()[0].endswith("  score 1  acc 1")
    told = json.loads(cli(argusd, training.id, "--diff", "1", "--step", "10", "-o", "json").stdout)
    assert told["order"] == "changed" and told["samples"][0]["output"] == "z"
    steps = cli(argusd, training.id, "--steps").stdout.splitlines()
    assert [line.split()[:2] for line in steps[1:]] == [["10", "3"], ["2", "3"], ["1", "3"]]
    none = cli(argusd, training.id, "--step", "7")
    assert none.returncode != 0 and "has no samples of step 7" in none.stderr
    both = cli(argusd, training.id, "--worst", "2", "--best", "2")
    assert both.returncode == 2 and "give one of them" in both.stderr
