# SPDX-License-Identifier: Apache-2.0
"""verl's dumps of what the model wrote: bounded by bytes where the directory is ours, and never the end of a training.

ARGUS_SAMPLES is that directory, <job>/samples; verl is told of two below it, rollout and validation. What stands in
them has the form in which verl writes it, one line of JSON per sample in <step>.jsonl, but for a value that JSON cannot
hold: verl's own writer ends the training there, here it is written as text, or as null. In a directory of the user's
verl writes itself, as often as it likes; only what it raises stays out of the training."""

from argus_say import _argus_say


class _ArgusSamples:
    """The dumps of one kind, below our directory."""

    EACH = 16 << 20  # bytes: up to so many of each step; of k times as many each k-th step, the first and the last
    QUOTA = 4 << 30  # bytes of all steps that are kept: the newest and the best, every tenth before the others
    TENTH = 10
    LINE = 4 << 20  # bytes of one sample; of a longer one the texts are cut, and what else there is goes
    TEXT = 512 << 10  # characters of a text that is cut
    WAITING = 4  # dumps that wait for the disk at once, where verl writes in a thread of its own

    def __init__(self, path):
        import json
        import os

        self.path, self.kind = path, os.path.basename(path)
        self.bytes, self.best = {}, (None, 0)  # of each step that is kept; the best one, and its mean score
        os.makedirs(path, exist_ok=True)
        with os.scandir(path) as entries:
            for entry in entries:
                step, _, end = entry.name.partition(".")
                if end == "jsonl" and step.isdigit():
                    self.bytes[int(step)] = entry.stat().st_size
        self.has_begun = bool(self.bytes)
        try:
            with open(self._file("best.json")) as f:
                self.best = tuple(json.load(f))
        except Exception:  # the first attempt
            pass

    def _file(self, name):
        import os

        return os.path.join(self.path, name)

    def takes(self, step, is_last, size):
        """size: characters, about as many bytes."""
        if size > self.QUOTA // 4:
            _argus_lost(f"step {step} of {self.kind}: {size} characters are too many")
            return False
        is_first, self.has_begun = not self.has_begun, True
        return is_first or is_last or step % max(1, -(-size // self.EACH)) == 0

    def write(self, step, columns):
        """Runs in a thread of verl's where it has one."""
        import os

        try:
            part, size = self._file(".part"), 0
            with open(part, "wb") as f:
                for i in range(len(columns["input"])):
                    line = _argus_line({key: values[i] for key, values in columns.items()}, self.LINE, self.TEXT)
                    f.write(line)
                    size += len(line)
            os.replace(part, self._file(f"{step}.jsonl"))
            self.bytes[step] = size
            self._judge(step, columns["score"])
            self._make_room(step)
        except Exception as e:  # no space, no right: the training goes on
            _argus_lost(f"step {step} of {self.kind}: {type(e).__name__}: {e}")

    def _judge(self, step, scores):
        import json
        import math

        values = [float(s) for s in scores if _argus_is_number(s) and math.isfinite(s)]
        if not values:
            return
        mean = sum(values) / len(values)
        if self.best[0] is None or mean > self.best[1] or step == self.best[0]:
            self.best = (step, mean)
            with open(self._file("best.json"), "w") as f:
                json.dump(self.best, f)

    def _make_room(self, newest):
        import os

        left = sum(self.bytes.values())
        for keeps_tenths in (True, False):
            for step in sorted(self.bytes):
                if left <= self.QUOTA:
                    return
                if step not in (newest, self.best[0]) and not (keeps_tenths and step % self.TENTH == 0):
                    os.unlink(self._file(f"{step}.jsonl"))
                    left -= self.bytes.pop(step)

    def take(self, trainer, call):
        inputs, outputs = call["inputs"], call["outputs"]
        n, step = len(inputs), int(trainer.global_steps)
        size = sum(map(len, inputs)) + sum(map(len, outputs))
        is_last = step >= int(getattr(trainer, "total_training_steps", 0) or 0) > 0
        if not self.takes(step, is_last, size):
            return
        columns = {"input": inputs, "output": outputs}
        if "gts" in call:  # verl 0.6.0 and newer
            columns["gts"] = call["gts"]
        columns.update(score=call["scores"], step=[step] * n)
        extras = call["reward_extra_infos_dict"].items()
        columns.update((str(key), values) for key, values in extras if len(values) == n)
        threads = getattr(trainer, "_dump_executor", None)
        if threads is None:
            self.write(step, columns)
            return
        waiting = [f for f in trainer._dump_futures if not f.done()]
        if len(waiting) >= self.WAITING and not is_last:
            _argus_lost(f"step {step} of {self.kind}: the disk is too slow")
            return
        waiting.append(threads.submit(self.write, step, columns))
        trainer._dump_futures = waiting


def _argus_lost(text, counts={}):  # noqa: B006  (of this process)
    """Counts what could not be kept as it was, and tells it: the first of each kind to the job, all to argusd."""
    import os

    text = " ".join(text.split())[:300]
    kind = text.partition(":")[0] if text.startswith("a value") else "samples"
    counts[kind] = counts.get(kind, 0) + 1
    if counts[kind] == 1:
        _argus_say(f"samples could not be kept as they are, the training goes on ({text})")
    if counts[kind] > 1000 and counts[kind] % 1000:
        return
    try:
        with open(os.environ["ARGUS_ATTEMPT_DIR"] + "/debug/samples.txt", "a") as f:
            f.write(f"{counts[kind]} {text}\n")
    except Exception:  # no directory, or the shared root is away
        pass


def _argus_is_number(value):
    import numbers

    return isinstance(value, numbers.Real)


def _argus_line(entry, most, text_most):
    """A line as verl writes it."""
    import json

    def dump(values):
        text = json.dumps(values, ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8", "replace") + b"\n"

    try:
        line = dump(entry)
    except Exception as e:
        why = f"{type(e).__name__}: {e}"
        held = {}
        for key, value in entry.items():
            held[key], changed = _argus_hold(value, 0)
            if changed:
                _argus_lost(f"a value that JSON cannot hold: {key} of step {entry['step']}, {why}")
        line = dump(held)
    if len(line) <= most:
        return line
    _argus_lost(f"a value that is too long: step {entry['step']}, {len(line)} bytes")
    texts = {key: str(entry[key])[:text_most] for key in ("input", "output")}
    return dump({**texts, "score": _argus_hold(entry["score"], 0)[0], "step": entry["step"]})


def _argus_hold(value, depth):
    """The value as JSON can hold it, and whether that is another one."""
    import math

    if value is None or isinstance(value, (bool, str)):
        return value, False
    if isinstance(value, int) and value.bit_length() <= 64:
        return int(value), False
    if isinstance(value, float):
        return (float(value), False) if math.isfinite(value) else (None, True)
    try:
        return _argus_hold_many(value, depth + 1) if depth < 20 else (str(value), True)
    except Exception:
        return f"<{type(value).__name__}>", True


def _argus_hold_many(value, depth):
    if isinstance(value, dict):
        held = {str(k): _argus_hold(v, depth) for k, v in value.items()}
        return {k: v for k, (v, _) in held.items()}, any(changed for _, changed in held.values())
    if isinstance(value, (list, tuple)):
        held = [_argus_hold(v, depth) for v in value]
        return [v for v, _ in held], any(changed for _, changed in held)
    if hasattr(value, "tolist"):  # NumPy's and torch's
        plain = value.tolist()
        if type(plain) is not type(value):
            return _argus_hold(plain, depth)
    return str(value), True


def _argus_samples_of(path, ours={}):  # noqa: B006  (those of this process, by path)
    """None where the directory is not ours."""
    import os

    path = os.path.normpath(str(path))
    if os.path.dirname(path) != os.path.normpath(os.environ["ARGUS_SAMPLES"]):
        return None
    if path not in ours:
        ours[path] = _ArgusSamples(path)
    return ours[path]


def _argus_wrap_dump(cls):
    from functools import wraps
    from inspect import signature

    dump = getattr(cls, "_dump_generations", None)
    if dump is None:  # verl before 0.4.1
        return
    shape = signature(dump)

    @wraps(dump)
    def _dump_generations(self, *args, **kwargs):
        try:
            call = shape.bind(self, *args, **kwargs).arguments
            samples = _argus_samples_of(call["dump_path"])
            if samples is None:
                dump(self, *args, **kwargs)
            else:
                samples.take(self, call)
        except Exception as e:
            _argus_lost(f"{type(e).__name__}: {e}")

    cls._dump_generations = _dump_generations
    write = getattr(cls, "_write_generations", None)
    if write is None:  # verl before it wrote in a thread
        return

    @wraps(write)
    def _write_generations(*args, **kwargs):
        try:
            write(*args, **kwargs)
        except Exception as e:  # verl raises it again, in the training
            _argus_lost(f"{type(e).__name__}: {e}")

    cls._write_generations = staticmethod(_write_generations)


def _argus_wrap_trainer_dump(name):
    def change(module):
        try:
            _argus_wrap_dump(getattr(module, name))
        except Exception as e:  # verl has changed: its own dump then
            _argus_say(f"verl's dump of samples is left as it is ({type(e).__name__}: {e})")

    return change


def _argus_samples_changes():
    import os

    if not os.environ.get("ARGUS_SAMPLES"):
        return {}
    return {
        "verl.trainer.ppo.ray_trainer": _argus_wrap_trainer_dump("RayPPOTrainer"),
        "verl.trainer.ppo.v1.trainer_base": _argus_wrap_trainer_dump("PPOTrainer"),
    }
