"""Rows RZ: the resources of a pod are changed while it runs."""

from dataclasses import replace
from pathlib import Path

from agent.kubelet.pods.resizing import EVENT_INFEASIBLE, allocated, amounts, resources
from agent.kubelet.pods.sync import HOUSEKEEPING_S
from agent.kubelet.status.conditions import find_condition
from agent.store.granted_resources import GrantedResources
from agent.wire.model import Condition, Container, Pod, PodPhase, PodStatus
from tests.agent.kubelet.pods.test_sync import Node
from tests.agent.kubelet.status.builders import NOW, make_pod
from tools.kit.cases import cases


def asking(cpu: str, *, memory: str = "1Gi", generation: int = 1, **fields) -> Pod:
    resources = (("limits", "memory", memory), ("requests", "cpu", cpu))
    return make_pod(Container("a", resources=resources), generation=generation, **fields)


def played(*pods: Pod) -> list[tuple[str, int] | None]:
    """After each of them: reason and generation of what is pending."""
    allocation, said = None, []
    for pod in pods:
        allocation, _ = allocated(allocation, pod, NOW)
        pending = allocation.resizes.pending
        said.append(pending and (pending.reason, pending.observed_generation))
    return said


ENDED = PodStatus(phase=PodPhase.FAILED)
TWO, NO_TWO = asking("2", generation=2), ("Infeasible", 2)
BEFORE = PodStatus(
    conditions=(
        Condition("PodResizePending", "True", "Infeasible", observed_generation=4),
        Condition("PodResizeInProgress", "True", observed_generation=3),
    )
)


@cases(
    "pods, expected",
    ("RZ20 what a pod has when it is seen first is granted", [asking("1")], [None]),
    ("RZ21 a change is infeasible", [asking("1"), TWO], [None, NO_TWO]),
    ("RZ22 the same amount", [asking("1"), asking("1000m", memory="1024Mi", generation=2)], [None, None]),
    ("RZ23 a change that is taken back", [asking("1"), TWO, asking("1", generation=3)], [None, NO_TWO, None]),
    ("RZ24 a later generation", [asking("1"), TWO, asking("2", generation=3)], [None, NO_TWO, NO_TWO]),
    ("RZ25 not of a pod that has ended", [asking("1"), asking("2", generation=2, status=ENDED)], [None, None]),
    ("RZ26 what an earlier agent wrote stays", [asking("2", generation=4, status=BEFORE)], [("Infeasible", 4)]),
)
def test_a_change_of_resources(pods: list[Pod], expected: list[tuple[str, int] | None]) -> None:
    assert expected == played(*pods)


def test_rz27_nothing_is_in_progress_where_nothing_is_granted() -> None:
    assert allocated(None, asking("2", status=BEFORE), NOW)[0].resizes.in_progress is None


def test_rz28_the_status_and_an_event_say_so_and_the_container_runs_on() -> None:
    node = Node()
    node.put(asking("1"))
    running = node.runtime.pod("uid-1").running
    node.told.clear()
    node.put(asking("2", generation=2))
    status = node.statuses.pod_status("uid-1")
    made = find_condition(status.conditions, "PodResizePending")
    message = "In-place pod resize is not supported on this node"
    assert ("True", "Infeasible", message, 2) == (made.status, made.reason, made.message, made.observed_generation)
    text = (
        'Pod resize Infeasible: {"containers":[{"name":"a","resources":{"limits":{"memory":"1Gi"},'
        f'"requests":{{"cpu":"2"}}}}}}],"generation":2,"error":"{message}"}}'
    )
    assert [("", "Warning", EVENT_INFEASIBLE, text)] == node.told
    assert running == node.runtime.pod("uid-1").running
    node.inbox.put("uid-1")
    node.settle()
    assert 1 == len(node.told), "told once"
    node.put(asking("1", generation=3))
    assert find_condition(node.statuses.pod_status("uid-1").conditions, "PodResizePending") is None


def test_rz29_the_pod_has_its_conditions_until_it_ends() -> None:
    node = Node()
    node.put(asking("1"))
    node.put(asking("2", generation=2))
    node.put(replace(asking("2", generation=3), deletion_timestamp=NOW, deletion_grace_period_s=0))
    assert find_condition(node.statuses.pod_status("uid-1").conditions, "PodResizePending") is not None
    node.end("a", 0)
    assert find_condition(node.statuses.pod_status("uid-1").conditions, "PodResizePending") is None


SAID = PodStatus(conditions=(Condition("PodResizePending", "True", "Infeasible", observed_generation=2),))


@cases(
    "pod, pending, event",
    ("RZ30 a change that waited waits on", asking("2", generation=2, status=SAID), 2, False),
    ("RZ31 one that came while nobody was here is told", asking("2", generation=2), 2, True),
    ("RZ32 none is none", asking("1"), None, False),
    ("RZ33 one taken back meanwhile is said until the next", asking("1", generation=3, status=SAID), 2, False),
    ("RZ34 not of a pod that has ended", asking("2", status=ENDED), None, False),
)
def test_what_an_agent_before_us_has_granted(pod: Pod, pending: int | None, event: bool) -> None:
    found, told = allocated(None, pod, NOW, amounts(resources(asking("1"))))
    assert (pending, event) == (found.resizes.pending and found.resizes.pending.observed_generation, told)
    assert found.granted == amounts(resources(asking("1")))


def test_rz35_a_change_is_known_after_a_restart_and_forgotten_with_the_pod(tmp_path: Path) -> None:
    path = tmp_path / "granted"
    Node(grants=GrantedResources(path)).put(asking("1"))
    node = Node(grants=GrantedResources(path))
    node.put(asking("2", generation=2))
    assert [EVENT_INFEASIBLE] == [reason for _, kind, reason, _ in node.told if kind == "Warning"]
    node.put(asking("1", generation=3))
    assert find_condition(node.statuses.pod_status("uid-1").conditions, "PodResizePending") is None
    node.remove()
    assert GrantedResources(path).of("uid-1") is not None, "it still runs"
    node.end("a")
    node.after(HOUSEKEEPING_S)
    assert GrantedResources(path).of("uid-1") is None


def test_rz36_nothing_is_kept_of_a_pod_that_was_refused_or_had_ended(tmp_path: Path) -> None:
    path = tmp_path / "granted"
    node = Node(max_pods=1, grants=GrantedResources(path))
    for number, status in enumerate((PodStatus(), PodStatus(), ENDED)):
        node.put(asking("1", uid=f"uid-{number}", status=status))
    assert [True, False, False] == [GrantedResources(path).of(f"uid-{n}") is not None for n in range(3)]
