# SPDX-License-Identifier: Apache-2.0
"""The package on bare roots with the network cut: Debian 12 and 11 as debootstrap makes them, and a root that has
musl and busybox and no other file. Each runs the programs, makes a server and asks it; two builds have one hash."""

import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.nightly

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "argus/roots"
SIZE_MAX = 25 * 10**6
# No GPU is needed, since nobody pretends any.
JOB = "workload: ray\nname: bare\nnnodes: 1\nn_gpus_per_node: 0\nentrypoint: [true]\n"


def run(*argv, **how):
    how = {"check": True, "capture_output": True, "text": True, "timeout": 1200, **how}
    return subprocess.run([str(a) for a in argv], **how)


def build(tree, out):
    run(tree / "tools/package/package", "--out", out, cwd=tree, timeout=3600)
    return out


@pytest.fixture(scope="session")
def commit():
    """One for all builds of a run: somebody may commit meanwhile."""
    return run("git", "-C", ROOT, "rev-parse", "HEAD").stdout.strip()


def copy_of_tree(to, commit):
    """The files that git knows here, as a repository of its own."""
    run("git", "clone", "-q", "--no-hardlinks", "--no-checkout", ROOT, to)
    run("git", "-C", to, "checkout", "-q", "--detach", commit)
    return to


@pytest.fixture(scope="session")
def made(tmp_path_factory, commit):
    """The package, of a clone: what is not committed is not in it. Or one that was made before, in ARGUS_PACKAGE."""
    if os.environ.get("ARGUS_PACKAGE"):
        return pathlib.Path(os.environ["ARGUS_PACKAGE"])
    home = tmp_path_factory.mktemp("package")
    return build(copy_of_tree(home / "one", commit), home / "out")


def only(folder, pattern):
    (path,) = folder.glob(pattern)
    return path


@pytest.fixture(scope="session")
def tarball(made):
    return only(made, "*.tar.gz")


def debootstrap(suite, root):
    if not shutil.which("debootstrap"):
        pytest.skip("there is no debootstrap")
    # From the mirror of this machine's apt.
    lists = run("apt-get", "indextargets", "--format", "$(SITE)").stdout.split()
    done = run("debootstrap", "--variant=minbase", suite, root, lists[0], check=False)
    if done.returncode:
        pytest.skip(f"debootstrap {suite}: {(done.stdout + done.stderr)[-300:]}")


def musl(_, root):
    """No glibc, no loader of it: what is not static and not musl's cannot start."""
    debs = root / "debs"
    debs.mkdir()
    # As root apt downloads as a user of its own, who may not write there.
    run("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", "musl", "busybox-static", cwd=debs)
    for deb in list(debs.iterdir()):
        run("dpkg", "-x", deb, root)
    shutil.rmtree(debs)
    for folder in ("bin", "tmp", "etc", "dev", "proc"):
        (root / folder).mkdir(exist_ok=True)
    for name in run(root / "bin/busybox", "--list").stdout.split():
        if not (root / "bin" / name).exists():
            (root / "bin" / name).symlink_to("busybox")
    run("mknod", "-m", "666", root / "dev/null", "c", "1", "3")
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\n")


MAKERS = {"bookworm": debootstrap, "bullseye": debootstrap, "musl": musl}


@pytest.fixture(scope="session", params=MAKERS)
def bare(request):
    """A root that is made once and never written to: tests get copies."""
    root = CACHE / request.param
    if not (root / "bin/sh").exists():
        new = CACHE / f"{request.param}.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        MAKERS[request.param](request.param, new)
        new.rename(root)
    return root


def chrooted(root, script, beside=""):
    """With no network but a loopback of its own and a /proc of its own; every process ends with the shell.
    `beside` is started there before, outside the root."""
    whole = f'mount -t proc proc {root}/proc && ip link set lo up && {beside} exec chroot {root} /bin/sh -euc "$1"'
    return ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount", "sh", "-euc", whole, "sh", script]


