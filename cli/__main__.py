"""Runs `readygate COMMAND`: parses the arguments, runs one command, returns its exit code.

An error is one line on standard error. Installed as `kubectl-readygate` too, which makes it `kubectl readygate`.
"""

import argparse
import io
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from cli.dashboard import command as dashboard
from cli.doctor import command as doctor
from cli.history import command as history
from cli.impact import command as impact
from cli.lint import command as lint
from cli.orders import command as orders
from cli.replay import command as replay
from cli.shared.errors import CommandError
from cli.status import command as status
from cli.sweep import command as sweep
from cli.sweep import registration as unregistered
from cli.why import command as why
from component.command import EXIT_FAILED, EXIT_INTERRUPTED, complain, product_version

EXIT_CODES = """exit codes:
  0    success; `readygate COMMAND --help` shows what that means for each command
  1    a problem was found, or the command failed
  2    wrong usage, or an invalid file
  3    unknown: no extender answers, no extender gives kube-scheduler verdicts, or no kubeconfig can be used
  130  Ctrl-C
  143  SIGTERM; commands that run until they are stopped, such as --watch, exit with 0
"""
PLUGIN = "kubectl-readygate"


def parser(program: str = "readygate") -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog=program,
        description="Shows which nodes kube-scheduler may use, why others are closed, and which pods wait for them.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {product_version()}")
    top.set_defaults(program=program)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in (status, why, history, impact, dashboard, orders, doctor, replay, lint, unregistered, sweep):
        module.register(commands)
    return top


def main(argv: list[str] | None = None) -> int:
    _open_streams()
    program = "kubectl readygate" if Path(sys.argv[0]).name == PLUGIN else "readygate"
    arguments = parser(program).parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # evidence may hold characters that the terminal's encoding lacks
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except CommandError as e:
        return complain(f"readygate {arguments.command}", e, e.code)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # `readygate status | head`: the reader has closed the pipe.
        sys.stderr.close()
        return EXIT_FAILED
    except OSError as e:
        complain(
            "readygate",
            f"cannot write to standard output: {e.strerror}; free disk space, or write elsewhere",
            EXIT_FAILED,
        )
        sys.stderr.close()  # else Python reports the error again at exit
        return EXIT_FAILED
    finally:
        signal.signal(signal.SIGTERM, before)
    return code


def _open_streams() -> None:
    """Replaces closed streams. A script that closes one (`>&-`) wants only the exit code, and Python has None there."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as the process lives


def _terminated(number: int, _frame: FrameType | None) -> None:
    """Unwinds the command, as Ctrl-C does, so that it cleans up."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
