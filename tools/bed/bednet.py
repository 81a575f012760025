# SPDX-License-Identifier: Apache-2.0
"""The bed's hosts: network namespaces on a switch of their own, or loopback addresses.

The switch is a bridge in a namespace of its own, so that no packet filter of this machine stands between the
hosts. One pair of virtual cables leads from it to this machine, which has the address .254: argusd, a browser and
curl run here as usual and reach every host.
"""

import getpass
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time

import bedlib
import procs

HERE = os.path.dirname(os.path.abspath(__file__))
OPEN_FILES = 65536
SSHD = "/usr/sbin/sshd"

SSHD_CONFIG = """ListenAddress {ip}
Port {port}
HostKey {dir}/hostkey
PidFile {host}/sshd.pid
SetEnv {env}
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


def start_hosts(bed, bare):
    if bed["mode"] == "netns":
        start_switch(bed)
        make_keys(bed, bed["subnet"], 22)
        for i, h in enumerate(bed["hosts"], 1):
            start_namespace_host(bed, h, f"{bed['subnet']}.{i}")
        for h in bed["hosts"]:
            start_sshd(bed, h)
    else:
        subnet = free_loopback()
        bed["ctl_ip"] = "127.0.0.1"
        for i, h in enumerate(bed["hosts"], 1):
            h["ip"] = f"{subnet}.{i}"
        if bare and os.path.exists(SSHD):
            make_keys(bed, subnet, free_ports(1))
            for h in bed["hosts"]:
                start_loopback_host(bed, h)
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


def start_loopback_host(bed, h):
    """An sshd of this very user. Its keeper inherits whatever is started through it and leaves it."""
    if os.getuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # sshd wants it when it is root's
    env = {"PYTHONPATH": os.path.join(HERE, "loopback"), "ARGUS_BED_IP": h["ip"]}
    log, rc = bedlib.host_dir(bed, h, "sshd.log"), bedlib.host_dir(bed, h, "rc")
    sshd = [SSHD, "-D", "-e", "-f", sshd_config(bed, h, env)]
    h["keeper"] = spawn([sys.executable, os.path.join(HERE, "keeper.py"), "loop", rc, *sshd], log, clean_env())
    bedlib.save(bed)
    hexed = "".join(f"{int(n):02X}" for n in reversed(h["ip"].split(".")))
    wait_for(f"sshd of {h['name']}", lambda: (hexed, h["ssh_port"]) in listening(), h["keeper"], log)


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


def make_keys(bed, subnet, port):
    for name in ("id", "hostkey"):
        path = os.path.join(bed["dir"], name)
        if not os.path.exists(path):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "argus-bed", "-f", path])
    with open(os.path.join(bed["dir"], "hostkey.pub")) as f:
        key = " ".join(f.read().split()[:2])
    names = [(h["name"], f"{subnet}.{i}") for i, h in enumerate(bed["hosts"], 1)]
    for h in bed["hosts"]:
        h["ssh_port"] = port
    files = {
        "known_hosts": "".join(f"{ip if port == 22 else f'[{ip}]:{port}'} {key}\n" for _, ip in names),
        "etc_hosts": "127.0.0.1 localhost\n" + "".join(f"{ip} {n}\n" for n, ip in [*names, ("ctl", bed["ctl_ip"])]),
        "ssh_config": "".join(f"Host {n} {ip}\n  HostName {ip}\n" for n, ip in names)
        + f"Host *\n  User {getpass.getuser()}\n  Port {port}\n"
        + f"  IdentityFile {bed['dir']}/id\n  IdentitiesOnly yes\n  BatchMode yes\n"
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
    # as container engines do: of the address, so that a host made anew is known to its neighbours at once
    mac = "02:42:" + ":".join(f"{int(n):02x}" for n in ip.split("."))
    cable = ["type", "veth", "peer", "name", "eth0", "address", mac, "netns", pid]
    in_net(bed["switch"], "ip", "link", "add", h["name"], *cable)
    in_net(bed["switch"], "ip", "link", "set", h["name"], "master", "br0", "up")
    in_net(h["keeper"], "ip", "link", "set", "lo", "up")
    in_net(h["keeper"], "ip", "addr", "add", f"{ip}/24", "dev", "eth0")
    in_net(h["keeper"], "ip", "link", "set", "eth0", "up")
    wait_for(f"host {h['name']}", lambda: os.path.exists(conf["ready"]), h["keeper"], log)


def sshd_config(bed, h, env):
    """Logins find the programs in hosts/<name>/bin first: a test puts a `date` or an `nvidia-smi` of its own there."""
    path, own = bedlib.host_dir(bed, h, "sshd_config"), bedlib.host_dir(bed, h)
    os.makedirs(os.path.join(own, "bin"), exist_ok=True)
    env = {"PATH": f"{own}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **env}
    words = " ".join(f'"{k}={v}"' for k, v in env.items())
    with open(path, "w") as f:
        f.write(SSHD_CONFIG.format(ip=h["ip"], port=h["ssh_port"], dir=bed["dir"], host=own, env=words))
    return path


def start_sshd(bed, h):
    sshd = [SSHD, "-f", sshd_config(bed, h, {}), "-E", bedlib.host_dir(bed, h, "sshd.log")]
    argv, env = enter(bed, h, sshd, clean_env())
    run(argv, env=env, preexec_fn=raise_limits)


def sshd_processes(h):
    """The listener and its sessions, not what was started through them: that has a program of its own."""
    return [w for w in procs.tree(int(pid_one(h))) if os.path.basename(procs.exe(w["pid"])).startswith("sshd")]


def kill_sshd(bed, h):
    procs.kill_all(lambda: sshd_processes(h))


def destroy_host(bed, h):
    """As a platform destroys a container: all of its processes at once, its /tmp/ray, its cable."""
    bedlib.stop_host(bed, h)
    shutil.rmtree(bedlib.host_dir(bed, h), ignore_errors=True)
    cable = ["nsenter", "-t", str(bed["switch"]["pid"]), "--net", "ip", "link", "del", h["name"]]
    subprocess.run(cable, stderr=subprocess.DEVNULL)  # it may have gone with its other end


def create_host(bed, h):
    """A new host under the old name and address; it has the key that all hosts of a bed have."""
    if procs.alive(h["keeper"]):
        bedlib.fail(f"host '{h['name']}' is there already: destroy it first")
    os.makedirs(bedlib.host_dir(bed, h), exist_ok=True)
    start_namespace_host(bed, h, h["ip"])
    start_sshd(bed, h)


def link(bed, h, up):
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
