"""Whether the Host header of a request names us. Pure.

A page in a browser of this host can be led to our port by a name that its owner lets resolve to 127.0.0.1 (DNS
rebinding), and may then read our answers as if they were its own. Its requests carry that name in Host, so they are
told apart by it. A port in Host is read but not compared: behind a forwarded port it is another one, and it tells
nothing about the page.
"""

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Hosts(NamedTuple):
    """usual: headers as most clients write them, found without parsing. named: names and addresses, each in its one
    spelling. any_address: one that listens on all addresses cannot know them all; a page is led here by a name, never
    by a number."""

    usual: frozenset[bytes]
    named: frozenset[str]
    any_address: bool


def allowed_hosts(address: str, port: int, hosts: Iterable[str] = ()) -> Hosts:
    """address, port: where we listen. hosts: more names or addresses, as the configuration has them."""
    own = _address(address)
    any_address = own is not None and own.is_unspecified
    named = frozenset({"localhost", "127.0.0.1", "::1", *(_canonical(host) for host in (address, *hosts))})
    written = [f"[{host}]" if ":" in host else host for host in named if host != "::" and host != "0.0.0.0"]
    return Hosts(frozenset(f"{host}:{port}".encode() for host in written), named, any_address)


def is_ours(header: bytes, allowed: Hosts) -> bool:
    """header: a Host header's value without the blanks around it."""
    return header in allowed.usual or _is_named(header, allowed)


def _is_named(header: bytes, allowed: Hosts) -> bool:
    host = _host(header)
    if host is None:
        return False
    if host.startswith("["):
        return ":" in host and _is_allowed_address(_address(host[1:-1]), allowed)
    address = _address(host)
    return _canonical(host) in allowed.named if address is None else _is_allowed_address(address, allowed)


def _is_allowed_address(address: Address | None, allowed: Hosts) -> bool:
    if address is None or address.is_unspecified:
        return False
    return address.is_loopback or allowed.any_address or str(address) in allowed.named


def _host(header: bytes) -> str | None:
    """The part before the port; None for what is no `host` or `host:port`."""
    text = header.decode("latin-1")
    end = text.find("]") + 1 if text.startswith("[") else text.find(":")
    host, port = (text, "") if end < 0 else (text[:end], text[end:])
    is_port = port == "" or (port[0] == ":" and port[1:].isdecimal() and len(port) <= len(":65535"))
    return host if host and is_port else None


def _canonical(host: str) -> str:
    """An address in its one spelling, a name in lower case and without the dot of the root."""
    address = _address(host)
    return host.lower().removesuffix(".") if address is None else str(address)


def _address(text: str) -> Address | None:
    """None for a name, and for an address with a zone, which means something on one host only."""
    try:
        found = None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
