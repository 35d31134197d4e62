"""What the spec of a pod asks of the node that it runs on: Kubernetes JSON ->"""

from collections.abc import Mapping

import msgspec

from agent.wire.placement_model import NodeRequirement, NodeTerm, Placement, Toleration
from agent.wire.status import Int32

Amounts = dict[str, str | int | float]


class Resources(msgspec.Struct):
    limits: Amounts | None = None
    requests: Amounts | None = None


class _Requirement(msgspec.Struct):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class _Term(msgspec.Struct, rename="camel"):
    match_expressions: list[_Requirement] | None = None
    match_fields: list[_Requirement] | None = None


class _Selector(msgspec.Struct, rename="camel"):
    node_selector_terms: list[_Term] | None = None


class _NodeAffinity(msgspec.Struct, rename="camel"):
    required: _Selector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class _Affinity(msgspec.Struct, rename="camel"):
    node_affinity: _NodeAffinity | None = None


class _Toleration(msgspec.Struct):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class _Os(msgspec.Struct):
    name: str = ""


class PlacementSpec(msgspec.Struct, rename="camel"):
    """These fields of a pod's spec."""

    node_selector: dict[str, str] | None = None
    affinity: _Affinity | None = None
    tolerations: list[_Toleration] | None = None
    os: _Os | None = None
    priority: Int32 | None = None
    overhead: Amounts | None = None
    resources: Resources | None = None


def placement(spec: PlacementSpec) -> Placement:
    affinity = (spec.affinity or _Affinity()).node_affinity or _NodeAffinity()
    terms = None if affinity.required is None else affinity.required.node_selector_terms or ()
    return Placement(
        node_selector=spec.node_selector or {},
        node_terms=None if terms is None else tuple(_term(term) for term in terms),
        tolerations=tuple(Toleration(t.key, t.operator, t.value, t.effect) for t in spec.tolerations or ()),
        os=None if spec.os is None else spec.os.name,
        priority=spec.priority,
        overhead=_texts(spec.overhead),
        resources=resources(spec.resources),
    )


def resources(wire: Resources | None) -> tuple[tuple[str, str, str], ...]:
    if wire is None:
        return ()
    kinds = (("limits", wire.limits), ("requests", wire.requests))
    return tuple((kind, name, quantity) for kind, of in kinds for name, quantity in sorted(_texts(of).items()))


def _texts(amounts: Amounts | None) -> Mapping[str, str]:
    return {name: str(quantity) for name, quantity in (amounts or {}).items()}


def _term(wire: _Term) -> NodeTerm:
    return NodeTerm(_requirements(wire.match_expressions), _requirements(wire.match_fields))


def _requirements(wire: list[_Requirement] | None) -> tuple[NodeRequirement, ...]:
    return tuple(NodeRequirement(r.key, r.operator, tuple(r.values or ())) for r in wire or ())
