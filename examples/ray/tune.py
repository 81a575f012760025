# SPDX-License-Identifier: Apache-2.0
"""Ray Tune: which learning rate brings x closest to 2 in ten steps?"""

import json
import os
import pathlib

import ray
from ray import tune

OUT = pathlib.Path(os.environ["ARGUS_ATTEMPT_DIR"])  # on the shared root: every trial sees it


def descend(config):
    """One Tune trial: ten steps down (x - 2)², told one by one."""
    x, gpus = 0.0, ray.get_runtime_context().get_accelerator_ids().get("GPU", [])
    for _ in range(10):
        x -= config["lr"] * 2 * (x - 2)
        tune.report({"loss": (x - 2) ** 2, "gpus": ",".join(gpus), "node": ray.util.get_node_ip_address()})


def main():
    ray.init()
    tuner = tune.Tuner(
        tune.with_resources(descend, {"cpu": 1, "gpu": 0.5}),
        param_space={"lr": tune.grid_search([0.01, 0.1, 0.4, 1.0])},
        # what fits into the lease: more would only wait for each other
        tune_config=tune.TuneConfig(metric="loss", mode="min", max_concurrent_trials=2),
        run_config=tune.RunConfig(name="tune", storage_path=str(OUT)),
    )
    trials = tuner.fit()
    best = trials.get_best_result()
    keep = ("loss", "gpus", "node", "training_iteration")
    rows = [{"lr": t.config["lr"], **{k: t.metrics[k] for k in keep}} for t in trials]
    result = {"best_lr": best.config["lr"], "errors": trials.num_errors, "trials": rows}
    print(json.dumps(result))
    (OUT / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
