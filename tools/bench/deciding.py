"""What decisions cost, in processor time: `python -m tools.bench.deciding`. Pure, no process and no socket."""

import gc
import statistics
import sys
import time
from collections.abc import Sequence

from extender.policy.caps import Caps, Limit
from extender.policy.damping import Damping
from extender.policy.decide import decide
from extender.policy.evidence import Surroundings
from extender.policy.gates import Gate
from extender.policy.memory import DecisionMemory
from extender.policy.storm import StormRule
from tests.extender.policy.cluster import Cluster

NODES = 5000
THIRTY = Limit(percent=30)


def cluster(gates: int, nodes: int) -> Cluster:
    """All good; by the brakes of the defaults."""
    made = Cluster(
        *(Gate(f"g{number}", damping=Damping(), cap=THIRTY) for number in range(gates)),
        caps=Caps(cluster=THIRTY, leave_in_pool=1),
        storm=StormRule(),
    )
    made.add(*(f"node-{number:05}" for number in range(nodes)))
    return made.after_the_start()


def anew_ms(world: Cluster, *, first: bool, times: int = 5) -> list[float]:
    """On all nodes at once. first: by a process that starts; otherwise because an order came."""
    evidence = {name: world.evidence(name) for name in world.nodes}
    took = []
    for number in range(times):
        previous = DecisionMemory() if first else world.previous
        around = Surroundings({f"nobody{number}": None})
        began = time.thread_time()
        decide(world.rules, previous, evidence, around, monotonic=world.monotonic, wall=world.wall)
        took.append((time.thread_time() - began) * 1e3)
    return took


def event_us(world: Cluster, events: int = 200) -> list[float]:
    """One health pod that turns bad, and good again, by turns."""
    took = []
    for number in range(events):
        name = f"node-{number // 2 % len(world.nodes):05}"
        (world.good if number % 2 else world.bad)(name, gate="g0")
        world.monotonic += 100.0
        evidence = {name: world.evidence(name)}
        began = time.thread_time()
        decided = decide(
            world.rules, world.previous, evidence, world.surroundings, monotonic=world.monotonic, wall=world.wall
        )
        took.append((time.thread_time() - began) * 1e6)
        world.board.swap(decided.snapshot)
        world.previous.keep(decided)
        world.changed = {}
    return took


def _line(what: str, took: Sequence[float], unit: str) -> str:
    return f"{what:<44} least {min(took):8.1f} {unit}   median {statistics.median(took):8.1f} {unit}"


def main() -> int:
    for gates in (1, 5):
        world = cluster(gates, NODES)
        gc.collect()
        gc.freeze()
        said = f"{NODES} nodes, {gates} gate{'s' if gates > 1 else ''}"
        print(_line(f"{said}: all anew, at the start", anew_ms(world, first=True), "ms"))
        print(_line(f"{said}: all anew, later", anew_ms(world, first=False), "ms"))
        events = event_us(world, 2000)
        print(_line(f"{said}: one turns bad", events[0::2], "us"))
        print(_line(f"{said}: one heals", events[1::2], "us"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
