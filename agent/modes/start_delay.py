"""Delays an agent's first request to the API server after its host has booted. Pure.

When the power of a cluster returns, all nodes and their agents start together. 5,000 agents would send 10,000 requests
in a second. An agent that starts on a host that has been up sends its first request at once.
"""

YOUNG_S = 600.0  # a node's first agent runs within a minute or two of the boot, later after a long fsck
SPREAD_S = 5.0  # beside a boot a pause that nobody sees; of 5,000 agents in mode pod 2,000 requests a second


def first_pause_s(up_s: float, random: float, *, is_first: bool) -> float:
    """Seconds from the agent's start to its first request. up_s: since the host was booted; random: 0 to 1. is_first:
    none has run before since then, as far as is known: one that is replaced must not be silent for longer than that
    takes, or its node is closed."""
    return SPREAD_S * random if is_first and up_s < YOUNG_S else 0.0
