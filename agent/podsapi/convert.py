"""A pod as the kubelet's local API sends it -> the same as the API server writes it in JSON. Pure.

Names are the same in both but for what Go inlines in JSON; times, and a number or a text, have messages of their own.
"""

from typing import Any

import msgspec
from google.protobuf.message import Message

from agent.podsapi import api_pb2
from agent.wire.pod import PodObject
from kube.times import format_time

_INLINE = frozenset({"handler"})  # of core/v1 Probe
_TEXT = 1  # IntOrString.type, pkg/util/intstr/intstr.go
_pod = msgspec.json.Decoder(PodObject)


def pod_of(raw: bytes) -> PodObject:
    """Raises google.protobuf.message.DecodeError, msgspec.DecodeError, ValueError, OverflowError; OSError of a time
    that no calendar has."""
    return _pod.decode(msgspec.json.encode(_object(api_pb2.Pod.FromString(raw))))


def _object(message: Message) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.name in _INLINE:
            made |= _object(value)
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            made[field.name] = dict(value)
        elif field.is_repeated:
            made[field.name] = [_value(one) for one in value]
        else:
            made[field.name] = _value(value)
    return made


def _value(value: Any) -> Any:  # noqa: ANN401 - of any field
    if isinstance(value, api_pb2.Time):
        return format_time(value.seconds)
    if isinstance(value, api_pb2.IntOrString):
        return value.strVal if value.type == _TEXT else value.intVal
    return _object(value) if isinstance(value, Message) else value
