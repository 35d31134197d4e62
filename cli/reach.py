"""Finds the extenders and asks all of them at once: through the API server, with the user's rights, or by URL.

Through the API server: the extender's pods are listed by their label, and the status API of each, which listens on
loopback of its host, is asked by port-forward. Nothing but the API server needs to be reachable, and it authorizes the
user.
"""

import argparse
import math
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from cli.errors import CANNOT_KNOW, CommandError, api_problem
from cli.portforward import ForwardError, PortForward
from cli.replicas import Said
from component.command import EXIT_USAGE, product_version
from component.text import one_line
from extender.web.schema import NO_BROWSER_HEADER
from kube import contract, errors, paths
from kube.auth import SERVICE_ACCOUNT_ROOT, Connection, in_cluster
from kube.client import Client
from kube.errors import CredentialsInvalid, KubeError
from kube.objects import UNREADABLE, ObjectMeta

STATUS_API_PORT = 9377
USUAL = "~/.kube/config"
LOCAL = f"http://127.0.0.1:{STATUS_API_PORT}"
API = "/api/v1/"
DEADLINE_S = 5.0  # of one question; all are asked at once
REPLICAS_MOST = 64
FIND_EVERY_S = 10.0
NO_KUBECONFIG = "there is no kubeconfig: name one with --kubeconfig or KUBECONFIG"
NO_LIST = "the API server gives no list of pods: is the kubeconfig's server one?"
# An extender that is named by --server may be reached by any name of its host.
MARK: Mapping[str, str] = {NO_BROWSER_HEADER: "readygate"}


class NoExtenderError(CommandError):
    """The API server knows no pod of an extender."""


class Extenders(Protocol):
    def ask(self, path: str, query: Mapping[str, str] | None = None, *, only: str = "") -> list[Said]:
        """What each says to GET /api/v1/`path`, or only the one of that name. Raises CommandError."""
        ...


@dataclass(frozen=True)
class Target:
    """One replica: who it is, where it is asked, what to do where nothing answers."""

    name: str
    host: str
    client: Client
    explain: Callable[[KubeError, str], str]
    forward: PortForward | None = None


class _Anonymous:
    """The status API authenticates no client."""

    def headers(self, _monotonic: float) -> Mapping[str, str]:
        return MARK

    def refresh(self) -> None:
        return


def user_agent() -> str:
    return f"readygate/{product_version()}"


def kubeconfig_of(arguments: argparse.Namespace) -> str | None:
    """Path of the user's own, or several with `:` between; None where there is none."""
    named = arguments.kubeconfig or os.environ.get("KUBECONFIG")
    return named or (USUAL if arguments.context or Path(USUAL).expanduser().is_file() else None)


def connection(arguments: argparse.Namespace) -> Connection:
    """Where the API server is and who we are there: by the kubeconfig, or by the pod's own account.

    Raises CommandError.
    """
    file = kubeconfig_of(arguments)
    try:
        if file is not None:
            from kube import kubeconfig  # late: the package behind it takes a third of a second

            return kubeconfig.load(file, arguments.context)
        if is_pod():
            return in_cluster()
    except CredentialsInvalid as e:
        raise CommandError(str(e), code=CANNOT_KNOW) from e
    raise CommandError(NO_KUBECONFIG, code=CANNOT_KNOW)


def _shared(arguments: argparse.Namespace) -> Connection:
    """connection(), once for a command: behind it may be a plugin that asks for a code. Raises CommandError."""
    found: Connection | None = getattr(arguments, "connection", None)
    if found is None:
        found = arguments.connection = connection(arguments)
    return found


def is_pod() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (SERVICE_ACCOUNT_ROOT / "token").is_file()


def context(arguments: argparse.Namespace) -> tuple[str, str]:
    """What the user calls the cluster, and the namespace that is meant where none is named."""
    file = kubeconfig_of(arguments)
    if file is None:
        return "", "default"
    try:
        from kube import kubeconfig
    except CredentialsInvalid:
        return "", "default"  # connection() says what is missing
    return kubeconfig.context(file, arguments.context)


def api_client(arguments: argparse.Namespace) -> Client:
    """The API server, as the user's kubeconfig has it. Raises CommandError."""
    try:
        return Client(_shared(arguments), user_agent=user_agent(), deadline_s=DEADLINE_S, attempts=2)
    except CredentialsInvalid as e:
        raise CommandError(str(e), code=CANNOT_KNOW) from e


