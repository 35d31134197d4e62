"""The check `podAddresses`: what host-local has given out, against what it may."""

import ipaddress
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.checks.builtin.pod_addresses import LEAKED_AFTER_S, Check, Range, Settings, range_of
from agent.checks.networks import BrokenError
from agent.checks.state import CheckState, Finding
from agent.cri.base import CriError, Trouble
from agent.wire.containers import RuntimePod, Sandbox
from tools.kit.cases import cases

IPV4, IPV6 = "10.1.0.0/28", "fd00:1::/124"


def bridge(*sets: list[dict[str, str]], **ipam: Any) -> dict[str, Any]:
    given = {"type": "host-local", **({"ranges": list(sets)} if sets else {}), **ipam}
    return {"name": "pods", "plugins": [{"type": "bridge", "ipam": given}, {"type": "portmap"}]}


class Node:
    def __init__(self, root: Path) -> None:
        self.conf, self.data = root / "net.d", root / "networks"
        self.conf.mkdir()

    def configured(self, network: object) -> None:
        (self.conf / "10-net.conflist").write_text(json.dumps(network))

    def given_out(self, subnet: str, count: int, *, first: int = 2, network: str = "pods") -> None:
        """`count` addresses, and what host-local keeps beside them."""
        folder = self.data / network
        folder.mkdir(parents=True, exist_ok=True)
        start = int(ipaddress.ip_network(subnet).network_address) + first
        kind = ipaddress.ip_network(subnet)[0].__class__
        for number in range(count):
            (folder / str(kind(start + number))).write_text(f"sandbox{number}\r\neth0")
        (folder / "last_reserved_ip.0").write_text("10.1.0.2")
        (folder / "lock").touch()

    def find(self, **settings: Any) -> Finding:
        return Check(Settings(str(self.conf), str(self.data), **settings), 60.0)()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param(0, Finding(CheckState.PASSED, "network pods: 0 of 13 addresses in use"), id="none"),
        pytest.param(10, Finding(CheckState.PASSED, "network pods: 10 of 13 addresses in use"), id="77 %"),
        pytest.param(11, Finding(CheckState.WARNED, "network pods: 11 of 13 addresses in use, 2 left"), id="two left"),
        pytest.param(12, Finding(CheckState.FAILED, "network pods: 12 of 13 addresses in use, 1 left"), id="one left"),
        pytest.param(13, Finding(CheckState.FAILED, "network pods: 13 of 13 addresses in use, 0 left"), id="all"),
    ],
)
def test_of_a_28_thirteen_can_be_given_out(node: Node, used: int, expected: Finding) -> None:
    """Sixteen without the network's own, the broadcast, and the gateway's."""
    node.configured(bridge([{"subnet": IPV4}]))
    node.given_out(IPV4, used)
    assert expected == node.find()


def test_the_way_back_is_an_address_that_is_given_back(node: Node) -> None:
    node.configured(bridge([{"subnet": IPV4}]))
    node.given_out(IPV4, 13)
    assert node.find().state is CheckState.FAILED
    for number in range(5, 10):
        (node.data / "pods" / f"10.1.0.{number}").unlink()
    assert Finding(CheckState.PASSED, "network pods: 8 of 13 addresses in use") == node.find()


@cases(
    "network, used, expected",
    ("dual stack: the fuller one", bridge([{"subnet": IPV4}], [{"subnet": IPV6}]), {IPV4: 5, IPV6: 13}, "13 of 14"),
    ("the ranges of a set", bridge([{"subnet": "10.2.0.0/30"}, {"subnet": IPV4}]), {IPV4: 13}, "13 of 14"),
    ("of old: one range", bridge(subnet=IPV4, rangeStart="10.1.0.4", rangeEnd="10.1.0.6"), {IPV4: 4}, "2 of 3"),
    ("its gateway is configured", bridge([{"subnet": IPV4, "gateway": "10.1.0.14"}]), {IPV4: 13}, "12 of 13"),
)
def test_ranges(node: Node, network: dict[str, Any], used: dict[str, int], expected: str) -> None:
    node.configured(network)
    for subnet, count in used.items():
        node.given_out(subnet, count)
    assert Finding(CheckState.FAILED, f"network pods: {expected} addresses in use, 1 left") == node.find()


