"""For the role that runs the agent on nodes: the checks that need addresses of the cluster, with those found."""

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
NO_DNS = "without the check dns, as the kubelet names no DNS server"
UNREAD = "without some of the kubelet's settings: "  # the file, and why
NO_PATH = "without the check service-path, as nobody has told the address of the API server's Service"
NO_PEERS = "without a look at other nodes, as the inventory has no address of the host that it knows as its own"

Document = dict[str, Any]
Address = IPv4Address | IPv6Address


def readygate_node_address(given: Sequence[Any]) -> str:
    """given: a host's name, then what may be its address, best first. The first that others may reach it at, as the
    kernel writes it; "" where none is."""
    return next((str(found) for found in map(_address, given[1:]) if found and not found.is_link_local), "")


def readygate_node_ring(hosts: Iterable[Sequence[Any]]) -> list[list[str]]:
    """hosts: each as above. [hash, address] of those that have one, by hash: who comes or goes is another neighbour for
    few."""
    found = {address: str(given[0]) for given in hosts if (address := readygate_node_address(given))}
    return sorted([_hash(name), address] for address, name in found.items())


def readygate_node_neighbours(ring: Sequence[Sequence[str]], host: str, own: str) -> list[str]:
    """The next ones after this host, of its own family, PEERS at most."""
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
    """{checks: those that can be made, without: what cannot, in words, seen: lines of look.sh that are wanted again
    where the API server does not answer}.

    seen: what look.sh tells. own: the host's address in the inventory, controls: those of its control planes; both
    count where the host says that `own` is one of its own, else they are of another network than the nodes'.
    ready_made: the checks of the ready-made list, by name.
    """
    services, servers = _addresses(seen.get("services", "")), _addresses(seen.get("dns", ""))
    inside = bool(own) and seen.get("own") == "yes"
    checks = _of_dns(servers, seen.get("domain", ""), services)
    unread = seen.get("unread", "")
    without = [UNREAD + unread] if unread else [] if checks else [NO_DNS]
    kept: dict[str, str] = {}
    if services:
        # Not those of the Service where others are known: of them a server that is away is none.
        direct = controls if inside and controls else [str(one) for one in _addresses(seen.get("endpoints", ""))]
        peers = readygate_node_neighbours(ring, host, own) if inside else []
        port, proxy = seen.get("api_port", ""), _local(seen.get("proxy", ""))
        path = _of_the_path(services[0], sorted(direct), peers, proxy)
        path |= {key: int(seen[name]) for key, name in _PORTS.items() if _is_port(seen.get(name, ""))}
        checks.append({"name": PATH, "servicePath": path})
        kept = {"services": ",".join(map(str, services)), "api_port": port if port.isdecimal() else "", "proxy": proxy}
        kept["endpoints"] = "" if direct is controls else ",".join(direct)
    without += [NO_PATH] if not services else [] if inside else [NO_PEERS]
    return {
        "checks": [{**check, "severity": "warn"} for check in checks]
        + _of_pressure(seen.get("cgroup_root", ""), (ready_made or {}).get(PRESSURE)),
        "without": without,
        "seen": [f"{key}={value}" for key, value in kept.items() if value],
    }


def _of_dns(servers: Sequence[Address], domain: str, services: Sequence[Address]) -> list[Document]:
    """A check for each family, the first for what the kubelet names first."""
    checks: list[Document] = []
    for version in dict.fromkeys(one.version for one in servers):
        mine = [one for one in servers if one.version == version]
        # An address that holds on one link alone is that of a cache on this node.
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
    """The ready-made check with the kubelet's cgroupRoot, below which the group of its pods is; the severity is the
    ready-made one's. None where the root is the usual one, or is no path."""
    if check is None or not root.strip("/") or not re.fullmatch(r"[\w./-]+", root):
        return []
    return [{"name": PRESSURE, "pressure": {**check["pressure"], "cgroupRoot": root}}]


def _of_the_path(service: Address, direct: Sequence[str], peers: Sequence[str], proxy: str) -> Document:
    path: Document = {"service": str(service), "apiServers": direct, "peers": peers, "proxy": proxy}
    return {key: value for key, value in path.items() if value}


def _is_port(text: str) -> bool:
    return text.isdecimal() and 0 < int(text) < 2**16


def _local(text: str) -> str:
    """An address, also of loopback, or nothing."""
    try:
        return str(ip_address(text.strip()))
    except ValueError:
        return ""


def readygate_node_joined(
    own: Iterable[Document], found: Iterable[Document], leave_out: Iterable[str], kinds: Iterable[str]
) -> list[Document]:
    """The checks of the user, then those found of whose kind, and whose name, the user has none. One that names no kind
    is the one found of its name, with what the user says of it; where there is none it is left out."""
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
    """Of a list with commas, without what no other host can be asked at."""
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
