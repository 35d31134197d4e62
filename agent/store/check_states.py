"""The file in which the states of the checks outlive the agent."""

import contextlib
import hashlib
import logging
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypedDict

from agent.checks.catalogue import CheckSpec
from agent.checks.state import CheckStatus
from agent.processes.proc import boot_id, seconds_since_boot
from agent.processes.rate_limit import RateLimit
from agent.store import check_states_format

log = logging.getLogger(__name__)

WRITES, WRITE_S = 10, 2.0  # so many at once, then one in so many seconds
AGAIN_S = (
    check_states_format.LONGEST_S / 10
)  # where nothing changes: a file tells when the agent was last there, and that has a limit
LIMIT_BYTES = 2**20  # of what is read


class _Moment(TypedDict):
    boot_id: str
    wall: float
    since_boot: float


class StateFile:
    """`restored` reads it once; `save` replaces it where something has changed that counts, and else once in a minute.
    Used by one thread."""

    def __init__(
        self,
        path: Path,
        specs: Sequence[CheckSpec],
        *,
        wall: Callable[[], float] = time.time,
        since_boot: Callable[[], float] = seconds_since_boot,
        monotonic: Callable[[], float] = time.monotonic,
        boot_id: Callable[[], str] = boot_id,
    ) -> None:
        self._path = path
        self.follow(specs)
        self._wall = wall
        self._since_boot = since_boot
        self._monotonic = monotonic
        self._boot_id = boot_id
        self._written: object = None
        self._written_at = -math.inf
        self._failed = False
        self._ration = RateLimit(WRITES, WRITE_S)

    def follow(self, specs: Sequence[CheckSpec]) -> None:
        """The checks that `save` gets from now on."""
        self._keys = {spec.name: hashlib.sha256(spec.key.encode()).hexdigest()[:16] for spec in specs}
        self._severities = {spec.name: spec.severity for spec in specs}
        self._thresholds = {spec.name: spec.thresholds for spec in specs}

    def restored(self) -> dict[str, CheckStatus]:
        """By name; empty where there is nothing to be had."""
        try:
            with self._path.open("rb") as file:
                data = file.read(LIMIT_BYTES)
            found = check_states_format.decode(data, self._keys, self._severities, **self._moment())
        except FileNotFoundError:
            return {}
        except (OSError, check_states_format.StateInvalid) as e:
            log.warning("kept states ignored", extra={"path": str(self._path), "error": str(e)})
            return {}
        log.info("states kept over a restart", extra={"checks": len(found)})
        return found

    def save(self, statuses: Sequence[CheckStatus]) -> None:
        essence, monotonic = check_states_format.essence(statuses, self._thresholds), self._monotonic()
        is_young = monotonic - self._written_at < AGAIN_S
        if (essence == self._written and is_young) or not self._ration.take(monotonic):
            return
        try:
            self._replace(check_states_format.encode(statuses, self._keys, **self._moment()))
        except OSError as e:
            if not self._failed:  # one line, until it works again
                log.warning("states not kept", extra={"path": str(self._path), "error": str(e)})
            self._failed = True
            return
        self._failed, self._written, self._written_at = False, essence, monotonic

    def _moment(self) -> _Moment:
        return {"boot_id": self._boot_id(), "wall": self._wall(), "since_boot": self._since_boot()}

    def _replace(self, data: bytes) -> None:
        """Whole or not at all, for whoever is killed meanwhile. No fsync: a file of another boot is not read."""
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            new.write_bytes(data)
            new.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink()
            raise
