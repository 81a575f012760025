# SPDX-License-Identifier: Apache-2.0
"""Processes of Ray on the hosts of a bed, by their names and by the titles that Ray gives to its actors.

titled(bed, ["h2", "h3"], "ray::ServeReplica:chat-v1:")     [("h2", "4711"), …]
named(bed, ["h1"], "gcs_server")
of_ray(bed, ["h2", "h3"], "raylet")
of_ray(bed, ["h1"], "head")                                 its GCS, its raylet, its dashboard"""

NAMED = "grep -lxE '{}' /proc/[0-9]*/comm"
DASHBOARD = "grep -l '[d]ashboard/dashboard.py' /proc/[0-9]*/cmdline"  # and not the shell that looks for it
OF_RAY = {
    "raylet": NAMED.format("raylet"),
    "dashboard": DASHBOARD,
    "head": f"{NAMED.format('raylet|gcs_server')}; {DASHBOARD}",
}


def listed(bed, hosts, script):
    return [(host, pid) for host in hosts for pid in bed.on(host, "sh", "-c", script).split()]


def titled(bed, hosts, title):
    """Those whose title begins so, in the order of the hosts."""
    find = f"grep -aqs '^{title}' $p/cmdline && echo ${{p#/proc/}}"
    return listed(bed, hosts, f"for p in /proc/[0-9]*; do {find}; done; true")


def grepped(bed, hosts, greps):
    """These have the number of the process in the path of the file that they find."""
    return listed(bed, hosts, f"{{ {greps}; }} 2>/dev/null | cut -d / -f 3")


def named(bed, hosts, name):
    return grepped(bed, hosts, NAMED.format(name))


def of_ray(bed, hosts, what):
    return grepped(bed, hosts, OF_RAY[what])
