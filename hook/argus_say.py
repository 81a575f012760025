# SPDX-License-Identifier: Apache-2.0
"""The hook's messages, and how it stays out of a job's way when a part of the hook fails."""


def _argus_say(text, said=set()):  # noqa: B006  (what this process has said already)
    import os
    import sys

    if text in said:
        return
    said.add(text)
    line = "argus: " + text + "\n"
    try:
        # Past the stream's buffer: a thread of ours that held its lock at the end of the process would abort it.
        os.write(sys.stderr.fileno(), line.encode(errors="replace"))
    except OSError:  # also a stream that is no file (io.UnsupportedOperation): it has no such lock
        _argus_say_to(sys.stderr, line)
    except Exception:  # there is no stderr
        pass


def _argus_say_to(stream, line):
    try:
        stream.write(line)
        stream.flush()
    except Exception:  # it is closed
        pass


def _argus_note(what, error):
    """Something of the binding failed: one line for the job, one for argusd's read-back."""
    import os

    text = " ".join(f"{what}: {type(error).__name__}: {error}".split())[:300]
    _argus_say("GPU demand could not be bound to the lease (" + text + ")")
    try:
        with open(os.environ["ARGUS_ATTEMPT_DIR"] + "/debug/binding.txt", "a") as f:
            f.write(text + "\n")
    except Exception:  # no directory, or the shared root is away
        pass


def _argus_quiet(function):
    def quiet(*args):
        try:
            function(*args)
        except Exception:  # no directory, no space, no right: a job never fails because of us
            pass

    return quiet
