# SPDX-License-Identifier: Apache-2.0
"""/v1/snapshots of the real argusd: made of uploads, named, shared, compared, removed; bad archives leave nothing;
a kill in the middle; jobs that name one."""

import io
import lzma
import os
import pathlib
import re
import tarfile
import zipfile
import zlib

import pytest
from fakeray import FakeRay
from snapshots import add, added, tar, upload, verl, zipped

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("snapshots"), ray.url) as argusd:
        argusd.call("POST", "/v1/users", {"name": "bob"})
        argusd.tokens["bob"] = argusd.call("POST", "/v1/tokens", {"user": "bob"}).json()["token"]
        argusd.wait_over(argusd.submit("true"))  # the root was looked at
        yield argusd


def problem(reply, status, code):
    of_class = reply.json()["type"].removeprefix("urn:argus:problem:")  # its code names the sentence
    assert (reply.status, of_class) == (status, code), reply
    return reply.json()["detail"]


def store_of(argusd):
    return argusd.root / "argus/snapshots"


def names(argusd, token="user"):
    return {(s["name"], s["common"]) for s in argusd.get("/v1/snapshots", token=token)["snapshots"]}


def test_common_and_own(argusd):
    common = added(argusd, "verl@0.9.1", tar(verl("0.9.1")), common=True)
    own = added(argusd, "verl@mine", zipped(verl("0.5.0")))
    assert (common["verl"], own["verl"], common["files"], own["user"]) == ("0.9.1", "0.5.0", 2, "alice")
    assert common["path"] == f"{argusd.root}/common/code/verl/0.9.1"
    assert own["path"] == f"{argusd.root}/users/alice/code/verl/mine"
    for s, text in ((common, "0.9.1\n"), (own, "0.5.0\n")):
        with open(f"{s['path']}/verl/version/version") as f:
            assert f.read() == text
    assert {("verl@0.9.1", True), ("verl@mine", False)} <= names(argusd)
    assert ("verl@mine", False) not in names(argusd, "bob")
    assert ("verl@mine", False) in names(argusd, "admin")
    assert argusd.get("/v1/snapshots/verl@0.9.1", token="bob") == common
    problem(argusd.call("GET", "/v1/snapshots/verl@mine", token="bob"), 404, "not_found")
    problem(argusd.call("GET", "/v1/snapshots/verl@mine?user=alice", token="bob"), 404, "not_found")
    # It goes as little as it came: the uploads are used up.
    assert argusd.get("/v1/uploads", token="user")["uploads"] == []


def test_content_is_there_once(argusd):
    one = added(argusd, "once@1", tar({"a": "the same"}), common=True)
    before = len(list(store_of(argusd).iterdir()))
    two = added(argusd, "once@2", zipped({"a": "the same"}), token="bob")
    assert two["hash"] == one["hash"] and len(list(store_of(argusd).iterdir())) == before
    # By its hash alone, as long as he may see the content; else it is as if it were not here.
    named = argusd.call("POST", "/v1/snapshots", {"name": "once@3", "hash": one["hash"]}, token="user")
    assert named.status == 201 and named.json()["hash"] == one["hash"]
    hers = added(argusd, "private@1", tar({"a": "a secret"}))
    body = {"name": "guess@1", "hash": hers["hash"]}
    assert "upload it" in problem(argusd.call("POST", "/v1/snapshots", body, token="bob"), 404, "not_found")
    # The same name and content again is no error, another content under it is one.
    assert add(argusd, "once@1", tar({"a": "the same"}), common=True).status == 200
    detail = problem(add(argusd, "once@1", tar({"a": "other"}), common=True), 409, "conflict")
    assert "never changes" in detail
    body = {"name": "once@1", "hash": hers["hash"], "common": True}
    problem(argusd.call("POST", "/v1/snapshots", body), 409, "conflict")
    until(lambda: len(list(store_of(argusd).iterdir())) == before + 1, "what nobody names is removed")
    assert argusd.get("/v1/uploads", token="user")["uploads"] == []


