# SPDX-License-Identifier: Apache-2.0
"""Services on real Ray 2.60.0 with real Ray Serve: machines that argusd starts, with its gate in their proxies; an
application of two replicas; a small model behind our engine on the CPU, its next version, the way back; what is killed
comes back; leases that come with the load and go with it; replicas that share a (pretended) GPU."""

import base64
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import threading

import pytest
import stage as staging
from barestage import BareStage
from raybed import BEDS
from rayprocs import titled
from stage import wait_for

from argusd import OVER, needs_argusd

pytestmark = [pytest.mark.ray, pytest.mark.nightly, needs_argusd, pytest.mark.timeout(900)]

HOSTS = {"n1": "h2", "n2": "h3"}
SHARED = "n2"  # the machine with the GPU
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
BENCH = EXAMPLES.parent / "bench"
DOWN_AFTER = 120  # seconds below target_requests until a replica goes: SERVE_DOWN_AFTER_S
# An application that answers once the file is there with whose path it is asked.
HELD = """
import asyncio
import pathlib

from ray import serve


@serve.deployment
class Held:
    async def __call__(self, request):
        gate = pathlib.Path((await request.json())["gate"])
        while not gate.exists():
            await asyncio.sleep(0.1)
        return "let go"


app = Held.bind()
"""


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory):
    kept = pathlib.Path(os.environ.get("ARGUS_EVIDENCE") or tmp_path_factory.mktemp("kept"))
    with staging.open_stage(BareStage, BEDS.bare("2.60.0"), request, tmp_path_factory, kept, None) as s:
        for name, host in HOSTS.items():
            s.add_node(name, host, gpu_count=1 if name == SHARED else 0, cpu_count=6, labels=["shareable"])
        for name in HOSTS:
            s.wait_node(name, "online")
        yield s


def page_of(stage, name):
    return stage.get(f"/v1/services/{name}")


def code_of(stage, module, text):
    """A directory of the shared root with this module."""
    home = stage.root / "common/code" / module
    home.mkdir(parents=True)
    (home / f"{module}.py").write_text(text)
    return str(home)


def leases_of(page, version=None):
    return [r for v in page["versions"] if version in (None, v["n"]) for r in v["replicas"]]


def app_of(page, version, replica):
    """What a replica is called in Ray Serve."""
    return f"{page['name']}-v{version}" + (f"-r{replica['replica']}" if replica["replica"] > 1 else "")


def gone(stage, name):
    stage.argus("service", "rm", name)
    wait_for(lambda: not stage.get("/v1/services")["services"], f"{name} is gone", 180)


def ready(stage, name, version, replicas=1):
    seen = {}

    def look():
        p = seen["last"] = page_of(stage, name)
        return p["current"] == version and not p["wanted"] and p["ready"] == replicas and p

    try:
        return wait_for(look, f"{name} v{version} is ready", 240)
    except AssertionError as e:
        raise AssertionError(f"{e}: {json.dumps(seen['last'])[:6000]} {stage.said()[-2000:]}") from None


def key(stage):
    return (stage.state_dir / "serve.key").read_text()


def ask(stage, page, path, body=None, gate=True, version=None, timeout=60):
    """As argusd's proxy asks: the machine of a replica, its route, the key. (status, text)."""
    n = version or page["current"]
    (replica, *_) = [r for r in leases_of(page, n) if r["state"] in ("READY", "LEAVING")]
    app = app_of(page, n, replica)
    ip = stage.bed.ips[HOSTS[replica["node"]]]
    connection = http.client.HTTPConnection(ip, 8000, timeout=timeout)
    headers = {"Content-Type": "application/json"} | ({"x-argus-key": key(stage)} if gate else {})
    try:
        text = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", f"/s/{app}{path}", text, headers)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def model(stage, tmp_path_factory):
    python = stage.bed.env / "bin/python"
    made = staging.make_tiny(python, tmp_path_factory.mktemp("tiny")) / "model"
    home = stage.root / "common/models/tiny"
    home.mkdir(parents=True)
    for f in made.iterdir():
        (home / f.name).write_bytes(f.read_bytes())
    stage.argus("model", "import", str(home), "--name", "tiny", "--common", "--in-place")
    wait_for(lambda: stage.get("/v1/models/tiny")["state"] == "ready", "the model is registered", 120)
    return "tiny"


