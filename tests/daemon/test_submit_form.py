# SPDX-License-Identifier: Apache-2.0
"""A submit that comes as a form, of the real argusd: the archive becomes the job's snapshot, or nothing is left of it;
forms that are broken, cut, twice, too large or hostile; curl's own."""

import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile

import pytest
from fakeray import FakeRay
from snapshots import added, tar, verl, zipped

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd

LIMITS = "uploads: {max_size: 8MiB, per_user: 12MiB, total: 16MiB}"
RUN = "workload: ray\nentrypoint: cat part.txt && pwd\n"


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("form"), ray.url, LIMITS) as argusd:
        argusd.wait_over(argusd.submit("true"))  # the root was looked at
        yield argusd


def part(name, data, file=None, head=b""):
    data = data.encode() if isinstance(data, str) else data
    where = f'; filename="{file}"' if file else ""
    line = f'Content-Disposition: form-data; name="{name}"{where}\r\n'.encode()
    return b"--XX\r\n" + line + head + b"\r\n" + data + b"\r\n"


def form(*parts):
    return b"".join(parts) + b"--XX--\r\n"


def post(argusd, body, query="", token="user", boundary="boundary=XX", **headers):
    return argusd.call(
        "POST", f"/v1/jobs{query}", body, token=token, Content_Type=f"multipart/form-data; {boundary}", **headers
    )


def left(argusd):
    """What is kept of archives: contents, and bytes of uploads."""
    found = [p for below in ("snapshots", "uploads") for p in (argusd.root / "argus" / below).glob("*")]
    return sorted(str(p) for p in found)


def more(argusd, before):
    """What came since; something of an earlier test may go meanwhile."""
    return sorted(set(left(argusd)) - set(before))


def problem(reply, status, code):
    of_class = reply.json()["type"].removeprefix("urn:argus:problem:")  # its code names the sentence
    assert (reply.status, of_class) == (status, code), reply
    return reply.json()["detail"]


def newest(argusd):
    return [j["id"] for j in argusd.get("/v1/jobs?limit=1", token="user")["jobs"]]


def spec_of(job):
    return json.loads(job["spec"])


def names(argusd):
    return [s["name"] for s in argusd.get("/v1/snapshots", token="user")["snapshots"]]


@pytest.mark.parametrize("first", ["spec", "code"])
def test_an_archive_is_the_working_dir(argusd, first):
    parts = [part("spec", RUN), part("code", zipped({"part.txt": f"hello {first}\n"}), "My Code.zip")]
    reply = post(argusd, form(*(parts if first == "spec" else reversed(parts))))
    assert reply.status == 201, reply
    job = argusd.wait_over(reply.json()["id"])
    assert job["state"] == "SUCCEEDED"
    log = argusd.call("GET", f"/v1/jobs/{job['id']}/logs", token="user").body.decode()
    assert f"hello {first}" in log and "/argus/snapshots/" in log
    name = spec_of(job)["working_dir"]
    assert name.startswith("my-code@") and name in names(argusd)
    kinds = [(e["kind"], e["actor"]) for e in argusd.get("/v1/events?limit=1000")["events"]]
    assert ("snapshot_added", "alice") in kinds
    until(lambda: not list((argusd.root / "argus/uploads").glob("*")), "the archive itself is removed")


def test_it_can_be_the_code(argusd):
    spec = f"workload: ray\nentrypoint: 'true'\ncode: .\nworking_dir: {argusd.root}/common/code\n"
    body = form(part("code", tar(verl("0.9.1"), "w:gz"), "verl.tar.gz"), part("spec", spec))
    job = argusd.get(f"/v1/jobs/{post(argusd, body).json()['id']}", token="user")
    assert spec_of(job)["code"].startswith("verl@")
    spec = "{workload: ray, entrypoint: 'true', working_dir: ., submission_id: named-so}"
    body = form(part("spec", spec), part("code", tar({"a": "1"})))
    assert post(argusd, body).json()["id"] == "named-so"
    assert spec_of(argusd.get("/v1/jobs/named-so", token="user"))["working_dir"].startswith("code@")


