# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as verl leaves them, made without torch: a zip of stored members, as torch.save writes it."""

import pathlib
import zipfile

TRACKER = "latest_checkpointed_iteration.txt"
PICKLE = b"\x80\x02}."  # an empty dictionary
KINDS = ("model", "optim", "extra_state")


def put_torch(path: pathlib.Path, size: int = 1000) -> None:
    """What torch.save would write there, with one tensor of so many bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("archive/data.pkl", PICKLE)
        z.writestr("archive/data/0", b"\x5a" * size)
        z.writestr("archive/version", "3\n")


def put_shards(where: pathlib.Path, world: int = 1, size: int = 1000) -> None:
    for rank in range(world):
        for kind in KINDS:
            put_torch(where / f"{kind}_world_size_{world}_rank_{rank}.pt", size)


def put_checkpoint(kept: pathlib.Path, step: int, world: int = 1, size: int = 1000, named: bool = True) -> pathlib.Path:
    """global_step_<step> of an actor, in verl's order: the tracker last."""
    where = kept / f"global_step_{step}"
    put_shards(where / "actor", world, size)
    put_torch(where / "data.pt", 10)
    if named:
        (kept / TRACKER).write_text(str(step))
    return where


def is_loadable(where: pathlib.Path) -> bool:
    """Every shard of the world size is there and each of its bytes is what was written."""
    shards = sorted(where.glob("actor/*.pt"))
    world = {int(s.name.split("_world_size_")[1].split("_")[0]) for s in shards}
    if len(world) != 1 or len(shards) != len(KINDS) * world.pop() or not (where / "data.pt").is_file():
        return False
    for path in (*shards, where / "data.pt"):
        try:
            with zipfile.ZipFile(path) as z:
                if z.testzip() or z.read("archive/data.pkl") != PICKLE:
                    return False
        except (zipfile.BadZipFile, KeyError):
            return False
    return True
