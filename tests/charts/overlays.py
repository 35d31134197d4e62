"""What the roles ship of the chart, for kustomize: each object with every option on, and each option's absence.

An absence is a component: the difference of two renderings, as patches. Those that take rules off one list are for the
role to name with the last rule first; each sees for itself that it takes off the right one.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kube import contract
from tests.charts.rendering import NAMESPACE, Object, Objects, objects

HEAD = "# Made by `make manifests` of charts/readygate: change it there.\n"
FOLDER = "playbooks/roles/readygate_{}/files/deploy"
CONFIGURATION = "readygate.dev/configuration"
_WIDTH = 10_000
_GATE = {"podStarts": {}, "for": {"csiDrivers": ["example.com"], "deviceClasses": ["example.com"]}}
_OWN_PODS = {"namespace": NAMESPACE, "labelSelector": "app=example"}
_BEATS = {"heartbeat": {"agents": {"limitSeconds": 9}}}
_EVERYTHING: dict[str, Any] = {
    "image.repository": "readygate",
    "namespace.create": True,
    "agent.cni.check": False,  # here and below: so that no folder of a host is there before the role names it
    "agent.checkProfile": "",
    "agent.checks": [{"name": "example", "podNetwork": {}}],
    "agent.speaker": "node",
    "agent.heartbeat": True,
    "extender.tlsSecret": "extender-tls",
    "extender.configuration": {"gates": [_GATE], **_BEATS},
}
_ALONE = {"agent.checks": [{"name": "example", "exec": {"command": ["true"]}}]}
_SILENT = {"agent.heartbeat": False, "agent.admissionPolicy": False}


def _configured(**given: Any) -> dict[str, Any]:
    return {"extender.configuration": {"gates": [_GATE], **_BEATS, **given}}


@dataclass(frozen=True)
class Part:
    """A file of a role, with the objects of these kinds. absences: what can be left out of it -> the chart's values."""

    role: str
    name: str
    kinds: frozenset[str]
    absences: dict[str, dict[str, Any]]


def _part(role: str, name: str, kinds: str, **absences: dict[str, Any]) -> Part:
    return Part(role, name, frozenset(kinds.split()), {key.replace("_", "-"): each for key, each in absences.items()})


_POLICIES = "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"
PARTS = (
    _part(
        "agent",
        "objects",
        f"Namespace ServiceAccount Service Role RoleBinding {_POLICIES}",
        without_peers=_ALONE,
        without_heartbeat={"agent.heartbeat": False},
        without_policy=_SILENT,
        without_condition=_SILENT | {"agent.publishCondition": False},
    ),
    _part(
        "agent",
        "pods",
        "ConfigMap NetworkPolicy DaemonSet",
        pods_without_peers=_ALONE,
        pods_without_condition=_SILENT | {"agent.publishCondition": False},
        pods_that_speak={"agent.speaker": "pod"},
    ),
    _part(
        "extender",
        "objects",
        f"ServiceAccount ClusterRole ClusterRoleBinding {_POLICIES}",
        without_policy={"extender.admissionPolicy": False},
        without_devices=_configured(gates=[{"podStarts": {}, "for": {"csiDrivers": ["example.com"]}}]),
        without_csi_drivers=_configured(gates=[{"podStarts": {}, "for": {"deviceClasses": ["example.com"]}}]),
        without_pod_starts=_configured(gates=[{"for": _GATE["for"]}]),
        without_events=_configured(outlets={"events": {"enabled": False}}),
        without_condition=_configured(outlets={"nodeCondition": {"enabled": False}}),
    ),
    _part(
        "extender",
        "role",
        "Role RoleBinding",
        role_without_lease_reading={"agent.heartbeat": False, "extender.configuration": {"gates": [_GATE]}},
        role_without_lease_writing=_configured(
            outlets={"nodeCondition": {"enabled": False}, "events": {"enabled": False}}
        ),
        role_without_orders=_configured(orders={"configMap": None}),
        role_without_daemon_sets=_configured(gates=[_GATE | {"healthPods": _OWN_PODS}]),
        role_without_pods=_configured(gates=[_GATE | {"healthPods": None}]),
    ),
    _part(
        "extender",
        "pods",
        "ConfigMap DaemonSet",
        pods_without_tls={"extender.tlsSecret": ""},
        pods_without_root={"extender.port": contract.PORT_UNPRIVILEGED},
    ),
)


