# SPDX-License-Identifier: Apache-2.0
"""The whole API of a real argusd, tried by what its own openapi.json says: thousands of requests that nobody thought
of, by schemathesis. No answer is a fault of argusd's, each is one that the description knows, of its type and shape."""

import json
import os
import pathlib
import re
import subprocess

import pytest
from checkpoints import put_checkpoint
from fakeray import FakeRay
from snapshots import added, tar

from argusd import Argusd, needs_argusd, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,ignored_auth,unsupported_method"
)
pytestmark = [needs_argusd, pytest.mark.nightly, pytest.mark.timeout(3000)]


def schemathesis():
    done = subprocess.run([ROOT / "tools/setup/env-path", "schema"], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("the environment 'schema' is not built: tools/setup/setup schema")
    return pathlib.Path(done.stdout.strip()) / "bin/schemathesis"


def made(argusd, path, body, method="POST"):
    reply = argusd.call(method, path, body)
    assert reply.status in (200, 201, 204), reply
    return reply.json() if reply.body else None


def fill(argusd):
    """Everything that the examples of openapi.json name; argusd chooses the names of the last two."""
    argusd.wait_over(argusd.submit("echo done", submission_id="sft-gsm8k"))
    put_checkpoint(argusd.job_dir("sft-gsm8k") / "checkpoints", 10)
    made(argusd, "/v1/nodes", {"name": "worker1", "host": "127.0.0.1", "port": 1})
    raw, model = argusd.root / "common/raw.jsonl", argusd.root / "common/qwen"
    raw.write_text('{"question": "1 + 1?"}\n')
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "tokenizer.json").write_text("{}")
    header = b'{"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    (model / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    for kind, name, source in (("datasets", "gsm8k", raw), ("models", "qwen", model)):
        made(argusd, f"/v1/{kind}", {"name": name, "source": str(source), "in_place": True, "common": True})
        until(lambda at=f"/v1/{kind}/{name}": argusd.get(at)["state"] == "ready", f"{name} is there")
    made(argusd, "/v1/presets/baseline", {"spec": {"workload": "ray", "entrypoint": "true"}}, "PUT")
    made(argusd, "/v1/projects", {"name": "rlhf"})
    made(argusd, "/v1/secrets/HF_TOKEN", {"value": "none of yours"}, "PUT")
    added(argusd, "verl@0.9.1", tar({"a.py": "1"}), token="admin", common=True)
    rule = {"of": "job", "when": "gpus > 30", "text": "job '{name}' wants {gpus} GPUs"}
    made(argusd, "/v1/alert_rules/large", rule, "PUT")
    argusd.submit("echo held", nnodes=9, n_gpus_per_node=4)
    until(lambda: argusd.get("/v1/alerts")["alerts"], "there is an alert")
    made(argusd, "/v1/silences", {"for": "1h", "names": ["nothing"]})
    token = made(argusd, "/v1/tokens", {"user": "alice", "name": "for the path"})["id"]
    upload = made(argusd, "/v1/uploads", {"name": "x", "bytes": 0})["id"]
    return {"/v1/tokens/{token}": token, "/v1/uploads/{id}": upload}


def settings(api, chosen):
    """Most requests are for what there is: without that nearly all of them end at 404."""
    lines = []
    for path, item in api["paths"].items():
        for method, operation in item.items():
            names = [p for p in operation["parameters"] if p["in"] == "path"]
            assert all(p.get("example") for p in names), f"{path} has a name without an example"
            if not names:
                continue
            prefix = {p["name"]: path[: path.index("}", path.index("{" + p["name"])) + 1] for p in names}
            values = {n["name"]: chosen.get(prefix[n["name"]], n["example"]) for n in names}
            said = ", ".join(f'"path.{name}" = {json.dumps(value)}' for name, value in values.items())
            lines += ["[[operations]]", f"include-name = {json.dumps(f'{method.upper()} {path}')}"]
            lines += [f"parameters = {{ {said} }}", ""]
    return "\n".join(lines)


def run(argusd, home, config, *options):
    (home / "schemathesis.toml").write_text(config)
    argv = [schemathesis(), "--config-file", home / "schemathesis.toml", "run", f"{argusd.url}/v1/openapi.json"]
    argv += ["--header", f"Authorization: Bearer {argusd.tokens['admin']}", "--checks", CHECKS, "--no-color"]
    argv += ["--request-timeout", "90", "--max-failures", "40", "--suppress-health-check", "all", *options]
    env = {**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": os.fspath(home / "hypothesis"), "NO_COLOR": "1"}
    return subprocess.run(argv, capture_output=True, text=True, env=env, cwd=home)


def test_the_api_is_as_it_says(tmp_path):
    more = "alerts: {receivers: {ops: {kind: log}}}"
    with FakeRay() as ray, Argusd(tmp_path, ray.url, more=more) as argusd:
        chosen = fill(argusd)
        config = settings(argusd.get("/v1/openapi.json"), chosen)
        phases = ("--phases", "examples,coverage,fuzzing", "--max-examples", "20", "--workers", "4")
        done = run(argusd, tmp_path, config, *phases)
        assert done.returncode == 0, done.stdout[-12000:] + done.stderr[-2000:]
        tested = re.search(r"(\d+) generated", done.stdout)
        assert tested and int(tested.group(1)) > 1000, done.stdout[-3000:]