def test_an_application_with_two_replicas(stage):
    code = code_of(stage, "translator", (EXAMPLES / "services/translator.py").read_text())
    said = stage.argus("serve", "--config", str(EXAMPLES / "services/translator.yaml"), "--code", code)
    assert said.strip() == "translator"
    page = ready(stage, "translator", 1)
    replies = set()

    def both():
        status, text = ask(stage, page, "/", {"text": "good morning world"})
        assert status == 200, text
        reply = json.loads(text)
        assert (reply["text"], reply["words"]) == ("gut Morgen Welt", 3)
        replies.add(reply["replica"])
        return len(replies) == 2

    wait_for(both, "both replicas answer")
    assert ask(stage, page, "/", {"text": "good"}, gate=False)[0] == 401
    # All of it on the leased machine, none on the head.
    (lease,) = leases_of(page)
    where = {a["node"] for a in stage.cluster("actors") if "ServeReplica" in a["class_name"]}
    assert where == {lease["node"]}
    assert "deployment Translator: 1 x" in stage.argus("service", "logs", "translator")
    gone(stage, "translator")


def chat(stage, page, words="1 + 1 =", **more):
    body = {"model": page["name"], "messages": [{"role": "user", "content": words}], "max_tokens": 8, "temperature": 0}
    status, text = ask(stage, page, "/v1/chat/completions", {**body, **more})
    assert status == 200, text
    return text


def embed(stage, page, given, status=200, **more):
    body = {"model": page["name"], "input": given, **more}
    got, text = ask(stage, page, "/v1/embeddings", body)
    assert got == status, text
    return json.loads(text)


def check_embeddings(stage, page):
    short, long = "1 + 1 =", "1 + 1 = 2, and 2 + 2 = 4, and so on to the end"
    both = embed(stage, page, [short, long])
    alone = embed(stage, page, short)
    assert [d["index"] for d in both["data"]] == [0, 1] and both["model"] == page["name"]
    one, two = (d["embedding"] for d in both["data"])
    assert abs(sum(x * x for x in one) - 1) < 1e-3 and one != two
    near = pytest.approx(alone["data"][0]["embedding"], abs=2e-2)
    assert one == near, "what pads the shorter one counts for nothing"
    n = alone["usage"]["prompt_tokens"]
    assert 0 < n == alone["usage"]["total_tokens"] < both["usage"]["prompt_tokens"]
    packed = base64.b64decode(embed(stage, page, short, encoding_format="base64")["data"][0]["embedding"])
    assert list(struct.unpack(f"<{len(packed) // 4}f", packed)) == near
    assert embed(stage, page, [[1, 2, 3], [4]])["usage"]["prompt_tokens"] == 4  # tokens in the place of texts
    assert embed(stage, page, short, dimensions=len(one))["data"]
    wrong = ["", [], [short, ""], 7, [short, 7], [10**9], [-1], ["x"] * 2049]
    for given in wrong:
        assert embed(stage, page, given, 400)["error"]["param"] == "input", given
    assert embed(stage, page, "1 " * 5000, 400)["error"]["code"] == "context_length_exceeded"
    for more in ({"dimensions": 1}, {"encoding_format": "int8"}):
        assert embed(stage, page, short, 400, **more)["error"]["param"] in more


