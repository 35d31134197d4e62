"""What a fresh install reports on healthy clusters of many kinds: the checks of the list `default` as a pod runs them.

No check of severity `gate` may be anything but passed, warned, shared or not applicable. Left out are the checks that
look at the machine of the tests: `time` and `pressure`.
"""

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.checks.catalogue import check_spec
from agent.checks.state import CheckState
from agent.checks.surroundings import OpenSocket, Surroundings
from agent.modes.pod_network import own_sockets
from agent.settings import parse
from agent.wire.network_policy import NetworkPolicy
from kube.errors import Forbidden, KubeError, TooManyRequests
from tests.agent.checks.builtin.test_pod_network import API, DNS, Cluster
from tools.fakes.dns import dns_servers
from tools.kit.cases import cases

OF_THE_MACHINE = ("time", "pressure")
BRIDGE = {"type": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}]]}}
CILIUM = {"type": "cilium-cni"}
POD_FILE = f"search readygate-system.svc.cluster.local svc.cluster.local cluster.local\nnameserver {DNS}\n"
HOST_FILE = "search example.com\nnameserver 127.0.6.250\n"
ALL = {"cni": "passed", "filesystem": "passed", "pod-network": "passed", "dns": "passed"}
NO_RUNTIME = {"runtime": "warned"}  # a machine of the tests has none, and it says that it looks at none


class Refusing(Cluster):
    """The right to read the list of peers is not there yet, as in the first moment of an installation."""

    trouble: KubeError = Forbidden(path="/networkpolicies", status=403)

    def policies(self) -> Sequence[NetworkPolicy]:
        raise self.trouble


class Overloaded(Refusing):
    """The API server accepts connections and answers 429."""

    trouble = TooManyRequests(path="/networkpolicies", status=429)


def host(root: Path, plugin: dict[str, Any]) -> None:
    for folder in ("etc/cni/net.d", "opt/cni/bin", "var/lib/kubelet/readygate", "var/lib/cni/networks"):
        (root / folder).mkdir(parents=True)
    network = {"cniVersion": "1.0.0", "name": "pods", "plugins": [plugin]}
    (root / "etc/cni/net.d/10-net.conflist").write_text(json.dumps(network))
    for name in ("loopback", "bridge", "host-local", "cilium-cni"):
        (root / "opt/cni/bin" / name).write_text("#!/bin/sh\n")
        (root / "opt/cni/bin" / name).chmod(0o755)


def states(
    root: Path,
    nodes: int,
    *,
    kind: type[Cluster] = Cluster,
    plugin: dict[str, Any] = BRIDGE,
    resolv_conf: str = POD_FILE,
    open_socket: OpenSocket = socket.socket,
    has_dns: bool = True,
    starts: bool = False,
) -> dict[str, str]:
    """State of each check after its first run, on one of so many nodes whose agents all answer."""
    host(root, plugin)
    told = {DNS: "answers"} if has_dns else {}
    with dns_servers(told, told) as dns_port:
        cluster = kind(dns_port)
        with cluster.stack:
            for number in range(1, nodes):
                cluster.agent(number)
            cluster.ready = not starts
            own = [
                {"name": "pod-network", "podNetwork": {"port": cluster.port or 9375, "dnsPort": dns_port}},
                {"name": "dns", "dns": {"service": "auto", "port": dns_port}},
            ]
            text = json.dumps({"mode": "pod", "profile": {"name": "default", "hostRoot": str(root)}, "checks": own})
            around = Surroundings(
                "own",
                "readygate-system",
                cluster.board,
                lambda _service: cluster,
                open_socket,
                resolv_conf,
                (API, cluster.api_port),
            )
            specs = [
                check_spec(check, around=around)
                for check in parse(text.encode(), {}).checks
                if check.name not in OF_THE_MACHINE
            ]
            try:
                return {spec.name: str(spec.run().state) for spec in specs}
            finally:
                for spec in specs:
                    spec.close()


HOSTS_NETWORK = own_sockets({"POD_IP": "192.0.2.7", "HOST_IP": "192.0.2.7"})
ALONE = ALL | {"pod-network": "not applicable"}
UNJUDGED = {"pod-addresses": "not applicable"}


@cases(
    "nodes, expected, given",
    ("one node", 1, ALONE, {}),
    ("two nodes", 2, ALONE, {}),
    ("three nodes", 3, ALL, {}),
    ("five nodes", 5, ALL, {}),
    ("Cilium in the place of kube-proxy, which gives out its own addresses", 4, ALL | UNJUDGED, {"plugin": CILIUM}),
    (
        "the host's network",
        4,
        ALONE | {"dns": "not applicable"},
        {"open_socket": HOSTS_NETWORK, "resolv_conf": HOST_FILE},
    ),
    ("all agents start at once", 4, ALL, {"starts": True}),
    ("the rights are not there yet", 4, ALL | {"pod-network": "shared"}, {"kind": Refusing}),
    ("the API server is overloaded", 4, ALL | {"pod-network": "shared"}, {"kind": Overloaded}),
    ("DNS of the cluster is not installed yet, of one node", 1, ALONE | {"dns": "unknown"}, {"has_dns": False}),
)
def test_a_fresh_install_finds_no_fault_on_a_healthy_cluster(
    tmp_path: Path, nodes: int, expected: dict[str, str], given: dict[str, Any]
) -> None:
    found = states(tmp_path, nodes, **given)
    assert {"pod-addresses": "passed", **NO_RUNTIME, **expected} == found


@pytest.mark.parametrize("given", [{}, {"plugin": CILIUM}, {"kind": Refusing}, {"kind": Overloaded}])
def test_no_check_that_may_close_is_unknown_or_failed_at_first(tmp_path: Path, given: dict[str, Any]) -> None:
    """What is unknown at the first run closes its node."""
    found = states(tmp_path, 3, **given)
    closing = {CheckState.FAILED, CheckState.HUNG, CheckState.UNKNOWN}
    assert set() == {state for name, state in found.items() if name != "dns"} & {str(one) for one in closing}