class Unlike(Exception):  # noqa: N818 - the name says what is the matter
    """What is otherwise cannot be said by a patch; str = where."""


def made() -> dict[Path, str]:
    """The text of each file, by its path from the root."""
    whole = _rendered({})
    files: dict[Path, str] = {}
    for part in PARTS:
        folder, ours = FOLDER.format(part.role), _of(part, whole)
        texts = {part.name: yaml.safe_dump_all(ours.values(), sort_keys=False, width=_WIDTH)}
        for name, values in part.absences.items():
            texts[name] = yaml.dump(component(ours, _of(part, _rendered(values))), Dumper=_Dumper, sort_keys=False)
        files |= {Path(folder, f"{name}.yaml"): HEAD + text for name, text in texts.items()}
    return files


def _rendered(values: dict[str, Any]) -> Objects:
    return objects(given=[f"{key}={json.dumps(value)}" for key, value in (_EVERYTHING | values).items()])


def _of(part: Part, found: Objects) -> Objects:
    """Its objects. Of the Roles in several namespaces ours, which has all the rules, stands for each."""
    own = (f"readygate-{part.role}", *(["readygate-operator"] if part.role == "extender" else []))
    return {
        key: each
        for key, each in found.items()
        if key[0] in part.kinds and key[1] in ("", NAMESPACE) and (key[0] == "Namespace" or key[2].startswith(own))
    }


def component(before: Objects, after: Objects) -> Object:
    """Of kustomize: what makes `after` of `before`, but for configurations and their names. Raises Unlike."""
    patches: list[Object] = []
    for key, each in before.items():
        kind, _, name = key
        if kind == "ConfigMap":
            continue
        if key not in after:
            named = {what: each["metadata"][what] for what in ("name", "namespace") if what in each["metadata"]}
            gone = {"$patch": "delete", "apiVersion": each["apiVersion"], "kind": kind, "metadata": named}
            patches.append({"patch": _text(gone)})
        elif changes := list(operations("", _still(each), _still(after[key]))):
            patches.append({"target": {"kind": kind, "name": name}, "patch": _text(changes)})
    if not patches:
        raise Unlike("nothing differs")
    return {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "patches": patches}


def _text(patch: Object | list[Object]) -> str:
    return yaml.safe_dump(patch, sort_keys=False, default_flow_style=None, width=_WIDTH)


def _still(found: Object) -> Object:
    """Without what follows from the content of the configuration."""
    still = copy.deepcopy(found)
    if still["kind"] == "DaemonSet":
        del still["spec"]["template"]["metadata"]["annotations"][CONFIGURATION]
        (volume,) = [one for one in still["spec"]["template"]["spec"]["volumes"] if "configMap" in one]
        volume["configMap"] = {}
    return still


def operations(path: str, before: Any, after: Any) -> Iterator[Object]:
    """JSON patches. Items are taken off a list from its end, so that no place changes before its turn."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            there = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
            if key not in after:
                yield {"op": "remove", "path": there}
            elif key not in before:
                yield {"op": "add", "path": there, "value": after[key]}
            else:
                yield from operations(there, before[key], after[key])
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(path, before, after)
    elif before != after:
        yield {"op": "replace", "path": path, "value": after}


def _of_lists(path: str, before: list[Any], after: list[Any]) -> Iterator[Object]:
    if len(before) == len(after):
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from operations(f"{path}/{place}", one, other)
        return
    left = [item for item in before if item in after]
    if left != after:
        raise Unlike(path)
    for place, item in reversed(list(enumerate(before))):
        if item not in after:
            yield {"op": "test", "path": f"{path}/{place}", "value": item}
            yield {"op": "remove", "path": f"{path}/{place}"}


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as they are."""


def _represented(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represented)
