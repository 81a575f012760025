# SPDX-License-Identifier: Apache-2.0
"""Our calls through the real OpenSSH client to a real sshd: what arrives there, how connections are shared, and
each way in which one fails."""

import os
import pathlib
import signal
import subprocess

import pytest
from fakeray import wait_for

pytestmark = pytest.mark.ray


def fingerprint(path):
    return subprocess.run(["ssh-keygen", "-lf", path], capture_output=True, text=True, check=True).stdout.split()[1]


def log_of(bed, host):
    return (pathlib.Path(bed.dir) / "hosts" / host / "sshd.log").read_text()


def test_every_byte_of_an_argument(tool):
    words = ["", "two words", "it's", '"$HOME" `id` \\ * ?', "\n\n", "\x01\x7f\xe9".encode().decode(), "-n", "é"]
    got = tool()("run", 'for w; do printf "%s|" "$w"; done; exit 7', *words)
    assert (got["trouble"], got["status"]) == ("ok", 7)
    assert got["out"] == "".join(w + "|" for w in words)


def test_login_noise_is_not_output(bed, tool):
    """A .bashrc that prints is read by Debian's bash for every command that sshd starts."""
    h = tool()
    folder = pathlib.Path(bed.dir) / "hosts/h2/noisy-home"
    folder.mkdir()
    (folder / ".bashrc").write_text("echo 'Welcome to this machine'; echo 'no new line at its end' >&2; printf more")
    bed.on("h2", "mount", "--bind", str(folder), str(pathlib.Path.home()))
    try:
        got = h("run", "echo word")
        assert (got["trouble"], got["out"]) == ("ok", "word\n")
    finally:
        bed.on("h2", "umount", str(pathlib.Path.home()))


def test_connection_is_shared_and_closed(bed, tool):
    h = tool()
    before = log_of(bed, "h2").count("Accepted publickey")
    for _ in range(3):
        assert h("run", "true")["trouble"] == "ok"
    assert log_of(bed, "h2").count("Accepted publickey") == before + 1
    h.text("close")
    assert h("run", "true")["trouble"] == "ok"
    assert log_of(bed, "h2").count("Accepted publickey") == before + 2


def test_many_at_once(tool):
    h = tool()
    running = [h.begin("run", 'echo "$1"', i) for i in range(20)]
    assert [h.finish(p)["out"] for p in running] == [f"{i}\n" for i in range(20)]


def test_key_is_pinned_at_first_contact(bed, tool):
    h = tool()
    assert h.text("key") == ""
    assert h("run", "true")["trouble"] == "ok"
    assert h.text("key") == fingerprint(pathlib.Path(bed.dir) / "hostkey.pub")


@pytest.fixture
def other_host_key(bed):
    """h2 gets a key of the same kind, or of another kind, as a machine that was made anew has."""

    def change(kind):
        key = pathlib.Path(bed.dir) / f"other-{kind}"
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", key], check=True)
        config = pathlib.Path(bed.dir) / "hosts/h2/sshd_config"
        config.write_text(config.read_text().replace(f"HostKey {bed.dir}/hostkey", f"HostKey {key}"))
        bed.verb("kill-sshd", "h2")
        bed.on("h2", "/usr/sbin/sshd", "-f", str(config), "-E", str(config.parent / "sshd.log"))
        return fingerprint(key)

    yield change
    bed.verb("kill-sshd", "h2")
    bed.verb("start-sshd", "h2")


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa"])
def test_changed_host_key(tool, other_host_key, kind):
    h = tool()
    h("run", "true")
    pinned = h.text("key")
    h.text("close")
    shown = other_host_key(kind)
    got = h("run", "true")
    assert got["trouble"] == "host_key_changed"
    assert pinned in got["text"]
    assert kind != "ed25519" or shown in got["text"]
    assert "argus node check h2 --accept-key" in got["fix"]
    assert h.text("key") == pinned
    h.text("forget")
    assert h("run", "true")["trouble"] == "ok"
    assert h.text("key") == shown


