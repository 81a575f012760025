# SPDX-License-Identifier: Apache-2.0
"""A mail server that we did not write (aiosmtpd, a process of its own), and the line before a mail server.

    with RealMail(tmp_path, refused=["gone@example.org"]) as mail, MailLine(mail.port) as line:
        line.url is where argusd finds the server; line.talks what both have said
        line.hold(200): of the next message 200 bytes pass, and no more; line.held is set then
        line.lose_answer(): the next answer to a whole message does not pass, and the connection ends
        mail.kill(); mail.start()

The options of RealMail are those of maild.py. The mails that it took outlive its process."""

import base64
import contextlib
import datetime
import ipaddress
import json
import pathlib
import socket
import subprocess
import sys
import threading

from ports import free_port

from argusd import until

MAILD = pathlib.Path(__file__).with_name("maild.py")
PIECE = 1 << 16


class RealMail:
    def __init__(self, home, **said):
        self.folder, self.log = pathlib.Path(home) / "mails", pathlib.Path(home) / "maild.log"
        self.port, self.process = free_port(), None
        self.url = f"smtp://127.0.0.1:{self.port}"
        self.at_once = bool(said.get("at_once"))
        self.said = {name: str(v) if isinstance(v, pathlib.Path) else v for name, v in said.items()}

    def __enter__(self):
        self.folder.mkdir()
        return self.start()

    def __exit__(self, *_):
        self.kill()

    def start(self):
        argv = [sys.executable, MAILD, self.folder, json.dumps({"port": self.port, **self.said})]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self.answers, "the mail server answers")
        return self

    def answers(self):
        assert self.process.poll() is None, self.log.read_text()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 10) as s:
            return self.at_once or s.recv(4) == b"220 "

    def kill(self):
        """As when its machine loses power."""
        self.process.kill()
        self.process.wait()

    def mails(self, recipient=None):
        """{to, from, options, tls, user, body}, in order."""
        rows = [json.loads(path.read_text()) for path in sorted(self.folder.iterdir())]
        for row in rows:
            row["body"] = base64.b64decode(row["body"])
        return [row for row in rows if recipient in (None, row["to"])]


class Talk:
    """What was said over one connection: pieces of (whether the client said it, bytes)."""

    def __init__(self):
        self.pieces, self.in_message = [], False

    def note(self, by_client, data):
        if not by_client:
            self.in_message = data.startswith(b"354")
        self.pieces.append((by_client, data))

    def said(self, by_client=True):
        return b"".join(data for who, data in list(self.pieces) if who == by_client)

    def steps(self):
        """[(what the client said, the number that it was answered with)]; a message is one of them, the end is none."""
        steps, said, answer = [], b"", b""
        for by_client, data in [*self.pieces, (True, b"")]:
            if by_client and answer:
                steps.append((said, int(answer.split(b"\r\n")[-2][:3])))
                said = answer = b""
            if by_client:
                said += data
            else:
                answer += data
        return [(said, number) for said, number in steps if not said.upper().startswith(b"QUIT")]


class MailLine:
    """It passes bytes on, and knows of SMTP no more than where a message begins."""

    def __init__(self, port, scheme="smtp"):
        self.goal = ("127.0.0.1", port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{scheme}://127.0.0.1:{self.listener.getsockname()[1]}"
        self.talks, self.open, self.lock = [], set(), threading.Lock()
        self.passing, self.loses, self.is_over = None, False, False
        self.held = threading.Event()

    def __enter__(self):
        threading.Thread(target=self.run, daemon=True).start()
        return self

    def __exit__(self, *_):
        with self.lock:
            self.is_over = True
            left = [self.listener, *self.open]
        for s in left:
            self.end(s)
        self.listener.close()

    def hold(self, n):
        self.held.clear()
        self.passing = n

    def lose_answer(self):
        self.loses = True

    @staticmethod
    def end(*sockets):
        """Both ways, so that who reads there is woken."""
        for s in sockets:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                ours, _ = self.listener.accept()
                threading.Thread(target=self.join, args=(ours,), daemon=True).start()

    def join(self, ours):
        """One connection, to its end."""
        with ours, contextlib.suppress(OSError), socket.create_connection(self.goal) as theirs:
            talk = Talk()
            with self.lock:
                if self.is_over:
                    return
                self.talks.append(talk)
                self.open |= {ours, theirs}
            asks = threading.Thread(target=self.pump, args=(talk, True, ours, theirs), daemon=True)
            asks.start()
            self.pump(talk, False, theirs, ours)
            asks.join()
            with self.lock:
                self.open -= {ours, theirs}

    def pump(self, talk, by_client, source, goal):
        with contextlib.suppress(OSError):
            while data := source.recv(PIECE):
                if by_client and talk.in_message and self.passing is not None:
                    self.hold_here(talk, data, goal)
                    return  # the server's end is the connection's
                lost = not by_client and talk.in_message and self.loses
                talk.note(by_client, data)
                if lost:
                    self.loses = False
                    break
                goal.sendall(data)
        self.end(source, goal)

    def hold_here(self, talk, data, goal):
        data, self.passing = data[: self.passing], None
        talk.note(True, data)
        goal.sendall(data)
        self.held.set()


def authority(home):
    """(certificate, key) of a server at 127.0.0.1, and the authority that signed it, which nobody knows."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def name(text):
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    def made(subject, key, *extensions):
        serial, now, day = x509.random_serial_number(), datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
        b = x509.CertificateBuilder(name("test CA"), name(subject), key.public_key(), serial, now - day, now + day)
        for extension, critical in extensions:
            b = b.add_extension(extension, critical)
        return b.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    cert, private, ca = (pathlib.Path(home) / f for f in ("mail.pem", "mail.key", "ca.pem"))
    ca.write_bytes(made("test CA", ca_key, (x509.BasicConstraints(True, 0), True)))
    cert.write_bytes(made("127.0.0.1", key, (x509.BasicConstraints(False, None), True), (address, False)))
    plain = serialization.NoEncryption()
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return cert, private, ca
