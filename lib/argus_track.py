# SPDX-License-Identifier: Apache-2.0
"""Sends one attempt to the W&B server of WANDB_BASE_URL: a job of its user, with the Python of the attempt.

    argus_track.py ORDER         ORDER is JSON, made by argusd (trackers_sync.c)

What the attempt wrote while it ran (wandb/…/run-ID.wandb) is sent by `wandb sync` where it has every step of the
job's own metrics.jsonl and its end. Else a run of that id is written anew from metrics.jsonl, with the end that argusd
saw, and that is sent: a killed attempt loses up to 32 KiB of its steps in W&B's file. Both may be repeated: the id is
always the same. They are once the run of a pipeline that the job was a step of is over: a file that is whole is then
sent as a copy whose configuration says how that run ended.
"""

import glob
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import zlib

BLOCK, HEAD = 32768, 7  # of the file: a LevelDB log behind 7 bytes


def raw_records(path):
    """The records of a .wandb file, up to where it was cut."""
    with open(path, "rb") as f:
        data = f.read()
    at, part = HEAD, b""
    if data[:4] != b":W&B":
        return
    while at + HEAD <= len(data):
        if BLOCK - at % BLOCK < HEAD:
            at += BLOCK - at % BLOCK
            continue
        _, size, kind = struct.unpack("<IHB", data[at : at + HEAD])
        body, at = data[at + HEAD : at + HEAD + size], at + HEAD + size
        if len(body) < size or kind not in (1, 2, 3, 4):
            return
        part = body if kind in (1, 2) else part + body
        if kind in (1, 4):
            yield part


def framed(records):
    """The bytes of a .wandb file with these records, without its first seven."""
    at = HEAD
    for body in records:
        is_first = True
        while is_first or body:
            room = BLOCK - at % BLOCK
            if room < HEAD:
                yield bytes(room)
                at += room
                continue
            part, body = body[: room - HEAD], body[room - HEAD :]
            kind = (2 if body else 1) if is_first else (3 if body else 4)
            yield struct.pack("<IHB", zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            at += HEAD + len(part)
            is_first = False


def look(path):
    """(steps with their keys, whether its end is there) of a .wandb file."""
    from wandb.proto import wandb_internal_pb2 as pb

    steps, ended = {}, False
    for raw in raw_records(path):
        record = pb.Record()
        record.ParseFromString(raw)
        if record.HasField("history"):
            keys = {item.key or ".".join(item.nested_key) for item in record.history.item}
            steps.setdefault(record.history.step.num, set()).update(keys)
        ended |= record.HasField("exit")
    return steps, ended


def metrics(order):
    """{step: {key: value}} of the attempt, from the job's own file."""
    found = {}
    try:
        with open(f"{order['dir']}/metrics/metrics.jsonl", encoding="utf-8") as f:
            for line in f:
                record = json.loads(line)
                if record.get("attempt") == order["attempt"]:
                    values = {k: math.nan if v is None else v for k, v in record["data"].items()}
                    found.setdefault(record["step"], {}).update(values)
    except FileNotFoundError:
        pass
    return found


def is_whole(path, wanted, order):
    try:
        steps, ended = look(path)
    except Exception as e:  # no file of this release: it is written anew
        print(f"{path}: {type(e).__name__}: {e}")
        return False
    missing = [step for step, values in wanted.items() if not set(values) <= steps.get(step, set())]
    print(f"{path}: {len(steps)} steps, {len(missing)} of metrics.jsonl missing, end {'there' if ended else 'missing'}")
    return ended and not missing and order["end"] == "finished"


def told(order):
    """What the configuration of the run says of the job."""
    return {"argus_job": order["job"], **{key: value for key, value in order["told"].items() if value is not None}}


def copy_told(order, path, place):
    """A copy of the run of this .wandb file, with its own configuration and what is told. Its directory. The files
    beside it are links: they may be large."""
    from wandb.proto import wandb_internal_pb2 as pb

    source, name = os.path.split(path)
    made = f"{place}/{os.path.basename(source)}"
    os.mkdir(made)
    for other in os.listdir(source):
        if not other.startswith(name):  # the file itself, and W&B's marks that it was sent
            os.symlink(f"{source}/{other}", f"{made}/{other}")

    def records():
        for raw in raw_records(path):
            record = pb.Record()
            record.ParseFromString(raw)
            if record.HasField("run"):
                for key, value in told(order).items():
                    record.run.config.update.add(key=key, value_json=json.dumps(value))
                raw = record.SerializeToString()
            yield raw

    with open(path, "rb") as was, open(f"{made}/{name}", "xb") as f:
        f.write(was.read(HEAD))
        f.writelines(framed(records()))
    return made


def write_anew(order, wanted, place):
    """A run of this id from metrics.jsonl alone. Its directory."""
    os.environ.update(WANDB_MODE="offline", WANDB_CONSOLE="off", WANDB_SILENT="true")
    import wandb

    words = {"project": order["project"], "name": order["name"], "group": order["job"], "tags": ["argus"]}
    run = wandb.init(id=order["run"], dir=place, config=told(order), **words)
    for step, values in sorted(wanted.items()):
        run.log(values, step=step)
    code = {"finished": 0, "failed": 1}.get(order["end"], 255)
    run.finish(exit_code=code)
    (made,) = glob.glob(f"{place}/wandb/*run-*")
    return made


def main():
    order = json.loads(sys.argv[1])
    if not os.environ.get("WANDB_API_KEY"):
        sys.exit("there is no secret WANDB_API_KEY: argus secret set WANDB_API_KEY")
    wanted = metrics(order)
    files = sorted(glob.glob(f"{order['dir']}/attempts/{order['attempt']}/wandb/*run-*/run-{order['run']}.wandb"))
    with tempfile.TemporaryDirectory() as place:
        if not files or not is_whole(files[-1], wanted, order):
            what = write_anew(order, wanted, place)
        elif order["told"].get("argus_pipeline"):
            what = copy_told(order, files[-1], place)
        else:
            what = os.path.dirname(files[-1])
        argv = [sys.executable, "-m", "wandb", "sync", "--include-online", "--include-synced", what]
        env = {k: v for k, v in os.environ.items() if k not in ("WANDB_MODE", "WANDB_RUN_ID", "WANDB_SILENT")}
        print("sending", what, flush=True)
        sys.exit(subprocess.run(argv, env=env).returncode)


if __name__ == "__main__":
    main()