def test_a_range_too_large_to_walk_through_is_counted(node: Node) -> None:
    node.configured(bridge([{"subnet": "fd00::/64"}]))
    node.given_out("fd00::/64", 40)
    assert Finding(CheckState.PASSED, f"network pods: 40 of {2**64 - 2} addresses in use") == node.find()


def test_a_network_that_another_one_makes_is_named_in_the_settings(node: Node) -> None:
    """flannel: its configuration has no ranges, it calls host-local with the node's."""
    node.configured({"name": "cbr0", "plugins": [{"type": "flannel", "delegate": {"isDefaultGateway": True}}]})
    node.given_out(IPV4, 13, network="cbr0")
    assert Finding(CheckState.WARNED, "the addresses of flannel cannot be counted here") == node.find()
    expected = "network cbr0: 13 of 13 addresses in use, 0 left"
    assert Finding(CheckState.FAILED, expected) == node.find(ranges=(IPV4,))
    (node.conf / "10-net.conflist").unlink()
    assert Finding(CheckState.FAILED, expected) == node.find(ranges=(IPV4,), network="cbr0")


def test_ranges_that_antrea_fills_in_when_it_calls_are_given_in_the_settings(node: Node) -> None:
    """Its configuration, as its manifest has it, calls host-local by name alone."""
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    node.configured({"name": "antrea", "plugins": [{"type": "antrea", "ipam": {"type": "host-local"}}, portmap]})
    node.given_out(IPV4, 5, network="antrea")
    assert [
        Finding(CheckState.WARNED, "the addresses of antrea cannot be counted here"),
        Finding(CheckState.PASSED, "network antrea: 5 of 13 addresses in use"),
    ] == [node.find(), node.find(ranges=(IPV4,))]


@pytest.mark.parametrize(
    ("plugin", "who"),
    [
        pytest.param({"type": "calico", "ipam": {"type": "calico-ipam"}}, "calico-ipam", id="of an IPAM plugin"),
        pytest.param({"type": "cilium-cni", "enable-debug": False}, "cilium-cni", id="of one that needs none"),
        pytest.param(
            {"type": "aws-cni", "vethPrefix": "eni"}, "aws-cni", id="of the cloud (aws/amazon-vpc-cni-k8s#64)"
        ),
        pytest.param(
            {"type": "azure-vnet", "ipam": {"type": "azure-cns"}},
            "azure-cns",
            id="of a service (Azure/azure-container-networking#2281)",
        ),
        pytest.param(
            {"type": "macvlan", "ipam": {"type": "dhcp"}},
            "dhcp",
            id="of the network's own server (hashicorp/nomad#9534)",
        ),
        pytest.param(
            {"type": "bridge", "ipam": {"type": "whereabouts", "range": "192.0.2.0/24"}},
            "whereabouts",
            id="of the whole cluster (k8snetworkplumbingwg/whereabouts#476)",
        ),
        pytest.param(
            {"type": "multus-shim"},
            "a network that cannot be read here (what multus-shim runs is in the configuration of its daemon)",
            id="of a network that is not known",
        ),
    ],
)
def test_what_cannot_be_counted_is_not_applicable(node: Node, plugin: dict[str, Any], who: str) -> None:
    """projectcalico/cni-plugin#920: pools of the cluster, of which the node knows nothing."""
    node.configured({"name": "k8s-pod-network", "plugins": [plugin]})
    assert Finding(CheckState.NOT_APPLICABLE, f"the addresses of {who} cannot be counted here") == node.find()


def test_of_multus_the_network_counts_that_it_delegates_pods_to(node: Node) -> None:
    delegates = [bridge([{"subnet": IPV4}]), {"name": "more", "type": "macvlan", "ipam": {"type": "dhcp"}}]
    node.configured({"name": "multus-cni-network", "plugins": [{"type": "multus", "delegates": delegates}]})
    node.given_out(IPV4, 13)
    expected = Finding(CheckState.FAILED, "network pods: 13 of 13 addresses in use, 0 left")
    assert expected == node.find()
    (node.conf / "20-pods.conflist").write_text(json.dumps(bridge([{"subnet": IPV4}])))
    path = "/host/etc/cni/net.d/20-pods.conflist"
    node.configured({"name": "m", "plugins": [{"type": "multus-shim", "clusterNetwork": path}]})
    assert expected == node.find()


