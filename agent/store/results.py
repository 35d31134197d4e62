"""The file in which it outlives the agent what probes of containers have found, where containers outlive it too."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from agent.model import ProbeType, Result
from agent.probe.streak import Kept, KeptResults, Streak
from agent.processes.proc import boot_id
from agent.store.sealed import seal, unseal
from agent.store.whole import WholeFile
from component.loop import Loop

VERSION = 1
SAVE_EVERY_S = 1.0
STUCK_AFTER_S = 600.0  # a disk that hangs costs what is kept, nothing else

Row = tuple[str, ProbeType, Result | None, Result, int, bool]
"""Container id, type of the probe, stable result, result and length of the run, whether it rests."""


class ResultsFile:
    """A Service: writes what `kept` says when it has changed. `restored`: what was found when it was made."""

    name = "probe results"

    def __init__(self, path: Path, kept: Callable[[], KeptResults], *, boot: Callable[[], str] = boot_id) -> None:
        self._file = WholeFile(path, "results of probes are")
        self._kept = kept
        self._boot = boot
        self.restored = self._file.read(lambda document: decode(document, boot())) or {}
        self._written: KeptResults = dict(self.restored)
        self._loop = Loop("probe-results", self.turn, stuck_after_s=STUCK_AFTER_S, at_end=self._save)
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def turn(self) -> float:
        self._save()
        return SAVE_EVERY_S

    def _save(self) -> None:
        kept = dict(self._kept())
        if kept != self._written and self._file.write(encode(kept, self._boot())):
            self._written = kept


def encode(kept: Mapping[tuple[str, ProbeType], Kept], boot: str) -> bytes:
    rows = [(id_, type_, k.result, k.streak.last, k.streak.run, k.on_hold) for (id_, type_), k in kept.items()]
    return seal(msgspec.json.encode(rows), VERSION, boot)


def decode(document: bytes, boot: str) -> dict[tuple[str, ProbeType], Kept]:
    """Nothing of another boot: its containers have all ended. Raises as unseal() does."""
    data, of = unseal(document, VERSION)
    rows = msgspec.json.decode(data, type=list[Row]) if of == boot else []
    return {
        (id_, type_): Kept(result, Streak(last, max(0, run)), on_hold)
        for id_, type_, result, last, run, on_hold in rows
    }
