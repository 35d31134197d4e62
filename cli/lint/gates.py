"""What the gates of a configuration can never do, and what the file alone cannot tell. Pure."""

from collections.abc import Iterator, Sequence

from msgspec import structs

from cli.lint.conditions import of_conditions
from cli.lint.findings import Finding, error, note, warning
from extender.config.gates import OUR_HEALTH_PODS, For, Gate
from extender.config.settings import Settings
from extender.policy.devices import class_by_prefix, vendors_driver
from extender.policy.exempt import ALWAYS, SYSTEM_CRITICAL_PRIORITY
from kube.selector import Operator, Requirement, Selector, parse


def examine(settings: Settings) -> Sequence[Finding]:
    """In the order of the file."""
    found: list[Finding] = []
    for place, gate in enumerate(settings.gates):
        where = f"gates[{place}]"
        equal = next((one for one in range(place) if _but_name(settings.gates[one]) == _but_name(gate)), None)
        if equal is not None:
            what = f"is the same as gates[{equal}] but for its name: it decides nothing of its own"
            found.append(warning(where, what, "delete one of the two"))
        found += _of_gate(gate, settings, where)
    return found


def _but_name(gate: Gate) -> Gate:
    return structs.replace(gate, name="")


def _of_gate(gate: Gate, settings: Settings, where: str) -> Iterator[Finding]:
    yield from _of_pods(gate.pods_for, settings, f"{where}.for")
    if (nodes := contradiction(gate.nodes)) is not None:
        yield error(f"{where}.nodes", f"no node can match {nodes}: the gate speaks of no node", "correct the selector")
    heard = gate.pod_starts is None and (gate.conditions is None or gate.conditions.of_pods)
    if heard and gate.health_pods is not None:
        selector = contradiction(gate.health_pods.label_selector)
        if selector is not None:
            what = f"no pod can match {selector}, so no node has a health pod: the gate closes every node"
            yield error(f"{where}.healthPods.labelSelector", what, "correct the selector")
    elif gate.health_pods not in (None, OUR_HEALTH_PODS):
        what = "has no effect: no condition is of a pod" if gate.conditions else "has no effect beside podStarts"
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
    """Of resources whose DRA driver only the cluster's DeviceClasses tell. Named classes answer that."""
    if pods.device_classes is not None:
        return
    for place, resource in enumerate(pods.resources or ()):
        if "/" in resource and not (vendors_driver(resource) or class_by_prefix(resource)):
            domain, _, name = resource.partition("/")
            what = f"it is unknown which DRA driver serves {resource}: pods that claim it through a ResourceClaim count"
            told = f"only if a DeviceClass has extendedResourceName {resource}"
            named = f"or the driver is {name}.{domain} or {domain}"
            remedy = f"name their classes in {where}.deviceClasses"
            yield note(f"{where}.resources[{place}]", f"{what} {told}, {named}", remedy)


def contradiction(selector: str | None) -> str | None:
    """The terms of a label selector that no labels match together; None if some do."""
    terms: dict[str, list[Requirement]] = {}
    for one in parse(selector or "").requirements:
        terms.setdefault(one.key, []).append(one)
    for key, about in terms.items():
        tried = [{}, *({key: value} for value in _values(about))]
        if not any(all(one.matches(labels) for one in about) for labels in tried):
            return f"`{Selector(tuple(about))}`"
    return None


def _values(about: Sequence[Requirement]) -> Iterator[str]:
    """Values of a label that tell whether the terms agree: each that is named, one that is not, and numbers that are
    nearest to the limits. As many numbers as values may be excluded, and one more."""
    named = {value for one in about for value in one.values}
    yield from named
    yield "x" * (1 + max((len(value) for value in named), default=0))
    limits = [int(value) for one in about if one.operator in (Operator.GT, Operator.LT) for value in one.values]
    for limit in limits:
        yield from (str(limit + step) for step in range(-len(named) - 1, len(named) + 2))
