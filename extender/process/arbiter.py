"""gunicorn's master with one worker, which is replaced by the next only when that one has synced.

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
    """What is asked of the application that the workers load."""

    def renew(self) -> bool:
        """Take the configuration file as it is now; False if it cannot be used and the one of before stays."""
        ...

    def keep(self) -> None:
        """Go back to what was before the last renew()."""
        ...

    def look(self, monotonic: float) -> None:
        """Called each second: time for what the next worker is to have of its master."""
        ...


class Arbiter(Master):
    """SIGHUP replaces the worker without a gap.

    Hooks of the configuration: before_fork as `pre_fork`, after_fork as `post_fork`.
    """

    _stopping = False

    LISTENERS: list[Any]  # gunicorn's own

    def __init__(self, app: Any) -> None:  # noqa: ANN401 - gunicorn's Application, and Reloading
        self._generations = Generations()
        self._ends: dict[int, MasterEnd] = {}
        self._lacks = ""  # for the worker that is to be there; said once
        super().__init__(app)

    def reload(self) -> None:
        """Called at SIGHUP. Returns at once; manage_workers() does the rest. Upstream's ends the old worker here."""
        if self._generations.may_reload():
            self._reload()

    def spawn_worker(self) -> int:
        """The process id. In the new process it does not return."""
        pid: int = super().spawn_worker()
        worker = self.WORKERS[pid]
        worker.link.close()
        self._ends[pid] = worker.master_end
        self._generations.spawned(pid, time.monotonic())
        return pid

    def manage_workers(self) -> None:
        """Called after each signal and each second."""
        self.app.look(time.monotonic())
        for end in self._ends.values():  # of the dead, too
            end.listen()
        synced = [pid for pid, end in self._ends.items() if end.synced]
        for pid in self._ends.keys() - self.WORKERS.keys():
            self._ends.pop(pid).close()
        for do in self._generations.turn(self.WORKERS.keys(), synced, time.monotonic()):
            self._do(do)

    def reap_workers(self) -> None:
        """A worker that cannot start ends a server that has just been started, but not one that has another worker."""
        try:
            super().reap_workers()
        except HaltServer as e:
            if not (self.WORKERS or self._stopping):
                raise
            log.error("a new worker did not start", extra={"error": str(e)})

    @property
    def answered(self) -> bool:
        """Whether a worker takes the calls."""
        return bool(self._generations.current)

    def stop(self, graceful: bool = True) -> None:
        """The word beside the signal: one is lost on a process that has just been forked."""
        self._stopping = True
        # First, so that who comes after the worker has taken its last is refused, and not taken by nobody.
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
                    log.error("no worker can be begun, trying again", extra={"error": self._lacks})
            case Step.KEEP:
                self._keep(do.why)
            case Step.RELOAD:
                self._reload()

    def _reload(self) -> None:
        if self.app.renew():
            self.setup(self.app)  # what gunicorn itself has of the configuration: the level of its log
            if lacks := self._begin():
                self._keep(f"no worker can be begun: {lacks}")

    def _keep(self, why: str) -> None:
        log.error("reload given up, keeping the previous configuration", extra={"error": why})
        self.app.keep()
        self.setup(self.app)

    def _begin(self) -> str:
        """What the host has none of for one worker more, as a descriptor or a process; "" if it is begun. Upstream's
        would end the server for it, and with it the worker that answers."""
        try:
            self.spawn_worker()
        except OSError as e:
            return e.strerror or str(e)
        return ""


def before_fork(master: Arbiter, worker: Any) -> None:  # noqa: ANN401 - gunicorn's Worker
    """Hook pre_fork, in the master. worker.replaces: another one answers until this one has synced."""
    worker.master_end, worker.link = make_link()
    worker.replaces = master.answered


def after_fork(master: Arbiter, worker: Any) -> None:  # noqa: ANN401
    """Hook post_fork, in the worker: a link closes when the master's end does, and that is the master's alone."""
    worker.master_end.close()
    for sibling in master.WORKERS.values():
        sibling.master_end.close()
