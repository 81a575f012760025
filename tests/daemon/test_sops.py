# SPDX-License-Identifier: Apache-2.0
"""docs/sop beside a fake Ray: something is broken, the operator pastes the blocks as they stand, and it is well."""

import pytest
from checkpoints import put_checkpoint
from fakeray import FakeRay
from soppage import SopPage

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd


@pytest.fixture
def argusd(tmp_path):
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as made:
        yield made


def test_a_token_has_leaked(argusd):
    reply = argusd.call("PUT", "/v1/secrets/WANDB_API_KEY", {"value": "canary-4711"}, token="user")
    assert reply.status in (200, 201), reply
    job = argusd.submit("sleep 600", token="user")
    argusd.wait_state(job, "RUNNING")
    page = SopPage("token-leak", argusd, WHO="alice")
    page.paste("close")
    assert argusd.call("GET", "/v1/whoami", token="user").status == 401
    assert "alice" in page.paste("tokens")
    page.paste("revoke")
    assert argusd.get("/v1/tokens?user=alice", token="admin")["tokens"] == []
    said = page.paste("events")
    assert job in said and "secret" in said
    said = page.paste("secrets")
    assert "WANDB_API_KEY" in said and "canary" not in said
    token = page.paste("open").strip().splitlines()[-1]
    assert argusd.job(job)["state"] == "RUNNING"  # nothing that runs was harmed
    assert argusd.call("GET", "/v1/whoami", token="user").status == 401
    argusd.tokens["new"] = token
    assert argusd.get("/v1/whoami", token="new")["user"] == "alice"
    assert page.left == set()


def test_a_project_gives_back(argusd):
    reply = argusd.call("POST", "/v1/projects", {"name": "rlhf", "members": ["alice"]}, token="admin")
    assert reply.status == 201, reply
    over = argusd.submit("true", token="user", project="rlhf")
    argusd.wait_over(over)
    runs = [argusd.submit("sleep 600", token="user", project="rlhf") for _ in range(2)]
    other = argusd.submit("sleep 600", token="admin")
    for job in (*runs, other):
        argusd.wait_state(job, "RUNNING")
    put_checkpoint(argusd.job_dir(over) / "checkpoints", 10)
    page = SopPage("reclaim", argusd, PROJECT="rlhf")
    assert all(job in page.paste("before") for job in runs)
    said = page.paste("plan")
    assert all(job in said for job in runs) and other not in said and "alice" in said
    assert [argusd.job(job)["state"] for job in runs] == ["RUNNING", "RUNNING"]  # a plan does nothing
    theirs = argusd.call("POST", "/v1/ops/stop_many", {"jobs": [other]})  # somebody's, and newer
    assert theirs.status == 201, theirs
    page.paste("apply")
    assert [argusd.wait_over(job)["state"] for job in runs] == ["STOPPED", "STOPPED"]
    page.paste("apply", codes=(2,))  # there is none for this project any more
    assert argusd.get(f"/v1/ops/plans/{theirs.json()['id']}")["state"] == "waiting"
    page.paste("ckpt")
    assert (argusd.job_dir(over) / "checkpoints/global_step_10").exists()  # the last one that can be read stays
    assert "RUNNING" not in page.paste("after") and argusd.job(other)["state"] == "RUNNING"
    assert page.left == set()
