"""The verb `prioritize`: gives a lower score to nodes that a gate of severity `preferNot` has closed.

The answer is an array with one entry a name and integers from 0 to 10. kube-scheduler multiplies them by the extender's
weight and by ten. It ignores the whole answer if anything else is in it. If readygate cannot score, the array is empty.
"""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from extender.policy.snapshot import SCORE_OPEN, each_once
from extender.verbs import wire
from extender.verbs.counts import RequestResult
from extender.verbs.pods import mask_of
from extender.verbs.reply import NOT_ANSWERED, Reply, exemption_of, failed, names_max_of
from extender.verbs.source import Source, Sync

NO_SCORES = b"[]"


class HostPriority(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    host: str
    score: int


def answer_prioritize(source: Source, request: bytes | bytearray) -> Reply:
    """Returns the answer to one ExtenderArgs. Never raises for any content of a request."""
    sync = source.sync()
    names_max = names_max_of(source, sync, request)
    try:
        wire.refuse_too_many(request, names_max)
        args = wire.read_filter_args(request, whole=source.classes.needs_spec, names_max=names_max)
    except wire.MalformedError as e:
        return failed(RequestResult.MALFORMED, HTTPStatus.BAD_REQUEST, f"readygate: {e}")
    except wire.UnanswerableError as e:
        return failed(RequestResult.UNANSWERABLE, HTTPStatus.BAD_REQUEST, str(e))
    except wire.TooManyNodesError as e:
        return failed(RequestResult.TOO_LARGE, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, str(e))
    names = each_once(args.node_names or [])
    if "" in names:
        return failed(RequestResult.UNANSWERABLE, HTTPStatus.BAD_REQUEST, wire.NAMELESS_NODE)
    exempt = exemption_of(source, args.pod)
    if exempt:
        return Reply(RequestResult.EXEMPT, _write(dict.fromkeys(names, SCORE_OPEN)), exempt)
    if sync is not Sync.OK:
        return Reply(NOT_ANSWERED[sync], NO_SCORES)
    return Reply(RequestResult.ANSWERED, _write(source.board.score(names, mask_of(source.classes, args.pod))))


def _write(scores: Mapping[str, int]) -> bytes:
    return msgspec.json.encode([HostPriority(name, score) for name, score in scores.items()])
