# SPDX-License-Identifier: Apache-2.0
"""Sources that do not speak HTTP: FTP and FTPS by the standard library, SFTP by the node's OpenSSH client.

Of SFTP only what is needed, version 3 of the protocol, spoken to `ssh -s HOST sftp`: keys, known hosts and jumps are
those that ssh uses. See argus_sources.py for what a source is.
"""

import ftplib
import os
import re
import shutil
import ssl
import stat
import struct
import subprocess
import tempfile
import urllib.parse

from argus_sources import FILES_MAX, TIMEOUT, Again, Body, Fail, Item

DEPTH_MAX = 32
PACKET_MAX = 1 << 20
READ_BYTES = 32 << 10
AHEAD = 32  # reads under way
NAMES_MAX = 200000


def where(order, takes_all=False):
    at = urllib.parse.urlsplit(order["source"])
    path = urllib.parse.unquote(at.path)
    if not at.hostname or not path.strip("/") and not (takes_all and path):
        raise Fail(f"'{order['source']}' is not {at.scheme}://host/path")
    return at, path


# ---- FTP ----


class FtpSource:
    def __init__(self, order):
        self.at, self.path = where(order, takes_all=True)
        self.user = os.environ.get("ARGUS_SOURCE_USER") or self.at.username or "anonymous"
        self.password = os.environ.get("ARGUS_SOURCE_PASSWORD", "argus@")
        self.seen = 0

    def pin(self):
        return None

    def connect(self):
        if self.at.scheme == "ftps":  # the library by itself looks at no certificate; SSL_CERT_FILE names a private CA
            ftp = ftplib.FTP_TLS(timeout=TIMEOUT, context=ssl.create_default_context())
        else:
            ftp = ftplib.FTP(timeout=TIMEOUT)
        try:
            ftp.connect(self.at.hostname, self.at.port or 21)
            ftp.login(self.user, self.password)
            if self.at.scheme == "ftps":
                ftp.prot_p()
            ftp.voidcmd("TYPE I")
            return ftp
        except ftplib.error_perm as e:
            raise Fail(
                f"'{self.at.hostname}' does not let us in ({e}): give user and password as secrets "
                "ARGUS_SOURCE_USER and ARGUS_SOURCE_PASSWORD"
            ) from None
        except ssl.SSLCertVerificationError as e:
            raise Fail(
                f"'{self.at.hostname}': {e.verify_message}: the certificate is not one that this node trusts"
            ) from None
        except ftplib.all_errors as e:
            raise Again(f"'{self.at.hostname}' cannot be reached: {e}") from None

    def items(self):
        ftp = self.connect()
        try:
            size = self.size_of(ftp, self.path)
            if size is not None:
                return [Item(self.path.rpartition("/")[2], size, None, self.path)]
            out = list(self.walk(ftp, self.path.rstrip("/"), "", 0))
        except ftplib.error_perm as e:
            raise Fail(f"'{self.path}' cannot be listed: {e}") from None
        except ftplib.all_errors as e:
            raise Again(f"'{self.at.hostname}' broke off: {e}") from None
        finally:
            ftp.close()
        if not out:
            raise Fail(f"nothing is at '{self.path}'")
        return out

    @staticmethod
    def size_of(ftp, path):
        """None: it is a directory."""
        here = ftp.pwd()
        try:
            ftp.cwd(path)
            ftp.cwd(here)
            return None
        except ftplib.error_perm:
            return ftp.size(path)

    def names(self, ftp, directory):
        out = []

        def take(line):
            self.seen += 1
            if self.seen > NAMES_MAX:
                raise Fail(f"'{self.at.hostname}' lists more than {NAMES_MAX} names")
            out.append(line.rstrip("/").rpartition("/")[2])

        ftp.cwd(directory or "/")
        ftp.retrlines("NLST", take)
        ftp.voidcmd("TYPE I")  # the list set it to text, in which many servers tell no sizes
        return [n for n in out if n not in ("", ".", "..")]

    def walk(self, ftp, top, below, depth):
        if depth > DEPTH_MAX:
            raise Fail(f"'{top}' is deeper than {DEPTH_MAX} directories")
        for n, name in enumerate(sorted(self.names(ftp, top))):
            path, relative = f"{top}/{name}", f"{below}/{name}".lstrip("/")
            size = self.size_of(ftp, path)
            if n > FILES_MAX:
                raise Fail(f"'{top}' holds more than {FILES_MAX} files")
            if size is None:
                yield from self.walk(ftp, path, relative, depth + 1)
            else:
                yield Item(relative, size, None, path)

    def open(self, item, offset, validator):
        ftp = self.connect()
        try:
            connection = ftp.transfercmd("RETR " + item.where, offset or None)
        except ftplib.error_perm as e:
            raise Fail(f"'{item.where}' is not given: {e}") from None
        except ftplib.all_errors as e:
            raise Again(f"'{item.where}': {e}") from None

        def read(n):
            try:
                return connection.recv(n)
            except OSError as e:
                raise Again(f"'{item.where}' broke off: {e}") from None

        def close():
            connection.close()
            ftp.close()

        return Body(read, offset, item.size, None, close)