# Each with how it is made where d is the directory of a model with n tokens, and with its longest text: a T5 has
# relative positions and is held by a batch, a RoBERTa counts from behind its padding.
BERT = "vocab_size=n, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4"
HEADLESS = {
    "Qwen2Model": ("t.AutoModel.from_pretrained(d)", 512),
    "T5EncoderModel": (
        "t.T5EncoderModel(t.T5Config(vocab_size=n, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4))",
        8192,
    ),
    "BertModel": (f"t.BertModel(t.BertConfig({BERT}, max_position_embeddings=256))", 256),
    "RobertaModel": (f"t.RobertaModel(t.RobertaConfig({BERT}, max_position_embeddings=130, pad_token_id=1))", 128),
}


def make_headless(stage, home, architecture):
    shutil.copytree(stage.root / "common/models/tiny", home)
    said = json.loads((home / "tokenizer_config.json").read_text())
    del said["model_max_length"]  # as those of many models: the model alone says how much it takes
    said["tokenizer_class"] = "PreTrainedTokenizerFast"  # of any model
    (home / "tokenizer_config.json").write_text(json.dumps(said))
    made = f"n = len(t.AutoTokenizer.from_pretrained(d)); {HEADLESS[architecture][0]}.save_pretrained(d)"
    program = f"import sys, transformers as t; d = sys.argv[1]; {made}"
    subprocess.run([stage.bed.env / "bin/python", "-c", program, home], check=True, timeout=300)
    assert json.loads((home / "config.json").read_text())["architectures"] == [architecture]


@pytest.mark.parametrize("architecture", HEADLESS)
def test_a_model_without_a_head_has_embeddings_alone(stage, model, architecture):
    name, longest = architecture.lower(), HEADLESS[architecture][1]
    home = stage.root / "common/models" / name
    make_headless(stage, home, architecture)
    stage.argus("model", "import", str(home), "--name", name, "--common", "--in-place")
    wait_for(lambda: stage.get(f"/v1/models/{name}")["state"] == "ready", "the model is registered", 120)
    stage.argus("serve", name)
    page = ready(stage, name, 1)
    check_embeddings(stage, page)
    most = min(longest, 512)  # all that a T5 takes is much for a machine of the test
    assert embed(stage, page, [[5] * most])["usage"]["prompt_tokens"] == most
    refused = embed(stage, page, [[5] * (longest + 1)], 400)["error"]
    assert refused["code"] == "context_length_exceeded" and f" {longest} tokens" in refused["message"]
    status, text = ask(stage, page, "/v1/completions", {"model": name, "prompt": "1"})
    assert (status, json.loads(text)["error"]["code"]) == (400, "no_completions")
    assert json.loads(ask(stage, page, "/v1/models")[1])["data"][0]["id"] == name
    gone(stage, name)


class Load(threading.Thread):
    """Some requests a second to what has the traffic, until it is ended."""

    def __init__(self, stage, name):
        super().__init__(daemon=True)
        self.stage, self.name_of, self.end, self.answers = stage, name, threading.Event(), []

    def run(self):
        while not self.end.is_set():
            try:
                status, _ = ask(self.stage, page_of(self.stage, self.name_of), "/v1/models")
            except Exception as e:
                status = repr(e)
            self.answers.append(status)
            self.end.wait(0.1)  # two cores have a model to load meanwhile

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.join()


def test_a_model_answers_and_changes_under_load(stage, model):
    stage.argus("serve", model, "--name", "tiny")
    page = ready(stage, "tiny", 1)
    reply = json.loads(chat(stage, page))
    assert reply["object"] == "chat.completion" and reply["usage"]["completion_tokens"] > 0
    events = [e[len("data: ") :] for e in chat(stage, page, stream=True).split("\n\n") if e]
    assert events[-1] == "[DONE]" and len(events) > 3
    streamed = "".join(json.loads(e)["choices"][0]["delta"].get("content", "") for e in events[:-1])
    assert streamed == reply["choices"][0]["message"]["content"]  # greedy: the same text
    status, text = ask(stage, page, "/v1/chat/completions", {"model": "other", "messages": []})
    assert status == 404 and json.loads(text)["error"]["code"] == "model_not_found"
    check_embeddings(stage, page)
    with Load(stage, "tiny") as load:
        stage.argus("service", "deploy", "tiny", "--priority", "60")
        ready(stage, "tiny", 2)
        stage.argus("service", "rollback", "tiny")
        assert page_of(stage, "tiny")["current"] == 1  # warm: at once
        stage.argus("service", "scale", "tiny", "2")
        ready(stage, "tiny", 1, replicas=2)
    assert len(load.answers) > 20 and set(load.answers) == {200}, load.answers


