# SPDX-License-Identifier: Apache-2.0
"""Metrics of jobs: what an attempt writes comes to the API, to the page, to the merged file and to `argus top`, while
it runs, over a restart of argusd and over one of the job."""

import csv
import json
import os
import re
import subprocess

import pytest
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

ACTOR = r"\033[36m(TaskRunner pid=970)\033[0m "


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("metrics"), ray.url) as made:
        yield made


class Training:
    """A job that goes on until it is let go; what it would print and write comes from the test."""

    def __init__(self, argusd, script="", **keys):
        self.argusd = argusd
        self.gate = argusd.root / "common" / f"gate-{os.urandom(4).hex()}"
        text = f'{script}\nwhile [ ! -e {self.gate}-"$ARGUS_ATTEMPT" ]; do sleep 0.1; done\n'
        text += f'exit $(cat {self.gate}-"$ARGUS_ATTEMPT")'
        self.id = argusd.submit(text, **keys)
        self.runs(1)

    def runs(self, k):
        self.argusd.wait_job(self.id, lambda j: j["attempt"] == k and j["state"] == "RUNNING", f"runs as attempt {k}")

    def let_go(self, attempt=1, code=0):
        (self.gate.parent / f"{self.gate.name}-{attempt}").write_text(str(code))

    def write(self, text, attempt=1):
        with open(self.argusd.job_dir(self.id) / f"attempts/{attempt}/metrics.jsonl", "a") as f:
            f.write(text)

    def steps(self, first, last, attempt=1, **more):
        for step in range(first, last + 1):
            data = {"critic/score/mean": step / 100, "timing_s/step": 2.0, "perf/total_num_tokens": 100, **more}
            self.write(json.dumps({"step": step, "data": data}) + "\n", attempt)

    def until_step(self, step, of=None):
        """of: how many there will be, which the log tells and not the file of the steps."""

        def is_there(job):
            return job["step"] == step and (of is None or job["metrics"]["total_steps"] == of)

        return self.argusd.wait_job(self.id, is_there, f"is at step {step}")

    def curves(self, query=""):
        return self.argusd.get(f"/v1/jobs/{self.id}/metrics{query}")

    def merged(self):
        path = self.argusd.job_dir(self.id) / "metrics/metrics.jsonl"
        assert not path.is_symlink()
        return [json.loads(line) for line in path.read_text().splitlines()]


def cli(argusd, *args, token="user"):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens[token], "LANG": "C.UTF-8"}
    env["COLUMNS"] = "80"
    argv = [PROGRAMS["argus"], *args]
    return subprocess.run(argv, env=env, check=True, capture_output=True, text=True, timeout=240).stdout


def lane(argusd, job):
    """(goodput, lane) of a job, as Prometheus reads it; None while it has none."""
    page = argusd.call("GET", "/metrics").body.decode()
    found = re.search(rf'^argus_job_lane_info{{lane="(\d+)",id="{job}",.*}} 1$', page, re.M)
    ratio = found and re.search(rf'^argus_job_goodput_ratio{{lane="{found[1]}"}} (\S+)$', page, re.M)
    return (float(ratio[1]), found[1]) if ratio else None


def test_a_row_tells_the_reward_and_when_it_ends(argusd):
    t = Training(argusd, "echo Total training steps: 200000")
    row = lambda: next(j for j in argusd.all_jobs() if j["id"] == t.id)  # noqa: E731
    assert (row()["reward"], row()["ends"]) == (None, None)
    t.steps(1, 3)
    t.until_step(3, of=200000)
    was = row()
    assert was["reward"] == 0.03 and was["ends"]["p50"] > was["started_at"] and was["ends"]["p90"] >= was["ends"]["p50"]
    argusd.restart()
    assert row()["reward"] == 0.03 and row()["ends"], "a restart forgets neither"
    t.let_go()
    argusd.wait_over(t.id)
    assert (row()["reward"], row()["ends"]) == (None, None), "of a live job"


