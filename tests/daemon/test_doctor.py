# SPDX-License-Identifier: Apache-2.0
"""`argus doctor`: each service of a file of checks is asked, and what is not well comes with what to do."""

import contextlib
import http.server
import json
import pathlib
import subprocess
import threading

import pytest
import yaml
from ports import free_port
from programs import PROGRAMS

from argusd import needs_argusd

pytestmark = needs_argusd

HEALTH = pathlib.Path(__file__).resolve().parents[2] / "deploy/observe/health.yaml"


class Service(http.server.BaseHTTPRequestHandler):
    """Answers as the name of the path says, and remembers what it was sent."""

    heads = []

    def do_GET(self):
        self.heads.append(self.headers)
        answers = {"/well": (200, b"OK"), "/ill": (503, b"no"), "/odd": (200, b"hello"), "/moved": (302, b"")}
        status, text = answers[self.path]
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/well")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def service():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{web.server_port}"
        web.shutdown()


def doctor(path, *args, code):
    env = {"HOME": str(path.parent), "ARGUS_URL": "http://127.0.0.1:1", "ARGUS_TOKEN": "hidden", "LANG": "C.UTF-8"}
    argv = [PROGRAMS["argus"], "doctor", "--services", path, *args]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done
    return done.stdout + done.stderr


def write(path, checks):
    path.write_text(yaml.safe_dump({"checks": checks}))
    return path


def test_one_line_each_and_what_to_do(tmp_path):
    with service() as url:
        kinds = {"well": "mlflow", "ill": "grafana", "odd": "wandb", "moved": "prometheus"}
        checks = [{"name": n, "url": url, "path": f"/{k}", "status": 200, "body": "OK", "fix": f"start {n}"}
                  for k, n in kinds.items()]  # fmt: skip
        checks.append({"name": "gone", "url": f"http://127.0.0.1:{free_port()}", "path": "/", "fix": "start it"})
        path = write(tmp_path / "health.yaml", checks)
        rows = {r["name"]: r for r in json.loads(doctor(path, "-o", "json", code=6))["services"]}
        assert rows["mlflow"] == {"name": "mlflow", "state": "well", "url": url}
        assert rows["grafana"]["reason"] == "it answers with HTTP status 503"
        assert rows["grafana"]["fix"] == "start grafana"
        assert rows["prometheus"]["reason"] == "it answers with HTTP status 302", "no redirect is followed"
        assert "does not say 'OK'" in rows["wandb"]["reason"] and rows["gone"]["state"] == "away"
        table = doctor(path, "-o", "wide", code=6).splitlines()
        assert [line.split()[:2] for line in table[1:]] == [[r["name"], r["state"]] for r in rows.values()]
        assert all("Authorization" not in head for head in Service.heads), "a token of ours goes nowhere"
        assert "well" in doctor(write(tmp_path / "one.yaml", checks[:1]), code=0)


def test_the_shipped_file_is_one(tmp_path):
    """Whatever of it runs here: a line for each."""
    names = [c["name"] for c in yaml.safe_load(HEALTH.read_text())["checks"]]
    checks = [{**c, "url": f"http://127.0.0.1:{free_port()}"} for c in yaml.safe_load(HEALTH.read_text())["checks"]]
    rows = json.loads(doctor(write(tmp_path / "h.yaml", checks), "-o", "json", code=6))["services"]
    assert [r["name"] for r in rows] == names and all(r["fix"] for r in rows)


@pytest.mark.parametrize("text, says", [("checks: 3", "checks"), ("checks: [{name: x}]", "url"), ("a: [", "h.yaml")])
def test_a_file_that_is_none(tmp_path, text, says):
    (tmp_path / "h.yaml").write_text(text)
    assert says in doctor(tmp_path / "h.yaml", code=2)
