# SPDX-License-Identifier: Apache-2.0
"""Days of the past in the ledger of an argusd that is down, so that a forecast has a history whose truth is known.

argusd.stop()
write_days(argusd, "h20", [1.0, 2.0, 1.5], capacity=4)
argusd.start()
"""

import contextlib
import sqlite3
import time

DAY = 86400
UNIT = 10000 * 1000  # of a GPU-second in the ledger


def write_days(argusd, labels, demand, capacity):
    """Days of a pool up to yesterday, as the ledger keeps them; demand and capacity in GPUs."""
    today = int(time.time()) // DAY * DAY
    with contextlib.closing(sqlite3.connect(argusd.state_dir / "argus.db")) as db, db:
        key = db.execute(
            "INSERT INTO usage_key(cluster, labels, project, user, workload) VALUES('default', ?, 'p', 'u', 'w')",
            (labels,),
        ).lastrowid
        for i, gpus in enumerate(demand):
            used, whole = round(gpus * DAY * UNIT), capacity * DAY * UNIT
            sums = [whole, used, 0, 0, whole - used, 0, 0, 0, used, 0, 0]
            at = today - (len(demand) - i) * DAY
            db.execute(f"INSERT INTO usage VALUES({DAY}, ?, ?, {','.join('?' * 11)})", (at, key, *sums))
