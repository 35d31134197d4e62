"""python -m tools.bench.in_process FOLDER CONFIG BODY: what one filter call costs inside the application, no server.

FOLDER: the service account, as in `as_pod`. Prints one JSON object: microseconds (medians) of the whole answer and of
its parts each by itself, and the functions where a profiler saw the time go. One thread asks: nothing waits.

The parts are those of a request that is answered from its bytes, as are kube-scheduler's; of any other one nothing is
measured.
"""

import cProfile
import io
import json
import pstats
import sys
import time
from collections.abc import Callable
from pathlib import Path

from extender.config import settings
from extender.policy.encoded_names import Sorted
from extender.process.services import build
from extender.verbs import wire
from extender.verbs.counts import RequestResult
from extender.verbs.filter import answer_filter
from extender.verbs.pods import mask_of
from extender.verbs.source import Source
from kube.auth import in_cluster
from tools.bench.figures import median

CALLS = 1500
SHOWN = 40


class AnotherWayError(Exception):
    """The request is not answered as kube-scheduler's are. The text says where it parts."""


def parts_of(source: Source, body: bytes) -> dict[str, Callable[[], object]]:
    """The answer and its parts, each to be called by itself; those that need an earlier one begin with it, as in a
    request: names that have just been split have no hashes yet. Raises AnotherWayError.
    """
    classes, board = source.classes, source.board

    def decode() -> tuple[wire.WrittenArgs, list[bytes]]:
        written = wire.read_as_written(body, whole=classes.needs_spec)
        if written is None:
            raise AnotherWayError("the request is not in the form that kube-scheduler gives it")
        return written, written.names.split(b",")

    def look_up() -> Sorted:
        written, asked = decode()
        mask = classes.all if classes.everybody else mask_of(classes, written.pod)
        found = board.look_up_spelled(asked, mask)
        if found is None:
            raise AnotherWayError("not each name is another node that is known, or no gate refuses any")
        return found[0]

    survivors, closed, refused = look_up()
    if not closed:
        raise AnotherWayError("none of the nodes is closed, so their list goes back as it came")
    return {
        "answer": lambda: answer_filter(source, body),
        "decode": decode,
        "decode and look up": look_up,
        "encode": lambda: wire.write_spelled(b",".join(survivors), refused.told),
    }


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

        try:
            parts = {name: typical_us(do) for name, do in parts_of(services, body).items()}
        except AnotherWayError as e:
            print(e, file=sys.stderr)
            return 1
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