def port_forward(arguments: argparse.Namespace, namespace: str, pod: str, port: int, host: str) -> PortForward:
    """To a port of a pod on that host, with the user's rights. Raises CommandError."""
    return _forward(_shared(arguments), namespace, pod, port, host)


def _forward(there: Connection, namespace: str, pod: str, port: int, host: str) -> PortForward:
    """Raises CommandError."""
    try:
        return PortForward(there, namespace, pod, port, host=host, user_agent=user_agent())
    except CredentialsInvalid as e:
        raise CommandError(str(e), code=CANNOT_KNOW) from e


def extenders(arguments: argparse.Namespace) -> Extenders:
    """By the options --server, or by the kubeconfig. Raises CommandError."""
    if arguments.server:
        return Servers(arguments.server)
    # In the extender's own pod the status API is on loopback, and the pod's account may not forward ports.
    if kubeconfig_of(arguments) is None and is_pod() and _listens_here():
        return Servers([LOCAL])
    if kubeconfig_of(arguments) is None and not is_pod():
        remedy = f"or an extender with --server ({LOCAL} on one of its hosts)"
        raise CommandError(f"{NO_KUBECONFIG}, {remedy}", code=CANNOT_KNOW)
    return replicas(arguments)


def replicas(arguments: argparse.Namespace) -> "Replicas":
    """Those that the API server knows. Raises CommandError."""
    return Replicas(_shared(arguments), arguments.readygate_namespace)


def _listens_here() -> bool:
    try:
        socket.create_connection(("127.0.0.1", STATUS_API_PORT), timeout=0.5).close()
    except OSError:
        return False
    return True


class Servers:
    """Extenders by their URLs."""

    def __init__(self, urls: list[str]) -> None:
        self._targets = [_by_url(url) for url in urls]

    def ask(self, path: str, query: Mapping[str, str] | None = None, *, only: str = "") -> list[Said]:
        return _ask_all([target for target in self._targets if only in ("", target.name)], path, query)


def _by_url(url: str) -> Target:
    remedy = "give --server http://ADDRESS:PORT, an IPv6 address in brackets"
    fault = CommandError(f"{url} is no URL; {remedy}", code=EXIT_USAGE)
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise fault
        client = _client(Connection(url.rstrip("/"), _tls(parts.scheme), _Anonymous()))
    except (ValueError, CredentialsInvalid) as e:
        raise fault from e
    return Target(url, "", client, _explain_url)


def _tls(scheme: str) -> ssl.SSLContext | None:
    return ssl.create_default_context() if scheme == "https" else None


def _client(there: Connection, attempts: int = 1) -> Client:
    return Client(there, user_agent=user_agent(), deadline_s=DEADLINE_S, attempts=attempts)


class _Pod(msgspec.Struct, frozen=True):
    class _Spec(msgspec.Struct, frozen=True, rename="camel"):
        node_name: str = ""
        host_network: bool = False

    class _Status(msgspec.Struct, frozen=True, rename="camel"):
        phase: str = ""

    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _Pods(msgspec.Struct, frozen=True):
    items: list[_Pod]


