# SPDX-License-Identifier: Apache-2.0
"""A whole training of real verl 0.5.0 on real Ray, with a real MLflow server that dies in the middle and W&B's files:
it ends well, and both have all of its steps."""

import json

import pytest
import stage as staging
from raybed import BEDS, built_env
from test_trial_real import EXAMPLE
from trackerbed import READ_WANDB, MLflow, Way, link_packages, read_back

from argusd import until

pytestmark = [pytest.mark.verl, pytest.mark.ray, pytest.mark.nightly, pytest.mark.timeout(1800)]


@pytest.fixture
def stage(request, tmp_path_factory):
    env = built_env("verl-0.5.0")
    tiny = staging.make_tiny(env / "bin/python", tmp_path_factory.mktemp("tiny"))
    kept = tmp_path_factory.mktemp("kept")
    with staging.open_stage(staging.Stage, BEDS.get("2.51.1"), request, tmp_path_factory, kept, tiny) as s:
        yield s


def test_a_training_with_a_server_that_dies(stage, tmp_path):
    # The workers are in networks of their own: they come by the bed's address of this machine.
    with MLflow(tmp_path) as mlflow, Way(mlflow.port, host=stage.bed.ctl_ip) as way:
        path = ["${SHARED_ROOT}/common/code/cpu", str(link_packages(stage.root / "common"))]  # first the example's own
        keys = {"submission_id": "tracked", "extra_pythonpath": path}
        keys["wandb"] = {"enabled": True, "project": "proj", "run": "my run"}
        keys["tracking"] = {"backend": "mlflow", "uri": way.url}
        words = (w for k, v in keys.items() for w in ("--set", f"{k}={v if isinstance(v, str) else json.dumps(v)}"))
        stage.argus("submit", *words, str(EXAMPLE))

        def begun():  # by verl itself, which loads MLflow while the first steps are made
            runs = mlflow.runs("proj", "tracked")
            return runs and runs[0]["data"].get("params") and runs[0]["data"].get("metrics")

        stage.wait_job("tracked", lambda j: (j["step"] or 0) >= 2, "is at its second step")
        until(begun, "verl's parameters and first step in MLflow")
        assert stage.get("/v1/jobs/tracked")["state"] == "RUNNING", "the server is to hang in mid-run"
        way.how = "hang"
        view = stage.wait_over("tracked")
        assert view["state"] == "SUCCEEDED", stage.keep("tracked", view)
        way.how = "pass"

        def complete(job):
            return all(t["state"] in ("complete", "kept") for t in job["trackers"])

        view = stage.wait_job("tracked", complete, "is in its trackers")
        rows = {t["tracker"]: t for t in view["trackers"]}
        assert (rows["mlflow"]["mode"], rows["mlflow"]["state"]) == ("online", "complete")
        told = stage.get("/v1/jobs/tracked/metrics?keys=critic/score/mean&points=512")["series"]["critic/score/mean"]
        want = dict(zip(told["step"], told["value"], strict=True))
        (run,) = mlflow.runs("proj", "tracked")
        assert run["info"]["status"] == "FINISHED" and run["data"].get("params"), "verl wrote the parameters itself"
        seen = dict(mlflow.history(run["info"]["run_id"], "critic/score/mean"))
        assert len(want) >= 3 and seen == pytest.approx(want, abs=1e-3)
        (file,) = stage.job_dir("tracked").glob("attempts/1/wandb/offline-run-*/run-tracked-1.wandb")
        read = read_back(READ_WANDB, file)
        assert (read["id"], read["project"], read["name"], read["group"]) == ("tracked-1", "proj", "my run", "tracked")
        steps = {int(s): v["critic/score/mean"] for s, v in read["steps"].items() if "critic/score/mean" in v}
        assert steps == pytest.approx(want, abs=1e-3)
