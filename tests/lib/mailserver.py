# SPDX-License-Identifier: Apache-2.0
"""A mail server of the standard library alone: it takes, defers or refuses each recipient as the test says, and keeps
the mails that it took as they came over the wire. test_mail_real.py holds what it says against a real server."""

import email
import email.policy
import socketserver
import threading


class Dialogue(socketserver.StreamRequestHandler):
    def say(self, line):
        self.wfile.write(line.encode() + b"\r\n")

    def take_body(self):
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line[1:] if line.startswith(b".") else line)
        return b"".join(lines)

    def judge(self, address):
        mail = self.server.mail
        if address in mail.refused:
            return "550 5.1.1 no such user here"
        if mail.deferred.get(address, 0) > 0:
            mail.deferred[address] -= 1
            return "451 4.7.1 come back later"
        return "250 ok"

    def handle(self):
        recipients = []
        self.say("220 test ESMTP")
        while line := self.rfile.readline():
            verb, _, rest = line.decode().strip().partition(" ")
            verb = verb.upper()
            if verb in ("EHLO", "HELO"):
                self.say("250 test")
            elif verb == "RCPT":
                address = rest.partition("<")[2].partition(">")[0]
                answer = self.judge(address)
                self.server.mail.asked.append(address)
                recipients += [address] if answer.startswith("250") else []
                self.say(answer)
            elif verb == "DATA" and recipients:
                self.say("354 go on")
                body = self.take_body()
                self.server.mail.took += [(address, body) for address in recipients]
                recipients = []
                self.say("250 taken")
            elif verb == "DATA":
                self.say("554 no valid recipients")
            elif verb == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 ok")


class MailServer:
    """took: (recipient, the message's bytes); asked: each recipient that was named, in order."""

    def __init__(self, refused=(), deferred=None):
        self.refused, self.deferred = set(refused), dict(deferred or {})
        self.took, self.asked = [], []
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Dialogue)
        self.server.daemon_threads = True
        self.server.mail = self
        self.url = f"smtp://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *args):
        self.server.shutdown()
        self.server.server_close()

    def mails(self, recipient):
        """Parsed, as its client would."""
        raw = [b for to, b in list(self.took) if to == recipient]
        return [email.message_from_bytes(b, policy=email.policy.default) for b in raw]
