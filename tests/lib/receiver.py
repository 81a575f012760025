# SPDX-License-Identifier: Apache-2.0
"""A real HTTP server in the place of whoever is told something: it keeps the messages and checks their signatures."""

import base64
import hashlib
import hmac
import http.server
import json
import threading
import time

KEY = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


class Receiver(http.server.ThreadingHTTPServer):
    """Keeps what it is told; answers what `answer` says: (status, body), or None to say nothing for ever."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Post)
        self.port, self.answer = self.server_address[1], (200, b"{}")
        self.got, self.seen, self.over = [], [], threading.Event()
        self.came = []  # (monotonic time, body) of what was taken
        self.url = f"http://127.0.0.1:{self.port}/in?access_token=hidden-key"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.shutdown()
        self.server_close()

    def bodies(self):
        return [json.loads(body) for _, _, body in list(self.got)]

    def ids(self):
        return [head["webhook-id"] for _, head, _ in list(self.got)]

    def titled(self, part):
        """The messages, each once: on a busy machine one may come again, with the same id."""
        by_id = {}
        for _, head, body in list(self.got):
            by_id.setdefault(head["webhook-id"], json.loads(body))
        return [b for b in by_id.values() if part in b["title"]]


class Post(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # noqa: N802, the name is http.server's
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append(self.headers.get("webhook-id"))
        answer = self.server.answer
        if answer is None:
            self.server.over.wait()
            return
        status, text = answer(self, body) if callable(answer) else answer
        if status < 300:
            self.server.got.append((self.path, self.headers, body))
            self.server.came.append((time.monotonic(), body))
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.server.port}/elsewhere")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def chat(content, status=200, **more):
    """An answer of a model that speaks OpenAI's chat form."""
    return status, json.dumps({"choices": [{"message": {"content": content}}], **more}).encode()


def sign(key, text):
    return base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()


def check_webhook(post, body):
    head = post.headers
    text = f"{head['webhook-id']}.{head['webhook-timestamp']}.".encode() + body
    good = head["webhook-signature"] == "v1," + sign(base64.b64decode(KEY), text)
    return (204, b"") if good else (401, b"wrong signature")
