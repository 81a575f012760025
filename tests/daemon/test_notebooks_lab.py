# SPDX-License-Identifier: Apache-2.0
"""A real JupyterLab as a notebook of argusd: a cell run through its door, packages and files that are there next time.

The environment is made by `tools/setup/setup jupyter`."""

import contextlib
import json
import os
import shutil
import subprocess

import pytest
from notebookbed import lab_environment
from test_notebooks import Bed
from test_proxy_jupyter import CELL, PATIENCE

from argusd import needs_argusd, until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [needs_argusd, pytest.mark.nightly]
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup")

# The page's own word that it has a kernel which waits for a cell: the mark of a notebook is idle before it has one.
READY = "#jp-main-statusbar :text('Python 3 (Argus) | Idle')"

# A cell that prints for as long as the test wants, whoever looks.
TALKS = """import os, threading
n = 0
print('begun')
while not os.path.exists('enough'):
    print('line', n)
    n += 1
    threading.Event().wait(0.05)
print('end of', n, 'lines')
"""

# A page that runs a cell and goes away while the cell is busy: it waits at the gate for as long as the test wants.
LEAVES = """
import json, sys, urllib.request
import websocket
from jupyter_client.session import Session

base, mine = sys.argv[1], json.loads(sys.argv[2])

def ask(method, path, body):
    lines = {**mine, "Content-Type": "application/json"}
    request = urllib.request.Request("http://" + base + path, json.dumps(body).encode(), lines, method=method)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read())

CODE = "print('before'); open('gate').read()\\nfor i in range(1000): print('line', i)\\n6 * 7"
cell = {"id": "busy", "cell_type": "code", "source": CODE, "metadata": {}, "outputs": [], "execution_count": None}
content = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
ask("PUT", "/api/contents/left.ipynb", {"type": "notebook", "content": content})
of = {"path": "left.ipynb", "name": "left.ipynb", "type": "notebook", "kernel": {"name": "python3"}}
kernel, session = ask("POST", "/api/sessions", of)["kernel"]["id"], Session()
address = f"ws://{base}/api/kernels/{kernel}/channels?session_id=left"
ws = websocket.create_connection(address, header=mine, timeout=60)
for cell_id, code in (("busy", CODE), ("unsaved", "print('of a cell that was never saved')")):
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False,
               "stop_on_error": True}
    message = session.msg("execute_request", content, metadata={"cellId": cell_id})
    ws.send(json.dumps({**message, "channel": "shell"}, default=str))
while json.loads(ws.recv())["msg_type"] != "stream":
    pass
ws.close()
"""


@contextlib.contextmanager
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: run ./dev setup")
    args = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_api.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=args)
        yield browser
        browser.close()


def opened(browser, bed, asked=()):
    """JupyterLab's page in a browser that knows nothing yet; asked gets the addresses that it asks for."""
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE * 1000)
    if isinstance(asked, list):
        page.on("request", lambda r: asked.append(r.url))
        page.on("websocket", lambda w: asked.append(w.url.replace("ws:", "http:")))
    page.goto(bed.url())
    page.click("button")  # these are alice's notebooks, and that is her
    page.wait_for_url("**/lab**")
    return page


def test_a_cell_runs_and_what_was_made_is_there_again(tmp_path):
    python = str(lab_environment() / "bin/python")
    with Bed(tmp_path) as bed:
        bed.python = python
        job = bed.ready()["job"]
        cookie, to = bed.enter()
        status, headers, page = bed.ask(to, cookie)
        assert status == 200 and "Set-Cookie" not in headers
        config = json.loads(page.decode().partition('id="jupyter-config-data"')[2].partition(">")[2].partition("<")[0])
        assert config["baseUrl"] == "/n/alice/main/" and config["token"] == ""
        assert "@jupyterlab/apputils-extension:announcements" in config["disabledExtensions"]
        script = CELL.replace('{"Authorization": "Bearer good"}', json.dumps({"Cookie": cookie}))
        argv = [python, "-c", script, f"{bed.host}/n/alice/main"]
        got = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
        assert got.returncode == 0, got.stderr
        assert json.loads(got.stdout) == {"printed": 300001, "result": "42", "terminal": True}
        home = bed.argusd.root / "users/alice"
        assert (home / "made.ipynb").exists()
        (overlay,) = (p for p in (home / ".argus").glob("overlay-*") if p.is_dir())
        assert (overlay / "whole").exists()
        kernels = json.loads(bed.ask("/n/alice/main/api/kernelspecs", cookie)[2])["kernelspecs"]
        assert kernels["python3"]["spec"]["argv"][0] == str(overlay / "bin/python"), "what is installed is seen"
        bed.call("POST", "/v1/notebooks/main:stop")
        bed.wait("STOPPED")
        bed.call("POST", "/v1/notebooks", {"name": "main"})
        assert bed.wait("READY")["job"] != job and (home / "made.ipynb").exists()
        bed.gone()


