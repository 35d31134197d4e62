"""Reloads of the real extender under load: how many calls of a scheduler fail. tools/bench has the large form."""

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.filter_load import PATIENCE_S, FilterLoad
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import children
from tools.kit.waiting import wait_until

NAMES_A_CALL = 420  # of 5,000 nodes, as kube-scheduler's percentageOfNodesToScore leaves
CLOSED_EVERY = 50


@dataclass(frozen=True)
class Reloads:
    """failed: what the callers got instead of right answers. workers_max: processes that lived side by side."""

    reloads: int
    calls: int
    failed: list[str]
    longest_s: float
    seconds: float
    workers_max: int


def reload_under_load(
    folder: Path,
    *,
    reloads: int,
    nodes: int,
    patience_s: float = PATIENCE_S,
    environ: Mapping[str, str] = MappingProxyType({}),
) -> Reloads:
    names = [f"n{number:04d}" for number in range(nodes)]
    closed = set(names[::CLOSED_EVERY])
    with FakeApiServer() as api:
        for name in names:
            api.put(node_json(name, Ready="True"))
            api.put(pod_json(name, Ready="False" if name in closed else "True"))
        asked = names[:NAMES_A_CALL]
        with ExtenderProcess(api, folder, environ=environ) as process:
            process.wait_ready(timeout_s=60)
            expected = [name for name in asked if name not in closed]
            load = FilterLoad(process.port, asked, expected, patience_s=patience_s)
            began = time.monotonic()
            with load:
                workers_max = max(_reload(process) for _ in range(reloads))
            seconds = time.monotonic() - began
            assert process.stop()[0] == 0
    return Reloads(reloads, load.calls, load.failed, load.longest_s, seconds, workers_max)


def _reload(process: ExtenderProcess) -> int:
    """One reload, until the old worker has gone. The most workers that were seen side by side."""
    master, seen = process.process.pid, 0
    (old,) = children(master)
    os.kill(master, signal.SIGHUP)

    def done() -> bool:
        nonlocal seen
        now = children(master)
        seen = max(seen, len(now))
        return old not in now and len(now) == 1

    wait_until(done, lambda: process.log[-2000:], timeout_s=60.0)
    return seen
