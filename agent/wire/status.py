"""PodStatus: Kubernetes JSON <-> model. What is written has the fields Go writes, zero ones included."""

from typing import Annotated, Any

import msgspec

from agent.wire import model
from kube.times import format_time, parse_time

Json = dict[str, Any]
# As Go reads numbers: one that does not fit makes the object none.
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Waiting(msgspec.Struct, rename="camel"):
    reason: str = ""
    message: str = ""


class _Running(msgspec.Struct, rename="camel"):
    started_at: str | None = None


class _Terminated(msgspec.Struct, rename="camel"):
    exit_code: Int32 = 0
    signal: Int32 = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None
    container_id: str = msgspec.field(default="", name="containerID")


class _State(msgspec.Struct, rename="camel"):
    waiting: _Waiting | None = None
    running: _Running | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct, rename="camel"):
    name: str
    state: _State | None = None
    last_state: _State | None = None
    ready: bool = False
    started: bool | None = None
    restart_count: Int32 = 0
    container_id: str = msgspec.field(default="", name="containerID")
    image: str = ""
    image_id: str = msgspec.field(default="", name="imageID")


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_probe_time: str | None = None
    observed_generation: Int64 = 0


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    conditions: list[_Condition] | None = None
    reason: str = ""
    message: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")
    pod_ip: str = msgspec.field(default="", name="podIP")
    start_time: str | None = None
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None
    ephemeral_container_statuses: list[_ContainerStatus] | None = None
    qos_class: str = ""
    observed_generation: Int64 = 0


# podIPs and hostIPs repeat podIP and hostIP: a pod of ours has one address of each kind.
_MODELLED = frozenset(field.encode_name for field in msgspec.structs.fields(_Status)) | {"podIPs", "hostIPs"}
_status_decoder = msgspec.json.Decoder(_Status)
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


def parse_status(raw: bytes) -> model.PodStatus:
    """A PodStatus from its JSON. Raises msgspec.DecodeError if it is not one."""
    wire = _status_decoder.decode(raw)
    extra = {key: bytes(value) for key, value in _fields_decoder.decode(raw).items() if key not in _MODELLED}
    return model.PodStatus(
        phase=_phase(wire.phase),
        conditions=tuple(_condition(c) for c in wire.conditions or ()),
        reason=wire.reason,
        message=wire.message,
        host_ip=wire.host_ip,
        pod_ip=wire.pod_ip,
        start_time=parse_time(wire.start_time),
        container_statuses=_container_statuses(wire.container_statuses),
        init_container_statuses=_container_statuses(wire.init_container_statuses),
        ephemeral_container_statuses=_container_statuses(wire.ephemeral_container_statuses),
        qos_class=wire.qos_class,
        observed_generation=wire.observed_generation,
        extra=extra,
    )


def write_status(status: model.PodStatus) -> Json:
    """The JSON object of a status, without the fields we do not model (`extra`)."""
    json: Json = {}
    _put(json, "phase", str(status.phase))
    if status.conditions:
        json["conditions"] = [_write_condition(c) for c in status.conditions]
    _put(json, "reason", status.reason)
    _put(json, "message", status.message)
    _put(json, "hostIP", status.host_ip)
    _put(json, "podIP", status.pod_ip)
    if status.host_ip:
        json["hostIPs"] = [{"ip": status.host_ip}]
    if status.pod_ip:
        json["podIPs"] = [{"ip": status.pod_ip}]
    if status.start_time is not None:
        json["startTime"] = format_time(status.start_time)
    if status.container_statuses:
        json["containerStatuses"] = [_write_container(s) for s in status.container_statuses]
    if status.init_container_statuses:
        json["initContainerStatuses"] = [_write_container(s) for s in status.init_container_statuses]
    if status.ephemeral_container_statuses:
        json["ephemeralContainerStatuses"] = [_write_container(s) for s in status.ephemeral_container_statuses]
    _put(json, "qosClass", status.qos_class)
    _put(json, "observedGeneration", status.observed_generation)
    return json


def _phase(text: str) -> model.PodPhase | str:
    try:
        return model.PodPhase(text)
    except ValueError:
        return text


def _condition(wire: _Condition) -> model.Condition:
    return model.Condition(
        type=wire.type,
        status=wire.status,
        reason=wire.reason,
        message=wire.message,
        last_transition_time=parse_time(wire.last_transition_time),
        last_probe_time=parse_time(wire.last_probe_time),
        observed_generation=wire.observed_generation,
    )


def _container_statuses(wire: list[_ContainerStatus] | None) -> tuple[model.ContainerStatus, ...] | None:
    if wire is None:
        return None
    return tuple(
        model.ContainerStatus(
            name=s.name,
            state=_state(s.state),
            last_state=_state(s.last_state),
            ready=s.ready,
            started=s.started,
            restart_count=s.restart_count,
            container_id=s.container_id,
            image=s.image,
            image_id=s.image_id,
        )
        for s in wire
    )


def _state(wire: _State | None) -> model.ContainerState | None:
    if wire is None:
        return None
    if wire.running is not None:
        return model.ContainerRunning(parse_time(wire.running.started_at))
    if wire.terminated is not None:
        ended = wire.terminated
        return model.ContainerTerminated(
            exit_code=ended.exit_code,
            reason=ended.reason,
            message=ended.message,
            signal=ended.signal,
            started_at=parse_time(ended.started_at),
            finished_at=parse_time(ended.finished_at),
            container_id=ended.container_id,
        )
    if wire.waiting is not None:
        return model.ContainerWaiting(wire.waiting.reason, wire.waiting.message)
    return None


def _write_condition(condition: model.Condition) -> Json:
    json: Json = {
        "type": condition.type,
        "status": condition.status,
        "lastProbeTime": _time_or_null(condition.last_probe_time),
        "lastTransitionTime": _time_or_null(condition.last_transition_time),
    }
    _put(json, "reason", condition.reason)
    _put(json, "message", condition.message)
    _put(json, "observedGeneration", condition.observed_generation)
    return json


def _write_container(status: model.ContainerStatus) -> Json:
    json: Json = {
        "name": status.name,
        "state": _write_state(status.state),
        "lastState": _write_state(status.last_state),
        "ready": status.ready,
        "restartCount": status.restart_count,
        "image": status.image,
        "imageID": status.image_id,
    }
    _put(json, "containerID", status.container_id)
    if status.started is not None:
        json["started"] = status.started
    return json


def _write_state(state: model.ContainerState | None) -> Json:
    json: Json = {}
    match state:
        case None:
            return {}
        case model.ContainerRunning():
            return {"running": {"startedAt": _time_or_null(state.started_at)}}
        case model.ContainerWaiting():
            _put(json, "reason", state.reason)
            _put(json, "message", state.message)
            return {"waiting": json}
        case model.ContainerTerminated():
            json["exitCode"] = state.exit_code
            _put(json, "signal", state.signal)
            _put(json, "reason", state.reason)
            _put(json, "message", state.message)
            json["startedAt"] = _time_or_null(state.started_at)
            json["finishedAt"] = _time_or_null(state.finished_at)
            _put(json, "containerID", state.container_id)
            return {"terminated": json}


def _time_or_null(time_s: float | None) -> str | None:
    return None if time_s is None else format_time(time_s)


def _put(json: Json, key: str, value: str | int) -> None:
    """Go's omitempty."""
    if value:
        json[key] = value
