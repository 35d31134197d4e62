"""A start that answers nobody: does this configuration lead to verdicts, here and with these credentials?

Everything is read from the API server as it would be to serve, nothing is written there and no port is taken. So it can
run beside an extender that answers, before it is put in that one's place.
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
    """What came of it, in one line. Raises StartError if there was no verdict within limit_s."""
    services = build(_silent(settings), usable(settings).connection)
    services.start()
    try:
        if not services.wait_synced(limit_s):
            missing = [name for name, cache in services.caches.items() if not cache.synced]
            text = (
                f"no verdict within {limit_s:g} s, not read: {', '.join(missing) or 'nothing'}; the lines above say why"
            )
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
