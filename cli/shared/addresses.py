"""Decides from a URL whether it is that of an extender of readygate. Pure."""

from urllib.parse import urlsplit

from kube import contract

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def port_of(url: str) -> int | None:
    """The port of a URL; None without a port, or if the URL is invalid."""
    try:
        return urlsplit(url).port
    except ValueError:
        return None


def is_local_extender(url: str) -> bool:
    """Whether the URL is a port of readygate on loopback, in any form that it is deployed in."""
    return port_of(url) in contract.PORTS and urlsplit(url).hostname in LOOPBACK
