# SPDX-License-Identifier: Apache-2.0
"""What the hook of each rank of a training tells of its time (hook/argus_ranks.py), made by a test.

    tell(argusd, job, node)                            all are as quick as each other
    tell(argusd, job, node, slow=2, throttled=4)       rank 2 works longer, and its cgroup holds it back"""

import json
import os
import time

WORLD, SECONDS = 4, 10


def tell(argusd, job, node, slow=None, **more):
    """Three windows of each rank, the newest of which ends now."""
    place = argusd.job_dir(job) / "attempts/1/ranks"
    place.mkdir(exist_ok=True)
    for rank in range(WORLD):
        work = 9.5 if rank == slow else 5.0
        row = {"seconds": SECONDS, "work": work, "wait": SECONDS - work, "calls": 20, "cpu": 0.9 * work, "throttled": 0}
        row |= {"faults": 0, "disk_bytes": 0, "rtt_ms": 0.2} | (more if rank == slow else {})
        windows = [{"at": time.time() - SECONDS * ago, **row} for ago in (2, 1, 0)]
        told = {"id": "abc", "rank": rank, "world": WORLD, "node": node, "pid": 7, "windows": windows}
        part = place / f"abc-{rank}.json.7"
        part.write_text(json.dumps(told))
        os.replace(part, place / f"abc-{rank}.json")
