"""CoreDNS behind the DNS Service: one process on the first control plane, for tests that need DNS in pods.

The kubelet names the Service's address in the pods' resolv.conf with or without it. Hosts start without CoreDNS.
"""

import ipaddress
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tools.testbed.hosts.hosts import Hosts
from tools.testbed.hosts.layout import Layout
from tools.testbed.shared.tools import COREDNS, built

_PROGRAM, _CONFIGURATION = "/usr/local/bin/coredns", "/etc/coredns.conf"
_SERVICE = {"name": "kube-dns", "namespace": "kube-system"}
_PORT, _PORTS = 53, {"dns": "UDP", "dns-tcp": "TCP"}
# Each directive's plugin is imported by tools/testbed/shared/coredns/main.go.
COREFILE = f"""\
.:{_PORT} {{
    errors
    health 127.0.0.1:8080
    ready 127.0.0.1:8181
    cache 30
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig /etc/kubernetes/admin.conf
    }}
}}
"""
_UNIT = f"""\
[Unit]
Description=CoreDNS

[Service]
ExecStart={_PROGRAM} -conf {_CONFIGURATION}
Restart=always
RestartSec=1
"""
_START = """\
systemctl start coredns
for _ in $(seq 600); do curl --silent --fail --max-time 2 http://127.0.0.1:8181/ready && exit; sleep 0.1; done
journalctl --unit=coredns --no-pager --lines=3 >&2; exit 1
"""


def install(hosts: Hosts) -> None:
    """Returns when CoreDNS has read the cluster's Services. Raises HostsError, BinariesMissing."""
    first = hosts.layout.first.name
    with built(COREDNS, hosts.progress).open("rb") as program:
        hosts.ssh(first, f"cat > {_PROGRAM} && chmod 755 {_PROGRAM}", stdin=program)
    hosts.ssh(first, f"cat > {_CONFIGURATION}", stdin=COREFILE)
    hosts.ssh(first, "cat > /etc/systemd/system/coredns.service && systemctl daemon-reload", stdin=_UNIT)
    items = {"apiVersion": "v1", "kind": "List", "items": objects(hosts.layout)}
    hosts.kubectl("apply", "--filename=-", stdin=json.dumps(items))
    hosts.ssh(first, _START, timeout_s=120.0)


@contextmanager
def stopped(hosts: Hosts) -> Iterator[None]:
    """No node has DNS during this context."""
    first = hosts.layout.first.name
    hosts.ssh(first, "systemctl stop coredns")
    try:
        yield
    finally:
        hosts.ssh(first, _START, timeout_s=120.0)


def objects(layout: Layout) -> list[dict[str, Any]]:
    """A Service at the address that kubeadm gives the kubelet, and the EndpointSlice that leads to the process."""
    address = ipaddress.ip_network(layout.network.services)[10]
    ports = [{"name": name, "protocol": protocol, "port": _PORT} for name, protocol in _PORTS.items()]
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": _SERVICE,
            "spec": {"clusterIP": str(address), "ports": ports},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**_SERVICE, "labels": {"kubernetes.io/service-name": _SERVICE["name"]}},
            "addressType": f"IPv{address.version}",
            "endpoints": [{"addresses": [layout.first.address], "conditions": {"ready": True}}],
            "ports": ports,
        },
    ]