class Root:
    def __init__(self, bare, home, tarball):
        self.dir = home / "root"
        run("cp", "-a", bare, self.dir)
        (self.dir / "opt").mkdir(exist_ok=True)
        shutil.copy(tarball, self.dir / "opt/argus.tar.gz")
        self.on("mkdir -p /opt/argus /private && tar xzf /opt/argus.tar.gz -C /opt/argus --strip-components=1")

    def on(self, script, beside="", **how):
        env = {"PATH": "/opt/argus/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/"}
        outer = {**os.environ, **env, "PATH": env["PATH"] + ":" + os.environ["PATH"]}
        return run(*chrooted(self.dir, script, beside), env=outer, **how)


@pytest.fixture
def root(bare, tmp_path, tarball):
    if os.geteuid() != 0:
        pytest.skip("a chroot needs root")
    return Root(bare, tmp_path, tarball)


def test_programs_start(root):
    said = root.on("argus --version; argusd --version; argus-shepherd --version").stdout
    assert len(re.findall(r"(?m)^argus\S*\s+\d+\.\d+\.\d+", said)) == 3, said


def test_shepherd_runs_a_command(root):
    """The order of an attempt that is not there: it starts, reads, and says so."""
    done = root.on("argus-shepherd /private/jobs/none/attempts/1", check=False)
    assert done.returncode not in (126, 127) and "none" in done.stdout + done.stderr


SERVER = """
argus init --shared-root /private --keeper script >/tmp/token 2>/tmp/said
argusd --check --config /etc/argus/argus.yaml
/etc/argus/argusd-run >/tmp/log 2>&1 &
keeper=$!
n=0
until argus login http://127.0.0.1:8080 </etc/argus/admin.token 2>/tmp/login; do
    n=$((n + 1))
    [ "$n" -lt 300 ] || { cat /tmp/login /tmp/log >&2; exit 1; }
    sleep 0.2
done
argus whoami
cat >/tmp/job.yaml <<END
%s
END
argus submit /tmp/job.yaml --no-trial -o json
n=0
until [ -e /tmp/ready ] && argus cluster status; do
    n=$((n + 1))
    [ "$n" -lt 600 ] || { cat /tmp/log >&2; exit 1; }
    sleep 0.2
done
argus ls -a -o json
ls /private/argus/bin/*
kill "$keeper"
wait "$keeper"
echo "the keeper ended with $?"
"""


# Outside the root, on its loopback: a fake Ray at Ray's own port, and who writes down that argusd is ready.
READY = """
import pathlib, sys, urllib.request
sys.path.insert(0, sys.argv[1])
from fakeray import wait_for

def is_ready():
    try:
        return urllib.request.urlopen("http://127.0.0.1:8080/readyz", timeout=60).status == 200
    except OSError:
        return False

wait_for(is_ready, "argusd is ready")
pathlib.Path(sys.argv[2]).touch()
"""


def beside(root):
    fake = [sys.executable, ROOT / "tests/fake_ray/fake_ray.py", "--port", "8265"]
    ready = [sys.executable, "-c", READY, ROOT / "tests/lib", root.dir / "tmp/ready"]
    return " ".join(f"{shlex.join(map(str, argv))} >/dev/null 2>{root.dir}/tmp/beside &" for argv in (fake, ready))


def test_server_is_made_runs_and_takes_a_job(root):
    done = root.on(SERVER % JOB, beside=beside(root), check=False, timeout=600)
    assert done.returncode == 0, done
    assert "can be used" in done.stdout and "admin" in done.stdout
    assert "argus-shepherd" in done.stdout and "the keeper ended with 0" in done.stdout
    assert '"name": "bare"' in done.stdout and "cluster" in done.stdout, done
    token = root.dir / "etc/argus/admin.token"
    assert token.stat().st_mode & 0o777 == 0o600 and token.read_text() == (root.dir / "tmp/token").read_text()


def test_unit_is_written_where_systemd_is(root):
    unit = "/etc/systemd/system/argusd.service"
    script = f"mkdir -p /run/systemd/system {os.path.dirname(unit)}; argus init --shared-root /private; cat {unit}"
    said = root.on(script).stdout
    assert "ExecStart=/opt/argus/bin/argusd --config /etc/argus/argus.yaml" in said and "Type=notify" in said