def bad_archives():
    bomb = io.BytesIO()
    with tarfile.open(fileobj=bomb, mode="w:gz") as t:
        info = tarfile.TarInfo("zeros")
        info.size = 80 << 20
        t.addfile(info, io.BytesIO(bytes(info.size)))
    device = io.BytesIO()
    with tarfile.open(fileobj=device, mode="w") as t:
        info = tarfile.TarInfo("null")
        info.type = tarfile.CHRTYPE
        t.addfile(info)
    yield "a bomb", bomb.getvalue(), "only a bomb"
    yield "a device", device.getvalue(), "device"
    yield "a traversal", tar({"../evil": "x"}), "'..'"
    yield "an absolute name", zipped({"/etc/evil": "x"}), "absolute"
    yield "a link out", tar({"l": ("l", "/etc/passwd")}), "out of the tree"
    yield "a look-alike", tar({"v\u0435rl/x.py": "x"}), "look the same"
    yield "twins", tar({"A": "1", "a": "2"}), "in case alone"
    yield "cut off", tar({"a": "x" * 5000})[:3000], "cut off"
    yield "a zip by LZMA", zipped_by(zipfile.ZIP_LZMA), "with deflate"
    yield "a zip by bzip2", zipped_by(zipfile.ZIP_BZIP2), "with deflate"
    yield "a page", b"<html>404</html>", "not an archive"
    yield "a byte", b"\0", "not an archive"


def zipped_by(method):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as z:
        z.writestr("a", "x" * 1000)
    return data.getvalue()


def xz_that_takes_a_gib():
    """64 KiB of dictionary would do: the head of its block says more, as that of any large archive may."""
    data = bytearray(lzma.compress(tar({"a": "x"}), preset=0))
    block, end = 12, 12 + (data[12] + 1) * 4 - 4
    assert data[block + 2] == 0x21  # LZMA2
    data[block + 4] = 36  # 1 GiB
    data[end : end + 4] = zlib.crc32(data[block:end]).to_bytes(4, "little")
    return bytes(data)


def test_memory_that_an_archive_asks_for_is_not_given(argusd):
    def peak_mib():
        status = pathlib.Path(f"/proc/{argusd.process.pid}/status").read_text()
        return int(re.search(r"VmPeak:\s+(\d+) kB", status).group(1)) >> 10

    assert add(argusd, "narrow@1", lzma.compress(tar({"a": "narrow"}), preset=9)).status == 201
    before = peak_mib()
    assert "more than 128 MiB of memory" in problem(add(argusd, "wide@1", xz_that_takes_a_gib()), 422, "refused")
    assert peak_mib() - before < 512


@pytest.mark.parametrize(("what", "data", "why"), list(bad_archives()), ids=lambda v: v if isinstance(v, str) else "")
def test_bad_archives_leave_nothing(argusd, what, data, why):
    before = sorted(store_of(argusd).iterdir()) if store_of(argusd).exists() else []
    assert why in problem(add(argusd, "bad@1", data), 422, "refused"), what
    assert sorted(store_of(argusd).iterdir()) == before
    assert ("bad@1", False) not in names(argusd)
    assert argusd.get("/v1/uploads", token="user")["uploads"] == []
    assert not (argusd.root / "users/alice/code/bad").exists()


def test_bad_forms(argusd):
    def ask(**body):
        return argusd.call("POST", "/v1/snapshots", body, token="user")

    assert "name@version" in problem(ask(hash="0" * 64), 400, "bad_request")
    assert "name@version" in problem(ask(name="verl", hash="0" * 64), 400, "bad_request")
    assert "name@version" in problem(ask(name="../x@1", hash="0" * 64), 400, "bad_request")
    assert "64 lower-case digits" in problem(ask(name="a@1", hash="xyz"), 400, "bad_request")
    assert "say what is in it" in problem(ask(name="a@1"), 400, "bad_request")
    problem(ask(name="a@1", upload="none"), 404, "not_found")
    problem(ask(name="a@1", upload="none", extra=1), 400, "bad_request")
    bobs = upload(argusd, tar({"a": "1"}), token="bob")
    problem(ask(name="a@1", upload=bobs), 404, "not_found")
    wanted = {"name": "a@1", "upload": upload(argusd, tar({"a": "1"})), "hash": "0" * 64}
    assert "send it again" in problem(ask(**wanted), 422, "refused")
    # What stands at the place of the name and is no snapshot stays.
    place = argusd.root / "users/alice/code/taken"
    place.mkdir(parents=True)
    (place / "1").write_text("mine")
    reply = add(argusd, "taken@1", tar({"a": "only this one"}))
    assert "not a snapshot" in reply.json()["detail"] and (place / "1").read_text() == "mine"
    until(lambda: ("taken@1", False) not in names(argusd), "it is gone again")


def test_ceilings_are_settings(tmp_path):
    limits = "snapshots: {max_size: 100KiB, max_files: 3, max_ratio: 1000, max_count: 2}"
    with FakeRay() as ray, Argusd(tmp_path, ray.url, limits) as argusd:
        argusd.wait_over(argusd.submit("true"))
        detail = problem(add(argusd, "many@1", tar({str(i): "x" for i in range(4)})), 422, "refused")
        assert "more than 3 entries" in detail
        problem(add(argusd, "large@1", tar({"a": "x" * 150_000})), 422, "refused")
        added(argusd, "one@1", tar({"a": "1"}))
        added(argusd, "two@1", tar({"a": "2"}))
        assert "there are 2 snapshots" in problem(add(argusd, "three@1", tar({"a": "3"})), 422, "refused")
        assert names(argusd) == {("one@1", False), ("two@1", False)}


