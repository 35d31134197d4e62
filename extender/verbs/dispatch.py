"""POST /filter: read, look up, write. No API call, no lock that waits; logs only its own bugs."""

import logging
from collections.abc import Callable, Iterable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

from extender.counts import RequestResult
from extender.policy.exempt import Exemption, exemption_of
from extender.policy.snapshot import Answer, each_once
from extender.source import Source, Sync
from extender.verbs import body, wire
from kube.media_types import JSON

log = logging.getLogger(__name__)

StartResponse = Callable[..., object]
Wsgi = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]

# What kube-scheduler is to show to a user must come as 200 with `Error`: it does not read the body of anything else.
STATUS = {
    RequestResult.MALFORMED: "400 Bad Request",
    RequestResult.TIMEOUT: "408 Request Timeout",
    RequestResult.TOO_LARGE: "413 Content Too Large",
    RequestResult.ENCODED: "415 Unsupported Media Type",
}
NOT_ALLOWED = "405 Method Not Allowed"
FAILED = "500 Internal Server Error"
NOT_ANSWERED = {Sync.NOT_SYNCED: RequestResult.NOT_SYNCED, Sync.STALE: RequestResult.STALE}
_NOBODY = wire.PodMeta()
_NO_SPEC = wire.PodSpec()


def answering_filter(source: Source, application: Wsgi) -> Wsgi:
    """POST /filter is answered before Flask, whose routing and contexts cost more than all the rest of the answer."""

    def answer_or_pass(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/filter":
            return application(environ, start_response)
        headers = [("Content-Type", JSON)]
        if environ["REQUEST_METHOD"] != "POST":
            status, answer = NOT_ALLOWED, b'{"Error":"Method Not Allowed"}'
            headers.append(("Allow", "POST"))
        else:
            try:
                reply = reply_to_filter(source, environ)
                status, answer = STATUS.get(reply.result, "200 OK"), reply.body
            except Exception:
                log.exception("filter failed")
                status, answer = FAILED, b'{"Error":"internal error"}'
        headers.append(("Content-Length", str(len(answer))))
        start_response(status, headers)
        return () if environ["REQUEST_METHOD"] == "HEAD" else (answer,)

    return answer_or_pass


class Reply(NamedTuple):
    """body: JSON. result: what is counted, and decides the status. exemption: why nothing was refused, if so."""

    result: RequestResult
    body: bytes
    exemption: Exemption = Exemption.NONE


def reply_to_filter(source: Source, environ: Mapping[str, Any]) -> Reply:
    """Reads the body of a WSGI request, answers it and counts it. Raises nothing for what a client may do."""
    try:
        with body.whole_body(environ) as request:
            began = perf_counter()
            reply = answer_filter(source, request)
            source.counts.answered_in(perf_counter() - began)
    except body.BodyError as e:
        reply = Reply(_unread(e), wire.write_error(f"readygate: {e}"))
    source.counts.count(reply.result)
    return reply


def _unread(error: body.BodyError) -> RequestResult:
    if isinstance(error, body.TooLargeError):
        return RequestResult.TOO_LARGE
    if isinstance(error, body.EncodedError):
        return RequestResult.ENCODED
    return RequestResult.TIMEOUT if isinstance(error, body.StalledError) else RequestResult.MALFORMED


def answer_filter(source: Source, request: bytes) -> Reply:
    """The answer to one ExtenderArgs. Never raises for what a request may hold."""
    try:
        args = wire.read_filter_args(request)
        item_names = None if args.nodes is None else wire.names_of(args.nodes.items or ())
    except wire.MalformedError as e:
        return Reply(RequestResult.MALFORMED, wire.write_error(f"readygate: {e}"))
    except wire.UnanswerableError as e:
        return Reply(RequestResult.UNANSWERABLE, wire.write_error(str(e)))
    if item_names is None and len(request) > wire.BODY_LIMIT_NAMES_BYTES:
        return Reply(
            RequestResult.TOO_LARGE, wire.write_error(f"readygate: more than {wire.BODY_LIMIT_NAMES_BYTES} bytes")
        )
    names = (args.node_names if item_names is None else [*(args.node_names or ()), *item_names]) or []

    exemption = _exemption(source, args.pod)
    if exemption is not Exemption.NONE:
        answer = Answer(each_once(names), {})
    elif (sync := source.sync()) is Sync.OK:
        answer = source.board.look_up(names)
    else:
        return Reply(NOT_ANSWERED[sync], wire.write_error(sync.value))
    if "" in (answer.survivors if exemption else answer.refused):
        return Reply(RequestResult.UNANSWERABLE, wire.write_error(wire.NAMELESS_NODE))
    if answer.refused:
        source.counts.refuse(answer.refused.values())
    if args.nodes is None or item_names is None:
        written = wire.write_names(answer.survivors, answer.refused)
    else:
        written = _write_nodes(args, args.nodes, item_names, answer.survivors, answer.refused)
    return Reply(RequestResult.EXEMPT if exemption else RequestResult.ANSWERED, written, exemption)


def _write_nodes(
    args: wire.FilterArgs, nodes: wire.NodeList, item_names: list[str], survivors: list[str], refused: dict[str, str]
) -> bytes:
    """Whole nodes, byte for byte as they came; if names were asked for as well, the same verdicts in names too."""
    by_name = dict(zip(reversed(item_names), reversed(nodes.items or ()), strict=True))  # the first of a name stays
    items = [by_name[name] for name in survivors if name in by_name]
    if args.node_names is None:
        return wire.write_nodes(nodes.metadata, items, None, refused)
    asked = set(args.node_names)
    return wire.write_nodes(nodes.metadata, items, [name for name in survivors if name in asked], refused)


def _exemption(source: Source, pod: wire.Pod | None) -> Exemption:
    meta = _NOBODY if pod is None or pod.metadata is None else pod.metadata
    spec = _NO_SPEC if pod is None or pod.spec is None else pod.spec
    return exemption_of(
        source.exemptions,
        namespace=meta.namespace,
        labels=meta.labels,
        owners=meta.owner_references,
        priority_class=spec.priority_class_name,
        priority=spec.priority,
    )
