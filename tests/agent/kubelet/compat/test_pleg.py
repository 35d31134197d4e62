"""What the PLEG of old did not do (row CM25 of docs/kubelet-parity.md)."""

import pytest

from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.generator import EventGenerator
from agent.wire.semantics import V1_16, Semantics
from tests.agent.kubelet.pleg.builders import ScriptedRuntime, made


def generator_of(semantics: Semantics) -> tuple[EventGenerator, ScriptedRuntime, list[str]]:
    """One that has listed a pod, by a clock that tells 0 now and a tenth of a second more each time."""
    runtime, told, times = ScriptedRuntime(), [], iter(range(1000))
    runtime.pods = {"p": made("p", "c1=r")}
    generator = EventGenerator(
        runtime,
        Cache(newest_wins=True),
        lambda event: told.append(event.type) is None,
        events_come=None,
        semantics=semantics,
        monotonic=lambda: next(times) / 100,
    )
    generator.turn()
    told.clear()
    return generator, runtime, told


@pytest.mark.parametrize(
    ("semantics", "expected"), [(Semantics(), ["ContainerDied"]), (V1_16, [])], ids=["now", "1.16"]
)
def test_cm25_a_pod_that_is_asked_for_is_looked_at_before_the_next_list(
    semantics: Semantics, expected: list[str]
) -> None:
    generator, runtime, told = generator_of(semantics)
    runtime.pods = {"p": made("p", "c1=x")}
    generator.request("p")
    generator.turn()
    assert expected == told


@pytest.mark.parametrize(("semantics", "expected"), [(Semantics(), ["PodSync"]), (V1_16, [])], ids=["now", "1.16"])
def test_cm25_a_pod_that_was_inspected_again_is_synced(semantics: Semantics, expected: list[str]) -> None:
    generator, _, told = generator_of(semantics)
    generator.reinspect("p")
    generator._relist.relist(5.0)
    assert expected == told


@pytest.mark.parametrize("semantics", [Semantics(), V1_16], ids=["now", "1.16"])
def test_cm51_a_pod_without_a_sandbox_keeps_its_address(semantics: Semantics) -> None:
    generator, runtime, _ = generator_of(semantics)
    runtime.pods = {"p": made("p", "c1=r s1=S", ip="10.0.0.1")}
    generator._relist.relist(5.0)
    runtime.pods = {"p": made("p", "c1=r")}
    generator._relist.relist(6.0)
    assert "10.0.0.1" == generator.cache.get("p").pod.ip


@pytest.mark.parametrize("semantics", [Semantics(), V1_16], ids=["now", "1.16"])
def test_cm52_a_list_inspects_a_pod_once_and_none_that_has_gone(semantics: Semantics) -> None:
    generator, runtime, _ = generator_of(semantics)
    runtime.pods["q"] = made("q", "c2=r")
    runtime.breaks["q"] = OSError("away")
    runtime.inspected.clear()
    generator._relist.relist(5.0)
    generator._relist.relist(6.0)
    del runtime.pods["q"]
    generator._relist.relist(7.0)
    assert (["q", "q"], None) == (runtime.inspected, generator.cache.get("q").error)
