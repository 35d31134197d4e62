"""The lowest rung of the ladder: gunicorn with the extender's settings and nothing behind it but a reader of bodies."""

from collections.abc import Callable, Iterable
from typing import Any

REPLY = b'{"Nodes":null,"NodeNames":["one"],"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'


def floor(environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], object]) -> Iterable[bytes]:
    """Takes the whole body, answers the same bytes whatever was asked."""
    environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(REPLY)))])
    return [REPLY]
