"""The built-in check `connectionTables`: is there room for new connections and new neighbours?

Full tables break new pods while everything that runs goes on: connection tracking (a packet of a new connection is
dropped) and the neighbours of IPv4 and IPv6, of which there is one table for the host and all its pods. How full a
table is only warns: it may be so for weeks. What fails is that the kernel turns something away, counted a second
between two runs; the way back is a run in which it did not.

`drop` has other causes too, which any pod can bring about, while there is room: two packets of one new connection, or
two connections that were given one port, race each other and one loses (`insert_failed`), or a connection begins anew
where the kernel still has an old one in mind. So it fails only where the table was nearly full (95 %) at one of the two
runs; else what is not a race warns.

Since Linux 5.0 permanent neighbours, as some networks of pods make of each node, do not count for the kernel, and stand
in the number of all. So many neighbours warn only where the kernel has had to make room for one since the boot.

The counters of connection tracking are there where the kernel was built with `NF_CONNTRACK_PROCFS`, which Ubuntu's are
not, and others have it only where somebody asks for it. Without them a full table only warns here. What the kernel
drops then is in its log, by which the check `kernelLog` fails (`conntrackFull`, `neighbourOverflow`).

A table that this kernel does not have (connection tracking not loaded, no IPv6) is left out, and said. Neighbours of
IPv4 are on every host: not to see them is unknown. The kernel shows the neighbours, and the tracked connections of the
host, in the host's network namespace only. A node that is itself a container (kind) has no such namespace: with
`optional`, as in the ready-made lists, a table that cannot be seen is left out there, too.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from agent.checks.kernel_files import (
    NEARLY_FULL_PERCENT,
    CannotLookError,
    NotThereError,
    number_of,
    text_of,
    tracked_connections,
)
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.wire.setting_types import NonEmpty
from component.settings import Section

DOC = (
    "the kernel turns no new connection and no new neighbour away: `drop` of connection tracking, `table_fulls` of the "
    "neighbours, a second; in the host's network namespace"
)
RIGHTS = Rights(host_network=True)
MADE_ROOM = "forced_gc_runs"
HOST_NETWORK = "the host's network namespace (hostNetwork)"

Table = Literal["conntrack", "arp", "ndisc"]
TABLES: tuple[Table, ...] = ("conntrack", "arp", "ndisc")
_FAMILIES = {"arp": "ipv4", "ndisc": "ipv6"}
_Percent = Annotated[int, Meta(ge=1, le=100, description="a whole number, 1 to 100")]
_Rate = Annotated[float, Meta(gt=0, description="a number above 0")]


class Settings(Section, frozen=True):
    """`tables`: those to look at. `optional`: what cannot be seen here is left out."""

    tables: Annotated[tuple[Table, ...], Meta(min_length=1, description="a list of conntrack, arp, ndisc")] = TABLES
    optional: bool = False
    warn_percent: _Percent = 80
    fail_drops_per_second: _Rate = 1.0
    warn_misses_per_second: _Rate = 10.0
    proc: NonEmpty = "/proc"


@dataclass(frozen=True, slots=True)
class Fill:
    """One table. `limit` 0: none, as for the kernel. `refused`: how many it has turned away since the boot; `missed`:
    how many it had to make room for, or lost to another of the same kind; `raced`: of those the latter, which may be
    among the refused as well. `mixed`: what is refused may have another cause than want of room. `exempt`: the kernel
    has never had to make room, so if there are many entries it does not count them. `told`: what is refused is."""

    name: str
    entries: int
    limit: int
    refused: int
    missed: int = 0
    raced: int = 0
    mixed: bool = False
    exempt: bool = False
    told: bool = True

    @property
    def percent(self) -> int:
        return 100 * self.entries // self.limit if self.limit and not self.exempt else 0


@dataclass(frozen=True, slots=True)
class Facts:
    """`unseen`: one line for each table that could not be looked at. `absent`: for each that this kernel lacks."""

    tables: tuple[Fill, ...]
    unseen: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


class Check:
    def __init__(self, settings: Settings, _timeout_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._monotonic = monotonic
        self._before: tuple[Facts, float] | None = None

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED where the kernel turns away, UNKNOWN for a table that is not to be seen."""
        facts, now = look(self._settings), self._monotonic()
        before, seconds = (self._before[0], now - self._before[1]) if self._before else (None, 0.0)
        self._before = facts, now
        return judge(facts, before, seconds, self._settings)


