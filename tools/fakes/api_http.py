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
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from tools.fakes import api_patches, api_requests, api_store, api_words
from tools.fakes.api_requests import Request, Target
from tools.fakes.api_store import ApiStore, Change
from tools.fakes.api_words import Object, Refused

_LOOK_S = 0.05  # how often an idle watch looks whether its client is still there
_TOKEN = "token-"  # how each continue token begins
_tokens = itertools.count(1)


class Cut(Exception):  # noqa: N818 - what is done, not an error
    """End the connection without an answer; reset: with RST instead of FIN."""

    def __init__(self, *, reset: bool) -> None:
        self.reset = reset


@dataclass(eq=False)
class Watcher:
    """Items of `inbox`: bytes to send as they are, a Change, None for a clean end, a Cut. after: the version it began
    at; what is told late was in its list."""

    resource: str
    namespace: str
    matches: Callable[[Object], bool]
    bookmarks: bool
    shaped: Callable[[Object], Object] = lambda value: value
    after: int = 0
    inbox: queue.Queue = field(default_factory=queue.Queue)


def event(kind: str, value: object) -> bytes:
    return json.dumps({"type": kind, "object": value}).encode() + b"\n"


def bookmark(resource: str, version: int) -> bytes:
    """As the API server sends it: an otherwise empty object, with nulls a typed decoder may stumble over."""
    api_version, kind = api_words.KINDS[resource]
    meta = {"resourceVersion": str(version), "creationTimestamp": None}
    return event("BOOKMARK", {"kind": kind, "apiVersion": api_version, "metadata": meta, "spec": {"containers": None}})


@dataclass(frozen=True)
class Page:
    """What is left of a list. present: the same part of what is there now."""

    version: int
    items: list[Object]
    present: Callable[[], list[Object]]

    def after(self, first: Object) -> Callable[[], list[Object]]:
        """`present`, from this object on."""
        start = _place(first)
        return lambda: [item for item in self.present() if _place(item) >= start]


def _place(item: Object) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


class Fault(Protocol):
    """Instead of an answer. May raise Cut."""

    def act(self, handler: "Handler") -> None: ...


