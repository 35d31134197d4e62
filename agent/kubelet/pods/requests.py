"""What a pod asks for of the node's resources. Pure.

Mirrors PodRequests of component-helpers' resource package, and Resource of kube-scheduler's framework, of v1.36.3.
"""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

from agent.kubelet.node.facts import HUGE_PAGES, amount
from agent.kubelet.plugins.handlers import is_extended_resource
from agent.kubelet.status.restarts import is_sidecar
from agent.wire.model import Pod

CPU, MEMORY, STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
_ATTACHABLE = "attachable-volumes-"
_KUBERNETES = "kubernetes.io/"
_MILLI = 1000
Amounts = dict[str, Fraction]


def pod_requests(pod: Pod) -> dict[str, int]:
    """By resource, in the units of `in_units`. App containers and sidecars run together; each other init container runs
    with the sidecars before it. What the pod asks for as a whole counts instead."""
    found = _sum(_requests(container.resources) for container in pod.containers)
    sidecars, init = Amounts(), Amounts()
    for container in pod.init_containers:
        asked = _requests(container.resources)
        if is_sidecar(container):
            found, sidecars = _sum((found, asked)), _sum((sidecars, asked))
        else:
            _raise(init, _sum((sidecars, asked)))
    _raise(found, init)
    whole = _requests(pod.placement.resources)
    found |= {name: value for name, value in whole.items() if name in (CPU, MEMORY) or name.startswith(HUGE_PAGES)}
    return in_units(_sum((found, _amounts(pod.placement.overhead.items()))))


def in_units(amounts: Mapping[str, Fraction]) -> dict[str, int]:
    """Processors in thousandths, all else in ones; of both the next whole number. What no node counts is left out."""
    return {
        name: math.ceil(value * _MILLI if name == CPU else value)
        for name, value in amounts.items()
        if name in (CPU, MEMORY, STORAGE, PODS) or is_scalar(name)
    }


def is_scalar(name: str) -> bool:
    """Is it counted, beside what each node has?"""
    return _KUBERNETES in name or name.startswith((HUGE_PAGES, _ATTACHABLE)) or is_extended_resource(name)


def allocatable(node: Mapping[str, str]) -> dict[str, int]:
    return in_units(_amounts(node.items()))


def _requests(resources: Iterable[tuple[str, str, str]]) -> Amounts:
    return _amounts((name, quantity) for kind, name, quantity in resources if kind == "requests")


def _amounts(quantities: Iterable[tuple[str, str]]) -> Amounts:
    """Those that are numbers: the API server takes no others."""
    found = ((name, amount(quantity)) for name, quantity in quantities)
    return {name: value for name, value in found if isinstance(value, Fraction)}


def _sum(of: Iterable[Amounts]) -> Amounts:
    found = Amounts()
    for amounts in of:
        for name, value in amounts.items():
            found[name] = found.get(name, Fraction()) + value
    return found


def _raise(to: Amounts, least: Amounts) -> None:
    for name, value in least.items():
        to[name] = max(to.get(name, value), value)
