# SPDX-License-Identifier: Apache-2.0
"""What is done with a job in a browser: its logs by rank, a checkpoint resumed, jobs compared, a view of the list
kept."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest
import standin
from ranks import tell
from webbed import CHROMIUM, World

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("job")) as w:
        yield w
        w.gate.write_text("")


def test_the_log_of_a_rank_and_a_search_in_all(browser, world):
    page = browser.open(f"/jobs/{world.jobs['running']}", "#log li")
    of = "[aria-label='Which log']"
    rank = page.locator(f"{of} option", has_text="rank 1").get_attribute("value")
    page.select_option(of, rank)
    page.wait_for_selector("#log li:has-text('rank 1 begins')")
    assert "step:1 " not in page.inner_text("#log") and "--source worker" in page.inner_text("#log header")
    page.reload()
    page.wait_for_selector("#log li:has-text('rank 1 begins')")
    page.select_option(of, "all")
    page.fill("#log input", "NCCL WARN")
    until(lambda: page.locator("#log mark").count() == 2, "a hit of each rank")
    assert "rank 0 · gpu-01" in page.inner_text("#log ol")
    page.context.close()


def test_the_driver_and_the_workers_as_one(browser, world):
    page = browser.open(f"/jobs/{world.jobs['running']}?from=all", "#log li:has-text('rank 1 begins')")
    for text in ("step:142 ", "rank 0 begins", "rank 0 · gpu-01"):
        assert text in page.inner_text("#log ol"), text
    assert "The newest lines of 3 logs" in page.inner_text("#log .tail")
    assert f"argus logs -f {world.jobs['running']} --source all" in page.inner_text("#log header")
    workers = world.argusd.job_dir(world.jobs["running"]) / "attempts/1/logs/workers"
    log = next((workers / "gpu-02").glob("worker-*.out"))
    at = log.stat().st_size
    with open(log, "a") as f:
        f.write("rank 1 goes on\n")
    page.wait_for_selector("#log li:has-text('rank 1 goes on')")
    assert page.locator("#log li:has-text('rank 1 begins')").count() == 1, "a line comes once"
    page.locator("#log li:has-text('rank 1 goes on') pre").click(position={"x": 2, "y": 4})
    page.wait_for_url(f"**line={at}**")
    page.wait_for_selector("#log li.here:has-text('rank 1 goes on')")
    assert "step:142 " not in page.inner_text("#log ol"), "the line in its own log"
    assert page.wrong == []
    page.context.close()


def test_a_long_log_is_a_window_over_it(browser, world):
    job = world.jobs["done"]
    log = world.argusd.log_file(job)
    with open(log, "a") as f:
        f.writelines(f"line {i} {'x' * 80}\n" for i in range(100_000))
    at = log.read_bytes().index(b"line 30000 ")
    page = browser.open(f"/jobs/{job}", "#log li:has-text('line 99999')")
    first = lambda: page.locator("#log li pre").first.inner_text()  # noqa: E731
    for _ in range(4):
        before = first()
        page.evaluate("document.querySelector('#log .log').scrollTop = 0")
        until(lambda: first() != before, "earlier lines come")
    assert page.locator("#log li").count() <= 4000, "and later ones go"
    page.goto(f"{world.argusd.url}/jobs/{job}?line={at}")
    page.wait_for_selector("#log li.here:has-text('line 30000 ')")
    page.evaluate("(() => { const e = document.querySelector('#log .log'); e.scrollTop = e.scrollHeight })()")
    page.wait_for_selector("#log li:has-text('line 33000 ')")
    page.click("#log .logbar .btn:has-text('To the end')")
    page.wait_for_selector("#log li:has-text('line 99999')")
    page.locator("#log li:has-text('line 99990 ')").click(position={"x": 4, "y": 8})
    page.wait_for_url("**line=**")
    page.wait_for_selector("#log li.here:has-text('line 99990 ')")
    assert page.wrong == []
    page.context.close()


def test_an_opinion_stands_beside_the_finding_as_text(browser, world):
    page = browser.open(f"/jobs/{world.jobs['failed']}", "#opinions li")
    assert "alice" in page.inner_text("#opinions") and page.locator("#finding").count() == 1
    assert page.locator("#opinions script, #opinions img, #opinions b").count() == 0
    assert page.locator("#opinions .said").count() == 2
    page.context.close()


def test_a_checkpoint_is_resumed_and_merged(browser, tmp_path):
    with World(tmp_path, full=False) as w, browser.of(w):
        standin.make_world(w.argusd.root)
        training = standin.Training(w.argusd)
        training.save(10)
        training.order("exit", 3)
        w.argusd.wait_over(training.id)
        page = browser.open(f"/jobs/{training.id}", "#checkpoints .link")
        page.click("#checkpoints button.link")
        dialog = page.wait_for_selector("[role=dialog]")
        assert f"argus retry {training.id} --from 10" in dialog.inner_text()
        page.click("[role=dialog] .btn.main")
        page.wait_for_url(lambda url: "/jobs/" in url and not url.endswith(training.id))
        again = page.url.rsplit("/", 1)[1]
        assert w.argusd.job(again)["retry_of"] == training.id
        w.argusd.stop_job(again)
        page.go_back()
        page.click("#checkpoints a.link")
        page.wait_for_selector(".cm-line:has-text('global_step_10/actor')")
        page.context.close()


def test_jobs_are_compared(browser, world):
    page = browser.open("/jobs?q=g", ".vrow")
    for name in ("gsm8k grpo 14b", "客服奖励 grpo 7b"):
        page.locator(".vrow", has_text=name).locator("input").check()
    page.click(".pickbar a:has-text('Compare')")
    page.wait_for_selector(".charts canvas")
    table = page.locator("table").first.inner_text()
    assert "gpu_oom" in table and "Running" in table
    differ = page.locator(".difftbl").inner_text()
    assert "n_gpus_per_node" in differ and "workload" not in differ
    page.click("[aria-label='Make 客服奖励 grpo 7b the reference']")
    page.wait_for_url("**ref=**")
    page.wait_for_selector("tr:has-text('客服奖励') .chip:has-text('reference')")
    page.click("text=Training time")
    page.wait_for_url("**axis=time**")
    page.wait_for_selector(".charts canvas")
    page.click("[aria-label='Leave gsm8k grpo 14b out']")
    until(lambda: page.locator("table").first.locator("tbody tr").count() == 1, "one is left")
    page.context.close()


def test_a_curve_of_two_attempts(browser, world):
    """What was run again stands grey beside it; a restart, a checkpoint and a finding are marks, and so is said."""
    job = world.jobs["failed"]
    series = lambda steps: {"step": steps, "value": steps, "min": steps, "max": steps,  # noqa: E731
                            "time": [1.79e9 + s for s in steps]}  # fmt: skip
    metrics = {
        "id": job, "state": "FAILED", "summary": None, "keys": ["train/loss", "kl"], "cut": False,
        "series": {"train/loss": series(list(range(1, 60))), "kl": {**series([1, 2]), "value": [-1, 2]}},
        "superseded": [{"attempt": 1, "from_step": 30, "to_step": 40,
                        "series": {"train/loss": series(list(range(30, 41)))}}],
    }  # fmt: skip
    saved = {"step": 20, "state": "complete", "verified": False, "bytes": 4, "at": "2026-11-26T08:00:00Z",
             "attempt": 1, "value": None, "why": None}  # fmt: skip
    whole = world.argusd.job(job)
    first = whole["attempts"][0]
    whole["attempts"] = [{**first, "k": 1}, {**first, "k": 2}]
    page = browser.page()
    answers = {"metrics?*": metrics, "checkpoints": {"id": job, "bytes": 4, "checkpoints": [saved]}}
    for path, body in answers.items():
        said = json.dumps(body)
        page.route(f"**/v1/jobs/{job}/{path}",
                   lambda r, _, said=said: r.fulfill(body=said, content_type="application/json"))  # fmt: skip
    page.route(f"**/v1/jobs/{job}", lambda r: r.fulfill(body=json.dumps(whole), content_type="application/json"))
    page.goto(f"{world.argusd.url}/jobs/{job}")
    page.wait_for_selector("#curves canvas")
    named = lambda: page.inner_text("#curves .legend")  # noqa: E731
    for word in ("restart", "checkpoint", "finding", "run again"):  # each comes with an answer of its own
        until(lambda word=word: word in named(), f"{word} is among {named()!r}")
    page.click("#curves .seg button:has-text('Log')")
    page.wait_for_url("**scale=log**")
    page.fill("#curves input[type=search]", "kl")
    page.wait_for_selector("#curves .key:has-text('not above 0')")
    page.click("#curves .seg button:has-text('Time')")
    page.wait_for_url("**axis=time**")
    assert page.wrong == []
    page.context.close()


@pytest.mark.parametrize("lang,title", [("en", "Attempts"), ("zh", "各次尝试")])
def test_the_attempts_of_a_job(browser, world, lang, title):
    """What argusd tells of the only one, and one before it that ran elsewhere, whose every text is hostile."""
    job = world.jobs["failed"]
    whole = world.argusd.job(job)
    (only,) = whole["attempts"]
    assert only["queued_at"] and only["nodes"] and only["finding"]["class"] == "gpu_oom", only
    before = {
        **only, "k": 1, "queued_at": "2026-11-26T08:00:00Z", "accepted_at": "2026-11-26T10:00:00Z",
        "started_at": "2026-11-26T10:01:00Z", "ended_at": "2026-11-26T10:31:00Z",
        "nodes": [{"name": "<b>far</b>", "gpu_ids": [4, 5]}, {"name": "farther", "gpu_ids": []}],
        "finding": {**only["finding"], "class": "node_lost", "sentence": "node_lost: <img src=x> is away"},
    }  # fmt: skip
    page = browser.page(lang=lang)
    page.goto(f"{world.argusd.url}/jobs/{job}")
    page.wait_for_selector("#attempts tbody tr")
    assert page.inner_text("#attempts h2") == title
    row = page.inner_text("#attempts tbody tr")
    assert "gpu_oom" in row and all(n["name"] in row for n in only["nodes"]), row
    said = {**whole, "attempts": [before, {**only, "k": 2}]}  # the first one is shown: only it has a log
    page.route(f"**/v1/jobs/{job}", lambda r: r.fulfill(json=said))
    page.reload()
    page.wait_for_selector("#attempts tbody tr >> nth=1")
    first = page.inner_text("#attempts tbody tr >> nth=0")
    for text in ("<b>far</b> (4 5), farther", "node_lost", "<img src=x> is away"):
        assert text in first, first
    assert first.count("node_lost") == 1 and page.locator("#attempts b, #attempts img").count() == 0
    assert ("2h 0m" if lang == "en" else "2小时0分") in first and ("30m" if lang == "en" else "30分钟") in first
    page.click("#attempts tbody tr >> nth=0 >> button")
    page.wait_for_url("**attempt=1**")
    page.wait_for_selector("#attempts tr.is-current:has-text('node_lost')")
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("() => document.documentElement.scrollWidth <= 390")
    assert page.wrong == []
    page.context.close()


def test_a_job_of_very_many_curves(browser, world):
    """Those that are in view are asked for and drawn, and no others; every one is found by its name."""
    argusd = world.argusd
    names = [f"layers/{i:04}/grad_norm" for i in range(1490)] + ["a,b/loss", "critic/score/mean"]
    script, keys = world.holds("")
    job = argusd.submit(script, name="many curves", n_gpus_per_node=0, **keys)
    argusd.wait_state(job, "RUNNING")
    with open(argusd.job_dir(job) / "attempts/1/metrics.jsonl", "a") as f:
        for step in range(1, 31):
            f.write(json.dumps({"step": step, "data": dict.fromkeys(names, step / 10)}) + "\n")
    argusd.wait_job(job, lambda j: j["step"] == 30, "is at its step")
    asked, drawn = [], ".charts .chart:has(canvas)"
    page = browser.page()
    page.on("request", lambda r: "/metrics?" in r.url and asked.append(parse_qs(urlsplit(r.url).query)))
    for address in (f"/jobs/{job}", f"/compare?jobs={job},{world.jobs['running']}"):
        asked.clear()
        page.goto(f"{argusd.url}{address}")
        page.wait_for_selector(".charts canvas")
        page.click("#curves .more, .more:has-text('more')")
        shown = lambda: page.locator(".charts .chart").count()  # noqa: E731
        until(lambda: shown() == 60, "a part of them")
        until(lambda: page.locator(drawn).count() > 5, "those in view are drawn")
        assert page.locator(drawn).count() < 45
        page.evaluate("document.querySelector('.chart-end').scrollIntoView()")
        until(lambda: shown() == 120, "the next part comes at the end")
        page.locator(".charts .chart").nth(90).scroll_into_view_if_needed()
        page.wait_for_selector(".charts .chart:nth-child(91):has(canvas)")
        assert not page.locator(".charts .chart:first-child canvas").count(), "what went out of view holds nothing"
        page.fill("input[aria-label='Find a metric']", "a,b")
        page.wait_for_selector(".chart:has(canvas):has-text('a,b/loss')")
        assert shown() == 1
        with_curves = [a for a in asked if a.get("series") != ["false"]]
        assert with_curves and all(0 < len(a["keys"][0].split(",")) < 200 for a in with_curves), asked
        assert len({k for a in with_curves for k in a["keys"][0].split(",")}) < 200
    assert page.wrong == []
    page.context.close()
    argusd.stop_job(job)


def test_what_is_wrong_with_a_training_and_where_its_steps_go(browser, world):
    """The sentence stands above the curves, with what to do and what nobody measures; the steps are bars."""
    argusd = world.argusd
    script, keys = world.holds("")
    job = argusd.submit(script, name="goes wrong", n_gpus_per_node=0, **keys)
    argusd.wait_state(job, "RUNNING")
    with open(argusd.job_dir(job) / "attempts/1/metrics.jsonl", "a") as f:
        for step in range(1, 21):
            data = {"critic/score/mean": 0.2 + step / 100, "response/aborted_ratio": 0.5 if step > 14 else 0.0,
                    "timing_s/step": 10.0, "timing_s/gen": 6.0, "timing_s/reward": 2.0}  # fmt: skip
            f.write(json.dumps({"step": step, "data": data}) + "\n")
    argusd.wait_job(job, lambda j: j["step"] == 20, "is at its step")
    page = browser.page()
    page.goto(f"{argusd.url}/jobs/{job}")
    page.wait_for_selector("#verdict:has-text('50 % of the answers were aborted since step 15')")
    verdict = page.inner_text("#verdict")
    assert "gpu_memory_utilization" in verdict and "Not measured" in verdict and "since step 15" in verdict
    for part in ("#curves", "#steps"):
        page.wait_for_selector(part, state="attached")
    assert page.evaluate("(() => { const at = (s) => document.querySelector(s).getBoundingClientRect().top;"
                         " return at('#verdict') < at('#curves') && at('#curves') < at('#steps') })()")  # fmt: skip
    until(lambda: page.locator("#steps .stepbar").count() == 20, "a bar for each step")
    steps = page.inner_text("#steps")
    assert "Answers" in steps and "60%" in steps and "the GPUs wait for the reward" in steps
    (node,) = [n["name"] for n in argusd.job(job)["nodes"]]
    tell(argusd, job, node, slow=2, throttled=4)
    page.wait_for_selector(f"#verdict:has-text('rank 2 on {node} holds the others up')")
    assert f"argus node drain {node}" in page.inner_text("#verdict")
    assert page.wrong == []
    page.context.close()
    argusd.stop_job(job)


def test_the_fix_is_shown_as_a_diff(browser, world):
    """What the dry run of the retry says; the fix of this job's finding fits no spec of Ray, so its answer is given."""
    job = world.jobs["failed"]
    reply = world.argusd.call("POST", f"/v1/jobs/{job}:retry?dry_run=1&no_trial=1", {}, token="user")
    assert reply.status == 200, reply
    changes = [{"key": "nnodes", "old": 2, "new": 1}, {"key": "env.OMP_NUM_THREADS", "old": None, "new": "8"}]
    said = json.dumps({**reply.json(), "changes": changes})
    page = browser.open(f"/jobs/{job}", "#finding")
    page.route(f"**/v1/jobs/{job}:retry?**", lambda r: r.fulfill(body=said, content_type="application/json"))
    page.click("#finding .btn.main")
    page.wait_for_selector("[role=dialog] .diff .new")
    lines = page.locator("[role=dialog] .diff > div").all_inner_texts()
    assert [(line[0], line[1:].strip()) for line in lines if line[0] in "+-"] == [
        ("-", "nnodes: 2"), ("+", "nnodes: 1"), ("+", "env.OMP_NUM_THREADS: 8"),
    ], lines  # fmt: skip
    page.keyboard.press("Escape")
    assert not [j for j in world.argusd.all_jobs() if world.argusd.job(j["id"])["retry_of"] == job], "nothing was sent"
    page.context.close()


