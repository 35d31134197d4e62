"""A kubeconfig file to a Connection, through the package `kubernetes`: contexts, client certificates, tokens, token
files, exec plugins, OIDC. It is the only module that imports this package, and is itself imported only when a file is
named. The package is readygate's extra `kubeconfig`; if it is not installed, as in the image, importing this module
raises CredentialsInvalid.

Of several files the first one with a current context decides, as for kubectl; the package uses the last one's. Proxies
are not supported: an address behind a proxy is refused with one line. So is a user entry that impersonates (`as`),
which the package would ignore: requests would have more rights than those of kubectl.
"""

import hashlib
import logging
import math
import os
import signal
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import urllib3
import yaml

from component.text import one_line
from kube.auth import TOKEN_READ_EVERY_S, Connection, Kept
from kube.errors import CredentialsInvalid

try:
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, kube_config
except ModuleNotFoundError as e:
    raise CredentialsInvalid(
        f"no kubeconfig can be read: the package {e.name} is not installed; pip install 'readygate[kubeconfig]', or in "
        "a pod name no kubeconfig"
    ) from e

EXEC_LIMIT_S = 30.0  # the package waits for a plugin without a limit
HUNG_MAX = 4  # abandoned plugins that still run, each with a thread: beyond it, one is killed before another one starts
END_LIMIT_S = 1.0  # of a killed plugin
# client-go's; with the package's own 5 minutes a short token would always count as expired
EXPIRY_LEEWAY = timedelta(seconds=10)
LOOK_EVERY_S = 10.0  # at most three files are checked, and the kubeconfigs
ACTS_AS = ("as", "as-uid", "as-groups", "as-user-extra")
RELOAD_PAUSE_S = 10.0  # a plugin that keeps returning expired tokens is not run for each request

# Exceptions of the package for a broken file: it checks little, and the rest are errors of yaml, base64 and attributes.
_BROKEN = (ConfigException, OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError)


def load(path: str | None = None, context: str | None = None) -> Connection:
    """Returns the connection. path: None for $KUBECONFIG, else ~/.kube/config; several with `:` between. context: None
    for the current one.

    Raises CredentialsInvalid: one line, with the file, the cause and the remedy.
    """
    found = path or os.environ.get("KUBECONFIG") or "~/.kube/config"
    credentials = KubeconfigCredentials(found, context)
    loaded = credentials.load()
    host = str(loaded.host)
    tls = _Certificates(credentials) if host.startswith("https://") else None
    server_name = getattr(loaded, "tls_server_name", None) or None
    return Connection(host, ssl_context=None, credentials=credentials, tls_server_name=server_name, tls=tls)


def context(path: str | None = None, name: str | None = None) -> tuple[str, str]:
    """Returns name and namespace of the context that load() uses, for humans: ("", "default") if the file has none."""
    found = path or os.environ.get("KUBECONFIG") or "~/.kube/config"
    try:
        with _captured_errors():
            merged = _merged(found)
            current = name or merged["current-context"]
            entry = merged["contexts"].get_with_name(current)["context"].value
            return str(current), str(entry.get("namespace") or "default")
    except _BROKEN:
        return "", "default"


class _Certificates:
    """The certificates of the credentials; refreshing either refreshes both."""

    def __init__(self, credentials: "KubeconfigCredentials") -> None:
        self.context = credentials.context

    def refresh(self) -> None:
        return


