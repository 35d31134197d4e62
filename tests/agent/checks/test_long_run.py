"""What the agent holds while virtual hours go by: as many threads and descriptors at their end as before."""

import gc
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from agent import settings
from agent.checks.catalogue import check_spec
from agent.checks.engine import CheckEngine
from agent.model import ProbeType
from agent.prober.manager import ProberManager
from agent.prober.results import Results
from agent.semantics import Semantics
from agent.wire.pod import parse_pod
from tests.bench.agent.peer import Peer
from tests.kit.clock import Clock

PERIOD_S, VIRTUAL_S = 100.0, 10_000.0


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def threads() -> set[threading.Thread]:
    return set(threading.enumerate())


@pytest.fixture
def peer() -> Iterator[Peer]:
    with Peer() as made:
        yield made


def held_over(turn: Callable[[], None], clock: Clock) -> tuple[int, list[str]]:
    """How many descriptors, and which threads, came while 10,000 s went by, after the first 1,000 s."""
    gc.collect()
    for _ in range(10):
        clock.time += PERIOD_S
        turn()
    before, alive = descriptors(), threads()
    while clock.time < VIRTUAL_S:
        clock.time += PERIOD_S
        turn()
    # Fewer, where a thread of a test before has ended in the middle: what leaks here leaks ninety times.
    return max(0, descriptors() - before), [thread.name for thread in threads() - alive]


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param({"exec": {"command": ["true"]}}, id="a command"),
        pytest.param({"exec": {"command": ["/none"]}}, id="a command that is not there"),
        pytest.param({"httpGet": {"path": "/"}}, id="a request"),
        pytest.param({"httpGet": {"port": 1}}, id="a request that is refused"),
        pytest.param({"httpGet": {"host": "localhost"}}, id="a request to a name"),
        pytest.param({"tcpSocket": {}}, id="a connection"),
        pytest.param({"cni": {"confDir": "/none", "binDirs": ["/none"]}}, id="a look at files"),
    ],
)
def test_a_check_holds_no_more_after_hours(kind: dict[str, dict[str, object]], peer: Peer) -> None:
    ((word, keys),) = kind.items()
    if word in ("httpGet", "tcpSocket"):
        keys = {"port": peer.port, **keys}
    check = {"name": "it", word: keys, "periodSeconds": int(PERIOD_S)}
    (read,) = settings.parse(json.dumps({"mode": "pod", "checks": [check]}).encode()).checks
    clock = Clock(0.0)
    engine = CheckEngine([check_spec(read)], wall=clock, monotonic=clock)

    def turn() -> None:
        engine._workers[0]._turn()
        engine._turn()

    assert (0, []) == held_over(turn, clock)
    assert VIRTUAL_S / PERIOD_S == sum(count for _, _, count in engine.runs())


def test_pods_that_come_and_go_leave_no_probe_behind() -> None:
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 1}
    container = {"name": "c", "readinessProbe": probe, "livenessProbe": probe, "startupProbe": probe}
    clock, number = Clock(0.0), iter(range(10**6))
    results = {kind: Results(lambda _update: None) for kind in ProbeType}
    manager = ProberManager(
        get_pod_status=lambda _uid: None,
        probe=lambda *_of: None,
        readiness=results[ProbeType.READINESS],
        liveness=results[ProbeType.LIVENESS],
        startup=results[ProbeType.STARTUP],
        semantics=Semantics(),
        wall=clock,
        monotonic=clock,
        random=lambda: 0.0,
        start_wall=0.0,
    )

    def turn() -> None:
        spec = {"metadata": {"uid": f"u{next(number)}", "name": "p"}, "spec": {"containers": [container]}}
        pod = parse_pod(msgspec.json.encode(spec))
        manager.add_pod(pod)
        workers = list(manager._workers.values())
        assert 3 == len(workers)
        manager.remove_pod(pod)
        for worker in workers:
            worker.join(20)

    assert (0, []) == held_over(turn, clock)
