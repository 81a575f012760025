# SPDX-License-Identifier: Apache-2.0
"""Starts a Python program of the tests within milliseconds: a process that has imported it already is forked.

    nursery = nursery_of(PROGRAM)                one for each program and test process
    child = nursery.start(["--port", "0"])       with today's environment and directory, its output at child.stdout

The program's module has `run(argv)` and does nothing when it is imported. A child is no child of this process: pidfds
tell its end. It outlives the nursery, as a started program does."""

import functools
import importlib
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import threading

LENGTH = 8  # bytes: how long the order that follows is


class Child:
    """As much of subprocess.Popen as is needed."""

    def __init__(self, pid, pidfd, stdout):
        self.pid, self.pidfd, self.stdout = pid, pidfd, stdout

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def send_signal(self, number):
        signal.pidfd_send_signal(self.pidfd, number)

    def wait(self, timeout=None):
        ready, _, _ = select.select([self.pidfd], [], [], timeout)
        if not ready:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        os.close(self.pidfd)


class Nursery:
    def __init__(self, program):
        self.lock = threading.Lock()
        self.socket, theirs = socket.socketpair()
        with theirs:
            argv = [sys.executable, os.path.abspath(__file__), program, str(theirs.fileno())]
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])

    def start(self, argv):
        order = json.dumps({"argv": argv, "env": dict(os.environ), "cwd": os.getcwd()}).encode()
        ours, output = os.pipe()
        try:
            with self.lock:
                socket.send_fds(self.socket, [len(order).to_bytes(LENGTH)], [output])
                self.socket.sendall(order)
                pid, fds, _, _ = socket.recv_fds(self.socket, LENGTH, 1)
        finally:
            os.close(output)
        return Child(int.from_bytes(pid), fds[0], open(ours))  # noqa: SIM115


@functools.cache
def nursery_of(program):
    return Nursery(str(program))


# ---- the process that is forked --------------------------------------------------------------------------------------


def receive(s, size):
    got = b""
    while len(got) < size:
        piece = s.recv(size - len(got))
        if not piece:
            sys.exit(0)  # in the middle of an order: whoever gave it was killed
        got += piece
    return got


def become(program, order, output, s):
    """In the child: the program, as if it had been started."""
    s.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    os.dup2(output, 1)
    os.close(output)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    program.run(order["argv"])


def serve(program, s):
    """A child that ended is reaped at once, but not before its pidfd is open."""
    signal.signal(signal.SIGCHLD, lambda *_: reap())
    while True:
        head, fds, _, _ = socket.recv_fds(s, LENGTH, 1)
        if not head:
            return
        head += receive(s, LENGTH - len(head))
        order = json.loads(receive(s, int.from_bytes(head)))
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        pid = os.fork()
        if pid == 0:
            become(program, order, fds[0], s)
            os._exit(0)
        pidfd = os.pidfd_open(pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        socket.send_fds(s, [pid.to_bytes(LENGTH)], [pidfd])
        os.close(pidfd)
        os.close(fds[0])


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main(path, fd):
    path = pathlib.Path(path)
    sys.path.insert(0, str(path.parent))
    serve(importlib.import_module(path.stem), socket.socket(fileno=int(fd)))


if __name__ == "__main__":
    main(*sys.argv[1:])
