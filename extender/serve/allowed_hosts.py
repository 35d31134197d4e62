"""Whether the Host header of a request names this extender. Pure.

A page in a browser of this host can reach this port by a name that its owner resolves to 127.0.0.1 (DNS rebinding), and
could then read the answers as its own. Its requests have that name in Host and are refused by it. A port in Host is
read and not compared: behind a forwarded port it differs, and it says nothing about the page.
"""

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Hosts(NamedTuple):
    """The accepted Host headers.

    usual: headers as most clients write them, which need no parsing. named: names and addresses in their canonical
    form. any_address: a process that listens on all addresses cannot list them, so every address is accepted; a
    rebinding page uses a name.
    """

    usual: frozenset[bytes]
    named: frozenset[str]
    any_address: bool


def allowed_hosts(address: str, port: int, hosts: Iterable[str] = ()) -> Hosts:
    """Returns the accepted Host headers. address, port: of the listener. hosts: more names or addresses, from the
    configuration."""
    own = _address(address)
    any_address = own is not None and own.is_unspecified
    named = frozenset({"localhost", "127.0.0.1", "::1", *(_canonical(host) for host in (address, *hosts))})
    written = [f"[{host}]" if ":" in host else host for host in named if host != "::" and host != "0.0.0.0"]
    return Hosts(frozenset(f"{host}:{port}".encode() for host in written), named, any_address)


def is_ours(header: bytes, allowed: Hosts) -> bool:
    """Returns whether a Host header is accepted. header: its value without blanks around it."""
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
    """Returns the part before the port; None if the text is neither `host` nor `host:port`."""
    text = header.decode("latin-1")
    end = text.find("]") + 1 if text.startswith("[") else text.find(":")
    host, port = (text, "") if end < 0 else (text[:end], text[end:])
    is_port = port == "" or (port[0] == ":" and port[1:].isdecimal() and len(port) <= len(":65535"))
    return host if host and is_port else None


def _canonical(host: str) -> str:
    """Returns an address in its canonical form, or a name in lower case without the dot of the root."""
    address = _address(host)
    return host.lower().removesuffix(".") if address is None else str(address)


def _address(text: str) -> Address | None:
    """Returns None for a name, and for an address with a zone, which is valid on one host only."""
    try:
        found = None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
