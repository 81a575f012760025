# SPDX-License-Identifier: Apache-2.0
"""What a cell prints while no browser is there, kept in its notebook: a part of JupyterLab's server on a lease.

JupyterLab keeps outputs in the page and the page saves them: what a cell prints after its page was closed is in no
document, and the server, which holds it for the very page that left, without a bound, throws it away when another one
comes. Here the server listens to each kernel, too. It remembers the outputs of each run of a cell from its beginning,
and when the page that asked for the run has been away for a moment, it writes them into the notebook's file: now and
then while nobody is there, and once more when the run is over. A page that comes back with the same session was only
cut off: it gets from the server what it missed, and saves it itself. A write from here and the save of a page take
turns, so that neither undoes the other unseen. argus_notebook.py loads this.

One run keeps its newest 8 MB at most, all together 64 MB. The state of widgets lives in pages alone and is not kept.
"""

import asyncio
import copy
import inspect
import json
import re
import time
import weakref

AWAY_S = 5  # a page that is away for less was cut off, and comes back
WRITE_S = 10  # between two writes of a run that goes on
WRITE_SHARE = 20  # .. and so many times what a write took: a huge notebook keeps the server's loop busy
AGAIN_MOST_S = 600  # between two tries of a write that fails
GIVE_UP_S = 3600  # after its end a run that cannot be written is forgotten
KEEP_S = 300  # that a run is remembered after its end: a page that died is noticed late
RUN_MOST = 8 << 20
ALL_MOST = 64 << 20
ITEM_COST = 500  # bytes that an output takes, however short it is
CUT = "[earlier output of this run is left out: there was too much of it]\n"
CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


# ---- outputs, as a file has them ----


def settle(text):
    """Without what a carriage return has overwritten, as a progress bar does hundreds of times."""
    if "\r" not in text:
        return text
    lines = text.split("\n")
    for i, line in enumerate(lines):
        body = line.rstrip("\r")
        lines[i] = body.rpartition("\r")[2] + ("\r" if body != line else "")
    return "\n".join(lines)


