"""What reading HTTP costs: the same verdicts by the same loop behind each parser that could read for it, and behind
gunicorn's own ASGI worker. Others than these are not among the locked packages."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from tools.bench import arms
from tools.bench.asking import ask, node_name
from tools.bench.figures import Figure, median_ratio, spread
from tools.bench.filter_latency import NODES, Round, run_load
from tools.bench.processes import Measured, MeasurementError
from tools.kit.child import ProcessError
from tools.kit.programs import python_environ

SIZES = (100, 812)
FLOOR, SHIPPED = "sliced", "known"
PARSERS = {
    FLOOR: "none: the head is cut at the first empty line and its length believed, as in the prototype",
    SHIPPED: "httptools, and heads that are known by their bytes: what is shipped",
    "httptools": "httptools for each head",
    "gunicorn": "gunicorn's own in Python, for each head",
    "asgi": "the same by gunicorn's ASGI worker, in the place of our loop",
}


def start(name: str) -> arms.Arm:
    argv = [sys.executable, "-m", "tools.bench.parser_rungs", name]
    child = Measured(f"parser-{name}", argv, cwd=arms.WORK, environ=python_environ())
    child.start()
    try:
        url = f"http://{child.listening_on()}/filter"
        child.wait_ready(lambda: _answers(url), timeout_s=arms.SYNC_LIMIT_S)
    except ProcessError:
        child.stop()
        raise
    return arms.Arm(name, child, url)


def _answers(url: str) -> bool:
    try:
        return ask(url, [node_name(0), node_name(1)]) == [node_name(1)]
    except MeasurementError:
        return False


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """Half a minute."""
    binary = arms.go_binary(progress)
    figures: list[Figure] = []
    with ExitStack() as running:
        targets = []
        for name in PARSERS:
            arm = start(name)
            running.enter_context(arm.child)
            targets.append(arm)
        for names in SIZES:
            progress(f"parsers: {names} names")
            requests = 300 if quick else 1000
            rounds = [
                run_load(binary, targets, names=names, requests=requests, nodes=NODES) for _ in range(2 if quick else 5)
            ]
            figures += summarise(names, rounds)
    return figures


def summarise(names: int, rounds: Sequence[Mapping[str, Round]]) -> list[Figure]:
    """Of each to that without a parser, of the same round."""
    floor = [one[FLOOR] for one in rounds]
    figures = []
    for name in PARSERS:
        found = [one[name] for one in rounds]
        for part in ("p50", "cpu"):
            ours, floors = [getattr(one, part) for one in found], [getattr(one, part) for one in floor]
            note = f"{PARSERS[name]}; rounds {spread(ours)} ms, of the first {spread(floors)} ms"
            figures.append(Figure(f"parser_{names}_{name}_{part}_ratio", median_ratio(ours, floors), "ratio", note))
    return figures
