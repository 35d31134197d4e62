"""The verb `preempt`: removes candidates on closed nodes and returns the others.

kube-scheduler does not call `filter` for nodes that its own filters refuse. Without this verb a full node that
readygate has closed is a candidate: its pods are evicted for a pod that `filter` then refuses there.

The answer always holds NodeNameToMetaVictims. Entries that came in this form are returned byte for byte. Entries that
came as NodeNameToVictims, with whole pods, are reduced to UIDs and NumPDBViolations. So are entries that hold a null:
kube-scheduler 1.36 panics on a null entry or victim (pkg/scheduler/extender.go convertToVictims), so no answer has one.

This answer has no field for an error, so the HTTP status reports it, which is right in both modes. With `ignorable`
kube-scheduler continues without the extender, as after a failed filter call. Without it kube-scheduler preempts nothing
in this attempt and writes the cause into the pod. Status 200 could do neither: an empty map would stop all preemption
in mode protect, and a full map would evict pods from closed nodes in mode enforce.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated

import msgspec
from msgspec import Meta

from extender.policy.exempt import Exemption
from extender.verbs import wire
from extender.verbs.counts import RequestResult
from extender.verbs.pods import Pod, WholePod, mask_of
from extender.verbs.reply import NOT_ANSWERED, Reply, exemption_of, failed, is_canary, names_max_of
from extender.verbs.source import Source, Sync

NEITHER = "readygate: the request holds neither NodeNameToMetaVictims nor NodeNameToVictims"
# kube-scheduler sends the larger of 100 and 10 % of the nodes by default, and at most as many as it has nodes.
CANDIDATES_MAX = 16_384
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


_NULL_BYTES = b"null"
_NULL = msgspec.Raw(_NULL_BYTES)


class PreemptArgs(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    pod: Pod | None = None
    node_name_to_victims: msgspec.Raw = _NULL
    node_name_to_meta_victims: msgspec.Raw = _NULL


class _WholePreemptArgs(PreemptArgs, frozen=True, gc=False, rename="pascal"):
    pod: WholePod | None = None


class MetaPod(msgspec.Struct, frozen=True, gc=False):
    uid: str = msgspec.field(default="", name="UID")


class MetaVictims(msgspec.Struct, frozen=True, gc=False):
    pods: list[MetaPod] | None = msgspec.field(default=None, name="Pods")
    violations: Int64 = msgspec.field(default=0, name="NumPDBViolations")


class _ExactPod(MetaPod, frozen=True, forbid_unknown_fields=True):
    pass


class _ExactVictims(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    pods: list[_ExactPod] | None = msgspec.field(default=None, name="Pods")
    violations: Int64 = msgspec.field(default=0, name="NumPDBViolations")


class _VictimMeta(msgspec.Struct, frozen=True, gc=False):
    uid: str


class _Victim(msgspec.Struct, frozen=True, gc=False):
    metadata: _VictimMeta


class _Victims(msgspec.Struct, frozen=True, gc=False):
    pods: list[_Victim] | None = msgspec.field(default=None, name="Pods")
    violations: Int64 = msgspec.field(default=0, name="NumPDBViolations")


_args: msgspec.json.Decoder[PreemptArgs] = msgspec.json.Decoder(PreemptArgs)
_whole_args: msgspec.json.Decoder[PreemptArgs] = msgspec.json.Decoder(_WholePreemptArgs)
_meta_victims = msgspec.json.Decoder(MetaVictims)
_entries = msgspec.json.Decoder(dict[str, msgspec.Raw])
_exact_entries = msgspec.json.Decoder(dict[str, _ExactVictims])
_exact_victims = msgspec.json.Decoder(_ExactVictims)
_victims = msgspec.json.Decoder(_Victims)
_KEYS = {
    "pod": "Pod",
    "nodenametovictims": "NodeNameToVictims",
    "nodenametometavictims": "NodeNameToMetaVictims",
}
_Entry = msgspec.Raw | MetaVictims


def answer_preempt(source: Source, request: bytes | bytearray) -> Reply:
    """Returns the answer to one ExtenderPreemptionArgs. Never raises for any content of a request."""
    sync = source.sync()
    try:
        args = read_preempt_args(request, whole=source.classes.needs_spec)
        candidates = _candidates(args, min(CANDIDATES_MAX, names_max_of(source, sync, request)))
    except wire.MalformedError as e:
        return failed(RequestResult.MALFORMED, HTTPStatus.BAD_REQUEST, f"readygate: {e}")
    except wire.UnanswerableError as e:
        return failed(RequestResult.UNANSWERABLE, HTTPStatus.BAD_REQUEST, str(e))
    except wire.TooManyNodesError as e:
        return failed(RequestResult.TOO_LARGE, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, str(e))
    exempt = exemption_of(source, args.pod)
    if exempt is Exemption.READYGATE and is_canary(source, args.pod):
        return Reply(RequestResult.ANSWERED, _write({}))
    if exempt:
        return Reply(RequestResult.EXEMPT, _write(candidates), exempt)
    if sync is not Sync.OK:
        return failed(NOT_ANSWERED[sync], HTTPStatus.SERVICE_UNAVAILABLE, sync.value)
    closed = source.board.look_up(list(candidates), mask_of(source.classes, args.pod)).refused
    if closed:
        source.counts.remove(closed.values())
        candidates = {name: entry for name, entry in candidates.items() if name not in closed}
    return Reply(RequestResult.ANSWERED, _write(candidates))


def read_preempt_args(body: bytes | bytearray, *, whole: bool = False) -> PreemptArgs:
    """Decodes a request. whole: with the pod's containers and volumes. Raises MalformedError or UnanswerableError (no
    Pod, or no candidates in either form)."""
    decoder = _whole_args if whole else _args
    args = wire.decode_whole(decoder, body)
    if args.pod is None or not _has_candidates(args):
        args = wire.decode_any_case(decoder, body, _KEYS)
    if args.pod is None:
        raise wire.UnanswerableError(wire.NO_POD)
    if not _has_candidates(args):
        raise wire.UnanswerableError(NEITHER)
    return args


def _has_candidates(args: PreemptArgs) -> bool:
    return bytes(args.node_name_to_meta_victims) != _NULL_BYTES or bytes(args.node_name_to_victims) != _NULL_BYTES


def _candidates(args: PreemptArgs, candidates_max: int) -> Mapping[str, _Entry]:
    """Returns each candidate with its entry in the answer. Raises RequestError."""
    whole = bytes(args.node_name_to_meta_victims) == _NULL_BYTES
    raw = args.node_name_to_victims if whole else args.node_name_to_meta_victims
    entries = wire.decode(_entries, raw)
    if len(entries) > candidates_max:
        raise wire.TooManyNodesError(candidates_max)
    if "" in entries:
        raise wire.UnanswerableError(wire.NAMELESS_NODE)
    if whole:
        return {name: _reduced(entry) for name, entry in entries.items()}
    if _is_usual(raw):
        return entries
    return {name: _as_it_came(entry) for name, entry in entries.items()}


def _is_usual(raw: msgspec.Raw) -> bool:
    """Returns whether all entries have exactly the fields that kube-scheduler writes. Checking them together is several
    times as fast as one by one."""
    if b"null" in bytes(raw):
        return False
    try:
        _exact_entries.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _as_it_came(raw: msgspec.Raw) -> _Entry:
    """Returns the entry byte for byte, with any fields that a later kube-scheduler adds. An entry with a null is
    written again without it, or refused if it also has unknown fields.

    Values of unknown fields never become objects: nested lists would take fifty bytes of memory a byte.
    """
    nulls = b"null" in bytes(raw)
    try:
        exact = _exact_victims.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        wire.decode(_meta_victims, raw)  # checks the types of the known fields
        if nulls:
            raise wire.MalformedError("null within a candidate") from None
        if not _is_text(raw):
            raise wire.MalformedError("a candidate is no text") from None
        return raw
    return MetaVictims([MetaPod(pod.uid) for pod in exact.pods or ()], exact.violations) if nulls else raw


def _is_text(raw: msgspec.Raw) -> bool:
    """Returns whether the bytes are UTF-8. The decoder does not check the characters that it skips."""
    try:
        str(bytes(raw), "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _reduced(raw: msgspec.Raw) -> MetaVictims:
    """Reduces whole pods to their UIDs."""
    victims = wire.decode(_victims, raw)
    return MetaVictims([MetaPod(pod.metadata.uid) for pod in victims.pods or ()], victims.violations)


def _write(candidates: Mapping[str, _Entry]) -> bytes:
    return msgspec.json.encode({"NodeNameToMetaVictims": candidates})
