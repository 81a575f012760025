# SPDX-License-Identifier: Apache-2.0
"""The proof of imports."""

from argus_process import _argus_argv, _argus_lease_name
from argus_say import _argus_quiet


class _ArgusProof:
    """The modules that this process imported, compared with the job's spec.

    A record is a file of proof/: KIND-NODE-N.json, and mismatch-KIND-NODE-N.json of a process that has not what the
    job asked for. N counts up to a limit, so that a node with hundreds of processes has a few files; each process
    looks for itself all the same. A record is written beside its name and linked to it: whole or not there."""

    LIMITS = {"driver": 1, "worker": 3, "child": 2}  # files of each kind on one node, mismatches apart
    LIST_MAX, TEXT_MAX = 256, 4096  # of sys.path, in one record

    def __init__(self, text):
        import json
        import os

        self.want = json.loads(text)
        self.dir = os.environ["ARGUS_ATTEMPT_DIR"] + "/proof"
        self.pid, self.argv = os.getpid(), _argus_argv()
        self.own, self.told, self.verl = None, set(), None

    # -- this process --

    def _kind(self):
        import os

        words = " ".join(self.argv[:8])
        if os.getpid() != self.pid or "multiprocessing" in words:
            return "child"
        if os.environ.get("ARGUS_DRIVER_NODE"):  # the shepherd's command has it, and nobody else
            return "driver"
        return "worker" if "default_worker.py" in words else "child"

    def _node(self):
        """The name of this machine in the lease where it is known, else its host name."""
        import os

        name = os.environ.get("ARGUS_DRIVER_NODE")
        ids = [a.partition("=")[2] for a in self.argv if a.startswith("--node-id=")]
        if not name and ids:
            name = _argus_lease_name(ids[0])
        return name or os.uname().nodename

    def _main(self):
        """The program or module that runs, without its arguments."""
        import os
        import sys

        for i, a in enumerate(self.argv[1:], 1):
            if a == "-c":
                return "-c"
            if a == "-m":
                return " ".join(self.argv[i : i + 2])
            if not a.startswith("-"):
                return os.path.abspath(a)
        return os.path.abspath(sys.argv[0]) if getattr(sys, "argv", [""])[0] else ""

    # -- installed code --

    def _version_of(self, name):
        """The version of the module if it was imported, else of the installed package."""
        import sys

        module = sys.modules.get(name)
        if module is not None:
            return str(getattr(module, "__version__", "") or "") or None
        from importlib import metadata

        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return None

    def _reward(self):
        """The file that the spec's reward function is in, as this process would find it. Nothing is imported."""
        import os
        from importlib.machinery import PathFinder

        asked = self.want.get("reward")
        if not asked or "/" in asked:
            return os.path.realpath(asked) if asked and os.path.exists(asked) else None
        path, spec = None, None
        parts = asked.split(".")
        for i in range(len(parts)):
            spec = PathFinder.find_spec(".".join(parts[: i + 1]), path)
            if spec is None:
                return None
            path = spec.submodule_search_locations
        return spec.origin

    def _record(self, versions):
        import os
        import sys
        import time

        cut = [str(p)[: self.TEXT_MAX] for p in sys.path[: self.LIST_MAX]]
        try:
            cwd = os.getcwd()
        except OSError:
            cwd = None
        record = {
            "version": 1,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "kind": self._kind(),
            "node": self._node(),
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "main": self._main(),
            "cwd": cwd,
            "python": sys.version.split()[0],
            "executable": sys.executable,
            "verl": self.verl,
            "code": self.want.get("code"),
            "working_dir": self.want.get("working_dir"),
            "snapshot": self.want.get("snapshot"),
            "hash": self.want.get("hash"),
        }
        if versions:
            reward = self.want.get("reward")
            record.update(
                torch=self._version_of("torch"),
                ray=self._version_of("ray"),
                reward={"asked": reward, "file": self._reward()} if reward else None,
            )
        return {**record, "sys_path": cut}

    # -- files --

    def _names(self, prefix):
        kind = self._kind()
        base = f"{prefix}{kind}-{self._node()}".replace("/", "_")[:180]
        return [f"{self.dir}/{base}-{n + 1}.json" for n in range(self.LIMITS[kind])]

    def _place(self, new, names):
        """One of the names for the new file, None when all are taken."""
        import os

        for name in names:
            try:
                os.link(new, name)
                return name
            except FileExistsError:
                continue
            except OSError:  # a file system without hard links
                if not os.path.exists(name):
                    os.rename(new, name)
                    return name
        return None

    def _write(self, versions, mismatch=None):
        import json
        import os

        prefix = "mismatch-" if mismatch else ""
        names = self._names(prefix)
        mine = None if prefix or not self.own or self.own[0] != os.getpid() else self.own[1]
        if not mine and all(map(os.path.exists, names)):
            return  # the rest is not cheap
        record = self._record(versions)
        if mismatch:
            record["mismatch"] = mismatch
        new = f"{self.dir}/.new-{record['host']}-{os.getpid()}"
        try:
            with open(new, "wb") as f:
                f.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace"))
            if mine:
                os.rename(new, mine)
            else:
                mine = self._place(new, names)
        finally:
            if os.path.lexists(new):
                os.unlink(new)
        if mine and not prefix:
            self.own = (os.getpid(), mine)

    # -- moments --

    def _mismatch(self, what, expected, found):
        import os

        if (what, os.getpid()) in self.told:
            return
        self.told.add((what, os.getpid()))
        self._write(False, {"what": what, "expected": expected, "found": found})

    def _is_there(self, path):
        """A directory, also where this machine has not heard yet that it was made."""
        import os
        import time

        for _ in range(10):
            if os.path.isdir(path):
                return True
            try:
                os.listdir(os.path.dirname(path.rstrip("/")))  # an NFS client asks its server then
            except OSError:
                pass
            time.sleep(0.1)
        return False

    def begin(self):
        import os

        if not os.path.isdir(self.dir):
            return
        for what in ("code", "working_dir"):
            path = self.want.get(what)
            if path and not self._is_there(path):
                self._mismatch(what, path, None)
        if not self.want.get("expect") and self._kind() == "driver":
            self._write(False)

    def found(self, spec):
        """verl is about to be imported, from this place."""
        import os

        places = list(spec.submodule_search_locations or ()) if spec else []
        file = spec.origin if spec and spec.has_location else places[0] if places else None
        self.verl = {"version": None, "file": file}
        code = self.want.get("code")
        if not code or not self.want.get("expect"):
            return
        below = code.rstrip("/") + "/"
        if not file or not (file.startswith(below) and "/../" not in file or self._is_below(file, code)):
            self._mismatch("verl", below + "verl", os.path.abspath(file) if file else None)

    def _is_below(self, file, code):
        import os

        return os.path.realpath(file).startswith(os.path.realpath(code).rstrip("/") + "/")

    def imported(self, module):
        if module.__name__ == "verl":
            version = getattr(module, "__version__", None)
            self.verl = {"version": str(version) if version else None, "file": getattr(module, "__file__", None)}
        self._write(True)

    def changes(self):
        """For _ArgusFinder. A job that is to have a verl is proven by its import, any other by that of Ray."""
        names = ["verl"] if self.want.get("expect") else ["verl", "ray"]
        return {name: _argus_quiet(self.imported) for name in names}

    def watches(self):
        return {"verl": _argus_quiet(self.found)}


def _argus_proof():
    """None where nothing is to be proven."""
    import os
    import sys

    try:
        proof = _ArgusProof(os.environ["ARGUS_PROOF"])
    except Exception:
        return None
    _argus_quiet(proof.begin)()
    verl = sys.modules.get("verl")
    if verl is not None:  # by a .pth file
        _argus_quiet(proof.found)(verl.__spec__)
        _argus_quiet(proof.imported)(verl)
    return proof
