"""What a supported form of the chart needs of a cluster, by its values and what it renders to, and what of its values
these hosts cannot have. Pure: whoever adds a form names nothing here.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from kube import contract
from tests.charts.rendering import Object
from tools.testbed.hosts.layers import CNI_BIN_DIR, CNI_CONF_DIR

OPERATOR = "monitoring.coreos.com"
NODES = 3


@dataclass(frozen=True)
class Override:
    """A value of the form that is another one here. path: as `agent.cni.binDirs`."""

    path: str
    value: Any
    why: str

    @property
    def given(self) -> str:
        return f"{self.path}={json.dumps(self.value)}"


def overrides(values: Object, *, repository: str, tag: str, digest: str, server: str) -> list[Override]:
    """values: of the form's file. digest: of the image on the hosts. server: the API server as pods reach it."""
    hosts_have = "the hosts have the image by import, and reach no registry"
    made = [
        Override("namespace.create", False, "helm keeps the release in its namespace, which must be there first"),
        Override("image.repository", repository, hosts_have),
        Override("agent.minReadySeconds", 1, "a roll-out would take a minute and more for each node"),
        Override("agent.maxUnavailable", NODES, "all nodes at once, for the same reason"),
    ]
    if of(values, "image", "digest"):
        made.append(Override("image.digest", digest, hosts_have))
    else:
        made.append(Override("image.tag", tag, hosts_have))
    addresses = ("kubernetes.server", "extender.configuration.kubernetes.server")
    documented = [path for path in addresses if of(values, *path.split("."))]
    made += [Override(path, server, "the form's is an address for documents") for path in documented]
    cni = of(values, "agent", "cni") or {}
    if cni.get("check", True) and CNI_BIN_DIR not in cni.get("binDirs", ()):
        made.append(Override("agent.cni.binDirs", [CNI_BIN_DIR], "Debian has its CNI plugins there"))
    return made


def of(values: Any, *keys: str) -> Any:
    """The value at that path, None where there is none."""
    for key in keys:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


@dataclass(frozen=True)
class Needs:
    """folders: that each node must have. cni_configuration: a folder for that of the CNI, "" for the usual one. labels:
    of all nodes, of the extenders'. kinds: of custom resources, of the Prometheus operator's."""

    folders: tuple[str, ...]
    cni_configuration: str
    labels: dict[str, str]
    extender_labels: dict[str, str]
    namespaces: tuple[str, ...]
    tls_secrets: tuple[str, ...]
    kinds: tuple[str, ...]


def needs(values: Object, sent: Iterable[Object], namespace: str) -> Needs:
    """sent: what the form renders to in that namespace."""
    sent = list(sent)
    pods = {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in sent if one["kind"] == "DaemonSet"}
    volumes = [volume for pod in pods.values() for volume in pod["volumes"]]
    on_hosts = [volume["hostPath"] for volume in volumes if "hostPath" in volume]
    conf_dir = of(values, "agent", "cni", "confDir") or CNI_CONF_DIR
    return Needs(
        folders=tuple(sorted({one["path"] for one in on_hosts if one["type"] == "Directory"} - {"/"})),
        cni_configuration="" if conf_dir == CNI_CONF_DIR else str(PurePosixPath(conf_dir)),
        labels=pods[contract.NAME_AGENT].get("nodeSelector", {}),
        extender_labels=pods[contract.NAME_EXTENDER]["nodeSelector"],
        namespaces=tuple(sorted({one["metadata"].get("namespace", namespace) for one in sent} - {namespace})),
        tls_secrets=tuple(sorted({volume["secret"]["secretName"] for volume in volumes if "secret" in volume})),
        kinds=tuple(sorted({one["kind"] for one in sent if one["apiVersion"].startswith(f"{OPERATOR}/")})),
    )


def definition(kind: str) -> Object:
    """The least of a CustomResourceDefinition, under which any object of the kind is taken."""
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{OPERATOR}"},
        "spec": {
            "group": OPERATOR,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def ready_words(values: Object) -> tuple[str, str | None, str]:
    """What a form's agent says of a node that is well: ContainersReady, NodeHealthy (None: it writes none), Ready."""
    if of(values, "agent", "publishCondition") is False:
        return "True", None, "True"
    if of(values, "agent", "speaker") == "node":
        # The service on the host is to speak, which the chart does not bring: until it does no pod is Ready.
        return "True", None, "False"
    return "True", "True", "True"
