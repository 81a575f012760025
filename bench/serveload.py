# SPDX-License-Identifier: Apache-2.0
"""serveload - clients that ask a service through argusd, and what became of each of their requests: what
bench/serve_switch and bench/serve_deaths share.

Each client has a connection of its own, which stays open from one request to the next, and waits for its answer before
it asks again. A request belongs to the phase in which it was sent. An answer that is not 200, and none at all, has
failed, and its kind says how: the status with the code of the problem, or what became of the connection."""

import collections
import dataclasses
import http.client
import json
import threading
import time
import urllib.parse

import benchlib

GOOD = "200"
POLL_SECONDS = 0.2
REST_SECONDS = 0.05  # after a request that failed: where nobody listens, the next one fails at once
WHY_MOST = 5  # failures of a phase that are told with the words of their answer


@dataclasses.dataclass
class Question:
    """What is asked, below the address of the service."""

    service: str
    path: str
    body: str

    @property
    def target(self):
        return f"/v1/services/{self.service}{self.path}"


def question_of(page, path=None, body=None):
    """One token of a model; the first page of an application, with a body that the translator of examples/ takes."""
    name = page["name"]
    is_model = any(v["spec"].get("model") for v in page["versions"])
    asked = {"model": name, "prompt": "1 + 1 =", "max_tokens": 1} if is_model else {"text": "good morning world"}
    return Question(name, path or ("/v1/completions" if is_model else "/"), body or json.dumps(asked))


def replicas_of(page, version=None):
    """Of one version of a service, or of all."""
    return [r for v in page["versions"] if version in (None, v["n"]) for r in v["replicas"]]


class Caller:
    """One connection to argusd, opened again when it was closed."""

    def __init__(self, url, token, timeout=120):
        self.at, self.token, self.timeout, self.connection = urllib.parse.urlsplit(url), token, timeout, None

    def open(self):
        kind = http.client.HTTPSConnection if self.at.scheme == "https" else http.client.HTTPConnection
        return kind(self.at.hostname, self.at.port, timeout=self.timeout)

    def call(self, method, path, body=None):
        """(status, bytes)"""
        self.connection = self.connection or self.open()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            self.connection.request(method, path, body, headers)
            reply = self.connection.getresponse()
            got = reply.status, reply.read()
        except Exception:
            self.close()
            raise
        if reply.will_close:
            self.close()
        return got

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def kind(self, question):
        """(how it was answered, the answer's words)"""
        try:
            status, text = self.call("POST", question.target, question.body)
        except ConnectionRefusedError as e:
            return "refused", repr(e)
        except TimeoutError as e:
            return "no answer in time", repr(e)
        except (ConnectionError, http.client.IncompleteRead) as e:
            return "cut", repr(e)
        except (OSError, http.client.HTTPException) as e:
            return type(e).__name__, repr(e)
        return f"{status} {problem_code(text)}".strip() if status != 200 else GOOD, text.decode(errors="replace")


def problem_code(text):
    """The code of a problem of argusd, or of an error of the engine; "" of anything else."""
    try:
        said = json.loads(text)
    except ValueError:
        return ""
    said = said if isinstance(said, dict) else {}
    inner = said.get("error")
    return str(said.get("code") or (isinstance(inner, dict) and inner.get("code")) or "")


@dataclasses.dataclass
class Asked:
    """One request that is over."""

    phase: str
    began: float
    ended: float
    kind: str


class Load:
    """The clients. Each asks as soon as it has its answer, or once in `every` seconds."""

    def __init__(self, url, token, question, clients, every=0.0, timeout=120):
        self.question, self.every = question, every
        self.lock, self.over = threading.Lock(), threading.Event()
        self.phase, self.asked, self.why, self.told = "before", [], [], collections.Counter()
        callers = [Caller(url, token, timeout) for _ in range(clients)]
        self.clients = [threading.Thread(target=self.work, args=(c,), daemon=True) for c in callers]

    def work(self, caller):
        while not self.over.is_set():
            phase, began = self.phase, time.monotonic()
            kind, text = caller.kind(self.question)
            ended = time.monotonic()
            with self.lock:
                self.asked.append(Asked(phase, began, ended, kind))
                if kind != GOOD and self.told[phase] < WHY_MOST:
                    self.told[phase] += 1
                    self.why.append(f"{phase}: {kind}: {text[:200]}")
            rest = REST_SECONDS if kind != GOOD else 0.0
            self.over.wait(max(rest, began + self.every - ended))
        caller.close()

    def __enter__(self):
        for c in self.clients:
            c.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for c in self.clients:
            c.join()

    def rows(self):
        with self.lock:
            return list(self.asked)

    def count(self, phase):
        return sum(a.phase == phase for a in self.rows())

    def has_answer_since(self, moment):
        """One that was asked after it and is good."""
        return any(a.began >= moment and a.kind == GOOD for a in self.rows())


def summary(rows):
    """What became of these requests. The times are those of good answers."""
    kinds = collections.Counter(a.kind for a in rows)
    good = sorted(1000 * (a.ended - a.began) for a in rows if a.kind == GOOD)
    failed = {k: n for k, n in sorted(kinds.items()) if k != GOOD}
    return {
        "requests": len(rows),
        "failed": sum(failed.values()),
        "kinds": failed,
        "p50_ms": benchlib.at_share(good, 0.5),
        "p99_ms": benchlib.at_share(good, 0.99),
    }


def silence(rows, begin, end):
    """The longest time between these two moments in which no good answer came, in seconds."""
    marks = sorted(a.ended for a in rows if a.kind == GOOD and begin <= a.ended <= end)
    marks = [begin, *marks, end]
    return max(b - a for a, b in zip(marks, marks[1:], strict=False))


def cell(value):
    return "-" if value is None else value


def kinds_cell(kinds):
    return ", ".join(f"{n} x {k}" for k, n in kinds.items()) or "-"
