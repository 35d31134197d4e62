"""A host that has nothing left for another worker, as no descriptor or process: who answers goes on, and the next one
is begun when there is something again.
"""

import os
import resource
import signal
from pathlib import Path

import pytest

from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import children

SPARE = 2  # descriptors that the master still gets: a configuration is read with them, and no worker is begun


@pytest.fixture
def process(gunicorn, tmp_path):
    with FakeApiServer() as api:
        api.put(node_json("h1"))
        api.put(pod_json("h1"))
        with ExtenderProcess(api, tmp_path, environ=gunicorn.environ) as running:
            running.wait_ready()
            yield running


def leave(pid: int, spare: int) -> tuple[int, int]:
    """That process gets so many descriptors more. Its limits before."""
    used = {int(one.name) for one in Path(f"/proc/{pid}/fd").iterdir()}
    limit = next(i for i in range(1, 1000) if i - sum(fd < i for fd in used) == spare and i > max(used))
    return resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]))


def test_a_reload_that_cannot_begin_a_worker_leaves_the_one_that_answers(process):
    master, before = process.process.pid, children(process.process.pid)
    limits = leave(master, SPARE)
    os.kill(master, signal.SIGHUP)
    process.wait(lambda: "no worker can be started" in process.log)
    assert (before, ["h1"]) == (children(master), process.filter(["h1"]).NodeNames)
    resource.prlimit(master, resource.RLIMIT_NOFILE, limits)
    os.kill(master, signal.SIGHUP)
    process.wait(lambda: " reloaded" in process.log, 20)
    assert ["h1"] == process.filter(["h1"]).NodeNames


def test_a_worker_that_dies_then_is_followed_when_there_is_something_for_another(process):
    master = process.process.pid
    limits = leave(master, 0)  # the dead one gives back two
    os.kill(children(master)[0], signal.SIGKILL)
    process.wait(lambda: "no worker can be started" in process.log)
    resource.prlimit(master, resource.RLIMIT_NOFILE, limits)
    process.wait(lambda: len(children(master)) == 1)
    process.wait_ready()
    assert (["h1"], 1) == (process.filter(["h1"]).NodeNames, process.log.count("no worker can be started"))
