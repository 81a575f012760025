# SPDX-License-Identifier: Apache-2.0
"""The pages as argusd serves them: what is cached, what a browser is told to refuse, and that an address is a page."""

import gzip
import json
import pathlib
import re

import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd
GZIP = {"Accept_Encoding": "gzip, deflate, br"}


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("pages"), ray.url) as a:
        yield a


def page(argusd, path, method="GET", **head):
    return argusd.ask(method, path, None, None, GZIP | head)


def scripts(argusd):
    return re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css))"', gzip.decompress(page(argusd, "/").body).decode())


def test_every_address_is_the_index_and_files_are_files(argusd):
    index = page(argusd, "/")
    assert index.status == 200 and index.headers["Content-Type"] == "text/html; charset=utf-8"
    assert index.headers["Content-Encoding"] == "gzip" and index.headers["Vary"] == "Accept-Encoding"
    for deep in ("/jobs", "/jobs/grpo-1?attempt=2", "/queue?why=x", "/nowhere/at/all", "/jobs/%2e%2e%2fetc"):
        assert page(argusd, deep).body == index.body, deep
    assert scripts(argusd)
    for path in scripts(argusd):
        reply = page(argusd, path)
        kind = "javascript" if path.endswith("js") else "css"
        assert reply.status == 200 and kind in reply.headers["Content-Type"], path
        assert reply.body == page(argusd, path, "HEAD").body or page(argusd, path, "HEAD").body == b""


def test_what_is_kept_and_for_how_long(argusd):
    hashed = [p for p in scripts(argusd) if p.startswith("/assets/")]
    assert hashed
    for path in hashed:
        assert page(argusd, path).headers["Cache-Control"] == "public, max-age=31536000, immutable"
    for path in ("/", "/jobs", "/first.js"):
        first = page(argusd, path)
        assert first.headers["Cache-Control"] == "no-cache"
        again = page(argusd, path, If_None_Match=first.headers["ETag"])
        assert again.status == 304 and not again.body
        assert page(argusd, path, If_None_Match='"other"').status == 200
    assert page(argusd, "/assets/gone-12345678.js").status == 404, "an older page's file is not the index"


@pytest.mark.parametrize("path", ["/", "/jobs", "/first.js"])
def test_what_a_browser_refuses(argusd, path):
    head = page(argusd, path).headers
    policy = dict(part.strip().split(" ", 1) for part in head["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in str(policy) and "http" not in str(policy)
    assert head["X-Content-Type-Options"] == "nosniff" and head["Referrer-Policy"] == "no-referrer"
    assert head["X-Frame-Options"] == "DENY" and head["Cross-Origin-Opener-Policy"] == "same-origin"
    assert (policy["require-trusted-types-for"], policy["trusted-types"]) == ("'script'", "argus")


def test_licences_of_what_is_embedded(argusd):
    reply = page(argusd, "/licenses.txt")
    text = gzip.decompress(reply.body).decode()
    assert reply.headers["Content-Type"].startswith("text/plain")
    with open(pathlib.Path(__file__).parents[2] / "web/package.json") as f:
        for name, version in json.load(f)["dependencies"].items():
            assert f"\n{name} {version}\n" in text, name
    assert text.count("MIT License") > 5 and "\nvite " not in text


def test_nothing_inline_and_nothing_of_others(argusd):
    html = gzip.decompress(page(argusd, "/").body).decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", html), html
    assert "://" not in html, html


def test_the_api_is_no_page(argusd):
    """What a user put into a file is opened by a browser as nothing: no script, no frame, an origin of its own."""
    (argusd.root / "common").mkdir(exist_ok=True)
    (argusd.root / "common/x.html").write_text("<script>alert(1)</script>")
    reply = argusd.call("GET", "/v1/files/content?path=common/x.html", token="user")
    assert reply.status == 200
    assert reply.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'; sandbox"
    assert page(argusd, "/v1/nothing").status == 404 and page(argusd, "/v1").status == 404
    assert "text/html" not in page(argusd, "/v1/nothing").headers["Content-Type"]
    assert argusd.ask("GET", "/", None, None, {}).status == 415
