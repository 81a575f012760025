# SPDX-License-Identifier: Apache-2.0
"""A web server of files for tests, that can be spoilt: plain files with ranges, and the routes of a Hugging Face
endpoint (held against huggingface_hub itself in test_import_hub.py).

    with FileServer({"a.bin": b"..."}) as web:
        web.spoil("/a.bin", cut=[100, 50])      the first answer breaks off after 100 bytes, the next after 50 more
        web.repo("datasets/me/mine", {"train.parquet": b"..."}, lfs=["train.parquet"])
"""

import collections
import hashlib
import http.server
import json
import threading
import urllib.parse


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class FileServer:
    def __init__(self, files=()):
        self.files = {"/" + name: data for name, data in dict(files).items()}
        self.repos, self.spoilt = {}, collections.defaultdict(dict)
        self.seen = []  # (path, Range header)
        self.after = None  # called with (path, bytes sent) while a file is sent
        self.lock = threading.Lock()

    def __enter__(self):
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.http.daemon_threads = True
        self.http.bed = self
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def spoil(self, path, **how):
        """cut: bytes after which answers break off, in turn. length: what Content-Length says. html: a page instead.
        status: statuses that come first. no_range, no_etag: True. bytes: other bytes than those of the file.
        stall: an Event that is waited for in the middle."""
        self.spoilt[path].update(how)

    def repo(self, name, files, lfs=(), commit=None):
        """name: "datasets/owner/name" or "models/owner/name"."""
        commit = commit or hashlib.sha1(json.dumps([name, sorted(files)]).encode()).hexdigest()
        self.repos[name] = {"commit": commit, "files": dict(files), "lfs": set(lfs), "revisions": {"main", commit}}
        return commit

    def ranges(self, path):
        return [r for p, r in self.seen if p == path]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        bed, path = self.server.bed, urllib.parse.unquote(self.path.partition("?")[0])
        with bed.lock:
            bed.seen.append((path, self.headers.get("Range")))
            how = bed.spoilt[path]
            status = how["status"].pop(0) if how.get("status") else None
            cut = how["cut"].pop(0) if how.get("cut") and not status and self.command == "GET" else None
        if status:
            return self.send(status, b"not now", {})
        if how.get("html"):
            page = b"<!DOCTYPE html><html><body>log in first</body></html>"
            return self.send(200, page, {"Content-Type": how.get("type", "text/html")})
        if path.startswith("/api/"):
            return self.api(path[len("/api/") :])
        data, extra = self.find(path)
        if data is None:
            return self.send(404, b"no such file", {})
        return self.file(how.get("bytes", data), extra, how, cut)

    # -- plain files and those of a repository --

    def find(self, path):
        bed = self.server.bed
        if path in bed.files:
            return bed.files[path], {}
        head, mark, tail = path.partition("/resolve/")
        name = head.lstrip("/")
        repo = bed.repos.get(name if name.startswith("datasets/") else "models/" + name)
        revision, _, file = tail.partition("/")
        if not mark or repo is None or revision not in repo["revisions"] or file not in repo["files"]:
            return None, {}
        data = repo["files"][file]
        if file in repo["lfs"]:
            etag = hashlib.sha256(data).hexdigest()
        else:
            etag = git_sha1(data)
        extra = {"X-Repo-Commit": repo["commit"], "ETag": f'"{etag}"'}
        if file in repo["lfs"]:
            extra.update({"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(data))})
        return data, extra

    def file(self, data, extra, how, cut):
        etag = extra.get("ETag", f'"{hashlib.md5(data).hexdigest()}"')
        headers = {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes", "ETag": etag, **extra}
        if how.get("no_etag"):
            del headers["ETag"]
        start, status = 0, 200
        asked = self.headers.get("Range")
        if asked and not how.get("no_range") and self.headers.get("If-Range", etag) == etag:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start = int(first)
            if start >= len(data):
                return self.send(416, b"", {"Content-Range": f"bytes */{len(data)}"})
            end = int(last) if last else len(data) - 1
            total, data, status = len(data), data[: end + 1], 206
            headers["Content-Range"] = f"bytes {start}-{end}/{how.get('length', total)}"
        return self.send(status, data[start:], headers, how.get("length"), cut, how.get("stall"))

    def send(self, status, body, headers, length=None, cut=None, stall=None):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        said = len(body) if length is None or status == 206 else length
        self.send_header("Content-Length", str(said))
        self.end_headers()
        if self.command == "HEAD":
            return
        body = body if cut is None else body[:cut]
        if stall is not None:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            stall.wait(600)
            body = body[len(body) // 2 :]
        self.wfile.write(body)
        self.wfile.flush()
        if cut is not None or len(body) != said:
            self.close_connection = True

    # -- the few routes of a Hugging Face endpoint --

    def api(self, path):
        bed = self.server.bed
        name, _, revision = path.partition("/revision/")
        repo = bed.repos.get(name)
        revision = revision or "main"
        if repo is None or revision not in repo["revisions"]:
            code = "RepoNotFound" if repo is None else "RevisionNotFound"
            return self.send(404, b"{}", {"X-Error-Code": code, "Content-Type": "application/json"})
        siblings = []
        for file, data in repo["files"].items():
            row = {"rfilename": file, "size": len(data), "blobId": git_sha1(data)}
            if file in repo["lfs"]:
                row["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
            siblings.append(row)
        about = {"_id": "1", "id": name.partition("/")[2], "sha": repo["commit"], "private": False,
                 "tags": [], "downloads": 0, "likes": 0, "siblings": siblings}  # fmt: skip
        return self.send(200, json.dumps(about).encode(), {"Content-Type": "application/json"})
