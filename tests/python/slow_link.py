# SPDX-License-Identifier: Apache-2.0
"""A link between tasks that a test cuts, delays and throttles: a port of this machine from which
all goes on to another one."""

import selectors
import socket
import threading
import time


class SlowLink:
    """Listens from here on at .port and passes bytes to and from `port` until close().

    delay: seconds by which all that comes is late. rate: bytes a second, None: as fast as it goes.
    silent: nothing goes on, and nothing is said. All three may be set at any time."""

    def __init__(self, port):
        self._to, self.delay, self.rate, self.silent = port, 0.0, None, False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open, self._lock, self._ended = [], threading.Lock(), False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self._ended:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._to), timeout=5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            with self._lock:
                self._open.append((near, far))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source, target):
        with selectors.DefaultSelector() as ready:
            ready.register(source, selectors.EVENT_READ)
            try:
                while True:
                    ready.select()
                    while self.silent and not self._ended:
                        time.sleep(0.01)
                    data = source.recv(1 << 16)
                    if not data:
                        break
                    time.sleep(self.delay + (len(data) / self.rate if self.rate else 0))
                    target.sendall(data)
            except (OSError, ValueError):
                pass
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        """Ends the connections there are; new ones may be made."""
        with self._lock:
            pairs, self._open = self._open, []
        for pair in pairs:
            for each in pair:
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self._ended = True
        self._listener.close()
        self.cut()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
