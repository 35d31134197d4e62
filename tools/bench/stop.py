"""How long SIGTERM takes when somebody is connected who says nothing, and how long nobody answers after a SIGKILL."""

import http.client
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tools.bench import arms
from tools.bench.asking import ask, node_name
from tools.bench.figures import Figure, spread
from tools.bench.filter_latency import NODES
from tools.bench.processes import MeasurementError
from tools.bench.stub import Stub
from tools.kit.pid import ProcessId
from tools.kit.ports import may_listen

EXIT_LIMIT_S = 30.0
BACK_LIMIT_S = 30.0
LOOK_S = 0.005
NAMES = [node_name(i) for i in range(100)]


@dataclass(frozen=True)
class Killed:
    """Seconds from a SIGKILL. worker_served, master_served: until a verdict, of a caller that tries again and again.
    master_free: until anybody could have the port and no worker is left; the next start follows at once."""

    worker_served_s: float
    master_free_s: float
    master_served_s: float


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """A few starts, kills and stops."""
    stub = Stub(arms.go_binary(progress), nodes=NODES)
    with stub.child:
        took, killed = [], []
        for number in range(2 if quick else 5):
            progress(f"stop: round {number + 1}")
            arm = arms.start_readygate(stub.api)
            with arm.child:
                arms.wait_synced(arm)
                killed.append(kill_both(arm))
                arms.wait_synced(arm)
                took.append(stop_beside_silence(arm))
    return figures(took, killed)


def figures(took: Sequence[float], killed: Sequence[Killed]) -> list[Figure]:
    def worst(name: str, seconds: Sequence[float], how: str) -> Figure:
        return Figure(name, max(seconds), "s", f"worst of {len(seconds)}, {spread(seconds)}; {how}")

    again = f"until a verdict on {len(NAMES)} of {NODES:,} nodes"
    return [
        worst("stop_silent_s", took, "one silent, one kept idle"),
        worst("killed_worker_served_s", [one.worker_served_s for one in killed], again),
        worst(
            "killed_master_free_s", [one.master_free_s for one in killed], "until the port is free and no worker left"
        ),
        worst("killed_master_served_s", [one.master_served_s for one in killed], f"{again}, started again at once"),
    ]


def stop_beside_silence(arm: arms.Arm) -> float:
    """Seconds from SIGTERM to the end of all processes; one connection says nothing, one is idle after an answer."""
    host, _, port = arm.address.partition(":")
    kept = http.client.HTTPConnection(host, int(port), timeout=5)
    with socket.create_connection((host, int(port)), timeout=5):
        kept.request("GET", "/readyz")
        kept.getresponse().read()
        time.sleep(0.2)  # the silent one is seen
        began = time.monotonic()
        arm.child.stop(grace_s=EXIT_LIMIT_S)
        took = time.monotonic() - began
    kept.close()
    return took


def kill_both(arm: arms.Arm) -> Killed:
    """The worker, then the master, which is started again as soon as it can be."""
    expected = ask(arm.url, NAMES)
    worker = _worker(arm)
    began = time.monotonic()
    worker.signal(signal.SIGKILL)
    _wait(lambda: not worker.alive(), "the worker lives")
    _wait(lambda: _answers(arm, expected), "no worker answers")
    worker_served_s = time.monotonic() - began
    worker, port = _worker(arm), int(arm.address.partition(":")[2])
    began = time.monotonic()
    arm.child.kill()
    _wait(lambda: may_listen(port) and not worker.alive(), "the port is held, or the worker lives")
    master_free_s = time.monotonic() - began
    arm.child.start()
    _wait(lambda: _answers(arm, expected), "nobody answers")
    return Killed(worker_served_s, master_free_s, time.monotonic() - began)


def _worker(arm: arms.Arm) -> ProcessId:
    _, *workers = arm.child.pids()
    found = [ProcessId.of(pid) for pid in workers]
    if len(found) != 1 or found[0] is None:
        raise MeasurementError(f"not one worker, but {len(found)}")
    return found[0]


def _answers(arm: arms.Arm, expected: Sequence[str]) -> bool:
    with suppress(MeasurementError):
        return ask(arm.url, NAMES) == list(expected)
    return False


def _wait(condition: Callable[[], bool], otherwise: str) -> None:
    until = time.monotonic() + BACK_LIMIT_S
    while not condition():
        if time.monotonic() > until:
            raise MeasurementError(f"{otherwise} {BACK_LIMIT_S:.0f} s after a SIGKILL")
        time.sleep(LOOK_S)
