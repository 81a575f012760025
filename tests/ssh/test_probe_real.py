# SPDX-License-Identifier: Apache-2.0
"""The probe on a real host: its facts, and each finding made to happen. What is spoilt is put right again.

A clock cannot be moved for one host alone (namespaces have no wall clock of their own): the host finds another
`date` on its PATH instead, as it would find a sick `nvidia-smi`."""

import contextlib
import os
import pathlib
import pwd
import signal
import subprocess

import pytest

pytestmark = pytest.mark.ray

GIB = 1 << 30


@pytest.fixture
def root(tmp_path):
    """A shared root: the same path on all hosts, with the mark that argusd makes."""
    folder = tmp_path / "shared"
    (folder / "argus").mkdir(parents=True)
    (folder / "argus/root-mark").write_text("")
    return folder


@pytest.fixture
def fit(bed, tool, root):
    """A probe that wants what argusd wants; without keys of a test it finds nothing."""
    return tool(
        ray_bin=bed.ray,
        ray_version=bed.version,
        python_version="3.11",
        shared_root=root,
        root_mark="argus/root-mark",
        min_disk_bytes=1 << 20,
        min_shm_bytes=1 << 20,
        max_skew=60000,
        want_port=[6379, 8265],
        temp_dir="/tmp/ray",
    )


@pytest.fixture
def program(bed):
    """Gives h2 a program of the test."""
    made = []

    def put(name, text):
        path = pathlib.Path(bed.dir) / "hosts/h2/bin" / name
        path.write_text(text)
        path.chmod(0o755)
        made.append(path)

    yield put
    for path in set(made):
        path.unlink()


@pytest.fixture
def mount(bed):
    """Mounts on h2 alone."""
    made = []

    def put(*args):
        bed.on("h2", "mount", *map(str, args))
        made.append(args[-1])

    yield put
    for path in reversed(made):
        bed.on("h2", "umount", "-l", str(path))


