# SPDX-License-Identifier: Apache-2.0
"""The HTTP API of the real argusd: every route for every role, live replies against openapi.json, and what bad input
gets."""

import concurrent.futures
import contextlib
import hashlib
import itertools
import json
import re
import time

import jsonschema
import pytest
import standin
from checkpoints import put_checkpoint
from contract import open_places
from fakeray import FakeRay
from snapshots import added, tar

from argusd import OVER, PATIENCE, Argusd, Reply, needs_argusd, until

pytestmark = needs_argusd

RANK = {"none": 0, "wrong": 0, "viewer": 1, "user": 2, "admin": 3}

NODE = "{name: there, host: 127.0.0.1, port: 1, labels: [a]}"  # nobody listens there: it stays pending

# Every route: path to call and body; its least role is what openapi.json says. One that is missing here fails
# test_the_table_is_whole.
RULE = {"of": "job", "when": "gpus > 30", "text": "job '{name}' wants {gpus} GPUs"}
SERVED = {"app": "m:a", "pool": ["nowhere"]}  # its lease waits for ever
ROUTES = {
    ("POST", "/v1/jobs"): ("/v1/jobs?dry_run=1", Argusd.spec("echo x")),
    ("GET", "/v1/jobs"): ("/v1/jobs", None),
    ("POST", "/v1/session:link"): ("/v1/session:link", None),
    ("GET", "/v1/jobspec.schema.json"): ("/v1/jobspec.schema.json", None),
    ("GET", "/v1/jobs/{id}"): ("/v1/jobs/JOB", None),
    ("POST", "/v1/jobs/{id}:stop"): ("/v1/jobs/JOB:stop", None),
    ("POST", "/v1/jobs:stop"): ("/v1/jobs:stop", {"workload": "none"}),
    ("POST", "/v1/jobs/{id}:hold"): ("/v1/jobs/HELD:hold", None),
    ("POST", "/v1/jobs/{id}:release"): ("/v1/jobs/HELD:release", None),
    ("POST", "/v1/jobs/{id}:priority"): ("/v1/jobs/HELD:priority", {"priority": 50}),
    ("POST", "/v1/jobs/{id}:justify"): ("/v1/jobs/HELD:justify", {"reason": "it waits for a judge", "for": "2h"}),
    ("POST", "/v1/jobs/{id}:change"): ("/v1/jobs/HELD:change", {"timeout": "1h"}),
    ("POST", "/v1/jobs/{id}:retry"): ("/v1/jobs/ENDED:retry", {}),
    ("POST", "/v1/jobs/{id}:archive"): ("/v1/jobs/PACKED:archive", None),
    ("POST", "/v1/jobs/{id}:unarchive"): ("/v1/jobs/PACKED:unarchive", None),
    ("GET", "/v1/jobs/{id}/why"): ("/v1/jobs/HELD/why", None),
    ("GET", "/v1/jobs/{id}/findings"): ("/v1/jobs/JOB/findings", None),
    ("GET", "/v1/jobs/{id}/family"): ("/v1/jobs/JOB/family", None),
    ("POST", "/v1/jobs/{id}:note"): ("/v1/jobs/JOB:note", {"note": "half the rate"}),
    ("GET", "/v1/jobs/{id}/report"): ("/v1/jobs/JOB/report", None),
    ("POST", "/v1/jobs/{id}/findings"): ("/v1/jobs/JOB/findings", {"cause": "the disk is full"}),
    ("GET", "/v1/agent"): ("/v1/agent", None),
    ("GET", "/v1/backups"): ("/v1/backups", None),
    ("POST", "/v1/backups"): ("/v1/backups", None),
    ("GET", "/v1/checkpoints"): ("/v1/checkpoints?project=default", None),
    ("GET", "/v1/jobs/{id}/checkpoints"): ("/v1/jobs/JOB/checkpoints", None),
    ("POST", "/v1/jobs/{id}/checkpoints:gc"): ("/v1/jobs/JOB/checkpoints:gc", {"dry_run": True}),
    ("POST", "/v1/jobs/{id}/checkpoints/{step}:verify"): ("/v1/jobs/JOB/checkpoints/20:verify", None),
    ("POST", "/v1/jobs/{id}/checkpoints/{step}:export"): ("/v1/jobs/TRAINED/checkpoints/20:export", {}),
    ("POST", "/v1/jobs/{id}/checkpoints/{step}:pin"): ("/v1/jobs/TRAINED/checkpoints/20:pin", None),
    ("POST", "/v1/jobs/{id}/checkpoints/{step}:unpin"): ("/v1/jobs/TRAINED/checkpoints/20:unpin", None),
    ("GET", "/v1/jobs/{id}/samples"): ("/v1/jobs/JOB/samples", None),
    ("GET", "/v1/jobs/{id}/logs"): ("/v1/jobs/JOB/logs", None),
    ("GET", "/v1/jobs/{id}/logs/files"): ("/v1/jobs/JOB/logs/files", None),
    ("GET", "/v1/jobs/{id}/logs/merged"): ("/v1/jobs/JOB/logs/merged", None),
    ("GET", "/v1/logs"): ("/v1/logs?grep=x", None),
    ("GET", "/v1/search"): ("/v1/search?q=x", None),
    ("GET", "/v1/jobs/{id}/metrics"): ("/v1/jobs/JOB/metrics", None),
    ("GET", "/v1/jobs/{id}/steps"): ("/v1/jobs/JOB/steps", None),
    ("GET", "/v1/jobs/{id}/gpus"): ("/v1/jobs/JOB/gpus", None),
    ("GET", "/v1/jobs/{id}/load"): ("/v1/jobs/JOB/load", None),
    ("GET", "/v1/jobs/{id}/events"): ("/v1/jobs/JOB/events", None),
    ("GET", "/v1/events"): ("/v1/events", None),
    ("GET", "/v1/nodes"): ("/v1/nodes", None),
    ("POST", "/v1/nodes"): ("/v1/nodes", NODE),
    ("GET", "/v1/nodes/{name}"): ("/v1/nodes/there", None),
    ("GET", "/v1/nodes/{name}/firewall"): ("/v1/nodes/there/firewall", None),
    ("GET", "/v1/nodes/{name}/figures"): ("/v1/nodes/there/figures?since=2h&step=1m", None),
    ("POST", "/v1/nodes/{name}:drain"): ("/v1/nodes/there:drain", {"deadline": "1h", "then": "stop"}),
    ("POST", "/v1/nodes/{name}:undrain"): ("/v1/nodes/there:undrain", None),
    ("POST", "/v1/nodes/{name}:check"): ("/v1/nodes/there:check", {"accept_key": True}),
    ("POST", "/v1/nodes/{name}:remove"): ("/v1/nodes/MADE_NODE:remove", {"force": True}),
    ("GET", "/v1/pools"): ("/v1/pools", None),
    ("GET", "/v1/usage/jobs"): ("/v1/usage/jobs?from=2d&limit=5", None),
    ("GET", "/v1/usage/recovery"): ("/v1/usage/recovery?from=2d&limit=5", None),
    ("GET", "/v1/usage"): ("/v1/usage?from=2d&step=1h&by=pool", None),
    ("GET", "/v1/forecast"): ("/v1/forecast?weeks=2&nodes=1", None),
    ("GET", "/v1/clusters"): ("/v1/clusters", None),
    ("POST", "/v1/clusters/{cluster}:down"): ("/v1/clusters/default:down", {"stop_jobs": False}),
    ("POST", "/v1/clusters/{cluster}:up"): ("/v1/clusters/default:up", None),
    ("POST", "/v1/nodes:check"): ("/v1/nodes:check", {}),
    ("GET", "/v1/clusters/{cluster}/network"): ("/v1/clusters/default/network", None),
    ("GET", "/v1/clusters/{cluster}/nodes"): ("/v1/clusters/default/nodes", None),
    ("GET", "/v1/clusters/{cluster}/actors"): ("/v1/clusters/default/actors", None),
    ("GET", "/v1/clusters/{cluster}/placement_groups"): (
        "/v1/clusters/default/placement_groups", None,
    ),
    ("GET", "/v1/clusters/{cluster}/foreign"): ("/v1/clusters/default/foreign", None),
    ("POST", "/v1/clusters/{cluster}/foreign/{ray_id}:adopt"): (
        "/v1/clusters/default/foreign/theirs:adopt", {"project": "default"},
    ),
    ("GET", "/v1/whoami"): ("/v1/whoami", None),
    ("GET", "/v1/users"): ("/v1/users", None),
    ("POST", "/v1/users"): ("/v1/users", {"name": "NEW"}),
    ("GET", "/v1/users/{user}"): ("/v1/users/ME", None),
    ("PATCH", "/v1/users/{user}"): ("/v1/users/alice", {"note": "x"}),
    ("DELETE", "/v1/users/{user}"): ("/v1/users/MADE_USER", None),
    ("GET", "/v1/users/{user}/quota"): ("/v1/users/ME/quota", None),
    ("PUT", "/v1/users/{user}/quota"): ("/v1/users/alice/quota", {"queued": 1000}),
    ("GET", "/v1/tokens"): ("/v1/tokens", None),
    ("POST", "/v1/tokens"): ("/v1/tokens", {"name": "x", "expires": "1d"}),
    ("DELETE", "/v1/tokens/{token}"): ("/v1/tokens/TOKEN", None),
    ("GET", "/v1/changes"): ("/v1/changes", None),
    ("POST", "/v1/session"): ("/v1/session", "A_LOGIN"),
    ("GET", "/v1/session"): ("/v1/session", None),
    ("DELETE", "/v1/session"): ("/v1/session", None),
    ("GET", "/v1/sessions"): ("/v1/sessions", None),
    ("DELETE", "/v1/sessions/{session}"): ("/v1/sessions/SESSION", None),
    ("GET", "/v1/secrets"): ("/v1/secrets", None),
    ("PUT", "/v1/secrets/{name}"): ("/v1/secrets/SECRET", {"value": "x"}),
    ("DELETE", "/v1/secrets/{name}"): ("/v1/secrets/SECRET", None),
    ("GET", "/v1/projects"): ("/v1/projects", None),
    ("POST", "/v1/projects"): ("/v1/projects", {"name": "NEW"}),
    ("GET", "/v1/projects/{project}"): ("/v1/projects/default", None),
    ("PATCH", "/v1/projects/{project}"): ("/v1/projects/default", {"note": "x"}),
    ("DELETE", "/v1/projects/{project}"): ("/v1/projects/MADE_PROJECT", None),
    ("GET", "/v1/datasets"): ("/v1/datasets", None),
    ("POST", "/v1/datasets"): ("/v1/datasets", {"name": "raw", "source": "http://127.0.0.1:9/x.jsonl"}),
    ("POST", "/v1/datasets:prepare"): ("/v1/datasets:prepare", {"name": "ready", "with": "gsm8k"}),
    ("GET", "/v1/datasets/{name}"): ("/v1/datasets/DATASET", None),
    ("DELETE", "/v1/datasets/{name}"): ("/v1/datasets/DATASET", None),
    ("POST", "/v1/datasets/{name}:share"): ("/v1/datasets/DATASET:share", {"users": ["victor"]}),
    ("GET", "/v1/models"): ("/v1/models", None),
    ("POST", "/v1/models"): ("/v1/models", {"name": "tiny", "source": "http://127.0.0.1:9/x.jsonl"}),
    ("GET", "/v1/models/{name}"): ("/v1/models/MODEL", None),
    ("GET", "/v1/models/{name}/uses"): ("/v1/models/MODEL/uses", None),
    ("DELETE", "/v1/models/{name}"): ("/v1/models/MODEL", None),
    ("POST", "/v1/models/{name}:share"): ("/v1/models/MODEL:share", {"users": ["victor"]}),
    ("GET", "/v1/projects/{project}/quota"): ("/v1/projects/default/quota", None),
    ("PUT", "/v1/projects/{project}/quota"): ("/v1/projects/default/quota", {"queued": 1000}),
    ("GET", "/v1/quotas"): ("/v1/quotas", None),
    ("GET", "/v1/presets"): ("/v1/presets", None),
    ("GET", "/v1/presets/{name}"): ("/v1/presets/grpo-7b", None),
    ("PUT", "/v1/presets/{name}"): ("/v1/presets/FRESH", {"spec": {"workload": "ray", "entrypoint": "true"}}),
    ("DELETE", "/v1/presets/{name}"): ("/v1/presets/MADE_PRESET", None),
    ("POST", "/mcp"): ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    ("POST", "/v1/ops/drain_node"): ("/v1/ops/drain_node", {"node": "there"}),
    ("POST", "/v1/ops/remove_node"): ("/v1/ops/remove_node", {"node": "there"}),
    ("POST", "/v1/ops/restart_ray_head"): ("/v1/ops/restart_ray_head", {}),
    ("POST", "/v1/ops/cleanup_job_artifacts"): ("/v1/ops/cleanup_job_artifacts", {"job": "done-1"}),
    ("POST", "/v1/ops/stop_many"): ("/v1/ops/stop_many", {"user": "alice"}),
    ("GET", "/v1/ops/plans"): ("/v1/ops/plans", None),
    ("GET", "/v1/ops/plans/{plan}"): ("/v1/ops/plans/OPS_PLAN", None),
    ("POST", "/v1/ops/plans/{plan}:approve"): ("/v1/ops/plans/OPS_PLAN:approve", None),
    ("POST", "/v1/ops/plans/{plan}:apply"): ("/v1/ops/plans/OPS_PLAN:apply", {}),
    ("GET", "/v1/notebooks"): ("/v1/notebooks", None),
    ("POST", "/v1/notebooks"): ("/v1/notebooks", {"name": "NEW"}),
    ("GET", "/v1/notebooks/{name}"): ("/v1/notebooks/NOTEBOOK", None),
    ("DELETE", "/v1/notebooks/{name}"): ("/v1/notebooks/STOPPED_NOTEBOOK", None),
    ("POST", "/v1/notebooks/{name}:extend"): ("/v1/notebooks/NOTEBOOK:extend", {"for": "1h"}),
    ("POST", "/v1/notebooks/{name}:freeze"): ("/v1/notebooks/NOTEBOOK:freeze", None),
    ("POST", "/v1/notebooks/{name}:open"): ("/v1/notebooks/NOTEBOOK:open", None),
    ("POST", "/v1/notebooks/{name}:stop"): ("/v1/notebooks/NOTEBOOK:stop", None),
    ("GET", "/v1/services"): ("/v1/services", None),
    ("POST", "/v1/services"): ("/v1/services", {"name": "NEW", **SERVED}),
    ("GET", "/v1/services/{name}"): ("/v1/services/SERVICE", None),
    ("PATCH", "/v1/services/{name}"): ("/v1/services/SERVICE", {"keep": "cold"}),
    ("DELETE", "/v1/services/{name}"): ("/v1/services/SERVICE", None),
    ("POST", "/v1/services/{name}:ask"): ("/v1/services/SERVICE:ask", {"path": "/"}),
    ("POST", "/v1/services/{name}:deploy"): ("/v1/services/SERVICE:deploy", {"cpus": 2}),
    ("POST", "/v1/services/{name}:rollback"): ("/v1/services/SERVICE:rollback", {"version": 1}),
    ("POST", "/v1/services/{name}:scale"): ("/v1/services/SERVICE:scale", {"replicas": 2}),
    ("POST", "/v1/services/{name}:stop"): ("/v1/services/SERVICE:stop", None),
    ("POST", "/v1/services/{name}:wake"): ("/v1/services/SERVICE:wake", None),
    ("GET", "/v1/services/{name}:requests"): ("/v1/services/SERVICE:requests?failed=1", None),
    ("GET", "/v1/service-applications"): ("/v1/service-applications", None),
    ("GET", "/v1/service-keys"): ("/v1/service-keys?service=none", None),
    ("POST", "/v1/service-keys"): ("/v1/service-keys", {"service": "SERVICE"}),
    ("DELETE", "/v1/service-keys/{key}"): ("/v1/service-keys/KEY", None),
    ("GET", "/v1/pipelines"): ("/v1/pipelines", None),
    ("GET", "/v1/pipelines/{name}"): ("/v1/pipelines/there?user=alice", None),
    ("PUT", "/v1/pipelines/{name}"): (
        "/v1/pipelines/stored",
        {"name": "stored", "steps": {"a": {"with": {"workload": "ray"}}}},
    ),
    ("DELETE", "/v1/pipelines/{name}"): ("/v1/pipelines/MADE_PIPELINE", None),
    ("POST", "/v1/pipelines/{name}:run"): ("/v1/pipelines/there:run?user=alice", {}),
    ("POST", "/v1/pipelines/{name}:schedule"): ("/v1/pipelines/there:schedule?user=alice", {"cron": "@yearly"}),
    ("GET", "/v1/pipeline-runs"): ("/v1/pipeline-runs", None),
    ("GET", "/v1/pipeline-runs/{run}"): ("/v1/pipeline-runs/FAILED_RUN", None),
    ("POST", "/v1/pipeline-runs/{run}:cancel"): ("/v1/pipeline-runs/FAILED_RUN:cancel", None),
    ("POST", "/v1/pipeline-runs/{run}:retry"): ("/v1/pipeline-runs/FAILED_RUN:retry", {}),
    ("POST", "/v1/pipeline-runs/{run}:rollback"): ("/v1/pipeline-runs/FAILED_RUN:rollback", None),
    ("GET", "/v1/snapshots"): ("/v1/snapshots", None),
    ("POST", "/v1/snapshots"): ("/v1/snapshots", {"name": "NEW", "hash": "CONTENT"}),
    ("GET", "/v1/snapshots/{name}"): ("/v1/snapshots/there@1", None),
    ("GET", "/v1/snapshots/{name}:diff"): ("/v1/snapshots/there@1:diff?with=there@1", None),
    ("GET", "/v1/snapshots/{name}:files"): ("/v1/snapshots/there@1:files", None),
    ("PATCH", "/v1/snapshots/{name}"): ("/v1/snapshots/there@1", {"needs": ["torch>=2.4"]}),
    ("DELETE", "/v1/snapshots/{name}"): ("/v1/snapshots/MADE_SNAPSHOT", None),
    ("GET", "/v1/files"): ("/v1/files?path=common", None),
    ("GET", "/v1/files/content"): ("/v1/files/content?path=common/file", None),
    ("POST", "/v1/files"): ("/v1/files", "A_FILE"),
    ("DELETE", "/v1/files"): ("/v1/files?path=common/MADE_DIR", None),
    ("GET", "/v1/alerts"): ("/v1/alerts", None),
    ("GET", "/v1/alerts/{alert}"): ("/v1/alerts/ALERT", None),
    ("POST", "/v1/alerts/{alert}:ack"): ("/v1/alerts/ALERT:ack", {"note": "x"}),
    ("POST", "/v1/alerts/{alert}:silence"): ("/v1/alerts/ALERT:silence", {"for": "1s"}),
    ("GET", "/v1/incidents"): ("/v1/incidents", None),
    ("GET", "/v1/incidents/{incident}"): ("/v1/incidents/i1", None),
    ("GET", "/v1/incidents/{incident}/report"): ("/v1/incidents/i1/report", None),
    ("GET", "/v1/silences"): ("/v1/silences", None),
    ("POST", "/v1/silences"): ("/v1/silences", {"for": "1h", "names": ["nothing"]}),
    ("DELETE", "/v1/silences/{silence}"): ("/v1/silences/SILENCE", None),
    ("GET", "/v1/alert_rules"): ("/v1/alert_rules", None),
    ("GET", "/v1/alert_rules/{rule}"): ("/v1/alert_rules/job_failed", None),
    ("PUT", "/v1/alert_rules/{rule}"): ("/v1/alert_rules/FRESH", RULE),
    ("PATCH", "/v1/alert_rules/{rule}"): ("/v1/alert_rules/MADE_RULE", {"off": True}),
    ("DELETE", "/v1/alert_rules/{rule}"): ("/v1/alert_rules/MADE_RULE", None),
    ("GET", "/v1/receivers"): ("/v1/receivers", None),
    ("GET", "/v1/doctor"): ("/v1/doctor", None),
    ("GET", "/v1/remedies"): ("/v1/remedies", None),
    ("POST", "/v1/receivers/{receiver}:test"): ("/v1/receivers/ops:test", None),
    ("GET", "/v1/uploads"): ("/v1/uploads", None),
    ("POST", "/v1/uploads"): ("/v1/uploads", {"name": "x", "bytes": 3}),
    ("GET", "/v1/uploads/{id}"): ("/v1/uploads/MADE_UPLOAD", None),
    ("PUT", "/v1/uploads/{id}"): ("/v1/uploads/MADE_UPLOAD?offset=0", None),
    ("DELETE", "/v1/uploads/{id}"): ("/v1/uploads/MADE_UPLOAD", None),
    ("GET", "/v1/events:verify"): ("/v1/events:verify", None),
    ("GET", "/v1/events:export"): ("/v1/events:export?kind=nothing", None),
    ("GET", "/v1/simulations"): ("/v1/simulations", None),
    ("POST", "/v1/simulations"): ("/v1/simulations", None),
    ("GET", "/v1/simulations/{simulation}"): ("/v1/simulations/SIMULATION", None),
    ("GET", "/v1/simulations/{simulation}/csv"): ("/v1/simulations/PLAYED/csv", None),
    ("POST", "/v1/simulations/{simulation}:cancel"): ("/v1/simulations/LASTING:cancel", None),
    ("DELETE", "/v1/simulations/{simulation}"): ("/v1/simulations/SIMULATION", None),
    ("GET", "/v1/me/settings"): ("/v1/me/settings", None),
    ("PATCH", "/v1/me/settings"): ("/v1/me/settings", {"settings": {"jobs.views": []}}),
    ("GET", "/v1/version"): ("/v1/version", None),
    ("GET", "/v1/openapi.json"): ("/v1/openapi.json", None),
    ("GET", "/healthz"): ("/healthz", None),
    ("GET", "/readyz"): ("/readyz", None),
    ("GET", "/metrics"): ("/metrics", None),
    ("GET", "/v1/prometheus/targets"): ("/v1/prometheus/targets", None),
}  # fmt: skip


