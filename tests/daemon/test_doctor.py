# SPDX-License-Identifier: Apache-2.0
"""`argus doctor`: what argusd finds of itself, each check made bad once; and each service of a file of checks is asked.
What is not well comes with what to do."""

import contextlib
import datetime
import http.client
import http.server
import ipaddress
import json
import pathlib
import ssl
import subprocess
import threading

import pytest
import yaml
from fakeray import FakeRay
from ports import free_port
from preload import held, needs_compiler
from programs import PROGRAMS
from receiver import Receiver
from smalldisk import fill, small_disk
from test_alert_rules import Machine
from test_alerts import house

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd

HEALTH = pathlib.Path(__file__).resolve().parents[2] / "deploy/observe/health.yaml"


class Service(http.server.BaseHTTPRequestHandler):
    """Answers as the name of the path says, and remembers what it was sent."""

    heads = []
    front = (200, b"a page for people")  # at any other path

    def do_GET(self):
        self.heads.append(self.headers)
        answers = {"/well": (200, b"OK"), "/ill": (503, b"no"), "/odd": (200, b"hello"), "/moved": (302, b"")}
        status, text = answers.get(self.path, self.front)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/well")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def service():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{web.server_port}"
        web.shutdown()


def doctor(path, *args, code):
    env = {"HOME": str(path.parent), "ARGUS_URL": "http://127.0.0.1:1", "ARGUS_TOKEN": "hidden", "LANG": "C.UTF-8"}
    argv = [PROGRAMS["argus"], "doctor", "--services", path, *args]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done
    return done.stdout + done.stderr


def write(path, checks):
    path.write_text(yaml.safe_dump({"checks": checks}))
    return path


def test_one_line_each_and_what_to_do(tmp_path):
    with service() as url:
        kinds = {"well": "mlflow", "ill": "grafana", "odd": "wandb", "moved": "prometheus"}
        checks = [{"name": n, "url": url, "path": f"/{k}", "status": 200, "body": "OK", "fix": f"start {n}"}
                  for k, n in kinds.items()]  # fmt: skip
        checks.append({"name": "gone", "url": f"http://127.0.0.1:{free_port()}", "path": "/", "fix": "start it"})
        path = write(tmp_path / "health.yaml", checks)
        rows = {r["name"]: r for r in json.loads(doctor(path, "-o", "json", code=6))["services"]}
        assert rows["mlflow"] == {"name": "mlflow", "state": "well", "url": url}
        assert rows["grafana"]["reason"] == "it answers with HTTP status 503"
        assert rows["grafana"]["fix"] == "start grafana"
        assert rows["prometheus"]["reason"] == "it answers with HTTP status 302", "no redirect is followed"
        assert "does not say 'OK'" in rows["wandb"]["reason"] and rows["gone"]["state"] == "away"
        table = doctor(path, "-o", "wide", code=6).splitlines()
        assert [line.split()[:2] for line in table[1:]] == [[r["name"], r["state"]] for r in rows.values()]
        assert all("Authorization" not in head for head in Service.heads), "a token of ours goes nowhere"
        assert "well" in doctor(write(tmp_path / "one.yaml", checks[:1]), code=0)


def test_the_shipped_file_is_one(tmp_path):
    """Whatever of it runs here: a line for each."""
    names = [c["name"] for c in yaml.safe_load(HEALTH.read_text())["checks"]]
    checks = [{**c, "url": f"http://127.0.0.1:{free_port()}"} for c in yaml.safe_load(HEALTH.read_text())["checks"]]
    rows = json.loads(doctor(write(tmp_path / "h.yaml", checks), "-o", "json", code=6))["services"]
    assert [r["name"] for r in rows] == names and all(r["fix"] for r in rows)


@pytest.mark.parametrize("text, says", [("checks: 3", "checks"), ("checks: [{name: x}]", "url"), ("a: [", "h.yaml")])
def test_a_file_that_is_none(tmp_path, text, says):
    (tmp_path / "h.yaml").write_text(text)
    assert says in doctor(tmp_path / "h.yaml", code=2)


# ---- argusd itself ----

CHECKS = ["store", "ray", "root", "root_test", "root_room", "state_room", "clocks", "ports", "versions", "certificate",
          "tokens", "receivers", "trackers", "prometheus"]  # fmt: skip


def own(argusd, **headers):
    page = argusd.get("/v1/doctor", **headers)
    assert [c["name"] for c in page["checks"]] == CHECKS
    assert page["ill"] == any(c["state"] == "ill" for c in page["checks"])
    assert all(c["fix"] for c in page["checks"] if c["state"] in ("ill", "soon"))
    return {c["name"]: c for c in page["checks"]}


