# SPDX-License-Identifier: Apache-2.0
"""verl's trackers over a network, kept out of the training's way: each has a thread of its own, and what it raises or
waits for stays there."""

from argus_say import _argus_say

_ARGUS_FAR = ("wandb", "tracking", "mlflow", "swanlab", "vemlp_wandb", "clearml", "trackio", "rl_insight")
_ARGUS_TRACKERS = {}  # those of this process that were begun, by name


class _ArgusTracker:
    """In place of verl's logger of this name. The first failure ends it: what it has is then a beginning without a gap,
    and argusd sends the rest after the end of the attempt."""

    WAITS = 4096  # calls that wait; with more the tracker hangs
    PATIENCE = 20  # seconds that the end of a training waits for all trackers together

    def __init__(self, name, make):
        from collections import deque
        from threading import Condition, Thread

        self.name, self.make, self.logger, self.why = name, make, None, ""
        self.calls, self.news, self.is_over, self.is_idle = deque(), Condition(), False, False
        self.thread = Thread(target=self._work, name="argus-" + name, daemon=True)
        self.thread.start()

    def _take(self):
        with self.news:
            while not self.calls:
                self.is_idle = True
                self.news.notify_all()
                if self.is_over:
                    return None
                self.news.wait()
            self.is_idle = False
            return self.calls.popleft()

    def _work(self):
        try:
            self.logger = self.make()
            while call := self._take():
                call(self.logger)
        except BaseException as e:  # SystemExit, too: nothing of a tracker ends a training
            self._drop(f"{type(e).__name__}: {e}")

    def _drop(self, why):
        import os

        self.why = " ".join(why.split())[:300] or "no reason"
        with self.news:
            self.calls.clear()
            self.is_idle = True
            self.news.notify_all()
        _argus_say(f"tracker {self.name!r} has failed, the training goes on without it ({self.why})")
        try:
            with open(os.environ["ARGUS_ATTEMPT_DIR"] + "/debug/trackers.txt", "a") as f:
                f.write(f"{self.name}: {self.why}\n")
        except Exception:  # no directory, or the shared root is away
            pass

    def call(self, function):
        with self.news:
            if self.why or self.is_over:
                return
            is_full = len(self.calls) >= self.WAITS
            if not is_full:
                self.calls.append(function)
                self.news.notify_all()
        if is_full:
            self._drop("it does not answer")

    def log(self, data, step):
        data = dict(data)
        self.call(lambda logger: logger.log(data=data, step=step))

    def finish(self, exit_code=0):
        if not self.is_over:
            self.begin_finish(exit_code)
            _argus_wait_trackers([self])

    def begin_finish(self, exit_code):
        if self.name in ("wandb", "vemlp_wandb"):
            self.call(lambda logger: _argus_finish_wandb(logger, exit_code))
        else:
            self.call(lambda logger: getattr(logger, "finish", bool)())
        with self.news:
            self.is_over = True
            self.news.notify_all()

    def __getattr__(self, name):  # what verl asks of one of its loggers besides
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.call(lambda logger: getattr(logger, name)(*args, **kwargs))


def _argus_finish_wandb(logger, exit_code):
    """finish() alone does not wait for the process that writes W&B's file, and Ray kills that with the trainer's."""
    logger.finish(exit_code=exit_code)
    getattr(logger, "teardown", bool)()


def _argus_wait_trackers(trackers):
    import time

    end = time.monotonic() + _ArgusTracker.PATIENCE
    for t in trackers:
        with t.news:
            done = t.news.wait_for(lambda t=t: t.is_idle and not t.calls, max(0, end - time.monotonic()))
        if not done and not t.why:
            t._drop("it was not done at the end")


def _argus_end_trackers(has_failed=False):
    """At the end of the training or of the process: those that nobody ended."""
    import sys

    left = [t for t in _ARGUS_TRACKERS.values() if not t.is_over]
    for t in left:
        t.begin_finish(1 if has_failed or hasattr(sys, "last_type") else 0)
    _argus_wait_trackers(left)


