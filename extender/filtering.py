"""Pure: names and reasons -> survivors and refusals. Called at each scheduling attempt: one look-up per name."""

from collections.abc import Mapping, Sequence
from itertools import repeat


def split(names: Sequence[str], reasons: Mapping[str, str], unknown: str) -> tuple[list[str], dict[str, str]]:
    """Survivors in the order asked, each once, and refused name -> reason. reasons: name -> "" (open) or why closed.

    `unknown` is the reason for a name that `reasons` does not hold. Each name is looked up once, so a node that changes
    meanwhile is still in exactly one of the two.
    """
    found = list(map(reasons.get, names, repeat(unknown)))
    if any(found):
        survivors = []
        refused = {}
        for name, reason in zip(names, found, strict=True):
            if reason:
                refused[name] = reason
            else:
                survivors.append(name)
    else:
        survivors, refused = list(names), {}
    if len(set(survivors)) != len(survivors):
        # A name asked twice: the second look-up may have found another verdict, the refusal wins.
        survivors = [name for name in dict.fromkeys(survivors) if name not in refused]
    return survivors, refused
