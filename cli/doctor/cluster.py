"""Reads the facts for doctor through the API server and from the extenders. Changes nothing.

What cannot be read becomes a line in `unread`, so that a user with few rights still gets the other findings.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from cli.doctor.agents import agents_of
from cli.doctor.configz_reader import UnreadError
from cli.doctor.facts import Facts, GateFacts, HealthSet, Loaded, Replica, Right, Scheduler
from cli.doctor.rights import Need, needed
from cli.shared.errors import api_problem
from cli.shared.merge_answers import Replies
from component.command import product_version
from component.settings import SettingsError
from extender.config import settings as extender_settings
from extender.config.settings import Settings
from extender.web.schema import GatesTold
from kube import contract, paths
from kube.client import Client
from kube.errors import CredentialsInvalid, KubeError, NotFound
from kube.objects import UNREADABLE, ObjectMeta

KUBE_SYSTEM = "kube-system"
SCHEDULERS = "component=kube-scheduler"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
CONFIGURATION = "extender.yaml"
PAGE = "500"
PAGE_OF_NODES = "100"  # 2.5 MB at most, which a line of 5 Mbit/s carries within the deadline
NO_CONFIG_MAP = (
    f"no DaemonSet {contract.NAME_EXTENDER} mounts a ConfigMap (static pods read a file on each control plane host, in "
    f"/etc/kubernetes/{contract.NAME_EXTENDER}/config)"
)
T = TypeVar("T")


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    """A part of an answer of the API server."""


class _Version(_Answer, frozen=True, rename="camel"):
    git_version: str = ""


class _Container(_Answer, frozen=True, rename="camel"):
    name: str = ""
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None
    readiness_probe: dict[str, object] | None = None


class _Condition(_Answer, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""


class _Named(_Answer, frozen=True, rename="camel"):
    name: str = ""


class _Volume(_Answer, frozen=True, rename="camel"):
    name: str = ""
    config_map: _Named | None = None


class _PodSpec(_Answer, frozen=True, rename="camel"):
    node_name: str = ""
    containers: list[_Container] = []
    readiness_gates: list[object] | None = None
    volumes: list[_Volume] | None = None


class _PodStatus(_Answer, frozen=True, rename="camel"):
    phase: str = ""
    conditions: list[_Condition] | None = None


class _Pod(_Answer, frozen=True, rename="camel"):
    metadata: ObjectMeta = ObjectMeta()
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


class _ListMeta(_Answer, frozen=True, rename="camel"):
    continue_: str = msgspec.field(default="", name="continue")


class _Pods(_Answer, frozen=True, rename="camel"):
    items: list[_Pod] = []
    metadata: _ListMeta = _ListMeta()


class _Node(_Answer, frozen=True, rename="camel"):
    metadata: ObjectMeta = ObjectMeta()


class _Nodes(_Answer, frozen=True, rename="camel"):
    items: list[_Node] = []
    metadata: _ListMeta = _ListMeta()


class ConfigMap(_Answer, frozen=True, rename="camel"):
    data: dict[str, str] | None = None


class _RollingUpdate(_Answer, frozen=True, rename="camel"):
    max_unavailable: int | str | None = None


class _Strategy(_Answer, frozen=True, rename="camel"):
    type: str = "RollingUpdate"
    rolling_update: _RollingUpdate | None = None


class _Template(_Answer, frozen=True, rename="camel"):
    metadata: ObjectMeta = ObjectMeta()
    spec: _PodSpec = _PodSpec()


class _SetSpec(_Answer, frozen=True, rename="camel"):
    template: _Template = _Template()
    update_strategy: _Strategy = _Strategy()
    min_ready_seconds: int = 0


class _SetStatus(_Answer, frozen=True, rename="camel"):
    desired_number_scheduled: int = 0


class DaemonSet(_Answer, frozen=True, rename="camel"):
    metadata: ObjectMeta = ObjectMeta()
    spec: _SetSpec = _SetSpec()
    status: _SetStatus = _SetStatus()

    @property
    def configured_by(self) -> str:
        """The name of the ConfigMap that the pods mount; "" without one."""
        volumes = self.spec.template.spec.volumes or []
        return next((one.config_map.name for one in volumes if one.name == "config" and one.config_map), "")


class _Review(_Answer, frozen=True, rename="camel"):
    class Status(_Answer, frozen=True, rename="camel"):
        allowed: bool = False

    status: Status = Status()


@dataclass
class ClusterReader:
    """Reads the facts of one cluster."""

    api: Client
    namespace: str  # of the extenders
    configz: Callable[[str, str], Loaded]  # (pod, node) to the loaded configuration; raises UnreadError
    given: Settings | None = None  # the extender's configuration, if it is not to be read from the cluster
    unread: list[str] = field(default_factory=list)  # what could not be read, and why

    def facts(self, gates: "Replies[GatesTold]") -> Facts:
        """Reads everything. gates: the answers of the extenders."""
        version = self._get(paths.version(), _Version, "read the version")
        nodes, control_plane = self._nodes()
        settings, settings_unread = self._settings()
        before = len(self.unread)
        schedulers = self._schedulers()
        between = len(self.unread)
        replicas = self._replicas(gates)
        return Facts(
            cli_release=product_version(),
            api_version="" if version is None else version.git_version,
            nodes=nodes,
            control_plane=control_plane,
            schedulers=schedulers,
            replicas=replicas,
            schedulers_asked=between == before,
            replicas_asked=len(self.unread) == between,
            settings=settings,
            settings_unread=settings_unread,
            gates=() if settings is None else self._gates(settings, gates),
            agents=agents_of(*self._configured(contract.NAME_AGENT)[1:]),
            rights=() if settings is None else self._rights(settings),
            orders=tuple({one.id: one for answer in gates.answers.values() for one in answer.orders}.values()),
            faults=tuple(dict.fromkeys(fault for answer in gates.answers.values() for fault in answer.faults)),
            unread=tuple(dict.fromkeys(self.unread)),
        )

    # ---- one request

    def _get(self, path: str, kind: type[T], what: str, query: dict[str, str] | None = None) -> T | None:
        """Gets one object. None if it does not exist, and None with a line in `unread` if it cannot be read."""
        try:
            return msgspec.json.decode(self.api.get(path, query=query or {}), type=kind)
        except NotFound:
            return None
        except (KubeError, CredentialsInvalid) as e:
            self.unread.append(api_problem(e, what))
        except UNREADABLE:
            self.unread.append(f"cannot {what}: the API server's answer is invalid")
        return None

    # ---- the cluster

    def _nodes(self) -> tuple[int, tuple[str, ...]]:
        number, rest = 0, ""
        found: list[str] = []
        while True:
            query = {"limit": PAGE_OF_NODES, **({"continue": rest} if rest else {})}
            page = self._get(paths.nodes(), _Nodes, "list nodes", query)
            if page is None:
                return number, tuple(found)
            number += len(page.items)
            found += [one.metadata.name for one in page.items if CONTROL_PLANE in (one.metadata.labels or {})]
            rest = page.metadata.continue_
            if not rest:
                return number, tuple(found)

    def _schedulers(self) -> tuple[Scheduler, ...]:
        query = {"labelSelector": SCHEDULERS, "limit": PAGE}
        pods = self._get(paths.pods(KUBE_SYSTEM), _Pods, f"list pods of {KUBE_SYSTEM}", query)
        return tuple(self._scheduler(pod) for pod in (pods.items if pods is not None else ()))

    def _scheduler(self, pod: _Pod) -> Scheduler:
        container = next(iter(pod.spec.containers), _Container())
        loaded, unread = None, ""
        try:
            loaded = self.configz(pod.metadata.name, pod.spec.node_name)
        except UnreadError as e:
            unread = str(e)
        return Scheduler(
            name=pod.metadata.name,
            node=pod.spec.node_name,
            version=version_of(container.image),
            flags=flags_of([*(container.command or ()), *(container.args or ())]),
            loaded=loaded,
            unread=unread,
        )

    # ---- readygate

    def _replicas(self, gates: "Replies[GatesTold]") -> tuple[Replica, ...]:
        query = {"labelSelector": f"{contract.LABEL_NAME}={contract.NAME_EXTENDER}", "limit": PAGE}
        pods = self._get(paths.pods(self.namespace), _Pods, f"list pods of {self.namespace}", query)
        return tuple(_replica(pod, gates) for pod in (pods.items if pods is not None else ()))

    def _configured(self, daemon_set: str) -> tuple[str, dict[str, str], dict[str, str]]:
        """The name and the files of the ConfigMap that the pods of a DaemonSet mount, and the pods' annotations."""
        path = paths.daemon_set(self.namespace, daemon_set)
        pods = self._get(path, DaemonSet, f"read DaemonSet {self.namespace}/{daemon_set}")
        name = pods.configured_by if pods is not None else ""
        found = None
        if name:
            path = paths.config_map(self.namespace, name)
            found = self._get(path, ConfigMap, f"read ConfigMap {self.namespace}/{name}")
        annotations = pods.spec.template.metadata.annotations if pods is not None else None
        return name, (found.data or {}) if found is not None else {}, annotations or {}

    def _settings(self) -> tuple[Settings | None, str]:
        if self.given is not None:
            return self.given, ""
        before = len(self.unread)
        name, files, _ = self._configured(contract.NAME_EXTENDER)
        text = files.get(CONFIGURATION)
        if text is None:
            problems = self.unread[before:]
            return None, problems[
                0
            ] if problems else f"no ConfigMap {name} with {CONFIGURATION}" if name else NO_CONFIG_MAP
        try:
            return extender_settings.parse(text), ""
        except SettingsError as e:
            return None, str(e)

    def _gates(self, settings: Settings, replies: "Replies[GatesTold]") -> tuple[GateFacts, ...]:
        by_name = {gate.gate: gate for answer in replies.answers.values() for gate in answer.gates}
        found = []
        for gate in settings.gates:
            pods = gate.health_pods
            reported = by_name.get(gate.name)
            before = len(self.unread)
            named = "" if pods is None or pods.daemon_set is None else pods.daemon_set
            health_set = self._health_set(pods.namespace, named) if pods is not None and named else None
            asked = len(self.unread) == before
            found.append(
                GateFacts(
                    name=gate.name,
                    named_set=f"{pods.namespace}/{named}" if pods is not None and named else "",
                    health_set=health_set,
                    asked=asked,
                    pods=None if pods is None else self._some_pods(pods.namespace, pods.label_selector),
                    armed=gate.enforcement == "armed" if reported is None else reported.armed,
                    refuses=gate.severity_in_force != "warn",
                )
            )
        return tuple(found)

    def _some_pods(self, namespace: str, selector: str) -> int | None:
        """Whether the selector matches pods: 0 or 1; None if that is unknown."""
        query = {"labelSelector": selector, "limit": "1"}
        found = self._get(paths.pods(namespace), _Pods, f"list pods of {namespace}", query)
        return None if found is None else len(found.items)

    def _health_set(self, namespace: str, name: str) -> HealthSet | None:
        what = f"read DaemonSet {namespace}/{name}"
        found = self._get(paths.daemon_set(namespace, name), DaemonSet, what)
        if found is None:
            return None
        spec, update = found.spec.template.spec, found.spec.update_strategy
        at_once = 1 if update.rolling_update is None else update.rolling_update.max_unavailable
        return HealthSet(
            namespace=namespace,
            name=name,
            desired=found.status.desired_number_scheduled,
            probed=any(container.readiness_probe is not None for container in spec.containers),
            gated=bool(spec.readiness_gates),
            strategy=update.type,
            max_unavailable=str(1 if at_once is None else at_once),
            min_ready_s=found.spec.min_ready_seconds,
        )

    def _rights(self, settings: Settings) -> tuple[Right, ...]:
        account = f"system:serviceaccount:{self.namespace}:{contract.NAME_EXTENDER}"
        found = []
        for need in needed(settings, self.namespace):
            allowed = self._may(account, need)
            if allowed is None:
                return ()
            resource = f"{need.resource}/{need.sub}" if need.sub else need.resource
            found.append(Right(need.verb, resource, need.namespace, allowed))
        return tuple(found)

    def _may(self, account: str, need: Need) -> bool | None:
        """Whether the account may do it; None if that cannot be asked."""
        asked = {
            "verb": need.verb,
            "group": need.group,
            "resource": need.resource,
            "subresource": need.sub,
            "namespace": need.namespace,
            "name": need.name,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": account, "resourceAttributes": {key: value for key, value in asked.items() if value}},
        }
        try:
            answer = self.api.create(paths.subject_access_reviews(), msgspec.json.encode(body))
            return msgspec.json.decode(answer, type=_Review).status.allowed
        except (KubeError, CredentialsInvalid) as e:
            self.unread.append(api_problem(e, "ask what the extender's account may do"))
        except UNREADABLE:
            self.unread.append("cannot ask what the extender's account may do: the API server's answer is invalid")
        return None


