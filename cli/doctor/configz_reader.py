"""Reads /configz of a kube-scheduler: at a URL, or by port-forward if it listens on loopback, as with kubeadm.

Its certificate is self-signed and is not verified. So no secret is sent: the kubeconfig's client certificate
authenticates the user, and a bearer token is never sent.
"""

import ssl
import time
from collections.abc import Callable, Mapping
from socket import socket

from cli.doctor.configz import ConfigzError, loaded
from cli.doctor.facts import Loaded
from cli.shared.port_forward import ForwardError, PortForward
from component.text import one_line
from kube.auth import Connection
from kube.client import Client
from kube.errors import CredentialsInvalid, Forbidden, KubeError, Unauthorized

PORT = 10259
LOCAL = f"https://127.0.0.1:{PORT}"
DEADLINE_S = 5.0


class UnreadError(Exception):
    """The configuration could not be read. One line with the cause."""


class _NoToken:
    """Sends no token, because the server is not verified."""

    def headers(self, _monotonic: float) -> Mapping[str, str]:
        return {}

    def refresh(self) -> None:
        return


def read_forwarded(forward: PortForward, there: Connection, *, user_agent: str) -> Loaded:
    """Reads /configz by port-forward. there: as for read_configz(). Raises UnreadError."""
    try:
        return read_configz(LOCAL, there, user_agent=user_agent, dial=forward.dial)
    except ForwardError as e:
        raise UnreadError(str(e)) from e
    except UnreadError as e:
        if forward.complaint:
            raise UnreadError(forward.explain(forward.complaint)) from e
        raise


def read_configz(
    url: str, there: Connection, *, user_agent: str, dial: Callable[[float], socket] | None = None
) -> Loaded:
    """Reads /configz at a URL. there: provides the client certificate; used by no other client. Raises UnreadError."""
    context = there.tls.context(time.monotonic()) if there.tls is not None else ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        client = Client(
            Connection(url.rstrip("/"), context if url.startswith("https:") else None, _NoToken(), dial=dial),
            user_agent=user_agent,
            deadline_s=DEADLINE_S,
            attempts=1,
        )
        return loaded(client.get("/configz"))
    except (Unauthorized, Forbidden) as e:
        raise UnreadError("access denied: the kubeconfig has no client certificate with that right") from e
    except (KubeError, CredentialsInvalid) as e:
        raise UnreadError(f"{url} does not answer: {one_line(e, 160)}") from e
    except ConfigzError as e:
        raise UnreadError(f"{url}: {e}") from e