def test_a_hang_of_a_running_job_is_explained(browser, world):
    """At its first attempt too; each quote of the evidence leads to its line, where it stands in a log, and where each
    process stood is read when it is asked for."""
    job = world.jobs["running"]
    (found,) = world.argusd.get(f"/v1/jobs/{world.jobs['failed']}/findings")["findings"]
    log = "gpu-01/worker-00-02000000-10.out"
    odd = {"class": "timeout_or_hang", "node": "gpu-01", "rank": "1", "pid": "10", "after": [], "second": None}
    quotes = [
        {"source": None, "offset": 0, "line": 0, "text": "no new step for 9m"},
        {"source": "logs/driver.log", "offset": 0, "line": 1, "text": "Total training steps: 500"},
        {"source": f"logs/workers/{log}", "offset": 14, "line": 2, "text": "NCCL WARN of rank 0"},
        {"source": "stacks/2/gpu-01.json", "offset": 0, "line": 0, "text": "pid 10: native code"},
    ]
    answers = {
        "": {**world.argusd.job(job), "flags": ["HUNG"]},
        "/findings": {"findings": [{**found, **odd, "attempt": 1, "evidence": quotes}], "opinions": []},
    }
    stood = [
        {"pid": 9, "rank": "0", "actor": "Trainer", "state": "S", "text": "Thread MainThread (idle)\n    all_reduce"},
        {"pid": 10, "rank": "1", "actor": "Trainer", "state": "T", "text": "Thread MainThread (idle)\n    <b>native"},
    ]
    at = world.argusd.job_dir(job) / "attempts/1/stacks/2"
    at.mkdir(parents=True)
    for node in ("gpu-02", "gpu-01"):
        (at / f"{node}.json").write_text(json.dumps(stood))
    page = browser.page()
    for path, body in answers.items():
        page.route(f"**/v1/jobs/{job}{path}", lambda r, _, body=body: r.fulfill(json=body))
    page.goto(f"{world.argusd.url}/jobs/{job}")
    page.wait_for_selector("#finding .quote >> nth=3")
    assert page.locator("#finding .quote").all_inner_texts() == [q["text"] for q in quotes]
    assert page.locator("#finding button.link").count() == 2, "one in each log"
    assert page.locator("#finding .finding-acts").count() == 0, "it is not over: nothing to retry"
    page.click("#finding .stacks > summary")
    page.wait_for_selector("#finding .stacks li pre:has-text('<b>native')")
    nodes = page.locator("#finding .stacks > details > summary").all_inner_texts()
    assert [n.split()[0] for n in nodes] == ["gpu-01", "gpu-02"], "that of the odd process first"
    ranks = page.locator("#finding .stacks li summary").all_inner_texts()
    assert [r.split(" Trainer")[0] for r in ranks] == ["rank 1", "rank 0"] and "stopped" in ranks[0]
    assert page.locator("#finding .stacks pre:visible").count() == 1, "the others are opened by hand"
    page.click(f"#finding button.link:has-text('{log}')")
    page.wait_for_url("**line=14**")
    page.wait_for_selector("#log li.here:has-text('NCCL WARN of rank 0')")
    assert page.wrong == []
    page.context.close()