def test_a_file_that_grows(argusd):
    t = Training(argusd, "echo Total training steps: 20")
    page = t.curves()
    assert page == {**page, "summary": None, "keys": [], "series": {}}
    t.write('{"step":0,"data":{"val-core/toy/acc/mean@1":0.1}}\n')
    t.steps(1, 10)
    page = t.until_step(10, of=20)["metrics"]
    assert (page["total_steps"], page["progress"], page["step_seconds"]) == (20, 0.5, 2)
    assert (page["eta_s"], page["tokens_per_s"], page["attempt"]) == (20, 50, 1)
    assert (page["reward"]["key"], page["reward"]["value"]) == ("critic/score/mean", 0.1)
    assert page["latest"]["val-core/toy/acc/mean@1"] == 0.1
    curves = t.curves("?keys=critic/*,none")
    assert list(curves["series"]) == ["critic/score/mean"] and len(curves["keys"]) == 4
    assert curves["series"]["critic/score/mean"]["step"] == list(range(1, 11))
    assert curves["series"]["critic/score/mean"]["value"] == [s / 100 for s in range(1, 11)]
    assert t.curves("?since_step=8&keys=critic/*")["series"]["critic/score/mean"]["step"] == [9, 10]
    few = t.curves("?points=2&keys=critic/*")["series"]["critic/score/mean"]
    times = few.pop("time")
    assert few == {"step": [5, 10], "value": [0.05, 0.1], "min": [0.01, 0.06], "max": [0.05, 0.1]}
    assert times == sorted(times) and times == [r["at"] // 1000 / 1e3 for r in t.merged() if r["step"] in (5, 10)]
    # A torn line waits for its end, and the last lines before the exit are read before the job is over.
    t.write('{"step":11,"data":{"critic/sc')
    t.write('ore/mean":0.11}}\n{"step":12,"data":{"critic/score/mean":0.5}}')
    t.let_go()
    view = argusd.wait_over(t.id)
    assert (view["state"], view["step"], view["metrics"]["reward"]["value"]) == ("SUCCEEDED", 12, 0.5)
    assert [r["step"] for r in t.merged()] == list(range(13))
    assert next(j for j in argusd.all_jobs() if j["id"] == t.id)["step"] == 12
    rows = argusd.call("GET", f"/v1/jobs/{t.id}/metrics?format=csv&keys=critic/*").body.decode().splitlines()
    assert rows[0] == 'step,"critic/score/mean"' and rows[1:3] == ["0,", "1,0.01"] and rows[-1] == "12,0.5"
    by_type = argusd.call("GET", f"/v1/jobs/{t.id}/metrics?keys=critic/*", Accept="text/csv")
    assert by_type.body.decode().splitlines() == rows and by_type.headers["Content-Type"].startswith("text/csv")


def test_a_training_of_1500_metrics(argusd):
    t = Training(argusd)
    data = {f"layer/{i}": i for i in range(1498)} | {"a,b": 1, "critic/score/mean": 0.5}
    for step in (1, 2, 3):
        t.write(json.dumps({"step": step, "data": data}) + "\n")
    page = t.until_step(3)["metrics"]
    assert (page["keys"], page["left_out"], len(page["latest"])) == (1500, 0, 128)
    names = t.curves("?series=false")
    assert names["series"] == {} and sorted(names["keys"]) == sorted(data)
    some = t.curves("?keys=a%3Fb,layer/1497,layer/149%3F")["series"]
    assert list(some) == [f"layer/{i}" for i in (*range(1490, 1498),)] + ["a,b"]
    assert some["layer/1497"]["value"] == [1497] * 3 and some["layer/1497"]["step"] == [1, 2, 3]
    assert len(t.curves()["series"]) == 1500
    assert len(argusd.call("GET", f"/v1/jobs/{t.id}/metrics?format=csv").body.splitlines()) == 4
    t.let_go()
    argusd.wait_over(t.id)


def test_the_console_when_there_is_no_file(argusd):
    """As verl 0.5.0 prints it; a flood, and a line that is too long, between the steps."""
    script = f"""
    printf '{ACTOR}Total training steps: 4\\n'
    printf '{ACTOR}step:1 - critic/score/mean:np.float64(0.25) - actor/lr:1e-06\\n'
    head -c 3000000 /dev/zero | tr '\\0' x; printf '\\nEpoch 1: 50%%|#| 1/2 [00:01]step:2 - critic/score/mean:0.5\\n'
    """
    t = Training(argusd, script)
    view = t.until_step(2)
    assert view["metrics"]["progress"] == 0.5
    assert view["metrics"]["latest"] == {"critic/score/mean": 0.5, "actor/lr": 1e-06}
    out = cli(argusd, "top", "-o", "wide")
    assert [line.split()[3:5] for line in out.splitlines() if t.id in line] == [["2/4", "50%"]]
    t.let_go()
    argusd.wait_over(t.id)
    assert [(r["step"], r["from_log"]) for r in t.merged()] == [(1, True), (2, True)]


def test_json_that_a_program_prints_beside_a_progress_bar(argusd):
    """A value that is no number costs itself, and the job says which was the first; over a restart of argusd too."""
    bar = "\\r 50%%|##  | 1/2 [00:01<00:01,  1.1it/s]"
    script = f"""
    printf '{bar}{{"step": 1, "total_steps": 9, "loss": 0.5}}\\n'
    printf '{bar}\\r{{"step": 2, "loss": 0.25, "big": 1e999, "text": "\\\\ud83d"}}\\r{{"step": 3, "loss": 0.125}}\\n'
    printf 'INFO:root:{{"step": 4, "grad": tensor(1.5, device=0), "lr": ?, "loss": 0.1}}\\n'
    """
    t = Training(argusd, script)
    page = t.until_step(4, of=9)["metrics"]
    assert page["latest"] == {"loss": 0.1, "big": None}
    assert page["unread"] == {"key": "grad", "step": 4, "values": 2}
    assert t.curves("?keys=loss")["series"]["loss"]["value"] == [0.5, 0.25, 0.125, 0.1]
    assert "2 metrics could not be read as numbers, the first: grad at step 4" in cli(argusd, "status", t.id)
    argusd.restart()
    again = t.until_step(4, of=9)["metrics"]
    assert again["unread"] == {**page["unread"], "values": 2} and again["latest"] == page["latest"]
    t.let_go()
    argusd.wait_over(t.id)


def test_a_restart_of_argusd_loses_and_doubles_nothing(argusd):
    t = Training(argusd, "echo Total training steps: 9")
    t.steps(1, 3)
    t.until_step(3)
    argusd.kill9()
    t.steps(4, 6)
    t.write('{"step":7,"da')
    with open(argusd.job_dir(t.id) / "metrics/metrics.jsonl", "a") as f:
        f.write('{"step":4,"att')  # it died while it wrote
    argusd.start()
    t.until_step(6, of=9)
    t.write('ta":{"critic/score/mean":0.7}}\n')
    t.until_step(7)
    assert [r["step"] for r in t.merged()] == list(range(1, 8))
    t.let_go()
    argusd.wait_over(t.id)
    argusd.restart()
    assert argusd.job(t.id)["step"] == 7 and len(t.curves()["series"]["critic/score/mean"]["step"]) == 7


def test_steps_that_are_run_again(argusd):
    t = Training(argusd, restart={"max": 1, "backoff": "1s", "on": ["unknown", "user_code_error"]})
    t.steps(1, 7)
    t.until_step(7)
    t.let_go(code=3)
    t.runs(2)
    t.write('{"step":5,"data":{"val-core/toy/acc/mean@1":0.5}}\n', 2)
    t.steps(6, 8, 2, again=1)
    view = t.until_step(8)
    assert (view["metrics"]["superseded"], view["metrics"]["attempt"]) == (2, 2)
    g = view["goodput"]
    assert (g["steps"], g["steps_lost"], g["productive_s"], g["lost_s"]) == (8, 2, 16, 4) and 0 < g["ratio"] <= 1
    assert [(a["k"], a["steps"], a["steps_lost"]) for a in g["attempts"]] == [(1, 7, 2), (2, 3, 0)]
    assert g["save_freq"] is None and g["mtbf_s"] > 0  # what a save takes is not known yet
    curves = t.curves("?keys=critic/*,again")
    assert curves["series"]["critic/score/mean"]["step"] == list(range(1, 9))
    assert curves["series"]["again"]["step"] == [6, 7, 8]
    assert curves["superseded"] == [{"attempt": 1, "from_step": 6, "to_step": 7}]
    old = t.curves("?keys=critic/*&superseded=1")["superseded"][0]["series"]
    assert old.keys() == {"critic/score/mean"} and old["critic/score/mean"]["step"] == [6, 7], "and what it had told"
    marked = [(r["attempt"], r["step"]) for r in t.merged() if r.get("superseded")]
    assert marked == [(1, 6), (1, 7)]
    t.steps(9, 10, 2, **{"timing_s/save_checkpoint": 0.5})
    assert t.until_step(10)["goodput"]["save_freq"] >= 1
    page = cli(argusd, "status", t.id)
    assert "2 steps were run again" in page and "save_freq" in page
    ratio, _ = until(lambda: lane(argusd, t.id), "Prometheus is told")
    assert ratio == pytest.approx(argusd.job(t.id)["goodput"]["ratio"], abs=0.05)
    argusd.restart()
    until(lambda: lane(argusd, t.id), "Prometheus is told after a restart")
    t.let_go(attempt=2)
    view = argusd.wait_over(t.id)
    assert view["state"] == "SUCCEEDED" and lane(argusd, t.id) is None
    page = argusd.call("GET", "/metrics").body.decode()
    (useful,) = re.findall(r"^argus_job_useful_seconds_total (\S+)$", page, re.M)
    (held,) = re.findall(r"^argus_job_held_seconds_total (\S+)$", page, re.M)
    assert (float(useful), float(held)) == (20, pytest.approx(view["goodput"]["held_s"], abs=2))


def test_two_lanes_and_the_one_that_is_free_again(argusd):
    first, second = Training(argusd), Training(argusd)
    for t in (first, second):
        t.steps(1, 2)
        until(lambda t=t: lane(argusd, t.id), "it has a lane")
    was, other = (lane(argusd, t.id)[1] for t in (first, second))
    assert was != other
    first.let_go()
    argusd.wait_over(first.id)
    third = Training(argusd)
    third.steps(1, 2)
    until(lambda: lane(argusd, third.id), "it has a lane")
    assert lane(argusd, third.id)[1] == was and lane(argusd, second.id)[1] == other
    for t in (second, third):
        t.let_go()
        argusd.wait_over(t.id)
    assert "argus_job_goodput_ratio{" not in argusd.call("GET", "/metrics").body.decode()


def test_what_is_wrong_is_told_once(argusd):
    t = Training(argusd)
    told = lambda: [e for e in argusd.events(t.id) if e["kind"].startswith(("metric_", "reward_"))]  # noqa: E731
    t.steps(1, 3)
    t.write('{"step":4,"data":{"critic/score/mean":0.1,"actor/grad_norm":null}}\n')
    until(told, "an event about it")
    argusd.restart()
    t.steps(5, 6, **{"actor/pg_loss": None})
    t.until_step(6)
    (event,) = told()
    assert (event["kind"], event["reason"]["code"]) == ("metric_not_finite", "nan_loss")
    assert event["text"] == "metric 'actor/grad_norm' is not a number since step 4"
    assert argusd.job(t.id)["metrics"]["not_finite"] == {"key": "actor/grad_norm", "step": 4}
    for step in range(7, 60):
        reward = step / 60 if step < 40 else 0.01
        t.write(json.dumps({"step": step, "data": {"critic/score/mean": reward}}) + "\n")
    until(lambda: len(told()) == 2, "an event about the reward")
    assert told()[1]["kind"] == "reward_collapse"
    t.let_go()
    argusd.wait_over(t.id)


def test_pages_for_people(argusd):
    t = Training(argusd, "echo Total training steps: 40", name="a name that is rather long for a table")
    t.steps(1, 30, **{"actor/pg_loss": 0.5})
    t.until_step(30, of=40)
    page = cli(argusd, "status", t.id)
    assert "step 30 of 40 (75%)" in page and "2s per step, 50 tokens/s" in page
    (line,) = (x for x in page.splitlines() if x.startswith("reward"))
    assert "critic/score/mean 0.3 ▁" in line and "█ 0.01 to 0.3" in line and len(line) <= 80
    head, row = (x for x in cli(argusd, "top").splitlines() if x.startswith(("ID", t.id)))
    assert head.split()[:1] == ["ID"] and "30/40" in row and "75%" in row and "█" in row
    assert max(map(len, (head, row))) <= 80
    one = cli(argusd, "top", t.id)
    assert "actor/pg_loss 0.5" in one and "timing_s/step 2" in one
    assert json.loads(cli(argusd, "top", "-o", "json"))["jobs"][0]["metrics"]["step"] == 30
    table = list(csv.reader(cli(argusd, "top", "--csv", "--keys", "critic/score/*", t.id).splitlines()))
    assert table[0] == ["step", "critic/score/mean"] and table[-1] == ["30", "0.3"]
    with pytest.raises(subprocess.CalledProcessError) as refused:  # and not a part of them
        cli(argusd, "top", "--csv", "--keys", "x" * 9000 + ",critic/score/*", t.id)
    assert "--keys is too long" in refused.value.stderr
    bad = argusd.call("GET", f"/v1/jobs/{t.id}/metrics?points=0")
    assert (bad.status, bad.json()["code"]) == (400, "bad_number_query")
    assert argusd.call("GET", f"/v1/jobs/{t.id}/metrics?format=xml").status == 400
    t.let_go()
    argusd.wait_over(t.id)
