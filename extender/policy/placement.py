"""Pure: where the pods of a DaemonSet can run, by its pod template and the node.

Mirrors NodeShouldRunDaemonPod (kubernetes pkg/controller/daemon) for nodeName, nodeSelector, required node affinity and
the taints of a node's role; operating system and architecture are labels. Other taints are left out on purpose: they
come and go, and many controllers set them while a node starts, when a gate is needed most. A node that only such a
taint keeps free of a health pod stays gated, so it is closed to pods that tolerate the taint. A role is set when a node
joins; a DaemonSet without a toleration for it is not meant for that node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kube.selector import Operator, Requirement, SelectorError, requirement

FIELD_NAME = "metadata.name"
ROLE = "node-role.kubernetes.io/"  # the prefix of the keys of such taints


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node that keeps pods from being placed."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        return f"{self.key}{self.value and '='}{self.value}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod template: an empty key with Exists is all keys, an empty effect all effects."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a node affinity. fields: key, whether it must be equal, the value. unreadable: matches no node."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[tuple[str, bool, str], ...] = ()
    unreadable: bool = False

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if self.unreadable or not (self.expressions or self.fields):
            return False
        return all(one.matches(labels) for one in self.expressions) and all(
            ((name if key == FIELD_NAME else "") == value) is equal for key, equal, value in self.fields
        )

    def __str__(self) -> str:
        fields = [f"{key}{'=' if equal else '!='}{value}" for key, equal, value in self.fields]
        return ",".join([*map(str, self.expressions), *fields])


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the pods can run. node_selector: labels that a node must have. terms: one of them must match; None = no
    affinity. node_name: the one node it can run on, "" = any. tolerations: of the pod template, without those every
    DaemonSet pod has."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    terms: tuple[Term, ...] | None = None
    node_name: str = ""
    tolerations: tuple[Toleration, ...] = ()

    def why_not(self, name: str, labels: Mapping[str, str], roles: Sequence[Taint] = ()) -> str:
        """Returns why no pod can run on this node, for humans; "" if one can. roles: the node's taints of a role."""
        for taint in roles:
            if not any(toleration.tolerates(taint) for toleration in self.tolerations):
                return f"the DaemonSet does not tolerate {taint}"
        if self.node_name and self.node_name != name:
            return f"the DaemonSet runs on {self.node_name} only"
        for key, value in self.node_selector.items():
            if labels.get(key) != value:
                has = f"{key}={labels[key]}" if key in labels else f"no {key}"
                return f"the DaemonSet's nodeSelector wants {key}={value}, the node has {has}"
        if self.terms is None or any(term.matches(name, labels) for term in self.terms):
            return ""
        wants = " or ".join(str(term) for term in self.terms if not term.unreadable)
        return f"the DaemonSet's node affinity wants {wants}" if wants else "the DaemonSet's node affinity fits no node"


def term_of(
    expressions: Sequence[tuple[str, str, Sequence[str]]], fields: Sequence[tuple[str, str, Sequence[str]]]
) -> Term:
    """Reads matchExpressions and matchFields: key, operator, values. As upstream, an unreadable term matches no
    node."""
    try:
        return Term(
            tuple(requirement(key, operator, values) for key, operator, values in expressions),
            tuple(_field(key, operator, values) for key, operator, values in fields),
        )
    except SelectorError:
        return Term(unreadable=True)


def _field(key: str, operator: str, values: Sequence[str]) -> tuple[str, bool, str]:
    if operator not in (Operator.IN, Operator.NOT_IN) or len(values) != 1:
        raise SelectorError(f"{operator} with {len(values)} values")
    return key, operator == Operator.IN, values[0]