def _argus_wrap_trainer(module):
    """Ray ends the process of a trainer by force once the job is over: its trackers are ended with the training."""
    from functools import wraps

    cls = getattr(module, "RayPPOTrainer", None)
    if cls is None:
        return
    fit = cls.fit

    @wraps(fit)
    def until_the_end(self, *args, **kwargs):
        has_failed = True
        try:
            done = fit(self, *args, **kwargs)
            has_failed = False
            return done
        finally:
            _argus_end_trackers(has_failed)

    cls.fit = until_the_end


def _argus_make_logger(cls, init, name, words):
    """verl's own logger of this name alone. The Tracking around it goes without its logger: it would end it."""

    def make():
        alone = object.__new__(cls)
        alone.logger = {}
        try:
            init(alone, default_backend=[name], **words)
            made = alone.logger
        finally:
            alone.logger = {}
        key = "wandb" if name == "tracking" else name
        if key not in made:  # verl 0.9.1 goes on without an MLflow that fails
            raise RuntimeError("verl could not begin it")
        return made[key]

    return make


def _argus_wrap_tracking(module):
    import atexit
    import threading
    from functools import wraps
    from inspect import signature

    cls = module.Tracking
    init, shape = cls.__init__, signature(cls.__init__)

    @wraps(init)
    def __init__(self, *args, **kwargs):
        words = dict(shape.bind(self, *args, **kwargs).arguments)
        words.pop("self", None)
        names = words.pop("default_backend", "console")
        names = [names] if isinstance(names, str) else list(names)
        far = [name for name in names if name in _ARGUS_FAR]
        init(self, default_backend=[name for name in names if name not in far], **words)
        for name in far:
            made = _ArgusTracker(name, _argus_make_logger(cls, init, name, words))
            self.logger["wandb" if name == "tracking" else name] = _ARGUS_TRACKERS[name] = made

    cls.__init__ = __init__
    # Before any handler of atexit: a library that is still being begun has one, too. Python 3.8 has no such thing.
    getattr(threading, "_register_atexit", atexit.register)(_argus_end_trackers)
    insight = getattr(module, "RLInsightLogger", None)
    if all(hasattr(insight, name) for name in ("enabled", "_init_done", "_ensure_rl_insight_init")):
        _argus_guard_insight(insight)  # another verl's, which has none of these, is left as it is
    generations = getattr(module, "ValidationGenerationsLogger", None)
    if generations is not None:
        _argus_wrap_generations(generations)


def _argus_guard_insight(cls):
    """verl times its own steps with RL-Insight, too, and whoever does so first would begin it. That is left to a thread
    of ours: what is timed before it has begun is not told."""
    from contextlib import nullcontext
    from functools import wraps
    from threading import Lock, Thread

    lock, begun = Lock(), []

    def begin():
        try:
            cls._ensure_rl_insight_init()
        except BaseException as e:  # as of every tracker
            _argus_say(f"RL-Insight could not be begun here ({type(e).__name__}: {e})")

    def is_ready():
        tracker = _ARGUS_TRACKERS.get("rl_insight")
        if tracker is not None:
            return cls._init_done and not tracker.why
        with lock:
            if not begun and not cls._init_done:
                begun.append(Thread(target=begin, name="argus-rl_insight", daemon=True))
                begun[0].start()
        return cls._init_done

    def guard(name, instead):
        timed = getattr(cls, name, None)
        if timed is None:
            return

        @wraps(timed)
        def guarded(*args, **kwargs):
            return timed(*args, **kwargs) if not cls.enabled() or is_ready() else instead()

        setattr(cls, name, staticmethod(guarded))

    guard("trace_state", nullcontext)
    guard("trace_span", bool)


def _argus_wrap_generations(cls):
    from functools import wraps

    log = cls.log

    @wraps(log)
    def far_log(self, loggers, *args, **kwargs):
        names = [loggers] if isinstance(loggers, str) else list(loggers)
        for name in [name for name in names if name in _ARGUS_TRACKERS]:
            names.remove(name)
            _ARGUS_TRACKERS[name].call(lambda _, name=name: log(self, [name], *args, **kwargs))
        return log(self, names, *args, **kwargs)

    cls.log = far_log


def _argus_tracking_changes():
    import os

    if not os.environ.get("ARGUS_TRACKERS"):
        return {}
    return {"verl.utils.tracking": _argus_wrap_tracking, "verl.trainer.ppo.ray_trainer": _argus_wrap_trainer}
