"""Does a kubelet answer on this node? Then everything in its container runtime is the kubelet's to run or to end."""

import socket
import time
from collections.abc import Callable
from urllib.parse import urlsplit

LOOK_AGAIN_S = 1.0
CONNECT_S = 1.0
SAYS = "a kubelet answers at {url}: two that run the pods of one node end each other's; stop and mask it"


class KubeletLock:
    """Any thread may ask. `url`: the kubelet's health port; None: there is nobody to look for."""

    def __init__(self, url: str | None, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._monotonic = monotonic
        self._seen: tuple[float, bool] | None = None

    def refusal(self) -> str:
        """Why nothing may be written, in one line; "" where it may. Who takes a connection is there, be it hung."""
        if self._url is None:
            return ""
        now, seen = self._monotonic(), self._seen
        if seen is None or now - seen[0] >= LOOK_AGAIN_S:
            seen = self._seen = (now, _takes_connections(self._url))
        return SAYS.format(url=self._url) if seen[1] else ""


def _takes_connections(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 80), timeout=CONNECT_S):
            return True
    except TimeoutError:
        return True  # its queue is full, as of one that hangs
    except OSError:
        return False
