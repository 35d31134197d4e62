"""Finds the extenders and queries all of them at once: through the API server with the user's rights, or by URL.

Through the API server: the extender's pods are listed by their label. The status API of each pod listens on loopback of
its host and is reached by port-forward. Only the API server must be reachable, and it authorizes the user.
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

from cli.shared.errors import EXIT_UNKNOWN, CommandError, api_problem
from cli.shared.merge_answers import Reply
from cli.shared.port_forward import ForwardError, PortForward
from component.command import EXIT_USAGE, product_version
from component.text import one_line
from extender.web.report import NO_BROWSER_HEADER
from kube import contract, errors, paths
from kube.auth import SERVICE_ACCOUNT_ROOT, Connection, in_cluster
from kube.client import Client
from kube.errors import CredentialsInvalid, KubeError
from kube.objects import UNREADABLE, ObjectMeta

STATUS_API_PORT = 9377
DEFAULT_KUBECONFIG = "~/.kube/config"
LOCAL = f"http://127.0.0.1:{STATUS_API_PORT}"
API = "/api/v1/"
DEADLINE_S = 5.0  # of one request; all extenders are queried at once
REPLICAS_MOST = 64
FIND_EVERY_S = 10.0
NO_KUBECONFIG = "there is no kubeconfig: name one with --kubeconfig or KUBECONFIG"
NO_POD_LIST = "the answer is no list of pods; check the server in the kubeconfig"
# With this header, which no script in a browser can set, the status API accepts any name of its host.
HEADERS: Mapping[str, str] = {NO_BROWSER_HEADER: "readygate"}


class NoExtenderError(CommandError):
    """The API server lists no pod of an extender."""


class Extenders(Protocol):
    def ask(self, path: str, query: Mapping[str, str] | None = None, *, only: str = "") -> list[Reply]:
        """GETs /api/v1/`path` from each extender, or only from the extender `only`. Raises CommandError."""
        ...


@dataclass(frozen=True)
class Target:
    """One extender and how to reach it."""

    name: str  # of its pod, or its URL
    host: str  # its node, "" if unknown
    client: Client
    explain: Callable[[KubeError, str], str]  # (error, name) to one line with cause and remedy
    forward: PortForward | None = None  # None for a URL


class _Anonymous:
    """The status API authenticates no client."""

    def headers(self, _monotonic: float) -> Mapping[str, str]:
        return HEADERS

    def refresh(self) -> None:
        return


def user_agent() -> str:
    return f"readygate/{product_version()}"


def kubeconfig_of(arguments: argparse.Namespace) -> str | None:
    """The path of the user's kubeconfig, or several paths separated by `:`; None without one."""
    named = arguments.kubeconfig or os.environ.get("KUBECONFIG")
    return named or (
        DEFAULT_KUBECONFIG if arguments.context or Path(DEFAULT_KUBECONFIG).expanduser().is_file() else None
    )


def connection(arguments: argparse.Namespace) -> Connection:
    """The API server and the credentials for it: of the kubeconfig, or of the pod's own account.

    Raises CommandError.
    """
    file = kubeconfig_of(arguments)
    try:
        if file is not None:
            from kube import kubeconfig  # late: importing the package kubernetes takes a third of a second

            return kubeconfig.load(file, arguments.context)
        if is_pod():
            return in_cluster()
    except CredentialsInvalid as e:
        raise CommandError(str(e), code=EXIT_UNKNOWN) from e
    raise CommandError(NO_KUBECONFIG, code=EXIT_UNKNOWN)


def _shared(arguments: argparse.Namespace) -> Connection:
    """connection(), called once per command, because an exec plugin may prompt the user. Raises CommandError."""
    found: Connection | None = getattr(arguments, "connection", None)
    if found is None:
        found = arguments.connection = connection(arguments)
    return found


def is_pod() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (SERVICE_ACCOUNT_ROOT / "token").is_file()


