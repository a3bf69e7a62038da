# SPDX-License-Identifier: Apache-2.0
"""Links between processes of this machine that are as slow as a test wants, fall silent, or are
cut: a proxy ahead of a port."""

import random
import socket
import threading
import time


class Link:
    """What is sent to `port`, its own, goes to `to`, a port of this machine, and the answers back:
    every few bytes after a wait of up to `delay` seconds, which `seed` draws, and which may be set
    at any time."""

    def __init__(self, to, delay=0.0, seed=0):
        self._to, self.delay, self._random = to, delay, random.Random(seed)
        self._flows, self._cut = threading.Event(), False
        self._flows.set()
        self._sockets = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.address = "127.0.0.1:%d" % self.port
        self._threads = []
        self._start(self._accept)

    def fall_silent(self):
        """Nothing passes any more; connections stay as they are."""
        self._flows.clear()

    def flow(self):
        """All passes again, what was held back first."""
        self._flows.set()

    def cut(self):
        """Closes the connections, and takes no others."""
        self._cut = True
        self._flows.set()
        self._shut(self._listener)
        for each in list(self._sockets):
            self._shut(each)

    def close(self):
        self.cut()
        for thread in list(self._threads):
            thread.join(10)
        for each in (self._listener, *self._sockets):
            each.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _start(self, call, *arguments):
        thread = threading.Thread(target=call, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    @staticmethod
    def _shut(each):
        try:
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other end has done so

    def _accept(self):
        while not self._cut:
            try:
                near = self._listener.accept()[0]
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                near.close()  # nobody listens there yet
                continue
            for each in (near, far):  # small messages are not held back for an answer
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets += [near, far]
            self._start(self._pass_on, near, far)
            self._start(self._pass_on, far, near)

    def _pass_on(self, source, sink):
        while not self._cut:
            try:
                some = source.recv(1 << 16)
                time.sleep(self._random.uniform(0, self.delay))
                self._flows.wait()
                if some and not self._cut:
                    sink.sendall(some)
                    continue
            except OSError:
                pass
            break
        self._shut(source)
        self._shut(sink)
