# SPDX-License-Identifier: Apache-2.0
"""Brings a data set or a model onto the shared root: the entrypoint of an import job, placed by argusd.

    argus_import.py ORDER          ORDER is JSON, made by argusd (registry_order.c)

It writes next to the goal, checks every file (length, hash, whether it is what its name says), syncs, and renames
once all is there; argusd makes the registry's entry from `result.json`. Started again it goes on with what it has: a
whole file stays, a half one is continued where the other side can. What failed for good leaves nothing behind; what
was ended from outside is for the next attempt, or is swept by argusd. Only the standard library, any Python from 3.8.
"""

import errno
import hashlib
import json
import os
import shutil
import sys
import time

import argus_look
import argus_sources
from argus_sources import Again, Body, Fail, Item

CHUNK = 1 << 20
TRIES = 6  # in a row, without a byte gained
PAUSE = 1.0  # before the second try; doubles up to
PAUSE_MAX = 30.0
SPARE = 16 << 20  # bytes that stay free on the shared root
SAY_EVERY = 0.5  # seconds between two writings of the progress
LOG_EVERY = 10.0


def say(text):
    print("argus: " + text, flush=True)


def amount(n):
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "bytes" else f"{n:.1f} {unit}"
        n /= 1024


# ---- files ----


def sync_directory(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_whole(path, text):
    """Whole or not at all, and on disk."""
    temporary = path + ".new"
    with open(temporary, "w", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    os.replace(temporary, path)
    sync_directory(os.path.dirname(path))


def read_json(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def free_bytes(path):
    s = os.statvfs(path)
    return s.f_bavail * s.f_frsize


def let_all_read(path):
    """What a job of ours made may be for its user alone, as a merger's weights are (0600)."""
    mode = os.stat(path).st_mode
    if mode & 0o444 != 0o444:
        os.chmod(path, mode & 0o777 | 0o444)


def is_under(path, roots):
    return any(path == r or path.startswith(r.rstrip("/") + "/") for r in roots)


# ---- a path on the shared root ----


class LocalSource:
    """A file or directory on the shared root: copied, moved (an upload), or used where it is."""

    def __init__(self, order):
        self.path = os.path.realpath(order["source"])
        self.roots = [os.path.realpath(r) for r in order["roots"]]
        self.how = order.get("how", "copy")
        if not is_under(self.path, self.roots):
            raise Fail(
                f"'{order['source']}' leads to '{self.path}', which lies under none of the directories that you may use"
            )
        if not os.path.exists(self.path):
            raise Fail(f"'{order['source']}' is not there")
        self.is_dir = os.path.isdir(self.path)
        self.root = self.path if self.is_dir else os.path.dirname(self.path)

    def pin(self):
        return None

    def items(self):
        if not self.is_dir:
            return [self._item(os.path.basename(self.path))]
        out = []
        for at, dirs, files in os.walk(self.path, onerror=self._unreadable):
            for name in dirs + files:
                whole = os.path.join(at, name)
                if os.path.islink(whole) and not is_under(os.path.realpath(whole), self.roots):
                    raise Fail(f"'{whole}' is a link that leads out of the directories that you may use")
                if os.path.islink(whole) and os.path.isdir(whole):
                    raise Fail(f"'{whole}' is a link to a directory: name that one, or copy it")
            out += [self._item(os.path.relpath(os.path.join(at, n), self.path)) for n in files]
            if len(out) > argus_sources.FILES_MAX:
                raise Fail(f"'{self.path}' holds more than {argus_sources.FILES_MAX} files")
        if not out:
            raise Fail(f"'{self.path}' holds no files")
        return out

    def _unreadable(self, e):
        raise Fail(f"'{e.filename}' cannot be read: {e.strerror}")

    def _item(self, name):
        whole = os.path.join(self.root, name)
        if not os.path.isfile(whole):
            raise Fail(f"'{whole}' is neither a file nor a directory")
        return Item(name, os.stat(whole).st_size)

    def open(self, item, offset, validator):
        f = open(os.path.join(self.root, item.path), "rb")  # noqa: SIM115  (the caller closes it)
        f.seek(offset)
        return Body(f.read, offset, os.fstat(f.fileno()).st_size, None, f.close)


def source_of(order):
    text = order["source"]
    scheme = text.partition("://")[0] if "://" in text else ""
    kinds = {"": LocalSource, "http": argus_sources.HttpSource, "https": argus_sources.HttpSource}
    kinds.update(hf=argus_sources.HubSource, s3=argus_sources.S3Source)
    if scheme in ("ftp", "ftps", "sftp"):
        import argus_remote

        kinds.update(ftp=argus_remote.FtpSource, ftps=argus_remote.FtpSource, sftp=argus_remote.SftpSource)
    if scheme not in kinds:
        raise Fail(f"'{text}' cannot be imported from: known are hf, https, http, s3, ftp, ftps, sftp and a path")
    return kinds[scheme](order)


# ---- one import ----


class Hashes:
    """The hashes of a file as it comes: ours, and the one that the source told."""

    def __init__(self, item):
        self.item, self.n, self.sha = item, 0, hashlib.sha256()
        kind = item.digest[0] if item.digest else None
        if kind == "git-sha1":
            self.other = hashlib.sha1(f"blob {item.size}\0".encode())
        else:
            self.other = hashlib.md5() if kind == "md5" else None

    def add(self, data):
        self.n += len(data)
        self.sha.update(data)
        if self.other:
            self.other.update(data)

    def is_as_told(self):
        if not self.item.digest:
            return True
        return (self.other or self.sha).hexdigest() == self.item.digest[1]


class Import:
    def __init__(self, order):
        self.order = order
        self.staging, self.goal = order["staging"], order["goal"]
        self.data, self.part = os.path.join(self.staging, "data"), os.path.join(self.staging, "part")
        self.report = order["report"]  # directory of progress.json and result.json
        self.max_bytes = int(order.get("max_bytes", 1 << 50))  # of all of it
        self.pause = float(order.get("pause", PAUSE))
        self.done_bytes = self.total = self.done_files = self.files = 0
        self.said = self.logged = 0.0
        self.phase = "looking"
        self.told = None  # bytes there were when the last line was written

    # -- telling --

    def progress(self, more=0, now=False):
        at = time.monotonic()
        if not now and at - self.said < SAY_EVERY:
            return
        self.said = at
        have = self.done_bytes + more
        p = {"phase": self.phase, "bytes": have, "total": self.total, "files": self.done_files, "of": self.files}
        try:
            path = os.path.join(self.report, "progress.json")
            with open(path + ".new", "w") as f:
                json.dump(p, f)
            os.replace(path + ".new", path)
        except OSError:
            pass  # it is only shown
        if at - self.logged >= LOG_EVERY or (now and self.told != (self.phase, have)):
            self.logged, self.told = at, (self.phase, have)
            share = f" of {amount(self.total)} ({100 * have // self.total}%)" if self.total else ""
            say(f"{self.phase}: {amount(have)}{share}, {self.done_files} of {self.files} files")

    # -- what to bring --

    def listing(self):
        """The files, the same ones in every attempt."""
        kept = read_json(os.path.join(self.staging, "listing.json"))
        if kept:
            if hasattr(self.source, "commit"):
                self.source.commit = kept["pin"]
            self.pin = kept["pin"]
            return [
                Item(i["path"], i["size"], tuple(i["digest"] or ()) or None, i["where"], i["validator"])
                for i in kept["items"]
            ]
        items = self.again(self.source.items, "the listing")
        items = argus_sources.check_paths(self.chosen(items))
        if not items:
            raise Fail("nothing is left to import: no file matches --include")
        if self.order.get("sha256"):
            if len(items) != 1:
                raise Fail("a checksum was given, which is of one file, and the source has several")
            items[0].digest = ("sha256", self.order["sha256"].lower())
        self.pin = self.source.pin()
        rows = [
            {"path": i.path, "size": i.size, "digest": i.digest, "where": i.where, "validator": i.validator}
            for i in items
        ]
        write_whole(os.path.join(self.staging, "listing.json"), json.dumps({"pin": self.pin, "items": rows}))
        return items

    def chosen(self, items):
        import fnmatch

        want, out = self.order.get("include") or [], items
        if want:
            out = [i for i in items if any(fnmatch.fnmatchcase(i.path, w) for w in want)]
        return [i for i in out if i.path.rpartition("/")[2] not in (".gitattributes", ".gitignore")]

    def check_quota(self, total):
        if total > self.max_bytes:
            may = f"it has more than the {amount(self.max_bytes)} that it may have"
            raise Fail(self.order.get("over") or may)

    def check_room(self, need, what):
        free = free_bytes(self.staging)
        if need + SPARE > free:
            raise Fail(f"no room on the shared root: {what} needs {amount(need)} more and {amount(free)} are free")

    def again(self, call, what):
        """call(), tried again with longer and longer pauses."""
        tries = 0
        while True:
            try:
                return call()
            except Again as e:
                tries += 1
                self.wait(tries, e, what)

    def wait(self, tries, e, what):
        if tries >= TRIES:
            raise Fail(f"given up on {what} after {tries} tries: {e}") from None
        pause = min(PAUSE_MAX, self.pause * 2 ** (tries - 1))
        if e.after is not None:
            pause = max(pause, e.after * min(1.0, self.pause))
        say(f"{what}: {e}; once more in {pause:.0f} s")
        time.sleep(pause)

    # -- one file --

    def bring(self, n, item):
        part = os.path.join(self.part, str(n))
        final = os.path.join(self.data, item.path)
        os.makedirs(os.path.dirname(final), exist_ok=True)
        for attempt in (1, 2):
            hashes = self.fetch(part, item)
            if hashes.is_as_told():
                break
            os.unlink(part)
            if attempt == 2:
                kind, told = item.digest
                raise Fail(
                    f"'{item.path}' is not what it should be: its {kind} is said to be {told}, and "
                    "what came twice has another"
                )
            say(f"'{item.path}' has another {item.digest[0]} than it should; once more from its beginning")
        argus_look.check_file(part, item.path)
        os.replace(part, final)
        row = {"path": item.path, "size": hashes.n, "sha256": hashes.sha.hexdigest()}
        with open(os.path.join(self.staging, "done.jsonl"), "a") as f:
            f.write(json.dumps(row) + "\n")
            f.flush()
            os.fsync(f.fileno())
        return row

    def fetch(self, part, item):
        """The whole file at `part`, continued if a piece is there."""
        if self.order.get("how") == "move":
            self.link(part, item)
        hashes, validator = self.take_up(part, item)
        tries = 0
        while True:
            before = hashes.n
            try:
                body = self.source.open(item, hashes.n, validator)
                try:
                    hashes, validator = self.copy(body, part, item, hashes, validator)
                finally:
                    body.close()
                return hashes
            except Again as e:
                hashes, validator = self.take_up(part, item)
                tries = 1 if hashes.n > before else tries + 1
                self.wait(tries, e, f"'{item.path}'")

    def link(self, part, item):
        """What is ours to consume needs no copying: one more name for it, and its hash is taken from there."""
        try:
            if os.path.exists(part):
                os.unlink(part)
            os.link(os.path.join(self.source.root, item.path), part)
            write_whole(part + ".json", json.dumps({"path": item.path, "validator": None}))
        except OSError as e:
            if e.errno not in (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK):
                raise

    def take_up(self, part, item):
        """What is there of it, and the mark by which the source knows that it is still the same file."""
        hashes = Hashes(item)
        about = read_json(part + ".json")
        if not about or about["path"] != item.path or not os.path.exists(part):
            return hashes, None
        with open(part, "rb") as f:
            for data in iter(lambda: f.read(CHUNK), b""):
                hashes.add(data)
        return hashes, about["validator"]

    def copy(self, body, part, item, hashes, validator):
        expected = body.total
        if item.size is not None and expected is not None and expected != item.size:
            raise Fail(
                f"'{item.path}' is said to have {item.size} bytes and the server wants to send "
                f"{expected}: one of them lies"
            )
        expected = item.size if expected is None else expected
        if body.start != hashes.n:
            hashes = Hashes(item)  # it begins anew
        same = validator == body.validator or body.start == 0
        if not same:
            os.unlink(part)
            raise Again(f"'{item.path}' changed meanwhile")
        self.check_room((expected or 0) - hashes.n, f"'{item.path}'")
        with open(part, "ab" if hashes.n else "wb") as f:
            write_whole(part + ".json", json.dumps({"path": item.path, "validator": body.validator}))
            self.pour(body, f, item, hashes, expected)
            f.flush()
            os.fsync(f.fileno())
        if expected is not None and hashes.n < expected:
            raise Again(f"'{item.path}' ended after {hashes.n} of {expected} bytes")
        return hashes, body.validator

    def pour(self, body, f, item, hashes, expected):
        while True:
            data = body.read(CHUNK)
            if not data:
                return
            self.check_quota(self.done_bytes + hashes.n + len(data))
            if expected is not None and hashes.n + len(data) > expected:
                raise Fail(f"'{item.path}' does not end where it should: more than {amount(expected)} came")
            f.write(data)
            hashes.add(data)
            if expected is None and hashes.n % (64 * CHUNK) < CHUNK:
                self.check_room(0, f"'{item.path}'")
            self.progress(hashes.n)

    # -- all --

    def finished_before(self):
        """Files that an earlier attempt has brought whole, by path."""
        out = {}
        try:
            with open(os.path.join(self.staging, "done.jsonl")) as f:
                lines = f.read().split("\n")
        except OSError:
            return out
        for line in lines[:-1]:
            row = json.loads(line)
            path = os.path.join(self.data, row["path"])
            if os.path.isfile(path) and os.path.getsize(path) == row["size"]:
                out[row["path"]] = row
        return out

    def use_in_place(self, items):
        rows = []
        for item in items:
            hashes = Hashes(item)
            path = os.path.join(self.source.root, item.path)
            with open(path, "rb") as f:
                for data in iter(lambda f=f: f.read(CHUNK), b""):
                    hashes.add(data)
                    self.progress(hashes.n)
            argus_look.check_file(path, item.path)
            if self.order.get("open"):
                let_all_read(path)
            rows.append({"path": item.path, "size": hashes.n, "sha256": hashes.sha.hexdigest()})
            self.count(rows[-1])
        return rows

    def count(self, row):
        self.done_bytes += row["size"]
        self.done_files += 1
        self.progress()

    def bring_all(self, items):
        rows, before = [], self.finished_before()
        if before:
            say(f"going on: {len(before)} of {len(items)} files are here already")
        self.check_quota(sum(i.size or 0 for i in items))
        self.check_room(sum(i.size or 0 for i in items if i.path not in before), "it")
        for n, item in enumerate(items):
            rows.append(before.get(item.path) or self.bring(n, item))
            self.count(rows[-1])
        return rows

    def look(self, rows, root):
        self.phase = "reading"
        self.progress(now=True)
        files = [(r["path"], r["size"]) for r in rows]
        return (argus_look.look_model if self.order["what"] == "model" else argus_look.look_data)(root, files)

    def finish(self, rows, about):
        listing = "".join(f"{r['sha256']}  {r['path']}\n" for r in sorted(rows, key=lambda r: r["path"]))
        result = {
            "ok": True, "path": self.goal, "files": len(rows), "bytes": sum(r["size"] for r in rows),
            "hash": "sha256:" + hashlib.sha256(listing.encode()).hexdigest(), "revision": self.pin, "about": about,
        }  # fmt: skip
        if self.order.get("how") == "in_place":
            result["path"], about["single"] = self.source.path, not self.source.is_dir
            return result
        for at, _, _ in os.walk(self.data):
            sync_directory(at)
        os.makedirs(os.path.dirname(self.goal), exist_ok=True)
        write_whole(os.path.join(self.staging, "result.json"), json.dumps(result))
        os.rename(self.data, self.goal)
        sync_directory(os.path.dirname(self.goal))
        return result

    def run(self):
        os.makedirs(self.report, exist_ok=True)
        kept = read_json(os.path.join(self.staging, "result.json"))
        if kept and os.path.isdir(self.goal):
            return kept  # an earlier attempt ended between the last two steps
        in_place = self.order.get("how") == "in_place"
        if os.path.lexists(self.goal) and not in_place:
            raise Fail(f"something is at '{self.goal}' already")
        for d in (self.data, self.part):
            os.makedirs(d, exist_ok=True)
        self.source = source_of(self.order)
        self.progress(now=True)
        items = self.listing()
        self.files, self.total = len(items), sum(i.size or 0 for i in items)
        self.phase = "hashing" if in_place else "fetching"
        self.progress(now=True)
        rows = self.use_in_place(items) if in_place else self.bring_all(items)
        about = self.look(rows, self.source.root if in_place else self.data)
        self.phase = "done"
        result = self.finish(rows, about)
        self.progress(now=True)
        return result


def sentence_of(e):
    if isinstance(e, OSError) and e.errno == errno.ENOSPC:
        return "no room is left on the shared root; free some, or ask for more, and import again"
    if isinstance(e, OSError) and e.errno == errno.EDQUOT:
        return "the quota of the file system is used up; free some of your files, and import again"
    if isinstance(e, OSError):
        return f"'{e.filename}': {e.strerror}" if e.filename else str(e)
    return str(e)


def write_result(order, result):
    write_whole(os.path.join(order["report"], "result.json"), json.dumps(result))


def main(argv, kind=Import):
    if len(argv) != 2:
        print(f"usage: {os.path.basename(argv[0])} ORDER", file=sys.stderr)
        return 2
    order = json.loads(argv[1])
    os.umask(0o022)
    try:
        result = kind(order).run()
        write_result(order, result)
    except (Fail, OSError) as e:
        text = sentence_of(e)
        shutil.rmtree(order["staging"], ignore_errors=True)
        try:
            write_result(order, {"ok": False, "error": text[:1000]})
        except OSError:
            pass  # as full as the rest: the log says it too
        print("argus: failed: " + text, file=sys.stderr, flush=True)
        return 1
    if order.get("consume"):
        shutil.rmtree(order["consume"], ignore_errors=True)
    say(f"done: {result['files']} files, {amount(result['bytes'])}, {result['hash']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
