"""CoreDNS of ring 3: its Service's address, and plugins that its program has."""

import re

import pytest

from tools.testbed.hosts.coredns import COREFILE, objects
from tools.testbed.hosts.layout import FIVE, IPV6
from tools.testbed.shared.tools import COREDNS


@pytest.mark.parametrize(
    ("layout", "address", "host", "family"),
    [
        pytest.param(FIVE, "10.96.0.10", "10.95.0.11", "IPv4", id="IPv4"),
        pytest.param(IPV6, "fd00:10:96::a", "fd00:10:99::b", "IPv6", id="IPv6"),
    ],
)
def test_the_service_has_the_address_that_kubeadm_gives_the_kubelet(layout, address, host, family):
    service, endpoints = objects(layout)
    assert service["spec"]["clusterIP"] == address
    assert (endpoints["addressType"], endpoints["endpoints"][0]["addresses"]) == (family, [host])


def test_the_program_has_each_plugin_that_its_configuration_names():
    imported = re.findall(r'_ "github.com/coredns/coredns/plugin/(\w+)"', (COREDNS.source / "main.go").read_text())
    assert sorted(imported) == sorted(re.findall(r"^ {4}(\w+)", COREFILE, re.MULTILINE))
