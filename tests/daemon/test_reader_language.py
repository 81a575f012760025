# SPDX-License-Identifier: Apache-2.0
"""What each room refuses or finds wrong reaches its reader in Chinese: a code with arguments from where it happened,
and a sentence at the edge. One of each: archives, checkpoints, the root, the store, Ray, base, argus."""

import os
import re
import subprocess

import pytest
import standin
from fakeray import FakeRay
from programs import PROGRAMS

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd
ZH = {"Accept-Language": "zh-CN"}


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("language"), ray.url) as a:
        a.ray = ray
        standin.make_world(a.root)
        yield a


def chinese(argusd, path, method="GET", body=None, **headers):
    return argusd.call(method, path, body, **{**ZH, **headers}).json()


def argus(argusd, *args, lang="zh_CN.UTF-8"):
    env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "LC_ALL": lang}
    argv = [PROGRAMS["argus"], *args]
    return subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)


def test_an_archive(argusd):
    job = argusd.wait_over(argusd.submit("echo x"))["id"]
    os.mkfifo(argusd.job_dir(job) / "pipe")
    until(lambda: argusd.call("POST", f"/v1/jobs/{job}:archive", token="user").status == 202, "its end is on disk")
    until(lambda: (argusd.job(job).get("archived") or {}).get("state") == "failed", "it is refused")
    assert argusd.job(job)["archived"]["problem"] == "'pipe' is a pipe, which no archive brings back: remove it first"
    assert chinese(argusd, f"/v1/jobs/{job}")["archived"]["problem"] == "'pipe' 是管道，归档无法还原它：请先删除它"
    told = [e["reason"] for e in argusd.get(f"/v1/jobs/{job}/events")["events"] if e["kind"] == "archive_failed"]
    assert [(r["code"], r["args"]) for r in told] == [("pack_odd", {"path": "pipe", "is": "a pipe"})]
    assert "'pipe' 是管道" in argus(argusd, "status", job).stdout
    (argusd.job_dir(job) / "pipe").unlink()


def test_a_checkpoint(argusd):
    t = standin.Training(argusd)
    t.order("torn", 10)
    until(lambda: t.states().get(10) == "broken", "the torn one is there")
    (one,) = chinese(argusd, f"/v1/jobs/{t.id}/checkpoints")["checkpoints"]
    assert re.fullmatch(r"'.*optim_world_size_1_rank_0\.pt'：没有 zip 文件的结尾：已被截断", one["why"])
    (told,) = [
        e["reason"] for e in chinese(argusd, f"/v1/jobs/{t.id}/events")["events"] if e["kind"] == "checkpoint_broken"
    ]
    assert told["text"].startswith("第 10 步的检查点不能读取：'") and told["args"]["step"] == 10
    assert "'：没" in argus(argusd, "ckpt", "ls", t.id).stdout  # the column is narrow
    argusd.stop_job(t.id)


def test_what_happens_to_a_job(argusd):
    """Its end, its attempts, its events and why it is as it is: each an own message behind the class that sorts it."""
    job = argusd.wait_over(argusd.submit("exit 3"))
    ended = {"message": {"code": "attempt_exited", "args": {"exit_code": 3}}}
    assert (job["reason"]["text"], job["reason"]["args"]) == ("the command ended with exit code 3", ended)
    view = chinese(argusd, f"/v1/jobs/{job['id']}")
    assert view["reason"]["text"] == "命令以退出码 3 结束" and view["reason"]["code"] == job["reason"]["code"]
    assert [a["end"] for a in view["attempts"]] == ["命令以退出码 3 结束"]
    assert "命令以退出码 3 结束" in argus(argusd, "status", job["id"]).stdout
    events = chinese(argusd, f"/v1/jobs/{job['id']}/events")["events"]
    texts = {e["kind"]: e["text"] for e in events}
    assert texts["ended"] == "命令以退出码 3 结束" and texts["admitted"] == "已为它租下 GPU；正在发送给 Ray"
    assert texts["accepted"] == "Ray 已接受；它的 driver 还没有出现"
    assert texts["driver_placed"].startswith("driver 运行在")
    english = [k for k, text in texts.items() if text and not re.search(r"[\u4e00-\u9fff]", text)]
    assert set(english) <= {"finding"}

    waits = argusd.submit("sleep 60")
    until(lambda: argusd.job(waits)["state"] == "RUNNING", "it runs")
    assert chinese(argusd, f"/v1/jobs/{waits}/why")["text"].startswith("它不在等待：自 ")
    argusd.stop_job(waits)
    stopped = argusd.wait_over(waits)
    assert stopped["reason"]["text"].startswith("stopped by '")
    view = chinese(argusd, f"/v1/jobs/{waits}")
    assert view["reason"]["text"].startswith("由 '") and view["attempts"][0]["end"].startswith("被停止（")