class KubeconfigCredentials:
    """A token of a user entry: read again when it expires, each minute if it is from a file, and at once after a 401.

    Certificates, too: everything is loaded again when the kubeconfig or a file that it names has changed, and new
    connections use it. Unusable files (a certificate without its new key) leave the last ones in use.
    """

    def __init__(self, path: str, context: str | None) -> None:
        self._path = path
        self._context = context
        self._reloading = threading.Lock()  # try-lock: a second caller uses the current credentials
        self._configuration: Any = None
        self._token_file = False
        self._tried_s: float | None = None
        self._expiry: datetime | None = None
        self._looked_s = -math.inf
        self._files: tuple[str, ...] = ()  # of certificates and keys
        self._seen: object = None  # the state of the files when they were loaded
        self._digest = b""
        self._tls_context: ssl.SSLContext | None = None
        self._kept = Kept("kubeconfig", path)
        self._hung: list[threading.Thread] = []

    def headers(self, monotonic: float) -> Mapping[str, str]:
        if self._tried_s is None:
            self._tried_s = monotonic
        elif monotonic - self._tried_s >= self._reload_after_s() or self._have_files_changed(monotonic):
            self._tried_s = monotonic
            self._refresh_if_it_can_be()
        token = self._configuration.api_key.get("BearerToken")
        return {"Authorization": str(token)} if token else {}

    def context(self, monotonic: float) -> ssl.SSLContext:
        """Returns what was loaded last; headers() and refresh() check the files."""
        if self._have_files_changed(monotonic):
            self._refresh_if_it_can_be()
        assert self._tls_context is not None  # noqa: S101 - load() made it, or an error
        return self._tls_context

    def _have_files_changed(self, monotonic: float) -> bool:
        if monotonic - self._looked_s < LOOK_EVERY_S:
            return False
        self._looked_s = monotonic
        return self._look() != self._seen

    def _look(self) -> object:
        """Returns a value that changes with the files: rewritten, replaced, or a link to another file."""
        found = []
        for path in (*_parts(self._path), *self._files):
            try:
                status = Path(path).expanduser().stat()
            except OSError:
                found.append((path, 0, 0, 0))
            else:
                found.append((path, status.st_ino, status.st_mtime_ns, status.st_size))
        return found

    def _reload_after_s(self) -> float:
        """Returns the seconds after the last load when the token should be loaded again."""
        if self._expiry is not None and datetime.now(UTC) >= self._expiry - EXPIRY_LEEWAY:
            return RELOAD_PAUSE_S
        return TOKEN_READ_EVERY_S if self._token_file else math.inf

    def _refresh_if_it_can_be(self) -> None:
        """Refreshes, and keeps the old credentials if that fails: the server decides whether they are valid."""
        with self._one_at_a_time() as mine:
            if not mine:
                return
            try:
                self.load()
            except CredentialsInvalid as e:
                self._kept.wrong(str(e))
            else:
                self._kept.right()

    def refresh(self) -> None:
        with self._one_at_a_time() as mine:
            if mine:
                self.load()
                self._kept.right()

    def load(self) -> Any:  # noqa: ANN401 - the package's Configuration, which has no types
        """Reads the file, runs its plugin, loads its certificates. Raises CredentialsInvalid."""
        if not any(Path(part).expanduser().is_file() for part in _parts(self._path)):
            raise CredentialsInvalid(f"kubeconfig {self._path}: no such file; name an existing one")
        seen = self._look()  # before: changes during the load are detected later
        try:
            configuration = self._guarded(self._read)
            self._guarded(lambda: self._load_tls(configuration))
        except CredentialsInvalid:
            # Files with inline data, which a full disk may have truncated: the package would use them again.
            kube_config._cleanup_temp_files()  # type: ignore[no-untyped-call]  # noqa: SLF001
            raise
        files = tuple(str(path) for path in _files_of(configuration) if path)
        if files != self._files:
            self._files = files
            seen = self._look()
        self._configuration, self._seen = configuration, seen
        return configuration

    @contextmanager
    def _one_at_a_time(self) -> Iterator[bool]:
        mine = self._reloading.acquire(blocking=False)
        try:
            yield mine
        finally:
            if mine:
                self._reloading.release()

    def _guarded(self, action: Any) -> Any:  # noqa: ANN401 - passes on whatever the package returns
        """Runs `action` for at most EXEC_LIMIT_S, with its error log captured."""
        outcome: dict[str, Any] = {}
        if not self._may_begin():
            raise CredentialsInvalid(self._no_answer(f", nor have {HUNG_MAX} of it that run still"))

        def run() -> None:
            try:
                with _captured_errors() as complaints:
                    outcome["value"] = action()
            except (*_BROKEN, CredentialsInvalid) as e:
                outcome["error"] = e
            outcome["complaints"] = complaints

        thread = threading.Thread(target=run, name="kubeconfig", daemon=True)
        thread.start()
        thread.join(EXEC_LIMIT_S)
        if thread.is_alive():
            self._hung.append(thread)
            raise CredentialsInvalid(self._no_answer())
        error = outcome.get("error")
        if isinstance(error, CredentialsInvalid):
            raise error
        if error is not None:
            raise CredentialsInvalid(f"kubeconfig {self._path}: {_cause(error)}; correct the file") from error
        if outcome["complaints"]:
            raise CredentialsInvalid(
                f"kubeconfig {self._path}: {one_line('; '.join(outcome['complaints']))}; run the exec plugin by hand"
            )
        return outcome["value"]

    def _may_begin(self) -> bool:
        """A plugin may wait without a limit for an absent user: beyond the limit the first one is killed, so that the
        user is asked again on return."""
        self._hung = [thread for thread in self._hung if thread.is_alive()]
        if len(self._hung) >= HUNG_MAX:
            _kill_processes_of(self._hung[0])
            self._hung[0].join(END_LIMIT_S)
        return sum(thread.is_alive() for thread in self._hung) < HUNG_MAX

    def _no_answer(self, more: str = "") -> str:
        gave = f"its exec plugin gave no answer within {EXEC_LIMIT_S:g} s{more}"
        return f"kubeconfig {self._path}: {gave}; run it by hand"

    def _read(self) -> Any:  # noqa: ANN401
        merged = _merged(self._path)
        if merged is None:
            raise CredentialsInvalid(f"kubeconfig {self._path}: no such file any more; name an existing one")
        loader = kube_config.KubeConfigLoader(  # type: ignore[no-untyped-call]
            config_dict=merged, active_context=self._context, config_base_path=None
        )
        context = loader.current_context["context"]
        cluster = merged["clusters"].get_with_name(context["cluster"])["cluster"]
        if "proxy-url" in cluster:
            raise CredentialsInvalid(
                f"kubeconfig {self._path}: proxy-url is not supported; use an address that is reached directly"
            )
        if not str(cluster.value.get("server", "")).startswith(("https://", "http://")):
            raise CredentialsInvalid(
                f"kubeconfig {self._path}: the cluster has no usable server; set it as https://host:port"
            )
        user = merged["users"].get_with_name(context["user"]) if "user" in context else None
        entry = {} if user is None else user["user"].value or {}
        if any(entry.get(key) for key in ACTS_AS):
            raise CredentialsInvalid(
                f"kubeconfig {self._path}: to act as another user (as) is not supported; name a context without it"
            )
        self._token_file = "tokenFile" in entry
        configuration = Configuration()
        loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
        self._expiry = getattr(loader, "expiry", None)
        return configuration

    def _load_tls(self, configuration: Any) -> None:  # noqa: ANN401
        if not str(configuration.host).startswith("https://"):
            return
        digest = hashlib.sha256()
        for path in _files_of(configuration):
            digest.update(Path(path).read_bytes() if path else b"")
        digest.update(bytes([configuration.verify_ssl]))
        if digest.digest() == self._digest:
            return
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
        if not configuration.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
        self._tls_context, self._digest = context, digest.digest()


