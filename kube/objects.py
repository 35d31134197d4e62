"""Partial views of Kubernetes objects that both halves read. Unknown fields are skipped while decoding.

`gc=False` keeps thousands of cached objects out of the garbage collector's rounds; none of them can form a cycle.
"""

from collections.abc import Sequence

import msgspec

DAEMON_SET = ("apps/v1", "DaemonSet")

# What decoding raises. Bytes that are no UTF-8 inside a string, and a thousand brackets, are not msgspec's own errors.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class BareMeta(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Who an object is. Timestamps stay the RFC 3339 text the server sent."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    owner_references: list[OwnerReference] | None = None
    deletion_timestamp: str | None = None
    creation_timestamp: str | None = None


class ObjectMeta(BareMeta, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """And what it says of itself, which costs more to decode than all else of it."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    generation: int | None = None


class Condition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Of a Pod or a Node; the last field has a Node's only."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_heartbeat_time: str | None = None


def daemon_set_of(owners: Sequence[OwnerReference] | None) -> str:
    """Name of the DaemonSet that controls a pod, or ""."""
    for owner in owners or ():
        if owner.controller is True and (owner.api_version, owner.kind) == DAEMON_SET:
            return owner.name
    return ""
