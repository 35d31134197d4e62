"""`python -m tools.differential.judge TARGET`: the agent that is imported here, beside answers that are known already.

A batch of histories a line in (as `batch_line` writes it), the number of the first that differs out, or -1 for none.
"""

import sys
from collections.abc import Mapping, Sequence

import msgspec

from tools.differential.compare import agents_answer, quiet, semantics_of
from tools.differential.target import Answers, History, Target
from tools.differential.targets import TARGETS

NONE = -1


class Batch(msgspec.Struct):
    """Histories with the kubelet's answers to them."""

    gates: dict[str, bool]
    histories: list[History]
    kubelet: list[Answers]


def batch_line(gates: Mapping[str, bool], histories: Sequence[History], kubelet: Sequence[Answers]) -> bytes:
    return msgspec.json.encode(Batch(dict(gates), list(histories), list(kubelet))) + b"\n"


def first_difference(target: Target, batch: Batch) -> int:
    """The number of the first history that the agent answers otherwise; NONE. Those behind it are not asked for."""
    semantics = semantics_of(batch.gates)
    with quiet():
        for number, (history, upstream) in enumerate(zip(batch.histories, batch.kubelet, strict=True)):
            if target.told(agents_answer(target, history, semantics)) != target.told(upstream):
                return number
    return NONE


def main() -> int:
    target = next(t for t in TARGETS if t.name == sys.argv[1])
    decoder = msgspec.json.Decoder(Batch)
    for line in sys.stdin.buffer:
        print(first_difference(target, decoder.decode(line)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
