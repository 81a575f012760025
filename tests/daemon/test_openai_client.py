# SPDX-License-Identifier: Apache-2.0
"""Clients that people have, against a service: the official openai package, and curl. Beside a fake Ray Serve, whose
replicas answer in the form of our engine's; tests/ray/test_services_real.py has the engine itself."""

import json
import os
import re
import shutil
import subprocess

import openai
import pytest
from programs import PROGRAMS
from test_services import Bed

from argusd import PATIENCE, needs_argusd, until

pytestmark = needs_argusd


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    with Bed(tmp_path_factory.mktemp("openai")) as bed:
        bed.model("sums")
        bed.serve(model="sums", name="sums")
        bed.serve(model="sums", name="few", requests_per_minute=1)
        bed.ready("sums", 1)
        bed.ready("few", 1)
        yield bed


def client(bed, name="sums", key=None):
    url = f"{bed.argusd.url}/v1/services/{name}/v1"
    key = bed.argusd.tokens["user"] if key is None else key
    return openai.OpenAI(base_url=url, api_key=key, max_retries=0, timeout=PATIENCE)


CHAT = {"model": "sums", "messages": [{"role": "user", "content": "6 times 7?"}]}


def test_the_official_client(bed):
    c = client(bed)
    assert [m.id for m in c.models.list()] == ["sums"]
    whole = c.chat.completions.create(**CHAT)
    assert (whole.choices[0].message.content, whole.usage.completion_tokens) == ("42", 2)
    text = c.completions.create(model="sums", prompt="6 times 7 =")
    assert text.choices[0].text == "42"
    pieces = list(c.chat.completions.create(**CHAT, stream=True, stream_options={"include_usage": True}))
    assert "".join(p.choices[0].delta.content for p in pieces if p.choices) == "0123"
    assert pieces[-1].usage.completion_tokens == 4
    assert "".join(p.choices[0].text for p in c.completions.create(model="sums", prompt="6", stream=True)) == "0123"


def test_embeddings_by_the_official_client(bed):
    for form in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        made = client(bed).embeddings.create(model="sums", input=["one", "two"], **form)
        assert made.usage.prompt_tokens == 6 and [d.index for d in made.data] == [0, 1]
    plain = client(bed).embeddings.create(model="sums", input="one")
    assert [round(x, 3) for x in plain.data[0].embedding] == [0.6, 0.8]


def test_another_version_by_the_official_client(bed):
    bed.serve(model="sums", name="both", keep="warm")
    bed.ready("both", 1)
    bed.serve(path="/v1/services/both:deploy")
    bed.ready("both", 2)

    def app(**headers):
        told = client(bed, "both").with_options(default_headers=headers)
        return told.chat.completions.create(**{**CHAT, "model": "both"}).model_extra["app"]

    assert app() == "both-v2"
    assert app(**{"Argus-Version": "1"}) == "both-v1" and app(**{"Argus-Version": "2"}) == "both-v2"
    with pytest.raises(openai.NotFoundError) as told:
        app(**{"Argus-Version": "9"})
    assert told.value.body["code"] == "serve_version_none"
    bed.argusd.call("DELETE", "/v1/services/both", token="user")


def test_errors_as_the_client_knows_them(bed):
    with pytest.raises(openai.NotFoundError) as told:
        client(bed).chat.completions.create(**{**CHAT, "model": "nosuch"})
    assert told.value.code == "model_not_found", "the engine's own word passes"
    with pytest.raises(openai.AuthenticationError):
        client(bed, key="argus_" + "x" * 43).models.list()
    with pytest.raises(openai.NotFoundError):
        client(bed, "nothing").models.list()
    with pytest.raises(openai.PermissionDeniedError):
        client(bed, key=bed.argusd.tokens["viewer"]).models.list()


def test_the_limit_of_a_key(bed):
    assert client(bed, "few").models.list().data[0].id == "few"
    with pytest.raises(openai.RateLimitError) as told:
        client(bed, "few").models.list()
    assert 1 <= int(told.value.response.headers["Retry-After"]) <= 61
    assert told.value.body["code"] == "calls_too_many"


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_line_for_curl_in_the_document(bed):
    """docs/services.md, as it stands there."""
    path = os.path.join(os.path.dirname(__file__), "../../docs/services.md")
    with open(path) as f:
        line = re.search(r"^curl -N .*?'$", f.read(), re.M | re.S).group(0)
    env = {"PATH": os.environ["PATH"], "ARGUS_URL": bed.argusd.url, "ARGUS_TOKEN": bed.argusd.tokens["user"]}
    said = subprocess.run(["bash", "-c", line], env=env, capture_output=True, text=True, timeout=PATIENCE)
    events = [e.removeprefix("data: ") for e in said.stdout.split("\n\n") if e]
    assert said.returncode == 0 and events[-1] == "[DONE]", said
    assert "".join(json.loads(e)["choices"][0]["delta"]["content"] for e in events[:-1]) == "0123"


def test_the_command_line_says_the_words(bed):
    env = {"PATH": os.environ["PATH"], "HOME": str(bed.home), "ARGUS_URL": bed.argusd.url, "LANG": "C"}
    env["ARGUS_TOKEN"] = bed.argusd.tokens["user"]
    cli = PROGRAMS["argus"]

    def said(*args):
        return subprocess.run([cli, *args], env=env, capture_output=True, text=True, timeout=PATIENCE)

    assert said("service", "ask", "sums", "6 times 7?").stdout == "42\n"
    assert said("service", "ask", "sums", "--version", "1", "6 times 7?").stdout == "42\n"
    refused = said("service", "ask", "sums", "--version", "9", "6 times 7?")
    assert refused.returncode != 0 and "no version 9" in refused.stderr and "v1 can be asked" in refused.stderr
    listed = said("service", "requests", "sums")
    assert listed.returncode == 0 and "POST /v1/chat/completions" in listed.stdout and "alice" in listed.stdout, listed
    applications = until(
        lambda: (a := said("service", "applications")) and "sums-v1" in a.stdout and a, "argusd has looked at Ray Serve"
    )
    assert "argusd" in applications.stdout, applications