def test_the_same_twice_is_one_content(argusd):
    body = form(part("spec", RUN), part("code", zipped({"part.txt": "twice\n"})))
    assert post(argusd, body).status == 201
    until(lambda: not list((argusd.root / "argus/uploads").glob("*")), "the archive is gone")
    before = left(argusd)
    again = form(part("spec", RUN), part("code", tar({"part.txt": "twice\n"}), "code.tar"))
    assert post(argusd, again).status == 201
    until(lambda: left(argusd) == before, "nothing was added")


def test_the_same_request_is_the_same_job(argusd):
    def send(text, boundary):
        body = form(part("spec", RUN), part("code", tar({"part.txt": text})))
        return post(argusd, body.replace(b"--XX", b"--" + boundary.encode()), boundary=f"boundary={boundary}",
                    Idempotency_Key="one")  # fmt: skip

    first = send("once\n", "XX")
    assert first.status == 201
    again = send("once\n", "another")
    assert (again.status, again.json()["id"]) == (200, first.json()["id"])
    problem(send("other\n", "XX"), 409, "conflict")
    until(lambda: not list((argusd.root / "argus/uploads").glob("*")), "nothing is left of the others")


def test_a_dry_run_leaves_nothing(argusd):
    before, shown = left(argusd), names(argusd)
    body = form(part("spec", RUN), part("code", zipped({"part.txt": "dry\n"})))
    reply = post(argusd, body, "?dry_run=1")
    assert reply.status == 200 and reply.json()["resolved_spec"]["working_dir"].startswith(str(argusd.root))
    until(lambda: not more(argusd, before), "nothing is left")
    assert names(argusd) == shown
    # It can come again at once, also while the first is being removed.
    assert post(argusd, body, "?dry_run=1").status == 200
    assert post(argusd, body).status == 201
    assert [n for n in names(argusd) if n not in shown]


def test_a_refused_spec_leaves_nothing(argusd):
    before = left(argusd)
    code = part("code", zipped({"part.txt": "refused\n"}))
    bad = part("spec", "workload: ray\nentrypoint: 'true'\nnnodse: 3\n")
    refusal = post(argusd, form(bad, code))
    assert "nnodse" in problem(refusal, 422, "bad_spec")
    assert refusal.json()["problems"][0]["line"] == 3
    detail = problem(post(argusd, form(part("spec", RUN + "working_dir: /x\n"), code)), 422, "bad_spec")
    assert "an archive came too" in detail
    problem(post(argusd, form(part("spec", RUN + "code: .\nworking_dir: .\n"), code)), 422, "bad_spec")
    late = part("spec", RUN + "secrets: [NOT_THERE]\n")  # found after the archive was unpacked
    problem(post(argusd, form(late, code)), 422, "bad_spec")
    assert "preset" in problem(post(argusd, form(part("spec", "preset: none\n"), code)), 422, "bad_spec")
    until(lambda: not more(argusd, before), "nothing is left")
    # What was refused in one submit stays another's.
    assert post(argusd, form(part("spec", RUN), code)).status == 201
    kept = until(lambda: len(more(argusd, before)) == 1 and left(argusd), "its content alone is there")
    problem(post(argusd, form(late, code)), 422, "bad_spec")
    mine = added(argusd, "mine@1", tar({"part.txt": "refused\n"}))
    until(lambda: not more(argusd, kept), "it is the same content")
    assert any(mine["hash"] in p for p in left(argusd))


def bomb():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        info = tarfile.TarInfo("zeros")
        info.size = 80 << 20
        t.addfile(info, io.BytesIO(bytes(info.size)))
    return out.getvalue()