def test_keys_of_host_local_count_in_any_case(node: Node) -> None:
    ipam = {"Type": "host-local", "RANGES": [[{"Subnet": IPV4, "gateWay": "10.1.0.14"}]]}
    node.configured({"name": "pods", "plugins": [{"type": "bridge", "IPAM": ipam}]})
    node.given_out(IPV4, 13)
    assert Finding(CheckState.FAILED, "network pods: 12 of 13 addresses in use, 1 left") == node.find()


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(bridge(subnet="usePodCidr"), id="one range"),
        pytest.param(bridge([{"subnet": "usePodCidr"}], [{"subnet": "usePodCidrIPv6"}]), id="of a dual stack"),
    ],
)
def test_ranges_that_calico_fills_in_when_it_calls_are_given_in_the_settings(node: Node, given: dict[str, Any]) -> None:
    node.configured(given)
    said = "the addresses of host-local by usePodCidr, without `ranges` in the settings, cannot be counted here"
    assert Finding(CheckState.WARNED, said) == node.find()
    node.given_out(IPV4, 5)
    assert Finding(CheckState.PASSED, "network pods: 5 of 13 addresses in use") == node.find(ranges=(IPV4,))


def test_a_folder_that_the_configuration_names(node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent.checks.builtin import pod_addresses

    node.configured(bridge([{"subnet": IPV4}], dataDir=str(node.data)))
    node.given_out(IPV4, 12)
    monkeypatch.setattr(pod_addresses, "DATA_DIR", str(tmp_path / "default"))
    found = Check(Settings(str(node.conf), str(tmp_path / "default")), 60.0)()
    assert found.state is CheckState.FAILED
    assert node.find().state is CheckState.FAILED


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        pytest.param(bridge([{"subnet": "10.1.0.0/33"}]), "a range does not parse", id="no network"),
        pytest.param(bridge([{"subnet": "10.1.0.0/32"}]), "has no addresses", id="no addresses"),
        pytest.param(bridge([{}]), "a range does not parse", id="no subnet"),
        pytest.param(bridge({"subnet": IPV4}), "no list of lists", id="a set that is no list"),
        pytest.param(bridge(), "network pods has no ranges", id="no ranges"),
    ],
)
def test_what_does_not_parse_is_unknown(node: Node, network: dict[str, Any], expected: str) -> None:
    node.configured(network)
    found = node.find()
    assert found.state is CheckState.UNKNOWN
    assert expected in found.output


def test_without_a_configuration_it_cannot_look(node: Node) -> None:
    assert Finding(CheckState.UNKNOWN, f"no network config found in {node.conf}") == node.find()


def test_a_range_as_host_local_completes_it() -> None:
    one = ipaddress.ip_address
    expected = Range(one("10.1.0.1"), one("10.1.0.14"), one("10.1.0.1"))
    assert expected == range_of({"subnet": "10.1.0.0/28"})
    assert Range(one("fd00:1::1"), one("fd00:1::f"), one("fd00:1::1")) == range_of({"subnet": IPV6})
    with pytest.raises(BrokenError):
        range_of({"subnet": None})


# Leaks: what the files say, against what the runtime knows

WALL = 1_000_000.0
OLD, NEW = WALL - LEAKED_AFTER_S - 1, WALL - LEAKED_AFTER_S + 1
SAID = "network pods: 4 of 13 addresses in use"


