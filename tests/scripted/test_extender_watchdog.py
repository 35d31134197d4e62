"""A worker whose serving thread hangs logs where, in one line, before gunicorn kills it; the next worker answers."""

import os
import socket

import pytest

from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import children
from tools.kit.programs import python_environ

# What Python imports when it starts: a path of the port that hangs the thread which serves.
SITECUSTOMIZE = """
import time
from extender.serve.routes import Routes

other = Routes._other

def spin(): {spin}

def hangs(self, method, path):
    return spin() if path == b"/hang" else other(self, method, path)

Routes._other = hangs
"""


@pytest.mark.parametrize(
    "spin",
    [
        pytest.param("\n    while True: pass", id="in Python, with the GIL"),
        pytest.param("\n    while True: time.sleep(60)", id="in a call that waits"),
    ],
)
def test_stack_of_a_thread_that_hangs_is_logged_before_its_worker_is_killed(tmp_path, spin):
    (tmp_path / "sitecustomize.py").write_text(SITECUSTOMIZE.format(spin=spin))
    environ = {"PYTHONPATH": os.pathsep.join([str(tmp_path), python_environ()["PYTHONPATH"]])}
    with FakeApiServer() as api:
        api.put(node_json("h1"))
        api.put(pod_json("h1"))
        with ExtenderProcess(api, tmp_path, environ=environ) as process:
            process.wait_ready()
            (worker,) = children(process.process.pid)
            with socket.create_connection(("127.0.0.1", process.port)) as sock:
                sock.sendall(b"GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n")
                process.wait(lambda: "the serving thread hangs" in process.log)
                assert [worker] == children(process.process.pid)
                process.wait(lambda: worker not in children(process.process.pid))
            process.wait_ready()
            (line,) = [line for line in process.lines if "the serving thread hangs" in line]
            assert "sitecustomize.py" in line
            assert "spin < " in line
            assert "loop.py" in line