# A trace of one job, and one whose replay does not end by itself while a test looks.
TRACE = "submit_time,duration_s,num_gpus\n1700000000,60,1\n"
LASTING = "submit_time,duration_s,num_gpus\n" + "".join(f"{1.7e9 + i},3600,{1 + i % 8}\n" for i in range(20000))

# Who does not see all that a route tells of, though the role is high enough.
REFUSED = {(("GET", "/v1/events:verify"), "user")}


class Whole:
    """One argusd for the tests that leave nothing behind that others would see."""

    def __init__(self, ray, argusd):
        self.ray, self.argusd = ray, argusd
        self.numbers = itertools.count()
        self.trained = None
        self.api = argusd.get("/v1/openapi.json")
        self.done = argusd.submit("echo done", name="the done one", submission_id="done-1")
        argusd.wait_over(self.done)
        put_checkpoint(argusd.job_dir(self.done) / "checkpoints", 20)
        (argusd.root / "common/file").write_text("a file")
        self.held = argusd.submit("echo held", nnodes=9, n_gpus_per_node=4)  # waits for ever
        assert self.argusd.call("POST", "/v1/nodes", NODE).status == 201
        raw = argusd.root / "common/raw.jsonl"
        raw.write_text('{"question": "1 + 1?", "answer": "#### 2"}\n')
        self.made("/v1/datasets", {"name": "ready", "source": str(raw), "in_place": True, "common": True})
        until(lambda: argusd.get("/v1/datasets/ready")["state"] == "ready", "a data set is ready")
        assert argusd.call("PUT", "/v1/alert_rules/large", RULE).status == 201
        self.alert = until(lambda: argusd.get("/v1/alerts?state=all")["alerts"], "there is an alert")[0]["id"]
        self.pipeline("there", "user")
        self.content = added(argusd, "there@1", tar({"a.py": "1"}), common=True)["hash"]

    def made(self, path, body, token="admin"):
        reply = self.argusd.call("POST", path, body, token=token)
        assert reply.status == 201, reply
        return reply.json()

    def secret(self, token):
        name = f"KEY_{next(self.numbers)}"
        assert self.argusd.call("PUT", f"/v1/secrets/{name}", {"value": "x"}, token=token).status == 201
        return name

    def preset(self, name, role):
        body = {"spec": {"workload": "ray", "entrypoint": "true"}}
        assert self.argusd.call("PUT", f"/v1/presets/{name}", body, token=self.owner(role)).status == 201
        return name

    def pipeline(self, name, token):
        """Its one step is refused by the submit, so that a run of it has failed at once."""
        body = {"name": name, "concurrency": "allow", "steps": {"a": {"with": {"workload": "ray"}}}}
        assert self.argusd.call("PUT", f"/v1/pipelines/{name}", body, token=token).status == 201
        return name

    def a_training(self):
        """One that is over, with a checkpoint that can be read."""
        if not self.trained:
            standin.make_world(self.argusd.root)
            self.trained = standin.Training(self.argusd)
            self.trained.save(20)
            until(lambda: self.trained.states() == {20: "verified"}, "it has a checkpoint")
            self.trained.order("exit", 0)
            self.argusd.wait_over(self.trained.id)
        return self.trained.id

    def failed_run(self):
        return self.made("/v1/pipelines/there:run", {}, "user")["id"]

    def node(self, host):
        return self.made("/v1/nodes", {"name": host, "host": host})["nodes"][0]["name"]

    def coming(self, path, name, role):
        """What is being imported, and waits for ever: for machines that nobody has."""
        form = {"name": name, "source": "http://127.0.0.1:9/x.jsonl", "pool": "nowhere", "common": True}
        return self.made(path, form, "user" if role == "user" else "admin")["name"]

    def ended(self, token):
        job = self.argusd.submit("echo held", nnodes=9, n_gpus_per_node=4, token=token)
        self.argusd.stop_job(job)
        return job

    def packed(self, token):
        """Its last records may still be on their way to the disk when it is over."""
        job = self.argusd.submit("echo packed", token=token)
        self.argusd.wait_over(job)
        until(lambda: self.argusd.call("POST", f"/v1/jobs/{job}:archive", token=token).status == 202, "it is taken")
        self.argusd.wait_job(job, lambda j: j["archived"]["state"] == "archived", "is archived")
        return job

    @staticmethod
    def owner(role):
        return role if role == "user" else "admin"

    def rule(self, name):
        assert self.argusd.call("PUT", f"/v1/alert_rules/{name}", RULE).status == 201
        return name

    def simulation(self, trace, role):
        """A user may have two that have not ended."""

        def begun():
            reply = self.argusd.call("POST", "/v1/simulations", trace, token=self.owner(role), Content_Type="text/csv")
            return reply.json()["id"] if reply.status == 202 else None

        return until(begun, "a simulation begins")

    def played(self, role):
        """With its result; a viewer sees everybody's."""
        sim = self.simulation(TRACE, role)
        until(lambda: self.argusd.get(f"/v1/simulations/{sim}")["state"] == "done", "it is played")
        return sim

    def notebook(self, token):
        """One of his that is to run, or was stopped by the test before."""
        reply = self.argusd.call("POST", "/v1/notebooks", {"name": "there"}, token=token)
        assert reply.status in (201, 409), reply
        return "there"

    def plan(self, token, is_anothers):
        """To stop one job that waits for ever; nobody approves his own."""
        job = self.argusd.submit("echo held", nnodes=9, n_gpus_per_node=4, token="user")
        return self.made("/v1/ops/stop_many", {"jobs": [job]}, "user" if is_anothers else token)["id"]

    def failed_notebook(self, name, token):
        self.made("/v1/notebooks", {"name": name, "snapshot": "none@1"}, token)
        path = f"/v1/notebooks/{name}"
        until(lambda: self.argusd.call("GET", path, token=token).json()["state"] == "FAILED", "it is refused")
        return name

    def upload(self, name, role):
        return self.made("/v1/uploads", {"name": name, "bytes": 0}, self.owner(role))["id"]

    def folder(self, name):
        (self.argusd.root / "common" / name).mkdir()
        return name

    def call(self, route, role):
        """Ask with what the route needs: things that are there, and each time new ones to make and to remove."""
        path, body = ROUTES[route]
        token = {"none": None, "wrong": "argus_" + "A" * 43}.get(role, role)
        fresh = f"x{next(self.numbers)}"
        things = {
            "JOB": lambda: self.done,
            "TRAINED": self.a_training,
            "ENDED": lambda: self.ended(self.owner(role)),
            "PACKED": lambda: self.packed(self.owner(role)),
            "HELD": lambda: self.held,
            "ME": lambda: {"user": "alice", "viewer": "victor"}.get(role, "admin"),
            "MADE_USER": lambda: self.made("/v1/users", {"name": fresh})["name"],
            "MADE_PROJECT": lambda: self.made("/v1/projects", {"name": fresh})["name"],
            "MADE_NODE": lambda: self.node(f"{fresh}.invalid"),
            "DATASET": lambda: self.coming("/v1/datasets", fresh, role),
            "MODEL": lambda: self.coming("/v1/models", fresh, role),
            "MADE_SNAPSHOT": lambda: self.made(
                "/v1/snapshots", {"name": f"{fresh}@1", "hash": self.content}, role if role == "user" else "admin"
            )["name"],
            "MADE_PRESET": lambda: self.preset(fresh, role),
            "MADE_PIPELINE": lambda: self.pipeline(fresh, self.owner(role)),
            "SERVICE": lambda: self.made("/v1/services", {"name": fresh, **SERVED}, self.owner(role))["name"],
            "KEY": lambda: self.made("/v1/service-keys", {"service": things["SERVICE"]()}, self.owner(role))["id"],
            "OPS_PLAN": lambda: self.plan(self.owner(role), route[1].endswith(":approve")),
            "STOPPED_NOTEBOOK": lambda: self.failed_notebook(fresh, self.owner(role)),
            "NOTEBOOK": lambda: self.notebook(self.owner(role)),
            "FAILED_RUN": self.failed_run,
            "FRESH": lambda: fresh,
            "MADE_UPLOAD": lambda: self.upload(fresh, role),
            "ALERT": lambda: self.alert,
            "SILENCE": lambda: self.made("/v1/silences", {"for": "1h", "names": ["nothing"]})["id"],
            "MADE_RULE": lambda: self.rule(fresh),
            "MADE_DIR": lambda: self.folder(fresh),
            "SECRET": lambda: self.secret("user" if role == "user" else "admin"),
            "SESSION": lambda: self.login(self.owner(role) if role in RANK and RANK[role] > 1 else "viewer")["id"],
            "SIMULATION": lambda: self.simulation(TRACE, role),
            "PLAYED": lambda: self.played(role),
            "LASTING": lambda: self.simulation(LASTING, role),
            "TOKEN": lambda: self.made("/v1/tokens", {}, "user" if role == "user" else "admin")["id"],
        }
        path = re.sub(r"\b[A-Z_]+\b", lambda m: things[m[0]](), path)
        if body == {"name": "NEW"}:
            body = {"name": fresh}
        if body == {"service": "SERVICE"}:
            body = {"service": things["SERVICE"]()}
        if body == {"name": "NEW", **SERVED}:
            body = {"name": fresh, **SERVED}
        if body == {"name": "NEW", "hash": "CONTENT"}:
            body = {"name": f"{fresh}@1", "hash": self.content}
        if body == "A_FILE":
            upload = self.upload(fresh, role)
            assert self.argusd.call("PUT", f"/v1/uploads/{upload}?offset=0", token=self.owner(role)).status == 200
            body = {"path": f"common/{fresh}", "upload": upload}
        if body == "A_LOGIN":
            body = {"token": self.argusd.tokens["user"]}
        if path == "/v1/session" and not body and token in self.argusd.tokens:
            return self.argusd.call(route[0], path, token=None, **self.cookie(token))
        return self.argusd.call(route[0], path, body, token=token)

    def login(self, token):
        return self.made("/v1/session", {"token": self.argusd.tokens[token]}, None)

    def cookie(self, token):
        """Head of a browser: one's own session is that of a cookie."""
        login = self.argusd.call("POST", "/v1/session", {"token": self.argusd.tokens[token]}, token=None)
        return {"Cookie": login.headers["Set-Cookie"].split(";")[0], "Argus_CSRF": login.json()["csrf"]}

    def schema(self, name):
        return {"$ref": f"#/components/schemas/{name}", "components": self.api["components"]}

    def check(self, instance, schema):
        jsonschema.Draft202012Validator({**schema, "components": self.api["components"]}).validate(instance)

    def check_problem(self, reply, status, code=None):
        assert reply.status == status, reply
        assert reply.headers["Content-Type"] == "application/problem+json"
        problem = reply.json()
        self.check(problem, self.schema("Problem"))
        assert problem["status"] == status
        assert code is None or problem["type"] == f"urn:argus:problem:{code}", problem
        assert problem["detail"]
        return problem


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    home = tmp_path_factory.mktemp("api")
    # Each call of a route leaves what it made: more notebooks than one user may have otherwise.
    more = "alerts: {receivers: {ops: {kind: log}}}\nnotebooks: {running_per_user: 0}"
    with FakeRay("2.60.0", state=home / "ray") as ray, Argusd(home, ray.url, more=more) as argusd:
        ray.add_job(submission_id="theirs", status="RUNNING")  # of somebody else
        yield Whole(ray, argusd)


