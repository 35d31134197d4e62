"""The HTTP side of the fake API server: one handler per connection, which speaks raw enough to break the rules."""

import itertools
import json
import queue
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.fakes import api_store
from tests.fakes.api_store import ApiStore, Change, Object, Refused

_LOOK_S = 0.05  # how often an idle watch looks whether its client is still there
_tokens = itertools.count(1)


@dataclass(frozen=True)
class Request:
    """at: time.monotonic() of its arrival."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    headers: Mapping[str, str]
    at: float

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") in ("1", "true")


class Cut(Exception):  # noqa: N818 - what is done, not an error
    """End the connection without an answer; reset: with RST instead of FIN."""

    def __init__(self, *, reset: bool) -> None:
        self.reset = reset


@dataclass(eq=False)
class Watcher:
    """Items of `inbox`: bytes to send as they are, a Change, None for a clean end, a Cut."""

    resource: str
    namespace: str
    matches: Callable[[Object], bool]
    bookmarks: bool
    inbox: queue.Queue = field(default_factory=queue.Queue)


def status(code: int, reason: str, message: str) -> Object:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def event(kind: str, value: object) -> bytes:
    return json.dumps({"type": kind, "object": value}).encode() + b"\n"


def bookmark(resource: str, version: int) -> bytes:
    """As the API server sends it: an otherwise empty object, with nulls a typed decoder may stumble over."""
    api_version, kind = api_store.KINDS[resource]
    meta = {"resourceVersion": str(version), "creationTimestamp": None}
    return event("BOOKMARK", {"kind": kind, "apiVersion": api_version, "metadata": meta, "spec": {"containers": None}})


@dataclass(frozen=True)
class _Target:
    resource: str
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> api_store.Key:
        return self.resource, self.namespace, self.name


def _target(path: str) -> _Target:
    parts = [unquote(part) for part in path.strip("/").split("/")]
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if len(parts) > 2 and parts[0] == "namespaces":
        namespace, parts = parts[1], parts[2:]
    if not parts or parts[0] not in api_store.KINDS:
        raise Refused(404, "NotFound", "the server could not find the requested resource")
    resource, name, subresource = [*parts, "", ""][:3]
    return _Target(resource, namespace, name, subresource)


class Fault(Protocol):
    """Instead of an answer. May raise Cut."""

    def act(self, handler: "Handler") -> None: ...


class Server(Protocol):
    """What the connections of one API server share. `changed` guards all of it; `closing` ends what waits."""

    store: ApiStore
    pages: dict[str, tuple[int, list[Object]]]  # rest of a list by continue token
    tokens: set[str] | None  # bearer tokens that are let in; None for no check
    gone_as_event: bool  # how a watch from a compacted version is refused: ERROR event, or HTTP 410
    changed: threading.Condition
    closing: threading.Event

    def take_fault(self, request: Request) -> Fault | None:
        """Notes the request; the fault that it shall meet."""

    def told(self, changes: Iterable[Change]) -> list[Change]:
        """Those that are not held back."""

    def follow(self, watcher: Watcher) -> None: ...

    def forget(self, watcher: Watcher) -> None: ...


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def handle_any(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        request = Request(self.command, url.path, query, body, dict(self.headers.items()), time.monotonic())
        fault = self.server.take_fault(request)
        try:
            if fault is not None:
                fault.act(self)
                return
            self._check_token()
            if url.path == "/version":
                self.send_json(200, {"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
                return
            target = _target(url.path)
            if request.is_watch:
                self._watch(target, query)
            else:
                code, answer = self._answer(request, target)
                self.send_json(code, answer)
        except Refused as e:
            self.send_json(e.code, status(e.code, e.reason, e.message))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 - the names http.server calls

    def log_message(self, *_: object) -> None:
        return

    # What faults do

    def send_json(self, code: int, value: object) -> None:
        self.send_body(code, json.dumps(value).encode(), {})

    def send_body(self, code: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def stall(self, sent: bytes) -> None:
        if sent:
            self.wfile.write(sent)
        while not self._client_gone() and not self.server.closing.wait(_LOOK_S):
            pass
        self.close_connection = True

    def drip(self, answer: bytes, pause_s: float) -> None:
        for i in range(len(answer)):
            self.wfile.write(answer[i : i + 1])
            if self.server.closing.wait(pause_s):
                break
        self.close_connection = True

    # The API

    def _check_token(self) -> None:
        tokens = self.server.tokens
        if tokens is not None and self.headers.get("Authorization", "").removeprefix("Bearer ") not in tokens:
            raise Refused(401, "Unauthorized", "Unauthorized")

    def _answer(self, request: Request, target: _Target) -> tuple[int, Object]:
        store = self.server.store
        with self.server.changed:
            if request.method == "GET":
                return 200, store.get(target.key) if target.name else self._list(target, request.query)
            given = _decoded(request)
            if request.method == "POST":
                if target.subresource == "binding":
                    return 201, self._bind(target, given)
                return 201, store.create(target.resource, target.namespace, given)
            if request.method == "PUT":
                return 200, store.update(target.key, given, subresource=target.subresource)
            if request.method == "PATCH":
                before = store.get(target.key)
                patched = _patched(before, given, request.headers.get("Content-Type", ""))
                return 200, store.update(target.key, patched, subresource=target.subresource)
            uid = (given.get("preconditions") or {}).get("uid")
            return 200, store.delete(target.key, grace_s=given.get("gracePeriodSeconds"), uid=uid)

    def _bind(self, target: _Target, given: Object) -> Object:
        pod = self.server.store.get(target.key)
        if (pod.get("spec") or {}).get("nodeName"):
            raise Refused(409, "Conflict", "pod is already assigned to a node")
        node = given["target"]["name"]
        scheduled = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
        bound = api_store.strategic_merge(pod, {"spec": {"nodeName": node}, "status": scheduled})
        self.server.store.update(target.key, bound, force=True)
        return {**status(201, "", ""), "status": "Success"}

    def _list(self, target: _Target, query: Mapping[str, str]) -> Object:
        store, pages = self.server.store, self.server.pages
        if query.get("continue"):
            version, items = pages.pop(query["continue"], (0, []))
            if version < store.floor:
                raise Refused(410, "Expired", "The provided continue parameter is too old")
        else:
            matches = api_store.selector(query.get("labelSelector", ""), query.get("fieldSelector", ""))
            version, items = store.version, store.select(target.resource, target.namespace, matches)
        meta = {"resourceVersion": str(version)}
        limit = int(query.get("limit") or 0)
        if limit and len(items) > limit:
            meta["continue"] = f"token-{next(_tokens)}"
            pages[meta["continue"]] = (version, items[limit:])
            items = items[:limit]
        api_version, kind = api_store.KINDS[target.resource]
        bare = [{k: v for k, v in item.items() if k not in ("kind", "apiVersion")} for item in items]
        return {"kind": f"{kind}List", "apiVersion": api_version, "metadata": meta, "items": bare}

    def _watch(self, target: _Target, query: Mapping[str, str]) -> None:
        ends = time.monotonic() + float(query.get("timeoutSeconds") or 1800)
        fields = query.get("fieldSelector", "")
        if target.name:
            fields = ",".join(filter(None, (fields, f"metadata.name={target.name}")))
        watcher = Watcher(
            target.resource,
            target.namespace,
            api_store.selector(query.get("labelSelector", ""), fields),
            query.get("allowWatchBookmarks") in ("1", "true"),
        )
        first = self._first_events(watcher, query.get("resourceVersion", ""))
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in first:
                self._chunk(line)
            self._follow(watcher, ends)
            self.wfile.write(b"0\r\n\r\n")
        finally:
            self.server.forget(watcher)

    def _first_events(self, watcher: Watcher, version: str) -> list[bytes]:
        """What a new watch is told first; from here on changes go to its inbox."""
        store = self.server.store
        with self.server.changed:
            if version in ("", "0"):
                present = store.select(watcher.resource, watcher.namespace, watcher.matches)
                first = [event("ADDED", value) for value in present]
            elif int(version) < store.floor:
                if not self.server.gone_as_event:
                    raise Refused(410, "Expired", f"too old resource version: {version} ({store.floor})")
                watcher.inbox.put(None)
                return [event("ERROR", status(410, "Expired", f"too old resource version: {version}"))]
            else:
                told = self.server.told(store.changes(int(version)))
                first = [line for change in told if (line := _line(watcher, change))]
            self.server.follow(watcher)
        return first

    def _follow(self, watcher: Watcher, ends: float) -> None:
        while (left := ends - time.monotonic()) > 0:
            try:
                word = watcher.inbox.get(timeout=min(left, _LOOK_S))
            except queue.Empty:
                if self._client_gone() or self.server.closing.is_set():
                    raise Cut(reset=False) from None
                continue
            if word is None:
                return
            if isinstance(word, Cut):
                raise word
            line = _line(watcher, word) if isinstance(word, Change) else word
            if line:
                self._chunk(line)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _client_gone(self) -> bool:
        if isinstance(self.connection, ssl.SSLSocket):
            return False  # it cannot be looked into without reading; the next write tells
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""


def _line(watcher: Watcher, change: Change) -> bytes:
    if watcher.resource != change.key[0] or watcher.namespace not in ("", change.key[1]):
        return b""
    told = api_store.event_for(change, watcher.matches)
    return event(*told) if told else b""


def _decoded(request: Request):
    if not request.body:
        return {}
    try:
        return json.loads(request.body)
    except ValueError as e:
        raise Refused(400, "BadRequest", f"the body is not JSON: {e}") from None


def _patched(before: Object, patch, content_type: str) -> Object:
    if content_type == "application/json-patch+json":
        return api_store.json_patch(before, patch)
    if content_type == "application/merge-patch+json":
        return api_store.merge(before, patch)
    if content_type == "application/strategic-merge-patch+json":
        return api_store.strategic_merge(before, patch)
    raise Refused(415, "UnsupportedMediaType", f"patch of type {content_type!r}")
