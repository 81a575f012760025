# SPDX-License-Identifier: Apache-2.0
"""What is kept of a cell whose page is gone (lib/argus_record.py): outputs as a page would have them, within a bound,
and when they go into the file. test_notebooks_lab.py has it inside a real JupyterLab."""

import asyncio
import copy
import importlib.util
import pathlib

import pytest

AT = pathlib.Path(__file__).resolve().parents[2] / "lib/argus_record.py"


@pytest.fixture(scope="module")
def record():
    spec = importlib.util.spec_from_file_location("argus_record_alone", AT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stream(text, name="stdout"):
    return "stream", {"name": name, "text": text}


def shown(data, display_id=None, kind="display_data"):
    return kind, {"data": {"text/plain": data}, "metadata": {}, "transient": {"display_id": display_id}}


def outputs(record, *messages, **how):
    of = record.Outputs(**how)
    for message in messages:
        of.take(*message)
    return of.outputs()


def texts(made):
    return [o["text"] if o["output_type"] == "stream" else o["data"]["text/plain"] for o in made]


def test_outputs_are_what_a_page_shows(record):
    error = ("error", {"ename": "E", "evalue": "v", "traceback": ["a", "b"]})
    result = ("execute_result", {"data": {"text/plain": "42"}, "metadata": {}, "execution_count": 3})
    made = outputs(record, stream("a"), stream("b\n"), stream("!", "stderr"), stream("c"), result, error)
    assert [o["output_type"] for o in made] == ["stream", "stream", "stream", "execute_result", "error"]
    assert [o.get("text") for o in made[:3]] == ["ab\n", "!", "c"] and made[3]["execution_count"] == 3
    assert made[4]["traceback"] == ["a", "b"]
    assert not record.Outputs().take("comm_open", {}), "a widget's message is none of its outputs"


def test_what_is_overwritten_is_not_kept(record):
    assert texts(outputs(record, stream("1 %\r"), stream("2 %\r"), stream("3 %\ndone\r\nx"))) == ["3 %\ndone\r\nx"]
    assert texts(outputs(record, stream("1 %"), stream("\r2 %"), stream("\r"))) == ["2 %\r"]
    bars = record.Outputs()
    for step in range(20_000):  # as a progress bar of hours
        bars.take(*stream(f"\rstep {step}"))
    assert bars.size() < 1 << 18 and texts(bars.outputs()) == ["step 19999"] and not bars.is_cut
    cleared = ("clear_output", {"wait": False})
    later = ("clear_output", {"wait": True})
    assert texts(outputs(record, stream("a"), cleared, stream("b"))) == ["b"]
    assert texts(outputs(record, stream("a"), later)) == ["a"], "until there is another output"
    assert texts(outputs(record, stream("a"), later, stream("b"))) == ["b"]
    update = shown("new", "x", "update_display_data")
    assert texts(outputs(record, shown("old", "x"), shown("other", "y"), update)) == ["new", "other"]


def test_the_newest_is_kept_within_a_bound(record):
    of = record.Outputs(most=10_000)
    for line in range(5000):
        of.take(*stream(f"line {line}\n"))
        assert of.size() <= 10_000
    head, tail = texts(of.outputs())
    assert head == record.CUT and tail.endswith("line 4998\nline 4999\n") and len(tail) >= 4000
    short = record.Outputs(most=100_000)
    for i in range(2000):  # each is an object of its own, however short
        short.take(*stream("x", ("stdout", "stderr")[i % 2]))
        assert len(short.items) * record.ITEM_COST <= short.size() <= 100_000
    assert short.is_cut and short.size() == sum(i.size + record.ITEM_COST for i in short.items)
    picture = outputs(record, stream("a" * 100), shown("p" * 500), most=200)
    assert texts(picture) == [record.CUT, "p" * 500], "one piece is never cut"
    missed = record.Missed(most=100)
    missed.append(("iopub", [b"x" * 60]))
    assert missed.is_whole and len(missed) == 1
    missed.append(("iopub", [b"x" * 60]))
    missed.append(("iopub", [b"x"]))
    assert not missed.is_whole and len(missed) == 0


def ran(record, cell_id="one", code="1 + 1", session="page"):
    run = record.Run(session, cell_id, code)
    run.outputs.take(*stream("printed\n"))
    run.count, run.has_begun = 7, True
    return run


def cell(**members):
    return {"cell_type": "code", "source": "", "metadata": {}, "outputs": [], "execution_count": None, **members}


def test_outputs_go_into_their_cell(record):
    text = {"cell_type": "markdown", "id": "text", "source": "1 + 1", "metadata": {}}
    content = {"nbformat": 4, "nbformat_minor": 5, "cells": [text, cell(id="other", source="1 + 1"), cell(id="one")]}
    record.place(content, ran(record))
    assert [c.get("outputs") for c in content["cells"]][:2] == [None, []]
    assert texts(content["cells"][2]["outputs"]) == ["printed\n"] and content["cells"][2]["execution_count"] == 7
    record.place(content, ran(record, "new", "2 + 2"))  # a page had not saved it yet
    made = content["cells"][3]
    assert (made["id"], made["source"], texts(made["outputs"])) == ("new", "2 + 2", ["printed\n"])
    twice = ran(record, "gone")
    record.place(content, twice)
    record.place(content, twice)
    assert [c["id"] for c in content["cells"]] == ["text", "other", "one", "new", "gone"]
    del content["cells"][4]
    record.place(content, twice)
    assert len(content["cells"]) == 4, "its owner deleted it meanwhile"
    old = {"nbformat": 4, "nbformat_minor": 4, "cells": [cell(source=["1 +", " 1"]), cell(source="x")]}
    record.place(old, ran(record))
    assert len(old["cells"]) == 2 and texts(old["cells"][0]["outputs"]) == ["printed\n"]
    record.place(old, ran(record, code="3"))
    assert len(old["cells"]) == 3 and "id" not in old["cells"][2]


def test_when_a_run_is_written(record):
    """Its page must be away for a moment; then now and then while nobody looks, and once more at its end."""
    run = ran(record)
    assert not run.is_due(1e9, False), "its page is there and saves it"
    run.leave(1000.0)
    assert not run.is_due(1000.0 + record.AWAY_S - 1, False) and run.is_due(1000.0 + record.AWAY_S, False)
    assert not run.is_due(1e9, True), "another page is open: its file does not change all the time"
    run.is_changed, run.written = False, 2000.0
    assert not run.is_due(1e9, False)
    run.is_changed = True
    assert not run.is_due(2000.0 + record.WRITE_S - 1, False) and run.is_due(2000.0 + record.WRITE_S, False)
    run.end()
    over = max(run.ended, run.left)
    assert run.is_due(2000.0, True) and not run.is_done(over + 1)
    assert run.is_done(over + record.GIVE_UP_S + 1), "its file cannot be written"
    run.is_changed = False
    assert run.is_done(1e9), "it is written, and over"
    # Ended before its page went away: what the page saved since is what its owner wanted.
    seen = ran(record)
    seen.end()
    assert not seen.is_done(seen.ended + 1) and seen.is_done(seen.ended + record.KEEP_S + 1)
    seen.leave(seen.ended + 1)
    assert seen.is_saved(seen.ended_at + 1) and not seen.is_saved(seen.ended_at - 1)
    assert not run.is_saved(run.ended_at + 1), "that page was away when it ended"
    queued = record.Run("page", "one", "1 + 1")
    queued.leave(1000.0)
    assert not queued.is_due(1e9, False), "the kernel has not begun: what the file has of the cell stays"


def test_a_write_that_fails_or_is_slow_comes_more_seldom(record):
    run = ran(record)
    run.leave(1000.0)
    run.end()
    run.written, pauses = 2000.0, []
    for _ in range(8):
        run.wrote(0.1, True)
        pauses.append(run.pause)
        assert not run.is_due(2000.0 + run.pause - 1, False) and run.is_due(2000.0 + run.pause, False)
    assert pauses[:2] == [2 * record.WRITE_S, 4 * record.WRITE_S] and pauses[-1] == record.AGAIN_MOST_S
    run.wrote(0.1, False)
    assert run.pause == record.WRITE_S and run.is_due(2000.0, False)
    run.wrote(7.0, False)
    assert run.pause == 7.0 * record.WRITE_SHARE


class Files:
    """The server's manager of files, of which a page saves its own notebook while this one is read."""

    def __init__(self, notebook, page):
        self.notebook, self.page, self.saving = notebook, page, None

    async def get(self, path, content=True, type=None):
        found = copy.deepcopy(self.notebook)
        self.saving = asyncio.ensure_future(self.save({"content": self.page}, path))
        for _ in range(5):  # turns of the loop, in which the page saves if it may
            await asyncio.sleep(0)
        return {"content": found, "last_modified": None}

    async def save(self, model, path=""):
        self.notebook = copy.deepcopy(model["content"])


class Log:
    def __init__(self):
        self.said = []

    def info(self, *words, **_):
        self.said.append(words)

    warning = info


async def awaited(x):
    return await x


def test_what_a_page_saves_meanwhile_is_not_lost(record, monkeypatch):
    """A file is read and written back here: the save of a page goes before or after that, and never between."""
    monkeypatch.setattr(record, "ensure_async", awaited, raising=False)
    monkeypatch.setattr(record, "HTTPError", OSError, raising=False)
    before = {"nbformat": 4, "nbformat_minor": 5, "cells": [cell(id="one")]}
    edited = {**before, "cells": [cell(id="one"), cell(id="edited", source="new")]}
    made, run = object.__new__(record.Recorder), ran(record)
    made.contents, made.log = Files(before, edited), Log()
    made.take_turns()
    assert made.contents.save is not made.save

    async def both():
        await made.write("a.ipynb", [run])
        await made.contents.saving

    asyncio.run(both())
    assert [c["id"] for c in made.contents.notebook["cells"]] == ["one", "edited"], made.log.said
    assert not run.failed and not run.is_changed and run.was_there


class Page:
    def __init__(self, session_key):
        self.kernel_id, self.session_key = "k", session_key


class Stream:
    """What a kernel says to all, at one of its ports."""

    def __init__(self):
        self.heard, self.is_closed = None, False

    def on_recv(self, heard):
        self.heard = heard

    def close(self):
        self.is_closed = True


class Kernel:
    """The only one of its manager, as the server has both."""

    session = type("OfKernel", (), {"config": None, "key": b""})

    def __init__(self, buffers):
        self._kernel_buffers, self.callbacks, self.made, self.iopub_port = buffers, {}, [], 1

    def __contains__(self, kernel_id):
        return True

    def get_kernel(self, kernel_id):
        return self

    def connect_iopub(self):
        self.made.append(Stream())
        return self.made[-1]

    def add_restart_callback(self, kernel_id, call, event):
        self.callbacks[event] = call


class Session:
    """Its messages come whole."""

    def __init__(self, config, key):
        pass

    def feed_identities(self, parts):
        return None, parts

    def deserialize(self, parts):
        return parts


def recorder(record, monkeypatch, buffers):
    monkeypatch.setattr(record, "Session", Session, raising=False)
    made = object.__new__(record.Recorder)
    made.manager, made.kernels, made.streams, made.log = Kernel(buffers), {}, {}, Log()
    return made


def test_a_page_that_was_cut_off_gets_what_it_missed(record, monkeypatch):
    """By the server's own list, which is bounded here; where that was too long, or is gone, by the file."""
    buffers = {}
    made, run = recorder(record, monkeypatch, buffers), ran(record)
    made.know("k")
    made.kernels["k"].add("m", run)
    for is_whole in (True, False):
        run.left, page, other = None, Page("page"), Page("page")
        made.joined(page)
        made.joined(other)  # it has come back before the server has noticed that it was gone
        made.left(page)
        assert run.left is None, "it is there"
        buffers["k"] = {"session_key": "page", "buffer": [], "channels": {}}
        made.left(other)
        assert run.left is not None and isinstance(buffers["k"]["buffer"], record.Missed)
        buffers["k"]["buffer"].is_whole = is_whole
        made.joined(page)
        assert (run.left is None) == is_whole
        made.left(page)
    made.joined(Page("another"))
    assert run.left is not None, "that one did not ask for it"


def test_a_kernel_with_other_ports_is_heard_again(record, monkeypatch):
    """One that dies in its first seconds is restarted at other ports, and nobody says so."""
    made = recorder(record, monkeypatch, {})
    made.joined(Page("page"))
    kernel, runs = made.manager, made.kernels["k"]
    lost, run = record.Run("page", "lost", "1"), record.Run("page", "one", "1")
    runs.add("m1", lost)
    kernel.callbacks["restart"]()
    assert lost.ended is not None, "it died with its kernel"
    for port in (0, 1):  # it has none while it is being restarted
        kernel.iopub_port = port
        asyncio.run(made.look("k", record.Runs()))
    assert len(kernel.made) == 1
    kernel.iopub_port = 2
    asyncio.run(made.look("k", record.Runs()))
    before, now = kernel.made
    assert before.is_closed and not now.is_closed and made.kernels["k"] is runs, "what ran before is not forgotten"
    runs.add("m2", run)
    now.heard(message("stream", "m2", name="stdout", text="again"))
    assert texts(run.outputs.outputs()) == ["again"] and made.log.said == []
    made.joined(Page("page"))
    assert len(kernel.made) == 2


def test_a_kernel_that_cannot_be_heard_keeps_no_other_from_its_file(record, monkeypatch):
    made, looked = recorder(record, monkeypatch, {}), []
    made.at_work, made.make_room, made.kernels = False, lambda: None, {"broken": None, "k": None}

    async def look(kernel_id, runs):
        looked.append(kernel_id)
        if kernel_id == "broken":
            raise OSError("there is no such port")

    made.look = look
    asyncio.run(made.tick())
    assert looked == ["broken", "k"] and not made.at_work
    assert [words[1] for words in made.log.said] == ["broken"]


def message(kind, parent, **content):
    return {"header": {"msg_type": kind}, "parent_header": {"msg_id": parent}, "content": content}


def test_a_kernel_tells_of_its_runs(record):
    runs, run = record.Runs(), record.Run("page", "one", "1")
    runs.add("m1", run)
    runs.take(message("execute_input", "m1", execution_count=2))
    runs.take(message("stream", "m1", name="stdout", text="a"))
    runs.take(message("stream", "somebody else's", name="stdout", text="b"))
    assert texts(run.outputs.outputs()) == ["a"] and run.count == 2 and run.ended is None
    runs.take(message("status", "m1", execution_state="idle"))
    assert run.ended is not None
    again = record.Run("page", "one", "1")
    runs.add("m2", again)
    assert list(runs.by_message.values()) == [again], "the run before has no place in the file any more"
    runs.take(message("status", None, execution_state="starting"))
    assert again.ended is not None, "a kernel that begins anew says nothing more of it"
