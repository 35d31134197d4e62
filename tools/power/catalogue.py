"""The catalogue of faults: those of Python chosen from all that the mutator can make, and those written by hand.

The choice is stable: a fault's rank is the hash of its id, so a change of the code changes few of the chosen. Of each
part it takes the first ranks, with at most one fault of a function and a bounded share of each file and operator.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from functools import cache

from tools.power.by_hand import ByHand
from tools.power.by_hand_chart import CHART
from tools.power.by_hand_image import IMAGE
from tools.power.by_hand_playbooks import PLAYBOOKS
from tools.power.by_hand_policies import POLICIES
from tools.power.by_hand_units import UNITS
from tools.power.copied import Copy
from tools.power.equivalent import EQUIVALENT
from tools.power.fault import Fault, FaultError
from tools.power.mutator import Mutation, Mutator

SEED = 29
PYTHON_PARTS = {
    "policy": ("extender/policy/", 36),
    "verbs": ("extender/verbs/", 12),
    "serve": ("extender/serve/", 26),
    "agent": ("agent/", 56),
    "kube": ("kube/", 16),
    "cli": ("cli/", 16),
}
"""Part -> prefix of its files, number of faults."""
_GENERATED = ("api_pb2.py",)
_OPERATOR_SHARE, _FILE_SHARE, _ROOM_SHARE = 6, 8, 6
HANDS: tuple[ByHand, ...] = (*PLAYBOOKS, *CHART, *UNITS, *POLICIES, *IMAGE)


def rank(identity: str, seed: int = SEED) -> str:
    return hashlib.sha256(f"{seed}:{identity}".encode()).hexdigest()


def half(fault: Fault) -> int:
    """1: the gate is chosen by these faults. 2: it is reported by these."""
    return 1 + int(hashlib.sha256(f"half:{fault.id}".encode()).hexdigest(), 16) % 2


def chosen(mutations: Iterable[Mutation], count: int, resolve: "Resolve") -> list[Fault]:
    """The first `count` by rank that are faults, with bounded shares."""
    operators: Counter[str] = Counter()
    files: Counter[str] = Counter()
    rooms: Counter[str] = Counter()
    functions: set[tuple[str, str]] = set()
    found: list[Fault] = []
    for mutation in sorted(mutations, key=lambda mutation: rank(mutation.id)):
        if len(found) == count:
            break
        room = mutation.file.rpartition("/")[0]
        rooms_bound = max(2, count // _ROOM_SHARE) if room.count("/") and mutation.part == "agent" else count
        if (
            mutation.id in EQUIVALENT
            or (mutation.file, mutation.function) in functions
            or operators[mutation.edit.operator] >= max(2, count // _OPERATOR_SHARE)
            or files[mutation.file] >= max(2, count // _FILE_SHARE)
            or rooms[room] >= rooms_bound
        ):
            continue
        if (fault := resolve(mutation)) is not None:
            found.append(fault)
            operators[mutation.edit.operator] += 1
            files[mutation.file] += 1
            rooms[room] += 1
            functions.add((mutation.file, mutation.function))
    return found


class Resolve:
    """Makes faults of mutations; a file is parsed once."""

    def __init__(self, copy: Copy) -> None:
        self.mutator = cache(lambda part, file: Mutator(part, file, copy.read(file)))

    def __call__(self, mutation: Mutation) -> Fault | None:
        return self.mutator(mutation.part, mutation.file).fault(mutation)


def of_python(copy: Copy, parts: Iterable[str]) -> list[Fault]:
    resolve = Resolve(copy)
    found: list[Fault] = []
    for part in parts:
        prefix, count = PYTHON_PARTS[part]
        files = [name for name in copy.files(prefix) if name.endswith(".py") and not name.endswith(_GENERATED)]
        mutations = [mutation for file in files for mutation in resolve.mutator(part, file).places()]
        found += chosen(mutations, count, resolve)
    return found


def of_hands(copy: Copy, rows: Iterable[ByHand] = HANDS) -> list[Fault]:
    """Raises FaultError if the text that a fault changes is not in its file exactly once."""
    return [_of_hand(copy, row) for row in rows]


def _of_hand(copy: Copy, row: ByHand) -> Fault:
    try:
        text = copy.read(row.file)
    except OSError as e:
        raise FaultError(f"{row.file}, which a fault changes, cannot be read: {e.strerror}") from e
    if (count := text.count(row.old)) != 1:
        raise FaultError(f"{row.file} holds {row.old!r} {count} times, not once: change the fault's row in tools/power")
    key = hashlib.sha256(f"{row.old}\0{row.new}".encode()).hexdigest()[:8]
    identity = f"{row.file}:{row.part}:by hand:{key}"
    start = text.index(row.old)
    return Fault(identity, row.part, row.file, start, row.old, row.new, row.what, (), row.tests, row.regenerate)


def catalogue(copy: Copy, only: Iterable[str] = ()) -> list[Fault]:
    """All faults, or those of some parts."""
    wanted = set(only)
    python = [part for part in PYTHON_PARTS if not wanted or part in wanted]
    hands = [row for row in HANDS if not wanted or row.part in wanted]
    return [*of_python(copy, python), *of_hands(copy, hands)]


def parts() -> list[str]:
    return [*PYTHON_PARTS, *dict.fromkeys(row.part for row in HANDS)]
