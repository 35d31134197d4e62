"""Severity preferNot under the real kube-scheduler: it uses another node if there is one, else this one."""

from tests.plane.cluster import Cluster

PODS = 30


def test_where_a_gate_would_rather_have_no_pod_kube_scheduler_places_fewer(cluster: Cluster):
    liked, avoided = cluster.add_nodes(2)
    cluster.add_health_pods([liked], ready=True)
    cluster.add_health_pods([avoided], ready=False)
    extender = cluster.start_extender(gate={"severity": "preferNot"})

    def placed(prefix: str, *, weight: int) -> int:
        """How many of PODS land on the node that is avoided."""
        cluster.use_extender(extender.url, weight=weight)
        names = [f"{prefix}-{number}" for number in range(PODS)]
        for name in names:
            cluster.add_pod(name)
        return [cluster.wait_bound(name) for name in names].count(avoided)

    without, with_scores = placed("without", weight=0), placed("scored", weight=10)
    cluster.add_pod("must", node=avoided)
    print(f"{without} of {PODS} pods without scores, {with_scores} with them")
    assert (True, 0) == (without >= PODS // 3, with_scores)
    assert avoided == cluster.wait_bound("must")