def test_key_is_refused(tool, tmp_path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    got = tool(identity_file=tmp_path / "other")("run", "true")
    assert got["trouble"] == "ssh_refused"
    assert "Permission denied (publickey" in got["text"]
    assert "authorized_keys" in got["fix"]
    got = tool(identity_file=tmp_path / "none")("run", "true")
    assert got["trouble"] == "ssh_refused"


def test_nobody_listens(bed, tool):
    got = tool(port=1)("run", "true")
    assert got["trouble"] == "ssh_unreachable"
    assert "Connection refused" in got["text"]
    got = tool(host="no-such-host.invalid")("run", "true")
    assert got["trouble"] == "ssh_unreachable"


def test_host_is_cut_off(bed, tool):
    h = tool()
    h("run", "true")  # a connection is there, and hangs from now on
    bed.verb("cut", "h2")
    try:
        assert h("run", "true", limit=2000)["trouble"] == "ssh_timeout"
        assert h("run", "true")["trouble"] == "ssh_unreachable"  # a new one is not made either
    finally:
        bed.verb("heal", "h2")
    wait_for(lambda: h("run", "true")["trouble"] == "ok", "h2 answers again")


def test_sshd_is_gone(bed, tool):
    h = tool()
    h("run", "true")
    bed.verb("kill-sshd", "h2")
    try:
        assert h("run", "true")["trouble"] == "ssh_unreachable"
    finally:
        bed.verb("start-sshd", "h2")
    wait_for(lambda: h("run", "true")["trouble"] == "ok", "h2 answers again")


def test_connection_breaks_in_the_middle(bed, tool):
    h = tool()
    running = h.begin("run", "echo first; touch \"$1\"; sleep 600", pathlib.Path(bed.dir) / "begun")
    wait_for((pathlib.Path(bed.dir) / "begun").exists, "the script runs")
    assert h("run", "true")["trouble"] == "ok"  # by the same connection: its first word is here, too
    bed.verb("kill-sshd", "h2")
    try:
        got = h.finish(running)
    finally:
        bed.verb("start-sshd", "h2")
    assert got["trouble"] == "ssh_unreachable"
    assert "broke" in got["text"]
    assert got["out"] == "first\n"


def test_what_hangs_is_given_up(tool):
    h = tool()
    assert h("run", "true")["trouble"] == "ok"  # a connection is there
    got = h("run", "echo begun; sleep 600", limit=10000)
    assert (got["trouble"], got["out"]) == ("ssh_timeout", "begun\n")
    assert "did not finish" in got["text"]
    assert h("run", "true")["trouble"] == "ok"


def test_no_client(tool, tmp_path):
    h = tool()
    env = {"PATH": str(tmp_path)}
    done = subprocess.run(h.argv("run", "true"), env=env, capture_output=True, text=True, timeout=240)
    assert '"trouble":"no_ssh_client"' in done.stdout


def test_jump_host(bed, tool):
    """h3 hears only from h1; the key of both is pinned."""
    h = tool("h3", proxy_jump=f"root@{bed.ips['h1']}")
    got = h("run", 'echo "$SSH_CONNECTION"')
    assert got["trouble"] == "ok", got
    assert got["out"].split()[0] == bed.ips["h1"]
    assert f"{bed.ips['h1']} ssh-ed25519" in h.known_hosts.read_text()
    assert tool("h3", proxy_jump=f"root@{bed.ips['h1']}:1", name="x")("run", "true")["trouble"] == "ssh_unreachable"


def test_configuration_of_the_operator(bed, tool):
    """A name and a ProxyJump of ssh_config."""
    config = pathlib.Path(bed.dir) / "own_config"
    config.write_text(
        f"Host gpu-box\n  HostName {bed.ips['h3']}\n  User root\n  IdentityFile {bed.dir}/id\n  ProxyJump h1\n"
        f"Host h1\n  HostName {bed.ips['h1']}\n  User root\n  IdentityFile {bed.dir}/id\n"
        f"  UserKnownHostsFile {bed.dir}/known_hosts\n  BatchMode yes\n"
    )
    h = tool("h3", host="gpu-box", port=None, identity_file=None, config_file=config)
    got = h("run", 'echo "$SSH_CONNECTION"')
    assert got["trouble"] == "ok", got
    assert got["out"].split()[0] == bed.ips["h1"]


def test_killed_caller_leaves_no_client(bed, tool):
    h = tool()
    mark = f"{os.getpid()}-left"
    running = h.begin("run", 'echo "$1"; sleep 600', mark)
    ssh = wait_for(lambda: children(running.pid), "ssh runs")
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    wait_for(lambda: not any(pathlib.Path(f"/proc/{p}").exists() for p in ssh), "its ssh is gone")


def children(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
