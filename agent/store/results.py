"""The file in which it outlives the agent what probes of containers have found, where containers outlive it too."""

import logging
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from agent.model import ProbeType, Result
from agent.probe.streak import Kept, KeptResults, Streak
from agent.processes.proc import boot_id
from agent.store.whole import replace_whole
from agent.store.wire import StateInvalid
from component.loop import Loop

log = logging.getLogger(__name__)

VERSION = 1
LIMIT_BYTES = 16 * 2**20  # of what is read: a hundred times what 250 pods of three probes take
SAVE_EVERY_S = 1.0
STUCK_AFTER_S = 600.0  # a disk that hangs costs what is kept, nothing else

Row = tuple[str, ProbeType, Result | None, Result, int, bool]
"""Container id, type of the probe, stable result, result and length of the run, whether it rests."""


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    """`data`: JSON, a list of Row. `checksum`: its CRC-32, for bits that a disk has lost."""

    version: int
    boot_id: str
    checksum: int
    data: str


class _Version(msgspec.Struct):
    version: int


class ResultsFile:
    """A Service: writes what `kept` says when it has changed. `restored`: what was found when it was made."""

    name = "probe results"

    def __init__(self, path: Path, kept: Callable[[], KeptResults], *, boot: Callable[[], str] = boot_id) -> None:
        self._path = path
        self._kept = kept
        self._boot = boot
        self.restored = self._read()
        self._written: KeptResults = dict(self.restored)
        self._failed = False
        self._loop = Loop("probe-results", self.turn, stuck_after_s=STUCK_AFTER_S, at_end=self._save)
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def turn(self) -> float:
        self._save()
        return SAVE_EVERY_S

    def _read(self) -> dict[tuple[str, ProbeType], Kept]:
        try:
            with self._path.open("rb") as file:
                return decode(file.read(LIMIT_BYTES), self._boot())
        except FileNotFoundError:
            return {}
        except (OSError, StateInvalid) as e:
            log.warning("results of probes are not known", extra={"path": str(self._path), "error": str(e)})
            return {}

    def _save(self) -> None:
        kept = dict(self._kept())
        if kept == self._written:
            return
        try:
            replace_whole(self._path, encode(kept, self._boot()))
        except OSError as e:
            if not self._failed:  # one line, until it works again
                log.warning("results of probes are not kept", extra={"path": str(self._path), "error": str(e)})
            self._failed = True
            return
        self._failed, self._written = False, kept


def encode(kept: Mapping[tuple[str, ProbeType], Kept], boot: str) -> bytes:
    rows = [(id_, type_, k.result, k.streak.last, k.streak.run, k.on_hold) for (id_, type_), k in kept.items()]
    data = msgspec.json.encode(rows)
    return msgspec.json.encode(_Document(VERSION, boot, zlib.crc32(data), data.decode()))


def decode(document: bytes, boot: str) -> dict[tuple[str, ProbeType], Kept]:
    """Nothing of another boot: its containers have all ended. Raises StateInvalid."""
    try:
        if (version := msgspec.json.decode(document, type=_Version).version) != VERSION:
            raise StateInvalid(f"is of version {version}, ours is {VERSION}")
        found = msgspec.json.decode(document, type=_Document)
        data = found.data.encode()
        if zlib.crc32(data) != found.checksum:
            raise StateInvalid("is damaged: its checksum is another")
        rows = msgspec.json.decode(data, type=list[Row]) if found.boot_id == boot else []
        return {
            (id_, type_): Kept(result, Streak(last, max(0, run)), on_hold)
            for id_, type_, result, last, run, on_hold in rows
        }
    except (msgspec.DecodeError, UnicodeError, RecursionError) as e:
        raise StateInvalid(f"does not parse: {e}") from e
