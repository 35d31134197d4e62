"""`readygate-agent --config FILE`: reads the settings, puts the mode together, runs until SIGTERM. SIGHUP: the file is
read again, as it is when it changes.

With `--once` each check is run once instead, with `--explain CHECK` one is told about.
"""

import argparse
import io
import os
import signal
import sys
import threading
from collections.abc import Sequence

from agent import settings
from agent.modes.signals import Signals
from component import lifecycle, logs
from component.command import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, complain, product_version
from component.lifecycle import Service, StartFailed
from component.settings import SettingsError
from kube.errors import CredentialsInvalid

PROGRAM = "readygate-agent"
EXIT_CODES = """exit codes:
  0    ended by SIGTERM; --check: the settings are valid; --once: the node is healthy
  1    failed at run time; --once: the node is not healthy
  2    wrong usage, or wrong settings
  130  Ctrl-C
  143  --once: ended by SIGTERM before all checks had run
"""
NO_THREAD = "can't start new thread"  # CPython's words


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Watches the health of one node.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {product_version()}")
    parser.add_argument("--config", required=True, metavar="FILE", help="settings, YAML")
    parser.add_argument("--check", action="store_true", help="only validate the settings")
    parser.add_argument("--once", action="store_true", help="run each check once and print what it finds")
    parser.add_argument("--explain", metavar="CHECK", help="print what a check of the settings, or a kind, is about")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="of --once")
    options = parser.parse_args(arguments)
    signals = Signals()  # early: process 1 of a container loses a signal that comes before its handler
    try:
        loaded = settings.load(options.config)
    except SettingsError as e:
        return complain(PROGRAM, e, EXIT_USAGE)
    if options.check:
        return 0 if _write_out(f"{options.config}: valid, mode {loaded.mode}\n") else EXIT_FAILED
    if options.once or options.explain is not None:
        return _shown(loaded, options, signals)
    signals.catch_hangups()
    logs.set_up(loaded.log.level)
    try:
        services = _built(loaded, signals)
        if services is not None:
            _run(services, options.config, loaded, signals)
    except CredentialsInvalid as e:
        return complain(PROGRAM, e, EXIT_USAGE)
    except (StartFailed, OSError) as e:
        return complain(PROGRAM, e, EXIT_FAILED)
    except RuntimeError as e:
        if str(e) != NO_THREAD:
            raise
        return complain(PROGRAM, f"{e}: raise the limit of processes (pids), or configure fewer checks", EXIT_FAILED)
    return EXIT_INTERRUPTED if signals.first == signal.SIGINT else 0


def _run(services: list[Service], path: str, loaded: settings.Settings, signals: Signals) -> None:
    """Until SIGTERM or SIGINT. Raises StartFailed."""
    from agent.modes.reload import Reloader  # late, as the modes

    reloader = Reloader(path, loaded, services)
    services.append(reloader)  # the same list that the mode's /livez looks at

    def wait() -> None:
        while signals.first is None:
            if signals.hung_up:
                signals.hung_up = False
                reloader.request()
            signals.wait()

    lifecycle.run(services, wait)


def _shown(loaded: settings.Settings, options: argparse.Namespace, signals: Signals) -> int:
    """--once and --explain."""
    from agent.modes import once  # late: only people pay for it

    try:
        if options.explain is not None:
            return 0 if _write_out(once.explained(loaded, options.explain)) else EXIT_FAILED
        health, text = once.run_once(
            loaded,
            as_json=options.output == "json",
            given_up=lambda: signals.first is not None,
            waiting=_to_the_terminal if sys.stderr.isatty() else lambda _text: None,
        )
    except SettingsError as e:
        return complain(PROGRAM, e, EXIT_USAGE)
    if signals.first is not None:
        return EXIT_INTERRUPTED if signals.first == signal.SIGINT else 128 + signals.first
    return 0 if _write_out(text) and health.healthy else EXIT_FAILED


def _write_out(text: str) -> bool:
    """To standard output, all of it, now. False where that fails, which a line tells."""
    if sys.stdout is None:  # `>&-`: the exit code alone is wanted
        return True
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # what a check says is any text, a terminal may not have all letters
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as e:
        if not isinstance(e, BrokenPipeError):  # `| head`: the reader has had enough
            complain(PROGRAM, f"cannot write to standard output: {e.strerror}; give it room", EXIT_FAILED)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python tries again at its end, and complains
        return False
    return True


def _to_the_terminal(text: str) -> None:
    """In the place of what it said last; empty: that is gone."""
    sys.stderr.write(f"\r{text}\x1b[K")
    sys.stderr.flush()


def _built(loaded: settings.Settings, signals: Signals) -> list[Service] | None:
    """None where a signal came first: credentials may be waited for, as of a kubeconfig's plugin, for half a minute."""
    made: list[list[Service] | Exception] = []

    def make() -> None:
        try:
            made.append(build(loaded))
        except Exception as e:  # noqa: BLE001 - raised again by who waits
            made.append(e)
        signals.wake()

    threading.Thread(target=make, name="start", daemon=True).start()
    while not made and signals.first is None:
        signals.wait()
    if signals.first is not None:
        return None
    if isinstance(made[0], Exception):
        raise made[0]
    return made[0]


def build(loaded: settings.Settings) -> list[Service]:
    """The services of the mode. Imported late: no mode pays for another."""
    if loaded.mode == "pod":
        from agent.modes import pod as pod_mode

        return pod_mode.build(loaded)
    if loaded.mode == "node":
        from agent.modes import node as node_mode

        return node_mode.build(loaded)
    from agent.modes import kubelet as kubelet_mode

    return kubelet_mode.build(loaded)


if __name__ == "__main__":
    sys.exit(main())
