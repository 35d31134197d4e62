"""What the extender reads of objects that say nothing of a node's health: JSON keys only. Pure.

DaemonSets say where health pods can run, one ConfigMap what operators have ordered, the rest which CSI driver serves a
claim. As in `observed`, a field of the wrong type makes the reflector skip the object.
"""

from collections.abc import Sequence

import msgspec

from extender.policy.placement import Placement, Toleration, term_of
from kube.objects import BareMeta

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


class ConfigMap(msgspec.Struct, frozen=True, gc=False):
    metadata: BareMeta
    data: dict[str, str] | None = None
    binary: dict[str, msgspec.Raw] | None = msgspec.field(default=None, name="binaryData")

    @property
    def entries(self) -> dict[str, object]:
        """None stands for what is no text: kubectl puts it there if a file is not UTF-8."""
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
        """Of a volume of a plugin that Kubernetes had in its own tree: who made it. Empty for one of no driver."""
        if self.spec.csi is not None:
            return self.spec.csi.driver
        return (self.metadata.annotations or {}).get(PROVISIONED_BY, "")


class StorageClass(msgspec.Struct, frozen=True, gc=False):
    """provisioner: the name of the CSI driver."""

    metadata: BareMeta
    provisioner: str = ""


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
