"""The rows of docs/kubelet-parity.md as histories: played to agent and kubelet before those by chance, under all gates.

A case is a sentence, with the rows that it plays, and a history. What the kubelet answers is kept in `answers/`,
written by `python -m tools.differential --record`, so `make test-fast` replays them without Go.

    prober      workers, results and manager
    containers  phases, and what happens as events
    nodes       renewals of a Lease, when a node is under pressure, which pods it takes
    answering   commands, ports, and answers byte by byte
"""

from pathlib import Path
from typing import Any

import msgspec

from tools.differential.fixed import answering, containers, nodes, prober
from tools.differential.target import Answers, History

CASES: dict[str, dict[str, History]] = {
    "prober": prober.CASES,
    "status": containers.STATUS,
    "pleg": containers.PLEG,
    "eviction": nodes.EVICTION,
    "intake": nodes.INTAKE,
    "lease": nodes.LEASE,
    "handlers": answering.HANDLERS,
    "grpc": answering.GRPC,
    "http": answering.HTTP,
}
ANSWERS = Path(__file__).parent / "answers"


def read_answers(target: str) -> dict[str, Answers]:
    """What the kubelet says to each case of a target, by its sentence, with its gates at their defaults."""
    found: dict[str, Any] = msgspec.json.decode((ANSWERS / f"{target}.json").read_bytes())
    return found


def write_answers(target: str, answers: dict[str, Answers]) -> None:
    ANSWERS.mkdir(exist_ok=True)
    lines = ",\n".join(
        f"{msgspec.json.encode(why).decode()}: {msgspec.json.encode(answer).decode()}"
        for why, answer in answers.items()
    )
    (ANSWERS / f"{target}.json").write_text(f"{{\n{lines}\n}}\n")
