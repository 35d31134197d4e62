"""Health pods that the ClusterRole `edit` deletes in bulk: the grace, the cap and the storm bound what closes."""

import time
from dataclasses import dataclass

import pytest

from kube import contract
from tests.plane.cluster import Cluster
from tests.plane.confined import bound_by, refused
from tests.plane.load import ask
from tests.plane.writes import NS
from tools.kit.waiting import wait_for, wait_until

PODS = f"/api/v1/namespaces/{NS}/pods"
NODES = 10
LIMIT_S = 60.0
CAPPED = 3  # of ten nodes, by the default cap of 30 %


@dataclass
class Closed:
    """How many nodes the extender closed, over time. first_at: seconds after the pods began to be deleted."""

    most: int = 0
    first_at: float | None = None


def watched(port: int, nodes: list[str], *, began: float, for_s: float, at_least: int) -> Closed:
    """For so long, and until so many nodes are closed."""
    found = Closed()

    def over() -> bool:
        answer = ask(port, nodes)
        count = len(answer.get("FailedAndUnresolvableNodes") or {})  # type: ignore[arg-type]
        found.most = max(found.most, count)
        if count and found.first_at is None:
            found.first_at = time.monotonic() - began
        return time.monotonic() - began >= for_s and found.most >= at_least

    wait_for(over, timeout_s=LIMIT_S, every_s=0.2)
    return found


# Pods that are deleted one after the other turn their nodes bad one after the other, and three nodes make a storm.
@pytest.mark.parametrize(
    ("storm", "possible"),
    [
        pytest.param({}, {0, 1, 2}, id="a storm holds all open but those before it"),
        pytest.param(False, {CAPPED}, id="without storms the cap holds"),
    ],
)
def test_health_pods_deleted_in_bulk_by_edit_run_into_the_grace_and_the_cap(cluster: Cluster, storm, possible):
    grace_s = 4
    nodes = cluster.add_nodes(NODES)
    cluster.add_health_pods(nodes, ready=True)
    gate = {"missingGraceSeconds": grace_s, "replaceGraceSeconds": grace_s}
    extender = cluster.start_extender(cap={"newNodeSeconds": 0}, storm=storm, gate=gate)
    assert wait_for(lambda: set(ask(extender.port, nodes).get("NodeNames") or []) == set(nodes), timeout_s=60)
    made: list[str] = []
    editor = bound_by(cluster, "bulk-editor", "edit", made)
    try:
        wait_until(lambda: not refused(editor, "DELETE", PODS), "`edit` may delete the pods", timeout_s=60)
        began = time.monotonic()
        editor.request(
            "DELETE", f"{PODS}?gracePeriodSeconds=0&labelSelector={contract.LABEL_NAME}={contract.NAME_AGENT}"
        )
        assert [] == cluster.api.items(f"{PODS}?labelSelector={contract.LABEL_NAME}={contract.NAME_AGENT}")
        found = watched(extender.port, nodes, began=began, for_s=grace_s + 6, at_least=min(possible))
    finally:
        for path in made:
            cluster.api.delete(path)
    assert found.most in possible
    # The API server writes whole seconds.
    assert found.first_at is None or found.first_at >= grace_s - 1.0