class Server(Protocol):
    """What the connections of one API server share. `changed` guards all of it; `closing` ends what waits."""

    store: ApiStore
    pages: dict[str, Page]  # rest of a list by continue token
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
            if not url.path.startswith(("/api/", "/apis/")):
                self.send_body(404, b"404 page not found\n", {}, content_type="text/plain")
                return
            target = api_requests.target(url.path)
            shaped = api_requests.shape(self.headers.get("Accept", ""))
            if request.is_watch and not target.name:
                self._watch(target, query, shaped)
            else:
                code, answer = self._answer(request, target)
                self.send_json(code, shaped(answer))
        except Refused as e:
            self.send_json(e.code, e.status)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 - the names http.server calls

    def log_message(self, *_: object) -> None:
        return

    # What faults do

    def send_json(self, code: int, value: object) -> None:
        self.send_body(code, json.dumps(value).encode(), {})

    def send_body(
        self, code: int, body: bytes, headers: Mapping[str, str], *, content_type: str = "application/json"
    ) -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
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

    def drip(self, answer: bytes, pause_s: float, size: int) -> None:
        for i in range(0, len(answer), size):
            self.wfile.write(answer[i : i + size])
            if self.server.closing.wait(pause_s):
                break
        self.close_connection = True

    # The API

    def _check_token(self) -> None:
        tokens = self.server.tokens
        if tokens is not None and self.headers.get("Authorization", "").removeprefix("Bearer ") not in tokens:
            raise Refused(401, "Unauthorized", "Unauthorized")

    def _answer(self, request: Request, target: Target) -> tuple[int, Object]:
        store = self.server.store
        with self.server.changed:
            if request.method == "GET":
                return 200, store.get(target.key) if target.name else self._list(target, request.query)
            if (request.method == "POST") != (not target.name or target.subresource == "binding"):
                raise api_words.no_such_method()
            if request.method == "PATCH":
                return 200, self._patch(request, target)
            given = api_requests.decoded(request, target.resource)
            if request.method == "POST":
                if target.subresource == "binding":
                    return 201, self._bind(target, given)
                return 201, store.create(target.resource, target.namespace, given)
            if request.method == "PUT":
                return self._replace(target, given)
            wanted = given.get("preconditions") or {}
            grace_s = given.get("gracePeriodSeconds")
            if grace_s is None and "gracePeriodSeconds" in request.query:
                grace_s = int(request.query["gracePeriodSeconds"])
            version = wanted.get("resourceVersion")
            return 200, store.delete(target.key, grace_s=grace_s, uid=wanted.get("uid"), version=version)

    def _replace(self, target: Target, given: Object) -> tuple[int, Object]:
        name = (given.get("metadata") or {}).get("name")
        if name != target.name:
            message = f"the name of the object ({name}) does not match the name on the URL ({target.name})"
            raise api_words.bad_request(message)
        if target.resource == "leases" and target.key not in self.server.store.objects:
            return 201, self.server.store.create(target.resource, target.namespace, given)
        return 200, self.server.store.update(target.key, given, subresource=target.subresource)

    def _patch(self, request: Request, target: Target) -> Object:
        patch = _PATCHES.get(request.headers.get("Content-Type", ""))
        if patch is None:
            raise api_words.unsupported()
        before = self.server.store.get(target.key)
        try:
            change = json.loads(request.body)
        except ValueError as e:
            raise api_words.bad_request(f"error decoding patch: {api_requests.as_go_says(e)}") from None
        return self.server.store.update(target.key, patch(before, change), subresource=target.subresource, patched=True)

    def _bind(self, target: Target, given: Object) -> Object:
        pod = self.server.store.get(target.key)
        if there := (pod.get("spec") or {}).get("nodeName"):
            why = f'pod {target.name} is already assigned to node "{there}"'
            message = f'Operation cannot be fulfilled on pods/binding "{target.name}": {why}'
            raise Refused(409, "Conflict", message, {"name": target.name, "kind": "pods/binding"})
        node = given["target"]["name"]
        scheduled = {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": api_store.TIME}]}
        bound = api_patches.strategic_merge(pod, {"spec": {"nodeName": node}, "status": scheduled})
        self.server.store.update(target.key, bound, force=True)
        return api_words.success(code=201)

    def _list(self, target: Target, query: Mapping[str, str]) -> Object:
        limit = api_requests.whole_number(query.get("limit") or "0")
        page = self._page(query["continue"]) if query.get("continue") else self._first_page(target, query)
        meta: Object = {"resourceVersion": str(page.version)}
        items = page.items
        if limit and len(items) > limit:
            rest = items[limit:]
            meta["continue"] = self._token(Page(page.version, rest, page.after(rest[0])))
            if not query.get("labelSelector") and not query.get("fieldSelector"):
                meta["remainingItemCount"] = len(rest)
            items = items[:limit]
        api_version, kind = api_words.KINDS[target.resource]
        bare = [{k: v for k, v in item.items() if k not in ("kind", "apiVersion")} for item in items]
        return {"kind": f"{kind}List", "apiVersion": api_version, "metadata": meta, "items": bare}

    def _first_page(self, target: Target, query: Mapping[str, str]) -> "Page":
        store = self.server.store
        matches = api_store.selector(query.get("labelSelector", ""), query.get("fieldSelector", ""))

        def present() -> list[Object]:
            return store.select(target.resource, target.namespace, matches)

        return Page(store.version, present(), present)

    def _page(self, token: str) -> "Page":
        if not token.startswith(_TOKEN):
            why = "continue key is not valid: illegal base64 data at input byte 0"
            raise api_words.bad_request(f"invalid continue token: {why}")
        page = self.server.pages.get(token)
        if page is None:
            raise api_words.expired_token("")
        if page.version < self.server.store.floor:  # one may go on with what is there now
            raise api_words.expired_token(self._token(Page(self.server.store.version, page.present(), page.present)))
        return page

    def _token(self, page: "Page") -> str:
        token = f"{_TOKEN}{next(_tokens)}"
        self.server.pages[token] = page
        return token

    def _watch(self, target: Target, query: Mapping[str, str], shaped: Callable[[Object], Object]) -> None:
        ends = time.monotonic() + float(query.get("timeoutSeconds") or 1800)
        watcher = Watcher(
            target.resource,
            target.namespace,
            api_store.selector(query.get("labelSelector", ""), query.get("fieldSelector", "")),
            query.get("allowWatchBookmarks") in ("1", "true"),
            shaped,
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
                first = [event("ADDED", watcher.shaped(value)) for value in present]
            elif not version.isdecimal():
                raise api_words.invalid_version(version)
            elif int(version) < store.floor:
                if not self.server.gone_as_event:
                    raise Refused(410, "Expired", f"too old resource version: {version} ({store.floor})")
                watcher.inbox.put(None)
                too_old = Refused(410, "Expired", f"too old resource version: {version} ({store.floor})")
                return [event("ERROR", too_old.status)]
            else:
                told = self.server.told(store.changes(int(version)))
                first = [line for change in told if (line := _line(watcher, change))]
                watcher.after = min(int(version), store.version)
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
    return event(told[0], watcher.shaped(told[1])) if told else b""


_PATCHES: Mapping[str, Callable[[Object, Any], Object]] = {
    "application/json-patch+json": api_patches.json_patch,
    "application/merge-patch+json": api_patches.merge,
    "application/strategic-merge-patch+json": api_patches.strategic_merge,
}
