"""JSON keys of the objects without information about a node's health. Pure.

DaemonSets show where health pods can run, one ConfigMap holds the orders, and the others show which CSI driver serves a
claim and which devices a ResourceClaim requests. As in `observed`, a field of a wrong type makes the reflector skip the
object.
"""

from collections.abc import Iterator, Sequence

import msgspec

from extender.policy import devices
from extender.policy.cel import Drivers, both, drivers_of
from extender.policy.placement import Placement, Toleration, term_of
from kube.objects import BareMeta

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


class ConfigMap(msgspec.Struct, frozen=True, gc=False):
    metadata: BareMeta
    data: dict[str, str] | None = None
    binary: dict[str, msgspec.Raw] | None = msgspec.field(default=None, name="binaryData")

    @property
    def entries(self) -> dict[str, object]:
        """Returns the entries; None for a value that is no text, as kubectl writes for a file that is not UTF-8."""
        return {**dict.fromkeys(self.binary or ()), **(self.data or {})}


class _Requirement(msgspec.Struct, frozen=True, gc=False):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class _Term(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    match_expressions: list[_Requirement] | None = None
    match_fields: list[_Requirement] | None = None


class _Required(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_selector_terms: list[_Term] | None = None


class _NodeAffinity(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    required_during_scheduling_ignored_during_execution: _Required | None = None


class _Affinity(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_affinity: _NodeAffinity | None = None


class _Toleration(msgspec.Struct, frozen=True, gc=False):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class _TemplateSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_selector: dict[str, str] | None = None
    node_name: str = ""
    affinity: _Affinity | None = None
    tolerations: list[_Toleration] | None = None


class _Template(msgspec.Struct, frozen=True, gc=False):
    spec: _TemplateSpec = _TemplateSpec()


class _DaemonSetSpec(msgspec.Struct, frozen=True, gc=False):
    template: _Template = _Template()


class DaemonSet(msgspec.Struct, frozen=True, gc=False):
    metadata: BareMeta
    spec: _DaemonSetSpec = _DaemonSetSpec()


class _ClaimSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    volume_name: str = ""
    storage_class_name: str | None = None


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A PersistentVolumeClaim."""

    metadata: BareMeta
    spec: _ClaimSpec = _ClaimSpec()


class _Csi(msgspec.Struct, frozen=True, gc=False):
    driver: str = ""


class _VolumeMeta(BareMeta, frozen=True, gc=False, rename="camel", omit_defaults=True):
    annotations: dict[str, str] | None = None


class _VolumeSpec(msgspec.Struct, frozen=True, gc=False):
    csi: _Csi | None = None


class Volume(msgspec.Struct, frozen=True, gc=False):
    """A PersistentVolume."""

    metadata: _VolumeMeta
    spec: _VolumeSpec = _VolumeSpec()

    @property
    def driver(self) -> str:
        """Returns the CSI driver, for a volume of a former in-tree plugin the driver that serves it now. "" for
        none."""
        if self.spec.csi is not None:
            return self.spec.csi.driver
        return (self.metadata.annotations or {}).get(PROVISIONED_BY, "")


class StorageClass(msgspec.Struct, frozen=True, gc=False):
    """A StorageClass. provisioner: the name of the CSI driver."""

    metadata: BareMeta
    provisioner: str = ""


class _Cel(msgspec.Struct, frozen=True, gc=False):
    expression: str = ""


class _Selector(msgspec.Struct, frozen=True, gc=False):
    cel: _Cel | None = None


class _Exactly(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    device_class_name: str = ""
    selectors: list[_Selector] | None = None


class _Alternative(_Exactly, frozen=True, gc=False, rename="camel"):
    name: str = ""


class _Request(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    exactly: _Exactly | None = None
    first_available: list[_Alternative] | None = None

    @property
    def choices(self) -> Iterator[tuple[str, _Exactly]]:
        """Returns the possible allocations by the name that the result of an allocation has."""
        if self.exactly is not None:
            yield self.name, self.exactly
        for one in self.first_available or ():
            yield f"{self.name}/{one.name}", one


class _DevicesAsked(msgspec.Struct, frozen=True, gc=False):
    requests: list[_Request] | None = None


class _ResourceClaimSpec(msgspec.Struct, frozen=True, gc=False):
    devices: _DevicesAsked = _DevicesAsked()

    @property
    def choices(self) -> dict[str, _Exactly] | None:
        """Returns the choices of all requests; None if one has a form of a later Kubernetes."""
        each = [dict(one.choices) for one in self.devices.requests or ()]
        return None if not all(each) else {name: one for choices in each for name, one in choices.items()}


class _Result(msgspec.Struct, frozen=True, gc=False):
    request: str = ""
    driver: str = ""


class _DevicesGiven(msgspec.Struct, frozen=True, gc=False):
    results: list[_Result] | None = None


class _Allocation(msgspec.Struct, frozen=True, gc=False):
    devices: _DevicesGiven = _DevicesGiven()


class _ResourceClaimStatus(msgspec.Struct, frozen=True, gc=False):
    allocation: _Allocation | None = None


class ResourceClaim(msgspec.Struct, frozen=True, gc=False):
    metadata: BareMeta
    spec: _ResourceClaimSpec = _ResourceClaimSpec()
    status: _ResourceClaimStatus | None = None

    @property
    def requests(self) -> tuple[devices.Request, ...] | None:
        """Returns the allocated requests once the claim is allocated. None for an unknown form."""
        allocation = None if self.status is None else self.status.allocation
        if allocation is None:
            return _requests(self.spec)
        choices = self.spec.choices or {}
        given = {(one.request, one.driver) for one in allocation.devices.results or ()}
        return tuple(
            devices.Request(choices[name].device_class_name if name in choices else "", frozenset({driver}), True)
            for name, driver in sorted(given)
        )


class _ClaimTemplateSpec(msgspec.Struct, frozen=True, gc=False):
    spec: _ResourceClaimSpec = _ResourceClaimSpec()


class ResourceClaimTemplate(msgspec.Struct, frozen=True, gc=False):
    metadata: BareMeta
    spec: _ClaimTemplateSpec = _ClaimTemplateSpec()

    @property
    def requests(self) -> tuple[devices.Request, ...] | None:
        """Returns the requests of claims that are made from the template."""
        return _requests(self.spec.spec)


class _DeviceClassSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    selectors: list[_Selector] | None = None
    extended_resource_name: str | None = None


class DeviceClass(msgspec.Struct, frozen=True, gc=False):
    metadata: BareMeta
    spec: _DeviceClassSpec = _DeviceClassSpec()

    @property
    def known(self) -> devices.DeviceClass:
        meta, resource = self.metadata, self.spec.extended_resource_name or ""
        return devices.DeviceClass(meta.name, _admitted(self.spec.selectors), resource, meta.creation_timestamp or "")


def _requests(spec: _ResourceClaimSpec) -> tuple[devices.Request, ...] | None:
    choices = spec.choices
    if choices is None:
        return None
    return tuple(devices.Request(one.device_class_name, _admitted(one.selectors)) for one in choices.values())


def _admitted(selectors: Sequence[_Selector] | None) -> Drivers:
    """Returns the drivers that all of the selectors admit."""
    found: Drivers = None
    for one in selectors or ():
        found = both(found, drivers_of(one.cel.expression) if one.cel is not None else None)
    return found


def placement(daemon_set: DaemonSet) -> Placement:
    spec = daemon_set.spec.template.spec
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    required = None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
    terms = None
    if required is not None:
        terms = tuple(
            term_of(_triples(term.match_expressions), _triples(term.match_fields))
            for term in required.node_selector_terms or ()
        )
    tolerations = tuple(Toleration(one.key, one.operator, one.value, one.effect) for one in spec.tolerations or ())
    return Placement(spec.node_selector or {}, terms, spec.node_name, tolerations)


def _triples(requirements: Sequence[_Requirement] | None) -> list[tuple[str, str, Sequence[str]]]:
    return [(one.key, one.operator, one.values or ()) for one in requirements or ()]