def becomes(argusd, name, state):
    seen = {}

    def look():
        seen["last"] = own(argusd)[name]
        return seen["last"]["state"] == state and seen["last"]

    try:
        return until(look, f"'{name}' is {state}")
    except AssertionError as e:
        raise AssertionError(f"{e}; last: {seen.get('last')}") from None


def of_argusd(argusd, *args, token="admin", lang="C.UTF-8"):
    """(exit status, stdout, stderr)"""
    env = {"HOME": str(argusd.home), "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens[token], "LANG": lang}
    argv = [PROGRAMS["argus"], "doctor", *args]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def w(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        argusd.ray = ray
        becomes(argusd, "ray", "well")
        becomes(argusd, "root_test", "well")
        yield argusd


def test_an_argusd_that_is_well(w):
    seen = own(w)
    for name in ("store", "root", "certificate", "tokens", "receivers", "trackers"):
        assert seen[name]["state"] == "well" and seen[name]["fix"] is None, seen[name]
    for name in ("clocks", "ports", "versions"):
        assert seen[name]["state"] == "unknown", "there is no machine of ours"
    assert w.ray.version in seen["ray"]["text"] and w.ray_url in seen["ray"]["text"]
    assert not list((w.root / "argus").glob(".doctor-*")), "nothing is left of the test of the root"
    code, out, _ = of_argusd(w, "-o", "json")
    page = json.loads(out)
    assert code == (1 if page["ill"] else 0) and [c["name"] for c in page["checks"]] == CHECKS
    _, out, _ = of_argusd(w)
    assert [line.split()[0] for line in out.splitlines()[1:]] == CHECKS
    code, out, said = of_argusd(w, token="user")
    assert code > 1 and not out and said, "it is for admins"


def test_ray_is_away(w):
    w.ray.stop()
    assert w.ray_url in becomes(w, "ray", "ill")["text"]
    assert own(w, **{"Accept-Language": "zh-CN"})["ray"]["fix"].startswith("在头节点")
    code, out, _ = of_argusd(w)
    line = next(line for line in out.splitlines() if line.startswith("ray "))
    assert code == 1 and line.split()[1] == "ill"
    assert "在头节点" in of_argusd(w, "-o", "wide", lang="zh_CN.UTF-8")[1]


def test_the_shared_root_is_away(w):
    w.root.rename(w.home / "away")
    assert "does not exist" in becomes(w, "root", "ill")["text"]
    assert own(w)["root_test"]["state"] == "unknown", "nothing is tried on a root that cannot be used"
    (w.home / "away").rename(w.root)
    becomes(w, "root_test", "well")


# The test of the shared root waits in its second name, and counts how often it was begun.
HOLDS = r"""
int linkat(int from, const char *name, int to, const char *to_name, int flags)
{
    int (*real)(int, const char *, int, const char *, int) = dlsym(RTLD_NEXT, "linkat");
    char path[4096];
    if (strncmp(name, ".doctor-", 8) == 0) {
        snprintf(path, sizeof(path), "%s/begun", getenv("HOLD"));
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (write(fd, "x", 1) != 1) abort();
        close(fd);
        hold();
    }
    return real(from, name, to, to_name, flags);
}
"""


@needs_compiler
def test_a_shared_root_that_hangs_is_tested_once(tmp_path):
    """However many ask: they wait for the same test, and whoever comes after it is late hears that at once."""
    with FakeRay(state=tmp_path / "ray") as ray:
        argusd = Argusd(tmp_path, ray.url)
        argusd.env = held(tmp_path, HOLDS)
        with argusd:
            said = becomes(argusd, "root_test", "ill")
            assert said["code"] == "doctor_rootprobe_late" and said["args"] == {"seconds": 10}, said
            for _ in range(20):
                seen = own(argusd)
                assert seen["root_test"]["state"] == "ill" and seen["state_room"]["state"] == "unknown"
            assert (tmp_path / "begun").read_bytes() == b"x"
            (tmp_path / "free").touch()
            becomes(argusd, "root_test", "well")
            assert not list((argusd.root / "argus").glob(".doctor-*"))


def test_a_token_that_ends_soon(w):
    assert w.call("POST", "/v1/tokens", {"name": "ci", "role": "viewer", "expires": "1h"}, token="user").status == 201
    said = own(w)["tokens"]
    assert said["state"] == "soon" and "'ci' of alice" in said["text"] and said["args"]["n"] == 1, said


def test_a_disk_that_is_nearly_full(tmp_path):
    disk = tmp_path / "disk"
    with (
        small_disk(disk, "200m"),
        FakeRay(state=tmp_path / "ray") as ray,
        Argusd(tmp_path, ray.url, state_dir=disk / "state") as argusd,
    ):
        becomes(argusd, "state_room", "well")
        ballast = fill(disk, 8 << 20)
        assert str(argusd.state_dir) in becomes(argusd, "state_room", "ill")["text"]
        ballast.unlink()
        becomes(argusd, "state_room", "well")


def test_a_receiver_that_takes_nothing(tmp_path):
    with Receiver() as hook, house(tmp_path, {"hook": f'kind: webhook, url: "{hook.url}"'}) as argusd:
        hook.answer = (500, b"no")
        assert argusd.call("POST", "/v1/receivers/hook:test").status < 300
        assert "'hook' has taken no message since" in becomes(argusd, "receivers", "ill")["text"]
        hook.answer = (200, b"{}")
        assert argusd.call("POST", "/v1/receivers/hook:test").status < 300
        becomes(argusd, "receivers", "well")


@needs_compiler
def test_a_machine_s_clock(tmp_path):
    with small_disk(tmp_path / "disk", "100m"), Receiver() as hook, Machine(tmp_path, hook) as argusd:
        becomes(argusd, "clocks", "well")
        argusd.clock.jump(100)
        assert "the clock of head is" in becomes(argusd, "clocks", "ill")["text"]


# ---- the certificate ----


def certify(home, days, name="argus.example.org"):
    """(certificate, key), as files; the certificate ends so many days from now, and has another key each time."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "argus")])
    names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    ends = now + datetime.timedelta(days=days)
    made = (
        x509.CertificateBuilder(who, who, key.public_key(), 7, now - datetime.timedelta(days=400), ends)
        .add_extension(x509.SubjectAlternativeName(names), False)
        .sign(key, hashes.SHA256())
    )
    cert, private = home / "argusd.pem", home / "argusd.key"
    private.touch(0o600)
    plain, pem = serialization.NoEncryption(), serialization.Encoding.PEM
    private.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    cert.write_bytes(made.public_bytes(pem))
    return cert, private


class Secure(Argusd):
    """An argusd that speaks TLS; whether its certificate is good is what is asked, so nobody refuses it here."""

    def open(self, timeout=PATIENCE):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=context)


@contextlib.contextmanager
def secure(home, days):
    cert, key = certify(home, days)
    tls = f"tls: {{cert: {cert}, key: {key}}}"
    with FakeRay(state=home / "ray") as ray, Secure(home, ray.url, more=tls) as argusd:
        yield argusd


def certificate_of(argusd, **headers):
    """The check, once the look was in time."""
    becomes(argusd, "root_test", "well")
    return own(argusd, **headers)["certificate"]


def test_a_certificate_that_is_good(tmp_path):
    with secure(tmp_path, 300) as argusd:
        said = certificate_of(argusd)
        assert (said["state"], said["code"]) == ("well", "doctor_certificate"), said
        ends = datetime.datetime.fromisoformat(said["args"]["at"]) - datetime.datetime.now(datetime.UTC)
        assert 298 < ends.days < 301 and said["args"]["file"] == str(tmp_path / "argusd.pem")
        for host in ("argus.example.org", "ARGUS.example.org:8443", f"127.0.0.1:{argusd.port}", "localhost", "[::1]:1"):
            assert certificate_of(argusd, Host=host)["state"] == "well", host
        for host in ("other.example.org", "192.0.2.1:443", "[2001:db8::1]"):
            said = certificate_of(argusd, Host=host)
            assert (said["state"], said["code"]) == ("ill", "doctor_certificate_name"), said
            assert said["args"]["host"] in host and "subjectAltName" in said["fix"]
        said = certificate_of(argusd, Host="other.example.org", X_Forwarded_For="192.0.2.9")
        assert said["state"] == "well", "people meet the certificate of the server in front"
        said = certificate_of(argusd, Host="other.example.org", Accept_Language="zh")
        assert said["text"].startswith("用户通过 'other.example.org' 访问") and "subjectAltName" in said["fix"]


def test_a_certificate_that_ends_soon_and_is_renewed(tmp_path):
    """The file alone helps nobody: argusd shows the one that it read."""
    with secure(tmp_path, 20) as argusd:
        said = certificate_of(argusd)
        assert (said["state"], said["code"]) == ("soon", "doctor_certificate_soon"), said
        assert said["args"]["days"] == 19 and "tls.cert" in said["fix"]
        certify(tmp_path, 300)
        said = certificate_of(argusd)
        assert (said["state"], said["code"]) == ("soon", "doctor_certificate_renewed"), said
        assert said["args"]["later"] > said["args"]["at"] and "restart argusd" in said["fix"]
        argusd.restart()
        assert certificate_of(argusd)["state"] == "well"


def test_a_certificate_that_is_over(tmp_path):
    with secure(tmp_path, -1) as argusd:
        said = certificate_of(argusd)
        assert (said["state"], said["code"]) == ("ill", "doctor_certificate_over"), said
        certify(tmp_path, 300)
        said = certificate_of(argusd)
        assert (said["state"], said["code"]) == ("ill", "doctor_certificate_renewed"), said


def test_files_with_which_argusd_would_not_start(tmp_path):
    with secure(tmp_path, 300) as argusd:
        key, cert = tmp_path / "argusd.key", tmp_path / "argusd.pem"
        key.chmod(0o644)
        said = certificate_of(argusd)
        assert said["state"] == "ill" and "has mode 644" in said["text"] and said["fix"], said
        key.chmod(0o600)
        assert certificate_of(argusd)["state"] == "well"
        kept = cert.read_bytes()
        cert.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        assert "has no certificate in it" in certificate_of(argusd)["text"]
        cert.unlink()
        said = certificate_of(argusd)
        assert said["state"] == "ill" and "cannot read" in said["text"]
        cert.write_bytes(kept)
        assert certificate_of(argusd)["state"] == "well"


def test_a_door_of_notebooks_is_judged_where_people_reach_it(tmp_path):
    with secure(tmp_path, 300) as argusd:
        tls = argusd.more
        for listens, code in (("0.0.0.0", "doctor_certificate_name"), ("127.0.0.1", "doctor_certificate")):
            door = f'{{listen: "{listens}:{free_port()}", url: "https://nb.example.org"}}'
            argusd.more = f"{tls}\nnotebooks: {door}"
            argusd.write_config()
            argusd.restart()
            said = certificate_of(argusd)
            assert said["code"] == code, said
            assert said["args"].get("host") == ("nb.example.org" if said["state"] == "ill" else None)


class Clear(Argusd):
    """An argusd without TLS that others reach, too."""

    def write_config(self):
        super().write_config()
        self.config.write_text(self.config.read_text().replace("listen: 127.0.0.1:", "listen: 0.0.0.0:"))


def test_clear_text_beyond_this_machine_is_not_well(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Clear(tmp_path, ray.url) as argusd:
        said = own(argusd)["certificate"]
        assert (said["state"], said["code"]) == ("soon", "doctor_certificate_clear"), said
        assert "0.0.0.0" in said["text"] and "tls.cert" in said["fix"]


# ---- servers beside it ----


def test_a_tracker_that_does_not_answer(tmp_path):
    """It is asked without a key whenever somebody asks the doctor, and every answer below 500 is one."""
    gone = free_port()
    with (
        service() as url,
        FakeRay(state=tmp_path / "ray") as ray,
        Argusd(tmp_path, ray.url, more=f'trackers: {{mlflow: "{url}/", wandb: "{url}"}}') as argusd,
    ):
        begun = len(Service.heads)
        said = becomes(argusd, "trackers", "well")
        assert said["args"] == {"names": "wandb, mlflow"}, said
        assert len(Service.heads) > begun
        assert all("Authorization" not in head for head in Service.heads[begun:])
        Service.front = (404, b"no")
        assert own(argusd)["trackers"]["state"] == "well"
        Service.front = (503, b"no")
        said = becomes(argusd, "trackers", "ill")
        assert said["code"] == "doctor_trackers_status" and said["args"]["status"] == 503, said
        Service.front = (200, b"yes")
        becomes(argusd, "trackers", "well")
        argusd.more = f'trackers: {{swanlab: "http://127.0.0.1:{gone}"}}'
        argusd.write_config()
        argusd.restart()
        said = becomes(argusd, "trackers", "ill")
        assert said["code"] == "doctor_trackers_ill" and str(gone) in said["text"], said
        assert "trackers.swanlab" in said["fix"]


def test_a_prometheus_that_reads_or_takes_nothing(tmp_path):
    with Receiver() as hook, FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        said = own(argusd)["prometheus"]
        assert (said["state"], said["code"]) == ("unknown", "doctor_scrape_unseen") and "deploy/observe" in said["fix"]
        assert argusd.call("GET", "/metrics").status == 200
        assert own(argusd)["prometheus"]["code"] == "doctor_scrape"
        hook.answer = (500, b"no")
        argusd.more = f'remote_write: {{url: "{hook.url}", every: 1s}}'
        argusd.write_config()
        argusd.restart()
        said = becomes(argusd, "prometheus", "ill")
        assert said["code"] == "doctor_push_ill" and "status 500" in said["text"], said
        hook.answer = (200, b"")
        assert becomes(argusd, "prometheus", "well")["code"] == "doctor_push"
