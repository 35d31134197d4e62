"""Single filter calls, as the checks around a measurement make them."""

import json
import urllib.request
from collections.abc import Sequence

from tools.bench.processes import MeasurementError


class NoVerdictError(MeasurementError):
    """It answered with an Error; the text is its own."""


POD = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {}}


def node_name(i: int) -> str:
    """As the API stub calls its nodes."""
    return f"ip-10-0-{i // 250}-{i % 250}.eu-west-1.compute.internal"


def request_for(names: Sequence[str]) -> bytes:
    return json.dumps({"Pod": POD, "Nodes": None, "NodeNames": list(names)}, separators=(",", ":")).encode()


def ask(url: str, names: Sequence[str]) -> list[str]:
    """Which of these nodes are open. Raises NoVerdictError, or MeasurementError for an answer that is none."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, request_for(names), headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            answer = json.loads(reply.read())
    except OSError as e:
        raise MeasurementError(f"{url}: {e}") from e
    if answer["Error"]:
        raise NoVerdictError(f"{url}: {answer['Error']}")
    return list(answer["NodeNames"] or [])
