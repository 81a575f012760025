# SPDX-License-Identifier: Apache-2.0
"""What would serve a job better: known from runs like it and from its pool, and nothing is started by asking."""

import os
import subprocess

from fakeray import FakeRay
from programs import PROGRAMS

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd


def test_a_suggestion_comes_from_runs_and_from_the_pool(tmp_path):
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:

        def suggested(**keys):
            reply = argusd.post(Argusd.spec("true", **keys), "?suggest=1", token="user")
            assert reply.status == 200, reply
            return {a["key"]: a["value"] for a in reply.json()["advice"]}

        until(lambda: argusd.post(Argusd.spec("true"), "?dry_run=1").json()["placement"], "argusd has seen Ray")
        assert "advice" not in argusd.post(Argusd.spec("true"), "?dry_run=1").json()
        assert suggested() == {}
        for _ in range(5):
            argusd.wait_over(argusd.submit("true"))
        before = len(argusd.all_jobs())
        assert list(suggested()) == ["timeout"]
        assert suggested(nnodes=7, n_gpus_per_node=4)["nnodes"] == "2"
        assert len(argusd.all_jobs()) == before

        (tmp_path / "job.yaml").write_text("workload: ray\nentrypoint: [sh, -c, 'true']\n")
        env = {**os.environ, "ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "HOME": str(tmp_path)}
        argv = [PROGRAMS["argus"], "submit", "--suggest", "job.yaml"]
        p = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
        assert p.returncode == 0, p.stderr
        assert p.stdout.startswith("# nine of ten runs like this ended within")
        assert "\ntimeout: " in p.stdout and "to take it: argus submit job.yaml --set timeout=" in p.stderr
        assert len(argusd.all_jobs()) == before