class Stream:
    """Text of one stream in a row. It is put together seldom: a cell may print a million short pieces."""

    display_id = None

    def __init__(self, name):
        self.name, self.parts, self.size, self.loose = name, [], 0, 0

    def add(self, text):
        self.parts.append(text)
        self.size += len(text)
        self.loose += len(text)
        if self.loose > max(1 << 16, self.size // 2):
            self.text()

    def text(self):
        self.parts = [settle("".join(self.parts))]
        self.size, self.loose = len(self.parts[0]), 0
        return self.parts[0]

    def keep_newest(self, size):
        self.parts = [self.text()[-size:]]
        self.size = len(self.parts[0])

    def output(self):
        return {"output_type": "stream", "name": self.name, "text": self.text()}


class Whole:
    """An output that comes in one piece."""

    def __init__(self, output, display_id=None):
        self.value, self.display_id = output, display_id
        self.size = len(json.dumps(output, default=str))

    def output(self):
        return copy.deepcopy(self.value)


class Outputs:
    """The outputs of one run of a cell."""

    def __init__(self, most=RUN_MOST):
        self.items, self.most = [], most
        self.bytes = 0  # of all items; kept, since it is asked for with each message
        self.is_cut = self.clears = False

    def take(self, kind, content):
        """One message of the kernel. -> whether it changed anything"""
        if kind == "clear_output":
            self.clears = bool(content.get("wait"))
            if not self.clears:
                self.clear()
            return True
        if kind == "update_display_data":
            return self.update(content)
        item = self.item_of(kind, content)
        if item is None:
            return False
        if self.clears:
            self.clear()
        if kind == "stream":
            self.stream(str(content.get("name", "stdout")), str(content.get("text", "")))
        else:
            self.add(item)
        self.trim()
        return True

    def add(self, item):
        self.items.append(item)
        self.bytes += item.size + ITEM_COST

    def item_of(self, kind, content):
        mime = {"data": content.get("data", {}), "metadata": content.get("metadata", {})}
        display_id = (content.get("transient") or {}).get("display_id")
        if kind == "stream":
            return self
        if kind == "display_data":
            return Whole({"output_type": kind, **mime}, display_id)
        if kind == "execute_result":
            return Whole({"output_type": kind, **mime, "execution_count": content.get("execution_count")}, display_id)
        if kind == "error":
            return Whole({"output_type": kind, **{k: content.get(k, "") for k in ("ename", "evalue")},
                          "traceback": list(content.get("traceback", []))})  # fmt: skip
        return None

    def stream(self, name, text):
        last = self.items[-1] if self.items else None
        if not isinstance(last, Stream) or last.name != name:
            last = Stream(name)
            self.add(last)
        before = last.size
        last.add(text)
        self.bytes += last.size - before

    def update(self, content):
        display_id = (content.get("transient") or {}).get("display_id")
        found = [i for i, x in enumerate(self.items) if display_id and x.display_id == display_id]
        for i in found:
            value = {**self.items[i].value, "data": content.get("data", {}), "metadata": content.get("metadata", {})}
            before, self.items[i] = self.items[i].size, Whole(value, display_id)
            self.bytes += self.items[i].size - before
        self.trim()
        return bool(found)

    def clear(self):
        self.items, self.bytes, self.is_cut, self.clears = [], 0, False, False

    def size(self):
        return self.bytes

    def trim(self):
        """Beyond the bound the oldest half goes, so that it is not cut anew with each piece."""
        if self.bytes <= self.most:
            return
        self.is_cut |= len(self.items) > 1 or isinstance(self.items[0], Stream)
        excess, gone = self.bytes - self.most // 2, 0
        for item in self.items:
            if isinstance(item, Stream) and item.size > excess:
                before = item.size
                item.keep_newest(item.size - excess)
                self.bytes -= before - item.size
                break
            if gone == len(self.items) - 1:
                break  # one piece is kept or not, never cut
            gone, excess = gone + 1, excess - item.size - ITEM_COST
            self.bytes -= item.size + ITEM_COST
            if excess <= 0:
                break
        del self.items[:gone]

    def outputs(self):
        head = [{"output_type": "stream", "name": "stderr", "text": CUT}] if self.is_cut else []
        made = head + [x.output() for x in self.items]
        self.bytes = sum(x.size + ITEM_COST for x in self.items)  # a text that is put together is shorter
        return made


def source_of(cell):
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def place(content, run):
    """The outputs of a run into its cell, which is made at the end where the file does not have it yet: a page saves
    only now and then. A cell that was there and is not any more was deleted, and stays so."""
    cells = [c for c in content["cells"] if c.get("cell_type") == "code"]
    cell = next((c for c in cells if c.get("id") == run.cell_id), None)
    if cell is None:  # a file of an older form has no ids
        cell = next((c for c in cells if "id" not in c and source_of(c) == run.code), None)
    if cell is None and run.was_there:
        return
    if cell is None:
        cell = {"cell_type": "code", "metadata": {}, "source": run.code}
        if (content.get("nbformat", 4), content.get("nbformat_minor", 0)) >= (4, 5):
            cell["id"] = run.cell_id
        content["cells"].append(cell)
    cell["outputs"] = run.outputs.outputs()
    cell["execution_count"] = run.count
    run.was_there = True
    cell["metadata"]["trusted"] = True  # its owner ran it here, as a page says of what it ran


# ---- runs ----


class Run:
    """One execution of a cell, asked for by one session of a page."""

    def __init__(self, session, cell_id, code):
        self.session, self.cell_id, self.code = session, cell_id, code
        self.outputs, self.count = Outputs(), None
        self.ended_at = None  # wall, to be held against the time of the file
        self.ended = None  # monotonic
        self.left = None  # monotonic: its page went away
        self.ended_before = False  # .. after the run had ended
        self.has_begun = False  # the kernel has said so: before, the cell in the file is as it was
        self.was_there = False  # its cell, in the file
        self.is_changed, self.written, self.pause, self.failed = True, 0.0, WRITE_S, False

    def end(self):
        if self.ended is None:
            self.ended, self.ended_at = time.monotonic(), time.time()

    def leave(self, now):
        if self.left is None:
            self.left, self.ended_before = now, self.ended is not None

    def waits(self):
        return self.left is not None and self.is_changed and self.has_begun

    def is_due(self, now, is_watched):
        """is_watched: another page is open. It is not surprised by a file that changes all the time."""
        if not self.waits() or now - self.left < AWAY_S:
            return False
        is_time = now - self.written >= self.pause
        if self.failed or self.ended is None:
            return is_time and (self.ended is not None or not is_watched)
        return True

    def is_done(self, now):
        if self.ended is None:
            return False
        if self.left is None:
            return now - self.ended >= KEEP_S
        return not self.waits() or now - max(self.ended, self.left) >= GIVE_UP_S

    def wrote(self, took, failed):
        """A write took so long. One that failed is tried again, more and more seldom."""
        self.pause = min(2 * self.pause, AGAIN_MOST_S) if failed else max(WRITE_S, WRITE_SHARE * took)
        self.failed = failed

    def is_saved(self, file_at):
        """The page saved it after the run had ended, and went away then: the file is what its owner wanted."""
        return self.ended_before and file_at is not None and file_at > self.ended_at


class Runs:
    """The runs of one kernel, by the id of the message that asked for each."""

    def __init__(self):
        self.by_message, self.path = {}, None
        self.pages = set()  # connections

    def add(self, message, run):
        self.by_message = {m: r for m, r in self.by_message.items() if r.cell_id != run.cell_id}
        self.by_message[message] = run

    def take(self, message):
        """A message of the kernel to all."""
        kind, content = message["header"]["msg_type"], message["content"]
        run = self.by_message.get(message["parent_header"].get("msg_id"))
        if kind == "update_display_data":
            for each in self.by_message.values():
                each.is_changed |= each.outputs.take(kind, content)
        elif kind == "status" and content.get("execution_state") == "starting":
            self.end()  # it was restarted: what ran before has ended without a word
        elif run is None:
            return
        elif kind == "execute_input":
            run.count, run.has_begun = content.get("execution_count"), True
        elif kind == "status" and content.get("execution_state") == "idle":
            run.end()
            run.is_changed = True  # it is written once more when it is over
        elif run.outputs.take(kind, content):
            run.is_changed = run.has_begun = True

    def end(self):
        """The kernel is gone, or begins anew."""
        for run in self.by_message.values():
            run.is_changed |= run.ended is None
            run.end()

    def due(self, now):
        return [r for r in self.by_message.values() if r.is_due(now, bool(self.pages))]

    def forget(self, now):
        self.by_message = {m: r for m, r in self.by_message.items() if not r.is_done(now)}


class Missed(list):
    """What a page that was cut off gets when it is back: the server's own list, with a bound. In place of one that was
    too long it gets the notebook's file."""

    def __init__(self, most=RUN_MOST):
        super().__init__()
        self.size, self.most, self.is_whole = 0, most, True

    def append(self, message):
        if not self.is_whole:
            return
        self.size += sum(len(part) for part in message[1])
        super().append(message)
        if self.size > self.most:
            self.is_whole = False
            self.clear()


# ---- in JupyterLab's server ----

try:
    from jupyter_client.session import Session
    from jupyter_core.utils import ensure_async
    from jupyter_server.services.kernels.connection.base import deserialize_binary_message, deserialize_msg_from_ws_v1
    from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
    from tornado.ioloop import PeriodicCallback
    from tornado.web import HTTPError
except ImportError:  # an older server, or a test of what is above: argus_notebook.py starts the server as it is
    ZMQChannelsWebsocketConnection = None


class Recorder:
    """One for the server. Whatever goes wrong here is said in its log and stops nobody's cell."""

    def __init__(self, connection):
        handler = connection.websocket_handler
        self.sessions, self.contents, self.log = handler.session_manager, handler.contents_manager, handler.log
        self.kernels, self.manager = {}, connection.multi_kernel_manager
        self.streams, self.at_work = {}, False  # of each kernel: the port at which it is heard, and the stream
        self.take_turns()
        PeriodicCallback(self.tick, 1000).start()

    def take_turns(self):
        """Pages save through the same manager. Here a file is read and written back: what a page saved in between would
        be lost, and two writes at once would mix their bytes. So each file has one of them at a time; a manager that is
        not asynchronous does it in one go, and is left alone."""
        self.locks, self.save = weakref.WeakValueDictionary(), self.contents.save
        if not inspect.iscoroutinefunction(self.save):
            return

        async def save(model, path="", **more):
            async with self.turn_of(path):
                return await self.save(model, path, **more)

        self.contents.save = save

    def turn_of(self, path):
        return self.locks.setdefault(path.strip("/"), asyncio.Lock())

    def know(self, kernel_id):
        """A kernel, from before the first page can ask it for anything."""
        kernel = self.manager.get_kernel(kernel_id)
        if kernel_id not in self.kernels:
            runs = self.kernels[kernel_id] = Runs()
            for event in ("restart", "dead"):
                self.manager.add_restart_callback(kernel_id, runs.end, event)
        self.listen(kernel_id, kernel)

    def listen(self, kernel_id, kernel):
        """Anew where its port is another one: a kernel that dies in its first seconds is restarted at other ports."""
        port, before = self.streams.get(kernel_id, (None, None))
        if not kernel.iopub_port or kernel.iopub_port == port:
            return  # without a port it is just being restarted
        runs, session = self.kernels[kernel_id], Session(config=kernel.session.config, key=kernel.session.key)
        stream = kernel.connect_iopub()

        def on_message(parts):
            try:
                runs.take(session.deserialize(session.feed_identities(parts)[1]))
            except Exception:
                self.log.warning("argus: a message of kernel %s is not recorded", kernel_id, exc_info=True)

        stream.on_recv(on_message)
        self.streams[kernel_id] = kernel.iopub_port, stream
        if before:
            before.close()

    def joined(self, page):
        """Before the server gives it what it missed."""
        self.know(page.kernel_id)
        runs, buffers = self.kernels[page.kernel_id], self.manager._kernel_buffers
        kept = buffers.get(page.kernel_id, {"session_key": None})  # [] would make one
        if kept["session_key"] == page.session_key and getattr(kept["buffer"], "is_whole", True):
            for run in runs.by_message.values():
                if run.session == page.session_key:
                    run.left = None
        runs.pages.add(page)

    def left(self, page):
        runs, buffers = self.kernels.get(page.kernel_id), self.manager._kernel_buffers
        if runs is None or page not in runs.pages:
            return
        runs.pages.discard(page)
        if page.kernel_id in buffers and buffers[page.kernel_id]["session_key"] == page.session_key:
            buffers[page.kernel_id]["buffer"] = Missed()
        now, here = time.monotonic(), {p.session_key for p in runs.pages}
        for run in runs.by_message.values():
            if run.session == page.session_key and run.session not in here:
                run.leave(now)

    def asked(self, page, message):
        """What a page sends to its kernel: a cell to be run says which one it is."""
        if page.subprotocol == "v1.kernel.websocket.jupyter.org":
            channel, parts = deserialize_msg_from_ws_v1(message)
            header = json.loads(bytes(parts[0]))
            if header["msg_type"] != "execute_request":
                return  # a widget's message may be large
            metadata, content = (json.loads(bytes(parts[i])) for i in (2, 3))
        else:
            whole = deserialize_binary_message(message) if isinstance(message, bytes) else json.loads(message)
            channel, header, metadata = whole.get("channel"), whole["header"], whole.get("metadata") or {}
            content = whole["content"]
        cell_id = metadata.get("cellId")
        if channel != "shell" or header["msg_type"] != "execute_request" or content.get("silent"):
            return
        if isinstance(cell_id, str) and CELL_ID.fullmatch(cell_id):
            run = Run(page.session_key, cell_id, str(content.get("code", "")))
            self.kernels[page.kernel_id].add(header["msg_id"], run)

    async def tick(self):
        if self.at_work:
            return
        self.at_work = True
        try:
            self.make_room()
            for kernel_id, runs in list(self.kernels.items()):
                try:
                    await self.look(kernel_id, runs)
                except Exception:  # the other kernels are looked at all the same
                    self.log.warning("argus: outputs of kernel %s are not recorded", kernel_id, exc_info=True)
        except Exception:
            self.log.warning("argus: outputs are not recorded", exc_info=True)
        finally:
            self.at_work = False

    async def look(self, kernel_id, runs):
        now, is_gone = time.monotonic(), kernel_id not in self.manager
        if is_gone:
            runs.end()
        else:
            self.listen(kernel_id, self.manager.get_kernel(kernel_id))
        if runs.by_message and not is_gone:
            runs.path = await self.path_of(kernel_id) or runs.path
        due = runs.due(now)
        if due and runs.path:
            await self.write(runs.path, due)
        runs.forget(now)
        if is_gone and not (runs.path and any(r.waits() for r in runs.by_message.values())):
            _, stream = self.streams.pop(kernel_id, (None, None))
            if stream:
                stream.close()
            del self.kernels[kernel_id]

    async def path_of(self, kernel_id):
        """The notebook of a kernel; None: a console's, or one that is being closed."""
        for s in await ensure_async(self.sessions.list_sessions()):
            if s["type"] == "notebook" and (s.get("kernel") or {}).get("id") == kernel_id:
                return s["path"]
        return None

    async def write(self, path, runs):
        began = time.monotonic()
        for run in runs:  # what comes from now on changes it again
            run.is_changed, run.written = False, began
        failed = is_removed = False
        try:
            async with self.turn_of(path):
                await self.write_alone(path, runs)
        except asyncio.CancelledError:
            raise
        except Exception as e:
            failed, is_removed = True, isinstance(e, HTTPError) and e.status_code == 404
            self.log.warning("argus: outputs are not in %s: %s", path, e)
        took = time.monotonic() - began
        for run in runs:
            run.is_changed |= failed and not is_removed
            run.wrote(took, failed)

    async def write_alone(self, path, runs):
        model = await ensure_async(self.contents.get(path, content=True, type="notebook"))
        at = model["last_modified"].timestamp() if model.get("last_modified") else None
        wanted = [r for r in runs if not r.is_saved(at)]
        for run in wanted:
            place(model["content"], run)
        if wanted:
            saved = {"type": "notebook", "format": "json", "content": model["content"]}
            await ensure_async(self.save(saved, path))
            self.log.info("argus: outputs of %d cells are in %s, whose page is gone", len(wanted), path)

    def make_room(self):
        """The runs that ended first are forgotten first; what runs has its own bound."""
        ended = [(r.ended, m, runs) for runs in self.kernels.values() for m, r in runs.by_message.items() if r.ended]
        size = sum(r.outputs.size() for runs in self.kernels.values() for r in runs.by_message.values())
        for _, message, runs in sorted(ended, key=lambda x: x[0]):
            if size <= ALL_MOST:
                return
            size -= runs.by_message.pop(message).outputs.size()


def recorder_of(connection):
    settings = connection.websocket_handler.settings
    if "argus_recorder" not in settings:
        settings["argus_recorder"] = Recorder(connection)
    return settings["argus_recorder"]


if ZMQChannelsWebsocketConnection is None:
    Connection = None
else:

    class Connection(ZMQChannelsWebsocketConnection):
        """A page's connection to a kernel, of which the recorder hears."""

        def told(self, what, *args):
            try:
                getattr(recorder_of(self), what)(self, *args)
            except Exception:
                self.log.warning("argus: outputs are not recorded", exc_info=True)

        def connect(self):
            self.told("joined")
            return super().connect()

        def disconnect(self):
            try:
                super().disconnect()
            finally:
                self.told("left")

        def handle_incoming_message(self, incoming_msg):
            self.told("asked", incoming_msg)
            super().handle_incoming_message(incoming_msg)
