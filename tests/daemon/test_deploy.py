# SPDX-License-Identifier: Apache-2.0
"""What deploy/ holds, as far as it goes without a container engine: compose.yaml by the schema of the Compose
Specification (tests/corpus/compose), the entry's sshd as a real one, the founding scripts by what they run."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import jsonschema
import pytest
import yaml
from fakeray import wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
ENTRY = DEPLOY / "images/entry"
SSHD = "/usr/sbin/sshd"
SCRIPTS = [
    "01_up.sh",
    "02_down.sh",
    "20_start_head.sh",
    "21_start_workers.sh",
    "30_prepare_data_and_model.sh",
    "31_snapshot_verl_code.sh",
]


def mounted(volume):
    """source, target, and "ro" where it is read-only."""
    if isinstance(volume, str):
        return volume.split(":")
    return [volume["source"], volume["target"], *(["ro"] if volume.get("read_only") else [])]


def test_compose_is_what_the_specification_says():
    schema = json.loads((ROOT / "tests/corpus/compose/compose-spec.json").read_text())
    check = jsonschema.Draft7Validator(schema)
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert [e.message for e in check.iter_errors(compose)] == []
    compose["services"]["head"]["volume"] = []
    assert [e.message for e in check.iter_errors(compose)] != []  # it does look


def test_shared_root_of_compose_is_a_directory_of_this_machine():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    for name, service in compose["services"].items():
        (shared,) = [v for v in service["volumes"] if mounted(v)[1] == "/private"]
        assert (shared["type"], shared["source"]) == ("bind", "${SHARED_ROOT:-./shared}"), name


def test_workers_of_compose_write_nothing_of_the_head():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    mounts = {name: [mounted(v) for v in service["volumes"]] for name, service in services.items()}
    for name in ("worker1", "worker2"):
        writable = [m[1] for m in mounts[name] if m[2:] != ["ro"]]
        assert writable == ["/private"], mounts[name]
    entry = ENTRY.read_text()
    config = re.search(r"^config=(\S+)", entry, re.M).group(1)
    assert any(config.startswith(m[1] + "/") for m in mounts["head"] if m[0] == "state")
    assert 'cat >"$config"' in entry and "/etc/argus/argus.yaml" not in entry


# ---- the founding scripts ----


@pytest.fixture
def recorded(tmp_path):
    """Runs a script of deploy/dev where `docker` and `argus` only write down how they were called."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("docker", "argus"):
        text = f'#!/bin/sh\necho "{name} $* [$START_RAY]" >>{tmp_path}/calls\n'
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def run(script, *args, **env):
        (tmp_path / "calls").write_text("")
        env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", **env}
        done = subprocess.run([DEPLOY / "dev" / script, *args], env=env, capture_output=True, text=True, timeout=240)
        return done.returncode, (tmp_path / "calls").read_text().replace(str(DEPLOY), "").splitlines()

    return run


def test_each_founding_script_is_a_wrapper():
    assert sorted(p.name for p in (DEPLOY / "dev").glob("*.sh")) == SCRIPTS
    for name in SCRIPTS:
        assert len((DEPLOY / "dev" / name).read_text().splitlines()) <= 10, name


def test_founding_scripts_in_containers(recorded):
    assert recorded("01_up.sh") == (0, ["docker compose -f compose.yaml up --build --wait [no]"])
    assert recorded("02_down.sh", "--volumes") == (0, ["docker compose -f compose.yaml down --volumes []"])
    code, (call,) = recorded("20_start_head.sh")
    assert code == 0 and call.endswith("compose.yaml exec -T head argus cluster up []")


def test_founding_scripts_on_machines_that_are_there(recorded):
    def calls(script, *args):
        code, lines = recorded(script, *args, ARGUS_LOCAL="1")
        assert code == 0
        return [line.removeprefix("argus ").removesuffix(" []") for line in lines]

    assert calls("20_start_head.sh") == ["cluster up"]
    assert calls("21_start_workers.sh", "mine.yaml") == ["node add --wait --timeout 5m -f mine.yaml"]
    assert calls("30_prepare_data_and_model.sh", "/d", "/m") == [
        "data import /d --name gsm8k-raw --common --wait",
        "data prepare gsm8k-raw --with gsm8k --as gsm8k --common --wait",
        "model import /m --name qwen2.5-0.5b --common --wait",
    ]
    kept = "snapshot add /src/verl --name verl@0.9.1 --common"
    assert calls("31_snapshot_verl_code.sh", "/src/verl", "0.9.1") == [kept]
    assert recorded("31_snapshot_verl_code.sh", ARGUS_LOCAL="1")[0] != 0


def test_what_the_scripts_say_is_what_argus_takes():
    """The words and options are in the manual of each command."""
    from programs import PROGRAMS

    for name in SCRIPTS[2:]:
        for line in (DEPLOY / "dev" / name).read_text().splitlines():
            found = re.search(r"argus\S* (cluster up|node add|data \w+|model import|snapshot add)(.*)", line)
            if not found or line.startswith("#"):
                continue
            words = found.group(1).split()
            manual = subprocess.run([PROGRAMS["argus"], *words, "--help"], capture_output=True, text=True, check=True)
            for option in re.findall(r" (--?[a-z]+)", found.group(2)):
                assert option in manual.stdout, (name, option)


# ---- the entry's sshd ----


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which(SSHD), reason="needs root and sshd")
def test_sshd_of_a_container_takes_one_key_and_no_password(tmp_path):
    """In namespaces of its own, with an /etc that has no host keys and the key of one client."""
    etc = tmp_path / "etc"
    (etc / "argus").mkdir(parents=True)
    (tmp_path / "ssh").mkdir()
    for name in ("mine", "other"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(argv, check=True)
    shutil.copy(tmp_path / "mine.pub", etc / "argus/authorized_keys")
    script = (
        f"set -e; mount -t overlay -o ro,lowerdir={etc}:/etc overlay /etc; mount --bind {tmp_path}/ssh /etc/ssh\n"
        f"ip link set lo up; echo up; exec bash {ENTRY} ssh"
    )
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script]
    with contextlib.ExitStack() as stack, open(tmp_path / "said", "w") as said:
        p = subprocess.Popen(unshare, stdout=subprocess.PIPE, stderr=said, text=True)
        stack.callback(p.wait)
        stack.callback(p.kill)
        assert p.stdout.readline() == "up\n", (tmp_path / "said").read_text()

        def ssh(key, *options):
            words = ["ssh", "-F", "/dev/null", "-i", str(tmp_path / key), "-oIdentitiesOnly=yes", "-oBatchMode=yes"]
            words += ["-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", "-oLogLevel=ERROR", *options]
            argv = ["nsenter", "-t", str(p.pid), "--net", *words, "root@127.0.0.1", "echo in"]
            return subprocess.run(argv, capture_output=True, text=True, timeout=240)

        wait_for(lambda: "Server listening" in (tmp_path / "said").read_text(), "sshd listens")
        assert ssh("mine").stdout == "in\n", (tmp_path / "said").read_text()
        refused = ssh("other")
        assert refused.returncode != 0 and "Permission denied (publickey)" in refused.stderr
        assert len(list((tmp_path / "ssh").glob("ssh_host_*_key"))) >= 2  # made here, by this container
