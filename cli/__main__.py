"""`readygate <command>`: arguments, then one sub-command, then its exit code. Errors are one line on standard error."""

import argparse
import io
import sys
from pathlib import Path

from cli import lint, status
from component.command import EXIT_FAILED, EXIT_INTERRUPTED, complain

EXIT_CODES = """exit codes:
  0    all is well: the file is right, every node is open
  1    a node is closed, or the extender cannot be reached or is not answering with verdicts
  2    wrong usage, or the file is wrong
  130  Ctrl-C
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="readygate",
        description="Which nodes kube-scheduler may use, and why not the others.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    lints = commands.add_parser("lint", help="check a configuration file of the extender")
    lints.add_argument("file", type=Path, metavar="FILE")
    lints.set_defaults(run=lambda arguments: lint.run(arguments.file))

    shows = commands.add_parser("status", help="the verdict on every node, from a running extender")
    shows.add_argument("--server", default=status.DEFAULT_SERVER, metavar="URL", help="default: %(default)s")
    shows.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: %(default)s")
    shows.set_defaults(run=lambda arguments: status.run(arguments.server, arguments.output))
    return top


def main(argv: list[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # evidence holds any text, a terminal not
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
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
    return code


if __name__ == "__main__":
    sys.exit(main())
