"""gunicorn's master with one worker. The next worker replaces it only when that one has synced.

gunicorn does not document what this module and `extender.process.foreground` override, nor the names WORKERS, LISTENERS
and SIG_QUEUE. The tests of stops, kills, reloads and TLS run on each supported release line of gunicorn.
"""

import logging
import signal
import time
from typing import Any, Protocol

from gunicorn import sock
from gunicorn.errors import HaltServer

from extender.process.control_socket import MasterEnd, Message, make_link
from extender.process.foreground import Master
from extender.process.generations import Do, Generations, Step

log = logging.getLogger(__name__)


class Reloading(Protocol):
    """The interface of the application that the workers load."""

    def renew(self) -> bool:
        """Loads the configuration file again. Returns False if it cannot be used and the previous one stays."""
        ...

    def keep(self) -> None:
        """Restores the configuration before the last renew()."""
        ...

    def look(self, monotonic: float) -> None:
        """Called each second, to refresh what the next worker inherits from its master."""
        ...


class Arbiter(Master):
    """gunicorn's master. SIGHUP replaces the worker without a gap.

    Hooks of the configuration: before_fork as `pre_fork`, after_fork as `post_fork`.
    """

    _stopping = False

    LISTENERS: list[Any]  # gunicorn's own

    def __init__(self, app: Any) -> None:  # noqa: ANN401 - gunicorn's Application, and Reloading
        self._generations = Generations()
        self._ends: dict[int, MasterEnd] = {}
        self._lacks = ""  # why no worker could be started; logged once
        super().__init__(app)

    def reload(self) -> None:
        """Called at SIGHUP. Returns at once; manage_workers() does the rest. Upstream's method ends the old worker
        here."""
        if self._generations.may_reload():
            self._reload()

    def spawn_worker(self) -> int:
        """Returns the process id. In the new process it does not return."""
        pid: int = super().spawn_worker()
        worker = self.WORKERS[pid]
        worker.link.close()
        self._ends[pid] = worker.master_end
        self._generations.spawned(pid, time.monotonic())
        return pid

    def manage_workers(self) -> None:
        """Called after each signal and each second."""
        self.app.look(time.monotonic())
        for end in self._ends.values():  # also of dead workers
            end.listen()
        synced = [pid for pid, end in self._ends.items() if end.synced]
        for pid in self._ends.keys() - self.WORKERS.keys():
            self._ends.pop(pid).close()
        for do in self._generations.turn(self.WORKERS.keys(), synced, time.monotonic()):
            self._do(do)

    def reap_workers(self) -> None:
        """A worker that cannot start ends a server that was just started, but not a server that has another worker."""
        try:
            super().reap_workers()
        except HaltServer as e:
            if not (self.WORKERS or self._stopping):
                raise
            log.error("a new worker did not start", extra={"error": str(e)})

    @property
    def answered(self) -> bool:
        """Returns whether a worker answers calls."""
        return bool(self._generations.current)

    def stop(self, graceful: bool = True) -> None:
        """Also sends a message: a process that was just forked can lose a signal."""
        self._stopping = True
        # First, so that a call after the worker's last accept is refused, and does not wait in the backlog.
        sock.close_sockets(self.LISTENERS, unlink=False)
        self.LISTENERS = []
        for end in self._ends.values():
            end.tell(Message.STOP)
        super().stop(graceful)

    def _do(self, do: Do) -> None:
        match do.step:
            case Step.ACCEPT:
                self._ends[do.pid].tell(Message.ACCEPT)
            case Step.RETIRE:
                log.info("reloaded")
                self._ends[do.pid].tell(Message.RETIRE)
            case Step.END:
                self._ends[do.pid].tell(Message.STOP)
            case Step.KILL:
                log.error("a worker does not end", extra={"worker": do.pid})
                self.kill_worker(do.pid, signal.SIGKILL)
            case Step.SPAWN:
                lacks, self._lacks = self._lacks, self._begin()
                if self._lacks and self._lacks != lacks:
                    log.error("no worker can be started, trying again", extra={"error": self._lacks})
            case Step.KEEP:
                self._keep(do.why)
            case Step.RELOAD:
                self._reload()

    def _reload(self) -> None:
        if self.app.renew():
            self.setup(self.app)  # gunicorn's own part of the configuration: its log level
            if lacks := self._begin():
                self._keep(f"no worker can be started: {lacks}")

    def _keep(self, why: str) -> None:
        log.error("reload given up, keeping the previous configuration", extra={"error": why})
        self.app.keep()
        self.setup(self.app)

    def _begin(self) -> str:
        """Starts a worker. Returns the missing resource, such as descriptors or processes; "" if the worker was
        started. Upstream's method would end the server, and with it the worker that answers."""
        try:
            self.spawn_worker()
        except OSError as e:
            return e.strerror or str(e)
        return ""


def before_fork(master: Arbiter, worker: Any) -> None:  # noqa: ANN401 - gunicorn's Worker
    """Hook pre_fork, in the master. worker.replaces: another worker answers until this one has synced."""
    worker.master_end, worker.link = make_link()
    worker.replaces = master.answered


def after_fork(master: Arbiter, worker: Any) -> None:  # noqa: ANN401
    """Hook post_fork, in the worker. A socket closes when the master's end closes, so the worker must not keep that end
    open."""
    worker.master_end.close()
    for sibling in master.WORKERS.values():
        sibling.master_end.close()