@pytest.fixture
def alone(tmp_path):
    """An argusd of one's own whose Ray is away: jobs stay in the queue."""
    with FakeRay() as ray:
        ray.listen(False)
        with Argusd(tmp_path, ray.url) as argusd:
            argusd.ray = ray
            yield argusd


def operations(api):
    return {(method.upper(), path): op for path, item in api["paths"].items() for method, op in item.items()}


# ---- the table ----


def test_the_table_is_whole(w):
    assert set(operations(w.api)) == set(ROUTES)


def test_every_name_in_a_path_has_an_example(w):
    for (method, path), operation in operations(w.api).items():
        names = [p for p in operation["parameters"] if p["in"] == "path"]
        assert len(names) == path.count("{")
        assert all(p["example"] for p in names), (method, path)


def test_every_schema_is_closed(w):
    schemas = w.api["components"]["schemas"]
    assert [where for name, schema in schemas.items() for where in open_places(schema, name)] == []
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(w.api)))
    assert named <= set(schemas)
    assert set(schemas) <= named, "nothing names it"


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_each_role(w, route):
    least = operations(w.api)[route]["x-least-role"]
    for role, rank in RANK.items():
        reply = w.call(route, role)
        if rank >= RANK[least] and (route, role) not in REFUSED:
            if role == "user" and route[1].endswith(":stop"):
                assert reply.status in (200, 202), reply
            if route[1].endswith(":ask"):  # no replica is ready
                assert (reply.status, reply.json()["code"]) == (503, "serve_not_ready"), reply
            elif route[1].endswith(":open"):  # tests/daemon/test_notebooks.py has a door
                assert (reply.status, reply.json()["code"]) == (503, "notebooks_off"), reply
            elif route[1].endswith(":freeze"):  # tests/daemon/test_notebooks_freeze.py has one with packages
                assert (reply.status, reply.json()["code"]) == (409, "freeze_no_overlay"), reply
            elif route[1].endswith("{run}:rollback"):  # tests/daemon/test_pipes_deploy.py has one that deployed
                assert (reply.status, reply.json()["code"]) == (409, "pipe_rollback_none"), reply
            elif route[1].endswith("/restart_ray_head"):  # tests/daemon/test_ops.py has one of ours
                assert (reply.status, reply.json()["code"]) == (409, "ops_head_not_ours"), reply
            else:
                assert reply.status < 400, (role, reply)
        else:
            w.check_problem(reply, 403 if rank else 401, "forbidden" if rank else "unauthorised")
            if rank == 0:
                assert reply.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_live_replies_match_the_schema(w, route):
    path = ROUTES[route][0]
    reply = w.call(route, "admin")
    if path.endswith((":ask", ":open", ":freeze", "_RUN:rollback", "/restart_ray_head")):
        pytest.skip("nothing is ready: test_services.py, test_notebooks*.py, test_pipes_deploy.py, test_ops.py do it")
    answers = operations(w.api)[route]["responses"]
    kinds = next(v for k, v in answers.items() if k.startswith("2")).get("content", {})
    assert not kinds or reply.headers["Content-Type"].split(";")[0] in [k.split(";")[0] for k in kinds]
    schema = kinds.get("application/json", {}).get("schema")
    if schema and "dry_run" not in path:
        w.check(reply.json(), schema)
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


