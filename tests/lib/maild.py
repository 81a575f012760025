# SPDX-License-Identifier: Apache-2.0
"""The process of realmail.py: aiosmtpd as it is. `maild.py FOLDER OPTIONS`, the options as JSON: port, refused
(addresses), deferred ({address: how often}), busy (how many whole messages are put off), size (bytes), cert and key,
at_once (TLS from the first byte on), user and password, plain_login (taken without STARTTLS, too).

Each mail that it took is a file of FOLDER per recipient, with how it came."""

import asyncio
import base64
import json
import os
import pathlib
import ssl
import sys

from aiosmtpd.smtp import SMTP


class Keeper:
    def __init__(self, folder, said):
        self.folder = pathlib.Path(folder)
        self.refused, self.deferred, self.busy = said.get("refused", []), said.get("deferred", {}), said.get("busy", 0)

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802, the name is aiosmtpd's
        if address in self.refused:
            return "550 5.1.1 no such user here"
        if self.deferred.get(address, 0) > 0:
            self.deferred[address] -= 1
            return "451 4.7.1 come back later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):  # noqa: N802
        if self.busy > 0:
            self.busy -= 1
            return "451 4.3.0 come back later"
        for address in envelope.rcpt_tos:
            self.keep(address, server, session, envelope)
        return "250 OK"

    def keep(self, address, server, session, envelope):
        """Whole or not at all: whoever looks may look at any time."""
        login = session.auth_data
        row = {
            "to": address,
            "from": envelope.mail_from,
            "options": envelope.mail_options,
            "tls": server.transport.get_extra_info("cipher") is not None,
            "user": login.login.decode() if login else None,
            "body": base64.b64encode(envelope.original_content).decode(),
        }
        path = self.folder / f"{len(os.listdir(self.folder)):06}.json"
        new = self.folder.parent / (self.folder.name + ".new")
        new.write_text(json.dumps(row))
        new.rename(path)


def tls_of(said):
    if "cert" not in said:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(said["cert"], said["key"])
    return context


def options_of(said):
    """Of aiosmtpd. It tells TLS by its own STARTTLS alone, so that with TLS from the first byte on a login has to be
    allowed as if there were none."""
    tls = tls_of(said)
    options = {"data_size_limit": said.get("size", 1 << 25), "hostname": "mail.example.org"}
    if tls and not said.get("at_once"):
        options["tls_context"] = tls
    if "user" in said:
        right = (said["user"].encode(), said["password"].encode())
        options["auth_callback"] = lambda mechanism, *login: login == right
        options["auth_required"] = True
        options["auth_require_tls"] = not (said.get("at_once") or said.get("plain_login"))
    return options, tls if said.get("at_once") else None


async def serve(folder, said):
    keeper = Keeper(folder, said)
    options, tls = options_of(said)
    loop = asyncio.get_running_loop()
    new = lambda: SMTP(keeper, loop=loop, **options)  # noqa: E731
    server = await loop.create_server(new, "127.0.0.1", said["port"], ssl=tls)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], json.loads(sys.argv[2])))