def test_diff(argusd):
    added(argusd, "diff@1", tar({"same": "1", "changed": "1", "gone": "1"}))
    added(argusd, "diff@2", tar({"same": "1", "changed": "2", "new": ("x", "1")}))
    got = argusd.get("/v1/snapshots/diff@1:diff?with=diff@2", token="user")
    assert got["differences"] == [
        {"path": "changed", "how": "changed"},
        {"path": "gone", "how": "removed"},
        {"path": "new", "how": "added"},
    ]
    assert (got["added"], got["removed"], got["changed"], got["more"]) == (1, 1, 1, False)
    problem(argusd.call("GET", "/v1/snapshots/diff@1:diff", token="user"), 400, "bad_request")
    problem(argusd.call("GET", "/v1/snapshots/diff@1:diff?with=no@1", token="user"), 404, "not_found")


def test_remove_and_events(argusd):
    one = added(argusd, "rm@1", tar({"a": "to be removed"}), common=True)
    added(argusd, "rm@2", tar({"a": "to be removed"}), token="bob")
    place = store_of(argusd) / one["hash"]
    problem(argusd.call("DELETE", "/v1/snapshots/rm@1", token="bob"), 403, "forbidden")
    assert argusd.call("DELETE", "/v1/snapshots/rm@1", token="user").status == 200
    problem(argusd.call("GET", "/v1/snapshots/rm@1", token="user"), 404, "not_found")
    until(lambda: not (argusd.root / "common/code/rm").exists(), "the name goes")
    assert place.exists()  # bob's name has it
    assert argusd.call("DELETE", "/v1/snapshots/rm@2", token="bob").status == 200
    until(lambda: not place.exists(), "the content goes with its last name")

    def kinds(token):
        events = argusd.get("/v1/events?limit=1000", token=token)["events"]
        return [(e["kind"], e["object"]) for e in events if "snapshot/rm@" in (e.get("object") or "")]

    assert ("snapshot_added", "snapshot/rm@1") in kinds("bob") and ("snapshot_removed", "snapshot/rm@1") in kinds("bob")
    assert ("snapshot_added", "user/bob/snapshot/rm@2") in kinds("bob")
    assert ("snapshot_added", "user/bob/snapshot/rm@2") not in kinds("user")
    # The name is free again.
    added(argusd, "rm@1", tar({"a": "another"}), common=True)


def test_kill_and_restart(tmp_path):
    """What was half done is done or gone after a kill; a name that was lost is made again."""
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        argusd.wait_over(argusd.submit("true"))
        one = added(argusd, "keep@1", tar({"a": "1"}))
        argusd.kill9()
        half = store_of(argusd) / ".new-0123456789abcdef"
        (half / "tree").mkdir(parents=True)
        (argusd.root / "users/alice/code/keep/1").unlink()
        argusd.start()
        until(lambda: not half.exists(), "the half one is swept")
        until(lambda: (argusd.root / "users/alice/code/keep/1/a").exists(), "the name is made again")
        assert argusd.get("/v1/snapshots/keep@1", token="user") == one


def damage(path):
    """The same size and time: what a sample does not see."""
    path.parent.chmod(0o755)
    path.chmod(0o644)
    path.write_text("x" * path.stat().st_size)
    os.utime(path, (946684800, 946684800))


def test_power_cut(tmp_path):
    """What was not on disk yet is looked at as a whole after a start: it is settled then, or refused until it comes
    again."""
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        argusd.wait_over(argusd.submit("true"))
        good, bad = (added(argusd, f"{name}@1", tar(verl("0.9.1", name))) for name in ("good", "bad"))
        marks = [store_of(argusd) / s["hash"] / "settled" for s in (good, bad)]
        until(lambda: all(m.exists() for m in marks), "both are on disk")
        argusd.kill9()
        for m in marks:
            m.unlink()
        damage(store_of(argusd) / bad["hash"] / "tree/verl/__init__.py")
        argusd.start()
        until(marks[0].exists, "the good one is settled")
        job = marker_job(argusd, code="bad@1")
        argusd.wait_over(job)
        assert "'verl/__init__.py' is not what it was" in argusd.job(job)["reason"]["text"]
        # Asked by its hash it has to come again; then it is healed.
        by_hash = {"name": "bad@1", "hash": bad["hash"]}
        assert "upload it" in problem(argusd.call("POST", "/v1/snapshots", by_hash, token="user"), 404, "not_found")
        healed = add(argusd, "bad@1", tar(verl("0.9.1", "bad")), hash=bad["hash"])
        assert healed.status == 200 and healed.json()["hash"] == bad["hash"], healed
        until(marks[1].exists, "it is settled")
        assert "bad" in printed(argusd, marker_job(argusd, code="bad@1"))


