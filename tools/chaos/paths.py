"""Proxies on loopback between a client and its API server, whose behaviour a row changes while they run."""

import socket
import threading
from typing import Self

_PIECE_BYTES = 64 * 2**10
_LOOK_S = 0.05


class Path:
    """Passes bytes on in both directions. target: the port it leads to, for connections made from then on.

    silent: takes what comes, acknowledges it as any TCP does, and passes nothing on. accepted: connections so far.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.silent = False
        self.accepted = 0
        self._closing = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name="path", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Breaks all connections."""
        with self._lock:
            for sock in self._open:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            target = self.target
            try:
                far = socket.create_connection(("127.0.0.1", target), timeout=5)
                far.settimeout(None)
            except OSError:
                near.close()
                continue
            with self._lock:
                self._open |= {near, far}
            if target != self.target:  # it was changed, and all was cut, while this one was made
                self.cut()
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(_PIECE_BYTES):
                while self.silent and not self._closing.wait(_LOOK_S):
                    pass
                other.sendall(data)
        except OSError:
            pass
        for sock in (one, other):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        with self._lock:
            self._open -= {one, other}
        one.close()