def test_the_gpus_of_a_job_that_is_over(browser, world):
    """The time asked for lies in its life, so that there is an answer however long ago that was."""
    job, asked = world.jobs["done"], []
    page = browser.page()
    page.on("request", lambda r: "/gpus?" in r.url and asked.append(parse_qs(urlsplit(r.url).query)))
    page.goto(f"{world.argusd.url}/jobs/{job}")
    page.wait_for_selector("#gpus .blank:has-text('No figures'), #gpus .ranks")
    assert asked and all("since" not in a and "until" not in a for a in asked), asked
    assert page.wrong == []
    page.context.close()


def gpu_of(node, gpu, use, **more):
    nothing = dict.fromkeys(("mem_used_max_bytes", "mem_total_bytes", "temperature_celsius", "power_watts", "watched_s",
                             "busy_s", "used_joules", "mem_peak_bytes", "uuid", "rank"))  # fmt: skip
    known = [v for v in use if v is not None]
    mean = sum(known) / len(known) if known else None
    return {"node": node, "gpu": gpu, "mean": use, "max": use, "mean_of_all": mean, "by_processes": False,
            **nothing, **more}  # fmt: skip


def test_the_curves_of_the_ranks(browser, world):
    """The one that differs most stands beside the median until another is chosen, which the address keeps."""
    job = world.jobs["running"]
    use = lambda rank: [0.125, 0.25] if rank == 5 else [0.75, 0.5]  # noqa: E731
    rows = [gpu_of(f"gpu-0{rank // 8}", rank % 8, use(rank), rank=rank) for rank in range(16)]
    rows += [gpu_of("<b>gpu-02</b>", 0, [0.75, None]), gpu_of("gpu-03", 0, [None, None])]
    rows[0] |= {"watched_s": 600, "busy_s": 300, "used_joules": 1.8e6}
    earlier = {"node": "<b>gpu-02</b>", "gpu": 0, "uuid": "GPU-0", "attempt": 1, "rank": None, "by_processes": False,
               "watched_s": 100, "busy_s": 20, "used_joules": 3.6e6, "mem_peak_bytes": 1 << 30}  # fmt: skip
    total = {"watched_s": 700, "busy_s": 320, "used_joules": 5.4e6, "mem_peak_bytes": 1 << 30}
    said = {"id": job, "figure": "gpu_util_ratio", "from": "2026-11-26T08:00:00Z", "step_s": 60, "points": 2,
            "series": rows, "earlier": [earlier], "total": total}  # fmt: skip
    page = browser.page()
    page.route(f"**/v1/jobs/{job}/gpus?*", lambda r: r.fulfill(json=said))
    page.goto(f"{world.argusd.url}/jobs/{job}")
    page.wait_for_selector("#gpus .rank-curves canvas")
    of_all, first, newest = page.locator("#gpus .gpu-energy p").all_inner_texts()
    assert of_all == "Energy over all attempts: 1.5 kWh"
    assert first == "Attempt 1 on 1 GPU: 1 kWh, at work for 20% of the time"
    assert newest.endswith(" on 18 GPUs: 0.5 kWh, at work for 50% of the time")
    shown = lambda: page.locator("#gpus .rank-curves .plot").get_attribute("aria-label")  # noqa: E731
    assert shown() == "rank 5 · gpu-00 GPU 5 works at 19% on the average, the median rank at 63%"
    assert "the median of 17 · thin: the 16 that differ most" in page.inner_text("#gpus .rank-curves")
    choices = page.locator("#gpus .rank-curves option")
    assert choices.count() == 17, "a GPU of which nothing is known is no choice"
    assert choices.last.text_content() == "<b>gpu-02</b> GPU 0" and page.locator("#gpus b").count() == 0
    page.select_option("#gpus [aria-label='Which rank']", "gpu-01/1")
    page.wait_for_url("**rank=gpu-01**")
    until(lambda: shown().startswith("rank 9 · gpu-01 GPU 1 works at 63%"), "the chosen rank")
    page.reload()
    page.wait_for_selector("#gpus .rank-curves canvas")
    assert shown().startswith("rank 9 ")
    keeps = "{ value: { writeText: async (text) => { window.__copied = text; } } }"
    page.evaluate(f"(() => {{ Object.defineProperty(navigator, 'clipboard', {keeps}); }})()")
    page.click("#gpus .rank-curves [aria-label='Copy as CSV']")
    head, *points = until(lambda: page.evaluate("window.__copied"), "the table").split("\r\n")
    assert head.startswith("time,median,rank 9 · gpu-01 GPU 1,rank 5 · gpu-00 GPU 5,") and len(head.split(",")) == 19
    assert [p.split(",")[:4] for p in points] == [
        ["2026-11-26T08:00:00.000Z", "0.75", "0.75", "0.125"],
        ["2026-11-26T08:01:00.000Z", "0.5", "0.5", "0.25"],
    ]
    assert page.wrong == []
    page.context.close()


