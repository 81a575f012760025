# SPDX-License-Identifier: Apache-2.0
"""Ray Data: batch inference. Rows stream through actors that load their model once; what comes out is parquet."""

import json
import os
import pathlib

import ray

ROWS = 10_000


class Scorer:
    """Stands for a model: made once in each actor, called with batches (a dict of numpy columns)."""

    def __init__(self):
        self.gpus = ",".join(ray.get_runtime_context().get_accelerator_ids().get("GPU", []))
        self.node = ray.util.get_node_ip_address()

    def __call__(self, batch):
        n = len(batch["id"])
        batch["score"] = batch["id"] % 7
        batch["by"] = [f"{self.node} GPU {self.gpus}"] * n
        return batch


def main():
    ray.init()
    out = pathlib.Path(os.environ["ARGUS_ATTEMPT_DIR"])
    rows = ray.data.range(ROWS, override_num_blocks=8)
    scored = rows.map_batches(Scorer, batch_size=500, num_gpus=0.5, compute=ray.data.ActorPoolStrategy(size=2)).filter(
        lambda row: row["score"] > 0
    )
    scored.write_parquet(str(out / "scored"))
    back = ray.data.read_parquet(str(out / "scored")).to_pandas()
    result = {"rows": len(back), "sum": int(back["score"].sum()), "by": sorted(back["by"].unique())}
    print(json.dumps(result))
    (out / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