@pytest.mark.parametrize(
    ("why", "data"),
    [("only a bomb", bomb), ("cut off", lambda: tar({"a": "x" * 5000})[:3000]), ("not an archive", lambda: b""),
     ("'..'", lambda: tar({"../evil": "x"})), ("not an archive", lambda: b"<html>404</html>")],
)  # fmt: skip
def test_a_bad_archive_is_refused(argusd, why, data):
    before = left(argusd)
    body = form(part("spec", RUN), part("code", data()))
    refusal = post(argusd, body)
    assert why in problem(refusal, 422, "refused") and refusal.json()["field"] == "code"
    until(lambda: not more(argusd, before), "nothing is left")


def hostile():
    spec, code = part("spec", RUN), part("code", tar({"a": "1"}))
    yield "no part 'spec'", form(code)
    yield "no part 'spec'", form()
    yield "two parts 'spec'", form(spec, code, spec)
    yield "two parts 'code'", form(spec, code, code)
    yield "a part 'x'", form(spec, part("x", "y"), code)
    yield "a part 'n0'", form(*(part(f"n{i}", "y") for i in range(10000)))
    yield "more than 4096 bytes", form(spec, part("code", b"x", head=b"X: " + b"a" * 100000 + b"\r\n"))
    yield "more than 4096 bytes", form(spec, part("code", b"x", head=b"X: a\r\n" * 10000))
    yield "encoded as", form(spec, part("code", b"x", head=b"Content-Transfer-Encoding: base64\r\n"))
    yield "before its last boundary", form(spec, code)[:-6]
    yield "before its last boundary", form(spec, code)[:-100]
    yield "one of its boundaries", b"hello\r\n" + form(spec, code)
    yield "one of its boundaries", form(spec, code) + b"more"
    yield "one of its boundaries", form(spec, code).replace(b"--XX--", b"--XXY-")
    yield "cannot be read", form(part('spec"; name="spec', RUN), code)


@pytest.mark.parametrize(("why", "body"), list(hostile()), ids=range(len(list(hostile()))))
def test_hostile_forms(argusd, why, body):
    before, jobs = left(argusd), newest(argusd)
    assert why in problem(post(argusd, body), 400, "bad_request")
    until(lambda: not more(argusd, before), "nothing is left")
    assert newest(argusd) == jobs


def test_sizes_and_boundaries(argusd):
    body = form(part("spec", RUN), part("code", tar({"a": "1"})))
    bad = ("x=y", "boundary=", 'boundary="', 'boundary=""', "boundary=" + "X" * 71, "boundary=XX; boundary=XX")
    for boundary in bad:
        assert "no boundary" in problem(post(argusd, body, boundary=boundary), 400, "bad_request")
    problem(post(argusd, form(part("spec", RUN + "#" * (1 << 20)))), 413, "too_large")
    problem(post(argusd, form(part("spec", RUN), part("code", bytes(9 << 20)))), 413, "too_large")
    problem(post(argusd, body, token="viewer"), 403, "forbidden")
    problem(post(argusd, body, token=None), 401, "unauthorised")
    mixed = argusd.call("POST", "/v1/jobs", body, Content_Type="multipart/mixed; boundary=XX")
    problem(mixed, 415, "unsupported_media_type")
    # A form without an archive is a spec.
    assert post(argusd, form(part("spec", "workload: ray\nentrypoint: 'true'\n"))).status == 201
    until(lambda: not list((argusd.root / "argus/uploads").glob("*")), "nothing is left")


def half_sent(argusd, data, length):
    head = (
        f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=XX\r\n"
        f"{length}Authorization: Bearer {argusd.tokens['user']}\r\n\r\n"
    )
    s = socket.create_connection(("127.0.0.1", argusd.port), PATIENCE)
    s.sendall(head.encode() + data)
    return s


