# SPDX-License-Identifier: Apache-2.0
"""The fake Ray against what the real one was recorded to answer, and what only the fake has."""

import json
import os
import pathlib
import time

import pytest
from fakeray import FakeRay, wait_for
from ports import free_port
from record import Recorder, compare, differences, last_line, record, shape

RECORDED = pathlib.Path(__file__).resolve().parents[1] / "fake_ray" / "recorded"
JOBS = "/api/jobs/"


def ask(fake, method, path, body=None):
    status, _, text = Recorder(fake.url).ask(method, path, body)
    return status, text


def submit(fake, name, entrypoint, **more):
    status, text = ask(fake, "POST", JOBS, {"submission_id": name, "entrypoint": entrypoint, **more})
    assert status == 200, text


def is_running(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("version", ["2.51.1", "2.60.0"])
def test_answers_like_the_real_one(version):
    recorded = json.loads((RECORDED / f"{version}.json").read_text())
    with FakeRay(version) as fake:
        fake.world(groups=recorded["groups_detail"]["json"]["data"]["result"]["result"])
        got_version, got = record(fake.url, driver="exec sleep 600")
    assert got_version == version
    assert compare(recorded, got) == []


def beyond(real, fake, at=""):
    """What the fake says and the real one does not, or says in another form; keys that name things are not compared."""
    if isinstance(fake, dict):
        named = at.endswith(("proxies", "applications", "deployments", "args", "user_config", "label_selector"))
        pairs = [(next(iter(real.values()), None), v, f"{at}.*") for v in fake.values()] if named else [
            (real.get(k, "missing"), v, f"{at}.{k}") for k, v in fake.items()
        ]  # fmt: skip
        return [x for r, f, where in pairs for x in beyond(r, f, where)]
    if isinstance(fake, list):
        return [x for v in fake for x in beyond(real[0] if real else None, v, f"{at}[]")]
    alike = type(real) is type(fake) or real is None or (isinstance(real, float) and isinstance(fake, int))
    return [] if alike else [f"{at}: {real!r} and {fake!r}"]


def test_serve_answers_like_the_real_one():
    """What the fake says of Ray Serve, the real one says in the same form; and it keeps of a list what that keeps."""
    recorded = json.loads((RECORDED / "serve-2.60.0.json").read_text())
    (app,) = recorded["applications"].values()
    sent = {"proxy_location": "EveryNode", "http_options": {"port": free_port()}}
    config = json.loads(json.dumps(app["deployed_app_config"]))
    with FakeRay("2.60.0") as fake:
        status, text = ask(fake, "GET", "/api/serve/applications/")
        assert status == 200 and json.loads(text)["applications"] == {}
        unknown = {**config, "max_restarts": 1, "deployments": [{**config["deployments"][0], "nonsense": 2}]}
        assert ask(fake, "PUT", "/api/serve/applications/", {**sent, "applications": [unknown]}) == (200, "")

        def running():
            shown = json.loads(ask(fake, "GET", "/api/serve/applications/")[1])
            return shown["applications"]["a"]["status"] == "RUNNING" and shown

        shown = wait_for(running, "the application runs")
        assert shown["applications"]["a"]["deployed_app_config"] == app["deployed_app_config"]
        assert beyond(recorded, shown) == []
        status, text = ask(fake, "PUT", "/api/serve/applications/", {"applications": [{"name": "a"}]})
        assert status == 400 and text.startswith("1 validation error for ServeDeploySchema")
    assert beyond({"a": 1}, {"a": "1"}) == [".a: 1 and '1'"] and beyond({}, {"b": 1}) == [".b: 'missing' and 1"]


def test_comparing_sees_a_difference():
    old = shape({"a": [{"b": 1, "c": None}], "labels": {"x": "y"}})
    assert differences(old, shape({"a": [{"b": 2.5, "c": "t"}], "labels": {"z": "y"}})) == []
    assert differences(old, shape({"a": [{"b": "1", "c": None}], "labels": {}})) == [".a[].b: number and text"]
    assert differences(old, shape({"a": [{"b": 1}], "labels": {}})) == [".a[].c: only in one of the two"]
    assert last_line("Traceback\nValueError: Job abcdef0123 exists\n.\n") == "ValueError: Job * exists"


def test_really_runs_the_entrypoint(tmp_path):
    with FakeRay() as fake:
        env = {"A": "${HOME}/x", "B": "$A/y", "C": "${NOSUCH}/z", "D": "$nosuch", "E": "a$$b"}
        entry = f'printf "%s\\n" "$A" "$B" "$C" "$D" "$E" "$RAY_ADDRESS" > {tmp_path}/out; '
        entry += f"ps -o sid= -p $$ >> {tmp_path}/out"
        submit(fake, "a", entry, runtime_env={"env_vars": env})
        fake.wait_status("a", "SUCCEEDED")
        home = os.environ["HOME"]
        lines = (tmp_path / "out").read_text().split("\n")
        assert lines[:6] == [f"{home}/x", f"{home}/x/y", "/z", "$nosuch", "a$$b", "10.99.0.1:6379"]
        assert int(lines[6]) == fake.starts()["a"][0]["pid"]  # its own session


def test_stop_is_term_then_kill():
    with FakeRay() as fake:
        env = {"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": "60"}}
        gentle = "trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done"
        submit(fake, "gentle", gentle, runtime_env=env)
        stubborn = "trap '' TERM; while :; do sleep 0.05; done"
        submit(fake, "stubborn", stubborn, runtime_env={"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": "1"}})
        wait_for(lambda: len(fake.starts()) == 2, "both started")
        for name in ("gentle", "stubborn"):
            fake.wait_status(name, "RUNNING")
            ask(fake, "POST", JOBS + name + "/stop")
        for name in ("gentle", "stubborn"):
            assert fake.wait_status(name, "STOPPED")["driver_exit_code"] is None
            pid = fake.starts()[name][0]["pid"]
            wait_for(lambda pid=pid: not is_running(pid), "its end")


