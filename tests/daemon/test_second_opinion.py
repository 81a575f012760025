# SPDX-License-Identifier: Apache-2.0
"""A second opinion: argusd asks a model about failures that it is not sure of. The model is a server in the place of
one that speaks OpenAI's chat form: it answers, lies, says too much, says nothing, leads elsewhere."""

import contextlib
import json

import pytest
from fakeray import FakeRay
from receiver import Receiver, chat

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

KEY = "sk-model-0123456789abcdef"
HIDDEN = "swordfish-0123456789"
FAILS = f'echo "ValueError: the knob of {HIDDEN} is not there" >&2; exit 3'


def cause(text, **more):
    return chat(json.dumps({"cause": text, **more}))


@contextlib.contextmanager
def house(home, model, **more):
    """An argusd that asks this model about every failure."""
    keys = {"url": f"http://127.0.0.1:{model.port}/v1", "model": "tiny-7b", "key": "MODEL_KEY", "below": 1,
            "secrets_of": "user/admin", "timeout": "20s", **more}  # fmt: skip
    config = f"second_opinion: {json.dumps(keys)}"
    with FakeRay(state=home / "ray") as ray, Argusd(home, ray.url, more=config) as argusd:
        for name, value in (("MODEL_KEY", KEY), ("OTHER", HIDDEN)):
            assert argusd.call("PUT", f"/v1/secrets/{name}", {"value": value}).status == 201
        yield argusd


@pytest.fixture(scope="module")
def model():
    with Receiver() as model:
        yield model


@pytest.fixture(scope="module")
def argusd(model, tmp_path_factory):
    with house(tmp_path_factory.mktemp("second"), model, per_hour=100) as argusd:
        yield argusd


def fail(argusd, command=FAILS, token="admin"):
    job = argusd.submit(command, token=token)
    assert argusd.wait_over(job)["state"] == "FAILED"
    return job


def opinions(argusd, job):
    return argusd.get(f"/v1/jobs/{job}/findings")["opinions"]


def state(argusd):
    return argusd.get("/v1/agent")["second_opinion"]


def test_it_is_asked_and_its_answer_is_text(argusd, model):
    model.answer = cause(f"the knob was renamed, <script>alert(1)</script> \x1b[31m {HIDDEN}", advice="use 'prompt'",
                         confidence=0.7, **{"class": "data_error"}, patch={"env": {"A": "1"}},
                         link="https://evil.example/", author="root")  # fmt: skip
    job = fail(argusd)
    [said] = until(lambda: opinions(argusd, job), "a second opinion")
    assert (said["source"], said["author"], said["model"]) == ("second_opinion", "argusd", "tiny-7b")
    assert said["cause"] == "the knob was renamed, <script>alert(1)</script>  [31m ***"
    assert (said["advice"], said["class"], said["confidence"]) == ("use 'prompt'", "data_error", 0.7)
    assert (said["patch"], said["link"], said["attempt"]) == (None, None, 1)
    path, head, body = model.got[-1]
    asked = json.loads(body)
    assert path == "/v1/chat/completions" and head["Authorization"] == f"Bearer {KEY}"
    assert asked["model"] == "tiny-7b" and asked["max_tokens"] == 600
    shown = json.loads(asked["messages"][1]["content"])
    assert any("the knob of *** is not there" in line["text"] for line in shown["evidence"])
    assert HIDDEN not in body.decode() and KEY not in body.decode()
    # Nothing was done: the finding, the state and the spec are ours.
    after = argusd.job(job)
    assert after["state"] == "FAILED" and after["finding"]["class"] != "data_error"
    assert len(argusd.all_jobs("&all=1")) == 1
    told = [e for e in argusd.events() if e["kind"] == "opinion"]
    assert [e["actor"] for e in told] == ["argusd"]
    assert state(argusd)["answered"] == 1 and state(argusd)["trouble"] is None
    for text in (json.dumps(argusd.events()), json.dumps(argusd.get("/v1/agent")), argusd.said()):
        assert KEY not in text


