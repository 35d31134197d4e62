"""Is the container runtime ready? updateRuntimeUp and runtimeErrors of pkg/kubelet; target `node` of the comparison
draws answers of a runtime, and holds this to them."""

import pytest

from agent.cri.api_pb2 import StatusResponse
from agent.cri.base import RuntimeCondition, RuntimeStatus
from agent.cri.convert import Garbled, status_of
from agent.kubelet.runtime.readiness import Readiness, looked
from tools.kit.cases import cases

READY, NETWORK = RuntimeCondition("RuntimeReady", True), RuntimeCondition("NetworkReady", True)
NO_RUNTIME = RuntimeCondition("RuntimeReady", False, "Why", "because")
NO_NETWORK = RuntimeCondition("NetworkReady", False, "NetworkPluginNotReady", "no CNI")
DOWN = "container runtime is down"
NEVER = "container runtime status check may not have completed yet"
NO_RUNTIME_TEXT = "container runtime not ready: RuntimeReady=false reason:Why message:because"
NO_CONDITIONS = ["container runtime not ready: <nil>", "container runtime network not ready: <nil>"]
NO_NETWORK_TEXT = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:no CNI"


def errors(readiness: Readiness, monotonic: float) -> list[str]:
    return [*readiness.runtime_errors(monotonic, ["PLEG is not healthy: x"]), *readiness.network_errors()]


@cases(
    "answers, monotonic, expected",
    ("N40 no answer yet", [], 0.0, [NEVER, "PLEG", "network state unknown"]),
    ("N38 N44 all is well", [(0.0, READY, NETWORK)], 0.0, ["PLEG"]),
    ("it answered half a minute ago, nearly", [(0.0, READY, NETWORK)], 29.9, ["PLEG"]),
    ("N37 N39 half a minute ago", [(0.0, READY, NETWORK)], 30.0, [DOWN, "PLEG"]),
    ("N43 it is not ready", [(0.0, READY, NETWORK), (5.0, NO_RUNTIME, NETWORK)], 5.0, ["PLEG", NO_RUNTIME_TEXT]),
    (
        "N43 no sign of life",
        [(0.0, READY, NETWORK), (29.0, NO_RUNTIME, NETWORK)],
        30.0,
        [DOWN, "PLEG", NO_RUNTIME_TEXT],
    ),
    ("N45 its network is not", [(0.0, READY, NO_NETWORK)], 0.0, ["PLEG", NO_NETWORK_TEXT]),
    ("all is well again", [(0.0, READY, NO_NETWORK), (5.0, NO_RUNTIME, NETWORK), (6.0, READY, NETWORK)], 6.0, ["PLEG"]),
    ("N42 no conditions", [(0.0, None, None)], 0.0, [NEVER, "PLEG", *NO_CONDITIONS]),
)
def test_why_a_node_with_a_container_runtime_is_not_ready(
    answers: list[tuple[float, RuntimeCondition | None, RuntimeCondition | None]],
    monotonic: float,
    expected: list[str],
) -> None:
    readiness = Readiness()
    for at, runtime, network in answers:
        conditions = tuple(condition for condition in (network, runtime) if condition is not None)
        readiness = looked(readiness, RuntimeStatus(conditions), at)
    assert [text.replace("PLEG", "PLEG is not healthy: x") for text in expected] == errors(readiness, monotonic)


def test_n41_an_answer_without_a_status_is_none() -> None:
    """So all stays as it was: whoever asks takes that for an error."""
    with pytest.raises(Garbled, match="there is no status in it"):
        status_of(StatusResponse())
