"""What a fault is: shell lines that make it on a host, as root, and those that take it back."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """`check`: the kind of check that is to notice. `what`: what breaks, half a sentence. `heal` can be repeated, and
    run where nothing was injected. `settings`: of a check that watches for it on that host."""

    name: str
    check: str
    what: str
    inject: tuple[str, ...]
    heal: tuple[str, ...]
    settings: str = "{}"