def test_stop_of_a_pending_job_acts_when_it_starts():
    with FakeRay() as fake:
        fake.settings(hold_pending=True)
        submit(fake, "a", "exec sleep 600")
        assert ask(fake, "POST", JOBS + "a/stop") == (200, '{"stopped": true}')
        assert fake.jobs()["a"]["status"] == "PENDING"
        fake.settings(hold_pending=False)
        fake.wait_status("a", "STOPPED")


def test_resources_are_given_once():
    with FakeRay() as fake:
        for name in ("a", "b", "c"):
            submit(fake, name, "exec sleep 600", entrypoint_num_gpus=4)
        wait_for(lambda: [j["status"] for j in fake.jobs().values()].count("RUNNING") == 2, "two of three")
        running = [n for n, j in fake.jobs().items() if j["status"] == "RUNNING"]
        ask(fake, "POST", JOBS + running[0] + "/stop")
        wait_for(lambda: [j["status"] for j in fake.jobs().values()].count("RUNNING") == 2, "the third")


def test_killed_and_restarted_it_starts_nothing_twice(tmp_path):
    with FakeRay(state=tmp_path) as fake:
        submit(fake, "a", f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; exit 7")
        fake.wait_status("a", "RUNNING")
        wait_for(lambda: "a" in fake.starts(), "its start")
        session = fake.ask("GET", "state")["session"]
        fake.kill()
        (tmp_path / "go").touch()
        fake.start()
        assert fake.ask("GET", "state")["session"] == session
        assert fake.wait_status("a", "FAILED")["driver_exit_code"] == 7
        assert len(fake.starts()["a"]) == 1


def test_dead_node_takes_its_jobs_and_a_cut_one_does_not():
    with FakeRay() as fake:
        for name, node in (("dead", "h2"), ("cut", "h3")):
            submit(fake, name, "exec sleep 600", entrypoint_resources={f"argus_node_{node}": 1})
            fake.wait_status(name, "RUNNING")
        starts = wait_for(lambda: len(s := fake.starts()) == 2 and s, "both started")
        fake.node("h2", "dead")
        fake.node("h3", "dead", processes="keep")
        for name in ("dead", "cut"):
            job = fake.wait_status(name, "FAILED")
            assert job["error_type"] == "JOB_SUPERVISOR_ACTOR_DIED" and job["driver_exit_code"] is None
        wait_for(lambda: not is_running(starts["dead"][0]["pid"]), "the end of the dead node's job")
        assert is_running(starts["cut"][0]["pid"])
    wait_for(lambda: not is_running(starts["cut"][0]["pid"]), "the end with the fake")


def test_lost_memory_forgets_and_later_kills():
    with FakeRay() as fake:
        submit(fake, "a", "exec sleep 600")
        fake.wait_status("a", "RUNNING")
        pid = wait_for(fake.starts, "its start")["a"][0]["pid"]
        before = fake.ask("GET", "state")["session"]
        assert fake.lose_memory(kill_after=0) != before
        assert ask(fake, "GET", JOBS + "a")[0] == 404
        wait_for(lambda: not is_running(pid), "its end")


def test_start_timeout():
    with FakeRay() as fake:
        fake.settings(start_timeout=0.2)
        submit(fake, "a", "true", entrypoint_resources={"no_such": 1})
        job = fake.wait_status("a", "FAILED")
        assert job["error_type"] == "JOB_SUPERVISOR_ACTOR_START_TIMEOUT"
        assert fake.starts() == {}


def test_driver_lands_on_the_head_when_told():
    with FakeRay() as fake:
        fake.settings(driver_on_head=True)
        submit(fake, "a", "exec sleep 600", entrypoint_resources={"worker_node": 1})
        job = wait_for(lambda: (j := fake.jobs()["a"])["driver_info"] and j, "driver_info")
        assert job["driver_info"]["node_ip_address"] == "10.99.0.1"


def test_supervisor_killed_takes_the_driver_along():
    with FakeRay() as fake:
        submit(fake, "a", "exec sleep 600")
        fake.wait_status("a", "RUNNING")
        pid = wait_for(fake.starts, "its start")["a"][0]["pid"]
        with open(f"/proc/{pid}/stat") as f:
            runner = int(f.read().rsplit(")", 1)[1].split()[1])
        os.kill(runner, 9)
        fake.wait_status("a", "FAILED")
        wait_for(lambda: not is_running(pid), "its end")


def test_foreign_jobs_and_counts():
    with FakeRay() as fake:
        fake.add_job(submission_id="theirs", status="RUNNING", metadata=None)
        assert ask(fake, "POST", JOBS, {"submission_id": "theirs", "entrypoint": "x"})[0] == 500
        posts = [r for r in fake.requests() if r["method"] == "POST"]
        assert len(posts) == 1 and posts[0]["time"] <= time.time()
        assert fake.starts() == {}
