"""A request to its answer. No API call, no lock that waits, no log line."""

from http import HTTPStatus
from typing import Protocol

import msgspec

from extender.serve.allowed_hosts import Hosts, is_ours
from extender.serve.http import Answer, Refusal, Request
from extender.serve.limits import DISCARD_MAX_BYTES
from extender.verbs import table
from extender.verbs.counts import Lost, RequestResult
from extender.verbs.filter import reply_to_filter
from extender.verbs.reply import Reply, account
from extender.verbs.source import Source

FILTER = b"/filter"
_OTHERS = {b"/" + verb.encode(): verb for verb in table.VERBS if verb != table.FILTER}
_VERBS = frozenset({FILTER, *_OTHERS})
_GET = frozenset({b"GET", b"HEAD"})


# The answer, whether it is a verdict, and the reply for account() once it is sent.
Given = tuple[Answer, bool, Reply | None]


class Health(Protocol):
    """The health of the process, as JSON."""

    def live(self) -> tuple[bool, bytes]: ...
    def ready(self) -> tuple[bool, bytes]: ...


class Routes:
    """All paths of the port. hosts: the accepted Host headers, None = any."""

    def __init__(self, source: Source, health: Health, hosts: Hosts | None = None) -> None:
        self._source = source
        self._health = health
        self._hosts = hosts

    def answer(self, request: Request, *, may_ask: bool) -> Given:
        """Returns the answer to a request. may_ask: whether the client may call a verb."""
        hosts, host = self._hosts, request.host
        if hosts is not None and host and host not in hosts.usual and not is_ours(host, hosts):
            return _short(HTTPStatus.MISDIRECTED_REQUEST, "the Host header names another server"), False, None
        if request.target == FILTER and request.method == b"POST" and may_ask:
            return self._filter(request.body)
        path = path_of(request.target)
        if path in _VERBS:
            if not may_ask:
                return _short(HTTPStatus.FORBIDDEN, "no verb without a client certificate"), False, None
            if request.method != b"POST":
                return _not_allowed(b"POST"), False, None
            return self._filter(request.body) if path == FILTER else self._verb(_OTHERS[path], request.body)
        return self._other(request.method, path), False, None

    def account(self, reply: Reply, took_s: float) -> None:
        """Counts and records an answer of the verb filter. took_s: from the complete request to the complete answer."""
        counts = self._source.counts
        counts.answered_in(took_s)
        counts.count(reply.result)
        account(self._source, reply)

    def lost(self, cause: Lost, number: int = 1) -> None:
        """Counts connections that were closed because a resource was missing."""
        self._source.counts.lose(cause, number)

    def refuse(self, refusal: Refusal) -> Answer:
        """Returns the answer to a request that was not read completely."""
        path = path_of(refusal.target)
        if path not in _VERBS or refusal.status is HTTPStatus.FORBIDDEN:
            return _short(refusal.status, refusal.text)
        verb = _OTHERS.get(path, table.FILTER)
        reply = table.answer_unread(verb, refusal.status, refusal.text, skipped=refusal.rest_bytes <= DISCARD_MAX_BYTES)
        table.count(self._source.counts, verb, reply.result)
        return Answer(reply.status, reply.body)

    def _filter(self, body: bytes | bytearray) -> Given:
        reply = reply_to_filter(self._source, body)
        return Answer(reply.status, reply.body), reply.result in _VERDICTS, reply

    def _verb(self, verb: str, body: bytes | bytearray) -> Given:
        reply = table.VERBS[verb](self._source, body)
        self._source.counts.count_other(verb, reply.result)
        return Answer(reply.status, reply.body), reply.result in _VERDICTS, None

    def _other(self, method: bytes, path: bytes) -> Answer:
        found = {b"/livez": self._health.live, b"/readyz": self._health.ready}.get(path)
        if found is None:
            return _short(HTTPStatus.NOT_FOUND, "Not Found")
        if method not in _GET:
            return _not_allowed(b"GET, HEAD")
        good, body = found()
        return Answer(HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE, body)


_VERDICTS = frozenset({RequestResult.ANSWERED, RequestResult.EXEMPT})


def path_of(target: bytes) -> bytes:
    """Returns the path of a request target. `//filter` and `/filter/` are `/filter`: a redirect would turn
    kube-scheduler's POST into a GET, and a verb with a leading slash in its configuration gives two slashes."""
    path = target.partition(b"?")[0]
    if path.startswith((b"http://", b"https://")):  # the form of requests to a proxy
        path = b"/" + path.partition(b"//")[2].partition(b"/")[2]
    if b"//" in path or path.endswith(b"/"):
        path = b"/" + b"/".join(part for part in path.split(b"/") if part)
    return path


FAILED = Answer(HTTPStatus.INTERNAL_SERVER_ERROR, b'{"Error":"internal error"}')


def _not_allowed(allow: bytes) -> Answer:
    return _short(HTTPStatus.METHOD_NOT_ALLOWED, "Method Not Allowed", allow)


def _short(status: HTTPStatus, text: str, allow: bytes = b"") -> Answer:
    return Answer(status, msgspec.json.encode({"Error": text}), allow)
