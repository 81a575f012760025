# SPDX-License-Identifier: Apache-2.0
"""scene - one frozen scene of bench/blackbox, as an operator finds it, and how an answer about it is scored.

A scene is a directory with the shape of an attempt's: job.json, events.jsonl, metrics.jsonl, logs/driver.log,
logs/workers/<node>/…, scene/<node>/{scene.json,kernel.txt} as a scout leaves them, nodes/<node>/dmesg.txt, which goes
back to before the job. What was wrong stands elsewhere (bench/scenemaker.py), and nothing here reads it.

An answer is {"causes": [class, …], "path": [{"file", "line", "text"}, …]}: what is to blame, by the classes of
docs/findings.md (none for a healthy run), and the lines that show it, from the cause to the end."""

import json
import os
import re

FILE_MAX = 1 << 20
QUOTE_MIN = 20  # characters of a quote that is only a part of its line: fewer stand anywhere
NOT_CAUSES = {"none", "unknown"}
ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def plain(line):
    return " ".join(ANSI.sub("", line).split())


class Scene:
    """All files are read at once: an answer names files, and none is opened for it."""

    def __init__(self, path):
        self.path, self.name, self.files = path, os.path.basename(path), {}
        for folder, _, names in os.walk(path):
            for name in names:
                full = os.path.join(folder, name)
                with open(full, encoding="utf-8", errors="replace", newline="\n") as f:
                    self.files[os.path.relpath(full, path)] = f.read(FILE_MAX)
        self.job = json.loads(self.files["job.json"])

    def lines(self, file):
        return self.files[file].split("\n")

    def logs(self):
        """The driver's log first."""
        workers = sorted(f for f in self.files if f.startswith("logs/workers/"))
        return ["logs/driver.log", *workers]

    def has(self, hop):
        """The quote is a line of this scene, or a good part of one. Without a file it may be of any; a number of a
        line must be right."""
        text, file, number = plain(str(hop.get("text") or "")), hop.get("file"), hop.get("line")
        if not text or not (file is None or (isinstance(file, str) and file in self.files)):
            return False
        if number is not None and (file is None or not isinstance(number, int)):
            return False
        for name in [file] if file else self.files:
            lines = self.lines(name)
            if number is not None:
                lines = lines[number - 1 : number] if number > 0 else []
            if any(quotes(plain(line), text) for line in lines):
                return True
        return False


def quotes(line, text):
    return text == line or (len(text) >= QUOTE_MIN and text in line)


def score(scene, truth, answer):
    """0 unless all true causes are named and each hop quotes a line that is there; then the share of the named causes
    that are true. A failure needs a hop; a healthy run is 1 where nothing is named."""
    true, named = set(truth["causes"]), set(answer["causes"]) - NOT_CAUSES
    path = answer.get("path") or []
    if not true <= named or (true and not path) or not all(scene.has(hop) for hop in path):
        return 0.0
    return len(true) / len(named) if named else 1.0
