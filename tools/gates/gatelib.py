# SPDX-License-Identifier: Apache-2.0
"""gatelib - what every gate shares: which files there are, C without its comments and strings, how to report.

A gate is one executable beside this file. It prints `file:line: sentence` for each finding and exits 0 (clean),
1 (findings), or 77 (skipped, the reason on the last line). GATE_ROOT names another tree to look at than the one
the gate lies in: that is how tools/gates/selftest shows it a bad one.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.environ.get("GATE_ROOT") or os.path.join(HERE, "..", ".."))
LAYERS = ["base", "core", "store", "ray", "ssh", "fsroot", "http", "argusd", "argus", "shepherd"]
SELFTEST = "tools/gates/test/"  # bad on purpose

# What the tools print is read here, so it is plain text in English whatever the environment asks for. Some of them
# colour their output wherever CI is set, terminal or not.
for _name in ("CI", "GITHUB_ACTIONS", "FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "PYTHON_COLORS", "PYTHONWARNINGS"):
    os.environ.pop(_name, None)
os.environ |= {"NO_COLOR": "1", "LC_ALL": "C.UTF-8"}

_findings = []


def find(path, line, sentence):
    _findings.append((path, line, sentence))


def found():
    """Whether anything was found so far."""
    return bool(_findings)


def warn(path, line, sentence):
    print(f"{path}:{line}: warning: {sentence}")


def done():
    """Print what was found, in order, and end with the gate's verdict."""
    for path, line, sentence in sorted(set(_findings)):
        print(f"{path}:{line}: {sentence}")
    sys.exit(1 if _findings else 0)


def skip(reason):
    print(reason)
    sys.exit(77)


def _walk():
    for base, dirs, names in os.walk(ROOT):
        dirs[:] = [d for d in dirs if d not in (".git", "__pycache__")]
        for name in names:
            yield os.path.relpath(os.path.join(base, name), ROOT)


def files(*suffixes, under=""):
    """The tree's own files, tracked or about to be, that end in one of the suffixes; all when there is none."""
    if os.path.exists(os.path.join(ROOT, ".git")):
        out = subprocess.run(
            ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True,
            stdout=subprocess.PIPE,
        ).stdout.decode()
        every = [f for f in out.split("\0") if f]
    else:
        every = list(_walk())
    return sorted(
        f
        for f in set(every)
        if f.startswith(under)
        and not f.startswith((SELFTEST, "subprojects/"))
        and (not suffixes or f.endswith(suffixes))
        and os.path.isfile(os.path.join(ROOT, f))
    )


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def is_script(path, interpreter):
    """True for a file whose first line names the interpreter."""
    try:
        with open(os.path.join(ROOT, path), "rb") as f:
            first = f.readline(100)
    except OSError:
        return False
    return first.startswith(b"#!") and interpreter.encode() in first


def python_files():
    return sorted(set(files(".py")) | {f for f in files() if "." not in os.path.basename(f) and is_script(f, "python")})


def shell_files():
    plain = {f for f in files() if "." not in os.path.basename(f)}
    return sorted(set(files(".sh")) | {f for f in plain if is_script(f, "sh") and not is_script(f, "python")})


_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_of(text, keep_strings=False):
    """C text with comments blanked, and strings too unless kept; every line stays where it is."""

    def blank(m):
        s = m.group(0)
        if s[0] in "\"'":
            return s if keep_strings else s[0] + " " * (len(s) - 2) + s[0]
        return "".join(c if c == "\n" else " " for c in s)

    return _TOKEN.sub(blank, text)


def layer_of(path):
    """('base', True) for src/base/test/foo.c: the layer, and whether it is a unit test; (None, False) outside src/."""
    parts = path.split("/")
    if len(parts) < 3 or parts[0] != "src":
        return None, False
    return parts[1], "test" in parts[2:-1]


def numbered(text):
    return enumerate(text.split("\n"), 1)


def env_python(name="test"):
    """The interpreter of a private environment, or None when tools/setup/setup has not made it."""
    own = os.path.abspath(os.path.join(HERE, "..", "setup"))
    for command in ([os.path.join(own, "env-path"), name], [sys.executable, os.path.join(own, "env.py"), "path", name]):
        try:
            got = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        python = os.path.join(got.stdout.decode().strip(), "bin", "python")
        if os.path.exists(python):
            return python
    return None


def in_env(module):
    """Go on inside the environment that has the module, or skip."""
    try:
        __import__(module)
        return
    except ImportError:
        pass
    python = env_python()
    if python is None or os.environ.get("GATE_IN_ENV"):
        skip(f"skipped: the Python module '{module}' is missing, run ./dev setup")
    os.environ["GATE_IN_ENV"] = "1"
    os.execv(python, [python, os.path.abspath(sys.argv[0]), *sys.argv[1:]])


def build_dirs():
    """Build directories of this tree that have a compilation database, the freshest first."""
    named = os.environ.get("ARGUS_BUILD")
    if named:
        return [os.path.abspath(named)]
    found = [
        os.path.join(ROOT, d)
        for d in os.listdir(ROOT)
        if d.startswith("build") and os.path.exists(os.path.join(ROOT, d, "compile_commands.json"))
    ]
    return sorted(found, key=lambda d: -os.path.getmtime(os.path.join(d, "compile_commands.json")))
