"""How much a run of the tests proves: the gate (`make test`) or all (`make test-all`, READYGATE_WHOLE=1)."""

import os

WHOLE_VARIABLE = "READYGATE_WHOLE"
WHOLE = os.environ.get(WHOLE_VARIABLE) == "1"
"""Whether this run is the whole proof: many drawn examples, a fresh seed, true timeouts."""


def draws(gate: int, whole: int) -> int:
    """The number of examples that a test by chance draws: few in the gate, many in the whole proof."""
    return whole if WHOLE else gate
