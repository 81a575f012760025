# SPDX-License-Identifier: Apache-2.0
"""The import tool against servers that others wrote: S3 by moto, which checks each signature with botocore's own code,
FTP and FTPS by pyftpdlib, SFTP by OpenSSH's sshd. How these break off in the middle is in test_import_remote.py."""

import contextlib
import datetime
import getpass
import ipaddress
import json
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time

import pytest
from importing import Bed, hash_of, put_files, tree_of
from ports import free_port

FILES = {
    "train.jsonl": b'{"a": 1}\n' * 50,
    "sub/big.bin": bytes(range(256)) * 20000,
    "sub/a b+c&d=%41 'ä'.txt": b"a name that must be quoted",
    "sub/deeper/still/one.txt": b"1",
    "sub/empty": b"",
}
SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


@pytest.fixture
def bed(tmp_path):
    return Bed(tmp_path)


@pytest.fixture
def there(tmp_path):
    """The files, on a disk."""
    return put_files(tmp_path / "there", FILES)


# ---- S3 ----


@pytest.fixture(scope="module")
def bucket():
    """(URL, keys that may read) of a server with the files below raw/; three names a page; others are refused."""
    os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = "3"
    import boto3
    import requests
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        url = "http://{}:{}".format(*server.get_host_and_port())
        nobody = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}
        s3 = boto3.client("s3", endpoint_url=url, **nobody)
        s3.create_bucket(Bucket="data")
        for name, data in FILES.items():
            s3.put_object(Bucket="data", Key="raw/" + name, Body=data)
        s3.put_object(Bucket="data", Key="other", Body=b"not below raw/")
        iam = boto3.client("iam", endpoint_url=url, **nobody)
        iam.create_user(UserName="reader")
        may = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [may]})
        iam.put_user_policy(UserName="reader", PolicyName="all", PolicyDocument=policy)
        key = iam.create_access_key(UserName="reader")["AccessKey"]
        # From now on all are checked.
        requests.post(url + "/moto-api/reset-auth", data=b"0", timeout=240).raise_for_status()
        yield url, {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
    finally:
        server.stop()


def test_a_prefix_of_s3(bed, bucket):
    url, keys = bucket
    result = bed.good("s3://data/raw/", endpoint=url, env=keys)
    assert tree_of(bed.goal) == FILES and result["hash"] == hash_of(FILES)
    one = Bed(bed.home / "one")
    one.good("s3://data/raw/sub/big.bin", endpoint=url, env=keys)
    assert tree_of(one.goal) == {"big.bin": FILES["sub/big.bin"]}


def test_s3_refuses(bed, bucket):
    url, keys = bucket
    wrong = {**keys, "AWS_SECRET_ACCESS_KEY": "wrong"}
    assert "AWS_SECRET_ACCESS_KEY" in bed.bad("s3://data/raw/", endpoint=url, env=wrong)
    assert "nothing is at" in bed.bad("s3://data/none/", endpoint=url, env=keys)
    assert "404" in bed.bad("s3://no-such-bucket/raw/", endpoint=url, env=keys)


# ---- FTP ----


def certificate(home):
    """(its file with the key, the file to trust) of 127.0.0.1."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = made.add_extension(address, False).sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (home / "server.pem").write_bytes(private + made)
    (home / "trust.pem").write_bytes(made)
    return home / "server.pem", home / "trust.pem"


@contextlib.contextmanager
def ftp_server(there, pem=None):
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler, TLS_FTPHandler
    from pyftpdlib.servers import FTPServer

    class Handler(TLS_FTPHandler if pem else FTPHandler):
        authorizer = DummyAuthorizer()

    Handler.authorizer.add_user("me", "right", str(there), perm="elr")
    if pem:
        Handler.certfile, Handler.tls_control_required, Handler.tls_data_required = str(pem), True, True
    server = FTPServer(("127.0.0.1", 0), Handler)
    over = threading.Event()

    def serve():
        while not over.is_set():
            server.serve_forever(timeout=0.02, blocking=False, handle_exit=False)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.address[1]}"
    finally:
        over.set()
        thread.join()
        server.close_all()


ME = {"ARGUS_SOURCE_USER": "me", "ARGUS_SOURCE_PASSWORD": "right"}


def test_a_directory_by_ftp(bed, there):
    with ftp_server(there) as at:
        result = bed.good(f"ftp://{at}/", env=ME)
        assert tree_of(bed.goal) == FILES and result["hash"] == hash_of(FILES)
        one = Bed(bed.home / "one")
        one.good(f"ftp://{at}/sub/big.bin", env=ME)
        assert tree_of(one.goal) == {"big.bin": FILES["sub/big.bin"]}
        other = Bed(bed.home / "other")
        assert "does not let us in" in other.bad(f"ftp://{at}/", env={**ME, "ARGUS_SOURCE_PASSWORD": "wrong"})
        assert "cannot be listed" in other.bad(f"ftp://{at}/none", env=ME)


def test_ftps_shows_its_password_to_none_but_the_right_server(bed, there):
    pem, trust = certificate(bed.home)
    with ftp_server(there, pem) as at:
        assert "certificate" in bed.bad(f"ftps://{at}/", env=ME)
        bed.good(f"ftps://{at}/", env={**ME, "SSL_CERT_FILE": str(trust)})
        assert tree_of(bed.goal) == FILES


# ---- SFTP ----


def key_pair(path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path.read_text()


def wait_port(port, server):
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
    raise AssertionError("sshd does not answer")


@pytest.fixture
def sshd(tmp_path):
    """(port, key that it lets in) of an sshd of this user."""
    if not pathlib.Path(SSHD).exists():
        pytest.skip("no sshd here")
    home = tmp_path / "sshd"
    home.mkdir(mode=0o700)
    key_pair(home / "host")
    key = key_pair(home / "client")
    port = free_port()
    (home / "config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {home}/host\nAuthorizedKeysFile {home}/client.pub\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        f"PidFile {home}/pid\nSubsystem sftp internal-sftp\n"
    )
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    with (home / "log").open("w") as log, subprocess.Popen([SSHD, "-D", "-e", "-f", home / "config"], stderr=log) as p:
        try:
            wait_port(port, p)
            yield port, key
        finally:
            p.terminate()


def test_a_directory_by_sftp(bed, there, sshd):
    port, key = sshd
    at = f"sftp://{getpass.getuser()}@127.0.0.1:{port}"
    env = {"ARGUS_SOURCE_KEY": key, "HOME": str(bed.home)}
    result = bed.good(f"{at}{there}", env=env)
    assert tree_of(bed.goal) == FILES and result["hash"] == hash_of(FILES)
    one = Bed(bed.home / "one")
    one.good(f"{at}{there}/sub/big.bin", env=env)
    assert tree_of(one.goal) == {"big.bin": FILES["sub/big.bin"]}
    other = Bed(bed.home / "other")
    assert "is not there" in other.bad(f"{at}{there}/none", env=env)
    stranger = key_pair(bed.home / "stranger")
    assert "ARGUS_SOURCE_KEY" in other.bad(f"{at}{there}", env={**env, "ARGUS_SOURCE_KEY": stranger})
