# SPDX-License-Identifier: Apache-2.0
"""Ray in the hosts of a bed: a head that offers nothing, workers with pretended GPUs."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import bedlib
import bednet
import procs

OBJECT_STORE = 200_000_000
START_SECONDS = 120
DASHBOARD_SECONDS = 100  # Ray's own 30 or 60 are short where three clusters start at a time
AGENT_PORT = 52365  # Ray's default; hosts on loopback addresses need one each
SHARES = {f"argus_share_{i}": 1 for i in range(16)}  # as argusd gives them to nodes that it starts


def client_env(bed):
    env = bednet.clean_env()
    if bed["env"]:
        env["PATH"] = os.path.join(bed["env"], "bin") + ":" + env.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
    env["RAY_USAGE_STATS_ENABLED"] = "0"
    if bed["gcs_address"]:
        env["RAY_ADDRESS"], env["RAY_API_SERVER_ADDRESS"] = bed["gcs_address"], bed["dashboard_url"]
    if bed["token_path"]:
        env["RAY_AUTH_MODE"], env["RAY_AUTH_TOKEN_PATH"] = "token", bed["token_path"]
    return env


def start_env(bed, h):
    """The environment of `ray start`, which every worker and driver of the host inherits."""
    env = client_env(bed)
    for name in ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS"):
        env.pop(name, None)
    if bed["mode"] == "loopback":
        env["PYTHONPATH"], env["ARGUS_BED_IP"] = os.path.join(bednet.HERE, "loopback"), h["ip"]
    if h["role"] == "head":
        env["RAY_DASHBOARD_STARTUP_TIMEOUT_S"] = str(DASHBOARD_SECONDS)
        if bed["mode"] == "loopback":
            env["AUTOSCALER_METRIC_PORT"] = str(bed["port_base"] + 3)
            env["DASHBOARD_METRIC_PORT"] = str(bed["port_base"] + 4)
        env.update(kv.split("=", 1) for kv in bed["head_env"])
    return env


def plan(bed):
    """Addresses and ports of the cluster."""
    bed["port_base"] = bednet.free_ports(10 + 2 * len(bed["hosts"])) if bed["mode"] == "loopback" else None
    gcs, dashboard = (bed["port_base"], bed["port_base"] + 1) if bed["port_base"] else (6379, 8265)
    bed["gcs_address"] = f"{bed['head_ip']}:{gcs}"
    bed["dashboard_url"] = f"http://{bed['head_ip']}:{dashboard}"
    for i, h in enumerate(bed["hosts"]):
        h["agent_port"] = bed["port_base"] + 10 + i if bed["port_base"] else AGENT_PORT
        h["cpus"], h["gpus"] = (0, 0) if h["role"] == "head" else (bed["cpus"], bed["gpus"])
    if bed["mode"] == "loopback":
        # short, since the paths of Unix sockets lie below it
        bed["temp_dir"] = os.path.join("/tmp", f"argus-bed-{bed['id']}")
    bedlib.save(bed)


def start_argv(bed, h):
    argv = [
        os.path.join(bed["env"], "bin", "ray"),
        "start",
        f"--node-ip-address={h['ip']}",
        f"--num-cpus={h['cpus']}",
        f"--num-gpus={h['gpus']}",
        f"--object-store-memory={OBJECT_STORE}",
        "--disable-usage-stats",
    ]
    if h["role"] == "head":
        gcs_port, dashboard_port = bed["gcs_address"].rpartition(":")[2], bed["dashboard_url"].rpartition(":")[2]
        argv += ["--head", f"--port={gcs_port}", f"--dashboard-host={h['ip']}", f"--dashboard-port={dashboard_port}"]
        argv += ["--include-dashboard=true"]  # else a dashboard that does not come up is a warning, and nothing answers
    else:
        resources = {"worker_node": 100, f"argus_node_{h['name']}": 1000, **SHARES}
        argv += [f"--address={bed['gcs_address']}", f"--resources={json.dumps(resources)}"]
        argv += [f"--labels=argus.node={h['name']}"]
    if bed["mode"] == "loopback":
        argv += [f"--dashboard-agent-listen-port={h['agent_port']}", f"--temp-dir={bed['temp_dir']}"]
        argv += ["--min-worker-port=0", "--max-worker-port=0"]
        if h["role"] == "head":
            argv += [f"--ray-client-server-port={bed['port_base'] + 2}"]
        else:
            argv += ["--include-log-monitor=false"]  # the session directory is shared: one reader of its logs is enough
    return argv


def launch(bed, h):
    """Begin `ray start` in a host; the answer is a function that tells its exit code, or None while it runs."""
    log, argv, env = bedlib.host_dir(bed, h, "ray_start.log"), start_argv(bed, h), start_env(bed, h)
    if bed["mode"] == "netns":
        argv, env = bednet.enter(bed, h, argv, env)
        with open(log, "ab") as out:
            p = subprocess.Popen(
                argv,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=bednet.raise_limits,
            )
        return p.poll
    rc = bedlib.host_dir(bed, h, "rc")
    if os.path.exists(rc):
        os.unlink(rc)
    keeper = [sys.executable, os.path.join(bednet.HERE, "keeper.py"), "loop", rc, *argv]
    h["keeper"] = bednet.spawn(keeper, log, env)
    bedlib.save(bed)

    def code():
        if os.path.exists(rc):
            with open(rc) as f:
                return int(f.read())
        return None if procs.alive(h["keeper"]) else 1

    return code


def wait(bed, h, code):
    """Until Ray runs in a host. It gives itself 30 s, which a busy machine may exceed: then it is tried again."""
    for again in (True, True, False):
        end = time.monotonic() + START_SECONDS
        while code() is None and time.monotonic() < end:
            time.sleep(0.05)
        if code() == 0:
            break
        if not again:
            bedlib.complain(f"'ray start' on {h['name']} fails", bedlib.host_dir(bed, h, "ray_start.log"))
        bedlib.say(bed, f"'ray start' on {h['name']} {'failed' if code() else 'hangs'}, trying it again")
        stop_ray(bed, h)
        code = launch(bed, h)
    bedlib.say(bed, f"Ray {bed['ray_version']} runs on {h['name']} ({h['role']}, {h['ip']})")


def stop_ray(bed, h):
    """Ends what runs in a host; where the keeper itself was made for this `ray start`, the keeper too."""
    hit = procs.kill_all(ray_processes(bed, h))
    if bed["mode"] == "loopback":
        procs.wait_reaped(h["keeper"]["pid"], 2)
        procs.send(h["keeper"], signal.SIGKILL)
    return hit


def start_all(bed):
    plan(bed)
    head, workers = bed["hosts"][0], [h for h in bed["hosts"][1:] if not h.get("bare")]
    wait(bed, head, launch(bed, head))
    if bed["mode"] == "netns":
        for h, code in [(h, launch(bed, h)) for h in workers]:
            wait(bed, h, code)
    else:  # they share a session directory, in which two that start together take each other's names
        for h in workers:
            wait(bed, h, launch(bed, h))
    end, why = time.monotonic() + 240, problem(bed)
    while why:
        if time.monotonic() > end:
            bedlib.fail(f"the cluster does not get ready: {why}")
        time.sleep(0.2)
        why = problem(bed)


def start_one(bed, h):
    """Ray again in a host whose Ray was killed."""
    if h.get("bare"):
        bedlib.fail(f"'{h['name']}' is bare: whoever uses this bed starts Ray there")
    if ray_processes(bed, h)():
        bedlib.fail(f"Ray still runs on '{h['name']}'")
    stop_ray(bed, h)
    wait(bed, h, launch(bed, h))


def ray_processes(bed, h):
    """A function that finds what runs in a host, sshd and its sessions left out."""

    def find():
        if not procs.alive(h["keeper"]):
            return []
        if bed["mode"] == "loopback":
            return procs.tree(h["keeper"]["pid"])
        return procs.tree(int(bednet.pid_one(h)), skip={w["pid"] for w in bednet.sshd_processes(h)})

    return find


# ---- health ------------------------------------------------------------------------------------------------------


def get(bed, url):
    request = urllib.request.Request(url, headers={"User-Agent": "argus-bed"})
    if bed["token_path"]:
        with open(bed["token_path"]) as f:
            request.add_header("Authorization", "Bearer " + f.read().strip())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as reply:
        return reply.read()


def problem(bed):
    """One sentence about what is wrong, or None. A head whose agent does not answer refuses jobs."""
    if not bed["dashboard_url"]:
        return None if all(procs.alive(h["keeper"]) for h in bed["hosts"]) else "a host has ended"
    try:
        nodes = json.loads(get(bed, bed["dashboard_url"] + "/api/v0/nodes"))["data"]["result"]["result"]
        head = bed["hosts"][0]
        get(bed, f"http://{head['ip']}:{head['agent_port']}/api/local_raylet_healthz")
    except (OSError, ValueError, KeyError, TypeError, urllib.error.URLError) as e:
        return f"Ray does not answer ({e})"
    up = {n["node_ip"] for n in nodes if n["state"] == "ALIVE"}
    away = [h["name"] for h in bed["hosts"] if h["ip"] not in up and not (h.get("bare") and procs.alive(h["keeper"]))]
    return f"Ray does not know {', '.join(away)}" if away else None
