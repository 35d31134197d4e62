"""Finds gates that are always open or always closed, parts without effect, and what the file leaves open. Pure."""

from collections.abc import Iterator, Sequence

from msgspec import structs

from cli.lint.conditions import of_conditions
from cli.lint.findings import Finding, error, note, warning
from extender.gate_settings import OUR_HEALTH_PODS, For, Gate
from extender.policy.devices import class_by_prefix, vendors_driver
from extender.policy.exempt import ALWAYS, SYSTEM_CRITICAL_PRIORITY
from extender.settings import Settings
from kube.selector import Operator, Requirement, Selector, parse


def examine(settings: Settings) -> Sequence[Finding]:
    """Returns the findings in the order of the file."""
    found: list[Finding] = []
    for place, gate in enumerate(settings.gates):
        where = f"gates[{place}]"
        equal = next((one for one in range(place) if _without_name(settings.gates[one]) == _without_name(gate)), None)
        if equal is not None:
            what = f"equals gates[{equal}] except for its name: it has no effect"
            found.append(warning(where, what, "delete one of the two"))
        found += _of_gate(gate, settings, where)
    return found


def _without_name(gate: Gate) -> Gate:
    return structs.replace(gate, name="")


def _of_gate(gate: Gate, settings: Settings, where: str) -> Iterator[Finding]:
    yield from _of_pods(gate.pods_for, settings, f"{where}.for")
    if (nodes := contradiction(gate.nodes)) is not None:
        yield error(f"{where}.nodes", f"no node can match {nodes}: the gate applies to no node", "correct the selector")
    uses_pods = gate.pod_starts is None and (gate.conditions is None or gate.conditions.of_pods)
    if uses_pods and gate.health_pods is not None:
        selector = contradiction(gate.health_pods.label_selector)
        if selector is not None:
            what = f"no pod can match {selector}, so no node has a health pod: the gate closes every node"
            yield error(f"{where}.healthPods.labelSelector", what, "correct the selector")
    elif gate.health_pods not in (None, OUR_HEALTH_PODS):
        what = "has no effect: no condition is of a pod" if gate.conditions else "has no effect with podStarts"
        yield warning(f"{where}.healthPods", what, "set it to null, or add a condition `of: pod`")
    if gate.conditions is not None:
        yield from of_conditions(gate.conditions, f"{where}.conditions")


def _of_pods(pods: For, settings: Settings, where: str) -> Iterator[Finding]:
    if (selector := contradiction(pods.pod_selector)) is not None:
        what = f"no pod can match {selector}: the gate refuses no pod"
        yield error(f"{where}.podSelector", what, "correct the selector")
    exempt = ALWAYS | {settings.namespace} | set(settings.exempt.namespaces)
    if pods.namespaces is not None and exempt.issuperset(pods.namespaces):
        what = f"pods of {', '.join(sorted(set(pods.namespaces)))} are always exempt: the gate refuses no pod"
        yield error(f"{where}.namespaces", what, "name another namespace")
    priority = pods.priority
    if priority is not None and priority.from_ is not None and priority.from_ >= SYSTEM_CRITICAL_PRIORITY:
        what = f"pods of priority {SYSTEM_CRITICAL_PRIORITY} and more are always exempt: the gate refuses no pod"
        yield error(f"{where}.priority.from", what, "lower it")
    for field in structs.fields(For):
        given = getattr(pods, field.name)
        if isinstance(given, tuple):
            yield from _twice(given, f"{where}.{field.encode_name}")
    yield from _unknown_drivers(pods, where)


def _twice(given: Sequence[str], where: str) -> Iterator[Finding]:
    for place, one in enumerate(given):
        if one in given[:place]:
            yield warning(f"{where}[{place}]", f"{one} is listed twice", "delete one of the two")


def _unknown_drivers(pods: For, where: str) -> Iterator[Finding]:
    """Notes on resources whose DRA driver only the cluster's DeviceClasses name, unless the gate names classes."""
    if pods.device_classes is not None:
        return
    for place, resource in enumerate(pods.resources or ()):
        if "/" in resource and not (vendors_driver(resource) or class_by_prefix(resource)):
            domain, _, name = resource.partition("/")
            what = f"it is unknown which DRA driver serves {resource}: pods that claim it through a ResourceClaim count"
            condition = f"only if a DeviceClass has extendedResourceName {resource}"
            named = f"or the driver is {name}.{domain} or {domain}"
            remedy = f"name their classes in {where}.deviceClasses"
            yield note(f"{where}.resources[{place}]", f"{what} {condition}, {named}", remedy)


def contradiction(selector: str | None) -> str | None:
    """The terms of a label selector that no labels can match together; None if some labels match."""
    terms: dict[str, list[Requirement]] = {}
    for one in parse(selector or "").requirements:
        terms.setdefault(one.key, []).append(one)
    for key, about in terms.items():
        tried = [{}, *({key: value} for value in _values(about))]
        if not any(all(one.matches(labels) for one in about) for labels in tried):
            return f"`{Selector(tuple(about))}`"
    return None


def _values(about: Sequence[Requirement]) -> Iterator[str]:
    """Label values that suffice to test whether the terms can match together.

    They are each named value, a value that is not named, and the numbers next to the limits: one more number than there
    are named values, because each of these may be excluded.
    """
    named = {value for one in about for value in one.values}
    yield from named
    yield "x" * (1 + max((len(value) for value in named), default=0))
    limits = [int(value) for one in about if one.operator in (Operator.GT, Operator.LT) for value in one.values]
    for limit in limits:
        yield from (str(limit + step) for step in range(-len(named) - 1, len(named) + 2))
