# SPDX-License-Identifier: Apache-2.0
"""The kinds of process that a training run has, each telling what it sees in one line: FAMILY {…}.

A driver, an actor that runs the trainer, a worker on each node; below each worker the children of a DataLoader, a
rollout engine that is spawned and one that is forked, and a program that is started."""

import json
import multiprocessing
import os
import subprocess
import sys

NAMES = "ARGUS_JOB_ID ARGUS_ATTEMPT ARGUS_ATTEMPT_DIR ARGUS_PROOF FAMILY_WORD FAMILY_OTHER PYTHONPATH".split()
PROGRAM = "import family, json; print(json.dumps(family.sight('program')))"


def sight(what):
    """From within; proc is what the kernel says that it was started with."""
    with open("/proc/self/environ", "rb") as f:
        started = dict(v.split("=", 1) for v in f.read().decode(errors="replace").split("\0") if "=" in v)
    return {
        "what": what,
        "pid": os.getpid(),
        "host": os.uname().nodename,
        "cwd": os.getcwd(),
        "python": sys.executable,
        "path": sys.path,
        "proc": {n: started[n] for n in NAMES if n in started},
        "env": {n: os.environ[n] for n in NAMES if n in os.environ},
    }


class Rows:
    """A data set of one row: the child that loads it."""

    def __init__(self, what):
        self.what = what

    def __len__(self):
        return 1

    def __getitem__(self, i):
        return json.dumps(sight(self.what))


def loaded(how):
    from torch.utils.data import DataLoader

    loader = DataLoader(Rows(f"loader-{how}"), num_workers=1, multiprocessing_context=how)
    return json.loads(next(iter(loader))[0])


def engine(pipe, what):
    pipe.send(sight(what))
    pipe.close()


def started(how):
    context = multiprocessing.get_context(how)
    here, there = context.Pipe()
    process = context.Process(target=engine, args=(there, f"engine-{how}"))
    process.start()
    said = here.recv()
    process.join()
    return said


class Worker:
    def look(self):
        told = [sight("worker")]
        for how in ("fork", "spawn"):
            told += [loaded(how), started(how)]
        done = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, check=True, text=True)
        return [*told, json.loads(done.stdout)]


class TaskRunner:
    def run(self):
        from ray.util.placement_group import placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        import ray

        group = placement_group([{"GPU": 1, "CPU": 1}] * 2, strategy="STRICT_SPREAD")
        ray.get(group.ready())
        worker = ray.remote(num_gpus=1)(Worker)
        workers = []
        for i in range(2):
            place = PlacementGroupSchedulingStrategy(placement_group=group, placement_group_bundle_index=i)
            workers.append(worker.options(scheduling_strategy=place).remote())
        return [sight("runner"), *sum(ray.get([w.look.remote() for w in workers]), [])]


def main():
    import ray

    ray.init()
    import family  # by its name: whoever unpickles it must find it on its own path

    runner = ray.remote(num_cpus=1)(family.TaskRunner).remote()
    for told in [sight("driver"), *ray.get(runner.run.remote())]:
        print("FAMILY " + json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
