# SPDX-License-Identifier: Apache-2.0
"""Where data sets and models come from, over the web: HTTP(S), a Hugging Face endpoint or mirror, S3.

A source has two calls. `items()` lists what there is to bring, each an Item with what is known of it beforehand;
`open(item, offset, validator)` begins to read one, at the offset if the other side can go on there, else at 0. What
may come right by itself is an Again, what cannot is a Fail; both are one sentence. Every size that the other side
chooses has a ceiling. Only the standard library, any Python from 3.8 on.
"""

import datetime
import hashlib
import hmac
import http.client
import json
import os
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as tree

TIMEOUT = 60  # seconds of silence of the other side
LISTING_MAX = 64 << 20  # bytes of one listing
FILES_MAX = 20000
PAGES_MAX = 1000
REDIRECTS_MAX = 8
PATH_MAX = 1024
TROUBLE = (OSError, EOFError, http.client.HTTPException)


class Fail(Exception):
    """It cannot be done; the text says why and what to do."""


class Again(Exception):
    """It did not work now."""

    def __init__(self, text, after=None):
        super().__init__(text)
        self.after = after  # seconds, if the other side said so


class Item:
    """A file to bring. What is not known is None."""

    def __init__(self, path, size=None, digest=None, where=None, validator=None):
        self.path = safe_path(path)
        self.size = size
        self.digest = digest  # ("sha256" | "git-sha1" | "md5", hex)
        self.where = where  # the source's own
        self.validator = validator  # changes when the file does


class Body:
    """What open() gives: the bytes from `start` on, and how long the whole file is said to be."""

    def __init__(self, read, start, total, validator=None, close=None):
        self.read, self.start, self.total, self.validator = read, start, total, validator
        self.close = close or (lambda: None)


def safe_path(path):
    """A path below the goal, as the other side names it, or a Fail."""
    parts = path.split("/")
    bad = [p for p in parts if p in ("", ".", "..") or len(p.encode()) > 255]
    bad += [c for c in path if ord(c) < 32 or c in "\x7f\\"]
    if bad or len(path.encode()) > PATH_MAX:
        raise Fail(f"the source names a file {path[:200]!r}, which is not a valid name for a file below a directory")
    return path


def check_paths(items):
    """No file twice, and none that is a directory of another one."""
    seen = set()
    for item in items:
        if item.path in seen:
            raise Fail(f"the source lists '{item.path}' twice")
        seen.add(item.path)
    for item in items:
        up = item.path
        while "/" in up:
            up = up.rpartition("/")[0]
            if up in seen:
                raise Fail(f"the source lists '{up}' both as a file and as a directory")
    return items


def number(text):
    """A length as the other side says it; None when it says none."""
    return int(text) if text and re.fullmatch(r"[0-9]{1,18}", text.strip()) else None


