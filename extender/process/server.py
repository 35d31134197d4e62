"""gunicorn in the foreground around the services. gunicorn.conf.py has the settings that never differ."""

import gc
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from gunicorn.app.base import Application

from component.settings import SettingsError
from extender.config.settings import Settings
from extender.process.arbiter import Arbiter
from extender.process.foreground import StartError, become, listen, run
from extender.process.services import Services, build
from extender.serve.tls import LOOK_EVERY_S, CertificateError, Certificates
from kube import contract
from kube.auth import Connection
from kube.client import Client
from kube.connect import connect
from kube.errors import CredentialsInvalid

log = logging.getLogger(__name__)

CONF = Path(__file__).with_name("gunicorn.conf.py")


def start_services(worker: Any) -> None:  # noqa: ANN401 - gunicorn's Worker
    """Hook post_worker_init. Does not wait: the worker itself checks whether the services have synced."""
    worker.wsgi.start()


def stop_services(_arbiter: Any, worker: Any) -> None:  # noqa: ANN401
    """Hook worker_exit. It is also called for a worker that failed to load."""
    bundle = getattr(worker, "wsgi", None)
    if isinstance(bundle, Services):
        bundle.stop()


class Usable(NamedTuple):
    """The usable parts of the settings. certificates: None without TLS."""

    connection: Connection
    certificates: Certificates | None


class Server(Application):  # type: ignore[misc]
    """The gunicorn application. The worker builds the services: a Thread object made before the fork counts as dead
    after it.

    load_settings: called at SIGHUP. certificates: the last usable ones, for a worker that starts while the files are
    not.
    """

    def __init__(self, settings: Settings, load_settings: Callable[[], Settings], listener: socket.socket) -> None:
        """Raises StartError if the settings cannot be used."""
        self._settings = settings
        self._usable = usable(settings)
        self._before = self._settings, self._usable
        self._load_settings = load_settings
        self._look_at = 0.0
        self._bind = f"fd://{listener.detach()}"
        super().__init__()

    def load_config(self) -> None:
        self.load_config_from_file(str(CONF))
        self.cfg.set("bind", self._bind)
        # gunicorn's defaults are the user and group of the time when it was imported.
        self.cfg.set("user", os.geteuid())
        self.cfg.set("group", os.getegid())
        self.cfg.set("loglevel", "debug" if self._settings.log.level == "debug" else "warning")

    def load(self) -> Services:
        return build(self._settings, self._usable.connection)

    @property
    def certificates(self) -> Certificates | None:
        return self._usable.certificates

    def look(self, monotonic: float) -> None:
        """Called each second, see `arbiter.Reloading`. Logs nothing: the worker checks the same files and logs."""
        if self.certificates is not None and monotonic >= self._look_at:
            self._look_at = monotonic + LOOK_EVERY_S
            self.certificates.look(tell=False)

    def renew(self) -> bool:
        """Called at SIGHUP, see `arbiter.Reloading`. A bad configuration leaves the previous one in force."""
        try:
            settings = self._load_settings()
            found = usable(settings)
        except (SettingsError, StartError) as e:
            log.error("reload rejected, keeping the previous configuration", extra={"error": str(e)})
            return False
        if _at_a_start(settings) != _at_a_start(self._settings):
            log.warning("listen.address, listen.port and listen.user change only with a restart")
        self._before = self._settings, self._usable
        self._settings, self._usable = settings, found
        self._take_over()
        return True

    def keep(self) -> None:
        self._settings, self._usable = self._before
        self._take_over()

    def _take_over(self) -> None:
        """Gives the settings of the master to the next worker; the current worker keeps its own."""
        logging.getLogger().setLevel(self._settings.log.level.upper())
        self.do_load_config()


def _at_a_start(settings: Settings) -> tuple[str, int, int | None]:
    """Returns the settings that are used only at the start."""
    return settings.listen.address, settings.listen.port, settings.listen.user


def usable(settings: Settings) -> Usable:
    """Checks the settings without sending anything. Raises StartError for unusable credentials, addresses or TLS files.

    Only a client reveals a wrong address, so this makes one and discards it.
    """
    try:
        certificates = None if settings.listen.tls is None else Certificates(settings.listen.tls)
        given = settings.kubernetes
        connection = connect(given.kubeconfig, server=given.server, token_file=given.token_file, ca_file=given.ca_file)
        Client(connection, user_agent=contract.NAME_EXTENDER)
    except (CertificateError, CredentialsInvalid) as e:
        raise StartError(str(e), usage=True) from e
    return Usable(connection, certificates)


def serve(settings: Settings, load_settings: Callable[[], Settings]) -> int:
    """Serves until SIGTERM (0) or SIGINT (130). Also returns in the worker, with its exit code. Raises StartError."""
    listener = listen(settings.listen.address, settings.listen.port)
    if settings.listen.user is not None:
        become(settings.listen.user)
    master = Arbiter(Server(settings, load_settings, listener))
    gc.freeze()  # once: the workers share these pages, and no garbage collection walks or writes them
    return run(master)
