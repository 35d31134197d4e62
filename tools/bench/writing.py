"""What the Nodes' condition costs the one who writes it, in processor time: `python -m tools.bench.writing`.

The thread's own turns, by a clock that jumps; what the API server, the connection and the watch cost is left out.
"""

import sys
import time

from tests.extender.outlets.condition_world import Cluster, Played
from tests.extender.outlets.gate_states import gate, opened

NODES = 5000
HOUR_S = 3600.0


class Server(Cluster):
    """in_s: processor time that writes have taken in it."""

    in_s = 0.0

    def patch(self, path: str, body: bytes, *, content_type: str, deadline_s: float) -> bytes:
        began = time.thread_time()
        try:
            return super().patch(path, body, content_type=content_type, deadline_s=deadline_s)
        finally:
            self.in_s += time.thread_time() - began


class Writer:
    """All nodes open, all written; `spent` is of what came since it was asked last."""

    def __init__(self, nodes: int) -> None:
        self.names = [f"node-{number:05}" for number in range(nodes)]
        self.server = Server(*self.names)
        self.played = Played(self.server, gate("health", **{name: opened() for name in self.names}))
        self.played.pass_s(nodes / 20.0 + 60.0)
        self._spent_s, self._sent = time.thread_time() - self.server.in_s, len(self.server.sent)

    def spent(self) -> tuple[float, int]:
        """Seconds, and writes."""
        spent_s, sent = time.thread_time() - self.server.in_s, len(self.server.sent)
        found = spent_s - self._spent_s, sent - self._sent
        self._spent_s, self._sent = spent_s, sent
        return found

    def quiet(self, seconds: float) -> None:
        """Nothing happens but that what was written is written again."""
        self.played.pass_s(seconds)


def main() -> int:
    writer = Writer(NODES)
    writer.quiet(HOUR_S)
    seconds, writes = writer.spent()
    print(f"{NODES} nodes, an hour without a change: {writes} writes, {seconds / writes * 1e6:.0f} us each")
    print(f"{seconds:.2f} s, {seconds / HOUR_S:.2%} of a processor")
    return 0


if __name__ == "__main__":
    sys.exit(main())
