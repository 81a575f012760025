# SPDX-License-Identifier: Apache-2.0
"""A client of Argus in Python, one file and no dependencies: in notebooks it is there as `argus`, elsewhere
`pip install argus-client --no-index --find-links URL/client` brings it from argusd itself (docs/client.md).

    import argus
    job = argus.submit("train.yaml")          # a file, YAML or JSON text, or a dict
    job.wait()                                # until it has ended; raises argus.Failed unless it SUCCEEDED
    job.metrics()                             # a DataFrame where pandas is there, else a list of dicts
    job.samples(order="worst")                # the same of what a training wrote: prompts, answers, scores
    print(job.state, job.why(), job.logs())

Where the server is and who asks: ARGUS_URL and ARGUS_TOKEN, or what `argus login` wrote (~/.config/argus/config.yaml).
In a notebook `%argus submit FILE` submits, and shows the job's states until it has ended with `-w`; `%%argus submit`
takes the spec from its cell. In a Jupyter of your own, `%load_ext argus` comes first.

Answers have types for editors and type checkers: argus/types.py, which the installed package has.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from argus import types

OVER = ("SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT")
POLL = "30s"  # the server answers earlier when something changes
REPLY_MAX = 256 << 20  # bytes of an answer that are taken into memory
PAGE = 100  # samples of a page, as many as the server gives at once


class Error(Exception):
    """What the server refused: `status`, `code`, and the whole `problem`."""

    def __init__(self, status, problem):
        super().__init__(problem.get("detail") or problem.get("title") or f"HTTP {status}")
        self.status, self.code, self.problem = status, problem.get("code"), problem


class Failed(Exception):
    """The job ended, and not well: `job`."""

    def __init__(self, job):
        reason = (job.info.get("reason") or {}).get("text")
        super().__init__(f"job {job.id} is {job.state}" + (f": {reason}" if reason else ""))
        self.job = job


def _settings():
    """(url, token, file of a certificate authority or None), as the command line has them."""
    home = pathlib.Path(os.environ.get("XDG_CONFIG_HOME") or pathlib.Path.home() / ".config")
    try:
        text = (home / "argus/config.yaml").read_text()
    except OSError:
        text = ""
    kept = dict(re.findall(r"""^(server|token|ca):\s*["']?([^"'\s]+)["']?\s*$""", text, re.M))
    url = (os.environ.get("ARGUS_URL") or kept.get("server", "")).rstrip("/")
    if url != kept.get("server", "").rstrip("/"):
        kept = {}  # a token is for the server that it was given for
    token, ca = os.environ.get("ARGUS_TOKEN") or kept.get("token"), kept.get("ca")
    if not url or not token:
        raise RuntimeError("no server: set ARGUS_URL and ARGUS_TOKEN, or run 'argus login URL'")
    return url, token, ca


class Client:
    def __init__(self, url=None, token=None, ca=None):
        self.url, self.token, ca = (url.rstrip("/"), token, ca) if url and token else _settings()
        self.tls = ssl.create_default_context(cafile=ca) if self.url.startswith("https:") else None
        self.etag = None  # of the last answer

    def request(self, method, path, body=None, kind="application/json", query=None, etag=None):
        """The answer as JSON, or as text where it is none; None: it is still what `etag` names. `path`: /v1/…."""
        query = {k: v for k, v in (query or {}).items() if v is not None}
        url = self.url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        lines = {"Authorization": f"Bearer {self.token}", "Accept": "application/json, text/plain"}
        if etag:
            lines["If-None-Match"] = etag
        if data is not None:
            lines["Content-Type"] = kind
        asked = urllib.request.Request(url, data, lines, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=120, context=self.tls) as reply:
                text, is_json = reply.read(REPLY_MAX + 1), "json" in reply.headers.get("Content-Type", "")
                self.etag = reply.headers.get("ETag")
        except urllib.error.HTTPError as e:
            if e.code == 304:
                return None
            raise Error(e.code, _problem(e.read(REPLY_MAX))) from None
        if len(text) > REPLY_MAX:
            raise RuntimeError(f"the answer to {path} is larger than {REPLY_MAX >> 20} MiB: ask for less at once")
        return json.loads(text) if is_json else text.decode(errors="replace")

    def submit(self, spec: types.JobSpec | str | os.PathLike, smoke=False, **keys) -> Job:
        """spec: a file's path, YAML or JSON text, or a dict; keys are set in a dict's copy. smoke: try it small."""
        if isinstance(spec, dict):
            query = {"smoke": "true" if smoke else None}
            return self.job(self.request("POST", "/v1/jobs", {**spec, **keys}, query=query))
        if keys:
            raise TypeError("keys go with a dict; in a file or a text they are written down")
        text = str(spec)
        if isinstance(spec, os.PathLike) or ("\n" not in text and pathlib.Path(text).is_file()):
            text = pathlib.Path(spec).read_text()
        return self.submit_yaml(text, smoke)

    def submit_yaml(self, text: str, smoke=False) -> Job:
        query = {"smoke": "true" if smoke else None}
        return self.job(self.request("POST", "/v1/jobs", text.encode(), "application/yaml", query))

    def job(self, id_or_info) -> Job:
        info = id_or_info if isinstance(id_or_info, dict) else self.request("GET", f"/v1/jobs/{_quoted(id_or_info)}")
        return Job(self, info)

    def jobs(self, **filters) -> list[Job]:
        """The first page of those that the filters of GET /v1/jobs let through: user, state, workload, limit…"""
        return [Job(self, x) for x in self.request("GET", "/v1/jobs", query=filters)["jobs"]]


def _problem(text):
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _quoted(text):
    return urllib.parse.quote(str(text), safe="")


class Job:
    """`info` is what the server said last; attributes of it are attributes here."""

    client: Client
    info: types.Job

    def __init__(self, client, info):
        self.client, self.info, self._etag = client, info, None

    def __getattr__(self, name):
        if name in ("info", "client", "_etag") or name not in self.info:
            raise AttributeError(name)
        return self.info[name]

    def __repr__(self):
        return f"<job {self.id} {self.state}>"

    def _ask(self, method, path="", **query):
        return self.client.request(method, f"/v1/jobs/{_quoted(self.id)}{path}", query=query)

    def refresh(self, wait=None):
        """wait: a span, "30s": until it changes, or so long."""
        path, etag = f"/v1/jobs/{_quoted(self.id)}", self._etag if wait else None
        info = self.client.request("GET", path, query={"wait": wait if etag else None}, etag=etag)
        if info is not None:
            self.info, self._etag = info, self.client.etag
        return self

    @property
    def is_over(self):
        return self.state in OVER

    def wait(self, timeout=None, check=True, on_change=None) -> Job:
        """Until it has ended. check: raise Failed unless it SUCCEEDED. timeout: seconds, then TimeoutError."""
        end, seen, wait = None if timeout is None else time.monotonic() + timeout, None, None
        while True:
            self.refresh(wait)
            if on_change and self.state != seen:
                on_change(self)
            seen = self.state
            if self.is_over:
                break
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError(f"job {self.id} is still {self.state}")
            wait = POLL if left is None or left > 30 else f"{max(1, int(left))}s"
        if check and self.state != "SUCCEEDED":
            raise Failed(self)
        return self

    def stop(self):
        return self._ask("POST", ":stop")

    def why(self) -> types.Why:
        return self._ask("GET", "/why")

    def logs(self, tail=None, **which) -> str:
        """The driver's log, the last MiB of it at most. which: attempt, source, file, grep… of GET /v1/jobs/ID/logs."""
        return self._ask("GET", "/logs", tail=tail, **which)

    def metrics(self, keys=None, points=512, pandas=True):
        """One row for each step: a DataFrame with index `step`, or a list of dicts. keys: "critic/*,actor/*".
        points: of a curve at most; each keeps the least and greatest value of its steps."""
        rows = _rows(self._ask("GET", "/metrics", keys=keys, points=points))
        table = _table(rows, pandas)
        return table.set_index("step") if table is not rows and "step" in table else table

    def sample_pages(self, limit=1000, **which) -> Iterator[types.Samples]:
        """Page by page, until `limit` samples came or there are no more. which: as samples() has it."""
        cursor, left = None, limit
        while left > 0:
            page = self._ask("GET", "/samples", limit=min(left, PAGE), cursor=cursor, **which)
            yield page
            left -= len(page["samples"])
            cursor = page["next_cursor"]
            if not cursor:
                return

    def samples(self, limit=1000, pandas=True, **which):
        """What a training of verl wrote: a DataFrame with one row for each sample, or a list of dicts; `limit` rows at
        most. which: step (the newest if not given), kind="validation", prompt, min, max, grep, order="worst" or "best",
        order="changed" with since, text (bytes of each prompt and answer)."""
        rows, pending = [], False
        for page in self.sample_pages(limit, **which):
            rows += page["samples"]
            pending = page["pending"]
        if pending:
            warnings.warn(f"job {self.id}: argusd still reads what was written, ask again for the rest", stacklevel=2)
        return _table(rows, pandas)