class Replicas:
    """All extenders of a cluster, each through a port-forward of its own that lasts while the command asks."""

    def __init__(self, there: Connection, namespace: str) -> None:
        """Raises CommandError."""
        self._there = there
        self._namespace = namespace
        self._found: list[Target] = []
        self._found_at = -math.inf
        try:
            self._client = _client(there)
        except CredentialsInvalid as e:
            raise CommandError(str(e), code=CANNOT_KNOW) from e

    def ask(self, path: str, query: Mapping[str, str] | None = None, *, only: str = "") -> list[Said]:
        return _ask_all([target for target in self.targets() if only in ("", target.name)], path, query)

    def targets(self) -> list[Target]:
        """The running replicas. Listed again after 10 s, because replicas come and go while a command watches.

        Raises CommandError.
        """
        if time.monotonic() - self._found_at >= FIND_EVERY_S:
            self._found, self._found_at = self._find(), time.monotonic()
        return self._found

    def close(self) -> None:
        """Ends the port-forwards by which ask() asks."""
        for target in self._found:
            target.client.close()

    def forward(self, name: str) -> PortForward | None:
        """To the status API of that replica; None where it is not one of targets()."""
        return next((target.forward for target in self._found if target.name == name), None)

    def _find(self) -> list[Target]:
        labels = f"{contract.LABEL_NAME}={contract.NAME_EXTENDER}"
        where = f"pods of namespace {self._namespace} with the label {labels}"
        try:
            body = self._client.get(
                paths.pods(self._namespace), query={"labelSelector": labels, "limit": str(REPLICAS_MOST)}
            )
            pods = msgspec.json.decode(body, type=_Pods).items
        except (KubeError, CredentialsInvalid) as e:
            raise CommandError(api_problem(e, f"list {where}"), code=CANNOT_KNOW) from e
        except UNREADABLE as e:
            raise CommandError(NO_LIST, code=CANNOT_KNOW) from e
        running = [pod for pod in pods if pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed")]
        if not running:
            raise NoExtenderError(
                f"no extender found: there are no {where}; is readygate deployed in this cluster, or elsewhere "
                "(--readygate-namespace, --server)?",
                code=CANNOT_KNOW,
            )
        known = {(target.name, target.host): target for target in self._found}
        running.sort(key=lambda pod: pod.metadata.name)
        return [known.get((pod.metadata.name, pod.spec.node_name)) or self._target(pod) for pod in running]

    def _target(self, pod: _Pod) -> Target:
        """Raises CommandError."""
        name, host = pod.metadata.name, pod.spec.node_name
        forward = _forward(self._there, self._namespace, name, STATUS_API_PORT, host)
        # A second attempt, because the server may close a kept connection at the moment at which it is used again.
        client = _client(Connection(LOCAL, None, _Anonymous(), dial=forward.dial), attempts=2)
        return Target(name, host, client, partial(_explain_forwarded, forward), forward)


def _explain_forwarded(forward: PortForward, error: KubeError, name: str) -> str:
    if forward.complaint:
        return forward.explain(forward.complaint)
    if isinstance(error, errors.DeadlineExceeded):
        return f"{name} gives no answer within {DEADLINE_S:g} s; is it or its host overloaded? Look at its log"
    if error.status is not None:
        return f"{name} answers {error.status}; is it an extender of this release?"
    return f"the connection to {name} broke: {error.message}; try again, and look at its log"


def _explain_url(error: KubeError, name: str) -> str:
    if isinstance(error, errors.DeadlineExceeded):
        return f"{name} gives no answer within {DEADLINE_S:g} s; is it overloaded, or another server?"
    if isinstance(error, errors.ConnectionRefused):
        return f"nothing answers at {name}: is readygate-status-api running, and is this one of its hosts?"
    if error.status is not None:
        return f"{name} answers {error.status}; is it an extender of this release?"
    return f"nothing answers at {name}: {one_line(error.message)}; is readygate-status-api running there?"


def _ask_all(targets: list[Target], path: str, query: Mapping[str, str] | None) -> list[Said]:
    """All at once; who is slow delays the others' answers by the deadline at most."""
    waiting: list[tuple[Target, Future[Said]]] = []
    for target in targets:
        future: Future[Said] = Future()
        threading.Thread(target=_ask_into, args=(future, target, path, query), daemon=True).start()
        waiting.append((target, future))
    said = []
    for target, future in waiting:
        try:
            said.append(future.result(timeout=2 * DEADLINE_S))
        except TimeoutError:
            said.append(Said(target.name, target.host, problem=f"{target.name} gives no answer; look at its log"))
    return said


def _ask_into(future: "Future[Said]", target: Target, path: str, query: Mapping[str, str] | None) -> None:
    with suppress(BaseException):
        future.set_result(_ask(target, path, query))


def _ask(target: Target, path: str, query: Mapping[str, str] | None) -> Said:
    try:
        return Said(target.name, target.host, body=target.client.get(f"{API}{path}", query=query or {}))
    except errors.NotFound:
        old = f"{target.name} has no {API}{path}: is it of another release, or is this kube-scheduler's port?"
        return Said(target.name, target.host, problem=old, missing=True)
    except (ForwardError, CredentialsInvalid) as e:
        return Said(target.name, target.host, problem=str(e))
    except KubeError as e:
        return Said(target.name, target.host, problem=target.explain(e, target.name))
