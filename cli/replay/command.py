"""`readygate record` and `readygate replay`: arguments, page, exit codes."""

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from cli import configuration, reach, screen
from cli.arguments import Commands, add_api, add_output, command
from cli.errors import CommandError, api_problem
from cli.layout import EMPTY, Column, Page, Span, Style, count, line, span, table, wrapped
from cli.replay import record, tape
from cli.replay.differences import Difference, Played, Sums, differences, sums
from cli.replay.player import Player
from cli.replay.tape import Head, TapeError
from cli.screen import View, show_view
from component.command import EXIT_FAILED, EXIT_USAGE, product_version
from component.text import one_line
from extender.config.settings import Settings
from kube import contract, paths
from kube.errors import CredentialsInvalid, KubeError, NotFound

RECORD_CODES = """  0    recorded, also when stopped by Ctrl-C or SIGTERM
  1    it could not be written, or the API server gave nothing
  3    there is no kubeconfig that can be used
"""
REPLAY_CODES = """  0    both configurations say the same of every node at every moment
  1    they differ
"""
SHOWN_MOST = 50
FOR_S = 600.0
TURN_S = 0.2
LISTED_WITHIN_S = 30.0


def register(commands: Commands) -> None:
    parser = command(commands, "record", "write down what an extender sees, for readygate replay", RECORD_CODES)
    parser.add_argument("file", type=Path, metavar="FILE", help="must not exist yet")
    parser.add_argument("--config", type=Path, metavar="FILE", help="of the extender; default: that of the cluster")
    parser.add_argument("--for", dest="seconds", type=_seconds, default=FOR_S, metavar="TIME", help="default: 10m")
    add_api(parser)
    parser.set_defaults(run=run_record)
    parser = command(
        commands,
        "replay",
        "what another configuration would have made of a recording, and where it differs",
        REPLAY_CODES,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="of readygate record")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the configuration to try")
    parser.add_argument("--against", type=Path, metavar="FILE", help="default: the one that was recorded with")
    add_output(parser, watch=False)
    parser.set_defaults(run=run_replay)


def _seconds(text: str) -> float:
    """ "90", "90s", "10m", "2h"."""
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:], 0.0)
    number = text[:-1] if unit else text
    try:
        found = float(number) * (unit or 1.0)
    except ValueError:
        found = -1.0
    if not 0 < found <= 7 * 86400:
        raise argparse.ArgumentTypeError(f"{one_line(text, 40)} is no time, allowed: as 90s, 10m, 2h, up to 168h")
    return found


# ---- record


