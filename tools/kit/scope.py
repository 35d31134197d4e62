"""How much a run proves: the gate (`make test`), or everything (`make test-all`, with READYGATE_WHOLE=1)."""

import os

WHOLE_VARIABLE = "READYGATE_WHOLE"
WHOLE = os.environ.get(WHOLE_VARIABLE) == "1"
"""Whether this run is the whole proof: many drawn examples, a fresh seed, true timeouts."""


def draws(gate: int, whole: int) -> int:
    """Returns how many examples a property test draws: few in the gate, many in the whole proof."""
    return whole if WHOLE else gate
