"""Which function answers which verb, and the answer to a request that was not read completely."""

from collections.abc import Callable, Mapping
from http import HTTPStatus

from extender.verbs import wire
from extender.verbs.counts import Counts, RequestResult
from extender.verbs.filter import answer_filter
from extender.verbs.preempt import answer_preempt
from extender.verbs.prioritize import answer_prioritize
from extender.verbs.reply import Reply, failed
from extender.verbs.source import Source

FILTER = "filter"
NOT_A_BINDER = "readygate: not a binder: take bindVerb out of this extender in the scheduler configuration"

UNREAD = {
    HTTPStatus.REQUEST_TIMEOUT: RequestResult.TIMEOUT,
    HTTPStatus.SERVICE_UNAVAILABLE: RequestResult.TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: RequestResult.TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: RequestResult.ENCODED,
}


def answer_bind(_source: Source, _request: bytes | bytearray) -> Reply:
    """Refuses every request, because kube-scheduler binds."""
    return Reply(RequestResult.UNANSWERABLE, b'{"Error":"%b"}' % NOT_A_BINDER.encode())


Answerer = Callable[[Source, bytes | bytearray], Reply]
VERBS: Mapping[str, Answerer] = {
    FILTER: answer_filter,
    "preempt": answer_preempt,
    "prioritize": answer_prioritize,
    "bind": answer_bind,
}


def answer_unread(verb: str, status: HTTPStatus, text: str, *, skipped: bool) -> Reply:
    """Returns the answer to a request that was not read completely. status: the HTTP status with the cause. skipped:
    the rest of the request is read and dropped, so that the client receives the answer.

    A body that is too large is answered with 200 if the verb has an `Error`: kube-scheduler reads nothing else.
    """
    result = UNREAD.get(status, RequestResult.MALFORMED)
    text = f"readygate: {text}"
    if verb != FILTER:
        return failed(result, status, text)
    if result is RequestResult.TOO_LARGE and skipped:
        return Reply(result, wire.write_error(wire.TOO_LARGE))
    return Reply(result, wire.write_error(text), status=status)


def count(counts: Counts, verb: str, result: RequestResult) -> None:
    if verb == FILTER:
        counts.count(result)
    else:
        counts.count_other(verb, result)
