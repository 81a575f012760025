# SPDX-License-Identifier: Apache-2.0
"""JupyterLab of one notebook, on its lease: the command of a job of workload `notebook`.

    argus_notebook.py --name main --base /n/alice/main --home /private/users/alice --ports 8700-8799

It starts the server on the leased machine's address and on a free port of the range, and writes down how far the start
has come, that port, and what happens in the notebook (jobs/<id>/notebook.json), which argusd reads. The server asks for
the token that argusd gave this job as a secret; argusd puts it before each request, nobody else has it.

Kernels and terminals run in an overlay: a virtual environment in the user's directory that sees the machine's own
packages and keeps what the user installs. Settings, open tabs and history are in the user's directory too, so that the
next start finds them, on whatever machine it is.
"""

import argparse
import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import urllib.request
import venv
from datetime import UTC, datetime

from argus_raylet import raylet_option

LOOK_S = 5
READY_S = 120  # a cold file system needs long for the first start
END_S = 20
CPU_BUSY = 0.03  # of one CPU, by all programs of kernels and terminals together
TOKEN_ENV = "ARGUS_NOTEBOOK_TOKEN"
AGAIN_ENV = "ARGUS_NOTEBOOK_PYTHON"  # set where this program was started anew by another interpreter


def say(text):
    print(f"notebook: {text}", flush=True)


# ---- the machine ----


def own_address():
    """Where argusd reaches this machine: the address by which Ray knows it."""
    return raylet_option("node_ip_address") or "127.0.0.1"


def use_python_with_lab():
    """Starts this program anew by the interpreter of Ray's workers where this one has no JupyterLab."""
    if importlib.util.find_spec("jupyterlab"):
        return
    worker = (raylet_option("python_worker_command") or "").split()
    if worker and AGAIN_ENV not in os.environ:
        os.environ[AGAIN_ENV] = worker[0]
        os.execv(worker[0], [worker[0], __file__, *sys.argv[1:]])
    sys.exit(f"{sys.executable} has no JupyterLab: install it there, or name an interpreter that has it (--python)")


# ---- the user's directory ----


def make_private(path):
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


def make_overlay(home):
    """The user's packages over those of this very environment; another environment has another overlay."""
    environment = f"{sys.prefix}\n{sys.version}"
    at = home / ".argus" / f"overlay-{hashlib.sha256(environment.encode()).hexdigest()[:12]}"
    at.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{at}.lock", "w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)  # two notebooks of a user may start together
        if not (at / "whole").exists():
            has_pip = importlib.util.find_spec("pip") is not None
            venv.EnvBuilder(system_site_packages=True, clear=True, symlinks=True, with_pip=not has_pip).create(at)
            if not has_pip and sys.version_info < (3, 12):
                remove_setuptools(at)
            finish_overlay(at, has_pip)
    return at


def remove_setuptools(at):
    """Before 3.12 Python puts an old setuptools beside pip: it would hide that of the environment, and be frozen as one
    of the user's packages."""
    words = ["-I", "-m", "pip", "--isolated", "uninstall", "--yes", "--quiet", "setuptools"]
    subprocess.run([at / "bin/python", *words], check=True, stdin=subprocess.DEVNULL)


def finish_overlay(at, has_pip):
    # A venv made from a venv sees the packages of the system, not those of the venv: the .pth adds them.
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    seen = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    (at / "lib" / version / "site-packages" / "_environment.pth").write_text("".join(f"{p}\n" for p in seen))
    if has_pip:
        pip = at / "bin/pip"
        pip.write_text(f"#!{at}/bin/python\nimport sys\nfrom pip._internal.cli.main import main\n\nsys.exit(main())\n")
        pip.chmod(0o755)
        shutil.copy2(pip, at / "bin/pip3")
    (at / "whole").touch()


