"""The check `podNetwork` of the service on the host: it enters the network of its health pod, and finds faults there.

The health pods of this folder are not readygate's own, so a peer refuses the connection: by that it was reached.
"""

import json
from collections.abc import Iterator

import pytest

from kube import contract
from tests.hosts.service.conftest import Service
from tests.hosts.service.node_mode import LABELS, NAME, NS, Node, Verdicts
from tests.hosts.waiting import wait_until
from tools.faults.network import API
from tools.faults.registry import FAULTS
from tools.kit.programs import Program
from tools.testbed.hosts.hosts import Hosts

FAULT = FAULTS["forward-dropped"]  # the kubelet's own probes go on, and so do those of the host's own network
CHECK = {"name": "pod-network", "podNetwork": {"service": NAME, "labels": LABELS, "apiServer": API, "dns": "none"}}
RULES = [
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "list"]},
    {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["list"]},
]
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "peers"}
ACCOUNT = {"kind": "ServiceAccount", "name": contract.NAME_AGENT, "namespace": NS}
OBJECTS = [
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME},
        "spec": {"clusterIP": "None", "selector": LABELS},
    },
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "peers"}, "rules": RULES},
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "peers"},
        "roleRef": ROLE,
        "subjects": [ACCOUNT],
    },
]


@pytest.fixture(scope="module")
def checked(hosts: Hosts, service: Service) -> Iterator[None]:
    """The service with this check on every host, and a list of its peers."""
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS})
    hosts.kubectl("apply", f"--namespace={NS}", "--filename=-", stdin=listed)
    try:
        service.play(readygate_node_profile="fast", readygate_node_checks=[CHECK])
        yield
    finally:
        hosts.kubectl("delete", f"--namespace={NS}", "--filename=-", stdin=listed)


@pytest.mark.usefixtures("checked")
def test_it_closes_its_node_for_the_network_of_its_pods_and_opens_it_again(
    nodes: list[Node], extender: Program
) -> None:
    node = nodes[0]
    with Verdicts(extender, node.name).asked() as verdicts:
        try:
            node.ssh("\n".join(FAULT.inject))
            wait_until(verdicts.is_last("closed"), lambda: f"it closes: {verdicts.seen}")
        finally:
            node.ssh("\n".join(FAULT.heal))
        wait_until(verdicts.is_last("open"), lambda: f"it opens: {verdicts.seen}")
    assert ["open", "closed", "open"] == verdicts.words
