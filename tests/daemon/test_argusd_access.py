# SPDX-License-Identifier: Apache-2.0
"""Who may see and do what: every route of the real argusd, for everybody there is. A route without a row here fails."""

import itertools
import subprocess

import pytest
from checkpoints import put_checkpoint
from fakeray import FakeRay
from programs import PROGRAMS
from snapshots import added, tar

from argusd import Argusd, needs_argusd, until

pytestmark = needs_argusd

# nobody: without a token. victor: a user of role viewer. alice: owns the job, the token, the name. reader: a viewer
# token of hers. carol: a member of the job's project. bob: a user like others. admin.
PEOPLE = ("nobody", "victor", "alice", "reader", "carol", "bob", "admin")

# What each gets: y yes, u 401, d 403, h 404 as if it were not there, r refused as a spec (422).
EVERYBODY, TOKEN, ADMIN = "yyyyyyy", "uyyyyyy", "uddddd" + "y"
SEE_JOB, CHANGE_JOB = "uyyyyhy", "udyddhy"
SEE_PERSON, OWN = "uyyyyhy", "uyyyyyy"

PRESET = {"spec": {"workload": "ray", "entrypoint": "true"}}
PIPELINE = {"name": "hers", "concurrency": "allow", "steps": {"a": {"with": PRESET["spec"]}}}
IMPORT = {"name": "x", "source": "http://127.0.0.1:9/x.jsonl"}