def test_what_a_job_takes_of_its_nodes(browser, world):
    """Its own figures, the node's, whose these are, and what nobody measures."""
    job = world.jobs["running"]
    load = world.argusd.get(f"/v1/jobs/{job}/load", token="user")
    first, second = load["nodes"]
    assert first["job_cpu_cores"] is None, "this fake Ray starts no scout"
    first |= {"job_cpu_cores": 2.5, "job_mem_bytes": 3 << 30, "cpu_util_ratio": 0.25, "alone": False,
              "net_received_bytes_per_second": 2 << 20, "net_sent_bytes_per_second": 1 << 20,
              "net_rdma_received_bytes_per_second": 5 << 30, "net_rdma_sent_bytes_per_second": 6 << 30}  # fmt: skip
    second |= {"cpu_util_ratio": None, "job_cpu_cores": None, "alone": True}
    page = browser.page()
    page.route(f"**/v1/jobs/{job}/load", lambda r: r.fulfill(json=load))
    page.goto(f"{world.argusd.url}/jobs/{job}")
    row = page.wait_for_selector(f"#load tr:has-text('{first['node']}')").inner_text()
    for said in ("2.5", "3.0 GiB", "25%", "2.0 MiB / 1.0 MiB a second", "5.0 GiB / 6.0 GiB a second"):
        assert said in row, row
    other = page.inner_text(f"#load tr:has-text('{second['node']}')")
    assert "–" in other and "%" not in other
    note = page.inner_text("#load p")
    assert f"Other jobs run on {first['node']} too" in note
    assert "Not measured: the job's CPU and memory · the node's figures" in note and "InfiniBand" not in note
    assert page.wrong == []
    done = browser.open(f"/jobs/{world.jobs['done']}", "#gpus")
    assert done.locator("#load").count() == 0, "a job that is over takes nothing"
    done.context.close()
    page.context.close()


