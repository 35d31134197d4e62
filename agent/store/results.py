"""The file in which it outlives the agent what probes of containers have found, where containers outlive it too."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from agent.probe.streak import Kept, KeptResults, Streak
from agent.processes.proc import boot_id, seconds_since_boot
from agent.store.atomic_file import AtomicFile
from agent.store.check_states_format import LONGEST_S
from agent.store.checksummed import seal, unseal
from agent.wire.model import ProbeType, Result
from component.loop import Loop

log = logging.getLogger(__name__)

VERSION = 2
SAVE_EVERY_S = 1.0
AGAIN_S = LONGEST_S / 10  # where nothing changes: it tells when the agent was last there
STUCK_AFTER_S = 600.0  # a disk that hangs costs what is kept, nothing else

Row = tuple[str, ProbeType, Result | None, Result, int, bool]
"""Container id, type of the probe, stable result, result and length of the run, whether it rests."""


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    """`since_boot`: when it was written, in seconds."""

    since_boot: float
    rows: list[Row]


class ResultsFile:
    """A Service: writes what `kept` says when it has changed, and else once in a minute. `restored`: what was found
    when it was made, without failures that are too old to end a container."""

    name = "probe results"

    def __init__(
        self,
        path: Path,
        kept: Callable[[], KeptResults],
        *,
        boot: Callable[[], str] = boot_id,
        since_boot: Callable[[], float] = seconds_since_boot,
    ) -> None:
        self._file = AtomicFile(path, "results of probes are")
        self._kept = kept
        self._boot = boot
        self._since_boot = since_boot
        found, age_s = self._file.read(lambda document: decode(document, boot(), since_boot())) or ({}, 0.0)
        self.restored = found if 0.0 <= age_s <= LONGEST_S else without_failures(found)
        if left_out := len(found) - len(self.restored):
            log.warning("failures of probes are too old to count", extra={"age_s": round(age_s), "probes": left_out})
        self._written: KeptResults = dict(self.restored)
        self._written_at = since_boot() - max(0.0, age_s)
        self._loop = Loop("probe-results", self.turn, stuck_after_s=STUCK_AFTER_S, at_end=self._save)
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def turn(self) -> float:
        self._save()
        return SAVE_EVERY_S

    def _save(self) -> None:
        kept, now = dict(self._kept()), self._since_boot()
        if kept == self._written and now - self._written_at < AGAIN_S:
            return
        if self._file.write(encode(kept, self._boot(), now)):
            self._written, self._written_at = kept, now


def without_failures(kept: Mapping[tuple[str, ProbeType], Kept]) -> dict[tuple[str, ProbeType], Kept]:
    """Without what would end a container, or help to: it is to be looked at first."""
    return {(id_, type_): k for (id_, type_), k in kept.items() if type_ is ProbeType.READINESS or not _failed(k)}


def _failed(kept: Kept) -> bool:
    return kept.result is Result.FAILURE or (kept.streak.last is Result.FAILURE and kept.streak.run > 0)


def encode(kept: Mapping[tuple[str, ProbeType], Kept], boot: str, since_boot: float) -> bytes:
    rows = [(id_, type_, k.result, k.streak.last, k.streak.run, k.on_hold) for (id_, type_), k in kept.items()]
    return seal(msgspec.json.encode(_Document(since_boot, rows)), VERSION, boot)


def decode(document: bytes, boot: str, since_boot: float) -> tuple[dict[tuple[str, ProbeType], Kept], float]:
    """With its age in seconds. Nothing of another boot: its containers have all ended. Raises as unseal() does."""
    data, of = unseal(document, VERSION)
    found = msgspec.json.decode(data, type=_Document)
    kept = {
        (id_, type_): Kept(result, Streak(last, max(0, run)), on_hold)
        for id_, type_, result, last, run, on_hold in (found.rows if of == boot else [])
    }
    return kept, since_boot - found.since_boot
