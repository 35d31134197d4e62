"""A bridge on this machine for each set of hosts and, for each host, a network namespace with a veth into it.

The hosts of a set reach one another and this machine, nothing else. Every make is preceded by a remove of the same
names, and every remove is silent about what is not there: a crashed run leaves nothing that the next one stumbles over.
"""

import ipaddress
import json
import shutil
import subprocess
from dataclasses import dataclass

from tools.testbed.hosts.errors import HostsError

_NAMESPACE_PREFIX = "rg-"


@dataclass(frozen=True)
class Network:
    """Of one set of hosts. name: at most 8 characters; hosts, pods, services: where each has its addresses, all three
    of IPv4 or all of IPv6; each host gives its pods a 256th of `pods`.

    The addresses of pods and services are known on the hosts of the set alone, so another set may have the same.
    """

    name: str
    hosts: str
    pods: str
    services: str = "10.96.0.0/16"

    @property
    def bridge(self) -> str:
        return f"rg-{self.name}"

    @property
    def bridge_address(self) -> str:
        return self.address(1)

    @property
    def everywhere(self) -> str:
        """Where the default route leads."""
        return "::/0" if ipaddress.ip_network(self.hosts).version == 6 else "0.0.0.0/0"

    def address(self, number: int) -> str:
        """Of a host."""
        return str(ipaddress.ip_network(self.hosts)[number])

    def interface(self, number: int) -> str:
        """The same with the length of the network's prefix, as a link takes it."""
        return f"{self.address(number)}/{ipaddress.ip_network(self.hosts).prefixlen}"

    def pod_subnet(self, number: int) -> str:
        return str(list(ipaddress.ip_network(self.pods).subnets(prefixlen_diff=8))[number])


HOSTS = Network("hosts", "10.99.0.0/24", "10.244.0.0/16")


@dataclass(frozen=True)
class Peer:
    """A host as the others see it: its name, its address on the bridge, and where its pods get theirs from."""

    name: str
    number: int
    network: Network = HOSTS

    @property
    def address(self) -> str:
        return self.network.address(self.number)

    @property
    def pod_subnet(self) -> str:
        return self.network.pod_subnet(self.number)

    @property
    def namespace(self) -> str:
        return f"{_NAMESPACE_PREFIX}{self.network.name}-{self.name}"

    @property
    def veth(self) -> str:
        """On this machine; at most 15 characters."""
        return f"{_NAMESPACE_PREFIX}{self.network.name}-{self.number}"


def make(network: Network, peers: list[Peer]) -> None:
    """Bridge, namespaces, links, addresses, and routes to the pods of the other hosts."""
    remove(network, peers)
    _ip("link", "add", network.bridge, "type", "bridge")
    _ip("address", "add", network.interface(1), "dev", network.bridge)
    _ip("link", "set", network.bridge, "up")
    for peer in peers:
        _ip("netns", "add", peer.namespace)
        _ip("link", "add", peer.veth, "type", "veth", "peer", "name", "eth0", "netns", peer.namespace)
        _ip("link", "set", peer.veth, "master", network.bridge, "up")
        inside = ("-n", peer.namespace)
        _ip(*inside, "address", "add", network.interface(peer.number), "dev", "eth0")
        _ip(*inside, "link", "set", "lo", "up")
        _ip(*inside, "link", "set", "eth0", "up")
        _ip(*inside, "route", "add", network.everywhere, "via", network.bridge_address)
        for other in peers:
            if other is not peer:
                _ip(*inside, "route", "add", other.pod_subnet, "via", other.address)


def remove(network: Network, peers: list[Peer]) -> None:
    """All that `make` made, as far as it is there."""
    if shutil.which("ip") is None:  # then `make` never ran
        return
    namespaces = {entry["name"] for entry in json.loads(_ip("-json", "netns", "list") or "[]")}
    links = {entry["ifname"] for entry in json.loads(_ip("-json", "link", "show") or "[]")}
    for peer in peers:
        if peer.veth in links:
            _ip("link", "delete", peer.veth)
        if peer.namespace in namespaces:
            _ip("netns", "delete", peer.namespace)
    if network.bridge in links:
        _ip("link", "delete", network.bridge)


def plug(peer: Peer, *, into: bool) -> None:
    """Puts the host's cable into the bridge, or pulls it out: then it and the others do not hear each other."""
    _ip("link", "set", peer.veth, "up" if into else "down")


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HostsError(f"ip {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout
