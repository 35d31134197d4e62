"""The status API of 5,000 nodes under everything that clients can do at once: its memory, and the kubelet's probe."""

from pathlib import Path

import msgspec
import pytest

from tests.scripted.status_api_attack import KERNEL_MIB, Seen, attack

VALUES = Path(__file__).parents[2] / "charts" / "readygate" / "values.yaml"
ATTACK_S = 15.0
PROBE_LIMIT_S = 5.0  # half of the timeout of the kubelet's liveness probe; `make chaos` asserts one second


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> Seen:
    return attack(tmp_path_factory.mktemp("attack"), ATTACK_S)


def test_memory_stays_below_the_limit_of_the_container(seen):
    limit = msgspec.yaml.decode(VALUES.read_bytes())["extender"]["statusApi"]["resources"]["limits"]["memory"]
    assert limit == "128Mi"
    assert seen.peak_mib + KERNEL_MIB <= 128, seen


def test_each_kind_of_request_was_under_way(seen):
    answered = {kind for kind, answer in seen.answers if answer == 200}
    assert answered >= {"body", "all nodes", "nodes", "history", "metrics"}, seen.answers
    assert {kind for kind, _ in seen.answers} >= {"slow reader", "slow sender", "chunks", "silent"}


def test_the_kubelets_probe_is_answered(seen):
    assert len(seen.probes) >= 10
    assert [] == [probe for probe in seen.probes if probe[1] != 200 or probe[0] > PROBE_LIMIT_S]