def look(settings: Settings) -> Facts:
    tables: list[Fill] = []
    unseen: list[str] = []
    absent: list[str] = []
    for name in settings.tables:
        try:
            tables.append(_conntrack(settings.proc) if name == "conntrack" else _neighbours(settings.proc, name))
        except CannotLookError as e:
            if isinstance(e, NotThereError) and (settings.optional or not _must_have(name, settings.proc)):
                absent.append(f"{name} left out: {e}")
            else:
                unseen.append(f"{e}; or leave {name} out of `tables`")
    return Facts(tuple(tables), tuple(unseen), tuple(absent))


def _must_have(name: Table, proc: str) -> bool:
    """Whether a host without this table is none of ours to see: we are in a namespace of our own then."""
    return name == "arp" or (name == "ndisc" and Path(proc, "sys/net/ipv6").is_dir())


def judge(facts: Facts, before: Facts | None, seconds: float, settings: Settings) -> Finding:
    """`seconds`: between the two; counters that became smaller were reset, and tell nothing."""
    earlier = {table.name: table for table in before.tables} if before and seconds > 0 else {}
    failing, warning, texts = False, False, list[str]()
    for table in facts.tables:
        past = earlier.get(table.name, table)
        has_room = table.mixed and max(past.percent, table.percent) < NEARLY_FULL_PERCENT
        raced = max(0, table.raced - past.raced) if has_room else 0
        refused_per_s = max(0, table.refused - past.refused - raced) / (seconds or 1.0)
        missed_per_s = max(0, table.missed - past.missed) / (seconds or 1.0)
        percent, many = table.percent, refused_per_s >= settings.fail_drops_per_second
        failing |= many and not has_room
        warning |= many or percent >= settings.warn_percent or missed_per_s >= settings.warn_misses_per_second
        text = f"{table.name} {table.entries}" + (f" of {table.limit}" if table.limit else ", no limit")
        text += f", {percent} % full" if percent >= settings.warn_percent else ""
        text += (
            f", {refused_per_s:.3g}/s {'dropped with room left' if has_room else 'turned away'}"
            if refused_per_s
            else ""
        )
        text += f", {missed_per_s:.3g}/s pushed out or lost" if missed_per_s >= settings.warn_misses_per_second else ""
        text += "" if table.told else ", drop counters are not available"
        texts.append(text)
    if failing:
        return Finding(CheckState.FAILED, "; ".join(texts))
    if facts.unseen:
        return Finding(CheckState.UNKNOWN, "; ".join(facts.unseen))
    passes = Finding(CheckState.WARNED if warning else CheckState.PASSED, "; ".join([*texts, *facts.absent]))
    nothing = CheckState.NOT_APPLICABLE if settings.optional else CheckState.UNKNOWN
    return passes if texts else Finding(nothing, "; ".join(facts.absent))


def _conntrack(proc: str) -> Fill:
    needs = f"connection tracking in the kernel (nf_conntrack), and {HOST_NETWORK}"
    count, limit = tracked_connections(proc, needs)
    try:
        counted = _counters(f"{proc}/net/stat/nf_conntrack", ("drop", "early_drop", "insert_failed"), needs)
    except NotThereError:
        return Fill("conntrack", count, limit, refused=0, mixed=True, told=False)
    return Fill(
        "conntrack",
        count,
        limit,
        refused=sum(counted["drop"]),
        missed=sum(counted["early_drop"]) + sum(counted["insert_failed"]),
        raced=sum(counted["insert_failed"]),
        mixed=True,
    )


def _neighbours(proc: str, name: str) -> Fill:
    path, wanted = f"{proc}/net/stat/{name}_cache", ("entries", "table_fulls")
    counted = _counters(path, wanted, HOST_NETWORK, more=(MADE_ROOM,))
    return Fill(
        name,
        max(counted["entries"], default=0),  # of the whole table, in each line
        number_of(f"{proc}/sys/net/{_FAMILIES[name]}/neigh/default/gc_thresh3", HOST_NETWORK),
        refused=sum(counted["table_fulls"]),
        exempt=MADE_ROOM in counted and not any(counted[MADE_ROOM]),
    )


def _counters(path: str, wanted: Sequence[str], needs: str, more: Sequence[str] = ()) -> dict[str, list[int]]:
    """By the names of the first line: a number for each processor, all in hexadecimal. `more`: where they are there."""
    names, *lines = [line.split() for line in text_of(path, needs).splitlines()] or [[]]
    try:
        places = {name: names.index(name) for name in (*wanted, *(name for name in more if name in names))}
        return {name: [int(line[place], 16) for line in lines] for name, place in places.items()}
    except (ValueError, IndexError) as e:
        raise CannotLookError(f"{path} has no counters of {', '.join(wanted)}: needs another kernel") from e
