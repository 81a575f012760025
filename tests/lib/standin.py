# SPDX-License-Identifier: Apache-2.0
"""A stand-in for verl: it saves checkpoints and ends when the test says so, by files in the job's directory."""

import json
import pathlib
import select
import shutil

import broken
from checkpoints import TRACKER, put_checkpoint
from dumpers import TRAINERS

from argusd import until

MAIN = """
import pathlib, sys, time
sys.path.insert(0, {lib!r})
import verl, standin
standin.train(sys.argv[1:])
"""
COMMON = "${SHARED_ROOT}/common"
SPEC = {
    "workload": "grpo",
    "n_gpus_per_node": 1,
    "model_id": f"{COMMON}/models/tiny",
    "train_file": f"{COMMON}/datasets/train.parquet",
    "val_file": f"{COMMON}/datasets/val.parquet",
    "code_path": f"{COMMON}/code/standin",
}


def make_world(root):
    broken.make_world(root)
    code = root / "common/code/standin"
    broken.put(code / "verl/version/version", b"0.5.0\n")
    for package in ("verl", "verl/trainer"):
        broken.put(code / package / "__init__.py", "")
    broken.put(code / "verl/trainer/ppo/__init__.py", "")
    broken.put(code / "verl/trainer/ppo/ray_trainer.py", TRAINERS["0.5.0"][2])
    broken.put(code / "verl/trainer/main_ppo.py", MAIN.format(lib=str(pathlib.Path(__file__).parent)))


def dump(keys, kind, step, text):
    """As verl's own trainer does, with what the hook makes of it."""
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer

    told = json.loads(text)
    where = keys.get(f"++trainer.{kind}_data_dir") or keys[f"trainer.{kind}_data_dir"]
    RayPPOTrainer().dump(step, told["rows"], where, **told["extras"])


def obey(kept, words, keys):
    if words[0] == "dump":
        dump(keys, words[1], int(words[2]), (kept.parent / words[3]).read_text())
    if words[0] == "save":
        put_checkpoint(kept, int(words[1]), size=int(words[2]) if len(words) > 2 else 1000)
    if words[0] == "torn":  # the tracker names it, and a shard is cut off: before it is named, nobody sees it whole
        shard = put_checkpoint(kept, int(words[1]), named=False) / "actor/optim_world_size_1_rank_0.pt"
        shard.write_bytes(shard.read_bytes()[:-10])
        (kept / TRACKER).write_text(words[1])
    if words[0] == "unnamed":
        put_checkpoint(kept, int(words[1]), named=False)
    if words[0] == "say":
        print(" ".join(words[1:]), flush=True)
    if words[0] == "forget":  # verl's own limit: it asks nobody
        shutil.rmtree(kept / f"global_step_{words[1]}/actor", ignore_errors=True)
    if words[0] == "exit":
        raise SystemExit(int(words[1]))


def validate(job, keys):
    """As verl with trainer.val_only: the values of the checkpoint that it goes on from, once the test lets it."""
    start = pathlib.Path(keys["trainer.resume_from_path"])
    assert (start / "actor").is_dir() and keys["trainer.save_freq"] == "-1", keys
    while not (job / "validate").exists():
        select.select([], [], [], 0.02)
    print((job / "validate").read_text(), flush=True)
    raise SystemExit(0)


def train(argv):
    """In the job."""
    keys = dict(a.split("=", 1) for a in argv)
    kept = pathlib.Path(keys["trainer.default_local_dir"])
    job = kept.parent
    with (job / "begun").open("a") as f:
        f.write(f"{keys['trainer.resume_mode']} {keys.get('trainer.resume_from_path', '')}\n")
    if keys.get("trainer.val_only") == "True":
        validate(job, keys)
    while True:
        for order in sorted(job.glob("order-*")):
            words = order.read_text().split()
            order.rename(job / f"done-{order.name}")
            obey(kept, words, keys)
        select.select([], [], [], 0.02)


class Training:
    """One that runs, seen from the test."""

    def __init__(self, argusd, **keys):
        self.argusd = argusd
        reply = argusd.post({**SPEC, **keys}, "?no_trial=1", token="user")
        assert reply.status == 201, reply
        self.watch(reply.json()["id"])

    @classmethod
    def of(cls, argusd, job):
        """One that somebody else has submitted."""
        self = cls.__new__(cls)
        self.argusd = argusd
        self.watch(job)
        return self

    def watch(self, job):
        self.id = job
        self.dir = self.argusd.job_dir(job)
        self.kept = self.dir / "checkpoints"
        self.orders = 0
        self.begun(1)

    def begun(self, n):
        """How its attempts were told to begin, once there are so many."""
        path = self.dir / "begun"
        until(lambda: path.is_file() and len(path.read_text().splitlines()) >= n, f"attempt {n} has begun")
        return path.read_text().splitlines()

    def order(self, *words):
        self.orders += 1
        name = f"order-{self.orders:06}"
        (self.dir / f".{name}").write_text(" ".join(map(str, words)))
        (self.dir / f".{name}").rename(self.dir / name)
        until(lambda: (self.dir / f"done-{name}").is_file(), f"{words} was heard")

    def save(self, *steps):
        for step in steps:
            self.order("save", step)
            until(lambda step=step: self.tracker() == step, f"step {step} is saved")

    def dump(self, step, rows, kind="rollout", **extras):
        """Samples of a step: (prompt, answer, score), and parts of the reward."""
        name = f"told-{self.orders}"
        (self.dir / name).write_text(json.dumps({"rows": rows, "extras": extras}))
        self.order("dump", kind, step, name)

    def tracker(self):
        path = self.kept / TRACKER
        text = path.read_text() if path.is_file() else ""
        return int(text) if text else 0

    def steps(self):
        return sorted(int(p.name.split("_")[2]) for p in self.kept.glob("global_step_*"))

    def listed(self):
        return self.argusd.get(f"/v1/jobs/{self.id}/checkpoints")["checkpoints"]

    def states(self):
        return {c["step"]: c["state"] for c in self.listed()}

    def told(self, kind):
        return [e["text"] for e in self.argusd.events(self.id) if e["kind"] == kind]
