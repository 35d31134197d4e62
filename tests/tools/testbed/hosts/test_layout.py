"""Sets of hosts that are up at once have nothing of this machine in common."""

import itertools

import pytest

from tools.testbed.hosts import kubeadm, layout
from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.layout import IPV6, LAYOUTS, ONE_CONTROL, SECOND, Layout
from tools.testbed.hosts.state import RunFolder


def of_this_machine(one: Layout) -> set[str]:
    """Folder, identity, network, namespaces and links."""
    run = RunFolder(name=one.network.name)
    names = {str(run.path), run.run_id, one.network.bridge, one.network.hosts}
    return names | {name for peer in one.peers for name in (peer.namespace, peer.veth, peer.address)}


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(LAYOUTS, 2)], ids=lambda each: each.network.name)
def test_two_sets_share_no_name_and_no_address(one, other):
    assert set() == of_this_machine(one) & of_this_machine(other)


@pytest.mark.parametrize("one", LAYOUTS, ids=lambda each: each.network.name)
def test_a_links_name_is_one_that_the_kernel_takes(one):
    names = [one.network.bridge, *(peer.veth for peer in one.peers)]
    assert [] == [name for name in names if len(name) > 15]
    assert [one.network] * len(one.peers) == [peer.network for peer in one.peers]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(ONE_CONTROL, ("10.99.0.11", "10.244.11.0/24", "10.99.0.11:6443", "0.0.0.0/0"), id="IPv4"),
        pytest.param(
            IPV6, ("fd00:10:99::b", "fd00:10:244:b::/64", "[fd00:10:99::b]:6443", "::/0"), id="IPv6, in brackets"
        ),
    ],
)
def test_where_a_host_is_and_where_its_pods_are(one, expected):
    first = one.first
    assert expected == (first.address, first.pod_subnet, kubeadm.server(first), one.network.everywhere)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        pytest.param(None, ONE_CONTROL, id="unless said otherwise the first"),
        pytest.param("", ONE_CONTROL, id="an empty word is none"),
        pytest.param("hosts", ONE_CONTROL, id="by its name"),
        pytest.param("second", SECOND, id="the second"),
    ],
)
def test_the_environment_names_the_set(monkeypatch, named, expected):
    monkeypatch.delenv(layout.SET_VARIABLE, raising=False)
    if named is not None:
        monkeypatch.setenv(layout.SET_VARIABLE, named)
    assert expected == layout.chosen()


def test_a_set_that_is_not_known_is_an_error(monkeypatch):
    monkeypatch.setenv(layout.SET_VARIABLE, "third")
    with pytest.raises(HostsError, match=r"^READYGATE_HOSTS_SET=third is not known: hosts or second$"):
        layout.chosen()
