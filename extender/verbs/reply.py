"""The reply of a verb, the checks that all verbs make of a pod, and `account`, the step after the answer is sent."""

from collections.abc import Collection
from http import HTTPStatus

import msgspec

from extender.policy import exempt
from extender.policy.exempt import Exemption
from extender.verbs import wire
from extender.verbs.counts import RequestResult
from extender.verbs.names import Found
from extender.verbs.pods import NO_META, NO_SPEC, NOBODY, Pod
from extender.verbs.source import Source, Sync
from extender.why.attempts import Attempt, Attempts

NOT_ANSWERED = {Sync.NOT_SYNCED: RequestResult.NOT_SYNCED, Sync.STALE: RequestResult.STALE}


NODE_NAME_MAX = 253  # characters; the limit of Kubernetes


class Reply(msgspec.Struct, frozen=True, gc=False):
    """The reply of a verb.

    result: what is counted. body: JSON. exemption: why nothing was refused, if so. status: kube-scheduler reads the
    body of 200 only. `filter` and `bind` report failures as 200 with `Error`; answers of `preempt` and `prioritize`
    have no such field, so the status reports them.

    found, pod, mask: of a filter call, for account(); found None if nothing is counted or recorded. They keep
    everything that the answer was made of until after it is sent.
    """

    result: RequestResult
    body: bytes
    exemption: Exemption = Exemption.NONE
    status: HTTPStatus = HTTPStatus.OK
    found: Found | None = None
    pod: Pod = NOBODY
    mask: int = 0


def account(source: Source, reply: Reply) -> None:
    """Counts and records a filter call. Called after the answer is sent: kube-scheduler does not wait for it."""
    found, attempts = reply.found, source.attempts
    if found is None:
        return
    if found.reasons:
        source.counts.refuse(found.reasons)
    if attempts is not None:
        attempts.add(_attempt(attempts, reply, found))


def _attempt(attempts: Attempts, reply: Reply, found: Found) -> Attempt:
    """Returns the record of a filter call for `readygate why`."""
    meta, status, names = reply.pod.metadata or NO_META, reply.pod.status, found.names
    return Attempt(
        meta.namespace,
        meta.name,
        meta.uid,
        attempts.monotonic(),
        found.asked,
        found.survivors,
        _of_nodes(found.refused) if found.unknown else found.refused,
        names if attempts.keep_names else (),
        reply.mask,
        found.snapshot,
        reply.result if found.snapshot is None and not reply.exemption else "",
        reply.exemption,
        len(names) == 1 and status is not None and status.nominated_node_name == names[0],
        found.unknown,
    )


def _of_nodes(refused: Collection[str]) -> Collection[str]:
    """Drops texts that cannot be node names: a request may hold texts of 32 MiB, and no memory is reserved for them."""
    return dict.fromkeys(name for name in refused if len(name) <= NODE_NAME_MAX and name.isascii())


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