def replica_pid(stage, app):
    """(machine of the test, pid) of a replica's process, found as the lease's job finds it."""
    return next(iter(titled(stage.bed, HOSTS.values(), f"ray::ServeReplica:{app}:")), None)


def test_what_is_killed_comes_back(stage, model):
    page = ready(stage, "tiny", 1, replicas=2)
    host, pid = replica_pid(stage, "tiny-v1")
    stage.bed.on(host, "kill", "-9", pid)
    wait_for(lambda: (replica_pid(stage, "tiny-v1") or (0, pid))[1] != pid, "Ray has started it again", 120)
    ready(stage, "tiny", 1, replicas=2)
    jobs = {r["job"] for r in leases_of(page)}
    stage.kill9()
    stage.start()
    again = ready(stage, "tiny", 1, replicas=2)
    assert {r["job"] for r in leases_of(again)} == jobs  # nothing was deployed twice
    assert json.loads(chat(stage, again))["choices"]
    # A machine goes: what was there is leased elsewhere.
    left = leases_of(again, 1)[0]["node"]
    stage.argus("node", "drain", left, "--deadline", "1s", "--then", "restart")
    wait_for(
        lambda: all(r["node"] != left for r in leases_of(page_of(stage, "tiny"))),
        "no replica is on the drained machine",
        240,
    )
    ready(stage, "tiny", 1, replicas=2)
    gone(stage, "tiny")
    replicas = "ray::ServeReplica:tiny-v"
    wait_for(lambda: not titled(stage.bed, HOSTS.values(), replicas), "no replica is left on any machine", 120)


