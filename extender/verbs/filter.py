"""The verb `filter`: decodes a request, looks up its names, encodes the answer. It makes no API call, waits for no lock
and logs nothing."""

from collections import Counter
from collections.abc import Sequence
from http import HTTPStatus

from extender.policy.exempt import Exemption
from extender.policy.snapshot import Answer, each_once
from extender.verbs import wire
from extender.verbs.counts import RequestResult
from extender.verbs.pods import NO_META, NOBODY, Pod, mask_of
from extender.verbs.reply import NOT_ANSWERED, Reply, account, exemption_of, is_canary, names_max_of
from extender.verbs.source import Source, Sync
from extender.why.attempts import Attempt, Attempts
from kube import contract

_NOT_GIVEN = Answer([], {})
NODE_NAME_MAX = 253  # characters; the limit of Kubernetes
_NOT_EXEMPT, _IN_SYNC = Exemption.NONE, Sync.OK  # local names, because each call looks them up
_ANSWERED, _OK = RequestResult.ANSWERED, HTTPStatus.OK


def answer_filter(source: Source, request: bytes | bytearray) -> Reply:
    """Returns the answer to one ExtenderArgs, counted and recorded. Never raises for any content of a request."""
    reply = reply_to_filter(source, request)
    account(source, reply)
    return reply


def reply_to_filter(source: Source, request: bytes | bytearray) -> Reply:
    """Returns the answer without counting and recording it, which is account(). Refusals are noted for the kick already
    here: a release that follows must not miss them."""
    try:
        return _answer(source, request)
    except wire.MalformedError as e:
        return Reply(RequestResult.MALFORMED, wire.write_error(f"readygate: {e}"), status=HTTPStatus.BAD_REQUEST)
    except wire.UnanswerableError as e:
        return Reply(RequestResult.UNANSWERABLE, wire.write_error(str(e)))
    except wire.TooManyNodesError as e:
        return Reply(RequestResult.TOO_LARGE, wire.write_error(str(e)), status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


def _answer(source: Source, request: bytes | bytearray) -> Reply:
    """Answers a request, by its bytes if possible, else decoded. Raises RequestError."""
    classes, attempts, sync = source.classes, source.attempts, source.sync()
    names_max = names_max_of(source, sync, request)
    written = wire.read_as_written(request, whole=classes.needs_spec)
    if written is not None and sync is _IN_SYNC and exemption_of(source, written.pod) is _NOT_EXEMPT:
        reply = _answer_written(source, written, names_max)
        if reply is not None:
            return reply
    else:
        wire.refuse_too_many(request, names_max)
    args = wire.read_filter_args(request, whole=classes.needs_spec, names_max=names_max)
    pod = args.pod or NOBODY
    exemption = exemption_of(source, pod)
    mask = classes.all if classes.everybody else mask_of(classes, pod)
    if exemption is not _NOT_EXEMPT:
        sync = _IN_SYNC
    names = args.node_names or []
    if exemption is not _NOT_EXEMPT:
        if exemption is Exemption.READYGATE and is_canary(source, pod):
            return _refused_everywhere(names)
        answer = Answer(each_once(names), {})
    elif sync is _IN_SYNC:
        answer = source.board.look_up(names, mask)
    else:
        result = NOT_ANSWERED[sync]
        attempt = None if attempts is None else _attempt(attempts, pod, names, _NOT_GIVEN, mask, unanswered=result)
        return Reply(result, wire.write_error(sync.value), attempt=attempt)
    # If nothing is refused to the pod, no name was looked up.
    if "" in (answer.refused or (() if _looked_up(answer, mask) else answer.survivors)):
        return Reply(RequestResult.UNANSWERABLE, wire.write_error(wire.NAMELESS_NODE))
    return Reply(
        RequestResult.EXEMPT if exemption else RequestResult.ANSWERED,
        wire.write_names(answer.survivors, answer.refused),
        exemption,
        reasons=Counter(answer.refused.values()),
        attempt=None if attempts is None else _attempt(attempts, pod, names, answer, mask, exempt=exemption),
    )


def _refused_everywhere(names: Sequence[str]) -> Reply:
    """Refuses all nodes to a canary. The canary closes no node, so this is neither counted nor recorded, and no kick
    follows."""
    if "" in names:
        return Reply(RequestResult.UNANSWERABLE, wire.write_error(wire.NAMELESS_NODE))
    return Reply(_ANSWERED, wire.write_names([], dict.fromkeys(names, contract.CANARY_REFUSED)))


def _answer_written(source: Source, written: wire.WrittenArgs, names_max: int) -> Reply | None:
    """Answers without decoding or encoding a name, if all names are known, as nearly always. Returns None if names must
    be decoded. Raises TooManyNodesError."""
    pod, names, classes, attempts = written.pod, written.names, source.classes, source.attempts
    mask = classes.all if classes.everybody else mask_of(classes, pod)
    asked = names.split(b",", names_max)  # names beyond the limit stay in one piece
    if len(asked) > names_max:
        raise wire.TooManyNodesError(names_max)
    if (attempts is not None and attempts.keep_names) or len(asked) == 1:
        return None
    found = source.board.look_up_spelled(asked, mask)
    if found is None:
        return None
    survivors, closed, refused = found[0]
    if closed:
        names = b",".join(survivors)
    body = wire.write_spelled(names, refused.told)
    return Reply(_ANSWERED, body, _NOT_EXEMPT, _OK, refused.reasons, None, (written, asked, found, mask))


def _looked_up(answer: Answer, mask: int) -> bool:
    return answer.snapshot is not None and mask & answer.snapshot.refusing != 0


def _of_nodes(refused: dict[str, str]) -> dict[str, str]:
    """Drops texts that cannot be node names: a request may hold texts of 32 MiB, and no memory is reserved for them."""
    return {name: reason for name, reason in refused.items() if len(name) <= NODE_NAME_MAX and name.isascii()}


def _attempt(
    attempts: Attempts,
    pod: Pod,
    names: Sequence[str],
    answer: Answer,
    mask: int,
    *,
    unanswered: str = "",
    exempt: str = "",
) -> Attempt:
    """Returns the record of this request and its answer for `readygate why`."""
    meta, status = pod.metadata or NO_META, pod.status
    return Attempt(
        meta.namespace,
        meta.name,
        meta.uid,
        attempts.monotonic(),
        len(names),
        len(answer.survivors),
        _of_nodes(answer.refused) if answer.unknown else answer.refused,
        names if attempts.keep_names else (),
        mask,
        answer.snapshot,
        unanswered,
        exempt,
        len(names) == 1 and status is not None and status.nominated_node_name == names[0],
        bool(answer.unknown),
    )
