"""Pure: which devices a pod claims by Dynamic Resource Allocation (DRA).

Mirrors how resource.k8s.io/v1 describes a device (staging/src/k8s.io/api/resource/v1/types.go). A pod names claims or
templates of claims. A claim's requests name a DeviceClass each. A DeviceClass selects devices by CEL and may serve an
extended resource. The pod itself holds only the names.

An unknown claim counts as a claim of every device.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from extender.policy.cel import Drivers, both

# The DeviceClass whose name follows this prefix serves such an extended resource.
CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
# Drivers by the resource of a device plugin, from the vendors' own DeviceClasses and device plugins.
_VENDORS = (
    (re.compile(r"nvidia\.com/(gpu|gpu\.shared|mig-.+)\Z"), "gpu.nvidia.com"),
    (re.compile(r"amd\.com/gpu\Z"), "gpu.amd.com"),
    (re.compile(r"gpu\.intel\.com/(i915|xe)\Z"), "gpu.intel.com"),
    (re.compile(r"aws\.amazon\.com/neuron(core|device)?\Z"), "neuron.aws.com"),
)


@dataclass(frozen=True, slots=True)
class PodClaim:
    """An entry of `spec.resourceClaims`. claim: name of its ResourceClaim, "" while unknown. template: name of the
    template that the claim is made from, "" = none."""

    claim: str = ""
    template: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a claim, or one alternative of it. drivers: which may serve it by the request's own selectors;
    once `allocated`, which does. None = any."""

    device_class: str
    drivers: Drivers = None
    allocated: bool = False


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass. drivers: whose devices its selectors admit, None = any. resource: the extended resource that it
    serves, "" = none. created: RFC 3339 in UTC."""

    name: str
    drivers: Drivers = None
    resource: str = ""
    created: str = ""


class Devices(Protocol):
    """Look-ups of claims, templates and classes. None = unknown."""

    def requests_of_claim(self, namespace: str, name: str) -> Sequence[Request] | None: ...
    def requests_of_template(self, namespace: str, name: str) -> Sequence[Request] | None: ...
    def device_class(self, name: str) -> DeviceClass | None: ...

    def class_of_resource(self, resource: str) -> str:
        """Returns the DeviceClass by which kube-scheduler serves the extended resource; "" if none is known."""

    def drivers_of_resource(self, resource: str) -> frozenset[str]:
        """Returns the drivers of the DeviceClasses that serve the resource."""


class NoDevices:
    """Look-ups in which everything is unknown."""

    def requests_of_claim(self, namespace: str, name: str) -> Sequence[Request] | None:  # noqa: ARG002
        return None

    def requests_of_template(self, namespace: str, name: str) -> Sequence[Request] | None:  # noqa: ARG002
        return None

    def device_class(self, name: str) -> DeviceClass | None:  # noqa: ARG002
        return None

    def class_of_resource(self, resource: str) -> str:
        return class_by_prefix(resource)

    def drivers_of_resource(self, resource: str) -> frozenset[str]:  # noqa: ARG002
        return frozenset()


def class_by_prefix(resource: str) -> str:
    """Returns the DeviceClass that the name of an extended resource contains; "" if it contains none."""
    return resource[len(CLASS_PREFIX) :] if resource.startswith(CLASS_PREFIX) else ""


def is_device(resource: str) -> bool:
    """Returns whether a DRA driver could serve the resource. `cpu`, `memory` and others of Kubernetes have no
    domain."""
    return "/" in resource


def vendors_driver(resource: str) -> str:
    """Returns the driver that the resource's vendor ships for it; "" if none is known here."""
    return next((driver for pattern, driver in _VENDORS if pattern.match(resource)), "")


def claimed(
    claims: Sequence[PodClaim],
    namespace: str,
    *,
    classes: Collection[str],
    resources: Collection[str],
    devices: Devices,
) -> bool:
    """Returns whether one of the claims requests a device of one of the classes, or of a driver that serves one of the
    resources.

    An unknown claim counts, and for `resources` so does a request with an unknown driver. Each alternative counts until
    one is allocated.
    """
    served = [resource for resource in resources if is_device(resource)]
    named = {*classes, *filter(None, map(class_by_prefix, served))}
    if not (named or served):
        return False
    for one in claims:
        requests = devices.requests_of_claim(namespace, one.claim) if one.claim else None
        if requests is None and one.template:
            requests = devices.requests_of_template(namespace, one.template)
        if requests is None or any(request.device_class in named for request in requests):
            return True
        if any(_serves(request, resource, devices) for request in requests for resource in served):
            return True
    return False


def _serves(request: Request, resource: str, devices: Devices) -> bool:
    """Returns whether the request may get a device of a driver that serves the resource."""
    device_class = devices.device_class(request.device_class)
    if device_class is not None and device_class.resource == resource:
        return True
    drivers = request.drivers
    if device_class is not None and not request.allocated:
        drivers = both(drivers, device_class.drivers)
    return drivers is None or not drivers.isdisjoint(devices.drivers_of_resource(resource) | _by_name(resource))


def _by_name(resource: str) -> frozenset[str]:
    """Returns the drivers that serve the resource by its name alone. A driver's name ends with the domain of its
    vendor, and a resource's begins with it: `gpu.example.com` for `example.com/gpu`."""
    domain, _, name = resource.partition("/")
    return frozenset({vendors_driver(resource), f"{name}.{domain}", domain} - {""})
