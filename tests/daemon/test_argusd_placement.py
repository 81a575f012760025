# SPDX-License-Identifier: Apache-2.0
"""The read-back of placements beside a fake Ray (tests/ray has the real one): a node that Ray's list lacks now is no
proof of anything, and a node that it has is."""

from fakeray import FakeRay

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd


def told(*rows):
    """An answer of Ray's state API."""
    count = {"total": len(rows), "num_after_truncation": len(rows), "num_filtered": len(rows)}
    result = {**count, "result": rows, "partial_failure_warning": "", "warnings": None}
    return {"result": True, "msg": "", "data": {"result": result}}


def actor(ray_job, node, name):
    row = {"actor_id": name * 32, "class_name": "Worker", "state": "ALIVE", "job_id": ray_job, "pid": 7}
    return {**row, "node_id": node, "required_resources": {"GPU": 1.0}, "placement_group_id": None}


def guest(ray_job, node, name):
    return {**actor(ray_job, node, name), "class_name": "Guest", "required_resources": {"CPU": 1.0}}


def started(ray, argusd, **keys):
    """A running job of one GPU, its Ray job id, the names and ids of its node and of the other worker."""
    ids = {n["name"]: n["node_id"] for n in ray.ask("GET", "state")["nodes"]}
    until(lambda: argusd.get("/readyz")["ray"] == "ok", "Ray answers")
    job = argusd.submit(argusd.spec("exec sleep 1000", n_gpus_per_node=1, **keys))
    (here,) = [n["name"] for n in argusd.wait_state(job, "RUNNING")["nodes"]]
    until(lambda: ray.jobs()[job]["job_id"], "its driver is in Ray")
    (other,) = {"h2", "h3"} - {here}
    return job, ray.jobs()[job]["job_id"], here, ids[here], ids[other]


def looks(ray):
    return sum("/placement_groups" in r["path"] for r in ray.requests())


def test_what_moved_between_two_lists_is_no_breach(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        job, mine, _, node, _ = started(ray, argusd)
        bundle = {"bundle_id": "1", "node_id": node, "unit_resources": {"GPU": 1.0}}
        group = {"placement_group_id": "f" * 36, "creator_job_id": mine, "state": "CREATED", "bundles": [bundle]}
        until(lambda: looks(ray), "a first look")
        ray.fault("replace", method="GET", path="/api/v0/placement_groups", json=told(group), count=1)
        # Here while the actors were listed, and its GPU is the group's when the groups are.
        ray.world(actors=[actor(mine, node, "a")])
        seen = looks(ray)
        until(lambda: looks(ray) >= seen + 2, "two more looks")
        assert argusd.job(job)["state"] == "RUNNING" and "lease_breach" not in argusd.kinds(job), argusd.events(job)


def test_a_list_of_nodes_that_lacks_some_stops_no_job(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        job, mine, here, node, other = started(ray, argusd)
        ray.world(actors=[actor(mine, node, "a")])

        def placement(what, condition):
            view = argusd.wait_job(job, lambda j: j["placement"] and condition(j["placement"]), what)
            assert view["state"] == "RUNNING" and "lease_breach" not in argusd.kinds(job), argusd.events(job)
            return view["placement"]

        assert placement("is read back", lambda p: p["nodes"])["ok"]
        ray.fault("replace", method="GET", path="/api/v0/nodes", json=told())
        until(lambda: not argusd.get("/v1/nodes")["nodes"], "Ray lists no node")
        ray.world(actors=[actor(mine, node, "a"), actor(mine, "e" * 56, "b")])
        assert placement("cannot be judged", lambda p: p["is_partial"])["beyond_gpus"] == 0
        ray.heal()
        placement("one node is known again", lambda p: p["is_partial"] and here in [n["name"] for n in p["nodes"]])
        ray.world(actors=[actor(mine, node, "a"), actor(mine, other, "b")])
        assert argusd.wait_over(job)["reason"]["code"] == "lease_breach"


def test_an_actor_without_a_gpu_outside_of_the_lease_is_told_once(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        job, mine, here, node, other = started(ray, argusd)
        ray.world(actors=[guest(mine, node, "a"), guest(mine, other, "b"), guest(mine, other, "c")])
        placement = argusd.wait_job(job, lambda j: (j["placement"] or {}).get("nodes"), "is read back")["placement"]
        assert placement["ok"] and placement["actors_outside"] == 2, placement
        assert {n["name"]: n["is_leased"] for n in placement["nodes"]} == {"h2": here == "h2", "h3": here == "h3"}
        seen = looks(ray)
        until(lambda: looks(ray) > seen, "another look")
        assert argusd.kinds(job).count("outside_lease") == 1 and argusd.job(job)["state"] == "RUNNING"


def test_a_job_that_may_use_the_cluster_is_not_told_of_it(tmp_path):
    with FakeRay(state=tmp_path / "ray") as ray, Argusd(tmp_path, ray.url) as argusd:
        job, mine, _, _, other = started(ray, argusd, spread="cluster")
        ray.world(actors=[guest(mine, other, "b")])
        placement = argusd.wait_job(job, lambda j: (j["placement"] or {}).get("nodes"), "is read back")["placement"]
        assert placement["ok"] and placement["actors_outside"] == 1, placement
        assert "outside_lease" not in argusd.kinds(job)