def write_kernel(data, overlay):
    """The kernel named python3 is the overlay's."""
    at = data / "kernels/python3"
    at.mkdir(parents=True, exist_ok=True)
    argv = [str(overlay / "bin/python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3 (Argus)", "language": "python", "metadata": {"debugger": True}}
    (at / "kernel.json").write_text(json.dumps(spec))


STARTUP = """# Written at each start of a notebook: what a cell knows of Argus ("import argus", "%argus").
import importlib.util
import sys

spec = importlib.util.spec_from_file_location("argus", {path!r})
if spec is not None and "argus" not in sys.modules:
    sys.modules["argus"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["argus"])
    sys.modules["argus"].load_ipython_extension(get_ipython())
del importlib, sys, spec
"""


def write_startup(ipython):
    client = pathlib.Path(__file__).resolve().with_name("argus_client.py")
    at = ipython / "profile_default/startup"
    at.mkdir(parents=True, exist_ok=True)
    if client.exists():
        (at / "00-argus.py").write_text(STARTUP.format(path=str(client)))


def prepare(a):
    """Directories, the overlay, and the environment of the server."""
    home, own = pathlib.Path(a.home), pathlib.Path(a.home) / ".argus/notebooks" / a.name
    make_private(pathlib.Path(a.home) / ".argus")
    data, ipython = make_private(own / "data"), make_private(home / ".argus/ipython")
    overlay = make_overlay(home)
    # Which packages 'argus notebook freeze' keeps; argusd reads it (src/fsroot/archive/overlaypack.h).
    (own / "overlay").write_text(f"{overlay.name} python{sys.version_info.major}.{sys.version_info.minor}\n")
    write_kernel(data, overlay)
    write_startup(ipython)
    env = {k: v for k, v in os.environ.items() if k not in (TOKEN_ENV, AGAIN_ENV, "PYTHONHOME")}
    env.update(
        HOME=a.home,
        SHELL="/bin/bash",
        VIRTUAL_ENV=str(overlay),
        PATH=f"{overlay}/bin:{env.get('PATH', '/usr/bin:/bin')}",
        JUPYTER_CONFIG_DIR=str(make_private(own / "config")),
        JUPYTER_DATA_DIR=str(data),
        JUPYTER_PREFER_ENV_PATH="0",  # the kernel of the overlay, and not that of the environment
        JUPYTER_RUNTIME_DIR=tempfile.mkdtemp(prefix="argus-notebook-"),  # sockets: not on a shared file system
        JUPYTERLAB_WORKSPACES_DIR=str(make_private(own / "workspaces")),
        JUPYTERLAB_SETTINGS_DIR=str(make_private(home / ".argus/lab-settings")),
        IPYTHONDIR=str(ipython),
        JUPYTER_TOKEN=os.environ[TOKEN_ENV],
    )
    # Where pip installs from; what the user says in a secret of that name goes before.
    for name, value in (("PIP_INDEX_URL", a.pip_index_url), ("PIP_TRUSTED_HOST", a.pip_trusted_host)):
        if value:
            env.setdefault(name, value)
    return env


# ---- the server ----


def is_free(address, port):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((address, port))
        except OSError:
            return False
    return True


def free_ports(address, ports):
    first, _, last = ports.partition("-")
    return (p for p in range(int(first), int(last or first) + 1) if is_free(address, p))


# `python -m jupyterlab`, but for two things in its page: the token, which its script would put into addresses (it needs
# none, argusd puts it before each request), and the question whether to fetch news from the makers of Jupyter; and for
# outputs of cells whose page is gone, which argus_record.py keeps.
SERVE = """
import importlib.util
import sys

from jupyterlab.labapp import LabApp


def load_record(path):
    spec = importlib.util.spec_from_file_location("argus_record", path)
    sys.modules["argus_record"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if load_record(sys.argv.pop(1)).Connection is not None:
    sys.argv.append("--ServerApp.kernel_websocket_connection_class=argus_record.Connection")
else:
    print("notebook: this JupyterLab is too old: what cells print while no page is open is not kept", flush=True)


def page_of(handler, config):
    without = [*config.get("disabledExtensions", ()), "@jupyterlab/apputils-extension:announcements"]
    return {**config, "token": "", "disabledExtensions": without}


server = LabApp.initialize_server(argv=sys.argv[1:])
server.web_app.settings["page_config_hook"] = page_of
server.start()
"""


def server_words(a, address, port):
    options = {
        "ServerApp.ip": address,
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.base_url": f"{a.base}/",
        "ServerApp.root_dir": a.home,
        "ServerApp.allow_remote_access": True,
        "ServerApp.iopub_data_rate_limit": 20000000,
        "ServerApp.quit_button": False,
        "ContentsManager.allow_hidden": False,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.news_url": None,
        "LabApp.extension_manager": "readonly",
    }
    record = pathlib.Path(__file__).resolve().with_name("argus_record.py")
    words = [sys.executable, "-c", SERVE, str(record), "--no-browser"]
    if os.geteuid() == 0:
        words.append("--allow-root")
    return words + [f"--{k}={v}" for k, v in options.items()]


class Server:
    def __init__(self, a, address, port, env):
        at = f"[{address}]" if ":" in address else address
        self.url, self.token, self.port = f"http://{at}:{port}{a.base}", env["JUPYTER_TOKEN"], port
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        # It ends what it started, and we end it.
        self.process = subprocess.Popen(server_words(a, address, port), env=env, cwd=a.home)

    def ask(self, path):
        """None: it did not answer."""
        lines = {"Authorization": f"token {self.token}"}
        try:
            with self.opener.open(urllib.request.Request(self.url + path, headers=lines), timeout=LOOK_S) as reply:
                return json.loads(reply.read())
        except (OSError, ValueError):
            return None

    def wait_ready(self, leaving):
        end = time.monotonic() + READY_S
        while time.monotonic() < end and self.process.poll() is None and not leaving.is_set():
            if self.ask("/api") is not None:
                return True
            leaving.wait(0.2)
        return False

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return self.process.wait()


# ---- what happens in it ----


def processes():
    """pid -> (parent, CPU seconds, name) of all processes."""
    tick, found = os.sysconf("SC_CLK_TCK"), {}
    for p in pathlib.Path("/proc").iterdir():
        if p.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                name, _, rest = (p / "stat").read_text().partition("(")[2].rpartition(")")
                words = rest.split()
                found[int(p.name)] = (int(words[1]), (int(words[11]) + int(words[12])) / tick, name)
    return found


def below(all_, top):
    """Descendants of a process, without itself."""
    children = {}
    for pid, (parent, _, _) in all_.items():
        children.setdefault(parent, []).append(pid)
    found, todo = [], list(children.get(top, ()))
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo.extend(children.get(pid, ()))
    return found


def age(text):
    """Seconds since a time as Jupyter writes it."""
    try:
        then = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (AttributeError, ValueError):
        return 0.0
    return max(0.0, (datetime.now(UTC) - then).total_seconds())


class Watch:
    """How long nothing has happened. Jupyter's own view is not enough: a silent program in a terminal, a process that a
    cell left behind and a long cell all look idle to it."""

    def __init__(self, server):
        self.server, self.active, self.cpu, self.at = server, time.monotonic(), {}, time.monotonic()
        self.kernels = self.terminals = 0
        self.busy = False

    def programs_work(self):
        now, all_ = time.monotonic(), processes()
        mine = below(all_, self.server.process.pid)
        used = {pid: all_[pid][1] for pid in mine}
        spent = sum(max(0.0, s - self.cpu.get(pid, 0.0)) for pid, s in used.items())
        span, self.cpu, self.at = max(now - self.at, 0.1), used, now
        # A program that a terminal's shell runs counts, however quiet it is.
        top = self.server.process.pid
        shells = {pid for pid in mine if all_[pid][0] == top and all_[pid][2] in ("bash", "sh", "zsh")}
        return spent / span > CPU_BUSY or any(all_[pid][0] in shells for pid in mine)

    def look(self):
        now = time.monotonic()
        kernels = self.server.ask("/api/kernels?no_track_activity=1")
        terminals = self.server.ask("/api/terminals?no_track_activity=1")
        quiet = [now - self.active]
        if self.programs_work():
            quiet.append(0.0)
        if isinstance(kernels, list) and isinstance(terminals, list):
            self.kernels, self.terminals = len(kernels), len(terminals)
            self.busy = any(k.get("execution_state") == "busy" for k in kernels)
            quiet += [0.0] if self.busy else []
            quiet += [age(x.get("last_activity")) for x in kernels + terminals]
        self.active = now - min(quiet)
        return {
            "quiet_s": round(min(quiet), 1),
            "kernels": self.kernels,
            "terminals": self.terminals,
            "busy": self.busy,
        }


def write_record(record):
    root = pathlib.Path(__file__).resolve().parents[2]  # this file is <shared root>/argus/lib/argus_notebook.py
    at = root / "jobs" / os.environ["ARGUS_JOB_ID"] / "notebook.json"
    part = at.with_name(f"{at.name}.part")
    part.write_text(json.dumps(record))
    part.replace(at)


def tell(phase, **more):
    """How far the start has come, or what happens in one that is ready."""
    try:
        write_record({"attempt": int(os.environ.get("ARGUS_ATTEMPT", "1")), "phase": phase, **more})
    except OSError as e:
        say(f"the record cannot be written, trying again: {e}")


def watch(server, leaving):
    seen, seq = Watch(server), 0
    while server.process.poll() is None and not leaving.is_set():
        seq += 1
        tell("ready", port=server.port, seq=seq, **seen.look())
        leaving.wait(LOOK_S)


def run(a):
    leaving = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: leaving.set())
    tell("environment")
    env, address = prepare(a), own_address()
    tell("server")
    try:
        for port in free_ports(address, a.ports):
            server = Server(a, address, port, env)
            if server.wait_ready(leaving):
                say(f"JupyterLab {a.name} is ready on port {port}")
                watch(server, leaving)
                code = server.stop()
                if leaving.is_set():
                    sys.exit(0)
                how = f"signal {-code}" if code < 0 else f"exit status {code}"
                say(f"JupyterLab {a.name} has ended by itself, by {how}")
                sys.exit(code or 1)
            ended = server.process.poll()
            server.stop()
            if leaving.is_set():
                sys.exit(0)
            if ended is None or is_free(address, port):  # nobody took the port: it is the server's own trouble
                sys.exit("JupyterLab did not start (see above)")
        sys.exit(f"no port of {a.ports} is free on {address}: more of them in ports.notebook of argus.yaml")
    finally:
        shutil.rmtree(env["JUPYTER_RUNTIME_DIR"], ignore_errors=True)


def read_words(argv=None):
    ap = argparse.ArgumentParser(prog="argus_notebook")
    for name in ("name", "base", "home", "ports"):
        ap.add_argument(f"--{name}", required=True)
    for name in ("pip-index-url", "pip-trusted-host"):
        ap.add_argument(f"--{name}")
    return ap.parse_args(argv)


def main():
    a = read_words()
    if not os.environ.get(TOKEN_ENV):
        sys.exit("no token: this program is started by argusd, as the command of a notebook's job")
    use_python_with_lab()
    run(a)


if __name__ == "__main__":
    main()
