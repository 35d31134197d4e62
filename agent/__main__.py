"""`readygate-agent --config FILE`: reads the settings, puts the mode together, runs until SIGTERM.

Exit codes: 0 after SIGTERM or a valid --check, 130 after Ctrl-C, 2 for usage and configuration, 1 for failures at run
time.
"""

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from agent import lifecycle, settings
from agent.explain import SettingsError
from agent.lifecycle import Service, StartFailed
from kube.errors import CredentialsInvalid

log = logging.getLogger("agent")

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class FactsFormatter(logging.Formatter):
    """Time, level and message, then the `extra` facts as key=value."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        facts = " ".join(f"{k}={v!r}" for k, v in vars(record).items() if k not in _STANDARD)
        return super().formatMessage(record) + (f" {facts}" if facts else "")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="readygate-agent", description="Watches the health of one node.")
    parser.add_argument("--config", required=True, metavar="FILE", help="settings, YAML")
    parser.add_argument("--check", action="store_true", help="only validate the settings")
    options = parser.parse_args(arguments)
    signals = Signals()  # early: process 1 of a container loses a signal that comes before its handler
    try:
        loaded = settings.load(options.config)
    except SettingsError as e:
        return _fail(str(e), EXIT_USAGE)
    if options.check:
        print(f"{options.config}: valid, mode {loaded.mode}")
        return 0
    _set_up_logging(loaded.log.level)
    try:
        lifecycle.run(build(loaded), signals.wait)
    except CredentialsInvalid as e:
        return _fail(str(e), EXIT_USAGE)
    except (StartFailed, OSError) as e:
        return _fail(str(e), EXIT_FAILED)
    return EXIT_INTERRUPTED if signals.first == signal.SIGINT else 0


class Signals:
    """SIGTERM and SIGINT through a pipe: a handler must not touch a lock that the code it interrupts may hold."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self.first: int | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._caught)

    def wait(self) -> None:
        os.read(self._reader, 1)

    def _caught(self, number: int, _frame: FrameType | None) -> None:
        if self.first is None:
            self.first = number
            os.write(self._writer, b"!")


def build(loaded: settings.Settings) -> list[Service]:
    """The services of the mode. Imported late: neither mode pays for the other."""
    if loaded.mode == "pod":
        from agent.modes import pod as pod_mode

        return pod_mode.build(loaded)
    from agent.modes import kubelet as kubelet_mode

    return kubelet_mode.build(loaded)


def _set_up_logging(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(FactsFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    threading.excepthook = _log_thread_failure


def _log_thread_failure(failure: threading.ExceptHookArgs) -> None:
    """A thread that dies is told like everything else; /livez shows it."""
    name = failure.thread.name if failure.thread else "?"
    log.error(
        "a thread died",
        extra={"thread": name},
        exc_info=(failure.exc_type, failure.exc_value or failure.exc_type(), failure.exc_traceback),
    )


def _fail(text: str, code: int) -> int:
    print(f"readygate-agent: {' '.join(text.split())}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
