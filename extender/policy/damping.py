"""Pure: how long a node that keeps failing must be healthy before it opens again."""

from dataclasses import dataclass

DOUBLINGS_MAX = 30


@dataclass(frozen=True, slots=True)
class Damping:
    """The rule of damping.

    A node opens at once after its first closure within window_s. After the second one it must have been healthy for
    min_healthy_s, after each further one for twice as long, and at most for ceiling_s.
    """

    min_healthy_s: float = 10.0
    ceiling_s: float = 300.0
    window_s: float = 3600.0

    def healthy_s(self, closures: tuple[float, ...], monotonic: float) -> float:
        """Returns how long a node must stay healthy that became healthy now and was closed at those times."""
        closed = sum(at > monotonic - self.window_s for at in closures)
        if closed < 2:
            return 0.0
        return min(self.ceiling_s, self.min_healthy_s * 2.0 ** min(closed - 2, DOUBLINGS_MAX))

    def closed(self, closures: tuple[float, ...], monotonic: float) -> tuple[float, ...]:
        """Returns the closures to remember after one more; bounded."""
        kept = [at for at in closures if at > monotonic - self.window_s]
        return (*kept, monotonic)[-(DOUBLINGS_MAX + 2) :]
