"""Whom the probes ask: an HTTP server that answers at once and knows when each request came."""

import selectors
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Self

from tools.bench.figures import median

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
_TURN_S = 0.2


class Peer:
    """A context. `times`: by path, when its connections came, by the monotonic clock."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._selector = selectors.DefaultSelector()  # here: who counts descriptors begins when we have started
        self.port: int = self._listener.getsockname()[1]
        self.times: defaultdict[str, list[float]] = defaultdict(list)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="peer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._over.set()
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        with self._selector as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._over.is_set():
                for key, _ in selector.select(_TURN_S):
                    if key.fileobj is self._listener:
                        accepted = self._listener.accept()[0]
                        selector.register(accepted, selectors.EVENT_READ, time.monotonic())
                        continue
                    connection = key.fileobj
                    selector.unregister(connection)
                    assert isinstance(connection, socket.socket)
                    self._answer(connection, key.data)

    def _answer(self, connection: socket.socket, came: float) -> None:
        """A request is one segment here; who connects and says nothing (tcpSocket) gets nothing."""
        with connection:
            try:
                asked = connection.recv(4096)
                if asked:
                    connection.sendall(_ANSWER)
                    self.times[asked.split(b" ", 2)[1].decode()].append(came)
            except OSError:
                return


def lateness_s(times: Mapping[str, Sequence[float]], period_s: float) -> list[float]:
    """How far each start is from its own series' grid, a period wide, which goes through the middle of them all."""
    late = []
    for series in times.values():
        if not series:
            continue
        first = series[0]
        numbers = [round((at - first) / period_s) for at in series]
        offsets = [at - number * period_s for at, number in zip(series, numbers, strict=True)]
        middle = median(offsets)
        late += [abs(offset - middle) for offset in offsets]
    return late
