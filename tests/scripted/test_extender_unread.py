"""Programs whose log nobody reads: neither a call nor a stop waits for a line."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tools.fakes.api_server import FakeApiServer
from tools.kit.ports import free_port
from tools.kit.programs import CHECKOUT, fetch
from tools.kit.waiting import wait_until

STOP_S = 1.0  # the promise; these tests allow a loaded machine four times that
SLACK = 4.0
PAGE_BYTES = 4096


@pytest.fixture
def pipe():
    """(reading end, writing end)."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def fill(pipe):
    """By an opening of its own: that one does not wait."""
    own = os.open(f"/proc/self/fd/{pipe[1]}", os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(own, b"x" * PAGE_BYTES)
    os.close(own)


@pytest.fixture
def api():
    with FakeApiServer() as api:
        api.put(node_json("h1"))
        api.put(pod_json("h1"))
        yield api


@pytest.fixture
def start(api, tmp_path, pipe):
    """start(module, the section of its port) -> (process, address) of a program whose standard error is the pipe."""
    started = []

    def start(words, section):
        port = free_port()
        config = {"listen": {"port": free_port()}, "log": {"level": "debug"}} | {section: {"port": port}}
        path = ExtenderProcess(api, tmp_path, config=config).write()
        argv = [sys.executable, "-m", words, "--config", str(path)]
        process = subprocess.Popen(argv, stderr=pipe[1], cwd=CHECKOUT, start_new_session=True)
        started.append(process)
        return process, f"http://127.0.0.1:{port}"

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


PROGRAMS = [
    pytest.param("extender", "listen", id="what answers kube-scheduler"),
    pytest.param("extender.web", "statusApi", id="the status API"),
]


@pytest.mark.parametrize(("words", "section"), PROGRAMS)
@pytest.mark.parametrize("since", ["the start", "it serves"])
def test_nobody_reads_the_log_since(start, pipe, words, section, since):
    if since == "the start":
        fill(pipe)
    process, url = start(words, section)
    wait_until(lambda: fetch(url + "/livez")[0] == 200, "an answer", timeout_s=20)
    fill(pipe)
    assert fetch(url + "/livez")[0] == 200
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    code = process.wait(20)
    took_s = time.monotonic() - began
    assert (0, True) == (code, took_s < STOP_S * SLACK)
