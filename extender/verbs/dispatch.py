"""The verb `filter`: decode, look up, encode. No API call, no lock that waits, no log line."""

from collections.abc import Sequence
from http import HTTPStatus

from extender.counts import RequestResult
from extender.policy.exempt import Exemption, exemption_of
from extender.policy.snapshot import Answer, each_once
from extender.source import Source, Sync
from extender.verbs import wire
from extender.verbs.pods import NO_META, NO_SPEC, NOBODY, Pod, mask_of
from extender.verbs.reply import NOT_ANSWERED, Reply
from extender.why.attempts import Attempt, Attempts

_NOT_GIVEN = Answer([], {})


def answer_filter(source: Source, request: bytes | bytearray) -> Reply:
    """The answer to one ExtenderArgs. Never raises for what a request may hold."""
    try:
        args = wire.read_filter_args(request, whole=source.classes.needs_spec)
    except wire.MalformedError as e:
        return Reply(RequestResult.MALFORMED, wire.write_error(f"readygate: {e}"), status=HTTPStatus.BAD_REQUEST)
    except wire.UnanswerableError as e:
        return Reply(RequestResult.UNANSWERABLE, wire.write_error(str(e)))
    names = args.node_names or []
    pod = args.pod or NOBODY
    meta, spec = pod.metadata or NO_META, pod.spec or NO_SPEC
    exemption = exemption_of(
        source.exemptions,
        namespace=meta.namespace,
        labels=meta.labels,
        owners=meta.owner_references,
        priority_class=spec.priority_class_name,
        priority=spec.priority,
    )
    classes = source.classes
    mask = classes.all if classes.everybody else mask_of(classes, pod)
    if exemption is not Exemption.NONE:
        answer = Answer(each_once(names), {})
    elif (sync := source.sync()) is Sync.OK:
        answer = source.board.look_up(names, mask)
    else:
        result = NOT_ANSWERED[sync]
        if source.attempts is not None:
            _append(source.attempts, pod, names, _NOT_GIVEN, mask, unanswered=result)
        return Reply(result, wire.write_error(sync.value))
    # Where nothing is refused to the pod, no name was looked up.
    if "" in (answer.refused or (() if _looked_up(answer, mask) else answer.survivors)):
        return Reply(RequestResult.UNANSWERABLE, wire.write_error(wire.NAMELESS_NODE))
    if answer.refused:
        source.counts.refuse(answer.refused.values())
    if source.attempts is not None:
        _append(source.attempts, pod, names, answer, mask, exempt=exemption)
    written = wire.write_names(answer.survivors, answer.refused)
    return Reply(RequestResult.EXEMPT if exemption else RequestResult.ANSWERED, written, exemption)


def _looked_up(answer: Answer, mask: int) -> bool:
    return answer.snapshot is not None and mask & answer.snapshot.refusing != 0


def _append(
    attempts: Attempts,
    pod: Pod,
    names: Sequence[str],
    answer: Answer,
    mask: int,
    *,
    unanswered: str = "",
    exempt: str = "",
) -> None:
    """For whoever asks why: what was asked of the pod, and answered."""
    meta, status = pod.metadata or NO_META, pod.status
    attempts.add(
        Attempt(
            meta.namespace,
            meta.name,
            meta.uid,
            attempts.monotonic(),
            len(names),
            len(answer.survivors),
            answer.refused,
            names if attempts.keep_names else (),
            mask,
            answer.snapshot,
            unanswered,
            exempt,
            len(names) == 1 and status is not None and status.nominated_node_name == names[0],
            bool(answer.unknown),
        )
    )