def test_a_page_that_left_a_busy_cell_finds_all_its_output(tmp_path):
    """With no page open, all of it: what it had printed by then, what it printed since, and a cell behind it."""
    python = str(lab_environment() / "bin/python")
    with Bed(tmp_path) as bed:
        bed.python = python
        bed.ready()
        cookie, _ = bed.enter()
        home, base = bed.argusd.root / "users/alice", "/n/alice/main"
        os.mkfifo(home / "gate")
        argv = [python, "-c", LEAVES, f"{bed.host}{base}", json.dumps({"Cookie": cookie})]
        got = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
        assert got.returncode == 0, got.stderr

        def cells():
            try:
                return json.loads((home / "left.ipynb").read_text())["cells"]
            except ValueError:  # it is just being written
                return [{"outputs": []}]

        so_far = until(lambda: cells()[0]["outputs"], "what it printed so far is in the file")
        assert "".join(so_far[0]["text"]) == "before\n"
        (home / "gate").write_text("")
        until(lambda: len(now := cells()) == 2 and now[1]["outputs"], "what ran behind it is there, too")
        opened = json.loads(bed.ask(f"{base}/api/contents/left.ipynb", cookie)[2])["content"]["cells"]
        printed, result = opened[0]["outputs"]
        assert printed["text"] == "before\n" + "".join(f"line {i}\n" for i in range(1000))
        assert result["data"]["text/plain"] == "42" and opened[0]["execution_count"] == 1
        assert opened[1]["outputs"][0]["text"] == "of a cell that was never saved\n"
        bed.gone()


def notebook_of(code):
    """A file with one cell, which names its kernel: nobody is asked which one it is."""
    cell = {"id": "talks", "cell_type": "code", "source": code, "metadata": {}, "outputs": [], "execution_count": None}
    kernel = {"name": "python3", "display_name": "Python 3 (Argus)", "language": "python"}
    return {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


@needs_chromium
def test_a_browser_that_was_closed_finds_all_that_a_cell_printed(tmp_path):
    """It is closed while the cell prints, which goes on, is written now and then, and ends with nobody there."""
    with Bed(tmp_path) as bed, chromium() as browser:
        bed.python = str(lab_environment() / "bin/python")
        bed.ready()
        home = bed.argusd.root / "users/alice"
        at, there = home / "talks.ipynb", f"http://{bed.host}/n/alice/main/lab/tree/talks.ipynb"
        at.write_text(json.dumps(notebook_of(TALKS)))
        page = opened(browser, bed)
        page.goto(there)
        page.wait_for_selector(READY)
        page.click(".jp-Notebook .jp-CodeCell .cm-content")
        page.keyboard.press("Shift+Enter")
        page.wait_for_selector(".jp-OutputArea-output:has-text('line 0')")
        page.context.close()

        def lines():
            try:
                outputs = json.loads(at.read_text())["cells"][0]["outputs"]
            except ValueError:  # it is just being written
                return []
            return "".join(outputs[0]["text"]).splitlines() if outputs else []

        first = until(lines, "what it printed so far is in the file")
        assert first[0] == "begun" and not first[-1].startswith("end of")
        until(lambda: len(lines()) > len(first), "it is written again while it goes on")
        (home / "enough").touch()
        last = until(lambda: (now := lines()) and now[-1].startswith("end of") and now, "its end is in the file")
        n = len(last) - 2
        whole = ["begun", *(f"line {i}" for i in range(n)), f"end of {n} lines"]
        assert last == whole
        page = opened(browser, bed)
        page.goto(there)
        page.wait_for_selector(f".jp-OutputArea-output:has-text('end of {n} lines')")
        assert page.text_content(".jp-OutputArea-output pre").splitlines() == whole
        assert page.locator(".jp-OutputArea-output pre").count() == 1
        page.context.close()
        bed.gone()


@needs_chromium
def test_its_page_works_in_a_browser(tmp_path):
    """A cell of the overlay, by a page that asks nobody else and puts no token into an address; then what was open."""
    with Bed(tmp_path) as bed, chromium() as browser:
        bed.python = str(lab_environment() / "bin/python")
        bed.ready()
        asked = []
        page = opened(browser, bed, asked)
        page.click(".jp-LauncherCard[data-category='Notebook']")
        page.wait_for_selector(READY)
        page.click(".jp-Notebook .cm-content")
        page.keyboard.type("import argus, sys; print(6 * 7, argus.__name__, sys.prefix)")
        page.keyboard.press("Shift+Enter")
        page.wait_for_selector(".jp-OutputArea-output:has-text('42 argus')")
        assert f"{bed.argusd.root}/users/alice/.argus/overlay-" in page.inner_text(".jp-OutputArea-output")
        page.keyboard.press("Control+s")
        page.wait_for_selector(".jp-Dialog")  # its name is asked for, once
        page.keyboard.press("Enter")
        until(lambda: "42 argus" in (bed.argusd.root / "users/alice/Untitled.ipynb").read_text(), "it is saved")
        bed.call("POST", "/v1/notebooks/main:stop")
        bed.wait("STOPPED")
        bed.ready()
        page = opened(browser, bed, asked)
        page.wait_for_selector(".jp-OutputArea-output:has-text('42 argus')")
        here = tuple(f"{scheme}{bed.host}/" for scheme in ("http://", "blob:http://"))
        assert [u for u in asked if not u.startswith((*here, "data:")) or "token=" in u] == []
        bed.gone()
