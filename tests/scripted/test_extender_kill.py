"""SIGKILL and SIGSTOP of master and worker, at any moment: who holds the port, who answers, and how soon.

The promise is a second; the waits here allow four on a loaded machine. The second itself is the benchmark's, with 5,000
nodes: `python -m tools.bench --only stop` marks `killed_worker_served_s`, `killed_master_free_s` and
`killed_master_served_s` as missed above it.
"""

import os
import signal
import socket
import time

import pytest

from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import ProcessId, children
from tools.kit.ports import free_port, may_listen
from tools.kit.waiting import wait_until

GONE_S = 1.0  # the promise; these waits allow a loaded machine four times that
SLACK = 4.0


@pytest.fixture
def api():
    with FakeApiServer() as api:
        api.put(node_json("h1"))
        api.put(pod_json("h1"))
        api.put(node_json("u1"))
        api.put(pod_json("u1", Ready="False"))
        yield api


@pytest.fixture
def process(api, tmp_path, gunicorn):
    config = {"listen": {"port": free_port()}}
    with ExtenderProcess(api, tmp_path, config=config, environ=gunicorn.environ) as process:
        yield process


def workers_of(process):
    return [found for found in map(ProcessId.of, children(process.process.pid)) if found]


def answers_right(process):
    try:
        return process.filter(["h1", "u1"]).NodeNames == ["h1"]
    except (OSError, AssertionError):
        return False


def kill_master(process):
    """SIGKILL; then the port is free within the time, and no worker is left. The seconds that took."""
    workers, port = workers_of(process), process.settings["listen"]["port"]
    began = time.monotonic()
    process.process.kill()
    wait_until(lambda: may_listen(port), "the port is held", timeout_s=GONE_S * SLACK)
    wait_until(lambda: not any(worker.alive() for worker in workers), "an orphan lives", timeout_s=GONE_S * SLACK)
    return time.monotonic() - began


def test_a_killed_master_leaves_a_free_port_and_no_worker_and_the_next_start_serves(process):
    process.wait_ready()
    first_start_s = time.monotonic() - process.process.started
    (worker,) = workers_of(process)
    with socket.create_connection(("127.0.0.1", process.port)) as silent:
        began = time.monotonic()
        gone_s = kill_master(process)
        process.start()
        process.wait(lambda: answers_right(process), timeout_s=20)
        served_s = time.monotonic() - began
        silent.settimeout(1)
        assert silent.recv(1) == b""
    print(f"master killed: port free and worker gone {gone_s:.2f} s, served again {served_s:.2f} s after")
    assert [False, True] == [worker.alive(), worker not in workers_of(process)]
    # How long a start takes is the machine's, which may have twice as much to do by now. That something of before holds
    # it up would be ours.
    assert served_s < 2 * first_start_s + GONE_S * SLACK


def test_a_master_killed_before_the_first_sync(api, process):
    api.stall_next(watch=False, times=3)
    process.process.kill()
    process.start()
    wait_until(lambda: workers_of(process), timeout_s=20)
    kill_master(process)


def test_a_master_killed_during_a_reload(api, process):
    process.wait_ready()
    api.stall_next(watch=False, times=3)
    os.kill(process.process.pid, signal.SIGHUP)
    process.wait(lambda: len(workers_of(process)) == 2)
    kill_master(process)


@pytest.mark.parametrize("after_s", [0.3, 0.5, 0.7, 0.9, 1.1])
def test_a_master_killed_while_it_starts(api, tmp_path, gunicorn, after_s):
    port = free_port()
    process = ExtenderProcess(api, tmp_path, config={"listen": {"port": port}}, environ=gunicorn.environ)
    process.start()
    time.sleep(after_s)
    kill_master(process)


def test_a_killed_worker_is_followed_by_one_that_has_synced(process):
    process.wait_ready()
    for _ in range(3):
        (worker,) = workers_of(process)
        worker.signal(signal.SIGKILL)
        began, answers = time.monotonic(), []
        while not answers or not answers[-1]:
            answers.append(answers_right(process))
        served_s = time.monotonic() - began
        print(f"worker killed: served again {served_s:.2f} s after")
        assert (served_s < GONE_S * SLACK, len(answers) <= 2) == (True, True)


def test_a_stopped_worker_is_replaced(process):
    process.wait_ready()
    (worker,) = workers_of(process)
    worker.signal(signal.SIGSTOP)
    wait_until(lambda: not worker.alive(), "it lives", timeout_s=20)
    process.wait(lambda: answers_right(process))
    assert "WORKER TIMEOUT" in process.log


def test_a_worker_told_to_stop_by_somebody_else_is_replaced(process):
    process.wait_ready()
    (worker,) = workers_of(process)
    worker.signal(signal.SIGTERM)
    wait_until(lambda: not worker.alive(), "it lives", timeout_s=10)
    process.wait(lambda: answers_right(process))