def marker_job(argusd, token="user", **keys):
    return argusd.submit("python3 -c 'import verl; print(verl.MARKER, verl.__file__)'", token=token, **keys)


def printed(argusd, job):
    argusd.wait_over(job)
    return argusd.log_file(job).read_text()


def test_jobs_run_what_they_named(argusd):
    one = added(argusd, "run@1", tar(verl("0.9.1", "first")), common=True)
    two = added(argusd, "run@2", tar(verl("0.5.0", "second")))
    work = added(argusd, "mycode@1", zipped({"helper.py": "WORD = 'helped'\n"}))
    jobs = [marker_job(argusd, code=f"run@{n}") for n in (1, 2)]
    script = "python3 -c 'import os, helper; print(helper.WORD, os.getcwd())'"
    third = argusd.submit(script, working_dir="mycode@1")
    for job, s, word in zip(jobs, (one, two), ("first", "second"), strict=True):
        tree = f"{argusd.root}/argus/snapshots/{s['hash']}/tree"
        assert f"{word} {tree}/verl/__init__.py" in printed(argusd, job)
        got = argusd.job(job)
        assert (got["snapshot"]["name"], got["snapshot"]["hash"]) == (s["name"], s["hash"])
        assert got["snapshot"]["verl"] == s["verl"] and got["resolved_spec"]["code_path"] == tree
        launch = (argusd.job_dir(job) / "attempts/1/launch.json").read_text()
        assert s["hash"] in launch and tree in launch
        assert s["hash"] in (argusd.job_dir(job) / "meta.json").read_text()
    assert f"helped {argusd.root}/argus/snapshots/{work['hash']}/tree" in printed(argusd, third)
    assert argusd.job(third)["snapshot"] is None and argusd.job(third)["snapshots"][0]["name"] == "mycode@1"
    # By the path of its name it is the same snapshot.
    fourth = marker_job(argusd, code_path=one["path"])
    assert "first" in printed(argusd, fourth)
    assert argusd.job(fourth)["snapshot"]["name"] == "run@1"


def refused(argusd, token="user", **keys):
    reply = argusd.call("POST", "/v1/jobs", argusd.spec("true", **keys), token=token)
    assert reply.status == 422, reply
    return reply.json()["detail"]


def test_specs_that_name_no_snapshot_of_theirs(argusd):
    hers = added(argusd, "hers@1", tar({"a.py": "hers alone"}))
    for keys in ({"code": "hers@1"}, {"working_dir": "hers@1"}, {"code": "none@1"}):
        assert "there is no snapshot" in refused(argusd, "bob", **keys)
    assert "another user" in refused(argusd, "bob", code_path=hers["path"])
    tree = f"{argusd.root}/argus/snapshots/{hers['hash']}/tree"
    assert "content of a snapshot" in refused(argusd, "bob", code_path=tree)
    assert "name@version" in refused(argusd, code="hers")
    assert "exclude each other" in refused(argusd, code="hers@1", code_path=hers["path"])


def test_in_use_and_changed(argusd):
    s = added(argusd, "used@1", tar(verl("0.9.1", "used")))
    job = argusd.submit("sleep 600", code="used@1")
    detail = problem(argusd.call("DELETE", "/v1/snapshots/used@1", token="user"), 409, "conflict")
    assert job in detail
    argusd.stop_job(job)
    argusd.wait_over(job)
    held = argusd.submit("echo never", code="used@1", nnodes=9, n_gpus_per_node=4)
    problem(argusd.call("DELETE", "/v1/snapshots/used@1", token="user"), 409, "conflict")
    argusd.stop_job(held)
    argusd.wait_over(held)
    # Somebody writes into it: the next job is told so before Ray hears of it.
    place = store_of(argusd) / s["hash"] / "tree/verl"
    place.chmod(0o755)
    (place / "__init__.py").chmod(0o644)
    (place / "__init__.py").write_text("MARKER = 'evil'\n")
    job = marker_job(argusd, code="used@1")
    argusd.wait_over(job)
    got = argusd.job(job)
    assert got["state"] == "FAILED" and "import_error" in str(got["finding"]), got
    assert "'verl/__init__.py' is not what it was" in got["reason"]["text"], got["reason"]
    assert argusd.call("DELETE", "/v1/snapshots/used@1", token="user").status == 200