def run_record(arguments: argparse.Namespace) -> int:
    """Raises CommandError."""
    client = reach.api_client(arguments)
    text: bytes | str = _deployed(arguments) if arguments.config is None else configuration.read(arguments.config)
    settings = configuration.parsed(text, "the extender's configuration")
    try:
        descriptor = os.open(arguments.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as e:
        raise CommandError(f"cannot make {arguments.file}: {e.strerror}; name another file", code=EXIT_USAGE) from e
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    logging.getLogger("kube").addHandler(logging.NullHandler())  # what could not be read is said at the end
    began = time.monotonic()
    with os.fdopen(descriptor, "wb") as file:
        file.write(tape.written(Head(tape.FORMAT, product_version(), time.time(), _text(text))))
        recorder = record.Recorder(settings, file, time.time)
        watches = record.watches(settings, recorder, client)

        def waited() -> bool:
            over.wait(TURN_S)
            passed_s = time.monotonic() - began
            silent = passed_s > LISTED_WITHIN_S and not any(cache.synced for cache in watches.caches.values())
            return over.is_set() or silent or passed_s >= arguments.seconds

        with screen.progress(f"recording into {arguments.file}"):
            record.run(watches, recorder, waited)
    silent = sorted(name for name, cache in watches.caches.items() if not cache.synced)
    unread = [name for name in silent if name in watches.required]
    if recorder.fault:
        raise CommandError(f"{arguments.file}: {recorder.fault}", code=EXIT_FAILED)
    if unread:
        raise CommandError(
            f"the API server gave no {', '.join(unread)}: may you list and watch them? The recording is of no use",
            code=EXIT_FAILED,
        )
    if silent:
        print(
            f"not recorded, for the API server gave none: {', '.join(silent)}; may you list and watch them?",
            file=sys.stderr,
        )
    print(f"{recorder.lines} lines of {time.monotonic() - began:.0f} s in {arguments.file}")
    return 0


def _text(configuration: bytes | str) -> str:
    return configuration if isinstance(configuration, str) else configuration.decode()


def _deployed(arguments: argparse.Namespace) -> str:
    """The configuration of the extender that runs in the cluster."""
    import msgspec

    from cli.doctor.cluster import CONFIGURATION, NO_CONFIG_MAP, ConfigMapTold, DaemonSetTold

    remedy = "name a file with --config"
    namespace, api = arguments.readygate_namespace, reach.api_client(arguments)
    try:
        path = paths.daemon_set(namespace, contract.NAME_EXTENDER)
        name = msgspec.json.decode(api.get(path), type=DaemonSetTold).configured_by
        told = api.get(paths.config_map(namespace, name)) if name else b"{}"
        data = msgspec.json.decode(told, type=ConfigMapTold).data or {}
    except NotFound as e:
        raise CommandError(f"{NO_CONFIG_MAP}; {remedy}", code=EXIT_FAILED) from e
    except (KubeError, CredentialsInvalid) as e:
        problem = api_problem(e, "read the extender's ConfigMap")
        raise CommandError(f"{problem}; or {remedy}", code=EXIT_FAILED) from e
    if CONFIGURATION not in data:
        raise CommandError(f"the extender's ConfigMap holds no {CONFIGURATION}; {remedy}", code=EXIT_FAILED)
    return data[CONFIGURATION]


# ---- replay


def run_replay(arguments: argparse.Namespace) -> int:
    """Raises CommandError."""
    head = _head(arguments.file)
    if arguments.against is None:
        before = configuration.parsed(head.configuration, "the recorded configuration")
    else:
        before = configuration.settings_of(arguments.against)
    after = configuration.settings_of(arguments.config)
    with screen.progress("replaying"):
        played = [_played(arguments.file, head, settings) for settings in (before, after)]
    return show_view(view_of(played[0], played[1]), arguments.output)


def _head(path: Path) -> Head:
    try:
        with path.open("rb") as file:
            return tape.head_of(file.readline())
    except OSError as e:
        raise CommandError(f"cannot read {path}: {e.strerror}; is that the recording?", code=EXIT_USAGE) from e
    except TapeError as e:
        raise CommandError(f"{path}: {e}", code=EXIT_USAGE) from e


def _played(path: Path, head: Head, settings: Settings) -> Played:
    try:
        with path.open("rb") as file:
            file.readline()
            return Player(settings, head).play(tape.lines_of(file))
    except OSError as e:
        raise CommandError(f"cannot read {path}: {e.strerror}; is that the recording?", code=EXIT_USAGE) from e
    except TapeError as e:
        raise CommandError(f"{path}: {e}", code=EXIT_USAGE) from e


def view_of(before: Played, after: Played) -> View:
    found = differences(before, after)
    totals = (sums(before), sums(after))
    return View(
        code=1 if found else 0,
        page=lambda width: page(before, totals, found, width),
        headline=headline(before, found),
        key=tuple(found),
        document={
            "seconds": before.ended - before.began,
            "before": asdict(totals[0]),
            "after": asdict(totals[1]),
            "differences": [asdict(one) for one in found],
        },
    )


def headline(played: Played, found: Sequence[Difference]) -> str:
    """The answer in one line."""
    lasted = f"{played.ended - played.began:.0f} s of recording"
    if not found:
        return f"Nothing differs in {lasted}."
    nodes = len({one.node for one in found})
    return f"{count(len(found), 'difference')} at {count(nodes, 'node')} in {lasted}."


def page(played: Played, totals: tuple[Sums, Sums], found: Sequence[Difference], width: int) -> Page:
    told = wrapped(line(headline(played, found)), width)
    told.append(EMPTY)
    columns = [
        Column(""),
        Column("CLOSURES", right=True),
        Column("MOST AT ONCE", right=True),
        Column("CLOSED FOR", right=True),
        Column("HELD"),
    ]
    told += table(columns, [_sums_row("before", totals[0]), _sums_row("after", totals[1])], width)
    if not found:
        return told
    told.append(EMPTY)
    columns = [
        Column("AT (UTC)"),
        Column("FOR"),
        Column("NODE"),
        Column("GATE"),
        Column("BEFORE", True, "before"),
        Column("AFTER", True, "after"),
    ]
    days = _day(played.began) != _day(played.ended)
    told += table(columns, [_row(one, days=days) for one in found[:SHOWN_MOST]], width)
    if len(found) > SHOWN_MOST:
        told.append(line(span(f"... and {len(found) - SHOWN_MOST} more; -o json has all", Style.FAINT)))
    return told


def _sums_row(name: str, total: Sums) -> list[Span]:
    held = ", ".join(f"{number} by {who}" for who, number in total.held.items()) or "none"
    return [span(name), span(total.closures), span(total.most_closed), span(f"{total.closed_s:.0f} s"), span(held)]


def _day(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).strftime("%d %b")


def _row(one: Difference, *, days: bool) -> list[Span]:
    """days: whether the recording is of several."""
    lasted = "the rest" if one.until is None else f"{one.until - one.at:.0f} s"
    at = datetime.fromtimestamp(one.at, UTC).strftime("%H:%M:%S")
    return [
        span(f"{_day(one.at)} {at}" if days else at),
        span(lasted),
        span(one.node),
        span(one.gate),
        span(_said(one.before, one)),
        span(_said(one.after, one)),
    ]


def _said(reason: str | None, one: Difference) -> str:
    if reason is None:
        return "no such gate"
    if reason:
        return f"closed: {reason}"
    return f"open ({one.held_by}{': ' + one.note if one.note else ''})" if one.held_by else "open"