def test_what_a_job_imported_its_files_and_its_report(browser, world):
    job = world.jobs["done"]
    process = {"kind": "worker", "node": "gpu-01", "pid": 7, "verl": "0.9.1", "file": "/s/verl/__init__.py", "ok": True}
    imports = {
        "processes": [process], "attempt": 1, "ok": True, "verl": "0.9.1", "file": "/s/verl/__init__.py",
        "snapshot": "mine@1", "hash": "cafe", "reward": None, "python": "3.12", "torch": None, "ray": "2.60.0",
        "nodes": ["gpu-01"], "mismatch": None,
    }  # fmt: skip
    whole = world.argusd.job(job)
    proof = {"driver_on_worker": True, "driver_node": "gpu-01", "driver_node_ip": "127.99.0.2", "head_ip": "127.99.0.1",
             "checked_at": whole["ended_at"]}  # fmt: skip
    page = browser.page(width=390)
    said = {**whole, "proof": {**proof, "imports": imports}}
    page.route(f"**/v1/jobs/{job}", lambda r: r.fulfill(json=said))
    page.goto(f"{world.argusd.url}/jobs/{job}")
    page.wait_for_selector("#place .c-ok:has-text('verl 0.9.1 · from its snapshot mine@1')")
    page.click("#place summary")
    page.wait_for_selector("#place .imports li:has-text('worker · gpu-01 · 7')")
    imports.update(ok=False, mismatch="from '/a' and not from '/b'")
    page.reload()
    page.wait_for_selector("#place .c-bad:has-text('not the code of this job')")
    assert "from '/a' and not from '/b'" in page.inner_text("#place").lower()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 1280, "height": 800})
    with page.expect_download() as got:
        page.click(".job-head a:has-text('Markdown')")
    assert got.value.suggested_filename == f"{job}.md" and "# " in got.value.path().read_text()
    page.click("#place a:has-text('Files')")
    page.wait_for_url(f"**/files?path=jobs%2F{job}")
    page.wait_for_selector(".crumbs")
    assert page.wrong == []
    page.context.close()