def test_nothing_of_the_machine_is_loaded(root):
    """Only files of the package are mapped, and `ps` shows the program's name."""
    script = """
    argus init --shared-root /private --keeper none >/tmp/token
    argusd --config /etc/argus/argus.yaml >/tmp/log 2>&1 &
    n=0
    until grep -q '^Name:.*argusd' /proc/$!/status && grep -q libsqlite3 /proc/$!/maps; do
        n=$((n + 1))
        [ $n -lt 3000 ]
    done
    cat /proc/$!/maps
    """
    mapped = set(re.findall(r"(?m)\s(/\S+\.(?:so|program)\S*)$", root.on(script).stdout))
    assert mapped and all(path.startswith("/opt/argus/lib/argus/") for path in mapped), mapped


def test_size_and_what_is_inside(tarball):
    assert tarball.stat().st_size <= SIZE_MAX
    names = set(run("tar", "tzf", tarball).stdout.split())
    top = tarball.name.removesuffix(".tar.gz")
    for path in ("bin/argus", "bin/argusd", "bin/argus-shepherd", "bin/argus-gpus", "share/man/man1/argus-init.1.gz",
                 "share/argus/hook/sitecustomize.py", "share/argus/rules/nccl.yaml", "share/argus/lib/argus_trial.py",
                 "share/argus/client/argus_client-0.1.0-py3-none-any.whl",
                 "share/doc/argus/README.md", "share/doc/argus/LICENSE", "share/argus/examples/grpo.yaml"):  # fmt: skip
        assert f"{top}/{path}" in names, path


def test_bill_of_materials_names_what_is_carried(made, tarball):
    page = json.loads(only(made, "*.cdx.json").read_text())
    assert (page["bomFormat"], page["specVersion"]) == ("CycloneDX", "1.5")
    inside = {n.split("/", 1)[1] for n in run("tar", "tzf", tarball).stdout.split() if ".so" in n and "lib/argus/" in n}
    told = {f["name"] for part in page["components"] for f in part.get("components", ())}
    assert told == {n for n in inside if not n.startswith("lib/argus/loader/")}
    names = {part["name"] for part in page["components"]}
    assert {"libc6", "libuv1", "libarchive-dev", "preact", "uplot"} <= names
    assert all(part["version"] and part["licenses"] for part in page["components"])


def test_checksums_and_their_signature(made, tmp_path):
    key = tmp_path / "key"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    run("sha256sum", "-c", "SHA256SUMS", cwd=made)
    sums = shutil.copy(made / "SHA256SUMS", tmp_path)
    run("ssh-keygen", "-q", "-Y", "sign", "-n", "argus-package", "-f", key, sums)
    signers = tmp_path / "allowed_signers"
    signers.write_text(f"argus {key.with_suffix('.pub').read_text()}")
    verify = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", "argus", "-n", "argus-package", "-s", f"{sums}.sig"]
    text = pathlib.Path(sums).read_text()
    run(*verify, input=text)
    assert run(*verify, input=text + "0", check=False).returncode != 0


def test_deb_installs_and_its_purge_leaves_data(bare, made, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a chroot needs root")
    if not (bare / "usr/bin/dpkg").exists():
        pytest.skip(f"{bare.name} has no dpkg")
    home = tmp_path / "root"
    run("cp", "-a", bare, home)
    (home / "private").mkdir()
    shutil.copy(only(made, "*.deb"), home / "argus.deb")
    server = "argus init --shared-root /private --keeper none && argusd --check"
    script = f"dpkg -i /argus.deb && {server} && dpkg -P argus && ls /usr/bin"
    path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    done = run(*chrooted(home, script), env={**os.environ, "PATH": path})
    assert "argusd" not in done.stdout.rpartition("can be used")[2].split()
    assert (home / "etc/argus/argus.yaml").exists() and (home / "var/lib/argus").is_dir()
    assert "stay" in done.stdout + done.stderr


def test_deb_is_clean(made):
    if not shutil.which("lintian"):
        pytest.skip("there is no lintian")
    done = run("lintian", "--allow-root", "--fail-on", "error", only(made, "*.deb"), check=False)
    assert done.returncode == 0, done.stdout


def test_two_builds_are_the_same(made, commit, tmp_path_factory):
    """Elsewhere, from nothing."""
    again = tmp_path_factory.mktemp("another-longer-name")
    out = build(copy_of_tree(again / "tree-of-another-name", commit), again / "out")
    hashes = [{p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()} for folder in (made, out)]
    assert hashes[0] == hashes[1] and len(hashes[0]) == 4