# ---- HTTP ----


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A token goes to the host that it is for, and not to where that host sends us."""

    max_redirections = REDIRECTS_MAX

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        if new is not None:
            was, now = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
            if now.scheme not in ("http", "https"):
                raise Fail(f"'{was.netloc}' sends us to '{now.scheme}:', which is not followed")
            if (was.scheme, was.netloc) != (now.scheme, now.netloc):
                new.headers.pop("Authorization", None)
                new.unredirected_hdrs.pop("Authorization", None)
        return new


class Web:
    """One kind of client for all that speaks HTTP."""

    def __init__(self, hint=""):
        self.opener = urllib.request.build_opener(_Redirects())
        self.hint = hint  # what to do about a 401 or 403

    def get(self, url, headers=None):
        """A response. Again or Fail with a sentence."""
        shown = url.partition("?")[0]
        head = {"User-Agent": "argus-import", "Accept-Encoding": "identity"}
        head.update(headers or {})
        try:
            return self.opener.open(urllib.request.Request(url, headers=head), timeout=TIMEOUT)
        except urllib.error.HTTPError as e:
            with e:
                raise self._refused(e, shown) from None
        except urllib.error.URLError as e:
            if isinstance(e.reason, ssl.SSLCertVerificationError):
                raise Fail(
                    f"'{shown}': {e.reason.verify_message}: the certificate is not one that this node trusts"
                ) from None
            raise Again(f"'{shown}' cannot be reached: {e.reason}") from None
        except TROUBLE as e:
            raise Again(f"'{shown}': {e or type(e).__name__}") from None
        except ValueError as e:
            raise Fail(f"'{shown}' is not a valid URL: {e}") from None

    def _refused(self, e, shown):
        if e.code in (401, 403):
            return Fail(f"'{shown}' is not for us ({e.code} {e.reason}){self.hint}")
        if e.code == 416:
            return Again("416")
        if e.code in (408, 425, 429) or e.code >= 500:
            after = number(e.headers.get("Retry-After"))
            return Again(f"'{shown}' answers {e.code} {e.reason}", after and min(after, 300))
        if e.code == 404:
            return Fail(f"'{shown}' is not there (404)")
        return Fail(f"'{shown}' answers {e.code} {e.reason}")

    def text(self, url, headers=None):
        """A whole small answer and its headers."""
        with self.get(url, headers) as r:
            try:
                body = r.read(LISTING_MAX + 1)
            except TROUBLE as e:
                raise Again(f"'{url.partition('?')[0]}' broke off: {e or type(e).__name__}") from None
            if len(body) > LISTING_MAX:
                raise Fail(f"the listing at '{url.partition('?')[0]}' is larger than {LISTING_MAX >> 20} MiB")
            return body, r.headers

    def body(self, url, item, offset, validator, headers=None):
        """The bytes of a file from the offset on, if the server goes on there and it is the same file still."""
        head = dict(headers or {})
        if offset:
            head["Range"] = f"bytes={offset}-"
            if validator:
                head["If-Range"] = validator
        try:
            r = self.get(url, head)
        except Again as e:
            if str(e) != "416" or not offset:
                raise
            r = self.get(url, headers)  # it is shorter now: from its beginning
            offset = 0
        try:
            return self._body_of(r, url, item, offset)
        except Exception:
            r.close()
            raise

    def _body_of(self, r, url, item, offset):
        shown = url.partition("?")[0]
        kind = (r.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        is_page = kind in ("text/html", "application/xhtml+xml")
        if is_page and not item.path.lower().endswith((".html", ".htm", ".xhtml")):
            raise Fail(
                f"'{shown}' gives a web page (HTML) and not the file '{item.path}': is it the right "
                "URL, and does it want a login?"
            )
        if r.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Fail(f"'{shown}' packs what it sends ({r.headers['Content-Encoding']}) though it was asked not to")
        length, start, total = number(r.headers.get("Content-Length")), 0, None
        if r.status == 206:
            said = r.headers.get("Content-Range") or ""
            m = re.fullmatch(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)", said)
            if not m or int(m.group(1)) != offset:
                raise Fail(
                    f"'{shown}' was asked for the bytes from {offset} on and gives others "
                    f"({r.headers.get('Content-Range')})"
                )
            start, total = offset, number(m.group(2))
        elif length is not None:
            total = length
        etag = r.headers.get("ETag") or ""
        mark = etag if etag.startswith('"') else r.headers.get("Last-Modified")

        def read(n):
            try:
                return r.read(n)
            except TROUBLE as e:
                raise Again(f"'{shown}' broke off: {e or type(e).__name__}") from None

        return Body(read, start, total, mark, r.close)


class HttpSource:
    """One file at a URL."""

    def __init__(self, order):
        self.url = order["source"]
        self.web = Web(
            ": give a token as secret ARGUS_SOURCE_TOKEN, or user and password as "
            "ARGUS_SOURCE_USER and ARGUS_SOURCE_PASSWORD"
        )
        self.headers = {}
        if os.environ.get("ARGUS_SOURCE_TOKEN"):
            self.headers["Authorization"] = "Bearer " + os.environ["ARGUS_SOURCE_TOKEN"]
        elif os.environ.get("ARGUS_SOURCE_USER"):
            import base64

            pair = os.environ["ARGUS_SOURCE_USER"] + ":" + os.environ.get("ARGUS_SOURCE_PASSWORD", "")
            self.headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        path = urllib.parse.urlsplit(self.url).path
        self.name = order.get("filename") or urllib.parse.unquote(path.rpartition("/")[2])
        if not self.name:
            raise Fail(f"'{self.url}' names no file")

    def pin(self):
        return None

    def items(self):
        return [Item(self.name)]

    def open(self, item, offset, validator):
        return self.web.body(self.url, item, offset, validator, self.headers)


# ---- Hugging Face ----


class HubSource:
    """hf://owner/name[@revision]: a repository at a Hugging Face endpoint or mirror, pinned to its commit."""

    def __init__(self, order):
        pattern = r"hf://(datasets/|models/|)([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)?)(?:@([A-Za-z0-9_./-]+))?"
        m = re.fullmatch(pattern, order["source"])
        if not m or ".." in order["source"]:
            raise Fail(f"'{order['source']}' is not hf://owner/name[@revision]")
        self.kind = m.group(1) or ("models/" if order["what"] == "model" else "datasets/")
        self.repo, self.revision = m.group(2), m.group(3) or "main"
        self.endpoint = (order.get("endpoint") or os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
        self.web = Web(": a gated or private repository needs a token, given as secret HF_TOKEN")
        self.headers = {}
        if os.environ.get("HF_TOKEN"):
            self.headers["Authorization"] = "Bearer " + os.environ["HF_TOKEN"]
        self.commit = None

    def pin(self):
        return self.commit

    def items(self):
        where = f"{self.endpoint}/api/{self.kind}{self.repo}"
        url = f"{where}/revision/{urllib.parse.quote(self.commit or self.revision, safe='')}?blobs=true"
        body, headers = self.web.text(url, self.headers)
        try:
            about = json.loads(body)
            commit, files = about["sha"], about["siblings"]
            if not re.fullmatch(r"[0-9a-f]{40,64}", commit) or not isinstance(files, list):
                raise ValueError(commit)
            if len(files) > FILES_MAX:
                raise Fail(f"'{self.repo}' has {len(files)} files, more than the {FILES_MAX} that one import may have")
            items = [self._item(f) for f in files]
        except (ValueError, KeyError, TypeError, AttributeError):
            kind = headers.get("Content-Type", "?")
            raise Fail(
                f"'{where}' does not answer as a Hugging Face endpoint does ({kind}): is HF_ENDPOINT right?"
            ) from None
        self.commit = commit
        return items

    @staticmethod
    def _item(f):
        lfs = f.get("lfs")
        if lfs:
            digest = ("sha256", str(lfs.get("sha256") or lfs.get("oid")).lower())
            return Item(f["rfilename"], int(lfs.get("size", f.get("size"))), digest)
        size = f.get("size")
        digest = ("git-sha1", f["blobId"].lower()) if f.get("blobId") and size is not None else None
        return Item(f["rfilename"], size if size is None else int(size), digest)

    def open(self, item, offset, validator):
        kind = "datasets/" if self.kind == "datasets/" else ""
        path = urllib.parse.quote(item.path)
        url = f"{self.endpoint}/{kind}{self.repo}/resolve/{self.commit}/{path}"
        # The commit and the hash say that it is the same file: no validator is needed to go on.
        body = self.web.body(url, item, offset, None, self.headers)
        body.validator = None
        return body


# ---- S3 ----


class S3Source:
    """s3://bucket/prefix at an S3-compatible endpoint; requests are signed when there are keys (SigV4)."""

    def __init__(self, order):
        at = urllib.parse.urlsplit(order["source"])
        self.bucket, self.prefix = at.netloc, at.path.lstrip("/")
        if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,62}", self.bucket):
            raise Fail(f"'{order['source']}' is not s3://bucket/prefix")
        env = os.environ.get
        self.region = env("AWS_REGION") or env("AWS_DEFAULT_REGION") or "us-east-1"
        endpoint = order.get("endpoint") or env("AWS_ENDPOINT_URL_S3") or env("AWS_ENDPOINT_URL")
        self.endpoint = (endpoint or f"https://s3.{self.region}.amazonaws.com").rstrip("/")
        self.key, self.secret = env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY")
        self.session = env("AWS_SESSION_TOKEN")
        self.web = Web(": give the keys as secrets AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")

    def pin(self):
        return None

    def _signed(self, path, query):
        """The URL and the headers of one GET."""
        now = datetime.datetime.now(datetime.timezone.utc)  # noqa: UP017  (3.8 has no datetime.UTC)
        stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        at = urllib.parse.urlsplit(self.endpoint)
        quote = lambda s: urllib.parse.quote(s, safe="-_.~")  # noqa: E731
        line = "&".join(f"{quote(k)}={quote(v)}" for k, v in sorted(query.items()))
        whole = urllib.parse.quote(at.path + path, safe="/-_.~")
        url = f"{at.scheme}://{at.netloc}{whole}" + ("?" + line if line else "")
        headers = {"x-amz-content-sha256": hashlib.sha256(b"").hexdigest(), "x-amz-date": stamp}
        if self.session:
            headers["x-amz-security-token"] = self.session
        if not self.key or not self.secret:
            return url, {}
        signed = dict(headers, host=at.netloc)
        names = ";".join(sorted(signed))
        lines = [f"{k}:{signed[k]}" for k in sorted(signed)]
        canonical = "\n".join(["GET", whole, line, *lines, "", names, headers["x-amz-content-sha256"]])
        scope = f"{day}/{self.region}/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + self.secret).encode()
        for part in (day, self.region, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        mark = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        headers["Authorization"] = ", ".join(
            [f"AWS4-HMAC-SHA256 Credential={self.key}/{scope}", f"SignedHeaders={names}", f"Signature={mark}"]
        )
        return url, headers

    def items(self):
        out, more = [], {}
        for _ in range(PAGES_MAX):
            url, headers = self._signed(f"/{self.bucket}", dict({"list-type": "2", "prefix": self.prefix}, **more))
            body, _ = self.web.text(url, headers)
            found, token = self._page(body, url)
            out += found
            if len(out) > FILES_MAX:
                raise Fail(
                    f"more than {FILES_MAX} files are below 's3://{self.bucket}/{self.prefix}': give a longer prefix"
                )
            if not token:
                break
            more = {"continuation-token": token}
        if not out:
            raise Fail(f"nothing is at 's3://{self.bucket}/{self.prefix}'")
        return out

    def _page(self, body, url):
        if b"<!DOCTYPE" in body[:4096] or b"<!ENTITY" in body:
            raise Fail(f"'{url.partition('?')[0]}' does not answer as S3 does")
        try:
            root = tree.fromstring(body)
            space = root.tag.partition("}")[0] + "}" if root.tag.startswith("{") else ""
            if root.tag != space + "ListBucketResult":
                raise ValueError(root.tag)
            out = []
            for c in root.findall(space + "Contents"):
                key, size = c.findtext(space + "Key"), int(c.findtext(space + "Size"))
                if key.endswith("/"):
                    continue  # the mark of an empty directory
                tag = (c.findtext(space + "ETag") or "").strip('"').lower()
                digest = ("md5", tag) if re.fullmatch(r"[0-9a-f]{32}", tag) else None
                out.append(Item(self._below(key), size, digest, key, f'"{tag}"' if tag else None))
            return out, root.findtext(space + "NextContinuationToken")
        except (tree.ParseError, ValueError, TypeError, AttributeError):
            raise Fail(f"'{url.partition('?')[0]}' does not answer as S3 does: is the endpoint right?") from None

    def _below(self, key):
        """The name below the goal: without the prefix's directories."""
        if key == self.prefix:
            return key.rpartition("/")[2]
        return key[len(self.prefix.rpartition("/")[0]) :].lstrip("/")

    def open(self, item, offset, validator):
        url, headers = self._signed(f"/{self.bucket}/{item.where}", {})
        return self.web.body(url, item, offset, validator or item.validator, headers)