def test_a_view_of_the_list_is_kept(browser):
    page = browser.open("/jobs?state=live&q=grpo", ".vrow")
    page.click("text=Save this view")
    page.fill("[aria-label='Name of the view']", "my grpo")
    page.keyboard.press("Enter")
    page.wait_for_selector(".views a[aria-current]:has-text('my grpo')")
    page.goto(page.url.split("?")[0])
    page.click(".views a:has-text('my grpo')")
    page.wait_for_url("**state=live&q=grpo")
    page.click("text=Forget view my grpo")
    until(lambda: page.locator(".views a:has-text('my grpo')").count() == 0, "it is forgotten")
    page.context.close()


def test_more_than_a_hundred_samples(browser, tmp_path):
    with World(tmp_path, full=False) as w, browser.of(w):
        standin.make_world(w.argusd.root)
        training = standin.Training(w.argusd)
        training.dump(1, [(f"p{i}", f"answer {i}.", i / 200) for i in range(200)])
        page = browser.open(f"/jobs/{training.id}", "#samples .sample")
        assert page.locator("#samples .sample").count() == 32
        for shown in (132, 200):
            page.click("#samples button:has-text('Show more')")
            until(lambda n=shown: page.locator("#samples .sample").count() == n, f"{shown} samples are shown")
        assert "answer 199." in page.inner_text("#samples")
        assert page.locator("#samples button:has-text('Show more')").count() == 0
        page.click("#samples .seg button:has-text('Best')")
        page.wait_for_selector("#samples .sample-group:first-of-type:has-text('answer 199.')")
        assert page.locator("#samples .sample").count() == 32, "the pages are of the order that was asked for"
        assert page.wrong == []
        page.context.close()
        w.argusd.stop_job(training.id)


