# SPDX-License-Identifier: Apache-2.0
"""The import tool against S3, FTP and SFTP that break off in the middle, and the signature by the published example of
AWS. The servers here are ours, for such faults; those that others wrote are in test_import_servers.py."""

import contextlib
import datetime
import hashlib
import http.server
import os
import pathlib
import socket
import socketserver
import sys
import threading
import urllib.parse

import pytest
from importing import LIB, Bed, hash_of, put_files, tree_of

SERVER = pathlib.Path("/usr/lib/openssh/sftp-server")
FILES = {"train.jsonl": b'{"a": 1}\n' * 50, "sub/big.bin": bytes(range(256)) * 2000, "sub/empty": b""}


@pytest.fixture
def bed(tmp_path):
    return Bed(tmp_path)


@pytest.fixture
def there(tmp_path):
    """The files, on a disk."""
    return put_files(tmp_path / "there", FILES)


@contextlib.contextmanager
def serving(server):
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


# ---- S3 ----


def test_the_signature_is_that_of_the_published_example(monkeypatch):
    monkeypatch.syspath_prepend(str(LIB))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import argus_sources

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2013, 5, 24, tzinfo=tz)

    monkeypatch.setattr(argus_sources.datetime, "datetime", Clock)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    for name in ("AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    order = {"source": "s3://examplebucket/J", "endpoint": "https://examplebucket.s3.amazonaws.com"}
    _, headers = argus_sources.S3Source(order)._signed("/", {"max-keys": "2", "prefix": "J"})
    assert headers["Authorization"].endswith(
        "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    )


class S3(http.server.BaseHTTPRequestHandler):
    """Two names a page; refuses what is not signed."""

    objects, cuts = {}, []

    def log_message(self, *args):
        pass

    def do_GET(self):
        at = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(at.query))
        if "Credential=key/" not in self.headers.get("Authorization", ""):
            return self.send(403, b"<Error/>")
        if at.path == "/bucket":
            return self.send(200, self.page(query))
        name = urllib.parse.unquote(at.path[len("/bucket/") :])
        data, status = self.objects[name], 200
        headers = {"ETag": f'"{hashlib.md5(data).hexdigest()}"'}
        if self.headers.get("Range"):
            start = int(self.headers["Range"][len("bytes=") :].rstrip("-"))
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            data, status = data[start:], 206
        return self.send(status, data, headers, self.cuts.pop() if self.cuts and len(data) > 1000 else None)

    def page(self, query):
        names = [n for n in sorted(self.objects) if n.startswith(query.get("prefix", ""))]
        start = int(query.get("continuation-token", 0))
        rows = "".join(
            f"<Contents><Key>{n}</Key><Size>{len(self.objects[n])}</Size>"
            f"<ETag>&quot;{hashlib.md5(self.objects[n]).hexdigest()}&quot;</ETag></Contents>"
            for n in names[start : start + 2]
        )
        more = f"<NextContinuationToken>{start + 2}</NextContinuationToken>" if start + 2 < len(names) else ""
        space = "http://s3.amazonaws.com/doc/2006-03-01/"
        return f'<?xml version="1.0"?><ListBucketResult xmlns="{space}">{rows}{more}</ListBucketResult>'.encode()

    def send(self, status, body, headers=(), cut=None):
        self.send_response(status)
        for key, value in dict(headers).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])


def test_a_prefix_of_s3(bed):
    S3.objects = {"raw/" + name: data for name, data in FILES.items()} | {"raw/": b"", "other": b"no"}
    S3.cuts = [1000]
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), S3)) as s3:
        url = f"http://127.0.0.1:{s3.server_port}"
        result = bed.good("s3://bucket/raw/", endpoint=url, env=keys)
        assert tree_of(bed.goal) == FILES and result["hash"] == hash_of(FILES)
        other = Bed(bed.home / "other")
        assert "give the keys as secrets" in other.bad("s3://bucket/raw/", endpoint=url)
        assert "nothing is at" in other.bad("s3://bucket/none/", endpoint=url, env=keys)


# ---- FTP ----


