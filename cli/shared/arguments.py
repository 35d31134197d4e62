"""Options that several commands share. Names follow kubectl. Pure."""

import argparse
from typing import Protocol

from kube import contract


class Commands(Protocol):
    """The result of add_subparsers, whose type has no public name."""

    def add_parser(
        self,
        name: str,
        *,
        help: str,  # noqa: A002
        description: str,
        epilog: str,
        formatter_class: type[argparse.HelpFormatter],
    ) -> argparse.ArgumentParser: ...


def command(commands: Commands, name: str, summary: str, exit_codes: str) -> argparse.ArgumentParser:
    """Adds a sub-command. exit_codes: one per line, as `--help` shows them."""
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[:1].upper()}{summary[1:]}.",
        epilog=f"exit codes:\n{exit_codes}  2    wrong usage, or an invalid file\n  130  Ctrl-C\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_api(parser: argparse.ArgumentParser) -> None:
    """Adds the options that select the cluster."""
    options = parser.add_argument_group("cluster")
    options.add_argument("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, else ~/.kube/config")
    options.add_argument("--context", metavar="NAME", help="context of the kubeconfig; default: the current context")
    options.add_argument(
        "--readygate-namespace",
        default=contract.NAMESPACE,
        metavar="NAME",
        help="namespace of the extenders; default: %(default)s",
    )


def add_servers(parser: argparse.ArgumentParser) -> None:
    """Adds the options that select the cluster and the extenders."""
    add_api(parser)
    parser.add_argument(
        "--server",
        action="append",
        default=[],
        metavar="URL",
        help="query this extender instead of those that the API server lists; may be given several times",
    )


def add_output(parser: argparse.ArgumentParser, *, watch: bool = True) -> None:
    """Adds -o, and -w unless `watch` is False."""
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: %(default)s")
    parser.set_defaults(watch=False)
    if watch:
        parser.add_argument("-w", "--watch", action="store_true", help="keep running, and show changes")
