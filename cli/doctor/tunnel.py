"""Reaches what a kube-scheduler serves: by URL, or through `kubectl port-forward` where it listens on loopback only, as
kubeadm has it.

Its certificate is its own and nobody vouches for it, so it is not looked at; therefore nothing secret is sent: the
kubeconfig's client certificate shows who we are, a token stays here.
"""

import contextlib
import re
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from queue import Empty, Queue

from cli.doctor.configz import ConfigzError, loaded
from cli.doctor.facts import Loaded
from component.text import one_line
from kube.auth import Connection
from kube.client import Client
from kube.errors import CredentialsInvalid, Forbidden, KubeError, Unauthorized

PORT = 10259
DEADLINE_S = 5.0
_FORWARDING = re.compile(r"Forwarding from 127\.0\.0\.1:([0-9]+)")


class UnreadError(Exception):
    """It could not be read; one line with the cause."""


class _Nobody:
    """No token leaves this machine for a server that nobody vouches for."""

    def headers(self, _monotonic: float) -> Mapping[str, str]:
        return {}

    def refresh(self) -> None:
        return


def read_configz(url: str, there: Connection, *, user_agent: str) -> Loaded:
    """there: where the client certificate comes from, a connection that nobody else uses. Raises UnreadError."""
    context = there.tls.context(time.monotonic()) if there.tls is not None else ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        client = Client(
            Connection(url.rstrip("/"), context if url.startswith("https:") else None, _Nobody()),
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


@contextlib.contextmanager
def forwarded(namespace: str, pod: str, options: Sequence[str]) -> Iterator[str]:
    """URL at which the pod's port is to be had while this lasts. options: which cluster. Raises UnreadError."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise UnreadError("it listens on loopback of its host, and there is no kubectl here to forward its port")
    arguments = [kubectl, *options, "--namespace", namespace, "port-forward", f"pod/{pod}", f":{PORT}"]
    arguments += ["--address", "127.0.0.1"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield f"https://127.0.0.1:{_port(process)}"
    finally:
        process.terminate()
        try:
            process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _port(process: "subprocess.Popen[str]") -> int:
    lines: Queue[str] = Queue()
    out = process.stdout
    assert out is not None  # noqa: S101 - a pipe, as Popen was told

    def read() -> None:
        lines.put(out.readline())

    threading.Thread(target=read, daemon=True).start()
    try:
        said = lines.get(timeout=2 * DEADLINE_S)
    except Empty:
        raise UnreadError("kubectl port-forward says nothing; is the kubelet of its host there?") from None
    match = _FORWARDING.search(said)
    if match is None:
        process.kill()
        _, complaint = process.communicate()
        raise UnreadError(f"kubectl port-forward: {one_line(complaint, 160) or 'no answer'}")
    return int(match[1])
