"""Kubernetes JSON -> the agent's Pod; its status is read by `status`."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent.wire import model
from agent.wire.placement import PlacementSpec, Resources, placement, resources
from agent.wire.status import Int32, Int64, parse_status
from kube.objects import ObjectMeta
from kube.times import parse_time

ANNOTATION_CONFIG_SOURCE = "kubernetes.io/config.source"
ANNOTATION_CONFIG_MIRROR = "kubernetes.io/config.mirror"  # of a mirror: the hash of its static pod
ANNOTATION_CONFIG_HASH = "kubernetes.io/config.hash"  # of a static pod, and of its mirror: the static pod's uid
ANNOTATION_CONFIG_SEEN = "kubernetes.io/config.seen"
SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"  # put into every pod, asked for or not


class PodMeta(ObjectMeta, frozen=True, gc=False, rename="camel"):
    deletion_grace_period_seconds: Int64 | None = None


class _Exec(msgspec.Struct, rename="camel"):
    command: list[str] | None = None


class _Header(msgspec.Struct, rename="camel"):
    name: str = ""
    value: str = ""


class _HttpGet(msgspec.Struct, rename="camel"):
    port: Int32 | str = 0
    path: str = ""
    host: str = ""
    scheme: str = ""
    http_headers: list[_Header] | None = None


class _TcpSocket(msgspec.Struct, rename="camel"):
    port: Int32 | str = 0
    host: str = ""


class _Grpc(msgspec.Struct, rename="camel"):
    port: Int32 = 0
    service: str | None = None


class _Probe(msgspec.Struct, rename="camel"):
    exec: _Exec | None = None
    http_get: _HttpGet | None = None
    tcp_socket: _TcpSocket | None = None
    grpc: _Grpc | None = None
    initial_delay_seconds: Int32 = 0
    timeout_seconds: Int32 = 0
    period_seconds: Int32 = 0
    success_threshold: Int32 = 0
    failure_threshold: Int32 = 0
    termination_grace_period_seconds: Int64 | None = None


class _Sleep(msgspec.Struct, rename="camel"):
    seconds: Int64 = 0


class _Hook(msgspec.Struct, rename="camel"):
    exec: _Exec | None = None
    http_get: _HttpGet | None = None
    sleep: _Sleep | None = None


class _Lifecycle(msgspec.Struct, rename="camel"):
    post_start: _Hook | None = None
    pre_stop: _Hook | None = None


class _Port(msgspec.Struct, rename="camel"):
    container_port: Int32 = 0
    name: str = ""
    host_port: Int32 = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = ""


class _FieldRef(msgspec.Struct, rename="camel"):
    field_path: str = ""


class _OptionalRef(msgspec.Struct, rename="camel"):
    optional: bool | None = None


class _ValueFrom(msgspec.Struct, rename="camel"):
    field_ref: _FieldRef | None = None
    resource_field_ref: _OptionalRef | None = None
    config_map_key_ref: _OptionalRef | None = None
    secret_key_ref: _OptionalRef | None = None
    file_key_ref: _OptionalRef | None = None


class _Env(msgspec.Struct, rename="camel"):
    name: str
    value: str = ""
    value_from: _ValueFrom | None = None


class _ExitCodes(msgspec.Struct, rename="camel"):
    operator: str = ""
    values: list[Int32] | None = None


class _RestartRule(msgspec.Struct, rename="camel"):
    action: str = ""
    exit_codes: _ExitCodes | None = None


class _Mount(msgspec.Struct, rename="camel"):
    mount_path: str = ""


class _Container(msgspec.Struct, rename="camel"):
    name: str
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[_Env] | None = None
    working_dir: str = ""
    ports: list[_Port] | None = None
    readiness_probe: _Probe | None = None
    liveness_probe: _Probe | None = None
    startup_probe: _Probe | None = None
    lifecycle: _Lifecycle | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[_RestartRule] | None = None
    image_pull_policy: str = ""
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    target_container_name: str = ""  # of an ephemeral one: whose processes it sees
    resources: Resources | None = None
    env_from: list[msgspec.Raw] | None = None
    volume_mounts: list[_Mount] | None = None
    volume_devices: list[msgspec.Raw] | None = None
    security_context: dict[str, msgspec.Raw] | None = None


class _Gate(msgspec.Struct, rename="camel"):
    condition_type: str


class _Spec(PlacementSpec, rename="camel"):
    node_name: str = ""
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    ephemeral_containers: list[_Container] | None = None
    restart_policy: str = ""
    readiness_gates: list[_Gate] | None = None
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    hostname: str = ""
    hostname_override: str | None = None
    subdomain: str = ""
    set_hostname_as_fqdn: bool | None = msgspec.field(name="setHostnameAsFQDN", default=None)
    host_aliases: list[msgspec.Raw] | None = None
    host_network: bool = False
    host_users: bool | None = None
    resource_claims: list[msgspec.Raw] | None = None
    share_process_namespace: bool | None = None
    service_account_name: str = ""
    host_pid: bool = msgspec.field(name="hostPID", default=False)
    host_ipc: bool = msgspec.field(name="hostIPC", default=False)
    security_context: dict[str, msgspec.Raw] | None = None
    runtime_class_name: str | None = None


class PodObject(msgspec.Struct, frozen=True, rename="camel"):
    """A pod as the reflector decodes it; `pod_from_object` makes the model's Pod of it."""

    metadata: PodMeta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: msgspec.Raw = msgspec.Raw(b"{}")


