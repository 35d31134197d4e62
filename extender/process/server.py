"""gunicorn in the foreground around our application. Settings that are the same everywhere are in gunicorn.conf.py."""

import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gunicorn.app.base import Application

from component.settings import SettingsError
from extender.foreground import Master, StartError, listen, run
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


def start_services(worker: Any) -> None:  # noqa: ANN401 - gunicorn's Worker
    """Hook post_worker_init. The worker accepts connections when this returns, so the first answers are good ones."""
    bundle: Services = worker.wsgi
    bundle.start()
    if bundle.wait_synced(FIRST_SYNC_WAIT_S, give_up=lambda: not worker.alive):
        log.info("synced", extra={"nodes": len(bundle.decisions())})
    else:
        log.warning("caches not synced; answering Error", extra={"waited_s": FIRST_SYNC_WAIT_S})


def stop_services(_arbiter: Any, worker: Any) -> None:  # noqa: ANN401
    """Hook worker_exit. It is called for a worker that failed to load, too."""
    bundle = getattr(worker, "wsgi", None)
    if isinstance(bundle, Services):
        bundle.stop()


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

    def load(self) -> Services:
        return build(self._settings, self._connection)

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


def serve(settings: Settings, load_settings: Callable[[], Settings]) -> int:
    """Serve until SIGTERM (0) or SIGINT (130). Also returns in the worker, with its exit code. Raises StartError."""
    listener = listen(settings.listen.address, settings.listen.port)
    return run(Master(Server(settings, load_settings, listener)))