def test_samples_are_text_and_go_over_the_steps(browser, tmp_path):
    with World(tmp_path, full=False) as w, browser.of(w):
        standin.make_world(w.argusd.root)
        training = standin.Training(w.argusd)
        markup = "<img src=x onerror=alert(1)> <b>bold</b>"
        for step in (1, 2):
            rows = [("2+2=", f"it is {step}", 0.5), ("2+2=", "so it is " * 9, 0.5), ("a", markup, -1.0)]
            training.dump(step, rows, acc=[1, 0, 0])
        page = browser.open(f"/jobs/{training.id}", "#samples .sample")
        assert page.locator("#samples .sample-group").count() == 2
        assert "1 of 1 prompts" in page.inner_text("#samples") and "acc 1" in page.inner_text("#samples")
        assert markup in page.inner_text("#samples")
        assert page.locator("#samples img, #samples .sample-text b").count() == 0
        assert "so it is" in page.locator("#samples mark").first.inner_text()
        page.locator("#samples .sample-group .link").first.click()
        page.wait_for_selector("#samples .sample:has-text('it is 1')")
        assert page.locator("#samples .sample").count() == 4 and "Step 2" in page.inner_text("#samples")
        page.locator("#samples .sample-group .link").first.click()
        page.select_option("#samples select", "1")
        page.click("#samples .seg button:has-text('Worst')")
        page.wait_for_selector("#samples .sample-group:first-of-type:has-text('bold')")
        page.click("#samples .seg button:has-text('Most changed')")
        page.wait_for_selector("#samples select[aria-label='Since step']")
        page.fill("#samples [aria-label='Score from']", "0.4")
        page.wait_for_selector("#samples .sample-group:has-text('2+2=')")
        until(lambda: markup not in page.inner_text("#samples"), "a score below it is left out")
        page.fill("#samples [aria-label='Score from']", "")
        other = standin.Training(w.argusd)
        call = '<tool_call>{"name": "calc", "arguments": {"q": "2+2"}}</tool_call><tool_response>4</tool_response>four'
        other.dump(1, [("2+2=", call, 1.0)], acc=[1])
        page.goto(page.url.split("?")[0])
        page.click("#samples .sample-group:has-text('2+2=') .link")
        page.select_option("select[aria-label^='Beside']", other.id)
        page.wait_for_selector("#samples .sample:has-text('four')")
        assert page.inner_text(".sample-turn.call").splitlines()[0] == "Tool call: calc"
        assert "4" in page.inner_text(".sample-turn.result .sample-text")
        rows = page.locator("#samples .sample-beside")
        assert [rows.nth(i).locator("h3").inner_text() for i in range(rows.count())] == ["Step 2", "Step 1"]
        assert "it is 1" in rows.nth(1).inner_text() and "four" in rows.nth(1).inner_text(), "of the same step"
        assert "None of this step" in rows.nth(0).inner_text()
        assert page.wrong == []
        page.context.close()
        w.argusd.stop_job(training.id)
        w.argusd.stop_job(other.id)


