# SPDX-License-Identifier: Apache-2.0
"""The bed's hosts: network namespaces on a switch of their own, or loopback addresses.

The switch is a bridge in a namespace of its own, so that no packet filter of this machine stands between the
hosts. One pair of virtual cables leads from it to this machine, which has the address .254: argusd, a browser and
curl run here as usual and reach every host.
"""

import json
import os
import random
import resource
import subprocess
import sys
import time

import bedlib
import procs

HERE = os.path.dirname(os.path.abspath(__file__))
OPEN_FILES = 65536

SSHD_CONFIG = """ListenAddress {ip}
HostKey {dir}/hostkey
PidFile /run/sshd.pid
AuthorizedKeysFile {dir}/id.pub
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
MaxStartups 200
MaxSessions 200
Subsystem sftp internal-sftp
"""


def raise_limits():
    """Ray opens a file for each of many sockets; every process of a host inherits this."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    want = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (want, hard))


def run(argv, **kwargs):
    r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs)
    if r.returncode != 0:
        bedlib.fail(f"'{' '.join(argv)}' failed: {r.stdout.strip()}")
    return r.stdout


def spawn(argv, log, env=None):
    with open(log, "ab") as out:
        p = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=env,
            start_new_session=True,
            preexec_fn=raise_limits,
        )
    return procs.mark(p.pid)


def wait_for(what, ready, who, log, seconds=20):
    end = time.monotonic() + seconds
    while not ready():
        if not procs.alive(who):
            bedlib.complain(f"{what}: its process ended at once", log)
        if time.monotonic() > end:
            bedlib.complain(f"{what}: not there after {seconds} s", log)
        time.sleep(0.02)


def start_hosts(bed):
    if bed["mode"] == "netns":
        start_switch(bed)
        make_keys(bed)
        for i, h in enumerate(bed["hosts"], 1):
            start_namespace_host(bed, h, f"{bed['subnet']}.{i}")
        for h in bed["hosts"]:
            start_sshd(bed, h)
    else:
        subnet = free_loopback()
        bed["ctl_ip"] = "127.0.0.1"
        for i, h in enumerate(bed["hosts"], 1):
            h["ip"] = f"{subnet}.{i}"
    bed["head_ip"] = bed["hosts"][0]["ip"]
    bedlib.save(bed)
    bedlib.say(bed, f"{len(bed['hosts'])} hosts ({bed['mode']}): {bed['hosts'][0]['ip']} ... {bed['hosts'][-1]['ip']}")


# ---- loopback ----------------------------------------------------------------------------------------------------


def listening():
    """(address as the kernel writes it, port) of every listening TCP socket."""
    out = set()
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(path) as f:
                rows = f.readlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == "0A":
                address, port = fields[1].split(":")
                out.add((address, int(port, 16)))
    return out


def free_loopback():
    """A /24 of 127/8 in which nobody listens. Chosen by chance, so that beds which start together rarely meet."""
    used = {a[:6] for a, _ in listening() if len(a) == 8 and a.endswith("7F")}
    while True:
        x, y = random.randrange(10, 250), random.randrange(1, 255)
        if not any(a.endswith(f"{y:02X}{x:02X}") for a in used):
            return f"127.{x}.{y}"


def free_ports(count):
    """The first of so many free ports in a row, below the range from which the kernel gives ports out."""
    used = {port for _, port in listening()}
    while True:
        base = random.randrange(20000, 31000)
        if not any(base <= port < base + count for port in used):
            return base


# ---- namespaces --------------------------------------------------------------------------------------------------


def own_namespace(who):
    try:
        return os.readlink(f"/proc/{who['pid']}/ns/net") != os.readlink("/proc/self/ns/net")
    except OSError:
        return False


def in_net(who, *argv):
    return run(["nsenter", "-t", str(who["pid"]), "--net", *argv])


def start_switch(bed):
    log = os.path.join(bed["dir"], "switch.log")
    bed["switch"] = spawn(["unshare", "--net", "sleep", "infinity"], log)
    bedlib.save(bed)
    wait_for("the switch", lambda: own_namespace(bed["switch"]), bed["switch"], log)
    in_net(bed["switch"], "ip", "link", "add", "br0", "type", "bridge")
    in_net(bed["switch"], "ip", "link", "set", "br0", "up")
    claim_subnet(bed)
    in_net(bed["switch"], "ip", "link", "set", "ctl", "master", "br0", "up")


def claim_subnet(bed):
    """The name of the cable end on this machine is the claim: the kernel refuses a second one."""
    routes = run(["ip", "route", "show", "table", "all"])
    for x in random.sample(range(1, 255), 254):
        if f"10.99.{x}." in routes:
            continue
        cable = ["ip", "link", "add", f"agbed{x}", "type", "veth", "peer", "name", "ctl", "netns"]
        if subprocess.run(cable + [str(bed["switch"]["pid"])], stderr=subprocess.DEVNULL).returncode == 0:
            bed["subnet"], bed["cable"] = f"10.99.{x}", f"agbed{x}"
            bed["ctl_ip"] = f"10.99.{x}.254"
            run(["ip", "addr", "add", bed["ctl_ip"] + "/24", "dev", bed["cable"]])
            run(["ip", "link", "set", bed["cable"], "up"])
            bedlib.save(bed)
            return
    bedlib.fail(
        "cannot make a network cable: every 10.99.x.0/24 is in use, or this container may not add interfaces "
        "(use --mode loopback)"
    )


def make_keys(bed):
    for name in ("id", "hostkey"):
        path = os.path.join(bed["dir"], name)
        if not os.path.exists(path):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "argus-bed", "-f", path])
    with open(os.path.join(bed["dir"], "hostkey.pub")) as f:
        key = " ".join(f.read().split()[:2])
    names = [(h["name"], f"{bed['subnet']}.{i}") for i, h in enumerate(bed["hosts"], 1)]
    files = {
        "known_hosts": "".join(f"{ip} {key}\n" for _, ip in names),
        "etc_hosts": "127.0.0.1 localhost\n" + "".join(f"{ip} {n}\n" for n, ip in [*names, ("ctl", bed["ctl_ip"])]),
        "ssh_config": "".join(f"Host {n} {ip}\n  HostName {ip}\n" for n, ip in names)
        + f"Host *\n  User root\n  IdentityFile {bed['dir']}/id\n  IdentitiesOnly yes\n  BatchMode yes\n"
        + f"  UserKnownHostsFile {bed['dir']}/known_hosts\n  StrictHostKeyChecking yes\n  ConnectTimeout 5\n",
    }
    for name, text in files.items():
        with open(os.path.join(bed["dir"], name), "w") as f:
            f.write(text)
    bed["ssh_config"] = os.path.join(bed["dir"], "ssh_config")


def start_namespace_host(bed, h, ip):
    conf = {
        "name": h["name"],
        "tmp": bedlib.host_dir(bed, h, "ray"),
        "ready": bedlib.host_dir(bed, h, "ready"),
        "hosts_file": os.path.join(bed["dir"], "etc_hosts"),
    }
    os.makedirs(conf["tmp"], exist_ok=True)
    conf_path, log = bedlib.host_dir(bed, h, "keeper.json"), bedlib.host_dir(bed, h, "keeper.log")
    with open(conf_path, "w") as f:
        json.dump(conf, f)
    flags = ["--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "--uts", "--ipc"]
    argv = ["unshare", *flags, sys.executable, os.path.join(HERE, "keeper.py"), "host", conf_path]
    h["ip"], h["keeper"] = ip, spawn(argv, log)
    bedlib.save(bed)
    wait_for(f"host {h['name']}", lambda: own_namespace(h["keeper"]), h["keeper"], log)
    pid = str(h["keeper"]["pid"])
    in_net(bed["switch"], "ip", "link", "add", h["name"], "type", "veth", "peer", "name", "eth0", "netns", pid)
    in_net(bed["switch"], "ip", "link", "set", h["name"], "master", "br0", "up")
    in_net(h["keeper"], "ip", "link", "set", "lo", "up")
    in_net(h["keeper"], "ip", "addr", "add", f"{ip}/24", "dev", "eth0")
    in_net(h["keeper"], "ip", "link", "set", "eth0", "up")
    wait_for(f"host {h['name']}", lambda: os.path.exists(conf["ready"]), h["keeper"], log)


def start_sshd(bed, h):
    path = bedlib.host_dir(bed, h, "sshd_config")
    with open(path, "w") as f:
        f.write(SSHD_CONFIG.format(ip=h["ip"], dir=bed["dir"]))
    argv, env = enter(bed, h, ["/usr/sbin/sshd", "-f", path, "-E", bedlib.host_dir(bed, h, "sshd.log")], clean_env())
    run(argv, env=env, preexec_fn=raise_limits)


def link(bed, h, up):
    if bed["mode"] != "netns":
        bedlib.fail("only a bed with --mode netns has cables that can be cut")
    in_net(bed["switch"], "ip", "link", "set", h["name"], "up" if up else "down")


# ---- inside ------------------------------------------------------------------------------------------------------


def clean_env():
    """Ray starts its workers by `bash -c`; a bash that believes to be sshd's child would read ~/.bashrc for each."""
    drop = (
        "SSH_CLIENT",
        "SSH_CONNECTION",
        "BASH_ENV",
        "CUDA_VISIBLE_DEVICES",
        "PYTHONPATH",
        "PYTHONHOME",
        "VIRTUAL_ENV",
    )
    return {k: v for k, v in os.environ.items() if k not in drop and not k.startswith(("RAY_", "PYTEST_"))}


def pid_one(h):
    """unshare's only child. It is asked anew each time: a bed that is down has none."""
    if procs.alive(h["keeper"]):
        with open(f"/proc/{h['keeper']['pid']}/task/{h['keeper']['pid']}/children") as f:
            children = f.read().split()
        if children:
            return children[0]
    bedlib.fail(f"host '{h['name']}' is not running")


def enter(bed, h, cmd, env):
    """How to run a command in a host (None: on this machine)."""
    if h is None or bed["mode"] != "netns":
        return cmd, env
    return ["nsenter", "-t", pid_one(h), "--net", "--pid", "--mount", "--uts", "--ipc", *cmd], env