ROUTES = {
    "POST /v1/jobs": ("/v1/jobs?dry_run=1", "udydyry", Argusd.spec("echo x", project="rlhf")),
    "GET /v1/jobs": ("/v1/jobs", TOKEN, None),
    "POST /v1/jobs:stop": ("/v1/jobs:stop", "udydyyy", {"workload": "none"}),
    "GET /v1/jobs/{id}": ("/v1/jobs/JOB", SEE_JOB, None),
    "GET /v1/jobs/{id}/why": ("/v1/jobs/JOB/why", SEE_JOB, None),
    "GET /v1/jobs/{id}/gpus": ("/v1/jobs/JOB/gpus", SEE_JOB, None),
    "GET /v1/jobs/{id}/load": ("/v1/jobs/JOB/load", SEE_JOB, None),
    "GET /v1/jobs/{id}/family": ("/v1/jobs/JOB/family", SEE_JOB, None),
    "POST /v1/jobs/{id}:note": ("/v1/jobs/JOB:note", CHANGE_JOB, {"note": "half the rate"}),
    "GET /v1/jobs/{id}/findings": ("/v1/jobs/JOB/findings", SEE_JOB, None),
    "GET /v1/jobs/{id}/report": ("/v1/jobs/JOB/report", SEE_JOB, None),
    "GET /v1/checkpoints": ("/v1/checkpoints", TOKEN, None),
    "GET /v1/jobs/{id}/checkpoints": ("/v1/jobs/JOB/checkpoints", SEE_JOB, None),
    "POST /v1/jobs/{id}/checkpoints:gc": ("/v1/jobs/JOB/checkpoints:gc", CHANGE_JOB, {"dry_run": True}),
    "POST /v1/jobs/{id}/checkpoints/{step}:verify": ("/v1/jobs/JOB/checkpoints/20:verify", CHANGE_JOB, None),
    "POST /v1/jobs/{id}/checkpoints/{step}:export": ("/v1/jobs/JOB/checkpoints/20:export", CHANGE_JOB, {}),
    "POST /v1/jobs/{id}/checkpoints/{step}:pin": ("/v1/jobs/JOB/checkpoints/20:pin", CHANGE_JOB, None),
    "POST /v1/jobs/{id}/checkpoints/{step}:unpin": ("/v1/jobs/JOB/checkpoints/20:unpin", CHANGE_JOB, None),
    "GET /v1/jobs/{id}/samples": ("/v1/jobs/JOB/samples", SEE_JOB, None),
    "GET /v1/jobs/{id}/logs": ("/v1/jobs/JOB/logs", SEE_JOB, None),
    "GET /v1/jobs/{id}/logs/files": ("/v1/jobs/JOB/logs/files", SEE_JOB, None),
    "GET /v1/jobs/{id}/logs/merged": ("/v1/jobs/JOB/logs/merged", SEE_JOB, None),
    "GET /v1/logs": ("/v1/logs?grep=x", TOKEN, None),
    "GET /v1/search": ("/v1/search?q=x", TOKEN, None),
    "GET /v1/jobs/{id}/metrics": ("/v1/jobs/JOB/metrics", SEE_JOB, None),
    "GET /v1/jobs/{id}/steps": ("/v1/jobs/JOB/steps", SEE_JOB, None),
    "GET /v1/jobs/{id}/events": ("/v1/jobs/JOB/events", SEE_JOB, None),
    "POST /v1/jobs/{id}:hold": ("/v1/jobs/JOB:hold", CHANGE_JOB, None),
    "POST /v1/jobs/{id}:release": ("/v1/jobs/MINE:release", CHANGE_JOB, None),
    "POST /v1/jobs/{id}:priority": ("/v1/jobs/JOB:priority", CHANGE_JOB, {"priority": 40}),
    "POST /v1/jobs/{id}:justify": ("/v1/jobs/JOB:justify", CHANGE_JOB, {"reason": "it waits for a judge"}),
    "POST /v1/jobs/{id}:change": ("/v1/jobs/MINE:change?dry_run=1", CHANGE_JOB, {"timeout": "1h"}),
    "POST /v1/jobs/{id}:retry": ("/v1/jobs/ENDED:retry", CHANGE_JOB, {}),
    "POST /v1/jobs/{id}:archive": ("/v1/jobs/ENDED:archive", CHANGE_JOB, None),
    "POST /v1/jobs/{id}:unarchive": ("/v1/jobs/ENDED:unarchive", CHANGE_JOB, None),
    "POST /v1/jobs/{id}:stop": ("/v1/jobs/NEW_JOB:stop", CHANGE_JOB, None),
    "GET /v1/events": ("/v1/events", TOKEN, None),
    "GET /v1/events:export": ("/v1/events:export?format=csv", TOKEN, None),
    "GET /v1/events:verify": ("/v1/events:verify", "uyddddy", None),
    "GET /v1/agent": ("/v1/agent", TOKEN, None),
    "GET /v1/backups": ("/v1/backups", TOKEN, None),
    "POST /v1/backups": ("/v1/backups", "udddddy", None),
    "GET /v1/alerts": ("/v1/alerts", TOKEN, None),
    "GET /v1/alerts/{alert}": ("/v1/alerts/none", TOKEN, None),
    "POST /v1/alerts/{alert}:ack": ("/v1/alerts/none:ack", "udydyyy", {}),
    "POST /v1/alerts/{alert}:silence": ("/v1/alerts/none:silence", "udydyyy", {"for": "1h"}),
    "GET /v1/incidents": ("/v1/incidents", TOKEN, None),
    "GET /v1/incidents/{incident}": ("/v1/incidents/none", TOKEN, None),
    "GET /v1/incidents/{incident}/report": ("/v1/incidents/none/report", TOKEN, None),
    "GET /v1/silences": ("/v1/silences", TOKEN, None),
    "POST /v1/silences": ("/v1/silences", ADMIN, {"for": "1h", "names": ["nothing"]}),
    "DELETE /v1/silences/{silence}": ("/v1/silences/none", ADMIN, None),
    "GET /v1/alert_rules": ("/v1/alert_rules", TOKEN, None),
    "GET /v1/alert_rules/{rule}": ("/v1/alert_rules/job_failed", TOKEN, None),
    "PUT /v1/alert_rules/{rule}": ("/v1/alert_rules/mine", ADMIN, {"of": "job", "when": "gpus > 3000", "text": "x"}),
    "PATCH /v1/alert_rules/{rule}": ("/v1/alert_rules/none", ADMIN, {"off": True}),
    "DELETE /v1/alert_rules/{rule}": ("/v1/alert_rules/none", ADMIN, None),
    "GET /v1/receivers": ("/v1/receivers", TOKEN, None),
    "POST /v1/receivers/{receiver}:test": ("/v1/receivers/none:test", ADMIN, None),
    "GET /v1/doctor": ("/v1/doctor", ADMIN, None),
    "GET /v1/remedies": ("/v1/remedies", TOKEN, None),
    "GET /v1/nodes": ("/v1/nodes", TOKEN, None),
    "POST /v1/nodes": ("/v1/nodes", ADMIN, {}),
    "GET /v1/nodes/{name}": ("/v1/nodes/none", TOKEN, None),
    "GET /v1/nodes/{name}/firewall": ("/v1/nodes/none/firewall", TOKEN, None),
    "GET /v1/nodes/{name}/figures": ("/v1/nodes/none/figures", TOKEN, None),
    "POST /v1/nodes/{name}:drain": ("/v1/nodes/none:drain", ADMIN, None),
    "POST /v1/nodes/{name}:undrain": ("/v1/nodes/none:undrain", ADMIN, None),
    "POST /v1/nodes/{name}:remove": ("/v1/nodes/none:remove", ADMIN, None),
    "POST /v1/nodes/{name}:check": ("/v1/nodes/none:check", ADMIN, None),
    "POST /v1/nodes:check": ("/v1/nodes:check", ADMIN, {"nodes": [1]}),
    "GET /v1/clusters/{cluster}/network": ("/v1/clusters/default/network", TOKEN, None),
    "GET /v1/pools": ("/v1/pools", TOKEN, None),
    "GET /v1/usage/jobs": ("/v1/usage/jobs", TOKEN, None),
    "GET /v1/usage/recovery": ("/v1/usage/recovery", TOKEN, None),
    "GET /v1/usage": ("/v1/usage", TOKEN, None),
    "GET /v1/forecast": ("/v1/forecast", TOKEN, None),
    "GET /v1/clusters": ("/v1/clusters", TOKEN, None),
    "POST /v1/clusters/{cluster}:up": ("/v1/clusters/none:up", ADMIN, None),
    "POST /v1/clusters/{cluster}:down": ("/v1/clusters/none:down", ADMIN, None),
    "POST /v1/jobs/{id}/findings": ("/v1/jobs/JOB/findings", "udydyhy", {"cause": "the disk is full"}),
    "GET /v1/clusters/{cluster}/nodes": ("/v1/clusters/default/nodes", TOKEN, None),
    "GET /v1/clusters/{cluster}/actors": ("/v1/clusters/default/actors", TOKEN, None),
    "GET /v1/clusters/{cluster}/placement_groups": ("/v1/clusters/default/placement_groups", TOKEN, None),
    "GET /v1/clusters/{cluster}/foreign": ("/v1/clusters/default/foreign", TOKEN, None),
    "POST /v1/clusters/{cluster}/foreign/{ray_id}:adopt": (
        "/v1/clusters/default/foreign/none:adopt",
        ADMIN,
        {"project": "default"},
    ),
    "GET /v1/whoami": ("/v1/whoami", TOKEN, None),
    "GET /v1/users": ("/v1/users", TOKEN, None),
    "POST /v1/users": ("/v1/users", ADMIN, {"name": "NEW"}),
    "GET /v1/users/{user}": ("/v1/users/alice", SEE_PERSON, None),
    "PATCH /v1/users/{user}": ("/v1/users/alice", ADMIN, {"note": "x"}),
    "DELETE /v1/users/{user}": ("/v1/users/NEW_USER", ADMIN, None),
    "GET /v1/users/{user}/quota": ("/v1/users/alice/quota", SEE_PERSON, None),
    "PUT /v1/users/{user}/quota": ("/v1/users/alice/quota", ADMIN, {"queued": 1000}),
    "GET /v1/tokens": ("/v1/tokens?user=alice", "udyyhhy", None),
    "POST /v1/tokens": ("/v1/tokens", "udydhhy", {"user": "alice", "role": "viewer"}),
    "DELETE /v1/tokens/{token}": ("/v1/tokens/NEW_TOKEN", "udydhhy", None),
    "GET /v1/changes": ("/v1/changes", TOKEN, None),
    "POST /v1/session": ("/v1/session", "uuuuuuu", {"token": "none"}),
    "POST /v1/session:link": ("/v1/session:link", TOKEN, None),
    "GET /v1/session": ("/v1/session", "uhhhhhh", None),  # they come with a token and not with a cookie
    "DELETE /v1/session": ("/v1/session", "uhhhhhh", None),
    "GET /v1/sessions": ("/v1/sessions", TOKEN, None),
    "DELETE /v1/sessions/{session}": ("/v1/sessions/NEW_SESSION", "udyyhhy", None),
    "GET /v1/secrets": ("/v1/secrets?user=alice", TOKEN, None),
    "PUT /v1/secrets/{name}": ("/v1/secrets/MY_KEY", "udydhhy", {"value": "x", "user": "alice"}),
    "DELETE /v1/secrets/{name}": ("/v1/secrets/NEW_SECRET?user=alice", "udydhhy", None),
    "GET /v1/presets": ("/v1/presets", TOKEN, None),
    "GET /v1/presets/{name}": ("/v1/presets/hers?project=rlhf", SEE_JOB, None),
    "PUT /v1/presets/{name}": ("/v1/presets/NEW?project=rlhf", "udydyhy", PRESET),
    "DELETE /v1/presets/{name}": ("/v1/presets/NEW_PRESET?project=rlhf", CHANGE_JOB, None),
    "GET /v1/projects": ("/v1/projects", TOKEN, None),
    "POST /v1/projects": ("/v1/projects", ADMIN, {"name": "NEW"}),
    "GET /v1/projects/{project}": ("/v1/projects/rlhf", SEE_JOB, None),
    "PATCH /v1/projects/{project}": ("/v1/projects/rlhf", ADMIN, {"note": "x"}),
    "DELETE /v1/projects/{project}": ("/v1/projects/NEW_PROJECT", ADMIN, None),
    "GET /v1/datasets": ("/v1/datasets", TOKEN, None),
    "POST /v1/datasets": ("/v1/datasets", "udydyyy", IMPORT),
    "POST /v1/datasets:prepare": ("/v1/datasets:prepare", "udrdrrr", {"name": "raw", "with": "x"}),
    "GET /v1/datasets/{name}": ("/v1/datasets/NEW_DATA", SEE_JOB, None),
    "DELETE /v1/datasets/{name}": ("/v1/datasets/NEW_DATA", CHANGE_JOB, None),
    "POST /v1/datasets/{name}:share": ("/v1/datasets/NEW_DATA:share", CHANGE_JOB, {"users": ["victor"]}),
    "GET /v1/models": ("/v1/models", TOKEN, None),
    "POST /v1/models": ("/v1/models", "udydyyy", IMPORT),
    "GET /v1/models/{name}": ("/v1/models/NEW_MODEL", SEE_JOB, None),
    "GET /v1/models/{name}/uses": ("/v1/models/NEW_MODEL/uses", SEE_JOB, None),
    "DELETE /v1/models/{name}": ("/v1/models/NEW_MODEL", CHANGE_JOB, None),
    "POST /v1/models/{name}:share": ("/v1/models/NEW_MODEL:share", CHANGE_JOB, {"projects": ["rlhf"]}),
    "GET /v1/projects/{project}/quota": ("/v1/projects/rlhf/quota", SEE_JOB, None),
    "PUT /v1/projects/{project}/quota": ("/v1/projects/rlhf/quota", ADMIN, {"queued": 1000}),
    "GET /v1/quotas": ("/v1/quotas", TOKEN, None),
    "GET /v1/pipelines": ("/v1/pipelines", TOKEN, None),
    "GET /v1/pipelines/{name}": ("/v1/pipelines/hers?user=alice", SEE_JOB, None),
    "PUT /v1/pipelines/{name}": ("/v1/pipelines/hers?project=rlhf", "udydyhy", PIPELINE),
    "DELETE /v1/pipelines/{name}": ("/v1/pipelines/NEW_PIPELINE?user=alice", CHANGE_JOB, None),
    "POST /v1/pipelines/{name}:run": ("/v1/pipelines/hers:run?user=alice", "udydyhy", {}),
    "POST /v1/pipelines/{name}:schedule": ("/v1/pipelines/hers:schedule?user=alice", CHANGE_JOB, {"cron": "@yearly"}),
    "GET /v1/pipeline-runs": ("/v1/pipeline-runs", TOKEN, None),
    "GET /v1/pipeline-runs/{run}": ("/v1/pipeline-runs/RUN", SEE_JOB, None),
    "POST /v1/pipeline-runs/{run}:cancel": ("/v1/pipeline-runs/RUN:cancel", CHANGE_JOB, None),
    "POST /v1/pipeline-runs/{run}:retry": ("/v1/pipeline-runs/RUN:retry", CHANGE_JOB, {}),
    "POST /v1/pipeline-runs/{run}:rollback": ("/v1/pipeline-runs/RUN:rollback", CHANGE_JOB, None),
    "POST /mcp": ("/mcp", TOKEN, {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    "POST /v1/ops/drain_node": ("/v1/ops/drain_node", "uddddd" + "h", {"node": "none"}),
    "POST /v1/ops/remove_node": ("/v1/ops/remove_node", "uddddd" + "h", {"node": "none"}),
    "POST /v1/ops/restart_ray_head": ("/v1/ops/restart_ray_head", ADMIN, {}),
    "POST /v1/ops/cleanup_job_artifacts": ("/v1/ops/cleanup_job_artifacts", CHANGE_JOB, {"job": "JOB"}),
    "POST /v1/ops/stop_many": ("/v1/ops/stop_many", "udydyyy", {"project": "nobodys"}),
    "GET /v1/ops/plans": ("/v1/ops/plans", TOKEN, None),
    "GET /v1/ops/plans/{plan}": ("/v1/ops/plans/NEW_PLAN", "uyyyhhy", None),
    "POST /v1/ops/plans/{plan}:approve": ("/v1/ops/plans/NEW_PLAN:approve", "uddddd" + "y", None),
    "POST /v1/ops/plans/{plan}:apply": ("/v1/ops/plans/NEW_PLAN:apply", "udydhhy", {}),
    "GET /v1/notebooks": ("/v1/notebooks", TOKEN, None),
    "POST /v1/notebooks": ("/v1/notebooks", "udrdrrr", {"name": "A b"}),
    "GET /v1/notebooks/{name}": ("/v1/notebooks/hers?user=alice", "udydhhy", None),
    "DELETE /v1/notebooks/{name}": ("/v1/notebooks/hers?user=alice", "udydhhy", None),
    "POST /v1/notebooks/{name}:extend": ("/v1/notebooks/hers:extend?user=alice", "udydhhy", {"for": "1h"}),
    "POST /v1/notebooks/{name}:freeze": ("/v1/notebooks/hers:freeze", "udydhhh", None),
    "POST /v1/notebooks/{name}:open": ("/v1/notebooks/hers:open?user=alice", "udydhhd", None),
    "POST /v1/notebooks/{name}:stop": ("/v1/notebooks/hers:stop?user=alice", "udydhhy", None),
    "GET /v1/services": ("/v1/services", TOKEN, None),
    "POST /v1/services": ("/v1/services", "udrdrrr", {"app": "no application"}),
    "GET /v1/services/{name}": ("/v1/services/SERVICE", SEE_JOB, None),
    "PATCH /v1/services/{name}": ("/v1/services/SERVICE", "udydyhy", {"keep": "cold"}),
    "DELETE /v1/services/{name}": ("/v1/services/NEW_SERVICE", "udydyhy", None),
    "POST /v1/services/{name}:ask": ("/v1/services/SERVICE:ask", "udydyhy", {"path": "/"}),
    "POST /v1/services/{name}:deploy": ("/v1/services/SERVICE:deploy", "udydyhy", {}),
    "POST /v1/services/{name}:rollback": ("/v1/services/SERVICE:rollback", "udydyhy", {"version": 1}),
    "POST /v1/services/{name}:scale": ("/v1/services/SERVICE:scale", "udydyhy", {"replicas": 1}),
    "POST /v1/services/{name}:stop": ("/v1/services/SERVICE:stop", "udydyhy", None),
    "POST /v1/services/{name}:wake": ("/v1/services/SERVICE:wake", "udydyhy", None),
    "GET /v1/services/{name}:requests": ("/v1/services/SERVICE:requests", SEE_JOB, None),
    "GET /v1/service-applications": ("/v1/service-applications", TOKEN, None),
    "GET /v1/service-keys": ("/v1/service-keys", TOKEN, None),
    "POST /v1/service-keys": ("/v1/service-keys", "udydyhy", {"service": "hers"}),
    "DELETE /v1/service-keys/{key}": ("/v1/service-keys/A_LOCK", "udydyhy", None),
    "GET /v1/snapshots": ("/v1/snapshots", TOKEN, None),
    "POST /v1/snapshots": ("/v1/snapshots", "udydyyy", {"name": "x@1", "hash": "no"}),
    "GET /v1/snapshots/{name}": ("/v1/snapshots/hers@1?user=alice", "uyyyhhy", None),
    "GET /v1/snapshots/{name}:diff": ("/v1/snapshots/hers@1:diff?user=alice&with=hers@1", "uyyyhhy", None),
    "GET /v1/snapshots/{name}:files": ("/v1/snapshots/hers@1:files?user=alice", "uyyyhhy", None),
    "PATCH /v1/snapshots/{name}": ("/v1/snapshots/hers@1?user=alice", "udydhhy", {"needs": []}),
    "DELETE /v1/snapshots/{name}": ("/v1/snapshots/NEW_SNAPSHOT?user=alice", "udydhhy", None),
    "GET /v1/files": ("/v1/files?path=users/alice", "udyyhhy", None),
    "GET /v1/files/content": ("/v1/files/content?path=users/alice/file", "udyyhhy", None),
    "POST /v1/files": ("/v1/files", "udydhhy", {"path": "users/alice/x"}),
    "DELETE /v1/files": ("/v1/files?path=users/alice/code", "udydhhy", None),
    "GET /v1/uploads": ("/v1/uploads", "udydyyy", None),
    "POST /v1/uploads": ("/v1/uploads", "udydyyy", {"name": "x", "bytes": 0}),
    "GET /v1/uploads/{id}": ("/v1/uploads/NEW_UPLOAD", "udydhhh", None),
    "PUT /v1/uploads/{id}": ("/v1/uploads/NEW_UPLOAD?offset=0", "udydhhh", None),
    "DELETE /v1/uploads/{id}": ("/v1/uploads/NEW_UPLOAD", "udydhhh", None),
    "GET /v1/simulations": ("/v1/simulations", TOKEN, None),
    "POST /v1/simulations": ("/v1/simulations", "udydyyy", None),
    "GET /v1/simulations/{simulation}": ("/v1/simulations/NEW_SIM", "uyyyhhy", None),
    "GET /v1/simulations/{simulation}/csv": ("/v1/simulations/NEW_SIM/csv", "uyyyhhy", None),
    "POST /v1/simulations/{simulation}:cancel": ("/v1/simulations/NEW_SIM:cancel", "udydhhy", None),
    "DELETE /v1/simulations/{simulation}": ("/v1/simulations/NEW_SIM", "udydhhy", None),
    "GET /v1/me/settings": ("/v1/me/settings", TOKEN, None),
    "PATCH /v1/me/settings": ("/v1/me/settings", TOKEN, {"settings": {"x": 1}}),
    "GET /v1/version": ("/v1/version", EVERYBODY, None),
    "GET /v1/jobspec.schema.json": ("/v1/jobspec.schema.json", EVERYBODY, None),
    "GET /v1/openapi.json": ("/v1/openapi.json", EVERYBODY, None),
    "GET /healthz": ("/healthz", EVERYBODY, None),
    "GET /readyz": ("/readyz", EVERYBODY, None),
    "GET /metrics": ("/metrics", TOKEN, None),
    "GET /v1/prometheus/targets": ("/v1/prometheus/targets", TOKEN, None),
}


def routes():
    listed = subprocess.run([PROGRAMS["argusd"], "--list-routes"], capture_output=True, text=True, check=True).stdout
    return [line.split("\t")[0] for line in listed.splitlines()]


class House:
    def __init__(self, argusd, has_work=True):
        self.argusd = argusd
        self.numbers = itertools.count()
        self.last_plan = None
        for name in ("bob", "carol"):
            self.make("/v1/users", {"name": name})
            argusd.tokens[name] = self.make("/v1/tokens", {"user": name})["token"]
        self.make("/v1/projects", {"name": "rlhf", "members": ["alice", "carol"]})
        argusd.tokens |= {"alice": argusd.tokens["user"], "victor": argusd.tokens["viewer"], "nobody": None}
        argusd.tokens["reader"] = self.make("/v1/tokens", {"role": "viewer"}, "alice")["token"]
        self.job = self.submit()
        put_checkpoint(argusd.job_dir(self.job) / "checkpoints", 20)
        (argusd.root / "users/alice/code").mkdir(parents=True, exist_ok=True)
        (argusd.root / "users/alice/file").write_text("hers")
        self.snapshot("hers@1")
        self.preset("hers")
        self.pipeline("hers")
        if has_work:
            self.make("/v1/notebooks", {"name": "hers"}, "alice")
            self.service("hers")
            self.run = self.make("/v1/pipelines/hers:run", {}, "alice")["id"]

    def make(self, path, body, token="admin"):
        reply = self.argusd.call("POST", path, body, token=token)
        assert reply.status == 201, reply
        return reply.json()

    def snapshot(self, name):
        return added(self.argusd, name, tar({"a.py": name}), token="alice")["name"]

    def preset(self, name):
        reply = self.argusd.call("PUT", f"/v1/presets/{name}?project=rlhf", PRESET, token="alice")
        assert reply.status == 201, reply
        return name

    def service(self, name):
        return self.make("/v1/services", {"app": "m:a", "name": name, "project": "rlhf"}, "alice")["name"]

    def pipeline(self, name):
        body = {**PIPELINE, "name": name}
        reply = self.argusd.call("PUT", f"/v1/pipelines/{name}?project=rlhf", body, token="alice")
        assert reply.status == 201, reply
        return name

    def secret(self, user):
        name = f"KEY_{next(self.numbers)}"
        reply = self.argusd.call("PUT", f"/v1/secrets/{name}", {"value": "x", "user": user}, token="admin")
        assert reply.status == 201, reply
        return name

    def submit(self):
        return self.argusd.submit("echo x", token="alice", project="rlhf")

    def ended(self):
        job = self.submit()
        self.argusd.stop_job(job)
        return job

    def held_by_alice(self):
        job = self.submit()
        assert self.argusd.call("POST", f"/v1/jobs/{job}:hold", token="alice").status == 200
        return job

    def simulation(self):
        """Of alice, who may have two that have not ended."""

        def begun():
            reply = self.argusd.call("POST", "/v1/simulations", token="alice")
            return reply.json()["id"] if reply.status == 202 else None

        return until(begun, "a simulation begins")

    def plan(self):
        """Of alice, about one job that waits for ever; the one before is applied: she may have only so many."""
        if self.last_plan:
            self.argusd.call("POST", f"/v1/ops/plans/{self.last_plan}:apply", {}, token="alice")
        job = self.argusd.submit("echo x", token="alice", nnodes=9, n_gpus_per_node=4)
        self.last_plan = self.make("/v1/ops/stop_many", {"jobs": [job]}, "alice")["id"]
        return self.last_plan

    def ask(self, route, person):
        path, _, body = ROUTES[route]
        fresh = f"x{next(self.numbers)}"
        things = {
            "NEW_JOB": self.submit,
            "NEW_USER": lambda: self.make("/v1/users", {"name": fresh})["name"],
            "NEW_PROJECT": lambda: self.make("/v1/projects", {"name": fresh})["name"],
            "NEW_SECRET": lambda: self.secret("alice"),
            "NEW_TOKEN": lambda: self.make("/v1/tokens", {}, "alice")["id"],
            "NEW_SESSION": lambda: self.make("/v1/session", {"token": self.argusd.tokens["alice"]}, None)["id"],
            "NEW_UPLOAD": lambda: self.make("/v1/uploads", {"name": fresh, "bytes": 0}, "alice")["id"],
            "NEW_DATA": lambda: self.make("/v1/datasets", {**IMPORT, "project": "rlhf"}, "alice")["ref"],
            "NEW_MODEL": lambda: self.make("/v1/models", {**IMPORT, "project": "rlhf"}, "alice")["ref"],
            "NEW_PRESET": lambda: self.preset(fresh),
            "NEW_PIPELINE": lambda: self.pipeline(fresh),
            "NEW_SERVICE": lambda: self.service(fresh),
            "SERVICE": lambda: "hers",
            "A_LOCK": lambda: self.make("/v1/service-keys", {"service": "hers"}, "alice")["id"],
            "RUN": lambda: self.run,
            "NEW?": lambda: f"{fresh}?",
            "NEW_SNAPSHOT": lambda: self.snapshot(f"{fresh}@1"),
            "NEW_SIM": self.simulation,
            "NEW_PLAN": self.plan,
            "MINE": self.held_by_alice,
            "ENDED": lambda: self.ended(),
            "JOB": lambda: self.job,
        }
        for word, make in things.items():
            if word in path:
                path = path.replace(word, make())
        if body == {"name": "NEW"}:
            body = {"name": fresh}
        if body == {"job": "JOB"}:
            body = {"job": self.job}
        return self.argusd.call(route.split()[0], path, body, token=person)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with FakeRay() as ray:
        ray.listen(False)
        with Argusd(tmp_path_factory.mktemp("access"), ray.url) as argusd:
            yield House(argusd)


def test_every_route_has_its_row():
    assert sorted(routes()) == sorted(ROUTES)


def answer_of(reply):
    """The letter. What is not there or not well asked for was let in: only a thing that is there is hidden."""
    if reply.status in (401, 403):
        return {401: "u", 403: "d"}[reply.status]
    is_problem = reply.headers["Content-Type"] == "application/problem+json"
    kind = reply.json()["type"].rpartition(":")[2] if is_problem else None
    return {"not_found": "h", "bad_spec": "r"}.get(kind, "y")


@pytest.mark.parametrize("route", ROUTES)
def test_everybody(house, route):
    path, expected, _ = ROUTES[route]
    answers = [house.ask(route, person) for person in PEOPLE]
    got = "".join(map(answer_of, answers))
    if "/none" in path or path == "/v1/nodes":  # there is no such thing: whoever is let in hears so
        got = got.replace("h", "y").replace("r", "y")
    assert got == expected, list(zip(PEOPLE, answers, strict=True))


def test_what_lists_show(house):
    """Lists never hold what asking for the thing itself would hide."""
    for person in PEOPLE[1:]:
        sees = person != "bob"
        jobs = [j["id"] for j in house.argusd.get("/v1/jobs?all=1&limit=1000", token=person)["jobs"]]
        users = [u["name"] for u in house.argusd.get("/v1/users", token=person)["users"]]
        projects = [p["name"] for p in house.argusd.get("/v1/projects", token=person)["projects"]]
        quotas = [q["name"] for q in house.argusd.get("/v1/quotas", token=person)["quotas"] if q["kind"] == "project"]
        events = [e["job"] for e in house.argusd.get("/v1/events?limit=1000", token=person)["events"]]
        assert (house.job in jobs, "alice" in users, "rlhf" in projects, "rlhf" in quotas, house.job in events) == (
            (sees,) * 5
        ), person
        assert "default" in projects


# ---- machines name only jobs that one may see ----


def rows_of_ray(ray, job):
    """An actor and a placement group of this job, as Ray lists them."""
    record = ray.jobs()[job]
    actor = {"actor_id": record["job_id"] * 4, "class_name": "Worker", "state": "ALIVE", "name": f"{job}:0", "pid": 7}
    actor |= {"job_id": record["job_id"], "node_id": record["driver_node_id"], "is_detached": False}
    group = {"placement_group_id": record["job_id"] * 4, "name": f"{job}:pg", "state": "CREATED", "is_detached": False}
    bundle = {"bundle_id": {"bundle_index": 0}, "node_id": record["driver_node_id"], "unit_resources": {"GPU": 1}}
    return actor, {**group, "creator_job_id": record["job_id"], "bundles": [bundle], "stats": {}}


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    """Two jobs run, alice's in project rlhf and bob's own; Ray lists actors and groups of both."""
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("machines"), ray.url) as argusd:
        house = House(argusd, has_work=False)  # its other work would be more jobs on a machine
        house.hers = argusd.submit("sleep 600", token="alice", project="rlhf", n_gpus_per_node=1)
        house.his = argusd.submit("sleep 600", token="bob", n_gpus_per_node=1)
        for job in (house.hers, house.his):
            argusd.wait_state(job, "RUNNING")
        argusd.wait_over(house.job)
        until(lambda: house.job not in str(argusd.get("/v1/nodes")), "nothing of another job is left")
        both = (house.hers, house.his)
        until(lambda: all(ray.jobs()[job]["job_id"] for job in both), "Ray tells of both drivers")
        actors, groups = zip(*(rows_of_ray(ray, job) for job in (house.hers, house.his)), strict=True)
        left = {**actors[0], "actor_id": "ff" * 16, "job_id": "fe000000", "name": "left-behind", "class_name": "Secret"}
        ray.world(actors=[*actors, left], groups=groups)
        yield house


SEES_HERS = ("victor", "alice", "reader", "carol", "admin")
SEES_HIS = ("victor", "bob", "admin")


def seen_by(machines, person):
    return {job for job, who in ((machines.hers, SEES_HERS), (machines.his, SEES_HIS)) if person in who}


@pytest.mark.parametrize("person", PEOPLE[1:])
def test_machines_name_only_jobs_that_one_may_see(machines, person):
    ask, sees = machines.argusd, seen_by(machines, person)
    lists = [ask.get(path, token=person)["nodes"] for path in ("/v1/nodes", "/v1/clusters/default/nodes")]
    lists.append([ask.get(f"/v1/nodes/{n['name']}", token=person) for n in lists[0]])
    for nodes in lists:
        assert {job for n in nodes for job in n["jobs"]} == sees
        assert sum(n["jobs_hidden"] for n in nodes) == 2 - len(sees)


@pytest.mark.parametrize("kind", ["actors", "placement_groups"])
@pytest.mark.parametrize("person", PEOPLE[1:])
def test_what_runs_in_ray_names_only_jobs_that_one_may_see(machines, person, kind):
    sees = seen_by(machines, person)
    reply = machines.argusd.call("GET", f"/v1/clusters/default/{kind}", token=person)
    rows = [r for r in reply.json()[kind] if r["ray_job_id"] not in ("01000000", "fe000000")]
    assert {r["job"] for r in rows if r["job"]} == sees
    assert [(r["job"], r["name"]) for r in rows if r["job_hidden"]] == [(None, None)] * (2 - len(sees))
    assert {job for job in (machines.hers, machines.his) if job in reply.body.decode()} == sees


@pytest.mark.parametrize("person", PEOPLE[1:])
def test_what_a_gone_driver_left_is_named_to_who_sees_everything(machines, person):
    """Ray lists its driver no more: nobody can tell whose it was."""
    rows = machines.argusd.get("/v1/clusters/default/actors", token=person)["actors"]
    (left,) = [r for r in rows if r["ray_job_id"] == "fe000000"]
    sees = person in ("victor", "admin")
    assert (left["name"], left["class_name"]) == (("left-behind", "Secret") if sees else (None, None))
    hidden = [r["class_name"] for r in rows if r["job_hidden"]]
    assert hidden == [None] * len(hidden) and left["job_hidden"] is not sees


def test_node_ls_counts_what_it_does_not_name(machines):
    env = {"ARGUS_URL": machines.argusd.url, "ARGUS_TOKEN": machines.argusd.tokens["bob"], "PATH": "/usr/bin:/bin"}
    done = subprocess.run([PROGRAMS["argus"], "node", "ls"], env=env, capture_output=True, text=True, check=True)
    assert machines.his in done.stdout and machines.hers not in done.stdout
    assert "+1" in done.stdout