@pytest.mark.parametrize(("kind", "requests"), [("model", 500), ("application", 10_000)])
def test_no_request_is_lost_while_a_service_changes(stage, model, kind, requests):
    """Through argusd, as every client asks: bench/serve_switch. An answer of the application costs little more than
    the way to it, one of the model has two processors to be made on."""
    name = f"switch-{kind}"
    if kind == "model":
        what = [model]
    else:
        what = ["--app", "tinyapp:app", "--code", code_of(stage, "tinyapp", (BENCH / "tinyapp.py").read_text())]
    stage.argus("serve", *what, "--name", name, "--keep", "warm")
    ready(stage, name, 1)
    bench = [sys.executable, str(BENCH / "serve_switch"), name, "--requests", str(requests), "--clients", "4", "--json"]
    done = subprocess.run(bench, env=stage.shell_env(), capture_output=True, text=True, timeout=850)
    assert done.stdout, (done.returncode, done.stderr[-2000:], stage.said()[-2000:])
    told = json.loads(done.stdout)
    stage.keep(f"serve_switch-{kind}.json", told)
    assert (done.returncode, told["failed"], told["why"]) == (0, 0, [])
    phases = told["phases"]
    assert list(phases) == ["before", "deploy", "scale", "scale back", "rollback", "after"]
    assert sum(p["requests"] for p in phases.values()) == told["requests"] >= requests
    assert all(p["requests"] >= requests // 6 and p["p50_ms"] <= p["p99_ms"] for p in phases.values()), phases
    page = page_of(stage, name)
    assert page["current"] == 1 and page["previous"] == 2
    gone(stage, name)


@contextlib.contextmanager
def under_way(stage, name, n, gate):
    """So many requests through argusd; they are answered once the file is there, which it is after the block."""
    headers = {"Authorization": f"Bearer {stage.tokens['admin']}", "Content-Type": "application/json"}
    with contextlib.ExitStack() as stack:
        asked = [stack.enter_context(contextlib.closing(stage.open())) for _ in range(n)]
        try:
            for c in asked:
                c.request("POST", f"/v1/services/{name}/", json.dumps({"gate": str(gate)}), headers)
            yield
        finally:
            gate.touch()
        for c in asked:
            reply = c.getresponse()
            text = reply.read()
            assert reply.status == 200 and b"let go" in text, text


def test_leases_come_with_the_load_and_go_with_it(stage):
    """Autoscaling within its bounds: requests under way bring a second replica, which is a lease first, and no third
    one; the lease goes back when nobody asks."""
    code, gate = code_of(stage, "held", HELD), stage.root / "held.gate"
    bounds = ["--min-replicas", "1", "--max-replicas", "2"]
    stage.argus("serve", "--app", "held:app", "--code", code, "--name", "wide", "--cpus", "2", *bounds)
    (first,) = leases_of(ready(stage, "wide", 1))
    with under_way(stage, "wide", 5, gate):
        page = ready(stage, "wide", 1, replicas=2)
        assert page["replicas"] == 2, "five would be three replicas, for which there is room, but for the bound"
        leases = leases_of(page)
        assert first["job"] in [r["job"] for r in leases], "what serves is not touched"
        for lease in leases:
            job = stage.job(lease["job"])
            assert (job["state"], [n["name"] for n in job["nodes"]]) == ("RUNNING", [lease["node"]])
            host, _ = replica_pid(stage, app_of(page, 1, lease))
            assert host == HOSTS[lease["node"]]

    def is_narrow():
        page = page_of(stage, "wide")
        return len(leases_of(page)) == page["replicas"] == 1 and page

    (kept,) = leases_of(wait_for(is_narrow, "a lease is given back", DOWN_AFTER + 240))
    (back,) = [r for r in leases if r["job"] != first["job"]]
    assert kept["job"] == first["job"] and stage.job(kept["job"])["state"] == "RUNNING"
    wait_for(lambda: stage.job(back["job"])["state"] in OVER, "the lease is over", 120)
    wait_for(lambda: not replica_pid(stage, app_of(page, 1, back)), "its replica's process is gone", 120)
    scaled = [e for e in stage.events() if (e["object"], e["kind"]) == ("service/wide", "service_scaled")]
    assert sorted((e["from"], e["to"]) for e in scaled) == [("1", "2"), ("2", "1")]
    with under_way(stage, "wide", 1, gate):
        pass  # what is left answers
    gone(stage, "wide")


def test_replicas_share_a_gpu(stage, model):
    """Two halves of one GPU answer side by side, a third one waits until one of them goes."""

    def leases(name):
        return [stage.job(r["job"]) for r in leases_of(page_of(stage, name)) if r["job"]]

    halves = ("half-a", "half-b")
    for name in halves:
        stage.argus("serve", model, "--name", name, "--gpus", "0.5")
    for name in halves:
        assert json.loads(chat(stage, ready(stage, name, 1)))["choices"]
    held = [node for name in halves for lease in leases(name) for node in lease["nodes"]]
    assert [(n["name"], n["gpu_ids"]) for n in held] == [(SHARED, [0])] * 2
    gpus = stage.get("/v1/pools")["pools"]
    assert sum(p["gpus"]["used"] for p in gpus) == 1 and sum(p["gpus"]["free"] for p in gpus) == 0, gpus
    stage.argus("serve", model, "--name", "half-c", "--gpus", "0.5")
    waits = wait_for(lambda: next(iter(leases("half-c")), None), "it has its lease")
    assert (waits["state"], waits["nodes"]) == ("QUEUED", []) and waits["reason"]["code"], waits
    stage.argus("service", "rm", "half-a")
    assert json.loads(chat(stage, ready(stage, "half-c", 1)))["choices"]
    for name in ("half-b", "half-c"):
        stage.argus("service", "rm", name)
    wait_for(lambda: not stage.get("/v1/services")["services"], "they are gone", 180)
