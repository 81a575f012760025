# SPDX-License-Identifier: Apache-2.0
"""Snapshots for tests: an archive made here, sent as an upload, named."""

import io
import tarfile
import zipfile


def tar(files, mode="w"):
    """{name: text, or (kind, text)} as a tar; kind: "x" a program, "l" a link."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=tarfile.PAX_FORMAT) as t:
        for name, what in files.items():
            kind, text = what if isinstance(what, tuple) else ("f", what)
            info = tarfile.TarInfo(name)
            info.mode = 0o755 if kind == "x" else 0o644
            if kind == "l":
                info.type, info.linkname = tarfile.SYMTYPE, text
                t.addfile(info)
            else:
                info.size = len(text.encode())
                t.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for name, text in files.items():
            z.writestr(name, text)
    return out.getvalue()


def verl(version, marker="here"):
    """A tree that looks like verl of this version."""
    return {"verl/__init__.py": f"MARKER = {marker!r}\n", "verl/version/version": version + "\n"}


def upload(argusd, data, token="user"):
    reply = argusd.call("POST", "/v1/uploads", {"name": "archive", "bytes": len(data)}, token=token)
    assert reply.status == 201, reply
    name = reply.json()["id"]
    if data:
        reply = argusd.call(
            "PUT", f"/v1/uploads/{name}?offset=0", data, token=token, Content_Type="application/octet-stream"
        )
        assert reply.status == 200, reply
    return name


def add(argusd, name, data, token="user", **more):
    """The reply to making a snapshot of this archive."""
    body = {"name": name, "upload": upload(argusd, data, token), **more}
    return argusd.call("POST", "/v1/snapshots", body, token=token)


def added(argusd, name, data, token="user", **more):
    reply = add(argusd, name, data, token, **more)
    assert reply.status == 201, reply
    return reply.json()