def test_one_that_is_cut_leaves_nothing(argusd):
    before, jobs = left(argusd), newest(argusd)
    body = form(part("spec", RUN), part("code", bytes(2 << 20)))
    for n in (10, 300, len(body) // 2, len(body) - 1):
        s = half_sent(argusd, body[:n], f"Content-Length: {len(body)}\r\n")
        if n > 1000:
            until(lambda: more(argusd, before), "it is coming")
        s.close()
        until(lambda: not more(argusd, before), "nothing is left")
    assert argusd.get("/v1/uploads", token="user")["uploads"] == []
    assert newest(argusd) == jobs
    for n in (300, len(body) // 2):  # of one that does not say how long it is
        with half_sent(argusd, chunked(body)[:n], "Transfer-Encoding: chunked\r\n"):
            if n > 1000:
                until(lambda: more(argusd, before), "it is coming")
        until(lambda: not more(argusd, before), "nothing is left")


def chunked(body, size=70001):
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(f"{len(p):x}\r\n".encode() + p + b"\r\n" for p in [*pieces, b""])


def answer(s):
    """Its status, and the body as far as it came; what is sent too much may be cut off."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while b"}" not in said:
            got = s.recv(65536)
            if not got:
                break
            said += got
    return int(said.split(b" ", 2)[1]), said.decode()


def test_one_that_does_not_say_how_long_it_is(argusd):
    """It grows on the disk, below the ceilings of all the others."""
    before = left(argusd)
    noise = os.urandom(3 << 20)  # in its own archive: not compressed
    body = form(part("spec", RUN), part("code", tar({"part.txt": "chunked\n", "noise": noise.hex()})))
    with half_sent(argusd, chunked(body), "Transfer-Encoding: chunked\r\n") as s:
        status, said = answer(s)
    assert status == 201, said
    job = argusd.wait_over(json.loads(said[said.index("{") :])["id"])
    log = argusd.call("GET", f"/v1/jobs/{job['id']}/logs", token="user").body.decode()
    assert job["state"] == "SUCCEEDED" and "chunked" in log
    until(lambda: not list((argusd.root / "argus/uploads").glob("*")), "the archive itself is removed")
    before = left(argusd)
    refused_chunks(argusd, 9 << 20, "an upload has at most 8388608 bytes")
    held = form(part("spec", RUN), part("code", bytes(6 << 20)))
    with half_sent(argusd, chunked(held[:-100])[:-5], "Transfer-Encoding: chunked\r\n"):
        until(lambda: sent(argusd) >= 11 << 19, "another one has come so far")  # all but what fills no piece
        refused_chunks(argusd, 7 << 20, "of at most 12582912")
    until(lambda: not more(argusd, before), "nothing is left")


def refused_chunks(argusd, n, says):
    body = form(part("spec", RUN), part("code", bytes(n)))
    with half_sent(argusd, b"", "Transfer-Encoding: chunked\r\n") as s:
        with contextlib.suppress(ConnectionError):
            s.sendall(chunked(body))
        status, said = answer(s)
    assert status == 413 and says in said, said


def sent(argusd):
    """Bytes of archives on the disk."""
    return sum(f.stat().st_size for f in (argusd.root / "argus/uploads").glob("*/data"))


def test_nothing_is_left_by_a_kill(tmp_path):
    with FakeRay() as ray, Argusd(tmp_path, ray.url, LIMITS) as argusd:
        argusd.wait_over(argusd.submit("true"))
        body = form(part("spec", RUN), part("code", bytes(2 << 20)))
        with half_sent(argusd, body[:-1], f"Content-Length: {len(body)}\r\n"):
            until(lambda: left(argusd), "it is coming")
            argusd.kill9()
        argusd.start()
        until(lambda: not left(argusd), "nothing is left")
        assert names(argusd) == []


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")
def test_curl(argusd, tmp_path):
    (tmp_path / "job.yaml").write_text(RUN)
    (tmp_path / "code.zip").write_bytes(zipped({"part.txt": "from curl\n" + "x" * 3000000}))
    url = f"http://127.0.0.1:{argusd.port}/v1/jobs"
    token = f"Authorization: Bearer {argusd.tokens['user']}"
    argv = ["curl", "-sS", "-H", token, "-F", "spec=@job.yaml", "-F", "code=@code.zip", url]
    said = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True).stdout
    job = argusd.wait_over(said.split('"id":"')[1].split('"')[0])
    assert job["state"] == "SUCCEEDED"
