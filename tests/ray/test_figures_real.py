# SPDX-License-Identifier: Apache-2.0
"""On real Ray: argusd finds the metrics page of each raylet, asks it, and knows what the machine does."""

import pytest
from raybed import BEDS

from argusd import Argusd, needs_argusd, until

pytestmark = [pytest.mark.ray, needs_argusd, pytest.mark.timeout(600)]


def test_every_real_node_tells(tmp_path):
    with Argusd(tmp_path, BEDS.get("2.51.1").url) as argusd:
        online = lambda: [n["name"] for n in argusd.get("/v1/nodes")["nodes"] if n["state"] == "online"]  # noqa: E731
        nodes = until(lambda: len(names := online()) >= 2 and names, "two nodes at least")

        def value(node, figure):
            all_series = argusd.get(f"/v1/nodes/{node}/figures?figure={figure}&step=15s")["series"]
            assert len(all_series) <= 1, all_series
            told = [v for series in all_series for v in series["mean"] if v is not None]
            return told[-1] if told else None

        for node in nodes:
            until(lambda n=node: value(n, "cpu_util_ratio") is not None, f"the CPU use of {node}")
            assert 0 <= value(node, "cpu_util_ratio") <= 1
            assert 0 < value(node, "mem_used_bytes") < value(node, "mem_total_bytes")
            until(lambda n=node: value(n, "object_store_free_bytes"), f"the object store of {node}, told later by Ray")
            until(lambda n=node: argusd.get(f"/v1/nodes/{n}/figures")["why_not"] == "", f"{node} answers in time")
