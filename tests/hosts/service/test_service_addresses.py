"""The checks that need addresses of the cluster, with those that the role finds on real hosts: they run, and warn."""

from typing import Any

from tests.hosts.service.conftest import Service
from tests.hosts.service.node_mode import Node, Verdicts
from tests.hosts.waiting import wait_until
from tools.kit.programs import Program

UNIT = "/etc/systemd/system/readygate-node.service"
GIVEN = {
    "readygate_node_check_profile": "default",
    "readygate_node_cni_bin_dirs": ["/usr/lib/cni"],
    # All hosts have one kernel, which shows the tables of neighbours in the machine's own network alone.
    "readygate_node_leave_out": ["kernel-log", "connection-tables"],
}


def test_the_way_to_services_and_peers_is_looked_at_and_a_second_run_changes_nothing(
    service: Service, extender: Program
) -> None:
    """The cluster has no DNS servers, whose address its kubelets name: nobody can tell whose fault it is that none
    answers, and no node is closed for it."""
    node = service.nodes[0]
    with Verdicts(extender, node.name).asked() as verdicts:
        service.play(**GIVEN)
        wait_until(
            lambda: {check.get("state") for check in found(node).values()} >= {"passed"},
            lambda: f"they have run: {found(node)}",
        )
        first = {one.name: found(one) for one in service.nodes}
        before = {one.name: configuration(one) for one in service.nodes}
        again = service.play(**GIVEN)
    assert before == {one.name: configuration(one) for one in service.nodes}
    path = first[node.name]["service-path"]
    assert {("dns", "service-path")} == {tuple(sorted(made)) for made in first.values()}
    assert ("passed", "warn") == (path["state"], path["severity"]), path
    assert {"unknown"} == {made["dns"]["state"] for made in first.values()}
    assert (0, ["open"]) == (again.changed, verdicts.words)


def configuration(node: Node) -> list[str]:
    """In place there: where the second run has changed something, its lines tell what."""
    return node.ssh(
        f"cat $(sed -n 's|^BindReadOnlyPaths=\\(.*\\):/etc/readygate$|\\1|p' {UNIT})/agent.yaml"
    ).splitlines()


def found(node: Node) -> dict[str, dict[str, Any]]:
    return {name: check for name, check in node.checks().items() if name in ("dns", "service-path")}
