# SPDX-License-Identifier: Apache-2.0
"""A run shorter than one look of the watcher ended without a start, a driver and the proof of where it ran."""

from fakeray import FakeRay

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd


def test_a_run_too_short_to_be_seen_has_its_start_and_its_proof(tmp_path):
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        job = argusd.wait_over(argusd.submit("true"))
        assert job["state"] == "SUCCEEDED"
        assert job["started_at"] and job["started_at"] <= job["ended_at"]
        assert job["proof"]["driver_on_worker"] is True
        assert job["driver"]["node"] == job["nodes"][0]["name"]
        assert {"started", "driver_placed", "ended"} <= set(argusd.kinds(job["id"]))
