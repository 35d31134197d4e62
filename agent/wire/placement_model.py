"""What a pod asks of its node, and the taints of a node: frozen, in the words of the Kubernetes API. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str = ""
    effect: str = ""  # NoSchedule, PreferNoSchedule, NoExecute


@dataclass(frozen=True, slots=True)
class NodeRequirement:
    """Of a label or a field of a Node. `operator`: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """All of them must hold; a term without any holds nowhere."""

    labels: tuple[NodeRequirement, ...] = ()
    fields: tuple[NodeRequirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str = ""
    operator: str = ""  # empty: Equal
    value: str = ""
    effect: str = ""  # empty: all


@dataclass(frozen=True, slots=True)
class Placement:
    """What a pod asks of its node. `node_terms`: one of them must hold; None: anything will do. `resources`: of the pod
    as a whole, as of a container."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_terms: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    os: str | None = None
    priority: int | None = None
    overhead: Mapping[str, str] = field(default_factory=dict)
    resources: tuple[tuple[str, str, str], ...] = ()
