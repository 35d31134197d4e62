"""Requests to the servers of a plane, whose certificates nobody has to check: they are on loopback."""

import ssl
import urllib.error
import urllib.request


def answers(url: str) -> bool:
    """Whether it answers with 200."""
    return read(url) is not None


def read(url: str) -> str | None:
    """What a server on loopback, whose certificate nobody has to check, answers with 200."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=2, context=context) as reply:
            return reply.read().decode() if reply.status == 200 else None
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return None
