"""What a verb gives back, and what all verbs ask of the pod."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from extender.policy import exempt
from extender.policy.encoded_names import Sorted
from extender.policy.exempt import Exemption
from extender.policy.snapshot import Snapshot
from extender.verbs import wire
from extender.verbs.counts import RequestResult
from extender.verbs.pods import NO_META, NO_SPEC, Pod
from extender.verbs.source import Source, Sync
from extender.why.attempts import Attempt

NOT_ANSWERED = {Sync.NOT_SYNCED: RequestResult.NOT_SYNCED, Sync.STALE: RequestResult.STALE}


_NOTHING: Mapping[str, int] = {}
# What was asked, its names, how they were sorted out and by which snapshot, for which gates.
Found = tuple[wire.WrittenArgs, list[bytes], tuple[Sorted, Snapshot], int]


class Reply(msgspec.Struct, frozen=True, gc=False):
    """body: JSON. result: what is counted. exemption: why nothing was refused, if so.

    status: kube-scheduler reads the body of 200 only. `filter` and `bind` tell of failures in a 200 with `Error`; an
    answer of `preempt` and `prioritize` has no place for one, so there it is the status that tells.

    reasons, attempt: what account() is to count and remember; found, where the names were not decoded: what it makes an
    attempt of. That holds all that was made on the way, and goes with the reply, so after it was sent.
    """

    result: RequestResult
    body: bytes
    exemption: Exemption = Exemption.NONE
    status: HTTPStatus = HTTPStatus.OK
    reasons: Mapping[str, int] = _NOTHING
    attempt: Attempt | None = None
    found: Found | None = None


def account(source: Source, reply: Reply) -> None:
    """Counts and remembers whom it refuses, and to whom: whoever asked need not wait for that."""
    if reply.reasons:
        source.counts.refuse(reply.reasons)
    attempts = source.attempts
    if attempts is None:
        return
    if reply.found is not None:
        written, asked, ((survivors, _, refused), snapshot), mask = reply.found
        meta, count = written.pod.metadata or NO_META, len(asked)
        monotonic = attempts.monotonic()
        attempts.add(
            Attempt(meta.namespace, meta.name, meta.uid, monotonic, count, len(survivors), refused, (), mask, snapshot)
        )
    elif reply.attempt is not None:
        attempts.add(reply.attempt)


def names_max_of(source: Source, sync: Sync, request: bytes | bytearray) -> int:
    """How many nodes the request may name. While the cache is not synced or stale, the number of nodes is unknown: then
    a request of kube-scheduler must not be refused for its size.
    """
    if len(request) <= wire.SHORT_BYTES or sync is not Sync.OK:
        return wire.NAMES_MAX
    return wire.names_max_of(len(source.board.snapshot.nodes))


def failed(result: RequestResult, status: HTTPStatus, text: str) -> Reply:
    """A failure told by the status; the text is for whoever reads it all the same."""
    return Reply(result, msgspec.json.encode({"Error": wire.plain(text)}), status=status)


def exemption_of(source: Source, pod: Pod | None) -> Exemption:
    """Why the pod is refused no node, if so. Needs no cache."""
    meta = NO_META if pod is None or pod.metadata is None else pod.metadata
    spec = NO_SPEC if pod is None or pod.spec is None else pod.spec
    return exempt.exemption_of(
        source.exemptions,
        namespace=meta.namespace,
        labels=meta.labels,
        owners=meta.owner_references,
        priority_class=spec.priority_class_name,
        priority=spec.priority,
    )


def is_canary(source: Source, pod: Pod | None) -> bool:
    """Whether the pod is refused everywhere on purpose; to be asked of one that is exempt because it is ours."""
    meta = NO_META if pod is None or pod.metadata is None else pod.metadata
    return exempt.is_canary(
        source.exemptions, namespace=meta.namespace, labels=meta.labels, owners=meta.owner_references
    )
