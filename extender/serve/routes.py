"""A request to its answer. No API call, no lock that waits, no log line."""

from http import HTTPStatus
from time import perf_counter
from typing import Protocol

import msgspec

from extender.counts import RequestResult
from extender.serve.hosts import Hosts, is_ours
from extender.serve.http import Answer, Refusal, Request
from extender.serve.limits import DISCARD_MAX_BYTES
from extender.source import Source
from extender.verbs import wire
from extender.verbs.dispatch import answer_filter

FILTER = b"/filter"
_GET = frozenset({b"GET", b"HEAD"})
# What kube-scheduler is to show to a user must come as 200 with `Error`: it does not read the body of anything else.
_UNREAD = {
    HTTPStatus.REQUEST_TIMEOUT: RequestResult.TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: RequestResult.TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: RequestResult.ENCODED,
}


class Health(Protocol):
    """What the process says of itself, as JSON."""

    def live(self) -> tuple[bool, bytes]: ...
    def ready(self) -> tuple[bool, bytes]: ...


class Routes:
    """hosts: what a Host header may say, None = anything."""

    def __init__(self, source: Source, health: Health, hosts: Hosts | None = None) -> None:
        self._source = source
        self._health = health
        self._hosts = hosts

    def answer(self, request: Request, *, may_ask: bool) -> tuple[Answer, bool]:
        """The answer, and whether it is a verdict. may_ask: whether the client may ask a verb."""
        hosts, host = self._hosts, request.host
        if hosts is not None and host and host not in hosts.usual and not is_ours(host, hosts):
            return _short(HTTPStatus.MISDIRECTED_REQUEST, "the Host header names somebody else"), False
        path = request.target if request.target == FILTER else path_of(request.target)
        if path == FILTER and not may_ask:
            return _short(HTTPStatus.FORBIDDEN, "no verb without a client certificate"), False
        if path == FILTER and request.method == b"POST":
            return self._filter(request.body)
        return self._other(request.method, path), False

    def refuse(self, refusal: Refusal) -> Answer:
        """The answer to a request that was not read to its end."""
        if path_of(refusal.target) != FILTER:
            return _short(refusal.status, refusal.text)
        self._source.counts.count(_UNREAD.get(refusal.status, RequestResult.MALFORMED))
        if refusal.status is HTTPStatus.REQUEST_ENTITY_TOO_LARGE and refusal.rest_bytes <= DISCARD_MAX_BYTES:
            return Answer(HTTPStatus.OK, wire.write_error(wire.TOO_LARGE))
        return Answer(refusal.status, wire.write_error(f"readygate: {refusal.text}"))

    def _filter(self, body: bytes | bytearray) -> tuple[Answer, bool]:
        began = perf_counter()
        reply = answer_filter(self._source, body)
        counts, result = self._source.counts, reply.result
        counts.answered_in(perf_counter() - began)
        counts.count(result)
        status = HTTPStatus.BAD_REQUEST if result is RequestResult.MALFORMED else HTTPStatus.OK
        return Answer(status, reply.body), result is RequestResult.ANSWERED or result is RequestResult.EXEMPT

    def _other(self, method: bytes, path: bytes) -> Answer:
        if path == FILTER:
            return _not_allowed(b"POST")
        found = {b"/livez": self._health.live, b"/readyz": self._health.ready}.get(path)
        if found is None:
            return _short(HTTPStatus.NOT_FOUND, "Not Found")
        if method not in _GET:
            return _not_allowed(b"GET, HEAD")
        good, body = found()
        return Answer(HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE, body)


def path_of(target: bytes) -> bytes:
    """The path of a request target. `//filter` and `/filter/` are `/filter`: a redirect would turn kube-scheduler's
    POST into a GET, and a verb with a leading slash in its configuration gives two.
    """
    path = target.partition(b"?")[0]
    if path.startswith((b"http://", b"https://")):  # as to a proxy
        path = b"/" + path.partition(b"//")[2].partition(b"/")[2]
    if b"//" in path or path.endswith(b"/"):
        path = b"/" + b"/".join(part for part in path.split(b"/") if part)
    return path


FAILED = Answer(HTTPStatus.INTERNAL_SERVER_ERROR, b'{"Error":"internal error"}')


def _not_allowed(allow: bytes) -> Answer:
    return _short(HTTPStatus.METHOD_NOT_ALLOWED, "Method Not Allowed", allow)


def _short(status: HTTPStatus, text: str, allow: bytes = b"") -> Answer:
    return Answer(status, msgspec.json.encode({"Error": text}), allow)
