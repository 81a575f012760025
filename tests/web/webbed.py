# SPDX-License-Identifier: Apache-2.0
"""A world to look at in a browser: a real argusd beside a fake Ray, with jobs in the states that pages have to show,
and one whose every text is hostile. `Chromium` opens its pages."""

import contextlib
import json
import math
import os
import random
import shutil
import sys
import urllib.parse

import broken
from checkpoints import put_checkpoint
from fakeray import FakeRay
from ports import free_port
from snapshots import added, tar

from argusd import Argusd, until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 2 has a total capacity of 95.10 GiB"
HOSTILE_NAME = "<img src=x onerror=alert(1)> \u202egnp.exe \u200b\"'><script>alert(2)</script>"
HOSTILE_LINES = (
    "<script>document.title='owned'</script>\n"
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J\x1b[1;1H cleared\n"
    "\u202eright to left\u202c & &lt;b&gt; <b onclick=alert(3)>bold</b>\n" + "x" * 20000 + "\n"
)
HOSTILE_FILE = "<img src=x onerror=alert(5)> \u202eyp.txt"
# The machines' Python: JupyterLab is not there, so in the place of what serves a notebook it is a page at the port that
# argusd has told. The program itself stays as it is: argusd would put it there again.
PYTHON = """#!PROGRAM
import http.server, json, os, pathlib, sys

if not sys.argv[1].endswith("/argus/lib/argus_notebook.py"):
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<title>a notebook</title>")


port = int(sys.argv[sys.argv.index("--ports") + 1].partition("-")[0])
record = {"attempt": int(os.environ["ARGUS_ATTEMPT"]), "port": port, "seq": 1, "quiet_s": 0, "kernels": 1,
          "terminals": 0, "busy": False}
at = pathlib.Path(sys.argv[1]).resolve().parents[2] / "jobs" / os.environ["ARGUS_JOB_ID"] / "notebook.json"
server = http.server.ThreadingHTTPServer(("0.0.0.0", port), Page)
at.with_name("notebook.json.part").write_text(json.dumps(record))
at.with_name("notebook.json.part").rename(at)
server.serve_forever()
"""
NODES = [
    {"name": "head", "ip": "127.99.0.1", "head": True, "resources": {}},
    *(
        {
            "name": f"gpu-0{i}",
            "ip": f"127.99.0.{i + 1}",
            "resources": {"CPU": 96, "GPU": 8, "worker_node": 100, f"argus_node_gpu-0{i}": 1000},
            "labels": {"argus.node": f"gpu-0{i}"},
        }
        for i in range(1, 5)
    ),
]


def fill(page, field, value):
    page.fill(f"[name={field}]", value)
    page.press(f"[name={field}]", "Tab")


def visible(text):
    """Without control bytes, which no query may have."""
    return "".join(c for c in text if c >= " ")


def ask_again(page):
    """The button of the banner of a lost connection, unless the page has found argusd by itself meanwhile."""
    page.evaluate("document.querySelector('.stale button')?.click()")


class World:
    """Jobs by what they are: ids in `jobs`."""

    def __init__(self, home, full=True, more=""):
        self.stack = contextlib.ExitStack()
        # Services are for Ray >= 2.60; its machines are loopback addresses, so that their proxies can be asked.
        (home / "bin").mkdir()
        (home / "bin/python3").write_text(PYTHON.replace("PROGRAM", sys.executable))
        (home / "bin/python3").chmod(0o755)
        path = ("env", f"PATH={home}/bin:{os.environ['PATH']}")
        self.ray = FakeRay("2.60.0", nodes=NODES, state=home / "ray", wrap=path)
        door, port = free_port(), free_port()
        self.door = f"http://localhost:{door}"  # of notebooks
        own = (
            f"serve: {{port: {free_port()}}}\nports: {{notebook: {port}-{port + 9}}}\n"
            f"notebooks: {{listen: '127.0.0.1:{door}', url: '{self.door}'}}\n"
        )
        self.home, self.more, self.argusd = home, own + more, None
        self.full, self.jobs = full, {}

    def __enter__(self):
        self.stack.enter_context(self.ray)
        self.argusd = self.stack.enter_context(Argusd(self.home, self.ray.url, self.more))
        self.ray.settings(serve_key_file=str(self.argusd.root / "argus/serve/key"))
        if self.full:
            try:
                self.fill()
            except BaseException:
                self.stack.close()
                raise
        return self

    def __exit__(self, *why):
        return self.stack.__exit__(*why)

    @property
    def gate(self):
        return self.argusd.root / "common" / "gate"

    def submit(self, what, text, token="user", **keys):
        self.jobs[what] = self.argusd.submit(text, token=token, **keys)
        return self.jobs[what]

    def holds(self, said=""):
        """A script that goes on until the gate is there."""
        return f'printf "%s" "$SAID"; while [ ! -e {self.gate} ]; do sleep 0.2; done', {"env": {"SAID": said}}

    def steps(self, job, n, seed=1):
        rng = random.Random(seed)
        with open(self.argusd.job_dir(job) / "attempts/1/metrics.jsonl", "a") as f:
            for s in range(1, n + 1):
                x = 1 - math.exp(-s / 90)
                data = {
                    "critic/score/mean": 0.2 + 0.22 * x + rng.gauss(0, 0.012),
                    "actor/kl_loss": 0.001 + 0.013 * x + rng.gauss(0, 0.0008),
                    "actor/entropy": 0.72 - 0.33 * x + rng.gauss(0, 0.01),
                    "response_length/mean": 260 + 390 * x + rng.gauss(0, 12),
                    "actor/perf/max_memory_allocated_gb": 70 + 22 * x + rng.gauss(0, 0.4),
                    "timing_s/step": 38.2 + rng.gauss(0, 1.5),
                    "perf/total_num_tokens": 310000 + rng.gauss(0, 9000),
                }
                if s % 20 == 0:
                    data["val-core/service/win/mean@1"] = 0.3 + 0.18 * x
                f.write(json.dumps({"step": s, "data": data}) + "\n")

    def workers(self, job):
        """What the scouts of two nodes leave: a log of each rank."""
        for rank, node in enumerate(("gpu-01", "gpu-02")):
            log = f"worker-{rank:02}-02000000-1{rank}.out"
            folder = self.argusd.job_dir(job) / "attempts/1/logs/workers" / node
            folder.mkdir(parents=True)
            (folder / log).write_text(f"rank {rank} begins\nNCCL WARN of rank {rank}\n")
            (folder / "ranks.json").write_text(json.dumps({log: {"pid": 10 + rank, "actor": "Trainer", "rank": rank}}))

    def simulation(self, jobs, name=HOSTILE_NAME):
        """The id of one that is over: bursts of jobs of two pools, under all policies."""
        rng, at, rows = random.Random(7), 1.7e9, ["submit_time,duration_s,num_gpus,cluster"]
        for _ in range(jobs):
            at += rng.expovariate(1 / 300) * (rng.random() < 0.5)
            gpus = rng.choice((1, 1, 1, 2, 4, 8, 8, 16, 32))
            rows.append(f"{at:.0f},{rng.lognormvariate(7.5, 1.3):.0f},{gpus},{rng.choice(('h20', '<b>a100</b>'))}")
        query = urllib.parse.urlencode({"name": visible(name), "load": "0.95"})
        body = "\n".join(rows) + "\n"
        reply = self.argusd.call("POST", f"/v1/simulations?{query}", body, token="user", Content_Type="text/csv")
        assert reply.status == 202, reply
        path = f"/v1/simulations/{reply.json()['id']}"
        until(lambda: self.argusd.get(path, token="user")["state"] == "done", "the simulation is done")
        return reply.json()["id"]

    def library(self):
        """What users bring, each text of it as a stranger would write it. `jobs` has the names too."""
        a = self.argusd
        mine = a.root / "users/alice"
        a.call("POST", "/v1/tokens", {"user": "alice"})
        until((mine / "code").is_dir, "alice has her directories")
        rows = [{"data_source": "x", "prompt": HOSTILE_NAME, "reward_model": {"ground_truth": n}} for n in range(30)]
        (mine / "datasets/raw").mkdir()
        (mine / "datasets/raw/train.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        broken.make_model(mine / "models/tiny")
        (mine / "code" / HOSTILE_FILE).write_text(HOSTILE_LINES)
        (mine / "code/rows.jsonl").write_text(json.dumps({HOSTILE_NAME: HOSTILE_NAME}) + "\n")
        lineage = {"job": HOSTILE_NAME, "data": ["sums@1", HOSTILE_NAME], "model": "base@1", "step": 10}
        for what, name, path, more in (
            ("datasets", "sums", "datasets/raw", {}),
            ("models", "tiny", "models/tiny", {"lineage": lineage}),
        ):
            body = {"name": name, "source": str(mine / path), "in_place": True, **more}
            assert a.call("POST", f"/v1/{what}", body, token="user").status == 201
            entry = f"/v1/{what}/{name}"
            until(lambda e=entry: a.get(e, token="user")["state"] == "ready", f"{name} is in the registry")
        added(a, "mine@1", tar({"train.py": "1", "lib/<b>bold.py": "x"}))
        added(a, "mine@2", tar({"train.py": "2", "<script>.py": "x"}))
        preset = {"description": HOSTILE_NAME, "spec": {"workload": "ray", "entrypoint": HOSTILE_NAME}}
        assert a.call("PUT", "/v1/presets/strange", preset, token="user").status == 201
        self.jobs["file"] = urllib.parse.quote(HOSTILE_FILE)

    def registered(self, kind, name, path):
        """Common to all, where it is; kind: datasets or models."""
        a = self.argusd
        body = {"name": name, "source": str(path), "in_place": True, "common": True}
        asked = lambda: a.call("POST", f"/v1/{kind}", body, token="admin")  # noqa: E731
        reply = until(lambda: (r := asked()).status != 503 and r, f"{name} is taken")
        assert reply.status == 201, reply
        until(lambda: a.get(f"/v1/{kind}/{name}")["state"] == "ready", f"{name} is registered")

    def model(self):
        """The registered model 'tiny' alone, without the rest of library()."""
        home = self.argusd.root / "common/models/tiny"
        broken.make_model(home)
        self.registered("models", "tiny", home)

    def service(self, name="answers", **body):
        """A service of the model 'tiny' that is ready."""
        a = self.argusd
        reply = a.call("POST", "/v1/services", {"model": "tiny", "name": name, **body}, token="user")
        assert reply.status == 201, reply
        until(lambda: a.get(f"/v1/services/{name}", token="user")["state"] == "READY", f"{name} is ready")

    def services(self):
        """One that was asked, strangely, and whose next version fails its check; and an application of a job."""
        self.ray.settings(serve_programs={"<b>lens": "/lens"}, serve_sick=["answers-v2"])
        self.service(gpus=1, replicas=2, requests_per_minute=600)
        deploy = {"replicas": 1, "max_ongoing_requests": 9}
        assert self.argusd.call("POST", "/v1/services/answers:deploy", deploy, token="user").status == 201
        question = {"model": "answers", "messages": []}
        for path in ("v1/chat/completions", "v1/chat/completions", "<img/src=x/onerror=alert(6)>"):
            reply = self.argusd.ask("POST", f"/v1/services/answers/{path}", question, "user", {})
            assert reply.status == 200, reply

    def pipeline(self):
        """One whose every text is hostile, and a run of it that is over."""
        word = {"default": HOSTILE_NAME, "description": HOSTILE_NAME}
        job = {"workload": "ray", "entrypoint": ["true", "${{ matrix.x }}"]}
        that = "${{ params.n >= 3 && steps.train.state == 'SUCCEEDED' }}"
        text = {
            "name": "strange", "description": HOSTILE_NAME,
            "params": {"word": word, "n": {"type": "integer", "default": 2}, "loud": {"type": "boolean"}},
            "steps": {
                "train": {"matrix": {"x": [HOSTILE_NAME, 2]}, "with": job},
                "good": {"uses": "check", "with": {"that": that, "else": HOSTILE_NAME}},
                "said": {"with": {"workload": "ray", "entrypoint": ["echo", "${{ params.word }}"]}},
                "last": {"needs": ["good", "said"], "with": {"workload": "ray", "entrypoint": "true"}},
            },
        }  # fmt: skip
        assert self.argusd.call("PUT", "/v1/pipelines/strange", text, token="user").status == 201
        reply = self.argusd.call("POST", "/v1/pipelines/strange:run", {"params": {"loud": True}}, token="user")
        assert reply.status == 201, reply
        run = self.jobs["pipe_run"] = reply.json()["id"]
        until(lambda: self.argusd.get(f"/v1/pipeline-runs/{run}", token="user")["ended_at"], "the pipeline has run")

    def notebook(self, name="main", **body):
        reply = self.argusd.call("POST", "/v1/notebooks", {"name": name, **body}, token="user")
        assert reply.status == 201, reply

    def notebooks(self):
        """One that is ready, and one whose snapshot nobody has."""
        self.notebook(gpus=1)
        self.notebook("broken", snapshot="nosuch@1")
        page = lambda name: self.argusd.get(f"/v1/notebooks/{name}", token="user")  # noqa: E731
        until(lambda: page("main")["state"] == "READY", "the notebook is ready")
        until(lambda: page("broken")["state"] == "FAILED", "the other one has failed")

    def fill(self):
        a = self.argusd
        said = "Total training steps: 500\n" + "".join(
            f"step:{s} - critic/score/mean:{0.2 + s / 1000:.4f} - actor/kl_loss:0.0{s} - response_length:{260 + s}\n"
            for s in range(1, 143)
        )
        script, keys = self.holds(said)
        script = f': > "$ARGUS_ATTEMPT_DIR/metrics.jsonl"; {script}'  # as verl: before a step is printed
        self.submit("running", script, name="客服奖励 grpo 7b", n_gpus_per_node=8, nnodes=2, **keys)
        script, keys = self.holds("loading weights\n")
        self.submit("other", script, token="admin", name="long-context 32k sft", n_gpus_per_node=4, **keys)
        failing = f"echo 'Training Progress: 28%'; for i in 1 2 3; do echo step $i; done; echo '{OOM}' >&2; exit 1"
        self.submit("failed", failing, name="gsm8k grpo 14b", n_gpus_per_node=4)
        opinion = {"cause": HOSTILE_NAME, "advice": HOSTILE_NAME, "patch": {HOSTILE_NAME: HOSTILE_NAME}}
        a.wait_over(self.jobs["failed"])
        assert a.call("POST", f"/v1/jobs/{self.jobs['failed']}/findings", opinion, token="user").status == 201
        self.submit("done", "echo fine", name="mt-bench zh", n_gpus_per_node=1)
        said, keys = self.holds(HOSTILE_LINES)
        self.submit("hostile", said, name=HOSTILE_NAME, n_gpus_per_node=1, **keys)
        for what in ("failed", "done"):
            a.wait_over(self.jobs[what])
        for what in ("running", "other", "hostile"):
            a.wait_state(self.jobs[what], "RUNNING")
        self.steps(self.jobs["running"], 142)
        put_checkpoint(a.job_dir(self.jobs["running"]) / "checkpoints", 120, size=4000)
        a.wait_job(self.jobs["running"], lambda j: j["step"] == 142, "is at its step")
        self.workers(self.jobs["running"])
        self.library()
        self.pipeline()
        self.services()
        self.notebooks()
        self.jobs["simulation"] = self.simulation(4000)
        self.submit("waits", "true", name="代码生成 ppo 32b 长跑", n_gpus_per_node=8, nnodes=4)
        planned = a.call("POST", "/v1/ops/stop_many", {"jobs": [self.jobs["waits"]]}, token="user")
        self.jobs["plan"] = planned.json()["id"]
        self.submit("waits_too", "true", token="admin", name="math-500 grpo seed 2", n_gpus_per_node=8, nnodes=2)
        self.submit("held", "true", name="rollout dump for RM", n_gpus_per_node=2)
        assert a.call("POST", f"/v1/jobs/{self.jobs['held']}:hold", token="user").status == 200
        told = a.call("GET", "/v1/events?kind=held", token="user").json()["events"]
        self.jobs["held_seq"] = told[-1]["seq"]
        self.ray.add_job(submission_id="raysubmit_theirs", status="RUNNING", start_time=1_764_000_000_000)


class Chromium:
    """Debian's browser; `page()` is logged in, and keeps what a page did wrong: errors, requests to others."""

    def __init__(self, playwright, world):
        self.world = world
        # As root, and in a container, the browser's own sandbox cannot be set up: our pages are all it opens.
        args = ["--disable-gpu", "--font-render-hinting=none", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        self.browser = playwright.chromium.launch(executable_path=CHROMIUM, args=args)
        self.pages_kept = {}

    def page(self, token="user", lang="en", theme="light", width=1280, height=800, follows=False):
        """follows: its theme is that of the machine, which may change."""
        a = self.world.argusd
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, locale="zh-CN" if lang == "zh" else "en-GB",
            color_scheme=theme, reduced_motion="reduce", timezone_id="Asia/Shanghai",
        )  # fmt: skip
        context.add_init_script(
            f"localStorage.setItem('argus.lang', '{lang}');"
            f"localStorage.setItem('argus.theme', '{'system' if follows else theme}');"
            "window.alert = (x) => { window.__alerts = (window.__alerts || []).concat(String(x)); };"
        )
        if token:
            login = a.call("POST", "/v1/session", {"token": a.tokens[token]}, token=None)
            name, _, value = login.headers["Set-Cookie"].split(";")[0].partition("=")
            context.add_cookies([{"name": name, "value": value, "url": a.url, "httpOnly": True, "sameSite": "Strict"}])
        page = context.new_page()
        page.wrong = []
        page.on("pageerror", lambda e: page.wrong.append(f"error: {e}"))
        # Other tests make hosts meanwhile, whose interfaces come and go on this machine; the page asks again.
        told = lambda m: m.type == "error" and "ERR_NETWORK_CHANGED" not in m.text  # noqa: E731
        page.on("console", lambda m: told(m) and page.wrong.append(f"console: {m.text}"))
        page.on("request", lambda r: r.url.startswith(a.url) or page.wrong.append(f"asked another host: {r.url}"))
        page.set_default_timeout(int(os.environ.get("ARGUS_WEB_PATIENCE", "60")) * 1000)
        return page

    def open(self, path, wait="main h1, .blank", **how):
        page = self.page(**how)
        page.goto(self.world.argusd.url + path)
        page.wait_for_selector(wait)
        return page

    @contextlib.contextmanager
    def kept(self, is_misled=False):
        """A page whose theme is the machine's, the one of the time before where that went well: it loads an address
        in a quarter of the time of a new one, since the browser has compiled its program. is_misled: the test answers
        in argusd's place; what it refuses may be told later yet, so such pages are for such tests alone."""
        page = self.pages_kept.pop((self.world, is_misled), None) or self.page(follows=True)
        page.wrong.clear()
        yield page
        page.unroute_all()
        self.pages_kept[self.world, is_misled] = page

    def close_pages(self):
        """Those that a test left open, which go on drawing, but for what is kept."""
        kept = [page.context for page in self.pages_kept.values()]
        for context in self.browser.contexts:
            if context not in kept:
                context.close()

    @contextlib.contextmanager
    def of(self, world):
        """Pages of another world meanwhile."""
        before, self.world = self.world, world
        try:
            yield
        finally:
            self.world = before

    def close(self):
        self.browser.close()


if __name__ == "__main__":
    sys.exit("webbed: this is for tests")
