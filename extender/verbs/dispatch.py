"""POST /filter: read, decide, write. No API call, no lock that waits, no line of log but for a defect of ours."""

import logging
from collections.abc import Callable, Iterable, Mapping
from time import perf_counter
from typing import Any

from extender.cluster.index import UNKNOWN_NODE
from extender.metrics import Result
from extender.policy.exempt import NOT_EXEMPT, exemption
from extender.policy.verdict import OPEN
from extender.services import NOT_SYNCED, Services
from extender.verbs import body, wire
from extender.verbs.filter import split
from kube.media_types import JSON

log = logging.getLogger(__name__)

StartResponse = Callable[..., object]
Wsgi = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]

# What kube-scheduler is to show to a user must come as 200 with `Error`: it does not read the body of anything else.
STATUS = {
    Result.MALFORMED: "400 Bad Request",
    Result.TIMEOUT: "408 Request Timeout",
    Result.TOO_LARGE: "413 Content Too Large",
    Result.ENCODED: "415 Unsupported Media Type",
}
NOT_ALLOWED = "405 Method Not Allowed"
FAILED = "500 Internal Server Error"
_NO_REASONS: dict[str, str] = {}
_NOBODY = wire.PodMeta()
_NO_SPEC = wire.PodSpec()


def before_flask(bundle: Services, application: Wsgi) -> Wsgi:
    """POST /filter, answered before Flask: its routing and contexts cost more than all the rest of the answer."""

    def answer_or_pass(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/filter":
            return application(environ, start_response)
        headers = [("Content-Type", JSON)]
        if environ["REQUEST_METHOD"] != "POST":
            status, answer = NOT_ALLOWED, b'{"Error":"Method Not Allowed"}'
            headers.append(("Allow", "POST"))
        else:
            try:
                result, answer = filter_reply(bundle, environ)
                status = STATUS.get(result, "200 OK")
            except Exception:
                log.exception("filter failed")
                status, answer = FAILED, b'{"Error":"internal error"}'
        headers.append(("Content-Length", str(len(answer))))
        start_response(status, headers)
        return () if environ["REQUEST_METHOD"] == "HEAD" else (answer,)

    return answer_or_pass


def filter_reply(bundle: Services, environ: Mapping[str, Any]) -> tuple[Result, bytes]:
    """Reads the request, answers it and counts it."""
    try:
        with body.reading(environ) as sent:
            began = perf_counter()
            result, answer = answer_filter(bundle, sent)
            bundle.metrics.observe_filter(perf_counter() - began)
    except body.BodyError as e:
        result, answer = _unread(e), wire.write_error(f"readygate: {e}")
    bundle.metrics.count_filter[result]()
    return result, answer


def _unread(error: body.BodyError) -> Result:
    if isinstance(error, body.TooLargeError):
        return Result.TOO_LARGE
    if isinstance(error, body.EncodedError):
        return Result.ENCODED
    return Result.TIMEOUT if isinstance(error, body.StalledError) else Result.MALFORMED


def answer_filter(bundle: Services, sent: bytes) -> tuple[Result, bytes]:
    """The answer to one ExtenderArgs. Never raises for what a request may hold."""
    try:
        args = wire.read_filter_args(sent)
        item_names = None if args.nodes is None else wire.names_of(args.nodes.items or ())
    except wire.MalformedError as e:
        return Result.MALFORMED, wire.write_error(f"readygate: {e}")
    except wire.UnanswerableError as e:
        return Result.UNANSWERABLE, wire.write_error(str(e))
    if item_names is None and len(sent) > wire.BODY_LIMIT_NAMES_BYTES:
        return Result.TOO_LARGE, wire.write_error(f"readygate: more than {wire.BODY_LIMIT_NAMES_BYTES} bytes")
    names = args.node_names if item_names is None else [*(args.node_names or ()), *item_names]
    names = names or []

    exempt = _exemption(bundle, args.pod) != NOT_EXEMPT
    if not exempt and (blind := bundle.blind()):
        return Result.NOT_SYNCED if blind == NOT_SYNCED else Result.STALE, wire.write_error(blind)
    releases = bundle.index.releases
    if exempt:
        survivors, refused = split(names, _NO_REASONS, OPEN)
        nameless = "" in survivors
    else:
        survivors, refused = split(names, bundle.index.reasons, UNKNOWN_NODE)
        nameless = "" in refused
    if nameless:
        return Result.UNANSWERABLE, wire.write_error(wire.NAMELESS_NODE)
    if refused:
        bundle.index.remember_refusals(refused, releases)
        bundle.metrics.count_refused(refused.values())
    result = Result.EXEMPT if exempt else Result.ANSWERED
    if args.nodes is None or item_names is None:
        return result, wire.write_names(survivors, refused)
    return result, _write_nodes(args, args.nodes, item_names, survivors, refused)


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


def _exemption(bundle: Services, pod: wire.Pod | None) -> str:
    meta = _NOBODY if pod is None or pod.metadata is None else pod.metadata
    spec = _NO_SPEC if pod is None or pod.spec is None else pod.spec
    return exemption(
        bundle.exemptions,
        namespace=meta.namespace,
        labels=meta.labels,
        owners=meta.owner_references,
        priority_class=spec.priority_class_name,
        priority=spec.priority,
    )
