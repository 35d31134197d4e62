"""python -m tests.bench.in_process FOLDER CONFIG BODY: what one filter call costs inside the application, no server.

FOLDER: the service account, as in `as_pod`. Prints one JSON object: microseconds (medians) of the whole answer and of
its parts each by itself, and the functions where a profiler saw the time go. One thread asks: nothing waits.
"""

import cProfile
import io
import json
import pstats
import sys
import time
from collections.abc import Callable
from pathlib import Path

from extender import settings
from extender.counts import RequestResult
from extender.policy.snapshot import sort_out
from extender.services import build
from extender.verbs import wire
from extender.verbs.dispatch import answer_filter
from kube.auth import in_cluster
from tests.bench.figures import median

CALLS = 1500
SHOWN = 40


def typical_us(do: Callable[[], object]) -> float:
    """Median of CALLS calls."""
    took = []
    for _ in range(CALLS):
        started = time.perf_counter()
        do()
        took.append((time.perf_counter() - started) * 1e6)
    return median(took)


def main() -> int:
    configuration, body = settings.load(Path(sys.argv[2])), Path(sys.argv[3]).read_bytes()
    services = build(configuration, in_cluster(Path(sys.argv[1])))
    services.start()
    try:
        if not services.wait_synced(60.0):
            print("the caches were not filled within a minute", file=sys.stderr)
            return 1
        results: set[str] = set()

        def call() -> None:
            results.add(answer_filter(services, body).result.value)

        arguments = wire.read_filter_args(body)
        names = arguments.node_names or []
        snapshot = services.board.snapshot
        found = sort_out(names, snapshot)
        parts = {
            "answer": typical_us(call),
            "decode": typical_us(lambda: wire.read_filter_args(body)),
            # As in a request, where the names have just been decoded: their hashes are not known yet.
            "decode and look up": typical_us(lambda: sort_out(wire.read_filter_args(body).node_names or [], snapshot)),
            "encode": typical_us(lambda: wire.write_names(found.survivors, found.refused)),
        }
        profiler = cProfile.Profile()
        profiler.runcall(lambda: [call() for _ in range(CALLS)])
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(SHOWN)
    finally:
        services.stop()
    if results != {RequestResult.ANSWERED.value}:
        print(f"unexpected answers: {sorted(results)}", file=sys.stderr)
        return 1
    print(json.dumps({"us": parts, "profile": text.getvalue()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
