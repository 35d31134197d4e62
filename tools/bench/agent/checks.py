"""Mode `pod`: what 20 exec and 10 HTTP checks cost, what 100 HTTP checks a second cost, and how late those start."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tools.bench.agent.peer import Peer, lateness_s
from tools.bench.agent.resources import Held, held, millicores
from tools.bench.arms import WORK
from tools.bench.figures import Figure, quantile
from tools.bench.processes import MeasurementError
from tools.kit.ports import free_port
from tools.kit.programs import Program

WARM_S, SETTLED_S = 15.0, 60.0
QUICK_WARM_S, QUICK_S = 2.0, 3.0
RATE = 100
_SPINS = "import os, time\nend = time.monotonic() + {limit_s}\nwhile time.monotonic() < end: pass"


def measure(progress: Callable[[str], None], *, quick: bool = False) -> list[Figure]:
    """75 seconds."""
    with Peer() as peer:
        checks = [_exec(n, "/bin/true") for n in range(20)] + [_http(n, peer.port) for n in range(10)]
        with running("checks", checks, progress) as agent:
            before, after = _settled(agent, quick=quick)
    return figures_of(before, after)


def measure_rate(progress: Callable[[str], None], *, quick: bool = False) -> list[Figure]:
    """Two minutes: first nothing else runs of ours, then a busy loop a core."""
    with Peer() as peer, running("rate", [_http(n, peer.port) for n in range(RATE)], progress) as agent:
        before, after = _settled(agent, quick=quick)
        peer.times.clear()
        with busy(2 * SETTLED_S):
            progress("rate: beside a busy loop a core")
            time.sleep(QUICK_S if quick else SETTLED_S)
        late = lateness_s({path: list(times) for path, times in peer.times.items()}, 1.0)
    if not late:
        raise MeasurementError("no probe has come")
    own, _ = millicores(before, after)
    return [
        Figure("agent_100_cpu_share", own / 1000, "ratio", "of one core: 100 HTTP checks a second"),
        Figure("agent_100_rss_mib", after.rss_mib, "MiB", f"{after.threads} threads"),
        Figure(
            "agent_start_jitter_p99_ms",
            1000 * quantile(late, 0.99),
            "ms",
            f"{len(late)} starts of the same beside a busy loop a core; p50 {1000 * quantile(late, 0.5):.1f}",
        ),
    ]


def figures_of(before: Held, after: Held) -> list[Figure]:
    own, children = millicores(before, after)
    spent = f"own {own:.1f}, of the commands {children:.1f}"
    held_then = f"{after.threads} threads, {after.descriptors} descriptors; peak {after.peak_mib:.1f}"
    return [
        Figure("agent_20_rss_mib", after.rss_mib, "MiB", held_then),
        Figure("agent_20_cpu_m", own + children, "m", spent),
    ]


@contextmanager
def running(name: str, checks: list[Any], progress: Callable[[str], None]) -> Iterator[Program]:
    """The agent in mode `pod`, healthy."""
    folder: Path = WORK / f"agent-{name}"
    settings = {"mode": "pod", "listen": {"address": "127.0.0.1", "port": free_port()}, "checks": checks}
    agent = Program("agent", settings, folder)
    progress(f"{name}: {len(checks)} checks")
    agent.start()
    try:
        agent.wait_page("/readyz", 200, timeout_s=60)
        yield agent
    finally:
        agent.process.kill()


@contextmanager
def busy(limit_s: float) -> Iterator[None]:
    """A busy loop a core, which ends by itself in any case."""
    with ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            loop = subprocess.Popen([sys.executable, "-c", _SPINS.format(limit_s=limit_s)])
            stack.callback(loop.wait)
            stack.callback(loop.kill)
        yield


def _settled(agent: Program, *, quick: bool) -> tuple[Held, Held]:
    """Before and after a time in which nothing changes."""
    assert agent.process.pid is not None
    time.sleep(QUICK_WARM_S if quick else WARM_S)
    before = held(agent.process.pid)
    time.sleep(QUICK_S if quick else SETTLED_S)
    return before, held(agent.process.pid)


def _exec(number: int, *command: str) -> Any:
    return {"name": f"exec-{number}", "exec": {"command": list(command)}, "periodSeconds": 10, "timeoutSeconds": 10}


def _http(number: int, port: int) -> Any:
    return {
        "name": f"http-{number}",
        "httpGet": {"port": port, "path": f"/{number}"},
        "periodSeconds": 1,
        "timeoutSeconds": 5,
        "failureThreshold": 10,
    }