# ---- SFTP ----

INIT, VERSION, OPEN, CLOSE, READ, OPENDIR, READDIR, STAT = 1, 2, 3, 4, 5, 11, 12, 17
STATUS, HANDLE, DATA, NAME, ATTRS = 101, 102, 103, 104, 105
EOF, NO_SUCH_FILE, DENIED = 1, 2, 3


def text(data):
    return struct.pack(">I", len(data)) + data


class Reader:
    """The fields of one packet."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if n > len(self.data) - self.at:
            raise Again("the SFTP server sent a torn packet")
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, size=4):
        return int.from_bytes(self.take(size), "big")

    def string(self):
        return self.take(self.number())

    def attributes(self):
        """(size, mode); None for what is not said."""
        flags = self.number()
        size = self.number(8) if flags & 1 else None
        if flags & 2:
            self.take(8)
        mode = self.number() if flags & 4 else None
        if flags & 8:
            self.take(8)
        if flags & 0x80000000:
            for _ in range(min(self.number(), 1000)):
                self.string()
                self.string()
        return size, mode


class Session:
    def __init__(self, argv):
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  (close() ends it)
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        self.last = 0
        self.send(INIT, struct.pack(">I", 3), False)
        kind, _ = self.receive()
        if kind != VERSION:
            raise self.trouble("it does not speak SFTP")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()
        self.errors.close()

    def trouble(self, what):
        self.errors.seek(0)
        said = self.errors.read(4096).decode(errors="replace").strip().splitlines()
        line = said[-1] if said else what
        final = re.search(
            r"[Pp]ermission denied|[Hh]ost key verification|REMOTE HOST IDENTIFICATION|not "
            "resolve",
            " ".join(said),
        )
        return Fail(f"ssh: {line}: give the key as secret ARGUS_SOURCE_KEY") if final else Again(f"ssh: {line}")

    def send(self, kind, body, numbered=True):
        self.last += numbered
        head = struct.pack(">I", self.last) if numbered else b""
        try:
            self.process.stdin.write(struct.pack(">IB", 1 + len(head) + len(body), kind) + head + body)
            self.process.stdin.flush()
        except OSError:
            raise self.trouble("the connection broke off") from None
        return self.last

    def exactly(self, n):
        data = self.process.stdout.read(n)
        if len(data) != n:
            self.process.wait()
            raise self.trouble("the connection broke off")
        return data

    def receive(self):
        length = int.from_bytes(self.exactly(4), "big")
        if not 1 <= length <= PACKET_MAX:
            raise Fail(f"the SFTP server sent a packet of {length} bytes")
        data = self.exactly(length)
        return data[0], Reader(data[1:])

    def ask(self, kind, body):
        self.send(kind, body)
        kind, r = self.receive()
        r.number()
        return kind, r

    def stat(self, path):
        kind, r = self.ask(STAT, text(path))
        return r.attributes() if kind == ATTRS else (None, None)

    def handle(self, kind, body, path):
        kind, r = self.ask(kind, body)
        if kind != HANDLE:
            raise Fail(f"'{path.decode(errors='replace')}' cannot be opened by SFTP")
        return r.string()

    def list(self, path):
        handle, out = self.handle(OPENDIR, text(path), path), []
        while True:
            kind, r = self.ask(READDIR, text(handle))
            if kind != NAME:
                break
            for _ in range(r.number()):
                name = r.string()
                r.string()
                out.append((name, r.attributes()))
                if len(out) > NAMES_MAX:
                    raise Fail(f"'{path.decode(errors='replace')}' holds more than {NAMES_MAX} names")
        self.ask(CLOSE, text(handle))
        return sorted(x for x in out if x[0] not in (b".", b".."))


class SftpSource:
    def __init__(self, order):
        self.at, self.path = where(order)
        if self.at.password:
            raise Fail("SFTP takes a key and no password: give it as secret ARGUS_SOURCE_KEY")
        if self.path.startswith("/~/"):
            self.path = self.path[3:]
        self.known = os.path.join(order["staging"], "known_hosts")
        self.key = None
        if not shutil.which("ssh"):
            raise Fail("this node has no 'ssh': install the OpenSSH client, or choose a pool that has it")

    def pin(self):
        return None

    def session(self):
        host = (self.at.username + "@" if self.at.username else "") + self.at.hostname
        if host.startswith("-"):
            raise Fail(f"'{host}' is not a valid host")
        argv = ["ssh", "-oBatchMode=yes", f"-oConnectTimeout={TIMEOUT}", "-oServerAliveInterval=15"]
        argv += ["-oStrictHostKeyChecking=accept-new", f"-oUserKnownHostsFile={self.known} ~/.ssh/known_hosts"]
        if self.at.port:
            argv += ["-p", str(self.at.port)]
        if os.environ.get("ARGUS_SOURCE_KEY"):
            if self.key is None:
                self.key = tempfile.NamedTemporaryFile("w", prefix="argus-key-")  # noqa: SIM115  (0600, gone with us)
                self.key.write(os.environ["ARGUS_SOURCE_KEY"].strip() + "\n")
                self.key.flush()
            argv += ["-i", self.key.name, "-oIdentitiesOnly=yes"]
        return Session([*argv, "-s", "--", host, "sftp"])

    def items(self):
        session = self.session()
        try:
            top = self.path.encode()
            size, mode = session.stat(top)
            if mode is None:
                raise Fail(f"'{self.path}' is not there")
            if not stat.S_ISDIR(mode):
                return [Item(self.path.rpartition("/")[2], size, None, self.path)]
            out = list(self.walk(session, top.rstrip(b"/"), b"", 0))
        finally:
            session.close()
        if not out:
            raise Fail(f"'{self.path}' holds no files")
        return out

    def walk(self, session, top, below, depth):
        if depth > DEPTH_MAX:
            raise Fail(f"'{top.decode(errors='replace')}' is deeper than {DEPTH_MAX} directories")
        for n, (name, (size, mode)) in enumerate(session.list(top)):
            path, relative = top + b"/" + name, (below + b"/" + name).lstrip(b"/")
            if b"/" in name or n > FILES_MAX:
                raise Fail(f"'{top.decode(errors='replace')}' has a name that is none, or more than {FILES_MAX} files")
            if mode is not None and stat.S_ISDIR(mode):
                yield from self.walk(session, path, relative, depth + 1)
            elif mode is not None and stat.S_ISREG(mode):
                try:
                    yield Item(relative.decode(), size, None, path.decode())
                except UnicodeDecodeError:
                    raise Fail(f"the source names a file {relative[:200]!r}, which is not UTF-8") from None

    def open(self, item, offset, validator):
        session = self.session()
        path = item.where.encode()
        try:
            handle = session.handle(OPEN, text(path) + struct.pack(">II", 1, 0), path)
        except Exception:
            session.close()
            raise
        ends = {"asked": offset, "under_way": 0}

        def ask():
            size = min(READ_BYTES, item.size - ends["asked"])
            if size > 0 and ends["under_way"] < AHEAD:
                session.send(READ, text(handle) + struct.pack(">QI", ends["asked"], size))
                ends["asked"] += size
                ends["under_way"] += 1
            return size > 0 and ends["under_way"] < AHEAD

        def read(_):
            while ask():
                pass
            if not ends["under_way"]:
                return b""
            ends["under_way"] -= 1
            kind, r = session.receive()
            r.number()
            if kind != DATA:
                raise Again(f"'{item.where}' ended early")
            data, want = r.string(), READ_BYTES
            last = ends["asked"] >= item.size and not ends["under_way"]
            if len(data) < want and not last:
                raise Again(f"'{item.where}' came in pieces that do not fit")
            return data

        return Body(read, offset, item.size, None, session.close)
