"""Filters of the role that runs the agent on nodes: checks with addresses of the cluster that were detected."""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import chain, islice
from operator import itemgetter
from typing import Any

DNS, PATH, PRESSURE = "dns", "service-path", "pressure"
FAMILIES = {4: "ipv4", 6: "ipv6"}
NAMES = (DNS, *(f"{DNS}-{family}" for family in FAMILIES.values()), PATH, "pod-network")  # that a host may be without
PEERS = 9  # as many as the check servicePath ever looks at in a run: agent/checks/builtin/service_path.py
SERVICE_NAME = "kubernetes.default.svc"
RECORDS = {4: "A", 6: "AAAA"}
_PORTS = {"apiPort": "api_port", "peerPort": "port"}  # the kubelets', of which all have the port that this one has
NO_DNS = "without the check dns, because the kubelet names no DNS server"
UNREAD = "without some of the kubelet's settings: "  # the file, and why
NO_PATH = "without the check service-path, because the address of the API server's Service is unknown"
NO_PEERS = "without checks of other nodes, because the host has none of its addresses in the inventory"

Document = dict[str, Any]
Address = IPv4Address | IPv6Address


def readygate_node_address(given: Sequence[Any]) -> str:
    """The first address at which other hosts may reach the host, as the kernel writes it; "" if there is none.

    given: the host's name, then candidates for its address, best first.
    """
    return next((str(found) for found in map(_address, given[1:]) if found and not found.is_link_local), "")


def readygate_node_ring(hosts: Iterable[Sequence[Any]]) -> list[list[str]]:
    """[hash, address] of the hosts with an address, ordered by hash. hosts: each as in readygate_node_address.

    By hash, so that a new or removed host changes the neighbours of few others.
    """
    found = {address: str(given[0]) for given in hosts if (address := readygate_node_address(given))}
    return sorted([_hash(name), address] for address, name in found.items())


def readygate_node_neighbours(ring: Sequence[Sequence[str]], host: str, own: str) -> list[str]:
    """The next addresses after this host in the ring, of its own family, PEERS at most."""
    start = bisect_right(ring, _hash(host), key=itemgetter(0))
    found = (address for _, address in chain(islice(ring, start, None), islice(ring, start)))
    return list(islice((one for one in found if one != own and (":" in one) == (":" in own)), PEERS))


def readygate_node_found(
    seen: Mapping[str, str],
    ring: Sequence[Sequence[str]],
    host: str,
    own: str,
    controls: Sequence[str],
    ready_made: Mapping[str, Document] | None = None,
) -> Document:
    """{checks: the checks that are possible, without: those that are not, in words, seen: lines of look.sh to reuse
    while the API server does not answer}.

    seen: output of look.sh. own: the host's address in the inventory. controls: addresses of the control planes. Both
    count only if `own` is one of the host's addresses; otherwise they belong to another network.
    ready_made: the checks of the ready-made list, by name.
    """
    services, servers = _addresses(seen.get("services", "")), _addresses(seen.get("dns", ""))
    inside = bool(own) and seen.get("own") == "yes"
    checks = _of_dns(servers, seen.get("domain", ""), services)
    unread = seen.get("unread", "")
    without = [UNREAD + unread] if unread else [] if checks else [NO_DNS]
    known: dict[str, str] = {}
    if services:
        # Not the Service's endpoints if others are known, because a server that is down is missing there.
        direct = controls if inside and controls else [str(one) for one in _addresses(seen.get("endpoints", ""))]
        peers = readygate_node_neighbours(ring, host, own) if inside else []
        port, proxy = seen.get("api_port", ""), _local(seen.get("proxy", ""))
        path = _of_the_path(services[0], sorted(direct), peers, proxy)
        path |= {key: int(seen[name]) for key, name in _PORTS.items() if _is_port(seen.get(name, ""))}
        checks.append({"name": PATH, "servicePath": path})
        known = {
            "services": ",".join(map(str, services)),
            "api_port": port if port.isdecimal() else "",
            "proxy": proxy,
        }
        known["endpoints"] = "" if direct is controls else ",".join(direct)
    without += [NO_PATH] if not services else [] if inside else [NO_PEERS]
    return {
        "checks": [{**check, "severity": "warn"} for check in checks]
        + _of_pressure(seen.get("cgroup_root", ""), (ready_made or {}).get(PRESSURE)),
        "without": without,
        "seen": [f"{key}={value}" for key, value in known.items() if value],
    }


