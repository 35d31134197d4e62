"""Pure: to which pods a gate applies.

A gate for every pod costs a request nothing: its bit is constant, and of the pod's spec only the fields for exemptions
are decoded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from extender.config import gates
from extender.policy.devices import Devices, NoDevices, PodClaim, claimed
from kube.selector import Selector, parse

# Provisioners of volume plugins that were once part of Kubernetes, and the drivers that serve them now (staging
# csi-translation-lib/pkg/plugins).
MIGRATED = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}


class Volumes(Protocol):
    """Which CSI driver serves a claim: "" = none does, None = unknown."""

    def driver_of_claim(self, namespace: str, name: str) -> str | None: ...
    def driver_of_class(self, name: str) -> str | None: ...


class NoVolumes:
    """Look-ups in which everything is unknown."""

    def driver_of_claim(self, namespace: str, name: str) -> str | None:  # noqa: ARG002
        return None

    def driver_of_class(self, name: str) -> str | None:  # noqa: ARG002
        return None


NO_DEVICES = NoDevices()


@dataclass(frozen=True, slots=True)
class PodVolume:
    """A volume of a pod. driver: of an inline CSI volume. claim: name of the claim. storage_class: from the template of
    an ephemeral one. "" = not given."""

    driver: str = ""
    claim: str = ""
    storage_class: str = ""


@dataclass(frozen=True, slots=True)
class PodSeen:
    """The fields of a pod that gates read. resources: names in requests or limits of containers, init containers or the
    pod itself, whatever the amount; `managedResources` counts alike. claims: devices by DRA."""

    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    scheduler_name: str = ""
    resources: frozenset[str] = frozenset()
    volumes: Sequence[PodVolume] = ()
    claims: Sequence[PodClaim] = ()


@dataclass(frozen=True, slots=True)
class PodClass:
    """A class of pods: everything that is not None must match. Of drivers, namespaces and schedulers one match is
    enough, and of resources and device_classes together."""

    selector: Selector | None = None
    namespaces: frozenset[str] | None = None
    resources: frozenset[str] | None = None
    drivers: frozenset[str] | None = None
    priority_from: int | None = None
    priority_to: int | None = None
    schedulers: frozenset[str] | None = None
    device_classes: frozenset[str] | None = None

    @property
    def everybody(self) -> bool:
        return self == EVERY_POD

    @property
    def needs_spec(self) -> bool:
        """Returns whether containers, volumes and claims are read."""
        return self.resources is not None or self.device_classes is not None or self.drivers is not None

    def matches(self, pod: PodSeen, volumes: Volumes, devices: Devices = NO_DEVICES) -> bool:
        return (
            (self.namespaces is None or pod.namespace in self.namespaces)
            and (self.schedulers is None or pod.scheduler_name in self.schedulers)
            and (self.priority_from is None or pod.priority >= self.priority_from)
            and (self.priority_to is None or pod.priority <= self.priority_to)
            and (self.selector is None or self.selector.matches(pod.labels))
            and ((self.resources is None and self.device_classes is None) or self._asks(pod, devices))
            and (self.drivers is None or any(self._served(one, pod.namespace, volumes) for one in pod.volumes))
        )

    def _asks(self, pod: PodSeen, devices: Devices) -> bool:
        """Returns whether the pod requests one of the resources, or a device of one of the classes."""
        resources, classes = self.resources or _NONE, self.device_classes or _NONE
        if not resources.isdisjoint(pod.resources):
            return True
        if classes and any(devices.class_of_resource(one) in classes for one in pod.resources):
            return True
        if not pod.claims:
            return False
        return claimed(pod.claims, pod.namespace, classes=classes, resources=resources, devices=devices)

    def _served(self, volume: PodVolume, namespace: str, volumes: Volumes) -> bool:
        """Returns whether a driver serves the volume. An unknown claim counts: missing knowledge must not let the pod
        pass."""
        if volume.driver:
            driver: str | None = volume.driver
        elif volume.claim:
            driver = volumes.driver_of_claim(namespace, volume.claim)
            if driver is None and volume.storage_class:
                driver = volumes.driver_of_class(volume.storage_class)
        else:
            return False
        drivers = self.drivers or frozenset()
        return driver is None or MIGRATED.get(driver, driver) in drivers

    def __str__(self) -> str:
        """For humans, as `pods that request nvidia.com/gpu`."""
        if self.everybody:
            return "every pod"
        devices = (_either("request", self.resources), _either("claim devices of class", self.device_classes))
        asks = " or ".join(part for part in devices if part)
        parts = (
            f"that {asks}" if asks else "",
            _either("with volumes of", self.drivers),
            _either("of namespace", self.namespaces),
            "" if self.selector is None else f"labelled {self.selector}",
            "" if self.priority_from is None else f"of priority {self.priority_from} and more",
            "" if self.priority_to is None else f"of priority {self.priority_to} and less",
            _either("of scheduler", self.schedulers),
        )
        return f"pods {', '.join(part for part in parts if part)}"


_NONE: frozenset[str] = frozenset()
EVERY_POD = PodClass()


class Classes:
    """The classes of all gates. all: the mask of all gates, which every pod gets if `everybody`.

    needs_spec: whether a pod's containers, volumes and claims must be decoded.
    """

    def __init__(
        self, classes: Sequence[PodClass], volumes: Volumes | None = None, devices: Devices | None = None
    ) -> None:
        self._volumes = volumes or NoVolumes()
        self._devices = devices or NO_DEVICES
        self._always = sum(1 << place for place, one in enumerate(classes) if one.everybody)
        self._asked = [(1 << place, one) for place, one in enumerate(classes) if not one.everybody]
        self.everybody = not self._asked
        self.all = (1 << len(classes)) - 1
        self.needs_spec = any(one.needs_spec for one in classes)

    def mask_of(self, pod: PodSeen) -> int:
        """Returns the mask: bit i is set if gate i applies to the pod."""
        mask = self._always
        for bit, one in self._asked:
            if one.matches(pod, self._volumes, self._devices):
                mask |= bit
        return mask


def class_of(pods: gates.For) -> PodClass:
    priority = pods.priority
    return PodClass(
        selector=None if pods.pod_selector is None else parse(pods.pod_selector),
        namespaces=_set(pods.namespaces),
        resources=_set(pods.resources),
        drivers=_set(pods.csi_drivers),
        priority_from=None if priority is None else priority.from_,
        priority_to=None if priority is None else priority.to,
        schedulers=_set(pods.scheduler_names),
        device_classes=_set(pods.device_classes),
    )


def _set(names: tuple[str, ...] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)


def _either(words: str, names: frozenset[str] | None) -> str:
    return "" if names is None else f"{words} {' or '.join(sorted(names))}"
