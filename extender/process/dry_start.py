"""A start without clients: checks that this configuration reaches verdicts, on this host with these credentials.

It reads everything that a server reads, writes nothing to the API server and takes no port. So it can run next to a
serving extender, before the new configuration replaces that extender's.
"""

import msgspec

from extender.config.outlets import Events, NodeCondition, Outlets
from extender.config.settings import Feed, Kick, Settings
from extender.policy.reasons import OPEN
from extender.process.foreground import StartError
from extender.process.server import usable
from extender.process.services import Services, build

LIMIT_S = 20.0


def rehearse(settings: Settings, *, limit_s: float = LIMIT_S) -> str:
    """Returns the result in one line. Raises StartError if there is no verdict within limit_s."""
    services = build(_silent(settings), usable(settings).connection)
    services.start()
    try:
        if not services.wait_synced(limit_s):
            missing = [name for name, cache in services.caches.items() if not cache.synced]
            text = f"no verdict within {limit_s:g} s, not read: {', '.join(missing) or 'nothing'}; see the lines above"
            raise StartError(text, usage=False)
        return _told(services)
    finally:
        services.stop()


def _silent(settings: Settings) -> Settings:
    return msgspec.structs.replace(
        settings,
        kick=Kick(enabled=False),
        outlets=Outlets(NodeCondition(enabled=False), Events(enabled=False)),
        feed=Feed(),
    )


def _told(services: Services) -> str:
    reasons = services.board.snapshot.reasons
    closed = sum(reason != OPEN for reason in reasons.values())
    return f"{len(reasons)} nodes, {closed} of them closed"
