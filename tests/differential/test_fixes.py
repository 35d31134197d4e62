"""What a named fix may change: only that, where the fix says so."""

from typing import Any

import pytest

from tests.differential.fixes import FIXES

BY_NAME = {fix.name: fix for fix in FIXES}
POD = {"metadata": {"uid": "u"}, "spec": {"containers": [{"name": "a"}]}}
ADDED = {"pods": [POD], "steps": [{"op": "add", "pod": 0}, {"op": "add", "pod": 0}, {"op": "probe", "pod": 0}]}
A, B = "u a Liveness: id , Success x 0", "u a Readiness: id , Success x 0"
GATED = {"pod": {"spec": {"readinessGates": [{}], "initContainers": [{"name": "i", "restartPolicy": "Always"}]}}}
ENDED = {
    "pod": {"spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}},
    "runtime": {"containers": [{"name": "b"}]},
    "status": {"containerStatuses": [{"name": n, "state": {"terminated": {}}} for n in "ab"]},
}
NOTHING = {"init": [], "start": [], "kill": [], "killPod": False}
REMOVED = {"steps": [{"op": "relist", "uid": "p"}, {"op": "event", "kind": "deleted", "uid": "p"}]}
WAITS = {"steps": [{"op": "wait", "uid": "q"}, {"op": "event", "kind": "deleted", "uid": "p"}]}
FREES: dict[str, Any] = {"cache": {}, "freed": {}}
KNOWN, GONE = {"p": 1, "q": 1}, {"p": 2, "q": 1}
CLOCK = {"steps": [{"op": "probe", "ahead": 0.0, "wall": 0.0}, {"op": "probe", "ahead": 5.0, "wall": 5.0}]}


@pytest.mark.parametrize(
    ("fix", "history", "agent", "kubelet", "expected"),
    [
        pytest.param(
            *("add_pod_ends_at_first_worker", ADDED, [[A], [A, B], []], [[A], [A], []], True), id="workers more"
        ),
        pytest.param(*("add_pod_ends_at_first_worker", ADDED, [[A], [A], [B]], [[A], [A], []], False), id="in a probe"),
        pytest.param(*("add_pod_ends_at_first_worker", ADDED, [[A, B]], [[A]], False), id="where it is added first"),
        pytest.param(*("add_pod_ends_at_first_worker", ADDED, [[A], [B]], [[A], [A]], False), id="a worker fewer"),
        pytest.param(*("readiness_without_sidecars", GATED, [{"reconcile": True}], [{}], True), id="to be reconciled"),
        pytest.param(*("readiness_without_sidecars", GATED, [{"tried": 1}], [{}], False), id="another write"),
        pytest.param(
            *("ended_containers_without_record", ENDED, NOTHING, {**NOTHING, "start": ["a"]}, True),
            id="not started anew",
        ),
        pytest.param(
            *("ended_containers_without_record", ENDED, NOTHING, {**NOTHING, "start": ["b"]}, False),
            id="one with a record",
        ),
        pytest.param(
            *("ended_containers_without_record", ENDED, NOTHING, {**NOTHING, "kill": ["a"]}, False), id="one is killed"
        ),
        pytest.param(
            *("ended_containers_without_record", ENDED, {**NOTHING, "start": ["b"]}, NOTHING, False),
            id="one more started",
        ),
        pytest.param(
            *("removed_container_stays_known", REMOVED, [{}, {"cache": GONE}], [{}, {"cache": KNOWN}], True),
            id="it is gone",
        ),
        pytest.param(
            *("removed_container_stays_known", REMOVED, [FREES, {**FREES, "freed": {"0": {}}}], [FREES, FREES], True),
            id="it is listed still, and who waited for something newer is freed",
        ),
        pytest.param(
            *("removed_container_stays_known", WAITS, [FREES, {**FREES, "freed": {"0": {}}}], [FREES, FREES], False),
            id="who waited for another pod is freed",
        ),
        pytest.param(
            *("removed_container_stays_known", REMOVED, [{"cache": GONE}], [{"cache": KNOWN}], False),
            id="before its end",
        ),
        pytest.param(
            *("removed_container_stays_known", REMOVED, [{}, {"cache": {"q": 2}}], [{}, {"cache": {"q": 1}}], False),
            id="another pod is gone",
        ),
        pytest.param(*("clock_that_is_set", CLOCK, [[], [A]], [[], []], True), id="a probe after the clock was set"),
        pytest.param(*("clock_that_is_set", CLOCK, [[A], []], [[], []], False), id="a probe before"),
    ],
)
def test_what_a_fix_explains(fix: str, history: Any, agent: Any, kubelet: Any, *, expected: bool) -> None:
    assert expected is BY_NAME[f"fix_{fix}"].explains(history, agent, kubelet)
