"""python -m tools.bench: measures, prints a table, saves build/bench.json. Loopback only; bounded in count and time."""

from collections.abc import Callable

from tools.bench import (
    cold_start,
    filter_latency,
    gates,
    growth,
    kick,
    layers,
    outage,
    parsers,
    peak_memory,
    rate,
    reload,
    scheduler_rate,
    stalled,
    status,
    status_api,
    stop,
    updates,
)
from tools.bench.arms import ROOT
from tools.bench.command import run
from tools.bench.figures import Figure

SUITES: dict[str, Callable[..., list[Figure]]] = {
    "filter": filter_latency.measure,
    "gates": gates.measure,
    "layers": layers.measure,
    "parsers": parsers.measure,
    "updates": updates.measure,
    "cold-start": cold_start.measure,
    "growth": growth.measure,
    "stalled": stalled.measure,
    "status-api": status_api.measure,
    "rate": rate.measure,
    "stop": stop.measure,
    "reload": reload.measure,
    "peak-memory": peak_memory.measure,
    "kick": kick.measure,
    "outage": outage.measure,
    "status": status.measure,
    "scheduler": scheduler_rate.measure,
}

if __name__ == "__main__":
    run("tools.bench", SUITES, ROOT / "build" / "bench.json", __doc__)
