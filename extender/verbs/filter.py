"""Pure: names and reasons -> survivors and refusals. Called at each scheduling attempt: one look-up per name."""

from collections.abc import Mapping, Sequence
from itertools import repeat


def split(names: Sequence[str], reasons: Mapping[str, str], unknown: str) -> tuple[list[str], dict[str, str]]:
    """Survivors in the order asked, each once, and refused name -> reason. reasons: name -> "" (open) or why closed.

    `unknown` is the reason for a name that `reasons` does not hold. Each name is looked up once, so a node that changes
    meanwhile is still in exactly one of the two.
    """
    if len(set(names)) != len(names):
        names = list(dict.fromkeys(names))
    found = list(map(reasons.get, names, repeat(unknown)))
    if not any(found):
        return list(names), {}
    survivors = []
    refused = {}
    for name, reason in zip(names, found, strict=True):
        if reason:
            refused[name] = reason
        else:
            survivors.append(name)
    return survivors, refused
