"""gunicorn in the foreground around our application. Settings that are the same everywhere are in gunicorn.conf.py."""

import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask import Flask
from gunicorn.app.base import Application
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger

from component.command import EXIT_INTERRUPTED
from component.settings import SettingsError
from extender.process.app import create_app
from extender.services import Services, build
from extender.settings import Settings
from kube import contract
from kube.auth import Connection
from kube.client import Client
from kube.connect import connect
from kube.errors import CredentialsInvalid

log = logging.getLogger(__name__)

CONF = Path(__file__).with_name("gunicorn.conf.py")
FIRST_SYNC_WAIT_S = 5.0


class StartError(Exception):
    """The server cannot start. One line with cause and remedy. usage: whether the configuration is at fault."""

    def __init__(self, text: str, *, usage: bool) -> None:
        super().__init__(text)
        self.usage = usage


def log_address(arbiter: Any) -> None:  # noqa: ANN401 - gunicorn's Arbiter
    """Hook when_ready: connections are taken from now on, and answered when the worker is up."""
    for listener in arbiter.LISTENERS:
        address, port = listener.getsockname()[:2]
        log.info("listening", extra={"address": address, "port": port})


def start_services(worker: Any) -> None:  # noqa: ANN401 - gunicorn's Worker
    """Hook post_worker_init. The worker accepts connections when this returns, so the first answers are good ones."""
    bundle: Services = worker.wsgi.extensions["readygate"]
    bundle.start()
    if bundle.wait_synced(FIRST_SYNC_WAIT_S, give_up=lambda: not worker.alive):
        log.info("synced", extra={"nodes": len(bundle.decisions())})
    else:
        log.warning("caches not synced; answering Error", extra={"waited_s": FIRST_SYNC_WAIT_S})


def stop_services(_arbiter: Any, worker: Any) -> None:  # noqa: ANN401
    """Hook worker_exit. It is called for a worker that failed to load, too."""
    application = getattr(worker, "wsgi", None)
    if isinstance(application, Flask):
        application.extensions["readygate"].stop()


class GunicornLog(Logger):  # type: ignore[misc]
    """gunicorn's own lines through our handler."""

    def setup(self, cfg: Any) -> None:  # noqa: ANN401
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


class Server(Application):  # type: ignore[misc]
    """The services are built in the worker: a Thread object made before the fork counts as dead after it.

    load_settings: called at SIGHUP; a configuration that has become bad leaves the old one in force.
    """

    def __init__(self, settings: Settings, load_settings: Callable[[], Settings], listener: socket.socket) -> None:
        """Raises StartError if the settings cannot be used."""
        self._settings = settings
        self._connection = _usable_connection(settings)
        self._load_settings = load_settings
        self._bind = f"fd://{listener.detach()}"
        super().__init__()

    def load_config(self) -> None:
        self.load_config_from_file(str(CONF))
        self.cfg.set("bind", self._bind)
        self.cfg.set("loglevel", "debug" if self._settings.log.level == "debug" else "warning")

    def load(self) -> Flask:
        return create_app(build(self._settings, self._connection))

    def reload(self) -> None:
        try:
            settings = self._load_settings()
            connection = _usable_connection(settings)
            if settings.listen != self._settings.listen:
                log.warning("listen.address and listen.port change only with a restart")
            self._settings, self._connection = settings, connection
        except (SettingsError, StartError) as e:
            log.error("reload rejected, keeping the previous configuration", extra={"error": str(e)})
        self.callable = None
        super().reload()


def _usable_connection(settings: Settings) -> Connection:
    """Raises StartError for credentials or an address that cannot be used. Sends nothing.

    An address shows what is wrong with it only when a client is made of it; that one is thrown away.
    """
    try:
        connection = connect(settings.kubernetes.kubeconfig, server=settings.kubernetes.server)
        Client(connection, user_agent=contract.NAME_EXTENDER)
    except CredentialsInvalid as e:
        raise StartError(str(e), usage=True) from e
    return connection


def listen(address: str, port: int) -> socket.socket:
    """A bound socket. Here and not in gunicorn, which tries a taken port for five seconds and says so ten times.

    Raises StartError.
    """
    where = f"{address} port {port}"
    try:
        family, kind, protocol, _, full = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(full)
    except (OSError, UnicodeError) as e:  # the latter for a name that is none, "a..b"
        cause = getattr(e, "strerror", None) or str(e)
        text = f"cannot listen on {where}: {cause}; change listen.address or listen.port"
        raise StartError(text, usage=False) from e
    return listener


class _Arbiter(Arbiter):  # type: ignore[misc]
    """Ctrl-C stops as cleanly as SIGTERM does, and tells the shell that it was Ctrl-C."""

    interrupted = False

    def handle_int(self) -> None:
        self.interrupted = True
        raise StopIteration


def serve(settings: Settings, load_settings: Callable[[], Settings]) -> int:
    """Serve until SIGTERM (0) or SIGINT (130). Also returns in the worker, with its exit code. Raises StartError."""
    listener = listen(settings.listen.address, settings.listen.port)
    arbiter = _Arbiter(Server(settings, load_settings, listener))
    try:
        arbiter.run()
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 0
        return EXIT_INTERRUPTED if arbiter.interrupted and code == 0 else code
    return 0
