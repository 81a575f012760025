# SPDX-License-Identifier: Apache-2.0
"""The cable between a browser and a server: cut, nothing passes and nobody is told, as when a switch is out; healed,
what was cut is dead and new connections pass.

    with Cable(port) as cable:      cable.port is where the server seems to be
        cable.cut(); cable.heal()
"""

import contextlib
import selectors
import socket
import threading

PIECE = 1 << 16


class Cable:
    def __init__(self, port):
        self.goal = ("127.0.0.1", port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.selector, self.pairs = selectors.DefaultSelector(), {}
        self.is_cut, self.lock = False, threading.Lock()
        self.bell, self.rope = socket.socketpair()

    def __enter__(self):
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.selector.register(self.bell, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *why):
        self.rope.close()
        self.thread.join()
        with self.lock:
            self.drop_all()
        for s in (self.listener, self.bell, self.selector):
            s.close()

    def cut(self):
        with self.lock:
            self.is_cut = True
            for s in self.pairs:
                self.selector.unregister(s)

    def heal(self):
        with self.lock:
            self.drop_all(registered=False)
            self.is_cut = False

    def drop_all(self, registered=True):
        for s in list(self.pairs):
            if registered:
                with contextlib.suppress(KeyError, ValueError):
                    self.selector.unregister(s)
            s.close()
        self.pairs.clear()

    def run(self):
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.bell:
                    return
                with self.lock:
                    self.join() if key.fileobj is self.listener else self.pass_on(key.fileobj)

    def join(self):
        ours, _ = self.listener.accept()
        theirs = socket.create_connection(self.goal) if not self.is_cut else socket.socket()
        for s, other in ((ours, theirs), (theirs, ours)):
            self.pairs[s] = other
            if not self.is_cut:
                self.selector.register(s, selectors.EVENT_READ)

    def pass_on(self, s):
        if self.is_cut or s not in self.pairs:
            return
        other = self.pairs[s]
        try:
            data = s.recv(PIECE)
            other.sendall(data)
        except OSError:
            data = b""
        if data:
            return
        for gone in (s, other):
            self.selector.unregister(gone)
            self.pairs.pop(gone)
            gone.close()