def context(arguments: argparse.Namespace) -> tuple[str, str]:
    """The cluster's name in the kubeconfig, and the default namespace of the context."""
    file = kubeconfig_of(arguments)
    if file is None:
        return "", "default"
    try:
        from kube import kubeconfig
    except CredentialsInvalid:
        return "", "default"  # connection() reports what is missing
    return kubeconfig.context(file, arguments.context)


def api_client(arguments: argparse.Namespace) -> Client:
    """A client of the API server that the kubeconfig names. Raises CommandError."""
    try:
        return Client(_shared(arguments), user_agent=user_agent(), deadline_s=DEADLINE_S, attempts=2)
    except CredentialsInvalid as e:
        raise CommandError(str(e), code=EXIT_UNKNOWN) from e


def port_forward(arguments: argparse.Namespace, namespace: str, pod: str, port: int, host: str) -> PortForward:
    """A forward to a port of a pod on that host, with the user's rights. Raises CommandError."""
    return _forward(_shared(arguments), namespace, pod, port, host)


def _forward(there: Connection, namespace: str, pod: str, port: int, host: str) -> PortForward:
    """Raises CommandError."""
    try:
        return PortForward(there, namespace, pod, port, host=host, user_agent=user_agent())
    except CredentialsInvalid as e:
        raise CommandError(str(e), code=EXIT_UNKNOWN) from e


def extenders(arguments: argparse.Namespace) -> Extenders:
    """The extenders of --server, or those that the API server lists. Raises CommandError."""
    if arguments.server:
        return Servers(arguments.server)
    # In the extender's own pod the status API is on loopback, and the pod's service account may not forward ports.
    if kubeconfig_of(arguments) is None and is_pod() and _listens_here():
        return Servers([LOCAL])
    if kubeconfig_of(arguments) is None and not is_pod():
        remedy = f"or an extender with --server ({LOCAL} on one of its hosts)"
        raise CommandError(f"{NO_KUBECONFIG}, {remedy}", code=EXIT_UNKNOWN)
    return replicas(arguments)


def replicas(arguments: argparse.Namespace) -> "Replicas":
    """The extenders that the API server lists. Raises CommandError."""
    return Replicas(_shared(arguments), arguments.readygate_namespace)


def _listens_here() -> bool:
    try:
        socket.create_connection(("127.0.0.1", STATUS_API_PORT), timeout=0.5).close()
    except OSError:
        return False
    return True


class Servers:
    """Extenders that are named by URL."""

    def __init__(self, urls: list[str]) -> None:
        self._targets = [_by_url(url) for url in urls]

    def ask(self, path: str, query: Mapping[str, str] | None = None, *, only: str = "") -> list[Reply]:
        return _ask_all([target for target in self._targets if only in ("", target.name)], path, query)


