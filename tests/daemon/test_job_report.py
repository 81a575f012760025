# SPDX-License-Identifier: Apache-2.0
"""A job as a report: Markdown and HTML, in both languages, for him who may see the job."""

import re

import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 2 has a total capacity of 95.10 GiB"


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("report"), ray.url) as a:
        job = a.submit(f"echo '{OOM}' >&2; exit 1", name="<b>hostile</b> [x](y)")
        a.wait_over(job)
        until(lambda: (a.get(f"/v1/jobs/{job}")["finding"] or {}).get("class") == "gpu_oom", "its finding is there")
        yield a, job


def report(a, job, query="", token="user", status=200, **headers):
    reply = a.call("GET", f"/v1/jobs/{job}/report{query}", token=token, **headers)
    assert reply.status == status, reply
    return reply


def test_as_markdown(failed):
    a, job = failed
    reply = report(a, job)
    text = reply.body.decode()
    assert reply.headers["Content-Type"].startswith("text/markdown")
    assert f"# \\<b\\>hostile\\</b\\> \\[x\\](y) ({job})" in text
    assert "- State: FAILED" in text and "- gpu\\_oom" in text and "## Evidence" in text
    assert re.search(r"^    logs/driver\.log:\d+: torch\.OutOfMemoryError", text, re.M)
    assert "- GPU-hours held: " in text and '"workload": "ray"' in text


def test_as_a_page_in_chinese(failed):
    a, job = failed
    for reply in (report(a, job, "?format=html&language=zh"), report(a, job, "?format=html", Accept_Language="zh-CN")):
        text = reply.body.decode()
        assert reply.headers["Content-Type"].startswith("text/html")
        assert "<h2>首要原因</h2>" in text and "&lt;b&gt;hostile&lt;/b&gt;" in text and "<b>" not in text


def test_what_is_no_form_is_refused(failed):
    a, job = failed
    for query, said in (("?format=pdf", "neither md nor html"), ("?language=fr", "neither en nor zh")):
        assert said in report(a, job, query, status=400).json()["detail"]


def test_a_stranger_gets_none(failed):
    a, job = failed
    assert a.call("POST", "/v1/users", {"name": "stranger", "role": "user"}).status == 201
    token = a.call("POST", "/v1/tokens", {"user": "stranger", "name": "first"}).json()["token"]
    assert a.call("GET", f"/v1/jobs/{job}/report", token=token).status in (403, 404)
