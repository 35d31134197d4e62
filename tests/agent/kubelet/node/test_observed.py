"""What a runtime has found, in the node's status: setters Images, RuntimeHandlers, VolumesInUse, and the pressures."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.kubelet.node.facts import NodeFacts, changed, node_status
from agent.kubelet.node.machine import Machine, machine
from agent.kubelet.node.observed import IMAGES, NAMES, NOTHING, Observed, reported_images
from agent.wire.model import Image, NodeImage, NodeRuntimeHandler, NodeStatus
from tools.kit.cases import cases

NOW = 1_700_000_000.0
FACTS = NodeFacts("n", "192.0.2.1", {"cpu": "4"}, {}, Machine("amd64", "6.1", "os", "m", "b"), "v1.36.3")
OLD = NodeStatus(
    images=(NodeImage(("old",), 5),),
    runtime_handlers=(NodeRuntimeHandler("old", user_namespaces=True),),
    volumes_in_use=("kubernetes.io/csi/old",),
)


def image(name: str, size_bytes: int, *, digests: int = 0, tags: int = 1) -> Image:
    return Image(
        name, size_bytes, tuple(f"{name}@{n}" for n in range(digests)), tuple(f"{name}:{n}" for n in range(tags))
    )


@cases(
    "images, expected",
    ("none", [], []),
    ("the largest first", [image("a", 1), image("b", 3), image("c", 2)], ["b:0", "c:0", "a:0"]),
    ("equal ones by their ids", [image("a", 1), image("c", 1), image("b", 1)], ["c:0", "b:0", "a:0"]),
    ("digests before tags", [image("a", 1, digests=1)], ["a@0 a:0"]),
    ("five names each", [image("a", 1, digests=3, tags=3)], ["a@0 a@1 a@2 a:0 a:1"]),
    ("one without a name", [image("a", 1, tags=0)], [""]),
)
def test_which_images_are_reported(images: list[Image], expected: list[str]) -> None:
    assert expected == [" ".join(reported.names) for reported in reported_images(images)]


def test_no_more_are_reported_than_the_kubelet_reports() -> None:
    assert (50, 5) == (IMAGES, NAMES)
    many = reported_images([image(str(n), n) for n in range(60)])
    assert (50, 59, 10) == (len(many), many[0].size_bytes, many[-1].size_bytes)


@cases(
    "found, expected",
    ("nothing: volumes are not known yet and stay", NOTHING, ((), (), OLD.volumes_in_use)),
    ("no volume is in use", Observed(volumes_in_use=()), ((), (), ())),
    (
        "some of each",
        Observed((image("a", 1),), OLD.runtime_handlers, ("v",)),
        ((NodeImage(("a:0",), 1),), OLD.runtime_handlers, ("v",)),
    ),
)
def test_what_was_found_takes_the_place_of_what_an_earlier_one_has_left(found: Observed, expected: object) -> None:
    made = node_status(FACTS, OLD, [], NOW, found)
    assert expected == (made.images, made.runtime_handlers, made.volumes_in_use)
    before = node_status(FACTS, made, [], NOW, Observed(volumes_in_use=made.volumes_in_use))
    assert (expected[:2] != ((), ())) == changed(before, made)


@pytest.mark.parametrize(
    ("facts", "found", "expected"),
    [
        pytest.param(None, None, (True, ("Old",)), id="nobody says: both stay"),
        pytest.param((), False, (False, ()), id="none is declared, and the runtime has no policy"),
        pytest.param(("A",), None, (True, ("A",)), id="one is declared"),
    ],
)
def test_features_of_kubelet_and_runtime(facts: object, found: bool | None, expected: object) -> None:
    old = replace(OLD, supplemental_groups_policy=True, declared_features=("Old",))
    declaring = replace(FACTS, declared_features=facts)
    made = node_status(declaring, old, [], NOW, replace(NOTHING, supplemental_groups_policy=found))
    assert expected == (made.supplemental_groups_policy, made.declared_features)
    kept = replace(made, supplemental_groups_policy=True, declared_features=("Old",))
    assert (expected != (True, ("Old",))) == changed(kept, made)


@pytest.mark.parametrize(
    ("kind", "reason", "message"),
    [
        ("MemoryPressure", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        ("DiskPressure", "KubeletHasDiskPressure", "kubelet has disk pressure"),
        ("PIDPressure", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ],
)
def test_n10_n11_a_pressure_that_comes_and_goes(kind: str, reason: str, message: str) -> None:
    under = Observed(pressures=frozenset({kind}))
    calm = node_status(FACTS, NodeStatus(), [], NOW)
    pressed = node_status(FACTS, calm, [], NOW + 10, under)
    still = node_status(FACTS, pressed, [], NOW + 20, under)
    over = node_status(FACTS, still, [], NOW + 30)
    told = [next(c for c in status.conditions if c.type == kind) for status in (calm, pressed, still, over)]
    assert ["False", "True", "True", "False"] == [condition.status for condition in told]
    assert [NOW, NOW + 10, NOW + 10, NOW + 30] == [condition.last_transition_time for condition in told]
    assert [(reason, message)] * 2 == [(condition.reason, condition.message) for condition in told[1:3]]


@pytest.mark.parametrize(
    ("meminfo", "expected"),
    [
        pytest.param("MemTotal: 10 kB\nSwapCached: 3 kB\nSwapTotal:  1048572 kB\n", 1048572 * 1024, id="swap"),
        pytest.param("SwapTotal: 0 kB\n", 0, id="none"),
        pytest.param("SwapTotal: many\n", 0, id="what is no number"),
        pytest.param(None, 0, id="no file"),
    ],
)
def test_how_much_swap_the_machine_has(meminfo: str | None, expected: int, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    if meminfo is not None:
        (tmp_path / "proc/meminfo").write_text(meminfo)
    assert expected == machine(tmp_path).swap_bytes
