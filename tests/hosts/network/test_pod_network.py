"""The pod network between five hosts: each fault of a node closes that node alone; what all nodes lack closes none.

The figures are those of the profile `fast`: closed within 6 s, open within 4 s after. By `make test-network`.
"""

import time

import pytest

from tests.hosts.network.conftest import Agents
from tests.hosts.waiting import wait_until
from tools.faults.pod_network import BRIDGE
from tools.faults.registry import FAULTS
from tools.testbed.hosts import coredns
from tools.testbed.hosts.network import plug

CLOSED_S, OPEN_S = 6.0, 4.0
LOAD = 1.5  # a machine that runs five hosts is slower; the figures are printed, and `make bench-faults` has them
CALM_S = 20.0
REST_S = 20.0  # between faults: agent/report/condition.py writes five changes at once, then one in ten seconds
NODE = "worker-2"
CUT_OFF = ("worker-3", "worker-4")
_MARK = "-m comment --comment readygate-fault"
NAMES = {
    "pod-bridge-down": "the bridge is down",
    "pod-links-down": "the pods' links are down",
    "forward-dropped": "nothing is forwarded",
    "pod-packets-large": "the MTU is too large",
    "pod-routes-wrong": "the routes are wrong",
    "services-flushed": "kube-proxy's rules are gone",
}


def test_without_a_fault_each_node_passes(agents: Agents) -> None:
    found = agents.never_closed(set(agents.hosts.names), CALM_S)
    assert (found, agents.states()) == (set(), {"passed"})


@pytest.mark.parametrize("name", NAMES, ids=list(NAMES.values()))
def test_a_fault_of_a_node_closes_it_alone_and_it_opens_again(agents: Agents, name: str) -> None:
    fault, hosts = FAULTS[name], agents.hosts
    time.sleep(REST_S)
    began = time.monotonic()
    try:
        hosts.ssh(NODE, "\n".join(fault.inject))
        wait_until(lambda: NODE in agents.closed(), lambda: f"it closes: {agents.says(NODE)}")
        closed_s, closed = time.monotonic() - began, agents.closed()
    finally:
        hosts.ssh(NODE, "\n".join(fault.heal))
    healed = time.monotonic()
    wait_until(lambda: not agents.closed(), lambda: f"it opens: {agents.ready()}")
    opened_s = time.monotonic() - healed
    print(f"{name}: closed after {closed_s:.1f} s, open after {opened_s:.1f} s")
    assert (closed, closed_s < LOAD * CLOSED_S, opened_s < LOAD * OPEN_S) == ({NODE}, True, True)


def test_a_host_that_dies_closes_no_other_node(agents: Agents) -> None:
    (peer,) = [peer for peer in agents.hosts.layout.workers if peer.name == NODE]
    with agents.healed():
        plug(peer, into=False)
        try:
            found = agents.never_closed(set(agents.hosts.names) - {NODE}, CALM_S)
        finally:
            plug(peer, into=True)
    assert found == set()


def test_two_of_five_that_are_cut_off_are_closed_and_the_others_are_not(agents: Agents) -> None:
    """Their pods reach each other, and neither the other three nor the API server."""
    hosts = agents.hosts
    cut = {peer.name: peer for peer in hosts.layout.workers if peer.name in CUT_OFF}
    drop = f"iptables -w -I FORWARD -i {BRIDGE} {_MARK} -j DROP\niptables -w -I FORWARD -o {BRIDGE} {_MARK} -j DROP\n"
    heal = "iptables-save | grep -v readygate-fault | iptables-restore"
    with agents.healed():
        try:
            for name, other in zip(CUT_OFF, reversed(CUT_OFF), strict=True):
                # The bridge plugin gives a pod its host's address on the way to other hosts.
                kept = [(way, net) for way in ("-s", "-d") for net in (cut[other].pod_subnet, cut[other].address)]
                hosts.ssh(name, drop + "\n".join(f"iptables -w -I FORWARD {w} {n} {_MARK} -j ACCEPT" for w, n in kept))
            wait_until(lambda: set(CUT_OFF) <= agents.closed(), lambda: f"they close: {agents.ready()}")
            others = agents.never_closed(set(hosts.names) - set(CUT_OFF), CALM_S)
        finally:
            for name in CUT_OFF:
                hosts.ssh(name, heal)
    assert others == set()


def test_without_dns_for_all_no_node_is_closed(agents: Agents) -> None:
    with agents.healed(), coredns.stopped(agents.hosts):
        found = agents.never_closed(set(agents.hosts.names), CALM_S)
        said = {text.partition(",")[0] for text in agents.said().values()}
    assert (found, said) == (set(), {"warned: not of this node alone"})


def test_a_default_deny_policy_that_is_not_enforced_names_nothing(agents: Agents) -> None:
    """The agents' own policy admits them, so the operator's default stops nothing."""
    policy = """{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
      "metadata": {"name": "deny-all", "namespace": "readygate-system"},
      "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}}"""
    try:
        agents.hosts.kubectl("apply", "--filename=-", stdin=policy)
        found = agents.never_closed(set(agents.hosts.names), CALM_S)
    finally:
        agents.hosts.kubectl("delete", "networkpolicy", "--namespace=readygate-system", "deny-all")
    assert found == set()
