"""`readygate <command>`: arguments, then one sub-command, then its exit code. Errors are one line on standard error.

Installed as `kubectl-readygate` too, which makes it `kubectl readygate`.
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
  0    all is well; what that means for each command, `readygate COMMAND --help` tells
  1    something is not, or could not be done
  2    wrong usage, or the file is wrong
  3    nobody can know: no extender answers, none gives kube-scheduler verdicts, or no kubeconfig can be used
  130  Ctrl-C
  143  SIGTERM; those that go on until they are told to end, as --watch, end with 0
"""
PLUGIN = "kubectl-readygate"


def parser(program: str = "readygate") -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog=program,
        description="Which nodes kube-scheduler may use, why not the others, and what that does to pods.",
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
        sys.stdout.reconfigure(errors="replace")  # evidence holds any text, a terminal not
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except CommandError as e:
        return complain(f"readygate {arguments.command}", e, e.code)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # `readygate status | head`: the reader has had enough.
        sys.stderr.close()
        return EXIT_FAILED
    except OSError as e:
        complain("readygate", f"cannot write to standard output: {e.strerror}; give it room", EXIT_FAILED)
        sys.stderr.close()  # or Python complains once more at its end
        return EXIT_FAILED
    finally:
        signal.signal(signal.SIGTERM, before)
    return code


def _open_streams() -> None:
    """Who has closed one (`>&-`) wants the exit code alone; Python has None in its place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as the process lives


def _terminated(number: int, _frame: FrameType | None) -> None:
    """As Ctrl-C does: what was begun is ended on the way out."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
