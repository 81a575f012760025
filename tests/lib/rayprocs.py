# SPDX-License-Identifier: Apache-2.0
"""Processes of Ray on the hosts of a bed, by their names and by the titles that Ray gives to its actors.

titled(bed, ["h2", "h3"], "ray::ServeReplica:chat-v1:")     [("h2", "4711"), …]
of_ray(bed, ["h2", "h3"], "raylet")
of_ray(bed, ["h1"], "head")                                 its GCS, its raylet, its dashboard"""

OF_RAY = {
    "raylet": "grep -lx raylet /proc/[0-9]*/comm | cut -d / -f 3",
    "head": "{ grep -lxE 'raylet|gcs_server' /proc/[0-9]*/comm; grep -l '[d]ashboard/dashboard.py' /proc/[0-9]*/cmdline"
    "; } | cut -d / -f 3",
}


def listed(bed, hosts, script):
    return [(host, pid) for host in hosts for pid in bed.on(host, "sh", "-c", script).split()]


def titled(bed, hosts, title):
    """Those whose title begins so, in the order of the hosts."""
    find = f"grep -aqs '^{title}' $p/cmdline && echo ${{p#/proc/}}"
    return listed(bed, hosts, f"for p in /proc/[0-9]*; do {find}; done; true")


def of_ray(bed, hosts, what):
    return listed(bed, hosts, OF_RAY[what])
