"""Pure: the gates of the configuration, in the terms of policy."""

from dataclasses import dataclass

from extender.config import gates
from extender.config.settings import Settings
from extender.policy.caps import Caps, Limit
from extender.policy.conditions import ConditionRules, rules_of
from extender.policy.damping import Damping
from extender.policy.decision import Severity
from extender.policy.devices import Devices
from extender.policy.evidence import ObservedNode
from extender.policy.placement import Placement
from extender.policy.pod_starts import StartRule
from extender.policy.pods import EVERY_POD, Classes, PodClass, Volumes, class_of
from extender.policy.storm import StormRule
from kube.selector import Selector, parse


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate. armed: by the configuration, before orders. nodes: None = it applies to all.

    conditions: None = the pod's Ready, and readygate.dev/NodeHealthy if present. cap: its own or that of all gates;
    None = none. by_starts: decided by how pods start on a node, and by nothing else.
    """

    name: str
    armed: bool = True
    severity: Severity = "gate"
    pods_for: PodClass = EVERY_POD
    nodes: Selector | None = None
    conditions: ConditionRules | None = None
    missing_grace_s: float = 30.0
    replace_grace_s: float = 60.0
    damping: Damping | None = None
    cap: Limit | None = None
    by_starts: bool = False

    @property
    def needs_pod(self) -> bool:
        """Returns whether health pods decide; otherwise only conditions of the Node do."""
        return not self.by_starts and (self.conditions is None or self.conditions.needs_pod)


def gates_of(settings: Settings) -> tuple[Gate, ...]:
    """Returns the gates in the order of the file."""
    common = limit_of(settings.cap.gate) if isinstance(settings.cap, gates.Caps) else None
    return tuple(_gate(gate, common) for gate in settings.gates)


def classes_of(settings: Settings, volumes: Volumes | None = None, devices: Devices | None = None) -> Classes:
    """Returns to which pods each gate applies."""
    return Classes([gate.pods_for for gate in gates_of(settings)], volumes, devices)


def caps_of(settings: Settings) -> Caps:
    """Returns the caps of all gates together."""
    cap = settings.cap
    if not isinstance(cap, gates.Caps):
        return Caps()
    return Caps(
        cluster=limit_of(cap.cluster),
        zone=limit_of(cap.zone),
        pool=limit_of(cap.pool),
        leave_in_pool=cap.leave_in_pool,
        pool_label=cap.pool_label,
        zone_label=cap.zone_label,
        new_node_s=cap.new_node_seconds,
    )


def storm_of(settings: Settings) -> StormRule | None:
    storm = settings.storm
    if not isinstance(storm, gates.Storm):
        return None
    return StormRule(storm.percent, storm.at_least, storm.within_seconds, storm.calm_seconds)


def start_rule_of(settings: Settings) -> StartRule | None:
    """Returns the rule for starts of pods, None if no gate uses it."""
    found = next((gate.pod_starts for gate in settings.gates if gate.pod_starts is not None), None)
    return None if found is None else StartRule(found.namespaces, found.within_seconds, found.stuck_seconds)


def limit_of(value: str | int | None) -> Limit | None:
    """Returns a cap of the file as a limit."""
    if value is None:
        return None
    return Limit(percent=int(value[:-1])) if isinstance(value, str) else Limit(absolute=value)


def not_gated(gate: Gate, placement: Placement | None, node: ObservedNode) -> str:
    """Returns why the gate does not apply to the node, for humans; "" if it does. placement: None = unknown."""
    if gate.nodes is not None and not gate.nodes.matches(node.labels):
        return f"the gate's `nodes` selects others: {gate.nodes}"
    if placement is None or not gate.needs_pod:
        return ""
    return placement.why_not(node.name, node.labels, node.roles)


def _gate(gate: gates.Gate, common: Limit | None) -> Gate:
    damping = gate.damping
    own = None if gate.cap is False else limit_of(gate.cap)
    return Gate(
        name=gate.name,
        armed=gate.enforcement == "armed",
        severity=gate.severity_in_force,
        pods_for=class_of(gate.pods_for),
        nodes=None if gate.nodes is None else parse(gate.nodes),
        conditions=None if gate.conditions is None else rules_of(gate.conditions),
        missing_grace_s=gate.missing_grace_seconds,
        replace_grace_s=gate.replace_grace_seconds,
        damping=Damping(damping.min_healthy_seconds, damping.ceiling_seconds, damping.window_seconds)
        if isinstance(damping, gates.Damping)
        else None,
        cap=common if gate.cap is None else own,
        by_starts=gate.pod_starts is not None,
    )