def test_submitted_and_running_jobs_match_the_schema(w):
    reply = w.argusd.post(Argusd.spec("echo x; exec tail -f /dev/null", n_gpus_per_node=1))
    assert reply.status == 201
    w.check(reply.json(), w.schema("Submitted"))
    job = reply.json()["id"]
    assert reply.headers["Location"] == f"/v1/jobs/{job}"
    try:
        view = w.argusd.wait_job(job, lambda v: v["proof"] and v["state"] == "RUNNING", "runs on a worker")
        w.check(view, w.schema("Job"))
        w.check(w.argusd.get("/v1/jobs"), w.schema("JobList"))
        w.check(w.argusd.get("/v1/nodes"), w.schema("NodeList"))
        on = [n for n in w.argusd.get("/v1/nodes")["nodes"] if job in n["jobs"]]
        assert [n["name"] for n in on] == [view["driver"]["node"]]
        assert on[0]["gpus"]["used"] == 1
        leased = f'argus_node_gpus{{node="{on[0]["name"]}",use="leased"}} 1'
        assert leased in w.argusd.call("GET", "/metrics").body.decode()
    finally:
        w.argusd.stop_job(job)
    assert w.argusd.wait_over(job)["state"] == "STOPPED"


# ---- what is refused ----


@pytest.mark.parametrize("method, path, status, code", [
    ("GET", "/v1/nothing", 404, "not_found"),
    ("GET", "/", 415, "unsupported_media_type"),  # the pages are kept compressed
    ("GET", "/v1", 404, "not_found"),
    ("POST", "/jobs", 404, "not_found"),
    ("GET", "/v1/jobs/no-such-job", 404, "not_found"),
    ("POST", "/v1/jobs/no-such-job:stop", 404, "not_found"),
    ("GET", "/v1/jobs/no-such-job/logs", 404, "not_found"),
    ("GET", "/v1/jobs/no-such-job/logs?follow=1", 404, "not_found"),
    ("GET", "/v1/jobs/no-such-job/logs/files", 404, "not_found"),
    ("GET", "/v1/jobs/done-1/logs/files?source=driver", 400, "bad_request"),
    ("GET", "/v1/jobs/no-such-job/logs/merged", 404, "not_found"),
    ("GET", "/v1/jobs/done-1/logs/merged?source=scene", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1/logs/merged?tail=2001", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1/logs/merged?cursor=1", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1/logs/merged?cursor=1~../x", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1/logs/merged?cursor=9~", 404, "not_found"),
    ("GET", "/v1/jobs/no-such-job/samples", 404, "not_found"),
    ("GET", "/v1/jobs/done-1/samples?step=7", 404, "not_found"),
    ("GET", "/v1/jobs/done-1/samples?kind=test", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1/samples?order=changed", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1/samples?since=3", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1/samples?min=high", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1/samples?prompt=xyz", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1/samples?cursor=1", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1/samples?grep=(", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1/samples?limit=0", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1/logs/files?attempt=9", 404, "not_found"),
    ("GET", "/v1/jobs/done-1/logs?source=worker", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1/logs?file=w1/worker-a.out", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1/logs?source=worker&file=w1/worker-a.out", 404, "not_found"),
    ("GET", "/v1/jobs/no-such-job/events", 404, "not_found"),
    ("GET", "/v1/clusters/other/nodes", 404, "not_found"),
    ("DELETE", "/v1/jobs", 405, "method_not_allowed"),
    ("PUT", "/v1/jobs/done-1", 405, "method_not_allowed"),
    ("POST", "/v1/pools", 405, "method_not_allowed"),
    ("GET", "/v1/jobs?limit=0", 400, "bad_request"),
    ("GET", "/v1/jobs?limit=1001", 400, "bad_request"),
    ("GET", "/v1/jobs?limit=many", 400, "bad_request"),
    ("GET", "/v1/jobs?state=RUNING", 400, "bad_request"),
    ("GET", "/v1/jobs?since=yesterday", 400, "bad_request"),
    ("GET", "/v1/jobs?cursor=%21%21", 400, "bad_request"),
    ("GET", "/v1/jobs?unknown=1", 400, "bad_request"),
    ("GET", "/v1/jobs/done-1?wait=soon", 400, "bad_request"),
    ("GET", "/v1/events?since=-1", 400, "bad_request"),
])  # fmt: skip
def test_problems(w, method, path, status, code):
    reply = w.argusd.call(method, path)
    w.check_problem(reply, status, code)
    if status == 405:
        assert reply.headers["Allow"]


