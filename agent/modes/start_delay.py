"""When an agent first asks the API server, if its host has started just now. Pure.

Where the power of a cluster comes back, all its nodes start together, and their agents too. Each asks a few times for
what it has found first, so 5,000 of them would ask 10,000 times in a second. An agent that starts alone, on a host that
has been up, asks at once.
"""

YOUNG_S = 600.0  # a node's first agent runs within a minute or two of the boot, later after a long fsck
SPREAD_S = 5.0  # beside a boot a pause that nobody sees; of 5,000 agents in mode pod 2,000 requests a second


def first_pause_s(up_s: float, random: float, *, is_first: bool) -> float:
    """Seconds from the agent's start to its first request. up_s: since the host was booted; random: 0 to 1. is_first:
    none has run before since then, as far as is known: one that is replaced must not be silent for longer than that
    takes, or its node is closed."""
    return SPREAD_S * random if is_first and up_s < YOUNG_S else 0.0
