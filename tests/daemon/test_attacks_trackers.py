# SPDX-License-Identifier: Apache-2.0
"""The MLflow server of one user takes whatever comes and never answers: the starts of others are decided, and their
runs completed, all the same. A token with line breaks is no second request on a connection to a server of all."""

import contextlib
import http.server
import json
import threading

from fakeray import FakeRay
from trackerbed import Way

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

OWN = "calls: {networks: [127.0.0.0/8]}"  # servers that users name are on this machine
MANY = 9
OTHERS_FIRST = 8  # in one line of eight places for all users, so many of hers would be decided before his


class Answers(http.server.BaseHTTPRequestHandler):
    """As MLflow would for one run without metrics."""

    SAID = {"get-by-name": {"experiment": {"experiment_id": "1"}}, "search": {"runs": []},
            "create": {"run": {"info": {"run_id": "ab12"}}}, "get": {"run": {"data": {}}}}  # fmt: skip

    def _answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        word = self.path.split("?")[0].rsplit("/", 1)[1]
        body = json.dumps(self.SAID.get(word, {})).encode()
        self.server.words.append(word)
        self.server.heads.append(dict(self.headers))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815, the names are http.server's

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def mlflow():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.words, server.heads, server.url = [], [], f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def run_on(argusd, url, token):
    return argusd.submit("true", token=token, tracking={"backend": "mlflow", "uri": url, "project": "p", "run": "r"})


def told(argusd, job):
    """(number, code) of what was decided about its tracker; None: nothing yet."""
    rows = [(e["seq"], e["reason"]["code"]) for e in argusd.events(job) if e["kind"] == "tracker"]
    return rows[0] if rows else None


def test_others_start_and_are_completed_beside_a_server_that_never_answers(tmp_path):
    with Way(None, "hang") as silent, mlflow() as good, FakeRay() as ray, Argusd(tmp_path, ray.url, OWN) as argusd:
        hers = [run_on(argusd, silent.url, "user") for _ in range(MANY)]
        his = run_on(argusd, good.url, "admin")
        number, code = until(lambda: told(argusd, his), "his tracker is decided")
        assert code == "tracker_online"
        argusd.wait_job(his, lambda j: [t["state"] for t in j["trackers"]] == ["complete"], "has its whole run")
        assert good.words[:3] == ["get-by-name", "search", "create"] and good.words[-1] == "update"
        decided = [until(lambda job=job: told(argusd, job), "hers start without it") for job in hers]
        assert {code for _, code in decided} == {"tracker_none"} and silent.seen
        assert sum(n < number for n, _ in decided) < OTHERS_FIRST, (number, decided)
        for job in hers:
            assert argusd.wait_over(job)["state"] == "SUCCEEDED"
        again = run_on(argusd, good.url, "admin")  # while all of hers are tried again
        argusd.wait_job(again, lambda j: [t["state"] for t in j["trackers"] or []] == ["complete"], "has its run, too")


def test_a_token_with_line_breaks_is_one_header(tmp_path):
    token = "hers\r\nX-Second: 1\r\nContent-Length: 0\r\n\r\nPOST /api/2.0/mlflow/runs/third HTTP/1.1\r\nX-Fourth: 1"
    with mlflow() as good, FakeRay() as ray, Argusd(tmp_path, ray.url, OWN) as argusd:
        reply = argusd.call("PUT", "/v1/secrets/MLFLOW_TRACKING_TOKEN", {"value": token}, token="user")
        assert reply.status in (200, 201), reply
        job = run_on(argusd, good.url, "user")
        argusd.wait_job(job, lambda j: [t["state"] for t in j["trackers"] or []] == ["complete"], "has its whole run")
        assert {head["Authorization"] for head in good.heads} == {"Bearer hers"}
        assert "third" not in good.words and not [h for h in good.heads if "X-Second" in h or "X-Fourth" in h]
