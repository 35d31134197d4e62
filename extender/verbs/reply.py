"""The reply of a verb, the checks that all verbs make of a pod, and `account`, the step after the answer is sent."""

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
# The request, its names, how they were divided by which snapshot, and the mask of the gates.
Found = tuple[wire.WrittenArgs, list[bytes], tuple[Sorted, Snapshot], int]


class Reply(msgspec.Struct, frozen=True, gc=False):
    """The reply of a verb.

    result: what is counted. body: JSON. exemption: why nothing was refused, if so. status: kube-scheduler reads the
    body of 200 only. `filter` and `bind` report failures as 200 with `Error`; answers of `preempt` and `prioritize`
    have no such field, so the status reports them.

    reasons, attempt: what account() counts and records. found: set if names were not decoded; account() builds the
    attempt from it. found keeps everything that the answer was made of until after the answer is sent.
    """

    result: RequestResult
    body: bytes
    exemption: Exemption = Exemption.NONE
    status: HTTPStatus = HTTPStatus.OK
    reasons: Mapping[str, int] = _NOTHING
    attempt: Attempt | None = None
    found: Found | None = None


def account(source: Source, reply: Reply) -> None:
    """Counts and records the refusals of a reply. Called after the answer is sent, so that the client does not wait for
    it."""
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
    """Returns how many nodes the request may name. While the cache is not synced or stale, the number of nodes is
    unknown: then a request of kube-scheduler must not be refused for its size."""
    if len(request) <= wire.SHORT_BYTES or sync is not Sync.OK:
        return wire.NAMES_MAX
    return wire.names_max_of(len(source.board.snapshot.nodes))


def failed(result: RequestResult, status: HTTPStatus, text: str) -> Reply:
    """Returns a failure that the status reports. text: for humans; kube-scheduler does not read it."""
    return Reply(result, msgspec.json.encode({"Error": wire.plain(text)}), status=status)


def exemption_of(source: Source, pod: Pod | None) -> Exemption:
    """Returns why no node is refused to the pod, NONE if the gates apply to it. Needs no cache."""
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
    """Returns whether all nodes are refused to the pod on purpose. Only pods of readygate's namespace can be
    canaries."""
    meta = NO_META if pod is None or pod.metadata is None else pod.metadata
    return exempt.is_canary(
        source.exemptions, namespace=meta.namespace, labels=meta.labels, owners=meta.owner_references
    )
