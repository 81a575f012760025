# SPDX-License-Identifier: Apache-2.0
"""Ways in which a job's command does not start, each for real through argus-shepherd: what it says of them, and the
class and advice that follow. What only a log tells (a shell's own words) is judged by argus diagnose."""

import json
import pathlib
import re
import shutil
import subprocess

import programs
import pytest
from fakeray import FakeRay
from shepherding import Attempt, needs_shepherd

from argusd import Argusd, needs_argusd

pytestmark = needs_shepherd

MINE = "permission_or_path"


def write(path, content, mode=0o755):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(mode)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with one file of each kind that cannot be started."""
    d = tmp_path_factory.mktemp("place")
    write(d / "crlf.sh", b"#!/bin/sh\r\necho hello\r\n")
    write(d / "crlf-env.sh", b"#!/usr/bin/env bash\r\necho hello\r\n")
    write(d / "crlf-body.sh", b"#!/bin/bash\n\r\necho hello\n", 0o755)
    write(d / "crlf-sh", b"echo hello\r\nfalse\r\n")
    write(d / "no-interpreter.sh", "#!/opt/none/bash\necho hello\n")
    write(d / "no-interpreter.py", "#! /usr/bin/python9.9 -u\nprint(1)\n")
    write(d / "no-shebang.py", "import os\nprint(os)\n")
    write(d / "empty-shebang", "#!\necho hello\n")
    write(d / "bom.sh", b"\xef\xbb\xbf#!/bin/sh\necho hello\n")
    write(d / "empty", b"")
    write(d / "foreign", b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x02\x00\xf3\xff" + b"\0" * 100)
    write(d / "torn", b"\x7fELF\x02\x01")
    write(d / "plain.sh", "#!/bin/sh\necho hello\n", 0o644)
    write(d / "src/train.py", "print(1)\n", 0o644)
    write(d / "bin/tool", "echo no first line\n")
    write(d / "quote.sh", "#!/bin/bash\necho 'open\n", 0o755)
    (d / "loop").symlink_to("loop")
    (d / "dangling").symlink_to(d / "nowhere")
    return d


# What the shepherd itself cannot start: argv, more of the launch, its code, and words of its sentence.
REFUSED = {
    "no such program": (["torchrunn"], {}, "child_not_in_path", "'torchrunn' is not in PATH"),
    "a line as a program": (["python train.py"], {}, "child_not_in_path", "'python train.py' is not in PATH"),
    "no such path": (["{d}/none.sh"], {}, "command_missing", "none.sh': No such file or directory"),
    "no such path from here": (["./none.sh"], {"cwd": "{d}"}, "command_missing", "'./none.sh': No such file"),
    "a link to nothing": (["{d}/dangling"], {}, "command_missing", "dangling': No such file"),
    "not executable": (["{d}/plain.sh"], {}, "command_not_executable", "plain.sh': Permission denied"),
    "not executable from here": (["./plain.sh"], {"cwd": "{d}"}, "command_not_executable", "Permission denied"),
    "a directory": (["{d}/src"], {}, "command_is_directory", "src': it is a directory"),
    "a directory from here": (["src/"], {"cwd": "{d}"}, "command_is_directory", "it is a directory"),
    "CR LF": (["{d}/crlf.sh"], {}, "command_crlf", "first line ends in CR LF"),
    "CR LF from here": (["./crlf.sh", "--lr", "1"], {"cwd": "{d}"}, "command_crlf", "CR LF"),
    "CR LF by PATH": (["crlf.sh"], {"env": {"PATH": "/usr/bin:{d}"}}, "command_crlf", "CR LF"),
    "no interpreter": (["{d}/no-interpreter.sh"], {}, "command_no_interpreter", "'/opt/none/bash' of its first line"),
    "no such Python": (["{d}/no-interpreter.py"], {}, "command_no_interpreter", "'/usr/bin/python9.9' of its first"),
    "no first line": (["{d}/no-shebang.py"], {}, "command_no_shebang", "no first line that names its interpreter"),
    "an empty first line": (["{d}/empty-shebang"], {}, "command_no_shebang", "no first line that names"),
    "no first line by PATH": (["tool"], {"env": {"PATH": "{d}/bin"}}, "command_no_shebang", "no first line"),
    "a byte order mark": (["{d}/bom.sh"], {}, "command_bom", "byte order mark"),
    "an empty file": (["{d}/empty"], {}, "command_no_shebang", "no first line"),
    "another machine's": (["{d}/foreign"], {}, "command_foreign", "another kind of machine, or not whole"),
    "a torn program": (["{d}/torn"], {}, "command_foreign", "not whole"),
    "a link to itself": (["{d}/loop"], {}, "command_bad_path", "loop': Too many levels of symbolic links"),
    "a file as a directory": (["{d}/plain.sh/x"], {}, "command_bad_path|command_missing", "plain.sh/x'"),
    "a name too long": (["/" + "x" * 300], {}, "command_bad_path", "File name too long"),
    "an argument too long": (["/bin/echo", "x" * 140000], {}, "command_too_long", "Argument list too long"),
    "no such directory": (["/bin/true"], {"cwd": "{d}/none"}, "child_no_cwd", "working directory '.*/none': No such"),
    "a file as the directory": (["/bin/true"], {"cwd": "{d}/plain.sh"}, "child_no_cwd", "Not a directory"),
    "an empty program": ([""], {}, "child_no_program", "no program to start"),
}
CLASS_OF = {"child_no_program": "config_error", "command_too_long": "config_error"}

# What a shell, or a program that starts programs, says in the log: argv, exit code, class, rule.
SHELLS = {
    "{sh}: no such program": (["{sh}", "-c", "torchrunn train.py"], 127, MINE, "command-not-found"),
    "{sh}: exec of no program": (["{sh}", "-c", "exec torchrunn"], 127, MINE, "command-not-found"),
    "{sh}: no such path": (["{sh}", "-c", "./none.sh"], 127, MINE, "path-of-program"),
    "{sh}: no such script": (["{sh}", "none.sh"], None, MINE, "path-of-program"),
    "{sh}: not executable": (["{sh}", "-c", "./plain.sh"], 126, MINE, "command-not-executable"),
    "{sh}: a directory": (["{sh}", "-c", "./src"], 126, MINE, "command-is-directory|command-not-executable"),
    "{sh}: CR LF": (["{sh}", "-c", "./crlf.sh"], 127, MINE, "command-crlf|command-no-interpreter|path-of-program"),
    "{sh}: CR LF inside": (["{sh}", "./crlf-sh"], None, MINE, "command-crlf"),
    "{sh}: no interpreter": (["{sh}", "-c", "./no-interpreter.sh"], None, MINE,
                             "command-no-interpreter|path-of-program"),
    "{sh}: another machine's": (["{sh}", "-c", "./foreign"], None, MINE,
                                "command-format|shell-syntax|fact-exit-12[67]"),
    "{sh}: no such directory": (["{sh}", "-c", "cd /none/at/all && ls"], None, MINE, "command-directory"),
    "{sh}: an open quote": (["{sh}", "-c", "echo 'open"], 2, "user_code_error", "shell-syntax"),
    "{sh}: an empty name": (["{sh}", "-c", '"" train.py'], None, MINE, "command-not-found|command-not-executable"),
    "{sh}: silent": (["{sh}", "-c", "torchrunn 2>/dev/null"], 127, MINE, "fact-exit-127"),
    "env: no such program": (["env", "torchrunn"], 127, MINE, "command-not-found"),
    "env: CR LF": (["{d}/crlf-env.sh"], 127, MINE, "command-crlf"),
    "env: not executable": (["env", "./plain.sh"], 126, MINE, "command-not-executable"),
    "timeout: no such program": (["timeout", "9", "torchrunn"], 127, MINE, "command-not-found"),
    "nohup: not executable": (["nohup", "./plain.sh"], 126, MINE, "command-not-executable"),
    "python: no such script": (["python3", "none.py"], 2, MINE, "path-of-program"),
    "python: a directory": (["python3", "src"], 1, MINE, "command-is-directory"),
    "python: a script with CR": (["python3", "train.py\r"], 2, MINE, "command-crlf"),
    "python: no such module": (["python3", "-m", "no_such_module"], 1, "import_error", "module-missing"),
}
BY_SHELL = [
    pytest.param(sh, name, id=name.replace("{sh}", sh))
    for name in SHELLS
    for sh in (("dash", "bash", "zsh", "busybox sh", "ksh") if "{sh}" in name else ("",))
]


def filled(value, d):
    if isinstance(value, dict):
        return {k: filled(v, d) for k, v in value.items()}
    return value.replace("{d}", str(d))


def test_there_are_forty_ways():
    assert len(REFUSED) + len(SHELLS) >= 40


@pytest.mark.parametrize("name", REFUSED)
def test_the_shepherd_says_why(tmp_path, place, name):
    argv, more, code, sentence = REFUSED[name]
    with Attempt(tmp_path) as attempt:
        rc, _ = attempt.launch(*[filled(a, place) for a in argv], **filled(more, place)).run()
        end = attempt.exit()
    assert (rc, end["cause"]) == (90, "start_failed")
    assert re.fullmatch(code, end["says"].split("{")[0]), end
    assert re.search(sentence, end["sentence"]), end["sentence"]


@pytest.mark.parametrize("sh,name", BY_SHELL)
def test_a_shell_says_why(tmp_path, place, sh, name):
    argv, code, word, rule = SHELLS[name]
    if sh and not shutil.which(sh.split()[0]):
        pytest.skip(f"there is no {sh} here")
    argv = [x for a in argv for x in ([shutil.which(sh.split()[0]), *sh.split()[1:]] if a == "{sh}" else [a])]
    with Attempt(tmp_path) as attempt:
        rc, _ = attempt.launch(*[filled(a, place) for a in argv], cwd=str(place)).run()
        log = attempt.log
        assert attempt.exit()["cause"] == "exit"
        assert rc and (rc == code or code is None), log.read_text()
        diagnose = [programs.PROGRAMS["argus"], "diagnose", "--log", log, "--exit-code", str(rc), "-o", "json"]
        found = json.loads(subprocess.run(diagnose, capture_output=True, check=True).stdout)
    assert found["class"] == word, log.read_text()
    assert re.fullmatch(rule, found["rule"]), (found["rule"], log.read_text())
    assert found["advice"]


# ---- and what argusd makes of it ----


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("starts"), ray.url) as argusd:
        yield argusd


@needs_argusd
@pytest.mark.parametrize(
    "name,advice",
    [("CR LF", "dos2unix"), ("no such program", "PATH"), ("a directory", "name the file in it")],
)
def test_it_is_the_users_and_nothing_is_done_about_it(w, place, name, advice):
    """Neither is the node avoided, nor the job started again where it restarts after what is the platform's fault."""
    argv, _, _, sentence = REFUSED[name]
    again = {"max": 2, "on": ["infra", "platform", "unknown"], "backoff": "0s"}
    job = w.submit(Argusd.spec([filled(a, place) for a in argv]), restart=again)
    view = w.wait_over(job)
    assert (view["state"], view["attempt"], view["finding"]["class"]) == ("FAILED", 1, MINE)
    assert view["restart"]["avoid"] == []
    assert re.search(sentence, view["reason"]["text"]), view["reason"]
    found = w.get(f"/v1/jobs/{job}/findings")["findings"][0]
    assert advice in found["advice"] and re.search(sentence, found["evidence"][0]["text"]), found
    assert pathlib.Path(w.job_dir(job) / "attempts/2").exists() is False