_pod_decoder = msgspec.json.Decoder(PodObject)


def parse_pod(raw: bytes) -> model.Pod:
    """A pod from its JSON. Raises msgspec.DecodeError (or its ValidationError) if it is not one."""
    return pod_from_object(_pod_decoder.decode(raw))


def delete_options(uid: str) -> bytes:
    """Deletes at once, and only the pod of that uid."""
    return msgspec.json.encode({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})


def write_mirror(manifest: Mapping[str, Any], node_name: str, node_uid: str) -> bytes:
    """The mirror of a static pod, whose manifest has its name, namespace and annotations. It belongs to its Node."""
    meta = manifest["metadata"]
    annotations = {**meta["annotations"], ANNOTATION_CONFIG_MIRROR: meta["annotations"][ANNOTATION_CONFIG_HASH]}
    owner = {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": node_uid, "controller": True}
    mirror = {**manifest, "metadata": {**meta, "annotations": annotations, "ownerReferences": [owner]}}
    return msgspec.json.encode(mirror)


def pod_from_object(obj: PodObject) -> model.Pod:
    meta, spec = obj.metadata, obj.spec
    grace_s = spec.termination_grace_period_seconds
    return model.Pod(
        uid=meta.uid,
        name=meta.name,
        namespace=meta.namespace,
        node_name=spec.node_name,
        containers=tuple(_container(c) for c in spec.containers or ()),
        init_containers=tuple(_container(c) for c in spec.init_containers or ()),
        ephemeral_containers=tuple(_container(c) for c in spec.ephemeral_containers or ()),
        restart_policy=_restart_policy(spec.restart_policy or model.RestartPolicy.ALWAYS),
        readiness_gates=tuple(gate.condition_type for gate in spec.readiness_gates or ()),
        labels=meta.labels or {},
        annotations=meta.annotations or {},
        created_at=parse_time(meta.creation_timestamp),
        deletion_timestamp=parse_time(meta.deletion_timestamp),
        deletion_grace_period_s=meta.deletion_grace_period_seconds,
        termination_grace_period_s=30 if grace_s is None else grace_s,
        active_deadline_s=spec.active_deadline_seconds,
        hostname=spec.hostname,
        hostname_override=spec.hostname_override,
        host_network=spec.host_network,
        host_users=spec.host_users is not False,
        service_account=spec.service_account_name,
        generation=meta.generation or 0,
        static=(meta.annotations or {}).get(ANNOTATION_CONFIG_SOURCE, "api") != "api",
        mirror=ANNOTATION_CONFIG_MIRROR in (meta.annotations or {}),
        placement=placement(spec),
        beyond=_beyond_pod(spec),
        status=parse_status(bytes(obj.status)),
    )


def _restart_policy(text: str) -> model.RestartPolicy | str:
    try:
        return model.RestartPolicy(text)
    except ValueError:
        return text


def _container(wire: _Container) -> model.Container:
    lifecycle = wire.lifecycle or _Lifecycle()
    own_policy = None if wire.restart_policy is None else _restart_policy(wire.restart_policy)
    return model.Container(
        name=wire.name,
        image=wire.image,
        command=tuple(wire.command or ()),
        args=tuple(wire.args or ()),
        env=tuple(_env_var(env) for env in wire.env or ()),
        working_dir=wire.working_dir,
        ports=tuple(
            model.ContainerPort(p.container_port, p.name, p.host_port, p.host_ip, p.protocol) for p in wire.ports or ()
        ),
        readiness_probe=_probe(wire.readiness_probe),
        liveness_probe=_probe(wire.liveness_probe),
        startup_probe=_probe(wire.startup_probe),
        post_start=_hook(lifecycle.post_start),
        pre_stop=_hook(lifecycle.pre_stop),
        # A policy word we do not know leaves the decision to the pod's, as upstream does.
        restart_policy=own_policy if isinstance(own_policy, model.RestartPolicy) else None,
        restart_rules=tuple(_rule(rule) for rule in wire.restart_policy_rules or ()),
        image_pull_policy=wire.image_pull_policy,
        stdin=wire.stdin,
        stdin_once=wire.stdin_once,
        tty=wire.tty,
        resources=resources(wire.resources),
        beyond=_beyond_container(wire),
    )


def _beyond_pod(spec: _Spec) -> tuple[str, ...]:
    asked = {
        "hostAliases": spec.host_aliases,
        "hostIPC": spec.host_ipc,
        "hostPID": spec.host_pid,
        "hostUsers": spec.host_users is False,
        "resourceClaims": spec.resource_claims,
        "runtimeClassName": spec.runtime_class_name,
        "securityContext": spec.security_context,
        # Of no effect without a subdomain, or with a name that overrides it: then there is no domain.
        "setHostnameAsFQDN": spec.set_hostname_as_fqdn and spec.subdomain and spec.hostname_override is None,
        "shareProcessNamespace": spec.share_process_namespace,
    }
    return tuple(name for name, value in asked.items() if value)


def _beyond_container(wire: _Container) -> tuple[str, ...]:
    asked = {
        "envFrom": wire.env_from,
        "hostPort": any(port.host_port for port in wire.ports or ()),
        "securityContext": wire.security_context,
        "targetContainerName": wire.target_container_name,
        "volumeDevices": wire.volume_devices,
        "volumeMounts": any(mount.mount_path != SERVICE_ACCOUNT_FOLDER for mount in wire.volume_mounts or ()),
    }
    return tuple(name for name, value in asked.items() if value)


def _rule(wire: _RestartRule) -> model.RestartRule:
    if wire.exit_codes is None:
        return model.RestartRule(action=wire.action)
    return model.RestartRule(wire.action, wire.exit_codes.operator, tuple(wire.exit_codes.values or ()))


def _env_var(wire: _Env) -> model.EnvVar:
    """An optional reference to something we cannot read counts as absent."""
    source = wire.value_from
    if source is None:
        return model.EnvVar(wire.name, wire.value)
    if source.field_ref is not None:
        return model.EnvVar(wire.name, field_path=source.field_ref.field_path)
    references: Sequence[tuple[str, _OptionalRef | None]] = (
        ("configMapKeyRef", source.config_map_key_ref),
        ("secretKeyRef", source.secret_key_ref),
        ("fileKeyRef", source.file_key_ref),
    )
    for name, reference in references:
        if reference is not None:
            if reference.optional:
                return model.EnvVar(wire.name, absent=True)
            return model.EnvVar(wire.name, unsupported=name)
    return model.EnvVar(wire.name, unsupported="resourceFieldRef" if source.resource_field_ref else "valueFrom")


def _probe(wire: _Probe | None) -> model.Probe | None:
    """Zero fields get the defaults, as the API server's own objects have them."""
    if wire is None:
        return None
    return model.Probe(
        action=_action(wire),
        initial_delay_s=wire.initial_delay_seconds,
        timeout_s=wire.timeout_seconds or model.PROBE_DEFAULTS.timeout_s,
        period_s=wire.period_seconds or model.PROBE_DEFAULTS.period_s,
        success_threshold=wire.success_threshold or model.PROBE_DEFAULTS.success_threshold,
        failure_threshold=wire.failure_threshold or model.PROBE_DEFAULTS.failure_threshold,
        termination_grace_period_s=wire.termination_grace_period_seconds,
    )


def _action(wire: _Probe) -> model.ProbeAction | None:
    if wire.exec is not None:
        return model.ExecAction(tuple(wire.exec.command or ()))
    if wire.http_get is not None:
        return _http_get(wire.http_get)
    if wire.tcp_socket is not None:
        return model.TcpSocketAction(port=wire.tcp_socket.port, host=wire.tcp_socket.host)
    if wire.grpc is not None:
        return model.GrpcAction(port=wire.grpc.port, service=wire.grpc.service or "")
    return None


def _http_get(wire: _HttpGet) -> model.HttpGetAction:
    return model.HttpGetAction(
        port=wire.port,
        path=wire.path or "/",
        host=wire.host,
        scheme=wire.scheme or "HTTP",
        headers=tuple((header.name, header.value) for header in wire.http_headers or ()),
    )


def _hook(wire: _Hook | None) -> model.LifecycleHook | None:
    if wire is None:
        return None
    if wire.exec is not None:
        return model.LifecycleHook(model.ExecAction(tuple(wire.exec.command or ())))
    if wire.http_get is not None:
        return model.LifecycleHook(_http_get(wire.http_get))
    return model.LifecycleHook(None if wire.sleep is None else model.SleepAction(wire.sleep.seconds))
