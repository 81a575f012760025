# SPDX-License-Identifier: Apache-2.0
"""The dashboard's routes, with the answers and the error texts that were seen on real Ray."""

import random
import time
import traceback

from aiohttp import web

COMMIT = {"2.51.1": "eeb38c79c1af96df29cbacab7b8a823d489237f3", "2.60.0": "b7f4259e944bf6959f721b106adc366ddfa0c356"}
SUBMIT_KEYS = (
    "entrypoint submission_id job_id runtime_env metadata entrypoint_num_cpus entrypoint_num_gpus "
    "entrypoint_memory entrypoint_resources"
).split()
LIMIT = 10000


def text(status, body):
    return web.Response(status=status, text=body)


def camel(name):
    """Ray's way with keys of cluster_status: object_store_memory -> objectStoreMemory."""
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def shuffled(items):
    items = list(items)
    random.shuffle(items)
    return items


class Api:
    def __init__(self, cluster, token=None):
        self.cluster = cluster
        self.token = token

    def routes(self):
        return [
            web.get("/", self.index),
            web.get("/api/version", self.version),
            web.get("/api/authentication_mode", self.authentication_mode),
            web.get("/api/gcs_healthz", self.healthz),
            web.post("/api/jobs/", self.submit),
            web.get("/api/jobs/", self.list_jobs),
            web.get("/api/jobs/{id}", self.get_job),
            web.post("/api/jobs/{id}/stop", self.stop_job),
            web.delete("/api/jobs/{id}", self.delete_job),
            web.get("/api/jobs/{id}/logs", self.logs),
            web.get("/api/v0/logs/file", self.log_file),
            web.get("/api/v0/{resource}", self.state),
            web.get("/nodes/{id}", self.node_detail),
            web.get("/api/cluster_status", self.cluster_status),
        ]

    # -- doors -----------------------------------------------------------------

    def is_browser(self, request):
        agent = request.headers.get("User-Agent", "")
        if self.cluster.minor() < 52:
            return agent.startswith("Mozilla") and request.method == "POST"
        fetched = "Origin" in request.headers or request.headers.get("Sec-Fetch-Mode") == "cors"
        return (agent.startswith("Mozilla") or fetched) and request.method in ("POST", "PUT", "DELETE")

    def check_token(self, request):
        """None, or the refusal."""
        if not self.token or request.path in ("/", "/api/authentication_mode", "/api/gcs_healthz"):
            return None
        got = request.headers.get("Authorization") or request.headers.get("X-Ray-Authorization")
        if not got:
            return text(401, "Unauthorized: Missing authentication token")
        return None if got == f"Bearer {self.token}" else text(403, "Forbidden: Invalid authentication token")

    @web.middleware
    async def doors(self, request, handler):
        new = self.cluster.minor() >= 52
        if "User-Agent" not in request.headers and not new:
            raise web.HTTPInternalServerError(text="500 Internal Server Error\n\nServer got itself in trouble")
        if self.is_browser(request):
            said = f"'{request.method}' method not allowed for browser traffic."
            return text(405, said if new else "Method Not Allowed for browser traffic.")
        return self.check_token(request) or await handler(request)

    async def index(self, request):
        return web.Response(text="<html></html>", content_type="text/html")

    async def healthz(self, request):
        return web.Response(body=b"success", content_type="application/text")

    async def authentication_mode(self, request):
        if self.cluster.minor() < 52:
            raise web.HTTPNotFound()
        return web.json_response({"authentication_mode": "token" if self.token else "disabled"})

    async def version(self, request):
        c = self.cluster
        return web.json_response(
            {
                "version": "4",
                "ray_version": c.version,
                "ray_commit": COMMIT.get(c.version, "0" * 40),
                "session_name": c.session,
            }
        )

    # -- jobs --------------------------------------------------------------------

    def check_submit(self, req):
        known = SUBMIT_KEYS + (["entrypoint_label_selector"] if self.cluster.minor() >= 54 else [])
        for key in req:
            if key not in known:
                raise TypeError(f"JobSubmitRequest.__init__() got an unexpected keyword argument '{key}'")
        if "entrypoint" not in req:
            raise TypeError("JobSubmitRequest.__init__() missing 1 required positional argument: 'entrypoint'")
        if not isinstance(req["entrypoint"], str):
            raise TypeError(f"entrypoint must be a string, got {type(req['entrypoint'])}")
        for key in ("metadata", "runtime_env", "entrypoint_resources"):
            if req.get(key) is not None and not isinstance(req[key], dict):
                raise TypeError(f"{key} must be a dict, got {type(req[key])}")
        for k, v in (req.get("metadata") or {}).items():
            if not isinstance(v, str):
                raise TypeError(f"metadata values must be strings, got {type(v)} for {k}")

    async def submit(self, request):
        req = await request.json()  # malformed: aiohttp's own 500, as in Ray
        try:
            self.check_submit(req)
        except (TypeError, ValueError):
            return text(400, traceback.format_exc())
        if self.cluster.settings["no_agent"]:
            return text(500, "No available agent to submit job, please try again later.")
        try:
            sid = self.cluster.submit(req)
        except ValueError:
            # the agent's 400 reaches the client inside the head's 500
            inner = traceback.format_exc()
            return text(
                500,
                "Traceback (most recent call last):\n"
                '  File "job_head.py", line 386, in submit_job\n'
                f"RuntimeError: Request failed with status code 400: {inner}.\n",
            )
        return web.json_response({"job_id": sid, "submission_id": sid})

    def find(self, request):
        wanted = request.match_info["id"]
        job = self.cluster.jobs.get(wanted)
        if job is None:
            job = next((j for j in self.cluster.jobs.values() if j["record"]["job_id"] == wanted), None)
        return job, text(404, f"Job {wanted} does not exist")

    async def list_jobs(self, request):
        return web.json_response([j["record"] for j in shuffled(self.cluster.jobs.values())])

    async def get_job(self, request):
        job, missing = self.find(request)
        return web.json_response(job["record"]) if job else missing

    async def stop_job(self, request):
        job, missing = self.find(request)
        if not job:
            return missing
        if job["record"]["type"] != "SUBMISSION":
            return text(400, "Can only stop submission type jobs")
        return web.json_response({"stopped": self.cluster.stop(job)})

    async def delete_job(self, request):
        job, missing = self.find(request)
        if not job:
            return missing
        if job["record"]["type"] != "SUBMISSION":
            return text(400, "Can only delete submission type jobs")
        try:
            self.cluster.delete(job)
        except RuntimeError:
            return text(500, traceback.format_exc())
        return web.json_response({"deleted": True})

    def read_log(self, job):
        try:
            with open(self.cluster.log_path(job), "rb") as f:
                return f.read().decode("utf-8", "replace")
        except OSError:
            return ""

    async def logs(self, request):
        job, missing = self.find(request)
        return web.json_response({"logs": self.read_log(job)}) if job else missing

    async def log_file(self, request):
        node = next((n for n in self.cluster.nodes if n["node_id"] == request.query.get("node_id")), None)
        if node is None or not node["alive"]:
            return text(500, f"Agent for node id: {request.query.get('node_id')} doesn't exist.")
        name = request.query.get("filename", "")
        sid = name.removeprefix("job-driver-").removesuffix(".log")
        job = self.cluster.jobs.get(sid)
        if not job:
            return text(200, f"[get_logs] Fetch log error: {name} not found")
        lines = self.read_log(job).splitlines(keepends=True)
        return text(200, "".join(lines[-int(request.query.get("lines", 1000)) :]))

    # -- state API -----------------------------------------------------------------

    def nodes(self, detail):
        for n in self.cluster.nodes:
            row = {
                "node_id": n["node_id"],
                "node_ip": n["ip"],
                "is_head_node": n["head"],
                "state": "ALIVE" if n["alive"] else "DEAD",
                "state_message": n["message"],
                "node_name": n["ip"],
                "resources_total": n["resources"],
                "labels": n["labels"],
            }
            yield {**row, "start_time_ms": 1, "end_time_ms": 0} if detail else row

    async def node_detail(self, request):
        """Of the real one's many members, those that somebody asks for; an unknown node has an empty detail."""
        n = next((n for n in self.cluster.nodes if n["node_id"] == request.match_info["id"]), None)
        raylet = n and {"nodeId": n["node_id"], "metricsExportPort": n["spec"].get("metrics_port", 0)}
        detail = {"raylet": raylet, "ip": n["ip"], "hostname": n["name"]} if n else {}
        return web.json_response({"result": True, "msg": "Node details fetched.", "data": {"detail": detail}})

    def actors(self, detail):
        for job in self.cluster.jobs.values():
            if job["record"]["type"] != "SUBMISSION" or not job["runs"]:
                continue
            state = {"PENDING": "PENDING_CREATION", "RUNNING": "ALIVE"}.get(job["record"]["status"], "DEAD")
            if state == "ALIVE" and self.cluster.is_supervisor_gone(job):
                state = "DEAD"
            row = {
                "actor_id": job["actor"],
                "class_name": "JobSupervisor",
                "state": state,
                "job_id": "01000000",
                "name": f"_ray_internal_job_actor_{job['id']}",
                "node_id": job["node"],
                "pid": 4242 if job["node"] else 0,
                "ray_namespace": "SUPERVISOR_ACTOR_RAY_NAMESPACE",
            }
            if detail:
                row |= {
                    "serialized_runtime_env": "{}",
                    "required_resources": job["demand"],
                    "death_cause": None,
                    "is_detached": True,
                    "placement_group_id": None,
                    "repr_name": "",
                    "num_restarts": "0",
                    "num_restarts_due_to_lineage_reconstruction": "0",
                    "num_restarts_due_to_node_preemption": "0",
                    "call_site": None,
                    "label_selector": {},
                }
                if self.cluster.minor() >= 54:
                    row["fallback_strategy"] = []
            yield row
        yield from self.cluster.world["actors"]

    def groups(self, detail):
        yield from self.cluster.world["groups"]

    async def state(self, request):
        sources = {"nodes": self.nodes, "actors": self.actors, "placement_groups": self.groups}
        source = sources.get(request.match_info["resource"])
        if source is None:
            raise web.HTTPNotFound()
        q = request.query
        limit = int(q.get("limit", 100))
        rows = list(source(q.get("detail") == "true"))
        filters = list(
            zip(
                q.getall("filter_keys", []),
                q.getall("filter_predicates", []),
                q.getall("filter_values", []),
                strict=True,
            )
        )
        bad = limit > LIMIT or any(rows and key not in rows[0] for key, _, _ in filters)
        if bad and self.cluster.minor() < 52:
            raise web.HTTPInternalServerError(text="500 Internal Server Error\n\nServer got itself in trouble")
        if bad:
            msg = f"Given limit {limit} exceeds the supported limit {LIMIT}. Use a lower limit."
            return web.json_response({"result": False, "msg": msg, "data": {"result": None}}, status=400)
        total = len(rows)
        for key, predicate, value in filters:
            rows = [r for r in rows if (str(r.get(key)).lower() == value.lower()) == (predicate == "=")]
        return web.json_response(
            {
                "result": True,
                "msg": "",
                "data": {
                    "result": {
                        "total": total,
                        "num_after_truncation": total,
                        "num_filtered": len(rows),
                        "result": shuffled(rows[:limit]),
                        "partial_failure_warning": self.cluster.settings["state_warning"],
                        "warnings": None,
                    }
                },
            }
        )

    # -- cluster status ---------------------------------------------------------------

    def usage(self, node):
        left = self.cluster.free(node)
        for group in self.cluster.world["groups"]:
            for bundle in group.get("bundles", []):
                if bundle.get("node_id") == node["node_id"] and group.get("state") == "CREATED":
                    for name, amount in bundle["unit_resources"].items():
                        left[name] = left.get(name, 0) - amount
        return {camel(k): [v - left.get(k, v), v] for k, v in node["resources"].items()}

    async def cluster_status(self, request):
        c = self.cluster
        by_node = {n["node_id"]: self.usage(n) for n in shuffled(c.nodes)}  # dead ones stay
        total = {}
        for usage in by_node.values():
            for name, (used, all_of_it) in usage.items():
                was = total.get(name, [0.0, 0.0])
                total[name] = [was[0] + used, was[1] + all_of_it]
        alive = [n["node_id"] for n in c.nodes if n["alive"]]
        status = {
            "gcsRequestTime": 0.001,
            "time": time.time(),
            "monitorPid": 1,
            "autoscalerUpdateTime": 0.001,
            "autoscalerReport": {
                "activeNodes": {f"node{i.title()}": 1 for i in alive},
                "idleNodes": None,
                "pendingNodes": [],
                "pendingLaunches": {},
                "failedNodes": [],
                "nodeAvailabilitySummary": {"nodeAvailabilities": {}},
                "nodeActivities": None,
                "pendingResources": {},
                "nodeTypeMapping": {i: f"node_{i}" for i in alive},
                "legacy": True,
            },
            "nonTerminatedNodesTime": 0.000001,
            "loadMetricsReport": {
                "usage": total,
                "resourceDemand": [],
                "pgDemand": [],
                "requestDemand": [],
                "nodeTypes": [[n["resources"], 1] for n in c.nodes],
                "usageByNode": by_node,
                "headIp": None,
                "idleTimeMap": dict.fromkeys(alive, 0.0),
                "nodeTypeMapping": None,
            },
        }
        return web.json_response(
            {
                "result": True,
                "msg": "Got cluster status.",
                "data": {"autoscalingStatus": "", "autoscalingError": None, "clusterStatus": status},
            }
        )
