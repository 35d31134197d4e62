"""An Event as the API server takes it: the object that creates it, and the patch that counts it again. Pure."""

import msgspec

from component.text import one_line
from kube.times import format_time

MESSAGE_MAX = 1024  # what the newer kind of Events takes; a probe's output may be ten times as long
COMPONENT = "readygate-agent"


class InvolvedObject(msgspec.Struct, rename="camel", omit_defaults=True):
    """Whom it is about. field_path: a part of it."""

    kind: str
    name: str
    api_version: str
    namespace: str = ""
    uid: str = ""
    field_path: str = ""


class _Meta(msgspec.Struct):
    name: str
    namespace: str


class _Source(msgspec.Struct):
    component: str
    host: str


class _Count(msgspec.Struct, rename="camel"):
    message: str
    count: int
    last_timestamp: str


class _Event(_Count, rename="camel"):
    api_version: str
    kind: str
    metadata: _Meta
    involved_object: InvolvedObject
    type: str
    reason: str
    source: _Source
    reporting_component: str
    reporting_instance: str
    first_timestamp: str


def namespace_of(involved: InvolvedObject) -> str:
    """Where its Events are kept: those of what has no namespace are in this one."""
    return involved.namespace or "default"


def count_event(message: str, count: int, last_at: float) -> bytes:
    """A merge patch. last_at: seconds since 1970."""
    return msgspec.json.encode(_count(message, count, last_at))


def create_event(
    involved: InvolvedObject,
    *,
    name: str,
    type_: str,
    reason: str,
    message: str,
    count: int,
    first_at: float,
    last_at: float,
    host: str,
) -> bytes:
    """A core/v1 Event of that name. host: the node that tells. Times: seconds since 1970."""
    counted = _count(message, count, last_at)
    return msgspec.json.encode(
        _Event(
            counted.message,
            counted.count,
            counted.last_timestamp,
            api_version="v1",
            kind="Event",
            metadata=_Meta(name, namespace_of(involved)),
            involved_object=involved,
            type=type_,
            reason=reason,
            source=_Source(COMPONENT, host),
            reporting_component=COMPONENT,
            reporting_instance=host,
            first_timestamp=format_time(first_at),
        )
    )


def _count(message: str, count: int, last_at: float) -> _Count:
    return _Count(one_line(message, MESSAGE_MAX), count, format_time(last_at))
