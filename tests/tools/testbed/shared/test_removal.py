"""Deleting a collection page after page from an API server that fails, played by a server on loopback."""

import json
import socket
import struct
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tools.kit.clock import Clock
from tools.kit.serving import serving
from tools.testbed.shared import removal
from tools.testbed.shared.api import Api, ApiError
from tools.testbed.shared.removal import LeftoverError, delete_all

PATH = "/api/v1/namespaces/bench/pods"


class Server(ThreadingHTTPServer):
    """Holds names. As the real one, it cannot delete more than `most` of them in one request: it deletes these and
    answers 504. trouble: what happens to the next requests to delete, before anything else."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.names = [f"web-{number:05}" for number in range(3000)]
        self.kept: set[str] = set()  # have a finalizer
        self.most = 1000
        self.trouble: list[str | int] = []
        self.deletes: list[dict[str, str]] = []
        self.silent = threading.Event()  # set at the end


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def page(self) -> tuple[list[str], str]:
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        names = [name for name in self.server.names if name > query.get("continue", "")]
        limit = int(query.get("limit", len(names)))
        return names[:limit], names[limit - 1] if limit < len(names) else ""

    def do_GET(self) -> None:
        names, following = self.page()
        self.answer(
            200, {"items": [{"metadata": {"name": name}} for name in names], "metadata": {"continue": following}}
        )

    def do_DELETE(self) -> None:
        server = self.server
        server.deletes.append(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)))
        names, following = self.page()
        gone = set(names[: server.most]) - server.kept
        trouble = server.trouble.pop(0) if server.trouble else ""
        if trouble == "":
            server.names = [name for name in server.names if name not in gone]
        if trouble == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
        elif trouble == "silence":
            server.silent.wait(30)
        elif trouble or len(names) > server.most:
            self.answer(trouble or 504, {"kind": "Status", "reason": "Timeout", "message": "took longer than 60 s"})
        else:
            self.answer(200, {"kind": "PodList", "metadata": {"continue": following}})

    def answer(self, status: int | str, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(int(status))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Stage:
    """The server, a client of it, and a clock that waiting moves on."""

    def __init__(self, server: Server, api: Api) -> None:
        self.server, self.api = server, api
        self.clock = Clock(1000.0)
        self.pauses: list[float] = []

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.time += seconds

    def delete_all(self, **options: Any) -> None:
        delete_all(self.api, PATH, pause=self.pause, monotonic=self.clock, **options)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr("tools.testbed.shared.api.ssl.create_default_context", lambda **_: None)
    server = Server()
    with serving(server):
        host, port = server.server_address[:2]
        yield Stage(server, Api(f"http://{host!s}:{port}", ca=Path("unused"), token="t"))
        server.silent.set()


def test_more_objects_than_one_request_can_delete_are_deleted_in_pages(stage: Stage) -> None:
    with pytest.raises(ApiError, match="504"):
        stage.api.request("DELETE", f"{PATH}?gracePeriodSeconds=0")
    stage.delete_all()
    assert ([], True) == (stage.server.names, all(int(one["limit"]) <= 250 for one in stage.server.deletes[1:]))
    assert {"0"} == {one["gracePeriodSeconds"] for one in stage.server.deletes}
    assert 0.0 == sum(stage.pauses)


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param([504, 504, 504], id="504"),
        pytest.param(["reset", "reset"], id="resets"),
        pytest.param(["silence"], id="silence"),
        pytest.param([429, 503, 500], id="too many requests, unavailable, an error of its own"),
        pytest.param([410], id="the next page has expired"),
        pytest.param(["", "", 504, "reset", 504, "", "reset", "reset", 504, 504, ""], id="now and then"),
    ],
)
def test_failures_that_pass_are_retried(
    stage: Stage, trouble: list[str | int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "REQUEST_S", 0.5)
    stage.server.trouble = trouble
    stage.delete_all()
    assert ([], []) == (stage.server.names, stage.server.trouble)


def test_pages_become_smaller_where_requests_take_too_long(stage: Stage) -> None:
    stage.server.names, stage.server.most = stage.server.names[:300], 40
    stage.delete_all()
    limits = [int(one["limit"]) for one in stage.server.deletes]
    assert ([250, 125, 62, 31], {31}, []) == (limits[:4], set(limits[3:]), stage.server.names)


def test_after_failures_without_end_the_error_names_how_many_are_left_and_why(stage: Stage) -> None:
    stage.server.trouble = ["", ""] + [504] * 50
    with pytest.raises(LeftoverError, match=rf"2500 objects of {PATH} are left: DELETE .* 504 Timeout"):
        stage.delete_all()
    assert ([0.5, 1.0, 2.0, 4.0, 8.0], 44) == (stage.pauses[2:], len(stage.server.trouble))


def test_objects_that_never_end_are_named_after_the_limit(stage: Stage) -> None:
    stage.server.kept = set(stage.server.names[5:8])
    with pytest.raises(LeftoverError, match=r"3 objects of .* are left: they do not end"):
        stage.delete_all(limit_s=20.0)
    assert 1018.0 < stage.clock.time <= 1020.0


def test_an_error_that_does_not_pass_is_raised_at_once(stage: Stage) -> None:
    stage.server.trouble = [403]
    with pytest.raises(ApiError, match="403"):
        stage.delete_all()
    assert ([], 1) == (stage.pauses, len(stage.server.deletes))


def test_only_the_objects_of_a_selector_are_asked_for(stage: Stage) -> None:
    stage.delete_all(selector="app=web,mark in (a)")
    assert {"app=web,mark in (a)"} == {one["labelSelector"] for one in stage.server.deletes}