def _kill_processes_of(thread: threading.Thread) -> None:
    """Kills the child processes of a thread, and theirs. Does nothing if the kernel does not list them."""
    found = _begun_by(Path(f"/proc/self/task/{thread.native_id}"))
    for pid in found:  # grows: an orphan has no known parent
        for task in Path(f"/proc/{pid}/task").glob("*"):
            found += _begun_by(task)
    for pid in found:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _begun_by(task: Path) -> list[int]:
    try:
        return [int(pid) for pid in (task / "children").read_text().split()]
    except OSError:
        return []


def _parts(path: str) -> list[str]:
    """Returns the files of $KUBECONFIG; nothing for empty parts between two colons."""
    return [part for part in path.split(os.pathsep) if part]


def _merged(path: str) -> Any:  # noqa: ANN401 - the package's ConfigNode, which has no types
    """Merges several files. Missing ones are left out, as kubectl does; returns None if none exists."""
    merger = kube_config.KubeConfigMerger(path)  # type: ignore[no-untyped-call]
    merged, files = merger.config, merger.config_files
    if len(files) > 1:
        named = (file.get("current-context") for file in files.values())
        merged.value["current-context"] = next((name for name in named if name), "")
    return merged


def _files_of(configuration: Any) -> tuple[str | None, ...]:  # noqa: ANN401 - the package's Configuration
    """Returns the files of certificate authority, certificate and key; the package writes inline data into its own
    files."""
    return configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file


@contextmanager
def _captured_errors() -> Iterator[list[str]]:
    """Captures what this thread logs as an error on the root logger: the package reports a failed plugin by
    logging.error only.

    Without a handler there, `logging.error` would also install one that writes to standard error.
    """
    captured: list[str] = []
    me = threading.get_ident()
    root = logging.getLogger()

    def take(record: logging.LogRecord) -> bool:
        if record.thread != me or record.levelno < logging.ERROR:
            return True
        captured.append(record.getMessage())
        return False

    silent = logging.NullHandler()
    root.addHandler(silent)
    root.addFilter(take)
    try:
        yield captured
    finally:
        root.removeFilter(take)
        root.removeHandler(silent)


def _cause(error: Exception) -> str:
    if isinstance(error, ConfigException | urllib3.exceptions.HTTPError):
        return one_line(error)
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return one_line(f"{error.strerror or error}{where}")
    if isinstance(error, yaml.YAMLError):
        return one_line(f"it is not YAML: {error}")
    return one_line(f"it is not a kubeconfig: {type(error).__name__} {error}")
