# SPDX-License-Identifier: Apache-2.0
"""Our ssh layer from Python: ssh_tool (src/ssh/test/tool.c), one call each, on the hosts of a bare bed.

    tool = SshTool(bed, "h2", tmp_path, shared_root="/x")
    tool("probe")["findings"]; tool("run", "echo hi")["out"]; tool("probe", max_skew=60000)
"""

import json
import pathlib
import subprocess
import tempfile

from programs import find_tool

TOOL = find_tool("src/ssh/ssh_tool")


class SshTool:
    """Keys of the target and of what is wanted stay; those of one call are added to them."""

    def __init__(self, bed, where, folder=None, **keys):
        info = next(h for h in bed.info["hosts"] if h["name"] == where)
        folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="argus-ssh-"))
        control = pathlib.Path(bed.dir) / "c"
        control.mkdir(mode=0o700, exist_ok=True)
        self.known_hosts = folder / f"known_hosts-{where}"
        self.keys = {
            "name": where,
            "node": where,
            "owner": "tests",
            "host": info["ip"],
            "port": info["ssh_port"],
            "identity_file": pathlib.Path(bed.dir) / "id",
            "known_hosts": self.known_hosts,
            "control_dir": control,
            "config_file": "/dev/null",
            "node_ip": info["ip"],
        } | keys

    def argv(self, verb, *args, **keys):
        words = []
        for key, value in (self.keys | keys).items():
            for one in value if isinstance(value, list) else [value]:
                if one is not None:
                    words.append(f"{key}={one}")
        return [str(TOOL), *words, verb, *map(str, args)]

    def begin(self, verb, *args, **keys):
        """The same without waiting; finish() has the answer."""
        return subprocess.Popen(
            self.argv(verb, *args, **keys), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )

    @staticmethod
    def finish(process, seconds=300):
        out, errs = process.communicate(timeout=seconds)
        assert process.returncode == 0, f"exit {process.returncode}: {errs.decode()}"
        assert not errs, errs.decode()
        return json.loads(out)

    def __call__(self, verb, *args, **keys):
        return self.finish(self.begin(verb, *args, **keys))

    def text(self, verb, *args, **keys):
        """Of a call that prints no JSON."""
        done = subprocess.run(self.argv(verb, *args, **keys), capture_output=True, text=True, timeout=240)
        return done.stdout.strip()

    def codes(self, **keys):
        return [f["code"] for f in self("probe", **keys)["findings"]]

    def finding(self, **keys):
        """The only one."""
        got = self("probe", **keys)
        assert len(got["findings"]) == 1, got["findings"]
        return got["findings"][0]
