# SPDX-License-Identifier: Apache-2.0
"""A stage of bare hosts: an sshd each, the environment with Ray on their disks, and nothing that runs.

    with BareStage(BEDS.bare("2.51.1"), directory, tiny, evidence) as stage:
        stage.add_node("node-1", "h2", gpu_count=2)
        stage.wait_node("node-1", "online")
"""

import os
import secrets
import sys

from programs import PROGRAMS
from raybed import BEDS
from stage import Stage, wait_for


class BareStage(Stage):
    """Hosts with an sshd and nothing else: argusd starts the head there, and whoever tests adds the machines."""

    def __enter__(self):
        if self.bed.version != "2.51.1":
            self.ray_token = secrets.token_hex(32)
            with open(os.open(self.token_file, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
                f.write(self.ray_token + "\n")
        try:
            super().__enter__()
            self.wait_node("head", "online")  # Ray answers before its head is whole
            return self
        except BaseException:
            self.__exit__(*sys.exc_info())  # a start that fails leaves no argusd behind
            raise

    def __exit__(self, *broken):
        super().__exit__(*broken)
        BEDS.drop()  # argusd leaves what it started; the hosts go with it

    @property
    def token_file(self):
        return self.home / "ray.token"

    def write_config(self):
        auth = f"  auth: token\n  auth_token_file: {self.token_file}\n" if self.ray_token else ""
        self.config.write_text(
            f"shared_root: {self.root}\nstate_dir: {self.state_dir}\nlisten: 127.0.0.1:{self.port}\n"
            f"shepherd: {PROGRAMS['argus-shepherd']}\ntrial: {str(self.trial).lower()}\n"
            f"ray:\n  address: {self.ray_url}\n{auth}"
            f"  head:\n    managed: true\n    host: {self.head_ip}\n    ray_bin: {self.bed.ray}\n"
            f"    ssh: {{host: {self.head_ip}, identity_file: {self.bed.key}}}\n{self.more}\n"
        )

    def shell_env(self):
        hosts = {f"NODE{n}_HOST": ip for n, ip in enumerate(self.workers.values(), 1)}
        ours = {"HEAD_HOST": self.head_ip, "SSH_KEY": str(self.bed.key), "RAY_BIN": str(self.bed.ray)}
        return super().shell_env() | hosts | ours

    def add_node(self, name, host, **keys):
        spec = {"name": name, "host": self.bed.ips[host], "ray_bin": str(self.bed.ray)}
        reply = self.call("POST", "/v1/nodes", {**spec, "identity_file": str(self.bed.key), **keys})
        assert reply.status == 201, reply
        return reply.json()

    def node(self, name):
        return self.get(f"/v1/nodes/{name}")

    def wait_node(self, name, *states):
        """The node in one of these states; what stands in its way is told when it does not get there."""
        seen = {}

        def is_there():
            seen["last"] = self.node(name)
            return seen["last"]["state"] in states and seen["last"]

        try:
            return wait_for(is_there, f"{name} is {' or '.join(states)}", 200)
        except AssertionError as e:
            raise AssertionError(f"{e}; last: {seen['last']}; {self.said()[-3000:]}") from None

    def node_events(self, name):
        return [e for e in self.events() if e["object"] == f"node/{name}"]

    def ray_status(self):
        token = [f"RAY_AUTH_TOKEN_PATH={self.token_file}", "RAY_AUTH_MODE=token"] if self.ray_token else []
        return self.bed.on("ctl", "env", *token, str(self.bed.ray), "status", "--address", f"{self.head_ip}:6379")

    def ray_jobs(self):
        return {j["submission_id"] for j in self.ray("/api/jobs/") if j["submission_id"]}
