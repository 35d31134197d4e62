"""When the extender closes and opens a node: its filter is asked twenty times a second, on its own host."""

import json
import subprocess
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from kube import contract
from tools.testbed.hosts.hosts import Hosts

PORT = contract.PORT_DAEMON_SET
# Only what Debian's python3 has; ends with its input.
_PROGRAM = """
import http.client, json, os, sys, threading, time
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
meta = {"name": "bench-faults-asks", "namespace": "default", "uid": "bench-faults"}
pod = {"metadata": meta, "spec": {"containers": []}}
body = json.dumps({"Pod": pod, "NodeNames": sys.argv[2:]})
link, before = None, None
while True:
    try:
        link = link or http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=2)
        link.request("POST", "/filter", body, {"Content-Type": "application/json"})
        reply = json.loads(link.getresponse().read())
        closed = {**(reply.get("FailedNodes") or {}), **(reply.get("FailedAndUnresolvableNodes") or {})}
    except (OSError, ValueError, http.client.HTTPException) as e:
        link, closed = None, None
    if closed != before:
        print(json.dumps({"at": time.time(), "closed": closed}), flush=True)
        before = closed
    time.sleep(0.05)
"""


class Watch:
    """In a `with` block. Times are seconds of the clock that all hosts share (time.time). `hear`: of each change, which
    node and why it is closed, "" where it is open."""

    def __init__(
        self, hosts: Hosts, nodes: list[str], hear: Callable[[str, str], None] = lambda _node, _reason: None
    ) -> None:
        self._hear = hear
        self._news = threading.Condition()
        self._closed: dict[str, str] | None = None
        self._since: dict[str, float] = {}
        argv = ["ssh", "-F", str(hosts.ssh_config), hosts.layout.first.name]
        argv.append(f"python3 -c '{_PROGRAM}' {PORT} {' '.join(nodes)}")
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._thread = threading.Thread(target=self._read, name="watch", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join(5)

    def reason(self, node: str) -> str:
        """Why it is closed; "" while it is open or nothing is known."""
        with self._news:
            return (self._closed or {}).get(node, "")

    def wait(self, node: str, *, closed: bool, timeout_s: float) -> float | None:
        """When the extender came to say so; None where it does not within the time."""
        deadline = time.monotonic() + timeout_s
        with self._news:
            while self._closed is None or (node in self._closed) != closed:
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                self._news.wait(left)
            return self._since.get(node, 0.0)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            news = json.loads(line)
            with self._news:
                before, now = self._closed or {}, news["closed"]
                if now is not None:
                    for node in set(before) ^ set(now):
                        self._since[node] = news["at"]
                    for node in {*before, *now}:
                        self._hear(node, now.get(node, ""))
                self._closed = now if now is not None else self._closed
                self._news.notify_all()
