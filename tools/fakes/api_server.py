"""A fake API server on a loopback socket, for faults that a real one cannot be made to show.

    with FakeApiServer() as api:
        api.put({"kind": "Node", "metadata": {"name": "node-1"}})
        client = Client(api.connection(), user_agent="test")
        api.answer_next(429, retry_after="1", method="PATCH")      # faults of the next matching request
        api.cut_watches()                                          # faults of the open watches
        assert ["GET"] == [r.method for r in api.requests]

Holds the kinds of `api_words.KINDS`. Every method may be called from any thread.
"""

import copy
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kube.auth import Connection, Credentials
from tools.fakes import api_http, api_words
from tools.fakes.anonymous import Anonymous
from tools.fakes.api_http import Cut, Handler, Request, Watcher
from tools.fakes.api_store import ApiStore, Change
from tools.fakes.api_words import Object
from tools.kit import kubeconfig

__all__ = ["FakeApiServer", "Request"]


@dataclass
class _Fault:
    act: Callable[[Handler], None]
    method: str | None
    path: str
    watch: bool | None
    left: int

    def hits(self, request: Request) -> bool:
        return (
            self.method in (None, request.method)
            and self.path in request.path
            and self.watch in (None, request.is_watch)
        )


class FakeApiServer:
    def __init__(self, *, first_version: int = 1000, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.requests: list[Request] = []
        self.tokens: set[str] | None = None
        self.gone_as_event = True
        self.changed = threading.Condition(threading.RLock())
        self.store = ApiStore(on_change=self._publish, first_version=first_version)
        self._faults: list[_Fault] = []
        self._watchers: list[Watcher] = []
        self._held: list[Change] | None = None
        self.pages: dict[str, api_http.Page] = {}
        self._connections: set[socket.socket] = set()
        self.closing = threading.Event()
        self._listener: socket.socket | None = None
        self._port = 0

    # Life and address

    def __enter__(self) -> Self:
        self.listen()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    def listen(self) -> None:
        """Accept connections, after refuse() at the same port as before."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self._port))
        listener.listen(128)
        self._port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), name="fake-api", daemon=True).start()

    def refuse(self) -> None:
        """Close the port and all connections: the next attempt is refused."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.cut_connections()

    def close(self) -> None:
        self.closing.set()
        self.refuse()

    def connection(self, credentials: Credentials | None = None) -> Connection:
        return Connection(server=self.url, ssl_context=None, credentials=credentials or Anonymous())

    def write_kubeconfig(self, path: Path, *, user: Object | None = None, cluster: Object | None = None) -> Path:
        """user, cluster: more of the entries' content, e.g. {"token": "t"}, {"certificate-authority": "/f"}."""
        return kubeconfig.write(path, server=self.url, user=user, cluster=cluster)

    # Objects, past all faults and checks

    def put(self, value: Object) -> Object:
        """Create or replace, status included; "kind" decides the collection. Returns the object as stored."""
        resource = api_words.RESOURCES[value["kind"]]
        key = self._key(value["kind"], value["metadata"]["name"], value["metadata"].get("namespace", ""))
        with self.changed:
            if key in self.store.objects:
                return copy.deepcopy(self.store.update(key, value, force=True))
            return copy.deepcopy(self.store.create(resource, key[1], value, force=True))

    def get(self, kind: str, name: str, namespace: str = "default") -> Object | None:
        """A copy of it as it is now."""
        with self.changed:
            return copy.deepcopy(self.store.objects.get(self._key(kind, name, namespace)))

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Gone at once, without grace."""
        with self.changed:
            self.store.delete(self._key(kind, name, namespace), grace_s=0)

    def objects(self, kind: str) -> list[Object]:
        """Copies, sorted by namespace and name."""
        with self.changed:
            return copy.deepcopy(self.store.select(api_words.RESOURCES[kind], "", lambda _: True))

    @property
    def version(self) -> int:
        with self.changed:
            return self.store.version

    def compact(self) -> None:
        """Watches from an older version and continue tokens given so far are answered with 410."""
        with self.changed:
            self.store.compact()

    def rewind(self, version: int) -> None:
        """Go on counting from an older version, as a replica that lags behind or a restored backup does."""
        with self.changed:
            self.store.version = self.store.floor = version
            self.store.log.clear()
            for watcher in self._watchers:
                watcher.after = min(watcher.after, version)

    # Faults of coming requests. `path` is a part of it; watch True or False picks watches or all others.

    def answer_next(
        self,
        status: int,
        *,
        reason: str = "",
        message: str = "",
        body: bytes | None = None,
        retry_after: str | None = None,
        method: str | None = None,
        path: str = "",
        watch: bool | None = None,
        times: int = 1,
    ) -> None:
        """Answer with a Status of this code, or with `body` as it is."""
        content = body if body is not None else json.dumps(api_words.status(status, reason, message)).encode()
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        self._add_fault(lambda handler: handler.send_body(status, content, headers), method, path, watch, times)

    def stall_next(
        self, *, method: str | None = None, path: str = "", watch: bool | None = None, times: int = 1, sent: bytes = b""
    ) -> None:
        """Send `sent` (say half a head), then nothing more; the connection stays open."""
        self._add_fault(lambda handler: handler.stall(sent), method, path, watch, times)

    def drip_next(self, answer: bytes, pause_s: float, *, path: str = "", times: int = 1, size: int = 1) -> None:
        """Send these raw bytes, so many at a time."""
        self._add_fault(lambda handler: handler.drip(answer, pause_s, size), None, path, None, times)

    def reset_next(
        self, *, method: str | None = None, path: str = "", watch: bool | None = None, times: int = 1
    ) -> None:
        """Read the request, then reset the connection."""

        def act(_: Handler) -> None:
            raise Cut(reset=True)

        self._add_fault(act, method, path, watch, times)

    # Faults of open watches; kind None is all of them

    def bookmark(self, kind: str | None = None) -> None:
        """Nothing while events are held: a bookmark never overtakes the events before it."""
        with self.changed:
            if self._held:
                return
            for watcher in self._open(kind):
                if watcher.bookmarks:
                    watcher.inbox.put(api_http.bookmark(watcher.resource, self.store.version))

    def emit(self, kind: str | None, event_type: str, value: object) -> None:
        """An event that has nothing to do with what is stored."""
        self.emit_bytes(kind, api_http.event(event_type, value))

    def emit_bytes(self, kind: str | None, raw: bytes) -> None:
        """These bytes in one chunk, so perhaps half a line."""
        with self.changed:
            for watcher in self._open(kind):
                watcher.inbox.put(raw)

    def error_watches(self, code: int, reason: str, kind: str | None = None, retry_after_s: int | None = None) -> None:
        """An ERROR event, then a clean end."""
        status = api_words.status(code, reason, "")
        if retry_after_s is not None:
            status["details"] = {"retryAfterSeconds": retry_after_s}
        with self.changed:
            self.emit(kind, "ERROR", status)
            self.end_watches(kind)

    def end_watches(self, kind: str | None = None) -> None:
        """End the streams as after timeoutSeconds."""
        self._tell(kind, None)

    def cut_watches(self, kind: str | None = None, *, reset: bool = False) -> None:
        """Break the connections in mid-stream."""
        self._tell(kind, Cut(reset=reset))

    def hold_events(self) -> None:
        """Changes are stored but not told, until release_events(): a slow or black-holed watch."""
        with self.changed:
            if self._held is None:
                self._held = []

    def release_events(self) -> None:
        with self.changed:
            held, self._held = self._held or [], None
            for change in held:
                self._publish(change)

    def cut_connections(self) -> None:
        """Close every connection, idle ones too."""
        with self.changed:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    # Looking

    def watchers(self, kind: str | None = None) -> int:
        with self.changed:
            return len(self._open(kind))

    def wait_watchers(self, count: int, kind: str | None = None, timeout_s: float = 30.0) -> None:
        self.wait(lambda: self.watchers(kind) == count, timeout_s, f"{count} open watches of {kind or 'all'}")

    def wait_requests(
        self, count: int, matches: Callable[[Request], bool] = lambda _: True, timeout_s: float = 30.0
    ) -> list[Request]:
        """The matching requests, once there are at least so many."""

        def found() -> list[Request]:
            return [r for r in self.requests if matches(r)]

        self.wait(lambda: len(found()) >= count, timeout_s, f"{count} requests")
        return found()

    def wait(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Woken by requests, watches and writes. Raises AssertionError."""
        with self.changed:
            if not self.changed.wait_for(condition, timeout_s):
                raise AssertionError(f"waited {timeout_s} s in vain for {what}; requests: {self.requests[-5:]}")

    # Inside

    @staticmethod
    def _key(kind: str, name: str, namespace: str) -> api_words.Key:
        resource = api_words.RESOURCES[kind]
        return resource, "" if resource in api_words.CLUSTER_SCOPED else (namespace or "default"), name

    def _add_fault(self, act, method: str | None, path: str, watch: bool | None, times: int) -> None:
        with self.changed:
            self._faults.append(_Fault(act, method, path, watch, times))

    def take_fault(self, request: Request) -> _Fault | None:
        with self.changed:
            self.requests.append(request)
            self.changed.notify_all()
            fault = next((f for f in self._faults if f.hits(request)), None)
            if fault is not None:
                fault.left -= 1
                if fault.left == 0:
                    self._faults.remove(fault)
            return fault

    def _open(self, kind: str | None) -> list[Watcher]:
        return [w for w in self._watchers if kind is None or w.resource == api_words.RESOURCES[kind]]

    def _tell(self, kind: str | None, word: object) -> None:
        with self.changed:
            for watcher in self._open(kind):
                watcher.inbox.put(word)

    def told(self, changes: Iterable[Change]) -> list[Change]:
        """Those that are not held back."""
        held = self._held or []
        return [change for change in changes if change not in held]

    def follow(self, watcher: Watcher) -> None:
        self._watchers.append(watcher)
        self.changed.notify_all()

    def forget(self, watcher: Watcher) -> None:
        with self.changed:
            if watcher in self._watchers:
                self._watchers.remove(watcher)
            self.changed.notify_all()

    def _publish(self, change: Change) -> None:
        with self.changed:
            if self._held is not None:
                self._held.append(change)
                return
            for watcher in self._watchers:
                of_its_kind = watcher.resource == change.key[0] and watcher.namespace in ("", change.key[1])
                if of_its_kind and change.version > watcher.after:
                    watcher.inbox.put(change)
            self.changed.notify_all()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, address = listener.accept()
            except OSError:
                return
            with self.changed:
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection, address), name="fake-api", daemon=True).start()

    def _serve(self, accepted: socket.socket, address: tuple[str, int]) -> None:
        connection = accepted
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
                with self.changed:  # the accepted one is empty now
                    self._connections.discard(accepted)
                    self._connections.add(connection)
            Handler(connection, address, self)
        except Cut as cut:
            if cut.reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:  # the client went away
            return
        finally:
            with self.changed:
                self._connections -= {accepted, connection}
            connection.close()
