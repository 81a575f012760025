# SPDX-License-Identifier: Apache-2.0
"""A real JupyterLab behind the proxy: its pages, a cell that a kernel runs, a terminal, files. Its token is never seen.

The environment is made by `tools/setup/setup jupyter`."""

import json
import os
import re
import subprocess

import pytest
from fakeray import wait_for
from notebookbed import lab_environment
from ports import free_port
from test_proxy import Toy, until, ws_request
from toyhttp import read_until

PATIENCE = 120

# What a notebook's page does: a kernel, a cell, its output; then a terminal. In the environment of JupyterLab.
CELL = """
import json, sys, time, urllib.request
import websocket
from jupyter_client.session import Session

base = sys.argv[1]
mine = {"Authorization": "Bearer good"}

def ask(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    lines = {**mine, "Content-Type": "application/json"}
    request = urllib.request.Request("http://" + base + path, data, lines, method=method)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read() or b"null")

def connect(path):
    return websocket.create_connection("ws://" + base + path, header=mine, timeout=60)

kernel = ask("POST", "/api/kernels", {"name": "python3"})["id"]
ws, session = connect(f"/api/kernels/{kernel}/channels"), Session()
message = session.msg("execute_request", {"code": "print('x' * 300000); 6 * 7", "silent": False, "store_history": True,
                                          "user_expressions": {}, "allow_stdin": False, "stop_on_error": True})
message["channel"] = "shell"
ws.send(json.dumps(message, default=str))
printed, result = 0, None
while True:
    got = json.loads(ws.recv())
    if got["parent_header"].get("msg_id") != message["header"]["msg_id"]:
        continue
    if got["msg_type"] == "stream":
        printed += len(got["content"]["text"])
    if got["msg_type"] == "execute_result":
        result = got["content"]["data"]["text/plain"]
    if got["msg_type"] == "status" and got["content"]["execution_state"] == "idle":
        break
ws.close()
terminal = ask("POST", "/api/terminals")["name"]
ws = connect(f"/terminals/websocket/{terminal}")
ws.send(json.dumps(["stdin", "echo $((40 + 2))-done\\r"]))
text, end = "", time.monotonic() + 60
while "42-done" not in text and time.monotonic() < end:
    kind, *rest = json.loads(ws.recv())
    text += rest[0] if kind == "stdout" else ""
ws.close()
ask("PUT", "/api/contents/made.ipynb", {"type": "notebook", "content": {"cells": [], "metadata": {}, "nbformat": 4,
                                                                       "nbformat_minor": 5}})
ask("DELETE", f"/api/kernels/{kernel}")
print(json.dumps({"printed": printed, "result": result, "terminal": "42-done" in text}))
"""


@pytest.fixture
def lab(tmp_path):
    """JupyterLab at /p/x/ of the toy server."""
    python, port = lab_environment() / "bin/python", free_port()
    toy = Toy("base=/p/x", f"up={port}")
    dirs = {f"JUPYTER_{n}_DIR": str(tmp_path / n.lower()) for n in ("CONFIG", "DATA", "RUNTIME")}
    (tmp_path / "home").mkdir()
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.base_url": "/p/x/",
        "ServerApp.root_dir": tmp_path / "home",
        "ServerApp.allow_remote_access": True,
        "ServerApp.iopub_data_rate_limit": 20000000,
        "LabApp.news_url": None,
        "LabApp.extension_manager": "readonly",
    }
    argv = [python, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    argv += [f"--{k}={v}" for k, v in options.items()]
    own = {**os.environ, **dirs, "JUPYTER_TOKEN": "inner", "IPYTHONDIR": str(tmp_path / "ipython")}
    with open(tmp_path / "lab.log", "wb") as log:
        process = subprocess.Popen([str(a) for a in argv], env=own, stdout=log, stderr=log, cwd=tmp_path)
    try:
        wait_for(lambda: toy.call("GET", "/p/x/api").status == 200, "JupyterLab answers", PATIENCE)
        yield toy, python, tmp_path / "home"
        toy.stop()
    finally:
        toy.process.kill()
        toy.process.wait()
        process.terminate()
        process.wait(PATIENCE)


@pytest.mark.nightly
def test_jupyterlab_works_through_the_proxy(lab):
    toy, python, home = lab
    page = toy.call("GET", "/p/x/lab")
    assert page.status == 200 and "Set-Cookie" not in page.headers
    config = json.loads(re.search(rb'id="jupyter-config-data"[^>]*>(.*?)</script>', page.body, re.S).group(1))
    assert config["baseUrl"] == "/p/x/"
    script = re.search(rb'src="(/p/x/static/lab/[^"]+)"', page.body).group(1).decode()
    assert toy.call("GET", script).status == 200
    moved = toy.call("GET", "/p/x/")
    assert (moved.status, moved.getheader("Location").split("?")[0]) == (302, "/p/x/lab")
    argv = [python, "-c", CELL, f"127.0.0.1:{toy.port}/p/x"]
    got = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    assert got.returncode == 0, got.stderr
    assert json.loads(got.stdout) == {"printed": 300001, "result": "42", "terminal": True}
    assert (home / "made.ipynb").exists()
    assert toy.call("GET", "/p/x/api/status", Authorization="Bearer inner").status == 401  # its own opens nothing
    until(lambda: toy.metric("proxy_open") == 0)


@pytest.mark.nightly
def test_a_closed_page_ends_its_connections(lab):
    toy, _, _ = lab
    made = toy.call("POST", "/p/x/api/kernels", b'{"name":"python3"}', Content_Type="application/json")
    kernel = json.loads(made.body)["id"]
    before = toy.fds()
    for _ in range(5):
        s = toy.socket(ws_request(f"/p/x/api/kernels/{kernel}/channels"))
        assert read_until(s, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
        s.close()
    until(lambda: toy.fds() <= before)

    def connections():
        return json.loads(toy.call("GET", f"/p/x/api/kernels/{kernel}?no_track_activity=1").body)["connections"]

    wait_for(lambda: connections() == 0, "the kernel sees that its page is closed", PATIENCE)