def test_too_large_and_of_the_wrong_kind(w):
    for length in ((1 << 20) + 1, 1 << 62):  # said beforehand; the answer does not wait for the bytes
        with contextlib.closing(w.argusd.open()) as c:
            c.putrequest("POST", "/v1/jobs")
            for name, value in w.argusd.head(w.argusd.tokens["user"], {"Content_Length": str(length)}).items():
                c.putheader(name, value)
            c.endheaders()
            w.check_problem(Reply(c.getresponse()), 413, "too_large")
    w.check_problem(w.argusd.post("GIF89a", Content_Type="image/gif"), 415, "unsupported_media_type")
    w.check_problem(w.argusd.call("GET", "/v1/whoami", X_Filler="y" * 9000), 431, "headers_too_large")
    for body in ("", "workload", "[]", "{", "workload: [", "\x00"):
        w.check_problem(w.argusd.post(body), 422, "bad_spec")
    assert w.argusd.get("/v1/whoami")["role"] == "admin"


BROKEN = """workload: ray
entrypoint: echo hello
nnode: 2
n_gpus_per_node: many
priority: 500
timeout: soon
resume_form: never
"""


@pytest.mark.parametrize("as_json", [False, True])
def test_every_problem_of_a_spec_at_once(w, as_json):
    body = BROKEN
    if as_json:
        lines = [f'  "{k}": "{v}"' for k, v in (line.split(": ") for line in BROKEN.splitlines())]
        body = "{\n" + ",\n".join(lines) + "\n}"
    reply = w.argusd.post(body, Content_Type="application/json" if as_json else "application/yaml")
    problem = w.check_problem(reply, 422, "bad_spec")
    found = {p["field"]: p for p in problem["problems"]}
    assert set(found) == {"nnode", "n_gpus_per_node", "priority", "timeout", "resume_form"}
    first = 2 if as_json else 1
    assert [found[k]["line"] - first for k in ("nnode", "n_gpus_per_node", "priority", "timeout")] == [2, 3, 4, 5]
    assert all(p["column"] > 0 and p["detail"] and p["level"] == "error" for p in found.values())
    assert "nnodes" in str(found["nnode"])
    assert "resume" in str(found["resume_form"])
    assert problem["field"] in found


