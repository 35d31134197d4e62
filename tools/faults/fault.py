"""What a fault is: shell lines that make it on a host, as root, and those that take it back."""

import shlex
from dataclasses import dataclass

_LOCK = "/run"  # a folder that every host has, so that nothing is left of a lock


@dataclass(frozen=True, slots=True)
class Fault:
    """`check`: the kind of check that is to notice. `what`: what breaks, half a sentence. `heal` can be repeated, and
    run where nothing was injected. `settings`: of a check that watches for it on that host. `clear`, after that: takes
    away what stands there for the check to find good."""

    name: str
    check: str
    what: str
    inject: tuple[str, ...]
    heal: tuple[str, ...]
    settings: str = "{}"
    clear: tuple[str, ...] = ()


def alone(line: str) -> str:
    """The same, not while another one of these runs on that host: who injects may be gone while its command goes on
    there, and what heals comes after that. Raises nothing; what it leaves running does not hold others up."""
    return f"flock -w 60 -o {_LOCK} sh -c {shlex.quote(line)}"
