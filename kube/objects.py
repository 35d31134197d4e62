"""Partial views of Kubernetes objects that agent and extender read. Unknown fields are skipped while decoding.

`gc=False` excludes thousands of cached objects from garbage collections; none of them can form a cycle.
"""

from collections.abc import Sequence

import msgspec

DAEMON_SET = ("apps/v1", "DaemonSet")

# Errors of decoding. Bytes that are no UTF-8 inside a string, and a thousand brackets, raise other types than
# msgspec's.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class BareMeta(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Name and uid of an object. Timestamps stay the RFC 3339 text of the server."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    owner_references: list[OwnerReference] | None = None
    deletion_timestamp: str | None = None
    creation_timestamp: str | None = None


class ObjectMeta(BareMeta, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The same with labels and annotations, which cost more to decode than everything else."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    generation: int | None = None


class Condition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A condition of a Pod or a Node; only a Node's has the last field."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_heartbeat_time: str | None = None


def daemon_set_of(owners: Sequence[OwnerReference] | None) -> str:
    """Returns the name of the DaemonSet that controls a pod, or ""."""
    for owner in owners or ():
        if owner.controller is True and (owner.api_version, owner.kind) == DAEMON_SET:
            return owner.name
    return ""