def test_runs_in_trackers_are_seen(browser, world):
    """As argusd tells of servers that are not there; and a link that a spec made is one only to the web."""
    a = world.argusd
    keys = {"wandb": {"enabled": True, "mode": "online"}, "tracking": {"backend": "mlflow"}}
    job = a.submit("true", **keys)
    a.wait_over(job)
    view = a.wait_job(job, lambda j: len([t for t in j["trackers"] or [] if t["problem"]]) == 2, "has its runs")
    page = browser.open(f"/jobs/{job}", "#trackers tbody tr >> nth=1")
    rows = page.locator("#trackers tbody tr").all_inner_texts()
    for run, row in zip(view["trackers"], rows, strict=True):
        assert run["tracker"] in row and run["problem"][1:] in row and (run["link"] or "") in row, row
    assert page.locator("#trackers a").count() == 0, "a directory is no link"
    page.context.close()

    evil = {**view["trackers"][0], "link": "javascript:alert(8)", "name": "<img src=x onerror=alert(9)>"}
    fine = {**evil, "attempt": 2, "mode": "online", "state": "complete", "link": "https://wandb.example/a/b"}
    page = browser.page()
    page.route(f"**/v1/jobs/{job}", lambda r: r.fulfill(json={**view, "trackers": [evil, fine]}))
    page.goto(f"{a.url}/jobs/{job}")
    page.wait_for_selector("#trackers tbody tr >> nth=1")
    links = page.locator("#trackers a")
    assert [link.get_attribute("href") for link in links.all()] == ["https://wandb.example/a/b"]
    assert links.first.inner_text() == evil["name"] and page.locator("#trackers img").count() == 0
    assert page.evaluate("window.__alerts || []") == [] and page.wrong == []
    page.context.close()