def _by_url(url: str) -> Target:
    remedy = "write --server http://ADDRESS:PORT, with an IPv6 address in brackets"
    fault = CommandError(f"{url} is not a URL; {remedy}", code=EXIT_USAGE)
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
    """All extenders of a cluster. Each is reached through its own port-forward."""

    def __init__(self, there: Connection, namespace: str) -> None:
        """Raises CommandError."""
        self._there = there
        self._namespace = namespace
        self._found: list[Target] = []
        self._found_at = -math.inf
        try:
            self._client = _client(there)
        except CredentialsInvalid as e:
            raise CommandError(str(e), code=EXIT_UNKNOWN) from e

    def ask(self, path: str, query: Mapping[str, str] | None = None, *, only: str = "") -> list[Reply]:
        return _ask_all([target for target in self.targets() if only in ("", target.name)], path, query)

    def targets(self) -> list[Target]:
        """The running replicas. Listed again after 10 s, because replicas come and go while a command watches.

        Raises CommandError.
        """
        if time.monotonic() - self._found_at >= FIND_EVERY_S:
            self._found, self._found_at = self._find(), time.monotonic()
        return self._found

    def close(self) -> None:
        """Ends the port-forwards of ask()."""
        for target in self._found:
            target.client.close()

    def forward(self, name: str) -> PortForward | None:
        """A forward to the status API of that replica; None if it is not one of targets()."""
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
            raise CommandError(api_problem(e, f"list {where}"), code=EXIT_UNKNOWN) from e
        except UNREADABLE as e:
            raise CommandError(NO_POD_LIST, code=EXIT_UNKNOWN) from e
        running = [pod for pod in pods if pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed")]
        if not running:
            raise NoExtenderError(
                f"no extender found: there are no {where}; install readygate, or name another namespace "
                "(--readygate-namespace) or an extender (--server)",
                code=EXIT_UNKNOWN,
            )
        known = {(target.name, target.host): target for target in self._found}
        running.sort(key=lambda pod: pod.metadata.name)
        return [known.get((pod.metadata.name, pod.spec.node_name)) or self._target(pod) for pod in running]

    def _target(self, pod: _Pod) -> Target:
        """Raises CommandError."""
        name, host = pod.metadata.name, pod.spec.node_name
        forward = _forward(self._there, self._namespace, name, STATUS_API_PORT, host)
        # Two attempts, because the server may close an idle connection at the moment when it is reused.
        client = _client(Connection(LOCAL, None, _Anonymous(), dial=forward.dial), attempts=2)
        return Target(name, host, client, partial(_explain_forwarded, forward), forward)


def _explain_forwarded(forward: PortForward, error: KubeError, name: str) -> str:
    if forward.complaint:
        return forward.explain(forward.complaint)
    if isinstance(error, errors.DeadlineExceeded):
        return f"{name} did not answer within {DEADLINE_S:g} s; it or its host may be overloaded: see its log"
    if error.status is not None:
        return f"{name} answered {error.status}; check that it is an extender of this release"
    return f"the connection to {name} broke: {error.message}; try again, or see its log"


def _explain_url(error: KubeError, name: str) -> str:
    if isinstance(error, errors.DeadlineExceeded):
        return f"{name} did not answer within {DEADLINE_S:g} s; it may be overloaded, or no extender"
    if isinstance(error, errors.ConnectionRefused):
        return f"nothing answers at {name}; check that readygate-people runs on that host"
    if error.status is not None:
        return f"{name} answered {error.status}; check that it is an extender of this release"
    return f"nothing answers at {name}: {one_line(error.message)}; check that readygate-people runs there"


def _ask_all(targets: list[Target], path: str, query: Mapping[str, str] | None) -> list[Reply]:
    """Queries all at once. A slow extender delays the result by the deadline at most."""
    waiting: list[tuple[Target, Future[Reply]]] = []
    for target in targets:
        future: Future[Reply] = Future()
        threading.Thread(target=_ask_into, args=(future, target, path, query), daemon=True).start()
        waiting.append((target, future))
    replies = []
    for target, future in waiting:
        try:
            replies.append(future.result(timeout=2 * DEADLINE_S))
        except TimeoutError:
            replies.append(Reply(target.name, target.host, problem=f"{target.name} did not answer; see its log"))
    return replies


def _ask_into(future: "Future[Reply]", target: Target, path: str, query: Mapping[str, str] | None) -> None:
    with suppress(BaseException):
        future.set_result(_ask(target, path, query))


def _ask(target: Target, path: str, query: Mapping[str, str] | None) -> Reply:
    try:
        return Reply(target.name, target.host, body=target.client.get(f"{API}{path}", query=query or {}))
    except errors.NotFound:
        old = f"{target.name} has no {API}{path}; check its release, and that the port is not kube-scheduler's"
        return Reply(target.name, target.host, problem=old, not_found=True)
    except (ForwardError, CredentialsInvalid) as e:
        return Reply(target.name, target.host, problem=str(e))
    except KubeError as e:
        return Reply(target.name, target.host, problem=target.explain(e, target.name))
