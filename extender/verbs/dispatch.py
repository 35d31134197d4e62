"""The verb `filter`: decode, look up, encode. No API call, no lock that waits, no log line."""

from collections.abc import Sequence
from http import HTTPStatus

from extender.counts import RequestResult
from extender.policy.exempt import Exemption, exemption_of
from extender.policy.snapshot import Answer, each_once
from extender.source import Source, Sync
from extender.verbs import wire
from extender.verbs.reply import NOT_ANSWERED, Reply
from extender.why.attempts import Attempt, Attempts

_NOBODY = wire.Pod()
_NO_META = wire.PodMeta()
_NO_SPEC = wire.PodSpec()
_NOT_GIVEN = Answer([], {})


def answer_filter(source: Source, request: bytes | bytearray) -> Reply:
    """The answer to one ExtenderArgs. Never raises for what a request may hold."""
    try:
        args = wire.read_filter_args(request)
    except wire.MalformedError as e:
        return Reply(RequestResult.MALFORMED, wire.write_error(f"readygate: {e}"), status=HTTPStatus.BAD_REQUEST)
    except wire.UnanswerableError as e:
        return Reply(RequestResult.UNANSWERABLE, wire.write_error(str(e)))
    names = args.node_names or []
    pod = args.pod or _NOBODY
    meta, spec = pod.metadata or _NO_META, pod.spec or _NO_SPEC
    exemption = exemption_of(
        source.exemptions,
        namespace=meta.namespace,
        labels=meta.labels,
        owners=meta.owner_references,
        priority_class=spec.priority_class_name,
        priority=spec.priority,
    )
    if exemption is not Exemption.NONE:
        answer = Answer(each_once(names), {})
    elif (sync := source.sync()) is Sync.OK:
        answer = source.board.look_up(names)
    else:
        result = NOT_ANSWERED[sync]
        if source.attempts is not None:
            _append(source.attempts, pod, names, _NOT_GIVEN, unanswered=result)
        return Reply(result, wire.write_error(sync.value))
    if "" in (answer.survivors if exemption else answer.refused):
        return Reply(RequestResult.UNANSWERABLE, wire.write_error(wire.NAMELESS_NODE))
    if answer.refused:
        source.counts.refuse(answer.refused.values())
    if source.attempts is not None:
        _append(source.attempts, pod, names, answer, exempt=exemption)
    written = wire.write_names(answer.survivors, answer.refused)
    return Reply(RequestResult.EXEMPT if exemption else RequestResult.ANSWERED, written, exemption)


def _append(
    attempts: Attempts,
    pod: wire.Pod,
    names: Sequence[str],
    answer: Answer,
    *,
    unanswered: str = "",
    exempt: str = "",
) -> None:
    """For whoever asks why: what was asked of the pod, and answered."""
    meta, status = pod.metadata or _NO_META, pod.status
    attempts.add(
        Attempt(
            meta.namespace,
            meta.name,
            meta.uid,
            attempts.monotonic(),
            asked=len(names),
            survivors=len(answer.survivors),
            refused=answer.refused,
            names=names if attempts.keep_names else (),
            snapshot=answer.snapshot,
            unanswered=unanswered,
            exempt=exempt,
            nominated=status is not None and [status.nominated_node_name] == names,
        )
    )
