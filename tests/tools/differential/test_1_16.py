"""The comparison with kubelet 1.16: its semantics, its pods, and functions that are cut out of a file."""

from random import Random

import pytest

from agent.wire.semantics import V1_16
from tools.differential import worlds
from tools.differential.build import cut
from tools.differential.compare import drawn_batch, semantics_of
from tools.differential.kubelet import OLD_GATES, gates_of, is_old
from tools.differential.targets import TARGETS
from tools.differential.worlds_1_16 import pod_of_1_16

OLD = [target for target in TARGETS if is_old(target.name)]
SOURCE = """package kubelet

import (
	"fmt"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog"
)

func first(pod *v1.Pod) {
	klog.Info(pod) // as by fmt.
}

func second() {
	fmt.Println()
}
"""


def test_targets_of_1_16_are_compared_with_its_profile_alone() -> None:
    names = ("generate", "loops", "node", "pleg", "prober", "sources", "status")
    assert {f"{name}-1.16" for name in names} == {target.name for target in OLD}
    for target in OLD:
        gates, _ = drawn_batch(target, 3, 1, 1)
        semantics = semantics_of(gates)
        assert (OLD_GATES, V1_16.profile) == (gates_of(target.name), semantics.profile)
        assert not any(getattr(semantics, name) for name in semantics.__slots__ if name.startswith("fix_"))


def test_pods_of_1_16_have_no_fields_that_came_later() -> None:
    for seed in range(200):
        text = str(pod_of_1_16(worlds.draw_pod(Random(seed))))
        assert not any(word in text for word in ("restartPolicyRules", "ephemeralContainers", "observedGeneration"))
        assert text.count("restartPolicy") == 1  # of the pod


def test_functions_are_cut_out_with_the_imports_that_they_need() -> None:
    made = cut(SOURCE, ["first"])
    assert ("klog.Info" in made, '"fmt"' in made, 'v1 "k8s.io/api/core/v1"' in made) == (True, False, True)
    with pytest.raises(ValueError, match="third"):
        cut(SOURCE, ["third"])
