"""python -m tests.bench.in_process FOLDER CONFIG BODY: what one filter call costs inside the application, no server.

FOLDER: the service account, as in `as_pod`. Prints one JSON object: microseconds (medians) of the whole WSGI call and
of its parts each by itself, and the functions where a profiler saw the time go. One thread asks: nothing waits.
"""

import cProfile
import io
import json
import pstats
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from extender import settings
from extender.policy.snapshot import UNKNOWN_NODE, sort_out
from extender.process.app import create_app
from extender.services import build
from extender.verbs import wire
from kube.auth import in_cluster
from tests.bench.figures import median

CALLS = 1500
SHOWN = 40


def environ_of(body: bytes) -> dict[str, Any]:
    """What gunicorn hands over for kube-scheduler's request."""
    return {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/filter",
        "SCRIPT_NAME": "",
        "QUERY_STRING": "",
        "RAW_URI": "/filter",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "9376",
        "REMOTE_ADDR": "127.0.0.1",
        "REMOTE_PORT": "40000",
        "HTTP_HOST": "127.0.0.1:9376",
        "HTTP_USER_AGENT": "Go-http-client/1.1",
        "HTTP_ACCEPT_ENCODING": "gzip",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
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
        application = create_app(services)
        statuses: set[str] = set()

        def call() -> None:
            reply = application.wsgi_app(environ_of(body), lambda status, *_: statuses.add(status))
            b"".join(reply)

        arguments = wire.read_filter_args(body)
        names = arguments.node_names or []
        reasons = services.board.snapshot.reasons
        found = sort_out(names, reasons, UNKNOWN_NODE)
        parts = {
            "app": typical_us(call),
            "environ": typical_us(lambda: environ_of(body)),
            "decode": typical_us(lambda: wire.read_filter_args(body)),
            # As in a request, where the names have just been decoded: their hashes are not known yet.
            "decode and look up": typical_us(
                lambda: sort_out(wire.read_filter_args(body).node_names or [], reasons, UNKNOWN_NODE)
            ),
            "encode": typical_us(lambda: wire.write_names(found.survivors, found.refused)),
        }
        profiler = cProfile.Profile()
        profiler.runcall(lambda: [call() for _ in range(CALLS)])
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(SHOWN)
    finally:
        services.stop()
    if statuses != {"200 OK"}:
        print(f"unexpected answers: {sorted(statuses)}", file=sys.stderr)
        return 1
    print(json.dumps({"us": parts, "profile": text.getvalue()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
