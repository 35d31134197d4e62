"""The fields of a Pod that show whether it waits for a node, and its scheduler's message. Pure."""

import msgspec

from kube.contract import CONDITION_POD_SCHEDULED
from kube.objects import UNREADABLE, Condition
from kube.times import parse_time

DEFAULT_SCHEDULER = "default-scheduler"
SCHEDULER = "kube-scheduler"
FINISHED = ("Succeeded", "Failed")


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a Pod."""


class _ManagedFields(_Part, frozen=True, rename="camel"):
    manager: str = ""
    subresource: str = ""
    time: str | None = None
    fields: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="fieldsV1")

    @property
    def has_pod_scheduled(self) -> bool:
        """Whether the manager, named after the scheduler's program, owns the condition PodScheduled."""
        return self.manager == SCHEDULER or CONDITION_POD_SCHEDULED.encode() in bytes(self.fields)


class _Meta(_Part, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    managed_fields: list[_ManagedFields] | None = None


class _Named(_Part, frozen=True, rename="camel"):
    name: str = ""


class _Spec(_Part, frozen=True, rename="camel"):
    node_name: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER
    scheduling_gates: list[_Named] | None = None


class _Status(_Part, frozen=True, rename="camel"):
    phase: str = ""
    conditions: list[Condition] | None = None


class PodView(_Part, frozen=True, rename="camel"):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def scheduled(self) -> Condition | None:
        return next((one for one in self.status.conditions or () if one.type == CONDITION_POD_SCHEDULED), None)

    @property
    def message(self) -> str:
        """Why the scheduler could not place the pod; "" if it has not tried or has placed the pod."""
        found = self.scheduled
        return found.message if found is not None and found.status == "False" else ""

    @property
    def message_at(self) -> float | None:
        """When the scheduler last changed the message, in seconds since the epoch."""
        written = [
            parse_time(one.time)
            for one in self.metadata.managed_fields or ()
            if one.subresource == "status" and one.has_pod_scheduled
        ]
        found = self.scheduled
        turned = parse_time(found.last_transition_time) if found is not None else None
        return max((time for time in (*written, turned) if time is not None), default=None)

    @property
    def bound_at(self) -> float | None:
        found = self.scheduled
        return parse_time(found.last_transition_time) if found is not None and found.status == "True" else None

    @property
    def gates(self) -> list[str]:
        """The names of the scheduling gates in the pod's spec."""
        return [one.name for one in self.spec.scheduling_gates or ()]


def read_pod(body: bytes) -> PodView | None:
    """Decodes a Pod. None if the body is not a Pod."""
    try:
        pod = msgspec.json.decode(body, type=PodView)
        parse_time(pod.metadata.creation_timestamp)
        _ = pod.message_at
    except UNREADABLE:
        return None
    return pod if pod.metadata.name else None