class Runtime:
    """Knows some sandboxes, or does not answer. `meanwhile` is called before it answers."""

    def __init__(
        self, *known: str, trouble: Trouble | None = None, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        self._known = known
        self._trouble = trouble
        self._meanwhile = meanwhile

    def list_pods(self) -> list[RuntimePod]:
        self._meanwhile()
        if self._trouble is not None:
            raise CriError("ListPodSandbox", "/run/x.sock", self._trouble, within_s=0.4)
        sandboxes = [Sandbox(ready=True, ip=None, id=f"containerd://{name}") for name in self._known]
        return [RuntimePod("a", sandboxes=tuple(sandboxes))]


def compared(node: Node, runtime: Runtime) -> Finding:
    settings = Settings(str(node.conf), str(node.data), socket="/run/x.sock")
    return Check(settings, 60.0, lambda _socket, _deadline_s: runtime, lambda: WALL)()  # type: ignore[arg-type,return-value]


def four(node: Node, *, written: float = OLD) -> Path:
    """In use, 10.1.0.2 to 10.1.0.5, of sandbox0 to sandbox3."""
    node.configured(bridge([{"subnet": IPV4}]))
    node.given_out(IPV4, 4)
    for file in (node.data / "pods").iterdir():
        os.utime(file, (written, written))
    return node.data / "pods"


ALL = ("sandbox0", "sandbox1", "sandbox2", "sandbox3")


@cases(
    "runtime, expected",
    ("all are known", Runtime(*ALL, "another"), Finding(CheckState.PASSED, SAID)),
    ("one is not", Runtime(*ALL[1:]), Finding(CheckState.WARNED, f"{SAID}; 1 leaked: 10.1.0.2 of sandbox0")),
    (
        "a few are named",
        Runtime(),
        Finding(
            CheckState.WARNED,
            f"{SAID}; 4 leaked: 10.1.0.2 of sandbox0, 10.1.0.3 of sandbox1, 10.1.0.4 of sandbox2 and 1 more",
        ),
    ),
    (
        "a runtime that is away is not this check's business",
        Runtime(trouble=Trouble.NOBODY_LISTENS),
        Finding(
            CheckState.PASSED,
            f"{SAID}; not compared with the runtime's sandboxes: ListPodSandbox on /run/x.sock: nobody listens: "
            "start the container runtime",
        ),
    ),
)
def test_addresses_of_sandboxes_that_are_gone_are_named(node: Node, runtime: Runtime, expected: Finding) -> None:
    four(node)
    assert expected == compared(node, runtime)


def test_an_address_that_was_just_given_out_has_not_leaked(node: Node) -> None:
    four(node, written=NEW)
    assert Finding(CheckState.PASSED, SAID) == compared(node, Runtime())


def test_what_is_given_back_while_the_runtime_is_asked_has_not_leaked(node: Node) -> None:
    folder = four(node)

    def give_back() -> None:
        (folder / "10.1.0.2").unlink()
        (folder / "10.1.0.3").write_text("another\r\neth0")

    found = compared(node, Runtime("sandbox2", "sandbox3", meanwhile=give_back))
    assert Finding(CheckState.PASSED, SAID) == found


def test_a_runtime_that_answers_late_costs_the_comparison_alone(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the time for all looks at files nothing is left after its list."""
    from agent.checks.builtin import pod_addresses

    left = iter([60.0, 60.0, 0.0])
    monkeypatch.setattr(pod_addresses.Patience, "left_s", lambda _self: next(left))
    folder = four(node)
    said = f"{SAID}; not compared with the runtime's sandboxes: {folder}: no end after 0 s"
    assert Finding(CheckState.PASSED, said) == compared(node, Runtime())


def test_files_that_name_nobody_are_passed_over(node: Node) -> None:
    folder = four(node)
    (folder / "10.1.0.2").write_text("")
    (folder / "10.1.0.3").unlink()
    (folder / "10.1.0.3").symlink_to("/etc/passwd")
    (folder / "10.1.0.4").unlink()
    os.mkfifo(folder / "10.1.0.4")
    for name in ("10.1.0.2", "10.1.0.4"):
        os.utime(folder / name, (OLD, OLD))
    assert Finding(CheckState.PASSED, SAID) == compared(node, Runtime("sandbox3"))


def test_leaks_are_named_where_no_address_is_left(node: Node) -> None:
    node.configured(bridge([{"subnet": IPV4}]))
    node.given_out(IPV4, 13)
    for file in (node.data / "pods").iterdir():
        os.utime(file, (OLD, OLD))
    found = compared(node, Runtime(*(f"sandbox{number}" for number in range(12))))
    said = "network pods: 13 of 13 addresses in use, 0 left; 1 leaked: 10.1.0.14 of sandbox12"
    assert Finding(CheckState.FAILED, said) == found