class Ftp(socketserver.StreamRequestHandler):
    root, cuts = None, []

    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def handle(self):
        self.here, self.rest, self.door, self.is_text = "/", 0, None, True
        self.say("220 ready")
        for line in self.rfile:
            verb, _, arg = line.decode().strip().partition(" ")
            if verb == "QUIT":
                return
            getattr(self, "do_" + verb, lambda _: self.say("502 no such verb"))(arg)

    def path(self, arg):
        return self.root / os.path.normpath(os.path.join(self.here, arg)).lstrip("/")

    def do_USER(self, arg):
        self.say("331 and the password")

    def do_PASS(self, arg):
        self.say("230 in" if arg == "right" else "530 not so")

    def do_TYPE(self, arg):
        self.is_text = arg != "I"
        self.say("200 fine")

    def do_PWD(self, arg):
        self.say(f'257 "{self.here}" is here')

    def do_CWD(self, arg):
        if not self.path(arg).is_dir():
            return self.say("550 no directory")
        self.here = os.path.normpath(os.path.join(self.here, arg))
        return self.say("250 there")

    def do_SIZE(self, arg):
        if self.is_text:
            return self.say("550 SIZE not allowed in ASCII mode.")
        return self.say(f"213 {self.path(arg).stat().st_size}" if self.path(arg).is_file() else "550 no file")

    def do_REST(self, arg):
        self.rest = int(arg)
        self.say("350 from there")

    def do_PASV(self, arg):
        self.door = socket.create_server(("127.0.0.1", 0))
        port = self.door.getsockname()[1]
        self.say(f"227 (127,0,0,1,{port >> 8},{port & 255})")

    def transfer(self, data):
        self.say("150 comes")
        connection, _ = self.door.accept()
        connection.sendall(data)
        connection.close()
        self.door.close()
        self.say("226 done")

    def do_NLST(self, arg):
        self.transfer("".join(f"{n}\r\n" for n in sorted(os.listdir(self.path("")))).encode())

    def do_RETR(self, arg):
        if not self.path(arg).is_file():
            return self.say("550 no file")
        data, self.rest = self.path(arg).read_bytes()[self.rest :], 0
        return self.transfer(data[: self.cuts.pop()] if self.cuts and len(data) > 1000 else data)


def test_a_directory_by_ftp(bed, there):
    Ftp.root, Ftp.cuts = there, [1000, 0]
    env = {"ARGUS_SOURCE_USER": "me", "ARGUS_SOURCE_PASSWORD": "right"}
    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Ftp)) as ftp:
        ftp.daemon_threads = True
        url = f"ftp://127.0.0.1:{ftp.server_address[1]}"
        result = bed.good(url + "/sub/..", env=env)
        assert tree_of(bed.goal) == FILES and result["hash"] == hash_of(FILES)
        one = Bed(bed.home / "one")
        one.good(url + "/sub/big.bin", env=env)
        assert tree_of(one.goal) == {"big.bin": FILES["sub/big.bin"]}
        other = Bed(bed.home / "other")
        assert "does not let us in" in other.bad(url + "/sub", env={**env, "ARGUS_SOURCE_PASSWORD": "wrong"})
        assert "cannot be listed" in other.bad(url + "/none", env=env)


# ---- SFTP ----


@pytest.mark.skipif(not SERVER.exists(), reason="no sftp-server of OpenSSH here")
def test_a_directory_by_sftp(bed, there):
    """`ssh` is a stand-in that runs OpenSSH's sftp-server here; once it dies in the middle."""
    bin_dir = bed.home / "bin"
    bin_dir.mkdir()
    ssh = bin_dir / "ssh"
    ssh.write_text(
        f'#!/bin/sh\necho "$@" >> {bed.home}/calls\n'
        'case "$*" in *denied*) echo "me@denied: Permission denied (publickey)." >&2; exit 255;; esac\n'
        f"exec {SERVER}\n"
    )
    ssh.chmod(0o755)
    env = {"PATH": f"{bin_dir}:{os.environ['PATH']}", "ARGUS_SOURCE_KEY": "a key"}
    result = bed.good(f"sftp://me@host:2222{there}", env=env)
    assert tree_of(bed.goal) == FILES and result["hash"] == hash_of(FILES)
    calls = (bed.home / "calls").read_text()
    assert "-p 2222" in calls and "me@host sftp" in calls and "BatchMode=yes" in calls and "argus-key-" in calls
    one = Bed(bed.home / "one")
    one.good(f"sftp://host{there}/sub/big.bin", env=env)
    assert tree_of(one.goal) == {"big.bin": FILES["sub/big.bin"]}
    other = Bed(bed.home / "other")
    assert "Permission denied" in other.bad(f"sftp://me@denied{there}", env=env)
    assert "is not there" in other.bad(f"sftp://host{there}/none", env=env)