def test_a_broken_spec_is_refused_in_the_readers_language(w):
    english = w.check_problem(w.argusd.post(BROKEN), 422, "bad_spec")
    chinese = w.check_problem(w.argusd.post(BROKEN, **{"Accept-Language": "zh"}), 422, "bad_spec")
    assert english["code"] == chinese["code"] == english["problems"][0]["code"]
    assert any("\u4e00" <= c <= "\u9fff" for c in chinese["detail"]), chinese
    for one, other in zip(english["problems"], chinese["problems"], strict=True):
        assert [one[key] for key in ("field", "line", "code", "args")] == [
            other[key] for key in ("field", "line", "code", "args")
        ]
        assert one["detail"] != other["detail"] and (one["hint"] is None or one["hint"] != other["hint"])


def test_warnings_of_a_job_are_said_to_each_reader(w):
    job = w.argusd.submit("sleep 0", env={"HF_TOKEN": "x"})
    english, chinese = (
        w.argusd.call("GET", f"/v1/jobs/{job}", **{"Accept-Language": tag}).json()["warnings"] for tag in ("en", "zh")
    )
    assert [p["code"] for p in english] == [p["code"] for p in chinese] == ["env_looks_secret"]
    assert "looks like a secret" in english[0]["detail"] and "看来是密钥" in chinese[0]["detail"]


