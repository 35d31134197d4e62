"""The extender, and what serves people, on the older of the two lines that gunicorn supports; all other tests run on
the newer one.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from images.cache import cached, key_of_file
from tests.extender.builders import node_json, pod_json
from tests.fakes.api_server import FakeApiServer
from tests.kit.pid import children
from tests.kit.programs import python_environ
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.people_process import PeopleProcess

LOCK = Path(__file__).with_name("gunicorn-26.lock")


def installed(folder):
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--no-deps"]
    subprocess.run(
        [*command, "--require-hashes", f"--target={folder}", f"--requirement={LOCK}"], check=True, timeout=100
    )


@pytest.fixture
def older():
    """The environment of a process that finds it first."""
    folder = cached("gunicorn", key_of_file(LOCK), installed, print)
    return {"PYTHONPATH": os.pathsep.join([str(folder), python_environ()["PYTHONPATH"]])}


@pytest.fixture
def process(tmp_path, older):
    with FakeApiServer() as api:
        api.put(node_json("h1"))
        api.put(pod_json("h1"))
        api.put(node_json("u1"))
        api.put(pod_json("u1", Ready="False"))
        with ExtenderProcess(api, tmp_path, config={"log": {"level": "debug"}}, environ=older) as process:
            yield process


def serves(process):
    process.wait_ready()
    assert ["h1"] == process.filter(["h1", "u1"]).NodeNames


def test_the_older_line_serves_reloads_replaces_a_dead_worker_and_stops(process):
    assert "Starting gunicorn 26.2" in process.log
    serves(process)
    before = children(process.process.pid)
    os.kill(process.process.pid, signal.SIGHUP)
    process.wait(lambda: not set(before) & set(children(process.process.pid)), timeout_s=30)
    serves(process)
    (worker,) = children(process.process.pid)
    os.kill(worker, signal.SIGKILL)
    process.wait(lambda: children(process.process.pid) not in ([], [worker]))
    serves(process)
    with socket.create_connection(("127.0.0.1", process.port)):  # silent
        code, took_s = process.stop()
    assert (0, True) == (code, took_s < 5)
    assert "Traceback" not in process.log


def test_people_are_served_by_the_older_line_too(process, older, tmp_path):
    serves(process)
    with PeopleProcess(process.settings, tmp_path, environ=older) as people:
        people.process.wait_ready(people.ready, timeout_s=20)
        assert "Starting gunicorn 26.2" in people.log
        nodes = json.loads(people.get("/api/v1/nodes")[1])["nodes"]
        assert {"h1": True, "u1": False} == {node["node"]: node["open"] for node in nodes}
        code, _ = people.stop()
    assert 0 == code
    assert "Traceback" not in people.log
