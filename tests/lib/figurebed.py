# SPDX-License-Identifier: Apache-2.0
"""A fake Ray whose two workers have 2 GPUs and a real metrics page each, of what a Ray 2.60.0 and a 2.51.1 wrote."""

import http.server
import pathlib
import threading

from fakeray import FakeRay

from argusd import Argusd, until

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "figures"


class Page:
    """The metrics page of one node, on an address of its own."""

    def __init__(self, ip, text, port=0):
        self.text, self.status, self.asked = text, 200, 0
        page = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                page.asked += 1
                body = page.text.encode() if self.path == "/metrics" else b"elsewhere"
                self.send_response(page.status)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except ConnectionError:
                    pass  # argusd had enough of it

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((ip, port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class World:
    def __init__(self, home, more=""):
        new, old = (GOLDEN / f"ray-{v}-worker.prom" for v in ("2.60.0", "2.51.1"))
        self.pages = {"w1": Page("127.0.0.2", new.read_text()), "w2": Page("127.0.0.3", old.read_text())}
        worker = {"resources": {"CPU": 8, "GPU": 2, "worker_node": 100}}
        nodes = [
            {"name": "head", "ip": "127.0.0.1", "head": True, "resources": {"CPU": 0}},
            {"name": "w1", "ip": "127.0.0.2", "metrics_port": self.pages["w1"].port, **worker},
            {"name": "w2", "ip": "127.0.0.3", "metrics_port": self.pages["w2"].port, **worker},
        ]
        for n in nodes[1:]:
            n["resources"] = {**n["resources"], f"argus_node_{n['name']}": 1000}
        self.ray = FakeRay(nodes=nodes, state=home / "ray").start()
        self.argusd = Argusd(home, self.ray.url, more=more).__enter__()
        until(lambda: len(self.argusd.get("/v1/nodes")["nodes"]) == 3, "the nodes of the fake Ray")

    def close(self, kind=None):
        self.argusd.__exit__(kind)
        self.ray.stop()
        for page in self.pages.values():
            page.close()

    def figures(self, node, figure="gpu_util_ratio", query="since=10m&step=15s"):
        return self.argusd.get(f"/v1/nodes/{node}/figures?figure={figure}&{query}")

    def told(self, node, figure="gpu_util_ratio"):
        """The series of a node once each has a value; all values of each, in the order of GPUs."""

        def known():
            series = self.figures(node, figure)["series"]
            values = [[v for v in s["mean"] if v is not None] for s in series]
            return values if values and all(values) else None

        return until(known, f"{figure} of {node}")
