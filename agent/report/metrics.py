"""Numbers for Prometheus in its text format: families of samples, and what every mode exports about the process."""

import contextlib
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent.report.server import Page
from agent.wire.histogram import Histogram

METRICS = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: samples are (labels, value), histograms (labels, histogram)."""

    name: str
    kind: str
    help: str
    samples: Iterable[tuple[Mapping[str, str], float]] = ()
    histograms: Iterable[tuple[Mapping[str, str], Histogram]] = ()


def metrics_page(families: Iterable[Family]) -> Page:
    """The families in Prometheus' text format."""
    lines: list[str] = []
    for family in families:
        lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
        lines += [_line(family.name, labels, value) for labels, value in family.samples]
        for labels, histogram in family.histograms:
            lines += [
                _line(family.name + suffix, {**labels, **more}, value) for suffix, more, value in histogram.samples()
            ]
    return Page(200, "\n".join(lines) + "\n", METRICS)


def process_families(version: str, mode: str) -> list[Family]:
    """What every mode exports about the process itself."""
    pages = 0
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/statm") as statm:  # noqa: PTH123
        pages = int(statm.read().split()[1])
    return [
        Family("readygate_build_info", "gauge", "Version and mode.", [({"version": version, "mode": mode}, 1)]),
        Family(
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory.",
            [({}, float(pages * os.sysconf("SC_PAGE_SIZE")))],
        ),
        Family("readygate_threads", "gauge", "Threads alive.", [({}, float(threading.active_count()))]),
    ]


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    number = f"{value:.15g}"  # a counter's last digits are what its rate is made of
    return f"{name}{{{pairs}}} {number}" if pairs else f"{name} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