def _of_dns(servers: Sequence[Address], domain: str, services: Sequence[Address]) -> list[Document]:
    """A check for each address family, in the order of the kubelet's DNS servers."""
    checks: list[Document] = []
    for version in dict.fromkeys(one.version for one in servers):
        mine = [one for one in servers if one.version == version]
        # A link-local address is that of a cache on this node.
        local, beyond = ([str(one) for one in mine if one.is_link_local is there][:1] for there in (True, False))
        dns: Document = {key: found[0] for key, found in (("nodeLocal", local), ("service", beyond)) if found}
        if domain.strip("."):
            dns["name"] = f"{SERVICE_NAME}.{domain.strip('.')}"
        # That name has a record of the family of the API server's Service.
        if services and services[0].version != version:
            dns["type"] = RECORDS[services[0].version]
        checks.append({"name": f"{DNS}-{FAMILIES[version]}" if checks else DNS, "dns": dns})
    return checks


def _of_pressure(root: str, check: Document | None) -> list[Document]:
    """The ready-made check with the kubelet's cgroupRoot, which contains the cgroup of its pods.

    Empty if the root is the usual one, or is no path.
    """
    if check is None or not root.strip("/") or not re.fullmatch(r"[\w./-]+", root):
        return []
    return [{"name": PRESSURE, "pressure": {**check["pressure"], "cgroupRoot": root}}]


def _of_the_path(service: Address, direct: Sequence[str], peers: Sequence[str], proxy: str) -> Document:
    path: Document = {"service": str(service), "apiServers": direct, "peers": peers, "proxy": proxy}
    return {key: value for key, value in path.items() if value}


def _is_port(text: str) -> bool:
    return text.isdecimal() and 0 < int(text) < 2**16


def _local(text: str) -> str:
    """An address, also a loopback one; empty for anything else."""
    try:
        return str(ip_address(text.strip()))
    except ValueError:
        return ""


def readygate_node_joined(
    own: Iterable[Document], found: Iterable[Document], leave_out: Iterable[str], kinds: Iterable[str]
) -> list[Document]:
    """The user's checks, then the detected checks whose kind and name the user has not configured.

    A user's check without a kind changes the settings of the detected check with its name; it is left out if there is
    none.
    """
    known = {check["name"]: check for check in found if check["name"] not in leave_out}
    kinds, taken = set(kinds), set[str]()
    joined: list[Document] = []
    for check in own:
        name, given = check.get("name"), kinds.intersection(check)
        base = known.pop(name, None)
        if base is not None and not given:
            joined.append({**base, **check})
        elif given or name not in NAMES:
            joined.append(check)
        taken |= given
    return [*joined, *(check for check in known.values() if not taken.intersection(check))]


def _addresses(text: str) -> list[Address]:
    """Addresses of a list with commas, without those that other hosts cannot reach."""
    return list(dict.fromkeys(one for one in map(_address, text.split(",")) if one))


def _address(text: object) -> Address | None:
    try:
        found = ip_address(str(text).strip().strip("[]"))
    except ValueError:
        return None
    odd = found.is_loopback or found.is_unspecified or found.is_multicast
    return None if odd or (found.version == 6 and found.is_link_local) else found  # which needs a link's name, too


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "readygate_node_address": readygate_node_address,
            "readygate_node_ring": readygate_node_ring,
            "readygate_node_found": readygate_node_found,
            "readygate_node_joined": readygate_node_joined,
        }
