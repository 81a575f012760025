# SPDX-License-Identifier: Apache-2.0
"""`argus init`: a first server on a bare machine, kept running by its script; nothing that is there is written over."""

import fcntl
import ipaddress
import json
import os
import re
import signal
import socket
import stat
import struct
import subprocess
import urllib.request

import pytest
import yaml
from ports import free_port
from programs import PROGRAMS

from argusd import needs_argusd, until

pytestmark = needs_argusd


class Place:
    """Paths of a server that is not there yet."""

    def __init__(self, home):
        self.home, self.listen = home, f"127.0.0.1:{free_port()}"
        self.config, self.token_file, self.script = home / "argus.yaml", home / "admin.token", home / "argusd-run"
        self.flags = ["--shared-root", home / "shared", "--state-dir", home / "state", "--listen", self.listen,
                      "--config", self.config, "--keeper", "script"]  # fmt: skip
        (home / "shared").mkdir()

    def init(self, *args, lang="C.UTF-8", **how):
        env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LC_ALL": lang}
        argv = [PROGRAMS["argus"], "init", *args]
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
        return subprocess.run(argv, env=env, text=True, timeout=120, **how)

    def whoami(self):
        request = urllib.request.Request(f"http://{self.listen}/v1/whoami")
        request.add_header("Authorization", f"Bearer {self.token_file.read_text().strip()}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def files(self):
        return {p.name: p.read_bytes() for p in self.home.iterdir() if p.is_file()}


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def kept(script, log):
    with open(log, "ab") as out:
        return subprocess.Popen([script], stdin=subprocess.DEVNULL, stdout=out, stderr=out)


def child_of(pid):
    """The argusd that the script started; None while there is none."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        children = f.read().split()
    for child in children:
        with open(f"/proc/{child}/cmdline") as f:
            if "--config" in f.read().split("\0"):
                return int(child)
    return None


def test_what_it_makes(place):
    done = place.init(*place.flags)
    assert done.returncode == 0, done
    token = done.stdout.strip()
    assert re.fullmatch(r"\S{20,}", token) and place.token_file.read_text() == f"{token}\n"
    assert stat.S_IMODE(place.token_file.stat().st_mode) == 0o600
    assert token not in done.stderr and str(place.script) in done.stderr
    text = place.config.read_text()
    assert f"shared_root: {place.home}/shared\n" in text and f"state_dir: {place.home}/state\n" in text
    assert f"listen: {place.listen}\n" in text
    argv = [PROGRAMS["argusd"], "--check", "--config", place.config]
    assert subprocess.run(argv, timeout=120).returncode == 0


def interface_networks():
    """The networks of IPv4 that the interfaces of this machine are in, without loopback and a link's own."""
    found = set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _, name in socket.if_nameindex():
            asked = struct.pack("256s", name.encode()[:15])
            try:  # SIOCGIFFLAGS, SIOCGIFADDR, SIOCGIFNETMASK
                [flags] = struct.unpack("H", fcntl.ioctl(s, 0x8913, asked)[16:18])
                address, mask = (socket.inet_ntoa(fcntl.ioctl(s, call, asked)[20:24]) for call in (0x8915, 0x891B))
            except OSError:  # it has no such address
                continue
            net = ipaddress.ip_network(f"{address}/{mask}", strict=False)
            if flags & 0x41 == 0x41 and not net.is_loopback and not net.is_link_local:  # IFF_UP, IFF_RUNNING
                found.add(str(net))
    return found


@pytest.mark.parametrize("ray", ["http://127.0.0.1:8265", "http://192.0.2.1:8265"])
def test_figures_of_nodes_nearby_need_no_further_key(place, ray):
    """The networks of this machine are written as ray.networks; loopback alone where there is nothing else."""
    assert place.init(*place.flags, "--ray", ray).returncode == 0
    text = place.config.read_text()
    written = yaml.safe_load(text)["ray"].get("networks", [])
    mine = interface_networks()
    assert mine <= set(written)
    nets = [ipaddress.ip_network(n) for n in written]
    assert not [n for n in nets if n.is_link_local or not n.prefixlen]
    has_loopback = "127.0.0.0/8" in written
    assert has_loopback == (written == ["127.0.0.0/8"]) and (not has_loopback or ray == "http://127.0.0.1:8265")
    assert ("joined Ray by themselves" in text) == bool(written)
    argv = [PROGRAMS["argusd"], "--check", "--config", place.config]
    assert subprocess.run(argv, timeout=120).returncode == 0


def answers(place):
    """None while nobody does."""
    try:
        return place.whoami()
    except OSError:
        return None


def test_its_script_keeps_argusd_running(place):
    assert place.init(*place.flags).returncode == 0
    log = place.home / "log"
    script = kept(place.script, log)
    try:
        until(lambda: answers(place), "argusd answers")
        assert place.whoami()["role"] == "admin"
        first = child_of(script.pid)
        os.kill(first, signal.SIGKILL)
        until(lambda: child_of(script.pid) not in (None, first), "it is started again")
        until(lambda: answers(place), "argusd answers again")
        last = child_of(script.pid)
    finally:
        script.terminate()
        code = script.wait(120)
    assert code == 0 and "is started again" in log.read_text()
    assert not os.path.exists(f"/proc/{last}"), "it waits for argusd's end"


def test_script_ends_where_the_configuration_is_bad(place):
    assert place.init(*place.flags).returncode == 0
    place.config.write_text("no_such_key: 1\n")
    log = place.home / "log"
    assert kept(place.script, log).wait(120) == 2
    assert "no_such_key" in log.read_text()


@pytest.mark.parametrize("there", ["argus.yaml", "admin.token", "argusd-run"])
def test_nothing_is_written_over(place, there):
    (place.home / there).write_text("of before\n")
    before = place.files()
    done = place.init(*place.flags)
    assert done.returncode == 5 and there in done.stderr and "nothing was changed" in done.stderr
    assert place.files() == before and not (place.home / "state").exists() and not done.stdout


def test_second_time_is_refused_in_chinese(place):
    assert place.init(*place.flags).returncode == 0
    before = place.files()
    done = place.init(*place.flags, lang="zh_CN.UTF-8")
    assert done.returncode == 5 and "已存在" in done.stderr and place.files() == before


def test_without_a_terminal_it_does_not_ask(place):
    done = place.init("--config", place.config)
    assert done.returncode == 2 and "--shared-root" in done.stderr and place.files() == {}


@pytest.mark.parametrize("root", ["shared", "/a b", "/a;b", "/a\nb: c"])
def test_paths_that_mean_more_are_refused(place, root):
    done = place.init(*place.flags[2:], "--shared-root", root)
    assert done.returncode == 2 and place.files() == {}


def test_at_a_terminal_it_asks_what_is_not_given(place):
    leader, follower = os.openpty()
    os.write(leader, f"{place.home}/shared\n{place.home}/state\n\n".encode())
    done = place.init("--config", place.config, "--keeper", "none", stdin=follower)
    os.close(leader)
    os.close(follower)
    assert done.returncode == 0, done
    assert "[127.0.0.1:8080]" in done.stderr and "argusd is started by you" in done.stderr
    assert "listen: 127.0.0.1:8080\n" in place.config.read_text() and not place.script.exists()


def test_what_argusd_refuses_is_said(place):
    place.flags[place.flags.index("--listen") + 1] = "nowhere"
    done = place.init(*place.flags)
    assert done.returncode == 5 and "listen" in done.stderr
    assert place.files() == {}, "so that the next time finds nothing in its way"


def test_unit_names_this_argusd(place):
    done = place.init("--print-unit", "--config", "/srv/argus.yaml")
    assert done.returncode == 0
    assert f"ExecStart={PROGRAMS['argusd'].resolve()} --config /srv/argus.yaml\n" in done.stdout
    assert place.files() == {}
