"""`readygate record` writes a recording; `readygate replay` compares two configurations on it."""

import argparse
import logging
import os
import signal
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

import msgspec

from cli.doctor.cluster import CONFIGURATION, NO_CONFIG_MAP, ConfigMap, DaemonSet
from cli.replay import capture, page, recording
from cli.replay.differences import ReplayResult, differences, totals_of
from cli.replay.player import Player
from cli.replay.recording import Head, RecordingError
from cli.shared import configuration, extender_client, terminal
from cli.shared.arguments import Commands, add_api, add_output, command
from cli.shared.errors import CommandError, api_problem
from cli.shared.terminal import View, show_view
from component.command import EXIT_FAILED, EXIT_USAGE, product_version
from component.text import one_line
from extender.settings import Settings
from kube import contract, paths
from kube.errors import CredentialsInvalid, KubeError, NotFound

RECORD_CODES = """  0    recorded, also when stopped by Ctrl-C or SIGTERM
  1    the file could not be written, or the API server sent nothing
  3    no kubeconfig can be used
"""
REPLAY_CODES = """  0    both configurations decide the same for every node at every moment
  1    the decisions differ
"""
FOR_S = 600.0
TURN_S = 0.2
LISTED_WITHIN_S = 30.0


def register(commands: Commands) -> None:
    parser = command(commands, "record", "record what an extender reads, for readygate replay", RECORD_CODES)
    parser.add_argument("file", type=Path, metavar="FILE", help="must not exist yet")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="the extender's configuration; default: read it from the cluster"
    )
    parser.add_argument("--for", dest="seconds", type=_seconds, default=FOR_S, metavar="TIME", help="default: 10m")
    add_api(parser)
    parser.set_defaults(run=run_record)
    parser = command(
        commands,
        "replay",
        "show what another configuration would have decided on a recording",
        REPLAY_CODES,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a recording of readygate record")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the configuration to try")
    parser.add_argument("--against", type=Path, metavar="FILE", help="default: the recorded configuration")
    add_output(parser, watch=False)
    parser.set_defaults(run=run_replay)


def _seconds(text: str) -> float:
    """Parses "90", "90s", "10m" or "2h"."""
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:], 0.0)
    number = text[:-1] if unit else text
    try:
        found = float(number) * (unit or 1.0)
    except ValueError:
        found = -1.0
    if not 0 < found <= 7 * 86400:
        raise argparse.ArgumentTypeError(f"{one_line(text, 40)} is not a duration; write 90s, 10m or 2h, at most 168h")
    return found


# ---- record


def run_record(arguments: argparse.Namespace) -> int:
    """Raises CommandError."""
    client = extender_client.api_client(arguments)
    text: bytes | str = _deployed(arguments) if arguments.config is None else configuration.read(arguments.config)
    settings = configuration.parsed(text, "the extender's configuration")
    try:
        descriptor = os.open(arguments.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as e:
        raise CommandError(f"cannot create {arguments.file}: {e.strerror}; name another file", code=EXIT_USAGE) from e
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    logging.getLogger("kube").addHandler(logging.NullHandler())  # what could not be read is reported at the end
    began = time.monotonic()
    with os.fdopen(descriptor, "wb") as file:
        file.write(recording.written(Head(recording.FORMAT, product_version(), time.time(), _text(text))))
        recorder = capture.Recorder(settings, file, time.time)
        watches = capture.watches(settings, recorder, client)

        def waited() -> bool:
            over.wait(TURN_S)
            passed_s = time.monotonic() - began
            silent = passed_s > LISTED_WITHIN_S and not any(cache.synced for cache in watches.caches.values())
            return over.is_set() or silent or passed_s >= arguments.seconds

        with terminal.progress(f"recording into {arguments.file}"):
            capture.run(watches, recorder, waited)
    silent = sorted(name for name, cache in watches.caches.items() if not cache.synced)
    unread = [name for name in silent if name in watches.required]
    if recorder.fault:
        raise CommandError(f"{arguments.file}: {recorder.fault}", code=EXIT_FAILED)
    if unread:
        raise CommandError(
            f"the API server sent no {', '.join(unread)}, so the recording is useless; check your rights to list and "
            "watch them",
            code=EXIT_FAILED,
        )
    if silent:
        print(
            f"not recorded, because the API server sent none: {', '.join(silent)}; check your rights to list and watch "
            "them",
            file=sys.stderr,
        )
    print(f"{recorder.lines} lines of {time.monotonic() - began:.0f} s in {arguments.file}")
    return 0


def _text(configuration: bytes | str) -> str:
    return configuration if isinstance(configuration, str) else configuration.decode()


def _deployed(arguments: argparse.Namespace) -> str:
    """Reads the configuration of the extender from the cluster. Raises CommandError."""
    remedy = "name a file with --config"
    namespace, api = arguments.readygate_namespace, extender_client.api_client(arguments)
    try:
        path = paths.daemon_set(namespace, contract.NAME_EXTENDER)
        name = msgspec.json.decode(api.get(path), type=DaemonSet).configured_by
        body = api.get(paths.config_map(namespace, name)) if name else b"{}"
        data = msgspec.json.decode(body, type=ConfigMap).data or {}
    except NotFound as e:
        raise CommandError(f"{NO_CONFIG_MAP}; {remedy}", code=EXIT_FAILED) from e
    except (KubeError, CredentialsInvalid) as e:
        problem = api_problem(e, "read the extender's ConfigMap")
        raise CommandError(f"{problem}; or {remedy}", code=EXIT_FAILED) from e
    if CONFIGURATION not in data:
        raise CommandError(f"the extender's ConfigMap has no {CONFIGURATION}; {remedy}", code=EXIT_FAILED)
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
    with terminal.progress("replaying"):
        played = [_played(arguments.file, head, settings) for settings in (before, after)]
    return show_view(view_of(played[0], played[1]), arguments.output)


def _head(path: Path) -> Head:
    try:
        with path.open("rb") as file:
            return recording.head_of(file.readline())
    except OSError as e:
        raise CommandError(f"cannot read {path}: {e.strerror}; name the recording", code=EXIT_USAGE) from e
    except RecordingError as e:
        raise CommandError(f"{path}: {e}", code=EXIT_USAGE) from e


def _played(path: Path, head: Head, settings: Settings) -> ReplayResult:
    try:
        with path.open("rb") as file:
            file.readline()
            return Player(settings, head).play(recording.lines_of(file))
    except OSError as e:
        raise CommandError(f"cannot read {path}: {e.strerror}; name the recording", code=EXIT_USAGE) from e
    except RecordingError as e:
        raise CommandError(f"{path}: {e}", code=EXIT_USAGE) from e


def view_of(before: ReplayResult, after: ReplayResult) -> View:
    found = differences(before, after)
    totals = (totals_of(before), totals_of(after))
    return View(
        code=1 if found else 0,
        page=lambda width: page.render(before, totals, found, width),
        headline=page.headline(before, found),
        key=tuple(found),
        document={
            "seconds": before.ended - before.began,
            "before": asdict(totals[0]),
            "after": asdict(totals[1]),
            "differences": [asdict(one) for one in found],
        },
    )
