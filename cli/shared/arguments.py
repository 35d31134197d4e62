"""Options that several commands share, spelled as kubectl spells them. Pure."""

import argparse
from typing import Protocol

from kube import contract


class Commands(Protocol):
    """What add_subparsers gives; its type has no public name."""

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
    """A sub-command. exit_codes: one a line, as `--help` shows them."""
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[:1].upper()}{summary[1:]}.",
        epilog=f"exit codes:\n{exit_codes}  2    wrong usage, or a wrong file\n  130  Ctrl-C\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_api(parser: argparse.ArgumentParser) -> None:
    """How the API server is found."""
    options = parser.add_argument_group("which cluster")
    options.add_argument("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, else ~/.kube/config")
    options.add_argument("--context", metavar="NAME", help="of the kubeconfig; default: its current one")
    options.add_argument(
        "--readygate-namespace",
        default=contract.NAMESPACE,
        metavar="NAME",
        help="where the extenders run; default: %(default)s",
    )


def add_servers(parser: argparse.ArgumentParser) -> None:
    """How the extenders are found."""
    add_api(parser)
    parser.add_argument(
        "--server",
        action="append",
        default=[],
        metavar="URL",
        help="ask this extender, not those that the API server knows; may be given several times",
    )


def add_output(parser: argparse.ArgumentParser, *, watch: bool = True) -> None:
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: %(default)s")
    parser.set_defaults(watch=False)
    if watch:
        parser.add_argument("-w", "--watch", action="store_true", help="go on, and show what changes")