@contextlib.contextmanager
def running(bed, *argv):
    """A program in h2 that has said its first line; killed in the end (nsenter's child, since it forks)."""
    (host,) = [h for h in bed.info["hosts"] if h["name"] == "h2"]
    inside = pathlib.Path(f"/proc/{host['keeper']['pid']}/task/{host['keeper']['pid']}/children").read_text().split()[0]
    enter = ["nsenter", "-t", inside, "--net", "--pid", "--mount", "--uts", "--ipc"]
    server = subprocess.Popen([*enter, *map(str, argv)], stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline()
    finally:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            for pid in pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        server.wait()


def test_facts_of_a_fit_host(bed, fit, root):
    got = fit("probe")
    assert got["findings"] == []
    assert (got["hostname"], got["ray"], got["ray_bin"]) == ("h2", bed.version, str(bed.ray))
    assert got["python"].startswith("3.11.")
    assert got["numpy"] and got["transformers"] and got["verl"] == "0.5.0"
    assert got["cpus"] == os.cpu_count()
    assert got["memory_bytes"] > GIB and got["disk_free_bytes"] > 1 << 20 and got["shm_bytes"] > 1 << 20
    assert got["has_skew"] and abs(got["skew"]) < 30_000_000
    assert got["image"] and got["host_key"].startswith("SHA256:")
    assert (got["gpus"], got["has_nvidia"]) == (0, False)
    assert sorted(p.name for p in (root / "argus").iterdir()) == ["root-mark"]  # nothing is left behind


CORPUS = pathlib.Path(__file__).parents[1] / "corpus/network"


@pytest.fixture
def sysfs(bed, mount, tmp_path):
    """A machine's /sys/class, laid out from a file of tests/corpus/network, and the device files of its RDMA ports
    unless the container was not given them."""

    def lay(name, has_devices=True):
        tree, devices = tmp_path / name, tmp_path / "dev"
        for line in (CORPUS / f"{name}.tree").read_text().splitlines():
            path, _, content = line.partition("\t")
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(content + "\n")
        mount("--bind", tree, "/sys/class")
        if has_devices:
            (devices / "infiniband").mkdir(parents=True)
            for verbs in tree.glob("infiniband/*/device/infiniband_verbs/*"):
                (devices / "infiniband" / verbs.name).write_text("")
            mount("-t", "overlay", "-o", f"ro,lowerdir={devices}:/dev", "overlay", "/dev")
            mount("--bind", devices / "infiniband", "/dev/infiniband")  # there they may be written

    return lay


NETWORKS = {
    "infiniband": ("infiniband", "mlx5_0:1,mlx5_1:1,mlx5_3:1", 400, "", ""),
    "roce_v2": ("roce", "mlx5_0:1,mlx5_1:1", 200, "v2", "3"),
    "bonded": ("roce", "mlx5_bond_0:1", 100, "v2", "3"),
    "ethernet": ("ethernet", "", 0, "", ""),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_network_of_a_host(fit, sysfs, name):
    sysfs(name)
    got = fit("probe")
    assert got["findings"] == []
    assert tuple(got[k] for k in ("link_layer", "hca", "rdma_gbps", "roce", "gid_index")) == NETWORKS[name]
    assert got["interface"] == "eth0"  # as the kernel says, which holds the bed's address
    assert got["mtu"] == (9000 if name == "bonded" else 1500)
    assert got["bond_of"] == ("ens1f0np0,ens1f1np1" if name == "bonded" else "")


def test_rdma_ports_that_the_container_may_not_open(fit, sysfs):
    sysfs("infiniband", has_devices=False)
    got = fit("probe")
    assert (got["link_layer"], got["hca"]) == ("ethernet", "")


def test_what_rdma_ports_have_counted(fit, sysfs, tmp_path):
    """By a look, which says no more of a port whose driver counts nothing."""
    sysfs("infiniband")
    assert fit("look")["rdma"] == []
    for device, received, sent in (("mlx5_0", 9_000_000_000, 0), ("mlx5_1", 8, 9), ("mlx5_2", "N/A (no PMA)", 7)):
        counters = tmp_path / "infiniband/infiniband" / device / "ports/1/counters"
        counters.mkdir()
        (counters / "port_rcv_data").write_text(f"{received}\n")
        (counters / "port_xmit_data").write_text(f"{sent}\n")
    got = fit("look")
    assert got["rdma"] == [{"received": 9_000_000_000, "sent": 0}, {"received": 8, "sent": 9}]
    assert (got["outcome"], got["health"]) == ("ok", "")


def test_the_interface_where_there_is_no_ip_program(bed, fit, program):
    program("ip", "#!/bin/sh\nexit 127\n")
    got = fit("probe")
    assert (got["interface"], got["mtu"]) == ("eth0", int(bed.on("h2", "cat", "/sys/class/net/eth0/mtu")))


def test_gpus_of_a_fit_host(fit, program):
    program("nvidia-smi", "#!/bin/sh\necho 'NVIDIA H200, 550.54.15, 0'\necho 'NVIDIA H200, 550.54.15, [N/A]'\n")
    got = fit("probe")
    assert got["findings"] == []
    assert (got["gpus"], got["gpu_type"], got["driver"]) == (2, "NVIDIA H200", "550.54.15")


def test_gpu_trouble(fit, program):
    lost = "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system"
    program("nvidia-smi", f"#!/bin/sh\necho 'NVIDIA H200, 550.54.15, 0'\necho '{lost}'\nexit 15\n")
    found = fit.finding()
    assert found["code"] == "gpu_trouble"
    assert "GPU is lost" in found["text"]
    program("nvidia-smi", "#!/bin/sh\nsleep 600\n")
    found = fit.finding(limit=12000)
    assert (found["code"], found["text"]) == ("gpu_trouble", "nvidia-smi hangs there")


def test_no_python(fit, tmp_path):
    broken = tmp_path / "ray"
    broken.write_text("#!/no/such/python3\n")
    broken.chmod(0o755)
    found = fit.finding(ray_bin=broken)
    assert found["code"] == "no_python"
    assert "/no/such/python3" in found["text"]


def test_a_host_without_any_python(fit, mount, tmp_path):
    home = pwd.getpwuid(os.getuid()).pw_dir  # of the login shell, whatever HOME says here
    mount("-t", "tmpfs", "tmpfs", home)  # with what its profile adds to PATH
    empty = tmp_path / "empty"
    empty.write_text("")
    for python in {pathlib.Path(p).resolve() for p in ("/usr/bin/python3", "/usr/local/bin/python3")}:
        if python.exists():
            mount("--bind", empty, python)
    found = fit.finding(ray_bin=None)
    assert found["code"] == "no_python"


def test_no_ray(fit, tmp_path):
    found = fit.finding(ray_bin="/no/such/ray")
    assert found["code"] == "no_ray"
    assert "'/no/such/ray'" in found["text"]
    found = fit.finding(ray_bin=None)
    assert found["code"] == "no_ray"
    bare = tmp_path / "ray"
    bare.write_text("#!/usr/bin/python3\n")
    bare.chmod(0o755)
    found = fit.finding(ray_bin=bare, python_version=None)
    assert found["code"] == "no_ray"
    assert "no package 'ray'" in found["text"]


def test_ray_is_found_in_the_usual_places(bed, fit, mount, tmp_path):
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/ray").symlink_to(bed.ray)
    mount("--bind", venv, "/opt")
    bed.on("h2", "ln", "-s", "/opt", "/opt/venv")
    got = fit("probe", ray_bin=None)
    assert got["findings"] == []
    assert (got["ray_bin"], got["ray"]) == ("/opt/venv/bin/ray", bed.version)


def test_other_ray_version(fit, bed):
    found = fit.finding(ray_version="2.60.0")
    assert found["code"] == "ray_version"
    assert f"Ray is {bed.version}" in found["text"] and "2.60.0" in found["text"]
    assert "ray[default]==2.60.0" in found["fix"]


def test_other_python(fit):
    found = fit.finding(python_version="3.12")
    assert found["code"] == "python_version"
    assert "3.12" in found["fix"]


def test_root_is_not_there(fit, root):
    found = fit.finding(shared_root=root.parent / "none")
    assert found["code"] == "root_not_mounted"
    assert "mount it there at the same path" in found["fix"]


def test_root_is_not_mounted(fit, root, mount):
    mount("-t", "tmpfs", "tmpfs", root)  # the bare directory under a mount that is missing
    found = fit.finding()
    assert found["code"] == "root_not_mounted"
    assert "empty directory" in found["fix"]


def test_root_is_another_one(bed, fit, root, mount):
    mount("-t", "tmpfs", "other-nas", root)
    bed.on("h2", "mkdir", f"{root}/models")
    found = fit.finding()
    assert found["code"] == "root_other"
    assert "other-nas" in found["fix"] and "argus/root-mark" in found["text"]


def test_root_is_read_only(fit, root, mount):
    mount("--bind", "-o", "ro", root, root)
    found = fit.finding()
    assert found["code"] == "root_read_only"
    assert "Read-only file system" in found["text"]


def test_root_is_full(bed, fit, root, mount):
    mount("-t", "tmpfs", "-o", "size=4k,nr_inodes=4", "tmpfs", root)
    bed.on("h2", "sh", "-c", f"mkdir {root}/argus && touch {root}/argus/root-mark {root}/last")
    found = fit.finding()
    assert found["code"] == "root_read_only"
    assert "No space left" in found["text"]


@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="no /dev/fuse to make a hanging mount with")
def test_root_hangs(bed, fit, root):
    """A file system whose server never answers, as a dead NFS server does."""
    hang = (
        "import ctypes, os, sys, time\n"
        "fd = os.open('/dev/fuse', os.O_RDWR)\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "options = f'fd={fd},rootmode=40000,user_id=0,group_id=0'.encode()\n"
        "if libc.mount(b'dead', sys.argv[1].encode(), b'fuse', 0, options): sys.exit(os.strerror(ctypes.get_errno()))\n"
        "print('mounted', flush=True)\n"
        "while True: time.sleep(60)  # the only wait: until it is killed\n"
    )
    with running(bed, bed.python, "-c", hang, root) as line:
        if line != "mounted\n":
            pytest.skip("this machine lets nobody mount by /dev/fuse")
        found = fit.finding(limit=12000)
        assert found["code"] == "root_hangs"
        assert "file server" in found["fix"]
        assert fit("run", "true")["trouble"] == "ok"  # the connection did not suffer
    bed.on("h2", "umount", "-l", str(root))


def test_disk_is_full(fit, mount):
    mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", "/tmp/ray")
    found = fit.finding(min_disk_bytes=GIB)
    assert found["code"] == "disk_full"
    assert "/tmp/ray" in found["text"] + found["fix"]


def test_disk_cannot_be_written(fit, mount):
    mount("-t", "tmpfs", "-o", "ro", "tmpfs", "/tmp/ray")
    found = fit.finding()
    assert (found["code"], found["text"]) == ("disk_full", "'/tmp/ray' cannot be written")


def test_shm_is_too_small(fit, mount):
    mount("-t", "tmpfs", "-o", "size=64m", "tmpfs", "/dev/shm")  # what docker gives by itself
    found = fit.finding(min_shm_bytes=GIB)
    assert found["code"] == "shm_too_small"
    assert "0.06 GiB free of 0.06 GiB" in found["text"] and "--shm-size" in found["fix"]


@pytest.mark.parametrize(("by", "word"), [(65, "ahead of"), (-3700, "behind")])
def test_clock_is_off(fit, program, by, word):
    program("date", f"#!/bin/sh\necho $(($(/usr/bin/date +%s) + {by}))\n")
    found = fit.finding()
    assert found["code"] == "clock_off"
    assert word in found["text"]


def test_port_is_taken(bed, fit):
    with running(bed, bed.python, "-u", "-m", "http.server", "6379", "--bind", "0.0.0.0"):
        found = fit.finding()
    assert found["code"] == "port_taken"
    assert "port 6379 is taken by" in found["text"] and "http.server" in found["text"]
    assert "stop process" in found["fix"]


def test_ssh_cannot(bed, fit, tmp_path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    assert fit.finding(identity_file=tmp_path / "other")["code"] == "ssh_refused"
    assert fit.finding(port=1)["code"] == "ssh_unreachable"
    fit.known_hosts.write_text(f"argus-h2 {(tmp_path / 'other.pub').read_text()}")
    found = fit.finding()
    assert found["code"] == "host_key_changed"
    assert "--accept-key" in found["fix"]


def test_several_findings_at_once(fit):
    assert sorted(fit.codes(ray_version="1.0.0", shared_root="/none", min_shm_bytes=1 << 50)) == [
        "ray_version",
        "root_not_mounted",
        "shm_too_small",
    ]


def test_somebody_elses_raylet(bed, fit):
    """Started by hand by another user's script: it has no mark of ours."""
    bed.on("h2", str(bed.ray), "start", "--head", "--num-cpus=1", "--object-store-memory=100000000", "--port=6400",
           "--include-dashboard=false", "--disable-usage-stats", f"--node-ip-address={bed.ips['h2']}")
    try:
        found = fit.finding(want_port=[7777])
        assert found["code"] == "raylet_foreign"
        assert f"in the cluster of {bed.ips['h2']}:6400" in found["text"] and "user 'root'" in found["text"]
        assert "port_taken" in fit.codes(want_port=[6400])
    finally:
        bed.verb("kill-worker", "h2")