def _table(rows, pandas):
    """A DataFrame where it is wanted and pandas is there."""
    if not pandas:
        return rows
    try:
        from pandas import DataFrame
    except ImportError:
        return rows
    return DataFrame(rows)


def _rows(answer):
    """The curves as rows: one for each step that has a value, in their order."""
    rows = {}
    for name, series in answer["series"].items():
        for step, value in zip(series["step"], series["value"], strict=False):
            rows.setdefault(step, {"step": step})[name] = value
    return [rows[step] for step in sorted(rows)]


# ---- without naming a client ----


def submit(spec: types.JobSpec | str | os.PathLike, smoke=False, **keys) -> Job:
    return Client().submit(spec, smoke, **keys)


def job(id_: str) -> Job:
    return Client().job(id_)


def jobs(**filters) -> list[Job]:
    return Client().jobs(**filters)


# ---- %argus ----

USAGE = """%argus submit FILE [-w] [--smoke] | status ID | wait ID | logs ID | stop ID
%%argus submit [-w] [--smoke], and the spec as YAML in the lines below"""
SUBMIT_OPTIONS = ("-w", "--smoke")


def _magic_submit(words, cell):
    """The spec is a file that is named, or the cell; None: not understood."""
    options = [w for w in words if w in SUBMIT_OPTIONS]
    files = [w for w in words if w not in SUBMIT_OPTIONS]
    if len(files) != (0 if cell is not None else 1):
        print(USAGE)
        return None
    smoke = "--smoke" in options
    made = Client().submit_yaml(cell, smoke) if cell is not None else submit(pathlib.Path(files[0]), smoke)
    print(f"job {made.id} is {made.state}")
    return made.wait(check=False, on_change=print) if "-w" in options else made


def magic(line, cell=None):
    """%argus and %%argus: the job, for `_` and the next cell."""
    words = line.split()
    verb, rest = (words[0], words[1:]) if words else ("", [])
    if verb == "submit":
        return _magic_submit(rest, cell)
    if cell is not None or len(rest) != 1 or verb not in ("status", "wait", "logs", "stop"):
        print(USAGE)
        return None
    it = job(rest[0])
    if verb == "wait":
        return it.wait(check=False, on_change=print)
    if verb == "logs":
        print(it.logs())
        return None
    if verb == "stop":
        it.stop()
    return it.refresh()


def load_ipython_extension(ipython):
    ipython.register_magic_function(magic, "line_cell", "argus")