def test_an_alert_and_its_incident(argusd):
    """One sentence each, in the language of who asks, and so is a fact that is one: rule and the other facts are what
    programs read."""
    job = argusd.wait_over(argusd.submit("exit 3"))["id"]

    def alerts(ask):
        return [a for a in ask("/v1/alerts?state=all")["alerts"] if a["rule"] == "job_failed" and a["name"] == job]

    until(lambda: alerts(argusd.get), "its end is an alert")
    (english,), (told,) = alerts(argusd.get), alerts(lambda path: chinese(argusd, path))
    assert english["text"].startswith(f"job '{job}' of ")
    assert told["text"].startswith(f"{english['user']} 的作业 '{job}' 失败")
    assert english["text"].endswith(english["facts"]["finding"]) and told["text"].endswith(told["facts"]["finding"])
    assert english["facts"].pop("finding") != told["facts"].pop("finding")
    assert not [k for k in english if k.endswith("_zh")] and english["facts"] == told["facts"]
    incident = f"/v1/incidents/{english['incident']}"
    assert english["text"] in argusd.get(incident)["title"] and told["text"] in chinese(argusd, incident)["title"]
    assert [a["text"] for a in chinese(argusd, incident)["alerts"] if a["id"] == told["id"]] == [told["text"]]
    assert told["text"] in argus(argusd, "alert", "show", told["id"]).stdout


def test_a_checkpoint_that_is_kept(argusd):
    t = standin.Training(argusd)
    t.order("save", 10)
    until(lambda: t.states().get(10) == "verified", "it is there")
    told = {e["kind"]: e["text"] for e in chinese(argusd, f"/v1/jobs/{t.id}/events")["events"]}
    assert told["checkpoint"].startswith("第 10 步的检查点已完整：")
    argusd.stop_job(t.id)


def test_the_shared_root(argusd):
    away = argusd.root.with_name("away")
    argusd.root.rename(away)
    try:
        until(lambda: argusd.get("/readyz")["shared_root"] != "ok", "argusd sees it")
        root = str(argusd.root)
        assert chinese(argusd, "/readyz")["reason"] == (
            f"共享根目录不可用：共享根目录 '{root}' 不存在：请挂载它，或更正 'shared_root'"
        )
        assert chinese(argusd, "/v1/nodes")["reason"] == chinese(argusd, "/readyz")["reason"]
        english = argusd.get("/readyz")["reason"]
        assert english.endswith(f"the shared root '{root}' does not exist: mount it, or correct 'shared_root'")
        (told,) = [e for e in argusd.get("/v1/events?limit=100")["events"] if e["kind"] == "root_bad"]
        assert told["reason"]["args"] == {"why": {"code": "root_missing", "args": {"root": root}}}
    finally:
        away.rename(argusd.root)
    until(lambda: argusd.get("/readyz")["shared_root"] == "ok", "the shared root is well again")


def test_the_store(argusd):
    for _ in range(2):
        argusd.wait_over(argusd.submit("echo x", name="twin"))
    got = chinese(argusd, "/v1/jobs?cursor=zz")
    assert (got["code"], got["detail"]) == ("not_a_cursor", "'zz' 不是游标：请给出上一页的 `next`，或不给")
    got = chinese(argusd, "/v1/jobs/twin")
    assert got["code"] == "job_ambiguous" and got["detail"].endswith("：请给出更长的 id"), got


def test_ray(argusd):
    argusd.ray.listen(False)
    try:
        until(lambda: argusd.get("/readyz")["ray"] == "away", "argusd sees it")
        said = chinese(argusd, "/readyz")["reason"]
        assert re.fullmatch(r"位于 '.*' 的 Ray 自 .* 起没有应答：.*", said), said
        assert "没有应答" in chinese(argusd, "/v1/clusters")["clusters"][0]["reason"]["text"]
    finally:
        argusd.ray.listen(True)
    until(lambda: argusd.get("/readyz")["ray"] == "ok", "Ray answers again")


def test_base(argusd):
    got = chinese(argusd, "/v1/uploads", "POST", b'{"name"', Content_Type="application/json")
    assert re.search(r"该 JSON 文本在 1:\d+ 处有错误", got["detail"]), got


def test_argus(argusd):
    said = argus(argusd, "stop")
    assert said.returncode == 2
    assert said.stderr == "argus: 'argus stop' 需要 ID…，或过滤条件如 --state QUEUED\n请看 'argus stop --help'\n"
    assert "'x' 不是整数" in argus(argusd, "ls", "--limit", "x").stderr
    assert argus(argusd, "stop", lang="C.UTF-8").stderr.startswith("argus: 'argus stop' needs ID")
