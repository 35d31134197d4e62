"""Reads /configz of a kube-scheduler: at a URL, or by port-forward where it listens on loopback, as kubeadm has it.

Its certificate is its own and nobody vouches for it, so it is not looked at; therefore nothing secret is sent: the
kubeconfig's client certificate shows who we are, a token stays here.
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
    """It could not be read; one line with the cause."""


class _Nobody:
    """No token leaves this machine for a server that nobody vouches for."""

    def headers(self, _monotonic: float) -> Mapping[str, str]:
        return {}

    def refresh(self) -> None:
        return


def read_forwarded(forward: PortForward, there: Connection, *, user_agent: str) -> Loaded:
    """forward: to a kube-scheduler's port. there: as of read_configz(). Raises UnreadError."""
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
    """there: where the client certificate comes from, a connection that nobody else uses. Raises UnreadError."""
    context = there.tls.context(time.monotonic()) if there.tls is not None else ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        client = Client(
            Connection(url.rstrip("/"), context if url.startswith("https:") else None, _Nobody(), dial=dial),
            user_agent=user_agent,
            deadline_s=DEADLINE_S,
            attempts=1,
        )
        return loaded(client.get("/configz"))
    except (Unauthorized, Forbidden) as e:
        raise UnreadError("it does not let you: the kubeconfig holds no client certificate with that right") from e
    except (KubeError, CredentialsInvalid) as e:
        raise UnreadError(f"{url} does not answer: {one_line(e, 160)}") from e
    except ConfigzError as e:
        raise UnreadError(f"{url}: {e}") from e