@pytest.mark.parametrize("answer, said", [
    (chat('Sure!\n```json\n{"cause": "a disk", "confidence": 7, "class": "no_such"}\n```'), "a disk"),
    (chat("It is the network, I think."), "It is the network, I think."),
    (cause("x" * 5000, advice=["a list"]), "x" * 2000),
    (cause("数" * 5000), "数" * 666),
])  # fmt: skip
def test_what_it_says_badly(argusd, model, answer, said):
    model.answer = answer
    job = fail(argusd)
    [got] = until(lambda: opinions(argusd, job), "a second opinion")
    assert (got["cause"], got["advice"], got["confidence"], got["class"]) == (said, None, None, None)


@pytest.mark.parametrize("answer, why", [
    ((200, b"[" * (10 << 20)), "larger"),
    ((200, b"<html>busy</html>"), "not a chat completion"),
    (chat(json.dumps({"cause": "   "})), "no cause"),
    ((429, b"{}"), "HTTP 429"),
    ((302, b""), "HTTP 302"),
])  # fmt: skip
def test_what_is_no_answer(argusd, model, answer, why):
    before = state(argusd)["failed"]
    model.answer = answer
    job = fail(argusd)
    until(lambda: state(argusd)["failed"] == before + 1, "the question fails")
    assert why in state(argusd)["trouble"] and opinions(argusd, job) == []
    assert not any("elsewhere" in path for path, _, _ in model.got)


def test_one_that_hangs_delays_nobody_and_bounds_hold_over_kill_9(tmp_path):
    with Receiver() as model, house(tmp_path, model, per_hour=2, timeout="1s") as argusd:
        model.answer = None
        fail(argusd)
        until(lambda: state(argusd)["failed"] == 1, "the model is not waited for")
        model.answer = cause("a disk")
        second = fail(argusd, token="user")
        until(lambda: opinions(argusd, second), "the next failure is asked about")
        assert state(argusd)["left_in_hour"] == 0
        argusd.kill9()
        argusd.start()
        third = fail(argusd)
        until(lambda: state(argusd)["passed_over"] == 1, "two an hour are enough")
        assert opinions(argusd, third) == [] and len(model.seen) == 2


def test_one_users_failures_leave_questions_to_others(tmp_path):
    """Who fails in a loop is asked about for three quarters of the hour's questions; then somebody else's failure is,
    all the same, over a restart, too."""
    with Receiver() as model, house(tmp_path, model, per_hour=4) as argusd:
        model.answer = cause("a disk")
        for n in range(4):
            fail(argusd)
            until(lambda n=n: sum(state(argusd)[k] for k in ("answered", "passed_over")) == n + 1, "it was looked at")
        assert (state(argusd)["asked"], state(argusd)["passed_over"]) == (3, 1)
        argusd.kill9()
        argusd.start()
        fail(argusd)
        until(lambda: state(argusd)["passed_over"] == 1, "what she had is known again")
        his = fail(argusd, token="user")
        until(lambda: opinions(argusd, his), "his is asked about")
        assert (state(argusd)["left_in_hour"], len(model.seen)) == (0, 4)


def test_tokens_of_a_day_are_bounded_whatever_the_model_counts(tmp_path):
    with Receiver() as model, house(tmp_path, model, tokens_per_day=1000) as argusd:
        model.answer = cause("a disk", usage={"total_tokens": 0})
        left = state(argusd)["tokens_left"]
        assert left == 1000
        until(lambda: fail(argusd, token="admin") and state(argusd)["passed_over"] > 0, "admin's share is spent")
        until(lambda: fail(argusd, token="user") and state(argusd)["tokens_left"] == 0, "the other has what was left")
        assert 1 <= len(model.seen) < 10


def test_it_is_off_unless_argus_yaml_says_so(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        fail(argusd, "exit 3")
        assert state(argusd) is None


def test_only_what_argusd_is_not_sure_of_is_asked(tmp_path):
    with Receiver() as model, house(tmp_path, model, below=0.05) as argusd:
        model.answer = cause("a disk")
        known = fail(argusd, 'echo "torch.OutOfMemoryError: CUDA out of memory" >&2; exit 1')
        unknown = fail(argusd, "exit 3")
        until(lambda: opinions(argusd, unknown), "the unknown one is asked about")
        assert argusd.job(unknown)["finding"]["class"] == "unknown"
        assert opinions(argusd, known) == [] and len(model.seen) == 1