def _replica(pod: _Pod, gates: "Replies[GatesTold]") -> Replica:
    name = pod.metadata.name
    answer = gates.answers.get(name)
    problem = next((text for text in gates.problems if name in text), "") if answer is None else ""
    owner = next((one.kind for one in pod.metadata.owner_references or () if one.controller), "")
    conditions = {one.type: one.status for one in pod.status.conditions or ()}
    return Replica(
        name=name,
        node=pod.spec.node_name,
        owner=owner,
        ready=conditions.get(contract.CONDITION_READY) == contract.STATUS_TRUE,
        release="" if answer is None else answer.release,
        not_answering="" if answer is None else answer.not_answering,
        problem=problem,
        token_left_s=None if answer is None else answer.credentials_left_seconds,
        token_life_s=None if answer is None else answer.credentials_life_seconds,
    )


def flags_of(command: Sequence[str]) -> dict[str, str]:
    """Parses `--name=value` and `--name value`. A flag without a value is "true"."""
    found: dict[str, str] = {}
    words = list(command)
    for place, word in enumerate(words):
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        after = words[place + 1] if place + 1 < len(words) else "--"
        found[name] = value if equals else "true" if after.startswith("--") else after
    return found


def version_of(image: str) -> str:
    """The version in an image's tag; "" for an image with a digest only."""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    with suppress(ValueError):
        return tag if int(tag.lstrip("v").partition(".")[0]) >= 0 else ""
    return ""