@pytest.mark.parametrize("path", ["/v1/jobs/no-such", "/v1/jobs/no-such/logs", "/v1/files?path=jobs/no-such/work"])
def test_unknown_job_in_the_reader_s_language(w, path):
    problem = w.check_problem(w.argusd.call("GET", path), 404, "not_found")
    assert (problem["detail"], problem["args"]) == ("no job 'no-such'", {"noun": "job", "name": "no-such"})
    other = w.argusd.call("GET", path, **{"Accept-Language": "zh-CN"}).json()
    assert (other["detail"], other["args"]) == ("没有作业 'no-such'", problem["args"])


def test_wrong_headers_of_authorisation(w):
    good = w.argusd.tokens["admin"]
    for value in ("", "Bearer", "Bearer ", f"Basic {good}", good, f"Bearer {good}x", f"Bearer {good[:-1]}"):
        w.check_problem(w.argusd.call("GET", "/v1/whoami", token=None, Authorization=value), 401, "unauthorised")
    assert w.argusd.call("GET", "/v1/whoami", token=None, Authorization=f"bearer {good}").status == 200


# ---- submitting ----


def test_yaml_and_json_and_dry_run(w):
    before = len(w.argusd.all_jobs())
    text = "workload: ray\nentrypoint: echo 'a b'\nnnodes: 2\nn_gpus_per_node: 4\n"
    plan = w.argusd.post(text, "?dry_run=1").json()
    assert plan["dry_run"] is True
    assert plan["resolved_spec"]["nnodes"] == 2
    assert plan["demand"]["gpus"] == 8
    assert plan["fits_pool"] is True
    same = w.argusd.post({"workload": "ray", "entrypoint": "echo 'a b'", "nnodes": 2, "n_gpus_per_node": 4},
                         "?dry_run=1").json()  # fmt: skip
    assert same == plan
    assert len(w.argusd.all_jobs()) == before


def test_require_fit(w):
    spec = Argusd.spec("echo x", nnodes=3, n_gpus_per_node=4)
    problem = w.check_problem(w.argusd.post(spec, "?require_fit=1"), 422, "pool_too_small")
    assert "pool_too_small (has 8, needs 12)" in problem["detail"]
    assert problem["code"] == "pool_too_small"
    assert problem["args"] == {"has": 8, "needs": 12, "few_gpus": 1, "fit_nodes": 2, "fit_gpus": 4}
    other = w.argusd.call("POST", "/v1/jobs?require_fit=1", spec, **{"Accept-Language": "zh"}).json()
    assert other["args"] == problem["args"] and "最多可用 nnodes: 2" in other["detail"]
    assert w.argusd.post(Argusd.spec("echo x", n_gpus_per_node=4), "?require_fit=1&dry_run=1").status == 200
    reply = w.argusd.post(spec)
    assert reply.status == 201
    assert "pool_too_small" in json.dumps(reply.json()["warnings"])
    w.argusd.stop_job(reply.json()["id"])


def test_pool_that_no_machine_is_in(w):
    spec = Argusd.spec("echo x", pool="nope")
    problem = w.check_problem(w.argusd.post(spec, "?require_fit=1"), 422, "pool_too_small")
    assert "pool 'nope' is unknown" in problem["detail"] and "argus pool ls" in problem["detail"]
    assert problem["args"] == {"empty_pool": "nope"}
    reply = w.argusd.post(spec)
    (warning,) = reply.json()["warnings"]
    assert warning["field"] == "pool" and "pool 'nope' is unknown: no machine is in it now" in json.dumps(warning)
    w.argusd.stop_job(reply.json()["id"])
    spec = Argusd.spec("echo x", pool="nope", n_gpus_per_node=2)
    problem = w.check_problem(w.argusd.post(spec, "?require_fit=1"), 422, "pool_too_small")
    assert problem["args"] == {"empty_pool": "nope", "needs": 2}
    assert "(has 0, needs 2): no machine is in pool 'nope' now" in problem["detail"]


def test_limit_of_the_gang(w):
    reply = w.argusd.post(Argusd.spec("echo x", nnodes=400, n_gpus_per_node=8))
    problem = w.check_problem(reply, 422)
    assert "gpus_per_job" in json.dumps(problem) or "256" in json.dumps(problem)


def test_idempotency(w):
    spec = Argusd.spec("echo once")
    first = w.argusd.post(spec, token="user", Idempotency_Key="k1")
    assert first.status == 201
    job = first.json()["id"]
    again = w.argusd.post(spec, token="user", Idempotency_Key="k1")
    assert (again.status, again.json()["id"]) == (200, job)
    w.argusd.wait_over(job)
    again = w.argusd.post(spec, token="user", Idempotency_Key="k1")
    assert (again.status, again.json()["id"]) == (200, job)
    other = w.argusd.post(Argusd.spec("echo twice"), token="user", Idempotency_Key="k1")
    w.check_problem(other, 409, "conflict")
    somebody = w.argusd.post(spec, token="admin", Idempotency_Key="k1")
    assert somebody.status == 201
    assert somebody.json()["id"] != job
    w.argusd.restart()
    again = w.argusd.post(spec, token="user", Idempotency_Key="k1")
    assert (again.status, again.json()["id"]) == (200, job)
    w.check_problem(w.argusd.post(Argusd.spec("x"), token="user", Idempotency_Key="k1"), 409, "conflict")


def test_same_key_at_once_makes_one_job(w):
    spec = Argusd.spec("echo once")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda _: w.argusd.post(spec, Idempotency_Key="k2"), range(16)))
    assert len({r.json()["id"] for r in replies}) == 1
    assert sorted(r.status for r in replies) == [200] * 15 + [201]


def test_used_ids(w):
    reply = w.argusd.post(Argusd.spec("echo x", submission_id=w.done))
    assert w.check_problem(reply, 409, "conflict")["field"] == "submission_id"
    live = w.argusd.submit("echo x", submission_id="live-1", nnodes=9, n_gpus_per_node=4)
    w.check_problem(w.argusd.post(Argusd.spec("echo x", submission_id=live)), 409, "conflict")
    w.argusd.restart()
    for used in (w.done, live):
        w.check_problem(w.argusd.post(Argusd.spec("echo x", submission_id=used)), 409, "conflict")
    w.argusd.stop_job(live)
    w.check_problem(w.argusd.post(Argusd.spec("echo x", submission_id=live)), 409, "conflict")
    for bad in ("UPPER", "-x", "a" * 64, "a/b", "x-a2", "x-trial", "a b"):
        w.check_problem(w.argusd.post(Argusd.spec("echo x", submission_id=bad)), 422, "bad_spec")


# ---- lists ----


