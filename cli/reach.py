"""Finds the extenders and asks all of them at once: through the API server, with the rights of who asks, or by URL.

Through the API server: the extender's pods are listed by their label, and what serves people in each is asked through
the API server's pod proxy. So nothing but the API server needs to be reached, and who may ask is its to say.
"""

import argparse
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol
from urllib.parse import urlencode, urlsplit

import msgspec

from cli.errors import CANNOT_KNOW, CommandError
from cli.replicas import Said
from component.command import EXIT_USAGE, product_version
from component.text import one_line
from extender.web.report import NO_BROWSER_HEADER
from kube import contract, errors, paths
from kube.auth import SERVICE_ACCOUNT_ROOT, Connection, Credentials, in_cluster
from kube.client import Client
from kube.errors import CredentialsInvalid, KubeError
from kube.objects import UNREADABLE, ObjectMeta

PEOPLE_PORT = 9377
USUAL = "~/.kube/config"
LOCAL = f"http://127.0.0.1:{PEOPLE_PORT}"
API = "/api/v1/"
DEADLINE_S = 5.0  # of one question; all are asked at once
REPLICAS_MOST = 64
FIND_EVERY_S = 10.0
NO_KUBECONFIG = "there is no kubeconfig: name one with --kubeconfig or KUBECONFIG"
NO_LIST = "the API server gives no list of pods: is the kubeconfig's server one?"
# The API server passes on the Host that its own client named, which may be any name of its own.
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
    prefix: str
    explain: Callable[[KubeError, str], str]


class _Anonymous:
    """Nobody in particular."""

    def headers(self, _monotonic: float) -> Mapping[str, str]:
        return MARK

    def refresh(self) -> None:
        return


class _Marked:
    """The user's own, and the mark."""

    def __init__(self, inner: Credentials) -> None:
        self._inner = inner

    def headers(self, monotonic: float) -> Mapping[str, str]:
        return {**self._inner.headers(monotonic), **MARK}

    def refresh(self) -> None:
        self._inner.refresh()


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


def extenders(arguments: argparse.Namespace) -> Extenders:
    """By the options --server, or by the kubeconfig. Raises CommandError."""
    if arguments.server:
        return Servers(arguments.server)
    # In the extender's own pod people are served on loopback, and its account may not use the pod proxy.
    if kubeconfig_of(arguments) is None and is_pod() and _listens_here():
        return Servers([LOCAL])
    if kubeconfig_of(arguments) is None and not is_pod():
        remedy = f"or an extender with --server ({LOCAL} on one of its hosts)"
        raise CommandError(f"{NO_KUBECONFIG}, {remedy}", code=CANNOT_KNOW)
    return Replicas(_shared(arguments), arguments.readygate_namespace)


def _listens_here() -> bool:
    try:
        socket.create_connection(("127.0.0.1", PEOPLE_PORT), timeout=0.5).close()
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
    return Target(url, "", client, "", _explain_url)


def _tls(scheme: str) -> ssl.SSLContext | None:
    return ssl.create_default_context() if scheme == "https" else None


def _client(there: Connection) -> Client:
    return Client(there, user_agent=user_agent(), deadline_s=DEADLINE_S, attempts=1)


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
    """All extenders of a cluster, through its API server."""

    def __init__(self, there: Connection, namespace: str) -> None:
        """Raises CommandError."""
        self._namespace = namespace
        self._found: list[Target] | None = None
        self._found_at = 0.0
        try:
            self._client = _client(replace(there, credentials=_Marked(there.credentials)))
        except CredentialsInvalid as e:
            raise CommandError(str(e), code=CANNOT_KNOW) from e

    def ask(self, path: str, query: Mapping[str, str] | None = None, *, only: str = "") -> list[Said]:
        return _ask_all([target for target in self._targets() if only in ("", target.name)], path, query)

    def _targets(self) -> list[Target]:
        """Looked for again after a while: replicas come and go while somebody watches."""
        if self._found is None or time.monotonic() - self._found_at >= FIND_EVERY_S:
            self._found, self._found_at = self._find(), time.monotonic()
        return self._found

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
        return [self._target(pod) for pod in sorted(running, key=lambda pod: pod.metadata.name)]

    def _target(self, pod: _Pod) -> Target:
        name = pod.metadata.name
        prefix = paths.pod_proxy(self._namespace, name, PEOPLE_PORT)
        return Target(name, pod.spec.node_name, self._client, prefix, self._explain)

    def _explain(self, error: KubeError, name: str) -> str:
        if isinstance(error, errors.Forbidden):
            return api_problem(error, f"ask {name}")
        if not _is_from_proxy(error):
            return api_problem(error, f"ask {name}")
        return (
            f"the API server does not reach {name} at port {PEOPLE_PORT} ({one_line(error.message, 160)}); "
            f"kubectl -n {self._namespace} port-forward pod/{name} {PEOPLE_PORT} and then --server {LOCAL} do"
        )


def _is_from_proxy(error: KubeError) -> bool:
    """Whether the API server answers, and what is behind it does not."""
    return isinstance(error, errors.ServerError | errors.Invalid | errors.DeadlineExceeded)


def _explain_url(error: KubeError, name: str) -> str:
    if isinstance(error, errors.DeadlineExceeded):
        return f"{name} gives no answer within {DEADLINE_S:g} s; is it overloaded, or another server?"
    if isinstance(error, errors.ConnectionRefused):
        return f"nothing answers at {name}: is readygate-people running, and is this one of its hosts?"
    if error.status is not None:
        return f"{name} answers {error.status}; is it an extender of this release?"
    return f"nothing answers at {name}: {one_line(error.message)}; is readygate-people running there?"


def api_problem(error: Exception, what: str) -> str:
    """One line with the cause and a remedy. what: the thing that was tried: "list pods"."""
    if isinstance(error, errors.Forbidden):
        return f"you may not {what}: {error.message}; ask for that right, or another --context"
    if isinstance(error, errors.Unauthorized):
        return f"the API server does not know you (401): cannot {what}; renew the credentials of the kubeconfig"
    if isinstance(error, errors.Unreachable):
        return f"the API server does not answer: cannot {what}: {error.message}; see --kubeconfig and --context"
    if isinstance(error, errors.ServerError | errors.TooManyRequests):
        busy = f"the API server fails or is busy: {error.reason}: {error.message}"
        return f"cannot {what}: {busy}; try again in a while"
    if isinstance(error, KubeError):
        return f"cannot {what}: the API server says {error.reason}: {error.message}; is the kubeconfig's server one?"
    return f"cannot {what}: {one_line(error)}"


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
    full = f"{target.prefix}{API}{path}"
    full += f"?{urlencode(query)}" if query else ""
    try:
        return Said(target.name, target.host, body=target.client.get(full))
    except errors.NotFound as e:
        if e.message and e.status == 404 and e.reason == "NotFound" and "pods" in e.message:
            return Said(target.name, target.host, problem=f"{target.name} has just gone; try again")
        old = f"{target.name} has no {API}{path}: is it of another release, or is this kube-scheduler's port?"
        return Said(target.name, target.host, problem=old, missing=True)
    except CredentialsInvalid as e:
        return Said(target.name, target.host, problem=str(e))
    except KubeError as e:
        return Said(target.name, target.host, problem=target.explain(e, target.name))
