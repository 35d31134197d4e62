"""Where the time of one filter call goes: the same call through ever more of the stack, and its parts by themselves."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from tools.bench import arms
from tools.bench.figures import Figure, median
from tools.bench.filter_latency import NODES, Round, run_load
from tools.bench.processes import Measured, MeasurementError
from tools.bench.stub import Stub
from tools.kit.child import ProcessError
from tools.kit.programs import python_environ

NAMES = (420, 812)
PROFILE = arms.WORK / "profile.txt"


def start_floor() -> arms.Arm:
    """The extender's event loop with nothing behind it."""
    child = Measured("floor", [sys.executable, "-m", "tools.bench.rungs"], cwd=arms.WORK, environ=python_environ())
    child.start()
    try:
        return arms.Arm("floor", child, f"http://{child.listening_on()}/filter", decides=False)
    except ProcessError:
        child.stop()
        raise


def in_process(binary: Path, api: arms.Api, configuration: Path, names: int) -> dict[str, Any]:
    """The application's own time, taken in a process without a server."""
    body = arms.WORK / f"body-{names}.json"
    argv = [binary, "body", "-names", str(names), "-nodes", str(NODES)]
    body.write_bytes(subprocess.run(argv, capture_output=True, check=True, timeout=30).stdout)
    argv = [sys.executable, "-m", "tools.bench.in_process", str(api.service_account), configuration, body]
    environ = {**os.environ, **arms.in_pod_environ(api)}
    done = subprocess.run(argv, cwd=arms.ROOT, env=environ, capture_output=True, text=True, check=False, timeout=180)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise MeasurementError(f"in-process measurement: {lines[-1] if lines else f'code {done.returncode}'}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """A breakdown per size of request; the profile of the application goes to build/bench/profile.txt."""
    binary = arms.go_binary(progress)
    stub = Stub(binary, nodes=NODES)
    figures: list[Figure] = []
    with stub.child:
        readygate = arms.start_readygate(stub.api)
        with readygate.child:
            arms.wait_synced(readygate)
            floor = start_floor()
            with floor.child:
                for names in NAMES:
                    progress(f"layers: {names} names")
                    rounds = [
                        run_load(binary, [floor, readygate], names=names, requests=1000, same=False)
                        for _ in range(2 if quick else 5)
                    ]
                    whole = middle([one["readygate"] for one in rounds])
                    server = middle([one["floor"] for one in rounds])
                    found = in_process(binary, stub.api, arms.WORK / "readygate.yaml", names)
                    figures += _figures(names, whole, server, {k: us / 1000 for k, us in found["us"].items()})
                    PROFILE.write_text(found["profile"])
    progress(f"layers: profile of the application in {PROFILE.relative_to(arms.ROOT)}")
    return figures


def middle(rounds: list[Round]) -> Round:
    """Each time by itself as the median of the rounds."""
    return Round(*(median([getattr(one, field.name) for one in rounds]) for field in fields(Round)))


def _figures(names: int, whole: Round, server: Round, parts: dict[str, float]) -> list[Figure]:
    """The ladder: each row is what that layer adds; `rest` is what the sum of the parts leaves unexplained."""
    look_up = parts["decode and look up"] - parts["decode"]
    frame = parts["answer"] - parts["decode"] - look_up - parts["encode"]
    label = f"layer_{names}"
    return [
        Figure(f"{label}_whole_ms", whole.p50, "ms", f"p50 seen by the client; processor time {whole.cpu:.2f}"),
        Figure(
            f"{label}_server_ms",
            server.p50,
            "ms",
            f"client, sockets, parser: an event loop with nothing behind it; processor time {server.cpu:.2f}",
        ),
        Figure(
            f"{label}_frame_ms",
            frame,
            "ms",
            "exemption, staleness, counters, what is remembered",
        ),
        Figure(f"{label}_decode_ms", parts["decode"], "ms", "request bytes to a Pod, and to names as they are spelled"),
        Figure(f"{label}_look_up_ms", look_up, "ms", "one look-up per name, and what of it is noted"),
        Figure(f"{label}_encode_ms", parts["encode"], "ms", "reply to bytes"),
        Figure(
            f"{label}_rest_ms", whole.p50 - server.p50 - parts["answer"], "ms", "the larger reply on its way; noise"
        ),
    ]