def test_pages_while_others_are_added(alone):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        old = list(pool.map(lambda n: alone.submit(f"echo {n}"), range(300)))
        for limit in (1000, 100, 7):
            adding = pool.map(lambda n: alone.submit(f"echo new {n}"), range(40))
            rows, cursor = [], ""
            while cursor is not None:
                page = alone.get(f"/v1/jobs?limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
                assert len(page["jobs"]) <= limit
                rows += [j["id"] for j in page["jobs"]]
                cursor = page["next_cursor"]
            assert len(rows) == len(set(rows))
            assert set(old) <= set(rows)
            old += list(adding)
    times = [j["queued_at"] for j in alone.all_jobs()]
    assert times == sorted(times, reverse=True)
    assert len(times) == len(old)


def test_filters(alone):
    a = alone.submit("echo x", project="p1", name="hello world")
    b = alone.submit("echo x", project="p2", pool="h20", token="admin")
    middle = alone.job(b)["queued_at"]
    c = alone.submit("echo x", submission_id="special-7")
    alone.stop_job(c)

    def ids(query):
        return {j["id"] for j in alone.all_jobs(query)}

    assert ids("") == {a, b, c}
    assert ids("&state=QUEUED") == ids("&state=live") == {a, b}
    assert ids("&state=STOPPED") == {c}
    assert ids("&state=STOPPED,QUEUED") == ids("&state=STOPPED&state=QUEUED") == {a, b, c}
    assert ids("&state=FAILED") == set()
    assert ids("&user=alice") == {a, c}
    assert ids("&user=alice&state=live") == {a}
    assert ids("&project=p1") == {a}
    assert ids("&pool=h20") == {b}
    assert ids("&workload=ray") == {a, b, c}
    assert ids("&workload=ppo") == set()
    assert ids("&cluster=default") == {a, b, c}
    assert ids("&q=hello") == {a}
    assert ids("&q=special") == {c}
    assert ids("&q=100%25") == set()
    assert ids("&since=1h") == {a, b, c}
    assert ids("&until=1h") == set()
    assert ids(f"&since={middle}") == {b, c}
    assert ids(f"&until={middle}") == {a}
    for _ in range(2):  # who lives is known again after a restart
        assert ids("&pool=h20&state=live") == ids("&workload=ray&pool=h20") == {b}
        assert ids("&workload=ray&state=live") == ids("&cluster=default&state=live") == {a, b}
        alone.kill9()
        alone.start()
    alone.stop_job(b)
    assert ids("&pool=h20") == ids("&cluster=default&pool=h20") == {b}
    assert ids("&pool=h20&state=live") == ids("&pool=h21") == ids("&cluster=other") == set()


# ---- one job ----


def test_etag_and_wait(w):
    job = w.argusd.submit("echo x", nnodes=9, n_gpus_per_node=4)
    w.argusd.wait_job(job, lambda v: v["reason"]["code"] == "pool_too_small", "says why it waits")
    reply = w.argusd.call("GET", f"/v1/jobs/{job}")
    tag = reply.headers["ETag"]
    assert w.argusd.call("GET", f"/v1/jobs/{job}", If_None_Match=tag).status == 304
    assert w.argusd.call("GET", f"/v1/jobs/{job}?wait=30s").status == 200
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        ask = lambda span: w.argusd.call("GET", f"/v1/jobs/{job}?wait={span}", If_None_Match=tag)  # noqa: E731
        waiting = [pool.submit(ask, "60s") for _ in range(20)]
        short = ask("1s")
        assert short.status == 304
        w.argusd.stop_job(job)
        replies = [f.result() for f in waiting]
    assert {r.status for r in replies} == {200}
    assert {r.json()["state"] for r in replies} == {"STOPPED"}
    assert all(r.headers["ETag"] != tag for r in replies)
    over = w.argusd.call("GET", f"/v1/jobs/{job}")
    reply = w.argusd.call("GET", f"/v1/jobs/{job}?wait=30s", If_None_Match=over.headers["ETag"])
    assert reply.status in (200, 304)  # nothing more will come: at once, or when the time is up


def test_wait_over_to_the_end(w):
    job = w.argusd.submit("timeout 0.3 tail -f /dev/null; exit 3")
    tag, seen = "", []
    deadline = time.monotonic() + PATIENCE
    while (not seen or seen[-1] not in OVER) and time.monotonic() < deadline:
        reply = w.argusd.call("GET", f"/v1/jobs/{job}?wait=20s", If_None_Match=tag)
        if reply.status == 200:
            tag = reply.headers["ETag"]
            seen.append(reply.json()["state"])
    assert seen[-1] == "FAILED"


def test_names_and_beginnings(alone):
    a = alone.submit("echo x", submission_id="alpha-one", name="first run")
    b = alone.submit("echo x", submission_id="alpha-two", name="same")
    c = alone.submit("echo x", submission_id="alpha", name="same")
    assert alone.job("alpha-o")["id"] == a
    assert alone.job("alpha-t")["id"] == b
    assert alone.job("alpha")["id"] == c  # an id wins over what begins like it
    assert alone.job("first%20run")["id"] == a
    for several in ("alpha-", "al"):
        reply = alone.call("GET", f"/v1/jobs/{several}")
        assert (reply.status, reply.json()["code"]) == (409, "job_ambiguous"), reply
        assert a in reply.body.decode()
    reply = alone.call("POST", "/v1/jobs/alpha-:stop")
    assert reply.status == 409
    assert {j["state"] for j in alone.all_jobs()} == {"QUEUED"}
    assert alone.call("POST", "/v1/jobs/alpha-o:stop").status == 202
    assert alone.job(a)["state"] == "STOPPED"


def test_only_owner_and_admin_stop(alone):
    job = alone.submit("echo x", token="admin")
    reply = alone.call("POST", f"/v1/jobs/{job}:stop", token="user")
    assert (reply.status, reply.json()["code"]) == (404, "not_found")  # nothing that he could know of
    assert alone.job(job)["state"] == "QUEUED"
    mine = alone.submit("echo x", token="user")
    assert alone.call("POST", f"/v1/jobs/{mine}:stop", token="user").status == 202
    assert alone.call("POST", f"/v1/jobs/{mine}:stop", token="user").status in (200, 202)
    stopped = [e for e in alone.events(mine) if e["to"] == "STOPPED"]
    assert [e["actor"] for e in stopped] == ["alice"]
    theirs = alone.submit("echo x", token="user")
    assert alone.stop_job(theirs, token="admin")["state"] == "STOPPED"


def content(file):
    with contextlib.suppress(FileNotFoundError):  # it was there for a moment only, before it was renamed
        return file.read_bytes()
    return b""


def test_secrets_stay_secret(w):
    canary = "canary-4711-do-not-tell"
    line = 'printf %s "$MY_TOKEN" | sha256sum; printf "%s\\n" "$PLAIN"'
    spec = {**Argusd.spec(line), "env": {"MY_TOKEN": canary, "PLAIN": "visible"}}
    job = w.argusd.submit(spec)
    view = w.argusd.wait_over(job)
    log = w.argusd.call("GET", f"/v1/jobs/{job}/logs").body.decode()
    assert log == hashlib.sha256(canary.encode()).hexdigest() + "  -\nvisible\n"
    assert view["state"] == "SUCCEEDED"
    for path in (f"/v1/jobs/{job}", "/v1/jobs", f"/v1/jobs/{job}/events", "/v1/events", "/metrics"):
        assert canary not in w.argusd.call("GET", path).body.decode(), path
    dry = w.argusd.post(spec, "?dry_run=1")
    assert canary not in dry.body.decode()
    leaks = [
        str(f) for top in (w.argusd.root, w.ray.state) for f in top.rglob("*")
        if f.is_file() and canary.encode() in content(f)
    ]  # fmt: skip
    assert leaks == []
    assert canary not in w.argusd.said()
    assert canary not in json.dumps(w.ray.ask("GET", "state"))
